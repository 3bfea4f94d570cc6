// SPDX-License-Identifier: GPL-2.0-only
/* test_fnnames.c: symbol names of the function table, and which first instructions are cheap to probe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <elf.h>

#include "io/fnnames.h"
#include "io/objects.h"

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

static void test_emulated(void **state)
{
	static const struct {
		const char *insn;
		size_t n;
		bool emulated;
	} cases[] = {
		/* as timed on 6.18 */
		{ "\x55", 1, true },
		{ "\x57", 1, true },
		{ "\x41\x54", 2, true },
		{ "\x90", 1, true },
		{ "\x66\x90", 2, true },
		{ "\xf3\x90", 2, true },
		{ "\x0f\x1f\x00", 3, true },
		{ "\x0f\x1f\x44\0\0", 5, true },
		{ "\x66\x0f\x1f\x44\0\0", 6, true },
		{ "\xeb\x00", 2, true },
		{ "\xe9\0\0\0\0", 5, true },
		{ "\xe8\0\0\0\0", 5, true },
		{ "\x74\x00", 2, true },
		{ "\x0f\x84\0\0\0\0", 6, true },
		{ "\xf3\x0f\x1e\xfa", 4, false },
		{ "\x48\x83\xec\x08", 4, false },
		{ "\xc3", 1, false },
		{ "\x5d", 1, false },
		{ "\x48\x89\xe0", 3, false },
		{ "\x31\xc0", 2, false },
		{ "\x40\x55", 2, false },
		{ "\x66\x0f\x1f\x84\0\0\0\0\0", 9, false },
		{ "\x41", 1, false },
		{ "", 0, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (ttmon_probe_is_emulated((const uint8_t *)cases[i].insn, cases[i].n, EM_X86_64) != cases[i].emulated)
			fail_msg("case %zu", i);
	}
	assert_true(ttmon_probe_is_emulated((const uint8_t *)"\xc3", 1, EM_AARCH64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_emulated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
