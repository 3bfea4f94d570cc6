/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gather.bpf.h: reads the arguments of a probed CUDA function, as described by the rows of
 * include/ttmon/fns.h, and describes the copy that they request. This code may fault or loop, so it
 * runs before a record is reserved.
 */
#ifndef TTMON_GATHER_BPF_H
#define TTMON_GATHER_BPF_H

#include "task.bpf.h"

#include <ttmon/cuda_abi.h>

struct handle_key {
	u32 tgid;
	u32 pad;
	u64 handle;
};

struct handle_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct handle_key);
	__type(value, u64);
};

extern const volatile struct ttmon_fn_desc fns[TTMON_FN_IDS];
#define FN(id) (fns[(id) & (TTMON_FN_IDS - 1)])	     /* the mask is the bound that the verifier requires */
extern struct handle_map host_pools SEC(".maps");    /* memory pools and VMM handles whose location is the host */
extern struct handle_map ctx_devices SEC(".maps");   /* context -> device + 1 */
extern struct handle_map captures SEC(".maps");	     /* stream or event -> id of the capture it belongs to */
extern struct handle_map live_captures SEC(".maps"); /* id of a capture that has not ended */

static __always_inline void remember(struct handle_map *map, u64 handle, u64 value)
{
	struct handle_key k = { .tgid = bpf_get_current_pid_tgid() >> 32, .handle = handle };

	bpf_map_update_elem(map, &k, &value, BPF_ANY);
}

static __always_inline void forget(struct handle_map *map, u64 handle)
{
	struct handle_key k = { .tgid = bpf_get_current_pid_tgid() >> 32, .handle = handle };

	bpf_map_delete_elem(map, &k);
}

static __always_inline u64 recall(struct handle_map *map, u64 handle)
{
	struct handle_key k = { .tgid = bpf_get_current_pid_tgid() >> 32, .handle = handle };
	u64 *v = bpf_map_lookup_elem(map, &k);

	return v ? *v : 0;
}

#define ARG(n) (t->reg[d->arg[n] & 15])

/* Stores the arguments by position in t->reg[1] to t->reg[12]. */
static __always_inline void fetch_args(struct pt_regs *ctx, struct task_state *t,
				       const volatile struct ttmon_fn_desc *d)
{
	t->reg[0] = 0;
	t->reg[1] = PT_REGS_PARM1(ctx);
	t->reg[2] = PT_REGS_PARM2(ctx);
	t->reg[3] = PT_REGS_PARM3(ctx);
	t->reg[4] = PT_REGS_PARM4(ctx);
	t->reg[5] = PT_REGS_PARM5(ctx);
	t->reg[6] = ARG6(ctx);
	t->reg[7] = ARG7(ctx);
	t->reg[8] = ARG8(ctx);
	/*
	 * Some functions have more arguments than registers. Only functions whose rows use those arguments pay
	 * for the read.
	 */
	if (d->arg[4] > ARG_REGS || d->arg[5] > ARG_REGS || d->arg[6] > ARG_REGS || d->arg[7] > ARG_REGS ||
	    d->arg[3] > ARG_REGS || d->arg[2] > ARG_REGS)
		bpf_probe_read_user(&t->reg[ARG_REGS + 1], 4 * 8, (void *)STACK_ARGS(PT_REGS_SP(ctx)));
}

static __always_inline void clear_copy(struct copy_args *c)
{
	c->dst = c->src = c->stream = 0;
	c->width = 0;
	c->rows = c->slices = 1;
	c->dpitch = c->spitch = c->dslice = c->sslice = 0;
	c->dir = TTMON_DIR_DEFAULT;
	c->bits = 0;
}

static __always_inline u32 dir_of(u64 kind)
{
	u32 k = kind; /* the upper half of the register is undefined */

	return k <= TTMON_DIR_DEFAULT ? k : TTMON_DIR_INVALID;
}

/*
 * In cudaMemcpy3DParms positions count bytes, or elements if an array takes part. Arrays have no
 * address, so their positions are not used.
 */
static __always_inline int gather_rt_3d(struct task_state *t, struct copy_args *c, u64 ptr, bool peer)
{
	const u32 dst = peer ? TTMON_ABI_RT3DP_DST_ARRAY / 8 : TTMON_ABI_RT3D_DST_ARRAY / 8;
	const u32 ext = peer ? TTMON_ABI_RT3DP_WIDTH / 8 : TTMON_ABI_RT3D_WIDTH / 8;
	u64 *w = t->word;

	if (bpf_probe_read_user(w, TTMON_ABI_RT3DP_SIZE, (void *)ptr) &&
	    bpf_probe_read_user(w, TTMON_ABI_RT3D_SIZE, (void *)ptr))
		return -1;
	c->width = w[ext];
	c->rows = w[ext + 1];
	c->slices = w[ext + 2];
	if (w[0])
		c->bits |= TTMON_B_SRC_ARRAY;
	c->spitch = w[5];
	c->sslice = w[5] * w[7];
	c->src = w[4] + w[1] + w[2] * w[5] + w[3] * c->sslice;
	if (w[dst])
		c->bits |= TTMON_B_DST_ARRAY;
	c->dpitch = w[dst + 5];
	c->dslice = w[dst + 5] * w[dst + 7];
	c->dst = w[dst + 4] + w[dst + 1] + w[dst + 2] * w[dst + 5] + w[dst + 3] * c->dslice;
	if (c->bits & TTMON_B_SRC_ARRAY)
		c->src = 0;
	if (c->bits & TTMON_B_DST_ARRAY)
		c->dst = 0;
	if (!peer)
		c->dir = dir_of(w[TTMON_ABI_RT3D_KIND / 8]);
	return 0;
}

static __always_inline u64 drv_side(u32 type, u64 host, u64 device)
{
	if (type == TTMON_ABI_MEM_HOST)
		return host;
	return type == TTMON_ABI_MEM_ARRAY ? 0 : device;
}

static __always_inline void drv_dir(struct copy_args *c, u32 stype, u32 dtype)
{
	if (stype == TTMON_ABI_MEM_ARRAY)
		c->bits |= TTMON_B_SRC_ARRAY;
	if (dtype == TTMON_ABI_MEM_ARRAY)
		c->bits |= TTMON_B_DST_ARRAY;
	if (stype == TTMON_ABI_MEM_UNIFIED || dtype == TTMON_ABI_MEM_UNIFIED)
		c->dir = TTMON_DIR_DEFAULT;
	else if (stype == TTMON_ABI_MEM_HOST)
		c->dir = dtype == TTMON_ABI_MEM_HOST ? TTMON_DIR_H2H : TTMON_DIR_H2D;
	else
		c->dir = dtype == TTMON_ABI_MEM_HOST ? TTMON_DIR_D2H : TTMON_DIR_D2D;
}

static __always_inline int gather_drv_2d(struct task_state *t, struct copy_args *c, u64 ptr)
{
	u64 *w = t->word;

	if (bpf_probe_read_user(w, TTMON_ABI_DRV2D_SIZE, (void *)ptr))
		return -1;
	c->width = w[14];
	c->rows = w[15];
	c->spitch = w[6];
	c->dpitch = w[13];
	drv_dir(c, w[2], w[9]);
	c->src = drv_side(w[2], w[3], w[4]);
	if (c->src)
		c->src += w[0] + w[1] * w[6];
	c->dst = drv_side(w[9], w[10], w[11]);
	if (c->dst)
		c->dst += w[7] + w[8] * w[13];
	return 0;
}

static __always_inline int gather_drv_3d(struct task_state *t, struct copy_args *c, u64 ptr)
{
	u64 *w = t->word;

	if (bpf_probe_read_user(w, TTMON_ABI_DRV3D_SIZE, (void *)ptr))
		return -1;
	c->width = w[22];
	c->rows = w[23];
	c->slices = w[24];
	c->spitch = w[9];
	c->sslice = w[9] * w[10];
	c->dpitch = w[20];
	c->dslice = w[20] * w[21];
	drv_dir(c, w[4], w[15]);
	c->src = drv_side(w[4], w[5], w[6]);
	if (c->src)
		c->src += w[0] + w[1] * w[9] + w[2] * c->sslice;
	c->dst = drv_side(w[15], w[16], w[17]);
	if (c->dst)
		c->dst += w[11] + w[12] * w[20] + w[13] * c->dslice;
	return 0;
}

/*
 * An empty region copies nothing. It becomes one row of 0 bytes, since a record has at least one row
 * and one slice.
 */
static __always_inline void normalize_copy(struct copy_args *c)
{
	if (!c->rows || !c->slices) {
		c->width = 0;
		c->rows = c->slices = 1;
	}
}

/* Fills in c from the fetched arguments. Returns -1 if the parameter struct cannot be read. */
SUBPROG int gather_copy(struct task_state *t, struct copy_args *c, u32 fn)
{
	const volatile struct ttmon_fn_desc *d = &FN(fn);
	int err = 0;

	if (!t || !c)
		return -1;
	clear_copy(c);
	switch (d->cls) {
	case TTMON_CLS_COPY:
		c->dst = ARG(0);
		c->src = ARG(1);
		c->width = ARG(2);
		c->stream = ARG(4);
		c->dir = d->arg[3] ? dir_of(ARG(3)) : d->aux;
		if (!d->arg[0])
			c->bits |= TTMON_B_DST_ARRAY;
		if (!d->arg[1])
			c->bits |= TTMON_B_SRC_ARRAY;
		break;
	case TTMON_CLS_RECT:
		c->dst = ARG(0);
		c->dpitch = ARG(1);
		c->src = ARG(2);
		c->spitch = ARG(3);
		c->width = ARG(4);
		c->rows = ARG(5);
		c->dir = d->arg[6] ? dir_of(ARG(6)) : d->aux;
		c->stream = ARG(7);
		if (!d->arg[0])
			c->bits |= TTMON_B_DST_ARRAY;
		if (!d->arg[2])
			c->bits |= TTMON_B_SRC_ARRAY;
		break;
	case TTMON_CLS_RT_3D:
		err = gather_rt_3d(t, c, ARG(0), false);
		c->stream = ARG(1);
		break;
	case TTMON_CLS_RT_3D_PEER:
		c->dir = d->aux;
		err = gather_rt_3d(t, c, ARG(0), true);
		c->stream = ARG(1);
		break;
	case TTMON_CLS_DRV_2D:
		err = gather_drv_2d(t, c, ARG(0));
		c->stream = ARG(1);
		break;
	case TTMON_CLS_DRV_3D:
		err = gather_drv_3d(t, c, ARG(0));
		c->stream = ARG(1);
		break;
	}
	if (d->bits & TTMON_FN_ASYNC)
		c->bits |= TTMON_B_ASYNC;
	normalize_copy(c);
	return err;
}

static __always_inline bool is_copy(u32 cls)
{
	return cls >= TTMON_CLS_COPY && cls <= TTMON_CLS_DRV_3D;
}

/*
 * Returns true for functions that cuda_copy is attached to. Other functions with a return probe belong
 * to cuda_call.
 */
static __always_inline bool is_transfer(u32 cls)
{
	return is_copy(cls) || cls == TTMON_CLS_HINT;
}

/*
 * Returns the current device of the thread, or -1 if it is unknown. Runtime calls use device 0 until
 * the thread selects another one. If the thread was not traced from its start, it may have selected
 * one before.
 */
static __always_inline s16 device_of(const struct task_state *t, const struct proc_info *p, u32 fn)
{
	if (t->device)
		return t->device - 1;
	return (p->flags & PROC_FROM_START) && TTMON_LIB_IS_RT(FN(fn).lib) ? 0 : -1;
}

static __always_inline bool stream_captured(const struct proc_info *p, u32 tgid, u64 stream)
{
	struct handle_key k = { .tgid = tgid, .handle = stream };
	u64 *id;

	if (!p->capturing || !stream)
		return false;
	id = bpf_map_lookup_elem(&captures, &k);
	if (!id)
		return false;
	k.handle = *id;
	return bpf_map_lookup_elem(&live_captures, &k);
}

#endif
