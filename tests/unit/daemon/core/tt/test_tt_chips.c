// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_tt_chips.c: circular buffers, the chip of a device, limits and false input, and what the
 * history is notified of.
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

/* ---- circular buffers ---- */

static void circular_buffers(void **state)
{
	struct ttmon_tt *t = started();

	(void)state;
	for (uint32_t run = 0; run < 100; run++) {
		feed_cb(t, P, 20 + run, TTMON_TT_DEV_DEVICE, DEV(0), 8, 0x1000, 100, 0);
		feed_cb(t, P, 20 + run, TTMON_TT_DEV_DEVICE, DEV(0), 8, 0x2000, 50, 0xff00);
		feed_cb(t, P, 20 + run, TTMON_TT_DEV_DEVICE, DEV(0), 4, 0x1000, 1, 0);
		feed_cb(t, P, 20 + run, TTMON_TT_DEV_DEVICE, DEV(0), 8, 0x3000, 1000, 1); /* in an L1 buffer */
	}
	feed_dev_new(t, P, 199, 1, 1);
	feed_cb(t, P, 199, TTMON_TT_DEV_DEVICE, DEV(1), 8, 0x2000, 50, 0xff00);
	assert_int_equal(feed_bytes(t, P, 1, TTMON_TT_TYPE_CB),
			 400); /* the upper bits of the register of a bool are undefined */
	CALL(t, P, 199, FN_CB_FREE, TTMON_TT_DEV_DEVICE, DEV(1));
	/* The same report again changes nothing. */
	feed_cb(t, P, 200, TTMON_TT_DEV_UNKNOWN, DEV(0), 8, 0x1000, 100, 0);
	feed_dev_new(t, P, 200, 0, 0);
	assert_int_equal(feed_bytes(t, P, 0, TTMON_TT_TYPE_CB), 0); /* a new Device holds nothing */
	feed_cb(t, P, 201, TTMON_TT_DEV_DEVICE, DEV(0), 8, 0x1000, 100, 0);
	feed_cb(t, P, 201, TTMON_TT_DEV_DEVICE, DEV(0), 8, 0x2000, 50, 0);
	assert_int_equal(feed_bytes(t, P, 0, TTMON_TT_TYPE_CB), 1200);
	feed_cb(t, P, 202, TTMON_TT_DEV_DEVICE, DEV(0), 8, 0x1000, 300, 0); /* another size replaces */
	assert_int_equal(feed_bytes(t, P, 0, TTMON_TT_TYPE_CB), 2800);
	CALL(t, P, 203, FN_CB_FREE, TTMON_TT_DEV_DEVICE, DEV(1));
	assert_int_equal(feed_bytes(t, P, 0, TTMON_TT_TYPE_CB), 2800);
	CALL(t, P, 204, FN_CB_FREE, TTMON_TT_DEV_DEVICE, DEV(0));
	assert_int_equal(feed_bytes(t, P, 0, TTMON_TT_TYPE_CB), 0);
	assert_int_equal(feed_use(t, P, 0).peak[TTMON_TT_TYPE_CB], 2800);
	assert_int_equal(feed_process(t, P).refused, 0);
	feed_cb(t, P, 205, TTMON_TT_DEV_DEVICE, DEV(0), 0, 0x1000, 300, 0);
	feed_cb(t, P, 205, TTMON_TT_DEV_DEVICE, DEV(0), 1 << 20, 0x1000, 300, 0);
	feed_cb(t, P, 205, TTMON_TT_DEV_DEVICE, DEV(0), 8, 0x1000, UINT64_MAX, 0);
	feed_cb(t, P, 205, TTMON_TT_DEV_UNKNOWN, 0x777, 8, 0x1000, 8, 0);
	assert_int_equal(feed_process(t, P).refused, 4);
	assert_int_equal(feed_bytes(t, P, 0, TTMON_TT_TYPE_CB), 0);
	ttmon_tt_free(t);
}

/* ---- which chip ---- */

static void chips_are_asked_for_and_follow(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf a = feed_buf(0x1000, 3, 10), b = feed_buf(0x2000, 4, 5);
	struct ttmon_tt_want w[8];

	(void)state;
	feed_chip(t, 1);
	feed_chip(t, 2);
	feed_buffer(t, P, 20, FN_ALLOCATED, &a);
	assert_int_equal(ttmon_tt_wants(t, w, 8), 1);
	assert_int_equal(w[0].tgid, P);
	assert_int_equal(w[0].mesh, 0);
	assert_int_equal(w[0].logical, 3);
	assert_int_equal(w[0].vt_device, VT_DEVICE);
	assert_int_equal(ttmon_tt_wants(t, w, 8), 0);
	feed_place(t, P, 21, 3, 2, 0);
	assert_int_equal(feed_use(t, P, 3).chip, 2);
	assert_int_equal(feed_use(t, P, 3).how, TTMON_TT_HOW_VISIBLE);
	assert_int_equal(feed_chip_view(t, 2).bytes[0], 10);
	assert_int_equal(feed_chip_view(t, 2).peak[0], 10);
	assert_int_equal(ttmon_tt_ran_on(t, P, 3, 21), 2);
	/* The answer changes: the bytes move to the right chip. */
	feed_place(t, P, 22, 3, 1, 0);
	assert_int_equal(feed_chip_view(t, 2).bytes[0], 0);
	assert_int_equal(feed_chip_view(t, 1).bytes[0], 10);
	feed_place(t, P, 22, 3, 0, 0);
	assert_int_equal(feed_chip_view(t, 1).bytes[0], 0);
	/* The place is reported before the device is known. */
	feed_place(t, P, 23, 4, 1, 0);
	feed_buffer(t, P, 24, FN_ALLOCATED, &b);
	assert_int_equal(feed_chip_view(t, 1).bytes[0], 5);
	assert_int_equal(ttmon_tt_wants(t, w, 8), 0);
	ttmon_tt_free(t);
}

/*
 * A device that was opened before the probes becomes known with the first run that is reported for it.
 */
static void a_run_shows_its_device(void **state)
{
	struct ttmon_tt *t = started();
	struct ttmon_tt_want w[8];

	(void)state;
	feed_chip(t, 1);
	assert_int_equal(ttmon_tt_ran_on(t, P, 2, 20), 0);
	assert_int_equal(ttmon_tt_wants(t, w, 8), 1);
	assert_int_equal(w[0].logical, 2);
	feed_place(t, P, 21, 2, 1, 0);
	assert_int_equal(feed_use(t, P, 2).chip, 1);
	assert_int_equal(ttmon_tt_ran_on(t, P, 2, 22), 1);
	assert_int_equal(feed_use(t, P, 2).allocs, 0);
	/* An impossible id, and a process that has ended before. */
	assert_int_equal(ttmon_tt_ran_on(t, P, 0x7fffffff, 23), 0);
	feed_exit(t, P, 30);
	assert_int_equal(ttmon_tt_ran_on(t, P, 5, 25), 0);
	ttmon_tt_free(t);
}

static void a_question_is_asked_ten_times_at_most(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf a = feed_buf(0x1000, 3, 10);
	struct ttmon_tt_want w[8];
	size_t n = 0;

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &a);
	for (uint64_t ms = 0; ms < 3000; ms++) {
		ttmon_tt_tick(t, ms * MS);
		assert_int_equal(ttmon_tt_wants(t, w, 0), 0);
		n += ttmon_tt_wants(t, w, 8);
		if (ms == 350)
			assert_int_equal(n, 4);
	}
	assert_int_equal(n, 10);
	ttmon_tt_free(t);
}

/* Another object at the same address has another id, but not while memory is held there. */
static void ids_change_only_where_nothing_is_held(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf a = feed_buf(0x1000, 0, 10), b = feed_buf(0x2000, 0, 5);

	(void)state;
	b.id = 9;
	feed_buffer(t, P, 20, FN_ALLOCATED, &a);
	feed_buffer(t, P, 21, FN_ALLOCATED, &b);
	assert_int_equal(feed_dram(t, P, 0), 15);
	feed_buffer(t, P, 22, FN_FREEING, &a);
	feed_buffer(t, P, 23, FN_FREEING, &b);
	feed_buffer(t, P, 24, FN_ALLOCATED, &b);
	assert_int_equal(feed_dram(t, P, 9), 5);
	ttmon_tt_free(t);
}

/*
 * A Buffer at the address of the one that this thread freed last: its free is missed here, and counted
 * as unknown the second time.
 */
static void the_last_free_of_a_thread_is_not_remembered_too_long(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf a = feed_buf(0x1000, 0, 10);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &a);
	feed_buffer(t, P, 21, FN_FREEING, &a);
	feed_buffer(t, P, 22, FN_ALLOCATED, &a);
	feed_buffer_by(t, P, P + 1, 23, FN_FREEING, &a);
	feed_buffer(t, P, 24, FN_FREEING, &a);
	assert_int_equal(feed_process(t, P).unknown_frees, 1);
	ttmon_tt_free(t);
}

static void ids_come_from_the_best_source(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf a = feed_buf(0x1000, 0, 10), b = feed_buf(0x2000, 1, 20);

	(void)state;
	a.id = 5;
	b.id = 6;
	feed_buffer(t, P, 20, FN_ALLOCATED, &a);
	feed_buffer(t, P, 21, FN_ALLOCATED, &b);
	assert_int_equal(feed_dram(t, P, 5), 10);
	/* The Device::Device of another device shows that the word is not the id. */
	feed_dev_new(t, P, 22, 2, 0);
	a.at = 0x3000;
	a.dev = DEV(2);
	a.id = 700;
	feed_buffer(t, P, 23, FN_ALLOCATED, &a);
	assert_int_equal(feed_dram(t, P, 0), 10);
	assert_int_equal(feed_dram(t, P, 5), 0);
	assert_int_equal(feed_use(t, P, 5).logical, 0xeeee);
	{
		struct ttmon_tt_view v;
		uint64_t nameless = 0;

		assert_int_equal(ttmon_tt_snapshot(t, &v), 0);
		for (size_t i = 0; i < v.nr_uses; i++)
			nameless += v.uses[i].logical == TTMON_TT_NO_LOGICAL ? v.uses[i].bytes[0] : 0;
		assert_int_equal(nameless, 30);
		ttmon_tt_view_fini(&v);
	}
	ttmon_tt_free(t);
	/* An impossible id. */
	t = started();
	a.id = 1024;
	feed_buffer(t, P, 20, FN_ALLOCATED, &a);
	assert_int_equal(feed_dram(t, P, TTMON_TT_NO_LOGICAL), 10);
	ttmon_tt_free(t);
}

static void own_statistics_are_said(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf b = feed_buf(0x1000, 0, 10);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &b);
	CALL(t, P, 21, FN_PROVIDER, 0, 0x1, 0x55, 0, 1);
	assert_int_equal(feed_process(t, P).flags, 0);
	CALL(t, P, 21, FN_PROVIDER, 0, 0x1, 0x55, 0, 0);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_OWN_SHM);
	feed_proc(t, P, 22, 5, TTMON_PROC_EXEC);
	assert_int_equal(feed_process(t, P).flags, 0);
	feed_place(t, P, 23, 0, 1, TTMON_TT_PROC_OWN_SHM);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_OWN_SHM);
	ttmon_tt_free(t);
}

/* ---- limits and lies ---- */

static void more_buffers_than_are_kept(void **state)
{
	struct ttmon_tt_cfg cfg = { .max_buffers = 10 };
	struct ttmon_tt *t = NULL;

	(void)state;
	assert_int_equal(ttmon_tt_new(&cfg, NULL, NULL, &t), 0);
	feed_proc(t, P, 1, 1, TTMON_PROC_FORK);
	for (uint32_t i = 1; i <= 12; i++) {
		struct feed_buf b = feed_buf(0x1000 * i, 0, 1);

		feed_buffer(t, P, 10 + i, FN_ALLOCATED, &b);
		assert_int_equal(!!(feed_process(t, P).flags & TTMON_TT_F_LIMIT), i > 10);
	}
	assert_int_equal(feed_dram(t, P, 0), 10);
	for (uint32_t i = 1; i <= 12; i++) {
		struct feed_buf b = feed_buf(0x1000 * i, 0, 1);

		feed_buffer(t, P, 30 + i, FN_FREEING, &b);
	}
	assert_int_equal(feed_dram(t, P, 0), 0);
	ttmon_tt_free(t);
}

static void sums_do_not_wrap(void **state)
{
	struct ttmon_tt *t = started();
	uint64_t sum = 0;

	(void)state;
	for (uint64_t i = 1; i <= 1000; i++) {
		struct feed_buf b = feed_buf(0x1000 * i, 0, TTMON_TT_SIZE_MAX);

		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &b);
		assert_true(feed_dram(t, P, 0) >= sum);
		sum = feed_dram(t, P, 0);
	}
	assert_int_equal(sum, 2 * TTMON_TT_SIZE_MAX);
	assert_int_equal(feed_process(t, P).refused, 998);
	ttmon_tt_free(t);
}

static void more_devices_than_are_kept(void **state)
{
	struct ttmon_tt *t = started();
	struct ttmon_tt_view v;
	uint64_t sum = 0;

	(void)state;
	for (uint32_t i = 0; i < 5000; i++) {
		struct feed_buf b = feed_buf(0x1000 * (i + 1), i, 1);

		b.id = 5000;
		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &b);
	}
	assert_true(feed_process(t, P).flags & TTMON_TT_F_LIMIT);
	assert_int_equal(ttmon_tt_snapshot(t, &v), 0);
	assert_int_equal(v.nr_uses, 4096);
	ttmon_tt_view_fini(&v);
	/* Processes that have closed their devices make room. */
	for (uint32_t i = 0; i < 100; i++)
		CALL(t, P, 6000, FN_DEV_END, TTMON_TT_DEV_DEVICE, DEV(i));
	for (uint32_t i = 6000; i < 6100; i++) {
		struct feed_buf b = feed_buf(0x1000 * (i + 1), i, 7);

		b.id = 5000;
		feed_buffer(t, P, 7000, FN_ALLOCATED, &b);
		feed_buffer(t, P, 7001, FN_FREEING, &b);
		CALL(t, P, 7002, FN_DEV_END, TTMON_TT_DEV_DEVICE, DEV(i));
	}
	assert_int_equal(ttmon_tt_snapshot(t, &v), 0);
	for (size_t i = 0; i < v.nr_uses; i++)
		sum += v.uses[i].bytes[0];
	ttmon_tt_view_fini(&v);
	assert_int_equal(sum, 3996);
	ttmon_tt_free(t);
}

static void loss_is_said(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf b = feed_buf(0x1000, 0, 10);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &b);
	ttmon_tt_lost(t);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_LOST);
	feed_proc(t, P + 1, 21, 21, TTMON_PROC_FORK);
	feed_buffer(t, P + 1, 22, FN_ALLOCATED, &b);
	assert_int_equal(feed_process(t, P + 1).flags, 0);
	ttmon_tt_free(t);
}

/* ---- the history ---- */

struct told {
	uint64_t n, frees, undone, bytes, freed_seq;
	unsigned int method;
};

static uint64_t on_alloc(void *ctx, uint32_t tgid, uint64_t ts_ns, unsigned int method, uint64_t addr, uint64_t bytes,
			 uint16_t fn)
{
	struct told *told = ctx;

	(void)tgid;
	(void)ts_ns;
	(void)addr;
	(void)fn;
	told->bytes = bytes;
	told->method = method;
	return ++told->n;
}

static void on_free(void *ctx, uint64_t seq, uint64_t ts_ns, uint16_t fn)
{
	struct told *told = ctx;

	(void)ts_ns;
	(void)fn;
	told->frees++;
	told->freed_seq = seq;
}

static void on_undo(void *ctx, uint64_t seq, uint64_t ts_ns)
{
	struct told *told = ctx;

	(void)seq;
	(void)ts_ns;
	told->undone++;
}

static void the_history_is_told(void **state)
{
	static const struct ttmon_tt_ops ops = { .alloc = on_alloc, .free = on_free, .undo = on_undo };
	struct ttmon_tt_cfg cfg = { 0 };
	struct told told = { 0 };
	struct ttmon_tt *t = NULL;
	struct feed_buf a = feed_buf(0x1000, 0, 10), m = feed_mesh_buf(0x2000, 0, 7), bad;

	(void)state;
	assert_int_equal(ttmon_tt_new(&cfg, &ops, &told, &t), 0);
	feed_proc(t, P, 1, 1, TTMON_PROC_FORK);
	a.type = 4;
	feed_buffer(t, P, 10, FN_ALLOCATED, &a);
	assert_int_equal(told.n, 1);
	assert_int_equal(told.bytes, 10);
	assert_int_equal(told.method, TTMON_METHOD_TT_TRACE);
	/* A buffer of a mesh once its devices are known: it takes this much on each. */
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	assert_int_equal(told.n, 1);
	feed_mesh(t, P, 21, 0, 0, 32);
	assert_int_equal(told.n, 2);
	assert_int_equal(told.bytes, 32 * 7);
	feed_buffer(t, P, 22, FN_FREEING, &m);
	assert_int_equal(told.frees, 1);
	assert_int_equal(told.freed_seq, 2);
	/* A process whose records prove invalid had no allocations. */
	bad = a;
	bad.type = 9;
	for (uint64_t i = 0; i < 8; i++)
		feed_buffer(t, P, 30 + i, FN_ALLOCATED, &bad);
	assert_int_equal(told.undone, 1);
	assert_int_equal(told.frees, 1);
	ttmon_tt_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(circular_buffers),
		cmocka_unit_test(chips_are_asked_for_and_follow),
		cmocka_unit_test(a_run_shows_its_device),
		cmocka_unit_test(a_question_is_asked_ten_times_at_most),
		cmocka_unit_test(ids_change_only_where_nothing_is_held),
		cmocka_unit_test(the_last_free_of_a_thread_is_not_remembered_too_long),
		cmocka_unit_test(ids_come_from_the_best_source),
		cmocka_unit_test(own_statistics_are_said),
		cmocka_unit_test(more_buffers_than_are_kept),
		cmocka_unit_test(sums_do_not_wrap),
		cmocka_unit_test(more_devices_than_are_kept),
		cmocka_unit_test(loss_is_said),
		cmocka_unit_test(the_history_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
