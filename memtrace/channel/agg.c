// SPDX-License-Identifier: GPL-2.0-only
/* agg.c: what the GPU counted at a site, made into the sums that its records would have. */
#include "memtrace/channel/chan_int.h"
#include "memtrace/model/shape.h"

_Static_assert(TTMON_MT_CLASSES == TTMON_MT_CLASS_MAX, "one number for each class");
_Static_assert(TTMON_MTC_AGG_CLASSES == TTMON_MT_CLASSES && TTMON_MTC_AGG_COSTS + 1 == TTMON_MT_COST_BINS &&
		       TTMON_MTC_AGG_PAGES + 2 == TTMON_MT_PAGES_BINS && TTMON_MTC_AGG_STRIDES == TTMON_MT_AGG_STRIDES,
	       "the GPU's counters, and ours");

/*
 * A distribution of the GPU's, whose last place has more than all others: into ours, where n is at
 * [n]. Returns its sum.
 */
static uint64_t take_bins(uint64_t *to, const uint64_t *from, uint64_t more)
{
	uint64_t sum = more;

	for (unsigned int i = 0; i < TTMON_MTC_AGG_COSTS; i++) {
		to[i + 1] = from[i];
		sum += (i + 1) * from[i];
	}
	return sum;
}

/* Most of them are in one page, and those the GPU does not count. */
static void take_pages(uint64_t *to, const uint64_t *from, uint64_t requests)
{
	to[0] = requests;
	for (unsigned int i = 0; i < TTMON_MTC_AGG_PAGES; i++) {
		to[i + 1] = from[i];
		to[0] -= from[i];
	}
}

/* What follows from how many lanes there were. */
static void take_lanes(struct ttmon_mt_agg *agg, const struct ttmon_mtc_agg *g, const struct ttmon_mt_chan_site *s)
{
	for (unsigned int n = 1; n <= TTMON_MT_LANES; n++) {
		uint64_t times = g->lanes[n - 1];

		agg->lanes_hist[n] = times;
		agg->requests += times;
		agg->lanes += times * n;
		if (s->space != TTMON_MT_SHARED)
			agg->ideal_lanes += times * ((n * s->width + TTMON_MT_SECTOR - 1) / TTMON_MT_SECTOR);
	}
	agg->full = g->lanes[TTMON_MT_LANES - 1];
	agg->bytes = agg->lanes * s->width;
	agg->unique = agg->bytes - g->twice * s->width;
	agg->ideal = agg->ideal_lanes - g->saved;
}

/* What a request costs, by its space. */
static void take_costs(struct ttmon_mt_agg *agg, const struct ttmon_mtc_agg *g, const struct ttmon_mt_chan_site *s)
{
	uint64_t sum = take_bins(agg->cost_hist, g->cost, g->more_cost);

	if (s->space == TTMON_MT_SHARED) {
		agg->waves = sum;
		agg->phases = g->phases;
		agg->ideal_waves = g->ideal_waves;
		for (unsigned int n = 1; n < TTMON_MT_COST_BINS; n++)
			agg->max_waves = agg->cost_hist[n] ? n : agg->max_waves;
		return;
	}
	agg->sectors = sum;
	agg->lines = take_bins(agg->lines_hist, g->lines, g->more_lines);
	if (s->space != TTMON_MT_GLOBAL)
		return;
	agg->misaligned = g->misaligned;
	agg->pages_4k = agg->requests + g->pages_4k;
	agg->pages_64k = agg->requests + g->pages_64k;
	agg->pages_2m = agg->requests + g->pages_2m;
	take_pages(agg->pages_4k_bins, g->bins_4k, agg->requests);
	take_pages(agg->pages_2m_bins, g->bins_2m, agg->requests);
}

void ttmon_mt_chan_agg(const struct ttmon_mtc_agg *g, const struct ttmon_mt_chan_site *s, struct ttmon_mt_agg *ret)
{
	*ret = (struct ttmon_mt_agg){ .site = s->index - 1,
				      .launch = TTMON_MT_NO_LAUNCH,
				      .shapes = 1,
				      .min_addr = ~g->least,
				      .max_addr = g->greatest };
	take_lanes(ret, g, s);
	take_costs(ret, g, s);
	if (s->kind == TTMON_MT_ATOM || s->kind == TTMON_MT_RED) {
		ret->same = ret->requests + g->same;
		ret->max_same = (uint32_t)MIN(g->most_same + 1, TTMON_MT_LANES);
	}
	memcpy(ret->classes, g->classes, sizeof(ret->classes));
	memcpy(ret->stride, g->strides, sizeof(ret->stride));
	memcpy(ret->stride_requests, g->stride_requests, sizeof(ret->stride_requests));
	/* The GPU keeps a lane's first byte. */
	if (ret->min_addr <= ret->max_addr)
		ret->max_addr += s->width - 1u;
}
