/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/analyse/use.h: collects which memory kernels accessed, by process and page, until it is
 * reported. From a stream of records a daemon learns in this way that pinned memory without copies is
 * in use.
 */
#ifndef TTMON_MEMTRACE_USE_H
#define TTMON_MEMTRACE_USE_H

#include "memtrace/model/mt.h"

struct ttmon_mt_used {
	uint32_t pid;
	uint64_t addr,
		/*
		 * bytes between the first and the last sector touched, in at most 64 adjacent pages used within a
		 * millisecond; longer if a touch exceeds 1 GiB
		 */
		size;
	uint64_t ns;		/* the earliest use of it, as passed by the caller */
	uint64_t reads, writes; /* requests; one that touches several pages counts in each */
	uint64_t sectors;
};

struct ttmon_mt_use;

/*
 * pages: number of 4 KiB pages kept, a power of two, and as many touches; 120 bytes each. The time of
 * reporting depends on what was added, not on this limit.
 */
int ttmon_mt_use_new(uint32_t pages, struct ttmon_mt_use **ret);
/*
 * Adds a record in global memory or a generic one. ns: its time. Returns false if it is full: report
 * first.
 */
bool ttmon_mt_use_add(struct ttmon_mt_use *u, uint32_t pid, const struct ttmon_mt_rec *rec, unsigned int kind,
		      uint64_t ns);
/*
 * Adds a range that a program reports as touched, of any size: it is reported in pieces of 256 KiB, at
 * most 4096 for each range, with their part of the counts. A range that begins where the last one
 * ended is joined to it. Returns false if it is full: report first.
 */
bool ttmon_mt_use_touch(struct ttmon_mt_use *u, const struct ttmon_mt_touch *touch, uint64_t ns);
/*
 * Reports all ranges by calling fn, sorted by process and address, first those of records, then those
 * of touches, and then forgets them.
 */
void ttmon_mt_use_tell(struct ttmon_mt_use *u, void (*fn)(void *ctx, const struct ttmon_mt_used *used), void *ctx);
void ttmon_mt_use_free(struct ttmon_mt_use *u);

#endif
