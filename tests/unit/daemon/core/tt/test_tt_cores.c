// SPDX-License-Identifier: GPL-2.0-only
/* test_tt_cores.c: core/tt/cores.c against a map with a counter for every byte of every core. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/tt/cores.h"

#define GRID  12
#define BYTES 200
#define LIVE  40

static uint16_t map[GRID][GRID][BYTES];
static uint64_t rng;

static uint32_t rnd(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)((rng >> 16) % n);
}

struct buffer {
	struct ttmon_tt_core_range r[3];
	uint32_t nr, from, to;
	bool live;
};

static void in_map(const struct buffer *b, int by)
{
	for (uint32_t i = 0; i < b->nr; i++)
		for (uint32_t y = b->r[i].y0; y <= b->r[i].y1; y++)
			for (uint32_t x = b->r[i].x0; x <= b->r[i].x1; x++)
				for (uint32_t a = b->from; a < b->to; a++)
					map[y][x][a] = (uint16_t)(map[y][x][a] + by);
}

static uint64_t covered(void)
{
	uint64_t n = 0;

	for (uint32_t y = 0; y < GRID; y++)
		for (uint32_t x = 0; x < GRID; x++)
			for (uint32_t a = 0; a < BYTES; a++)
				n += map[y][x][a] > 0;
	return n;
}

static struct buffer any(uint32_t grid)
{
	struct buffer b = { .nr = 1 + rnd(3), .from = rnd(BYTES - 1), .live = true };

	/* Addresses are aligned, so that many begin where another one ends. */
	b.from -= b.from % (1 + rnd(16));
	b.to = b.from + 1 + rnd(BYTES - b.from);
	for (uint32_t i = 0; i < b.nr; i++) {
		struct ttmon_tt_core_range *r = &b.r[i];

		r->x0 = (uint8_t)rnd(grid);
		r->y0 = (uint8_t)rnd(grid);
		r->x1 = (uint8_t)(r->x0 + rnd(grid - r->x0));
		r->y1 = (uint8_t)(r->y0 + rnd(grid - r->y0));
	}
	return b;
}

static void union_is_the_map(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct ttmon_tt_cores c = { 0 };
		struct buffer live[LIVE] = { 0 };

		rng = seed * 88172645463325252ULL;
		memset(map, 0, sizeof(map));
		for (uint32_t step = 0; step < 200; step++) {
			struct buffer *b = &live[rnd(LIVE)];

			if (b->live) {
				in_map(b, -1);
				ttmon_tt_cores_sub(&c, b->r, b->nr, b->from, b->to);
				b->live = false;
			} else {
				*b = any(step < 50 ? 4 : GRID);
				in_map(b, 1);
				assert_int_equal(ttmon_tt_cores_add(&c, b->r, b->nr, b->from, b->to), 0);
			}
			assert_int_equal(c.bytes, covered());
			assert_true(c.n <= 2 * LIVE);
		}
		for (uint32_t i = 0; i < LIVE; i++)
			if (live[i].live)
				ttmon_tt_cores_sub(&c, live[i].r, live[i].nr, live[i].from, live[i].to);
		/* Nothing is left of what was cut. */
		assert_int_equal(c.bytes, 0);
		assert_int_equal(c.n, 0);
		ttmon_tt_cores_fini(&c);
	}
}

static void what_is_no_range_is_refused(void **state)
{
	static const struct ttmon_tt_core_range good = { 1, 2, 3, 4 }, back = { 3, 2, 1, 4 }, up = { 1, 4, 3, 2 },
						far = { 0, 0, TTMON_TT_GRID_MAX, 0 }, low = { 0, 0, 0, 255 };

	(void)state;
	assert_true(ttmon_tt_cores_sane(&good, 1));
	assert_false(ttmon_tt_cores_sane(&good, 0));
	assert_false(ttmon_tt_cores_sane(&back, 1));
	assert_false(ttmon_tt_cores_sane(&up, 1));
	assert_false(ttmon_tt_cores_sane(&far, 1));
	assert_false(ttmon_tt_cores_sane(&low, 1));
}

/* A program that means harm gets no more than so many counters, and what it had before stays right. */
static void there_is_a_bound(void **state)
{
	static const struct ttmon_tt_core_range all = { 0, 0, TTMON_TT_GRID_MAX - 1, TTMON_TT_GRID_MAX - 1 };
	struct ttmon_tt_cores c = { 0 };
	uint64_t n = 0, cores = TTMON_TT_GRID_MAX * TTMON_TT_GRID_MAX;

	(void)state;
	while (n < 10000 && !ttmon_tt_cores_add(&c, &all, 1, 100 * n, 100 * n + 50))
		n++;
	assert_true(n > 50 && n < 1000);
	assert_int_equal(c.bytes, n * 50 * cores);
	while (n-- > 0)
		ttmon_tt_cores_sub(&c, &all, 1, 100 * n, 100 * n + 50);
	assert_int_equal(c.bytes, 0);
	assert_int_equal(c.n, 0);
	ttmon_tt_cores_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(union_is_the_map),
		cmocka_unit_test(what_is_no_range_is_refused),
		cmocka_unit_test(there_is_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
