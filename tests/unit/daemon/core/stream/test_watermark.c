// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_watermark.c: a drain that reaches everything moves it, a busy record and an unread process hold
 * it, for 50 ms and no longer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/stream/watermark.h"

#define MS NSEC_PER_MS

/* One drain of two rings at t0. Returns whether both are waited for, or need not be. */
static bool drain(struct ttmon_watermark *w, uint64_t t0, bool reached0, bool moved0, bool reached1)
{
	bool waited;

	ttmon_watermark_begin(w, t0);
	waited = ttmon_watermark_ring(w, 0, reached0, moved0);
	waited &= ttmon_watermark_ring(w, 1, reached1, true);
	ttmon_watermark_end(w);
	return waited;
}

static void moves_to_the_guard(void **state)
{
	struct ttmon_watermark w;

	(void)state;
	assert_int_equal(ttmon_watermark_init(&w, 2, 10 * MS), 0);
	assert_int_equal(w.ns, 10 * MS - TTMON_GUARD_NS);
	drain(&w, 11 * MS, true, true, true);
	assert_int_equal(w.ns, 11 * MS - TTMON_GUARD_NS);
	/* The clock of a later drain cannot be earlier, but never move back. */
	drain(&w, 10 * MS, true, true, true);
	assert_int_equal(w.ns, 11 * MS - TTMON_GUARD_NS);
	ttmon_watermark_fini(&w);
}

/* A reservation that stays open: its task is stopped between reserve and submit. */
static void open_reservation_delays_nobody_past_50_ms(void **state)
{
	struct ttmon_watermark w;
	uint64_t held, t;

	(void)state;
	assert_int_equal(ttmon_watermark_init(&w, 2, 0), 0);
	drain(&w, 10 * MS, true, true, true);
	held = w.ns;
	for (t = 11 * MS; t <= 11 * MS + TTMON_STALL_NS; t += MS) {
		assert_true(drain(&w, t, false, false, true));
		assert_int_equal(w.ns, held);
		assert_int_equal(w.stalls, 0);
	}
	assert_false(drain(&w, t, false, false, true));
	assert_int_equal(w.ns, t - TTMON_GUARD_NS);
	assert_int_equal(w.stalls, 1);
	/* It stays given up on until something comes out of that ring. */
	drain(&w, t + MS, false, false, true);
	assert_int_equal(w.ns, t + MS - TTMON_GUARD_NS);
	/* The next busy record has a time of its own. */
	drain(&w, t + 2 * MS, false, true, true);
	assert_int_equal(w.ns, t + MS - TTMON_GUARD_NS);
	drain(&w, t + 3 * MS, true, true, true);
	assert_int_equal(w.ns, t + 3 * MS - TTMON_GUARD_NS);
	/* Submitted at last: a new stall begins at zero. */
	drain(&w, t + 4 * MS, false, false, true);
	assert_int_equal(w.ns, t + 3 * MS - TTMON_GUARD_NS);
	ttmon_watermark_fini(&w);
}

static void waits_for_a_process(void **state)
{
	struct ttmon_watermark w;

	(void)state;
	assert_int_equal(ttmon_watermark_init(&w, 2, 0), 0);
	ttmon_watermark_begin(&w, 20 * MS);
	ttmon_watermark_hold(&w, 7, 18 * MS);
	ttmon_watermark_hold(&w, 8, 19 * MS);
	ttmon_watermark_end(&w);
	assert_int_equal(w.ns, 18 * MS);
	ttmon_watermark_release(&w, 7);
	drain(&w, 21 * MS, true, true, true);
	assert_int_equal(w.ns, 19 * MS);
	/* Its time is over. */
	drain(&w, 20 * MS + TTMON_STALL_NS, true, true, true);
	assert_int_equal(w.ns, 19 * MS);
	drain(&w, 21 * MS + TTMON_STALL_NS, true, true, true);
	assert_int_equal(w.ns, 21 * MS + TTMON_STALL_NS - TTMON_GUARD_NS);
	/* What lies before the watermark is not waited for: those slots are closed. */
	ttmon_watermark_begin(&w, 100 * MS);
	ttmon_watermark_hold(&w, 9, 1 * MS);
	ttmon_watermark_end(&w);
	assert_int_equal(w.ns, 100 * MS - TTMON_GUARD_NS);
	ttmon_watermark_fini(&w);
}

static void more_processes_than_places(void **state)
{
	struct ttmon_watermark w;

	(void)state;
	assert_int_equal(ttmon_watermark_init(&w, 1, 0), 0);
	ttmon_watermark_begin(&w, 20 * MS);
	for (uint32_t i = 0; i < TTMON_WATERMARK_PROCS + 10; i++)
		ttmon_watermark_hold(&w, i, 30 * MS - i);
	ttmon_watermark_begin(&w, 40 * MS);
	ttmon_watermark_end(&w);
	assert_int_equal(w.ns, 30 * MS - (TTMON_WATERMARK_PROCS - 1));
	for (uint32_t i = 0; i < TTMON_WATERMARK_PROCS; i++)
		ttmon_watermark_release(&w, i);
	ttmon_watermark_end(&w);
	assert_int_equal(w.ns, 40 * MS - TTMON_GUARD_NS);
	ttmon_watermark_fini(&w);
}

static void wraps(void **state)
{
	struct ttmon_watermark w;
	uint64_t start = UINT64_MAX - MS;

	(void)state;
	assert_int_equal(ttmon_watermark_init(&w, 2, start), 0);
	drain(&w, start + 5 * MS, true, true, true);
	assert_int_equal(w.ns, start + 5 * MS - TTMON_GUARD_NS);
	ttmon_watermark_begin(&w, start + 6 * MS);
	ttmon_watermark_hold(&w, 1, start + 5 * MS);
	ttmon_watermark_end(&w);
	assert_int_equal(w.ns, start + 5 * MS);
	ttmon_watermark_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_to_the_guard),
		cmocka_unit_test(open_reservation_delays_nobody_past_50_ms),
		cmocka_unit_test(waits_for_a_process),
		cmocka_unit_test(more_processes_than_places),
		cmocka_unit_test(wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
