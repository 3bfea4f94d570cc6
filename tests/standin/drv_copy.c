// SPDX-License-Identifier: GPL-2.0-only
/* drv_copy.c: the copies of the stand-in libcuda.so.1, and cuGetProcAddress. See drv.c. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#include "cu_api.h"
#include "api.h"

#define API_RESULT CUresult

static void *dev(CUdeviceptr p)
{
	return (void *)(uintptr_t)p;
}

static int copy_now(void *dst, const void *src, size_t n)
{
	struct model_copy c = model_linear(dst, src, n);

	return model_copy_now(&c);
}

static int copy_in(void *dst, const void *src, size_t n, CUstream stream)
{
	struct model_copy c = model_linear(dst, src, n);

	return model_copy_stream(&c, stream);
}

API(cuMemsetD8_v2, (CUdeviceptr p, unsigned char value, size_t n), (p, value, n))
{
	ENTER("cuMemsetD8_v2");
	return model_set(dev(p), value, n);
}

API_PTDS(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t n), (dst, src, n))
{
	ENTER("cuMemcpy");
	return copy_now(dev(dst), dev(src), n);
}

API_PTSZ(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream), (dst, src, n, stream))
{
	ENTER("cuMemcpyAsync");
	return copy_in(dev(dst), dev(src), n, stream);
}

API_PTDS(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void *src, size_t n), (dst, src, n))
{
	ENTER("cuMemcpyHtoD_v2");
	return copy_now(dev(dst), src, n);
}

API_PTSZ(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t n, CUstream stream), (dst, src, n, stream))
{
	ENTER("cuMemcpyHtoDAsync_v2");
	return copy_in(dev(dst), src, n, stream);
}

API_PTDS(cuMemcpyDtoH_v2, (void *dst, CUdeviceptr src, size_t n), (dst, src, n))
{
	ENTER("cuMemcpyDtoH_v2");
	return copy_now(dst, dev(src), n);
}

API_PTSZ(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t n, CUstream stream), (dst, src, n, stream))
{
	ENTER("cuMemcpyDtoHAsync_v2");
	return copy_in(dst, dev(src), n, stream);
}

API_PTDS(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t n), (dst, src, n))
{
	ENTER("cuMemcpyDtoD_v2");
	return copy_now(dev(dst), dev(src), n);
}

API_PTSZ(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream), (dst, src, n, stream))
{
	ENTER("cuMemcpyDtoDAsync_v2");
	return copy_in(dev(dst), dev(src), n, stream);
}

API_PTDS(cuMemcpyHtoA_v2, (CUarray dst, size_t offset, const void *src, size_t n), (dst, offset, src, n))
{
	ENTER("cuMemcpyHtoA_v2");
	return copy_now(model_array(dst, offset, 0, NULL), src, n);
}

API_PTSZ(cuMemcpyHtoAAsync_v2, (CUarray dst, size_t offset, const void *src, size_t n, CUstream stream),
	 (dst, offset, src, n, stream))
{
	ENTER("cuMemcpyHtoAAsync_v2");
	return copy_in(model_array(dst, offset, 0, NULL), src, n, stream);
}

API_PTDS(cuMemcpyAtoH_v2, (void *dst, CUarray src, size_t offset, size_t n), (dst, src, offset, n))
{
	ENTER("cuMemcpyAtoH_v2");
	return copy_now(dst, model_array(src, offset, 0, NULL), n);
}

API_PTSZ(cuMemcpyAtoHAsync_v2, (void *dst, CUarray src, size_t offset, size_t n, CUstream stream),
	 (dst, src, offset, n, stream))
{
	ENTER("cuMemcpyAtoHAsync_v2");
	return copy_in(dst, model_array(src, offset, 0, NULL), n, stream);
}

API_PTDS(cuMemcpyAtoD_v2, (CUdeviceptr dst, CUarray src, size_t offset, size_t n), (dst, src, offset, n))
{
	ENTER("cuMemcpyAtoD_v2");
	return copy_now(dev(dst), model_array(src, offset, 0, NULL), n);
}

API_PTDS(cuMemcpyDtoA_v2, (CUarray dst, size_t offset, CUdeviceptr src, size_t n), (dst, offset, src, n))
{
	ENTER("cuMemcpyDtoA_v2");
	return copy_now(model_array(dst, offset, 0, NULL), dev(src), n);
}

API_PTDS(cuMemcpyAtoA_v2, (CUarray dst, size_t doffset, CUarray src, size_t soffset, size_t n),
	 (dst, doffset, src, soffset, n))
{
	ENTER("cuMemcpyAtoA_v2");
	return copy_now(model_array(dst, doffset, 0, NULL), model_array(src, soffset, 0, NULL), n);
}

/* One side of a structured copy. In 2D, z is 0 and height is 1. */
struct side {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t x, y, z, pitch, height;
};

static const char *side_start(struct side *s, size_t rows, size_t *slice)
{
	const char *base;

	if (s->type == CU_MEMORYTYPE_ARRAY) {
		base = model_array(s->array, 0, 0, &s->pitch);
		s->height = rows;
	} else {
		base = s->type == CU_MEMORYTYPE_HOST ? s->host : dev(s->device);
	}
	*slice = s->pitch * (s->height ? s->height : rows);
	return base ? base + s->z * *slice + s->y * s->pitch + s->x : NULL;
}

static struct model_copy build(struct side dst, struct side src, size_t width, size_t rows, size_t slices)
{
	struct model_copy c = { .width = width, .rows = rows, .slices = slices };

	c.dst = (void *)(uintptr_t)side_start(&dst, rows, &c.dslice);
	c.src = side_start(&src, rows, &c.sslice);
	c.dpitch = dst.pitch;
	c.spitch = src.pitch;
	return c;
}

static struct model_copy from_2d(const CUDA_MEMCPY2D *p)
{
	return build((struct side){ p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstXInBytes, p->dstY, 0,
				    p->dstPitch, 1 },
		     (struct side){ p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcXInBytes, p->srcY, 0,
				    p->srcPitch, 1 },
		     p->WidthInBytes, p->Height, 1);
}

static struct model_copy from_3d(const CUDA_MEMCPY3D *p)
{
	return build((struct side){ p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstXInBytes, p->dstY,
				    p->dstZ, p->dstPitch, p->dstHeight },
		     (struct side){ p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcXInBytes, p->srcY,
				    p->srcZ, p->srcPitch, p->srcHeight },
		     p->WidthInBytes, p->Height, p->Depth);
}

static struct model_copy from_peer(const CUDA_MEMCPY3D_PEER *p)
{
	return build((struct side){ p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstXInBytes, p->dstY,
				    p->dstZ, p->dstPitch, p->dstHeight },
		     (struct side){ p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcXInBytes, p->srcY,
				    p->srcZ, p->srcPitch, p->srcHeight },
		     p->WidthInBytes, p->Height, p->Depth);
}

API_PTDS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *p), (p))
{
	struct model_copy c = from_2d(p);

	ENTER("cuMemcpy2D_v2");
	return model_copy_now(&c);
}

API_PTDS(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *p), (p))
{
	struct model_copy c = from_2d(p);

	ENTER("cuMemcpy2DUnaligned_v2");
	return model_copy_now(&c);
}

API_PTSZ(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *p, CUstream stream), (p, stream))
{
	struct model_copy c = from_2d(p);

	ENTER("cuMemcpy2DAsync_v2");
	return model_copy_stream(&c, stream);
}

API_PTDS(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *p), (p))
{
	struct model_copy c = from_3d(p);

	ENTER("cuMemcpy3D_v2");
	return model_copy_now(&c);
}

API_PTSZ(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *p, CUstream stream), (p, stream))
{
	struct model_copy c = from_3d(p);

	ENTER("cuMemcpy3DAsync_v2");
	return model_copy_stream(&c, stream);
}

API_PTDS(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *p), (p))
{
	struct model_copy c = from_peer(p);

	ENTER("cuMemcpy3DPeer");
	return model_copy_now(&c);
}

API_PTSZ(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *p, CUstream stream), (p, stream))
{
	struct model_copy c = from_peer(p);

	ENTER("cuMemcpy3DPeerAsync");
	return model_copy_stream(&c, stream);
}

API_PTDS(cuMemcpyPeer, (CUdeviceptr dst, CUcontext dctx, CUdeviceptr src, CUcontext sctx, size_t n),
	 (dst, dctx, src, sctx, n))
{
	ENTER("cuMemcpyPeer");
	(void)dctx, (void)sctx;
	return copy_now(dev(dst), dev(src), n);
}

API_PTSZ(cuMemcpyPeerAsync,
	 (CUdeviceptr dst, CUcontext dctx, CUdeviceptr src, CUcontext sctx, size_t n, CUstream stream),
	 (dst, dctx, src, sctx, n, stream))
{
	ENTER("cuMemcpyPeerAsync");
	(void)dctx, (void)sctx;
	return copy_in(dev(dst), dev(src), n, stream);
}

static int batch(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUstream stream)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = copy_in(dev(dsts[i]), dev(srcs[i]), sizes[i], stream);
	return err;
}

#undef cuMemcpyBatchAsync
API_PTSZ(cuMemcpyBatchAsync,
	 (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs, size_t *idxs,
	  size_t nattrs, size_t *fail_idx, CUstream stream),
	 (dsts, srcs, sizes, count, attrs, idxs, nattrs, fail_idx, stream))
{
	ENTER("cuMemcpyBatchAsync");
	(void)attrs, (void)idxs, (void)nattrs, (void)fail_idx;
	return batch(dsts, srcs, sizes, count, stream);
}

API_PTSZ(cuMemcpyBatchAsync_v2,
	 (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs, size_t *idxs,
	  size_t nattrs, CUstream stream),
	 (dsts, srcs, sizes, count, attrs, idxs, nattrs, stream))
{
	ENTER("cuMemcpyBatchAsync_v2");
	(void)attrs, (void)idxs, (void)nattrs;
	return batch(dsts, srcs, sizes, count, stream);
}

/* Rows and layers are given in elements; elements are bytes here, and 0 means tightly packed. */
static int batch_3d(size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops, CUstream stream)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		const CUDA_MEMCPY3D_BATCH_OP *op = &ops[i];
		size_t dpitch = op->dst.op.ptr.rowLength ? op->dst.op.ptr.rowLength : op->extent.width;
		size_t spitch = op->src.op.ptr.rowLength ? op->src.op.ptr.rowLength : op->extent.width;
		size_t dlayer = op->dst.op.ptr.layerHeight ? op->dst.op.ptr.layerHeight : op->extent.height;
		size_t slayer = op->src.op.ptr.layerHeight ? op->src.op.ptr.layerHeight : op->extent.height;
		struct model_copy c = { (void *)(uintptr_t)op->dst.op.ptr.ptr,
					(const void *)(uintptr_t)op->src.op.ptr.ptr,
					op->extent.width,
					op->extent.height,
					op->extent.depth,
					dpitch,
					spitch,
					dpitch * dlayer,
					spitch * slayer };

		err = op->dst.type == 1 && op->src.type == 1 ? model_copy_stream(&c, stream) : E_NOT_SUPPORTED;
	}
	return err;
}

#undef cuMemcpy3DBatchAsync
API_PTSZ(cuMemcpy3DBatchAsync,
	 (size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail_idx, unsigned long long flags, CUstream stream),
	 (count, ops, fail_idx, flags, stream))
{
	ENTER("cuMemcpy3DBatchAsync");
	(void)fail_idx, (void)flags;
	return batch_3d(count, ops, stream);
}

API_PTSZ(cuMemcpy3DBatchAsync_v2,
	 (size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream stream),
	 (count, ops, flags, stream))
{
	ENTER("cuMemcpy3DBatchAsync_v2");
	(void)flags;
	return batch_3d(count, ops, stream);
}

API(cuGraphAddMemcpyNode,
    (CUgraphNode * node, CUgraph graph, const CUgraphNode *deps, size_t ndeps, const CUDA_MEMCPY3D *p, CUcontext ctx),
    (node, graph, deps, ndeps, p, ctx))
{
	struct model_copy c = from_3d(p);
	void *made = NULL;
	int err;

	ENTER("cuGraphAddMemcpyNode");
	(void)deps, (void)ndeps, (void)ctx;
	err = model_graph_add(graph, &c, &made);
	if (!err && node)
		*node = made;
	return err;
}

API(cuGraphMemcpyNodeSetParams, (CUgraphNode node, const CUDA_MEMCPY3D *p), (node, p))
{
	struct model_copy c = from_3d(p);

	ENTER("cuGraphMemcpyNodeSetParams");
	return model_node_set(node, &c);
}

API(cuGraphExecMemcpyNodeSetParams, (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *p, CUcontext ctx),
    (exec, node, p, ctx))
{
	struct model_copy c = from_3d(p);

	ENTER("cuGraphExecMemcpyNodeSetParams");
	(void)ctx;
	return exec ? model_node_set(node, &c) : E_VALUE;
}

#ifdef STANDIN_REAL_HEADERS
typedef CUdriverProcAddressQueryResult proc_status;
#else
typedef int proc_status;
#endif

/* Finds the newest form of a function: the exported entry with that name. */
API(cuGetProcAddress_v2, (const char *symbol, void **pfn, int version, uint64_t flags, proc_status *status),
    (symbol, pfn, version, flags, status))
{
	char name[96];
	void *found = NULL;
	void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	ENTER("cuGetProcAddress_v2");
	(void)version, (void)flags, (void)status;
	for (int v = 4; v >= 1 && !found && self; v--) {
		if (v > 1)
			snprintf(name, sizeof(name), "%s_v%d", symbol, v);
		else
			snprintf(name, sizeof(name), "%s", symbol);
		found = dlsym(self, name);
	}
	if (self)
		dlclose(self);
	*pfn = found;
	return found ? 0 : 500;
}
