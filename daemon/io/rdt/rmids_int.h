/* SPDX-License-Identifier: GPL-2.0-only */
/* rmids_int.h: what rmids.c asks about an RMID module (rmids_module.c). */
#ifndef TTMON_RMIDS_INT_H
#define TTMON_RMIDS_INT_H

#include "daemon/io/rdt/rmids.h"

#define TTMON_RMIDS_WIDTH 64 /* bits of a counter that does not wrap */

/* What the module, or CPUID, says of itself. */
struct ttmon_rmids_units {
	uint32_t max_rmid, width, has; /* has: TTMON_RMID_HAS_* */
	uint64_t scale, failed;
	bool hardware, released;
	char version[32];
	char file[256]; /* the module's procfs file, "": it has none */
	char source[256];
};

/*
 * Is one loaded whose tracepoints are as we know them? Sets the prefix of their names; -ENOENT,
 * -EPROTO and why.
 */
int ttmon_rmids_find_module(const struct ttmon_rmids_cfg *cfg, char *prefix, size_t prefix_n, char *why,
			    size_t n) _must_check;
void ttmon_rmids_cpuid(struct ttmon_rmids_units *u);
void ttmon_rmids_read_units(const struct ttmon_rmids_cfg *cfg, struct ttmon_rmids_units *u);
/* A decimal number and nothing else, from min to max. */
bool ttmon_rmids_number(const char *s, uint64_t min, uint64_t max, uint64_t *ret) _must_check;

#endif
