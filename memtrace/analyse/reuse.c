// SPDX-License-Identifier: GPL-2.0-only
/*
 * memtrace/analyse/reuse.c: reuse distances.
 *
 * A clock ticks with each touch of a followed sector. A hash table has the time of the last touch of
 * each; a bitmap has a bit for each of these times, and a Fenwick tree the sums of its words: a
 * distance is the number of bits after a time. When the clock has reached the end of the bitmap, times
 * are replaced by their ranks, which costs as much as there are sectors, after at least as many
 * touches.
 *
 * Sectors are followed whose hash is below a threshold. When more than max are, the threshold halves,
 * and those at or above it are forgotten (SHARDS with a fixed size: C. Waldspurger and others, FAST
 * 2015); from there on a touch counts for two, a distance is twice what is counted. Their number is
 * between half of max and max, so that results are those of at least that many. The touches in all are
 * known, and those that the scaled histogram has too few or too many are put right at its shortest
 * distances, as the paper has it: a sector that is touched all the time is followed or is not.
 */
#include "memtrace/analyse/an.h"
#include "lib/base/util.h"

#define MIN_MAX	    64u
#define FIRST	    1024u  /* sectors that a table begins with room for */
#define MAX_SAMPLED 16384u /* its tables stay in a cache of 1 MiB */
#define MAX_EXACT   (16u << 20)
#define HISTS	    48

struct entry {
	uint64_t sector;
	uint32_t time; /* + 1; 0: free */
};

struct ttmon_mt_reuse_set {
	struct entry *table; /* 2 * cap, open addressing by the hash */
	uint64_t *bits;	     /* 4 * cap of them: times that are some sector's last */
	uint32_t *tree;	     /* sums of words of bits, Fenwick */
	uint32_t nr, cap, max, now;
	uint32_t shift; /* followed: the highest so many bits of the hash are 0, */
	uint64_t limit; /* which is: it is not above this */
	bool exact;
	uint64_t touches, cold, lost, hist[HISTS]; /* cold, hist: scaled */
};

/* All but the last step of the hash: its highest 32 bits are there. */
static uint64_t half_hash(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15;
	return (x ^ x >> 32) * 0xd6e8feb86659fd93;
}

static uint64_t hash(uint64_t x)
{
	x = half_hash(x);
	return x ^ x >> 32;
}

static bool followed(const struct ttmon_mt_reuse_set *r, uint64_t h)
{
	return h <= r->limit;
}

/* ---- times ---- */

static uint32_t words(const struct ttmon_mt_reuse_set *r)
{
	return 4 * r->cap / 64;
}

static void tree_add(struct ttmon_mt_reuse_set *r, uint32_t word, uint32_t n)
{
	for (uint32_t i = word + 1; i <= words(r); i += i & -i)
		r->tree[i] += n; /* n may be -1 */
}

/* Times before this one that are some sector's last. */
static uint32_t rank_of(const struct ttmon_mt_reuse_set *r, uint32_t time)
{
	uint32_t n = (uint32_t)__builtin_popcountll(r->bits[time / 64] & ((1ULL << time % 64) - 1));

	for (uint32_t i = time / 64; i; i &= i - 1)
		n += r->tree[i];
	return n;
}

static void time_set(struct ttmon_mt_reuse_set *r, uint32_t time)
{
	r->bits[time / 64] |= 1ULL << time % 64;
	tree_add(r, time / 64, 1);
}

static void time_clear(struct ttmon_mt_reuse_set *r, uint32_t time)
{
	r->bits[time / 64] &= ~(1ULL << time % 64);
	tree_add(r, time / 64, UINT32_MAX);
}

/* Times of all sectors become their ranks, 0 to nr - 1. */
static void compact(struct ttmon_mt_reuse_set *r)
{
	for (uint32_t i = 0; i < 2 * r->cap; i++)
		if (r->table[i].time)
			r->table[i].time = rank_of(r, r->table[i].time - 1) + 1;
	r->now = r->nr;
	memset(r->tree, 0, (words(r) + 1) * sizeof(*r->tree));
	for (uint32_t i = 0; i < words(r); i++) {
		uint32_t n = 64 * i >= r->nr ? 0 : MIN(r->nr - 64 * i, 64u), up = (i + 1) + ((i + 1) & -(i + 1));

		r->bits[i] = n == 64 ? UINT64_MAX : (1ULL << n) - 1;
		r->tree[i + 1] += n;
		if (up <= words(r))
			r->tree[up] += r->tree[i + 1];
	}
}

/* ---- sectors ---- */

static uint32_t home(const struct ttmon_mt_reuse_set *r, uint64_t sector)
{
	return (uint32_t)hash(sector) & (2 * r->cap - 1);
}

/* The sector's entry, or the free one where it would be. */
static struct entry *find(const struct ttmon_mt_reuse_set *r, uint64_t sector, uint64_t h)
{
	uint32_t mask = 2 * r->cap - 1, i = (uint32_t)h & mask;

	while (r->table[i].time && r->table[i].sector != sector)
		i = (i + 1) & mask;
	return &r->table[i];
}

static bool grow(struct ttmon_mt_reuse_set *r)
{
	uint32_t cap = r->cap ? 2 * r->cap : FIRST;
	struct ttmon_mt_reuse_set old = *r;

	r->cap = cap;
	r->table = calloc(2 * (size_t)cap, sizeof(*r->table));
	r->bits = calloc(words(r), sizeof(*r->bits));
	r->tree = calloc(words(r) + 1, sizeof(*r->tree));
	if (!r->table || !r->bits || !r->tree) {
		free(r->table);
		free(r->bits);
		free(r->tree);
		*r = old;
		return false;
	}
	for (uint32_t i = 0; i < 2 * old.cap; i++)
		if (old.table[i].time) {
			*find(r, old.table[i].sector, hash(old.table[i].sector)) = old.table[i];
			time_set(r, old.table[i].time - 1);
		}
	free(old.table);
	free(old.bits);
	free(old.tree);
	return true;
}

/*
 * Takes entry i out, and closes the gap: what is behind it moves up unless it would come before its
 * place.
 */
static void take_out(struct ttmon_mt_reuse_set *r, uint32_t i)
{
	uint32_t mask = 2 * r->cap - 1;

	time_clear(r, r->table[i].time - 1);
	r->nr--;
	for (uint32_t k = (i + 1) & mask; r->table[k].time; k = (k + 1) & mask) {
		if (((k - home(r, r->table[k].sector)) & mask) < ((k - i) & mask))
			continue;
		r->table[i] = r->table[k];
		i = k;
	}
	r->table[i].time = 0;
}

/* The threshold sinks until there is room. */
static void forget(struct ttmon_mt_reuse_set *r)
{
	uint32_t before = r->nr;

	while (r->nr >= r->max || r->nr >= r->cap) {
		r->limit = UINT64_MAX >> ++r->shift;
		for (uint32_t i = 0; i < 2 * r->cap; i++)
			while (r->table[i].time && !followed(r, hash(r->table[i].sector)))
				take_out(r, i);
	}
	if (r->exact)
		r->lost += before - r->nr;
}

int ttmon_mt_reuse_new(bool exact, uint32_t max, struct ttmon_mt_reuse_set **ret)
{
	struct ttmon_mt_reuse_set *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->exact = exact;
	r->limit = UINT64_MAX;
	r->max = max ? max : exact ? MAX_EXACT : MAX_SAMPLED;
	r->max = MIN(MAX(r->max, MIN_MAX), 1u << 28);
	if (!grow(r)) {
		free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

static void touch(struct ttmon_mt_reuse_set *r, uint64_t sector, uint64_t h)
{
	struct entry *e = find(r, sector, h);

	if (e->time) {
		uint32_t time = e->time - 1;
		uint64_t d = (uint64_t)(r->nr - rank_of(r, time) - 1) << r->shift;

		r->hist[d ? MIN(64 - __builtin_clzll(d), HISTS - 1) : 0] += 1ULL << r->shift;
		if (time + 1 == r->now) /* the last of all: it stays so */
			return;
		time_clear(r, time);
	} else {
		if (r->nr >= r->max || (r->nr >= r->cap && !grow(r)))
			forget(r);
		if (!followed(r, h))
			return;
		r->cold += 1ULL << r->shift;
		e = find(r, sector, h);
		e->sector = sector;
		r->nr++;
	}
	if (r->now == 64 * words(r)) {
		/* Not yet among the times, so not yet among the ranks. */
		e->time = 0;
		r->nr--;
		compact(r);
		r->nr++;
	}
	e->time = r->now++ + 1;
	time_set(r, e->time - 1);
}

static bool one(struct ttmon_mt_reuse_set *r, uint64_t sector)
{
	uint64_t h = hash(sector);

	if (!followed(r, h))
		return false;
	touch(r, sector, h);
	return true;
}

/* Is any of these followed? Mostly none of four is, which the highest bits of their hashes tell. */
static bool run(struct ttmon_mt_reuse_set *r, uint64_t sector, uint32_t n)
{
	bool any = false;

	for (; n >= 4; n -= 4, sector += 4) {
		uint64_t a = half_hash(sector), b = half_hash(sector + 1), c = half_hash(sector + 2),
			 d = half_hash(sector + 3);

		a = MIN(a, b);
		c = MIN(c, d);
		if (MIN(a, c) > (r->limit | UINT32_MAX))
			continue;
		for (unsigned int i = 0; i < 4; i++)
			any |= one(r, sector + i);
	}
	for (; n; n--, sector++)
		any |= one(r, sector);
	return any;
}

void ttmon_mt_reuse_touch(struct ttmon_mt_reuse_set *r, uint64_t sector, uint32_t n)
{
	r->touches += n;
	run(r, sector, n);
}

uint64_t ttmon_mt_reuse_runs(struct ttmon_mt_reuse_set *r, const struct ttmon_mt_run *runs, unsigned int nr)
{
	uint64_t any = 0, touches = 0;

	for (unsigned int i = 0; i < nr; i++) {
		touches += runs[i].n;
		if (runs[i].n != 1)
			any |= (uint64_t)run(r, runs[i].sector, runs[i].n) << i;
		else if (half_hash(runs[i].sector) <= (r->limit | UINT32_MAX))
			any |= (uint64_t)one(r, runs[i].sector) << i;
	}
	r->touches += touches;
	return any;
}

void ttmon_mt_reuse_pass(struct ttmon_mt_reuse_set *r, uint32_t n)
{
	r->touches += n;
}

void ttmon_mt_reuse_get(const struct ttmon_mt_reuse_set *r, struct ttmon_mt_reuse_result *ret)
{
	uint64_t sum = r->cold;

	*ret = (struct ttmon_mt_reuse_result){
		.exact = !r->shift, .touches = r->touches, .cold = r->cold, .lost = r->lost
	};
	ret->rate = 1 / (double)(1ULL << r->shift);
	memcpy(ret->hist, r->hist, sizeof(ret->hist));
	for (unsigned int k = 0; k < HISTS; k++)
		sum += ret->hist[k];
	if (sum < r->touches)
		ret->hist[0] += r->touches - sum;
	for (unsigned int k = 0; k < HISTS && sum > r->touches; k++) {
		uint64_t less = MIN(ret->hist[k], sum - r->touches);

		ret->hist[k] -= less;
		sum -= less;
	}
	ret->cold = MIN(ret->cold, ret->touches);
}

double ttmon_mt_reuse_miss(const struct ttmon_mt_reuse_result *r, uint64_t bytes)
{
	uint64_t sectors = bytes / TTMON_MT_SECTOR;
	double sum = (double)r->cold;

	if (!r->touches)
		return 0;
	for (unsigned int k = 0; k < HISTS; k++) {
		uint64_t low = k ? 1ULL << (k - 1) : 0, end = 1ULL << k;

		if (low >= sectors)
			sum += (double)r->hist[k];
		else if (end > sectors) /* as if they were spread evenly */
			sum += (double)r->hist[k] * (double)(end - sectors) / (double)(end - low);
	}
	return MIN(sum / (double)r->touches, 1.0);
}

void ttmon_mt_reuse_free(struct ttmon_mt_reuse_set *r)
{
	if (!r)
		return;
	free(r->table);
	free(r->bits);
	free(r->tree);
	free(r);
}
