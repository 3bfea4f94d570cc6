// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_rmid_torture.c: every allocation of memory that core/rmid makes fails once, and then it and all
 * after it fail: nothing crashes or leaks, and what could not be stored is counted. Another test has
 * streams that need more memory than is allowed. The sources are compiled into this test with calloc
 * replaced; the linker then takes none of them from the archive.
 */
#include "tests/unit/feed/rmid_feed.h"

#include "tests/unit/feed/torture.h"

#include "daemon/core/rmid/rmid.c"
#include "daemon/core/rmid/own.c"
#include "daemon/core/rmid/read.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

/*
 * Two processes, one after the other, on each of three RMIDs in two domains, reported by facts; with
 * readings of both. There are 600 facts, so that their queue grows.
 */
static void scenario(struct ttmon_rmid *r)
{
	uint8_t ok[] = ALL_OK;

	for (uint32_t i = 0; i < 600; i++)
		fact(r, i / 3 & 1 ? TTMON_RMID_FREE : TTMON_RMID_ALLOC, 10 * MS + (i / 3 + 1) * 3 * MS, 1 + i % 3,
		     100 + i / 6);
	for (uint64_t t = 10 * MS; t < 700 * MS; t += MS) {
		for (uint16_t i = 0; i < 6; i++)
			read_full(r, t + i + 1, 1 + i % 3, i / 3, ok, t, t * (i + 1U), t / 2);
		ttmon_rmid_close(r, t, on_piece, NULL);
	}
	ttmon_rmid_close(r, 800 * MS, on_piece, NULL);
}

static void run(long at, bool on)
{
	struct ttmon_rmid *r = NULL;
	struct ttmon_rmid_totals t;

	asked = 0;
	fail_at = at;
	fail_on = on;
	if (ttmon_rmid_new(&r) < 0) {
		assert_int_equal(at, 0);
		assert_null(r);
		return;
	}
	scenario(r);
	t = totals(r);
	for (unsigned int v = 0; v < 2; v++)
		assert_int_equal(t.bytes[v], t.assigned[v] + t.unassigned[v] + t.dropped[v]);
	assert_int_equal(t.in_use, 0);
	if (at < 0) {
		assert_int_equal(t.allocs, 300);
		assert_int_equal(t.readings, 6 * 690);
		assert_int_equal(t.odd[TTMON_RMID_ODD_DROPPED], 0);
	} else if (on) {
		/*
		 * What could not be stored is counted, except for facts that are applied early when they cannot be
		 * kept.
		 */
		assert_true(t.odd[TTMON_RMID_ODD_DROPPED] > 0 || t.allocs == 300);
		assert_int_equal(t.readings + t.odd[TTMON_RMID_ODD_DROPPED] + t.allocs + t.frees, 6 * 690 + 600);
	} else {
		assert_int_equal(t.readings + t.odd[TTMON_RMID_ODD_DROPPED] + t.allocs + t.frees, 6 * 690 + 600);
		assert_true(t.odd[TTMON_RMID_ODD_DROPPED] <= 1);
	}
	ttmon_rmid_free(r);
}

static void every_allocation_fails(void **state)
{
	long all;

	(void)state;
	run(-1, false);
	all = asked;
	/* The object, RMIDs, keys, and the queue five times. */
	assert_int_equal(all, 1 + 3 + 6 + 5);
	for (long i = 0; i < all; i++) {
		run(i, false);
		run(i, true);
	}
	fail_at = -1;
}

static uint64_t rng = 88172645463325252ULL;

static uint64_t rnd(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (rng >> 11) % n;
}

/* Any record that core/stream/decode.c accepts, with any times in it. */
static void hostile_stream(void **state)
{
	struct ttmon_rmid *r = fresh();
	uint64_t end = UINT64_MAX - 500 * MS;
	struct ttmon_rmid_totals t;

	(void)state;
	fail_at = -1;
	asked = 0;
	for (unsigned int i = 0; i < 400000; i++) {
		uint64_t ns = rnd(3) ? end + rnd(20 * MS) : rng * 7;
		uint32_t rmid = (uint32_t)rnd(rnd(2) ? 40 : TTMON_RMID_LIMIT);
		uint8_t st[3] = { rnd(2) ? 0 : (uint8_t)rnd(5), rnd(2) ? 0 : (uint8_t)rnd(5),
				  rnd(2) ? 0 : (uint8_t)rnd(5) };

		switch (rnd(12)) {
		case 0:
			fact(r, (uint32_t)rnd(TTMON_RMID_OP_MAX), ns, rmid, (uint32_t)rnd(9));
			break;
		case 1:
			life(r, (uint32_t)rnd(TTMON_RMID_OP_MAX), ns, rmid, (uint32_t)rnd(9));
			break;
		case 2:
			ttmon_rmid_seen(r, rmid, (uint32_t)rnd(9), ns);
			break;
		case 3:
			if (!rnd(1000))
				info(r, rng | 1, 24 + (uint32_t)rnd(41));
			if (!rnd(10))
				ttmon_rmid_close(r, end += MS, on_piece, NULL);
			break;
		default:
			read_full(r, ns, rmid, (uint16_t)rnd(rnd(2) ? 4 : 65536), st, rng * 3, rng * 5, rng * 11);
		}
	}
	/* 64 domains of few RMIDs, or few domains of many: as many as are allowed. */
	assert_true(r->nr_keys > RMID_KEYS / 2 && r->nr_keys <= RMID_KEYS);
	for (unsigned int i = 0; i < TTMON_RMID_LIMIT; i++)
		assert_true(!r->ids[i] || (r->ids[i]->nr_keys <= RMID_DOMAINS && r->ids[i]->now.nr <= RMID_OWNERS &&
					   r->ids[i]->nr_events <= RMID_EVENTS));
	assert_true(asked <= 1 + TTMON_RMID_LIMIT + RMID_KEYS + 8);
	assert_true(r->facts_cap <= RMID_FACTS && r->facts_nr <= r->facts_cap);
	t = totals(r);
	assert_true(t.odd[TTMON_RMID_ODD_DROPPED] > 1000);
	assert_true(t.in_use <= t.peak && t.peak < TTMON_RMID_LIMIT);
	ttmon_rmid_free(r);
}

/*
 * As many as are allowed, then a minute of readings: no byte more is allocated. And without input
 * there is nothing to do.
 */
static void memory_is_flat(void **state)
{
	struct ttmon_rmid *r = fresh();
	uint8_t ok[] = ALL_OK;
	uint64_t t = 10 * MS;
	long before;

	(void)state;
	for (uint32_t i = 1; i <= 32; i++)
		give(r, t, i, 100 + i);
	for (uint64_t n = 0; n < 2000; n++, t += MS) {
		if (n == 1)
			before = asked;
		for (uint32_t i = 1; i <= 32; i++)
			for (uint16_t d = 0; d < 2; d++)
				read_full(r, t + d, i, d, ok, n, n * i, n);
		close_at(r, t);
		assert_int_equal(nr_pieces, n ? 32 : 0);
	}
	assert_int_equal(asked, before);
	assert_int_equal(r->nr_active, 32);
	close_at(r, t + MS);
	assert_int_equal(r->nr_active, 0);
	conserved(r, 0);
	ttmon_rmid_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_allocation_fails),
		cmocka_unit_test(hostile_stream),
		cmocka_unit_test(memory_is_flat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
