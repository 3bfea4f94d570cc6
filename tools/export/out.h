/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * out.h: typed tables, written as CSV files, as one SQLite database or as Parquet files. Nothing has
 * its name before all is written: ttmon_export_finish() renames, ttmon_export_drop() removes.
 */
#ifndef TTMON_EXPORT_OUT_H
#define TTMON_EXPORT_OUT_H

#include "lib/base/util.h"

enum ttmon_export_format { TTMON_EXPORT_CSV, TTMON_EXPORT_SQLITE, TTMON_EXPORT_PARQUET };

struct ttmon_export_column {
	const char *name; /* with its unit: size_bytes, alloc_ns */
	bool text;	  /* else an integer of 64 bits with a sign */
};

struct ttmon_export_table {
	const char *name;
	const struct ttmon_export_column *columns;
	unsigned int nr;
};

/* Columns, and a table of an array of them. */
#define TTMON_EXPORT_T(n) \
	{                 \
		(n), true \
	}
#define TTMON_EXPORT_I(n)  \
	{                  \
		(n), false \
	}
#define TTMON_EXPORT_TABLE(n, c)        \
	{                               \
		(n), (c), ARRAY_SIZE(c) \
	}

/* A value of a row. */
struct ttmon_export_value {
	const char *text; /* of a column of texts, valid UTF-8; NULL: not known */
	int64_t n;	  /* of a column of integers */
	bool known;	  /* of a column of integers */
};

struct ttmon_export;

/*
 * dir is made where it is not there; tables live as long as the export. -errno with one line in why;
 * -ELIBACC: libsqlite3 cannot be had. Free with ttmon_export_drop() or _finish().
 */
int ttmon_export_new(enum ttmon_export_format format, const char *dir, const struct ttmon_export_table *tables,
		     unsigned int nr, struct ttmon_export **ret, char *why, size_t n) _must_check;
/*
 * A row of table i, a value a column, borrowed. Shows the progress on a terminal after a second.
 * -errno.
 */
int ttmon_export_row(struct ttmon_export *x, unsigned int i, const struct ttmon_export_value *values) _must_check;
/* The names of what was written, a line each, on f. Frees x. -errno with why. */
int ttmon_export_finish(struct ttmon_export *x, FILE *f, char *why, size_t n) _must_check;
void ttmon_export_drop(struct ttmon_export *x);

#endif
