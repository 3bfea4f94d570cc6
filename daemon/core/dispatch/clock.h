/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * clock.h: the clock of one device of one process: chooses how a run's cycles become host time. Pure.
 *
 * Best first: the line through the pairs that tt-metal reports (PAIRS); a single such pair and the
 * record's frequency (PAIRS, with ONE_PAIR_PPM as the error of that frequency); the record's own
 * clock_sync (RECORD); between enqueue and callback (ENVELOPE). A way that gives a time after the
 * callback, or one long before it, is wrong whatever error it claims, and the next way is used.
 */
#ifndef TTMON_DISP_CLOCK_H
#define TTMON_DISP_CLOCK_H

#include "daemon/core/dispatch/clocksync.h"
#include "daemon/core/dispatch/record.h"
#include "daemon/core/dispatch/dispatch.h"
#include "daemon/core/dispatch/tsc.h"

struct ttmon_disp_pairs; /* allocated at the first pair */

struct ttmon_disp_clock {
	struct ttmon_disp_pairs *pairs;
	uint64_t hi_cycles; /* largest end of a run */
	uint64_t hi_resets; /* resets of the fit when hi_cycles was set */
	uint64_t resets;    /* resets seen from runs, not from pairs */
	uint8_t back;	    /* runs in a row that end before hi_cycles */
	bool hi;
};

void ttmon_disp_clock_fini(struct ttmon_disp_clock *c);

/*
 * A pair reported at ts_ns: ticks are CLOCK_MONOTONIC or TSC, whichever is near ts_ns. Returns 1:
 * there is a fit now, 0: taken, or kept until the TSC's rate is known, -EINVAL: invalid, -ENOMEM.
 */
int ttmon_disp_clock_pair(struct ttmon_disp_clock *c, const struct ttmon_tsc *tsc, uint64_t ts_ns, uint64_t ticks,
			  uint64_t cycles);
/*
 * The TSC's rate is known now: takes the pairs that waited for it. Returns whether there is a fit now.
 */
bool ttmon_disp_clock_tsc(struct ttmon_disp_clock *c, const struct ttmon_tsc *tsc);
/* True if pairs wait for the TSC. */
bool ttmon_disp_clock_waits(const struct ttmon_disp_clock *c);

/*
 * Fills in start_ns, end_ns, error_ns, ghz and clock of a run whose cycles and seen_ns are set. With
 * ENVELOPE it ends at seen_ns, and error_ns is UINT64_MAX. Called at least once for each run, in order
 * of arrival; account: this call counts in the statistics.
 */
void ttmon_disp_clock_place(struct ttmon_disp_clock *c, const struct ttmon_rec *rec, struct ttmon_tt_run *run,
			    bool account);
/* Fills in the fit, pairs, outliers and resets. */
void ttmon_disp_clock_view(const struct ttmon_disp_clock *c, struct ttmon_tt_clock *view);

#endif
