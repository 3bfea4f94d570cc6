// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_history.c: allocation, free, registration, hint and reset calls, and how much memory is pinned
 * at the same time.
 */
#include "tests/unit/feed/history_feed.h"

#define T 10 /* the process */
#define A 0x7f0000000000ULL

static struct ttmon_history *h;

static int setup(void **state)
{
	(void)state;
	h = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	feed_proc(h, T, 1, 77, 1, TTMON_PROC_SEEN);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ttmon_history_free(h);
	return 0;
}

static const struct ttmon_proc *proc(void)
{
	return ttmon_history_proc(h, 0);
}

static const struct ttmon_alloc *rec(uint64_t seq)
{
	return ttmon_history_alloc(h, seq);
}

static void lives_and_is_freed(void **state)
{
	const struct ttmon_alloc *a;

	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, 10000);
	a = ttmon_history_find(h, T, A + 9999);
	assert_ptr_equal(a, rec(0));
	assert_null(ttmon_history_find(h, T, A + 10000));
	assert_null(ttmon_history_find(h, T, A - 1));
	assert_null(ttmon_history_find(h, T + 1, A));
	assert_int_equal(a->alloc_ns, 100);
	assert_int_equal(a->pin_ns, 10);
	assert_int_equal(a->states, TTMON_ST_CREATED | TTMON_ST_POPULATED | TTMON_ST_PINNED);
	assert_int_equal(proc()->live, 1);
	assert_int_equal(a->traffic->copies[TTMON_RDIR_H2D], 0);

	feed_free(h, T, 200, 230, TTMON_METHOD_HOST_ALLOC, A);
	assert_null(ttmon_history_find(h, T, A));
	assert_int_equal(a->free_ns, 200); /* at entry */
	assert_int_equal(a->unpin_ns, 30);
	assert_int_equal(a->end, TTMON_END_FREE);
	assert_true(a->states & TTMON_ST_FREED);
	assert_int_equal(proc()->live, 0);
	assert_int_equal(proc()->allocs, 1);
	assert_int_equal(proc()->frees, 1);
	assert_int_equal(ttmon_history_allocs(h), 1);
}

static void generations_tell_reuse_apart(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		feed_alloc(h, T, 100 + i * 100, TTMON_METHOD_DEVICE, A, 4096);
		feed_free(h, T, 150 + i * 100, 160 + i * 100, TTMON_METHOD_DEVICE, A);
		assert_int_equal(rec(i)->gen, i);
	}
	/*
	 * Live allocations at one address have different generations too: (process, address, generation) is a
	 * key.
	 */
	feed_mmap(h, T, 500, A, 8192);
	feed_alloc(h, T, 510, TTMON_METHOD_REGISTERED, A, 4096);
	assert_int_equal(rec(3)->gen, 3);
	assert_int_equal(rec(4)->gen, 4);
	feed_free(h, T, 520, 525, TTMON_METHOD_REGISTERED, A);
	feed_munmap(h, T, 530, A, 8192);
	feed_mmap(h, T, 540, A, 8192);
	assert_int_equal(rec(5)->gen, 5);
}

/*
 * Another thread gets the address while the free is still returning: the stream shows the new
 * allocation first.
 */
static void late_free_goes_to_the_superseded_one(void **state)
{
	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, 4096);
	feed_alloc(h, T, 220, TTMON_METHOD_HOST_ALLOC, A, 8192);
	assert_int_equal(rec(0)->end, TTMON_END_SUPERSEDED);
	assert_int_equal(feed_totals(h).superseded, 1);
	feed_free(h, T, 200, 230, TTMON_METHOD_HOST_ALLOC, A);
	assert_int_equal(rec(0)->end, TTMON_END_FREE);
	assert_int_equal(rec(0)->free_ns, 200);
	assert_int_equal(rec(0)->unpin_ns, 30);
	assert_int_equal(rec(1)->free_ns, 0);
	assert_int_equal(feed_totals(h).superseded, 0);
	assert_int_equal(proc()->unknown_frees, 0);
	assert_int_equal(proc()->pinned_bytes, 8192);
	feed_free(h, T, 300, 310, TTMON_METHOD_HOST_ALLOC, A);
	assert_int_equal(rec(1)->free_ns, 300);
	assert_int_equal(proc()->pinned_bytes, 0);
}

/* A free was lost: all allocations that overlap the new range have ended. */
static void new_range_supersedes_all_it_overlaps(void **state)
{
	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_DEVICE, A, 4096);
	feed_alloc(h, T, 110, TTMON_METHOD_HOST_ALLOC, A + 8192, 4096);
	feed_alloc(h, T, 120, TTMON_METHOD_DEVICE, A + 65536, 4096);
	feed_alloc(h, T, 200, TTMON_METHOD_DEVICE, A + 2048, 8192);
	assert_int_equal(rec(0)->end, TTMON_END_SUPERSEDED);
	assert_int_equal(rec(1)->end, TTMON_END_SUPERSEDED);
	assert_int_equal(rec(2)->end, TTMON_END_LIVE);
	assert_int_equal(feed_totals(h).superseded, 2);
	assert_int_equal(proc()->pinned_pages, 0);
}

static void unknown_frees_are_counted(void **state)
{
	(void)state;
	feed_free(h, T, 100, 110, TTMON_METHOD_HOST_ALLOC, A);
	feed_alloc(h, T, 200, TTMON_METHOD_HOST_ALLOC, A, 4096);
	feed_free(h, T, 190, 230, TTMON_METHOD_HOST_ALLOC, A);	   /* of memory that was allocated before the trace */
	feed_free(h, T, 250, 260, TTMON_METHOD_HOST_ALLOC, A + 1); /* not a base address */
	assert_int_equal(proc()->unknown_frees, 3);
	assert_int_equal(rec(0)->free_ns, 0);
	assert_int_equal(proc()->live, 1);
	assert_int_equal(proc()->pinned_pages, 1);
	assert_int_equal(feed_totals(h).unknown_frees, 3);
}

static void cuda_free_takes_managed_and_pool(void **state)
{
	static const unsigned int methods[] = { TTMON_METHOD_DEVICE, TTMON_METHOD_MANAGED, TTMON_METHOD_POOL };

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		feed_alloc(h, T, 100 + i, methods[i], A + i * PAGE, 4096);
		feed_free(h, T, 200, 210, TTMON_METHOD_DEVICE, A + i * PAGE);
		assert_int_equal(rec(i)->end, TTMON_END_FREE);
	}
	assert_int_equal(proc()->findings[TTMON_FINDING_FREE_BY_OTHER], 0);
}

static void wrong_free_function_is_a_finding(void **state)
{
	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_REGISTERED, A, 4096);
	feed_alloc(h, T, 110, TTMON_METHOD_HOST_ALLOC, A + PAGE, 4096);
	feed_free(h, T, 200, 210, TTMON_METHOD_HOST_ALLOC, A);
	feed_free(h, T, 200, 210, TTMON_METHOD_DEVICE, A + PAGE);
	feed_free(h, T, 200, 210, TTMON_METHOD_REGISTERED, A + PAGE);
	assert_int_equal(proc()->findings[TTMON_FINDING_FREE_BY_OTHER], 3);
	assert_int_equal(proc()->unknown_frees, 0);
	assert_int_equal(proc()->live, 2);
}

static void unregister_takes_the_base_pointer(void **state)
{
	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_REGISTERED, A, 3 * PAGE);
	feed_free(h, T, 200, 210, TTMON_METHOD_REGISTERED, A + PAGE);
	assert_int_equal(rec(0)->free_ns, 0);
	assert_int_equal(proc()->unknown_frees, 1);
	feed_free(h, T, 220, 230, TTMON_METHOD_REGISTERED, A);
	assert_int_equal(rec(0)->free_ns, 220);
}

static void failed_calls_leave_nothing(void **state)
{
	struct ttmon_ev_alloc alloc = { .h = feed_head(TTMON_EV_ALLOC, T, 100),
					.entry_ns = 90,
					.size = 4096,
					.err = 2,
					.fn = FN_HOST,
					.method = TTMON_METHOD_HOST_ALLOC };
	struct ttmon_ev_free ev = { .h = feed_head(TTMON_EV_FREE, T, 110),
				    .entry_ns = 105,
				    .addr = A,
				    .err = 1,
				    .fn = FN_UNREG,
				    .method = TTMON_METHOD_REGISTERED };
	struct ttmon_ev_hint hint = { .h = feed_head(TTMON_EV_HINT, T, 120), .addr = A, .err = 1, .fn = 7 };
	struct ttmon_ev_reset reset = { .h = feed_head(TTMON_EV_RESET, T, 130), .err = 3, .fn = 51, .device = 0 };
	const struct ttmon_error_count *errors;

	(void)state;
	feed_alloc(h, T, 50, TTMON_METHOD_REGISTERED, A, 4096);
	feed_alloc_full(h, alloc, NULL);
	feed_alloc_full(h, alloc, NULL);
	APPLY(h, ev);
	APPLY(h, hint);
	APPLY(h, reset);
	assert_int_equal(ttmon_history_allocs(h), 1);
	assert_int_equal(rec(0)->free_ns, 0);
	assert_int_equal(proc()->failed, 5);
	assert_int_equal(ttmon_history_errors(h, &errors), 4);
	/* In the order of (process, function, error). */
	assert_int_equal(errors[0].fn, FN_HOST);
	assert_int_equal(errors[0].err, 2);
	assert_int_equal(errors[0].count, 2);
	assert_int_equal(errors[1].fn, FN_UNREG);
	assert_int_equal(errors[3].fn, 51);
}

static void overlapping_registrations_share_pages(void **state)
{
	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_REGISTERED, A, 4 * PAGE);
	feed_alloc(h, T, 110, TTMON_METHOD_REGISTERED, A + 2 * PAGE, 4 * PAGE);
	assert_int_equal(proc()->findings[TTMON_FINDING_OVERLAP], 1);
	assert_int_equal(proc()->live, 2);
	assert_int_equal(proc()->pinned_pages, 6);
	assert_int_equal(proc()->pinned_bytes, 8 * PAGE);
	feed_free(h, T, 200, 210, TTMON_METHOD_REGISTERED, A);
	assert_int_equal(proc()->pinned_pages, 4);
	feed_free(h, T, 220, 230, TTMON_METHOD_REGISTERED, A + 2 * PAGE);
	assert_int_equal(proc()->pinned_pages, 0);
	assert_int_equal(proc()->pinned_peak_pages, 6);
}

static void same_base_registered_again_supersedes(void **state)
{
	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_REGISTERED, A, 4 * PAGE);
	feed_alloc(h, T, 110, TTMON_METHOD_REGISTERED, A, 2 * PAGE);
	assert_int_equal(rec(0)->end, TTMON_END_SUPERSEDED);
	assert_int_equal(proc()->findings[TTMON_FINDING_OVERLAP], 0);
	assert_int_equal(proc()->pinned_pages, 2);
}

static void pages_are_rounded_outwards_and_distinct(void **state)
{
	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_REGISTERED, A + 4000, 200); /* two pages */
	assert_int_equal(proc()->pinned_pages, 2);
	feed_alloc(h, T, 110, TTMON_METHOD_REGISTERED, A + 4200, 10); /* in the second */
	assert_int_equal(proc()->pinned_pages, 2);
	feed_alloc(h, T, 120, TTMON_METHOD_HOST_ALLOC, A + 8190, 10); /* end of the second and the third */
	assert_int_equal(proc()->pinned_pages, 3);
	assert_int_equal(proc()->pins, 3);
	assert_int_equal(proc()->pinned_bytes, 220);
	feed_free(h, T, 200, 210, TTMON_METHOD_REGISTERED, A + 4000);
	assert_int_equal(proc()->pinned_pages, 2);
	feed_free(h, T, 200, 210, TTMON_METHOD_REGISTERED, A + 4200);
	assert_int_equal(proc()->pinned_pages, 2);
	feed_free(h, T, 200, 210, TTMON_METHOD_HOST_ALLOC, A + 8190);
	assert_int_equal(proc()->pinned_pages, 0);
	assert_int_equal(proc()->pinned_bytes, 0);
}

static void peaks_follow_event_order(void **state)
{
	struct ttmon_history_totals t;

	(void)state;
	feed_proc(h, T + 1, 2, 78, 1, TTMON_PROC_SEEN);
	feed_alloc(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, 10 * PAGE);
	feed_alloc(h, T + 1, 110, TTMON_METHOD_POOL, A, 5 * PAGE);
	feed_free(h, T, 120, 121, TTMON_METHOD_HOST_ALLOC, A);
	feed_alloc(h, T, 130, TTMON_METHOD_HOST_ALLOC, A, 6 * PAGE);
	t = feed_totals(h);
	assert_int_equal(t.pinned_pages, 11);
	assert_int_equal(t.pinned_peak_pages, 15);
	assert_int_equal(t.pinned_peak_bytes, 15 * PAGE);
	assert_int_equal(t.peak_ns, 110);
	assert_int_equal(t.pins, 3);
	assert_int_equal(proc()->pinned_peak_pages, 10);
	assert_int_equal(proc()->peak_ns, 100);
	/* Neither managed nor device memory is pinned. */
	feed_alloc(h, T, 140, TTMON_METHOD_MANAGED, A + (1 << 20), 100 * PAGE);
	feed_alloc(h, T, 150, TTMON_METHOD_DEVICE, A + (2 << 20), 100 * PAGE);
	assert_int_equal(feed_totals(h).pinned_pages, 11);
	/* Nor does it pin the page that it shares with pinned memory. */
	feed_alloc(h, T, 160, TTMON_METHOD_DEVICE, A + (4 << 20), 100);
	feed_alloc(h, T, 170, TTMON_METHOD_HOST_ALLOC, A + (4 << 20) + 100, 100);
	assert_int_equal(feed_totals(h).pinned_pages, 12);
}

static void page_size_of_the_host_counts(void **state)
{
	(void)state;
	feed_clock(h, 65536, 0);
	feed_alloc(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, 65537);
	assert_int_equal(proc()->pinned_pages, 2);
	assert_int_equal(ttmon_history_clock(h)->page_size, 65536);
}

static void odd_page_size_is_refused(void **state)
{
	(void)state;
	feed_clock(h, 3, 0);
	feed_alloc(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, 4096);
	assert_int_equal(proc()->pinned_pages, 1);
	assert_int_equal(feed_totals(h).malformed_facts, 1);
}

static void readonly_and_unobserved_are_marked(void **state)
{
	struct ttmon_ev_alloc ev = { .h = feed_head(TTMON_EV_ALLOC, T, 100),
				     .entry_ns = 90,
				     .addr = A,
				     .size = 4096,
				     .flags = 8,
				     .fn = FN_REG,
				     .method = TTMON_METHOD_REGISTERED };

	(void)state;
	feed_alloc_full(h, ev, NULL);
	assert_true(rec(0)->bits & TTMON_AL_READONLY);
	/* At the entry the address of an allocation is unknown: it is counted, but has no record. */
	ev = (struct ttmon_ev_alloc){ .h = feed_head(TTMON_EV_ALLOC, T, 200),
				      .entry_ns = 200,
				      .size = 4096,
				      .fn = FN_HOST,
				      .method = TTMON_METHOD_HOST_ALLOC,
				      .bits = TTMON_B_UNOBSERVED };
	feed_alloc_full(h, ev, NULL);
	assert_true(rec(1)->bits & TTMON_AL_UNOBSERVED);
	assert_int_equal(rec(1)->free_ns, 200);
	assert_int_equal(proc()->pinned_pages, 1);
	assert_int_equal(proc()->live, 1);
	assert_int_equal(proc()->allocs, 2);
}

static void slow_pins_are_findings(void **state)
{
	struct ttmon_ev_alloc ev = { .h = feed_head(TTMON_EV_ALLOC, T, 100 * MS),
				     .entry_ns = 89 * MS,
				     .addr = A,
				     .size = 4096,
				     .fn = FN_HOST,
				     .method = TTMON_METHOD_HOST_ALLOC };

	(void)state;
	feed_alloc_full(h, ev, NULL);
	assert_int_equal(proc()->findings[TTMON_FINDING_SLOW_PIN], 1);
	assert_int_equal(rec(0)->pin_ns, 11 * MS);
	ev.entry_ns = 91 * MS;
	ev.addr += PAGE;
	feed_alloc_full(h, ev, NULL);
	ev.method = TTMON_METHOD_DEVICE; /* not a pin */
	ev.entry_ns = 0;
	ev.addr += PAGE;
	feed_alloc_full(h, ev, NULL);
	assert_int_equal(proc()->findings[TTMON_FINDING_SLOW_PIN], 1);
}

static void registration_is_told_to_the_memory_below(void **state)
{
	struct ttmon_aev ev[4];

	(void)state;
	feed_mmap(h, T, 50, A, 8 * PAGE);
	feed_alloc(h, T, 60, TTMON_METHOD_CUSTOM, A + PAGE, 2 * PAGE);
	feed_alloc(h, T, 100, TTMON_METHOD_REGISTERED, A + PAGE + 100, 1000);
	feed_free(h, T, 200, 210, TTMON_METHOD_REGISTERED, A + PAGE + 100);
	for (uint64_t i = 0; i < 2; i++) {
		assert_true(rec(i)->states & TTMON_ST_PINNED);
		assert_int_equal(feed_events(rec(i), ev, 4), 2);
		assert_int_equal(ev[0].kind, TTMON_AEV_REGISTER);
		assert_int_equal(ev[0].ts_ns, 100);
		assert_int_equal(ev[0].bytes, 1000);
		assert_int_equal(ev[0].offset, i ? 100 : PAGE + 100);
		assert_int_equal(ev[1].kind, TTMON_AEV_UNREGISTER);
		assert_int_equal(ev[1].ts_ns, 200);
	}
}

static void hints_reach_what_they_are_about(void **state)
{
	struct ttmon_ev_hint ev = { .h = feed_head(TTMON_EV_HINT, T, 200),
				    .addr = A + PAGE,
				    .bytes = 100,
				    .hint = TTMON_HINT_PREFETCH,
				    .fn = 44 };
	struct ttmon_aev aev[4];

	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_MANAGED, A, 4 * PAGE);
	feed_alloc(h, T, 110, TTMON_METHOD_HOST_ALLOC, A + (1 << 20), 4 * PAGE);
	APPLY(h, ev);
	ev.hint = TTMON_HINT_ADVISE;
	APPLY(h, ev);
	ev.hint = TTMON_HINT_DEVICE_PTR;
	ev.addr = A + (1 << 20) + 5;
	ev.bytes = 0;
	APPLY(h, ev);
	assert_int_equal(feed_events(rec(0), aev, 4), 2);
	assert_int_equal(aev[0].kind, TTMON_AEV_PREFETCH);
	assert_int_equal(aev[0].offset, PAGE);
	assert_int_equal(aev[0].bytes, 100);
	assert_int_equal(aev[1].kind, TTMON_AEV_ADVISE);
	assert_int_equal(feed_events(rec(1), aev, 4), 1);
	assert_int_equal(aev[0].kind, TTMON_AEV_DEVICE_PTR);
	assert_true(rec(1)->bits & TTMON_AL_DEVICE_PTR);
	assert_false(rec(0)->bits & TTMON_AL_DEVICE_PTR);
	assert_int_equal(rec(1)->traffic->copies[TTMON_RDIR_H2D], 0);
}

/*
 * Memory that an allocator registered and handed out in pieces: a kernel may read beyond the requested
 * address.
 */
static void device_ptr_of_registered(void **state)
{
	struct ttmon_ev_hint ev = {
		.h = feed_head(TTMON_EV_HINT, T, 200), .addr = A + PAGE + 5, .hint = TTMON_HINT_DEVICE_PTR, .fn = 44
	};

	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_REGISTERED, A, 4 * PAGE);
	feed_alloc(h, T, 110, TTMON_METHOD_CUSTOM, A, PAGE);
	feed_alloc(h, T, 120, TTMON_METHOD_CUSTOM, A + PAGE, PAGE);
	feed_alloc(h, T, 130, TTMON_METHOD_CUSTOM, A + 3 * PAGE, PAGE);
	feed_alloc(h, T, 140, TTMON_METHOD_CUSTOM, A + 4 * PAGE, PAGE);
	ev.err = 1;
	APPLY(h, ev);
	assert_false(rec(2)->bits & TTMON_AL_DEVICE_PTR);
	ev.err = 0;
	ev.hint = TTMON_HINT_ADVISE;
	APPLY(h, ev);
	assert_false(rec(2)->bits & TTMON_AL_DEVICE_PTR);
	ev.hint = TTMON_HINT_DEVICE_PTR;
	APPLY(h, ev);
	/*
	 * A pointer to a piece allows access to this piece; a pointer between pieces allows access to all
	 * memory behind it.
	 */
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(!!(rec(i)->bits & TTMON_AL_DEVICE_PTR), i == 0 || i == 2);
	ev.addr = A + 2 * PAGE;
	APPLY(h, ev);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(!!(rec(i)->bits & TTMON_AL_DEVICE_PTR), i == 0 || i == 2 || i == 3);
	/* Memory of its own that was never registered has no such pointer. */
	ev.addr = A + 4 * PAGE;
	APPLY(h, ev);
	assert_false(rec(4)->bits & TTMON_AL_DEVICE_PTR);
}

static void copy_from(uint64_t ts, uint64_t addr, uint64_t bytes)
{
	feed_copy(h, T, ts, TTMON_DIR_H2D, 0x300000000, addr, bytes);
}

/*
 * Pieces that an allocator hands out of pinned memory get the copies; the pages are counted once, for
 * the memory that contains the pieces.
 */
static void pieces_of_pinned_memory(void **state)
{
	static const uint8_t methods[] = { TTMON_METHOD_REGISTERED, TTMON_METHOD_HOST_ALLOC };

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t at = A + i * 64 * PAGE, ts = 1000 * (i + 1);
		unsigned int n = 5 * i;

		feed_alloc(h, T, ts, methods[i], at, 4 * PAGE);
		feed_alloc(h, T, ts + 1, TTMON_METHOD_CUSTOM, at, 1000);
		feed_alloc(h, T, ts + 2, TTMON_METHOD_CUSTOM, at + PAGE, 2 * PAGE);
		/* Only part of it is pinned. */
		feed_alloc(h, T, ts + 3, TTMON_METHOD_CUSTOM, at + 3 * PAGE + 100, PAGE);
		assert_int_equal(rec(n + 1)->method, TTMON_METHOD_PIECE);
		assert_int_equal(rec(n + 2)->method, TTMON_METHOD_PIECE);
		assert_int_equal(rec(n + 3)->method, TTMON_METHOD_CUSTOM);
		assert_int_equal(proc()->pins, i + 1);
		assert_int_equal(proc()->pinned_pages, 4);
		assert_int_equal(proc()->pinned_bytes, 4 * PAGE);
		copy_from(ts + 10, at, 1000);
		copy_from(ts + 11, at + 900, 200); /* 100 from the piece, 100 from memory that is not handed out */
		copy_from(ts + 12, at + 2 * PAGE, PAGE);
		assert_int_equal(rec(n)->traffic->bytes[TTMON_RDIR_H2D], 100);
		assert_int_equal(rec(n + 1)->traffic->bytes[TTMON_RDIR_H2D], 1100);
		assert_int_equal(rec(n + 2)->traffic->bytes[TTMON_RDIR_H2D], PAGE);
		assert_int_equal(proc()->xfer[TTMON_RDIR_H2D][TTMON_MEM_PINNED].copies, 3 * (i + 1));
		/*
		 * Freed by the allocator's own free, and handed out again; the last one ends with the memory that
		 * contains it.
		 */
		feed_free(h, T, ts + 20, ts + 20, TTMON_METHOD_CUSTOM, at);
		assert_int_equal(rec(n + 1)->end, TTMON_END_FREE);
		assert_int_equal(rec(n)->end, TTMON_END_LIVE);
		feed_alloc(h, T, ts + 21, TTMON_METHOD_CUSTOM, at, 500);
		assert_int_equal(rec(n + 4)->method, TTMON_METHOD_PIECE);
		assert_int_equal(rec(n + 4)->gen, 2);
		feed_free(h, T, ts + 30, ts + 31, methods[i], at);
		assert_int_equal(rec(n + 4)->end, TTMON_END_FREE);
		assert_int_equal(rec(n + 2)->end, TTMON_END_FREE);
		assert_int_equal(rec(n + 3)->end, TTMON_END_LIVE);
		feed_free(h, T, ts + 40, ts + 40, TTMON_METHOD_CUSTOM, at + 3 * PAGE + 100);
		assert_int_equal(proc()->pinned_pages, 0);
		assert_int_equal(proc()->unknown_frees, 0);
		assert_int_equal(proc()->findings[TTMON_FINDING_FREE_BY_OTHER], 0);
	}
}

/*
 * Memory that is reported twice is not a piece. An arena that is registered later frees the pieces
 * handed out of it. A free that comes after that end is known.
 */
static void what_is_a_piece(void **state)
{
	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, 4 * PAGE);
	feed_alloc(h, T, 101, TTMON_METHOD_CUSTOM, A, 4 * PAGE);
	assert_int_equal(rec(1)->method, TTMON_METHOD_CUSTOM);
	copy_from(110, A, PAGE);
	assert_int_equal(rec(0)->traffic->bytes[TTMON_RDIR_H2D], PAGE);
	feed_free(h, T, 120, 120, TTMON_METHOD_CUSTOM, A);
	feed_free(h, T, 121, 122, TTMON_METHOD_HOST_ALLOC, A);
	feed_alloc(h, T, 200, TTMON_METHOD_CUSTOM, A, 4 * PAGE);
	feed_alloc(h, T, 201, TTMON_METHOD_REGISTERED, A, 4 * PAGE);
	feed_alloc(h, T, 202, TTMON_METHOD_CUSTOM, A, PAGE);
	assert_int_equal(rec(4)->method, TTMON_METHOD_PIECE);
	feed_free(h, T, 210, 210, TTMON_METHOD_CUSTOM, A);
	assert_int_equal(rec(4)->end, TTMON_END_FREE);
	assert_int_equal(rec(2)->end, TTMON_END_LIVE);
	feed_alloc(h, T, 211, TTMON_METHOD_CUSTOM, A, PAGE);
	feed_free(h, T, 220, 221, TTMON_METHOD_REGISTERED, A);
	assert_int_equal(rec(5)->end, TTMON_END_FREE);
	feed_free(h, T, 230, 230, TTMON_METHOD_CUSTOM, A);
	assert_int_equal(proc()->unknown_frees, 0);
}

static void alloc_on(uint64_t ts, unsigned int method, uint64_t addr, int16_t device)
{
	struct ttmon_ev_alloc ev = { .h = feed_head(TTMON_EV_ALLOC, T, ts),
				     .entry_ns = ts,
				     .addr = addr,
				     .size = 4096,
				     .fn = FN_MALLOC,
				     .method = (uint8_t)method,
				     .device = device };

	feed_alloc_full(h, ev, NULL);
}

static void reset_frees_what_the_device_held(void **state)
{
	struct ttmon_ev_reset ev = { .h = feed_head(TTMON_EV_RESET, T, 200), .fn = 51, .device = 0 };

	(void)state;
	alloc_on(100, TTMON_METHOD_DEVICE, A, 0);
	alloc_on(101, TTMON_METHOD_HOST_ALLOC, A + PAGE, 1);
	alloc_on(102, TTMON_METHOD_MANAGED, A + 2 * PAGE, 0);
	alloc_on(103, TTMON_METHOD_REGISTERED, A + 3 * PAGE, 0);
	alloc_on(104, TTMON_METHOD_POOL, A + 4 * PAGE, -1); /* allocated on an unknown device */
	alloc_on(105, TTMON_METHOD_CUSTOM, A + 5 * PAGE, 0);
	alloc_on(106, TTMON_METHOD_REGISTERED, A + 6 * PAGE, 1);
	feed_mmap(h, T, 107, A + (1 << 20), PAGE);
	APPLY(h, ev);
	assert_int_equal(rec(0)->end, TTMON_END_RESET);
	assert_int_equal(rec(1)->end, TTMON_END_LIVE);
	assert_int_equal(rec(2)->end, TTMON_END_RESET);
	assert_int_equal(rec(3)->end, TTMON_END_RESET);
	assert_int_equal(rec(4)->end, TTMON_END_RESET);
	assert_int_equal(rec(5)->end, TTMON_END_LIVE);
	assert_int_equal(rec(6)->end, TTMON_END_LIVE);
	ev.device = -1;
	ev.h.ts_ns = 300;
	APPLY(h, ev);
	assert_int_equal(rec(1)->end, TTMON_END_RESET);
	assert_int_equal(rec(6)->end, TTMON_END_RESET);
	assert_int_equal(rec(5)->end, TTMON_END_LIVE);
	assert_int_equal(rec(7)->end, TTMON_END_LIVE);
	assert_int_equal(proc()->pinned_pages, 0);
}

static void reset_of_many_blocks(void **state)
{
	struct ttmon_ev_reset ev = { .h = feed_head(TTMON_EV_RESET, T, 5000), .fn = 51, .device = 1 };

	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		alloc_on(100 + i, TTMON_METHOD_DEVICE, A + i * PAGE, (int16_t)(i % 3 == 0));
	APPLY(h, ev);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(rec(i)->end, i % 3 == 0 ? TTMON_END_RESET : TTMON_END_LIVE);
}

static void tenstorrent_memory_is_known_by_its_number(void **state)
{
	struct ttmon_tt_alloc in = {
		.ts_ns = 100, .addr = 4096, .bytes = PAGE, .fn = 256, .method = TTMON_METHOD_TT_DRAM
	};
	uint64_t seq[3];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seq); i++)
		seq[i] = ttmon_history_tt_alloc(h, T, &in);
	assert_int_equal(feed_totals(h).superseded, 0);
	assert_null(ttmon_history_find(h, T, 4096));
	assert_int_equal(proc()->live, 3);
	assert_int_equal(proc()->allocs, 3);
	ttmon_history_tt_free(h, seq[1], 200);
	ttmon_history_tt_free(h, seq[1], 201);
	ttmon_history_tt_free(h, 4711, 201);
	assert_int_equal(proc()->frees, 1);
	assert_int_equal(rec(1)->end, TTMON_END_FREE);
	assert_int_equal(rec(1)->free_ns, 200);
	ttmon_history_tt_undo(h, seq[2]);
	assert_int_equal(proc()->allocs, 2);
	assert_int_equal(proc()->failed, 1);
	assert_int_equal(rec(2)->free_ns, rec(2)->alloc_ns);
	feed_exit(h, T, 300);
	assert_int_equal(rec(0)->end, TTMON_END_EXIT);
	assert_int_equal(proc()->live, 0);
	assert_int_equal(proc()->pinned_pages, 0);
}

static void zero_bytes_are_an_allocation(void **state)
{
	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_CUSTOM, A, 0);
	assert_ptr_equal(ttmon_history_find(h, T, A), rec(0));
	feed_free(h, T, 110, 111, TTMON_METHOD_CUSTOM, A);
	assert_int_equal(rec(0)->end, TTMON_END_FREE);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(lives_and_is_freed),
		TEST(generations_tell_reuse_apart),
		TEST(late_free_goes_to_the_superseded_one),
		TEST(new_range_supersedes_all_it_overlaps),
		TEST(unknown_frees_are_counted),
		TEST(cuda_free_takes_managed_and_pool),
		TEST(wrong_free_function_is_a_finding),
		TEST(unregister_takes_the_base_pointer),
		TEST(failed_calls_leave_nothing),
		TEST(overlapping_registrations_share_pages),
		TEST(same_base_registered_again_supersedes),
		TEST(pages_are_rounded_outwards_and_distinct),
		TEST(peaks_follow_event_order),
		TEST(page_size_of_the_host_counts),
		TEST(odd_page_size_is_refused),
		TEST(readonly_and_unobserved_are_marked),
		TEST(slow_pins_are_findings),
		TEST(registration_is_told_to_the_memory_below),
		TEST(hints_reach_what_they_are_about),
		TEST(device_ptr_of_registered),
		TEST(pieces_of_pinned_memory),
		TEST(what_is_a_piece),
		TEST(reset_frees_what_the_device_held),
		TEST(reset_of_many_blocks),
		TEST(tenstorrent_memory_is_known_by_its_number),
		TEST(zero_bytes_are_an_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
