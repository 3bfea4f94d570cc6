// SPDX-License-Identifier: GPL-2.0-only
/*
 * table.c: see table.h.
 *
 * Column widths are computed here, because wcwidth() depends on the locale, which ttmon does not set.
 * Wide East Asian characters and emoji take two columns, all other allowed characters one. Combining
 * characters are not allowed.
 */
#include "tools/term/table.h"
#include "lib/base/grow.h"

#define FLEX_MIN 8

/* ---- characters ---- */

struct range {
	uint32_t from, to;
};

static bool in_ranges(uint32_t c, const struct range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (c >= ranges[i].from && c <= ranges[i].to)
			return true;
	return false;
}

/* Decodes the UTF-8 sequence at p. Returns its length; 0: not valid (overlong, surrogate, cut off). */
static size_t decode(const unsigned char *p, size_t n, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = *p < 0x80		       ? 1
		     : *p >= 0xc2 && *p < 0xe0 ? 2
		     : (*p & 0xf0) == 0xe0     ? 3
		     : *p >= 0xf0 && *p < 0xf5 ? 4
					       : 0;
	uint32_t c = len == 1 ? *p : *p & (0xff >> (len + 1));

	if (!len || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if ((len > 1 && c < least[len]) || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*ret = c;
	return len;
}

/*
 * Returns whether a character is not allowed: control characters (C0, DEL, C1), invisible ones and
 * those that change the direction of writing, combining ones, and private or unassigned ones.
 */
static bool is_refused(uint32_t c)
{
	static const struct range refused[] = {
		{ 0x00, 0x1f },	       { 0x7f, 0x9f },	   { 0xad, 0xad },	 { 0x300, 0x36f },
		{ 0x483, 0x489 },      { 0x591, 0x5bd },   { 0x5bf, 0x5c7 },	 { 0x600, 0x605 },
		{ 0x610, 0x61c },      { 0x64b, 0x65f },   { 0x6d6, 0x6ed },	 { 0x70f, 0x711 },
		{ 0x730, 0x74a },      { 0x115f, 0x1160 }, { 0x1ab0, 0x1aff },	 { 0x17b4, 0x17d3 },
		{ 0x180b, 0x180f },    { 0x1dc0, 0x1dff }, { 0x200b, 0x200f },	 { 0x2028, 0x202e },
		{ 0x2060, 0x206f },    { 0x20d0, 0x20ff }, { 0x3164, 0x3164 },	 { 0xe000, 0xf8ff },
		{ 0xfe00, 0xfe0f },    { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff },	 { 0xffa0, 0xffa0 },
		{ 0xfff0, 0xfffb },    { 0xfffe, 0xffff }, { 0x1bca0, 0x1bca3 }, { 0x1d165, 0x1d1ad },
		{ 0xe0000, 0x10ffff },
	};

	return in_ranges(c, refused, ARRAY_SIZE(refused));
}

static size_t columns_of(uint32_t c)
{
	static const struct range wide[] = {
		{ 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x2329, 0x232a },	  { 0x23e9, 0x23f3 },
		{ 0x25fd, 0x25fe },   { 0x2614, 0x2615 },   { 0x2648, 0x2653 },	  { 0x26a1, 0x26a1 },
		{ 0x26aa, 0x26ab },   { 0x26bd, 0x26c5 },   { 0x26ce, 0x26d4 },	  { 0x26ea, 0x26fd },
		{ 0x2705, 0x2705 },   { 0x270a, 0x270b },   { 0x2728, 0x2728 },	  { 0x274c, 0x2757 },
		{ 0x2795, 0x2797 },   { 0x27b0, 0x27bf },   { 0x2b1b, 0x2b1c },	  { 0x2b50, 0x2b55 },
		{ 0x2e80, 0xa4cf },   { 0xa960, 0xa97f },   { 0xac00, 0xd7a3 },	  { 0xf900, 0xfaff },
		{ 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },	  { 0x16fe0, 0x1b2ff },
		{ 0x1f004, 0x1f004 }, { 0x1f0cf, 0x1f0cf }, { 0x1f18e, 0x1f19a }, { 0x1f200, 0x1f64f },
		{ 0x1f680, 0x1f6ff }, { 0x1f7e0, 0x1f7eb }, { 0x1f90c, 0x1f9ff }, { 0x1fa70, 0x1faff },
		{ 0x20000, 0x3fffd },
	};

	return in_ranges(c, wide, ARRAY_SIZE(wide)) ? 2 : 1;
}

size_t ttmon_term_char(const char *text, size_t n, bool utf8, uint32_t *ret, unsigned int *ret_columns)
{
	size_t bytes = decode((const unsigned char *)text, n, ret);

	if (!bytes || is_refused(*ret) || (!utf8 && *ret >= 0x80)) {
		*ret = '?';
		bytes = bytes ? bytes : 1;
	}
	*ret_columns = (unsigned int)columns_of(*ret);
	return bytes;
}

size_t ttmon_term_clean(char *buf, size_t n, const char *text, size_t max, size_t columns, bool utf8)
{
	size_t used = 0, len = 0;

	max = strnlen(text, max);
	while (max) {
		uint32_t c = 0;
		unsigned int width;
		size_t bytes = ttmon_term_char(text, max, utf8, &c, &width), out = c == '?' ? 1 : bytes;

		if (len + out >= n || used + width > columns)
			break;
		if (c == '?')
			buf[len] = '?';
		else
			memcpy(buf + len, text, bytes);
		len += out;
		used += width;
		text += bytes;
		max -= bytes;
	}
	if (n)
		buf[len] = '\0';
	return used;
}

/*
 * Returns the bytes and columns of the next item of a line: an escape sequence (CSI ... letter) or a
 * character.
 */
static size_t next_in_line(const char *line, size_t len, size_t *width)
{
	uint32_t c = 0;
	size_t n;

	*width = 0;
	if (len > 1 && line[0] == '\033' && line[1] == '[') {
		for (n = 2; n < len && !(line[n] >= '@' && line[n] <= '~'); n++)
			;
		return MIN(n + 1, len);
	}
	n = decode((const unsigned char *)line, len, &c);
	*width = n ? columns_of(c) : 1;
	return n ? n : 1;
}

size_t ttmon_term_width(const char *text)
{
	size_t used = 0, len;

	/* A fast path: most texts are only ASCII. */
	for (; *text >= ' ' && *text <= '~'; text++)
		used++;
	len = strlen(text);
	while (len) {
		size_t width, n = next_in_line(text, len, &width);

		used += width;
		text += n;
		len -= n;
	}
	return used;
}

size_t ttmon_term_put_line(FILE *out, const char *line, size_t len, size_t columns)
{
	size_t used = 0, shown = 0;

	while (len) {
		size_t width, n = next_in_line(line, len, &width);

		/*
		 * Items without width are written even past the end: a colour that was switched on must be switched
		 * off.
		 */
		if (columns && width && used + width > columns) {
			used = columns;
		} else {
			fwrite(line, 1, n, out);
			shown += width;
		}
		used += width;
		line += n;
		len -= n;
	}
	return shown;
}

void ttmon_term_put_wrapped(FILE *out, const char *text, size_t columns, size_t start, size_t indent)
{
	bool begins = true; /* at the start of a line */
	size_t used = start;

	while (*text) {
		size_t len = strcspn(text, " ");
		char word[256];
		size_t width;

		snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word) - 1), text);
		for (char *p = strchr(word, TTMON_TERM_BLANK); p; p = strchr(p, TTMON_TERM_BLANK))
			*p = ' ';
		width = ttmon_term_width(word);
		if (columns && !begins && used + 1 + width > columns) {
			fprintf(out, "\n%*s", (int)indent, "");
			used = indent;
		} else if (!begins) {
			fputc(' ', out);
			used++;
		}
		begins = false;
		fputs(word, out);
		used += width;
		text += len + (text[len] == ' ');
	}
	fputc('\n', out);
}

const char *ttmon_term_escape(const struct ttmon_term_style *style, enum ttmon_term_colour colour)
{
	static const char *const escapes[] = {
		[TTMON_TERM_PLAIN] = "\033[0m",	 [TTMON_TERM_BOLD] = "\033[1m",	   [TTMON_TERM_DIM] = "\033[2m",
		[TTMON_TERM_GREEN] = "\033[32m", [TTMON_TERM_YELLOW] = "\033[33m", [TTMON_TERM_RED] = "\033[31m",
	};

	return style->colour ? escapes[colour] : "";
}

/* ---- tables ---- */

void ttmon_term_table_fini(struct ttmon_term_table *t)
{
	free(t->cells);
	t->cells = NULL;
	t->nr_rows = t->cap_cells = 0;
}

struct ttmon_term_cell *ttmon_term_table_row(struct ttmon_term_table *t)
{
	struct ttmon_term_cell *row;

	if (TTMON_GROW(t->cells, t->cap_cells, (t->nr_rows + 1) * t->nr_cols, 40 * t->nr_cols))
		return NULL;
	row = &t->cells[t->nr_rows++ * t->nr_cols];
	for (size_t c = 0; c < t->nr_cols; c++) {
		row[c].text[0] = '\0';
		row[c].colour = TTMON_TERM_PLAIN;
	}
	return row;
}

static void measure(const struct ttmon_term_table *t, size_t *widths)
{
	for (size_t c = 0; c < t->nr_cols; c++) {
		widths[c] = strlen(t->titles[c]);
		for (size_t r = 0; r < t->nr_rows; r++)
			widths[c] = MAX(widths[c], ttmon_term_width(t->cells[r * t->nr_cols + c].text));
	}
}

static size_t sum_widths(const struct ttmon_term_table *t, const size_t *widths)
{
	size_t sum = (t->nr_cols - 1) * t->gap;

	for (size_t c = 0; c < t->nr_cols; c++)
		sum += widths[c];
	return sum;
}

size_t ttmon_term_table_width(const struct ttmon_term_table *t)
{
	size_t widths[TTMON_TERM_COLS_MAX];

	measure(t, widths);
	return sum_widths(t, widths);
}

static void put_cell(FILE *out, const char *text, size_t width, bool right, bool last)
{
	char cut[TTMON_TERM_CELL];
	size_t used = ttmon_term_width(text);

	if (used > width) {
		used = ttmon_term_clean(cut, sizeof(cut), text, sizeof(cut), width, true);
		text = cut;
	}
	for (size_t i = used; right && i < width; i++)
		fputc(' ', out);
	fputs(text, out);
	/* No spaces at the end of lines. */
	for (size_t i = used; !right && !last && i < width; i++)
		fputc(' ', out);
}

/* Prints row r; row 0 is the titles. */
static void put_row(const struct ttmon_term_table *t, const struct ttmon_term_style *style, const size_t *widths,
		    size_t r, FILE *out)
{
	for (size_t c = 0; c < t->nr_cols; c++) {
		const struct ttmon_term_cell *cell = r ? &t->cells[(r - 1) * t->nr_cols + c] : NULL;
		enum ttmon_term_colour colour = cell ? cell->colour : TTMON_TERM_BOLD;

		for (size_t i = 0; c && i < t->gap; i++)
			fputc(' ', out);
		if (colour != TTMON_TERM_PLAIN)
			fputs(ttmon_term_escape(style, colour), out);
		put_cell(out, cell ? cell->text : t->titles[c], widths[c], t->right[c], c + 1 == t->nr_cols);
		if (colour != TTMON_TERM_PLAIN)
			fputs(ttmon_term_escape(style, TTMON_TERM_PLAIN), out);
	}
}

/* Prints a row that is wider than the terminal, cut at its right edge. */
static void put_cut_row(const struct ttmon_term_table *t, const struct ttmon_term_style *style, const size_t *widths,
			size_t r, FILE *out)
{
	_cleanup_free_ char *line = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&line, &len);

	if (!f)
		return;
	put_row(t, style, widths, r, f);
	if (!fclose(f))
		ttmon_term_put_line(out, line, len, style->columns);
}

void ttmon_term_table_print(const struct ttmon_term_table *t, const struct ttmon_term_style *style, FILE *out)
{
	size_t widths[TTMON_TERM_COLS_MAX], total, over;

	measure(t, widths);
	total = sum_widths(t, widths);
	if (style->columns && total > style->columns && t->flex < t->nr_cols && widths[t->flex] > FLEX_MIN) {
		over = MIN(total - style->columns, widths[t->flex] - FLEX_MIN);
		widths[t->flex] -= over;
		total -= over;
	}
	for (size_t r = 0; r <= t->nr_rows; r++) {
		if (style->columns && total > style->columns)
			put_cut_row(t, style, widths, r, out);
		else
			put_row(t, style, widths, r, out);
		fputc('\n', out);
		for (size_t c = 0; !r && c < (style->columns ? MIN(total, style->columns) : total); c++)
			fputc('-', out);
		if (!r)
			fputc('\n', out);
	}
}
