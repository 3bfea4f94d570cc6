// SPDX-License-Identifier: GPL-2.0-only
/*
 * wrap_rt.c: the names of the runtime that this library intercepts. Built without CUDA's headers: only
 * the sizes of enumerations and handles matter. cudaPointerGetAttributes is not intercepted. For
 * pageable memory it says so; for pinned memory it returns the device pointer, which does not count as
 * requesting it, because programs call it to check whether memory is pinned.
 */
#include "preload/wrap.h"

WRAP(cudaHostAlloc, (void **p, size_t size, unsigned int flags), ttmon_pin_rt, host_alloc,
     ttmon_pin_alloc(api, p, size, flags))
WRAP(cudaMallocHost, (void **p, size_t size), ttmon_pin_rt, host_alloc, ttmon_pin_alloc(api, p, size, 0))
WRAP(cudaFreeHost, (void *p), ttmon_pin_rt, host_free, ttmon_pin_free(api, p))
WRAP(cudaHostRegister, (void *p, size_t size, unsigned int flags), ttmon_pin_rt, reg,
     ttmon_pin_register(api, p, size, flags))
WRAP(cudaHostUnregister, (void *p), ttmon_pin_rt, unreg, ttmon_pin_unregister(api, p))
WRAP(cudaHostGetDevicePointer, (void **dev, void *p, unsigned int flags), ttmon_pin_rt, device_ptr,
     ttmon_pin_device_ptr(api, dev, p, flags))
WRAP(cudaHostGetFlags, (unsigned int *flags, void *p), ttmon_pin_rt, flags, ttmon_pin_flags(api, flags, p))

FORWARD(cudaDeviceReset, (void), (), ttmon_pin_reset(true), )
FORWARD(cudaThreadExit, (void), (), ttmon_pin_reset(true), )
FORWARD(cudaStreamDestroy, (void *stream), (stream), ttmon_pin_stream_destroyed(), )
FORWARD(cudaDeviceSynchronize, (void), (), ,
	if (ttmon_pin_conf()->at_device_sync) ttmon_pin_checkpoint("cudaDeviceSynchronize"))

#define STREAM_SYNC(name)                         \
	FORWARD(name, (void *stream), (stream), , \
		if (ttmon_pin_conf()->at_stream_sync) ttmon_pin_checkpoint("cudaStreamSynchronize"))
STREAM_SYNC(cudaStreamSynchronize)
STREAM_SYNC(cudaStreamSynchronize_ptsz)

/* ---- copies that are in progress when the call returns ---- */

struct pitched {
	void *ptr;
	size_t pitch, xsize, ysize;
};

/* struct cudaMemcpy3DParms */
struct parms_3d {
	void *src_array;
	size_t src_pos[3];
	struct pitched src;
	void *dst_array;
	size_t dst_pos[3];
	struct pitched dst;
	size_t extent[3];
	int kind;
};

COPY(cudaMemcpyAsync, (void *dst, const void *src, size_t n, int kind, void *stream), (dst, src, n, kind, stream), dst,
     src)
COPY(cudaMemcpy2DAsync,
     (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, int kind, void *stream),
     (dst, dpitch, src, spitch, width, height, kind, stream), dst, src)
COPY(cudaMemcpy3DAsync, (const struct parms_3d *p, void *stream), (p, stream), p->dst.ptr, p->src.ptr)
COPY(cudaMemcpyToSymbolAsync, (const void *symbol, const void *src, size_t n, size_t offset, int kind, void *stream),
     (symbol, src, n, offset, kind, stream), NULL, src)
COPY(cudaMemcpyFromSymbolAsync, (void *dst, const void *symbol, size_t n, size_t offset, int kind, void *stream),
     (dst, symbol, n, offset, kind, stream), dst, NULL)
COPY(cudaMemcpyToArrayAsync, (void *dst, size_t w, size_t h, const void *src, size_t n, int kind, void *stream),
     (dst, w, h, src, n, kind, stream), NULL, src)
COPY(cudaMemcpyFromArrayAsync, (void *dst, void *src, size_t w, size_t h, size_t n, int kind, void *stream),
     (dst, src, w, h, n, kind, stream), dst, NULL)
COPY(cudaMemcpy2DToArrayAsync,
     (void *dst, size_t w, size_t h, const void *src, size_t pitch, size_t width, size_t height, int kind,
      void *stream),
     (dst, w, h, src, pitch, width, height, kind, stream), NULL, src)
COPY(cudaMemcpy2DFromArrayAsync,
     (void *dst, size_t pitch, void *src, size_t w, size_t h, size_t width, size_t height, int kind, void *stream),
     (dst, pitch, src, w, h, width, height, kind, stream), dst, NULL)

COPY(cudaMemsetAsync, (void *p, int value, size_t n, void *stream), (p, value, n, stream), p, NULL)

SYNC_COPY(cudaMemcpy)
SYNC_COPY(cudaMemcpy2D)
SYNC_COPY(cudaMemcpy3D)
SYNC_COPY(cudaMemcpyToSymbol)
SYNC_COPY(cudaMemcpyFromSymbol)
SYNC_COPY(cudaMemcpyToArray)
SYNC_COPY(cudaMemcpyFromArray)
SYNC_COPY(cudaMemcpy2DToArray)
SYNC_COPY(cudaMemcpy2DFromArray)

BATCH(cudaMemcpyBatchAsync)
BATCH(cudaMemcpyBatchAsync_ptsz)
BATCH(cudaMemcpy3DBatchAsync)
BATCH(cudaMemcpy3DBatchAsync_ptsz)
BATCH(cudaGraphAddNode)
BATCH(cudaGraphAddNode_v2)
BATCH(cudaGraphNodeSetParams)
BATCH(cudaGraphExecNodeSetParams)
BATCH(cudaGraphAddMemcpyNode)
BATCH(cudaGraphAddMemcpyNode1D)
BATCH(cudaGraphAddMemcpyNodeToSymbol)
BATCH(cudaGraphAddMemcpyNodeFromSymbol)
BATCH(cudaGraphMemcpyNodeSetParams)
BATCH(cudaGraphMemcpyNodeSetParams1D)
BATCH(cudaGraphMemcpyNodeSetParamsToSymbol)
BATCH(cudaGraphMemcpyNodeSetParamsFromSymbol)
BATCH(cudaGraphExecMemcpyNodeSetParams)
BATCH(cudaGraphExecMemcpyNodeSetParams1D)
BATCH(cudaGraphExecMemcpyNodeSetParamsToSymbol)
BATCH(cudaGraphExecMemcpyNodeSetParamsFromSymbol)
FORWARD(cudaGraphCreate, (void **graph, unsigned int flags), (graph, flags), ttmon_pin_unfollowed(), )
