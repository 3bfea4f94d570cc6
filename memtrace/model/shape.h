/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/model/shape.h: what one request costs and looks like. Pure functions of one record;
 * definitions: ../shared/facts/memtrace.md 3 and, as a user reads them, ttmon-memtrace(7).
 *
 *	sectors		32-byte sectors that any active lane's bytes touch. Addresses are taken modulo 2^64,
 *			so an access may begin at the top and end at 0
 *	lines		128-byte lines, the same way; pages of 4 KiB, 64 KiB and 2 MiB too
 *	unique		distinct bytes
 *	ideal		ceil(unique / 32); 0 in shared memory
 *	ideal_lanes	ceil(active lanes x width / 32), as CUPTI counts it: differs where lanes overlap
 *	local memory	is interleaved by hardware so that the same word offset of neighbouring lanes is
 *			contiguous: sectors are distinct (word, lane / 8), lines distinct words, and no two
 *			lanes share a byte
 *	shared memory	32 banks of 4 bytes. A warp goes in phases of up to 128 bytes, with as many
 *			neighbouring lanes each: a width up to 4 takes all 32 at once, 8 takes two half
 *			warps, 16 four quarters (and so on: no instruction is wider). A phase takes as many
 *			wavefronts as its worst bank has distinct words. conflicts = waves - phases with a
 *			lane in them; ideal_waves = ceil(distinct words / 32)
 */
#ifndef TTMON_MEMTRACE_SHAPE_H
#define TTMON_MEMTRACE_SHAPE_H

#include "memtrace/model/mt.h"

/*
 * The classes, in the order of the checks: the first that matches is used. Only the addresses count: a
 * list of lanes that is affine has the class of the affine record. "Lane i" is the lane's number, so
 * holes in the mask leave holes in the addresses. In local memory, where the hardware interleaves:
 * SINGLE; SEQUENTIAL if all lanes have one offset; STRIDED; CLUSTERED; GATHER.
 */
enum ttmon_mt_class {
	TTMON_MT_SINGLE,     /* one lane */
	TTMON_MT_BROADCAST,  /* all lanes at one address */
	TTMON_MT_SEQUENTIAL, /* lane i at base + width * i */
	TTMON_MT_REVERSED,   /* at base - width * i */
	TTMON_MT_STRIDED,    /* at base + stride * i, any other stride */
	/*
	 * Tiles: runs with the same stride (which may be 0) and the same number of lanes; the first and the
	 * last may be shorter, and at least two have two lanes or more. Rows of a block that is narrower than
	 * a warp, rows looked up in a table, and a sequence that wraps around in a ring buffer have this
	 * class.
	 */
	TTMON_MT_SEGMENTED,
	TTMON_MT_PERMUTED,  /* the bytes of a sequential access in another order, without overlap */
	TTMON_MT_CLUSTERED, /* no order, at most twice the ideal sectors; in shared memory, the ideal wavefronts */
	TTMON_MT_GATHER,    /* the rest */
	TTMON_MT_CLASS_MAX
};
const char *ttmon_mt_class_name(unsigned int class); /* "single", "broadcast", ... */

/* At most one for each lane and one more, where an access goes over the top. */
#define TTMON_MT_MAX_RUNS 64

struct ttmon_mt_run {
	uint64_t sector; /* address / 32 */
	uint32_t n;	 /* sectors */
};

struct ttmon_mt_shape {
	uint16_t lanes;
	uint16_t sectors, lines;		/* 0 in shared memory */
	uint16_t ideal, ideal_lanes;		/* the same */
	uint16_t bytes, unique;			/* bytes: lanes x width */
	uint16_t pages_4k, pages_64k, pages_2m; /* distinct; 0 in shared and local memory */
	uint16_t phases, waves, ideal_waves;	/* shared memory; else 0 */
	/*
	 * ATOM, RED: most lanes on one 4-byte word (8-byte for wider ones), 1 if all words differ; 0 for other
	 * kinds
	 */
	uint16_t same;
	uint8_t class; /* enum ttmon_mt_class */
	/*
	 * sequential or reversed, not local, and takes more sectors than if its lowest byte were the first of
	 * a sector
	 */
	uint8_t misaligned;
	uint16_t run; /* SEGMENTED: lanes in a run, the longest; else 0 */
	/*
	 * STRIDED, SEGMENTED within a run, SEQUENTIAL, REVERSED: bytes; else 0. SEQUENTIAL in local memory:
	 * the width
	 */
	int64_t stride;
	int64_t pitch;	    /* SEGMENTED: from one run to the next, bytes; 0: differs */
	uint64_t low, high; /* the lowest and the highest address of a lane */
	/* Sectors as runs, ascending, none touching the next; 0 of them in shared and local memory. */
	uint16_t nr_runs;
	struct ttmon_mt_run runs[TTMON_MT_MAX_RUNS];
};

/*
 * Fast where the record is affine: no loop over lanes for strides of up to a sector. Addresses may be
 * any, also ones that wrap. runs past nr_runs are untouched.
 */
void ttmon_mt_get_shape(const struct ttmon_mt_rec *rec, unsigned int kind, struct ttmon_mt_shape *ret);

/* The address of a lane that is in the mask. */
static inline uint64_t ttmon_mt_lane(const struct ttmon_mt_rec *rec, unsigned int lane)
{
	return rec->addr ? rec->addr[lane]
			 : rec->base + (uint64_t)rec->stride * (lane - (unsigned int)__builtin_ctz(rec->mask));
}

/*
 * Turns 32 addresses into the affine form where the active lanes are: sets base, stride, addr of rec
 * by its mask. addr must outlive rec.
 */
void ttmon_mt_fit(struct ttmon_mt_rec *rec, const uint64_t *addr);

#endif
