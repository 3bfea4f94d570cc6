/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hot.h: the hot thread: rings -> pipeline, once a millisecond. It owns the pipeline while it runs,
 * never takes a lock that a reader may hold, opens no file and attaches nothing: what it needs from
 * the I/O thread it asks the cold thread for (requests), and what the cold thread learns comes to it
 * as facts.
 *
 *   T0 := clock; read every ring's producer position; drain each ring to its own position; then
 *   nothing stamped before T0 - guard is missing (docs/ARCHITECTURE.md draws the proof) and the slots
 *   before it are closed.
 */
#ifndef TTMON_HOT_H
#define TTMON_HOT_H

#include "daemon/core/stream/pipeline.h"
#include "daemon/core/stream/watermark.h"
#include "daemon/io/bpf/bpf.h"
#include "daemon/io/bpf/cpustate.h"
#include "daemon/io/files/rec.h"

struct ttmon_hot;

struct ttmon_asker;

/*
 * What a part of the run (daemon.h) has in the hot thread. Short, no call that waits; pure functions
 * of what they are given.
 */
struct ttmon_hot_part {
	/*
	 * An event of one of these kinds (1ull << TTMON_EV_X) as it comes out of a ring, whole, before it has
	 * its place in the slots.
	 */
	uint64_t kinds;
	void (*event)(struct ttmon_asker *a, const struct ttmon_event *e);
	/* Each 20 ms: ask what the pipeline's side of the part wants to know. */
	void (*ask)(struct ttmon_asker *a, struct ttmon_pipeline *p);
};

#define TTMON_PARTS_MAX 16

struct ttmon_hot_cfg {
	struct ttmon_bpf *bpf;
	struct ttmon_pipeline *pipeline;
	struct ttmon_rec_writer *rec; /* NULL: not recorded */
	struct ttmon_cpustate *cpus;  /* NULL: CPU time is not measured */
	const uint64_t
		*unpublished; /* slots that went nowhere, as the pipeline's publish function counts them; NULL: none */
	bool prompt;	      /* rounds of 1 ms while events come: processes are held until they have been looked at */
	const struct ttmon_hot_part *parts[TTMON_PARTS_MAX];
	size_t nr_parts;
};

enum ttmon_request_kind {
	TTMON_REQ_PROC,	  /* a process was announced: list its mappings and names */
	TTMON_REQ_EXIT,	  /* it is gone */
	TTMON_REQ_MAPS,	  /* list its mappings: a copy came from an unknown address */
	TTMON_REQ_SYMBOL, /* name of a frame */
	TTMON_REQ_NOTE,	  /* something odd to be logged */
	TTMON_REQ_PART,	  /* a question of a part, for that part */
};

#define TTMON_REQ_BODY 128

struct ttmon_request {
	enum ttmon_request_kind kind;
	uint32_t tgid;
	uint64_t start_ns; /* PROC: of the process */
	uint32_t part;	   /* PART: its place in the table */
	union {
		struct ttmon_frame frame;
		char note[TTMON_REQ_BODY];
		uint64_t body[TTMON_REQ_BODY / sizeof(uint64_t)]; /* PART: what the part made of it */
	};
};

/* What status and the live line show: consistent in itself, at most 100 ms old. */
struct ttmon_snapshot {
	uint64_t now_ns, watermark_ns, events;
	struct ttmon_accounting acc;
	struct ttmon_history_totals totals;
	struct ttmon_quota_row quotas[TTMON_QUOTA_ROWS];
	uint32_t nr_quotas;
	size_t procs;
	uint64_t unpublished;	 /* of acc.published: there was nowhere to publish them */
	uint64_t stalls;	 /* times the watermark was held back to the limit */
	uint64_t longest_gap_ns; /* between two drains */
	struct ttmon_cpu_totals cpu;
	struct ttmon_rmid_totals rmid;
	struct ttmon_cpustate_sums sched;
	uint64_t records[TTMON_FAMILY_MAX + 1]; /* taken of each family's; the last: of none */
	uint64_t records_ns;			/* CPU time of the hot thread that was spent on records */
	uint64_t calls_ns;			/* and on what others asked it to do (ttmon_hot_call()) */
	uint64_t oldest_lag_ns;			/* from the end of a slot to its closing, the longest since the start */
	bool has_tt;
	struct ttmon_seen_view seen;
	uint32_t incomplete;	/* why what was seen so far is not all, as bits (1 << enum ttmon_incomplete) */
	uint64_t tt_generation; /* changes with every figure of core/tt/tt.h and core/dispatch/dispatch.h */
};

/* Of what it says, all that the pipeline knows. Hot thread, or whoever owns the pipeline. */
void ttmon_snapshot_fill(struct ttmon_snapshot *s, struct ttmon_pipeline *p);

/* Runs in the hot thread, between two drains: short, and no call that waits. now_ns: the watermark. */
typedef int (*ttmon_hot_fn)(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns);

int ttmon_hot_start(const struct ttmon_hot_cfg *cfg, struct ttmon_hot **ret) _must_check;
/* Any thread. Facts are fed before the next drain, in the order given. */
void ttmon_hot_fact(void *hot, const void *rec, size_t size);
/*
 * The answer to TTMON_REQ_PROC is complete (or the process is gone): its events need not wait any
 * longer.
 */
void ttmon_hot_listed(struct ttmon_hot *h, uint32_t tgid);
/* Readable while there are requests, or something new of what somebody follows. */
int ttmon_hot_fd(const struct ttmon_hot *h);
/* What is told of while somebody follows it. */
enum ttmon_hot_news {
	TTMON_HOT_ADVICE = 1 << 0, /* lines of live advice: at once, and rounds are short while events come */
	TTMON_HOT_RUNS = 1 << 1,   /* runs of the timeline: after a round, each 10 ms at most */
};
void ttmon_hot_follow(struct ttmon_hot *h, enum ttmon_hot_news news, bool follow);
/* Take the waiting requests; the caller frees *ret. Returns how many. */
size_t ttmon_hot_requests(struct ttmon_hot *h, struct ttmon_request **ret);
void ttmon_hot_snapshot(struct ttmon_hot *h, struct ttmon_snapshot *ret);
/*
 * From functions of a part in the hot thread: a line for the log; a question, whose n bytes
 * (TTMON_REQ_BODY at most) come back in the request.
 */
void ttmon_hot_note(struct ttmon_asker *a, const char *text);
void ttmon_hot_ask(struct ttmon_asker *a, uint32_t tgid, const void *body, size_t n);
/* Have the hot thread run fn, at once when it waits; its result. One caller at a time. */
int ttmon_hot_call(struct ttmon_hot *h, ttmon_hot_fn fn, void *ctx);
/*
 * Fork there and run fn in the child, on its copy of the pipeline, so that the trace goes on; the
 * child's exit status is fn's result (0 or 1). Returns the child's pid or -errno.
 */
pid_t ttmon_hot_dump(struct ttmon_hot *h, ttmon_hot_fn fn, void *ctx);
/*
 * The scheduler's programs were stopped (family cpu): CPUs are reported as gone, so that slots say
 * that nothing is known of them. Before the programs go on, their states must be as never seen
 * (ttmon_bpf_cpus_forget()), and then this is to be told, too (pause false).
 */
void ttmon_hot_pause_cpus(struct ttmon_hot *h, bool pause);
/*
 * Capture ends: the switch `active` off, in the hot thread, so that no CPU is told to go on with what
 * it was doing then.
 */
void ttmon_hot_end(struct ttmon_hot *h);
/*
 * Drain what is there, feed the kernel's counters, end the thread, free. *end_ns: the last watermark.
 * The pipeline is the caller's again.
 */
void ttmon_hot_stop(struct ttmon_hot *h, uint64_t *end_ns);

/* Kernel counters as LOST facts, and launch sums, to fn. */
void ttmon_kernel_facts(const struct ttmon_bpf *b, uint64_t now_ns, void (*fn)(void *ctx, const void *rec, size_t size),
			void *ctx);

#endif
