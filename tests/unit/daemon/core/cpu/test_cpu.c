// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_cpu.c: the rules of core/cpu for single CPUs: how a chain of records, CPU_OPEN and the end of a
 * slot combine. test_cpu_procs.c tests to which process a row belongs, test_cpu_model.c the sums,
 * test_cpu_hostile.c input that no kernel sends.
 */
#include "tests/unit/feed/cpu_feed.h"

static void test_split(void **state)
{
	const struct ttmon_cpu_who a = feed_who(10, 5), b = feed_who(11, 6);
	struct feed_table f = with_row(B, a, B + 300 * US, b, B + 2 * MS + 1);
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;
	/* b has 1 MS + 700 US + 1 of it: 1,700,001 ns. */
	const uint64_t n = 1000003, part0 = n * 700000 / 1700001, part1 = n * 1700000 / 1700001 - part0;

	(void)state;
	set_ctr(&f, 77, n);
	feed_slot(c, 0, &f);
	r = close_no(c, NO, false);
	assert_int_equal(r.slot.cpus, 1);
	assert_int_equal(r.slot.user_ns, MS);
	assert_int_equal(r.slot.flags, TTMON_SLOT_HAS_CPU | TTMON_SLOT_HAS_CTR);
	assert_int_equal(r.n, 2);
	assert_int_equal(r.rows[0].tgid, 11); /* more CPU time first */
	assert_int_equal(r.rows[0].ctr[0], part0);
	assert_int_equal(r.rows[0].switches, 0);
	assert_int_equal(user(&r, 10)->cpu_ns, 300 * US);
	assert_int_equal(user(&r, 10)->ctr[3], 4 * 77);
	assert_int_equal(user(&r, 10)->switches, 1);
	r = close_no(c, NO + 1, false);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.rows[0].cpu_ns, MS);
	assert_int_equal(r.rows[0].ctr[0], part1);
	r = close_no(c, NO + 2, true);
	assert_int_equal(user(&r, 11)->cpu_ns, 1);
	assert_int_equal(user(&r, 11)->ctr[0], n - part0 - part1);
	assert_int_equal(user(&r, 11)->switches, 1);
	assert_int_equal(user(&r, 11)->flags, 0);
	assert_int_equal(r.slot.missing_ns, MS - 1);
	assert_true(r.slot.flags & TTMON_SLOT_MISSING);
	assert_int_equal(totals(c).exact, 2);
	assert_int_equal(totals(c).worst_ns, MS - 1);
	assert_int_equal(totals(c).worst_slot, NO + 2);
	ttmon_cpu_free(c);
}

static void test_wide_products(void **state)
{
	struct feed_table f = cross(B, B + 3 * MS, feed_who(10, 5));
	struct ttmon_cpu *c = new_cpu(1, 0);
	uint64_t sum = 0;
	struct closed r;

	(void)state;
	set_ctr(&f, 0, 0);
	f.t.ctr[0] = UINT64_MAX - 1;
	feed_slot(c, 0, &f);
	for (unsigned int i = 0; i < 3; i++) {
		r = close_no(c, NO + i, false);
		sum += r.rows[0].ctr[0];
		assert_in_range(r.rows[0].ctr[0] - (UINT64_MAX - 1) / 3, 0, 1);
	}
	assert_int_equal(sum, UINT64_MAX - 1);
	ttmon_cpu_free(c);
}

/* A measurement over no time: its counts are kept. */
static void test_no_time(void **state)
{
	struct feed_table f = with_row(B, feed_who(10, 5), B, feed_who(11, 6), B);
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;

	(void)state;
	set_ctr(&f, 5, 9);
	feed_slot(c, 0, &f);
	feed_cross(c, 0, B, B + MS, feed_who(0, 0));
	r = close_no(c, NO, false);
	assert_int_equal(r.slot.missing_ns, 0);
	assert_int_equal(user(&r, 10)->ctr[0], 5);
	assert_int_equal(user(&r, 11)->ctr[1], 18);
	assert_int_equal(user(&r, 11)->switches, 1);
	assert_int_equal(r.rows[2].cls, TTMON_ROW_IDLE);
	ttmon_cpu_free(c);
}

static void test_extended(void **state)
{
	const struct ttmon_cpu_who a = feed_who(10, 5), b = feed_who(11, 6);
	struct feed_table f = with_row(B, a, B + 400 * US, b, B + 4 * MS);
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;

	(void)state;
	set_ctr(&f, 70, 3600);
	open_known(c, 0, f);
	r = close_no(c, NO, false);
	assert_int_equal(r.slot.missing_ns, 0);
	assert_int_equal(user(&r, 10)->ctr[0], 70);
	assert_int_equal(user(&r, 10)->flags, 0);
	assert_int_equal(user(&r, 11)->cpu_ns, 600 * US);
	assert_int_equal(user(&r, 11)->ctr[0], 0);
	assert_int_equal(user(&r, 11)->flags, TTMON_ROW_CTR_UNKNOWN);
	r = close_no(c, NO + 1, false);
	assert_int_equal(user(&r, 11)->cpu_ns, MS);
	assert_int_equal(totals(c).extended, 2);

	/*
	 * The record reports the whole time again: no time is added twice, and the counters of the closed
	 * slots are counted late.
	 */
	feed_slot(c, 0, &f);
	r = close_no(c, NO + 2, false);
	assert_null(user(&r, 10));
	assert_int_equal(user(&r, 11)->cpu_ns, MS);
	assert_int_equal(user(&r, 11)->ctr[0], 2600);
	assert_int_equal(user(&r, 11)->flags, TTMON_ROW_CTR_LATE);
	assert_int_equal(totals(c).late_ctr[0], 1600);
	r = close_no(c, NO + 3, false);
	assert_int_equal(user(&r, 11)->ctr[0], 1000);
	assert_int_equal(user(&r, 11)->flags, 0);
	assert_int_equal(user(&r, 11)->switches, 1);
	assert_int_equal(totals(c).told_ns, 4 * MS);
	assert_int_equal(totals(c).ctr[0], 3670);
	assert_int_equal(totals(c).late_ns, 0);
	assert_int_equal(totals(c).mismatch_ns, 0);
	assert_int_equal(totals(c).exact, 4);
	ttmon_cpu_free(c);
}

static void test_extended_idle(void **state)
{
	struct feed_table f = cross(B, B + 100 * SEC, feed_who(0, 0));
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;

	(void)state;
	set_ctr(&f, 0, 1000);
	open_known(c, 0, f);
	for (uint64_t i = 0; i < 100000; i++) {
		if (i == 99999)
			feed_slot(c, 0, &f);
		r = close_no(c, NO + i, false);
		assert_int_equal(r.n, 1);
		assert_int_equal(idle_ns(&r), MS);
		assert_int_equal(r.rows[0].flags & TTMON_ROW_CTR_UNKNOWN, 0);
	}
	assert_int_equal(r.rows[0].ctr[0], 1000);
	assert_int_equal(totals(c).exact, 100000);
	assert_int_equal(totals(c).idle_ns, 100 * SEC);
	ttmon_cpu_free(c);
}

static void test_contradiction(void **state)
{
	const struct ttmon_cpu_who a = feed_who(10, 5), b = feed_who(11, 6);
	struct feed_table f = with_row(B, a, B + 400 * US, b, B + 2 * MS);
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;

	(void)state;
	open_known(c, 0, f);
	close_no(c, NO, false);
	f.rows[0].who.tgid = 12;
	feed_slot(c, 0, &f);
	r = close_no(c, NO + 1, false);
	assert_int_equal(totals(c).mismatch_ns, 400 * US);
	assert_null(user(&r, 12));
	/* The slot was extended with one process, and the record shows that another one was on the CPU. */
	open_known(c, 0, cross(B + 2 * MS, 0, a));
	close_no(c, NO + 2, false);
	/*
	 * This state was reported after the record was sent, but read before it: the slot was not closed with
	 * it.
	 */
	open_known(c, 0, cross(B + 4 * MS, 0, b));
	feed_cross(c, 0, B + 2 * MS, B + 4 * MS, b);
	r = close_no(c, NO + 3, false);
	assert_int_equal(user(&r, 11)->cpu_ns, MS);
	assert_int_equal(totals(c).mismatch_ns, 1400 * US);
	/* This record ends before the slot through which the CPU was extended. */
	open_known(c, 0, cross(B + 4 * MS, 0, a));
	close_no(c, NO + 4, false);
	feed_cross(c, 0, B + 4 * MS, B + 4 * MS + 900 * US, a);
	feed_cross(c, 0, B + 4 * MS + 900 * US, B + 6 * MS, b);
	r = close_no(c, NO + 5, false);
	assert_int_equal(user(&r, 11)->cpu_ns, MS);
	assert_int_equal(totals(c).mismatch_ns, 1500 * US);
	assert_int_equal(totals(c).told_ns, 6 * MS);
	ttmon_cpu_free(c);
}

static void test_record_overtakes_open(void **state)
{
	const struct ttmon_cpu_who a = feed_who(10, 5), b = feed_who(11, 6);
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;

	(void)state;
	feed_cross(c, 0, B, B + 3 * MS, a);
	open_known(c, 0, cross(B, 0, b)); /* read before the record was sent */
	r = close_no(c, NO, false);
	assert_int_equal(user(&r, 10)->cpu_ns, MS);
	assert_null(user(&r, 11));
	assert_int_equal(totals(c).mismatch_ns, 0);
	ttmon_cpu_free(c);
}

static void test_forced_then_late(void **state)
{
	const struct ttmon_cpu_who a = feed_who(10, 5), b = feed_who(11, 6);
	struct feed_table f = with_row(B + MS, a, B + MS + 400 * US, b, B + 4 * MS);
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;

	(void)state;
	set_ctr(&f, 70, 2600);
	feed_cross(c, 0, B, B + MS, a);
	close_no(c, NO, false);
	open_known(c, 0, f);
	r = close_no(c, NO + 1, true);
	assert_int_equal(r.n, 0);
	assert_int_equal(r.slot.missing_ns, MS);
	r = close_no(c, NO + 2, true);
	assert_int_equal(r.slot.missing_ns, MS);
	feed_slot(c, 0, &f);
	r = close_no(c, NO + 3, false);
	assert_int_equal(r.slot.missing_ns, 0);
	assert_int_equal(user(&r, 11)->cpu_ns, MS);
	assert_int_equal(user(&r, 11)->ctr[0], 2600);
	assert_int_equal(user(&r, 10)->cpu_ns, 0);
	assert_int_equal(user(&r, 10)->ctr[0], 70);
	assert_int_equal(user(&r, 10)->switches, 1);
	assert_int_equal(user(&r, 10)->flags, TTMON_ROW_CTR_LATE);
	assert_int_equal(totals(c).late_ns, 2 * MS);
	assert_int_equal(totals(c).missing_ns, 2 * MS);
	assert_int_equal(totals(c).told_ns, 4 * MS);
	assert_int_equal(totals(c).late_ctr[0], 70 + 1600);
	ttmon_cpu_free(c);
}

static void test_gap(void **state)
{
	const struct ttmon_cpu_who a = feed_who(10, 5);
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;

	(void)state;
	feed_cross(c, 0, B, B + MS + 100 * US, a);
	/* [1.1, 1.6) ms is lost */
	feed_cross(c, 0, B + MS + 600 * US, B + 3 * MS, a);
	close_no(c, NO, false);
	r = close_no(c, NO + 1, false);
	assert_int_equal(r.slot.missing_ns, 500 * US);
	assert_int_equal(user(&r, 10)->cpu_ns, 500 * US);
	assert_int_equal(totals(c).gaps, 1);
	r = close_no(c, NO + 2, false);
	assert_int_equal(r.slot.missing_ns, 0);
	/* Time that a CPU_OPEN skips is missing too. */
	open_known(c, 0, cross(B + 3 * MS + 200 * US, 0, a));
	r = close_no(c, NO + 3, false);
	assert_int_equal(r.slot.missing_ns, 200 * US);
	assert_int_equal(totals(c).gaps, 2);
	/* The record of the skipped time was only late. */
	feed_cross(c, 0, B + 3 * MS, B + 3 * MS + 200 * US, a);
	feed_cross(c, 0, B + 3 * MS + 200 * US, B + 5 * MS, a);
	r = close_no(c, NO + 4, false);
	assert_int_equal(r.slot.missing_ns, 0);
	assert_int_equal(totals(c).late_ns, 200 * US);
	assert_int_equal(totals(c).overlaps, 0);
	/* One record was indeed lost, and then another one: the time of each is skipped. */
	open_known(c, 0, cross(B + 5 * MS + 100 * US, 0, a));
	r = close_no(c, NO + 5, false);
	assert_int_equal(r.slot.missing_ns, 100 * US);
	feed_cross(c, 0, B + 5 * MS + 100 * US, B + 6 * MS, a);
	close_no(c, NO + 6, true);
	open_known(c, 0, cross(B + 7 * MS + 300 * US, 0, a));
	r = close_no(c, NO + 7, false);
	assert_int_equal(r.slot.missing_ns, 300 * US);
	assert_int_equal(totals(c).gaps, 4);
	ttmon_cpu_free(c);
}

static void test_unknown(void **state)
{
	const struct ttmon_cpu_who a = feed_who(10, 5);
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;

	(void)state;
	open_known(c, 0, cross(B, 0, a));
	close_no(c, NO, false);
	feed_open(c, 0, TTMON_CPU_OPEN_UNKNOWN, B + 2 * MS, NULL);
	r = close_no(c, NO + 1, false);
	assert_int_equal(r.slot.missing_ns, MS);
	assert_int_equal(r.slot.cpus, 1);
	/* The state can be read again and is the same. */
	open_known(c, 0, cross(B, 0, a));
	r = close_no(c, NO + 2, false);
	assert_int_equal(user(&r, 10)->cpu_ns, MS);
	assert_int_equal(totals(c).late_ns, MS);
	ttmon_cpu_free(c);
}

static void test_offline(void **state)
{
	const struct ttmon_cpu_who a = feed_who(10, 5), idle = feed_who(0, 0);
	struct ttmon_cpu *c = new_cpu(2, 0);
	struct closed r;

	(void)state;
	feed_cross(c, 0, B, B + 20 * MS, a);
	open_known(c, 1, cross(B, 0, idle));
	r = close_no(c, NO, false);
	assert_int_equal(r.slot.cpus, 2);
	feed_open(c, 1, TTMON_CPU_OPEN_OFFLINE, B + MS + 300 * US, NULL);
	r = close_no(c, NO + 1, false);
	assert_int_equal(r.slot.cpus, 1);
	assert_int_equal(r.slot.missing_ns, 0);
	assert_int_equal(idle_ns(&r), 300 * US);
	r = close_no(c, NO + 2, false);
	assert_int_equal(r.slot.cpus, 1);
	assert_int_equal(r.slot.missing_ns, 0);
	assert_int_equal(idle_ns(&r), 0);
	assert_int_equal(totals(c).cpus, 1);
	/*
	 * The kernel's state does not show that the family was off: otherwise the whole time off would count
	 * as idle.
	 */
	feed_cross(c, 1, B, B + 4 * MS + 200 * US, idle);
	feed_cross(c, 1, B + 4 * MS + 200 * US, B + 6 * MS, a);
	close_no(c, NO + 3, false);
	r = close_no(c, NO + 4, false);
	assert_int_equal(r.slot.cpus, 1);
	assert_int_equal(r.slot.missing_ns, 0);
	assert_int_equal(idle_ns(&r), 0);
	assert_int_equal(user(&r, 10)->cpu_ns, MS + 800 * US);
	r = close_no(c, NO + 5, false);
	assert_int_equal(r.slot.cpus, 2);
	assert_int_equal(r.slot.user_ns, 2 * MS);
	assert_int_equal(totals(c).missing_ns + totals(c).late_ns, 0);
	/* The slots in which the CPU came and went are not complete. */
	assert_int_equal(totals(c).slots, 4);
	assert_int_equal(totals(c).exact, 4);
	ttmon_cpu_free(c);
}

static void test_begins(void **state)
{
	const struct ttmon_cpu_who a = feed_who(10, 5);
	struct ttmon_cpu *c = new_cpu(4, 0);
	struct feed_table f;
	struct closed r;

	(void)state;
	/* There is no time before the first slot that closes. */
	f = with_row(B - 5 * MS, a, B - 5 * MS + 100, a, B - 2 * MS);
	feed_slot(c, 0, &f);
	f = cross(B - 2 * MS, B + 3 * MS, a);
	set_ctr(&f, 0, 500);
	feed_slot(c, 0, &f);
	feed_cross(c, 3, B + 250 * US, B + 3 * MS, feed_who(0, 0));
	r = close_no(c, NO, false);
	assert_int_equal(r.slot.cpus, 1);
	assert_int_equal(r.slot.user_ns, MS);
	assert_int_equal(r.slot.idle_ns, 750 * US);
	assert_int_equal(r.slot.missing_ns, 0);
	assert_int_equal(user(&r, 10)->ctr[0], 100);
	assert_int_equal(user(&r, 10)->switches, 0);
	assert_int_equal(totals(c).slots, 0);
	r = close_no(c, NO + 1, false);
	assert_int_equal(r.slot.cpus, 2);
	assert_int_equal(totals(c).slots, 1);
	assert_int_equal(totals(c).told_ns, 3 * MS + 750 * US);
	assert_int_equal(totals(c).late_ns, 0);
	ttmon_cpu_free(c);
}

static void test_nothing(void **state)
{
	struct ttmon_cpu *c = new_cpu(4, 0);
	struct closed r = close_no(c, NO, false);

	(void)state;
	assert_int_equal(r.slot.flags, 0);
	assert_int_equal(r.slot.cpus, 0);
	assert_int_equal(r.n, 0);
	assert_int_equal(totals(c).slots, 0);
	ttmon_cpu_free(c);
}

static void test_jump(void **state)
{
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;

	(void)state;
	open_known(c, 0, cross(B, 0, feed_who(10, 5)));
	close_no(c, NO, false);
	r = close_no(c, NO + 10001, false);
	assert_int_equal(r.slot.user_ns, MS);
	assert_int_equal(r.slot.missing_ns, 0);
	assert_int_equal(totals(c).missing_ns, 10 * SEC);
	assert_int_equal(totals(c).late_ns, 10 * SEC);
	/* A slot that was closed stays closed. */
	r = close_no(c, NO + 5, false);
	assert_int_equal(r.n, 0);
	assert_int_equal(totals(c).told_ns, 10 * SEC + 2 * MS);
	ttmon_cpu_free(c);
}

/* A record of a very long time costs as much as one of a millisecond. */
static void test_ages(void **state)
{
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;

	(void)state;
	feed_cross(c, 0, B, B + (1ULL << 62), feed_who(10, 5));
	for (uint64_t i = 0; i < 3; i++) {
		r = close_no(c, NO + i, false);
		assert_int_equal(r.slot.user_ns, MS);
	}
	r = close_no(c, NO + (1ULL << 41), false);
	assert_int_equal(r.slot.user_ns, MS);
	ttmon_cpu_free(c);
}

/*
 * Slots at both ends of the clock. Slot numbers continue past 2^64 ns; their times are modulo 2^64.
 */
static void test_wrap(void **state)
{
	const uint64_t last = UINT64_MAX / MS, nos[] = { 0, last - 1 };

	(void)state;
	for (unsigned int k = 0; k < ARRAY_SIZE(nos); k++) {
		struct feed_table f = cross(nos[k] * MS, (nos[k] + 4) * MS, feed_who(10, 5));
		struct ttmon_cpu *c = new_cpu(1, 0);

		set_ctr(&f, 0, 400);
		open_known(c, 0, f);
		for (uint64_t i = 0; i < 4; i++) {
			struct closed r;

			if (i == 1)
				feed_slot(c, 0, &f);
			r = close_no(c, nos[k] + i, false);
			assert_int_equal(r.slot.user_ns, MS);
			assert_int_equal(r.slot.missing_ns, 0);
			assert_int_equal(r.rows[0].ctr[0], i == 0 ? 0 : i == 1 ? 200 : 100);
		}
		assert_int_equal(totals(c).told_ns, 4 * MS);
		ttmon_cpu_free(c);
	}
}

static void test_counter_flags(void **state)
{
	struct feed_table f = cross(B, B + MS, feed_who(10, 5));
	struct ttmon_cpu *c = new_cpu(2, 0);
	struct closed r;

	(void)state;
	set_ctr(&f, 0, 5);
	f.t.who.flags = TTMON_WHO_SCALED;
	feed_slot(c, 0, &f);
	f.t.who = feed_who(11, 5);
	f.t.who.flags = TTMON_WHO_CTR_UNKNOWN;
	memset(f.t.ctr, 0, sizeof(f.t.ctr));
	feed_slot(c, 1, &f);
	r = close_no(c, NO, false);
	assert_int_equal(user(&r, 10)->flags, TTMON_ROW_CTR_SCALED);
	assert_int_equal(user(&r, 11)->flags, TTMON_ROW_CTR_UNKNOWN);
	ttmon_cpu_free(c);
}

static void test_refused(void **state)
{
	struct ttmon_cpu_cfg cfg = { .nr_cpus = 0 };
	struct ttmon_cpu *c = (void *)1;

	(void)state;
	assert_int_equal(ttmon_cpu_new(&cfg, &c), -EINVAL);
	assert_ptr_equal(c, (void *)1);
	ttmon_cpu_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_wide_products),
		cmocka_unit_test(test_no_time),
		cmocka_unit_test(test_extended),
		cmocka_unit_test(test_extended_idle),
		cmocka_unit_test(test_contradiction),
		cmocka_unit_test(test_record_overtakes_open),
		cmocka_unit_test(test_forced_then_late),
		cmocka_unit_test(test_gap),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_offline),
		cmocka_unit_test(test_begins),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_jump),
		cmocka_unit_test(test_ages),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_counter_flags),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
}
