/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * usage.h: what groups of processes did, as counters that outlive the processes: the ground of every
 * metric with a label. Pure, hot thread, owned by the pipeline.
 *
 * A group is all processes of one name in one cgroup. Processes keep cumulative figures (struct
 * ttmon_proc, struct ttmon_cpu_proc); a sweep adds what each has gained since the last sweep to its
 * group (a process that has changed its name gains for the new one), and so does its end, before its
 * line is used again: a process that lived between two sweeps is counted like any other. Thus for
 * every counter
 *
 *	sum over groups + gone = sum over all processes there ever were		(exactly)
 *
 * A group without a living process stays for cfg.linger_ns, so that a scraper sees its last figures,
 * then its counters go into `gone`. When there are cfg.max_groups the one that has been without a
 * process for longest goes earlier; where all live, further ones are counted in the one that is called
 * "" in cgroup 0.
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

/* Only grow. All members are uint64_t: it is also looked at as an array of them. */
struct ttmon_usage_sums {
	uint64_t allocs[TTMON_METHOD_MAX], alloc_bytes[TTMON_METHOD_MAX], ends[TTMON_METHOD_MAX];
	struct ttmon_xfer xfer[TTMON_RDIR_MAX][TTMON_MEM_MAX];
	uint64_t kernels, graphs, failed, unknown_frees, unmatched;
	struct ttmon_work work;
	uint64_t wait_ns[TTMON_WAIT_MAX][TTMON_WAIT_PARTS]; /* of synchronous calls, by kind */
	/* of the scheduler */
	uint64_t cpu_ns, switches, ctr[TTMON_CTR_MAX], mbm_total, mbm_local;
};
#define TTMON_USAGE_SUMS (sizeof(struct ttmon_usage_sums) / sizeof(uint64_t))

/* As they are at the last sweep, sums over living processes; all uint64_t. */
struct ttmon_usage_now {
	uint64_t live[TTMON_METHOD_MAX], live_bytes[TTMON_METHOD_MAX];
	uint64_t pinned_pages;	    /* distinct ones */
	uint64_t pinned_peak_bytes; /* the largest peak of any one process, also of those that ended */
	uint64_t llc_bytes;
	uint64_t processes;
};
#define TTMON_USAGE_NOW (sizeof(struct ttmon_usage_now) / sizeof(uint64_t))

struct ttmon_usage_group {
	char comm[TTMON_COMM_LEN + 1]; /* kernel threads: "[kernel]" for all of them */
	uint64_t cgroup_id;	       /* 0: not known */
	uint64_t id;		       /* never used again */
	uint64_t ended_ns;	       /* 0: a process lives; else since when none does */
	bool mem;		       /* the history knows (or knew) a process of it */
	bool cpu;		       /* and the scheduler does */
	struct ttmon_usage_sums sums;
	struct ttmon_usage_now now;
};

int ttmon_usage_new(const struct ttmon_usage_cfg *cfg, struct ttmon_usage **ret) _must_check;
void ttmon_usage_free(struct ttmon_usage *u);

/* A process is about to be forgotten by the history, by core/cpu: what it did since the last sweep. */
void ttmon_usage_leaving(struct ttmon_usage *u, const struct ttmon_proc *p);
void ttmon_usage_cpu_leaving(struct ttmon_usage *u, const struct ttmon_cpu_proc *p);

/*
 * Bring all up to date. Takes about 50 ns for each process that is kept and 400 ns for one that has
 * done something with memory since the last sweep (tests/bench/bench_usage.c). h, c: may be NULL,
 * where there is none. now_ns never goes back.
 */
void ttmon_usage_sweep(struct ttmon_usage *u, struct ttmon_history *h, struct ttmon_cpu *c, uint64_t now_ns);
/*
 * By id, valid until the next call. The nameless group is the first, id 0, once it has counted
 * anything; it never ends.
 */
size_t ttmon_usage_groups(struct ttmon_usage *u, const struct ttmon_usage_group **ret);
const struct ttmon_usage_sums *ttmon_usage_gone(const struct ttmon_usage *u);
/* Processes counted in the nameless group for want of room, or of memory. */
uint64_t ttmon_usage_refused(const struct ttmon_usage *u);

#endif
