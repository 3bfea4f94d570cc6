// SPDX-License-Identifier: GPL-2.0-only
/* table.c: tables whose columns are as wide as their contents, and texts for their cells. */
#include <inttypes.h>
#include <stdarg.h>

#include "tools/memtrace/tool.h"
#include "lib/base/grow.h"
#include "lib/demangle/demangle.h"
#include "tools/cli/show.h"
#include "tools/term/table.h"

#define GAP	 2
#define REST_MIN 34 /* the least room of the last column, if its cells are as long */

static void put_cut(FILE *out, const char *text, size_t width)
{
	char cut[1024];

	if (!width || ttmon_term_width(text) <= width) {
		fputs(text, out);
		return;
	}
	ttmon_term_clean(cut, sizeof(cut), text, strlen(text), width - 1, true);
	fprintf(out, "%s~", cut);
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
 * Prints the columns of a row (NULL: of the heads) that have a width as a line; the last column is cut
 * at the edge of the terminal.
 */
static void put_line(const struct ttmon_mt_grid *t, FILE *out, const size_t *widths, char *const *cells, size_t width)
{
	size_t at = 0;

	for (size_t c = 0; c + 1 < t->cols; c++) {
		const char *text = cells ? (cells[c] ? cells[c] : "") : head(t, c);
		size_t n = ttmon_term_width(text), pad = widths[c] - MIN(n, widths[c]);
		bool left = *t->heads[c] == '<';

		if (!widths[c])
			continue;
		fprintf(out, "%*s%s%*s", left ? 0 : (int)pad, "", text, (int)(left ? pad + GAP : GAP), "");
		at += widths[c] + GAP;
	}
	put_cut(out, cells ? (cells[t->cols - 1] ? cells[t->cols - 1] : "") : head(t, t->cols - 1),
		width > at ? width - at
		: width	   ? 1
			   : 0);
	putc('\n', out);
}

/*
 * Leaves out columns that do not fit, by setting their widths to 0: those at the end first, then those
 * that fit in the room of a wider one come back. The first and the last one, which names what the row
 * is about, stay. Returns the number of columns that are left out.
 */
static size_t leave_out(const struct ttmon_mt_grid *t, size_t *widths, size_t width)
{
	size_t all = MIN(widths[t->cols - 1], REST_MIN), out = 0;
	size_t whole[TTMON_MT_GRID_COLS];

	memcpy(whole, widths, sizeof(whole));
	for (size_t c = 0; c + 1 < t->cols; c++)
		all += widths[c] + GAP;
	for (size_t c = t->cols - 1; width && c-- > 1 && all > width;) {
		all -= widths[c] + GAP;
		widths[c] = 0;
		out++;
	}
	for (size_t c = 1; c + 1 < t->cols; c++) {
		if (widths[c] || all + whole[c] + GAP > width)
			continue;
		all += whole[c] + GAP;
		widths[c] = whole[c];
		out--;
	}
	return out;
}

static void put_left_out(const struct ttmon_mt_grid *t, FILE *out, const size_t *widths, size_t n, size_t width)
{
	char text[300];
	int len = snprintf(text, sizeof(text), "(%zu column%s left out, a wider terminal shows %s:", n,
			   n == 1 ? " is" : "s are", n == 1 ? "it" : "them");

	for (size_t c = 0; c + 1 < t->cols; c++)
		if (!widths[c] && len > 0 && (size_t)len < sizeof(text))
			len += snprintf(text + len, sizeof(text) - (size_t)len, " %s%s", head(t, c), --n ? "," : ")");
	ttmon_mt_wrap(out, text, 0, 1, width);
}

void ttmon_mt_grid_print(struct ttmon_mt_grid *t, FILE *out, size_t width)
{
	size_t rows = t->nr / t->cols, left_out;
	size_t widths[TTMON_MT_GRID_COLS] = { 0 };

	for (size_t c = 0; c < t->cols; c++) {
		/* 0 is the width of a column that is left out. */
		widths[c] = MAX(ttmon_term_width(head(t, c)), (size_t)1);
		for (size_t r = 0; r < rows; r++)
			if (t->cells[r * t->cols + c])
				widths[c] = MAX(widths[c], ttmon_term_width(t->cells[r * t->cols + c]));
	}
	left_out = leave_out(t, widths, width);
	for (size_t r = 0; r <= rows; r++)
		put_line(t, out, widths, r ? t->cells + (r - 1) * t->cols : NULL, width);
	if (left_out)
		put_left_out(t, out, widths, left_out, width);
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
