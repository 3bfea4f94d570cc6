// SPDX-License-Identifier: GPL-2.0-only
/*
 * memtrace/analyse/sectors.c: a set of sectors. Pieces of 64 KiB in the order they came, each with a
 * bit for its 2048 sectors; where they are is kept by regions of 2 MiB, so that of a touch anywhere
 * little more than the word of bits is not in a cache. At the first piece that does not fit,
 * HyperLogLog registers get all that is there, and from then on what is new; pieces that are in the
 * table stay exact, so that only sectors that are not known are hashed.
 */
#include "memtrace/analyse/an.h"
#include "lib/base/util.h"

#define FIRST	 2u /* pieces, regions */
#define PIECE	 11 /* log2 of sectors in a piece */
#define WORDS	 32
#define REGION	 5 /* log2 of pieces in a region */
#define SLOTS	 4 /* for each region there is room for */
#define PAGES	 8 /* of 4 KiB that a piece counts for in the limit: it takes the memory of as many */
#define HLL_BITS 14
#define HLL_SIZE (1u << HLL_BITS) /* standard error 1.04 / sqrt(HLL_SIZE) = 0.8 % */

struct piece {
	uint64_t bits[WORDS];
};

struct region {
	uint32_t piece[1u << REGION]; /* + 1; 0: not there */
};

struct slot {
	uint64_t nr;	 /* sector >> (PIECE + REGION) */
	uint32_t region; /* + 1; 0: free */
};

struct ttmon_mt_sectors {
	struct piece *pieces;
	uint64_t *nrs; /* of pieces: sector >> PIECE */
	struct region *regions;
	struct slot *slots; /* SLOTS * cap_regions of them, a power of two */
	uint8_t *hll;	    /* NULL: all are in pieces */
	uint64_t count;	    /* of those in pieces */
	uint32_t nr, cap, max;
	uint32_t nr_regions, cap_regions;
	unsigned int shift;
	bool full; /* some are not in pieces */
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

/*
 * The slot of a region, or the free one where it would be. The highest bits of this product spread
 * neighbours evenly: they seldom meet.
 */
static inline struct slot *slot_of(const struct ttmon_mt_sectors *s, uint64_t nr)
{
	uint32_t i = (uint32_t)(nr * 0x9e3779b97f4a7c15 >> s->shift);

	while (s->slots[i].region && s->slots[i].nr != nr)
		i = (i + 1) & (SLOTS * s->cap_regions - 1);
	return &s->slots[i];
}

/* Index of the piece, or UINT32_MAX. */
static inline uint32_t piece_find(const struct ttmon_mt_sectors *s, uint64_t nr)
{
	uint32_t region = s->cap_regions ? slot_of(s, nr >> REGION)->region : 0;

	return region ? s->regions[region - 1].piece[nr % (1u << REGION)] - 1 : UINT32_MAX;
}

static bool grow_regions(struct ttmon_mt_sectors *s)
{
	uint32_t before = s->cap_regions, cap = before ? 2 * before : FIRST;
	struct slot *slots = calloc(SLOTS * (size_t)cap, sizeof(*slots)), *old = s->slots;
	struct region *regions = slots ? realloc(s->regions, cap * sizeof(*regions)) : NULL;

	if (!regions) {
		free(slots);
		return false;
	}
	s->regions = regions;
	s->slots = slots;
	s->cap_regions = cap;
	s->shift = (unsigned int)__builtin_clz(SLOTS * cap) + 33;
	for (uint32_t i = 0; i < SLOTS * before; i++)
		if (old[i].region)
			*slot_of(s, old[i].nr) = old[i];
	free(old);
	return true;
}

static bool grow_pieces(struct ttmon_mt_sectors *s)
{
	uint32_t cap = s->cap ? 2 * s->cap : FIRST;
	struct piece *pieces = realloc(s->pieces, cap * sizeof(*pieces));
	uint64_t *nrs = realloc(s->nrs, cap * sizeof(*nrs));

	if (pieces)
		s->pieces = pieces;
	if (nrs)
		s->nrs = nrs;
	if (!nrs || !pieces)
		return false;
	s->cap = cap;
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

/*
 * O. Ertl's improved estimator: no bias over the whole range, and no tables (arXiv 1702.01284,
 * algorithm 6; ranks never reach the last register value).
 */
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

/* The region, made if there is memory; NULL: there is none. */
static struct region *region_get(struct ttmon_mt_sectors *s, uint64_t nr)
{
	struct slot *slot = s->cap_regions ? slot_of(s, nr) : NULL;

	if (slot && slot->region)
		return &s->regions[slot->region - 1];
	if (s->nr_regions == s->cap_regions) {
		if (!grow_regions(s))
			return NULL;
		slot = slot_of(s, nr);
	}
	memset(&s->regions[s->nr_regions], 0, sizeof(*s->regions));
	*slot = (struct slot){ .nr = nr, .region = ++s->nr_regions };
	return &s->regions[s->nr_regions - 1];
}

/* Index of a piece that is not there, if it fits; UINT32_MAX: it does not. */
static uint32_t piece_new(struct ttmon_mt_sectors *s, uint64_t nr)
{
	struct region *r = NULL;

	if (s->full)
		return UINT32_MAX;
	if (s->nr < s->max && (s->nr < s->cap || grow_pieces(s)))
		r = region_get(s, nr >> REGION);
	if (!r) {
		s->full = true;
		s->hll = calloc(1, HLL_SIZE);
		if (s->hll)
			hll_pieces(s->hll, s);
		return UINT32_MAX;
	}
	s->nrs[s->nr] = nr;
	memset(&s->pieces[s->nr], 0, sizeof(s->pieces[s->nr]));
	r->piece[nr % (1u << REGION)] = ++s->nr;
	return s->nr - 1;
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

static bool add_any(struct ttmon_mt_sectors *s, uint64_t sector, uint32_t n)
{
	bool all = true;

	while (n) {
		unsigned int at = sector % 64;
		uint32_t part = MIN(n, 64 - at), i = piece_find(s, sector >> PIECE);
		uint64_t bits = UINT64_MAX >> (64 - part) << at;

		if (i == UINT32_MAX)
			i = piece_new(s, sector >> PIECE);
		if (i != UINT32_MAX)
			set_bits(s, i, sector / 64 % WORDS, bits);
		else if (s->hll)
			hll_bits(s->hll, sector - at, bits);
		all &= i != UINT32_MAX;
		sector += part;
		n -= part;
	}
	return all;
}

/* The piece of a run that is in one word, if it is there and all is exact; else UINT32_MAX. */
static inline uint32_t piece_of(const struct ttmon_mt_sectors *s, uint64_t sector, uint32_t n)
{
	return sector % 64 + n <= 64 && !s->hll ? piece_find(s, sector >> PIECE) : UINT32_MAX;
}

static inline bool add_at(struct ttmon_mt_sectors *s, uint32_t piece, uint64_t sector, uint32_t n)
{
	uint64_t *word, more;

	if (piece == UINT32_MAX || s->hll)
		return add_any(s, sector, n);
	word = &s->pieces[piece].bits[sector / 64 % WORDS];
	more = UINT64_MAX >> (64 - n) << sector % 64 & ~*word;
	*word |= more;
	s->count += n == 1 ? more != 0 : popcount(more);
	return true;
}

bool ttmon_mt_sectors_add(struct ttmon_mt_sectors *s, uint64_t sector, uint32_t n)
{
	return n ? add_at(s, piece_of(s, sector, n), sector, n) : true;
}

/*
 * Adds runs that are far apart in two passes: the first finds and prefetches their words, the second
 * sets the bits.
 */
static bool add_far(struct ttmon_mt_sectors *s, const struct ttmon_mt_run *runs, unsigned int nr)
{
	uint64_t word[TTMON_MT_MAX_RUNS], new = 0; /* word: of all pieces; UINT64_MAX: has to be looked for */
	bool all = true;

	for (unsigned int i = 0; i < nr; i++) {
		uint64_t sector = runs[i].sector;
		uint32_t piece = runs[i].n == 1 ? piece_find(s, sector >> PIECE) : UINT32_MAX;

		word[i] = UINT64_MAX;
		if (piece == UINT32_MAX)
			continue;
		word[i] = (uint64_t)piece * WORDS + sector / 64 % WORDS;
		__builtin_prefetch(&s->pieces->bits[word[i]], 1);
	}
	for (unsigned int i = 0; i < nr; i++) {
		uint64_t bit = 1ULL << runs[i].sector % 64, *bits;

		if (word[i] == UINT64_MAX || s->full) {
			all &= add_any(s, runs[i].sector, runs[i].n);
			continue;
		}
		bits = &s->pieces->bits[word[i]];
		new += !(*bits & bit);
		*bits |= bit;
	}
	s->count += new;
	return all;
}

bool ttmon_mt_sectors_runs(struct ttmon_mt_sectors *s, const struct ttmon_mt_run *runs, unsigned int nr, bool far)
{
	uint32_t piece = UINT32_MAX; /* that the run before was in, mostly that of the next one too */
	uint64_t at = 0;
	bool all = true;

	if (far && !s->full)
		return add_far(s, runs, nr);
	for (unsigned int i = 0; i < nr; i++) {
		uint64_t sector = runs[i].sector;

		if (piece == UINT32_MAX || sector >> PIECE != at) {
			at = sector >> PIECE;
			piece = piece_of(s, sector, runs[i].n);
		}
		all &= add_at(s, sector % 64 + runs[i].n <= 64 ? piece : UINT32_MAX, sector, runs[i].n);
	}
	return all;
}

/* Sectors first to last of a piece, those of bits. */
static void add_piece(struct ttmon_mt_sectors *s, uint64_t nr, const struct piece *p, uint64_t first, uint64_t last)
{
	uint32_t i = piece_find(s, nr);
	unsigned int from = first / 64 % WORDS, to = last / 64 % WORDS;

	if (i == UINT32_MAX)
		i = piece_new(s, nr);
	for (unsigned int w = from; w <= to; w++) {
		uint64_t bits = p->bits[w];

		bits &= w == from ? UINT64_MAX << first % 64 : UINT64_MAX;
		bits &= w == to ? UINT64_MAX >> (63 - last % 64) : UINT64_MAX;
		if (i != UINT32_MAX)
			set_bits(s, i, w, bits);
		else if (s->hll)
			hll_bits(s->hll, (nr << PIECE) + 64 * w, bits);
	}
}

/* The first sector at or after from; UINT64_MAX: there is none. */
static uint64_t next_of(const struct piece *p, uint64_t nr, uint64_t from)
{
	unsigned int w = from / 64 % WORDS;
	uint64_t bits = p->bits[w] & UINT64_MAX << from % 64;

	while (!bits && ++w < WORDS)
		bits = p->bits[w];
	return bits ? (nr << PIECE) + 64 * w + (uint64_t)__builtin_ctzll(bits) : UINT64_MAX;
}

void ttmon_mt_sectors_share(const struct ttmon_mt_sectors *s,
			    struct ttmon_mt_sectors *(*whose)(void *ctx, uint64_t sector, uint64_t *last), void *ctx)
{
	for (uint32_t i = 0; i < s->nr; i++) {
		uint64_t nr = s->nrs[i], at = nr << PIECE, end = at + (1u << PIECE);

		while (at < end && (at = next_of(&s->pieces[i], nr, at)) != UINT64_MAX) {
			uint64_t last;
			struct ttmon_mt_sectors *to = whose(ctx, at, &last);

			last = MIN(last, end - 1);
			if (to)
				add_piece(to, nr, &s->pieces[i], at, last);
			at = last + 1;
		}
	}
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
	if (s->nr_regions)
		memset(s->slots, 0, SLOTS * (size_t)s->cap_regions * sizeof(*s->slots));
	free(s->hll);
	s->hll = NULL;
	s->full = false;
	s->nr = s->nr_regions = 0;
	s->count = 0;
}

void ttmon_mt_sectors_free(struct ttmon_mt_sectors *s)
{
	if (!s)
		return;
	free(s->pieces);
	free(s->nrs);
	free(s->regions);
	free(s->slots);
	free(s->hll);
	free(s);
}
