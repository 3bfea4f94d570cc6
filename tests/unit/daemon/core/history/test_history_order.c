// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_history_order.c: life times in numbers of launches: which launches are numbered, and which
 * numbers the begin and the end of an allocation have.
 */
#include "tests/unit/feed/history_feed.h"

#include <ttmon/family.h>

#define T     100
#define DEV   TTMON_METHOD_DEVICE
#define NEVER UINT32_MAX

static struct ttmon_history *h;

static int setup(void **state)
{
	struct ttmon_ev_clock clock = { .h = feed_head(TTMON_EV_CLOCK, 0, 1000), .mono_ns = 1000, .page_size = PAGE };

	(void)state;
	h = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	APPLY(h, clock);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ttmon_history_free(h);
	return 0;
}

static void launched(uint64_t ts, uint64_t kernels, uint64_t graphs, uint32_t since)
{
	struct ttmon_ev_launched ev = {
		.h = feed_head(TTMON_EV_LAUNCHED, T, ts), .kernels = kernels, .graphs = graphs, .since = since
	};

	APPLY(h, ev);
}

static void family(uint64_t ts, uint32_t state)
{
	struct ttmon_ev_family ev = { .h = feed_head(TTMON_EV_FAMILY, 0, ts),
				      .family = TTMON_FAMILY_LAUNCH,
				      .state = state };

	APPLY(h, ev);
}

static void blind(uint64_t ts, uint32_t held)
{
	struct ttmon_ev_blind ev = { .h = feed_head(TTMON_EV_BLIND, T, ts), .object = 1, .how = held };

	APPLY(h, ev);
}

static uint64_t numbered(void)
{
	return ttmon_history_numbered(h, ttmon_history_proc(h, ttmon_history_procs(h) - 1));
}

static void life(uint64_t seq, uint32_t made, uint32_t freed)
{
	const struct ttmon_alloc *a = ttmon_history_alloc(h, seq);

	assert_int_equal(a->made_nth, made);
	assert_int_equal(a->freed_nth, freed);
}

static void ends(void **state)
{
	(void)state;
	feed_proc(h, T, 2000, 1990, 1, TTMON_PROC_SEEN);
	feed_alloc(h, T, 2100, DEV, 0x1000, 64); /* 0: before all launches */
	launched(2200, 1, 0, TTMON_LAUNCHED_SEEN);
	launched(2300, 5, 0, TTMON_LAUNCHED_SEEN);
	feed_alloc(h, T, 2310, DEV, 0x2000, 64); /* 1 */
	/*
	 * Freed after launch 9, reported at the entry. Another thread reports more launches before the free
	 * has returned.
	 */
	launched(2400, 9, 0, TTMON_LAUNCHED_SEEN);
	launched(2450, 12, 0, TTMON_LAUNCHED_SEEN);
	feed_alloc(h, T, 2460, DEV, 0x3000, 64); /* 2 */
	feed_free(h, T, 2410, 2500, DEV, 0x1000);
	/* Older than the known number, from a thread that was late. */
	launched(2510, 11, 0, TTMON_LAUNCHED_SEEN);
	feed_free(h, T, 2520, 2530, DEV, 0x2000);
	/* The address is allocated again while its free is returning. */
	launched(2600, 20, 0, TTMON_LAUNCHED_SEEN);
	launched(2650, 30, 0, TTMON_LAUNCHED_SEEN);
	feed_alloc(h, T, 2700, DEV, 0x3000, 64); /* 3 */
	feed_free(h, T, 2610, 2800, DEV, 0x3000);
	assert_int_equal(numbered(), 30);
	feed_exit(h, T, 3000);
	life(0, 0, 9);
	life(1, 5, 12);
	life(2, 12, 20);
	life(3, 30, NEVER);
	assert_int_equal(numbered(), 30);
}

/* Its time is moved back, and its number with it: look-ups rely on both growing together. */
static void mapping_that_is_told_late(void **state)
{
	const uint64_t at = 0x10000000;
	struct ttmon_history_totals t;

	(void)state;
	feed_proc(h, T, 1500, 1400, 1, TTMON_PROC_FORK);
	launched(2000, 1, 0, TTMON_LAUNCHED_START);
	feed_copy(h, T, 2100, TTMON_DIR_H2D, 0x7f0000000000, at, PAGE); /* 0: provisional */
	launched(3000, 50, 0, TTMON_LAUNCHED_START);
	launched(4000, 90, 0, TTMON_LAUNCHED_START);
	feed_map(h, T, 4100, at - 16 * PAGE, at + 16 * PAGE, NULL);
	feed_map(h, T, 4100, at + 32 * PAGE, at + 33 * PAGE, NULL);
	feed_maps_done(h, T, 4100, 4200, 2);
	assert_int_equal(ttmon_history_alloc(h, 0)->alloc_ns, 2100);
	life(0, 1, NEVER);
	/* The event of the call comes after a list that contains its mapping. */
	feed_mmap(h, T, 3500, at + 32 * PAGE, PAGE);
	assert_int_equal(ttmon_history_alloc(h, 2)->alloc_ns, 3500);
	life(2, 50, NEVER);
	ttmon_history_get_totals(h, &t);
	assert_int_equal(t.malformed_facts, 0);
}

static void many_told(void **state)
{
	(void)state;
	feed_proc(h, T, 2000, 1990, 1, TTMON_PROC_SEEN);
	feed_alloc(h, T, 2001, DEV, 0x1000, 64);
	feed_alloc(h, T, 2002, DEV, 0x2000, 64);
	for (uint64_t i = 1; i <= 100; i++)
		launched(3000 + i, i, 0, TTMON_LAUNCHED_SEEN);
	/* Longer ago than numbers are kept: the number is not larger than the true one. */
	feed_free(h, T, 3050, 4000, DEV, 0x1000);
	life(0, 0, 85);
	launched(4001, 1ULL << 40, 0, TTMON_LAUNCHED_SEEN);
	feed_free(h, T, 4002, 4003, DEV, 0x2000);
	life(1, 0, NEVER);
}

static void graphs(void **state)
{
	struct ttmon_ev_launches sums = { .h = feed_head(TTMON_EV_LAUNCHES, T, 2600), .kernels = 50, .graphs = 3 };

	(void)state;
	feed_proc(h, T, 2000, 1990, 1, TTMON_PROC_SEEN);
	launched(2200, 1, 0, TTMON_LAUNCHED_SEEN);
	assert_int_equal(numbered(), 1);
	launched(2300, 17, 1, TTMON_LAUNCHED_SEEN);
	launched(2400, 40, 2, TTMON_LAUNCHED_SEEN);
	APPLY(h, sums);
	assert_int_equal(numbered(), 17);
	teardown(state);
	setup(state);
	/* The first LAUNCHED record was lost. */
	feed_proc(h, T, 2000, 1990, 1, TTMON_PROC_SEEN);
	launched(2200, 1, 0, TTMON_LAUNCHED_SEEN);
	APPLY(h, sums);
	assert_int_equal(numbered(), 0);
}

/* Launches may have been missed: no launch has a number. */
static void not_numbered(void **state)
{
	static const struct {
		uint64_t start;
		uint32_t reason, since;
		uint64_t n;
	} rows[] = {
		{ 1990, TTMON_PROC_SEEN, TTMON_LAUNCHED_SEEN, 4 },
		{ 990, TTMON_PROC_SEEN, TTMON_LAUNCHED_SEEN, 0 },  /* older than the capture */
		{ 990, TTMON_PROC_EXEC, TTMON_LAUNCHED_START, 4 }, /* but younger than the program that it executes */
		{ 1990, TTMON_PROC_FORK, TTMON_LAUNCHED_START, 4 },
		{ 1990, TTMON_PROC_FORK, TTMON_LAUNCHED_GAP, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		feed_proc(h, T, 2000, rows[i].start, 1, rows[i].reason);
		assert_int_equal(numbered(), 0);
		launched(2200, 4, 0, rows[i].since);
		if (numbered() != rows[i].n)
			fail_msg("%zu: %zu", i, (size_t)numbered());
		teardown(state);
		setup(state);
	}
	/*
	 * Another program in the same process: its launches are counted from 0 again, and its memory is not
	 * that of the first.
	 */
	feed_proc(h, T, 2000, 1990, 1, TTMON_PROC_FORK);
	launched(2200, 4, 0, TTMON_LAUNCHED_START);
	feed_proc(h, T, 2300, 1990, 1, TTMON_PROC_EXEC);
	launched(2400, 2, 0, TTMON_LAUNCHED_START);
	assert_int_equal(numbered(), 0);
}

static void probes_that_came_late(void **state)
{
	for (unsigned int before = 0; before < 2; before++) {
		for (uint32_t held = 0; held < 2; held++) {
			if (before)
				blind(1995, held);
			feed_proc(h, T, 2000, 1990, 1, TTMON_PROC_SEEN);
			if (!before)
				blind(2100, held);
			launched(2200, 4, 0, TTMON_LAUNCHED_SEEN);
			assert_int_equal(numbered(), held ? 4 : 0);
			teardown(state);
			setup(state);
		}
	}
}

static void family_off_for_a_time(void **state)
{
	(void)state;
	family(1000, TTMON_FAMILY_ON);
	feed_proc(h, T, 2000, 1000, 1, TTMON_PROC_SEEN);
	launched(2200, 4, 0, TTMON_LAUNCHED_SEEN);
	assert_int_equal(numbered(), 4);
	family(2300, TTMON_FAMILY_COUNTING);
	assert_int_equal(numbered(), 0);
	family(2400, TTMON_FAMILY_ON);
	assert_int_equal(numbered(), 0);
	/* A process that comes after that is numbered. */
	feed_exit(h, T, 2500);
	feed_proc(h, T, 2600, 2590, 1, TTMON_PROC_SEEN);
	launched(2700, 1, 0, TTMON_LAUNCHED_SEEN);
	assert_int_equal(numbered(), 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ends),
		TEST(mapping_that_is_told_late),
		TEST(many_told),
		TEST(graphs),
		TEST(not_numbered),
		TEST(probes_that_came_late),
		TEST(family_off_for_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
