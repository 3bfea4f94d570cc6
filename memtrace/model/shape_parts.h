/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/model/shape_parts.h: between memtrace/model/shape.c (affine records, the way in),
 * shape_list.c (lists of addresses) and banks.c (shared and local memory).
 */
#ifndef TTMON_MEMTRACE_SHAPE_PARTS_H
#define TTMON_MEMTRACE_SHAPE_PARTS_H

#include "memtrace/model/shape.h"

/*
 * Active lanes in ascending order: their numbers and addresses. 32 of them can be read: the last is
 * repeated. They may point to elsewhere than the buffers.
 */
struct ttmon_mt_lanes {
	unsigned int n;
	const uint8_t *lane;
	const uint64_t *addr;
	uint8_t lanes[TTMON_MT_LANES];
	uint64_t addrs[TTMON_MT_LANES];
};

/* Not __builtin_popcount(): without -mpopcnt that is a call. */
static inline unsigned int ttmon_mt_popcount(uint32_t x)
{
	x -= x >> 1 & 0x55555555;
	x = (x & 0x33333333) + (x >> 2 & 0x33333333);
	return ((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}

/* Units of 2^shift bytes that the bytes from first to last lie in. */
static inline unsigned int ttmon_mt_span(uint64_t first, uint64_t last, unsigned int shift)
{
	return (unsigned int)((last >> shift) - (first >> shift) + 1);
}

/* Adds sectors first to last, not below those that are there. */
static inline void ttmon_mt_run_add(struct ttmon_mt_shape *s, uint64_t first, uint64_t last)
{
	struct ttmon_mt_run *r = &s->runs[s->nr_runs];
	uint64_t end = s->nr_runs ? r[-1].sector + r[-1].n : 0;

	if (s->nr_runs && first <= end) {
		if (last >= end)
			r[-1].n = (uint32_t)(last - r[-1].sector + 1);
		return;
	}
	*r = (struct ttmon_mt_run){ first, (uint32_t)(last - first + 1) };
	s->nr_runs++;
}

/*
 * Units of 2^shift bytes that len lanes of width bytes lie in, step bytes apart from low on; nothing
 * comes round.
 */
unsigned int ttmon_mt_units(uint64_t low, uint64_t step, unsigned int len, unsigned int width, unsigned int shift);
/* Sectors, lines and pages from the runs. */
void ttmon_mt_count_runs(struct ttmon_mt_shape *s);
/* Is width a power of two, and what is or-ed together from addresses a multiple of it? */
static inline bool ttmon_mt_natural(uint64_t all, unsigned int width)
{
	return !(width & (width - 1)) && !(all & (width - 1));
}

/* Most lanes on one word; any addresses. */
unsigned int ttmon_mt_meet(const struct ttmon_mt_lanes *l, unsigned int width);

/* shape_list.c */
void ttmon_mt_sort32(int32_t x[TTMON_MT_LANES]);
/* Everything of a list; the class where it is not affine. */
void ttmon_mt_shape_list(const struct ttmon_mt_lanes *l, const struct ttmon_mt_rec *rec, bool atomic,
			 struct ttmon_mt_shape *s);

/* banks.c: phases, waves, ideal_waves (unique is there already); sectors and lines of local memory. */
void ttmon_mt_banks(const struct ttmon_mt_lanes *l, unsigned int width, struct ttmon_mt_shape *s);
/*
 * The same where lane i of the mask, which has no holes, is at base + stride * (i - first) and nothing
 * wraps. false: not one of the forms it knows.
 */
bool ttmon_mt_banks_affine(const struct ttmon_mt_rec *rec, unsigned int n, struct ttmon_mt_shape *s);
void ttmon_mt_local(const struct ttmon_mt_lanes *l, unsigned int width, struct ttmon_mt_shape *s);

#endif
