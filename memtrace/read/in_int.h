/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/read/in_int.h: between memtrace/read/in.c, which reads and decompresses bytes, and the
 * readers, which know one format each.
 */
#ifndef TTMON_MEMTRACE_IN_INT_H
#define TTMON_MEMTRACE_IN_INT_H

#include "memtrace/read/in.h"

struct ttmon_mt_batch {
	struct ttmon_mt_rec recs[TTMON_MT_BATCH];
	uint64_t addr[TTMON_MT_BATCH][TTMON_MT_LANES];
	size_t nr;
};

struct ttmon_mt_format {
	const char *name;
	/*
	 * Is this it? The first n bytes of the source (64 KiB, or all there is). 0: no; higher is surer, at
	 * most 100.
	 */
	int (*detect)(const uint8_t *p, size_t n);
	/*
	 * -errno and why, here and below without the name of the source. path: for what lies beside it. The
	 * dictionary, stats and options are the reader's to use as long as it lives.
	 */
	int (*open)(void **ret, const char *path, const struct ttmon_mt_in_opts *opts, struct ttmon_mt_dictw *dict,
		    struct ttmon_mt_stats *stats, char *why, size_t n);
	/*
	 * Takes bytes from p (n of them; end: no more will come) until the batch is full or it needs more.
	 * Returns how many it used; what it did not use is there again at the next call, with more behind it:
	 * a reader keeps no bytes. -errno and why ends the source. It requests at most 1 MiB at a time:
	 * with so much there and nothing used, the source is malformed.
	 */
	int64_t (*parse)(void *r, const uint8_t *p, size_t n, bool end, struct ttmon_mt_batch *batch, char *why,
			 size_t n_why);
	void (*free)(void *r);
};

extern const struct ttmon_mt_format ttmon_mt_text, ttmon_mt_raw, ttmon_mt_accel, ttmon_mt_stream;

#endif
