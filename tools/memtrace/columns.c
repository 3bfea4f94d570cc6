// SPDX-License-Identifier: GPL-2.0-only
/* columns.c: the columns of `ttmon memtrace`: see columns.h. */
#include "tools/memtrace/columns.h"

#include <assert.h>
#include <inttypes.h>

#include "tools/cli/show.h"
#include "tools/memtrace/cells.h"
#include "tools/memtrace/json.h"
#include "tools/slots/slots_tool.h"

/* ---- values ---- */

/* clang-format off */
enum kind {
	NUM, ID, INT, ADDR, REAL, TEXT, OWNED, NAME, BOOL, TIME,
	DIMS, SUMS, HIST, CLASSES, MIX, WIDTHS, ALLOC, WORST, /* kinds with several parts, in value.of */
};
/* clang-format on */

struct value {
	enum kind kind;
	bool known;
	union {
		uint64_t num;
		int64_t sum;
		double real;
		const char *text;
		char *owned;
		const void *of; /* the parts of a value of several parts */
	};
	size_t n;	     /* number of parts of a HIST */
	const char *mark;    /* text output: a mark behind the value; a mark that begins with '~' goes before it */
	const char *instead; /* text output: what stands for an unknown value; NULL: "-" */
};

/*
 * Constructors of values, for the table below. The suffix says when the value is known: always; if k
 * is true; if the number is not negative; if the pointer is not NULL.
 */
/* clang-format off */
#define V_NUM(v)	   { .kind = NUM, .known = true, .num = (v) }
#define V_KNOWN(k, v)	   { .kind = NUM, .known = (k), .num = (v) }
#define V_MARKED(k, v, m)  { .kind = NUM, .known = (k), .num = (v), .mark = (m) }
#define V_ID(k, v, m, i)   { .kind = ID, .known = (k), .num = (v), .mark = (m), .instead = (i) }
#define V_INT(k, v)	   { .kind = INT, .known = (k), .sum = (v) }
#define V_ADDR(k, v)	   { .kind = ADDR, .known = (k), .num = (v) }
#define V_REAL(v)	   { .kind = REAL, .known = (v) >= 0, .real = (v) }
#define V_ABOUT(v, m)	   { .kind = REAL, .known = (v) >= 0, .real = (v), .mark = (m) }
#define V_TEXT(v)	   { .kind = TEXT, .known = (v), .text = (v) }
#define V_OWNED(v)	   { .kind = OWNED, .known = true, .owned = text ? (v) : NULL }
#define V_OWNED_IF(k, v)   { .kind = OWNED, .known = (k), .owned = text && (k) ? (v) : NULL }
#define V_NAME(v)	   { .kind = NAME, .known = (v), .text = (v) }
#define V_NAMED(v, m)	   { .kind = NAME, .known = true, .text = (v), .mark = (m) }
#define V_BOOL(v)	   { .kind = BOOL, .known = true, .num = (v) }
#define V_TIME(v)	   { .kind = TIME, .known = (v), .num = (v) }
#define V_PARTS(what, v)   { .kind = (what), .known = true, .of = (v), .instead = "?" }
#define V_WORST(row)	   { .kind = WORST, .num = (row) }
#define V_HIST(v)	   { .kind = HIST, .known = true, .of = (v), .n = ARRAY_SIZE(v) }
/* clang-format on */

enum unit {
	PLAIN,	 /* a count or a word */
	SIZE,	 /* bytes */
	SECTORS, /* number of 32-byte sectors: the text output shows bytes */
	SHARE,	 /* 0 to 1: the text output shows percent */
};

#define T 1  /* in the text output */
#define C 2  /* in CSV */
#define J 4  /* in JSON */
#define O 8  /* optional: not in the text output if no row has a value */
#define A 16 /* if not known, the JSON member is left out rather than null */

struct column {
	/* title NULL: not in the text output; a title that begins with '<' is aligned to the left */
	const char *name, *title;
	enum unit unit;
	unsigned int in;
	const char *help; /* text for the manual page; NULL: the name is enough */
};
#define MOST_COLUMNS 48

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : -1;
}

/* ---- sums, which all rows have; s: the sums, of: the sums whose efficiency is shown ---- */

/* clang-format off */
#define SUMS_COLUMNS(X) \
	X("requests", "REQUESTS", PLAIN, T | C | J, NULL, V_NUM(s->requests)) \
	X("records", NULL, PLAIN, C | J, "of these, recorded one by one", V_NUM(s->records)) \
	X("inferred", NULL, PLAIN, C | J, "records whose lanes are inferred", V_NUM(s->inferred)) \
	X("lanes", NULL, PLAIN, C | J, NULL, V_NUM(s->lanes)) \
	X("full", NULL, PLAIN, C | J, "requests of all 32 lanes", V_NUM(s->full)) \
	X("reads", "READS", PLAIN, T | C | J, "requests", V_NUM(s->reads)) \
	X("writes", "WRITES", PLAIN, T | C | J, "requests; an atomic is both", V_NUM(s->writes)) \
	X("bytes", NULL, SIZE, C | J, "requested", V_NUM(s->bytes)) \
	X("unique_bytes", NULL, SIZE, C | J, "distinct in each request", V_NUM(s->unique)) \
	X("sectors", "SECTORS", PLAIN, T | C | J, "of 32 bytes", V_NUM(s->sectors)) \
	X("lines", NULL, PLAIN, C | J, "of 128 bytes", V_NUM(s->lines)) \
	X("ideal_sectors", NULL, PLAIN, C | J, "of the distinct bytes", V_NUM(s->ideal)) \
	X("ideal_lane_sectors", NULL, PLAIN, C | J, "of lanes times width", V_NUM(s->ideal_lanes)) \
	X("misaligned", NULL, PLAIN, C | J, "requests", V_NUM(s->misaligned)) \
	X("pages_4k", NULL, PLAIN, J, NULL, V_NUM(s->pages_4k)) \
	X("pages_64k", NULL, PLAIN, J, NULL, V_NUM(s->pages_64k)) \
	X("pages_2m", NULL, PLAIN, J, NULL, V_NUM(s->pages_2m)) \
	X("wavefronts", NULL, PLAIN, C | J, "of shared memory", V_NUM(s->waves)) \
	X("phases", NULL, PLAIN, J, "wavefronts that the width needs", V_NUM(s->phases)) \
	X("ideal_wavefronts", NULL, PLAIN, C | J, NULL, V_NUM(s->ideal_waves)) \
	X("max_wavefronts", NULL, PLAIN, C | J, "of one request", V_NUM(s->max_waves)) \
	X("same_word", NULL, PLAIN, J, "atomics: lanes that access the same word", V_NUM(s->same)) \
	X("max_same_word", "MOST", PLAIN, T | J, "of one request", V_NUM(s->max_same)) \
	X("efficiency", "EFF", SHARE, T | C | J, "as asked for", V_REAL(ttmon_mt_efficiency(of, requested))) \
	X("efficiency_unique", NULL, SHARE, J, "of distinct bytes", V_REAL(ttmon_mt_efficiency(of, false))) \
	X("efficiency_requested", NULL, SHARE, J, "of requested bytes", V_REAL(ttmon_mt_efficiency(of, true))) \
	X("sectors_per_request", "SECT/REQ", PLAIN, T | J, NULL, \
	  V_REAL(s->sectors ? ratio(s->sectors, s->requests) : -1)) \
	X("lines_per_request", "LINES", PLAIN, T | J, NULL, V_REAL(s->sectors ? ratio(s->lines, s->requests) : -1)) \
	X("lanes_per_request", "LANES", PLAIN, T | J, "a ? in the text: some are inferred", \
	  V_ABOUT(ratio(s->lanes, s->requests), s->inferred ? "?" : NULL)) \
	X("wavefronts_per_request", "WAVES/REQ", PLAIN, T | J, NULL, \
	  V_REAL(s->waves ? ratio(s->waves, s->requests) : -1)) \
	X("class", NULL, PLAIN, C | J, "of most requests", V_NAME(part > 0 ? ttmon_mt_class_name(class) : NULL)) \
	X("class_share", NULL, SHARE, C | J, NULL, V_REAL(part > 0 ? part : -1)) \
	X("classes", NULL, PLAIN, J, "requests of each", V_PARTS(CLASSES, s->classes)) \
	X("stride", NULL, SIZE, C | J, "of most strided requests", V_INT(s->stride_votes, s->stride)) \
	X("step", NULL, SIZE, J, "from one request of a warp to its next", V_INT(s->step_votes, s->step)) \
	X("first_byte", NULL, PLAIN, C | J | A, NULL, V_ADDR(s->requests && s->min_addr <= s->max_addr, s->min_addr)) \
	X("last_byte", NULL, PLAIN, C | J | A, NULL, V_ADDR(s->requests && s->min_addr <= s->max_addr, s->max_addr)) \
	X("sectors_histogram", NULL, PLAIN, J, "requests by 0 to 32, the last one: more", V_HIST(s->sectors_hist)) \
	X("lines_histogram", NULL, PLAIN, J, "the same", V_HIST(s->lines_hist)) \
	X("wavefronts_histogram", NULL, PLAIN, J, "the same", V_HIST(s->waves_hist)) \
	X("lanes_bins", NULL, PLAIN, J, "requests of 1, 2-3, 4-7, 8-15, 16-31 and 32 lanes", V_HIST(s->lanes_bins)) \
	X("pages_4k_bins", NULL, PLAIN, J, "requests in 1, 2, 3-4, 5-8, 9-16, 17-32 and more pages", \
	  V_HIST(s->pages_4k_bins)) \
	X("pages_2m_bins", NULL, PLAIN, J, "the same", V_HIST(s->pages_2m_bins))
/* clang-format on */

/* clang-format off */
#define COLUMN(name, title, unit, in, help, value) { name, title, unit, in, help },
#define VALUE(name, title, unit, in, help, value)  value,
/* clang-format on */

static const struct column sums_columns[] = { SUMS_COLUMNS(COLUMN) };

static void sums_values(const struct ttmon_mt_sums *s, const struct ttmon_mt_sums *of, bool requested, struct value *to)
{
	double part = 0;
	unsigned int class = ttmon_mt_main_class(s, &part);
	const struct value values[] = { SUMS_COLUMNS(VALUE) };

	memcpy(to, values, sizeof(values));
}

/* ---- sites ---- */

/* "strided 128 B, 93%" */
static char *pattern(const struct ttmon_mt_sums *s)
{
	char step[32] = "", most[16] = "", *text = NULL;
	double part = 0;
	unsigned int class = ttmon_mt_main_class(s, &part);

	if (!(part > 0))
		return strdup("(sums)");
	if ((class == TTMON_MT_STRIDED || class == TTMON_MT_SEGMENTED) && s->stride)
		snprintf(step, sizeof(step), " %" PRId64 " B", s->stride);
	if (part < 0.995)
		snprintf(most, sizeof(most), ", %.0f%%", 100 * part);
	if (asprintf(&text, "%s%s%s%s", ttmon_mt_class_name(class), step,
		     s->misaligned * 2 > s->requests ? ", misaligned" : "", most) < 0)
		return NULL;
	return text;
}

char *ttmon_mt_where(const struct ttmon_mt_site *s, uint32_t nr)
{
	_cleanup_free_ char *name = ttmon_mt_short_name(s->kernel);
	char place[200], several[16] = "", *text = NULL;

	ttmon_mt_place_text(s, place, sizeof(place));
	if (nr > 1)
		snprintf(several, sizeof(several), " x%u", nr);
	if (asprintf(&text, "%s%s%s%s", place, several, *place ? "  " : "", name ? name : "?") < 0)
		return NULL;
	return text;
}

/* clang-format off */
#define SITE_COLUMNS(X) \
	X("row", NULL, PLAIN, J, NULL, V_NUM((uint64_t)(row - first))) \
	X("kernel", NULL, PLAIN, C | J, NULL, V_TEXT(at->kernel)) \
	X("opcode", "<OPCODE", PLAIN, T | C | J, NULL, V_TEXT(at->opcode)) \
	X("space", NULL, PLAIN, C | J, NULL, V_NAME(ttmon_mt_space_name(row->space))) \
	X("kind", NULL, PLAIN, C | J, NULL, V_NAME(ttmon_mt_kind_name(row->kind))) \
	X("width", NULL, SIZE, C | J, "a lane", V_NUM(row->width)) \
	X("file", NULL, PLAIN, C | J, NULL, V_TEXT(at->file)) \
	X("line", NULL, PLAIN, C | J, NULL, V_KNOWN(at->line, at->line)) \
	X("pc", NULL, PLAIN, C | J, NULL, V_ADDR(at->pc, at->pc)) \
	X("ptx_line", NULL, PLAIN, C | J, NULL, V_KNOWN(at->text_line, at->text_line)) \
	X("module", NULL, PLAIN, J, NULL, V_TEXT(at->module)) \
	X("opcode_guessed", NULL, PLAIN, J, NULL, V_BOOL(!!(at->flags & TTMON_MT_SITE_GUESSED))) \
	X("could_save", NULL, PLAIN, C | J, "sectors or wavefronts more than the ideal", V_NUM(ttmon_mt_waste(row))) \
	X("share", "SHARE", SHARE, T, "of all sectors or wavefronts", \
	  V_REAL(waves ? ratio(s->waves, all->waves) : ratio(s->sectors, all->sectors))) \
	X("ideal", "IDEAL", PLAIN, T, "sectors or wavefronts a request", \
	  V_REAL(ratio(waves ? s->ideal_waves : requested ? s->ideal_lanes : s->ideal, s->requests))) \
	X("most", "MOST", PLAIN, T, "wavefronts of one request", V_KNOWN(s->max_waves, s->max_waves)) \
	X("conflicts", "CONFL", PLAIN, T, "wavefronts a request, more than its width needs", \
	  V_REAL(s->max_waves ? ratio(s->waves - MIN(s->phases, s->waves), s->requests) : -1)) \
	X("on_one_word", "ON ONE WORD", PLAIN, T, "lanes of an atomic", V_REAL(ratio(s->same, s->requests))) \
	X("pattern", "<PATTERN", PLAIN, T, "class, stride, and share of the requests", V_OWNED(pattern(s))) \
	X("where", "<WHERE", PLAIN, T, NULL, V_OWNED(ttmon_mt_where(at, nr))) \
	X("", NULL, PLAIN, C | J, NULL, V_PARTS(SUMS, s))
/* clang-format on */

static const struct column site_columns[] = { SITE_COLUMNS(COLUMN) };

static void site_values(const struct ttmon_mt_report *r, const void *of, uint32_t nr, bool text, struct value *to)
{
	size_t n = 0;
	const struct ttmon_mt_site_row *row = of, *first = ttmon_mt_an_sites(r->an, &n);
	const struct ttmon_mt_site *at = ttmon_mt_row_site(r->dict, row);
	const struct ttmon_mt_sums *s = &row->sums;
	bool waves = row->space == TTMON_MT_SHARED, requested = r->args->requested;
	const struct ttmon_mt_sums *all = ttmon_mt_an_total(r->an, waves ? TTMON_MT_SHARED : TTMON_MT_GENERIC);
	const struct value values[] = { SITE_COLUMNS(VALUE) };

	memcpy(to, values, sizeof(values));
}

/* ---- launches ---- */

/* Returns whether the launches are of several contexts, so that their ids may repeat. */
static bool has_contexts(const struct ttmon_mt_dict *d)
{
	for (size_t i = 1; i < d->nr_launches; i++)
		if (d->launches[i].ctx != d->launches[0].ctx || d->launches[i].pid != d->launches[0].pid)
			return true;
	return false;
}

/* Formats "0x7f12" or, if the process is known, "1234:0x7f12". */
static char *context(const struct ttmon_mt_launch *l)
{
	char pid[16] = "", *text = NULL;

	if (l->pid)
		snprintf(pid, sizeof(pid), "%u:", l->pid);
	return asprintf(&text, "%s0x%" PRIx64, pid, l->ctx) < 0 ? NULL : text;
}

/* clang-format off */
#define LAUNCH_COLUMNS(X) \
	X("index", NULL, PLAIN, J, NULL, V_KNOWN(known, row->launch)) \
	X("id", "LAUNCH", PLAIN, T | C | J, "a * in the text: only some of its blocks were recorded", \
	  V_ID(known, l->id, l->flags & TTMON_MT_LAUNCH_SAMPLED ? "*" : NULL, "others")) \
	X("context", NULL, PLAIN, C | J, NULL, V_ADDR(true, l->ctx)) \
	X("contexts", "<CONTEXT", PLAIN, T | O, "where there are several", \
	  V_OWNED_IF(several && known, context(l))) \
	X("kernel", NULL, PLAIN, C | J, NULL, V_TEXT(l->kernel)) \
	X("grid", "<GRID", PLAIN, T | C | J, "in CSV with _x, _y and _z", V_PARTS(DIMS, l->grid)) \
	X("block", "<BLOCK", PLAIN, T | C | J, "the same", V_PARTS(DIMS, l->block)) \
	X("registers", NULL, PLAIN, C | J, NULL, V_NUM(l->regs)) \
	X("shared_bytes", NULL, SIZE, C | J, NULL, V_NUM(l->shmem)) \
	X("stream", NULL, PLAIN, C | J, NULL, V_NUM(l->stream)) \
	X("pid", NULL, PLAIN, J, NULL, V_KNOWN(l->pid, l->pid)) \
	X("time_ns", NULL, PLAIN, C | J, NULL, V_TIME(l->time_ns)) \
	X("described", NULL, PLAIN, J, "the trace names it", V_BOOL(known && !(l->flags & TTMON_MT_LAUNCH_MADE_UP))) \
	X("graph", NULL, PLAIN, J, "launched by a graph", V_BOOL(!!(l->flags & TTMON_MT_LAUNCH_GRAPH))) \
	X("sampled", NULL, PLAIN, J, "not all blocks", V_BOOL(!!(l->flags & TTMON_MT_LAUNCH_SAMPLED))) \
	X("all_requests", "REQUESTS", PLAIN, T, "of all spaces", \
	  V_NUM(g->requests + s->requests + row->local.requests)) \
	X("all_sectors", "SECTORS", PLAIN, T, "of global and local memory", V_NUM(g->sectors + row->local.sectors)) \
	X("efficiency", "EFF", SHARE, T, "of global memory", V_REAL(ttmon_mt_efficiency(g, r->args->requested))) \
	X("distinct_sectors", NULL, PLAIN, C | J, "of global memory", V_NUM(row->sectors)) \
	X("touched", "TOUCHED", SECTORS, T, "distinct sectors of global memory", \
	  V_MARKED(g->records, row->sectors, row->estimate ? "~" : NULL)) \
	X("again_sectors", NULL, PLAIN, C | J, "of these, the launch before touched too", V_NUM(row->again)) \
	X("again", "AGAIN", SHARE, T, "share of the distinct sectors", V_REAL(ratio(row->again, row->sectors))) \
	X("distinct_estimated", NULL, PLAIN, J, NULL, V_BOOL(row->estimate)) \
	X("shared_requests", "SHARED", PLAIN, T | C | O, NULL, V_NUM(s->requests)) \
	X("waves_to_ideal", "WAVES/IDEAL", PLAIN, T | O, "of shared memory", V_REAL(ratio(s->waves, s->ideal_waves))) \
	X("shared_wavefronts", NULL, PLAIN, C, NULL, V_NUM(s->waves)) \
	X("shared_ideal_wavefronts", NULL, PLAIN, C, NULL, V_NUM(s->ideal_waves)) \
	X("local_requests", NULL, PLAIN, C, NULL, V_NUM(row->local.requests)) \
	X("local_sectors", NULL, PLAIN, C, NULL, V_NUM(row->local.sectors)) \
	X("global", NULL, PLAIN, J, "sums", V_PARTS(SUMS, g)) \
	X("shared", NULL, PLAIN, J, "sums", V_PARTS(SUMS, s)) \
	X("local", NULL, PLAIN, J, "sums", V_PARTS(SUMS, &row->local)) \
	X("name", "<KERNEL", PLAIN, T, NULL, V_OWNED(known ? ttmon_mt_short_name(l->kernel) : strdup(""))) \
	X("", NULL, PLAIN, C, NULL, V_PARTS(SUMS, g))
/* clang-format on */

static const struct column launch_columns[] = { LAUNCH_COLUMNS(COLUMN) };

static void launch_values(const struct ttmon_mt_report *r, const void *of, uint32_t nr, bool text, struct value *to)
{
	static const struct ttmon_mt_launch others = { .kernel = "others" };
	const struct ttmon_mt_launch_row *row = of;
	bool known = row->launch < r->dict->nr_launches, several = text && has_contexts(r->dict);
	const struct ttmon_mt_launch *l = known ? &r->dict->launches[row->launch] : &others;
	const struct ttmon_mt_sums *g = &row->global, *s = &row->shared;
	const struct value values[] = { LAUNCH_COLUMNS(VALUE) };

	(void)nr;
	memcpy(to, values, sizeof(values));
}

/* ---- kernels ---- */

static const char *const width_names[] = { "1", "2", "4", "8", "16", "32", "other" };

/*
 * The parts of the requests, by space and kind, as bits 1 << enum. Requests in none of them are the
 * last part.
 */
#define GLOBAL_BITS (1u << TTMON_MT_GENERIC | 1u << TTMON_MT_GLOBAL)
static const struct {
	unsigned int spaces, kinds;
} mix[] = {
	{ GLOBAL_BITS, 1u << TTMON_MT_LOAD },
	{ GLOBAL_BITS, 1u << TTMON_MT_STORE },
	{ GLOBAL_BITS, 1u << TTMON_MT_ATOM | 1u << TTMON_MT_RED },
	{ GLOBAL_BITS, 1u << TTMON_MT_COPY_SRC | 1u << TTMON_MT_COPY_DST },
	{ 1u << TTMON_MT_SHARED, ~0u },
	{ 1u << TTMON_MT_LOCAL, ~0u },
};
#define PARTS (ARRAY_SIZE(mix) + 1)

/* Counts the requests of each part; returns their sum. */
static uint64_t parts_of(const struct ttmon_mt_kernel_row *k, uint64_t *parts)
{
	uint64_t all = 0;

	memset(parts, 0, PARTS * sizeof(*parts));
	for (unsigned int s = 0; s < TTMON_MT_SPACE_MAX; s++) {
		for (unsigned int kind = 0; kind < TTMON_MT_KIND_MAX; kind++) {
			size_t p = 0;

			while (p < ARRAY_SIZE(mix) && !(mix[p].spaces >> s & 1 && mix[p].kinds >> kind & 1))
				p++;
			parts[p] += k->requests[s][kind];
			all += k->requests[s][kind];
		}
	}
	return all;
}

/* Formats "4:67% 16:33%": the shares of the bytes per lane. */
static char *widths_text(const struct ttmon_mt_kernel_row *k, uint64_t all)
{
	char text[160] = "";
	size_t len = 0;

	for (size_t w = 0; w < ARRAY_SIZE(k->widths) && len < sizeof(text); w++) {
		if (!k->widths[w])
			continue;
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", len ? " " : "",
					w + 1 < ARRAY_SIZE(k->widths) ? width_names[w] : "*");
		if (k->widths[w] != all && len < sizeof(text))
			len += (size_t)snprintf(text + len, sizeof(text) - len, ":%s%.0f%%",
						k->widths[w] * 200 < all ? "<" : "",
						MAX(100 * ratio(k->widths[w], all), 1));
	}
	return strdup(text);
}

/* clang-format off */
#define KERNEL_COLUMNS(X) \
	X("kernel", NULL, PLAIN, C | J, NULL, V_TEXT(k->kernel)) \
	X("launches", "LAUNCHES", PLAIN, T | C | J, NULL, V_KNOWN(!k->function, k->launches)) \
	X("device_function", NULL, PLAIN, C | J, "its sums are of all kernels that call it", V_BOOL(k->function)) \
	X("requests", "REQUESTS", PLAIN, T, "of all spaces", V_NUM(all)) \
	X("load", "LOAD", SHARE, T, "of global memory", V_REAL(ratio(parts[0], all))) \
	X("store", "STORE", SHARE, T, NULL, V_REAL(ratio(parts[1], all))) \
	X("atomic", "ATOMIC", SHARE, T | O, NULL, V_REAL(ratio(parts[2], all))) \
	X("copy", "COPY", SHARE, T | O, "asynchronous ones", V_REAL(ratio(parts[3], all))) \
	X("shared", "SHARED", SHARE, T | O, "all of shared memory", V_REAL(ratio(parts[4], all))) \
	X("local", "LOCAL", SHARE, T | O, "all of local memory", V_REAL(ratio(parts[5], all))) \
	X("rest", "OTHER", SHARE, T | O, NULL, V_REAL(ratio(parts[6], all))) \
	X("mix", NULL, PLAIN, C | J, "requests by space and kind; CSV has a column each", V_PARTS(MIX, k)) \
	X("widths", NULL, PLAIN, C | J, "requests by bytes a lane; CSV has a column each", V_PARTS(WIDTHS, k)) \
	X("bytes_a_lane", "<WIDTHS", PLAIN, T, NULL, V_OWNED(widths_text(k, all))) \
	X("efficiency", "EFF", SHARE, T, "of global memory", \
	  V_REAL(ttmon_mt_efficiency(&k->sums, r->args->requested))) \
	X("name", "<KERNEL", PLAIN, T, NULL, V_OWNED(ttmon_mt_short_name(k->kernel))) \
	X("global", NULL, PLAIN, J, "sums", V_PARTS(SUMS, &k->sums)) \
	X("", NULL, PLAIN, C, NULL, V_PARTS(SUMS, &k->sums))
/* clang-format on */

static const struct column kernel_columns[] = { KERNEL_COLUMNS(COLUMN) };

static void kernel_values(const struct ttmon_mt_report *r, const void *of, uint32_t nr, bool text, struct value *to)
{
	const struct ttmon_mt_kernel_row *k = of;
	uint64_t parts[PARTS], all = parts_of(k, parts);
	const struct value values[] = { KERNEL_COLUMNS(VALUE) };

	(void)nr;
	memcpy(to, values, sizeof(values));
}

/* ---- buffers ---- */

const struct ttmon_mt_alloc *ttmon_mt_buffer_alloc(const struct ttmon_mt_report *r, const struct ttmon_mt_buffer_row *b)
{
	size_t nr = 0;
	const struct ttmon_mt_alloc *allocs = r->map ? ttmon_mt_map_get(r->map, &nr) : NULL;

	return b->alloc < nr ? &allocs[b->alloc] : NULL;
}

static uint64_t launch_id(const struct ttmon_mt_report *r, uint32_t launch)
{
	return launch < r->dict->nr_launches ? r->dict->launches[launch].id : 0;
}

/* Formats "3-17": the first and the last launch that touched it. */
static char *launches_text(const struct ttmon_mt_report *r, const struct ttmon_mt_buffer_row *b)
{
	uint64_t first = launch_id(r, b->first_launch), last = launch_id(r, b->last_launch);
	char to[32] = "", *text = NULL;

	if (b->first_launch >= r->dict->nr_launches)
		return strdup("?");
	if (b->last_launch >= r->dict->nr_launches || last != first)
		snprintf(to, sizeof(to), "-%" PRIu64, b->last_launch < r->dict->nr_launches ? last : UINT64_MAX);
	return asprintf(&text, "%" PRIu64 "%s", first, to) < 0 ? NULL : text;
}

static char *buffer_text(const struct ttmon_mt_buffer_row *b, const struct ttmon_mt_alloc *a)
{
	char what[200] = "", *text = NULL;

	if (!b->addr && !b->size)
		return strdup("others");
	if (a)
		ttmon_fmt_text(what, sizeof(what), *a->name ? a->name : *a->site ? a->site : a->id);
	return asprintf(&text, "0x%" PRIx64 "%s%s", b->addr, a ? "  " : "", what) < 0 ? NULL : text;
}

/* Returns how kernels use it; NULL: not completely known. */
static const char *use_of(const struct ttmon_mt_buffer_row *b)
{
	const char *use = ttmon_mt_buffer_use(b);

	return !strcmp(use, "RO") ? "read" : !strcmp(use, "WO") ? "write" : !strcmp(use, "RW") ? "both" : NULL;
}

/* clang-format off */
#define BUFFER_COLUMNS(X) \
	X("row", NULL, PLAIN, J, NULL, V_NUM(row)) \
	X("addr", NULL, PLAIN, C | J, NULL, V_ADDR(true, b->addr)) \
	X("size", "SIZE", SIZE, T | C | J, NULL, V_NUM(b->size)) \
	X("memory", "<MEMORY", PLAIN, T | C | J, "? and # in the text: ambiguous, by_order", \
	  V_NAMED(ttmon_mt_mem_name(a ? a->mem : TTMON_MT_MEM_UNKNOWN), \
		  b->ambiguous ? "?" : b->by_order ? "#" : NULL)) \
	X("id", NULL, PLAIN, C, "of the allocation", V_TEXT(a ? a->id : NULL)) \
	X("name", NULL, PLAIN, C, "of the allocation", V_TEXT(a ? a->name : NULL)) \
	X("call_site", NULL, PLAIN, C, "of the allocation", V_TEXT(a ? a->site : NULL)) \
	X("pid", NULL, PLAIN, C, "of the allocation", V_KNOWN(a, a ? a->pid : 0)) \
	X("copies", "COPIES", PLAIN, T | C, "transfers of the allocation", V_KNOWN(a, a ? a->copies : 0)) \
	X("copied", NULL, SIZE, C, "by these", V_KNOWN(a, a ? a->bytes : 0)) \
	X("touched_from", NULL, PLAIN, J, NULL, V_ADDR(true, b->low)) \
	X("touched_to", NULL, PLAIN, J, "behind the last byte", V_ADDR(true, b->high)) \
	X("distinct_sectors", "TOUCHED", SECTORS, T | C | J, NULL, \
	  V_MARKED(b->sectors, b->sectors, b->estimate ? "~" : NULL)) \
	X("distinct_estimated", NULL, PLAIN, J, NULL, V_BOOL(b->estimate)) \
	X("coverage", "COVER", SHARE, T | C | J, "touched bytes of the size", \
	  V_REAL(b->sectors && b->size ? MIN((double)b->sectors * TTMON_MT_SECTOR / (double)b->size, 1) : -1)) \
	X("touches", NULL, PLAIN, C | J, \
	  "that are not in the sums: of pages, and of requests that begin elsewhere", V_NUM(b->touches)) \
	X("touches_unknown", NULL, PLAIN, J, "of these, not known whether read or written", V_NUM(b->unknown)) \
	X("use", NULL, PLAIN, J, "read, write, both", V_NAME(use_of(b))) \
	X("access", "<USE", PLAIN, T, "RO, WO, RW: only read, only written, both", V_NAME(ttmon_mt_buffer_use(b))) \
	X("ambiguous", NULL, PLAIN, J, "another allocation had these addresses too", V_BOOL(b->ambiguous)) \
	X("by_order", NULL, PLAIN, J, "several allocations had these addresses, and the number of the launch " \
				      "decided", V_BOOL(b->by_order)) \
	X("worst_sites", NULL, PLAIN, J, \
	  "at most eight of the sites that access it, those with the largest possible savings; sites: their number", \
	  V_WORST(row)) \
	X("first_launch", NULL, PLAIN, J, NULL, \
	  V_KNOWN(b->first_launch < r->dict->nr_launches, launch_id(r, b->first_launch))) \
	X("last_launch", NULL, PLAIN, J, NULL, \
	  V_KNOWN(b->last_launch < r->dict->nr_launches, launch_id(r, b->last_launch))) \
	X("launches", "<LAUNCHES", PLAIN, T, "the first and the last", V_OWNED(launches_text(r, b))) \
	X("buffer", "<BUFFER", PLAIN, T, NULL, V_OWNED(buffer_text(b, a))) \
	X("allocation", NULL, PLAIN, J, \
	  "id, addr, size, memory, name, call_site, pid, copies, copied, copied_back, in_place", V_PARTS(ALLOC, a)) \
	X("", NULL, PLAIN, C | J, NULL, V_PARTS(SUMS, &b->sums))
/* clang-format on */

static const struct column buffer_columns[] = { BUFFER_COLUMNS(COLUMN) };

static void buffer_values(const struct ttmon_mt_report *r, const void *of, uint32_t nr, bool text, struct value *to)
{
	size_t n = 0;
	const struct ttmon_mt_buffer_row *b = of;
	const struct ttmon_mt_alloc *a = ttmon_mt_buffer_alloc(r, b);
	uint64_t row = (uint64_t)(b - ttmon_mt_an_buffers(r->an, &n));
	const struct value values[] = { BUFFER_COLUMNS(VALUE) };

	(void)nr;
	memcpy(to, values, sizeof(values));
}

/* ---- the four tables ---- */

static const struct table {
	enum ttmon_mt_section what;
	const char *name;
	const struct column *columns;
	size_t nr;
	size_t rows, nr_rows; /* offsets in the report of the sorted rows and of their number */
	void (*values)(const struct ttmon_mt_report *r, const void *row, uint32_t nr, bool text, struct value *to);
} tables[] = {
#define TABLE(WHAT, list, one)                                                                               \
	{                                                                                                    \
		TTMON_MT_SHOW_##WHAT, #list, one##_columns, ARRAY_SIZE(one##_columns),                       \
			offsetof(struct ttmon_mt_report, list), offsetof(struct ttmon_mt_report, nr_##list), \
			one##_values                                                                         \
	}
	TABLE(SITES, sites, site),
	TABLE(LAUNCHES, launches, launch),
	TABLE(KERNELS, kernels, kernel),
	TABLE(BUFFERS, buffers, buffer),
#undef TABLE
};
#define FITS(columns) _Static_assert(ARRAY_SIZE(columns) <= MOST_COLUMNS, "the values of a row have room")
FITS(sums_columns);
FITS(site_columns);
FITS(launch_columns);
FITS(kernel_columns);
FITS(buffer_columns);

static const struct table *table_of(enum ttmon_mt_section what)
{
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(tables) && tables[i].what != what)
		i++;
	return &tables[i];
}

/* Returns how many rows CSV and JSON show: all unless --lines is given. */
static size_t rows_of(const struct ttmon_mt_report *r, const struct table *t, const void *const **ret)
{
	size_t n;

	memcpy(ret, (const char *)r + t->rows, sizeof(*ret));
	memcpy(&n, (const char *)r + t->nr_rows, sizeof(n));
	return r->args->has_lines ? (size_t)MIN((uint64_t)n, r->args->lines) : n;
}

/* ---- text ---- */

static void put_cell(struct ttmon_mt_grid *t, const struct value *v, enum unit unit)
{
	bool before = v->mark && *v->mark == '~';
	const char *of = v->instead ?: "-";
	const uint32_t *d = v->of;
	char x[200];

	if (v->kind == DIMS && d[0]) {
		snprintf(x, sizeof(x), "%u,%u,%u", d[0], d[1], d[2]);
		of = x;
	} else if (v->kind == OWNED && v->known) {
		of = v->owned ?: "?";
	} else if (v->kind == REAL) {
		if (unit == SHARE)
			of = PERCENT(x, v->real);
		else if (v->known)
			snprintf(x, sizeof(x), "%.2f", v->real), of = x;
	} else if (v->known && (v->kind == TEXT || v->kind == NAME)) {
		of = ttmon_fmt_text(x, sizeof(x), v->text);
	} else if (v->known && v->kind == ID) {
		snprintf(x, sizeof(x), "%" PRIu64, v->num);
		of = x;
	} else if (v->known && v->kind == NUM) {
		of = unit == SIZE      ? BYTES(x, v->num)
		     : unit == SECTORS ? BYTES(x, v->num * TTMON_MT_SECTOR)
				       : COUNT(x, v->num);
	}
	ttmon_mt_grid_put(t, "%s%s%s", before ? v->mark : "", of, v->mark && !before ? v->mark : "");
}

static bool is_empty(const struct value *v)
{
	return !v->known || (v->kind == NUM && !v->num) || (v->kind == REAL && !(v->real > 0));
}

/*
 * Finds a column by name, among those of the row or of its sums; in the values, the sums follow the
 * row.
 */
static size_t find(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->nr; i++)
		if (t->columns[i].title && !strcmp(t->columns[i].name, name))
			return i;
	for (size_t i = 0; i < ARRAY_SIZE(sums_columns); i++)
		if (sums_columns[i].title && !strcmp(sums_columns[i].name, name))
			return MOST_COLUMNS + i;
	assert(!"a column of that name");
	return 0;
}

static void all_values(const struct ttmon_mt_report *r, const struct table *t, const struct ttmon_mt_shown *row,
		       struct value *v)
{
	t->values(r, row->row, row->nr, true, v);
	sums_values(v[t->nr - 1].of, v[t->nr - 1].of, r->args->requested, v + MOST_COLUMNS);
}

static void free_owned(struct value *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].kind == OWNED)
			free(v[i].owned);
}

void ttmon_mt_columns_text(const struct ttmon_mt_report *r, const struct ttmon_mt_shown *rows, size_t n,
			   const char *const *names, FILE *out, size_t width)
{
	const struct table *t = table_of(rows[0].what);
	const char *heads[TTMON_MT_GRID_COLS];
	struct ttmon_mt_grid grid = { .heads = heads };
	struct value v[2 * MOST_COLUMNS];
	size_t at[TTMON_MT_GRID_COLS];

	for (; *names; names++) {
		size_t c = find(t, *names);
		const struct column *of = c < MOST_COLUMNS ? &t->columns[c] : &sums_columns[c - MOST_COLUMNS];
		bool left_out = of->in & O;

		for (size_t i = 0; i < n && left_out; i++) {
			all_values(r, t, &rows[i], v);
			left_out = is_empty(&v[c]);
			free_owned(v, t->nr);
		}
		if (left_out)
			continue;
		heads[grid.cols] = of->title;
		at[grid.cols++] = c;
	}
	for (size_t i = 0; i < n; i++) {
		all_values(r, t, &rows[i], v);
		for (size_t c = 0; c < grid.cols; c++)
			put_cell(&grid, &v[at[c]],
				 at[c] < MOST_COLUMNS ? t->columns[at[c]].unit
						      : sums_columns[at[c] - MOST_COLUMNS].unit);
		free_owned(v, t->nr);
	}
	ttmon_mt_grid_print(&grid, out, width);
}

/* ---- CSV ---- */

/* Formats "global_copy_from". */
static void mix_name(const char *space, const char *kind)
{
	printf(",%s_", space);
	for (; *kind; kind++)
		putchar(*kind == ' ' ? '_' : *kind);
}

static void csv_heads(const struct column *columns, size_t n, bool first)
{
	for (size_t i = 0; i < n; i++) {
		const char *name = columns[i].name;

		if (!(columns[i].in & C))
			continue;
		if (!*name) {
			csv_heads(sums_columns, ARRAY_SIZE(sums_columns), false);
		} else if (!strcmp(name, "grid") || !strcmp(name, "block")) {
			printf(",%s_x,%s_y,%s_z", name, name, name);
		} else if (!strcmp(name, "mix")) {
			for (unsigned int s = 0; s < TTMON_MT_SPACE_MAX; s++)
				for (unsigned int k = 0; k < TTMON_MT_KIND_MAX; k++)
					mix_name(ttmon_mt_space_name(s), ttmon_mt_kind_name(k));
		} else if (!strcmp(name, "widths")) {
			for (size_t w = 0; w < ARRAY_SIZE(width_names); w++)
				printf(",width_%s", width_names[w]);
		} else {
			printf(first ? "%s" : ",%s", name);
		}
		first = false;
	}
}

static void csv_numbers(const uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf(",%" PRIu64, v[i]);
}

static void csv_values(const struct ttmon_mt_report *r, const struct column *columns, const struct value *values,
		       size_t n, bool first)
{
	for (size_t i = 0; i < n; i++) {
		const struct value *v = &values[i];
		_cleanup_free_ char *clean = NULL;

		if (!(columns[i].in & C))
			continue;
		if (v->kind == SUMS) {
			struct value sums[MOST_COLUMNS];

			sums_values(v->of, v->of, r->args->requested, sums);
			csv_values(r, sums_columns, sums, ARRAY_SIZE(sums_columns), false);
			continue;
		}
		if (v->kind == MIX) {
			csv_numbers(((const struct ttmon_mt_kernel_row *)v->of)->requests[0],
				    (size_t)TTMON_MT_SPACE_MAX * TTMON_MT_KIND_MAX);
			continue;
		}
		if (v->kind == WIDTHS) {
			csv_numbers(((const struct ttmon_mt_kernel_row *)v->of)->widths, ARRAY_SIZE(width_names));
			continue;
		}
		for (unsigned int k = 0; v->kind == DIMS && k < 3; k++) {
			putchar(',');
			if (((const uint32_t *)v->of)[k])
				printf("%u", ((const uint32_t *)v->of)[k]);
		}
		if (v->kind == DIMS)
			continue;
		if (!first)
			putchar(',');
		first = false;
		if (!v->known)
			continue;
		if (v->kind == TEXT && (clean = ttmon_show_clean(v->text)))
			ttmon_slots_put_csv(clean, strlen(clean));
		else if (v->kind == NAME)
			fputs(v->text, stdout);
		else if (v->kind == REAL)
			printf("%.4f", v->real);
		else if (v->kind == INT)
			printf("%" PRId64, v->sum);
		else if (v->kind != TEXT)
			printf(v->kind == ADDR ? "0x%" PRIx64 : "%" PRIu64, v->num);
	}
}

void ttmon_mt_columns_csv(const struct ttmon_mt_report *r)
{
	const struct table *t = table_of(r->args->csv);
	struct value v[MOST_COLUMNS];
	const void *const *rows;
	size_t n = rows_of(r, t, &rows);

	csv_heads(t->columns, t->nr, true);
	putchar('\n');
	for (size_t i = 0; i < n; i++) {
		t->values(r, rows[i], 1, false, v);
		csv_values(r, t->columns, v, t->nr, true);
		putchar('\n');
	}
}

/* ---- JSON ---- */

#define OF_BUFFER 8 /* number of sites of each buffer, those with the largest savings */

static void json_worst(struct ttmon_jsonw *w, const struct ttmon_mt_report *r, uint32_t buffer)
{
	size_t n;
	const struct ttmon_mt_pair *p = ttmon_mt_an_buffer_sites(r->an, buffer, &n);

	ttmon_jsonw_key_num(w, "sites", n);
	ttmon_jsonw_key_open(w, "worst_sites", '[');
	for (size_t i = 0; i < MIN(n, (size_t)OF_BUFFER); i++) {
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_num(w, "site", p[i].site);
		ttmon_jsonw_key_num(w, "requests", p[i].requests);
		ttmon_jsonw_key_num(w, "sectors", p[i].sectors);
		ttmon_jsonw_key_num(w, "ideal_sectors", p[i].ideal);
		ttmon_jsonw_key_num(w, "ideal_lane_sectors", p[i].ideal_lanes);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

static void json_mix(struct ttmon_jsonw *w, const struct ttmon_mt_kernel_row *k)
{
	for (unsigned int s = 0; s < TTMON_MT_SPACE_MAX; s++) {
		ttmon_jsonw_key_open(w, ttmon_mt_space_name(s), '{');
		for (unsigned int kind = 0; kind < TTMON_MT_KIND_MAX; kind++)
			if (k->requests[s][kind])
				ttmon_jsonw_key_num(w, ttmon_mt_kind_name(kind), k->requests[s][kind]);
		ttmon_jsonw_close(w, '}');
	}
}

/* Writes the parts of a value as members of an object, without those that are 0. */
static void json_parts(struct ttmon_jsonw *w, const struct value *v)
{
	const uint64_t *classes = v->of;
	const struct ttmon_mt_kernel_row *k = v->of;

	if (v->kind == MIX)
		json_mix(w, k);
	for (unsigned int i = 0; v->kind == CLASSES && i < TTMON_MT_CLASS_MAX; i++)
		if (classes[i])
			ttmon_jsonw_key_num(w, ttmon_mt_class_name(i), classes[i]);
	for (size_t i = 0; v->kind == WIDTHS && i < ARRAY_SIZE(width_names); i++)
		if (k->widths[i])
			ttmon_jsonw_key_num(w, width_names[i], k->widths[i]);
}

static void put_array(struct ttmon_jsonw *w, const struct value *v)
{
	ttmon_jsonw_open(w, '[');
	for (size_t i = 0; i < (v->kind == DIMS ? 3 : v->n); i++)
		ttmon_jsonw_num(w, v->kind == DIMS ? ((const uint32_t *)v->of)[i] : ((const uint64_t *)v->of)[i]);
	ttmon_jsonw_close(w, ']');
}

static void json_value(struct ttmon_jsonw *w, const struct value *v)
{
	if (v->kind == TEXT)
		ttmon_jsonw_str(w, v->known && *v->text ? v->text : NULL);
	else if (!v->known || (v->kind == DIMS && !*(const uint32_t *)v->of))
		ttmon_jsonw_null(w);
	else if (v->kind == NAME)
		ttmon_jsonw_name(w, v->text);
	else if (v->kind == REAL)
		ttmon_mt_json_real(w, v->real);
	else if (v->kind == INT)
		ttmon_jsonw_int(w, v->sum);
	else if (v->kind == ADDR)
		ttmon_jsonw_addr(w, v->num);
	else if (v->kind == BOOL)
		ttmon_jsonw_bool(w, v->num);
	else if (v->kind == TIME)
		ttmon_jsonw_time(w, v->num);
	else if (v->kind == DIMS || v->kind == HIST)
		put_array(w, v);
	else
		ttmon_jsonw_num(w, v->num);
}

static void json_values(struct ttmon_jsonw *w, const struct ttmon_mt_report *r, const struct column *columns,
			const struct value *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct value *v = &values[i];
		bool object = v->kind == MIX || v->kind == CLASSES || v->kind == WIDTHS ||
			      (v->kind == SUMS && *columns[i].name);

		if (!(columns[i].in & J) || (!v->known && columns[i].in & A))
			continue;
		if (v->kind == WORST)
			json_worst(w, r, (uint32_t)v->num);
		else if (v->kind == ALLOC)
			ttmon_mt_json_alloc(w, v->of);
		if (v->kind == WORST || v->kind == ALLOC)
			continue;
		if (object)
			ttmon_jsonw_key_open(w, columns[i].name, '{');
		else if (v->kind != SUMS)
			ttmon_jsonw_key(w, columns[i].name);
		if (v->kind == SUMS)
			ttmon_mt_json_sums(w, v->of, r->args->requested);
		else if (object)
			json_parts(w, v);
		else
			json_value(w, v);
		if (object)
			ttmon_jsonw_close(w, '}');
	}
}

static void json_sums(struct ttmon_jsonw *w, const struct ttmon_mt_sums *s, const struct ttmon_mt_sums *of,
		      bool requested)
{
	struct value v[MOST_COLUMNS];

	sums_values(s, of, requested, v);
	json_values(w, NULL, sums_columns, v, ARRAY_SIZE(sums_columns));
}

void ttmon_mt_json_sums(struct ttmon_jsonw *w, const struct ttmon_mt_sums *s, bool requested)
{
	json_sums(w, s, s, requested);
}

void ttmon_mt_json_total(struct ttmon_jsonw *w, const struct ttmon_mt_an *an, bool requested)
{
	struct ttmon_mt_sums memory;

	ttmon_mt_memory(an, &memory);
	json_sums(w, ttmon_mt_an_total(an, TTMON_MT_GENERIC), &memory, requested);
}

void ttmon_mt_columns_json(struct ttmon_jsonw *w, const struct ttmon_mt_report *r)
{
	for (const struct table *t = tables; t < tables + ARRAY_SIZE(tables); t++) {
		struct value v[MOST_COLUMNS];
		const void *const *rows;
		size_t n = rows_of(r, t, &rows);

		ttmon_jsonw_key_open(w, t->name, '[');
		for (size_t i = 0; i < n; i++) {
			ttmon_jsonw_row(w, '{');
			t->values(r, rows[i], 1, false, v);
			json_values(w, r, t->columns, v, t->nr);
			ttmon_jsonw_close(w, '}');
		}
		ttmon_jsonw_close(w, ']');
	}
}

/* ---- the manual's list ---- */

static void man_columns(FILE *f, const char *name, const struct column *columns, size_t n)
{
	fprintf(f, ".TP\n.B %s\n", name);
	for (size_t i = 0; i < n; i++) {
		const struct column *c = &columns[i];
		const char *title = c->title ? c->title + (*c->title == '<') : NULL;
		const char *only = (c->in & 7) == C ? "CSV alone" : !(c->in & (C | T)) ? "JSON alone" : NULL;
		const char *parts[] = { title && !(c->in & (C | J)) ? "text alone" : title, only, c->help };
		const char *sep = " (";

		fprintf(f, "%s\\fB%s\\fR", i ? ",\n" : "",
			title && !(c->in & (C | J)) ? title
			: *c->name		    ? c->name
						    : "sums");
		for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
			if (parts[k])
				fprintf(f, "%s%s", sep, parts[k]);
			sep = parts[k] ? "; " : sep;
		}
		if (*sep == ';')
			putc(')', f);
	}
	putc('\n', f);
}

void ttmon_mt_columns_man(FILE *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		man_columns(f, tables[i].name, tables[i].columns, tables[i].nr);
	man_columns(f, "sums", sums_columns, ARRAY_SIZE(sums_columns));
}
