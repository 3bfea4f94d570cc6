/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * clocksync.h: maps device cycles to host nanoseconds, from (host, device) pairs. Pure; no allocation
 * after init.
 *
 * Model: cycles = ghz * (host - host0) + cycles0, fitted by centered least squares over the pairs kept
 * (a window of the newest); outliers (spikes of the host side: a pair that was delayed) are found
 * against a robust first fit and left out; a counter that went back or jumped starts a new fit. Fitted
 * again as pairs come.
 *
 * The bound: if every pair used lies within E of the true line, a least-squares line lies within E at
 * its centre, and moves away from the true one by at most E * sum|x - mean| / sum (x - mean)^2 for
 * every cycle. E is the uncertainty that the pair claims, or its residual where that is more. The
 * bound holds wherever the counter's frequency does not change.
 */
#ifndef TTMON_CLOCKSYNC_H
#define TTMON_CLOCKSYNC_H

#include "lib/base/util.h"

#define TTMON_SYNC_PAIRS 256

struct ttmon_sync_pair {
	uint64_t host_ns; /* CLOCK_MONOTONIC */
	uint64_t cycles;
	uint32_t error_ns; /* uncertainty of host_ns; 0: unknown, TTMON_SYNC_ERROR_NS is assumed */
};
#define TTMON_SYNC_ERROR_NS 1000

/*
 * This many pairs that contradict all others must agree among themselves before they are believed:
 * then the counter was reset.
 */
#define TTMON_SYNC_RESET 3

struct ttmon_clocksync {
	struct ttmon_sync_pair pairs[TTMON_SYNC_PAIRS]; /* ring, oldest first from head */
	uint32_t head, n;
	uint32_t fresh;				      /* pairs since the last fit */
	struct ttmon_sync_pair odd[TTMON_SYNC_RESET]; /* the newest pairs that contradict the ring but not each other */
	uint32_t nr_odd;
	uint64_t total, resets;
	/*
		 * of all pairs taken: those that no fit used, except those still in the ring, see
		 * ttmon_clocksync_outliers()
		 */
	uint64_t outliers;
	/* The fit. */
	bool valid;
	uint64_t host0_ns, cycles0;		     /* centre of the pairs */
	double ns_per_cycle, offset_ns, slope_error; /* slope_error: relative */
	double error_ns;			     /* bound at the centre in ns */
	double tail_ns; /* added to the bound past the newest pair used: later pairs contradict the fit */
	uint64_t tail_cycles;
	double residual_ns;		     /* largest residual of the pairs used */
	uint64_t from_ns, to_ns;	     /* span of the pairs used */
	uint32_t out[TTMON_SYNC_PAIRS / 32]; /* bit per place of the ring: left out by the fit */
	double ghz_lo, ghz_hi;		     /* plausible frequencies: 0.2 to 2.0 */
};

void ttmon_clocksync_init(struct ttmon_clocksync *c);
/* Takes a pair in and fits again. False: refused (older than the last, or invalid). */
bool ttmon_clocksync_add(struct ttmon_clocksync *c, const struct ttmon_sync_pair *p);
/* Drops all pairs: the counter is known to have been reset. */
void ttmon_clocksync_drop(struct ttmon_clocksync *c);
/*
 * Host time of a cycle count, and a bound of its error (outside the span it grows with the slope's
 * error). False: no fit.
 */
bool ttmon_clocksync_map(const struct ttmon_clocksync *c, uint64_t cycles, uint64_t *host_ns, uint64_t *error_ns);
/* Frequency of the fit in GHz, 0: none. */
double ttmon_clocksync_ghz(const struct ttmon_clocksync *c);
/* Number of pairs left out so far. */
uint64_t ttmon_clocksync_outliers(const struct ttmon_clocksync *c);

#endif
