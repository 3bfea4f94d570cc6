// SPDX-License-Identifier: GPL-2.0-only
/*
 * async.bpf.c: CUDA functions for which no event is sent at their return.
 *
 *   cuda_enqueue asynchronous copies: the event is sent at the entry, the result is not observed
 *   cuda_batch   batched copies: one event for each element
 *   cuda_launch  kernel and graph launches: only sums are sent
 *   cuda_note    ends of stream captures, and stream ordering: no event is sent
 */
#include "call.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct launch_sums {
	u64 slot;
	u64 kernels, graphs, graph_copies;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32); /* tgid */
	__type(value, struct launch_sums);
} launches SEC(".maps");

static __always_inline int enter_enqueue(struct pt_regs *ctx)
{
	PROLOGUE(probe_cookie(ctx));
	u64 sp = PT_REGS_SP(ctx), caller = 0;
	struct copy_args *c = &t->cuda.copy;
	enum place place;
	bool waits;

	place = cuda_place(ctx, t, p, sp, fn);
	if (place == NESTED)
		return 0;
	waits = mark_call(ctx, t, p, id, sp, fn, TTMON_FAMILY_TRANSFER, place);
	if (!note_call(t, p, TTMON_FAMILY_TRANSFER, TTMON_EV_COPY))
		return waits;
	fetch_args(ctx, t, &FN(fn));
	if (gather_copy(t, c, fn)) {
		emit_refuse(TTMON_EV_COPY_RECT, TTMON_LOSS_READ_FAILED);
		return waits;
	}
	c->bits |= TTMON_B_UNOBSERVED | t->sample;
	if (stream_captured(p, id >> 32, c->stream))
		c->bits |= TTMON_B_CAPTURED;
	t->word[27] = 0;
	emit_copy(t, c, 0, PACK_FN(fn, device_of(t, p, fn)));
	CALLER(ctx, &caller);
	note_copy_site(ctx, t, p, c, fn, caller, true);
	return waits;
}

SEC("?uprobe")
int cuda_enqueue(struct pt_regs *ctx)
{
	BOTH_ENDS(ctx, enter_enqueue, leave_marked);
}

struct batch {
	struct task_state *t;
	u64 dsts, srcs, sizes;
	u64 count;
	u64 packed;
};

static long batch_element(u32 i, struct batch *b)
{
	struct task_state *t = b->t;
	struct copy_args *c;
	u64 off = (u64)i * 8;

	if (!t || i >= b->count)
		return 1;
	c = &t->cuda.copy;
	c->dst = c->src = c->width = 0;
	if (bpf_probe_read_user(&c->dst, 8, (void *)(b->dsts + off)) ||
	    bpf_probe_read_user(&c->src, 8, (void *)(b->srcs + off)) ||
	    bpf_probe_read_user(&c->width, 8, (void *)(b->sizes + off))) {
		emit_refuse(TTMON_EV_COPY, TTMON_LOSS_READ_FAILED);
		return 0;
	}
	if (i == TTMON_BATCH_MAX - 1 && b->count > TTMON_BATCH_MAX)
		c->bits |= TTMON_B_TRUNCATED;
	emit_copy(t, c, 0, b->packed);
	return 0;
}

static __always_inline u64 operand(struct copy_args *c, const u64 *w, u32 array_bit, u64 *pitch, u64 *slice)
{
	if ((u32)w[0] != TTMON_ABI_OPTYPE_POINTER) {
		c->bits |= array_bit;
		*pitch = *slice = 0;
		return 0;
	}
	*pitch = w[2] ?: c->width;
	*slice = *pitch * (w[3] ?: c->rows);
	return w[1];
}

static long batch_3d_element(u32 i, struct batch *b)
{
	struct task_state *t = b->t;
	struct copy_args *c;
	u64 *w;

	if (!t || i >= b->count)
		return 1;
	c = &t->cuda.copy;
	w = t->word;
	if (bpf_probe_read_user(w, TTMON_ABI_BATCH3D_SIZE, (void *)(b->srcs + (u64)i * TTMON_ABI_BATCH3D_SIZE))) {
		emit_refuse(TTMON_EV_COPY_RECT, TTMON_LOSS_READ_FAILED);
		return 0;
	}
	c->bits &= ~(TTMON_B_SRC_ARRAY | TTMON_B_DST_ARRAY);
	c->width = w[TTMON_ABI_BATCH3D_WIDTH / 8];
	c->rows = w[TTMON_ABI_BATCH3D_HEIGHT / 8];
	c->slices = w[TTMON_ABI_BATCH3D_DEPTH / 8];
	c->src = operand(c, w, TTMON_B_SRC_ARRAY, &c->spitch, &c->sslice);
	c->dst = operand(c, w + TTMON_ABI_BATCH3D_DST / 8, TTMON_B_DST_ARRAY, &c->dpitch, &c->dslice);
	normalize_copy(c);
	if (i == TTMON_BATCH_MAX - 1 && b->count > TTMON_BATCH_MAX)
		c->bits |= TTMON_B_TRUNCATED;
	emit_copy(t, c, 0, b->packed);
	return 0;
}

static long batch_hint(u32 i, struct batch *b)
{
	u64 off = (u64)i * 8, addr = 0, bytes = 0;
	struct ttmon_ev_hint *e;

	if (i >= b->count)
		return 1;
	if (bpf_probe_read_user(&addr, 8, (void *)(b->dsts + off)) ||
	    bpf_probe_read_user(&bytes, 8, (void *)(b->sizes + off))) {
		emit_refuse(TTMON_EV_HINT, TTMON_LOSS_READ_FAILED);
		return 0;
	}
	e = emit_reserve(TTMON_EV_HINT, sizeof(*e), bpf_get_current_pid_tgid());
	if (!e)
		return 0;
	e->addr = addr;
	e->bytes = bytes;
	e->hint = TTMON_HINT_PREFETCH;
	e->err = 0;
	e->advice = 0;
	e->loc_type = (s32)b->srcs;
	e->loc_id = (s32)(b->srcs >> 32);
	e->fn = (u32)b->packed;
	e->bits = TTMON_B_ASYNC | TTMON_B_UNOBSERVED | TTMON_B_BATCH |
		  (i == TTMON_BATCH_MAX - 1 && b->count > TTMON_BATCH_MAX ? TTMON_B_TRUNCATED : 0);
	emit_submit(e);
	return 0;
}

/* A batch has no return probe, even with --copy-results: all its elements share one result. */
static __always_inline int enter_batch(struct pt_regs *ctx)
{
	PROLOGUE(probe_cookie(ctx));
	const volatile struct ttmon_fn_desc *d = &FN(fn);
	u64 sp = PT_REGS_SP(ctx);
	struct batch b = { .t = t, .packed = PACK_FN(fn, device_of(t, p, fn)) };
	struct copy_args *c = &t->cuda.copy;
	enum place place;
	bool waits;

	place = cuda_place(ctx, t, p, sp, fn);
	if (place == NESTED)
		return 0;
	waits = mark_call(ctx, t, p, id, sp, fn, TTMON_FAMILY_TRANSFER, place);
	if (!note_call(t, p, TTMON_FAMILY_TRANSFER, TTMON_EV_COPY))
		return waits;
	fetch_args(ctx, t, d);
	clear_copy(c);
	t->word[27] = 0;
	c->bits = TTMON_B_ASYNC | TTMON_B_UNOBSERVED | TTMON_B_BATCH | t->sample;
	if (d->cls == TTMON_CLS_BATCH) {
		b.dsts = ARG(0);
		b.srcs = ARG(1);
		b.sizes = ARG(2);
		b.count = ARG(3);
		c->stream = ARG(4);
	} else if (d->cls == TTMON_CLS_HINT_BATCH) {
		b.dsts = ARG(0);
		b.sizes = ARG(1);
		b.count = ARG(2);
		/*
		 * Only a single location that applies to all ranges is read. With several it is unknown which range
		 * goes where.
		 */
		if (ARG(5) == 1)
			bpf_probe_read_user(&b.srcs, sizeof(b.srcs), (void *)ARG(3));
	} else {
		b.count = ARG(0);
		b.srcs = ARG(1);
		c->stream = ARG(2);
	}
	if (stream_captured(p, id >> 32, c->stream))
		c->bits |= TTMON_B_CAPTURED;
	if (d->cls == TTMON_CLS_BATCH)
		bpf_loop(TTMON_BATCH_MAX, batch_element, &b, 0);
	else if (d->cls == TTMON_CLS_HINT_BATCH)
		bpf_loop(TTMON_BATCH_MAX, batch_hint, &b, 0);
	else
		bpf_loop(TTMON_BATCH_MAX, batch_3d_element, &b, 0);
	return waits;
}

SEC("?uprobe")
int cuda_batch(struct pt_regs *ctx)
{
	BOTH_ENDS(ctx, enter_batch, leave_marked);
}

#define LAUNCH_DEVICES_MAX 1024 /* a bound, since the argument may hold any value */

/*
 * Launches are summed up per process and CPU; the first launch in a later slot sends one record with
 * the sums so far.
 */
static __always_inline void count_launch(u64 id, u32 cls, u32 n)
{
	u32 tgid = id >> 32;
	struct launch_sums *s = bpf_map_lookup_elem(&launches, &tgid);
	struct ttmon_ev_launches *e;
	u64 slot = bpf_ktime_get_ns() / 1000000;

	if (!s) {
		struct launch_sums fresh = {};

		bpf_map_update_elem(&launches, &tgid, &fresh, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&launches, &tgid);
		if (!s) {
			emit_refuse(TTMON_EV_LAUNCHES, TTMON_LOSS_MAP_FULL);
			return;
		}
	}
	if (slot != s->slot) {
		s->slot = slot;
		if (s->kernels | s->graphs | s->graph_copies) {
			e = emit_reserve(TTMON_EV_LAUNCHES, sizeof(*e), id);
			if (e) {
				e->kernels = s->kernels;
				e->graphs = s->graphs;
				e->graph_copies = s->graph_copies;
				emit_submit(e);
			}
		}
	}
	if (cls == TTMON_CLS_LAUNCH)
		__sync_fetch_and_add(&s->kernels, n);
	else if (cls == TTMON_CLS_GRAPH_LAUNCH)
		__sync_fetch_and_add(&s->graphs, 1);
	else
		__sync_fetch_and_add(&s->graph_copies, 1);
}

/*
 * Launches are numbered over the whole process. After the first graph launch the number of kernels in
 * a launch is unknown. After the first launch during a capture it is unknown whether a launch is
 * captured, and so does not run: its stream is not checked.
 */
static __always_inline void number_launch(struct proc_info *p, u32 cls, u32 n)
{
	if (cls == TTMON_CLS_LAUNCH && !p->capturing) {
		if (!__sync_fetch_and_add(&p->kernels, n))
			tell_launched_now(p);
	} else if (cls == TTMON_CLS_LAUNCH || cls == TTMON_CLS_GRAPH_LAUNCH) {
		if (!__sync_fetch_and_add(&p->graphs, 1))
			tell_launched_now(p);
	}
}

/*
 * The number of kernels that one call launches: a launch on several devices has one kernel on each.
 */
static __always_inline u32 kernels_of(struct pt_regs *ctx, u32 fn)
{
	u32 n = PT_REGS_PARM2(ctx);

	if (!FN(fn).arg[0])
		return 1;
	return n < LAUNCH_DEVICES_MAX ? n : LAUNCH_DEVICES_MAX;
}

static __always_inline int enter_launch(struct pt_regs *ctx)
{
	PROLOGUE(probe_cookie(ctx));
	u64 sp = PT_REGS_SP(ctx);
	enum place place;
	bool waits;
	u32 n;

	place = cuda_place(ctx, t, p, sp, fn);
	if (place == NESTED)
		return 0;
	waits = mark_call(ctx, t, p, id, sp, fn, TTMON_FAMILY_LAUNCH, place);
	if (!note_call(t, p, TTMON_FAMILY_LAUNCH, TTMON_EV_LAUNCHES))
		return waits;
	n = kernels_of(ctx, fn);
	if (n) {
		count_launch(id, FN(fn).cls, n);
		number_launch(p, FN(fn).cls, n);
	}
	return waits;
}

SEC("?uprobe")
int cuda_launch(struct pt_regs *ctx)
{
	BOTH_ENDS(ctx, enter_launch, leave_marked);
}

/*
 * Stream capture. A capture is identified by the time at which it began. The stream that began it
 * belongs to it from then on. Another stream joins the capture when it waits for an event that was
 * recorded in a stream of the capture (CUDA's fork and join rule). The end of the capture invalidates
 * all of this at once.
 */
static __always_inline void note_capture(struct proc_info *p, u32 cls, u64 a, u64 b)
{
	u64 cap;

	switch (cls) {
	case TTMON_CLS_CAPTURE_END: {
		struct handle_key k = { .tgid = bpf_get_current_pid_tgid() >> 32 };

		k.handle = recall(&captures, a);
		if (!k.handle || bpf_map_delete_elem(&live_captures, &k))
			return;
		__sync_fetch_and_add(&p->capturing, -1);
		return;
	}
	case TTMON_CLS_EVENT_RECORD: /* event a, stream b */
	case TTMON_CLS_STREAM_WAIT:  /* stream a, event b */
		cap = recall(&captures, b);
		if (cap && recall(&live_captures, cap))
			remember(&captures, a, cap);
		return;
	}
}

static __always_inline int enter_note(struct pt_regs *ctx)
{
	PROLOGUE(probe_cookie(ctx));
	u32 cls = FN(fn).cls;
	u64 sp = PT_REGS_SP(ctx);
	enum place place;
	bool waits;

	/* Event records and waits matter only during a capture. */
	if ((cls == TTMON_CLS_EVENT_RECORD || cls == TTMON_CLS_STREAM_WAIT) && !p->capturing)
		return 0;
	place = cuda_place(ctx, t, p, sp, fn);
	if (place == NESTED)
		return 0;
	waits = mark_call(ctx, t, p, id, sp, fn, TTMON_FAMILY_ALLOC, place);
	if (note_call(t, p, TTMON_FAMILY_ALLOC, TTMON_EV_ALLOC))
		note_capture(p, cls, PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx));
	return waits;
}

SEC("?uprobe")
int cuda_note(struct pt_regs *ctx)
{
	BOTH_ENDS(ctx, enter_note, leave_marked);
}
