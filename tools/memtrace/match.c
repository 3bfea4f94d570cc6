// SPDX-License-Identifier: GPL-2.0-only
/*
 * match.c: matches the sites of two traces, and compares each pair. A site of B matches a site of A
 * with the same kernel, space and kind of access. The rules are tried in this order, the most certain
 * first: the same opcode and place; the same opcode and source line; the same source line (the width
 * of an access changed); the same opcode; and, if the same number is left on both sides, only the kind
 * (the width changed and there are no source lines). If several sites are alike, they are paired in
 * their order.
 */
#include "tools/memtrace/diff.h"

/* ---- matching ---- */

static int compare(const struct ttmon_mt_diff_item *a, const struct ttmon_mt_diff_item *b,
		   enum ttmon_mt_how_matched how)
{
	int c = strcmp(a->site->kernel, b->site->kernel) ?: (int)a->row->space - b->row->space;

	c = c ?: (int)a->row->kind - b->row->kind;

	if (!c && how != TTMON_MT_HOW_SOURCE && how != TTMON_MT_HOW_KIND)
		c = strcmp(a->site->opcode, b->site->opcode);
	if (!c && how < TTMON_MT_HOW_OPCODE)
		c = strcmp(a->site->file, b->site->file)
			    ?: (a->site->line > b->site->line) - (a->site->line < b->site->line);
	if (!c && how == TTMON_MT_HOW_EXACT)
		c = (a->site->pc > b->site->pc) - (a->site->pc < b->site->pc);
	return c;
}

/* Sorts by key; sites with equal keys stay in the order of the trace. */
static int by_key(const void *pa, const void *pb, void *how)
{
	const struct ttmon_mt_diff_item *a = *(const struct ttmon_mt_diff_item *const *)pa,
					*b = *(const struct ttmon_mt_diff_item *const *)pb;

	return compare(a, b, *(const enum ttmon_mt_how_matched *)how) ?: (a > b) - (a < b);
}

/*
 * Collects the sites without a partner, in order; for rules that use source lines only sites that have
 * one.
 */
static size_t gather(struct ttmon_mt_diff_side *s, enum ttmon_mt_how_matched how, struct ttmon_mt_diff_item **to)
{
	size_t n = 0;

	for (size_t i = 0; i < s->nr; i++)
		if (!s->items[i].other &&
		    (s->items[i].site->line || (how != TTMON_MT_HOW_LINE && how != TTMON_MT_HOW_SOURCE)))
			to[n++] = &s->items[i];
	qsort_r(to, n, sizeof(*to), by_key, &how);
	return n;
}

/* Returns how many of n sites, beginning with the first, have the key of the first. */
static size_t alike(struct ttmon_mt_diff_item *const *of, size_t n, enum ttmon_mt_how_matched how)
{
	size_t k = 1;

	while (k < n && !compare(of[0], of[k], how))
		k++;
	return k;
}

static void match(struct ttmon_mt_diff_side *a, struct ttmon_mt_diff_side *b, enum ttmon_mt_how_matched how,
		  struct ttmon_mt_diff_item **of_a, struct ttmon_mt_diff_item **of_b)
{
	size_t na = gather(a, how, of_a), nb = gather(b, how, of_b);

	for (size_t i = 0, k = 0; i < na && k < nb;) {
		int c = compare(of_a[i], of_b[k], how);
		size_t ai = alike(of_a + i, na - i, how), bk = alike(of_b + k, nb - k, how);

		for (size_t n = 0; !c && n < MIN(ai, bk) && (how != TTMON_MT_HOW_KIND || ai == bk); n++) {
			of_a[i + n]->other = of_b[k + n];
			of_b[k + n]->other = of_a[i + n];
			of_a[i + n]->how = of_b[k + n]->how = how;
		}
		i += c <= 0 ? ai : 0;
		k += c >= 0 ? bk : 0;
	}
}

/* ---- comparing ---- */

double ttmon_mt_diff_per_launch(const struct ttmon_mt_diff_item *i)
{
	return (double)ttmon_mt_diff_cost(i) * i->sample / (double)MAX(i->launches, 1u);
}

static double per_request(const struct ttmon_mt_diff_item *i)
{
	return i->row->sums.requests ? (double)ttmon_mt_diff_cost(i) / (double)i->row->sums.requests : 0;
}

double ttmon_mt_diff_compared(const struct ttmon_mt_diff_pair *p, const struct ttmon_mt_diff_item *i)
{
	return p->of_request ? per_request(i) : ttmon_mt_diff_per_launch(i);
}

static bool sums_differ(const struct ttmon_mt_sums *a, const struct ttmon_mt_sums *b)
{
	return a->requests != b->requests || a->lanes != b->lanes || a->bytes != b->bytes || a->unique != b->unique ||
	       a->sectors != b->sectors || a->lines != b->lines || a->ideal != b->ideal || a->waves != b->waves ||
	       a->ideal_waves != b->ideal_waves || a->same != b->same || a->reads != b->reads || a->writes != b->writes;
}

/* Returns whether two figures of a request differ by more than slack, relative to the larger one. */
static bool apart(uint64_t x, uint64_t of_x, uint64_t y, uint64_t of_y, double slack)
{
	double a = (double)x / (double)MAX(of_x, 1u), b = (double)y / (double)MAX(of_y, 1u);

	return MAX(a, b) - MIN(a, b) > slack * MAX(a, b);
}

/*
 * Returns whether the figures of a request differ. Distinct bytes are not compared: older sums of the
 * GPU do not have them.
 */
static bool rates_differ(const struct ttmon_mt_sums *a, const struct ttmon_mt_sums *b, double slack)
{
	const uint64_t x[] = { a->lanes, a->bytes, a->sectors, a->lines, a->waves, a->reads, a->writes },
		       y[] = { b->lanes, b->bytes, b->sectors, b->lines, b->waves, b->reads, b->writes };

	for (size_t i = 0; i < ARRAY_SIZE(x); i++)
		if (apart(x[i], a->requests, y[i], b->requests, slack))
			return true;
	return false;
}

static bool is_partial(const struct ttmon_mt_diff_item *i)
{
	return i && (i->sample > 1 || i->row->sums.records < i->row->sums.requests);
}

/*
 * Returns the difference that still counts as equal. A comparison of sampled blocks with all blocks is
 * less exact: the last block, in which not all lanes work, has a higher weight among few blocks, and n
 * requests have an error of about 1/sqrt(n).
 */
static double slack_of(const struct ttmon_mt_diff_pair *p)
{
	uint64_t n, root = 1;

	if (!p->a || !p->b || p->a->sample == p->b->sample)
		return 0.01;
	n = MIN(p->a->row->sums.requests, p->b->row->sums.requests);
	while (root < 10 && (root + 1) * (root + 1) <= n)
		root++;
	return 1.0 / (double)root;
}

static void judge(struct ttmon_mt_diff_pair *p)
{
	const struct ttmon_mt_diff_item *any = p->a ? p->a : p->b;
	double before, now, slack = slack_of(p);

	/*
	 * Sampled figures are not exactly a fraction of all, least with few blocks. The launches of device
	 * functions are not known.
	 */
	p->of_request = p->a && p->b && (!p->a->launches || !p->b->launches || p->a->sample != p->b->sample);
	p->by_rates = is_partial(p->a) || is_partial(p->b) || p->of_request;
	before = p->a ? ttmon_mt_diff_compared(p, p->a) : 0;
	now = p->b ? ttmon_mt_diff_compared(p, p->b) : 0;
	p->change = (now - before) *
		    (double)(p->of_request ? any->row->sums.requests * any->sample : MAX(any->launches, 1u));
	if (!p->a)
		p->verdict = TTMON_MT_NEW;
	else if (!p->b)
		p->verdict = TTMON_MT_GONE;
	else
		p->verdict = now < before * (1 - slack)	  ? TTMON_MT_BETTER
			     : now > before * (1 + slack) ? TTMON_MT_WORSE
							  : TTMON_MT_SAME;
	p->differs =
		p->verdict != TTMON_MT_SAME || (p->by_rates ? rates_differ(&p->a->row->sums, &p->b->row->sums, slack)
							    : sums_differ(&p->a->row->sums, &p->b->row->sums));
}

/* Sorts by change, the largest first; equal ones keep their order. */
static int by_change(const void *pa, const void *pb)
{
	const struct ttmon_mt_diff_pair *a = pa, *b = pb;
	double x = a->change < 0 ? -a->change : a->change, y = b->change < 0 ? -b->change : b->change;
	const struct ttmon_mt_diff_item *ia = a->a ? a->a : a->b, *ib = b->a ? b->a : b->b;

	int c = (x < y) - (x > y) ?: (a->verdict == TTMON_MT_SAME) - (b->verdict == TTMON_MT_SAME);

	return c ?: (!a->a) - (!b->a) ?: (ia > ib) - (ia < ib);
}

static size_t make_pairs(struct ttmon_mt_diff_side *a, struct ttmon_mt_diff_side *b, struct ttmon_mt_diff_pair *pairs)
{
	size_t n = 0;

	for (size_t i = 0; i < a->nr; i++)
		pairs[n++] = (struct ttmon_mt_diff_pair){ .a = &a->items[i], .b = a->items[i].other };
	for (size_t i = 0; i < b->nr; i++)
		if (!b->items[i].other)
			pairs[n++] = (struct ttmon_mt_diff_pair){ .b = &b->items[i] };
	for (size_t i = 0; i < n; i++)
		judge(&pairs[i]);
	if (n)
		qsort(pairs, n, sizeof(*pairs), by_change);
	return n;
}

int ttmon_mt_diff_match(struct ttmon_mt_diff_side *a, struct ttmon_mt_diff_side *b, struct ttmon_mt_diff_pair **ret,
			size_t *n)
{
	_cleanup_free_ struct ttmon_mt_diff_item **of_a = calloc(a->nr + 1, sizeof(*of_a)),
						 **of_b = calloc(b->nr + 1, sizeof(*of_b));
	_cleanup_free_ struct ttmon_mt_diff_pair *pairs = calloc(a->nr + b->nr + 1, sizeof(*pairs));

	if (!of_a || !of_b || !pairs)
		return -ENOMEM;
	for (unsigned int how = 0; how < TTMON_MT_HOWS; how++)
		match(a, b, (enum ttmon_mt_how_matched)how, of_a, of_b);
	*n = make_pairs(a, b, pairs);
	*ret = TAKE_PTR(pairs);
	return 0;
}
