/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tt.bpf.h: the code with which every program at a function of tt-metal begins. It finds the function,
 * the library and the arguments, and recognises a device. tt-metal has no C interface and its objects
 * have no stable layout. Therefore a pointer counts as a pointer to a device only if the first word
 * there is the address of one of the library's two vtables (include/ttmon/tt_fns.h). Any pointer may
 * be hostile: each read is one bounded attempt, and a mismatch only means that the object is no
 * device.
 *
 * All probes are at entries. These functions throw exceptions, and the changed return address of a
 * return probe would end the program.
 */
#ifndef TTMON_TT_BPF_H
#define TTMON_TT_BPF_H

#include "call.bpf.h"

#include <ttmon/tt_fns.h>

struct tt_slots_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TTMON_TT_SLOTS);
	__type(key, u32);
	__type(value, struct ttmon_tt_slot);
};

extern struct tt_slots_map tt_slots SEC(".maps");
extern const volatile struct ttmon_tt_desc tt_fns[TTMON_TT_FN_END - TTMON_TT_FN_FIRST];

#define TT_DESC(fn) (&tt_fns[((fn)-TTMON_TT_FN_FIRST) & (TTMON_TT_FN_END - TTMON_TT_FN_FIRST - 1)])

/*
 * A probe that was hit: the contents of its cookie, and the addresses of the vtables in this process
 * (0: unknown).
 */
struct tt_hit {
	u64 vt_device, vt_mesh;
	u32 fn;
	u32 slot;
	u64 reg[8]; /* arguments by position; reg[0] and reg[7] are 0 */
};

/*
 * Addresses of user space are below USER_END (5-level paging). The first page is never mapped. Objects
 * are aligned to words.
 */
#define USER_END (1ULL << 56)

static __always_inline bool is_user(u64 p)
{
	return p >= 4096 && p < USER_END;
}

static __always_inline bool is_object(u64 p)
{
	return is_user(p) && !(p & 7);
}

/*
 * Returns true if this hit is to be handled. For processes that are not traced this costs one hash
 * look-up.
 */
static __always_inline bool tt_enter(struct pt_regs *ctx, struct tt_hit *h)
{
	struct ttmon_tt_slot *s;
	u64 cookie, bias;

	if (!active || !wanted(bpf_get_current_pid_tgid() >> 32))
		return false;
	cookie = probe_cookie(ctx);
	h->fn = cookie & 0xffff;
	h->slot = (cookie >> 16) & 0xffff;
	h->vt_device = h->vt_mesh = 0;
	if (h->fn < TTMON_TT_FN_FIRST || h->fn >= TTMON_TT_FN_END || h->slot >= TTMON_TT_SLOTS)
		return false;
	h->reg[0] = h->reg[7] = 0;
	h->reg[1] = PT_REGS_PARM1(ctx);
	h->reg[2] = PT_REGS_PARM2(ctx);
	h->reg[3] = PT_REGS_PARM3(ctx);
	h->reg[4] = PT_REGS_PARM4(ctx);
	h->reg[5] = PT_REGS_PARM5(ctx);
	h->reg[6] = ARG6(ctx);
	s = bpf_map_lookup_elem(&tt_slots, &h->slot);
	if (s && cookie >> 32) {
		bias = PT_REGS_IP(ctx) - (cookie >> 32);
		if (s->vt_device)
			h->vt_device = bias + s->vt_device;
		if (s->vt_mesh)
			h->vt_mesh = bias + s->vt_mesh;
	}
	return true;
}

/* Returns the nth argument, counted from 1 in the order of registers; 0 if n is 0. */
static __always_inline u64 tt_arg(const struct tt_hit *h, u32 n)
{
	return h->reg[n & 7];
}

/* Returns the kind of an object by its first word: enum ttmon_tt_dev. */
static __always_inline u32 tt_kind(const struct tt_hit *h, u64 first)
{
	if (!first)
		return TTMON_TT_DEV_UNKNOWN;
	if (first == h->vt_mesh)
		return TTMON_TT_DEV_MESH;
	return first == h->vt_device ? TTMON_TT_DEV_DEVICE : TTMON_TT_DEV_UNKNOWN;
}

/* Returns the kind of the object that the pointer refers to. */
static __always_inline u32 tt_kind_at(const struct tt_hit *h, u64 ptr)
{
	u64 first = 0;

	if (!(h->vt_device | h->vt_mesh) || !is_object(ptr) || bpf_probe_read_user(&first, sizeof(first), (void *)ptr))
		return TTMON_TT_DEV_UNKNOWN;
	return tt_kind(h, first);
}

#endif
