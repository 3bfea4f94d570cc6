/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ranges.h: an ordered set of address ranges, each with a 32-bit value, looked up by address. A sorted
 * array in blocks of 128: 12 bytes a range when filled in order, 17 when filled at random, and a
 * lookup is two binary searches at any size.
 *
 * No two ranges begin at the same address. In a disjoint set the caller keeps them from overlapping; a
 * set that may overlap says so at init, and stepping back from an address stops where nothing before
 * can reach it any more. The set does not hold the end of each range (the caller's record has it),
 * only bounds on them.
 */
#ifndef TTMON_RANGES_H
#define TTMON_RANGES_H

#include "lib/base/util.h"

struct ttmon_ranges_block;

struct ttmon_ranges_dir {
	uint64_t first; /* start of the block's first range */
	struct ttmon_ranges_block *b;
};

struct ttmon_ranges {
	struct ttmon_ranges_dir *dir;
	uint32_t blocks, cap;
	uint64_t n;
	uint64_t max_len; /* no range is longer */
	bool overlap;
};

/* A place in the set, valid until it is changed. */
struct ttmon_ranges_pos {
	uint32_t block, idx;
	uint64_t start;
	uint32_t val;
};

/* -EEXIST: one begins there already. -ENOMEM leaves the set as it was. */
int ttmon_ranges_add(struct ttmon_ranges *r, uint64_t start, uint64_t end, uint32_t val) _must_check;
/* False: none begins there. */
bool ttmon_ranges_del(struct ttmon_ranges *r, uint64_t start);
/* Tell of a new end of the range that begins at start (growing matters, shrinking does not). */
void ttmon_ranges_set_end(struct ttmon_ranges *r, uint64_t start, uint64_t end);
/* The one that begins there; false if none. */
bool ttmon_ranges_get(const struct ttmon_ranges *r, uint64_t start, uint32_t *val);
/* The last that begins at or before addr; false if none. */
bool ttmon_ranges_floor(const struct ttmon_ranges *r, uint64_t addr, struct ttmon_ranges_pos *pos);
/* From a floor of addr: the one before that may still reach addr; always false in a disjoint set. */
bool ttmon_ranges_back(const struct ttmon_ranges *r, uint64_t addr, struct ttmon_ranges_pos *pos);
/* Where to begin when looking for ranges that reach addr or lie after it. */
bool ttmon_ranges_seek(const struct ttmon_ranges *r, uint64_t addr, struct ttmon_ranges_pos *pos);
bool ttmon_ranges_next(const struct ttmon_ranges *r, struct ttmon_ranges_pos *pos);
void ttmon_ranges_fini(struct ttmon_ranges *r);

#endif
