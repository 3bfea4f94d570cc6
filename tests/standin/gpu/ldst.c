// SPDX-License-Identifier: GPL-2.0-only
/* ldst.c: loads, stores, atomics and asynchronous copies, which are done at once here. */
#include "exec.h"

#include <string.h>

uint64_t gpu_load_n(const void *p, unsigned int size)
{
	switch (size) {
	case 1:
		return __atomic_load_n((const uint8_t *)p, __ATOMIC_RELAXED);
	case 2:
		return __atomic_load_n((const uint16_t *)p, __ATOMIC_RELAXED);
	case 4:
		return __atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED);
	default:
		return __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
	}
}

void gpu_store_n(void *p, unsigned int size, uint64_t v)
{
	switch (size) {
	case 1:
		__atomic_store_n((uint8_t *)p, (uint8_t)v, __ATOMIC_RELAXED);
		break;
	case 2:
		__atomic_store_n((uint16_t *)p, (uint16_t)v, __ATOMIC_RELAXED);
		break;
	case 4:
		__atomic_store_n((uint32_t *)p, (uint32_t)v, __ATOMIC_RELAXED);
		break;
	default:
		__atomic_store_n((uint64_t *)p, v, __ATOMIC_RELAXED);
		break;
	}
}

static void *global(struct gpu_sm *sm, uint64_t addr, unsigned int size)
{
	if (sm->generation != gpu_mem_generation() || addr - sm->cache.dev >= sm->cache.size) {
		sm->generation = gpu_mem_generation();
		if (!gpu_mem_find(addr, &sm->cache) || (sm->l->foreign && sm->l->foreign(sm->l, &sm->cache))) {
			sm->cache.size = 0;
			return NULL;
		}
	}
	return addr - sm->cache.dev <= sm->cache.size - size && size <= sm->cache.size
		       ? sm->cache.host + (addr - sm->cache.dev)
		       : NULL;
}

static void *param(struct gpu_warp *w, struct gpu_frame *fr, uint64_t addr, unsigned int size)
{
	const struct gpu_launch *l = w->b->sm->l;
	uint64_t block = (uintptr_t)l->params, own = (uintptr_t)fr->pmem, all = (uint64_t)fr->f->pmem * GPU_LANES;

	if ((addr - block < l->func->param_bytes && addr - block + size <= l->func->param_bytes) ||
	    (addr - own < all && addr - own + size <= all))
		return (void *)(uintptr_t)addr;
	return NULL;
}

void *gpu_resolve(struct gpu_warp *w, struct gpu_frame *fr, const struct gpu_insn *in, unsigned int lane,
		  unsigned int space, uint64_t addr, unsigned int size)
{
	static const char *const names[] = { "generic", "global", "shared", "local", "param", "const" };
	const struct gpu_grid *g = w->b->sm->g;
	uint64_t a = addr;
	void *p = NULL;

	if (space == SP_GENERIC && addr - g->shared_base < GPU_WINDOW) {
		space = SP_SHARED;
		a -= g->shared_base;
	} else if (space == SP_GENERIC && addr - g->local_base < GPU_WINDOW) {
		space = SP_LOCAL;
		a -= g->local_base;
	}
	if (addr % size) {
		gpu_fault(w->b->sm, in, GPU_E_MISALIGNED, "%s address 0x%llx of %u bytes", names[space],
			  (unsigned long long)addr, size);
		return NULL;
	}
	switch (space) {
	case SP_SHARED:
		if (a < w->b->shared_size && a + size <= w->b->shared_size)
			p = w->b->shared + a;
		break;
	case SP_LOCAL:
		if (a < GPU_STACK && a + size <= GPU_STACK)
			p = w->b->local + (size_t)(w->index * GPU_LANES + lane) * GPU_STACK + a;
		break;
	case SP_PARAM:
		p = param(w, fr, a, size);
		break;
	default:
		p = global(w->b->sm, a, size);
		break;
	}
	if (!p)
		gpu_fault(w->b->sm, in, GPU_E_ILLEGAL_ADDR,
			  "%s address 0x%llx is no memory of this GPU (block %u, thread %u)", names[space],
			  (unsigned long long)addr, w->b->cta[0], w->index * GPU_LANES + lane);
	return p;
}

void gpu_trace(struct gpu_warp *w, const struct gpu_insn *in, uint32_t mask, unsigned int operand,
	       unsigned int op_index)
{
	const struct gpu_launch *l = w->b->sm->l;
	struct gpu_access a;

	if (!l->trace || in->func->is_rec || !mask)
		return;
	memset(&a, 0, sizeof(a));
	a.in = in;
	a.mask = mask;
	a.operand = operand;
	a.warp = w->index;
	a.sm = w->b->sm->id;
	memcpy(a.cta, w->b->cta, sizeof(a.cta));
	FOR_LANES(lane, mask)
	a.addr[lane] = gpu_read(w, w->lane[lane].fr, lane, &in->ops[op_index]);
	l->trace(l->trace_ctx, &a);
}

static bool has(const struct gpu_insn *in, unsigned int mod)
{
	return memchr(in->mods, (int)mod, in->nmods) != NULL;
}

/* Replaces one value by the result of the operation. Returns the old one. */
static uint64_t atomic_one(struct gpu_warp *w, const struct gpu_insn *in, void *p, uint64_t b, uint64_t c)
{
	enum gpu_type t = in->type[0];
	unsigned int size = gpu_type_size[t];
	uint64_t old, fresh;
	bool done;

	do {
		old = gpu_load_n(p, size);
		if (!gpu_combine(in->sub, t, old, b, c, &fresh)) {
			gpu_fault(w->b->sm, in, GPU_E_ILLEGAL_INSN, "this GPU does not know that instruction");
			return 0;
		}
		if (size == 8) {
			done = __atomic_compare_exchange_n((uint64_t *)p, &old, fresh, false, __ATOMIC_ACQ_REL,
							   __ATOMIC_ACQUIRE);
		} else if (size == 4) {
			uint32_t o = (uint32_t)old;

			done = __atomic_compare_exchange_n((uint32_t *)p, &o, (uint32_t)fresh, false, __ATOMIC_ACQ_REL,
							   __ATOMIC_ACQUIRE);
		} else {
			uint16_t o = (uint16_t)old;

			done = __atomic_compare_exchange_n((uint16_t *)p, &o, (uint16_t)fresh, false, __ATOMIC_ACQ_REL,
							   __ATOMIC_ACQUIRE);
		}
	} while (!done);
	return old;
}

/* atom d, [a], b{, c}; red [a], b */
static void atomic(struct gpu_warp *w, struct gpu_frame *fr, const struct gpu_insn *in, uint32_t mask)
{
	unsigned int first = in->op == OP_atom ? 1 : 0, n = in->vec ? in->vec : 1, size = gpu_type_size[in->type[0]];
	const struct gpu_operand *d = first ? &in->ops[0] : NULL, *val = &in->ops[first + 1],
				 *third = in->nops > first + 2 ? &in->ops[first + 2] : NULL;

	if (size < 2 || size > 8 || in->nops < first + 2 || (n > 1 && (val->kind != O_VEC || val->n != n))) {
		gpu_fault(w->b->sm, in, GPU_E_ILLEGAL_INSN, "this GPU does not know that instruction");
		return;
	}
	gpu_trace(w, in, mask, 0, first);
	FOR_LANES(lane, mask)
	{
		uint64_t addr = gpu_read(w, fr, lane, &in->ops[first]);
		uint8_t *p = gpu_resolve(w, fr, in, lane, in->space, addr, size * n);

		if (!p)
			return;
		for (unsigned int i = 0; i < n; i++) {
			uint64_t b = gpu_read(w, fr, lane, n > 1 ? &val->vec[i] : val),
				 c = third ? gpu_read(w, fr, lane, third) : 0;
			uint64_t old = atomic_one(w, in, p + i * size, b, c);

			if (d)
				gpu_write(fr, lane, n > 1 && d->kind == O_VEC ? &d->vec[i] : d,
					  gpu_fit(in->type[0], old));
		}
	}
}

static void load(struct gpu_warp *w, struct gpu_frame *fr, const struct gpu_insn *in, uint32_t mask)
{
	enum gpu_type t = in->type[0];
	unsigned int n = in->vec ? in->vec : 1, size = gpu_type_size[t];
	const struct gpu_operand *d = &in->ops[0];

	FOR_LANES(lane, mask)
	{
		const uint8_t *p =
			gpu_resolve(w, fr, in, lane, in->space, gpu_read(w, fr, lane, &in->ops[1]), size * n);

		if (!p)
			return;
		for (unsigned int i = 0; i < n; i++) {
			const struct gpu_operand *o = in->vec ? &d->vec[i] : d;

			if (size == 16) {
				gpu_write(fr, lane, o, gpu_load_n(p + 16 * i, 8));
				if (o->kind == O_REG)
					fr->regs[(size_t)(o->reg + 1) * GPU_LANES + lane] =
						gpu_load_n(p + 16 * i + 8, 8);
			} else {
				gpu_write(fr, lane, o, gpu_fit(t, gpu_load_n(p + i * size, size)));
			}
		}
	}
	if (has(in, M_acquire) || has(in, M_volatile))
		atomic_thread_fence(memory_order_acquire);
}

static void store(struct gpu_warp *w, struct gpu_frame *fr, const struct gpu_insn *in, uint32_t mask)
{
	unsigned int n = in->vec ? in->vec : 1, size = gpu_type_size[in->type[0]];
	const struct gpu_operand *s = &in->ops[1];

	if (has(in, M_release))
		atomic_thread_fence(memory_order_seq_cst);
	FOR_LANES(lane, mask)
	{
		uint8_t *p = gpu_resolve(w, fr, in, lane, in->space, gpu_read(w, fr, lane, &in->ops[0]), size * n);

		if (!p)
			return;
		for (unsigned int i = 0; i < n; i++) {
			const struct gpu_operand *o = in->vec ? &s->vec[i] : s;

			gpu_store_n(p + i * size, size == 16 ? 8 : size, gpu_read(w, fr, lane, o));
			if (size == 16)
				gpu_store_n(p + i * size + 8, 8,
					    o->kind == O_REG ? fr->regs[(size_t)(o->reg + 1) * GPU_LANES + lane] : 0);
		}
	}
}

/* Of an asynchronous copy. */
static unsigned int source_bytes(const struct gpu_warp *w, const struct gpu_frame *fr, const struct gpu_insn *in,
				 unsigned int lane)
{
	unsigned int size = (unsigned int)in->ops[2].imm;
	uint64_t v;

	if (in->nops < 4)
		return size;
	v = (uint32_t)gpu_read(w, fr, lane, &in->ops[3]);
	if (in->ops[3].kind == O_REG && in->ops[3].size == 1)
		return v ? 0 : size;
	return v < size ? (unsigned int)v : size;
}

/*
 * cp.async{.ca|.cg}.shared.global [dst], [src], size{, src-size | ignore-src}: bytes that the source
 * does not provide are zero.
 */
static void async_copy(struct gpu_warp *w, struct gpu_frame *fr, const struct gpu_insn *in, uint32_t mask)
{
	unsigned int size = (unsigned int)in->ops[2].imm;
	uint32_t reads = 0;

	gpu_trace(w, in, mask, 0, 0);
	FOR_LANES(lane, mask)
	reads |= (uint32_t)(source_bytes(w, fr, in, lane) != 0) << lane;
	gpu_trace(w, in, reads, 1, 1);
	FOR_LANES(lane, mask)
	{
		unsigned int from = source_bytes(w, fr, in, lane);
		uint8_t *dst = gpu_resolve(w, fr, in, lane, SP_SHARED, gpu_read(w, fr, lane, &in->ops[0]), size);
		const uint8_t *src;

		if (!dst)
			return;
		src = from ? gpu_resolve(w, fr, in, lane, SP_GLOBAL, gpu_read(w, fr, lane, &in->ops[1]), size) : NULL;
		if (from && !src)
			return;
		for (unsigned int i = 0; i < size; i++)
			gpu_store_n(dst + i, 1, i < from ? gpu_load_n(src + i, 1) : 0);
	}
}

void gpu_memory(struct gpu_warp *w, struct gpu_frame *fr, const struct gpu_insn *in, uint32_t mask)
{
	unsigned int size = gpu_type_size[in->type[0]] * (in->vec ? in->vec : 1u);
	bool outside = in->space != SP_PARAM && in->space != SP_CONST;

	if (in->op == OP_prefetch || in->op == OP_prefetchu) {
		if (in->nops)
			gpu_trace(w, in, mask, 0, 0);
		return;
	}
	if (in->op == OP_cp) {
		if (has(in, M_commit_group) || has(in, M_wait_group) || has(in, M_wait_all))
			return;
		if (has(in, M_async) && in->nops >= 3 && in->ops[2].kind == O_IMM &&
		    (in->ops[2].imm == 4 || in->ops[2].imm == 8 || in->ops[2].imm == 16)) {
			async_copy(w, fr, in, mask);
			return;
		}
	} else if (in->op == OP_atom || in->op == OP_red) {
		if (in->type[0]) {
			atomic(w, fr, in, mask);
			return;
		}
	} else if (size && size <= 64 && in->nops >= 2 &&
		   (!in->vec || (in->ops[in->op == OP_st].kind == O_VEC && in->ops[in->op == OP_st].n == in->vec))) {
		if (outside)
			gpu_trace(w, in, mask, 0, in->op == OP_st ? 0 : 1);
		if (in->op == OP_st)
			store(w, fr, in, mask);
		else
			load(w, fr, in, mask);
		return;
	}
	gpu_fault(w->b->sm, in, GPU_E_ILLEGAL_INSN, "this GPU does not know that instruction");
}
