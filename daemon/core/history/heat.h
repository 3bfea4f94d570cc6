/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * heat.h: how often and when an allocation was transferred, in a fixed amount of memory (struct
 * ttmon_heat, history.h).
 */
#ifndef TTMON_HEAT_H
#define TTMON_HEAT_H

#include "daemon/core/history/history.h"

#define TTMON_HEAT_WIDTH_NS 1000000ULL /* of a bucket at the start */

/*
 * The bucket that gets transfers at present, beside the heat: most transfers go into the bucket of the
 * one before, and memory with transfers in one bucket only needs no heat yet. All zero: none.
 */
struct ttmon_heat_now {
	uint64_t origin_ns; /* of the heat that has the bucket, or will have it */
	uint64_t from_ns;
	uint64_t bytes;
	uint32_t copies; /* 0: there is no such bucket */
	uint32_t shift;	 /* its width is TTMON_HEAT_WIDTH_NS << shift */
};
/* Adds a transfer if it belongs into this bucket; otherwise false. */
bool ttmon_heat_now_add(struct ttmon_heat_now *now, uint64_t ts_ns, uint64_t bytes);
/*
 * Begins the bucket of a transfer at ts_ns, after the one before was added to the heat; h NULL: the
 * allocation has no heat yet, and buckets count from origin_ns.
 */
void ttmon_heat_now_begin(struct ttmon_heat_now *now, struct ttmon_heat *h, uint64_t origin_ns, uint64_t ts_ns,
			  uint64_t bytes);
/* Adds the bucket to the heat; fresh: h is not filled in yet. */
void ttmon_heat_add_now(struct ttmon_heat *h, const struct ttmon_heat_now *now, bool fresh);

/* Makes it empty, with buckets from origin_ns on, as wide as ts_ns needs. */
void ttmon_heat_init(struct ttmon_heat *h, uint64_t origin_ns, uint64_t ts_ns);
/* Adds what src holds; its buckets are placed by the middle of their time. */
void ttmon_heat_merge(struct ttmon_heat *h, const struct ttmon_heat *src);

/* Sets up groups for an allocation of so many bytes: whole pages, at most 64 groups. */
void ttmon_page_heat_init(struct ttmon_page_heat *ph, uint64_t size, uint64_t page_size);
/*
 * The memory has a new size: groups double until all of it is covered. Of two groups that become one
 * the larger count stays: a copy may have touched both, so that this is a lower bound.
 */
void ttmon_page_heat_grow(struct ttmon_page_heat *ph, uint64_t size);
/* One copy touched `bytes` bytes from offset on. */
void ttmon_page_heat_touch(struct ttmon_page_heat *ph, uint64_t offset, uint64_t bytes);

static inline uint64_t ttmon_mul_sat(uint64_t a, uint64_t b)
{
	uint64_t r;

	return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}

struct ttmon_rect {
	/* width, pitch (row to row) and slice (slice to slice) in bytes; rows and slices are counts */
	uint64_t width, rows, slices, pitch, slice;
};
/*
 * One copy of a region: each group is counted once, and the work is bounded by the number of groups.
 */
void ttmon_page_heat_touch_rect(struct ttmon_page_heat *ph, uint64_t offset, const struct ttmon_rect *rect);
/* Bytes of the groups that were touched at least once. */
uint64_t ttmon_page_heat_bytes(const struct ttmon_page_heat *ph);

#endif
