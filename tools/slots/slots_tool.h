/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * slots_tool.h: the parts of `ttmon slots`. cmd_slots.c has the options and reads the file. Each
 * output is a set of functions that get one slot after the other: table.c prints a table, text.c CSV
 * and JSON, sum.c the sums per process in all three forms.
 */
#ifndef TTMON_SLOTS_TOOL_H
#define TTMON_SLOTS_TOOL_H

#include <ttmon/event.h>

#include "lib/os/jsonw.h"
#include "lib/read/slots_json.h"
#include "lib/read/slots.h"
#include "lib/base/util.h"

/* Which values occur in some slot of the file: the table leaves out the other columns. */
struct ttmon_slots_seen {
	bool ctr, llc, mbm, copies, pinned, missing;
	/* number of slots, and of slots in which these values are not known */
	uint64_t slots, no_copies, no_pinned, no_cpu;
};

struct ttmon_slots_opts {
	const char *path;
	enum { TTMON_SLOTS_TABLE, TTMON_SLOTS_CSV, TTMON_SLOTS_JSON } form;
	bool sum, by_slot;
	bool has_pid;
	uint32_t pid;
	uint64_t top; /* the most rows of a slot (with --sum: of the output); 0: all */
};

/* Name of a row for people: cleaned, kernel threads in brackets. buf has TTMON_SLOTS_NAME bytes. */
#define TTMON_SLOTS_NAME 32
char *ttmon_slots_row_name(char buf[TTMON_SLOTS_NAME], const struct ttmon_slot_row *row);
struct ttmon_slots_view {
	const struct ttmon_slots_opts *opts;
	const struct ttmon_slots_info *info;
	struct ttmon_slots_seen seen;
	struct ttmon_jsonw *json;
};

/*
 * Returns the next row of a slot that the options select; NULL: there are no more. *at and *shown
 * begin at 0.
 */
const struct ttmon_slot_row *ttmon_slots_wanted(const struct ttmon_slots_opts *opts,
						const struct ttmon_slots_item *item, uint32_t *at, uint64_t *shown);
/* Returns the ms since the first slot of the file. */
int64_t ttmon_slots_ms(const struct ttmon_slots_info *info, uint64_t no);

/* table.c */
void ttmon_slots_table_head(const struct ttmon_slots_view *v);
void ttmon_slots_table_slot(const struct ttmon_slots_view *v, const struct ttmon_slots_item *item);
/* text.c */
void ttmon_slots_csv_head(const struct ttmon_slots_view *v);
void ttmon_slots_csv_slot(const struct ttmon_slots_view *v, const struct ttmon_slots_item *item);
void ttmon_slots_json_slot(const struct ttmon_slots_view *v, const struct ttmon_slots_item *item);
/* Writes one value of a CSV line, quoted if necessary. */
void ttmon_slots_put_csv(const char *text, size_t n);

/* sum.c */
struct ttmon_slots_sum;
int ttmon_slots_sum_new(struct ttmon_slots_sum **ret) _must_check;
void ttmon_slots_sum_free(struct ttmon_slots_sum *s);
int ttmon_slots_sum_slot(struct ttmon_slots_sum *s, const struct ttmon_slots_view *v,
			 const struct ttmon_slots_item *item) _must_check;
void ttmon_slots_sum_print(struct ttmon_slots_sum *s, const struct ttmon_slots_view *v);

TTMON_FREEP(ttmon_slots_sum_freep, struct ttmon_slots_sum, ttmon_slots_sum_free);

#endif
