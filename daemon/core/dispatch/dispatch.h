/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dispatch.h: what was dispatched to Tenstorrent devices, and when the device ran it.
 *
 * Part of the pipeline (hot thread, pure): events TT_DISPATCH, TT_PROGRAM, TT_KERNEL, TT_CALL of class
 * PAIR, facts TT_SUMS and TSC, and the ends of processes, in slot order. Counts are exact where
 * nothing was lost: each record carries the sums so far of its (process, CPU, device). Device
 * intervals are mapped onto CLOCK_MONOTONIC by core/dispatch/clocksync.h, each with its error bound;
 * one that cannot be is kept with the envelope it must lie in (enqueued before, reported after).
 */
#ifndef TTMON_DISPATCH_H
#define TTMON_DISPATCH_H

#include <ttmon/event.h>
#include <ttmon/tt_fns.h>

#include "daemon/core/tt/tt.h"
#include "lib/base/util.h"

struct ttmon_dispatch;

struct ttmon_dispatch_cfg {
	struct ttmon_tt *tt;   /* device pointers to chips; NULL: all unknown */
	uint32_t max_programs; /* distinct (process, chip, program id); 0: 65,536 */
	bool keep_all;	       /* ended processes stay in the views; else the last 256 */
};

/* How a chip's cycles were led to host time, best first. */
#define TTMON_CLOCK_TABLE(X)                                                                       \
	X(0, NONE, "none")                                                                         \
	X(1, PAIRS, "pairs")	   /* regression over (host, device) pairs of a probed function */ \
	X(2, RECORD, "record")	   /* the record's own clock_sync offset and frequency */          \
	X(3, ENVELOPE, "envelope") /* its frequency for the length; the place between enqueue and callback */
enum ttmon_clock {
#define X(id, NAME, name) TTMON_CLOCK_##NAME = id,
	TTMON_CLOCK_TABLE(X)
#undef X
		TTMON_CLOCKS
};
const char *ttmon_clock_name(unsigned int clock);

/* A program's run on a device, told once it is mapped. */
struct ttmon_tt_run {
	uint32_t tgid;
	uint32_t logical;	   /* chip id in the record */
	uint32_t chip;		   /* index of TT_CHIP, 0: unknown */
	uint32_t program;	   /* id as in the record, 16 bits that wrap */
	uint64_t seen_ns;	   /* host time of the callback */
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; ENVELOPE: where it must lie at the latest */
	uint64_t error_ns;	   /* the true start lies within this of start_ns (end likewise) */
	uint64_t start_cycles, end_cycles;
	double ghz;	      /* cycles per ns */
	uint8_t clock;	      /* enum ttmon_clock */
	uint64_t enqueued_ns; /* last dispatch of the process to this device before seen_ns, 0: none seen */
	uint32_t kernels;     /* for ttmon_dispatch_kernels(), 0: not told */
	uint32_t uid;	      /* of the process, UINT32_MAX: not known; whoever has the processes fills it in */
};

/*
 * By how much the length of a run may be wrong, both ends together. UINT64_MAX: not known.
 */
static inline uint64_t ttmon_tt_run_error(const struct ttmon_tt_run *run)
{
	return run->error_ns < UINT64_MAX / 4 ? 2 * run->error_ns : UINT64_MAX;
}

/*
 * A dispatch that was told one by one. count: dispatches since the one told before (1: none was left
 * out).
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
 * What a process had a device do in a slot: told when the slot closes, for each pair with anything in
 * it. A dispatch to a mesh counts for the mesh's first device alone; runs count for the device they
 * ran on. Sums over all rows are those of the views: dispatches by process, busy_ns by process and
 * device. Where very many pairs are busy at once, one of them may have several rows of a slot.
 */
struct ttmon_tt_slot_row {
	uint64_t slot_no;
	uint32_t tgid;
	uint32_t logical; /* TTMON_TT_NO_LOGICAL: not known when it was counted */
	uint32_t chip;	  /* index of TT_CHIP, 0: unknown */
	uint64_t dispatches, busy_ns;
};

struct ttmon_dispatch_ops {
	void (*run)(void *ctx, const struct ttmon_tt_run *run);
	/* Records of a process that led to no run: not understood, without a time, or dropped by tt-metal. */
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
/* Before each event that is no fact, also where another part handles it: the time of the stream. */
void ttmon_dispatch_now(struct ttmon_dispatch *d, uint64_t ts_ns);
/*
 * End of the capture: runs that wait for a clock are reported as they are. Ask for one slot more: what
 * it books lies in that.
 */
void ttmon_dispatch_finish(struct ttmon_dispatch *d);

/*
 * The slot that closes: dispatches counted in it and device nanoseconds of runs reported in it (a run
 * that spans slots is split by time, sums conserved; what lies before the slot is booked in it). Tells
 * its rows, the same split up. Resets the sums.
 */
void ttmon_dispatch_slot(struct ttmon_dispatch *d, uint64_t slot_no, uint64_t *dispatches, uint64_t *busy_ns);

/* ---- views, valid until the next apply ---- */

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
	const char *kernels; /* names joined by ", ", at most 512 bytes; NULL: not told */
};
size_t ttmon_dispatch_programs(const struct ttmon_dispatch *d, const struct ttmon_tt_program **ret);
/*
 * The names of a run's kernels, as above. A number stands for one text for ever. NULL: none, or
 * forgotten.
 */
const char *ttmon_dispatch_kernels(const struct ttmon_dispatch *d, uint32_t kernels);

/* The clock of one device of one process. */
struct ttmon_tt_clock {
	uint32_t tgid, logical, chip;
	uint8_t clock; /* enum ttmon_clock in use */
	uint64_t pairs, outliers, resets;
	double ghz;			   /* frequency in use */
	double residual_ns;		   /* of the fit: largest of the pairs kept */
	uint64_t span_from_ns, span_to_ns; /* pairs kept */
	/* of the newest record, as core/dispatch/record.h names it, static text; NULL: none was taken */
	const char *layout;
	/* no other layout fits the records as well; else they were taken where all that fit say the same */
	bool certain;
	uint64_t records, refused, dropped; /* dropped: as tt-metal says */
	uint64_t refused_layout;	    /* of refused: no layout fitted, or two did and said different things */
	uint64_t untimed;		    /* of the records: no end, or one before the start: no run */
	uint64_t busy_ns;
	uint64_t error_ns;  /* by how much busy_ns may be wrong: both ends of each run that has a bound */
	uint64_t unbounded; /* runs in busy_ns that have none */
};
size_t ttmon_dispatch_clocks(const struct ttmon_dispatch *d, const struct ttmon_tt_clock **ret);
/*
 * Kinds of dispatch (1 << enum ttmon_tt_dispatch) of which some function was not probed: their counts
 * are lower bounds.
 */
uint32_t ttmon_dispatch_unprobed(const struct ttmon_dispatch *d);
uint64_t ttmon_dispatch_generation(const struct ttmon_dispatch *d);
/* Events that were not taken for want of memory or because a table was full. */
uint64_t ttmon_dispatch_refused(const struct ttmon_dispatch *d);

#endif
