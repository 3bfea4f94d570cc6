// SPDX-License-Identifier: GPL-2.0-only
/* test_arena.c: pieces of pinned regions (lib/pin/arena), against a map of single pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/pin/arena.h"

#define PAGES  4096
#define PIECES 300

static uint64_t rng = 1;

static uint64_t below(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

static uint8_t map[PAGES]; /* 0: not pinned, 1: free, 2: given out */
static uint8_t region[PAGES];

/* The longest stretch of free pages of one region. */
static uint64_t longest(void)
{
	uint64_t best = 0, now = 0;

	for (unsigned int i = 0; i < PAGES; i++) {
		now = map[i] == 1 ? (i && region[i] == region[i - 1] ? now + 1 : 1) : 0;
		best = now > best ? now : best;
	}
	return best;
}

static void paint(uint64_t page, uint64_t pages, uint8_t was, uint8_t now)
{
	for (uint64_t i = page; i < page + pages; i++) {
		assert_int_equal(map[i], was);
		map[i] = now;
	}
}

/* No page is given out twice, what fits is found, what is given back grows together, regions stay apart. */
static void pages_are_given_out_once(void **state)
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
			uint64_t pages = 1 + below(below(4) ? 20 : 200), page, back;

			if (!below(100) && end + 300 < PAGES) {
				uint64_t more = 1 + below(300);

				assert_int_equal(ttmon_arena_add(&a, end, more), 0);
				memset(region + end, (int)++regions, more);
				paint(end, more, 0, 1);
				end += more;
			} else if (!below(200) && ttmon_arena_give_back(&a, 1 + below(100), &page, &back)) {
				paint(page, back, 1, 0);
				assert_true(!page || region[page - 1] != region[page]);
				memset(region + page, 0, back);
			} else if (below(2) && n < PIECES) {
				uint64_t room = longest();

				piece[n] = ttmon_arena_take(&a, pages);
				assert_int_equal(piece[n] != TTMON_ARENA_NONE, room >= pages);
				if (piece[n] == TTMON_ARENA_NONE)
					continue;
				assert_int_equal(a.v[piece[n]].pages, pages);
				paint(a.v[piece[n]].page, pages, 1, 2);
				used += pages;
				n++;
			} else if (n) {
				unsigned int k = (unsigned int)below(n);

				paint(a.v[piece[k]].page, a.v[piece[k]].pages, 2, 1);
				used -= a.v[piece[k]].pages;
				ttmon_arena_put(&a, piece[k]);
				piece[k] = piece[--n];
			}
			assert_int_equal(a.used, used);
		}
		ttmon_arena_fini(&a);
	}
}

static void regions_grow(void **state)
{
	struct ttmon_arena a;

	(void)state;
	ttmon_arena_init(&a);
	/* At first what is known. */
	assert_int_equal(ttmon_arena_more(&a, 10, 1600, 0), 1600);
	assert_int_equal(ttmon_arena_more(&a, 2000, 1600, 0), 2000);
	assert_int_equal(ttmon_arena_more(&a, 10, 0, 70), 10);
	assert_false(ttmon_arena_has_room(&a, 10, 1600));
	assert_int_equal(ttmon_arena_add(&a, 0, 1600), 0);
	assert_true(ttmon_arena_has_room(&a, 1700, 1600) && !ttmon_arena_has_room(&a, 1701, 1600));
	/* Then a thirty-second, or what a call is worth up to a sixteenth: whole requests. */
	assert_int_equal(ttmon_arena_more(&a, 30, 1600, 0), 30);
	assert_int_equal(ttmon_arena_more(&a, 20, 1600, 0), 40);
	assert_int_equal(ttmon_arena_more(&a, 20, 1600, 1000), 100);
	assert_int_equal(ttmon_arena_more(&a, 300, 1600, 0), 300);
	/* The more there is beyond that, the more at a time. */
	assert_int_equal(ttmon_arena_add(&a, 1600, 800), 0);
	assert_int_not_equal(ttmon_arena_take(&a, 1500), TTMON_ARENA_NONE);
	assert_int_equal(ttmon_arena_more(&a, 200, 1600, 0), 400);
	ttmon_arena_fini(&a);
}

static void sizes_of_all_kinds(void **state)
{
	struct ttmon_arena a;
	uint64_t page, pages;

	(void)state;
	for (unsigned int bits = 0; bits < 60; bits++) {
		uint64_t size = (1ULL << bits) + bits;
		uint32_t i;

		ttmon_arena_init(&a);
		assert_int_equal(ttmon_arena_add(&a, 7, size), 0);
		assert_int_equal(ttmon_arena_take(&a, size + 1), TTMON_ARENA_NONE);
		i = ttmon_arena_take(&a, size);
		assert_int_equal(a.v[i].page, 7);
		assert_false(ttmon_arena_give_back(&a, 0, &page, &pages));
		ttmon_arena_put(&a, i);
		assert_false(ttmon_arena_give_back(&a, size + 1, &page, &pages));
		assert_true(ttmon_arena_give_back(&a, size, &page, &pages));
		assert_int_equal(pages, size);
		assert_int_equal(a.pages, 0);
		ttmon_arena_fini(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_given_out_once),
		cmocka_unit_test(regions_grow),
		cmocka_unit_test(sizes_of_all_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
