// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_reuse.c: reuse distances against a stack that is searched and caches that are played;
 * distinct sectors against a bitmap of all there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memtrace/analyse/an.h"
#include "lib/base/util.h"

static uint64_t seed = 88172645463325252;
static uint64_t rnd(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % n;
}

/* ---- reuse ---- */

#define STACK 4096

/* Most recent first. */
static struct {
	uint64_t sector[STACK];
	unsigned int n;
	uint64_t cold, hist[48];
} naive;

static void naive_touch(uint64_t sector)
{
	unsigned int i = 0, k = 0;

	while (i < naive.n && naive.sector[i] != sector)
		i++;
	if (i == naive.n) {
		naive.cold++;
		naive.n++;
	} else {
		while (i >> k)
			k++;
		naive.hist[k]++;
	}
	memmove(naive.sector + 1, naive.sector, i * sizeof(*naive.sector));
	naive.sector[0] = sector;
}

static struct ttmon_mt_reuse_set *fresh(bool exact, uint32_t max)
{
	struct ttmon_mt_reuse_set *r;

	memset(&naive, 0, sizeof(naive));
	assert_int_equal(ttmon_mt_reuse_new(exact, max, &r), 0);
	return r;
}

static void touch_both(struct ttmon_mt_reuse_set *r, uint64_t sector, uint32_t n)
{
	ttmon_mt_reuse_touch(r, sector, n);
	for (uint32_t i = 0; i < n; i++)
		naive_touch(sector + i);
}

static void same_as_naive(struct ttmon_mt_reuse_set *r, uint64_t touches)
{
	struct ttmon_mt_reuse_result res;

	ttmon_mt_reuse_get(r, &res);
	assert_true(res.exact);
	assert_int_equal(res.lost, 0);
	assert_true(res.rate == 1);
	assert_int_equal(res.touches, touches);
	assert_int_equal(res.cold, naive.cold);
	assert_memory_equal(res.hist, naive.hist, sizeof(res.hist));
	ttmon_mt_reuse_free(r);
}

static void exact_is_a_stack(void **state)
{
	struct ttmon_mt_reuse_set *r = fresh(true, 0);
	uint64_t touches = 0;

	(void)state;
	for (unsigned int i = 0; i < 20000; i++) { /* few often, many seldom; compacted many times */
		uint32_t n = 1 + (uint32_t)rnd(4);

		touch_both(r, 0x3f800000000 + (rnd(3) ? rnd(100) : rnd(1500)), n);
		touches += n;
	}
	same_as_naive(r, touches);
	r = fresh(true, 0);
	for (unsigned int i = 0; i < 5 * 1000; i++) /* cyclic: every distance is 999 */
		touch_both(r, i % 1000 * 77, 1);
	assert_int_equal(naive.hist[10], 4000);
	same_as_naive(r, 5000);
	r = fresh(false, 0); /* nothing has to be left out: exact too */
	for (unsigned int i = 0; i < 100; i++)
		touch_both(r, UINT64_MAX / 32 - 8, 9);
	assert_int_equal(naive.hist[4], 99 * 9);
	same_as_naive(r, 900);
	r = fresh(true, 0); /* more sectors than the first table holds */
	for (unsigned int i = 0; i < 3000; i++)
		touch_both(r, i, 1);
	for (unsigned int i = 3000; i; i--)
		touch_both(r, i - 1, 1);
	same_as_naive(r, 6000);
}

/* A trace with something of everything: a hot part, a loop, and a walk through much. */
#define TRACE 400000
static uint64_t trace_at(unsigned int i)
{
	switch (i % 4) {
	case 0:
		return rnd(2000);
	case 1:
		return 100000 + i / 4 % 10000;
	case 2:
		return 200000 + rnd(60000);
	default:
		return 1000000 + i;
	}
}

/* Misses of a cache that is there, least recently used. */
static double play(const uint32_t *trace, unsigned int sectors)
{
	enum { SPACE = 1000000 + TRACE };
	uint32_t *next = calloc(SPACE + 1, sizeof(*next)), *prev = calloc(SPACE + 1, sizeof(*prev));
	uint8_t *in = calloc(SPACE, 1);
	unsigned int n = 0, misses = 0;

	assert_true(next && prev && in);
	next[SPACE] = prev[SPACE] = SPACE; /* a ring: next of the end is the most recent */
	for (unsigned int i = 0; i < TRACE; i++) {
		uint32_t x = trace[i];

		if (in[x]) {
			next[prev[x]] = next[x];
			prev[next[x]] = prev[x];
		} else {
			misses++;
			if (n == sectors) {
				uint32_t old = prev[SPACE];

				in[old] = 0;
				prev[SPACE] = prev[old];
				next[prev[old]] = SPACE;
			} else {
				n++;
			}
			in[x] = 1;
		}
		next[x] = next[SPACE];
		prev[x] = SPACE;
		prev[next[SPACE]] = x;
		next[SPACE] = x;
	}
	free(next);
	free(prev);
	free(in);
	return (double)misses / TRACE;
}

static void misses_of_caches(void **state)
{
	static const unsigned int sizes[] = { 1, 256, 4096, 8192, 32768, 131072 };
	static const struct {
		bool exact;
		uint32_t max;
		double error;
	} sets[] = { { true, 0, 1e-12 }, { false, 1 << 14, 0.03 }, { false, 1 << 12, 0.03 }, { true, 50000, 0.01 } };
	uint32_t *trace = calloc(TRACE, sizeof(*trace));
	struct ttmon_mt_reuse_result res;
	double real[ARRAY_SIZE(sizes)];

	(void)state;
	assert_non_null(trace);
	for (unsigned int i = 0; i < TRACE; i++)
		trace[i] = (uint32_t)trace_at(i);
	for (unsigned int k = 0; k < ARRAY_SIZE(sizes); k++)
		real[k] = play(trace, sizes[k]);
	for (unsigned int i = 0; i < ARRAY_SIZE(sets); i++) {
		struct ttmon_mt_reuse_set *r = fresh(sets[i].exact, sets[i].max);

		for (unsigned int k = 0; k < TRACE; k++)
			ttmon_mt_reuse_touch(r, trace[k], 1);
		ttmon_mt_reuse_get(r, &res);
		assert_int_equal(res.touches, TRACE);
		assert_int_equal(res.exact, i == 0);
		assert_int_equal(res.lost > 0, sets[i].exact && sets[i].max); /* what did not fit is counted */
		assert_true(i == 0 || (res.rate < 1 && res.rate > 0));
		for (unsigned int k = 1; k < ARRAY_SIZE(sizes); k++) {
			double miss = ttmon_mt_reuse_miss(&res, sizes[k] * 32ULL), off = miss - real[k];

			if (off > sets[i].error || off < -sets[i].error)
				fail_msg("set %u: %u sectors miss %.4f, a cache %.4f", i, sizes[k], miss, real[k]);
		}
		assert_true(ttmon_mt_reuse_miss(&res, 0) == 1);
		ttmon_mt_reuse_free(r);
	}
	/* Between powers of two it lies between. */
	assert_true(ttmon_mt_reuse_miss(&res, 6000 * 32) <= ttmon_mt_reuse_miss(&res, 4096 * 32));
	assert_true(ttmon_mt_reuse_miss(&res, 6000 * 32) >= ttmon_mt_reuse_miss(&res, 8192 * 32));
	free(trace);
	memset(&res, 0, sizeof(res));
	assert_true(ttmon_mt_reuse_miss(&res, 1024) == 0);
	ttmon_mt_reuse_free(NULL);
}

/* ---- distinct sectors ---- */

#define SPACE (1u << 21)

static unsigned int fill(struct ttmon_mt_sectors *s, uint8_t *seen, uint64_t base, unsigned int touches,
			 unsigned int range)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < touches; i++) {
		unsigned int at = (unsigned int)rnd(range), len = 1 + (unsigned int)rnd(rnd(20) ? 4 : 300);

		len = MIN(len, range - at);
		ttmon_mt_sectors_add(s, base + at, len);
		for (unsigned int k = at; k < at + len; k++) {
			n += !seen[k];
			seen[k] = 1;
		}
	}
	return n;
}

static void sectors_are_counted(void **state)
{
	uint8_t *in_a = calloc(1, SPACE), *in_b = calloc(1, SPACE);
	struct ttmon_mt_sectors *a, *b;
	unsigned int n, both = 0;
	bool estimate = true;

	(void)state;
	assert_true(in_a && in_b);
	assert_int_equal(ttmon_mt_sectors_new(8000, &a), 0);
	assert_int_equal(ttmon_mt_sectors_new(8000, &b), 0);
	assert_int_equal(ttmon_mt_sectors_count(a, &estimate), 0);
	assert_false(estimate);
	assert_int_equal(ttmon_mt_sectors_both(a, b, &estimate), 0);
	for (unsigned int round = 0; round < 3;
	     round++) { /* the others use what was left: few pieces, many, few in a large table */
		unsigned int range = round == 0 ? 4000 : round == 1 ? 1000000 : 120000;

		n = fill(a, in_a, 0x3f800000000, range / 10, range);
		assert_int_equal(ttmon_mt_sectors_count(a, &estimate), n);
		assert_false(estimate);
		fill(b, in_b, 0x3f800000000, range / 20, range);
		both = 0;
		for (unsigned int i = 0; i < range; i++)
			both += in_a[i] && in_b[i];
		assert_int_equal(ttmon_mt_sectors_both(a, b, &estimate), both);
		assert_int_equal(ttmon_mt_sectors_both(b, a, &estimate), both);
		assert_false(estimate);
		memset(in_a, 0, SPACE);
		memset(in_b, 0, SPACE);
		ttmon_mt_sectors_clear(a);
		ttmon_mt_sectors_clear(b);
		assert_int_equal(ttmon_mt_sectors_count(a, &estimate), 0);
	}
	ttmon_mt_sectors_free(a);
	ttmon_mt_sectors_free(b);
	ttmon_mt_sectors_free(NULL);
	free(in_a);
	free(in_b);
}

static void near_to(uint64_t got, uint64_t want, double share)
{
	double off = (double)got - (double)want;

	if (off > share * (double)want || off < -share * (double)want)
		fail_msg("%llu is not %llu", (unsigned long long)got, (unsigned long long)want);
}

static void more_are_estimated(void **state)
{
	struct ttmon_mt_sectors *a, *b, *exact;
	bool estimate = false;

	(void)state;
	assert_int_equal(ttmon_mt_sectors_new(64, &a), 0);
	assert_int_equal(ttmon_mt_sectors_new(64, &b), 0);
	assert_int_equal(ttmon_mt_sectors_new(1 << 16, &exact), 0);
	/* At any size past the limit: few a page, all of them, over again. */
	for (uint64_t n = 100; n <= 3000000; n = n * 5 / 2) {
		for (uint64_t i = 0; i < n; i++)
			ttmon_mt_sectors_add(a, i % 3 ? i * 5 : i * 5 - i % 5, 1);
		for (uint64_t i = 0; i < n / 2; i++)
			ttmon_mt_sectors_add(a, i % 3 ? i * 5 : i * 5 - i % 5, 1);
		near_to(ttmon_mt_sectors_count(a, &estimate), n, n < 3000 ? 0 : 0.03);
		assert_int_equal(estimate, n > 3000);
		ttmon_mt_sectors_clear(a);
		if (n > 300000)
			break;
	}
	/* A third in common; the other way round; and with one that is exact. */
	ttmon_mt_sectors_add(a, 1000000, 200000);
	ttmon_mt_sectors_add(b, 1100000, 200000);
	ttmon_mt_sectors_add(exact, 1100000, 200000);
	near_to(ttmon_mt_sectors_count(a, &estimate), 200000, 0.03);
	near_to(ttmon_mt_sectors_both(a, b, &estimate), 100000, 0.08);
	assert_true(estimate);
	near_to(ttmon_mt_sectors_both(a, exact, &estimate), 100000, 0.08);
	near_to(ttmon_mt_sectors_both(exact, a, &estimate), 100000, 0.08);
	assert_true(estimate);
	assert_int_equal(ttmon_mt_sectors_count(exact, &estimate), 200000);
	assert_false(estimate);
	ttmon_mt_sectors_free(a);
	ttmon_mt_sectors_free(b);
	ttmon_mt_sectors_free(exact);
}

/*
 * Sectors below WHERE go to one set, those from WHERE + GAP on to another, the ones between nowhere.
 */
#define WHERE (0x3f800000000 + 70000)
#define GAP   100

static struct ttmon_mt_sectors *whose(void *ctx, uint64_t sector, uint64_t *last)
{
	struct ttmon_mt_sectors **to = ctx;

	*last = sector < WHERE ? WHERE - 1 : sector < WHERE + GAP ? sector : UINT64_MAX;
	return sector < WHERE ? to[0] : sector < WHERE + GAP ? NULL : to[1];
}

static void sectors_are_shared_out(void **state)
{
	enum { RANGE = 200000, AT = WHERE - 0x3f800000000 };
	uint8_t *in = calloc(1, SPACE);
	struct ttmon_mt_sectors *s, *to[2];
	unsigned int want[2] = { 0 };
	bool estimate, all = true;
	uint64_t exact;

	(void)state;
	assert_non_null(in);
	assert_int_equal(ttmon_mt_sectors_new(8000, &s), 0);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(ttmon_mt_sectors_new(8000, &to[i]), 0);
	fill(s, in, 0x3f800000000, RANGE / 10, RANGE);
	for (unsigned int i = 0; i < RANGE; i++)
		if (i < AT || i >= AT + GAP)
			want[i >= AT] += in[i];
	for (unsigned int again = 0; again < 2; again++) { /* they are there already */
		ttmon_mt_sectors_share(s, whose, to);
		for (unsigned int i = 0; i < 2; i++) {
			assert_int_equal(ttmon_mt_sectors_count(to[i], &estimate), want[i]);
			assert_int_equal(ttmon_mt_sectors_both(to[i], s, &estimate), want[i]);
			ttmon_mt_sectors_clear(to[again]);
			ttmon_mt_sectors_share(s, whose, to);
		}
	}
	ttmon_mt_sectors_free(s);
	/* Past the limit it says so of each, and they are not among those. */
	assert_int_equal(ttmon_mt_sectors_new(64, &s), 0);
	for (unsigned int i = 0; i < 8; i++)
		all &= ttmon_mt_sectors_add(s, i * 2048ull, 1);
	assert_true(all);
	assert_false(ttmon_mt_sectors_add(s, 8 * 2048ull, 1));
	assert_true(ttmon_mt_sectors_add(s, 7 * 2048ull, 2));
	assert_false(ttmon_mt_sectors_add(s, 8 * 2048ull - 1, 2));
	ttmon_mt_sectors_clear(to[0]);
	ttmon_mt_sectors_share(s, whose, to);
	exact = ttmon_mt_sectors_count(to[0], &estimate);
	assert_int_equal(exact, 10);
	assert_false(estimate);
	ttmon_mt_sectors_free(s);
	for (unsigned int i = 0; i < 2; i++)
		ttmon_mt_sectors_free(to[i]);
	free(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_is_a_stack),	  cmocka_unit_test(misses_of_caches),
		cmocka_unit_test(sectors_are_counted),	  cmocka_unit_test(more_are_estimated),
		cmocka_unit_test(sectors_are_shared_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
