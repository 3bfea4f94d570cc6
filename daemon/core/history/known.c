// SPDX-License-Identifier: GPL-2.0-only
/*
 * known.c: whether the history's figures are known, a lower bound, or unknown, from the gaps in
 * core/know. Part of the history (hot thread, pure).
 *
 * Memory has a known kind only if no call about it can have been missed: memory older than the end of
 * the last gap for pins is of an unknown kind, and so is pinned memory older than the end of the last
 * gap for frees. This is decided when an event of the memory comes, and when a reader queries it.
 */
#include "daemon/core/history/history_int.h"

struct ttmon_unseen ttmon_rec_unseen(const struct ttmon_history *h, struct ttmon_hproc *p, uint64_t ts_ns)
{
	const struct ttmon_know *k = h->cfg.know;
	struct ttmon_unseen u = { 0 };
	uint64_t changes;

	if (!k)
		return u;
	changes = ttmon_know_changes(k) + 1;
	if (p->unseen_as_of == changes)
		return p->unseen;
	u.pins_to_ns = ttmon_know_unseen_to(k, TTMON_FAMILY_ALLOC, p->pub.tgid, ts_ns);
	u.frees_to_ns = ttmon_know_doubt_to(k, TTMON_FAMILY_ALLOC, p->pub.tgid, ts_ns);
	/* The answer is cached only if no later gap can change it. */
	if (u.pins_to_ns == ttmon_know_unseen_to(k, TTMON_FAMILY_ALLOC, p->pub.tgid, UINT64_MAX) &&
	    u.frees_to_ns == ttmon_know_doubt_to(k, TTMON_FAMILY_ALLOC, p->pub.tgid, UINT64_MAX)) {
		p->unseen_as_of = changes;
		p->unseen = u;
	}
	return u;
}

/* Moves its transfers so far to memory of unknown kind in the sums of its site. */
void ttmon_known_move_site(struct ttmon_history *h, const struct ttmon_alloc *a, enum ttmon_mem from, enum ttmon_mem to)
{
	struct ttmon_site *s = &h->sites.v[a->site];

	if (a->bits & TTMON_AL_SITE_QUEUED)
		return;
	for (unsigned int d = TTMON_RDIR_H2D; d <= TTMON_RDIR_D2H; d++) {
		struct ttmon_xfer *x = d == TTMON_RDIR_H2D ? s->h2d : s->d2h;
		uint64_t copies = MIN(x[from].copies, (uint64_t)a->traffic->copies[d]);
		uint64_t bytes = MIN(x[from].bytes, a->traffic->bytes[d]);

		x[from].copies -= copies;
		x[from].bytes -= bytes;
		x[to].copies += copies;
		x[to].bytes += bytes;
	}
}

/* Pageable memory may have been pinned, or pinned memory freed, by a call that was not seen. */
static bool in_doubt(const struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a, uint64_t ts_ns)
{
	enum ttmon_mem mem = ttmon_rec_mem(a);

	if (!h->cfg.know)
		return false;
	if (mem == TTMON_MEM_PAGEABLE)
		return a->alloc_ns < ttmon_rec_unseen(h, p, ts_ns).pins_to_ns;
	return mem == TTMON_MEM_PINNED && ttmon_method_pinned(a->method) && a->method != TTMON_METHOD_TT_DMA &&
	       a->alloc_ns < ttmon_rec_unseen(h, p, ts_ns).frees_to_ns;
}

void ttmon_rec_look(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_alloc *a, uint64_t ts_ns)
{
	enum ttmon_mem before = ttmon_rec_mem(a);

	if (!in_doubt(h, p, a, ts_ns))
		return;
	a->states |= TTMON_ST_UNSEEN;
	ttmon_known_move_site(h, a, before, TTMON_MEM_UNKNOWN);
}

void ttmon_rec_still_pinned(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_alloc *a)
{
	if (!(a->states & TTMON_ST_UNSEEN))
		return;
	a->states &= (uint8_t)~TTMON_ST_UNSEEN;
	ttmon_copies_prove(h, p, a);
	ttmon_known_move_site(h, a, TTMON_MEM_UNKNOWN, TTMON_MEM_PINNED);
}

enum ttmon_mem ttmon_history_mem(const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	struct ttmon_hproc *p = h->procs[a->proc];

	/* Its free proves that it was pinned. */
	if (a->free_ns && a->end == TTMON_END_FREE && ttmon_method_pins(a->method))
		return TTMON_MEM_PINNED;
	return in_doubt(h, p, a, a->free_ns ? a->free_ns : h->now_ns) ? TTMON_MEM_UNKNOWN : ttmon_rec_mem(a);
}

bool ttmon_history_pinned_known(const struct ttmon_history *h, const struct ttmon_proc *pub)
{
	struct ttmon_hproc *p = h->procs[pub->idx];

	if (pub->forgotten)
		return false;
	if (!ttmon_rec_unseen(h, p, h->now_ns).frees_to_ns)
		return true;
	if (ttmon_condensed_oldest_ns(p) < ttmon_rec_unseen(h, p, h->now_ns).frees_to_ns)
		return false;
	for (unsigned int l = TTMON_LAYER_DEV; l <= TTMON_LAYER_REG; l++) {
		struct ttmon_ranges_pos pos;

		for (bool at = ttmon_ranges_seek(&p->layer[l], 0, &pos); at;
		     at = ttmon_ranges_next(&p->layer[l], &pos)) {
			const struct ttmon_alloc *a = ttmon_rec_at(h, pos.val);

			if (ttmon_method_pinned(a->method) && ttmon_history_mem(h, a) == TTMON_MEM_UNKNOWN)
				return false;
		}
	}
	return true;
}

/*
 * The life of a process so far; for one that was not announced, all time before the trace may belong
 * to it.
 */
static void life(const struct ttmon_history *h, const struct ttmon_proc *p, uint64_t *from_ns, uint64_t *to_ns)
{
	*from_ns = p->start_ns;
	*to_ns = p->exit_ns ? p->exit_ns : MAX(h->now_ns, p->last_ns) + 1;
}

enum ttmon_knowledge ttmon_history_known(const struct ttmon_history *h, const struct ttmon_proc *p,
					 enum ttmon_family family)
{
	uint64_t from_ns, to_ns;

	if (!h->cfg.know)
		return TTMON_KNOWN;
	life(h, p, &from_ns, &to_ns);
	return ttmon_know_of(h->cfg.know, family, p->tgid, from_ns, to_ns, NULL);
}

bool ttmon_history_at_least(const struct ttmon_history *h, const struct ttmon_proc *p)
{
	return p->unknown_frees || p->forgotten || p->findings[TTMON_FINDING_TRUNCATED_BATCH] ||
	       ttmon_history_known(h, p, TTMON_FAMILY_ALLOC) != TTMON_KNOWN ||
	       ttmon_history_known(h, p, TTMON_FAMILY_TRANSFER) != TTMON_KNOWN;
}

bool ttmon_history_sampled_at_least(const struct ttmon_history *h, const struct ttmon_proc *p)
{
	uint64_t from_ns, to_ns;

	life(h, p, &from_ns, &to_ns);
	return h->cfg.know && ttmon_know_missing(h->cfg.know, TTMON_FAMILY_TRANSFER, p->tgid, from_ns, to_ns);
}

bool ttmon_history_all_at_least(const struct ttmon_history *h)
{
	const struct ttmon_gap *gaps;
	size_t n = h->cfg.know ? ttmon_know_gaps(h->cfg.know, &gaps) : 0;
	const struct ttmon_history_totals *t = &h->totals;

	if (t->incomplete || t->forgotten || t->unknown_frees || t->findings[TTMON_FINDING_TRUNCATED_BATCH])
		return true;
	for (size_t i = 0; i < n; i++)
		if (gaps[i].families & (TTMON_FAMILY_BIT(ALLOC) | TTMON_FAMILY_BIT(TRANSFER)))
			return true;
	return false;
}

uint64_t ttmon_history_probed_ns(const struct ttmon_history *h, const struct ttmon_proc *p)
{
	return h->cfg.know ? ttmon_know_probed_ns(h->cfg.know, p->tgid) : 0;
}

/* Memory whose allocation was not seen may be as old as its program. */
static uint64_t born_ns(const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	const struct ttmon_hproc *p = h->procs[a->proc];

	if (!(a->states & (TTMON_ST_EXTENT | TTMON_ST_MERGED)))
		return a->alloc_ns;
	return MIN(a->alloc_ns, p->nr_execs ? p->execs[p->nr_execs - 1] : p->pub.start_ns);
}

enum ttmon_knowledge ttmon_history_alloc_known(const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	const struct ttmon_proc *p = &h->procs[a->proc]->pub;
	uint64_t end_ns = a->free_ns ? a->free_ns : MAX(h->now_ns, a->alloc_ns) + 1;
	enum ttmon_knowledge known = TTMON_KNOWN;
	bool copies = false;

	if (ttmon_layer_of(a->method) == TTMON_LAYER_TT || !h->cfg.know)
		return TTMON_KNOWN;
	known = ttmon_know_of(h->cfg.know, TTMON_FAMILY_TRANSFER, p->tgid, born_ns(h, a), end_ns, NULL);
	for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++)
		copies |= a->traffic->copies[d] != 0;
	/* It existed before anything could be seen. */
	if (known == TTMON_KNOWN &&
	    (a->states & TTMON_ST_UNSEEN || (a->bits & TTMON_AL_OLD && a->method != TTMON_METHOD_MMAP)))
		known = TTMON_AT_LEAST;
	return known == TTMON_UNKNOWN && copies ? TTMON_AT_LEAST : known;
}
