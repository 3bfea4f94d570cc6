// SPDX-License-Identifier: GPL-2.0-only
/*
 * profile_make.c: makes a profile from runs, and collects the frames of its call sites, each site and
 * object once. For each way of lookup, all allocations are sorted by that way's key; allocations with
 * the same key are a group, and a group becomes an entry. The time is that of sorting; the memory is
 * some 24 bytes for each allocation and way.
 *
 * Verdicts are those of homes: all allocations of one call site (or of one name that the allocator
 * gave), judged run by run (lib/verdict). A finer group has a verdict of its own only if several runs
 * agree, each by itself: that it was never moved, or that it pays alone.
 */
#include "lib/pin/groups.h"
#include "lib/base/grow.h"
#include "lib/pin/profile_int.h"

/* The site requested several sizes. */
#define MANY (UINT64_MAX - 1)

/*
 * Whether the ordinals of an allocation distinguish allocations (HOLDS), and whether that is certain
 * (SURE): within its site, within its name.
 */
enum { SITE_HOLDS = 1, SITE_SURE = 2, NAME_HOLDS = 4, NAME_SURE = 8 };

struct row {
	uint64_t key;
	uint32_t run, proc, alloc;
};

/* All allocations of one call site, name, or API without either. */
struct home {
	double gain, weight; /* ns, weighted mean over the runs that have it */
	double each;	     /* the same if each allocation is pinned individually */
	/* it is not known whether pinning pays: the seen transfers do not pay for it, and some were missed */
	bool unknown;
};

struct maker {
	struct ttmon_profile *p;
	const struct ttmon_run *const *runs;
	size_t nr_runs, nr_allocs; /* allocations that belong in the profile, of all runs */
	struct ttmon_cost cost;
	uint8_t *holds; /* SITE_HOLDS and so on, for all allocations, run after run */
	size_t *first;	/* index of the first allocation of each run */
	uint32_t *home; /* home of each allocation, run after run */
	struct home *homes;
	uint32_t nr_homes, *stamp; /* for each: 1 + the entry that it was last added to */
	double *weight;		   /* weight of each run */
	double *ran;		   /* sum of the weights of the runs in which each program ran */
	uint32_t *last;		   /* 1 + the run in which it was last seen */
	int8_t *signs;		   /* temporary memory of ordinals_hold() */
	struct row *rows;
	struct ttmon_edge *edges;
	uint64_t *keys; /* keys of the entries */
	size_t cap_keys;
	struct ttmon_hmap programs, sizes, orders;
};

static void maker_fini(struct maker *m)
{
	free(m->holds);
	free(m->first);
	free(m->home);
	free(m->homes);
	free(m->stamp);
	free(m->weight);
	free(m->ran);
	free(m->last);
	free(m->signs);
	free(m->rows);
	free(m->edges);
	free(m->keys);
	ttmon_hmap_fini(&m->programs);
	ttmon_hmap_fini(&m->sizes);
	ttmon_hmap_fini(&m->orders);
}

static const struct ttmon_run_alloc *alloc_of(const struct maker *m, const struct row *r)
{
	return &m->runs[r->run]->allocs[r->alloc];
}

static const struct ttmon_run_site *site_of(const struct maker *m, const struct row *r)
{
	return &m->runs[r->run]->sites[alloc_of(m, r)->site];
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* ---- programs: number of runs of each ---- */

static uint64_t program_key(const struct maker *m, const struct ttmon_run_proc *p)
{
	const char *slash = p->exe ? strrchr(p->exe, '/') : NULL;

	return ttmon_site_hash_name(TTMON_FNV_BASIS ^ m->p->seed, slash ? slash + 1 : p->exe ?: p->comm);
}

static int count_programs(struct maker *m)
{
	uint64_t nr = 0;

	for (uint32_t r = 0; r < m->nr_runs; r++) {
		for (size_t i = 0; i < m->runs[r]->nr_procs; i++) {
			uint64_t key = program_key(m, &m->runs[r]->procs[i]), at = ttmon_hmap_get(&m->programs, key);

			if (at == TTMON_HMAP_NONE) {
				at = nr++;
				if (ttmon_hmap_put(&m->programs, key, at) < 0)
					return -ENOMEM;
			}
			if (m->last[at] == r + 1)
				continue;
			m->last[at] = r + 1;
			m->ran[at] += m->weight[r];
		}
	}
	return 0;
}

/* ---- one group ---- */

/* Judges the rows of one run. */
static void judge_rows(struct maker *m, const struct row *v, size_t n, struct ttmon_said *ret)
{
	struct ttmon_memory mem = { 0 };
	bool unknown = false;

	for (size_t i = 0; i < n; i++) {
		const struct ttmon_run_alloc *a = alloc_of(m, &v[i]);

		ttmon_groups_add(&mem, m->runs[v->run], a);
		unknown |= (a->flags & TTMON_RUN_UNSEEN) != 0;
		ttmon_edges_of(m->edges + 2 * i, a->alloc_ns, a->free_ns, ttmon_groups_pages(a));
	}
	mem.peak_pages = ttmon_edges_peak(m->edges, 2 * n);
	/* The question is what pinning is worth in the next run, whether or not it was pinned in this one. */
	mem.pinned = true;
	mem.in_place = mem.gpu = mem.managed = false;
	mem.unknown_kind = unknown;
	ttmon_verdict_of(&mem, &m->cost, ret);
}

/* Returns what pinning each individually saves: the lower end of the range. */
static int64_t each_ns(const struct ttmon_said *s)
{
	return s->advice == TTMON_ADVICE_UNPIN ? -s->high_ns : s->low_ns;
}

/* Returns whether the allocation alone, with its share of the pages, would get this verdict. */
static bool pays_alone(const struct maker *m, const struct row *r, double share)
{
	const struct ttmon_run_alloc *a = alloc_of(m, r);

	return ttmon_cost_saved(&m->cost, ttmon_run_moved(a)) >
	       share * ttmon_cost_pinned(&m->cost, ttmon_run_pages(a), 0);
}

/* Sums over the rows of one group. */
struct sums {
	double gain, weight; /* of the homes, or its own; weight: sum over the runs that have it */
	double complete;     /* sum over the allocations */
	uint64_t bytes, copies;
	uint64_t age_ns;
	uint32_t runs;
	bool in_place, unknown;
	double each;		  /* ns saved by pinning each of them individually */
	unsigned int never, pays; /* number of runs in which no row was moved; in which they pay by themselves */
};

static void add_run(struct maker *m, const struct row *v, size_t n, struct sums *s)
{
	struct ttmon_said said;
	uint64_t bytes = 0, moved = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ttmon_run_alloc *a = alloc_of(m, &v[i]);
		double complete = m->weight[v[i].run];

		if (a->flags & TTMON_RUN_OLD)
			complete = MIN(complete, 0.7);
		s->complete += complete;
		bytes = sum(bytes, a->h2d_bytes);
		moved = sum(moved, ttmon_run_moved(a));
		s->copies += (uint64_t)a->h2d_copies + a->d2h_copies;
		s->age_ns = sum(s->age_ns, a->free_ns - a->alloc_ns);
		s->in_place |= (a->flags & TTMON_RUN_IN_PLACE) != 0;
	}
	judge_rows(m, v, n, &said);
	s->each += said.known ? m->weight[v->run] * (double)each_ns(&said) : 0;
	s->bytes = sum(s->bytes, bytes);
	s->gain += said.known ? m->weight[v->run] * (double)said.worth_ns : 0;
	s->weight += m->weight[v->run];
	s->never += !moved && said.known;
	s->pays += moved && said.known && said.worth_ns > 0;
	s->runs++;
}

/* The group's own figures are used if several runs have it and all agree. */
static bool stands_alone(const struct sums *s)
{
	return s->runs > 1 && (s->never == s->runs || s->pays == s->runs);
}

static void add_up(struct maker *m, const struct row *v, size_t n, struct sums *ret)
{
	uint32_t stamp = (uint32_t)m->p->nr_entries + 1;
	struct sums s = { 0 };

	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && v[j].run == v[i].run; j++)
			;
		add_run(m, v + i, j - i, &s);
	}
	if (!stands_alone(&s)) {
		s.gain = s.weight = s.each = 0;
		for (size_t i = 0; i < n; i++) {
			uint32_t at = m->home[m->first[v[i].run] + v[i].alloc];

			if (m->stamp[at] == stamp)
				continue;
			m->stamp[at] = stamp;
			s.gain += m->homes[at].gain;
			s.each += m->homes[at].each;
			s.weight = MAX(s.weight, m->homes[at].weight);
			s.unknown |= m->homes[at].unknown;
		}
	}
	*ret = s;
}

/* Returns the share of allocations that would get this verdict individually. */
static double agreement(const struct maker *m, const struct row *v, size_t n, bool pin)
{
	size_t same = 0;

	if (n == 1)
		return 1;
	for (size_t i = 0; i < n; i++)
		same += (ttmon_run_moved(alloc_of(m, &v[i])) != 0) == pin;
	return (double)same / (double)n;
}

static double evidence(const struct sums *s, bool pin)
{
	double n = (double)s->copies, age = (double)s->age_ns;

	return pin ? n / (n + 2) : age / (age + (double)NSEC_PER_SEC);
}

static bool has_sizes(const struct maker *m, enum ttmon_profile_way way, const struct row *r);

static uint8_t holds(const struct maker *m, const struct row *r)
{
	return m->holds[m->first[r->run] + r->alloc];
}

/* Returns the match that an entry claims, and its confidence. */
static uint8_t match_of(const struct maker *m, enum ttmon_profile_way way, const struct row *r, double *confidence)
{
	static const double sure[TTMON_MATCH_MAX] = { 0, 0.4, 0.7, 0.9, 1 };
	uint8_t match = ttmon_profile_way_match(way);
	uint8_t need = way == TTMON_WAY_EXACT ? SITE_SURE : way == TTMON_WAY_NAME_EXACT ? NAME_SURE : 0;

	if ((holds(m, r) & need) != need)
		match = TTMON_MATCH_SITE;
	if (match > TTMON_MATCH_NAMES && has_sizes(m, way, r))
		match = TTMON_MATCH_NAMES;
	*confidence = way == TTMON_WAY_NAMES_ANY || way == TTMON_WAY_LEAF ? 0.5 : sure[match];
	return match;
}

static int add_entry(struct maker *m, enum ttmon_profile_way way, const struct row *v, size_t n)
{
	struct ttmon_profile *p = m->p;
	const struct ttmon_run *run = m->runs[v->run];
	struct ttmon_profile_entry *e;
	uint64_t program;
	struct sums s;
	double level;

	if (TTMON_GROW(p->entries, p->cap_entries, p->nr_entries + 1, 64) ||
	    TTMON_GROW(m->keys, m->cap_keys, p->nr_entries + 1, 64))
		return -ENOMEM;
	if (TTMON_GROW(p->members, p->cap_members, p->nr_members + n, 64))
		return -ENOMEM;
	add_up(m, v, n, &s);
	program = ttmon_hmap_get(&m->programs, program_key(m, &run->procs[v->proc]));
	e = &p->entries[p->nr_entries];
	*e = (struct ttmon_profile_entry){
		.gain_ns = (int64_t)(s.gain / MAX(s.weight, m->ran[program])),
		.h2d_bytes = s.bytes / n,
		.runs = s.runs,
		.member = (uint32_t)p->nr_members,
		.nr = (uint32_t)n,
		.verdict = s.gain > 0  ? TTMON_VERDICT_PIN
			   : s.unknown ? TTMON_VERDICT_UNKNOWN
				       : TTMON_VERDICT_NO_PIN,
		.in_place = s.in_place,
		.alone = s.gain > 0 && s.each > 0,
	};
	e->match = match_of(m, way, v, &level);
	e->confidence =
		(float)(level * evidence(&s, s.gain > 0) * s.complete / (double)n * agreement(m, v, n, s.gain > 0));
	for (size_t i = 0; i < n; i++)
		p->members[p->nr_members++] = (struct ttmon_profile_member){ v[i].run, v[i].alloc };
	m->keys[p->nr_entries++] = v->key;
	return 0;
}

/* ---- conditions of the strictest levels ---- */

static uint64_t sizes_key(const struct maker *m, enum ttmon_profile_way way, const struct row *r)
{
	const struct ttmon_run_alloc *a = alloc_of(m, r);

	if (way == TTMON_WAY_NAME_EXACT || way == TTMON_WAY_NAME_SITE)
		return ttmon_site_hash_name(TTMON_FNV_BASIS ^ m->p->seed, a->name);
	return ttmon_profile_has_key(m->p, site_of(m, r)->exact);
}

static bool has_sizes(const struct maker *m, enum ttmon_profile_way way, const struct row *r)
{
	return ttmon_hmap_get(&m->sizes, sizes_key(m, way, r)) == MANY;
}

static int note_size(struct maker *m, enum ttmon_profile_way way, const struct row *r)
{
	uint64_t size = MIN(alloc_of(m, r)->size, (uint64_t)INT64_MAX), key = sizes_key(m, way, r);
	uint64_t at = ttmon_hmap_get(&m->sizes, key);

	if (at == size || at == MANY)
		return 0;
	return ttmon_hmap_put(&m->sizes, key, at == TTMON_HMAP_NONE ? size : MANY) < 0 ? -ENOMEM : 0;
}

/* Returns whether all were live at one time. The rows are those of one process. */
static bool together(const struct maker *m, const struct row *v, size_t n)
{
	uint64_t last = 0, gone = UINT64_MAX;

	for (size_t i = 0; i < n; i++) {
		last = MAX(last, alloc_of(m, &v[i])->alloc_ns);
		gone = MIN(gone, alloc_of(m, &v[i])->free_ns);
	}
	return n == 1 || last < gone;
}

/*
 * Returns whether ordinals distinguish the allocations of this site and size (see profile.h). The rows
 * are one group of NAME_SITE or SITE.
 */
static bool ordinals_hold(struct maker *m, enum ttmon_profile_way way, const struct row *v, size_t n, bool *sure)
{
	size_t count = 0;

	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && v[j].run == v[i].run && v[j].proc == v[i].proc; j++)
			;
		if (count && j - i != count)
			return false;
		if (!together(m, v + i, j - i))
			return false;
		count = j - i;
	}
	memset(m->signs, 0, count);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_run_alloc *a = alloc_of(m, &v[i]);
		uint32_t ordinal = way == TTMON_WAY_SITE ? a->ordinal : a->name_ordinal;
		int8_t sign = pays_alone(m, &v[i], 1) ? 1 : -1;

		if ((count > 1 && !site_of(m, &v[i])->in_main) || (way == TTMON_WAY_SITE && site_of(m, &v[i])->cut))
			return false;
		if (ordinal >= count || (m->signs[ordinal] && m->signs[ordinal] != sign))
			return false;
		m->signs[ordinal] = sign;
	}
	*sure = count == 1 || v[n - 1].run != v[0].run;
	return true;
}

static void note_ordinals(struct maker *m, enum ttmon_profile_way way, const struct row *v, size_t n)
{
	bool sure = false;
	int bits;

	if (!ordinals_hold(m, way, v, n, &sure))
		return;
	bits = way == TTMON_WAY_SITE ? SITE_HOLDS | (sure ? SITE_SURE : 0) : NAME_HOLDS | (sure ? NAME_SURE : 0);
	for (size_t i = 0; i < n; i++)
		m->holds[m->first[v[i].run] + v[i].alloc] |= (uint8_t)bits;
}

/* ---- homes ---- */

static int by_key(const void *pa, const void *pb);

static uint64_t home_key(const struct maker *m, const struct row *r)
{
	const struct ttmon_run_alloc *a = alloc_of(m, r);
	const struct ttmon_run_site *s = site_of(m, r);

	if (ttmon_run_has_tag(a) && a->name)
		return ttmon_site_hash_name(TTMON_FNV_BASIS ^ m->p->seed, a->name);
	return ttmon_mix64(m->p->seed ^ (s->exact ?: s->names ?: a->method));
}

static void add_home(struct maker *m, const struct row *v, size_t n)
{
	struct home *h = &m->homes[m->nr_homes];

	*h = (struct home){ 0 };
	for (size_t i = 0, j; i < n; i = j) {
		struct ttmon_said said;

		for (j = i + 1; j < n && v[j].run == v[i].run; j++)
			;
		judge_rows(m, v + i, j - i, &said);
		h->gain += said.known ? m->weight[v[i].run] * (double)said.worth_ns : 0;
		h->each += said.known ? m->weight[v[i].run] * (double)each_ns(&said) : 0;
		h->weight += m->weight[v[i].run];
		h->unknown |= !said.known;
	}
	for (size_t i = 0; i < n; i++)
		m->home[m->first[v[i].run] + v[i].alloc] = m->nr_homes;
	m->nr_homes++;
}

static void make_homes(struct maker *m)
{
	size_t n = 0;

	for (uint32_t r = 0; r < m->nr_runs; r++)
		for (uint32_t i = 0; i < m->runs[r]->nr_allocs; i++) {
			struct row row = { .run = r, .proc = m->runs[r]->allocs[i].proc, .alloc = i };

			if (!ttmon_profile_wants(&m->runs[r]->allocs[i]))
				continue;
			row.key = home_key(m, &row);
			m->rows[n++] = row;
		}
	qsort(m->rows, n, sizeof(*m->rows), by_key);
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && m->rows[j].key == m->rows[i].key; j++)
			;
		add_home(m, m->rows + i, j - i);
	}
}

/* ---- all groups ---- */

static int by_key(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->run != b->run)
		return a->run < b->run ? -1 : 1;
	if (a->proc != b->proc)
		return a->proc < b->proc ? -1 : 1;
	return (a->alloc > b->alloc) - (a->alloc < b->alloc);
}

/* Gets the position of the next allocation of this method in its process. */
static int next_order(struct ttmon_hmap *orders, const struct ttmon_run_alloc *a, uint32_t *ret)
{
	uint64_t key = (uint64_t)a->proc << 8 | a->method, at = ttmon_hmap_get(orders, key);

	*ret = at == TTMON_HMAP_NONE ? 0 : (uint32_t)at + 1;
	return ttmon_hmap_put(orders, key, *ret) < 0 ? -ENOMEM : 0;
}

static bool row_key(const struct maker *m, enum ttmon_profile_way way, const struct row *r, uint32_t order,
		    uint64_t *ret)
{
	const struct ttmon_run_alloc *a = alloc_of(m, r);
	struct ttmon_profile_key key;

	ttmon_profile_key_of(m->runs[r->run], a, order, &key);
	if (way == TTMON_WAY_EXACT)
		return holds(m, r) & SITE_HOLDS && ttmon_profile_way_key(m->p, way, &key, a->ordinal, ret);
	if (way == TTMON_WAY_NAME_EXACT)
		return holds(m, r) & NAME_HOLDS && ttmon_profile_way_key(m->p, way, &key, a->name_ordinal, ret);
	return ttmon_profile_way_key(m->p, way, &key, 0, ret);
}

static int gather(struct maker *m, enum ttmon_profile_way way, size_t *ret)
{
	size_t n = 0;

	for (uint32_t r = 0; r < m->nr_runs; r++) {
		const struct ttmon_run *run = m->runs[r];

		ttmon_hmap_fini(&m->orders);
		m->orders = (struct ttmon_hmap){ 0 };
		for (uint32_t i = 0; i < run->nr_allocs; i++) {
			struct row row = { .run = r, .proc = run->allocs[i].proc, .alloc = i };
			uint32_t order = TTMON_RUN_NONE;
			int err = 0;

			if (!ttmon_profile_wants(&run->allocs[i]))
				continue;
			if (way == TTMON_WAY_ORDER)
				err = next_order(&m->orders, &run->allocs[i], &order);
			if (err)
				return err;
			if (row_key(m, way, &row, order, &row.key))
				m->rows[n++] = row;
		}
	}
	qsort(m->rows, n, sizeof(*m->rows), by_key);
	*ret = n;
	return 0;
}

/*
 * Returns whether the innermost function is always reached through the same functions. If all
 * allocations go through it, it distinguishes nothing.
 */
static bool one_way_there(const struct maker *m, const struct row *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (site_of(m, &v[i])->names != site_of(m, v)->names)
			return false;
	return true;
}

static int make_entries(struct maker *m, enum ttmon_profile_way way)
{
	size_t n = 0;
	int err = gather(m, way, &n);

	for (size_t i = 0; i < n && !err && (way == TTMON_WAY_SITE || way == TTMON_WAY_NAME_SITE); i++)
		err = note_size(m, way, &m->rows[i]);
	for (size_t i = 0, j; i < n && !err; i = j) {
		for (j = i + 1; j < n && m->rows[j].key == m->rows[i].key; j++)
			;
		if (way != TTMON_WAY_LEAF || one_way_there(m, m->rows + i, j - i))
			err = add_entry(m, way, m->rows + i, j - i);
		if (way == TTMON_WAY_SITE || way == TTMON_WAY_NAME_SITE)
			note_ordinals(m, way, m->rows + i, j - i);
	}
	return err;
}

static bool is_one_of(const struct ttmon_run *run, const struct ttmon_run_alloc *a, const uint64_t *sites, size_t n)
{
	const struct ttmon_run_site *site = &run->sites[a->site];

	for (size_t i = 0; i < n; i++)
		if (sites[i] == site->key || (site->exact && sites[i] == site->exact))
			return true;
	return !sites;
}

/* Sorts allocation indexes by process; ret_first: where each process begins in ret_at. */
static int by_process(const struct ttmon_run *run, uint32_t **ret_at, uint32_t **ret_first)
{
	_cleanup_free_ uint32_t *at = malloc((run->nr_allocs + 1) * sizeof(*at));
	_cleanup_free_ uint32_t *first = calloc(run->nr_procs + 2, sizeof(*first));

	if (!at || !first)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr_allocs; i++)
		first[run->allocs[i].proc + 1]++;
	for (size_t p = 0; p < run->nr_procs; p++)
		first[p + 1] += first[p];
	for (size_t i = 0; i < run->nr_allocs; i++)
		at[first[run->allocs[i].proc]++] = (uint32_t)i;
	memmove(first + 1, first, run->nr_procs * sizeof(*first));
	first[0] = 0;
	*ret_at = TAKE_PTR(at);
	*ret_first = TAKE_PTR(first);
	return 0;
}

/*
 * Returns 1 if it is worth pinning and not pinned individually (as memory that kernels may read in
 * place is), 0, or -ENOMEM.
 */
static int counts(const struct ttmon_profile *p, const struct ttmon_run *run, const struct ttmon_run_alloc *a,
		  struct ttmon_hmap *orders, const uint64_t *sites, size_t nr_sites)
{
	struct ttmon_answer answer = { 0 };
	struct ttmon_profile_key key;
	uint32_t order;

	if (!ttmon_profile_wants(a))
		return 0;
	if (next_order(orders, a, &order))
		return -ENOMEM;
	ttmon_profile_key_of(run, a, order, &key);
	ttmon_profile_lookup(p, &key, &answer);
	return answer.verdict == TTMON_VERDICT_PIN && !answer.in_place && !(a->flags & TTMON_RUN_IN_PLACE) &&
	       is_one_of(run, a, sites, nr_sites);
}

static int peak_of_run(const struct ttmon_profile *p, const struct ttmon_run *run, const uint64_t *sites,
		       size_t nr_sites, uint64_t *peak)
{
	_cleanup_(ttmon_hmap_fini) struct ttmon_hmap orders = { 0 };
	_cleanup_free_ struct ttmon_edge *edges = malloc((run->nr_allocs + 1) * 2 * sizeof(*edges));
	_cleanup_free_ bool *pays = calloc(run->nr_allocs + 1, sizeof(*pays));
	_cleanup_free_ uint32_t *at = NULL, *first = NULL;
	int err = edges && pays ? by_process(run, &at, &first) : -ENOMEM;

	/* In the order of the run, in which positions are counted. */
	for (size_t i = 0; i < run->nr_allocs && !err; i++) {
		int is = counts(p, run, &run->allocs[i], &orders, sites, nr_sites);

		pays[i] = is > 0;
		err = MIN(is, 0);
	}
	for (size_t proc = 0; proc < run->nr_procs && !err; proc++) {
		size_t n = 0;

		for (uint32_t k = first[proc]; k < first[proc + 1]; k++) {
			const struct ttmon_run_alloc *a = &run->allocs[at[k]];

			if (!pays[at[k]])
				continue;
			ttmon_edges_of(edges + n, a->alloc_ns, a->free_ns, ttmon_run_pages(a));
			n += 2;
		}
		*peak = MAX(*peak, ttmon_edges_peak(edges, n));
	}
	return err;
}

int ttmon_profile_peak(const struct ttmon_profile *p, const struct ttmon_run *const *runs, size_t n,
		       const uint64_t *sites, size_t nr_sites, uint64_t *ret_pages)
{
	uint64_t peak = 0;
	int err = 0;

	for (size_t r = 0; r < n && !err; r++)
		err = peak_of_run(p, runs[r], sites, nr_sites, &peak);
	if (!err)
		*ret_pages = peak;
	return err;
}

static int maker_init(struct maker *m)
{
	size_t all = 0, procs = 0;

	m->first = calloc(m->nr_runs, sizeof(*m->first));
	m->weight = calloc(m->nr_runs, sizeof(*m->weight));
	if (!m->first || !m->weight)
		return -ENOMEM;
	for (size_t r = 0; r < m->nr_runs; r++) {
		m->first[r] = all;
		m->weight[r] = m->runs[r]->complete ? 1 : 0.7;
		all += m->runs[r]->nr_allocs;
		procs += m->runs[r]->nr_procs;
		for (size_t i = 0; i < m->runs[r]->nr_allocs; i++)
			m->nr_allocs += ttmon_profile_wants(&m->runs[r]->allocs[i]);
	}
	/* Members are counted in 32 bits, over all ways. */
	if (m->nr_allocs > UINT32_MAX / TTMON_WAY_MAX || m->nr_runs >= UINT32_MAX)
		return -E2BIG;
	m->holds = calloc(all + 1, sizeof(*m->holds));
	m->home = calloc(all + 1, sizeof(*m->home));
	m->homes = calloc(m->nr_allocs + 1, sizeof(*m->homes));
	m->stamp = calloc(m->nr_allocs + 1, sizeof(*m->stamp));
	m->ran = calloc(procs + 1, sizeof(*m->ran));
	m->last = calloc(procs + 1, sizeof(*m->last));
	m->signs = calloc(m->nr_allocs + 1, sizeof(*m->signs));
	m->rows = calloc(m->nr_allocs + 1, sizeof(*m->rows));
	m->edges = calloc(m->nr_allocs + 1, 2 * sizeof(*m->edges));
	if (!m->holds || !m->home || !m->homes || !m->stamp || !m->ran || !m->last || !m->signs || !m->rows ||
	    !m->edges)
		return -ENOMEM;
	make_homes(m);
	return count_programs(m);
}

/* Text is copied in two passes: the first computes the size, the second fills the memory. */
struct copy {
	struct ttmon_profile *p;
	struct ttmon_hmap sites, objects, names; /* entries already seen; names by their address in the run */
	size_t nr_sites, nr_frames, nr_objects, text;
};

static void copy_fini(struct copy *c)
{
	ttmon_hmap_fini(&c->sites);
	ttmon_hmap_fini(&c->objects);
	ttmon_hmap_fini(&c->names);
}

/* Returns the offset of a text in p->text. TTMON_HMAP_NONE: out of memory. */
static uint64_t put_text(struct copy *c, const char *s)
{
	uint64_t key = ttmon_mix64((uintptr_t)s), at = ttmon_hmap_get(&c->names, key);
	size_t n = strlen(s) + 1;

	if (at != TTMON_HMAP_NONE)
		return at;
	at = c->text;
	if (ttmon_hmap_put(&c->names, key, at) < 0)
		return TTMON_HMAP_NONE;
	if (c->p->text)
		memcpy(c->p->text + at, s, n);
	c->text += n;
	return at;
}

static int put_object(struct copy *c, const struct ttmon_run_object *o, uint32_t *ret)
{
	uint64_t path = put_text(c, o->path), key, at;

	if (path == TTMON_HMAP_NONE)
		return -ENOMEM;
	key = ttmon_site_hash_name(TTMON_FNV_BASIS ^ c->p->seed, o->base);
	for (unsigned int i = 0; i < o->build_id_len; i++)
		key = ttmon_mix64(key ^ o->build_id[i]);
	at = ttmon_hmap_get(&c->objects, key);
	if (at == TTMON_HMAP_NONE) {
		at = c->nr_objects++;
		if (ttmon_hmap_put(&c->objects, key, at) < 0)
			return -ENOMEM;
		if (c->p->objects) {
			c->p->objects[at] = *o;
			c->p->objects[at].path = c->p->text + path;
			c->p->objects[at].base = c->p->text + path + (o->base - o->path);
		}
	}
	*ret = (uint32_t)at;
	return 0;
}

static int put_frame(struct copy *c, const struct ttmon_run *run, const struct ttmon_run_frame *f)
{
	struct ttmon_run_frame out = {
		.object = TTMON_RUN_NONE, .offset = f->offset, .delta = f->delta, .plumbing = f->plumbing
	};
	uint64_t fn = f->fn ? put_text(c, f->fn) : 0;
	int err = 0;

	if (fn == TTMON_HMAP_NONE)
		return -ENOMEM;
	if (f->object != TTMON_RUN_NONE)
		err = put_object(c, &run->objects[f->object], &out.object);
	if (err)
		return err;
	if (c->p->frames) {
		out.fn = f->fn ? c->p->text + fn : NULL;
		c->p->frames[c->nr_frames] = out;
	}
	c->nr_frames++;
	return 0;
}

static int put_site(struct copy *c, const struct ttmon_run *run, const struct ttmon_run_site *s)
{
	uint64_t key = ttmon_mix64(s->exact ^ c->p->seed) ^ ttmon_mix64(s->names);
	uint32_t n = 0;

	for (uint32_t own = 0; n < s->nframes && own < TTMON_RUN_KEY_FRAMES; n++)
		own += !run->frames[s->frame + n].plumbing;
	if ((!s->exact && !s->names) || ttmon_hmap_get(&c->sites, key) != TTMON_HMAP_NONE)
		return 0;
	if (ttmon_hmap_put(&c->sites, key, c->nr_sites) < 0)
		return -ENOMEM;
	if (c->p->sites)
		c->p->sites[c->nr_sites] = (struct ttmon_profile_site){
			.exact = s->exact,
			.names = s->names,
			.frames = c->p->frames + c->nr_frames,
			.nframes = n,
			.by_depth = s->by_depth,
		};
	c->nr_sites++;
	for (uint32_t i = 0; i < n; i++) {
		int err = put_frame(c, run, &run->frames[s->frame + i]);

		if (err)
			return err;
	}
	return 0;
}

static int put_all(struct copy *c, const struct ttmon_run *const *runs, size_t n)
{
	for (size_t r = 0; r < n; r++)
		for (size_t i = 0; i < runs[r]->nr_allocs; i++) {
			const struct ttmon_run_alloc *a = &runs[r]->allocs[i];
			int err = ttmon_profile_wants(a) ? put_site(c, runs[r], &runs[r]->sites[a->site]) : 0;

			if (err)
				return err;
		}
	return 0;
}

static int copy_sites(struct ttmon_profile *p, const struct ttmon_run *const *runs, size_t n)
{
	_cleanup_(copy_fini) struct copy count = { .p = p }, fill = { .p = p };
	int err = put_all(&count, runs, n);

	if (err)
		return err;
	p->text = malloc(count.text + 1);
	p->sites = calloc(count.nr_sites + 1, sizeof(*p->sites));
	p->frames = calloc(count.nr_frames + 1, sizeof(*p->frames));
	p->objects = calloc(count.nr_objects + 1, sizeof(*p->objects));
	if (!p->text || !p->sites || !p->frames || !p->objects)
		return -ENOMEM;
	err = put_all(&fill, runs, n);
	p->nr_sites = fill.nr_sites;
	p->nr_objects = fill.nr_objects;
	return err;
}

int ttmon_profile_new(const struct ttmon_run *const *runs, size_t n, const struct ttmon_cost *cost,
		      struct ttmon_profile **ret)
{
	/* The ways that find out about ordinals and sizes come before the stricter ways that use this. */
	static const enum ttmon_profile_way order[] = { TTMON_WAY_NAME_SITE, TTMON_WAY_SITE,	 TTMON_WAY_NAME_EXACT,
							TTMON_WAY_EXACT,     TTMON_WAY_SITE_ANY, TTMON_WAY_NEAR,
							TTMON_WAY_NEAR_ANY,  TTMON_WAY_NAMES,	 TTMON_WAY_LEAF,
							TTMON_WAY_NAMES_ANY, TTMON_WAY_ORDER };
	_cleanup_(ttmon_profile_freep) struct ttmon_profile *p = NULL;
	_cleanup_(maker_fini) struct maker m = { .runs = runs, .nr_runs = n, .cost = *cost };
	int err;

	if (!n || !cost->pageable_bps || !cost->pinned_bps || !cost->pinning_bps)
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->seed = ttmon_run_seed();
	m.p = p;
	err = maker_init(&m);
	for (size_t i = 0; i < ARRAY_SIZE(order) && !err; i++)
		err = make_entries(&m, order[i]);
	err = err ? err : copy_sites(p, runs, n);
	err = err ? err : ttmon_profile_make_slots(p, m.keys);
	p->totals = (struct ttmon_profile_totals){ .runs = n, .entries = p->nr_entries, .sites = p->nr_sites };
	err = err ? err : ttmon_profile_peak(p, runs, n, NULL, 0, &p->totals.peak_pin_pages);
	if (err)
		return err;
	*ret = TAKE_PTR(p);
	return 0;
}
