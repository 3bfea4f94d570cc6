// SPDX-License-Identifier: GPL-2.0-only
/*
 * launch.c: kernel and graph launches summed up in the kernel, by process and CPU; and the walk over
 * all such sums.
 */
#include <bpf/bpf.h>

#include "daemon/io/bpf/bpf_int.h"

static void tell_launches(const struct ttmon_bpf *b, uint32_t tgid, uint64_t now_ns,
			  void (*cb)(void *ctx, const void *rec, size_t size), void *ctx)
{
	struct sums {
		uint64_t slot, kernels, graphs, graph_copies;
	};
	_cleanup_free_ struct sums *v = calloc(ttmon_bpf_cpus(b), sizeof(*v));

	if (!v || bpf_map_lookup_elem(ttmon_bpf_launches_fd(b), &tgid, v))
		return;
	for (uint32_t cpu = 0; cpu < ttmon_bpf_cpus(b); cpu++) {
		struct ttmon_ev_launch_sums e = {
			.h = { .ts_ns = now_ns, .kind = TTMON_EV_LAUNCH_SUMS, .cpu = TTMON_CPU_DAEMON, .tgid = tgid },
			.of_cpu = cpu,
			.kernels = v[cpu].kernels,
			.graphs = v[cpu].graphs,
			.graph_copies = v[cpu].graph_copies,
		};

		if (e.kernels | e.graphs | e.graph_copies)
			cb(ctx, &e, sizeof(e));
	}
}

void ttmon_bpf_each_launches(const struct ttmon_bpf *b, uint64_t now_ns,
			     void (*cb)(void *ctx, const void *rec, size_t size), void *ctx)
{
	uint32_t key, *prev = NULL;

	while (!bpf_map_get_next_key(ttmon_bpf_launches_fd(b), prev, &key)) {
		tell_launches(b, key, now_ns, cb, ctx);
		prev = &key;
	}
}

void ttmon_bpf_take_launches(struct ttmon_bpf *b, uint32_t tgid, uint64_t now_ns,
			     void (*cb)(void *ctx, const void *rec, size_t size), void *ctx)
{
	tell_launches(b, tgid, now_ns, cb, ctx);
	bpf_map_delete_elem(ttmon_bpf_launches_fd(b), &tgid);
}

void ttmon_bpf_each_sum(const struct ttmon_bpf *b, uint64_t now_ns, void (*cb)(void *ctx, const void *rec, size_t size),
			void *ctx)
{
	ttmon_bpf_each_launches(b, now_ns, cb, ctx);
	ttmon_bpf_each_tt_sums(b, now_ns, cb, ctx);
}

void ttmon_bpf_take_sums(struct ttmon_bpf *b, uint32_t tgid, uint64_t now_ns,
			 void (*cb)(void *ctx, const void *rec, size_t size), void *ctx)
{
	ttmon_bpf_take_launches(b, tgid, now_ns, cb, ctx);
	ttmon_bpf_take_tt_sums(b, tgid, now_ns, cb, ctx);
}
