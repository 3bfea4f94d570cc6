/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fifo.h: a queue of small elements of equal size, in a ring that grows. Its memory is freed when it
 * becomes empty.
 */
#ifndef TTMON_FIFO_H
#define TTMON_FIFO_H

#include "lib/base/util.h"

struct ttmon_fifo {
	char *v;
	size_t head, n, cap; /* in elements; cap: a power of two */
	size_t elem;	     /* bytes of an element, set by the owner before use */
};

int ttmon_fifo_push(struct ttmon_fifo *f, const void *el) _must_check;
/* Returns the oldest element; NULL: empty. Valid until the next push or pop. */
const void *ttmon_fifo_front(const struct ttmon_fifo *f);
/* Returns the i-th oldest element; 0 is the front; i < n. */
static inline void *ttmon_fifo_at(const struct ttmon_fifo *f, size_t i)
{
	return f->v + ((f->head + i) & (f->cap - 1)) * f->elem;
}
void ttmon_fifo_pop(struct ttmon_fifo *f);
void ttmon_fifo_fini(struct ttmon_fifo *f);

#endif
