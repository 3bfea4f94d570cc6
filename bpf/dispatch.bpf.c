// SPDX-License-Identifier: GPL-2.0-only
/*
 * dispatch.bpf.c: what a program sends to Tenstorrent devices: workloads, trace replays and transfers,
 * and its waits for their end.
 *
 * A public function calls an inner one, which may be probed as well: only the outermost probed call of
 * a thread counts. There are no return probes, so a call counts as running while its return address is
 * still on the stack (call.bpf.h). Every dispatch is added to the sums of its process, CPU and device.
 * The first few dispatches of each millisecond are sent one by one, with the sums so far.
 */
#include "tt.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct dispatch_key {
	u32 tgid;
	u32 cpu;
	u64 device;
};

struct dispatch_sums {
	u64 ms;	  /* of the last record */
	u32 sent; /* records in that millisecond */
	u32 dev_kind;
	u64 sums[TTMON_TT_DISPATCH_MAX];
};

/*
 * This map never evicts entries, so the sums of a process only grow. The daemon removes the sums of
 * ended processes.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct dispatch_key);
	__type(value, struct dispatch_sums);
} tt_dispatches SEC(".maps");

#define OBJECT_WORDS 8

/*
 * Returns the device that an object refers to: the object itself, or the first device that one of its
 * words points to. The second word of a queue, for instance, points to its mesh.
 */
SUBPROG u64 find_device(const struct tt_hit *h, u64 object, u32 *kind)
{
	u64 w[OBJECT_WORDS];

	if (!h || !kind || !(h->vt_device | h->vt_mesh) || !is_object(object) ||
	    bpf_probe_read_user(w, sizeof(w), (void *)object))
		return 0;
	*kind = tt_kind(h, w[0]);
	if (*kind)
		return object;
#pragma unroll
	for (u32 i = 1; i < OBJECT_WORDS; i++) {
		*kind = tt_kind_at(h, w[i]);
		if (*kind)
			return w[i];
	}
	return 0;
}

#define IS_INNER(d) ((d)->bits & TTMON_TTF_INNER)

/*
 * Returns true if the function outer can have called the function fn, at any depth. No public function
 * calls itself, or a public function of another kind.
 */
static __always_inline bool may_call(u32 outer, u32 fn)
{
	return outer != fn && (IS_INNER(TT_DESC(fn)) || TT_DESC(outer)->aux == TT_DESC(fn)->aux);
}

/*
 * Returns true if the public function outer may end with a jump to fn. A public function passes on
 * work of its own kind, and it selects the slow queue in this way.
 */
static __always_inline bool may_jump(u32 outer, u32 fn)
{
	const volatile struct ttmon_tt_desc *o = TT_DESC(outer), *d = TT_DESC(fn);

	return IS_INNER(d) && !IS_INNER(o) &&
	       (o->aux == d->aux || (o->aux == TTMON_TT_WORKLOAD && d->aux == TTMON_TT_SLOW));
}

/*
 * Returns true if this call is inside another dispatch of this thread. The return address of that
 * dispatch is then still on the stack: deeper, or, after a jump, at the same place. But the address is
 * also there if one instruction in a loop (a queue of tasks) first calls a dispatching function
 * directly, and then a function that dispatches further down. may_call() and may_jump() exclude this
 * case; without them all later dispatches of such a loop would be missed.
 */
static __always_inline bool nested_dispatch(struct pt_regs *ctx, struct task_state *t, u64 sp, u32 fn)
{
	u64 ra = 0;

	if (may_run(PT_REGS_FP(ctx), &t->tt_marker, sp))
		return may_call(t->tt_marker.fn, fn);
	if (t->tt_marker.sp != sp || !may_jump(t->tt_marker.fn, fn))
		return false;
	CALLER(ctx, &ra);
	return ra == t->tt_marker.ra;
}

static __always_inline struct dispatch_sums *sums_of(const struct dispatch_key *k, u32 kind)
{
	struct dispatch_sums *s = bpf_map_lookup_elem(&tt_dispatches, k);
	struct dispatch_sums fresh = { .dev_kind = kind };

	if (s)
		return s;
	bpf_map_update_elem(&tt_dispatches, k, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&tt_dispatches, k);
}

/* Returns true if this dispatch is sent as a record. */
static __always_inline bool is_due(struct dispatch_sums *s)
{
	u64 ms = bpf_ktime_get_ns() / 1000000;

	if (s->ms != ms) {
		s->ms = ms;
		s->sent = 0;
	}
	return s->sent++ < TTMON_TT_DISPATCH_BURST;
}

static __always_inline u64 what_of(const struct tt_hit *h, const volatile struct ttmon_tt_desc *d)
{
	u64 what = tt_arg(h, d->arg[1]);
	u32 id = 0;

	if (d->bits & TTMON_TTF_REF) {
		bpf_probe_read_user(&id, sizeof(id), (void *)what);
		return id;
	}
	return d->aux == TTMON_TT_TRACE ? (u32)what : what;
}

SEC("?uprobe")
int tt_dispatch(struct pt_regs *ctx)
{
	struct dispatch_key k = { .tgid = bpf_get_current_pid_tgid() >> 32 };
	const volatile struct ttmon_tt_desc *d;
	struct ttmon_ev_tt_dispatch *e;
	struct dispatch_sums *s;
	struct proc_info *p;
	struct task_state *t;
	struct tt_hit h;
	u64 sp = PT_REGS_SP(ctx), what;
	u32 kind = TTMON_TT_DEV_UNKNOWN, aux, blocking, sample;

	if (!tt_enter(ctx, &h))
		return 0;
	t = task_get();
	if (!t) {
		emit_refuse(TTMON_EV_TT_DISPATCH, TTMON_LOSS_MAP_FULL);
		return 0;
	}
	if (nested_dispatch(ctx, t, sp, h.fn)) {
		count_nested();
		return 0;
	}
	set_marker(ctx, &t->tt_marker, sp, h.fn);
	p = bpf_map_lookup_elem(&procs, &k.tgid);
	if (p) {
		count_hit(p, PROC_HITS_DISPATCH);
		if (is_reduced(p, k.tgid, TTMON_FAMILY_DISPATCH, &sample)) {
			count_only(TTMON_EV_TT_DISPATCH);
			return 0;
		}
	}
	if (family_gate(TTMON_FAMILY_DISPATCH, TTMON_EV_TT_DISPATCH))
		return 0;
	d = TT_DESC(h.fn);
	aux = d->aux;
	if (aux >= TTMON_TT_DISPATCH_MAX)
		return 0;
	k.device = find_device(&h, tt_arg(&h, d->arg[0]), &kind);
	k.cpu = bpf_get_smp_processor_id();
	s = sums_of(&k, kind);
	if (!s) {
		emit_refuse(TTMON_EV_TT_DISPATCH, TTMON_LOSS_MAP_FULL);
		return 0;
	}
	__sync_fetch_and_add(&s->sums[aux], 1);
	if (!is_due(s))
		return 0;
	what = what_of(&h, d);
	blocking = (u8)tt_arg(&h, d->arg[2]) != 0;
	e = emit_reserve(TTMON_EV_TT_DISPATCH, sizeof(*e), bpf_get_current_pid_tgid());
	if (!e)
		return 0;
	e->device = k.device;
	e->what = what;
	__builtin_memcpy(e->sums, s->sums, sizeof(e->sums));
	e->fn = h.fn;
	e->kind = aux;
	e->dev_kind = kind;
	e->blocking = blocking;
	e->pad = 0;
	e->slot = h.slot;
	emit_submit(e);
	return 0;
}
