// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_history_counts.c: the counters that only grow: allocations by method, findings, failures,
 * durations of pin calls.
 */
#include "tests/unit/feed/history_feed.h"

#define T   1000
#define A   0x7f0000000000ULL
#define DEV 0x20000000ULL
#define M   TTMON_METHOD_HOST_ALLOC
#define REG TTMON_METHOD_REGISTERED

static struct ttmon_history *h;

static int setup(void **state)
{
	(void)state;
	h = feed_new((struct ttmon_history_cfg){ .fold_ns = SEC });
	feed_clock(h, 4096, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ttmon_history_free(h);
	return 0;
}

static const struct ttmon_proc *proc(void)
{
	return ttmon_history_proc(h, 0);
}

static struct ttmon_method_totals method(unsigned int m)
{
	return feed_totals(h).method[m];
}

static struct ttmon_pin_times times(unsigned int m, bool unpin)
{
	struct ttmon_pin_times t;

	ttmon_history_pin_times(h, m, unpin, &t);
	return t;
}

static void methods_are_counted_apart(void **state)
{
	(void)state;
	feed_alloc(h, T, 100, M, A, 10);
	feed_alloc(h, T, 110, M, A + PAGE, 20);
	feed_alloc(h, T, 120, TTMON_METHOD_DEVICE, DEV, 100);
	feed_mmap(h, T, 130, A + 100 * PAGE, PAGE);
	feed_free(h, T, 140, 141, M, A);
	assert_int_equal(proc()->by_method[M].allocs, 2);
	assert_int_equal(proc()->by_method[M].bytes, 30);
	assert_int_equal(proc()->by_method[M].ends, 1);
	assert_int_equal(proc()->by_method[M].live, 1);
	assert_int_equal(proc()->by_method[M].live_bytes, 20);
	assert_int_equal(proc()->by_method[TTMON_METHOD_DEVICE].live_bytes, 100);
	assert_int_equal(proc()->by_method[TTMON_METHOD_MMAP].allocs, 0);
	/* However the allocations end. */
	feed_exit(h, T, 200);
	assert_int_equal(proc()->by_method[M].ends, 2);
	assert_int_equal(proc()->by_method[TTMON_METHOD_DEVICE].ends, 1);
	assert_int_equal(proc()->by_method[TTMON_METHOD_DEVICE].live_bytes, 0);
	assert_int_equal(method(M).allocs, 2);
	assert_int_equal(method(M).bytes, 30);
	assert_int_equal(method(M).ends, 2);
	assert_int_equal(method(M).live, 0);
	assert_int_equal(method(M).live_bytes, 0);
}

static void pages_are_those_touched_each_time(void **state)
{
	(void)state;
	feed_alloc(h, T, 100, REG, A + 100, PAGE);	/* 2 pages */
	feed_alloc(h, T + 1, 110, REG, A, PAGE);	/* another process's */
	feed_alloc(h, T, 120, REG, A + PAGE, 3 * PAGE); /* one of them again */
	feed_alloc(h, T, 130, TTMON_METHOD_DEVICE, DEV, 5 * PAGE);
	assert_int_equal(method(REG).live_pages, 6);
	assert_int_equal(method(REG).peak_pages, 6);
	assert_int_equal(method(TTMON_METHOD_DEVICE).pages, 0);
	assert_int_equal(feed_totals(h).pinned_pages, 5);
	feed_free(h, T, 140, 141, REG, A + PAGE);
	feed_alloc(h, T, 150, REG, A + 50 * PAGE, PAGE);
	assert_int_equal(method(REG).live_pages, 4);
	assert_int_equal(method(REG).peak_pages, 6);
	assert_int_equal(method(REG).pages, 7);
	assert_int_equal(method(REG).peak_bytes, 5 * PAGE);
	assert_int_equal(method(REG).live_bytes, 3 * PAGE);
	feed_exit(h, T, 200);
	assert_int_equal(method(REG).live_pages, 1);
	assert_int_equal(method(REG).pages, 7);
}

/* An allocation that was undone was counted: it ends, and has failed. */
static void what_never_was_ends(void **state)
{
	struct ttmon_tt_alloc in = { .ts_ns = 100, .bytes = PAGE, .fn = 256, .method = TTMON_METHOD_TT_L1 };
	const struct ttmon_failure *f;

	(void)state;
	ttmon_history_tt_undo(h, ttmon_history_tt_alloc(h, T, &in));
	assert_int_equal(method(TTMON_METHOD_TT_L1).allocs, 1);
	assert_int_equal(method(TTMON_METHOD_TT_L1).ends, 1);
	assert_int_equal(method(TTMON_METHOD_TT_L1).live, 0);
	assert_int_equal(ttmon_history_failures(h, &f), 1);
	assert_int_equal(f[0].fn, 256);
	assert_int_equal(f[0].err, 0);
}

static void alloc_taking(uint64_t ts, unsigned int m, uint64_t addr, uint64_t ns, uint16_t bits)
{
	struct ttmon_ev_alloc ev = { .h = feed_head(TTMON_EV_ALLOC, T, ts),
				     .entry_ns = ts - ns,
				     .addr = addr,
				     .size = PAGE,
				     .fn = FN_HOST,
				     .method = (uint8_t)m,
				     .bits = bits };

	feed_alloc_full(h, ev, NULL);
}

static void pin_calls_are_timed(void **state)
{
	struct ttmon_ev_free blind = { .h = feed_head(TTMON_EV_FREE, T, 500 * SEC),
				       .entry_ns = 500 * SEC,
				       .addr = A + PAGE,
				       .fn = FN_FREE,
				       .method = M,
				       .bits = TTMON_B_UNOBSERVED };

	(void)state;
	for (unsigned int i = 1; i < TTMON_PIN_BUCKETS; i++)
		assert_true(ttmon_pin_bounds_ns[i] > ttmon_pin_bounds_ns[i - 1]);
	assert_int_equal(ttmon_pin_bounds_ns[0], 1000);
	assert_int_equal(ttmon_pin_bounds_ns[TTMON_PIN_BUCKETS - 1], 100 * SEC);
	alloc_taking(200 * SEC, M, A, 1000, 0);
	alloc_taking(201 * SEC, M, A + PAGE, 1001, 0);
	alloc_taking(202 * SEC, M, A + 2 * PAGE, 101 * SEC, 0);
	alloc_taking(203 * SEC, M, A + 3 * PAGE, 0, TTMON_B_UNOBSERVED);
	alloc_taking(204 * SEC, TTMON_METHOD_DEVICE, DEV, 1000, 0);
	assert_int_equal(times(M, false).count[0], 1);
	assert_int_equal(times(M, false).count[1], 1);
	assert_int_equal(times(M, false).count[TTMON_PIN_BUCKETS], 1);
	assert_int_equal(times(M, false).sum_ns, 2001 + 101 * SEC);
	assert_int_equal(times(M, false).unobserved, 1);
	assert_int_equal(times(TTMON_METHOD_DEVICE, false).count[0], 0);
	assert_int_equal(times(TTMON_METHOD_MAX, false).count[0], 0);
	feed_free(h, T, 300 * SEC, 300 * SEC + 20 * MS, M, A);
	APPLY(h, blind);
	assert_int_equal(times(M, true).count[8], 1);
	assert_int_equal(times(M, true).sum_ns, 20 * MS);
	assert_int_equal(times(M, true).unobserved, 1);
	/* No call was made. */
	feed_exit(h, T, 600 * SEC);
	assert_int_equal(times(M, true).sum_ns, 20 * MS);
	assert_int_equal(times(M, true).unobserved, 1);
}

/* Its address was allocated again before the free returned: it is still a call that unpinned. */
static void the_free_of_a_ghost_is_timed(void **state)
{
	(void)state;
	feed_alloc(h, T, 100, M, A, PAGE);
	feed_alloc(h, T, 300, M, A, PAGE);
	feed_free(h, T, 200, 2200, M, A);
	assert_int_equal(times(M, true).count[1], 1);
	assert_int_equal(times(M, true).sum_ns, 2000);
}

static void tt_pin(uint32_t op, uint64_t addr, uint64_t ts, uint64_t ns)
{
	struct ttmon_ev_tt_pin ev = { .h = feed_head(TTMON_EV_TT_PIN, T, ts),
				      .entry_ns = ts - ns,
				      .addr = addr,
				      .size = PAGE,
				      .op = (uint16_t)op,
				      .file = 7 };

	APPLY(h, ev);
}

static void pins_of_tt_kmd_are_timed(void **state)
{
	(void)state;
	tt_pin(TTMON_TT_PIN, A, 100000, 10);
	tt_pin(TTMON_TT_PIN, A + PAGE, 200000, 20);
	tt_pin(TTMON_TT_DMA_BUF, 0, 300000, 30);
	assert_int_equal(times(REG, false).sum_ns, 30);
	assert_int_equal(times(TTMON_METHOD_TT_DMA, false).sum_ns, 30);
	tt_pin(TTMON_TT_UNPIN, A, 400000, 40);
	assert_int_equal(times(REG, true).sum_ns, 40);
	/* Closing the file ends the other pins. */
	tt_pin(TTMON_TT_CLOSE, 0, 500000, 50);
	assert_int_equal(method(REG).ends, 2);
	assert_int_equal(times(REG, true).sum_ns, 40);
	assert_int_equal(times(REG, true).unobserved, 1);
}

static void failing(uint16_t fn, int32_t err)
{
	struct ttmon_ev_alloc ev = {
		.h = feed_head(TTMON_EV_ALLOC, T, 100), .entry_ns = 90, .err = err, .fn = fn, .method = M
	};

	feed_alloc_full(h, ev, NULL);
}

static void failures_are_by_function_and_error(void **state)
{
	struct ttmon_ev_copy bad = feed_make_copy(T, 200, TTMON_DIR_INVALID, DEV, A, PAGE);
	static const struct ttmon_failure want[] = {
		{ FN_HOST, -3, 1 }, { FN_HOST, 2, 2 }, { FN_REG, 1, 1 }, { FN_MEMCPY, 0, 1 }
	};
	const struct ttmon_failure *f;

	(void)state;
	assert_int_equal(ttmon_history_failures(h, &f), 0);
	failing(FN_HOST, 2);
	failing(FN_REG, 1);
	failing(FN_HOST, -3);
	failing(FN_HOST, 2);
	APPLY(h, bad);
	assert_int_equal(ttmon_history_failures(h, &f), ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(f[i].fn, want[i].fn);
		assert_int_equal(f[i].err, want[i].err);
		assert_int_equal(f[i].count, want[i].count);
	}
}

static void failures_are_bounded_and_none_is_lost(void **state)
{
	const struct ttmon_failure *f;
	uint64_t sum = 0;
	size_t n;

	(void)state;
	for (int32_t i = 1500; i > 0; i--)
		failing(FN_HOST, i);
	failing(FN_HOST, 1500);
	failing(FN_HOST, 1);
	n = ttmon_history_failures(h, &f);
	assert_int_equal(n, 1025);
	assert_int_equal(f[0].fn, 0);
	assert_int_equal(f[0].count, 1500 - 1024 + 1);
	assert_int_equal(f[n - 1].err, 1500);
	assert_int_equal(f[n - 1].count, 2);
	for (size_t i = 0; i < n; i++)
		sum += f[i].count;
	assert_int_equal(sum, feed_totals(h).failed);
	assert_int_equal(sum, 1502);
}

/* 5000 processes use 4097 entries and a few more. */
static void nothing_falls_when_a_line_is_used_again(void **state)
{
	const struct ttmon_failure *f;
	uint64_t ts = SEC;

	(void)state;
	for (uint32_t i = 0; i < 5000; i++, ts += MS) {
		struct ttmon_ev_alloc bad = {
			.h = feed_head(TTMON_EV_ALLOC, T + i, ts), .err = 2, .fn = FN_HOST, .method = M
		};

		feed_proc(h, T + i, ts, ts, 1, TTMON_PROC_FORK);
		feed_alloc(h, T + i, ts, REG, A, PAGE);
		feed_alloc(h, T + i, ts, REG, A + 100, PAGE); /* overlaps */
		feed_alloc_full(h, bad, NULL);
		feed_free(h, T + i, ts, ts + 1, M, DEV);
		feed_exit(h, T + i, ts + 2);
		if (i % 500 == 0)
			ts += 2 * SEC;
		ttmon_history_tick(h, ts);
	}
	assert_true(ttmon_history_procs(h) < 4600);
	assert_int_equal(feed_totals(h).findings[TTMON_FINDING_OVERLAP], 5000);
	assert_int_equal(feed_totals(h).unknown_frees, 5000);
	assert_int_equal(method(REG).allocs, 10000);
	assert_int_equal(method(REG).ends, 10000);
	assert_int_equal(ttmon_history_failures(h, &f), 1);
	assert_int_equal(f[0].count, 5000);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(methods_are_counted_apart),
		TEST(pages_are_those_touched_each_time),
		TEST(what_never_was_ends),
		TEST(pin_calls_are_timed),
		TEST(the_free_of_a_ghost_is_timed),
		TEST(pins_of_tt_kmd_are_timed),
		TEST(failures_are_by_function_and_error),
		TEST(failures_are_bounded_and_none_is_lost),
		TEST(nothing_falls_when_a_line_is_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
