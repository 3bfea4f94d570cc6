// SPDX-License-Identifier: GPL-2.0-only
/* memtrace/model/shape_list.c: lists of addresses that are not affine: sorted, then swept once. */
#include "memtrace/model/shape_parts.h"
#include "lib/base/util.h"

#define LANES	 TTMON_MT_LANES
#define MAX_PAGE (1ULL << 21) /* the largest unit that is counted */
#define NEAR	 (1ULL << 30) /* addresses that far from the first are sorted as they are */

/*
 * ---- sort ----
 * A network on four columns of eight, then bitonic merges. GNU C vectors of four, for which both SSE2
 * and NEON have comparisons.
 */

typedef int32_t v4 __attribute__((vector_size(16)));
#ifdef __clang__
#define PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define UNROLL		_Pragma("clang loop unroll(full)")
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, (v4){ __VA_ARGS__ })
#define UNROLL		_Pragma("GCC unroll 19")
#endif

static inline void order(v4 *a, v4 *b)
{
	v4 x = (*a ^ *b) & (*a > *b);

	*a ^= x;
	*b ^= x;
}

/* v: n vectors (a power of two, at least 2) that are bitonic; then they ascend. */
static inline __attribute__((always_inline)) void merge(v4 *v, unsigned int n)
{
	UNROLL
	for (unsigned int d = n / 2; d; d /= 2) {
		UNROLL
		for (unsigned int i = 0; i < n / 2; i++) {
			unsigned int at = i / d * 2 * d + i % d;

			order(&v[at], &v[at + d]);
		}
	}
	UNROLL
	for (unsigned int i = 0; i < n; i += 2) {
		v4 a = v[i], b = v[i + 1], lo = PICK(a, b, 0, 1, 4, 5), hi = PICK(a, b, 2, 3, 6, 7);

		order(&lo, &hi);
		a = PICK(lo, hi, 0, 4, 2, 6);
		b = PICK(lo, hi, 1, 5, 3, 7);
		order(&a, &b);
		v[i] = PICK(a, b, 0, 4, 1, 5);
		v[i + 1] = PICK(a, b, 2, 6, 3, 7);
	}
}

/* Turns round n vectors. */
static inline __attribute__((always_inline)) void turn(v4 *v, unsigned int n)
{
	UNROLL
	for (unsigned int i = 0; i < n / 2; i++) {
		v4 a = PICK(v[i], v[i], 3, 2, 1, 0), b = PICK(v[n - 1 - i], v[n - 1 - i], 3, 2, 1, 0);

		v[i] = b;
		v[n - 1 - i] = a;
	}
}

void ttmon_mt_sort32(int32_t x[LANES])
{
	/* Sorts eight (Batcher's odd-even merge). */
	static const uint8_t net[19][2] = { { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 }, { 0, 2 }, { 1, 3 }, { 4, 6 },
					    { 5, 7 }, { 1, 2 }, { 5, 6 }, { 0, 4 }, { 1, 5 }, { 2, 6 }, { 3, 7 },
					    { 2, 4 }, { 3, 5 }, { 1, 2 }, { 3, 4 }, { 5, 6 } };
	v4 c[8], v[8];

	memcpy(c, x, sizeof(c));
	UNROLL
	for (unsigned int i = 0; i < ARRAY_SIZE(net); i++)
		order(&c[net[i][0]], &c[net[i][1]]);
	/* Column i becomes v[2 * i], v[2 * i + 1]. */
	UNROLL
	for (unsigned int h = 0; h < 2; h++) {
		v4 *q = &c[4 * h];
		v4 a = PICK(q[0], q[1], 0, 4, 1, 5), b = PICK(q[2], q[3], 0, 4, 1, 5), d = PICK(q[0], q[1], 2, 6, 3, 7),
		   e = PICK(q[2], q[3], 2, 6, 3, 7);

		v[h] = PICK(a, b, 0, 1, 4, 5);
		v[2 + h] = PICK(a, b, 2, 3, 6, 7);
		v[4 + h] = PICK(d, e, 0, 1, 4, 5);
		v[6 + h] = PICK(d, e, 2, 3, 6, 7);
	}
	turn(v + 2, 2);
	turn(v + 6, 2);
	merge(v, 4);
	merge(v + 4, 4);
	turn(v + 4, 4);
	merge(v, 8);
	memcpy(x, v, sizeof(v));
}

/* ---- sweeps ---- */

/* Most neighbours with the same x >> shift. */
static unsigned int most_alike(const int32_t *x, unsigned int n, unsigned int shift)
{
	unsigned int most = 1, run = 1;

	for (unsigned int i = 1; i < n; i++) {
		run = run * (x[i] >> shift == x[i - 1] >> shift) + 1;
		most = MAX(most, run);
	}
	return most;
}

/*
 * Runs of lanes that lie in one sector each, by offsets from a sector's start that ascend; the last of
 * n is repeated, up to x[LANES].
 */
static void add_near(const int32_t *x, unsigned int n, uint64_t sector, struct ttmon_mt_shape *s)
{
	int32_t start = x[0] >> 5, before = start;
	unsigned int nr = 0, apart = 1;
	uint32_t len = 1;

	for (unsigned int i = 0; i < LANES; i++)
		apart += (x[i + 1] >> 5) - (x[i] >> 5) > 1;
	if (apart == n) { /* most gathers */
		for (unsigned int i = 0; i < n; i++)
			s->runs[i] = (struct ttmon_mt_run){ sector + (uint64_t)(x[i] >> 5), 1 };
		s->nr_runs = (uint16_t)n;
		return;
	}
	/* No branch: it would be a guess each time. */
	s->runs[0] = (struct ttmon_mt_run){ sector + (uint64_t)start, 1 };
	for (unsigned int i = 1; i < n; i++) {
		int32_t at = x[i] >> 5, d = at - before, new = -(d > 1);

		nr -= (unsigned int)new;
		start = (start & ~new) | (at & new);
		len = ((len + (uint32_t)d) & (uint32_t) ~new) | (1 & (uint32_t) new);
		s->runs[nr] = (struct ttmon_mt_run){ sector + (uint64_t)start, len };
		before = at;
	}
	s->nr_runs = (uint16_t)(nr + 1);
}

enum { NO = 0, YES = 1, FAR = 2 };

/*
 * All lanes within 1 GiB of the first, and none comes round; else FAR. Otherwise: whether the bytes
 * are those of a sequential access.
 */
static unsigned int sweep_near(const struct ttmon_mt_lanes *l, unsigned int width, bool atomic, bool runs,
			       struct ttmon_mt_shape *s)
{
	int32_t x[LANES + 4], unique = 0, next = 0, sectors = 0, lines = 0, p4k = 0, p64k = 0, p2m = 0,
			      w = (int32_t)width;
	uint64_t origin = l->addr[0] & ~(MAX_PAGE - 1), all = 0, off = 0;
	bool natural;

	for (unsigned int i = 0; i < LANES; i++) {
		uint64_t d = l->addr[i] - origin;

		off |= d + NEAR;
		all |= d;
		x[i] = (int32_t)d;
	}
	if (off >= 2 * NEAR)
		return FAR;
	for (unsigned int i = l->n; i < LANES; i++)
		x[i] = INT32_MAX;
	ttmon_mt_sort32(x);
	/*
	 * What is not a lane repeats the last: so all loops have the same length, and the compiler makes
	 * vectors of them.
	 */
	for (unsigned int i = l->n; i <= LANES; i++)
		x[i] = x[l->n - 1];
	if ((x[0] < 0 && origin < (uint64_t)-x[0]) ||
	    origin + (uint64_t)x[l->n - 1] + width - 1 < origin + (uint64_t)x[0])
		return FAR;
	s->low = origin + (uint64_t)(int64_t)x[0];
	s->high = origin + (uint64_t)(int64_t)x[l->n - 1];
	for (unsigned int i = 0; i < LANES; i++) {
		int32_t d = x[i + 1] - x[i];

		unique += d < w ? d : w;
		next += d == w;
	}
	s->unique = (uint16_t)(unique + w);
	natural = ttmon_mt_natural(all, width);
	if (atomic)
		s->same = (uint16_t)(natural ? most_alike(x, l->n,
							  (unsigned int)__builtin_ctz(width <= 4 ? 4 : MAX(8, width)))
					     : ttmon_mt_meet(l, width));
	if (!runs)
		return next == (int32_t)l->n - 1;
	if (!natural || w > TTMON_MT_SECTOR) {
		for (unsigned int i = 0; i < l->n; i++)
			ttmon_mt_run_add(s, (origin >> 5) + (uint64_t)(x[i] >> 5),
					 (origin >> 5) + (uint64_t)((x[i] + w - 1) >> 5));
		ttmon_mt_count_runs(s);
		return next == (int32_t)l->n - 1;
	}
	/* Each lane is in one sector. */
	for (unsigned int i = 0; i < LANES; i++) {
		int32_t with = x[i + 1] ^ x[i];

		sectors += with >> 5 != 0;
		lines += with >> 7 != 0;
		p4k += with >> 12 != 0;
		p64k += with >> 16 != 0;
		p2m += with >> 21 != 0;
	}
	s->sectors = (uint16_t)(sectors + 1);
	s->lines = (uint16_t)(lines + 1);
	s->pages_4k = (uint16_t)(p4k + 1);
	s->pages_64k = (uint16_t)(p64k + 1);
	s->pages_2m = (uint16_t)(p2m + 1);
	add_near(x, l->n, origin >> 5, s);
	return next == (int32_t)l->n - 1;
}

static void extent(const struct ttmon_mt_lanes *l, struct ttmon_mt_shape *s)
{
	s->low = s->high = l->addr[0];
	for (unsigned int i = 1; i < l->n; i++) {
		s->low = MIN(s->low, l->addr[i]);
		s->high = MAX(s->high, l->addr[i]);
	}
}

/* Any addresses. */
static bool sweep_far(const struct ttmon_mt_lanes *l, unsigned int width, bool atomic, bool runs,
		      struct ttmon_mt_shape *s)
{
	uint64_t low, high;
	unsigned int shift, unique = 0, next = 0;
	uint64_t a[LANES], upto;
	bool any;
	int32_t x[LANES];

	extent(l, s);
	low = s->low;
	high = s->high;
	/* By the 26 highest bits that differ, with the place in the list below them, then put right. */
	shift = high - low < 1U << 26 ? 0 : 38 - (unsigned int)__builtin_clzll(high - low);
	for (unsigned int i = 0; i < LANES; i++)
		x[i] = i < l->n ? (int32_t)((l->addr[i] - low) >> shift << 5 | i) : INT32_MAX;
	ttmon_mt_sort32(x);
	for (unsigned int i = 0; i < l->n; i++) {
		uint64_t at = l->addr[x[i] & (LANES - 1)];
		unsigned int k = i;

		for (; k && a[k - 1] > at; k--)
			a[k] = a[k - 1];
		a[k] = at;
	}
	upto = high + width - 1; /* the last byte that is covered */
	any = upto < high;	 /* is one: the highest lane comes round, and no other reaches further */
	if (any) {
		unique = (unsigned int)upto + 1;
		if (runs)
			ttmon_mt_run_add(s, 0, upto >> 5);
	}
	for (unsigned int i = 0; i < l->n; i++) {
		uint64_t last = a[i] + width - 1 < a[i] ? UINT64_MAX : a[i] + width - 1;

		if (!any || a[i] > upto)
			unique += (unsigned int)(last - a[i]) + 1;
		else if (last > upto)
			unique += (unsigned int)(last - upto);
		upto = any ? MAX(upto, last) : last;
		any = true;
		if (runs)
			ttmon_mt_run_add(s, a[i] >> 5, last >> 5);
		next += a[i] - a[i ? i - 1 : l->n - 1] == width;
	}
	s->unique = (uint16_t)unique;
	if (runs)
		ttmon_mt_count_runs(s);
	if (atomic)
		s->same = (uint16_t)ttmon_mt_meet(l, width);
	return next == l->n - 1;
}

static bool sweep(const struct ttmon_mt_lanes *l, unsigned int width, bool atomic, bool runs, struct ttmon_mt_shape *s)
{
	unsigned int near = sweep_near(l, width, atomic, runs, s);

	return near == FAR ? sweep_far(l, width, atomic, runs, s) : near == YES;
}

/* ---- runs of lanes ---- */

/* Are the lanes runs of this stride? Then SEGMENTED is filled. */
static bool runs_of(const struct ttmon_mt_lanes *l, int64_t stride, struct ttmon_mt_shape *s)
{
	/*
	 * full: lanes of the runs that are neither first nor last; extent: from the first address of the
	 * longest run to its last; jump: from the end of one to the next.
	 */
	unsigned int nr = 0, full = 0, first = 0, len = 1, longest = 0, two = 0;
	uint64_t extent = 0, jump = 0, start = l->addr[0];
	bool varies = false;

	for (unsigned int i = 1; i <= l->n; i++) {
		bool end = i == l->n;

		if (!end && l->addr[i] - l->addr[i - 1] == (uint64_t)stride * (l->lane[i] - l->lane[i - 1])) {
			len++;
			continue;
		}
		if (!nr) {
			first = len;
		} else if (!end) {
			if (len < 2 || len < first || (full && len != full))
				return false;
			full = len;
		} else if (full && len > full) {
			return false;
		}
		two += len >= 2;
		if (len > longest) {
			longest = len;
			extent = l->addr[i - 1] - start;
		}
		nr++;
		len = 1;
		if (end)
			break;
		varies |= nr > 1 && l->addr[i] - l->addr[i - 1] != jump;
		jump = l->addr[i] - l->addr[i - 1];
		start = l->addr[i];
	}
	if (nr < 2 || two < 2)
		return false;
	s->class = TTMON_MT_SEGMENTED;
	s->run = (uint16_t)longest;
	s->stride = stride;
	s->pitch = varies ? 0 : (int64_t)(jump + extent);
	return true;
}

static bool segmented(const struct ttmon_mt_lanes *l, struct ttmon_mt_shape *s)
{
	/* The first run may be of one lane: then the second pair has the stride. */
	for (unsigned int i = 0; i < 2 && i + 1 < l->n; i++) {
		int64_t d = (int64_t)(l->addr[i + 1] - l->addr[i]);
		int gap = l->lane[i + 1] - l->lane[i];

		if (gap > 1 && d % gap)
			continue;
		if (runs_of(l, gap > 1 ? d / gap : d, s))
			return true;
	}
	return false;
}

void ttmon_mt_shape_list(const struct ttmon_mt_lanes *l, const struct ttmon_mt_rec *rec, bool atomic,
			 struct ttmon_mt_shape *s)
{
	bool affine = !rec->addr, all;
	unsigned int took, best;

	if (rec->space == TTMON_MT_LOCAL) {
		s->unique = s->bytes;
		s->ideal = s->ideal_lanes;
		s->same = atomic;
		ttmon_mt_local(l, rec->width, s);
		extent(l, s);
		if (!affine)
			s->class = s->sectors <= 2 * s->ideal ? TTMON_MT_CLUSTERED : TTMON_MT_GATHER;
		return;
	}
	all = sweep(l, rec->width, atomic, rec->space != TTMON_MT_SHARED, s);
	if (rec->space == TTMON_MT_SHARED) {
		ttmon_mt_banks(l, rec->width, s);
		took = s->waves;
		best = s->ideal_waves;
	} else {
		s->ideal = (uint16_t)((s->unique + TTMON_MT_SECTOR - 1) / TTMON_MT_SECTOR);
		took = s->sectors;
		best = s->ideal;
	}
	if (affine || segmented(l, s))
		return;
	s->class = all ? TTMON_MT_PERMUTED : took <= 2 * best ? TTMON_MT_CLUSTERED : TTMON_MT_GATHER;
}
