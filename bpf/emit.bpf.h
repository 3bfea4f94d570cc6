/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * emit.bpf.h: the only code that reserves, stamps, submits and counts records. A program first gathers
 * all data that it needs, then does this:
 *
 *	struct ttmon_ev_free *e = emit_reserve(TTMON_EV_FREE, sizeof(*e), id);
 *	if (!e)
 *		return 0;
 *	... every field after the header ...
 *	emit_submit(e);
 *
 * The time is taken after the reservation. Therefore a record at or past a ring position that was read
 * after T0 has a time after T0 (docs/ARCHITECTURE.md, watermark). Programs at uprobes can be
 * preempted, so they add to per-CPU counters atomically.
 */
#ifndef TTMON_EMIT_BPF_H
#define TTMON_EMIT_BPF_H

#include "compat.bpf.h"

#include <ttmon/event.h>
#include <ttmon/family.h>

struct inner_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* the daemon replaces these rings by rings of the configured size */
};

struct rings_map {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1); /* set to the number of CPUs before load */
	__type(key, u32);
	__array(values, struct inner_ring);
};

struct cpu_stat_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct ttmon_cpu_stat);
};

extern struct rings_map rings SEC(".maps");
extern struct cpu_stat_map cpu_stat SEC(".maps");
extern const volatile u64 cfg_wake_bytes;
extern int active; /* the main switch: the daemon sets it when all probes are attached */
/*
 * The state of each family (enum ttmon_family_state), set by the daemon. Programs check it at the
 * entry of a call and never at its return: a call that was reported at its entry is reported at its
 * return.
 */
extern u32 family_state[TTMON_FAMILY_MAX];
extern u32 family_epoch
	[TTMON_FAMILY_MAX]; /* how often it was switched off: calls entered before that may have returned unseen */

static __always_inline struct ttmon_cpu_stat *emit_stat(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpu_stat, &cpu);
}

static __always_inline void count_only(u32 kind)
{
	struct ttmon_cpu_stat *st = emit_stat();

	if (st)
		__sync_fetch_and_add(&st->counted[kind], 1);
}

/*
 * Returns true if this family is not on: the program then ends. If the family is only counted, this
 * counts the hit.
 */
static __always_inline bool family_gate(u32 family, u32 kind)
{
	u32 state = family_state[family];

	if (state == TTMON_FAMILY_ON)
		return false;
	if (state == TTMON_FAMILY_COUNTING)
		count_only(kind);
	return true;
}

/* Counts n events of this kind that should have been sent and could not be. */
static __always_inline void emit_refuse_many(u32 kind, u32 reason, u32 n)
{
	struct ttmon_cpu_stat *st = emit_stat();

	if (!st)
		return;
	__sync_fetch_and_add(&st->attempted[kind], n);
	__sync_fetch_and_add(&st->lost[kind], n);
	__sync_fetch_and_add(&st->reason[reason], n);
	__sync_fetch_and_add(&st->running_lost, n);
}

static __always_inline void emit_refuse(u32 kind, u32 reason)
{
	emit_refuse_many(kind, reason, 1);
}

/*
 * Reserves space for one record and fills in its header. Returns NULL, and counts a loss, if the ring
 * is full. kind and size are constants. id is bpf_get_current_pid_tgid(), or the identity of the task
 * that the event is about.
 */
static __always_inline void *emit_reserve(u32 kind, u64 size, u64 id)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct ttmon_cpu_stat *st = bpf_map_lookup_elem(&cpu_stat, &cpu);
	void *ring = bpf_map_lookup_elem(&rings, &cpu);
	struct ttmon_event *e;

	if (!st || !ring)
		return NULL;
	__sync_fetch_and_add(&st->attempted[kind], 1);
	e = bpf_ringbuf_reserve(ring, size, 0);
	if (!e) {
		__sync_fetch_and_add(&st->lost[kind], 1);
		__sync_fetch_and_add(&st->reason[TTMON_LOSS_RING_FULL], 1);
		__sync_fetch_and_add(&st->running_lost, 1);
		return NULL;
	}
	/* Writing to the record's last cache line fetches it while the clock is read. */
	*(u64 *)((void *)e + size - sizeof(u64)) = 0;
	e->ts_ns = bpf_ktime_get_ns();
	e->kind = kind;
	e->cpu = cpu;
	e->lost = st->running_lost;
	e->tgid = id >> 32;
	e->tid = id;
	return e;
}

/*
 * Submits without a wakeup (0.1 us for an event instead of 1.8-10 us), unless the ring fills up faster
 * than the daemon's timer empties it. This is checked about every 64th time.
 */
static __always_inline void emit_submit(void *rec)
{
	struct ttmon_event *e = rec;
	u64 flags = BPF_RB_NO_WAKEUP;

	if (!((e->ts_ns >> 6) & 63)) {
		u32 cpu = e->cpu;
		void *ring = bpf_map_lookup_elem(&rings, &cpu);

		if (ring && bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > cfg_wake_bytes)
			flags = BPF_RB_FORCE_WAKEUP;
	}
	bpf_ringbuf_submit(rec, flags);
}

/* Submits and wakes the daemon at once. */
static __always_inline void emit_submit_now(void *rec)
{
	bpf_ringbuf_submit(rec, BPF_RB_FORCE_WAKEUP);
}

/*
 * Sends a record that was gathered in place, complete except for `lost`, in one copy. kind is a
 * constant; the caller bounds size. It is called at most once per millisecond and CPU, so the fill of
 * the ring is checked each time. Returns false if the record is lost, which it counts.
 */
static __always_inline bool emit_output(u32 kind, struct ttmon_event *e, u64 size)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct ttmon_cpu_stat *st = bpf_map_lookup_elem(&cpu_stat, &cpu);
	void *ring = bpf_map_lookup_elem(&rings, &cpu);
	u64 flags = BPF_RB_NO_WAKEUP;

	if (!st || !ring)
		return false;
	__sync_fetch_and_add(&st->attempted[kind], 1);
	e->lost = st->running_lost;
	if (bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > cfg_wake_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	if (bpf_ringbuf_output(ring, e, size, flags)) {
		__sync_fetch_and_add(&st->lost[kind], 1);
		__sync_fetch_and_add(&st->reason[TTMON_LOSS_RING_FULL], 1);
		__sync_fetch_and_add(&st->running_lost, 1);
		return false;
	}
	return true;
}

#endif
