// SPDX-License-Identifier: GPL-2.0-only
/* test_mt_opcode.c: what SASS opcodes do, with those that look like something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memtrace/model/mt.h"
#include "lib/base/util.h"

static void test_opcodes(void **state)
{
	static const struct {
		const char *op;
		unsigned int operand, space, kind, width;
	} rows[] = {
		{ "LDG.E.SYS", 0, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4 },
		{ "LDG.E.64.CONSTANT", 0, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 8 },
		{ "LDG.E.U8", 0, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 1 },
		{ "LDG.E.S8.SYS", 0, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 1 },
		{ "LDG.E.S16", 0, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 2 },
		{ "LDG.E.LTC128B.64", 0, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 8 },
		{ "LDG.E.64.LTC128B", 0, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 8 },
		{ "LDG.E.LTC256B", 0, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4 },
		{ "LDG.E.ENL2.256", 0, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 32 },
		{ "STG.E.128", 0, TTMON_MT_GLOBAL, TTMON_MT_STORE, 16 },
		{ "LD.E.128.STRONG.SM", 0, TTMON_MT_GENERIC, TTMON_MT_LOAD, 16 },
		{ "ST.E.U8", 0, TTMON_MT_GENERIC, TTMON_MT_STORE, 1 },
		{ "LDS.U.128", 0, TTMON_MT_SHARED, TTMON_MT_LOAD, 16 },
		{ "STS", 0, TTMON_MT_SHARED, TTMON_MT_STORE, 4 },
		{ "LDL.LU", 0, TTMON_MT_LOCAL, TTMON_MT_LOAD, 4 },
		{ "STL.64", 0, TTMON_MT_LOCAL, TTMON_MT_STORE, 8 },
		{ "ATOM.E.CAS.64.STRONG.GPU", 0, TTMON_MT_GENERIC, TTMON_MT_ATOM, 8 },
		{ "ATOMG.E.ADD.F16x2.RN.STRONG.GPU", 0, TTMON_MT_GLOBAL, TTMON_MT_ATOM, 4 },
		{ "ATOMG.E.ADD.F64.RN.STRONG.GPU", 0, TTMON_MT_GLOBAL, TTMON_MT_ATOM, 8 },
		{ "ATOMS.CAST.SPIN.64", 0, TTMON_MT_SHARED, TTMON_MT_ATOM, 8 },
		{ "RED.E.ADD.STRONG.GPU", 0, TTMON_MT_GENERIC, TTMON_MT_RED, 4 },
		{ "REDG.E.MIN.S64", 0, TTMON_MT_GLOBAL, TTMON_MT_RED, 8 },
		{ "LDSM.16.M88.4", 0, TTMON_MT_SHARED, TTMON_MT_LDMATRIX, 16 },
		{ "STSM.16.MT88.2", 0, TTMON_MT_SHARED, TTMON_MT_STMATRIX, 16 },
		{ "LDGSTS.E.BYPASS.LTC128B.128", 0, TTMON_MT_SHARED, TTMON_MT_COPY_DST, 16 },
		{ "LDGSTS.E.BYPASS.LTC128B.128", 1, TTMON_MT_GLOBAL, TTMON_MT_COPY_SRC, 16 },
		{ "LDGSTS.E", 1, TTMON_MT_GLOBAL, TTMON_MT_COPY_SRC, 4 },
		{ "CCTL.E.PF2", 0, TTMON_MT_GLOBAL, TTMON_MT_PREFETCH, 4 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ttmon_mt_site s = { .flags = TTMON_MT_SITE_GUESSED };

		if (!ttmon_mt_sass(rows[i].op, strlen(rows[i].op), rows[i].operand, &s) || s.space != rows[i].space ||
		    s.kind != rows[i].kind || s.width != rows[i].width || s.flags)
			fail_msg("%s: %s %s of %u bytes, flags %u", rows[i].op, ttmon_mt_space_name(s.space),
				 ttmon_mt_kind_name(s.kind), s.width, s.flags);
	}
}

static void test_no_memory(void **state)
{
	static const char *const ops[] = { "CCTL.IVALL", "CCTL.E.C.LDCU.IV.DEEP", "MEMBAR.SC.GPU", "UTMALDG.2D",
					   "UBLKCP.S.G" };
	struct ttmon_mt_site s = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		assert_false(ttmon_mt_sass(ops[i], strlen(ops[i]), 0, &s));
		assert_int_equal(s.flags, 0);
	}
}

/*
 * Unknown opcodes are taken to access memory, since they were recorded; their width still comes from
 * the name.
 */
static void test_unknown(void **state)
{
	static const char *const ops[] = { "opcode 3", "LDGX.E", "", ".", "64", "LDG", "XLD.F16.E" };
	static const unsigned int width[] = { 4, 4, 4, 4, 4, 4, 2 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		struct ttmon_mt_site s = { 0 };

		assert_true(ttmon_mt_sass(ops[i], strlen(ops[i]), 0, &s));
		assert_int_equal(s.flags, i == 5 ? 0 : TTMON_MT_SITE_GUESSED);
		assert_int_equal(s.width, width[i]);
		assert_int_equal(s.kind, TTMON_MT_LOAD);
	}
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(ttmon_mt_space_name(TTMON_MT_SHARED), "shared");
	assert_string_equal(ttmon_mt_kind_name(TTMON_MT_COPY_DST), "copy to");
	assert_string_equal(ttmon_mt_kind_name(TTMON_MT_PREFETCH), "prefetch");
	assert_string_equal(ttmon_mt_space_name(TTMON_MT_SPACE_MAX), "?");
	assert_string_equal(ttmon_mt_kind_name(TTMON_MT_KIND_MAX), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_opcodes), cmocka_unit_test(test_no_memory),
					    cmocka_unit_test(test_unknown), cmocka_unit_test(test_names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
