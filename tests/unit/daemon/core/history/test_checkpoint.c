// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_checkpoint.c: checkpoints in the history, and the transfers in the periods between them
 * (core/history/periods.h, core/history/period_view.h).
 */
#include "tests/unit/feed/history_feed.h"

#include "daemon/core/history/period_view.h"

#define DEV 0x700000000000ULL

static void checkpoint(struct ttmon_history *h, uint32_t tgid, uint64_t ts, const char *label)
{
	struct ttmon_ev_checkpoint ev = { .h = feed_head(TTMON_EV_CHECKPOINT, tgid, ts) };

	strncpy(ev.label, label, sizeof(ev.label) - 1);
	ev.h.tid = tgid + 1;
	APPLY(h, ev);
}

static struct ttmon_history_totals totals(const struct ttmon_history *h)
{
	struct ttmon_history_totals t;

	ttmon_history_get_totals(h, &t);
	return t;
}

/* ---- in the history ---- */

static void kept_in_order(void **state)
{
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	const struct ttmon_period_end *c = NULL;
	char longest[80];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(ttmon_history_checkpoints(h, &c), 0);
	feed_proc(h, 10, 1 * MS, 5, 1, TTMON_PROC_SEEN);
	checkpoint(h, 10, 2 * MS, "step");
	checkpoint(h, 20, 3 * MS, "");
	checkpoint(h, 10, 4 * MS, longest);
	assert_int_equal(ttmon_history_checkpoints(h, &c), 3);
	assert_int_equal(c[0].ts_ns, 2 * MS);
	assert_int_equal(c[0].proc, 0);
	assert_int_equal(c[0].tid, 11);
	assert_string_equal(c[0].label, "step");
	assert_int_equal(c[1].proc, 1);
	assert_string_equal(c[1].label, "");
	assert_int_equal(strlen(c[2].label), TTMON_LABEL_LEN - 1);
	assert_int_equal(ttmon_history_proc(h, 0)->checkpoints, 2);
	assert_int_equal(totals(h).checkpoints, 3);
	assert_false(totals(h).incomplete);
	ttmon_history_free(h);
}

#define MANY 100000u

static void many(bool keep_all, uint32_t first)
{
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ .keep_all = keep_all });
	const struct ttmon_period_end *c = NULL;
	char label[16];

	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(label, sizeof(label), "%u", i);
		checkpoint(h, 10, 1000 + i, label);
	}
	assert_int_equal(ttmon_history_checkpoints(h, &c), TTMON_CHECKPOINTS_MAX);
	for (uint32_t i = 0; i < TTMON_CHECKPOINTS_MAX; i++) {
		assert_int_equal(c[i].ts_ns, 1000 + first + i);
		assert_int_equal(atoi(c[i].label), first + i);
	}
	assert_int_equal(totals(h).checkpoints, MANY);
	assert_int_equal(totals(h).checkpoints_dropped, MANY - TTMON_CHECKPOINTS_MAX);
	assert_int_equal(totals(h).incomplete, keep_all);
	ttmon_history_free(h);
}

static void a_dump_run_keeps_the_first(void **state)
{
	(void)state;
	many(true, 0);
}

static void a_service_keeps_the_newest(void **state)
{
	(void)state;
	many(false, MANY - TTMON_CHECKPOINTS_MAX);
}

/*
 * A service gives the entry of a process that ended to another one: the checkpoints of the first must
 * not be the second's.
 */
static void gone_with_the_line_of_the_process(void **state)
{
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ .keep_all = false });
	const struct ttmon_period_end *c = NULL;
	uint64_t ts = 1 * SEC;
	size_t n;

	(void)state;
	for (uint32_t i = 0; i < 10000; i++, ts += 10 * MS) {
		feed_proc(h, 100 + i, ts, ts, 1, TTMON_PROC_SEEN);
		checkpoint(h, 100 + i, ts + MS, "step");
		feed_exit(h, 100 + i, ts + 2 * MS);
		ttmon_history_tick(h, ts + 3 * MS);
	}
	assert_true(ttmon_history_procs(h) < 6000);
	n = ttmon_history_checkpoints(h, &c);
	assert_int_equal(n, ttmon_history_procs(h));
	for (size_t i = 0; i < n; i++)
		assert_true(c[i].ts_ns >= ttmon_history_proc(h, c[i].proc)->first_ns);
	assert_int_equal(totals(h).checkpoints_dropped, 0);
	ttmon_history_free(h);
}

/* ---- ends of periods ---- */

static void ends_by_label(void **state)
{
	static const struct ttmon_period_mark marks[] = {
		{ 50, 1, "b" }, { 10, 0, "step" }, { 30, 0, "step" }, { 20, 0, "epoch" },
		{ 40, 1, "a" }, { 20, 0, "step" }, { 99, 7, "step" },
	};
	struct ttmon_period_ends e;

	(void)state;
	assert_int_equal(ttmon_period_ends_init(&e, marks, ARRAY_SIZE(marks), NULL, 3), 0);
	assert_int_equal(ttmon_period_count(&e, 0), 3);
	assert_string_equal(e.label[0], "step");
	/* One of each kind: the one that was reported first. */
	assert_int_equal(ttmon_period_count(&e, 1), 1);
	assert_string_equal(e.label[1], "a");
	assert_int_equal(ttmon_period_count(&e, 2), 0);
	assert_null(e.label[2]);
	assert_int_equal(ttmon_period_at(&e, 0, 0), 0);
	assert_int_equal(ttmon_period_at(&e, 0, 9), 0);
	assert_int_equal(ttmon_period_at(&e, 0, 10), 1);
	assert_int_equal(ttmon_period_at(&e, 0, 29), 2);
	assert_int_equal(ttmon_period_at(&e, 0, 30), 3);
	assert_int_equal(ttmon_period_at(&e, 0, UINT64_MAX), 3);
	assert_int_equal(ttmon_period_at(&e, 2, 77), 0);
	ttmon_period_ends_fini(&e);

	assert_int_equal(ttmon_period_ends_init(&e, marks, ARRAY_SIZE(marks), "epoch", 3), 0);
	assert_int_equal(ttmon_period_count(&e, 0), 1);
	assert_int_equal(ttmon_period_count(&e, 1), 0);
	assert_null(e.label[1]);
	ttmon_period_ends_fini(&e);
	assert_int_equal(ttmon_period_ends_init(&e, NULL, 0, NULL, 0), 0);
	ttmon_period_ends_fini(&e);
}

/* ---- sums ---- */

static void add(struct ttmon_periods *p, uint32_t period, bool to_device, uint64_t bytes)
{
	assert_int_equal(ttmon_periods_add(p, period, to_device, bytes), 0);
}

static void rows_say_when(void **state)
{
	struct ttmon_period_ask ask[6];
	struct ttmon_period_row r[6];
	struct ttmon_periods *p = NULL;

	(void)state;
	assert_int_equal(ttmon_periods_new(&p), 0);
	/*
	 * 0: in each of 20 steps, two buffers taking turns, the last one larger; 1: in all steps but the
	 * first, with one gap.
	 */
	for (uint32_t i = 0; i < 20; i++) {
		ttmon_periods_alloc(p, 0, 100 + i % 2);
		add(p, i, true, 10);
		add(p, i, true, i == 19 ? 30 : 10);
		ttmon_periods_alloc(p, 1, 50);
		if (i && i != 7)
			add(p, i, false, 5);
	}
	ttmon_periods_alloc(p, 2, 1000);
	add(p, 0, true, 1000);
	ttmon_periods_alloc(p, 3, 1000);
	add(p, 3, true, 1);
	add(p, 13, true, 3);
	add(p, 20, true, 100);
	ttmon_periods_alloc(p, 4, 7);
	add(p, 20, true, 7);
	for (unsigned int g = 0; g < 6; g++)
		ask[g] = (struct ttmon_period_ask){ 20, 19 };
	assert_int_equal(ttmon_periods_rows(p, ask, 6, r), 0);

	assert_int_equal(r[0].when, TTMON_WHEN_STEADY);
	assert_int_equal(r[0].steps, 20);
	assert_int_equal(r[0].of, 20);
	assert_int_equal(r[0].first, 0);
	assert_int_equal(r[0].last, 19);
	assert_int_equal(r[0].copies[1], 40);
	assert_int_equal(r[0].bytes[1], 420);
	assert_int_equal(r[0].min, 20);
	assert_int_equal(r[0].median, 20);
	assert_int_equal(r[0].max, 40);
	assert_int_equal(r[0].in_use, 101);
	assert_int_equal(r[0].shown_bytes[1], 40);
	assert_int_equal(r[0].shown_copies[1], 2);
	assert_int_equal(r[0].shown_in_use, 101);
	assert_int_equal(r[1].when, TTMON_WHEN_STEADY);
	assert_int_equal(r[1].steps, 18);
	assert_int_equal(r[1].bytes[0], 90);
	assert_int_equal(r[1].bytes[1], 0);
	assert_int_equal(r[2].when, TTMON_WHEN_START);
	assert_int_equal(r[2].shown_copies[1], 0);
	assert_int_equal(r[3].when, TTMON_WHEN_SOMETIMES);
	assert_int_equal(r[3].bytes[1], 4);
	assert_int_equal(r[3].median, 3);
	assert_int_equal(r[4].when, TTMON_WHEN_AFTER);
	assert_int_equal(r[4].steps, 0);
	assert_int_equal(r[4].first, UINT32_MAX);
	assert_int_equal(r[5].when, TTMON_WHEN_NEVER);
	ttmon_periods_free(p);
}

/* Cells of one group and period are merged when there is no more room: the sums stay. */
static void many_allocations_are_merged(void **state)
{
	struct ttmon_period_ask ask = { 1000, UINT32_MAX };
	struct ttmon_periods *p = NULL;
	struct ttmon_period_row r;

	(void)state;
	assert_int_equal(ttmon_periods_new(&p), 0);
	for (uint32_t a = 0; a < 200; a++) {
		ttmon_periods_alloc(p, 0, 1);
		for (uint32_t i = 0; i < 1000; i++)
			add(p, i, true, 2);
	}
	assert_int_equal(ttmon_periods_rows(p, &ask, 1, &r), 0);
	assert_int_equal(r.steps, 1000);
	assert_int_equal(r.bytes[1], 400000);
	assert_int_equal(r.min, 400);
	assert_int_equal(r.max, 400);
	assert_int_equal(r.in_use, 200);
	ttmon_periods_free(p);
}

static void cells_have_a_limit(void **state)
{
	struct ttmon_periods *p = NULL;
	int err = 0;
	uint32_t i;

	(void)state;
	assert_int_equal(ttmon_periods_new(&p), 0);
	ttmon_periods_alloc(p, 0, 1);
	for (i = 0; !err && i <= TTMON_PERIODS_CELLS; i++)
		err = ttmon_periods_add(p, i, true, 1);
	assert_int_equal(err, -E2BIG);
	assert_int_equal(i, TTMON_PERIODS_CELLS + 1);
	ttmon_periods_free(p);
}

static void pinning_pays_after_some_periods(void **state)
{
	/* 1 GB in each of 10 periods, from 1 GB: 125 ms saved in each, 667 ms to pin. */
	struct ttmon_period_row row = { .of = 10, .steps = 10, .in_use = 1000000000, .bytes = { 0, 10000000000 } };
	struct ttmon_period_gain g;

	(void)state;
	ttmon_period_get_gain(&row, 6000000000, 24000000000, 1500000000, &g);
	assert_int_equal(g.saved_ns, 125000000);
	assert_int_equal(g.cost_ns, 666666666);
	assert_int_equal(g.pays_after, 6);
	assert_int_equal(ttmon_period_advice(&row, &g, TTMON_METHOD_CUSTOM, false), TTMON_ADVICE_PIN);
	assert_int_equal(ttmon_period_advice(&row, &g, TTMON_METHOD_MANAGED, false), TTMON_ADVICE_KEEP);
	row.in_use = 2000000000;
	ttmon_period_get_gain(&row, 6000000000, 24000000000, 1500000000, &g);
	assert_int_equal(g.pays_after, 11);
	assert_int_equal(ttmon_period_advice(&row, &g, TTMON_METHOD_MMAP, false), TTMON_ADVICE_KEEP);
	row.bytes[1] = 0;
	ttmon_period_get_gain(&row, 6000000000, 24000000000, 1500000000, &g);
	assert_int_equal(g.pays_after, UINT64_MAX);

	row.when = TTMON_WHEN_START;
	assert_int_equal(ttmon_period_advice(&row, &g, TTMON_METHOD_HOST_ALLOC, false), TTMON_ADVICE_UNPIN);
	assert_int_equal(ttmon_period_advice(&row, &g, TTMON_METHOD_HOST_ALLOC, true), TTMON_ADVICE_KEEP);
	row.of = 1;
	assert_int_equal(ttmon_period_advice(&row, &g, TTMON_METHOD_HOST_ALLOC, false), TTMON_ADVICE_KEEP);
}

/* ---- of a history ---- */

/*
 * A batch in each of 10 steps, weights in the first only, a pinned buffer in none, results back each
 * time.
 */
static struct ttmon_history *trained(bool keep_all)
{
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ .keep_all = keep_all, .fold_ns = 60 * SEC });
	uint64_t ts = 1 * SEC;

	feed_proc(h, 10, ts, 5, 1, TTMON_PROC_SEEN);
	feed_alloc(h, 10, ts + 1, TTMON_METHOD_DEVICE, DEV, 1 << 20);
	feed_alloc(h, 10, ts + 2, TTMON_METHOD_HOST_ALLOC, 0x100000, 8192);
	feed_alloc(h, 10, ts + 3, TTMON_METHOD_CUSTOM, 0x200000, 65536);
	feed_mmap(h, 10, ts + 4, 0x300000, 1 << 20);
	feed_copy(h, 10, ts + 5, TTMON_DIR_H2D, DEV, 0x200000, 65536);
	for (int i = 0; i < 10; i++, ts += 10 * MS) {
		feed_copy(h, 10, ts + 1 * MS, TTMON_DIR_H2D, DEV, 0x300000, 4096);
		feed_copy(h, 10, ts + 2 * MS, TTMON_DIR_D2H, 0x301000, DEV, 512);
		checkpoint(h, 10, ts + 10 * MS, "step");
	}
	feed_copy(h, 10, ts + 1 * MS, TTMON_DIR_H2D, DEV, 0x300000, 100);
	return h;
}

static const struct ttmon_period_spot *spot(const struct ttmon_period_view *v, unsigned int method)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (v->spots[i].method == method)
			return &v->spots[i];
	fail_msg("no spot of method %u", method);
	return NULL;
}

static void view_of_a_period(void **state)
{
	struct ttmon_history *h = trained(true);
	struct ttmon_period_query q = { .period = -1 };
	struct ttmon_period_view v;
	const struct ttmon_period_spot *s;

	(void)state;
	assert_int_equal(ttmon_history_period(h, &q, 2 * SEC, &v), 0);
	assert_string_equal(v.label, "step");
	assert_int_equal(v.of, 10);
	assert_int_equal(v.period, 9);
	assert_int_equal(v.from_ns, 1 * SEC + 90 * MS);
	assert_int_equal(v.to_ns, 1 * SEC + 100 * MS);
	assert_true(v.whole);
	assert_int_equal(v.n, 3);
	s = spot(&v, TTMON_METHOD_MMAP);
	assert_int_equal(s->row.steps, 10);
	assert_int_equal(s->row.shown_bytes[1], 4096);
	assert_int_equal(s->row.shown_bytes[0], 512);
	assert_int_equal(s->row.median, 4608);
	assert_int_equal(s->row.when, TTMON_WHEN_STEADY);
	s = spot(&v, TTMON_METHOD_CUSTOM);
	assert_int_equal(s->row.when, TTMON_WHEN_START);
	assert_int_equal(s->row.shown_copies[1], 0);
	s = spot(&v, TTMON_METHOD_HOST_ALLOC);
	assert_int_equal(s->row.when, TTMON_WHEN_NEVER);
	assert_int_equal(s->advice, TTMON_ADVICE_UNPIN);
	assert_int_equal(s->bytes, 8192);
	ttmon_period_view_fini(&v);

	/*
	 * The period from the first event of the process; and the events after the last checkpoint, up to now.
	 */
	q.period = 0;
	assert_int_equal(ttmon_history_period(h, &q, 2 * SEC, &v), 0);
	assert_int_equal(v.from_ns, 1 * SEC);
	assert_int_equal(spot(&v, TTMON_METHOD_CUSTOM)->row.shown_bytes[1], 65536);
	ttmon_period_view_fini(&v);
	q.period = 10;
	assert_int_equal(ttmon_history_period(h, &q, 2 * SEC, &v), 0);
	assert_int_equal(v.from_ns, 1 * SEC + 100 * MS);
	assert_int_equal(v.to_ns, 2 * SEC);
	assert_int_equal(spot(&v, TTMON_METHOD_MMAP)->row.shown_bytes[1], 100);
	ttmon_period_view_fini(&v);

	memset(&v, 0x5a, sizeof(v));
	q.period = 11;
	assert_int_equal(ttmon_history_period(h, &q, 2 * SEC, &v), -ENOENT);
	q.period = -11;
	assert_int_equal(ttmon_history_period(h, &q, 2 * SEC, &v), -ENOENT);
	q = (struct ttmon_period_query){ .label = "batch" };
	assert_int_equal(ttmon_history_period(h, &q, 2 * SEC, &v), -ENOENT);
	assert_int_equal(*(unsigned char *)&v, 0x5a);
	ttmon_history_free(h);
}

/*
 * A service drops memory that was freed long ago, and older events: the periods of that time are no
 * longer complete.
 */
static void old_periods_are_not_whole(void **state)
{
	struct ttmon_history *h = trained(false);
	struct ttmon_period_query q = { .period = 0 };
	struct ttmon_period_view v;

	(void)state;
	assert_int_equal(ttmon_history_period(h, &q, 2 * SEC, &v), 0);
	assert_true(v.whole);
	ttmon_period_view_fini(&v);
	for (int i = 0; i < 5000; i++)
		feed_copy(h, 10, 3 * SEC + (uint64_t)i, TTMON_DIR_H2D, DEV, 0x300000, 10);
	checkpoint(h, 10, 4 * SEC, "step");
	assert_int_equal(ttmon_history_period(h, &q, 4 * SEC, &v), 0);
	assert_false(v.whole);
	ttmon_period_view_fini(&v);
	q.period = -1;
	assert_int_equal(ttmon_history_period(h, &q, 4 * SEC, &v), 0);
	assert_int_equal(v.period, 10);
	assert_false(v.whole);
	ttmon_period_view_fini(&v);
	checkpoint(h, 10, 5 * SEC, "step");
	feed_free(h, 10, 5 * SEC + 1, 5 * SEC + 2, TTMON_METHOD_HOST_ALLOC, 0x100000);
	ttmon_history_tick(h, 100 * SEC);
	assert_int_equal(totals(h).folded, 1);
	assert_int_equal(ttmon_history_period(h, &q, 100 * SEC, &v), 0);
	assert_int_equal(v.period, 11);
	assert_false(v.whole);
	ttmon_period_view_fini(&v);
	checkpoint(h, 10, 99 * SEC, "step");
	checkpoint(h, 10, 100 * SEC, "step");
	assert_int_equal(ttmon_history_period(h, &q, 100 * SEC, &v), 0);
	assert_true(v.whole);
	ttmon_period_view_fini(&v);
	ttmon_history_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_in_order),
		cmocka_unit_test(a_dump_run_keeps_the_first),
		cmocka_unit_test(a_service_keeps_the_newest),
		cmocka_unit_test(gone_with_the_line_of_the_process),
		cmocka_unit_test(ends_by_label),
		cmocka_unit_test(rows_say_when),
		cmocka_unit_test(many_allocations_are_merged),
		cmocka_unit_test(cells_have_a_limit),
		cmocka_unit_test(pinning_pays_after_some_periods),
		cmocka_unit_test(view_of_a_period),
		cmocka_unit_test(old_periods_are_not_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
