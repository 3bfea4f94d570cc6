/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * unwind.h: call stacks by unwind tables: the process that finds them (io/unwind), what it is told and
 * asked, and what it answers, which goes into the stream as UNWOUND facts. Cold thread. A run without
 * that process has call stacks by frame pointers, and says so.
 */
#ifndef TTMON_RUN_UNWIND_H
#define TTMON_RUN_UNWIND_H

#include "daemon/run/daemon.h"

struct ttmon_unwind_state {
	bool on;	 /* the process is there */
	uint64_t copied; /* stacks */
	uint64_t lost;	 /* for want of room: it did not keep up */
	uint64_t answered;
	uint64_t cpu_ns; /* what the process has used */
};

/* False: this run has none, and had none. */
bool ttmon_unwind_get(const struct ttmon_daemon *c, struct ttmon_unwind_state *ret);

extern const struct ttmon_part ttmon_part_unwind;

#endif
