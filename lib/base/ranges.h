/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ranges.h: an ordered set of address ranges, each with a 32-bit value, with lookup by address. It is
 * a sorted array in blocks of 128: a range takes 16 bytes if added in order, 23 if added at random,
 * and a lookup is two searches.
 *
 * No two ranges begin at the same address. In a disjoint set the caller ensures that ranges do not
 * overlap. A set that may overlap is marked at init; stepping back from an address then stops where no
 * earlier range can reach it. The set has the end of a range that is shorter than 4 GiB; of a longer
 * one the caller's record has it.
 */
#ifndef TTMON_RANGES_H
#define TTMON_RANGES_H

#include "lib/base/util.h"

struct ttmon_ranges_block;

struct ttmon_ranges_dir {
	uint64_t first; /* start of the block's first range */
	struct ttmon_ranges_block *b;
	uint32_t n; /* its ranges */
};

struct ttmon_ranges {
	struct ttmon_ranges_dir *dir;
	uint32_t blocks, cap;
	uint32_t last; /* block found last: one event looks up the same address several times */
	uint64_t n;
	uint64_t max_len; /* upper bound of the length of all ranges */
	bool overlap;
};

/* A position in the set, valid until the set is changed. */
struct ttmon_ranges_pos {
	uint32_t block, idx;
	uint64_t start, end; /* end: UINT64_MAX for a range of 4 GiB or more */
	uint32_t val;
};

/* Returns 0; -EEXIST: another range begins there; -ENOMEM: the set has not changed. */
int ttmon_ranges_add(struct ttmon_ranges *r, uint64_t start, uint64_t end, uint32_t val) _must_check;
/* Returns false if no range begins there. */
bool ttmon_ranges_del(struct ttmon_ranges *r, uint64_t start);
/* Sets a new end of the range that begins at start; no effect if there is none. */
void ttmon_ranges_set_end(struct ttmon_ranges *r, uint64_t start, uint64_t end);
/* Gets the value of the range that begins at start; false if there is none. */
bool ttmon_ranges_get(const struct ttmon_ranges *r, uint64_t start, uint32_t *val);
/* Finds the last range that begins at or before addr; false if there is none. */
bool ttmon_ranges_floor(const struct ttmon_ranges *r, uint64_t addr, struct ttmon_ranges_pos *pos);
/*
 * From a position found for addr, steps back to the next range that may reach addr; always false in a
 * disjoint set.
 */
bool ttmon_ranges_back(const struct ttmon_ranges *r, uint64_t addr, struct ttmon_ranges_pos *pos);
/* Finds the first range that may reach addr or lies after it. */
bool ttmon_ranges_seek(const struct ttmon_ranges *r, uint64_t addr, struct ttmon_ranges_pos *pos);
bool ttmon_ranges_next(const struct ttmon_ranges *r, struct ttmon_ranges_pos *pos);
void ttmon_ranges_fini(struct ttmon_ranges *r);

#endif
