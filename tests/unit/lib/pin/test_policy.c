// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_policy.c: ways of pinning: figures worked out by hand. The sources are compiled in here once
 * more, with malloc and calloc replaced, for the test in which every allocation of memory fails.
 * Random runs are in test_policy_model.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/feed/policy_feed.h"

#include "tests/unit/feed/torture.h"

#include "lib/pin/policy.c"
#include "lib/pin/policy_best.c"
#include "lib/pin/policy_pool.c"
#include "lib/pin/policy_region.c"
#include "lib/pin/arena.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

/* ---- by hand ---- */

/*
 *	    100  200  300  400  500  600  700  900
 *	A    |---------------------|                  2 pages, 10000 bytes: saves 5000
 *	B         |---------------------|             2 pages, never copied
 *	D              |----|                         3 pages (custom), 2000 bytes: saves 1000
 *	C                               |---------|   1 page, 1000 bytes: saves 500
 *	E                                    |-|      2 pages, never copied
 *	and 4000 bytes from a mapping
 */
static void by_hand(struct model *m)
{
	begin(m, 1000);
	made(m, TTMON_METHOD_HOST_ALLOC, 8192, 100, 500, 10000);
	made(m, TTMON_METHOD_REGISTERED, 5000, 200, 600, 0);
	made(m, TTMON_METHOD_CUSTOM, 12288, 300, 400, 2000);
	made(m, TTMON_METHOD_HOST_ALLOC, 4096, 600, 900, 1000);
	made(m, TTMON_METHOD_POOL, 8000, 700, 750, 0);
	made(m, TTMON_METHOD_MMAP, 1 << 20, 0, 1000, 4000);
	made(m, TTMON_METHOD_DEVICE, 1 << 20, 0, 1000, 0);
	made(m, TTMON_METHOD_MANAGED, 1 << 20, 0, 1000, 0);
}

static void figures_by_hand(void **state)
{
	static struct model m;
	struct ttmon_policy_result r;

	(void)state;
	by_hand(&m);
	r = play(&m, TTMON_POLICY_NONE);
	IS(r, pins, 0);
	IS(r, peak_pages, 0);
	IS(r, least_pages, 0);
	IS(r, moved_bytes, 17000);
	IS(r, moved_pinned_bytes, 0);
	IS(r, transfer_ns, 17000);
	IS(r, pinning_ns, 0);
	IS(r, allocs, 5);

	r = play(&m, TTMON_POLICY_ALL);
	IS(r, pins, 5);
	IS(r, pages_pinned, 10);
	IS(r, peak_pages, 7);
	IS(r, peak_ns, 300);
	IS(r, least_pages, 5);
	IS(r, requested_peak, 8192 + 5000 + 12288);
	IS(r, reserved_peak, 8192 + 5000 + 12288);
	IS(r, mean_pages, 2); /* 2300 page-ns in 1000 */
	IS(r, moved_pinned_bytes, 13000);
	IS(r, transfer_ns, 6500 + 4000);
	IS(r, pinning_ns, 10000);

	/* E finds the block of B; D is rounded to four pages. */
	r = play(&m, TTMON_POLICY_PYTORCH);
	IS(r, pins, 4);
	IS(r, pages_pinned, 9);
	IS(r, peak_pages, 9);
	IS(r, peak_ns, 600);
	IS(r, requested_peak, 8192 + 5000 + 12288);
	IS(r, reserved_peak, 8192 + 8192 + 16384 + 4096);
	IS(r, mean_pages, 7); /* 2 x 900 + 2 x 800 + 4 x 700 + 1 x 400 */
	IS(r, pinning_ns, 9000);
	IS(r, transfer_ns, 10500);

	/* A pays, C fits below its peak, D would cost more than it saves. */
	r = play(&m, TTMON_POLICY_HINDSIGHT);
	IS(r, pins, 1);
	IS(r, pages_pinned, 2);
	IS(r, peak_pages, 2);
	IS(r, peak_ns, 100);
	IS(r, least_pages, 2);
	IS(r, pinned_allocs, 2);
	IS(r, moved_pinned_bytes, 11000);
	IS(r, transfer_ns, 5500 + 6000);
	IS(r, pinning_ns, 2000);
	IS(r, requested_peak, 8192);
	IS(r, mean_pages, 1); /* 1100 */

	/* The profile looks at each site by itself: C does not pay for its page. */
	r = play_advice(&m, &m);
	IS(r, pins, 1);
	IS(r, peak_pages, 2);
	IS(r, mean_pages, 2); /* the block stays for later: 2 x 900 */
	IS(r, pinned_allocs, 1);
	IS(r, moved_pinned_bytes, 10000);
	IS(r, transfer_ns, 5000 + 7000);
	IS(r, pinning_ns, 2000);
	IS(r, unknown, 0);
}

static void pytorch_thresholds(void **state)
{
	static struct model m;
	struct ttmon_policy_result r;

	(void)state;
	begin(&m, 1000);
	made(&m, TTMON_METHOD_HOST_ALLOC, 9 * PAGE, 0, 100, 0);
	made(&m, TTMON_METHOD_HOST_ALLOC, 10 * PAGE, 200, 300, 0);
	made(&m, TTMON_METHOD_HOST_ALLOC, 9 * PAGE, 400, 500, 0);
	made(&m, TTMON_METHOD_HOST_ALLOC, 3 * PAGE, 600, 700, 0);
	/* 16 pages three times over, and 4 */
	r = play(&m, TTMON_POLICY_PYTORCH);
	IS(r, pins, 2);
	IS(r, peak_pages, 20);
	/* 9, which is too small for 10, which will do for 9 and is not needed: that of 9 is free. */
	r = play_with(&m, TTMON_POLICY_PYTORCH, (struct ttmon_policy_cfg){ .torch_round_max = 8 * PAGE });
	IS(r, pins, 3);
	IS(r, peak_pages, 9 + 10 + 4);
	/* Neither rounded nor kept. */
	r = play_with(&m, TTMON_POLICY_PYTORCH, (struct ttmon_policy_cfg){ .torch_cached_max = 8 * PAGE });
	IS(r, pins, 4);
	IS(r, peak_pages, 10);
	/* Kept where it is no larger. */
	r = play_with(&m, TTMON_POLICY_PYTORCH, (struct ttmon_policy_cfg){ .torch_cached_max = 16 * PAGE });
	IS(r, pins, 2);
	IS(r, peak_pages, 20);
	/* 10 comes first: a request for 9 takes it, being in the same power of two. */
	m.allocs[0].size = 10 * PAGE;
	m.allocs[1].size = 9 * PAGE;
	r = play_with(&m, TTMON_POLICY_PYTORCH, (struct ttmon_policy_cfg){ .torch_round_max = 1 });
	IS(r, pins, 2);
	IS(r, peak_pages, 13);
	/* Less than a page is a page, but not for its own count of reserved bytes. */
	begin(&m, 1000);
	made(&m, TTMON_METHOD_HOST_ALLOC, 100, 0, 100, 0);
	r = play(&m, TTMON_POLICY_PYTORCH);
	IS(r, peak_pages, 1);
	IS(r, reserved_peak, 128);
}

static void pytorch_waits_for_copies(void **state)
{
	static struct model m;
	struct ttmon_run_alloc *a;

	(void)state;
	begin(&m, 10000);
	/* Copied last at 100, one of two copies of 4000 bytes: done 1000 ns later. */
	a = made(&m, TTMON_METHOD_HOST_ALLOC, PAGE, 0, 150, 4000);
	a->h2d_copies = 2;
	a->last_copy_ns = 100;
	a->async_copies = 1;
	made(&m, TTMON_METHOD_HOST_ALLOC, PAGE, 1099, 1200, 0);
	IS(play(&m, TTMON_POLICY_PYTORCH), pins, 2);
	m.allocs[1].alloc_ns = 1100;
	IS(play(&m, TTMON_POLICY_PYTORCH), pins, 1);
	/* A synchronous copy is done when its call is. */
	m.allocs[1].alloc_ns = 200;
	IS(play(&m, TTMON_POLICY_PYTORCH), pins, 2);
	a->async_copies = 0;
	IS(play(&m, TTMON_POLICY_PYTORCH), pins, 1);
	/* One that is done waits behind one that is not. */
	begin(&m, 10000);
	a = made(&m, TTMON_METHOD_HOST_ALLOC, 4 * PAGE, 0, 150, 8000);
	a->last_copy_ns = 100;
	a->async_copies = 1;
	a = made(&m, TTMON_METHOD_HOST_ALLOC, PAGE, 0, 160, 20);
	a->last_copy_ns = 100;
	a->async_copies = 1;
	made(&m, TTMON_METHOD_HOST_ALLOC, PAGE, 1000, 1100, 0);
	IS(play(&m, TTMON_POLICY_PYTORCH), pins, 3);
	m.allocs[2].alloc_ns = 4100;
	m.allocs[2].free_ns = 4200;
	IS(play(&m, TTMON_POLICY_PYTORCH), pins, 2);
}

static void processes_share_nothing(void **state)
{
	static struct model m;
	struct ttmon_policy_result r;

	(void)state;
	begin(&m, 1000);
	made(&m, TTMON_METHOD_HOST_ALLOC, PAGE, 0, 100, 8000);
	made(&m, TTMON_METHOD_HOST_ALLOC, PAGE, 200, 300, 8000)->proc = 1;
	m.allocs[1].site = 1;
	/* The first one lives on: its cache does. */
	r = play(&m, TTMON_POLICY_PYTORCH);
	IS(r, pins, 2);
	IS(r, peak_pages, 2);
	m.procs[0].last_ns = 150;
	r = play(&m, TTMON_POLICY_PYTORCH);
	IS(r, pins, 2);
	IS(r, peak_pages, 1);
	r = play_advice(&m, &m);
	IS(r, pins, 2);
	IS(r, peak_pages, 1);
	/* And where it ends at the moment at which the other begins. */
	m.procs[0].last_ns = 200;
	IS(play(&m, TTMON_POLICY_PYTORCH), peak_pages, 1);
}

static void advice_reuses_blocks(void **state)
{
	static struct model m, twice;
	struct ttmon_policy_result r;

	(void)state;
	begin(&m, 10000);
	made(&m, TTMON_METHOD_HOST_ALLOC, 16 * PAGE, 0, 100, 1000000);
	made(&m, TTMON_METHOD_HOST_ALLOC, 18 * PAGE, 200, 300, 1000000);
	made(&m, TTMON_METHOD_HOST_ALLOC, 16 * PAGE, 400, 500, 1000000);
	made(&m, TTMON_METHOD_HOST_ALLOC, 11 * PAGE, 600, 700, 1000000);
	/* One region of what is known to be needed, pinned by one call. */
	r = play_advice(&m, &m);
	IS(r, pins, 1);
	IS(r, unpins, 0);
	IS(r, pages_pinned, 18);
	IS(r, peak_pages, 18);
	IS(r, pinned_allocs, 4);
	IS(r, requested_peak, 18 * PAGE);
	IS(r, wait_ns, 0);
	/*
	 * Copies of the second have to be done: they end at 299 + 500,000, and the third is requested at 400.
	 */
	m.allocs[1].async_copies = 1;
	m.allocs[1].last_copy_ns = 299;
	r = play_advice(&m, &m);
	IS(r, pins, 1);
	IS(r, peak_pages, 18);
	IS(r, wait_ns, 500299 - 400);
	IS(r, pinning_ns, 18 * 1000 + 500299 - 400);
	m.allocs[1].async_copies = 0;
	/* More than was known to be needed: what is free goes first. */
	begin(&twice, 10000);
	made(&twice, TTMON_METHOD_HOST_ALLOC, 16 * PAGE, 0, 100, 1000000)->site = 1;
	made(&twice, TTMON_METHOD_HOST_ALLOC, 36 * PAGE, 200, 300, 1000000)->site = 1;
	r = play_advice(&twice, &m);
	IS(r, pins, 2);
	IS(r, unpins, 1);
	IS(r, pages_pinned, 18 + 36);
	IS(r, peak_pages, 36);
}

/* There are free pieces of two pages, three of them not adjacent, and four pages are requested. */
static void what_does_not_fit_is_left_out(void **state)
{
	static struct model m;
	struct ttmon_policy_result r;

	(void)state;
	for (unsigned int more = 0; more < 2; more++) {
		begin(&m, 10000);
		for (unsigned int i = 0; i < 5; i++)
			made(&m, TTMON_METHOD_HOST_ALLOC, 2 * PAGE, i, i % 2 ? 1000 : 200, more ? 10000 : 4200)->site =
				1;
		made(&m, TTMON_METHOD_HOST_ALLOC, 4 * PAGE, 300, 400, 300)->site = 1;
		m.sites[1].exact = m.sites[1].names = 5;
		r = play_advice(&m, &m);
		/* 10 pages pay, 14 would not: a region that is used again, and none of it by itself. */
		IS(r, left_out, !more);
		IS(r, pins, 1 + more);
		IS(r, peak_pages, 10 + 4 * more);
		IS(r, moved_pinned_bytes, more ? 50300 : 21000);
	}
}

/* A call that pins costs 10 pages, one that unpins 5. */
static void calls_have_a_price(void **state)
{
	static struct model m;
	struct ttmon_policy_cfg cfg = { .cost = test_cost };
	struct ttmon_policy_result r;

	(void)state;
	cfg.cost.pin_call_ns = 10000;
	cfg.cost.unpin_call_ns = 5000;
	begin(&m, 10000);
	made(&m, TTMON_METHOD_HOST_ALLOC, 4 * PAGE, 0, 100, 30000);
	made(&m, TTMON_METHOD_HOST_ALLOC, 4 * PAGE, 200, 300, 10000);
	made(&m, TTMON_METHOD_HOST_ALLOC, 4 * PAGE, 400, 10000, 0)->flags = TTMON_RUN_LIVE;
	assert_int_equal(ttmon_policy_simulate(&m.run, TTMON_POLICY_ALL, &cfg, &r), 0);
	IS(r, pins, 3);
	IS(r, unpins, 2);
	IS(r, calls_ns, 40000);
	IS(r, pinning_ns, 12000 + 40000);
	assert_int_equal(ttmon_policy_simulate(&m.run, TTMON_POLICY_PYTORCH, &cfg, &r), 0);
	IS(r, pins, 1);
	IS(r, unpins, 0);
	IS(r, pinning_ns, 4000 + 10000);
	/*
	 * 15000 and 5000 saved by the transfers, 4000 of pages and one call: that pays, at a higher price it
	 * does not.
	 */
	assert_int_equal(ttmon_policy_simulate(&m.run, TTMON_POLICY_HINDSIGHT, &cfg, &r), 0);
	IS(r, pins, 1);
	IS(r, pinning_ns, 4000 + 10000);
	IS(r, moved_pinned_bytes, 40000);
	cfg.cost.pin_call_ns = 17000;
	assert_int_equal(ttmon_policy_simulate(&m.run, TTMON_POLICY_HINDSIGHT, &cfg, &r), 0);
	IS(r, pins, 0);
}

/* Ordinary memory that should have been pinned: hindsight knows. */
static void hindsight_pins_mappings(void **state)
{
	static struct model m;
	struct ttmon_policy_result r;

	(void)state;
	begin(&m, 1000);
	made(&m, TTMON_METHOD_MMAP, 4 * PAGE, 0, 500, 100000);
	made(&m, TTMON_METHOD_MMAP, 400 * PAGE, 0, 500, 0);
	r = play(&m, TTMON_POLICY_HINDSIGHT);
	IS(r, peak_pages, 4);
	IS(r, moved_pinned_bytes, 100000);
	r = play(&m, TTMON_POLICY_ALL);
	IS(r, peak_pages, 0);
	IS(r, moved_bytes, 100000);
}

static void in_place_stays(void **state)
{
	static struct model m;
	struct ttmon_policy_result r;

	(void)state;
	begin(&m, 1000);
	made(&m, TTMON_METHOD_HOST_ALLOC, 3 * PAGE, 0, 500, 0)->flags = TTMON_RUN_IN_PLACE;
	made(&m, TTMON_METHOD_HOST_ALLOC, PAGE, 600, 700, 0);
	made(&m, TTMON_METHOD_HOST_ALLOC, 3 * PAGE, 600, 700, 10);
	r = play(&m, TTMON_POLICY_HINDSIGHT);
	IS(r, in_place_kept, 1);
	IS(r, peak_pages, 3);
	IS(r, pinned_allocs, 2); /* the third fits below */
	IS(r, least_pages, 3);
	r = play_advice(&m, &m);
	IS(r, in_place_kept, 1);
	IS(r, peak_pages, 3);
	IS(r, pinned_allocs, 1);
	IS(r, mean_pages, 2); /* 1500: it does not stay in the cache */
	/* Its pages are not for others. */
	m.allocs[2].h2d_bytes = 1000000;
	r = play_advice(&m, &m);
	IS(r, pins, 2);
	IS(r, pages_pinned, 6);
}

static void unknown_stays_as_it_was(void **state)
{
	static struct model m, other;
	struct ttmon_policy_result r;

	(void)state;
	begin(&other, 1000);
	made(&other, TTMON_METHOD_HOST_ALLOC, PAGE, 0, 100, 0);
	other.sites[1].exact = 1;
	other.sites[1].names = 2;
	begin(&m, 1000);
	made(&m, TTMON_METHOD_HOST_ALLOC, 3 * PAGE, 0, 500, 0);
	made(&m, TTMON_METHOD_CUSTOM, 5 * PAGE, 0, 500, 100000);
	r = play_advice(&m, &other);
	IS(r, unknown, 2);
	IS(r, peak_pages, 3);
	r = play_advice(&m, &m);
	IS(r, unknown, 0);
	IS(r, peak_pages, 5);
	assert_int_equal(
		ttmon_policy_simulate(&m.run, TTMON_POLICY_ADVICE, &(struct ttmon_policy_cfg){ .cost = test_cost }, &r),
		-EINVAL);
	IS(r, peak_pages, 5);
	assert_int_equal(ttmon_policy_simulate(&m.run, TTMON_POLICY_ALL, &(struct ttmon_policy_cfg){ 0 }, &r), -EINVAL);
	assert_int_equal(
		ttmon_policy_simulate(&m.run, TTMON_POLICY_MAX, &(struct ttmon_policy_cfg){ .cost = test_cost }, &r),
		-EINVAL);
}

static void registration_of_custom_memory_counts_once(void **state)
{
	static struct model m;
	struct ttmon_run_alloc *reg;
	struct ttmon_policy_result r;

	(void)state;
	begin(&m, 1000);
	reg = made(&m, TTMON_METHOD_REGISTERED, 4 * PAGE, 200, 300, 100000);
	made(&m, TTMON_METHOD_CUSTOM, 4 * PAGE, 100, 400, 50);
	reg->addr = m.allocs[1].addr;
	r = play(&m, TTMON_POLICY_ALL);
	IS(r, allocs, 1);
	IS(r, pages_pinned, 4);
	IS(r, moved_pinned_bytes, 100050);
	/* What is known of the one is known of the other. */
	reg->flags = TTMON_RUN_IN_PLACE;
	reg->h2d_bytes = 0;
	m.allocs[1].h2d_bytes = 0;
	r = play_advice(&m, &m);
	IS(r, peak_pages, 4);
	IS(r, in_place_kept, 1);
	/* Of another process, elsewhere, or of what was there before: memory of its own. */
	reg->proc = 1;
	IS(play(&m, TTMON_POLICY_ALL), pages_pinned, 8);
	reg->proc = 0;
	reg->addr += 1;
	IS(play(&m, TTMON_POLICY_ALL), pages_pinned, 8);
	reg->addr -= 1;
	reg->alloc_ns = 400;
	reg->free_ns = 500;
	IS(play(&m, TTMON_POLICY_ALL), pages_pinned, 8);
}

static void edges(void **state)
{
	static struct model m;
	struct ttmon_policy_result r;

	(void)state;
	begin(&m, 0);
	for (unsigned int p = 0; p < TTMON_POLICY_ADVICE; p++) {
		r = play(&m, p);
		IS(r, peak_pages, 0);
	}
	/* No size, no life, no end of numbers. */
	begin(&m, INT64_MAX);
	made(&m, TTMON_METHOD_HOST_ALLOC, 0, 5, 5, 10);
	made(&m, TTMON_METHOD_HOST_ALLOC, UINT64_MAX, 5, UINT64_MAX, UINT64_MAX);
	made(&m, TTMON_METHOD_HOST_ALLOC, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX);
	made(&m, TTMON_METHOD_CUSTOM, 1, 10, 4, 1);
	for (unsigned int p = 0; p < TTMON_POLICY_ADVICE; p++) {
		r = play(&m, p);
		assert_true(r.moved_bytes == UINT64_MAX);
		assert_true(r.transfer_ns >= 0 && r.pinning_ns >= 0);
	}
	/* Pinned memory that is no faster gains nothing. */
	begin(&m, 1000);
	made(&m, TTMON_METHOD_HOST_ALLOC, PAGE, 0, 500, 1 << 30);
	assert_int_equal(ttmon_policy_simulate(&m.run, TTMON_POLICY_HINDSIGHT,
					       &(struct ttmon_policy_cfg){ .cost = { 10, 10, 10 } }, &r),
			 0);
	IS(r, peak_pages, 0);
	assert_string_equal(ttmon_policy_name(TTMON_POLICY_HINDSIGHT), "hindsight");
	assert_string_equal(ttmon_policy_name(TTMON_POLICY_MAX), "?");
	assert_string_equal(ttmon_policy_help(TTMON_POLICY_MAX), "?");
}

/* ---- memory that runs out ---- */

static void every_allocation_fails(void **state)
{
	static struct model m;
	struct ttmon_profile *p;

	(void)state;
	by_hand(&m);
	p = profile_of(&m);
	for (unsigned int policy = 0; policy < TTMON_POLICY_MAX; policy++) {
		struct ttmon_policy_cfg cfg = { .cost = test_cost, .profile = p };
		struct ttmon_policy_result r = { .pins = 77 };
		int err = -ENOMEM;

		for (long i = 0; err; i++) {
			asked = 0;
			fail_at = i;
			err = ttmon_policy_simulate(&m.run, policy, &cfg, &r);
			assert_true(!err || (err == -ENOMEM && r.pins == 77));
			assert_true(i < 100);
		}
	}
	fail_at = -1;
	ttmon_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_by_hand),
		cmocka_unit_test(pytorch_thresholds),
		cmocka_unit_test(pytorch_waits_for_copies),
		cmocka_unit_test(processes_share_nothing),
		cmocka_unit_test(advice_reuses_blocks),
		cmocka_unit_test(what_does_not_fit_is_left_out),
		cmocka_unit_test(calls_have_a_price),
		cmocka_unit_test(hindsight_pins_mappings),
		cmocka_unit_test(in_place_stays),
		cmocka_unit_test(unknown_stays_as_it_was),
		cmocka_unit_test(registration_of_custom_memory_counts_once),
		cmocka_unit_test(edges),
		cmocka_unit_test(every_allocation_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
