// SPDX-License-Identifier: GPL-2.0-only
/*
 * rmid.bpf.c: the processes that the scheduler knows (TASK events: all processes of the host, traced
 * or not) and their RMIDs. In the emulated backend this file assigns the RMIDs; in the module backend
 * a kernel module's tracepoints report them.
 *
 * Threads are ignored: a process begins with its leader and ends with its last thread. Its end frees
 * its RMID, so a zombie has none.
 *
 * A process may end while the iterator handles it. Then one of the two programs sees the other: the
 * iterator first makes its change visible and then checks whether threads are left; the exit of the
 * last thread first lowers the count of threads and then looks for an RMID.
 */
#include "rmid.bpf.h"
#include "task.bpf.h"

struct rmid_pool_map rmid_pool SEC(".maps");
struct rmid_procs_map rmid_procs SEC(".maps");

/* Error codes of the tracepoint rdt_sample, from include/uapi/asm-generic/errno-base.h */
#define ERR_NODEV (-19)
#define ERR_INVAL (-22)

/* Returns true if the process has threads that have not ended. */
static __always_inline int alive(struct task_struct *t)
{
	return BPF_CORE_READ(t, signal, live.counter) > 0;
}

/*
 * Reserves and fills in the TASK record of a process. leader is the task whose identity the record
 * gets.
 */
static __always_inline struct ttmon_ev_task *task_record(struct task_struct *leader, u64 id, u32 reason)
{
	struct ttmon_ev_task *e = emit_reserve(TTMON_EV_TASK, sizeof(*e), id);

	if (!e)
		return NULL;
	e->start_ns = BPF_CORE_READ(leader, start_time);
	e->cgroup_id = BPF_CORE_READ(leader, cgroups, dfl_cgrp, kn, id);
	e->ppid = BPF_CORE_READ(leader, real_parent, tgid);
	e->reason = reason;
	e->cls = BPF_CORE_READ(leader, flags) & PF_KTHREAD ? TTMON_CPU_KERNEL : TTMON_CPU_USER;
	e->pad = 0;
	__builtin_memset(e->comm, 0, sizeof(e->comm));
	BPF_CORE_READ_STR_INTO(&e->comm, leader, comm);
	return e;
}

/* Removes the RMID of a process. Sends FREE if the process had one. */
SUBPROG int rmid_take(u64 id)
{
	struct ttmon_rmid_holder who = {};
	const struct ttmon_rmid_entry *held;
	u32 zero = 0, tgid = id >> 32;
	struct rmid_pool_value *v = bpf_map_lookup_elem(&rmid_pool, &zero);
	struct rmid_proc *p = bpf_map_lookup_elem(&rmid_procs, &tgid), had;
	struct ttmon_ev_rmid *e;
	u64 now;

	if (!v || !p)
		return 0;
	had = *p;
	if (bpf_map_delete_elem(&rmid_procs, &tgid))
		return 0;
	e = emit_reserve(TTMON_EV_RMID, sizeof(*e), id);
	now = e ? e->h.ts_ns : bpf_ktime_get_ns();
	bpf_spin_lock(&v->lock);
	held = ttmon_rmid_pool_holder(&v->pool, had.rmid);
	if (held)
		who = held->who;
	ttmon_rmid_pool_free(&v->pool, had.rmid, tgid, had.start_ns, now);
	bpf_spin_unlock(&v->lock);
	if (!e)
		return 0;
	e->when_ns = now;
	e->start_ns = had.start_ns;
	e->rmid = had.rmid;
	e->op = TTMON_RMID_FREE;
	__builtin_memcpy(e->comm, who.comm, sizeof(e->comm));
	emit_submit(e);
	return 0;
}

/* This runs before the child does. */
SEC("?tp_btf/sched_process_fork")
int BPF_PROG(task_fork, struct task_struct *parent, struct task_struct *child)
{
	u64 id = task_id(child);
	struct ttmon_ev_task *e;

	if (!active || id >> 32 != (u32)id)
		return 0;
	e = task_record(child, id, TTMON_TASK_FORK);
	if (e)
		emit_submit(e);
	if (cfg_rmid != TTMON_RMID_EMULATED || BPF_CORE_READ(child, flags) & PF_KTHREAD)
		return 0;
	/* Frees the RMID of an earlier process with this number, whose end was not seen. */
	rmid_take(id);
	rmid_give(child, id, 1);
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int BPF_PROG(task_exec, struct task_struct *task)
{
	struct ttmon_ev_task *e;

	if (!active)
		return 0;
	e = task_record(BPF_CORE_READ(task, group_leader), task_id(task), TTMON_TASK_EXEC);
	if (e)
		emit_submit(e);
	rmid_of_or_give(task, BPF_CORE_READ(task, tgid));
	return 0;
}

/*
 * See on_exit in ttmond.bpf.c. Two threads that end at the same time may both find that no thread is
 * left: then the event is sent twice.
 */
SEC("?tp_btf/sched_process_exit")
int BPF_PROG(task_exit, struct task_struct *task)
{
	u64 id = task_id(task);
	struct ttmon_ev_task *e;

	if (!active || alive(task))
		return 0;
	e = task_record(BPF_CORE_READ(task, group_leader), id, TTMON_TASK_EXIT);
	if (e)
		emit_submit(e);
	if (cfg_rmid == TTMON_RMID_EMULATED)
		rmid_take(id);
	return 0;
}

/*
 * Handles a process that the iterator found: sends the RMID that it has or gets. Returns 1 if no RMID
 * was free.
 */
static __always_inline u8 rmid_tell(struct task_struct *t, u64 id, bool say_none)
{
	u32 tgid = id >> 32;
	struct rmid_proc *p = bpf_map_lookup_elem(&rmid_procs, &tgid);
	struct ttmon_ev_rmid *e;

	if (p && p->start_ns != BPF_CORE_READ(t, start_time)) {
		rmid_take(id);
		p = NULL;
	}
	if (!p) {
		u32 rmid = rmid_give(t, id, say_none);

		if (!alive(t))
			rmid_take(id);
		return !rmid;
	}
	e = emit_reserve(TTMON_EV_RMID, sizeof(*e), id);
	if (!e)
		return 0;
	/* The record has its time now. An RMID that is still in the map was not freed before that time. */
	p = bpf_map_lookup_elem(&rmid_procs, &tgid);
	if (!p) {
		discard(e, TTMON_EV_RMID);
		return 0;
	}
	e->when_ns = e->h.ts_ns;
	e->start_ns = p->start_ns;
	e->rmid = p->rmid;
	e->op = TTMON_RMID_EXISTING;
	__builtin_memset(e->comm, 0, sizeof(e->comm));
	BPF_CORE_READ_STR_INTO(&e->comm, t, comm);
	emit_submit(e);
	return 0;
}

u64 first_session = 0;

/*
 * Writes one byte for each process, so that a read() of n bytes handles n processes. The byte is 1 if
 * the process needs an RMID and has none.
 */
SEC("?iter/task")
int task_iter(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct ttmon_ev_task *e;
	u8 without = 0;
	u64 id;

	if (!t)
		return 0;
	id = task_id(t);
	if (!active || id >> 32 != (u32)id || !alive(t))
		return 0;
	e = task_record(t, id, TTMON_TASK_SEEN);
	/*
	 * The process is alive after the record got its time, so the record of its end gets a later time.
	 */
	if (e && !alive(t)) {
		discard(e, TTMON_EV_TASK);
		return 0;
	}
	if (e)
		emit_submit(e);
	/*
	 * The lack of an RMID is reported once for each process: here for processes that ran at the start, at
	 * their fork for all others.
	 */
	if (!first_session)
		first_session = ctx->meta->session_id;
	if (cfg_rmid == TTMON_RMID_EMULATED && !(BPF_CORE_READ(t, flags) & PF_KTHREAD))
		without = rmid_tell(t, id, first_session == ctx->meta->session_id);
	bpf_seq_write(ctx->meta->seq, &without, sizeof(without));
	return 0;
}

static __always_inline int told_by_module(u32 rmid, const char *comm, int tgid, u64 when_ns, u32 op)
{
	struct ttmon_ev_rmid *e;

	if (!active)
		return 0;
	e = emit_reserve(TTMON_EV_RMID, sizeof(*e), ((u64)(u32)tgid << 32) | (u32)tgid);
	if (!e)
		return 0;
	e->when_ns = when_ns;
	e->start_ns = 0;
	e->rmid = rmid;
	e->op = op;
	__builtin_memset(e->comm, 0, sizeof(e->comm));
	if (comm)
		bpf_probe_read_kernel_str(e->comm, sizeof(e->comm), comm);
	emit_submit(e);
	return 0;
}

SEC("?raw_tp")
int BPF_PROG(rmid_mod_alloc, u32 rmid, const char *comm, int tgid, u64 timestamp)
{
	return told_by_module(rmid, comm, tgid, timestamp, TTMON_RMID_ALLOC);
}

SEC("?raw_tp")
int BPF_PROG(rmid_mod_existing, u32 rmid, const char *comm, int tgid, u64 timestamp)
{
	return told_by_module(rmid, comm, tgid, timestamp, TTMON_RMID_EXISTING);
}

SEC("?raw_tp")
int BPF_PROG(rmid_mod_free, u32 rmid, u64 timestamp)
{
	return told_by_module(rmid, NULL, 0, timestamp, TTMON_RMID_FREE);
}

static __always_inline u8 rdt_state(int err)
{
	switch (err) {
	case 0:
		return TTMON_RDT_OK;
	case ERR_INVAL:
		return TTMON_RDT_UNAVAILABLE;
	case ERR_NODEV:
		return TTMON_RDT_UNSUPPORTED;
	default:
		return TTMON_RDT_ERROR;
	}
}

struct rdt_values {
	u64 value[TTMON_RDT_VALUES];
	int err[TTMON_RDT_VALUES];
};

static __always_inline int rdt_by_module(u32 rmid, u64 when_ns, u32 domain, const struct rdt_values *r)
{
	struct ttmon_ev_rdt *e;

	if (!active)
		return 0;
	e = emit_reserve(TTMON_EV_RDT, sizeof(*e), 0);
	if (!e)
		return 0;
	e->when_ns = when_ns;
	e->rmid = rmid;
	e->domain = domain;
	__builtin_memset(e->pad, 0, sizeof(e->pad));
#pragma unroll
	for (int i = 0; i < TTMON_RDT_VALUES; i++) {
		e->state[i] = rdt_state(r->err[i]);
		e->value[i] = r->err[i] ? 0 : r->value[i];
	}
	emit_submit(e);
	return 0;
}

SEC("?raw_tp")
int BPF_PROG(rmid_mod_rdt, u32 rmid, u64 timestamp, u64 llc, int llc_err, u64 total, int total_err, u64 local,
	     int local_err)
{
	struct rdt_values r = { { llc, total, local }, { llc_err, total_err, local_err } };

	return rdt_by_module(rmid, timestamp, 0, &r);
}

/*
 * The variant with the L3 domain as the last argument. The kernel refuses to attach it to a tracepoint
 * that has eight arguments.
 */
SEC("?raw_tp")
int BPF_PROG(rmid_mod_rdt9, u32 rmid, u64 timestamp, u64 llc, int llc_err, u64 total, int total_err, u64 local,
	     int local_err, u32 domain)
{
	struct rdt_values r = { { llc, total, local }, { llc_err, total_err, local_err } };

	return rdt_by_module(rmid, timestamp, domain, &r);
}
