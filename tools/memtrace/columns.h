/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * columns.h: the columns of the four kinds of rows that `ttmon memtrace` shows: sites, launches,
 * kernels and buffers. Each column is one line of a table in columns.c: its name in JSON and CSV, its
 * title in the text, its unit, where it appears, how its value is computed, and what the manual page
 * says of it. Text, CSV, JSON and the manual's list come from there.
 */
#ifndef TTMON_TOOLS_MT_COLUMNS_H
#define TTMON_TOOLS_MT_COLUMNS_H

#include "lib/os/jsonw.h"
#include "tools/memtrace/tool.h"

/* One row. what: of which kind; the others are for the text alone. */
struct ttmon_mt_shown {
	enum ttmon_mt_section what; /* SITES, LAUNCHES, KERNELS or BUFFERS */
	const void *row;	    /* struct ttmon_mt_site_row, _launch_row, _kernel_row or _buffer_row */
	uint32_t nr;		    /* instructions that a row of a site stands for */
};

/*
 * The text: a table of n rows with the columns of these names, up to a NULL. A column that may be left
 * out is, where none of the rows has a value for it. width 0: nothing is cut.
 */
void ttmon_mt_columns_text(const struct ttmon_mt_report *r, const struct ttmon_mt_shown *rows, size_t n,
			   const char *const *names, FILE *out, size_t width);
/* The rows of args->csv as CSV, to stdout. A value that is not known is empty. */
void ttmon_mt_columns_csv(const struct ttmon_mt_report *r);
/*
 * All four kinds as JSON, a member each of the object that is open. A value that is not known is null.
 */
void ttmon_mt_columns_json(struct ttmon_jsonw *w, const struct ttmon_mt_report *r);
/* The list of all columns, as text of a manual page. */
void ttmon_mt_columns_man(FILE *f);

#endif
