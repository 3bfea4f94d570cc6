/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * unwind.h: call stacks by unwind tables: the connection to the process that finds them (io/unwind);
 * its answers go into the stream as UNWOUND facts. Cold thread. A run without that process has call
 * stacks by frame pointers, and says so.
 */
#ifndef TTMON_RUN_UNWIND_H
#define TTMON_RUN_UNWIND_H

#include "daemon/run/daemon.h"

struct ttmon_unwind_state {
	bool on;	 /* the process is running */
	uint64_t copied; /* stacks copied */
	uint64_t lost;	 /* not copied for want of room: the process did not keep up */
	uint64_t answered;
	uint64_t cpu_ns; /* CPU time of the process in ns */
};

/* False: this run has no such process, and never had one. */
bool ttmon_unwind_get(const struct ttmon_daemon *c, struct ttmon_unwind_state *ret);

extern const struct ttmon_part ttmon_part_unwind;

#endif
