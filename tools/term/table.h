/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * table.h: columns, colours, and text that others chose made fit for a terminal. Pure but for the FILE
 * it writes to.
 */
#ifndef TTMON_TERM_TABLE_H
#define TTMON_TERM_TABLE_H

#include "lib/base/util.h"

enum ttmon_term_colour {
	TTMON_TERM_PLAIN,
	TTMON_TERM_BOLD,
	TTMON_TERM_DIM,
	TTMON_TERM_GREEN,
	TTMON_TERM_YELLOW,
	TTMON_TERM_RED
};

struct ttmon_term_style {
	size_t columns; /* 0: nothing is cut */
	bool colour;
	bool utf8; /* the terminal shows it; else what is not ASCII becomes '?' */
};

#define TTMON_TERM_CELL	    64
#define TTMON_TERM_COLS_MAX 12

struct ttmon_term_cell {
	char text[TTMON_TERM_CELL];
	enum ttmon_term_colour colour;
};

struct ttmon_term_table {
	const char *titles[TTMON_TERM_COLS_MAX];
	bool right[TTMON_TERM_COLS_MAX];
	size_t nr_cols;
	size_t flex;		       /* the column that may be cut, to 8 columns */
	size_t gap;		       /* spaces between columns */
	struct ttmon_term_cell *cells; /* rows * nr_cols, owned */
	size_t nr_rows, cap_cells;
};
void ttmon_term_table_fini(struct ttmon_term_table *t);
/* Cells of a new row, empty; NULL: no memory. */
struct ttmon_term_cell *ttmon_term_table_row(struct ttmon_term_table *t);
/* Columns that it takes. */
size_t ttmon_term_table_width(const struct ttmon_term_table *t);
void ttmon_term_table_print(const struct ttmon_term_table *t, const struct ttmon_term_style *style, FILE *out);

/*
 * Text that somebody else chose, of at most max bytes: what a terminal would obey, what turns the
 * direction of writing or has no width, and what is not UTF-8 becomes '?'. Cut to n bytes and to
 * columns, between characters. Returns its columns.
 */
size_t ttmon_term_clean(char *buf, size_t n, const char *text, size_t max, size_t columns, bool utf8);
/*
 * The character at p, of at most n > 0 bytes: '?' where ttmon_term_clean() writes one; *ret_columns: 1
 * or 2. Returns its bytes.
 */
size_t ttmon_term_char(const char *p, size_t n, bool utf8, uint32_t *ret, unsigned int *ret_columns);
/* Columns of a line of our own; escape sequences have none. */
size_t ttmon_term_width(const char *text);
/* Write a line cut to columns (0: whole), with its escape sequences. Returns the columns it takes. */
size_t ttmon_term_put_line(FILE *out, const char *line, size_t len, size_t columns);
#define TTMON_TERM_BLANK \
	'\001' /* a blank that lines are not broken at; no text of others has it: see ttmon_term_clean() */
/*
 * Text and a line break, broken between words; start: where the first line stands already, indent:
 * where the others begin.
 */
void ttmon_term_put_wrapped(FILE *out, const char *text, size_t columns, size_t start, size_t indent);
const char *ttmon_term_escape(const struct ttmon_term_style *style, enum ttmon_term_colour colour);

#endif
