// SPDX-License-Identifier: GPL-2.0-only
/* test_mt_use.c: which memory kernels accessed, by page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "memtrace/model/shape.h"
#include "memtrace/analyse/use.h"

#define PAGE 4096ull

static struct ttmon_mt_used got[8192];
static size_t nr;

static void take(void *ctx, const struct ttmon_mt_used *used)
{
	(void)ctx;
	assert_true(nr < 8192);
	got[nr++] = *used;
}

static struct ttmon_mt_use *u;
static uint64_t now;

static int setup(void **state)
{
	(void)state;
	nr = 0;
	now = 1000;
	return ttmon_mt_use_new(256, &u);
}

static int teardown(void **state)
{
	(void)state;
	ttmon_mt_use_free(u);
	return 0;
}

static bool access(uint32_t pid, uint64_t base, int64_t stride, unsigned int kind)
{
	struct ttmon_mt_rec r = {
		.base = base, .stride = stride, .mask = UINT32_MAX, .space = TTMON_MT_GLOBAL, .width = 4
	};

	return ttmon_mt_use_add(u, pid, &r, kind, now);
}

static void tell(void)
{
	nr = 0;
	ttmon_mt_use_tell(u, take, NULL);
}

static void sums_by_page(void **state)
{
	(void)state;
	assert_true(access(7, 10 * PAGE + 64, 4, TTMON_MT_LOAD));
	assert_true(access(7, 10 * PAGE + 64, 4, TTMON_MT_ATOM));
	assert_true(access(7, 10 * PAGE + 1024, 4, TTMON_MT_STORE));
	tell();
	assert_int_equal(nr, 1);
	assert_int_equal(got[0].pid, 7);
	assert_int_equal(got[0].addr, 10 * PAGE + 64);
	assert_int_equal(got[0].size, 1024 - 64 + 128);
	assert_int_equal(got[0].reads, 2);
	assert_int_equal(got[0].writes, 2);
	assert_int_equal(got[0].sectors, 12);
	/* And forgets them. */
	tell();
	assert_int_equal(nr, 0);
}

/*
 * The earliest use of a range is its time; pages that were first used at other times are not of one
 * range.
 */
static void each_range_has_its_time(void **state)
{
	(void)state;
	now = 50 * 1000000;
	assert_true(access(7, 11 * PAGE - 64, 4, TTMON_MT_LOAD));
	now -= 1000;
	assert_true(access(7, 11 * PAGE - 64, 4, TTMON_MT_LOAD));
	now -= 1;
	assert_true(access(7, 11 * PAGE, 4, TTMON_MT_LOAD));
	now += 9000000;
	assert_true(access(7, 10 * PAGE, 4, TTMON_MT_LOAD));
	assert_true(access(7, 20 * PAGE - 64, 4, TTMON_MT_LOAD));
	now -= 2000000;
	assert_true(access(7, 20 * PAGE, 4, TTMON_MT_LOAD));
	tell();
	assert_int_equal(nr, 3);
	assert_int_equal(got[0].addr, 10 * PAGE);
	assert_int_equal(got[0].ns, 50 * 1000000 - 1001);
	assert_int_equal(got[1].addr, 20 * PAGE - 64);
	assert_int_equal(got[1].ns, 59 * 1000000 - 1001);
	assert_int_equal(got[2].addr, 20 * PAGE);
	assert_int_equal(got[2].ns, 57 * 1000000 - 1001);
}

static void pages_that_touch_are_one_range(void **state)
{
	(void)state;
	assert_true(access(7, 11 * PAGE - 64, 4, TTMON_MT_LOAD)); /* the last two sectors of 10, the first two of 11 */
	assert_true(access(7, 13 * PAGE, 4, TTMON_MT_LOAD));
	assert_true(access(8, 11 * PAGE - 64, 4, TTMON_MT_LOAD));
	tell();
	assert_int_equal(nr, 3);
	assert_int_equal(got[0].addr, 11 * PAGE - 64);
	assert_int_equal(got[0].size, 128);
	assert_int_equal(got[0].sectors, 4);
	assert_int_equal(got[0].reads, 2); /* once in each page */
	assert_int_equal(got[1].addr, 13 * PAGE);
	assert_int_equal(got[2].pid, 8);
}

static void other_spaces_do_not_count(void **state)
{
	struct ttmon_mt_rec r = { .base = PAGE, .stride = 4, .mask = 1, .width = 4 };

	(void)state;
	r.space = TTMON_MT_SHARED;
	assert_true(ttmon_mt_use_add(u, 1, &r, TTMON_MT_LOAD, now));
	r.space = TTMON_MT_LOCAL;
	assert_true(ttmon_mt_use_add(u, 1, &r, TTMON_MT_LOAD, now));
	r.space = TTMON_MT_GLOBAL;
	assert_true(ttmon_mt_use_add(u, 1, &r, TTMON_MT_PREFETCH, now));
	tell();
	assert_int_equal(nr, 0);
}

static uint64_t tell_reads(void)
{
	uint64_t sum = 0;

	tell();
	for (size_t i = 0; i < nr; i++)
		sum += got[i].reads;
	return sum;
}

/* Full: nothing is lost, it is said to tell first. Many rounds, few and many pages at a time. */
static void nothing_is_lost(void **state)
{
	uint64_t requests = 0, told = 0;

	(void)state;
	srand(1);
	for (unsigned int i = 0; i < 20000; i++) {
		uint64_t page = (uint64_t)(rand() % 1000) * 3 + 1;
		uint32_t pid = 1 + (uint32_t)(rand() % 3);

		if (!access(pid, page * PAGE, 0, TTMON_MT_LOAD)) {
			told += tell_reads();
			assert_true(access(pid, page * PAGE, 0, TTMON_MT_LOAD));
		}
		requests++;
		if (rand() % 500 == 0)
			told += tell_reads();
	}
	told += tell_reads();
	assert_int_equal(told, requests);
}

/* In pieces that few allocations lie in, and of the largest touch not more than thousands. */
static void ranges_are_cut(void **state)
{
	struct ttmon_mt_touch t = { .addr = PAGE, .size = 64 * PAGE, .reads = 100, .pid = 7 };
	uint64_t end = PAGE;

	(void)state;
	for (unsigned int i = 0; i < 100; i++) {
		assert_true(access(7, (10 + i) * PAGE, 4, TTMON_MT_LOAD));
		assert_true(access(7, (11 + i) * PAGE - 128, 4, TTMON_MT_LOAD));
	}
	tell();
	assert_int_equal(nr, 2);
	assert_true(got[0].size == 64 * PAGE && got[0].addr + got[0].size == got[1].addr);
	/* Three that go on are one. */
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(ttmon_mt_use_touch(u, &t, now));
		t.addr += t.size;
	}
	tell();
	assert_int_equal(nr, 3);
	assert_true(got[2].addr == 129 * PAGE && got[2].reads == 100 && got[2].sectors == 64 * PAGE / 32);
	t = (struct ttmon_mt_touch){ .addr = PAGE, .size = 1ull << 40, .writes = 1, .pid = 7 };
	assert_true(ttmon_mt_use_touch(u, &t, now));
	tell();
	assert_true(nr > 1000 && nr <= 4096);
	for (size_t i = 0; i < nr; i++) {
		assert_true(got[i].addr == end && got[i].writes == 1 && got[i].reads == 0);
		end += got[i].size;
	}
	assert_int_equal(end, PAGE + (1ull << 40));
	tell();
	assert_int_equal(nr, 0);
	/* Full: tell first. */
	for (unsigned int i = 0; i < 256; i++) {
		t = (struct ttmon_mt_touch){ .addr = 2 * i * PAGE, .size = PAGE, .reads = 1, .pid = 7 };
		assert_true(ttmon_mt_use_touch(u, &t, now));
	}
	t.addr += 8 * PAGE;
	assert_false(ttmon_mt_use_touch(u, &t, now));
	assert_int_equal(tell_reads(), 256);
	assert_true(ttmon_mt_use_touch(u, &t, now));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(sums_by_page),
		TEST(pages_that_touch_are_one_range),
		TEST(each_range_has_its_time),
		TEST(other_spaces_do_not_count),
		TEST(nothing_is_lost),
		TEST(ranges_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
