/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fnnames.h: symbol names of the function table (fns.h): finds the row of "cuMemcpyHtoD_v2_ptds".
 * Pure.
 */
#ifndef TTMON_FNNAMES_H
#define TTMON_FNNAMES_H

#include <ttmon/fns.h>

#include "lib/base/util.h"

struct ttmon_fnname {
	const char *name; /* without version and per-thread suffix */
	uint8_t len;
	uint8_t lib;	  /* enum ttmon_fn_lib */
	uint8_t versions; /* TTMON_V* */
	uint16_t fn;
};

/* All rows, in the order of fns.h. */
extern const struct ttmon_fnname ttmon_fnnames[];
extern const size_t ttmon_nr_fnnames;

/*
 * True if s (len bytes) is a name of the table. *row is the index of the first row with this base
 * name, *version one TTMON_V*.
 */
bool ttmon_fnname_parse(const char *s, size_t len, size_t *row, uint8_t *version);
/* True if the row applies to a runtime before, or from, version 13. */
bool ttmon_fnname_fits(const struct ttmon_fnname *row, bool before_13);
/*
 * The row for this base name (first row) and version; NULL: this version has other arguments and is
 * not probed.
 */
const struct ttmon_fnname *ttmon_fnname_resolve(size_t first, uint8_t version, bool before_13);
bool ttmon_fnname_is_rt(const struct ttmon_fnname *row);
/* True if this name exists only in runtimes before 13. */
bool ttmon_fnname_is_old(size_t first, uint8_t version);

#endif
