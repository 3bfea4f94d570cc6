// SPDX-License-Identifier: GPL-2.0-only
/* test_waits.c: where the time of synchronous calls went (core/history/waits.h). */
#include "tests/unit/feed/history_feed.h"

#include "daemon/core/history/waits.h"

#define STREAM_SYNC 520
#define MEMCPY	    16
#define HOST_ALLOC  1
#define FREE_HOST   3
#define MALLOC	    8
#define US	    1000ULL
/* Of a struct ttmon_ev_wait_who. */
#define APPLY_WHO(h, ev) ttmon_history_apply(h, &(ev).w.h, sizeof(ev), false)

static struct ttmon_ev_wait wait_of(uint32_t tgid, uint64_t ts, uint64_t ns, uint64_t off_ns, uint64_t runq_ns)
{
	return (struct ttmon_ev_wait){
		.h = feed_head(TTMON_EV_WAIT, tgid, ts),
		.entry_ns = ts - ns,
		.ns = ns,
		.off_ns = off_ns,
		.runq_ns = runq_ns,
		.fn = STREAM_SYNC,
	};
}

static void parts(uint64_t ns, uint64_t off_ns, uint64_t runq_ns, bool known, uint64_t on, uint64_t runq,
		  uint64_t blocked)
{
	struct ttmon_ev_wait ev = wait_of(1, 100 * SEC, ns, off_ns, runq_ns);
	struct ttmon_wait_parts w = ttmon_wait_divide(&ev);

	assert_int_equal(w.known, known);
	assert_int_equal(w.ns, ns);
	assert_int_equal(w.on_ns, on);
	assert_int_equal(w.runq_ns, runq);
	assert_int_equal(w.blocked_ns, blocked);
}

static void divided(void **state)
{
	(void)state;
	parts(1000, 0, 0, true, 1000, 0, 0);
	parts(1000, 700, 200, true, 300, 200, 500);
	parts(0, 0, 0, true, 0, 0, 0);
	/* The run queue's clock stood still before the entry. */
	parts(1 * MS, 1 * MS + 15 * US, 3 * US, true, 0, 3 * US, 1 * MS - 3 * US);
	parts(1 * MS, 1 * MS + 15 * US, 1 * MS + 15 * US, true, 0, 1 * MS, 0);
	parts(1 * MS, 500 * US, 510 * US, true, 500 * US, 500 * US, 0);
	/* The clocks go differently. */
	parts(10 * SEC, 10 * SEC + 9 * MS, 0, true, 0, 0, 10 * SEC);
	/* That is no time of this call. */
	parts(1 * MS, 1 * MS + 30 * US, 3 * US, false, 0, 0, 0);
	parts(1 * MS, 500 * US, 550 * US, false, 0, 0, 0);
	parts(1 * MS, UINT64_MAX, 0, false, 0, 0, 0);
	parts(1 * MS, 0, UINT64_MAX, false, 0, 0, 0);
}

static void unknown_says_so(void **state)
{
	static const uint16_t bits[] = { TTMON_W_HIDDEN, TTMON_W_NO_BOOKS, TTMON_W_UNOBSERVED };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++) {
		struct ttmon_ev_wait ev = wait_of(1, 1 * SEC, 1000, 700, 200);
		struct ttmon_wait_parts w;

		ev.bits = bits[i];
		w = ttmon_wait_divide(&ev);
		assert_false(w.known);
		assert_int_equal(w.on_ns + w.runq_ns + w.blocked_ns, 0);
	}
}

/* A record with what ran: pid 7 (another process), 1 (its own), 2 (a thread of the kernel). */
static struct ttmon_ev_wait_who who_of(uint64_t runq_ns, uint64_t other, uint64_t own, uint64_t kernel)
{
	struct ttmon_ev_wait_who e = {
		.w = wait_of(1, 100 * SEC, 10 * MS, 8 * MS, runq_ns),
		.row = { { .who = { .start_ns = 5, .tgid = 7, .comm = "other" }, .ns = other },
			 { .who = { .start_ns = 6, .tgid = 1, .comm = "own" }, .ns = own },
			 { .who = { .start_ns = 4, .tgid = 2, .role = TTMON_WAIT_ROLE_RAN_KERNEL, .comm = "kworker" },
			   .ns = kernel } },
		.nr_rows = 3,
	};

	e.w.bits = TTMON_W_WHO;
	return e;
}

static void run_queue_is_divided(void **state)
{
	static const uint64_t want[TTMON_WAIT_RUNQ_MAX] = { 1000, 200, 30, 4000, 500, 60, 7 };
	struct ttmon_ev_wait_who e = who_of(5797, 1000, 200, 30);
	struct ttmon_wait_parts p;

	(void)state;
	e.sum[TTMON_WAIT_SUM_THROTTLED] = 4000;
	e.sum[TTMON_WAIT_SUM_IDLE] = 500;
	e.sum[TTMON_WAIT_SUM_RAN_OTHERS] = 60;
	p = ttmon_wait_divide(&e.w);
	assert_true(p.known && p.named);
	assert_memory_equal(p.runq, want, sizeof(want));
	/* More than it waited: that is not true of this call, and no process is named. */
	e.w.runq_ns = 5789;
	p = ttmon_wait_divide(&e.w);
	assert_true(p.known && !p.named);
	assert_int_equal(p.runq[TTMON_WAIT_RUNQ_UNKNOWN], 5789);
	assert_int_equal(p.runq[TTMON_WAIT_RUNQ_OTHER], 0);
	e.w.runq_ns = 5797;
	e.row[0].ns = UINT64_MAX;
	assert_false(ttmon_wait_divide(&e.w).named);
	/* A call of which the parts are not known has no culprit. */
	e = who_of(5797, 1000, 200, 30);
	e.w.bits |= TTMON_W_HIDDEN;
	p = ttmon_wait_divide(&e.w);
	assert_true(!p.known && !p.named);
	assert_int_equal(p.runq[TTMON_WAIT_RUNQ_UNKNOWN], 0);
	/* Nothing was seen. */
	e.w.bits = 0;
	p = ttmon_wait_divide(&e.w);
	assert_int_equal(p.runq[TTMON_WAIT_RUNQ_UNKNOWN], 5797);
	assert_false(p.named);
}

static void blocked_time_is_divided(void **state)
{
	static const uint64_t want[TTMON_WAIT_WOKE_MAX] = { 1000, 200, 30, 4000, 500, 60, 7 };
	struct ttmon_ev_wait_who e = who_of(0, 1000, 200, 30);
	struct ttmon_wait_parts p;

	(void)state;
	e.w.off_ns = 5797;
	e.row[0].who.role = e.row[1].who.role = TTMON_WAIT_ROLE_WOKE;
	e.row[2].who.role = TTMON_WAIT_ROLE_WOKE_KERNEL;
	e.sum[TTMON_WAIT_SUM_TIMER] = 4000;
	e.sum[TTMON_WAIT_SUM_INTERRUPT] = 500;
	e.sum[TTMON_WAIT_SUM_WOKE_OTHERS] = 60;
	p = ttmon_wait_divide(&e.w);
	assert_true(p.known && p.named);
	assert_memory_equal(p.woke, want, sizeof(want));
	/* Where either part has too much no process is named. */
	e.sum[TTMON_WAIT_SUM_IDLE] = 1;
	p = ttmon_wait_divide(&e.w);
	assert_true(p.known && !p.named);
	assert_int_equal(p.woke[TTMON_WAIT_WOKE_UNKNOWN], 5797);
	assert_int_equal(p.runq[TTMON_WAIT_RUNQ_IDLE], 0);
}

static void culprits_are_summed(void **state)
{
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	const struct ttmon_wait_culprit *who;
	const struct ttmon_wait_call *calls;
	struct ttmon_ev_wait_who e = who_of(5000, 1000, 200, 30);

	(void)state;
	APPLY_WHO(h, e);
	memcpy(e.row[0].who.comm, "renamed", 8);
	APPLY_WHO(h, e);
	/* Another process of that number. */
	e.row[0].who.start_ns++;
	APPLY_WHO(h, e);
	assert_int_equal(ttmon_history_wait_who(h, &who), 5);
	assert_int_equal(who[0].proc, UINT32_MAX);
	assert_int_equal(who[1].ns, 2000);
	assert_int_equal(who[1].calls, 2);
	assert_string_equal(who[1].who.comm, "renamed");
	assert_int_equal(who[2].ns, 600);
	assert_int_equal(who[4].ns, 1000);
	assert_int_equal(ttmon_history_wait_calls(h, &calls), 3);
	assert_int_equal(calls[0].nr_who, 3);
	/* The table is bounded. */
	for (uint64_t i = 0; i < TTMON_WAIT_WHO_MAX; i++) {
		e.row[0].who.start_ns = 1000 + i;
		APPLY_WHO(h, e);
	}
	assert_int_equal(ttmon_history_wait_who(h, &who), TTMON_WAIT_WHO_MAX);
	assert_int_equal(who[0].calls, 5);
	assert_int_equal(who[0].ns, 5000);
	ttmon_history_free(h);
}

static void kinds(void **state)
{
	static const struct {
		uint16_t fn;
		unsigned int kind;
	} rows[] = {
		{ STREAM_SYNC, TTMON_WAIT_SYNC }, { 522, TTMON_WAIT_ASK },	{ MEMCPY, TTMON_WAIT_COPY },
		{ HOST_ALLOC, TTMON_WAIT_PIN },	  { 4, TTMON_WAIT_PIN },	{ FREE_HOST, TTMON_WAIT_UNPIN },
		{ 5, TTMON_WAIT_UNPIN },	  { MALLOC, TTMON_WAIT_ALLOC }, { 13, TTMON_WAIT_FREE },
		{ 51, TTMON_WAIT_RESET },	  { 58, TTMON_WAIT_MAX },	{ 0, TTMON_WAIT_MAX },
		{ UINT16_MAX, TTMON_WAIT_MAX },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(ttmon_wait_kind_of(rows[i].fn), rows[i].kind);
	for (unsigned int k = 0; k < TTMON_WAIT_MAX; k++)
		assert_non_null(ttmon_wait_name(k));
	assert_null(ttmon_wait_name(TTMON_WAIT_MAX));
	assert_null(ttmon_delay_name(TTMON_DELAY_MAX));
}

static uint64_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void adds_up(const struct ttmon_wait_sums *s)
{
	uint64_t runq = 0, woke = 0;

	for (unsigned int i = 0; i < TTMON_WAIT_RUNQ_MAX; i++)
		runq += s->runq[i];
	assert_int_equal(s->ns, s->on_ns + s->runq_ns + s->blocked_ns + s->unknown_ns);
	assert_int_equal(s->runq_ns, runq);
	for (unsigned int i = 0; i < TTMON_WAIT_WOKE_MAX; i++)
		woke += s->woke[i];
	assert_int_equal(s->blocked_ns, woke);
}

/* Whatever the kernel says: all sums add up, and those of processes, sites and all are the same. */
static void sums_always_add_up(void **state)
{
	static const uint16_t fns[] = { STREAM_SYNC, MEMCPY, HOST_ALLOC, FREE_HOST, MALLOC };
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	const struct ttmon_wait_sums *all = ttmon_history_waits_all(h);
	const struct ttmon_wait_site *sites;
	uint64_t seed = 42, ns = 0, by_proc[TTMON_WAIT_MAX] = { 0 }, by_site = 0, calls = 0;
	size_t n;

	(void)state;
	for (unsigned int i = 0; i < 100000; i++) {
		uint64_t len = draw(&seed) % (1ULL << (draw(&seed) % 34));
		uint64_t off = draw(&seed) % (len + 100), runq = draw(&seed) % (len / 2 + 50);
		struct ttmon_ev_wait_who ev = who_of(0, draw(&seed) % 1000, draw(&seed) % 1000, draw(&seed) % 1000);

		ev.w = wait_of(1 + draw(&seed) % 3, 100 * SEC + i, len, off, runq);
		ev.w.fn = fns[draw(&seed) % ARRAY_SIZE(fns)];
		ev.w.bits = draw(&seed) % 16 ? 0 : (uint16_t)(draw(&seed) & TTMON_W_BITS);
		ev.w.bits |= draw(&seed) & TTMON_W_WHO;
		ev.row[0].who.role = draw(&seed) % TTMON_WAIT_ROLES;
		ev.w.caller = 0x1000 + draw(&seed) % 5;
		ns += ev.w.bits & TTMON_W_UNOBSERVED ? 0 : len;
		APPLY_WHO(h, ev);
	}
	n = ttmon_history_wait_sites(h, &sites);
	for (size_t i = 0; i < n; i++) {
		adds_up(&sites[i].sums);
		by_site += sites[i].sums.ns;
	}
	for (unsigned int k = 0; k < TTMON_WAIT_MAX; k++) {
		for (size_t p = 0; p < ttmon_history_procs(h); p++) {
			const struct ttmon_wait_sums *s = ttmon_history_waits(h, ttmon_history_proc(h, p));

			adds_up(&s[k]);
			by_proc[k] += s[k].ns;
		}
		adds_up(&all[k]);
		assert_int_equal(all[k].ns, by_proc[k]);
		ns -= all[k].ns;
		calls += all[k].calls;
	}
	assert_int_equal(ns, 0);
	assert_int_equal(calls, 100000);
	assert_true(by_site > 0);
	ns = 0;
	for (unsigned int k = 0; k < TTMON_WAIT_MAX; k++)
		ns += all[k].ns;
	assert_int_equal(by_site, ns);
	ttmon_history_free(h);
}

static int shortest_first(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void the_longest_are_kept(void **state)
{
	enum { N = 5000 };
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	const struct ttmon_wait_call *calls;
	static uint64_t all[N], kept[TTMON_WAIT_CALLS_MAX];
	uint64_t seed = 7;
	size_t n;

	(void)state;
	for (unsigned int i = 0; i < N; i++) {
		struct ttmon_ev_wait ev = wait_of(1, 100 * SEC + i, draw(&seed) % SEC, 0, 0);

		all[i] = ev.ns;
		APPLY(h, ev);
	}
	n = ttmon_history_wait_calls(h, &calls);
	assert_int_equal(n, TTMON_WAIT_CALLS_MAX);
	for (size_t i = 0; i < n; i++)
		kept[i] = calls[i].parts.ns;
	qsort(all, N, sizeof(all[0]), shortest_first);
	qsort(kept, n, sizeof(kept[0]), shortest_first);
	assert_memory_equal(kept, all + N - n, sizeof(kept));
	ttmon_history_free(h);
}

/* The table does not grow for ever, and no call is lost to the sums. */
static void sites_are_bounded(void **state)
{
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	const struct ttmon_wait_site *sites;
	const struct ttmon_wait_sums *sums;
	size_t n;

	(void)state;
	for (unsigned int i = 0; i < TTMON_WAIT_SITES_MAX + 100; i++) {
		struct ttmon_ev_wait ev = wait_of(1, 100 * SEC, 10, 0, 0);

		ev.caller = 0x1000 + i;
		APPLY(h, ev);
	}
	n = ttmon_history_wait_sites(h, &sites);
	assert_int_equal(n, TTMON_WAIT_SITES_MAX);
	assert_int_equal(sites[0].proc, UINT32_MAX);
	assert_int_equal(sites[0].sums.calls, 101);
	sums = ttmon_history_waits(h, ttmon_history_proc(h, 0));
	assert_int_equal(sums[TTMON_WAIT_SYNC].calls, TTMON_WAIT_SITES_MAX + 100);
	ttmon_history_free(h);
}

static void a_failed_wait_is_counted(void **state)
{
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	struct ttmon_ev_wait ev = wait_of(1, 1 * SEC, 10, 0, 0);
	const struct ttmon_error_count *errors;

	(void)state;
	ev.err = 700;
	APPLY(h, ev);
	/* A copy's own record says that. */
	ev.fn = MEMCPY;
	APPLY(h, ev);
	assert_int_equal(ttmon_history_errors(h, &errors), 1);
	assert_int_equal(errors[0].fn, STREAM_SYNC);
	assert_int_equal(errors[0].err, 700);
	ttmon_history_free(h);
}

/* A service: the line of a process is used again, and what it waited goes with it. */
static void gone_with_the_line_of_the_process(void **state)
{
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ 0 });
	const struct ttmon_wait_site *sites;
	const struct ttmon_wait_culprit *who;
	const struct ttmon_wait_call *calls;
	uint64_t now = 1 * SEC;
	size_t n;

	(void)state;
	for (uint32_t tgid = 1; tgid <= 6000; tgid++) {
		struct ttmon_ev_wait_who ev = who_of(0, 5, 0, 0);

		ev.w = wait_of(tgid, now, 10 + tgid, 10, 10);
		ev.w.bits = TTMON_W_WHO;
		ev.w.caller = 0x1000;
		feed_proc(h, tgid, now, tgid, 1, TTMON_PROC_SEEN);
		APPLY_WHO(h, ev);
		feed_exit(h, tgid, now + 1);
		now += 3 * SEC;
		ttmon_history_tick(h, now);
	}
	assert_int_equal(ttmon_history_waits_all(h)[TTMON_WAIT_SYNC].calls, 6000);
	assert_true(ttmon_history_procs(h) < 6000);
	n = ttmon_history_wait_sites(h, &sites);
	assert_true(n > 1 && n <= ttmon_history_procs(h) + 1);
	for (size_t i = 1; i < n; i++) {
		assert_true(sites[i].proc < ttmon_history_procs(h));
		assert_int_equal(sites[i].sums.calls, 1);
		assert_int_equal(ttmon_history_proc(h, sites[i].proc)->tgid + 10, sites[i].sums.ns);
	}
	n = ttmon_history_wait_calls(h, &calls);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(ttmon_history_proc(h, calls[i].proc)->tgid + 10, calls[i].parts.ns);
	n = ttmon_history_wait_who(h, &who);
	assert_true(n > 3 && n <= 3 * (ttmon_history_procs(h) + 1));
	for (size_t i = 1; i < n; i++) {
		assert_true(who[i].proc < ttmon_history_procs(h));
		assert_int_equal(who[i].calls, 1);
	}
	ttmon_history_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(divided),
		cmocka_unit_test(unknown_says_so),
		cmocka_unit_test(run_queue_is_divided),
		cmocka_unit_test(blocked_time_is_divided),
		cmocka_unit_test(culprits_are_summed),
		cmocka_unit_test(kinds),
		cmocka_unit_test(sums_always_add_up),
		cmocka_unit_test(the_longest_are_kept),
		cmocka_unit_test(sites_are_bounded),
		cmocka_unit_test(a_failed_wait_is_counted),
		cmocka_unit_test(gone_with_the_line_of_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
