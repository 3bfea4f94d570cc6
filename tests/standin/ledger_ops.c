// SPDX-License-Identifier: GPL-2.0-only
/*
 * ledger_ops.c: the calls of the ledger workload, each of which is counted when it is made. See
 * ledger.c.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ledger.h"

#define PAGEABLE  (2u << 20)
#define SLOT	  (256u << 10)
#define SLOTS	  1024
#define MAX_BYTES (64u << 10)
#define ARRAY_W	  4096
#define ARRAY_H	  64

static char module_variable[MAX_BYTES]; /* stands for a __device__ variable */

/*
 * The program's own memory for cudaHostRegister, in slots; the slot that was returned last is used
 * next.
 */
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;
static char *slots;
static uint32_t free_slots[SLOTS], nr_free_slots;

static void *private_memory(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static char *slot_take(void)
{
	char *p = NULL;

	pthread_mutex_lock(&slots_lock);
	if (!slots) {
		slots = private_memory((size_t)SLOT * SLOTS);
		for (uint32_t i = 0; slots && i < SLOTS; i++)
			free_slots[nr_free_slots++] = i;
	}
	if (nr_free_slots)
		p = slots + (size_t)free_slots[--nr_free_slots] * SLOT;
	pthread_mutex_unlock(&slots_lock);
	return p;
}

static void slot_give(uint64_t addr)
{
	pthread_mutex_lock(&slots_lock);
	free_slots[nr_free_slots++] = (uint32_t)((addr - (uintptr_t)slots) / SLOT);
	pthread_mutex_unlock(&slots_lock);
}

int ledger_buffer(struct thread *t)
{
	/* Guard pages on both sides keep the kernel from merging it with a neighbour. */
	t->pageable = mmap(NULL, PAGEABLE + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t->pageable == MAP_FAILED || mprotect(t->pageable + 4096, PAGEABLE, PROT_READ | PROT_WRITE))
		return -1;
	t->pageable += 4096;
	return 0;
}

int ledger_start(struct thread *t)
{
	struct cudaMemPoolProps host = { .allocType = cudaMemAllocationTypePinned,
					 .location = { .type = cudaMemLocationTypeHost } };
	struct cudaMemPoolProps dev = { .allocType = cudaMemAllocationTypePinned,
					.location = { .type = cudaMemLocationTypeDevice } };
	struct cudaChannelFormatDesc bytes = { .x = 8, .f = cudaChannelFormatKindUnsigned };

	t->device = t->idx % 2;
	if (!counted(t, FN_cudaSetDevice, cudaSetDevice(t->device)) ||
	    !counted(t, FN_cudaMemPoolCreate, cudaMemPoolCreate(&t->host_pool, &host)) ||
	    !counted(t, FN_cudaMemPoolCreate, cudaMemPoolCreate(&t->dev_pool, &dev)))
		return -1;
	return cudaMallocArray(&t->array, &bytes, ARRAY_W, ARRAY_H, 0) ? -1 : 0;
}

/* In some cases the next call is to fail. */
static void maybe_fail(struct thread *t, int err)
{
	if (!rnd(t, 40))
		standin_fail_next(err);
}

static uint64_t any_size(struct thread *t)
{
	return 1 + rnd(t, rnd(t, 4) ? 16u << 10 : 256u << 10);
}

static struct rec *keep(struct thread *t, bool ok, enum fn fn, enum method m, void *p, uint64_t size)
{
	struct own *o = m == M_DEVICE ? &t->dev : &t->host;
	struct rec *r = ok ? rec_new(t, fn, m, p, size) : NULL;

	if (r)
		o->recs[o->n++] = r;
	return r;
}

static void alloc_host(struct thread *t)
{
	uint64_t size = any_size(t), pages = size / 4096 + 2;
	uint32_t offset;
	void *p = NULL;
	bool ok;

	maybe_fail(t, 2);
	switch (rnd(t, 5)) {
	case 0:
		bound_add((int64_t)pages);
		ok = counted(t, FN_cudaHostAlloc, cudaHostAlloc(&p, size, rnd(t, 4)));
		keep(t, ok, FN_cudaHostAlloc, M_HOST, p, size);
		break;
	case 1:
		bound_add((int64_t)pages);
		ok = counted(t, FN_cudaMallocHost, cudaMallocHost(&p, size));
		keep(t, ok, FN_cudaMallocHost, M_HOST, p, size);
		break;
	case 2:
		ok = counted(t, FN_cudaMallocManaged, cudaMallocManaged(&p, size, cudaMemAttachGlobal));
		keep(t, ok, FN_cudaMallocManaged, M_MANAGED, p, size);
		return;
	case 3:
		bound_add((int64_t)pages);
		ok = counted(t, FN_cudaMallocFromPoolAsync, cudaMallocFromPoolAsync(&p, size, t->host_pool, NULL));
		keep(t, ok, FN_cudaMallocFromPoolAsync, M_POOL, p, size);
		break;
	default:
		p = slot_take();
		if (!p) {
			standin_fail_next(0);
			return;
		}
		offset = rnd(t, 2) ? 0 : rnd(t, 4096);
		size = MIN_U64(size, SLOT - offset);
		pages = size / 4096 + 2;
		bound_add((int64_t)pages);
		ok = counted(t, FN_cudaHostRegister, cudaHostRegister((char *)p + offset, size, rnd(t, 2) ? 0 : 2));
		if (!ok)
			slot_give((uintptr_t)p);
		keep(t, ok, FN_cudaHostRegister, M_REGISTERED, (char *)p + offset, size);
	}
	if (!ok)
		bound_add(-(int64_t)pages);
}

static void alloc_dev(struct thread *t)
{
	uint64_t size = any_size(t);
	struct cudaPitchedPtr cube;
	struct cudaExtent extent;
	size_t pitch = 0, rows = 1 + rnd(t, 32);
	void *p = NULL;
	struct rec *r;
	bool ok;

	maybe_fail(t, 2);
	switch (rnd(t, 5)) {
	case 0:
		ok = counted(t, FN_cudaMalloc, cudaMalloc(&p, size));
		keep(t, ok, FN_cudaMalloc, M_DEVICE, p, size);
		break;
	case 1:
		ok = counted(t, FN_cudaMallocAsync, cudaMallocAsync(&p, size, NULL));
		keep(t, ok, FN_cudaMallocAsync, M_DEVICE, p, size);
		break;
	case 2:
		ok = counted(t, FN_cudaMallocFromPoolAsync, cudaMallocFromPoolAsync(&p, size, t->dev_pool, NULL));
		keep(t, ok, FN_cudaMallocFromPoolAsync, M_DEVICE, p, size);
		break;
	case 3:
		ok = counted(t, FN_cudaMallocPitch, cudaMallocPitch(&p, &pitch, 1 + size % 4096, rows));
		r = keep(t, ok, FN_cudaMallocPitch, M_DEVICE, p, pitch * rows);
		if (r) {
			r->pitch = pitch;
			r->rows = rows;
		}
		break;
	default:
		extent = (struct cudaExtent){ 1 + size % 2048, rows, 1 + rnd(t, 4) };
		memset(&cube, 0, sizeof(cube));
		ok = counted(t, FN_cudaMalloc3D, cudaMalloc3D(&cube, extent));
		keep(t, ok, FN_cudaMalloc3D, M_DEVICE, cube.ptr, cube.pitch * extent.height * extent.depth);
	}
}

void ledger_alloc(struct thread *t)
{
	if (rnd(t, 2)) {
		if (t->host.n < MAX_OWN)
			alloc_host(t);
	} else if (t->dev.n < MAX_OWN) {
		alloc_dev(t);
	}
}

/* Calls that fail by themselves, and frees of unknown memory. */
static void odd_frees(struct thread *t)
{
	switch (rnd(t, 5)) {
	case 0:
		counted(t, FN_cudaFree, cudaFree(NULL));
		break;
	case 1:
		counted(t, FN_cudaFreeHost, cudaFreeHost(NULL));
		break;
	case 2:
		counted(t, FN_cudaFree, cudaFree(t->pageable));
		break;
	case 3:
		counted(t, FN_cudaHostUnregister, cudaHostUnregister(t->pageable));
		break;
	default:
		counted(t, FN_cudaFreeHost, cudaFreeHost(module_variable));
	}
}

void ledger_free(struct thread *t)
{
	struct own *o = rnd(t, 2) ? &t->host : &t->dev;
	uint32_t i = rnd(t, (uint32_t)o->n);
	struct rec *r;
	void *p;
	bool ok;

	if (!rnd(t, 25))
		odd_frees(t);
	if (!o->n)
		return;
	r = o->recs[i];
	p = (void *)r->addr;
	maybe_fail(t, 700);
	switch (r->method) {
	case M_HOST:
		ok = counted(t, FN_cudaFreeHost, cudaFreeHost(p));
		break;
	case M_REGISTERED:
		ok = counted(t, FN_cudaHostUnregister, cudaHostUnregister(p));
		if (ok)
			slot_give(r->addr);
		break;
	default:
		ok = rnd(t, 3) ? counted(t, FN_cudaFree, cudaFree(p))
			       : counted(t, FN_cudaFreeAsync, cudaFreeAsync(p, NULL));
	}
	if (!ok)
		return;
	if (pinned(r->method))
		bound_add(-(int64_t)(r->size / 4096 + 2));
	r->freed = true;
	t->frees++;
	o->recs[i] = o->recs[--o->n];
}

/* ---- copies ---- */
struct part {
	struct rec *r; /* NULL: the pageable buffer */
	char *p;
	uint64_t n; /* bytes from p to its end */
};

static struct part part_of(struct thread *t, struct rec *r)
{
	uint64_t base = r ? r->addr : (uintptr_t)t->pageable, size = r ? r->size : PAGEABLE;
	uint64_t offset = rnd(t, (uint32_t)MIN_U64(size, 1u << 30));

	return (struct part){ r, (char *)base + offset, size - offset };
}

static struct rec *pick(struct thread *t, struct own *o)
{
	return o->n ? o->recs[rnd(t, (uint32_t)o->n)] : NULL;
}

/* A host side: in one of three cases the pageable buffer. */
static struct part host_part(struct thread *t)
{
	return part_of(t, rnd(t, 3) ? pick(t, &t->host) : NULL);
}

/*
 * Picks both sides of a copy in some direction. Returns false if there is nothing to copy between.
 */
static bool pick_parts(struct thread *t, struct part *dst, struct part *src, enum dir *dir)
{
	struct rec *a = pick(t, &t->dev), *b = pick(t, &t->dev);

	*dir = (enum dir)rnd(t, DIRS);
	if (*dir == DIR_H2H) {
		*dst = part_of(t, rnd(t, 4) ? pick(t, &t->host) : NULL);
		*src = part_of(t, dst->r ? NULL : pick(t, &t->host));
		return dst->r || src->r;
	}
	if (!a || (*dir == DIR_D2D && (!b || a == b)))
		return false;
	*dst = *dir == DIR_D2H ? host_part(t) : part_of(t, a);
	*src = *dir == DIR_H2D ? host_part(t) : *dir == DIR_D2H ? part_of(t, a) : part_of(t, b);
	return true;
}

static bool has_managed(const struct part *a, const struct part *b)
{
	return (a->r && a->r->method == M_MANAGED) || (b->r && b->r->method == M_MANAGED);
}

/*
 * The direction argument of the call, or cudaMemcpyDefault if the pointers determine the direction.
 */
static enum cudaMemcpyKind said(struct thread *t, enum dir dir, const struct part *a, const struct part *b)
{
	return rnd(t, 3) || has_managed(a, b) ? (enum cudaMemcpyKind)dir : cudaMemcpyDefault;
}

static uint64_t some_bytes(struct thread *t, const struct part *a, const struct part *b)
{
	return 1 + rnd(t, (uint32_t)MIN_U64(MIN_U64(a->n, b->n), MAX_BYTES));
}

static void copy_linear(struct thread *t, const struct part *dst, const struct part *src, enum dir dir)
{
	uint64_t n = some_bytes(t, dst, src);
	enum cudaMemcpyKind kind = said(t, dir, dst, src);
	bool ok;

	if (rnd(t, 2)) {
		maybe_fail(t, 700);
		ok = counted(t, FN_cudaMemcpy, cudaMemcpy(dst->p, src->p, n, kind));
	} else {
		if (opt.fail_async)
			maybe_fail(t, 700);
		ok = counted(t, FN_cudaMemcpyAsync, cudaMemcpyAsync(dst->p, src->p, n, kind, NULL));
	}
	if (ok)
		moved(t, dst->r, src->r, dir, n);
}

static void copy_rect(struct thread *t, const struct part *dst, const struct part *src, enum dir dir)
{
	uint64_t room = MIN_U64(MIN_U64(dst->n, src->n), MAX_BYTES), rows = 1 + rnd(t, 8), pitch = room / rows;
	enum cudaMemcpyKind kind = said(t, dir, dst, src);
	uint64_t width;
	bool ok;

	if (!pitch)
		return;
	width = 1 + rnd(t, (uint32_t)pitch);
	if (rnd(t, 2)) {
		maybe_fail(t, 1);
		ok = counted(t, FN_cudaMemcpy2D, cudaMemcpy2D(dst->p, pitch, src->p, pitch, width, rows, kind));
	} else {
		ok = counted(t, FN_cudaMemcpy2DAsync,
			     cudaMemcpy2DAsync(dst->p, pitch, src->p, pitch, width, rows, kind, NULL));
	}
	if (ok)
		moved(t, dst->r, src->r, dir, width * rows);
}

static void copy_cube(struct thread *t, const struct part *dst, const struct part *src, enum dir dir)
{
	uint64_t room = MIN_U64(MIN_U64(dst->n, src->n), MAX_BYTES), rows = 1 + rnd(t, 4), slices = 1 + rnd(t, 4);
	uint64_t pitch = room / (rows * slices);
	struct cudaMemcpy3DParms p;
	struct cudaMemcpy3DPeerParms peer;
	struct cudaExtent e;
	bool ok;

	if (!pitch)
		return;
	e = (struct cudaExtent){ 1 + rnd(t, (uint32_t)pitch), rows, slices };
	memset(&p, 0, sizeof(p));
	p.srcPtr = (struct cudaPitchedPtr){ src->p, pitch, pitch, rows };
	p.dstPtr = (struct cudaPitchedPtr){ dst->p, pitch, pitch, rows };
	p.extent = e;
	p.kind = said(t, dir, dst, src);
	if (dir == DIR_D2D && rnd(t, 2)) {
		memset(&peer, 0, sizeof(peer));
		peer.srcPtr = p.srcPtr;
		peer.dstPtr = p.dstPtr;
		peer.dstDevice = 1;
		peer.extent = e;
		ok = counted(t, FN_cudaMemcpy3DPeer, cudaMemcpy3DPeer(&peer));
	} else if (rnd(t, 2)) {
		maybe_fail(t, 1);
		ok = counted(t, FN_cudaMemcpy3D, cudaMemcpy3D(&p));
	} else {
		ok = counted(t, FN_cudaMemcpy3DAsync, cudaMemcpy3DAsync(&p, NULL));
	}
	if (ok)
		moved(t, dst->r, src->r, dir, e.width * rows * slices);
}

static void copy_peer(struct thread *t, const struct part *dst, const struct part *src)
{
	uint64_t n = some_bytes(t, dst, src);
	bool ok;

	if (rnd(t, 2)) {
		maybe_fail(t, 101);
		ok = counted(t, FN_cudaMemcpyPeer, cudaMemcpyPeer(dst->p, 0, src->p, 1, n));
	} else {
		ok = counted(t, FN_cudaMemcpyPeerAsync, cudaMemcpyPeerAsync(dst->p, 1, src->p, 0, n, NULL));
	}
	if (ok)
		moved(t, dst->r, src->r, DIR_D2D, n);
}

static void copy_symbol(struct thread *t)
{
	struct part h = host_part(t);
	uint64_t n = 1 + rnd(t, (uint32_t)MIN_U64(h.n, MAX_BYTES / 2));
	size_t offset = rnd(t, MAX_BYTES / 2);
	enum cudaMemcpyKind up = cudaMemcpyHostToDevice, down = cudaMemcpyDeviceToHost;
	bool ok, to = rnd(t, 2);

	if (rnd(t, 2) && to)
		ok = counted(t, FN_cudaMemcpyToSymbol, cudaMemcpyToSymbol(module_variable, h.p, n, offset, up));
	else if (to)
		ok = counted(t, FN_cudaMemcpyToSymbolAsync,
			     cudaMemcpyToSymbolAsync(module_variable, h.p, n, offset, up, NULL));
	else if (rnd(t, 2))
		ok = counted(t, FN_cudaMemcpyFromSymbol, cudaMemcpyFromSymbol(h.p, module_variable, n, offset, down));
	else
		ok = counted(t, FN_cudaMemcpyFromSymbolAsync,
			     cudaMemcpyFromSymbolAsync(h.p, module_variable, n, offset, down, NULL));
	if (ok)
		moved(t, to ? SYMBOL : h.r, to ? h.r : SYMBOL, to ? DIR_H2D : DIR_D2H, n);
}

static void copy_array(struct thread *t)
{
	struct part h = host_part(t);
	uint64_t rows = 1 + rnd(t, 8), pitch = MIN_U64(h.n / rows, ARRAY_W),
		 n = pitch ? 1 + rnd(t, (uint32_t)pitch) : 0;
	enum cudaMemcpyKind up = cudaMemcpyHostToDevice, down = cudaMemcpyDeviceToHost;
	bool ok, to = rnd(t, 2), flat = rnd(t, 2);

	if (!n)
		return;
	if (to && flat)
		ok = counted(t, FN_cudaMemcpyToArray, cudaMemcpyToArray(t->array, 0, 3, h.p, n, up));
	else if (to)
		ok = counted(t, FN_cudaMemcpy2DToArray, cudaMemcpy2DToArray(t->array, 0, 5, h.p, pitch, n, rows, up));
	else if (flat)
		ok = counted(t, FN_cudaMemcpyFromArray, cudaMemcpyFromArray(h.p, t->array, 0, 3, n, down));
	else
		ok = counted(t, FN_cudaMemcpy2DFromArrayAsync,
			     cudaMemcpy2DFromArrayAsync(h.p, pitch, t->array, 0, 5, n, rows, down, NULL));
	if (ok)
		moved(t, to ? SYMBOL : h.r, to ? h.r : SYMBOL, to ? DIR_H2D : DIR_D2H, flat ? n : n * rows);
}

#define BATCH 8

/* A batch has no direction argument: its sides must determine it. */
static size_t pick_batch(struct thread *t, struct part *dst, struct part *src, enum dir *dir, size_t *sizes)
{
	size_t n = 0;

	for (int i = 0; i < BATCH; i++)
		if (pick_parts(t, &dst[n], &src[n], &dir[n]) && !has_managed(&dst[n], &src[n])) {
			sizes[n] = some_bytes(t, &dst[n], &src[n]);
			n++;
		}
	return n;
}

static void copy_batch(struct thread *t)
{
	struct part dst[BATCH], src[BATCH];
	enum dir dir[BATCH];
	size_t sizes[BATCH], idx = 0, n = pick_batch(t, dst, src, dir, sizes);
	struct cudaMemcpyAttributes attrs = { .srcAccessOrder = cudaMemcpySrcAccessOrderStream };
	void *to[BATCH];
	const void *from[BATCH];
	int err;

	for (size_t i = 0; i < n; i++) {
		to[i] = dst[i].p;
		from[i] = src[i].p;
	}
	if (!n)
		return;
#if STANDIN_CUDART >= 13
	err = cudaMemcpyBatchAsync(to, from, sizes, n, &attrs, &idx, 1, NULL);
#else
	err = cudaMemcpyBatchAsync(to, (void **)from, sizes, n, &attrs, &idx, 1, &idx, NULL);
#endif
	if (counted(t, FN_cudaMemcpyBatchAsync, err))
		for (size_t i = 0; i < n; i++)
			moved(t, dst[i].r, src[i].r, dir[i], sizes[i]);
}

static void copy_batch_3d(struct thread *t)
{
	struct part dst[BATCH], src[BATCH];
	enum dir dir[BATCH];
	size_t sizes[BATCH], n = pick_batch(t, dst, src, dir, sizes);
	struct cudaMemcpy3DBatchOp ops[BATCH];
	int err;

	memset(ops, 0, sizeof(ops));
	for (size_t i = 0; i < n; i++) {
		size_t rows = sizes[i] % 4 == 0 ? 4 : 1;

		ops[i].src.type = ops[i].dst.type = cudaMemcpyOperandTypePointer;
		ops[i].src.op.ptr.ptr = src[i].p;
		ops[i].dst.op.ptr.ptr = dst[i].p;
		ops[i].extent = (struct cudaExtent){ sizes[i] / rows, rows, 1 };
		ops[i].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	}
	if (!n)
		return;
#if STANDIN_CUDART >= 13
	err = cudaMemcpy3DBatchAsync(n, ops, 0, NULL);
#else
	err = cudaMemcpy3DBatchAsync(n, ops, &n, 0, NULL);
#endif
	if (counted(t, FN_cudaMemcpy3DBatchAsync, err))
		for (size_t i = 0; i < n; i++)
			moved(t, dst[i].r, src[i].r, dir[i], sizes[i]);
}

void ledger_copy(struct thread *t)
{
	struct part dst, src;
	uint32_t dice = rnd(t, 100);
	enum dir dir;

	if (dice < 8)
		copy_symbol(t);
	else if (dice < 14)
		copy_array(t);
	else if (dice < 18)
		copy_batch(t);
	else if (dice < 20)
		copy_batch_3d(t);
	else if (!pick_parts(t, &dst, &src, &dir))
		return;
	else if (dice < 30)
		copy_rect(t, &dst, &src, dir);
	else if (dice < 38)
		copy_cube(t, &dst, &src, dir);
	else if (dice < 45 && dir == DIR_D2D)
		copy_peer(t, &dst, &src);
	else
		copy_linear(t, &dst, &src, dir);
}

/* ---- the rest ---- */
static void hints(struct thread *t, struct rec *r)
{
	void *p = (void *)r->addr, *dev = NULL;
	struct cudaMemLocation loc = { .type = cudaMemLocationTypeDevice, .id = 0 };

	if (r->method != M_MANAGED) {
		counted(t, FN_cudaHostGetDevicePointer, cudaHostGetDevicePointer(&dev, p, 0));
	} else if (rnd(t, 2)) {
#if STANDIN_CUDART >= 13
		counted(t, FN_cudaMemPrefetchAsync, cudaMemPrefetchAsync(p, r->size, loc, 0, NULL));
#else
		counted(t, FN_cudaMemPrefetchAsync, cudaMemPrefetchAsync(p, r->size, loc.id, NULL));
#endif
	} else {
#if STANDIN_CUDART >= 13
		counted(t, FN_cudaMemAdvise, cudaMemAdvise(p, r->size, cudaMemAdviseSetReadMostly, loc));
#else
		counted(t, FN_cudaMemAdvise, cudaMemAdvise(p, r->size, cudaMemAdviseSetReadMostly, loc.id));
#endif
	}
}

void ledger_other(struct thread *t)
{
	struct rec *r = pick(t, &t->host);
	dim3 one = { 1, 1, 1 };

	switch (rnd(t, 4)) {
	case 0:
		if (counted(t, FN_cudaLaunchKernel, cudaLaunchKernel(module_variable, one, one, NULL, 0, NULL)))
			t->kernels++;
		break;
	case 1:
		/* A kind that does not exist. */
		counted(t, FN_cudaMemcpy, cudaMemcpy(t->pageable, t->pageable, 16, (enum cudaMemcpyKind)7));
		break;
	case 2:
		if (r && r->method == M_REGISTERED)
			counted(t, FN_cudaHostRegister, cudaHostRegister((void *)r->addr, r->size, 0));
		counted(t, FN_cudaSetDevice, cudaSetDevice(9));
		break;
	default:
		if (r)
			hints(t, r);
	}
}
