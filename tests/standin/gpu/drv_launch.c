// SPDX-License-Identifier: GPL-2.0-only
/* drv_launch.c: launches, captures and graphs. */
#include "drv.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static FILE *trace_file;
static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Columns: kernel, line, opcode, operand, cta x,y,z, warp, mask, and the addresses of its lanes,
 * lowest first.
 */
static void trace(void *ctx, const struct gpu_access *a)
{
	const struct drv_work *w = ctx;

	pthread_mutex_lock(&trace_lock);
	fprintf(trace_file, "%s %u %s %u %u,%u,%u %u %08x", w->func->f->name, a->in->line, a->in->text, a->operand,
		a->cta[0], a->cta[1], a->cta[2], a->warp, a->mask);
	for (unsigned int i = 0; i < GPU_LANES; i++)
		if (a->mask >> i & 1)
			fprintf(trace_file, " %llx", (unsigned long long)a->addr[i]);
	fputc('\n', trace_file);
	pthread_mutex_unlock(&trace_lock);
}

static void trace_open(void)
{
	if (drv_env("GPUSIM_TRACE"))
		trace_file = fopen(drv_env("GPUSIM_TRACE"), "we");
}

/* Another GPU's memory. */
static bool foreign(const struct gpu_launch *l, const struct gpu_range *r)
{
	for (CUcontext ctx = drv_contexts(); ctx; ctx = ctx->next)
		if (ctx == r->owner)
			return r->kind == MEM_DEVICE && ctx->dev != (CUdevice)l->device;
	return false;
}

void drv_run_kernel(struct drv_work *w)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct gpu_launch l = { .func = w->func->f,
				.dyn_shared = w->dyn,
				.params = w->params,
				.sms = drv_sms(),
				.foreign = foreign,
				.cooperative = w->cooperative };

	pthread_once(&once, trace_open);
	memcpy(l.grid, w->grid, sizeof(l.grid));
	memcpy(l.block, w->block, sizeof(l.block));
	l.device = (unsigned int)w->ctx->dev;
	l.gridid = __atomic_add_fetch(&w->ctx->launches, 1, __ATOMIC_RELAXED);
	if (trace_file) {
		l.trace = trace;
		l.trace_ctx = w;
	}
	gpu_run(&l);
	if (trace_file)
		fflush(trace_file);
	if (!l.result)
		return;
	fprintf(stderr, "gpusim: %s: %s\n", l.func->name, l.why);
	__atomic_store_n(&w->ctx->sticky, l.result, __ATOMIC_RELEASE);
}

/* The parameters: one pointer for each, or a buffer with the layout of the kernel's parameters. */
static int parameters(struct drv_work *w, void **params, void **extra)
{
	const struct gpu_func *f = w->func->f;
	const void *buf = NULL;
	size_t n = 0;

	w->params = calloc(1, f->param_bytes + 8u);
	if (!w->params)
		abort();
	if (extra) {
		for (void **e = extra; *e != CU_LAUNCH_PARAM_END; e += 2) {
			if (*e == CU_LAUNCH_PARAM_BUFFER_POINTER)
				buf = e[1];
			else if (*e == CU_LAUNCH_PARAM_BUFFER_SIZE)
				n = *(size_t *)e[1];
			else
				return CUDA_ERROR_INVALID_VALUE;
		}
		if (n < f->param_bytes || (n && !buf))
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(w->params, buf, f->param_bytes);
		return CUDA_SUCCESS;
	}
	if (f->nr_params && !params)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < f->nr_params; i++)
		memcpy(w->params + f->params[i]->off, params[i], f->params[i]->size);
	return CUDA_SUCCESS;
}

/* Makes the work of a launch, or returns an error that the real driver returns at once. */
static int make(CUcontext ctx, CUfunction fn, const unsigned int *grid, const unsigned int *block, unsigned int dyn,
		void **params, void **extra, struct drv_work **ret)
{
	CUfunction f = drv_function_in(ctx, fn);
	uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
	const char *glob = drv_env("GPUSIM_FAIL_LAUNCH");
	struct drv_work *w;
	int err;

	if (!f || f->mod->ctx != ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!grid[0] || !grid[1] || !grid[2] || !threads || threads > 1024 ||
	    (f->f->maxntid && threads > f->f->maxntid))
		return CUDA_ERROR_INVALID_VALUE;
	if (dyn > (f->max_dyn ? (unsigned int)f->max_dyn : 49152) || dyn + f->f->static_shared > GPU_SHARED - 1024)
		return CUDA_ERROR_INVALID_VALUE;
	if ((glob && !fnmatch(glob, f->f->name, 0)) ||
	    threads * f->regs > (uint64_t)drv_env_long("GPUSIM_MAX_REGS", 65536))
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	w = drv_work_new(ctx, WORK_KERNEL);
	w->func = f;
	memcpy(w->grid, grid, sizeof(w->grid));
	memcpy(w->block, block, sizeof(w->block));
	w->dyn = dyn;
	err = parameters(w, params, extra);
	if (err)
		drv_work_free(w);
	else
		*ret = w;
	return err;
}

static int launch(CUfunction f, const unsigned int *grid, const unsigned int *block, unsigned int dyn, CUstream s,
		  void **params, void **extra, bool ptsz, bool cooperative)
{
	CUcontext ctx;
	struct drv_work *w = NULL;
	int err = drv_enter(&ctx);

	if (err)
		return err;
	s = drv_stream(ctx, s, ptsz);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	err = make(s->ctx, f, grid, block, dyn, params, extra, &w);
	if (err)
		return err;
	w->cooperative = cooperative;
	return drv_submit(s, w, false);
}

#define DIMS                                                         \
	(const unsigned int[]){ gx, gy, gz }, (const unsigned int[]) \
	{                                                            \
		bx, by, bz                                           \
	}
#define LAUNCH(suffix, ptsz)                                                                                         \
	PUBLIC CUresult cuLaunchKernel##suffix(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,      \
					       unsigned int bx, unsigned int by, unsigned int bz, unsigned int dyn,  \
					       CUstream s, void **params, void **extra)                              \
	{                                                                                                            \
		return launch(f, DIMS, dyn, s, params, extra, ptsz, false);                                          \
	}                                                                                                            \
	PUBLIC CUresult cuLaunchCooperativeKernel##suffix(                                                           \
		CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,   \
		unsigned int bz, unsigned int dyn, CUstream s, void **params)                                        \
	{                                                                                                            \
		return launch(f, DIMS, dyn, s, params, NULL, ptsz, true);                                            \
	}                                                                                                            \
	PUBLIC CUresult cuLaunchKernelEx##suffix(const CUlaunchConfig *c, CUfunction f, void **params, void **extra) \
	{                                                                                                            \
		return launch(f, &c->gridDimX, &c->blockDimX, c->sharedMemBytes, c->hStream, params, extra, ptsz,    \
			      false);                                                                                \
	}
LAUNCH(, false)
LAUNCH(_ptsz, true)

/*
 * Graphs
 * ------------------------------------------------------------------------------------------------
 */

CUgraphNode drv_graph_add(CUgraph g, const struct drv_work *w)
{
	CUgraphNode node = calloc(1, sizeof(*node));

	if (!node)
		abort();
	drv_work_copy(&node->w, w);
	*g->last = node;
	g->last = &node->next;
	g->nr++;
	return node;
}

static void nodes_free(CUgraph g)
{
	for (CUgraphNode n = g->nodes, next; n; n = next) {
		next = n->next;
		free(n->w.params);
		free(n->pointers);
		free(n);
	}
}

PUBLIC CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	CUgraph g = calloc(1, sizeof(*g));

	(void)flags;
	if (!g)
		abort();
	g->last = &g->nodes;
	*graph = g;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuGraphDestroy(CUgraph g)
{
	nodes_free(g);
	free(g);
	return CUDA_SUCCESS;
}

/* A function runs in its own context, a kernel in the context `in`; NULL: the current one. */
static int add(CUgraphNode *node, CUgraph g, CUfunction f, CUcontext in, const unsigned int *dims, unsigned int dyn,
	       void **params, void **extra)
{
	struct drv_work *w = NULL;
	CUcontext ctx;
	int err = drv_enter(&ctx);

	if (f && f->magic == MAGIC_FUNC)
		ctx = f->mod->ctx;
	else if (in)
		ctx = in;
	if (!err)
		err = make(ctx, f, dims, dims + 3, dyn, params, extra, &w);
	if (err)
		return err;
	*node = drv_graph_add(g, w);
	drv_work_free(w);
	return CUDA_SUCCESS;
}

#define NODE_DIMS(p) (&(p)->gridDimX)
#define NODE_FUNC(p) ((p)->func ? (p)->func : (CUfunction)(p)->kern)

PUBLIC CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n,
				     const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	(void)deps;
	(void)n;
	return add(node, g, p->func, NULL, NODE_DIMS(p), p->sharedMemBytes, p->kernelParams, p->extra);
}

PUBLIC CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n,
					const CUDA_KERNEL_NODE_PARAMS *p)
{
	(void)deps;
	(void)n;
	return add(node, g, NODE_FUNC(p), p->ctx, NODE_DIMS(p), p->sharedMemBytes, p->kernelParams, p->extra);
}

PUBLIC CUresult cuGraphAddNode(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n, CUgraphNodeParams *p)
{
	(void)deps;
	(void)n;
	if (p->type)
		return CUDA_ERROR_NOT_SUPPORTED;
	return add(node, g, NODE_FUNC(&p->kernel), p->kernel.ctx, NODE_DIMS(&p->kernel), p->kernel.sharedMemBytes,
		   p->kernel.kernelParams, p->kernel.extra);
}

PUBLIC CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *edges,
				  size_t n, CUgraphNodeParams *p)
{
	(void)edges;
	return cuGraphAddNode(node, g, deps, n, p);
}

static int change(CUgraphNode node, CUfunction f, const unsigned int *dims, unsigned int dyn, void **params,
		  void **extra)
{
	struct drv_work *w = NULL;
	int err;

	if (node->w.kind != WORK_KERNEL)
		return CUDA_ERROR_INVALID_VALUE;
	err = make(node->w.ctx, f ? f : node->w.func, dims, dims + 3, dyn, params, extra, &w);
	if (err)
		return err;
	free(node->w.params);
	drv_work_copy(&node->w, w);
	drv_work_free(w);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	return change(node, p->func, NODE_DIMS(p), p->sharedMemBytes, p->kernelParams, p->extra);
}

PUBLIC CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p)
{
	return change(node, NODE_FUNC(p), NODE_DIMS(p), p->sharedMemBytes, p->kernelParams, p->extra);
}

PUBLIC CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *p)
{
	if (p->type)
		return CUDA_ERROR_NOT_SUPPORTED;
	return change(node, NODE_FUNC(&p->kernel), NODE_DIMS(&p->kernel), p->kernel.sharedMemBytes,
		      p->kernel.kernelParams, p->kernel.extra);
}

static CUgraphNode node_in(CUgraphExec exec, CUgraphNode node)
{
	for (CUgraphNode n = exec->g.nodes; n; n = n->next)
		if (n->source == node)
			return n;
	return NULL;
}

PUBLIC CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUgraphNode n = node_in(exec, node);

	return n ? cuGraphKernelNodeSetParams(n, p) : CUDA_ERROR_INVALID_VALUE;
}

PUBLIC CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p)
{
	CUgraphNode n = node_in(exec, node);

	return n ? cuGraphKernelNodeSetParams_v2(n, p) : CUDA_ERROR_INVALID_VALUE;
}

PUBLIC CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *p)
{
	CUgraphNode n = node_in(exec, node);

	return n ? cuGraphNodeSetParams(n, p) : CUDA_ERROR_INVALID_VALUE;
}

PUBLIC CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *p)
{
	const struct gpu_func *f = node->w.func ? node->w.func->f : NULL;

	if (node->w.kind != WORK_KERNEL || !f)
		return CUDA_ERROR_INVALID_VALUE;
	free(node->pointers);
	node->pointers = calloc(f->nr_params + 1, sizeof(void *));
	if (!node->pointers)
		abort();
	for (uint32_t i = 0; i < f->nr_params; i++)
		node->pointers[i] = node->w.params + f->params[i]->off;
	memset(p, 0, sizeof(*p));
	p->func = node->w.func;
	memcpy(NODE_DIMS(p), node->w.grid, sizeof(node->w.grid));
	memcpy(NODE_DIMS(p) + 3, node->w.block, sizeof(node->w.block));
	p->sharedMemBytes = node->w.dyn;
	p->kernelParams = node->pointers;
	p->ctx = node->w.ctx;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS all;
	int err = cuGraphKernelNodeGetParams_v2(node, &all);

	if (!err)
		memcpy(p, &all, sizeof(*p));
	return err;
}

PUBLIC CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *n)
{
	size_t i = 0;

	for (CUgraphNode node = g->nodes; nodes && node && i < *n; node = node->next)
		nodes[i++] = node;
	*n = g->nr;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	*type = node->w.kind == WORK_KERNEL ? 0
		: node->w.kind == WORK_COPY ? 1
		: node->w.kind == WORK_SET  ? 2
		: node->w.kind == WORK_HOST ? 3
					    : 5;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph g, unsigned long long flags)
{
	CUgraphExec e = calloc(1, sizeof(*e));

	(void)flags;
	if (!e)
		abort();
	e->g.last = &e->g.nodes;
	for (CUgraphNode n = g->nodes; n; n = n->next)
		drv_graph_add(&e->g, &n->w)->source = n;
	*exec = e;
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
	return cuGraphInstantiateWithFlags(exec, g, p->flags);
}

PUBLIC CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph g, CUgraphNode *node, char *log, size_t n)
{
	(void)node;
	if (log && n)
		*log = 0;
	return cuGraphInstantiateWithFlags(exec, g, 0);
}

PUBLIC CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	nodes_free(&exec->g);
	free(exec);
	return CUDA_SUCCESS;
}

static int graph_launch(CUgraphExec exec, CUstream s, bool ptsz)
{
	CUcontext ctx;
	struct drv_work *w, **last;
	int err = drv_enter(&ctx);

	if (err)
		return err;
	s = drv_stream(ctx, s, ptsz);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	w = drv_work_new(ctx, WORK_GRAPH);
	last = &w->list;
	for (CUgraphNode n = exec->g.nodes; n; n = n->next) {
		struct drv_work *c = drv_work_new(ctx, n->w.kind);

		drv_work_copy(c, &n->w);
		*last = c;
		last = &c->next;
	}
	return drv_submit(s, w, false);
}

PUBLIC CUresult cuGraphLaunch(CUgraphExec exec, CUstream s)
{
	return graph_launch(exec, s, false);
}

PUBLIC CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream s)
{
	return graph_launch(exec, s, true);
}

/*
 * Captures
 * ------------------------------------------------------------------------------------------------
 */

PUBLIC CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode)
{
	CUcontext ctx;
	int err = drv_enter(&ctx);

	(void)mode;
	if (err)
		return err;
	s = drv_stream(ctx, s, false);
	if (!s || s->is_default || s->capture)
		return s ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&drv_lock);
	cuGraphCreate(&s->capture, 0);
	s->origin = true;
	pthread_mutex_unlock(&drv_lock);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuStreamBeginCapture(CUstream s)
{
	return cuStreamBeginCapture_v2(s, 0);
}

PUBLIC CUresult cuStreamEndCapture(CUstream s, CUgraph *graph)
{
	CUcontext ctx;
	int err = drv_enter(&ctx);

	if (err)
		return err;
	s = drv_stream(ctx, s, false);
	if (!s || !s->capture || !s->origin)
		return CUDA_ERROR_ILLEGAL_STATE;
	pthread_mutex_lock(&drv_lock);
	*graph = s->capture;
	s->origin = false;
	for (CUstream o = s->ctx->streams; o; o = o->next)
		if (o->capture == *graph)
			o->capture = NULL;
	pthread_mutex_unlock(&drv_lock);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *status)
{
	CUcontext ctx;
	int err = drv_enter(&ctx);

	if (err)
		return err;
	s = drv_stream(ctx, s, false);
	if (!s)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&drv_lock);
	*status = s->capture != NULL;
	pthread_mutex_unlock(&drv_lock);
	return CUDA_SUCCESS;
}

PUBLIC CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	static __thread int mine;
	int old = mine;

	mine = (int)*mode;
	*mode = old;
	return CUDA_SUCCESS;
}
