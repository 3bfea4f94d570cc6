// SPDX-License-Identifier: GPL-2.0-only
/* test_heat.c: heat over time and over pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/history/heat.h"

#define MS NSEC_PER_MS

static struct ttmon_heat fresh(uint64_t origin)
{
	return (struct ttmon_heat){ .origin_ns = origin, .width_ns = TTMON_HEAT_WIDTH_NS };
}

/* One transfer, by itself. */
static void add(struct ttmon_heat *h, uint64_t ts_ns, uint64_t bytes)
{
	struct ttmon_heat_now now;

	ttmon_heat_now_begin(&now, h, 0, ts_ns, bytes);
	ttmon_heat_add_now(h, &now, false);
}

static uint64_t copies_of(const struct ttmon_heat *h, uint64_t *bytes)
{
	uint64_t n = 0;

	*bytes = 0;
	for (unsigned int i = 0; i < TTMON_HEAT_BUCKETS; i++) {
		n += h->copies[i];
		*bytes += h->bytes[i];
	}
	return n;
}

static void counts_in_the_right_bucket(void **state)
{
	struct ttmon_heat h = fresh(1000);

	(void)state;
	add(&h, 1000, 5);
	add(&h, 1000 + MS - 1, 6);
	add(&h, 1000 + 63 * MS, 7);
	add(&h, 0, 8); /* before the origin: a late event */
	assert_int_equal(h.copies[0], 3);
	assert_int_equal(h.bytes[0], 19);
	assert_int_equal(h.copies[63], 1);
	assert_int_equal(h.width_ns, MS);
}

static void doubles_and_conserves(void **state)
{
	struct ttmon_heat h = fresh(0);
	uint64_t bytes;

	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		add(&h, i * MS, i);
	assert_int_equal(h.width_ns, 16 * MS); /* 64 * 16 ms is the first that holds 1000 ms */
	assert_int_equal(copies_of(&h, &bytes), 1000);
	assert_int_equal(bytes, 999 * 1000 / 2);
	assert_int_equal(h.copies[0], 16);
	assert_int_equal(h.copies[62], 8);
}

static void survives_any_time(void **state)
{
	struct ttmon_heat h = fresh(0);
	uint64_t bytes;

	(void)state;
	add(&h, 5, 1);
	add(&h, INT64_MAX, 1);
	assert_int_equal(copies_of(&h, &bytes), 2);
	assert_int_equal(h.copies[0], 1);
	/* Made for a late first transfer, it is as wide as it would have become. */
	ttmon_heat_init(&h, 100, 100 + 100 * MS);
	assert_int_equal(h.width_ns, 2 * MS);
	assert_int_equal(copies_of(&h, &bytes), 0);
}

/* Transfers that wait in the bucket beside the heat give the same heat as each by itself. */
static void bucket_beside_it_changes_nothing(void **state)
{
	uint64_t x = 88172645463325252ULL;

	(void)state;
	for (unsigned int round = 0; round < 50; round++) {
		const uint64_t origin = 5000 * MS + round, step = MS << round % 12;
		uint64_t ts = origin + round % 7 * 20 * MS;
		struct ttmon_heat each, beside, shown;
		struct ttmon_heat_now now = { 0 };
		bool made = false;

		ttmon_heat_init(&each, origin, ts);
		for (unsigned int i = 0; i < 300; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			add(&each, ts, x % 1000);
			if (!ttmon_heat_now_add(&now, ts, x % 1000)) {
				if (now.copies) {
					ttmon_heat_add_now(&beside, &now, !made);
					made = true;
				}
				ttmon_heat_now_begin(&now, made ? &beside : NULL, origin, ts, x % 1000);
			}
			shown = made ? beside : (struct ttmon_heat){ 0 };
			ttmon_heat_add_now(&shown, &now, !made);
			assert_memory_equal(&shown, &each, sizeof(each));
			/* Mostly on, sometimes back, also before the origin. */
			ts = x % 8 ? ts + x % step : ts - MIN(ts, x % (8 * step));
		}
	}
}

static void merges_and_conserves(void **state)
{
	struct ttmon_heat a = fresh(0), b = fresh(500 * MS);
	uint64_t bytes;

	(void)state;
	add(&a, 10 * MS, 1);
	add(&b, 505 * MS, 2);
	add(&b, 900 * MS, 4);
	ttmon_heat_merge(&a, &b);
	assert_int_equal(copies_of(&a, &bytes), 3);
	assert_int_equal(bytes, 7);
	assert_int_equal(a.copies[0], 1);
	assert_int_equal(a.width_ns, 16 * MS);
	assert_int_equal(a.copies[505 / 16], 1);
	assert_int_equal(a.copies[900 / 16], 1);
}

static void groups_are_whole_pages(void **state)
{
	struct ttmon_page_heat ph;

	(void)state;
	ttmon_page_heat_init(&ph, 1 << 20, 4096);
	assert_int_equal(ph.group_bytes, 16384);
	ttmon_page_heat_init(&ph, (1 << 20) + 1, 4096);
	assert_int_equal(ph.group_bytes, 20480);
	ttmon_page_heat_init(&ph, 0, 4096);
	assert_int_equal(ph.group_bytes, 4096);
	ttmon_page_heat_init(&ph, UINT64_MAX, 4096);
	assert_true(ph.group_bytes >= UINT64_MAX / 64);
}

static void touches_what_it_covers(void **state)
{
	struct ttmon_page_heat ph;

	(void)state;
	ttmon_page_heat_init(&ph, 64 * 4096, 4096);
	ttmon_page_heat_touch(&ph, 4095, 2);
	assert_int_equal(ph.copies[0], 1);
	assert_int_equal(ph.copies[1], 1);
	assert_int_equal(ph.copies[2], 0);
	ttmon_page_heat_touch(&ph, 63 * 4096, UINT64_MAX);
	assert_int_equal(ph.copies[63], 1);
	ttmon_page_heat_touch(&ph, 64 * 4096, 1);
	ttmon_page_heat_touch(&ph, 0, 0);
	assert_int_equal(ttmon_page_heat_bytes(&ph), 3 * 4096);
	ttmon_page_heat_touch(&ph, 0, 64 * 4096);
	assert_int_equal(ttmon_page_heat_bytes(&ph), 64 * 4096);
	assert_int_equal(ph.copies[0], 2);
}

static void rect_touches_its_rows(void **state)
{
	struct ttmon_page_heat ph;
	struct ttmon_rect far = { .width = 100, .rows = 4, .slices = 1, .pitch = 8 * 4096 };
	struct ttmon_rect near = { .width = 100, .rows = 64, .slices = 1, .pitch = 256 };
	struct ttmon_rect deep = { .width = 10, .rows = 2, .slices = 3, .pitch = 512, .slice = 10 * 4096 };

	(void)state;
	ttmon_page_heat_init(&ph, 64 * 4096, 4096);
	ttmon_page_heat_touch_rect(&ph, 0, &far);
	for (unsigned int i = 0; i < 64; i++)
		assert_int_equal(ph.copies[i], i % 8 == 0 && i < 32);

	ttmon_page_heat_init(&ph, 64 * 4096, 4096);
	ttmon_page_heat_touch_rect(&ph, 0, &near);
	assert_int_equal(ttmon_page_heat_bytes(&ph), 4 * 4096);
	assert_int_equal(ph.copies[3], 1);

	ttmon_page_heat_init(&ph, 64 * 4096, 4096);
	ttmon_page_heat_touch_rect(&ph, 4096, &deep);
	for (unsigned int i = 0; i < 64; i++)
		assert_int_equal(ph.copies[i], i == 1 || i == 11 || i == 21);
}

static void rect_of_any_shape_ends(void **state)
{
	static const uint64_t odd[] = { 0, 1, 4096, 1ULL << 40, UINT64_MAX };
	struct ttmon_page_heat ph;

	(void)state;
	ttmon_page_heat_init(&ph, 64 * 4096, 4096);
	for (unsigned int i = 0; i < 3125; i++) {
		struct ttmon_rect r = { odd[i % 5], odd[i / 5 % 5], odd[i / 25 % 5], odd[i / 125 % 5], odd[i / 625] };

		ttmon_page_heat_touch_rect(&ph, odd[i % 5], &r);
	}
	assert_true(ph.copies[0] > 0);
	assert_true(ph.copies[0] <= 3125);
	/* An allocation as large as the address space: saturated offsets are still inside. */
	ttmon_page_heat_init(&ph, UINT64_MAX, 4096);
	for (unsigned int i = 0; i < 3125; i++) {
		struct ttmon_rect r = { odd[i % 5], odd[i / 5 % 5], odd[i / 25 % 5], odd[i / 125 % 5], odd[i / 625] };

		ttmon_page_heat_touch_rect(&ph, odd[i % 5], &r);
	}
	assert_true(ph.copies[0] > 0);
}

/* Memory that grows keeps its heat in its place; what lies behind the old end is counted too. */
static void pages_of_memory_that_grows(void **state)
{
	struct ttmon_page_heat ph;

	(void)state;
	ttmon_page_heat_init(&ph, 64 * 4096, 4096);
	ttmon_page_heat_touch(&ph, 0, 4096);
	ttmon_page_heat_touch(&ph, 0, 4096);
	ttmon_page_heat_touch(&ph, 4096, 4096);
	ttmon_page_heat_touch(&ph, 63 * 4096, 4096);
	ttmon_page_heat_grow(&ph, 64 * 4096);
	assert_int_equal(ph.group_bytes, 4096);
	ttmon_page_heat_grow(&ph, 98 * 4096);
	assert_int_equal(ph.group_bytes, 8192);
	assert_int_equal(ph.copies[0], 2);
	assert_int_equal(ph.copies[31], 1);
	ttmon_page_heat_touch(&ph, 97 * 4096, 4096);
	assert_int_equal(ph.copies[48], 1);
	assert_int_equal(ttmon_page_heat_bytes(&ph), 3 * 8192);
	ttmon_page_heat_grow(&ph, UINT64_MAX);
	assert_true(ph.group_bytes > UINT64_MAX / 2 / 64);
	assert_int_equal(ph.copies[0], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_in_the_right_bucket),
		cmocka_unit_test(pages_of_memory_that_grows),
		cmocka_unit_test(doubles_and_conserves),
		cmocka_unit_test(survives_any_time),
		cmocka_unit_test(bucket_beside_it_changes_nothing),
		cmocka_unit_test(merges_and_conserves),
		cmocka_unit_test(groups_are_whole_pages),
		cmocka_unit_test(touches_what_it_covers),
		cmocka_unit_test(rect_touches_its_rows),
		cmocka_unit_test(rect_of_any_shape_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
