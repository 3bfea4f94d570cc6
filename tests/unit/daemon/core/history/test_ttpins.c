// SPDX-License-Identifier: GPL-2.0-only
/*
 * Host memory that tt-kmd holds: one record a range however many devices hold it, pages once, ends,
 * failures.
 */
#include "tests/unit/feed/history_feed.h"

#define T    77
#define A    0x7f0000000000ULL
#define PAGE 4096ULL

static struct ttmon_history *h;

static int set_up(void **state)
{
	(void)state;
	h = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	feed_proc(h, T, 10, 5, 1, TTMON_PROC_SEEN);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ttmon_history_free(h);
	return 0;
}

static void feed_file(uint64_t ts, uint32_t op, uint64_t addr, uint64_t size, uint32_t file)
{
	struct ttmon_ev_tt_pin ev = {
		.h = feed_head(TTMON_EV_TT_PIN, T, ts),
		.entry_ns = ts - 1,
		.addr = addr,
		.size = size,
		.op = op,
		.file = file,
	};

	ttmon_history_apply(h, &ev.h, sizeof(ev), false);
}

static void feed_pin(uint64_t ts, uint32_t op, uint64_t addr, uint64_t size, uint32_t ordinal, int32_t err)
{
	struct ttmon_ev_tt_pin ev = {
		.h = feed_head(TTMON_EV_TT_PIN, T, ts),
		.entry_ns = ts - 1,
		.addr = addr,
		.size = size,
		.err = err,
		.ordinal = ordinal,
		.op = op,
	};

	ttmon_history_apply(h, &ev.h, sizeof(ev), false);
}

static const struct ttmon_proc *proc(void)
{
	return ttmon_history_proc(h, 0);
}

static void pages_of_a_range_count_once(void **state)
{
	(void)state;
	feed_pin(100, TTMON_TT_PIN, A, 4 * PAGE, 0, 0);
	feed_pin(101, TTMON_TT_PIN, A, 4 * PAGE, 1, 0);
	assert_int_equal(proc()->pinned_pages, 4);
	assert_int_equal(proc()->pins, 1);
	assert_int_equal(ttmon_history_alloc(h, 0)->method, TTMON_METHOD_REGISTERED);
	feed_pin(102, TTMON_TT_PIN, A + 2 * PAGE, 4 * PAGE, 0, 0);
	assert_int_equal(proc()->pinned_pages, 6);
	feed_pin(110, TTMON_TT_UNPIN, A, 4 * PAGE, 1, 0);
	assert_int_equal(proc()->pinned_pages, 6);
	feed_pin(111, TTMON_TT_UNPIN, A, 4 * PAGE, 0, 0);
	assert_int_equal(proc()->pinned_pages, 4);
	assert_int_equal(ttmon_history_alloc(h, 0)->end, TTMON_END_FREE);
	assert_int_equal(ttmon_history_alloc(h, 0)->free_ns, 110); /* at its entry */
	feed_pin(112, TTMON_TT_UNPIN, A, 4 * PAGE, 0, 0);
	assert_int_equal(proc()->unknown_frees, 1);
	assert_int_equal(proc()->pinned_peak_pages, 6);
}

static void pinned_again_is_pinned_anew(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		feed_pin(100 + 10 * i, TTMON_TT_PIN, A, PAGE, 0, 0);
		assert_int_equal(proc()->pinned_pages, 1);
		feed_pin(105 + 10 * i, TTMON_TT_UNPIN, A, PAGE, 0, 0);
		assert_int_equal(proc()->pinned_pages, 0);
	}
	assert_int_equal(proc()->pins, 3);
	assert_int_equal(proc()->frees, 3);
}

static void another_size_takes_the_place(void **state)
{
	(void)state;
	feed_pin(100, TTMON_TT_PIN, A, PAGE, 0, 0);
	feed_pin(101, TTMON_TT_PIN, A, 8 * PAGE, 1, 0);
	assert_int_equal(proc()->pinned_pages, 8);
	assert_int_equal(ttmon_history_alloc(h, 0)->end, TTMON_END_SUPERSEDED);
	feed_pin(102, TTMON_TT_UNPIN, A, 8 * PAGE, 1, 0);
	assert_int_equal(proc()->pinned_pages, 0);
	assert_int_equal(proc()->pinned_bytes, 0);
}

static void dma_buffers_have_no_address(void **state)
{
	struct ttmon_spot spots[4];

	(void)state;
	feed_pin(100, TTMON_TT_DMA_BUF, 0, 2 * PAGE, 0, 0);
	feed_pin(101, TTMON_TT_DMA_BUF, 0, 3 * PAGE, 0, 0);
	assert_int_equal(proc()->pinned_pages, 5);
	assert_int_equal(proc()->pinned_bytes, 5 * PAGE);
	assert_int_equal(ttmon_history_alloc(h, 1)->method, TTMON_METHOD_TT_DMA);
	ttmon_history_tick(h, 10 * NSEC_PER_SEC);
	/* The device uses it where it is: nothing to be advised. */
	for (size_t i = 0; i < ttmon_history_coldspots(h, spots, ARRAY_SIZE(spots)); i++)
		assert_int_not_equal(spots[i].said.advice, TTMON_ADVICE_UNPIN);
	feed_exit(h, T, 11 * NSEC_PER_SEC);
	assert_int_equal(proc()->pinned_pages, 0);
	assert_int_equal(proc()->pinned_bytes, 0);
	assert_int_equal(ttmon_history_alloc(h, 0)->end, TTMON_END_EXIT);
}

static void a_closed_file_lets_go_of_all_it_held(void **state)
{
	(void)state;
	feed_file(100, TTMON_TT_PIN, A, 4 * PAGE, 1);
	feed_file(101, TTMON_TT_PIN, A, 4 * PAGE, 2);
	feed_file(102, TTMON_TT_PIN, A + 8 * PAGE, PAGE, 1);
	feed_file(103, TTMON_TT_DMA_BUF, 0, 2 * PAGE, 1);
	feed_file(104, TTMON_TT_DMA_BUF, 0, 3 * PAGE, 2);
	assert_int_equal(proc()->pinned_pages, 10);
	feed_file(110, TTMON_TT_CLOSE, 0, 0, 1);
	assert_int_equal(proc()->pinned_pages, 7);
	assert_int_equal(ttmon_history_alloc(h, 0)->end, TTMON_END_LIVE);
	assert_int_equal(ttmon_history_alloc(h, 1)->end, TTMON_END_FREE);
	assert_int_equal(ttmon_history_alloc(h, 2)->end, TTMON_END_FREE);
	assert_int_equal(ttmon_history_alloc(h, 3)->end, TTMON_END_LIVE);
	feed_file(111, TTMON_TT_CLOSE, 0, 0, 1);
	feed_file(112, TTMON_TT_CLOSE, 0, 0, 99);
	assert_int_equal(proc()->pinned_pages, 7);
	feed_file(113, TTMON_TT_UNPIN, A, 4 * PAGE, 2);
	assert_int_equal(proc()->pinned_pages, 3);
	feed_file(114, TTMON_TT_CLOSE, 0, 0, 2);
	assert_int_equal(proc()->pinned_pages, 0);
	assert_int_equal(proc()->frees, 4);
	assert_int_equal(proc()->unknown_frees, 0);
	assert_int_equal(proc()->live, 0);
}

/* Its list stays whole whatever is taken out of its middle. */
static void unpinned_in_any_order(void **state)
{
	const uint64_t n = 101;

	(void)state;
	for (uint64_t i = 0; i < n; i++)
		feed_file(100 + i, TTMON_TT_PIN, A + i * PAGE, PAGE, 1 + (uint32_t)(i & 1));
	for (uint64_t i = 0, at = 0; i < 60; i++, at = (at + 37) % n) {
		feed_file(300 + i, TTMON_TT_UNPIN, A + at * PAGE, PAGE, 2 - (uint32_t)(at & 1)); /* the other file's */
		feed_file(300 + i, TTMON_TT_UNPIN, A + at * PAGE, PAGE, 1 + (uint32_t)(at & 1));
		assert_int_equal(proc()->pinned_pages, n - 1 - i);
	}
	assert_int_equal(proc()->unknown_frees, 60);
	feed_file(400, TTMON_TT_CLOSE, 0, 0, 1);
	feed_file(401, TTMON_TT_CLOSE, 0, 0, 2);
	assert_int_equal(proc()->pinned_pages, 0);
	assert_int_equal(proc()->frees, n);
}

/* A file of a program that is gone, or was never seen, ends nothing and makes no process. */
static void an_end_after_the_end(void **state)
{
	struct ttmon_ev_tt_pin ev = { .h = feed_head(TTMON_EV_TT_PIN, T + 1, 300), .op = TTMON_TT_CLOSE, .file = 1 };

	(void)state;
	feed_file(100, TTMON_TT_DMA_BUF, 0, PAGE, 1);
	feed_exit(h, T, 200);
	feed_file(300, TTMON_TT_CLOSE, 0, 0, 1);
	ttmon_history_apply(h, &ev.h, sizeof(ev), false);
	assert_int_equal(ttmon_history_procs(h), 1);
	assert_int_equal(proc()->frees, 0);
	assert_int_equal(ttmon_history_alloc(h, 0)->end, TTMON_END_EXIT);
}

/* The driver refuses what a file holds already, so an unpin was missed; that is no second hold. */
static void a_missed_unpin_heals(void **state)
{
	(void)state;
	feed_file(100, TTMON_TT_PIN, A, PAGE, 1);
	feed_file(101, TTMON_TT_PIN, A, PAGE, 1);
	feed_file(102, TTMON_TT_UNPIN, A, PAGE, 1);
	assert_int_equal(proc()->pinned_pages, 0);
	assert_int_equal(proc()->pins, 1);
}

static void failures_leave_a_count(void **state)
{
	const struct ttmon_error_count *errors;

	(void)state;
	feed_pin(100, TTMON_TT_PIN, A + 1, PAGE, 0, -22);
	feed_pin(101, TTMON_TT_UNPIN, A, PAGE, 0, -22);
	assert_int_equal(proc()->pins, 0);
	assert_int_equal(proc()->unknown_frees, 0);
	assert_int_equal(proc()->failed, 2);
	assert_int_equal(ttmon_history_errors(h, &errors), 2);
	assert_int_equal(errors[0].fn, 370);
	assert_int_equal(errors[0].err, -22);
}

static void all_ends_with_the_program(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		feed_pin(100 + i, TTMON_TT_PIN, A + i * PAGE, PAGE, (uint32_t)(i % 4), 0);
	assert_int_equal(proc()->pinned_pages, 100);
	feed_proc(h, T, 300, 5, 1, TTMON_PROC_EXEC);
	assert_int_equal(proc()->pinned_pages, 0);
	feed_pin(301, TTMON_TT_UNPIN, A, PAGE, 0, 0);
	assert_int_equal(proc()->unknown_frees, 1);
	feed_pin(302, TTMON_TT_PIN, A, PAGE, 0, 0);
	assert_int_equal(proc()->pinned_pages, 1);
	assert_int_equal(feed_totals(h).pinned_peak_pages, 100);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(pages_of_a_range_count_once),
		TEST(pinned_again_is_pinned_anew),
		TEST(another_size_takes_the_place),
		TEST(dma_buffers_have_no_address),
		TEST(failures_leave_a_count),
		TEST(all_ends_with_the_program),
		TEST(a_closed_file_lets_go_of_all_it_held),
		TEST(unpinned_in_any_order),
		TEST(an_end_after_the_end),
		TEST(a_missed_unpin_heals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
