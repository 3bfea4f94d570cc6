/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/stream/stream.h: our own file (NAME.ttmt). Written in one pass, readable while it grows and
 * after a crash: what was cut off is lost, nothing before it. What follows is its specification.
 * Little endian; u: LEB128; s: zigzag LEB128; text: u bytes, the bytes.
 *
 *	header	48 bytes: "TTMT", u16 version (1), u16 flags (0), u32 0, u32 CRC-32 (zlib's) of the
 *		44 other bytes, 32 bytes of tool and version, filled with NUL
 *	blocks	24 bytes: "TBLK", u16 kind, u16 0, u32 bytes stored (at most 1 MiB - 4096), u32
 *		bytes inflated (at most 16 MiB), u32 items, u32 CRC-32 of the 20 bytes before it
 *		and of what is stored. Then what is stored: a zlib stream that is shorter than its
 *		contents, or, where both lengths are equal, the bytes themselves.
 *
 * A reader skips blocks of kinds it does not know, and goes on at the next "TBLK" that holds where a
 * CRC does not (counted as malformed; at END the records that were in it are, too). A header whose CRC
 * does not hold is taken as that of version 1.
 *
 *  1 SITES	u first index, then items of: text kernel, opcode, file, module; u pc, line,
 *		text_line, space, kind, width, flags
 *  2 LAUNCHES	u first index, then: text kernel; u id, ctx, grid[3], block[3], regs, shmem, stream,
 *		time_ns, shared_base, local_base, pid, flags
 *  3 AGGS	u first index, then: u site, launch, requests, full, lanes, bytes, sectors, lines,
 *		ideal_lanes, waves, ideal_waves, min_addr, max_addr. Older files have this kind;
 *		today 8 is written.
 *  4 TOUCHES	u first index, then: u addr, size, reads, writes, launch, pid
 *  5 KERNELS	u first index, then: text name, module, why; u launches, recorded, sites, left_out
 *	These are the dictionary: its new entries are written before the first record that needs
 *	them. An entry that comes again, at a flush or at the end, replaces the one of its index.
 *	An index that records name but no block has, because its block was lost, gets a placeholder.
 *  6 RECORDS	up to 64 Ki records. They are sorted by (site, launch, cta.z, .y, .x, warp) as far
 *		as 48 bits are enough for the ranges of these, else they are in the order of
 *		arrival. u flags (1: with the order of arrival), then u bytes of each of the 14
 *		columns below, then the columns:
 *	 0 site, 1 launch, 2 bits, 3 mask, 4-6 cta.x .y .z, 7 warp, 8 sm, 9 base, 10 stride, 11 seq:
 *		runs. Each value is the value of the record before it (0 for the first record) plus
 *		a difference modulo 2^64. A run is a byte: bit 0: repeated, bits 1-6: the low 6 bits
 *		of the zigzag difference, bit 7: u of its other bits follows; then, where repeated,
 *		u of how often it is used less 2.
 *		bits: space, width << 8, flags << 16, 1 << 24: a list of addresses, 1 << 25: its
 *		differences are divided by the width.
 *		seq: the order of arrival; empty where that is not kept: then a reader numbers the
 *		records as they come.
 *	12 rank: the place of a record in the order of arrival, less the rank before it: the low
 *		bytes of all items, then their high bytes. Empty without the order of arrival.
 *	13 lanes: for each record with a list, for each active lane but the lowest, whose address
 *		is base: s difference to the active lane before it
 *  7 END	u records, inferred, foreign, malformed, unknown_op, no_launch, produced, dropped,
 *		skewed, sample, flags (1: cut; 2: grouped already in its source); text tool. Items
 *		is 1. A file without this block was cut. A header after it begins another file,
 *		whose sites and launches are its own; anything else there is not read.
 *  8 COUNTS	as AGGS, and after each item: u shapes, max_same, max_waves, unique, ideal,
 *		misaligned, pages_4k, pages_64k, pages_2m, phases, same, classes[9],
 *		lanes_hist[33], cost_hist[34], lines_hist[34], pages_4k_bins[7], pages_2m_bins[7],
 *		stride[3] (modulo 2^64), stride_requests[3]: struct ttmon_mt_agg.
 *		Both are one part of the dictionary, with one numbering.
 */
#ifndef TTMON_MEMTRACE_STREAM_H
#define TTMON_MEMTRACE_STREAM_H

#include "memtrace/model/mt.h"

#define TTMON_MT_STREAM_CHUNK (64u << 10) /* records */

struct ttmon_mt_out;

struct ttmon_mt_out_opts {
	bool order;   /* keep the order of arrival, and seq: reuse distances need it; some two bytes a record */
	int level;    /* zlib's, 1 to 9; 0: 6 */
	uint64_t max; /* bytes of the file, then -EFBIG; 0: no limit */
};

/*
 * fd is written from where it stands, and not closed. opts may be NULL. Some 20 MiB of memory. -errno.
 */
int ttmon_mt_out_new(int fd, const struct ttmon_mt_out_opts *opts, struct ttmon_mt_out **ret);
/*
 * Records are taken as they are: indexes are those of dict, base of a list is the address of its
 * lowest active lane. What dict has got since the last call goes first. After an error every call
 * returns it, and the file (where it is one) is as it was after the last whole block.
 */
int ttmon_mt_out_put(struct ttmon_mt_out *out, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *recs,
		     size_t n);
/* Writes what is buffered, and what has changed in dict, so that a reader sees it. */
int ttmon_mt_out_flush(struct ttmon_mt_out *out, const struct ttmon_mt_dict *dict);
/* Flushes, writes END. Nothing may be put after it. */
int ttmon_mt_out_end(struct ttmon_mt_out *out, const struct ttmon_mt_dict *dict, const struct ttmon_mt_stats *stats);
uint64_t ttmon_mt_out_bytes(const struct ttmon_mt_out *out);   /* written */
uint64_t ttmon_mt_out_records(const struct ttmon_mt_out *out); /* written, in whole blocks: what a reader finds */
void ttmon_mt_out_free(struct ttmon_mt_out *out);

#endif
