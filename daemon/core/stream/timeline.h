/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * timeline.h: dispatches and device runs that are kept one by one, for the trace file, /v1/trace and
 * the database; the device work of each process in each slot, for the database only; and the calls
 * (process, function, begin, end), for the trace file only. Hot thread, pure. Fixed memory: past max
 * items of a kind the oldest is dropped (ring = true, a service), or new items are not kept and are
 * counted.
 */
#ifndef TTMON_TIMELINE_H
#define TTMON_TIMELINE_H

#include "daemon/core/dispatch/dispatch.h"

#define TTMON_TIMELINE_RUN 1000000 /* max_items of a run that ends with a file, unless another number is given */
/*
 * max_runs of a service: 2.6 seconds at 100,000 runs a second, for clients that follow them
 * (daemon/api/programs.c)
 */
#define TTMON_TIMELINE_FOLLOWED 262144

struct ttmon_timeline;

struct ttmon_timeline_cfg {
	uint64_t max_items; /* of each kind; 0: 65,536 */
	uint64_t max_runs;  /* of device runs; 0: max_items */
	bool ring;
};

int ttmon_timeline_new(const struct ttmon_timeline_cfg *cfg, struct ttmon_timeline **ret) _must_check;
void ttmon_timeline_free(struct ttmon_timeline *t);
void ttmon_timeline_run(struct ttmon_timeline *t, const struct ttmon_tt_run *run);
void ttmon_timeline_dispatched(struct ttmon_timeline *t, const struct ttmon_tt_dispatched *d);
void ttmon_timeline_slot(struct ttmon_timeline *t, const struct ttmon_tt_slot_row *row);

/* In order of arrival. Valid until the next call of a function above. */
size_t ttmon_timeline_runs(const struct ttmon_timeline *t);
const struct ttmon_tt_run *ttmon_timeline_get_run(const struct ttmon_timeline *t, size_t i);
/*
 * Runs are numbered from 1 in order of arrival, including those that are not kept: first is the number
 * of the oldest kept run, next the number that the next run gets.
 */
void ttmon_timeline_run_numbers(const struct ttmon_timeline *t, uint64_t *first, uint64_t *next);
/* The run with this number, or the oldest kept run after it, with its number in *seq. NULL: none. */
const struct ttmon_tt_run *ttmon_timeline_run_from(const struct ttmon_timeline *t, uint64_t *seq);
size_t ttmon_timeline_dispatches(const struct ttmon_timeline *t);
const struct ttmon_tt_dispatched *ttmon_timeline_get_dispatched(const struct ttmon_timeline *t, size_t i);
/* Number of runs and dispatches that were not kept. */
uint64_t ttmon_timeline_dropped(const struct ttmon_timeline *t);
size_t ttmon_timeline_slots(const struct ttmon_timeline *t);
const struct ttmon_tt_slot_row *ttmon_timeline_get_slot(const struct ttmon_timeline *t, size_t i);
uint64_t ttmon_timeline_slots_dropped(const struct ttmon_timeline *t);

/*
 * An allocation, a free or a copy: the history does not keep the thread and the duration of each call.
 */
struct ttmon_timeline_call {
	uint32_t tgid, tid;
	uint64_t entry_ns, end_ns; /* equal: the end was not observed */
	uint64_t bytes;		   /* 0 for a free */
	int32_t err;
	uint16_t fn, bits; /* TTMON_B_* */
	uint8_t kind;	   /* TTMON_EV_ALLOC, _FREE, _COPY */
	uint8_t dir;	   /* enum ttmon_dir as passed by the call */
};
/* ttmon_timeline_on_NAME(t, ev): a checked record, in slot order. */
#define X(id, NAME, name, type, way, family, check, stream, timeline, ...) \
	TTMON_IF_##timeline(void ttmon_timeline_on_##name(struct ttmon_timeline *t, const struct type *ev);)
TTMON_EVENT_TABLE(X)
#undef X
size_t ttmon_timeline_calls(const struct ttmon_timeline *t);
const struct ttmon_timeline_call *ttmon_timeline_get_call(const struct ttmon_timeline *t, size_t i);
uint64_t ttmon_timeline_calls_dropped(const struct ttmon_timeline *t);

#endif
