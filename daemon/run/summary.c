// SPDX-License-Identifier: GPL-2.0-only
/*
 * summary.c: the results of a run, in tables of at most 80 columns. No colour: it goes to files as
 * often as to terminals.
 */
#include "daemon/run/names.h"
#include "daemon/run/summary.h"
#include "lib/demangle/site.h"
#include "lib/base/names.h"
#include "lib/base/fmt.h"

#define SPOTS	     5
#define PROCS	     10
#define SITE_COLUMNS 77
#define LINE_ROOM    256 /* of a line of Python */

static char *bytes(char *buf, uint64_t v)
{
	return ttmon_fmt_bytes(buf, TTMON_FMT_LEN, v);
}

static char *count(char *buf, uint64_t v)
{
	return ttmon_fmt_count(buf, TTMON_FMT_LEN, v);
}

static char *worth(char *text, uint64_t v, bool known, bool at_least)
{
	return ttmon_fmt_known(text, TTMON_FMT_LEN, text, v, known, at_least);
}

static bool copied(const struct ttmon_proc *p)
{
	uint64_t copies = 0;

	for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++)
		for (unsigned int m = 0; m < TTMON_MEM_MAX; m++)
			copies += p->xfer[d][m].copies;
	return copies;
}

/* Why the figures are lower bounds, once for each reason. */
static void missed(FILE *f, const struct ttmon_pipeline *p)
{
	uint32_t why = ttmon_pipeline_incomplete(p, false);

	if (!why)
		return;
	fprintf(f, "not complete");
	for (unsigned int i = 0, n = 0; i < TTMON_INCOMPLETE_MAX; i++)
		if (why >> i & 1)
			fprintf(f, "%s%s", n++ ? "\n  and " : ": ", ttmon_incomplete_help(i));
	fprintf(f, "\n\">=\" stands before a lower bound, \"-\" for what is not known\n\n");
}

static void processes(FILE *f, const struct ttmon_history *h)
{
	size_t n = ttmon_history_procs(h), shown = 0;
	char now[TTMON_FMT_LEN], peak[TTMON_FMT_LEN], pins[TTMON_FMT_LEN], allocs[TTMON_FMT_LEN], comm[TTMON_FMT_LEN];
	bool known, at_least;

	fprintf(f, "%-8s %-16s %10s %10s %12s %12s\n", "PID", "COMMAND", "PINS", "ALLOCS", "PINNED NOW", "PINNED PEAK");
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_proc *p = ttmon_history_proc(h, i);

		if (!p || (!p->allocs && !p->frees && !p->failed && !p->kernels && !copied(p)))
			continue;
		if (shown++ == PROCS) {
			fprintf(f, "  ... and more\n");
			break;
		}
		known = ttmon_history_known(h, p, TTMON_FAMILY_ALLOC) != TTMON_UNKNOWN;
		at_least = ttmon_history_at_least(h, p);
		fprintf(f, "%-8u %-16s %10s %10s %12s %12s\n", p->tgid, ttmon_fmt_text(comm, 17, p->comm),
			worth(count(pins, p->pins), p->pins, known, at_least),
			worth(count(allocs, p->allocs), p->allocs, known, at_least),
			worth(bytes(now, p->pinned_bytes), p->pinned_bytes, known && ttmon_history_pinned_known(h, p),
			      at_least && !p->exit_ns),
			worth(bytes(peak, p->pinned_peak_bytes), p->pinned_peak_bytes, known, at_least));
	}
	if (!shown)
		fprintf(f, "  no process used CUDA\n");
}

static void transfers(FILE *f, const struct ttmon_history_totals *t, const struct ttmon_seen_family *seen,
		      bool at_least)
{
	char copies[TTMON_FMT_LEN], moved[TTMON_FMT_LEN];
	bool any = false;

	for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++) {
		for (unsigned int m = 0; m < TTMON_MEM_MAX; m++) {
			if (!t->xfer[d][m].copies)
				continue;
			if (!any)
				fprintf(f, "\n%-10s %-12s %14s %14s\n", "TRANSFERS", "HOST MEMORY", "COPIES", "BYTES");
			any = true;
			fprintf(f, "%-10s %-12s %14s %14s\n", ttmon_rdir_name(d), ttmon_mem_name(m),
				worth(count(copies, t->xfer[d][m].copies), t->xfer[d][m].copies, true, at_least),
				worth(bytes(moved, t->xfer[d][m].bytes), t->xfer[d][m].bytes, true, at_least));
		}
	}
	if (!any)
		fprintf(f, "\nno transfers%s\n", seen->off_ns || seen->missed ? " were seen" : "");
}

/* Families that were on from the start and did not see everything. */
static void not_seen(FILE *f, const struct ttmon_seen_view *v)
{
	bool any = false;
	char buf[TTMON_FMT_LEN];

	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		const struct ttmon_seen_family *s = &v->of[i];

		if (s->why == TTMON_GAP_WHY_MAX || (!s->off_ns && !s->missed))
			continue;
		fprintf(f, "%snot all of %s was seen", any ? "" : "\n", ttmon_family_name(i));
		if (s->off_ns)
			fprintf(f, ": nothing for %s", ttmon_fmt_ns(buf, sizeof(buf), s->off_ns));
		fprintf(f, "; its sums are lower bounds\n");
		any = true;
	}
}

/*
 * The names of the frames of a call site that have one, innermost first, borrowed, or made in rooms:
 * how many, TTMON_MAX_FRAMES at most.
 */
static size_t symbols_of(const struct ttmon_history *h, const struct ttmon_spot *s, const char **ret,
			 char (*rooms)[LINE_ROOM])
{
	const struct ttmon_site *site = s->site ? ttmon_history_site(h, s->site) : NULL;
	size_t n = 0;

	for (uint32_t i = 0; site && i < MIN(site->nframes, (uint32_t)TTMON_MAX_FRAMES); i++) {
		const char *symbol = ttmon_history_frame_name(h, &site->frames[i], rooms[n], LINE_ROOM);

		if (symbol)
			ret[n++] = symbol;
	}
	return n;
}

/* "load_batch < main" if frames have names, else the name of the memory. */
static void site_text(const struct ttmon_history *h, const struct ttmon_spot *s, char *const *names, size_t nr,
		      char *buf, size_t n)
{
	const struct ttmon_alloc *a = ttmon_history_alloc(h, s->alloc_seq);
	const char *frames[TTMON_MAX_FRAMES];

	buf[0] = '\0';
	for (size_t i = 0; i < nr; i++)
		frames[i] = names[i] ? names[i] : "?";
	if (nr)
		ttmon_site_join(buf, n, frames, nr, SITE_COLUMNS);
	else if (a && a->name)
		ttmon_fmt_text(buf, n, a->name);
	else if (a)
		snprintf(buf, n, "%s at 0x%llx", a->method == TTMON_METHOD_MMAP ? "mapping" : "allocation",
			 (unsigned long long)a->addr);
}

static void spots(FILE *f, const struct ttmon_history *h, bool hot)
{
	char size[TTMON_FMT_LEN], copies[TTMON_FMT_LEN], gain[2 * TTMON_FMT_LEN], where[SITE_COLUMNS + 1];
	const char *symbols[SPOTS * TTMON_MAX_FRAMES];
	char *names[SPOTS * TTMON_MAX_FRAMES];
	static char rooms[SPOTS * TTMON_MAX_FRAMES][LINE_ROOM];
	struct ttmon_spot s[SPOTS];
	size_t n = hot ? ttmon_history_hotspots(h, s, SPOTS) : ttmon_history_coldspots(h, s, SPOTS);
	size_t nr[SPOTS], all = 0, at = 0;

	if (!n)
		return;
	for (size_t i = 0; i < n; i++)
		all += nr[i] = symbols_of(h, &s[i], symbols + all, rooms + all);
	ttmon_names_show(symbols, all, names);
	fprintf(f, "\n%s\n%-15s %-19s %10s %10s  %s\n", hot ? "HOTTEST UNPINNED" : "COLDEST PINNED", "ADVICE", "TIME",
		"SIZE", "COPIES", "MEMORY");
	for (size_t i = 0; i < n; i++) {
		const char *method = ttmon_method_name(s[i].method);

		site_text(h, &s[i], names + at, nr[i], where, sizeof(where));
		at += nr[i];
		fprintf(f, "%-15s %-19s %10s %10s  %s\n", ttmon_advice_name(s[i].said.advice),
			ttmon_said_text(gain, sizeof(gain), &s[i].said), bytes(size, s[i].bytes),
			count(copies, s[i].copies + s[i].back_copies), method ? method : "?");
		fprintf(f, "  %s\n  %s\n", where, ttmon_reason_text(s[i].said.reason));
	}
	for (size_t i = 0; i < all; i++)
		free(names[i]);
}

static void trouble(FILE *f, struct ttmon_pipeline *p, const struct ttmon_history_totals *t)
{
	const struct ttmon_history *h = ttmon_pipeline_history(p);
	const struct ttmon_error_count *errors;
	size_t n = ttmon_history_errors(h, &errors);
	struct ttmon_kernel_counts k;
	char buf[TTMON_FMT_LEN], why[256];

	for (size_t i = 0; i < n && i < SPOTS; i++) {
		const char *name = ttmon_error_name(errors[i].fn, errors[i].err), *fn = ttmon_fn_name(errors[i].fn);

		fprintf(f, "%s%s failed %s times with %d%s%s%s\n", i ? "" : "\n", fn ? fn : "?",
			count(buf, errors[i].count), errors[i].err, name ? " (" : "", name ? name : "",
			name ? ")" : "");
	}
	for (unsigned int i = 0; i < TTMON_FINDING_MAX; i++) {
		uint64_t sum = 0;

		for (size_t k2 = 0; k2 < ttmon_history_procs(h); k2++)
			sum += ttmon_history_proc(h, k2) ? ttmon_history_proc(h, k2)->findings[i] : 0;
		if (sum)
			fprintf(f, "finding: %s (%s)\n", ttmon_finding_help(i), count(buf, sum));
	}
	if (t->graph_copies || t->captured)
		fprintf(f, "blind spot: copies inside CUDA graphs are not seen (%s graph launches)\n",
			count(buf, t->graphs));
	ttmon_pipeline_kernel_counts(p, &k);
	for (unsigned int i = 0; i < TTMON_LOSS_MAX; i++)
		if (k.reason[i])
			fprintf(f, "lost: %s events, %s\n", count(buf, k.reason[i]), ttmon_loss_name(i));
	if (t->events_dropped || t->evicted)
		fprintf(f, "history full: %llu events and %llu allocations were not kept\n",
			(unsigned long long)t->events_dropped, (unsigned long long)t->evicted);
	if (t->unknown_frees || t->unmatched)
		fprintf(f, "%llu frees of memory whose allocation was not seen, %llu copies from unknown addresses\n",
			(unsigned long long)t->unknown_frees, (unsigned long long)t->unmatched);
	if (t->gpu_use_gone)
		fprintf(f,
			"%s uses of memory by kernels are booked to nothing: it was gone when they were told, or "
			"never seen\n",
			count(buf, t->gpu_use_gone));
	if (!ttmon_pipeline_check(p, why, sizeof(why)))
		fprintf(f, "accounting does not balance: %s\n", why);
}

void ttmon_summary(FILE *f, struct ttmon_pipeline *p, bool trace_only, uint64_t end_ns)
{
	const struct ttmon_history *h = ttmon_pipeline_history(p);
	const struct ttmon_ev_clock *clock = ttmon_history_clock(h);
	struct ttmon_history_totals t;
	struct ttmon_seen_view seen;
	bool at_least;
	char took[TTMON_FMT_LEN], peak[TTMON_FMT_LEN], pins[TTMON_FMT_LEN], pages[TTMON_FMT_LEN];

	ttmon_history_get_totals(h, &t);
	ttmon_pipeline_seen(p, &seen);
	at_least = ttmon_history_all_at_least(h);
	fprintf(f, "\nttmond: %s traced\n\n",
		clock ? ttmon_fmt_ns(took, sizeof(took), end_ns - clock->mono_ns) : "nothing");
	missed(f, p);
	processes(f, h);
	transfers(f, &t, &seen.of[TTMON_FAMILY_TRANSFER], at_least);
	if (!trace_only) {
		spots(f, h, true);
		spots(f, h, false);
	}
	ttmon_summary_tt(f, p);
	ttmon_summary_cpu(f, p);
	trouble(f, p, &t);
	not_seen(f, &seen);
	fprintf(f, "\npinned in all: %s allocation%s, peak %s page%s (%s)\n",
		worth(count(pins, t.pins), t.pins, true, at_least), t.pins == 1 ? "" : "s",
		worth(count(pages, t.pinned_peak_pages), t.pinned_peak_pages, true, at_least),
		t.pinned_peak_pages == 1 ? "" : "s",
		worth(bytes(peak, t.pinned_peak_bytes), t.pinned_peak_bytes, true, at_least));
}
