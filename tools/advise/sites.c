// SPDX-License-Identifier: GPL-2.0-only
/*
 * sites.c: the advice for the memory of each call site over all runs of a program, and the time that
 * following it saves. Verdicts and gains come from the groups of lib/pin/groups, the same that the
 * daemon judges, as the mean over the runs. With --train the advice comes from the profile, and the
 * gain is that of following it in the other runs.
 */
#include <assert.h>
#include <jansson.h>

#include "lib/pin/groups.h"
#include "lib/demangle/runsite.h"
#include "tools/advise/advise.h"

#define NO_ROW	      UINT32_MAX
#define SHOWN_COLUMNS 77

struct table {
	struct ttmon_advise_site *v;
	/* for each row: pages in use in this run; 1 + the number of the last run that has the row */
	uint64_t *now, *seen;
	size_t n, cap;
	json_t *index;	    /* from the text "kind text" to the row */
	uint32_t *of_site;  /* row for each (site, kind) of this run; the unknown site has none */
	uint32_t *of_alloc; /* row of each allocation of this run */
	bool *counted;	    /* groups of this run whose gain is already in a row */
	bool trained;
	struct ttmon_policy_cfg cfg;
};

static void table_fini(struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i].text), free(t->v[i].shown);
	free(t->v);
	free(t->now);
	free(t->seen);
	free(t->of_site);
	free(t->of_alloc);
	free(t->counted);
	json_decref(t->index);
}

static int table_grow(struct table *t)
{
	size_t cap = t->cap ? t->cap * 2 : 64;
	void *v = realloc(t->v, cap * sizeof(*t->v)), *now, *seen;

	if (!v)
		return -ENOMEM;
	t->v = v;
	now = realloc(t->now, cap * sizeof(*t->now));
	if (!now)
		return -ENOMEM;
	t->now = now;
	seen = realloc(t->seen, cap * sizeof(*t->seen));
	if (!seen)
		return -ENOMEM;
	t->seen = seen;
	t->cap = cap;
	return 0;
}

static int row_of_text(struct table *t, unsigned int advice, const char *text, const char *shown, uint32_t *ret)
{
	char key[256];
	json_t *known;

	snprintf(key, sizeof(key), "%u %s", advice, text);
	known = json_object_get(t->index, key);
	if (known) {
		*ret = (uint32_t)json_integer_value(known);
		return 0;
	}
	if (t->n == t->cap && table_grow(t))
		return -ENOMEM;
	t->v[t->n] = (struct ttmon_advise_site){ .text = strdup(text),
						 .shown = strdup(shown),
						 .advice = advice,
						 .min_size = UINT64_MAX,
						 .match = TTMON_MATCH_MAX };
	t->now[t->n] = t->seen[t->n] = 0;
	if (!t->v[t->n].text || !t->v[t->n].shown ||
	    json_object_set_new_nocheck(t->index, key, json_integer((json_int_t)t->n))) {
		free(t->v[t->n].text);
		free(t->v[t->n].shown);
		return -ENOMEM;
	}
	*ret = (uint32_t)t->n++;
	return 0;
}

/*
 * A name that the program gave comes before the call site: with a custom allocator, the site is only a
 * place in the allocator.
 */
static int row_of(struct table *t, const struct ttmon_run *run, const struct ttmon_run_alloc *a, unsigned int advice,
		  uint32_t *ret)
{
	bool named = a->name && (a->method != TTMON_METHOD_MMAP || !a->site);
	uint32_t *cached = named || !a->site ? NULL : &t->of_site[(size_t)a->site * TTMON_ADVICE_MAX + advice];
	char text[200], shown[SHOWN_COLUMNS + 1];
	int err;

	if (cached && *cached != NO_ROW) {
		*ret = *cached;
		return 0;
	}
	if (named)
		ttmon_fmt_text(text, sizeof(text), a->name);
	else
		ttmon_run_site_text(run, a->site, text, sizeof(text));
	err = row_of_text(t, advice, text,
			  named ? text : ttmon_site_show_run(shown, sizeof(shown), run, a->site, SHOWN_COLUMNS), ret);
	if (!err && cached)
		*cached = *ret;
	return err;
}

/* The advice of the profile of --train, as a value of enum ttmon_advice. */
static unsigned int trained_advice(const struct ttmon_run_alloc *a, const struct ttmon_answer *answer)
{
	bool pinned = ttmon_run_is_pinned(a);

	if (answer->verdict == TTMON_VERDICT_UNKNOWN)
		return TTMON_ADVICE_UNKNOWN;
	if (answer->verdict == TTMON_VERDICT_PIN)
		return pinned ? TTMON_ADVICE_KEEP : answer->alone ? TTMON_ADVICE_PIN : TTMON_ADVICE_ALLOCATE;
	return pinned && !answer->in_place && !(a->flags & TTMON_RUN_IN_PLACE) ? TTMON_ADVICE_UNPIN : TTMON_ADVICE_KEEP;
}

/* Finds the row of an allocation; NO_ROW if there is no advice for such memory. */
static int classify(struct table *t, const struct ttmon_run *run, const struct ttmon_run_alloc *a, uint32_t order,
		    const struct ttmon_said *said, struct ttmon_answer *answer, uint32_t *ret)
{
	unsigned int advice;

	*ret = NO_ROW;
	*answer = (struct ttmon_answer){ 0 };
	if (!said || !ttmon_run_is_host(a))
		return 0;
	advice = said->advice;
	if (a->method == TTMON_METHOD_MMAP) {
		if (advice == TTMON_ADVICE_KEEP)
			return 0;
		answer->confidence = (float)said->confidence;
		return row_of(t, run, a, advice, ret);
	}
	ttmon_policy_advised(run, a, order, &t->cfg, answer);
	if (t->trained)
		advice = trained_advice(a, answer);
	else
		answer->confidence = (float)said->confidence;
	return row_of(t, run, a, advice, ret);
}

/* Adds the gain of a group to its row. Called once for each group. */
static void add_gain(struct table *t, const struct ttmon_said *said, uint32_t row)
{
	struct ttmon_advise_site *s = &t->v[row];

	s->reason = said->reason;
	s->known |= said->known;
	s->gain_ns += said->gain_ns;
	s->low_ns += said->low_ns;
	s->high_ns += said->high_ns;
}

static void add(struct table *t, size_t nr_run, const struct ttmon_run_alloc *a, const struct ttmon_answer *answer,
		uint32_t row)
{
	struct ttmon_advise_site *s;

	assert(t->v);
	s = &t->v[row];
	s->allocs++;
	s->min_size = MIN(s->min_size, a->size);
	s->max_size = MAX(s->max_size, a->size);
	s->copies += (uint64_t)a->h2d_copies + a->d2h_copies;
	s->bytes += ttmon_run_moved(a);
	s->confidence += (double)answer->confidence;
	s->match = MIN(s->match, answer->match);
	s->pinned |= ttmon_run_is_pinned(a);
	s->mapped |= a->method == TTMON_METHOD_MMAP;
	s->at_least |= (a->flags & TTMON_RUN_AT_LEAST) != 0;
	if (t->seen[row] != nr_run + 1)
		s->runs++;
	t->seen[row] = nr_run + 1;
}

struct end {
	uint64_t ns;
	uint32_t i;
};

static int by_ns(const void *pa, const void *pb)
{
	const struct end *a = pa, *b = pb;

	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

/* Finds the most pages of each row at one time. */
static int find_peaks(struct table *t, const struct ttmon_run *run)
{
	_cleanup_free_ struct end *ends = malloc((run->nr_allocs + 1) * sizeof(*ends));
	_cleanup_free_ struct end *begins = malloc((run->nr_allocs + 1) * sizeof(*begins));
	size_t n = 0, ended = 0;

	if (!ends || !begins)
		return -ENOMEM;
	if (!t->n)
		return 0;
	memset(t->now, 0, t->n * sizeof(*t->now));
	for (uint32_t i = 0; i < run->nr_allocs; i++) {
		if (t->of_alloc[i] == NO_ROW)
			continue;
		begins[n] = (struct end){ run->allocs[i].alloc_ns, i };
		ends[n++] = (struct end){ MAX(run->allocs[i].free_ns, run->allocs[i].alloc_ns + 1), i };
	}
	qsort(begins, n, sizeof(*begins), by_ns);
	qsort(ends, n, sizeof(*ends), by_ns);
	for (size_t k = 0; k < n; k++) {
		const struct ttmon_run_alloc *a = &run->allocs[begins[k].i];
		uint32_t row = t->of_alloc[begins[k].i];

		for (; ends[ended].ns <= begins[k].ns; ended++)
			t->now[t->of_alloc[ends[ended].i]] -= ttmon_run_pages(&run->allocs[ends[ended].i]);
		t->now[row] += ttmon_run_pages(a);
		t->v[row].peak_pages = MAX(t->v[row].peak_pages, t->now[row]);
	}
	return 0;
}

static int add_run(struct table *t, size_t nr_run, const struct ttmon_run *run)
{
	_cleanup_(ttmon_pin_groups_freep) struct ttmon_pin_groups *groups = NULL;
	int failed = ttmon_pin_groups_new(run, &t->cfg.cost, &groups);
	_cleanup_free_ uint32_t *orders = calloc(run->nr_procs + 1, TTMON_METHOD_MAX * sizeof(*orders));

	if (failed)
		return failed;
	free(t->of_site);
	free(t->of_alloc);
	free(t->counted);
	t->counted = calloc((size_t)groups->n + 1, sizeof(*t->counted));
	t->of_site = malloc((run->nr_sites + 1) * TTMON_ADVICE_MAX * sizeof(*t->of_site));
	t->of_alloc = malloc((run->nr_allocs + 1) * sizeof(*t->of_alloc));
	if (!orders || !t->of_site || !t->of_alloc || !t->counted)
		return -ENOMEM;
	memset(t->of_site, 0xff, (run->nr_sites + 1) * TTMON_ADVICE_MAX * sizeof(*t->of_site));
	for (size_t i = 0; i < run->nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &run->allocs[i];
		uint32_t *order = &orders[(size_t)a->proc * TTMON_METHOD_MAX + a->method % TTMON_METHOD_MAX];
		struct ttmon_answer answer;
		const struct ttmon_said *said = ttmon_pin_groups_said(groups, i);
		int err = classify(t, run, a, (*order)++, said, &answer, &t->of_alloc[i]);

		if (err)
			return err;
		if (t->of_alloc[i] == NO_ROW)
			continue;
		add(t, nr_run, a, &answer, t->of_alloc[i]);
		if (!t->counted[groups->of[i]])
			add_gain(t, said, t->of_alloc[i]);
		t->counted[groups->of[i]] = true;
	}
	return find_peaks(t, run);
}

/* Sorts rows that need a change first, and among these the largest gain. */
static int by_gain(const void *pa, const void *pb)
{
	static const uint8_t rank[TTMON_ADVICE_MAX] = { [TTMON_ADVICE_PIN] = 0,
							[TTMON_ADVICE_ALLOCATE] = 1,
							[TTMON_ADVICE_UNPIN] = 2,
							[TTMON_ADVICE_KEEP] = 3,
							[TTMON_ADVICE_UNKNOWN] = 4 };
	const struct ttmon_advise_site *a = pa, *b = pb;

	if (a->advice != b->advice)
		return rank[a->advice] < rank[b->advice] ? -1 : 1;
	if (a->gain_ns != b->gain_ns)
		return a->gain_ns > b->gain_ns ? -1 : 1;
	return strcmp(a->text, b->text);
}

static void finish(struct table *t, size_t nr_runs)
{
	const struct ttmon_cost *cost = &t->cfg.cost;

	for (size_t i = 0; i < t->n; i++) {
		struct ttmon_advise_site *s = &t->v[i];

		s->confidence /= (double)s->allocs;
		s->saved_ns = (int64_t)(ttmon_cost_saved(cost, s->bytes) / (double)nr_runs);
		s->gain_ns /= (int64_t)nr_runs;
		s->low_ns /= (int64_t)nr_runs;
		s->high_ns /= (int64_t)nr_runs;
	}
	qsort(t->v, t->n, sizeof(*t->v), by_gain);
}

int ttmon_advise_get_sites(const struct ttmon_advise_group *g, const struct ttmon_policy_cfg *cfg,
			   struct ttmon_advise_sites *ret)
{
	struct table t = { .index = json_object(), .cfg = *cfg, .trained = g->trained };
	int err = t.index ? 0 : -ENOMEM;

	t.cfg.profile = g->profile;
	for (size_t i = 0; i < g->nr_runs && !err; i++)
		err = add_run(&t, i, g->runs[i].run);
	if (!err && t.n) {
		finish(&t, g->nr_runs);
		*ret = (struct ttmon_advise_sites){ .n = t.n, .v = TAKE_PTR(t.v) };
		t.n = 0;
	}
	table_fini(&t);
	return err;
}

void ttmon_advise_sites_fini(struct ttmon_advise_sites *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].text), free(s->v[i].shown);
	free(s->v);
}
