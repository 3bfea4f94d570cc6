/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cores.h: the bytes of each core's L1 that circular buffers cover, and their number. Pure.
 *
 * A circular buffer covers the same addresses on each of its cores. Buffers of different programs
 * overlap: a byte of a core counts once, however many buffers cover it.
 */
#ifndef TTMON_TT_CORES_H
#define TTMON_TT_CORES_H

#include <ttmon/event.h>

#include "lib/base/util.h"

#define TTMON_TT_GRID_MAX  64	      /* coordinates of cores are smaller */
#define TTMON_TT_CELLS_MAX (1U << 20) /* most counters of one set */

/* Addresses from `at` to the next segment's: how many buffers cover them on each core. */
struct ttmon_tt_segment {
	uint64_t at;
	uint32_t *n;	  /* [h][w]; NULL: no buffer covers it on any core */
	uint32_t covered; /* cores with n > 0 */
};

struct ttmon_tt_cores {
	struct ttmon_tt_segment *v; /* sorted by address */
	uint32_t n, cap;
	uint32_t w, h;
	uint64_t bytes; /* covered bytes, summed over all cores */
};

/* True if all coordinates are below TTMON_TT_GRID_MAX, and no range ends before it begins. */
bool ttmon_tt_cores_sane(const struct ttmon_tt_core_range *r, uint32_t nr);
/*
 * Adds a cover of the addresses from `from` to `to` on these cores. -ENOMEM, -ENOSPC: nothing was
 * changed in bytes.
 */
int ttmon_tt_cores_add(struct ttmon_tt_cores *c, const struct ttmon_tt_core_range *r, uint32_t nr, uint64_t from,
		       uint64_t to) _must_check;
/* Removes what was added with the same arguments. */
void ttmon_tt_cores_sub(struct ttmon_tt_cores *c, const struct ttmon_tt_core_range *r, uint32_t nr, uint64_t from,
			uint64_t to);
void ttmon_tt_cores_fini(struct ttmon_tt_cores *c);

#endif
