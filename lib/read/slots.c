// SPDX-License-Identifier: GPL-2.0-only
/*
 * lib/read/slots.c: the encoder of the slot file (format: slots.h, tables: slots_int.h). It works in
 * memory only: no file, no clock, one thread at a time.
 *
 * The process of a row is looked up in a small hash table that may forget entries: a process that is
 * not found is written again, which costs the bytes of its name. So a traced program cannot make it
 * slow or large.
 */
#include "lib/read/slots.h"
#include "lib/base/hash.h"
#include "lib/base/varint.h"
#include "lib/base/grow.h"

#include <zlib.h>

#include "lib/read/slots_int.h"

#define BLOCK_BYTES (64u << 10)
#define BLOCK_SLOTS 1000u
#define BLOCK_PROCS (16u << 10)
/* the most bytes of a process: tgid, class, start, length of comm, comm */
#define MAX_PROC (5u + 1u + 10u + 1u + 16u)
#define HASH	 8192u /* a power of two */
#define PROBES	 8u

struct column {
	uint8_t *p;
	size_t len, cap;
};

struct ttmon_slots_enc {
	struct column cols[TTMON_SLOTS_COLS];
	struct ttmon_slot_row *procs; /* processes of the block: the last row of each */
	size_t nr_procs, cap_procs;
	uint32_t hash[HASH]; /* index into procs + 1 */
	struct ttmon_slots_item last;
	uint32_t slots;
	uint8_t *block;
	size_t cap_block;
};

static uint8_t *put_u32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		*p++ = (uint8_t)(v >> (8 * i));
	return p;
}

static uint8_t *put_u64(uint8_t *p, uint64_t v)
{
	return put_u32(put_u32(p, (uint32_t)v), (uint32_t)(v >> 32));
}

/* The caller has reserved room with reserve_all(). */
static void col_put(struct column *c, uint64_t v)
{
	c->len = (size_t)(ttmon_varint_put(c->p + c->len, v) - c->p);
}

static int reserve(struct column *c, size_t n)
{
	return TTMON_GROW(c->p, c->cap, c->len + n, 4096);
}

/* Reserves all that a slot of n rows can need, so that no slot is written in part. */
static int reserve_all(struct ttmon_slots_enc *e, size_t n)
{
	int err = reserve(&e->cols[TTMON_SLOTS_COL_SLOTS], (1 + TTMON_SLOTS_SLOT_FIELDS) * TTMON_VARINT_MAX);

	for (size_t i = TTMON_SLOTS_COL_SLOTS + 1; i < TTMON_SLOTS_COLS && !err; i++)
		err = reserve(&e->cols[i], n * (i == TTMON_SLOTS_COL_PROCS ? MAX_PROC : TTMON_VARINT_MAX));
	return err ? err : TTMON_GROW(e->procs, e->cap_procs, e->nr_procs + n, 64);
}

static bool same_process(const struct ttmon_slot_row *a, const struct ttmon_slot_row *b)
{
	return a->tgid == b->tgid && a->cls == b->cls && a->start_ns == b->start_ns &&
	       strncmp(a->comm, b->comm, sizeof(a->comm) - 1) == 0;
}

static uint32_t hash_of(const struct ttmon_slot_row *row)
{
	uint64_t h = (row->start_ns ^ ((uint64_t)row->tgid << 32 | row->cls)) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(ttmon_fnv(h, row->comm, strnlen(row->comm, sizeof(row->comm) - 1)) >> 32);
}

static void define(struct ttmon_slots_enc *e, const struct ttmon_slot_row *row)
{
	struct column *c = &e->cols[TTMON_SLOTS_COL_PROCS];
	struct ttmon_slot_row *p = &e->procs[e->nr_procs++];
	size_t len = strnlen(row->comm, sizeof(row->comm) - 1);

	*p = (struct ttmon_slot_row){ .tgid = row->tgid, .cls = row->cls, .start_ns = row->start_ns };
	memcpy(p->comm, row->comm, len);
	col_put(c, row->tgid);
	col_put(c, row->cls);
	col_put(c, row->start_ns);
	col_put(c, len);
	memcpy(c->p + c->len, row->comm, len);
	c->len += len;
}

static size_t find(struct ttmon_slots_enc *e, const struct ttmon_slot_row *row)
{
	uint32_t h = hash_of(row), free_at = h % HASH;

	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t at = (h + i) % HASH, index = e->hash[at];

		if (!index) {
			free_at = at;
			break;
		}
		if (same_process(&e->procs[index - 1], row))
			return index - 1;
	}
	define(e, row);
	e->hash[free_at] = (uint32_t)e->nr_procs;
	return e->nr_procs - 1;
}

static void add_row(struct ttmon_slots_enc *e, const struct ttmon_slot_row *row, struct ttmon_slots_sums *sums)
{
	size_t index = find(e, row);
	struct ttmon_slot_row *last = &e->procs[index];
	uint64_t mask = 0;

	col_put(&e->cols[TTMON_SLOTS_COL_INDEX], index);
	for (size_t i = 0; i < TTMON_SLOTS_ROW_FIELDS; i++) {
		const struct ttmon_slots_field *f = &ttmon_slots_row_fields[i];
		uint64_t diff = ttmon_slots_get(row, f) - ttmon_slots_predict_row(f, last, row, sums);

		if (!diff)
			continue;
		mask |= 1ull << i;
		col_put(&e->cols[TTMON_SLOTS_COL_FIELDS + i],
			ttmon_slots_is_plain(f, row->cls) ? diff : ttmon_zigzag(diff));
	}
	col_put(&e->cols[TTMON_SLOTS_COL_MASKS], mask);
	ttmon_slots_sum(sums, row);
	*last = *row;
}

int ttmon_slots_enc_add(struct ttmon_slots_enc *e, const struct ttmon_slots_item *item)
{
	struct ttmon_slots_sums sums = { .left = item->slot.cpus * NSEC_PER_MS - item->slot.missing_ns };
	uint64_t diffs[TTMON_SLOTS_SLOT_FIELDS], mask = 0;
	struct column *c = &e->cols[TTMON_SLOTS_COL_SLOTS];
	int err;

	if (item->slot.nr_rows > TTMON_SLOTS_MAX_ROWS)
		return -E2BIG;
	err = reserve_all(e, item->slot.nr_rows);
	if (err)
		return err;
	for (size_t i = 0; i < item->slot.nr_rows; i++)
		add_row(e, &item->rows[i], &sums);
	for (size_t i = 0; i < TTMON_SLOTS_SLOT_FIELDS; i++) {
		const struct ttmon_slots_field *f = &ttmon_slots_slot_fields[i];

		diffs[i] = ttmon_slots_get(item, f) - ttmon_slots_predict_slot(f, &e->last, &sums);
		mask |= (uint64_t) !!diffs[i] << i;
	}
	col_put(c, mask);
	for (size_t i = 0; i < TTMON_SLOTS_SLOT_FIELDS; i++)
		if (diffs[i])
			col_put(c, ttmon_slots_is_plain(&ttmon_slots_slot_fields[i], 0) ? diffs[i]
											: ttmon_zigzag(diffs[i]));
	e->last = *item;
	e->slots++;
	return 0;
}

bool ttmon_slots_enc_full(const struct ttmon_slots_enc *e)
{
	size_t len = 0;

	for (size_t i = 0; i < TTMON_SLOTS_COLS; i++)
		len += e->cols[i].len;
	return len >= BLOCK_BYTES || e->slots >= BLOCK_SLOTS || e->nr_procs >= BLOCK_PROCS;
}

uint32_t ttmon_slots_enc_slots(const struct ttmon_slots_enc *e)
{
	return e->slots;
}

static void reset(struct ttmon_slots_enc *e)
{
	for (size_t i = 0; i < TTMON_SLOTS_COLS; i++)
		e->cols[i].len = 0;
	memset(e->hash, 0, sizeof(e->hash));
	memset(&e->last, 0, sizeof(e->last));
	e->nr_procs = 0;
	e->slots = 0;
}

/* p: where the head of the block goes; len bytes of payload follow it. */
static void put_block_head(uint8_t *p, uint32_t type, size_t len, uint32_t slots)
{
	uLong crc;

	put_u32(put_u32(put_u32(p, type), (uint32_t)len), slots);
	crc = crc32(0, p, TTMON_SLOTS_BLOCK_HEAD - 4);
	put_u32(p + TTMON_SLOTS_BLOCK_HEAD - 4, (uint32_t)crc32(crc, p + TTMON_SLOTS_BLOCK_HEAD, (uInt)len));
}

int ttmon_slots_enc_block(struct ttmon_slots_enc *e, const uint8_t **ret, size_t *len)
{
	size_t max = TTMON_SLOTS_BLOCK_HEAD + TTMON_SLOTS_COLS * TTMON_VARINT_MAX;
	uint8_t *p;

	if (!e->slots) {
		*len = 0;
		return 0;
	}
	for (size_t i = 0; i < TTMON_SLOTS_COLS; i++)
		max += e->cols[i].len;
	if (TTMON_GROW(e->block, e->cap_block, max, 4096))
		return -ENOMEM;
	p = e->block + TTMON_SLOTS_BLOCK_HEAD;
	for (size_t i = 0; i < TTMON_SLOTS_COLS; i++)
		p = ttmon_varint_put(p, e->cols[i].len);
	for (size_t i = 0; i < TTMON_SLOTS_COLS; i++) {
		if (e->cols[i].len)
			memcpy(p, e->cols[i].p, e->cols[i].len);
		p += e->cols[i].len;
	}
	*len = (size_t)(p - e->block);
	put_block_head(e->block, TTMON_SLOTS_DATA, *len - TTMON_SLOTS_BLOCK_HEAD, e->slots);
	*ret = e->block;
	reset(e);
	return 0;
}

size_t ttmon_slots_enc_end(const struct ttmon_slots_end *end, uint8_t ret[TTMON_SLOTS_END_MAX])
{
	uint8_t *p = ret + TTMON_SLOTS_BLOCK_HEAD;

	p = ttmon_varint_put(ttmon_varint_put(ttmon_varint_put(p, end->slots), end->rows), end->dropped);
	put_block_head(ret, TTMON_SLOTS_END, (size_t)(p - ret) - TTMON_SLOTS_BLOCK_HEAD, 0);
	return (size_t)(p - ret);
}

void ttmon_slots_enc_head(const struct ttmon_slots_info *info, uint8_t ret[TTMON_SLOTS_HEAD])
{
	uint8_t *p = ret;

	memset(ret, 0, TTMON_SLOTS_HEAD);
	memcpy(p, TTMON_SLOTS_MAGIC, 8);
	p = put_u32(put_u32(p + 8, TTMON_SLOTS_VERSION), TTMON_SLOTS_HEAD);
	p = put_u64(put_u64(p, info->start_ns), info->real_ns);
	p = put_u32(put_u32(p, info->nr_cpus), 0);
	memcpy(p, info->hostname, strnlen(info->hostname, sizeof(info->hostname) - 1));
	p += sizeof(info->hostname);
	memcpy(p, info->ttmond, strnlen(info->ttmond, sizeof(info->ttmond) - 1));
	p += sizeof(info->ttmond);
	put_u32(p, (uint32_t)crc32(0, ret, (uInt)(p - ret)));
}

int ttmon_slots_enc_new(struct ttmon_slots_enc **ret)
{
	struct ttmon_slots_enc *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	*ret = e;
	return 0;
}

void ttmon_slots_enc_free(struct ttmon_slots_enc *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < TTMON_SLOTS_COLS; i++)
		free(e->cols[i].p);
	free(e->procs);
	free(e->block);
	free(e);
}
