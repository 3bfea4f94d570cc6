// SPDX-License-Identifier: GPL-2.0-only
/*
 * parts.c: prints what a trace contains and what is missing in it, findings, reuse distances and the
 * heat map.
 */
#include <inttypes.h>
#include <langinfo.h>
#include <stdarg.h>

#include "lib/demangle/site.h"
#include "tools/memtrace/tool.h"
#include "tools/cli/show.h"

#define LEVELS 8
#define NAMED  4 /* number of kernels that are named */

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- head ---- */

/*
 * Counts kernels. Sums of the GPU may have no kernels: then all instructions are in functions that
 * kernels call.
 */
static size_t nr_kernels(const struct ttmon_mt_report *r)
{
	bool sums = r->dict->nr_aggs && ttmon_mt_pick_is_all(&r->args->pick);
	size_t n = 0;

	for (size_t i = 0; i < r->nr_kernels && !sums; i++)
		n += !r->kernels[i]->function;
	for (size_t i = 0; i < r->dict->nr_kernels && sums; i++)
		n += r->dict->kernels[i].recorded != 0;
	return n;
}

static void what_it_is(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	const struct ttmon_mt_stats *st = r->stats;
	char tool[80], path[200], site[100], a[TTMON_FMT_LEN], b[TTMON_FMT_LEN], c[TTMON_FMT_LEN], text[700];
	bool from_stdin = !strcmp(r->path, "-");
	size_t kernels = nr_kernels(r);
	int n;

	n = snprintf(text, sizeof(text), "%s: %s, %s, %s record%s, %s launch%s of %zu kernel%s, %zu site%s",
		     from_stdin ? "standard input" : ttmon_fmt_text(path, sizeof(path), r->path),
		     *st->tool ? ttmon_fmt_text(tool, sizeof(tool), st->tool) : "a trace",
		     ttmon_fmt_bytes(a, sizeof(a), st->bytes), ttmon_fmt_count(b, sizeof(b), st->records),
		     plural(st->records), ttmon_fmt_count(c, sizeof(c), r->dict->nr_launches),
		     r->dict->nr_launches == 1 ? "" : "es", kernels, plural(kernels), r->dict->nr_sites,
		     plural(r->dict->nr_sites));
	if (r->dict->nr_aggs && n > 0 && (size_t)n < sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, "; sums of the GPU for %zu of them", r->dict->nr_aggs);
	ttmon_mt_wrap(out, text, 0, 2, width);
	if (ttmon_mt_pick_is_all(&r->args->pick))
		return;
	snprintf(text, sizeof(text), "Of these, only%s%s%s%s%s%s", r->args->pick.kernel ? " kernels like " : "",
		 r->args->pick.kernel ? ttmon_fmt_text(path, sizeof(path), r->args->pick.kernel) : "",
		 r->args->pick.launches ? " launches " : "", r->args->pick.launches ? r->args->pick.launches : "",
		 r->args->pick.site ? " instructions like " : "",
		 r->args->pick.site ? ttmon_fmt_text(site, sizeof(site), r->args->pick.site) : "");
	for (unsigned int s = 0; s < TTMON_MT_SPACE_MAX; s++)
		if (r->args->pick.spaces >> s & 1)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s", ttmon_mt_space_name(s));
	ttmon_mt_wrap(out, text, 0, 2, width);
}

struct lacks {
	FILE *out;
	size_t width;
	unsigned int nr;
};

static void _printf_(2, 3) lack(struct lacks *l, const char *fmt, ...)
{
	char text[500];
	va_list ap;

	if (!l->nr++)
		fprintf(l->out, "%sMissing or in doubt:%s\n", ttmon_show_escape(TTMON_SHOW_WARN),
			ttmon_show_escape(TTMON_SHOW_PLAIN));
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fputs("  ", l->out);
	ttmon_mt_wrap(l->out, text, 2, 4, l->width);
}

static void lack_of(void *l, const char *text)
{
	lack(l, "- %s", text);
}

/* Names some kernels with instructions that are not recorded. */
static const char *left_out(const struct ttmon_mt_dict *d, char *buf, size_t size)
{
	size_t len = 0, n = 0;

	*buf = '\0';
	for (size_t i = 0; i < d->nr_kernels && len < size; i++) {
		_cleanup_free_ char *name = d->kernels[i].left_out ? ttmon_mt_short_name(d->kernels[i].name) : NULL;

		if (!name || n > NAMED)
			continue;
		len += (size_t)snprintf(buf + len, size - len, "%s%s", n ? ", " : "", n < NAMED ? name : "...");
		n++;
	}
	return buf;
}

/* Lists kernels that were seen but are not in the trace. */
static void not_covered(const struct ttmon_mt_report *r, struct lacks *l)
{
	const struct ttmon_mt_dict *d = r->dict;
	uint64_t out_of_reach = 0;
	char names[400];
	size_t n = ttmon_mt_missing(d, false, NULL, NULL);

	for (size_t i = 0; i < d->nr_kernels; i++)
		out_of_reach += d->kernels[i].left_out;
	if (n) {
		lack(l, "%zu of %zu kernels that were seen are not recorded, or not in all launches:", n,
		     d->nr_kernels);
		ttmon_mt_missing(d, r->args->all, lack_of, l);
	}
	if (out_of_reach)
		lack(l,
		     "%" PRIu64
		     " instruction%s may access memory in ways that are not recorded (bulk and tensor copies, "
		     "textures, multimem, calls by pointer): of %s",
		     out_of_reach, plural(out_of_reach), left_out(d, names, sizeof(names)));
}

static void missing(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	const struct ttmon_mt_stats *st = r->stats;
	struct lacks l = { .out = out, .width = width };
	char a[TTMON_FMT_LEN], b[TTMON_FMT_LEN];

	if (r->err)
		lack(&l, "reading ended with an error: this is what was read until then");
	else if (r->interrupted)
		lack(&l, "reading was interrupted: this is what was read until then");
	else if (st->cut)
		lack(&l, "the trace ends in the middle: it was cut");
	if (st->dropped)
		lack(&l, "%s of %s records were dropped by the producer, which had no room",
		     ttmon_fmt_count(a, sizeof(a), st->dropped), ttmon_fmt_count(b, sizeof(b), st->produced));
	if (st->sample > 1)
		lack(&l, "a sample: one block in %u was recorded", st->sample);
	if (st->malformed)
		lack(&l, "%s line%s or record%s could not be parsed (torn, cut)",
		     ttmon_fmt_count(a, sizeof(a), st->malformed), plural(st->malformed), plural(st->malformed));
	if (st->inferred)
		lack(&l,
		     "the lanes of %s record%s (%.0f%%) are inferred, the format does not tell them: their sectors "
		     "are upper bounds, LANES has a ?",
		     ttmon_fmt_count(a, sizeof(a), st->inferred), plural(st->inferred),
		     100.0 * (double)st->inferred / (double)MAX(st->records, 1));
	if (st->outside)
		lack(&l, "%s lane%s of %s of these lie in no known allocation and are taken as off",
		     ttmon_fmt_count(a, sizeof(a), st->outside_lanes), plural(st->outside_lanes),
		     ttmon_fmt_count(b, sizeof(b), st->outside));
	if (st->unknown_op)
		lack(&l, "%s record%s %s an opcode that is not known: taken as %s of 4 bytes",
		     ttmon_fmt_count(a, sizeof(a), st->unknown_op), plural(st->unknown_op),
		     st->unknown_op == 1 ? "has" : "have", st->unknown_op == 1 ? "a generic load" : "generic loads");
	if (st->no_launch)
		lack(&l, "the launch of %s record%s is not described in the trace",
		     ttmon_fmt_count(a, sizeof(a), st->no_launch), plural(st->no_launch));
	if (st->skewed)
		lack(&l, "%s launch ids were corrected by one, as NVBit 1.5 prints them",
		     ttmon_fmt_count(a, sizeof(a), st->skewed));
	not_covered(r, &l);
	if (st->foreign)
		fprintf(out, "%s other line%s between them (the program's own, banners).\n",
			ttmon_fmt_count(a, sizeof(a), st->foreign), plural(st->foreign));
}

void ttmon_mt_memory(const struct ttmon_mt_an *an, struct ttmon_mt_sums *ret)
{
	*ret = *ttmon_mt_an_total(an, TTMON_MT_GLOBAL);
	ttmon_mt_sums_add(ret, ttmon_mt_an_total(an, TTMON_MT_LOCAL));
}

bool ttmon_mt_plain(const struct ttmon_mt_dict *d)
{
	for (size_t i = 0; i < d->nr_aggs; i++)
		if (!d->aggs[i].shapes)
			return true;
	return false;
}

static void totals(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	bool requested = r->args->requested || ttmon_mt_plain(r->dict);
	const struct ttmon_mt_sums *shared = ttmon_mt_an_total(r->an, TTMON_MT_SHARED);
	struct ttmon_mt_sums memory;
	char a[TTMON_FMT_LEN], b[TTMON_FMT_LEN], c[TTMON_FMT_LEN], d[TTMON_FMT_LEN], text[400];

	ttmon_mt_memory(r->an, &memory);
	if (memory.requests) {
		snprintf(text, sizeof(text),
			 "Global and local memory: %s request%s, %s sector%s (%s), efficiency %s of %s bytes.",
			 ttmon_fmt_count(a, sizeof(a), memory.requests), plural(memory.requests),
			 ttmon_fmt_count(b, sizeof(b), memory.sectors), plural(memory.sectors),
			 ttmon_fmt_bytes(c, sizeof(c), memory.sectors * TTMON_MT_SECTOR),
			 ttmon_mt_percent(d, sizeof(d), ttmon_mt_efficiency(&memory, requested)),
			 requested ? "requested" : "distinct");
		ttmon_mt_wrap(out, text, 0, 2, width);
	}
	if (shared->requests) {
		snprintf(text, sizeof(text), "Shared memory: %s request%s, %s wavefront%s, %s times the ideal.",
			 ttmon_fmt_count(a, sizeof(a), shared->requests), plural(shared->requests),
			 ttmon_fmt_count(b, sizeof(b), shared->waves), plural(shared->waves),
			 ttmon_mt_per(c, sizeof(c), shared->waves, shared->ideal_waves));
		ttmon_mt_wrap(out, text, 0, 2, width);
	}
}

/*
 * Prints where the allocations come from, and how allocations at the same address are distinguished.
 */
static void allocations(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	char from[300], text[600], count[TTMON_FMT_LEN];
	bool by_order = false;
	size_t nr = 0;

	if (!r->map)
		return;
	ttmon_mt_map_get(r->map, &nr);
	for (size_t i = 0; i < r->nr_buffers; i++)
		by_order |= r->buffers[i]->by_order;
	snprintf(text, sizeof(text), "Allocations: %s, of %s.%s", ttmon_fmt_count(count, sizeof(count), nr),
		 ttmon_mt_allocs_from(r->args, from, sizeof(from)),
		 by_order ? " Of several at one address, the number of the launch says which one it was (#)." : "");
	ttmon_mt_wrap(out, text, 0, 2, width);
}

void ttmon_mt_head(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	what_it_is(r, out, width);
	totals(r, out, width);
	allocations(r, out, width);
	missing(r, out, width);
}

/* ---- findings ---- */

static bool has_estimates(const struct ttmon_mt_report *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (r->findings[i].estimated)
			return true;
	return false;
}

void ttmon_mt_findings(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	size_t n = (size_t)MIN((uint64_t)r->nr_findings, r->args->lines);
	char text[400], share[TTMON_FMT_LEN], of[60] = "";

	if (!r->nr_findings) {
		if (ttmon_mt_an_total(r->an, TTMON_MT_GENERIC)->requests)
			fputs("\nNo findings.\n", out);
		return;
	}
	if (n < r->nr_findings)
		snprintf(of, sizeof(of), ": %zu of %zu", n, r->nr_findings);
	snprintf(text, sizeof(text),
		 "FINDINGS, worst first, with the share of all sectors or wavefronts that could be saved%s%s",
		 has_estimates(r, n) ? " (-: cannot be counted, placed by an estimate)" : "", of);
	ttmon_mt_title(out, text, width);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_finding *f = &r->findings[i];

		bool bad = f->weight >= 0.1 && !f->estimated;

		ttmon_mt_percent(share, sizeof(share), f->estimated ? -1 : f->weight);
		fprintf(out, "%s%6s%s  ", bad ? ttmon_show_escape(TTMON_SHOW_BAD) : "", share,
			bad ? ttmon_show_escape(TTMON_SHOW_PLAIN) : "");
		ttmon_mt_wrap(out, ttmon_fmt_text(text, sizeof(text), f->text), 8, 8, width);
	}
}

/* ---- reuse ---- */

void ttmon_mt_show_reuse(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	static const uint64_t sizes[] = { 16u << 10, 64u << 10, 128u << 10, 256u << 10, 1u << 20,
					  4u << 20,  16u << 20, 50u << 20,  128u << 20 };
	const struct ttmon_mt_reuse_result *got = ttmon_mt_an_reuse(r->an);
	char a[TTMON_FMT_LEN], b[TTMON_FMT_LEN], text[400];

	if (!got || !got->touches)
		return;
	snprintf(text, sizeof(text),
		 "REUSE: of %s%s touches of sectors %.1f%% are first ones. Misses of a cache with least-recently-used "
		 "replacement, in the order of the trace%s%s:",
		 got->exact ? "" : "about ", ttmon_fmt_count(a, sizeof(a), got->touches),
		 100.0 * (double)got->cold / (double)got->touches, got->exact ? "" : " (sampled)",
		 got->lost ? ", from some place on sampled: too many sectors" : "");
	ttmon_mt_title(out, text, width);
	if (r->stats->grouped)
		ttmon_mt_wrap(
			out,
			"In doubt: records of this trace come grouped by instruction, not in the order in which they "
			"arrived, and so do these figures (--order of record "
			"and convert keeps it).",
			0, 0, width);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		double miss = ttmon_mt_reuse_miss(got, sizes[i]);
		int bar = (int)(40 * MIN(MAX(miss, 0), 1) + 0.5);

		fprintf(out, "%10s %7s  %.*s\n", ttmon_fmt_bytes(b, sizeof(b), sizes[i]),
			ttmon_mt_percent(a, sizeof(a), miss), bar, "########################################");
	}
}

/* ---- heat ---- */

struct canvas {
	const struct ttmon_mt_heat *heat;
	unsigned int cols, parts; /* size of the picture */
	uint64_t high;
	bool utf8;
};

/* Returns the sectors of a cell of the picture, which combines several cells of the heat map. */
static uint64_t cell(const struct canvas *c, size_t buffer, unsigned int part, unsigned int col)
{
	const struct ttmon_mt_heat *h = c->heat;
	uint32_t r0 = (uint32_t)((uint64_t)part * h->rows / c->parts),
		 r1 = (uint32_t)((uint64_t)(part + 1) * h->rows / c->parts);
	uint32_t c0 = (uint32_t)((uint64_t)col * h->cols / c->cols),
		 c1 = (uint32_t)((uint64_t)(col + 1) * h->cols / c->cols);
	uint64_t sum = 0;

	for (uint32_t y = r0; y < r1; y++)
		for (uint32_t x = c0; x < c1; x++)
			sum += h->count[(buffer * h->rows + y) * h->cols + x];
	return sum;
}

/* The levels are exponential, by powers of two or four; the highest cell has the highest level. */
static unsigned int level(uint64_t v, uint64_t high)
{
	unsigned int shift = high >> 16 ? 2 : 1, n = LEVELS;

	if (!v)
		return 0;
	for (; n > 1 && v <= high >> shift; n--)
		high >>= shift;
	return n;
}

static void put_cell(FILE *out, const struct canvas *c, uint64_t v)
{
	unsigned int n = level(v, c->high);

	if (!n)
		putc(' ', out);
	else if (c->utf8)
		fprintf(out, "\xe2\x96%c", (char)(0x80 + n));
	else
		putc(":-=+*#%@"[n - 1], out);
}

void ttmon_mt_show_heat(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	bool asked = r->args->sections & TTMON_MT_SHOW_HEAT;
	struct canvas c = { .parts = asked ? 16 : 4, .utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8") };
	struct ttmon_mt_heat heat = { 0 };
	size_t shown, nr = 0;
	const struct ttmon_mt_alloc *allocs = r->map ? ttmon_mt_map_get(r->map, &nr) : NULL;
	char a[TTMON_FMT_LEN], text[200];

	if (ttmon_mt_an_heat(r->an, &heat) || !heat.nr_buffers || !heat.rows || !heat.cols)
		return;
	c.heat = &heat;
	c.cols = MIN(heat.cols, (unsigned int)(width ? MAX(width, 40) : 100) - 20);
	c.parts = MIN(c.parts, heat.rows);
	shown = (size_t)MIN((uint64_t)heat.nr_buffers, asked ? r->args->lines : 4);
	for (size_t i = 0; i < shown; i++) {
		uint64_t sum = 0;

		for (unsigned int y = 0; y < c.parts; y++) {
			for (unsigned int x = 0; x < c.cols; x++) {
				sum += cell(&c, i, y, x);
				c.high = MAX(c.high, cell(&c, i, y, x));
			}
		}
		/*
		 * The list is sorted, so all buffers from here on have no cells: only touched pages, or sums of the
		 * GPU.
		 */
		if (!sum)
			shown = i;
	}
	if (!shown)
		return;
	snprintf(text, sizeof(text),
		 "HEAT: sectors by part of a buffer, from its first part down; from left to right %s record%s a column",
		 ttmon_fmt_count(a, sizeof(a), heat.per_col * heat.cols / c.cols),
		 plural(heat.per_col * heat.cols / c.cols));
	if (shown < heat.nr_buffers)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "; %zu of %zu buffers", shown,
			 heat.nr_buffers);
	ttmon_mt_title(out, text, width);
	for (size_t i = 0; i < shown; i++) {
		size_t n = 0;
		const struct ttmon_mt_buffer_row *rows = ttmon_mt_an_buffers(r->an, &n),
						 *row = heat.buffer[i] < n ? &rows[heat.buffer[i]] : NULL;

		for (unsigned int y = 0; y < c.parts; y++) {
			char label[17] = "";

			if (!y && row)
				snprintf(label, sizeof(label), "0x%" PRIx64, row->addr);
			else if (y == 1 && row)
				ttmon_fmt_bytes(label, sizeof(label), row->size);
			else if (y == 2 && row && row->alloc < nr)
				ttmon_site_show_text(label, sizeof(label),
						     *allocs[row->alloc].name ? allocs[row->alloc].name
									      : allocs[row->alloc].site,
						     0);
			fprintf(out, "%-16s |", label);
			for (unsigned int x = 0; x < c.cols; x++)
				put_cell(out, &c, cell(&c, i, y, x));
			fputs("|\n", out);
		}
	}
	fprintf(out, "The highest is %s sectors; each level below is %s.\n", ttmon_fmt_count(a, sizeof(a), c.high),
		c.high >> 16 ? "a quarter" : "a half");
}
