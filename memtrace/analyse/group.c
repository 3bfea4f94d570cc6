// SPDX-License-Identifier: GPL-2.0-only
/*
 * group.c: groups instructions of one source line that do the same: copies by unrolling and inlining,
 * and fields of one structure. A group is reported as one, unless its members behave differently: a
 * line that reads x[i] and y[32 * i] has two instructions with the same name, of which only one is a
 * problem.
 */
#include "memtrace/analyse/an_int.h"

#define ALIKE 1.1 /* figures of a request that differ by no more are the same */

struct like {
	const struct ttmon_mt_site *site;
	uint32_t row;
	uint8_t space, kind, width, class;
	uint64_t stride;
	double sectors, waves, lanes; /* of a request */
};

static void set(struct like *to, const struct ttmon_mt_an *an, const struct ttmon_mt_site *site, uint32_t row)
{
	const struct ttmon_mt_site_row *r = &an->sites[row];
	const struct ttmon_mt_sums *s = &r->sums;
	double share, n = (double)MAX(s->requests, 1);

	*to = (struct like){ .site = site,
			     .row = row,
			     .space = r->space,
			     .kind = r->kind,
			     .width = r->width,
			     .class = (uint8_t)ttmon_mt_main_class(s, &share),
			     .stride = s->stride_votes ? (uint64_t)llabs(s->stride) : 0,
			     .sectors = (double)s->sectors / n,
			     .waves = (double)s->waves / n,
			     .lanes = (double)s->lanes / n };
}

static int64_t by_key(const struct like *a, const struct like *b)
{
	const struct ttmon_mt_site *x = a->site, *y = b->site;
	int64_t d = strcmp(x->kernel, y->kernel);

	d = d ?: (int64_t)x->line - y->line;
	d = d ?: strcmp(x->file, y->file);
	d = d ?: strcmp(x->opcode, y->opcode);
	d = d ?: strcmp(x->module, y->module);
	d = d
		    ?: (a->space << 24 | a->kind << 16 | a->width << 8 | a->class) -
			       (b->space << 24 | b->kind << 16 | b->width << 8 | b->class);
	return d ?: (a->stride > b->stride) - (a->stride < b->stride);
}

static int in_order(const void *pa, const void *pb)
{
	const struct like *a = pa, *b = pb;
	int64_t d = by_key(a, b);

	d = d ?: (a->sectors > b->sectors) - (a->sectors < b->sectors);
	d = d ?: (a->waves > b->waves) - (a->waves < b->waves);
	d = d ?: (a->lanes > b->lanes) - (a->lanes < b->lanes);
	d = d ?: (a->row > b->row) - (a->row < b->row);
	return (d > 0) - (d < 0);
}

static bool close_to(double a, double b)
{
	return MAX(a, b) <= ALIKE * MIN(a, b);
}

static bool alike(const struct like *a, const struct like *b)
{
	return !by_key(a, b) && close_to(a->sectors, b->sectors) && close_to(a->waves, b->waves) &&
	       close_to(a->lanes, b->lanes);
}

static void join(struct ttmon_mt_an *an, struct ttmon_mt_site_row *to, const struct like *of, uint32_t n)
{
	struct ttmon_mt_site_group *g = &an->groups[an->nr_groups++];

	*g = (struct ttmon_mt_site_group){ .row = of->row, .nr = n, .all = &an->sites[of->row] };
	if (n == 1)
		return;
	*to = an->sites[of->row];
	for (uint32_t i = 1; i < n; i++) {
		const struct ttmon_mt_site_row *row = &an->sites[of[i].row];

		ttmon_mt_sums_add(&to->sums, &row->sums);
		if (ttmon_mt_waste(row) > ttmon_mt_waste(&an->sites[g->row]))
			g->row = of[i].row;
	}
	to->site = an->sites[g->row].site;
	g->all = to;
}

int ttmon_mt_an_groups(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_site_group **ret,
		       size_t *n)
{
	_cleanup_free_ struct like *like = calloc(an->nr_sites + 1, sizeof(*like));
	uint32_t nr = 0, several = 0, k;

	free(an->groups);
	free(an->joined);
	an->nr_groups = 0;
	an->joined = NULL;
	an->groups = calloc(an->nr_sites + 1, sizeof(*an->groups));
	if (!like || !an->groups)
		return -ENOMEM;
	for (uint32_t i = 0; i < an->nr_sites; i++) {
		uint32_t site = an->sites[i].site;

		if (site < dict->nr_sites && *dict->sites[site].file && dict->sites[site].line)
			set(&like[nr++], an, &dict->sites[site], i);
		else
			an->groups[an->nr_groups++] = (struct ttmon_mt_site_group){ i, 1, &an->sites[i] };
	}
	qsort(like, nr, sizeof(*like), in_order);
	for (uint32_t i = 0; i < nr; i = k) {
		for (k = i + 1; k < nr && alike(&like[i], &like[k]); k++)
			;
		several += k > i + 1;
	}
	if (several) {
		an->joined = calloc(several, sizeof(*an->joined));
		if (!an->joined)
			return -ENOMEM;
	}
	several = 0;
	for (uint32_t i = 0; i < nr; i = k) {
		for (k = i + 1; k < nr && alike(&like[i], &like[k]); k++)
			;
		join(an, an->joined ? &an->joined[several] : NULL, &like[i], k - i);
		several += k > i + 1;
	}
	*ret = an->groups;
	*n = an->nr_groups;
	return 0;
}
