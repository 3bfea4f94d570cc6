/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * slots_json.h: a slot and its rows as JSON, for /v1/slots and `ttmon slots --json`. An unknown figure
 * is null, never 0. A lower bound is written, and marked by the flags, or by "at_least": true in the
 * same object if a family of probes was not on.
 */
#ifndef TTMON_SLOTJSON_H
#define TTMON_SLOTJSON_H

#include <ttmon/slot.h>

#include "lib/os/jsonw.h"

/* What is known of a figure. */
enum ttmon_slots_known {
	TTMON_SLOTS_UNKNOWN,
	TTMON_SLOTS_AT_LEAST, /* a lower bound: a reading is missing */
	TTMON_SLOTS_EXACT
};
enum ttmon_slots_known ttmon_slots_known_ctr(uint32_t slot_flags, const struct ttmon_slot_row *row, unsigned int ctr);
enum ttmon_slots_known ttmon_slots_known_llc(const struct ttmon_slot_row *row);
enum ttmon_slots_known ttmon_slots_known_mbm(const struct ttmon_slot_row *row);
/*
 * Return what is known of a count, and of an amount in use, depending on the families that it needs
 * (TTMON_SLOT_NEED_* of slot.h).
 */
enum ttmon_slots_known ttmon_slots_known_sum(const struct ttmon_slot *slot, uint32_t need, uint64_t value);
enum ttmon_slots_known ttmon_slots_known_held(const struct ttmon_slot *slot, uint32_t need);
/* Returns the name of family i; NULL: it was not traced in this slot. */
const char *ttmon_slots_family(const struct ttmon_slot *slot, unsigned int i);

const char *ttmon_slots_class_name(unsigned int cls);
/* Returns the name of flag i; NULL: it is not set. */
const char *ttmon_slots_row_flag(uint8_t flags, unsigned int i);
const char *ttmon_slots_slot_flag(uint32_t flags, unsigned int i);
#define TTMON_SLOTS_ROW_FLAG_NAMES  6
#define TTMON_SLOTS_SLOT_FLAG_NAMES 7

/*
 * Writes the members of the slot's object without its rows: "cpus" to "known" or "at_least", and
 * "flags".
 */
void ttmon_slotjson_figures(struct ttmon_jsonw *w, const struct ttmon_slot *s);
void ttmon_slotjson_flags(struct ttmon_jsonw *w, uint32_t slot_flags);
/* Begins a row's object: "pid" to "class"; the caller continues and closes it. */
void ttmon_slotjson_who(struct ttmon_jsonw *w, const struct ttmon_slot_row *r);
/* Writes a row as an object. */
void ttmon_slotjson_row(struct ttmon_jsonw *w, const struct ttmon_slot *s, const struct ttmon_slot_row *r);

#endif
