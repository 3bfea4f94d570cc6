// SPDX-License-Identifier: GPL-2.0-only
/*
 * drv.c: libcuda.so.1 for the stand-in GPU: devices and contexts. Environment variables:
 *
 *	GPUSIM_SMS=2  GPUSIM_ARCH=80  GPUSIM_DEVICES=1	the simulated hardware
 *	GPUSIM_HOSTPTR=0	registered memory has another address on the device
 *	GPUSIM_FAIL_LOAD=N	the N-th load of PTX text fails, also as an input of a link
 *	GPUSIM_FAIL_INPUT=218	the error of such an input of a link
 *	GPUSIM_FAIL_LINK=N	the N-th cuLinkComplete() fails
 *	GPUSIM_REFUSE=GLOB	the compiler refuses texts with such a kernel; its log names it,
 *	GPUSIM_REFUSE_QUIETLY=1	or does not
 *	GPUSIM_LAZY=1	a refused text fails only when a function is requested from its module
 *	GPUSIM_SLOW_COMPILER=MS	the time that texts and links take
 *	GPUSIM_FAIL_LAUNCH=GLOB	launches of kernels with such a name fail for lack of resources
 *	GPUSIM_MAX_REGS=65536	registers of an SM: a block that needs more fails for lack of resources
 *	GPUSIM_PTX_LOG=DIR	every text that is loaded is written there
 *	GPUSIM_TRACE=FILE	every access of every kernel except recorders is written there
 */
#include "drv.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t ctx_lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext contexts, primary[MAX_DEVICES];
static uint64_t next_id = 1;
static bool initialized;
static __thread CUcontext stack[32];
static __thread unsigned int depth;

const char *drv_env(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

long drv_env_long(const char *name, long other)
{
	const char *v = drv_env(name);

	return v ? strtol(v, NULL, 0) : other;
}

int drv_arch(void)
{
	return (int)drv_env_long("GPUSIM_ARCH", 80);
}

unsigned int drv_sms(void)
{
	long n = drv_env_long("GPUSIM_SMS", 2);

	return n > 0 && n <= 64 ? (unsigned int)n : 2;
}

static int devices(void)
{
	long n = drv_env_long("GPUSIM_DEVICES", 1);

	return n > 0 && n <= MAX_DEVICES ? (int)n : 1;
}

CUcontext drv_current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

int drv_enter(CUcontext *ctx)
{
	*ctx = drv_current();
	if (!initialized)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!*ctx || (*ctx)->dead)
		return CUDA_ERROR_INVALID_CONTEXT;
	return __atomic_load_n(&(*ctx)->sticky, __ATOMIC_ACQUIRE);
}

/* As the real driver does: loads the library whose path is in this variable, and calls it. */
static void inject(void)
{
	const char *path = drv_env("CUDA_INJECTION64_PATH");
	void *lib = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
	int (*init)(void) = NULL;

	if (lib)
		*(void **)&init = dlsym(lib, "InitializeInjection");
	if (init)
		init();
}

PUBLIC CUresult cuInit(unsigned int flags)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	initialized = true;
	pthread_once(&once, inject);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuDriverGetVersion(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
	if (!initialized)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (ordinal < 0 || ordinal >= devices())
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = ordinal;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGetCount(int *count)
{
	if (!initialized)
		return CUDA_ERROR_NOT_INITIALIZED;
	*count = devices();
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	if (dev < 0 || dev >= devices())
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(name, (size_t)len, "stand-in GPU sm_%d", drv_arch());
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	if (dev < 0 || dev >= devices())
		return CUDA_ERROR_INVALID_DEVICE;
	memset(uuid, 0, sizeof(*uuid));
	memcpy(uuid->bytes, "stand-in-gpu", 12);
	uuid->bytes[15] = (char)dev;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return cuDeviceGetUuid_v2(uuid, dev);
}

PUBLIC CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
	if (dev < 0 || dev >= devices())
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(id, (size_t)len, "0000:%02x:00.0", dev + 1);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	if (dev < 0 || dev >= devices())
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = 16ull << 30;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	if (dev < 0 || dev >= devices())
		return CUDA_ERROR_INVALID_DEVICE;
	*major = drv_arch() / 10;
	*minor = drv_arch() % 10;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attr, CUdevice dev)
{
	static const struct {
		int attr, value;
	} table[] = {
		{ 1, 1024 },   { 2, 1024 },	  { 3, 1024 },
		{ 4, 64 },     { 5, 2147483647 }, { 6, 65535 },
		{ 7, 65535 },  { 8, 49152 },	  { 9, 65536 },
		{ 10, 32 },    { 12, 65536 },	  { 13, 1000000 },
		{ 15, 1 },     { 19, 1 },	  { 20, 0 },
		{ 31, 1 },     { 33, 1 },	  { 39, 2048 },
		{ 40, 2 },     { 41, 1 },	  { 81, GPU_SHARED },
		{ 82, 65536 }, { 83, 1 },	  { 88, 0 },
		{ 89, 1 },     { 95, 1 },	  { 97, GPU_SHARED - 1024 },
		{ 99, 1 },     { 115, 1 },
	};

	if (dev < 0 || dev >= devices())
		return CUDA_ERROR_INVALID_DEVICE;
	*value = 0;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].attr == (int)attr)
			*value = table[i].value;
	if (attr == 16)
		*value = (int)drv_sms();
	else if (attr == 75)
		*value = drv_arch() / 10;
	else if (attr == 76)
		*value = drv_arch() % 10;
	else if (attr == 91)
		*value = drv_env_long("GPUSIM_HOSTPTR", 1) != 0;
	else if (attr == 33)
		*value = dev + 1;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	*can = dev != peer;
	return CUDA_SUCCESS;
}

/*
 * Contexts
 * ------------------------------------------------------------------------------------------------
 */

static CUcontext ctx_new(CUdevice dev, bool is_primary)
{
	CUcontext ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		abort();
	ctx->dev = dev;
	ctx->primary = is_primary;
	ctx->id = next_id++;
	ctx->next = contexts;
	contexts = ctx;
	return ctx;
}

/* The handle stays, so that using a destroyed context returns an error. */
static void ctx_end(CUcontext ctx)
{
	drv_ctx_wait(ctx);
	drv_ctx_streams_free(ctx);
	while (ctx->modules)
		drv_module_free(ctx->modules);
	gpu_mem_free_owner(ctx);
	ctx->dead = true;
}

PUBLIC CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	(void)flags;
	if (!initialized)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (dev < 0 || dev >= devices())
		return CUDA_ERROR_INVALID_DEVICE;
	if (depth == 32)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&ctx_lock);
	*ctx = ctx_new(dev, false);
	pthread_mutex_unlock(&ctx_lock);
	stack[depth++] = *ctx;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxCreate_v3(CUcontext *ctx, CUexecAffinityParam *params, int n, unsigned int flags, CUdevice dev)
{
	(void)params;
	(void)n;
	return cuCtxCreate_v2(ctx, flags, dev);
}

PUBLIC CUresult cuCtxCreate_v4(CUcontext *ctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	(void)params;
	return cuCtxCreate_v2(ctx, flags, dev);
}

PUBLIC CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	if (!ctx || ctx->dead || ctx->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	ctx_end(ctx);
	if (drv_current() == ctx)
		depth--;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxDestroy(CUcontext ctx)
{
	return cuCtxDestroy_v2(ctx);
}

PUBLIC CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	if (!initialized)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (dev < 0 || dev >= devices())
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&ctx_lock);
	if (!primary[dev])
		primary[dev] = ctx_new(dev, true);
	primary[dev]->dead = false;
	primary[dev]->refs++;
	*ctx = primary[dev];
	pthread_mutex_unlock(&ctx_lock);
	return CUDA_SUCCESS;
}

static int primary_end(CUdevice dev, bool reset)
{
	CUcontext ctx;
	bool last;

	if (dev < 0 || dev >= devices())
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&ctx_lock);
	ctx = primary[dev];
	if (!ctx || (!reset && !ctx->refs)) {
		pthread_mutex_unlock(&ctx_lock);
		return reset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
	}
	last = reset || --ctx->refs == 0;
	pthread_mutex_unlock(&ctx_lock);
	if (!last || ctx->dead)
		return CUDA_SUCCESS;
	ctx_end(ctx);
	pthread_mutex_lock(&ctx_lock);
	ctx->sticky = 0;
	ctx->dead = !reset;
	pthread_mutex_unlock(&ctx_lock);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	return primary_end(dev, false);
}

PUBLIC CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return primary_end(dev, false);
}

PUBLIC CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	return primary_end(dev, true);
}

PUBLIC CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return primary_end(dev, true);
}

PUBLIC CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	if (dev < 0 || dev >= devices())
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = 0;
	*active = primary[dev] && primary[dev]->refs;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	(void)flags;
	return dev < 0 || dev >= devices() ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxSetCurrent(CUcontext ctx)
{
	if (ctx && ctx->dead)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx)
		depth -= depth > 0;
	else
		stack[depth ? depth - 1 : depth++] = ctx;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	*ctx = drv_current();
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	if (!ctx || ctx->dead || depth == 32)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack[depth++] = ctx;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (ctx)
		*ctx = stack[depth];
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxGetDevice(CUdevice *dev)
{
	CUcontext ctx;
	int err = drv_enter(&ctx);

	if (!err)
		*dev = ctx->dev;
	return err;
}

PUBLIC CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	if (!ctx)
		ctx = drv_current();
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*id = ctx->id;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	(void)ctx;
	*version = 13000;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxSynchronize(void)
{
	CUcontext ctx;
	int err = drv_enter(&ctx);

	return err ? err : drv_ctx_wait(ctx);
}

PUBLIC CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	(void)limit;
	(void)value;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	*value = limit == 0 ? GPU_STACK : 0;
	return CUDA_SUCCESS;
}

CUcontext drv_contexts(void)
{
	return contexts;
}

/*
 * Answers to queries
 * ------------------------------------------------------------------------------------------------
 */

static const struct {
	int code;
	const char *name, *text;
} errors[] = {
	{ 0, "CUDA_SUCCESS", "no error" },
	{ 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
	{ 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
	{ 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
	{ 101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
	{ 200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid" },
	{ 201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
	{ 209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device" },
	{ 218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed" },
	{ 301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found" },
	{ 400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
	{ 401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state" },
	{ 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
	{ 600, "CUDA_ERROR_NOT_READY", "device not ready" },
	{ 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered" },
	{ 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch" },
	{ 702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated" },
	{ 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
	  "part or all of the requested memory range is already mapped" },
	{ 713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region" },
	{ 715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered" },
	{ 716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address" },
	{ 719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
	{ 801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
	{ 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing" },
	{ 901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture" },
};

PUBLIC CUresult cuGetErrorName(CUresult err, const char **name)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].code == (int)err) {
			*name = errors[i].name;
			return CUDA_SUCCESS;
		}
	*name = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

PUBLIC CUresult cuGetErrorString(CUresult err, const char **text)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].code == (int)err) {
			*text = errors[i].text;
			return CUDA_SUCCESS;
		}
	*text = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

PUBLIC CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	(void)id;
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}
