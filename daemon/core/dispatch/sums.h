/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sums.h: differences of the kernel's running sums for one (process, device, CPU). Pure.
 *
 * Records carry sums since the beginning, so a lost one costs nothing. They may come twice, late, or
 * (the sums as the daemon read them) ahead of older events. They never fall: the kernel keeps an entry
 * until the process has ended. A smaller sum than before comes from a thread that was preempted
 * between counting and sending.
 */
#ifndef TTMON_DISP_SUMS_H
#define TTMON_DISP_SUMS_H

#include <ttmon/event.h>

#include "lib/base/util.h"

struct ttmon_disp_cpu {
	uint64_t ts_ns;			      /* of the newest record */
	uint64_t last[TTMON_TT_DISPATCH_MAX]; /* counted up to here */
	uint64_t told[TTMON_TT_DISPATCH_MAX]; /* reported one by one up to here */
	bool seen;
};

/* Sets ret to what these sums add to the counts. Returns whether they add anything. */
bool ttmon_disp_cpu_add(struct ttmon_disp_cpu *c, uint64_t ts_ns, const __u64 sums[TTMON_TT_DISPATCH_MAX],
			uint64_t ret[TTMON_TT_DISPATCH_MAX]);
/*
 * Dispatches of a kind since the one reported before; 0: this one was reported already. Call after
 * ttmon_disp_cpu_add() of the same record.
 */
uint64_t ttmon_disp_cpu_tell(struct ttmon_disp_cpu *c, unsigned int kind, uint64_t sum);

#endif
