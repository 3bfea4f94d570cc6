/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/read/src.h: the bytes of one source, decompressed, and the list of Accel-Sim's files:
 * between memtrace/read/in.c and the files below it.
 */
#ifndef TTMON_MEMTRACE_IN_SRC_H
#define TTMON_MEMTRACE_IN_SRC_H

#include <sys/types.h>

#include "memtrace/read/in.h"

/*
 * One source: plain bytes, or gzip, zstd or xz by their magic (memtrace/read/src.c). Memory: 256 KiB
 * and what the decompressor takes.
 */
struct ttmon_mt_src;

/* Reads fd from where it stands; it is not closed. name is for messages. -ENOMEM. */
int ttmon_mt_src_new(int fd, const char *name, struct ttmon_mt_src **ret);
/*
 * Up to n bytes: how many; 0: the end, for ever; -EAGAIN: nothing came within wait_ms (negative: as
 * long as it takes), or a signal did; another -errno and one line in why.
 */
ssize_t ttmon_mt_src_read(struct ttmon_mt_src *s, uint8_t *p, size_t n, int wait_ms, char *why, size_t n_why);
uint64_t ttmon_mt_src_taken(const struct ttmon_mt_src *s); /* bytes read, as they are in the file */
bool ttmon_mt_src_cut(const struct ttmon_mt_src *s);	   /* compressed data that ended in the middle */
void ttmon_mt_src_free(struct ttmon_mt_src *s);

/* The files a kernelslist.g names, in their order (memtrace/read/list.c). */
#define TTMON_MT_LIST_MAX (16u << 20) /* bytes of the list */

struct ttmon_mt_list;

/* Is it one? n bytes of the beginning, end: that is all. As detect() of a format. */
int ttmon_mt_list_detect(const uint8_t *p, size_t n);
/*
 * path: of the list, names are relative to it. Each file must be there, or with .gz, .xz or .zst
 * behind its name: else -errno and one line with the number of the line. stats->foreign counts the
 * lines that name no trace and no memory.
 */
int ttmon_mt_list_new(const char *path, const uint8_t *text, size_t n, struct ttmon_mt_stats *stats,
		      struct ttmon_mt_list **ret, char *why, size_t n_why);
/*
 * Opens the next file: its fd, which is the caller's, and its name until the call after; -ENOENT and
 * why empty: there are no more.
 */
int ttmon_mt_list_next(struct ttmon_mt_list *l, const char **name, char *why, size_t n_why);
/* Is a line of a list about memory (memtrace/read/allocs.c)? size: 0 where it has none. */
bool ttmon_mt_list_memory(const char *p, size_t n, unsigned int *kind, uint64_t *addr, uint64_t *size);
uint64_t ttmon_mt_list_bytes(const struct ttmon_mt_list *l); /* of all its files */
void ttmon_mt_list_free(struct ttmon_mt_list *l);

#endif
