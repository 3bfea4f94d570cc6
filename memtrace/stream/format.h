/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/stream/format.h: the numbers of memtrace/stream/stream.h that its writer and its reader
 * share.
 */
#ifndef TTMON_MEMTRACE_STREAM_INT_H
#define TTMON_MEMTRACE_STREAM_INT_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "memtrace/model/mt.h"
#include "lib/base/varint.h"

#define TTMON_MTS_MAGIC	  0x544d5454u /* "TTMT" */
#define TTMON_MTS_VERSION 1
#define TTMON_MTS_HEAD	  48
#define TTMON_MTS_TOOL	  32 /* bytes, at its end */

#define TTMON_MTS_BLOCK	     0x4b4c4254u /* "TBLK" */
#define TTMON_MTS_BLOCK_HEAD 24
#define TTMON_MTS_MAX_STORED \
	((1u << 20) - 4096) /* a block with its header fits into the 1 MiB that a reader is given at once */
#define TTMON_MTS_MAX_INFLATED (16u << 20)

enum ttmon_mts_kind {
	TTMON_MTS_SITES = 1,
	TTMON_MTS_LAUNCHES,
	TTMON_MTS_AGGS,
	TTMON_MTS_TOUCHES,
	TTMON_MTS_KERNELS,
	TTMON_MTS_DICT_MAX, /* the kinds before it are the dictionary's */
	TTMON_MTS_RECORDS = TTMON_MTS_DICT_MAX,
	TTMON_MTS_END,
	TTMON_MTS_COUNTS, /* TTMON_MTS_AGGS with all that there is */
	TTMON_MTS_KIND_MAX
};

/*
 * Numbers of an aggregate that lie one after the other: from requests on, those that AGGS have; from
 * unique on, to its end.
 */
#define TTMON_MTS_AGG_SUMS \
	((offsetof(struct ttmon_mt_agg, shapes) - offsetof(struct ttmon_mt_agg, requests)) / sizeof(uint64_t))
#define TTMON_MTS_AGG_SHAPES ((sizeof(struct ttmon_mt_agg) - offsetof(struct ttmon_mt_agg, unique)) / sizeof(uint64_t))

/* Columns of RECORDS, in this order. */
enum ttmon_mts_col {
	TTMON_MTS_SITE, /* the first four change seldom: a reader checks them once for all records in which they stay */
	TTMON_MTS_LAUNCH,
	TTMON_MTS_BITS,
	TTMON_MTS_MASK,
	TTMON_MTS_CTA_X,
	TTMON_MTS_CTA_Y,
	TTMON_MTS_CTA_Z,
	TTMON_MTS_WARP,
	TTMON_MTS_SM,
	TTMON_MTS_BASE,
	TTMON_MTS_STRIDE,
	TTMON_MTS_FIELDS,
	TTMON_MTS_SEQ = TTMON_MTS_FIELDS,
	TTMON_MTS_RUNS, /* the columns before it are runs of differences */
	TTMON_MTS_RANK = TTMON_MTS_RUNS,
	TTMON_MTS_LANES,
	TTMON_MTS_COLS,
};

#define TTMON_MTS_ORDER 1 /* flag of RECORDS */

/* BITS: space, width << 8, flags << 16, and these. */
#define TTMON_MTS_LIST	 (1u << 24)
#define TTMON_MTS_SCALED (1u << 25)

static inline void ttmon_mts_put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static inline uint32_t ttmon_mts_get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/*
 * Reads up to 10 bytes whatever is in them: the buffer has so many behind its end, and the caller
 * compares what is returned with that.
 */
static inline const uint8_t *ttmon_mts_get(const uint8_t *p, uint64_t *ret)
{
	uint64_t v, last;
	unsigned int bytes;

	if (*p < 0x80) {
		*ret = *p;
		return p + 1;
	}
	/*
	 * Eight bytes at once: those behind the last one off, and then the gaps, of one bit a byte, closed
	 * pair by pair.
	 */
	memcpy(&v, p, sizeof(v));
	v = le64toh(v);
	last = ~v & 0x8080808080808080;
	bytes = last ? (unsigned int)__builtin_ctzll(last) / 8 + 1 : 8;
	if (last)
		v &= last ^ (last - 1);
	v &= 0x7f7f7f7f7f7f7f7f;
	v = (v & 0x007f007f007f007f) | (v & 0x7f007f007f007f00) >> 1;
	v = (v & 0x00003fff00003fff) | (v & 0x3fff00003fff0000) >> 2;
	v = (v & 0x000000000fffffff) | (v & 0x0fffffff00000000) >> 4;
	if (!last) {
		v |= (uint64_t)(p[8] & 0x7f) << 56;
		bytes = 9;
		if (p[8] & 0x80) {
			v |= (uint64_t)p[9] << 63;
			bytes = 10;
		}
	}
	*ret = v;
	return p + bytes;
}

#endif
