// SPDX-License-Identifier: GPL-2.0-only
/*
 * everydrv.c: the driver's part of everyfn.c. Streams, events and graphs come from the runtime: the
 * driver's stand-in makes none.
 */
#define _GNU_SOURCE
#include "cu_api.h"
#include "every.h"

static char *host;
static CUdeviceptr dev, dev2, managed;
static CUarray array, array2;
static char registered[EVERY_BUF];

static CUdeviceptr address(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

/*
 * The context determines the device of a call. Destroying one frees all memory, so this runs first.
 */
static void contexts(void)
{
	CUcontext ctx, popped;
	CUdeviceptr p;

	EVERY(cuCtxCreate, (&ctx, 0, 1),
	      (MUST(cuMemAlloc_v2(&p, n)), did(fn, "dev:1", n), MUST(cuCtxDestroy(ctx)), did(fn, "reset", n)));
	EVERY(cuCtxCreate_v2, (&ctx, 0, 1),
	      (MUST(cuMemAlloc_v2(&p, n)), did(fn, "dev:1", n), MUST(cuCtxDestroy_v2(ctx)), did(fn, "reset", n)));
	EVERY(cuCtxCreate_v3, (&ctx, NULL, 0, 0, 1),
	      (MUST(cuMemAlloc_v2(&p, n)), did(fn, "dev:1", n), MUST(cuDevicePrimaryCtxReset(1)), did(fn, "reset", n)));
	EVERY(cuCtxCreate_v4, (&ctx, NULL, 0, 1),
	      (MUST(cuMemAlloc_v2(&p, n)), did(fn, "dev:1", n), MUST(cuDevicePrimaryCtxReset_v2(1)),
	       did(fn, "reset", n)));
	MUST(cuDevicePrimaryCtxRetain(&ctx, 0));
	EVERY(cuCtxPushCurrent_v2, (ctx), (MUST(cuMemAlloc_v2(&p, n)), did(fn, "dev:0", n)));
	EVERY(cuCtxPopCurrent_v2, (&popped), (MUST(cuMemAlloc_v2(&p, n)), did(fn, "dev:?", n)));
	EVERY(cuCtxSetCurrent, (ctx), (MUST(cuMemAlloc_v2(&p, n)), did(fn, "dev:0", n)));
}

static void allocations(void)
{
	CUmemLocation device = { .type = CU_MEM_LOCATION_TYPE_DEVICE };
	CUDA_ARRAY_DESCRIPTOR shape = {
		.Width = EVERY_ROW, .Height = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1
	};
	CUdeviceptr p;
	size_t size, idx = 0;
	void *v;

	MUST(cuMemAlloc_v2(&dev, EVERY_BUF));
	MUST(cuMemAlloc_v2(&dev2, EVERY_BUF));
	MUST(cuMemHostAlloc((void **)&host, EVERY_BUF, 0));
	MUST(cuMemAllocManaged(&managed, EVERY_BUF, 1));
	MUST(cuArrayCreate_v2(&array, &shape));
	MUST(cuArrayCreate_v2(&array2, &shape));
	EVERY(cuMemAllocHost, (&v, (unsigned int)n), did(fn, "host_alloc", n));
	EVERY(cuMemAllocHost_v2, (&v, n), did(fn, "host_alloc", n));
	EVERY(cuMemHostRegister, (registered, n, 0), (did(fn, "registered", n), MUST(cuMemHostUnregister(registered))));
	EVERY(cuMemHostRegister_v2, (registered, n, 0),
	      (did(fn, "registered", n), MUST(cuMemHostUnregister(registered))));
	EVERY(cuMemAllocAsync, (&p, n, NULL), did(fn, "device", n));
	EVERY(cuMemHostGetDevicePointer_v2, (&p, host, 0), did(fn, "device_ptr", 0));
	EVERY(cuMemPrefetchAsync, (managed, n, 0, NULL), did(fn, "prefetch", n));
	EVERY(cuMemPrefetchAsync_v2, (managed, n, device, 0, NULL), did(fn, "prefetch", n));
	EVERY(cuMemPrefetchBatchAsync, (&managed, (size = n, &size), 1, &device, &idx, 1, 0, NULL),
	      did(fn, "prefetch", n));
	EVERY(cuMemDiscardAndPrefetchBatchAsync, (&managed, (size = n, &size), 1, &device, &idx, 1, 0, NULL),
	      did(fn, "prefetch", n));
	EVERY(cuMemAdvise, (managed, n, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), did(fn, "advise", n));
	EVERY(cuMemAdvise_v2, (managed, n, CU_MEM_ADVISE_SET_READ_MOSTLY, device), did(fn, "advise", n));
}

static void linear(void)
{
	TO_DEV(cuMemcpy, (dev, address(host), n));
	FROM_DEV(cuMemcpyAsync, (address(host), dev, n, NULL));
	TO_DEV(cuMemcpyHtoD_v2, (dev, host, n));
	TO_DEV(cuMemcpyHtoDAsync_v2, (dev, host, n, NULL));
	FROM_DEV(cuMemcpyDtoH_v2, (host, dev, n));
	FROM_DEV(cuMemcpyDtoHAsync_v2, (host, dev, n, NULL));
	ON_DEV(cuMemcpyDtoD_v2, (dev2, dev, n));
	ON_DEV(cuMemcpyDtoDAsync_v2, (dev2, dev, n, NULL));
	TO_DEV(cuMemcpyHtoA_v2, (array, 0, host, n));
	TO_DEV(cuMemcpyHtoAAsync_v2, (array, 0, host, n, NULL));
	FROM_DEV(cuMemcpyAtoH_v2, (host, array, 0, n));
	FROM_DEV(cuMemcpyAtoHAsync_v2, (host, array, 0, n, NULL));
	ON_DEV(cuMemcpyAtoD_v2, (dev, array, 0, n));
	ON_DEV(cuMemcpyDtoA_v2, (array, 0, dev, n));
	ON_DEV(cuMemcpyAtoA_v2, (array2, 0, array, 0, n));
	ON_DEV(cuMemcpyPeer, (dev2, NULL, dev, NULL, n));
	ON_DEV(cuMemcpyPeerAsync, (dev2, NULL, dev, NULL, n, NULL));
}

static void shapes(void)
{
	CUDA_MEMCPY2D up = { .srcMemoryType = CU_MEMORYTYPE_HOST,
			     .srcHost = host,
			     .srcPitch = EVERY_ROW,
			     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			     .dstDevice = dev,
			     .dstPitch = EVERY_ROW,
			     .Height = 2 };
	CUDA_MEMCPY2D to_array = { .srcMemoryType = CU_MEMORYTYPE_HOST,
				   .srcHost = host,
				   .srcPitch = EVERY_ROW,
				   .dstMemoryType = CU_MEMORYTYPE_ARRAY,
				   .dstArray = array,
				   .Height = 2 };
	CUDA_MEMCPY3D down = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			       .srcDevice = dev,
			       .srcPitch = EVERY_ROW,
			       .srcHeight = 2,
			       .dstMemoryType = CU_MEMORYTYPE_HOST,
			       .dstHost = host,
			       .dstPitch = EVERY_ROW,
			       .dstHeight = 2,
			       .Height = 2,
			       .Depth = 1 };
	CUDA_MEMCPY3D_PEER peer = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
				    .srcDevice = dev,
				    .srcPitch = EVERY_ROW,
				    .srcHeight = 2,
				    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
				    .dstDevice = dev2,
				    .dstPitch = EVERY_ROW,
				    .dstHeight = 2,
				    .Height = 2,
				    .Depth = 1 };

	TO_DEV_2D(cuMemcpy2D_v2, ((up.WidthInBytes = n, &up)));
	TO_DEV_2D(cuMemcpy2DUnaligned_v2, ((up.WidthInBytes = n, &up)));
	TO_DEV_2D(cuMemcpy2DAsync_v2, ((to_array.WidthInBytes = n, &to_array), NULL));
	FROM_DEV_2D(cuMemcpy3D_v2, ((down.WidthInBytes = n, &down)));
	FROM_DEV_2D(cuMemcpy3DAsync_v2, ((down.WidthInBytes = n, &down), NULL));
	ON_DEV_2D(cuMemcpy3DPeer, ((peer.WidthInBytes = n, &peer)));
	ON_DEV_2D(cuMemcpy3DPeerAsync, ((peer.WidthInBytes = n, &peer), NULL));
}

static void batches(void)
{
	CUmemcpyAttributes attrs;
	CUDA_MEMCPY3D_BATCH_OP op;
	CUdeviceptr dst = dev, src = address(host);
	size_t size, idx = 0, failed;

	memset(&attrs, 0, sizeof(attrs));
	memset(&op, 0, sizeof(op));
	attrs.srcAccessOrder = 1;
	TO_DEV(cuMemcpyBatchAsync, (&dst, &src, (size = n, &size), 1, &attrs, &idx, 1, &failed, NULL));
	TO_DEV(cuMemcpyBatchAsync_v2, (&dst, &src, (size = n, &size), 1, &attrs, &idx, 1, NULL));
	op.src.type = op.dst.type = 1;
	op.src.op.ptr.ptr = (__typeof__(op.src.op.ptr.ptr))(uintptr_t)dev;
	op.dst.op.ptr.ptr = (__typeof__(op.dst.op.ptr.ptr))(uintptr_t)host;
	op.extent.height = 2;
	op.extent.depth = 1;
	FROM_DEV_2D(cuMemcpy3DBatchAsync, (1, (op.extent.width = n, &op), &failed, 0, NULL));
	FROM_DEV_2D(cuMemcpy3DBatchAsync_v2, (1, (op.extent.width = n, &op), 0, NULL));
}

static void captured(CUstream stream)
{
	COUNTED(captured, cuMemcpyHtoDAsync_v2, (dev, host, n, stream));
}

static void end(CUstream stream)
{
	CUgraph graph;

	captured(stream);
	MUST(cuStreamEndCapture(stream, &graph));
}

static void capture(void)
{
	CUstream stream, other;
	CUgraph graph;
	CUevent event;

	MUST(cudaStreamCreate(&stream));
	MUST(cudaStreamCreate(&other));
	MUST(cudaEventCreate(&event));
	MUST(cudaGraphCreate(&graph, 0));
	EVERY(cuStreamBeginCapture, (stream), end(stream));
	EVERY(cuStreamBeginCapture_v2, (stream, CU_STREAM_CAPTURE_MODE_GLOBAL), end(stream));
	EVERY(cuStreamBeginCaptureToGraph, (stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL), end(stream));
	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	EVERY(cuEventRecord, (event, stream), (void)fn);
	EVERY(cuStreamWaitEvent, (other, event, 0), (void)fn);
	end(stream);
	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	EVERY(cuEventRecordWithFlags, (event, stream, 0), MUST(cuStreamWaitEvent(other, event, 0)));
	captured(other);
	end(stream);
	TO_DEV(cuMemcpyHtoDAsync_v2, (dev, host, n, stream));
	TO_DEV(cuMemcpyHtoDAsync_v2, (dev, host, n, other));
}

static void graphs(void)
{
	CUDA_MEMCPY3D up = { .srcMemoryType = CU_MEMORYTYPE_HOST,
			     .srcHost = host,
			     .srcPitch = 64,
			     .srcHeight = 1,
			     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			     .dstDevice = dev,
			     .dstPitch = 64,
			     .dstHeight = 1,
			     .WidthInBytes = 64,
			     .Height = 1,
			     .Depth = 1 };
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	MUST(cudaGraphCreate(&graph, 0));
	COUNTED(graph_copies, cuGraphAddMemcpyNode, (&node, graph, NULL, 0, &up, NULL));
	COUNTED(graph_copies, cuGraphMemcpyNodeSetParams, (node, &up));
	MUST(cudaGraphInstantiate(&exec, graph, 0));
	COUNTED(graph_copies, cuGraphExecMemcpyNodeSetParams, (exec, node, &up, NULL));
	COUNTED(graphs, cuGraphLaunch, (exec, NULL));
}

static void syncs(void)
{
	CUevent event;
	size_t left, total;

	MUST(cuEventCreate(&event, 0));
	EVERY(cuCtxSynchronize, (), did(fn, "sync", 0));
	EVERY(cuCtxSynchronize_v2, (NULL), did(fn, "sync", 0));
	EVERY(cuStreamSynchronize, (NULL), did(fn, "sync", 0));
	EVERY(cuEventSynchronize, (event), did(fn, "sync", 0));
	EVERY(cuMemGetInfo_v2, (&left, &total), did(fn, "ask", 0));
}

void every_driver(void)
{
	CUfunction f = (CUfunction)(void *)registered;
	CUlaunchConfig config;

	memset(&config, 0, sizeof(config));
	MUST(cuInit(0));
	contexts();
	allocations();
	linear();
	shapes();
	batches();
	capture();
	graphs();
	syncs();
	COUNTED(kernels, cuLaunchKernel, (f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	COUNTED(kernels, cuLaunchKernelEx, (&config, f, NULL, NULL));
	COUNTED(kernels, cuLaunchCooperativeKernel, (f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL));
	COUNTED(kernels, cuLaunch, (f));
	COUNTED(kernels, cuLaunchGrid, (f, 1, 1));
	COUNTED(kernels, cuLaunchGridAsync, (f, 1, 1, NULL));
	EVERY(cuLaunchCooperativeKernelMultiDevice, ((CUDA_LAUNCH_PARAMS *)f, 3, 0), every.kernels += 3);
	MUST(cuMemFreeHost(host));
	MUST(cuMemFree_v2(managed));
	MUST(cuMemFreeAsync(dev, NULL));
}
