/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * db_rows.h: the tables of the database, one function each, and their rows, which the HTTP API has the
 * same names for. Field by field: docs/ttmon-db.schema.json.
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

/* "transfers": {"h2d": {"pinned": [copies, bytes]}}: what is zero is left out. */
void ttmon_db_rows_transfers(struct ttmon_jsonw *w, const struct ttmon_xfer xfer[TTMON_RDIR_MAX][TTMON_MEM_MAX]);

/*
 * Parts of rows: members, without the brackets around them. Memory alone, so that the hot thread may
 * call them; what they write is bounded by the lengths of names (4 KiB each) but for the events.
 */
void ttmon_db_rows_alloc_id(struct ttmon_jsonw *w, const char *key, const struct ttmon_history *h,
			    const struct ttmon_alloc *a);
/* Is its life time known by numbers of launches too? */
bool ttmon_db_rows_has_launches(const struct ttmon_history *h, const struct ttmon_alloc *a);
/* Identity, life and sums. */
/* Host memory that no call made pinned: a mapping, or an allocator's. */
bool ttmon_db_rows_is_plain_host(const struct ttmon_alloc *a);
/*
 * Members kind, perhaps, at_least: what is not known of it, what kind of memory it is, how often it
 * was copied.
 */
void ttmon_db_rows_alloc_known(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_alloc *a);
void ttmon_db_rows_alloc(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_alloc *a);
/* "heat" and "page_heat", where there are any. */
void ttmon_db_rows_alloc_heat(struct ttmon_jsonw *w, const struct ttmon_alloc *a);
/* "events", without the first `skip`. */
void ttmon_db_rows_alloc_events(struct ttmon_jsonw *w, const struct ttmon_alloc *a, uint32_t skip);
/*
 * "advice", "reason", "gain_ns" and its range, "confidence" of a verdict; the prices that it rests on.
 */
void ttmon_db_rows_said(struct ttmon_jsonw *w, const struct ttmon_said *s);
void ttmon_db_rows_cost(struct ttmon_jsonw *w, const struct ttmon_history *h);
void ttmon_db_rows_spot(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_spot *s);

#endif
