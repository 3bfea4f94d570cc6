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
	uint64_t max_end; /* upper bound of the ends of the block's ranges */
	uint64_t start[BLOCK];
	uint32_t len[BLOCK]; /* UINT32_MAX: so long or longer */
	uint32_t val[BLOCK];
};

static uint64_t key_at(const void *keys, size_t step, uint32_t i)
{
	return *(const uint64_t *)((const char *)keys + i * step);
}

/*
 * Returns how many of n keys, which are ascending and `step` bytes apart, are at most addr. from and
 * to are about the first and the last key. Addresses mostly have similar distances, so the search
 * begins where addr would be if all were the same, and doubles its steps from there until addr is
 * passed: it reads a line of memory or two, a binary search over all keys one for each of its steps.
 */
static inline uint32_t rank(const void *keys, size_t step, uint32_t n, uint64_t from, uint64_t to, uint64_t addr)
{
	uint32_t lo = 0, hi = n, at = 0, by = 1;

	if (addr >= to)
		at = n;
	else if (addr > from)
		at = (uint32_t)((double)(addr - from) / (double)(to - from) * n);
	/* Keys before lo are at most addr, those from hi on are more. */
	at = MIN(at, n);
	if (at < n && key_at(keys, step, at) <= addr) {
		for (lo = at + 1; lo + by <= n && key_at(keys, step, lo + by - 1) <= addr; by *= 2)
			lo += by;
		hi = MIN(n, lo + by - 1);
	} else {
		for (hi = at; hi >= by && key_at(keys, step, hi - by) > addr; by *= 2)
			hi -= by;
		lo = hi >= by ? hi - by + 1 : 0;
	}
	return TTMON_SEARCH(lo, hi, i, key_at(keys, step, i) <= addr);
}

/* Returns the index of the last block that begins at or before addr; -1 if none. */
static int64_t block_floor(const struct ttmon_ranges *r, uint64_t addr)
{
	uint32_t at = r->last, n;

	if (at < r->blocks && r->dir[at].first <= addr && (at + 1 == r->blocks || addr < r->dir[at + 1].first))
		return at;
	if (!r->blocks)
		return -1;
	n = rank(&r->dir->first, sizeof(*r->dir), r->blocks, r->dir->first, r->dir[r->blocks - 1].first, addr);
	if (n)
		((struct ttmon_ranges *)(uintptr_t)r)->last = n - 1;
	return (int64_t)n - 1;
}

/* Returns how many ranges of block `at` begin at or before addr. */
static uint32_t block_rank(const struct ttmon_ranges *r, int64_t at, uint64_t addr)
{
	const struct ttmon_ranges_dir *d = &r->dir[at];
	uint64_t to = at + 1 < r->blocks ? d[1].first : d->n ? d->b->start[d->n - 1] : 0;

	return rank(d->b->start, sizeof(d->b->start[0]), d->n, d->first, to, addr);
}

static int dir_insert(struct ttmon_ranges *r, uint32_t at, struct ttmon_ranges_block *b, uint32_t n)
{
	if (TTMON_GROW(r->dir, r->cap, r->blocks + 1, 4))
		return -ENOMEM;
	memmove(r->dir + at + 1, r->dir + at, (r->blocks - at) * sizeof(*r->dir));
	r->dir[at] = (struct ttmon_ranges_dir){ n ? b->start[0] : 0, b, n };
	r->blocks++;
	return 0;
}

static void dir_remove(struct ttmon_ranges *r, uint32_t at)
{
	free(r->dir[at].b);
	r->blocks--;
	memmove(r->dir + at, r->dir + at + 1, (r->blocks - at) * sizeof(*r->dir));
}

/* Moves n ranges from index `from` of a block to index `to` of a block, perhaps of the same one. */
static void move(struct ttmon_ranges_block *dst, uint32_t to, const struct ttmon_ranges_block *src, uint32_t from,
		 uint32_t n)
{
	memmove(dst->start + to, src->start + from, n * sizeof(src->start[0]));
	memmove(dst->len + to, src->len + from, n * sizeof(src->len[0]));
	memmove(dst->val + to, src->val + from, n * sizeof(src->val[0]));
}

/* Moves the ranges of block `at` from index `from` on into a new block after it. */
static int split_block(struct ttmon_ranges *r, uint32_t at, uint32_t from)
{
	struct ttmon_ranges_block *b = r->dir[at].b, *right;
	uint32_t n = r->dir[at].n - from;

	right = malloc(sizeof(*right));
	if (!right)
		return -ENOMEM;
	right->max_end = b->max_end;
	move(right, 0, b, from, n);
	if (dir_insert(r, at + 1, right, n) < 0) {
		free(right);
		return -ENOMEM;
	}
	r->dir[at].n = from;
	return 0;
}

static uint32_t length(uint64_t start, uint64_t end)
{
	return (uint32_t)MIN(end - start, (uint64_t)UINT32_MAX);
}

int ttmon_ranges_add(struct ttmon_ranges *r, uint64_t start, uint64_t end, uint32_t val)
{
	struct ttmon_ranges_block *b;
	struct ttmon_ranges_dir *d;
	int64_t at = block_floor(r, start);
	uint32_t i;
	int err;

	if (r->blocks == 0) {
		b = malloc(sizeof(*b));
		if (!b)
			return -ENOMEM;
		b->max_end = 0;
		if (dir_insert(r, 0, b, 0) < 0) {
			free(b);
			return -ENOMEM;
		}
	}
	at = MAX(at, 0);
	d = &r->dir[at];
	i = block_rank(r, at, start);
	if (i && d->b->start[i - 1] == start)
		return -EEXIST;
	if (d->n == BLOCK) {
		bool append = at + 1 == r->blocks && i == BLOCK;

		err = split_block(r, at, append ? BLOCK : BLOCK / 2);
		if (err)
			return err;
		d = &r->dir[at];
		if (i > d->n || append) {
			i -= d->n;
			d++;
		}
		if (append)
			d->b->max_end = 0;
	}
	b = d->b;
	move(b, i + 1, b, i, d->n - i);
	b->start[i] = start;
	b->len[i] = length(start, end);
	b->val[i] = val;
	b->max_end = MAX(b->max_end, end);
	d->n++;
	d->first = b->start[0];
	r->n++;
	r->max_len = MAX(r->max_len, end - start);
	return 0;
}

/* Joins block `at` to its left neighbour when both together are well below full. */
static void join(struct ttmon_ranges *r, uint32_t at)
{
	struct ttmon_ranges_dir *l, *d;

	if (at == 0 || at >= r->blocks)
		return;
	l = &r->dir[at - 1];
	d = &r->dir[at];
	if (l->n + d->n > BLOCK * 5 / 8)
		return;
	move(l->b, l->n, d->b, 0, d->n);
	l->n += d->n;
	l->b->max_end = MAX(l->b->max_end, d->b->max_end);
	dir_remove(r, at);
}

bool ttmon_ranges_del(struct ttmon_ranges *r, uint64_t start)
{
	int64_t at = block_floor(r, start);
	struct ttmon_ranges_dir *d;
	uint32_t i;

	if (at < 0)
		return false;
	d = &r->dir[at];
	i = block_rank(r, at, start);
	if (!i || d->b->start[i - 1] != start)
		return false;
	move(d->b, i - 1, d->b, i, d->n - i);
	d->n--;
	if (--r->n == 0)
		r->max_len = 0;
	if (d->n == 0) {
		dir_remove(r, at);
		if (r->blocks == 0) {
			free(r->dir);
			r->dir = NULL;
			r->cap = 0;
		}
		return true;
	}
	d->first = d->b->start[0];
	join(r, at + 1);
	join(r, at);
	return true;
}

void ttmon_ranges_set_end(struct ttmon_ranges *r, uint64_t start, uint64_t end)
{
	int64_t at = block_floor(r, start);
	uint32_t i = at < 0 ? 0 : block_rank(r, at, start);

	if (!i || r->dir[at].b->start[i - 1] != start)
		return;
	r->dir[at].b->len[i - 1] = length(start, end);
	r->dir[at].b->max_end = MAX(r->dir[at].b->max_end, end);
	r->max_len = MAX(r->max_len, end - start);
}

static bool at_pos(const struct ttmon_ranges *r, uint32_t block, uint32_t idx, struct ttmon_ranges_pos *pos)
{
	const struct ttmon_ranges_block *b = r->dir[block].b;
	uint32_t len = b->len[idx];

	*pos = (struct ttmon_ranges_pos){ .block = block,
					  .idx = idx,
					  .start = b->start[idx],
					  .end = len == UINT32_MAX ? UINT64_MAX : b->start[idx] + len,
					  .val = b->val[idx] };
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

	return at >= 0 && at_pos(r, at, block_rank(r, at, addr) - 1, pos);
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
		idx = r->dir[block].n;
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
	if (pos->idx + 1 < r->dir[pos->block].n)
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
