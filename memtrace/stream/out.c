// SPDX-License-Identifier: GPL-2.0-only
/*
 * out.c: memtrace/stream/stream.h, written. A block is made whole in memory and goes out in one write,
 * which is taken back when it fails.
 */
#include "memtrace/stream/stream.h"
#include "memtrace/stream/format.h"
#include "lib/base/varint.h"
#include "lib/base/grow.h"
#include "lib/base/util.h"
#include "version.h"

#include <zlib.h>

#define CHUNK	   TTMON_MT_STREAM_CHUNK
#define MAX_LANES  (CHUNK * 8u) /* addresses of lists in a chunk */
#define PROBE	   (16u << 10)	/* bytes that are tried before many are compressed */
#define DICT_BLOCK (192u << 10) /* bytes of a dictionary block, after which another begins */
#define MAX_ENTRY  (17u << 10)	/* of one entry: four texts, some thirty numbers */
#define MAX_COL \
	(CHUNK * 11u) /* of a column: a run that is used once takes 10 bytes at most, others less for each record */
#define KEY_BITS 48   /* the other 16 of a key are where the record is */

_Static_assert(DICT_BLOCK + MAX_ENTRY < TTMON_MTS_MAX_STORED, "a dictionary block always fits");
_Static_assert((TTMON_MTS_RUNS + 1) * MAX_COL + MAX_LANES * 10 < TTMON_MTS_MAX_INFLATED,
	       "and so does a chunk, inflated");

struct run {
	uint8_t *p;
	uint64_t last, d;
	uint32_t n;
};

/* Of what a block is made: the bytes up to end. */
struct part {
	size_t end;
	bool as_is; /* not worth compressing */
};

struct ttmon_mt_out {
	int fd, err, level;
	bool order;
	uint64_t max, bytes;
	uint64_t written; /* records in whole blocks */
	uint64_t records, inferred;
	z_stream z;
	bool z_ready;
	/* What is written of each part of the dictionary: a checksum for each entry. */
	struct {
		uint32_t *sums;
		size_t nr, cap;
	} done[TTMON_MTS_DICT_MAX];
	struct ttmon_mt_rec *recs; /* a chunk; addr: its active lanes alone, in lanes */
	uint64_t *lanes;
	size_t nr, nr_lanes;
	size_t last;	  /* bytes of the last block */
	size_t max_lanes; /* what fitted into a block of late */
	uint64_t *keys, *spare;
	uint8_t *col, *plain, *stored;
};

int ttmon_mt_out_new(int fd, const struct ttmon_mt_out_opts *opts, struct ttmon_mt_out **ret)
{
	struct ttmon_mt_out *out = calloc(1, sizeof(*out));

	if (!out)
		return -ENOMEM;
	out->fd = fd;
	out->order = opts && opts->order;
	out->max = opts ? opts->max : 0;
	out->level = opts && opts->level ? opts->level : 6;
	out->max_lanes = MAX_LANES;
	out->recs = malloc(CHUNK * sizeof(*out->recs));
	out->lanes = malloc(MAX_LANES * sizeof(*out->lanes));
	out->keys = malloc(CHUNK * sizeof(*out->keys));
	out->spare = malloc(CHUNK * sizeof(*out->spare));
	out->col = malloc((size_t)TTMON_MTS_RUNS * MAX_COL);
	out->plain = malloc(TTMON_MTS_MAX_INFLATED);
	out->stored = malloc(TTMON_MTS_BLOCK_HEAD + TTMON_MTS_MAX_STORED);
	if (out->recs && out->lanes && out->keys && out->spare && out->col && out->plain && out->stored)
		out->z_ready = deflateInit(&out->z, out->level) == Z_OK;
	if (!out->z_ready) {
		ttmon_mt_out_free(out);
		return -ENOMEM;
	}
	*ret = out;
	return 0;
}

void ttmon_mt_out_free(struct ttmon_mt_out *out)
{
	if (!out)
		return;
	if (out->z_ready)
		deflateEnd(&out->z);
	for (int i = 0; i < TTMON_MTS_DICT_MAX; i++)
		free(out->done[i].sums);
	free(out->recs);
	free(out->lanes);
	free(out->keys);
	free(out->spare);
	free(out->col);
	free(out->plain);
	free(out->stored);
	free(out);
}

uint64_t ttmon_mt_out_bytes(const struct ttmon_mt_out *out)
{
	return out->bytes;
}

uint64_t ttmon_mt_out_records(const struct ttmon_mt_out *out)
{
	return out->written;
}

/* ---- blocks ---- */

static int write_all(struct ttmon_mt_out *out, const uint8_t *p, size_t n)
{
	size_t done = 0;

	if (out->max && n > out->max - MIN(out->max, out->bytes))
		return -EFBIG;
	while (done < n) {
		ssize_t k = write(out->fd, p + done, n - done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0) {
			int err = k < 0 ? -errno : -EIO;
			off_t at = done ? lseek(out->fd, 0, SEEK_CUR) : -1;

			/*
			 * A reader copes with half a block; a pipe cannot be cut, and a file that cannot stays as it
			 * is.
			 */
			if (at >= (off_t)done && !ftruncate(out->fd, at - (off_t)done))
				(void)lseek(out->fd, at - (off_t)done, SEEK_SET);
			return err;
		}
		done += (size_t)k;
	}
	out->bytes += n;
	return 0;
}

static int write_head(struct ttmon_mt_out *out)
{
	uint8_t head[TTMON_MTS_HEAD] = { 0 };
	static const char tool[] = "ttmon " TTMON_VERSION;

	ttmon_mts_put32(head, TTMON_MTS_MAGIC);
	head[4] = TTMON_MTS_VERSION;
	memcpy(head + 16, tool, MIN(sizeof(tool) - 1, TTMON_MTS_TOOL));
	ttmon_mts_put32(head + 12, (uint32_t)crc32(crc32(0, head, 12), head + 16, TTMON_MTS_TOOL));
	return write_all(out, head, sizeof(head));
}

/*
 * Random numbers, as the addresses of a real gather are: zlib spends most of all time on them, here
 * and when they are read, for a few percent.
 */
static bool hardly_shrinks(const uint8_t *p, size_t n)
{
	uint8_t buf[PROBE];
	uLongf room = sizeof(buf) - sizeof(buf) / 10;

	return n >= 2 * PROBE && compress2(buf, &room, p + (n - PROBE) / 2, PROBE, 1) == Z_BUF_ERROR;
}

/*
 * The parts of out->plain, nr of them, into the n_body bytes of body: how many they are then; 0: no
 * fewer.
 */
static size_t shrink(struct ttmon_mt_out *out, const struct part *parts, size_t nr, uint8_t *body, size_t n_body)
{
	size_t from = 0;
	int err = Z_OK;

	deflateReset(&out->z);
	out->z.next_out = body;
	out->z.avail_out = (uInt)n_body;
	for (size_t i = 0; i < nr && err == Z_OK; i++) {
		out->z.avail_in = 0;
		err = deflateParams(&out->z, parts[i].as_is ? Z_NO_COMPRESSION : out->level, Z_DEFAULT_STRATEGY);
		if (err != Z_OK)
			break;
		out->z.next_in = out->plain + from;
		out->z.avail_in = (uInt)(parts[i].end - from);
		from = parts[i].end;
		if (out->z.avail_in || i == nr - 1)
			err = deflate(&out->z, i == nr - 1 ? Z_FINISH : Z_NO_FLUSH);
		if (out->z.avail_in)
			break;
	}
	return err == Z_STREAM_END ? (size_t)out->z.total_out : 0;
}

/* What is in out->plain as a block. -EMSGSIZE: it does not fit into one. */
static int write_block(struct ttmon_mt_out *out, unsigned int kind, size_t items, const struct part *parts, size_t nr)
{
	uint8_t *head = out->stored, *body = head + TTMON_MTS_BLOCK_HEAD;
	size_t n = parts[nr - 1].end, stored = shrink(out, parts, nr, body, MIN(n - 1, TTMON_MTS_MAX_STORED));
	int err;

	if (!stored) {
		if (n > TTMON_MTS_MAX_STORED)
			return -EMSGSIZE;
		memcpy(body, out->plain, n);
		stored = n;
	}
	out->last = stored;
	ttmon_mts_put32(head, TTMON_MTS_BLOCK);
	ttmon_mts_put32(head + 4, kind);
	ttmon_mts_put32(head + 8, (uint32_t)stored);
	ttmon_mts_put32(head + 12, (uint32_t)n);
	ttmon_mts_put32(head + 16, (uint32_t)items);
	ttmon_mts_put32(head + 20, (uint32_t)crc32(crc32(0, head, 20), body, (uInt)stored));
	if (!out->bytes) {
		err = write_head(out);
		if (err)
			return err;
	}
	return write_all(out, head, TTMON_MTS_BLOCK_HEAD + stored);
}

/* ---- the dictionary ---- */

static uint8_t *put_text(uint8_t *p, const char *text)
{
	size_t n = text ? strnlen(text, TTMON_MT_MAX_TEXT) : 0;

	p = ttmon_varint_put(p, n);
	if (n)
		memcpy(p, text, n);
	return p + n;
}

static uint8_t *put_numbers(uint8_t *p, const uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p = ttmon_varint_put(p, v[i]);
	return p;
}
#define PUT(p, ...) \
	put_numbers(p, (const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static uint8_t *put_agg(uint8_t *p, const struct ttmon_mt_agg *a)
{
	p = PUT(p, a->site, a->launch);
	p = put_numbers(p, &a->requests, TTMON_MTS_AGG_SUMS);
	p = PUT(p, a->shapes, a->max_same, a->max_waves);
	return put_numbers(p, &a->unique, TTMON_MTS_AGG_SHAPES);
}

static uint8_t *put_entry(uint8_t *p, unsigned int kind, const void *entry)
{
	const struct ttmon_mt_site *s = entry;
	const struct ttmon_mt_launch *l = entry;
	const struct ttmon_mt_touch *t = entry;
	const struct ttmon_mt_kernel *k = entry;

	switch (kind) {
	case TTMON_MTS_SITES:
		p = put_text(put_text(put_text(put_text(p, s->kernel), s->opcode), s->file), s->module);
		return PUT(p, s->pc, s->line, s->text_line, s->space, s->kind, s->width, s->flags);
	case TTMON_MTS_LAUNCHES:
		p = put_text(p, l->kernel);
		return PUT(p, l->id, l->ctx, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
			   l->regs, l->shmem, l->stream, l->time_ns, l->shared_base, l->local_base, l->pid, l->flags);
	case TTMON_MTS_AGGS:
		return put_agg(p, entry);
	case TTMON_MTS_TOUCHES:
		return PUT(p, t->addr, t->size, t->reads, t->writes, t->launch, t->pid);
	default:
		p = put_text(put_text(put_text(p, k->name), k->module), k->why);
		return PUT(p, k->launches, k->recorded, k->sites, k->left_out);
	}
}

/*
 * The entries of one kind that are new, and with changed those that are not what they were when they
 * were written.
 */
static int write_part(struct ttmon_mt_out *out, unsigned int kind, const void *entries, size_t nr, size_t size,
		      bool changed)
{
	unsigned int block = kind == TTMON_MTS_AGGS ? TTMON_MTS_COUNTS : kind;
	__typeof__(out->done[0]) *done = &out->done[kind];
	uint8_t *p = out->plain;
	size_t items = 0;
	int err = 0;

	if (TTMON_GROW(done->sums, done->cap, nr, 1))
		return -ENOMEM;
	for (size_t i = changed ? 0 : done->nr; i < nr && !err; i++) {
		const char *entry = (const char *)entries + i * size;
		uint32_t sum = (uint32_t)crc32(0, (const uint8_t *)entry, (uInt)size);
		bool ours = i >= done->nr || done->sums[i] != sum;

		if (items && (!ours || p - out->plain >= DICT_BLOCK)) {
			err = write_block(out, block, items, &(struct part){ (size_t)(p - out->plain), false }, 1);
			items = 0;
		}
		if (!ours)
			continue;
		if (!items)
			p = ttmon_varint_put(out->plain, i);
		p = put_entry(p, kind, entry);
		items++;
		done->sums[i] = sum;
	}
	if (items && !err)
		err = write_block(out, block, items, &(struct part){ (size_t)(p - out->plain), false }, 1);
	done->nr = MAX(done->nr, nr);
	return err;
}

static int write_dict(struct ttmon_mt_out *out, const struct ttmon_mt_dict *d, bool changed)
{
	int err = write_part(out, TTMON_MTS_SITES, d->sites, d->nr_sites, sizeof(*d->sites), changed);

	err = err ?: write_part(out, TTMON_MTS_LAUNCHES, d->launches, d->nr_launches, sizeof(*d->launches), changed);
	if (!changed)
		return err;
	err = err ?: write_part(out, TTMON_MTS_AGGS, d->aggs, d->nr_aggs, sizeof(*d->aggs), changed);
	err = err ?: write_part(out, TTMON_MTS_TOUCHES, d->touches, d->nr_touches, sizeof(*d->touches), changed);
	return err ?: write_part(out, TTMON_MTS_KERNELS, d->kernels, d->nr_kernels, sizeof(*d->kernels), changed);
}

/* ---- records ---- */

static inline void field(const struct ttmon_mt_rec *r, uint32_t v[6])
{
	v[0] = r->site;
	v[1] = r->launch;
	v[2] = r->cta[2];
	v[3] = r->cta[1];
	v[4] = r->cta[0];
	v[5] = r->warp;
}

/* Sorts out->keys, n of them, by their upper bits of that number: stable, least digit first. */
static void sort_keys(struct ttmon_mt_out *out, size_t n, unsigned int bits)
{
	enum { DIGIT = 11, MASK = (1 << DIGIT) - 1 };
	uint32_t at[1 << DIGIT];

	for (unsigned int shift = 16; shift < 16 + bits; shift += DIGIT) {
		uint32_t sum = 0;

		memset(at, 0, sizeof(at));
		for (size_t i = 0; i < n; i++)
			at[out->keys[i] >> shift & MASK]++;
		for (size_t i = 0; i <= MASK; i++) {
			uint32_t here = at[i];

			at[i] = sum;
			sum += here;
		}
		for (size_t i = 0; i < n; i++)
			out->spare[at[out->keys[i] >> shift & MASK]++] = out->keys[i];
		uint64_t *sorted = out->spare;
		out->spare = out->keys;
		out->keys = sorted;
	}
}

static void sort_records(struct ttmon_mt_out *out, const struct ttmon_mt_rec *recs, size_t n)
{
	uint32_t lo[6], hi[6], v[6];
	unsigned int bits[6], cut[6], all = 0;

	field(&recs[0], lo);
	field(&recs[0], hi);
	for (size_t i = 1; i < n; i++) {
		field(&recs[i], v);
		for (int k = 0; k < 6; k++) {
			lo[k] = MIN(lo[k], v[k]);
			hi[k] = MAX(hi[k], v[k]);
		}
	}
	/* The first ones in full; the order within a launch is a matter of size alone. */
	for (int k = 0; k < 6; k++) {
		unsigned int need = hi[k] > lo[k] ? 32 - (unsigned int)__builtin_clz(hi[k] - lo[k]) : 0;

		bits[k] = MIN(need, KEY_BITS - all);
		cut[k] = need - bits[k];
		all += bits[k];
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t key = 0;

		field(&recs[i], v);
		for (int k = 0; k < 6; k++)
			key = key << bits[k] | (uint64_t)(v[k] - lo[k]) >> cut[k];
		out->keys[i] = key << 16 | i;
	}
	sort_keys(out, n, all);
}

static void run_end(struct run *c)
{
	uint64_t z = ttmon_zigzag(c->d);

	if (!c->n)
		return;
	*c->p++ = (uint8_t)((c->n > 1) | (z & 0x3f) << 1 | (z >> 6 ? 0x80 : 0));
	if (z >> 6)
		c->p = ttmon_varint_put(c->p, z >> 6);
	if (c->n > 1)
		c->p = ttmon_varint_put(c->p, c->n - 2);
}

static inline void run_add(struct run *c, uint64_t v)
{
	uint64_t d = v - c->last;

	c->last = v;
	if (d == c->d && c->n) {
		c->n++;
		return;
	}
	run_end(c);
	c->d = d;
	c->n = 1;
}

/* The differences of a list; whether they are divided. */
static bool put_lanes(const struct ttmon_mt_rec *r, uint8_t **p)
{
	unsigned int lanes = (unsigned int)__builtin_popcount(r->mask), shift = 0;
	uint64_t any = 0;

	if (r->width && !(r->width & (r->width - 1))) {
		for (unsigned int i = 1; i < lanes; i++)
			any |= r->addr[i] - r->addr[i - 1];
		shift = any & (r->width - 1u) ? 0 : (unsigned int)__builtin_ctz(r->width);
	}
	for (unsigned int i = 1; i < lanes; i++)
		*p = ttmon_varint_put(*p, ttmon_zigzag((uint64_t)((int64_t)(r->addr[i] - r->addr[i - 1]) >> shift)));
	return shift;
}

static void add_record(struct run *c, const struct ttmon_mt_rec *r, uint8_t **lanes)
{
	uint32_t bits = r->space | (uint32_t)r->width << 8 | (uint32_t)r->flags << 16;

	if (r->addr)
		bits |= TTMON_MTS_LIST | (put_lanes(r, lanes) ? TTMON_MTS_SCALED : 0);
	run_add(&c[TTMON_MTS_SITE], r->site);
	run_add(&c[TTMON_MTS_LAUNCH], r->launch);
	run_add(&c[TTMON_MTS_BITS], bits);
	run_add(&c[TTMON_MTS_MASK], r->mask);
	run_add(&c[TTMON_MTS_CTA_X], r->cta[0]);
	run_add(&c[TTMON_MTS_CTA_Y], r->cta[1]);
	run_add(&c[TTMON_MTS_CTA_Z], r->cta[2]);
	run_add(&c[TTMON_MTS_WARP], r->warp);
	run_add(&c[TTMON_MTS_SM], r->sm);
	run_add(&c[TTMON_MTS_BASE], r->base);
	run_add(&c[TTMON_MTS_STRIDE], (uint64_t)r->stride);
}

/* Puts what is there of column into its place in out->plain; p: where the next one goes. */
static uint8_t *put_column(uint8_t *p, const uint8_t *column, const uint8_t *end)
{
	size_t n = (size_t)(end - column);

	memcpy(p, column, n);
	return p + n;
}

static int write_records(struct ttmon_mt_out *out, const struct ttmon_mt_rec *recs, size_t n)
{
	struct run c[TTMON_MTS_RUNS] = { 0 };
	uint8_t *lanes_at = out->plain + TTMON_MTS_MAX_INFLATED - (size_t)MAX_LANES * 10, *lanes = lanes_at,
		*p = out->plain;
	struct part parts[4];
	uint16_t before = 0;
	int err;

	sort_records(out, recs, n);
	for (int k = 0; k < TTMON_MTS_RUNS; k++)
		c[k].p = out->col + (size_t)k * MAX_COL;
	for (size_t i = 0; i < n; i++) {
		__builtin_prefetch(&recs[out->keys[MIN(i + 12, n - 1)] & 0xffff]);
		add_record(c, &recs[out->keys[i] & 0xffff], &lanes);
	}
	for (size_t i = 0; out->order && i < n; i++)
		run_add(&c[TTMON_MTS_SEQ], recs[i].seq);
	p = ttmon_varint_put(p, out->order ? TTMON_MTS_ORDER : 0);
	for (int k = 0; k < TTMON_MTS_RUNS; k++) {
		run_end(&c[k]);
		p = ttmon_varint_put(p, (uint64_t)(c[k].p - (out->col + (size_t)k * MAX_COL)));
	}
	p = ttmon_varint_put(p, out->order ? 2 * n : 0);
	p = ttmon_varint_put(p, (uint64_t)(lanes - lanes_at));
	for (int k = 0; k < TTMON_MTS_RUNS; k++)
		p = put_column(p, out->col + (size_t)k * MAX_COL, c[k].p);
	parts[0] = (struct part){ (size_t)(p - out->plain), false };
	for (size_t i = 0; out->order && i < n; i++) {
		uint16_t rank = (uint16_t)out->keys[i], d = (uint16_t)(rank - before);

		p[i] = (uint8_t)d;
		p[n + i] = (uint8_t)(d >> 8);
		before = rank;
	}
	parts[1] = (struct part){ parts[0].end + (out->order ? n : 0), out->order && hardly_shrinks(p, n) };
	parts[2] = (struct part){ parts[1].end + (out->order ? n : 0), false };
	parts[3] = (struct part){ parts[2].end + (size_t)(lanes - lanes_at),
				  hardly_shrinks(lanes_at, (size_t)(lanes - lanes_at)) };
	memmove(out->plain + parts[2].end, lanes_at, (size_t)(lanes - lanes_at));
	err = write_block(out, TTMON_MTS_RECORDS, n, parts, ARRAY_SIZE(parts));
	if (!err)
		out->written += n;
	if (err != -EMSGSIZE) {
		/* Where there is much room left, more in a block compress better. */
		if (out->last < TTMON_MTS_MAX_STORED / 3)
			out->max_lanes = MIN(out->max_lanes * 2, MAX_LANES);
		return err;
	}
	out->max_lanes = MAX(out->max_lanes / 2, MAX_LANES / 16);
	/* Records that hardly compress: in two blocks, and so on. One always fits. */
	err = write_records(out, recs, n / 2);
	return err ?: write_records(out, recs + n / 2, n - n / 2);
}

static int write_chunk(struct ttmon_mt_out *out, const struct ttmon_mt_dict *dict, bool changed)
{
	int err = write_dict(out, dict, changed);

	if (!err && out->nr)
		err = write_records(out, out->recs, out->nr);
	out->nr = out->nr_lanes = 0;
	return err;
}

int ttmon_mt_out_put(struct ttmon_mt_out *out, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *recs,
		     size_t n)
{
	for (size_t i = 0; i < n && !out->err; i++) {
		struct ttmon_mt_rec *r = &out->recs[out->nr];

		*r = recs[i];
		if (r->addr) {
			uint64_t *to = out->lanes + out->nr_lanes;

			for (uint32_t left = r->mask; left; left &= left - 1)
				out->lanes[out->nr_lanes++] = r->addr[__builtin_ctz(left)];
			r->addr = to;
		}
		out->records++;
		out->inferred += !!(r->flags & TTMON_MT_INFERRED);
		if (++out->nr == CHUNK || out->nr_lanes > out->max_lanes - TTMON_MT_LANES)
			out->err = write_chunk(out, dict, false);
	}
	return out->err;
}

int ttmon_mt_out_flush(struct ttmon_mt_out *out, const struct ttmon_mt_dict *dict)
{
	if (!out->err)
		out->err = write_chunk(out, dict, true);
	return out->err;
}

int ttmon_mt_out_end(struct ttmon_mt_out *out, const struct ttmon_mt_dict *dict, const struct ttmon_mt_stats *stats)
{
	uint8_t *p;

	if (ttmon_mt_out_flush(out, dict))
		return out->err;
	p = PUT(out->plain, out->records, out->inferred, stats->foreign, stats->malformed, stats->unknown_op,
		stats->no_launch, stats->produced, stats->dropped, stats->skewed, stats->sample,
		stats->cut | stats->grouped << 1);
	p = put_text(p, stats->tool);
	out->err = write_block(out, TTMON_MTS_END, 1, &(struct part){ (size_t)(p - out->plain), false }, 1);
	return out->err;
}
