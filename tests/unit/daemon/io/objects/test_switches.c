// SPDX-License-Identifier: GPL-2.0-only
/* test_switches.c: which names say that a file switches stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/io/objects/switches.h"

#define SAYS(text) ttmon_switches_strings(text, sizeof(text))

static void test_names(void **state)
{
	(void)state;
	assert_true(SAYS("\0malloc\0swapcontext\0free"));
	assert_true(SAYS("\0swapcontext@GLIBC_2.2.5\0"));
	assert_true(SAYS("swapcontext"));
	assert_true(SAYS("\0jump_fcontext"));
	assert_true(SAYS("\0bthread_jump_fcontext\0x"));
	/* OpenSSL's, which hardly anybody uses; others' names; parts of names. */
	assert_false(SAYS("\0makecontext\0getcontext\0setcontext\0"));
	assert_false(SAYS("\0my_swapcontext\0swapcontexts\0swapcontext_t\0"));
	assert_false(SAYS("\0semanage_fcontext_query\0jump_fcontext_t\0"));
	assert_false(SAYS(""));
	/* A name that is cut is seen whole in the next piece. */
	assert_false(ttmon_switches_strings("\0swapcontext", sizeof("\0swapcontext") - 1));
	assert_false(ttmon_switches_strings("", 0));
}

static void test_files(void **state)
{
	(void)state;
	assert_true(ttmon_switches_file("_greenlet.cpython-311-x86_64-linux-gnu.so"));
	assert_true(ttmon_switches_file("libboost_context.so.1.74.0"));
	assert_true(ttmon_switches_file("libjulia-internal.so.1"));
	assert_false(ttmon_switches_file("libcrypto.so.3"));
	assert_false(ttmon_switches_file("libtorch_cuda.so"));
	assert_false(ttmon_switches_file("my_greenlet.so"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests_name("switches", tests, NULL, NULL);
}
