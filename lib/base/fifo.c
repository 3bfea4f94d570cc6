// SPDX-License-Identifier: GPL-2.0-only
/*
 * fifo.c: see fifo.h. Used by the history in the hot thread, for freed allocations that wait to be
 * folded and for call sites that wait to be resolved.
 */
#include "lib/base/fifo.h"

#define FIFO_MIN 64

int ttmon_fifo_push(struct ttmon_fifo *f, const void *el)
{
	if (f->n == f->cap) {
		size_t cap = f->cap ? f->cap * 2 : FIFO_MIN;
		char *v = malloc(cap * f->elem);

		if (!v)
			return -ENOMEM;
		for (size_t i = 0; i < f->n; i++)
			memcpy(v + i * f->elem, f->v + ((f->head + i) & (f->cap - 1)) * f->elem, f->elem);
		free(f->v);
		f->v = v;
		f->head = 0;
		f->cap = cap;
	}
	memcpy(f->v + ((f->head + f->n) & (f->cap - 1)) * f->elem, el, f->elem);
	f->n++;
	return 0;
}

const void *ttmon_fifo_front(const struct ttmon_fifo *f)
{
	return f->n ? f->v + f->head * f->elem : NULL;
}

void ttmon_fifo_pop(struct ttmon_fifo *f)
{
	if (!f->n)
		return;
	f->head = (f->head + 1) & (f->cap - 1);
	if (--f->n == 0 && f->cap > 64 * FIFO_MIN)
		ttmon_fifo_fini(f);
}

void ttmon_fifo_fini(struct ttmon_fifo *f)
{
	free(f->v);
	*f = (struct ttmon_fifo){ .elem = f->elem };
}
