// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_layout.c: the struct offsets that the BPF programs use (cuda_abi.h) against the CUDA headers of
 * this machine. Every row is compared, so that a wrong one is named. SKIP (77) where no CUDA headers
 * were there at build time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <ttmon/cuda_abi.h>

#if __has_include(<cuda.h>) && __has_include(<driver_types.h>)
#include <cuda.h>
#include <driver_types.h>

/* A row: true is wrong. Each wrong one is named. */
#define X(NAME, type, member, offset) +bad_row(#type, #member, offsetof(type, member), TTMON_ABI_##NAME)
#define S(NAME, type, size)	      +bad_row(#type, NULL, sizeof(type), TTMON_ABI_##NAME##_SIZE)

static unsigned int bad_row(const char *type, const char *member, size_t real, size_t ours)
{
	if (real == ours)
		return 0;
	if (member)
		print_error("%s: %s is at %zu, not %zu\n", type, member, real, ours);
	else
		print_error("%s: %zu bytes, not %zu\n", type, real, ours);
	return 1;
}

static void test_offsets(void **state)
{
	(void)state;
	assert_int_equal(0 TTMON_ABI_OFFSETS(X), 0);
}

static void test_sizes(void **state)
{
	(void)state;
	assert_int_equal(0 TTMON_ABI_SIZES(S), 0);
}

/* Came with CUDA 12.8. */
static void test_batches(void **state)
{
	(void)state;
#if CUDA_VERSION >= 12080
	assert_int_equal(0 TTMON_ABI_BATCH_OFFSETS(X) TTMON_ABI_BATCH_SIZES(S), 0);
	assert_int_equal(TTMON_ABI_OPTYPE_POINTER, cudaMemcpyOperandTypePointer);
	assert_int_equal(TTMON_ABI_OPTYPE_ARRAY, cudaMemcpyOperandTypeArray);
	assert_int_equal(TTMON_ABI_OPTYPE_POINTER, CU_MEMCPY_OPERAND_TYPE_POINTER);
	assert_int_equal(TTMON_ABI_OPTYPE_ARRAY, CU_MEMCPY_OPERAND_TYPE_ARRAY);
#else
	print_message("SKIP: these headers are of CUDA %d.%d and know no batches\n", CUDA_VERSION / 1000,
		      CUDA_VERSION % 1000 / 10);
	skip();
#endif
}

static void test_values(void **state)
{
	(void)state;
	assert_int_equal(TTMON_ABI_MEM_HOST, CU_MEMORYTYPE_HOST);
	assert_int_equal(TTMON_ABI_MEM_DEVICE, CU_MEMORYTYPE_DEVICE);
	assert_int_equal(TTMON_ABI_MEM_ARRAY, CU_MEMORYTYPE_ARRAY);
	assert_int_equal(TTMON_ABI_MEM_UNIFIED, CU_MEMORYTYPE_UNIFIED);
	assert_int_equal(TTMON_ABI_LOC_DEVICE, cudaMemLocationTypeDevice);
	assert_int_equal(TTMON_ABI_LOC_HOST, cudaMemLocationTypeHost);
	assert_int_equal(TTMON_ABI_LOC_HOST_NUMA, cudaMemLocationTypeHostNuma);
	assert_int_equal(TTMON_ABI_LOC_HOST_NUMA_CURRENT, cudaMemLocationTypeHostNumaCurrent);
	assert_int_equal(TTMON_ABI_LOC_HOST_NUMA_CURRENT, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	printf("SKIP: no CUDA headers (cuda.h, driver_types.h) at build time\n");
	return 77;
}
#endif
