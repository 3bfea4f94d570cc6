// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_tt_torture.c: every allocation of memory that core/tt makes fails once, and then all after it.
 * Nothing may crash or leak, no figure may wrap, and what was not kept is flagged or counted. The
 * sources are compiled in here once more, with malloc and friends replaced; the linker then takes
 * nothing of them from the archive.
 */
#include "tests/unit/feed/tt_feed.h"

#include "tests/unit/feed/torture.h"

#include "lib/base/fifo.c"
#include "lib/base/hmap.c"
#include "daemon/core/tt/tt.c"
#include "daemon/core/tt/bufs.c"
#include "daemon/core/tt/devs.c"
#include "daemon/core/tt/fallback.c"
#include "daemon/core/tt/layout.c"
#include "daemon/core/tt/ops.c"
#include "daemon/core/tt/views.c"
#include "daemon/core/tt/wants.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

static uint64_t told, freed;

static uint64_t on_alloc(void *ctx, uint32_t tgid, uint64_t ts_ns, unsigned int method, uint64_t addr, uint64_t bytes,
			 uint16_t by)
{
	(void)ctx;
	(void)tgid;
	(void)ts_ns;
	(void)method;
	(void)addr;
	(void)bytes;
	(void)by;
	return ++told;
}

static void on_free(void *ctx, uint64_t seq, uint64_t ts_ns, uint16_t by)
{
	(void)ctx;
	(void)ts_ns;
	(void)by;
	assert_true(seq && seq <= told);
	freed++;
}

static void on_undo(void *ctx, uint64_t seq, uint64_t ts_ns)
{
	(void)ctx;
	(void)ts_ns;
	assert_true(seq && seq <= told);
	freed++;
}

static const struct ttmon_tt_ops told_ops = { .alloc = on_alloc, .free = on_free, .undo = on_undo };

/* One process's life: every kind of record, by layout and mode. */
static void life(struct ttmon_tt *t, uint32_t tgid, enum ttmon_tt_layout layout, bool degraded, uint64_t ts)
{
	struct feed_buf m = feed_mesh_buf(0x100000, 0, 100), odd = feed_buf(0x200000, 0, 1);

	feed_proc(t, tgid, ts, ts, TTMON_PROC_FORK);
	for (unsigned int d = 0; d < 4; d++)
		feed_dev_new(t, tgid, ts, d, d);
	for (unsigned int i = 0; i < 40; i++) {
		struct feed_buf b = feed_buf(0x1000 * (i + 1), i % 6, 10 + i), e;

		b.layout = layout;
		b.status = layout == TTMON_TT_LAYOUT_E1 ? 2 : 1;
		b.allocator = ALLOCATOR(i % 3);
		b.slot = degraded;
		e = b;
		e.status = 0;
		e.addr = 0;
		feed_buffer_by(t, tgid, tgid + i % 5, ts + i, FN_ENTER, &e);
		if (degraded && i % 7 == 6)
			feed_buffer_by(t, tgid, tgid + i % 5, ts + i, FN_DTOR, &e);
		if (!degraded)
			feed_buffer_by(t, tgid, tgid + i % 5, ts + i, FN_ALLOCATED, &b);
		feed_cb(t, tgid, ts + i, TTMON_TT_DEV_DEVICE, DEV(i % 6), 1 + i, 0x100, 64, 0);
		if (i % 3 == 0)
			feed_buffer(t, tgid, ts + i, FN_FREEING, &b);
	}
	feed_buffer(t, tgid, ts + 50, FN_ALLOCATED, &m);
	feed_shadows(t, tgid, ts + 51, &m, 0, 9);
	m.at += 0x1000;
	m.dev = MESH(1);
	feed_buffer(t, tgid, ts + 52, FN_ALLOCATED, &m);
	feed_mesh(t, tgid, ts + 53, 1, 2, 12);
	m.at += 0x1000;
	m.dev = MESH(2);
	feed_buffer(t, tgid, ts + 54, FN_ALLOCATED, &m);
	ttmon_tt_tick(t, ts + 60 * MS);
	feed_place(t, tgid, ts, 0, 1, 0);
	feed_place(t, tgid, ts, 1, 2, 0);
	ttmon_tt_tick(t, ts + 160 * MS);
	CALL(t, tgid, ts + 170 * MS, FN_DEV_END, TTMON_TT_DEV_DEVICE, DEV(1));
	CALL(t, tgid, ts + 170 * MS, FN_BULK, 0, ALLOCATOR(1));
	odd.type = 77;
	feed_buffer(t, tgid, ts + 171 * MS, FN_ALLOCATED, &odd);
	ttmon_tt_lost(t);
}

/* Returns false if it could not even be made. kept: all is there that should be. */
static bool run(bool *kept)
{
	struct ttmon_tt_cfg cfg = { .max_buffers = 1000 };
	struct ttmon_tt *t = NULL;
	struct ttmon_tt_want wants[8];
	struct ttmon_tt_view v;
	uint64_t allocs = 0;
	bool flagged = false;

	told = freed = 0;
	if (ttmon_tt_new(&cfg, &told_ops, NULL, &t) < 0)
		return false;
	feed_clock(t, 1);
	feed_object(t, 1, 1, TTMON_TT_HAS_FALLBACK);
	feed_chip(t, 1);
	feed_chip(t, 2);
	for (uint32_t p = 0; p < 6; p++) {
		life(t, 10 + 10 * p, TTMON_TT_LAYOUT_E1 + p % 3, p >= 3, (1 + p) * SEC);
		ttmon_tt_wants(t, wants, 8);
		if (p % 2)
			feed_exit(t, 10 + 10 * p, (1 + p) * SEC + 200 * MS);
	}
	feed_proc(t, 10, 8 * SEC, SEC, TTMON_PROC_EXEC);
	ttmon_tt_finish(t, 9 * SEC);
	if (ttmon_tt_snapshot(t, &v) == 0) {
		assert_true(v.nr_procs <= 6);
		for (size_t i = 0; i < v.nr_uses; i++) {
			const struct ttmon_tt_use *u = &v.uses[i];

			assert_true(u->buffers < 100 && u->allocs < 200 && u->frees <= u->allocs);
			for (unsigned int y = 0; y < TTMON_TT_TYPES; y++)
				assert_true(u->bytes[y] <= u->peak[y] && u->peak[y] < MIB);
			allocs += u->allocs;
		}
		for (size_t i = 0; i < v.nr_chips; i++)
			for (unsigned int y = 0; y < TTMON_TT_TYPES; y++)
				assert_true(v.chips[i].bytes[y] <= v.chips[i].peak[y] && v.chips[i].peak[y] < MIB);
		for (size_t i = 0; i < v.nr_procs; i++)
			flagged |= (v.procs[i].flags & (TTMON_TT_F_LIMIT | TTMON_TT_F_UNCALIBRATED)) ||
				   v.procs[i].refused > 1;
		*kept = allocs >= 600;
		assert_true(*kept || flagged || v.nr_procs < 6 || fail_at >= 0);
		ttmon_tt_view_fini(&v);
	} else {
		*kept = false;
	}
	for (uint32_t p = 0; p < 6; p++)
		feed_exit(t, 10 + 10 * p, 10 * SEC);
	assert_int_equal(told, freed);
	ttmon_tt_free(t);
	return true;
}

static void each_allocation_fails_in_turn(void **state)
{
	bool kept = false;
	long all;

	(void)state;
	asked = 0;
	assert_true(run(&kept));
	assert_true(kept);
	all = asked;
	assert_true(all > 100);
	for (fail_at = 0; fail_at < all; fail_at++) {
		asked = 0;
		run(&kept);
	}
	fail_at = -1;
}

static void memory_runs_out_for_good(void **state)
{
	bool kept = false;
	long all;

	(void)state;
	fail_at = -1;
	asked = 0;
	assert_true(run(&kept));
	all = asked;
	fail_on = true;
	for (fail_at = 0; fail_at < all; fail_at++) {
		asked = 0;
		run(&kept);
	}
	fail_on = false;
	fail_at = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_fails_in_turn),
		cmocka_unit_test(memory_runs_out_for_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
