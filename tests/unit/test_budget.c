// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_budget.c: the rule of --max-overhead, in a world with a clock of its own. Two CPUs, so that one percent is 20 ms a second.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/budget.h"

#define PERCENT (20 * NSEC_PER_MS)
#define T	TTMON_FAMILY_TRANSFER
#define L	TTMON_FAMILY_LAUNCH
#define M	TTMON_FAMILY_MMAP
#define C	TTMON_FAMILY_CPU
#define BIT(f)	(1U << (f))

/* What happens in a second. */
struct rates {
	uint64_t daemon_ns;
	uint64_t hits[TTMON_FAMILY_MAX];
	uint64_t hit_ns[TTMON_FAMILY_MAX];   /* of the programs, when the family is on */
	uint64_t count_ns[TTMON_FAMILY_MAX]; /* and when it only counts */
	uint64_t user_ns[TTMON_FAMILY_MAX];  /* of the daemon, when it is on */
};

static struct ttmon_budget *b;
static struct ttmon_budget_sample at;
static struct ttmon_budget_view v;

static void begin(double percent)
{
	ttmon_budget_free(b);
	assert_int_equal(ttmon_budget_new(&(struct ttmon_budget_cfg){ .max_percent = percent, .cpus = 2 }, &b), 0);
	at = (struct ttmon_budget_sample){ .now_ns = 1000 * NSEC_PER_SEC,
					   .countable = BIT(T) | BIT(L) | BIT(M) | BIT(C) };
	assert_false(ttmon_budget_sample(b, &at));
	ttmon_budget_get(b, &v);
}

static int tear_down(void **state)
{
	(void)state;
	ttmon_budget_free(b);
	b = NULL;
	return 0;
}

/* One second later. What has been said to have changed is what has. */
static void second(const struct rates *r)
{
	struct ttmon_budget_view before = v;
	bool changed;

	at.now_ns += NSEC_PER_SEC;
	at.daemon_ns += r->daemon_ns;
	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++) {
		bool on = !(v.counting & BIT(f));

		at.hits[f] += r->hits[f];
		at.bpf_ns[f] += r->hits[f] * (on ? r->hit_ns[f] : r->count_ns[f]);
		at.daemon_ns += on ? r->hits[f] * r->user_ns[f] : 0;
	}
	changed = ttmon_budget_sample(b, &at);
	ttmon_budget_get(b, &v);
	assert_int_equal(changed, v.counting != before.counting || v.over != before.over);
}

/* The same again until counting changes: how many seconds that took. */
static unsigned int until_change(const struct rates *r, unsigned int at_most)
{
	uint32_t before = v.counting;

	for (unsigned int i = 1; i <= at_most; i++) {
		second(r);
		if (v.counting != before)
			return i;
	}
	return 0;
}

static void near(double is, double should)
{
	assert_true(is > should - 1e-9 && is < should + 1e-9);
}

static void what_is_measured(void **state)
{
	struct rates r = { .daemon_ns = PERCENT / 4 };

	(void)state;
	begin(1);
	near(v.percent, 0);
	r.hits[T] = 1000;
	r.hit_ns[T] = 5000;
	r.hits[C] = 2000;
	r.hit_ns[C] = 1000;
	second(&r);
	near(v.daemon_percent, 0.25);
	near(v.family_percent[T], 0.25);
	near(v.family_percent[C], 0.1);
	near(v.family_percent[M], 0);
	near(v.bpf_percent, 0.35);
	near(v.percent, 0.6);
	assert_int_equal(v.counting, 0);
}

static void the_dearest_goes_first_and_one_at_a_time(void **state)
{
	struct rates r = { .daemon_ns = 100 };

	(void)state;
	begin(1);
	r.hits[T] = r.hits[L] = r.hits[M] = 1000;
	r.hit_ns[T] = 20000;
	r.hit_ns[L] = 40000;
	r.hit_ns[M] = 10000;
	second(&r);
	second(&r);
	assert_int_equal(v.counting, 0);
	second(&r);
	assert_int_equal(v.counting, BIT(L));
	/* 1.5 percent are left. */
	second(&r);
	second(&r);
	assert_int_equal(v.counting, BIT(L));
	second(&r);
	assert_int_equal(v.counting, BIT(L) | BIT(T));
	assert_int_equal(until_change(&r, 1000), 0);
	near(v.percent, 0.5 + 100.0 / PERCENT);
	assert_int_equal(v.reduced[L], 1);
	assert_int_equal(v.reduced[T], 1);
	assert_int_equal(v.reduced[M], 0);
	assert_false(v.over);
}

static void three_in_a_row_or_nothing(void **state)
{
	struct rates much = { .daemon_ns = 2 * PERCENT }, little = { .daemon_ns = PERCENT / 2 };

	(void)state;
	begin(1);
	much.hits[T] = little.hits[T] = 10;
	for (int i = 0; i < 50; i++) {
		second(&much);
		second(&much);
		second(&little);
	}
	assert_int_equal(v.counting, 0);
}

/* The programs are cheap, what the daemon does with the events is not. */
static void the_daemons_time_goes_by_events(void **state)
{
	struct rates r = { .daemon_ns = 0 };

	(void)state;
	begin(1);
	r.hits[T] = 10000;
	r.hit_ns[T] = r.user_ns[T] = 1000;
	r.hits[M] = 1000;
	r.hit_ns[M] = 8000;
	r.user_ns[M] = 5000;
	assert_int_equal(until_change(&r, 10), 3);
	assert_int_equal(v.counting, BIT(T));
	near(v.percent, 1.65);
	second(&r);
	near(v.percent, 0.65);
	/* Counted hits, as many as there may be, have no part in it. */
	r.hits[T] = 1000000;
	r.hits[M] = 10000;
	r.hit_ns[M] = 0;
	r.user_ns[M] = 3000;
	r.hits[L] = 100;
	r.hit_ns[L] = 60000;
	assert_int_equal(until_change(&r, 10), 3);
	assert_int_equal(v.counting, BIT(T) | BIT(M));
}

static void a_steady_load_does_not_bring_it_back(void **state)
{
	struct rates r = { .daemon_ns = 0 };

	(void)state;
	begin(1);
	r.hits[C] = 1000;
	r.hit_ns[C] = 21000;
	r.count_ns[C] = 100;
	assert_int_equal(until_change(&r, 10), 3);
	assert_int_equal(until_change(&r, 5000), 0);
	/* With a tenth fewer hits there is room for it. */
	r.hits[C] = 900;
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(v.counting, 0);
	assert_int_equal(until_change(&r, 5000), 0);
	assert_int_equal(v.reduced[C], 1);
}

static void the_pause_doubles_and_is_forgotten(void **state)
{
	static const unsigned int pauses[] = { 10, 20, 40, 80, 160, 320, 600, 600 };
	struct rates busy = { .daemon_ns = 0 }, idle = { .daemon_ns = 0 };

	(void)state;
	begin(1);
	busy.hits[T] = 1000;
	busy.hit_ns[T] = 30000;
	for (size_t i = 0; i < ARRAY_SIZE(pauses); i++) {
		assert_int_equal(until_change(&busy, 10), 3);
		assert_int_equal(v.reduced[T], i + 1);
		assert_int_equal(until_change(&idle, 1000), pauses[i]);
	}
	/* A minute without is as good as never. */
	assert_int_equal(until_change(&idle, 57), 0);
	assert_int_equal(until_change(&busy, 10), 3);
	assert_int_equal(until_change(&idle, 1000), 10);
	assert_int_equal(until_change(&idle, 56), 0);
	assert_int_equal(until_change(&busy, 10), 3);
	assert_int_equal(until_change(&idle, 1000), 20);
}

static void a_pause_is_of_one_piece(void **state)
{
	struct rates busy = { .daemon_ns = 0 }, idle = { .daemon_ns = 0 };

	(void)state;
	begin(1);
	busy.hits[T] = 1000;
	busy.hit_ns[T] = 30000;
	assert_int_equal(until_change(&busy, 10), 3);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(until_change(&idle, 9), 0);
		second(&busy);
	}
	assert_int_equal(until_change(&idle, 100), 10);
}

static void the_cheapest_comes_back_first(void **state)
{
	struct rates r = { .daemon_ns = 0 };

	(void)state;
	begin(1);
	r.hits[T] = 1000;
	r.hit_ns[T] = 30000;
	r.hits[L] = 1000;
	r.hit_ns[L] = 40000;
	assert_int_equal(until_change(&r, 10), 3);
	assert_int_equal(until_change(&r, 10), 3);
	assert_int_equal(v.counting, BIT(T) | BIT(L));
	/* Now there is room for either, and for no two. */
	r.hits[T] = 400;
	r.hits[L] = 400;
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(v.counting, BIT(L));
	assert_int_equal(until_change(&r, 1000), 0);
	/* Now for two. */
	r.hits[T] = 100;
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(v.counting, 0);
	/* Where there is room for both at once, the second waits for what the first does to the cost. */
	r.hits[T] = r.hits[L] = 1000;
	assert_int_equal(until_change(&r, 10), 3);
	assert_int_equal(until_change(&r, 10), 3);
	r.hits[T] = r.hits[L] = 0;
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(v.counting, BIT(L));
	assert_int_equal(until_change(&r, 100), 20);
}

/* A program that runs and gives no events costs what it did cost. */
static void without_hits_the_cost_is_that_of_before(void **state)
{
	struct rates r = { .daemon_ns = 0 };

	(void)state;
	begin(1);
	for (int i = 0; i < 3; i++) {
		at.bpf_ns[M] += 2 * PERCENT;
		second(&r);
	}
	assert_int_equal(v.counting, BIT(M));
	assert_int_equal(until_change(&r, 1000), 0);
}

static void over_when_nothing_is_left(void **state)
{
	struct rates r = { .daemon_ns = 2 * PERCENT };

	(void)state;
	begin(1);
	at.countable = BIT(T);
	r.hits[T] = 1000;
	r.hit_ns[T] = 1000;
	/* What may not be reduced is not, however much it costs. */
	r.hits[TTMON_FAMILY_ALLOC] = 1000;
	r.hit_ns[TTMON_FAMILY_ALLOC] = 9000;
	assert_int_equal(until_change(&r, 10), 3);
	assert_int_equal(v.counting, BIT(T));
	assert_false(v.over);
	second(&r);
	second(&r);
	assert_false(v.over);
	second(&r);
	assert_true(v.over);
	for (int i = 0; i < 10; i++)
		second(&r);
	assert_true(v.over);
	assert_int_equal(v.counting, BIT(T));
	/* One more that may be: it goes at once. */
	at.countable |= BIT(L);
	r.hits[L] = 10;
	second(&r);
	assert_int_equal(v.counting, BIT(T) | BIT(L));
	assert_false(v.over);
	for (int i = 0; i < 3; i++)
		second(&r);
	assert_true(v.over);
	r.daemon_ns = 0;
	second(&r);
	assert_false(v.over);
}

static void what_costs_nothing_is_left_alone(void **state)
{
	struct rates r = { .daemon_ns = 3 * PERCENT };

	(void)state;
	begin(1);
	for (int i = 0; i < 10; i++)
		second(&r);
	assert_int_equal(v.counting, 0);
	assert_true(v.over);
}

static void counters_that_begin_anew(void **state)
{
	struct rates r = { .daemon_ns = PERCENT / 10 };

	(void)state;
	begin(1);
	r.hits[T] = 1000;
	r.hit_ns[T] = 10000;
	for (int i = 0; i < 20; i++)
		second(&r);
	/* The programs were loaded again. */
	at.bpf_ns[T] = 0;
	at.hits[T] = 0;
	second(&r);
	near(v.family_percent[T], 0.5);
	near(v.percent, 0.6);
	assert_int_equal(until_change(&r, 100), 0);
}

static void clocks_that_jump(void **state)
{
	struct rates busy = { .daemon_ns = 0 }, idle = { .daemon_ns = 0 };

	(void)state;
	begin(1);
	busy.hits[T] = 1000;
	busy.hit_ns[T] = 30000;
	assert_int_equal(until_change(&busy, 10), 3);
	/* An hour in which nothing was looked at is worth two seconds. */
	at.now_ns += 3600 * NSEC_PER_SEC;
	second(&idle);
	assert_int_equal(v.counting, BIT(T));
	assert_int_equal(until_change(&idle, 100), 8);
	/* Back, and the same time twice: nothing is judged. */
	for (int i = 0; i < 10; i++) {
		at.now_ns -= 100 * NSEC_PER_SEC;
		second(&busy);
		at.now_ns -= NSEC_PER_SEC;
		second(&busy);
	}
	assert_int_equal(v.counting, 0);
	assert_int_equal(until_change(&busy, 10), 3);
	for (int i = 0; i < 20; i++) {
		at.now_ns -= 100 * NSEC_PER_SEC;
		second(&idle);
	}
	assert_int_equal(v.counting, BIT(T));
	assert_int_equal(until_change(&idle, 100), 20);
}

static void what_others_took_is_not_ours(void **state)
{
	struct rates busy = { .daemon_ns = 0 }, idle = { .daemon_ns = 0 };

	(void)state;
	begin(1);
	busy.hits[T] = 1000;
	busy.hit_ns[T] = 30000;
	assert_int_equal(until_change(&busy, 10), 3);
	assert_int_equal(until_change(&idle, 5), 0);
	at.countable &= ~BIT(T);
	assert_int_equal(until_change(&idle, 10), 1);
	assert_int_equal(v.counting, 0);
	/* Given back, it begins anew. */
	at.countable |= BIT(T);
	assert_int_equal(until_change(&idle, 100), 0);
	assert_int_equal(until_change(&busy, 10), 3);
	assert_int_equal(until_change(&idle, 100), 10);
}

static void no_budget_is_no_budget(void **state)
{
	struct rates r = { .daemon_ns = 100 * PERCENT };

	(void)state;
	begin(0);
	r.hits[T] = 1000;
	r.hit_ns[T] = 30000;
	assert_int_equal(until_change(&r, 1000), 0);
	assert_false(v.over);
	near(v.percent, 101.5);
}

static void all_come_back_when_asked(void **state)
{
	struct rates busy = { .daemon_ns = 0 }, idle = { .daemon_ns = 0 };

	(void)state;
	begin(1);
	busy.hits[T] = 1000;
	busy.hit_ns[T] = 30000;
	assert_int_equal(until_change(&busy, 10), 3);
	assert_int_equal(until_change(&idle, 100), 10);
	assert_int_equal(until_change(&busy, 10), 3);
	ttmon_budget_reset(b);
	ttmon_budget_get(b, &v);
	assert_int_equal(v.counting, 0);
	assert_int_equal(v.reduced[T], 2);
	assert_int_equal(until_change(&busy, 10), 3);
	assert_int_equal(until_change(&idle, 100), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_is_measured, tear_down),
		cmocka_unit_test_teardown(the_dearest_goes_first_and_one_at_a_time, tear_down),
		cmocka_unit_test_teardown(three_in_a_row_or_nothing, tear_down),
		cmocka_unit_test_teardown(the_daemons_time_goes_by_events, tear_down),
		cmocka_unit_test_teardown(a_steady_load_does_not_bring_it_back, tear_down),
		cmocka_unit_test_teardown(the_pause_doubles_and_is_forgotten, tear_down),
		cmocka_unit_test_teardown(a_pause_is_of_one_piece, tear_down),
		cmocka_unit_test_teardown(the_cheapest_comes_back_first, tear_down),
		cmocka_unit_test_teardown(without_hits_the_cost_is_that_of_before, tear_down),
		cmocka_unit_test_teardown(over_when_nothing_is_left, tear_down),
		cmocka_unit_test_teardown(what_costs_nothing_is_left_alone, tear_down),
		cmocka_unit_test_teardown(counters_that_begin_anew, tear_down),
		cmocka_unit_test_teardown(clocks_that_jump, tear_down),
		cmocka_unit_test_teardown(what_others_took_is_not_ours, tear_down),
		cmocka_unit_test_teardown(no_budget_is_no_budget, tear_down),
		cmocka_unit_test_teardown(all_come_back_when_asked, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
