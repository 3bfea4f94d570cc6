/* SPDX-License-Identifier: GPL-2.0-only */
/* join.h: a trace of GPU memory accesses laid over a database. */
#ifndef TTMON_TOOLS_MT_JOIN_H
#define TTMON_TOOLS_MT_JOIN_H

#include <stdint.h>

struct ttmon_run;

struct ttmon_mt_joined {
	uint64_t records;
	uint64_t allocs; /* that kernels accessed; of these: */
	uint64_t pinned; /* pinned by the program */
	uint64_t idle;	 /* and of those without one copy: cold, but for this */
};

/*
 * Tells the run's allocations what the trace's kernels did with them (ttmon_run_gpu_use()). -errno,
 * and one line on stderr that begins with "ttmon:". A trace that was cut counts as far as it goes.
 */
int ttmon_mt_join(const char *trace, struct ttmon_run *run, struct ttmon_mt_joined *ret);

#endif
