// SPDX-License-Identifier: GPL-2.0-only
/*
 * uprobe.c: links that take many functions of an object at once (uprobe_multi). libbpf 1.1 does not
 * know them, so bpf(2) is called directly.
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sys/syscall.h>

#include "daemon/io/bpf/bpf_int.h"

/* linux/bpf.h of Debian 12 ends before these (Linux 6.6, 89ae89f53d20). */
#define UPROBE_MULTI_RETURN 1
struct multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, uprobe_flags, pid, pad;
};

static int sys_bpf_link_create(const struct multi_attr *attr)
{
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, attr, offsetof(struct multi_attr, pad));

	return fd < 0 ? -errno : (int)fd;
}

/*
 * A kernel with such links refuses a folder with EBADF, since it looks at the path; others return
 * EINVAL.
 */
static bool has(uint32_t type)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = (enum bpf_attach_type)type);
	_cleanup_close_ int prog =
		bpf_prog_load(BPF_PROG_TYPE_KPROBE, "ttmon_probe", "GPL", insns, ARRAY_SIZE(insns), &opts);
	uint64_t offset = 0;
	struct multi_attr attr = {
		.prog_fd = (uint32_t)prog,
		.attach_type = type,
		.path = (uintptr_t) "/",
		.offsets = (uintptr_t)&offset,
		.cnt = 1,
	};

	return prog >= 0 && sys_bpf_link_create(&attr) == -EBADF;
}

bool ttmon_bpf_has_multi(void)
{
	return has(TTMON_ATTACH_UPROBE_MULTI);
}

/*
 * Since Linux 6.13 (d920179b3d4842) a program at the entry of a function can decide whether it runs at
 * the return.
 */
bool ttmon_bpf_has_session(void)
{
	return has(TTMON_ATTACH_UPROBE_SESSION);
}

int ttmon_bpf_link_multi(int prog_fd, uint32_t type, bool on_return, int object_fd, const struct ttmon_uprobe_set *set)
{
	char path[64];
	struct multi_attr attr = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = type,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)set->offsets,
		.cookies = (uintptr_t)set->cookies,
		.cnt = (uint32_t)set->n,
		.uprobe_flags = on_return ? UPROBE_MULTI_RETURN : 0,
	};

	snprintf(path, sizeof(path), "/proc/self/fd/%d", object_fd);
	return sys_bpf_link_create(&attr);
}

/*
 * Linux 6.18 and newer have a system call for the trampolines of probed nops (56101b69c919) and answer
 * ENXIO or EPROTO to other callers; older kernels have no such call. Any other answer counts as yes:
 * missing a probe is the lesser harm.
 */
bool ttmon_bpf_optimizes_nop5(void)
{
#ifdef __x86_64__
	enum { SYS_uprobe = 336 };

	return syscall(SYS_uprobe) >= 0 || errno != ENOSYS;
#else
	return false;
#endif
}
