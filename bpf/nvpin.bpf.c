// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvpin.bpf.c: sums, by function, of the memory that NVIDIA's kernel module pins, allocates and maps
 * (include/ttmon/nvpin.h). It sends no events. Every function of the table has two programs; the
 * cookie identifies the function. The programs are loaded and attached only with --nvidia-pins.
 *
 * These functions call one another, also by a jump, and some run in interrupts. Therefore a call in
 * flight is identified by its function and its stack pointer.
 */
#include "emit.bpf.h"

#include <ttmon/nvpin.h>

char LICENSE[] SEC("license") = "GPL";

#define MAX_IN_FLIGHT 16384

struct nvpin_key {
	u64 sp; /* at the entry */
	u64 fn;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_IN_FLIGHT);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct nvpin_key);
	__type(value, u64); /* the amount, in the unit of the function */
} nvpin_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TTMON_NVPIN_MAX);
	__type(key, u32);
	__type(value, struct ttmon_nvpin_sums);
} nvpin_sums SEC(".maps");

static __always_inline u64 amount(struct pt_regs *ctx, u64 fn)
{
	/* All arguments are read, since the verifier does not allow a variable offset into ctx. */
	volatile u64 args[3] = { 0, PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx) };

	switch (fn) {
#define X(id, NAME, function, arg, unit) \
	case id:                         \
		return args[arg];
		TTMON_NVPIN_TABLE(X)
#undef X
	}
	return 0;
}

/* The kernel runs one kprobe program at a time on a CPU, so the sums need no atomic add. */
SEC("?kprobe")
int nvpin_call(struct pt_regs *ctx)
{
	struct nvpin_key key = { .sp = PT_REGS_SP(ctx), .fn = bpf_get_attach_cookie(ctx) };
	u64 much = amount(ctx, key.fn);
	u32 fn = key.fn;
	struct ttmon_nvpin_sums *s = bpf_map_lookup_elem(&nvpin_sums, &fn);

	if (!active || !s)
		return 0;
	s->calls++;
	bpf_map_update_elem(&nvpin_calls, &key, &much, BPF_ANY);
	return 0;
}

SEC("?kretprobe")
int nvpin_ret(struct pt_regs *ctx)
{
	struct nvpin_key key = { .fn = bpf_get_attach_cookie(ctx) };
	u32 fn = key.fn, status = PT_REGS_RC(ctx);
	struct ttmon_nvpin_sums *s = bpf_map_lookup_elem(&nvpin_sums, &fn);
	u64 *much;

	key.sp = PT_REGS_SP(ctx) - RETURN_SP(0);
	much = bpf_map_lookup_elem(&nvpin_calls, &key);
	/* The entry of this call was not seen, or the map was full. */
	if (!s || !much)
		return 0;
	s->returned++;
	if (status)
		s->failed++;
	else
		s->amount += *much;
	bpf_map_delete_elem(&nvpin_calls, &key);
	return 0;
}
