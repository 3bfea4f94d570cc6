// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_history_life.c: processes, launches, retention and limits; and the same stream always gives the
 * same tables.
 */
#include "daemon/core/history/history_int.h"
#include "tests/unit/feed/history_feed.h"

#define T   10
#define A   0x40000000ULL
#define DEV 0x20000000ULL

static struct ttmon_history *h;

static int setup(void **state)
{
	(void)state;
	h = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	return 0;
}

static int setup_service(void **state)
{
	(void)state;
	h = feed_new((struct ttmon_history_cfg){ .fold_ns = 60 * SEC });
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ttmon_history_free(h);
	return 0;
}

static void process_announced_after_its_first_event(void **state)
{
	const struct ttmon_proc *p;

	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, PAGE);
	p = ttmon_history_proc(h, 0);
	assert_int_equal(p->tgid, T);
	assert_int_equal(p->start_ns, 0);
	assert_string_equal(p->comm, "");
	feed_proc(h, T, 110, 77, 5, TTMON_PROC_SEEN);
	assert_int_equal(ttmon_history_procs(h), 1);
	assert_int_equal(p->start_ns, 77);
	assert_int_equal(p->ppid, 5);
	assert_string_equal(p->comm, "prog");
	assert_int_equal(p->first_ns, 100);
	assert_int_equal(p->last_ns, 110);
	assert_null(ttmon_history_proc(h, 1));
}

static void exit_frees_everything(void **state)
{
	const struct ttmon_proc *p;

	(void)state;
	feed_proc(h, T, 1, 77, 1, TTMON_PROC_SEEN);
	feed_mmap(h, T, 90, A, PAGE);
	feed_alloc(h, T, 100, TTMON_METHOD_HOST_ALLOC, A + PAGE, PAGE);
	feed_alloc(h, T, 110, TTMON_METHOD_DEVICE, DEV, PAGE);
	feed_exit(h, T, 200);
	p = ttmon_history_proc(h, 0);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(ttmon_history_alloc(h, i)->end, TTMON_END_EXIT);
		assert_int_equal(ttmon_history_alloc(h, i)->free_ns, 200);
	}
	assert_int_equal(p->exit_ns, 200);
	assert_int_equal(p->exit_code, 256);
	assert_int_equal(p->live, 0);
	assert_int_equal(p->pinned_pages, 0);
	assert_int_equal(feed_totals(h).pinned_pages, 0);
	assert_null(ttmon_history_find(h, T, A));
	/* The process is unknown: no entry is made for its end. */
	feed_exit(h, T + 5, 300);
	assert_int_equal(ttmon_history_procs(h), 1);
}

static void late_events_of_an_exited_process(void **state)
{
	struct ttmon_ev_alloc ev = { .h = feed_head(TTMON_EV_ALLOC, T, 190),
				     .entry_ns = 180,
				     .addr = A,
				     .size = PAGE,
				     .fn = FN_HOST,
				     .method = TTMON_METHOD_HOST_ALLOC };

	(void)state;
	feed_proc(h, T, 1, 77, 1, TTMON_PROC_SEEN);
	feed_exit(h, T, 200);
	ttmon_history_apply(h, &ev.h, sizeof(ev), true);
	feed_copy(h, T, 195, TTMON_DIR_H2D, DEV, 0x999000, 10);
	assert_int_equal(ttmon_history_procs(h), 1);
	assert_int_equal(ttmon_history_alloc(h, 0)->end, TTMON_END_EXIT);
	assert_int_equal(ttmon_history_proc(h, 0)->pinned_pages, 0);
	assert_int_equal(feed_totals(h).late, 1);
	assert_int_equal(feed_totals(h).live, 0);
}

static void reused_pid_is_another_process(void **state)
{
	(void)state;
	feed_proc(h, T, 1, 77, 1, TTMON_PROC_SEEN);
	feed_alloc(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, PAGE);
	feed_proc(h, T, 200, 150, 1, TTMON_PROC_FORK); /* the exit of the first was lost */
	assert_int_equal(ttmon_history_procs(h), 2);
	assert_int_equal(ttmon_history_proc(h, 0)->exit_ns, 200);
	assert_int_equal(ttmon_history_alloc(h, 0)->end, TTMON_END_EXIT);
	feed_alloc(h, T, 210, TTMON_METHOD_HOST_ALLOC, A, PAGE);
	assert_int_equal(ttmon_history_alloc(h, 1)->proc, 1);
	assert_int_equal(ttmon_history_alloc(h, 1)->gen, 0);
	/* An event after the end of the process; the announcement of a new process was lost. */
	feed_exit(h, T, 300);
	feed_alloc(h, T, 310, TTMON_METHOD_HOST_ALLOC, A, PAGE);
	assert_int_equal(ttmon_history_procs(h), 3);
	assert_int_equal(ttmon_history_alloc(h, 2)->end, TTMON_END_LIVE);
	feed_proc(h, T, 320, 305, 1, TTMON_PROC_SEEN);
	assert_int_equal(ttmon_history_procs(h), 3);
	assert_int_equal(ttmon_history_proc(h, 2)->start_ns, 305);
}

static void text_facts_name_the_process(void **state)
{
	union feed_record rec = { 0 };
	struct ttmon_ev_text ev = { .h = feed_fact(TTMON_EV_PROC_NAME, T, 100), .what = TTMON_TEXT_CMDLINE, .len = 8 };
	const struct ttmon_proc *p;

	(void)state;
	memcpy(&rec, &ev, sizeof(ev));
	memcpy((char *)&rec + sizeof(ev), "a\0b c\0\0", 8);
	ttmon_history_apply(h, &rec.h, sizeof(ev) + 8, false); /* before anything else is known */
	p = ttmon_history_proc(h, 0);
	assert_string_equal(p->cmdline, "a b c");
	assert_null(p->exe);
	feed_proc(h, T, 90, 77, 1, TTMON_PROC_SEEN);
	assert_int_equal(ttmon_history_procs(h), 1);
	feed_exit(h, T, 150);
	/* It was read while the process ended: it is still about this process. */
	rec.h.ts_ns = 160;
	ttmon_history_apply(h, &rec.h, sizeof(ev) + 8, false);
	assert_int_equal(ttmon_history_procs(h), 1);
}

static void launches_are_differences(void **state)
{
	struct ttmon_ev_launches ev = {
		.h = feed_head(TTMON_EV_LAUNCHES, T, 100), .kernels = 10, .graphs = 2, .graph_copies = 1
	};
	const struct ttmon_proc *p;

	(void)state;
	APPLY(h, ev);
	ev.h.cpu = 7;
	ev.kernels = 5;
	APPLY(h, ev);
	ev.h.cpu = 0;
	ev.kernels = 12;
	APPLY(h, ev);
	ev.kernels = 11; /* older than the known number */
	APPLY(h, ev);
	p = ttmon_history_proc(h, 0);
	assert_int_equal(p->kernels, 17);
	feed_proc(h, T, 200, 77, 1, TTMON_PROC_EXEC); /* the counters go on */
	ev.h.ts_ns = 300;
	ev.kernels = 15;
	APPLY(h, ev);
	assert_int_equal(p->kernels, 20);
	assert_int_equal(p->graphs, 4);
	assert_int_equal(p->graph_copies, 2);
	assert_int_equal(feed_totals(h).kernels, 20);
}

static void blind_windows_are_kept(void **state)
{
	struct ttmon_ev_blind ev = { .h = feed_fact(TTMON_EV_BLIND, T, 100),
				     .object = 3,
				     .how = TTMON_BLIND_HELD,
				     .mapped_ns = 50,
				     .active_ns = 70 };
	const struct ttmon_blind *b;

	(void)state;
	APPLY(h, ev);
	assert_int_equal(ttmon_history_blinds(h, &b), 1);
	assert_int_equal(b[0].tgid, T);
	assert_int_equal(b[0].active_ns, 70);
	assert_true(b[0].held);
}

/*
 * Its EXIT was lost, and the daemon found that the process no longer exists. A process that has exited
 * is left as it is, and no entry is made for one that was never seen.
 */
static void found_to_be_gone(void **state)
{
	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_HOST_ALLOC, 0x10000, 4096);
	feed_gone(h, T, 500);
	assert_int_equal(ttmon_history_proc(h, 0)->exit_ns, 500);
	assert_int_equal(ttmon_history_proc(h, 0)->pinned_pages, 0);
	feed_gone(h, T, 900);
	assert_int_equal(ttmon_history_proc(h, 0)->exit_ns, 500);
	feed_gone(h, 4242, 900);
	assert_int_equal(ttmon_history_procs(h), 1);
}

/*
 * A minute of a busy program would fill the memory: above a number of freed records the oldest are
 * folded sooner.
 */
static void service_folds_sooner_under_pressure(void **state)
{
	const uint64_t extra = 1000;

	(void)state;
	for (uint64_t i = 0; i < TTMON_FREED_KEPT + extra; i++) {
		feed_alloc(h, T, SEC + 20 * i, TTMON_METHOD_HOST_ALLOC, 0x1000 * (i + 1), 4096);
		feed_free(h, T, SEC + 20 * i + 5, SEC + 20 * i + 6, TTMON_METHOD_HOST_ALLOC, 0x1000 * (i + 1));
	}
	ttmon_history_tick(h, 2 * SEC); /* much earlier than 60 s */
	assert_int_equal(feed_totals(h).folded, extra);
}

static void service_folds_after_a_while(void **state)
{
	const uint64_t frames[] = { 0x1234, 0 };
	const struct ttmon_site *s;

	(void)state;
	feed_alloc_at(h, T, SEC, TTMON_METHOD_HOST_ALLOC, A, PAGE, frames);
	feed_copy(h, T, SEC + 1, TTMON_DIR_H2D, DEV, A, 100);
	feed_free(h, T, 2 * SEC, 2 * SEC + 10, TTMON_METHOD_HOST_ALLOC, A);
	ttmon_history_tick(h, 61 * SEC);
	assert_non_null(ttmon_history_alloc(h, 0));
	ttmon_history_tick(h, 62 * SEC);
	assert_null(ttmon_history_alloc(h, 0));
	assert_int_equal(ttmon_history_allocs(h), 1);
	assert_int_equal(ttmon_history_next(h, 0), 1);
	assert_int_equal(feed_totals(h).folded, 1);
	assert_int_equal(feed_totals(h).events_kept, 0);
	s = ttmon_history_site(h, 1);
	assert_int_equal(s->folded, 1);
	assert_int_equal(s->allocs, 1);
	assert_int_equal(s->live, 0);
	assert_int_equal(s->h2d[TTMON_MEM_PINNED].bytes, 100);
	assert_false(feed_totals(h).incomplete);
}

static void dump_run_keeps_all(void **state)
{
	(void)state;
	feed_alloc(h, T, SEC, TTMON_METHOD_HOST_ALLOC, A, PAGE);
	feed_free(h, T, 2 * SEC, 2 * SEC + 10, TTMON_METHOD_HOST_ALLOC, A);
	ttmon_history_tick(h, 10000 * SEC);
	assert_non_null(ttmon_history_alloc(h, 0));
	assert_int_equal(feed_totals(h).folded, 0);
}

static void limit_takes_an_ended_one_then_a_live_one_that_stays_in_the_sums(void **state)
{
	struct ttmon_history *s = feed_new((struct ttmon_history_cfg){ .keep_all = true, .max_allocations = 3 });

	(void)state;
	feed_alloc(s, T, 100, TTMON_METHOD_HOST_ALLOC, A, PAGE);
	feed_alloc(s, T, 110, TTMON_METHOD_HOST_ALLOC, A + PAGE, PAGE);
	feed_alloc(s, T, 120, TTMON_METHOD_HOST_ALLOC, A + 2 * PAGE, PAGE);
	feed_free(s, T, 130, 131, TTMON_METHOD_HOST_ALLOC, A + PAGE);
	assert_false(feed_totals(s).limited);
	feed_alloc(s, T, 140, TTMON_METHOD_HOST_ALLOC, A + 3 * PAGE, PAGE);
	assert_null(ttmon_history_alloc(s, 1));
	assert_non_null(ttmon_history_alloc(s, 0));
	assert_int_equal(feed_totals(s).evicted, 1);
	assert_true(feed_totals(s).limited);
	/* Their call sites are known. */
	ttmon_history_tick(s, SEC);
	feed_alloc(s, T, SEC + 150, TTMON_METHOD_HOST_ALLOC, A + 4 * PAGE, PAGE);
	assert_null(ttmon_history_alloc(s, 0));
	assert_null(ttmon_history_find(s, T, A));
	assert_int_equal(feed_totals(s).evicted, 2);
	/* It has no record, and has not ended. */
	assert_int_equal(feed_totals(s).live, 4);
	assert_int_equal(feed_totals(s).pinned_pages, 4);
	assert_int_equal(feed_totals(s).method[TTMON_METHOD_HOST_ALLOC].ends, 1);
	assert_int_equal(ttmon_history_proc(s, 0)->condensed, 1);
	assert_false(ttmon_history_all_at_least(s));
	/* Copies from it are copies from pinned memory; the call site is unknown. */
	feed_copy(s, T, SEC + 155, TTMON_DIR_H2D, DEV, A + 8, 100);
	assert_int_equal(ttmon_history_proc(s, 0)->xfer[TTMON_RDIR_H2D][TTMON_MEM_PINNED].bytes, 100);
	assert_int_equal(ttmon_history_proc(s, 0)->unmatched, 0);
	assert_int_equal(ttmon_history_site(s, 0)->h2d[TTMON_MEM_PINNED].bytes, 100);
	feed_free(s, T, SEC + 160, SEC + 161, TTMON_METHOD_HOST_ALLOC, A);
	assert_int_equal(feed_totals(s).unknown_frees, 0);
	assert_int_equal(feed_totals(s).live, 3);
	assert_int_equal(feed_totals(s).pinned_pages, 3);
	assert_int_equal(feed_totals(s).method[TTMON_METHOD_HOST_ALLOC].ends, 2);
	assert_int_equal(ttmon_history_proc(s, 0)->condensed, 0);
	/* A second free of it is unknown. */
	feed_free(s, T, SEC + 170, SEC + 171, TTMON_METHOD_HOST_ALLOC, A);
	assert_int_equal(feed_totals(s).unknown_frees, 1);
	feed_exit(s, T, 2 * SEC);
	assert_int_equal(feed_totals(s).live, 0);
	assert_int_equal(feed_totals(s).pinned_bytes, 0);
	ttmon_history_free(s);
}

/*
 * Splitting makes a record while it uses another one: the record in use may be the one that has to be
 * removed.
 */
static void limit_while_mappings_are_split(void **state)
{
	struct ttmon_history *s = feed_new((struct ttmon_history_cfg){ .max_allocations = 2 });

	(void)state;
	feed_map(s, T, 50, A, A + 64 * PAGE, "/tmp/name");
	feed_maps_done(s, T, 50, 51, 1);
	for (uint64_t i = 0; i < 30; i++)
		feed_munmap(s, T, 100 + i, A + (2 * i + 1) * PAGE, PAGE);
	for (uint64_t i = 0; i < 30; i++)
		feed_copy(s, T, 200 + i, TTMON_DIR_H2D, DEV, A + (1 << 20) + i * 3 * PAGE, 2 * PAGE);
	feed_map(s, T, 300, A, A + 64 * PAGE, "/tmp/name");
	feed_map(s, T, 300, A + (1 << 20), A + (2 << 20), "");
	feed_map(s, T, 300, A + (3 << 20), A + (4 << 20), "");
	feed_maps_done(s, T, 300, 301, 3);
	feed_mremap(s, T, 390, 400, A + (1 << 20) + PAGE, 4 * PAGE, A + (8 << 20), 4 * PAGE);
	feed_proc(s, T + 1, 500, 5, T, TTMON_PROC_FORK);
	assert_true(feed_totals(s).evicted > 20);
	assert_int_equal(ttmon_history_next(s, ttmon_history_allocs(s)), ttmon_history_allocs(s));
	ttmon_history_free(s);
}

/*
 * The oldest record, a provisional mapping, is removed while the list that replaces it comes in: its
 * successor has its address.
 */
static void limit_while_a_list_comes_in(void **state)
{
	struct ttmon_history *s = feed_new((struct ttmon_history_cfg){ .keep_all = true, .max_allocations = 2 });

	(void)state;
	feed_copy(s, T, 100, TTMON_DIR_H2D, DEV, A, 100);
	feed_map(s, T, 200, A, A + PAGE, "");
	feed_map(s, T, 200, A + 4 * PAGE, A + 5 * PAGE, "");
	feed_maps_done(s, T, 200, 201, 2);
	assert_null(ttmon_history_alloc(s, 0));
	assert_ptr_equal(ttmon_history_find(s, T, A), ttmon_history_alloc(s, 1));
	assert_non_null(ttmon_history_alloc(s, 1));
	ttmon_history_free(s);
}

static void generations_stay_unique_when_addresses_are_forgotten(void **state)
{
	struct ttmon_history *s = feed_new((struct ttmon_history_cfg){ .fold_ns = 1 });
	uint32_t last = 0;

	(void)state;
	for (uint64_t i = 0; i < 70000; i++) {
		feed_alloc(s, T, 100 + i * 10, TTMON_METHOD_DEVICE, A + i * 256, 256);
		feed_free(s, T, 105 + i * 10, 106 + i * 10, TTMON_METHOD_DEVICE, A + i * 256);
		if (i % 1000 == 0)
			ttmon_history_tick(s, 100 + i * 10 + 4 * SEC);
	}
	for (unsigned int i = 0; i < 3; i++) {
		feed_alloc(s, T, 10 * SEC + i * 10, TTMON_METHOD_DEVICE, A, 256);
		assert_true(ttmon_history_find(s, T, A)->gen > last);
		last = ttmon_history_find(s, T, A)->gen;
		feed_free(s, T, 10 * SEC + i * 10 + 5, 10 * SEC + i * 10 + 6, TTMON_METHOD_DEVICE, A);
	}
	ttmon_history_free(s);
}

static void service_keeps_the_younger_events(void **state)
{
	struct ttmon_aev ev[1];
	const struct ttmon_alloc *a;

	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, PAGE);
	for (uint64_t i = 0; i < 10000; i++)
		feed_copy(h, T, 1000 + i, TTMON_DIR_H2D, DEV, A, 8);
	a = ttmon_history_alloc(h, 0);
	assert_int_equal(a->traffic->copies[TTMON_RDIR_H2D], 10000);
	assert_true(a->traffic->nr_events <= 4096);
	assert_int_equal(a->traffic->nr_events + a->traffic->events_dropped, 10000);
	assert_int_equal(feed_totals(h).events_kept, a->traffic->nr_events);
	assert_int_equal(feed_events(a, ev, 1), a->traffic->nr_events);
	assert_int_equal(ev[0].ts_ns, 1000 + a->traffic->events_dropped);
	assert_int_equal(feed_totals(h).events_trimmed, a->traffic->events_dropped);
	assert_int_equal(feed_totals(h).events_dropped, 0);
	assert_false(feed_totals(h).incomplete);
}

/*
 * If everything is kept, an allocation still has no more events than can be read again in one row.
 */
static void rows_have_a_bound(void **state)
{
	static const uint32_t n = 1300000;
	const struct ttmon_alloc *a;
	struct ttmon_aev ev[1];

	(void)state;
	feed_alloc(h, T, 100, TTMON_METHOD_HOST_ALLOC, A, PAGE);
	for (uint64_t i = 0; i < n; i++)
		feed_copy(h, T, 1000 + i, TTMON_DIR_H2D, DEV, A, 8);
	a = ttmon_history_alloc(h, 0);
	assert_int_equal(a->traffic->copies[TTMON_RDIR_H2D], n);
	assert_in_range(a->traffic->nr_events, TTMON_HISTORY_ROW_EVENTS / 2, TTMON_HISTORY_ROW_EVENTS);
	assert_int_equal(a->traffic->nr_events + a->traffic->events_dropped, n);
	assert_int_equal(feed_totals(h).events_kept, a->traffic->nr_events);
	assert_int_equal(feed_events(a, ev, 1), a->traffic->nr_events);
	assert_int_equal(ev[0].ts_ns, 1000 + a->traffic->events_dropped);
}

static void lines_of_exited_processes_are_reused(void **state)
{
	(void)state;
	/* Processes that did nothing are removed at once. */
	for (uint32_t i = 0; i < 1000; i++) {
		feed_proc(h, 100 + i, i * 3 * SEC, i * 3 * SEC + 1, 1, TTMON_PROC_SEEN);
		feed_exit(h, 100 + i, i * 3 * SEC + 10);
		ttmon_history_tick(h, (i * 3 + 2) * SEC + 20);
	}
	assert_int_equal(ttmon_history_procs(h), 1);
	/*
	 * Processes that did something are removed when 4096 younger ones have ended and none of their data is
	 * kept.
	 */
	for (uint32_t i = 0; i < 10000; i++) {
		uint64_t now = 10000 * SEC + i * 100 * MS;

		feed_proc(h, 5000 + i, now, now, 1, TTMON_PROC_SEEN);
		feed_alloc(h, 5000 + i, now + 1, TTMON_METHOD_HOST_ALLOC, A, PAGE);
		feed_exit(h, 5000 + i, now + 2);
		ttmon_history_tick(h, now + 100 * MS);
	}
	assert_true(ttmon_history_procs(h) < 4096 + 700);
	assert_int_equal(feed_totals(h).pins, 10000);
	for (size_t i = 0; i < ttmon_history_procs(h); i++)
		assert_non_null(ttmon_history_proc(h, i));
}

static void dump_run_keeps_all_processes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		feed_proc(h, 100 + i, i * 3 * SEC + 1, i + 1, 1, TTMON_PROC_SEEN);
		feed_exit(h, 100 + i, i * 3 * SEC + 10);
		ttmon_history_tick(h, (i * 3 + 2) * SEC + 20);
	}
	assert_int_equal(ttmon_history_procs(h), 100);
}

static uint64_t digest(uint64_t d, const void *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		d = (d ^ ((const uint8_t *)data)[i]) * 0x100000001b3ULL;
	return d;
}

/*
 * Live allocations that CUDA, the program or the kernel made do not overlap others of their kind, and
 * are found by address.
 */
static void check_live(const struct ttmon_history *r)
{
	for (uint64_t i = ttmon_history_next(r, 0); i < ttmon_history_allocs(r); i = ttmon_history_next(r, i + 1)) {
		const struct ttmon_alloc *a = ttmon_history_alloc(r, i), *b;

		if (a->free_ns || a->method > TTMON_METHOD_DEVICE || a->method == TTMON_METHOD_REGISTERED)
			continue;
		b = ttmon_history_find(r, ttmon_history_proc(r, a->proc)->tgid, a->addr);
		assert_non_null(b);
		assert_true(b->addr <= a->addr && a->addr < b->addr + b->size);
		for (uint64_t j = ttmon_history_next(r, i + 1); j < ttmon_history_allocs(r);
		     j = ttmon_history_next(r, j + 1)) {
			b = ttmon_history_alloc(r, j);
			if (b->free_ns || b->proc != a->proc)
				continue;
			if (b->method == TTMON_METHOD_REGISTERED || b->method > TTMON_METHOD_DEVICE)
				continue;
			if (a->method == b->method && (a->states & TTMON_ST_EXTENT) == (b->states & TTMON_ST_EXTENT))
				assert_true(a->addr + a->size <= b->addr || b->addr + b->size <= a->addr);
		}
	}
}

/*
 * When the history is notified of the time: now and then; each 10 ms, also in quiet times; or each 10
 * ms, but without events only if it has something to do.
 */
enum ticks { NOW_AND_THEN, EACH, WHEN_DUE };

/*
 * Lets time pass, 10 ms at a time. *due_ns is 0 if an event came. Returns a digest of the data that
 * waits for time.
 */
static uint64_t pass(struct ttmon_history *r, enum ticks ticks, uint64_t *ts, uint64_t to_ns, uint64_t *due_ns,
		     uint64_t d)
{
	for (; *ts < to_ns; *ts += 10 * MS) {
		uint64_t waiting[4];

		if (ticks == EACH || *ts >= *due_ns)
			*due_ns = ttmon_history_tick(r, *ts);
		else
			ttmon_history_now(r, *ts, false);
		waiting[0] = r->siteq.n;
		waiting[1] = r->nr_freed;
		waiting[2] = r->exited.n;
		waiting[3] = r->live.waiting;
		d = digest(d, waiting, sizeof(waiting));
	}
	return d;
}

/* A random stream of all kinds of events; returns a digest of everything that can be seen. */
static uint64_t random_run(uint64_t x, enum ticks ticks)
{
	struct ttmon_history *r = feed_new((struct ttmon_history_cfg){ .fold_ns = SEC, .live.cold_ns = 2 * SEC });
	uint64_t d = 1, ts = SEC, due_ns = 0;
	struct ttmon_live_line line;
	struct ttmon_spot *spots = NULL;
	size_t n = 0;

	feed_object(r, 1, 0, 0x11, "/bin/p");
	for (unsigned int i = 0; i < 6000; i++) {
		uint32_t tgid = T + (uint32_t)(x >> 40) % 4;
		uint64_t addr = A + ((x >> 20) % 256) * 1024, size = 1 + (x >> 8) % 8192;
		const uint64_t frames[] = { 0x400000 + (x >> 12) % 16 * 16, 0 };
		unsigned int method = 1 + (unsigned int)(x >> 4) % TTMON_METHOD_CUSTOM;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		ts += x % (2 * MS);
		switch (x % 16) {
		case 0 ... 3:
			feed_alloc_at(r, tgid, ts, method, addr, size, frames);
			break;
		case 4 ... 6:
			feed_free(r, tgid, ts - x % 1000, ts, method, addr);
			break;
		case 7 ... 9:
			feed_copy(r, tgid, ts, (unsigned int)(x >> 16) % TTMON_DIR_MAX, addr, A + (x >> 30) % 262144,
				  size);
			break;
		case 10:
			feed_mmap(r, tgid, ts, addr & ~4095ULL, size);
			break;
		case 11:
			feed_munmap(r, tgid, ts, addr & ~4095ULL, size);
			break;
		case 12:
			feed_mremap(r, tgid, ts - 100, ts, addr & ~4095ULL, size, A + ((x >> 30) % 64) * PAGE, size);
			break;
		case 13:
			feed_map(r, tgid, ts, A, A + 64 * PAGE, x & 64 ? "/tmp/f" : "");
			feed_map(r, tgid, ts, A + 128 * PAGE, A + 200 * PAGE, "");
			feed_maps_done(r, tgid, ts - x % (4 * MS), ts, 2);
			feed_text(r, tgid, ts, 0x400000, 0x400080, 0, 1);
			break;
		case 14:
			feed_proc(r, tgid, ts, 1 + x % 2, T + (uint32_t)(x >> 50) % 4, (uint32_t)(x >> 33) % 3);
			break;
		default:
			if (x % 5 == 0)
				feed_exit(r, tgid, ts);
			break;
		}
		due_ns = 0;
		if (ticks == NOW_AND_THEN && i % 10 == 0)
			ttmon_history_tick(r, ts);
		else if (ticks != NOW_AND_THEN)
			d = pass(r, ticks, &ts, ts + (x % 97 ? 10 * MS : (x >> 32) % (8 * SEC)), &due_ns, d);
	}
	ttmon_history_finish(r, ts + 10 * SEC);
	check_live(r);
	for (uint64_t seq = ttmon_history_next(r, 0); seq < ttmon_history_allocs(r);
	     seq = ttmon_history_next(r, seq + 1)) {
		const struct ttmon_alloc *a = ttmon_history_alloc(r, seq);
		struct ttmon_aev ev = { 0 };
		uint32_t pos = 0;
		uint64_t v[] = { a->addr,
				 a->size,
				 a->alloc_ns,
				 a->free_ns,
				 a->site,
				 a->ordinal,
				 a->gen,
				 a->proc,
				 a->method,
				 a->end,
				 a->bits,
				 a->states,
				 a->traffic->nr_events,
				 a->traffic->last_copy_ns };

		d = digest(d, v, sizeof(v));
		while (ttmon_history_event(a, &pos, &ev))
			d = digest(d, &ev.ts_ns, sizeof(ev.ts_ns)) + ev.offset + ev.bytes;
	}
	for (uint64_t seq = 1; ttmon_history_live(r, seq, &line); seq = line.seq + 1) {
		uint64_t v[] = { line.seq, line.ts_ns, line.said, line.alloc, line.copies };

		d = digest(d, v, sizeof(v));
	}
	for (size_t i = 0; i < ttmon_history_sites(r); i++)
		d += ttmon_history_site(r, i)->key ^ ttmon_history_site(r, i)->peak_bytes;
	assert_int_equal(ttmon_history_advice(r, &spots, &n), 0);
	for (size_t i = 0; i < n; i++) {
		uint64_t v[] = { spots[i].proc, spots[i].site, spots[i].method, spots[i].copies, spots[i].alloc_seq };

		d = digest(d, v, sizeof(v));
	}
	free(spots);
	/* No counter wraps, whatever comes. */
	for (size_t i = 0; i < ttmon_history_procs(r); i++) {
		const struct ttmon_proc *p = ttmon_history_proc(r, i);

		assert_true(p->live < 10000);
		assert_true(p->pinned_pages < 10000);
		assert_true(p->pinned_bytes < 1 << 30);
		if (p->exit_ns)
			assert_int_equal(p->live + p->pinned_pages + p->pinned_bytes, 0);
	}
	assert_true(feed_totals(r).pinned_pages < 10000);
	ttmon_history_free(r);
	return d;
}

static void same_stream_same_tables(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 5; seed++) {
		uint64_t d = random_run(seed * 88172645463325252ULL, NOW_AND_THEN);

		assert_int_equal(random_run(seed * 88172645463325252ULL, NOW_AND_THEN), d);
		assert_int_not_equal(random_run((seed + 7) * 88172645463325252ULL, NOW_AND_THEN), d);
	}
}

static void time_has_nothing_to_do_before_it_is_due(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 7; seed++)
		assert_int_equal(random_run(seed * 88172645463325252ULL, WHEN_DUE),
				 random_run(seed * 88172645463325252ULL, EACH));
}

int main(void)
{
#define TEST(f)	   cmocka_unit_test_setup_teardown(f, setup, teardown)
#define SERVICE(f) cmocka_unit_test_setup_teardown(f, setup_service, teardown)
	const struct CMUnitTest tests[] = {
		TEST(process_announced_after_its_first_event),
		TEST(exit_frees_everything),
		TEST(late_events_of_an_exited_process),
		TEST(reused_pid_is_another_process),
		TEST(text_facts_name_the_process),
		TEST(launches_are_differences),
		TEST(blind_windows_are_kept),
		SERVICE(found_to_be_gone),
		SERVICE(service_folds_after_a_while),
		SERVICE(service_folds_sooner_under_pressure),
		TEST(dump_run_keeps_all),
		cmocka_unit_test(limit_takes_an_ended_one_then_a_live_one_that_stays_in_the_sums),
		cmocka_unit_test(limit_while_mappings_are_split),
		cmocka_unit_test(limit_while_a_list_comes_in),
		cmocka_unit_test(generations_stay_unique_when_addresses_are_forgotten),
		SERVICE(service_keeps_the_younger_events),
		SERVICE(lines_of_exited_processes_are_reused),
		TEST(dump_run_keeps_all_processes),
		TEST(rows_have_a_bound),
		cmocka_unit_test(same_stream_same_tables),
		cmocka_unit_test(time_has_nothing_to_do_before_it_is_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
