// SPDX-License-Identifier: GPL-2.0-only
/* rt_copy.c: the copies of the stand-in libcudart. See rt.c. */
#include <string.h>

#include "rt.h"

#define API_RESULT cudaError_t

/* Makes the structured copy that the driver gets: unified addresses, positions already applied. */
static CUDA_MEMCPY3D driver_3d(const struct model_copy *c)
{
	CUDA_MEMCPY3D p;

	memset(&p, 0, sizeof(p));
	p.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
	p.srcDevice = (uintptr_t)c->src;
	p.srcPitch = c->spitch;
	p.srcHeight = c->spitch ? c->sslice / c->spitch : 0;
	p.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	p.dstDevice = (uintptr_t)c->dst;
	p.dstPitch = c->dpitch;
	p.dstHeight = c->dpitch ? c->dslice / c->dpitch : 0;
	p.WidthInBytes = c->width;
	p.Height = c->rows;
	p.Depth = c->slices;
	return p;
}

int rt_copy(const struct model_copy *c, int kind)
{
	const struct rt_driver *d = rt_driver();
	uintptr_t dst = (uintptr_t)c->dst, src = (uintptr_t)c->src;

	if ((unsigned int)kind > cudaMemcpyDefault)
		return E_DIRECTION;
	if (!d)
		return model_copy_now(c);
	if (c->rows != 1 || c->slices != 1) {
		CUDA_MEMCPY3D p = driver_3d(c);

		return d->cuMemcpy3D_v2(&p);
	}
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return d->cuMemcpyHtoD_v2(dst, c->src, c->width);
	case cudaMemcpyDeviceToHost:
		return d->cuMemcpyDtoH_v2(c->dst, src, c->width);
	case cudaMemcpyDeviceToDevice:
		return d->cuMemcpyDtoD_v2(dst, src, c->width);
	default:
		return d->cuMemcpy(dst, src, c->width);
	}
}

int rt_copy_async(const struct model_copy *c, int kind, void *stream)
{
	const struct rt_driver *d = rt_driver();
	uintptr_t dst = (uintptr_t)c->dst, src = (uintptr_t)c->src;

	if ((unsigned int)kind > cudaMemcpyDefault)
		return E_DIRECTION;
	if (!d)
		return model_copy_stream(c, stream);
	if (c->rows != 1 || c->slices != 1) {
		CUDA_MEMCPY3D p = driver_3d(c);

		return d->cuMemcpy3DAsync_v2(&p, stream);
	}
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return d->cuMemcpyHtoDAsync_v2(dst, c->src, c->width, stream);
	case cudaMemcpyDeviceToHost:
		return d->cuMemcpyDtoHAsync_v2(c->dst, src, c->width, stream);
	case cudaMemcpyDeviceToDevice:
		return d->cuMemcpyDtoDAsync_v2(dst, src, c->width, stream);
	default:
		return d->cuMemcpyAsync(dst, src, c->width, stream);
	}
}

static int linear(void *dst, const void *src, size_t n, int kind)
{
	struct model_copy c = model_linear(dst, src, n);

	return rt_copy(&c, kind);
}

static int linear_async(void *dst, const void *src, size_t n, int kind, void *stream)
{
	struct model_copy c = model_linear(dst, src, n);

	return rt_copy_async(&c, kind, stream);
}

API(cudaMemset, (void *p, int value, size_t count), (p, value, count))
{
	const struct rt_driver *d = rt_driver();

	ENTER("cudaMemset");
	return d ? (int)d->cuMemsetD8_v2((uintptr_t)p, (unsigned char)value, count) : model_set(p, value, count);
}

API_PTDS(cudaMemcpy, (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind), (dst, src, count, kind))
{
	ENTER("cudaMemcpy");
	return linear(dst, src, count, kind);
}

API_PTSZ(cudaMemcpyAsync, (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream),
	 (dst, src, count, kind, stream))
{
	ENTER("cudaMemcpyAsync");
	return linear_async(dst, src, count, kind, stream);
}

API_PTDS(cudaMemcpy2D,
	 (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
	  enum cudaMemcpyKind kind),
	 (dst, dpitch, src, spitch, width, height, kind))
{
	struct model_copy c = model_rect(dst, dpitch, src, spitch, width, height);

	ENTER("cudaMemcpy2D");
	return rt_copy(&c, kind);
}

API_PTSZ(cudaMemcpy2DAsync,
	 (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
	  enum cudaMemcpyKind kind, cudaStream_t stream),
	 (dst, dpitch, src, spitch, width, height, kind, stream))
{
	struct model_copy c = model_rect(dst, dpitch, src, spitch, width, height);

	ENTER("cudaMemcpy2DAsync");
	return rt_copy_async(&c, kind, stream);
}

/* Elements of arrays are bytes here; a pitched pointer's slice is pitch * ysize. */
static struct model_copy build_3d(cudaArray_t darray, struct cudaPos dpos, struct cudaPitchedPtr dptr,
				  cudaArray_t sarray, struct cudaPos spos, struct cudaPitchedPtr sptr,
				  struct cudaExtent extent)
{
	struct model_copy c = { .width = extent.width, .rows = extent.height, .slices = extent.depth };

	if (darray) {
		c.dst = model_array(darray, dpos.x, dpos.y, &c.dpitch);
		c.dslice = c.dpitch * extent.height;
	} else {
		c.dpitch = dptr.pitch;
		c.dslice = dptr.pitch * dptr.ysize;
		c.dst = (char *)dptr.ptr + dpos.z * c.dslice + dpos.y * c.dpitch + dpos.x;
	}
	if (sarray) {
		c.src = model_array(sarray, spos.x, spos.y, &c.spitch);
		c.sslice = c.spitch * extent.height;
	} else {
		c.spitch = sptr.pitch;
		c.sslice = sptr.pitch * sptr.ysize;
		c.src = (char *)sptr.ptr + spos.z * c.sslice + spos.y * c.spitch + spos.x;
	}
	return c;
}

static struct model_copy from_3d(const struct cudaMemcpy3DParms *p)
{
	return build_3d(p->dstArray, p->dstPos, p->dstPtr, p->srcArray, p->srcPos, p->srcPtr, p->extent);
}

static struct model_copy from_peer(const struct cudaMemcpy3DPeerParms *p)
{
	return build_3d(p->dstArray, p->dstPos, p->dstPtr, p->srcArray, p->srcPos, p->srcPtr, p->extent);
}

API_PTDS(cudaMemcpy3D, (const struct cudaMemcpy3DParms *p), (p))
{
	struct model_copy c = from_3d(p);

	ENTER("cudaMemcpy3D");
	return rt_copy(&c, p->kind);
}

API_PTSZ(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *p, cudaStream_t stream), (p, stream))
{
	struct model_copy c = from_3d(p);

	ENTER("cudaMemcpy3DAsync");
	return rt_copy_async(&c, p->kind, stream);
}

API_PTDS(cudaMemcpy3DPeer, (const struct cudaMemcpy3DPeerParms *p), (p))
{
	struct model_copy c = from_peer(p);

	ENTER("cudaMemcpy3DPeer");
	return rt_copy(&c, cudaMemcpyDeviceToDevice);
}

API_PTSZ(cudaMemcpy3DPeerAsync, (const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream), (p, stream))
{
	struct model_copy c = from_peer(p);

	ENTER("cudaMemcpy3DPeerAsync");
	return rt_copy_async(&c, cudaMemcpyDeviceToDevice, stream);
}

static int peer_devices(int dst, int src)
{
	return dst < 0 || dst >= STANDIN_DEVICES || src < 0 || src >= STANDIN_DEVICES ? E_DEVICE : 0;
}

API(cudaMemcpyPeer, (void *dst, int dst_device, const void *src, int src_device, size_t count),
    (dst, dst_device, src, src_device, count))
{
	int err = peer_devices(dst_device, src_device);

	ENTER("cudaMemcpyPeer");
	return err ? err : linear(dst, src, count, cudaMemcpyDeviceToDevice);
}

API(cudaMemcpyPeerAsync,
    (void *dst, int dst_device, const void *src, int src_device, size_t count, cudaStream_t stream),
    (dst, dst_device, src, src_device, count, stream))
{
	int err = peer_devices(dst_device, src_device);

	ENTER("cudaMemcpyPeerAsync");
	return err ? err : linear_async(dst, src, count, cudaMemcpyDeviceToDevice, stream);
}

/* ---- symbols ---- */
API_PTDS(cudaMemcpyToSymbol,
	 (const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind),
	 (symbol, src, count, offset, kind))
{
	ENTER("cudaMemcpyToSymbol");
	return linear(rt_symbol(symbol, offset), src, count, kind);
}

API_PTSZ(cudaMemcpyToSymbolAsync,
	 (const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind,
	  cudaStream_t stream),
	 (symbol, src, count, offset, kind, stream))
{
	ENTER("cudaMemcpyToSymbolAsync");
	return linear_async(rt_symbol(symbol, offset), src, count, kind, stream);
}

API_PTDS(cudaMemcpyFromSymbol, (void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind),
	 (dst, symbol, count, offset, kind))
{
	ENTER("cudaMemcpyFromSymbol");
	return linear(dst, rt_symbol(symbol, offset), count, kind);
}

API_PTSZ(cudaMemcpyFromSymbolAsync,
	 (void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream),
	 (dst, symbol, count, offset, kind, stream))
{
	ENTER("cudaMemcpyFromSymbolAsync");
	return linear_async(dst, rt_symbol(symbol, offset), count, kind, stream);
}

/* ---- arrays ---- */
API_PTDS(cudaMemcpyToArray,
	 (cudaArray_t dst, size_t w, size_t h, const void *src, size_t count, enum cudaMemcpyKind kind),
	 (dst, w, h, src, count, kind))
{
	ENTER("cudaMemcpyToArray");
	return linear(model_array(dst, w, h, NULL), src, count, kind);
}

API_PTSZ(cudaMemcpyToArrayAsync,
	 (cudaArray_t dst, size_t w, size_t h, const void *src, size_t count, enum cudaMemcpyKind kind,
	  cudaStream_t stream),
	 (dst, w, h, src, count, kind, stream))
{
	ENTER("cudaMemcpyToArrayAsync");
	return linear_async(model_array(dst, w, h, NULL), src, count, kind, stream);
}

API_PTDS(cudaMemcpyFromArray,
	 (void *dst, cudaArray_const_t src, size_t w, size_t h, size_t count, enum cudaMemcpyKind kind),
	 (dst, src, w, h, count, kind))
{
	ENTER("cudaMemcpyFromArray");
	return linear(dst, model_array(src, w, h, NULL), count, kind);
}

API_PTSZ(cudaMemcpyFromArrayAsync,
	 (void *dst, cudaArray_const_t src, size_t w, size_t h, size_t count, enum cudaMemcpyKind kind,
	  cudaStream_t stream),
	 (dst, src, w, h, count, kind, stream))
{
	ENTER("cudaMemcpyFromArrayAsync");
	return linear_async(dst, model_array(src, w, h, NULL), count, kind, stream);
}

API_PTDS(cudaMemcpyArrayToArray,
	 (cudaArray_t dst, size_t wdst, size_t hdst, cudaArray_const_t src, size_t wsrc, size_t hsrc, size_t count,
	  enum cudaMemcpyKind kind),
	 (dst, wdst, hdst, src, wsrc, hsrc, count, kind))
{
	ENTER("cudaMemcpyArrayToArray");
	return linear(model_array(dst, wdst, hdst, NULL), model_array(src, wsrc, hsrc, NULL), count, kind);
}

static struct model_copy to_array_2d(cudaArray_t dst, size_t w, size_t h, const void *src, size_t spitch, size_t width,
				     size_t height)
{
	struct model_copy c = model_rect(NULL, 0, src, spitch, width, height);

	c.dst = model_array(dst, w, h, &c.dpitch);
	return c;
}

static struct model_copy from_array_2d(void *dst, size_t dpitch, cudaArray_const_t src, size_t w, size_t h,
				       size_t width, size_t height)
{
	struct model_copy c = model_rect(dst, dpitch, NULL, 0, width, height);

	c.src = model_array(src, w, h, &c.spitch);
	return c;
}

API_PTDS(cudaMemcpy2DToArray,
	 (cudaArray_t dst, size_t w, size_t h, const void *src, size_t spitch, size_t width, size_t height,
	  enum cudaMemcpyKind kind),
	 (dst, w, h, src, spitch, width, height, kind))
{
	struct model_copy c = to_array_2d(dst, w, h, src, spitch, width, height);

	ENTER("cudaMemcpy2DToArray");
	return rt_copy(&c, kind);
}

API_PTSZ(cudaMemcpy2DToArrayAsync,
	 (cudaArray_t dst, size_t w, size_t h, const void *src, size_t spitch, size_t width, size_t height,
	  enum cudaMemcpyKind kind, cudaStream_t stream),
	 (dst, w, h, src, spitch, width, height, kind, stream))
{
	struct model_copy c = to_array_2d(dst, w, h, src, spitch, width, height);

	ENTER("cudaMemcpy2DToArrayAsync");
	return rt_copy_async(&c, kind, stream);
}

API_PTDS(cudaMemcpy2DFromArray,
	 (void *dst, size_t dpitch, cudaArray_const_t src, size_t w, size_t h, size_t width, size_t height,
	  enum cudaMemcpyKind kind),
	 (dst, dpitch, src, w, h, width, height, kind))
{
	struct model_copy c = from_array_2d(dst, dpitch, src, w, h, width, height);

	ENTER("cudaMemcpy2DFromArray");
	return rt_copy(&c, kind);
}

API_PTSZ(cudaMemcpy2DFromArrayAsync,
	 (void *dst, size_t dpitch, cudaArray_const_t src, size_t w, size_t h, size_t width, size_t height,
	  enum cudaMemcpyKind kind, cudaStream_t stream),
	 (dst, dpitch, src, w, h, width, height, kind, stream))
{
	struct model_copy c = from_array_2d(dst, dpitch, src, w, h, width, height);

	ENTER("cudaMemcpy2DFromArrayAsync");
	return rt_copy_async(&c, kind, stream);
}

API_PTDS(cudaMemcpy2DArrayToArray,
	 (cudaArray_t dst, size_t wdst, size_t hdst, cudaArray_const_t src, size_t wsrc, size_t hsrc, size_t width,
	  size_t height, enum cudaMemcpyKind kind),
	 (dst, wdst, hdst, src, wsrc, hsrc, width, height, kind))
{
	struct model_copy c = from_array_2d(NULL, 0, src, wsrc, hsrc, width, height);

	c.dst = model_array(dst, wdst, hdst, &c.dpitch);
	ENTER("cudaMemcpy2DArrayToArray");
	return rt_copy(&c, kind);
}

/* ---- batches ---- */
static int batch(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, cudaStream_t stream)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = linear_async(dsts[i], srcs[i], sizes[i], cudaMemcpyDefault, stream);
	return err;
}

/* Rows and layers are given in elements; elements are bytes here, and 0 means tightly packed. */
static int batch_3d(size_t count, const struct cudaMemcpy3DBatchOp *ops, cudaStream_t stream)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		const struct cudaMemcpy3DBatchOp *op = &ops[i];
		size_t dpitch = op->dst.op.ptr.rowLength ? op->dst.op.ptr.rowLength : op->extent.width;
		size_t spitch = op->src.op.ptr.rowLength ? op->src.op.ptr.rowLength : op->extent.width;
		size_t dlayer = op->dst.op.ptr.layerHeight ? op->dst.op.ptr.layerHeight : op->extent.height;
		size_t slayer = op->src.op.ptr.layerHeight ? op->src.op.ptr.layerHeight : op->extent.height;
		struct model_copy c = { op->dst.op.ptr.ptr,
					op->src.op.ptr.ptr,
					op->extent.width,
					op->extent.height,
					op->extent.depth,
					dpitch,
					spitch,
					dpitch * dlayer,
					spitch * slayer };

		if (op->dst.type != cudaMemcpyOperandTypePointer || op->src.type != cudaMemcpyOperandTypePointer)
			return E_NOT_SUPPORTED;
		err = rt_copy_async(&c, cudaMemcpyDefault, stream);
	}
	return err;
}

#if STANDIN_CUDART >= 13
API_PTSZ(cudaMemcpyBatchAsync,
	 (void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
	  struct cudaMemcpyAttributes *attrs, size_t *idxs, size_t nattrs, cudaStream_t stream),
	 (dsts, srcs, sizes, count, attrs, idxs, nattrs, stream))
{
	ENTER("cudaMemcpyBatchAsync");
	(void)attrs, (void)idxs, (void)nattrs;
	return batch(dsts, srcs, sizes, count, stream);
}

API_PTSZ(cudaMemcpy3DBatchAsync,
	 (size_t count, struct cudaMemcpy3DBatchOp *ops, unsigned long long flags, cudaStream_t stream),
	 (count, ops, flags, stream))
{
	ENTER("cudaMemcpy3DBatchAsync");
	(void)flags;
	return batch_3d(count, ops, stream);
}
#else
API_PTSZ(cudaMemcpyBatchAsync,
	 (void **dsts, void **srcs, size_t *sizes, size_t count, struct cudaMemcpyAttributes *attrs, size_t *idxs,
	  size_t nattrs, size_t *fail_idx, cudaStream_t stream),
	 (dsts, srcs, sizes, count, attrs, idxs, nattrs, fail_idx, stream))
{
	ENTER("cudaMemcpyBatchAsync");
	(void)attrs, (void)idxs, (void)nattrs, (void)fail_idx;
	return batch(dsts, (const void *const *)srcs, sizes, count, stream);
}

API_PTSZ(cudaMemcpy3DBatchAsync,
	 (size_t count, struct cudaMemcpy3DBatchOp *ops, size_t *fail_idx, unsigned long long flags,
	  cudaStream_t stream),
	 (count, ops, fail_idx, flags, stream))
{
	ENTER("cudaMemcpy3DBatchAsync");
	(void)fail_idx, (void)flags;
	return batch_3d(count, ops, stream);
}
#endif

/* ---- graph nodes ---- */
static int add_node(cudaGraphNode_t *node, cudaGraph_t graph, const struct model_copy *c)
{
	void *made = NULL;
	int err = model_graph_add(graph, c, &made);

	if (!err && node)
		*node = made;
	return err;
}

API(cudaGraphAddMemcpyNode,
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t ndeps,
     const struct cudaMemcpy3DParms *p),
    (node, graph, deps, ndeps, p))
{
	struct model_copy c = from_3d(p);

	ENTER("cudaGraphAddMemcpyNode");
	(void)deps, (void)ndeps;
	return add_node(node, graph, &c);
}

API(cudaGraphAddMemcpyNode1D,
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t ndeps, void *dst, const void *src,
     size_t count, enum cudaMemcpyKind kind),
    (node, graph, deps, ndeps, dst, src, count, kind))
{
	struct model_copy c = model_linear(dst, src, count);

	ENTER("cudaGraphAddMemcpyNode1D");
	(void)deps, (void)ndeps, (void)kind;
	return add_node(node, graph, &c);
}

API(cudaGraphAddMemcpyNodeToSymbol,
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t ndeps, const void *symbol,
     const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind),
    (node, graph, deps, ndeps, symbol, src, count, offset, kind))
{
	struct model_copy c = model_linear(rt_symbol(symbol, offset), src, count);

	ENTER("cudaGraphAddMemcpyNodeToSymbol");
	(void)deps, (void)ndeps, (void)kind;
	return add_node(node, graph, &c);
}

API(cudaGraphAddMemcpyNodeFromSymbol,
    (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t ndeps, void *dst,
     const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind),
    (node, graph, deps, ndeps, dst, symbol, count, offset, kind))
{
	struct model_copy c = model_linear(dst, rt_symbol(symbol, offset), count);

	ENTER("cudaGraphAddMemcpyNodeFromSymbol");
	(void)deps, (void)ndeps, (void)kind;
	return add_node(node, graph, &c);
}

API(cudaGraphMemcpyNodeSetParams, (cudaGraphNode_t node, const struct cudaMemcpy3DParms *p), (node, p))
{
	struct model_copy c = from_3d(p);

	ENTER("cudaGraphMemcpyNodeSetParams");
	return model_node_set(node, &c);
}

API(cudaGraphMemcpyNodeSetParams1D,
    (cudaGraphNode_t node, void *dst, const void *src, size_t count, enum cudaMemcpyKind kind),
    (node, dst, src, count, kind))
{
	struct model_copy c = model_linear(dst, src, count);

	ENTER("cudaGraphMemcpyNodeSetParams1D");
	(void)kind;
	return model_node_set(node, &c);
}

/* An instantiated graph shares its nodes with the graph it came from. */
API(cudaGraphExecMemcpyNodeSetParams, (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemcpy3DParms *p),
    (exec, node, p))
{
	struct model_copy c = from_3d(p);

	ENTER("cudaGraphExecMemcpyNodeSetParams");
	return exec ? model_node_set(node, &c) : E_VALUE;
}

API(cudaGraphExecMemcpyNodeSetParams1D,
    (cudaGraphExec_t exec, cudaGraphNode_t node, void *dst, const void *src, size_t count, enum cudaMemcpyKind kind),
    (exec, node, dst, src, count, kind))
{
	struct model_copy c = model_linear(dst, src, count);

	ENTER("cudaGraphExecMemcpyNodeSetParams1D");
	(void)kind;
	return exec ? model_node_set(node, &c) : E_VALUE;
}

API(cudaGraphMemcpyNodeSetParamsToSymbol,
    (cudaGraphNode_t node, const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind),
    (node, symbol, src, count, offset, kind))
{
	struct model_copy c = model_linear(rt_symbol(symbol, offset), src, count);

	ENTER("cudaGraphMemcpyNodeSetParamsToSymbol");
	(void)kind;
	return model_node_set(node, &c);
}

API(cudaGraphMemcpyNodeSetParamsFromSymbol,
    (cudaGraphNode_t node, void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind),
    (node, dst, symbol, count, offset, kind))
{
	struct model_copy c = model_linear(dst, rt_symbol(symbol, offset), count);

	ENTER("cudaGraphMemcpyNodeSetParamsFromSymbol");
	(void)kind;
	return model_node_set(node, &c);
}

API(cudaGraphExecMemcpyNodeSetParamsToSymbol,
    (cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol, const void *src, size_t count, size_t offset,
     enum cudaMemcpyKind kind),
    (exec, node, symbol, src, count, offset, kind))
{
	struct model_copy c = model_linear(rt_symbol(symbol, offset), src, count);

	ENTER("cudaGraphExecMemcpyNodeSetParamsToSymbol");
	(void)kind;
	return exec ? model_node_set(node, &c) : E_VALUE;
}

API(cudaGraphExecMemcpyNodeSetParamsFromSymbol,
    (cudaGraphExec_t exec, cudaGraphNode_t node, void *dst, const void *symbol, size_t count, size_t offset,
     enum cudaMemcpyKind kind),
    (exec, node, dst, symbol, count, offset, kind))
{
	struct model_copy c = model_linear(dst, rt_symbol(symbol, offset), count);

	ENTER("cudaGraphExecMemcpyNodeSetParamsFromSymbol");
	(void)kind;
	return exec ? model_node_set(node, &c) : E_VALUE;
}
