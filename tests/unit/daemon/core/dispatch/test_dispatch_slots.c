// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_dispatch_slots.c: how much each process used each device in a slot. Rows are compared with the
 * sums of the slot and with the views. Further cases: events after the last slot, more pairs than
 * there is room for, and forgotten processes. Virtual time.
 */
#include <stdio.h>

#include "tests/unit/feed/dispatch_feed.h"

#define T   10
#define GHZ 1.0

static struct ttmon_tt_slot_row rows[400000];
static size_t nr_rows;
static uint64_t state, run_ns;

static uint64_t rnd(void)
{
	state += 0x9e3779b97f4a7c15ULL;
	return (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9ULL >> 20;
}

static void on_row(void *ctx, const struct ttmon_tt_slot_row *row)
{
	assert_ptr_equal(ctx, &nr_rows);
	assert_true(nr_rows < ARRAY_SIZE(rows));
	assert_true(row->dispatches || row->busy_ns);
	if (nr_rows)
		assert_true(rows[nr_rows - 1].slot_no <= row->slot_no);
	rows[nr_rows++] = *row;
}

static void on_run(void *ctx, const struct ttmon_tt_run *run)
{
	(void)ctx;
	run_ns += run->end_ns - run->start_ns;
}

static struct ttmon_dispatch *make(bool keep_all)
{
	static const struct ttmon_dispatch_ops ops = { .run = on_run, .slot = on_row };
	static int some;
	const struct ttmon_dispatch_cfg cfg = { .tt = (void *)&some, .keep_all = keep_all };
	struct ttmon_dispatch *d = NULL;

	nr_rows = 0;
	run_ns = 0;
	assert_int_equal(ttmon_dispatch_new(&cfg, &ops, &nr_rows, &d), 0);
	return d;
}

/* Closes a slot and returns its first row. The sum of its rows must be the sum that it reported. */
static size_t close_slot(struct ttmon_dispatch *d, uint64_t no)
{
	static size_t seen;
	uint64_t n, busy, sum_n = 0, sum_busy = 0;
	size_t first;

	if (nr_rows < seen || !nr_rows)
		seen = 0;
	first = seen;
	ttmon_dispatch_slot(d, no, &n, &busy);
	for (size_t i = first; i < nr_rows; i++) {
		assert_int_equal(rows[i].slot_no, no);
		sum_n += rows[i].dispatches;
		sum_busy += rows[i].busy_ns;
	}
	assert_int_equal(sum_n, n);
	assert_int_equal(sum_busy, busy);
	seen = nr_rows;
	return first;
}

static void check_row(size_t i, uint32_t tgid, uint32_t logical, uint32_t chip, uint64_t n, uint64_t busy)
{
	assert_true(i < nr_rows);
	assert_int_equal(rows[i].tgid, tgid);
	assert_int_equal(rows[i].logical, logical);
	assert_int_equal(rows[i].chip, chip);
	assert_int_equal(rows[i].dispatches, n);
	assert_int_equal(rows[i].busy_ns, busy);
}

/* One cycle is one nanosecond. */
static void feed_ns(struct ttmon_dispatch *d, uint32_t tgid, uint32_t chip, uint64_t from, uint64_t to)
{
	feed_run_sync(d, tgid, to, chip, 1, from, to, GHZ, 0, 100);
}

/* Lets the layout be found, so that all waiting runs are reported. */
static void settle(struct ttmon_dispatch *d, uint32_t tgid, uint64_t at)
{
	for (uint32_t i = 0; i < 40; i++)
		feed_ns(d, tgid, i % 2, at + i * US, at + i * US + 1);
}

static void a_row_for_each_process_and_device(void **test)
{
	struct ttmon_dispatch *d = make(false);
	size_t i;

	(void)test;
	feed_workload(d, T, 5 * MS, 0, MESH, 3);
	feed_workload(d, T, 5 * MS + 1, 1, 0xd0, 4);
	feed_workload(d, T, 5 * MS + 2, 0, 0xd1, 2);
	feed_workload(d, T, 5 * MS + 3, 0, NOT_KNOWN, 7);
	feed_workload(d, T + 1, 5 * MS + 4, 0, 0xd0, 1);
	i = close_slot(d, 5);
	assert_int_equal(nr_rows, 4);
	/* The mesh and its first device count as one. */
	check_row(i, T, 0, 11, 3 + 4, 0);
	check_row(i + 1, T, 1, 12, 2, 0);
	check_row(i + 2, T, TTMON_TT_NO_LOGICAL, 0, 7, 0);
	check_row(i + 3, T + 1, 0, 11, 1, 0);
	/* A record without new counts, or no record at all, makes no row. */
	feed_workload(d, T, 6 * MS, 0, MESH, 3);
	close_slot(d, 6);
	close_slot(d, 7);
	assert_int_equal(nr_rows, 4);
	feed_workload(d, T + 1, 8 * MS, 0, 0xd0, 9);
	check_row(close_slot(d, 8), T + 1, 0, 11, 8, 0);
	assert_int_equal(nr_rows, 5);
	ttmon_dispatch_free(d);
}

static void runs_and_dispatches_share_a_row(void **test)
{
	struct ttmon_dispatch *d = make(false);
	size_t i;

	(void)test;
	feed_object(d, 0, TTMON_TT_HAS_PROGRAMS);
	settle(d, T, 1 * SEC);
	close_slot(d, 1000);
	feed_workload(d, T, 1001 * MS, 0, MESH, 2);
	feed_ns(d, T, 1, 1001 * MS, 1001 * MS + 300);
	feed_ns(d, T, 0, 1001 * MS + 100, 1001 * MS + 600);
	feed_ns(d, T, 0, 1001 * MS + 600, 1001 * MS + 800);
	i = close_slot(d, 1001);
	assert_int_equal(nr_rows - i, 2);
	check_row(i, T, 0, 11, 2, 700);
	check_row(i + 1, T, 1, 12, 0, 300);
	ttmon_dispatch_free(d);
}

/*
 * The rest of a run that is open when its slot closes is counted later, for the process for which it
 * ran.
 */
static void an_open_run_keeps_its_owner(void **test)
{
	struct ttmon_dispatch *d = make(false);
	size_t i;

	(void)test;
	feed_object(d, 0, TTMON_TT_HAS_PROGRAMS);
	settle(d, T, 1 * SEC);
	close_slot(d, 1000);
	/* Its clock is ahead by 80 ns: the callback came before the end of the run. */
	feed_run_sync(d, T, 1002 * MS - 50, 1, 1, 1001 * MS + 10, 1002 * MS + 30, GHZ, 0, 100);
	i = close_slot(d, 1001);
	assert_int_equal(nr_rows - i, 1);
	check_row(i, T, 1, 12, 0, MS - 10);
	feed_workload(d, T + 1, 1002 * MS, 0, 0xd1, 1);
	i = close_slot(d, 1002);
	assert_int_equal(nr_rows - i, 2);
	check_row(i, T + 1, 1, 12, 1, 0);
	check_row(i + 1, T, 1, 12, 0, 30);
	ttmon_dispatch_free(d);
}

/* Compares rows with the views: dispatches by process, device time by process and device. */
static void check_views(struct ttmon_dispatch *d)
{
	const struct ttmon_tt_dispatch_sum *sums;
	const struct ttmon_tt_clock *clocks;
	size_t nr_sums = ttmon_dispatch_sums(d, &sums), nr_clocks = ttmon_dispatch_clocks(d, &clocks);
	uint64_t all = 0, slotted = 0;

	for (size_t i = 0; i < nr_sums; i++)
		for (unsigned int k = 0; k < TTMON_TT_DISPATCH_MAX; k++)
			all += sums[i].count[k];
	for (size_t i = 0; i < nr_rows; i++)
		slotted += rows[i].dispatches;
	assert_int_equal(all, slotted);
	for (size_t i = 0; i < nr_sums; i++) {
		uint64_t n = 0, in_rows = 0;

		for (size_t k = 0; k < nr_sums; k++)
			for (unsigned int kind = 0; sums[k].tgid == sums[i].tgid && kind < TTMON_TT_DISPATCH_MAX;
			     kind++)
				n += sums[k].count[kind];
		for (size_t k = 0; k < nr_rows; k++)
			in_rows += rows[k].tgid == sums[i].tgid ? rows[k].dispatches : 0;
		assert_int_equal(n, in_rows);
	}
	for (size_t i = 0; i < nr_clocks; i++) {
		uint64_t busy = 0;

		for (size_t k = 0; k < nr_rows; k++)
			if (rows[k].tgid == clocks[i].tgid && rows[k].logical == clocks[i].logical)
				busy += rows[k].busy_ns;
		assert_int_equal(busy, clocks[i].busy_ns);
	}
}

static void rows_are_the_sums(void **test)
{
	static const uint64_t devices[] = { MESH, 0xd0, 0xd1, NOT_KNOWN, 0 };

	(void)test;
	for (uint64_t seed = 0; seed < 30; seed++) {
		uint64_t nth[20] = { 0 }, last, last_busy;
		struct ttmon_dispatch *d = make(true);
		size_t before;

		state = seed;
		if (seed % 3)
			feed_object(d, 0, TTMON_TT_HAS_PROGRAMS);
		for (uint64_t slot = 1000; slot < 1100; slot++) {
			for (uint64_t i = 0, k = rnd() % 10; i < k; i++) {
				uint64_t at = slot * MS + i * MS / 10, who = rnd() % 4, dev = rnd() % 5;
				uint32_t tgid = (uint32_t)(T + who);

				nth[who * 5 + dev] += rnd() % 3;
				feed_workload(d, tgid, at, (uint16_t)who, devices[dev], nth[who * 5 + dev]);
				feed_run_sync(d, tgid, at, rnd() % 3, 1 + rnd() % 5, at - rnd() % MS, at + rnd() % 90,
					      GHZ, 0, 100);
				if (slot == 1050 && i == 0)
					feed_exit(d, tgid, at);
			}
			close_slot(d, slot);
		}
		/* After the last slot: a fact of the daemon, and a run that still waits for a clock. */
		feed_sums(d, T, 1100 * MS, 9, MESH, 1000);
		ttmon_dispatch_finish(d);
		before = nr_rows;
		ttmon_dispatch_slot(d, 1100, &last, &last_busy);
		assert_int_equal(last, 1000);
		assert_true(nr_rows > before);
		check_views(d);
		ttmon_dispatch_free(d);
	}
}

/*
 * More pairs in a slot than there is room for: there are more rows, and nothing is lost, also if pairs
 * are forgotten in the middle.
 */
static void very_many_at_once(void **test)
{
	(void)test;
	for (int keep = 0; keep < 2; keep++) {
		struct ttmon_dispatch *d = make(keep);
		uint64_t n, busy, sum_n = 0, sum_busy = 0, by_tgid[3000] = { 0 };

		for (uint32_t round = 1; round <= 2; round++) {
			for (uint32_t i = 0; i < 3000; i++) {
				feed_workload(d, T + i, 9 * MS + round, 0, 0xd0, round);
				feed_workload(d, T + i, 9 * MS + round, 0, 0xd1, round);
			}
		}
		for (uint32_t i = 0; i < 3000; i++) {
			for (uint64_t k = 0; k < 10; k++)
				feed_run_sync(d, T + i, 9 * MS + 5000, 1, 3, 9 * MS + k * 10, 9 * MS + k * 10 + 5, GHZ,
					      0, 100);
			feed_exit(d, T + i, 9 * MS + 6000);
		}
		ttmon_dispatch_finish(d);
		ttmon_dispatch_slot(d, 9, &n, &busy);
		assert_int_equal(n, 12000);
		assert_int_equal(busy, run_ns);
		assert_true(busy > 3000 * 10 * 4);
		assert_true(nr_rows >= 6000);
		for (size_t i = 0; i < nr_rows; i++) {
			assert_int_equal(rows[i].slot_no, 9);
			assert_int_equal(rows[i].chip, 11 + rows[i].logical);
			assert_in_range(rows[i].tgid, T, T + 2999);
			by_tgid[rows[i].tgid - T] += rows[i].dispatches;
			sum_n += rows[i].dispatches;
			sum_busy += rows[i].busy_ns;
		}
		for (uint32_t i = 0; i < 3000; i++)
			assert_int_equal(by_tgid[i], 4);
		assert_int_equal(sum_n, n);
		assert_int_equal(sum_busy, busy);
		assert_int_equal(ttmon_dispatch_refused(d), 0);
		/* The table is empty again, and still finds new entries. */
		nr_rows = 0;
		feed_workload(d, 9000, 10 * MS, 0, 0xd0, 1);
		feed_workload(d, 9000, 10 * MS, 1, 0xd0, 1);
		ttmon_dispatch_slot(d, 10, &n, &busy);
		assert_int_equal(nr_rows, 1);
		check_row(0, 9000, 0, 11, 2, 0);
		ttmon_dispatch_free(d);
	}
}

/* Two processes with the same tgid, one after the other, in one slot. */
static void a_reused_tgid_has_its_own_row(void **test)
{
	struct ttmon_dispatch *d = make(false);
	size_t i;

	(void)test;
	feed_proc(d, T, 2 * MS, 2 * MS, TTMON_PROC_FORK);
	feed_workload(d, T, 5 * MS, 0, 0xd0, 4);
	feed_exit(d, T, 5 * MS + 1);
	feed_proc(d, T, 5 * MS + 2, 5 * MS + 2, TTMON_PROC_FORK);
	feed_workload(d, T, 5 * MS + 3, 0, 0xd0, 2);
	i = close_slot(d, 5);
	assert_int_equal(nr_rows - i, 2);
	check_row(i, T, 0, 11, 4, 0);
	check_row(i + 1, T, 0, 11, 2, 0);
	ttmon_dispatch_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_for_each_process_and_device),
		cmocka_unit_test(runs_and_dispatches_share_a_row),
		cmocka_unit_test(an_open_run_keeps_its_owner),
		cmocka_unit_test(rows_are_the_sums),
		cmocka_unit_test(very_many_at_once),
		cmocka_unit_test(a_reused_tgid_has_its_own_row),
	};

	return cmocka_run_group_tests_name("dispatch_slots", tests, NULL, NULL);
}
