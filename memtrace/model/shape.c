// SPDX-License-Identifier: GPL-2.0-only
/* memtrace/model/shape.c: affine records by formula; the rest goes to shape_list.c. */
#include "memtrace/model/shape_parts.h"
#include "lib/base/util.h"

#define MAX_STEP (1ULL << 56) /* of formulas: 31 of it do not come round */

const char *ttmon_mt_class_name(unsigned int class)
{
	static const char *const names[TTMON_MT_CLASS_MAX] = {
		[TTMON_MT_SINGLE] = "single",	      [TTMON_MT_BROADCAST] = "broadcast",
		[TTMON_MT_SEQUENTIAL] = "sequential", [TTMON_MT_REVERSED] = "reversed",
		[TTMON_MT_STRIDED] = "strided",	      [TTMON_MT_SEGMENTED] = "segmented",
		[TTMON_MT_PERMUTED] = "permuted",     [TTMON_MT_CLUSTERED] = "clustered",
		[TTMON_MT_GATHER] = "gather",
	};

	return class < TTMON_MT_CLASS_MAX ? names[class] : "unknown";
}

void ttmon_mt_count_runs(struct ttmon_mt_shape *s)
{
	unsigned int sectors = 0, lines = 0, p4k = 0, p64k = 0, p2m = 0;
	uint64_t before = 0;

	for (unsigned int i = 0; i < s->nr_runs; i++) {
		uint64_t first = s->runs[i].sector, last = first + s->runs[i].n - 1,
			 with = i ? first ^ before : UINT64_MAX;

		/*
		 * with has a bit at or above a unit's, unless the run begins in the unit that the run before it ended
		 * in.
		 */
		sectors += s->runs[i].n;
		lines += ttmon_mt_span(first, last, 2) - !(with >> 2);
		p4k += ttmon_mt_span(first, last, 7) - !(with >> 7);
		p64k += ttmon_mt_span(first, last, 11) - !(with >> 11);
		p2m += ttmon_mt_span(first, last, 16) - !(with >> 16);
		before = last;
	}
	s->sectors = (uint16_t)sectors;
	s->lines = (uint16_t)lines;
	s->pages_4k = (uint16_t)p4k;
	s->pages_64k = (uint16_t)p64k;
	s->pages_2m = (uint16_t)p2m;
}

unsigned int ttmon_mt_meet(const struct ttmon_mt_lanes *l, unsigned int width)
{
	uint64_t size = width <= 4 ? 4 : 8;
	unsigned int most = 1;

	/* Where most lanes meet, one of them begins. */
	for (unsigned int i = 0; i < l->n; i++) {
		uint64_t word = l->addr[i] & ~(size - 1);
		unsigned int n = 0;

		for (unsigned int j = 0; j < l->n; j++)
			n += word - l->addr[j] < width || l->addr[j] - word < size;
		most = MAX(most, n);
	}
	return most;
}

static void list_of(const struct ttmon_mt_rec *rec, struct ttmon_mt_lanes *l)
{
	static const uint8_t all[TTMON_MT_LANES] = { 0,	 1,  2,	 3,  4,	 5,  6,	 7,  8,	 9,  10, 11, 12, 13, 14, 15,
						     16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31 };

	if (rec->mask == UINT32_MAX && rec->addr) {
		l->n = TTMON_MT_LANES;
		l->lane = all;
		l->addr = rec->addr;
		return;
	}
	l->n = 0;
	l->lane = l->lanes;
	l->addr = l->addrs;
	for (uint32_t m = rec->mask; m; m &= m - 1) {
		l->lanes[l->n] = (uint8_t)__builtin_ctz(m);
		l->addrs[l->n] = ttmon_mt_lane(rec, l->lanes[l->n]);
		l->n++;
	}
	for (unsigned int i = l->n; i < TTMON_MT_LANES; i++)
		l->addrs[i] = l->addrs[l->n - 1];
}

/* Bits of len lanes in the opposite order. */
static uint32_t reversed(uint32_t m, unsigned int len)
{
	m = (m >> 1 & 0x55555555) | (m & 0x55555555) << 1;
	m = (m >> 2 & 0x33333333) | (m & 0x33333333) << 2;
	m = (m >> 4 & 0x0f0f0f0f) | (m & 0x0f0f0f0f) << 4;
	return __builtin_bswap32(m) >> (32 - len);
}

/*
 * Lanes of which bit i of m is at low + step * i; bit 0 is one, the highest is len - 1. Nothing comes
 * round.
 */
struct affine {
	uint64_t low, step;
	uint32_t m;
	unsigned int n, len, width;
	bool whole; /* no holes */
};

static unsigned int unique_bytes(const struct affine *a)
{
	unsigned int sum = a->width, before = 0;

	if (a->step >= a->width)
		return a->n * a->width;
	if (a->whole)
		return (unsigned int)a->step * (a->len - 1) + a->width;
	for (uint32_t m = a->m & (a->m - 1); m; m &= m - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(m), d = (unsigned int)a->step * (i - before);

		sum += MIN(d, a->width);
		before = i;
	}
	return sum;
}

unsigned int ttmon_mt_units(uint64_t low, uint64_t step, unsigned int len, unsigned int width, unsigned int shift)
{
	uint64_t size = 1ULL << shift, at = low;
	unsigned int sum = 0;

	if (step < size + width) /* none is between two lanes */
		return ttmon_mt_span(at, at + step * (len - 1) + width - 1, shift);
	if (width <= size && ttmon_mt_natural(at | step, width)) /* none lies in two */
		return len;
	if (!(step & (size - 1)))
		return len * ttmon_mt_span(at, at + width - 1, shift);
	for (unsigned int i = 0; i < len; i++, at += step)
		sum += ttmon_mt_span(at, at + width - 1, shift);
	return sum;
}

static unsigned int count_units(const struct affine *a, unsigned int shift)
{
	return ttmon_mt_units(a->low, a->step, a->len, a->width, shift);
}

/* Sectors as runs, by runs of lanes. */
static void add_runs(const struct affine *a, struct ttmon_mt_shape *s)
{
	bool dense = a->step < TTMON_MT_SECTOR + a->width;

	for (uint32_t m = a->m; m;) {
		unsigned int i = (unsigned int)__builtin_ctz(m),
			     n = dense ? (unsigned int)__builtin_ctzll(~(uint64_t)(m >> i)) : 1;
		uint64_t at = a->low + a->step * i;

		ttmon_mt_run_add(s, at >> 5, (at + a->step * (n - 1) + a->width - 1) >> 5);
		m &= (uint32_t)(UINT64_MAX << (i + n));
	}
}

static void count_affine(const struct affine *a, struct ttmon_mt_shape *s)
{
	if (!a->whole) {
		add_runs(a, s);
		ttmon_mt_count_runs(s);
		return;
	}
	if (a->step < TTMON_MT_SECTOR + a->width) {
		uint64_t last = a->low + a->step * (a->len - 1) + a->width - 1;

		s->sectors = (uint16_t)ttmon_mt_span(a->low, last, 5);
		s->lines = (uint16_t)ttmon_mt_span(a->low, last, 7);
		s->pages_4k = (uint16_t)ttmon_mt_span(a->low, last, 12);
		s->pages_64k = (uint16_t)ttmon_mt_span(a->low, last, 16);
		s->pages_2m = (uint16_t)ttmon_mt_span(a->low, last, 21);
		s->runs[0] = (struct ttmon_mt_run){ a->low >> 5, s->sectors };
		s->nr_runs = 1;
		return;
	}
	if (a->step < 2 * TTMON_MT_SECTOR + a->width) {
		add_runs(a, s);
	} else { /* no run touches the next */
		uint64_t at = a->low;

		for (unsigned int i = 0; i < a->len; i++, at += a->step)
			s->runs[i] = (struct ttmon_mt_run){ at >> 5, ttmon_mt_span(at, at + a->width - 1, 5) };
		s->nr_runs = (uint16_t)a->len;
	}
	s->sectors = (uint16_t)count_units(a, 5);
	s->lines = (uint16_t)count_units(a, 7);
	s->pages_4k = (uint16_t)count_units(a, 12);
	s->pages_64k = (uint16_t)count_units(a, 16);
	s->pages_2m = (uint16_t)count_units(a, 21);
}

/* Sectors of the same pattern with its lowest byte at the start of one; the step is the width. */
static unsigned int best_sectors(const struct affine *a)
{
	unsigned int sum = 0, next = 0; /* next: the first sector that is not counted */

	if (a->whole)
		return (a->len * a->width + TTMON_MT_SECTOR - 1) / TTMON_MT_SECTOR;
	for (uint32_t m = a->m; m; m &= m - 1) {
		unsigned int at = (unsigned int)__builtin_ctz(m) * a->width, first = MAX(at / TTMON_MT_SECTOR, next);

		next = (at + a->width - 1) / TTMON_MT_SECTOR + 1;
		sum += next > first ? next - first : 0;
	}
	return sum;
}

static unsigned int meet_affine(const struct affine *a, const struct ttmon_mt_rec *rec)
{
	unsigned int size = a->width <= 4 ? 4 : 8;
	struct ttmon_mt_lanes l;

	if (!a->step)
		return a->n;
	if (a->step >= a->width + size - 1 || (!(a->step & (size - 1)) && (a->low & (size - 1)) + a->width <= size))
		return 1;
	list_of(rec, &l);
	return ttmon_mt_meet(&l, a->width);
}

static void class_affine(const struct ttmon_mt_rec *rec, unsigned int n, struct ttmon_mt_shape *s)
{
	bool local = rec->space == TTMON_MT_LOCAL;

	s->stride = n > 1 ? rec->stride : 0;
	if (n == 1) {
		s->class = TTMON_MT_SINGLE;
	} else if (!rec->stride) {
		s->class = local ? TTMON_MT_SEQUENTIAL : TTMON_MT_BROADCAST;
		s->stride = local ? rec->width : 0;
	} else {
		s->class = local			     ? TTMON_MT_STRIDED
			   : rec->stride == rec->width	     ? TTMON_MT_SEQUENTIAL
			   : rec->stride == -(int)rec->width ? TTMON_MT_REVERSED
							     : TTMON_MT_STRIDED;
	}
}

static struct affine affine_of(const struct ttmon_mt_rec *rec, unsigned int n)
{
	struct affine a = { .low = rec->base, .m = 1, .n = n, .len = 1, .width = rec->width, .whole = true };

	if (n > 1 && rec->stride) { /* else it costs what one lane does */
		a.step = rec->stride < 0 ? -(uint64_t)rec->stride : (uint64_t)rec->stride;
		a.m = rec->mask >> __builtin_ctz(rec->mask);
		a.len = 32 - (unsigned int)__builtin_clz(a.m);
		a.whole = a.len == n;
		if (rec->stride < 0) {
			a.low -= a.step * (a.len - 1);
			a.m = reversed(a.m, a.len);
		}
	}
	return a;
}

/* What formulas say of it but its class; false: they do not apply, and nothing is filled. */
static bool cost_affine(const struct affine *a, const struct ttmon_mt_rec *rec, bool atomic, struct ttmon_mt_shape *s)
{
	uint64_t last = a->low + a->step * (a->len - 1) + a->width - 1;
	struct ttmon_mt_lanes l;

	if (a->step > MAX_STEP || last < a->low)
		return false;
	if (rec->space == TTMON_MT_LOCAL) {
		s->unique = s->bytes;
		s->ideal = s->ideal_lanes;
		s->same = atomic;
		if (a->step) {
			list_of(rec, &l);
			ttmon_mt_local(&l, a->width, s);
		} else {
			uint32_t octets = rec->mask | rec->mask >> 4;

			octets |= octets >> 2;
			octets = (octets | octets >> 1) & 0x01010101;
			s->lines = (uint16_t)ttmon_mt_span(a->low, last, 2);
			s->sectors = (uint16_t)(s->lines * ttmon_mt_popcount(octets));
		}
		return true;
	}
	s->unique = (uint16_t)unique_bytes(a);
	if (atomic)
		s->same = (uint16_t)meet_affine(a, rec);
	if (rec->space == TTMON_MT_SHARED) {
		if ((rec->mask + (rec->mask & -rec->mask)) & rec->mask || !ttmon_mt_banks_affine(rec, a->n, s)) {
			list_of(rec, &l);
			ttmon_mt_banks(&l, a->width, s);
		}
		return true;
	}
	count_affine(a, s);
	s->ideal = (uint16_t)((s->unique + TTMON_MT_SECTOR - 1) / TTMON_MT_SECTOR);
	return true;
}

void ttmon_mt_get_shape(const struct ttmon_mt_rec *rec, unsigned int kind, struct ttmon_mt_shape *ret)
{
	unsigned int n = ttmon_mt_popcount(rec->mask);
	bool atomic = kind == TTMON_MT_ATOM || kind == TTMON_MT_RED, big;
	uint64_t addr[TTMON_MT_LANES];
	struct ttmon_mt_lanes l;
	struct ttmon_mt_rec r;

	memset(ret, 0, offsetof(struct ttmon_mt_shape, runs));
	ret->lanes = (uint16_t)n;
	ret->bytes = (uint16_t)(n * rec->width);
	if (rec->space != TTMON_MT_SHARED)
		ret->ideal_lanes = (uint16_t)((ret->bytes + TTMON_MT_SECTOR - 1) / TTMON_MT_SECTOR);
	big = !rec->addr && n > 1 && (uint64_t)rec->stride + MAX_STEP > 2 * MAX_STEP;
	if (rec->addr || big) {
		/* A stride that comes round may make of two lanes one, or any other pattern. */
		r = *rec;
		for (uint32_t m = rec->mask; big && m; m &= m - 1)
			addr[__builtin_ctz(m)] = ttmon_mt_lane(rec, (unsigned int)__builtin_ctz(m));
		ttmon_mt_fit(&r, big ? addr : rec->addr);
		rec = &r;
	}
	if (!rec->addr) {
		struct affine a = affine_of(rec, n);

		class_affine(rec, n, ret);
		ret->low = a.low;
		ret->high = a.low + a.step * (a.len - 1);
		if (!cost_affine(&a, rec, atomic, ret)) {
			list_of(rec, &l);
			ttmon_mt_shape_list(&l, rec, atomic, ret);
		}
		if (ret->nr_runs && a.low % TTMON_MT_SECTOR &&
		    (ret->class == TTMON_MT_SEQUENTIAL || ret->class == TTMON_MT_REVERSED))
			ret->misaligned = ret->sectors > best_sectors(&a);
		return;
	}
	list_of(rec, &l);
	ttmon_mt_shape_list(&l, rec, atomic, ret);
}

void ttmon_mt_fit(struct ttmon_mt_rec *rec, const uint64_t *addr)
{
	unsigned int first = (unsigned int)__builtin_ctz(rec->mask), second;
	uint32_t rest = rec->mask & (rec->mask - 1);
	uint64_t base = addr[first], differs = 0;
	int64_t stride;

	rec->base = base;
	rec->stride = 0;
	rec->addr = NULL;
	if (!rest)
		return;
	second = (unsigned int)__builtin_ctz(rest);
	stride = (int64_t)(addr[second] - base);
	if (second - first > 1) {
		if (stride % (int)(second - first)) {
			rec->addr = addr;
			return;
		}
		stride /= (int)(second - first);
	}
	if (rest + (1U << second) == 0 && second < 29) { /* none is off after the second: most requests */
		if (addr[second + 1] - addr[second] != (uint64_t)stride) {
			rec->addr = addr;
			return;
		}
		for (unsigned int i = second + 1; i < TTMON_MT_LANES; i++)
			differs |= addr[i] - (base + (uint64_t)stride * (i - first));
	} else {
		for (rest &= rest - 1; rest && !differs; rest &= rest - 1) {
			unsigned int i = (unsigned int)__builtin_ctz(rest);

			differs = addr[i] - (base + (uint64_t)stride * (i - first));
		}
	}
	if (differs)
		rec->addr = addr;
	else
		rec->stride = stride;
}
