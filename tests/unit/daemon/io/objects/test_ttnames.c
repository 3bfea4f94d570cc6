// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_ttnames.c: mangled names of tt-metal (as g++ makes them) against the table, and names that are
 * none of ours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/base/names.h"
#include "daemon/io/objects/ttnames.h"

struct expect {
	const char *name;
	unsigned int fn;
};

static const struct expect names[] = {
	/* memory */
	{ "_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE", 256 },
	{ "_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferEb", 256 }, /* 2024: another bool */
	{ "_ZN2tt8tt_metal2v012GraphTracker14track_allocateEPKNS1_6BufferE", 256 },
	{ "_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_2v06BufferEb", 256 },
	{ "_ZN2tt8tt_metal12GraphTracker16track_deallocateEPNS0_6BufferE", 257 },
	{ "_ZN2tt8tt_metal23notify_buffer_allocatedEPKNS0_6BufferE", 258 },
	{ "_ZN2tt8tt_metal25notify_buffer_deallocatedEPNS0_6BufferE", 259 },
	{ "_ZN2tt8tt_metal6Buffer13allocate_implEv", 260 },
	{ "_ZN2tt8tt_metal2v06Buffer13allocate_implEv", 260 },
	{ "_ZN2tt8tt_metal6Buffer15deallocate_implEv", 261 },
	{ "_ZN2tt8tt_metal10BufferImpl13allocate_implERNS0_6BufferE", 262 },
	{ "_ZN2tt8tt_metal10BufferImpl15deallocate_implERNS0_6BufferE", 263 },
	{ "_ZN2tt8tt_metal6Buffer10deallocateEv", 264 },
	{ "_ZN2tt8tt_metal16DeallocateBufferERNS0_6BufferE", 265 },
	{ "_ZN2tt8tt_metal2v016DeallocateBufferERNS1_6BufferE", 265 },
	{ "_ZN2tt8tt_metal6Buffer19mark_as_deallocatedEv", 266 },
	{ "_ZN2tt8tt_metal6BufferD1Ev", 267 },
	{ "_ZN2tt8tt_metal6BufferD2Ev", 268 },
	{ "_ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE", 269 },
	{ "_ZN2tt8tt_metal9Allocator15allocate_bufferEPNS0_6BufferE", 270 },
	{ "_ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPNS0_6BufferE", 271 },
	{ "_ZN2tt8tt_metal9Allocator17deallocate_bufferEPNS0_6BufferE", 272 },
	{ "_ZN2tt8tt_metal13AllocatorImpl18deallocate_buffersEv", 273 },
	{ "_ZN2tt8tt_metal9Allocator18deallocate_buffersEv", 274 },
	{ "_ZN2tt8tt_metal13AllocatorImpl5clearEv", 275 },
	{ "_ZN2tt8tt_metal9Allocator5clearEv", 276 },
	/* with an address it is a shadow, else an allocation */
	{ "_ZN2tt8tt_metal6Buffer6createEPNS0_7IDeviceEmmmNS0_10BufferType"
	  "ERKNS0_18BufferShardingArgsESt8optionalIbES8_IN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEEE",
	  280 },
	{ "_ZN2tt8tt_metal6Buffer6createEPNS0_7IDeviceEmmNS0_10BufferTypeERKNS0_18BufferShardingArgs"
	  "ESt8optionalIbES8_IN4ttsl10StrongTypeIhNS0_14SubDeviceIdTagEEEE",
	  281 },
	{ "_ZN2tt8tt_metal2v06Buffer6createEPNS1_6DeviceEmmNS0_10BufferTypeENS0_18TensorMemoryLayoutE", 281 },
	{ "_ZN2tt8tt_metal25SharedMemoryStatsProviderC1Emi", 286 },
	{ "_ZN2tt8tt_metal25SharedMemoryStatsProviderC2Emi", 287 },
	{ "_ZN2tt8tt_metal25SharedMemoryStatsProviderC1Emibb", 284 },
	{ "_ZN2tt8tt_metal25SharedMemoryStatsProviderC2Emibb", 285 },
	{ "_ZN2tt8tt_metal12GraphTracker17track_allocate_cbERK12CoreRangeSetmmbPKNS0_7IDeviceE", 290 },
	{ "_ZN2tt8tt_metal12GraphTracker17track_allocate_cbERK12CoreRangeSetmmbPKNS0_2v06DeviceE", 290 },
	{ "_ZN2tt8tt_metal12GraphTracker19track_deallocate_cbEPKNS0_7IDeviceE", 291 },
	{ "_ZN2tt8tt_metal6detail11ProgramImpl25allocate_circular_buffersEPKNS0_7IDeviceE", 292 },
	{ "_ZN2tt8tt_metal6detail8Program_25allocate_circular_buffersEPKNS0_7IDeviceE", 292 },
	{ "_ZN2tt8tt_metal6detail11ProgramImpl27deallocate_circular_buffersEv", 293 },
	{ "_ZN2tt8tt_metal6detail11ProgramImplD1Ev", 300 },
	{ "_ZN2tt8tt_metal6detail11ProgramImplD2Ev", 300 },
	{ "_ZN2tt8tt_metal6DeviceC1EPNS0_8MetalEnvEPNS0_12MetalContextEihmmN4ttsl4SpanIKjLm18446744073709551615EEEbmm",
	  294 },
	{ "_ZN2tt8tt_metal6DeviceC2EPNS0_8MetalEnvEPNS0_12MetalContextEihmm", 295 },
	{ "_ZN2tt8tt_metal6DeviceC1EihmmN2tt3stl4SpanIKjLm18446744073709551615EEEbm", 296 },
	{ "_ZN2tt8tt_metal2v06DeviceC1EjhmmRKSt6vectorIjSaIjEEbj", 296 },
	{ "_ZN2tt8tt_metal6DeviceC2Eihmm", 297 },
	{ "_ZN2tt8tt_metal6Device5closeEv", 298 },
	{ "_ZN2tt8tt_metal11distributed10MeshDeviceC1ESt10unique_ptrINS1_14MeshDeviceImplESt14default_deleteIS3_EE",
	  302 },
	{ "_ZN2tt8tt_metal11distributed10MeshDeviceD2Ev", 303 },
	{ "_ZN2tt8tt_metal6Device10initializeEhmmmN4ttsl4SpanIKjLm18446744073709551615EEEb", 299 },
	/* dispatch */
	{ "_ZN2tt8tt_metal11distributed19EnqueueMeshWorkloadERNS1_16MeshCommandQueueERNS1_12MeshWorkloadEb", 310 },
	{ "_ZN2tt8tt_metal11distributed18FDMeshCommandQueue21enqueue_mesh_workloadERNS1_12MeshWorkloadEb", 311 },
	{ "_ZN2tt8tt_metal11distributed18SDMeshCommandQueue21enqueue_mesh_workloadERNS1_12MeshWorkloadEb", 313 },
	{ "_ZN2tt8tt_metal14EnqueueProgramERNS0_12CommandQueueERNS0_7ProgramEb", 314 },
	{ "_ZN2tt8tt_metal2v014EnqueueProgramERNS1_12CommandQueueERNS1_7ProgramEb", 314 },
	{ "_ZN2tt8tt_metal14HWCommandQueue15enqueue_programERNS0_7ProgramEb", 315 },
	{ "_ZN2tt8tt_metal11distributed18FDMeshCommandQueue13enqueue_traceERKN4ttsl10StrongTypeIj"
	  "NS1_14MeshTraceIdTagEEEb",
	  316 },
	{ "_ZN2tt8tt_metal11distributed11ReplayTraceEPNS1_10MeshDeviceEhRKN2tt3stl10StrongTypeIj"
	  "NS1_14MeshTraceIdTagEEEb",
	  317 },
	{ "_ZN2tt8tt_metal6detail13LaunchProgramEPNS0_7IDeviceERNS0_7ProgramEb", 320 },
	{ "_ZN2tt8tt_metal6detail13LaunchProgramEPNS0_7IDeviceERNS0_7ProgramEbb", 320 },
	{ "_ZN2tt8tt_metal11distributed18FDMeshCommandQueue6finishEN4ttsl4SpanIKNS3_10StrongTypeIh"
	  "NS0_14SubDeviceIdTagEEELm18446744073709551615EEE",
	  321 },
	{ "_ZN2tt8tt_metal11distributed6FinishERNS1_16MeshCommandQueueEN4ttsl4SpanIKhLm1EEE", 322 },
	{ "_ZN2tt8tt_metal6FinishERNS0_12CommandQueueE", 323 },
	{ "_ZN2tt8tt_metal11distributed10MeshDevice17replay_mesh_traceEhRKN4ttsl10StrongTypeIjNS1_14MeshTraceIdTagEEEb",
	  331 },
	{ "_ZN2tt8tt_metal11distributed14MeshDeviceImpl17replay_mesh_traceEhRKN4ttsl10StrongTypeIj"
	  "NS1_14MeshTraceIdTagEEEb",
	  332 },
	{ "_ZN2tt8tt_metal11distributed18SDMeshCommandQueue6finishEN4ttsl4SpanIKNS3_10StrongTypeIh"
	  "NS0_14SubDeviceIdTagEEELm18446744073709551615EEE",
	  333 },
	{ "_ZN2tt8tt_metal11distributed18SDMeshCommandQueue13enqueue_traceERKN4ttsl10StrongTypeIj"
	  "NS1_14MeshTraceIdTagEEEb",
	  334 },
	{ "_ZN2tt8tt_metal11distributed20MeshCommandQueueBase25enqueue_write_mesh_buffer"
	  "ERKSt10shared_ptrINS1_10MeshBufferEEPKvb",
	  325 },
	{ "_ZN2tt8tt_metal11distributed20MeshCommandQueueBase24enqueue_read_mesh_buffer"
	  "EPvRKSt10shared_ptrINS1_10MeshBufferEEb",
	  326 },
	/* the real-time profiler */
	{ "_ZN2tt38InvokeProgramRealtimeProfilerCallbacksERKNS_8tt_metal12experimental21ProgramRealtimeRecordE", 340 },
	/* its pairs are of host nanoseconds, not of device cycles */
	{ "_ZN2tt8tt_metal29RealtimeProfilerTracyConsumer15CalibrateDeviceEjlmd", TTMON_TTNAME_NONE },
	{ "_ZN2tt38InvokeProgramRealtimeProfilerCallbacksERKNS_21ProgramRealtimeRecordE", 340 },
	{ "_ZN2tt8tt_metal13DataCollector38InvokeProgramRealtimeProfilerCallbacks"
	  "ERKNS0_12experimental21ProgramRealtimeRecordE",
	  342 },
	{ "_ZN2tt8tt_metal28RealtimeProfilerTracyHandler15CalibrateDeviceEjlmd", 350 },
	/* vtables */
	{ "_ZTVN2tt8tt_metal6DeviceE", TTMON_TTNAME_VT_DEVICE },
	{ "_ZTVN2tt8tt_metal2v06DeviceE", TTMON_TTNAME_VT_DEVICE },
	{ "_ZTVN2tt8tt_metal11distributed10MeshDeviceE", TTMON_TTNAME_VT_MESH },
	/* in no release of the last eighteen months: docs/tt-metal-releases.md */
	{ "_ZN2tt8tt_metal11distributed16MeshCommandQueue21enqueue_mesh_workloadERNS1_12MeshWorkloadEb",
	  TTMON_TTNAME_NONE },
	{ "_ZN2tt30InvokeProgramRealtimeCallbacksERKNS_8tt_metal12experimental21ProgramRealtimeRecordE",
	  TTMON_TTNAME_NONE },
	/* none of ours */
	{ "_ZTVN2tt8tt_metal6DeviceE.local", 0 },
	{ "_ZTVN2tt8tt_metal7IDeviceE", 0 },
	{ "_ZTIN2tt8tt_metal6DeviceE", 0 },
	{ "_ZN2tt8tt_metal6Buffer13allocate_implEv.cold", 0 },
	{ "_ZN2tt8tt_metal12GraphTracker14track_allocateEPKNS0_6BufferE.part.0", 0 },
	{ "_ZN2tt8tt_metal6Buffer13allocate_implEvx", 0 },
	{ "_ZN2tt8tt_metal6Buffer13allocate_implE", 0 },
	{ "x_ZN2tt8tt_metal6Buffer13allocate_implEv", 0 },
	{ "_ZN2tt8tt_metal2v1", 0 },
	{ "_ZN2tt8tt_metal2v0", 0 },
	{ "_ZN2tt8tt_metal2v02v06Buffer13allocate_implEv", 0 },
	{ "_ZN2tt8tt_metal6BufferD0Ev", 0 },
	{ "_ZN2tt8tt_metal6DeviceC1ERKS1_", 0 },
	{ "_ZNK2tt8tt_metal6Device22get_total_cb_allocatedEv", 0 },
	{ "_ZN4ttnn6Buffer13allocate_implEv", 0 },
	{ "_ZN2tt", 0 },
	{ "_ZN2tt8tt_metal", 0 },
	{ "", 0 },
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		unsigned int got = ttmon_ttname_find(names[i].name, strlen(names[i].name));

		if (got != names[i].fn)
			fail_msg("%s: %u, not %u", names[i].name, got, names[i].fn);
	}
}

/*
 * Each row is found by its own pattern with something in place of every '*', unless an earlier row
 * takes it.
 */
static void test_rows(void **state)
{
	static const struct {
		unsigned int fn;
		const char *pattern;
	} rows[] = {
#define T(id, name, pattern, c, x, b, a0, a1, a2, a3, a4, a5) { id, pattern },
		TTMON_TT_FN_TABLE(T)
#undef T
	};
	unsigned int before = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char name[512];
		size_t n = 0;
		unsigned int got;

		/* Ids rise, and each has its text: what the display and decode rely on. */
		assert_true(rows[i].fn > before);
		before = rows[i].fn;
		assert_true(rows[i].fn >= TTMON_TT_FN_FIRST && rows[i].fn < TTMON_TT_FN_END);
		assert_non_null(ttmon_tt_fn_name((uint16_t)rows[i].fn));
		if (!*rows[i].pattern) /* an ioctl */
			continue;
		for (const char *p = rows[i].pattern; *p; p++) {
			if (*p == '*')
				n += (size_t)snprintf(name + n, sizeof(name) - n, "S0_");
			else if (*p == '[')
				name[n++] = *++p, p = strchr(p, ']');
			else
				name[n++] = *p;
		}
		got = ttmon_ttname_find(name, n);
		if (got != rows[i].fn)
			fail_msg("row %u, as %.*s: %u", rows[i].fn, (int)n, name, got);
		/* What all string tables are searched for is in it, where the search looks. */
		assert_memory_equal(name + 2, TTMON_TTNAME_MARK, sizeof(TTMON_TTNAME_MARK) - 1);
	}
}

static bool glob(const char *pattern, const char *s)
{
	return ttmon_ttname_glob(pattern, s, strlen(s));
}

static void test_glob(void **state)
{
	(void)state;
	assert_true(glob("", ""));
	assert_false(glob("", "a"));
	assert_true(glob("*", ""));
	assert_true(glob("a*", "a"));
	assert_true(glob("*b", "abab"));
	assert_false(glob("*b", "aba"));
	assert_true(glob("a*b*c", "aXbXbXc"));
	assert_false(glob("a*b*c", "aXbXbX"));
	assert_true(glob("a*bc*bd", "abcbcbd"));
	assert_true(glob("[ab]c", "ac"));
	assert_true(glob("*[ab]c", "xxbc"));
	assert_false(glob("[ab]c", "cc"));
	assert_false(glob("[ab", "a")); /* a set without an end takes nothing */
	assert_false(glob("abc", "ab"));
	/* Only len bytes are looked at. */
	assert_true(ttmon_ttname_glob("ab", "abc", 2));
}

/* A name as bad as can be costs the product of the lengths, not a power: this would not end. */
static void test_bounds(void **state)
{
	char *s = malloc(TTMON_TTNAME_MAX + 1);
	size_t n;

	(void)state;
	assert_non_null(s);
	memset(s, 'a', TTMON_TTNAME_MAX + 1);
	assert_false(ttmon_ttname_glob("a*aa*aaa*aaaa*aaaaa*aaaaaa*b", s, TTMON_TTNAME_MAX));
	/* As long as may be, and one longer. */
	n = (size_t)snprintf(s, TTMON_TTNAME_MAX, "_ZN2tt8tt_metal11distributed19EnqueueMeshWorkloadE");
	s[n] = 'x';
	assert_int_equal(ttmon_ttname_find(s, TTMON_TTNAME_MAX), 310);
	assert_int_equal(ttmon_ttname_find(s, TTMON_TTNAME_MAX + 1), 0);
	/* The copy without the inline namespace fits too. */
	memset(s, 'a', TTMON_TTNAME_MAX);
	n = (size_t)snprintf(s, TTMON_TTNAME_MAX, "_ZN2tt8tt_metal2v014EnqueueProgramERNS1_12CommandQueueE");
	s[n] = 'x';
	assert_int_equal(ttmon_ttname_find(s, TTMON_TTNAME_MAX), 314);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_glob),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
