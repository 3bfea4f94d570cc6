// SPDX-License-Identifier: GPL-2.0-only
/* test_advice.c: hot spots, cold spots, and the advice about them. */
#include "tests/unit/feed/history_feed.h"

#define T   10
#define A   0x40000000ULL
#define DEV 0x20000000ULL
#define MB  (1ULL << 20)

static struct ttmon_history *h;

static int setup(void **state)
{
	(void)state;
	/*
	 * 1 ns a byte pageable, a quarter of that pinned, 4 ns a byte to pin, 1 ns a call: simple to compute
	 * by hand.
	 */
	h = feed_new((struct ttmon_history_cfg){ .keep_all = true,
						 .pageable_bps = 1000000000,
						 .pinned_bps = 4000000000,
						 .pinning_bps = 250000000,
						 .pin_call_ns = 1,
						 .unpin_call_ns = 1,
						 .cold_age_ns = 100 * MS });
	feed_proc(h, T, 1, 77, 1, TTMON_PROC_SEEN);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ttmon_history_free(h);
	return 0;
}

static const uint64_t site1[] = { 0x1000, 0 }, site2[] = { 0x2000, 0 };

/* The line of the advice for this method and site; asserts that there is one. */
static struct ttmon_spot advice_for(unsigned int method, uint32_t site)
{
	struct ttmon_spot *spots = NULL, found = { 0 };
	size_t n = 0, hits = 0;

	assert_int_equal(ttmon_history_advice(h, &spots, &n), 0);
	for (size_t i = 0; i < n; i++) {
		if (spots[i].method == method && spots[i].site == site) {
			found = spots[i];
			hits++;
		}
	}
	free(spots);
	assert_int_equal(hits, 1);
	return found;
}

static void copies(uint64_t addr, uint64_t bytes, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		feed_copy(h, T, (10 + i) * MS, TTMON_DIR_H2D, DEV, addr, bytes);
}

static void pins_what_pays(void **state)
{
	struct ttmon_spot s;

	(void)state;
	feed_alloc_at(h, T, 100, TTMON_METHOD_CUSTOM, A, 100000, site1);
	copies(A, 100000, 5);
	ttmon_history_finish(h, SEC);
	/* 5 copies save 0.75 ns a byte each, pinning 25 pages costs 4 ns a byte: it does not pay. */
	s = advice_for(TTMON_METHOD_CUSTOM, 1);
	assert_int_equal(s.said.advice, TTMON_ADVICE_KEEP);
	assert_int_equal(s.said.gain_ns, 5 * 75000 - 25 * 16384 - 2);
	copies(A, 100000, 1);
	s = advice_for(TTMON_METHOD_CUSTOM, 1);
	assert_int_equal(s.said.advice, TTMON_ADVICE_PIN);
	assert_int_equal(s.said.gain_ns, 6 * 75000 - 25 * 16384 - 2);
	assert_int_equal(s.copies, 6);
	assert_int_equal(s.copied, 600000);
	assert_int_equal(s.allocs, 1);
	assert_int_equal(s.alloc_seq, 0);
	assert_true(s.said.confidence > 0.7 && s.said.confidence < 0.8); /* 6 / (6 + 2) */
}

static void only_touched_groups_have_to_be_pinned(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, 640 * MB);
	copies(A, 10 * MB, 6); /* one of 64 groups of 10 MiB */
	feed_copy_site(h, T, 20 * MS, A, site1);
	ttmon_history_finish(h, SEC);
	assert_int_equal(advice_for(TTMON_METHOD_MMAP, 1).said.gain_ns, 6 * (10 * MB * 3 / 4) - 10 * MB * 4 - 2);
	assert_int_equal(advice_for(TTMON_METHOD_MMAP, 1).said.advice, TTMON_ADVICE_PIN);
}

static void unpins_what_is_cold(void **state)
{
	struct ttmon_spot s, cold[4];

	(void)state;
	feed_alloc_at(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, 10 * PAGE, site1);
	feed_alloc_at(h, T, 200, TTMON_METHOD_HOST_ALLOC, A + MB, 20 * PAGE, site1);
	copies(A, PAGE, 1);
	ttmon_history_finish(h, 99 * MS);
	assert_int_equal(ttmon_history_coldspots(h, cold, 4), 0); /* too young */
	assert_int_equal(advice_for(TTMON_METHOD_HOST_ALLOC, 1).said.advice, TTMON_ADVICE_KEEP);
	ttmon_history_finish(h, 2 * SEC);
	assert_int_equal(ttmon_history_coldspots(h, cold, 4), 1); /* one transfer, two allocations */
	assert_int_equal(cold[0].bytes, 30 * PAGE);
	assert_int_equal(cold[0].said.advice, TTMON_ADVICE_UNPIN);
	/* The cost of the pages and calls, less what the copy saved. */
	assert_int_equal(cold[0].said.gain_ns, 30 * 16384 + 2 - 4096 * 3 / 4);
	assert_int_equal(cold[0].size, 20 * PAGE);
	s = advice_for(TTMON_METHOD_HOST_ALLOC, 1);
	assert_int_equal(s.said.advice, TTMON_ADVICE_UNPIN);
	assert_true(s.said.confidence > 0.79 && s.said.confidence < 0.81); /* 4 s / 5 s */
	/* Data that the device writes back counts as well. */
	for (unsigned int i = 0; i < 160; i++)
		feed_copy(h, T, (20 + i) * MS, TTMON_DIR_D2H, A, DEV, PAGE);
	assert_int_equal(ttmon_history_coldspots(h, cold, 4), 0);
	assert_int_equal(advice_for(TTMON_METHOD_HOST_ALLOC, 1).said.advice, TTMON_ADVICE_KEEP);
}

static void keeps_what_a_kernel_may_read_in_place(void **state)
{
	struct ttmon_spot cold[4];
	struct ttmon_ev_hint hint = {
		.h = feed_head(TTMON_EV_HINT, T, 300), .addr = A, .hint = TTMON_HINT_DEVICE_PTR, .fn = 7
	};

	(void)state;
	feed_alloc_at(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, PAGE, site1);
	APPLY(h, hint);
	for (uint32_t flag = 1; flag <= 4; flag *= 2) {
		struct ttmon_ev_alloc ev = { .h = feed_head(TTMON_EV_ALLOC, T, 300 + flag),
					     .entry_ns = 300,
					     .addr = A + flag * MB,
					     .size = PAGE,
					     .flags = flag,
					     .fn = FN_HOST,
					     .method = TTMON_METHOD_HOST_ALLOC };
		const uint64_t frames[] = { 0x9000 + flag, 0 };

		feed_alloc_full(h, ev, frames);
	}
	ttmon_history_finish(h, 10 * SEC);
	assert_int_equal(ttmon_history_coldspots(h, cold, 4), 4);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(cold[i].said.advice, TTMON_ADVICE_KEEP);
}

static void gpu_use(uint64_t ts, uint64_t addr, uint64_t size, uint64_t reads, uint64_t writes, uint64_t sectors)
{
	struct ttmon_ev_gpu_use ev = { .h = feed_fact(TTMON_EV_GPU_USE, T, ts),
				       .addr = addr,
				       .size = size,
				       .reads = reads,
				       .writes = writes,
				       .sectors = sectors };

	APPLY(h, ev);
}

/*
 * Any number of allocations can be in a range. After its end, or before it is known, a process gets no
 * uses.
 */
static void every_piece_of_a_range_is_used(void **state)
{
	size_t procs;

	(void)state;
	for (unsigned int i = 0; i < 200; i++)
		feed_alloc_at(h, T, 100 + i, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE, site1);
	gpu_use(500, A, 200 * PAGE, 800, 0, 25600);
	for (unsigned int i = 0; i < 200; i++)
		assert_int_equal(ttmon_history_alloc(h, i)->traffic->gpu->reads, 4);
	procs = ttmon_history_procs(h);
	feed_exit(h, T, 1000);
	gpu_use(5 * SEC, A, PAGE, 1, 0, 1);
	APPLY(h,
	      ((struct ttmon_ev_gpu_use){ .h = feed_fact(TTMON_EV_GPU_USE, T + 5, 6 * SEC), .addr = A, .size = PAGE }));
	assert_int_equal(ttmon_history_procs(h), procs);
}

/* Two allocations of a site without a copy; a kernel reads one of them. */
static void what_a_kernel_reads_is_not_cold(void **state)
{
	struct ttmon_spot cold[2];

	(void)state;
	feed_alloc_at(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, PAGE, site1);
	feed_alloc_at(h, T, 101, TTMON_METHOD_HOST_ALLOC, A + MB, PAGE, site2);
	gpu_use(200 * MS, A + 64, 128, 3, 1, 12);
	ttmon_history_finish(h, 10 * SEC);
	assert_int_equal(ttmon_history_coldspots(h, cold, 2), 1);
	assert_int_equal(cold[0].site, 2);
	assert_int_equal(advice_for(TTMON_METHOD_HOST_ALLOC, 1).said.advice, TTMON_ADVICE_KEEP);
	assert_int_equal(advice_for(TTMON_METHOD_HOST_ALLOC, 2).said.advice, TTMON_ADVICE_UNPIN);
}

static uint64_t gone(void)
{
	struct ttmon_history_totals t;

	ttmon_history_get_totals(h, &t);
	return t.gpu_use_gone;
}

/*
 * Uses are reported late: each counts for the allocation that existed when the kernel was launched.
 */
static void memory_changes_hands_before_its_use_is_told(void **state)
{
	const struct ttmon_gpu_use *first, *second;

	(void)state;
	feed_alloc_at(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, PAGE, site1);
	feed_free(h, T, 200, 210, TTMON_METHOD_HOST_ALLOC, A);
	feed_alloc_at(h, T, 300, TTMON_METHOD_HOST_ALLOC, A, PAGE, site2);
	gpu_use(150, A, PAGE, 1, 0, 8);
	gpu_use(350, A, PAGE, 0, 2, 8);
	/* No allocation existed: the kernel was still running when the memory was allocated. */
	gpu_use(250, A, PAGE, 0, 4, 8);
	first = ttmon_history_alloc(h, 0)->traffic->gpu;
	second = ttmon_history_alloc(h, 1)->traffic->gpu;
	assert_int_equal(first->reads, 1);
	assert_int_equal(first->writes, 0);
	assert_int_equal(first->first_ns, 150);
	assert_int_equal(first->last_ns, 200);
	assert_int_equal(second->writes, 6);
	assert_int_equal(second->first_ns, 300);
	/* No allocation exists now either. */
	feed_free(h, T, 400, 410, TTMON_METHOD_HOST_ALLOC, A);
	gpu_use(360, A + 64, 64, 0, 8, 2);
	assert_int_equal(second->writes, 14);
	assert_int_equal(gone(), 0);
	gpu_use(450, A, PAGE, 1, 0, 1);
	assert_int_equal(gone(), 1);
	feed_exit(h, T, 1000);
	gpu_use(390, A, PAGE, 0, 16, 1);
	assert_int_equal(second->writes, 30);
	assert_int_equal(gone(), 1);
}

static uint64_t reads_of(uint64_t seq)
{
	const struct ttmon_gpu_use *use = ttmon_history_alloc(h, seq)->traffic->gpu;

	return use ? use->reads : 0;
}

/* A range with many allocations, of which some or all were freed. */
static void each_that_has_gone_has_its_part(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		feed_alloc_at(h, T, 100 + i, TTMON_METHOD_DEVICE, A + i * PAGE, PAGE, site1);
	feed_free(h, T, 200, 201, TTMON_METHOD_DEVICE, A);
	feed_free(h, T, 202, 203, TTMON_METHOD_DEVICE, A + 2 * PAGE);
	gpu_use(150, A, 4 * PAGE, 400, 0, 512);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(reads_of(i), 100);
	/* The memory was allocated again, as one allocation with the memory between. */
	feed_free(h, T, 300, 301, TTMON_METHOD_DEVICE, A + PAGE);
	feed_free(h, T, 302, 303, TTMON_METHOD_DEVICE, A + 3 * PAGE);
	feed_alloc_at(h, T, 400, TTMON_METHOD_DEVICE, A + PAGE, 4 * PAGE, site2);
	gpu_use(151, A, 5 * PAGE, 500, 0, 640);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(reads_of(i), 200);
	assert_int_equal(reads_of(4), 100);
	assert_int_equal(gone(), 0);
	/* None of these contained the first page. */
	gpu_use(500, A, 2 * PAGE, 20, 0, 256);
	assert_int_equal(reads_of(4), 110);
	assert_int_equal(gone(), 1);
	/* Between small allocations of one page is memory that belongs to none. */
	feed_alloc_at(h, T, 600, TTMON_METHOD_DEVICE, A + 100 * PAGE, 100, site1);
	feed_alloc_at(h, T, 600, TTMON_METHOD_DEVICE, A + 100 * PAGE + 512, 100, site1);
	gpu_use(700, A + 100 * PAGE, 640, 640, 0, 20);
	assert_int_equal(reads_of(5), 100);
	assert_int_equal(reads_of(6), 100);
	assert_int_equal(gone(), 1);
}

/* Other ends of the process's allocations, and other processes, take nothing from it. */
static void the_last_uses_come_after_the_exit(void **state)
{
	(void)state;
	feed_proc(h, T + 1, 50, 40, 1, TTMON_PROC_FORK);
	feed_alloc_at(h, T, 100, TTMON_METHOD_DEVICE, A, PAGE, site1);
	for (unsigned int i = 0; i < 200; i++) {
		feed_mmap(h, T, 101 + i, 0x7f0000000000 + i * 64 * PAGE, PAGE);
		feed_alloc_at(h, T + 1, 101 + i, TTMON_METHOD_DEVICE, A + i * PAGE, PAGE, site1);
	}
	feed_exit(h, T, 1000);
	feed_exit(h, T + 1, 1001);
	gpu_use(900, A, PAGE, 7, 0, 8);
	assert_int_equal(reads_of(0), 7);
	assert_int_equal(gone(), 0);
}

/* The time of a use may be any value that the program reports. */
static void time_of_a_use_is_not_that_of_its_process(void **state)
{
	(void)state;
	feed_proc(h, T + 1, 5000, 4000, 1, TTMON_PROC_FORK);
	feed_alloc_at(h, T + 1, 5100, TTMON_METHOD_DEVICE, A, PAGE, site1);
	APPLY(h, ((struct ttmon_ev_gpu_use){
			 .h = feed_fact(TTMON_EV_GPU_USE, T + 1, 1), .addr = A, .size = PAGE, .reads = 3 }));
	assert_int_equal(reads_of(0), 3);
	assert_int_equal(ttmon_history_proc(h, ttmon_history_procs(h) - 1)->first_ns, 5000);
}

static void use_of_a_range_is_shared_out(void **state)
{
	const struct ttmon_gpu_use *a, *b;

	(void)state;
	feed_alloc_at(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, 3 * PAGE, site1);
	feed_alloc_at(h, T, 101, TTMON_METHOD_HOST_ALLOC, A + 3 * PAGE, PAGE, site2);
	gpu_use(200, A, 4 * PAGE, 40, 0, 400);
	gpu_use(300, A + 3 * PAGE, PAGE, 0, 7, 9);
	gpu_use(400, A + 100 * MB, PAGE, 1, 1, 1);
	a = ttmon_history_alloc(h, 0)->traffic->gpu;
	b = ttmon_history_alloc(h, 1)->traffic->gpu;
	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal(a->reads, 30);
	assert_int_equal(a->writes, 0);
	assert_int_equal(a->sectors, 300);
	assert_int_equal(a->first_ns, 200);
	assert_int_equal(a->last_ns, 200);
	assert_int_equal(b->reads, 10);
	assert_int_equal(b->writes, 7);
	assert_int_equal(b->sectors, 109);
	assert_int_equal(b->first_ns, 200);
	assert_int_equal(b->last_ns, 300);
}

static void managed_is_kept(void **state)
{
	struct ttmon_spot spots[4];

	(void)state;
	feed_alloc_at(h, T, 100, TTMON_METHOD_MANAGED, A, 10 * MB, site1);
	copies(A, 10 * MB, 100);
	ttmon_history_finish(h, 10 * SEC);
	assert_int_equal(advice_for(TTMON_METHOD_MANAGED, 1).said.advice, TTMON_ADVICE_KEEP);
	assert_int_equal(ttmon_history_hotspots(h, spots, 4), 0);
	assert_int_equal(ttmon_history_coldspots(h, spots, 4), 0);
}

static void hot_spots_are_unpinned_and_sorted(void **state)
{
	struct ttmon_spot hot[8];

	(void)state;
	feed_alloc_at(h, T, 100, TTMON_METHOD_CUSTOM, A, MB, site1);
	feed_alloc_at(h, T, 110, TTMON_METHOD_CUSTOM, A + MB, MB, site1);
	feed_alloc_at(h, T, 120, TTMON_METHOD_CUSTOM, A + 2 * MB, MB, site2);
	feed_alloc_at(h, T, 130, TTMON_METHOD_HOST_ALLOC, A + 3 * MB, MB, site2);
	feed_alloc_at(h, T, 140, TTMON_METHOD_CUSTOM, A + 4 * MB, MB, site2); /* never copied */
	feed_mmap(h, T, 150, A + 10 * MB, MB);
	feed_mmap(h, T, 160, A + 11 * MB, MB);
	copies(A, 1000, 1);
	copies(A + MB, 2000, 1);
	copies(A + 2 * MB, 5000, 1);
	copies(A + 3 * MB, 100000, 5);
	copies(A + 10 * MB, 4000, 1);
	copies(A + 11 * MB, 4000, 1);
	ttmon_history_finish(h, SEC);
	assert_int_equal(ttmon_history_hotspots(h, hot, 8), 4);
	assert_int_equal(hot[0].copied, 5000);
	assert_int_equal(hot[0].allocs, 2);
	/* Each mapping without a name has its own line; equal ones are in order of allocation. */
	assert_int_equal(hot[1].copied, 4000);
	assert_int_equal(hot[1].alloc_seq, 5);
	assert_int_equal(hot[2].alloc_seq, 6);
	assert_int_equal(hot[3].copied, 3000);
	assert_int_equal(hot[3].bytes, 2 * MB);
	assert_int_equal(ttmon_history_hotspots(h, hot, 1), 1);
}

static void mappings_of_one_name_are_one_line(void **state)
{
	struct ttmon_spot hot[8];

	(void)state;
	feed_map(h, T, 100, A, A + PAGE, "/data/weights");
	feed_map(h, T, 100, A + PAGE, A + 2 * PAGE, "/data/weights");
	feed_map(h, T, 100, A + MB, A + MB + PAGE, "/data/other");
	feed_maps_done(h, T, 100, 101, 3);
	copies(A, 100, 1);
	copies(A + PAGE, 100, 1);
	copies(A + MB, 150, 1);
	assert_int_equal(ttmon_history_hotspots(h, hot, 8), 2);
	assert_int_equal(hot[0].allocs, 2);
	assert_int_equal(hot[0].copied, 200);
}

/* Memory in no known mapping may be of any kind. */
static void made_up_memory_is_unknown(void **state)
{
	(void)state;
	copies(A, 1000, 100);
	assert_int_equal(advice_for(TTMON_METHOD_MMAP, 0).said.advice, TTMON_ADVICE_UNKNOWN);
	feed_map(h, T, SEC, A, A + 1000 * PAGE, "/data/weights");
	feed_maps_done(h, T, SEC, SEC + 1, 1);
	assert_int_equal(advice_for(TTMON_METHOD_MMAP, 0).said.advice, TTMON_ADVICE_PIN);
}

static void folded_allocations_are_remembered(void **state)
{
	struct ttmon_history *s = feed_new((struct ttmon_history_cfg){ .fold_ns = SEC,
								       .pageable_bps = 1000000000,
								       .pinned_bps = 4000000000,
								       .pinning_bps = 250000000,
								       .pin_call_ns = 1,
								       .unpin_call_ns = 1 });
	struct ttmon_spot hot[4];

	(void)state;
	for (uint64_t i = 0; i < 10; i++) {
		feed_alloc_at(s, T, (i + 1) * 10 * SEC, TTMON_METHOD_CUSTOM, A, 1000, site1);
		for (unsigned int c = 0; c < 7; c++)
			feed_copy(s, T, (i + 1) * 10 * SEC + c, TTMON_DIR_H2D, DEV, A, 1000);
		feed_free(s, T, (i + 1) * 10 * SEC + 100, (i + 1) * 10 * SEC + 110, TTMON_METHOD_CUSTOM, A);
		ttmon_history_tick(s, (i + 1) * 10 * SEC + 5 * SEC);
	}
	assert_int_equal(feed_totals(s).folded, 10);
	assert_int_equal(ttmon_history_hotspots(s, hot, 4), 1);
	assert_int_equal(hot[0].allocs, 10);
	assert_int_equal(hot[0].copies, 70);
	/*
	 * One at a time: one page that is allocated again and again pays, a pin for each allocation does not.
	 */
	assert_int_equal(hot[0].said.gain_ns, 70 * 750 - 16384 - 2);
	assert_int_equal(hot[0].said.low_ns, 70 * 750 - 10 * (16384 + 2));
	assert_int_equal(hot[0].said.advice, TTMON_ADVICE_ALLOCATE);
	assert_null(ttmon_history_alloc(s, hot[0].alloc_seq));
	ttmon_history_free(s);
}

/* One page at a time, each of which is kept: the figures are the same as when they are folded. */
static void peaks_are_of_one_time(void **state)
{
	struct ttmon_spot s;

	(void)state;
	for (uint64_t i = 0; i < 10; i++) {
		feed_alloc_at(h, T, (i + 1) * 1000, TTMON_METHOD_CUSTOM, A, 1000, site1);
		for (unsigned int c = 0; c < 7; c++)
			feed_copy(h, T, (i + 1) * 1000 + c, TTMON_DIR_D2H, A, DEV, 1000);
		feed_free(h, T, (i + 1) * 1000 + 100, (i + 1) * 1000 + 110, TTMON_METHOD_CUSTOM, A);
	}
	ttmon_history_finish(h, SEC);
	s = advice_for(TTMON_METHOD_CUSTOM, 1);
	assert_int_equal(s.said.gain_ns, 70 * 750 - 16384 - 2);
	assert_int_equal(s.said.low_ns, 70 * 750 - 10 * (16384 + 2));
	assert_int_equal(s.said.advice, TTMON_ADVICE_ALLOCATE);
	assert_int_equal(s.copies, 0);
	assert_int_equal(s.back_copies, 70);
}

/* Without configured prices, the prices that the trace shows are used. */
static void prices_of_the_trace(void **state)
{
	struct ttmon_history *t = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	struct ttmon_cost c;

	(void)state;
	feed_proc(t, T, 1, 77, 1, TTMON_PROC_SEEN);
	ttmon_history_cost(t, &c);
	assert_int_equal(c.pinning_bps, 1500000000);
	assert_int_equal(c.pin_call_ns, 50000);
	for (uint64_t i = 0; i < 20; i++) {
		uint64_t size = i % 2 ? MB : PAGE, at = (i + 1) * SEC;
		/* 1 ns a byte and 30 us a call. */
		struct ttmon_ev_alloc ev = { .h = feed_head(TTMON_EV_ALLOC, T, at + size + 30000),
					     .entry_ns = at,
					     .addr = A + i * MB,
					     .size = size,
					     .fn = FN_HOST,
					     .method = TTMON_METHOD_HOST_ALLOC };

		feed_alloc_full(t, ev, site1);
	}
	ttmon_history_finish(t, 100 * SEC);
	ttmon_history_cost(t, &c);
	assert_in_range(c.pinning_bps, 990000000, 1010000000);
	assert_in_range(c.pin_call_ns, 29000, 31000);
	assert_int_equal(c.pageable_bps, 6000000000);
	ttmon_history_free(t);
}

/* In order of the bytes moved, including pinned memory, while it is allocated. */
static void hottest_allocations(void **state)
{
	uint64_t seqs[8];

	(void)state;
	feed_alloc_at(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, MB, site1);
	feed_alloc_at(h, T, 110, TTMON_METHOD_CUSTOM, A + MB, MB, site1);
	feed_alloc_at(h, T, 120, TTMON_METHOD_HOST_ALLOC, A + 2 * MB, MB, site1);
	feed_alloc_at(h, T, 130, TTMON_METHOD_HOST_ALLOC, A + 3 * MB, MB, site1); /* never moved */
	feed_alloc_at(h, T, 140, TTMON_METHOD_HOST_ALLOC, A + 4 * MB, MB, site1);
	copies(A, 1000, 2);
	copies(A + MB, 100000, 3);
	copies(A + 2 * MB, 10, 1);
	feed_copy(h, T, 30 * MS, TTMON_DIR_D2H, A + 2 * MB, DEV, 10);
	copies(A + 4 * MB, 10, 9);
	feed_free(h, T, 40 * MS, 40 * MS + 10, TTMON_METHOD_HOST_ALLOC, A + 4 * MB);
	assert_int_equal(ttmon_history_hottest(h, seqs, 8), 3);
	assert_int_equal(seqs[0], 1);
	assert_int_equal(seqs[1], 0);
	assert_int_equal(seqs[2], 2);
	assert_int_equal(ttmon_history_hottest(h, seqs, 1), 1);
	assert_int_equal(seqs[0], 1);
}

/* Some transfers were not seen: advice to pin stands if it pays, other memory gets none. */
static void unseen_transfers(void **state)
{
	struct ttmon_know *know;
	struct ttmon_history *t;
	struct ttmon_spot *spots = NULL;
	size_t n = 0;

	(void)state;
	assert_int_equal(ttmon_know_new(&know), 0);
	ttmon_know_lost(know, 1u << TTMON_FAMILY_TRANSFER, SEC, 2 * SEC);
	t = feed_new((struct ttmon_history_cfg){ .keep_all = true, .know = know });
	feed_proc(t, T, 1, 77, 1, TTMON_PROC_SEEN);
	feed_alloc_at(t, T, 100, TTMON_METHOD_HOST_ALLOC, A, MB, site1);
	feed_alloc_at(t, T, 3 * SEC, TTMON_METHOD_HOST_ALLOC, A + MB, MB, site2);
	ttmon_history_finish(t, 5 * SEC);
	assert_int_equal(ttmon_history_advice(t, &spots, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(spots[0].said.advice, TTMON_ADVICE_UNKNOWN);
	assert_int_equal(spots[1].said.advice, TTMON_ADVICE_UNPIN);
	free(spots);
	for (unsigned int i = 0; i < 100; i++)
		feed_copy(t, T, 4 * SEC + i, TTMON_DIR_H2D, DEV, A, MB);
	assert_int_equal(ttmon_history_advice(t, &spots, &n), 0);
	assert_int_equal(spots[0].said.advice, TTMON_ADVICE_KEEP);
	assert_true(spots[0].said.at_least);
	free(spots);
	ttmon_history_free(t);
	ttmon_know_free(know);
}

static void advice_is_in_site_order(void **state)
{
	struct ttmon_spot *spots = NULL;
	size_t n = 0;

	(void)state;
	feed_proc(h, T + 1, 2, 78, 1, TTMON_PROC_SEEN);
	feed_alloc_at(h, T + 1, 100, TTMON_METHOD_HOST_ALLOC, A, PAGE, site1);
	feed_alloc_at(h, T, 110, TTMON_METHOD_HOST_ALLOC, A, PAGE, site2);
	feed_alloc_at(h, T, 120, TTMON_METHOD_CUSTOM, A + MB, PAGE, site1);
	feed_alloc_at(h, T, 130, TTMON_METHOD_HOST_ALLOC, A + 2 * MB, PAGE, site1);
	feed_alloc_at(h, T, 140, TTMON_METHOD_DEVICE, A + 3 * MB, PAGE, site1);
	ttmon_history_finish(h, SEC);
	assert_int_equal(ttmon_history_advice(h, &spots, &n), 0);
	assert_int_equal(n, 4); /* device memory is no host memory */
	for (size_t i = 1; i < n; i++) {
		assert_true(spots[i].site >= spots[i - 1].site);
		if (spots[i].site == spots[i - 1].site)
			assert_true(spots[i].proc >= spots[i - 1].proc);
	}
	assert_int_equal(spots[3].site, 2);
	free(spots);
}

/* Until their call sites are known, there is no advice about a hot buffer and a cold one. */
static void sites_that_are_not_found_yet(void **state)
{
	struct ttmon_spot s;

	(void)state;
	feed_alloc_at(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, 64 * PAGE, site1);
	feed_alloc_at(h, T, 200, TTMON_METHOD_HOST_ALLOC, A + MB, 64 * PAGE, site2);
	copies(A, 64 * PAGE, 32);
	assert_int_equal(ttmon_history_alloc(h, 0)->site, 0);
	s = advice_for(TTMON_METHOD_HOST_ALLOC, 0);
	assert_int_equal(s.allocs, 2);
	assert_int_equal(s.said.advice, TTMON_ADVICE_UNKNOWN);
	assert_int_equal(s.said.reason, TTMON_REASON_SITE);
	assert_int_equal(ttmon_history_coldspots(h, &s, 1), 0);
	ttmon_history_finish(h, 3 * SEC);
	assert_int_equal(advice_for(TTMON_METHOD_HOST_ALLOC, 1).said.advice, TTMON_ADVICE_KEEP);
	assert_int_equal(advice_for(TTMON_METHOD_HOST_ALLOC, 2).said.advice, TTMON_ADVICE_UNPIN);
}

/*
 * A call without a stack never gets a call site. The name that an allocator gave still distinguishes
 * its memory.
 */
static void memory_without_a_call_site(void **state)
{
	struct ttmon_ev_tag tag = { .h = feed_head(TTMON_EV_TAG, T, 300), .addr = A + MB, .tag = "batch" };
	struct ttmon_spot *spots = NULL;
	size_t n = 0;

	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_CUSTOM, A, 64 * PAGE);
	feed_alloc(h, T, 200, TTMON_METHOD_CUSTOM, A + MB, 64 * PAGE);
	APPLY(h, tag);
	copies(A, 64 * PAGE, 32);
	copies(A + MB, 64 * PAGE, 32);
	ttmon_history_finish(h, 3 * SEC);
	assert_int_equal(ttmon_history_advice(h, &spots, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(spots[0].alloc_seq, 0);
	assert_int_equal(spots[0].said.advice, TTMON_ADVICE_UNKNOWN);
	assert_int_equal(spots[0].said.reason, TTMON_REASON_SITE);
	assert_int_equal(spots[1].said.advice, TTMON_ADVICE_PIN);
	free(spots);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(pins_what_pays),
		TEST(only_touched_groups_have_to_be_pinned),
		TEST(unpins_what_is_cold),
		TEST(keeps_what_a_kernel_may_read_in_place),
		TEST(what_a_kernel_reads_is_not_cold),
		TEST(every_piece_of_a_range_is_used),
		TEST(memory_changes_hands_before_its_use_is_told),
		TEST(each_that_has_gone_has_its_part),
		TEST(the_last_uses_come_after_the_exit),
		TEST(time_of_a_use_is_not_that_of_its_process),
		TEST(use_of_a_range_is_shared_out),
		TEST(managed_is_kept),
		TEST(hot_spots_are_unpinned_and_sorted),
		TEST(mappings_of_one_name_are_one_line),
		TEST(made_up_memory_is_unknown),
		cmocka_unit_test(folded_allocations_are_remembered),
		TEST(sites_that_are_not_found_yet),
		TEST(memory_without_a_call_site),
		TEST(advice_is_in_site_order),
		TEST(peaks_are_of_one_time),
		TEST(prices_of_the_trace),
		TEST(hottest_allocations),
		TEST(unseen_transfers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
