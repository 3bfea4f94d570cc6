/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rmid.bpf.h: the RMID of each process, shared by the programs of the scheduler (sched.bpf.c) and the
 * programs about RMIDs (rmid.bpf.c).
 *
 * In the emulated backend, `rmid_pool` is the allocator with its spin lock, and `rmid_procs` maps
 * processes to RMIDs. A program that got an RMID from the pool inserts it with BPF_NOEXIST, and
 * returns it to the pool if another program was faster. The program that deletes the entry frees the
 * RMID; a delete succeeds only once. So a process never has more than one RMID. A record is reserved
 * and gets its time before other programs can see its change. Therefore the times of the records of an
 * RMID are in the order of the changes.
 */
#ifndef TTMON_RMID_BPF_H
#define TTMON_RMID_BPF_H

#include "sched.bpf.h"

#include <ttmon/rmid_alloc.h>

struct rmid_pool_value {
	struct bpf_spin_lock lock;
	struct ttmon_rmid_pool pool;
};

struct rmid_pool_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct rmid_pool_value);
};

struct rmid_proc {
	u64 start_ns;
	u32 rmid;
	u32 pad;
};

/* Preallocated, since it is written under the run queue's lock. */
struct rmid_procs_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * TTMON_RMID_POOL);
	__type(key, u32); /* tgid */
	__type(value, struct rmid_proc);
};

extern struct rmid_pool_map rmid_pool SEC(".maps");
extern struct rmid_procs_map rmid_procs SEC(".maps");

/* Discards a record that is not to be sent. */
static __always_inline void discard(void *e, u32 kind)
{
	struct ttmon_cpu_stat *st = emit_stat();

	if (st)
		__sync_fetch_and_add(&st->attempted[kind], -1);
	bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
}

/*
 * Assigns a free RMID to a process without one and sends ALLOC. If none is free, it sends NONE if
 * say_none is set. Returns 0 if the process has no RMID now. Except for rmid_tell(), callers make sure
 * that the process has not ended.
 */
SUBPROG u32 rmid_give(struct task_struct *leader, u64 id, u32 say_none)
{
	struct ttmon_rmid_holder who = {};
	struct rmid_pool_value *v;
	struct rmid_proc row = {};
	struct ttmon_ev_rmid *e;
	u32 zero = 0, tgid = id >> 32, rmid;

	v = bpf_map_lookup_elem(&rmid_pool, &zero);
	if (!v || (!say_none && !ttmon_rmid_pool_ready(&v->pool, bpf_ktime_get_ns())))
		return 0;
	e = emit_reserve(TTMON_EV_RMID, sizeof(*e), id);
	/*
	 * There is no room for the record. A change is never made without its record, so no RMID is assigned
	 * now; a later call tries again.
	 */
	if (!e)
		return 0;
	who.start_ns = BPF_CORE_READ(leader, start_time);
	who.tgid = tgid;
	BPF_CORE_READ_STR_INTO(&who.comm, leader, comm);
	e->when_ns = e->h.ts_ns;
	e->start_ns = who.start_ns;
	e->op = TTMON_RMID_ALLOC;
	__builtin_memcpy(e->comm, who.comm, sizeof(e->comm));
	bpf_spin_lock(&v->lock);
	if (!v->pool.max)
		ttmon_rmid_pool_init(&v->pool, cfg_max_rmid);
	rmid = ttmon_rmid_pool_alloc(&v->pool, &who, e->when_ns);
	bpf_spin_unlock(&v->lock);
	e->rmid = rmid;
	if (rmid) {
		row.start_ns = who.start_ns;
		row.rmid = rmid;
		if (!bpf_map_update_elem(&rmid_procs, &tgid, &row, BPF_NOEXIST)) {
			emit_submit(e);
			return rmid;
		}
		bpf_spin_lock(&v->lock);
		ttmon_rmid_pool_free(&v->pool, rmid, tgid, who.start_ns, e->when_ns);
		bpf_spin_unlock(&v->lock);
	} else if (say_none) {
		e->op = TTMON_RMID_NONE;
		emit_submit(e);
		return 0;
	}
	discard(e, TTMON_EV_RMID);
	return 0;
}

/*
 * Returns the RMID of a process, or 0 if it has none. In the emulated backend it comes from the table,
 * else from the field that the kernel keeps for resctrl or for a module. It can be used in any kind of
 * program.
 */
static __always_inline u32 rmid_of(struct task_struct *t, u32 tgid)
{
	if (cfg_rmid == TTMON_RMID_EMULATED) {
		struct rmid_proc *p = bpf_map_lookup_elem(&rmid_procs, &tgid);

		return p ? p->rmid : 0;
	}
	if (cfg_rmid != TTMON_RMID_OFF && bpf_core_field_exists(t->rmid))
		return BPF_CORE_READ(t, rmid);
	return 0;
}

/*
 * Returns the RMID of a process that leaves a CPU. If it has none, tries again to assign one. It is
 * called once for each new row of a CPU's table, not at each switch, under the run queue's lock.
 * Programs of type raw_tp must not use bpf_spin_lock, so they can only call rmid_of().
 */
static __always_inline u32 rmid_of_or_give(struct task_struct *t, u32 tgid)
{
	u32 rmid = rmid_of(t, tgid);

	if (rmid || cfg_rmid != TTMON_RMID_EMULATED || !active || BPF_CORE_READ(t, flags) & (PF_KTHREAD | PF_EXITING))
		return rmid;
	/* A context switch was hidden from tracers: another task than expected leaves the CPU. */
	if ((u32)BPF_CORE_READ(t, tgid) != tgid)
		return 0;
	return rmid_give(BPF_CORE_READ(t, group_leader), ((u64)tgid << 32) | (u32)BPF_CORE_READ(t, pid), 0);
}

#endif
