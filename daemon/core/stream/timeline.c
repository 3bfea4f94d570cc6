// SPDX-License-Identifier: GPL-2.0-only
/*
 * timeline.c: four lists of fixed length. A list grows by doubling up to max_items, so that a run that
 * dispatches nothing pays for nothing. In a full ring a new item replaces the oldest.
 */
#include "daemon/core/stream/timeline.h"

#define ITEMS_DEFAULT 65536u
#define ITEMS_FIRST   256u

struct list {
	void *v;
	size_t n, cap, max, elem; /* elem: bytes of an item */
	size_t head;		  /* index of the oldest; 0 unless n == cap */
	uint64_t dropped;
};

struct ttmon_timeline {
	bool ring;
	struct list runs, dispatched, slots, calls;
};

int ttmon_timeline_new(const struct ttmon_timeline_cfg *cfg, struct ttmon_timeline **ret)
{
	uint64_t max = cfg->max_items ? cfg->max_items : ITEMS_DEFAULT;
	uint64_t max_runs = cfg->max_runs ? cfg->max_runs : max;
	struct ttmon_timeline *t;

	/* Ensures that no product below can overflow. */
	if (MAX(max, max_runs) > SIZE_MAX / 2 / sizeof(struct ttmon_tt_run))
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->ring = cfg->ring;
	t->runs = (struct list){ .elem = sizeof(struct ttmon_tt_run), .max = (size_t)max_runs };
	t->dispatched = (struct list){ .elem = sizeof(struct ttmon_tt_dispatched), .max = (size_t)max };
	t->slots = (struct list){ .elem = sizeof(struct ttmon_tt_slot_row), .max = (size_t)max };
	t->calls = (struct list){ .elem = sizeof(struct ttmon_timeline_call), .max = (size_t)max };
	*ret = t;
	return 0;
}

void ttmon_timeline_free(struct ttmon_timeline *t)
{
	if (!t)
		return;
	free(t->runs.v);
	free(t->dispatched.v);
	free(t->slots.v);
	free(t->calls.v);
	free(t);
}

static bool grow(struct list *l)
{
	size_t cap = MIN(MAX(l->cap * 2, (size_t)ITEMS_FIRST), l->max);
	void *v = cap > l->cap ? realloc(l->v, cap * l->elem) : NULL;

	if (!v)
		return false;
	l->v = v;
	l->cap = cap;
	return true;
}

static void keep(const struct ttmon_timeline *t, struct list *l, const void *item)
{
	size_t at = l->n;

	/* A ring that has wrapped no longer grows: its oldest item is in the middle. */
	if (l->n == l->cap && (l->head || !grow(l))) {
		l->dropped++;
		if (!t->ring || !l->cap)
			return;
		at = l->head;
		l->head = (l->head + 1) % l->cap;
	} else {
		l->n++;
	}
	memcpy((char *)l->v + at * l->elem, item, l->elem);
}

static const void *get(const struct list *l, size_t i)
{
	size_t at = l->head + i;

	return i < l->n ? (const char *)l->v + (at < l->cap ? at : at - l->cap) * l->elem : NULL;
}

void ttmon_timeline_run(struct ttmon_timeline *t, const struct ttmon_tt_run *run)
{
	keep(t, &t->runs, run);
}

void ttmon_timeline_dispatched(struct ttmon_timeline *t, const struct ttmon_tt_dispatched *d)
{
	keep(t, &t->dispatched, d);
}

void ttmon_timeline_slot(struct ttmon_timeline *t, const struct ttmon_tt_slot_row *row)
{
	keep(t, &t->slots, row);
}

/* The product saturates: the sizes come from the program and may be anything. */
static uint64_t rect_bytes(const struct ttmon_ev_copy_rect *ev)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(ev->width, ev->rows, &bytes) || __builtin_mul_overflow(bytes, ev->slices, &bytes))
		return UINT64_MAX;
	return bytes;
}

/* The members that ALLOC, FREE, COPY and COPY_RECT share. */
#define KEEP_CALL(t, k, e, ...)                                        \
	keep(t, &(t)->calls,                                           \
	     &(struct ttmon_timeline_call){ .tgid = (e)->h.tgid,       \
					    .tid = (e)->h.tid,         \
					    .entry_ns = (e)->entry_ns, \
					    .end_ns = (e)->h.ts_ns,    \
					    .kind = (k),               \
					    .err = (e)->err,           \
					    .fn = (e)->fn,             \
					    .bits = (e)->bits,         \
					    __VA_ARGS__ })

void ttmon_timeline_on_alloc(struct ttmon_timeline *t, const struct ttmon_ev_alloc *ev)
{
	KEEP_CALL(t, TTMON_EV_ALLOC, ev, .bytes = ev->size);
}

void ttmon_timeline_on_free(struct ttmon_timeline *t, const struct ttmon_ev_free *ev)
{
	KEEP_CALL(t, TTMON_EV_FREE, ev, .bytes = 0);
}

void ttmon_timeline_on_copy(struct ttmon_timeline *t, const struct ttmon_ev_copy *ev)
{
	KEEP_CALL(t, TTMON_EV_COPY, ev, .bytes = ev->bytes, .dir = ev->dir);
}

void ttmon_timeline_on_copy_rect(struct ttmon_timeline *t, const struct ttmon_ev_copy_rect *ev)
{
	KEEP_CALL(t, TTMON_EV_COPY, ev, .bytes = rect_bytes(ev), .dir = ev->dir);
}

size_t ttmon_timeline_runs(const struct ttmon_timeline *t)
{
	return t->runs.n;
}

const struct ttmon_tt_run *ttmon_timeline_get_run(const struct ttmon_timeline *t, size_t i)
{
	return get(&t->runs, i);
}

void ttmon_timeline_run_numbers(const struct ttmon_timeline *t, uint64_t *first, uint64_t *next)
{
	*first = t->ring ? t->runs.dropped + 1 : 1;
	*next = t->runs.dropped + t->runs.n + 1;
}

const struct ttmon_tt_run *ttmon_timeline_run_from(const struct ttmon_timeline *t, uint64_t *seq)
{
	uint64_t first, next;

	ttmon_timeline_run_numbers(t, &first, &next);
	*seq = MAX(*seq, first);
	return get(&t->runs, (size_t)MIN(*seq - first, (uint64_t)t->runs.n));
}

size_t ttmon_timeline_dispatches(const struct ttmon_timeline *t)
{
	return t->dispatched.n;
}

const struct ttmon_tt_dispatched *ttmon_timeline_get_dispatched(const struct ttmon_timeline *t, size_t i)
{
	return get(&t->dispatched, i);
}

uint64_t ttmon_timeline_dropped(const struct ttmon_timeline *t)
{
	return t->runs.dropped + t->dispatched.dropped;
}

size_t ttmon_timeline_slots(const struct ttmon_timeline *t)
{
	return t->slots.n;
}

const struct ttmon_tt_slot_row *ttmon_timeline_get_slot(const struct ttmon_timeline *t, size_t i)
{
	return get(&t->slots, i);
}

uint64_t ttmon_timeline_slots_dropped(const struct ttmon_timeline *t)
{
	return t->slots.dropped;
}

size_t ttmon_timeline_calls(const struct ttmon_timeline *t)
{
	return t->calls.n;
}

const struct ttmon_timeline_call *ttmon_timeline_get_call(const struct ttmon_timeline *t, size_t i)
{
	return get(&t->calls, i);
}

uint64_t ttmon_timeline_calls_dropped(const struct ttmon_timeline *t)
{
	return t->calls.dropped;
}
