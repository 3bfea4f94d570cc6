/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dispatch.h: programs dispatched to Tenstorrent devices, and when the devices ran them.
 *
 * Part of the pipeline (hot thread, pure): events TT_DISPATCH, TT_PROGRAM, TT_KERNEL, TT_CALL of class
 * PAIR, facts TT_SUMS and TSC, and the ends of processes, in slot order. Counts are exact where
 * nothing was lost: each record carries the sums so far of its (process, CPU, device). Device
 * intervals are mapped onto CLOCK_MONOTONIC by core/dispatch/clocksync.h, each with its error bound;
 * one that cannot be mapped is kept with the interval it must lie in (after its enqueue, before its
 * callback).
 */
#ifndef TTMON_DISPATCH_H
#define TTMON_DISPATCH_H

#include <ttmon/event.h>
#include <ttmon/tt_fns.h>

#include "daemon/core/tt/tt.h"
#include "lib/base/util.h"

struct ttmon_dispatch;

struct ttmon_dispatch_cfg {
	struct ttmon_tt *tt;   /* maps device pointers to chips; NULL: all chips are unknown */
	uint32_t max_programs; /* distinct (process, chip, program id); 0: 65,536 */
	bool keep_all;	       /* true: ended processes stay in the views; false: only the last 256 do */
};

/* How a chip's cycles were mapped to host time, best first. */
#define TTMON_CLOCK_TABLE(X)                                                                       \
	X(0, NONE, "none")                                                                         \
	X(1, PAIRS, "pairs")	   /* regression over (host, device) pairs of a probed function */ \
	X(2, RECORD, "record")	   /* the record's own clock_sync offset and frequency */          \
	X(3, ENVELOPE, "envelope") /* record's frequency for the length; placed between enqueue and callback */
enum ttmon_clock {
#define X(id, NAME, name) TTMON_CLOCK_##NAME = id,
	TTMON_CLOCK_TABLE(X)
#undef X
		TTMON_CLOCKS
};
const char *ttmon_clock_name(unsigned int clock);

/* A program's run on a device, reported once it is mapped. */
struct ttmon_tt_run {
	uint32_t tgid;
	uint32_t logical;	   /* chip id in the record */
	uint32_t chip;		   /* index of TT_CHIP, 0: unknown */
	uint32_t program;	   /* id as in the record, 16 bits that wrap */
	uint64_t seen_ns;	   /* host time of the callback */
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; with ENVELOPE the latest times that are possible */
	uint64_t error_ns;	   /* the true start lies within this many ns of start_ns (likewise the end) */
	uint64_t start_cycles, end_cycles;
	double ghz;	      /* cycles per ns */
	uint8_t clock;	      /* enum ttmon_clock */
	uint64_t enqueued_ns; /* last dispatch of the process to this device before seen_ns, 0: none was seen */
	uint32_t kernels;     /* for ttmon_dispatch_kernels(), 0: unknown */
	/* of the process, UINT32_MAX: unknown; filled in by the caller, which has the processes */
	uint32_t uid;
};

/* By how many ns the length of a run may be wrong, both ends together. UINT64_MAX: unknown. */
static inline uint64_t ttmon_tt_run_error(const struct ttmon_tt_run *run)
{
	return run->error_ns < UINT64_MAX / 4 ? 2 * run->error_ns : UINT64_MAX;
}

/*
 * A dispatch that was reported one by one. count: dispatches since the one reported before (1: none
 * was left out).
 */
struct ttmon_tt_dispatched {
	uint32_t tgid, tid;
	uint64_t ts_ns, device, what;
	uint64_t count;
	uint16_t fn;
	uint8_t kind; /* enum ttmon_tt_dispatch */
	uint8_t blocking;
};

/*
 * What a process had a device do in a slot: reported when the slot closes, for each pair with any
 * activity. A dispatch to a mesh counts for the mesh's first device alone; runs count for the device
 * they ran on. Sums over all rows equal those of the views: dispatches by process, busy_ns by process
 * and device. Where very many pairs are busy at once, one of them may have several rows in a slot.
 */
struct ttmon_tt_slot_row {
	uint64_t slot_no;
	uint32_t tgid;
	uint32_t logical; /* TTMON_TT_NO_LOGICAL: was unknown when it was counted */
	uint32_t chip;	  /* index of TT_CHIP, 0: unknown */
	uint64_t dispatches, busy_ns;
};

struct ttmon_dispatch_ops {
	void (*run)(void *ctx, const struct ttmon_tt_run *run);
	/*
	 * n records of a process did not lead to a run: not understood, without a time, or dropped by
	 * tt-metal.
	 */
	void (*missed)(void *ctx, uint32_t tgid, uint64_t at_ns, uint64_t n);
	void (*dispatched)(void *ctx, const struct ttmon_tt_dispatched *d);
	void (*slot)(void *ctx, const struct ttmon_tt_slot_row *row);
};

int ttmon_dispatch_new(const struct ttmon_dispatch_cfg *cfg, const struct ttmon_dispatch_ops *ops, void *ctx,
		       struct ttmon_dispatch **ret) _must_check;
void ttmon_dispatch_free(struct ttmon_dispatch *d);
/* ttmon_dispatch_on_NAME(d, ev): a checked record; events in slot order, facts whenever they come. */
#define X(id, NAME, name, type, way, family, check, stream, timeline, history, tt, dispatch, ...) \
	TTMON_IF_##dispatch(void ttmon_dispatch_on_##name(struct ttmon_dispatch *d, const struct type *ev);)
TTMON_EVENT_TABLE(X)
#undef X
/*
 * Advances the stream time. Called before each event that is no fact, also where another part handles
 * the event.
 */
void ttmon_dispatch_now(struct ttmon_dispatch *d, uint64_t ts_ns);
/*
 * End of the capture: runs that wait for a clock are reported as they are. Request one more slot
 * afterwards: what this call adds is in that slot's sums.
 */
void ttmon_dispatch_finish(struct ttmon_dispatch *d);

/*
 * The slot closes: returns the dispatches counted in it and the device nanoseconds of the runs
 * reported in it (a run that spans slots is split by time, sums conserved; time before the slot is
 * added to it). Reports the slot's rows, which split the same sums. Resets the sums.
 */
void ttmon_dispatch_slot(struct ttmon_dispatch *d, uint64_t slot_no, uint64_t *dispatches, uint64_t *busy_ns);

/* ---- views, valid until the next event or slot ---- */

/* Dispatches of one process to one device. */
struct ttmon_tt_dispatch_sum {
	uint32_t tgid;
	uint64_t start_ns; /* of the process, 0: unknown */
	uint64_t device;
	uint8_t dev_kind;
	uint32_t chip; /* the first one, 0: unknown */
	uint64_t count[TTMON_TT_DISPATCH_MAX];
	uint64_t first_ns, last_ns;
};
size_t ttmon_dispatch_sums(const struct ttmon_dispatch *d, const struct ttmon_tt_dispatch_sum **ret);

struct ttmon_tt_program {
	uint32_t tgid, logical, chip, program;
	uint64_t runs, busy_ns, min_ns, max_ns;
	uint64_t first_ns, last_ns;
	const char *kernels; /* names joined by ", ", at most 512 bytes; NULL: unknown */
};
size_t ttmon_dispatch_programs(const struct ttmon_dispatch *d, const struct ttmon_tt_program **ret);
/*
 * The names of a run's kernels, as above. A number always stands for the same text. NULL: none, or the
 * text was dropped.
 */
const char *ttmon_dispatch_kernels(const struct ttmon_dispatch *d, uint32_t kernels);

/* The clock of one device of one process. */
struct ttmon_tt_clock {
	uint32_t tgid, logical, chip;
	uint8_t clock; /* enum ttmon_clock in use */
	uint64_t pairs, outliers, resets;
	double ghz;			   /* frequency in use */
	double residual_ns;		   /* largest residual of the pairs kept, in ns */
	uint64_t span_from_ns, span_to_ns; /* time span of the pairs kept */
	/*
	 * Layout of the newest record, named as in core/dispatch/record.h, static text; NULL: no record was
	 * taken.
	 */
	const char *layout;
	/*
	 * True: no other layout fits the records as well. False: records were taken only where all fitting
	 * layouts agree.
	 */
	bool certain;
	uint64_t records, refused, dropped; /* dropped: as reported by tt-metal */
	uint64_t refused_layout;	    /* of refused: no layout fitted, or two fitted and disagreed */
	/* of records: no end, or an end before the start, so that there is no run */
	uint64_t untimed;
	uint64_t busy_ns;
	uint64_t error_ns;  /* by how many ns busy_ns may be wrong: both ends of each run that has a bound */
	uint64_t unbounded; /* runs in busy_ns without a bound */
};
size_t ttmon_dispatch_clocks(const struct ttmon_dispatch *d, const struct ttmon_tt_clock **ret);
/*
 * Kinds of dispatch (bits 1 << enum ttmon_tt_dispatch) with a function that is not probed: their
 * counts are lower bounds.
 */
uint32_t ttmon_dispatch_unprobed(const struct ttmon_dispatch *d);
uint64_t ttmon_dispatch_generation(const struct ttmon_dispatch *d);
/* Number of events that were not taken because memory was short or a table was full. */
uint64_t ttmon_dispatch_refused(const struct ttmon_dispatch *d);

#endif
