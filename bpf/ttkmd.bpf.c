// SPDX-License-Identifier: GPL-2.0-only
/*
 * ttkmd.bpf.c: host memory that tt-kmd pins or allocates for a traced process. Its sources are the
 * ioctls PIN_PAGES, UNPIN_PAGES and ALLOCATE_DMA_BUF on /dev/tenstorrent/N (numbers and layouts:
 * ioctl.h of tt-kmd, 4af71921), and the close of the file, which releases everything that the file
 * held.
 *
 *   kmd_ioctl, kmd_ioctl_ret      kprobe and kretprobe on the driver's tt_cdev_ioctl: free for others
 *   kmd_release                   kprobe on its tt_cdev_release
 *   kmd_sys_ioctl, kmd_sys_ret    tracepoints of ioctl (--tt-ioctl): a cost for every system call
 */
#include "task.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define IOC(n)		 (0xfa00 + (n))
#define IOC_ALLOCATE_DMA IOC(3)
#define IOC_PIN		 IOC(7)
#define IOC_UNPIN	 IOC(10)
#define DMA_OUT_SIZE	 40 /* offset of the size that was allocated */
#define MINOR_BITS	 20
#define MINOR(dev)	 ((dev) & ((1u << MINOR_BITS) - 1))
#define MAJOR(dev)	 ((dev) >> MINOR_BITS)
#define IS_CHR(mode)	 (((mode)&0170000) == 0020000)
#define MAX_FILES	 65536
#define MAX_ERRNO	 4095

extern u32 kmd_major;  /* major number of /dev/tenstorrent, for the tracepoints; 0: the driver is not loaded */
extern u32 kmd_closes; /* 1: kmd_release is attached, so files can be kept in the map: it removes them */

struct kmd_call {
	u64 entry_ns, addr, size, arg;
	struct file *file; /* NULL: the call comes from the tracepoint */
	u32 cmd, ordinal, flags;
	bool unread; /* the page of the arguments was not present at the entry; at the return the driver has read it */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct kmd_call);
} kmd_calls SEC(".maps");

/* Open devices that hold memory, by the address of their struct file. */
struct kmd_file {
	u32 tgid; /* the first process that pinned through it */
	u32 id;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_FILES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct kmd_file);
} kmd_files SEC(".maps");

static u32 kmd_last_file;

static __always_inline bool is_ours(u32 cmd)
{
	return cmd == IOC_PIN || cmd == IOC_UNPIN || cmd == IOC_ALLOCATE_DMA;
}

static __always_inline long read_args(struct kmd_call *c, u32 cmd)
{
	u64 w[3] = {};

	if (bpf_probe_read_user(w, cmd == IOC_ALLOCATE_DMA ? 8 : cmd == IOC_UNPIN ? 16 : 24, (void *)c->arg))
		return -1;
	c->addr = cmd == IOC_PIN ? w[1] : cmd == IOC_UNPIN ? w[0] : 0;
	c->size = cmd == IOC_PIN ? w[2] : cmd == IOC_UNPIN ? w[1] : (u32)w[0];
	c->flags = cmd == IOC_PIN ? w[0] >> 32 : cmd == IOC_UNPIN ? 0 : (w[0] >> 40) & 0xff;
	return 0;
}

static __always_inline int enter(u32 cmd, u64 arg, u32 ordinal, struct file *file)
{
	u64 id = bpf_get_current_pid_tgid();
	struct kmd_call *c;

	if (!active || !wanted(id >> 32) || family_gate(TTMON_FAMILY_TENSTORRENT, TTMON_EV_TT_PIN))
		return 0;
	c = bpf_task_storage_get(&kmd_calls, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!c) {
		emit_refuse(TTMON_EV_TT_PIN, TTMON_LOSS_MAP_FULL);
		return 0;
	}
	/* There are more calls in flight than the kernel keeps return addresses for. */
	if (c->cmd)
		emit_refuse(TTMON_EV_TT_PIN, TTMON_LOSS_UNPAIRED);
	c->arg = arg;
	c->addr = c->size = c->flags = 0;
	c->unread = read_args(c, cmd);
	c->file = file;
	c->ordinal = ordinal;
	c->entry_ns = bpf_ktime_get_ns();
	c->cmd = cmd;
	return 0;
}

/*
 * Returns the number of an open device, or 0 if it is unknown. new: give it a number, which is kept
 * until it is closed.
 */
static __always_inline u32 file_id(struct file *file, u32 tgid, bool new)
{
	u64 key = (u64)file;
	struct kmd_file fresh = { .tgid = tgid }, *f;

	if (!file || !kmd_closes)
		return 0;
	f = bpf_map_lookup_elem(&kmd_files, &key);
	if (f || !new)
		return f ? f->id : 0;
	fresh.id = __sync_fetch_and_add(&kmd_last_file, 1) + 1;
	/*
	 * Another thread may have been faster. If the table is full, the memory that the file holds counts as
	 * released at the end of the process.
	 */
	bpf_map_update_elem(&kmd_files, &key, &fresh, BPF_NOEXIST);
	f = bpf_map_lookup_elem(&kmd_files, &key);
	return f ? f->id : 0;
}

static __always_inline int leave(long ret)
{
	struct kmd_call *c = bpf_task_storage_get(&kmd_calls, bpf_get_current_task_btf(), 0, 0);
	u64 id = bpf_get_current_pid_tgid();
	struct ttmon_ev_tt_pin *e;
	u32 size = 0, cmd, file;

	if (!c || !c->cmd)
		return 0;
	cmd = c->cmd;
	c->cmd = 0;
	/* The arguments of a failed call are not needed. */
	if (c->unread && read_args(c, cmd) && !ret) {
		emit_refuse(TTMON_EV_TT_PIN, TTMON_LOSS_READ_FAILED);
		return 0;
	}
	if (cmd == IOC_ALLOCATE_DMA && !ret &&
	    !bpf_probe_read_user(&size, sizeof(size), (void *)c->arg + DMA_OUT_SIZE) && size)
		c->size = size;
	file = file_id(c->file, id >> 32, !ret && cmd != IOC_UNPIN);
	e = emit_reserve(TTMON_EV_TT_PIN, sizeof(*e), id);
	if (!e)
		return 0;
	e->entry_ns = c->entry_ns;
	e->addr = c->addr;
	e->size = c->size;
	e->err = ret >= 0 ? 0 : ret < -MAX_ERRNO ? -MAX_ERRNO : ret;
	e->ordinal = c->ordinal;
	e->flags = c->flags;
	e->op = cmd == IOC_PIN ? TTMON_TT_PIN : cmd == IOC_UNPIN ? TTMON_TT_UNPIN : TTMON_TT_DMA_BUF;
	e->file = file;
	e->pad = 0;
	emit_submit(e);
	return 0;
}

SEC("?kprobe")
int kmd_ioctl(struct pt_regs *ctx)
{
	struct file *file = (struct file *)PT_REGS_PARM1(ctx);
	u32 cmd = PT_REGS_PARM2(ctx);

	if (!is_ours(cmd))
		return 0;
	return enter(cmd, PT_REGS_PARM3(ctx), MINOR(BPF_CORE_READ(file, f_inode, i_rdev)), file);
}

SEC("?kretprobe")
int kmd_ioctl_ret(struct pt_regs *ctx)
{
	return leave(PT_REGS_RC(ctx));
}

/*
 * Runs in the process that had the last reference. If that process exits, it runs after the EXIT
 * event.
 */
SEC("?kprobe")
int kmd_release(struct pt_regs *ctx)
{
	struct file *file = (struct file *)PT_REGS_PARM2(ctx);
	u64 key = (u64)file, now = bpf_ktime_get_ns();
	struct kmd_file *found = bpf_map_lookup_elem(&kmd_files, &key), f;
	struct ttmon_ev_tt_pin *e;

	if (!found)
		return 0;
	f = *found;
	bpf_map_delete_elem(&kmd_files, &key);
	if (!active || !bpf_map_lookup_elem(&procs, &f.tgid))
		return 0;
	e = emit_reserve(TTMON_EV_TT_PIN, sizeof(*e), (u64)f.tgid << 32 | f.tgid);
	if (!e)
		return 0;
	e->entry_ns = now;
	e->addr = e->size = 0;
	e->err = 0;
	e->ordinal = MINOR(BPF_CORE_READ(file, f_inode, i_rdev));
	e->flags = 0;
	e->op = TTMON_TT_CLOSE;
	e->file = f.id;
	e->pad = 0;
	emit_submit(e);
	return 0;
}

/* Returns the inode of an open file descriptor of the current process, or NULL. */
static __always_inline struct inode *inode_of_fd(u64 fd)
{
	struct fdtable *table = BPF_CORE_READ(bpf_get_current_task_btf(), files, fdt);
	struct file *file = NULL;

	if (fd >= BPF_CORE_READ(table, max_fds) ||
	    bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd))
		return NULL;
	return BPF_CORE_READ(file, f_inode);
}

SEC("?tracepoint/syscalls/sys_enter_ioctl")
int kmd_sys_ioctl(struct trace_event_raw_sys_enter *ctx)
{
	u32 cmd = ctx->args[1], rdev;
	struct inode *inode;

	if (!is_ours(cmd))
		return 0;
	inode = inode_of_fd((u32)ctx->args[0]);
	rdev = BPF_CORE_READ(inode, i_rdev);
	/*
	 * The ioctl number belongs to the driver only on a device of the driver. A disk may have the same
	 * major number.
	 */
	if (!kmd_major || MAJOR(rdev) != kmd_major || !IS_CHR(BPF_CORE_READ(inode, i_mode)))
		return 0;
	return enter(cmd, ctx->args[2], MINOR(rdev), NULL);
}

SEC("?tracepoint/syscalls/sys_exit_ioctl")
int kmd_sys_ret(struct trace_event_raw_sys_exit *ctx)
{
	return leave(ctx->ret);
}
