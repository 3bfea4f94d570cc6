// SPDX-License-Identifier: GPL-2.0-only
/*
 * counters.c: the counters of the aggregate mode, computed from the accesses: the cost of each in the
 * simplest way, its class and the other values by memtrace/model/shape.h, as a reader of a stream
 * does.
 */
#include "memtrace/model/shape.h"
#include "oracle.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of distinct units of this many bytes that the lanes touch. */
static uint64_t distinct(const struct seen *s, unsigned int width, unsigned int unit)
{
	uint64_t found[GPU_LANES * 64], nr = 0;

	for (unsigned int i = 0; i < GPU_LANES; i++)
		for (uint64_t x = s->addr[i] / unit; s->mask >> i & 1 && x <= (s->addr[i] + width - 1) / unit; x++) {
			uint64_t j = 0;

			while (j < nr && found[j] != x)
				j++;
			if (j == nr)
				found[nr++] = x;
		}
	return nr;
}

/*
 * 8 bytes: half a warp at a time, 16: a quarter. Each part takes as many passes as the bank with most
 * distinct words has words.
 */
static uint64_t waves(const struct seen *s, unsigned int width)
{
	unsigned int parts = width == 8 ? 2 : width == 16 ? 4 : 1, lanes = GPU_LANES / parts;
	uint64_t sum = 0;

	for (unsigned int p = 0; p < parts; p++) {
		uint64_t words[GPU_LANES * 4], nr = 0, most = 0;

		for (unsigned int i = p * lanes; i < (p + 1) * lanes; i++)
			for (uint64_t x = s->addr[i] / 4; s->mask >> i & 1 && x <= (s->addr[i] + width - 1) / 4; x++) {
				uint64_t j = 0;

				while (j < nr && words[j] != x)
					j++;
				if (j == nr)
					words[nr++] = x;
			}
		for (unsigned int bank = 0; bank < 32; bank++) {
			uint64_t n = 0;

			for (uint64_t j = 0; j < nr; j++)
				n += words[j] % 32 == bank;
			most = n > most ? n : most;
		}
		sum += most;
	}
	return sum;
}

#define MAX_STRIDES 4096

/* For one site: the expected counters, and how often each stride occurred. */
struct wanted {
	struct ttmon_mtc_agg agg;
	size_t nr_strides;
	struct {
		uint64_t stride, requests;
	} strides[MAX_STRIDES];
};

static void put_in(uint64_t *bins, uint64_t *more, uint64_t n)
{
	bins[n < TTMON_MTC_AGG_COSTS ? n - 1 : TTMON_MTC_AGG_COSTS - 1]++;
	*more += n > TTMON_MTC_AGG_COSTS ? n - TTMON_MTC_AGG_COSTS : 0;
}

static void put_pages(uint64_t *bins, uint64_t *sum, unsigned int n)
{
	unsigned int i = 0;

	*sum += n - 1;
	while (n > 2u << i)
		i++;
	if (n > 1)
		bins[i]++;
}

static void put_stride(struct wanted *w, int64_t stride)
{
	size_t i = 0;

	while (i < w->nr_strides && w->strides[i].stride != (uint64_t)stride)
		i++;
	if (!stride || i == MAX_STRIDES)
		return;
	w->nr_strides += i == w->nr_strides;
	w->strides[i].stride = (uint64_t)stride;
	w->strides[i].requests++;
}

static void count(struct wanted *w, const struct ttmon_mt_site *site, const struct seen *s)
{
	unsigned int lanes = (unsigned int)__builtin_popcount(s->mask), space = site->space ? site->space : s->space;
	struct ttmon_mt_rec rec = { .addr = s->addr, .mask = s->mask, .space = (uint8_t)space, .width = site->width };
	struct ttmon_mtc_agg *a = &w->agg;
	struct ttmon_mt_shape shape;

	ttmon_mt_get_shape(&rec, site->kind, &shape);
	a->lanes[lanes - 1]++;
	a->classes[shape.class]++;
	if (shape.class == TTMON_MT_STRIDED || shape.class == TTMON_MT_SEGMENTED)
		put_stride(w, shape.stride);
	if (space == TTMON_MT_GLOBAL) {
		put_in(a->cost, &a->more_cost, distinct(s, site->width, 32));
		put_in(a->lines, &a->more_lines, distinct(s, site->width, 128));
		put_pages(a->bins_4k, &a->pages_4k, shape.pages_4k);
		put_pages(a->bins_2m, &a->pages_2m, shape.pages_2m);
		a->pages_64k += shape.pages_64k - 1u;
		a->misaligned += shape.misaligned;
		a->saved += shape.ideal_lanes - shape.ideal;
	} else if (space == TTMON_MT_SHARED) {
		put_in(a->cost, &a->more_cost, waves(s, site->width));
		a->phases += shape.phases;
		a->ideal_waves += (distinct(s, site->width, 4) + 31) / 32;
	} else {
		put_in(a->cost, &a->more_cost, shape.sectors);
		put_in(a->lines, &a->more_lines, shape.lines);
	}
	if (space != TTMON_MT_LOCAL) {
		a->twice += lanes - shape.unique / site->width;
		a->same += shape.same ? shape.same - 1u : 0;
		if (shape.same > a->most_same + 1)
			a->most_same = shape.same - 1u;
	}
	for (unsigned int i = 0; i < GPU_LANES; i++)
		if (s->mask >> i & 1) {
			a->least = ~s->addr[i] > a->least ? ~s->addr[i] : a->least;
			a->greatest = s->addr[i] > a->greatest ? s->addr[i] : a->greatest;
		}
}

/* The pages as the recorder stores them, in any order of their slots. */
static uint64_t page_word(const uint64_t *set, uint64_t page)
{
	uint64_t slot = page * 0x9e3779b97f4a7c15ull >> (64 - __builtin_ctz(TOUCH_SLOTS));

	for (unsigned int i = 0; i < 16; i++)
		if (set[(slot + i) % TOUCH_SLOTS] >> 2 == page)
			return set[(slot + i) % TOUCH_SLOTS];
	return 0;
}

static void pages(struct oracle *o, const char *kernel)
{
	uint64_t *set = gpu_mem_host(o->touch, TOUCH_SLOTS * 8), *want = calloc(TOUCH_SLOTS, 8), nr = 0, in_set = 0;

	if (!want)
		abort();
	for (size_t k = 0; k < o->want.nr; k++) {
		const struct seen *s = &o->want.all[k];
		const struct ttmon_mt_site *site = &o->rw.sites[s->site];
		uint64_t how = (uint64_t)ttmon_mt_reads(site->kind) | (uint64_t)ttmon_mt_writes(site->kind) << 1;

		if ((site->space ? site->space : s->space) != TTMON_MT_GLOBAL || !how)
			continue;
		for (unsigned int i = 0; i < GPU_LANES; i++) {
			uint64_t page = s->addr[i] >> 12, j = 0;

			if (!(s->mask >> i & 1))
				continue;
			while (j < nr && want[j] >> 2 != page)
				j++;
			if (j == nr)
				want[nr++] = page << 2;
			want[j] |= how;
		}
	}
	for (uint64_t j = 0; j < nr; j++)
		if (page_word(set, want[j] >> 2) != want[j])
			oracle_fail(o, "page's word", kernel, 0, page_word(set, want[j] >> 2), want[j]);
	for (unsigned int i = 0; i < TOUCH_SLOTS; i++)
		in_set += set[i] != 0;
	if (in_set != nr)
		oracle_fail(o, "pages", kernel, 0, in_set, nr);
	memset(set, 0, TOUCH_SLOTS * 8);
	free(want);
}

/*
 * The first three strides have a counter; which ones come first depends on the order of the warps.
 */
static void strides(struct oracle *o, const char *kernel, uint32_t site, const struct ttmon_mtc_agg *have,
		    const struct wanted *w)
{
	uint64_t nr = 0;

	for (unsigned int i = 0; i < TTMON_MTC_AGG_STRIDES && have->strides[i]; i++, nr++) {
		size_t j = 0;

		while (j < w->nr_strides && w->strides[j].stride != have->strides[i])
			j++;
		if (j == w->nr_strides || w->strides[j].requests != have->stride_requests[i])
			oracle_fail(o, "requests of a stride", kernel, site, have->stride_requests[i],
				    j == w->nr_strides ? 0 : w->strides[j].requests);
	}
	if (nr != (w->nr_strides < TTMON_MTC_AGG_STRIDES ? w->nr_strides : TTMON_MTC_AGG_STRIDES))
		oracle_fail(o, "strides", kernel, site, nr, w->nr_strides);
}

/* Compares the counters of one site, except for strides. */
static void compare(struct oracle *o, const char *kernel, uint32_t site, const struct ttmon_mtc_agg *have,
		    const struct ttmon_mtc_agg *want)
{
	static const struct {
		const char *name;
		size_t at, nr;
	} fields[] = {
#define F(f) { #f, offsetof(struct ttmon_mtc_agg, f) / 8, sizeof(want->f) / 8 }
		F(most_same), F(classes), F(misaligned), F(saved),	 F(twice),     F(pages_4k),   F(pages_64k),
		F(pages_2m),  F(same),	  F(phases),	 F(ideal_waves), F(more_cost), F(more_lines), F(lanes),
		F(cost),      F(lines),	  F(bins_4k),	 F(bins_2m),	 F(pad),       F(least),      F(greatest),
#undef F
	};
	size_t all = sizeof(have->strides) / 8 + sizeof(have->stride_requests) / 8;

	for (size_t f = 0; f < sizeof(fields) / sizeof(*fields); f++) {
		all += fields[f].nr;
		for (size_t i = fields[f].at; i < fields[f].at + fields[f].nr; i++) {
			uint64_t x = ((const uint64_t *)have)[i], y = ((const uint64_t *)want)[i];
			char name[64];

			snprintf(name, sizeof(name), "%s[%zu]", fields[f].name, i - fields[f].at);
			if (x != y)
				oracle_fail(o, name, kernel, site, x, y);
		}
	}
	if (all != sizeof(*have) / 8)
		oracle_fail(o, "fields that are compared", kernel, site, all, sizeof(*have) / 8);
}

void oracle_counters(struct oracle *o, const char *kernel)
{
	struct wanted *want = calloc(o->rw.nr_sites, sizeof(*want));
	struct ttmon_mtc_agg *have =
		(struct ttmon_mtc_agg *)gpu_mem_host(o->aggs, (FIRST_SITE + o->rw.nr_sites) * sizeof(*have)) +
		FIRST_SITE;

	if (!want)
		abort();
	for (size_t k = 0; k < o->want.nr; k++)
		count(&want[o->want.all[k].site], &o->rw.sites[o->want.all[k].site], &o->want.all[k]);
	for (uint32_t i = 0; i < o->rw.nr_sites; i++) {
		compare(o, kernel, i, &have[i], &want[i].agg);
		strides(o, kernel, i, &have[i], &want[i]);
		for (unsigned int j = 0; j < 32; j++)
			o->total += have[i].lanes[j];
		memset(&have[i], 0, sizeof(have[i]));
	}
	pages(o, kernel);
	free(want);
	o->want.nr = 0;
}
