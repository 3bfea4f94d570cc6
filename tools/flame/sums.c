// SPDX-License-Identifier: GPL-2.0-only
/*
 * sums.c: what each call stack is charged with. Lives of allocations are read without trees: 24 bytes
 * each, to find the peak.
 */
#include "lib/base/grow.h"
#include "lib/base/names.h"
#include "lib/base/util.h"
#include "lib/read/db.h"
#include "tools/flame/flame.h"

struct life {
	uint64_t begin_ns, end_ns, size;
	uint32_t site;
};

struct site {
	unsigned __int128 byte_ns;
	uint64_t peak, end, pin_ns;
};

struct job {
	struct ttmon_flame *flame;
	struct life *lives;
	size_t nr_lives, cap_lives;
	struct site *sites;
	bool failed;
};

/* Keeps nothing in the run. */
static bool take_life(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a)
{
	bool live = a->flags & TTMON_RUN_LIVE;
	struct job *j = ctx;
	struct site *s;

	if (!j->sites)
		j->sites = calloc(run->nr_sites, sizeof(*j->sites));
	if (!j->sites || TTMON_GROW(j->lives, j->cap_lives, j->nr_lives + 1, 4096)) {
		j->failed = true;
		return false;
	}
	if (ttmon_run_is_unknown(a))
		j->flame->unknown++;
	if (!ttmon_run_pins_pages(a) || ttmon_run_is_unknown(a))
		return false;
	s = &j->sites[a->site];
	s->byte_ns += (unsigned __int128)a->size * (a->free_ns - a->alloc_ns);
	s->pin_ns = ttmon_add_sat(s->pin_ns, ttmon_add_sat(a->pin_ns, a->unpin_ns));
	if (live)
		s->end = ttmon_add_sat(s->end, a->size);
	/* One that ends in the moment in which it begins was there. */
	j->lives[j->nr_lives++] =
		(struct life){ a->alloc_ns, live ? UINT64_MAX : MAX(a->free_ns, a->alloc_ns + 1), a->size, a->site };
	return false;
}

/* ---- the peak ---- */

static int by_begin(const void *a, const void *b)
{
	const struct life *x = a, *y = b;

	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

struct end {
	uint64_t ns, size;
};

static int by_ns(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

/* When most was pinned; what is released at the same moment goes first. */
static int find_peak(struct job *j)
{
	_cleanup_free_ struct end *ends = malloc((j->nr_lives + 1) * sizeof(*ends));
	uint64_t now = 0, peak = 0;
	bool sorted = true;
	size_t at = 0;

	if (!ends)
		return -ENOMEM;
	for (size_t i = 0; i < j->nr_lives; i++) {
		ends[i] = (struct end){ j->lives[i].end_ns, j->lives[i].size };
		sorted &= !i || j->lives[i - 1].begin_ns <= j->lives[i].begin_ns;
	}
	/* As they are written they are sorted. */
	if (!sorted)
		qsort(j->lives, j->nr_lives, sizeof(*j->lives), by_begin);
	qsort(ends, j->nr_lives, sizeof(*ends), by_ns);
	for (size_t i = 0; i < j->nr_lives; i++) {
		for (; ends[at].ns <= j->lives[i].begin_ns; at++)
			now -= MIN(now, ends[at].size);
		now = ttmon_add_sat(now, j->lives[i].size);
		if (now > peak) {
			peak = now;
			j->flame->peak_ns = j->lives[i].begin_ns;
		}
	}
	for (size_t i = 0; peak && i < j->nr_lives; i++) {
		const struct life *l = &j->lives[i];

		if (l->begin_ns <= j->flame->peak_ns && l->end_ns > j->flame->peak_ns)
			j->sites[l->site].peak = ttmon_add_sat(j->sites[l->site].peak, l->size);
	}
	return 0;
}

/* ---- charges ---- */

static void charge(struct ttmon_flame *f, uint32_t node, unsigned int of, uint64_t v)
{
	f->nodes[node].self[of] = ttmon_add_sat(f->nodes[node].self[of], v);
	f->total[of] = ttmon_add_sat(f->total[of], v);
}

static uint64_t pageable(const json_t *site, const char *direction)
{
	uint64_t bytes = 0;

	ttmon_db_value(json_array_get(json_object_get(json_object_get(site, direction), "pageable"), 1), &bytes);
	return bytes;
}

/*
 * The database's sum of a site is that of all its allocations, also of those that are no longer in
 * the list. It is that of calls that pin where nothing else is allocated there; else those in the list
 * count.
 */
static uint64_t pin_ns(const json_t *site, uint64_t listed)
{
	const json_t *methods = json_object_get(site, "methods"), *name;
	struct ttmon_run_alloc a = { 0 };
	size_t i;

	json_array_foreach(methods, i, name)
	{
		const char *text = json_string_value(name);

		for (a.method = 0; a.method < TTMON_METHOD_MAX; a.method++)
			if (text && !strcmp(text, ttmon_method_name(a.method)))
				break;
		if (a.method == TTMON_METHOD_MAX || !ttmon_run_pins_pages(&a))
			return listed;
	}
	return json_array_size(methods) ? MAX(listed, ttmon_db_get(site, "pin_ns", 0)) : listed;
}

/* Whether the outermost frames of a site are missing. */
static bool is_cut(const json_t *site)
{
	const json_t *stack = json_object_get(site, "stack");

	return stack && strcmp(ttmon_db_str(stack, "end", ""), "complete") != 0;
}

static int add_sites(const struct job *j, const struct ttmon_run *run, const struct ttmon_db *db)
{
	const json_t *rows = ttmon_db_member(db, "sites");
	struct ttmon_flame *f = j->flame;

	for (uint32_t i = 0; i < run->nr_sites; i++) {
		const struct site none = { 0 }, *s = j->sites ? &j->sites[i] : &none;
		const json_t *row = json_array_get(rows, i);
		uint64_t moved = ttmon_add_sat(pageable(row, "h2d"), pageable(row, "d2h"));
		uint64_t pin = pin_ns(row, s->pin_ns);
		uint32_t node;

		if (!s->byte_ns && !s->peak && !s->end && !moved && !pin)
			continue;
		if (ttmon_flame_site(f, run, i, is_cut(row), &node))
			return -ENOMEM;
		charge(f, node, TTMON_FLAME_BYTE_SECONDS,
		       (uint64_t)MIN((s->byte_ns + NSEC_PER_SEC / 2) / NSEC_PER_SEC, (unsigned __int128)UINT64_MAX));
		charge(f, node, TTMON_FLAME_PEAK, s->peak);
		charge(f, node, TTMON_FLAME_END, s->end);
		charge(f, node, TTMON_FLAME_PAGEABLE, moved);
		charge(f, node, TTMON_FLAME_PIN, pin);
	}
	return 0;
}

/* The function that was called stands below its caller. */
static int add_waits(struct ttmon_flame *f, const struct ttmon_run *run, const json_t *waits)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(waits, "sites"), i, row)
	{
		uint64_t ns = ttmon_db_get(row, "ns", 0), site = ttmon_db_get(row, "site", 0);
		const char *fn = ttmon_db_str(row, "fn", NULL);
		uint32_t node;

		f->at_least[TTMON_FLAME_WAIT] |= ttmon_db_get(row, "unobserved", 0) != 0;
		if (!ns)
			continue;
		if (!fn) {
			if (ttmon_flame_child(f, 0, "(other calls)", TTMON_FLAME_NOTE, &node))
				return -ENOMEM;
		} else if (ttmon_flame_site(f, run, site < run->nr_sites ? (uint32_t)site : 0, false, &node) ||
			   ttmon_flame_child(f, node, fn, TTMON_FLAME_CALL, &node)) {
			return -ENOMEM;
		}
		charge(f, node, TTMON_FLAME_WAIT, ns);
	}
	return 0;
}

static int take_members(void *ctx, const struct ttmon_run *run, const struct ttmon_db *db)
{
	const json_t *waits = ttmon_db_member(db, "waits");
	struct job *j = ctx;
	struct ttmon_flame *f = j->flame;
	bool lost = !run->complete || run->at_least;
	int err = j->failed ? -ENOMEM : find_peak(j);

	for (unsigned int i = 0; i < TTMON_FLAME_MAX; i++) {
		f->known[i] = true;
		f->at_least[i] = lost;
	}
	f->known[TTMON_FLAME_WAIT] = waits != NULL;
	/* Freed allocations that are no longer in the list. */
	f->at_least[TTMON_FLAME_BYTE_SECONDS] |= run->folded || run->evicted || f->unknown;
	f->at_least[TTMON_FLAME_PIN] |= run->folded || run->evicted || f->unknown;
	f->at_least[TTMON_FLAME_PEAK] |= run->folded || run->evicted || f->unknown;
	f->at_least[TTMON_FLAME_END] |= run->evicted || f->unknown;
	err = err ? err : add_sites(j, run, db);
	return err ? err : add_waits(f, run, waits);
}

int ttmon_flame_load(const char *path, struct ttmon_flame **ret, struct ttmon_run **ret_run, char *why, size_t n)
{
	_cleanup_(ttmon_flame_freep) struct ttmon_flame *f = NULL;
	struct job j = { 0 };
	const struct ttmon_run_opts opts = { .lives = true, .want = take_life, .members = take_members, .ctx = &j };
	int err = ttmon_flame_new(&f);

	if (err) {
		snprintf(why, n, "out of memory");
		return err;
	}
	j.flame = f;
	err = ttmon_run_load(path, &opts, ret_run, why, n);
	free(j.lives);
	free(j.sites);
	if (!err)
		*ret = TAKE_PTR(f);
	return err;
}
