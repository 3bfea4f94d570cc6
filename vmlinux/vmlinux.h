/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vmlinux.h, written by hand: the kernel types and fields that our BPF programs read, and nothing
 * else. CO-RE finds the real offsets at load time, so order and holes do not matter here; names and
 * types do. The comment at each type names its users.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* UAPI numbers (linux/bpf.h) that the programs name. */
enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1 << 0,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_F_USER_STACK = 1 << 8,
	BPF_RB_NO_WAKEUP = 1 << 0,
	BPF_RB_FORCE_WAKEUP = 1 << 1,
	BPF_RB_AVAIL_DATA = 0,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1 << 0,
};

/* task_struct.flags (linux/sched.h) */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LRU_PERCPU_HASH = 10,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

/* sched.bpf.c: uapi, hence not relocated */
struct bpf_perf_event_value {
	__u64 counter;
	__u64 enabled;
	__u64 running;
};

struct bpf_timer {
	__u64 __opaque[2];
} __attribute__((aligned(8)));

/*
 * Registers of a probed function or of a system call: uapi layout, fixed per architecture, hence not
 * relocated.
 */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx;
	unsigned long r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
		struct {
			__u64 regs[31];
			__u64 sp, pc, pstate;
		};
	};
	__u64 orig_x0;
	__s32 syscallno;
	__u32 unused2;
};
#else
#error "no struct pt_regs for this architecture"
#endif

/* rmid.bpf.c: part of a map's value, hence not relocated */
struct bpf_spin_lock {
	__u32 val;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* task.bpf.h: is this exit the last thread's? */
typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
};

/* call.bpf.h: where the kernel makes functions with a return probe return to */
struct xol_area {
	unsigned long vaddr;
};

/* call.bpf.h: functions of a thread that have a return probe and have not returned, newest first */
struct return_instance {
	unsigned long stack;	      /* where the return address was */
	unsigned long orig_ret_vaddr; /* the return address */
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
};

struct uprobes_state {
	struct xol_area *xol_area;
};

/* hostmem.bpf.c: where the heap begins; call.bpf.h */
struct mm_struct {
	struct uprobes_state uprobes_state;
	unsigned long start_brk;
	unsigned long brk;
	unsigned long start_stack;
	unsigned long stack_vm; /* pages of mappings that grow down */
};

/* call.bpf.h: where the thread pointer points. Each architecture has its own field. */
struct thread_struct {
#if defined(__TARGET_ARCH_arm64)
	struct {
		unsigned long tp_value;
	} uw;
#else
	unsigned long fsbase;
#endif
};

/* ttkmd.bpf.c: which device is behind an open file */
struct inode {
	__u16 i_mode;
	__u32 i_rdev; /* major << 20 | minor */
};

struct file {
	struct inode *f_inode;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* rmid.bpf.c: the cgroup of a process (v2), and the task iterator */
struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* ledger.bpf.h: the clock of a run queue, ns: what the kernel's counters of a task go by */
struct rq {
	__u64 clock;
	struct task_struct *curr; /* which runs there */
	int cpu;
};

struct cfs_rq {
	struct rq *rq; /* with CONFIG_FAIR_GROUP_SCHED alone */
	/* with CONFIG_CFS_BANDWIDTH alone; ns for which the group or a parent was throttled */
	__u64 throttled_clock_pelt_time; /* by a clock that stands still now and then */
	__u64 throttled_clock_self;	 /* since 6.6: since when it is throttled; 0: it is not */
	__u64 throttled_clock_self_time; /* since 6.6 */
};

/* cause.bpf.c: with CONFIG_FAIR_GROUP_SCHED alone */
struct task_group {
	struct cfs_rq **cfs_rq; /* by CPU */
};

/* sched.bpf.c: how long a task has run since it came in */
struct sched_entity {
	__u64 sum_exec_runtime;
	__u64 prev_sum_exec_runtime; /* at the time it came in */
	struct cfs_rq *cfs_rq;	     /* with CONFIG_FAIR_GROUP_SCHED alone */
};

/* ledger.bpf.h: with CONFIG_SCHED_INFO alone; ns of the run queue's clock */
struct sched_info {
	unsigned long long run_delay;	 /* spent waiting for a CPU */
	unsigned long long last_arrival; /* when it came onto its CPU last */
	unsigned long long last_queued;	 /* since when it waits for a CPU; 0: it does not */
};

/* ledger.bpf.h: with kernel.task_delayacct=1 alone; ns */
struct task_delay_info {
	__u64 blkio_delay;
	__u64 swapin_delay;
	__u64 freepages_delay;
	__u64 thrashing_delay;
	__u64 compact_delay; /* since 5.18 */
};

/* cause.bpf.c: on arm64 */
struct thread_info {
	__u64 preempt_count;
};

/* task.bpf.h, proc.bpf.c: identity of a process */
struct task_struct {
	struct thread_info thread_info;
	struct sched_entity se;
	int pid;
	int tgid;
	int exit_code;
	unsigned int flags;   /* PF_*: sched.bpf.c */
	__u64 start_time;     /* CLOCK_MONOTONIC ns */
	unsigned int __state; /* 0: ready to run */
	unsigned long nvcsw;  /* switches: it waited, yielded */
	unsigned long nivcsw; /* switches: it was preempted */
	unsigned long min_flt;
	unsigned long maj_flt;
	struct sched_info sched_info;
	struct task_group *sched_task_group; /* with CONFIG_CGROUP_SCHED alone */
	struct task_delay_info *delays;	     /* NULL: kernel.task_delayacct was 0 when the task was made */
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	struct mm_struct *mm;
	struct files_struct *files;
	struct css_set *cgroups;
	struct uprobe_task *utask; /* NULL: no uprobe of the thread was hit yet */
	__u32 rmid;		   /* with CONFIG_X86_CPU_RESCTRL alone */
	char comm[16];
	struct thread_struct thread;
};

/* cause.bpf.c: the timers that run on a CPU now */
struct hrtimer_clock_base {
	void *running;
};

struct hrtimer_cpu_base {
	struct hrtimer_clock_base clock_base[8]; /* the first four run in hard interrupts */
};

struct timer_base {
	void *running_timer;
};

/* hostmem.bpf.c: system-call tracepoints, format in tracefs events/syscalls/.../format */
struct trace_entry {
	unsigned short type;
	unsigned char flags;
	unsigned char preempt_count;
	int pid;
};

struct trace_event_raw_sys_enter {
	struct trace_entry ent;
	long id;
	unsigned long args[6];
};

struct trace_event_raw_sys_exit {
	struct trace_entry ent;
	long id;
	long ret;
};

#pragma clang attribute pop

#endif
