// SPDX-License-Identifier: GPL-2.0-only
/*
 * usdt.bpf.c: the probe points ttmon:alloc, ttmon:free and ttmon:checkpoint of include/ttmon/usdt.h,
 * which a program contains itself.
 */
#include "call.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/*
 * USDT ttmon:alloc(ptr, size, tag), ttmon:free(ptr) and ttmon:checkpoint(label). The cookie holds the
 * places of the operands: bits 0-15 hold the row. Then follow 8 bits for each operand: the index of
 * its register in struct pt_regs, in words, or 0xff if there is no operand.
 */
static __always_inline u64 usdt_operand(struct pt_regs *ctx, u64 cookie, u32 n)
{
	u32 idx = (cookie >> (16 + 8 * n)) & 0xff;
	u64 v = 0;

	if (idx < sizeof(struct pt_regs) / 8)
		bpf_probe_read_kernel(&v, sizeof(v), (void *)ctx + idx * 8);
	return v;
}

/*
 * A label that cannot be read is a loss. With an empty label the event would begin another kind of
 * period.
 */
static __always_inline void checkpoint(struct task_state *t, u64 id, u64 label)
{
	struct ttmon_ev_checkpoint *e;

	__builtin_memset(t->word, 0, TTMON_LABEL_LEN);
	if (label && bpf_probe_read_user_str(t->word, TTMON_LABEL_LEN, (void *)label) < 0) {
		emit_refuse(TTMON_EV_CHECKPOINT, TTMON_LOSS_READ_FAILED);
		return;
	}
	e = emit_reserve(TTMON_EV_CHECKPOINT, sizeof(*e), id);
	if (!e)
		return;
	__builtin_memcpy(e->label, t->word, sizeof(e->label));
	emit_submit(e);
}

SEC("?uprobe")
int usdt_point(struct pt_regs *ctx)
{
	u64 cookie = probe_cookie(ctx);

	PROLOGUE(cookie & 0xffff);
	if (fn == TTMON_FN_USDT_CHECKPOINT) {
		if (!family_gate(TTMON_FAMILY_ALLOC, TTMON_EV_CHECKPOINT))
			checkpoint(t, id, usdt_operand(ctx, cookie, 0));
		return 0;
	}
	if (family_gate(TTMON_FAMILY_ALLOC, TTMON_EV_ALLOC))
		return 0;
	if (fn == TTMON_FN_USDT_FREE) {
		/* Not t->user: the point may lie in a function of --free-fn. */
		struct call *c = &t->point;

		c->a[0] = usdt_operand(ctx, cookie, 0);
		if (c->a[0])
			emit_free(c, PACK_FN(fn, device_of(t, p, fn)), 0);
		return 0;
	}
	struct alloc_out o = {
		.addr = usdt_operand(ctx, cookie, 0),
		.size = usdt_operand(ctx, cookie, 1),
		.fn = fn,
		.device = -1,
		.method = TTMON_METHOD_CUSTOM,
	};
	u64 tag = usdt_operand(ctx, cookie, 2);

	if (!o.addr)
		return 0;
	/* The point is inside the allocator, so the stack is taken from this instruction on. */
	o.frames = take_stack(ctx, t, TAKE_POINT);
	emit_alloc(t, &o);
	if (tag && bpf_probe_read_user_str(t->word, 32, (void *)tag) > 1) {
		struct ttmon_ev_tag *e = emit_reserve(TTMON_EV_TAG, sizeof(*e), id);

		if (!e)
			return 0;
		e->addr = o.addr;
		__builtin_memcpy(e->tag, t->word, sizeof(e->tag));
		emit_submit(e);
	}
	return 0;
}
