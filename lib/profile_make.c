// SPDX-License-Identifier: GPL-2.0-only
/*
 * profile_make.c: runs into a profile. For each way to find an allocation again all of them are put in the order of that way's key; each stretch of
 * one key is a group, and a group becomes an entry. Time is that of sorting, memory some 24 bytes an allocation and way.
 */
#include "lib/profile_int.h"

/* Of a site that asked for several sizes. */
#define MANY (UINT64_MAX - 1)

/* Ordinals of an allocation mean something; they are also sure to. Of its site, of its name. */
enum { SITE_HOLDS = 1, SITE_SURE = 2, NAME_HOLDS = 4, NAME_SURE = 8 };

struct row {
	uint64_t key;
	uint32_t run, proc, alloc;
};

struct maker {
	struct ttmon_profile *p;
	const struct ttmon_run *const *runs;
	size_t nr_runs, nr_allocs; /* of interest, of all runs */
	struct ttmon_cost cost;
	uint8_t *holds; /* SITE_HOLDS, ...: of all allocations, run after run */
	size_t *first;	/* where those of a run begin */
	double *charge; /* ns to have an allocation pinned; of all, run after run */
	double *weight; /* of the runs */
	double *ran;	/* sum of the weights of the runs in which a program ran */
	uint32_t *last; /* run it was seen in last, and one */
	int8_t *signs;	/* scratch of ordinals_hold() */
	struct row *rows;
	struct ttmon_profile_edge *edges;
	uint64_t *keys; /* of the entries */
	struct ttmon_hmap programs, sizes, orders;
};

static void maker_fini(struct maker *m)
{
	free(m->holds);
	free(m->first);
	free(m->charge);
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

/* ---- programs: in how many runs was there one? ---- */

static uint64_t program_key(const struct maker *m, const struct ttmon_run_proc *p)
{
	const char *slash = p->exe ? strrchr(p->exe, '/') : NULL;

	return ttmon_site_hash_name(TTMON_SITE_HASH ^ m->p->seed, slash ? slash + 1 : p->exe ?: p->comm);
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

/* Most pages at one time. All rows are of one run. */
static uint64_t peak_pages(struct maker *m, const struct row *v, size_t n)
{
	size_t k = 0;

	if (n == 1)
		return ttmon_run_pages(alloc_of(m, v));
	for (size_t i = 0; i < n; i++)
		k += ttmon_profile_edges(m->edges + k, alloc_of(m, &v[i]));
	return ttmon_profile_peak(m->edges, k);
}

static double charge_of(const struct maker *m, const struct row *r)
{
	return m->charge[m->first[r->run] + r->alloc];
}

/* ns saved by one allocation alone; share: of its pages, that is what has to be pinned for it. */
static double own_gain(const struct maker *m, const struct row *r, double share)
{
	double pages = share * (double)ttmon_profile_pages_ns(&m->cost, ttmon_run_pages(alloc_of(m, r)));

	return ttmon_profile_saved_ns(&m->cost, ttmon_run_moved(alloc_of(m, r))) - MIN(pages, charge_of(m, r));
}

/* What is known of the rows of one group. */
struct sums {
	double gain, weight; /* of the runs that have it */
	double complete;     /* sum over the allocations */
	uint64_t bytes, copies;
	uint64_t pages, peak_pages; /* of all; at one time, summed over the runs */
	uint64_t age_ns;
	uint32_t runs;
	bool in_place;
};

static void add_run(struct maker *m, const struct row *v, size_t n, struct sums *s)
{
	uint64_t bytes = 0, moved = 0, peak;
	double charge = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ttmon_run_alloc *a = alloc_of(m, &v[i]);
		double complete = m->weight[v[i].run];

		if (a->flags & TTMON_RUN_MADE_UP)
			complete = MIN(complete, 0.5);
		else if (a->flags & TTMON_RUN_OLD)
			complete = MIN(complete, 0.7);
		s->complete += complete;
		bytes = sum(bytes, a->h2d_bytes);
		moved = sum(moved, ttmon_run_moved(a));
		charge += charge_of(m, &v[i]);
		s->copies += (uint64_t)a->h2d_copies + a->d2h_copies;
		s->pages += ttmon_run_pages(a);
		s->age_ns = sum(s->age_ns, a->free_ns - a->alloc_ns);
		s->in_place |= (a->flags & TTMON_RUN_IN_PLACE) != 0;
	}
	peak = peak_pages(m, v, n);
	s->bytes = sum(s->bytes, bytes);
	s->peak_pages += peak;
	s->gain += m->weight[v->run] * (ttmon_profile_saved_ns(&m->cost, moved) -
					MIN((double)ttmon_profile_pages_ns(&m->cost, peak), charge));
	s->weight += m->weight[v->run];
	s->runs++;
}

static void add_up(struct maker *m, const struct row *v, size_t n, struct sums *ret)
{
	struct sums s = { 0 };

	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && v[j].run == v[i].run; j++)
			;
		add_run(m, v + i, j - i, &s);
	}
	*ret = s;
}

/* How many would get this verdict each by itself, with its share of the group's pages? */
static double agreement(const struct maker *m, const struct row *v, size_t n, const struct sums *s, bool pin)
{
	double share = s->pages ? (double)s->peak_pages / (double)s->pages : 1;
	size_t same = 0;

	if (n == 1)
		return 1;
	for (size_t i = 0; i < n; i++)
		same += (own_gain(m, &v[i], share) > 0) == pin;
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

/* What an entry claims to be, and how sure that is. */
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

	if (p->nr_entries == p->cap_entries) {
		size_t cap = p->cap_entries ? p->cap_entries * 2 : 64;
		struct ttmon_profile_entry *entries = realloc(p->entries, cap * sizeof(*entries));
		uint64_t *keys;

		if (!entries)
			return -ENOMEM;
		p->entries = entries;
		keys = realloc(m->keys, cap * sizeof(*keys));
		if (!keys)
			return -ENOMEM;
		m->keys = keys;
		p->cap_entries = cap;
	}
	if (p->nr_members + n > p->cap_members) {
		size_t cap = MAX(p->nr_members + n, p->cap_members + p->cap_members / 2);
		struct ttmon_profile_member *members = realloc(p->members, cap * sizeof(*members));

		if (!members)
			return -ENOMEM;
		p->members = members;
		p->cap_members = cap;
	}
	add_up(m, v, n, &s);
	program = ttmon_hmap_get(&m->programs, program_key(m, &run->procs[v->proc]));
	e = &p->entries[p->nr_entries];
	*e = (struct ttmon_profile_entry){
		.gain_ns = (int64_t)(s.gain / MAX(s.weight, m->ran[program])),
		.h2d_bytes = s.bytes / n,
		.runs = s.runs,
		.member = (uint32_t)p->nr_members,
		.nr = (uint32_t)n,
		.verdict = s.gain > 0 ? TTMON_VERDICT_PIN : TTMON_VERDICT_NO_PIN,
		.in_place = s.in_place,
	};
	e->match = match_of(m, way, v, &level);
	e->confidence =
		(float)(level * evidence(&s, s.gain > 0) * s.complete / (double)n * agreement(m, v, n, &s, s.gain > 0));
	for (size_t i = 0; i < n; i++)
		p->members[p->nr_members++] = (struct ttmon_profile_member){ v[i].run, v[i].alloc };
	m->keys[p->nr_entries++] = v->key;
	return 0;
}

/* ---- which of the strictest claims hold ---- */

static uint64_t sizes_key(const struct maker *m, enum ttmon_profile_way way, const struct row *r)
{
	const struct ttmon_run_alloc *a = alloc_of(m, r);

	if (way == TTMON_WAY_NAME_EXACT || way == TTMON_WAY_NAME_SITE)
		return ttmon_site_hash_name(TTMON_SITE_HASH ^ m->p->seed, a->name);
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

/* Were they all there at one time? The rows are those of one process. */
static bool together(const struct maker *m, const struct row *v, size_t n)
{
	uint64_t last = 0, gone = UINT64_MAX;

	for (size_t i = 0; i < n; i++) {
		last = MAX(last, alloc_of(m, &v[i])->alloc_ns);
		gone = MIN(gone, alloc_of(m, &v[i])->free_ns);
	}
	return n == 1 || last < gone;
}

/* Do ordinals tell the allocations of this site and size apart? (profile.h) The rows are one group of NAME_SITE or SITE. */
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
		int8_t sign = own_gain(m, &v[i], 1) > 0 ? 1 : -1;

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

/* The place of the next allocation of this method in its process. */
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

/* Is the innermost function only ever reached through the same functions? One that all allocations go through says nothing. */
static bool one_way_there(const struct maker *m, const struct row *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (site_of(m, &v[i])->names != site_of(m, v)->names)
			return false;
	return true;
}

static int make_entries(struct maker *m, enum ttmon_profile_way way)
{
	size_t n;
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

/* Of each run: the most pages at one time of what gets the verdict to be pinned. */
static int make_totals(struct maker *m)
{
	struct ttmon_profile *p = m->p;

	p->totals = (struct ttmon_profile_totals){ .runs = m->nr_runs, .entries = p->nr_entries, .sites = p->nr_sites };
	for (size_t r = 0; r < m->nr_runs; r++) {
		const struct ttmon_run *run = m->runs[r];
		_cleanup_(ttmon_hmap_fini) struct ttmon_hmap orders = { 0 };
		size_t n = 0;

		for (size_t i = 0; i < run->nr_allocs; i++) {
			struct ttmon_answer answer = { 0 };
			struct ttmon_profile_key key;
			uint32_t order;

			if (!ttmon_profile_wants(&run->allocs[i]))
				continue;
			if (next_order(&orders, &run->allocs[i], &order))
				return -ENOMEM;
			ttmon_profile_key_of(run, &run->allocs[i], order, &key);
			ttmon_profile_lookup(p, &key, &answer);
			if (answer.verdict == TTMON_VERDICT_PIN)
				n += ttmon_profile_edges(m->edges + n, &run->allocs[i]);
		}
		p->totals.peak_pin_pages = MAX(p->totals.peak_pin_pages, ttmon_profile_peak(m->edges, n));
	}
	return 0;
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
	m->charge = calloc(all + 1, sizeof(*m->charge));
	m->ran = calloc(procs + 1, sizeof(*m->ran));
	m->last = calloc(procs + 1, sizeof(*m->last));
	m->signs = calloc(m->nr_allocs + 1, sizeof(*m->signs));
	m->rows = calloc(m->nr_allocs + 1, sizeof(*m->rows));
	m->edges = calloc(m->nr_allocs + 1, 2 * sizeof(*m->edges));
	if (!m->holds || !m->charge || !m->ran || !m->last || !m->signs || !m->rows || !m->edges)
		return -ENOMEM;
	for (size_t r = 0; r < m->nr_runs; r++)
		if (ttmon_profile_charge(m->runs[r], &m->cost, m->p->seed, m->charge + m->first[r]))
			return -ENOMEM;
	return count_programs(m);
}

int ttmon_profile_new(const struct ttmon_run *const *runs, size_t n, const struct ttmon_cost *cost,
		      struct ttmon_profile **ret)
{
	/* What is known of ordinals and sizes has to be there before the stricter ways. */
	static const enum ttmon_profile_way order[] = { TTMON_WAY_NAME_SITE, TTMON_WAY_SITE,  TTMON_WAY_NAME_EXACT,
							TTMON_WAY_EXACT,     TTMON_WAY_NAMES, TTMON_WAY_LEAF,
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
	err = err ? err : ttmon_profile_copy_sites(p, runs, n);
	err = err ? err : ttmon_profile_make_slots(p, m.keys);
	err = err ? err : make_totals(&m);
	if (err)
		return err;
	*ret = TAKE_PTR(p);
	return 0;
}
