/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cores.h: which bytes of which cores' L1 are covered by circular buffers, and how many bytes that
 * is. Pure.
 *
 * A circular buffer covers the same addresses on each of its cores. Buffers of different programs
 * cover each other: a byte of a core counts once, however many cover it.
 */
#ifndef TTMON_TT_CORES_H
#define TTMON_TT_CORES_H

#include <ttmon/event.h>

#include "lib/base/util.h"

#define TTMON_TT_GRID_MAX  64	      /* cores have smaller coordinates */
#define TTMON_TT_CELLS_MAX (1U << 20) /* counters of one set */

/* Addresses from at to the next segment's, on all cores: how many buffers cover each. */
struct ttmon_tt_segment {
	uint64_t at;
	uint32_t *n;	  /* [h][w]; NULL: nothing covers it on any core */
	uint32_t covered; /* cores with n > 0 */
};

struct ttmon_tt_cores {
	struct ttmon_tt_segment *v; /* in the order of addresses */
	uint32_t n, cap;
	uint32_t w, h;
	uint64_t bytes; /* covered, on all cores together */
};

/* All coordinates are below TTMON_TT_GRID_MAX, and no range ends before it begins. */
bool ttmon_tt_cores_sane(const struct ttmon_tt_core_range *r, uint32_t nr);
/* Cover addresses from to to of these cores once more. -ENOMEM, -ENOSPC: bytes is as it was. */
int ttmon_tt_cores_add(struct ttmon_tt_cores *c, const struct ttmon_tt_core_range *r, uint32_t nr, uint64_t from,
		       uint64_t to) _must_check;
/* Take back what was added with the same arguments. */
void ttmon_tt_cores_sub(struct ttmon_tt_cores *c, const struct ttmon_tt_core_range *r, uint32_t nr, uint64_t from,
			uint64_t to);
void ttmon_tt_cores_fini(struct ttmon_tt_cores *c);

#endif
