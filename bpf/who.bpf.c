// SPDX-License-Identifier: GPL-2.0-only
/*
 * who.bpf.c: who made a call wait for a CPU (see who.bpf.h).
 *
 *   who_migrate   a thread that waits for a CPU is moved to another one
 *
 * Two functions are global, which the verifier checks once: inlined into one another, the loop over the
 * rows within the loop over the periods would be more instructions than it accepts.
 */
#include "who.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* If there is no row left, the shorter of this time and the shortest row loses its name. */
GLOBAL_SUBPROG int who_add(struct who_table *w, struct ttmon_who *who, u64 ns)
{
	u32 least = 0;

	if (!w || !who)
		return 0;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < TTMON_WHO_ROWS; i++) {
		struct ttmon_who_row *r = &w->row[i];

		if (i == w->nr_rows) {
			r->who = *who;
			r->ns = ns;
			w->nr_rows = i + 1;
			return 0;
		}
		if (r->ns < w->row[least].ns)
			least = i;
		if (r->who.tgid == who->tgid && r->who.start_ns == who->start_ns && r->who.role == who->role) {
			r->ns += ns;
			return 0;
		}
	}
	least &= TTMON_WHO_ROWS - 1;
	if (w->row[least].ns < ns) {
		w->sum[TTMON_WAIT_SUM_RAN_OTHERS] += w->row[least].ns;
		w->row[least].who = *who;
		w->row[least].ns = ns;
		return 0;
	}
	w->sum[TTMON_WAIT_SUM_RAN_OTHERS] += ns;
	return 0;
}

GLOBAL_SUBPROG int who_period(struct who_table *w, struct run *v, u64 from, u64 to)
{
	u64 begin, end;

	if (!w || !v || v->end <= from)
		return 1;
	begin = v->begin > from ? v->begin : from;
	end = v->end < to ? v->end : to;
	if (begin < end) {
		if (v->who.tgid)
			who_add(w, &v->who, end - begin);
		else
			w->sum[TTMON_WAIT_SUM_IDLE] += end - begin;
	}
	return 0;
}

/* ---- a ready thread is moved to another CPU ---- */

/*
 * Adds the period of the task that runs on the run queue's CPU now, which has not ended. The caller
 * holds the run queue's lock: the task cannot go.
 */
static __always_inline void who_runs_now(struct who_table *w, struct runs *r, struct rq *rq, u64 from, u64 to)
{
	struct task_struct *curr = BPF_CORE_READ(rq, curr), *leader = BPF_CORE_READ(curr, group_leader);
	struct run v = { .end = to };

	if (BPF_CORE_READ(curr, pid)) {
		v.begin = BPF_CORE_READ(curr, sched_info.last_arrival);
		v.who.tgid = BPF_CORE_READ(curr, tgid);
		v.who.start_ns = BPF_CORE_READ(leader, start_time);
		v.who.role = BPF_CORE_READ(curr, flags) & PF_KTHREAD ? TTMON_WAIT_ROLE_RAN_KERNEL : TTMON_WAIT_ROLE_RAN;
		BPF_CORE_READ_STR_INTO(&v.who.comm, leader, comm);
	} else {
		v.begin = r->run[(r->n - 1) & (RUNS - 1)].end;
	}
	who_period(w, &v, from, to);
}

/* From now on its wait is that of the other CPU's run queue. */
static __always_inline void who_elsewhere(struct ledger *l, struct task_struct *p, int dest)
{
	struct cfs_rq **all = BPF_CORE_READ(p, sched_task_group, cfs_rq), *cfs_rq = NULL;

	bpf_probe_read_kernel(&cfs_rq, sizeof(cfs_rq), &all[dest]);
	l->run_seen = p->sched_info.run_delay;
	l->ready = 1;
	/* If the group is throttled there now, the counter will also have the time before. */
	l->cfs_rq = 0;
	if (!knows_throttled() || BPF_CORE_READ(cfs_rq, throttled_clock_self))
		return;
	l->cfs_rq = (u64)cfs_rq;
	l->throttled = BPF_CORE_READ(cfs_rq, throttled_clock_self_time);
}

SUBPROG int who_moved(struct task_struct *p, int dest)
{
	struct uprobe_task *utask = p->utask;
	struct rq *rq = p->se.cfs_rq->rq;
	struct task_state *t;
	u64 waited, from, to;
	struct runs *r;
	u32 cpu;

	if (!utask || !utask->return_instances)
		return 0;
	t = bpf_task_storage_get(&tasks, p, 0, 0);
	if (!t || !t->ledger.waiting)
		return 0;
	/* Its dequeue has added what it waited here to run_delay: nothing if it is only being woken. */
	waited = p->sched_info.run_delay - t->ledger.run_seen;
	cpu = rq->cpu;
	r = bpf_map_lookup_elem(&cpu_runs, &cpu);
	if (waited && r) {
		to = rq->clock;
		from = after_throttling(&t->ledger, p->se.cfs_rq, to - waited, to);
		who_runs_now(&t->ledger.who, r, rq, from, to);
		who_ran(&t->ledger.who, r, from, to);
	}
	who_elsewhere(&t->ledger, p, dest);
	return 0;
}

SEC("?tp_btf/sched_migrate_task")
int BPF_PROG(who_migrate, struct task_struct *p, int dest)
{
	return calls_waiting && has_runs() ? who_moved(p, dest) : 0;
}
