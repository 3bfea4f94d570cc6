// SPDX-License-Identifier: GPL-2.0-only
/* text.c: the sums as a table and as JSON. An unknown value is "-" or null. */
#include <inttypes.h>

#include "lib/base/fmt.h"
#include "lib/os/proc.h"
#include "tools/cli/show.h"
#include "tools/programs/programs.h"
#include "tools/term/table.h"

enum { PROGRAM, PROCESS, CHIP, RUNS, RATE, BUSY, ERROR, MEDIAN, P99, GAP, COLUMNS };

static void put_time(struct ttmon_term_cell *cell, uint64_t ns)
{
	if (ns == TTMON_PROGRAMS_UNKNOWN)
		snprintf(cell->text, sizeof(cell->text), "-");
	else
		ttmon_fmt_ns(cell->text, sizeof(cell->text), ns);
}

/* Puts a share of the window. */
static void put_share(struct ttmon_term_cell *cell, const char *sign, uint64_t ns, uint64_t window_ns)
{
	if (ns == TTMON_PROGRAMS_UNKNOWN || !window_ns)
		snprintf(cell->text, sizeof(cell->text), "-");
	else
		snprintf(cell->text, sizeof(cell->text), "%s%.1f %%", sign, 100.0 * (double)ns / (double)window_ns);
}

static uint64_t busy_of(const struct ttmon_programs_row *r)
{
	/* If some runs have no time, the busy time of the row is not known. */
	return r->timed == r->runs ? r->busy_ns : TTMON_PROGRAMS_UNKNOWN;
}

static uint64_t error_of(const struct ttmon_programs_row *r)
{
	return r->timed == r->runs ? r->error_ns : TTMON_PROGRAMS_UNKNOWN;
}

/* Shortens paths to file names: "bmm.cpp, reader_bmm.cpp". */
static void short_names(char *buf, size_t n, const char *kernels)
{
	size_t len = 0;

	for (const char *at = kernels, *base = at; len + 1 < n; at++) {
		if (*at == '/')
			base = at + 1;
		if (*at && *at != ',')
			continue;
		len += (size_t)snprintf(buf + len, n - len, "%s%.*s", len ? ", " : "", (int)(at - base), base);
		if (!*at)
			break;
		at += at[1] == ' ';
		base = at + 1;
	}
}

static void fill(struct ttmon_term_cell *c, const struct ttmon_programs *p, const struct ttmon_programs_row *r,
		 bool utf8)
{
	char comm[16] = "", number[TTMON_FMT_LEN], names[512] = "";

	if (r->kernels) {
		short_names(names, sizeof(names), r->kernels);
		ttmon_term_clean(c[PROGRAM].text, sizeof(c[PROGRAM].text), names, sizeof(names), 60, utf8);
	} else {
		snprintf(c[PROGRAM].text, sizeof(c[PROGRAM].text), "#%" PRIu32, r->program);
	}
	ttmon_proc_comm(r->pid, comm);
	ttmon_fmt_text(number, sizeof(number), comm);
	snprintf(c[PROCESS].text, sizeof(c[PROCESS].text), "%s[%" PRIu32 "]", number, r->pid);
	if (r->chip)
		snprintf(c[CHIP].text, sizeof(c[CHIP].text), "%" PRIu32, r->chip);
	else
		snprintf(c[CHIP].text, sizeof(c[CHIP].text), "- (device %" PRIu32 ")", r->device);
	ttmon_fmt_count(c[RUNS].text, sizeof(c[RUNS].text), r->runs);
	if (p->window_ns)
		snprintf(c[RATE].text, sizeof(c[RATE].text), "%.1f", (double)r->runs * 1e9 / (double)p->window_ns);
	else
		snprintf(c[RATE].text, sizeof(c[RATE].text), "-");
	put_share(&c[BUSY], "", busy_of(r), p->window_ns);
	put_share(&c[ERROR], utf8 ? "\xc2\xb1" : "+-", error_of(r), p->window_ns);
	put_time(&c[MEDIAN], ttmon_programs_rank(&r->lengths, 50));
	put_time(&c[P99], ttmon_programs_rank(&r->lengths, 99));
	put_time(&c[GAP], ttmon_programs_rank(&r->gaps, 50));
}

static void put_count(FILE *out, uint64_t n, const char *what)
{
	char text[TTMON_FMT_LEN];

	if (n)
		fprintf(out, "%s runs %s\n", ttmon_fmt_count(text, sizeof(text), n), what);
}

void ttmon_programs_print(const struct ttmon_programs *p, size_t columns, bool utf8, FILE *out)
{
	const struct ttmon_term_style style = { .columns = columns, .utf8 = utf8 };
	struct ttmon_term_table t = {
		.titles = { "PROGRAM", "PROCESS", "CHIP", "RUNS", "RUNS/S", "BUSY", "ERROR", "MEDIAN", "P99", "GAP" },
		.right = { false, false, false, true, true, true, true, true, true, true },
		.nr_cols = COLUMNS,
		.flex = PROGRAM,
		.gap = 2,
	};

	for (size_t i = 0; i < p->n; i++) {
		struct ttmon_term_cell *c = ttmon_term_table_row(&t);

		if (c)
			fill(c, p, &p->v[i], utf8);
	}
	ttmon_term_table_print(&t, &style, out);
	ttmon_term_table_fini(&t);
	if (!p->n)
		fprintf(out, "no runs: they come from tt-metal's real-time profiler, see ttmon(1)\n");
	put_count(out, p->missed, "were missed");
	put_count(out, p->earlier, "before these are not kept");
	put_count(out, p->left_out, "were left out: out of memory");
}

/* ---- JSON ---- */

static json_t *known(uint64_t value)
{
	return value == TTMON_PROGRAMS_UNKNOWN ? json_null() : json_integer((json_int_t)value);
}

static json_t *share(uint64_t ns, uint64_t window_ns)
{
	return ns == TTMON_PROGRAMS_UNKNOWN || !window_ns ? json_null() : json_real((double)ns / (double)window_ns);
}

static json_t *text_or_null(const char *text)
{
	json_t *j = text && *text ? json_string(text) : NULL;

	return j ? j : json_null();
}

static json_t *row_json(const struct ttmon_programs *p, const struct ttmon_programs_row *r)
{
	char comm[16] = "";

	ttmon_proc_comm(r->pid, comm);
	return json_pack("{s:o, s:o, s:I, s:o, s:I, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kernels",
			 text_or_null(r->kernels), "program", r->many_ids ? json_null() : json_integer(r->program),
			 "pid", (json_int_t)r->pid, "comm", text_or_null(comm), "device", (json_int_t)r->device, "chip",
			 r->chip ? json_integer(r->chip) : json_null(), "runs", (json_int_t)r->runs, "runs_per_s",
			 p->window_ns ? json_real((double)r->runs * 1e9 / (double)p->window_ns) : json_null(),
			 "busy_ns", known(busy_of(r)), "busy_error_ns", known(error_of(r)), "busy_share",
			 share(busy_of(r), p->window_ns), "busy_share_error", share(error_of(r), p->window_ns),
			 "median_ns", known(ttmon_programs_rank(&r->lengths, 50)), "p99_ns",
			 known(ttmon_programs_rank(&r->lengths, 99)), "gap_median_ns",
			 known(ttmon_programs_rank(&r->gaps, 50)));
}

json_t *ttmon_programs_json(const struct ttmon_programs *p)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < p->n; i++)
		json_array_append_new(rows, row_json(p, &p->v[i]));
	return json_pack("{s:I, s:I, s:I, s:o}", "window_ns", (json_int_t)p->window_ns, "missed", (json_int_t)p->missed,
			 "earlier", (json_int_t)p->earlier, "programs", rows);
}
