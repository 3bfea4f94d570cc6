/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hot.h: the hot thread: drains the rings into the pipeline every 15 ms, or every millisecond while
 * something waits for it. It owns the pipeline while it runs, never takes a lock that a reader may
 * hold, opens no file and attaches nothing: it sends requests to the cold thread for that, and gets
 * the answers as facts.
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
 * The functions of a part of the run (daemon.h) in the hot thread. They must be short and make no call
 * that waits; they depend only on their arguments.
 */
struct ttmon_hot_part {
	/*
	 * Called for an event of one of these kinds (1ull << TTMON_EV_X) as it comes out of a ring, before it
	 * enters the slots.
	 */
	uint64_t kinds;
	void (*event)(struct ttmon_asker *a, const struct ttmon_event *e);
	/* Called every 20 ms: sends the requests of the part's side of the pipeline. */
	void (*ask)(struct ttmon_asker *a, struct ttmon_pipeline *p);
};

#define TTMON_PARTS_MAX 16

struct ttmon_hot_cfg {
	struct ttmon_bpf *bpf;
	struct ttmon_pipeline *pipeline;
	struct ttmon_rec_writer *rec; /* NULL: not recorded */
	struct ttmon_cpustate *cpus;  /* NULL: CPU time is not measured */
	/* slots that were not published anywhere, counted by the pipeline's publish function; NULL: none */
	const uint64_t *unpublished;
	bool prompt; /* rounds of 1 ms while events come: processes are held until they are handled */
	const struct ttmon_hot_part *parts[TTMON_PARTS_MAX];
	size_t nr_parts;
};

enum ttmon_request_kind {
	TTMON_REQ_PROC,	  /* a process was announced: list its mappings and names */
	TTMON_REQ_EXIT,	  /* it is gone */
	TTMON_REQ_MAPS,	  /* list its mappings: a copy came from an unknown address */
	TTMON_REQ_SYMBOL, /* find the name of a frame */
	TTMON_REQ_NOTE,	  /* log a note about something odd */
	TTMON_REQ_PART,	  /* a request of a part, for that part */
};

#define TTMON_REQ_BODY 128

struct ttmon_request {
	enum ttmon_request_kind kind;
	uint32_t tgid;
	uint64_t start_ns; /* PROC: of the process */
	uint32_t part;	   /* PART: index of the part in the table */
	union {
		struct ttmon_frame frame;
		char note[TTMON_REQ_BODY];
		uint64_t body[TTMON_REQ_BODY / sizeof(uint64_t)]; /* PART: contents defined by the part */
	};
};

/* Figures for status and the live line: consistent with each other, at most 100 ms old. */
struct ttmon_snapshot {
	uint64_t now_ns, watermark_ns, events;
	struct ttmon_accounting acc;
	struct ttmon_history_totals totals;
	struct ttmon_quota_row quotas[TTMON_QUOTA_ROWS];
	uint32_t nr_quotas;
	size_t procs;
	uint64_t unpublished;	 /* part of acc.published: there was no place to publish them */
	uint64_t stalls;	 /* times the watermark was held back to the limit */
	uint64_t longest_gap_ns; /* between two drains */
	struct ttmon_cpu_totals cpu;
	struct ttmon_rmid_totals rmid;
	struct ttmon_cpustate_sums sched;
	uint64_t records[TTMON_FAMILY_MAX + 1]; /* records taken, by family; the last: of no family */
	uint64_t records_ns;			/* CPU time of the hot thread spent on records */
	uint64_t calls_ns;			/* and on calls of other threads (ttmon_hot_call()) */
	uint64_t oldest_lag_ns;			/* longest time from the end of a slot to its closing since the start */
	bool has_tt;
	struct ttmon_seen_view seen;
	uint32_t incomplete;	/* why the figures so far are not complete, as bits (1 << enum ttmon_incomplete) */
	uint64_t tt_generation; /* changes with any figure of core/tt/tt.h and core/dispatch/dispatch.h */
};

/* Fills in the figures that come from the pipeline. Call it in the thread that owns the pipeline. */
void ttmon_snapshot_fill(struct ttmon_snapshot *s, struct ttmon_pipeline *p);

/*
 * Runs in the hot thread between two drains: it must be short and make no call that waits. now_ns: the
 * watermark.
 */
typedef int (*ttmon_hot_fn)(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns);

int ttmon_hot_start(const struct ttmon_hot_cfg *cfg, struct ttmon_hot **ret) _must_check;
/* Any thread. Facts are fed before the next drain, in the order of the calls. */
void ttmon_hot_fact(void *hot, const void *rec, size_t size);
/* The answer to TTMON_REQ_PROC is complete (or the process is gone): its events no longer wait. */
void ttmon_hot_listed(struct ttmon_hot *h, uint32_t tgid);
/* Readable while there are requests, or news for followers. */
int ttmon_hot_fd(const struct ttmon_hot *h);
/* News that are announced while a client follows them. */
enum ttmon_hot_news {
	TTMON_HOT_ADVICE = 1 << 0, /* lines of live advice: at once, and rounds are short while events come */
	TTMON_HOT_RUNS = 1 << 1,   /* runs of the timeline: after a round, at most every 10 ms */
};
void ttmon_hot_follow(struct ttmon_hot *h, enum ttmon_hot_news news, bool follow);
/* Takes the waiting requests; the caller frees *ret. Returns their number. */
size_t ttmon_hot_requests(struct ttmon_hot *h, struct ttmon_request **ret);
void ttmon_hot_snapshot(struct ttmon_hot *h, struct ttmon_snapshot *ret);
/*
 * For functions of a part in the hot thread: note writes a line to the log; ask sends a request whose
 * n bytes (at most TTMON_REQ_BODY) come back in it.
 */
void ttmon_hot_note(struct ttmon_asker *a, const char *text);
void ttmon_hot_ask(struct ttmon_asker *a, uint32_t tgid, const void *body, size_t n);
/* Runs fn in the hot thread, at once if it waits; returns its result. One caller at a time. */
int ttmon_hot_call(struct ttmon_hot *h, ttmon_hot_fn fn, void *ctx);
/*
 * Forks in the hot thread and runs fn in the child, on its copy of the pipeline, so that the trace
 * goes on; the child's exit status is fn's result (0 or 1). Returns the child's pid or -errno.
 */
pid_t ttmon_hot_dump(struct ttmon_hot *h, ttmon_hot_fn fn, void *ctx);
/*
 * pause: the scheduler's programs were stopped (family cpu): CPUs are reported as offline, so that
 * slots say that nothing is known of them. Before the programs run again, their states must be reset
 * (ttmon_bpf_cpus_forget()), and this be called with pause false.
 */
void ttmon_hot_pause_cpus(struct ttmon_hot *h, bool pause);
/*
 * The capture ends: clears the switch `active` in the hot thread, so that no CPU is extended by its
 * last state.
 */
void ttmon_hot_end(struct ttmon_hot *h);
/*
 * Drains the rings, feeds the kernel's counters, ends the thread, frees h. *end_ns: the last
 * watermark. The caller owns the pipeline again.
 */
void ttmon_hot_stop(struct ttmon_hot *h, uint64_t *end_ns);

/* Passes the kernel's counters as LOST facts, and the launch sums, to fn. */
void ttmon_kernel_facts(const struct ttmon_bpf *b, uint64_t now_ns, void (*fn)(void *ctx, const void *rec, size_t size),
			void *ctx);

#endif
