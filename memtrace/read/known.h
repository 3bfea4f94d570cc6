/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/read/known.h: finds inactive lanes by known allocations. Where a source has no masks, lanes
 * that were off have values of any kind: a value that lies in no allocation that may have been there
 * is one. Not where no lane of the record lies in one: then it is the allocations that are not
 * complete.
 */
#ifndef TTMON_MEMTRACE_IN_KNOWN_H
#define TTMON_MEMTRACE_IN_KNOWN_H

#include "memtrace/read/in.h"

#define TTMON_MT_KNOWN_SPANS 16

/* Addresses from lo to last (inclusive) have one answer. */
struct ttmon_mt_span {
	uint64_t lo, last;
	bool known, there; /* there: it is one at all */
};

struct ttmon_mt_knows {
	const struct ttmon_mt_in_opts *opts; /* known NULL: nothing is known */
	struct ttmon_mt_stats *stats;
	struct ttmon_mt_span spans[TTMON_MT_KNOWN_SPANS]; /* the last ones that were requested */
	unsigned int at, next;				  /* the last one that was of use; the one that goes */
};

/*
 * The lanes that were on, by the 32 addresses of a record of this space: of lanes, those in
 * allocations. mask: what was inferred without them, which it is where none is, and in shared and
 * local memory.
 */
uint32_t ttmon_mt_known_lanes(struct ttmon_mt_knows *k, unsigned int space, const uint64_t *addr, uint32_t lanes,
			      uint32_t mask);

#endif
