// SPDX-License-Identifier: GPL-2.0-only
/*
 * ranges.c: see ranges.h. Runs in the hot thread; knows only addresses and values.
 *
 * A full block is split in the middle. The last block is an exception: if something is added behind
 * its end, a new block follows it. Addresses mostly come in ascending order, and blocks filled that
 * way stay full. A block with few ranges is joined with a neighbour.
 */
#include "lib/base/search.h"
#include "lib/base/grow.h"
#include "lib/base/ranges.h"

#define BLOCK 128

struct ttmon_ranges_block {
	uint32_t n;
	uint64_t max_end; /* upper bound of the ends of the block's ranges */
	uint64_t start[BLOCK];
	uint32_t val[BLOCK];
};

/* Returns the index of the last block that begins at or before addr; -1 if none. */
static int64_t block_floor(const struct ttmon_ranges *r, uint64_t addr)
{
	uint32_t lo = TTMON_SEARCH((uint32_t)0, r->blocks, mid, r->dir[mid].first <= addr);
	return (int64_t)lo - 1;
}

/* Returns how many ranges of the block begin at or before addr. */
static uint32_t block_rank(const struct ttmon_ranges_block *b, uint64_t addr)
{
	uint32_t lo = TTMON_SEARCH((uint32_t)0, b->n, mid, b->start[mid] <= addr);
	return lo;
}

static int dir_insert(struct ttmon_ranges *r, uint32_t at, struct ttmon_ranges_block *b)
{
	if (TTMON_GROW(r->dir, r->cap, r->blocks + 1, 4))
		return -ENOMEM;
	memmove(r->dir + at + 1, r->dir + at, (r->blocks - at) * sizeof(*r->dir));
	r->dir[at] = (struct ttmon_ranges_dir){ b->n ? b->start[0] : 0, b };
	r->blocks++;
	return 0;
}

static void dir_remove(struct ttmon_ranges *r, uint32_t at)
{
	free(r->dir[at].b);
	r->blocks--;
	memmove(r->dir + at, r->dir + at + 1, (r->blocks - at) * sizeof(*r->dir));
}

/* Moves the ranges of block `at` from index `from` on into a new block after it. */
static int split_block(struct ttmon_ranges *r, uint32_t at, uint32_t from)
{
	struct ttmon_ranges_block *b = r->dir[at].b, *right;

	right = malloc(sizeof(*right));
	if (!right)
		return -ENOMEM;
	right->n = b->n - from;
	right->max_end = b->max_end;
	memcpy(right->start, b->start + from, right->n * sizeof(b->start[0]));
	memcpy(right->val, b->val + from, right->n * sizeof(b->val[0]));
	if (dir_insert(r, at + 1, right) < 0) {
		free(right);
		return -ENOMEM;
	}
	b->n = from;
	return 0;
}

int ttmon_ranges_add(struct ttmon_ranges *r, uint64_t start, uint64_t end, uint32_t val)
{
	struct ttmon_ranges_block *b;
	int64_t at = block_floor(r, start);
	uint32_t i;
	int err;

	if (r->blocks == 0) {
		b = malloc(sizeof(*b));
		if (!b)
			return -ENOMEM;
		b->n = 0;
		b->max_end = 0;
		if (dir_insert(r, 0, b) < 0) {
			free(b);
			return -ENOMEM;
		}
	}
	at = MAX(at, 0);
	b = r->dir[at].b;
	i = block_rank(b, start);
	if (i && b->start[i - 1] == start)
		return -EEXIST;
	if (b->n == BLOCK) {
		bool append = at + 1 == r->blocks && i == BLOCK;

		err = split_block(r, at, append ? BLOCK : BLOCK / 2);
		if (err)
			return err;
		if (i > r->dir[at].b->n || append) {
			i -= r->dir[at].b->n;
			at++;
		}
		b = r->dir[at].b;
		if (append)
			b->max_end = 0;
	}
	memmove(b->start + i + 1, b->start + i, (b->n - i) * sizeof(b->start[0]));
	memmove(b->val + i + 1, b->val + i, (b->n - i) * sizeof(b->val[0]));
	b->start[i] = start;
	b->val[i] = val;
	b->n++;
	b->max_end = MAX(b->max_end, end);
	r->dir[at].first = b->start[0];
	r->n++;
	r->max_len = MAX(r->max_len, end - start);
	return 0;
}

/* Joins block `at` to its left neighbour when both together are well below full. */
static void join(struct ttmon_ranges *r, uint32_t at)
{
	struct ttmon_ranges_block *l, *b;

	if (at == 0 || at >= r->blocks)
		return;
	l = r->dir[at - 1].b;
	b = r->dir[at].b;
	if (l->n + b->n > BLOCK * 5 / 8)
		return;
	memcpy(l->start + l->n, b->start, b->n * sizeof(b->start[0]));
	memcpy(l->val + l->n, b->val, b->n * sizeof(b->val[0]));
	l->n += b->n;
	l->max_end = MAX(l->max_end, b->max_end);
	dir_remove(r, at);
}

bool ttmon_ranges_del(struct ttmon_ranges *r, uint64_t start)
{
	int64_t at = block_floor(r, start);
	struct ttmon_ranges_block *b;
	uint32_t i;

	if (at < 0)
		return false;
	b = r->dir[at].b;
	i = block_rank(b, start);
	if (!i || b->start[i - 1] != start)
		return false;
	memmove(b->start + i - 1, b->start + i, (b->n - i) * sizeof(b->start[0]));
	memmove(b->val + i - 1, b->val + i, (b->n - i) * sizeof(b->val[0]));
	b->n--;
	if (--r->n == 0)
		r->max_len = 0;
	if (b->n == 0) {
		dir_remove(r, at);
		if (r->blocks == 0) {
			free(r->dir);
			r->dir = NULL;
			r->cap = 0;
		}
		return true;
	}
	r->dir[at].first = b->start[0];
	join(r, at + 1);
	join(r, at);
	return true;
}

void ttmon_ranges_set_end(struct ttmon_ranges *r, uint64_t start, uint64_t end)
{
	int64_t at = block_floor(r, start);

	if (at < 0)
		return;
	r->dir[at].b->max_end = MAX(r->dir[at].b->max_end, end);
	r->max_len = MAX(r->max_len, end - start);
}

static bool at_pos(const struct ttmon_ranges *r, uint32_t block, uint32_t idx, struct ttmon_ranges_pos *pos)
{
	const struct ttmon_ranges_block *b = r->dir[block].b;

	*pos = (struct ttmon_ranges_pos){ block, idx, b->start[idx], b->val[idx] };
	return true;
}

bool ttmon_ranges_get(const struct ttmon_ranges *r, uint64_t start, uint32_t *val)
{
	struct ttmon_ranges_pos pos;

	if (!ttmon_ranges_floor(r, start, &pos) || pos.start != start)
		return false;
	*val = pos.val;
	return true;
}

bool ttmon_ranges_floor(const struct ttmon_ranges *r, uint64_t addr, struct ttmon_ranges_pos *pos)
{
	int64_t at = block_floor(r, addr);

	return at >= 0 && at_pos(r, at, block_rank(r->dir[at].b, addr) - 1, pos);
}

bool ttmon_ranges_back(const struct ttmon_ranges *r, uint64_t addr, struct ttmon_ranges_pos *pos)
{
	uint32_t block = pos->block, idx = pos->idx;

	if (!r->overlap)
		return false;
	if (idx == 0) {
		/* Blocks whose ranges all end before addr are skipped. */
		do {
			if (block-- == 0)
				return false;
		} while (r->dir[block].b->max_end <= addr);
		idx = r->dir[block].b->n;
	}
	return at_pos(r, block, idx - 1, pos) && addr - pos->start < r->max_len;
}

bool ttmon_ranges_seek(const struct ttmon_ranges *r, uint64_t addr, struct ttmon_ranges_pos *pos)
{
	uint64_t from = addr;

	if (!r->blocks)
		return false;
	if (r->overlap)
		from = addr > r->max_len ? addr - r->max_len : 0;
	if (!ttmon_ranges_floor(r, from, pos))
		return at_pos(r, 0, 0, pos);
	return true;
}

bool ttmon_ranges_next(const struct ttmon_ranges *r, struct ttmon_ranges_pos *pos)
{
	if (pos->idx + 1 < r->dir[pos->block].b->n)
		return at_pos(r, pos->block, pos->idx + 1, pos);
	if (pos->block + 1 < r->blocks)
		return at_pos(r, pos->block + 1, 0, pos);
	return false;
}

void ttmon_ranges_fini(struct ttmon_ranges *r)
{
	for (uint32_t i = 0; i < r->blocks; i++)
		free(r->dir[i].b);
	free(r->dir);
	*r = (struct ttmon_ranges){ .overlap = r->overlap };
}
