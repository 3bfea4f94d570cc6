// SPDX-License-Identifier: GPL-2.0-only
/*
 * memtrace/sectors.c: a set of sectors. Pieces of 64 KiB in the order they came, each with a bit for its 2048 sectors, and a hash table of them that grows
 * with them: of a touch anywhere, only the word of bits is not in a cache. At the first piece that does not fit, HyperLogLog registers get all that is there,
 * and from then on what is new; pieces that are in the table stay exact, so that only sectors that are not known are hashed.
 */
#include "memtrace/an.h"
#include "util/util.h"

#define FIRST	 2u /* pieces */
#define PIECE	 11 /* log2 of sectors in a piece */
#define WORDS	 32
#define PAGES	 8 /* of 4 KiB that a piece counts for in the limit: it takes the memory of as many */
#define HLL_BITS 14
#define HLL_SIZE (1u << HLL_BITS) /* standard error 1.04 / sqrt(HLL_SIZE) = 0.8 % */

struct piece {
	uint64_t bits[WORDS];
};

struct slot {
	uint64_t nr;
	uint32_t index; /* in pieces, + 1; 0: free */
};

struct ttmon_mt_sectors {
	struct piece *pieces;
	uint64_t *nrs;		     /* of pieces: sector >> PIECE */
	struct slot *slots;	     /* 2 * cap of them, a power of two */
	uint8_t *hll;		     /* NULL: all are in pieces */
	uint64_t count;		     /* of those in pieces */
	uint32_t nr, cap, max, last; /* last: the piece that was touched last */
	bool full;		     /* some are not in pieces */
};

static uint64_t hash(uint64_t x)
{
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
	return x ^ x >> 32;
}

static unsigned int popcount(uint64_t x)
{
	x -= x >> 1 & 0x5555555555555555;
	x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
	return (unsigned int)(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 >> 56);
}

static uint32_t home(const struct ttmon_mt_sectors *s, uint64_t nr)
{
	return (uint32_t)(nr * 0x9e3779b97f4a7c15 >> 32) & (2 * s->cap - 1);
}

static void slot_put(struct ttmon_mt_sectors *s, uint32_t index)
{
	uint32_t mask = 2 * s->cap - 1, i = home(s, s->nrs[index]);

	while (s->slots[i].index)
		i = (i + 1) & mask;
	s->slots[i] = (struct slot){ s->nrs[index], index + 1 };
}

/* Index of the piece, or UINT32_MAX. */
static uint32_t piece_find(const struct ttmon_mt_sectors *s, uint64_t nr)
{
	uint32_t mask = 2 * s->cap - 1;

	if (!s->cap)
		return UINT32_MAX;
	for (uint32_t i = home(s, nr); s->slots[i].index; i = (i + 1) & mask)
		if (s->slots[i].nr == nr)
			return s->slots[i].index - 1;
	return UINT32_MAX;
}

static bool grow(struct ttmon_mt_sectors *s)
{
	uint32_t cap = s->cap ? 2 * s->cap : FIRST;
	_cleanup_free_ struct slot *slots = calloc(2 * (size_t)cap, sizeof(*slots));
	struct piece *pieces = realloc(s->pieces, cap * sizeof(*pieces));
	uint64_t *nrs = realloc(s->nrs, cap * sizeof(*nrs));

	if (pieces)
		s->pieces = pieces;
	if (nrs)
		s->nrs = nrs;
	if (!slots || !pieces || !nrs)
		return false;
	free(s->slots);
	s->slots = TAKE_PTR(slots);
	s->cap = cap;
	for (uint32_t i = 0; i < s->nr; i++)
		slot_put(s, i);
	return true;
}

static void hll_put(uint8_t *hll, uint64_t sector)
{
	uint64_t h = hash(sector + 0x9e3779b97f4a7c15);
	unsigned int rank = (unsigned int)__builtin_clzll((h << HLL_BITS) | 1) + 1;
	uint8_t *r = &hll[h >> (64 - HLL_BITS)];

	if (*r < rank)
		*r = (uint8_t)rank;
}

static void hll_bits(uint8_t *hll, uint64_t first, uint64_t bits)
{
	for (; bits; bits &= bits - 1)
		hll_put(hll, first + (uint64_t)__builtin_ctzll(bits));
}

static void hll_pieces(uint8_t *hll, const struct ttmon_mt_sectors *s)
{
	for (uint32_t i = 0; i < s->nr; i++)
		for (unsigned int k = 0; k < WORDS; k++)
			hll_bits(hll, (s->nrs[i] << PIECE) + 64 * k, s->pieces[i].bits[k]);
}

/* O. Ertl's improved estimator: no bias over the whole range, and no tables (arXiv 1702.01284, algorithm 6; ranks never reach the last register value). */
static uint64_t hll_count(const uint8_t *hll)
{
	uint32_t hist[65] = { 0 };
	double z = 0, x, y = 1, sigma, before;

	for (uint32_t i = 0; i < HLL_SIZE; i++)
		hist[hll[i]]++;
	if (hist[0] == HLL_SIZE)
		return 0;
	for (unsigned int k = 64; k; k--)
		z = 0.5 * (z + hist[k]);
	x = sigma = (double)hist[0] / HLL_SIZE;
	do {
		x *= x;
		before = sigma;
		sigma += x * y;
		y += y;
	} while (sigma > before);
	return (uint64_t)(0.72134752044448170368 * HLL_SIZE * HLL_SIZE / (z + HLL_SIZE * sigma) + 0.5);
}

int ttmon_mt_sectors_new(uint32_t max_pages, struct ttmon_mt_sectors **ret)
{
	struct ttmon_mt_sectors *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->max = MAX(max_pages / PAGES, 1);
	*ret = s;
	return 0;
}

/* Index of the piece, made if it fits; UINT32_MAX: it does not. */
static uint32_t piece_get(struct ttmon_mt_sectors *s, uint64_t nr)
{
	uint32_t i;

	if (s->last < s->nr && s->nrs[s->last] == nr)
		return s->last;
	i = piece_find(s, nr);
	if (i == UINT32_MAX) {
		if (s->full)
			return i;
		if (s->nr >= s->max || (s->nr == s->cap && !grow(s))) {
			s->full = true;
			s->hll = calloc(1, HLL_SIZE);
			if (s->hll)
				hll_pieces(s->hll, s);
			return UINT32_MAX;
		}
		i = s->nr++;
		s->nrs[i] = nr;
		memset(&s->pieces[i], 0, sizeof(s->pieces[i]));
		slot_put(s, i);
	}
	s->last = i;
	return i;
}

static void set_bits(struct ttmon_mt_sectors *s, uint32_t index, unsigned int word, uint64_t bits)
{
	uint64_t *to = &s->pieces[index].bits[word], more = bits & ~*to;

	if (!more)
		return;
	*to |= more;
	s->count += popcount(more);
	if (s->hll)
		hll_bits(s->hll, (s->nrs[index] << PIECE) + 64 * word, more);
}

void ttmon_mt_sectors_fetch(const struct ttmon_mt_sectors *s, uint64_t sector)
{
	uint64_t nr = sector >> PIECE;
	uint32_t i = s->last < s->nr && s->nrs[s->last] == nr ? s->last : piece_find(s, nr);

	if (i != UINT32_MAX)
		__builtin_prefetch(&s->pieces[i].bits[sector / 64 % WORDS], 1);
}

void ttmon_mt_sectors_add(struct ttmon_mt_sectors *s, uint64_t sector, uint32_t n)
{
	while (n) {
		unsigned int at = sector % 64;
		uint32_t part = MIN(n, 64 - at), i = piece_get(s, sector >> PIECE);
		uint64_t bits = (part == 64 ? UINT64_MAX : (1ULL << part) - 1) << at;

		if (i != UINT32_MAX)
			set_bits(s, i, sector / 64 % WORDS, bits);
		else if (s->hll)
			hll_bits(s->hll, sector - at, bits);
		sector += part;
		n -= part;
	}
}

void ttmon_mt_sectors_runs(struct ttmon_mt_sectors *s, const struct ttmon_mt_run *runs, unsigned int nr)
{
	/* All words are asked for before the first is waited for. */
	for (unsigned int i = 0; i < nr; i++)
		ttmon_mt_sectors_fetch(s, runs[i].sector);
	for (unsigned int i = 0; i < nr; i++)
		ttmon_mt_sectors_add(s, runs[i].sector, runs[i].n);
}

uint64_t ttmon_mt_sectors_count(const struct ttmon_mt_sectors *s, bool *estimate)
{
	uint64_t n = s->hll ? hll_count(s->hll) : 0;

	*estimate = s->full;
	return MAX(n, s->count);
}

/* Registers of all of s: its own, or made in buf. */
static const uint8_t *hll_of(const struct ttmon_mt_sectors *s, uint8_t *buf)
{
	if (s->hll)
		return s->hll;
	hll_pieces(buf, s);
	return buf;
}

uint64_t ttmon_mt_sectors_both(const struct ttmon_mt_sectors *a, const struct ttmon_mt_sectors *b, bool *estimate)
{
	uint64_t n = 0, na, nb, either;
	bool guess;

	*estimate = a->full || b->full;
	for (uint32_t i = 0; i < a->nr; i++) {
		uint32_t k = piece_find(b, a->nrs[i]);

		for (unsigned int w = 0; k != UINT32_MAX && w < WORDS; w++)
			n += popcount(a->pieces[i].bits[w] & b->pieces[k].bits[w]);
	}
	if (*estimate) { /* both = a + b - either; at least what is certain */
		_cleanup_free_ uint8_t *buf = calloc(3, HLL_SIZE);
		const uint8_t *ha, *hb;

		if (!buf)
			return n;
		ha = hll_of(a, buf);
		hb = hll_of(b, buf + HLL_SIZE);
		for (uint32_t i = 0; i < HLL_SIZE; i++)
			buf[2 * HLL_SIZE + i] = MAX(ha[i], hb[i]);
		na = ttmon_mt_sectors_count(a, &guess);
		nb = ttmon_mt_sectors_count(b, &guess);
		either = hll_count(buf + 2 * HLL_SIZE);
		if (na + nb > either)
			n = MAX(n, na + nb - either);
		n = MIN(n, MIN(na, nb));
	}
	return n;
}

void ttmon_mt_sectors_clear(struct ttmon_mt_sectors *s)
{
	/* As many small launches as there may be must not each clear the table of the largest: few are taken out one by one. */
	if (s->nr < s->cap / 8) {
		uint32_t mask = 2 * s->cap - 1;

		for (uint32_t i = 0; i < s->nr; i++) {
			uint32_t k = home(s, s->nrs[i]);

			while (s->slots[k].index != i + 1) /* it is there, behind places that were just freed */
				k = (k + 1) & mask;
			s->slots[k].index = 0;
		}
	} else if (s->cap) {
		memset(s->slots, 0, 2 * (size_t)s->cap * sizeof(*s->slots));
	}
	free(s->hll);
	s->hll = NULL;
	s->full = false;
	s->nr = s->last = 0;
	s->count = 0;
}

void ttmon_mt_sectors_free(struct ttmon_mt_sectors *s)
{
	if (!s)
		return;
	free(s->pieces);
	free(s->nrs);
	free(s->slots);
	free(s->hll);
	free(s);
}
