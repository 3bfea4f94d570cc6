/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cause.bpf.h: the processes that made a call wait: those that ran on the CPU for which it waited, and
 * those that woke it.
 *
 * While at least one thread is off its CPU inside a call, each CPU keeps the last RUNS periods in
 * which a process ran on it. When such a thread comes back onto a CPU, the kernel's accounting has the
 * time since which it was ready (sched_info.last_queued), and the periods since then tell what ran
 * instead. If a ready thread is moved to another CPU, the periods of the CPU that it leaves are looked
 * at then.
 *
 * A period is from sched_info.last_arrival of the task that ran to the run queue's clock at the switch
 * that removes it, so that a switch that is hidden from tracers leaves a gap. A gap has no process: it
 * is what the daemon finds missing when it compares the sum with the time in run queues.
 *
 *	last_queued			       now: the thread comes in
 *	  |<------------ waited ------------->|
 *	  |   A   |     B     |    gap    | A |		A: 2 periods, B: 1, unknown: the gap
 *
 * A blocked time ends when the thread is woken (sched_waking runs where the waker does): by a process,
 * unless an interrupt woke it, which may run on top of any process.
 *
 * The thread's own cgroup may be throttled. That is part of the wait, and it is assumed to come first:
 * a thread that is alone on its CPU with its group is throttled when it is taken off.
 */
#ifndef TTMON_CAUSE_BPF_H
#define TTMON_CAUSE_BPF_H

#include "task.bpf.h"

#define RUNS 128

/* A period in which a process ran, by the run queue's clock. */
struct run {
	u64 begin, end;
	struct ttmon_who who; /* tgid 0: the CPU was idle */
};

struct runs {
	u64 n; /* number of periods so far */
	struct run run[RUNS];
};

/* Written at a CPU's switches, under its run queue's lock. */
struct runs_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set to the number of CPUs before load */
	__type(key, u32);
	__type(value, struct runs);
};

extern struct runs_map cpu_runs SEC(".maps");
extern u64 calls_waiting; /* threads off their CPU inside a call */

static __always_inline bool has_runs(void)
{
	return bpf_core_field_exists(((struct sched_info *)0)->last_queued) &&
	       bpf_core_field_exists(((struct sched_entity *)0)->cfs_rq);
}

/* Before 6.6 the kernel only shows that the group was throttled, and not for how long. */
static __always_inline bool knows_throttled(void)
{
	return bpf_core_field_exists(((struct cfs_rq *)0)->throttled_clock_self_time);
}

static __always_inline u64 throttled_of(struct cfs_rq *cfs_rq)
{
	if (knows_throttled())
		return cfs_rq->throttled_clock_self_time;
	if (bpf_core_field_exists(((struct cfs_rq *)0)->throttled_clock_pelt_time))
		return cfs_rq->throttled_clock_pelt_time;
	return 0;
}

/*
 * cause.bpf.c: adds a time of a process; the time of a period in [from, to), and returns 1 if there is
 * nothing to find before it.
 */
extern int who_add(struct who_table *w, struct ttmon_who *who, u64 ns, u64 fn, u64 caller);
extern int who_period(struct who_table *w, struct run *v, u64 from, u64 to);

/* Adds the periods of this CPU in [from, to). */
static __always_inline void who_ran(struct who_table *w, struct runs *r, u64 from, u64 to)
{
	u64 n = r->n;

#pragma clang loop unroll(disable)
	for (u32 i = 1; i <= RUNS; i++)
		if (who_period(w, &r->run[(n - i) & (RUNS - 1)], from, to))
			break;
}

/* Stores the period of the task that leaves its CPU. */
static __always_inline void note_run(struct runs *r, struct task_struct *prev, u64 now)
{
	struct run *v = &r->run[r->n & (RUNS - 1)], *before = &r->run[(r->n - 1) & (RUNS - 1)];
	struct task_struct *leader = prev->group_leader;

	v->end = now;
	if (prev->pid) {
		v->begin = prev->sched_info.last_arrival;
		v->who.tgid = prev->tgid;
		v->who.role = prev->flags & PF_KTHREAD ? TTMON_WAIT_ROLE_RAN_KERNEL : TTMON_WAIT_ROLE_RAN;
		v->who.start_ns = leader->start_time;
		*(u64 *)&v->who.comm[0] = *(u64 *)&leader->comm[0];
		*(u64 *)&v->who.comm[8] = *(u64 *)&leader->comm[8];
	} else {
		/*
		 * The kernel keeps no such time for the idle task. All switches since a thread began to wait
		 * are here, and a period is only compared with waits: so it may begin too early.
		 */
		v->begin = before->end;
		v->who.tgid = 0;
	}
	r->n++;
}

/* The thread leaves its CPU inside a call. */
static __always_inline void who_out(struct task_struct *prev, struct ledger *l)
{
	if (!l->waiting) {
		l->waiting = 1;
		__sync_fetch_and_add(&calls_waiting, 1);
	}
	l->run_seen = l->run_out = prev->sched_info.run_delay;
	l->waker_set = WAKER_NONE;
	l->cfs_rq = (u64)prev->se.cfs_rq;
	l->throttled = throttled_of(prev->se.cfs_rq);
	l->ready = !prev->__state;
}

static __always_inline void who_no_more(struct ledger *l)
{
	if (l->waiting)
		__sync_fetch_and_add(&calls_waiting, -1);
	l->waiting = 0;
}

/*
 * Takes the time that the thread's own group was throttled from the begin of a wait [from, to).
 * Returns where the rest begins; `to` if it is not known how much it was.
 */
static __always_inline u64 after_throttling(struct ledger *l, struct cfs_rq *cfs_rq, u64 from, u64 to)
{
	u64 now = throttled_of(cfs_rq), ns;

	/* On another CPU the counter is another one: at 0 it was never throttled. */
	ns = l->cfs_rq == (u64)cfs_rq ? now - l->throttled : now;
	if (!ns)
		return from;
	/* If the thread slept at first, the group may have been throttled before it was ready. */
	if (!knows_throttled() || l->cfs_rq != (u64)cfs_rq || !l->ready)
		return to;
	if (ns > to - from)
		ns = to - from;
	l->who.sum[TTMON_WAIT_SUM_THROTTLED] += ns;
	return from + ns;
}

/*
 * Assigns the blocked time that ends to the waker: of the time off the CPU that was not in a run
 * queue. queued: of that, the part that is not in run_delay yet.
 */
static __always_inline void who_woke(struct ledger *l, struct task_struct *next, u64 queued, u64 now)
{
	u64 blocked = now - l->out_ns - (next->sched_info.run_delay - l->run_out) - queued;

	if ((s64)blocked <= 0)
		return;
	if (l->waker_set == WAKER_PROCESS)
		who_add(&l->who, &l->waker, blocked, l->waker_fn, l->waker_caller);
	else if (l->waker_set == WAKER_TIMER)
		l->who.sum[TTMON_WAIT_SUM_TIMER] += blocked;
	else if (l->waker_set == WAKER_INTERRUPT)
		l->who.sum[TTMON_WAIT_SUM_INTERRUPT] += blocked;
}

/* Notes the period that ends on this CPU, and what ran while next was waiting. */
SUBPROG int who_switch(struct task_struct *prev, struct task_struct *next)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct runs *r = bpf_map_lookup_elem(&cpu_runs, &cpu);
	struct cfs_rq *cfs_rq = next->se.cfs_rq;
	struct uprobe_task *utask = next->utask;
	struct task_state *t;
	u64 now, from;

	if (!r)
		return 0;
	now = cfs_rq->rq->clock;
	note_run(r, prev, now);
	if (!utask || !utask->return_instances)
		return 0;
	t = bpf_task_storage_get(&tasks, next, 0, 0);
	if (!t || !t->ledger.waiting)
		return 0;
	who_no_more(&t->ledger);
	from = next->sched_info.last_queued;
	if (!from || from > now)
		from = now;
	who_woke(&t->ledger, next, now - from, now);
	if (from == now)
		return 0;
	from = after_throttling(&t->ledger, cfs_rq, from, now);
	who_ran(&t->ledger.who, r, from, now);
	return 0;
}

#endif
