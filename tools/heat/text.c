// SPDX-License-Identifier: GPL-2.0-only
/*
 * text.c: the lines of `ttmon heat`, as cells that a screen or a stream can show. Pure.
 *
 * Nothing is shown by colour alone: a level is also a height (or a letter without UTF-8), a state is a
 * letter. The luminance of the colours only grows with the level, and people with colour blindness can
 * distinguish them. They have a background of their own, so they do not depend on the theme
 * of the terminal.
 */
#include "lib/base/names.h"
#include "lib/demangle/site.h"
#include "daemon/core/history/history.h"
#include "tools/heat/heat.h"
#include "tools/term/table.h"

#define COL_SIZE   6 /* and two more columns for the sign of a lower bound */
#define COL_ADVICE 7
#define ADVICE_MIN 72 /* least width of a line with the column ADVICE */
#define COL_HOW	   6
#define COL_SUM	   7 /* and one more column for the sign of a lower bound */
#define COL_PID	   8
#define SITE_MIN   10

static const uint32_t blocks[TTMON_HEAT_LEVELS] = { 0x2581, 0x2582, 0x2583, 0x2584, 0x2585, 0x2586, 0x2587, 0x2588 };
static const char letters[] = ":-=+*#%@";

unsigned int ttmon_heat_colour(unsigned int level)
{
	static const uint8_t ramp[TTMON_HEAT_LEVELS] = { 61, 67, 73, 78, 113, 149, 185, 227 };

	return ramp[MIN(MAX(level, 1), TTMON_HEAT_LEVELS) - 1];
}

/* ---- cells ---- */

static void put_ch(struct ttmon_heat_line *l, unsigned int at, unsigned int width, uint32_t ch, unsigned int style)
{
	if (at >= MIN(width, TTMON_HEAT_WIDTH_MAX))
		return;
	for (; l->n <= at; l->n++)
		l->cells[l->n] = (struct ttmon_heat_cell){ ' ', TTMON_HEAT_PLAIN };
	l->cells[at] = (struct ttmon_heat_cell){ ch, (uint8_t)style };
}

/* Text, cut at `width`, between characters. Returns where it ended. */
static unsigned int put_text(struct ttmon_heat_line *l, unsigned int at, unsigned int width, const char *text,
			     unsigned int style)
{
	for (size_t left = strlen(text), n; left; left -= n, text += n) {
		unsigned int columns;
		uint32_t ch;

		n = ttmon_term_char(text, left, l->utf8, &ch, &columns);
		if (at + columns > width)
			break;
		put_ch(l, at, width, ch, style);
		if (columns == 2)
			put_ch(l, at + 1, width, TTMON_HEAT_BEHIND_WIDE, style);
		at += columns;
	}
	return at;
}

static unsigned int text_columns(const struct ttmon_heat_line *l, const char *text)
{
	unsigned int all = 0, columns;
	uint32_t ch;

	for (size_t left = strlen(text), n; left; left -= n, text += n) {
		n = ttmon_term_char(text, left, l->utf8, &ch, &columns);
		all += columns;
	}
	return all;
}

/* Within [at, at + n): cut with a '~', left or right. */
static void put_field(struct ttmon_heat_line *l, unsigned int at, unsigned int n, const char *text, bool right,
		      unsigned int style)
{
	unsigned int len = text_columns(l, text);

	if (right && len < n)
		at += n - len, n = len;
	put_text(l, at, at + n, text, style);
	if (len > n) {
		/* Not half of a wide character before it. */
		if (n > 1 && l->n > at + n - 1 && l->cells[at + n - 1].ch == TTMON_HEAT_BEHIND_WIDE)
			put_ch(l, at + n - 2, at + n, ' ', style);
		put_ch(l, at + n - 1, at + n, '~', style);
	}
}

void ttmon_heat_utf8(uint32_t ch, char buf[5])
{
	unsigned int n = 0;

	if (ch == TTMON_HEAT_BEHIND_WIDE) {
		n = 0;
	} else if (ch < 0x80) {
		buf[n++] = (char)ch;
	} else if (ch < 0x800) {
		buf[n++] = (char)(0xc0 | ch >> 6);
		buf[n++] = (char)(0x80 | (ch & 0x3f));
	} else {
		if (ch >= 0x10000)
			buf[n++] = (char)(0xf0 | ch >> 18);
		buf[n++] = (char)(ch >= 0x10000 ? 0x80 | (ch >> 12 & 0x3f) : 0xe0 | ch >> 12);
		buf[n++] = (char)(0x80 | (ch >> 6 & 0x3f));
		buf[n++] = (char)(0x80 | (ch & 0x3f));
	}
	buf[n] = '\0';
}

static void print_style(FILE *f, unsigned int style)
{
	if (style >= TTMON_HEAT_LEVEL1 && style < TTMON_HEAT_LEVEL1 + TTMON_HEAT_LEVELS)
		fprintf(f, "\033[0;38;5;%u;48;5;%um", ttmon_heat_colour(style - TTMON_HEAT_LEVEL1 + 1),
			TTMON_HEAT_GROUND);
	else if (style == TTMON_HEAT_IDLE || style == TTMON_HEAT_UNKNOWN)
		fprintf(f, "\033[0;38;5;%u;48;5;%um", style == TTMON_HEAT_IDLE ? 244 : 252, TTMON_HEAT_GROUND);
	else
		fputs(style == TTMON_HEAT_HEAD	 ? "\033[0;1m"
		      : style == TTMON_HEAT_DIM	 ? "\033[0;2m"
		      : style == TTMON_HEAT_WARN ? "\033[0;1;33m"
						 : "\033[0m",
		      f);
}

void ttmon_heat_print(FILE *f, const struct ttmon_heat_line *line, bool colour)
{
	unsigned int n = line->n, style = TTMON_HEAT_PLAIN;
	char buf[5];

	while (n && line->cells[n - 1].ch == ' ')
		n--;
	for (unsigned int i = 0; i < n; i++) {
		if (colour && line->cells[i].style != style)
			print_style(f, line->cells[i].style);
		style = line->cells[i].style;
		ttmon_heat_utf8(line->cells[i].ch, buf);
		fputs(buf, f);
	}
	if (colour && n && style != TTMON_HEAT_PLAIN)
		fputs("\033[0m", f);
	putc('\n', f);
}

bool ttmon_heat_matches(const struct ttmon_heatmap_row *r, const char *text)
{
	const char *const in[] = { r->shown, r->site, r->comm, r->id };
	char pid[16];

	for (size_t i = 0; i < ARRAY_SIZE(in); i++)
		if (in[i] && ttmon_term_has_text(in[i], text))
			return true;
	snprintf(pid, sizeof(pid), "%u", r->pid);
	return ttmon_term_has_text(pid, text);
}

/* ---- layout ---- */

static bool has_least(const struct ttmon_heatmap *map)
{
	for (size_t i = 0; i < map->nr; i++)
		if (map->rows[i].at_least)
			return true;
	return false;
}

static bool has_unseen(const struct ttmon_heatmap *map)
{
	for (size_t i = 0; i < map->nr; i++)
		if (map->rows[i].unseen)
			return true;
	return false;
}

static bool has_least_size(const struct ttmon_heatmap *map)
{
	for (size_t i = 0; i < map->nr; i++)
		if (map->rows[i].size_least)
			return true;
	return false;
}

static bool has_verdict(const struct ttmon_heatmap *map)
{
	for (size_t i = 0; i < map->nr; i++)
		if (map->rows[i].judged)
			return true;
	return false;
}

void ttmon_heat_fit(const struct ttmon_heatmap *map, unsigned int width, bool utf8, struct ttmon_heat_layout *ret)
{
	struct ttmon_heat_layout l = { .width = MIN(MAX(width, TTMON_HEAT_WIDTH_MIN), TTMON_HEAT_WIDTH_MAX),
				       .utf8 = utf8 };
	unsigned int fixed;

	l.sums = COL_SUM + has_least(map);
	l.size = COL_SIZE + (has_least_size(map) ? 2 : 0);
	l.advice = !map->pages && l.width >= ADVICE_MIN && has_verdict(map) ? COL_ADVICE : 0;
	fixed = l.size + 1 + COL_HOW + 1 + l.advice + 1 + l.sums + 1 + l.sums;
	if (map->pages)
		fixed -= l.size + 1 + COL_HOW + 1;
	l.pid = map->nr_procs > 1 && l.width >= 100 ? COL_PID : 0;
	l.site = map->pages ? 12 : MAX(SITE_MIN, MIN(l.width * 3 / 10 - 4, 56u));
	l.map_at = l.site + 1 + l.pid + (map->pages ? 0 : l.size + 1 + COL_HOW + 1 + l.advice);
	l.map = l.width - l.site - 1 - l.pid - fixed;
	*ret = l;
}

/* "16.0M", "512B": at most 6 characters. */
static const char *bytes(char buf[TTMON_FMT_LEN], uint64_t v)
{
	char *unit;

	if (!v)
		return "0";
	unit = strchr(ttmon_fmt_bytes(buf, TTMON_FMT_LEN, v), ' ');
	if (unit) {
		/* Avoids "1023.9M", which is too long and more exact than needed. */
		if (unit - buf > 5)
			unit = strchr(buf, '.'), memmove(unit, unit + 2, strlen(unit + 2) + 1);
		unit[0] = unit[1];
		unit[1] = '\0';
	}
	return buf;
}

/* "985", "12.3k": at most 6 characters. */
static const char *number(char buf[TTMON_FMT_LEN], uint64_t v)
{
	static const char units[] = " kMGTPE";
	double x = (double)v;
	size_t u = 0;

	for (; x >= (u ? 999.5 : 99999.5) && u + 1 < sizeof(units) - 1; u++)
		x /= 1000;
	if (!u)
		snprintf(buf, TTMON_FMT_LEN, "%.0f", x);
	else
		snprintf(buf, TTMON_FMT_LEN, x < 99.95 ? "%.1f%c" : "%.0f%c", x, units[u]);
	return buf;
}

const char *ttmon_heat_how(const struct ttmon_heatmap_row *r)
{
	static const char *const names[TTMON_METHOD_MAX] = {
		[TTMON_METHOD_HOST_ALLOC] = "P host", [TTMON_METHOD_REGISTERED] = "P reg",
		[TTMON_METHOD_POOL] = "P pool",	      [TTMON_METHOD_TT_DMA] = "P dma",
		[TTMON_METHOD_MANAGED] = "m mngd",    [TTMON_METHOD_MMAP] = "- mmap",
		[TTMON_METHOD_CUSTOM] = "- own",      [TTMON_METHOD_DEVICE] = "d dev",
		[TTMON_METHOD_PIECE] = "P own",
	};
	/*
	 * Words for memory of which it is not known whether it is pinned, and for memory that is pinned
	 * although its call does not say so.
	 */
	static const char *const unseen[TTMON_METHOD_MAX] = {
		[TTMON_METHOD_HOST_ALLOC] = "? host", [TTMON_METHOD_REGISTERED] = "? reg",
		[TTMON_METHOD_POOL] = "? pool",	      [TTMON_METHOD_MMAP] = "? mmap",
		[TTMON_METHOD_CUSTOM] = "? own",      [TTMON_METHOD_PIECE] = "? own",
	};
	static const char *const proved[TTMON_METHOD_MAX] = {
		[TTMON_METHOD_MMAP] = "P mmap",
		[TTMON_METHOD_CUSTOM] = "P own",
	};
	unsigned int m = r->method < TTMON_METHOD_MAX ? r->method : TTMON_METHOD_NONE;

	if (r->unseen && unseen[m])
		return unseen[m];
	if (r->pinned && proved[m])
		return proved[m];
	return names[m] ? names[m] : "d tt";
}

/* ---- the head ---- */

void ttmon_heat_head(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l, unsigned int line,
		     struct ttmon_heat_line *ret)
{
	char text[TTMON_HEAT_WIDTH_MAX], a[TTMON_FMT_LEN], b[TTMON_FMT_LEN], c[TTMON_FMT_LEN];
	uint64_t touched = 0;
	unsigned int at = 0;

	ret->n = 0;
	ret->utf8 = l->utf8;
	if (line == 2) {
		put_text(ret, 0, l->width, map->missing, TTMON_HEAT_WARN);
		return;
	}
	if (line == 0) {
		at = put_text(ret, 0, l->width, map->title ? map->title : "", TTMON_HEAT_HEAD);
		if (map->pages)
			snprintf(text, sizeof(text), ": %s", ttmon_fmt_ns(a, sizeof(a), map->end_ns - map->start_ns));
		else
			snprintf(text, sizeof(text), ": %s%s, %s %s of %s process%s", map->last ? "the last " : "",
				 ttmon_fmt_ns(a, sizeof(a), map->end_ns - map->start_ns),
				 ttmon_fmt_count(b, sizeof(b), map->nr),
				 map->sites	? map->nr == 1 ? "call site" : "call sites"
				 : map->nr == 1 ? "allocation"
						: "allocations",
				 ttmon_fmt_count(c, sizeof(c), map->nr_procs), map->nr_procs == 1 ? "" : "es");
		at = put_text(ret, at, l->width, text, TTMON_HEAT_PLAIN);
		if (map->hidden && !map->pages) {
			snprintf(text, sizeof(text), ", %s not shown", ttmon_fmt_count(a, sizeof(a), map->hidden));
			put_text(ret, at, l->width, text, TTMON_HEAT_PLAIN);
		}
		return;
	}
	if (map->pages) {
		for (size_t i = 0; i < map->nr; i++)
			touched += map->rows[i].copies != 0;
		snprintf(text, sizeof(text), "%s%s of %s groups of %s were touched.  ", has_least(map) ? ">=" : "",
			 ttmon_fmt_count(a, sizeof(a), touched), ttmon_fmt_count(b, sizeof(b), map->nr),
			 ttmon_fmt_bytes(c, sizeof(c), map->nr ? map->rows[0].size : 0));
	} else {
		/* A lower bound of 0 says nothing. */
		bool now_known = !map->now_unknown && (map->now_pages || !map->pages_least);
		bool peak_known = map->peak_pages || !map->pages_least;

		snprintf(text, sizeof(text), "pinned pages: %s%s %s, peak ", map->pages_least && now_known ? ">=" : "",
			 now_known ? ttmon_fmt_count(a, sizeof(a), map->now_pages) : "-",
			 map->live ? "now" : "at the end");
		at = put_text(ret, 0, l->width, text, TTMON_HEAT_PLAIN);
		snprintf(text, sizeof(text), "-.  ");
		if (peak_known)
			snprintf(text, sizeof(text), "%s%s (%s).  ", map->pages_least ? ">=" : "",
				 ttmon_fmt_count(b, sizeof(b), map->peak_pages),
				 ttmon_fmt_bytes(c, sizeof(c), map->peak_pages * map->page_size));
	}
	at = put_text(ret, at, l->width, text, TTMON_HEAT_PLAIN);
	if (map->complete && !map->missing[0])
		put_text(ret, at, l->width, "Complete.", TTMON_HEAT_PLAIN);
}

/* ---- times above the map ---- */

/*
 * Returns the smallest of 1, 2, 5 x 10^k ns, then of round minutes and hours, that is not less than
 * ns.
 */
static uint64_t nice_step(uint64_t ns)
{
	static const uint64_t slow[] = { 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400 };
	static const unsigned int fast[] = { 1, 2, 5 };

	for (uint64_t unit = 1; unit <= 10 * NSEC_PER_SEC; unit *= 10)
		for (size_t i = 0; i < ARRAY_SIZE(fast); i++)
			if (unit * fast[i] >= ns && unit * fast[i] < 60 * NSEC_PER_SEC)
				return unit * fast[i];
	for (size_t i = 0; i < ARRAY_SIZE(slow); i++)
		if (slow[i] * NSEC_PER_SEC >= ns)
			return slow[i] * NSEC_PER_SEC;
	return (ns / (86400 * NSEC_PER_SEC) + 1) * 86400 * NSEC_PER_SEC;
}

/* Formats "0", "250ms", "1.25s", "3m", "27h03m", with as many digits as the step needs. */
static void time_text(char buf[TTMON_FMT_LEN], uint64_t ns, uint64_t step)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = { { NSEC_PER_SEC, "s" }, { NSEC_PER_MS, "ms" }, { NSEC_PER_US, "us" }, { 1, "ns" } };
	uint64_t minutes = ns / (60 * NSEC_PER_SEC);
	unsigned int digits = 0;
	size_t u = 0;

	if (!ns) {
		snprintf(buf, TTMON_FMT_LEN, "0");
		return;
	}
	if (step >= 60 * NSEC_PER_SEC) {
		if (minutes < 60)
			snprintf(buf, TTMON_FMT_LEN, "%um", (unsigned int)minutes);
		else
			snprintf(buf, TTMON_FMT_LEN, "%lluh%02um", (unsigned long long)(minutes / 60),
				 (unsigned int)(minutes % 60));
		return;
	}
	while (u + 1 < ARRAY_SIZE(units) && ns < units[u].ns)
		u++;
	for (uint64_t unit = units[u].ns; step % unit; unit /= 10)
		digits++;
	snprintf(buf, TTMON_FMT_LEN, "%.*f%s", (int)digits, (double)ns / (double)units[u].ns, units[u].name);
}

static void put_times(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l,
		      const struct ttmon_heatmap_span *span, struct ttmon_heat_line *ret)
{
	uint64_t from = span->from_ns - map->start_ns, to = span->to_ns - map->start_ns, step = 1, wide;
	char text[TTMON_FMT_LEN];
	unsigned int free_from = 0;
	size_t longest = 0;

	/* Place the times as close to each other as their texts allow. */
	for (wide = 6; wide < span->columns; wide = longest + 3) {
		step = nice_step((to - from) / span->columns * wide + 1);
		time_text(text, (to - 1) / step * step, step);
		longest = strlen(text);
		time_text(text, MAX(ROUND_UP(from, step), step), step);
		longest = MAX(longest, strlen(text));
		if (longest + 2 <= wide)
			break;
	}
	for (uint64_t t = ROUND_UP(from, step); t < to; t += step) {
		unsigned int c = ttmon_heatmap_column(span, map->start_ns + t);

		time_text(text, t, step);
		if (c < free_from || c + 1 + strlen(text) > l->map)
			continue;
		put_ch(ret, l->map_at + c, l->width, l->utf8 ? 0x250a : '|', TTMON_HEAT_DIM);
		put_text(ret, l->map_at + c + 1, l->map_at + l->map, text, TTMON_HEAT_DIM);
		free_from = c + (unsigned int)strlen(text) + 2;
	}
}

void ttmon_heat_columns(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l,
			const struct ttmon_heatmap_span *span, struct ttmon_heat_line *ret)
{
	unsigned int at = l->map_at + l->map + 1;

	ret->n = 0;
	ret->utf8 = l->utf8;
	put_field(ret, 0, l->site, map->pages ? "OFFSET" : "CALL SITE", false, TTMON_HEAT_HEAD);
	if (l->pid)
		put_field(ret, l->site + 1, COL_PID - 1, "PID", true, TTMON_HEAT_HEAD);
	if (!map->pages) {
		unsigned int size_at = l->site + 1 + l->pid;

		put_field(ret, size_at, l->size, map->sites ? "PEAK" : "SIZE", true, TTMON_HEAT_HEAD);
		put_field(ret, size_at + l->size + 1, COL_HOW, "HOW", false, TTMON_HEAT_HEAD);
		if (l->advice)
			put_field(ret, size_at + l->size + 1 + COL_HOW + 1, COL_ADVICE - 1, "ADVICE", false,
				  TTMON_HEAT_HEAD);
	}
	put_times(map, l, span, ret);
	put_field(ret, at, l->sums, "MOVED", true, TTMON_HEAT_HEAD);
	put_field(ret, at + l->sums + 1, l->sums, "COPIES", true, TTMON_HEAT_HEAD);
}

static bool overlaps(const struct ttmon_heatmap_span *span, const struct ttmon_heatmap_mark *m)
{
	return m->from_ns < span->to_ns && m->to_ns >= span->from_ns;
}

bool ttmon_heat_marks(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l,
		      const struct ttmon_heatmap_span *span, struct ttmon_heat_line *ret)
{
	bool any = false;

	ret->n = 0;
	ret->utf8 = l->utf8;
	for (size_t i = 0; i < map->nr_gaps; i++) {
		if (!overlaps(span, &map->gaps[i]))
			continue;
		any = true;
		for (unsigned int c = ttmon_heatmap_column(span, map->gaps[i].from_ns);
		     c <= ttmon_heatmap_column(span, map->gaps[i].to_ns); c++)
			put_ch(ret, l->map_at + c, l->width, '?', TTMON_HEAT_WARN);
	}
	for (size_t i = 0; i < map->nr_checkpoints; i++) {
		if (!overlaps(span, &map->checkpoints[i]))
			continue;
		any = true;
		put_ch(ret, l->map_at + ttmon_heatmap_column(span, map->checkpoints[i].from_ns), l->width,
		       l->utf8 ? 0x25be : 'v', TTMON_HEAT_PLAIN);
	}
	if (any)
		put_field(ret, 0, l->site, map->nr_checkpoints ? "(periods)" : "(gaps)", false, TTMON_HEAT_DIM);
	return any;
}

/* ---- a row ---- */

static bool in_gap(const struct ttmon_heatmap *map, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < map->nr_gaps; i++)
		if (map->gaps[i].from_ns < to_ns && map->gaps[i].to_ns > from_ns)
			return true;
	return false;
}

static void put_cells(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l,
		      const struct ttmon_heatmap_span *span, const struct ttmon_heatmap_scale *scale,
		      const struct ttmon_heatmap_row *r, struct ttmon_heat_line *ret)
{
	uint64_t cells[TTMON_HEAT_WIDTH_MAX];

	ttmon_heatmap_cells(r, span, cells);
	for (unsigned int c = 0; c < span->columns; c++) {
		uint64_t from = ttmon_heatmap_column_ns(span, c), to = ttmon_heatmap_column_ns(span, c + 1);
		unsigned int level = ttmon_heatmap_level(scale, cells[c]);
		bool alive = r->alloc_ns < to && r->free_ns > from;

		if (level)
			put_ch(ret, l->map_at + c, l->width, l->utf8 ? blocks[level - 1] : (uint32_t)letters[level - 1],
			       TTMON_HEAT_LEVEL1 + level - 1);
		/* Which groups of pages the missed copies touched is not known, so every one is marked. */
		else if (alive && (r->at_least || in_gap(map, MAX(from, r->alloc_ns), MIN(to, r->free_ns))))
			put_ch(ret, l->map_at + c, l->width, '?', TTMON_HEAT_UNKNOWN);
		else if (alive)
			put_ch(ret, l->map_at + c, l->width, l->utf8 ? 0xb7 : '.', TTMON_HEAT_IDLE);
	}
}

/* Puts a sum, with its sign if it is a lower bound or not known. */
static void put_sum(struct ttmon_heat_line *ret, unsigned int at, unsigned int n, const struct ttmon_heatmap_row *r,
		    const char *figure)
{
	char text[TTMON_FMT_LEN + 2];

	snprintf(text, sizeof(text), "%s%s", r->at_least && *figure != '-' ? ">=" : "", figure);
	put_field(ret, at, n, ttmon_heat_is_unknown(r) ? "-" : text, true, TTMON_HEAT_PLAIN);
}

static const char *shown(const struct ttmon_heatmap_row *r)
{
	return r->shown ? r->shown : r->site ? r->site : "?";
}

/* A path is cut at its beginning: what differs is at its end. */
static const char *end_of_path(const struct ttmon_heat_line *l, const char *path, unsigned int columns, char *buf,
			       size_t n)
{
	size_t left = strlen(path);

	while (left && text_columns(l, path) + 1 > columns) {
		unsigned int width;
		uint32_t ch;
		size_t bytes = ttmon_term_char(path, left, l->utf8, &ch, &width);

		path += bytes;
		left -= bytes;
	}
	snprintf(buf, n, "~%s", path);
	return buf;
}

/* The word of the column ADVICE; "-": there is no verdict, "?": it is not known what to do. */
static const char *advice_word(const struct ttmon_heatmap_row *r)
{
	if (!r->judged)
		return "-";
	switch (r->said.advice) {
	case TTMON_ADVICE_ALLOCATE:
		return "pinned";
	case TTMON_ADVICE_UNKNOWN:
		return "?";
	default:
		return ttmon_advice_name(r->said.advice);
	}
}

/*
 * Puts the call site, and for a group the number of its allocations, which stays readable if the name
 * is long.
 */
static void put_site(struct ttmon_heat_line *ret, const struct ttmon_heat_layout *l, const struct ttmon_heatmap_row *r)
{
	char buf[TTMON_FMT_LEN + 8] = "", count[TTMON_FMT_LEN], fit[TTMON_HEAT_WIDTH_MAX];
	unsigned int n = r->allocs > 1 ? (unsigned int)snprintf(buf, sizeof(buf), " x%s", number(count, r->allocs)) : 0;
	const char *site = r->shown ? ttmon_site_show_text(fit, sizeof(fit), r->shown, l->site - n) : shown(r);
	unsigned int width = text_columns(ret, site);

	if (!r->shown && *site == '/' && width > l->site - n)
		site = end_of_path(ret, site, l->site - n, fit, sizeof(fit));
	put_field(ret, 0, l->site, site, false, TTMON_HEAT_PLAIN);
	if (n)
		put_field(ret, MIN(text_columns(ret, site), l->site - n), n, buf, false, TTMON_HEAT_HEAD);
}

void ttmon_heat_row(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l,
		    const struct ttmon_heatmap_span *span, const struct ttmon_heatmap_scale *scale, size_t row,
		    struct ttmon_heat_line *ret)
{
	const struct ttmon_heatmap_row *r = &map->rows[map->order[row]];
	unsigned int at = l->map_at + l->map + 1;
	char buf[TTMON_FMT_LEN + 8];

	ret->n = 0;
	ret->utf8 = l->utf8;
	put_site(ret, l, r);
	if (l->pid) {
		snprintf(buf, sizeof(buf), "%u", r->pid);
		put_field(ret, l->site + 1, COL_PID - 1, buf, true, TTMON_HEAT_PLAIN);
	}
	if (!map->pages) {
		unsigned int size_at = l->site + 1 + l->pid;
		bool act = r->judged && r->said.advice != TTMON_ADVICE_KEEP && r->said.advice != TTMON_ADVICE_UNKNOWN;
		char size[TTMON_FMT_LEN + 2];

		snprintf(size, sizeof(size), "%s%s", r->size_least ? ">=" : "", bytes(buf, r->size));
		put_field(ret, size_at, l->size, size, true, TTMON_HEAT_PLAIN);
		put_field(ret, size_at + l->size + 1, COL_HOW, ttmon_heat_how(r), false, TTMON_HEAT_PLAIN);
		if (l->advice)
			put_field(ret, size_at + l->size + 1 + COL_HOW + 1, COL_ADVICE - 1, advice_word(r), false,
				  act ? TTMON_HEAT_WARN : TTMON_HEAT_PLAIN);
	}
	put_cells(map, l, span, scale, r, ret);
	put_sum(ret, at, l->sums, r, r->bytes == UINT64_MAX ? "-" : bytes(buf, r->bytes));
	put_sum(ret, at + l->sums + 1, l->sums, r, number(buf, r->copies));
	if (r->more)
		put_ch(ret, l->map_at + l->map, l->width, '+', TTMON_HEAT_WARN);
}

/* ---- the legend ---- */

void ttmon_heat_legend(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l,
		       const struct ttmon_heatmap_span *span, const struct ttmon_heatmap_scale *scale,
		       unsigned int line, struct ttmon_heat_line *ret)
{
	char text[TTMON_HEAT_WIDTH_MAX], most[TTMON_FMT_LEN], piece[TTMON_FMT_LEN], marks[TTMON_FMT_LEN];
	unsigned int at = 0;
	bool more = false;

	ret->n = 0;
	ret->utf8 = l->utf8;
	if (line == 1) {
		put_ch(ret, 0, l->width, l->utf8 ? 0xb7 : '.', TTMON_HEAT_IDLE);
		at = put_text(ret, 1, l->width, " idle  ", TTMON_HEAT_PLAIN);
		if (map->nr_gaps || has_least(map))
			at = put_text(ret, at, l->width, "? can be missing  ", TTMON_HEAT_PLAIN);
		if (has_least(map))
			at = put_text(ret, at, l->width, ">= or - not all was seen  ", TTMON_HEAT_PLAIN);
		for (size_t i = 0; i < map->nr && !more; i++)
			more = map->rows[i].more;
		if (more)
			at = put_text(ret, at, l->width, "+ events not kept  ", TTMON_HEAT_PLAIN);
		if (!map->pages)
			at = put_text(ret, at, l->width, "P pinned - pageable m managed", TTMON_HEAT_PLAIN);
		if (!map->pages && has_unseen(map))
			at = put_text(ret, at, l->width, " ? not known", TTMON_HEAT_PLAIN);
		if (map->nr_checkpoints) {
			put_ch(ret, at + 2, l->width, l->utf8 ? 0x25be : 'v', TTMON_HEAT_PLAIN);
			snprintf(text, sizeof(text), " %s period%s",
				 ttmon_fmt_count(marks, sizeof(marks), map->nr_checkpoints),
				 map->nr_checkpoints == 1 ? "" : "s");
			put_text(ret, at + 3, l->width, text, TTMON_HEAT_PLAIN);
		}
		return;
	}
	if (!scale->high) {
		put_text(ret, 0, l->width,
			 has_least(map) || map->missing[0] ? "nothing was seen to be moved in this time"
							   : "nothing was moved in this time",
			 TTMON_HEAT_PLAIN);
		return;
	}
	for (unsigned int i = 0; i < TTMON_HEAT_LEVELS; i++)
		put_ch(ret, at++, l->width, l->utf8 ? blocks[i] : (uint32_t)letters[i], TTMON_HEAT_LEVEL1 + i);
	snprintf(text, sizeof(text), " up to %s%s in %s; each step down %s of it",
		 span->copies ? number(most, scale->high) : ttmon_fmt_bytes(most, sizeof(most), scale->high),
		 span->copies ? " copies" : "",
		 ttmon_fmt_ns(piece, sizeof(piece), (span->to_ns - span->from_ns) / span->columns),
		 scale->step == 2 ? "half" : "a quarter");
	put_text(ret, at, l->width, text, TTMON_HEAT_PLAIN);
}

static const char *in_place(const struct ttmon_heatmap_row *r)
{
	return r->gpu ? ", accessed in place by kernels" : r->in_place ? ", may be read in place" : "";
}

static const char *not_seen(const struct ttmon_heatmap_row *r)
{
	return r->unseen && r->at_least ? ", not known whether pinned, not all copies seen"
	       : r->unseen		? ", not known whether pinned"
	       : r->at_least		? ", not all copies seen"
					: "";
}

/* Formats ", unpin: saves 1.2 ms"; the gain is that of the whole call site. "" if nothing is known. */
static const char *verdict(const struct ttmon_heatmap_row *r, char *buf, size_t n)
{
	char gain[2 * TTMON_FMT_LEN];

	buf[0] = '\0';
	if (r->judged)
		snprintf(buf, n, ", %s: %s", ttmon_advice_name(r->said.advice),
			 ttmon_said_text(gain, sizeof(gain), &r->said));
	return buf;
}

void ttmon_heat_details(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l, size_t row,
			struct ttmon_heat_line *ret)
{
	const struct ttmon_heatmap_row *r = &map->rows[map->order[row]];
	char text[1024], said[160], at[TTMON_FMT_LEN], life[TTMON_FMT_LEN], size[TTMON_FMT_LEN];
	bool old = ttmon_before(r->alloc_ns, map->start_ns);
	uint64_t end_ns = MIN(r->free_ns, map->end_ns);

	ret->n = 0;
	ret->utf8 = l->utf8;
	ttmon_fmt_ns(at, sizeof(at), old ? 0 : r->alloc_ns - map->start_ns);
	ttmon_fmt_ns(life, sizeof(life), ttmon_before(end_ns, r->alloc_ns) ? 0 : end_ns - r->alloc_ns);
	if (map->pages)
		snprintf(text, sizeof(text), "%s, %s: %s%llu copies touched it%s", shown(r),
			 ttmon_fmt_bytes(size, sizeof(size), r->size), r->at_least ? ">=" : "",
			 (unsigned long long)r->copies, not_seen(r));
	else if (r->allocs > 1)
		snprintf(text, sizeof(text), "%s  %s (%u)  %s  %u allocations, %s%s at most at one time%s%s%s",
			 shown(r), r->comm ? r->comm : "?", r->pid,
			 ttmon_method_name(r->method) ? ttmon_method_name(r->method) : "?", r->allocs,
			 r->size_least ? ">=" : "", ttmon_fmt_bytes(size, sizeof(size), r->size), in_place(r),
			 not_seen(r), verdict(r, said, sizeof(said)));
	else
		snprintf(text, sizeof(text), "%s  %s (%u)  %s%s%s%s  %s %s, %s%s  %s", shown(r),
			 r->comm ? r->comm : "?", r->pid,
			 ttmon_method_name(r->method) ? ttmon_method_name(r->method) : "?", in_place(r), not_seen(r),
			 verdict(r, said, sizeof(said)), old ? "older than the map, " : "from", old ? "" : at,
			 r->live ? "still there after " : "freed after ", life, r->id ? r->id : "");
	put_text(ret, 0, l->width, text, TTMON_HEAT_PLAIN);
}
