// SPDX-License-Identifier: GPL-2.0-only
/*
 * run_align.c: the same line of the program in builds before and after an edit (ttmon_runs_align() of
 * run.h).
 *
 * The own frames of two sites with equal `names` are in the same functions. An edit moves the lines of
 * a function, but the order of those that stay is the same. So the order of such sites is the same,
 * too: by their outermost frames, and then inwards. If there are as many in both runs, they are
 * matched in this order. Otherwise the shorter list is laid onto the longer one so that the distances
 * between its lines change least, and the first line moves least.
 *
 * If one of them is in both runs with equal `exact`, the functions have not changed. Then there is
 * nothing to match: the others are other lines.
 */
#include "lib/base/grow.h"
#include "lib/base/hmap.h"
#include "lib/read/run.h"

#define LIST_MAX 64u /* sites of the same functions that are matched; of more, only equal ones are */

/* A site; near: the one that it has in earlier runs. */
struct item {
	const struct ttmon_run *run;
	struct ttmon_run_site *site;
	uint64_t at[TTMON_RUN_KEY_FRAMES];    /* line or offset in the function, innermost first */
	uint64_t order[TTMON_RUN_KEY_FRAMES]; /* the same, but the line in the file */
	uint32_t n;
};

struct list {
	struct item *v;
	size_t n, cap;
};

static struct item item_of(const struct ttmon_run *run, struct ttmon_run_site *s)
{
	struct item it = { .run = run, .site = s };

	for (uint32_t i = 0; i < s->nframes && it.n < TTMON_RUN_KEY_FRAMES; i++) {
		const struct ttmon_run_frame *f = &run->frames[s->frame + i];
		bool python = f->object != TTMON_RUN_NONE && run->objects[f->object].python;

		if (f->plumbing)
			continue;
		it.at[it.n] = f->delta;
		it.order[it.n++] = python ? f->offset : f->delta;
	}
	return it;
}

static int by_lines(const void *pa, const void *pb)
{
	const struct item *a = pa, *b = pb;

	for (uint32_t i = MIN(a->n, b->n); i-- > 0;)
		if (a->order[i] != b->order[i])
			return a->order[i] < b->order[i] ? -1 : 1;
	return (a->site->near > b->site->near) - (a->site->near < b->site->near);
}

/* One site for each `near`. */
static int add(struct list *l, const struct ttmon_run *run, struct ttmon_run_site *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].site->near == s->near)
			return 0;
	if (l->n > LIST_MAX)
		return 0;
	if (TTMON_GROW(l->v, l->cap, l->n + 1, 8))
		return -ENOMEM;
	l->v[l->n++] = item_of(run, s);
	return 0;
}

/* ---- matching two lists ---- */

/* What it costs that x becomes y: how far it moves, or how much less or more than its predecessor. */
static uint64_t cost(const struct item *x0, const struct item *y0, const struct item *x, const struct item *y)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < MIN(x->n, y->n); i++) {
		uint64_t dx = x0 ? x->order[i] - x0->order[i] : x->at[i];
		uint64_t dy = y0 ? y->order[i] - y0->order[i] : y->at[i];

		sum = ttmon_add_sat(sum, MIN((uint64_t)INT64_MAX, (int64_t)(dx - dy) < 0 ? dy - dx : dx - dy));
	}
	return sum;
}

/* to[i]: the place in `more` of fewer->v[i]. Time: n of the shorter list times m squared. */
static void match(const struct list *fewer, const struct list *more, size_t *to)
{
	static const size_t none = SIZE_MAX;
	uint64_t best[LIST_MAX][LIST_MAX];
	size_t from[LIST_MAX][LIST_MAX], last = none;

	for (size_t i = 0; i < fewer->n; i++)
		for (size_t j = 0; j < more->n; j++) {
			best[i][j] = UINT64_MAX;
			from[i][j] = none;
			if (!i)
				best[i][j] = cost(NULL, NULL, &fewer->v[0], &more->v[j]);
			for (size_t k = 0; i && k < j; k++) {
				uint64_t sum = ttmon_add_sat(
					best[i - 1][k], cost(&fewer->v[i - 1], &more->v[k], &fewer->v[i], &more->v[j]));

				if (best[i - 1][k] == UINT64_MAX || sum >= best[i][j])
					continue;
				best[i][j] = sum;
				from[i][j] = k;
			}
		}
	for (size_t j = 0; fewer->n && j < more->n; j++)
		if (best[fewer->n - 1][j] != UINT64_MAX &&
		    (last == none || best[fewer->n - 1][j] < best[fewer->n - 1][last]))
			last = j;
	for (size_t i = fewer->n; i-- > 0;) {
		to[i] = last;
		last = last == none ? none : from[i][last];
	}
}

/* ---- the sites of one group of functions ---- */

struct group {
	uint64_t names;
	struct list before, now;
	uint64_t near[LIST_MAX], becomes[LIST_MAX]; /* of the sites of the run that is being looked at */
	size_t nr_near;
};

static bool has_equal(const struct group *g)
{
	for (size_t i = 0; i < g->before.n; i++)
		for (size_t j = 0; j < g->now.n; j++)
			if (g->now.v[j].site->exact && g->now.v[j].site->exact == g->before.v[i].site->exact)
				return true;
	return false;
}

static void decide(struct group *g)
{
	struct list *a = &g->before, *b = &g->now;
	size_t to[LIST_MAX];

	g->nr_near = 0;
	if (!a->n || !b->n || a->n > LIST_MAX || b->n > LIST_MAX || has_equal(g))
		return;
	qsort(a->v, a->n, sizeof(*a->v), by_lines);
	qsort(b->v, b->n, sizeof(*b->v), by_lines);
	g->nr_near = b->n;
	for (size_t j = 0; j < b->n; j++) {
		g->near[j] = b->v[j].site->near;
		g->becomes[j] = 0;
	}
	if (a->n < b->n) {
		match(a, b, to);
		for (size_t i = 0; i < a->n; i++)
			if (to[i] < b->n)
				g->becomes[to[i]] = a->v[i].site->near;
	} else {
		match(b, a, to);
		for (size_t j = 0; j < b->n; j++)
			g->becomes[j] = to[j] < a->n ? a->v[to[j]].site->near : 0;
	}
}

/* Its lines take the place of earlier ones: the next run is compared with the youngest lines. */
static int remember(struct group *g)
{
	for (size_t j = 0; j < g->now.n; j++) {
		struct ttmon_run_site *s = g->now.v[j].site;
		size_t i = 0;

		while (i < g->before.n && g->before.v[i].site->near != s->near)
			i++;
		if (i < g->before.n)
			g->before.v[i] = g->now.v[j];
		else if (s->near && add(&g->before, g->now.v[j].run, s))
			return -ENOMEM;
	}
	g->now.n = 0;
	return 0;
}

struct aligner {
	struct ttmon_hmap by_names;
	struct group *v;
	size_t n, cap;
};

static void aligner_fini(struct aligner *a)
{
	for (size_t i = 0; i < a->n; i++) {
		free(a->v[i].before.v);
		free(a->v[i].now.v);
	}
	free(a->v);
	ttmon_hmap_fini(&a->by_names);
}

static int group_of(struct aligner *a, uint64_t names, struct group **ret)
{
	uint64_t key = ttmon_mix64(names ^ ttmon_run_seed()), at = ttmon_hmap_get(&a->by_names, key);

	if (at == TTMON_HMAP_NONE) {
		if (TTMON_GROW(a->v, a->cap, a->n + 1, 64) || ttmon_hmap_put(&a->by_names, key, a->n) < 0)
			return -ENOMEM;
		at = a->n++;
		a->v[at] = (struct group){ .names = names };
	}
	*ret = &a->v[at];
	return 0;
}

static int align(struct aligner *a, struct ttmon_run *run)
{
	struct group *g;
	int err = 0;

	for (size_t i = 0; i < run->nr_sites && !err; i++) {
		if (!run->sites[i].near || !run->sites[i].names)
			continue;
		err = group_of(a, run->sites[i].names, &g);
		err = err ? err : add(&g->now, run, &run->sites[i]);
	}
	for (size_t i = 0; i < a->n && !err; i++)
		decide(&a->v[i]);
	for (size_t i = 0; i < run->nr_sites && !err; i++) {
		struct ttmon_run_site *s = &run->sites[i];

		if (!s->near || !s->names)
			continue;
		err = group_of(a, s->names, &g);
		for (size_t j = 0; !err && j < g->nr_near; j++)
			if (g->near[j] == s->near) {
				s->near = g->becomes[j];
				break;
			}
	}
	for (size_t i = 0; i < a->n && !err; i++)
		err = remember(&a->v[i]);
	return err;
}

int ttmon_runs_align(struct ttmon_run *const *runs, size_t n)
{
	_cleanup_(aligner_fini) struct aligner a = { 0 };
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = align(&a, runs[i]);
	return err;
}
