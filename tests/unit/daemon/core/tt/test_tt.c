// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_tt.c: which process holds how much on which chip: buffers, frees of every kind, devices,
 * processes.
 */
#include "tests/unit/feed/tt_feed.h"

#define P 100

static struct ttmon_tt *started(void)
{
	struct ttmon_tt *t = feed_new();

	feed_clock(t, 1);
	feed_proc(t, P, 10, 5, TTMON_PROC_FORK);
	return t;
}

static void a_buffer_counts_until_it_is_freed(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf a = feed_buf(0x1000, 0, 4 * MIB), b = feed_buf(0x2000, 0, MIB);
	struct ttmon_tt_use u;

	(void)state;
	b.type = 1;
	feed_buffer(t, P, 20, FN_ALLOCATED, &a);
	feed_buffer(t, P, 21, FN_ALLOCATED, &b);
	u = feed_use(t, P, 0);
	assert_int_equal(u.bytes[TTMON_TT_TYPE_DRAM], 4 * MIB);
	assert_int_equal(u.bytes[TTMON_TT_TYPE_L1], MIB);
	assert_int_equal(u.buffers, 2);
	feed_buffer(t, P, 22, FN_FREEING, &a);
	u = feed_use(t, P, 0);
	assert_int_equal(u.bytes[TTMON_TT_TYPE_DRAM], 0);
	assert_int_equal(u.peak[TTMON_TT_TYPE_DRAM], 4 * MIB);
	assert_int_equal(u.bytes[TTMON_TT_TYPE_L1], MIB);
	assert_int_equal(u.allocs, 2);
	assert_int_equal(u.frees, 1);
	assert_int_equal(u.buffers, 1);
	assert_int_equal(feed_process(t, P).flags, 0);
	assert_string_equal(feed_process(t, P).layout, "E2");
	ttmon_tt_free(t);
}

static void types_are_kept_apart(void **state)
{
	static const unsigned int types[] = { TTMON_TT_TYPE_DRAM, TTMON_TT_TYPE_L1, TTMON_TT_TYPES,
					      TTMON_TT_TYPE_L1_SMALL, TTMON_TT_TYPE_TRACE_BUF };
	struct ttmon_tt *t = started();
	struct ttmon_tt_use u;

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		struct feed_buf b = feed_buf(0x1000 * (i + 1), 0, 100 + i);

		b.type = i;
		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &b);
	}
	u = feed_use(t, P, 0);
	assert_int_equal(u.buffers, 4); /* SYSTEM_MEMORY belongs to no chip */
	for (uint32_t i = 0; i < 5; i++)
		if (types[i] != TTMON_TT_TYPES)
			assert_int_equal(u.bytes[types[i]], 100 + i);
	assert_int_equal(u.bytes[TTMON_TT_TYPE_CB] + u.bytes[TTMON_TT_TYPE_KERNEL], 0);
	ttmon_tt_free(t);
}

static void what_takes_no_memory_is_not_counted(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf view = feed_buf(0x1000, 0, MIB), empty = feed_buf(0x2000, 0, 0),
			hooked = feed_buf(0x3000, 0, MIB);

	(void)state;
	view.owns = 0;
	feed_buffer(t, P, 20, FN_ALLOCATED, &view);
	feed_buffer(t, P, 21, FN_ALLOCATED, &empty);
	hooked.addr = 0;
	hooked.hooked = 1;
	feed_buffer(t, P, 22, FN_ALLOCATED, &hooked);
	feed_buffer(t, P, 23, FN_FREEING, &hooked);
	feed_buffer(t, P, 24, FN_FREEING, &view);
	feed_buffer(t, P, 25, FN_DTOR, &view);
	assert_int_equal(feed_use(t, P, 0).allocs, 0);
	assert_int_equal(feed_process(t, P).hooked, 1);
	assert_int_equal(feed_process(t, P).unknown_frees, 0);
	assert_int_equal(feed_process(t, P).refused, 0);
	ttmon_tt_free(t);
}

/*
 * Early E2 has padding at the place where the flag is later: an address proves this, and so does a
 * byte that is neither 0 nor 1.
 */
static void padding_is_no_flag(void **state)
{
	struct ttmon_tt *t = started();

	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		struct feed_buf b = feed_buf(0x1000 * (i + 1), 0, 1);

		b.hooked = i == 0 ? 77 : 1;
		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &b);
	}
	assert_int_equal(feed_dram(t, P, 0), 20);
	assert_int_equal(feed_process(t, P).hooked, 0);
	ttmon_tt_free(t);
	/* After it has been a flag for a while it is used as one, with or without an address. */
	t = started();
	for (uint32_t i = 0; i < 20; i++) {
		struct feed_buf b = feed_buf(0x1000 * (i + 1), 0, 1);

		b.hooked = i == 19;
		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &b);
	}
	assert_int_equal(feed_dram(t, P, 0), 19);
	assert_int_equal(feed_process(t, P).hooked, 1);
	ttmon_tt_free(t);
}

static void each_way_to_free_ends_a_buffer_once(void **state)
{
	static const uint16_t ways[] = { FN_FREEING, FN_LEAVE, FN_DEALLOC, FN_MARK, FN_DTOR, FN_TAKE_BACK };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct ttmon_tt *t = started();
		struct feed_buf a = feed_buf(0x1000, 0, MIB), b = feed_buf(0x2000, 0, 3);

		feed_buffer(t, P, 20, FN_ALLOCATED, &a);
		feed_buffer(t, P, 21, FN_ALLOCATED, &b);
		feed_buffer(t, P, 30, ways[i], &a);
		assert_int_equal(feed_dram(t, P, 0), 3);
		/* Further events of the same free. */
		for (size_t k = 0; k < ARRAY_SIZE(ways); k++)
			feed_buffer(t, P, 31, ways[k], &a);
		assert_int_equal(feed_dram(t, P, 0), 3);
		assert_int_equal(feed_use(t, P, 0).frees, 1);
		assert_int_equal(feed_process(t, P).unknown_frees, 0);
		ttmon_tt_free(t);
	}
}

static void the_whole_order_of_a_life_counts_once(void **state)
{
	struct ttmon_tt *t = started();

	(void)state;
	for (uint32_t i = 0; i < 10; i++) {
		struct feed_buf b = feed_buf(0x1000, 0, MIB), early = b;
		uint64_t ts = 100 * (i + 1);

		early.status = 0;
		early.addr = 0;
		feed_create(t, P, ts, &b);
		feed_buffer(t, P, ts + 1, FN_ENTER, &early);
		feed_buffer(t, P, ts + 2, FN_INNER, &early);
		feed_buffer(t, P, ts + 3, FN_ALLOCATED, &b);
		assert_int_equal(feed_dram(t, P, 0), MIB);
		feed_buffer(t, P, ts + 4, FN_DEALLOC, &b);
		feed_buffer(t, P, ts + 5, FN_LEAVE, &b);
		feed_buffer(t, P, ts + 6, FN_FREEING, &b);
		feed_buffer(t, P, ts + 7, FN_TAKE_BACK, &b);
		b.status = 2;
		feed_buffer(t, P, ts + 8, FN_DTOR, &b);
		assert_int_equal(feed_dram(t, P, 0), 0);
	}
	assert_int_equal(feed_use(t, P, 0).allocs, 10);
	assert_int_equal(feed_use(t, P, 0).frees, 10);
	assert_int_equal(feed_use(t, P, 0).peak[TTMON_TT_TYPE_DRAM], MIB);
	assert_int_equal(feed_process(t, P).unknown_frees, 0);
	assert_int_equal(feed_process(t, P).flags, 0);
	assert_string_equal(feed_process(t, P).layout, "E2 checked");
	ttmon_tt_free(t);
}

static void a_second_allocation_replaces(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf a = feed_buf(0x1000, 0, 10), b = feed_buf(0x1000, 1, 7);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &a);
	feed_buffer(t, P, 21, FN_ALLOCATED, &b);
	assert_int_equal(feed_dram(t, P, 0), 0);
	assert_int_equal(feed_dram(t, P, 1), 7);
	assert_int_equal(feed_use(t, P, 0).frees, 1);
	ttmon_tt_free(t);
}

static void unknown_frees_are_counted_and_change_nothing(void **state)
{
	struct ttmon_tt *t = feed_new();
	struct feed_buf old = feed_buf(0x1000, 0, MIB), b = feed_buf(0x2000, 0, 10);

	(void)state;
	feed_clock(t, 1000);
	feed_proc(t, P, 1010, 500, TTMON_PROC_SEEN);
	feed_buffer(t, P, 1020, FN_DEALLOC, &old);
	feed_buffer(t, P, 1021, FN_LEAVE, &old);
	feed_buffer(t, P, 1022, FN_FREEING, &old);
	feed_buffer(t, P, 1023, FN_TAKE_BACK, &old);
	assert_int_equal(feed_process(t, P).unknown_frees, 1);
	assert_true(feed_process(t, P).flags & TTMON_TT_F_PARTIAL);
	feed_buffer(t, P, 1030, FN_ALLOCATED, &b);
	assert_int_equal(feed_dram(t, P, 0), 10);
	old.at = 0x7000;
	old.layout = TTMON_TT_LAYOUT_E2;
	feed_buffer(t, P, 1040, FN_FREEING, &old);
	assert_int_equal(feed_dram(t, P, 0), 10);
	assert_int_equal(feed_process(t, P).unknown_frees, 2);
	ttmon_tt_free(t);
}

static void partial_is_who_ran_before(void **state)
{
	struct ttmon_tt *t = feed_new();
	struct feed_buf b = feed_buf(0x1000, 0, 10);

	(void)state;
	feed_clock(t, 1000);
	feed_proc(t, 1, 2000, 999, TTMON_PROC_SEEN);
	feed_proc(t, 2, 2000, 1001, TTMON_PROC_SEEN);
	feed_proc(t, 3, 2000, 999, TTMON_PROC_EXEC);
	feed_proc(t, 4, 2000, 2000, TTMON_PROC_FORK);
	for (uint32_t p = 1; p <= 5; p++)
		feed_buffer(t, p, 3000, FN_ALLOCATED, &b);
	assert_int_equal(feed_process(t, 1).flags, TTMON_TT_F_PARTIAL);
	assert_int_equal(feed_process(t, 2).flags, 0);
	assert_int_equal(feed_process(t, 3).flags, 0);
	assert_int_equal(feed_process(t, 4).flags, 0);
	assert_int_equal(feed_process(t, 5).flags, TTMON_TT_F_PARTIAL); /* it was never announced */
	feed_proc(t, 1, 4000, 999, TTMON_PROC_EXEC);
	assert_int_equal(feed_process(t, 1).flags, 0);
	ttmon_tt_free(t);
}

/* Facts come when they are made, events when their millisecond closes. */
static void partial_is_who_mapped_it_before_its_probes(void **state)
{
	struct ttmon_tt *t = feed_new();
	struct feed_buf b = feed_buf(0x1000, 0, 10);

	(void)state;
	feed_clock(t, 1);
	feed_object(t, 0, 7, TTMON_TT_HAS_PRIMARY);
	for (uint32_t p = 1; p <= 7; p++) {
		if (p == 2) /* ahead of its fork */
			feed_blind(t, p, 7, 30, 0);
		if (p == 3) /* ahead of its exec */
			feed_blind(t, p, 7, 50, 0);
		feed_proc(t, p, 20, 20, TTMON_PROC_FORK);
	}
	feed_blind(t, 1, 7, 30, 0);
	feed_blind(t, 4, 7, 30, 0); /* of the program before its exec */
	feed_blind(t, 5, 7, 30, 1); /* held */
	feed_blind(t, 6, 8, 30, 0); /* another library */
	feed_proc(t, 3, 40, 20, TTMON_PROC_EXEC);
	feed_proc(t, 4, 40, 20, TTMON_PROC_EXEC);
	for (uint32_t p = 1; p <= 7; p++) {
		feed_buffer(t, p, 60, FN_ALLOCATED, &b);
		assert_int_equal(feed_process(t, p).flags, p <= 3 ? TTMON_TT_F_PARTIAL : 0);
	}
	/* Its pid belongs to another process now. */
	feed_exit(t, 1, 70);
	feed_proc(t, 1, 80, 80, TTMON_PROC_FORK);
	feed_buffer(t, 1, 81, FN_ALLOCATED, &b);
	assert_int_equal(feed_process(t, 1).flags, 0);
	ttmon_tt_free(t);
}

static void partial_is_who_frees_what_nobody_saw(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf a = feed_buf(0x1000, 0, 10), b = feed_buf(0x2000, 1, 20), c = feed_buf(0x3000, 2, 30);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &a);
	feed_buffer(t, P, 21, FN_ALLOCATED, &b);
	feed_buffer(t, P, 22, FN_ALLOCATED, &c);
	/* The objects that were freed in bulk still exist, and are freed again. */
	CALL(t, P, 30, FN_BULK, 0, ALLOCATOR(0));
	CALL(t, P, 31, FN_DEV_END, 0, DEV(1));
	feed_buffer(t, P, 32, FN_FREEING, &a);
	feed_buffer(t, P, 33, FN_MARK, &b);
	assert_int_equal(feed_process(t, P).flags, 0);
	feed_buffer(t, P, 34, FN_FREEING, &c);
	assert_int_equal(feed_process(t, P).flags, 0);
	a.at = 0x9000;
	feed_buffer(t, P, 35, FN_FREEING, &a);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_PARTIAL);
	ttmon_tt_free(t);
}

/*
 * Losses are reported up to 100 ms after they happened, and may concern the first event of a process.
 */
static void losses_are_of_who_ran_then(void **state)
{
	struct ttmon_tt *t = feed_new();
	struct feed_buf b = feed_buf(0x1000, 0, 10);

	(void)state;
	for (uint32_t p = 1; p <= 3; p++)
		feed_proc(t, p, 20, 20, TTMON_PROC_FORK);
	feed_buffer(t, 1, 30, FN_ALLOCATED, &b);
	feed_buffer(t, 2, 30, FN_ALLOCATED, &b);
	feed_exit(t, 2, 40);
	ttmon_tt_tick(t, 40 + SEC);
	feed_exit(t, 1, 50 + SEC);
	ttmon_tt_tick(t, SEC + 100 * MS);
	ttmon_tt_lost(t);
	feed_buffer(t, 3, SEC + 101 * MS, FN_ALLOCATED, &b);
	assert_int_equal(feed_process(t, 1).flags, TTMON_TT_F_LOST);
	assert_int_equal(feed_process(t, 2).flags, 0);
	assert_int_equal(feed_process(t, 3).flags, TTMON_TT_F_LOST);
	ttmon_tt_free(t);
}

/*
 * Another environment has other chips: what was reported of the old program does not hold for the new
 * one.
 */
static void another_program_has_other_chips(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf b = feed_buf(0x1000, 0, 10);
	struct ttmon_tt_want wants[8];

	(void)state;
	feed_chip(t, 1);
	feed_chip(t, 2);
	feed_buffer(t, P, 20, FN_ALLOCATED, &b);
	feed_place(t, P, 21, 0, 1, 0);
	assert_int_equal(feed_use(t, P, 0).chip, 1);
	assert_int_equal(ttmon_tt_wants(t, wants, 8), 0);
	feed_proc(t, P, 30, 5, TTMON_PROC_EXEC);
	feed_buffer(t, P, 40, FN_ALLOCATED, &b);
	assert_int_equal(ttmon_tt_wants(t, wants, 8), 1);
	feed_place(t, P, 60, 0, 2, TTMON_TT_PROC_OWN_SHM);
	assert_int_equal(feed_use(t, P, 0).chip, 2);
	assert_int_equal(feed_chip_view(t, 1).bytes[0], 0);
	assert_int_equal(feed_chip_view(t, 2).bytes[0], 10);
	/* Reported before an exec that happened earlier. */
	feed_proc(t, P, 50, 5, TTMON_PROC_EXEC);
	feed_buffer(t, P, 70, FN_ALLOCATED, &b);
	assert_int_equal(ttmon_tt_wants(t, wants, 8), 0);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_OWN_SHM);
	ttmon_tt_free(t);
}

static void facts_of_the_ended_make_no_process(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf b = feed_buf(0x1000, 0, 10);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &b);
	feed_exit(t, P, 30);
	feed_place(t, P, 30 + SEC, 5, 3, 0);
	feed_proc(t, P, 2 * SEC, 2 * SEC, TTMON_PROC_FORK);
	assert_int_equal(ttmon_tt_ran_on(t, P, 5, 3 * SEC), 0);
	ttmon_tt_free(t);
}

static void all_of_an_allocator_go_at_once(void **state)
{
	struct ttmon_tt *t = started();

	(void)state;
	for (uint32_t i = 0; i < 12; i++) {
		struct feed_buf b = feed_buf(0x1000 * (i + 1), 0, 1 << i);

		b.allocator = ALLOCATOR(i % 3);
		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &b);
	}
	CALL(t, P, 50, FN_BULK, 0, ALLOCATOR(1));
	assert_int_equal(feed_dram(t, P, 0), 0xfff & ~(1 << 1 | 1 << 4 | 1 << 7 | 1 << 10));
	CALL(t, P, 51, FN_BULK, 0, ALLOCATOR(1));
	CALL(t, P, 51, FN_BULK, 0, 0xdeadbeef);
	assert_int_equal(feed_use(t, P, 0).frees, 4);
	ttmon_tt_free(t);
}

static void all_of_a_device_go_when_it_closes(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf a = feed_buf(0x1000, 0, 10), b = feed_buf(0x2000, 1, 20);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &a);
	feed_buffer(t, P, 20, FN_ALLOCATED, &b);
	feed_cb(t, P, 20, TTMON_TT_DEV_DEVICE, DEV(0), 4, 0x100, 64, 0);
	CALL(t, P, 30, FN_DEV_END, TTMON_TT_DEV_DEVICE, DEV(0));
	assert_int_equal(feed_dram(t, P, 0), 0);
	assert_int_equal(feed_bytes(t, P, 0, TTMON_TT_TYPE_CB), 0);
	assert_int_equal(feed_dram(t, P, 1), 20);
	/* Open again, at another address, with the same id. */
	feed_dev_new(t, P, 40, 7, 0);
	a.dev = DEV(7);
	feed_buffer(t, P, 41, FN_ALLOCATED, &a);
	assert_int_equal(feed_dram(t, P, 0), 10);
	assert_int_equal(feed_use(t, P, 0).allocs, 3);
	ttmon_tt_free(t);
}

static void all_of_a_process_goes_with_it(void **state)
{
	struct ttmon_tt *t = feed_new();
	struct feed_buf b = feed_buf(0x1000, 0, 10);

	(void)state;
	feed_chip(t, 1);
	for (uint32_t p = 1; p <= 4; p++) {
		feed_proc(t, p, 10, 5, TTMON_PROC_FORK);
		feed_buffer(t, p, 20, FN_ALLOCATED, &b);
		feed_place(t, p, 21, 0, 1, 0);
	}
	assert_int_equal(feed_chip_view(t, 1).bytes[0], 40);
	feed_exit(t, 1, 30);
	assert_int_equal(feed_chip_view(t, 1).bytes[0], 30);
	assert_int_equal(feed_process(t, 1).end_ns, 30);
	{
		struct ttmon_ev_gone gone = { .h = feed_head(TTMON_EV_GONE, 2, 2, 31) };

		FEED(t, gone);
		FEED(t, gone);
	}
	assert_int_equal(feed_chip_view(t, 1).bytes[0], 20);
	feed_proc(t, 3, 32, 5, TTMON_PROC_EXEC);
	assert_int_equal(feed_chip_view(t, 1).bytes[0], 10);
	assert_int_equal(feed_process(t, 3).end_ns, 0);
	/* Its id was given to another process; the end of the first one was missed. */
	feed_proc(t, 4, 33, 32, TTMON_PROC_FORK);
	assert_int_equal(feed_chip_view(t, 1).bytes[0], 0);
	assert_int_equal(feed_chip_view(t, 1).peak[0], 40);
	feed_buffer(t, 4, 34, FN_ALLOCATED, &b);
	assert_int_equal(feed_dram(t, 4, 0), 10);
	ttmon_tt_free(t);
}

static void an_event_of_an_ended_process_changes_nothing(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf b = feed_buf(0x1000, 0, 10);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &b);
	{
		struct ttmon_ev_exit other = { .h = feed_head(TTMON_EV_EXIT, P, P, 25), .start_ns = 4 };

		FEED(t, other);
		assert_int_equal(feed_dram(t, P, 0), 10);
	}
	feed_exit(t, P, 30);
	feed_buffer(t, P, 30, FN_FREEING, &b);
	feed_buffer(t, P, 29, FN_ALLOCATED, &b);
	assert_int_equal(feed_dram(t, P, 0), 0);
	assert_int_equal(feed_use(t, P, 0).allocs, 1);
	ttmon_tt_free(t);
}

static void a_child_starts_with_nothing(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf b = feed_buf(0x1000, 0, 10);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &b);
	feed_proc(t, P + 1, 30, 30, TTMON_PROC_FORK);
	feed_buffer(t, P + 1, 31, FN_FREEING, &b);
	assert_int_equal(feed_dram(t, P, 0), 10);
	assert_int_equal(feed_process(t, P + 1).unknown_frees, 1);
	b.at = 0x2000;
	feed_buffer(t, P + 1, 32, FN_ALLOCATED, &b);
	assert_int_equal(feed_dram(t, P + 1, 0), 10);
	assert_int_equal(feed_dram(t, P, 0), 10);
	ttmon_tt_free(t);
}

static void the_last_256_ended_ones_stay(void **state)
{
	struct ttmon_tt *t = feed_new();
	struct feed_buf b = feed_buf(0x1000, 0, 10);
	struct ttmon_tt_view v;

	(void)state;
	for (uint32_t p = 1; p <= 1000; p++) {
		feed_proc(t, p, p * 10, p * 10, TTMON_PROC_FORK);
		if (p % 2)
			feed_buffer(t, p, p * 10 + 1, FN_ALLOCATED, &b);
		feed_exit(t, p, p * 10 + 2);
	}
	assert_int_equal(ttmon_tt_snapshot(t, &v), 0);
	assert_int_equal(v.nr_procs, 256); /* processes without use of the chip are not included */
	assert_int_equal(v.procs[0].tgid, 999 - 510);
	assert_int_equal(v.procs[255].tgid, 999);
	for (size_t i = 0; i < v.nr_uses; i++)
		assert_int_equal(v.uses[i].peak[0], 10);
	ttmon_tt_view_fini(&v);
	ttmon_tt_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_counts_until_it_is_freed),
		cmocka_unit_test(types_are_kept_apart),
		cmocka_unit_test(what_takes_no_memory_is_not_counted),
		cmocka_unit_test(padding_is_no_flag),
		cmocka_unit_test(each_way_to_free_ends_a_buffer_once),
		cmocka_unit_test(the_whole_order_of_a_life_counts_once),
		cmocka_unit_test(a_second_allocation_replaces),
		cmocka_unit_test(unknown_frees_are_counted_and_change_nothing),
		cmocka_unit_test(partial_is_who_ran_before),
		cmocka_unit_test(partial_is_who_mapped_it_before_its_probes),
		cmocka_unit_test(partial_is_who_frees_what_nobody_saw),
		cmocka_unit_test(losses_are_of_who_ran_then),
		cmocka_unit_test(another_program_has_other_chips),
		cmocka_unit_test(facts_of_the_ended_make_no_process),
		cmocka_unit_test(all_of_an_allocator_go_at_once),
		cmocka_unit_test(all_of_a_device_go_when_it_closes),
		cmocka_unit_test(all_of_a_process_goes_with_it),
		cmocka_unit_test(an_event_of_an_ended_process_changes_nothing),
		cmocka_unit_test(a_child_starts_with_nothing),
		cmocka_unit_test(the_last_256_ended_ones_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
