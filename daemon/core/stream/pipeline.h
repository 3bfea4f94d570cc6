/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pipeline.h: bytes go in, closed slots and the history come out. One object holds everything behind
 * the ring, without clock, file, thread or log call: the same records and watermarks give the same
 * result, which --replay and the tests rely on.
 */
#ifndef TTMON_PIPELINE_H
#define TTMON_PIPELINE_H

#include <ttmon/slot.h>

#include "daemon/core/cpu/cpu.h"
#include "daemon/core/stream/decode.h"
#include "daemon/core/history/history.h"
#include "daemon/core/know/know.h"
#include "daemon/core/know/seen.h"
#include "daemon/core/rmid/rmid.h"
#include "daemon/core/stream/slots.h"
#include "daemon/core/stream/timeline.h"
#include "daemon/core/usage/usage.h"

struct ttmon_pipeline;

struct ttmon_pipeline_cfg {
	uint32_t nr_cpus;
	struct ttmon_slots_cfg slots;
	struct ttmon_history_cfg history; /* its keep_all applies to the Tenstorrent parts too */
	struct ttmon_timeline_cfg timeline;
	struct ttmon_usage_cfg usage;
};

/* The accounting identity, counted in the daemon; attempted/lost come from the kernel's counters. */
struct ttmon_accounting {
	uint64_t decoded[TTMON_EV_MAX];		    /* by kind, facts too */
	uint64_t malformed[TTMON_DECODE_MAX];	    /* by reason: records of the rings */
	uint64_t malformed_facts[TTMON_DECODE_MAX]; /* by reason: records that claim to be facts */
	uint64_t slotted, late, arena_full;	    /* decoded kernel events = slotted + late + arena_full + direct */
	uint64_t direct;			    /* kinds that carry their own time (CPU_SLOT, RDT) */
	uint64_t facts;				    /* decoded facts: applied at once, in no slot */
	uint64_t closed, published, dropped;	    /* slots: closed = published + dropped */
	uint64_t forced;
};

/*
 * Called for each closed slot, with its rows. False: the hand-off queue was full; the slot is counted
 * as dropped. May be NULL (all slots count as published).
 */
typedef bool (*ttmon_slot_fn)(void *ctx, const struct ttmon_slot *slot, const struct ttmon_slot_row *rows, size_t n);

int ttmon_pipeline_new(const struct ttmon_pipeline_cfg *cfg, ttmon_slot_fn publish, void *ctx,
		       struct ttmon_pipeline **ret) _must_check;
void ttmon_pipeline_free(struct ttmon_pipeline *p);

/* Feeds one record from a ring, a fact, or a recording. Invalid ones are counted. */
void ttmon_pipeline_feed(struct ttmon_pipeline *p, const void *rec, size_t size);
/* No event older than watermark_ns will come: closes the slots before it. */
void ttmon_pipeline_advance(struct ttmon_pipeline *p, uint64_t watermark_ns);
/* The end: closes all slots and resolves all that waits. end_ns: the last watermark. */
void ttmon_pipeline_finish(struct ttmon_pipeline *p, uint64_t end_ns);

/* What was not seen. */
const struct ttmon_know *ttmon_pipeline_know(const struct ttmon_pipeline *p);
/*
 * The same for the whole host, by family: since when all events are seen, and for how long they were
 * not.
 */
void ttmon_pipeline_seen(const struct ttmon_pipeline *p, struct ttmon_seen_view *ret);
struct ttmon_history *ttmon_pipeline_history(struct ttmon_pipeline *p);
struct ttmon_tt *ttmon_pipeline_tt(struct ttmon_pipeline *p);
struct ttmon_dispatch *ttmon_pipeline_dispatch(struct ttmon_pipeline *p);
struct ttmon_cpu *ttmon_pipeline_cpu(struct ttmon_pipeline *p);
struct ttmon_rmid *ttmon_pipeline_rmid(struct ttmon_pipeline *p);
struct ttmon_timeline *ttmon_pipeline_timeline(struct ttmon_pipeline *p);
struct ttmon_usage *ttmon_pipeline_usage(struct ttmon_pipeline *p);
/* True if anything of a Tenstorrent program or chip was seen. */
bool ttmon_pipeline_has_tt(const struct ttmon_pipeline *p);
void ttmon_pipeline_accounting(const struct ttmon_pipeline *p, struct ttmon_accounting *ret);
/* The kernel's counters as reported by LOST facts, summed over CPUs. */
struct ttmon_kernel_counts {
	uint64_t attempted[TTMON_EV_FACT], lost[TTMON_EV_FACT], reason[TTMON_LOSS_MAX], nested;
	bool known;
};
/*
 * Why the result is not complete, as bits (1 << enum ttmon_incomplete); 0: nothing that matters can
 * have been missed. cut: the trace is still running.
 */
uint32_t ttmon_pipeline_incomplete(const struct ttmon_pipeline *p, bool cut);
void ttmon_pipeline_kernel_counts(const struct ttmon_pipeline *p, struct ttmon_kernel_counts *ret);
/*
 * Checks attempted == decoded + malformed + lost and the rest. False: why (size n) gets a line of text
 * on the first check that fails. Only meaningful when the rings are empty.
 */
bool ttmon_pipeline_check(const struct ttmon_pipeline *p, char *why, size_t n);

#endif
