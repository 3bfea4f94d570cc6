/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/read/stream_rd.h: the parts of the reader of memtrace/stream/stream.h: its dictionary
 * (stream_dict.c) and its chunks of records (stream_recs.c). Both read an inflated payload;
 * TTMON_MTS_SLACK more bytes after its end may be read. Errors: -EBADMSG, the payload is malformed;
 * -ENOMEM; -E2BIG.
 */
#ifndef TTMON_MEMTRACE_STREAM_RD_H
#define TTMON_MEMTRACE_STREAM_RD_H

#include "memtrace/read/in_int.h"
#include "memtrace/stream/stream.h"
#include "memtrace/stream/format.h"
#include "lib/base/util.h"

#define TTMON_MTS_SLACK 16 /* see ttmon_mts_get() */

struct ttmon_mts_cursor {
	const uint8_t *p, *end;
	bool bad; /* p > end, where something reached over it, is as bad */
};

static inline uint64_t ttmon_mts_number(struct ttmon_mts_cursor *c)
{
	uint64_t v;

	if (c->p >= c->end) {
		c->bad = true;
		return 0;
	}
	c->p = ttmon_mts_get(c->p, &v);
	return v;
}

/* buf: TTMON_MT_MAX_TEXT + 1 bytes. Returns it. */
const char *ttmon_mts_text(struct ttmon_mts_cursor *c, char *buf);

/*
 * Where an index of the file is in the dictionary: that of what is lost is missing, so they need not
 * be the same.
 */
struct ttmon_mts_index {
	struct ttmon_mt_dictw *dict;
	struct {
		uint32_t *at;
		size_t nr, cap;
	} map[TTMON_MTS_DICT_MAX];
};

int ttmon_mts_index_read(struct ttmon_mts_index *x, unsigned int kind, uint32_t items, const uint8_t *p, size_t n);
/*
 * Return the dictionary's index of what a record names, a placeholder if it is missing; space, width:
 * of the record.
 */
int64_t ttmon_mts_index_site(struct ttmon_mts_index *x, uint64_t index, unsigned int space, unsigned int width);
int64_t ttmon_mts_index_launch(struct ttmon_mts_index *x, uint64_t index);
void ttmon_mts_index_fini(struct ttmon_mts_index *x);

#define TTMON_MTS_STEP 256 /* records decoded at once where they are put into their order of arrival */

struct ttmon_mts_run {
	const uint8_t *p, *end;
	uint64_t value, d;   /* of the record before the run; what each record adds */
	uint32_t from, upto; /* records of the run */
};

/* A chunk that is being handed out. Zeroed but for the first two, it is none. */
struct ttmon_mts_chunk {
	struct ttmon_mts_index *index;
	struct ttmon_mt_stats *stats;
	uint64_t seq; /* of the next record, where the file has none */
	size_t items, at;
	bool order, fresh;
	struct ttmon_mts_run col[TTMON_MTS_RUNS];
	const uint8_t *lanes, *lanes_end;
	struct ttmon_mt_rec now; /* the fields of the record before that are checked */
	uint32_t bits;
	bool ok; /* and whether they hold */

	/* with the order of arrival: all of it */
	struct ttmon_mt_rec *recs; /* addr: NULL or one more than the index in lists */
	size_t cap_recs;
	uint64_t (*lists)[TTMON_MT_LANES];
	size_t nr_lists, cap_lists;
	struct ttmon_mt_rec step[TTMON_MTS_STEP];
	uint64_t step_addr[TTMON_MTS_STEP][TTMON_MT_LANES];
};

/* p stays the caller's, and as it is until the last record is handed out. */
int ttmon_mts_chunk_start(struct ttmon_mts_chunk *c, uint32_t items, const uint8_t *p, size_t n);
/* What is left into the batch, as far as there is room. 1: there is more; 0: that was the last. */
int ttmon_mts_chunk_next(struct ttmon_mts_chunk *c, struct ttmon_mt_batch *b);
void ttmon_mts_chunk_fini(struct ttmon_mts_chunk *c);

#endif
