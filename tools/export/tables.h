/* SPDX-License-Identifier: GPL-2.0-only */
/* tables.h: the tables of a database and of a slot file, and their rows. */
#ifndef TTMON_EXPORT_TABLES_H
#define TTMON_EXPORT_TABLES_H

#include <signal.h>

#include "lib/read/db.h"
#include "lib/read/slots.h"
#include "tools/export/out.h"
#include "tools/export/parquet.h"

#define TTMON_EXPORT_DB_TABLES	  8
#define TTMON_EXPORT_SLOTS_TABLES 3
#define TTMON_EXPORT_BATCH	  TTMON_PARQUET_GROUP

extern const struct ttmon_export_table ttmon_export_db_tables[TTMON_EXPORT_DB_TABLES];
extern const struct ttmon_export_table ttmon_export_slots_tables[TTMON_EXPORT_SLOTS_TABLES];

/*
 * All rows of a file to x, which was made of its tables. -errno; -EINTR: *stopped was set; the readers
 * have the text of their own errors.
 */
int ttmon_export_db(struct ttmon_export *x, struct ttmon_db *db, const volatile sig_atomic_t *stopped) _must_check;
/* by_process: in each TTMON_EXPORT_BATCH rows, those of a process follow each other; else by slot. */
int ttmon_export_slots(struct ttmon_export *x, struct ttmon_slots_reader *s, bool by_process,
		       const volatile sig_atomic_t *stopped) _must_check;

/* A figure that is not negative, of which more than 63 bits cannot be shown, as in JSON. */
static inline struct ttmon_export_value ttmon_export_u64(bool known, uint64_t v)
{
	return (struct ttmon_export_value){ .n = (int64_t)MIN(v, (uint64_t)INT64_MAX), .known = known };
}

static inline struct ttmon_export_value ttmon_export_text(const char *text)
{
	return (struct ttmon_export_value){ .text = text };
}

#endif
