// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_jsonw.c: the JSON row writer: what jansson reads back is what was put in, at the edges of each
 * kind of value.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>

#include "lib/os/jsonw.h"

#define X64 "0123456789012345678901234567890123456789012345678901234567890123"

static struct ttmon_jsonw w;
static FILE *file;

static int setup(void **state)
{
	(void)state;
	file = tmpfile();
	return file ? ttmon_jsonw_init(&w, fileno(file), false) : -1;
}

static int teardown(void **state)
{
	(void)state;
	ttmon_jsonw_fini(&w);
	fclose(file);
	return 0;
}

/* What has been written, as text; free() it. */
static char *written(void)
{
	long n;
	char *text;

	assert_int_equal(ttmon_jsonw_finish(&w), 0);
	n = lseek(fileno(file), 0, SEEK_END);
	text = calloc(1, (size_t)n + 1);
	assert_non_null(text);
	assert_int_equal(pread(fileno(file), text, (size_t)n, 0), n);
	return text;
}

static void assert_written(const char *want)
{
	char *text = written();

	assert_string_equal(text, want);
	free(text);
}

static void test_commas(void **state)
{
	(void)state;
	ttmon_jsonw_open(&w, '{');
	ttmon_jsonw_key(&w, "a");
	ttmon_jsonw_open(&w, '[');
	ttmon_jsonw_close(&w, ']');
	ttmon_jsonw_line(&w);
	ttmon_jsonw_key(&w, "b");
	ttmon_jsonw_open(&w, '[');
	ttmon_jsonw_line(&w);
	ttmon_jsonw_num(&w, 1);
	ttmon_jsonw_line(&w);
	ttmon_jsonw_bool(&w, true);
	ttmon_jsonw_bool(&w, false);
	ttmon_jsonw_null(&w);
	ttmon_jsonw_name(&w, "n");
	ttmon_jsonw_name(&w, NULL);
	ttmon_jsonw_close(&w, ']');
	ttmon_jsonw_close(&w, '}');
	ttmon_jsonw_end(&w);
	assert_written("{\"a\":[],\n\"b\":[\n1,\ntrue,false,null,\"n\",null]}\n");
}

static void test_numbers(void **state)
{
	(void)state;
	ttmon_jsonw_open(&w, '[');
	for (uint64_t v = 9; v < 1000000000000000000; v = v * 10 + 9)
		ttmon_jsonw_num(&w, v + (v % 20 == 9));
	ttmon_jsonw_num(&w, 0);
	ttmon_jsonw_num(&w, INT64_MAX);
	ttmon_jsonw_num(&w, UINT64_MAX);
	ttmon_jsonw_int(&w, -1);
	ttmon_jsonw_int(&w, INT64_MIN);
	ttmon_jsonw_int(&w, INT64_MAX);
	ttmon_jsonw_close(&w, ']');
	assert_written(
		"[10,99,999,9999,99999,999999,9999999,99999999,999999999,9999999999,99999999999,999999999999,"
		"9999999999999,99999999999999,999999999999999,9999999999999999,99999999999999999,999999999999999999,"
		"0,9223372036854775807,9223372036854775807,-1,-9223372036854775808,9223372036854775807]");
}

static void test_ratio(void **state)
{
	(void)state;
	ttmon_jsonw_open(&w, '[');
	ttmon_jsonw_ratio(&w, 0);
	ttmon_jsonw_ratio(&w, 0.0625);
	ttmon_jsonw_ratio(&w, 0.9996);
	ttmon_jsonw_ratio(&w, 7);
	ttmon_jsonw_ratio(&w, -1);
	ttmon_jsonw_ratio(&w, __builtin_nan(""));
	ttmon_jsonw_close(&w, ']');
	assert_written("[0.000,0.063,1.000,1.000,0.000,0.000]");
}

static void test_times_and_addresses(void **state)
{
	(void)state;
	ttmon_jsonw_open(&w, '[');
	ttmon_jsonw_time(&w, 0);
	ttmon_jsonw_time(&w, UINT64_MAX);
	ttmon_jsonw_addr(&w, 0);
	ttmon_jsonw_addr(&w, 0x7f00abcdef01);
	ttmon_jsonw_addr(&w, UINT64_MAX);
	ttmon_jsonw_close(&w, ']');
	assert_written("[\"0\",\"18446744073709551615\",\"0x0\",\"0x7f00abcdef01\",\"0xffffffffffffffff\"]");
}

static void test_escapes(void **state)
{
	(void)state;
	ttmon_jsonw_open(&w, '[');
	ttmon_jsonw_str(&w, NULL);
	ttmon_jsonw_str(&w, "");
	ttmon_jsonw_str(&w, "a\"b\\c/\n\t\r\x1b\x7f\xc2\x9b");
	ttmon_jsonw_text(&w, "cut here", 3);
	ttmon_jsonw_text(&w, "nul\0hidden", 10);
	ttmon_jsonw_symbol(&w, "a\"b", 18);
	ttmon_jsonw_symbol(&w, NULL, 18);
	ttmon_jsonw_close(&w, ']');
	assert_written(
		"[null,\"\",\"a\\\"b\\\\c/\\n\\t\\u000d\\u001b\\u007f\\u009b\",\"cut\",\"nul\",\"a\\\"b+0x12\",null]");
}

/* Each byte that belongs to no valid sequence is one U+FFFD; what is valid stays as it is. */
static void test_utf8(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "a\xff"
		  "b",
		  "a\xef\xbf\xbd"
		  "b" },
		{ "\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd" },				    /* overlong */
		{ "\xe0\x9f\xbf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },		    /* overlong */
		{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },		    /* surrogate */
		{ "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* past U+10FFFF */
		{ "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf" },
		{ "\xee\x80\x80", "\xee\x80\x80" },
		{ "\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd" }, /* cut off */
		{ "\xf0\x9f\x98", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf5\x80\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	};
	json_t *json;
	char *text;

	(void)state;
	ttmon_jsonw_open(&w, '[');
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		ttmon_jsonw_str(&w, rows[i].in);
	ttmon_jsonw_close(&w, ']');
	text = written();
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(json_string_value(json_array_get(json, i)), rows[i].out);
	json_decref(json);
	free(text);
}

/* Every single byte, alone and in pairs, gives a document that a strict parser takes. */
static void test_all_bytes(void **state)
{
	json_t *json;
	char *text;

	(void)state;
	ttmon_jsonw_open(&w, '[');
	for (unsigned int a = 1; a < 256; a++)
		for (unsigned int b = 1; b < 256; b++)
			ttmon_jsonw_text(&w, (char[]){ (char)a, (char)b }, 2);
	ttmon_jsonw_close(&w, ']');
	text = written();
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	assert_int_equal(json_array_size(json), 255 * 255);
	json_decref(json);
	free(text);
}

/* Long text goes through the buffer in pieces. */
static void test_long(void **state)
{
	size_t n = 1000000;
	char *in = malloc(n + 1), *text;
	json_t *json;

	(void)state;
	assert_non_null(in);
	for (size_t i = 0; i < n; i++)
		in[i] = i % 7 ? 'x' : '"';
	in[n] = '\0';
	ttmon_jsonw_open(&w, '[');
	ttmon_jsonw_str(&w, in);
	ttmon_jsonw_name(&w,
			 "a name that is longer than one piece of the buffer, which no name of ours is: " X64 X64 X64);
	ttmon_jsonw_close(&w, ']');
	text = written();
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	assert_string_equal(json_string_value(json_array_get(json, 0)), in);
	json_decref(json);
	free(text);
	free(in);
}

/* The first error is kept and returned; writing continues without effect. */
static void test_error(void **state)
{
	struct ttmon_jsonw full;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	if (fd < 0)
		skip();
	for (int gzip = 0; gzip < 2; gzip++) {
		assert_int_equal(ttmon_jsonw_init(&full, fd, gzip), 0);
		ttmon_jsonw_open(&full, '[');
		for (uint64_t i = 0; i < 200000; i++)
			ttmon_jsonw_num(&full, i * 0x9e3779b97f4a7c15);
		assert_int_equal(ttmon_jsonw_finish(&full), -ENOSPC);
		ttmon_jsonw_fini(&full);
	}
	close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_commas),  TEST(test_numbers), TEST(test_ratio),     TEST(test_times_and_addresses),
		TEST(test_escapes), TEST(test_utf8),	TEST(test_all_bytes), TEST(test_long),
		TEST(test_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
