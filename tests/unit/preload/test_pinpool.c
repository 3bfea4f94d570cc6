// SPDX-License-Identifier: GPL-2.0-only
/* test_pinpool.c: pages counted, and the cache of pinned blocks with its promise (preload/pool.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "preload/pool.h"

#define PAGE TTMON_PIN_PAGE
#define MIB  (1ull << 20)

static void pages_are_distinct(void **state)
{
	struct ttmon_pin_pages p = { 0 };

	(void)state;
	ttmon_pin_pages_add(&p, 16 * PAGE, 3 * PAGE);
	assert_int_equal(p.now, 3);
	ttmon_pin_pages_add(&p, 19 * PAGE + 512, 100);	     /* a page of its own */
	ttmon_pin_pages_add(&p, 19 * PAGE + 1024, 2 * PAGE); /* begins in that one */
	assert_int_equal(p.now, 3 + 1 + 2);
	ttmon_pin_pages_add(&p, 22 * PAGE, PAGE);
	ttmon_pin_pages_add(&p, 21 * PAGE + 2048, 10); /* in the third page of the one before */
	assert_int_equal(p.now, 7);
	assert_int_equal(p.total, 3 + 1 + 3 + 1 + 1);
	assert_int_equal(p.pins, 5);
	assert_int_equal(ttmon_pin_pages_del(&p, 19 * PAGE + 512), PAGE - 512);
	assert_int_equal(p.now, 7);
	assert_int_equal(ttmon_pin_pages_del(&p, 19 * PAGE + 1024), 3 * PAGE - 1024);
	assert_int_equal(p.now, 5); /* the small one still holds the last page */
	assert_int_equal(ttmon_pin_pages_del(&p, 19 * PAGE), 0);
	assert_int_equal(p.peak, 7);
	/* Ranges that cannot be distinguished are left out. */
	ttmon_pin_pages_add(&p, 17 * PAGE, 8 * PAGE);
	ttmon_pin_pages_add(&p, 16 * PAGE, PAGE);
	ttmon_pin_pages_add(&p, 15 * PAGE, 3 * PAGE);
	ttmon_pin_pages_add(&p, UINT64_MAX - 5, 100);
	ttmon_pin_pages_add(&p, PAGE, 0);
	assert_int_equal(p.uncounted, 3);
	assert_int_equal(p.now, 5);
	/* A free that failed takes nothing away, and is no pin. */
	ttmon_pin_pages_put_back(&p, 16 * PAGE, ttmon_pin_pages_del(&p, 16 * PAGE));
	assert_int_equal(p.now, 5);
	assert_int_equal(p.pins, 5);
	ttmon_pin_pages_fini(&p);
}

/* The same by bits: any blocks that do not overlap, down to bytes. */
static void pages_as_counted_one_by_one(void **state)
{
	enum { BLOCKS = 64, PAGES = 64 };
	struct {
		uint64_t addr, size;
	} live[BLOCKS] = { 0 };
	struct ttmon_pin_pages p = { 0 };

	(void)state;
	srand(7);
	for (unsigned int round = 0; round < 20000; round++) {
		unsigned int i = (unsigned int)rand() % BLOCKS;
		uint64_t addr = PAGE + (uint64_t)rand() % (PAGES * PAGE), size = 1 + (uint64_t)rand() % (3 * PAGE),
			 now = 0;
		bool seen[PAGES + 8] = { false }, overlap = false;

		if (live[i].size) {
			assert_true(ttmon_pin_pages_del(&p, live[i].addr) >= live[i].size);
			live[i].size = 0;
		} else {
			for (unsigned int k = 0; k < BLOCKS; k++)
				overlap |= live[k].size && addr < live[k].addr + live[k].size &&
					   live[k].addr < addr + size;
			if (overlap)
				continue;
			ttmon_pin_pages_add(&p, addr, size);
			live[i].addr = addr;
			live[i].size = size;
		}
		for (unsigned int k = 0; k < BLOCKS; k++)
			for (uint64_t a = live[k].addr / PAGE;
			     live[k].size && a <= (live[k].addr + live[k].size - 1) / PAGE; a++) {
				now += !seen[a];
				seen[a] = true;
			}
		assert_int_equal(p.now, now);
	}
	assert_int_equal(p.uncounted, 0);
	ttmon_pin_pages_fini(&p);
}

static bool all_ready(void *ctx, uint32_t block)
{
	(void)ctx;
	(void)block;
	return true;
}

static bool ready_from(void *ctx, uint32_t block)
{
	return block >= *(uint32_t *)ctx;
}

static void takes_what_fits(void **state)
{
	static struct ttmon_pin_pool p;
	uint32_t from = 3;

	(void)state;
	memset(&p, 0, sizeof(p));
	assert_int_equal(ttmon_pin_pool_take(&p, 1, all_ready, NULL), TTMON_PIN_NONE);
	assert_true(ttmon_pin_pool_put(&p, 1, 17 * PAGE));
	assert_true(ttmon_pin_pool_put(&p, 2, 16 * PAGE));
	assert_true(ttmon_pin_pool_put(&p, 3, 16 * PAGE));
	assert_true(ttmon_pin_pool_put(&p, 4, 19 * PAGE));
	assert_int_equal(p.pages, 68);
	/* As many pages before more pages, the older before the younger; the busy one is passed over. */
	assert_int_equal(ttmon_pin_pool_take(&p, 16 * PAGE, ready_from, &from), 3);
	assert_int_equal(p.busy, 1);
	assert_int_equal(ttmon_pin_pool_take(&p, 15 * PAGE + 1, all_ready, NULL), 2);
	assert_int_equal(ttmon_pin_pool_take(&p, 15 * PAGE + 1, all_ready, NULL), 1); /* the next best */
	assert_int_equal(ttmon_pin_pool_take(&p, 9 * PAGE, all_ready, NULL),
			 TTMON_PIN_NONE); /* more than half as many again */
	assert_int_equal(ttmon_pin_pool_take(&p, 20 * PAGE, all_ready, NULL), TTMON_PIN_NONE);
	assert_int_equal(ttmon_pin_pool_take(&p, 17 * PAGE, all_ready, NULL), 4);
	assert_int_equal(p.hits, 4);
	assert_int_equal(p.pages, 0);
	/* As many pages, and yet too small. */
	assert_true(ttmon_pin_pool_put(&p, 5, 5000));
	assert_int_equal(ttmon_pin_pool_take(&p, 5001, all_ready, NULL), TTMON_PIN_NONE);
	assert_int_equal(ttmon_pin_pool_take(&p, 4097, all_ready, NULL), 5);
}

static void asks_few_and_holds_few(void **state)
{
	static struct ttmon_pin_pool p;
	uint32_t from = TTMON_PIN_CACHED + 1;

	(void)state;
	memset(&p, 0, sizeof(p));
	for (uint32_t i = 0; i < TTMON_PIN_CACHED; i++)
		assert_true(ttmon_pin_pool_put(&p, i, PAGE));
	assert_false(ttmon_pin_pool_put(&p, 9999, PAGE));
	assert_int_equal(ttmon_pin_pool_take(&p, PAGE, ready_from, &from), TTMON_PIN_NONE);
	assert_int_equal(p.busy, 8);
	for (uint32_t i = 0; i < TTMON_PIN_CACHED; i++)
		assert_int_equal(ttmon_pin_pool_oldest(&p), i);
	assert_int_equal(ttmon_pin_pool_oldest(&p), TTMON_PIN_NONE);
	assert_int_equal(p.pages, 0);
}

/*
 * Live and cached pages never pass the larger of the limit and what is live; and nothing goes that
 * need not.
 */
static void keeps_its_promise(void **state)
{
	enum { LIVE = 200 };
	static const uint64_t limits[] = { 0, 100, 5000, 1000000 };
	static struct ttmon_pin_pool p;
	uint64_t size[LIVE], live, hits = 0;

	(void)state;
	for (unsigned int l = 0; l < ARRAY_SIZE(limits); l++) {
		memset(&p, 0, sizeof(p));
		memset(size, 0, sizeof(size));
		p.limit = limits[l];
		live = 0;
		srand(1);
		for (unsigned int round = 0; round < 50000; round++) {
			uint32_t i = (uint32_t)rand() % LIVE, before = p.n;
			uint64_t want = (1 + (uint64_t)rand() % 50) * PAGE, pages = ttmon_pin_pages_of(want);

			if (size[i]) {
				assert_true(ttmon_pin_pool_put(&p, i, size[i]));
				live -= ttmon_pin_pages_of(size[i]);
				size[i] = 0;
				pages = 0;
			} else if (ttmon_pin_pool_take(&p, want, all_ready, NULL) != TTMON_PIN_NONE) {
				hits++;
				assert_int_equal(p.n, before - 1);
			}
			/* Whether it came from the cache or is made now: what is over goes, and no block more. */
			while (ttmon_pin_pool_full(&p, live + p.pages, pages)) {
				assert_true(p.n > 0);
				assert_true(live + p.pages + pages > p.limit);
				assert_true(ttmon_pin_pool_excess(&p, live + p.pages, pages) != TTMON_PIN_NONE);
			}
			assert_int_equal(ttmon_pin_pool_excess(&p, live + p.pages, pages), TTMON_PIN_NONE);
			live += pages;
			if (pages)
				size[i] = want;
			assert_true(live + p.pages <= MAX(p.limit, live));
		}
		if (!limits[l])
			assert_int_equal(hits, 0);
		if (limits[l] == 1000000)
			assert_int_equal(p.evicted, 0);
	}
	assert_true(hits > 10000);
}

static void oldest_goes_first(void **state)
{
	static struct ttmon_pin_pool p;

	(void)state;
	memset(&p, 0, sizeof(p));
	p.limit = 10;
	for (uint32_t i = 0; i < 3; i++)
		assert_true(ttmon_pin_pool_put(&p, i, 3 * PAGE));
	/* 9 cached, 1 live: 10 are allowed, and one more is not. */
	assert_int_equal(ttmon_pin_pool_excess(&p, 10, 0), TTMON_PIN_NONE);
	assert_int_equal(ttmon_pin_pool_excess(&p, 10, 1), 0);
	assert_int_equal(ttmon_pin_pool_excess(&p, 7, 1), TTMON_PIN_NONE);
	/* More than the limit is requested: nothing else stays cached. */
	assert_int_equal(ttmon_pin_pool_excess(&p, 7, 11), 1);
	assert_int_equal(ttmon_pin_pool_excess(&p, 4, 11), 2);
	assert_int_equal(ttmon_pin_pool_excess(&p, 1, 11), TTMON_PIN_NONE);
	assert_int_equal(p.evicted, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_distinct), cmocka_unit_test(pages_as_counted_one_by_one),
		cmocka_unit_test(takes_what_fits),    cmocka_unit_test(asks_few_and_holds_few),
		cmocka_unit_test(keeps_its_promise),  cmocka_unit_test(oldest_goes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
