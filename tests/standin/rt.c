// SPDX-License-Identifier: GPL-2.0-only
/*
 * rt.c: the stand-in libcudart: devices, memory, hints, streams, graphs and launches of the CUDA
 * runtime under their real names. Copies are in rt_copy.c; the calls of the driver are in rt.h.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt.h"

#define API_RESULT cudaError_t

static struct rt_driver driver;
static bool driver_loaded;
static void *driver_symbols; /* stands for the module's variables */
#define SYMBOLS (1u << 20)

/* A test that requested nested calls must not pass without them. */
static void not_nested(const char *why)
{
	fprintf(stderr, "standin: STANDIN_NESTED: %s\n", why);
	abort();
}

static void load_driver(void)
{
	const char *want = getenv("STANDIN_NESTED");
	void *lib = want && *want == '1' ? dlopen("libcuda.so.1", RTLD_NOW) : NULL;
	__typeof__(cuGetProcAddress_v2) *find;
	CUdeviceptr symbols = 0;

	if (!want || *want != '1')
		return;
	if (!lib)
		not_nested(dlerror());
	/* As the real runtime does: only this name is looked up in the library itself. */
	find = (__typeof__(find))dlsym(lib, "cuGetProcAddress_v2");
	if (!find)
		not_nested("cuGetProcAddress_v2");
#define F(fn)                                                             \
	if (find(#fn, (void **)&driver.fn, 13000, 0, NULL) || !driver.fn) \
		not_nested(#fn);
	RT_DRIVER(F)
#undef F
	if (driver.cuMemAlloc_v2(&symbols, SYMBOLS))
		not_nested("no memory");
	driver_symbols = (void *)(uintptr_t)symbols;
	driver_loaded = true;
}

const struct rt_driver *rt_driver(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_driver);
	return driver_loaded ? &driver : NULL;
}

void *rt_symbol(const void *symbol, size_t offset)
{
	return rt_driver() ? (char *)driver_symbols + (uintptr_t)symbol % (SYMBOLS / 2) + offset
			   : model_symbol(symbol, offset);
}

/* ---- devices ---- */
static __thread int device;

API(cudaGetDeviceCount, (int *count), (count))
{
	ENTER("cudaGetDeviceCount");
	*count = STANDIN_DEVICES;
	return 0;
}

API(cudaGetDevice, (int *dev), (dev))
{
	ENTER("cudaGetDevice");
	*dev = device;
	return 0;
}

API(cudaSetDevice, (int dev), (dev))
{
	const struct rt_driver *d = rt_driver();
	CUcontext ctx;
	int err = 0;

	ENTER("cudaSetDevice");
	if (dev < 0 || dev >= STANDIN_DEVICES)
		return E_DEVICE;
	if (d) {
		err = d->cuDevicePrimaryCtxRetain(&ctx, dev);
		if (!err)
			err = d->cuCtxSetCurrent(ctx);
	}
	if (!err)
		device = dev;
	return err;
}

API(cudaDeviceReset, (void), ())
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaDeviceReset");
	if (d)
		return d->cuDevicePrimaryCtxReset_v2(device);
	model_reset();
	return 0;
}

API(cudaDeviceSynchronize, (void), ())
{
	ENTER("cudaDeviceSynchronize");
	model_wait();
	return 0;
}

/* ---- host memory ---- */
API(cudaHostAlloc, (void **p, size_t size, unsigned int flags), (p, size, flags))
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaHostAlloc");
	return d ? (int)d->cuMemHostAlloc(p, size, flags) : model_host_alloc(p, size);
}

API(cudaMallocHost, (void **p, size_t size), (p, size))
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaMallocHost");
	return d ? (int)d->cuMemHostAlloc(p, size, 0) : model_host_alloc(p, size);
}

API(cudaFreeHost, (void *p), (p))
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaFreeHost");
	model_wait();
	return d ? (int)d->cuMemFreeHost(p) : model_host_free(p);
}

API(cudaHostRegister, (void *p, size_t size, unsigned int flags), (p, size, flags))
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaHostRegister");
	return d ? (int)d->cuMemHostRegister_v2(p, size, flags) : model_register(p, size);
}

API(cudaHostUnregister, (void *p), (p))
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaHostUnregister");
	return d ? (int)d->cuMemHostUnregister(p) : model_unregister(p);
}

/* Passes on the result of the call; mem is read after the call was made. */
static int dev_result(int err, const CUdeviceptr *mem, void **ret)
{
	if (!err)
		*ret = (void *)(uintptr_t)*mem;
	return err;
}

API(cudaMallocManaged, (void **p, size_t size, unsigned int flags), (p, size, flags))
{
	const struct rt_driver *d = rt_driver();
	CUdeviceptr mem = 0;

	ENTER("cudaMallocManaged");
	return d ? dev_result(d->cuMemAllocManaged(&mem, size, flags), &mem, p) : model_managed_alloc(p, size);
}

API(cudaHostGetDevicePointer, (void **dev, void *host, unsigned int flags), (dev, host, flags))
{
	const struct rt_driver *d = rt_driver();
	CUdeviceptr mem = (uintptr_t)host;

	ENTER("cudaHostGetDevicePointer");
	return dev_result(d ? d->cuMemHostGetDevicePointer_v2(&mem, host, flags) : host ? 0 : E_VALUE, &mem, dev);
}

/* ---- device memory ---- */
API(cudaMalloc, (void **p, size_t size), (p, size))
{
	const struct rt_driver *d = rt_driver();
	CUdeviceptr mem = 0;

	ENTER("cudaMalloc");
	return d ? dev_result(d->cuMemAlloc_v2(&mem, size), &mem, p) : model_dev_alloc(p, size);
}

API_PTSZ(cudaMallocAsync, (void **p, size_t size, cudaStream_t stream), (p, size, stream))
{
	const struct rt_driver *d = rt_driver();
	CUdeviceptr mem = 0;

	ENTER("cudaMallocAsync");
	return d ? dev_result(d->cuMemAllocAsync(&mem, size, stream), &mem, p) : model_dev_alloc(p, size);
}

struct CUmemPoolHandle_st {
	bool host;
};

API_PTSZ(cudaMallocFromPoolAsync, (void **p, size_t size, cudaMemPool_t pool, cudaStream_t stream),
	 (p, size, pool, stream))
{
	const struct rt_driver *d = rt_driver();
	CUdeviceptr mem = 0;

	ENTER("cudaMallocFromPoolAsync");
	if (!pool)
		return E_VALUE;
	if (d)
		return dev_result(d->cuMemAllocFromPoolAsync(&mem, size, pool, stream), &mem, p);
	return pool->host ? model_managed_alloc(p, size) : model_dev_alloc(p, size);
}

static int alloc_pitch(void **p, size_t *pitch, size_t width, size_t height)
{
	const struct rt_driver *d = rt_driver();
	CUdeviceptr mem = 0;
	int err;

	if (!p || !pitch)
		return E_VALUE;
	if (d)
		return dev_result(d->cuMemAllocPitch_v2(&mem, pitch, width, height, 4), &mem, p);
	err = model_dev_alloc(p, (width + 511) / 512 * 512 * height);
	if (!err)
		*pitch = (width + 511) / 512 * 512;
	return err;
}

API(cudaMallocPitch, (void **p, size_t *pitch, size_t width, size_t height), (p, pitch, width, height))
{
	ENTER("cudaMallocPitch");
	return alloc_pitch(p, pitch, width, height);
}

API(cudaMalloc3D, (struct cudaPitchedPtr * p, struct cudaExtent extent), (p, extent))
{
	size_t pitch = 0;
	void *mem = NULL;
	int err;

	ENTER("cudaMalloc3D");
	err = p ? alloc_pitch(&mem, &pitch, extent.width, extent.height * extent.depth) : E_VALUE;
	if (!err)
		*p = (struct cudaPitchedPtr){ mem, pitch, extent.width, extent.height };
	return err;
}

API(cudaFree, (void *p), (p))
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaFree");
	return d ? (int)d->cuMemFree_v2((uintptr_t)p) : model_dev_free(p);
}

API_PTSZ(cudaFreeAsync, (void *p, cudaStream_t stream), (p, stream))
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaFreeAsync");
	return d ? (int)d->cuMemFreeAsync((uintptr_t)p, stream) : model_dev_free(p);
}

API(cudaMemPoolCreate, (cudaMemPool_t * pool, const struct cudaMemPoolProps *props), (pool, props))
{
	const struct rt_driver *d = rt_driver();
	cudaMemPool_t made;

	ENTER("cudaMemPoolCreate");
	if (!pool || !props)
		return E_VALUE;
	if (d) {
		/* The two structures have the same layout. */
		return d->cuMemPoolCreate(pool, (const CUmemPoolProps *)props);
	}
	made = calloc(1, sizeof(*made));
	if (!made)
		return E_MEMORY;
	made->host = props->location.type != cudaMemLocationTypeDevice;
	*pool = made;
	return 0;
}

API(cudaMemPoolDestroy, (cudaMemPool_t pool), (pool))
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaMemPoolDestroy");
	if (d)
		return d->cuMemPoolDestroy(pool);
	free(pool);
	return 0;
}

API(cudaMallocArray,
    (cudaArray_t * array, const struct cudaChannelFormatDesc *desc, size_t width, size_t height, unsigned int flags),
    (array, desc, width, height, flags))
{
	const struct rt_driver *d = rt_driver();
	CUDA_ARRAY_DESCRIPTOR shape = { 0, height, CU_AD_FORMAT_UNSIGNED_INT8, 1 };
	void *made = NULL;
	int err;

	ENTER("cudaMallocArray");
	(void)flags;
	if (!array || !desc)
		return E_VALUE;
	shape.Width = width * (size_t)(desc->x + desc->y + desc->z + desc->w) / 8;
	err = d ? (int)d->cuArrayCreate_v2((CUarray *)&made, &shape) : model_array_new(&made, shape.Width, height);
	if (!err)
		*array = made;
	return err;
}

API(cudaFreeArray, (cudaArray_t array), (array))
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaFreeArray");
	return d ? (int)d->cuArrayDestroy((CUarray)array) : model_array_free(array);
}

/* ---- hints ---- */
static int hint(const void *p, size_t count)
{
	return p && count ? 0 : E_VALUE;
}

#if STANDIN_CUDART >= 13
API_PTSZ(cudaMemPrefetchAsync,
	 (const void *p, size_t count, struct cudaMemLocation loc, unsigned int flags, cudaStream_t stream),
	 (p, count, loc, flags, stream))
{
	ENTER("cudaMemPrefetchAsync");
	(void)loc, (void)flags, (void)stream;
	return hint(p, count);
}

API(cudaMemAdvise, (const void *p, size_t count, enum cudaMemoryAdvise advice, struct cudaMemLocation loc),
    (p, count, advice, loc))
{
	ENTER("cudaMemAdvise");
	(void)advice, (void)loc;
	return hint(p, count);
}
#else
API_PTSZ(cudaMemPrefetchAsync, (const void *p, size_t count, int dev, cudaStream_t stream), (p, count, dev, stream))
{
	ENTER("cudaMemPrefetchAsync");
	(void)dev, (void)stream;
	return hint(p, count);
}

API_PTSZ(cudaMemPrefetchAsync_v2,
	 (const void *p, size_t count, struct cudaMemLocation loc, unsigned int flags, cudaStream_t stream),
	 (p, count, loc, flags, stream))
{
	ENTER("cudaMemPrefetchAsync_v2");
	(void)loc, (void)flags, (void)stream;
	return hint(p, count);
}

API(cudaMemAdvise, (const void *p, size_t count, enum cudaMemoryAdvise advice, int dev), (p, count, advice, dev))
{
	ENTER("cudaMemAdvise");
	(void)advice, (void)dev;
	return hint(p, count);
}

API(cudaMemAdvise_v2, (const void *p, size_t count, enum cudaMemoryAdvise advice, struct cudaMemLocation loc),
    (p, count, advice, loc))
{
	ENTER("cudaMemAdvise_v2");
	(void)advice, (void)loc;
	return hint(p, count);
}
#endif

API_PTSZ(cudaMemPrefetchBatchAsync,
	 (void **ptrs, size_t *sizes, size_t count, struct cudaMemLocation *locs, size_t *idxs, size_t nlocs,
	  unsigned long long flags, cudaStream_t stream),
	 (ptrs, sizes, count, locs, idxs, nlocs, flags, stream))
{
	ENTER("cudaMemPrefetchBatchAsync");
	(void)flags, (void)stream;
	return ptrs && sizes && count && locs && idxs && nlocs ? 0 : E_VALUE;
}

#if STANDIN_CUDART >= 13
API_PTSZ(cudaMemDiscardAndPrefetchBatchAsync,
	 (void **ptrs, size_t *sizes, size_t count, struct cudaMemLocation *locs, size_t *idxs, size_t nlocs,
	  unsigned long long flags, cudaStream_t stream),
	 (ptrs, sizes, count, locs, idxs, nlocs, flags, stream))
{
	ENTER("cudaMemDiscardAndPrefetchBatchAsync");
	(void)flags, (void)stream;
	return ptrs && sizes && count && locs && idxs && nlocs ? 0 : E_VALUE;
}
#endif

/* ---- streams, events, capture, graphs ---- */
API(cudaStreamCreate, (cudaStream_t * stream), (stream))
{
	void *made = NULL;
	int err;

	ENTER("cudaStreamCreate");
	err = stream ? model_stream_new(&made) : E_VALUE;
	if (!err)
		*stream = made;
	return err;
}

API(cudaStreamDestroy, (cudaStream_t stream), (stream))
{
	ENTER("cudaStreamDestroy");
	return model_stream_free(stream);
}

API_PTSZ(cudaStreamSynchronize, (cudaStream_t stream), (stream))
{
	ENTER("cudaStreamSynchronize");
	(void)stream;
	model_wait();
	return 0;
}

API(cudaEventCreate, (cudaEvent_t * event), (event))
{
	void *made = NULL;
	int err;

	ENTER("cudaEventCreate");
	err = event ? model_event_new(&made) : E_VALUE;
	if (!err)
		*event = made;
	return err;
}

API(cudaEventDestroy, (cudaEvent_t event), (event))
{
	ENTER("cudaEventDestroy");
	free(event);
	return 0;
}

API_PTSZ(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaEventRecord");
	return d ? (int)d->cuEventRecord(event, stream) : model_event_record(event, stream);
}

API_PTSZ(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags), (event, stream, flags))
{
	ENTER("cudaEventRecordWithFlags");
	(void)flags;
	return model_event_record(event, stream);
}

API_PTSZ(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags), (stream, event, flags))
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaStreamWaitEvent");
	return d ? (int)d->cuStreamWaitEvent(stream, event, flags) : model_stream_wait(stream, event);
}

API_PTSZ(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode), (stream, mode))
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaStreamBeginCapture");
	return d ? (int)d->cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)mode)
		 : model_capture_begin(stream, NULL);
}

API_PTSZ(cudaStreamBeginCaptureToGraph,
	 (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *deps, const cudaGraphEdgeData *edges,
	  size_t ndeps, enum cudaStreamCaptureMode mode),
	 (stream, graph, deps, edges, ndeps, mode))
{
	ENTER("cudaStreamBeginCaptureToGraph");
	(void)deps, (void)edges, (void)ndeps, (void)mode;
	return graph ? model_capture_begin(stream, graph) : E_VALUE;
}

API_PTSZ(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), (stream, graph))
{
	const struct rt_driver *d = rt_driver();
	void *made = NULL;
	int err;

	ENTER("cudaStreamEndCapture");
	if (d)
		return d->cuStreamEndCapture(stream, graph);
	err = model_capture_end(stream, &made);
	if (!err && graph)
		*graph = made;
	return err;
}

API(cudaGraphCreate, (cudaGraph_t * graph, unsigned int flags), (graph, flags))
{
	void *made = NULL;
	int err;

	ENTER("cudaGraphCreate");
	(void)flags;
	err = graph ? model_graph_new(&made) : E_VALUE;
	if (!err)
		*graph = made;
	return err;
}

API(cudaGraphDestroy, (cudaGraph_t graph), (graph))
{
	ENTER("cudaGraphDestroy");
	return model_graph_free(graph);
}

API(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags), (exec, graph, flags))
{
	void *made = NULL;
	int err;

	ENTER("cudaGraphInstantiate");
	(void)flags;
	err = exec ? model_graph_instantiate(&made, graph) : E_VALUE;
	if (!err)
		*exec = made;
	return err;
}

API(cudaGraphExecDestroy, (cudaGraphExec_t exec), (exec))
{
	ENTER("cudaGraphExecDestroy");
	return model_graph_free(exec);
}

API_PTSZ(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaGraphLaunch");
	return d ? (int)d->cuGraphLaunch(exec, stream) : model_graph_launch(exec);
}

/* ---- launches: nothing runs ---- */
static int launch(const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
	const struct rt_driver *d = rt_driver();

	if (!func || !grid.x || !block.x)
		return E_VALUE;
	return d ? (int)d->cuLaunchKernel((CUfunction)(uintptr_t)func, grid.x, grid.y, grid.z, block.x, block.y,
					  block.z, (unsigned int)shared, stream, args, NULL)
		 : 0;
}

API_PTSZ(cudaLaunchKernel, (const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream),
	 (func, grid, block, args, shared, stream))
{
	ENTER("cudaLaunchKernel");
	return launch(func, grid, block, args, shared, stream);
}

#if STANDIN_CUDART < 13
API(cudaLaunchCooperativeKernelMultiDevice, (struct cudaLaunchParams * list, unsigned int n, unsigned int flags),
    (list, n, flags))
{
	ENTER("cudaLaunchCooperativeKernelMultiDevice");
	(void)flags;
	return list && n ? 0 : E_VALUE;
}
#endif

API_PTSZ(cudaLaunchCooperativeKernel,
	 (const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream),
	 (func, grid, block, args, shared, stream))
{
	ENTER("cudaLaunchCooperativeKernel");
	return launch(func, grid, block, args, shared, stream);
}

API_PTSZ(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *func, void **args), (config, func, args))
{
	ENTER("cudaLaunchKernelExC");
	return config ? launch(func, config->gridDim, config->blockDim, args, config->dynamicSmemBytes, config->stream)
		      : E_VALUE;
}
