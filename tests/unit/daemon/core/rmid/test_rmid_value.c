// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_rmid_value.c: the meaning of RDT values: width, scale, invalid values, gauges; each has a test.
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

static void counters_wrap(void **state)
{
	static const uint32_t widths[] = { 24, 32, 44, 62 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++) {
		uint64_t wrap = 1ULL << widths[i];
		struct ttmon_rmid *r = fresh();

		info(r, 1, widths[i]);
		give(r, 1 * MS, 5, P);
		total(r, 10 * MS, 5, wrap - 100);
		total(r, 11 * MS, 5, 200);
		/* Bits above the width are ignored. */
		total(r, 12 * MS, 5, 1500 | wrap);
		close_at(r, 20 * MS);
		assert_int_equal(total_of(P), 300 + 1300);
		assert_int_equal(totals(r).bytes[0], 1600);
		assert_int_equal(totals(r).resets, 0);
		ttmon_rmid_free(r);
	}
}

/* The example of intel-cmt-cat's issue 282: one count is 40,960 bytes, 24 bits. */
static void counts_are_scaled(void **state)
{
	struct ttmon_rmid *r = fresh();
	uint8_t ok[] = ALL_OK;
	const struct ttmon_rdt_piece *p;

	(void)state;
	info(r, 40960, 24);
	give(r, 1 * MS, 5, P);
	read_full(r, 10 * MS, 5, 0, ok, 3, (1 << 24) - 1, 7);
	read_full(r, 11 * MS, 5, 0, ok, 4, 1, 8);
	close_at(r, 11 * MS + 1);
	p = piece_of(P);
	assert_int_equal(p->total, 2 * 40960);
	assert_int_equal(p->local, 40960);
	assert_true(p->has_occupancy);
	assert_int_equal(p->occupancy, 4 * 40960);
	assert_int_equal(p->ns, 1 * MS);
	ttmon_rmid_free(r);
}

/*
 * resctrl's values do not wrap: a smaller value is from a group that was created again. So is an
 * increase that no memory could have transferred.
 */
static void reset_counters(void **state)
{
	struct ttmon_rmid *r = owned();

	(void)state;
	total(r, 11 * MS, 5, 400);
	close_at(r, 12 * MS);
	assert_non_null(piece_of(P));
	assert_true(piece_of(P)->unknown);
	assert_int_equal(total_of(P), 0);
	total(r, 13 * MS, 5, 700);
	close_at(r, 14 * MS);
	assert_int_equal(total_of(P), 300);
	assert_false(piece_of(P)->unknown);
	total(r, 14 * MS, 5, 700 + (1ULL << 50));
	total(r, 15 * MS, 5, 701 + (1ULL << 50));
	close_at(r, 16 * MS);
	assert_int_equal(total_of(P), 1);
	assert_int_equal(totals(r).resets, 2);
	assert_int_equal(totals(r).bytes[0], 301);
	conserved(r, 0);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

/* A number of bytes that overflows 64 bits stays at the largest value; nothing wraps. */
static void too_many_bytes(void **state)
{
	struct ttmon_rmid *r = fresh();
	uint8_t ok[] = ALL_OK;

	(void)state;
	info(r, 1ULL << 40, 64);
	give(r, 1 * MS, 5, P);
	read_full(r, 10 * MS, 5, 0, ok, 1ULL << 30, 0, 0);
	read_full(r, 10 * MS + (1ULL << 60), 5, 0, ok, 1ULL << 30, 1ULL << 30, 1);
	close_at(r, 11 * MS + (1ULL << 60));
	assert_int_equal(piece_of(P)->occupancy, UINT64_MAX);
	assert_int_equal(total_of(P), UINT64_MAX);
	assert_int_equal(piece_of(P)->local, 1ULL << 40);
	assert_int_equal(totals(r).saturated, 3);
	ttmon_rmid_free(r);
}

/*
 * A missing value is not zero. The next valid one covers the whole time since the last valid one.
 */
static void unavailable_and_error(void **state)
{
	static const uint8_t bad[] = { TTMON_RDT_UNAVAILABLE, TTMON_RDT_ERROR };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct ttmon_rmid *r = owned();
		uint8_t st[] = { TTMON_RDT_OK, bad[i], TTMON_RDT_UNSUPPORTED };

		read_full(r, 11 * MS, 5, 0, st, 50, 77777, 0);
		close_at(r, 12 * MS);
		assert_int_equal(nr_pieces, 1);
		assert_true(piece_of(P)->unknown);
		assert_int_equal(piece_of(P)->ns, 0);
		assert_int_equal(piece_of(P)->occupancy, 50);
		total(r, 14 * MS, 5, 1000 + 800);
		close_at(r, 14 * MS);
		assert_int_equal(total_of(P), 800);
		assert_int_equal(piece_of(P)->ns, 4 * MS);
		assert_false(piece_of(P)->unknown);
		only_odd(r, TTMON_RMID_ODD_BAD_READING, 1,
			 "RMID 5 has no reading: not available, an error or no counter assigned");
		ttmon_rmid_free(r);
	}
}

/* AMD ABMC: the counter belonged to another RMID meanwhile. */
static void unassigned_is_a_new_baseline(void **state)
{
	static const uint8_t st[] = { TTMON_RDT_UNSUPPORTED, TTMON_RDT_UNASSIGNED, TTMON_RDT_UNSUPPORTED };
	struct ttmon_rmid *r = owned();

	(void)state;
	read_full(r, 11 * MS, 5, 0, st, 0, 0, 0);
	total(r, 12 * MS, 5, 5000);
	close_at(r, 13 * MS);
	assert_int_equal(total_of(P), 0);
	assert_true(piece_of(P)->unknown);
	total(r, 14 * MS, 5, 5100);
	close_at(r, 15 * MS);
	assert_int_equal(total_of(P), 100);
	assert_int_equal(totals(r).bytes[0], 100);
	only_odd(r, TTMON_RMID_ODD_BAD_READING, 1, NULL);
	ttmon_rmid_free(r);
}

/* A host without it reports this each time: there is no value, and nothing odd. */
static void unsupported_is_nothing(void **state)
{
	static const uint8_t st[] = { TTMON_RDT_UNSUPPORTED, TTMON_RDT_UNSUPPORTED, TTMON_RDT_UNSUPPORTED };
	struct ttmon_rmid *r = fresh();

	(void)state;
	take(r, 1 * MS, 5, 0);
	for (uint64_t t = 10 * MS; t < 20 * MS; t += MS) {
		read_full(r, t, 5, 0, st, 0, 0, 0);
		close_at(r, t + 1);
		assert_int_equal(nr_pieces, 0);
	}
	assert_int_equal(totals(r).readings, 10);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

static void two_domains(void **state)
{
	struct ttmon_rmid *r = fresh();
	uint8_t ok[] = ALL_OK;
	const struct ttmon_rdt_piece *p;

	(void)state;
	give(r, 1 * MS, 5, P);
	read_full(r, 10 * MS, 5, 1, ok, 1000, 70, 7);
	read_full(r, 10 * MS + 100, 5, 0, ok, 300, 0, 0);
	close_at(r, 10 * MS + 200);
	p = piece_of(P);
	assert_int_equal(p->occupancy, 1300);
	assert_int_equal(p->ns, 0);
	read_full(r, 11 * MS, 5, 1, ok, 1001, 170, 17);
	read_full(r, 11 * MS + 100, 5, 0, ok, 300, 40, 4);
	close_at(r, 12 * MS);
	p = piece_of(P);
	assert_int_equal(p->total, 140);
	assert_int_equal(p->local, 14);
	assert_int_equal(p->occupancy, 1301);
	/* It is a duration, not a sum over domains. */
	assert_int_equal(p->ns, 1 * MS);
	assert_false(p->unknown);
	ttmon_rmid_free(r);
}

/* The backend was restarted, with different units. */
static void info_again(void **state)
{
	struct ttmon_rmid *r = owned();

	(void)state;
	total(r, 11 * MS, 5, 1100);
	info(r, 64, 44);
	total(r, 12 * MS, 5, 1200);
	total(r, 13 * MS, 5, 1201);
	close_at(r, 14 * MS);
	assert_int_equal(total_of(P), 100 + 64);
	assert_int_equal(totals(r).max_rmid, 511);
	assert_int_equal(totals(r).backend, TTMON_RMID_MODULE);
	assert_int_equal(totals(r).has, 7);
	ttmon_rmid_free(r);
}

/* The cache still holds P's lines when Q gets the RMID. */
static void occupancy_is_the_owners(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 1 * MS, 5, P);
	occupancy(r, 10 * MS, 5, 0, 4096);
	close_at(r, 11 * MS);
	assert_int_equal(piece_of(P)->occupancy, 4096);
	assert_true(piece_of(P)->has_occupancy);
	occupancy(r, 11 * MS, 5, 0, 4096);
	close_at(r, 12 * MS);
	assert_int_equal(nr_pieces, 0); /* a gauge that has not moved */
	occupancy(r, 12 * MS, 5, 0, 8192);
	occupancy(r, 13 * MS, 5, 0, 1); /* this is in the next slot */
	close_at(r, 13 * MS);
	assert_int_equal(piece_of(P)->occupancy, 8192);
	close_at(r, 14 * MS);
	assert_int_equal(piece_of(P)->occupancy, 1);
	take(r, 15 * MS, 5, P);
	give(r, 17 * MS, 5, Q);
	total(r, 18 * MS, 5, 0);
	total(r, 18 * MS + 1, 5, 7);
	close_at(r, 19 * MS);
	assert_int_equal(total_of(Q), 7);
	assert_false(piece_of(Q)->has_occupancy);
	occupancy(r, 19 * MS, 5, 0, 4000);
	close_at(r, 20 * MS);
	assert_null(piece_of(P));
	assert_int_equal(piece_of(Q)->occupancy, 4000);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

static void occupancy_of_a_domain_is_missing(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 1 * MS, 5, P);
	occupancy(r, 10 * MS, 5, 0, 1000);
	occupancy(r, 10 * MS, 5, 1, 2000);
	close_at(r, 11 * MS);
	assert_int_equal(piece_of(P)->occupancy, 3000);
	assert_false(piece_of(P)->unknown);
	take(r, 12 * MS, 5, P);
	give(r, 14 * MS, 5, Q);
	occupancy(r, 14 * MS, 5, 0, 500);
	close_at(r, 15 * MS);
	assert_null(piece_of(P));
	assert_int_equal(piece_of(Q)->occupancy, 500);
	assert_true(piece_of(Q)->unknown); /* the value of domain 1 is still P's */
	occupancy(r, 15 * MS, 5, 1, 70);
	close_at(r, 16 * MS);
	assert_int_equal(piece_of(Q)->occupancy, 570);
	assert_false(piece_of(Q)->unknown);
	/* A domain that is no longer read, because its CPUs went away, is not waited for. */
	take(r, 17 * MS, 5, Q);
	give(r, 19 * MS, 5, P);
	close_at(r, 2900 * MS);
	occupancy(r, 2900 * MS, 5, 0, 30);
	close_at(r, 2901 * MS);
	assert_int_equal(piece_of(P)->occupancy, 30);
	assert_false(piece_of(P)->unknown);
	ttmon_rmid_free(r);
}

/*
 * A reading that comes after its owner has ended and its slot was closed: its bytes belong to the
 * owner, a gauge is outdated.
 */
static void late_occupancy(void **state)
{
	struct ttmon_rmid *r = fresh();

	(void)state;
	give(r, 1 * MS, 5, P);
	take(r, 12 * MS, 5, P);
	close_at(r, 13 * MS);
	occupancy(r, 11 * MS, 5, 0, 4096);
	close_at(r, 14 * MS);
	assert_int_equal(nr_pieces, 0);
	nothing_odd(r);
	ttmon_rmid_free(r);
}

static void sums_do_not_wrap(void **state)
{
	struct ttmon_rmid *r = fresh();
	uint64_t ns = MS;

	(void)state;
	give(r, 1, 5, P);
	occupancy(r, ns, 5, 0, UINT64_MAX - 5);
	occupancy(r, ns, 5, 1, 10);
	close_at(r, 2 * MS);
	assert_int_equal(piece_of(P)->occupancy, UINT64_MAX);
	ttmon_rmid_free(r);

	/* More intervals than are kept, of 2^63 bytes each: two of them overflow one interval. */
	r = fresh();
	give(r, 1, 5, P);
	for (uint64_t i = 0; i <= 18; i++, ns += 1ULL << 57)
		total(r, ns, 5, i << 63);
	close_at(r, ns);
	assert_int_equal(totals(r).merged, 0);
	assert_int_equal(totals(r).dropped[0], 0); /* twice 2^63, which is 0 */
	only_odd(r, TTMON_RMID_ODD_DROPPED, 2, NULL);
	conserved(r, 0);
	ttmon_rmid_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_wrap),
		cmocka_unit_test(counts_are_scaled),
		cmocka_unit_test(reset_counters),
		cmocka_unit_test(too_many_bytes),
		cmocka_unit_test(unavailable_and_error),
		cmocka_unit_test(unassigned_is_a_new_baseline),
		cmocka_unit_test(unsupported_is_nothing),
		cmocka_unit_test(two_domains),
		cmocka_unit_test(info_again),
		cmocka_unit_test(occupancy_is_the_owners),
		cmocka_unit_test(occupancy_of_a_domain_is_missing),
		cmocka_unit_test(late_occupancy),
		cmocka_unit_test(sums_do_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
