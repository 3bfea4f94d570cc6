/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * watermark.h: computes how far the slots may close. Pure, hot thread; the caller passes the time and
 * what each drain found.
 *
 *   T0 (clock)   producer positions read      drained to them       watermark = T0 - guard
 *   ---|-----------------|--------------------------|---------------------> time
 *      a record at or past a position was reserved after T0, so it is stamped after T0
 *
 * Neither side has a full barrier between position and clock, hence the guard. Two things hold the
 * watermark back, each for TTMON_STALL_NS at most: a ring whose next record is reserved but not
 * submitted (its task was preempted in between), and a process whose mappings are being read. After
 * that the slots close without it, and its events count as late when they come.
 */
#ifndef TTMON_WATERMARK_H
#define TTMON_WATERMARK_H

#include "lib/base/util.h"

/* With this guard 0 of 20 million events were late (tests/bench/bench_loss.c prints the late ones). */
#define TTMON_GUARD_NS (100 * NSEC_PER_US)
#define TTMON_STALL_NS (50 * NSEC_PER_MS)
/* Processes that can hold the watermark at a time; further ones cannot. */
#define TTMON_WATERMARK_PROCS 64

struct ttmon_watermark {
	uint64_t ns;	 /* no event stamped before this will come */
	uint64_t t0_ns;	 /* t0_ns of the drain under way */
	uint64_t stalls; /* rings no longer waited for, counted in each drain */
	bool wait;
	uint32_t nr_rings;
	uint64_t *stalled_since; /* by ring; 0: not stalled */
	struct {
		uint32_t tgid;
		uint64_t ts_ns, deadline_ns;
	} procs[TTMON_WATERMARK_PROCS];
	size_t nr_procs;
};

int ttmon_watermark_init(struct ttmon_watermark *w, uint32_t rings, uint64_t now_ns) _must_check;
void ttmon_watermark_fini(struct ttmon_watermark *w);

/* A drain begins; t0_ns was read before any ring position. */
void ttmon_watermark_begin(struct ttmon_watermark *w, uint64_t t0_ns);
/*
 * One ring was drained. reached: up to its position, otherwise it stopped at a reserved record that is
 * not submitted; moved: some records came out of it. False: the ring is no longer waited for.
 */
bool ttmon_watermark_ring(struct ttmon_watermark *w, uint32_t ring, bool reached, bool moved);
/* Events of this process from ts_ns on wait for its list of mappings, which is being read. */
void ttmon_watermark_hold(struct ttmon_watermark *w, uint32_t tgid, uint64_t ts_ns);
void ttmon_watermark_release(struct ttmon_watermark *w, uint32_t tgid);
/* The drain is over: w->ns is the new watermark, never before the old one. */
void ttmon_watermark_end(struct ttmon_watermark *w);

#endif
