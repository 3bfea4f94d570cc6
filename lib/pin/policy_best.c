// SPDX-License-Identifier: GPL-2.0-only
/*
 * policy_best.c: the choice with hindsight, and the lower bound on the pages of any choice. See
 * policy.h.
 *
 * The load (pages pinned at one time) only rises when a life begins, so it is computed for these
 * moments only, numbered in order. They are the leaves of a tree whose inner nodes have the highest
 * load below them. A life adds its pages to the moments from its own to the last before its end. The
 * time is n log n.
 */
#include "lib/pin/policy_int.h"
#include "lib/base/search.h"

/* ---- the load over time ---- */

struct load {
	uint64_t *max;	 /* highest load of the subtree, including what was added to it as a whole */
	uint64_t *add;	 /* added to the whole subtree */
	uint32_t leaves; /* a power of two */
};

static int load_init(struct load *t, uint32_t n)
{
	uint32_t leaves = 1;

	while (leaves < n)
		leaves *= 2;
	*t = (struct load){ .leaves = leaves };
	t->max = calloc(2 * (size_t)leaves, sizeof(*t->max));
	t->add = calloc(2 * (size_t)leaves, sizeof(*t->add));
	return t->max && t->add ? 0 : -ENOMEM;
}

static void load_fini(struct load *t)
{
	free(t->max);
	free(t->add);
}

static void load_pull(struct load *t, uint32_t node)
{
	for (node /= 2; node; node /= 2)
		t->max[node] = MAX(t->max[2 * node], t->max[2 * node + 1]) + t->add[node];
}

/* Adds pages to the moments from..to - 1. To subtract, add the two's complement. */
static void load_add(struct load *t, uint32_t from, uint32_t to, uint64_t pages)
{
	uint32_t lo = from + t->leaves, hi = to + t->leaves;

	for (uint32_t l = lo, h = hi; l < h; l /= 2, h /= 2) {
		if (l & 1) {
			t->max[l] += pages;
			t->add[l++] += pages;
		}
		if (h & 1) {
			t->max[--h] += pages;
			t->add[h] += pages;
		}
	}
	load_pull(t, lo);
	load_pull(t, hi - 1);
}

static uint64_t load_peak(const struct load *t)
{
	return t->max[1];
}

/* Returns the highest load of the moments from..to - 1. */
static uint64_t load_max(const struct load *t, uint32_t from, uint32_t to)
{
	uint32_t l = from + t->leaves, h = to - 1 + t->leaves;
	uint64_t left = t->max[l], right = t->max[h];

	/* Go up on both sides: take what lies between them, and what was added above. */
	while (l / 2 != h / 2) {
		if (!(l & 1))
			left = MAX(left, t->max[l + 1]);
		if (h & 1)
			right = MAX(right, t->max[h - 1]);
		l /= 2;
		h /= 2;
		left += t->add[l];
		right += t->add[h];
	}
	left = MAX(left, right);
	for (l /= 2; l; l /= 2)
		left += t->add[l];
	return left;
}

/* ---- the choice ---- */

struct worth {
	double per_page; /* ns saved for each page */
	uint32_t life;
};

static int by_worth(const void *pa, const void *pb)
{
	const struct worth *a = pa, *b = pb;

	if (a->per_page != b->per_page)
		return a->per_page > b->per_page ? -1 : 1;
	return a->life < b->life ? -1 : 1;
}

struct choice {
	struct ttmon_policy_sim *s;
	struct load load;
	uint32_t *to;	 /* for each life: the moment before which it ended */
	struct worth *v; /* lives whose transfers save something, best first */
	uint32_t n;
};

static int choice_init(struct choice *c, struct ttmon_policy_sim *s)
{
	double saves = ttmon_policy_saves(&s->cfg->cost);
	struct ttmon_policy_walk w = { 0 };
	bool begins;
	uint32_t i;

	*c = (struct choice){ .s = s };
	c->to = malloc((s->n + 1) * sizeof(*c->to));
	c->v = malloc((s->n + 1) * sizeof(*c->v));
	if (load_init(&c->load, s->n) || !c->to || !c->v)
		return -ENOMEM;
	while (ttmon_policy_next(s, &w, &i, &begins))
		if (!begins)
			c->to[i] = w.begun;
	for (i = 0; i < s->n; i++) {
		const struct ttmon_policy_life *l = &s->v[i];

		if (!l->keep && l->bytes && saves > 0)
			c->v[c->n++] = (struct worth){ (double)l->bytes * saves / (double)MAX(l->pages, 1u), i };
	}
	qsort(c->v, c->n, sizeof(*c->v), by_worth);
	return 0;
}

static void choice_fini(struct choice *c)
{
	load_fini(&c->load);
	free(c->to);
	free(c->v);
}

static void set_pinned(struct choice *c, uint32_t life, bool in)
{
	struct ttmon_policy_life *l = &c->s->v[life];

	l->pinned = in;
	load_add(&c->load, life, c->to[life], in ? l->pages : -l->pages);
}

/*
 * Returns how many of the best lives make the set with the highest gain. Lives of equal worth are
 * taken together, as nothing distinguishes them.
 */
static uint32_t take_best(struct choice *c)
{
	double page_ns = ttmon_policy_page_ns(&c->s->cfg->cost), sum = 0, best = 0;
	double call_ns = (double)c->s->cfg->cost.pin_call_ns;
	uint64_t base = load_peak(&c->load);
	uint32_t taken = 0;

	for (uint32_t k = 0; k < c->n; k++) {
		const struct worth *w = &c->v[k];
		double gain;

		set_pinned(c, w->life, true);
		sum += w->per_page * (double)c->s->v[w->life].pages;
		if (k + 1 < c->n && c->v[k + 1].per_page == w->per_page)
			continue;
		gain = sum - page_ns * (double)(load_peak(&c->load) - base) - call_ns;
		if (gain > best) {
			best = gain;
			taken = k + 1;
		}
	}
	return taken;
}

static void choose(struct choice *c)
{
	uint32_t taken;
	uint64_t peak;

	for (uint32_t i = 0; i < c->s->n; i++) {
		c->s->v[i].pinned = false;
		if (c->s->v[i].keep)
			set_pinned(c, i, true);
	}
	taken = take_best(c);
	for (uint32_t k = c->n; k > taken; k--)
		set_pinned(c, c->v[k - 1].life, false);
	peak = load_peak(&c->load);
	for (uint32_t k = taken; k < c->n; k++) {
		uint32_t i = c->v[k].life;

		if (load_max(&c->load, i, c->to[i]) + c->s->v[i].pages <= peak)
			set_pinned(c, i, true);
	}
}

int ttmon_policy_hindsight(struct ttmon_policy_sim *s)
{
	struct choice c;
	int err = choice_init(&c, s);

	if (!err)
		choose(&c);
	choice_fini(&c);
	return err;
}

/* ---- the lower bound ---- */

/*
 * What a choice leaves pageable, `spare` bytes in all, must reduce the pages to its peak at every
 * moment. So, for any set of moments: at each moment the least worthy pages are left out until the
 * peak is reached, where a life that spans several moments contributes an equal part of its bytes to
 * each. If that takes more than `spare` bytes, the peak is too low. The lowest peak that is not too
 * low is a lower bound for every choice.
 */

struct left_out {
	double bytes, pages; /* of this life; then the sums up to it */
};

struct moment {
	uint64_t ns, pages; /* pages of lives that were copied or are kept */
	uint32_t first, n;  /* lives that can be left out, least worthy first */
};

static bool is_wanted(const struct ttmon_policy_life *l)
{
	return l->bytes || l->keep;
}

static int by_density(const void *pa, const void *pb)
{
	const struct left_out *a = pa, *b = pb;
	double x = a->bytes * b->pages, y = b->bytes * a->pages;

	return x < y ? -1 : x > y;
}

/*
 * Finds the moment with the most pages in each of up to n intervals with equal numbers of births.
 * Returns their number.
 */
static uint32_t find_moments(const struct ttmon_policy_sim *s, struct moment *v, uint32_t n)
{
	uint32_t wanted = 0, born = 0, found = 0, i;
	struct ttmon_policy_walk w = { 0 };
	uint64_t pages = 0;
	bool begins;

	for (i = 0; i < s->n; i++)
		wanted += is_wanted(&s->v[i]);
	while (ttmon_policy_next(s, &w, &i, &begins)) {
		const struct ttmon_policy_life *l = &s->v[i];
		uint32_t at;

		if (!is_wanted(l))
			continue;
		pages += begins ? l->pages : -l->pages;
		if (!begins)
			continue;
		at = (uint32_t)((uint64_t)born++ * n / wanted);
		if (!found || at != v[found - 1].first)
			v[found++] = (struct moment){ .first = at };
		if (pages > v[found - 1].pages) {
			v[found - 1].ns = l->from_ns;
			v[found - 1].pages = pages;
		}
	}
	return found;
}

/* Returns the first of the moments at or after ns. */
static uint32_t moment_at(const struct moment *v, uint32_t n, uint64_t ns)
{
	uint32_t lo = 0;

	lo = TTMON_SEARCH(lo, n, mid, v[mid].ns < ns);
	return lo;
}

/*
 * Fills in the pages and the lives that can be left out. NULL: out of memory, or (*n 0) they would
 * take more memory than a few times the lives.
 */
static struct left_out *fill_moments(const struct ttmon_policy_sim *s, struct moment *v, uint32_t *n)
{
	struct left_out *out;
	uint64_t sum = 0;

	for (uint32_t k = 0; k < *n; k++)
		v[k] = (struct moment){ .ns = v[k].ns };
	for (uint32_t i = 0; i < s->n; i++) {
		const struct ttmon_policy_life *l = &s->v[i];

		if (!is_wanted(l))
			continue;
		for (uint32_t k = moment_at(v, *n, l->from_ns); k < *n && v[k].ns < l->to_ns; k++) {
			v[k].pages += l->pages;
			v[k].n += !l->keep;
			sum += !l->keep;
		}
		if (sum > 4 * (uint64_t)s->n) {
			*n = 0;
			return NULL;
		}
	}
	out = malloc((sum + 1) * sizeof(*out));
	if (!out)
		return NULL;
	for (uint32_t k = 0, first = 0; k < *n; k++) {
		v[k].first = first;
		first += v[k].n;
		v[k].n = 0;
	}
	for (uint32_t i = 0; i < s->n; i++) {
		const struct ttmon_policy_life *l = &s->v[i];
		uint32_t from, to;

		if (l->keep || !l->bytes)
			continue;
		from = moment_at(v, *n, l->from_ns);
		to = moment_at(v, *n, l->to_ns);
		for (uint32_t k = from; k < to; k++)
			out[v[k].first + v[k].n++] =
				(struct left_out){ (double)l->bytes / (to - from), (double)l->pages };
	}
	for (uint32_t k = 0; k < *n; k++) {
		struct left_out *at = out + v[k].first;

		qsort(at, v[k].n, sizeof(*at), by_density);
		for (uint32_t i = 1; i < v[k].n; i++) {
			at[i].bytes += at[i - 1].bytes;
			at[i].pages += at[i - 1].pages;
		}
	}
	return out;
}

/*
 * Returns the bytes that belong to so many pages, with a proportional part of the last life; infinite
 * if there are fewer pages.
 */
static double bytes_of(const struct left_out *v, uint32_t n, double pages)
{
	uint32_t lo = 0, hi = n;
	double b, p;

	lo = TTMON_SEARCH(lo, hi, mid, v[mid].pages < pages);
	if (lo == n)
		return 1e300;
	b = lo ? v[lo - 1].bytes : 0;
	p = lo ? v[lo - 1].pages : 0;
	return b + (v[lo].bytes - b) * (v[lo].pages > p ? (pages - p) / (v[lo].pages - p) : 0);
}

static bool is_enough(const struct moment *v, uint32_t n, const struct left_out *out, uint64_t peak, double spare)
{
	double bytes = 0;

	for (uint32_t k = 0; k < n; k++)
		if (v[k].pages > peak)
			bytes += bytes_of(out + v[k].first, v[k].n, (double)(v[k].pages - peak));
	/* Allow for rounding, so that the bound stays valid. */
	return bytes <= spare * (1 + 1e-9) + 1e-3;
}

static int least_of(const struct ttmon_policy_sim *s, struct moment *v, uint32_t n, double spare, uint64_t *least)
{
	_cleanup_free_ struct left_out *out = fill_moments(s, v, &n);
	uint64_t lo = *least, hi = lo;

	if (!out)
		return n ? -ENOMEM : 0;
	for (uint32_t k = 0; k < n; k++)
		hi = MAX(hi, v[k].pages);
	lo = TTMON_SEARCH(lo, hi, mid, !is_enough(v, n, out, mid, spare));
	*least = lo;
	return 0;
}

int ttmon_policy_least(const struct ttmon_policy_sim *s, uint64_t peak_ns, uint64_t *ret)
{
	static const uint32_t stretches[] = { 1, 32, 1024 };
	_cleanup_free_ struct moment *v = malloc(1024 * sizeof(*v));
	uint64_t least = 0;
	double spare = 0;
	int err;

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n; i++)
		if (!s->v[i].pinned && !s->v[i].keep)
			spare += (double)s->v[i].bytes;
	v[0].ns = peak_ns;
	err = least_of(s, v, 1, spare, &least);
	for (unsigned int i = 0; i < ARRAY_SIZE(stretches) && !err; i++) {
		uint32_t n = find_moments(s, v, stretches[i]);

		if (n)
			err = least_of(s, v, n, spare, &least);
	}
	if (!err)
		*ret = least;
	return err;
}
