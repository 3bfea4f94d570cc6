// SPDX-License-Identifier: GPL-2.0-only
/* an.c: the entry points of the analysis, and its results. */
#include "memtrace/analyse/an_int.h"

#define ROWS	    16384u
#define HEAT_ROWS   64u
#define HEAT_COLS   128u
#define HEAT_MAX    1024u
#define EXACT_PAGES (1u << 20) /* shared by all buffers */

int ttmon_mt_an_new(const struct ttmon_mt_an_opts *opts, struct ttmon_mt_an **ret)
{
	struct ttmon_mt_an *an = calloc(1, sizeof(*an));
	int err = 0;

	if (!an)
		return -ENOMEM;
	if (opts)
		an->opts = *opts;
	an->opts.max_sites = an->opts.max_sites ? MIN(an->opts.max_sites, TTMON_MT_MAX_SITES) : ROWS;
	an->opts.max_launches = an->opts.max_launches ? MIN(an->opts.max_launches, TTMON_MT_MAX_LAUNCHES) : ROWS;
	an->opts.max_buffers = an->opts.max_buffers ? MIN(an->opts.max_buffers, TTMON_MT_MAX_SITES) : ROWS;
	an->opts.heat_rows = an->opts.heat_rows ? MIN(an->opts.heat_rows, HEAT_MAX) : HEAT_ROWS;
	an->opts.heat_cols = an->opts.heat_cols ? MIN(an->opts.heat_cols, HEAT_MAX) : HEAT_COLS;
	an->others = TTMON_MT_NONE;
	an->pages = EXACT_PAGES;
	an->dirty = true;
	for (unsigned int i = 0; i < TTMON_MT_AN_CELLS; i++)
		an->cells[i].key.site = TTMON_MT_NONE;
	for (unsigned int i = 0; i < TTMON_MT_AN_OPEN; i++)
		an->open[i].row = TTMON_MT_NONE;
	for (unsigned int i = 0; i < TTMON_MT_SPACE_MAX; i++)
		ttmon_mt_an_empty(&an->totals[i]);
	if (an->opts.reuse != TTMON_MT_REUSE_OFF)
		err = ttmon_mt_reuse_new(an->opts.reuse == TTMON_MT_REUSE_EXACT, an->opts.reuse_max, &an->reuse);
	if (err) {
		free(an);
		return err;
	}
	*ret = an;
	return 0;
}

void ttmon_mt_an_free(struct ttmon_mt_an *an)
{
	if (!an)
		return;
	ttmon_mt_an_buf_fini(an);
	for (unsigned int i = 0; i < TTMON_MT_AN_OPEN; i++)
		ttmon_mt_sectors_free(an->open[i].set);
	ttmon_mt_reuse_free(an->reuse);
	free(an->site_at);
	free(an->sites);
	free(an->site_more);
	free(an->launch_at);
	free(an->launches);
	free(an->launch_more);
	free(an->kernels);
	free(an->kernel_hash);
	free(an->heat_count);
	free(an->heat_buffer);
	free(an->pairs);
	free(an->pair_list);
	free(an->groups);
	free(an->joined);
	free(an->findings);
	free(an);
}

int ttmon_mt_an_feed(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *recs,
		     size_t n)
{
	int64_t done = 1;

	an->dirty = true;
	for (size_t i = 0; i < n && done > 0; i += (size_t)done) {
		const struct ttmon_mt_rec *rec = &recs[i];

		if (!rec->mask || rec->site >= dict->nr_sites || rec->launch >= dict->nr_launches ||
		    rec->space >= TTMON_MT_SPACE_MAX)
			done = -EINVAL;
		else if (!an->opts.want || an->opts.want(an->opts.ctx, dict, rec))
			done = ttmon_mt_an_some(an, dict, rec, an->opts.want ? 1 : n - i);
		else
			done = 1;
	}
	for (unsigned int i = 0; i < TTMON_MT_AN_CELLS; i++)
		if (an->cells[i].key.site != TTMON_MT_NONE)
			ttmon_mt_an_flush(an, &an->cells[i]);
	return done < 0 ? (int)done : 0;
}

/* ---- results ---- */

int ttmon_mt_an_settle(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict)
{
	int err = ttmon_mt_an_aggs(an, dict);

	if (!err && !an->opts.want)
		err = ttmon_mt_an_touches(an, dict);
	if (err)
		return err;
	for (unsigned int i = 0; i < TTMON_MT_AN_OPEN; i++)
		if (an->open[i].row != TTMON_MT_NONE)
			ttmon_mt_an_close(an, dict, &an->open[i]);
	err = ttmon_mt_an_make_buffers(an);
	err = err ?: ttmon_mt_an_make_pairs(an);
	if (err)
		return err;
	if (an->reuse)
		ttmon_mt_reuse_get(an->reuse, &an->reuse_result);
	an->dirty = false;
	return 0;
}

void ttmon_mt_an_stats(struct ttmon_mt_an *an, const struct ttmon_mt_stats *stats)
{
	an->stats = *stats;
	an->has_stats = true;
}

const struct ttmon_mt_sums *ttmon_mt_an_total(const struct ttmon_mt_an *an, unsigned int space)
{
	return &an->totals[space < TTMON_MT_SPACE_MAX ? space : TTMON_MT_GENERIC];
}

const struct ttmon_mt_site_row *ttmon_mt_an_sites(const struct ttmon_mt_an *an, size_t *n)
{
	*n = an->nr_sites;
	return an->sites;
}

const struct ttmon_mt_launch_row *ttmon_mt_an_launches(const struct ttmon_mt_an *an, size_t *n)
{
	*n = an->nr_launches;
	return an->launches;
}

const struct ttmon_mt_kernel_row *ttmon_mt_an_kernels(const struct ttmon_mt_an *an, size_t *n)
{
	*n = an->nr_kernels;
	return an->kernels;
}

const struct ttmon_mt_buffer_row *ttmon_mt_an_buffers(const struct ttmon_mt_an *an, size_t *n)
{
	*n = an->nr_buffers;
	return an->buffers;
}

const struct ttmon_mt_reuse_result *ttmon_mt_an_reuse(struct ttmon_mt_an *an)
{
	return an->reuse ? &an->reuse_result : NULL;
}
