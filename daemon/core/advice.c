// SPDX-License-Identifier: GPL-2.0-only
/*
 * advice.c: which memory should be pinned, which should not. Read side of the history (hot thread, pure); also keeps the sums of
 * folded allocations, so that a site whose buffers live for a moment is not forgotten.
 *
 * Allocations are summed up by (process, call site, method). Mappings are named by who copied from them first; without that, those
 * of one name are one group, and one without a name is a group by itself. The rule:
 *   pin    pageable memory whose transfers to the device would have been faster from pinned memory by more than pinning costs
 *   unpin  pinned memory with fewer transfers than allocations older than cold_age_ns, unless a kernel may read it in place
 *   keep   everything else; managed memory always
 * Confidence is evidence times completeness: n / (n + 2) for n transfers, age / (age + 1 s) for the lack of them; 0.7 of that where
 * something of the process was lost or is older than the trace, half where the memory is a made-up mapping.
 */
#include "core/heat.h"
#include "core/history_int.h"

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

/* The group of this identity, made if need be; NULL: no room. */
static struct ttmon_group *group_of(struct ttmon_groups *gs, const struct ttmon_group *id, uint32_t max)
{
	uint64_t key = key_of(id), at;

	for (; (at = ttmon_hmap_get(&gs->by_key, key)) < gs->n; key++)
		if (same_group(&gs->v[at], id))
			return &gs->v[at];
	if (gs->n >= max)
		return NULL;
	if (gs->n == gs->cap) {
		uint32_t cap = gs->cap ? gs->cap * 2 : 64;
		struct ttmon_group *v = realloc(gs->v, cap * sizeof(*v));

		if (!v)
			return NULL;
		gs->v = v;
		gs->cap = cap;
	}
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

static struct ttmon_group identity(const struct ttmon_history *h, const struct ttmon_alloc *a, bool gone)
{
	struct ttmon_group id = {
		.proc = a->proc, .gen = h->procs[a->proc]->gen, .site = a->site, .method = a->method
	};

	if (a->method == TTMON_METHOD_MMAP)
		id.name = a->name ? name_hash(a->name) : gone || a->site ? 0 : ttmon_alloc_seq(a) | 1ULL << 63;
	return id;
}

bool ttmon_advice_in_place(const struct ttmon_alloc *a)
{
	return a->bits & TTMON_AL_DEVICE_PTR || a->traffic->gpu ||
	       (ttmon_method_pinned(a->method) && a->api_flags & IN_PLACE_FLAGS);
}

static void sum_up(const struct ttmon_history *h, struct ttmon_group *g, const struct ttmon_alloc *a)
{
	uint64_t end = ttmon_rec_live(a) ? h->now_ns : a->free_ns;
	uint64_t age = end > a->alloc_ns ? end - a->alloc_ns : 0;

	g->allocs++;
	g->aged += age >= h->cfg.cold_age_ns;
	g->in_place |= ttmon_advice_in_place(a);
	g->made_up |= (a->bits & TTMON_AL_PROVISIONAL) != 0;
	g->size = MAX(g->size, a->size);
	g->bytes += a->size;
	g->copies += a->traffic->copies[TTMON_RDIR_H2D];
	g->copied += a->traffic->bytes[TTMON_RDIR_H2D];
	for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++)
		g->transfers += a->traffic->copies[d];
	/* Read in place it needs no transfer to be of use. */
	g->transfers += a->traffic->gpu != NULL;
	g->pin_ns += a->pin_ns + a->unpin_ns;
	g->age_ns = MAX(g->age_ns, age);
	if (a->traffic->copies[TTMON_RDIR_H2D])
		g->cost_bytes +=
			a->traffic->page_heat ? MIN(ttmon_page_heat_bytes(a->traffic->page_heat), a->size) : a->size;
}

/* Device memory is no candidate for anything; a mapping that was never transferred has nothing to say. */
static bool of_interest(const struct ttmon_alloc *a)
{
	if (a->method == TTMON_METHOD_MMAP) {
		uint32_t any = 0;

		for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++)
			any |= a->traffic->copies[d];
		return any && a->end != TTMON_END_MERGED;
	}
	return ttmon_method_pinned(a->method) || a->method == TTMON_METHOD_MANAGED || a->method == TTMON_METHOD_CUSTOM;
}

static bool is_stale(const struct ttmon_history *h, const struct ttmon_group *g)
{
	return g->gen != h->procs[g->proc]->gen;
}

/* Without the groups of processes whose place another one has. Without memory they stay. */
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

void ttmon_advice_fold(struct ttmon_history *h, const struct ttmon_alloc *a)
{
	struct ttmon_group id = identity(h, a, true), *g;

	if (!of_interest(a))
		return;
	if (h->folded.n >= GROUPS_MAX && h->folded.stale)
		sweep(h);
	g = group_of(&h->folded, &id, GROUPS_MAX);
	if (!g) {
		h->totals.incomplete = true;
		return;
	}
	h->procs[a->proc]->nr_folded += !g->allocs;
	sum_up(h, g, a);
}

void ttmon_advice_drop_proc(struct ttmon_history *h, uint32_t proc)
{
	struct ttmon_hproc *p = h->procs[proc];

	p->gen++;
	h->folded.stale += p->nr_folded;
	p->nr_folded = 0;
	/* Each group is moved about once, however many processes come and go. */
	if (h->folded.stale > SWEEP_MIN && h->folded.stale > h->folded.n / 2)
		sweep(h);
}

void ttmon_advice_fini(struct ttmon_history *h)
{
	groups_fini(&h->folded);
}

static int64_t time_of(uint64_t bytes, uint64_t bps)
{
	unsigned __int128 ns = (unsigned __int128)bytes * NSEC_PER_SEC / bps;

	return ns > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)ns;
}

static bool cold(const struct ttmon_group *g)
{
	return ttmon_method_pinned(g->method) && g->aged && g->transfers < g->aged;
}

int64_t ttmon_advice_gain(const struct ttmon_history *h, uint64_t bytes, uint64_t cost_bytes)
{
	return time_of(bytes, h->cfg.pageable_bps) - time_of(bytes, h->cfg.pinned_bps) -
	       time_of(cost_bytes, h->cfg.pinning_bps);
}

double ttmon_advice_completeness(const struct ttmon_history *h, uint32_t proc)
{
	return h->totals.incomplete || h->totals.reduced || h->procs[proc]->pub.unknown_frees ? 0.7 : 1.0;
}

static struct ttmon_spot spot_of(const struct ttmon_history *h, const struct ttmon_group *g)
{
	struct ttmon_spot s = {
		.proc = g->proc,
		.site = g->site,
		.method = g->method,
		.advice = TTMON_ADVICE_KEEP,
		.allocs = g->allocs,
		.size = g->size,
		.bytes = g->bytes,
		.copies = g->copies,
		.copied = g->copied,
		.age_ns = g->age_ns,
		.alloc_seq = g->seq,
	};
	double n = (double)g->transfers, age = (double)g->age_ns, evidence = n / (n + 2);

	if (cold(g)) {
		s.gain_ns = g->pin_ns > INT64_MAX ? INT64_MAX : (int64_t)g->pin_ns;
		evidence = age / (age + (double)NSEC_PER_SEC);
		if (!g->in_place)
			s.advice = TTMON_ADVICE_UNPIN;
	} else if (g->method == TTMON_METHOD_CUSTOM || g->method == TTMON_METHOD_MMAP) {
		s.gain_ns = ttmon_advice_gain(h, g->copied, g->cost_bytes);
		if (s.gain_ns > 0)
			s.advice = TTMON_ADVICE_PIN;
	}
	s.confidence = evidence * ttmon_advice_completeness(h, g->proc) / (g->made_up ? 2 : 1);
	return s;
}

/* All groups, of folded, kept and live allocations. */
static int gather(const struct ttmon_history *h, struct ttmon_groups *gs)
{
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

		if (!of_interest(a))
			continue;
		id = identity(h, a, false);
		g = group_of(gs, &id, UINT32_MAX);
		if (!g)
			return -ENOMEM;
		sum_up(h, g, a);
		g->seq = MIN(g->seq, seq);
	}
	return 0;
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* A total order, so that what does not differ by its figures is always in the same order. */
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
	int order = compare(y->copied, x->copied);

	order = order ? order : compare(y->copies, x->copies);
	return order ? order : by_identity(a, b);
}

static int coldest(const void *a, const void *b)
{
	const struct ttmon_group *x = a, *y = b;
	int order = compare(y->bytes, x->bytes);

	return order ? order : by_identity(a, b);
}

static bool hot(const struct ttmon_group *g)
{
	return (g->method == TTMON_METHOD_CUSTOM || g->method == TTMON_METHOD_MMAP) && g->copies;
}

static bool any_group(const struct ttmon_group *g)
{
	return g->allocs != 0;
}

/* Those of the groups that `wanted` picks, in this order. */
static int select_groups(const struct ttmon_history *h, bool (*wanted)(const struct ttmon_group *),
			 int (*order)(const void *, const void *), struct ttmon_groups *gs)
{
	uint32_t n = 0;
	int err = gather(h, gs);

	if (err)
		return err;
	for (uint32_t i = 0; i < gs->n; i++)
		if (wanted(&gs->v[i]))
			gs->v[n++] = gs->v[i];
	gs->n = n;
	if (n)
		qsort(gs->v, n, sizeof(*gs->v), order);
	return 0;
}

static size_t spots_of(const struct ttmon_history *h, bool (*wanted)(const struct ttmon_group *),
		       int (*order)(const void *, const void *), struct ttmon_spot *spots, size_t max)
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
