/* SPDX-License-Identifier: GPL-2.0-only */
/* rmids_int.h: functions of rmids_module.c about an RMID module, for rmids.c. */
#ifndef TTMON_RMIDS_INT_H
#define TTMON_RMIDS_INT_H

#include "daemon/io/rdt/rmids.h"

#define TTMON_RMIDS_WIDTH 64 /* bits of a counter that does not wrap */

/* Properties from the module, or from CPUID. */
struct ttmon_rmids_units {
	uint32_t max_rmid, width, has; /* has: TTMON_RMID_HAS_* */
	uint64_t scale, failed;
	bool hardware, released;
	char version[32];
	char file[256]; /* the module's procfs file, "": it has none */
	char source[256];
};

/*
 * Finds a loaded module with the known layout of tracepoints. Sets the prefix of their names; -ENOENT,
 * -EPROTO and why.
 */
int ttmon_rmids_find_module(const struct ttmon_rmids_cfg *cfg, char *prefix, size_t prefix_n, char *why,
			    size_t n) _must_check;
void ttmon_rmids_cpuid(struct ttmon_rmids_units *u);
void ttmon_rmids_read_units(const struct ttmon_rmids_cfg *cfg, struct ttmon_rmids_units *u);
/* Parses a decimal number from min to max, and nothing else. */
bool ttmon_rmids_number(const char *s, uint64_t min, uint64_t max, uint64_t *ret) _must_check;

#endif
