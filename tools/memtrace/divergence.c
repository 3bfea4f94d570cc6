// SPDX-License-Identifier: GPL-2.0-only
/*
 * divergence.c: prints how far requests are spread, one line each for active lanes, sectors, lines,
 * pages, and wavefronts.
 */
#include "tools/memtrace/cells.h"

#define BINS	7
#define LABELS	18 /* width of the labels */
#define AVERAGE 28 /* column where the bins begin */

/* Groups a histogram of 0 to 32 and above into bins: 1, 2, 3-4, 5-8, 9-16, 17-32, more. */
static void fold(const uint64_t *hist, uint64_t *bins)
{
	memset(bins, 0, BINS * sizeof(*bins));
	for (unsigned int n = 1; n <= TTMON_MT_LANES; n++)
		bins[n < 2 ? 0 : 32 - __builtin_clz(n - 1)] += hist[n];
	bins[BINS - 1] = hist[TTMON_MT_LANES + 1];
}

/* sum: of the counted value over all requests in the bins. */
static void line(FILE *out, size_t width, const char *what, uint64_t sum, const uint64_t *bins,
		 const char *const *names, unsigned int n)
{
	uint64_t all = 0;
	char x[TTMON_FMT_LEN], text[300] = "";
	size_t len = 0;

	for (unsigned int i = 0; i < n; i++)
		all += bins[i];
	if (!all)
		return;
	for (unsigned int i = 0; i < n && len < sizeof(text); i++) {
		if (!bins[i])
			continue;
		/* Lines are not broken at the space between a bin and its share. */
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s:%s", len ? " " : "", names[i],
					bins[i] * 2000 < all ? "<0.1%" : PERCENT(x, share_of(bins[i], all)));
	}
	fprintf(out, "%-*s%*s  ", LABELS, what, AVERAGE - LABELS - 2, PER(x, sum, all));
	ttmon_mt_wrap(out, text, AVERAGE, AVERAGE, width);
}

void ttmon_mt_divergence(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	static const char *const lanes[] = { "1", "2-3", "4-7", "8-15", "16-31", "32" };
	static const char *const powers[BINS] = { "1", "2", "3-4", "5-8", "9-16", "17-32", "more" };
	const struct ttmon_mt_sums *s = ttmon_mt_an_total(r->an, TTMON_MT_GENERIC);
	uint64_t sectors[BINS], lines[BINS], waves[BINS], any = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(lanes); i++)
		any += s->lanes_bins[i];
	if (!any)
		return;
	fold(s->sectors_hist, sectors);
	fold(s->lines_hist, lines);
	fold(s->waves_hist, waves);
	ttmon_mt_title(out, "DIVERGENCE: requests by what one of them takes: the average, and how many take so many",
		       width);
	line(out, width, "lanes", s->lanes, s->lanes_bins, lanes, ARRAY_SIZE(lanes));
	line(out, width, "sectors", s->sectors, sectors, powers, BINS);
	line(out, width, "lines of 128 B", s->lines, lines, powers, BINS);
	line(out, width, "pages of 4 KiB", s->pages_4k, s->pages_4k_bins, powers, BINS);
	line(out, width, "pages of 2 MiB", s->pages_2m, s->pages_2m_bins, powers, BINS);
	line(out, width, "shared wavefronts", s->waves, waves, powers, BINS);
}
