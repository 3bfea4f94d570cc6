// SPDX-License-Identifier: GPL-2.0-only
/*
 * copy.bpf.c: copies and hints whose result is observed: the synchronous ones, and with --copy-results
 * all of them.
 *
 *   cuda_copy      entry: gathers the arguments into task storage
 *   cuda_copy_ret  return: one event, with entry time and result; with sessions cuda_copy does both
 */
#include "call.bpf.h"

char LICENSE[] SEC("license") = "GPL";

static __always_inline bool gather(struct pt_regs *ctx, struct task_state *t, struct call *c, struct proc_info *p,
				   u32 fn)
{
	const volatile struct ttmon_fn_desc *d = &FN(fn);

	fetch_args(ctx, t, d);
	c->bits = 0;
	if (!is_copy(d->cls)) {
		c->a[0] = ARG(0);
		c->a[1] = ARG(1);
		c->a[2] = ARG(2);
		c->a[3] = ARG(3);
		return true;
	}
	if (gather_copy(t, &c->copy, fn)) {
		emit_refuse(TTMON_EV_COPY_RECT, TTMON_LOSS_READ_FAILED);
		return false;
	}
	if ((c->copy.bits & TTMON_B_ASYNC) && stream_captured(p, bpf_get_current_pid_tgid() >> 32, c->copy.stream))
		c->copy.bits |= TTMON_B_CAPTURED;
	return true;
}

static __always_inline void tell(struct task_state *t, struct proc_info *p, u32 fn, u64 entry_ns, s32 err)
{
	struct call *c = &t->cuda;

	if (!is_copy(FN(fn).cls)) {
		emit_hint(c, fn, err);
		return;
	}
	t->word[27] = (u32)err;
	emit_copy(t, &c->copy, entry_ns, PACK_FN(fn, device_of(t, p, fn)));
}

/* Returns true for a copy that returns when it is done. */
static __always_inline bool has_ledger(u32 fn)
{
	return is_copy(FN(fn).cls) && !(FN(fn).bits & TTMON_FN_ASYNC);
}

/* Returns true if the return of the call is to be observed. */
static __always_inline int enter_copy(struct pt_regs *ctx)
{
	PROLOGUE(probe_cookie(ctx));
	u32 kind = is_copy(FN(fn).cls) ? TTMON_EV_COPY : TTMON_EV_HINT;
	struct call *c = &t->cuda;
	u64 sp = PT_REGS_SP(ctx);
	enum place place = cuda_place(ctx, t, p, sp, fn);
	bool keep = place == ELSEWHERE && c->fn, waits;

	if (place == NESTED)
		return 0;
	count_hit(p, PROC_HITS_TRANSFER);
	if (family_state[TTMON_FAMILY_TRANSFER] != TTMON_FAMILY_ON ||
	    is_reduced(p, id >> 32, TTMON_FAMILY_TRANSFER, &t->sample)) {
		waits = mark_call(ctx, t, p, id, sp, fn, TTMON_FAMILY_TRANSFER, place);
		if (family_state[TTMON_FAMILY_TRANSFER] != TTMON_FAMILY_OFF)
			count_only(kind);
		if (!cfg_no_returns && !cfg_session)
			t->marker.ra = MARKER_OF(TTMON_FAMILY_TRANSFER);
		return waits;
	}
	if (keep)
		t->kept = *c;
	if (!gather(ctx, t, c, p, fn)) {
		if (keep)
			*c = t->kept;
		return 0;
	}
	c->copy.bits |= t->sample;
	if (cfg_no_returns || place == ELSEWHERE || may_move(t, id, sp)) {
		set_cuda_marker(ctx, t, sp, fn);
		c->copy.bits |= TTMON_B_UNOBSERVED;
		tell(t, p, fn, 0, 0);
		if (keep)
			*c = t->kept;
		return 0;
	}
	c->sp = sp;
	c->epoch = family_epoch[TTMON_FAMILY_TRANSFER];
	c->fn = fn;
	c->whole = probe_cookie(ctx) & TTMON_COOKIE_WHOLE;
	c->entry_ns = has_ledger(fn) ? ledger_enter(t) : bpf_ktime_get_ns();
	return 1;
}

static __always_inline int leave_copy(struct pt_regs *ctx)
{
	PROLOGUE(end_marked(ctx, t) ? 0 : returning_fn(ctx, &t->cuda));
	s32 err = (s32)PT_REGS_RC(ctx);
	struct call *c = &t->cuda;

	if (c->fn != fn || PT_REGS_SP(ctx) != RETURN_SP(c->sp) || !is_transfer(FN(fn).cls))
		return 0;
	c->fn = 0;
	if (has_ledger(fn))
		ledger_leave(t, LEDGER_FN(fn, 0), PT_REGS_IP(ctx), err);
	tell(t, p, fn, c->entry_ns, err);
	if (!err && is_copy(FN(fn).cls))
		note_copy_site(ctx, t, p, &c->copy, fn, PT_REGS_IP(ctx), false);
	return 0;
}

SEC("?uprobe")
int cuda_copy(struct pt_regs *ctx)
{
	BOTH_ENDS(ctx, enter_copy, leave_copy);
}

SEC("?uretprobe")
int cuda_copy_ret(struct pt_regs *ctx)
{
	return leave_copy(ctx);
}
