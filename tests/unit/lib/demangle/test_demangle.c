// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_demangle.c: symbols of libtorch, CUDA and Rust as people read them, and call sites at every
 * width.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/fmt.h"
#include "lib/demangle/demangle.h"
#include "lib/demangle/runsite.h"
#include "lib/demangle/site.h"

/*
 * Held against c++filt -p when they were written down: it has the arguments, the namespaces
 * without a name and the suffixes as well.
 */
static const struct {
	const char *symbol, *shown;
} rows[] = {
	/* libtorch, as the nm of its releases and public traces have them */
	{ "_ZN2at6nativeL16copy_kernel_cudaERNS_14TensorIteratorEb", "at::native::copy_kernel_cuda" },
	{ "_ZN2at6nativeL9copy_implERNS_6TensorERKS1_b.isra.0", "at::native::copy_impl" },
	{ "_ZN2at6native5copy_ERNS_6TensorERKS1_b", "at::native::copy_" },
	{ "_ZNKR2at6Tensor17expect_contiguousEN3c1012MemoryFormatE", "at::Tensor::expect_contiguous" },
	{ "_ZN2at6native12_GLOBAL__N_124padding_memory_format_3dERKNS_6TensorE",
	  "at::native::padding_memory_format_3d" },
	{ "_ZN2at6native12_GLOBAL__N_128vectorized_layer_norm_kernelIN3c108BFloat16EfLb1EEEviT0_PKT_S8_S8_PS5_S9_PS6_",
	  "at::native::vectorized_layer_norm_kernel<...>" },
	{ "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_",
	  "at::native::vectorized_elementwise_kernel<...>" },
	{ "_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_49_GLOBAL__N__d2ba64fb_16_TensorCo"
	  "mpare_cu_71e06f4e19launch_"
	  "clamp_scalarERNS_18TensorIteratorBaseEN3c106ScalarES6_NS0_6detail11ClampLimitsEENKUlvE_clE"
	  "vENKUlvE5_clEvEUlfE_St5arr"
	  "ayIPcLm2EEEEviT0_T1_",
	  "at::native::vectorized_elementwise_kernel<...>" },
	{ "_ZZZN2at6native23direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE0_clEvENKUlvE9_clEv",
	  "at::native::direct_copy_kernel_cuda::{lambda#2}::operator()::{lambda#11}::operator()" },
	{ "_ZN7cutlass7Kernel2I50cutlass_80_tensorop_s1688gemm_64x64_16x6_tn_align4EEvNT_6ParamsE",
	  "cutlass::Kernel2<...>" },
	{ "_Z17gemv2T_kernel_valIiiffffLi128ELi16ELi4ELi4ELb0ELb1E18cublasGemvParams"
	  "ExIi30cublasGemvTensorStridedBatchedIKfES3_S1_"
	  "IfEfEEvT11_T4_S7_",
	  "gemv2T_kernel_val<...>" },
	{ "_ZNSt17_Function_handlerIFvvEZN2at6native9copy_implERNS1_6TensorERKS3_bEUlvE_E9_M_invokeERKSt9_Any_data",
	  "std::_Function_handler<...>::_M_invoke" },
	{ "_Z4vaddPKfS0_Pfi", "vadd" },
	/* operators, whose signs are no brackets */
	{ "_ZN3c10lsERSoNS_10DeviceTypeE", "c10::operator<<" },
	{ "_ZN3foolsIiEERS_T_", "foo::operator<< <...>" },
	{ "_ZN1AltERKS_", "A::operator<" },
	{ "_ZN2at6withopIXadL_ZNKS_1QltERKS1_EEEEvv", "at::withop<...>" },
	{ "_ZN2at1QptEv", "at::Q::operator->" },
	{ "_ZN1AclEv", "A::operator()" },
	{ "_ZN2at1QixB5cxx11Ei", "at::Q::operator[]" },
	{ "_ZNK3c1010TensorImplcvbEv", "c10::TensorImpl::operator bool" },
	/* '>' as a sign in an argument */
	{ "_ZN1xIXgtLi3ELi2EEE3fooEv", "x<...>::foo" },
	/* suffixes, and what is no function */
	{ "_ZN2at6Tensor3fooEv.part.0.cold", "at::Tensor::foo" },
	{ "_ZN2at6Tensor3fooB5cxx11Ev", "at::Tensor::foo" },
	{ "_ZThn16_N2at6Tensor3fooEv", "non-virtual thunk to at::Tensor::foo" },
	{ "_ZGVZ3foovE1x", "guard variable for foo::x" },
	{ "_ZTVN2at6TensorE", "vtable for at::Tensor" },
	/* Rust, both manglings */
	{ "_ZN5tokio7runtime4task3raw4poll17h9a4f1e0d3c2b1a09E", "tokio::runtime::task::raw::poll" },
	{ "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
	{ "_RNvXCs1234_7mycrateNtB2_3FooNtB2_3Bar3baz", "<mycrate::Foo as mycrate::Bar>::baz" },
	{ "_RINvNtCs1234_7mycrate3mod3foolE", "mycrate::mod::foo<...>" },
	/* what stays as it is */
	{ "main", "main" },
	{ "load.isra.0", "load.isra.0" },
	{ "i", "i" },
	{ "", "" },
	{ "_Z", "_Z" },
	{ "_ZN2at6native", "_ZN2at6native" },
	{ "_GLOBAL__sub_I_foo.cpp", "_GLOBAL__sub_I_foo.cpp" },
	{ "at::native::copy_(at::Tensor&)", "at::native::copy_(at::Tensor&)" },
	/* what a terminal would obey */
	{ "red\033[31m", "red?[31m" },
	{ "_Z3fo\033v", "fo?" },
};

static void names_are_short(void **state)
{
	char buf[TTMON_DEMANGLE_WHOLE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(ttmon_demangle(buf, sizeof(buf), rows[i].symbol), rows[i].shown);
	assert_string_equal(ttmon_demangle(buf, 8, "_Z4vaddPKfS0_Pfi"), "vadd");
	assert_string_equal(ttmon_demangle(buf, 4, "_Z4vaddPKfS0_Pfi"), "vad");
	assert_string_equal(ttmon_demangle(buf, 1, "_Z4vaddPKfS0_Pfi"), "");
}

/* f(P<P<..>, P<..>>) by references to what was said before: twice as long with each of the n. */
static const char *doubling(char *buf, unsigned int n)
{
	char *p = buf + sprintf(buf, "_ZN1fI1AIiiE");

	/* S1_ is A<int, int>; each that follows is A of the one before, twice. */
	for (unsigned int i = 1; i <= n; i++) {
		char seq[4] = "";

		if (i == 1)
			strcpy(seq, "1");
		else
			snprintf(seq, sizeof(seq), "%c", i < 10 ? '0' + (int)i : 'A' + (int)i - 10);
		p += sprintf(p, "S0_IS%s_S%s_E", seq, seq);
	}
	sprintf(p, "E1gEv");
	return buf;
}

/* A symbol can be short and its name longer than any memory; recursion ends as well. */
static void hostile_symbols_stay_as_they_are(void **state)
{
	char symbol[4096], buf[8192];

	(void)state;
	assert_string_equal(ttmon_demangle(buf, sizeof(buf), doubling(symbol, 3)), "f<...>::g");
	assert_string_equal(ttmon_demangle(buf, sizeof(buf), doubling(symbol, 8)), "f<...>::g");
	assert_string_equal(ttmon_demangle(buf, sizeof(buf), doubling(symbol, 30)), symbol);
	/* Pointers to pointers: deeper than libiberty goes. */
	memset(symbol, 'P', sizeof(symbol));
	memcpy(symbol, "_Z1f", 4);
	strcpy(symbol + 3000, "i");
	assert_string_equal(ttmon_demangle(buf, sizeof(buf), symbol), symbol);
	/* At the limit of length, and one past it. */
	for (size_t n = TTMON_DEMANGLE_SYMBOL; n <= TTMON_DEMANGLE_SYMBOL + 1; n++) {
		int head = sprintf(symbol, "_Z%zu", n - 7);

		memset(symbol + head, 'a', n - (size_t)head);
		symbol[n - 1] = 'v';
		symbol[n] = '\0';
		ttmon_demangle(buf, sizeof(buf), symbol);
		if (n > TTMON_DEMANGLE_SYMBOL)
			assert_string_equal(buf, symbol);
		else
			assert_int_equal(strspn(buf, "a"), n - 7);
	}
}

#define TORCH                                                                                                          \
	"_ZN2at6nativeL16copy_kernel_cudaERNS_14TensorIteratorEb+0x50b < _ZN2at6nativeL9copy_implERNS_6TensorERKS1_b." \
	"isra.0 < _ZN2at6native5copy_ERNS_6TensorERKS1_b"

static void check_site(const char *site, size_t columns, const char *shown)
{
	char buf[TTMON_SITE_WHOLE];

	assert_string_equal(ttmon_site_show_text(buf, sizeof(buf), site, columns), shown);
}

static void call_sites_are_cut_by_whole_frames(void **state)
{
	static const char all[] = "at::native::copy_kernel_cuda+0x50b < at::native::copy_impl < at::native::copy_";
	char buf[64];

	(void)state;
	check_site(TORCH, 0, all);
	check_site(TORCH, strlen(all), all);
	/* What is nearest to the program stays, the middle goes. */
	check_site(TORCH, strlen(all) - 1, "at::native::copy_kernel_cuda+0x50b < ... < at::native::copy_");
	check_site(TORCH, 60, "at::native::copy_kernel_cuda+0x50b < ... < at::native::copy_");
	check_site(TORCH, 59, "at::native::copy_kernel_cuda+0x50b < ... < native::copy_");
	check_site(TORCH, 40, "copy_kernel_cuda+0x50b < ... < copy_");
	check_site(TORCH, 30, "native::copy_kernel_cuda+0x50b");
	check_site(TORCH, 22, "copy_kernel_cuda+0x50b");
	check_site(TORCH, 12, "copy_kern...");
	check_site(TORCH, 3, "cop");
	assert_string_equal(ttmon_site_show_text(buf, 41, TORCH, 0), "copy_kernel_cuda+0x50b < ... < copy_");
	assert_string_equal(ttmon_site_show_text(buf, 1, TORCH, 0), "");
	check_site("main", 0, "main");
	check_site("", 10, "");
	check_site("?", 10, "?");
	check_site("train+0x2a41", 0, "train+0x2a41");
	check_site("a\033[31m+0x1 < b", 0, "a?[31m+0x1 < b");
	/* A '+' of its own. */
	check_site("_ZN1AplERKS_+0x7 < operator+", 0, "A::operator++0x7 < operator+");
}

static void the_frame_next_to_the_program_stays(void **state)
{
	(void)state;
	/* Start-up code belongs to no program. */
	check_site("load+0x1 < main < __libc_start_call_main < __libc_start_main@@GLIBC_2.34 < _start", 0,
		   "load+0x1 < main");
	check_site("load+0x1 < worker < libstdc++.so.6+0xd44a3 < libc.so.6+0x89144 < libc.so.6+0x1098ec", 0,
		   "load+0x1 < worker");
	check_site("_start+0x1", 0, "_start+0x1");
	check_site("load+0x1 < aaaaaaaa < bbbbbbbb < main < __libc_start_main", 26, "load+0x1 < ... < main");
	/* What Python called, not how Python was started. */
	check_site("copy+0x1 < at::copy_ < THPVariable_to < method_vectorcall_VARARGS < _PyEval_EvalFrameDefault < "
		   "Py_RunMain < main",
		   40, "copy+0x1 < ... < THPVariable_to < ...");
	check_site("copy+0x1 < at::copy_ < THPVariable_to < cfunction_call < _PyEval_EvalFrameDefault < main", 54,
		   "copy+0x1 < at::copy_ < THPVariable_to < ...");
}

/* Whatever the width, each piece is dots, or a name or its end after a "::". */
static void nothing_is_cut_within_a_name(void **state)
{
	static const char *const names[] = {
		"at::native::copy_kernel_cuda+0x50b", "at::native::copy_impl",	  "at::_ops::copy_::call",
		"torch::autograd::THPVariable_copy_", "_PyEval_EvalFrameDefault", "main"
	};
	char buf[512], *save = NULL;

	(void)state;
	for (size_t columns = 34; columns < 200; columns++) {
		ttmon_site_join(buf, sizeof(buf), names, ARRAY_SIZE(names), columns);
		assert_true(strlen(buf) <= columns);
		if (columns >= 55)
			assert_non_null(strstr(buf, "THPVariable_copy_"));
		for (char *p = strtok_r(buf, "<", &save); p; p = strtok_r(NULL, "<", &save)) {
			bool ok = false;

			p += *p == ' ';
			p[strlen(p) - (p[strlen(p) - 1] == ' ')] = '\0';
			for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
				size_t n = strlen(names[i]), len = strlen(p);

				ok |= n >= len && !strcmp(names[i] + n - len, p) &&
				      (n == len || names[i][n - len - 1] == ':');
			}
			assert_true(ok || !strcmp(p, "..."));
		}
	}
}

static void frames_of_a_run(void **state)
{
	struct ttmon_run_object objects[] = { { .base = "train" } };
	struct ttmon_run_frame frames[] = {
		{ .fn = (char *)"_ZN2at6native5copy_ERNS_6TensorERKS1_b", .delta = 0x12, .object = 0 },
		{ .fn = NULL, .offset = 0x2a41, .object = 0 },
		{ .fn = (char *)"_Z4stepi", .delta = 0x33, .object = 0 },
		{ .fn = NULL, .offset = 0x7, .object = TTMON_RUN_NONE }
	};
	struct ttmon_run_site sites[] = { { 0 }, { .frame = 0, .nframes = 4 } };
	struct ttmon_run run = { .objects = objects, .nr_objects = 1, .frames = frames, .sites = sites, .nr_sites = 2 };
	char buf[128];

	(void)state;
	assert_string_equal(ttmon_site_show_run(buf, sizeof(buf), &run, 1, 0),
			    "at::native::copy_+0x12 < train+0x2a41 < step < ?+0x7");
	assert_string_equal(ttmon_site_show_run(buf, sizeof(buf), &run, 0, 0), "?");
	assert_string_equal(ttmon_site_show_run(buf, sizeof(buf), &run, 2, 0), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_short),
		cmocka_unit_test(hostile_symbols_stay_as_they_are),
		cmocka_unit_test(call_sites_are_cut_by_whole_frames),
		cmocka_unit_test(the_frame_next_to_the_program_stays),
		cmocka_unit_test(nothing_is_cut_within_a_name),
		cmocka_unit_test(frames_of_a_run),
	};

	return cmocka_run_group_tests_name("demangle", tests, NULL, NULL);
}
