/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arena.h: pinned memory given out in pieces: few regions, each pinned by one call, whose pages are used again for whatever size comes next. Pure; the
 * simulation of advice keeps its memory in one (policy_region.c). The preloaded allocator does not yet: its blocks are each pinned by itself. Addresses and sizes are numbers of units, whatever a
 * unit is; both take TTMON_ARENA_UNIT bytes, so that small ones share a page.
 *
 * Pieces of a region that lie beside each other and are free become one. A request takes the next piece behind the last one that will do (buffers of a loop are
 * freed in the order they were made, so what is free stays together); if none of 64 does, the smallest that will; and leaves the rest free.
 */
#ifndef TTMON_LIB_ARENA_H
#define TTMON_LIB_ARENA_H

#include "lib/base/util.h"

#define TTMON_ARENA_NONE    UINT32_MAX
#define TTMON_ARENA_UNIT    512u /* bytes: what pieces are aligned to */
#define TTMON_ARENA_CLASSES 288

struct ttmon_arena_piece {
	uint64_t page, pages;
	uint32_t before, after; /* in its region; TTMON_ARENA_NONE: its ends */
	uint32_t prev, next;	/* of its class while it is free; next: of those that are in no use */
	bool free;
};

struct ttmon_arena {
	struct ttmon_arena_piece *v;
	uint32_t n, cap, unused;
	uint32_t first[TTMON_ARENA_CLASSES];
	uint64_t has[(TTMON_ARENA_CLASSES + 63) / 64];
	uint64_t pages, used;	 /* of all regions; given out */
	uint32_t regions, rover; /* rover: where the last request was served */
};

void ttmon_arena_init(struct ttmon_arena *a);
void ttmon_arena_fini(struct ttmon_arena *a);
/* One more region. -ENOMEM. */
int ttmon_arena_add(struct ttmon_arena *a, uint64_t page, uint64_t pages) _must_check;
/* A piece of at least so many pages (not 0), of as many unless memory runs out. TTMON_ARENA_NONE: none is large enough. */
uint32_t ttmon_arena_take(struct ttmon_arena *a, uint64_t pages);
void ttmon_arena_put(struct ttmon_arena *a, uint32_t piece);
/* Would so many more be no more than a sixteenth over what was known to be needed, if what is free lay together? */
bool ttmon_arena_has_room(const struct ttmon_arena *a, uint64_t pages, uint64_t known_pages);
/* A region of which nothing is given out, taken out of it: the largest of at least so many pages. False: there is none. */
bool ttmon_arena_give_back(struct ttmon_arena *a, uint64_t at_least, uint64_t *page, uint64_t *pages);
/*
 * Of the next region, for a request that finds no piece: known_pages are what earlier runs were worth at one time, call_pages what could be
 * pinned in the time that a call takes beside its pages. The first has what is known. Then a thirty-second of it at a time, or as many as a call is worth up
 * to a sixteenth, or half of what there is already beyond what was known: whole requests of this size.
 */
uint64_t ttmon_arena_more(const struct ttmon_arena *a, uint64_t pages, uint64_t known_pages, uint64_t call_pages);

#endif
