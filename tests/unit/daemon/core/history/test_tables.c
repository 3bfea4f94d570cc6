// SPDX-License-Identifier: GPL-2.0-only
/* test_tables.c: the small tables of the history: hash map, queue, sequence table, event log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/history/evlog.h"
#include "lib/base/fifo.h"
#include "lib/base/hmap.h"
#include "lib/base/seqtab.h"

#define N 5000

static void hmap_agrees_with_array(void **state)
{
	static uint64_t val[N];
	struct ttmon_hmap m = { 0 };
	uint64_t x = 1;

	(void)state;
	memset(val, 0xff, sizeof(val));
	for (unsigned int round = 0; round < 20 * N; round++) {
		unsigned int i;

		x = ttmon_mix64(x + round);
		i = x % N;
		/* Keys that lie close and keys that collide in their low bits. */
		if (round % 3 == 0) {
			assert_int_equal(ttmon_hmap_del(&m, (uint64_t)i << 20), val[i]);
			val[i] = TTMON_HMAP_NONE;
		} else {
			assert_int_equal(ttmon_hmap_put(&m, (uint64_t)i << 20, round), 0);
			val[i] = round;
		}
		assert_int_equal(ttmon_hmap_get(&m, (uint64_t)(x % 997) << 20), val[x % 997]);
	}
	for (unsigned int i = 0; i < N; i++) {
		assert_int_equal(ttmon_hmap_get(&m, (uint64_t)i << 20), val[i]);
		ttmon_hmap_del(&m, (uint64_t)i << 20);
	}
	assert_int_equal(m.n, 0);
	assert_null(m.v); /* an empty table gives a large array back */
	ttmon_hmap_fini(&m);
}

static void fifo_keeps_order_and_gives_back(void **state)
{
	struct ttmon_fifo f = { .elem = sizeof(uint32_t) };
	uint32_t in = 0, out = 0;

	(void)state;
	assert_null(ttmon_fifo_front(&f));
	for (unsigned int round = 0; round < 100; round++) {
		for (unsigned int i = 0; i < 200; i++, in++)
			assert_int_equal(ttmon_fifo_push(&f, &in), 0);
		for (unsigned int i = 0; i < 120; i++, out++) {
			assert_int_equal(*(const uint32_t *)ttmon_fifo_front(&f), out);
			ttmon_fifo_pop(&f);
		}
	}
	for (; out < in; out++) {
		assert_int_equal(*(const uint32_t *)ttmon_fifo_front(&f), out);
		ttmon_fifo_pop(&f);
	}
	assert_int_equal(f.n, 0);
	assert_null(f.v);
	ttmon_fifo_pop(&f);
	ttmon_fifo_fini(&f);
}

static void seqtab_finds_and_skips(void **state)
{
	static const uint64_t seqs[] = { 0, 1, 31, 32, 33, 1023, 1024, 1 << 20, (1ULL << 39) + 5, UINT64_MAX - 1 };
	struct ttmon_seqtab t = { 0 };

	(void)state;
	assert_int_equal(ttmon_seqtab_next(&t, 0), TTMON_SEQTAB_END);
	for (uint32_t i = 0; i < ARRAY_SIZE(seqs); i++)
		assert_int_equal(ttmon_seqtab_put(&t, seqs[i], i), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(seqs); i++) {
		assert_int_equal(ttmon_seqtab_get(&t, seqs[i]), i);
		assert_int_equal(ttmon_seqtab_next(&t, seqs[i]), seqs[i]);
		if (i)
			assert_int_equal(ttmon_seqtab_next(&t, seqs[i - 1] + 1), seqs[i]);
	}
	assert_int_equal(ttmon_seqtab_get(&t, 2), TTMON_SEQTAB_NONE);
	assert_int_equal(ttmon_seqtab_next(&t, UINT64_MAX), TTMON_SEQTAB_END);
	for (uint32_t i = 0; i < ARRAY_SIZE(seqs); i++) {
		ttmon_seqtab_del(&t, seqs[i]);
		ttmon_seqtab_del(&t, seqs[i]);
		assert_int_equal(ttmon_seqtab_get(&t, seqs[i]), TTMON_SEQTAB_NONE);
	}
	assert_null(t.root); /* nothing left, nothing kept */
	ttmon_seqtab_fini(&t);
}

static void assert_same(const struct ttmon_aev *a, const struct ttmon_aev *b)
{
	assert_int_equal(a->ts_ns, b->ts_ns);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->mem, b->mem);
	assert_int_equal(a->bits, b->bits);
	assert_int_equal(a->bytes, b->bytes);
	assert_int_equal(a->offset, b->offset);
}

static void evlog_returns_what_it_was_given(void **state)
{
	struct ttmon_evlog log = { 0 };
	struct ttmon_aev in[300], ev = { 0 };
	uint32_t pos = 0;
	unsigned int n = 0;

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(in); i++) {
		uint64_t x = ttmon_mix64(i + 1);

		in[i] = (struct ttmon_aev){ .ts_ns = i % 7 ? 1000000ULL * i + x % 5000000 : x,
					    .kind = x % TTMON_AEV_MAX,
					    .mem = x >> 8 & 3,
					    .bits = i % 5 ? 0 : (uint16_t)x,
					    .bytes = i % 3 ? 65536 : x >> (x % 64),
					    .offset = i % 11 ? x % 100000 : x };
		assert_int_equal(ttmon_evlog_add(&log, &in[i]), 0);
	}
	while (ttmon_evlog_next(&log, &pos, &ev)) {
		assert_same(&ev, &in[n]);
		n++;
	}
	assert_int_equal(n, ARRAY_SIZE(in));

	/* The first ones go, the others stay what they were, and more can be added. */
	assert_int_equal(ttmon_evlog_drop(&log, 100), 100);
	assert_int_equal(ttmon_evlog_add(&log, &in[0]), 0);
	for (n = 100, pos = 0; n < ARRAY_SIZE(in); n++) {
		assert_true(ttmon_evlog_next(&log, &pos, &ev));
		assert_same(&ev, &in[n]);
	}
	assert_true(ttmon_evlog_next(&log, &pos, &ev));
	assert_same(&ev, &in[0]);
	assert_false(ttmon_evlog_next(&log, &pos, &ev));
	assert_int_equal(ttmon_evlog_drop(&log, 1000), 201);
	assert_int_equal(log.len, 0);
	ttmon_evlog_fini(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hmap_agrees_with_array),
		cmocka_unit_test(fifo_keeps_order_and_gives_back),
		cmocka_unit_test(seqtab_finds_and_skips),
		cmocka_unit_test(evlog_returns_what_it_was_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
