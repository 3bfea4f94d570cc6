/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/read/db.h: the reader of the allocation database (docs/ttmon-db.schema.json), plain or gzip, for
 * tools and allocators.
 *
 * Memory does not grow with the number of allocations: the small members are kept as JSON trees, and
 * allocations are read one at a time. The order of use:
 *
 *	ttmon_db_open()              host, clock, capture, completeness, objects, processes, sites,
 *	                             checkpoints can be requested
 *	ttmon_db_next_alloc() ...    until it returns 0, or ttmon_db_skip()
 *	                             now advice and summary can be requested too
 *	ttmon_db_close()
 *
 * The file is not trusted: whatever it contains, a call returns an error with one line of text at
 * worst, and never takes more memory than the limits below allow. One thread at a time per reader.
 *
 * A tree takes more memory than its text, so values are counted before there is one: an opening
 * bracket or a comma outside text is one. Measured with jansson 2.14 on x86-64, bytes per value
 * counted: 54 for events and frames, 90 for short texts, 116 for empty objects, 280 for objects nested
 * in objects nested in objects, which no writer produces. With TTMON_DB_MAX_VALUES that is 0.9 GB for
 * what ttmond writes and at worst 4.6 GB for the members, and nearly as much for one allocation (its
 * text bounds it to 4.1 GB), besides the text itself. Allocations passed over have no tree and are not
 * counted.
 */
#ifndef TTMON_LIB_DB_H
#define TTMON_LIB_DB_H

#include <jansson.h>

#include "lib/base/util.h"
#include "lib/read/fields.h"

/* Schema and version that this reader accepts. */
#define TTMON_DB_READS_SCHEMA  "ttmon-db"
#define TTMON_DB_READS_VERSION 1

#define TTMON_DB_MAX_DEPTH   16		  /* brackets within brackets */
#define TTMON_DB_MAX_ALLOC   (64u << 20)  /* bytes of text of one allocation */
#define TTMON_DB_MAX_MEMBERS (256u << 20) /* bytes of text of all other members together */
#define TTMON_DB_MAX_VALUES  (16u << 20)  /* values of one allocation; of all other members together */
#define TTMON_DB_MAX_KEY     64		  /* bytes of a member name */
#define TTMON_DB_MAX_NR	     64		  /* members of the document */

struct ttmon_db;

/*
 * Opens a database and reads up to the allocations. path "-" is standard input. On failure -errno,
 * with the reason and the file name in why (size n): -EBADMSG: not a database, damaged or cut off;
 * -EPROTONOSUPPORT: another version; -E2BIG: a limit above.
 */
int ttmon_db_open(const char *path, struct ttmon_db **ret, char *why, size_t n) _must_check;
void ttmon_db_close(struct ttmon_db *db);
/*
 * Returns 1: *ret is the next allocation, owned by the caller (json_decref); 0: there are no more;
 * -errno: see ttmon_db_why().
 */
int ttmon_db_next_alloc(struct ttmon_db *db, json_t **ret) _must_check;
/*
 * The same without a tree, ten times as fast: take() gets each member of the allocation, and NULL
 * before the first one, whereupon it forgets what it got: that can happen in the middle, too. What
 * lies between the brackets of a member is not checked.
 */
int ttmon_db_next_fields(struct ttmon_db *db, void (*take)(void *ctx, const struct ttmon_field *f),
			 void *ctx) _must_check;
/* Skips the remaining allocations without making trees of them. Returns 0 or -errno. */
int ttmon_db_skip(struct ttmon_db *db) _must_check;
/*
 * Returns a member of the document other than "allocations": borrowed; NULL if it is missing (or not
 * read yet, see above).
 */
json_t *ttmon_db_member(const struct ttmon_db *db, const char *name);
/* Returns the text of the last error, with the file name. */
const char *ttmon_db_why(const struct ttmon_db *db);

/*
 * Gets a figure of an object: a non-negative integer, or a string with a decimal or 0x number (times
 * and addresses). Returns false and leaves *ret unchanged if it is missing, null, or something else.
 */
bool ttmon_db_u64(const json_t *obj, const char *key, uint64_t *ret);
/* The same for a single value, such as an element of an array. */
bool ttmon_db_value(const json_t *json, uint64_t *ret);
/* The same with a default. */
uint64_t ttmon_db_get(const json_t *obj, const char *key, uint64_t def);
/* Returns the text of a member, def if it is missing. */
const char *ttmon_db_str(const json_t *obj, const char *key, const char *def);

/* A row of the optional member "checkpoints". */
struct ttmon_db_checkpoint {
	uint64_t ts_ns;
	uint32_t process, tid;
	const char *label; /* borrowed from the row */
};
/* Returns false and leaves *ret unchanged if the row is not valid. */
bool ttmon_db_get_checkpoint(const json_t *row, struct ttmon_db_checkpoint *ret);

static inline void ttmon_db_closep(struct ttmon_db **db)
{
	ttmon_db_close(*db);
}
static inline void ttmon_json_decrefp(json_t **json)
{
	json_decref(*json);
}

#endif
