// SPDX-License-Identifier: GPL-2.0-only
/* table.c: tables whose columns are as wide as their contents, and texts for their cells. */
#include <inttypes.h>
#include <stdarg.h>

#include "tools/memtrace/tool.h"
#include "lib/base/grow.h"
#include "lib/demangle/demangle.h"
#include "tools/cli/show.h"

#define GAP	 2
#define REST_MIN 34 /* if the last column has less room than this, it takes a line of its own */
#define INDENT	 4

/* Counts characters: the bytes that begin a UTF-8 sequence. */
static size_t signs(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void put_cut(FILE *out, const char *text, size_t width)
{
	size_t n = 0;

	if (!width || signs(text) <= width) {
		fputs(text, out);
		return;
	}
	for (; *text; text++) {
		n += ((unsigned char)*text & 0xc0) != 0x80;
		if (n == width)
			break;
		putc(*text, out);
	}
	putc('~', out);
}

void ttmon_mt_grid_put(struct ttmon_mt_grid *t, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	if (TTMON_GROW(t->cells, t->cap, t->nr + 1, 256)) {
		t->failed = true;
		return;
	}
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	t->failed |= !text;
	t->cells[t->nr++] = text;
}

static const char *head(const struct ttmon_mt_grid *t, size_t c)
{
	return t->heads[c] + (*t->heads[c] == '<');
}

/*
 * Prints the columns from..to of a row (NULL: of the heads) as a line; the last column is cut at the
 * edge of the terminal.
 */
static void put_line(const struct ttmon_mt_grid *t, FILE *out, const size_t *widths, char *const *cells, size_t from,
		     size_t to, size_t width)
{
	size_t at = from ? INDENT : 0;

	fprintf(out, "%*s", (int)at, "");
	for (size_t c = from; c < to; c++) {
		const char *text = cells ? (cells[c] ? cells[c] : "") : head(t, c);
		size_t n = signs(text), pad = widths[c] - MIN(n, widths[c]);
		bool left = *t->heads[c] == '<';

		if (c + 1 == t->cols) {
			put_cut(out, text, width > at ? width - at : 0);
			break;
		}
		/* No spaces at the end of a line. */
		fprintf(out, "%*s%s%*s", left ? 0 : (int)pad, "", text, c + 1 < to ? (int)(left ? pad + GAP : GAP) : 0,
			"");
		at += widths[c] + GAP;
	}
	putc('\n', out);
}

/* Returns how many columns fit on the first line; the others go on a second line. */
static size_t first_line(const struct ttmon_mt_grid *t, const size_t *widths, size_t width)
{
	size_t all = 0, n = 0;

	for (size_t c = 0; c + 1 < t->cols; c++)
		all += widths[c] + GAP;
	if (!width || all + MIN(widths[t->cols - 1], REST_MIN) <= width)
		return t->cols;
	for (all = 0; n + 1 < t->cols && all + widths[n] <= width; n++)
		all += widths[n] + GAP;
	return n;
}

void ttmon_mt_grid_print(struct ttmon_mt_grid *t, FILE *out, size_t width)
{
	size_t rows = t->nr / t->cols, split;
	size_t widths[TTMON_MT_GRID_COLS] = { 0 };

	for (size_t c = 0; c < t->cols; c++) {
		widths[c] = signs(head(t, c));
		for (size_t r = 0; r < rows; r++)
			if (t->cells[r * t->cols + c])
				widths[c] = MAX(widths[c], signs(t->cells[r * t->cols + c]));
	}
	split = first_line(t, widths, width);
	for (size_t r = 0; r <= rows; r++) {
		char *const *cells = r ? t->cells + (r - 1) * t->cols : NULL;

		put_line(t, out, widths, cells, 0, split, width);
		if (split < t->cols)
			put_line(t, out, widths, cells, split, t->cols, width);
	}
	if (t->failed)
		fputs("(rows are missing here: out of memory)\n", out);
	for (size_t i = 0; i < t->nr; i++)
		free(t->cells[i]);
	free(t->cells);
	t->cells = NULL;
	t->nr = t->cap = 0;
}

void ttmon_mt_wrap(FILE *out, const char *text, size_t at, size_t indent, size_t width)
{
	bool first = true;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (width && !first && at + 1 + n > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!first) {
			putc(' ', out);
			at++;
		}
		first = false;
		fwrite(text, 1, n, out);
		at += n;
		text += n + (text[n] == ' ');
	}
	putc('\n', out);
}

void ttmon_mt_title(FILE *out, const char *text, size_t width)
{
	size_t n = strcspn(text, " ,:");

	fprintf(out, "\n%s%.*s%s", ttmon_show_escape(TTMON_SHOW_GOOD), (int)n, text,
		ttmon_show_escape(TTMON_SHOW_PLAIN));
	ttmon_mt_wrap(out, text + n, n, 2, width);
}

size_t ttmon_mt_rows(const struct ttmon_mt_report *r, FILE *out, size_t width, const char *title, const char *order,
		     size_t n)
{
	size_t shown = (size_t)MIN((uint64_t)n, r->args->lines);
	char text[300];
	int len = n > 1 ? snprintf(text, sizeof(text), "%s, %s first", title, order)
			: snprintf(text, sizeof(text), "%s", title);

	if (shown < n && len > 0)
		snprintf(text + len, sizeof(text) - (size_t)len, ": %zu of %zu (-n 0 shows all)", shown, n);
	ttmon_mt_title(out, text, width);
	return shown;
}

/*
 * Returns where the parameters of a demangled name begin: the '(' that matches a ')' at its end; n if
 * there are none.
 */
static size_t before_parameters(const char *name, size_t n)
{
	unsigned int depth = 0;

	if (!n || name[n - 1] != ')')
		return n;
	for (size_t i = n; i-- > 0;) {
		depth += name[i] == ')';
		depth -= name[i] == '(';
		if (!depth)
			return i ? i : n;
	}
	return n;
}

char *ttmon_mt_short_name(const char *kernel)
{
	size_t n = MAX(strlen(kernel) + 2, (size_t)TTMON_DEMANGLE_WHOLE);
	char *clean = malloc(n), *from = clean;

	if (!clean)
		return NULL;
	ttmon_demangle(clean, n, *kernel ? kernel : "?");
	clean[before_parameters(clean, strlen(clean))] = '\0';
	if (!strncmp(clean, "void ", 5))
		from += 5;
	memmove(clean, from, strlen(from) + 1);
	return clean;
}

const char *ttmon_mt_place_text(const struct ttmon_mt_site *s, char *buf, size_t n)
{
	const char *base = strrchr(s->file, '/');
	char text[160];

	if (*s->file && s->line)
		snprintf(buf, n, "%s:%u", ttmon_fmt_text(text, sizeof(text), base ? base + 1 : s->file), s->line);
	else if (s->pc)
		snprintf(buf, n, "+0x%" PRIx64, s->pc);
	else if (s->text_line)
		snprintf(buf, n, "PTX line %u", s->text_line);
	else
		snprintf(buf, n, "%s", "");
	return buf;
}

const char *ttmon_mt_percent(char *buf, size_t n, double share)
{
	if (!(share >= 0))
		snprintf(buf, n, "-");
	else
		snprintf(buf, n, "%.1f%%", 100 * share);
	return buf;
}

const char *ttmon_mt_per(char *buf, size_t n, uint64_t a, uint64_t b)
{
	if (!b)
		snprintf(buf, n, "-");
	else
		snprintf(buf, n, "%.2f", (double)a / (double)b);
	return buf;
}
