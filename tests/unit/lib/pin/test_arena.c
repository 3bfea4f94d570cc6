// SPDX-License-Identifier: GPL-2.0-only
/* test_arena.c: pieces of pinned regions (lib/pin/arena), against a map of single units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/pin/arena.h"

#define UNITS  4096
#define PIECES 300

static uint64_t rng = 1;

static uint64_t below(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

static uint8_t map[UNITS]; /* 0: not pinned, 1: free, 2: given out */
static uint8_t region[UNITS];

/* Is there a place for so many in one region? What takes a page or more begins at one. */
static bool has_place(uint64_t units)
{
	uint64_t free = 0;

	for (uint64_t i = 0; i < UNITS; i++) {
		bool goes_on = free && region[i] == region[i - 1];

		if (map[i] != 1)
			free = 0;
		else if (goes_on || units < TTMON_ARENA_PAGE || i % TTMON_ARENA_PAGE == 0)
			free = goes_on ? free + 1 : 1;
		else
			free = 0;
		if (free >= units)
			return true;
	}
	return false;
}

static void paint(uint64_t unit, uint64_t units, uint8_t was, uint8_t now)
{
	for (uint64_t i = unit; i < unit + units; i++) {
		assert_int_equal(map[i], was);
		map[i] = now;
	}
}

/*
 * No unit is given out twice, what fits is found, what is given back grows together, regions stay
 * apart.
 */
static void units_are_given_out_once(void **state)
{
	struct ttmon_arena a;

	(void)state;
	for (unsigned int round = 0; round < 40; round++) {
		uint32_t piece[PIECES];
		unsigned int n = 0, regions = 0;
		uint64_t end = 0, used = 0;

		ttmon_arena_init(&a);
		memset(map, 0, sizeof(map));
		memset(region, 0, sizeof(region));
		for (unsigned int step = 0; step < 3000; step++) {
			uint64_t units = 1 + below(below(4) ? 20 : 200), unit, back;

			if (!below(100) && end + 300 < UNITS) {
				uint64_t more = TTMON_ARENA_PAGE * (1 + below(37));

				assert_int_equal(ttmon_arena_add(&a, end, more), 0);
				memset(region + end, (int)++regions, more);
				paint(end, more, 0, 1);
				end += more;
			} else if (!below(200) && ttmon_arena_give_back(&a, 1 + below(100), &unit, &back)) {
				paint(unit, back, 1, 0);
				assert_true(!unit || region[unit - 1] != region[unit]);
				memset(region + unit, 0, back);
			} else if (below(2) && n < PIECES) {
				bool place = has_place(units);

				piece[n] = ttmon_arena_take(&a, units);
				assert_int_equal(piece[n] != TTMON_ARENA_NONE, place);
				if (piece[n] == TTMON_ARENA_NONE)
					continue;
				assert_int_equal(a.v[piece[n]].units, units);
				assert_true(units < TTMON_ARENA_PAGE || a.v[piece[n]].unit % TTMON_ARENA_PAGE == 0);
				paint(a.v[piece[n]].unit, units, 1, 2);
				used += units;
				n++;
			} else if (n) {
				unsigned int k = (unsigned int)below(n);

				paint(a.v[piece[k]].unit, a.v[piece[k]].units, 2, 1);
				used -= a.v[piece[k]].units;
				ttmon_arena_put(&a, piece[k]);
				piece[k] = piece[--n];
			}
			assert_int_equal(a.used, used);
		}
		ttmon_arena_fini(&a);
	}
}

static enum ttmon_arena_step serve(struct ttmon_arena *a, struct ttmon_arena_want w, uint64_t *units)
{
	uint32_t piece;
	uint64_t unit;

	return ttmon_arena_serve(a, &w, &piece, &unit, units);
}

/* The figures are worked out by hand, from the comment of ttmon_arena_serve(). */
static void regions_grow(void **state)
{
	struct ttmon_arena a;
	uint64_t units;
	uint32_t all;

	(void)state;
	ttmon_arena_init(&a);
	/* At first what is known, or what is requested, in whole pages. */
	assert_int_equal(serve(&a, (struct ttmon_arena_want){ .units = 10, .known = 1600 }, &units), TTMON_ARENA_ADD);
	assert_int_equal(units, 1600);
	assert_int_equal(serve(&a, (struct ttmon_arena_want){ .units = 2000, .known = 1600 }, &units), TTMON_ARENA_ADD);
	assert_int_equal(units, 2000);
	assert_int_equal(serve(&a, (struct ttmon_arena_want){ .units = 10, .call = 70 }, &units), TTMON_ARENA_ADD);
	assert_int_equal(units, 16);
	assert_int_equal(ttmon_arena_add(&a, 0, 1600), 0);
	/*
	 * A sixteenth over what is known would be used: left pageable, but where it pays alone. Past that
	 * another region takes its place.
	 */
	assert_int_equal(serve(&a, (struct ttmon_arena_want){ .units = 1700, .known = 1600 }, &units),
			 TTMON_ARENA_LEAVE);
	assert_int_equal(serve(&a, (struct ttmon_arena_want){ .units = 1701, .known = 1600, .call = 1601 }, &units),
			 TTMON_ARENA_ADD);
	assert_int_equal(serve(&a, (struct ttmon_arena_want){ .units = 1700, .known = 1600, .alone = true }, &units),
			 TTMON_ARENA_GIVE_BACK);
	assert_int_equal(units, 1600);
	assert_int_equal(a.units, 0);
	assert_int_equal(ttmon_arena_add(&a, 0, 1600), 0);
	all = ttmon_arena_take(&a, 1600);
	assert_int_not_equal(all, TTMON_ARENA_NONE);
	/* What was freed is waited for, as long as there is as much as was known to be needed. */
	assert_int_equal(serve(&a, (struct ttmon_arena_want){ .units = 24, .known = 1600, .waiting = true }, &units),
			 TTMON_ARENA_WAIT);
	assert_int_equal(serve(&a, (struct ttmon_arena_want){ .units = 24, .known = 1608, .waiting = true }, &units),
			 TTMON_ARENA_ADD);
	/* A thirty-second, or what a call is worth up to a sixteenth: whole requests. */
	assert_int_equal(serve(&a, (struct ttmon_arena_want){ .units = 24, .known = 1600, .alone = true }, &units),
			 TTMON_ARENA_ADD);
	assert_int_equal(units, 48);
	assert_int_equal(serve(&a, (struct ttmon_arena_want){ 24, 1600, 1000, false, true }, &units), TTMON_ARENA_ADD);
	assert_int_equal(units, 96);
	assert_int_equal(serve(&a, (struct ttmon_arena_want){ 304, 1600, 0, false, true }, &units), TTMON_ARENA_ADD);
	assert_int_equal(units, 304);
	/* The more there is beyond that, the more at a time. */
	assert_int_equal(ttmon_arena_add(&a, 1600, 800), 0);
	assert_int_not_equal(ttmon_arena_take(&a, 800), TTMON_ARENA_NONE);
	assert_int_equal(serve(&a, (struct ttmon_arena_want){ .units = 200, .known = 1600 }, &units), TTMON_ARENA_ADD);
	assert_int_equal(units, 400);
	ttmon_arena_put(&a, all);
	assert_int_equal(serve(&a, (struct ttmon_arena_want){ .units = 200, .known = 1600 }, &units),
			 TTMON_ARENA_TAKEN);
	ttmon_arena_fini(&a);
}

static void sizes_of_all_kinds(void **state)
{
	struct ttmon_arena a;
	uint64_t unit, units;

	(void)state;
	for (unsigned int bits = 3; bits < 60; bits++) {
		uint64_t size = (1ULL << bits) + TTMON_ARENA_PAGE * bits;
		uint32_t i;

		ttmon_arena_init(&a);
		assert_int_equal(ttmon_arena_add(&a, 8, size), 0);
		assert_int_equal(ttmon_arena_take(&a, size + 1), TTMON_ARENA_NONE);
		i = ttmon_arena_take(&a, size);
		assert_int_equal(a.v[i].unit, 8);
		assert_false(ttmon_arena_give_back(&a, 0, &unit, &units));
		ttmon_arena_put(&a, i);
		assert_false(ttmon_arena_give_back(&a, size + 1, &unit, &units));
		assert_true(ttmon_arena_give_back(&a, size, &unit, &units));
		assert_int_equal(units, size);
		assert_int_equal(a.units, 0);
		ttmon_arena_fini(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_are_given_out_once),
		cmocka_unit_test(regions_grow),
		cmocka_unit_test(sizes_of_all_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
