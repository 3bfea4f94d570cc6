// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_rmid.c: which process had which RMID when; each contradiction that a source may report has a
 * test.
 */
#include "tests/unit/feed/rmid_feed.h"

static void owners_are_intervals(void **state)
{
	struct ttmon_rmid *r = fresh();
	struct ttmon_rmid_owner o;
	struct ttmon_rmid_totals t;

	(void)state;
	give(r, 10 * MS, 17, 100);
	take(r, 20 * MS, 17, 100);
	give(r, 22 * MS, 17, 200);
	assert_int_equal(owner_at(r, 17, 10 * MS - 1), 0);
	assert_int_equal(owner_at(r, 17, 10 * MS), 100);
	assert_int_equal(owner_at(r, 17, 20 * MS - 1), 100);
	assert_int_equal(owner_at(r, 17, 20 * MS), 0);
	assert_int_equal(owner_at(r, 17, 22 * MS), 200);
	assert_int_equal(owner_at(r, 17, 1000 * MS), 200);
	assert_int_equal(owner_at(r, 18, 15 * MS), 0);
	assert_int_equal(owner_at(r, 70000, 15 * MS), 0);
	ttmon_rmid_get_owner(r, 17, 15 * MS, &o);
	assert_int_equal(o.start_ns, 100000);
	assert_int_equal(o.since_ns, 10 * MS);
	assert_int_equal(o.until_ns, 20 * MS);
	assert_string_equal(o.comm, "p100");
	ttmon_rmid_get_owner(r, 17, 25 * MS, &o);
	assert_int_equal(o.until_ns, 0);
	t = totals(r);
	assert_int_equal(t.allocs, 2);
	assert_int_equal(t.frees, 1);
	assert_int_equal(t.in_use, 1);
	assert_int_equal(t.peak, 1);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

static void repeated_alloc_is_ignored(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 3, 100);
	give(r, 11 * MS, 3, 100);
	found(r, 12 * MS, 3, 100);
	assert_int_equal(totals(r).allocs, 1);
	assert_int_equal(totals(r).in_use, 1);
	assert_int_equal(owner_at(r, 3, 10 * MS), 100);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/* The predecessor's module does not report start times; a later source fills them in. */
static void start_time_comes_later(void **state)
{
	struct ttmon_ev_rmid e = life_record(TTMON_RMID_ALLOC, 10 * MS, 3, 100);
	struct ttmon_rmid *r = fresh();
	struct ttmon_rmid_owner o;

	(void)state;
	e.start_ns = 0;
	ttmon_rmid_apply(r, &e.h);
	found(r, 12 * MS, 3, 100);
	ttmon_rmid_get_owner(r, 3, 12 * MS, &o);
	assert_int_equal(o.start_ns, 100000);
	nothing_odd(r);
	/* The same number, but another process. */
	e = life_record(TTMON_RMID_EXISTING, 14 * MS, 3, 100);
	e.start_ns = 13 * MS;
	ttmon_rmid_apply(r, &e.h);
	only_odd(r, TTMON_RMID_ODD_LOST_FREE, 1, "RMID 3 went from process 100 to 100, but was not told to be freed");
	ttmon_rmid_get_owner(r, 3, 14 * MS, &o);
	assert_int_equal(o.start_ns, 13 * MS);
	ttmon_rmid_free(r);
}

static void lost_free(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 3, 100);
	give(r, 20 * MS, 3, 200);
	assert_int_equal(owner_at(r, 3, 20 * MS - 1), 100);
	assert_int_equal(owner_at(r, 3, 20 * MS), 200);
	assert_int_equal(totals(r).in_use, 1);
	only_odd(r, TTMON_RMID_ODD_LOST_FREE, 1, "RMID 3 went from process 100 to 200, but was not told to be freed");
	/* Reported by a dump. */
	found(r, 30 * MS, 3, 300);
	assert_int_equal(owner_at(r, 3, 30 * MS), 300);
	only_odd(r, TTMON_RMID_ODD_LOST_FREE, 2, NULL);
	ttmon_rmid_free(r);
}

static void double_free(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 17, 4711);
	take(r, 20 * MS, 17, 0);
	take(r, 21 * MS, 17, 4711);
	take(r, 22 * MS, 17, 0);
	assert_int_equal(totals(r).frees, 1);
	assert_int_equal(totals(r).in_use, 0);
	assert_int_equal(owner_at(r, 17, 20 * MS - 1), 4711);
	assert_int_equal(owner_at(r, 17, 20 * MS), 0);
	only_odd(r, TTMON_RMID_ODD_DOUBLE_FREE, 2, "RMID 17 was freed twice (process 4711)");
	ttmon_rmid_free(r);
}

/*
 * The fork bug of unvariance/collector's module: a child that inherited the RMID exits and frees it,
 * while the parent runs on.
 */
static void free_by_another_process(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 17, 100);
	take(r, 20 * MS, 17, 101);
	assert_int_equal(owner_at(r, 17, 25 * MS), 100);
	assert_int_equal(totals(r).frees, 0);
	only_odd(r, TTMON_RMID_ODD_SHARED, 1, "RMID 17 belongs to process 100, but process 101 has it too");
	/* The parent's own free is valid. */
	take(r, 30 * MS, 17, 100);
	assert_int_equal(owner_at(r, 17, 30 * MS), 0);
	assert_int_equal(totals(r).frees, 1);
	only_odd(r, TTMON_RMID_ODD_SHARED, 1, NULL);
	ttmon_rmid_free(r);
}

static void existing_at_the_start_is_normal(void **state)
{
	struct ttmon_rmid *r = fresh();
	struct ttmon_rmid_totals t;

	(void)state;
	found(r, 100 * MS, 5, 100);
	take(r, 120 * MS, 6, 200); /* before the dump reached it */
	take(r, 130 * MS, 7, 0);
	assert_int_equal(owner_at(r, 5, 1 * MS), 100);
	assert_int_equal(owner_at(r, 5, 200 * MS), 100);
	assert_int_equal(owner_at(r, 6, 1 * MS), 200);
	assert_int_equal(owner_at(r, 6, 120 * MS), 0);
	assert_int_equal(owner_at(r, 7, 1 * MS), 0);
	nothing_odd(r);
	t = totals(r);
	assert_int_equal(t.allocs, 0);
	assert_int_equal(t.frees, 2);
	assert_int_equal(t.in_use, 1);
	/* It is known to be free now. */
	take(r, 140 * MS, 7, 0);
	only_odd(r, TTMON_RMID_ODD_DOUBLE_FREE, 1, "RMID 7 was freed twice");
	ttmon_rmid_free(r);
}

static void lost_alloc_shows_in_a_dump(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 5, 100);
	take(r, 20 * MS, 5, 100);
	found(r, 50 * MS, 5, 200);
	/* The time of the allocation is unknown: the earliest possible time is taken. */
	assert_int_equal(owner_at(r, 5, 20 * MS - 1), 100);
	assert_int_equal(owner_at(r, 5, 20 * MS), 200);
	only_odd(r, TTMON_RMID_ODD_LOST_ALLOC, 1, "RMID 5 is in use, but its allocation was not told (process 200)");
	ttmon_rmid_free(r);
}

static void lost_alloc_shows_on_a_cpu(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	info(r, 1, 64);
	close_at(r, 10 * MS);
	/* The dump may still report it. */
	ttmon_rmid_seen(r, 5, 200, 500 * MS);
	nothing_odd(r);
	ttmon_rmid_seen(r, 5, 200, 1010 * MS);
	ttmon_rmid_seen(r, 5, 200, 1011 * MS);
	only_odd(r, TTMON_RMID_ODD_LOST_ALLOC, 1, "RMID 5 is in use, but its allocation was not told (process 200)");
	ttmon_rmid_seen(r, 5, 201, 1012 * MS);
	only_odd(r, TTMON_RMID_ODD_LOST_ALLOC, 2, NULL);
	ttmon_rmid_free(r);
}

static void two_processes_on_one_rmid(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 5, 100);
	close_at(r, 11 * MS);
	ttmon_rmid_seen(r, 5, 100, 10 * MS);
	nothing_odd(r);
	ttmon_rmid_seen(r, 5, 101, 10 * MS);
	ttmon_rmid_seen(r, 5, 100, 11 * MS);
	ttmon_rmid_seen(r, 5, 101, 11 * MS);
	only_odd(r, TTMON_RMID_ODD_SHARED, 1, "RMID 5 belongs to process 100, but process 101 has it too");
	/* None of these is about a valid RMID and a process. */
	ttmon_rmid_seen(r, 0, 101, 12 * MS);
	ttmon_rmid_seen(r, 5, 0, 12 * MS);
	ttmon_rmid_seen(r, TTMON_RMID_LIMIT, 102, 12 * MS);
	only_odd(r, TTMON_RMID_ODD_SHARED, 1, NULL);
	ttmon_rmid_free(r);
}

/*
 * An exiting process runs on after its RMID was freed, but not when another process has the RMID.
 */
static void seen_after_its_free(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 5, 100);
	take(r, 20 * MS + 1, 5, 100);
	ttmon_rmid_seen(r, 5, 100, 20 * MS);
	ttmon_rmid_seen(r, 5, 100, 21 * MS);
	give(r, 23 * MS, 5, 200);
	/* Both owners are valid in that slot. */
	ttmon_rmid_seen(r, 5, 200, 23 * MS);
	nothing_odd(r);
	ttmon_rmid_seen(r, 5, 100, 23 * MS);
	only_odd(r, TTMON_RMID_ODD_SHARED, 1, "RMID 5 belongs to process 200, but process 100 has it too");
	ttmon_rmid_free(r);
}

static void reused_early(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 5, 100);
	take(r, 20 * MS, 5, 100);
	give(r, 22 * MS, 5, 200); /* 2 ms is enough */
	nothing_odd(r);
	take(r, 30 * MS, 5, 200);
	give(r, 32 * MS - 1, 5, 300);
	only_odd(r, TTMON_RMID_ODD_REUSED_EARLY, 1,
		 "RMID 5 was given out again 1999 us after it was freed (process 300)");
	assert_int_equal(owner_at(r, 5, 32 * MS), 300);
	ttmon_rmid_free(r);
}

static void exhausted(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	life(r, TTMON_RMID_NONE, 10 * MS, 0, 100);
	life(r, TTMON_RMID_NONE, 11 * MS, 0, 101);
	only_odd(r, TTMON_RMID_ODD_EXHAUSTED, 2, "all RMIDs are in use (process 100)");
	ttmon_rmid_free(r);
}

/* A time stamp that is far from the record's own time is invalid: the record's time is used. */
static void stamps_that_are_no_times(void **state)
{
	struct ttmon_ev_rmid e = life_record(TTMON_RMID_ALLOC, 20 * MS, 5, 200);
	struct ttmon_rmid *r = fresh();

	(void)state;
	e.when_ns = UINT64_MAX / 3;
	ttmon_rmid_apply(r, &e.h);
	assert_int_equal(owner_at(r, 5, 20 * MS + 199), 0);
	assert_int_equal(owner_at(r, 5, 20 * MS + 200), 200);
	e = life_record(TTMON_RMID_FREE, 3000 * MS, 5, 200);
	e.when_ns = 0;
	ttmon_rmid_apply(r, &e.h);
	assert_int_equal(owner_at(r, 5, 3000 * MS + 199), 200);
	assert_int_equal(owner_at(r, 5, 3000 * MS + 200), 0);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/*
 * RMID_SET comes when the cold thread has made the change: in any order, before or after its slot
 * closes.
 */
static void facts_wait_for_their_time(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	close_at(r, 10 * MS);
	fact(r, TTMON_RMID_ALLOC, 15 * MS, 5, 200);
	fact(r, TTMON_RMID_FREE, 12 * MS + 500 * US, 5, 100);
	fact(r, TTMON_RMID_ALLOC, 12 * MS, 5, 100);
	close_at(r, 12 * MS);
	assert_int_equal(totals(r).allocs, 0);
	close_at(r, 13 * MS);
	assert_int_equal(totals(r).allocs, 1);
	assert_int_equal(totals(r).frees, 1);
	assert_int_equal(owner_at(r, 5, 12 * MS), 100);
	assert_int_equal(owner_at(r, 5, 15 * MS), 0);
	close_at(r, 16 * MS);
	assert_int_equal(owner_at(r, 5, 15 * MS), 200);
	nothing_odd(r);
	/* It is late: its time stays. */
	fact(r, TTMON_RMID_FREE, 15 * MS + 1, 5, 200);
	close_at(r, 17 * MS);
	assert_int_equal(owner_at(r, 5, 15 * MS + 1), 0);
	nothing_odd(r);
	/* A time a minute ahead is invalid. */
	fact(r, TTMON_RMID_ALLOC, 17 * MS + 61 * NSEC_PER_SEC, 5, 300);
	only_odd(r, TTMON_RMID_ODD_DROPPED, 1, "no room for readings or events of RMIDs");
	ttmon_rmid_free(r);
}

/* More facts than there is room for: none is lost. */
static void facts_without_end(void **state)
{
	struct ttmon_rmid *r = fresh();
	uint64_t n = 20000;

	(void)state;
	close_at(r, 10 * MS);
	for (uint64_t i = 0; i < n; i++)
		fact(r, i & 1 ? TTMON_RMID_FREE : TTMON_RMID_ALLOC, 20 * MS + i * 2 * MS, 1 + i / 2 % 4000, 100);
	for (uint64_t end = 11 * MS; end < 20 * MS + n * 2 * MS + 2 * MS; end += MS)
		close_at(r, end);
	assert_int_equal(totals(r).allocs, n / 2);
	assert_int_equal(totals(r).frees, n / 2);
	assert_int_equal(totals(r).in_use, 0);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/* The oldest owners are forgotten; those in slots that are still open are missed. */
static void many_owners(void **state)
{
	struct ttmon_rmid *r = fresh();
	uint64_t t;

	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		t = 10 * MS * (i + 1);
		give(r, t, 5, 100 + i);
		take(r, t + 8 * MS, 5, 0);
		close_at(r, t + 9 * MS);
	}
	nothing_odd(r);
	assert_int_equal(owner_at(r, 5, 200 * MS), 119);
	assert_int_equal(owner_at(r, 5, 130 * MS), 112);
	assert_int_equal(owner_at(r, 5, 120 * MS), 0);
	for (uint32_t i = 0; i < 9; i++) {
		t = 300 * MS + 4 * MS * i;
		give(r, t, 5, 200 + i);
		take(r, t + 2 * MS, 5, 0);
	}
	only_odd(r, TTMON_RMID_ODD_DROPPED, 1, NULL);
	ttmon_rmid_free(r);
}

static void impossible_ids(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 0, 100);
	give(r, 10 * MS, TTMON_RMID_LIMIT, 100);
	take(r, 10 * MS, UINT32_MAX, 100);
	total(r, 10 * MS, TTMON_RMID_LIMIT, 5);
	only_odd(r, TTMON_RMID_ODD_DROPPED, 4, NULL);
	give(r, 10 * MS, TTMON_RMID_LIMIT - 1, 100);
	assert_int_equal(owner_at(r, TTMON_RMID_LIMIT - 1, 11 * MS), 100);
	ttmon_rmid_free(r);
}

/*
 * resctrl by cgroup: an RMID of several processes has no owner, and none of them counts as an
 * intruder.
 */
static void rmid_of_a_group(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 5, 0);
	total(r, 11 * MS, 5, 1000);
	total(r, 12 * MS, 5, 3000);
	close_at(r, 13 * MS);
	assert_int_equal(nr_pieces, 1);
	assert_int_equal(total_of(0), 2000);
	assert_int_equal(totals(r).unassigned[0], 2000);
	ttmon_rmid_seen(r, 5, 100, 12 * MS);
	take(r, 14 * MS, 5, 100);
	assert_int_equal(totals(r).in_use, 0);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

static void lifecycle_at_the_end_of_time(void **state)
{
	uint64_t t = UINT64_MAX - 3 * MS;
	struct ttmon_rmid *r = fresh();

	(void)state;
	close_at(r, t - MS);
	fact(r, TTMON_RMID_FREE, t + 4 * MS, 5, 100);
	fact(r, TTMON_RMID_ALLOC, t, 5, 100);
	close_at(r, t + 2 * MS);
	assert_int_equal(owner_at(r, 5, t), 100);
	close_at(r, t + 5 * MS);
	assert_int_equal(owner_at(r, 5, t - 1), 0);
	assert_int_equal(owner_at(r, 5, UINT64_MAX), 100);
	assert_int_equal(owner_at(r, 5, 1), 100);
	assert_int_equal(owner_at(r, 5, t + 4 * MS), 0);
	give(r, t + 6 * MS - 1, 5, 200);
	only_odd(r, TTMON_RMID_ODD_REUSED_EARLY, 1,
		 "RMID 5 was given out again 1999 us after it was freed (process 200)");
	ttmon_rmid_free(r);
}

static void names(void **state)
{
	struct ttmon_rmid *r = fresh();
	char buf[8];

	(void)state;
	for (unsigned int i = 0; i < TTMON_RMID_ODD_MAX; i++)
		assert_non_null(ttmon_rmid_odd_name(i));
	assert_null(ttmon_rmid_odd_name(TTMON_RMID_ODD_MAX));
	assert_string_equal(ttmon_rmid_odd_name(TTMON_RMID_ODD_LOST_FREE), "lost_free");
	assert_string_equal(ttmon_rmid_backend_name(TTMON_RMID_RESCTRL), "resctrl");
	assert_string_equal(ttmon_rmid_backend_name(TTMON_RMID_AUTO), "auto");
	assert_null(ttmon_rmid_backend_name(TTMON_RMID_BACKEND_MAX));
	/* A note that does not fit is cut. */
	take(r, 1, 5, 100);
	take(r, 2, 5, 100);
	assert_false(ttmon_rmid_note(r, buf, 0));
	assert_true(ttmon_rmid_note(r, buf, sizeof(buf)));
	assert_string_equal(buf, "RMID 5 ");
	ttmon_rmid_free(r);
	ttmon_rmid_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners_are_intervals),
		cmocka_unit_test(repeated_alloc_is_ignored),
		cmocka_unit_test(start_time_comes_later),
		cmocka_unit_test(lost_free),
		cmocka_unit_test(double_free),
		cmocka_unit_test(free_by_another_process),
		cmocka_unit_test(existing_at_the_start_is_normal),
		cmocka_unit_test(lost_alloc_shows_in_a_dump),
		cmocka_unit_test(lost_alloc_shows_on_a_cpu),
		cmocka_unit_test(two_processes_on_one_rmid),
		cmocka_unit_test(seen_after_its_free),
		cmocka_unit_test(reused_early),
		cmocka_unit_test(exhausted),
		cmocka_unit_test(stamps_that_are_no_times),
		cmocka_unit_test(facts_wait_for_their_time),
		cmocka_unit_test(facts_without_end),
		cmocka_unit_test(many_owners),
		cmocka_unit_test(impossible_ids),
		cmocka_unit_test(rmid_of_a_group),
		cmocka_unit_test(lifecycle_at_the_end_of_time),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
