/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mmap2.h: every executable mapping on the host as it is made, from perf MMAP2 records.
 *
 * One software event of type dummy on each CPU that is online: no sample, no counter, and nothing is
 * added to a system call (a tracepoint on mmap would cost every system call of every process 10 to 65
 * ns). A record is written when a mapping gets PROT_EXEC, by mmap (execve's own among them) or by
 * mprotect. Names are as the mapping process sees them, in its own mount namespace; device and inode
 * number say which file it is. Anonymous executable memory comes too, with inode 0 and the name
 * "//anon".
 *
 * Runs in the cold thread. Needs CAP_PERFMON, or perf_event_paranoid below 0.
 */
#ifndef TTMON_MMAP2_H
#define TTMON_MMAP2_H

#include "lib/base/util.h"

struct ttmon_mmap2;

struct ttmon_mmap2_rec {
	uint64_t ts_ns; /* CLOCK_MONOTONIC */
	uint64_t addr;
	uint64_t len;
	uint64_t pgoff; /* bytes */
	uint64_t ino;
	uint64_t ino_generation;
	uint32_t pid; /* process and thread, in the pid namespace of the process that called ttmon_mmap2_new() */
	uint32_t tid;
	uint32_t maj;
	uint32_t min;
	uint32_t prot;	      /* PROT_* */
	uint32_t flags;	      /* MAP_PRIVATE, MAP_SHARED, ... */
	const char *filename; /* valid during the callback */
};

struct ttmon_mmap2_stats {
	uint64_t records;   /* passed to the callback */
	uint64_t lost;	    /* not written by the kernel because the buffer was full: rescan /proc when this changes */
	uint64_t malformed; /* refused; the rest of that CPU's buffer was dropped with it */
};

/* pages: data pages of each CPU's buffer, a power of two; a record is about 150 bytes. */
int ttmon_mmap2_new(uint32_t pages, struct ttmon_mmap2 **ret) _must_check;
/* Readable when there are records. Owned by m. */
int ttmon_mmap2_fd(const struct ttmon_mmap2 *m);
/* Passes all present records to cb, CPU by CPU, in order within a CPU. */
void ttmon_mmap2_drain(struct ttmon_mmap2 *m, void (*cb)(void *ctx, const struct ttmon_mmap2_rec *rec), void *ctx);
/* The same, but the records stay in the buffer. */
void ttmon_mmap2_peek(struct ttmon_mmap2 *m, void (*cb)(void *ctx, const struct ttmon_mmap2_rec *rec), void *ctx);
/* Follows CPUs that came or went. Unread records of one that went are lost uncounted: drain first. */
int ttmon_mmap2_refresh(struct ttmon_mmap2 *m) _must_check;
/* Number of CPUs with a buffer. */
uint32_t ttmon_mmap2_cpus(const struct ttmon_mmap2 *m);
void ttmon_mmap2_get_stats(const struct ttmon_mmap2 *m, struct ttmon_mmap2_stats *ret);
void ttmon_mmap2_free(struct ttmon_mmap2 *m);

/* ---- the pure part, for tests and fuzzing ---- */

/* Bounce buffer for a record that wraps: the size field has 16 bits. */
#define TTMON_MMAP2_BOUNCE 65536

/*
 * Reads the records in [tail, head) of a buffer of size bytes (a power of two). Returns the new tail,
 * which is head. loss_records: count PERF_RECORD_LOST in stats->lost (otherwise losses are known from
 * elsewhere).
 */
uint64_t ttmon_mmap2_consume(const uint8_t *data, uint64_t size, uint64_t tail, uint64_t head, uint8_t *bounce,
			     bool loss_records, void (*cb)(void *ctx, const struct ttmon_mmap2_rec *rec), void *ctx,
			     struct ttmon_mmap2_stats *stats);
/*
 * A list of CPUs as in /sys/devices/system/cpu/online ("0-3,5"): bit by bit into set (n bits).
 * -EBADMSG.
 */
int ttmon_mmap2_parse_cpus(const char *text, bool *set, size_t n) _must_check;

#endif
