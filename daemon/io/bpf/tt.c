// SPDX-License-Identifier: GPL-2.0-only
/*
 * tt.c: the kernel's tables for tt-metal: vtables by slot, dispatch sums by (process, CPU, device).
 *
 * Runs in the cold thread, and at the end of a capture in the thread that ends it. The table of sums
 * changes while it is walked: a new entry may be missed, and an entry reported twice has the same
 * value or a higher one.
 */
#include <bpf/bpf.h>

#include "daemon/io/bpf/bpf_int.h"
#include "lib/base/grow.h"

/* bpf/dispatch.bpf.c */
struct key {
	uint32_t tgid, cpu;
	uint64_t device;
};
struct sums {
	uint64_t ms;
	uint32_t sent, dev_kind;
	uint64_t sums[TTMON_TT_DISPATCH_MAX];
};
#define MAX_SUMS 16384u

int ttmon_bpf_tt_slot(struct ttmon_bpf *b, uint32_t slot, const struct ttmon_tt_slot *vt)
{
	return bpf_map_update_elem(ttmon_bpf_tt_slots_fd(b), &slot, vt, BPF_ANY) ? -errno : 0;
}

static void tell(int fd, const struct key *k, uint64_t now_ns, void (*cb)(void *ctx, const void *rec, size_t size),
		 void *ctx)
{
	struct ttmon_ev_tt_sums e = {
		.h = { .ts_ns = now_ns, .kind = TTMON_EV_TT_SUMS, .cpu = TTMON_CPU_DAEMON, .tgid = k->tgid },
		.device = k->device,
		.of_cpu = k->cpu,
	};
	struct sums v;

	if (bpf_map_lookup_elem(fd, k, &v))
		return;
	e.dev_kind = (uint8_t)v.dev_kind;
	memcpy(e.sums, v.sums, sizeof(e.sums));
	cb(ctx, &e, sizeof(e));
}

/*
 * The keys of one process, or of all (`of` is NULL), before any is deleted: a walk begins again after
 * a deletion.
 */
static size_t keys(int fd, const uint32_t *of, struct key **ret)
{
	struct key k, *prev = NULL, *v = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < 2 * MAX_SUMS && !bpf_map_get_next_key(fd, prev, &k); i++) {
		prev = &k;
		if (of && k.tgid != *of)
			continue;
		if (TTMON_GROW(v, cap, n + 1, 64))
			break;
		v[n++] = k;
	}
	*ret = v;
	return n;
}

void ttmon_bpf_each_tt_sums(const struct ttmon_bpf *b, uint64_t now_ns,
			    void (*cb)(void *ctx, const void *rec, size_t size), void *ctx)
{
	_cleanup_free_ struct key *v = NULL;
	int fd = ttmon_bpf_tt_sums_fd(b);
	size_t n = keys(fd, NULL, &v);

	for (size_t i = 0; i < n; i++)
		tell(fd, &v[i], now_ns, cb, ctx);
}

void ttmon_bpf_take_tt_sums(struct ttmon_bpf *b, uint32_t tgid, uint64_t now_ns,
			    void (*cb)(void *ctx, const void *rec, size_t size), void *ctx)
{
	_cleanup_free_ struct key *v = NULL;
	int fd = ttmon_bpf_tt_sums_fd(b);
	size_t n = keys(fd, &tgid, &v);

	for (size_t i = 0; i < n; i++) {
		tell(fd, &v[i], now_ns, cb, ctx);
		bpf_map_delete_elem(fd, &v[i]);
	}
}
