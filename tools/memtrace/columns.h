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

/* One row. what: the kind of the row; the other members are only for the text output. */
struct ttmon_mt_shown {
	enum ttmon_mt_section what; /* SITES, LAUNCHES, KERNELS or BUFFERS */
	const void *row;	    /* struct ttmon_mt_site_row, _launch_row, _kernel_row or _buffer_row */
	uint32_t nr;		    /* number of instructions that a row of a site stands for */
};

/*
 * Prints a text table of n rows with the columns named up to a NULL. An optional column is left out if
 * no row has a value for it. width 0: nothing is cut.
 */
void ttmon_mt_columns_text(const struct ttmon_mt_report *r, const struct ttmon_mt_shown *rows, size_t n,
			   const char *const *names, FILE *out, size_t width);
/* Prints the rows that args->csv selects as CSV to stdout. An unknown value is empty. */
void ttmon_mt_columns_csv(const struct ttmon_mt_report *r);
/* Writes all four kinds as JSON, each as a member of the open object. An unknown value is null. */
void ttmon_mt_columns_json(struct ttmon_jsonw *w, const struct ttmon_mt_report *r);
/* Prints the list of all columns in the format of a manual page. */
void ttmon_mt_columns_man(FILE *f);

#endif
