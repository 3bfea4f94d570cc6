// SPDX-License-Identifier: GPL-2.0-only
/* run_pinned.c: see run_pinned.h. */
#include "lib/read/run_pinned.h"

struct step {
	uint64_t ts_ns;
	int64_t pages;
};

static int by_time(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	if (x->ts_ns != y->ts_ns)
		return x->ts_ns < y->ts_ns ? -1 : 1;
	/* What is released at the same moment goes first. */
	return x->pages < y->pages ? -1 : x->pages > y->pages;
}

int ttmon_run_count_pinned(const struct ttmon_run *run, struct ttmon_run_pinned *ret)
{
	_cleanup_free_ struct step *steps = calloc(run->nr_allocs ? run->nr_allocs : 1, 2 * sizeof(*steps));
	struct ttmon_run_pinned sum = { .at_least = run->at_least };
	int64_t now = 0, peak = 0;
	size_t n = 0;

	if (!steps)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &run->allocs[i];
		int64_t pages = (int64_t)MIN(ttmon_run_pages(a), 1ULL << 40);

		if (!ttmon_run_pins_pages(a))
			continue;
		/* It may have been released; when is not known. */
		if (ttmon_run_is_unknown(a)) {
			sum.at_least = true;
			sum.end_unknown |= a->flags & TTMON_RUN_LIVE;
			continue;
		}
		steps[n++] = (struct step){ a->alloc_ns, pages };
		if (!(a->flags & TTMON_RUN_LIVE))
			steps[n++] = (struct step){ MAX(a->free_ns, a->alloc_ns + 1), -pages };
	}
	qsort(steps, n, sizeof(*steps), by_time);
	for (size_t i = 0; i < n; i++) {
		now += steps[i].pages;
		peak = MAX(peak, now);
	}
	sum.end_pages = (uint64_t)MAX(now, 0);
	sum.peak_pages = (uint64_t)peak;
	*ret = sum;
	return 0;
}
