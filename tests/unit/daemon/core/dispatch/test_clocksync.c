// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_clocksync.c: device cycles onto the host's clock: precision and the promised bound over many
 * seeds, and what a counter and a hostile program do to it. Virtual time. The truth is kept in long
 * double, relative to where the counter began.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/dispatch/clocksync.h"
#include "daemon/core/dispatch/tsc.h"

#define MS    NSEC_PER_MS
#define US    NSEC_PER_US
#define SEEDS 1000

enum jitter { UNIFORM, GAUSSIAN, ONE_SIDED, JITTERS };

/* splitmix64 */
static uint64_t state;

static uint64_t rnd(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static double frac(void)
{
	return (double)(rnd() >> 11) * 0x1p-53;
}

/* A device: cycles = c0 + ghz * (t - t0). */
struct device {
	uint64_t t0, c0;
	long double ghz;
};

static uint64_t cycles_at(const struct device *d, uint64_t t)
{
	return d->c0 + (uint64_t)(int64_t)(d->ghz * (long double)(int64_t)(t - d->t0));
}

/* How far a mapped time is from the truth, ns. */
static double off(const struct device *d, uint64_t cycles, uint64_t mapped)
{
	long double true_ns = (long double)(int64_t)(cycles - d->c0) / d->ghz;
	long double e = (long double)(int64_t)(mapped - d->t0) - true_ns;

	return (double)(e < 0 ? -e : e);
}

/* Within [-1 us, 1 us], or [0, 1 us] for delays alone. */
static int64_t jitter_ns(enum jitter kind)
{
	double g;

	switch (kind) {
	case UNIFORM:
		return (int64_t)(frac() * 2000) - 1000;
	case GAUSSIAN:
		do {
			g = 0;
			for (int i = 0; i < 12; i++)
				g += frac();
			g = (g - 6) * 500;
		} while (g > 1000 || g < -1000);
		return (int64_t)g;
	default:
		return (int64_t)(frac() * 1000);
	}
}

static bool add(struct ttmon_clocksync *c, uint64_t host, uint64_t cycles, uint32_t error)
{
	struct ttmon_sync_pair p = { host, cycles, error };

	return ttmon_clocksync_add(c, &p);
}

static bool add_true(struct ttmon_clocksync *c, const struct device *d, uint64_t t)
{
	return add(c, t, cycles_at(d, t), 0);
}

static struct device random_device(uint64_t seed)
{
	static const uint64_t c0[] = { 0, 1, 12345678901234ULL, 1ULL << 63, (1ULL << 63) - 5, UINT64_MAX - 400000000 };
	static const double ghz[] = { 1.0, 1.35, 0.5, 0.21, 1.99 };
	struct device d = {
		.t0 = seed % 7 == 0 ? UINT64_MAX - 200 * MS : rnd() >> (2 + seed % 40),
		.c0 = c0[seed % ARRAY_SIZE(c0)],
		.ghz = ghz[seed % ARRAY_SIZE(ghz)] * (1 + 50e-6L),
	};

	return d;
}

/* The requirement: 100 samples 5 ms apart, 1 us of jitter, 50 ppm off, 5 % outliers of up to 1 ms. */
static void run_seed(uint64_t seed, enum jitter kind, bool told)
{
	struct ttmon_clocksync c;
	struct device d;
	uint64_t host, err, outliers = 0;

	state = seed * 3 + kind;
	d = random_device(seed);
	ttmon_clocksync_init(&c);
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t t = d.t0 + i * 5 * MS;
		int64_t j = jitter_ns(kind);

		if (frac() < 0.05) {
			j = (int64_t)(frac() * 1e6);
			j = rnd() & 1 && kind != ONE_SIDED ? -j : j;
			outliers += j > 5000 || j < -5000;
		}
		assert_true(add(&c, t + (uint64_t)j, cycles_at(&d, t), told ? 1000 : 0));
	}
	assert_true(c.valid);
	assert_true(ttmon_clocksync_outliers(&c) >= outliers);
	for (int i = 0; i < 200; i++) {
		/* All over ten times the span, before and after; half of them inside. */
		uint64_t span = 99 * 5 * MS;
		uint64_t t = d.t0 + (i & 1 ? (uint64_t)(frac() * (double)span)
					   : (uint64_t)(int64_t)((frac() * 21 - 10) * (double)span));
		uint64_t cycles = cycles_at(&d, t);
		double e;

		assert_true(ttmon_clocksync_map(&c, cycles, &host, &err));
		e = off(&d, cycles, host);
		if (e > (double)err)
			fail_msg("seed %lu jitter %d: off by %f, bound %lu", (unsigned long)seed, kind, e,
				 (unsigned long)err);
		if (i & 1) {
			if (e > 2000)
				fail_msg("seed %lu jitter %d: off by %f inside", (unsigned long)seed, kind, e);
			/* A bound that says nothing would hold too. */
			if (err > 8000 && !((int64_t)(cycles - c.tail_cycles) > 0 && c.tail_ns > 0))
				fail_msg("seed %lu jitter %d: bound %lu", (unsigned long)seed, kind,
					 (unsigned long)err);
		}
	}
}

static void within_two_microseconds_and_its_bound(void **test)
{
	(void)test;
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		for (int kind = 0; kind < JITTERS; kind++)
			run_seed(seed, kind, true);
}

static void bound_holds_where_pairs_do_not_say_theirs(void **test)
{
	(void)test;
	for (uint64_t seed = SEEDS; seed < SEEDS + SEEDS / 4; seed++)
		for (int kind = 0; kind < JITTERS; kind++)
			run_seed(seed, kind, false);
}

/* Pairs that are twenty times worse than they say: the residuals tell. */
static void bad_pairs_widen_the_bound(void **test)
{
	struct device d = { .t0 = 1000 * MS, .c0 = 77, .ghz = 1.35L };
	uint64_t host, err;

	(void)test;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct ttmon_clocksync c;

		state = seed;
		ttmon_clocksync_init(&c);
		for (uint64_t i = 0; i < 300; i++) {
			uint64_t t = d.t0 + i * MS;

			add(&c, t + (uint64_t)(frac() * 20000), cycles_at(&d, t), 1000);
		}
		assert_true(c.residual_ns > 5000);
		assert_int_equal(c.n, TTMON_SYNC_PAIRS);
		for (int i = 0; i < 20; i++) {
			uint64_t cycles = cycles_at(&d, d.t0 + rnd() % (2000 * MS));

			assert_true(ttmon_clocksync_map(&c, cycles, &host, &err));
			assert_true(off(&d, cycles, host) <= (double)err);
			assert_true(err < 500000);
		}
	}
}

static void one_pair_is_no_clock(void **test)
{
	struct ttmon_clocksync c;
	uint64_t host = 5, err = 6;

	(void)test;
	ttmon_clocksync_init(&c);
	assert_false(ttmon_clocksync_map(&c, 1, &host, &err));
	assert_true(add(&c, 1000, 1000, 0));
	assert_false(c.valid);
	assert_false(ttmon_clocksync_map(&c, 1000, &host, &err));
	assert_true(ttmon_clocksync_ghz(&c) == 0);
	assert_int_equal(host, 5);
	assert_int_equal(err, 6);
}

static void two_pairs_are_a_clock_with_a_wide_bound(void **test)
{
	struct device d = { .t0 = 50 * MS, .c0 = 1ULL << 40, .ghz = 0.8L };
	struct ttmon_clocksync c;
	uint64_t host, near, far;

	(void)test;
	ttmon_clocksync_init(&c);
	add(&c, d.t0 + 900, d.c0, 1000);
	add(&c, d.t0 + 5 * MS - 900, cycles_at(&d, d.t0 + 5 * MS), 1000);
	assert_true(c.valid);
	assert_true(ttmon_clocksync_map(&c, cycles_at(&d, d.t0 + 2 * MS), &host, &near));
	assert_true(off(&d, cycles_at(&d, d.t0 + 2 * MS), host) <= (double)near);
	assert_true(near < 3000);
	assert_true(ttmon_clocksync_map(&c, cycles_at(&d, d.t0 + 500 * MS), &host, &far));
	assert_true(off(&d, cycles_at(&d, d.t0 + 500 * MS), host) <= (double)far);
	assert_true(far > 50 * near);
	/* As close together as their errors: no frequency to be had. */
	ttmon_clocksync_init(&c);
	add(&c, d.t0, d.c0, 1000);
	add(&c, d.t0 + 3000, cycles_at(&d, d.t0 + 3000), 1000);
	assert_false(c.valid);
}

static void duplicates_and_old_pairs_are_refused(void **test)
{
	struct device d = { .t0 = 50 * MS, .c0 = 10, .ghz = 1.0L };
	struct ttmon_clocksync c;

	(void)test;
	ttmon_clocksync_init(&c);
	for (uint64_t i = 0; i < 10; i++)
		assert_true(add_true(&c, &d, d.t0 + i * 5 * MS));
	for (int i = 0; i < 100; i++) {
		assert_false(add_true(&c, &d, d.t0 + 45 * MS));
		assert_false(add_true(&c, &d, d.t0 + 22 * MS));
		assert_false(add(&c, d.t0 + 46 * MS, cycles_at(&d, d.t0 + 45 * MS), 0));
	}
	assert_int_equal(c.n, 10);
	assert_int_equal(c.resets, 0);
	assert_int_equal(ttmon_clocksync_outliers(&c), 0);
	assert_true(c.residual_ns < 2);
	assert_true(add_true(&c, &d, d.t0 + 50 * MS));
}

static void torn_reads_are_outliers(void **test)
{
	struct device d = { .t0 = 50 * MS, .c0 = 1ULL << 34, .ghz = 1.35L };
	struct ttmon_clocksync c;
	uint64_t host, err;

	(void)test;
	ttmon_clocksync_init(&c);
	for (uint64_t i = 0; i < 200; i++) {
		uint64_t t = d.t0 + i * 5 * MS;
		uint64_t torn = i % 10 == 3 ? 1ULL << 32 : i % 10 == 7 ? -(1ULL << 32) : 0;

		assert_int_equal(add(&c, t, cycles_at(&d, t) + torn, 0), torn == 0);
	}
	assert_int_equal(c.resets, 0);
	assert_int_equal(ttmon_clocksync_outliers(&c), 40);
	assert_true(ttmon_clocksync_map(&c, cycles_at(&d, d.t0), &host, &err));
	assert_true(off(&d, cycles_at(&d, d.t0), host) < 3);
}

/*
 * The device was closed and opened again, at another frequency: from the third pair on there is a new
 * clock.
 */
static void reset_begins_anew(void **test)
{
	struct device d = { .t0 = 50 * MS, .c0 = 1ULL << 50, .ghz = 1.35L };
	struct device e = { .t0 = 600 * MS, .c0 = 5, .ghz = 0.8L };
	struct ttmon_clocksync c;
	uint64_t host, err;

	(void)test;
	ttmon_clocksync_init(&c);
	for (uint64_t i = 0; i < 100; i++)
		assert_true(add_true(&c, &d, d.t0 + i * 5 * MS));
	assert_false(add_true(&c, &e, e.t0));
	assert_false(add_true(&c, &e, e.t0 + 5 * MS));
	assert_int_equal(c.resets, 0);
	assert_true(add_true(&c, &e, e.t0 + 10 * MS));
	assert_int_equal(c.resets, 1);
	assert_int_equal(c.n, TTMON_SYNC_RESET);
	assert_true(ttmon_clocksync_map(&c, cycles_at(&e, e.t0 + 3 * MS), &host, &err));
	assert_true(off(&e, cycles_at(&e, e.t0 + 3 * MS), host) < 3);
	assert_int_equal(ttmon_clocksync_outliers(&c), 0);
}

/* A counter of 32 bits goes through zero every 4.3 s: as good as reset. */
static void short_counter_wraps(void **test)
{
	struct device d = { .t0 = 50 * MS, .c0 = 0, .ghz = 1.0L };
	struct ttmon_clocksync c;
	uint64_t host, err, wraps = 0;

	(void)test;
	ttmon_clocksync_init(&c);
	for (uint64_t i = 0; i < 2000; i++) {
		uint64_t t = d.t0 + i * 10 * MS;

		wraps += i && (uint32_t)cycles_at(&d, t) < (uint32_t)cycles_at(&d, t - 10 * MS);
		add(&c, t, (uint32_t)cycles_at(&d, t), 0);
		if ((uint32_t)cycles_at(&d, t) > 100000000) {
			assert_true(ttmon_clocksync_map(&c, (uint32_t)cycles_at(&d, t), &host, &err));
			assert_true((int64_t)(host - t) <= 2 && (int64_t)(t - host) <= 2);
		}
	}
	assert_int_equal(wraps, 4);
	assert_int_equal(c.resets, wraps);
}

/*
 * DVFS: what the old frequency said is given up after eight pairs, and until then the bound knows of
 * the doubt from the third on.
 */
static void frequency_steps(void **test)
{
	struct device d = { .t0 = 50 * MS, .c0 = 1000, .ghz = 1.0L };
	struct device e = { .t0 = d.t0 + 500 * MS, .ghz = 0.9L };
	struct ttmon_clocksync c;
	uint64_t host, err;

	(void)test;
	e.c0 = cycles_at(&d, e.t0);
	ttmon_clocksync_init(&c);
	for (uint64_t i = 0; i <= 100; i++)
		assert_true(add_true(&c, &d, d.t0 + i * 5 * MS));
	for (uint64_t i = 1; i <= 40; i++) {
		uint64_t t = e.t0 + i * 5 * MS;

		assert_true(add_true(&c, &e, t));
		if (i < 4)
			continue;
		assert_true(ttmon_clocksync_map(&c, cycles_at(&e, t - 5 * MS), &host, &err));
		assert_true(off(&e, cycles_at(&e, t - 5 * MS), host) <= (double)err);
		assert_int_equal(err > 100000, i < 8);
	}
	assert_int_equal(c.resets, 1);
	assert_true(ttmon_clocksync_ghz(&c) > 0.8999 && ttmon_clocksync_ghz(&c) < 0.9001);
}

/*
 * Frequency that drifts by 0.2 ppm a second, over a minute of bursts: the window is cut until a line
 * goes through it.
 */
static void drift_shortens_the_window(void **test)
{
	struct ttmon_clocksync c;
	uint64_t t = 0, host, err, cycles = 0;

	(void)test;
	ttmon_clocksync_init(&c);
	for (int i = 0; i < 256; i++) {
		double s;

		t = 50 * MS + (uint64_t)i * 240 * MS;
		s = (double)t * 1e-9;
		cycles = (uint64_t)((double)t * (1 + 1e-7 * s));
		add(&c, t, cycles, 0);
	}
	assert_true(c.n < 200 && c.n >= 32);
	assert_true(ttmon_clocksync_map(&c, cycles, &host, &err));
	assert_true((int64_t)(host - t) <= (int64_t)err && (int64_t)(t - host) <= (int64_t)err);
	assert_true(err < 20000);
}

static void old_pairs_leave_the_window(void **test)
{
	struct device d = { .t0 = 50 * MS, .c0 = 10, .ghz = 1.0L };
	struct ttmon_clocksync c;

	(void)test;
	ttmon_clocksync_init(&c);
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t t = d.t0 + i * 5 * MS;

		assert_true(add(&c, t + (i % 50 == 20 ? 300 * US : 0), cycles_at(&d, t), 0));
	}
	assert_int_equal(c.n, TTMON_SYNC_PAIRS);
	assert_int_equal(ttmon_clocksync_outliers(&c), 20);
	assert_true(c.from_ns >= d.t0 + (1000 - TTMON_SYNC_PAIRS - 8) * 5 * MS);
	assert_true(c.to_ns > d.t0 + 950 * 5 * MS);
}

/*
 * Whatever a program says: no crash, no endless loop, no bound that lies about a later honest clock.
 */
static void nonsense(void **test)
{
	struct device d = { .t0 = 1ULL << 60, .c0 = 1ULL << 62, .ghz = 1.0L };
	struct ttmon_clocksync c;
	uint64_t host, err;

	(void)test;
	state = 99;
	ttmon_clocksync_init(&c);
	for (int i = 0; i < 20000; i++) {
		add(&c, rnd() >> rnd() % 64, rnd() >> rnd() % 64, (uint32_t)(rnd() >> rnd() % 64));
		ttmon_clocksync_map(&c, rnd() >> rnd() % 64, &host, &err);
		assert_true(!c.valid || (ttmon_clocksync_ghz(&c) >= 0.1999 && ttmon_clocksync_ghz(&c) <= 2.0001));
	}
	for (uint64_t i = 0; i < 100; i++)
		add_true(&c, &d, d.t0 + i * 5 * MS);
	assert_true(ttmon_clocksync_map(&c, cycles_at(&d, d.t0), &host, &err));
	if (off(&d, cycles_at(&d, d.t0), host) > 10)
		fail_msg("off by %f, bound %lu, n %u", off(&d, cycles_at(&d, d.t0), host), (unsigned long)err, c.n);
}

static void frequency_must_be_plausible(void **test)
{
	struct ttmon_clocksync c;

	(void)test;
	for (int k = 0; k < 2; k++) {
		struct device d = { .t0 = 50 * MS, .c0 = 10, .ghz = k ? 2.2L : 0.18L };

		ttmon_clocksync_init(&c);
		for (uint64_t i = 0; i < 100; i++)
			add_true(&c, &d, d.t0 + i * 5 * MS);
		assert_false(c.valid);
	}
}

/* One that says itself that it knows nothing has no weight. */
static void vague_pairs_are_left_out(void **test)
{
	struct device d = { .t0 = 50 * MS, .c0 = 10, .ghz = 1.0L };
	struct ttmon_clocksync c;

	(void)test;
	ttmon_clocksync_init(&c);
	for (uint64_t i = 0; i < 50; i++) {
		uint64_t t = d.t0 + i * 5 * MS;

		assert_true(add(&c, i == 30 ? t + MS : t, cycles_at(&d, t), i == 30 ? UINT32_MAX : 100));
	}
	assert_true(c.residual_ns < 3);
	assert_true(c.error_ns < 200);
	assert_int_equal(ttmon_clocksync_outliers(&c), 1);
}

static void drop_forgets(void **test)
{
	struct device d = { .t0 = 50 * MS, .c0 = 10, .ghz = 1.0L };
	struct ttmon_clocksync c;
	uint64_t host, err;

	(void)test;
	ttmon_clocksync_init(&c);
	for (uint64_t i = 0; i < 10; i++)
		add_true(&c, &d, d.t0 + i * 5 * MS);
	ttmon_clocksync_drop(&c);
	assert_false(ttmon_clocksync_map(&c, d.c0, &host, &err));
	d.c0 = 0;
	d.t0 += 7 * MS;
	for (uint64_t i = 10; i < 14; i++)
		assert_true(add_true(&c, &d, d.t0 + i * 5 * MS));
	assert_int_equal(c.n, 4);
	assert_true(ttmon_clocksync_map(&c, cycles_at(&d, d.t0), &host, &err));
	assert_true(off(&d, cycles_at(&d, d.t0), host) < 3);
}

static struct ttmon_ev_tsc reading(uint64_t from, uint64_t to, uint64_t tsc)
{
	return (struct ttmon_ev_tsc){ .h = { .ts_ns = to, .kind = TTMON_EV_TSC }, .from_ns = from, .tsc = tsc };
}

static void tsc_is_led_to_the_clock(void **test)
{
	struct device d = { .t0 = 1000 * MS, .c0 = 1ULL << 52, .ghz = 2.4L };
	struct ttmon_tsc t;
	struct ttmon_ev_tsc ev;
	uint64_t ns, err;

	(void)test;
	ttmon_tsc_init(&t);
	assert_false(ttmon_tsc_map(&t, d.c0, &ns, &err));
	for (uint64_t i = 0; i < 20; i++) {
		uint64_t at = d.t0 + i * 100 * MS;

		/* Read anywhere within 80 ns; one of them was interrupted. */
		ev = reading(at - 10, at + 70, cycles_at(&d, at));
		if (i == 10)
			ev.h.ts_ns += 500 * US;
		assert_int_equal(ttmon_tsc_add(&t, &ev), i != 10);
	}
	assert_true(ttmon_tsc_map(&t, cycles_at(&d, d.t0 + 333 * MS), &ns, &err));
	assert_true(off(&d, cycles_at(&d, d.t0 + 333 * MS), ns) <= (double)err);
	assert_true(err < 200);
	ev = reading(d.t0 + 5000 * MS, d.t0 + 9000 * MS, 5);
	assert_false(ttmon_tsc_add(&t, &ev));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(within_two_microseconds_and_its_bound),
		cmocka_unit_test(bound_holds_where_pairs_do_not_say_theirs),
		cmocka_unit_test(bad_pairs_widen_the_bound),
		cmocka_unit_test(one_pair_is_no_clock),
		cmocka_unit_test(two_pairs_are_a_clock_with_a_wide_bound),
		cmocka_unit_test(duplicates_and_old_pairs_are_refused),
		cmocka_unit_test(torn_reads_are_outliers),
		cmocka_unit_test(reset_begins_anew),
		cmocka_unit_test(short_counter_wraps),
		cmocka_unit_test(frequency_steps),
		cmocka_unit_test(drift_shortens_the_window),
		cmocka_unit_test(old_pairs_leave_the_window),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(frequency_must_be_plausible),
		cmocka_unit_test(vague_pairs_are_left_out),
		cmocka_unit_test(drop_forgets),
		cmocka_unit_test(tsc_is_led_to_the_clock),
	};

	return cmocka_run_group_tests_name("clocksync", tests, NULL, NULL);
}
