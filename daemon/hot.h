/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hot.h: the hot thread: rings -> pipeline, once a millisecond. It owns the pipeline while it runs, never takes a lock that a reader
 * may hold, opens no file and attaches nothing: what it needs from the slow world it asks the cold thread for (requests), and
 * what the cold thread learns comes to it as facts.
 *
 *   T0 := clock; read every ring's producer position; drain each ring to its own position; then nothing stamped before
 *   T0 - guard is missing (docs/ARCHITECTURE.md draws the proof) and the slots before it are closed.
 */
#ifndef TTMON_HOT_H
#define TTMON_HOT_H

#include "core/pipeline.h"
#include "core/watermark.h"
#include "io/bpf.h"
#include "io/cpustate.h"
#include "io/rec.h"

struct ttmon_hot;

struct ttmon_hot_cfg {
	struct ttmon_bpf *bpf;
	struct ttmon_pipeline *pipeline;
	struct ttmon_rec_writer *rec; /* NULL: not recorded */
	struct ttmon_cpustate *cpus;  /* NULL: CPU time is not measured */
};

enum ttmon_request_kind {
	TTMON_REQ_PROC,	       /* a process was announced: list its mappings and names */
	TTMON_REQ_EXIT,	       /* it is gone */
	TTMON_REQ_MAPS,	       /* list its mappings: a copy came from an unknown address */
	TTMON_REQ_SYMBOL,      /* name of a frame */
	TTMON_REQ_TT,	       /* a question of core/tt.h */
	TTMON_REQ_TT_PROVIDER, /* a process said which file key a logical device id has */
	TTMON_REQ_NOTE,	       /* something odd to be logged */
};

struct ttmon_request {
	enum ttmon_request_kind kind;
	uint32_t tgid;
	uint64_t start_ns; /* PROC: of the process */
	char note[128];
	struct ttmon_frame frame;
	struct ttmon_tt_want want;
	struct {
		uint64_t key;
		uint32_t logical;
		bool disabled;
	} provider;
};

/* What status and the live line show: consistent in itself, at most 100 ms old. */
struct ttmon_snapshot {
	uint64_t now_ns, watermark_ns, events;
	struct ttmon_accounting acc;
	struct ttmon_history_totals totals;
	size_t procs;
	uint64_t stalls;	 /* times the watermark was held back to the limit */
	uint64_t longest_gap_ns; /* between two drains */
	struct ttmon_cpu_totals cpu;
	struct ttmon_rmid_totals rmid;
	struct ttmon_cpustate_sums sched;
	uint64_t oldest_lag_ns; /* from the end of a slot to its closing, the longest since the start */
	bool has_tt;
	uint64_t tt_generation; /* changes with every figure of core/tt.h and core/dispatch.h */
};

/* Of what it says, all that the pipeline knows. Hot thread, or whoever owns the pipeline. */
void ttmon_snapshot_fill(struct ttmon_snapshot *s, struct ttmon_pipeline *p);

/* Runs in the hot thread, between two drains: short, and no call that waits. now_ns: the watermark. */
typedef int (*ttmon_hot_fn)(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns);

int ttmon_hot_start(const struct ttmon_hot_cfg *cfg, struct ttmon_hot **ret) _must_check;
/* Any thread. Facts are fed before the next drain, in the order given. */
void ttmon_hot_fact(void *hot, const void *rec, size_t size);
/* The answer to TTMON_REQ_PROC is complete (or the process is gone): its events need not wait any longer. */
void ttmon_hot_listed(struct ttmon_hot *h, uint32_t tgid);
/* Readable while there are requests, or new lines of live advice that somebody follows. */
int ttmon_hot_fd(const struct ttmon_hot *h);
void ttmon_hot_follow(struct ttmon_hot *h, bool follow);
/* Take the waiting requests; the caller frees *ret. Returns how many. */
size_t ttmon_hot_requests(struct ttmon_hot *h, struct ttmon_request **ret);
void ttmon_hot_snapshot(struct ttmon_hot *h, struct ttmon_snapshot *ret);
/* Have the hot thread run fn, at once when it waits; its result. One caller at a time. */
int ttmon_hot_call(struct ttmon_hot *h, ttmon_hot_fn fn, void *ctx);
/* Fork there and run fn in the child, on its copy of the pipeline, so that the trace goes on; the child's exit status is fn's result
 * (0 or 1). Returns the child's pid or -errno. */
pid_t ttmon_hot_dump(struct ttmon_hot *h, ttmon_hot_fn fn, void *ctx);
/*
 * The scheduler's programs were stopped (family cpu): CPUs are told as gone, so that slots say that nothing is known of them. Before the
 * programs go on, their states must be as never seen (ttmon_bpf_cpus_forget()), and then this is to be told, too (pause false).
 */
void ttmon_hot_pause_cpus(struct ttmon_hot *h, bool pause);
/* Capture ends: the switch `active` off, in the hot thread, so that no CPU is told to go on with what it was doing then. */
void ttmon_hot_end(struct ttmon_hot *h);
/* Drain what is there, feed the kernel's counters, end the thread, free. *end_ns: the last watermark. The pipeline is the caller's again. */
void ttmon_hot_stop(struct ttmon_hot *h, uint64_t *end_ns);

/* Kernel counters as LOST facts, and launch sums, to fn. */
void ttmon_kernel_facts(const struct ttmon_bpf *b, uint64_t now_ns, void (*fn)(void *ctx, const void *rec, size_t size),
			void *ctx);

#endif
