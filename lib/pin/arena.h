/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arena.h: an allocator for pinned memory: a few regions, each pinned by one call, whose pages are
 * reused for allocations of any size. Pure. The simulation of advice (policy_region.c) and the
 * preloaded allocator (preload/region.c) both use it, and both follow ttmon_arena_serve(). Addresses
 * and sizes are in units of TTMON_ARENA_UNIT bytes, so that small pieces can share a page; a piece of
 * a page or more begins at a page boundary.
 *
 * Adjacent free pieces of a region are merged. A request takes the next large enough piece behind the
 * last one used (a loop frees its buffers in the order of allocation, so free memory stays
 * contiguous); if none of the next 64 is large enough, the smallest one that is. The rest of the piece
 * stays free.
 */
#ifndef TTMON_LIB_ARENA_H
#define TTMON_LIB_ARENA_H

#include "lib/base/util.h"

#define TTMON_ARENA_NONE    UINT32_MAX
#define TTMON_ARENA_UNIT    512u /* bytes: alignment of pieces */
#define TTMON_ARENA_PAGE    8u	 /* units in a page */
#define TTMON_ARENA_CLASSES 288

struct ttmon_arena_piece {
	uint64_t unit, units;
	uint32_t before, after; /* neighbours in its region; TTMON_ARENA_NONE: the end of the region */
	uint32_t prev, next;	/* list of its class while it is free; next: also links unused entries */
	bool free;
};

struct ttmon_arena {
	struct ttmon_arena_piece *v;
	uint32_t n, cap, unused;
	uint32_t first[TTMON_ARENA_CLASSES];
	uint64_t has[(TTMON_ARENA_CLASSES + 63) / 64];
	uint64_t units, used;	 /* units of all regions; units in use */
	uint32_t regions, rover; /* rover: the piece of the last request */
};

void ttmon_arena_init(struct ttmon_arena *a);
void ttmon_arena_fini(struct ttmon_arena *a);
/* Adds a region of whole pages that begins at a page. Returns 0 or -ENOMEM. */
int ttmon_arena_add(struct ttmon_arena *a, uint64_t unit, uint64_t units) _must_check;
/* Returns the units that a request of this many bytes takes. */
static inline uint64_t ttmon_arena_units(uint64_t bytes)
{
	return MAX(bytes / TTMON_ARENA_UNIT + (bytes % TTMON_ARENA_UNIT != 0), 1u);
}
/*
 * Takes a piece of at least so many units (not 0); exactly so many unless memory runs out.
 * TTMON_ARENA_NONE: no piece is large enough.
 */
uint32_t ttmon_arena_take(struct ttmon_arena *a, uint64_t units);
void ttmon_arena_put(struct ttmon_arena *a, uint32_t piece);

struct ttmon_arena_want {
	uint64_t units;
	uint64_t known; /* units that were worth pinning at one time in earlier runs */
	uint64_t call;	/* units that could be pinned in the time of the fixed cost of a call */
	bool waiting;	/* some freed pieces have copies in progress */
	bool alone;	/* it pays to pin this request individually */
};
enum ttmon_arena_step {
	TTMON_ARENA_TAKEN, /* success: the piece is *piece */
	TTMON_ARENA_WAIT,  /* wait for the copies of the piece that was freed first, free it here, and call again */
	/* leave this request pageable: enough is free, but in pieces that are too small */
	TTMON_ARENA_LEAVE,
	/* the region [*unit, *unit + *units) was removed from the arena: unpin it, and call again */
	TTMON_ARENA_GIVE_BACK,
	TTMON_ARENA_ADD, /* pin a region of *units, add it, and call again */
};
/*
 * Decides how to serve a request. While no more is pinned than the known need, a region is added: the
 * first one has the whole known need. After that, the caller waits for freed pieces with copies in
 * progress. Then the request is left pageable, if with it at most a sixteenth more than the known need
 * would be used and it does not pay to pin it individually. Otherwise unused regions are removed,
 * unless a call costs more than their pages, and a region is added. Its size is a thirty-second of all
 * regions, or as many pages as a call is worth (up to a sixteenth of all), or half of what was pinned
 * beyond the known need; in whole requests of this size.
 */
enum ttmon_arena_step ttmon_arena_serve(struct ttmon_arena *a, const struct ttmon_arena_want *w, uint32_t *piece,
					uint64_t *unit, uint64_t *units);
/* Removes the largest unused region of at least so many units. Returns false if there is none. */
bool ttmon_arena_give_back(struct ttmon_arena *a, uint64_t at_least, uint64_t *unit, uint64_t *units);

#endif
