// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream_recs.c: the chunks of memtrace/stream/stream.h, read: as many records at once as have the
 * same differences in all columns.
 */
#include "memtrace/read/stream_rd.h"
#include "lib/base/varint.h"
#include "lib/base/grow.h"

/* Of the record before this one, which is in the run or right behind it. */
static inline uint64_t before(const struct ttmon_mts_run *c, size_t at)
{
	return c->value + c->d * (at - c->from);
}

static bool next_run(struct ttmon_mts_run *c)
{
	uint64_t z, more, count = 1;
	uint8_t b;

	if (c->p >= c->end)
		return false;
	b = *c->p++;
	z = b >> 1 & 0x3f;
	if (b & 0x80) {
		c->p = ttmon_mts_get(c->p, &more);
		z |= more << 6;
	}
	if (b & 1) {
		c->p = ttmon_mts_get(c->p, &more);
		count = MIN(more, TTMON_MT_STREAM_CHUNK) + 2;
	}
	c->value = before(c, c->upto);
	c->from = c->upto;
	c->d = ttmon_unzigzag(z);
	c->upto += (uint32_t)count;
	return c->p <= c->end;
}

/*
 * The fields that change seldom, of the record that comes now. Out of range: its record is counted and
 * left out.
 */
static int check(struct ttmon_mts_chunk *r)
{
	struct ttmon_mt_rec *now = &r->now;
	uint64_t mask = before(&r->col[TTMON_MTS_MASK], r->at + 1), bits = before(&r->col[TTMON_MTS_BITS], r->at + 1);
	int64_t at;

	now->space = (uint8_t)bits;
	now->width = (uint8_t)(bits >> 8);
	now->flags = (uint8_t)(bits >> 16);
	now->mask = (uint32_t)mask;
	r->bits = (uint32_t)bits;
	r->ok = mask && mask <= UINT32_MAX && bits <= UINT32_MAX && now->space < TTMON_MT_SPACE_MAX && now->width &&
		now->width <= 64;
	if (!r->ok)
		return 0;
	at = ttmon_mts_index_site(r->index, before(&r->col[TTMON_MTS_SITE], r->at + 1), now->space, now->width);
	if (at >= 0) {
		now->site = (uint32_t)at;
		at = ttmon_mts_index_launch(r->index, before(&r->col[TTMON_MTS_LAUNCH], r->at + 1));
	}
	if (at == -E2BIG || at == -EBADMSG)
		r->ok = false;
	else if (at < 0)
		return (int)at;
	else
		now->launch = (uint32_t)at;
	return 0;
}

/* The addresses of a list. False: there are no more. */
static bool get_lanes(struct ttmon_mts_chunk *r, uint64_t base, uint64_t *addr)
{
	uint64_t scale = r->bits & TTMON_MTS_SCALED ? r->now.width : 1, z, a = base;
	uint32_t left = r->now.mask;
	const uint8_t *p = r->lanes;

	/* Each takes at least one byte, and what is behind the end is checked once for all. */
	if (r->lanes_end - p < __builtin_popcount(left) - 1)
		return false;
	addr[__builtin_ctz(left)] = a;
	for (left &= left - 1; left; left &= left - 1) {
		if (p >= r->lanes_end)
			return false;
		p = ttmon_mts_get(p, &z);
		a += ttmon_unzigzag(z) * scale;
		addr[__builtin_ctz(left)] = a;
	}
	r->lanes = p;
	return p <= r->lanes_end;
}

/* n records in which only what is added here changes. */
static void fill(struct ttmon_mts_chunk *r, struct ttmon_mt_rec *to, uint32_t n)
{
	const struct ttmon_mts_run *c = r->col;
	uint64_t base = before(&c[TTMON_MTS_BASE], r->at), stride = before(&c[TTMON_MTS_STRIDE], r->at), seq = r->seq;
	uint32_t x = (uint32_t)before(&c[TTMON_MTS_CTA_X], r->at), y = (uint32_t)before(&c[TTMON_MTS_CTA_Y], r->at),
		 z = (uint32_t)before(&c[TTMON_MTS_CTA_Z], r->at);
	uint32_t warp = (uint32_t)before(&c[TTMON_MTS_WARP], r->at), sm = (uint32_t)before(&c[TTMON_MTS_SM], r->at);
	const uint64_t d_base = c[TTMON_MTS_BASE].d, d_stride = c[TTMON_MTS_STRIDE].d;
	const uint32_t dx = (uint32_t)c[TTMON_MTS_CTA_X].d, dy = (uint32_t)c[TTMON_MTS_CTA_Y].d,
		       dz = (uint32_t)c[TTMON_MTS_CTA_Z].d;
	const uint32_t d_warp = (uint32_t)c[TTMON_MTS_WARP].d, d_sm = (uint32_t)c[TTMON_MTS_SM].d;
	const struct ttmon_mt_rec now = r->now;

	for (uint32_t i = 0; i < n; i++) {
		to[i] = (struct ttmon_mt_rec){
			.base = base += d_base,
			.stride = (int64_t)(stride += d_stride),
			.seq = seq++,
			.mask = now.mask,
			.site = now.site,
			.launch = now.launch,
			.cta = { x += dx, y += dy, z += dz },
			.warp = (uint16_t)(warp += d_warp),
			.sm = (uint16_t)(sm += d_sm),
			.space = now.space,
			.width = now.width,
			.flags = now.flags,
		};
	}
}

/*
 * Writes up to max records of the chunk to `to`, and their lists of addresses to addr. Returns how
 * many were written. Malformed records are counted and left out; in a chunk with the order of
 * arrival they stay, with mask 0, because each has a rank. -EBADMSG: a column ends too soon.
 */
static int64_t decode(struct ttmon_mts_chunk *r, struct ttmon_mt_rec *to, uint64_t (*addr)[TTMON_MT_LANES], size_t max)
{
	struct ttmon_mts_run *c = r->col;
	size_t nr = 0;
	int err;

	while (nr < max && r->at < r->items) {
		uint32_t at = (uint32_t)r->at, upto = at + (uint32_t)MIN(max - nr, r->items - at), n;

		for (int k = 0; k < TTMON_MTS_FIELDS; k++) {
			if (c[k].upto == at && !next_run(&c[k]))
				return -EBADMSG;
			upto = MIN(upto, c[k].upto);
		}
		n = upto - at;
		if (c[TTMON_MTS_SITE].d | c[TTMON_MTS_LAUNCH].d | c[TTMON_MTS_BITS].d | c[TTMON_MTS_MASK].d ||
		    r->fresh) {
			n = 1;
			r->fresh = false;
			err = check(r);
			if (err)
				return err;
		}
		if (r->ok)
			fill(r, to + nr, n);
		else
			r->stats->malformed += n;
		for (uint32_t i = 0; r->bits & TTMON_MTS_LIST && i < n; i++) {
			if (!r->now.mask || !get_lanes(r, before(&c[TTMON_MTS_BASE], at + i + 1), addr[nr + i]))
				return -EBADMSG;
			if (r->ok)
				to[nr + i].addr = addr[nr + i];
		}
		r->at += n;
		if (r->ok) {
			r->seq += n;
			nr += n;
		} else if (r->order) {
			for (uint32_t i = 0; i < n; i++)
				to[nr++].mask = 0;
		}
	}
	return (int64_t)nr;
}

static int keep_list(struct ttmon_mts_chunk *r, struct ttmon_mt_rec *rec)
{
	if (TTMON_GROW(r->lists, r->cap_lists, r->nr_lists + 1, 256u))
		return -ENOMEM;
	memcpy(r->lists[r->nr_lists], rec->addr, sizeof(*r->lists));
	rec->addr = (const uint64_t *)(uintptr_t)++r->nr_lists;
	return 0;
}

/* The whole chunk into r->recs, in its order of arrival. What does not come to be there has mask 0. */
static int decode_ordered(struct ttmon_mts_chunk *r, const uint8_t *ranks)
{
	struct ttmon_mts_run *seq = &r->col[TTMON_MTS_SEQ];
	uint16_t rank = 0;
	size_t done = 0;

	if (TTMON_GROW(r->recs, r->cap_recs, r->items, 1))
		return -ENOMEM;
	for (size_t i = 0; i < r->items; i++)
		r->recs[i].mask = 0;
	r->nr_lists = 0;
	while (done < r->items) {
		int64_t nr = decode(r, r->step, r->step_addr, TTMON_MTS_STEP);

		if (nr < 0)
			return (int)nr;
		for (int64_t i = 0; i < nr; i++, done++) {
			struct ttmon_mt_rec *rec = &r->step[i];
			int err = rec->mask && rec->addr ? keep_list(r, rec) : 0;

			if (err)
				return err;
			rank = (uint16_t)(rank + ranks[done] + ((unsigned int)ranks[r->items + done] << 8));
			if (rank >= r->items || r->recs[rank].mask)
				return -EBADMSG;
			r->recs[rank] = *rec;
		}
	}
	for (size_t i = 0; i < r->items; i++) {
		if (seq->upto == i && !next_run(seq))
			return -EBADMSG;
		r->recs[i].seq = before(seq, i + 1);
	}
	r->at = 0;
	return 0;
}

int ttmon_mts_chunk_start(struct ttmon_mts_chunk *r, uint32_t items, const uint8_t *p, size_t n)
{
	struct ttmon_mts_cursor c = { p, p + n, false };
	uint64_t flags = ttmon_mts_number(&c), bytes[TTMON_MTS_COLS];
	const uint8_t *at[TTMON_MTS_COLS + 1];

	for (int k = 0; k < TTMON_MTS_COLS; k++)
		bytes[k] = ttmon_mts_number(&c);
	if (c.bad || c.p > c.end || !items || items > TTMON_MT_STREAM_CHUNK || flags & ~(uint64_t)TTMON_MTS_ORDER)
		return -EBADMSG;
	at[0] = c.p;
	for (int k = 0; k < TTMON_MTS_COLS; k++) {
		if (bytes[k] > (uint64_t)(c.end - at[k]))
			return -EBADMSG;
		at[k + 1] = at[k] + bytes[k];
	}
	for (int k = 0; k < TTMON_MTS_RUNS; k++)
		r->col[k] = (struct ttmon_mts_run){ .p = at[k], .end = at[k + 1] };
	r->lanes = at[TTMON_MTS_LANES];
	r->lanes_end = at[TTMON_MTS_LANES + 1];
	r->order = flags & TTMON_MTS_ORDER;
	r->fresh = true;
	r->items = items;
	r->at = 0;
	if (!r->order)
		return 0;
	if (bytes[TTMON_MTS_RANK] != 2ULL * items)
		return -EBADMSG;
	return decode_ordered(r, at[TTMON_MTS_RANK]);
}

int ttmon_mts_chunk_next(struct ttmon_mts_chunk *r, struct ttmon_mt_batch *b)
{
	int64_t n;

	if (!r->order) {
		n = decode(r, b->recs + b->nr, b->addr + b->nr, TTMON_MT_BATCH - b->nr);
		if (n < 0)
			return (int)n;
		b->nr += (size_t)n;
	}
	for (; r->order && r->at < r->items && b->nr < TTMON_MT_BATCH; r->at++) {
		struct ttmon_mt_rec *to = &b->recs[b->nr];

		if (!r->recs[r->at].mask)
			continue;
		*to = r->recs[r->at];
		if (to->addr) {
			memcpy(b->addr[b->nr], r->lists[(uintptr_t)to->addr - 1], sizeof(b->addr[0]));
			to->addr = b->addr[b->nr];
		}
		b->nr++;
	}
	return r->at < r->items;
}

void ttmon_mts_chunk_fini(struct ttmon_mts_chunk *r)
{
	free(r->recs);
	free(r->lists);
}
