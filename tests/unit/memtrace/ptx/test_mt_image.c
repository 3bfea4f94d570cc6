// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_image.c: PTX out of what nvcc makes (tests/memtrace/images), and out of the same with
 * anything wrong in it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memtrace/ptx/image.h"
#include "memtrace/ptx/ptx.h"
#include "lib/base/util.h"

static uint8_t *slurp(const char *name, size_t *n)
{
	_cleanup_fclose_ FILE *f = NULL;
	uint8_t buf[32768];
	char path[128];
	uint8_t *p;

	snprintf(path, sizeof(path), "tests/memtrace/images/%s", name);
	f = fopen(path, "rb");
	if (!f)
		fail_msg("%s: %s", path, strerror(errno));
	*n = fread(buf, 1, sizeof(buf), f);
	assert_in_range(*n, 1, sizeof(buf) - 1);
	/* As large as it is, so that a byte too many is seen. */
	p = malloc(*n);
	assert_non_null(p);
	memcpy(p, buf, *n);
	return p;
}

static void expect(const void *image, size_t n, uint32_t max_arch, uint32_t arch, const char *from)
{
	struct ttmon_mt_image x = { 0 };
	char why[200] = "", target[32];

	assert_int_equal(ttmon_mt_image_ptx(image, n, max_arch, &x, why, sizeof(why)), 0);
	assert_string_equal(x.from, from);
	assert_int_equal(x.arch, arch);
	assert_int_equal(strlen(x.text), x.len);
	snprintf(target, sizeof(target), ".target sm_%u", arch);
	assert_non_null(strstr(x.text, target));
	assert_non_null(strstr(x.text, ".entry scale("));
	assert_non_null(strstr(x.text, "st.global"));
	assert_non_null(strchr(x.text, '}'));
	free(x.text);
}

static void expect_error(const void *image, size_t n, uint32_t max_arch, int err, const char *part)
{
	struct ttmon_mt_image x = { .len = 77 };
	char why[200] = "";

	assert_int_equal(ttmon_mt_image_ptx(image, n, max_arch, &x, why, sizeof(why)), err);
	assert_non_null(strstr(why, part));
	assert_true(!x.text && x.len == 77);
}

static const struct {
	const char *name, *from;
} files[] = {
	{ "none.fatbin", "fat binary" },
	{ "speed.fatbin", "fat binary, LZ4" },
	{ "balance.fatbin", "fat binary, zstd" },
	{ "lineinfo.fatbin", "cubin's debug section" },
	{ "lineinfo.cubin", "cubin's debug section" },
};

static void test_what_nvcc_makes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		size_t n;
		_cleanup_free_ uint8_t *p = slurp(files[i].name, &n);

		expect(p, n, 0, 90, files[i].from);
		expect(p, n, 100, 90, files[i].from);
		/* As the driver gets it: without a length. */
		expect(p, SIZE_MAX, 90, 90, files[i].from);
		expect_error(p, n, 89, -ENOENT, i < 3 ? "lowest is for sm_90" : "cubin");
	}
}

static void test_architectures(void **state)
{
	static const uint32_t want[][2] = { { 80, 80 },	 { 86, 80 },   { 90, 90 },   { 100, 100 }, { 103, 100 },
					    { 110, 90 }, { 120, 120 }, { 121, 120 }, { 0, 120 } };
	size_t n;
	_cleanup_free_ uint8_t *p = slurp("many.fatbin", &n);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		expect(p, n, want[i][0], want[i][1], "fat binary, zstd");
	expect_error(p, n, 75, -ENOENT, "sm_75 can have: the lowest is for sm_80");
}

static void test_wrapper_and_rows(void **state)
{
	size_t n, m;
	_cleanup_free_ uint8_t *a = slurp("balance.fatbin", &n), *b = slurp("many.fatbin", &m),
			       *row = calloc(1, n + m + 24), *c = NULL;
	struct {
		uint32_t magic, version;
		const void *data, *list;
	} wrapper = { 0x466243b1, 1, a, NULL };

	(void)state;
	expect(&wrapper, SIZE_MAX, 0, 90, "fat binary, zstd");
	expect_error(&wrapper, sizeof(wrapper), 0, -ENOENT, "elsewhere");
	wrapper.data = NULL;
	expect_error(&wrapper, SIZE_MAX, 0, -EBADMSG, "wrapper");
	/*
	 * One behind the other, with room between them: that of the first alone where no length says that
	 * there are more.
	 */
	memcpy(row, a, n);
	memcpy(row + n + 16, b, m);
	expect(row, n + m + 24, 0, 120, "fat binary, zstd");
	expect(row, n + m + 24, 80, 80, "fat binary, zstd");
	expect(row, SIZE_MAX, 0, 90, "fat binary, zstd");
	c = slurp("cubin.fatbin", &m);
	expect_error(c, m, 0, -ENOENT, "without PTX, only 1 cubin");
}

static void test_text(void **state)
{
#define BODY "\n.address_size 64\n.visible .entry scale(.param .u64 a){ st.global.u32 [%rd1], %r1; }\n"
	static const char plain[] = "// made by hand\n/* .version\n */ .version 9.0\n.target sm_90" BODY;
	static const char special[] = ".version 9.0 .target sm_90a, debug" BODY,
			  family[] = ".version 9.0 .target sm_100f" BODY;
	static const char *const not_ptx[] = { "",
					       "/",
					       "//",
					       "/*",
					       "/* * .version",
					       ".versio",
					       "version",
					       "\x7f",
					       ("\x7f"
						"EL"),
					       "\xb1\x43\x62",
					       "P\xed\x55",
					       " \n" };
	_cleanup_free_ char *huge = NULL;

	(void)state;
	expect(plain, SIZE_MAX, 0, 90, "PTX text");
	expect(plain, sizeof(plain), 90, 90, "PTX text");
	expect(plain, sizeof(plain) - 1, 120, 90, "PTX text");
	expect_error(plain, SIZE_MAX, 80, -ENOENT, "another architecture than sm_80");
	expect(special, SIZE_MAX, 90, 90, "PTX text");
	expect_error(special, SIZE_MAX, 100, -ENOENT, "another architecture");
	expect(family, SIZE_MAX, 103, 100, "PTX text");
	expect_error(family, SIZE_MAX, 120, -ENOENT, "another architecture");
	for (size_t i = 0; i < ARRAY_SIZE(not_ptx); i++) {
		_cleanup_free_ char *copy = strdup(not_ptx[i]);

		expect_error(copy, SIZE_MAX, 0, -EBADMSG, "neither PTX");
		expect_error(copy, strlen(copy), 0, -EBADMSG, "neither PTX");
	}
	expect_error(NULL, SIZE_MAX, 0, -EBADMSG, "neither PTX");
	huge = malloc((size_t)TTMON_PTX_MAX + 100);
	assert_non_null(huge);
	memset(huge, ' ', (size_t)TTMON_PTX_MAX + 100);
	memcpy(huge, plain, sizeof(plain) - 1);
	expect_error(huge, (size_t)TTMON_PTX_MAX + 100, 0, -E2BIG, "more than 256 MiB");
}

/* Whatever it is: an error with a reason, or a text. */
static bool ask(const uint8_t *p, size_t n)
{
	struct ttmon_mt_image x = { 0 };
	char why[200] = "";
	int err = ttmon_mt_image_ptx(p, n, 0, &x, why, sizeof(why));

	assert_true(err ? why[0] && !x.text : x.text && strlen(x.text) == x.len && x.from);
	free(x.text);
	return !err;
}

static void test_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		size_t n;
		_cleanup_free_ uint8_t *p = slurp(files[i].name, &n);

		for (size_t cut = 0; cut < n; cut++) {
			_cleanup_free_ uint8_t *q = malloc(cut);

			memcpy(q, p, cut);
			ask(q, cut);
		}
	}
}

static void test_damaged(void **state)
{
	static const uint64_t absurd[] = { 0, 1, 63, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		size_t n, bytes[] = { 2, 4, 8 };
		_cleanup_free_ uint8_t *p = slurp(files[i].name, &n);

		/* Each number of the headers, as far as there are any. */
		for (size_t at = 0; at + 8 <= n; at += 2) {
			uint8_t kept[8];
			uint64_t v = absurd[at / 2 % ARRAY_SIZE(absurd)];

			memcpy(kept, p + at, 8);
			memcpy(p + at, &v, bytes[at / 2 % 3]);
			ask(p, n);
			memcpy(p + at, kept, 8);
		}
	}
}

/* A container that says nothing but what it would cost. */
static void test_bombs(void **state)
{
	uint8_t p[16 + 64 + 8] = { 0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 72 };
	uint8_t *e = p + 16;

	(void)state;
	e[0] = 1;
	e[4] = 64;
	e[8] = 8;
	e[16] = 8;
	e[28] = 90;
	e[41] = 0x20; /* LZ4 */
	e[58] = 0xff;
	expect_error(p, sizeof(p), 0, -EBADMSG, "damaged");
	e[41] = 0x80;
	expect_error(p, sizeof(p), 0, -EBADMSG, "damaged");
	e[60] = 1;
	expect_error(p, sizeof(p), 0, -E2BIG, "more than 256 MiB");
	e[4] = 63;
	expect_error(p, sizeof(p), 0, -EBADMSG, "damaged");
}

/* How long a cubin is; never is a byte read past its end. */
static void test_cubin_bytes(void **state)
{
	size_t n, size;
	void *p = slurp("lineinfo.cubin", &n);

	(void)state;
	size = ttmon_mt_image_cubin(p, n);
	assert_in_range(size, 1024, n);
	assert_int_equal(ttmon_mt_image_cubin(p, SIZE_MAX), size);
	for (size_t i = 0; i < n; i++) {
		void *cut = malloc(i ? i : 1);

		assert_non_null(cut);
		memcpy(cut, p, i);
		assert_int_equal(ttmon_mt_image_cubin(cut, i), i < size ? 0 : size);
		free(cut);
	}
	((unsigned char *)p)[18] ^= 1; /* e_machine */
	assert_int_equal(ttmon_mt_image_cubin(p, n), 0);
	free(p);
	p = slurp("lineinfo.fatbin", &n);
	assert_int_equal(ttmon_mt_image_cubin(p, n), 0);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_nvcc_makes),
		cmocka_unit_test(test_architectures),
		cmocka_unit_test(test_wrapper_and_rows),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_bombs),
		cmocka_unit_test(test_cubin_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
