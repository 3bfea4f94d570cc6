// SPDX-License-Identifier: GPL-2.0-only
/*
 * fnnames.c: the names of fns.h as a table, and how a symbol is taken apart: base name, "_v2" to
 * "_v4", "_ptds" or "_ptsz".
 *
 * Pure, any thread. CUDA 13 gave some functions other arguments under their old names, hence rows for
 * runtimes before and from 13. A static runtime does not contain its version, but it is one object
 * file, linked whole or not at all: names that 13 dropped show an older version.
 */
#include "daemon/io/objects/fnnames.h"

const struct ttmon_fnname ttmon_fnnames[] = {
#define F(id, symbol, lib, versions, class, aux, bits, a0, a1, a2, a3, a4, a5, a6, a7) \
	{ #symbol, sizeof(#symbol) - 1, TTMON_LIB_##lib, TTMON_##versions, id },
	TTMON_FN_TABLE(F)
#undef F
};
/*
 * No name is shorter: this keeps most strings with a similar beginning from being searched in the
 * table.
 */
#define SHORTEST (sizeof("cudaFree") - 1)

const size_t ttmon_nr_fnnames = ARRAY_SIZE(ttmon_fnnames);

bool ttmon_fnname_parse(const char *s, size_t len, size_t *row, uint8_t *version)
{
	uint8_t v = TTMON_V1;

	if (len < SHORTEST)
		return false;
	if (len > 5 && (!memcmp(s + len - 5, "_ptds", 5) || !memcmp(s + len - 5, "_ptsz", 5)))
		len -= 5;
	if (len > 3 && s[len - 3] == '_' && s[len - 2] == 'v' && s[len - 1] >= '2' && s[len - 1] <= '4') {
		v = (uint8_t)(TTMON_V1 << (s[len - 1] - '1'));
		len -= 3;
	}
	for (size_t i = 0; i < ARRAY_SIZE(ttmon_fnnames); i++) {
		if (ttmon_fnnames[i].len == len && !memcmp(ttmon_fnnames[i].name, s, len)) {
			*row = i;
			*version = v;
			return true;
		}
	}
	return false;
}

bool ttmon_fnname_fits(const struct ttmon_fnname *row, bool before_13)
{
	switch (row->lib) {
	case TTMON_LIB_RT12:
		return before_13;
	case TTMON_LIB_RT13:
		return !before_13;
	default:
		return true;
	}
}

const struct ttmon_fnname *ttmon_fnname_resolve(size_t first, uint8_t version, bool before_13)
{
	for (size_t i = first; i < ARRAY_SIZE(ttmon_fnnames); i++) {
		const struct ttmon_fnname *row = &ttmon_fnnames[i];

		if ((row->versions & version) && ttmon_fnname_fits(row, before_13) &&
		    !strcmp(row->name, ttmon_fnnames[first].name))
			return row;
	}
	return NULL;
}

bool ttmon_fnname_is_rt(const struct ttmon_fnname *row)
{
	return row->lib == TTMON_LIB_RT || row->lib == TTMON_LIB_RT12 || row->lib == TTMON_LIB_RT13;
}

bool ttmon_fnname_is_old(size_t first, uint8_t version)
{
	return ttmon_fnname_resolve(first, version, true) && !ttmon_fnname_resolve(first, version, false);
}
