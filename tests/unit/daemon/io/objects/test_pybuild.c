// SPDX-License-Identifier: GPL-2.0-only
/* test_pybuild.c: which builds of CPython are known, and which are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/io/objects/python.h"

#define COOKIE 0x7970677562656478ULL

/* _Py_DebugOffsets of Debian's 3.13.5, as far as they are read. */
static void words_3_13(uint64_t w[TTMON_PYTHON_WORDS])
{
	static const struct {
		unsigned int at;
		uint64_t v;
	} known[] = {
		{ 0, COOKIE }, { 1, 0x030d05f0 }, { 5, 632 },  { 8, 7264 }, { 9, 7344 }, { 19, 328 }, { 21, 8 },
		{ 23, 72 },    { 24, 152 },	  { 28, 88 },  { 29, 8 },   { 31, 56 },	 { 33, 70 },  { 34, 208 },
		{ 35, 112 },   { 37, 128 },	  { 38, 136 }, { 39, 68 },  { 43, 200 },
	};

	memset(w, 0, TTMON_PYTHON_WORDS * sizeof(*w));
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		w[known[i].at] = known[i].v;
}

static uint32_t build(uint32_t version, const uint64_t *w, bool debug)
{
	struct ttmon_python p;

	ttmon_python_of(version, w, debug, &p);
	assert_true((p.build == TTMON_PYTHON_KNOWN) == !ttmon_python_refused(&p));
	assert_true((p.build == TTMON_PYTHON_KNOWN) == (p.layout.shape != TTMON_PY_NONE));
	return p.build;
}

static void known(void **state)
{
	const uint64_t none[TTMON_PYTHON_WORDS] = { 0 };
	uint64_t w[TTMON_PYTHON_WORDS];
	struct ttmon_python p;

	(void)state;
	assert_int_equal(build(0x030b02f0, none, false), TTMON_PYTHON_KNOWN);
	assert_int_equal(build(0x030b07f0, none, false), TTMON_PYTHON_KNOWN);
	words_3_13(w);
	ttmon_python_of(0x030d05f0, w, false, &p);
	assert_int_equal(p.build, TTMON_PYTHON_KNOWN);
	assert_int_equal(p.layout.threads_head, 7344);
	assert_int_equal(p.layout.ts_frame, 72);
	assert_int_equal(p.layout.co_code, 200);
}

static void refused(void **state)
{
	const uint64_t none[TTMON_PYTHON_WORDS] = { 0 };
	uint64_t w[TTMON_PYTHON_WORDS];

	(void)state;
	words_3_13(w);
	assert_int_equal(build(0, none, false), TTMON_PYTHON_VERSION);
	assert_int_equal(build(0x030a08f0, none, false), TTMON_PYTHON_VERSION);
	/* A release candidate; debug builds; a table that is not that version's, or missing. */
	assert_int_equal(build(0x030b00c1, none, false), TTMON_PYTHON_VERSION);
	assert_int_equal(build(0x030b02f0, none, true), TTMON_PYTHON_DEBUG);
	assert_int_equal(build(0x030b02f0, w, false), TTMON_PYTHON_VERSION);
	assert_int_equal(build(0x030d04f0, w, false), TTMON_PYTHON_VERSION);
	assert_int_equal(build(0x030d05f0, none, false), TTMON_PYTHON_VERSION);
	w[1] = 0x030e00f0;
	assert_int_equal(build(0x030e00f0, w, false), TTMON_PYTHON_VERSION);
	words_3_13(w);
	w[2] = 1;
	assert_int_equal(build(0x030d05f0, w, false), TTMON_PYTHON_THREADED);
	for (unsigned int at = 19; at < TTMON_PYTHON_WORDS; at++) {
		words_3_13(w);
		if (!w[at])
			continue;
		w[at] = 1 << 30;
		assert_int_equal(build(0x030d05f0, w, false), TTMON_PYTHON_ODD);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(known), cmocka_unit_test(refused) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
