/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * parquet.h: writes one flat table as a file of Apache Parquet: columns of 64-bit integers and of
 * texts in UTF-8, each of which may be null. Memory: what a row group of 128 Ki rows needs, about 10
 * bytes a value, and at most 64 MiB of texts.
 */
#ifndef TTMON_EXPORT_PARQUET_H
#define TTMON_EXPORT_PARQUET_H

#include "tools/export/out.h"

#define TTMON_PARQUET_GROUP (128u << 10) /* rows of a row group */

struct ttmon_parquet;

/* f and t are borrowed. -ENOMEM. */
int ttmon_parquet_new(FILE *f, const struct ttmon_export_table *t, struct ttmon_parquet **ret) _must_check;
/* The values are copied. -ENOMEM, -EIO: the file cannot be written. */
int ttmon_parquet_row(struct ttmon_parquet *p, const struct ttmon_export_value *values) _must_check;
/* Writes what is left and the footer; f stays open. -ENOMEM, -EIO. */
int ttmon_parquet_finish(struct ttmon_parquet *p) _must_check;
void ttmon_parquet_free(struct ttmon_parquet *p);

#endif
