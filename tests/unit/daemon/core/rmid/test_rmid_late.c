// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_rmid_late.c: records about an RMID that come after newer ones about it. They change the past;
 * the process that has the RMID now keeps it.
 */
#include "tests/unit/feed/rmid_feed.h"

#define P 100
#define Q 200

/* Whatever is reported late, Q has RMID 5 from 30 ms on, and its own free ends that. */
static void q_has_it(struct ttmon_rmid *r)
{
	assert_int_equal(owner_at(r, 5, 30 * MS), Q);
	assert_int_equal(owner_at(r, 5, 1000 * MS), Q);
	assert_int_equal(totals(r).in_use, 1);
	assert_int_equal(totals(r).peak, 1);
	take(r, 40 * MS, 5, Q);
	assert_int_equal(owner_at(r, 5, 40 * MS - 1), Q);
	assert_int_equal(owner_at(r, 5, 40 * MS), 0);
	assert_int_equal(totals(r).in_use, 0);
}

static void existing(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 5, P);
	take(r, 20 * MS, 5, 0);
	give(r, 30 * MS, 5, Q);
	close_at(r, 35 * MS);
	found(r, 15 * MS, 5, P);
	assert_int_equal(totals(r).late, 1);
	assert_int_equal(owner_at(r, 5, 19 * MS), P);
	assert_int_equal(owner_at(r, 5, 20 * MS), 0);
	q_has_it(r);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/* Its allocation was lost, the dump is late, and the process has ended since. */
static void existing_of_who_was_not_known(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	take(r, 20 * MS, 5, 0);
	give(r, 30 * MS, 5, Q);
	assert_int_equal(owner_at(r, 5, 15 * MS), 0);
	found(r, 15 * MS, 5, P);
	assert_int_equal(owner_at(r, 5, 15 * MS), P);
	assert_int_equal(owner_at(r, 5, 20 * MS), 0);
	assert_int_equal(totals(r).allocs, 1);
	q_has_it(r);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

static void alloc(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	take(r, 20 * MS, 5, 0);
	give(r, 30 * MS, 5, Q);
	close_at(r, 35 * MS);
	give(r, 10 * MS, 5, P);
	assert_int_equal(owner_at(r, 5, 10 * MS - 1), 0);
	assert_int_equal(owner_at(r, 5, 10 * MS), P);
	assert_int_equal(owner_at(r, 5, 20 * MS), 0);
	assert_int_equal(totals(r).allocs, 2);
	q_has_it(r);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/*
 * The free of the predecessor's module names no process, ours does: after a reuse it is the free of
 * the former owner in either case.
 */
static void free_after_reuse(void **state)
{
	static const uint32_t names[] = { 0, P };

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		struct ttmon_rmid *r = fresh();

		give(r, 10 * MS, 5, P);
		give(r, 30 * MS, 5, Q);
		only_odd(r, TTMON_RMID_ODD_LOST_FREE, 1, NULL);
		assert_int_equal(owner_at(r, 5, 25 * MS), P);
		close_at(r, 35 * MS);
		take(r, 20 * MS, 5, names[i]);
		assert_int_equal(owner_at(r, 5, 20 * MS - 1), P);
		assert_int_equal(owner_at(r, 5, 20 * MS), 0);
		assert_int_equal(totals(r).frees, 1);
		q_has_it(r);
		only_odd(r, TTMON_RMID_ODD_LOST_FREE, 1, NULL);
		ttmon_rmid_free(r);
	}
}

/*
 * One process after another on the same id, twice the same process: a free of its first time is not
 * one of its second.
 */
static void free_of_an_earlier_time(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 5, P);
	give(r, 30 * MS, 5, P);
	take(r, 20 * MS, 5, P);
	assert_int_equal(owner_at(r, 5, 20 * MS), 0);
	assert_int_equal(owner_at(r, 5, 30 * MS), P);
	assert_int_equal(owner_at(r, 5, 1000 * MS), P);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/*
 * The time stamps are slightly out of order, so that the free is before the allocation: the process
 * has the RMID.
 */
static void free_before_its_alloc(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 5, P);
	take(r, 9 * MS, 5, P);
	assert_int_equal(owner_at(r, 5, 10 * MS), P);
	assert_int_equal(owner_at(r, 5, 1000 * MS), P);
	assert_int_equal(totals(r).in_use, 1);
	ttmon_rmid_free(r);
}

/* The three records of the life of P, in every order, after Q has the RMID. */
static void whole_life(void **state)
{
	static const uint8_t order[][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 }
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(order); i++) {
		struct ttmon_rmid *r = fresh();

		give(r, 30 * MS, 5, Q);
		close_at(r, 35 * MS);
		for (unsigned int j = 0; j < 3; j++) {
			if (order[i][j] == 0)
				give(r, 10 * MS, 5, P);
			else if (order[i][j] == 1)
				found(r, 15 * MS, 5, P);
			else
				take(r, 20 * MS, 5, 0);
			assert_int_equal(owner_at(r, 5, 30 * MS), Q);
		}
		assert_int_equal(owner_at(r, 5, 10 * MS - 1), 0);
		assert_int_equal(owner_at(r, 5, 10 * MS), P);
		assert_int_equal(owner_at(r, 5, 20 * MS - 1), P);
		assert_int_equal(owner_at(r, 5, 20 * MS), 0);
		q_has_it(r);
		ttmon_rmid_free(r);
	}
}

/*
 * A dump each second has no new information, and does not displace the entries that a late record
 * needs.
 */
static void after_many_dumps(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 5, P);
	take(r, 20 * MS, 5, 0);
	give(r, 30 * MS, 5, Q);
	for (uint64_t i = 0; i < 100; i++)
		found(r, 40 * MS + i * NSEC_PER_SEC, 5, Q);
	/* The free is older than a dump that showed Q, so it was not Q's, and Q keeps the RMID. */
	take(r, 50 * NSEC_PER_SEC, 5, 0);
	assert_int_equal(owner_at(r, 5, 1000 * NSEC_PER_SEC), Q);
	give(r, 12 * MS, 5, P);
	assert_int_equal(owner_at(r, 5, 15 * MS), P);
	assert_int_equal(owner_at(r, 5, 25 * MS), 0);
	assert_int_equal(totals(r).in_use, 1);
	ttmon_rmid_free(r);
}

/* A record older than everything that is remembered changes nothing, and is counted. */
static void older_than_memory(void **state)
{
	struct ttmon_rmid *r = fresh();
	uint64_t t = 100 * MS;

	(void)state;
	for (uint32_t i = 0; i < 20; i++, t += 10 * MS) {
		give(r, t, 5, 1000 + i);
		take(r, t + 5 * MS, 5, 0);
		close_at(r, t + 9 * MS);
	}
	give(r, t, 5, Q);
	nothing_odd(r);
	give(r, 50 * MS, 5, P);
	take(r, 60 * MS, 5, 0);
	only_odd(r, TTMON_RMID_ODD_DROPPED, 2, NULL);
	assert_int_equal(owner_at(r, 5, t), Q);
	assert_int_equal(owner_at(r, 5, t - MS), 0);
	assert_int_equal(owner_at(r, 5, t - 6 * MS), 1019);
	assert_int_equal(totals(r).late, 2);
	ttmon_rmid_free(r);
}

/*
 * A slot closes without all its records: its readings wait, and are assigned to the right processes
 * when the records come.
 */
static void readings_wait(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 10 * MS, 5, P);
	total(r, 10 * MS, 5, 0);
	total(r, 19 * MS, 5, 900);
	nr_pieces = 0;
	ttmon_rmid_close(r, 20 * MS, on_piece, NULL);
	assert_int_equal(total_of(P), 900);
	/* P is freed, and Q gets the RMID: both records are in a ring that is stuck. */
	total(r, 30 * MS, 5, 1000);
	total(r, 33 * MS, 5, 7000);
	nr_pieces = 0;
	ttmon_rmid_skip(r, 34 * MS);
	assert_int_equal(nr_pieces, 0);
	take(r, 19 * MS, 5, 0);
	give(r, 30 * MS, 5, Q);
	close_at(r, 35 * MS);
	assert_int_equal(total_of(P), 0);
	assert_int_equal(total_of(0), 100);
	assert_int_equal(total_of(Q), 6000);
	conserved(r, 0);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/*
 * A ring is stuck for longer than there is room for readings: further ones are merged. Bytes of
 * readings of one process are not lost; if two processes had the RMID, neither gets the bytes of the
 * other.
 */
static void readings_wait_long(void **state)
{
	static const struct {
		uint64_t free_ms, p, q,
			dropped; /* time of P's free; bytes that P gets, that Q gets, that neither gets */
	} cases[] = { { 0, 200, 0, 0 }, { 5, 5, 850, 0 }, { 50, 15, 0, 435 } };

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ttmon_rmid *r = fresh();
		uint64_t start = 100 * MS, value = 0, q_from = cases[i].free_ms ? cases[i].free_ms + 10 : 1000;

		give(r, start, 5, P);
		close_at(r, start + MS);
		for (uint64_t t = 0; t <= 100; t++) {
			total(r, start + t * MS, 5, value);
			value += !cases[i].free_ms ? 2 : t < cases[i].free_ms ? 1 : t >= q_from ? 10 : 0;
			ttmon_rmid_skip(r, start + (t + 1) * MS);
		}
		if (cases[i].free_ms) {
			take(r, start + cases[i].free_ms * MS, 5, 0);
			give(r, start + q_from * MS, 5, Q);
		}
		close_at(r, start + 102 * MS);
		assert_int_equal(total_of(P), cases[i].p);
		assert_int_equal(total_of(Q), cases[i].q);
		assert_int_equal(totals(r).dropped[0], cases[i].dropped);
		assert_true(totals(r).merged > 0);
		conserved(r, 0);
		ttmon_rmid_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(existing),
		cmocka_unit_test(existing_of_who_was_not_known),
		cmocka_unit_test(alloc),
		cmocka_unit_test(free_after_reuse),
		cmocka_unit_test(free_of_an_earlier_time),
		cmocka_unit_test(free_before_its_alloc),
		cmocka_unit_test(whole_life),
		cmocka_unit_test(after_many_dumps),
		cmocka_unit_test(older_than_memory),
		cmocka_unit_test(readings_wait),
		cmocka_unit_test(readings_wait_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
