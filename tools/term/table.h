/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * table.h: tables with colours, and cleaning of text from others so that it is safe on a terminal.
 * Pure except for the FILE it writes to.
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
	size_t columns; /* columns of the terminal; 0: nothing is cut */
	bool colour;
	bool utf8; /* the terminal shows UTF-8; otherwise a character that is not ASCII becomes '?' */
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
	size_t flex;		       /* number of the column that may be shortened, down to 8 characters */
	size_t gap;		       /* spaces between columns */
	struct ttmon_term_cell *cells; /* rows * nr_cols, owned */
	size_t nr_rows, cap_cells;
};
void ttmon_term_table_fini(struct ttmon_term_table *t);
/* Returns the cells of a new row, empty; NULL: out of memory. */
struct ttmon_term_cell *ttmon_term_table_row(struct ttmon_term_table *t);
/* Returns the width of the table in columns. */
size_t ttmon_term_table_width(const struct ttmon_term_table *t);
void ttmon_term_table_print(const struct ttmon_term_table *t, const struct ttmon_term_style *style, FILE *out);

/*
 * Cleans text of at most max bytes that others chose: control characters, characters that change the
 * direction of writing or have no width, and invalid UTF-8 become '?'. The result is cut to n bytes
 * and to columns, between characters. Returns its width in columns.
 */
size_t ttmon_term_clean(char *buf, size_t n, const char *text, size_t max, size_t columns, bool utf8);
/*
 * The character at p, of at most n > 0 bytes: '?' where ttmon_term_clean() writes one; *ret_columns: 1
 * or 2. Returns its bytes.
 */
size_t ttmon_term_char(const char *p, size_t n, bool utf8, uint32_t *ret, unsigned int *ret_columns);
/* Returns whether text contains part, in any case of ASCII letters. */
bool ttmon_term_has_text(const char *text, const char *part);
/* Columns of a line of our own; escape sequences have none. */
size_t ttmon_term_width(const char *text);
/*
 * Writes a line with its escape sequences, cut to columns (0: not cut). Returns the columns it takes.
 */
size_t ttmon_term_put_line(FILE *out, const char *line, size_t len, size_t columns);
#define TTMON_TERM_BLANK \
	'\001' /* a space at which lines are not broken; ttmon_term_clean() removes it from text of others */
/*
 * Writes text and a line break, wrapped between words. start: the column where the first line begins;
 * indent: where the other lines begin.
 */
void ttmon_term_put_wrapped(FILE *out, const char *text, size_t columns, size_t start, size_t indent);
const char *ttmon_term_escape(const struct ttmon_term_style *style, enum ttmon_term_colour colour);

#endif
