// SPDX-License-Identifier: GPL-2.0-only
/*
 * cause.bpf.c: the processes that made a call wait (see cause.bpf.h).
 *
 *   who_migrate   a thread that waits for a CPU is moved to another one
 *   who_waking    a thread is woken
 *
 * Two functions are global, which the verifier checks once: inlined into one another, the loop over
 * the rows within the loop over the periods would be more instructions than it accepts.
 */
#include "cause.bpf.h"

char LICENSE[] SEC("license") = "GPL";

static __always_inline void others(struct who_table *w, u32 role, u64 ns)
{
	if (role < TTMON_WAIT_ROLE_WOKE)
		w->sum[TTMON_WAIT_SUM_RAN_OTHERS] += ns;
	else
		w->sum[TTMON_WAIT_SUM_WOKE_OTHERS] += ns;
}

/* If there is no row left, the shorter of this time and the shortest row loses its name. */
GLOBAL_SUBPROG int who_add(struct who_table *w, struct ttmon_who *who, u64 ns, u64 fn, u64 caller)
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
			r->fn = fn;
			r->caller = caller;
			w->nr_rows = i + 1;
			return 0;
		}
		if (r->ns < w->row[least].ns)
			least = i;
		if (r->who.tgid == who->tgid && r->who.start_ns == who->start_ns && r->who.role == who->role &&
		    r->fn == fn && r->caller == caller) {
			r->ns += ns;
			return 0;
		}
	}
	least &= TTMON_WHO_ROWS - 1;
	if (w->row[least].ns < ns) {
		u64 shorter = w->row[least].ns;

		others(w, w->row[least].who.role, shorter);
		w->row[least].who = *who;
		w->row[least].ns = ns;
		w->row[least].fn = fn;
		w->row[least].caller = caller;
		return 0;
	}
	others(w, who->role, ns);
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
			who_add(w, &v->who, end - begin, 0, 0);
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

/* ---- a blocked thread is woken ---- */

/*
 * Places of variables of each CPU, relative to the run queue of the CPU: the daemon finds them in BTF,
 * since kernels without CONFIG_KALLSYMS_ALL have no other list of them. They may be negative. 0: not
 * found.
 */
const volatile u64 cfg_preempt_off = 0;
const volatile u64 cfg_hrtimers_off = 0;
const volatile u64 cfg_timers_off = 0;

/* Of preempt_count(), include/linux/preempt.h */
#define SERVING_SOFTIRQ 0x00000100
#define HARDIRQ_OR_NMI	0x00ff0000

/* Returns false if the kernel does not show whether an interrupt runs. */
static __always_inline bool preempt_count_of(struct task_struct *current, void *rq, u32 *count)
{
#if defined(__TARGET_ARCH_arm64)
	*count = BPF_CORE_READ(current, thread_info.preempt_count);
	return true;
#else
	return cfg_preempt_off && !bpf_probe_read_kernel(count, sizeof(*count), rq + cfg_preempt_off);
#endif
}

/*
 * Returns true if the callback of a timer runs in this interrupt. Interrupts of devices may come on
 * top of softirqs.
 */
static __always_inline bool in_timer(void *rq, u32 count)
{
	struct hrtimer_cpu_base *h = rq + cfg_hrtimers_off;
	u64 running = 0;

	if (!cfg_hrtimers_off || !cfg_timers_off)
		return false;
	if (count & HARDIRQ_OR_NMI)
		return BPF_CORE_READ(h, clock_base[0].running) || BPF_CORE_READ(h, clock_base[1].running) ||
		       BPF_CORE_READ(h, clock_base[2].running) || BPF_CORE_READ(h, clock_base[3].running);
	if (BPF_CORE_READ(h, clock_base[4].running) || BPF_CORE_READ(h, clock_base[5].running) ||
	    BPF_CORE_READ(h, clock_base[6].running) || BPF_CORE_READ(h, clock_base[7].running))
		return true;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < 3 && !running; i++) {
		u64 at = i * bpf_core_type_size(struct timer_base) +
			 bpf_core_field_offset(struct timer_base, running_timer);

		bpf_probe_read_kernel(&running, sizeof(running), rq + cfg_timers_off + at);
	}
	return running;
}

/* The call with a ledger that the current thread is in itself. */
static __always_inline void own_call(struct ledger *l, struct task_struct *current)
{
	struct task_state *t = bpf_task_storage_get(&tasks, current, 0, 0);
	struct return_instance *ri;

	if (!t || !t->ledger.on || !t->cuda.fn)
		return;
	l->waker_fn = t->cuda.fn;
	ri = BPF_CORE_READ(current, utask, return_instances);
#pragma clang loop unroll(disable)
	for (int i = 0; i < 4 && ri; i++) {
		if (BPF_CORE_READ(ri, stack) == t->cuda.sp) {
			l->waker_caller = BPF_CORE_READ(ri, orig_ret_vaddr);
			return;
		}
		ri = BPF_CORE_READ(ri, next);
	}
}

SUBPROG int who_wakes(struct task_struct *p)
{
	struct task_struct *current = bpf_get_current_task_btf(), *leader;
	struct uprobe_task *utask = p->utask;
	struct task_state *t;
	struct ledger *l;
	u32 count = 0;
	void *rq;

	if (!utask || !utask->return_instances)
		return 0;
	t = bpf_task_storage_get(&tasks, p, 0, 0);
	if (!t || !t->ledger.waiting)
		return 0;
	l = &t->ledger;
	l->waker_set = WAKER_NONE;
	rq = current->se.cfs_rq->rq;
	if (!preempt_count_of(current, rq, &count))
		return 0;
	if (count & (HARDIRQ_OR_NMI | SERVING_SOFTIRQ)) {
		l->waker_set = in_timer(rq, count) ? WAKER_TIMER : WAKER_INTERRUPT;
		return 0;
	}
	/* The idle task wakes no thread of its own accord. */
	if (!current->pid)
		return 0;
	leader = current->group_leader;
	l->waker.tgid = current->tgid;
	l->waker.start_ns = leader->start_time;
	l->waker.role = current->flags & PF_KTHREAD ? TTMON_WAIT_ROLE_WOKE_KERNEL : TTMON_WAIT_ROLE_WOKE;
	*(u64 *)&l->waker.comm[0] = *(u64 *)&leader->comm[0];
	*(u64 *)&l->waker.comm[8] = *(u64 *)&leader->comm[8];
	l->waker_fn = l->waker_caller = 0;
	own_call(l, current);
	l->waker_set = WAKER_PROCESS;
	return 0;
}

SEC("?tp_btf/sched_waking")
int BPF_PROG(who_waking, struct task_struct *p)
{
	return calls_waiting && has_runs() ? who_wakes(p) : 0;
}
