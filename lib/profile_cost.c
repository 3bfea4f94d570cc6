// SPDX-License-Identifier: GPL-2.0-only
/*
 * profile_cost.c: what it costs to have an allocation pinned, by itself and as one of many; peaks of pages over time. The cost side of the rule in
 * lib/profile.h.
 */
#include "lib/profile_int.h"

#define PAGE 4096

int64_t ttmon_profile_pages_ns(const struct ttmon_cost *cost, uint64_t pages)
{
	return ttmon_cost_ns(pages > UINT64_MAX / PAGE ? UINT64_MAX : pages * PAGE, cost->pinning_bps);
}

/* Not in whole ns: a few bytes that are moved once save less than one. */
static double exact_ns(uint64_t bytes, uint64_t bps)
{
	return MIN((double)bytes * NSEC_PER_SEC / (double)bps, (double)(INT64_MAX / 4));
}

double ttmon_profile_saved_ns(const struct ttmon_cost *cost, uint64_t bytes)
{
	return exact_ns(bytes, cost->pageable_bps) - exact_ns(bytes, cost->pinned_bps);
}

static int by_time(const void *pa, const void *pb)
{
	const struct ttmon_profile_edge *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return (a->pages > b->pages) - (a->pages < b->pages);
}

uint64_t ttmon_profile_peak(struct ttmon_profile_edge *e, size_t n)
{
	int64_t now = 0, peak = 0;

	qsort(e, n, sizeof(*e), by_time);
	for (size_t i = 0; i < n; i++) {
		now += e[i].pages;
		peak = MAX(peak, now);
	}
	return (uint64_t)peak;
}

size_t ttmon_profile_edges(struct ttmon_profile_edge *e, const struct ttmon_run_alloc *a)
{
	int64_t pages = (int64_t)ttmon_run_pages(a);

	e[0] = (struct ttmon_profile_edge){ a->alloc_ns, pages };
	e[1] = (struct ttmon_profile_edge){ MAX(a->free_ns, a->alloc_ns + 1), -pages };
	return 2;
}

/* An allocation that was moved, and who asked for it. */
struct asked {
	uint64_t by; /* call site, or name; 0: not known */
	uint32_t proc, alloc;
};

static int by_who(const void *pa, const void *pb)
{
	const struct asked *a = pa, *b = pb;

	if (a->by != b->by)
		return a->by < b->by ? -1 : 1;
	if (a->proc != b->proc)
		return a->proc < b->proc ? -1 : 1;
	return (a->alloc > b->alloc) - (a->alloc < b->alloc);
}

/* Pages times life: what an allocation holds of the pages that a pool gives out again and again. */
static double held(const struct ttmon_run_alloc *a)
{
	return (double)ttmon_run_pages(a) * (double)(MAX(a->free_ns, a->alloc_ns + 1) - a->alloc_ns);
}

/* The first and the last time at which that many pages are there; e is sorted. */
static void find_peaks(const struct ttmon_profile_edge *e, size_t n, uint64_t peak, uint64_t *first, uint64_t *last)
{
	int64_t now = 0;

	*first = UINT64_MAX;
	*last = 0;
	for (size_t i = 0; i < n; i++) {
		now += e[i].pages;
		if (now != (int64_t)peak)
			continue;
		*first = MIN(*first, e[i].ns);
		*last = e[i].ns;
	}
}

/* Fits into one page, and the most such pages at one time are needed without it too. */
static bool is_spare(const struct ttmon_run_alloc *a, uint64_t first, uint64_t last)
{
	return ttmon_run_pages(a) == 1 && (a->alloc_ns > first || MAX(a->free_ns, a->alloc_ns + 1) <= last);
}

/*
 * What fits into one page fills one, whatever its size. Those that no page more is needed for are one thing: if they pay together, each pays by what
 * it moves, and none is left out for being smaller than the rest.
 */
static void share_small(const struct ttmon_run *run, const struct ttmon_cost *cost, const struct asked *v, size_t n,
			struct ttmon_profile_edge *edges, double *charge)
{
	uint64_t first, last;
	double ns = 0, moved = 0;
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (ttmon_run_pages(&run->allocs[v[i].alloc]) == 1)
			k += ttmon_profile_edges(edges + k, &run->allocs[v[i].alloc]);
	find_peaks(edges, k, ttmon_profile_peak(edges, k), &first, &last);
	for (size_t i = 0; i < n; i++) {
		if (!is_spare(&run->allocs[v[i].alloc], first, last))
			continue;
		ns += charge[v[i].alloc];
		moved += ttmon_profile_saved_ns(cost, ttmon_run_moved(&run->allocs[v[i].alloc]));
	}
	if (moved <= ns)
		return;
	for (size_t i = 0; i < n; i++)
		if (is_spare(&run->allocs[v[i].alloc], first, last))
			charge[v[i].alloc] =
				ns * ttmon_profile_saved_ns(cost, ttmon_run_moved(&run->allocs[v[i].alloc])) / moved;
}

/* Those of one call site and process share what pinning the most of them that lived at one time costs. */
static void share(const struct ttmon_run *run, const struct ttmon_cost *cost, const struct asked *v, size_t n,
		  struct ttmon_profile_edge *edges, double *charge)
{
	double all = 0, ns;
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		k += ttmon_profile_edges(edges + k, &run->allocs[v[i].alloc]);
		all += held(&run->allocs[v[i].alloc]);
	}
	ns = (double)ttmon_profile_pages_ns(cost, ttmon_profile_peak(edges, k));
	for (size_t i = 0; i < n; i++)
		charge[v[i].alloc] = all > 0 ? ns * held(&run->allocs[v[i].alloc]) / all : ns / (double)n;
	share_small(run, cost, v, n, edges, charge);
}

int ttmon_profile_charge(const struct ttmon_run *run, const struct ttmon_cost *cost, uint64_t seed, double *charge)
{
	_cleanup_free_ struct ttmon_profile_edge *edges = calloc(run->nr_allocs + 1, 2 * sizeof(*edges));
	_cleanup_free_ struct asked *v = calloc(run->nr_allocs + 1, sizeof(*v));
	size_t n = 0;

	if (!edges || !v)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &run->allocs[i];
		uint64_t by = a->name ? ttmon_site_hash_name(TTMON_SITE_HASH ^ seed, a->name) :
					run->sites[a->site].exact ?: run->sites[a->site].names;

		charge[i] = (double)ttmon_profile_pages_ns(cost, ttmon_run_pages(a));
		if (by && ttmon_profile_wants(a) && ttmon_run_moved(a))
			v[n++] = (struct asked){ by, a->proc, (uint32_t)i };
	}
	qsort(v, n, sizeof(*v), by_who);
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && v[j].by == v[i].by && v[j].proc == v[i].proc; j++)
			;
		share(run, cost, v + i, j - i, edges, charge);
	}
	return 0;
}
