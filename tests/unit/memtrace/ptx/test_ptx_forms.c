// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_ptx_forms.c: what the rewriter makes of each form of an instruction and of a parameter, and of
 * what it does not understand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/feed/ptx_text.h"

/* One instruction in a kernel; what of the copy's text must be there. */
static void test_forms(void **state)
{
	static const struct {
		const char *body, *wanted[4];
		uint32_t sites;
		uint8_t space, kind, width;
	} forms[] = {
		{ "ld.global.u32 %r1, [%rd1+-4];",
		  { "mov.u64 %__ttmon_a, %rd1;\nadd.s64 %__ttmon_a, %__ttmon_a, -4;" },
		  1,
		  TTMON_MT_GLOBAL,
		  TTMON_MT_LOAD,
		  4 },
		{ "ld.global.u32 %r1, [%rd1-0x10];",
		  { "add.s64 %__ttmon_a, %__ttmon_a, -0x10;" },
		  1,
		  TTMON_MT_GLOBAL,
		  TTMON_MT_LOAD,
		  4 },
		{ "ld.shared.u8 %r1, [ %r2 + 8 ] ;",
		  { "add.s32 %__ttmon_x, %r2, 8;\ncvt.u64.u32 %__ttmon_a, %__ttmon_x;" },
		  1,
		  TTMON_MT_SHARED,
		  TTMON_MT_LOAD,
		  1 },
		{ "ld.shared.u16 %r1, [%x];", { "cvt.u64.u32 %__ttmon_a, %x;" }, 1, TTMON_MT_SHARED, TTMON_MT_LOAD, 2 },
		{ "st.local.v4.f32 [depot+16], {%r1, %r2, _, 0f3F800000};",
		  { "mov.u64 %__ttmon_a, depot;\nadd.s64 %__ttmon_a, %__ttmon_a, 16;" },
		  1,
		  TTMON_MT_LOCAL,
		  TTMON_MT_STORE,
		  16 },
		{ "ld.global.u64 %rd1, [4096];",
		  { "mov.u64 %__ttmon_a, 4096;" },
		  1,
		  TTMON_MT_GLOBAL,
		  TTMON_MT_LOAD,
		  8 },
		{ "ld.global.u64 %rd1, [%rd1];",
		  { "}\nld.global.u64 %rd1, [%rd1];" },
		  1,
		  TTMON_MT_GLOBAL,
		  TTMON_MT_LOAD,
		  8 },
		{ "@%p1 st.global.u32 [%rd1], %r1;",
		  { "selp.b32 %__ttmon_q, 1, 0, %p1;", "}\n@%p1 st" },
		  1,
		  TTMON_MT_GLOBAL,
		  TTMON_MT_STORE,
		  4 },
		{ "L: @ ! %p2 red.global.add.f64 [%rd1], %rd2;",
		  { "L: {\n", "selp.b32 %__ttmon_q, 0, 1, %p2;", "}\n@ ! %p2 red" },
		  1,
		  TTMON_MT_GLOBAL,
		  TTMON_MT_RED,
		  8 },
		{ "ld.volatile.v2.u64 {%rd1, %rd2}, [%rd3];",
		  { "mov.u32 %__ttmon_w, 0x38000000;", "__ttmon$gen" },
		  1,
		  TTMON_MT_GENERIC,
		  TTMON_MT_LOAD,
		  16 },
		{ "ld.relaxed.sys.global.L1::no_allocate.L2::cache_hint.L2::256B.v8.b32 {%r1,%r1,%r1,%r1,%r1,%r1,%r1,"
		  "%r1}, [%rd1], %rd2;",
		  { "0x0;" },
		  1,
		  TTMON_MT_GLOBAL,
		  TTMON_MT_LOAD,
		  32 },
		{ "ld.global.nc.v4.b64 {%rd1, %rd1, %rd1, %rd1}, [%rd1];",
		  { "" },
		  1,
		  TTMON_MT_GLOBAL,
		  TTMON_MT_LOAD,
		  32 },
		{ "ld.acquire.gpu.global.b128 %rd1, [%rd1];", { "" }, 1, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 16 },
		{ "st.mmio.relaxed.sys.global.u32 [%rd1], %r1;", { "" }, 1, TTMON_MT_GLOBAL, TTMON_MT_STORE, 4 },
		{ "ldu.global.f32 %r1, [%rd1];", { "" }, 1, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4 },
		{ "atom.global.cas.b128 %rd1, [%rd1], %rd2, %rd3;", { "" }, 1, TTMON_MT_GLOBAL, TTMON_MT_ATOM, 16 },
		{ "atom.acq_rel.cluster.shared::cluster.add.u32 %r1, [%r2], 1;",
		  { "" },
		  1,
		  TTMON_MT_SHARED,
		  TTMON_MT_ATOM,
		  4 },
		{ "atom.global.v8.bf16.add.noftz {%r1,%r1,%r1,%r1,%r1,%r1,%r1,%r1}, [%rd1], {%r1,%r1,%r1,%r1,%r1,%r1,"
		  "%r1,%r1};",
		  { "" },
		  1,
		  TTMON_MT_GLOBAL,
		  TTMON_MT_ATOM,
		  16 },
		{ "red.relaxed.gpu.global.add.noftz.f16x2 [%rd1], %r1;", { "" }, 1, TTMON_MT_GLOBAL, TTMON_MT_RED, 4 },
		{ "prefetch.global.L2::evict_last [%rd1];", { "" }, 1, TTMON_MT_GLOBAL, TTMON_MT_PREFETCH, 1 },
		{ "prefetchu.L1 [%rd1];", { "gen" }, 1, TTMON_MT_GENERIC, TTMON_MT_PREFETCH, 1 },
		{ "cp.async.cg.shared::cta.global.L2::128B [%r1], [%rd1+8], 16;",
		  { "cvt.u64.u32 %__ttmon_a, %r1;", "mov.u64 %__ttmon_a, %rd1;\nadd.s64 %__ttmon_a, %__ttmon_a, 8;" },
		  2,
		  TTMON_MT_SHARED,
		  TTMON_MT_COPY_DST,
		  16 },
		{ "cp.async.ca.shared.global [%r1], [%rd1], 8, %r2;",
		  { "mov.u32 %__ttmon_x, %r2;\nsetp.ne.u32 %__ttmon_p, %__ttmon_x, 0;" },
		  2,
		  TTMON_MT_SHARED,
		  TTMON_MT_COPY_DST,
		  8 },
		{ "cp.async.ca.shared.global.L2::cache_hint [%r1], [%rd1], 4, %rd2;",
		  { "mov.u32 %__ttmon_q, 1;\nmov.u32 %__ttmon_w, 0x1;" },
		  2,
		  TTMON_MT_SHARED,
		  TTMON_MT_COPY_DST,
		  4 },
		{ "@%p1 cp.async.ca.shared.global [%r1], [%rd1], 4, %p2, %rd2;",
		  { "selp.b32 %__ttmon_q, 1, 0, %p1;\nselp.b32 %__ttmon_q, 0, %__ttmon_q, %p2;" },
		  2,
		  TTMON_MT_SHARED,
		  TTMON_MT_COPY_DST,
		  4 },
		{ "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r1, %r2}, [%r3];",
		  { "setp.lt.u32 %__ttmon_p, %__ttmon_x, 16;" },
		  1,
		  TTMON_MT_SHARED,
		  TTMON_MT_LDMATRIX,
		  16 },
		{ "ldmatrix.sync.aligned.m8n8.x4.b16 {%r1, %r1, %r1, %r1}, [%rd3];",
		  { "gen" },
		  1,
		  TTMON_MT_GENERIC,
		  TTMON_MT_LDMATRIX,
		  16 },
		{ "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r1}, [%r3];",
		  { "%__ttmon_x, 16;" },
		  1,
		  TTMON_MT_SHARED,
		  TTMON_MT_LDMATRIX,
		  16 },
		{ "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r1};",
		  { "%__ttmon_x, 8;" },
		  1,
		  TTMON_MT_SHARED,
		  TTMON_MT_STMATRIX,
		  16 },
		/* The inner scope's %r1 is another; a comment is none; two in a line. */
		{ "{ .reg .b64 %x; ld.volatile.u32 %r1, [%x]; }\n# 1 \"a.cu\" ; ( }\nld.volatile.u32 %r1, [%x+4];",
		  { "mov.u64 %__ttmon_a, %x;", "add.s32 %__ttmon_x, %x, 4;" },
		  2,
		  TTMON_MT_GENERIC,
		  TTMON_MT_LOAD,
		  4 },
		{ "{ .reg .b64 %r1; ld.u32 %x, [%r1]; } /* ld.u32 %x, [%q]; { */ // }",
		  { "mov.u64 %__ttmon_a, %r1;" },
		  1,
		  TTMON_MT_GENERIC,
		  TTMON_MT_LOAD,
		  4 },
		{ "ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4];",
		  { "add.s64 %__ttmon_a, %__ttmon_a, 4;" },
		  2,
		  TTMON_MT_GLOBAL,
		  TTMON_MT_LOAD,
		  4 },
		{ ".pragma \"a ; } {\"; ld.global.u32 %r1, [%rd1];", { "" }, 1, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4 },
		{ ".loc 1 7 3 ld.global.u32 %r1, [%rd1];", { "" }, 1, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4 },
		{ "P: .callprototype (.param .b32 _) _ (.param .b64 _);\nld.global.u32 %r1, [%rd1];",
		  { "" },
		  1,
		  TTMON_MT_GLOBAL,
		  TTMON_MT_LOAD,
		  4 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		char text[2000];
		struct ttmon_ptx_result r;

		snprintf(text, sizeof(text), "%s%s%s", BEGIN, forms[i].body, END);
		rewrite(text, &everything, &r);
		if (r.nr_sites != forms[i].sites)
			fail_msg("%s: %zu sites, %s", forms[i].body, r.nr_sites, r.kernels[0].why);
		if (r.sites[0].space != forms[i].space || r.sites[0].kind != forms[i].kind ||
		    r.sites[0].width != forms[i].width)
			fail_msg("%s: %u %u %u", forms[i].body, r.sites[0].space, r.sites[0].kind, r.sites[0].width);
		for (size_t k = 0; k < ARRAY_SIZE(forms[i].wanted) && forms[i].wanted[k]; k++) {
			if (!strstr(r.text, forms[i].wanted[k]))
				fail_msg("no %s in %s", forms[i].wanted[k], strstr(r.text, "__ttmon_k("));
		}
		ttmon_ptx_fini(&r);
	}
}

static void test_opcodes(void **state)
{
	static const char *const none[] = { "ld.param.u32",
					    "ld.const.v2.u32",
					    "st.param::func.b32",
					    "mov.u32",
					    "cvta.to.global.u64",
					    "cp.async.wait_all",
					    "cp.async.commit_group",
					    "cp.async.bulk.wait_group.read",
					    "prefetch.tensormap",
					    "ldst.u32",
					    "",
					    "ld",
					    "bar.sync",
					    "redux.sync.add.s32" };
	static const char *const out[] = { "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
					   "cp.async.bulk.tensor.2d.shared::cta.global.tile",
					   "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64",
					   "multimem.ld_reduce.global.add.f32",
					   "st.async.weak.shared::cluster.b32",
					   "red.async.relaxed.cluster.add.u32",
					   "tex.2d.v4.f32.s32",
					   "suld.b.1d.b32.trap",
					   "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
					   "tcgen05.ld.sync.aligned.32x32b.x1.b32",
					   "mbarrier.init.shared.b64",
					   "wmma.load.a.sync.aligned.row.m16n16k16.f16",
					   "ld.global" };
	struct ttmon_mt_site s = { 0 };
	bool left_out;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		assert_false(ttmon_ptx_op(none[i], strlen(none[i]), 0, &s, &left_out));
		assert_false(left_out);
	}
	for (size_t i = 0; i < ARRAY_SIZE(out); i++) {
		assert_false(ttmon_ptx_op(out[i], strlen(out[i]), 0, &s, &left_out));
		assert_true(left_out);
	}
	assert_true(ttmon_ptx_op("cp.async.cg.shared.global", 25, 1, &s, &left_out));
	assert_int_equal(s.kind, TTMON_MT_COPY_SRC);
	assert_int_equal(s.space, TTMON_MT_GLOBAL);
	assert_int_equal(s.width, 16);
	assert_false(ttmon_ptx_op("cp.async.cg.shared.global", 25, 2, &s, &left_out));
	assert_false(ttmon_ptx_op("ld.global.u32", 13, 1, &s, &left_out));
}

static void test_params(void **state)
{
	static const struct {
		const char *list;
		uint32_t params, bytes;
	} lists[] = {
		{ "", 0, 0 },
		{ "()", 0, 0 },
		{ "(.param .u8 a)", 1, 1 },
		{ "(.param .u8 a, .param .f64 b, .param .u16 c)", 3, 18 },
		{ "(.param .align 16 .b8 a[20], .param .b32 b)", 2, 24 },
		{ "(.param .b32 a, .param .align 1 .b8 b[3], .param .u64 c)", 3, 16 },
		{ "(.param .u32 a, .param .u64 .ptr .global .align 256 b)", 2, 16 },
		{ "(.param .u32 a, .param .align 64 .b8 b[64])", 2, 128 },
		{ "(.param .b8 a[2][3], .param .b128 b)", 2, 32 },
		{ "(.param .texref t, .param .samplerref s)", 2, 16 },
		{ "(.param .align 8 .b8 a[4080])", 1, 4080 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		struct ttmon_ptx_result r;
		char text[400], wanted[200];

		snprintf(text, sizeof(text),
			 HEAD ".global .u32 g;\n.entry k%s { .reg .b32 %%a; st.global.u32 [g], %%a; }", lists[i].list);
		rewrite(text, &everything, &r);
		assert_string_equal(r.kernels[0].why, "");
		assert_int_equal(r.kernels[0].params, lists[i].params);
		assert_int_equal(r.kernels[0].param_bytes, lists[i].bytes);
		snprintf(wanted, sizeof(wanted),
			 ".visible .entry __ttmon_k%.*s%s.param .u64 __ttmon_ctl, .param .u64 __ttmon_launch)",
			 lists[i].list[0] ? (int)strlen(lists[i].list) - 1 : 0, lists[i].list,
			 !lists[i].list[0] ? "("
			 : lists[i].params ? ", "
					   : "");
		assert_non_null(strstr(r.text, wanted));
		ttmon_ptx_fini(&r);
	}
}

/* What is not understood leaves its kernel out, and no other. */
static void test_left_out(void **state)
{
	static const struct {
		const char *kernel, *why;
	} kernels[] = {
		{ "() { ld.global.u32 %r1, [%nobody]; }", "line 5: operands of a form that is not known" },
		{ "() { .reg .b32 %a; ld.global.u32 %r1, [%a+%a]; }", "operands" },
		{ "() { .reg .b16 %a; ld.global.u32 %r1, [%a]; }", "operands" },
		{ "() { ld.global.u32 %r1; }", "operands" },
		{ "() { @%p ld.global.u32 %r1, [g]; }", "predicate" },
		{ "() { ld.global.u32 %r1, [g] }", "no instruction as PTX has them" },
		{ "() { cp.async.ca.shared.global [s], [g], 5; }", "operands" },
		{ "() { .global .u32 mine; st.global.u32 [mine], 1; }", "a global variable of its own" },
		{ "() { call (; }", "call" },
		{ "(.param .align 8 .b8 a[4088]) { st.global.u32 [g], 1; }", "no room for two parameters more" },
		{ "(.param .align 3 .b8 a[4]) { st.global.u32 [g], 1; }", "aligned" },
		{ "(.param .odd a) { st.global.u32 [g], 1; }", "type" },
		{ "() { ret; }", "nothing in it to record" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
		struct ttmon_ptx_result r;
		char text[600];

		snprintf(text, sizeof(text),
			 HEAD ".global .u32 g;\n.entry k%s\n.entry good() { st.global.u32 [g], 1; }\n",
			 kernels[i].kernel);
		rewrite(text, &everything, &r);
		assert_int_equal(r.nr_kernels, 2);
		if (!strstr(r.kernels[0].why, kernels[i].why))
			fail_msg("%s: %s", kernels[i].kernel, r.kernels[0].why);
		assert_null(strstr(r.text, "__ttmon_k("));
		assert_non_null(strstr(r.text, "__ttmon_good("));
		assert_int_equal(r.nr_sites, 1);
		ttmon_ptx_fini(&r);
	}
}

/* Of several in a link one counts: so with their copies. */
static void test_weak(void **state)
{
	struct ttmon_ptx_result r;

	(void)state;
	rewrite(HEAD
		".weak .func f() { ret; }\n.weak .entry a(.param .u64 p) { .reg .b32 %x; ld.global.u32 %x, [64]; call "
		"f; ret; }\n"
		".entry b(.param .u64 p) { .reg .b32 %x; ld.global.u32 %x, [64]; ret; }\n",
		&everything, &r);
	assert_non_null(strstr(r.text, ".weak .entry __ttmon_a("));
	assert_non_null(strstr(r.text, ".visible .entry __ttmon_b("));
	ttmon_ptx_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),	 cmocka_unit_test(test_opcodes), cmocka_unit_test(test_params),
		cmocka_unit_test(test_left_out), cmocka_unit_test(test_weak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
