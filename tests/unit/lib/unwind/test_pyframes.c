// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_pyframes.c: strings and location tables of code objects, and Python frames among native ones.
 * The tables are those of CPython 3.11 (co_linetable).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/unwind/python.h"

#define COMPACT		     (1u << 5)
#define ASCII		     (1u << 6)
#define LINE(at, table, off) ttmon_py_line((const uint8_t *)(table), sizeof(table) - 1, at, off)

static void strings(void **state)
{
	static const uint16_t two[] = { 'f', 0x444, 0xd800 };
	static const uint8_t latin[] = { 'f', 0xf3 };
	char buf[16];

	(void)state;
	assert_true(ttmon_py_text(&(struct ttmon_py_str){ 4, 1 << 2 | COMPACT | ASCII }, (const uint8_t *)"a\nbc", 4,
				  buf, sizeof(buf)));
	assert_string_equal(buf, "a?bc");
	assert_true(ttmon_py_text(&(struct ttmon_py_str){ 2, 1 << 2 | COMPACT }, latin, 2, buf, sizeof(buf)));
	assert_string_equal(buf, "f\xc3\xb3");
	assert_true(ttmon_py_text(&(struct ttmon_py_str){ 3, 2 << 2 | COMPACT }, (const uint8_t *)two, sizeof(two), buf,
				  sizeof(buf)));
	assert_string_equal(buf, "f\xd1\x84?");
	/* Empty, of no kind, longer than what was copied, longer than there is room. */
	assert_false(ttmon_py_text(&(struct ttmon_py_str){ 0, 1 << 2 }, latin, 2, buf, sizeof(buf)));
	assert_false(ttmon_py_text(&(struct ttmon_py_str){ 1, 3 << 2 }, latin, 2, buf, sizeof(buf)));
	assert_false(ttmon_py_text(&(struct ttmon_py_str){ 2, 2 << 2 }, latin, 2, buf, sizeof(buf)));
	assert_false(ttmon_py_text(&(struct ttmon_py_str){ 4, 1 << 2 }, (const uint8_t *)"abcd", 4, buf, 7));
}

/* def f():\n a = 1\n b = (a +\n 2), of 3.11.2, first line 1. */
static const char table[] =
	"\x80\x00\xd8\x08\x09\x80\x41\xe0\x06\x07\xf0\x02\x00\x07\x08\xf1\x03\x01\x05\x06\x80\x41\x80\x41";

static void lines(void **state)
{
	(void)state;
	assert_int_equal(LINE(1, table, 0), 1);
	assert_int_equal(LINE(1, table, 2), 2);
	assert_int_equal(LINE(1, table, 4), 2);
	/* Before the first instruction: the function's own line. */
	assert_int_equal(LINE(1, table, UINT32_MAX - 1), 1);
	/* Behind the last one, none, a table that is cut, and one that is none. */
	assert_int_equal(LINE(1, table, 1000), 0);
	assert_int_equal(LINE(1, "\xf8", 0), 0);
	assert_int_equal(LINE(1, "\xf0\x02", 0), 0);
	assert_int_equal(LINE(1, "\x00", 0), 0);
	assert_int_equal(LINE(1, "\xe8\x7f\x7f\x7f\x7f\x7f\x7f", 0), 0);
	/* A line before the first one. */
	assert_int_equal(LINE(1, "\xe8\x05", 0), 0);
	assert_int_equal(LINE(9, "\xe8\x05", 0), 7);
}

#define TEXT 0x400000

static struct ttmon_stack_copy copy;
static struct ttmon_uw_result r;
static uint64_t out[32];
static enum ttmon_stack_end end;

/* Native frames at 0x100 bytes of stack each; own: bit i, frame i is the interpreter's. */
static void native(unsigned int n, unsigned int own)
{
	copy = (struct ttmon_stack_copy){
		.sp = 0x1000, .py_start = TEXT, .py_end = TEXT + 0x1000, .py_state = TTMON_PY_OK
	};
	r = (struct ttmon_uw_result){ .n = n, .end = TTMON_STACK_COMPLETE };
	for (unsigned int i = 0; i < n; i++) {
		r.pc[i] = (own >> i & 1 ? TEXT : 0x10000) + i + 1;
		r.sp[i] = 0x1000 + 0x100 * i;
	}
}

static void python(uint32_t entry)
{
	copy.py[copy.npy++].entry = entry;
}

static unsigned int merge(unsigned int max)
{
	static const uint64_t frames[TTMON_PY_FRAMES] = { 1, 2, 3, 4, 5, 6 };

	return ttmon_py_merge(&copy, &r, frames, max, out, &end);
}

static void among_native_frames(void **state)
{
	static const uint64_t want[] = { 0x10001, 1, 2, 0x10005, 3, 0x10008 };

	(void)state;
	/* pin, call, eval (two lines), qsort's callback, call, eval (one), main. */
	native(8, 0x6e);
	python(0);
	python(0x280);
	python(0x620);
	assert_int_equal(merge(32), 6);
	assert_memory_equal(out, want, sizeof(want));
	assert_int_equal(end, TTMON_STACK_COMPLETE);
	/* Fewer than there are. */
	assert_int_equal(merge(3), 3);
	assert_int_equal(end, TTMON_STACK_DEPTH);
	assert_memory_equal(out, want, 3 * sizeof(want[0]));
}

static void ends_in_between(void **state)
{
	static const uint64_t cut[] = { 0x10001, 1, 2, 3 }, deep[] = { 0x10001, 1, 2 };

	(void)state;
	/* The native walk ends before the second of the interpreter's C frames. */
	native(3, 6);
	r.end = TTMON_STACK_COPIED;
	python(0);
	python(0x280);
	python(0x620);
	assert_int_equal(merge(32), 4);
	assert_memory_equal(out, cut, sizeof(cut));
	assert_int_equal(end, TTMON_STACK_COPIED);
	/* More frames of Python than were read: what is further out than these is not shown. */
	native(5, 0x6);
	copy.py_state = TTMON_PY_CUT;
	python(0);
	python(0);
	assert_int_equal(merge(32), 3);
	assert_memory_equal(out, deep, sizeof(deep));
	assert_int_equal(end, TTMON_STACK_DEPTH);
	/* A copy that lies about how many it has. */
	native(1, 0);
	copy.npy = 4000;
	assert_in_range(merge(32), 0, 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings),
		cmocka_unit_test(lines),
		cmocka_unit_test(among_native_frames),
		cmocka_unit_test(ends_in_between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
