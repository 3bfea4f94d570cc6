// SPDX-License-Identifier: GPL-2.0-only
/* groups.c: see groups.h. */
#include "lib/pin/groups.h"

#include "lib/base/grow.h"
#include "lib/base/hash.h"
#include "lib/base/hmap.h"

void ttmon_groups_see(const struct ttmon_run *run, struct ttmon_cost_seen *seen)
{
	for (size_t i = 0; i < run->nr_allocs; i++)
		if (ttmon_run_pins_pages(&run->allocs[i]))
			ttmon_cost_see(seen, run->allocs[i].size, run->allocs[i].pin_ns, run->allocs[i].unpin_ns);
}

uint64_t ttmon_groups_pages(const struct ttmon_run_alloc *a)
{
	uint64_t pages = ttmon_run_pages(a), touched = a->touched;

	if (ttmon_run_is_pinned(a) || !touched)
		return pages;
	return MIN(pages, touched / TTMON_VERDICT_PAGE + (touched % TTMON_VERDICT_PAGE != 0));
}

/*
 * Returns the name that distinguishes the memory: the name that the allocator gave, or what is mapped.
 */
static const char *name_of(const struct ttmon_run_alloc *a)
{
	return a->method == TTMON_METHOD_MMAP || ttmon_run_has_tag(a) ? a->name : NULL;
}

void ttmon_groups_add(struct ttmon_memory *m, const struct ttmon_run *run, const struct ttmon_run_alloc *a)
{
	uint64_t age = a->free_ns - a->alloc_ns;

	(void)run;
	m->pinned = ttmon_run_is_pinned(a);
	m->managed = a->method == TTMON_METHOD_MANAGED;
	m->allocs++;
	m->done += !(a->flags & TTMON_RUN_LIVE) || age >= TTMON_VERDICT_COLD_NS;
	m->to_copies += a->h2d_copies;
	m->to_bytes += a->h2d_bytes;
	m->from_copies += a->d2h_copies;
	m->from_bytes += a->d2h_bytes;
	m->pages += ttmon_groups_pages(a);
	m->age_ns = MAX(m->age_ns, age);
	m->ages_ns += MIN(age, UINT64_MAX - m->ages_ns);
	m->in_place |= (a->flags & TTMON_RUN_IN_PLACE) != 0;
	m->gpu |= (a->flags & TTMON_RUN_GPU) != 0;
	m->unknown_kind |= (a->flags & TTMON_RUN_UNSEEN) != 0;
	/* A driver's DMA buffer is not requested by a call of the program, so it has no call site. */
	m->unknown_site |= !a->site && !name_of(a) && a->method != TTMON_METHOD_TT_DMA;
	m->at_least |= (a->flags & TTMON_RUN_AT_LEAST) != 0;
}

/*
 * As in daemon/core/history/advice.c: device memory cannot be pinned, and there is no advice for a
 * mapping that was never copied.
 */
static bool of_interest(const struct ttmon_run_alloc *a)
{
	if (a->method == TTMON_METHOD_MMAP)
		return a->h2d_copies || a->d2h_copies || a->other_copies;
	return ttmon_run_is_host(a) || a->method == TTMON_METHOD_MANAGED;
}

struct maker {
	const struct ttmon_run *run;
	struct ttmon_pin_groups *g;
	struct ttmon_hmap by_key;
	uint32_t cap;
	uint64_t seed;
};

/* Mappings are distinguished by their names, other memory only if its call site is not known. */
static const char *group_name(const struct ttmon_run_alloc *a)
{
	return a->method == TTMON_METHOD_MMAP || !a->site ? name_of(a) : NULL;
}

static bool is_same(const struct ttmon_pin_group *x, const struct ttmon_run_alloc *a)
{
	bool map = a->method == TTMON_METHOD_MMAP;

	/*
	 * Two names of a run are equal if they are the same pointer. A mapping without name and site is a
	 * group of its own.
	 */
	return x->proc == a->proc && x->site == a->site && x->method == a->method && x->name == group_name(a) &&
	       (!map || a->name || a->site);
}

/* Returns NULL if memory runs out. */
static struct ttmon_pin_group *group_of(struct maker *m, uint32_t i)
{
	const struct ttmon_run_alloc *a = &m->run->allocs[i];
	uint64_t key = ttmon_mix64(((uint64_t)a->proc << 32 | a->site) ^ m->seed) ^ ttmon_mix64(a->method + 1), at;
	const char *name = group_name(a);
	struct ttmon_pin_groups *g = m->g;

	if (name || a->method == TTMON_METHOD_MMAP)
		key ^= ttmon_mix64(name || a->site ? (uintptr_t)name : i);
	for (; (at = ttmon_hmap_get(&m->by_key, key)) != TTMON_HMAP_NONE; key++)
		if (is_same(&g->v[at], a))
			return &g->v[at];
	if (TTMON_GROW(g->v, m->cap, g->n + 1, 64))
		return NULL;
	if (ttmon_hmap_put(&m->by_key, key, g->n) < 0)
		return NULL;
	g->v[g->n] = (struct ttmon_pin_group){
		.proc = a->proc, .site = a->site, .method = a->method, .name = name, .first = i
	};
	return &g->v[g->n++];
}

static int gather(struct maker *m)
{
	for (uint32_t i = 0; i < m->run->nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &m->run->allocs[i];
		struct ttmon_pin_group *x;

		m->g->of[i] = TTMON_RUN_NONE;
		if (!of_interest(a))
			continue;
		x = group_of(m, i);
		if (!x)
			return -ENOMEM;
		m->g->of[i] = (uint32_t)(x - m->g->v);
		ttmon_groups_add(&x->m, m->run, a);
		x->size = MAX(x->size, a->size);
		x->bytes += a->size;
	}
	return 0;
}

/* The edges of the groups share one table, which is filled one group at a time. */
static int judge(struct maker *m)
{
	struct ttmon_pin_groups *g = m->g;
	_cleanup_free_ size_t *at = calloc((size_t)g->n + 1, sizeof(*at));
	_cleanup_free_ struct ttmon_edge *e = malloc((2 * m->run->nr_allocs + 1) * sizeof(*e));

	if (!at || !e)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n; i++)
		at[i + 1] = at[i] + 2 * g->v[i].m.allocs;
	for (size_t i = 0; i < m->run->nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &m->run->allocs[i];
		uint32_t of = g->of[i];

		if (of == TTMON_RUN_NONE)
			continue;
		ttmon_edges_of(e + at[of], a->alloc_ns, a->flags & TTMON_RUN_LIVE ? UINT64_MAX : a->free_ns,
			       ttmon_groups_pages(a));
		at[of] += 2;
	}
	for (uint32_t i = 0; i < g->n; i++) {
		struct ttmon_pin_group *x = &g->v[i];

		x->m.peak_pages = ttmon_edges_peak(e + at[i] - 2 * x->m.allocs, 2 * x->m.allocs);
		x->m.complete = (m->run->complete ? 1 : 0.7);
		ttmon_verdict_of(&x->m, &g->cost, &x->said);
	}
	return 0;
}

int ttmon_pin_groups_new(const struct ttmon_run *run, const struct ttmon_cost *cost, struct ttmon_pin_groups **ret)
{
	_cleanup_(ttmon_pin_groups_freep) struct ttmon_pin_groups *g = calloc(1, sizeof(*g));
	struct maker m = { .run = run, .g = g, .seed = ttmon_run_seed() };
	struct ttmon_cost_seen seen = { 0 };
	int err;

	if (!g)
		return -ENOMEM;
	g->cost = cost ? *cost : TTMON_COST_DEFAULT;
	if (!cost) {
		ttmon_groups_see(run, &seen);
		ttmon_cost_measured(&seen, &g->cost);
	}
	g->of = malloc((run->nr_allocs + 1) * sizeof(*g->of));
	err = g->of ? gather(&m) : -ENOMEM;
	ttmon_hmap_fini(&m.by_key);
	err = err ? err : judge(&m);
	if (!err)
		*ret = TAKE_PTR(g);
	return err;
}

void ttmon_pin_groups_free(struct ttmon_pin_groups *g)
{
	if (!g)
		return;
	free(g->v);
	free(g->of);
	free(g);
}

const struct ttmon_said *ttmon_pin_groups_said(const struct ttmon_pin_groups *g, size_t alloc)
{
	return g->of[alloc] == TTMON_RUN_NONE ? NULL : &g->v[g->of[alloc]].said;
}
