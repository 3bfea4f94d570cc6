/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * traceev.h: a trace file, event by event: JSON in the Chrome trace event format (object form), which
 * Perfetto and chrome://tracing open. Used only by io/files/tracefile.c (from a pipeline) and
 * tools/trace/trace_db.c (from a database).
 *
 * What is drawn:
 *
 *   process            track                  events
 *   a traced one       each thread            X, i: calls; i: dispatches, checkpoints (their label)
 *                      "h2d", "d2h", ...      i: transfers as in the history: a time, no length
 *                      (by name)              b, e: allocations, the viewer lays them out
 *                      "pinned bytes", ...    C: what is held
 *   Tenstorrent        each chip              X: program runs; a second track where runs overlap
 *   ttmon              each family            b, e: gaps, with reasons (counters stand still);
 *                                             i: what is missing
 *
 * X slices of a track nest but never overlap otherwise: one that would is drawn as b, e instead. Times
 * are CLOCK_MONOTONIC in microseconds with three decimals. Events come in no order: viewers sort.
 * Memory: 24 bytes a process, 24 an allocation that is counted at a time, 8 a run or a call.
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
	uint64_t from_ns;	    /* time of its first event: distinguishes processes with the same pid */
	const char *comm, *cmdline; /* NUL-terminated, cmdline may be NULL */
};

struct ttmon_traceev_head {
	const char *version, *source;	       /* of ttmon; "recording", ... */
	const char *hostname, *release, *mode; /* may be NULL */
	uint64_t mono_ns, real_ns, boot_ns;
	uint64_t start_ns, end_ns;
	uint32_t nr_procs;
	/* Fills in process idx; called when it is first drawn, and once before. */
	void (*proc)(void *ctx, uint32_t idx, struct ttmon_traceev_proc *ret);
	void *ctx;
	uint64_t max_events; /* of the file, 0: no limit; later events are left out and counted */
};

struct ttmon_traceev_alloc {
	uint32_t proc;
	uint8_t method; /* enum ttmon_method */
	int16_t device; /* -1: unknown */
	bool live;	/* free_ns is not valid */
	uint64_t addr, size, alloc_ns, free_ns, pin_ns;
	uint64_t copies, bytes;	     /* transfers it took part in */
	const char *fn, *name, *end; /* NULL: none */
	const char *site;	     /* function that allocated it, NULL: unknown */
	uint64_t site_delta;	     /* UINT64_MAX: the text of site includes it */
};

struct ttmon_traceev_transfer {
	uint32_t proc;
	uint8_t method; /* method of the allocation that has the event */
	struct ttmon_aev ev;
	uint64_t addr; /* of the allocation */
};

/* Why something is missing from the file. */
struct ttmon_traceev_missing {
	bool cut;
	bool no_calls; /* calling threads and durations are unknown here (a database) */
	uint64_t lost, malformed, arena_full, events_dropped, evicted, folded;
	uint64_t timeline_dropped, calls_dropped;
	uint64_t gaps; /* intervals in which a family did not see everything */
};

/* Writes to fd, which stays open. */
int ttmon_traceev_new(int fd, bool gzip, const struct ttmon_traceev_head *head, struct ttmon_traceev **ret) _must_check;
void ttmon_traceev_free(struct ttmon_traceev *t);

/* Call in order of allocation. Mappings without copies are left out. */
void ttmon_traceev_put_alloc(struct ttmon_traceev *t, const struct ttmon_traceev_alloc *a);
/*
 * An event of an allocation. Events that are no transfers, or that another allocation also has, are
 * ignored.
 */
void ttmon_traceev_put_transfer(struct ttmon_traceev *t, const struct ttmon_traceev_transfer *x);
/* An interval in which not everything was seen. */
void ttmon_traceev_gap(struct ttmon_traceev *t, const struct ttmon_gap *g);
void ttmon_traceev_checkpoint(struct ttmon_traceev *t, const struct ttmon_period_end *c);
void ttmon_traceev_dispatched(struct ttmon_traceev *t, const struct ttmon_tt_dispatched *d);
/* Chips and programs are borrowed; add them before the runs. All programs in one call. */
void ttmon_traceev_chip(struct ttmon_traceev *t, const struct ttmon_ev_tt_chip *chip);
void ttmon_traceev_programs(struct ttmon_traceev *t, const struct ttmon_tt_program *programs, size_t n);
/* All of them in one call; the list is sorted in place. */
void ttmon_traceev_runs(struct ttmon_traceev *t, const struct ttmon_tt_run **runs, size_t n);
void ttmon_traceev_calls(struct ttmon_traceev *t, const struct ttmon_timeline_call **calls, size_t n);

/* Writes the rest of the document. Returns the first error. */
int ttmon_traceev_finish(struct ttmon_traceev *t, const struct ttmon_traceev_missing *missing,
			 const struct ttmon_tt_clock *clocks, size_t nr_clocks) _must_check;

TTMON_FREEP(ttmon_traceev_freep, struct ttmon_traceev, ttmon_traceev_free);

#endif
