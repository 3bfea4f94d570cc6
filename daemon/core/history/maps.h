/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * maps.h: the executable mappings of one process, each with the times between which it was valid, so
 * that a return address seen at some time can be mapped to an object and an offset. Facts come late
 * and out of order with events.
 */
#ifndef TTMON_MAPS_H
#define TTMON_MAPS_H

#include "lib/base/util.h"

#define TTMON_MAPS_MAX	4096 /* per process */
#define TTMON_MAPS_OPEN UINT64_MAX

struct ttmon_xmap {
	uint64_t start, end, pgoff;
	uint64_t from_ns, to_ns; /* TTMON_MAPS_OPEN: still there */
	uint64_t seen_ns;	 /* as of when it was reported last */
	uint32_t object;	 /* id of an OBJECT fact, 0: none */
};

struct ttmon_maps {
	struct ttmon_xmap *v;
	uint32_t n, cap;
	/* entries that are not open: while there are any, the meaning of an address depends on the time */
	uint32_t ended;
	uint32_t gen; /* changes whenever an answer may change */
};

/* Adds a mapping as of ts_ns; what it covers ended then. -ENOSPC: too many; -ENOMEM. */
int ttmon_maps_add(struct ttmon_maps *m, const struct ttmon_xmap *map, uint64_t ts_ns) _must_check;
/* All that was reported last as of a time before ts_ns ends (exec). */
void ttmon_maps_end(struct ttmon_maps *m, uint64_t ts_ns);
/*
 * The mapping at addr at ts_ns, NULL: none. A mapping first reported later counts as present, unless a
 * barrier (an exec) lies between; barriers are ascending.
 */
const struct ttmon_xmap *ttmon_maps_find(const struct ttmon_maps *m, uint64_t addr, uint64_t ts_ns,
					 const uint64_t *barriers, uint32_t nr_barriers);
/* A forked child has its parent's mappings. */
int ttmon_maps_inherit(struct ttmon_maps *m, const struct ttmon_maps *parent, uint64_t ts_ns) _must_check;
/* Drops what ended before ts_ns. */
void ttmon_maps_prune(struct ttmon_maps *m, uint64_t ts_ns);
void ttmon_maps_fini(struct ttmon_maps *m);

#endif
