/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * slots_tool.h: the parts of `ttmon slots`. cmd_slots.c has the options and reads the file; each
 * output is a set of functions that get its slots one after the other: table.c for people, text.c CSV
 * and JSON, sum.c the sums per process (all three forms).
 */
#ifndef TTMON_SLOTS_TOOL_H
#define TTMON_SLOTS_TOOL_H

#include <ttmon/event.h>

#include "lib/os/jsonw.h"
#include "lib/read/slots_json.h"
#include "lib/read/slots.h"
#include "lib/base/util.h"

/* What some slot of the file has: the table leaves out what none has. */
struct ttmon_slots_seen {
	bool ctr, llc, mbm, copies, pinned, missing;
	uint64_t slots, no_copies, no_pinned, no_cpu; /* how many there are, and in how many those are not known */
};

struct ttmon_slots_opts {
	const char *path;
	enum { TTMON_SLOTS_TABLE, TTMON_SLOTS_CSV, TTMON_SLOTS_JSON } form;
	bool sum, by_slot;
	bool has_pid;
	uint32_t pid;
	uint64_t top; /* rows a slot (--sum: in all), 0: all */
};

/* Name of a row for people: cleaned, kernel threads in brackets; buf of TTMON_SLOTS_NAME bytes. */
#define TTMON_SLOTS_NAME 32
char *ttmon_slots_row_name(char buf[TTMON_SLOTS_NAME], const struct ttmon_slot_row *row);
struct ttmon_slots_view {
	const struct ttmon_slots_opts *opts;
	const struct ttmon_slots_info *info;
	struct ttmon_slots_seen seen;
	struct ttmon_jsonw *json;
};

/*
 * Rows that are wanted: each output walks its slot's rows with this. NULL: no more. *at begins at 0,
 * *shown too.
 */
const struct ttmon_slot_row *ttmon_slots_wanted(const struct ttmon_slots_opts *opts,
						const struct ttmon_slots_item *item, uint32_t *at, uint64_t *shown);
/* ms since the slot in which the file begins. */
int64_t ttmon_slots_ms(const struct ttmon_slots_info *info, uint64_t no);

/* table.c */
void ttmon_slots_table_head(const struct ttmon_slots_view *v);
void ttmon_slots_table_slot(const struct ttmon_slots_view *v, const struct ttmon_slots_item *item);
/* text.c */
void ttmon_slots_csv_head(const struct ttmon_slots_view *v);
void ttmon_slots_csv_slot(const struct ttmon_slots_view *v, const struct ttmon_slots_item *item);
void ttmon_slots_json_slot(const struct ttmon_slots_view *v, const struct ttmon_slots_item *item);
/* A value between commas. */
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
