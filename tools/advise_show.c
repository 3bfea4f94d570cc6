// SPDX-License-Identifier: GPL-2.0-only
/*
 * advise_show.c: `ttmon advise` for a person, in 80 columns. Names that traced programs chose are cleaned before they get here, or here.
 */
#include <inttypes.h>

#include "tools/advise.h"
#include "tools/show.h"

#define COLUMNS 80

static const char *const titles[][2] = {
#define X(NAME, json, title, help) [TTMON_ADVISE_##NAME] = { title, help },
	TTMON_ADVISE_KIND_TABLE(X)
#undef X
};

/* ---- the cost model ---- */

void ttmon_advise_show_cost(const struct ttmon_advise_opts *o, const struct ttmon_advise_cost *cost)
{
	static const char *const what[] = { "from pageable memory", "from pinned memory", "to pin memory" };
	const uint64_t rates[] = { cost->cost.pageable_bps, cost->cost.pinned_bps, cost->cost.pinning_bps };

	printf("COST MODEL\n");
	for (unsigned int i = 0; i < TTMON_ADVISE_RATES; i++)
		printf("  %-20s %7.2f GB/s  %s\n", what[i], (double)rates[i] / 1e9, cost->from[i]);
	if (cost->warning)
		printf("  %s%s%s\n", ttmon_show_colour(TTMON_SHOW_WARN), cost->warning,
		       ttmon_show_colour(TTMON_SHOW_PLAIN));
	if (o->round_max || o->cached_max) {
		printf("  PyTorch:");
		if (o->round_max)
			printf(" requests over %" PRIu64 " MiB are not rounded", o->round_max >> 20);
		if (o->cached_max)
			printf("%s blocks over %" PRIu64 " MiB are not cached", o->round_max ? "," : "",
			       o->cached_max >> 20);
		putchar('\n');
	}
}

/* ---- policies ---- */

static const char *ratio(char *buf, size_t n, uint64_t a, uint64_t b)
{
	if (b)
		snprintf(buf, n, "%.2f", (double)a / (double)b);
	else
		snprintf(buf, n, "-");
	return buf;
}

static const char *percent(char *buf, size_t n, uint64_t part, uint64_t whole)
{
	double share = whole ? 100.0 * (double)part / (double)whole : 0;

	if (!whole)
		snprintf(buf, n, "-");
	else
		/* All of it and none of it are not what rounding makes. */
		snprintf(buf, n, "%.1f%%", part < whole && share > 99.9 ? 99.9 : part && share < 0.1 ? 0.1 : share);
	return buf;
}

static void pages_row(unsigned int p, const struct ttmon_policy_result *r, uint64_t best)
{
	char pins[TTMON_FMT_LEN], pages[TTMON_FMT_LEN], peak[TTMON_FMT_LEN], mean[TTMON_FMT_LEN];
	char reserved[TTMON_FMT_LEN], times[TTMON_FMT_LEN];

	printf("%-16s %9s %12s %10s %10s %7s %9s\n", ttmon_advise_row_name(p),
	       ttmon_fmt_count(pins, sizeof(pins), r->pins), ttmon_fmt_count(pages, sizeof(pages), r->peak_pages),
	       ttmon_fmt_bytes(peak, sizeof(peak), r->peak_pages * TTMON_POLICY_PAGE),
	       ttmon_fmt_bytes(mean, sizeof(mean), r->mean_pages * TTMON_POLICY_PAGE),
	       ratio(reserved, sizeof(reserved), r->reserved_peak, r->requested_peak),
	       ratio(times, sizeof(times), r->peak_pages, best));
}

static void time_row(unsigned int p, const struct ttmon_policy_result *r)
{
	char share[TTMON_FMT_LEN], pinned[TTMON_FMT_LEN], transfer[TTMON_FMT_LEN], pinning[TTMON_FMT_LEN];
	char sum[TTMON_FMT_LEN];

	printf("%-16s %11s %13s %11s %11s %11s\n", ttmon_advise_row_name(p),
	       percent(share, sizeof(share), r->moved_pinned_bytes, r->moved_bytes),
	       ttmon_fmt_bytes(pinned, sizeof(pinned), r->pages_pinned * TTMON_POLICY_PAGE),
	       ttmon_fmt_ns(transfer, sizeof(transfer), (uint64_t)r->transfer_ns),
	       ttmon_fmt_ns(pinning, sizeof(pinning), (uint64_t)r->pinning_ns),
	       ttmon_fmt_ns(sum, sizeof(sum), (uint64_t)(r->transfer_ns + r->pinning_ns)));
}

static void show_bound(const struct ttmon_policy_result *r, const char *whose)
{
	char least[TTMON_FMT_LEN], share[TTMON_FMT_LEN], times[TTMON_FMT_LEN];

	if (!r->least_pages)
		return;
	printf("No choice with %s of the bytes from pinned memory has fewer than %s pages\n"
	       "at its peak: %s has %s times as many.\n",
	       percent(share, sizeof(share), r->moved_pinned_bytes, r->moved_bytes),
	       ttmon_fmt_count(least, sizeof(least), r->least_pages), whose,
	       ratio(times, sizeof(times), r->peak_pages, r->least_pages));
}

static void show_rows(const struct ttmon_advise_group *g, const struct ttmon_policy_result *rows)
{
	unsigned int honest = ttmon_advise_has_row(g, TTMON_ADVISE_OTHERS) ? TTMON_ADVISE_OTHERS : TTMON_POLICY_ADVICE;

	printf("\n%-16s %9s %12s %10s %10s %7s %9s\n", "POLICY", "PINS", "PEAK PAGES", "PEAK", "MEAN", "RES/REQ",
	       "HINDSIGHT");
	for (unsigned int p = 0; p < TTMON_ADVISE_ROWS; p++)
		if (ttmon_advise_has_row(g, p))
			pages_row(p, &rows[p], rows[TTMON_POLICY_HINDSIGHT].peak_pages);
	printf("\n%-16s %11s %13s %11s %11s %11s\n", "POLICY", "FROM PINNED", "PINNED IN ALL", "TRANSFER", "PINNING",
	       "SUM");
	for (unsigned int p = 0; p < TTMON_ADVISE_ROWS; p++)
		if (ttmon_advise_has_row(g, p))
			time_row(p, &rows[p]);
	putchar('\n');
	show_bound(&rows[honest], honest == TTMON_ADVISE_OTHERS ? "the advice of others" : "this advice");
}

/* ---- where it comes from ---- */

static void show_run_name(const struct ttmon_run *run)
{
	_cleanup_free_ char *path = ttmon_show_clean(run->path);
	char length[TTMON_FMT_LEN], reasons[64];

	printf("%s, %s", path ? path : "?", ttmon_fmt_ns(length, sizeof(length), run->end_ns - run->start_ns));
	if (!run->complete)
		printf(", %sincomplete (%s)%s", ttmon_show_colour(TTMON_SHOW_WARN),
		       ttmon_fmt_text(reasons, sizeof(reasons), run->reasons), ttmon_show_colour(TTMON_SHOW_PLAIN));
	putchar('\n');
}

static void show_source(const struct ttmon_advise_group *g)
{
	if (g->trained)
		printf("This advice was made from the databases of --train alone.\n");
	else if (g->nr_runs == 1)
		printf("This advice was made from the run that it is tried on: the next run will do\n"
		       "worse where it differs. Two databases or more show by how much.\n");
	else
		printf("This advice was made from all %zu runs; \"advice of others\" tries on each run\n"
		       "what the others alone say: what a run that was not traced can expect.\n",
		       g->nr_runs);
}

/* ---- the advice ---- */

static const char *sizes(char *buf, size_t n, const struct ttmon_advise_site *s)
{
	char min[TTMON_FMT_LEN], max[TTMON_FMT_LEN];

	ttmon_fmt_bytes(max, sizeof(max), s->max_size);
	if (s->min_size == s->max_size)
		snprintf(buf, n, "%s", max);
	else
		snprintf(buf, n, "%s to %s", ttmon_fmt_bytes(min, sizeof(min), s->min_size), max);
	return buf;
}

static void show_gain(const struct ttmon_advise_site *s)
{
	char ns[TTMON_FMT_LEN], cost[TTMON_FMT_LEN];

	if (s->kind == TTMON_ADVISE_PIN || s->kind == TTMON_ADVISE_ORDINARY) {
		printf("saves %s", ttmon_fmt_ns(ns, sizeof(ns), (uint64_t)MAX(s->saved_ns, 0)));
		printf(", pinning %s", ttmon_fmt_ns(cost, sizeof(cost), (uint64_t)(s->saved_ns - s->gain_ns)));
	} else if (s->kind == TTMON_ADVISE_NO_PIN && s->gain_ns < 0) {
		printf("pinning loses %s", ttmon_fmt_ns(ns, sizeof(ns), (uint64_t)-s->gain_ns));
	} else {
		printf("%s so far", s->pinned ? "pinned" : "pageable");
	}
}

static void show_site(const struct ttmon_advise_site *s, size_t nr_runs)
{
	char allocs[TTMON_FMT_LEN], size[2 * TTMON_FMT_LEN], peak[TTMON_FMT_LEN], copied[TTMON_FMT_LEN];
	char copies[TTMON_FMT_LEN], text[COLUMNS - 2];

	printf("  %s\n    %s x %s, at most %s at one time; ", ttmon_fmt_text(text, sizeof(text), s->text),
	       ttmon_fmt_count(allocs, sizeof(allocs), s->allocs), sizes(size, sizeof(size), s),
	       ttmon_fmt_bytes(peak, sizeof(peak), s->peak_pages * TTMON_POLICY_PAGE));
	if (s->copies)
		printf("%s %s\n", ttmon_fmt_count(copies, sizeof(copies), s->copies),
		       s->copies == 1 ? "copy" : "copies");
	else
		printf("never copied\n");
	printf("    ");
	show_gain(s);
	if (s->bytes)
		printf("; %s sent", ttmon_fmt_bytes(copied, sizeof(copied), s->bytes));
	if (s->kind != TTMON_ADVISE_ORDINARY && s->kind != TTMON_ADVISE_UNKNOWN)
		printf("; %.0f%% sure (%s)", 100 * s->confidence, ttmon_advise_match_name(s->match));
	if (nr_runs > 1)
		printf("; %" PRIu64 "/%zu runs", s->runs, nr_runs);
	putchar('\n');
}

static void show_sites(const struct ttmon_advise_opts *o, const struct ttmon_advise_sites *sites, size_t nr_runs)
{
	size_t i = 0;

	while (i < sites->n) {
		unsigned int kind = sites->v[i].kind, shown = 0;
		size_t first = i;

		while (i < sites->n && sites->v[i].kind == kind)
			i++;
		printf("\n%s (%s)\n", titles[kind][0], titles[kind][1]);
		for (size_t k = first; k < i && shown < o->top; k++, shown++)
			show_site(&sites->v[k], nr_runs);
		if (i - first > shown)
			printf("  and %zu more, see --top\n", i - first - shown);
	}
	if (!sites->n)
		printf("\nNo host memory that could be pinned, and none that is.\n");
}

void ttmon_advise_show(const struct ttmon_advise_opts *o, const struct ttmon_advise_group *g,
		       const struct ttmon_advise_cost *cost, const struct ttmon_advise_sites *sites)
{
	_cleanup_free_ char *exe = ttmon_show_clean(g->exe);
	uint64_t unknown = g->total[TTMON_POLICY_ADVICE].unknown, kept = g->total[TTMON_POLICY_ADVICE].in_place_kept;
	char count[TTMON_FMT_LEN], count2[TTMON_FMT_LEN];

	(void)cost;
	printf("\nPROGRAM %s\n", exe ? exe : "?");
	for (size_t i = 0; i < g->nr_runs; i++) {
		printf("  ");
		show_run_name(g->runs[i].run);
	}
	if (g->nr_runs > 1)
		printf("\nAll %zu runs together: sums; peaks are the highest of one run, means those of all.",
		       g->nr_runs);
	show_rows(g, g->total);
	show_source(g);
	if (unknown)
		printf("%s allocations are not in it, and stay as they were.\n",
		       ttmon_fmt_count(count, sizeof(count), unknown));
	if (kept)
		printf("%s allocations without a copy stay pinned: %s a kernel was seen to read or write in place, the others one may.\n",
		       ttmon_fmt_count(count, sizeof(count), kept),
		       ttmon_fmt_count(count2, sizeof(count2), g->total[TTMON_POLICY_ADVICE].in_place_seen));
	for (size_t i = 0; o->runs && g->nr_runs > 1 && i < g->nr_runs; i++) {
		printf("\nRUN ");
		show_run_name(g->runs[i].run);
		show_rows(g, g->runs[i].rows);
	}
	show_sites(o, sites, g->nr_runs);
}
