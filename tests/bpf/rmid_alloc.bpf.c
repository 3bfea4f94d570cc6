// SPDX-License-Identifier: GPL-2.0-only
/*
 * rmid_alloc.bpf.c: the allocator of RMIDs as the verifier takes it and the kernel runs it: one step
 * of tests/rmid_script.h a run, through BPF_PROG_RUN. The pool lies behind a spin lock in a map, as in
 * bpf/rmid.bpf.h. A classifier: it may lock, and needs nothing attached.
 */
#include "rmid.bpf.h"

#include "tests/rmid_script.h"

char LICENSE[] SEC("license") = "GPL";

struct rmid_pool_map rmid_pool SEC(".maps");

struct rmid_script_step step;
u32 answer;

SEC("tc")
int rmid_step(void *ctx)
{
	struct ttmon_rmid_holder who = { .start_ns = step.start_ns, .tgid = step.tgid, .comm = "test" };
	struct rmid_script_step s = step;
	struct rmid_pool_value *v;
	u32 zero = 0;

	v = bpf_map_lookup_elem(&rmid_pool, &zero);
	if (!v)
		return 1;
	bpf_spin_lock(&v->lock);
	answer = rmid_script_do(&v->pool, &s, &who);
	bpf_spin_unlock(&v->lock);
	return 0;
}
