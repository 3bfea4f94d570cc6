// SPDX-License-Identifier: GPL-2.0-only
/*
 * advice.c: which memory should be pinned and which should not: sums of allocations by (process, call
 * site, method), on which lib/verdict gives its verdict. Read side of the history (hot thread, pure);
 * also keeps the sums of folded allocations, so that a site with short-lived buffers still gets a
 * verdict.
 *
 * A mapping has the call site of the first copy from it; mappings without a copy form one group per
 * name, and one without a name is a group by itself. Where allocations of a group are folded, its size
 * at one time is unknown; then the size of its call site is taken. Completeness is 0.7 where something
 * of the process was lost or is older than the trace, half where the memory is a provisional mapping.
 */
#include "daemon/core/history/heat.h"
#include "lib/base/grow.h"
#include "daemon/core/history/history_int.h"

#define GROUPS_MAX (1u << 16)
#define SWEEP_MIN  256u
/* cudaHostAlloc and cudaHostRegister: portable, mapped, write-combined or I/O memory. */
#define IN_PLACE_FLAGS 7

static uint64_t name_hash(const char *name)
{
	uint64_t hash = 1;

	for (; *name; name++)
		hash = ttmon_mix64(hash ^ (uint8_t)*name);
	return hash >> 1;
}

static uint64_t key_of(const struct ttmon_group *g)
{
	return ttmon_mix64(g->name ^ ttmon_mix64((uint64_t)g->proc << 32 | g->site) ^ ttmon_mix64(g->method + 1));
}

static bool same_group(const struct ttmon_group *a, const struct ttmon_group *b)
{
	return a->proc == b->proc && a->gen == b->gen && a->site == b->site && a->method == b->method &&
	       a->name == b->name;
}

/* The group of this identity, made if there is none; NULL: no room. */
static struct ttmon_group *group_of(struct ttmon_groups *gs, const struct ttmon_group *id, uint32_t max)
{
	uint64_t key = key_of(id), at;

	for (; (at = ttmon_hmap_get(&gs->by_key, key)) < gs->n; key++)
		if (same_group(&gs->v[at], id))
			return &gs->v[at];
	if (gs->n >= max)
		return NULL;
	if (TTMON_GROW(gs->v, gs->cap, gs->n + 1, 64))
		return NULL;
	if (ttmon_hmap_put(&gs->by_key, key, gs->n) < 0)
		return NULL;
	gs->v[gs->n] = (struct ttmon_group){ .proc = id->proc,
					     .gen = id->gen,
					     .site = id->site,
					     .method = id->method,
					     .name = id->name,
					     .seq = TTMON_SEQTAB_END };
	return &gs->v[gs->n++];
}

static void groups_fini(struct ttmon_groups *gs)
{
	free(gs->v);
	ttmon_hmap_fini(&gs->by_key);
	*gs = (struct ttmon_groups){ 0 };
}

/*
 * The name that identifies an allocation: the one that its allocator gave, or that of the mapped file.
 * NULL for other memory: its name is only what happens to be mapped there.
 */
static const char *name_of(const struct ttmon_alloc *a)
{
	bool named =
		a->method == TTMON_METHOD_MMAP || a->method == TTMON_METHOD_CUSTOM || a->method == TTMON_METHOD_PIECE;

	return named ? a->name : NULL;
}

static struct ttmon_group identity(const struct ttmon_history *h, const struct ttmon_alloc *a, bool gone)
{
	struct ttmon_group id = {
		.proc = a->proc, .gen = h->procs[a->proc]->gen, .site = a->site, .method = a->method
	};

	if (a->method == TTMON_METHOD_MMAP)
		id.name = a->name ? name_hash(a->name) : gone || a->site ? 0 : ttmon_alloc_seq(a) | 1ULL << 63;
	else if (!a->site && name_of(a))
		id.name = name_hash(a->name);
	return id;
}

bool ttmon_advice_in_place(const struct ttmon_alloc *a)
{
	return a->bits & TTMON_AL_DEVICE_PTR || a->traffic->gpu ||
	       (ttmon_method_pinned(a->method) && a->api_flags & IN_PLACE_FLAGS);
}

void ttmon_advice_init(struct ttmon_history *h, const struct ttmon_history_cfg *cfg)
{
	h->cost_given = (struct ttmon_cost){ cfg->pageable_bps, cfg->pinned_bps, cfg->pinning_bps, cfg->pin_call_ns,
					     cfg->unpin_call_ns };
	ttmon_history_cost(h, &h->cost);
}

void ttmon_history_cost(const struct ttmon_history *h, struct ttmon_cost *ret)
{
	const struct ttmon_cost *given = &h->cost_given;
	struct ttmon_cost c = TTMON_COST_DEFAULT;

	ttmon_cost_measured(&h->cost_seen, &c);
	*ret = (struct ttmon_cost){ given->pageable_bps ?: c.pageable_bps, given->pinned_bps ?: c.pinned_bps,
				    given->pinning_bps ?: c.pinning_bps, given->pin_call_ns ?: c.pin_call_ns,
				    given->unpin_call_ns ?: c.unpin_call_ns };
}

void ttmon_advice_saw(struct ttmon_history *h, const struct ttmon_alloc *a, uint64_t pin_ns, uint64_t unpin_ns)
{
	/* Memory that a driver pins for itself is not pinned by a call of the program. */
	if (a->method == TTMON_METHOD_TT_DMA || (!pin_ns && !unpin_ns))
		return;
	ttmon_cost_see(&h->cost_seen, a->size, pin_ns, unpin_ns);
	ttmon_history_cost(h, &h->cost);
}

/* Pages that pinning would cover: of a large mapping only those that were touched. */
static uint64_t pages_to_pin(const struct ttmon_alloc *a)
{
	uint64_t first = a->addr / TTMON_VERDICT_PAGE, end = ttmon_end_of(a->addr, a->size);
	uint64_t pages = end / TTMON_VERDICT_PAGE + (end % TTMON_VERDICT_PAGE != 0) - first;

	if (!a->size)
		return 0;
	if (!ttmon_method_pinned(a->method) && a->traffic->page_heat) {
		uint64_t touched = ttmon_page_heat_bytes(a->traffic->page_heat);

		pages = MIN(pages, touched / TTMON_VERDICT_PAGE + (touched % TTMON_VERDICT_PAGE != 0));
	}
	return pages;
}

/*
 * True if the kind of memory is unknown, or if a driver mapped it by itself, so that the allocating
 * call is unknown.
 */
static bool is_unknown(const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	enum ttmon_mem mem = ttmon_history_mem(h, a);

	return mem == TTMON_MEM_UNKNOWN || (mem == TTMON_MEM_PINNED && !ttmon_method_pinned(a->method));
}

static void add_to_memory(const struct ttmon_history *h, struct ttmon_memory *m, const struct ttmon_alloc *a)
{
	const struct ttmon_traffic *t = a->traffic;
	uint64_t end = ttmon_rec_live(a) ? h->now_ns : a->free_ns;
	uint64_t age = end > a->alloc_ns ? end - a->alloc_ns : 0;

	m->pinned = ttmon_method_pinned(a->method);
	m->managed = a->method == TTMON_METHOD_MANAGED;
	m->allocs++;
	m->done += !ttmon_rec_live(a) || age >= h->cfg.cold_age_ns;
	m->to_copies += t->copies[TTMON_RDIR_H2D];
	m->to_bytes += t->bytes[TTMON_RDIR_H2D];
	m->from_copies += t->copies[TTMON_RDIR_D2H];
	m->from_bytes += t->bytes[TTMON_RDIR_D2H];
	m->pages += pages_to_pin(a);
	m->age_ns = MAX(m->age_ns, age);
	m->ages_ns += MIN(age, UINT64_MAX - m->ages_ns);
	m->in_place |= ttmon_advice_in_place(a) || a->method == TTMON_METHOD_TT_DMA;
	m->gpu |= t->gpu != NULL;
	m->unknown_kind |= is_unknown(h, a);
	m->at_least |= ttmon_history_alloc_known(h, a) != TTMON_KNOWN;
}

static void sum_up(const struct ttmon_history *h, struct ttmon_group *g, const struct ttmon_alloc *a)
{
	add_to_memory(h, &g->m, a);
	/* A driver's DMA buffer has no allocating call in the program. */
	g->m.unknown_site |= !a->site && !name_of(a) && a->method != TTMON_METHOD_TT_DMA;
	g->size = MAX(g->size, a->size);
	g->bytes += a->size;
}

/* Device memory gets no verdict; a mapping without transfers has no evidence. */
static bool of_interest(const struct ttmon_alloc *a)
{
	if (a->method == TTMON_METHOD_MMAP) {
		uint32_t any = 0;

		for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++)
			any |= a->traffic->copies[d];
		return any && a->end != TTMON_END_MERGED;
	}
	if (ttmon_rec_backing(a))
		return false;
	return ttmon_method_pinned(a->method) || a->method == TTMON_METHOD_MANAGED || a->method == TTMON_METHOD_CUSTOM;
}

static bool is_stale(const struct ttmon_history *h, const struct ttmon_group *g)
{
	return g->gen != h->procs[g->proc]->gen;
}

/* Removes the groups of processes whose place was reused. Without memory they stay. */
static void sweep(struct ttmon_history *h)
{
	struct ttmon_groups kept = { 0 };

	for (uint32_t i = 0; i < h->folded.n; i++) {
		struct ttmon_group *g;

		if (is_stale(h, &h->folded.v[i]))
			continue;
		g = group_of(&kept, &h->folded.v[i], GROUPS_MAX);
		if (!g) {
			groups_fini(&kept);
			return;
		}
		*g = h->folded.v[i];
	}
	groups_fini(&h->folded);
	h->folded = kept;
}

/* NULL: the allocation belongs to no group, or there is no room for one. */
static struct ttmon_group *folded_into(struct ttmon_history *h, const struct ttmon_alloc *a)
{
	struct ttmon_group id = identity(h, a, true), *g;
	struct ttmon_hproc *p = h->procs[a->proc];

	if (!of_interest(a))
		return NULL;
	if (h->folded.n >= GROUPS_MAX && h->folded.stale)
		sweep(h);
	g = group_of(&h->folded, &id, h->users[p->user].groups < GROUPS_MAX / 4 ? GROUPS_MAX : 0);
	if (!g && h->folded.n < GROUPS_MAX) {
		ttmon_users_paid(h, p, TTMON_QUOTA_NAMES, 1);
		return NULL;
	}
	if (!g) {
		h->totals.incomplete = true;
		return NULL;
	}
	h->users[p->user].groups += !g->m.allocs;
	p->nr_folded += !g->m.allocs;
	sum_up(h, g, a);
	g->folded++;
	return g;
}

void ttmon_advice_folded(struct ttmon_history *h, struct ttmon_alloc *a)
{
	(void)folded_into(h, a);
}

void ttmon_advice_condensed(struct ttmon_history *h, const struct ttmon_alloc *a)
{
	struct ttmon_group *g = folded_into(h, a);

	if (g)
		g->m.at_least = true;
}

void ttmon_advice_drop_proc(struct ttmon_history *h, uint32_t proc)
{
	struct ttmon_hproc *p = h->procs[proc];

	p->gen++;
	h->folded.stale += p->nr_folded;
	h->users[p->user].groups -= MIN(h->users[p->user].groups, p->nr_folded);
	p->nr_folded = 0;
	/* The amortised cost is one move of each group, however many processes come and go. */
	if (h->folded.stale > SWEEP_MIN && h->folded.stale > h->folded.n / 2)
		sweep(h);
}

void ttmon_advice_fini(struct ttmon_history *h)
{
	groups_fini(&h->folded);
}

double ttmon_advice_completeness(const struct ttmon_history *h, uint32_t proc)
{
	const struct ttmon_proc *p = &h->procs[proc]->pub;

	return h->totals.incomplete || h->totals.reduced || p->unknown_frees || p->limited ? 0.7 : 1.0;
}

static void judge_group(const struct ttmon_history *h, const struct ttmon_group *g, struct ttmon_said *ret)
{
	struct ttmon_memory m = g->m;

	m.complete = ttmon_advice_completeness(h, g->proc);
	ttmon_verdict_of(&m, &h->cost, ret);
}

void ttmon_advice_judge(const struct ttmon_history *h, const struct ttmon_alloc *a, struct ttmon_said *ret)
{
	struct ttmon_group g = { .proc = a->proc };

	add_to_memory(h, &g.m, a);
	g.m.peak_pages = g.m.pages;
	judge_group(h, &g, ret);
}

static struct ttmon_spot spot_of(const struct ttmon_history *h, const struct ttmon_group *g)
{
	struct ttmon_spot s = {
		.proc = g->proc,
		.site = g->site,
		.method = g->method,
		.allocs = (uint32_t)MIN(g->m.allocs, UINT32_MAX),
		.size = g->size,
		.bytes = g->bytes,
		.copies = g->m.to_copies,
		.copied = g->m.to_bytes,
		.back_copies = g->m.from_copies,
		.back_bytes = g->m.from_bytes,
		.age_ns = g->m.age_ns,
		.alloc_seq = g->seq,
	};

	judge_group(h, g, &s.said);
	return s;
}

/* ---- live memory at one time ---- */

struct edge {
	uint32_t group;
	struct ttmon_edge e;
};

static int by_group(const void *pa, const void *pb)
{
	const struct edge *a = pa, *b = pb;

	return a->group < b->group ? -1 : a->group > b->group;
}

/* For folded allocations this is unknown: at most what the whole call site had. */
static void add_folded(const struct ttmon_history *h, struct ttmon_group *g)
{
	const struct ttmon_site *site = &h->sites.v[g->site];
	uint64_t pages = site->peak_bytes / TTMON_VERDICT_PAGE + site->peak_live;

	if (!g->folded)
		return;
	g->m.peak_pages = g->site ? MAX(g->m.peak_pages, MIN(pages, g->m.pages)) : g->m.pages;
}

static int find_peaks(const struct ttmon_history *h, struct ttmon_groups *gs, struct edge *v, size_t n)
{
	_cleanup_free_ struct ttmon_edge *e = malloc((n + 1) * sizeof(*e));

	if (!e)
		return -ENOMEM;
	if (n)
		qsort(v, n, sizeof(*v), by_group);
	for (size_t i = 0, k = 0; i < n; i += k) {
		struct ttmon_memory *m = &gs->v[v[i].group].m;

		for (k = 0; i + k < n && v[i + k].group == v[i].group; k++)
			e[k] = v[i + k].e;
		m->peak_pages = ttmon_edges_peak(e, k);
	}
	for (uint32_t i = 0; i < gs->n; i++)
		add_folded(h, &gs->v[i]);
	return 0;
}

/* Collects all groups: of folded, kept and live allocations. */
static int gather(const struct ttmon_history *h, struct ttmon_groups *gs)
{
	_cleanup_free_ struct edge *edges = malloc((2 * h->records + 1) * sizeof(*edges));
	size_t n = 0;

	if (!edges)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->folded.n; i++) {
		struct ttmon_group *g;

		if (is_stale(h, &h->folded.v[i]))
			continue;
		g = group_of(gs, &h->folded.v[i], UINT32_MAX);
		if (!g)
			return -ENOMEM;
		*g = h->folded.v[i];
	}
	for (uint64_t seq = ttmon_seqtab_next(&h->seqs, 0); seq != TTMON_SEQTAB_END;
	     seq = ttmon_seqtab_next(&h->seqs, seq + 1)) {
		const struct ttmon_alloc *a = ttmon_rec_by_seq(h, seq);
		struct ttmon_group id, *g;
		struct ttmon_edge e[2];

		if (!of_interest(a))
			continue;
		id = identity(h, a, false);
		g = group_of(gs, &id, UINT32_MAX);
		if (!g)
			return -ENOMEM;
		sum_up(h, g, a);
		g->seq = MIN(g->seq, seq);
		ttmon_edges_of(e, a->alloc_ns, ttmon_rec_live(a) ? UINT64_MAX : a->free_ns, pages_to_pin(a));
		edges[n++] = (struct edge){ (uint32_t)(g - gs->v), e[0] };
		edges[n++] = (struct edge){ (uint32_t)(g - gs->v), e[1] };
	}
	return find_peaks(h, gs, edges, n);
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* A total order, so that groups with equal figures always come in the same order. */
static int by_identity(const void *a, const void *b)
{
	const struct ttmon_group *x = a, *y = b;
	int order = compare(x->site, y->site);

	order = order ? order : compare(x->proc, y->proc);
	order = order ? order : compare(x->method, y->method);
	order = order ? order : compare(x->seq, y->seq);
	return order ? order : compare(x->name, y->name);
}

static int hottest(const void *a, const void *b)
{
	const struct ttmon_group *x = a, *y = b;
	int order = compare(y->m.to_bytes + y->m.from_bytes, x->m.to_bytes + x->m.from_bytes);

	order = order ? order : compare(y->m.to_copies + y->m.from_copies, x->m.to_copies + x->m.from_copies);
	return order ? order : by_identity(a, b);
}

static int coldest(const void *a, const void *b)
{
	const struct ttmon_group *x = a, *y = b;
	int order = compare(y->bytes, x->bytes);

	return order ? order : by_identity(a, b);
}

static bool hot(const struct ttmon_history *h, const struct ttmon_group *g)
{
	(void)h;
	return (g->method == TTMON_METHOD_CUSTOM || g->method == TTMON_METHOD_MMAP) &&
	       (g->m.to_copies || g->m.from_copies);
}

static bool cold(const struct ttmon_history *h, const struct ttmon_group *g)
{
	struct ttmon_said s;

	judge_group(h, g, &s);
	return s.cold;
}

static bool any_group(const struct ttmon_history *h, const struct ttmon_group *g)
{
	(void)h;
	return g->m.allocs != 0;
}

typedef bool (*wanted_fn)(const struct ttmon_history *h, const struct ttmon_group *g);

/* Keeps the groups that `wanted` accepts, sorted by `order`. */
static int select_groups(const struct ttmon_history *h, wanted_fn wanted, int (*order)(const void *, const void *),
			 struct ttmon_groups *gs)
{
	uint32_t n = 0;
	int err = gather(h, gs);

	if (err)
		return err;
	for (uint32_t i = 0; i < gs->n; i++)
		if (wanted(h, &gs->v[i]))
			gs->v[n++] = gs->v[i];
	gs->n = n;
	if (n)
		qsort(gs->v, n, sizeof(*gs->v), order);
	return 0;
}

static size_t spots_of(const struct ttmon_history *h, wanted_fn wanted, int (*order)(const void *, const void *),
		       struct ttmon_spot *spots, size_t max)
{
	struct ttmon_groups gs = { 0 };
	size_t n = 0;

	if (select_groups(h, wanted, order, &gs) == 0)
		for (; n < gs.n && n < max; n++)
			spots[n] = spot_of(h, &gs.v[n]);
	groups_fini(&gs);
	return n;
}

size_t ttmon_history_hotspots(const struct ttmon_history *h, struct ttmon_spot *spots, size_t n)
{
	return spots_of(h, hot, hottest, spots, n);
}

/* Transfers of one allocation in both directions. */
static uint64_t moves_of(const struct ttmon_alloc *a)
{
	return (uint64_t)a->traffic->copies[TTMON_RDIR_H2D] + a->traffic->copies[TTMON_RDIR_D2H];
}

size_t ttmon_history_hottest(const struct ttmon_history *h, uint64_t *seqs, size_t max)
{
	size_t n = 0;

	for (uint64_t seq = ttmon_seqtab_next(&h->seqs, 0); seq != TTMON_SEQTAB_END;
	     seq = ttmon_seqtab_next(&h->seqs, seq + 1)) {
		const struct ttmon_alloc *a = ttmon_rec_by_seq(h, seq);
		size_t at;

		if (!ttmon_rec_live(a) || !of_interest(a) || !moves_of(a) || !max ||
		    (n == max && moves_of(ttmon_rec_by_seq(h, seqs[n - 1])) >= moves_of(a)))
			continue;
		n += n < max;
		/* With equally many transfers the older allocation comes first. */
		for (at = n - 1; at && moves_of(ttmon_rec_by_seq(h, seqs[at - 1])) < moves_of(a); at--)
			seqs[at] = seqs[at - 1];
		seqs[at] = seq;
	}
	return n;
}

size_t ttmon_history_coldspots(const struct ttmon_history *h, struct ttmon_spot *spots, size_t n)
{
	return spots_of(h, cold, coldest, spots, n);
}

int ttmon_history_advice(const struct ttmon_history *h, struct ttmon_spot **ret, size_t *ret_n)
{
	struct ttmon_groups gs = { 0 };
	struct ttmon_spot *spots = NULL;
	int err = select_groups(h, any_group, by_identity, &gs);

	if (!err) {
		spots = malloc((gs.n ? gs.n : 1) * sizeof(*spots));
		err = spots ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; !err && i < gs.n; i++)
		spots[i] = spot_of(h, &gs.v[i]);
	if (!err) {
		*ret = spots;
		*ret_n = gs.n;
	}
	groups_fini(&gs);
	return err;
}
