/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stack.bpf.h: the call stack of an event. It is found by frame pointers. If it is unknown whether the
 * code has frame pointers, the top of the stack is also copied for the process that unwinds
 * (daemon/io/unwind), through a separate ring.
 *
 * A stack is copied if its chain of frames is new. If the unwind tables show that each step of a chain
 * was by a frame pointer, the daemon stores the hash of the chain in `chains`: such code always finds
 * its callers by frame pointers, so a stack with the same addresses is the same stack. Thus programs
 * with frame pointers are copied once for each of their stacks. Of other programs every stack is
 * copied.
 */
#ifndef TTMON_STACK_BPF_H
#define TTMON_STACK_BPF_H

#include "python.bpf.h"

extern const volatile u32 cfg_stack_frames;
extern u32 stacks_on; /* enum ttmon_stack_copying, set by the daemon */
extern u64 stacks_copied, stacks_lost;

struct stack_ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TTMON_STACK_RING);
};

struct chains_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); /* struct ttmon_stack_copy.chain */
	__type(value, u8);
};

extern struct stack_ring_map stack_ring SEC(".maps");
extern struct chains_map chains SEC(".maps");

/*
 * The address to which the kernel lets probed functions return (arch/x86,
 * uprobe_get_trampoline_vaddr).
 */
static __always_inline u64 trampoline_of_current(void)
{
	return BPF_CORE_READ(bpf_get_current_task_btf(), mm, uprobes_state.xol_area, vaddr);
}

#define FRAME_MAX (8UL << 20) /* most bytes from one frame record to the next: the usual limit of a whole stack */

/* Global functions in stack.bpf.c: the verifier checks them once, not for each number of frames. */
u32 walk_frames(struct task_state *t, u64 fp, u64 low, u32 max);
u64 chain_of(struct task_state *t, u32 n, u64 seed);

/* The place of the probe whose stack is taken. */
enum take {
	TAKE_RETURN, /* in the caller, after its function has returned */
	TAKE_ENTRY,  /* at a function's entry, before it has pushed anything */
	TAKE_POINT,  /* at an instruction in the middle of a function */
};

/*
 * The return value of take_stack(): the number of frames in the low bits, enum ttmon_stack_state in
 * bits 29 and 30, and bit 31 if there were more frames.
 */
#define TAKEN_STATE(taken) ((taken) >> 29 & 3)
/* The number of words in t->frames: the number of the copy follows the frames. */
#define TAKEN_WORDS(taken) (((taken)&63) + (TAKEN_STATE(taken) == TTMON_STACK_COPY))

#ifdef __TARGET_ARCH_x86
#define WAKE_EVERY (TTMON_STACK_RING / 4) /* one wake-up costs as much as several copies of the stack */
#define USER_CS	   0x33			  /* of 64-bit programs (arch/x86/include/asm/segment.h) */

/*
 * Stores the calls in flight that have return probes, newest first, with the return addresses that the
 * kernel's trampoline replaced.
 */
static __always_inline u32 copy_returns(struct ttmon_stack_copy *s)
{
	struct return_instance *ri = BPF_CORE_READ(bpf_get_current_task_btf(), utask, return_instances);
	u32 n = 0;

	for (u32 i = 0; ri && i < TTMON_STACK_RETURNS; i++) {
		s->ret[i].sp = BPF_CORE_READ(ri, stack);
		s->ret[i].ra = BPF_CORE_READ(ri, orig_ret_vaddr);
		ri = BPF_CORE_READ(ri, next);
		n = i + 1;
	}
	return n;
}

/*
 * Copies page by page, since a read that fails in the middle copies nothing. A read fails at the end
 * of the stack, and at a page that was never touched. More pages may follow such a page.
 */
static __always_inline u32 copy_pages(struct ttmon_stack_copy *s, u64 sp)
{
	u64 base = sp & ~(TTMON_STACK_PAGE - 1);
	u32 off = sp & (TTMON_STACK_PAGE - 1), pages = 0;

	barrier_var(off);
	off &= TTMON_STACK_PAGE - 1;
	if (!bpf_probe_read_user(s->bytes + off, TTMON_STACK_PAGE - off, (void *)sp))
		pages |= 1;
	if (!bpf_probe_read_user(s->bytes + TTMON_STACK_PAGE, TTMON_STACK_PAGE, (void *)(base + TTMON_STACK_PAGE)))
		pages |= 2;
	if (!bpf_probe_read_user(s->bytes + 2 * TTMON_STACK_PAGE, off, (void *)(base + 2 * TTMON_STACK_PAGE)))
		pages |= 4;
	return pages;
}

#define SHARE	    64 /* copies of a process within 8 ms that are made even if the ring is more than half full */
#define SHARE_SHIFT 23

/*
 * Counts a copy of this process. Returns true if the process has made more copies than its share: such
 * a process leaves half of the ring to others.
 */
static __always_inline bool has_its_share(struct proc_info *p, u64 now)
{
	u32 when = (u32)(now >> SHARE_SHIFT) << 8, n = p->stacks & 255;

	n = (p->stacks & ~255U) == when ? n + (n < 255) : 1;
	p->stacks = when | n;
	return n > SHARE;
}

/*
 * Stores the Python frames in t->py, if the process has an interpreter of known layout, which is
 * stored in *layout. Returns enum ttmon_py_state. For other processes this costs almost nothing.
 */
static __always_inline u32 take_python(struct task_state *t, const struct proc_info *p, u32 tgid, u64 sp,
				       const struct ttmon_py_layout **layout)
{
	t->npy = 0;
	*layout = any_python ? bpf_map_lookup_elem(&pythons, &tgid) : NULL;
	if (!*layout)
		return TTMON_PY_NOT_LOOKED;
	t->py_start = p->start_ns;
	return walk_python(t, *layout, sp);
}

/*
 * Copies the stack, unless the n frames that were found by frame pointers are known to be right.
 * Returns enum ttmon_stack_state. The record is written in the ring where it is reserved: no watermark
 * waits for this ring, and a probe that interrupts this one could overwrite a buffer of the CPU.
 */
SUBPROG int copy_stack(struct pt_regs *ctx, struct task_state *t, u32 n, u32 take, u32 cut)
{
	u64 id = bpf_get_current_pid_tgid(), sp = PT_REGS_SP(ctx), flags = BPF_RB_NO_WAKEUP, chain, now, used;
	u32 tgid = id >> 32;
	struct proc_info *p = bpf_map_lookup_elem(&procs, &tgid);
	const struct ttmon_py_layout *py;
	struct ttmon_stack_copy *s;
	u32 py_state;

	if (!t || !p || ctx->cs != USER_CS)
		return TTMON_STACK_NOT_SAID;
	if (take == TAKE_ENTRY)
		sp += sizeof(u64); /* the value after the function has returned */
	py_state = stacks_on == TTMON_STACKS_ON ? take_python(t, p, tgid, sp, &py) : TTMON_PY_NOT_LOOKED;
	chain = chain_of(t, n, id ^ (u32)id ^ p->start_ns << 8 ^ p->image);
	/* If there are Python frames, the same native frames can stand for different lines of Python. */
	if (!t->npy && py_state != TTMON_PY_FAILED && bpf_map_lookup_elem(&chains, &chain))
		return TTMON_STACK_CONFIRMED;
	if (stacks_on == TTMON_STACKS_OVER)
		return TTMON_STACK_UNCHECKED;
	now = bpf_ktime_get_ns();
	used = bpf_ringbuf_query(&stack_ring, BPF_RB_AVAIL_DATA);
	s = has_its_share(p, now) && used > TTMON_STACK_RING / 2 ? NULL
								 : bpf_ringbuf_reserve(&stack_ring, sizeof(*s), 0);
	if (!s) {
		__sync_fetch_and_add(&stacks_lost, 1);
		return TTMON_STACK_UNCHECKED;
	}
	t->stack = __sync_fetch_and_add(&stacks_copied, 1) + 1;
	s->id = t->stack;
	s->ts_ns = now;
	s->chain = chain;
	s->tgid = tgid;
	s->tid = id;
	s->ip = t->frames[0];
	s->sp = sp;
	s->bp = ctx->bp;
	s->bx = ctx->bx;
	s->r12 = ctx->r12;
	s->r13 = ctx->r13;
	s->r14 = ctx->r14;
	s->r15 = ctx->r15;
	s->trampoline = t->trampoline;
	s->flags = (take == TAKE_POINT ? TTMON_STACK_EXACT : 0) | (cut ? TTMON_STACK_FP_CUT : 0);
	s->nfp = n;
	__builtin_memcpy(s->fp, t->frames, sizeof(s->fp));
	s->npy = t->npy;
	s->py_state = py_state;
	s->py_start = s->py_end = 0;
	if (py_state != TTMON_PY_NOT_LOOKED && py) {
		s->py_start = py->text_start;
		s->py_end = py->text_end;
		__builtin_memcpy(s->py, t->py, sizeof(s->py));
	}
	s->nret = t->trampoline ? copy_returns(s) : 0;
	s->pages = copy_pages(s, sp);
	/*
	 * The daemon reads the ring from time to time. Each time another quarter of the ring is filled, it is
	 * woken.
	 */
	if ((used + sizeof(*s)) % WAKE_EVERY < sizeof(*s))
		flags = BPF_RB_FORCE_WAKEUP;
	bpf_ringbuf_submit(s, flags);
	return TTMON_STACK_COPY;
}
#endif

/*
 * Stores the call stack in t->frames, innermost frame first. For the return value see TAKEN_STATE.
 */
static __always_inline u32 take_stack(struct pt_regs *ctx, struct task_state *t, enum take take)
{
	u32 max = cfg_stack_frames > TTMON_MAX_FRAMES ? TTMON_MAX_FRAMES : cfg_stack_frames;
	u32 frames = walk_frames(t, PT_REGS_FP(ctx), PT_REGS_SP(ctx), max + 1), cut = 0, state = TTMON_STACK_NOT_SAID;

	if (!frames) {
		long n = bpf_get_stack(ctx, t->frames, sizeof(t->frames), BPF_F_USER_STACK);

		frames = n < 0 ? 0 : (u32)n / 8;
	}
	/*
	 * At the entry the first frame is the function itself: the return address replaces it by its caller.
	 */
	if (take == TAKE_ENTRY)
		CALLER(ctx, &t->frames[0]);
	else
		t->frames[0] = PT_REGS_IP(ctx);
	if (frames > max) {
		frames = max;
		cut = 1U << 31;
	}
#ifdef __TARGET_ARCH_x86
	if (stacks_on && frames)
		state = copy_stack(ctx, t, frames, take, cut);
	if (state == TTMON_STACK_COPY) {
		/* If t->frames is full, the number of the copy replaces the last frame. */
		if (frames > TTMON_MAX_FRAMES - 1)
			frames = TTMON_MAX_FRAMES - 1;
		t->frames[frames & (TTMON_MAX_FRAMES - 1)] = t->stack;
	}
#endif
	return frames | cut | state << 29;
}

#endif
