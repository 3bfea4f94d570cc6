// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_ranges.c: the ordered set of address ranges, held against a plain array that is searched from
 * end to end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/ranges.h"

#define N 3000

struct model {
	uint64_t start, end;
	bool in;
};

static uint64_t seed = 88172645463325252ULL;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t end_of(const struct model *m, const struct ttmon_ranges_pos *pos)
{
	assert_true(pos->val < N);
	assert_true(m[pos->val].in);
	assert_int_equal(m[pos->val].start, pos->start);
	assert_int_equal(m[pos->val].end, pos->end);
	return m[pos->val].end;
}

/* The last by start that holds addr; N if none. */
static uint32_t model_holding(const struct model *m, uint64_t addr)
{
	uint32_t best = N;

	for (uint32_t i = 0; i < N; i++)
		if (m[i].in && m[i].start <= addr && addr < m[i].end && (best == N || m[i].start > m[best].start))
			best = i;
	return best;
}

static uint32_t set_holding(const struct ttmon_ranges *r, const struct model *m, uint64_t addr)
{
	struct ttmon_ranges_pos pos;

	if (!ttmon_ranges_floor(r, addr, &pos))
		return N;
	do {
		if (addr < end_of(m, &pos))
			return pos.val;
	} while (ttmon_ranges_back(r, addr, &pos));
	return N;
}

/* The first by start that reaches beyond lo. */
static uint32_t set_first(const struct ttmon_ranges *r, const struct model *m, uint64_t lo)
{
	struct ttmon_ranges_pos pos;

	for (bool at = ttmon_ranges_seek(r, lo, &pos); at; at = ttmon_ranges_next(r, &pos))
		if (end_of(m, &pos) > lo)
			return pos.val;
	return N;
}

static uint32_t model_first(const struct model *m, uint64_t lo)
{
	uint32_t best = N;

	for (uint32_t i = 0; i < N; i++)
		if (m[i].in && m[i].end > lo && (best == N || m[i].start < m[best].start))
			best = i;
	return best;
}

static void check_order(const struct ttmon_ranges *r, uint64_t expect)
{
	struct ttmon_ranges_pos pos;
	uint64_t n = 0, last = 0;

	for (bool at = ttmon_ranges_seek(r, 0, &pos); at; at = ttmon_ranges_next(r, &pos)) {
		assert_true(n == 0 || pos.start > last);
		last = pos.start;
		n++;
	}
	assert_int_equal(n, expect);
	assert_int_equal(r->n, expect);
}

/* Random adds, removals and lookups; lengths up to max_len, starts a multiple of step apart. */
static void against_model(bool overlap, uint64_t step, uint64_t max_len)
{
	static struct model m[N];
	struct ttmon_ranges r = { .overlap = overlap };
	uint64_t live = 0;

	memset(m, 0, sizeof(m));
	for (unsigned int round = 0; round < 4 * N; round++) {
		uint32_t i = next_random() % N;

		if (m[i].in) {
			assert_true(ttmon_ranges_del(&r, m[i].start));
			m[i].in = false;
			live--;
		} else {
			m[i].start = 4096 + i * step;
			m[i].end = m[i].start + 1 + next_random() % max_len;
			assert_int_equal(ttmon_ranges_add(&r, m[i].start, m[i].end, i), 0);
			assert_int_equal(ttmon_ranges_add(&r, m[i].start, m[i].end, i), -EEXIST);
			m[i].in = true;
			live++;
		}
		if (round % 64 == 0) {
			uint64_t addr = 4096 + next_random() % (N * step);

			assert_int_equal(set_holding(&r, m, addr), model_holding(m, addr));
			assert_int_equal(set_first(&r, m, addr), model_first(m, addr));
		}
	}
	check_order(&r, live);
	for (uint32_t i = 0; i < N; i++)
		if (m[i].in)
			assert_true(ttmon_ranges_del(&r, m[i].start));
	check_order(&r, 0);
	ttmon_ranges_fini(&r);
}

static void disjoint_agrees_with_model(void **state)
{
	(void)state;
	against_model(false, 256, 256);
}

static void overlapping_agrees_with_model(void **state)
{
	(void)state;
	against_model(true, 16, 4096);
}

static void finds_giant_over_many_small(void **state)
{
	struct ttmon_ranges r = { .overlap = true };
	struct ttmon_ranges_pos pos;
	unsigned int steps = 0;

	(void)state;
	assert_int_equal(ttmon_ranges_add(&r, 1000, 1ULL << 40, 0), 0);
	for (uint32_t i = 1; i < 20000; i++)
		assert_int_equal(ttmon_ranges_add(&r, (1ULL << 20) + i * 64, (1ULL << 20) + i * 64 + 8, i), 0);
	/* Blocks that end before the address are stepped over as a whole. */
	assert_true(ttmon_ranges_floor(&r, 1ULL << 30, &pos));
	while (pos.val != 0) {
		assert_true(ttmon_ranges_back(&r, 1ULL << 30, &pos));
		steps++;
	}
	assert_true(steps < 300);
	ttmon_ranges_fini(&r);
}

static void growing_is_found(void **state)
{
	struct ttmon_ranges r = { .overlap = true };
	struct ttmon_ranges_pos pos;

	(void)state;
	assert_int_equal(ttmon_ranges_add(&r, 100, 110, 1), 0);
	assert_int_equal(ttmon_ranges_add(&r, 200, 210, 2), 0);
	ttmon_ranges_set_end(&r, 100, 1000);
	assert_true(ttmon_ranges_floor(&r, 500, &pos));
	assert_int_equal(pos.val, 2);
	assert_true(ttmon_ranges_back(&r, 500, &pos));
	assert_int_equal(pos.val, 1);
	ttmon_ranges_fini(&r);
}

static void shrinking_is_seen(void **state)
{
	struct ttmon_ranges r = { 0 };
	struct ttmon_ranges_pos pos;

	(void)state;
	assert_int_equal(ttmon_ranges_add(&r, 100, 100 + (1ULL << 33), 1), 0);
	assert_true(ttmon_ranges_floor(&r, 500, &pos));
	assert_int_equal(pos.end, UINT64_MAX); /* too long for its end to be kept */
	ttmon_ranges_set_end(&r, 100, 300);
	assert_true(ttmon_ranges_floor(&r, 500, &pos));
	assert_int_equal(pos.end, 300);
	ttmon_ranges_set_end(&r, 101, 200);
	assert_true(ttmon_ranges_floor(&r, 500, &pos));
	assert_int_equal(pos.end, 300);
	ttmon_ranges_fini(&r);
}

/* Distances that grow with each address mislead a search that begins by proportion. */
static void uneven_distances_are_found(void **state)
{
	struct ttmon_ranges r = { 0 };
	struct ttmon_ranges_pos pos;

	(void)state;
	for (uint64_t i = 0; i < N; i++)
		assert_int_equal(ttmon_ranges_add(&r, (i + 1) * (i + 1) * (i + 1) * (i + 1) * 64,
						  (i + 1) * (i + 1) * (i + 1) * (i + 1) * 64 + 1, (uint32_t)i),
				 0);
	for (uint64_t i = 0; i < N; i++) {
		uint64_t start = (i + 1) * (i + 1) * (i + 1) * (i + 1) * 64;

		assert_true(ttmon_ranges_floor(&r, start, &pos));
		assert_int_equal(pos.val, i);
		assert_true(ttmon_ranges_floor(&r, start + 100, &pos));
		assert_int_equal(pos.val, i);
		assert_int_equal(ttmon_ranges_floor(&r, start - 1, &pos), i > 0);
		assert_true(!i || pos.val == i - 1);
	}
	ttmon_ranges_fini(&r);
}

static void ends_of_the_address_space(void **state)
{
	struct ttmon_ranges r = { 0 };
	struct ttmon_ranges_pos pos;
	uint32_t val;

	(void)state;
	assert_false(ttmon_ranges_floor(&r, UINT64_MAX, &pos));
	assert_false(ttmon_ranges_seek(&r, 0, &pos));
	assert_int_equal(ttmon_ranges_add(&r, UINT64_MAX - 1, UINT64_MAX, 7), 0);
	assert_int_equal(ttmon_ranges_add(&r, 0, 1, 8), 0);
	assert_true(ttmon_ranges_floor(&r, UINT64_MAX, &pos));
	assert_int_equal(pos.val, 7);
	assert_true(ttmon_ranges_get(&r, 0, &val));
	assert_int_equal(val, 8);
	assert_false(ttmon_ranges_get(&r, 1, &val));
	assert_false(ttmon_ranges_del(&r, 1));
	ttmon_ranges_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(disjoint_agrees_with_model),  cmocka_unit_test(overlapping_agrees_with_model),
		cmocka_unit_test(finds_giant_over_many_small), cmocka_unit_test(growing_is_found),
		cmocka_unit_test(shrinking_is_seen),	       cmocka_unit_test(uneven_distances_are_found),
		cmocka_unit_test(ends_of_the_address_space),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
