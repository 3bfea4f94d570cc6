/* SPDX-License-Identifier: GPL-2.0-only */
/* join.h: combines a trace of GPU memory accesses with a database of the same run. */
#ifndef TTMON_TOOLS_MT_JOIN_H
#define TTMON_TOOLS_MT_JOIN_H

#include <stdint.h>

struct ttmon_run;

struct ttmon_mt_joined {
	uint64_t records;
	uint64_t allocs; /* number of allocations that kernels accessed; of these: */
	uint64_t pinned; /* pinned by the program */
	uint64_t idle;	 /* of the pinned ones, those without a copy: they would be cold without the accesses */
};

/*
 * Records in the run's allocations how the trace's kernels used them (ttmon_run_gpu_use()). Returns 0,
 * or -errno after one line on stderr that begins with "ttmon:". A trace that ends early counts as far
 * as it goes.
 */
int ttmon_mt_join(const char *trace, struct ttmon_run *run, struct ttmon_mt_joined *ret);

#endif
