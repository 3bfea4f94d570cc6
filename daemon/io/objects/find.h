/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * find.h: two bytes that are seldom together, in megabytes of names. memmem() takes ten times as long
 * for so short a needle: it looks at one byte at a time. Pure.
 */
#ifndef TTMON_FIND_H
#define TTMON_FIND_H

#include "lib/base/util.h"

#define TTMON_FIND_BLOCK 64

/* Where in [s, end) is a, followed by b? NULL: nowhere. */
static inline const char *ttmon_find_pair(const char *s, const char *end, char a, char b)
{
	/* Without a branch in it, so that compilers make vectors of it. */
	for (; end - s > TTMON_FIND_BLOCK; s += TTMON_FIND_BLOCK) {
		uint8_t any = 0;

		for (int i = 0; i < TTMON_FIND_BLOCK; i++)
			any |= (s[i] == a) & (s[i + 1] == b);
		if (any)
			break;
	}
	for (; end - s > 1; s++)
		if (s[0] == a && s[1] == b)
			return s;
	return NULL;
}

#endif
