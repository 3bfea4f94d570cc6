// SPDX-License-Identifier: GPL-2.0-only
/*
 * launch.c: launches and kernel nodes of graphs: decides which of a kernel's two copies runs. The
 * recorded copy has two additional parameters. If the driver refuses it, the original is launched with
 * the program's arguments.
 */
#include <stdlib.h>
#include <string.h>

#include "memtrace/inject/inj.h"

/* The markers of `extra`: CU_LAUNCH_PARAM_*. */
#define EXTRA_END    ((void *)0)
#define EXTRA_BUFFER ((void *)1)
#define EXTRA_SIZE   ((void *)2)

#define FEW 64

/* A launch of the recorded copy. */
struct launch {
	struct ttmon_inj_chan *chan;
	void *f;
	void **params, **extra;
	uint64_t ctl, number; /* what the two parameters are */
	size_t size;
	void *extra_words[5];
	void *few[FEW + 2];
	void *more; /* to be freed */
};

/*
 * The parameters of k with ours behind them. False: they are none that the kernel can have, or there
 * is no memory.
 */
static bool params_make(struct launch *l, const struct ttmon_inj_kernel *k, void **params, void **extra)
{
	size_t at = ((size_t)k->param_bytes + 7) & ~(size_t)7, given = 0;
	const void *buffer = NULL;
	char *block;

	l->params = l->extra = NULL;
	if (params || (!extra && !k->params)) {
		l->params = l->few;
		if (k->params > FEW)
			l->params = l->more = malloc((k->params + 2) * sizeof(void *));
		if (!l->params)
			return false;
		if (k->params)
			memcpy(l->params, params, k->params * sizeof(void *));
		l->params[k->params] = &l->ctl;
		l->params[k->params + 1] = &l->number;
		return true;
	}
	if (!extra)
		return false;
	for (size_t i = 0; extra[i] != EXTRA_END; i += 2) {
		if (extra[i] == EXTRA_BUFFER)
			buffer = extra[i + 1];
		else if (extra[i] == EXTRA_SIZE)
			given = *(const size_t *)extra[i + 1];
		else
			return false;
	}
	if (given > at || (given && !buffer))
		return false;
	block = l->more = calloc(1, at + 16);
	if (!block)
		return false;
	if (given)
		memcpy(block, buffer, given);
	l->size = at + 16;
	l->extra_words[0] = EXTRA_BUFFER;
	l->extra_words[1] = block;
	l->extra_words[2] = EXTRA_SIZE;
	l->extra_words[3] = &l->size;
	l->extra_words[4] = EXTRA_END;
	l->extra = l->extra_words;
	return true;
}

/* Returns whether launch n of the process is selected. */
static bool selected(uint64_t n)
{
	const struct ttmon_inj_conf *conf = ttmon_inj_conf();

	return n >= conf->launch_begin && n < conf->launch_end;
}

/* Where a launch runs: a context, NULL: the current one. */
static void *runs_in(const struct ttmon_inj_handle *h, void *stream, bool is_node, void *node_ctx)
{
	void *ctx = NULL;

	/* What a node says of a function's context counts for nothing. */
	if (is_node)
		return h->ctx ? h->ctx : node_ctx;
	/* 0, 1 and 2 are the default streams of the current context. */
	return (uintptr_t)stream > 2 && !CALL(cuStreamGetCtx, stream, &ctx) ? ctx : NULL;
}

/* Makes it the current one, if it is not; *pushed: to be popped. False: it cannot be. */
static bool enter(void *ctx, bool *pushed)
{
	void *current = NULL;

	*pushed = false;
	if (!ctx || (!CALL(cuCtxGetCurrent, &current) && current == ctx))
		return true;
	*pushed = !CALL(cuCtxPushCurrent_v2, ctx);
	return *pushed;
}

#define MAX_THREADS 0 /* CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK */

/*
 * A node fails only when its graph is made, where there is no going back to the original: a copy that
 * needs more registers must fit.
 */
static bool fits(void *copy, const unsigned int block[3])
{
	uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
	int most = 0, dev = 0;

	if (CALL(cuFuncGetAttribute, &most, MAX_THREADS, copy) &&
	    (CALL(cuCtxGetDevice, &dev) || CALL(cuKernelGetAttribute, &most, MAX_THREADS, copy, dev)))
		return false;
	return threads <= (uint64_t)most;
}

static bool capturing(void *stream)
{
	int status = 0;

	return !CALL(cuStreamIsCapturing, stream, &status) && status;
}

/* What is launched, as the program said it. */
struct asked {
	const unsigned int *grid, *block;
	unsigned int shmem;
	void *stream, *ctx; /* ctx: what a node names, NULL */
	uint32_t flags;
	void **params, **extra;
};

/* In the context that it runs in: is this launch recorded? Then l is it. */
static bool prepare_here(struct launch *l, const struct ttmon_inj_handle *h, const struct asked *a)
{
	uint32_t flags = a->flags;

	/* Called even for a kernel that cannot be recorded, so that the reader gets to know of it. */
	l->chan = ttmon_inj_chan();
	if (l->chan)
		ttmon_inj_count(l->chan, h->kernel, TTMON_INJ_LAUNCHED);
	if (!l->chan || !selected(l->number) || !h->copy || h->broken)
		return false;
	if (!flags && capturing(a->stream))
		flags = TTMON_MT_LAUNCH_GRAPH;
	if (flags && !fits(h->copy, a->block))
		return false;
	if (ttmon_inj_conf()->sample > 1)
		flags |= TTMON_MT_LAUNCH_SAMPLED;
	l->f = h->copy;
	if (!params_make(l, h->kernel, a->params, a->extra) ||
	    !ttmon_inj_announce(l->chan, h->kernel, a->grid, a->block, a->shmem, a->stream, flags, l->number, &l->ctl))
		return false;
	if (l->extra) {
		memcpy((char *)l->more + l->size - 16, &l->ctl, 8);
		memcpy((char *)l->more + l->size - 8, &l->number, 8);
	}
	return true;
}

/* Is this launch recorded? Then l is it; l->more is to be freed. */
static bool prepare(struct launch *l, void *f, const struct asked *a, struct ttmon_inj_kernel **k)
{
	static _Atomic uint64_t launches;
	struct ttmon_inj_handle h;
	void *popped;
	bool pushed, ok;

	l->more = NULL;
	*k = NULL;
	if (ttmon_inj_conf()->off)
		return false;
	l->number = atomic_fetch_add(&launches, 1);
	if (!ttmon_inj_find(f, &h))
		return false;
	*k = h.kernel;
	/* The control block must be of the GPU that it runs on. */
	if (!enter(runs_in(&h, a->stream, a->flags, a->ctx), &pushed))
		return false;
	ok = prepare_here(l, &h, a);
	if (pushed)
		CALL(cuCtxPopCurrent_v2, &popped);
	return ok;
}

/*
 * err: result of the driver; returns true if it refused the copy, so that the original has to be
 * launched.
 */
static bool refused(struct launch *l, struct ttmon_inj_kernel *k, int err)
{
	free(l->more);
	ttmon_inj_count(l->chan, k, err ? TTMON_INJ_REFUSED : TTMON_INJ_RECORDED);
	if (err)
		ttmon_inj_say(true, "%s: the driver did not launch the recorded kernel: error %d", k->name, err);
	return err;
}

/* call_copy and call_original are expressions; l is the launch. */
#define RECORD(f, grid, block, shmem, stream, ctx, flags, params, extra, call_copy, call_original) \
	do {                                                                                       \
		const struct asked a = { grid, block, shmem, stream, ctx, flags, params, extra };  \
		struct ttmon_inj_kernel *k;                                                        \
		struct launch l;                                                                   \
                                                                                                   \
		if (!prepare(&l, f, &a, &k)) {                                                     \
			free(l.more);                                                              \
			return call_original;                                                      \
		}                                                                                  \
		if (!refused(&l, k, call_copy))                                                    \
			return 0;                                                                  \
		return call_original;                                                              \
	} while (0)

#define GRID  ((const unsigned int[3]){ gx, gy, gz })
#define BLOCK ((const unsigned int[3]){ bx, by, bz })

#define LAUNCH(name)                                                                              \
	int name LAUNCH_PARAMS                                                                    \
	{                                                                                         \
		RECORD(f, GRID, BLOCK, shmem, stream, NULL, 0, params, extra,                     \
		       CALL(name, l.f, gx, gy, gz, bx, by, bz, shmem, stream, l.params, l.extra), \
		       CALL(name, f, gx, gy, gz, bx, by, bz, shmem, stream, params, extra));      \
	}
LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernel_ptsz)

#define LAUNCH_EX(name)                                                                         \
	int name(const struct ttmon_inj_launch_config *c, void *f, void **params, void **extra) \
	{                                                                                       \
		if (!c)                                                                         \
			return CALL(name, c, f, params, extra);                                 \
		RECORD(f, c->grid, c->block, c->shmem, c->stream, NULL, 0, params, extra,       \
		       CALL(name, c, l.f, l.params, l.extra), CALL(name, c, f, params, extra)); \
	}
LAUNCH_EX(cuLaunchKernelEx)
LAUNCH_EX(cuLaunchKernelEx_ptsz)

#define LAUNCH_COOP(name)                                                                \
	int name COOP_PARAMS                                                             \
	{                                                                                \
		RECORD(f, GRID, BLOCK, shmem, stream, NULL, 0, params, NULL,             \
		       CALL(name, l.f, gx, gy, gz, bx, by, bz, shmem, stream, l.params), \
		       CALL(name, f, gx, gy, gz, bx, by, bz, shmem, stream, params));    \
	}
LAUNCH_COOP(cuLaunchCooperativeKernel)
LAUNCH_COOP(cuLaunchCooperativeKernel_ptsz)

/* ---- graphs: a node is one launch here, however often it is replayed ---- */

/* A handle that a program reads from a node may be our copy: give it the original. */
static void original(void **f)
{
	void *own = ttmon_inj_original(*f);

	if (own)
		*f = own;
}

static void originals(struct ttmon_inj_node *n)
{
	original(&n->func);
	original(&n->kern);
}

static void originals_v1(struct ttmon_inj_node_v1 *n)
{
	original(&n->func);
}

#define ORIGINAL(n) _Generic((n), struct ttmon_inj_node * : originals, struct ttmon_inj_node_v1 * : originals_v1)(n)

#define NODE(name, type, decl, first)                                                                                \
	int name decl                                                                                                \
	{                                                                                                            \
		type mine, own;                                                                                      \
                                                                                                                     \
		if (!p)                                                                                              \
			return CALL(name, first NULL);                                                               \
		own = mine = *p;                                                                                     \
		ORIGINAL(&own);                                                                                      \
		RECORD(node_func(&own), own.grid, own.block, own.shmem, NULL, node_ctx(&own), TTMON_MT_LAUNCH_GRAPH, \
		       own.params, own.extra,                                                                        \
		       (mine.params = l.params, mine.extra = l.extra, node_set(&mine, own.func, l.f),                \
			CALL(name, first & mine)),                                                                   \
		       CALL(name, first &own));                                                                      \
	}

/* A node of CUDA 12 names a CUfunction or, where that is NULL, a CUkernel. */
#define node_func(n) _Generic((n), struct ttmon_inj_node * : func_of, struct ttmon_inj_node_v1 * : func_of_v1)(n)
#define node_ctx(n)  _Generic((n), struct ttmon_inj_node * : ctx_of, struct ttmon_inj_node_v1 * : ctx_of_v1)(n)
#define node_set(n, func, to) \
	_Generic((n), struct ttmon_inj_node * : set_func, struct ttmon_inj_node_v1 * : set_func_v1)(n, func, to)

static void *func_of(const struct ttmon_inj_node *n)
{
	return n->func ? n->func : n->kern;
}

static void *ctx_of(const struct ttmon_inj_node *n)
{
	return n->ctx;
}

static void *ctx_of_v1(const struct ttmon_inj_node_v1 *n)
{
	(void)n;
	return NULL;
}

static void *func_of_v1(const struct ttmon_inj_node_v1 *n)
{
	return n->func;
}

static void set_func(struct ttmon_inj_node *n, const void *func, void *to)
{
	*(func ? &n->func : &n->kern) = to;
}

static void set_func_v1(struct ttmon_inj_node_v1 *n, const void *func, void *to)
{
	(void)func;
	n->func = to;
}

#define ARGS(...) __VA_ARGS__,
NODE(cuGraphAddKernelNode, struct ttmon_inj_node_v1,
     (void **node, void *graph, void *const *deps, size_t n, const struct ttmon_inj_node_v1 *p),
     ARGS(node, graph, deps, n))
NODE(cuGraphAddKernelNode_v2, struct ttmon_inj_node,
     (void **node, void *graph, void *const *deps, size_t n, const struct ttmon_inj_node *p),
     ARGS(node, graph, deps, n))
NODE(cuGraphKernelNodeSetParams, struct ttmon_inj_node_v1, (void *node, const struct ttmon_inj_node_v1 *p), ARGS(node))
NODE(cuGraphKernelNodeSetParams_v2, struct ttmon_inj_node, (void *node, const struct ttmon_inj_node *p), ARGS(node))
NODE(cuGraphExecKernelNodeSetParams, struct ttmon_inj_node_v1,
     (void *exec, void *node, const struct ttmon_inj_node_v1 *p), ARGS(exec, node))
NODE(cuGraphExecKernelNodeSetParams_v2, struct ttmon_inj_node, (void *exec, void *node, const struct ttmon_inj_node *p),
     ARGS(exec, node))

#define ANY_NODE(name, decl, first)                                                                     \
	int name decl                                                                                   \
	{                                                                                               \
		struct ttmon_inj_any_node mine, own;                                                    \
                                                                                                        \
		if (!p || p->type)                                                                      \
			return CALL(name, first p);                                                     \
		own = mine = *p;                                                                        \
		ORIGINAL(&own.kernel);                                                                  \
		RECORD(func_of(&own.kernel), own.kernel.grid, own.kernel.block, own.kernel.shmem, NULL, \
		       own.kernel.ctx, TTMON_MT_LAUNCH_GRAPH, own.kernel.params, own.kernel.extra,      \
		       (mine.kernel.params = l.params, mine.kernel.extra = l.extra,                     \
			set_func(&mine.kernel, own.kernel.func, l.f), CALL(name, first & mine)),        \
		       CALL(name, first &own));                                                         \
	}
ANY_NODE(cuGraphAddNode, (void **node, void *graph, void *const *deps, size_t n, struct ttmon_inj_any_node *p),
	 ARGS(node, graph, deps, n))
ANY_NODE(cuGraphAddNode_v2,
	 (void **node, void *graph, void *const *deps, const void *edges, size_t n, struct ttmon_inj_any_node *p),
	 ARGS(node, graph, deps, edges, n))
ANY_NODE(cuGraphNodeSetParams, (void *node, struct ttmon_inj_any_node *p), ARGS(node))
ANY_NODE(cuGraphExecNodeSetParams, (void *exec, void *node, struct ttmon_inj_any_node *p), ARGS(exec, node))

int cuGraphKernelNodeGetParams(void *node, struct ttmon_inj_node_v1 *p)
{
	int err = CALL(cuGraphKernelNodeGetParams, node, p);

	if (!err)
		ORIGINAL(p);
	return err;
}

int cuGraphKernelNodeGetParams_v2(void *node, struct ttmon_inj_node *p)
{
	int err = CALL(cuGraphKernelNodeGetParams_v2, node, p);

	if (!err)
		ORIGINAL(p);
	return err;
}

/* ---- contexts that go ---- */

#define DESTROY(name, type, arg, before, after) \
	int name(type arg)                      \
	{                                       \
		int err;                        \
                                                \
		before(arg);                    \
		err = CALL(name, arg);          \
		after;                          \
		return err;                     \
	}
DESTROY(cuCtxDestroy, void *, ctx, ttmon_inj_destroying, )
DESTROY(cuCtxDestroy_v2, void *, ctx, ttmon_inj_destroying, )
DESTROY(cuDevicePrimaryCtxReset, int, dev, ttmon_inj_resetting, )
DESTROY(cuDevicePrimaryCtxReset_v2, int, dev, ttmon_inj_resetting, )
DESTROY(cuDevicePrimaryCtxRelease, int, dev, ttmon_inj_releasing, ttmon_inj_released(dev))
DESTROY(cuDevicePrimaryCtxRelease_v2, int, dev, ttmon_inj_releasing, ttmon_inj_released(dev))
