/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/read/in.h: traces of any kind, read. What it is, is detected by content, after
 * decompression (gzip, zstd by their magic; xz: through a pipe):
 *
 *	NVBit mem_trace	the text of 1.0 to 1.3, 1.5 and 1.7 among a program's own output (text.c)
 *	raw		its records of 280 or 288 bytes, with a table of opcodes beside it (raw.c)
 *	Accel-Sim	.trace and .traceg, one kernel a file, or a kernelslist.g that names them (accel.c)
 *	ours		memtrace/stream/stream.h
 *
 * The caller requests the next batch. The memory is that of the dictionary and one batch. A source
 * may be a pipe that is still being written: a batch ends, maybe empty, when nothing more is there
 * (opts.live).
 *
 * Errors: -EBADMSG (not a trace at all; absurd beyond resynchronizing), -EIO and the like of read(2),
 * -ENOMEM, -E2BIG (limits of mt.h). What was read stays read: dict and stats hold.
 */
#ifndef TTMON_MEMTRACE_IN_H
#define TTMON_MEMTRACE_IN_H

#include "lib/base/util.h"
#include "memtrace/model/mt.h"

#define TTMON_MT_BATCH 4096 /* records, at most */

struct ttmon_mt_in_opts {
	const char *opcodes; /* raw: file of lines "ID OPCODE"; NULL: PATH.opcodes, if there */
	bool live;	     /* return what there is when the source has no more for now */
	int wait_ms;	     /* live: how long to wait for a first byte before returning an empty batch */
	/*
	 * Does addr lie in an allocation that may have been there? The answer is the same from *lo up to *hi
	 * (exclusive) around it. For records whose masks are inferred: lanes elsewhere are off. NULL: nothing
	 * is known of allocations.
	 */
	bool (*known)(void *ctx, uint64_t addr, uint64_t *lo, uint64_t *hi);
	void *known_ctx;
	/*
	 * Gets lines that are not of the trace, without their newline; NULL: they are only
	 * counted.
	 */
	void (*foreign)(void *ctx, const char *line, size_t n);
	void *ctx;
};

struct ttmon_mt_in;

/* path "-": standard input. opts may be NULL. On failure -errno and one line in why. */
int ttmon_mt_in_open(const char *path, const struct ttmon_mt_in_opts *opts, struct ttmon_mt_in **ret, char *why,
		     size_t n);
/* fd is not closed. */
int ttmon_mt_in_open_fd(int fd, const char *name, const struct ttmon_mt_in_opts *opts, struct ttmon_mt_in **ret,
			char *why, size_t n);
/*
 * Records, valid until the next call. 1: there may be more (nr can be 0); 0: the end; -errno with one
 * line in why.
 */
int ttmon_mt_in_next(struct ttmon_mt_in *in, const struct ttmon_mt_rec **recs, size_t *nr, char *why, size_t n);
const struct ttmon_mt_dict *ttmon_mt_in_dict(
	const struct ttmon_mt_in *in); /* grows between calls; pointers into it move */
const struct ttmon_mt_stats *ttmon_mt_in_stats(const struct ttmon_mt_in *in);
/* Bytes of the file and how many of them are read, for progress; 0 of a pipe. */
uint64_t ttmon_mt_in_size(const struct ttmon_mt_in *in, uint64_t *at);
void ttmon_mt_in_free(struct ttmon_mt_in *in);

struct ttmon_mt_map;
/*
 * Adds the memory that a kernelslist.g lists (copies to the device) to map, with lifetimes by
 * launches. Call it before ttmon_mt_map_done(). Returns the number of allocations; 0: path is not a
 * list, or cannot be read; -ENOMEM. Beyond 65,536 the rest is left out: *left_out is the number of its
 * lines.
 */
int ttmon_mt_in_allocs(const char *path, struct ttmon_mt_map *map, uint64_t *left_out);

TTMON_FREEP(ttmon_mt_in_freep, struct ttmon_mt_in, ttmon_mt_in_free);

#endif
