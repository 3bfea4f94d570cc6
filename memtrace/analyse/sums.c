// SPDX-License-Identifier: GPL-2.0-only
/* sums.c: sums of requests. */
#include "memtrace/analyse/an_int.h"

double ttmon_mt_efficiency(const struct ttmon_mt_sums *s, bool requested)
{
	if (!s->sectors)
		return -1;
	return (double)(requested ? s->bytes : s->unique) / (TTMON_MT_SECTOR * (double)s->sectors);
}

unsigned int ttmon_mt_main_class(const struct ttmon_mt_sums *s, double *share)
{
	unsigned int best = 0;
	uint64_t all = 0;

	for (unsigned int i = 0; i < TTMON_MT_CLASS_MAX; i++) {
		all += s->classes[i];
		if (s->classes[i] > s->classes[best])
			best = i;
	}
	*share = all ? (double)s->classes[best] / (double)all : 0;
	return best;
}

uint64_t ttmon_mt_waste(const struct ttmon_mt_site_row *row)
{
	const struct ttmon_mt_sums *s = &row->sums;

	if (row->space == TTMON_MT_SHARED)
		return s->waves - MIN(s->ideal_waves, s->waves);
	return s->sectors - MIN(s->ideal, s->sectors);
}

void ttmon_mt_an_empty(struct ttmon_mt_sums *sums)
{
	*sums = (struct ttmon_mt_sums){ .min_addr = UINT64_MAX };
}

/* Two halves of a majority vote are one: votes for the same add up, others cancel out. */
static void merge_votes(int64_t *value, uint64_t *votes, int64_t other, uint64_t n)
{
	if (*value == other) {
		*votes += n;
	} else if (n > *votes) {
		*value = other;
		*votes = n - *votes;
	} else {
		*votes -= n;
	}
}

void ttmon_mt_sums_add(struct ttmon_mt_sums *to, const struct ttmon_mt_sums *s)
{
	if (s->min_addr <= s->max_addr && s->requests) {
		to->min_addr = to->requests ? MIN(to->min_addr, s->min_addr) : s->min_addr;
		to->max_addr = to->requests ? MAX(to->max_addr, s->max_addr) : s->max_addr;
	} else if (!to->requests) {
		to->min_addr = UINT64_MAX;
		to->max_addr = 0;
	}
	to->requests += s->requests;
	to->records += s->records;
	to->inferred += s->inferred;
	to->lanes += s->lanes;
	to->full += s->full;
	to->bytes += s->bytes;
	to->unique += s->unique;
	to->sectors += s->sectors;
	to->lines += s->lines;
	to->ideal += s->ideal;
	to->ideal_lanes += s->ideal_lanes;
	to->misaligned += s->misaligned;
	to->pages_4k += s->pages_4k;
	to->pages_64k += s->pages_64k;
	to->pages_2m += s->pages_2m;
	to->waves += s->waves;
	to->phases += s->phases;
	to->ideal_waves += s->ideal_waves;
	to->same += s->same;
	to->max_same = MAX(to->max_same, s->max_same);
	to->max_waves = MAX(to->max_waves, s->max_waves);
	to->reads += s->reads;
	to->writes += s->writes;
	for (unsigned int i = 0; i < TTMON_MT_CLASS_MAX; i++)
		to->classes[i] += s->classes[i];
	for (unsigned int i = 0; i < ARRAY_SIZE(s->lines_hist); i++) {
		to->lines_hist[i] += s->lines_hist[i];
		to->sectors_hist[i] += s->sectors_hist[i];
		to->waves_hist[i] += s->waves_hist[i];
	}
	for (unsigned int i = 0; i < TTMON_MT_LANES_BINS; i++)
		to->lanes_bins[i] += s->lanes_bins[i];
	for (unsigned int i = 0; i < TTMON_MT_PAGES_BINS; i++) {
		to->pages_4k_bins[i] += s->pages_4k_bins[i];
		to->pages_2m_bins[i] += s->pages_2m_bins[i];
	}
	merge_votes(&to->stride, &to->stride_votes, s->stride, s->stride_votes);
	merge_votes(&to->step, &to->step_votes, s->step, s->step_votes);
}
