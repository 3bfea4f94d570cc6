// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_history_quota.c: fair shares: a flood of one user costs only that user. The sums of a history
 * with very little room are those of one with room for everything, for any stream. Records of other
 * users stay, and the user that lost records is named.
 */
#include "daemon/core/history/history_int.h"
#include "tests/unit/feed/history_feed.h"

#define EVIL   10
#define VICTIM 20
#define A      0x40000000ULL
#define DEV    0x20000000ULL

static void feed_uid(struct ttmon_history *h, uint32_t tgid, uint64_t ts, const char *uid)
{
	union feed_record r = { 0 };
	struct ttmon_ev_text *ev = (struct ttmon_ev_text *)&r;
	size_t n = strlen(uid);

	ev->h = feed_fact(TTMON_EV_PROC_NAME, tgid, ts);
	ev->what = TTMON_TEXT_UID;
	ev->len = (uint32_t)n;
	memcpy(ev->text, uid, n);
	ttmon_history_apply(h, &ev->h, sizeof(*ev) + ((n + 8) & ~7ULL), false);
}

static struct ttmon_history *make(struct ttmon_history_cfg cfg)
{
	struct ttmon_history *h = feed_new(cfg);

	feed_proc(h, EVIL, 1, 5, 1, TTMON_PROC_SEEN);
	feed_proc(h, VICTIM, 1, 6, 1, TTMON_PROC_SEEN);
	feed_uid(h, EVIL, 1, "1001");
	feed_uid(h, VICTIM, 1, "1002");
	return h;
}

static const struct ttmon_proc *proc_of(const struct ttmon_history *h, uint32_t tgid)
{
	return &ttmon_procs_find(h, tgid)->pub;
}

static uint64_t paid(const struct ttmon_history *h, unsigned int what, uint32_t uid)
{
	struct ttmon_quota_row rows[TTMON_QUOTA_ROWS];
	uint32_t n = ttmon_history_quotas(h, rows);

	for (uint32_t i = 0; i < n; i++)
		if (rows[i].what == what && rows[i].uid == uid)
			return rows[i].paid;
	return 0;
}

/* Of 270 allocations 100 have a record: all of the other user's do. */
static void a_flood_costs_who_makes_it(void **state)
{
	struct ttmon_history *h = make((struct ttmon_history_cfg){ .max_allocations = 100 });
	struct ttmon_quota_row rows[TTMON_QUOTA_ROWS];

	(void)state;
	for (uint64_t i = 0; i < 20; i++)
		feed_alloc(h, VICTIM, 100 + i, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE);
	for (uint64_t i = 0; i < 5; i++)
		feed_free(h, VICTIM, 130 + i, 131 + i, TTMON_METHOD_HOST_ALLOC, A + i * PAGE);
	for (uint64_t i = 0; i < 250; i++) {
		feed_alloc(h, EVIL, SEC + i * MS, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE);
		ttmon_history_tick(h, SEC + i * MS);
	}
	for (uint64_t seq = 0; seq < 20; seq++)
		assert_non_null(ttmon_history_alloc(h, seq));
	assert_int_equal(proc_of(h, VICTIM)->pinned_bytes, 15 * PAGE);
	assert_int_equal(proc_of(h, VICTIM)->condensed, 0);
	assert_false(proc_of(h, VICTIM)->limited);
	assert_int_equal(ttmon_advice_completeness(h, proc_of(h, VICTIM)->idx) * 10, 10);
	assert_int_equal(proc_of(h, EVIL)->pinned_bytes, 250 * PAGE);
	assert_int_equal(proc_of(h, EVIL)->pinned_pages, 250);
	assert_int_equal(proc_of(h, EVIL)->condensed, 170);
	assert_true(ttmon_history_pinned_known(h, proc_of(h, EVIL)));
	assert_int_equal(feed_totals(h).pinned_bytes, 265 * PAGE);
	assert_int_equal(feed_totals(h).evicted, 170);
	assert_int_equal(ttmon_history_quotas(h, rows), 1);
	assert_int_equal(rows[0].what, TTMON_QUOTA_RECORDS);
	assert_int_equal(rows[0].uid, 1001);
	assert_int_equal(rows[0].tgid, EVIL);
	assert_int_equal(rows[0].paid, 170);
	/* A later allocation has a record too. */
	feed_alloc(h, VICTIM, 3 * SEC, TTMON_METHOD_HOST_ALLOC, A, PAGE);
	assert_non_null(ttmon_history_find(h, VICTIM, A));
	feed_exit(h, EVIL, 4 * SEC);
	assert_int_equal(proc_of(h, EVIL)->pinned_bytes, 0);
	assert_int_equal(feed_totals(h).pinned_bytes, 16 * PAGE);
	assert_int_equal(feed_totals(h).pinned_pages, 16);
	assert_int_equal(h->nr_condensed, 0);
	assert_null(h->condensed);
	ttmon_history_free(h);
}

/* Among the processes of one user, the one with most records loses them. */
static void processes_of_a_user_have_their_shares_too(void **state)
{
	struct ttmon_history *h = make((struct ttmon_history_cfg){ .max_allocations = 50 });

	(void)state;
	feed_uid(h, VICTIM, 2, "1001");
	for (uint64_t i = 0; i < 10; i++)
		feed_alloc(h, VICTIM, 100 + i, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE);
	for (uint64_t i = 0; i < 100; i++)
		feed_alloc(h, EVIL, 200 + i, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE);
	for (uint64_t seq = 0; seq < 10; seq++)
		assert_non_null(ttmon_history_alloc(h, seq));
	ttmon_history_free(h);
}

/* A child whose announcement was not seen belongs to its parent's user. */
static void children_belong_to_their_parents_user(void **state)
{
	struct ttmon_history *h = make((struct ttmon_history_cfg){ .max_allocations = 50 });

	(void)state;
	for (uint64_t i = 0; i < 20; i++)
		feed_alloc(h, VICTIM, 100 + i, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE);
	for (uint32_t child = 0; child < 10; child++) {
		feed_proc(h, 1000 + child, 200, 200 + child, EVIL, TTMON_PROC_FORK);
		for (uint64_t i = 0; i < 10; i++)
			feed_alloc(h, 1000 + child, 300 + i, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE);
	}
	for (uint64_t seq = 0; seq < 20; seq++)
		assert_non_null(ttmon_history_alloc(h, seq));
	assert_int_equal(paid(h, TTMON_QUOTA_RECORDS, 1001), 70);
	ttmon_history_free(h);
}

/* Allocations that ended before the user was known count for that user too. */
static void a_user_that_is_told_late_pays(void **state)
{
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ .max_allocations = 50 });

	(void)state;
	feed_proc(h, EVIL, 1, 5, 1, TTMON_PROC_SEEN);
	feed_proc(h, VICTIM, 1, 6, 1, TTMON_PROC_SEEN);
	for (uint64_t i = 0; i < 40; i++) {
		feed_alloc(h, EVIL, 100 + i, TTMON_METHOD_HOST_ALLOC, A, PAGE);
		feed_free(h, EVIL, 100 + i, 100 + i, TTMON_METHOD_HOST_ALLOC, A);
	}
	for (uint64_t i = 0; i < 10; i++) {
		feed_alloc(h, VICTIM, 200 + i, TTMON_METHOD_HOST_ALLOC, A, PAGE);
		feed_free(h, VICTIM, 200 + i, 200 + i, TTMON_METHOD_HOST_ALLOC, A);
	}
	feed_uid(h, VICTIM, 250, "1002");
	/* One list has both, and its user is unknown. */
	for (uint64_t i = 0; i < 20; i++)
		feed_alloc(h, EVIL, 260 + i, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE);
	feed_uid(h, EVIL, 290, "1001");
	for (uint64_t i = 0; i < 100; i++)
		feed_alloc(h, EVIL, 300 + i, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE);
	for (uint64_t seq = 40; seq < 50; seq++)
		assert_non_null(ttmon_history_alloc(h, seq));
	assert_int_equal(paid(h, TTMON_QUOTA_RECORDS, 1002), 0);
	assert_int_equal(paid(h, TTMON_QUOTA_RECORDS, 1001) + paid(h, TTMON_QUOTA_RECORDS, UINT32_MAX), 120);
	ttmon_history_free(h);
}

/*
 * Ended allocations wait in the lists of their user: those of other users are not folded for them.
 */
static void a_churn_folds_its_own(void **state)
{
	struct ttmon_history *h = make((struct ttmon_history_cfg){ 0 });

	(void)state;
	feed_alloc(h, VICTIM, SEC, TTMON_METHOD_HOST_ALLOC, A, PAGE);
	feed_free(h, VICTIM, SEC + 1, SEC + 2, TTMON_METHOD_HOST_ALLOC, A);
	for (uint64_t i = 0; i < TTMON_FREED_KEPT + 1000; i++) {
		feed_alloc(h, EVIL, SEC + 20 * i, TTMON_METHOD_HOST_ALLOC, A, PAGE);
		feed_free(h, EVIL, SEC + 20 * i + 5, SEC + 20 * i + 6, TTMON_METHOD_HOST_ALLOC, A);
	}
	ttmon_history_tick(h, 2 * SEC);
	assert_int_equal(feed_totals(h).folded, 1001);
	assert_non_null(ttmon_history_alloc(h, 0));
	assert_int_equal(proc_of(h, VICTIM)->folded_to_ns, 0);
	assert_int_not_equal(proc_of(h, EVIL)->folded_to_ns, 0);
	ttmon_history_free(h);
}

/* The same holds for entries of processes that ended. */
static void ended_processes_have_their_shares(void **state)
{
	struct ttmon_history *h = make((struct ttmon_history_cfg){ .fold_ns = 1 });

	(void)state;
	feed_alloc(h, VICTIM, SEC, TTMON_METHOD_HOST_ALLOC, A, PAGE);
	feed_exit(h, VICTIM, SEC + 10);
	for (uint32_t i = 0; i < 2 * TTMON_EXITED_KEPT; i++) {
		uint64_t ts = 2 * SEC + i * 10 * MS;

		feed_proc(h, 1000 + i, ts, ts, EVIL, TTMON_PROC_FORK);
		feed_alloc(h, 1000 + i, ts, TTMON_METHOD_HOST_ALLOC, A, PAGE);
		feed_exit(h, 1000 + i, ts + 1);
		ttmon_history_tick(h, ts + 2);
	}
	assert_true(ttmon_history_procs(h) < TTMON_EXITED_KEPT + 1000);
	assert_non_null(ttmon_procs_find(h, VICTIM));
	assert_int_equal(proc_of(h, VICTIM)->uid, 1002);
	assert_int_equal(proc_of(h, VICTIM)->allocs, 1);
	ttmon_history_free(h);
}

static void events_have_their_shares(void **state)
{
	struct ttmon_history *h = make((struct ttmon_history_cfg){ .keep_all = true, .max_events = 200 });
	const struct ttmon_alloc *a;

	(void)state;
	for (uint64_t i = 0; i < 10; i++) {
		feed_alloc(h, EVIL, 100 + i, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE);
		for (uint64_t c = 0; c < 30; c++)
			feed_copy(h, EVIL, 200 + i, TTMON_DIR_H2D, DEV, A + i * PAGE, 100);
	}
	feed_alloc(h, VICTIM, 1000, TTMON_METHOD_HOST_ALLOC, A, PAGE);
	for (uint64_t c = 0; c < 50; c++)
		feed_copy(h, VICTIM, 2000 + c, TTMON_DIR_H2D, DEV, A, 100);
	a = ttmon_history_find(h, VICTIM, A);
	assert_int_equal(a->traffic->nr_events, 50);
	assert_int_equal(a->traffic->events_dropped, 0);
	assert_true(feed_totals(h).events_kept <= 200);
	assert_int_equal(paid(h, TTMON_QUOTA_EVENTS, 1002), 0);
	assert_int_equal(paid(h, TTMON_QUOTA_EVENTS, 1001), feed_totals(h).events_dropped);
	/* The sums are complete. */
	assert_int_equal(proc_of(h, EVIL)->xfer[TTMON_RDIR_H2D][TTMON_MEM_PINNED].copies, 300);
	assert_false(ttmon_history_all_at_least(h));
	ttmon_history_free(h);
}

/* A program that invents call stacks cannot deprive others of call sites. */
static void call_sites_have_their_shares(void **state)
{
	struct ttmon_history *h = make((struct ttmon_history_cfg){ .fold_ns = 1 });
	uint64_t frames[] = { 0, 0 };
	uint32_t most = TTMON_SITES_MAX / 4;

	(void)state;
	for (uint64_t i = 0; i < most + 1000; i++) {
		uint32_t tgid = EVIL + (uint32_t)(i / 60000) * 1000;

		if (i % 60000 == 0 && i)
			feed_proc(h, tgid, SEC, 1000, EVIL, TTMON_PROC_FORK);
		frames[0] = 0x400000 + i * 16;
		feed_alloc_at(h, tgid, SEC + 20 * i, TTMON_METHOD_DEVICE, A, PAGE, frames);
		feed_free(h, tgid, SEC + 20 * i + 5, SEC + 20 * i + 6, TTMON_METHOD_DEVICE, A);
	}
	ttmon_history_finish(h, 100 * SEC);
	assert_int_equal(ttmon_history_sites(h), most + 1);
	assert_int_equal(paid(h, TTMON_QUOTA_NAMES, 1001), 1000);
	frames[0] = 0x10;
	feed_alloc_at(h, VICTIM, 101 * SEC, TTMON_METHOD_DEVICE, A, PAGE, frames);
	ttmon_history_finish(h, 110 * SEC);
	assert_int_equal(ttmon_history_sites(h), most + 2);
	assert_int_equal(ttmon_history_find(h, VICTIM, A)->site, most + 1);
	assert_false(feed_totals(h).incomplete);
	ttmon_history_free(h);
}

static void rows_of_errors_have_their_shares(void **state)
{
	struct ttmon_history *h = make((struct ttmon_history_cfg){ 0 });
	const struct ttmon_error_count *errors;

	(void)state;
	for (int32_t i = 0; i < 2 * (int32_t)TTMON_ERRORS_MAX; i++) {
		struct ttmon_ev_free ev = { .h = feed_head(TTMON_EV_FREE, EVIL, 100), .fn = FN_FREE, .err = i + 1 };

		APPLY(h, ev);
	}
	assert_int_equal(ttmon_history_errors(h, &errors), TTMON_ERRORS_MAX / 4);
	assert_int_equal(feed_totals(h).failed, 2 * TTMON_ERRORS_MAX);
	{
		struct ttmon_ev_free ev = { .h = feed_head(TTMON_EV_FREE, VICTIM, 200), .fn = FN_FREE, .err = 7 };

		APPLY(h, ev);
	}
	assert_int_equal(ttmon_history_errors(h, &errors), TTMON_ERRORS_MAX / 4 + 1);
	assert_false(feed_totals(h).incomplete);
	ttmon_history_free(h);
}

/*
 * A line of advice that was written while another process floods the ring can still be read a second
 * later.
 */
static void live_advice_has_its_shares(void **state)
{
	struct ttmon_history *h = make(
		(struct ttmon_history_cfg){ .live = { .pin = TTMON_PIN_FIRST, .lines = 1024, .cold_ns = 3600 * SEC } });
	struct ttmon_live_line line;
	struct ttmon_live_totals t;
	uint64_t seq;

	(void)state;
	feed_alloc(h, VICTIM, SEC, TTMON_METHOD_CUSTOM, A, PAGE);
	/* A process that is alone may write any number of lines. */
	for (uint64_t i = 0; i < 500; i++) {
		feed_alloc(h, EVIL, SEC + i, TTMON_METHOD_CUSTOM, A + i * PAGE, PAGE);
		feed_copy(h, EVIL, SEC + i, TTMON_DIR_H2D, DEV, A + i * PAGE, PAGE);
	}
	ttmon_history_live_totals(h, &t);
	assert_int_equal(t.next_seq - 1, 500);
	feed_copy(h, VICTIM, 3 * SEC, TTMON_DIR_H2D, DEV, A, PAGE);
	ttmon_history_live_totals(h, &t);
	seq = t.next_seq - 1;
	for (uint64_t i = 0; i < 5000; i++) {
		feed_alloc(h, EVIL, 3 * SEC + i, TTMON_METHOD_CUSTOM, A + (1000 + i) * PAGE, PAGE);
		feed_copy(h, EVIL, 3 * SEC + i, TTMON_DIR_H2D, DEV, A + (1000 + i) * PAGE, PAGE);
	}
	assert_true(ttmon_history_live(h, seq, &line));
	assert_int_equal(line.seq, seq);
	assert_int_equal(line.tgid, VICTIM);
	assert_int_equal(paid(h, TTMON_QUOTA_ADVICE, 1001), 5000 - 1024 / 8);
	assert_int_equal(paid(h, TTMON_QUOTA_ADVICE, 1002), 0);
	ttmon_history_free(h);
}

/*
 * If mappings were removed to make room, host memory is not taken for device memory, and the list is
 * not requested again and again.
 */
static void mappings_that_made_room_are_not_known(void **state)
{
	struct ttmon_history *h = make((struct ttmon_history_cfg){ .max_allocations = 40 });
	uint32_t tgids[4];

	(void)state;
	feed_clock(h, 4096, TTMON_OPT_MMAP);
	for (uint64_t i = 0; i < 10; i++)
		feed_alloc(h, VICTIM, 100 + i, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE);
	for (uint64_t i = 0; i < 100; i++)
		feed_map(h, EVIL, 200, A + 2 * i * PAGE, A + (2 * i + 1) * PAGE, "");
	feed_maps_done(h, EVIL, 200, 201, 100);
	for (uint64_t seq = 0; seq < 10; seq++)
		assert_non_null(ttmon_history_alloc(h, seq));
	assert_false(proc_of(h, EVIL)->maps_known);
	assert_int_not_equal(paid(h, TTMON_QUOTA_MAPPINGS, 1001), 0);
	for (uint64_t i = 0; i < 100; i++)
		feed_copy(h, EVIL, SEC + i, TTMON_DIR_DEFAULT, DEV, A + 2 * i * PAGE, 100);
	assert_int_equal(proc_of(h, EVIL)->xfer[TTMON_RDIR_D2D][TTMON_MEM_UNKNOWN].copies, 0);
	ttmon_history_tick(h, 10 * SEC);
	assert_int_equal(ttmon_history_want_maps(h, tgids, 4), 0);
	assert_true(ttmon_history_pinned_known(h, proc_of(h, EVIL)));
	ttmon_history_free(h);
}

/*
 * If there is no room for their sizes either, the figures say that they are lower bounds; those of
 * other users are exact.
 */
static void what_is_forgotten_is_said(void **state)
{
	struct ttmon_history *h = make((struct ttmon_history_cfg){ .max_allocations = 100 });

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		feed_alloc(h, VICTIM, 100 + i, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE);
	for (uint64_t i = 0; i < 1000; i++)
		feed_alloc(h, EVIL, SEC + i, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE);
	assert_int_equal(proc_of(h, EVIL)->forgotten, 1000 - 90 - 200);
	assert_int_equal(proc_of(h, EVIL)->pinned_bytes, 290 * PAGE);
	assert_false(ttmon_history_pinned_known(h, proc_of(h, EVIL)));
	assert_true(ttmon_history_at_least(h, proc_of(h, EVIL)));
	assert_true(ttmon_history_all_at_least(h));
	assert_true(ttmon_history_pinned_known(h, proc_of(h, VICTIM)));
	assert_false(ttmon_history_at_least(h, proc_of(h, VICTIM)));
	assert_int_equal(proc_of(h, VICTIM)->pinned_bytes, 10 * PAGE);
	for (uint64_t i = 0; i < 1000; i++)
		feed_free(h, EVIL, 2 * SEC + i, 2 * SEC + i, TTMON_METHOD_HOST_ALLOC, A + i * PAGE);
	assert_int_equal(proc_of(h, EVIL)->pinned_bytes, 0);
	assert_int_equal(proc_of(h, EVIL)->unknown_frees, 710);
	assert_int_equal(feed_totals(h).pinned_bytes, 10 * PAGE);
	ttmon_history_free(h);
}

/*
 * Pinned memory that lost its record is not called unused: its later transfers cannot be assigned.
 */
static void condensed_memory_is_not_called_cold(void **state)
{
	struct ttmon_history *h = make((struct ttmon_history_cfg){ .max_allocations = 10 });
	struct ttmon_spot spots[8];

	(void)state;
	feed_object(h, 1, 0, 0x11, "/bin/prog");
	feed_text(h, EVIL, 1, 0x400000, 0x500000, 0, 1);
	for (uint64_t i = 0; i < 20; i++) {
		const uint64_t frames[] = { 0x400010, 0 };

		feed_alloc_at(h, EVIL, SEC + i * 100 * MS, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE, frames);
		ttmon_history_tick(h, SEC + i * 100 * MS);
	}
	for (uint64_t i = 0; i < 20; i++)
		feed_copy(h, EVIL, 5 * SEC, TTMON_DIR_H2D, DEV, A + i * PAGE, i < 10 ? PAGE : 0);
	ttmon_history_tick(h, 100 * SEC);
	assert_int_equal(ttmon_history_coldspots(h, spots, 8), 0);
	ttmon_history_free(h);
}

/*
 * Compares all sums but frees that come late: which allocations are remembered after their end depends
 * on folding.
 */
static void same_sums(const struct ttmon_history *small, const struct ttmon_history *big)
{
	struct ttmon_history_totals s = feed_totals(small), b = feed_totals(big);

	assert_int_equal(ttmon_history_procs(small), ttmon_history_procs(big));
	for (size_t i = 0; i < ttmon_history_procs(big); i++) {
		const struct ttmon_proc *x = ttmon_history_proc(small, i), *y = ttmon_history_proc(big, i);

		assert_int_equal(x->tgid, y->tgid);
		assert_int_equal(x->live, y->live);
		assert_int_equal(x->pins, y->pins);
		assert_int_equal(x->pinned_bytes, y->pinned_bytes);
		assert_int_equal(x->pinned_peak_bytes, y->pinned_peak_bytes);
		assert_int_equal(x->pinned_pages, y->pinned_pages);
		assert_int_equal(x->pinned_peak_pages, y->pinned_peak_pages);
		assert_memory_equal(x->by_method, y->by_method, sizeof(x->by_method));
		assert_memory_equal(x->findings, y->findings, sizeof(x->findings));
		assert_memory_equal(x->xfer, y->xfer, sizeof(x->xfer));
		assert_int_equal(x->unmatched, y->unmatched);
	}
	assert_int_equal(s.live, b.live);
	assert_int_equal(s.pinned_bytes, b.pinned_bytes);
	assert_int_equal(s.pinned_pages, b.pinned_pages);
	assert_memory_equal(s.method, b.method, sizeof(s.method));
	assert_memory_equal(s.xfer, b.xfer, sizeof(s.xfer));
	/* The sums over call sites are those of all allocations; the site of some of them is unknown. */
	for (unsigned int k = 0; k < 2; k++) {
		const struct ttmon_history *h = k ? big : small;
		uint64_t live = 0;

		for (size_t i = 0; i < ttmon_history_sites(h); i++)
			live += ttmon_history_site(h, i)->live;
		assert_true(live <= s.live + h->siteq.n);
	}
}

static const unsigned int methods[] = { TTMON_METHOD_HOST_ALLOC, TTMON_METHOD_REGISTERED, TTMON_METHOD_DEVICE,
					TTMON_METHOD_POOL, TTMON_METHOD_MANAGED };

#define BUFFERS 32
static uint64_t buffers[2][BUFFERS]; /* the numbers of the buffers, in each history */

/*
 * One random step in both. Addresses overlap, so that allocations supersede others and registrations
 * share pages.
 */
static void step(struct ttmon_history *const *hs, uint64_t x, uint64_t ts)
{
	static const uint32_t tgids[] = { EVIL, VICTIM, 30 };
	uint32_t tgid = tgids[x % 3];
	uint64_t addr = A + (x >> 8) % 64 * 1024, size = (x >> 20) % 9000;
	unsigned int method = methods[(x >> 32) % ARRAY_SIZE(methods)];
	const uint64_t frames[] = { 0x400000 + (x >> 40) % 4 * 16, 0 };

	for (unsigned int i = 0; i < 2; i++) {
		struct ttmon_history *h = hs[i];
		struct ttmon_tt_alloc tt = {
			.ts_ns = ts, .addr = 64, .bytes = 100, .fn = 256, .method = TTMON_METHOD_TT_L1
		};
		struct ttmon_ev_reset reset = { .h = feed_head(TTMON_EV_RESET, tgid, ts), .device = -1 };
		struct ttmon_ev_tt_pin pin = { .h = feed_head(TTMON_EV_TT_PIN, tgid, ts),
					       .addr = A + (1 << 24) + (x >> 12) % 16 * PAGE,
					       .size = PAGE,
					       .op = (x >> 48) % TTMON_TT_PIN_OP_MAX,
					       .file = 1 + (x >> 50) % 2 };

		switch ((x >> 56) % 32) {
		case 0 ... 12:
			feed_alloc_at(h, tgid, ts, method, addr, size, frames);
			break;
		case 13 ... 17:
			feed_free(h, tgid, ts, ts, method, addr);
			break;
		case 18 ... 23:
			feed_copy(h, tgid, ts, (x >> 48) & 1 ? TTMON_DIR_H2D : TTMON_DIR_D2H,
				  (x >> 48) & 1 ? DEV : addr + 8, (x >> 48) & 1 ? addr + 8 : DEV, 16);
			break;
		case 24:
			feed_munmap(h, tgid, ts, addr & ~(PAGE - 1), 4 * PAGE);
			break;
		case 25:
			if (x >> 10 & 3)
				break;
			feed_exit(h, tgid, ts);
			feed_proc(h, tgid, ts + 1, ts + 1, 1, TTMON_PROC_FORK);
			break;
		case 26:
			if (!(x >> 10 & 7))
				APPLY(h, reset);
			break;
		case 27 ... 29:
			APPLY(h, pin);
			break;
		default:
			if (x >> 10 & 1)
				buffers[i][(x >> 12) % BUFFERS] = ttmon_history_tt_alloc(h, tgid, &tt);
			else
				ttmon_history_tt_free(h, buffers[i][(x >> 12) % BUFFERS], ts);
		}
		ttmon_history_tick(h, ts);
	}
}

static void sums_are_those_of_a_history_with_room(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct ttmon_history *hs[] = { make((struct ttmon_history_cfg){ .max_allocations = 24,
										.fold_ns = SEC }),
					       make((struct ttmon_history_cfg){ .fold_ns = SEC }) };
		uint64_t x = seed * 0x9e3779b97f4a7c15ULL, ts = SEC;

		memset(buffers, 0xff, sizeof(buffers));

		for (unsigned int i = 0; i < 3000; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			ts += x % (5 * MS);
			step(hs, x, ts);
			/* Only while there is room for the sizes of all. */
			if (feed_totals(hs[0]).forgotten)
				break;
			same_sums(hs[0], hs[1]);
		}
		assert_true(feed_totals(hs[0]).condensed_ever > 100);
		ttmon_history_free(hs[0]);
		ttmon_history_free(hs[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flood_costs_who_makes_it),
		cmocka_unit_test(processes_of_a_user_have_their_shares_too),
		cmocka_unit_test(children_belong_to_their_parents_user),
		cmocka_unit_test(a_user_that_is_told_late_pays),
		cmocka_unit_test(a_churn_folds_its_own),
		cmocka_unit_test(ended_processes_have_their_shares),
		cmocka_unit_test(events_have_their_shares),
		cmocka_unit_test(call_sites_have_their_shares),
		cmocka_unit_test(rows_of_errors_have_their_shares),
		cmocka_unit_test(live_advice_has_its_shares),
		cmocka_unit_test(mappings_that_made_room_are_not_known),
		cmocka_unit_test(what_is_forgotten_is_said),
		cmocka_unit_test(condensed_memory_is_not_called_cold),
		cmocka_unit_test(sums_are_those_of_a_history_with_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
