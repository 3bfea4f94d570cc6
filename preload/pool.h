/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pool.h: counts the pinned pages of the process as the database counts them, and caches freed pinned
 * blocks. Pure: no CUDA, no clock, no lock (the caller has one); blocks are numbers assigned by the
 * caller.
 *
 * The cache guarantees that pinned pages, live and cached, never exceed the larger of the limit and
 * the live pages. With limit 0 nothing is ever kept. Excess blocks are freed, the oldest first.
 */
#ifndef TTMON_PIN_POOL_H
#define TTMON_PIN_POOL_H

#include "lib/base/ranges.h"
#include "lib/pin/profile.h"

#define TTMON_PIN_PAGE	 4096ull
#define TTMON_PIN_CACHED 4096 /* the most blocks in the cache */
#define TTMON_PIN_NONE	 UINT32_MAX

/* Distinct pages of ranges that do not overlap, but may share the page at their ends. */
struct ttmon_pin_pages {
	struct ttmon_ranges set; /* from the start to the pages touched */
	uint64_t now, peak;
	uint64_t total, pins; /* totals; a page that is pinned twice counts twice */
	uint64_t uncounted;   /* pins not counted: they overlap another, or memory ran out */
};

void ttmon_pin_pages_add(struct ttmon_pin_pages *p, uint64_t addr, uint64_t size);
/*
 * Removes the range that begins there. Returns the bytes to the end of its last page; 0: there is
 * none.
 */
uint64_t ttmon_pin_pages_del(struct ttmon_pin_pages *p, uint64_t addr);
/* Undoes a del() that was too early: this does not count as a pin. */
void ttmon_pin_pages_put_back(struct ttmon_pin_pages *p, uint64_t addr, uint64_t size);
void ttmon_pin_pages_fini(struct ttmon_pin_pages *p);

struct ttmon_pin_entry {
	uint32_t block;
	uint64_t size, pages;
};

struct ttmon_pin_pool {
	struct ttmon_pin_entry entry[TTMON_PIN_CACHED]; /* oldest first */
	uint32_t n;
	uint64_t pages, limit; /* cached pages; limit of live and cached pages together */
	uint64_t hits, busy, evicted;
};

/* Returns whether the block can be reused: every copy from or to it is done. */
typedef bool (*ttmon_pin_ready_fn)(void *ctx, uint32_t block);

/* Returns false if the table is full; the caller keeps the block. */
bool ttmon_pin_pool_put(struct ttmon_pin_pool *p, uint32_t block, uint64_t size) _must_check;
/*
 * Takes a block for size bytes out of the cache: large enough, at most half as many pages more than
 * needed (TTMON_POOL_FIT), and ready; the best fitting first, then the oldest. At most 8 are checked
 * for readiness. TTMON_PIN_NONE: there is none.
 */
uint32_t ttmon_pin_pool_take(struct ttmon_pin_pool *p, uint64_t size, ttmon_pin_ready_fn ready, void *ctx);
/*
 * Returns whether extra pages would exceed the limit unless cached blocks are freed. pinned: pages
 * pinned now, including cached blocks and pins in progress.
 */
bool ttmon_pin_pool_full(const struct ttmon_pin_pool *p, uint64_t pinned, uint64_t extra);
/* Takes out the oldest block if that is so. Call it until it returns TTMON_PIN_NONE. */
uint32_t ttmon_pin_pool_excess(struct ttmon_pin_pool *p, uint64_t pinned, uint64_t extra);
/* Takes out the oldest block; TTMON_PIN_NONE: the cache is empty. */
uint32_t ttmon_pin_pool_oldest(struct ttmon_pin_pool *p);

static inline uint64_t ttmon_pin_pages_of(uint64_t size)
{
	return size / TTMON_PIN_PAGE + (size % TTMON_PIN_PAGE != 0);
}

#endif
