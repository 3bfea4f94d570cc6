/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * traceev.h: a trace file, event by event: JSON in the Chrome trace event format (object form), which
 * Perfetto and chrome://tracing open. Private to what has the events: io/files/tracefile.c (a
 * pipeline) and tools/trace/trace_db.c (a database).
 *
 * What is drawn:
 *
 *   process            track                  events
 *   a traced one       each thread            X, i: calls (allocation, free, copy); i: dispatches, checkpoints (their label)
 *                      "h2d", "d2h", ...      i: transfers as the history has them: a time, no length
 *                      (by name)              b, e: allocations, the viewer lays them out
 *                      "pinned bytes", ...    C: what is held
 *   Tenstorrent        each chip              X: program runs; a second track where runs overlap
 *   ttmon              each family            b, e: when it did not tell all, and why: counters stand still there; i: what is missing
 *
 * X slices of a track never overlap but by nesting: what would is drawn as b, e instead. Times are
 * CLOCK_MONOTONIC in microseconds with three decimals. Events come in no order: viewers sort. Memory:
 * 24 bytes a process, 24 an allocation that is counted at a time, 8 a run or a call.
 */
#ifndef TTMON_TRACEEV_H
#define TTMON_TRACEEV_H

#include "daemon/core/history/history.h"
#include "daemon/core/know/know.h"
#include "daemon/core/stream/timeline.h"
#include "lib/os/jsonw.h"

#define TTMON_TRACE_SCHEMA  "ttmon-trace"
#define TTMON_TRACE_VERSION 1

struct ttmon_traceev;

struct ttmon_traceev_proc {
	uint32_t tgid;
	uint64_t from_ns;	    /* first heard of: tells processes with one pid apart */
	const char *comm, *cmdline; /* NUL-terminated, cmdline may be NULL */
};

struct ttmon_traceev_head {
	const char *version, *source;	       /* of ttmon; "recording", ... */
	const char *hostname, *release, *mode; /* may be NULL */
	uint64_t mono_ns, real_ns, boot_ns;
	uint64_t start_ns, end_ns;
	uint32_t nr_procs;
	/* Process idx, asked for when it is first drawn and once before. */
	void (*proc)(void *ctx, uint32_t idx, struct ttmon_traceev_proc *ret);
	void *ctx;
	uint64_t max_events; /* of the file, 0: any number; what comes later is left out and counted */
};

struct ttmon_traceev_alloc {
	uint32_t proc;
	uint8_t method; /* enum ttmon_method */
	int16_t device; /* -1: unknown */
	bool live;	/* free_ns means nothing */
	uint64_t addr, size, alloc_ns, free_ns, pin_ns;
	uint64_t copies, bytes;	     /* transfers it took part in */
	const char *fn, *name, *end; /* NULL: none */
	const char *site;	     /* function that asked for it, NULL: not known */
	uint64_t site_delta;	     /* UINT64_MAX: site has it in it */
};

struct ttmon_traceev_transfer {
	uint32_t proc;
	uint8_t method; /* of the allocation it is told by */
	struct ttmon_aev ev;
	uint64_t addr; /* of the allocation */
};

/* Why something is not in the file. */
struct ttmon_traceev_missing {
	bool cut;
	bool no_calls; /* who called and for how long is not known here (a database) */
	uint64_t lost, malformed, arena_full, events_dropped, evicted, folded;
	uint64_t timeline_dropped, calls_dropped;
	uint64_t gaps; /* intervals in which a family did not tell all */
};

/* Write to fd, which stays open. */
int ttmon_traceev_new(int fd, bool gzip, const struct ttmon_traceev_head *head, struct ttmon_traceev **ret) _must_check;
void ttmon_traceev_free(struct ttmon_traceev *t);

/* In the order in which they were made. Mappings that nothing was copied from or to are left out. */
void ttmon_traceev_put_alloc(struct ttmon_traceev *t, const struct ttmon_traceev_alloc *a);
/*
 * An event of an allocation; those that are no transfer, or are told by another allocation as well,
 * are ignored.
 */
void ttmon_traceev_put_transfer(struct ttmon_traceev *t, const struct ttmon_traceev_transfer *x);
/* An interval of which not all was seen. */
void ttmon_traceev_gap(struct ttmon_traceev *t, const struct ttmon_gap *g);
void ttmon_traceev_checkpoint(struct ttmon_traceev *t, const struct ttmon_period_end *c);
void ttmon_traceev_dispatched(struct ttmon_traceev *t, const struct ttmon_tt_dispatched *d);
/* Chips and programs are borrowed, and told before the runs. Once all programs. */
void ttmon_traceev_chip(struct ttmon_traceev *t, const struct ttmon_ev_tt_chip *chip);
void ttmon_traceev_programs(struct ttmon_traceev *t, const struct ttmon_tt_program *programs, size_t n);
/* All of them at once; the list is sorted by this. */
void ttmon_traceev_runs(struct ttmon_traceev *t, const struct ttmon_tt_run **runs, size_t n);
void ttmon_traceev_calls(struct ttmon_traceev *t, const struct ttmon_timeline_call **calls, size_t n);

/* The rest of the document. The first error of all. */
int ttmon_traceev_finish(struct ttmon_traceev *t, const struct ttmon_traceev_missing *missing,
			 const struct ttmon_tt_clock *clocks, size_t nr_clocks) _must_check;

TTMON_FREEP(ttmon_traceev_freep, struct ttmon_traceev, ttmon_traceev_free);

#endif
