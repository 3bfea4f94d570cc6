/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dispatch_int.h: shared by the files of core/dispatch; not included elsewhere.
 *
 *   dispatch.c   processes, counts, views, handlers of events
 *   runs.c  profiler records: layout, clock, waiting, envelope
 *   slots.c device time by slot, and rows of a slot
 *
 * Processes, devices and clocks have serial numbers that are never used again: tables are keyed by
 * them, and places in the arrays may change when ended processes are removed.
 */
#ifndef TTMON_DISP_INT_H
#define TTMON_DISP_INT_H

#include "daemon/core/dispatch/clock.h"
#include "daemon/core/dispatch/progs.h"
#include "daemon/core/dispatch/record.h"
#include "daemon/core/dispatch/sums.h"
#include "daemon/core/dispatch/dispatch.h"
#include "lib/base/hmap.h"
#include "lib/base/names.h"

#define DISP_PROCS	8192
#define DISP_STARTS	65536
#define DISP_BLINDS	4096
#define DISP_SUMS	65536
#define DISP_CPUS	65536
#define DISP_CLOCKS	4096
#define DISP_PROGRAMS	65536
#define DISP_ENDED	256
#define DISP_ENDED_MORE 32 /* ended processes are removed this many at a time */
#define DISP_JUDGES	4  /* libraries of a process with a judge */
#define DISP_ENQUEUED	64
#define DISP_WAITING	4096
#define DISP_PAIRS_MS	64 /* pairs of a process in a millisecond: each may cost a fit */
#define DISP_WAIT_NS	(2 * NSEC_PER_SEC)
#define DISP_OPEN	1024 /* runs that end after the newest event */
#define DISP_ROWS	512  /* rows (process, device) of a slot, before they are reported */
#define DISP_PLACES	(2 * DISP_ROWS)

struct disp_judge {
	uint16_t slot;
	struct ttmon_rec_judge j;
};

/* A dispatch that brings a program to a device, kept one by one. */
struct disp_enqueued {
	uint64_t ts_ns;
	uint64_t device;
	uint64_t nth; /* number of the dispatch within the process, from 1 */
};

struct disp_proc {
	uint32_t serial, tgid;
	uint64_t start_ns, end_ns;
	bool ended, forget;
	/*
	 * True while the nth run of a device belongs to the nth dispatch: no dispatch was missed, none was a
	 * trace, and all are for one device.
	 */
	bool exact;
	bool has_device;
	uint64_t device;
	uint64_t enqueues;
	struct disp_enqueued enq[DISP_ENQUEUED]; /* ring of the newest nr_enq */
	uint64_t nr_enq;
	struct disp_judge judges[DISP_JUDGES];
	uint32_t nr_judges;
	uint32_t waiting;
	uint64_t ms, ms_pairs; /* pairs in this millisecond */
	uint64_t dropped;      /* reported with a record that led to no clock */
};

/* Parallel to struct ttmon_tt_dispatch_sum. */
struct disp_sum_extra {
	uint32_t proc, serial;
	uint32_t logical; /* of the first device */
	uint64_t key;
};

struct disp_cpu {
	uint64_t key; /* serial of the sum, cpu */
	uint32_t proc;
	struct ttmon_disp_cpu c;
};

/* Parallel to struct ttmon_tt_clock. */
struct disp_clock_extra {
	uint32_t proc, serial;
	uint64_t first_ns; /* time of the first record */
	uint32_t waiting;
	struct ttmon_disp_clock c;
};

/* A record that waits. */
enum disp_wait { DISP_DONE, DISP_FOR_LAYOUT, DISP_FOR_CLOCK };
struct disp_waiting {
	uint32_t proc; /* serial */
	uint8_t what;  /* enum disp_wait */
	bool accounted;
	uint64_t nth; /* number of the run within its clock */
	struct ttmon_ev_tt_program ev;
};

/* The process and device that work is counted for. */
struct disp_who {
	uint32_t proc; /* serial */
	uint32_t tgid, logical, chip;
};

struct disp_part {
	struct disp_who who;
	uint64_t from_ns, to_ns;
};

struct disp_row {
	struct disp_who who;
	uint64_t dispatches, busy_ns;
	uint32_t place;
};

struct ttmon_dispatch {
	struct ttmon_dispatch_cfg cfg;
	struct ttmon_dispatch_ops ops;
	void *ctx;
	uint32_t unprobed; /* of all libraries, bits as ttmon_dispatch_unprobed() */
	uint64_t now_ns;   /* time of the newest event */
	bool begun;	   /* now_ns is valid */
	uint64_t clock_ns; /* begin of the capture, 0: unknown */
	uint64_t generation, refused;
	uint32_t serial;

	struct disp_proc **procs; /* in order of appearance */
	size_t nr_procs, cap_procs, nr_ended;
	struct ttmon_hmap by_tgid, by_serial;
	struct ttmon_hmap starts; /* by tgid: start_ns, as announced */
	struct ttmon_hmap blind;  /* by tgid: when the probes of a library that was mapped earlier became active */

	struct ttmon_tt_dispatch_sum *sums;
	struct disp_sum_extra *sums_x;
	size_t nr_sums, cap_sums;
	struct ttmon_hmap by_device;
	struct disp_cpu *cpus;
	size_t nr_cpus, cap_cpus;
	struct ttmon_hmap by_cpu;

	struct ttmon_tt_clock *clocks;
	struct disp_clock_extra *clocks_x;
	size_t nr_clocks, cap_clocks;
	struct ttmon_hmap by_clock;

	struct ttmon_tsc tsc;
	struct ttmon_disp_progs *progs;
	/* by library: 0: unknown whether pairs can come, 1: they can, 2: they cannot */
	uint8_t slot_sync[TTMON_TT_SLOTS];

	struct disp_waiting *waiting; /* ring */
	uint32_t wait_head, nr_waiting;

	uint64_t slot_dispatches, slot_busy_ns;
	struct disp_part open[DISP_OPEN];
	uint32_t nr_open;
	struct disp_row rows[DISP_ROWS]; /* of this slot */
	uint32_t nr_rows;
	uint16_t row_at[DISP_PLACES]; /* 1 + index in rows, by hash; 0: none */
	uint64_t next_slot;	      /* number of the slot after the one that closed last */
};

static inline uint64_t ttmon_disp_key(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}

struct disp_proc *ttmon_disp_proc_get(struct ttmon_dispatch *d, uint32_t tgid);
struct disp_proc *ttmon_disp_proc_by_serial(const struct ttmon_dispatch *d, uint32_t serial);

/* runs.c */
/* Handles records that have waited too long by now_ns; all: every waiting record. */
void ttmon_disp_expire(struct ttmon_dispatch *d, bool all);
/* Reports the waiting records of an ended process as they are. */
void ttmon_disp_flush(struct ttmon_dispatch *d, const struct disp_proc *proc);

/* slots.c */
void ttmon_disp_book(struct ttmon_dispatch *d, const struct disp_who *who, uint64_t from_ns, uint64_t to_ns);
void ttmon_disp_book_dispatches(struct ttmon_dispatch *d, const struct disp_who *who, uint64_t n);
/* Device time up to end_ns is counted and leaves the open runs. */
void ttmon_disp_close_open(struct ttmon_dispatch *d, uint64_t end_ns, bool all);
void ttmon_disp_tell_rows(struct ttmon_dispatch *d, uint64_t slot_no);

#endif
