// SPDX-License-Identifier: GPL-2.0-only
/* test_fnnames.c: symbol names of the function table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/io/objects/fnnames.h"
#include "daemon/io/objects/objects.h"

/* Every row is found by its own name, with each suffix, in the runtimes it is meant for. */
static void test_names(void **state)
{
	static const char *const suffixes[] = { "", "_ptds", "_ptsz" }, *const versions[] = { "", "_v2", "_v3", "_v4" };
	size_t row;
	uint8_t v;

	(void)state;
	for (size_t i = 0; i < ttmon_nr_fnnames; i++) {
		const struct ttmon_fnname *want = &ttmon_fnnames[i];

		for (size_t k = 0; k < 12; k++) {
			char name[128];
			int len = snprintf(name, sizeof(name), "%s%s%s", want->name, versions[k / 3], suffixes[k % 3]);

			assert_true(ttmon_fnname_parse(name, (size_t)len, &row, &v));
			assert_string_equal(ttmon_fnnames[row].name, want->name);
			assert_int_equal(v, 1 << k / 3);
			assert_true(len < 64); /* candidates and targets hold 63 bytes of it */
			for (int old = 0; old < 2; old++) {
				bool fits = ttmon_fnname_fits(want, old) && (want->versions & v);

				if (fits)
					assert_ptr_equal(ttmon_fnname_resolve(row, v, old), want);
				else
					assert_ptr_not_equal(ttmon_fnname_resolve(row, v, old), want);
			}
		}
	}
	assert_false(ttmon_fnname_parse("cudaMallo", 9, &row, &v));
	assert_false(ttmon_fnname_parse("cudaMalloc_v1", 13, &row, &v));
	assert_false(ttmon_fnname_parse("cudaMalloc_v5", 13, &row, &v));
	assert_false(ttmon_fnname_parse("cudaMalloc_ptsz_v2", 18, &row, &v));
	assert_false(ttmon_fnname_parse("_v2_ptds", 8, &row, &v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
