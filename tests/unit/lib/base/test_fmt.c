// SPDX-License-Identifier: GPL-2.0-only
/* test_fmt.c: figures for people, at the edges where a unit changes and at both ends of 64 bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/fmt.h"

struct row {
	uint64_t value;
	const char *text;
};

static void check(const struct row *rows, size_t n, char *(*fmt)(char *, size_t, uint64_t))
{
	char buf[TTMON_FMT_LEN];

	for (size_t i = 0; i < n; i++)
		assert_string_equal(fmt(buf, sizeof(buf), rows[i].value), rows[i].text);
}

static void test_bytes(void **state)
{
	static const struct row rows[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.0 KiB" },
		{ 1536, "1.5 KiB" },
		{ 1048524, "1023.9 KiB" },
		{ 1048525, "1.0 MiB" },
		{ 1048576, "1.0 MiB" },
		{ 12897485, "12.3 MiB" },
		{ 1ull << 30, "1.0 GiB" },
		{ 1ull << 40, "1.0 TiB" },
		{ 1ull << 60, "1.0 EiB" },
		{ UINT64_MAX, "16.0 EiB" },
	};

	(void)state;
	check(rows, ARRAY_SIZE(rows), ttmon_fmt_bytes);
}

static void test_ns(void **state)
{
	static const struct row rows[] = {
		{ 0, "0 ns" },
		{ 999, "999 ns" },
		{ 1000, "1.0 us" },
		{ 999949, "999.9 us" },
		{ 999950, "1.0 ms" },
		{ 12345678, "12.3 ms" },
		{ 59900000000, "59.9 s" },
		{ 65000000000, "1 min 05 s" },
		{ 3600000000000, "1 h 00 min" },
		{ UINT64_MAX, "5124095 h 34 min" },
	};

	(void)state;
	check(rows, ARRAY_SIZE(rows), ttmon_fmt_ns);
}

static void test_count(void **state)
{
	static const struct row rows[] = {
		{ 0, "0" },
		{ 999, "999" },
		{ 1000, "1,000" },
		{ 1234567, "1,234,567" },
		{ UINT64_MAX, "18,446,744,073,709,551,615" },
	};

	(void)state;
	check(rows, ARRAY_SIZE(rows), ttmon_fmt_count);
}

static void test_small_buffer(void **state)
{
	char buf[4];

	(void)state;
	assert_string_equal(ttmon_fmt_bytes(buf, sizeof(buf), 12897485), "12.");
	assert_string_equal(ttmon_fmt_ns(buf, sizeof(buf), 12345), "12.");
	assert_string_equal(ttmon_fmt_count(buf, sizeof(buf), 1234567), "1,2");
}

static void test_text(void **state)
{
	char buf[8];

	(void)state;
	assert_string_equal(ttmon_fmt_text(buf, sizeof(buf), NULL), "");
	assert_string_equal(ttmon_fmt_text(buf, sizeof(buf), "a\x1b[2J\n"), "a?[2J?");
	assert_string_equal(ttmon_fmt_text(buf, sizeof(buf), "\xc2\x9b\x7f\xc3\xa4"), "??\xc3\xa4");
	/* C1 by itself is none of UTF-8; as a part of a character it is that. */
	assert_string_equal(ttmon_fmt_text(buf, sizeof(buf),
					   "\x9b"
					   "2J"),
			    "?2J");
	assert_string_equal(ttmon_fmt_text(buf, sizeof(buf), "\xe9\x9b\xa8"), "\xe9\x9b\xa8");
	/* Right to left, isolates, marks, lines. */
	assert_string_equal(ttmon_fmt_text(buf, sizeof(buf),
					   "a\xe2\x80\xae"
					   "b"),
			    "a?b");
	assert_string_equal(ttmon_fmt_text(buf, sizeof(buf), "\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c"), "???");
	assert_string_equal(ttmon_fmt_text(buf, sizeof(buf), "\xe2\x80\xa8\xe2\x80\x8f"), "??");
	assert_string_equal(ttmon_fmt_text(buf, sizeof(buf), "\xe2\x80"), "\xe2?");
	assert_string_equal(ttmon_fmt_text(buf, sizeof(buf), "123456\xc3\xa4"), "123456");
	assert_string_equal(ttmon_fmt_text(buf, sizeof(buf), "12345\xe2\x82\xac"), "12345");
	assert_string_equal(ttmon_fmt_text(buf, sizeof(buf), "1234567890"), "1234567");
	assert_string_equal(ttmon_fmt_text(buf, sizeof(buf), "\xc2"), "\xc2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),	     cmocka_unit_test(test_ns),	  cmocka_unit_test(test_count),
		cmocka_unit_test(test_small_buffer), cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
