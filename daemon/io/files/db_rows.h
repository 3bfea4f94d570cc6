/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * db_rows.h: the tables of the database, one function each, and their rows, which the HTTP API uses
 * with the same names. Field by field: docs/ttmon-db.schema.json.
 */
#ifndef TTMON_DB_ROWS_H
#define TTMON_DB_ROWS_H

#include "daemon/core/history/history.h"
#include "lib/os/jsonw.h"

/* Each writes the member's key and its value. */
void ttmon_db_rows_objects(struct ttmon_jsonw *w, const struct ttmon_history *h);
int ttmon_db_rows_processes(struct ttmon_jsonw *w, const struct ttmon_history *h) _must_check; /* -ENOMEM */
void ttmon_db_rows_sites(struct ttmon_jsonw *w, const struct ttmon_history *h);
void ttmon_db_rows_checkpoints(struct ttmon_jsonw *w, const struct ttmon_history *h);
void ttmon_db_rows_allocations(struct ttmon_jsonw *w, const struct ttmon_history *h);
int ttmon_db_rows_advice(struct ttmon_jsonw *w, const struct ttmon_history *h) _must_check; /* -ENOMEM */

/* "transfers": {"h2d": {"pinned": [copies, bytes]}}: zeros are left out. */
void ttmon_db_rows_transfers(struct ttmon_jsonw *w, const struct ttmon_xfer xfer[TTMON_RDIR_MAX][TTMON_MEM_MAX]);

/*
 * Parts of rows: members, without the brackets around them. They make no system call, so the hot
 * thread may call them; their length is bounded by the lengths of names (4 KiB each), except for the
 * events.
 */
void ttmon_db_rows_alloc_id(struct ttmon_jsonw *w, const char *key, const struct ttmon_history *h,
			    const struct ttmon_alloc *a);
/* True if its life time is also known by numbers of launches. */
bool ttmon_db_rows_has_launches(const struct ttmon_history *h, const struct ttmon_alloc *a);
/* Identity, life and sums. */
/* Host memory that no call made pinned: a mapping, or memory of an allocator. */
bool ttmon_db_rows_is_plain_host(const struct ttmon_alloc *a);
/*
 * Members kind and, if needed, at_least: what is not known of it: its kind of memory, or the number of
 * its copies.
 */
void ttmon_db_rows_alloc_known(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_alloc *a);
void ttmon_db_rows_alloc(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_alloc *a);
/* "heat" and "page_heat", where there are any. */
void ttmon_db_rows_alloc_heat(struct ttmon_jsonw *w, const struct ttmon_alloc *a);
/* "events", without the first `skip`. */
void ttmon_db_rows_alloc_events(struct ttmon_jsonw *w, const struct ttmon_alloc *a, uint32_t skip);
/*
 * "advice", "reason", "gain_ns" and its range, "confidence" of a verdict; the costs that it is based
 * on.
 */
void ttmon_db_rows_said(struct ttmon_jsonw *w, const struct ttmon_said *s);
void ttmon_db_rows_cost(struct ttmon_jsonw *w, const struct ttmon_history *h);
void ttmon_db_rows_spot(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_spot *s);

#endif
