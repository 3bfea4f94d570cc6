// SPDX-License-Identifier: GPL-2.0-only
/* test_tt_cbs.c: circular buffers of programs: which cores, which programs, which ends. */
#include "tests/unit/feed/tt_feed.h"

#define P	 100
#define PROG(i)	 (0x7f0000100000ULL + 0x1000ULL * (uint64_t)(i))
#define CB(t, i) feed_bytes(t, P, i, TTMON_TT_TYPE_CB)

/* Allocations as the history counts them. */
struct lives {
	uint64_t live, allocs, bytes;
	uint64_t size[64];
	bool is_live[64];
};

static uint64_t lives_alloc(void *ctx, uint32_t tgid, uint64_t ts_ns, unsigned int method, uint64_t addr,
			    uint64_t bytes, uint16_t fn)
{
	struct lives *l = ctx;

	(void)tgid, (void)ts_ns, (void)addr, (void)fn;
	assert_int_equal(method, TTMON_METHOD_TT_CB);
	assert_true(l->allocs < 64);
	l->size[l->allocs] = bytes;
	l->is_live[l->allocs] = true;
	l->live += bytes;
	l->bytes += bytes;
	return l->allocs++;
}

static void lives_free(void *ctx, uint64_t seq, uint64_t ts_ns, uint16_t fn)
{
	struct lives *l = ctx;

	(void)ts_ns, (void)fn;
	assert_true(seq < l->allocs && l->is_live[seq]);
	l->is_live[seq] = false;
	l->live -= l->size[seq];
}

static struct lives lives;

static struct ttmon_tt *started(void)
{
	static const struct ttmon_tt_ops ops = { .alloc = lives_alloc, .free = lives_free };
	struct ttmon_tt_cfg cfg = { 0 };
	struct ttmon_tt *t;

	lives = (struct lives){ 0 };
	assert_int_equal(ttmon_tt_new(&cfg, &ops, &lives, &t), 0);
	feed_clock(t, 1);
	feed_proc(t, P, 10, 5, TTMON_PROC_FORK);
	for (unsigned int i = 0; i < 4; i++)
		feed_dev_new(t, P, 11, i, i);
	return t;
}

static const struct ttmon_tt_core_range left = { 0, 0, 1, 0 }, right = { 2, 0, 3, 0 }, middle = { 1, 0, 2, 0 };

static void add(struct ttmon_tt *t, uint64_t program, uint64_t since, unsigned int dev, uint64_t addr, uint64_t size,
		struct ttmon_tt_core_range r)
{
	feed_cb_of(t, P, 20, program, since, DEV(dev), addr, size, &r, 1);
}

static void end(struct ttmon_tt *t, uint64_t program, unsigned int dev)
{
	CALL(t, P, 30, FN_CB_FREE, TTMON_TT_DEV_DEVICE, DEV(dev), program);
}

/*
 * All programs begin at the same address: on different cores this is different memory, on the same
 * cores it is the same.
 */
static void union_by_core(void **state)
{
	struct ttmon_tt *t = started();

	(void)state;
	add(t, PROG(1), 1, 0, 0x1000, 1024, left);
	add(t, PROG(2), 2, 0, 0x1000, 1024, right);
	assert_int_equal(CB(t, 0), 4 * 1024);
	add(t, PROG(3), 3, 0, 0x1000, 2048, middle);
	assert_int_equal(CB(t, 0), 4 * 1024 + 2 * 1024);
	assert_int_equal(lives.live, CB(t, 0));
	/* The end of one takes nothing from the others. */
	end(t, PROG(1), 0);
	assert_int_equal(CB(t, 0), 1024 + 2 * 2048);
	end(t, PROG(3), 0);
	assert_int_equal(CB(t, 0), 2 * 1024);
	assert_int_equal(lives.live, CB(t, 0));
	end(t, PROG(3), 0); /* it has ended already */
	end(t, PROG(9), 0); /* of a program from before the trace */
	assert_int_equal(CB(t, 0), 2 * 1024);
	end(t, PROG(2), 0);
	assert_int_equal(CB(t, 0), 0);
	assert_int_equal(lives.live, 0);
	assert_int_equal(feed_use(t, P, 0).peak[TTMON_TT_TYPE_CB], 6 * 1024);
	assert_int_equal(feed_use(t, P, 0).allocs, 3);
	assert_int_equal(feed_use(t, P, 0).frees, 3);
	assert_int_equal(feed_process(t, P).flags, 0);
	ttmon_tt_free(t);
}

static void one_layout_on_all_devices(void **state)
{
	struct ttmon_tt *t = started();

	(void)state;
	for (unsigned int dev = 0; dev < 3; dev++)
		add(t, PROG(1), 1, dev, 0x1000, 1024, left);
	for (unsigned int dev = 0; dev < 3; dev++)
		add(t, PROG(1), 1, dev, 0x1400, 1024, left);
	/* It runs on another device later: all its circular buffers are reported for that device again. */
	add(t, PROG(1), 1, 3, 0x1000, 1024, left);
	add(t, PROG(1), 1, 3, 0x1400, 1024, left);
	for (unsigned int dev = 0; dev < 4; dev++)
		assert_int_equal(CB(t, dev), 4 * 1024);
	/*
	 * Laid out again, which is reported for the device that it runs on: the layout belongs to the program.
	 */
	add(t, PROG(1), 2, 0, 0x1000, 512, left);
	for (unsigned int dev = 0; dev < 4; dev++)
		assert_int_equal(CB(t, dev), 2 * 512);
	for (unsigned int dev = 0; dev < 4; dev++) {
		end(t, PROG(1), dev);
		assert_int_equal(CB(t, dev), 0);
	}
	assert_int_equal(lives.live, 0);
	ttmon_tt_free(t);
}

static void an_end_without_a_name(void **state)
{
	struct ttmon_tt *t = started();

	(void)state;
	/* Only one program can have ended. */
	add(t, PROG(1), 1, 0, 0x1000, 1024, left);
	add(t, PROG(2), 2, 1, 0x1000, 1024, left);
	end(t, 0, 0);
	assert_int_equal(CB(t, 0), 0);
	assert_int_equal(CB(t, 1), 2 * 1024);
	assert_int_equal(feed_process(t, P).flags, 0);
	/* One of two: what is left is unknown, and marked as unknown. */
	add(t, PROG(3), 3, 1, 0x1000, 1024, right);
	end(t, 0, 1);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_CB_UNKNOWN);
	assert_false(ttmon_tt_is_known(TTMON_TT_TYPE_CB, CB(t, 1), feed_process(t, P).flags));
	ttmon_tt_free(t);
	/* A library whose programs are not reported. */
	t = started();
	feed_object(t, 0, 1, TTMON_TT_HAS_CB);
	add(t, 0, 0, 0, 0x1000, 1024, left);
	end(t, 0, 0);
	assert_int_equal(feed_process(t, P).flags, 0);
	add(t, 0, 0, 0, 0x1000, 1024, left);
	add(t, 0, 0, 0, 0x1000, 1024, right);
	end(t, 0, 0);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_CB_UNKNOWN);
	ttmon_tt_free(t);
}

static void devices_end_and_are_made_again(void **state)
{
	struct ttmon_tt *t = started();

	(void)state;
	add(t, PROG(1), 1, 0, 0x1000, 1024, left);
	add(t, PROG(1), 1, 1, 0x1000, 1024, left);
	add(t, PROG(2), 2, 0, 0x1000, 1024, right);
	CALL(t, P, 30, FN_DEV_END, TTMON_TT_DEV_DEVICE, DEV(0));
	assert_int_equal(CB(t, 0), 0);
	assert_int_equal(CB(t, 1), 2 * 1024);
	end(t, PROG(1), 0); /* the program ends after its device */
	assert_int_equal(CB(t, 1), 2 * 1024);
	assert_int_equal(lives.live, 2 * 1024);
	feed_exit(t, P, 40);
	assert_int_equal(lives.live, 0);
	ttmon_tt_free(t);
}

/* A running process's first event is of a circular buffer: its record says which device that is. */
static void devices_from_before(void **state)
{
	struct ttmon_tt *t = feed_new();
	struct ttmon_ev_tt_cb ev = { .call = { .h = feed_head(TTMON_EV_TT_CALL, P, P, 20),
					       .arg = { DEV(3), 2, 0x1000, 64 },
					       .fn = FN_CB,
					       .dev_kind = TTMON_TT_DEV_DEVICE },
				     .dev = { VT_DEVICE, 0x1234567, 0x1234568, 3 },
				     .nr_ranges = 1,
				     .range = { left } };

	(void)state;
	ttmon_tt_apply(t, &ev.call.h, sizeof(ev));
	assert_int_equal(CB(t, 3), 128);
	ttmon_tt_free(t);
}

/*
 * A device is closed and opened again: a program that runs there again has its circular buffers again,
 * and reports nothing else.
 */
static void programs_run_again(void **state)
{
	struct ttmon_tt *t = started();
	struct ttmon_tt_want w[8];
	size_t n;

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		add(t, PROG(1), 1, i, 0x1000, 1024, left);
	add(t, PROG(2), 2, 0, 0x1000, 1024, right);
	for (unsigned int i = 0; i < 3; i++)
		CALL(t, P, 40, FN_DEV_END, TTMON_TT_DEV_DEVICE, DEV(i));
	end(t, PROG(2), 0);
	for (unsigned int i = 0; i < 3; i++)
		CALL(t, P, 50, FN_DEV_OPEN, TTMON_TT_DEV_DEVICE, DEV(i));
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(CB(t, i), 0);
	CALL(t, P, 60, FN_CB_RUN, TTMON_TT_DEV_DEVICE, DEV(0), PROG(1));
	CALL(t, P, 60, FN_CB_RUN, TTMON_TT_DEV_DEVICE, DEV(0), PROG(2));
	assert_int_equal(CB(t, 0), 2 * 1024);
	assert_int_equal(CB(t, 1), 0);
	assert_int_equal(feed_process(t, P).flags, 0);
	/*
	 * It runs on a mesh that was not seen: its devices are requested, and what they hold is unknown until
	 * then.
	 */
	CALL(t, P, 70, FN_CB_RUN, TTMON_TT_DEV_MESH, MESH(0), PROG(1));
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_CB_UNKNOWN);
	for (n = ttmon_tt_wants(t, w, 8); n && w[n - 1].mesh != MESH(0); n--)
		;
	assert_true(n);
	feed_mesh(t, P, 71, 0, 0, 2);
	assert_int_equal(feed_process(t, P).flags, 0);
	assert_int_equal(CB(t, 0), 2 * 1024);
	assert_int_equal(CB(t, 1), 2 * 1024);
	assert_int_equal(CB(t, 2), 0);
	/*
	 * A mesh that ends before that: as long as the program exists, it is unknown whether it had the
	 * remaining device.
	 */
	CALL(t, P, 72, FN_CB_RUN, TTMON_TT_DEV_MESH, MESH(1), PROG(1));
	CALL(t, P, 73, FN_MESH_DTOR, TTMON_TT_DEV_MESH, MESH(1));
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_CB_UNKNOWN);
	/* Another layout applies to all of them, and an end does too. */
	add(t, PROG(1), 3, 1, 0x1000, 512, left);
	assert_int_equal(CB(t, 0), 2 * 512);
	CALL(t, P, 80, FN_CB_RUN, TTMON_TT_DEV_DEVICE, DEV(2), PROG(1));
	assert_int_equal(CB(t, 2), 2 * 512);
	for (unsigned int i = 0; i < 3; i++)
		end(t, PROG(1), i);
	for (unsigned int i = 0; i < 3; i++) {
		CALL(t, P, 90, FN_CB_RUN, TTMON_TT_DEV_DEVICE, DEV(i), PROG(1));
		assert_int_equal(CB(t, i), 0);
	}
	assert_int_equal(feed_process(t, P).flags, 0);
	ttmon_tt_free(t);
	assert_int_equal(lives.live, 0);
}

/* The programs of these buffers are unknown, so it is unknown whether they are there again. */
static void nobodys_on_reopened_devices(void **state)
{
	for (unsigned int made = 0; made < 2; made++) {
		struct ttmon_tt *t = started();

		(void)state;
		feed_cb(t, P, 20, TTMON_TT_DEV_DEVICE, DEV(0), 2, 0x1000, 100, 0);
		CALL(t, P, 30, FN_DEV_END, TTMON_TT_DEV_DEVICE, DEV(0));
		assert_int_equal(feed_process(t, P).flags, 0);
		if (made)
			feed_dev_new(t, P, 40, 0, 0);
		else
			CALL(t, P, 40, FN_DEV_OPEN, TTMON_TT_DEV_DEVICE, DEV(0));
		/* A device that is constructed again is a different device. */
		assert_int_equal(feed_process(t, P).flags, made ? 0 : TTMON_TT_F_CB_UNKNOWN);
		ttmon_tt_free(t);
	}
}

static void what_cannot_be_read_is_said(void **state)
{
	struct ttmon_tt *t = started();
	struct ttmon_tt_core_range no = { 3, 0, 1, 0 };

	(void)state;
	add(t, PROG(1), 1, 0, 0x1000, 1024, no);
	assert_int_equal(feed_process(t, P).refused, 1);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_CB_UNKNOWN);
	ttmon_tt_free(t);
	t = started();
	/* As an earlier version of ttmond recorded it: a number of cores, but not which ones. */
	CALL(t, P, 20, FN_CB, TTMON_TT_DEV_DEVICE, DEV(0), 8, 0x1000, 100, 0);
	assert_int_equal(CB(t, 0), 0);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_CB_UNKNOWN);
	ttmon_tt_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(union_by_core),	 cmocka_unit_test(one_layout_on_all_devices),
		cmocka_unit_test(an_end_without_a_name), cmocka_unit_test(devices_end_and_are_made_again),
		cmocka_unit_test(programs_run_again),	 cmocka_unit_test(nobodys_on_reopened_devices),
		cmocka_unit_test(devices_from_before),	 cmocka_unit_test(what_cannot_be_read_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
