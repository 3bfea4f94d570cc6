// SPDX-License-Identifier: GPL-2.0-only
/* names.c: see names.h. Each list is generated from the table that defines its numbers. */
#include "lib/base/search.h"
#include "lib/base/names.h"

#include <ttmon/family.h>

#include <ttmon/fns.h>

static const char *const event_names[TTMON_EV_MAX] = {
#define X(id, NAME, name, ...) [id] = #name,
	TTMON_EVENT_TABLE(X)
#undef X
};

static const char *const method_names[TTMON_METHOD_MAX] = {
#define X(id, NAME, name) [id] = name,
	TTMON_METHOD_TABLE(X)
#undef X
};

static const char *const family_names[TTMON_FAMILY_MAX] = {
#define X(id, NAME, name, countable, help) [id] = name,
	TTMON_FAMILY_TABLE(X)
#undef X
};

static const char *const loss_names[TTMON_LOSS_MAX] = {
#define X(id, NAME, name, help) [id] = name,
	TTMON_LOSS_TABLE(X)
#undef X
};

/* A name and its meaning. */
struct word {
	const char *name, *help;
};

static const struct word stack_bys[TTMON_STACK_BY_MAX] = {
#define X(id, NAME, name, help) [id] = { name, help },
	TTMON_STACK_BY_TABLE(X)
#undef X
};

static const struct word stack_ends[TTMON_STACK_END_MAX] = {
#define X(id, NAME, name, help) [id] = { name, help },
	TTMON_STACK_END_TABLE(X)
#undef X
};

static const char *const dir_names[TTMON_DIR_MAX] = {
	[TTMON_DIR_H2H] = "h2h", [TTMON_DIR_H2D] = "h2d",	  [TTMON_DIR_D2H] = "d2h",
	[TTMON_DIR_D2D] = "d2d", [TTMON_DIR_DEFAULT] = "default", [TTMON_DIR_INVALID] = "invalid",
};

/* Without clang-format, which would put each name on a line of its own. */
/* clang-format off */
#define USER(n) [TTMON_FN_USER + (n)] = "user" #n
static const char *const fn_names[TTMON_FN_COUNT] = {
#define F(id, symbol, ...) [id] = #symbol,
	TTMON_FN_TABLE(F)
#undef F
	USER(0), USER(1), USER(2), USER(3), USER(4), USER(5), USER(6), USER(7),
	USER(8), USER(9), USER(10), USER(11), USER(12), USER(13), USER(14), USER(15),
	[TTMON_FN_USDT_ALLOC] = "usdt:alloc",
	[TTMON_FN_USDT_FREE] = "usdt:free",
	[TTMON_FN_USDT_CHECKPOINT] = "usdt:checkpoint",
};
/* clang-format on */
_Static_assert(TTMON_FN_USER_MAX == 16, "a name for each");

/* Whose is an id? Each has one owner. */
#define F(id, ...) \
	_Static_assert((id) < TTMON_FN_USER || ((id) >= 512 && (id) < TTMON_FN_IDS), "id of a CUDA function: " #id);
TTMON_FN_TABLE(F)
#undef F
_Static_assert(TTMON_FN_USDT_CHECKPOINT < TTMON_TT_FN_FIRST && TTMON_TT_FN_END <= 512, "ids that others have");

/*
 * Sorted by code. Codes that no probed call returns (textures, surfaces, MPS, profiler) have no name
 * here and are printed as numbers.
 */
static const struct {
	int16_t code;
	const char *name;
} cuda_errors[] = {
	{ 0, "cudaSuccess" },
	{ 1, "cudaErrorInvalidValue" },
	{ 2, "cudaErrorMemoryAllocation" },
	{ 3, "cudaErrorInitializationError" },
	{ 4, "cudaErrorCudartUnloading" },
	{ 9, "cudaErrorInvalidConfiguration" },
	{ 12, "cudaErrorInvalidPitchValue" },
	{ 13, "cudaErrorInvalidSymbol" },
	{ 16, "cudaErrorInvalidHostPointer" },
	{ 17, "cudaErrorInvalidDevicePointer" },
	{ 21, "cudaErrorInvalidMemcpyDirection" },
	{ 34, "cudaErrorStubLibrary" },
	{ 35, "cudaErrorInsufficientDriver" },
	{ 36, "cudaErrorCallRequiresNewerDriver" },
	{ 46, "cudaErrorDevicesUnavailable" },
	{ 49, "cudaErrorIncompatibleDriverContext" },
	{ 52, "cudaErrorMissingConfiguration" },
	{ 98, "cudaErrorInvalidDeviceFunction" },
	{ 100, "cudaErrorNoDevice" },
	{ 101, "cudaErrorInvalidDevice" },
	{ 103, "cudaErrorSoftwareValidityNotEstablished" },
	{ 127, "cudaErrorStartupFailure" },
	{ 200, "cudaErrorInvalidKernelImage" },
	{ 201, "cudaErrorDeviceUninitialized" },
	{ 205, "cudaErrorMapBufferObjectFailed" },
	{ 206, "cudaErrorUnmapBufferObjectFailed" },
	{ 208, "cudaErrorAlreadyMapped" },
	{ 209, "cudaErrorNoKernelImageForDevice" },
	{ 211, "cudaErrorNotMapped" },
	{ 214, "cudaErrorECCUncorrectable" },
	{ 216, "cudaErrorDeviceAlreadyInUse" },
	{ 217, "cudaErrorPeerAccessUnsupported" },
	{ 218, "cudaErrorInvalidPtx" },
	{ 220, "cudaErrorNvlinkUncorrectable" },
	{ 226, "cudaErrorContained" },
	{ 304, "cudaErrorOperatingSystem" },
	{ 400, "cudaErrorInvalidResourceHandle" },
	{ 401, "cudaErrorIllegalState" },
	{ 500, "cudaErrorSymbolNotFound" },
	{ 600, "cudaErrorNotReady" },
	{ 700, "cudaErrorIllegalAddress" },
	{ 701, "cudaErrorLaunchOutOfResources" },
	{ 702, "cudaErrorLaunchTimeout" },
	{ 704, "cudaErrorPeerAccessAlreadyEnabled" },
	{ 705, "cudaErrorPeerAccessNotEnabled" },
	{ 708, "cudaErrorSetOnActiveProcess" },
	{ 709, "cudaErrorContextIsDestroyed" },
	{ 710, "cudaErrorAssert" },
	{ 711, "cudaErrorTooManyPeers" },
	{ 712, "cudaErrorHostMemoryAlreadyRegistered" },
	{ 713, "cudaErrorHostMemoryNotRegistered" },
	{ 714, "cudaErrorHardwareStackError" },
	{ 715, "cudaErrorIllegalInstruction" },
	{ 716, "cudaErrorMisalignedAddress" },
	{ 717, "cudaErrorInvalidAddressSpace" },
	{ 718, "cudaErrorInvalidPc" },
	{ 719, "cudaErrorLaunchFailure" },
	{ 720, "cudaErrorCooperativeLaunchTooLarge" },
	{ 800, "cudaErrorNotPermitted" },
	{ 801, "cudaErrorNotSupported" },
	{ 802, "cudaErrorSystemNotReady" },
	{ 803, "cudaErrorSystemDriverMismatch" },
	{ 804, "cudaErrorCompatNotSupportedOnDevice" },
	{ 900, "cudaErrorStreamCaptureUnsupported" },
	{ 901, "cudaErrorStreamCaptureInvalidated" },
	{ 902, "cudaErrorStreamCaptureMerge" },
	{ 903, "cudaErrorStreamCaptureUnmatched" },
	{ 904, "cudaErrorStreamCaptureUnjoined" },
	{ 905, "cudaErrorStreamCaptureIsolation" },
	{ 906, "cudaErrorStreamCaptureImplicit" },
	{ 907, "cudaErrorCapturedEvent" },
	{ 908, "cudaErrorStreamCaptureWrongThread" },
	{ 909, "cudaErrorTimeout" },
	{ 999, "cudaErrorUnknown" },
};

static const struct ttmon_tt_desc tt_descs[TTMON_TT_FN_END - TTMON_TT_FN_FIRST] = {
#define T(id, name, pattern, c, x, b, a0, a1, a2, a3, a4, a5)                                                      \
	[id - TTMON_TT_FN_FIRST] = {                                                                               \
		.cls = TTMON_TT_CLS_##c, .aux = TTMON_TT_##x, .bits = TTMON_##b, .arg = { a0, a1, a2, a3, a4, a5 } \
	},
	TTMON_TT_FN_TABLE(T)
#undef T
};

static const char *const tt_names[TTMON_TT_FN_END - TTMON_TT_FN_FIRST] = {
#define T(id, name, ...) [id - TTMON_TT_FN_FIRST] = #name,
	TTMON_TT_FN_TABLE(T)
#undef T
};

static const char *const mem_names[] = { "pinned", "pageable", "managed", "unknown" };
static const char *const rdir_names[] = { "h2h", "h2d", "d2h", "d2d", "unknown" };
_Static_assert(ARRAY_SIZE(mem_names) == TTMON_MEM_MAX, "a name for each kind of memory");
_Static_assert(ARRAY_SIZE(rdir_names) == TTMON_RDIR_MAX, "a name for each direction");

const char *ttmon_mem_name(unsigned int mem)
{
	return mem < TTMON_MEM_MAX ? mem_names[mem] : NULL;
}

const char *ttmon_rdir_name(unsigned int rdir)
{
	return rdir < TTMON_RDIR_MAX ? rdir_names[rdir] : NULL;
}

const char *ttmon_event_name(unsigned int kind)
{
	return kind < TTMON_EV_MAX ? event_names[kind] : NULL;
}

const char *ttmon_family_name(unsigned int family)
{
	return family < TTMON_FAMILY_MAX ? family_names[family] : NULL;
}

const char *ttmon_method_name(unsigned int method)
{
	return method < TTMON_METHOD_MAX ? method_names[method] : NULL;
}

const char *ttmon_dir_name(unsigned int dir)
{
	return dir < TTMON_DIR_MAX ? dir_names[dir] : NULL;
}

const char *ttmon_fn_name(unsigned int fn)
{
	const char *name = fn < TTMON_FN_COUNT ? fn_names[fn] : NULL;

	return name ? name : ttmon_tt_fn_name((uint16_t)fn);
}

const char *ttmon_loss_name(unsigned int reason)
{
	return reason < TTMON_LOSS_MAX ? loss_names[reason] : NULL;
}

const char *ttmon_stack_by_name(unsigned int by)
{
	return by < TTMON_STACK_BY_MAX ? stack_bys[by].name : NULL;
}

const char *ttmon_stack_end_name(unsigned int end)
{
	return end < TTMON_STACK_END_MAX ? stack_ends[end].name : NULL;
}

static const char *help_of(const struct word *words, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(words[i].name, name))
			return words[i].help;
	return NULL;
}

const char *ttmon_stack_by_help(const char *by)
{
	return help_of(stack_bys, TTMON_STACK_BY_MAX, by);
}

const char *ttmon_stack_end_help(const char *end)
{
	return help_of(stack_ends, TTMON_STACK_END_MAX, end);
}

const char *ttmon_cuda_error_name(int err)
{
	size_t at = TTMON_SEARCH((size_t)0, ARRAY_SIZE(cuda_errors), i, cuda_errors[i].code < err);

	return at < ARRAY_SIZE(cuda_errors) && cuda_errors[at].code == err ? cuda_errors[at].name : NULL;
}

const char *ttmon_error_name(unsigned int fn, int err)
{
	return ttmon_tt_fn((uint16_t)fn) ? strerrorname_np((int)(0u - (unsigned int)err)) : ttmon_cuda_error_name(err);
}

const struct ttmon_tt_desc *ttmon_tt_fn(uint16_t fn)
{
	const struct ttmon_tt_desc *d;

	if (fn < TTMON_TT_FN_FIRST || fn >= TTMON_TT_FN_END)
		return NULL;
	d = &tt_descs[fn - TTMON_TT_FN_FIRST];
	return d->cls ? d : NULL;
}

const char *ttmon_tt_fn_name(uint16_t fn)
{
	return ttmon_tt_fn(fn) ? tt_names[fn - TTMON_TT_FN_FIRST] : NULL;
}

const char *ttmon_aev_name(unsigned int kind)
{
	static const char *const names[] = {
#define X(id, NAME, name) [id] = name,
		TTMON_AEV_TABLE(X)
#undef X
	};

	return kind < ARRAY_SIZE(names) ? names[kind] : NULL;
}

static const struct {
	const char *name, *help;
} reasons[TTMON_INCOMPLETE_MAX] = {
#define X(id, NAME, name, help) [id] = { name, help },
	TTMON_INCOMPLETE_TABLE(X)
#undef X
};

const char *ttmon_incomplete_name(unsigned int reason)
{
	return reason < TTMON_INCOMPLETE_MAX ? reasons[reason].name : NULL;
}

const char *ttmon_incomplete_help(unsigned int reason)
{
	return reason < TTMON_INCOMPLETE_MAX ? reasons[reason].help : NULL;
}
