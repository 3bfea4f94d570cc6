// SPDX-License-Identifier: GPL-2.0-only
/* drv_mem.c: memory of the device, memory that it shares with the host, and copies. */
#include "drv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

PUBLIC CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n)
{
	CUcontext ctx;
	int err = drv_enter(&ctx);

	if (err)
		return err;
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	*p = gpu_mem_alloc(n, ctx);
	return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

PUBLIC CUresult cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width, size_t height, unsigned int element)
{
	(void)element;
	*pitch = (width + 511) / 512 * 512;
	return cuMemAlloc_v2(p, *pitch * height);
}

PUBLIC CUresult cuMemFree_v2(CUdeviceptr p)
{
	CUcontext ctx;
	struct gpu_range r;
	int err = drv_enter(&ctx);

	if (err || !p)
		return err;
	drv_ctx_wait(ctx);
	if (!gpu_mem_find(p, &r) || r.dev != p || (r.kind != MEM_DEVICE && r.kind != MEM_MANAGED))
		return CUDA_ERROR_INVALID_VALUE;
	gpu_mem_free(p, NULL);
	if (r.kind == MEM_MANAGED)
		munmap(r.host, r.size);
	return CUDA_SUCCESS;
}

static int alloc_async(CUdeviceptr *p, size_t n, CUstream s, bool ptsz)
{
	CUcontext ctx;
	int err = drv_enter(&ctx);

	if (!err && !drv_stream(ctx, s, ptsz))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!err)
		err = cuMemAlloc_v2(p, n);
	return err;
}

static int free_async(CUdeviceptr p, CUstream s, bool ptsz)
{
	CUcontext ctx;
	struct drv_work *w;
	int err = drv_enter(&ctx);

	if (err)
		return err;
	s = drv_stream(ctx, s, ptsz);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	w = drv_work_new(ctx, WORK_FREE);
	w->dev = p;
	return drv_submit(s, w, false);
}

PUBLIC CUresult cuMemAllocAsync(CUdeviceptr *p, size_t n, CUstream s)
{
	return alloc_async(p, n, s, false);
}

PUBLIC CUresult cuMemAllocAsync_ptsz(CUdeviceptr *p, size_t n, CUstream s)
{
	return alloc_async(p, n, s, true);
}

PUBLIC CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s)
{
	return free_async(p, s, false);
}

PUBLIC CUresult cuMemFreeAsync_ptsz(CUdeviceptr p, CUstream s)
{
	return free_async(p, s, true);
}

PUBLIC CUresult cuMemGetInfo_v2(size_t *free_, size_t *total)
{
	*total = 16ull << 30;
	*free_ = *total - gpu_mem_used();
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr p)
{
	struct gpu_range r;

	if (!gpu_mem_find(p, &r))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = r.dev;
	if (size)
		*size = r.size;
	return CUDA_SUCCESS;
}

/* Host memory that has the same address on the device. */
static int host_new(void **p, size_t n, enum gpu_mem_kind kind, unsigned int flags)
{
	size_t pages = (n + 4095) / 4096 * 4096;
	CUcontext ctx;
	int err = drv_enter(&ctx);

	if (err)
		return err;
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	*p = mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (*p == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (gpu_mem_map(*p, n, kind, flags, true, ctx))
		return CUDA_SUCCESS;
	munmap(*p, pages);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

PUBLIC CUresult cuMemHostAlloc(void **p, size_t n, unsigned int flags)
{
	return host_new(p, n, MEM_HOST, flags);
}

PUBLIC CUresult cuMemAllocHost_v2(void **p, size_t n)
{
	return host_new(p, n, MEM_HOST, 0);
}

PUBLIC CUresult cuMemAllocManaged(CUdeviceptr *p, size_t n, unsigned int flags)
{
	void *host = NULL;
	int err = host_new(&host, n, MEM_MANAGED, flags);

	if (!err)
		*p = (uintptr_t)host;
	return err;
}

PUBLIC CUresult cuMemFreeHost(void *p)
{
	CUcontext ctx;
	struct gpu_range r;
	int err = drv_enter(&ctx);

	if (err || !p)
		return err;
	drv_ctx_wait(ctx);
	if (!gpu_mem_find_host(p, &r) || r.host != p || r.kind != MEM_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	gpu_mem_free(r.dev, NULL);
	munmap(r.host, (r.size + 4095) / 4096 * 4096);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuMemHostRegister_v2(void *p, size_t n, unsigned int flags)
{
	CUcontext ctx;
	struct gpu_range r;
	int err = drv_enter(&ctx);

	if (err)
		return err;
	if (!p || !n)
		return CUDA_ERROR_INVALID_VALUE;
	if (gpu_mem_find_host(p, &r) || gpu_mem_find_host((char *)p + n - 1, &r))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	return gpu_mem_map(p, n, MEM_REGISTERED, flags, drv_env_long("GPUSIM_HOSTPTR", 1) != 0, ctx)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

PUBLIC CUresult cuMemHostUnregister(void *p)
{
	CUcontext ctx;
	struct gpu_range r;
	int err = drv_enter(&ctx);

	if (err)
		return err;
	if (!gpu_mem_find_host(p, &r) || r.host != p || r.kind != MEM_REGISTERED)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	drv_ctx_wait(ctx);
	gpu_mem_free(r.dev, NULL);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *dev, void *p, unsigned int flags)
{
	struct gpu_range r;

	(void)flags;
	if (!gpu_mem_find_host(p, &r))
		return CUDA_ERROR_INVALID_VALUE;
	*dev = r.dev + (uint64_t)((char *)p - r.host);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuMemHostGetFlags(unsigned int *flags, void *p)
{
	struct gpu_range r;

	if (!gpu_mem_find_host(p, &r))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = r.flags;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attr, CUdeviceptr p)
{
	struct gpu_range r;

	if (!gpu_mem_find(p, &r) && !gpu_mem_find_host((void *)(uintptr_t)p, &r))
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)attr) {
	case 1:
		*(CUcontext *)value = r.owner;
		return CUDA_SUCCESS;
	case 2: /* host 1, device 2 */
		*(unsigned int *)value = r.kind == MEM_HOST || r.kind == MEM_REGISTERED ? 1 : 2;
		return CUDA_SUCCESS;
	case 3:
		*(CUdeviceptr *)value = p;
		return CUDA_SUCCESS;
	case 4:
		if (r.kind == MEM_DEVICE)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)value = r.host + (p - r.dev);
		return CUDA_SUCCESS;
	case 8:
		*(unsigned int *)value = r.kind == MEM_MANAGED;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/*
 * Copies
 * ------------------------------------------------------------------------------------------------
 */

static int copy(void *dst, const void *src, size_t n, CUstream s, bool ptsz, bool wait)
{
	CUcontext ctx;
	struct drv_work *w;
	int err = drv_enter(&ctx);

	if (err)
		return err;
	s = drv_stream(ctx, s, ptsz);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (n && (!dst || !src))
		return CUDA_ERROR_INVALID_VALUE;
	w = drv_work_new(ctx, WORK_COPY);
	w->dst = dst;
	w->src = src;
	w->n = n;
	return drv_submit(s, w, wait);
}

static int fill(CUdeviceptr p, unsigned int value, unsigned int size, size_t n, CUstream s, bool ptsz, bool wait)
{
	CUcontext ctx;
	struct drv_work *w;
	int err = drv_enter(&ctx);
	void *dst = gpu_mem_host(p, n * size);

	if (err)
		return err;
	s = drv_stream(ctx, s, ptsz);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!dst)
		return CUDA_ERROR_INVALID_VALUE;
	w = drv_work_new(ctx, WORK_SET);
	w->dst = dst;
	w->value = value;
	w->size = size;
	w->n = n;
	return drv_submit(s, w, wait);
}

#define DEV(p) gpu_mem_host(p, n)

/*
 * D(suffixes of the normal form, of the asynchronous one, of the one for the thread's own stream)
 */
#define COPIES(name, dtype, stype, to, from)                                            \
	PUBLIC CUresult name##_v2(dtype dst, stype src, size_t n)                       \
	{                                                                               \
		return copy(to, from, n, NULL, false, true);                            \
	}                                                                               \
	PUBLIC CUresult name##_v2_ptds(dtype dst, stype src, size_t n)                  \
	{                                                                               \
		return copy(to, from, n, NULL, true, true);                             \
	}                                                                               \
	PUBLIC CUresult name##Async_v2(dtype dst, stype src, size_t n, CUstream s)      \
	{                                                                               \
		return copy(to, from, n, s, false, false);                              \
	}                                                                               \
	PUBLIC CUresult name##Async_v2_ptsz(dtype dst, stype src, size_t n, CUstream s) \
	{                                                                               \
		return copy(to, from, n, s, true, false);                               \
	}
COPIES(cuMemcpyHtoD, CUdeviceptr, const void *, DEV(dst), src)
COPIES(cuMemcpyDtoH, void *, CUdeviceptr, dst, DEV(src))
COPIES(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, DEV(dst), DEV(src))

PUBLIC CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return copy(DEV(dst), DEV(src), n, NULL, false, true);
}

PUBLIC CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)
{
	return copy(DEV(dst), DEV(src), n, s, false, false);
}

PUBLIC CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)
{
	return copy(DEV(dst), DEV(src), n, s, true, false);
}

PUBLIC CUresult cuMemsetD8_v2(CUdeviceptr p, unsigned char v, size_t n)
{
	return fill(p, v, 1, n, NULL, false, true);
}

PUBLIC CUresult cuMemsetD16_v2(CUdeviceptr p, unsigned short v, size_t n)
{
	return fill(p, v, 2, n, NULL, false, true);
}

PUBLIC CUresult cuMemsetD32_v2(CUdeviceptr p, unsigned int v, size_t n)
{
	return fill(p, v, 4, n, NULL, false, true);
}

PUBLIC CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char v, size_t n, CUstream s)
{
	return fill(p, v, 1, n, s, false, false);
}

PUBLIC CUresult cuMemsetD32Async(CUdeviceptr p, unsigned int v, size_t n, CUstream s)
{
	return fill(p, v, 4, n, s, false, false);
}
