// SPDX-License-Identifier: GPL-2.0-only
/*
 * curve.c: sorts the steps up and down of the pinned pages and adds them up. A curve with too many
 * steps keeps the maximum of each of many equal intervals, so peaks are kept.
 */
#include "tools/view/curve.h"

struct step {
	uint64_t ns, pages;
	uint32_t proc;
	bool down;
};

static int by_time(const void *x, const void *y)
{
	const struct step *a = x, *b = y;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	/* At equal times, steps down come first: freed memory makes room for what is allocated then. */
	return b->down - a->down;
}

static int by_proc(const void *x, const void *y)
{
	const struct step *a = x, *b = y;

	return a->proc != b->proc ? (a->proc < b->proc ? -1 : 1) : by_time(x, y);
}

static void sum(const struct ttmon_run *run, const struct step *steps, size_t n, struct ttmon_view_curve *c)
{
	uint64_t span = run->end_ns > run->start_ns ? run->end_ns - run->start_ns : 0, now = 0;

	c->nr = 0;
	c->peak = 0;
	c->peak_ns = run->start_ns;
	/*
	 * Steps at the same time become one point, so there may be fewer points than steps. Counting them
	 * first is not worth a pass.
	 */
	c->width_ns = n > TTMON_VIEW_POINTS ? span / (TTMON_VIEW_POINTS - 2) + 1 : 0;
	for (size_t i = 0; i < n; i++) {
		const struct step *s = &steps[i];
		uint64_t ns = MIN(MAX(s->ns, run->start_ns), run->start_ns + span), before = now;
		bool fresh;

		now = s->down ? now - MIN(now, s->pages) : now + s->pages;
		if (now > c->peak) {
			c->peak = now;
			c->peak_ns = ns;
		}
		if (c->width_ns)
			ns = run->start_ns + (ns - run->start_ns) / c->width_ns * c->width_ns;
		fresh = !c->nr || c->points[c->nr - 1].ns != ns;
		if (fresh) {
			c->points[c->nr].ns = ns;
			c->points[c->nr++].pages = c->width_ns ? MAX(before, now) : now;
		} else {
			c->points[c->nr - 1].pages = c->width_ns ? MAX(c->points[c->nr - 1].pages, now) : now;
		}
	}
	/* The last interval ends with the value at the end, not with its maximum. */
	if (c->width_ns && c->nr && c->nr < TTMON_VIEW_POINTS) {
		c->points[c->nr].ns = MIN(c->points[c->nr - 1].ns + c->width_ns, run->start_ns + span);
		c->points[c->nr++].pages = now;
	}
}

int ttmon_view_curves(const struct ttmon_run *run, void (*fn)(void *ctx, const struct ttmon_view_curve *c), void *ctx)
{
	_cleanup_free_ struct step *steps = calloc(2 * run->nr_allocs + 1, sizeof(*steps));
	_cleanup_free_ struct ttmon_view_curve *c = calloc(1, sizeof(*c));
	size_t n = 0;

	if (!steps || !c)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &run->allocs[i];
		struct step s = { .pages = ttmon_run_pages(a), .proc = a->proc, .ns = a->alloc_ns };

		/*
		 * Leaves out an allocation that was freed at the time it was made: its step down would be sorted
		 * before its step up.
		 */
		if (!ttmon_run_pins_pages(a) || ttmon_run_is_unknown(a) || !s.pages ||
		    (!(a->flags & TTMON_RUN_LIVE) && a->free_ns <= a->alloc_ns))
			continue;
		steps[n++] = s;
		if (a->flags & TTMON_RUN_LIVE)
			continue;
		s.ns = a->free_ns;
		s.down = true;
		steps[n++] = s;
	}
	qsort(steps, n, sizeof(*steps), by_time);
	c->proc = TTMON_RUN_NONE;
	sum(run, steps, n, c);
	fn(ctx, c);
	qsort(steps, n, sizeof(*steps), by_proc);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from; to < n && steps[to].proc == steps[from].proc; to++)
			;
		c->proc = steps[from].proc;
		sum(run, steps + from, to - from, c);
		fn(ctx, c);
	}
	return 0;
}
