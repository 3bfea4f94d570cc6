// SPDX-License-Identifier: GPL-2.0-only
/* counters.c: the counters of the aggregate mode, counted from the accesses in the plainest way there is. */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

/* How many distinct units of so many bytes the lanes touch. */
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

/* 8 bytes: half a warp at a time, 16: a quarter; as many passes as the bank with the most distinct words has. */
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

static void count(struct ttmon_mtc_agg *a, const struct ttmon_mt_site *site, const struct seen *s)
{
	unsigned int lanes = (unsigned int)__builtin_popcount(s->mask), space = site->space ? site->space : s->space;

	a->requests++;
	a->full += s->mask == UINT32_MAX;
	a->lanes += lanes;
	if (space == TTMON_MT_GLOBAL) {
		a->sectors += distinct(s, site->width, 32);
		a->lines += distinct(s, site->width, 128);
		a->ideal += (lanes * site->width + 31) / 32;
	} else if (space == TTMON_MT_SHARED) {
		a->waves += waves(s, site->width);
		a->ideal_waves += (distinct(s, site->width, 4) + 31) / 32;
	}
	if (!site->space && s->space != TTMON_MT_GLOBAL)
		return;
	for (unsigned int i = 0; i < GPU_LANES; i++)
		if (s->mask >> i & 1) {
			a->min_addr = s->addr[i] < a->min_addr ? s->addr[i] : a->min_addr;
			a->max_addr = s->addr[i] > a->max_addr ? s->addr[i] : a->max_addr;
		}
}

/* The pages as the recorder keeps them, in any order of their slots. */
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

void oracle_counters(struct oracle *o, const char *kernel)
{
	static const char *const names[] = { "requests", "full",  "lanes",	 "sectors",	  "lines",
					     "ideal",	 "waves", "ideal waves", "least address", "greatest address" };
	struct ttmon_mtc_agg *want = calloc(o->rw.nr_sites, sizeof(*want));
	struct ttmon_mtc_agg *have =
		(struct ttmon_mtc_agg *)gpu_mem_host(o->aggs, (FIRST_SITE + o->rw.nr_sites) * sizeof(*have)) +
		FIRST_SITE;

	if (!want)
		abort();
	for (size_t i = 0; i < o->rw.nr_sites; i++)
		want[i].min_addr = UINT64_MAX;
	for (size_t k = 0; k < o->want.nr; k++)
		count(&want[o->want.all[k].site], &o->rw.sites[o->want.all[k].site], &o->want.all[k]);
	for (uint32_t i = 0; i < o->rw.nr_sites; i++) {
		for (unsigned int j = 0; j < sizeof(*want) / 8; j++)
			if (((uint64_t *)&have[i])[j] != ((uint64_t *)&want[i])[j])
				oracle_fail(o, names[j], kernel, i, ((uint64_t *)&have[i])[j],
					    ((uint64_t *)&want[i])[j]);
		o->total += have[i].requests;
		memset(&have[i], 0, sizeof(have[i]));
		have[i].min_addr = UINT64_MAX;
	}
	pages(o, kernel);
	free(want);
	o->want.nr = 0;
}
