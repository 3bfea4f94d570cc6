/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu.h: who used the CPUs: records of the scheduler in, rows of closed slots out. Pure, hot thread.
 *
 * The records of a CPU are a chain of intervals (ev_cpu.h), put at once into the open slots they are
 * of; one that spans slots is split in proportion to time with 128-bit products, the remainder to the
 * last piece, so that sums are conserved. When a slot closes, a CPU whose chain does not reach its end
 * is extended by what CPU_OPEN said; what nobody told is missing time, by name, never zero.
 *
 *	sum over rows of cpu_ns + missing_ns = CPUs x 1 ms		(each full slot, exactly)
 *	told by records = put into slots + late + unplaced		(ttmon_cpu_totals, each of ns and the counters)
 *
 * Time of a slot that has closed is never added again: what comes too late is counted (late_ns).
 * Counters that come late, as those of a long run whose slots were closed by extension do, go into the
 * oldest open slot of their process, with TTMON_ROW_CTR_LATE.
 */
#ifndef TTMON_CORE_CPU_H
#define TTMON_CORE_CPU_H

#include <ttmon/event.h>
#include <ttmon/slot.h>

#include "lib/base/util.h"

struct ttmon_cpu;

struct ttmon_cpu_proc;

struct ttmon_cpu_cfg {
	uint32_t nr_cpus;   /* possible CPUs */
	uint32_t max_procs; /* kept at a time, 0: 65536; further ones are summed up in one row (class OTHER) */
	/* An entry goes: its last figures; may be NULL. */
	void (*leaving)(void *ctx, const struct ttmon_cpu_proc *p);
	void *ctx;
};

/* Why time or counters are not in the slot they are of. All since the start. */
struct ttmon_cpu_totals {
	uint64_t slots;	     /* closed with CPU time in them (HAS_CPU), all CPUs' chains begun before the slot */
	uint64_t exact;	     /* of these, user + kernel + idle is cpus * 1 ms */
	uint64_t worst_ns;   /* largest difference of one slot */
	uint64_t worst_slot; /* and which */
	uint64_t user_ns, kernel_ns, idle_ns, missing_ns;
	uint64_t told_ns; /* by records (and by extension, until the record comes) */
	uint64_t late_ns; /* told for slots that were closed as missing */
	uint64_t
		mismatch_ns; /* rows that contradict their table, or a record that contradicts the extension: an unseen switch, or a bug */
	uint64_t ctr[TTMON_CTR_MAX], late_ctr[TTMON_CTR_MAX];
	uint64_t extended; /* CPU slots closed by extension, no record needed */
	uint64_t gaps;	   /* chains that were broken: lost records */
	uint64_t overlaps; /* records that begin before the end of the one before and were not expected to */
	uint64_t procs, procs_dropped; /* kept now; not kept for want of room */
	uint64_t records,
		records_dropped; /* CPU_SLOT taken; CPU_SLOT and CPU_OPEN that made no sense or found no room */
	uint64_t now_ns;	 /* end of the slot that closed last: what the sums are of */
	uint32_t cpus;		 /* online as far as known */
	uint32_t cpus_peak;	 /* the most there were in a slot */
	bool has_ctr;
};

/* A process's sums since it was first seen. */
struct ttmon_cpu_proc {
	uint64_t start_ns, end_ns; /* end 0: runs */
	uint64_t cgroup_id;
	uint32_t tgid, ppid;
	uint16_t rmid;
	uint8_t cls;   /* enum ttmon_row_class */
	uint8_t flags; /* TTMON_ROW_* of any of its rows */
	char comm[TTMON_COMM_LEN];
	uint32_t idx; /* of its entry; used again when it has gone */
	uint64_t cpu_ns, switches;
	uint64_t ctr[TTMON_CTR_MAX];
	uint64_t llc_bytes, mbm_total, mbm_local, rdt_ns;
	uint64_t copies, copy_bytes;
	uint64_t pinned_bytes; /* now */
};

/*
 * A piece of RDT readings that belongs to an interval (core/rmid/rmid.h). tgid 0: nobody owned the
 * RMID.
 */
struct ttmon_rdt_piece {
	uint32_t tgid, rmid;
	uint64_t start_ns;     /* of the process; 0: the source does not know, the process of that tgid then is meant */
	uint64_t ns;	       /* length of the interval */
	uint64_t total, local; /* bytes */
	uint64_t occupancy;    /* bytes now, sum over domains; with has_occupancy */
	bool has_occupancy;
	bool unknown; /* a value of the reading was not there */
};

/*
 * The time of a lifecycle record: the source's stamp, a little before the record's own; anything
 * else is not a time.
 */
static inline uint64_t ttmon_rmid_when(const struct ttmon_ev_rmid *e)
{
	bool sane = e->h.kind == TTMON_EV_RMID_SET || e->h.ts_ns - e->when_ns < NSEC_PER_SEC;

	return sane ? e->when_ns : e->h.ts_ns;
}

int ttmon_cpu_new(const struct ttmon_cpu_cfg *cfg, struct ttmon_cpu **ret) _must_check;
void ttmon_cpu_free(struct ttmon_cpu *c);

/*
 * ttmon_cpu_on_NAME(c, ev, size): a checked record. CPU_SLOT, CPU_OPEN and RMID_SET when they come;
 * TASK and RMID (for the row's rmid where the scheduler's record has none) in order of time, as their
 * slot closes.
 */
#define X(id, NAME, name, type, way, family, check, stream, timeline, history, tt, dispatch, cpu, ...) \
	TTMON_IF_##cpu(void ttmon_cpu_on_##name(struct ttmon_cpu *c, const struct type *ev, size_t size);)
TTMON_EVENT_TABLE(X)
#undef X
/* For the slot that is being closed. */
void ttmon_cpu_copy(struct ttmon_cpu *c, uint32_t tgid, uint64_t bytes);
void ttmon_cpu_rdt(struct ttmon_cpu *c, const struct ttmon_rdt_piece *piece);
/*
 * Slot `no` closes; slots close in order, none is skipped but for jumps (suspend). forced: not by the
 * watermark, so that nothing may be extended. Fills the CPU part of *slot, and *rows (valid until the
 * next call), most CPU time first, idle last; returns how many. Processes that did anything in the
 * slot have a row, and those whose pinned memory is not 0 do not for that alone.
 */
size_t ttmon_cpu_close(struct ttmon_cpu *c, uint64_t no, bool forced, struct ttmon_slot *slot,
		       const struct ttmon_slot_row **rows);
/* A ring was not waited for: records of before end_ns may yet come, as far as CPU_OPEN has told. */
bool ttmon_cpu_behind(const struct ttmon_cpu *c, uint64_t end_ns);
/* Pinned bytes of a process have changed. */
void ttmon_cpu_pinned(struct ttmon_cpu *c, uint32_t tgid, uint64_t bytes);

void ttmon_cpu_get_totals(const struct ttmon_cpu *c, struct ttmon_cpu_totals *ret);
/*
 * Every process that is kept, in no order. Those that ended are kept for about two seconds of stream
 * time.
 */
void ttmon_cpu_each(const struct ttmon_cpu *c, void (*fn)(void *ctx, const struct ttmon_cpu_proc *p), void *ctx);
/*
 * Sums of those that are no longer kept, and of what was never told apart: with those of
 * ttmon_cpu_each(), everything.
 */
void ttmon_cpu_gone(const struct ttmon_cpu *c, struct ttmon_cpu_proc *ret);

/* Of these, what was never told apart for want of room (class OTHER). */
void ttmon_cpu_other(const struct ttmon_cpu *c, struct ttmon_cpu_proc *ret);
/* Does a process of this tgid run, as far as is known? start_ns 0: any. */
bool ttmon_cpu_runs(const struct ttmon_cpu *c, uint32_t tgid, uint64_t start_ns);

#endif
