/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * db_rows.h: the tables of the database, one function each; private to io/db.c. Field by field:
 * docs/ttmon-db.schema.json.
 */
#ifndef TTMON_DB_ROWS_H
#define TTMON_DB_ROWS_H

#include "core/history.h"
#include "io/jsonw.h"

/* Each writes the member's key and its value. */
void ttmon_db_rows_objects(struct ttmon_jsonw *w, const struct ttmon_history *h);
int ttmon_db_rows_processes(struct ttmon_jsonw *w, const struct ttmon_history *h) _must_check; /* -ENOMEM */
void ttmon_db_rows_sites(struct ttmon_jsonw *w, const struct ttmon_history *h);
void ttmon_db_rows_allocations(struct ttmon_jsonw *w, const struct ttmon_history *h);
int ttmon_db_rows_advice(struct ttmon_jsonw *w, const struct ttmon_history *h) _must_check; /* -ENOMEM */

/* "transfers": {"h2d": {"pinned": [copies, bytes]}}: what is zero is left out. */
void ttmon_db_rows_transfers(struct ttmon_jsonw *w, const struct ttmon_xfer xfer[TTMON_RDIR_MAX][TTMON_MEM_MAX]);

#endif
