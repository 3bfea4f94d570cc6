/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/analyse/use.h: which memory kernels accessed, summed up by process and page until it is
 * told. What a daemon needs of a stream of records to know that pinned memory which nobody copies is
 * used all the same.
 */
#ifndef TTMON_MEMTRACE_USE_H
#define TTMON_MEMTRACE_USE_H

#include "memtrace/model/mt.h"

struct ttmon_mt_used {
	uint32_t pid;
	uint64_t addr,
		size; /* the bytes between the first and the last sector touched, of pages that follow each other, at most 64, used within a millisecond; longer where a touch is over 1 GiB */
	uint64_t ns;  /* the earliest use of it, as it was told */
	uint64_t reads, writes; /* requests; one that touches several pages counts in each */
	uint64_t sectors;
};

struct ttmon_mt_use;

/*
 * pages: 4 KiB pages that are kept apart, a power of two, and as many touches; 120 bytes each. Telling
 * costs what was added, not what could be.
 */
int ttmon_mt_use_new(uint32_t pages, struct ttmon_mt_use **ret);
/* Of records in global memory and of generic ones. ns: when. False: it is full, tell first. */
bool ttmon_mt_use_add(struct ttmon_mt_use *u, uint32_t pid, const struct ttmon_mt_rec *rec, unsigned int kind,
		      uint64_t ns);
/*
 * Of a range that a program says its kernels touched, of any size: told in pieces of 256 KiB, at most
 * 4096 of one, with their part of the counts. One that goes on where the last one ended is joined to
 * it. False: it is full, tell first.
 */
bool ttmon_mt_use_touch(struct ttmon_mt_use *u, const struct ttmon_mt_touch *touch, uint64_t ns);
/*
 * Calls fn for each range, by process and address, first those of records, then those of touches, and
 * forgets them.
 */
void ttmon_mt_use_tell(struct ttmon_mt_use *u, void (*fn)(void *ctx, const struct ttmon_mt_used *used), void *ctx);
void ttmon_mt_use_free(struct ttmon_mt_use *u);

#endif
