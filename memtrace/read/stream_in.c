// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream_in.c: reads memtrace/stream/stream.h. A chunk stays inflated here until its last record was
 * returned, and only then are its bytes consumed: so a caller that has no more bytes still gets the
 * rest.
 */
#include "memtrace/read/stream_rd.h"

#include <zlib.h>

struct reader {
	struct ttmon_mt_stats *stats;
	z_stream z;
	bool headed, ended, lost; /* lost: between blocks, looking for one */
	uint64_t records;	  /* of the chunks that were read */
	uint8_t *plain;
	size_t cap;
	size_t block; /* bytes in the file of the chunk that is being handed out; 0: none */
	struct ttmon_mts_index index;
	struct ttmon_mts_chunk chunk;
};

static int stream_detect(const uint8_t *p, size_t n)
{
	if (n >= 6 && ttmon_mts_get32(p) == TTMON_MTS_MAGIC)
		return 100;
	/* A header that is damaged: the first block shows what it is. */
	return n >= TTMON_MTS_HEAD + 4 && ttmon_mts_get32(p + TTMON_MTS_HEAD) == TTMON_MTS_BLOCK ? 90 : 0;
}

static void stream_free(void *reader)
{
	struct reader *r = reader;

	if (!r)
		return;
	inflateEnd(&r->z);
	ttmon_mts_index_fini(&r->index);
	ttmon_mts_chunk_fini(&r->chunk);
	free(r->plain);
	free(r);
}

static int stream_open(void **ret, const char *path, const struct ttmon_mt_in_opts *opts, struct ttmon_mt_dictw *dict,
		       struct ttmon_mt_stats *stats, char *why, size_t n)
{
	struct reader *r = calloc(1, sizeof(*r));

	(void)path;
	(void)opts;
	if (!r || inflateInit(&r->z) != Z_OK) {
		free(r);
		snprintf(why, n, "no memory for reading the trace");
		return -ENOMEM;
	}
	r->index.dict = dict;
	r->stats = r->chunk.stats = stats;
	r->chunk.index = &r->index;
	*ret = r;
	return 0;
}

/* ---- blocks ---- */

static int read_end(struct reader *r, size_t n)
{
	struct ttmon_mts_cursor c = { r->plain, r->plain + n, false };
	struct ttmon_mt_stats *s = r->stats;
	char tool[TTMON_MT_MAX_TEXT + 1];
	uint64_t v[11];

	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		v[i] = ttmon_mts_number(&c);
	ttmon_mts_text(&c, tool);
	if (c.bad || c.p > c.end)
		return -EBADMSG;
	s->foreign += v[2];
	s->malformed += v[3] + (v[0] > r->records ? v[0] - r->records : 0);
	s->unknown_op += v[4];
	s->no_launch += v[5];
	s->produced += v[6];
	s->dropped += v[7];
	s->skewed += v[8];
	s->sample = MAX(s->sample, (uint32_t)v[9]);
	s->cut |= v[10] & 1;
	s->grouped |= v[10] >> 1 & 1;
	if (tool[0])
		snprintf(s->tool, sizeof(s->tool), "%.*s", (int)sizeof(s->tool) - 1, tool);
	r->ended = true;
	return 0;
}

static int unpack(struct reader *r, const uint8_t *p, size_t stored, size_t n)
{
	if (n + TTMON_MTS_SLACK > r->cap) {
		/* An absurd length costs no more than the limit, and nothing is read there. */
		uint8_t *q = realloc(r->plain, n + TTMON_MTS_SLACK);

		if (!q)
			return -ENOMEM;
		r->plain = q;
		r->cap = n + TTMON_MTS_SLACK;
	}
	memset(r->plain + n, 0, TTMON_MTS_SLACK);
	if (stored == n) {
		memcpy(r->plain, p, n);
		return 0;
	}
	inflateReset(&r->z);
	r->z.next_in = (Bytef *)(uintptr_t)p;
	r->z.avail_in = (uInt)stored;
	r->z.next_out = r->plain;
	r->z.avail_out = (uInt)n;
	return inflate(&r->z, Z_FINISH) == Z_STREAM_END && r->z.total_out == n ? 0 : -EBADMSG;
}

/* A block whose CRC holds. -EBADMSG: what is in it makes no sense. */
static int take_block(struct reader *r, const uint8_t *p)
{
	uint32_t kind = ttmon_mts_get32(p + 4) & 0xffff, stored = ttmon_mts_get32(p + 8);
	uint32_t n = ttmon_mts_get32(p + 12), items = ttmon_mts_get32(p + 16);
	int err;

	if (!kind || kind >= TTMON_MTS_KIND_MAX)
		return 0;
	err = unpack(r, p + TTMON_MTS_BLOCK_HEAD, stored, n);
	if (err)
		return err;
	if (kind == TTMON_MTS_END)
		return read_end(r, n);
	if (kind != TTMON_MTS_RECORDS)
		return ttmon_mts_index_read(&r->index, kind, items, r->plain, n);
	err = ttmon_mts_chunk_start(&r->chunk, items, r->plain, n);
	if (err)
		return err;
	r->block = TTMON_MTS_BLOCK_HEAD + stored;
	r->records += items;
	r->stats->grouped |= !r->chunk.order;
	return 0;
}

/* How many of n bytes, more than 4, are before the next block's magic, or a header's. */
static size_t seek_block(const uint8_t *p, size_t n, size_t from, bool end)
{
	static const uint32_t magics[] = { TTMON_MTS_BLOCK, TTMON_MTS_MAGIC };
	const uint8_t *first = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(magics); i++) {
		uint8_t magic[4];
		const uint8_t *q;

		ttmon_mts_put32(magic, magics[i]);
		q = n > from ? memmem(p + from, (first ? (size_t)(first - p) : n) - from, magic, 4) : NULL;
		first = q ?: first;
	}
	if (first)
		return (size_t)(first - p);
	return end || n < 4 ? n : MAX(from, n - 3);
}

/* The header of a file behind another, whose indexes are its own. */
static bool is_head(const uint8_t *p, size_t n)
{
	return n >= TTMON_MTS_HEAD && ttmon_mts_get32(p) == TTMON_MTS_MAGIC &&
	       crc32(crc32(0, p, 12), p + 16, TTMON_MTS_TOOL) == ttmon_mts_get32(p + 12);
}

static void begin_anew(struct reader *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(r->index.map); i++)
		r->index.map[i].nr = 0;
	r->stats->cut |= !r->ended;
	r->headed = r->ended = r->lost = false;
	r->records = 0;
}

/* The header. 0: not all of it is there. */
static int64_t read_head(struct reader *r, const uint8_t *p, size_t n, char *why, size_t n_why)
{
	unsigned int version;

	if (n < TTMON_MTS_HEAD)
		return 0;
	version = p[4] | (unsigned int)p[5] << 8;
	if (crc32(crc32(0, p, 12), p + 16, TTMON_MTS_TOOL) != ttmon_mts_get32(p + 12)) {
		r->stats->malformed++;
	} else if (version != TTMON_MTS_VERSION) {
		snprintf(why, n_why, "a ttmon memory trace of version %u; this ttmon reads version %u", version,
			 TTMON_MTS_VERSION);
		return -EBADMSG;
	} else {
		snprintf(r->stats->tool, sizeof(r->stats->tool), "%.*s", TTMON_MTS_TOOL, (const char *)p + 16);
	}
	r->headed = true;
	return TTMON_MTS_HEAD;
}

/* One block, or what is between two. 0: more is needed, or there is a chunk to hand out first. */
static int64_t step(struct reader *r, const uint8_t *p, size_t n, bool end, char *why, size_t n_why)
{
	uint32_t stored, plain;
	size_t whole = 0;
	int err;

	if (!r->headed)
		return read_head(r, p, n, why, n_why);
	if (n >= 4 && ttmon_mts_get32(p) == TTMON_MTS_MAGIC) {
		if (n < TTMON_MTS_HEAD && !end)
			return 0;
		if (is_head(p, n)) {
			begin_anew(r);
			return read_head(r, p, n, why, n_why);
		}
	}
	if (r->ended && n < 4 && !end)
		return 0;
	if (r->ended) {
		if (!r->lost)
			r->stats->malformed++;
		r->lost = true;
		return (int64_t)n;
	}
	if (n >= 4 && ttmon_mts_get32(p) != TTMON_MTS_BLOCK) {
		if (!r->lost)
			r->stats->malformed++;
		r->lost = true;
		return (int64_t)seek_block(p, n, 1, end);
	}
	if (n >= TTMON_MTS_BLOCK_HEAD) {
		stored = ttmon_mts_get32(p + 8);
		plain = ttmon_mts_get32(p + 12);
		if (stored <= TTMON_MTS_MAX_STORED && plain <= TTMON_MTS_MAX_INFLATED && stored <= plain)
			whole = TTMON_MTS_BLOCK_HEAD + stored;
	} else {
		whole = TTMON_MTS_BLOCK_HEAD;
	}
	if (whole > n && !end)
		return 0;
	if (whole > n && seek_block(p, n, 4, true) == n) {
		r->stats->cut = true;
		r->ended = r->lost = true;
		return (int64_t)n;
	}
	if (whole && whole <= n &&
	    crc32(crc32(0, p, 20), p + TTMON_MTS_BLOCK_HEAD, (uInt)(whole - TTMON_MTS_BLOCK_HEAD)) ==
		    ttmon_mts_get32(p + 20)) {
		r->lost = false;
		err = take_block(r, p);
		if (!err)
			return r->block ? 0 : (int64_t)whole;
		if (err == -EBADMSG) {
			r->stats->malformed++;
			return (int64_t)whole;
		}
		snprintf(why, n_why,
			 err == -E2BIG ? "the trace has more sites or launches than can be read"
				       : "no memory for reading the trace");
		return err;
	}
	r->stats->malformed++;
	r->lost = true;
	return (int64_t)seek_block(p, n, 4, end);
}

static int64_t stream_parse(void *reader, const uint8_t *p, size_t n, bool end, struct ttmon_mt_batch *batch, char *why,
			    size_t n_why)
{
	struct reader *r = reader;
	size_t used = 0;

	while (batch->nr < TTMON_MT_BATCH) {
		int64_t k;

		if (r->block) {
			int err = ttmon_mts_chunk_next(&r->chunk, batch);

			if (err < 0 && err != -EBADMSG) {
				snprintf(why, n_why, "no memory for reading the trace");
				return err;
			}
			if (err < 0)
				r->stats->malformed++;
			if (err > 0)
				break;
			used += MIN(r->block, n - used);
			r->block = 0;
			continue;
		}
		if (used == n)
			break;
		k = step(r, p + used, n - used, end, why, n_why);
		if (k < 0)
			return k;
		if (!k && !r->block)
			break;
		used += (size_t)k;
	}
	/* The end of the source is not where END is. */
	if (end && !r->block && batch->nr < TTMON_MT_BATCH && !r->ended) {
		r->stats->cut = true;
		r->ended = r->lost = true;
		used = n;
	}
	return (int64_t)used;
}

const struct ttmon_mt_format ttmon_mt_stream = {
	.name = "ttmon",
	.detect = stream_detect,
	.open = stream_open,
	.parse = stream_parse,
	.free = stream_free,
};
