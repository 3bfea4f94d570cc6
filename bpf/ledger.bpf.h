/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ledger.bpf.h: where the time of a synchronous call goes, from the kernel's own counters of its
 * thread.
 *
 *	ledger_enter()  at the entry: stores the counters
 *	ledger_out()    when the thread leaves its CPU during the call: stores the time
 *	ledger_leave()  at the return: sends the differences as a WAIT record
 *
 * The time in which the thread was ready and waited for a CPU is sched_info.run_delay, which is exact
 * whenever the thread runs. The time off its CPU is the time from each sched_switch that removes the
 * thread to the next sched_info.last_arrival. Both are taken from the run queue's clock: with another
 * clock the wait would be microseconds longer than the time off the CPU at most preemptions
 * (kernel/sched/stats.h, sched_info_arrive() reads rq_clock()).
 *
 * The kernel counts the context switches of a task (nvcsw, nivcsw). If it has counted more than were
 * seen, either some were hidden from tracers or no program was attached, and the record says so.
 */
#ifndef TTMON_LEDGER_BPF_H
#define TTMON_LEDGER_BPF_H

#include "cause.bpf.h"

/* The counters are read again if the thread was switched while they were read. */
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

/*
 * Returns false if kernel.task_delayacct was 0 when the thread was made, or if the kernel has no such
 * counters.
 */
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

/* Begins the ledger of a call of the calling thread. Returns the time of the entry. */
static __always_inline u64 ledger_enter(struct task_state *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ledger *l = &t->ledger;

	who_no_more(l);
	if (family_state[TTMON_FAMILY_WAIT] != TTMON_FAMILY_ON) {
		l->on = 0;
		return bpf_ktime_get_ns();
	}
	l->minor = task->min_flt;
	l->major = task->maj_flt;
	delays_of(task, l->delay);
	__builtin_memset(l->who.sum, 0, sizeof(l->who.sum));
	l->who.nr_rows = 0;
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

/* Fills in the differences from the entry of the call to now. */
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

static __always_inline bool has_who(const struct who_table *w)
{
	u64 any = w->nr_rows;

#pragma unroll
	for (int i = 0; i < TTMON_WAIT_SUMS; i++)
		any |= w->sum[i];
	return any;
}

/* The fields but for bits, which ledger_fill() completes. */
static __always_inline void ledger_head(struct ttmon_ev_wait *e, u64 fn_bits, u64 caller, s32 err)
{
	e->caller = caller;
	e->err = err;
	e->fn = fn_bits;
	e->bits = fn_bits >> 16;
}

/*
 * Ends the ledger of a call of fn: at its return, or when it will not return; bits says why. The
 * record is filled in after its reservation, so the time in its header is earlier than the end of the
 * measured time.
 */
SUBPROG int ledger_leave(struct task_state *t, u64 fn_bits, u64 caller, s32 err)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ttmon_ev_wait_who *big;
	struct ttmon_ev_wait *e;
	struct ledger *l;

	if (!t || !t->ledger.on)
		return 0;
	l = &t->ledger;
	who_no_more(l);
	l->on = 0;
	if (has_who(&l->who)) {
		big = emit_reserve(TTMON_EV_WAIT, sizeof(*big), bpf_get_current_pid_tgid());
		if (!big)
			return 0;
		ledger_head(&big->w, fn_bits, caller, err);
		ledger_fill(&big->w, l, task);
		big->w.bits |= TTMON_W_WHO;
		__builtin_memcpy(big->sum, l->who.sum, sizeof(big->sum));
		__builtin_memcpy(big->row, l->who.row, sizeof(big->row));
		big->nr_rows = l->who.nr_rows;
		big->pad = 0;
		emit_submit(big);
		return 0;
	}
	e = emit_reserve(TTMON_EV_WAIT, sizeof(*e), bpf_get_current_pid_tgid());
	if (!e)
		return 0;
	ledger_head(e, fn_bits, caller, err);
	ledger_fill(e, l, task);
	emit_submit(e);
	return 0;
}
#define LEDGER_FN(fn, bits) ((u64)(fn) | (u64)(bits) << 16)

/* Reports a call of which only the entry is seen. */
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
 * Notes that prev leaves its CPU. It runs under the run queue's lock, from tp_btf. A thread in a call
 * with a return probe has an entry in return_instances; for all other threads no look-up is made.
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
	/* The previous time off the CPU has ended: last_arrival is its end. */
	if (l->out_ns)
		l->off_ns += prev->sched_info.last_arrival - l->out_ns;
	l->out_ns = prev->se.cfs_rq->rq->clock;
	l->switches++;
	who_out(prev, l);
}

/* At each switch, from tp_btf. */
static __always_inline void ledger_switch(struct task_struct *prev, struct task_struct *next)
{
	ledger_out(prev);
	if (calls_waiting && has_runs())
		who_switch(prev, next);
}

#endif
