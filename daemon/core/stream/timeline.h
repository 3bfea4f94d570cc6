/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * timeline.h: the dispatches and device runs that are kept one by one, for the trace file, /v1/trace
 * and the database; who had which device do how much in each slot, for the database alone; and the
 * calls (who called what from when to when), for the trace file alone. Hot thread, pure. Fixed memory:
 * past max items of a sort the oldest goes (ring = true, a service) or what comes is not kept
 * (counted).
 */
#ifndef TTMON_TIMELINE_H
#define TTMON_TIMELINE_H

#include "daemon/core/dispatch/dispatch.h"

#define TTMON_TIMELINE_RUN 1000000 /* max_items of a run that ends with a file, unless told otherwise */
/*
 * max_runs of a service: 2.6 seconds of 100,000 runs a second, for who follows them
 * (daemon/api/programs.c)
 */
#define TTMON_TIMELINE_FOLLOWED 262144

struct ttmon_timeline;

struct ttmon_timeline_cfg {
	uint64_t max_items; /* of each sort; 0: 65,536 */
	uint64_t max_runs;  /* of device runs; 0: max_items */
	bool ring;
};

int ttmon_timeline_new(const struct ttmon_timeline_cfg *cfg, struct ttmon_timeline **ret) _must_check;
void ttmon_timeline_free(struct ttmon_timeline *t);
void ttmon_timeline_run(struct ttmon_timeline *t, const struct ttmon_tt_run *run);
void ttmon_timeline_dispatched(struct ttmon_timeline *t, const struct ttmon_tt_dispatched *d);
void ttmon_timeline_slot(struct ttmon_timeline *t, const struct ttmon_tt_slot_row *row);

/* In the order they were told. Valid until the next call above. */
size_t ttmon_timeline_runs(const struct ttmon_timeline *t);
const struct ttmon_tt_run *ttmon_timeline_get_run(const struct ttmon_timeline *t, size_t i);
/*
 * Runs are numbered from 1 in the order they were told, those that are not kept too: first and
 * next, that of the one to come.
 */
void ttmon_timeline_run_numbers(const struct ttmon_timeline *t, uint64_t *first, uint64_t *next);
/* The run of this number, or the oldest kept after it, with its number. NULL: none. */
const struct ttmon_tt_run *ttmon_timeline_run_from(const struct ttmon_timeline *t, uint64_t *seq);
size_t ttmon_timeline_dispatches(const struct ttmon_timeline *t);
const struct ttmon_tt_dispatched *ttmon_timeline_get_dispatched(const struct ttmon_timeline *t, size_t i);
/* Runs and dispatches not kept. */
uint64_t ttmon_timeline_dropped(const struct ttmon_timeline *t);
size_t ttmon_timeline_slots(const struct ttmon_timeline *t);
const struct ttmon_tt_slot_row *ttmon_timeline_get_slot(const struct ttmon_timeline *t, size_t i);
uint64_t ttmon_timeline_slots_dropped(const struct ttmon_timeline *t);

/* An allocation, a free or a copy: what the history does not keep is who called and for how long. */
struct ttmon_timeline_call {
	uint32_t tgid, tid;
	uint64_t entry_ns, end_ns; /* equal: its end was not observed */
	uint64_t bytes;		   /* 0: a free */
	int32_t err;
	uint16_t fn, bits; /* TTMON_B_* */
	uint8_t kind;	   /* TTMON_EV_ALLOC, _FREE, _COPY */
	uint8_t dir;	   /* enum ttmon_dir, as the call says */
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
