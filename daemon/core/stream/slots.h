/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * slots.h: events of all CPUs, in time order, one millisecond at a time.
 *
 * Runs in the hot thread. Knows nothing of clocks, rings or what an event means. Memory is bounded:
 * the window and the arena are allocated once. Times and slot numbers are compared by signed
 * difference (they may wrap).
 *
 *   time -->   | retired ...      | oldest open | ... window ... | newest
 *                                 ^ watermark: no event before this will come any more
 */
#ifndef TTMON_SLOTS_H
#define TTMON_SLOTS_H

#include <ttmon/event.h>

#include "lib/base/util.h"

#define TTMON_SLOT_NS 1000000ULL
/* A drain was once 18.6 ms late, and an unsubmitted record may hold the watermark back for 50 ms. */
#define TTMON_SLOTS_WINDOW 64

struct ttmon_slots;

struct ttmon_slots_cfg {
	uint32_t window;      /* open slots at most, 2..4096; 0: TTMON_SLOTS_WINDOW */
	uint64_t arena_bytes; /* memory for the events of open slots; 0: 16 MiB. Touched only as needed */
};

/* A closed slot, valid during the callback. It covers [no * 1 ms, (no + 1) * 1 ms). */
struct ttmon_slot_view {
	uint64_t no;
	uint32_t events;
	uint32_t late; /* of these, late ones added to this slot: their ts_ns is before it */
	uint32_t lost; /* events of this slot that were dropped because the arena was full */
	bool forced;   /* closed because the window moved on before the watermark had passed the slot */
};

struct ttmon_slots_ops {
	/*
	 * Called for every event of a closing slot, in order of (ts_ns, cpu, arrival). late: the event is
	 * older than the slot.
	 */
	void (*event)(void *ctx, const struct ttmon_event *ev, size_t size, bool late);
	/* Called a few events before, for an owner that reads ahead; may be NULL, or left out for some. */
	void (*ahead)(void *ctx, const struct ttmon_event *ev);
	/* Called once per slot, after its events; for empty slots too, none is skipped. */
	void (*close)(void *ctx, const struct ttmon_slot_view *slot);
};

struct ttmon_slots_stats {
	uint64_t slotted;    /* added to their own slot */
	uint64_t late;	     /* added to the oldest open slot instead of their own, which had closed */
	uint64_t arena_full; /* dropped */
	uint64_t closed;     /* slots */
	uint64_t forced;
	uint64_t sorted; /* slots that needed more than insertion sort */
};

int ttmon_slots_new(const struct ttmon_slots_cfg *cfg, const struct ttmon_slots_ops *ops, void *ctx,
		    struct ttmon_slots **ret) _must_check;
void ttmon_slots_free(struct ttmon_slots *s);

/*
 * Copies one record in. The first record (or the first advance) fixes where the window begins. Never
 * fails: a record that does not fit is counted.
 */
void ttmon_slots_add(struct ttmon_slots *s, const struct ttmon_event *ev, size_t size);
/*
 * No event before watermark_ns will come: closes every slot that ends at or before it. Never moves
 * back. A gap of more slots than the window (suspend, a quiet start) is closed slot by slot up to 4096
 * empty slots; beyond that the window jumps.
 */
void ttmon_slots_advance(struct ttmon_slots *s, uint64_t watermark_ns);
/* End of the stream: closes all slots. */
void ttmon_slots_finish(struct ttmon_slots *s);
/*
 * First time past the window: adding an event at or after it forces the oldest slot closed. 0 before
 * the window is fixed.
 */
uint64_t ttmon_slots_limit_ns(const struct ttmon_slots *s);
void ttmon_slots_get_stats(const struct ttmon_slots *s, struct ttmon_slots_stats *ret);

#endif
