/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ttnames.h: symbol names of tt-metal: finds the row of tt_fns.h for a mangled name, or which of the
 * two vtables it is. Pure.
 */
#ifndef TTMON_TTNAMES_H
#define TTMON_TTNAMES_H

#include <ttmon/tt_fns.h>

#include "lib/base/util.h"

/*
 * The mark that every name of the table contains, the only string that string tables are searched for.
 * At byte 2 of a function, byte 4 of a vtable.
 */
#define TTMON_TTNAME_MARK "N2tt"

/* Longer names are not in the table (the longest seen have some 400 bytes). */
#define TTMON_TTNAME_MAX 1000u

enum ttmon_ttname {
	TTMON_TTNAME_NONE,
	TTMON_TTNAME_VT_DEVICE,
	TTMON_TTNAME_VT_MESH,
	/* from here on: the id of a function, TTMON_TT_FN_FIRST.. */
};

/* What s (len bytes, no NUL within) is: enum ttmon_ttname, or the id of the first row that matches. */
unsigned int ttmon_ttname_find(const char *s, size_t len);
/*
 * True if s matches the pattern ('*': any run of characters, "[ab]": one of these). Its time is at
 * most the product of both lengths.
 */
bool ttmon_ttname_glob(const char *pattern, const char *s, size_t len);

#endif
