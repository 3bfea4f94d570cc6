/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mt_stream_feed.h: for tests of the stream file: bytes through its reader as memtrace/read/in.c gives
 * them, and what came out, kept.
 */
#ifndef TTMON_TESTS_MT_STREAM_FEED_H
#define TTMON_TESTS_MT_STREAM_FEED_H

#include <sys/mman.h>

#include "memtrace/read/in_int.h"
#include "memtrace/stream/stream.h"
#include "lib/base/util.h"

struct read_back {
	struct ttmon_mt_rec *recs; /* addr: into lists, where there is a list */
	uint64_t (*lists)[TTMON_MT_LANES];
	size_t nr, cap;
	struct ttmon_mt_dictw dict;
	struct ttmon_mt_stats stats;
	int err;
	char why[256];
};

static void read_back_fini(struct read_back *r)
{
	free(r->recs);
	free(r->lists);
	ttmon_mt_dict_fini(&r->dict);
}

static inline void keep_batch(struct read_back *r, const struct ttmon_mt_batch *b)
{
	if (r->nr + b->nr > r->cap) {
		r->cap = MAX(r->cap * 2, r->nr + b->nr);
		r->recs = reallocarray(r->recs, r->cap, sizeof(*r->recs));
		r->lists = reallocarray(r->lists, r->cap, sizeof(*r->lists));
		if (!r->recs || !r->lists)
			abort();
	}
	for (size_t i = 0; i < b->nr; i++) {
		r->recs[r->nr] = b->recs[i];
		if (b->recs[i].addr)
			memcpy(r->lists[r->nr], b->recs[i].addr, sizeof(*r->lists));
		r->nr++;
	}
}

/*
 * n bytes, of which at most piece are there at a time beyond what is not used. keep: the records too.
 */
static inline void read_stream(const uint8_t *p, size_t n, size_t piece, bool keep, struct read_back *ret)
{
	static struct ttmon_mt_batch b;
	void *r = NULL;
	size_t at = 0, there = 0, records = 0;

	memset(ret, 0, sizeof(*ret));
	if (ttmon_mt_stream.open(&r, "", NULL, &ret->dict, &ret->stats, ret->why, sizeof(ret->why)))
		abort();
	for (;;) {
		int64_t k;

		b.nr = 0;
		k = ttmon_mt_stream.parse(r, p + at, there - at, there == n, &b, ret->why, sizeof(ret->why));
		if (k < 0) {
			ret->err = (int)k;
			break;
		}
		if ((size_t)k > there - at)
			abort();
		at += (size_t)k;
		records += b.nr;
		if (keep)
			keep_batch(ret, &b);
		if (!k && !b.nr) {
			if (there == n)
				break;
			there = MIN(n, there + piece);
		}
	}
	if (!ret->err && at != n)
		abort();
	ttmon_mt_stream.free(r);
	ret->nr = keep ? ret->nr : records;
	for (size_t i = 0; keep && i < ret->nr; i++)
		if (ret->recs[i].addr)
			ret->recs[i].addr = ret->lists[i];
}

#endif
