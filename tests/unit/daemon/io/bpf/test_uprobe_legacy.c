// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_uprobe_legacy.c: which offsets go into which event, and whose an event is. What needs a kernel
 * is in tests/vm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/io/bpf/uprobe_legacy.c"

static void test_group(void **state)
{
	static const uint64_t offsets[] = { 0x4250, 0x4260, 0x5250, 0x104250, 0x4270, 0x5260 };
	static const uint32_t wanted[] = { 0, 0, 1, 2, 0, 1 };
	uint32_t group[ARRAY_SIZE(offsets)];

	(void)state;
	assert_int_equal(ttmon_uprobe_legacy_group(offsets, ARRAY_SIZE(offsets), 4096, group), 3);
	assert_memory_equal(group, wanted, sizeof(wanted));
	/* Larger pages leave more bits to tell them apart. */
	assert_int_equal(ttmon_uprobe_legacy_group(offsets, ARRAY_SIZE(offsets), 65536, group), 2);
	assert_int_equal(group[2], 0);
	assert_int_equal(group[3], 1);
	assert_int_equal(ttmon_uprobe_legacy_group(offsets, 0, 4096, group), 0);
}

/* In no group do two offsets agree in their lower bits, however many there are. */
static void test_group_many(void **state)
{
	static uint64_t offsets[1000];
	static uint32_t group[ARRAY_SIZE(offsets)];
	static bool taken[ARRAY_SIZE(offsets)][4096];
	uint64_t x = 1;
	uint32_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		offsets[i] = (x >> 40) & ~15ULL;
	}
	n = ttmon_uprobe_legacy_group(offsets, ARRAY_SIZE(offsets), 4096, group);
	assert_in_range(n, 4, 30);
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		bool *t = &taken[group[i]][offsets[i] & 4095];

		assert_true(group[i] < n);
		assert_false(*t);
		*t = true;
	}
}

static void test_parse(void **state)
{
	static const char *const others[] = {
		"",
		"p",
		"p:",
		"p:ttmond",
		"p:ttmond/",
		"p:ttmond/t1_2",
		"p:ttmond/t1_2_",
		"p:ttmond/t1_2_3",
		"p:ttmond/t1_2_3x /bin/sh:0x10\n",
		"p:ttmond/x1_2_3 /bin/sh:0x10\n",
		"p:ttmondx/t1_2_3 /bin/sh:0x10\n",
		"p:probes/t1_2_3 /bin/sh:0x10\n",
		"-:ttmond/t1_2_3 /bin/sh:0x10\n",
		"p:ttmond/t_2_3 /bin/sh:0x10\n",
	};
	char name[64];
	uint64_t start = 0;
	uint32_t pid = 0;

	(void)state;
	assert_true(ttmon_uprobe_legacy_parse("p:ttmond/t12_3456_7 /proc/self/fd/9:0x0000000000004250\n", name,
					      sizeof(name), &pid, &start));
	assert_string_equal(name, "t12_3456_7");
	assert_int_equal(pid, 12);
	assert_int_equal(start, 3456);
	assert_true(ttmon_uprobe_legacy_parse("r:ttmond/t4294967295_18446744073709551615_4294967295 /x:0x1\n", name,
					      sizeof(name), &pid, &start));
	assert_int_equal(pid, UINT32_MAX);
	assert_true(start == UINT64_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(ttmon_uprobe_legacy_parse(others[i], name, sizeof(name), &pid, &start));
	/* A name that does not fit is not ours. */
	assert_false(ttmon_uprobe_legacy_parse("p:ttmond/t12_3456_7 /x:0x1\n", name, 10, &pid, &start));
	assert_true(ttmon_uprobe_legacy_parse("p:ttmond/t12_3456_7 /x:0x1\n", name, 11, &pid, &start));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_group_many),
		cmocka_unit_test(test_parse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
