// SPDX-License-Identifier: GPL-2.0-only
/*
 * `books.bpf.c`: for each stay of a task on a CPU, between two runs of this program at sched_switch:
 * its length, how far the run queue's clock advanced meanwhile, how far the part of this clock that is
 * not stolen advanced, and how much time the scheduler charged to the task. The sums are kept for
 * three groups, which together contain all tasks.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "books.h"

char LICENSE[] SEC("license") = "GPL";

/* Fields that no program of the daemon reads. */
struct rq___books {
	__u64 clock, clock_task;
} __attribute__((preserve_access_index));
struct cfs_rq___books {
	struct rq___books *rq;
} __attribute__((preserve_access_index));
struct sched_entity___books {
	struct cfs_rq___books *cfs_rq;
} __attribute__((preserve_access_index));
struct task_struct___books {
	struct sched_entity___books se;
} __attribute__((preserve_access_index));

struct came_in {
	__u64 ns, clock, clock_task, charged;
	int tid;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct came_in);
} came SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BOOKS_GROUPS);
	__type(key, __u32);
	__type(value, struct books);
} books SEC(".maps");

const volatile char load_comm[16];

static __always_inline __u32 group_of(struct task_struct *t)
{
	char comm[16];

	if (!t->pid)
		return BOOKS_IDLE;
	BPF_CORE_READ_STR_INTO(&comm, t, comm);
	for (int i = 0; i < 16; i++) {
		if (comm[i] != load_comm[i])
			return BOOKS_OTHERS;
		if (!comm[i])
			break;
	}
	return BOOKS_LOAD;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct rq___books *rq = BPF_CORE_READ((struct task_struct___books *)next, se.cfs_rq, rq);
	__u64 now = bpf_ktime_get_ns(), clock = BPF_CORE_READ(rq, clock), task = BPF_CORE_READ(rq, clock_task);
	__u32 zero = 0, group = group_of(prev);
	struct came_in *c = bpf_map_lookup_elem(&came, &zero);
	struct books *b = bpf_map_lookup_elem(&books, &group);

	if (!c || !b)
		return 0;
	if (c->ns && c->tid == prev->pid) {
		b->stays++;
		b->wall_ns += now - c->ns;
		b->clock_ns += clock - c->clock;
		b->task_ns += task - c->clock_task;
		b->charged_ns += prev->se.sum_exec_runtime - c->charged;
	} else {
		b->unseen++;
	}
	c->ns = now;
	c->clock = clock;
	c->clock_task = task;
	c->charged = next->se.sum_exec_runtime;
	c->tid = next->pid;
	return 0;
}
