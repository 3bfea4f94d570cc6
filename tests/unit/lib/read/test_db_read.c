// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_db_read.c: the database reader (lib/read/db) and files that are not what they should be:
 * foreign, cut off, damaged, too large, too deep. Each is one clear error. That it reads what the
 * daemon writes is in test_db.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include "lib/read/db.h"

static char path[] = "/tmp/ttmon-test-db-read-XXXXXX";

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	return fd < 0 || close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void put_file(const char *text, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	close(fd);
}

/* Read all of the file at path: 0 or the error. */
static int read_all(char *why, size_t n)
{
	struct ttmon_db *db = NULL;
	json_t *a;
	int r = ttmon_db_open(path, &db, why, n);

	if (r)
		return r;
	while ((r = ttmon_db_next_alloc(db, &a)) == 1)
		json_decref(a);
	snprintf(why, n, "%s", ttmon_db_why(db));
	/* An error stays. */
	assert_int_equal(ttmon_db_next_alloc(db, &a), r);
	assert_int_equal(ttmon_db_skip(db), r);
	ttmon_db_close(db);
	return r;
}

#define HEAD "{\"schema\":\"ttmon-db\",\"version\":1"

static void test_foreign(void **state)
{
	static const struct {
		const char *text;
		int err;
		const char *why;
	} rows[] = {
		{ "", -EBADMSG, "empty" },
		{ "TTMONREC\1\0\0\0", -EBADMSG, "not a ttmond database" },
		{ "[1,2,3]", -EBADMSG, "not a ttmond database" },
		{ "{}", -EBADMSG, "no allocations" },
		{ "{\"allocations\":[]}", -EBADMSG, "not a ttmond database" },
		{ "{\"schema\":\"other\",\"version\":1,\"allocations\":[]}", -EBADMSG, "not a ttmond database" },
		{ "{\"schema\":1,\"version\":1,\"allocations\":[]}", -EBADMSG, "not a ttmond database" },
		{ "{\"schema\":\"ttmon-db\",\"allocations\":[]}", -EBADMSG, "no version" },
		{ "{\"schema\":\"ttmon-db\",\"version\":\"1\",\"allocations\":[]}", -EBADMSG, "no version" },
		{ "{\"schema\":\"ttmon-db\",\"version\":2,\"allocations\":[]}", -EPROTONOSUPPORT, "version 2" },
		{ HEAD "}", -EBADMSG, "no allocations" },
		{ HEAD ",\"allocations\":{}}", -EBADMSG, "not an array" },
		{ HEAD ",\"allocations\":[7]}", -EBADMSG, "not an object" },
		{ HEAD ",\"allocations\":[{},]}", -EBADMSG, "not an object" },
		{ HEAD ",\"allocations\":[{}{}]}", -EBADMSG, "comma" },
		{ HEAD ",\"allocations\":[{\"a\":1,\"a\":2}]}", -EBADMSG, "damaged" },
		{ HEAD ",\"allocations\":[{\"a\":]}]}", -EBADMSG, "damaged" },
		{ HEAD ",\"allocations\":[{\"a\":99999999999999999999}]}", -EBADMSG, "damaged" },
		{ HEAD ",\"allocations\":[],\"allocations\":[]}", -EBADMSG, "twice" },
		{ HEAD ",\"allocations\":[],\"version\":1}", -EBADMSG, "twice" },
		{ HEAD ",\"allocations\":[]}x", -EBADMSG, "more after the end" },
		{ HEAD ",\"a\":}", -EBADMSG, "missing" },
		{ HEAD " \"allocations\":[]}", -EBADMSG, "comma" },
		{ HEAD ",\"a\":[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]],\"allocations\":[]}", -E2BIG, "nested" },
		{ HEAD ",\"0123456789012345678901234567890123456789012345678901234567890123456789\":1}", -E2BIG,
		  "longer" },
		{ HEAD ",\"allocations\":[]}\n", 0, "" },
		{ " {\"schema\" : \"ttmon-db\" ,\n\"version\":1,\t\"x\":\"]}\\\"\\\\\","
		  "\"allocations\" : [ {\"e\":[{}]} , {} ] , \"z\":null } ",
		  0, "" },
	};
	char why[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		put_file(rows[i].text, strlen(rows[i].text));
		why[0] = '\0';
		if (read_all(why, sizeof(why)) != rows[i].err || !strstr(why, rows[i].why))
			fail_msg("%s: %s", rows[i].text, why);
		assert_null(strchr(why, '\n'));
		assert_true(!rows[i].err || strstr(why, path));
	}
}

/* A document as the daemon writes it, in small. Returns its length. */
static size_t document(char *text, size_t n)
{
	size_t len = (size_t)snprintf(text, n, HEAD ",\n\"processes\":[\n{\"index\":0,\"pid\":1}],\n\"allocations\":[");

	for (unsigned int i = 0; i < 50; i++)
		len += (size_t)snprintf(
			text + len, n - len,
			"%s\n{\"id\":\"%08x:%u:0@0\",\"name\":\"\\\"]}\",\"events\":[[%u,\"h2d\",1,0]]}", i ? "," : "",
			i * 0x9e3779b9, i, i * i);
	len += (size_t)snprintf(text + len, n - len, "],\n\"summary\":{\"pins\":1}}\n");
	assert_true(len < n);
	return len;
}

/* Cut off anywhere it says so, but for the line break at the end. */
static void test_cut_off(void **state)
{
	char text[8192], why[512];
	size_t n = document(text, sizeof(text));

	(void)state;
	for (size_t i = 1; i < n - 1; i += i % 3 + 1) {
		put_file(text, i);
		assert_int_equal(read_all(why, sizeof(why)), -EBADMSG);
		assert_non_null(strstr(why, "cut off"));
	}
	put_file(text, n - 1);
	assert_int_equal(read_all(why, sizeof(why)), 0);
	put_file(text, n);
	assert_int_equal(read_all(why, sizeof(why)), 0);
}

/*
 * Compressed too, also where only the check sum at the end is missing; and a bit that has turned is
 * noticed.
 */
static void test_cut_off_gzip(void **state)
{
	char text[8192], packed[8192], why[512];
	size_t n = document(text, sizeof(text));
	gzFile gz = gzopen(path, "w1");
	ssize_t np;
	int fd;

	(void)state;
	assert_non_null(gz);
	assert_int_equal(gzwrite(gz, text, (unsigned int)n), n);
	assert_int_equal(gzclose(gz), Z_OK);
	assert_int_equal(read_all(why, sizeof(why)), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	np = read(fd, packed, sizeof(packed));
	close(fd);
	assert_true(np > 100 && np < (ssize_t)n);
	for (ssize_t i = 1; i < np; i += i < np - 12 ? 7 : 1) {
		put_file(packed, (size_t)i);
		assert_int_equal(read_all(why, sizeof(why)), -EBADMSG);
		/* Two bytes are no gzip header yet, just something foreign. */
		assert_true(i < 10 || strstr(why, "cut off"));
	}
	packed[np / 2] ^= 4;
	put_file(packed, (size_t)np);
	assert_int_equal(read_all(why, sizeof(why)), -EBADMSG);
}

/*
 * Tables before and after the allocations are available once they have been read, with or without the
 * allocations.
 */
static void test_members(void **state)
{
	char text[8192], why[512];
	struct ttmon_db *db = NULL;
	json_t *a = NULL;

	(void)state;
	put_file(text, document(text, sizeof(text)));
	assert_int_equal(ttmon_db_open(path, &db, why, sizeof(why)), 0);
	assert_int_equal(json_array_size(ttmon_db_member(db, "processes")), 1);
	assert_null(ttmon_db_member(db, "summary"));
	assert_null(ttmon_db_member(db, "allocations"));
	assert_int_equal(ttmon_db_next_alloc(db, &a), 1);
	assert_string_equal(ttmon_db_str(a, "id", ""), "00000000:0:0@0");
	assert_string_equal(ttmon_db_str(a, "name", ""), "\"]}");
	json_decref(a);
	assert_int_equal(ttmon_db_skip(db), 0);
	assert_int_equal(ttmon_db_get(ttmon_db_member(db, "summary"), "pins", 0), 1);
	a = NULL;
	assert_int_equal(ttmon_db_next_alloc(db, &a), 0);
	assert_null(a);
	assert_string_equal(ttmon_db_why(db), "");
	ttmon_db_close(db);
}

static void test_missing(void **state)
{
	char why[512];

	(void)state;
	assert_int_equal(unlink(path), 0);
	assert_int_equal(read_all(why, sizeof(why)), -ENOENT);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(read_all(why, sizeof(why)), -EISDIR);
	assert_int_equal(rmdir(path), 0);
	put_file("", 0);
}

/* A value longer than the limit is refused before it is parsed, from a file of a few KiB. */
static void test_bomb(void **state)
{
	static char zeros[1 << 20];
	char why[512];
	gzFile gz = gzopen(path, "w1");

	(void)state;
	memset(zeros, '0', sizeof(zeros));
	assert_non_null(gz);
	gzputs(gz, HEAD ",\"allocations\":[{\"a\":\"");
	for (size_t n = 0; n <= TTMON_DB_MAX_ALLOC; n += sizeof(zeros))
		gzwrite(gz, zeros, sizeof(zeros));
	gzputs(gz, "\"}]}");
	assert_int_equal(gzclose(gz), Z_OK);
	assert_int_equal(read_all(why, sizeof(why)), -E2BIG);
	assert_non_null(strstr(why, "longer than"));
}

static void put_n(gzFile gz, const char *unit, size_t n)
{
	char many[4096];
	size_t len = strlen(unit), fit = sizeof(many) / len;

	for (size_t i = 0; i < fit; i++)
		memcpy(many + i * len, unit, len);
	for (; n > fit; n -= fit)
		assert_int_equal(gzwrite(gz, many, (unsigned int)(fit * len)), fit * len);
	if (n)
		assert_int_equal(gzwrite(gz, many, (unsigned int)(n * len)), n * len);
}

/* head, n1 times unit1, middle, n2 times unit2, tail: the error, and what the line has to say. */
struct values {
	const char *head, *unit1, *middle, *unit2, *tail;
	size_t n1, n2;
	int err;
	const char *why;
};

/*
 * A tree takes far more memory than its text, so values are counted before they are parsed. Commas
 * without values count as values: within the limit they are damage, and beyond it they are not parsed.
 */
static void test_values(void **state)
{
	static const size_t most = TTMON_DB_MAX_VALUES, some = 1000;
	const struct values rows[] = {
		{ HEAD ",\"allocations\":[{\"a\":[", ",", "", "x", "]}]}", most - 2, 0, -EBADMSG, "damaged before" },
		{ HEAD ",\"allocations\":[{\"a\":[", ",", "", "x", "]}]}", most - 1, 0, -E2BIG,
		  "more than 16777216 values" },
		{ HEAD ",\"allocations\":[{\"a\":[", "{},", "", "x", "{}]}]}", most / 2, 0, -E2BIG, "values" },
		/* Text is no value. */
		{ HEAD ",\"allocations\":[{\"a\":\"", "[{,", "\\\"", ",", "\"}]}", most / 3, most / 2, 0, "" },
		/*
		 * Every allocation has all of it, the members have it together, and those after the allocations too.
		 */
		{ HEAD ",\"allocations\":[{\"a\":[", "null,", "1]},{\"a\":[", ",", "]}]}", some, most - 2, -EBADMSG,
		  "damaged before" },
		{ HEAD ",\"a\":[", "null,", "1],\"b\":[", ",", "],\"allocations\":[]}", some, most - some - 2, -EBADMSG,
		  "damaged before" },
		{ HEAD ",\"a\":[", "null,", "1],\"b\":[", ",", "],\"allocations\":[]}", some, most - some - 1, -E2BIG,
		  "values" },
		{ HEAD ",\"a\":[", "null,", "1],\"allocations\":[],\"b\":[", ",", "]}", some, most - some - 1, -E2BIG,
		  "values" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct values *v = &rows[i];
		gzFile gz = gzopen(path, "w1");
		char why[512] = "";
		int err;

		assert_non_null(gz);
		gzputs(gz, v->head);
		put_n(gz, v->unit1, v->n1);
		gzputs(gz, v->middle);
		put_n(gz, v->unit2, v->n2);
		gzputs(gz, v->tail);
		assert_int_equal(gzclose(gz), Z_OK);
		err = read_all(why, sizeof(why));
		if (err != v->err || !strstr(why, v->why))
			fail_msg("row %zu: %d, %s", i, err, why);
		assert_null(strchr(why, '\n'));
	}
}

/* Skipping an allocation makes no tree of it, so it may have any number of values. */
static void test_values_skipped(void **state)
{
	gzFile gz = gzopen(path, "w1");
	struct ttmon_db *db = NULL;
	char why[512];

	(void)state;
	assert_non_null(gz);
	gzputs(gz, HEAD ",\"allocations\":[{\"a\":[");
	put_n(gz, "1,", TTMON_DB_MAX_VALUES);
	gzputs(gz, "1]}]}");
	assert_int_equal(gzclose(gz), Z_OK);
	assert_int_equal(ttmon_db_open(path, &db, why, sizeof(why)), 0);
	assert_int_equal(ttmon_db_skip(db), 0);
	ttmon_db_close(db);
}

static void test_figures(void **state)
{
	json_t *o = json_pack("{s:i,s:i,s:s,s:s,s:s,s:s,s:s,s:s,s:n,s:s,s:s}", "n", 7, "minus", -7, "time",
			      "18446744073709551615", "addr", "0xffffffffffffffff", "sign", "-1", "space", " 1", "more",
			      "1x", "big", "18446744073709551616", "null", "hex", "0x", "octal", "010");
	static const char *const bad[] = { "minus", "sign", "space", "more", "big", "null", "hex", "missing" };
	uint64_t v = 42;

	(void)state;
	assert_non_null(o);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_false(ttmon_db_u64(o, bad[i], &v));
		assert_int_equal(v, 42);
	}
	assert_int_equal(ttmon_db_get(o, "n", 0), 7);
	assert_true(ttmon_db_get(o, "time", 0) == UINT64_MAX);
	assert_true(ttmon_db_get(o, "addr", 0) == UINT64_MAX);
	assert_int_equal(ttmon_db_get(o, "octal", 0), 10);
	assert_int_equal(ttmon_db_get(o, "missing", 5), 5);
	assert_string_equal(ttmon_db_str(o, "time", ""), "18446744073709551615");
	assert_string_equal(ttmon_db_str(o, "n", "def"), "def");
	json_decref(o);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_foreign), TEST(test_cut_off), TEST(test_cut_off_gzip),
		TEST(test_members), TEST(test_values),	TEST(test_values_skipped),
		TEST(test_bomb),    TEST(test_missing), cmocka_unit_test(test_figures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
