// SPDX-License-Identifier: GPL-2.0-only
/* test_slots.c: order, window, late events, wrap, arena and the cap on moves, without a clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/stream/slots.h"

#define MS TTMON_SLOT_NS

struct seen {
	uint64_t ts_ns, slot, arrival;
	uint16_t cpu;
	bool late;
	size_t size;
};

struct sink {
	struct seen *ev;
	size_t nr, cap, in_slot;
	struct ttmon_slot_view views[10000];
	size_t nr_views;
};

static struct sink sink;
static uint64_t arrivals;

static void on_event(void *ctx, const struct ttmon_event *ev, size_t size, bool late)
{
	struct sink *s = ctx;

	if (s->nr == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 64;
		s->ev = realloc(s->ev, s->cap * sizeof(*s->ev));
		assert_non_null(s->ev);
	}
	assert_true(size >= sizeof(struct ttmon_ev_munmap));
	s->ev[s->nr++] = (struct seen){
		.ts_ns = ev->ts_ns,
		.arrival = ((const struct ttmon_ev_munmap *)ev)->addr,
		.cpu = ev->cpu,
		.late = late,
		.size = size,
	};
}

static void on_close(void *ctx, const struct ttmon_slot_view *slot)
{
	struct sink *s = ctx;

	assert_true(s->nr_views < ARRAY_SIZE(s->views));
	assert_int_equal(slot->events, s->nr - s->in_slot);
	for (; s->in_slot < s->nr; s->in_slot++)
		s->ev[s->in_slot].slot = slot->no;
	s->views[s->nr_views++] = *slot;
}

static const struct ttmon_slots_ops ops = { .event = on_event, .close = on_close };

static struct ttmon_slots *make(uint32_t window, uint64_t arena_bytes)
{
	struct ttmon_slots_cfg cfg = { .window = window, .arena_bytes = arena_bytes };
	struct ttmon_slots *s = NULL;

	free(sink.ev);
	sink = (struct sink){ 0 };
	arrivals = 0;
	assert_int_equal(ttmon_slots_new(&cfg, &ops, &sink, &s), 0);
	return s;
}

static void add(struct ttmon_slots *s, uint64_t ts_ns, uint16_t cpu)
{
	struct ttmon_ev_munmap ev = { .h = { .ts_ns = ts_ns, .kind = TTMON_EV_MUNMAP, .cpu = cpu },
				      .addr = arrivals++ };

	ttmon_slots_add(s, &ev.h, sizeof(ev));
}

static struct ttmon_slots_stats stats_of(const struct ttmon_slots *s)
{
	struct ttmon_slots_stats st;

	ttmon_slots_get_stats(s, &st);
	return st;
}

static void refuses_bad_cfg(void **state)
{
	static const struct ttmon_slots_cfg bad[] = {
		{ .window = 1 },
		{ .window = 4097 },
		{ .arena_bytes = 65535 },
		{ .arena_bytes = 1ULL << 36 },
	};
	struct ttmon_slots *s = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(ttmon_slots_new(&bad[i], &ops, NULL, &s), -EINVAL);
		assert_null(s);
	}
	ttmon_slots_free(NULL);
}

static void orders_by_time_cpu_arrival(void **state)
{
	static const struct {
		uint64_t ts;
		uint16_t cpu;
	} in[] = {
		{ 5, 3 }, { 5, 1 }, { 2, 9 }, { 5, 1 }, { 9, 0 }, { 2, 9 }, { 5, 0 },
	};
	static const uint64_t want[] = { 2, 5, 6, 1, 3, 0, 4 };
	struct ttmon_slots *s = make(0, 0);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(in); i++)
		add(s, in[i].ts, in[i].cpu);
	ttmon_slots_finish(s);
	assert_int_equal(sink.nr, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_int_equal(sink.ev[i].arrival, want[i]);
	assert_int_equal(stats_of(s).sorted, 0);
	ttmon_slots_free(s);
}

static void closes_half_open_slots_by_watermark(void **state)
{
	struct ttmon_slots *s = make(8, 0);

	(void)state;
	assert_int_equal(ttmon_slots_limit_ns(s), 0);
	ttmon_slots_advance(s, 10 * MS + 7);
	assert_int_equal(ttmon_slots_limit_ns(s), 18 * MS);
	add(s, 11 * MS - 1, 0);
	add(s, 11 * MS, 0);
	add(s, 13 * MS, 0);
	ttmon_slots_advance(s, 11 * MS - 1);
	assert_int_equal(sink.nr_views, 0);
	ttmon_slots_advance(s, 11 * MS);
	assert_int_equal(sink.nr_views, 1);
	assert_int_equal(sink.views[0].no, 10);
	assert_int_equal(sink.views[0].events, 1);
	ttmon_slots_advance(s, 5 * MS); /* never back */
	assert_int_equal(ttmon_slots_limit_ns(s), 19 * MS);
	ttmon_slots_advance(s, 14 * MS);
	assert_int_equal(sink.nr_views, 4);
	assert_int_equal(sink.views[1].events, 1);
	assert_int_equal(sink.views[2].no, 12); /* empty, and published as such */
	assert_int_equal(sink.views[2].events, 0);
	assert_int_equal(sink.views[3].events, 1);
	assert_false(sink.views[3].forced);
	ttmon_slots_free(s);
}

static void folds_late_events_into_the_oldest_slot(void **state)
{
	struct ttmon_slots *s = make(8, 0);

	(void)state;
	ttmon_slots_advance(s, 10 * MS);
	add(s, 10 * MS + 3, 0);
	add(s, 9 * MS + 5, 1);
	add(s, 10 * MS - 1, 0);
	add(s, 2 * MS, 0);
	ttmon_slots_advance(s, 10 * MS + 500); /* its own slot is still open: not late */
	add(s, 10 * MS + 1, 0);
	ttmon_slots_advance(s, 11 * MS);

	assert_int_equal(sink.nr, 5);
	assert_int_equal(sink.ev[0].ts_ns, 2 * MS);
	assert_true(sink.ev[0].late && sink.ev[1].late && sink.ev[2].late);
	assert_int_equal(sink.ev[1].ts_ns, 9 * MS + 5);
	assert_int_equal(sink.ev[2].ts_ns, 10 * MS - 1);
	assert_int_equal(sink.ev[3].ts_ns, 10 * MS + 1);
	assert_false(sink.ev[3].late || sink.ev[4].late);
	assert_int_equal(sink.views[0].no, 10);
	assert_int_equal(sink.views[0].late, 3);
	assert_int_equal(stats_of(s).late, 3);
	assert_int_equal(stats_of(s).slotted, 2);
	ttmon_slots_free(s);
}

static void forces_the_oldest_when_the_window_is_full(void **state)
{
	struct ttmon_slots *s = make(4, 0);

	(void)state;
	add(s, 0, 0);
	add(s, 4 * MS - 1, 0); /* still inside */
	assert_int_equal(sink.nr_views, 0);
	add(s, 4 * MS, 0);
	assert_int_equal(sink.nr_views, 1);
	assert_true(sink.views[0].forced);
	assert_int_equal(sink.views[0].events, 1);
	add(s, 9 * MS, 0); /* slots 1..5 go, 3 and 4 with an event each */
	assert_int_equal(sink.nr_views, 6);
	assert_int_equal(sink.nr, 3);
	assert_int_equal(stats_of(s).forced, 6);
	ttmon_slots_finish(s);
	assert_int_equal(sink.nr, 4);
	assert_int_equal(sink.views[sink.nr_views - 1].no, 9);
	assert_false(sink.views[sink.nr_views - 1].forced);
	ttmon_slots_free(s);
}

static void jumps_over_long_gaps(void **state)
{
	struct ttmon_slots *s = make(4, 0);
	uint64_t far = 1000000000 * MS;

	(void)state;
	add(s, 0, 0);
	add(s, 3 * MS, 0);
	ttmon_slots_advance(s, 4096 * MS); /* one by one */
	assert_int_equal(sink.nr_views, 4096);
	assert_int_equal(sink.nr, 2);
	ttmon_slots_advance(s, far + 1);
	assert_int_equal(sink.nr_views, 8192);
	assert_int_equal(sink.views[8191].no, 8191);
	assert_int_equal(ttmon_slots_limit_ns(s), far + 4 * MS);
	add(s, far + 2 * MS, 0);
	ttmon_slots_finish(s);
	assert_int_equal(sink.ev[2].slot, far / MS + 2);
	ttmon_slots_free(s);

	s = make(4, 0); /* the same by an event: it lands in the window's last slot */
	add(s, 0, 0);
	add(s, far, 0);
	assert_int_equal(sink.nr_views, 4096);
	assert_int_equal(stats_of(s).forced, 4096);
	assert_int_equal(ttmon_slots_limit_ns(s), far + MS);
	ttmon_slots_finish(s);
	assert_int_equal(sink.nr, 2);
	assert_int_equal(sink.ev[1].slot, far / MS);
	ttmon_slots_free(s);
}

static void works_at_zero(void **state)
{
	struct ttmon_slots *s = make(4, 0);

	(void)state;
	add(s, 0, 0);
	add(s, UINT64_MAX, 1); /* just before */
	add(s, UINT64_MAX - 5 * MS, 1);
	add(s, MS - 1, 0);
	ttmon_slots_advance(s, UINT64_MAX - 9 * MS);
	assert_int_equal(sink.nr_views, 0);
	ttmon_slots_advance(s, MS);
	assert_int_equal(sink.nr_views, 1);
	assert_int_equal(sink.views[0].no, 0);
	assert_int_equal(sink.views[0].late, 2);
	assert_int_equal(sink.ev[0].ts_ns, UINT64_MAX - 5 * MS);
	assert_int_equal(sink.ev[1].ts_ns, UINT64_MAX);
	assert_int_equal(sink.ev[2].ts_ns, 0);
	assert_int_equal(sink.ev[3].ts_ns, MS - 1);
	ttmon_slots_free(s);
}

static void works_across_the_wrap(void **state)
{
	struct ttmon_slots *s = make(4, 0);
	uint64_t no = UINT64_MAX / MS, start = no * MS; /* the slot that holds both ends */
	uint64_t end = start + MS;

	(void)state;
	assert_true(end < MS);
	add(s, UINT64_MAX, 0);
	add(s, 0, 0);
	add(s, start, 0);
	add(s, end - 1, 0);
	add(s, end, 0);	      /* next slot */
	add(s, start - 1, 0); /* late */
	assert_int_equal(ttmon_slots_limit_ns(s), end + 3 * MS);
	ttmon_slots_advance(s, UINT64_MAX);
	ttmon_slots_advance(s, end - 1);
	assert_int_equal(sink.nr_views, 0);
	ttmon_slots_advance(s, end);
	assert_int_equal(sink.nr_views, 1);
	assert_int_equal(sink.views[0].no, no);
	assert_int_equal(sink.nr, 5);
	assert_true(sink.ev[0].late);
	assert_int_equal(sink.ev[1].ts_ns, start);
	assert_int_equal(sink.ev[2].ts_ns, UINT64_MAX);
	assert_int_equal(sink.ev[3].ts_ns, 0);
	assert_int_equal(sink.ev[4].ts_ns, end - 1);
	ttmon_slots_finish(s);
	assert_int_equal(sink.views[1].no, no + 1);
	assert_int_equal(sink.ev[5].ts_ns, end);
	assert_int_equal(stats_of(s).late, 1);
	ttmon_slots_free(s);
}

static void finish_closes_what_was_used(void **state)
{
	struct ttmon_slots *s = make(64, 0);

	(void)state;
	ttmon_slots_finish(s); /* nothing came */
	assert_int_equal(sink.nr_views, 0);
	add(s, 7 * MS, 0);
	add(s, 9 * MS, 0);
	ttmon_slots_finish(s);
	assert_int_equal(sink.nr_views, 3);
	assert_int_equal(sink.views[2].no, 9);
	ttmon_slots_finish(s);
	assert_int_equal(sink.nr_views, 3);
	add(s, 9 * MS, 0); /* retired stays retired */
	ttmon_slots_finish(s);
	assert_int_equal(sink.nr_views, 4);
	assert_int_equal(sink.views[3].no, 10);
	assert_int_equal(sink.views[3].late, 1);
	ttmon_slots_free(s);
}

static void counts_a_full_arena(void **state)
{
	/* Two chunks, an entry is 48 bytes: (65536 - 8) / 48 = 1365 in each. */
	struct ttmon_slots *s = make(4, 2 * 65536);
	struct ttmon_slots_stats st;

	(void)state;
	for (int round = 0; round < 3; round++) {
		uint64_t base = (uint64_t)round * 4 * MS;

		for (int i = 0; i < 3000; i++)
			add(s, base + (uint64_t)i, 0);
		add(s, base + MS, 0); /* no chunk left for the next slot either */
		ttmon_slots_advance(s, base + 4 * MS);
		assert_int_equal(sink.views[round * 4].events, 2 * 1365);
		assert_int_equal(sink.views[round * 4].lost, 3000 - 2 * 1365);
		assert_int_equal(sink.views[round * 4 + 1].lost, 1);
		assert_int_equal(sink.views[round * 4 + 1].events, 0);
	}
	st = stats_of(s);
	assert_int_equal(st.slotted, 3 * 2 * 1365);
	assert_int_equal(st.arena_full, 3 * (3001 - 2 * 1365));
	assert_int_equal(st.closed, 12);
	ttmon_slots_free(s);
}

static void keeps_bytes_and_sizes(void **state)
{
	struct ttmon_slots *s = make(4, 2 * 65536);
	uint64_t big[65536 / 8 + 8] = { 0 };
	struct ttmon_event *ev = (struct ttmon_event *)big;

	(void)state;
	ev->ts_ns = 5;
	for (size_t size = sizeof(struct ttmon_ev_munmap); size <= 8192; size *= 2) {
		ttmon_slots_add(s, ev, size);
		big[3]++;
	}
	ttmon_slots_add(s, ev, sizeof(big)); /* larger than a chunk: counted, not split */
	assert_int_equal(stats_of(s).arena_full, 1);
	ttmon_slots_finish(s);
	for (size_t i = 0, size = sizeof(struct ttmon_ev_munmap); size <= 8192; size *= 2, i++) {
		assert_int_equal(sink.ev[i].size, size);
		assert_int_equal(sink.ev[i].arrival, i);
	}
	ttmon_slots_free(s);
}

static void default_arena_serves_a_wide_window(void **state)
{
	struct ttmon_slots *s = make(4096, 0);

	(void)state;
	for (uint64_t i = 0; i < 4096; i++)
		add(s, i * MS, 0);
	assert_int_equal(stats_of(s).arena_full, 0);
	ttmon_slots_finish(s);
	assert_int_equal(sink.nr, 4096);
	ttmon_slots_free(s);
}

static uint32_t rnd(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return (uint32_t)(*x >> 32);
}

static int by_order(const void *pa, const void *pb)
{
	const struct seen *a = pa, *b = pb;

	if (a->ts_ns != b->ts_ns)
		return ttmon_before(a->ts_ns, b->ts_ns) ? -1 : 1;
	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	return a->arrival < b->arrival ? -1 : a->arrival > b->arrival;
}

enum shape { STREAMS, REVERSE, RANDOM, SAME_TIME, NEARLY, SHAPES };

/* Time of the i-th of n events to arrive, within 10 ms. */
static uint64_t shape_ns(enum shape shape, size_t i, size_t n, uint16_t *cpu, uint64_t *x)
{
	size_t step = 8 * MS / n, each = n / 40;

	*cpu = (uint16_t)(rnd(x) % 64);
	switch (shape) {
	case STREAMS: /* one CPU after the other, each in order of time */
		*cpu = (uint16_t)(i / each);
		return i % each * (9 * MS / each) + rnd(x) % 64;
	case REVERSE:
		return (n - i) * step;
	case RANDOM:
		return rnd(x) % (10 * MS);
	case SAME_TIME:
		return 77 + rnd(x) % 3;
	case NEARLY: /* in order except for pairs, and a few that come 12 places too late */
		return (i ^ 1) * step + (i % 1000 == 899 ? 13 : 25) * step;
	default:
		fail();
		return 0;
	}
}

static void equals_a_sort_of(enum shape shape, size_t n)
{
	struct seen *model = calloc(n, sizeof(*model));
	struct ttmon_slots *s = make(16, 4 << 20);
	uint64_t x = 88172645463325252ULL, base = UINT64_MAX - 4 * MS; /* runs over the wrap */

	assert_non_null(model);
	ttmon_slots_advance(s, base);
	for (size_t i = 0; i < n; i++) {
		uint16_t cpu;
		uint64_t ts = base + shape_ns(shape, i, n, &cpu, &x);

		model[i] = (struct seen){ .ts_ns = ts, .cpu = cpu, .arrival = i };
		add(s, ts, cpu);
	}
	qsort(model, n, sizeof(model[0]), by_order);
	ttmon_slots_finish(s);
	assert_int_equal(sink.nr, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(sink.ev[i].ts_ns, model[i].ts_ns);
		assert_int_equal(sink.ev[i].cpu, model[i].cpu);
		assert_int_equal(sink.ev[i].arrival, model[i].arrival);
		assert_false(sink.ev[i].late);
	}
	if (shape == NEARLY && n < 1000)
		assert_int_equal(stats_of(s).sorted, 0);
	else
		assert_true(stats_of(s).sorted > 0);
	ttmon_slots_free(s);
	free(model);
}

/*
 * Any order of arrival gives the order of qsort with the same key, in slots with few events
 * (insertion, merge) and with many (distribution).
 */
static void equals_a_sort(void **state)
{
	(void)state;
	for (int shape = 0; shape < SHAPES; shape++) {
		equals_a_sort_of(shape, 900);
		equals_a_sort_of(shape, 20000);
	}
}

/* Many late events of any age come before many of the slot itself. */
static void orders_late_events_too(void **state)
{
	struct ttmon_slots *s = make(8, 0);
	uint64_t x = 1;

	(void)state;
	ttmon_slots_advance(s, 100 * MS);
	for (int i = 0; i < 4000; i++)
		add(s, i % 4 ? 100 * MS + rnd(&x) % 2000 : 100 * MS - 1 - rnd(&x), (uint16_t)(rnd(&x) % 4));
	ttmon_slots_finish(s);
	assert_int_equal(sink.nr, 4000);
	assert_int_equal(sink.views[0].late, 1000);
	for (size_t i = 0; i < sink.nr; i++) {
		assert_int_equal(sink.ev[i].late, i < 1000);
		assert_true(i == 0 || by_order(&sink.ev[i - 1], &sink.ev[i]) < 0);
	}
	ttmon_slots_free(s);
}

/*
 * With any input, every event is in one counter, and every slot number is published once, in order.
 */
static void conserves_under_any_input(void **state)
{
	struct ttmon_slots *s = make(8, 3 * 65536);
	uint64_t x = 0x9e3779b97f4a7c15ULL, now = UINT64_MAX - 200 * MS, events = 0, late = 0, lost = 0;
	const uint64_t n = 50000;
	struct ttmon_slots_stats st;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t ts = now + rnd(&x) % (12 * MS) - 3 * MS;

		add(s, ts, (uint16_t)(rnd(&x) % 64));
		if (rnd(&x) % 64 == 0)
			ttmon_slots_advance(s, now += rnd(&x) % (2 * MS));
	}
	ttmon_slots_finish(s);
	for (size_t i = 0; i < sink.nr_views; i++) {
		events += sink.views[i].events;
		late += sink.views[i].late;
		lost += sink.views[i].lost;
		if (i)
			assert_int_equal(sink.views[i].no, sink.views[i - 1].no + 1);
	}
	st = stats_of(s);
	assert_int_equal(st.slotted + st.late + st.arena_full, n);
	assert_int_equal(events, st.slotted + st.late);
	assert_int_equal(late, st.late);
	assert_int_equal(lost, st.arena_full);
	assert_int_equal(sink.nr, events);
	assert_int_equal(st.closed, sink.nr_views);
	assert_true(st.late > 0 && st.forced > 0 && st.arena_full > 0);
	for (size_t i = 0; i < sink.nr; i++) {
		uint64_t off = sink.ev[i].ts_ns - sink.ev[i].slot * MS;

		assert_int_equal(sink.ev[i].late, (int64_t)off < 0);
		if (!sink.ev[i].late)
			assert_true(off < MS);
	}
	ttmon_slots_free(s);
}

static int drop_sink(void **state)
{
	(void)state;
	free(sink.ev);
	sink.ev = NULL;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_bad_cfg),
		cmocka_unit_test(orders_by_time_cpu_arrival),
		cmocka_unit_test(closes_half_open_slots_by_watermark),
		cmocka_unit_test(folds_late_events_into_the_oldest_slot),
		cmocka_unit_test(forces_the_oldest_when_the_window_is_full),
		cmocka_unit_test(jumps_over_long_gaps),
		cmocka_unit_test(works_at_zero),
		cmocka_unit_test(works_across_the_wrap),
		cmocka_unit_test(finish_closes_what_was_used),
		cmocka_unit_test(counts_a_full_arena),
		cmocka_unit_test(keeps_bytes_and_sizes),
		cmocka_unit_test(default_arena_serves_a_wide_window),
		cmocka_unit_test(equals_a_sort),
		cmocka_unit_test(orders_late_events_too),
		cmocka_unit_test(conserves_under_any_input),
	};

	return cmocka_run_group_tests(tests, NULL, drop_sink);
}
