// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_dispatch.c: counts from cumulative sums, runs mapped onto the host's clock by each method,
 * waiting, device time by slot, programs and their kernels, ended processes, and nonsensical input.
 * Virtual time.
 */
#include <stdio.h>

#include "daemon/core/dispatch/progs.h"
#include "tests/unit/feed/dispatch_feed.h"

#define T   10
#define GHZ 1.35

static struct ttmon_tt_run runs[20000];
static size_t nr_runs;
static uint64_t nr_missed;
static struct ttmon_tt_dispatched ops_told[4000];
static size_t nr_told;
static uint64_t state;

static uint64_t rnd(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static void on_run(void *ctx, const struct ttmon_tt_run *run)
{
	assert_ptr_equal(ctx, &nr_runs);
	assert_true(nr_runs < ARRAY_SIZE(runs));
	runs[nr_runs++] = *run;
}

static void on_missed(void *ctx, uint32_t tgid, uint64_t at_ns, uint64_t n)
{
	assert_ptr_equal(ctx, &nr_runs);
	(void)tgid;
	(void)at_ns;
	nr_missed += n;
}

static void on_dispatched(void *ctx, const struct ttmon_tt_dispatched *op)
{
	assert_ptr_equal(ctx, &nr_runs);
	if (nr_told < ARRAY_SIZE(ops_told))
		ops_told[nr_told] = *op;
	nr_told++;
}

static struct ttmon_dispatch *make_cfg(const struct ttmon_dispatch_cfg *cfg)
{
	static const struct ttmon_dispatch_ops ops = { .run = on_run,
						       .missed = on_missed,
						       .dispatched = on_dispatched };
	struct ttmon_dispatch *d = NULL;

	nr_runs = nr_told = nr_missed = 0;
	state = 1;
	assert_int_equal(ttmon_dispatch_new(cfg, &ops, &nr_runs, &d), 0);
	return d;
}

/* The stand-in never dereferences the pointer. */
static struct ttmon_dispatch *make(void)
{
	static int some;

	return make_cfg(&(struct ttmon_dispatch_cfg){ .tt = (void *)&some });
}

static uint64_t cycles_at(uint64_t ns)
{
	return 1000000 + (uint64_t)((double)ns * GHZ);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static const struct ttmon_tt_clock *clock_of(const struct ttmon_dispatch *d, uint32_t logical)
{
	const struct ttmon_tt_clock *v;
	size_t n = ttmon_dispatch_clocks(d, &v);

	for (size_t i = 0; i < n; i++)
		if (v[i].logical == logical)
			return &v[i];
	fail_msg("no clock of %u", logical);
	return NULL;
}

/* ---- counts ---- */

static uint64_t workloads(const struct ttmon_dispatch *d, uint64_t device)
{
	const struct ttmon_tt_dispatch_sum *v;
	size_t n = ttmon_dispatch_sums(d, &v);

	for (size_t i = 0; i < n; i++)
		if (v[i].device == device)
			return v[i].count[TTMON_TT_WORKLOAD];
	return UINT64_MAX;
}

static void counts_are_differences(void **test)
{
	const uint64_t kinds[TTMON_TT_DISPATCH_MAX] = { 9, 1, 2, 3, 4, 5 };
	const struct ttmon_tt_dispatch_sum *v;
	struct ttmon_dispatch *d = make();
	uint64_t n, busy;

	(void)test;
	feed_workload(d, T, 1 * MS, 0, MESH, 1);
	feed_workload(d, T, 2 * MS, 0, MESH, 5);
	feed_workload(d, T, 3 * MS, 1, MESH, 10);
	feed_workload(d, T, 3 * MS, 1, 0xd1, 2);
	ttmon_dispatch_slot(d, 3, &n, &busy);
	assert_int_equal(n, 17);
	assert_int_equal(busy, 0);
	feed_dispatch(d, T, 4 * MS, 0, MESH, TTMON_TT_FINISH, kinds);
	ttmon_dispatch_slot(d, 4, &n, &busy);
	assert_int_equal(n, 4 + 15);
	assert_int_equal(ttmon_dispatch_sums(d, &v), 2);
	assert_int_equal(v[0].device, MESH);
	assert_int_equal(v[0].chip, 11);
	assert_int_equal(v[0].dev_kind, TTMON_TT_DEV_MESH);
	assert_int_equal(v[0].first_ns, 1 * MS);
	assert_int_equal(v[0].last_ns, 4 * MS);
	assert_int_equal(v[0].count[TTMON_TT_WORKLOAD], 19);
	assert_int_equal(v[0].count[TTMON_TT_TRACE], 1);
	assert_int_equal(v[0].count[TTMON_TT_FINISH], 5);
	assert_int_equal(v[1].chip, 12);
	assert_int_equal(v[1].count[TTMON_TT_WORKLOAD], 2);
	/* One by one: calls that were left out are in the count of the next one. */
	assert_int_equal(nr_told, 5);
	assert_int_equal(ops_told[0].count, 1);
	assert_int_equal(ops_told[1].count, 4);
	assert_int_equal(ops_told[2].count, 10);
	assert_int_equal(ops_told[4].count, 5);
	assert_int_equal(ops_told[4].kind, TTMON_TT_FINISH);
	assert_int_equal(ops_told[4].what, 0x1234);
	assert_int_equal(ops_told[4].tid, T + 1);
	ttmon_dispatch_free(d);
}

static void repeated_and_late_records_count_once(void **test)
{
	struct ttmon_dispatch *d = make();

	(void)test;
	feed_workload(d, T, 10 * MS, 0, MESH, 100);
	feed_workload(d, T, 10 * MS, 0, MESH, 100);
	feed_workload(d, T, 9 * MS, 0, MESH, 90);
	feed_workload(d, T, 11 * MS, 0, MESH, 101);
	/* It was counted, then preempted, and sent after the record of another thread. */
	feed_workload(d, T, 12 * MS, 0, MESH, 100);
	assert_int_equal(workloads(d, MESH), 101);
	assert_int_equal(nr_told, 2);
	ttmon_dispatch_free(d);
}

/* Two threads of one CPU count 1 and 2, and send these sums in reverse order. */
static void sums_never_begin_anew(void **test)
{
	struct ttmon_dispatch *d = make();

	(void)test;
	feed_workload(d, T, 10 * MS, 0, MESH, 2);
	feed_workload(d, T, 10 * MS + 1, 0, MESH, 1);
	feed_workload(d, T, 11 * MS, 0, MESH, 3);
	assert_int_equal(workloads(d, MESH), 3);
	ttmon_dispatch_free(d);
}

static void sums_of_the_daemon_run_ahead(void **test)
{
	struct ttmon_dispatch *d = make();
	uint64_t n, busy;

	(void)test;
	feed_workload(d, T, 1 * MS, 0, MESH, 1);
	feed_sums(d, T, 9 * MS, 0, MESH, 7);
	feed_sums(d, T, 9 * MS, 1, MESH, 2);
	assert_int_equal(workloads(d, MESH), 9);
	/* Events that waited for their slots: they are reported, but not counted again. */
	feed_workload(d, T, 2 * MS, 0, MESH, 2);
	feed_workload(d, T, 3 * MS, 0, MESH, 5);
	ttmon_dispatch_slot(d, 3, &n, &busy);
	assert_int_equal(n, 9);
	assert_int_equal(nr_told, 3);
	assert_int_equal(ops_told[2].count, 3);
	/* Also after the end of the process. */
	feed_exit(d, T, 10 * MS);
	feed_sums(d, T, 11 * MS, 0, MESH, 8);
	feed_sums(d, T, 12 * MS, 0, MESH, 8);
	assert_int_equal(workloads(d, MESH), 10);
	ttmon_dispatch_free(d);
}

/* With any order, repeats and gaps the count is the last sum of each CPU. */
static void random_order_of_records(void **test)
{
	(void)test;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct ttmon_dispatch *d = make();
		uint64_t sum[4] = { 0 }, slots = 0, n, busy, told = 0;

		state = seed;
		for (uint64_t i = 1; i < 200; i++) {
			uint16_t cpu = (uint16_t)(rnd() % 4);

			sum[cpu] += 1 + rnd() % 20;
			if (rnd() % 4)
				feed_workload(d, T, i * MS, cpu, MESH, sum[cpu]);
			if (rnd() % 8 == 0)
				feed_workload(d, T, i * MS, cpu, MESH, sum[cpu]);
			if (rnd() % 8 == 0)
				feed_workload(d, T, (i - 1) * MS, cpu, MESH, sum[cpu] / 2 + 1);
			if (rnd() % 8 == 0)
				feed_sums(d, T, i * MS + 5, cpu, MESH, sum[cpu]);
			ttmon_dispatch_slot(d, i, &n, &busy);
			slots += n;
		}
		for (uint32_t cpu = 0; cpu < 4; cpu++)
			feed_sums(d, T, 1 * SEC, cpu, MESH, sum[cpu]);
		ttmon_dispatch_slot(d, 1000, &n, &busy);
		assert_int_equal(workloads(d, MESH), sum[0] + sum[1] + sum[2] + sum[3]);
		assert_int_equal(slots + n, workloads(d, MESH));
		for (size_t i = 0; i < nr_told; i++)
			told += ops_told[i].count;
		assert_true(told <= workloads(d, MESH));
		ttmon_dispatch_free(d);
	}
}

/* ---- clocks ---- */

static void feed_pairs(struct ttmon_dispatch *d, uint32_t chip, uint64_t from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		feed_pair(d, T, from + i * 5 * MS + 20 * US, chip, from + i * 5 * MS, cycles_at(from + i * 5 * MS));
}

/* Runs of 100 us that end 50 us before their callback, n of them a millisecond apart. */
static void feed_runs(struct ttmon_dispatch *d, uint64_t from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t seen = from + i * MS;

		feed_run(d, T, seen, (uint32_t)(i % 2), 5, cycles_at(seen - 150 * US), cycles_at(seen - 50 * US), GHZ);
	}
}

static void check_true(const struct ttmon_tt_run *run, unsigned int clock, uint64_t within)
{
	assert_int_equal(run->clock, clock);
	assert_true(run->error_ns < within);
	assert_true(distance(run->end_ns, run->seen_ns - 50 * US) <= run->error_ns);
	assert_true(distance(run->start_ns, run->seen_ns - 150 * US) <= run->error_ns);
}

static void pairs_map_runs(void **test)
{
	struct ttmon_dispatch *d = make();
	const struct ttmon_tt_clock *c;

	(void)test;
	feed_pairs(d, 0, 1 * SEC, 100);
	feed_pairs(d, 1, 2 * SEC, 100);
	feed_runs(d, 2600 * MS, 100);
	assert_int_equal(nr_runs, 100);
	for (size_t i = 0; i < nr_runs; i++) {
		assert_int_equal(runs[i].chip, 11 + i % 2);
		assert_int_equal(runs[i].logical, i % 2);
		assert_int_equal(runs[i].program, 5);
		check_true(&runs[i], TTMON_CLOCK_PAIRS, 50 * US);
	}
	c = clock_of(d, 1);
	assert_int_equal(c->clock, TTMON_CLOCK_PAIRS);
	assert_int_equal(c->pairs, 100);
	assert_int_equal(c->records, 50);
	assert_int_equal(c->refused, 0);
	assert_true(distance(c->busy_ns, 50 * 100 * US) < 200);
	assert_true(c->ghz > 1.3499 && c->ghz < 1.3501);
	assert_int_equal(c->span_from_ns, 2 * SEC);
	ttmon_dispatch_free(d);
}

static void pairs_in_ticks_of_the_tsc(void **test)
{
	struct ttmon_dispatch *d = make();
	const double tsc_ghz = 2.1;

	(void)test;
	/* The machine has run for an hour. */
	for (uint64_t i = 0; i < 20; i++) {
		uint64_t at = 3600 * SEC + i * 5 * MS;

		feed_pair(d, T, at + 30 * US, 0, (uint64_t)((double)at * tsc_ghz), cycles_at(at));
		feed_pair(d, T, at + 31 * US, 1, (uint64_t)((double)at * tsc_ghz) + 100 * SEC * 2, cycles_at(at));
	}
	feed_runs(d, 3600 * SEC + 200 * MS, 4);
	assert_int_equal(nr_runs, 0);
	feed_tsc(d, 3600 * SEC + 300 * MS, (uint64_t)((double)(3600 * SEC + 300 * MS - 30) * tsc_ghz));
	assert_int_equal(nr_runs, 0);
	/*
	 * Now the clock is known, and the waiting runs are reported. Ticks that lead elsewhere are not used as
	 * pairs.
	 */
	feed_tsc(d, 3600 * SEC + 400 * MS, (uint64_t)((double)(3600 * SEC + 400 * MS - 30) * tsc_ghz));
	assert_int_equal(nr_runs, 2);
	check_true(&runs[0], TTMON_CLOCK_PAIRS, 100 * US);
	check_true(&runs[1], TTMON_CLOCK_PAIRS, 100 * US);
	assert_int_equal(clock_of(d, 0)->pairs, 20);
	assert_int_equal(clock_of(d, 1)->pairs, 0);
	ttmon_dispatch_finish(d);
	assert_int_equal(nr_runs, 4);
	assert_int_equal(runs[3].clock, TTMON_CLOCK_ENVELOPE);
	ttmon_dispatch_free(d);
}

static void one_pair_and_the_frequency_of_the_record(void **test)
{
	struct ttmon_dispatch *d = make();

	(void)test;
	feed_pairs(d, 0, 1 * SEC, 1);
	feed_pairs(d, 1, 1 * SEC, 1);
	feed_runs(d, 2 * SEC, 8);
	assert_int_equal(nr_runs, 8);
	for (size_t i = 0; i < nr_runs; i++) {
		check_true(&runs[i], TTMON_CLOCK_PAIRS, 300 * US);
		assert_true(runs[i].error_ns > 100 * US);
	}
	assert_int_equal(clock_of(d, 1)->clock, TTMON_CLOCK_PAIRS);
	assert_true(clock_of(d, 1)->ghz == GHZ);
	ttmon_dispatch_free(d);
}

static void records_wait_for_the_first_fit(void **test)
{
	struct ttmon_dispatch *d = make();

	(void)test;
	feed_runs(d, 1 * SEC, 100);
	assert_int_equal(nr_runs, 0);
	feed_pairs(d, 0, 1200 * MS, 2);
	assert_int_equal(nr_runs, 50);
	feed_pairs(d, 1, 1300 * MS, 100);
	assert_int_equal(nr_runs, 100);
	for (size_t i = 0; i < nr_runs; i++)
		assert_int_equal(runs[i].clock, TTMON_CLOCK_PAIRS);
	ttmon_dispatch_free(d);
}

static void waiting_ends(void **test)
{
	struct ttmon_dispatch *d = make();
	uint64_t n, busy;

	(void)test;
	feed_runs(d, 1 * SEC, 10);
	ttmon_dispatch_slot(d, 2998, &n, &busy);
	assert_int_equal(nr_runs, 0);
	ttmon_dispatch_slot(d, 3004, &n, &busy);
	assert_int_equal(nr_runs, 6);
	assert_int_equal(busy, 6 * 100 * US);
	ttmon_dispatch_slot(d, 3100, &n, &busy);
	assert_int_equal(nr_runs, 10);
	for (size_t i = 0; i < nr_runs; i++) {
		assert_int_equal(runs[i].clock, TTMON_CLOCK_ENVELOPE);
		assert_int_equal(runs[i].seen_ns, 1 * SEC + i * MS);
		assert_int_equal(runs[i].end_ns, runs[i].seen_ns);
		assert_int_equal(runs[i].start_ns, runs[i].seen_ns - 100 * US);
		assert_int_equal(runs[i].error_ns, UINT64_MAX);
		assert_int_equal(runs[i].enqueued_ns, 0);
	}
	/* The clock had enough time: further runs are reported at once. */
	feed_runs(d, 4 * SEC, 10);
	assert_int_equal(nr_runs, 20);
	ttmon_dispatch_free(d);
}

static void no_more_wait_than_there_is_room_for(void **test)
{
	struct ttmon_dispatch *d = make();

	(void)test;
	for (uint64_t i = 0; i < 5000; i++)
		feed_run(d, T, 1 * SEC + i * US, 0, 1, i * 100, i * 100 + 50, GHZ);
	assert_int_equal(nr_runs, 5000 - 4096);
	assert_int_equal(runs[0].start_cycles, 0);
	assert_int_equal(runs[903].start_cycles, 903 * 100);
	ttmon_dispatch_finish(d);
	assert_int_equal(nr_runs, 5000);
	for (size_t i = 0; i < nr_runs; i++)
		assert_int_equal(runs[i].start_cycles, i * 100);
	ttmon_dispatch_free(d);
}

static void nobody_waits_for_what_the_library_has_not(void **test)
{
	struct ttmon_dispatch *d = make();

	(void)test;
	feed_object(d, 0, TTMON_TT_HAS_PROGRAMS);
	feed_runs(d, 1 * SEC, 10);
	assert_int_equal(nr_runs, 10);
	feed_object(d, 0, TTMON_TT_HAS_PROGRAMS | TTMON_TT_HAS_SYNC);
	feed_run(d, T, 1500 * MS, 0, 1, 5, 6, GHZ);
	assert_int_equal(nr_runs, 10);
	ttmon_dispatch_free(d);
}

static void clock_of_the_record(void **test)
{
	struct ttmon_dispatch *d = make();

	(void)test;
	for (uint64_t i = 0; i < 20; i++) {
		uint64_t seen = 10 * SEC + i * MS;

		/* host = (cycles - offset) / ghz; the clock of the last run is off by an hour. */
		feed_run_sync(d, T, seen, 0, 3, cycles_at(seen - 150 * US), cycles_at(seen - 50 * US), GHZ,
			      i == 19 ? 1000000 + (int64_t)(3600e9 * GHZ) : 1000000, 700);
	}
	assert_int_equal(nr_runs, 19);
	for (size_t i = 0; i < 19; i++)
		check_true(&runs[i], TTMON_CLOCK_RECORD, 710);
	assert_int_equal(clock_of(d, 0)->clock, TTMON_CLOCK_RECORD);
	/* Pairs take precedence. */
	feed_pairs(d, 0, 10100 * MS, 100);
	assert_int_equal(nr_runs, 20);
	feed_run_sync(d, T, 11 * SEC, 0, 3, cycles_at(11 * SEC - 150 * US), cycles_at(11 * SEC - 50 * US), GHZ, 1000000,
		      700);
	check_true(&runs[20], TTMON_CLOCK_PAIRS, 50 * US);
	ttmon_dispatch_free(d);
}

/* A clock that says the run ended after it was reported is wrong. */
static void a_clock_against_the_callback_is_not_used(void **test)
{
	struct ttmon_dispatch *d = make();

	(void)test;
	feed_pairs(d, 0, 1 * SEC, 100);
	feed_runs(d, 1600 * MS, 4);
	nr_runs = 0;
	feed_run(d, T, 1700 * MS, 0, 5, cycles_at(1700 * MS + 200 * US), cycles_at(1700 * MS + 300 * US), GHZ);
	feed_run(d, T, 1701 * MS, 0, 5, cycles_at(1701 * MS - 200 * US), cycles_at(1701 * MS - 100 * US), GHZ);
	assert_int_equal(nr_runs, 2);
	assert_int_equal(runs[0].clock, TTMON_CLOCK_ENVELOPE);
	assert_int_equal(runs[1].clock, TTMON_CLOCK_PAIRS);
	ttmon_dispatch_free(d);
}

/*
 * The device was opened again and no pair was made since: three runs in the past, and the old pairs
 * are forgotten.
 */
static void a_counter_that_was_reset_is_seen_by_its_runs(void **test)
{
	struct ttmon_dispatch *d = make();

	(void)test;
	feed_pairs(d, 0, 10 * SEC, 100);
	for (uint64_t i = 0; i < 10; i++)
		feed_run(d, T, 11 * SEC + i * MS, 0, 5, cycles_at(11 * SEC + i * MS - 100),
			 cycles_at(11 * SEC + i * MS - 50), GHZ);
	assert_int_equal(runs[9].clock, TTMON_CLOCK_PAIRS);
	for (uint64_t i = 0; i < 10; i++)
		feed_run(d, T, 12 * SEC + i * MS, 0, 5, 1000 + i * 1350000, 2000 + i * 1350000, GHZ);
	assert_int_equal(nr_runs, 20);
	for (size_t i = 10; i < 20; i++)
		assert_int_equal(runs[i].clock, TTMON_CLOCK_ENVELOPE);
	assert_int_equal(clock_of(d, 0)->resets, 1);
	/* Pairs of the new counter. */
	for (uint64_t i = 0; i < 10; i++)
		feed_pair(d, T, 13 * SEC + i * 5 * MS + US, 0, 13 * SEC + i * 5 * MS,
			  (uint64_t)((double)(SEC + i * 5 * MS) * GHZ));
	feed_run(d, T, 13 * SEC + 100 * MS, 0, 5, (uint64_t)(1.05e9 * GHZ), (uint64_t)(1.06e9 * GHZ), GHZ);
	assert_int_equal(runs[20].clock, TTMON_CLOCK_PAIRS);
	assert_true(distance(runs[20].start_ns, 13 * SEC + 50 * MS) <= runs[20].error_ns);
	ttmon_dispatch_free(d);
}

/* If pairs of the new counter come first, its runs are accepted at once. */
static void a_counter_that_was_reset_is_seen_by_its_pairs(void **test)
{
	struct ttmon_dispatch *d = make();

	(void)test;
	feed_pairs(d, 0, 10 * SEC, 100);
	for (uint64_t i = 0; i < 10; i++)
		feed_run(d, T, 11 * SEC + i * MS, 0, 5, cycles_at(11 * SEC + i * MS - 100),
			 cycles_at(11 * SEC + i * MS - 50), GHZ);
	for (uint64_t i = 0; i < 10; i++)
		feed_pair(d, T, 13 * SEC + i * 5 * MS + US, 0, 13 * SEC + i * 5 * MS,
			  (uint64_t)((double)(SEC + i * 5 * MS) * GHZ));
	for (uint64_t i = 0; i < 10; i++)
		feed_run(d, T, 13 * SEC + 100 * MS + i * MS, 0, 5, (uint64_t)((1.05e9 + (double)(i * MS)) * GHZ),
			 (uint64_t)((1.06e9 + (double)(i * MS)) * GHZ), GHZ);
	assert_int_equal(nr_runs, 20);
	for (size_t i = 0; i < nr_runs; i++)
		assert_int_equal(runs[i].clock, TTMON_CLOCK_PAIRS);
	assert_true(distance(runs[10].start_ns, 13 * SEC + 50 * MS) <= runs[10].error_ns);
	assert_int_equal(clock_of(d, 0)->resets, 1);
	ttmon_dispatch_free(d);
}

static void envelope_knows_its_dispatch(void **test)
{
	struct ttmon_dispatch *d = make();

	(void)test;
	feed_object(d, 0, TTMON_TT_HAS_PROGRAMS);
	feed_proc(d, T, 1 * SEC, 1 * SEC, TTMON_PROC_EXEC);
	for (uint64_t i = 0; i < 8; i++) {
		/* The daemon reads the sums of a process that has ended before the process's last events come. */
		if (i == 5)
			feed_sums(d, T, 1 * SEC + 4 * MS, 0, MESH, 8);
		feed_workload(d, T, 1 * SEC + i * MS, 0, MESH, i + 1);
	}
	for (uint64_t i = 0; i < 8; i++)
		feed_run(d, T, 2 * SEC + i * MS, 0, 1, i * 10 * MS, i * 10 * MS + (uint64_t)(200e3 * GHZ), GHZ);
	assert_int_equal(nr_runs, 8);
	for (uint64_t i = 0; i < 8; i++) {
		assert_int_equal(runs[i].clock, TTMON_CLOCK_ENVELOPE);
		assert_int_equal(runs[i].start_ns, 2 * SEC + i * MS - 200 * US);
		assert_int_equal(runs[i].error_ns, 1 * SEC - 200 * US);
		assert_int_equal(runs[i].enqueued_ns, 1 * SEC + 7 * MS);
	}
	/*
	 * A trace contains an unknown number of programs: from now on the enqueue time of a run is unknown.
	 */
	feed_dispatch(d, T, 3 * SEC, 0, MESH, TTMON_TT_TRACE, (const uint64_t[TTMON_TT_DISPATCH_MAX]){ 8, 1 });
	feed_run(d, T, 3 * SEC + MS, 0, 1, 1, 2, GHZ);
	assert_int_equal(runs[8].error_ns, UINT64_MAX);
	assert_int_equal(runs[8].enqueued_ns, 3 * SEC);
	for (uint64_t i = 0; i < 4; i++)
		feed_dispatch(d, T, 4 * SEC + i, 0, MESH, TTMON_TT_WORKLOAD,
			      (const uint64_t[TTMON_TT_DISPATCH_MAX]){ 9 + i, 1 });
	feed_run(d, T, 5 * SEC, 0, 1, 1, 2, GHZ);
	assert_int_equal(runs[9].error_ns, UINT64_MAX);
	ttmon_dispatch_free(d);
}

static void envelope_of_a_process_seen_late_is_open(void **test)
{
	struct ttmon_dispatch *d = make();

	(void)test;
	feed_object(d, 0, TTMON_TT_HAS_PROGRAMS);
	feed_proc(d, T, 1 * SEC, 500 * MS, TTMON_PROC_SEEN);
	feed_workload(d, T, 1 * SEC, 0, 0xd0, 1);
	feed_workload(d, T, 1001 * MS, 0, 0xd1, 1);
	feed_runs(d, 2 * SEC, 4);
	assert_int_equal(runs[0].error_ns, UINT64_MAX);
	/* The dispatch to this device, not the last one. */
	assert_int_equal(runs[0].enqueued_ns, 1 * SEC);
	assert_int_equal(runs[1].enqueued_ns, 1001 * MS);
	/* Also with one device: the number of earlier dispatches is unknown. */
	nr_runs = 0;
	feed_proc(d, T + 1, 3 * SEC, 500 * MS, TTMON_PROC_SEEN);
	feed_workload(d, T + 1, 3 * SEC, 0, 0xd0, 1);
	for (uint64_t i = 0; i < 4; i++)
		feed_run(d, T + 1, 4 * SEC + i, 0, 1, i, i + 1, GHZ);
	assert_int_equal(runs[0].error_ns, UINT64_MAX);
	assert_int_equal(runs[0].enqueued_ns, 3 * SEC);
	ttmon_dispatch_free(d);
}

static bool is_one(void *ctx, uint32_t proc)
{
	(void)ctx;
	return proc == 1;
}

static void names_of_the_gone_make_room(void **test)
{
	struct ttmon_ev_tt_kernel ev = { .h.kind = TTMON_EV_TT_KERNEL, .program = 7 };
	struct ttmon_tt_run run = { .program = 7, .start_ns = 1, .end_ns = 2 };
	const struct ttmon_tt_program *v;
	struct ttmon_disp_progs *p;
	uint32_t kernels, other;
	int err = 0;

	(void)test;
	assert_int_equal(ttmon_disp_progs_new(16, &p), 0);
	for (uint32_t i = 1; i <= 20000 && !err; i++) {
		/* Its own program comes in the middle, so that its place moves. */
		ev.program = i == 5000 ? 7 : i;
		snprintf(ev.name, sizeof(ev.name), "kernel %u", i);
		err = ttmon_disp_progs_kernel(p, i == 5000 ? 2 : 1, &ev);
	}
	assert_int_equal(err, -ENOSPC);
	assert_int_equal(ttmon_disp_progs_run(p, 2, 3, &run), 0);
	kernels = run.kernels;
	run.program = 6;
	assert_int_equal(ttmon_disp_progs_run(p, 1, 3, &run), 0);
	other = run.kernels;
	run.program = 7;
	assert_true(kernels && other && kernels != other);
	assert_string_equal(ttmon_disp_progs_kernels(p, kernels), "kernel 5000");
	assert_string_equal(ttmon_disp_progs_kernels(p, other), "kernel 6");
	assert_null(ttmon_disp_progs_kernels(p, 0));
	assert_null(ttmon_disp_progs_kernels(p, UINT32_MAX));
	ttmon_disp_progs_drop(p, is_one, NULL);
	/* The number always stands for the same text, or for none. */
	assert_string_equal(ttmon_disp_progs_kernels(p, kernels), "kernel 5000");
	assert_null(ttmon_disp_progs_kernels(p, other));
	for (uint32_t i = 0; i < 2; i++) {
		ev.program = 8 + i;
		snprintf(ev.name, sizeof(ev.name), i ? "kernel 5000" : "new");
		assert_int_equal(ttmon_disp_progs_kernel(p, 2, &ev), 0);
		run.program = 8 + i;
		assert_int_equal(ttmon_disp_progs_run(p, 2, 3, &run), 0);
		assert_string_equal(ttmon_disp_progs_kernels(p, run.kernels), i ? "kernel 5000" : "new");
	}
	assert_int_equal(ttmon_disp_progs_view(p, &v), 3);
	assert_string_equal(v[0].kernels, "kernel 5000");
	assert_string_equal(v[1].kernels, "new");
	assert_ptr_equal(v[2].kernels, v[0].kernels);
	assert_int_equal(run.kernels, kernels);
	run.program = 99;
	assert_int_equal(ttmon_disp_progs_run(p, 2, 3, &run), 0);
	assert_int_equal(run.kernels, 0);
	ttmon_disp_progs_free(p);
}

/*
 * The probes of the library became active after the process had mapped it; this is reported before its
 * exec, and after it.
 */
static void envelope_of_a_blind_process_is_open(void **test)
{
	struct ttmon_ev_blind blind = { .h.kind = TTMON_EV_BLIND, .object = 1 };
	struct ttmon_dispatch *d = make();

	(void)test;
	feed_object(d, 0, TTMON_TT_HAS_PROGRAMS);
	for (uint32_t t = T; t < T + 4; t++) {
		blind.h.tgid = t;
		blind.how = t == T + 3;
		blind.active_ns = t == T + 2 ? 900 * MS : 1001 * MS; /* of an earlier process with this pid */
		if (t != T + 1)
			ttmon_dispatch_apply(d, &blind.h, sizeof(blind));
		feed_proc(d, t, 1 * SEC, 1 * SEC, TTMON_PROC_EXEC);
		feed_workload(d, t, 1100 * MS, 0, 0xd0, 1);
		if (t == T + 1)
			ttmon_dispatch_apply(d, &blind.h, sizeof(blind));
		nr_runs = 0;
		for (uint64_t i = 0; i < 4; i++)
			feed_run(d, t, 2 * SEC + i, 0, 1, i, i + 1, GHZ);
		assert_true((runs[0].error_ns == UINT64_MAX) == (t < T + 2));
	}
	ttmon_dispatch_free(d);
}

static void refused_records_are_counted(void **test)
{
	struct ttmon_dispatch *d = make();

	(void)test;
	feed_pairs(d, 0, 1 * SEC, 10);
	feed_run(d, T, 2 * SEC, 0, 1, 100, 50, GHZ);
	feed_run(d, T, 2 * SEC, 0, 1, 100, 500, 0.1);
	feed_run(d, T, 2 * SEC, 0, 1, 0, UINT64_MAX, GHZ);
	feed_run(d, T, 2 * SEC, 0, 0, 100, 200, GHZ);
	feed_pair(d, T, 2 * SEC, 999, 2 * SEC, 5);
	feed_pair(d, T, 2 * SEC, 0, 200 * SEC, 5);
	feed_tsc(d, 2 * SEC, 5000);
	feed_tsc(d, 3 * SEC, 5000 + 2000000000);
	feed_pair(d, T, 3 * SEC, 0, 200 * SEC, 5);
	assert_int_equal(nr_runs, 0);
	/* A run that ends before it starts waits for its layout, and is then counted. */
	assert_int_equal(clock_of(d, TTMON_TT_NO_LOGICAL)->refused, 3);
	assert_int_equal(clock_of(d, 0)->refused, 1);
	/* A pair that is refused does not count as a missed run. */
	assert_int_equal(nr_missed, 2);
	ttmon_dispatch_finish(d);
	assert_int_equal(nr_missed, 3);
	assert_int_equal(clock_of(d, 0)->records, 0);
	ttmon_dispatch_free(d);
}

/*
 * Reports which layout the records of a device have, whether another one fits as well, and how many
 * records were refused for that reason.
 */
static void record_layouts_are_told(void **test)
{
	struct ttmon_dispatch *d = make();
	uint64_t w[8] = { 4, 1000, 2000, bits(GHZ), 0, 0, 0, 0 };

	(void)test;
	/* Chip 0, no kernels, and no clock that maps near the callback: it is the same in all layouts. */
	for (uint64_t i = 0; i < 20; i++)
		feed_raw(d, T, 200 * SEC + i, w);
	assert_non_null(clock_of(d, 0)->layout);
	assert_false(clock_of(d, 0)->certain);
	/* A chip in one layout, and nothing in another. */
	w[4] = 1;
	feed_raw(d, T, 300 * SEC, w);
	assert_int_equal(clock_of(d, TTMON_TT_NO_LOGICAL)->refused, 1);
	assert_int_equal(clock_of(d, TTMON_TT_NO_LOGICAL)->refused_layout, 1);
	assert_null(clock_of(d, TTMON_TT_NO_LOGICAL)->layout);
	for (uint64_t i = 0; i < 20; i++)
		feed_run(d, T, 400 * SEC + i, 1, 4, 1000, 2000, GHZ);
	assert_string_equal(clock_of(d, 1)->layout, "kernels32");
	assert_true(clock_of(d, 1)->certain);
	ttmon_dispatch_free(d);
}

/* A program that calibrates all the time does not keep the daemon busy. */
static void pairs_are_limited(void **test)
{
	struct ttmon_dispatch *d = make();

	(void)test;
	for (uint64_t i = 0; i < 1000; i++)
		feed_pair(d, T, 1 * SEC + i * 100, 0, 1 * SEC + i * 100, cycles_at(1 * SEC + i * 100));
	assert_int_equal(clock_of(d, 0)->pairs, 64);
	assert_int_equal(clock_of(d, TTMON_TT_NO_LOGICAL)->refused, 1000 - 64);
	ttmon_dispatch_free(d);
}

static void dropped_records_are_told(void **test)
{
	struct ttmon_dispatch *d = make();
	struct ttmon_ev_tt_program ev = { .h = head(TTMON_EV_TT_PROGRAM, T, 0, 0),
					  .w = { 1ULL << 32 | 7, 1, 2, bits(GHZ), 0x7f0000001000ULL, 1 },
					  .fn = FN_BATCH,
					  .stride = 48,
					  .count = 4,
					  .dropped = 30 };

	(void)test;
	for (uint32_t i = 0; i < 8; i++) {
		ev.h.ts_ns = 1 * SEC + i;
		ev.nth = i % 4;
		ttmon_dispatch_apply(d, &ev.h, sizeof(ev));
	}
	ttmon_dispatch_finish(d);
	assert_int_equal(clock_of(d, 1)->records, 8);
	assert_int_equal(clock_of(d, 1)->dropped, 60);
	assert_int_equal(nr_missed, 60);
	ttmon_dispatch_free(d);
}

/* ---- device time by slot ---- */

/*
 * Runs of any length, some ahead of the newest event, some reported late: every nanosecond is counted
 * in exactly one slot.
 */
static void device_time_is_conserved(void **test)
{
	(void)test;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct ttmon_dispatch *d = make();
		uint64_t n, busy, all = 0, told = 0, longest = 0;

		feed_pairs(d, 0, 1 * SEC, 100);
		state = seed;
		for (uint64_t slot = 1500; slot < 1700; slot++) {
			for (uint64_t i = 0, k = rnd() % 12; i < k; i++) {
				uint64_t seen = slot * MS + i * MS / k;
				uint64_t end = seen - rnd() % (3 * MS) + 1500;

				feed_run(d, T, seen, 0, 1, cycles_at(end - rnd() % (4 * MS)), cycles_at(end), GHZ);
			}
			ttmon_dispatch_slot(d, slot, &n, &busy);
			longest = MAX(longest, busy);
			all += busy;
		}
		ttmon_dispatch_finish(d);
		ttmon_dispatch_slot(d, 1700, &n, &busy);
		all += busy;
		for (size_t i = 0; i < nr_runs; i++)
			told += runs[i].end_ns - runs[i].start_ns;
		assert_true(nr_runs > 500);
		assert_int_equal(all, told);
		assert_int_equal(clock_of(d, 0)->busy_ns, told);
		/* No time is held back and then counted all at once. */
		assert_true(longest < 60 * MS);
		ttmon_dispatch_free(d);
	}
}

/*
 * If the clock places the end of a run past the end of its slot, the slot gets only the part that lies
 * in it.
 */
static void a_run_past_the_slot_is_split(void **test)
{
	struct ttmon_dispatch *d = make();
	uint64_t n, busy;

	(void)test;
	feed_object(d, 0, TTMON_TT_HAS_PROGRAMS);
	feed_pairs(d, 0, 1 * SEC, 100);
	feed_runs(d, 1501 * MS, 4);
	ttmon_dispatch_slot(d, 1599, &n, &busy);
	nr_runs = 0;
	/*
	 * The run was seen 1 us before the end of the slot, and its end is mapped to 1 us after it, which the
	 * clock's error allows.
	 */
	feed_run(d, T, 1601 * MS - US, 0, 1, cycles_at(1599 * MS), cycles_at(1601 * MS + US), GHZ);
	assert_int_equal(nr_runs, 1);
	assert_int_equal(runs[0].clock, TTMON_CLOCK_PAIRS);
	ttmon_dispatch_slot(d, 1600, &n, &busy);
	assert_int_equal(busy, 1601 * MS - runs[0].start_ns);
	assert_true(busy > 1900 * US);
	ttmon_dispatch_slot(d, 1601, &n, &busy);
	assert_int_equal(busy, runs[0].end_ns - 1601 * MS);
	assert_true(busy > 0);
	ttmon_dispatch_slot(d, 1602, &n, &busy);
	assert_int_equal(busy, 0);
	ttmon_dispatch_free(d);
}

/* ---- programs ---- */

static void run_program(struct ttmon_dispatch *d, uint32_t id, uint64_t us)
{
	static uint64_t at;

	at += 1000;
	feed_run(d, T, 3 * SEC + at, 0, id, at, at + us * 1000, 1.0);
}

static void programs_are_summed_up(void **test)
{
	struct ttmon_dispatch *d = make();
	const struct ttmon_tt_program *v;

	(void)test;
	feed_object(d, 0, 0);
	feed_kernel(d, T, 1, 7, 0, "reader.cpp");
	feed_kernel(d, T, 1, 7, 1, "writer.cpp");
	for (uint64_t i = 1; i <= 4; i++)
		run_program(d, 7, i);
	run_program(d, 8, 9);
	assert_int_equal(ttmon_dispatch_programs(d, &v), 2);
	assert_int_equal(v[0].program, 7);
	assert_int_equal(v[0].tgid, T);
	assert_int_equal(v[0].chip, 11);
	assert_int_equal(v[0].runs, 4);
	assert_int_equal(v[0].busy_ns, 10 * US);
	assert_int_equal(v[0].min_ns, 1 * US);
	assert_int_equal(v[0].max_ns, 4 * US);
	assert_string_equal(v[0].kernels, "reader.cpp, writer.cpp");
	assert_null(v[1].kernels);
	assert_int_equal(v[1].runs, 1);
	ttmon_dispatch_free(d);
}

static void an_id_with_other_kernels_is_another_program(void **test)
{
	struct ttmon_dispatch *d = make();
	const struct ttmon_tt_program *v;

	(void)test;
	feed_object(d, 0, 0);
	for (int i = 0; i < 4; i++)
		run_program(d, 7, 1);
	/* The kernels are reported late, and once more: the result is the same. */
	for (int i = 0; i < 2; i++) {
		feed_kernel(d, T, 1, 7, 0, "a.cpp");
		feed_kernel(d, T, 1, 7, 1, "b.cpp");
		run_program(d, 7, 1);
	}
	assert_int_equal(ttmon_dispatch_programs(d, &v), 1);
	assert_int_equal(v[0].runs, 6);
	assert_string_equal(v[0].kernels, "a.cpp, b.cpp");
	/* The id has wrapped. */
	feed_kernel(d, T, 1, 7, 0, "a.cpp");
	feed_kernel(d, T, 1, 7, 1, "c.cpp");
	run_program(d, 7, 2);
	feed_kernel(d, T, 1, 7, 0, "a.cp");
	run_program(d, 7, 3);
	run_program(d, 7, 3);
	assert_int_equal(ttmon_dispatch_programs(d, &v), 3);
	assert_int_equal(v[0].runs, 6);
	assert_string_equal(v[0].kernels, "a.cpp, b.cpp");
	assert_string_equal(v[1].kernels, "a.cpp, c.cpp");
	assert_int_equal(v[1].runs, 1);
	assert_string_equal(v[2].kernels, "a.cp");
	assert_int_equal(v[2].runs, 2);
	ttmon_dispatch_free(d);
}

static void kernel_texts_are_bounded(void **test)
{
	struct ttmon_dispatch *d = make();
	const struct ttmon_tt_program *v;
	char name[192];

	(void)test;
	feed_object(d, 0, 0);
	memset(name, 'k', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	for (uint32_t i = 0; i < 100; i++)
		feed_kernel(d, T, 1, 7, i, name);
	/* A later kernel without the earlier ones has no effect. */
	feed_kernel(d, T, 1, 8, 3, "d.cpp");
	for (int i = 0; i < 4; i++) {
		run_program(d, 7, 1);
		run_program(d, 8, 1);
	}
	assert_int_equal(ttmon_dispatch_programs(d, &v), 2);
	assert_int_equal(strlen(v[0].kernels), 2 * 191 + 2);
	assert_null(v[1].kernels);
	ttmon_dispatch_free(d);
}

static void past_the_limit_programs_are_summed_up(void **test)
{
	struct ttmon_dispatch *d = make_cfg(&(struct ttmon_dispatch_cfg){ .max_programs = 100 });
	const struct ttmon_tt_program *v;
	uint64_t busy = 0, told = 0;
	size_t n;

	(void)test;
	feed_object(d, 0, 0);
	for (uint32_t i = 1; i <= 1000; i++)
		run_program(d, i, i);
	n = ttmon_dispatch_programs(d, &v);
	assert_int_equal(n, 101);
	assert_int_equal(v[100].program, 0);
	assert_int_equal(v[100].runs, 900);
	for (size_t i = 0; i < n; i++)
		busy += v[i].busy_ns;
	for (size_t i = 0; i < nr_runs; i++)
		told += runs[i].end_ns - runs[i].start_ns;
	assert_int_equal(busy, told);
	ttmon_dispatch_free(d);
}

/* ---- processes ---- */

static void life(struct ttmon_dispatch *d, uint32_t tgid, uint64_t start)
{
	feed_proc(d, tgid, start, start, TTMON_PROC_FORK);
	feed_workload(d, tgid, start + 1, 0, MESH, 5);
	feed_kernel(d, tgid, start + 1, 3, 0, "x.cpp");
	for (uint64_t i = 0; i < 4; i++)
		feed_run(d, tgid, start + 10 + i, 1, 3, i * 10, i * 10 + 5, 1.0);
	feed_exit(d, tgid, start + 100);
}

static void ended_processes_are_forgotten(void **test)
{
	const struct ttmon_tt_dispatch_sum *sums;
	const struct ttmon_tt_program *progs;
	const struct ttmon_tt_clock *clocks;

	(void)test;
	for (int mode = 0; mode < 3; mode++) {
		bool keep = mode == 2;
		struct ttmon_dispatch *d = make_cfg(&(struct ttmon_dispatch_cfg){ .keep_all = keep });
		size_t n;

		/* Runs that are reported at once, or that wait when their process is forgotten. */
		if (mode)
			feed_object(d, 0, TTMON_TT_HAS_PROGRAMS);

		life(d, 5, 10 * MS);
		feed_proc(d, 99999, 11 * MS, 11 * MS, TTMON_PROC_FORK);
		feed_workload(d, 99999, 11 * MS, 0, MESH, 1);
		feed_kernel(d, 99999, 11 * MS, 9, 0, "y.cpp");
		for (uint64_t i = 0; i < 4; i++)
			feed_run(d, 99999, 11 * MS + i, 1, 3, i * 10, i * 10 + 5, 1.0);
		for (uint32_t i = 0; i < 1000; i++)
			life(d, 100 + i % 700, 20 * MS + i * MS);
		/* A process that still runs continues its counts, though its entries have moved. */
		feed_workload(d, 99999, 20 * SEC, 0, MESH, 7);
		feed_run(d, 99999, 20 * SEC, 1, 3, 100, 105, 1.0);
		feed_run(d, 99999, 20 * SEC, 1, 9, 200, 205, 1.0);
		/* Every run of a forgotten process was reported before. */
		ttmon_dispatch_finish(d);
		assert_int_equal(nr_runs, 4 * 1002 + 2);
		n = ttmon_dispatch_sums(d, &sums);
		assert_int_equal(ttmon_dispatch_programs(d, &progs), n + 1);
		assert_int_equal(ttmon_dispatch_clocks(d, &clocks), n);
		assert_string_equal(progs[n].kernels, "y.cpp");
		assert_int_equal(progs[n].runs, 1);
		assert_true(keep ? n == 1002 : n > 256 && n < 256 + 34);
		for (size_t i = 0; i < n; i++)
			if (sums[i].tgid == 99999)
				assert_int_equal(sums[i].count[0], 7);
			else
				assert_int_equal(sums[i].count[0], 5);
		for (size_t i = 0; i < n; i++) {
			bool on = progs[i].tgid == 99999;

			assert_int_equal(progs[i].runs, on ? 5 : 4);
			assert_int_equal(clocks[i].tgid, progs[i].tgid);
			assert_int_equal(clocks[i].records, on ? 6 : 4);
			if (!on)
				assert_string_equal(progs[i].kernels, "x.cpp");
		}
		assert_int_equal(ttmon_dispatch_refused(d), 0);
		ttmon_dispatch_free(d);
	}
}

static void a_reused_tgid_is_another_process(void **test)
{
	struct ttmon_dispatch *d = make();
	const struct ttmon_tt_dispatch_sum *v;

	(void)test;
	life(d, T, 1 * SEC);
	/* Here the exit record was lost. */
	feed_proc(d, T, 2 * SEC, 2 * SEC, TTMON_PROC_FORK);
	feed_workload(d, T, 2 * SEC + 1, 0, MESH, 3);
	feed_proc(d, T, 3 * SEC, 3 * SEC, TTMON_PROC_FORK);
	feed_workload(d, T, 3 * SEC + 1, 0, MESH, 9);
	/* An exec does not make a new process. */
	feed_proc(d, T, 4 * SEC, 3 * SEC, TTMON_PROC_EXEC);
	feed_workload(d, T, 4 * SEC + 1, 0, MESH, 10);
	assert_int_equal(ttmon_dispatch_sums(d, &v), 3);
	assert_int_equal(v[0].count[0], 5);
	assert_int_equal(v[0].start_ns, 1 * SEC);
	assert_int_equal(v[1].count[0], 3);
	assert_int_equal(v[2].count[0], 10);
	assert_int_equal(v[2].start_ns, 3 * SEC);
	ttmon_dispatch_free(d);
}

/* ---- nonsensical input ---- */

static uint64_t any(void)
{
	return rnd() >> rnd() % 64;
}

static void random_event(struct ttmon_dispatch *d, uint64_t now)
{
	static const double ghz[] = { 1.0, 1.35, 0.5, 5, -1, 0 };
	uint32_t tgid = (uint32_t)(rnd() % 20);
	uint64_t w[8], sums[TTMON_TT_DISPATCH_MAX];
	char name[8];

	for (int i = 0; i < 8; i++)
		w[i] = any();
	if (rnd() % 4)
		w[3] = bits(ghz[rnd() % ARRAY_SIZE(ghz)]);
	if (rnd() % 4)
		w[2] = w[1] + rnd() % 1000000;
	for (int i = 0; i < TTMON_TT_DISPATCH_MAX; i++)
		sums[i] = any();
	snprintf(name, sizeof(name), "%c", (int)(rnd() % 4 ? 'a' + rnd() % 3 : 0));
	switch (rnd() % 9) {
	case 0:
		feed_dispatch(d, tgid, now, (uint16_t)(rnd() % 4), any(), rnd() % TTMON_TT_DISPATCH_MAX, sums);
		break;
	case 1:
		feed_sums(d, tgid, now, rnd() % 4, rnd() % 4, any());
		break;
	case 2:
		feed_pair(d, tgid, now, (uint32_t)any(), any(), any());
		break;
	case 3:
		feed_pair(d, tgid, now, (uint32_t)(rnd() % 3), now - rnd() % MS, any());
		break;
	case 4:
		feed_tsc(d, rnd() % 2 ? now : any(), any());
		break;
	case 5:
		feed_kernel(d, tgid, now, (uint32_t)(rnd() % 50), (uint32_t)(rnd() % 4), name);
		break;
	case 6:
		if (rnd() % 8 == 0)
			feed_exit(d, tgid, now);
		else if (rnd() % 8 == 0)
			feed_proc(d, tgid, any(), any(), rnd() % 3);
		break;
	default:
		/* Mostly of one layout, so that there are runs; two processes send only invalid records. */
		if (tgid > 1 && rnd() % 16) {
			w[0] = w[0] % 300 | (rnd() % 3) << 32;
			w[4] = 0x7f0000001000ULL;
			w[5] = rnd() % 3;
		}
		feed_raw(d, tgid, rnd() % 16 ? now : any(), w);
	}
}

static void nonsense(void **test)
{
	const struct ttmon_tt_dispatch_sum *sums;
	const struct ttmon_tt_program *progs;
	const struct ttmon_tt_clock *clocks;

	(void)test;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct ttmon_dispatch *d = make_cfg(&(struct ttmon_dispatch_cfg){ .max_programs = 500 });
		uint64_t n, busy, all = 0, told = 0;

		state = seed;
		for (uint64_t i = 0; i < 10000; i++) {
			random_event(d, 1 * SEC + i * 20 * US);
			if (i % 50 == 49) {
				ttmon_dispatch_slot(d, 1000 + i / 50, &n, &busy);
				all += busy;
			}
		}
		ttmon_dispatch_finish(d);
		ttmon_dispatch_slot(d, 1201, &n, &busy);
		all += busy;
		assert_true(nr_runs > 0);
		for (size_t i = 0; i < nr_runs; i++) {
			told += runs[i].end_ns - runs[i].start_ns;
			assert_true(runs[i].program != 0);
			assert_true(runs[i].end_ns - runs[i].start_ns <= 36000 * SEC);
			assert_true(runs[i].ghz >= 0.199 && runs[i].ghz <= 2.001);
		}
		assert_int_equal(all, told);
		ttmon_dispatch_sums(d, &sums);
		assert_true(ttmon_dispatch_programs(d, &progs) <= 500 + 4096);
		ttmon_dispatch_clocks(d, &clocks);
		ttmon_dispatch_free(d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_differences),
		cmocka_unit_test(repeated_and_late_records_count_once),
		cmocka_unit_test(sums_never_begin_anew),
		cmocka_unit_test(sums_of_the_daemon_run_ahead),
		cmocka_unit_test(random_order_of_records),
		cmocka_unit_test(pairs_map_runs),
		cmocka_unit_test(pairs_in_ticks_of_the_tsc),
		cmocka_unit_test(one_pair_and_the_frequency_of_the_record),
		cmocka_unit_test(records_wait_for_the_first_fit),
		cmocka_unit_test(waiting_ends),
		cmocka_unit_test(no_more_wait_than_there_is_room_for),
		cmocka_unit_test(nobody_waits_for_what_the_library_has_not),
		cmocka_unit_test(clock_of_the_record),
		cmocka_unit_test(a_clock_against_the_callback_is_not_used),
		cmocka_unit_test(a_counter_that_was_reset_is_seen_by_its_runs),
		cmocka_unit_test(a_counter_that_was_reset_is_seen_by_its_pairs),
		cmocka_unit_test(envelope_knows_its_dispatch),
		cmocka_unit_test(envelope_of_a_process_seen_late_is_open),
		cmocka_unit_test(envelope_of_a_blind_process_is_open),
		cmocka_unit_test(names_of_the_gone_make_room),
		cmocka_unit_test(refused_records_are_counted),
		cmocka_unit_test(record_layouts_are_told),
		cmocka_unit_test(pairs_are_limited),
		cmocka_unit_test(dropped_records_are_told),
		cmocka_unit_test(device_time_is_conserved),
		cmocka_unit_test(a_run_past_the_slot_is_split),
		cmocka_unit_test(programs_are_summed_up),
		cmocka_unit_test(an_id_with_other_kernels_is_another_program),
		cmocka_unit_test(kernel_texts_are_bounded),
		cmocka_unit_test(past_the_limit_programs_are_summed_up),
		cmocka_unit_test(ended_processes_are_forgotten),
		cmocka_unit_test(a_reused_tgid_is_another_process),
		cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests_name("dispatch", tests, NULL, NULL);
}
