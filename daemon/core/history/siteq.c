// SPDX-License-Identifier: GPL-2.0-only
/*
 * siteq.c: the queue through which allocations and their ends enter the sums of their call sites. Part
 * of the history (hot thread, pure).
 *
 * A return address can be resolved only when the facts about the process's mappings are in, some
 * milliseconds after the event. So all site work goes through one queue, in event order, and is done
 * when it has settled: 50 ms later, or up to 2 s where a frame is in no known mapping yet. Ordinals,
 * peaks and the order of sites therefore depend on the stream alone, never on when they are read.
 */
#include "daemon/core/history/history_int.h"

#define SETTLE_NS     50000000ULL
#define SETTLE_MAX_NS 2000000000ULL

static void push(struct ttmon_history *h, struct ttmon_alloc *a, const struct ttmon_site_op *op, uint8_t flag)
{
	if (ttmon_fifo_push(&h->siteq, op) < 0) {
		ttmon_history_no_memory(h);
		return;
	}
	a->bits |= flag;
	h->procs[op->proc]->queued++;
}

static void take(struct ttmon_xfer *x, uint64_t copies, uint64_t bytes)
{
	x->copies -= MIN(x->copies, copies);
	x->bytes -= MIN(x->bytes, bytes);
}

void ttmon_siteq_alloc(struct ttmon_history *h, struct ttmon_alloc *a, const struct ttmon_taken *taken)
{
	struct ttmon_site_op op = { .ts_ns = a->alloc_ns, .seq = ttmon_alloc_seq(a), .proc = a->proc, .taken = *taken };

	push(h, a, &op, TTMON_AL_SITE_QUEUED);
}

/*
 * A mapping is made without a probed call: its call site is that of the first copy from it. Its
 * transfers until then counted for the unknown site.
 */
void ttmon_siteq_name(struct ttmon_history *h, struct ttmon_alloc *a, uint16_t fn, const struct ttmon_taken *taken,
		      uint64_t ts_ns)
{
	struct ttmon_site_op op = { .ts_ns = ts_ns, .seq = ttmon_alloc_seq(a), .proc = a->proc, .taken = *taken };
	struct ttmon_site *unknown = &h->sites.v[0];
	enum ttmon_mem mem = ttmon_rec_mem(a);

	a->fn = fn;
	take(&unknown->h2d[mem], a->traffic->copies[TTMON_RDIR_H2D], a->traffic->bytes[TTMON_RDIR_H2D]);
	take(&unknown->d2h[mem], a->traffic->copies[TTMON_RDIR_D2H], a->traffic->bytes[TTMON_RDIR_D2H]);
	push(h, a, &op, TTMON_AL_SITE_QUEUED);
}

/* dst takes the place of src, which becomes part of it. */
void ttmon_siteq_inherit(struct ttmon_history *h, struct ttmon_alloc *dst, struct ttmon_alloc *src)
{
	if (!src->fn || dst->fn)
		return;
	dst->fn = src->fn;
	src->fn = 0;
	if (src->bits & TTMON_AL_SITE_QUEUED) {
		for (size_t i = 0; i < h->siteq.n; i++) {
			struct ttmon_site_op *op = ttmon_fifo_at(&h->siteq, i);

			if (op->seq == ttmon_alloc_seq(src))
				op->seq = ttmon_alloc_seq(dst);
		}
		src->bits &= (uint8_t)~TTMON_AL_SITE_QUEUED;
		dst->bits |= TTMON_AL_SITE_QUEUED;
	} else {
		dst->site = src->site;
		dst->ordinal = src->ordinal;
		src->site = 0;
	}
}

/* A mapping without a copy has no site. */
void ttmon_siteq_ended(struct ttmon_history *h, struct ttmon_alloc *a)
{
	struct ttmon_site_op op = { .ts_ns = a->free_ns, .seq = ttmon_alloc_seq(a), .proc = a->proc, .end = true };

	if (a->method != TTMON_METHOD_MMAP || a->fn)
		push(h, a, &op, TTMON_AL_FREE_QUEUED);
}

static int resolve(struct ttmon_history *h, struct ttmon_site_op *op, bool final, bool wait, uint32_t *site)
{
	struct ttmon_hproc *p = h->procs[op->proc];
	struct ttmon_site_query q = {
		.stacks = &p->stacks,
		.maps = &p->maps,
		.ts_ns = op->ts_ns,
		.execs = p->execs,
		.nr_execs = p->nr_execs,
		.final = final,
		.as_before = !wait,
		.refuse = h->users[p->user].sites >= TTMON_SITES_MAX / 4,
	};
	uint32_t before = h->sites.n;
	int err;

	if (ttmon_unwound_take(h, p, &op->taken, final))
		return -EAGAIN;
	q.stack = op->taken.stack;
	if (q.stack == TTMON_STACK_NONE)
		return 0;
	/* Mappings that ended long before this allocation are of no use to later ones either. */
	if (op->ts_ns > SETTLE_MAX_NS)
		ttmon_maps_prune(&p->maps, op->ts_ns - SETTLE_MAX_NS);
	err = ttmon_sites_resolve(&h->sites, &h->symtab, &q, site);
	h->users[p->user].sites += h->sites.n - before;
	if (err == -ENOMEM)
		ttmon_history_no_memory(h);
	else if (err == -ENOSPC)
		h->totals.incomplete = true;
	else if (err == -EDQUOT)
		ttmon_users_paid(h, p, TTMON_QUOTA_NAMES, 1);
	return err == -EAGAIN ? err : 0;
}

/* Frames found in several ways count as found in the best of these ways. */
static void say_how(struct ttmon_site *s, const struct ttmon_taken *t)
{
	static const uint8_t worth[TTMON_STACK_BY_MAX] = {
		[TTMON_STACK_BY_FRAMES] = 4,  [TTMON_STACK_BY_TABLES] = 4,    [TTMON_STACK_BY_NOT_SAID] = 3,
		[TTMON_STACK_BY_GUESSED] = 2, [TTMON_STACK_BY_NO_PYTHON] = 2, [TTMON_STACK_BY_UNCHECKED] = 1,
	};

	if (s->allocs && worth[t->by] <= worth[s->by])
		return;
	s->by = t->by;
	s->end = t->end;
	s->end_object = t->end_object;
}

static void count_alloc(struct ttmon_history *h, struct ttmon_alloc *a, uint32_t site, const struct ttmon_taken *taken)
{
	struct ttmon_site *s = &h->sites.v[site];
	enum ttmon_mem mem = ttmon_rec_mem(a);

	if (site)
		say_how(s, taken);

	a->site = site;
	a->ordinal = ttmon_rec_ordinal(h, h->procs[a->proc], site, a->size);
	s->min_size = s->allocs ? MIN(s->min_size, a->size) : a->size;
	s->max_size = MAX(s->max_size, a->size);
	s->allocs++;
	s->bytes += a->size;
	s->live++;
	s->live_bytes += a->size;
	s->peak_live = MAX(s->peak_live, s->live);
	s->peak_bytes = MAX(s->peak_bytes, s->live_bytes);
	s->pin_ns += a->pin_ns;
	s->method_mask |= 1u << a->method;
	s->h2d[mem].copies += a->traffic->copies[TTMON_RDIR_H2D];
	s->h2d[mem].bytes += a->traffic->bytes[TTMON_RDIR_H2D];
	s->d2h[mem].copies += a->traffic->copies[TTMON_RDIR_D2H];
	s->d2h[mem].bytes += a->traffic->bytes[TTMON_RDIR_D2H];
	a->bits &= (uint8_t)~TTMON_AL_SITE_QUEUED;
}

static void count_end(struct ttmon_history *h, struct ttmon_alloc *a)
{
	struct ttmon_site *s = &h->sites.v[a->site];

	/* Where memory ran out, its beginning may never have been counted. */
	s->live -= s->live != 0;
	s->live_bytes -= MIN(s->live_bytes, a->size);
	s->pin_ns += a->unpin_ns;
	a->bits &= (uint8_t)~TTMON_AL_FREE_QUEUED;
}

/*
 * Does the first operation. final: a frame in no known mapping is left out of its site; otherwise the
 * operation waits (false), or without `wait` its site stays unknown.
 */
static bool step(struct ttmon_history *h, bool final, bool wait)
{
	struct ttmon_site_op *op = ttmon_fifo_at(&h->siteq, 0);
	struct ttmon_alloc *a = ttmon_rec_by_seq(h, op->seq);
	uint32_t site = 0;

	if (a && !op->end) {
		if (resolve(h, op, final, wait, &site) == -EAGAIN && wait)
			return false;
		count_alloc(h, a, site, &op->taken);
	} else if (a) {
		count_end(h, a);
	}
	h->procs[op->proc]->queued--;
	ttmon_fifo_pop(&h->siteq);
	return true;
}

uint64_t ttmon_siteq_run(struct ttmon_history *h, bool all)
{
	const struct ttmon_site_op *op;

	while ((op = ttmon_fifo_front(&h->siteq))) {
		uint64_t age = h->now_ns > op->ts_ns ? h->now_ns - op->ts_ns : 0;

		if (!all && age < SETTLE_NS)
			return ttmon_end_of(op->ts_ns, SETTLE_NS);
		if (!step(h, all || age >= SETTLE_MAX_NS, true))
			return h->now_ns;
	}
	return UINT64_MAX;
}

/* For operations younger than SETTLE_NS the facts about mappings may still be on the way. */
void ttmon_history_settle(struct ttmon_history *h)
{
	const struct ttmon_site_op *op;

	while ((op = ttmon_fifo_front(&h->siteq)))
		step(h, h->now_ns > op->ts_ns && h->now_ns - op->ts_ns >= SETTLE_NS, false);
	(void)ttmon_waits_run(h, true);
}

/*
 * Operations before it in the queue must not be finished before they have settled: they may be another
 * user's.
 */
void ttmon_siteq_unresolved(struct ttmon_history *h, struct ttmon_alloc *a)
{
	if (a->bits & TTMON_AL_SITE_QUEUED)
		count_alloc(h, a, 0, NULL);
	if (a->bits & TTMON_AL_FREE_QUEUED)
		count_end(h, a);
}

/* Its site must have it in its sums before it goes. */
void ttmon_siteq_folded(struct ttmon_history *h, struct ttmon_alloc *a)
{
	ttmon_siteq_unresolved(h, a);
	h->sites.v[a->site].folded++;
}
