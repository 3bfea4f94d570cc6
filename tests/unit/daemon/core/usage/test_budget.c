// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_budget.c: the rule of --max-overhead, simulated with a clock of its own. There are two CPUs, so
 * that one percent is 20 ms per second.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/usage/budget.h"

#define PERCENT	  (20 * NSEC_PER_MS)
#define T	  TTMON_FAMILY_TRANSFER
#define L	  TTMON_FAMILY_LAUNCH
#define D	  TTMON_FAMILY_DISPATCH
#define C	  TTMON_FAMILY_CPU
#define BIT(f)	  (1U << (f))
#define A	  TTMON_FAMILY_ALLOC
#define HOG	  4711
#define USERS	  20
#define FIRST_UID 1000

/* What happens in each second. */
struct rates {
	uint64_t base_ns; /* of the daemon, in any case */
	uint64_t hits[TTMON_FAMILY_MAX];
	uint64_t hit_ns[TTMON_FAMILY_MAX];   /* of the programs, when the family is on */
	uint64_t count_ns[TTMON_FAMILY_MAX]; /* of the programs, when the family is only counted */
	uint64_t user_ns[TTMON_FAMILY_MAX];  /* of the daemon, for each record */
	uint64_t fixed_ns[TTMON_FAMILY_MAX]; /* of the programs, whether it is reduced or not */
	double share[TTMON_FAMILY_MAX];	     /* share of the hits that process HOG makes */
	bool gone;
	unsigned int nr_users;
	double users[USERS][TTMON_FAMILY_MAX]; /* shares of the hits; user i is FIRST_UID + i, HOG's is the first */
};

static struct ttmon_budget *b;
static struct ttmon_budget_sample at;
static struct ttmon_budget_view v;
static unsigned int samples_a_second; /* 1, except in the test with more samples */

static void begin_often(double percent, unsigned int samples)
{
	const struct ttmon_budget_cfg cfg = { .max_percent = percent,
					      .cpus = 2,
					      .period_ns = samples == 1 ? 0 : NSEC_PER_SEC / samples };

	ttmon_budget_free(b);
	samples_a_second = samples;
	assert_int_equal(ttmon_budget_new(&cfg, &b), 0);
	at = (struct ttmon_budget_sample){ .now_ns = 1000 * NSEC_PER_SEC,
					   .countable = BIT(T) | BIT(L) | BIT(D) | BIT(C) };
	assert_false(ttmon_budget_add_sample(b, &at));
	ttmon_budget_get(b, &v);
}

static void begin(double percent)
{
	begin_often(percent, 1);
}

static int tear_down(void **state)
{
	(void)state;
	ttmon_budget_free(b);
	b = NULL;
	return 0;
}

/* alone: only in process HOG. */
static bool is_reduced(unsigned int f, bool alone)
{
	for (unsigned int i = 0; i < v.nr; i++)
		if (v.reductions[i].family == f && v.reductions[i].tgid == (alone ? HOG : 0) &&
		    (alone || v.reductions[i].uid == TTMON_BUDGET_NOBODY))
			return true;
	return false;
}

static bool is_user_reduced(unsigned int f, unsigned int user)
{
	for (unsigned int i = 0; i < v.nr; i++)
		if (v.reductions[i].family == f && !v.reductions[i].tgid && v.reductions[i].uid == FIRST_UID + user)
			return true;
	return false;
}

/* The part of a user's share of a family that is still reported. */
static double told_share(const struct rates *r, unsigned int f, unsigned int user)
{
	double share = r->users[user][f];

	if (is_user_reduced(f, user))
		return 0;
	return !user && is_reduced(f, true) ? share - r->share[f] : share;
}

static void tell_users(const struct rates *r)
{
	at.nr_users = r->nr_users;
	memset(at.users, 0, sizeof(at.users));
	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++) {
		at.counted[f] = 0;
		for (unsigned int u = 0; u < r->nr_users; u++) {
			at.counted[f] += r->users[u][f] - told_share(r, f, u);
			if (u >= TTMON_BUDGET_USERS)
				continue;
			at.users[u].uid = FIRST_UID + u;
			at.users[u].share[f] = r->users[u][f];
			at.users[u].told[f] = told_share(r, f, u);
		}
	}
}

static uint32_t counting(void)
{
	uint32_t mask = 0;

	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++)
		mask |= is_reduced(f, false) ? BIT(f) : 0;
	return mask;
}

/* Advances by one second. The reported changes must be the actual changes. */
static void second(const struct rates *r)
{
	struct ttmon_budget_view before = v;
	bool changed;

	at.now_ns += NSEC_PER_SEC / samples_a_second;
	at.daemon_ns += r->base_ns;
	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++) {
		double on = is_reduced(f, false)			    ? 0
			    : is_reduced(f, true) && !is_user_reduced(f, 0) ? 1 - r->share[f]
									    : 1;
		uint64_t told;

		for (unsigned int u = 0; u < r->nr_users && !is_reduced(f, false); u++)
			on -= is_user_reduced(f, u) ? r->users[u][f] : 0;
		told = (uint64_t)((double)r->hits[f] * MAX(on, 0.0) + 0.5);

		at.hits[f] += r->hits[f];
		at.bpf_ns[f] += told * r->hit_ns[f] + (r->hits[f] - told) * r->count_ns[f] + r->fixed_ns[f];
		at.daemon_ns += told * r->user_ns[f];
		at.records_ns += told * r->user_ns[f];
		at.records[f] += told;
		at.top[f].tgid = r->share[f] > 0 ? HOG : 0;
		at.top[f].uid = r->nr_users ? FIRST_UID : 0;
		at.top[f].share = r->share[f];
	}
	tell_users(r);
	for (unsigned int i = 0; i < v.nr; i++) {
		unsigned int f = v.reductions[i].family;

		double share = r->share[f];

		if (!v.reductions[i].tgid && v.reductions[i].uid != TTMON_BUDGET_NOBODY)
			share = r->users[v.reductions[i].uid - FIRST_UID][f];
		at.reduced[i].hits = (uint64_t)((double)r->hits[f] * share);
		at.reduced[i].gone = r->gone;
	}
	changed = ttmon_budget_add_sample(b, &at);
	ttmon_budget_get(b, &v);
	assert_int_equal(changed, v.nr != before.nr || v.over != before.over ||
					  memcmp(v.reductions, before.reductions, v.nr * sizeof(v.reductions[0])) != 0);
}

/* Repeats this until the set of reductions changes. Returns how many seconds that took. */
static unsigned int until_change(const struct rates *r, unsigned int at_most)
{
	struct ttmon_budget_view before = v;

	for (unsigned int i = 1; i <= at_most; i++) {
		second(r);
		if (v.nr != before.nr || memcmp(v.reductions, before.reductions, v.nr * sizeof(v.reductions[0])) != 0)
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
	struct rates r = { .base_ns = PERCENT / 4 };

	(void)state;
	begin(1);
	near(v.percent, 0);
	near(v.max_percent, 1);
	r.hits[T] = 1000;
	r.hit_ns[T] = 5000;
	r.user_ns[T] = 2000;
	r.hits[C] = 2000;
	r.hit_ns[C] = 1000;
	second(&r);
	near(v.daemon_percent, 0.35);
	near(v.base_percent, 0.25);
	near(v.family_percent[T], 0.25);
	near(v.family_percent[C], 0.1);
	near(v.family_percent[D], 0);
	near(v.bpf_percent, 0.35);
	near(v.percent, 0.7);
	assert_int_equal(v.nr, 0);
}

static void the_dearest_goes_first_and_transfers_last(void **state)
{
	struct rates r = { .base_ns = 100 };

	(void)state;
	begin(1);
	r.hits[T] = r.hits[L] = r.hits[D] = r.hits[C] = 1000;
	r.hit_ns[T] = 90000;
	r.hit_ns[L] = 40000;
	r.hit_ns[C] = 40001;
	r.hit_ns[D] = 1000;
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(counting(), BIT(C));
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(counting(), BIT(C) | BIT(L));
	/* Reducing dispatches would save too little. */
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(counting(), BIT(C) | BIT(L) | BIT(T));
	assert_int_equal(until_change(&r, 1000), 0);
	near(v.percent, 0.05 + 100.0 / PERCENT);
	assert_int_equal(v.reduced[L], 1);
	assert_int_equal(v.reduced[D], 0);
	assert_false(v.over);
}

static void the_mean_of_ten_seconds(void **state)
{
	struct rates much = { .base_ns = 0 }, little = { .base_ns = 0 };

	(void)state;
	begin(1);
	much.hits[T] = little.hits[T] = 1000;
	much.hit_ns[T] = 30000;
	little.hit_ns[T] = 10000;
	/* 0.833 percent on average. */
	for (int i = 0; i < 50; i++) {
		second(&much);
		second(&little);
		second(&little);
	}
	assert_int_equal(v.nr, 0);
	/* 1.1 percent. */
	for (int i = 0; i < 10 && !v.nr; i++) {
		second(&much);
		second(&much);
		second(&little);
	}
	assert_int_equal(counting(), BIT(T));
}

/* With five samples per second a decision takes a fifth of the time: the same number of samples. */
static void times_are_those_of_the_samples(void **state)
{
	const unsigned int often[] = { 1, 5 };
	struct rates much = { .base_ns = 0 }, none = { .base_ns = 0 };

	(void)state;
	much.hits[T] = 1000;
	much.hit_ns[T] = 30000;
	for (unsigned int i = 0; i < ARRAY_SIZE(often); i++) {
		begin_often(1, often[i]);
		assert_int_equal(until_change(&much, 100), 10);
		assert_int_equal(counting(), BIT(T));
		assert_int_equal(until_change(&none, 100), 10);
	}
}

/* The programs are cheap, but the daemon's work on the records is not. */
static void the_daemons_time_goes_by_records(void **state)
{
	struct rates r = { .base_ns = 0 };

	(void)state;
	begin(1);
	r.hits[L] = 10000;
	r.hit_ns[L] = r.user_ns[L] = 1500;
	r.hits[C] = 1000;
	r.hit_ns[C] = 8000;
	assert_int_equal(until_change(&r, 20), 10);
	assert_int_equal(counting(), BIT(L));
	/* Hits that are only counted, however many, have no share in it. */
	r.hits[L] = 1000000;
	r.hits[C] = 10000;
	r.hit_ns[C] = 0;
	r.user_ns[C] = 3000;
	assert_int_equal(until_change(&r, 20), 10);
	assert_int_equal(counting(), BIT(L) | BIT(C));
}

/* The daemon's base cost belongs to no family: no family is reduced for it. */
static void nothing_is_reduced_for_the_base(void **state)
{
	struct rates r = { .base_ns = 3 * PERCENT };

	(void)state;
	begin(1);
	r.hits[T] = r.hits[C] = r.hits[L] = 1000;
	r.hit_ns[T] = r.hit_ns[C] = r.hit_ns[L] = 1000;
	r.user_ns[T] = 1000;
	assert_int_equal(until_change(&r, 1000), 0);
	assert_true(v.over);
	near(v.base_percent, 3);
	r.base_ns = 0;
	for (int i = 0; i < 10; i++)
		second(&r);
	assert_false(v.over);
}

static void what_brought_nothing_is_undone(void **state)
{
	struct rates r = { .base_ns = 0 };

	(void)state;
	begin(1);
	r.hits[C] = 1000;
	r.fixed_ns[C] = 2 * PERCENT;
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(counting(), BIT(C));
	assert_int_equal(until_change(&r, 100), 3);
	assert_int_equal(counting(), 0);
	/* There is nothing else to reduce; a minute later it is tried again. */
	for (int i = 0; i < 10; i++)
		second(&r);
	assert_true(v.over);
	assert_int_equal(until_change(&r, 100), 50);
	assert_int_equal(counting(), BIT(C));
	/* Half of the expected saving is enough. */
	r.fixed_ns[C] = PERCENT / 2;
	assert_int_equal(until_change(&r, 9), 0);
}

static void a_process_that_makes_most_goes_alone(void **state)
{
	struct rates r = { .base_ns = 0 }, over = { .base_ns = 0 };

	(void)state;
	begin(1);
	r.hits[T] = 10000;
	r.hit_ns[T] = 6000;
	r.count_ns[T] = 100;
	r.share[T] = 0.9;
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(counting(), 0);
	assert_true(is_reduced(T, true));
	assert_int_equal(until_change(&r, 1000), 0);
	near(v.percent, 0.3 + 0.045);
	/* Its load is over: ten seconds. */
	over.hits[T] = 1000;
	over.hit_ns[T] = 6000;
	assert_int_equal(until_change(&over, 100), 10);
	assert_int_equal(v.nr, 0);
	/* The process has ended. */
	assert_int_equal(until_change(&r, 100), 10);
	assert_true(is_reduced(T, true));
	over.gone = true;
	assert_int_equal(until_change(&over, 100), 1);
	assert_int_equal(v.nr, 0);
	/* The hits of other processes are still too much: then the whole family is reduced. */
	r.share[T] = 0.6;
	assert_int_equal(until_change(&r, 100), 10);
	assert_true(is_reduced(T, true));
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(counting(), BIT(T));
	/* No process has a large share. */
	begin(1);
	r.share[T] = 0.4;
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(counting(), BIT(T));
	assert_false(is_reduced(T, true));
}

/* Many processes of one user: that user is reduced, not the other one. */
static void the_user_who_costs_most_pays(void **state)
{
	struct rates r = { .nr_users = 2 };

	(void)state;
	begin(1);
	r.hits[T] = 10000;
	r.hit_ns[T] = 6000;
	r.share[T] = 0.02;
	r.users[0][T] = 0.9;
	r.users[1][T] = 0.1;
	assert_int_equal(until_change(&r, 100), 10);
	assert_true(is_user_reduced(T, 0));
	assert_int_equal(v.nr, 1);
	assert_int_equal(until_change(&r, 1000), 0);
	near(v.percent, 0.3);
	/* The load is over: ten seconds. */
	r.hits[T] = 1000;
	r.users[0][T] = 0;
	r.users[1][T] = 1;
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(v.nr, 0);
	/*
	 * One process of that user makes most of a family's cost: it alone is reduced, then the whole user.
	 */
	r.hits[T] = 10000;
	r.share[T] = 0.5;
	r.users[0][T] = 0.8;
	r.users[1][T] = 0.2;
	r.hit_ns[T] = 12000;
	assert_int_equal(until_change(&r, 100), 10);
	assert_true(is_reduced(T, true));
	assert_int_equal(until_change(&r, 100), 10);
	assert_true(is_user_reduced(T, 0));
	/* The other one costs 1.2 percent, more than half of the budget. */
	assert_int_equal(until_change(&r, 100), 10);
	assert_true(is_user_reduced(T, 1));
	assert_int_equal(counting(), 0);
}

/* A cost of one user that cannot be reduced does not cause another user to be reduced. */
static void nobody_pays_for_what_another_does(void **state)
{
	struct rates r = { .nr_users = 2 };

	(void)state;
	begin(1);
	at.countable &= ~BIT(A);
	/* One user causes five percent by allocations, another 0.49 by copies. */
	r.hits[A] = 10000;
	r.hit_ns[A] = 10000;
	r.users[0][A] = 1;
	r.hits[T] = 1000;
	r.hit_ns[T] = 9800;
	r.share[T] = 0;
	r.users[1][T] = 1;
	assert_int_equal(until_change(&r, 1000), 0);
	assert_true(v.over);
	/* The same by one process. HOG belongs to the first user, which is the quiet one here. */
	begin(1);
	r.users[0][A] = r.users[1][T] = 0;
	r.users[1][A] = r.users[0][T] = 1;
	r.share[T] = 1;
	assert_int_equal(until_change(&r, 1000), 0);
	assert_true(v.over);
	/* If the user is alone on the machine, it is reduced. */
	begin(1);
	r = (struct rates){ .nr_users = 1 };
	r.hits[T] = 10000;
	r.hit_ns[T] = 3000;
	r.users[0][T] = 1;
	assert_int_equal(until_change(&r, 1000), 10);
	assert_true(is_user_reduced(T, 0));
}

/*
 * Counting costs, too: one user makes so many calls that counting them alone is too much. The other
 * user is not reduced for that.
 */
static void nobody_pays_for_what_is_counted(void **state)
{
	struct rates r = { .nr_users = 2 };

	(void)state;
	begin(1);
	r.hits[T] = 100000;
	r.hit_ns[T] = 1000;
	r.count_ns[T] = 300;
	r.users[0][T] = 0.92;
	r.users[1][T] = 0.08;
	assert_int_equal(until_change(&r, 100), 10);
	assert_true(is_user_reduced(T, 0));
	assert_int_equal(until_change(&r, 1000), 0);
	assert_true(v.over);
	near(v.percent, 5 * (0.92 * 0.3 + 0.08));
}

/*
 * No single user causes a tenth of the excess: all are reduced, except for one whose share is small.
 */
static void many_users_together(void **state)
{
	struct rates r = { .nr_users = USERS };

	(void)state;
	begin(1);
	r.hits[T] = 10000;
	r.hit_ns[T] = 30000;
	for (unsigned int u = 0; u < USERS; u++)
		r.users[u][T] = 1.0 / USERS;
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(counting(), BIT(T));
}

static void a_steady_load_does_not_bring_it_back(void **state)
{
	struct rates r = { .base_ns = 0 };

	(void)state;
	begin(1);
	r.hits[C] = 1000;
	r.hit_ns[C] = 21000;
	r.count_ns[C] = 100;
	assert_int_equal(until_change(&r, 20), 10);
	assert_int_equal(until_change(&r, 5000), 0);
	/* With a tenth fewer hits there is room for it. */
	r.hits[C] = 900;
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(v.nr, 0);
	assert_int_equal(until_change(&r, 5000), 0);
	assert_int_equal(v.reduced[C], 1);
}

static void the_pause_doubles_and_is_forgotten(void **state)
{
	static const unsigned int pauses[] = { 10, 20, 40, 80, 160, 320, 600, 600 };
	struct rates busy = { .base_ns = 0 }, calm = { .base_ns = 0 }, idle = { .base_ns = 0 };

	(void)state;
	begin(1);
	busy.hits[T] = 1000;
	busy.hit_ns[T] = 30000;
	/* It would need half of the budget. */
	calm.hits[T] = 333;
	calm.hit_ns[T] = 30000;
	for (size_t i = 0; i < ARRAY_SIZE(pauses); i++) {
		assert_int_equal(until_change(&busy, 20), 10);
		assert_int_equal(v.reduced[T], i + 1);
		assert_int_equal(until_change(&calm, 1000), pauses[i]);
	}
	/* Almost nothing: the load is over, so it need not wait longer. */
	assert_int_equal(until_change(&busy, 20), 10);
	assert_int_equal(until_change(&idle, 1000), 10);
	/* A minute without it resets the pause. */
	assert_int_equal(until_change(&calm, 60), 0);
	assert_int_equal(until_change(&busy, 20), 6);
	assert_int_equal(until_change(&calm, 1000), 10);
}

static void a_pause_is_of_one_piece(void **state)
{
	struct rates busy = { .base_ns = 0 }, idle = { .base_ns = 0 };

	(void)state;
	begin(1);
	busy.hits[T] = 1000;
	busy.hit_ns[T] = 30000;
	assert_int_equal(until_change(&busy, 20), 10);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(until_change(&idle, 9), 0);
		second(&busy);
	}
	assert_int_equal(until_change(&idle, 100), 10);
}

static void the_cheapest_comes_back_first(void **state)
{
	struct rates r = { .base_ns = 0 };

	(void)state;
	begin(1);
	r.hits[D] = 1000;
	r.hit_ns[D] = 30000;
	r.hits[L] = 1000;
	r.hit_ns[L] = 40000;
	assert_int_equal(until_change(&r, 20), 10);
	assert_int_equal(until_change(&r, 20), 10);
	assert_int_equal(counting(), BIT(D) | BIT(L));
	/* Now there is room for one of the two, but not for both. */
	r.hits[D] = 400;
	r.hits[L] = 400;
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(counting(), BIT(L));
	assert_int_equal(until_change(&r, 1000), 0);
	/* Now there is room for both. */
	r.hits[D] = 100;
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(counting(), 0);
	/* If the load of both is over they come back together. */
	r.hits[D] = r.hits[L] = 1000;
	assert_int_equal(until_change(&r, 20), 10);
	assert_int_equal(until_change(&r, 20), 10);
	r.hits[D] = r.hits[L] = 0;
	assert_int_equal(until_change(&r, 100), 10);
	assert_int_equal(counting(), 0);
}

static void over_when_nothing_is_left(void **state)
{
	struct rates r = { .base_ns = 2 * PERCENT };

	(void)state;
	begin(1);
	at.countable = BIT(T);
	r.hits[T] = 1000;
	r.hit_ns[T] = 10000;
	/* A family that may not be reduced is not reduced, whatever it costs. */
	r.hits[TTMON_FAMILY_ALLOC] = 1000;
	r.hit_ns[TTMON_FAMILY_ALLOC] = 9000;
	assert_int_equal(until_change(&r, 20), 10);
	assert_int_equal(counting(), BIT(T));
	assert_false(v.over);
	for (int i = 0; i < 9; i++)
		second(&r);
	assert_false(v.over);
	second(&r);
	assert_true(v.over);
	for (int i = 0; i < 30; i++)
		second(&r);
	assert_true(v.over);
	assert_int_equal(counting(), BIT(T));
	/* Another family may be reduced, and saves enough: it is reduced at once. */
	at.countable |= BIT(L);
	r.hits[L] = 1000;
	r.hit_ns[L] = 30000;
	for (int i = 0; i < 10 && !(counting() & BIT(L)); i++)
		second(&r);
	assert_int_equal(counting(), BIT(T) | BIT(L));
	assert_false(v.over);
}

static void counters_that_begin_anew(void **state)
{
	struct rates r = { .base_ns = PERCENT / 10 };

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
	struct rates busy = { .base_ns = 0 }, idle = { .base_ns = 0 };

	(void)state;
	begin(1);
	busy.hits[T] = 1000;
	busy.hit_ns[T] = 30000;
	assert_int_equal(until_change(&busy, 20), 10);
	/* An hour without samples counts as two seconds. */
	at.now_ns += 3600 * NSEC_PER_SEC;
	second(&idle);
	assert_int_equal(counting(), BIT(T));
	assert_int_equal(until_change(&idle, 100), 8);
	/* The clock goes back, and the same time comes twice: nothing is judged. */
	for (int i = 0; i < 10; i++) {
		at.now_ns -= 100 * NSEC_PER_SEC;
		second(&busy);
		at.now_ns -= NSEC_PER_SEC;
		second(&busy);
	}
	assert_int_equal(counting(), 0);
	assert_int_equal(until_change(&busy, 20), 10);
	for (int i = 0; i < 20; i++) {
		at.now_ns -= 100 * NSEC_PER_SEC;
		second(&idle);
	}
	assert_int_equal(counting(), BIT(T));
	assert_int_equal(until_change(&idle, 100), 10);
}

static void what_others_took_is_not_ours(void **state)
{
	struct rates busy = { .base_ns = 0 }, idle = { .base_ns = 0 };

	(void)state;
	begin(1);
	busy.hits[T] = 1000;
	busy.hit_ns[T] = 30000;
	assert_int_equal(until_change(&busy, 20), 10);
	assert_int_equal(until_change(&idle, 5), 0);
	at.countable &= ~BIT(T);
	assert_int_equal(until_change(&idle, 10), 1);
	assert_int_equal(counting(), 0);
	/* After the family may be reduced again, the rule starts from the beginning. */
	at.countable |= BIT(T);
	assert_int_equal(until_change(&idle, 100), 0);
	assert_int_equal(until_change(&busy, 20), 7);
	assert_int_equal(until_change(&idle, 100), 10);
}

static void no_budget_is_no_budget(void **state)
{
	struct rates r = { .base_ns = 100 * PERCENT };

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
	struct rates busy = { .base_ns = 0 }, idle = { .base_ns = 0 };

	(void)state;
	begin(1);
	busy.hits[T] = 1000;
	busy.hit_ns[T] = 30000;
	assert_int_equal(until_change(&busy, 20), 10);
	ttmon_budget_reset(b);
	ttmon_budget_get(b, &v);
	assert_int_equal(v.nr, 0);
	assert_int_equal(v.reduced[T], 1);
	assert_int_equal(until_change(&busy, 20), 10);
	assert_int_equal(until_change(&idle, 100), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_is_measured, tear_down),
		cmocka_unit_test_teardown(the_dearest_goes_first_and_transfers_last, tear_down),
		cmocka_unit_test_teardown(the_mean_of_ten_seconds, tear_down),
		cmocka_unit_test_teardown(times_are_those_of_the_samples, tear_down),
		cmocka_unit_test_teardown(the_daemons_time_goes_by_records, tear_down),
		cmocka_unit_test_teardown(nothing_is_reduced_for_the_base, tear_down),
		cmocka_unit_test_teardown(what_brought_nothing_is_undone, tear_down),
		cmocka_unit_test_teardown(a_process_that_makes_most_goes_alone, tear_down),
		cmocka_unit_test_teardown(the_user_who_costs_most_pays, tear_down),
		cmocka_unit_test_teardown(nobody_pays_for_what_another_does, tear_down),
		cmocka_unit_test_teardown(nobody_pays_for_what_is_counted, tear_down),
		cmocka_unit_test_teardown(many_users_together, tear_down),
		cmocka_unit_test_teardown(a_steady_load_does_not_bring_it_back, tear_down),
		cmocka_unit_test_teardown(the_pause_doubles_and_is_forgotten, tear_down),
		cmocka_unit_test_teardown(a_pause_is_of_one_piece, tear_down),
		cmocka_unit_test_teardown(the_cheapest_comes_back_first, tear_down),
		cmocka_unit_test_teardown(over_when_nothing_is_left, tear_down),
		cmocka_unit_test_teardown(counters_that_begin_anew, tear_down),
		cmocka_unit_test_teardown(clocks_that_jump, tear_down),
		cmocka_unit_test_teardown(what_others_took_is_not_ours, tear_down),
		cmocka_unit_test_teardown(no_budget_is_no_budget, tear_down),
		cmocka_unit_test_teardown(all_come_back_when_asked, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
