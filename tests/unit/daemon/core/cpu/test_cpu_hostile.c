// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_cpu_hostile.c: core/cpu and records that no kernel sends, or more of them than there is room
 * for.
 */
#include "tests/unit/feed/cpu_feed.h"

static void test_bad_records(void **state)
{
	const struct ttmon_cpu_who a = feed_who(10, 5);
	struct feed_table good = with_row(B, a, B + 10, a, B + MS), f;
	struct ttmon_cpu *c = new_cpu(1, 0);
	struct closed r;
	_Alignas(8) uint8_t buf[4096];
	struct ttmon_event h = { .kind = TTMON_EV_CPU_SLOT };
	size_t size;

	(void)state;
	feed_slot(c, 1, &good); /* no such CPU */
	feed_open(c, 1, TTMON_CPU_OPEN_KNOWN, B, &good);
	f = good;
	f.t.row_size = 32;
	feed_slot(c, 0, &f);
	f = good;
	f.t.last_ns = f.t.to_ns = B + MS + 1;
	feed_slot(c, 0, &f);
	f = good;
	f.t.last_ns = B - 1;
	feed_slot(c, 0, &f);
	f = good;
	f.t.to_ns = B + 9;
	feed_slot(c, 0, &f);
	/* Rows that are not there, a table that is not whole. */
	memcpy(buf, &h, sizeof(h));
	size = sizeof(h) + feed_pack(buf + sizeof(h), &good);
	ttmon_cpu_apply(c, (const void *)buf, size - 8);
	ttmon_cpu_apply(c, (const void *)buf, sizeof(struct ttmon_ev_cpu_slot) - 8);
	assert_int_equal(totals(c).records_dropped, 8);
	assert_int_equal(totals(c).records, 0);
	r = close_no(c, NO, false);
	assert_int_equal(r.slot.cpus, 0);

	/* Rows of more time than there was, of less, and a record that comes again. */
	f = with_row(B + MS, a, B + MS + 1000, feed_who(0, 0), B + 2 * MS);
	f.rows[0].ns = 1500;
	feed_slot(c, 0, &f);
	f = with_row(B + 2 * MS, a, B + 2 * MS + 1000, feed_who(0, 0), B + 3 * MS);
	f.rows[0].ns = 700;
	feed_slot(c, 0, &f);
	feed_slot(c, 0, &f);
	r = close_no(c, NO + 1, false);
	assert_int_equal(user(&r, 10)->cpu_ns, 1000);
	assert_int_equal(r.slot.missing_ns, 0);
	assert_int_equal(totals(c).mismatch_ns, 500);
	r = close_no(c, NO + 2, false);
	assert_int_equal(user(&r, 10)->cpu_ns, 700);
	assert_int_equal(r.slot.missing_ns, 300);
	assert_int_equal(totals(c).overlaps, 1);
	assert_int_equal(totals(c).mismatch_ns, 800 + MS);
	ttmon_cpu_free(c);
}

/* Records wait for their slots, up to a bound. */
static void test_queue_full(void **state)
{
	struct ttmon_cpu *c = new_cpu(1, 0);
	uint64_t taken, lost, missing = 0;
	struct closed r;

	(void)state;
	for (uint64_t i = 0; i < 100000; i++) {
		if (i == 99999)
			open_known(c, 0, cross(B + i * MS, 0, feed_who(0, 0)));
		feed_cross(c, 0, B + i * MS, B + (i + 1) * MS, feed_who(10, 5));
	}
	lost = totals(c).records_dropped;
	taken = 100000 - lost;
	assert_in_range(taken, 20000, 80000);
	for (uint64_t i = 0; i < taken + 10; i++) {
		r = close_no(c, NO + i, false);
		missing += r.slot.missing_ns;
	}
	assert_int_equal(totals(c).user_ns, taken * MS);
	assert_int_equal(missing, 10 * MS);
	/* There is room again. What was in hand when the last record found none is not taken. */
	r = close_no(c, NO + 99999, false);
	assert_int_equal(r.slot.missing_ns, MS);
	feed_cross(c, 0, B + 100000 * MS, B + 100001 * MS, feed_who(10, 5));
	r = close_no(c, NO + 100000, false);
	assert_int_equal(r.slot.user_ns, MS);
	assert_int_equal(totals(c).gaps, 1);
	ttmon_cpu_free(c);
}

static struct feed_table noise(uint64_t *rnd, uint64_t now)
{
	uint64_t begin = now + feed_below(rnd, 6 * MS) - 3 * MS, last = begin + feed_below(rnd, MS);
	struct feed_table f = cross(begin, 0, feed_who((uint32_t)feed_below(rnd, 6), feed_below(rnd, 3)));

	f.t.last_ns = last;
	f.t.to_ns = last + (feed_below(rnd, 4) ? feed_below(rnd, 3 * MS) : feed_random(rnd) >> 2);
	if (feed_below(rnd, 8))
		f.t.to_ns = MIN(f.t.to_ns, last + 4 * MS);
	if (feed_below(rnd, 2))
		f.t.row_size = TTMON_CPU_ROW_FULL;
	f.t.nr_rows = (uint16_t)feed_below(rnd, 5);
	f.t.switched = (uint8_t)feed_below(rnd, 256);
	for (unsigned int i = 0; i < f.t.nr_rows; i++) {
		f.rows[i].who = feed_who((uint32_t)feed_below(rnd, 6), feed_below(rnd, 3));
		f.rows[i].who.cls = (uint8_t)feed_below(rnd, 4);
		f.rows[i].who.flags = (uint8_t)feed_random(rnd);
		f.rows[i].ns = (uint32_t)(feed_below(rnd, 9) ? feed_below(rnd, MS / 2) : feed_random(rnd));
		f.rows[i].ctr[0] = feed_below(rnd, 1000);
		f.rows[i].switches = (uint32_t)feed_below(rnd, 3);
	}
	return f;
}

/*
 * Records that no kernel sends: whatever they say, sums are kept and no slot has more time than CPUs.
 */
static void test_noise(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		uint64_t rnd = seed * 0x9e3779b97f4a7c15ULL, now = B, no = NO, rows_ns = 0, ctr = 0;
		struct ttmon_cpu *c = new_cpu(3, 4);
		struct closed r;

		for (unsigned int n = 0; n < 300; n++) {
			struct feed_table f = noise(&rnd, now);
			uint32_t cpu = (uint32_t)feed_below(&rnd, 3);

			if (feed_below(&rnd, 3))
				feed_slot(c, cpu, &f);
			else
				feed_open(c, cpu, (unsigned int)feed_below(&rnd, 5), now, &f);
			if (feed_below(&rnd, 3))
				continue;
			now += feed_below(&rnd, MS);
			feed_task(c, (unsigned int)feed_below(&rnd, 4), now,
				  feed_who((uint32_t)feed_below(&rnd, 6), feed_below(&rnd, 3)), "n");
			no += feed_below(&rnd, 30) == 0;
			r = close_no(c, no++, feed_below(&rnd, 5) == 0);
			assert_true(r.slot.user_ns + r.slot.kernel_ns + r.slot.idle_ns + r.slot.missing_ns <= 3 * MS);
			assert_true(r.slot.user_ns + r.slot.kernel_ns + r.slot.idle_ns + r.slot.missing_ns >=
				    r.slot.cpus * MS);
			for (size_t i = 0; i < r.n; i++) {
				rows_ns += r.rows[i].cpu_ns;
				ctr += r.rows[i].ctr[0];
			}
			assert_int_equal(totals(c).told_ns, rows_ns + totals(c).late_ns);
			assert_int_equal(totals(c).ctr[0], ctr);
			assert_true(totals(c).procs <= 4);
		}
		assert_int_equal(feed_all(c).ctr[0], ctr);
		ttmon_cpu_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_records),
		cmocka_unit_test(test_queue_full),
		cmocka_unit_test(test_noise),
	};

	return cmocka_run_group_tests_name("cpu_hostile", tests, NULL, NULL);
}
