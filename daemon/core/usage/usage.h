/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * usage.h: what groups of processes did, as counters that outlive the processes. Every metric with a
 * label is computed from them. Pure, hot thread, owned by the pipeline.
 *
 * A group is all processes of one name in one cgroup. Processes keep cumulative figures (struct
 * ttmon_proc, struct ttmon_cpu_proc). A sweep adds the increase of each process since the last sweep
 * to its group; after a process has changed its name, its increase is added to the group of the new
 * name. The end of a process does the same before its entry is used again, so a process that lived
 * between two sweeps is counted like any other. Thus for every counter
 *
 * 	sum over groups + gone = sum over all processes there ever were		(exactly)
 *
 * A group without a living process stays for cfg.linger_ns, so that a scraper sees its last figures.
 * Then its counters are added to `gone`. If there are cfg.max_groups groups, the group that has been
 * without a process for longest is removed earlier. If all groups have living processes, further
 * processes are counted in the group named "" of cgroup 0.
 */
#ifndef TTMON_USAGE_H
#define TTMON_USAGE_H

#include "daemon/core/cpu/cpu.h"
#include "daemon/core/history/history.h"
#include "daemon/core/history/waits.h"

struct ttmon_usage;

struct ttmon_usage_cfg {
	uint32_t max_groups; /* 0: 4096 */
	uint64_t linger_ns;  /* 0: 120 s */
};

/*
 * These figures only grow. All members are uint64_t, since the struct is also used as an array of
 * them.
 */
struct ttmon_usage_sums {
	uint64_t allocs[TTMON_METHOD_MAX], alloc_bytes[TTMON_METHOD_MAX], ends[TTMON_METHOD_MAX];
	struct ttmon_xfer xfer[TTMON_RDIR_MAX][TTMON_MEM_MAX];
	uint64_t kernels, graphs, failed, unknown_frees, unmatched;
	struct ttmon_work work;
	uint64_t wait_ns[TTMON_WAIT_MAX][TTMON_WAIT_PARTS]; /* in synchronous calls, by kind */
	/* from the scheduler */
	uint64_t cpu_ns, switches, ctr[TTMON_CTR_MAX], mbm_total, mbm_local;
};
#define TTMON_USAGE_SUMS (sizeof(struct ttmon_usage_sums) / sizeof(uint64_t))

/* State at the last sweep: sums over living processes. All members are uint64_t. */
struct ttmon_usage_now {
	uint64_t live[TTMON_METHOD_MAX], live_bytes[TTMON_METHOD_MAX];
	uint64_t pinned_pages;	    /* distinct pages */
	uint64_t pinned_peak_bytes; /* the largest peak of any one process, including those that ended */
	uint64_t llc_bytes;
	uint64_t processes;
};
#define TTMON_USAGE_NOW (sizeof(struct ttmon_usage_now) / sizeof(uint64_t))

struct ttmon_usage_group {
	char comm[TTMON_COMM_LEN + 1]; /* kernel threads: "[kernel]" for all of them */
	uint64_t cgroup_id;	       /* 0: unknown */
	uint64_t id;		       /* never assigned again */
	uint64_t ended_ns;	       /* 0: a process of it is alive; else the time since when none is */
	bool mem;		       /* the history has known a process of it */
	bool cpu;		       /* the scheduler has known a process of it */
	struct ttmon_usage_sums sums;
	struct ttmon_usage_now now;
};

int ttmon_usage_new(const struct ttmon_usage_cfg *cfg, struct ttmon_usage **ret) _must_check;
void ttmon_usage_free(struct ttmon_usage *u);

/* The history, or core/cpu, is about to remove a process: adds what it did since the last sweep. */
void ttmon_usage_leaving(struct ttmon_usage *u, const struct ttmon_proc *p);
void ttmon_usage_cpu_leaving(struct ttmon_usage *u, const struct ttmon_cpu_proc *p);

/*
 * Brings all figures up to date. Takes about 50 ns for each process that is kept, and 400 ns for one
 * that used memory since the last sweep (tests/bench/bench_usage.c). h and c may be NULL if there is
 * none. now_ns never goes back.
 */
void ttmon_usage_sweep(struct ttmon_usage *u, struct ttmon_history *h, struct ttmon_cpu *c, uint64_t now_ns);
/*
 * Returns the groups by id, valid until the next call. The nameless group is the first one, with id 0,
 * once it has counted anything; it is never removed.
 */
size_t ttmon_usage_groups(struct ttmon_usage *u, const struct ttmon_usage_group **ret);
const struct ttmon_usage_sums *ttmon_usage_gone(const struct ttmon_usage *u);
/* Number of processes counted in the nameless group for lack of room or memory. */
uint64_t ttmon_usage_refused(const struct ttmon_usage *u);

#endif
