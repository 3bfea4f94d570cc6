// SPDX-License-Identifier: GPL-2.0-only
/*
 * table.c: see table.h.
 *
 * Column widths are those of wcwidth() in the locale C.UTF-8, which ncurses and terminals use too.
 * Where the system has no such locale, a character that is not ASCII becomes '?'.
 */
#include <locale.h>
#include <wchar.h>

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
 * Returns the columns of a character: 1 or 2. 0: it is not allowed: a control character, an invisible
 * one or one that changes the direction of writing, a combining one, a private or unassigned one.
 */
static unsigned int columns_of(uint32_t c)
{
	/* Characters that wcwidth() gives columns, and that show nothing or have no agreed look. */
	static const struct range refused[] = {
		{ 0xad, 0xad },	    { 0x600, 0x605 },	{ 0x115f, 0x1160 },   { 0x3164, 0x3164 },    { 0xe000, 0xf8ff },
		{ 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb }, { 0x1d165, 0x1d1ad }, { 0xe0000, 0x10ffff },
	};
	static locale_t utf8;
	locale_t was;
	int n;

	if (c < 0x80)
		return c >= ' ' && c != 0x7f;
	if (in_ranges(c, refused, ARRAY_SIZE(refused)))
		return 0;
	if (!utf8)
		utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (!utf8)
		return 0;
	was = uselocale(utf8);
	n = wcwidth((wchar_t)c);
	uselocale(was);
	return (unsigned int)MAX(n, 0);
}

size_t ttmon_term_char(const char *text, size_t n, bool utf8, uint32_t *ret, unsigned int *ret_columns)
{
	size_t bytes = decode((const unsigned char *)text, n, ret);

	*ret_columns = bytes && (utf8 || *ret < 0x80) ? columns_of(*ret) : 0;
	if (!*ret_columns) {
		*ret = '?';
		*ret_columns = 1;
		bytes = bytes ? bytes : 1;
	}
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

static char lower_of(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool ttmon_term_has_text(const char *text, const char *part)
{
	for (;; text++) {
		size_t i = 0;

		while (part[i] && lower_of(text[i]) == lower_of(part[i]))
			i++;
		if (!part[i])
			return true;
		if (!*text)
			return false;
	}
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
	/* TTMON_TERM_BLANK is a space later on. */
	*width = n ? MAX(columns_of(c), 1u) : 1;
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
