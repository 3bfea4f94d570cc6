// SPDX-License-Identifier: GPL-2.0-only
/* everyrt.c: the runtime's part of everyfn.c. */
#define _GNU_SOURCE
#include "cuda_api.h"
#include "every.h"

static char *host, *dev, *dev2, *managed;
static cudaArray_t array, array2;
static char symbol[EVERY_BUF];

static void allocations(void)
{
	struct cudaChannelFormatDesc byte = { .x = 8 };
	struct cudaMemLocation device = { .type = cudaMemLocationTypeDevice, .id = 0 };
	struct cudaMemPoolProps props = { .allocType = cudaMemAllocationTypePinned };
	struct cudaPitchedPtr cube;
	cudaMemPool_t pool;
	size_t pitch;
	void *p;

	MUST(cudaMalloc((void **)&dev, EVERY_BUF));
	MUST(cudaMalloc((void **)&dev2, EVERY_BUF));
	MUST(cudaHostAlloc((void **)&host, EVERY_BUF, 0));
	MUST(cudaMallocManaged((void **)&managed, EVERY_BUF, cudaMemAttachGlobal));
	MUST(cudaMallocArray(&array, &byte, EVERY_ROW, 4, 0));
	MUST(cudaMallocArray(&array2, &byte, EVERY_ROW, 4, 0));
	EVERY(cudaMallocHost, (&p, n), did(fn, "host_alloc", n));
	EVERY(cudaHostRegister, (symbol, n, 0), (did(fn, "registered", n), MUST(cudaHostUnregister(symbol))));
	EVERY(cudaMallocAsync, (&p, n, NULL), did(fn, "device", n));
	EVERY(cudaMallocPitch, (&p, &pitch, n, 2), did(fn, "device", pitch * 2));
	EVERY(cudaMalloc3D, (&cube, (struct cudaExtent){ n, 2, 2 }), did(fn, "device", cube.pitch * 4));
	props.location.type = cudaMemLocationTypeHost;
	MUST(cudaMemPoolCreate(&pool, &props));
	EVERY(cudaMallocFromPoolAsync, (&p, n, pool, NULL), did(fn, "pool", n));
#if STANDIN_CUDART >= 13
	EVERY(cudaMemPrefetchAsync, (managed, n, device, 0, NULL), did(fn, "prefetch", n));
	EVERY(cudaMemAdvise, (managed, n, cudaMemAdviseSetReadMostly, device), did(fn, "advise", n));
#else
	EVERY(cudaMemPrefetchAsync, (managed, n, 0, NULL), did(fn, "prefetch", n));
	EVERY(cudaMemPrefetchAsync_v2, (managed, n, device, 0, NULL), did(fn, "prefetch", n));
	EVERY(cudaMemAdvise, (managed, n, cudaMemAdviseSetReadMostly, 0), did(fn, "advise", n));
	EVERY(cudaMemAdvise_v2, (managed, n, cudaMemAdviseSetReadMostly, device), did(fn, "advise", n));
#endif
	EVERY(cudaHostGetDevicePointer, (&p, host, 0), did(fn, "device_ptr", 0));
	{
		void *ptrs[] = { managed };
		size_t size, idx = 0;

		EVERY(cudaMemPrefetchBatchAsync, (ptrs, (size = n, &size), 1, &device, &idx, 1, 0, NULL),
		      did(fn, "prefetch", n));
#if STANDIN_CUDART >= 13
		EVERY(cudaMemDiscardAndPrefetchBatchAsync, (ptrs, (size = n, &size), 1, &device, &idx, 1, 0, NULL),
		      did(fn, "prefetch", n));
#endif
	}
}

static struct cudaMemcpy3DParms cube_of(void *dst, void *src, size_t width, enum cudaMemcpyKind kind)
{
	return (struct cudaMemcpy3DParms){
		.dstPtr = { dst, EVERY_ROW, EVERY_ROW, 2 },
		.srcPtr = { src, EVERY_ROW, EVERY_ROW, 2 },
		.extent = { width, 2, 1 },
		.kind = kind,
	};
}

static void linear(void)
{
	enum cudaMemcpyKind up = cudaMemcpyHostToDevice, down = cudaMemcpyDeviceToHost, on = cudaMemcpyDeviceToDevice;
	struct cudaMemcpy3DParms cube;
	struct cudaMemcpy3DPeerParms peer = { .dstPtr = { dev2, EVERY_ROW, EVERY_ROW, 2 },
					      .srcPtr = { dev, EVERY_ROW, EVERY_ROW, 2 } };

	TO_DEV(cudaMemcpy, (dev, host, n, up));
	FROM_DEV(cudaMemcpyAsync, (host, dev, n, down, NULL));
	TO_DEV_2D(cudaMemcpy2D, (dev, EVERY_ROW, host, EVERY_ROW, n, 2, up));
	FROM_DEV_2D(cudaMemcpy2DAsync, (host, EVERY_ROW, dev, EVERY_ROW, n, 2, down, NULL));
	TO_DEV_2D(cudaMemcpy3D, ((cube = cube_of(dev, host, n, up), &cube)));
	FROM_DEV_2D(cudaMemcpy3DAsync, ((cube = cube_of(host, dev, n, down), &cube), NULL));
	ON_DEV(cudaMemcpyPeer, (dev2, 1, dev, 0, n));
	ON_DEV(cudaMemcpyPeerAsync, (dev2, 1, dev, 0, n, NULL));
	ON_DEV_2D(cudaMemcpy3DPeer, ((peer.extent = (struct cudaExtent){ n, 2, 1 }, &peer)));
	ON_DEV_2D(cudaMemcpy3DPeerAsync, ((peer.extent = (struct cudaExtent){ n, 2, 1 }, &peer), NULL));
	TO_DEV(cudaMemcpyToSymbol, (symbol, host, n, 8, up));
	TO_DEV(cudaMemcpyToSymbolAsync, (symbol, host, n, 8, up, NULL));
	FROM_DEV(cudaMemcpyFromSymbol, (host, symbol, n, 8, down));
	FROM_DEV(cudaMemcpyFromSymbolAsync, (host, symbol, n, 8, down, NULL));
	ON_DEV(cudaMemcpy, (dev2, dev, n, on));
}

static void arrays(void)
{
	enum cudaMemcpyKind up = cudaMemcpyHostToDevice, down = cudaMemcpyDeviceToHost, on = cudaMemcpyDeviceToDevice;

	TO_DEV(cudaMemcpyToArray, (array, 0, 0, host, n, up));
	TO_DEV(cudaMemcpyToArrayAsync, (array, 0, 0, host, n, up, NULL));
	FROM_DEV(cudaMemcpyFromArray, (host, array, 0, 0, n, down));
	FROM_DEV(cudaMemcpyFromArrayAsync, (host, array, 0, 0, n, down, NULL));
	ON_DEV(cudaMemcpyArrayToArray, (array2, 0, 0, array, 0, 0, n, on));
	TO_DEV_2D(cudaMemcpy2DToArray, (array, 0, 0, host, EVERY_ROW, n, 2, up));
	TO_DEV_2D(cudaMemcpy2DToArrayAsync, (array, 0, 0, host, EVERY_ROW, n, 2, up, NULL));
	FROM_DEV_2D(cudaMemcpy2DFromArray, (host, EVERY_ROW, array, 0, 0, n, 2, down));
	FROM_DEV_2D(cudaMemcpy2DFromArrayAsync, (host, EVERY_ROW, array, 0, 0, n, 2, down, NULL));
	ON_DEV_2D(cudaMemcpy2DArrayToArray, (array2, 0, 0, array, 0, 0, n, 2, on));
}

static void batches(void)
{
	struct cudaMemcpyAttributes attrs = { .srcAccessOrder = cudaMemcpySrcAccessOrderStream };
	struct cudaMemcpy3DBatchOp op = { .srcAccessOrder = cudaMemcpySrcAccessOrderStream };
	size_t size, idx = 0;
	void *dst = dev;
#if STANDIN_CUDART >= 13
	const void *src = host;

	TO_DEV(cudaMemcpyBatchAsync, (&dst, &src, (size = n, &size), 1, &attrs, &idx, 1, NULL));
#else
	void *src = host;
	size_t failed;

	TO_DEV(cudaMemcpyBatchAsync, (&dst, &src, (size = n, &size), 1, &attrs, &idx, 1, &failed, NULL));
#endif
	op.src.type = op.dst.type = cudaMemcpyOperandTypePointer;
	op.src.op.ptr.ptr = dev;
	op.dst.op.ptr.ptr = host;
#if STANDIN_CUDART >= 13
	FROM_DEV_2D(cudaMemcpy3DBatchAsync, (1, (op.extent = (struct cudaExtent){ n, 2, 1 }, &op), 0, NULL));
#else
	FROM_DEV_2D(cudaMemcpy3DBatchAsync, (1, (op.extent = (struct cudaExtent){ n, 2, 1 }, &op), &failed, 0, NULL));
#endif
}

/* Makes a copy in `stream`, which is being captured. */
static void captured(cudaStream_t stream)
{
	COUNTED(captured, cudaMemcpyAsync, (dev, host, n, cudaMemcpyHostToDevice, stream));
}

static void capture(void)
{
	cudaStream_t stream, other;
	cudaGraph_t graph;
	cudaEvent_t event;

	MUST(cudaStreamCreate(&stream));
	MUST(cudaStreamCreate(&other));
	MUST(cudaEventCreate(&event));
	MUST(cudaGraphCreate(&graph, 0));
	EVERY(cudaStreamBeginCapture, (stream, cudaStreamCaptureModeGlobal),
	      (captured(stream), MUST(cudaStreamEndCapture(stream, &graph))));
	EVERY(cudaStreamBeginCaptureToGraph, (stream, graph, NULL, NULL, 0, cudaStreamCaptureModeGlobal),
	      (captured(stream), MUST(cudaStreamEndCapture(stream, &graph))));
	MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	EVERY(cudaEventRecordWithFlags, (event, stream, 0), MUST(cudaStreamWaitEvent(other, event, 0)));
	captured(other);
	MUST(cudaStreamEndCapture(stream, &graph));
	TO_DEV(cudaMemcpyAsync, (dev, host, n, cudaMemcpyHostToDevice, stream));
	TO_DEV(cudaMemcpyAsync, (dev, host, n, cudaMemcpyHostToDevice, other));
}

static void graphs(void)
{
	struct cudaMemcpy3DParms cube = cube_of(dev, host, 64, cudaMemcpyHostToDevice);
	enum cudaMemcpyKind up = cudaMemcpyHostToDevice, down = cudaMemcpyDeviceToHost;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	MUST(cudaGraphCreate(&graph, 0));
	COUNTED(graph_copies, cudaGraphAddMemcpyNode, (&node, graph, NULL, 0, &cube));
	COUNTED(graph_copies, cudaGraphAddMemcpyNode1D, (&node, graph, NULL, 0, dev, host, n, up));
	COUNTED(graph_copies, cudaGraphAddMemcpyNodeToSymbol, (&node, graph, NULL, 0, symbol, host, n, 0, up));
	COUNTED(graph_copies, cudaGraphAddMemcpyNodeFromSymbol, (&node, graph, NULL, 0, host, symbol, n, 0, down));
	COUNTED(graph_copies, cudaGraphMemcpyNodeSetParams, (node, &cube));
	COUNTED(graph_copies, cudaGraphMemcpyNodeSetParams1D, (node, dev, host, n, up));
	COUNTED(graph_copies, cudaGraphMemcpyNodeSetParamsToSymbol, (node, symbol, host, n, 0, up));
	COUNTED(graph_copies, cudaGraphMemcpyNodeSetParamsFromSymbol, (node, host, symbol, n, 0, down));
	MUST(cudaGraphInstantiate(&exec, graph, 0));
	COUNTED(graph_copies, cudaGraphExecMemcpyNodeSetParams, (exec, node, &cube));
	COUNTED(graph_copies, cudaGraphExecMemcpyNodeSetParams1D, (exec, node, dev, host, n, up));
	COUNTED(graph_copies, cudaGraphExecMemcpyNodeSetParamsToSymbol, (exec, node, symbol, host, n, 0, up));
	COUNTED(graph_copies, cudaGraphExecMemcpyNodeSetParamsFromSymbol, (exec, node, host, symbol, n, 0, down));
	COUNTED(graphs, cudaGraphLaunch, (exec, NULL));
}

static void syncs(void)
{
	cudaEvent_t event;
	size_t left, total;

	MUST(cudaEventCreate(&event));
	EVERY(cudaDeviceSynchronize, (), did(fn, "sync", 0));
	EVERY(cudaStreamSynchronize, (NULL), did(fn, "sync", 0));
	EVERY(cudaEventSynchronize, (event), did(fn, "sync", 0));
	EVERY(cudaMemGetInfo, (&left, &total), did(fn, "ask", 0));
}

void every_runtime(void)
{
	cudaLaunchConfig_t config = { .gridDim = { 1, 1, 1 }, .blockDim = { 1, 1, 1 } };
	dim3 one = { 1, 1, 1 };

	allocations();
	linear();
	arrays();
	batches();
	capture();
	graphs();
	syncs();
	COUNTED(kernels, cudaLaunchKernel, (symbol, one, one, NULL, 0, NULL));
	COUNTED(kernels, cudaLaunchCooperativeKernel, (symbol, one, one, NULL, 0, NULL));
	COUNTED(kernels, cudaLaunchKernelExC, (&config, symbol, NULL));
#if STANDIN_CUDART < 13
	EVERY(cudaLaunchCooperativeKernelMultiDevice, ((void *)symbol, 3, 0), every.kernels += 3);
#endif
	MUST(cudaFreeHost(host));
	MUST(cudaFree(managed));
	MUST(cudaFreeAsync(dev, NULL));
}
