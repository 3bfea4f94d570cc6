// SPDX-License-Identifier: GPL-2.0-only
/*
 * period_view.c: see period_view.h. Groups are those of core/history/advice.c, for one process and its
 * remaining allocations.
 */
#include "daemon/core/history/period_view.h"
#include "lib/base/grow.h"

#include "daemon/core/history/history_int.h"

/* How long a service keeps freed allocations, where no kept one gives a better figure. */

struct build {
	const struct ttmon_history *h;
	struct ttmon_period_view v;
	struct ttmon_period_ends ends;
	struct ttmon_periods *sums;
	struct ttmon_hmap by_key;
	uint32_t proc, cap;
};

static bool is_host(const struct ttmon_alloc *a)
{
	if (a->method == TTMON_METHOD_MMAP)
		return a->end != TTMON_END_MERGED && a->traffic->nr_events;
	if (ttmon_rec_backing(a))
		return false;
	return ttmon_method_pinned(a->method) || a->method == TTMON_METHOD_MANAGED || a->method == TTMON_METHOD_CUSTOM;
}

/* Mappings without a copy are grouped by the name of what is mapped, or each by itself. */
static bool same_group(const struct ttmon_period_spot *s, const struct ttmon_alloc *a)
{
	if (s->site != a->site || s->method != a->method)
		return false;
	if (a->site || a->method != TTMON_METHOD_MMAP)
		return true;
	return a->name && s->name && !strcmp(s->name, a->name);
}

static uint64_t key_of(const struct ttmon_alloc *a)
{
	uint64_t key = ttmon_mix64((uint64_t)a->site << 8 | a->method);

	if (!a->site && a->method == TTMON_METHOD_MMAP && !a->name)
		key ^= ttmon_mix64(ttmon_alloc_seq(a) + 1);
	return key;
}

static int find_group(struct build *b, const struct ttmon_alloc *a, uint32_t *ret)
{
	struct ttmon_period_view *v = &b->v;
	uint64_t key = key_of(a), at;

	for (; (at = ttmon_hmap_get(&b->by_key, key)) != TTMON_HMAP_NONE; key++) {
		if (same_group(&v->spots[at], a)) {
			*ret = (uint32_t)at;
			return 0;
		}
	}
	if (TTMON_GROW(v->spots, b->cap, v->n + 1, 64))
		return -ENOMEM;
	if (ttmon_hmap_put(&b->by_key, key, v->n) < 0)
		return -ENOMEM;
	v->spots[v->n] = (struct ttmon_period_spot){
		.site = a->site, .method = a->method, .alloc_seq = ttmon_alloc_seq(a), .name = a->name
	};
	*ret = v->n++;
	return 0;
}

static int add_events(struct build *b, const struct ttmon_alloc *a)
{
	struct ttmon_aev ev = { 0 };
	uint32_t pos = 0;
	bool any = false;

	while (ttmon_history_event(a, &pos, &ev)) {
		int err;

		/* With older events missing, the period is still whole if it began after the first event left. */
		if (!any && a->traffic->events_dropped && ev.ts_ns > b->v.from_ns)
			b->v.whole = false;
		any = true;
		if (ev.kind != TTMON_AEV_H2D && ev.kind != TTMON_AEV_D2H)
			continue;
		err = ttmon_periods_add(b->sums, ttmon_period_at(&b->ends, b->proc, ev.ts_ns), ev.kind == TTMON_AEV_H2D,
					ev.bytes);
		if (err)
			return err;
	}
	return 0;
}

static int add_alloc(struct build *b, const struct ttmon_alloc *a)
{
	struct ttmon_period_spot *s;
	uint32_t group = 0;
	int err;

	if (a->proc != b->proc || !is_host(a))
		return 0;
	err = find_group(b, a, &group);
	if (err)
		return err;
	s = &b->v.spots[group];
	s->in_place |= ttmon_advice_in_place(a);
	if (a->alloc_ns < b->v.to_ns && (a->end == TTMON_END_LIVE || a->free_ns > b->v.from_ns)) {
		s->allocs++;
		s->size = MAX(s->size, a->size);
		s->bytes += a->size;
	}
	ttmon_periods_alloc(b->sums, group, a->size);
	return add_events(b, a);
}

static int find_period(struct build *b, const struct ttmon_period_query *q, uint64_t now_ns)
{
	const struct ttmon_proc *p = ttmon_history_proc(b->h, q->proc);
	struct ttmon_period_view *v = &b->v;
	const uint64_t *ts = b->ends.ts + b->ends.from[q->proc];
	int64_t at;

	v->label = b->ends.label[q->proc];
	v->of = ttmon_period_count(&b->ends, q->proc);
	at = q->period < 0 ? (int64_t)v->of + q->period : q->period;
	if (!v->of || at < 0 || at > v->of)
		return -ENOENT;
	v->period = (uint32_t)at;
	v->from_ns = at ? ts[at - 1] : p->first_ns;
	v->to_ns = at < v->of ? ts[at] : p->exit_ns ? p->exit_ns : now_ns;
	/* If checkpoints were dropped, the first period is unknown. */
	v->whole = at || !v->dropped;
	return 0;
}

static int fill(struct build *b)
{
	_cleanup_free_ struct ttmon_period_ask *ask = malloc((b->v.n + 1) * sizeof(*ask));
	_cleanup_free_ struct ttmon_period_row *rows = malloc((b->v.n + 1) * sizeof(*rows));
	const struct ttmon_history_cfg *cfg = &b->h->cfg;
	int err;

	if (!ask || !rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->v.n; i++)
		ask[i] = (struct ttmon_period_ask){ .of = b->v.of, .shown = b->v.period };
	err = ttmon_periods_rows(b->sums, ask, b->v.n, rows);
	for (uint32_t i = 0; !err && i < b->v.n; i++) {
		struct ttmon_period_spot *s = &b->v.spots[i];

		s->row = rows[i];
		ttmon_period_get_gain(&s->row, cfg->pageable_bps, cfg->pinned_bps, cfg->pinning_bps, &s->gain);
		if (b->v.dropped && s->row.when == TTMON_WHEN_START)
			s->row.when = TTMON_WHEN_SOMETIMES;
		s->advice = (uint8_t)ttmon_period_advice(&s->row, &s->gain, s->method, s->in_place);
	}
	return err;
}

static int build(struct build *b, const struct ttmon_period_query *q, uint64_t now_ns)
{
	const struct ttmon_period_end *c;
	size_t n = ttmon_history_checkpoints(b->h, &c), used = 0;
	_cleanup_free_ struct ttmon_period_mark *marks = malloc((n + 1) * sizeof(*marks));
	uint64_t seq;
	int err;

	if (!marks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (c[i].proc == q->proc)
			marks[used++] = (struct ttmon_period_mark){ c[i].ts_ns, c[i].proc, c[i].label };
	b->v.dropped = ttmon_history_proc(b->h, q->proc)->checkpoints - used;
	err = ttmon_period_ends_init(&b->ends, marks, used, q->label, (uint32_t)ttmon_history_procs(b->h));
	if (!err)
		err = find_period(b, q, now_ns);
	if (!err)
		err = ttmon_periods_new(&b->sums);
	for (seq = ttmon_history_next(b->h, 0); !err && seq < ttmon_history_allocs(b->h);
	     seq = ttmon_history_next(b->h, seq + 1))
		err = add_alloc(b, ttmon_history_alloc(b->h, seq));
	if (err)
		return err;
	/* Allocations are folded in the order they ended. */
	if (b->h->totals.incomplete || b->v.from_ns < ttmon_history_proc(b->h, q->proc)->folded_to_ns)
		b->v.whole = false;
	return fill(b);
}

int ttmon_history_period(const struct ttmon_history *h, const struct ttmon_period_query *q, uint64_t now_ns,
			 struct ttmon_period_view *ret)
{
	struct build b = { .h = h, .proc = q->proc };
	int err = build(&b, q, now_ns);

	ttmon_period_ends_fini(&b.ends);
	ttmon_periods_free(b.sums);
	ttmon_hmap_fini(&b.by_key);
	if (err)
		ttmon_period_view_fini(&b.v);
	else
		*ret = b.v;
	return err;
}

void ttmon_period_view_fini(struct ttmon_period_view *v)
{
	free(v->spots);
	*v = (struct ttmon_period_view){ 0 };
}
