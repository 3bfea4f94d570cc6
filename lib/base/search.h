/* SPDX-License-Identifier: GPL-2.0-only */
/* search.h: the binary search. Pure. */
#ifndef TTMON_SEARCH_H
#define TTMON_SEARCH_H

/*
 * Returns the first i in from .. to - 1 for which the expression `before` is false; to if there is
 * none. `before` must be true for a number of leading elements and false for the others. The result
 * has the type of from.
 */
#define TTMON_SEARCH(from, to, i, before)                               \
	({                                                              \
		__typeof__(from) from_ = (from), to_ = (to);            \
                                                                        \
		while (from_ < to_) {                                   \
			__typeof__(from) i = from_ + (to_ - from_) / 2; \
                                                                        \
			if (before)                                     \
				from_ = i + 1;                          \
			else                                            \
				to_ = i;                                \
		}                                                       \
		from_;                                                  \
	})

#endif
