// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_dispatch_torture.c: every allocation of memory that the dispatch side makes fails once, and
 * then all after it. Nothing may crash or leak, and what was not taken is counted. The sources are
 * compiled in here once more, with malloc and friends replaced; the linker then takes nothing of them
 * from the archive.
 */
#include "tests/unit/feed/dispatch_feed.h"

static long fail_at = -1; /* which allocation fails, -1: none */
static bool fail_on;	  /* and all after it */
static long asked;

static bool refuse_one(void)
{
	long n = asked++;

	return fail_at >= 0 && (n == fail_at || (fail_on && n > fail_at));
}

static void *torture_malloc(size_t n)
{
	return refuse_one() ? NULL : malloc(n);
}

static void *torture_calloc(size_t n, size_t size)
{
	return refuse_one() ? NULL : calloc(n, size);
}

static void *torture_reallocarray(void *p, size_t n, size_t size)
{
	return refuse_one() ? NULL : reallocarray(p, n, size);
}

#define malloc(n)		 torture_malloc(n)
#define calloc(n, size)		 torture_calloc(n, size)
#define reallocarray(p, n, size) torture_reallocarray(p, n, size)

/* They share some names of statics. */
#include "daemon/core/dispatch/dispatch.c"
#include "daemon/core/dispatch/runs.c"
#include "daemon/core/dispatch/clock.c"
#define grow	progs_grow
#define move_to progs_move_to
#include "daemon/core/dispatch/progs.c"
#include "lib/base/hmap.c"

#undef malloc
#undef calloc
#undef reallocarray

#define T 10

static uint64_t told, dispatched;

static void on_run(void *ctx, const struct ttmon_tt_run *run)
{
	(void)ctx;
	assert_true(run->program != 0);
	told++;
}

static void on_dispatched(void *ctx, const struct ttmon_tt_dispatched *op)
{
	(void)ctx;
	dispatched += op->count;
}

/* A little of everything. Returns false if there was not even a beginning. */
static bool run(uint64_t *refused)
{
	static const struct ttmon_dispatch_ops ops = { .run = on_run, .dispatched = on_dispatched };
	struct ttmon_dispatch_cfg cfg = { .max_programs = 20 };
	const struct ttmon_tt_dispatch_sum *sums;
	const struct ttmon_tt_program *progs;
	const struct ttmon_tt_clock *clocks;
	struct ttmon_dispatch *d = NULL;
	uint64_t n, busy;
	char name[16];

	told = dispatched = 0;
	if (ttmon_dispatch_new(&cfg, &ops, NULL, &d))
		return false;
	for (uint32_t i = 0; i < 330; i++) {
		uint64_t ts = SEC + i * 10 * MS;
		uint32_t tgid = T + i / 2;

		feed_proc(d, tgid, ts, ts, TTMON_PROC_FORK);
		feed_workload(d, tgid, ts + 1, 0, MESH + i % 3, i % 2 + 1);
		snprintf(name, sizeof(name), "k%u.cpp", i % 30);
		feed_kernel(d, tgid, ts + 2, 1 + i % 30, 0, name);
		feed_kernel(d, tgid, ts + 2, 1 + i % 30, 1, "z.cpp");
		for (uint64_t k = 0; k < 5; k++)
			feed_run(d, tgid, ts + 3 + k, i % 3, 1 + i % 30, ts + k, ts + k + 100, 1.0);
		if (i % 4 == 0)
			feed_pair(d, tgid, ts + 20, i % 3, ts + 20, ts + 20);
		feed_sums(d, tgid, ts + 30, 1, MESH, 4);
		if (i % 2)
			feed_exit(d, tgid, ts + 40);
		ttmon_dispatch_slot(d, ts / MS, &n, &busy);
	}
	ttmon_dispatch_finish(d);
	assert_true(ttmon_dispatch_sums(d, &sums) < 2000);
	assert_true(ttmon_dispatch_programs(d, &progs) < 2000);
	n = ttmon_dispatch_clocks(d, &clocks);
	*refused = ttmon_dispatch_refused(d);
	for (size_t i = 0; i < n; i++)
		*refused += clocks[i].refused;
	ttmon_dispatch_free(d);
	return true;
}

static void any_allocation_may_fail(void **test)
{
	uint64_t refused, all_told, all_dispatched;
	long total;

	(void)test;
	fail_at = -1;
	assert_true(run(&refused));
	assert_int_equal(refused, 0);
	assert_int_equal(told, 330 * 5);
	all_told = told;
	all_dispatched = dispatched;
	total = asked;
	assert_true(total > 200);
	for (int on = 0; on < 2; on++) {
		/* The first ones and those of every table's growth one by one, then samples. */
		for (long at = 0; at < total; at += at < 150 ? 1 : 11) {
			asked = 0;
			fail_at = at;
			fail_on = on;
			if (!run(&refused)) {
				assert_true(at < 2);
				continue;
			}
			assert_true(told <= all_told && dispatched <= all_dispatched);
			if (told < all_told || dispatched < all_dispatched)
				assert_true(refused > 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_allocation_may_fail),
	};

	return cmocka_run_group_tests_name("dispatch_torture", tests, NULL, NULL);
}
