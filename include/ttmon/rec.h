/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rec.h: the recording file of `ttmond --record` / `--replay`: the raw stream, as it entered the
 * pipeline.
 *
 *   offset 0   struct ttmon_rec_file: magic "TTMONREC", version, byte-order mark, nr_cpus
 *   then       blocks, each a struct ttmon_rec_block followed by comp_len bytes: zlib (RFC 1950) of
 *              raw_len bytes of entries
 *   at the end one block of type END with the totals; a file without it was cut off (crash, full
 *   disk): what is
 *              there is replayed and the history is marked incomplete.
 *
 * An entry is a u32 head and, for records, the record itself: head = size of the record in bytes (a
 * multiple of 8, never 0), or 0 followed by u32 0 and u64 watermark: "advance to here". The order of
 * entries is the order in which the pipeline got them. All little-endian; a big-endian host refuses
 * (the byte-order mark says so). crc32 (zlib) covers the compressed bytes.
 */
#ifndef TTMON_REC_H
#define TTMON_REC_H

#include <linux/types.h>

#define TTMON_REC_MAGIC	  "TTMONREC"
#define TTMON_REC_VERSION 1
#define TTMON_REC_BOM	  0x01020304u
#define TTMON_REC_RAW_MAX (4u << 20) /* the most raw bytes in a block */

struct ttmon_rec_file {
	char magic[8];
	__u32 version;
	__u32 bom;
	__u32 nr_cpus;
	__u32 header_len; /* sizeof(struct ttmon_rec_file); later versions may be longer */
	__u64 pad;
};

enum ttmon_rec_block_type { TTMON_REC_DATA = 1, TTMON_REC_END = 2 };

struct ttmon_rec_block {
	__u32 type;
	__u32 raw_len;
	__u32 comp_len;
	__u32 crc;
};

/* Raw contents of the END block. */
struct ttmon_rec_end {
	__u64 records;
	__u64 dropped; /* records that are not in the file because writing was too slow or failed */
	__u64 end_ns;
};

#endif
