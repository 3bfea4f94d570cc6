/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * arena.h: pinned memory given out in pieces: few regions, each pinned by one call, whose pages are
 * used again for whatever size comes next. Pure; the simulation of advice (policy_region.c) and the
 * preloaded allocator (preload/region.c) keep their memory in one, and both do what
 * ttmon_arena_serve() says. Addresses and sizes are numbers of units of TTMON_ARENA_UNIT bytes, so
 * that small pieces share a page; a piece of a page or more begins at a page.
 *
 * Pieces of a region that lie beside each other and are free become one. A request takes the next
 * piece behind the last one that will do (buffers of a loop are freed in the order they were made, so
 * what is free stays together); if none of 64 does, the smallest that will; and leaves the rest free.
 */
#ifndef TTMON_LIB_ARENA_H
#define TTMON_LIB_ARENA_H

#include "lib/base/util.h"

#define TTMON_ARENA_NONE    UINT32_MAX
#define TTMON_ARENA_UNIT    512u /* bytes: what pieces are aligned to */
#define TTMON_ARENA_PAGE    8u	 /* units */
#define TTMON_ARENA_CLASSES 288

struct ttmon_arena_piece {
	uint64_t unit, units;
	uint32_t before, after; /* in its region; TTMON_ARENA_NONE: its ends */
	uint32_t prev, next;	/* of its class while it is free; next: of those that are in no use */
	bool free;
};

struct ttmon_arena {
	struct ttmon_arena_piece *v;
	uint32_t n, cap, unused;
	uint32_t first[TTMON_ARENA_CLASSES];
	uint64_t has[(TTMON_ARENA_CLASSES + 63) / 64];
	uint64_t units, used;	 /* of all regions; given out */
	uint32_t regions, rover; /* rover: where the last request was served */
};

void ttmon_arena_init(struct ttmon_arena *a);
void ttmon_arena_fini(struct ttmon_arena *a);
/* One more region: whole pages, from the start of one. -ENOMEM. */
int ttmon_arena_add(struct ttmon_arena *a, uint64_t unit, uint64_t units) _must_check;
/* What a request of so many bytes takes. */
static inline uint64_t ttmon_arena_units(uint64_t bytes)
{
	return MAX(bytes / TTMON_ARENA_UNIT + (bytes % TTMON_ARENA_UNIT != 0), 1u);
}
/*
 * A piece of at least so many units (not 0), of as many unless memory runs out. TTMON_ARENA_NONE: none
 * is large enough.
 */
uint32_t ttmon_arena_take(struct ttmon_arena *a, uint64_t units);
void ttmon_arena_put(struct ttmon_arena *a, uint32_t piece);

struct ttmon_arena_want {
	uint64_t units;
	uint64_t known; /* units that earlier runs were worth at one time */
	uint64_t call;	/* units that could be pinned in the time that a call takes beside its pages */
	bool waiting;	/* there are freed pieces whose copies are under way */
	bool alone;	/* it pays to pin this request by itself */
};
enum ttmon_arena_step {
	TTMON_ARENA_TAKEN, /* *piece */
	TTMON_ARENA_WAIT,  /* wait for the copies of the piece that was freed first, put it, and ask again */
	/* leave this request pageable: what is free would do, but lies in pieces that are too small */
	TTMON_ARENA_LEAVE,
	TTMON_ARENA_GIVE_BACK, /* the region [*unit, *unit + *units) is out of the arena: unpin it, and ask again */
	TTMON_ARENA_ADD,       /* pin a region of *units, add it, and ask again */
};
/*
 * What to do for a request. As long as no more was pinned than was known to be needed, a region is
 * added: the first has all that is known. After that pieces that were freed are waited for; then the
 * request is left pageable, if at most a sixteenth more than what is known would be used with it and
 * it does not pay for a pin by itself. Else regions that nothing of is used go, unless a call costs
 * more than their pages, and one is added: a thirty-second of what there is at a time, or as many
 * pages as a call is worth up to a sixteenth, or half of what there is already beyond what was known;
 * whole requests of this size.
 */
enum ttmon_arena_step ttmon_arena_serve(struct ttmon_arena *a, const struct ttmon_arena_want *w, uint32_t *piece,
					uint64_t *unit, uint64_t *units);
/*
 * A region of which nothing is given out, taken out of it: the largest of at least so many units.
 * False: there is none.
 */
bool ttmon_arena_give_back(struct ttmon_arena *a, uint64_t at_least, uint64_t *unit, uint64_t *units);

#endif
