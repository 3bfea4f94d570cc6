// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_timeline.c: which runs, dispatches and calls are kept, and which are dropped when it is full.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/stream/timeline.h"
#include "tests/unit/feed/apply.h"

static struct ttmon_timeline *make(uint64_t max, bool ring)
{
	const struct ttmon_timeline_cfg cfg = { .max_items = max, .ring = ring };
	struct ttmon_timeline *t = NULL;

	assert_int_equal(ttmon_timeline_new(&cfg, &t), 0);
	return t;
}

static void runs(struct ttmon_timeline *t, uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < from + n; i++)
		ttmon_timeline_run(t, &(struct ttmon_tt_run){ .program = i, .start_ns = 10 * i, .end_ns = 10 * i + 5 });
}

static void test_keeps_in_order(void **state)
{
	struct ttmon_timeline *t = make(1000, false);

	(void)state;
	assert_int_equal(ttmon_timeline_runs(t), 0);
	assert_null(ttmon_timeline_get_run(t, 0));
	runs(t, 0, 700);
	for (uint32_t i = 0; i < 3; i++)
		ttmon_timeline_dispatched(t, &(struct ttmon_tt_dispatched){ .ts_ns = i, .count = i + 1 });
	assert_int_equal(ttmon_timeline_runs(t), 700);
	assert_int_equal(ttmon_timeline_dispatches(t), 3);
	assert_int_equal(ttmon_timeline_calls(t), 0);
	for (uint32_t i = 0; i < 700; i++) {
		assert_int_equal(ttmon_timeline_get_run(t, i)->program, i);
		assert_int_equal(ttmon_timeline_get_run(t, i)->end_ns, 10 * i + 5);
	}
	assert_int_equal(ttmon_timeline_get_dispatched(t, 2)->count, 3);
	assert_null(ttmon_timeline_get_dispatched(t, 3));
	assert_int_equal(ttmon_timeline_dropped(t), 0);
	ttmon_timeline_free(t);
}

static void test_full(void **state)
{
	struct ttmon_timeline *t = make(300, false);

	(void)state;
	runs(t, 0, 310);
	assert_int_equal(ttmon_timeline_runs(t), 300);
	assert_int_equal(ttmon_timeline_get_run(t, 299)->program, 299);
	assert_int_equal(ttmon_timeline_dropped(t), 10);
	/* The other lists have room of their own. */
	ttmon_timeline_dispatched(t, &(struct ttmon_tt_dispatched){ .count = 1 });
	assert_int_equal(ttmon_timeline_dispatches(t), 1);
	assert_int_equal(ttmon_timeline_dropped(t), 10);
	ttmon_timeline_free(t);
}

static void test_ring(void **state)
{
	struct ttmon_timeline *t = make(5, true);

	(void)state;
	runs(t, 0, 5);
	assert_int_equal(ttmon_timeline_runs(t), 5);
	runs(t, 5, 1);
	/* The oldest was dropped. */
	assert_int_equal(ttmon_timeline_runs(t), 5);
	assert_int_equal(ttmon_timeline_get_run(t, 0)->program, 1);
	assert_int_equal(ttmon_timeline_get_run(t, 4)->program, 5);
	assert_null(ttmon_timeline_get_run(t, 5));
	assert_int_equal(ttmon_timeline_dropped(t), 1);
	runs(t, 6, 1000);
	assert_int_equal(ttmon_timeline_get_run(t, ttmon_timeline_runs(t) - 1)->program, 1005);
	assert_int_equal(ttmon_timeline_runs(t) + ttmon_timeline_dropped(t), 1006);
	for (size_t i = 1; i < ttmon_timeline_runs(t); i++)
		assert_int_equal(ttmon_timeline_get_run(t, i)->program, ttmon_timeline_get_run(t, i - 1)->program + 1);
	ttmon_timeline_free(t);
}

static void test_one(void **state)
{
	struct ttmon_timeline *t = make(1, true);

	(void)state;
	runs(t, 0, 4);
	assert_int_equal(ttmon_timeline_runs(t), 1);
	assert_int_equal(ttmon_timeline_get_run(t, 0)->program, 3);
	assert_int_equal(ttmon_timeline_dropped(t), 3);
	ttmon_timeline_free(t);
}

/*
 * The number of each run, and the oldest kept run after one that is not kept: every number is reported
 * once, in order, whether it is kept or not.
 */
static void test_numbers(void **state)
{
	(void)state;
	for (int ring = 0; ring < 2; ring++) {
		const struct ttmon_timeline_cfg cfg = { .max_items = 3, .max_runs = 7, .ring = ring };
		struct ttmon_timeline *t = NULL;
		uint64_t first, next, seq = 1;

		assert_int_equal(ttmon_timeline_new(&cfg, &t), 0);
		ttmon_timeline_run_numbers(t, &first, &next);
		assert_int_equal(first, 1);
		assert_int_equal(next, 1);
		assert_null(ttmon_timeline_run_from(t, &seq));
		for (uint32_t n = 1; n < 40; n++) {
			uint64_t kept = MIN(n, 7u), from = ring ? n - kept + 1 : 1;

			runs(t, n, 1);
			ttmon_timeline_run_numbers(t, &first, &next);
			assert_int_equal(first, from);
			assert_int_equal(next, n + 1);
			for (uint64_t at = 0; at < n + 3; at++) {
				uint64_t want = MAX(at, from);
				const struct ttmon_tt_run *run;

				seq = at;
				run = ttmon_timeline_run_from(t, &seq);
				if (want >= from + kept) {
					assert_null(run);
					continue;
				}
				assert_int_equal(seq, want);
				assert_int_equal(run->program, want);
			}
		}
		ttmon_timeline_free(t);
	}
}

/* Rows of slots have room and a count of their own. */
static void test_slots(void **state)
{
	(void)state;
	for (int ring = 0; ring < 2; ring++) {
		struct ttmon_timeline *t = make(4, ring);

		assert_null(ttmon_timeline_get_slot(t, 0));
		runs(t, 0, 4);
		for (uint64_t i = 0; i < 5; i++)
			ttmon_timeline_slot(t, &(struct ttmon_tt_slot_row){ .slot_no = i, .tgid = 7, .busy_ns = i });
		assert_int_equal(ttmon_timeline_slots(t), 4);
		assert_int_equal(ttmon_timeline_get_slot(t, 0)->slot_no, ring ? 1 : 0);
		assert_int_equal(ttmon_timeline_get_slot(t, 1)->busy_ns, ring ? 2 : 1);
		assert_null(ttmon_timeline_get_slot(t, 4));
		assert_int_equal(ttmon_timeline_slots_dropped(t), 1);
		assert_int_equal(ttmon_timeline_dropped(t), 0);
		assert_int_equal(ttmon_timeline_runs(t), 4);
		ttmon_timeline_free(t);
	}
}

static void test_limit_is_checked(void **state)
{
	const struct ttmon_timeline_cfg cfg = { .max_items = UINT64_MAX };
	struct ttmon_timeline *t = (void *)1;

	(void)state;
	assert_int_equal(ttmon_timeline_new(&cfg, &t), -EINVAL);
	assert_ptr_equal(t, (void *)1);
	ttmon_timeline_free(NULL);
}

static void test_calls(void **state)
{
	const struct ttmon_ev_alloc alloc = { .h = { .ts_ns = 20, .kind = TTMON_EV_ALLOC, .tgid = 7, .tid = 8 },
					      .entry_ns = 10,
					      .size = 4096,
					      .fn = 3,
					      .err = 2 };
	const struct ttmon_ev_free gone = { .h = { .ts_ns = 30, .kind = TTMON_EV_FREE, .tgid = 7, .tid = 8 },
					    .entry_ns = 25,
					    .fn = 4 };
	const struct ttmon_ev_copy copy = { .h = { .ts_ns = 40, .kind = TTMON_EV_COPY, .tgid = 7, .tid = 9 },
					    .entry_ns = 40,
					    .bytes = 100,
					    .bits = TTMON_B_UNOBSERVED,
					    .dir = TTMON_DIR_H2D };
	struct ttmon_ev_copy_rect rect = { .h = { .ts_ns = 50, .kind = TTMON_EV_COPY_RECT, .tgid = 7, .tid = 9 },
					   .entry_ns = 45,
					   .width = 10,
					   .rows = 4,
					   .slices = 3,
					   .dir = TTMON_DIR_D2H };
	const struct ttmon_event other = { .ts_ns = 60, .kind = TTMON_EV_EXIT };
	const struct ttmon_timeline_call *c;
	struct ttmon_timeline *t = make(5, false);

	(void)state;
	ttmon_timeline_apply(t, &alloc.h);
	ttmon_timeline_apply(t, &gone.h);
	ttmon_timeline_apply(t, &copy.h);
	ttmon_timeline_apply(t, &rect.h);
	ttmon_timeline_apply(t, &other);
	rect.slices = UINT64_MAX;
	ttmon_timeline_apply(t, &rect.h);
	assert_int_equal(ttmon_timeline_calls(t), 5);
	c = ttmon_timeline_get_call(t, 0);
	assert_int_equal(c->kind, TTMON_EV_ALLOC);
	assert_int_equal(c->tgid, 7);
	assert_int_equal(c->tid, 8);
	assert_int_equal(c->entry_ns, 10);
	assert_int_equal(c->end_ns, 20);
	assert_int_equal(c->bytes, 4096);
	assert_int_equal(c->fn, 3);
	assert_int_equal(c->err, 2);
	c = ttmon_timeline_get_call(t, 1);
	assert_int_equal(c->kind, TTMON_EV_FREE);
	assert_int_equal(c->bytes, 0);
	assert_int_equal(c->entry_ns, 25);
	c = ttmon_timeline_get_call(t, 2);
	assert_int_equal(c->kind, TTMON_EV_COPY);
	assert_int_equal(c->dir, TTMON_DIR_H2D);
	assert_int_equal(c->bits, TTMON_B_UNOBSERVED);
	c = ttmon_timeline_get_call(t, 3);
	assert_int_equal(c->kind, TTMON_EV_COPY);
	assert_int_equal(c->bytes, 120);
	assert_int_equal(c->dir, TTMON_DIR_D2H);
	/* A size that the program reports cannot wrap into a small one. */
	assert_true(ttmon_timeline_get_call(t, 4)->bytes == UINT64_MAX);
	ttmon_timeline_apply(t, &copy.h);
	assert_int_equal(ttmon_timeline_calls(t), 5);
	assert_int_equal(ttmon_timeline_calls_dropped(t), 1);
	assert_int_equal(ttmon_timeline_dropped(t), 0);
	ttmon_timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_in_order), cmocka_unit_test(test_full),
		cmocka_unit_test(test_ring),	       cmocka_unit_test(test_one),
		cmocka_unit_test(test_calls),	       cmocka_unit_test(test_limit_is_checked),
		cmocka_unit_test(test_numbers),	       cmocka_unit_test(test_slots),
	};

	return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
