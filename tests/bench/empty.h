/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * empty.h: attaches the empty program of empty.bpf.c to a function, through the kind of link that the
 * daemon uses.
 */
#ifndef TTMON_BENCH_EMPTY_H
#define TTMON_BENCH_EMPTY_H

#include "kern.h"
#include "tests/bench/empty.skel.h"

#include <linux/bpf.h>
#include <sys/syscall.h>

/* linux/bpf.h of Debian 12 does not have these (Linux 6.6, 89ae89f53d20). */
#define ATTACH_TRACE_UPROBE_MULTI 48
#define UPROBE_MULTI_RETURN	  1
struct multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, uprobe_flags, pid, pad;
};

/* NULL, said why. */
static inline struct empty_bpf *load_empty(void)
{
	struct empty_bpf *skel = empty_bpf__open();

	if (skel) {
		bpf_program__set_autoload(skel->progs.empty, true);
		bpf_program__set_expected_attach_type(skel->progs.empty, ATTACH_TRACE_UPROBE_MULTI);
		if (!empty_bpf__load(skel))
			return skel;
		empty_bpf__destroy(skel);
	}
	fprintf(stderr, "cannot load the empty program: %s\n", strerror(errno));
	return NULL;
}

static inline int offset_of(const struct ttmon_elf_info *info, const char *symbol, uint64_t *ret)
{
	for (size_t i = 0; i < info->nr_targets; i++) {
		if (strcmp(info->targets[i].symbol, symbol))
			continue;
		if (info->targets[i].single_step) {
			fprintf(stderr, "%s would be single-stepped\n", symbol);
			return -EINVAL;
		}
		*ret = info->targets[i].offset + info->targets[i].skip;
		return 0;
	}
	fprintf(stderr, "no %s in the library\n", symbol);
	return -ENOENT;
}

/* Returns the link, or -errno after it has printed the reason. */
static inline int attach_empty(const struct empty_bpf *skel, int object_fd, uint64_t offset, bool ret)
{
	char path[64];
	struct multi_attr attr = {
		.prog_fd = (uint32_t)bpf_program__fd(skel->progs.empty),
		.attach_type = ATTACH_TRACE_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)&offset,
		.cnt = 1,
		.uprobe_flags = ret ? UPROBE_MULTI_RETURN : 0,
	};
	long fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", object_fd);
	fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, offsetof(struct multi_attr, pad));
	if (fd >= 0)
		return (int)fd;
	fd = -errno;
	fprintf(stderr, "cannot attach the empty program: %s\n", strerror((int)-fd));
	return (int)fd;
}

#endif
