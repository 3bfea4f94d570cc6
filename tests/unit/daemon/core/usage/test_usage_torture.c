// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_usage_torture.c: every allocation of memory that core/usage makes fails once, and then all
 * after it. Nothing may crash, leak, or be counted twice; what could not be counted is counted when
 * there is memory again, or without a name when its process leaves.
 */
#include "tests/unit/feed/usage_feed.h"

#include "tests/unit/feed/torture.h"

#include "lib/base/hmap.c"
#include "daemon/core/usage/usage.c"
#include "daemon/core/usage/groups.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

#define T   1000
#define A   0x7f0000000000ULL
#define M   TTMON_METHOD_HOST_ALLOC
#define BIG 150 /* processes: enough for every table to grow */

static void never_more(struct world *w)
{
	struct ttmon_usage_sums sums = world_sums(w), truth = world_truth(w);

	for (size_t i = 0; i < TTMON_USAGE_SUMS; i++)
		assert_true(((uint64_t *)&sums)[i] <= ((uint64_t *)&truth)[i]);
}

static void comm_of(char *comm, size_t n, uint32_t i)
{
	snprintf(comm, n, "prog%u", i);
}

/* Returns false if there was no memory for the usage itself. */
static bool run(void)
{
	struct ttmon_history_cfg mem = { .fold_ns = SEC, .leaving = world_leaving };
	struct ttmon_cpu_cfg cpu = { .nr_cpus = 1, .leaving = world_cpu_leaving };
	struct ttmon_usage_cfg usage = { .max_groups = 100, .linger_ns = 20 * MS };
	struct world w = { .ts = B, .told_ns = B, .closed_no = NO };
	char comm[16];

	mem.ctx = cpu.ctx = &w;
	if (ttmon_usage_new(&usage, &w.u) < 0)
		return false;
	assert_int_equal(ttmon_history_new(&mem, &w.h), 0);
	assert_int_equal(ttmon_cpu_new(&cpu, &w.c), 0);
	for (uint32_t i = 0; i < BIG; i++) {
		comm_of(comm, sizeof(comm), i);
		world_proc(&w, TO_MEM | TO_CPU, T + i, 1 + i, comm, 1, false);
		feed_alloc(w.h, T + i, w.ts + 1, M, A, PAGE);
		world_pass(&w, MS);
		world_ran(&w, T + i, 1 + i, 100);
		if (i % 3 == 0)
			world_exit(&w, TO_MEM | TO_CPU, T + i, 1 + i);
		if (i % 10 == 9) {
			world_sweep(&w);
			never_more(&w);
		}
	}
	/* Entries of core/cpu are given away now. */
	world_pass(&w, 3 * SEC);
	never_more(&w);
	world_sweep(&w);
	never_more(&w);
	fail_at = -1;
	world_sweep(&w);
	world_check_sums(&w);
	world_fini(&w);
	return true;
}

static void each_allocation_fails(void **state)
{
	long n;

	(void)state;
	for (unsigned int all = 0; all < 2; all++) {
		fail_on = all;
		for (n = 0;; n++) {
			fail_at = n;
			asked = 0;
			run();
			fail_at = -1;
			if (asked <= n)
				break;
		}
		assert_true(n > 100);
	}
}

/* A process leaves while there is no memory for a group of its name. */
static void who_leaves_without_memory_has_no_name(void **state)
{
	struct ttmon_proc p = { .idx = 5, .comm = "prog", .cgroup_id = 7 };
	struct ttmon_cpu_proc c = { .idx = 9, .comm = "prog", .cpu_ns = 11 };
	struct ttmon_usage_cfg cfg = { 0 };
	const struct ttmon_usage_group *v;
	struct ttmon_usage *u;

	(void)state;
	p.by_method[M].allocs = 3;
	assert_int_equal(ttmon_usage_new(&cfg, &u), 0);
	fail_at = asked = 0;
	fail_on = true;
	ttmon_usage_leaving(u, &p);
	ttmon_usage_cpu_leaving(u, &c);
	assert_true(asked > 0);
	fail_at = -1;
	assert_int_equal(ttmon_usage_groups(u, &v), 1);
	assert_string_equal(v[0].comm, "");
	assert_int_equal(v[0].sums.allocs[M], 3);
	assert_int_equal(v[0].sums.cpu_ns, 11);
	assert_int_equal(ttmon_usage_refused(u), 2);
	ttmon_usage_free(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_fails),
		cmocka_unit_test(who_leaves_without_memory_has_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
