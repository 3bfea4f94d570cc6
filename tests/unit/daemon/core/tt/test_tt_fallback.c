// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_tt_fallback.c: how layouts are distinguished, libraries whose primary pair never fires, and
 * when spare probes may be removed.
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

static struct feed_buf as(struct feed_buf b, enum ttmon_tt_layout layout)
{
	b.layout = layout;
	b.status = layout == TTMON_TT_LAYOUT_E1 ? 2 : 1;
	return b;
}

/* The state of a Buffer when its allocation is entered. */
static struct feed_buf early(struct feed_buf b)
{
	b.status = 0;
	b.addr = 0;
	return b;
}

/* ---- layouts ---- */

static void every_generation_is_told(void **state)
{
	static const char *const names[] = { NULL, "E0", "E1", "E2", "E4" };

	(void)state;
	for (enum ttmon_tt_layout l = TTMON_TT_LAYOUT_E0; l < TTMON_TT_LAYOUTS; l++)
		for (int bare = 0; bare < 2; bare++) { /* E0's devices have no vtable: known if seen constructed */
			struct feed_buf a = as(feed_buf(0x1000, 0, 100), l), b = as(feed_buf(0x2000, 0, 10), l);
			struct ttmon_tt *t;

			if (bare && l == TTMON_TT_LAYOUT_E4)
				continue;
			t = started();
			a.no_vtable = b.no_vtable = bare;
			b.type = 3;
			feed_dev_new(t, P, 15, 0, 0);
			feed_buffer(t, P, 20, FN_ALLOCATED, &a);
			feed_buffer(t, P, 21, FN_ALLOCATED, &b);
			assert_string_equal(feed_process(t, P).layout, names[l]);
			assert_int_equal(feed_dram(t, P, 0), 100);
			assert_int_equal(feed_bytes(t, P, 0, TTMON_TT_TYPE_L1_SMALL), 10);
			feed_buffer(t, P, 22, FN_FREEING, &a);
			assert_int_equal(feed_dram(t, P, 0), 0);
			feed_create(t, P, 23, &a);
			feed_buffer(t, P, 24, FN_ALLOCATED, &a);
			assert_true(strstr(feed_process(t, P).layout, "checked") != NULL);
			assert_int_equal(feed_process(t, P).refused, 0);
			assert_int_equal(feed_process(t, P).flags, 0);
			ttmon_tt_free(t);
		}
}

static void a_layout_waits_for_two_and_nothing_is_lost(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf a = as(feed_buf(0x1000, 0, 100), TTMON_TT_LAYOUT_E1);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &a);
	assert_int_equal(feed_dram(t, P, 0), 0);
	assert_int_equal(feed_process(t, P).refused, 0);
	feed_buffer(t, P, 21, FN_FREEING, &a);
	assert_int_equal(feed_dram(t, P, 0), 0);
	assert_int_equal(feed_use(t, P, 0).peak[0], 100);
	assert_int_equal(feed_use(t, P, 0).allocs, 1);
	ttmon_tt_free(t);
	/* One record that agrees with the arguments of Buffer::create is enough, and so are 50 ms. */
	t = started();
	feed_create(t, P, 19, &a);
	feed_buffer(t, P, 20, FN_ALLOCATED, &a);
	assert_int_equal(feed_dram(t, P, 0), 100);
	ttmon_tt_free(t);
	t = started();
	feed_buffer(t, P, 20, FN_ALLOCATED, &a);
	assert_true(ttmon_tt_tick(t, 19 + 50 * MS)); /* undecided records wait */
	assert_int_equal(feed_dram(t, P, 0), 0);
	assert_false(ttmon_tt_tick(t, 20 + 50 * MS));
	assert_int_equal(feed_dram(t, P, 0), 100);
	ttmon_tt_free(t);
	/* The end of the process settles it too. */
	t = started();
	feed_buffer(t, P, 20, FN_ALLOCATED, &a);
	feed_exit(t, P, 30);
	assert_int_equal(feed_use(t, P, 0).allocs, 1);
	assert_int_equal(feed_use(t, P, 0).frees, 1);
	assert_int_equal(feed_use(t, P, 0).peak[0], 100);
	ttmon_tt_free(t);
}

static void nonsense_publishes_nothing(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf good = feed_buf(0x1000, 0, 100), bad = feed_buf(0x2000, 0, 100);
	struct ttmon_tt_view v;

	(void)state;
	bad.type = 17;
	feed_buffer(t, P, 20, FN_ALLOCATED, &good);
	for (uint64_t i = 0; i < 3; i++)
		feed_buffer(t, P, 21 + i, FN_ALLOCATED, &bad);
	assert_int_equal(feed_dram(t, P, 0), 100);
	assert_int_equal(feed_process(t, P).refused, 3);
	feed_buffer(t, P, 30, FN_ALLOCATED, &bad);
	assert_true(feed_process(t, P).flags & TTMON_TT_F_UNCALIBRATED);
	assert_string_equal(feed_process(t, P).layout, "numbers that make no sense");
	feed_buffer(t, P, 31, FN_ALLOCATED, &good);
	feed_cb(t, P, 31, TTMON_TT_DEV_DEVICE, DEV(0), 8, 0x1000, 100, 0);
	assert_int_equal(ttmon_tt_snapshot(t, &v), 0);
	assert_int_equal(v.nr_uses, 0);
	ttmon_tt_view_fini(&v);
	/* Another program may use the right layout. */
	feed_proc(t, P, 40, 5, TTMON_PROC_EXEC);
	feed_buffer(t, P, 41, FN_ALLOCATED, &good);
	assert_int_equal(feed_dram(t, P, 0), 100);
	assert_int_equal(feed_process(t, P).flags, 0);
	ttmon_tt_free(t);
}

static void few_bad_ones_are_refused_alone(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf b;

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		b = feed_buf(0x1000 * (i + 1), 0, 1);
		if (i % 4 == 3)
			b.size = TTMON_TT_SIZE_MAX + 1 + i;
		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &b);
	}
	assert_int_equal(feed_dram(t, P, 0), 75);
	assert_int_equal(feed_process(t, P).refused, 25);
	assert_int_equal(feed_process(t, P).flags, 0);
	ttmon_tt_free(t);
}

static void no_device_is_known(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf b = as(feed_buf(0x1000, 0, 100), TTMON_TT_LAYOUT_E0);

	(void)state;
	b.no_vtable = true;
	for (uint64_t i = 0; i < 4; i++)
		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &b);
	assert_true(feed_process(t, P).flags & TTMON_TT_F_UNCALIBRATED);
	assert_string_equal(feed_process(t, P).layout, "no vtable matched");
	ttmon_tt_free(t);
}

static void neither_layout_fits(void **state)
{
	struct ttmon_tt *t = started();
	struct ttmon_ev_tt_buffer ev = { .h = feed_head(TTMON_EV_TT_BUFFER, P, P, 20),
					 .fn = FN_ALLOCATED,
					 .device = DEV(0),
					 .base = TTMON_TT_BASE_0,
					 .dev_kind = TTMON_TT_DEV_DEVICE };

	(void)state;
	memset(ev.w, 0xff, sizeof(ev.w));
	for (uint64_t i = 1; i <= 10; i++) {
		ev.buffer = 0x1000 * i;
		FEED(t, ev);
	}
	assert_int_equal(feed_process(t, P).refused, 0);
	ttmon_tt_tick(t, 20 + 50 * MS);
	assert_true(feed_process(t, P).flags & TTMON_TT_F_UNCALIBRATED);
	assert_string_equal(feed_process(t, P).layout, "no layout fits");
	ttmon_tt_free(t);
	/* More than 64 do not wait. */
	t = started();
	for (uint64_t i = 1; i <= 64; i++) {
		ev.buffer = 0x1000 * i;
		FEED(t, ev);
	}
	assert_true(feed_process(t, P).flags & TTMON_TT_F_UNCALIBRATED);
	ttmon_tt_free(t);
}

static void sizes_are_held_against_create(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf b = feed_buf(0x1000, 0, 100), said = b;

	(void)state;
	said.size = 200;
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(feed_process(t, P).flags, 0);
		feed_create(t, P, 20 + 10 * i, &said);
		feed_buffer(t, P, 21 + 10 * i, FN_ALLOCATED, &b);
		feed_buffer(t, P, 22 + 10 * i, FN_FREEING, &b);
	}
	assert_true(feed_process(t, P).flags & TTMON_TT_F_UNCALIBRATED);
	assert_string_equal(feed_process(t, P).layout, "sizes differ from what Buffer::create was given");
	ttmon_tt_free(t);
	/* From another thread, or for another device: no contradiction. */
	t = started();
	for (uint64_t i = 0; i < 10; i++) {
		feed_create(t, P, 20 + 10 * i, &said);
		feed_buffer_by(t, P, P + 1, 21 + 10 * i, FN_ALLOCATED, &b);
	}
	assert_int_equal(feed_process(t, P).flags, 0);
	ttmon_tt_free(t);
}

/* ---- the primary never fires ---- */

static void feed_degraded_life(struct ttmon_tt *t, uint64_t ts, const struct feed_buf *b, bool inner, bool end)
{
	struct feed_buf e = early(*b), done = *b;

	feed_buffer(t, P, ts, FN_ENTER, &e);
	if (inner)
		feed_buffer(t, P, ts + 1, FN_INNER, &e);
	if (!end)
		return;
	feed_buffer(t, P, ts + 2, FN_DEALLOC, b);
	feed_buffer(t, P, ts + 3, FN_LEAVE, b);
	feed_buffer(t, P, ts + 4, FN_TAKE_BACK, b);
	done.status = b->layout == TTMON_TT_LAYOUT_E1 ? 3 : 2;
	feed_buffer(t, P, ts + 5, FN_DTOR, &done);
}

static void without_the_primary_the_inner_functions_count(void **state)
{
	static const bool inner[] = { false, true };

	(void)state;
	for (size_t how = 0; how < 2; how++)
		for (enum ttmon_tt_layout l = TTMON_TT_LAYOUT_E1; l < TTMON_TT_LAYOUTS; l++) {
			struct ttmon_tt *t = started();

			for (uint64_t i = 0; i < 20; i++) {
				struct feed_buf b = as(feed_buf(0x1000 * (i + 1), 0, 1 + i), l);

				feed_degraded_life(t, 100 * (i + 1), &b, inner[how], i >= 10);
				if (i == 9)
					assert_true(feed_dram(t, P, 0) >= 45); /* the last one may still throw */
			}
			assert_int_equal(feed_dram(t, P, 0), 55);
			assert_int_equal(feed_use(t, P, 0).allocs, 20);
			assert_int_equal(feed_use(t, P, 0).frees, 10);
			assert_int_equal(feed_use(t, P, 0).peak[0], 55 + 20);
			assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_DEGRADED);
			assert_int_equal(feed_process(t, P).unknown_frees, 0);
			assert_int_equal(feed_process(t, P).failed, 0);
			assert_int_equal(ttmon_tt_get_spare(t, 0), TTMON_TT_SPARE_KEEP);
			ttmon_tt_free(t);
		}
}

static void one_allocation_is_decided_by_time(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf b = feed_buf(0x1000, 0, 7);

	(void)state;
	feed_degraded_life(t, 100, &b, true, false);
	ttmon_tt_tick(t, 40 * MS);
	assert_int_equal(feed_dram(t, P, 0), 0);
	assert_int_equal(feed_process(t, P).flags, 0);
	ttmon_tt_tick(t, 51 * MS);
	assert_int_equal(feed_dram(t, P, 0), 7);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_DEGRADED);
	ttmon_tt_free(t);
}

static void a_library_without_a_primary_is_degraded_at_once(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf a = feed_buf(0x1000, 0, 7), b = feed_buf(0x2000, 0, 8);

	(void)state;
	feed_object(t, 0, 1, TTMON_TT_HAS_FALLBACK);
	feed_degraded_life(t, 100, &a, false, false);
	feed_degraded_life(t, 200, &b, false, false);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_DEGRADED);
	assert_int_equal(feed_dram(t, P, 0), 7);
	ttmon_tt_tick(t, 51 * MS);
	assert_int_equal(feed_dram(t, P, 0), 15);
	ttmon_tt_free(t);
}

static void what_throws_is_taken_back(void **state)
{
	(void)state;
	for (enum ttmon_tt_layout l = TTMON_TT_LAYOUT_E1; l < TTMON_TT_LAYOUTS; l++)
		for (int late = 0; late < 2; late++) {
			struct ttmon_tt *t = started();
			struct feed_buf a = as(feed_buf(0x1000, 0, 7), l), b = as(feed_buf(0x2000, 0, 1000), l),
					e = early(b);

			feed_object(t, 0, 1, TTMON_TT_HAS_FALLBACK);
			feed_degraded_life(t, 100, &a, true, false);
			feed_degraded_life(t, 200, &b, true, false);
			if (late) {
				ttmon_tt_tick(t, 60 * MS);
				assert_int_equal(feed_dram(t, P, 0), 1007);
			}
			e.status = l == TTMON_TT_LAYOUT_E1 ? 1 : 0; /* failed, or still requested */
			feed_buffer(t, P, 70 * MS, FN_DTOR, &e);
			feed_buffer(t, P, 70 * MS, FN_DEALLOC, &e);
			ttmon_tt_tick(t, 200 * MS);
			assert_int_equal(feed_dram(t, P, 0), 7);
			assert_int_equal(feed_process(t, P).failed, 1);
			assert_int_equal(feed_use(t, P, 0).allocs, 1);
			assert_int_equal(feed_use(t, P, 0).frees, 0);
			if (!late)
				assert_int_equal(feed_use(t, P, 0).peak[0], 7);
			ttmon_tt_free(t);
		}
}

/* The very first allocation throws, and then the primary fires. */
static void a_throw_is_not_an_inlined_primary(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf a = feed_buf(0x1000, 0, 7), b = feed_buf(0x2000, 0, 9), e = early(a);

	(void)state;
	for (uint64_t i = 0; i < 5; i++) {
		feed_buffer(t, P, 100 + 10 * i, FN_ENTER, &e);
		feed_buffer(t, P, 101 + 10 * i, FN_INNER, &e);
		feed_buffer(t, P, 102 + 10 * i, FN_DTOR, &e);
	}
	assert_int_equal(feed_process(t, P).flags, 0);
	/* A program is not degraded either if it does nothing else for a long time. */
	ttmon_tt_tick(t, 200 * MS);
	assert_int_equal(feed_process(t, P).flags, 0);
	for (uint64_t i = 0; i < 100; i++) {
		e = early(feed_buf(0x1000 * (i + 1), 0, 7));
		feed_buffer(t, P, 201 * MS + 10 * i, FN_ENTER, &e);
		feed_buffer(t, P, 201 * MS + 10 * i, FN_INNER, &e);
		feed_buffer(t, P, 201 * MS + 10 * i, FN_LEAVE, &e);
	}
	ttmon_tt_tick(t, 300 * MS);
	assert_int_equal(feed_process(t, P).flags, 0);
	assert_int_equal(feed_process(t, P).unknown_frees, 0);
	e = early(b);
	feed_buffer(t, P, 301 * MS, FN_ENTER, &e);
	feed_buffer(t, P, 301 * MS, FN_INNER, &e);
	feed_buffer(t, P, 301 * MS, FN_ALLOCATED, &b);
	assert_int_equal(feed_process(t, P).flags, 0);
	assert_int_equal(feed_dram(t, P, 0), 9);
	assert_int_equal(feed_use(t, P, 0).allocs, 1);
	ttmon_tt_free(t);
}

static void the_primary_comes_late(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf b[8];

	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		b[i] = feed_buf(0x1000 * (i + 1), 0, 1ULL << i);
	for (uint64_t i = 0; i < 6; i++)
		feed_degraded_life(t, 100 * (i + 1), &b[i], true, false);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_DEGRADED);
	/* For a Buffer that counts already, and in the middle of another allocation. */
	feed_buffer(t, P, 701, FN_ALLOCATED, &b[5]);
	assert_int_equal(feed_process(t, P).flags, 0);
	assert_int_equal(feed_dram(t, P, 0), 0x3f);
	feed_degraded_life(t, 800, &b[6], true, false);
	feed_buffer(t, P, 802, FN_ALLOCATED, &b[6]);
	assert_int_equal(feed_dram(t, P, 0), 0x7f);
	assert_int_equal(feed_use(t, P, 0).allocs, 7);
	feed_degraded_life(t, 900, &b[7], true, false);
	ttmon_tt_tick(t, 100 * MS);
	assert_int_equal(feed_dram(t, P, 0), 0x7f); /* it threw, or ALLOCATED would have come */
	for (uint64_t i = 0; i < 7; i++)
		feed_buffer(t, P, 1000 + i, FN_LEAVE, &b[i]);
	assert_int_equal(feed_dram(t, P, 0), 0);
	assert_int_equal(feed_process(t, P).unknown_frees, 0);
	ttmon_tt_free(t);
}

static void captures_take_nothing_degraded_either(void **state)
{
	(void)state;
	for (int inner = 0; inner < 2; inner++) {
		struct ttmon_tt *t = started();
		struct feed_buf a = feed_buf(0x1000, 0, 7), h = feed_buf(0x2000, 0, 1000), c = feed_buf(0x3000, 0, 5);

		feed_object(t, 0, 1, TTMON_TT_HAS_FALLBACK);
		feed_degraded_life(t, 100, &a, inner, false);
		feed_degraded_life(t, 200, &h, false, false); /* the hook: the allocator is never called */
		feed_degraded_life(t, 300, &c, inner, false);
		h.addr = 0;
		h.hooked = 1;
		feed_buffer(t, P, 400, FN_LEAVE, &h);
		ttmon_tt_tick(t, 100 * MS);
		assert_int_equal(feed_dram(t, P, 0), 12);
		assert_int_equal(feed_use(t, P, 0).allocs, 2);
		assert_int_equal(feed_process(t, P).hooked, !inner);
		assert_int_equal(feed_process(t, P).failed, 0);
		ttmon_tt_free(t);
	}
}

/*
 * No call of the allocator's function was seen yet: the first allocation that reaches it shows whether
 * it is called at all.
 */
static void a_capture_before_all_else_is_none_once_the_allocator_was_called(void **state)
{
	(void)state;
	for (int late = 0; late < 3; late++) { /* held with what follows; undecided for 50 ms; counted before */
		struct ttmon_tt *t = started();
		struct feed_buf h = feed_buf(0x1000, 2, 88864), a = feed_buf(0x2000, 3, 91968),
				b = feed_buf(0x3000, 4, 96256);

		h.type = 3;
		h.addr = 0;
		h.hooked = 1;
		if (late)
			feed_object(t, 0, 1, TTMON_TT_HAS_FALLBACK);
		feed_degraded_life(t, 100, &h, false, false);
		if (late == 2) {
			ttmon_tt_tick(t, 60 * MS);
			assert_int_equal(feed_bytes(t, P, 2, TTMON_TT_TYPE_L1_SMALL), 88864);
		}
		feed_degraded_life(t, 61 * MS, &a, true, false);
		feed_degraded_life(t, 62 * MS, &b, true, true);
		ttmon_tt_tick(t, 200 * MS);
		assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_DEGRADED);
		assert_int_equal(feed_bytes(t, P, 2, TTMON_TT_TYPE_L1_SMALL), 0);
		assert_int_equal(feed_dram(t, P, 3), 91968);
		assert_int_equal(feed_dram(t, P, 4), 0);
		if (late)
			assert_int_equal(feed_process(t, P).hooked, 1);
		feed_buffer(t, P, 210 * MS, FN_LEAVE, &h);
		h.status = 2;
		feed_buffer(t, P, 211 * MS, FN_DTOR, &h);
		assert_int_equal(feed_process(t, P).unknown_frees, 0);
		assert_int_equal(feed_process(t, P).failed, 0);
		ttmon_tt_free(t);
	}
}

/*
 * One thread is between allocate_impl and the allocator when an allocation of another thread reaches
 * the allocator first.
 */
static void what_is_still_on_its_way_to_the_allocator_is_no_capture(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct ttmon_tt *t = started();
		struct feed_buf a = feed_buf(0x1000, 0, 7), b = feed_buf(0x2000, 0, 9), e = early(a), f = early(b);

		feed_object(t, 0, 1, TTMON_TT_HAS_FALLBACK);
		feed_buffer_by(t, P, 1, 100, FN_ENTER, &e);
		if (late)
			ttmon_tt_tick(t, 60 * MS);
		feed_buffer_by(t, P, 2, 61 * MS, FN_ENTER, &f);
		feed_buffer_by(t, P, 2, 61 * MS, FN_INNER, &f);
		feed_buffer_by(t, P, 1, 62 * MS, FN_INNER, &e);
		ttmon_tt_tick(t, 200 * MS);
		assert_int_equal(feed_dram(t, P, 0), 16);
		assert_int_equal(feed_use(t, P, 0).buffers, 2);
		feed_buffer_by(t, P, 1, 210 * MS, FN_LEAVE, &a);
		feed_buffer_by(t, P, 2, 210 * MS, FN_LEAVE, &b);
		assert_int_equal(feed_dram(t, P, 0), 0);
		assert_int_equal(feed_process(t, P).unknown_frees, 0);
		ttmon_tt_free(t);
	}
}

static void threads_do_not_confirm_each_other(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf a = feed_buf(0x1000, 0, 7), b = feed_buf(0x2000, 0, 9), e = early(a), f = early(b);

	(void)state;
	feed_object(t, 0, 1, TTMON_TT_HAS_FALLBACK);
	feed_buffer_by(t, P, 1, 100, FN_ENTER, &e);
	feed_buffer_by(t, P, 2, 101, FN_ENTER, &f);
	feed_buffer_by(t, P, 2, 102, FN_INNER, &f);
	assert_int_equal(feed_dram(t, P, 0), 0);
	/* Another thread frees it, so it was allocated. */
	feed_buffer_by(t, P, 3, 103, FN_LEAVE, &a);
	assert_int_equal(feed_use(t, P, 0).allocs, 1);
	assert_int_equal(feed_use(t, P, 0).frees, 1);
	CALL(t, P, 104, FN_DEV_NEW, 0, DEV(5), 5);
	feed_call(t, P, 2, 105, FN_BULK, 0, (const uint64_t[6]){ 0x1 });
	assert_int_equal(feed_dram(t, P, 0), 9);
	ttmon_tt_free(t);
}

static void statuses_are_numbered_as_the_evidence_says(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf a = feed_buf(0x1000, 0, 7), b = feed_buf(0x2000, 0, 9), e;

	(void)state;
	/* E2 with four states: 2 means allocated, 1 means failed. */
	feed_object(t, 0, 1, TTMON_TT_HAS_FALLBACK);
	a.status = b.status = 2;
	feed_degraded_life(t, 100, &a, true, true);
	e = early(b);
	feed_buffer(t, P, 200, FN_ENTER, &e);
	feed_buffer(t, P, 200, FN_INNER, &e);
	e.status = 1;
	feed_buffer(t, P, 201, FN_DTOR, &e);
	assert_int_equal(feed_process(t, P).failed, 1);
	assert_int_equal(feed_use(t, P, 0).allocs, 1);
	assert_int_equal(feed_use(t, P, 0).frees, 1);
	ttmon_tt_free(t);
}

/* ---- spare probes ---- */

static void spare_probes_go_once_the_primary_has_proven_itself(void **state)
{
	struct ttmon_tt *t = started();

	(void)state;
	for (uint64_t i = 0; i < 16; i++) {
		struct feed_buf b = feed_buf(0x1000 * (i + 1), 0, 1);

		ttmon_tt_tick(t, 20 + i);
		assert_int_equal(ttmon_tt_get_spare(t, 0), TTMON_TT_SPARE_KEEP);
		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &b);
		ttmon_tt_tick(t, 20 + i);
	}
	assert_int_equal(ttmon_tt_get_spare(t, 0), TTMON_TT_SPARE_KEEP);
	{
		struct feed_buf b = feed_buf(0x1000, 0, 1);

		feed_buffer(t, P, 50, FN_LEAVE, &b);
		feed_buffer(t, P, 51, FN_FREEING, &b);
	}
	ttmon_tt_tick(t, 52);
	assert_int_equal(ttmon_tt_get_spare(t, 0), TTMON_TT_SPARE_DROP);
	assert_int_equal(ttmon_tt_get_spare(t, 1), TTMON_TT_SPARE_KEEP);
	assert_int_equal(ttmon_tt_get_spare(t, 60000), TTMON_TT_SPARE_KEEP);
	/* A mesh that stays unknown requires them again; the answer about it removes them again. */
	{
		struct feed_buf m = feed_mesh_buf(0x90000, 0, 1);

		feed_buffer(t, P, 1 * MS, FN_ALLOCATED, &m);
		ttmon_tt_tick(t, 40 * MS);
		assert_int_equal(ttmon_tt_get_spare(t, 0), TTMON_TT_SPARE_DROP);
		ttmon_tt_tick(t, 51 * MS);
		assert_int_equal(ttmon_tt_get_spare(t, 0), TTMON_TT_SPARE_KEEP);
		feed_mesh(t, P, 52 * MS, 0, 0, 2);
		ttmon_tt_tick(t, 53 * MS);
		assert_int_equal(ttmon_tt_get_spare(t, 0), TTMON_TT_SPARE_DROP);
	}
	/* Another library in the same slot starts from the beginning. */
	feed_object(t, 0, 1, TTMON_TT_HAS_PRIMARY);
	feed_object(t, 0, 2, TTMON_TT_HAS_PRIMARY);
	ttmon_tt_tick(t, 54 * MS);
	assert_int_equal(ttmon_tt_get_spare(t, 0), TTMON_TT_SPARE_KEEP);
	ttmon_tt_free(t);
}

static void a_library_that_needs_them_keeps_them(void **state)
{
	struct ttmon_tt *t = started();

	(void)state;
	for (uint64_t i = 0; i < 20; i++) {
		struct feed_buf b = feed_buf(0x1000 * (i + 1), 0, 1);

		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &b);
		feed_buffer(t, P, 20 + i, FN_FREEING, &b);
	}
	ttmon_tt_tick(t, 50);
	assert_int_equal(ttmon_tt_get_spare(t, 0), TTMON_TT_SPARE_DROP);
	/* In one process of it the primary never fires. */
	for (uint64_t i = 0; i < 6; i++) {
		struct feed_buf b = feed_buf(0x1000 * (i + 1), 0, 1), e = early(b);

		feed_buffer(t, P + 1, 60 + i, FN_ENTER, &e);
		feed_buffer(t, P + 1, 60 + i, FN_INNER, &e);
	}
	ttmon_tt_tick(t, 70);
	assert_int_equal(feed_process(t, P + 1).flags & TTMON_TT_F_DEGRADED, TTMON_TT_F_DEGRADED);
	assert_int_equal(feed_process(t, P).flags, 0);
	assert_int_equal(ttmon_tt_get_spare(t, 0), TTMON_TT_SPARE_KEEP);
	feed_exit(t, P + 1, 80);
	ttmon_tt_tick(t, SEC);
	assert_int_equal(ttmon_tt_get_spare(t, 0), TTMON_TT_SPARE_KEEP);
	ttmon_tt_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_generation_is_told),
		cmocka_unit_test(a_layout_waits_for_two_and_nothing_is_lost),
		cmocka_unit_test(nonsense_publishes_nothing),
		cmocka_unit_test(few_bad_ones_are_refused_alone),
		cmocka_unit_test(no_device_is_known),
		cmocka_unit_test(neither_layout_fits),
		cmocka_unit_test(sizes_are_held_against_create),
		cmocka_unit_test(without_the_primary_the_inner_functions_count),
		cmocka_unit_test(one_allocation_is_decided_by_time),
		cmocka_unit_test(a_library_without_a_primary_is_degraded_at_once),
		cmocka_unit_test(what_throws_is_taken_back),
		cmocka_unit_test(a_throw_is_not_an_inlined_primary),
		cmocka_unit_test(the_primary_comes_late),
		cmocka_unit_test(captures_take_nothing_degraded_either),
		cmocka_unit_test(a_capture_before_all_else_is_none_once_the_allocator_was_called),
		cmocka_unit_test(what_is_still_on_its_way_to_the_allocator_is_no_capture),
		cmocka_unit_test(threads_do_not_confirm_each_other),
		cmocka_unit_test(statuses_are_numbered_as_the_evidence_says),
		cmocka_unit_test(a_library_that_needs_them_keeps_them),
		cmocka_unit_test(spare_probes_go_once_the_primary_has_proven_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
