// SPDX-License-Identifier: GPL-2.0-only
/*
 * cuda.bpf.c: uprobes on the CUDA runtime and driver, and on the program's own allocator.
 *
 * The attach cookie is an index into fns[] (include/ttmon/fns.h) and identifies the function that was
 * called. The class of the function determines what the program does. Programs:
 *
 *   cuda_call    entry of calls about memory, contexts and captures: arguments go to task storage
 *   cuda_return  their return: one event with times and result; with sessions cuda_call does both
 *   user_call, user_return  the same for --alloc-fn and --free-fn, with an in-flight call of their own
 *
 * Further programs are cuda_copy and cuda_copy_ret in copy.bpf.c, cuda_enqueue, cuda_batch,
 * cuda_launch and cuda_note in async.bpf.c, and usdt_point in usdt.bpf.c. Each program belongs to one
 * family of probes (daemon/io/bpf/bpf.h).
 */
#include "call.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Stores in the call in flight what its return needs. */
static __always_inline int enter(struct pt_regs *ctx, struct task_state *t, struct call *c, struct proc_info *p, u32 fn)
{
	const volatile struct ttmon_fn_desc *d = &FN(fn);
	u32 cls = d->cls;

	fetch_args(ctx, t, d);
	c->bits = 0;
	switch (cls) {
	case TTMON_CLS_FREE:
		c->a[0] = ARG(0);
		if (!c->a[0])
			return 0; /* free(NULL) does nothing, and cudaFree(0) is often used to initialise CUDA */
		tell_launched(p);
		break;
	case TTMON_CLS_ALLOC_3D:
		c->a[0] = ARG(0);
#ifdef __TARGET_ARCH_x86
		/* A cudaExtent that is passed by value is larger than two words, so it is on the stack. */
		if (bpf_probe_read_user(t->word, TTMON_ABI_EXTENT_SIZE, (void *)STACK_ARGS(PT_REGS_SP(ctx))))
#else
		/* AAPCS64 passes a pointer to the cudaExtent. */
		if (bpf_probe_read_user(t->word, TTMON_ABI_EXTENT_SIZE, (void *)t->reg[2]))
#endif
			t->word[1] = t->word[2] = 0;
		c->a[1] = t->word[1];
		c->a[2] = t->word[2];
		break;
	case TTMON_CLS_ALLOC:
	case TTMON_CLS_ALLOC_RET:
	case TTMON_CLS_REGISTER:
	case TTMON_CLS_ALLOC_PITCH:
	case TTMON_CLS_HOST_PTR:
	case TTMON_CLS_SET_DEVICE:
	case TTMON_CLS_SET_CTX:
	case TTMON_CLS_NEW_CTX:
	case TTMON_CLS_POP_CTX:
	case TTMON_CLS_RESET:
	case TTMON_CLS_RESET_CTX:
	case TTMON_CLS_RESET_DEV:
	case TTMON_CLS_NEW_POOL:
	case TTMON_CLS_NEW_VMM:
	case TTMON_CLS_MAP_VMM:
	case TTMON_CLS_CAPTURE_BEGIN:
		c->a[0] = ARG(0);
		c->a[1] = ARG(1);
		c->a[2] = ARG(2);
		c->a[3] = ARG(3);
		if (d->bits & TTMON_FN_SIZE32)
			c->a[1] = (u32)c->a[1];
		break;
	default:
		return 0;
	}
	c->sp = PT_REGS_SP(ctx);
	c->epoch = family_epoch[TTMON_FAMILY_ALLOC];
	c->fn = fn;
	c->whole = probe_cookie(ctx) & TTMON_COOKIE_WHOLE;
	c->entry_ns = bpf_ktime_get_ns();
	return 1;
}

static __always_inline bool makes_memory(u32 cls)
{
	return (cls >= TTMON_CLS_ALLOC && cls <= TTMON_CLS_REGISTER) || cls == TTMON_CLS_MAP_VMM;
}

/* Calls that can take long: calls that allocate or free memory, and resets. */
static __always_inline bool has_ledger(u32 cls)
{
	return makes_memory(cls) || cls == TTMON_CLS_FREE || (cls >= TTMON_CLS_RESET && cls <= TTMON_CLS_RESET_DEV);
}

static __always_inline bool is_host_location(u64 props)
{
	u32 type = 0;

	bpf_probe_read_user(&type, sizeof(type), (void *)(props + TTMON_ABI_POOL_LOC_TYPE));
	return type >= TTMON_ABI_LOC_HOST && type <= TTMON_ABI_LOC_HOST_NUMA_CURRENT;
}

/* Handles the classes that allocate memory. Returns 0 if o is not to be sent. */
static __always_inline int leave_alloc(struct pt_regs *ctx, struct task_state *t, struct call *c, struct alloc_out *o)
{
	const volatile struct ttmon_fn_desc *d = &FN(c->fn);
	u64 out = 0;

	switch (d->cls) {
	case TTMON_CLS_ALLOC_RET:
		o->size = c->a[1];
		o->addr = PT_REGS_RC(ctx);
		o->err = o->addr ? 0 : 2; /* the CUDA error code for out of memory */
		return 1;
	case TTMON_CLS_REGISTER:
		o->addr = o->err ? 0 : c->a[0];
		o->size = c->a[1];
		o->flags = c->a[2];
		return 1;
	case TTMON_CLS_MAP_VMM:
		if (!recall(&host_pools, c->a[2]))
			o->method = TTMON_METHOD_DEVICE;
		o->addr = o->err ? 0 : c->a[0];
		o->size = c->a[1];
		return 1;
	}
	if (!o->err && bpf_probe_read_user(&out, sizeof(out), (void *)c->a[0])) {
		emit_refuse(TTMON_EV_ALLOC, TTMON_LOSS_READ_FAILED);
		return 0;
	}
	o->addr = o->err ? 0 : out;
	if (d->cls == TTMON_CLS_ALLOC_PITCH || d->cls == TTMON_CLS_ALLOC_3D) {
		u64 pitch = 0;

		/* The pitch is the second out argument, or the word after the pointer in cudaPitchedPtr. */
		if (!o->err)
			bpf_probe_read_user(&pitch, sizeof(pitch),
					    (void *)(d->cls == TTMON_CLS_ALLOC_3D ? c->a[0] + 8 : c->a[1]));
		o->size = d->cls == TTMON_CLS_ALLOC_3D ? pitch * c->a[1] * c->a[2] : pitch * c->a[3];
		return 1;
	}
	o->size = c->a[1];
	o->flags = c->a[2];
	if (c->a[3] && recall(&host_pools, c->a[3]))
		o->method = TTMON_METHOD_POOL;
	return 1;
}

static __noinline int leave_reset(u32 fn, s32 device, s32 err)
{
	struct ttmon_ev_reset *e = emit_reserve(TTMON_EV_RESET, sizeof(*e), bpf_get_current_pid_tgid());

	if (!e)
		return 0;
	e->err = err;
	e->fn = fn;
	e->device = device;
	emit_submit(e);
	return 0;
}

/*
 * A capture is identified by the time at which it began. cuda_note sees its end and the streams that
 * join it.
 */
static __always_inline void begin_capture(struct proc_info *p, u64 stream)
{
	u64 capture = bpf_ktime_get_ns();

	remember(&captures, stream, capture);
	remember(&live_captures, capture, 1);
	__sync_fetch_and_add(&p->capturing, 1);
}

/* Classes about contexts, pools, handles and captures. */
static __always_inline void leave_misc(struct task_state *t, struct call *c, struct proc_info *p, u32 fn, s32 err)
{
	u64 out = 0;

	switch (FN(fn).cls) {
	case TTMON_CLS_HOST_PTR:
		emit_hint(c, fn, err);
		return;
	case TTMON_CLS_RESET:
		tell_launched(p);
		leave_reset(fn, device_of(t, p, fn), err);
		return;
	case TTMON_CLS_RESET_CTX:
		tell_launched(p);
		leave_reset(fn, (s32)recall(&ctx_devices, c->a[0]) - 1, err);
		return;
	case TTMON_CLS_RESET_DEV:
		tell_launched(p);
		leave_reset(fn, (s32)c->a[0], err);
		return;
	}
	if (err)
		return;
	switch (FN(fn).cls) {
	case TTMON_CLS_CAPTURE_BEGIN:
		begin_capture(p, c->a[0]);
		return;
	case TTMON_CLS_SET_DEVICE:
		t->device = (s32)c->a[0] + 1;
		return;
	case TTMON_CLS_SET_CTX:
		t->device = recall(&ctx_devices, c->a[0]);
		return;
	case TTMON_CLS_NEW_CTX:
		if (!bpf_probe_read_user(&out, sizeof(out), (void *)c->a[0]))
			remember(&ctx_devices, out, (u32)c->a[1] + 1);
		if (FN(fn).bits & TTMON_FN_CURRENT)
			t->device = (s32)c->a[1] + 1;
		return;
	case TTMON_CLS_POP_CTX: /* an earlier context becomes current; the stack of contexts is not tracked */
		t->device = 0;
		return;
	case TTMON_CLS_NEW_POOL:
	case TTMON_CLS_NEW_VMM:
		if (bpf_probe_read_user(&out, sizeof(out), (void *)c->a[0]))
			return;
		/* A handle may be reused after it is destroyed, and the destroying function is not probed. */
		if (is_host_location(FN(fn).cls == TTMON_CLS_NEW_POOL ? c->a[1] : c->a[2]))
			remember(&host_pools, out, 1);
		else
			forget(&host_pools, out);
		return;
	}
}

/* Handles the return of the call in flight, if this is its return. */
static __always_inline int leave(struct pt_regs *ctx, struct task_state *t, struct call *c, struct proc_info *p, u32 fn)
{
	u32 cls = FN(fn).cls;
	s32 err = (s32)PT_REGS_RC(ctx);

	if (c->fn != fn || PT_REGS_SP(ctx) != RETURN_SP(c->sp) || is_transfer(cls) || cls == TTMON_CLS_SYNC)
		return 0;
	c->fn = 0;
	if (c == &t->cuda && has_ledger(cls))
		ledger_leave(t, LEDGER_FN(fn, 0), PT_REGS_IP(ctx), err);
	if (makes_memory(cls)) {
		struct alloc_out o = {
			.entry_ns = c->entry_ns,
			.err = cls == TTMON_CLS_ALLOC_RET ? 0 : err,
			.fn = fn,
			.bits = c->bits,
			.device = device_of(t, p, fn),
			.method = FN(fn).aux,
		};

		tell_launched(p);
		c->fn = fn; /* leave_alloc() reads it */
		if (leave_alloc(ctx, t, c, &o)) {
			/* A failed call is only counted, so its stack is not needed. */
			o.frames = o.err ? 0 : take_stack(ctx, t, TAKE_RETURN);
			emit_alloc(t, &o);
		}
		c->fn = 0;
	} else if (cls == TTMON_CLS_FREE) {
		/* The free function of the program's own allocator returns nothing. */
		if (FN(fn).aux == TTMON_METHOD_CUSTOM)
			err = 0;
		emit_free(c, PACK_FN(fn, device_of(t, p, fn)), err);
	} else {
		leave_misc(t, c, p, fn, err);
	}
	return 0;
}

/*
 * With --no-return-probes: sends what is known at the entry. An allocation whose address comes through
 * an out pointer is sent without its address.
 */
static __always_inline void enter_only(struct pt_regs *ctx, struct task_state *t, struct call *c, struct proc_info *p,
				       u32 fn)
{
	u32 cls = FN(fn).cls;

	c->fn = 0;
	c->bits = TTMON_B_UNOBSERVED;
	if (makes_memory(cls)) {
		struct alloc_out o = {
			.addr = cls == TTMON_CLS_REGISTER || cls == TTMON_CLS_MAP_VMM ? c->a[0] : 0,
			.size = c->a[1],
			.flags = cls == TTMON_CLS_ALLOC || cls == TTMON_CLS_REGISTER ? c->a[2] : 0,
			.fn = fn,
			.bits = TTMON_B_UNOBSERVED,
			.device = device_of(t, p, fn),
			.method = FN(fn).aux,
			.frames = take_stack(ctx, t, TAKE_ENTRY),
		};

		tell_launched(p);
		emit_alloc(t, &o);
	} else if (cls == TTMON_CLS_FREE) {
		c->entry_ns = 0;
		emit_free(c, PACK_FN(fn, device_of(t, p, fn)), 0);
	} else if (cls == TTMON_CLS_SET_DEVICE) {
		t->device = (s32)c->a[0] + 1;
	} else if (cls == TTMON_CLS_SET_CTX) {
		t->device = recall(&ctx_devices, c->a[0]);
	} else if (cls == TTMON_CLS_CAPTURE_BEGIN) {
		begin_capture(p, c->a[0]);
	} else if (cls == TTMON_CLS_HOST_PTR) {
		emit_hint(c, fn, 0);
	} else if (cls == TTMON_CLS_RESET) {
		tell_launched(p);
		leave_reset(fn, device_of(t, p, fn), 0);
	}
}

/* Returns true if the return is to be observed. in_flight is the call in flight of this kind. */
static __always_inline bool begin(struct pt_regs *ctx, struct task_state *t, struct call *in_flight,
				  struct proc_info *p, u32 fn, enum place place, u64 id)
{
	bool keep = place == ELSEWHERE && in_flight->fn, told = keep || cfg_no_returns || place == ELSEWHERE;

	count_hit(p, PROC_HITS_ALLOC);
	if (keep)
		t->kept = *in_flight;
	/*
	 * The program's own allocator may do anything. It may even copy its frames elsewhere and back, as
	 * greenlet does.
	 */
	if (!told)
		told = may_move(t, id, PT_REGS_SP(ctx)) || (in_flight == &t->user && is_switcher(id >> 32));
	if (enter(ctx, t, in_flight, p, fn)) {
		if (!told) {
			if (in_flight == &t->cuda && has_ledger(FN(fn).cls))
				in_flight->entry_ns = ledger_enter(t);
			return true;
		}
		/* Its return is not observed. Calls that it makes are recognised by the marker. */
		set_cuda_marker(ctx, t, PT_REGS_SP(ctx), fn);
		enter_only(ctx, t, in_flight, p, fn);
	}
	if (keep)
		*in_flight = t->kept;
	return false;
}

static __always_inline int enter_cuda(struct pt_regs *ctx)
{
	PROLOGUE(probe_cookie(ctx));
	enum place place;

	if (family_gate(TTMON_FAMILY_ALLOC, TTMON_EV_ALLOC))
		return 0;
	place = cuda_place(ctx, t, p, PT_REGS_SP(ctx), fn);
	if (place == NESTED)
		return 0;
	return begin(ctx, t, &t->cuda, p, fn, place, id);
}

static __always_inline int leave_cuda(struct pt_regs *ctx)
{
	PROLOGUE(returning_fn(ctx, &t->cuda));
	return leave(ctx, t, &t->cuda, p, fn);
}

SEC("?uprobe")
int cuda_call(struct pt_regs *ctx)
{
	BOTH_ENDS(ctx, enter_cuda, leave_cuda);
}

SEC("?uretprobe")
int cuda_return(struct pt_regs *ctx)
{
	return leave_cuda(ctx);
}

static __always_inline int enter_user(struct pt_regs *ctx)
{
	PROLOGUE(probe_cookie(ctx));
	u64 sp = PT_REGS_SP(ctx);
	enum place place;

	if (family_gate(TTMON_FAMILY_ALLOC, TTMON_EV_ALLOC))
		return 0;
	place = place_of(t, &t->user, id, sp, fn);
	if (place == NESTED) {
		count_nested();
		return 0;
	}
	if (place == OUTERMOST && (waits_elsewhere(&t->cuda, sp) || any_marked_waits(t, sp)))
		place = ELSEWHERE;
	return begin(ctx, t, &t->user, p, fn, place, id);
}

static __always_inline int leave_user(struct pt_regs *ctx)
{
	PROLOGUE(returning_fn(ctx, &t->user));
	return leave(ctx, t, &t->user, p, fn);
}

SEC("?uprobe")
int user_call(struct pt_regs *ctx)
{
	BOTH_ENDS(ctx, enter_user, leave_user);
}

SEC("?uretprobe")
int user_return(struct pt_regs *ctx)
{
	return leave_user(ctx);
}
