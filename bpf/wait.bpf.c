// SPDX-License-Identifier: GPL-2.0-only
/*
 * wait.bpf.c: calls of CUDA that only wait for the device, or query it. They are a family of their
 * own.
 *
 *   cuda_sync      entry: the ledger begins
 *   cuda_sync_ret  return: one event; with sessions cuda_sync does both
 *   wait_switch    context switches of threads that are inside a call
 *
 * The ledgers of the other synchronous calls are in cuda.bpf.c and copy.bpf.c, beside the records of
 * these calls.
 */
#include "call.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* Returns true if the return of the call is to be observed. */
static __always_inline int enter_sync(struct pt_regs *ctx)
{
	PROLOGUE(probe_cookie(ctx));
	u64 sp = PT_REGS_SP(ctx), caller = 0;
	struct call *c = &t->cuda;
	enum place place;

	if (family_gate(TTMON_FAMILY_WAIT, TTMON_EV_WAIT))
		return 0;
	place = cuda_place(ctx, t, p, sp, fn);
	if (place == NESTED)
		return 0;
	if (cfg_no_returns || place == ELSEWHERE || may_move(t, id, sp)) {
		set_marker(ctx, &t->marker, sp, fn);
		CALLER(ctx, &caller);
		ledger_unobserved(fn, RETURN_ADDRESS(caller));
		return 0;
	}
	c->sp = sp;
	c->whole = probe_cookie(ctx) & TTMON_COOKIE_WHOLE;
	c->epoch = family_epoch[TTMON_FAMILY_WAIT];
	c->fn = fn;
	c->entry_ns = ledger_enter(t);
	return 1;
}

static __always_inline int leave_sync(struct pt_regs *ctx)
{
	PROLOGUE(returning_fn(ctx, &t->cuda));
	struct call *c = &t->cuda;

	if (c->fn != fn || PT_REGS_SP(ctx) != RETURN_SP(c->sp) || FN(fn).cls != TTMON_CLS_SYNC)
		return 0;
	c->fn = 0;
	return ledger_leave(t, LEDGER_FN(fn, 0), PT_REGS_IP(ctx), (s32)PT_REGS_RC(ctx));
}

SEC("?uprobe")
int cuda_sync(struct pt_regs *ctx)
{
	BOTH_ENDS(ctx, enter_sync, leave_sync);
}

SEC("?uretprobe")
int cuda_sync_ret(struct pt_regs *ctx)
{
	return leave_sync(ctx);
}

/* Attached if CPU time is not measured; else cpu_switch does this. */
SEC("?tp_btf/sched_switch")
int BPF_PROG(wait_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	ledger_switch(prev, next);
	return 0;
}
