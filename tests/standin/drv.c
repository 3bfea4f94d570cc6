// SPDX-License-Identifier: GPL-2.0-only
/*
 * drv.c: the stand-in libcuda.so.1: every driver function that ttmon probes (include/ttmon/fns.h),
 * under its real names and with its real argument list, over the model of model.h. Copies are in
 * drv_copy.c.
 */
#include <stdlib.h>
#include <string.h>

#include "cu_api.h"
#include "api.h"

#define API_RESULT CUresult

struct CUctx_st {
	CUdevice dev;
};

static struct CUctx_st primary[STANDIN_DEVICES];
/* The contexts of this thread; the top one is current. */
#define MAX_PUSHED 8
static __thread CUcontext stack[MAX_PUSHED];
static __thread unsigned int top;
#define current (stack[top])

API(cuInit, (unsigned int flags), (flags))
{
	ENTER("cuInit");
	return flags ? E_VALUE : 0;
}

API(cuCtxGetDevice, (CUdevice * dev), (dev))
{
	ENTER("cuCtxGetDevice");
	*dev = current ? current->dev : 0;
	return 0;
}

API(cuCtxSetCurrent, (CUcontext ctx), (ctx))
{
	ENTER("cuCtxSetCurrent");
	current = ctx;
	return 0;
}

API(cuCtxPushCurrent_v2, (CUcontext ctx), (ctx))
{
	ENTER("cuCtxPushCurrent_v2");
	if (top == MAX_PUSHED - 1)
		return E_VALUE;
	top++;
	current = ctx;
	return 0;
}

API(cuCtxPopCurrent_v2, (CUcontext * ctx), (ctx))
{
	ENTER("cuCtxPopCurrent_v2");
	if (ctx)
		*ctx = current;
	if (top)
		top--;
	else
		current = NULL;
	return 0;
}

static int new_context(CUcontext *ctx, CUdevice dev)
{
	CUcontext c;

	if (!ctx || dev < 0 || dev >= STANDIN_DEVICES)
		return ctx ? E_DEVICE : E_VALUE;
	c = calloc(1, sizeof(*c));
	if (!c)
		return E_MEMORY;
	c->dev = dev;
	current = c;
	*ctx = c;
	return 0;
}

#undef cuCtxCreate
API(cuCtxCreate, (CUcontext * ctx, unsigned int flags, CUdevice dev), (ctx, flags, dev))
{
	ENTER("cuCtxCreate");
	(void)flags;
	return new_context(ctx, dev);
}

API(cuCtxCreate_v2, (CUcontext * ctx, unsigned int flags, CUdevice dev), (ctx, flags, dev))
{
	ENTER("cuCtxCreate_v2");
	(void)flags;
	return new_context(ctx, dev);
}

API(cuCtxCreate_v3, (CUcontext * ctx, CUexecAffinityParam *params, int n, unsigned int flags, CUdevice dev),
    (ctx, params, n, flags, dev))
{
	ENTER("cuCtxCreate_v3");
	(void)params, (void)n, (void)flags;
	return new_context(ctx, dev);
}

API(cuCtxCreate_v4, (CUcontext * ctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev),
    (ctx, params, flags, dev))
{
	ENTER("cuCtxCreate_v4");
	(void)params, (void)flags;
	return new_context(ctx, dev);
}

/*
 * The model has one memory for all contexts: destroying one frees everything. Its structure stays,
 * because it may be current elsewhere.
 */
static int destroy_context(CUcontext ctx)
{
	if (!ctx)
		return E_VALUE;
	model_reset();
	if (current == ctx)
		current = NULL;
	return 0;
}

API(cuCtxDestroy, (CUcontext ctx), (ctx))
{
	ENTER("cuCtxDestroy");
	return destroy_context(ctx);
}

API(cuCtxDestroy_v2, (CUcontext ctx), (ctx))
{
	ENTER("cuCtxDestroy_v2");
	return destroy_context(ctx);
}

API(cuDevicePrimaryCtxRetain, (CUcontext * ctx, CUdevice dev), (ctx, dev))
{
	ENTER("cuDevicePrimaryCtxRetain");
	if (!ctx || dev < 0 || dev >= STANDIN_DEVICES)
		return ctx ? E_DEVICE : E_VALUE;
	primary[dev].dev = dev;
	*ctx = &primary[dev];
	return 0;
}

API(cuDevicePrimaryCtxReset, (CUdevice dev), (dev))
{
	ENTER("cuDevicePrimaryCtxReset");
	(void)dev;
	model_reset();
	return 0;
}

API(cuDevicePrimaryCtxReset_v2, (CUdevice dev), (dev))
{
	ENTER("cuDevicePrimaryCtxReset_v2");
	(void)dev;
	model_reset();
	return 0;
}

/* ---- host memory ---- */
API(cuMemHostAlloc, (void **p, size_t size, unsigned int flags), (p, size, flags))
{
	ENTER("cuMemHostAlloc");
	(void)flags;
	return model_host_alloc(p, size);
}

#undef cuMemAllocHost
API(cuMemAllocHost, (void **p, unsigned int size), (p, size))
{
	ENTER("cuMemAllocHost");
	return model_host_alloc(p, size);
}

API(cuMemAllocHost_v2, (void **p, size_t size), (p, size))
{
	ENTER("cuMemAllocHost_v2");
	return model_host_alloc(p, size);
}

API(cuMemFreeHost, (void *p), (p))
{
	ENTER("cuMemFreeHost");
	model_wait();
	return model_host_free(p);
}

#undef cuMemHostRegister
API(cuMemHostRegister, (void *p, size_t size, unsigned int flags), (p, size, flags))
{
	ENTER("cuMemHostRegister");
	(void)flags;
	return model_register(p, size);
}

API(cuMemHostRegister_v2, (void *p, size_t size, unsigned int flags), (p, size, flags))
{
	ENTER("cuMemHostRegister_v2");
	(void)flags;
	return model_register(p, size);
}

API(cuMemHostUnregister, (void *p), (p))
{
	ENTER("cuMemHostUnregister");
	return model_unregister(p);
}

/* Passes on the result of the call; mem is read after the call was made. */
static int dev_result(int err, void *const *mem, CUdeviceptr *ret)
{
	if (!err)
		*ret = (uintptr_t)*mem;
	return err;
}

API(cuMemAllocManaged, (CUdeviceptr * p, size_t size, unsigned int flags), (p, size, flags))
{
	void *mem = NULL;

	ENTER("cuMemAllocManaged");
	(void)flags;
	return dev_result(p ? model_managed_alloc(&mem, size) : E_VALUE, &mem, p);
}

API(cuMemHostGetDevicePointer_v2, (CUdeviceptr * dev, void *p, unsigned int flags), (dev, p, flags))
{
	ENTER("cuMemHostGetDevicePointer_v2");
	(void)flags;
	return dev_result(dev && p ? 0 : E_VALUE, &p, dev);
}

/* ---- device memory ---- */
#undef cuMemAlloc
/* A 32-bit device pointer cannot hold an address of this device. */
API(cuMemAlloc, (CUdeviceptr_v1 * p, unsigned int size), (p, size))
{
	ENTER("cuMemAlloc");
	(void)p, (void)size;
	return E_NOT_SUPPORTED;
}

API(cuMemAlloc_v2, (CUdeviceptr * p, size_t size), (p, size))
{
	void *mem = NULL;

	ENTER("cuMemAlloc_v2");
	return dev_result(p ? model_dev_alloc(&mem, size) : E_VALUE, &mem, p);
}

API_PTSZ(cuMemAllocAsync, (CUdeviceptr * p, size_t size, CUstream stream), (p, size, stream))
{
	void *mem = NULL;

	ENTER("cuMemAllocAsync");
	(void)stream;
	return dev_result(p ? model_dev_alloc(&mem, size) : E_VALUE, &mem, p);
}

struct CUmemPoolHandle_st {
	bool host;
};

API_PTSZ(cuMemAllocFromPoolAsync, (CUdeviceptr * p, size_t size, CUmemoryPool pool, CUstream stream),
	 (p, size, pool, stream))
{
	void *mem = NULL;

	ENTER("cuMemAllocFromPoolAsync");
	(void)stream;
	if (!p || !pool)
		return E_VALUE;
	return dev_result(pool->host ? model_managed_alloc(&mem, size) : model_dev_alloc(&mem, size), &mem, p);
}

API(cuMemAllocPitch_v2, (CUdeviceptr * p, size_t *pitch, size_t width, size_t height, unsigned int element),
    (p, pitch, width, height, element))
{
	size_t row = (width + 511) / 512 * 512;
	void *mem = NULL;
	int err;

	ENTER("cuMemAllocPitch_v2");
	(void)element;
	err = p && pitch ? model_dev_alloc(&mem, row * height) : E_VALUE;
	if (!err)
		*pitch = row;
	return dev_result(err, &mem, p);
}

#undef cuMemFree
API(cuMemFree, (CUdeviceptr_v1 p), (p))
{
	ENTER("cuMemFree");
	return model_dev_free((void *)(uintptr_t)p);
}

API(cuMemFree_v2, (CUdeviceptr p), (p))
{
	ENTER("cuMemFree_v2");
	return model_dev_free((void *)(uintptr_t)p);
}

API_PTSZ(cuMemFreeAsync, (CUdeviceptr p, CUstream stream), (p, stream))
{
	ENTER("cuMemFreeAsync");
	(void)stream;
	return model_dev_free((void *)(uintptr_t)p);
}

API(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *props), (pool, props))
{
	CUmemoryPool made;

	ENTER("cuMemPoolCreate");
	if (!pool || !props)
		return E_VALUE;
	made = calloc(1, sizeof(*made));
	if (!made)
		return E_MEMORY;
	made->host = props->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
	*pool = made;
	return 0;
}

API(cuMemPoolDestroy, (CUmemoryPool pool), (pool))
{
	ENTER("cuMemPoolDestroy");
	free(pool);
	return 0;
}

/*
 * A handle is a pointer to its size. Mapped memory has device addresses, whatever location is
 * requested.
 */
API(cuMemCreate,
    (CUmemGenericAllocationHandle * h, size_t size, const CUmemAllocationProp *prop, unsigned long long flags),
    (h, size, prop, flags))
{
	size_t *made;

	ENTER("cuMemCreate");
	if (!h || !prop || flags)
		return E_VALUE;
	made = malloc(sizeof(*made));
	if (!made)
		return E_MEMORY;
	*made = size;
	*h = (uintptr_t)made;
	return 0;
}

API(cuMemRelease, (CUmemGenericAllocationHandle h), (h))
{
	ENTER("cuMemRelease");
	free((void *)(uintptr_t)h);
	return 0;
}

API(cuMemAddressReserve, (CUdeviceptr * p, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags),
    (p, size, alignment, addr, flags))
{
	void *mem = NULL;

	ENTER("cuMemAddressReserve");
	(void)alignment, (void)addr, (void)flags;
	return dev_result(p ? model_reserve(&mem, size) : E_VALUE, &mem, p);
}

API(cuMemMap, (CUdeviceptr p, size_t size, size_t offset, CUmemGenericAllocationHandle h, unsigned long long flags),
    (p, size, offset, h, flags))
{
	ENTER("cuMemMap");
	(void)flags;
	return p && h && offset + size <= *(size_t *)(uintptr_t)h ? 0 : E_VALUE;
}

API(cuMemUnmap, (CUdeviceptr p, size_t size), (p, size))
{
	ENTER("cuMemUnmap");
	return p && size ? 0 : E_VALUE;
}

API(cuArrayCreate_v2, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR *desc), (array, desc))
{
	void *made = NULL;
	int err;

	ENTER("cuArrayCreate_v2");
	err = array && desc ? model_array_new(&made, desc->Width * desc->NumChannels, desc->Height) : E_VALUE;
	if (!err)
		*array = made;
	return err;
}

API(cuArrayDestroy, (CUarray array), (array))
{
	ENTER("cuArrayDestroy");
	return model_array_free(array);
}

/* ---- hints ---- */
#undef cuMemPrefetchAsync
API_PTSZ(cuMemPrefetchAsync, (CUdeviceptr p, size_t n, CUdevice dev, CUstream stream), (p, n, dev, stream))
{
	ENTER("cuMemPrefetchAsync");
	(void)dev, (void)stream;
	return p && n ? 0 : E_VALUE;
}

API_PTSZ(cuMemPrefetchAsync_v2, (CUdeviceptr p, size_t n, CUmemLocation loc, unsigned int flags, CUstream stream),
	 (p, n, loc, flags, stream))
{
	ENTER("cuMemPrefetchAsync_v2");
	(void)loc, (void)flags, (void)stream;
	return p && n ? 0 : E_VALUE;
}

API_PTSZ(cuMemPrefetchBatchAsync,
	 (CUdeviceptr * ptrs, size_t *sizes, size_t count, CUmemLocation *locs, size_t *idxs, size_t nlocs,
	  unsigned long long flags, CUstream stream),
	 (ptrs, sizes, count, locs, idxs, nlocs, flags, stream))
{
	ENTER("cuMemPrefetchBatchAsync");
	(void)flags, (void)stream;
	return ptrs && sizes && count && locs && idxs && nlocs ? 0 : E_VALUE;
}

API_PTSZ(cuMemDiscardAndPrefetchBatchAsync,
	 (CUdeviceptr * ptrs, size_t *sizes, size_t count, CUmemLocation *locs, size_t *idxs, size_t nlocs,
	  unsigned long long flags, CUstream stream),
	 (ptrs, sizes, count, locs, idxs, nlocs, flags, stream))
{
	ENTER("cuMemDiscardAndPrefetchBatchAsync");
	(void)flags, (void)stream;
	return ptrs && sizes && count && locs && idxs && nlocs ? 0 : E_VALUE;
}

#undef cuMemAdvise
API(cuMemAdvise, (CUdeviceptr p, size_t n, CUmem_advise advice, CUdevice dev), (p, n, advice, dev))
{
	ENTER("cuMemAdvise");
	(void)advice, (void)dev;
	return p && n ? 0 : E_VALUE;
}

API(cuMemAdvise_v2, (CUdeviceptr p, size_t n, CUmem_advise advice, CUmemLocation loc), (p, n, advice, loc))
{
	ENTER("cuMemAdvise_v2");
	(void)advice, (void)loc;
	return p && n ? 0 : E_VALUE;
}

/* ---- streams, graphs, launches ---- */
static int capture_begin(CUstream stream)
{
	return model_capture_begin(stream, NULL);
}

#undef cuStreamBeginCapture
API_PTSZ(cuStreamBeginCapture, (CUstream stream), (stream))
{
	ENTER("cuStreamBeginCapture");
	return capture_begin(stream);
}

API_PTSZ(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
{
	ENTER("cuStreamBeginCapture_v2");
	(void)mode;
	return capture_begin(stream);
}

API_PTSZ(cuStreamBeginCaptureToGraph,
	 (CUstream stream, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t ndeps,
	  CUstreamCaptureMode mode),
	 (stream, graph, deps, edges, ndeps, mode))
{
	ENTER("cuStreamBeginCaptureToGraph");
	(void)deps, (void)edges, (void)ndeps, (void)mode;
	return graph ? model_capture_begin(stream, graph) : E_VALUE;
}

API_PTSZ(cuStreamEndCapture, (CUstream stream, CUgraph *graph), (stream, graph))
{
	void *g = NULL;
	int err;

	ENTER("cuStreamEndCapture");
	err = model_capture_end(stream, &g);
	if (!err && graph)
		*graph = g;
	return err;
}

API_PTSZ(cuEventRecord, (CUevent event, CUstream stream), (event, stream))
{
	ENTER("cuEventRecord");
	return model_event_record(event, stream);
}

API_PTSZ(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags), (event, stream, flags))
{
	ENTER("cuEventRecordWithFlags");
	(void)flags;
	return model_event_record(event, stream);
}

API_PTSZ(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags), (stream, event, flags))
{
	ENTER("cuStreamWaitEvent");
	(void)flags;
	return model_stream_wait(stream, event);
}

API_PTSZ(cuLaunchKernel,
	 (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
	  unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra),
	 (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra))
{
	ENTER("cuLaunchKernel");
	(void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)stream, (void)params, (void)extra;
	return f && gx && bx ? 0 : E_VALUE;
}

API_PTSZ(cuLaunchKernelEx, (const CUlaunchConfig *config, CUfunction f, void **params, void **extra),
	 (config, f, params, extra))
{
	ENTER("cuLaunchKernelEx");
	(void)params, (void)extra;
	return f && config ? 0 : E_VALUE;
}

API_PTSZ(cuLaunchCooperativeKernel,
	 (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
	  unsigned int bz, unsigned int shared, CUstream stream, void **params),
	 (f, gx, gy, gz, bx, by, bz, shared, stream, params))
{
	ENTER("cuLaunchCooperativeKernel");
	(void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)stream, (void)params;
	return f && gx && bx ? 0 : E_VALUE;
}

API(cuLaunchCooperativeKernelMultiDevice, (CUDA_LAUNCH_PARAMS * list, unsigned int n, unsigned int flags),
    (list, n, flags))
{
	ENTER("cuLaunchCooperativeKernelMultiDevice");
	(void)flags;
	return list && n ? 0 : E_VALUE;
}

API(cuLaunch, (CUfunction f), (f))
{
	ENTER("cuLaunch");
	return f ? 0 : E_VALUE;
}

API(cuLaunchGrid, (CUfunction f, int gx, int gy), (f, gx, gy))
{
	ENTER("cuLaunchGrid");
	return f && gx && gy ? 0 : E_VALUE;
}

API(cuLaunchGridAsync, (CUfunction f, int gx, int gy, CUstream stream), (f, gx, gy, stream))
{
	ENTER("cuLaunchGridAsync");
	(void)stream;
	return f && gx && gy ? 0 : E_VALUE;
}

API_PTSZ(cuGraphLaunch, (CUgraphExec exec, CUstream stream), (exec, stream))
{
	ENTER("cuGraphLaunch");
	(void)stream;
	return model_graph_launch(exec);
}
