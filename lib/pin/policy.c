// SPDX-License-Identifier: GPL-2.0-only
/*
 * policy.c: computes what a pinning policy would have cost: makes lives from a run, selects those that
 * are pinned, and computes the sums. policy_best.c selects with hindsight, policy_pool.c models
 * PyTorch's cache, policy_region.c regions.
 */
#include "lib/pin/groups.h"
#include "lib/base/search.h"
#include "lib/pin/policy_int.h"

#define MAX_SIZE (1ULL << 47)

static const char *const names[] = {
#define X(NAME, name, help) [TTMON_POLICY_##NAME] = name,
	TTMON_POLICY_TABLE(X)
#undef X
};

static const char *const helps[] = {
#define X(NAME, name, help) [TTMON_POLICY_##NAME] = help,
	TTMON_POLICY_TABLE(X)
#undef X
};

const char *ttmon_policy_name(unsigned int policy)
{
	return policy < ARRAY_SIZE(names) ? names[policy] : "?";
}

const char *ttmon_policy_help(unsigned int policy)
{
	return policy < ARRAY_SIZE(helps) ? helps[policy] : "?";
}

/* ---- from a run to lives ---- */

static bool is_simulated(const struct ttmon_run_alloc *a)
{
	return ttmon_run_is_pinned(a) || a->method == TTMON_METHOD_CUSTOM;
}

/*
 * Returns whether this is a mapping that was copied: pageable memory that no allocator returned, but
 * that could be pinned.
 */
static bool is_moved_map(const struct ttmon_run_alloc *a)
{
	return a->method == TTMON_METHOD_MMAP && ttmon_run_moved(a);
}

static int by_place(const void *pa, const void *pb)
{
	const struct ttmon_run_alloc *const *pla = pa, *const *plb = pb, *a = *pla, *b = *plb;

	if (a->proc != b->proc)
		return a->proc < b->proc ? -1 : 1;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->alloc_ns < b->alloc_ns ? -1 : a->alloc_ns > b->alloc_ns;
}

/* Custom allocations sorted by address, to find the one that a registration belongs to. */
struct customs {
	const struct ttmon_run_alloc **v;
	size_t n;
};

static int customs_init(struct customs *c, const struct ttmon_run *run)
{
	*c = (struct customs){ .v = malloc((run->nr_allocs + 1) * sizeof(const struct ttmon_run_alloc *)) };
	if (!c->v)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr_allocs; i++)
		if (run->allocs[i].method == TTMON_METHOD_CUSTOM)
			c->v[c->n++] = &run->allocs[i];
	qsort(c->v, c->n, sizeof(const struct ttmon_run_alloc *), by_place);
	return 0;
}

static void customs_fini(struct customs *c)
{
	free(c->v);
}

/*
 * Returns the custom allocation that was live where and when this registration was made; NULL: none.
 */
static const struct ttmon_run_alloc *custom_below(const struct customs *c, const struct ttmon_run_alloc *reg)
{
	size_t lo = 0, hi = c->n;

	if (reg->method != TTMON_METHOD_REGISTERED)
		return NULL;
	lo = TTMON_SEARCH(lo, hi, mid, by_place(&c->v[mid], &reg) <= 0);
	if (!lo || c->v[lo - 1]->proc != reg->proc || c->v[lo - 1]->addr != reg->addr ||
	    c->v[lo - 1]->free_ns <= reg->alloc_ns)
		return NULL;
	return c->v[lo - 1];
}

static void life_of(struct ttmon_policy_life *l, const struct ttmon_run *run, size_t i)
{
	const struct ttmon_run_alloc *a = &run->allocs[i];
	uint64_t from = MIN(a->alloc_ns, UINT64_MAX - 1);

	*l = (struct ttmon_policy_life){ .from_ns = from,
					 .to_ns = MAX(a->free_ns, from + 1),
					 .size = MIN(a->size, MAX_SIZE),
					 .alloc = (uint32_t)i,
					 .proc = a->proc };
	l->pages = (l->size + TTMON_POLICY_PAGE - 1) / TTMON_POLICY_PAGE;
	if (a->method == TTMON_METHOD_MMAP)
		l->pages = MIN(l->pages, ttmon_groups_pages(a));
	l->at_end = (a->flags & TTMON_RUN_LIVE) != 0;
}

/*
 * Adds the copies of an allocation. The last copy is taken to end after the time of an average copy.
 */
static void add_copies(struct ttmon_policy_life *l, const struct ttmon_run_alloc *a, const struct ttmon_cost *cost)
{
	uint64_t copies = (uint64_t)a->h2d_copies + a->d2h_copies + a->other_copies, ready;

	l->bytes = ttmon_add_sat(l->bytes, ttmon_run_moved(a));
	l->keep |= (a->flags & TTMON_RUN_IN_PLACE) != 0 && a->method != TTMON_METHOD_MMAP;
	if (!a->async_copies || !a->last_copy_ns)
		return;
	ready = ttmon_add_sat(a->last_copy_ns,
			      (uint64_t)ttmon_cost_ns(ttmon_run_moved(a) / MAX(copies, 1u), cost->pinned_bps));
	l->ready_ns = MAX(l->ready_ns, ready);
}

static int by_from(const void *pa, const void *pb)
{
	const struct ttmon_policy_life *a = pa, *b = pb;

	if (a->from_ns != b->from_ns)
		return a->from_ns < b->from_ns ? -1 : 1;
	return a->alloc < b->alloc ? -1 : 1;
}

struct end {
	uint64_t ns;
	uint32_t i;
};

static int by_end(const void *pa, const void *pb)
{
	const struct end *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->i < b->i ? -1 : 1;
}

static int sort_ends(struct ttmon_policy_sim *s)
{
	_cleanup_free_ struct end *ends = malloc((s->n + 1) * sizeof(*ends));

	if (!ends)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n; i++)
		ends[i] = (struct end){ s->v[i].to_ns, i };
	qsort(ends, s->n, sizeof(*ends), by_end);
	for (uint32_t i = 0; i < s->n; i++)
		s->ends[i] = ends[i].i;
	return 0;
}

static void sim_fini(struct ttmon_policy_sim *s)
{
	free(s->v);
	free(s->ends);
}

static int sim_fill(struct ttmon_policy_sim *s, const struct ttmon_run *run, const struct customs *customs)
{
	_cleanup_free_ uint32_t *at = malloc((run->nr_allocs + 1) * sizeof(*at));

	s->v = malloc((run->nr_allocs + 1) * sizeof(*s->v));
	s->ends = malloc((run->nr_allocs + 1) * sizeof(*s->ends));
	if (!at || !s->v || !s->ends)
		return -ENOMEM;
	/*
	 * A registration of custom memory is added to that memory's life, which may come later in the table,
	 * so all lives are made first.
	 */
	for (size_t i = 0; i < run->nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &run->allocs[i];

		if (!is_simulated(a) && !(s->maps && is_moved_map(a))) {
			if (ttmon_run_is_host(a))
				s->other_bytes = ttmon_add_sat(s->other_bytes, ttmon_run_moved(a));
			continue;
		}
		if (custom_below(customs, a))
			continue;
		at[i] = s->n;
		life_of(&s->v[s->n], run, i);
		add_copies(&s->v[s->n++], a, &s->cfg->cost);
	}
	for (size_t i = 0; i < run->nr_allocs && customs->n; i++) {
		const struct ttmon_run_alloc *below = custom_below(customs, &run->allocs[i]);

		if (below)
			add_copies(&s->v[at[below - run->allocs]], &run->allocs[i], &s->cfg->cost);
	}
	qsort(s->v, s->n, sizeof(*s->v), by_from);
	return sort_ends(s);
}

static int sim_init(struct ttmon_policy_sim *s, const struct ttmon_run *run, const struct ttmon_policy_cfg *cfg,
		    bool maps)
{
	struct customs customs;
	int err = customs_init(&customs, run);

	*s = (struct ttmon_policy_sim){ .run = run, .cfg = cfg, .maps = maps };
	if (err)
		return err;
	err = sim_fill(s, run, &customs);
	customs_fini(&customs);
	if (err)
		sim_fini(s);
	return err;
}

/* ---- sums ---- */

void ttmon_policy_meter_add(struct ttmon_policy_meter *m, uint64_t now_ns, int64_t pages, int64_t reserved,
			    int64_t requested)
{
	struct ttmon_policy_result *r = m->r;

	if (now_ns > m->since_ns) {
		m->page_ns += (double)m->pages * (double)(now_ns - m->since_ns);
		m->since_ns = now_ns;
	}
	m->pages += (uint64_t)pages;
	m->reserved += (uint64_t)reserved;
	m->requested += (uint64_t)requested;
	if (m->pages > r->peak_pages) {
		r->peak_pages = m->pages;
		r->peak_ns = now_ns;
	}
	r->reserved_peak = MAX(r->reserved_peak, m->reserved);
	r->requested_peak = MAX(r->requested_peak, m->requested);
}

/* Each allocation is pinned while it lives. */
static void while_it_lives(const struct ttmon_policy_sim *s, struct ttmon_policy_meter *m)
{
	struct ttmon_policy_walk w = { 0 };
	bool begins;
	uint32_t i;

	while (ttmon_policy_next(s, &w, &i, &begins)) {
		const struct ttmon_policy_life *l = &s->v[i];
		int64_t sign = begins ? 1 : -1;

		if (!l->pinned)
			continue;
		ttmon_policy_meter_add(m, begins ? l->from_ns : l->to_ns, sign * (int64_t)l->pages,
				       sign * (int64_t)l->size, sign * (int64_t)l->size);
		m->r->pins += begins;
		m->r->unpins += !begins && !l->at_end;
		m->r->pages_pinned += begins ? l->pages : 0;
	}
}

/*
 * The same, but freed pages are always reused: as many pages are pinned as the peak has, by one call
 * for each process.
 */
static int pages_used_again(const struct ttmon_policy_sim *s, struct ttmon_policy_meter *m)
{
	_cleanup_free_ bool *has = calloc(s->run->nr_procs + 1, sizeof(*has));
	struct ttmon_policy_walk w = { 0 };
	bool begins;
	uint32_t i;

	if (!has)
		return -ENOMEM;
	while (ttmon_policy_next(s, &w, &i, &begins)) {
		const struct ttmon_policy_life *l = &s->v[i];
		int64_t sign = begins ? 1 : -1;
		bool *seen = &has[MIN(l->proc, s->run->nr_procs)];

		if (!l->pinned)
			continue;
		ttmon_policy_meter_add(m, begins ? l->from_ns : l->to_ns, sign * (int64_t)l->pages,
				       sign * (int64_t)l->size, sign * (int64_t)l->size);
		m->r->pins += !*seen;
		*seen = true;
	}
	m->r->pages_pinned = m->r->peak_pages;
	return 0;
}

static void finish(const struct ttmon_policy_sim *s, struct ttmon_policy_meter *m)
{
	const struct ttmon_cost *cost = &s->cfg->cost;
	struct ttmon_policy_result *r = m->r;
	uint64_t span = s->run->end_ns > s->run->start_ns ? s->run->end_ns - s->run->start_ns : 0;

	ttmon_policy_meter_add(m, s->run->end_ns, 0, 0, 0);
	r->mean_pages = span ? MIN((uint64_t)(m->page_ns / (double)span + 0.5), r->peak_pages) : 0;
	r->moved_bytes = s->other_bytes;
	r->allocs = s->n;
	for (uint32_t i = 0; i < s->n; i++) {
		const struct ttmon_policy_life *l = &s->v[i];

		r->moved_bytes = ttmon_add_sat(r->moved_bytes, l->bytes);
		if (!l->pinned)
			continue;
		r->pinned_allocs++;
		r->moved_pinned_bytes = ttmon_add_sat(r->moved_pinned_bytes, l->bytes);
		r->in_place_kept += (l->keep || l->apart) && !l->bytes;
		r->in_place_seen +=
			(l->keep || l->apart) && !l->bytes && s->run->allocs[l->alloc].flags & TTMON_RUN_GPU;
	}
	r->transfer_ns = ttmon_cost_ns(r->moved_pinned_bytes, cost->pinned_bps) +
			 ttmon_cost_ns(r->moved_bytes - r->moved_pinned_bytes, cost->pageable_bps);
	r->calls_ns = (int64_t)MIN((double)r->pins * (double)cost->pin_call_ns +
					   (double)r->unpins * (double)cost->unpin_call_ns,
				   (double)(INT64_MAX / 4));
	r->pinning_ns = ttmon_cost_ns(MIN(r->pages_pinned, UINT64_MAX / TTMON_POLICY_PAGE) * TTMON_POLICY_PAGE,
				      cost->pinning_bps) +
			r->calls_ns + r->wait_ns;
}

/* ---- this advice ---- */

bool ttmon_policy_advised(const struct ttmon_run *run, const struct ttmon_run_alloc *a, uint32_t order,
			  const struct ttmon_policy_cfg *cfg, struct ttmon_answer *ret)
{
	unsigned int weakest = cfg->min_match ? cfg->min_match : TTMON_MATCH_NAMES;
	struct ttmon_profile_key key;

	*ret = (struct ttmon_answer){ 0 };
	if (!is_simulated(a))
		return false;
	ttmon_profile_key_of(run, a, order, &key);
	ttmon_profile_lookup(cfg->profile, &key, ret);
	if (ret->match < weakest)
		ret->verdict = TTMON_VERDICT_UNKNOWN;
	if (ret->in_place || a->flags & TTMON_RUN_IN_PLACE)
		return true;
	return ret->verdict == TTMON_VERDICT_UNKNOWN ? ttmon_run_is_pinned(a) : ret->verdict == TTMON_VERDICT_PIN;
}

static int advise(struct ttmon_policy_sim *s, struct ttmon_policy_result *r)
{
	const struct ttmon_run *run = s->run;
	_cleanup_free_ uint32_t *seen = calloc(run->nr_procs + 1, TTMON_METHOD_MAX * sizeof(*seen));
	_cleanup_free_ uint32_t *order = malloc((run->nr_allocs + 1) * sizeof(*order));

	if (!seen || !order)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &run->allocs[i];

		order[i] = seen[MIN(a->proc, run->nr_procs) * TTMON_METHOD_MAX + a->method % TTMON_METHOD_MAX]++;
	}
	for (uint32_t i = 0; i < s->n; i++) {
		struct ttmon_policy_life *l = &s->v[i];
		struct ttmon_answer answer;

		l->pinned = ttmon_policy_advised(run, &run->allocs[l->alloc], order[l->alloc], s->cfg, &answer);
		l->apart = l->keep || answer.in_place;
		l->alone = answer.alone;
		l->pinned |= l->apart;
		r->unknown += answer.verdict == TTMON_VERDICT_UNKNOWN;
	}
	return 0;
}

/* ---- the policies ---- */

static void pin_all(struct ttmon_policy_sim *s, bool pinned)
{
	for (uint32_t i = 0; i < s->n; i++)
		s->v[i].pinned = pinned;
}

static int simulate(struct ttmon_policy_sim *s, enum ttmon_policy policy, struct ttmon_policy_meter *m)
{
	struct ttmon_profile_totals totals;
	int err = 0;

	switch (policy) {
	case TTMON_POLICY_NONE:
		pin_all(s, false);
		break;
	case TTMON_POLICY_ALL:
		pin_all(s, true);
		while_it_lives(s, m);
		break;
	case TTMON_POLICY_PYTORCH:
		pin_all(s, true);
		err = ttmon_policy_torch(s, m);
		break;
	case TTMON_POLICY_HINDSIGHT:
		err = ttmon_policy_hindsight(s);
		if (!err)
			err = pages_used_again(s, m);
		break;
	case TTMON_POLICY_ADVICE:
		ttmon_profile_get_totals(s->cfg->profile, &totals);
		err = advise(s, m->r);
		if (!err)
			err = ttmon_policy_regions(s, totals.peak_pin_pages, m);
		break;
	default:
		err = -EINVAL;
	}
	if (!err && policy != TTMON_POLICY_NONE)
		err = ttmon_policy_least(s, m->r->peak_ns, &m->r->least_pages);
	if (!err)
		finish(s, m);
	return err;
}

int ttmon_policy_simulate(const struct ttmon_run *run, enum ttmon_policy policy, const struct ttmon_policy_cfg *cfg,
			  struct ttmon_policy_result *ret)
{
	struct ttmon_policy_result r = { 0 };
	struct ttmon_policy_meter m = { .since_ns = run->start_ns, .r = &r };
	struct ttmon_policy_sim s;
	int err;

	if (!cfg->cost.pageable_bps || !cfg->cost.pinned_bps || !cfg->cost.pinning_bps ||
	    (policy == TTMON_POLICY_ADVICE && !cfg->profile))
		return -EINVAL;
	err = sim_init(&s, run, cfg, policy == TTMON_POLICY_HINDSIGHT);
	if (err)
		return err;
	err = simulate(&s, policy, &m);
	sim_fini(&s);
	if (!err)
		*ret = r;
	return err;
}
