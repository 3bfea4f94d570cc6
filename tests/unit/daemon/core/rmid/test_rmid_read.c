// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_rmid_read.c: readings of RDT over time: splitting, owners, baselines, late readings; each has a
 * test.
 */
#include "tests/unit/feed/rmid_feed.h"

#define P 100
#define Q 200

/* P has this RMID since 1 ms, with total 1000 at 10 ms. */
static struct ttmon_rmid *owned(void)
{
	struct ttmon_rmid *r = fresh();

	give(r, 1 * MS, 5, P);
	total(r, 10 * MS, 5, 1000);
	close_at(r, 10 * MS);
	return r;
}

/*
 * Readings each millisecond, shortly after the slot boundary: the slot before gets all bytes but those
 * of the few us after it, in time.
 */
static void each_millisecond(void **state)
{
	struct ttmon_rmid *r = fresh();
	const struct ttmon_rdt_piece *p;

	(void)state;
	give(r, 1 * MS, 5, P);
	total(r, 10 * MS + 5 * US, 5, 0);
	close_at(r, 11 * MS - 1 * MS);
	total(r, 11 * MS + 5 * US, 5, 1000000);
	close_at(r, 11 * MS);
	p = piece_of(P);
	assert_non_null(p);
	assert_int_equal(p->total, 995000);
	assert_int_equal(p->ns, 995 * US);
	assert_int_equal(p->start_ns, 1000 * P);
	assert_int_equal(p->rmid, 5);
	assert_false(p->has_occupancy);
	assert_false(p->unknown);
	total(r, 12 * MS + 5 * US, 5, 3000000);
	close_at(r, 12 * MS);
	p = piece_of(P);
	assert_int_equal(p->total, 5000 + 1990000);
	assert_int_equal(p->ns, 1 * MS);
	conserved(r, 10000);
	close_at(r, 13 * MS);
	assert_int_equal(total_of(P), 10000);
	conserved(r, 0);
	close_at(r, 14 * MS);
	assert_int_equal(nr_pieces, 0);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/* Numbers that do not divide evenly: each slot rounds down, and nothing is lost. */
static void odd_bytes_over_odd_times(void **state)
{
	struct ttmon_rmid *r = owned();
	uint64_t sum = 0;

	(void)state;
	total(r, 17 * MS + 3, 5, 1000 + 10);
	for (uint64_t end = 11 * MS; end <= 18 * MS; end += MS) {
		close_at(r, end);
		sum += total_of(P);
		/* floor(10 * (end - 10 ms) / 7.000003 ms) */
		assert_int_equal(sum, end == 18 * MS ? 10 : 10 * (end - 10 * MS) / (7 * MS + 3));
	}
	conserved(r, 0);
	ttmon_rmid_free(r);
}

/*
 * resctrl at 4 Hz: the reading comes when most of its slots are closed. Their share is added to the
 * oldest open slot, at once.
 */
static void four_readings_a_second(void **state)
{
	struct ttmon_rmid *r = owned();
	const struct ttmon_rdt_piece *p;

	(void)state;
	for (uint64_t end = 11 * MS; end <= 260 * MS; end += MS) {
		close_at(r, end);
		assert_int_equal(nr_pieces, 0);
	}
	total(r, 260 * MS + 500 * US, 5, 1000 + 2505000);
	close_at(r, 261 * MS);
	p = piece_of(P);
	assert_non_null(p);
	assert_int_equal(p->total, 2505000);
	assert_int_equal(p->ns, 250 * MS + 500 * US);
	conserved(r, 0);
	/* Before its slots are closed: the bytes are spread over them. */
	total(r, 510 * MS + 500 * US, 5, 1000 + 2505000 + 2500000);
	close_at(r, 262 * MS);
	p = piece_of(P);
	assert_int_equal(p->total, 2500000 / 250 * 3 / 2);
	assert_int_equal(p->ns, 1500 * US);
	close_at(r, 263 * MS);
	assert_int_equal(total_of(P), 10000);
	assert_int_equal(piece_of(P)->ns, 1 * MS);
	close_at(r, 600 * MS);
	conserved(r, 0);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

static void sample_on_a_freed_rmid(void **state)
{
	struct ttmon_rmid *r = owned();
	const struct ttmon_rdt_piece *p;

	(void)state;
	take(r, 12 * MS, 5, P);
	total(r, 12 * MS, 5, 1000 + 200); /* at the exact time of the free: it counts as after the free */
	total(r, 16 * MS, 5, 1000 + 200 + 400);
	close_at(r, 20 * MS);
	assert_int_equal(total_of(P), 200);
	p = piece_of(0);
	assert_non_null(p);
	assert_int_equal(p->total, 400);
	assert_int_equal(p->ns, 4 * MS);
	assert_int_equal(p->rmid, 5);
	assert_int_equal(totals(r).unassigned[0], 400);
	conserved(r, 0);
	only_odd(r, TTMON_RMID_ODD_SAMPLE_ON_FREE, 2, "RMID 5 was read while nobody had it");
	ttmon_rmid_free(r);
}

/* Before the dump has reported the owners, they are unknown; a second later they must be known. */
static void sample_before_the_dump(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	info(r, 1, 64);
	total(r, 10 * MS, 5, 0);
	close_at(r, 11 * MS);
	total(r, 11 * MS, 5, 100);
	close_at(r, 12 * MS);
	assert_int_equal(total_of(0), 100);
	nothing_odd(r);
	/* The dump comes: its owner had the RMID before. */
	found(r, 12 * MS, 5, P);
	total(r, 13 * MS, 5, 300);
	close_at(r, 14 * MS);
	assert_int_equal(total_of(P), 200);
	total(r, 2000 * MS, 6, 5);
	close_at(r, 2001 * MS);
	only_odd(r, TTMON_RMID_ODD_SAMPLE_ON_FREE, 1, NULL);
	/* RMID 0 belongs to all other processes. */
	total(r, 2001 * MS, 0, 5);
	total(r, 2002 * MS, 0, 25);
	close_at(r, 2003 * MS);
	assert_int_equal(total_of(0), 20);
	only_odd(r, TTMON_RMID_ODD_SAMPLE_ON_FREE, 1, NULL);
	ttmon_rmid_free(r);
}

/* P has it until 12, no process until 14, Q from 14; one interval covers all of this: 10..20. */
static void reused_within_an_interval(void **state)
{
	struct ttmon_rmid *r = owned();
	uint64_t p = 0, nobody = 0, q = 0;

	(void)state;
	total(r, 20 * MS, 5, 1000 + 1000);
	for (uint64_t end = 11 * MS; end <= 21 * MS; end += MS) {
		if (end == 13 * MS)
			take(r, 12 * MS, 5, P);
		if (end == 15 * MS)
			give(r, 14 * MS, 5, Q);
		close_at(r, end);
		p += total_of(P);
		nobody += total_of(0);
		q += total_of(Q);
	}
	assert_int_equal(p, 200);
	assert_int_equal(nobody, 200);
	/* The counter may have started again for Q: the reading at 20 is its baseline. */
	assert_int_equal(q, 0);
	assert_int_equal(totals(r).dropped[0], 600);
	conserved(r, 0);
	total(r, 22 * MS, 5, 1000 + 1000 + 50);
	close_at(r, 23 * MS);
	assert_int_equal(total_of(Q), 50);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/* The same if the reading comes after all of those slots have closed. */
static void reused_before_a_late_reading(void **state)
{
	struct ttmon_rmid *r = owned();

	(void)state;
	take(r, 12 * MS, 5, P);
	give(r, 14 * MS, 5, Q);
	close_at(r, 19 * MS);
	total(r, 20 * MS, 5, 1000 + 1000);
	close_at(r, 20 * MS);
	assert_int_equal(total_of(P), 200);
	assert_int_equal(total_of(0), 200);
	assert_int_equal(total_of(Q), 0);
	assert_int_equal(totals(r).dropped[0], 600);
	conserved(r, 0);
	/* The same if the interval contains two allocations. */
	take(r, 21 * MS, 5, Q);
	give(r, 23 * MS, 5, P);
	take(r, 24 * MS, 5, P);
	give(r, 26 * MS, 5, Q);
	close_at(r, 29 * MS);
	total(r, 30 * MS, 5, 1000 + 1000 + 500);
	close_at(r, 31 * MS);
	assert_int_equal(total_of(Q), 50);
	assert_int_equal(total_of(0), 100);
	assert_int_equal(total_of(P), 0);
	assert_int_equal(totals(r).dropped[0], 600 + 350);
	conserved(r, 0);
	ttmon_rmid_free(r);
}

/*
 * An allocation is reported after its slots have closed: bytes that were assigned stay where they are.
 */
static void late_allocation(void **state)
{
	struct ttmon_rmid *r = owned();

	(void)state;
	total(r, 20 * MS, 5, 1000 + 1000);
	close_at(r, 16 * MS);
	assert_int_equal(total_of(P), 600);
	fact(r, TTMON_RMID_FREE, 11 * MS, 5, P);
	fact(r, TTMON_RMID_ALLOC, 13 * MS, 5, Q);
	close_at(r, 21 * MS);
	assert_int_equal(nr_pieces, 0);
	assert_int_equal(totals(r).dropped[0], 400);
	conserved(r, 0);
	ttmon_rmid_free(r);
}

/*
 * Readings at the allocation and after it: the first one is Q's baseline, and Q's own bytes count in
 * full.
 */
static void baseline_at_reallocation(void **state)
{
	struct ttmon_rmid *r = owned();

	(void)state;
	take(r, 11 * MS, 5, P);
	total(r, 11 * MS, 5, 1100);
	give(r, 14 * MS, 5, Q);
	total(r, 14 * MS, 5, 1140); /* life cycle records come first at equal times */
	total(r, 15 * MS, 5, 1200);
	close_at(r, 16 * MS);
	assert_int_equal(total_of(P), 100);
	assert_int_equal(total_of(0), 40);
	assert_int_equal(total_of(Q), 60);
	assert_int_equal(totals(r).dropped[0], 0);
	conserved(r, 0);
	/* A repeated allocation, or a dump, is not a new allocation. */
	give(r, 16 * MS + 500 * US, 5, Q);
	found(r, 16 * MS + 600 * US, 5, Q);
	total(r, 17 * MS, 5, 1300);
	close_at(r, 18 * MS);
	assert_int_equal(total_of(Q), 100);
	assert_int_equal(totals(r).dropped[0], 0);
	ttmon_rmid_free(r);
}

/* The record of a free was lost: at the time of the next allocation the former one has ended. */
static void lost_free_in_an_interval(void **state)
{
	struct ttmon_rmid *r = owned();

	(void)state;
	total(r, 20 * MS, 5, 2000);
	give(r, 14 * MS, 5, Q);
	/* A known allocation splits the interval only when its slot closes. */
	close_at(r, 12 * MS);
	assert_int_equal(total_of(P), 200);
	assert_int_equal(totals(r).dropped[0], 0);
	close_at(r, 21 * MS);
	assert_int_equal(total_of(P), 200);
	assert_int_equal(total_of(Q), 0);
	assert_int_equal(totals(r).dropped[0], 600);
	only_odd(r, TTMON_RMID_ODD_LOST_FREE, 1, NULL);
	ttmon_rmid_free(r);
}

/* A dump in the middle of an interval, after a loss: by the records the RMID was free. */
static void dump_midway(void **state)
{
	struct ttmon_rmid *r = owned();

	(void)state;
	take(r, 11 * MS, 5, P);
	total(r, 12 * MS, 5, 1100);
	close_at(r, 12 * MS);
	found(r, 18 * MS, 5, Q);
	total(r, 13 * MS, 5, 1150);
	close_at(r, 14 * MS);
	assert_int_equal(total_of(Q), 50);
	conserved(r, 0);
	assert_int_equal(totals(r).odd[TTMON_RMID_ODD_LOST_ALLOC], 1);
	ttmon_rmid_free(r);
}

static void old_readings_are_ignored(void **state)
{
	struct ttmon_rmid *r = owned();

	(void)state;
	total(r, 12 * MS, 5, 1200);
	total(r, 12 * MS, 5, 5000);
	total(r, 11 * MS, 5, 9000);
	total(r, 13 * MS, 5, 1300);
	close_at(r, 14 * MS);
	assert_int_equal(total_of(P), 300);
	assert_int_equal(totals(r).stale, 2);
	assert_int_equal(totals(r).readings, 3);
	nothing_odd(r);
	/* A reading far in the future would hold back all others. */
	total(r, 14 * MS + 61 * NSEC_PER_SEC, 5, 1300);
	total(r, 15 * MS, 5, 1400);
	close_at(r, 16 * MS);
	assert_int_equal(total_of(P), 100);
	only_odd(r, TTMON_RMID_ODD_DROPPED, 1, NULL);
	ttmon_rmid_free(r);
}

/*
 * The watermark stands still for 50 ms while readings come each millisecond: all bytes are there, at a
 * lower resolution.
 */
static void slots_stall(void **state)
{
	struct ttmon_rmid *r = owned();
	static const uint8_t bad[] = { TTMON_RDT_UNSUPPORTED, TTMON_RDT_ERROR, TTMON_RDT_UNSUPPORTED };
	bool unknown = false;
	uint64_t sum = 0;

	(void)state;
	for (uint64_t i = 1; i <= 50; i++) {
		total(r, (10 + i) * MS, 5, 1000 + 10 * i * i);
		if (i == 30)
			read_full(r, (10 + i) * MS + 1, 5, 0, bad, 0, 0, 0);
	}
	assert_int_equal(totals(r).bytes[0], 25000);
	assert_int_equal(totals(r).merged, 50 - 16);
	for (uint64_t end = 11 * MS; end <= 61 * MS; end += MS) {
		uint64_t i = (end - 10 * MS) / MS;

		close_at(r, end);
		sum += total_of(P);
		unknown |= piece_of(P) && piece_of(P)->unknown;
		if (i <= 15)
			assert_int_equal(sum, 10 * i * i);
	}
	assert_int_equal(sum, 25000);
	conserved(r, 0);
	assert_true(unknown);
	only_odd(r, TTMON_RMID_ODD_BAD_READING, 1, NULL);
	ttmon_rmid_free(r);
}

/* Two readings that are not adjacent cannot be merged: one is dropped, and counted as such. */
static void stalled_with_gaps(void **state)
{
	static const uint8_t st[] = { TTMON_RDT_UNSUPPORTED, TTMON_RDT_UNASSIGNED, TTMON_RDT_UNSUPPORTED };
	struct ttmon_rmid *r = owned();
	uint64_t t = 11 * MS;

	(void)state;
	for (unsigned int i = 0; i < 20; i++, t += MS) {
		read_full(r, t, 5, 0, st, 0, 0, 0);
		total(r, t + 1, 5, 0);
		total(r, t + 2, 5, 10);
	}
	close_at(r, t);
	assert_int_equal(total_of(P), 160);
	assert_int_equal(totals(r).dropped[0], 40);
	assert_int_equal(totals(r).odd[TTMON_RMID_ODD_DROPPED], 4);
	conserved(r, 0);
	ttmon_rmid_free(r);
}

static void readings_at_the_end_of_time(void **state)
{
	uint64_t t = UINT64_MAX - 2 * MS + 1;
	struct ttmon_rmid *r = fresh();
	uint64_t sum = 0;

	(void)state;
	give(r, t - 5 * MS, 5, P);
	total(r, t, 5, 0);
	close_at(r, t);
	total(r, t + 5 * MS, 5, 5000);
	for (unsigned int i = 1; i <= 5; i++) {
		if (i == 4)
			take(r, t + 3 * MS, 5, P);
		close_at(r, t + i * MS);
		sum += total_of(P);
		assert_int_equal(sum, MIN(i, 3) * 1000);
		assert_int_equal(total_of(0), i > 3 ? 1000 : 0);
	}
	conserved(r, 0);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_millisecond),
		cmocka_unit_test(odd_bytes_over_odd_times),
		cmocka_unit_test(four_readings_a_second),
		cmocka_unit_test(sample_on_a_freed_rmid),
		cmocka_unit_test(sample_before_the_dump),
		cmocka_unit_test(reused_within_an_interval),
		cmocka_unit_test(reused_before_a_late_reading),
		cmocka_unit_test(late_allocation),
		cmocka_unit_test(baseline_at_reallocation),
		cmocka_unit_test(lost_free_in_an_interval),
		cmocka_unit_test(dump_midway),
		cmocka_unit_test(old_readings_are_ignored),
		cmocka_unit_test(slots_stall),
		cmocka_unit_test(stalled_with_gaps),
		cmocka_unit_test(readings_at_the_end_of_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
