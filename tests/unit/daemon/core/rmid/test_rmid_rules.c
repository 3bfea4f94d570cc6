// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_rmid_rules.c: the rules of RMID tracking, one test each, and the cases of the public tests of
 * the predecessor's tracker and allocators (unvariance/collector), rewritten here.
 */
#include "tests/unit/feed/rmid_feed.h"

#include <ttmon/rmid_alloc.h>

static struct ttmon_rmid_pool pool;

static uint32_t pool_give(uint32_t tgid, uint64_t ns)
{
	const struct ttmon_rmid_holder who = { .start_ns = tgid, .tgid = tgid, .comm = "test_proc" };

	return ttmon_rmid_pool_alloc(&pool, &who, ns);
}

static int pool_of(uint32_t max)
{
	memset(&pool, 0, sizeof(pool));
	return ttmon_rmid_pool_init(&pool, max);
}

/* ---- the public tests of the tracker ---- */

static void who_was_given_it_is_known_and_stays_so_after_the_free(void **state)
{
	struct ttmon_rmid *r = fresh();
	struct ttmon_rmid_owner o;

	(void)state;
	fact(r, TTMON_RMID_ALLOC, 10 * MS, 1, 100);
	close_at(r, 15 * MS);
	ttmon_rmid_get_owner(r, 1, 14 * MS, &o);
	assert_int_equal(o.tgid, 100);
	assert_string_equal(o.comm, "p100");
	assert_int_equal(o.until_ns, 0);
	fact(r, TTMON_RMID_FREE, 20 * MS, 1, 0);
	close_at(r, 25 * MS);
	assert_int_equal(owner_at(r, 1, 24 * MS), 0);
	ttmon_rmid_get_owner(r, 1, 19 * MS, &o);
	assert_int_equal(o.tgid, 100);
	assert_string_equal(o.comm, "p100");
	assert_int_equal(o.until_ns, 20 * MS);
	ttmon_rmid_free(r);
}

static void what_is_told_of_the_future_waits(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	fact(r, TTMON_RMID_ALLOC, 10 * MS, 1, 100);
	fact(r, TTMON_RMID_FREE, 20 * MS, 1, 0);
	fact(r, TTMON_RMID_ALLOC, 30 * MS, 1, 200);
	fact(r, TTMON_RMID_ALLOC, 40 * MS, 2, 300);
	close_at(r, 25 * MS);
	assert_int_equal(owner_at(r, 1, 19 * MS), 100);
	assert_int_equal(owner_at(r, 1, 35 * MS), 0);
	assert_int_equal(owner_at(r, 2, 45 * MS), 0);
	assert_int_equal(totals(r).allocs, 1);
	ttmon_rmid_free(r);
}

/* This tracker is not emptied: a new one is created. */
static void a_new_tracker_knows_nothing(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 1, 100);
	take(r, 20 * MS, 1, 0);
	ttmon_rmid_free(r);
	r = fresh();
	assert_int_equal(owner_at(r, 1, 15 * MS), 0);
	assert_int_equal(totals(r).allocs + totals(r).frees, 0);
	give(r, 30 * MS, 2, 200);
	assert_int_equal(owner_at(r, 2, 35 * MS), 200);
	ttmon_rmid_free(r);
}

static void given_again_it_is_the_new_ones(void **state)
{
	struct ttmon_rmid *r = fresh();
	struct ttmon_rmid_owner o;

	(void)state;
	give(r, 10 * MS, 1, 100);
	close_at(r, 15 * MS);
	take(r, 20 * MS, 1, 0);
	close_at(r, 25 * MS);
	give(r, 30 * MS, 1, 200);
	close_at(r, 35 * MS);
	ttmon_rmid_get_owner(r, 1, 34 * MS, &o);
	assert_int_equal(o.tgid, 200);
	assert_string_equal(o.comm, "p200");
	assert_int_equal(o.until_ns, 0);
	ttmon_rmid_free(r);
}

/* ---- the public tests of the allocators ---- */

static void a_pool_of_four(void **state)
{
	uint64_t now = 1000000;

	(void)state;
	assert_true(pool_of(4));
	for (uint32_t i = 1; i <= 4; i++)
		assert_int_equal(pool_give(1234 + i, now), i);
	assert_int_equal(pool_give(1234, now), 0);
	/* The first one becomes free: not at once, not 1 ns too early, but at 2 ms. */
	assert_int_equal(ttmon_rmid_pool_free(&pool, 1, 1235, 1235, now), TTMON_RMID_FREED);
	assert_int_equal(pool_give(1234, now), 0);
	assert_int_equal(pool_give(1234, now + TTMON_RMID_LIMBO_NS - 1), 0);
	assert_int_equal(pool_give(1234, now + TTMON_RMID_LIMBO_NS), 1);
	assert_string_equal(ttmon_rmid_pool_holder(&pool, 1)->who.comm, "test_proc");
	assert_int_equal(ttmon_rmid_pool_holder(&pool, 1)->who.tgid, 1234);
	assert_null(ttmon_rmid_pool_holder(&pool, 0));
	assert_null(ttmon_rmid_pool_holder(&pool, 5));
}

/*
 * No RMID, or one more than there is room for: refused, and the pool gives none. As many as there is
 * room for: accepted.
 */
static void sizes_of_a_pool(void **state)
{
	static const uint32_t bad[] = { 0, TTMON_RMID_POOL, TTMON_RMID_POOL + 1, UINT32_MAX };

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_false(pool_of(bad[i]));
		assert_int_equal(pool.max, 0);
		assert_int_equal(pool_give(1, 1000000), 0);
		assert_false(ttmon_rmid_pool_ready(&pool, 1000000));
	}
	assert_true(pool_of(TTMON_RMID_POOL - 1));
	assert_int_equal(pool.max, TTMON_RMID_POOL - 1);
	assert_int_equal(pool_give(1, 1000000), 1);
}

/* ---- the rules ---- */

static void zero_is_no_rmid(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 0, 100);
	assert_int_equal(owner_at(r, 0, 15 * MS), 0);
	assert_int_equal(totals(r).in_use, 0);
	only_odd(r, TTMON_RMID_ODD_DROPPED, 1, NULL);
	ttmon_rmid_free(r);
}

static void valid_until_it_is_freed(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 1, 100);
	assert_int_equal(owner_at(r, 1, 3600 * NSEC_PER_SEC), 100);
	take(r, 3600 * NSEC_PER_SEC, 1, 0);
	assert_int_equal(owner_at(r, 1, 3600 * NSEC_PER_SEC - 1), 100);
	assert_int_equal(owner_at(r, 1, 3600 * NSEC_PER_SEC), 0);
	ttmon_rmid_free(r);
}

/* 2 ms of limbo: no window of 1 ms has two owners, wherever it begins. */
static void one_process_in_any_window(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 1, 100);
	take(r, 20 * MS, 1, 0);
	give(r, 20 * MS + TTMON_RMID_LIMBO_NS, 1, 200);
	for (uint64_t at = 18 * MS; at < 24 * MS; at += 10 * US) {
		uint32_t a = owner_at(r, 1, at), b = owner_at(r, 1, at + MS - 1);

		assert_true(a == b || !a || !b);
	}
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/* FIFO: the RMID that has been free for longest is given first. */
static void free_longest_comes_first(void **state)
{
	static const uint32_t order[] = { 2, 4, 1, 3 };
	uint64_t now = 1000000;

	(void)state;
	assert_true(pool_of(4));
	for (uint32_t i = 1; i <= 4; i++)
		assert_int_equal(pool_give(i, now), i);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(ttmon_rmid_pool_free(&pool, order[i], order[i], order[i], now + i), TTMON_RMID_FREED);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(pool_give(10 + i, now + 2 * TTMON_RMID_LIMBO_NS), order[i]);
}

/* A dump reports processes that had an RMID before the listener started. */
static void who_was_there_before(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	found(r, 10 * MS, 1, 100);
	assert_int_equal(owner_at(r, 1, 1), 100);
	assert_int_equal(owner_at(r, 1, 15 * MS), 100);
	assert_int_equal(totals(r).allocs, 0);
	assert_int_equal(totals(r).in_use, 1);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/*
 * Events are applied in order of time, in whatever order they come; events of the same time in the
 * order in which they come.
 */
static void events_in_order_of_time(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	fact(r, TTMON_RMID_ALLOC, 15 * MS, 1, 200);
	fact(r, TTMON_RMID_FREE, 12 * MS, 1, 100);
	fact(r, TTMON_RMID_ALLOC, 10 * MS, 1, 100);
	fact(r, TTMON_RMID_ALLOC, 10 * MS, 2, 300);
	fact(r, TTMON_RMID_FREE, 10 * MS, 2, 300);
	close_at(r, 20 * MS);
	assert_int_equal(owner_at(r, 1, 11 * MS), 100);
	assert_int_equal(owner_at(r, 1, 14 * MS), 0);
	assert_int_equal(owner_at(r, 1, 15 * MS), 200);
	assert_int_equal(owner_at(r, 2, 10 * MS), 0);
	assert_int_equal(totals(r).allocs, 3);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/* What a process did in the slot in which its RMID was freed belongs to the process. */
static void the_slot_of_the_free(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 1, 100);
	total(r, 10 * MS, 1, 0);
	take(r, 10 * MS + 500 * US, 1, 0);
	total(r, 10 * MS + 500 * US - 1, 1, 4096);
	close_at(r, 11 * MS);
	assert_int_equal(total_of(100), 4096);
	conserved(r, 0);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/* Times wrap: those after the wrap are later. */
static void times_around_the_wrap(void **state)
{
	struct ttmon_rmid *r = fresh();
	uint64_t t = -(uint64_t)5 * MS;

	(void)state;
	close_at(r, t);
	fact(r, TTMON_RMID_ALLOC, t + 8 * MS, 1, 200);
	fact(r, TTMON_RMID_ALLOC, t + MS, 1, 100);
	fact(r, TTMON_RMID_FREE, t + 4 * MS, 1, 0);
	close_at(r, t + 7 * MS);
	assert_int_equal(owner_at(r, 1, t + 2 * MS), 100);
	assert_int_equal(owner_at(r, 1, t + 6 * MS), 0);
	close_at(r, t + 9 * MS);
	assert_int_equal(owner_at(r, 1, t + 8 * MS), 200);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/* A process that gets no RMID is reported with its name. */
static void no_rmid_is_free(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	life(r, TTMON_RMID_NONE, 10 * MS, 0, 100);
	only_odd(r, TTMON_RMID_ODD_EXHAUSTED, 1, "all RMIDs are in use (process 100)");
	assert_int_equal(totals(r).in_use, 0);
	ttmon_rmid_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_was_given_it_is_known_and_stays_so_after_the_free),
		cmocka_unit_test(what_is_told_of_the_future_waits),
		cmocka_unit_test(a_new_tracker_knows_nothing),
		cmocka_unit_test(given_again_it_is_the_new_ones),
		cmocka_unit_test(a_pool_of_four),
		cmocka_unit_test(sizes_of_a_pool),
		cmocka_unit_test(zero_is_no_rmid),
		cmocka_unit_test(valid_until_it_is_freed),
		cmocka_unit_test(one_process_in_any_window),
		cmocka_unit_test(free_longest_comes_first),
		cmocka_unit_test(who_was_there_before),
		cmocka_unit_test(events_in_order_of_time),
		cmocka_unit_test(the_slot_of_the_free),
		cmocka_unit_test(times_around_the_wrap),
		cmocka_unit_test(no_rmid_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
