// SPDX-License-Identifier: GPL-2.0-only
/* test_plumbing.c: which frames are the program's own (lib/base/plumbing). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/plumbing.h"

static void natives(void **state)
{
	static const struct {
		const char *path, *function;
		bool plumbing;
	} cases[] = {
		{ "/lib/x86_64-linux-gnu/libc.so.6", NULL, true },
		{ "/opt/torch/lib/libtorch_cuda.so", "anything", true },
		{ "/opt/torch/lib/libc10_cuda.so", NULL, true },
		{ "/usr/local/cuda/lib64/libcudart.so.12.4.127", NULL, true },
		{ "/usr/bin/python3.11", "_PyEval_EvalFrameDefault", true },
		{ "/usr/lib/libcurl.so.4", "curl_global_init", false },
		{ "/opt/app", "main", false },
		{ "/opt/app", NULL, false },
		{ "/opt/app", "_Znwm", true },
		{ "/opt/app", "_ZNSt6vectorIiSaIiEE9push_backERKi", true },
		{ "/opt/app", "_ZNKSt8functionIFvvEEclEv", true },
		{ "/opt/app", "_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_", true },
		{ "/opt/app", "_ZN2at6native4copyEv", true },
		{ "/opt/app", "_ZZN2at6native4copyEvENKUlvE_clEv", true },
		{ "/opt/app", "_ZNK3c109Allocator8allocateEm", true },
		{ "/opt/app", "_ZN3std2io5stdio6_printE", true },
		/* Names that only begin so, or lie further in. */
		{ "/opt/app", "_ZN5atlas4loadEv", false },
		{ "/opt/app", "_ZN3app2at4loadEv", false },
		{ "/opt/app", "_ZN3app4loadESt6vectorIiSaIiEE", false },
		{ "/opt/app", "_ZN12_GLOBAL__N_14loadEv", false },
		{ "/opt/app", "std", false },
		{ "/opt/app", "_Z", false },
		{ "/opt/app", "_ZN", false },
		{ "/opt/app", "_ZN99999999999999999999999at", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (ttmon_plumbing_native(NULL, cases[i].path, cases[i].function) != cases[i].plumbing)
			fail_msg("%s of %s", cases[i].function, cases[i].path);
	assert_true(ttmon_plumbing_is_interpreter("/usr/lib/libpython3.13.so.1.0"));
	assert_false(ttmon_plumbing_is_interpreter("/usr/lib/libpythonic.so"));
}

static void lines(void **state)
{
	static const struct {
		const char *path;
		bool plumbing;
	} cases[] = {
		{ "train.py", false },
		{ "/home/me/torch/train.py", false },
		{ "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", true },
		{ "/home/me/v/lib/python3.12/site-packages/torch/utils/data/_utils/pin_memory.py", true },
		{ "/home/me/v/lib/python3.12/site-packages/mine/loader.py", false },
		{ "/home/me/v/lib/python3.12/threading.py", true },
		{ "/usr/lib/python3.11/ctypes/__init__.py", true },
		{ "<frozen runpy>", true },
		{ "<string>", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (ttmon_plumbing_python(NULL, cases[i].path) != cases[i].plumbing)
			fail_msg("%s", cases[i].path);
}

static void patterns_of_a_user(void **state)
{
	static const char text[] = "# ours\r\nobject libpool*.so*\n\n  namespace pool\t\n"
				   "own object libtorch_mine.so\nfunction get_?lock\npython /srv/my lib/*\n"
				   "own python */threading.py";
	struct ttmon_plumbing *p = NULL;
	char why[100];

	(void)state;
	assert_int_equal(ttmon_plumbing_parse(text, sizeof(text) - 1, &p, why, sizeof(why)), 0);
	assert_true(ttmon_plumbing_native(p, "/opt/libpool2.so.1", NULL));
	assert_true(ttmon_plumbing_native(p, "/opt/app", "_ZN4pool3getEm"));
	assert_true(ttmon_plumbing_native(p, "/opt/app", "get_block"));
	assert_false(ttmon_plumbing_native(p, "/opt/app", "get_lock"));
	assert_false(ttmon_plumbing_native(p, "/opt/libtorch_mine.so", NULL));
	assert_true(ttmon_plumbing_native(p, "/opt/libtorch.so", NULL));
	assert_true(ttmon_plumbing_python(p, "/srv/my lib/x"));
	assert_false(ttmon_plumbing_python(p, "/usr/lib/python3.11/threading.py"));
	ttmon_plumbing_free(p);
}

static void bad_patterns(void **state)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{ "object", "line 1" },		 { "object x\nelf y\n", "line 2" }, { "own\n", "line 1" },
		{ "own object\t \n", "line 1" }, { "Object x", "line 1" },
	};
	struct ttmon_plumbing *p = NULL;
	_cleanup_free_ char *many = NULL;
	char why[100];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(ttmon_plumbing_parse(cases[i].text, strlen(cases[i].text), &p, why, sizeof(why)),
				 -EINVAL);
		assert_non_null(strstr(why, cases[i].word));
	}
	assert_int_equal(ttmon_plumbing_parse("object x\0", 9, &p, why, sizeof(why)), -EINVAL);
	many = malloc((TTMON_PLUMBING_MAX + 1) * 9);
	for (size_t i = 0; i <= TTMON_PLUMBING_MAX; i++)
		memcpy(many + 9 * i, "object x\n", 9);
	assert_int_equal(ttmon_plumbing_parse(many, TTMON_PLUMBING_MAX * 9UL + 9, &p, why, sizeof(why)), -E2BIG);
	assert_null(p);
	assert_int_equal(ttmon_plumbing_parse(many, TTMON_PLUMBING_MAX * 9UL, &p, why, sizeof(why)), 0);
	ttmon_plumbing_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(natives),
		cmocka_unit_test(lines),
		cmocka_unit_test(patterns_of_a_user),
		cmocka_unit_test(bad_patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
