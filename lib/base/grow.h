/* SPDX-License-Identifier: GPL-2.0-only */
/* grow.h: arrays that grow. Pure. */
#ifndef TTMON_GROW_H
#define TTMON_GROW_H

#include "lib/base/util.h"

static inline int ttmon_grow_array(void **v, size_t *cap, size_t n, size_t first, size_t size, size_t max)
{
	size_t more = *cap ? *cap * 2 : first;
	void *p;

	more = more < n ? n : more;
	p = more > max ? NULL : reallocarray(*v, more, size);
	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = more;
	return 0;
}

/*
 * Makes room for n elements in the array v, which has room for cap elements: doubles it, or allocates
 * `first` the first time, or n if that is more. v is a pointer, cap an integer; the macro sets both.
 * New elements are not zeroed. 0; -ENOMEM: nothing has changed.
 */
#define TTMON_GROW(v, cap, n, first)                                                                   \
	({                                                                                             \
		size_t n_ = (n), cap_ = (cap);                                                         \
		int err_ = 0;                                                                          \
                                                                                                       \
		if (n_ > cap_) {                                                                       \
			void *v_ = (void *)(v);                                                        \
                                                                                                       \
			err_ = ttmon_grow_array(&v_, &cap_, n_, (first), sizeof(*(v)),                 \
						sizeof(cap) < sizeof(size_t) ? UINT32_MAX : SIZE_MAX); \
			(v) = v_;                                                                      \
			(cap) = (__typeof__(cap))cap_;                                                 \
		}                                                                                      \
		err_;                                                                                  \
	})

#endif
