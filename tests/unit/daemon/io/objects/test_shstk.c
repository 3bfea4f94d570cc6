// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_shstk.c: io/objects/shstk.c: which programs and kernels a warning is about. The texts have
 * the form of arch/x86/kernel/cpu/proc.c, since no test machine has shadow stacks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/io/objects/shstk.h"

#define HEAD "Name:\tpython3\nUmask:\t0022\nState:\tS (sleeping)\n"
#define TAIL "Cpus_allowed:\t3\n"

static void test_programs(void **state)
{
	static const struct {
		const char *status;
		bool on;
	} cases[] = {
		{ HEAD "x86_Thread_features:\tshstk \nx86_Thread_features_locked:\t\n" TAIL, true },
		{ HEAD "x86_Thread_features:\tshstk wrss \nx86_Thread_features_locked:\tshstk wrss \n" TAIL, true },
		{ HEAD "x86_Thread_features:\t\nx86_Thread_features_locked:\t\n" TAIL, false },
		/* Switched off, for good. */
		{ HEAD "x86_Thread_features:\t\nx86_Thread_features_locked:\tshstk wrss \n" TAIL, false },
		{ HEAD "x86_Thread_features:\twrss \n" TAIL, false },
		/* A kernel without them, another processor. */
		{ HEAD TAIL, false },
		{ "Name:\tx86_Thread_features:\\tshstk\n" TAIL, false },
		/* Cut off. */
		{ HEAD "x86_Thread_features:\tshstk", true },
		{ HEAD "x86_Thread_features:\t", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (ttmon_shstk_is_on(cases[i].status) != cases[i].on)
			fail_msg("case %zu", i);
}

static bool of_6_5(const char *function)
{
	(void)function;
	return false;
}

static bool of_6_6(const char *function)
{
	return !strcmp(function, "shstk_setup");
}

static bool of_6_11(const char *function)
{
	return !strcmp(function, "shstk_setup") || !strcmp(function, "shstk_update_last_frame");
}

static void test_kernels(void **state)
{
	(void)state;
	assert_false(ttmon_shstk_breaks(of_6_5));
	assert_true(ttmon_shstk_breaks(of_6_6));
	assert_false(ttmon_shstk_breaks(of_6_11));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_programs), cmocka_unit_test(test_kernels) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
