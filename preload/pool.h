/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pool.h: what of the process is pinned, counted in pages as the database counts them, and the cache
 * of freed pinned blocks. Pure: no CUDA, no clock, no lock (the caller has one); blocks are numbers of
 * the caller's.
 *
 * The cache keeps one promise: pinned pages, live and cached, never pass the larger of the limit and
 * what is live. With limit 0 nothing is ever kept. What is over goes oldest first.
 */
#ifndef TTMON_PIN_POOL_H
#define TTMON_PIN_POOL_H

#include "lib/base/ranges.h"
#include "lib/pin/profile.h"

#define TTMON_PIN_PAGE	 4096ull
#define TTMON_PIN_CACHED 4096 /* blocks in the cache, at most */
#define TTMON_PIN_NONE	 UINT32_MAX

/* Distinct pages of ranges that do not overlap, but may share the page at their ends. */
struct ttmon_pin_pages {
	struct ttmon_ranges set; /* start -> pages touched */
	uint64_t now, peak;
	uint64_t total, pins; /* ever; a page that is pinned twice counts twice */
	uint64_t uncounted;   /* pins left out: they overlap another, or no memory */
};

void ttmon_pin_pages_add(struct ttmon_pin_pages *p, uint64_t addr, uint64_t size);
/* Of a range that begins there: the bytes to the end of its last page. 0: there is none. */
uint64_t ttmon_pin_pages_del(struct ttmon_pin_pages *p, uint64_t addr);
/* Back in after a del() that was too early: no pin of its own. */
void ttmon_pin_pages_put_back(struct ttmon_pin_pages *p, uint64_t addr, uint64_t size);
void ttmon_pin_pages_fini(struct ttmon_pin_pages *p);

struct ttmon_pin_entry {
	uint32_t block;
	uint64_t size, pages;
};

struct ttmon_pin_pool {
	struct ttmon_pin_entry entry[TTMON_PIN_CACHED]; /* oldest first */
	uint32_t n;
	uint64_t pages, limit; /* cached; and of live and cached together */
	uint64_t hits, busy, evicted;
};

/* May the block be given out again: is every copy from or to it done? */
typedef bool (*ttmon_pin_ready_fn)(void *ctx, uint32_t block);

/* False: there is no room in the table, and it stays the caller's. */
bool ttmon_pin_pool_put(struct ttmon_pin_pool *p, uint32_t block, uint64_t size) _must_check;
/*
 * A block for size bytes, taken out: large enough, of no more than half as many pages more
 * (TTMON_POOL_FIT), and ready; the best fitting, then the oldest. At most 8 are asked whether they are
 * ready. TTMON_PIN_NONE: there is none.
 */
uint32_t ttmon_pin_pool_take(struct ttmon_pin_pool *p, uint64_t size, ttmon_pin_ready_fn ready, void *ctx);
/*
 * Would extra pages break the promise, unless blocks are given back? pinned is what is pinned now,
 * cached blocks and pins under way with it.
 */
bool ttmon_pin_pool_full(const struct ttmon_pin_pool *p, uint64_t pinned, uint64_t extra);
/* The oldest block, taken out, where that is so. Call until it is TTMON_PIN_NONE. */
uint32_t ttmon_pin_pool_excess(struct ttmon_pin_pool *p, uint64_t pinned, uint64_t extra);
/* The oldest, taken out; TTMON_PIN_NONE: it is empty. */
uint32_t ttmon_pin_pool_oldest(struct ttmon_pin_pool *p);

static inline uint64_t ttmon_pin_pages_of(uint64_t size)
{
	return size / TTMON_PIN_PAGE + (size % TTMON_PIN_PAGE != 0);
}

#endif
