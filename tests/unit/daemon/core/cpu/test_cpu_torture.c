// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_cpu_torture.c: every allocation of memory that core/cpu makes fails once, and then all after
 * it. Nothing may crash or leak, and time that finds no process or no row of its own is still in its
 * slot. The sources are compiled in here once more, with malloc and friends replaced; the linker then
 * takes nothing of them from the archive.
 */
#include "tests/unit/feed/cpu_feed.h"

#include "tests/unit/feed/torture.h"

#include "daemon/core/cpu/cpu.c"
#include "daemon/core/cpu/chain.c"
#include "daemon/core/cpu/procs.c"
#include "daemon/core/cpu/rows.c"
#include "lib/base/hmap.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

#define MANY 24 /* slots, each with CPUs x ROWS new processes */

static void feed_many(struct ttmon_cpu *c, uint64_t no, uint32_t cpu)
{
	struct feed_table f = { .t = { .begin_ns = no * MS, .row_size = TTMON_CPU_ROW_FULL, .switched = 1 } };

	for (uint32_t i = 0; i < TTMON_CPU_ROWS; i++) {
		f.rows[i].who = feed_who(1 + (uint32_t)(no - NO) * 64 + cpu * 32 + i, no);
		f.rows[i].ns = 1000 + i;
		f.rows[i].ctr[0] = 7;
		f.t.last_ns += f.rows[i].ns;
	}
	f.t.nr_rows = TTMON_CPU_ROWS;
	f.t.last_ns += f.t.begin_ns;
	f.t.to_ns = (no + 1) * MS;
	f.t.ctr[0] = 3;
	feed_slot(c, cpu, &f);
}

/* A little of everything. False: it could not even be made. */
static bool run(struct ttmon_cpu_totals *t)
{
	const struct ttmon_cpu_cfg cfg = { .nr_cpus = 2, .max_procs = 400 };
	struct ttmon_rdt_piece piece = { .tgid = 9999, .total = 5, .local = 3 };
	uint64_t ns = 0, ctr = 0, copies = 0;
	struct ttmon_cpu *c;

	if (ttmon_cpu_new(&cfg, &c) < 0)
		return false;
	for (uint64_t no = NO; no < NO + MANY; no++) {
		struct ttmon_slot slot = { 0 };
		const struct ttmon_slot_row *rows;
		size_t n;

		/* CPU 1 is ahead: its records wait. */
		feed_many(c, no, 0);
		if (no % 8 == NO % 8)
			for (uint64_t k = 0; k < 8; k++)
				feed_many(c, no + k, 1);
		for (uint32_t i = 0; i < 20; i++) {
			uint32_t tgid = (uint32_t)(no - NO) * 64 + i;

			feed_task(c, i % 5 == 4 ? TTMON_TASK_EXIT : TTMON_TASK_FORK, no * MS, feed_who(1 + tgid, no),
				  "p");
			feed_rmid(c, i % 3 ? TTMON_RMID_ALLOC : TTMON_RMID_FREE, no * MS, 1 + tgid, no, 1 + tgid % 100);
			ttmon_cpu_copy(c, 5000 + tgid, 10);
			ttmon_cpu_pinned(c, 1 + tgid, 4096);
			copies++;
		}
		ttmon_cpu_rdt(c, &piece);
		n = ttmon_cpu_close(c, no, false, &slot, &rows);
		assert_true(slot.user_ns + slot.idle_ns + slot.missing_ns <= 2 * MS);
		assert_true(slot.user_ns + slot.idle_ns + slot.missing_ns >= slot.cpus * MS);
		for (size_t i = 0; i < n; i++) {
			ns += rows[i].cpu_ns;
			ctr += rows[i].ctr[0];
			copies -= rows[i].copies;
		}
	}
	ttmon_cpu_get_totals(c, t);
	assert_int_equal(copies, 0);
	assert_int_equal(t->told_ns, ns + t->late_ns);
	assert_int_equal(t->ctr[0], ctr);
	assert_int_equal(feed_all(c).cpu_ns, t->told_ns);
	assert_int_equal(feed_all(c).ctr[0], t->ctr[0]);
	assert_true(t->procs <= 400);
	/* What was not taken shows: time as missing, processes as OTHER. */
	assert_true(t->user_ns + t->idle_ns + t->missing_ns == MANY * 2 * MS || t->records_dropped);
	assert_true(!t->missing_ns || t->records_dropped);
	ttmon_cpu_free(c);
	return true;
}

static void torture(bool on)
{
	struct ttmon_cpu_totals t;
	long n;

	fail_at = -1;
	asked = 0;
	assert_true(run(&t));
	assert_int_equal(t.missing_ns, 0);
	n = asked;
	assert_true(n > 15);
	fail_on = on;
	for (long i = 0; i < n; i++) {
		bool made;

		fail_at = i;
		asked = 0;
		made = run(&t);
		/* The first few are those of ttmon_cpu_new(). */
		assert_true(made == (i >= 6));
	}
	fail_at = -1;
}

static void test_one_fails(void **state)
{
	(void)state;
	torture(false);
}

static void test_all_fail(void **state)
{
	(void)state;
	torture(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_fails),
		cmocka_unit_test(test_all_fail),
	};

	return cmocka_run_group_tests_name("cpu_torture", tests, NULL, NULL);
}
