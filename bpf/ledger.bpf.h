/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ledger.bpf.h: where the time of a synchronous call goes, by the kernel's own counters of its thread.
 *
 *	ledger_enter()  at the entry: what they are
 *	ledger_out()    when the thread leaves its CPU in the middle: since when it is off
 *	ledger_leave()  at the return: the differences, as a WAIT record
 *
 * Ready and waiting for a CPU is sched_info.run_delay, exact at any time that the thread runs. Off its
 * CPU is the time from each sched_switch at which the thread goes to the sched_info.last_arrival after
 * it, both by the run queue's clock: with another clock the wait would be longer than the time off at
 * most preemptions, by microseconds (kernel/sched/stats.h, sched_info_arrive() reads rq_clock()).
 * The kernel counts a task's switches (nvcsw, nivcsw): where it has counted more than were seen, some
 * were kept from tracers, or no program was attached, and the record says so.
 */
#ifndef TTMON_LEDGER_BPF_H
#define TTMON_LEDGER_BPF_H

#include "task.bpf.h"

/* Reading is done again when the thread was switched in the middle of it. */
#define LEDGER_TRIES 4

static __always_inline bool has_run_delay(void)
{
	return bpf_core_field_exists(((struct sched_info *)0)->run_delay) &&
	       bpf_core_field_exists(((struct sched_entity *)0)->cfs_rq);
}

static __always_inline u64 switches_of(struct task_struct *task)
{
	barrier();
	return task->nvcsw + task->nivcsw;
}

static __always_inline u64 run_delay_of(struct task_struct *task)
{
	return has_run_delay() ? task->sched_info.run_delay : 0;
}

/* False: kernel.task_delayacct was 0 when the thread was made, or the kernel has no such counts. */
static __always_inline bool delays_of(struct task_struct *task, u64 *delay)
{
	struct task_delay_info *d;

	if (!bpf_core_field_exists(((struct task_struct *)0)->delays))
		return false;
	d = task->delays;
	if (!d)
		return false;
	delay[TTMON_DELAY_BLKIO] = d->blkio_delay;
	delay[TTMON_DELAY_SWAPIN] = d->swapin_delay;
	delay[TTMON_DELAY_RECLAIM] = d->freepages_delay;
	delay[TTMON_DELAY_THRASHING] = d->thrashing_delay;
	delay[TTMON_DELAY_COMPACT] =
		bpf_core_field_exists(((struct task_delay_info *)0)->compact_delay) ? d->compact_delay : 0;
	return true;
}

/* The calling thread begins a call. Returns the time of that. */
static __always_inline u64 ledger_enter(struct task_state *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ledger *l = &t->ledger;

	if (family_state[TTMON_FAMILY_WAIT] != TTMON_FAMILY_ON) {
		l->on = 0;
		return bpf_ktime_get_ns();
	}
	l->minor = task->min_flt;
	l->major = task->maj_flt;
	delays_of(task, l->delay);
	l->on = 1;
#pragma clang loop unroll(disable)
	for (int i = 0; i < LEDGER_TRIES; i++) {
		l->voluntary = task->nvcsw;
		l->involuntary = task->nivcsw;
		l->switches = l->off_ns = l->out_ns = 0;
		barrier();
		l->run_delay = run_delay_of(task);
		l->entry_ns = bpf_ktime_get_ns();
		if (switches_of(task) == l->voluntary + l->involuntary)
			break;
	}
	return l->entry_ns;
}

/* Its differences, up to now. */
static __always_inline void ledger_fill(struct ttmon_ev_wait *e, struct ledger *l, struct task_struct *task)
{
	u64 delay[TTMON_DELAY_MAX] = {}, switches = 0, off_ns = 0, run_delay = 0, now = 0;

#pragma clang loop unroll(disable)
	for (int i = 0; i < LEDGER_TRIES; i++) {
		switches = switches_of(task);
		now = bpf_ktime_get_ns();
		run_delay = run_delay_of(task);
		off_ns = l->off_ns;
		if (l->out_ns && has_run_delay())
			off_ns += task->sched_info.last_arrival - l->out_ns;
		if (switches_of(task) == switches)
			break;
	}
	e->entry_ns = l->entry_ns;
	e->ns = now - l->entry_ns;
	e->off_ns = off_ns;
	e->runq_ns = run_delay - l->run_delay;
	e->voluntary = task->nvcsw - l->voluntary;
	e->involuntary = task->nivcsw - l->involuntary;
	e->minor = task->min_flt - l->minor;
	e->major = task->maj_flt - l->major;
	if (!has_run_delay())
		e->bits |= TTMON_W_NO_BOOKS;
	if (switches - l->voluntary - l->involuntary != l->switches)
		e->bits |= TTMON_W_HIDDEN;
	if (delays_of(task, delay))
		e->bits |= TTMON_W_DELAYS;
#pragma unroll
	for (int i = 0; i < TTMON_DELAY_MAX; i++)
		e->delay[i] = e->bits & TTMON_W_DELAYS ? delay[i] - l->delay[i] : 0;
}

/*
 * The calling thread is at the end of its call of fn, or it will not come to it: bits says why. The
 * record is written where it is sent: its header has a later time than what is measured.
 */
SUBPROG int ledger_leave(struct task_state *t, u64 fn_bits, u64 caller, s32 err)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ttmon_ev_wait *e;

	if (!t || !t->ledger.on)
		return 0;
	e = emit_reserve(TTMON_EV_WAIT, sizeof(*e), bpf_get_current_pid_tgid());
	if (!e) {
		t->ledger.on = 0;
		return 0;
	}
	e->caller = caller;
	e->err = err;
	e->fn = fn_bits;
	e->bits = fn_bits >> 16;
	ledger_fill(e, &t->ledger, task);
	t->ledger.on = 0;
	emit_submit(e);
	return 0;
}
#define LEDGER_FN(fn, bits) ((u64)(fn) | (u64)(bits) << 16)

/* A call of which nothing is seen but its entry. */
static __always_inline void ledger_unobserved(u32 fn, u64 caller)
{
	struct ttmon_ev_wait *e;

	e = emit_reserve(TTMON_EV_WAIT, sizeof(*e), bpf_get_current_pid_tgid());
	if (!e)
		return;
	__builtin_memset((void *)e + sizeof(e->h), 0, sizeof(*e) - sizeof(e->h));
	e->entry_ns = e->h.ts_ns;
	e->caller = caller;
	e->fn = fn;
	e->bits = TTMON_W_UNOBSERVED;
	emit_submit(e);
}

/*
 * prev leaves its CPU; under the run queue's lock, from tp_btf. A thread in a call whose return is
 * waited for has put a return address away: the others are not looked up.
 */
static __always_inline void ledger_out(struct task_struct *prev)
{
	struct uprobe_task *utask = prev->utask;
	struct task_state *t;
	struct ledger *l;

	if (!utask || !utask->return_instances || !has_run_delay())
		return;
	t = bpf_task_storage_get(&tasks, prev, 0, 0);
	if (!t || !t->ledger.on)
		return;
	l = &t->ledger;
	/* The last time off has ended: the kernel knows when. */
	if (l->out_ns)
		l->off_ns += prev->sched_info.last_arrival - l->out_ns;
	l->out_ns = prev->se.cfs_rq->rq->clock;
	l->switches++;
}

#endif
