// SPDX-License-Identifier: GPL-2.0-only
/*
 * table.c: which process holds which RMID.
 *
 * A process is known by its signal_struct: all its threads point to it as long as any of their
 * task_structs exists, it outlives the exec of a thread that is not the leader, a fork makes a new
 * one, and no field of task_struct is written (task->rmid is resctrl's, and inherited).
 *
 * Assigned at fork, when the module is loaded, and later by ttmon_rmid_of() to a process without one.
 * Taken back at the context switch that the last thread does not come back from (TASK_DEAD), after the
 * CPU has left the RMID: closing files on exit is still the process's own work, and a zombie holds
 * nothing. Both look at signal->live under the lock, so that nothing is given to a process after its
 * last thread has gone.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hash.h>
#include <linux/irq_work.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/rculist_nulls.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "ttmon_rmid.h"
#include "ttmon_rmid_trace.h"

#define HASH_BITS 11

/*
 * Element of the hash table, by RMID. Readers go without the lock and entries are used again: hence
 * the nulls list.
 */
struct owner {
	struct hlist_nulls_node node;
	const struct signal_struct *process;
};

/* Taken under the run queue's lock and in hard interrupts. */
static DEFINE_RAW_SPINLOCK(lock);
static struct ttmon_rmid_pool pool;
static struct owner owners[TTMON_RMID_POOL];
static struct hlist_nulls_head buckets[1 << HASH_BITS];
static DECLARE_BITMAP(used, TTMON_RMID_POOL);
static u64 failed, retried;

/* Events that are not in the log yet; under the lock. */
static struct ttmon_rmid_holder failed_last;
static u32 failed_untold;

static void tell_failed(struct irq_work *work)
{
	struct ttmon_rmid_holder who;
	unsigned long flags;
	u32 n;

	raw_spin_lock_irqsave(&lock, flags);
	who = failed_last;
	n = failed_untold;
	failed_untold = 0;
	raw_spin_unlock_irqrestore(&lock, flags);
	if (n == 1)
		pr_warn_ratelimited("no RMID is free for %.16s (%u)\n", who.comm, who.tgid);
	else if (n)
		pr_warn_ratelimited("no RMID is free for %u processes, the last: %.16s (%u)\n", n, who.comm, who.tgid);
}
/* printk() may wake up tasks: not under the run queue's lock. */
static DEFINE_IRQ_WORK(tell_failed_work, tell_failed);

/* Preemption is off. The answer stays right as long as the process lives. */
static u32 find(const struct signal_struct *process)
{
	u32 bucket = hash_ptr(process, HASH_BITS);
	struct hlist_nulls_node *n;
	struct owner *o;

	do {
		hlist_nulls_for_each_entry_rcu(o, n, &buckets[bucket], node) {
			if (READ_ONCE(o->process) == process)
				return o - owners;
		}
		/* An entry that was used again has led into another list. */
	} while (get_nulls_value(n) != bucket);
	return 0;
}

/* first: it has not been tried for this process. The task is alive: its leader is. */
static u32 give(struct task_struct *task, bool first)
{
	struct signal_struct *process = task->signal;
	unsigned long flags;
	u32 rmid;

	raw_spin_lock_irqsave(&lock, flags);
	rmid = find(process);
	if (!rmid && atomic_read(&process->live) > 0) {
		struct task_struct *leader = task->group_leader;
		struct ttmon_rmid_holder who = { .start_ns = leader->start_time, .tgid = task->tgid };
		u64 now = ktime_get_ns();

		memcpy(who.comm, leader->comm, sizeof(who.comm));
		who.comm[sizeof(who.comm) - 1] = '\0';
		rmid = ttmon_rmid_pool_alloc(&pool, &who, now);
		if (rmid) {
			WRITE_ONCE(owners[rmid].process, process);
			hlist_nulls_add_head_rcu(&owners[rmid].node, &buckets[hash_ptr(process, HASH_BITS)]);
			set_bit(rmid, used);
			retried += !first;
			trace_rmid_alloc(rmid, who.comm, who.tgid, now);
		} else if (first) {
			failed++;
			failed_untold++;
			failed_last = who;
			trace_rmid_failed(who.tgid, who.comm, now);
			irq_work_queue(&tell_failed_work);
		}
	}
	raw_spin_unlock_irqrestore(&lock, flags);
	return rmid;
}

/* Under the lock. */
static void take_back(u32 rmid)
{
	u64 now = ktime_get_ns();

	hlist_nulls_del_rcu(&owners[rmid].node);
	WRITE_ONCE(owners[rmid].process, NULL);
	clear_bit(rmid, used);
	ttmon_rmid_pool_free(&pool, rmid, pool.ids[rmid].who.tgid, pool.ids[rmid].who.start_ns, now);
	trace_rmid_free(rmid, now);
}

u32 ttmon_rmid_of(struct task_struct *task)
{
	u32 rmid;

	if (task->flags & (PF_KTHREAD | PF_IDLE))
		return 0;
	rmid = find(task->signal);
	if (rmid || task->exit_state || !ttmon_rmid_pool_ready(&pool, ktime_get_ns()))
		return rmid;
	return give(task, false);
}

u32 ttmon_rmid_next_used(u32 after)
{
	u32 rmid = find_next_bit(used, TTMON_RMID_POOL, after + 1);

	if (rmid >= TTMON_RMID_POOL)
		rmid = find_first_bit(used, TTMON_RMID_POOL);
	return rmid < TTMON_RMID_POOL ? rmid : 0;
}

/*
 * A thread does not come back from this switch. The last one to do so finds all others past
 * exit_notify(), or off the list.
 */
static void dead(struct task_struct *task)
{
	struct signal_struct *process = task->signal;
	struct task_struct *t;
	unsigned long flags;
	u32 rmid;

	if (atomic_read(&process->live) > 0)
		return;
	for_each_thread(task, t) {
		if (!READ_ONCE(t->exit_state))
			return;
	}
	raw_spin_lock_irqsave(&lock, flags);
	rmid = find(process);
	if (rmid)
		take_back(rmid);
	raw_spin_unlock_irqrestore(&lock, flags);
}

static void on_switch(void *data, bool preempt, struct task_struct *prev, struct task_struct *next,
		      unsigned int prev_state)
{
	ttmon_rmid_cpu_switch(next);
	if (unlikely(prev_state == TASK_DEAD))
		dead(prev);
}

static void on_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	if (thread_group_leader(child) && !(child->flags & PF_KTHREAD))
		give(child, true);
}

static void on_exec(void *data, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	unsigned long flags;
	u32 rmid;

	raw_spin_lock_irqsave(&lock, flags);
	rmid = find(task->signal);
	if (rmid)
		memcpy(pool.ids[rmid].who.comm, task->comm, sizeof(pool.ids[rmid].who.comm) - 1);
	raw_spin_unlock_irqrestore(&lock, flags);
}

static struct {
	const char *name;
	void *fn;
	struct tracepoint *tp;
	bool on;
} hooks[] = {
	{ .name = "sched_switch", .fn = on_switch },
	{ .name = "sched_process_fork", .fn = on_fork },
	{ .name = "sched_process_exec", .fn = on_exec },
};

static void find_hook(struct tracepoint *tp, void *unused)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		if (!strcmp(tp->name, hooks[i].name))
			hooks[i].tp = tp;
	}
}

int ttmon_rmid_table_start(void)
{
	struct task_struct *p;
	size_t i;
	int ret;

	if (!ttmon_rmid_pool_init(&pool, ttmon_rmid_hw.max_rmid))
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(buckets); i++)
		INIT_HLIST_NULLS_HEAD(&buckets[i], i);
	for_each_kernel_tracepoint(find_hook, NULL);
	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		ret = hooks[i].tp ? tracepoint_probe_register(hooks[i].tp, hooks[i].fn, NULL) : -ENOENT;
		if (ret) {
			pr_err("tracepoint %s: error %d\n", hooks[i].name, ret);
			ttmon_rmid_table_stop();
			ttmon_rmid_table_clear();
			return ret;
		}
		hooks[i].on = true;
	}
	/* A process that is not on the list yet comes by on_fork(); one that has begun to end is refused. */
	rcu_read_lock();
	for_each_process(p) {
		if (!(p->flags & PF_KTHREAD))
			give(p, true);
	}
	rcu_read_unlock();
	return 0;
}

void ttmon_rmid_table_stop(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		if (hooks[i].on)
			tracepoint_probe_unregister(hooks[i].tp, hooks[i].fn, NULL);
		hooks[i].on = false;
	}
	tracepoint_synchronize_unregister();
}

void ttmon_rmid_table_clear(void)
{
	unsigned long flags;
	u32 rmid;

	for (rmid = 1; rmid <= pool.max; rmid++) {
		raw_spin_lock_irqsave(&lock, flags);
		if (ttmon_rmid_pool_holder(&pool, rmid))
			take_back(rmid);
		raw_spin_unlock_irqrestore(&lock, flags);
	}
	irq_work_sync(&tell_failed_work);
}

void ttmon_rmid_table_dump(void)
{
	const struct ttmon_rmid_entry *e;
	unsigned long flags;
	u32 rmid;

	for (rmid = 1; rmid <= pool.max; rmid++) {
		raw_spin_lock_irqsave(&lock, flags);
		e = ttmon_rmid_pool_holder(&pool, rmid);
		if (e)
			trace_rmid_existing(rmid, e->who.comm, e->who.tgid, ktime_get_ns());
		raw_spin_unlock_irqrestore(&lock, flags);
	}
}

void ttmon_rmid_table_counts(struct ttmon_rmid_counts *ret)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	ret->in_use = pool.in_use;
	ret->failed = failed;
	ret->retried = retried;
	ret->double_frees = pool.refused;
	raw_spin_unlock_irqrestore(&lock, flags);
}
