// SPDX-License-Identifier: GPL-2.0-only
/*
 * show.c: the text output of `ttmon advise`, in 80 columns. Names chosen by traced programs are
 * stripped of control characters, by the caller or here.
 */
#include <inttypes.h>

#include "tools/advise/advise.h"
#include "tools/cli/show.h"

#define COLUMNS 80

static const char *const titles[TTMON_ADVICE_MAX] = { [TTMON_ADVICE_PIN] = "PIN",
						      [TTMON_ADVICE_ALLOCATE] = "ALLOCATE PINNED",
						      [TTMON_ADVICE_UNPIN] = "UNPIN",
						      [TTMON_ADVICE_KEEP] = "KEEP",
						      [TTMON_ADVICE_UNKNOWN] = "UNKNOWN" };

/* ---- the cost model ---- */

void ttmon_advise_show_cost(const struct ttmon_advise_opts *o, const struct ttmon_advise_cost *cost)
{
	static const char *const what[] = { "from pageable memory", "from pinned memory", "to pin memory",
					    "a call that pins", "a call that unpins" };
	const uint64_t rates[] = { cost->cost.pageable_bps, cost->cost.pinned_bps, cost->cost.pinning_bps,
				   cost->cost.pin_call_ns, cost->cost.unpin_call_ns };

	printf("COST MODEL\n");
	for (unsigned int i = 0; i < TTMON_ADVISE_RATES; i++)
		if (i < TTMON_ADVISE_PIN_CALL)
			printf("  %-20s %7.2f GB/s  %s\n", what[i], (double)rates[i] / 1e9, cost->from[i]);
		else
			printf("  %-20s %7.1f us    %s\n", what[i], (double)rates[i] / 1e3, cost->from[i]);
	if (cost->warning)
		printf("  %s%s%s\n", ttmon_show_escape(TTMON_SHOW_WARN), cost->warning,
		       ttmon_show_escape(TTMON_SHOW_PLAIN));
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
		/* Rounding must not show a part as 100 % unless it is all, nor as 0 % unless it is nothing. */
		snprintf(buf, n, "%.1f%%", part < whole && share > 99.9 ? 99.9 : part && share < 0.1 ? 0.1 : share);
	return buf;
}

static void pages_row(unsigned int p, const struct ttmon_policy_result *r, uint64_t best)
{
	char pins[TTMON_FMT_LEN], pages[TTMON_FMT_LEN], peak[TTMON_FMT_LEN], mean[TTMON_FMT_LEN];
	char reserved[TTMON_FMT_LEN], times[TTMON_FMT_LEN], sum[TTMON_FMT_LEN];

	printf("%-16s %6s %10s %9s %9s %7s %5s %11s\n", ttmon_advise_row_name(p),
	       ttmon_fmt_count(pins, sizeof(pins), r->pins), ttmon_fmt_count(pages, sizeof(pages), r->peak_pages),
	       ttmon_fmt_bytes(peak, sizeof(peak), r->peak_pages * TTMON_POLICY_PAGE),
	       ttmon_fmt_bytes(mean, sizeof(mean), r->mean_pages * TTMON_POLICY_PAGE),
	       ratio(reserved, sizeof(reserved), r->reserved_peak, r->requested_peak),
	       ratio(times, sizeof(times), r->peak_pages, best),
	       ttmon_fmt_ns(sum, sizeof(sum), (uint64_t)(r->transfer_ns + r->pinning_ns)));
}

static void time_row(unsigned int p, const struct ttmon_policy_result *r)
{
	char share[TTMON_FMT_LEN], pinned[TTMON_FMT_LEN], transfer[TTMON_FMT_LEN], pages[TTMON_FMT_LEN];
	char calls[TTMON_FMT_LEN], sum[TTMON_FMT_LEN];

	printf("%-16s %8s %10s %11s %8s %8s %12s\n", ttmon_advise_row_name(p),
	       percent(share, sizeof(share), r->moved_pinned_bytes, r->moved_bytes),
	       ttmon_fmt_bytes(pinned, sizeof(pinned), r->pages_pinned * TTMON_POLICY_PAGE),
	       ttmon_fmt_ns(transfer, sizeof(transfer), (uint64_t)r->transfer_ns),
	       ttmon_fmt_ns(pages, sizeof(pages), (uint64_t)(r->pinning_ns - r->calls_ns)),
	       ttmon_fmt_ns(calls, sizeof(calls), (uint64_t)r->calls_ns),
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

	printf("\n%-16s %6s %10s %9s %9s %7s %5s %11s\n", "POLICY", "PINS", "PEAK PAGES", "PEAK", "MEAN", "RES/REQ",
	       "/BEST", "TIME");
	for (unsigned int p = 0; p < TTMON_ADVISE_ROWS; p++)
		if (ttmon_advise_has_row(g, p))
			pages_row(p, &rows[p], rows[TTMON_POLICY_HINDSIGHT].peak_pages);
	printf("\n%-16s %8s %10s %11s %8s %8s %12s\n", "POLICY", "SHARE", "PINNED", "TRANSFER", "PAGES", "CALLS",
	       "TIME");
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
		printf(", %sincomplete (%s)%s", ttmon_show_escape(TTMON_SHOW_WARN),
		       ttmon_fmt_text(reasons, sizeof(reasons), run->reasons), ttmon_show_escape(TTMON_SHOW_PLAIN));
	putchar('\n');
}

static void show_source(const struct ttmon_advise_group *g)
{
	if (g->trained)
		printf("This advice was made from the databases of --train alone.\n");
	else if (g->nr_runs == 1)
		printf("This advice was made from the run that it is tested on: the next run will do\n"
		       "worse where it differs. Two or more databases show by how much.\n");
	else
		printf("This advice was made from all %zu runs; \"advice of others\" tests on each run\n"
		       "the advice of the other runs: what a run that was not traced can expect.\n",
		       g->nr_runs);
}

/* Only the policy "hindsight" pins mappings, so the advice about mappings is in no other row. */
static void show_mapped(const struct ttmon_advise_sites *sites)
{
	char text[TTMON_FMT_LEN];
	int64_t gain = 0;

	for (size_t i = 0; i < sites->n; i++)
		if (sites->v[i].mapped && sites->v[i].known && ttmon_advice_pins(sites->v[i].advice, false))
			gain += sites->v[i].gain_ns;
	if (gain > 0)
		printf("\"this advice\" leaves mappings that should be pinned (PIN, above) pageable:\n"
		       "pinning them saves another %s in each run.\n",
		       ttmon_fmt_ns(text, sizeof(text), (uint64_t)gain));
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

static const char *signed_ns(char *buf, size_t n, int64_t ns)
{
	char text[TTMON_FMT_LEN];

	snprintf(buf, n, "%s%s", ns < 0 ? "-" : "", ttmon_fmt_ns(text, sizeof(text), (uint64_t)(ns < 0 ? -ns : ns)));
	return buf;
}

static void show_gain(const struct ttmon_advise_site *s)
{
	char text[2 * TTMON_FMT_LEN], low[TTMON_FMT_LEN + 1], high[TTMON_FMT_LEN + 1];

	printf("%s", ttmon_gain_text(text, sizeof(text), s->advice, s->known, s->gain_ns));
	if (s->known && s->low_ns != s->high_ns)
		printf("; %s to %s", signed_ns(low, sizeof(low), s->low_ns), signed_ns(high, sizeof(high), s->high_ns));
}

static void show_site(const struct ttmon_advise_site *s, size_t nr_runs, bool trained)
{
	char allocs[TTMON_FMT_LEN], size[2 * TTMON_FMT_LEN], peak[TTMON_FMT_LEN], copied[TTMON_FMT_LEN];
	char copies[TTMON_FMT_LEN], text[COLUMNS - 2];

	printf("  %s\n    %s x %s, at most %s at one time; ", ttmon_fmt_text(text, sizeof(text), s->shown),
	       ttmon_fmt_count(allocs, sizeof(allocs), s->allocs), sizes(size, sizeof(size), s),
	       ttmon_fmt_bytes(peak, sizeof(peak), s->peak_pages * TTMON_POLICY_PAGE));
	if (s->copies)
		printf("%s %s\n", ttmon_fmt_count(copies, sizeof(copies), s->copies),
		       s->copies == 1 ? "copy" : "copies");
	else
		printf("never copied\n");
	printf("    ");
	show_gain(s);
	printf("\n    %s moved", ttmon_fmt_bytes(copied, sizeof(copied), s->bytes));
	if (s->advice != TTMON_ADVICE_UNKNOWN && s->match > TTMON_MATCH_NONE && s->match < TTMON_MATCH_MAX)
		printf("; %.0f%% sure (%s)", 100 * s->confidence, ttmon_advise_match_name(s->match));
	if (nr_runs > 1)
		printf("; %" PRIu64 "/%zu runs", s->runs, nr_runs);
	putchar('\n');
	if (!trained)
		printf("    %s\n", ttmon_reason_text(s->reason));
}

static void show_sites(const struct ttmon_advise_opts *o, const struct ttmon_advise_sites *sites, size_t nr_runs,
		       bool trained)
{
	size_t i = 0;

	while (i < sites->n) {
		unsigned int advice = sites->v[i].advice, shown = 0;
		size_t first = i;

		while (i < sites->n && sites->v[i].advice == advice)
			i++;
		printf("\n%s\n", titles[advice]);
		for (size_t k = first; k < i && shown < o->top; k++, shown++)
			show_site(&sites->v[k], nr_runs, trained);
		if (i - first > shown)
			printf("  and %zu more, see --top\n", i - first - shown);
	}
	if (!sites->n)
		printf("\nThere is no pinned host memory, and none that could be pinned.\n");
}

/* What all of it saves, in one line. */
static void show_verdict(const struct ttmon_advise_sites *sites)
{
	static const unsigned int acts[] = { TTMON_ADVICE_PIN, TTMON_ADVICE_ALLOCATE, TTMON_ADVICE_UNPIN };
	static const char *const verbs[] = { "to pin", "to allocate pinned", "to unpin" };
	char text[TTMON_FMT_LEN];
	size_t n[3] = { 0 }, shown = 0;
	bool unknown = false;
	int64_t gain = 0;

	for (size_t i = 0; i < sites->n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(acts); k++)
			if (sites->v[i].advice == acts[k]) {
				n[k]++;
				unknown |= !sites->v[i].known;
				gain += sites->v[i].known ? sites->v[i].gain_ns : 0;
			}
	if (!(n[0] + n[1] + n[2])) {
		printf("\nNothing to pin or to unpin is known.\n");
		return;
	}
	printf("\nCall sites ");
	for (size_t k = 0; k < ARRAY_SIZE(acts); k++)
		if (n[k])
			printf("%s%s: %zu", shown++ ? ", " : "", verbs[k], n[k]);
	if (gain > 0)
		printf("; together that saves %s%s a run", unknown ? ">= " : "",
		       ttmon_fmt_ns(text, sizeof(text), (uint64_t)gain));
	printf(".\n");
}

void ttmon_advise_show(const struct ttmon_advise_opts *o, const struct ttmon_advise_group *g,
		       const struct ttmon_advise_cost *cost, const struct ttmon_advise_sites *sites)
{
	_cleanup_free_ char *exe = ttmon_show_clean(g->exe);
	uint64_t unknown = g->total[TTMON_POLICY_ADVICE].unknown, kept = g->total[TTMON_POLICY_ADVICE].in_place_kept;
	char count[TTMON_FMT_LEN], count2[TTMON_FMT_LEN];

	(void)cost;
	printf("PROGRAM %s\n", exe ? exe : "?");
	for (size_t i = 0; i < g->nr_runs; i++) {
		printf("  ");
		show_run_name(g->runs[i].run);
	}
	show_verdict(sites);
	show_sites(o, sites, g->nr_runs, g->trained);
	printf("\nWHAT EACH WAY OF PINNING COSTS");
	if (g->nr_runs > 1)
		printf("\nAll %zu runs together: sums; peaks are the highest of one run, means those of all.",
		       g->nr_runs);
	show_rows(g, g->total);
	show_source(g);
	show_mapped(sites);
	if (unknown)
		printf("%s allocations are in no group, and stay as they were.\n",
		       ttmon_fmt_count(count, sizeof(count), unknown));
	if (kept)
		printf("%s allocations without a copy stay pinned: kernels accessed %s of them in place, and may "
		       "access the others.\n",
		       ttmon_fmt_count(count, sizeof(count), kept),
		       ttmon_fmt_count(count2, sizeof(count2), g->total[TTMON_POLICY_ADVICE].in_place_seen));
	for (size_t i = 0; o->runs && g->nr_runs > 1 && i < g->nr_runs; i++) {
		printf("\nRUN ");
		show_run_name(g->runs[i].run);
		show_rows(g, g->runs[i].rows);
	}
	putchar('\n');
}

/* ---- what to type next ---- */

/* The command line of the program, if a shell takes it as it is; else "CMD". */
static const char *command_of(const struct ttmon_run *run, const char *exe)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-:@%,= ";

	for (size_t i = 0; i < run->nr_procs; i++) {
		const char *line = run->procs[i].cmdline;

		if (run->procs[i].exe && !strcmp(run->procs[i].exe, exe) && line && *line && strlen(line) < 200 &&
		    !line[strspn(line, plain)])
			return line;
	}
	return "CMD";
}

/* One of the names in list, "a,b", is these len bytes. */
static bool is_in_list(const char *list, const char *name, size_t len)
{
	for (const char *p = list; *p; p += strspn(p, ",")) {
		size_t word = strcspn(p, ",");

		if (word == len && !memcmp(p, name, len))
			return true;
		p += word;
	}
	return false;
}

/* Functions whose memory is to be unpinned, "a,b", each once; "": none has a name of its own. */
static const char *unpin_names(char *buf, size_t n, const struct ttmon_advise_sites *sites)
{
	size_t at = 0;

	*buf = '\0';
	for (size_t i = 0; i < sites->n; i++) {
		const char *text = sites->v[i].text;
		size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

		if (sites->v[i].advice == TTMON_ADVICE_UNPIN && len && text[len] == '+' && at + len + 2 < n &&
		    !is_in_list(buf, text, len))
			at += (size_t)snprintf(buf + at, n - at, "%s%.*s", at ? "," : "", (int)len, text);
	}
	return buf;
}

void ttmon_advise_show_next(const char *path, const struct ttmon_run *run, const char *exe,
			    const struct ttmon_advise_sites *sites)
{
	char name[600], unpin[400];

	ttmon_fmt_quote(name, sizeof(name), path);
	unpin_names(unpin, sizeof(unpin), sites);
	printf("\nnext: sudo ttmon run --pin %s%s%s -- %s\n", name, *unpin ? " --unpin " : "", unpin,
	       command_of(run, exe));
	if (*unpin)
		printf("      (--unpin: where no kernel uses that memory in place, libttmon-pin(7))\n");
	printf("      ttmon view %s\n", name);
}
