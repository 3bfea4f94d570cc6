// SPDX-License-Identifier: GPL-2.0-only
/*
 * empty.bpf.c: the floor of every figure about probes: a program that does nothing, at the same
 * functions.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("?uprobe")
int empty(struct pt_regs *ctx)
{
	return 0;
}

SEC("?tp_btf/sched_switch")
int empty_switch(__u64 *ctx)
{
	return 0;
}
