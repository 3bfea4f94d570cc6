// SPDX-License-Identifier: GPL-2.0-only
/*
 * wrap_drv.c: the driver's names, for programs that are linked with libcuda.so.1. See wrap_rt.c.
 * Functions that a program gets from cuGetProcAddress are not intercepted.
 */
#include "preload/wrap.h"

WRAP(cuMemHostAlloc, (void **p, size_t size, unsigned int flags), ttmon_pin_drv, host_alloc,
     ttmon_pin_alloc(api, p, size, flags))
WRAP(cuMemAllocHost_v2, (void **p, size_t size), ttmon_pin_drv, host_alloc, ttmon_pin_alloc(api, p, size, 0))
WRAP(cuMemFreeHost, (void *p), ttmon_pin_drv, host_free, ttmon_pin_free(api, p))
WRAP(cuMemHostRegister_v2, (void *p, size_t size, unsigned int flags), ttmon_pin_drv, reg,
     ttmon_pin_register(api, p, size, flags))
WRAP(cuMemHostUnregister, (void *p), ttmon_pin_drv, unreg, ttmon_pin_unregister(api, p))
WRAP(cuMemHostGetDevicePointer_v2, (void **dev, void *p, unsigned int flags), ttmon_pin_drv, device_ptr,
     ttmon_pin_device_ptr(api, dev, p, flags))
WRAP(cuMemHostGetFlags, (unsigned int *flags, void *p), ttmon_pin_drv, flags, ttmon_pin_flags(api, flags, p))

FORWARD(cuDevicePrimaryCtxReset, (int dev), (dev), ttmon_pin_reset(true), )
FORWARD(cuDevicePrimaryCtxReset_v2, (int dev), (dev), ttmon_pin_reset(true), )
/* The last release frees all memory of the context; which one is the last is not known. */
FORWARD(cuDevicePrimaryCtxRelease, (int dev), (dev), ttmon_pin_reset(false), )
FORWARD(cuDevicePrimaryCtxRelease_v2, (int dev), (dev), ttmon_pin_reset(false), )
FORWARD(cuCtxDestroy, (void *ctx), (ctx), ttmon_pin_reset(true), )
FORWARD(cuCtxDestroy_v2, (void *ctx), (ctx), ttmon_pin_reset(true), )
FORWARD(cuStreamDestroy_v2, (void *stream), (stream), ttmon_pin_stream_destroyed(), )

/* CUDA_MEMCPY2D and CUDA_MEMCPY3D: the members with the host's pointers. */
struct copy_2d {
	size_t src_pos[2];
	unsigned int src_type;
	const void *src;
	uint64_t src_device;
	void *src_array;
	size_t src_pitch, dst_pos[2];
	unsigned int dst_type;
	void *dst;
};
struct copy_3d {
	size_t src_pos[4];
	unsigned int src_type;
	const void *src;
	uint64_t src_device;
	void *src_array, *reserved0;
	size_t src_pitch, src_height, dst_pos[4];
	unsigned int dst_type;
	void *dst;
};
#define TYPE_HOST    1
#define TYPE_UNIFIED 4

/*
 * Returns the pointer of one side: for unified memory the device field has it, 8 bytes behind the
 * host's.
 */
static const void *end_of(unsigned int type, void *const *host)
{
	return type == TYPE_HOST ? host[0] : type == TYPE_UNIFIED ? host[1] : NULL;
}

#define END(p, end) end_of((p)->end##_type, (void *const *)&(p)->end)

COPY(cuMemcpyAsync, (uint64_t dst, uint64_t src, size_t n, void *stream), (dst, src, n, stream), (void *)dst,
     (void *)src)
COPY(cuMemcpyHtoDAsync_v2, (uint64_t dst, const void *src, size_t n, void *stream), (dst, src, n, stream), NULL, src)
COPY(cuMemcpyDtoHAsync_v2, (void *dst, uint64_t src, size_t n, void *stream), (dst, src, n, stream), dst, NULL)
COPY(cuMemcpyHtoAAsync_v2, (void *dst, size_t offset, const void *src, size_t n, void *stream),
     (dst, offset, src, n, stream), NULL, src)
COPY(cuMemcpyAtoHAsync_v2, (void *dst, void *src, size_t offset, size_t n, void *stream), (dst, src, offset, n, stream),
     dst, NULL)
COPY(cuMemcpy2DAsync_v2, (const struct copy_2d *p, void *stream), (p, stream), END(p, src), END(p, dst))
COPY(cuMemcpy3DAsync_v2, (const struct copy_3d *p, void *stream), (p, stream), END(p, src), END(p, dst))

SYNC_COPY(cuMemcpy)
SYNC_COPY(cuMemcpyHtoD_v2)
SYNC_COPY(cuMemcpyDtoH_v2)
SYNC_COPY(cuMemcpyHtoA_v2)
SYNC_COPY(cuMemcpyAtoH_v2)
SYNC_COPY(cuMemcpy2D_v2)
SYNC_COPY(cuMemcpy2DUnaligned_v2)
SYNC_COPY(cuMemcpy3D_v2)

BATCH(cuMemcpyBatchAsync)
BATCH(cuMemcpyBatchAsync_ptsz)
BATCH(cuMemcpyBatchAsync_v2)
BATCH(cuMemcpyBatchAsync_v2_ptsz)
BATCH(cuMemcpy3DBatchAsync)
BATCH(cuMemcpy3DBatchAsync_ptsz)
BATCH(cuMemcpy3DBatchAsync_v2)
BATCH(cuMemcpy3DBatchAsync_v2_ptsz)
BATCH(cuGraphAddNode)
BATCH(cuGraphAddNode_v2)
BATCH(cuGraphNodeSetParams)
BATCH(cuGraphExecNodeSetParams)
BATCH(cuGraphAddMemcpyNode)
BATCH(cuGraphMemcpyNodeSetParams)
BATCH(cuGraphExecMemcpyNodeSetParams)
FORWARD(cuGraphCreate, (void **graph, unsigned int flags), (graph, flags), ttmon_pin_unfollowed(), )
