/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mt_shape_oracle.h: what one request costs and looks like, found by looking at each byte of each
 * lane.
 */
#ifndef TTMON_TEST_MT_SHAPE_ORACLE_H
#define TTMON_TEST_MT_SHAPE_ORACLE_H

#include "memtrace/model/shape.h"
#include "lib/base/util.h"

struct set {
	uint64_t key[4096];
	uint32_t when[4096], now;
	unsigned int n;
};

static void empty(struct set *s)
{
	s->now++;
	s->n = 0;
}

static bool put(struct set *s, uint64_t key)
{
	unsigned int i = (unsigned int)((key * 0x9e3779b97f4a7c15) >> 52);

	while (s->when[i] == s->now && s->key[i] != key)
		i = (i + 1) % 4096;
	if (s->when[i] == s->now)
		return false;
	s->when[i] = s->now;
	s->key[i] = key;
	s->n++;
	return true;
}

static struct set bytes, sectors, lines, p4k, p64k, p2m, words, some;

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static unsigned int sectors_of(const uint64_t *addr, uint32_t mask, unsigned int width, uint64_t shift)
{
	empty(&sectors);
	for (unsigned int i = 0; i < 32; i++)
		for (unsigned int b = 0; mask >> i & 1 && b < width; b++)
			put(&sectors, (addr[i] - shift + b) / 32);
	return sectors.n;
}

/* Lanes in order, as a class is defined; -1: not of this stride. */
static bool is_affine(const uint64_t *a, const unsigned int *lane, unsigned int n, int64_t stride)
{
	for (unsigned int i = 1; i < n; i++)
		if (a[i] != a[0] + (uint64_t)stride * (lane[i] - lane[0]))
			return false;
	return true;
}

static bool stride_of(const uint64_t *a, const unsigned int *lane, int64_t *ret)
{
	int64_t d = (int64_t)(a[1] - a[0]), gap = lane[1] - lane[0];

	*ret = d / gap;
	return d % gap == 0;
}

/*
 * Can the lanes be cut into runs of this stride, the inner ones of r lanes, none longer than r and cut
 * as late as can be?
 */
static bool is_tiles(const uint64_t *a, const unsigned int *lane, unsigned int n, int64_t stride,
		     struct ttmon_mt_shape *want)
{
	unsigned int len[32] = { 0 }, from[32] = { 0 }, nr = 0, big = 0, r = 0;
	uint64_t pitch = 0;
	bool varies = false;

	for (unsigned int at = 0; at < n; at += len[nr++]) {
		from[nr] = at;
		for (len[nr] = 1; at + len[nr] < n && is_affine(a + at, lane + at, len[nr] + 1, stride);)
			len[nr]++;
		big += len[nr] > 1;
		if (len[nr] > len[r])
			r = nr;
	}
	if (nr < 2 || big < 2)
		return false;
	for (unsigned int i = 1; i + 1 < nr; i++)
		if (len[i] != len[r])
			return false;
	for (unsigned int i = 1; i < nr; i++) {
		uint64_t p = a[from[i]] - a[from[i] - 1] + a[from[r] + len[r] - 1] - a[from[r]];

		varies |= i > 1 && p != pitch;
		pitch = p;
	}
	want->run = (uint16_t)len[r];
	want->stride = stride;
	want->pitch = varies ? 0 : (int64_t)pitch;
	return true;
}

static bool is_sequence(const uint64_t *a, unsigned int n, unsigned int width)
{
	uint64_t s[32];
	unsigned int next = 0;

	memcpy(s, a, n * sizeof(*a));
	qsort(s, n, sizeof(*s), ascending);
	for (unsigned int i = 0; i < n; i++)
		next += s[(i + 1) % n] - s[i] == width;
	return next == n - 1;
}

static void classify(const uint64_t *addr, uint32_t mask, unsigned int width, unsigned int space,
		     struct ttmon_mt_shape *want)
{
	unsigned int lane[32], n = 0, took = want->sectors, best = want->ideal;
	uint64_t a[32];
	int64_t s;

	for (unsigned int i = 0; i < 32; i++)
		if (mask >> i & 1) {
			a[n] = addr[i];
			lane[n++] = i;
		}
	want->class = TTMON_MT_SINGLE;
	if (n == 1)
		return;
	if (stride_of(a, lane, &s) && is_affine(a, lane, n, s)) {
		uint64_t low = s < 0 ? a[n - 1] : a[0];

		want->stride = s;
		if (space == TTMON_MT_LOCAL) {
			want->class = s ? TTMON_MT_STRIDED : TTMON_MT_SEQUENTIAL;
			want->stride = s ? s : (int64_t)width;
			return;
		}
		want->class = !s		     ? TTMON_MT_BROADCAST
			      : s == (int64_t)width  ? TTMON_MT_SEQUENTIAL
			      : s == -(int64_t)width ? TTMON_MT_REVERSED
						     : TTMON_MT_STRIDED;
		if (space != TTMON_MT_SHARED &&
		    (want->class == TTMON_MT_SEQUENTIAL || want->class == TTMON_MT_REVERSED))
			want->misaligned = want->sectors > sectors_of(addr, mask, width, low);
		return;
	}
	if (space != TTMON_MT_LOCAL) {
		want->class = TTMON_MT_SEGMENTED;
		if (stride_of(a, lane, &s) && is_tiles(a, lane, n, s, want))
			return;
		if (n > 2 && stride_of(a + 1, lane + 1, &s) && is_tiles(a, lane, n, s, want))
			return;
		want->class = TTMON_MT_PERMUTED;
		if (is_sequence(a, n, width))
			return;
	}
	if (space == TTMON_MT_SHARED) {
		took = want->waves;
		best = want->ideal_waves;
	}
	want->class = took <= 2 * best ? TTMON_MT_CLUSTERED : TTMON_MT_GATHER;
}

static void oracle(const uint64_t *addr, uint32_t mask, unsigned int width, unsigned int space, unsigned int kind,
		   struct ttmon_mt_shape *want)
{
	unsigned int lanes = 0, group = width <= 4 ? 32 : width <= 8 ? 16 : width <= 16 ? 8 : width <= 32 ? 4 : 2;
	uint64_t list[100];
	struct set *const all[] = { &bytes, &sectors, &lines, &p4k, &p64k, &p2m, &words };

	memset(want, 0, sizeof(*want));
	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++)
		empty(all[i]);
	for (unsigned int i = 0; i < 32; i++) {
		if (!(mask >> i & 1))
			continue;
		want->low = lanes ? MIN(want->low, addr[i]) : addr[i];
		want->high = MAX(want->high, addr[i]);
		lanes++;
		for (unsigned int b = 0; b < width; b++) {
			uint64_t x = addr[i] + b;

			put(&bytes, x);
			if (b && x % 4)
				continue;
			if (put(&sectors, x / 32))
				list[sectors.n - 1] = x / 32;
			put(&lines, x / 128);
			put(&p4k, x / 4096);
			put(&p64k, x / 65536);
			put(&p2m, x / 2097152);
			put(&words, x / 4);
		}
	}
	want->lanes = (uint16_t)lanes;
	want->bytes = (uint16_t)(lanes * width);
	want->unique = space == TTMON_MT_LOCAL ? want->bytes : (uint16_t)bytes.n;
	if (kind == TTMON_MT_ATOM || kind == TTMON_MT_RED) {
		uint64_t size = width <= 4 ? 4 : 8;

		want->same = 1;
		for (unsigned int i = 0; i < 32 && space != TTMON_MT_LOCAL; i++) {
			for (unsigned int b = 0; mask >> i & 1 && b < width;
			     b++) { /* the word of this byte: how many lanes have one in it */
				unsigned int n = 0;

				if (b && (addr[i] + b) % size)
					continue;
				for (unsigned int k = 0; k < 32; k++) {
					bool in = false;

					for (unsigned int c = 0; mask >> k & 1 && c < width && !in;
					     c += c + (size - 1) < width ? size - 1 : 1)
						in = (addr[k] + c) / size == (addr[i] + b) / size;
					n += in;
				}
				want->same = (uint16_t)MAX(want->same, n);
			}
		}
	}
	if (space == TTMON_MT_SHARED) {
		for (unsigned int g = 0; g < 32; g += group) {
			unsigned int bank[32] = { 0 }, worst = 0;

			empty(&some);
			for (unsigned int i = g; i < g + group; i++)
				for (unsigned int b = 0; mask >> i & 1 && b < width; b++)
					if (put(&some, (addr[i] + b) / 4)) {
						unsigned int n = ++bank[(addr[i] + b) / 4 % 32];

						worst = MAX(worst, n);
					}
			want->phases += worst > 0;
			want->waves += worst;
		}
		want->ideal_waves = (uint16_t)((words.n + 31) / 32);
	} else if (space == TTMON_MT_LOCAL) {
		empty(&some);
		for (unsigned int i = 0; i < 32; i++)
			for (unsigned int b = 0; mask >> i & 1 && b < width; b++)
				put(&some, (addr[i] + b) / 4 * 4 + i / 8);
		want->sectors = (uint16_t)some.n;
		want->lines = (uint16_t)words.n;
	} else {
		want->sectors = (uint16_t)sectors.n;
		want->lines = (uint16_t)lines.n;
		want->pages_4k = (uint16_t)p4k.n;
		want->pages_64k = (uint16_t)p64k.n;
		want->pages_2m = (uint16_t)p2m.n;
		qsort(list, sectors.n, sizeof(*list), ascending);
		for (unsigned int i = 0; i < sectors.n; i++) {
			struct ttmon_mt_run *r = &want->runs[want->nr_runs];

			if (i && list[i] == list[i - 1] + 1)
				r[-1].n++;
			else {
				*r = (struct ttmon_mt_run){ list[i], 1 };
				want->nr_runs++;
			}
		}
	}
	if (space != TTMON_MT_SHARED) {
		want->ideal = (uint16_t)((want->unique + 31) / 32);
		want->ideal_lanes = (uint16_t)((want->bytes + 31) / 32);
	}
	classify(addr, mask, width, space, want);
}

#endif
