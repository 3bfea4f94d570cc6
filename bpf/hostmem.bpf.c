// SPDX-License-Identifier: GPL-2.0-only
/*
 * hostmem.bpf.c: the mappings that a traced process makes, from system-call tracepoints. Each of these
 * tracepoints adds 10-65 ns (bench_syscall) to every system call of every process on the host, even if
 * the program does nothing. Therefore only --pid, -- CMD, --trace-mmap and `ttmon family mmap on`
 * attach them, and this family has no state in which it is only counted.
 */
#include "task.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* <linux/mman.h> */
#define MAP_FIXED	0x10
#define MREMAP_FIXED	2
#define IS_ERR_VALUE(x) ((unsigned long)(x) >= (unsigned long)-4095)

extern const volatile u64 cfg_page_mask;

struct mremap_args {
	u64 entry_ns, old_addr, old_len, new_len, flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct mremap_args);
} mremaps SEC(".maps");

/*
 * Returns the process if it is traced. It never starts to trace a process; the CUDA probes do that.
 * Callers allocate or free memory, so it also reports the number of launches.
 */
static __always_inline struct proc_info *traced(u64 id)
{
	u32 tgid = id >> 32;
	struct proc_info *p;

	if (!active || family_state[TTMON_FAMILY_MMAP] != TTMON_FAMILY_ON)
		return NULL;
	p = bpf_map_lookup_elem(&procs, &tgid);
	if (p && !(p->flags & PROC_ANNOUNCED))
		first_seen(p);
	tell_launched(p);
	return p;
}

/*
 * Notes that memory was unmapped. If two threads do this at once, one update may be lost. Then the
 * next copy is attributed to the call site of the memory that was there before.
 */
SUBPROG int note_unmapped(struct proc_info *p, u64 addr, u64 len)
{
	u64 first = addr >> TTMON_COPY_SITE_SHIFT, last = (addr + len - 1) >> TTMON_COPY_SITE_SHIFT;

	if (!p || !len)
		return 0;
	for (u32 i = 0; i < PROC_PIECES && first + i <= last; i++)
		p->unmapped[PROC_PIECE_SLOT(first + i)]++;
	return 0;
}

SEC("?tracepoint/syscalls/sys_exit_mmap")
int hm_mmap(struct trace_event_raw_sys_exit *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct ttmon_ev_mmap *e;
	struct proc_info *p;
	struct pt_regs *regs;
	u64 len, prot, flags, fd;

	if (IS_ERR_VALUE(ctx->ret) || !(p = traced(id)))
		return 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	len = SYSCALL_ARG2(regs);
	prot = SYSCALL_ARG3(regs);
	flags = SYSCALL_ARG4(regs);
	fd = SYSCALL_ARG5(regs);
	if (flags & MAP_FIXED)
		note_unmapped(p, ctx->ret, len);
	e = emit_reserve(TTMON_EV_MMAP, sizeof(*e), id);
	if (!e)
		return 0;
	e->addr = ctx->ret;
	e->len = (len + cfg_page_mask) & ~cfg_page_mask;
	e->prot = prot;
	e->flags = flags;
	e->fd = fd;
	e->pad = 0;
	emit_submit(e);
	return 0;
}

/*
 * Runs at the entry: once munmap() has taken effect, another thread may get the range before this call
 * returns.
 */
SEC("?tracepoint/syscalls/sys_enter_munmap")
int hm_munmap(struct trace_event_raw_sys_enter *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	u64 addr = ctx->args[0], len = ctx->args[1];
	struct ttmon_ev_munmap *e;
	struct proc_info *p;

	/* The kernel refuses these arguments with EINVAL. */
	if ((addr & cfg_page_mask) || !len || !(p = traced(id)))
		return 0;
	note_unmapped(p, addr, len);
	e = emit_reserve(TTMON_EV_MUNMAP, sizeof(*e), id);
	if (!e)
		return 0;
	e->addr = addr;
	e->len = (len + cfg_page_mask) & ~cfg_page_mask;
	emit_submit(e);
	return 0;
}

SEC("?tracepoint/syscalls/sys_enter_mremap")
int hm_mremap_in(struct trace_event_raw_sys_enter *ctx)
{
	struct mremap_args *a;

	if (!traced(bpf_get_current_pid_tgid()))
		return 0;
	a = bpf_task_storage_get(&mremaps, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!a) {
		emit_refuse(TTMON_EV_MREMAP, TTMON_LOSS_MAP_FULL);
		return 0;
	}
	a->old_addr = ctx->args[0];
	a->old_len = (ctx->args[1] + cfg_page_mask) & ~cfg_page_mask;
	a->new_len = (ctx->args[2] + cfg_page_mask) & ~cfg_page_mask;
	a->flags = ctx->args[3];
	a->entry_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("?tracepoint/syscalls/sys_exit_mremap")
int hm_mremap(struct trace_event_raw_sys_exit *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct mremap_args *a, args;
	struct ttmon_ev_mremap *e;
	struct proc_info *p = traced(id);

	if (!p)
		return 0;
	a = bpf_task_storage_get(&mremaps, bpf_get_current_task_btf(), 0, 0);
	if (!a || !a->entry_ns)
		return 0;
	args = *a;
	a->entry_ns = 0;
	if (IS_ERR_VALUE(ctx->ret))
		return 0;
	note_unmapped(p, args.old_addr, args.old_len);
	if (args.flags & MREMAP_FIXED)
		note_unmapped(p, ctx->ret, args.new_len);
	e = emit_reserve(TTMON_EV_MREMAP, sizeof(*e), id);
	if (!e)
		return 0;
	e->entry_ns = args.entry_ns;
	e->old_addr = args.old_addr;
	e->old_len = args.old_len;
	e->new_addr = ctx->ret;
	e->new_len = args.new_len;
	e->flags = args.flags;
	emit_submit(e);
	return 0;
}

SEC("?tracepoint/syscalls/sys_exit_brk")
int hm_brk(struct trace_event_raw_sys_exit *ctx)
{
	u64 id = bpf_get_current_pid_tgid();
	struct ttmon_ev_brk *e;
	u64 start;

	if (!traced(id))
		return 0;
	start = BPF_CORE_READ(bpf_get_current_task_btf(), mm, start_brk);
	e = emit_reserve(TTMON_EV_BRK, sizeof(*e), id);
	if (!e)
		return 0;
	e->start = start;
	e->brk = ctx->ret;
	emit_submit(e);
	return 0;
}
