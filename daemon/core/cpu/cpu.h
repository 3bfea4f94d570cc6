/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu.h: CPU time by process: records of the scheduler go in, rows of closed slots come out. Pure, hot
 * thread.
 *
 * The records of a CPU are a chain of intervals (ev_cpu.h), put at once into the open slots they are
 * of; one that spans slots is split in proportion to time with 128-bit products, the remainder to the
 * last piece, so that sums are conserved. When a slot closes, a CPU whose chain does not reach its end
 * is extended by what CPU_OPEN said; time that neither covers is reported as missing, never as zero.
 *
 *	sum over rows of cpu_ns + missing_ns = CPUs x 1 ms	(each full slot, exactly)
 *	accounted by records = put into slots + late + unplaced	(ttmon_cpu_totals: ns and counters)
 *
 * Time of a slot that has closed is never added again: what comes too late is counted apart (late_ns).
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
	uint32_t max_procs; /* entries at a time, 0: 65536; further processes are summed up in one row (class OTHER) */
	/* Called before an entry is removed, with its last figures; may be NULL. */
	void (*leaving)(void *ctx, const struct ttmon_cpu_proc *p);
	void *ctx;
};

/* Why time or counters are not in the slot that they belong to. All since the start. */
struct ttmon_cpu_totals {
	/* slots closed with CPU time in them (HAS_CPU) where every CPU's chain had begun before the slot */
	uint64_t slots;
	uint64_t exact;	     /* of these: user + kernel + idle is cpus * 1 ms */
	uint64_t worst_ns;   /* largest difference of one slot in ns */
	uint64_t worst_slot; /* number of that slot */
	uint64_t user_ns, kernel_ns, idle_ns, missing_ns;
	uint64_t told_ns; /* ns accounted by records (and by extension until the record comes) */
	uint64_t late_ns; /* ns accounted for slots that had closed with it missing */
			  /*
		 * rows that contradict their table, or a record that contradicts the extension: a switch was missed,
		 * or a bug
		 */
	uint64_t mismatch_ns;
	uint64_t ctr[TTMON_CTR_MAX], late_ctr[TTMON_CTR_MAX];
	uint64_t extended; /* CPU slots closed by extension, without a record */
	uint64_t gaps;	   /* chains that were broken because records were lost */
	uint64_t overlaps; /* records that begin before the end of the one before, and were not expected to */
	uint64_t procs, procs_dropped; /* entries now; processes without an entry for want of room */
	uint64_t records,
		/* CPU_SLOT records taken; CPU_SLOT and CPU_OPEN records that were invalid or found no room */
		records_dropped;
	uint64_t now_ns;    /* end of the slot that closed last: the sums are as of this time */
	uint32_t cpus;	    /* CPUs online as far as known */
	uint32_t cpus_peak; /* most CPUs seen in a slot */
	bool has_ctr;
};

/* Sums of a process since it was first seen. */
struct ttmon_cpu_proc {
	uint64_t start_ns, end_ns; /* end_ns 0: it still runs */
	uint64_t cgroup_id;
	uint32_t tgid, ppid;
	uint16_t rmid;
	uint8_t cls;   /* enum ttmon_row_class */
	uint8_t flags; /* TTMON_ROW_* flags of all its rows */
	char comm[TTMON_COMM_LEN];
	uint32_t idx; /* number of its entry; reused when the entry is gone */
	uint64_t cpu_ns, switches;
	uint64_t ctr[TTMON_CTR_MAX];
	uint64_t llc_bytes, mbm_total, mbm_local, rdt_ns;
	uint64_t copies, copy_bytes;
	uint64_t pinned_bytes; /* bytes pinned now */
};

/*
 * A piece of RDT readings that belongs to an interval (core/rmid/rmid.h). tgid 0: no process owned the
 * RMID.
 */
struct ttmon_rdt_piece {
	uint32_t tgid, rmid;
	/*
	 * start of the process; 0: the source does not know it, the process that has the tgid at that time is
	 * meant
	 */
	uint64_t start_ns;
	uint64_t ns;	       /* length of the interval in ns */
	uint64_t total, local; /* bytes */
	uint64_t occupancy;    /* bytes now, summed over domains; valid with has_occupancy */
	bool has_occupancy;
	bool unknown; /* a value was missing from the reading */
};

/*
 * The time of a lifecycle record: the source's own stamp, which is a little before the record's. A
 * stamp further away is no time; then the record's is used.
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
/* Adds to the slot that is being closed. */
void ttmon_cpu_copy(struct ttmon_cpu *c, uint32_t tgid, uint64_t bytes);
void ttmon_cpu_rdt(struct ttmon_cpu *c, const struct ttmon_rdt_piece *piece);
/*
 * Closes slot `no`. Slots close in order; only jumps (suspend) skip slots. forced: closed without the
 * watermark having passed, so that nothing may be extended. Fills the CPU part of *slot and sets *rows
 * (valid until the next call), most CPU time first, idle last; returns the number of rows. A process
 * has a row if it did anything in the slot; pinned memory alone makes no row.
 */
size_t ttmon_cpu_close(struct ttmon_cpu *c, uint64_t no, bool forced, struct ttmon_slot *slot,
		       const struct ttmon_slot_row **rows);
/*
 * True if a ring was not waited for, so that records of before end_ns may still come, as far as
 * CPU_OPEN shows.
 */
bool ttmon_cpu_behind(const struct ttmon_cpu *c, uint64_t end_ns);
/* The number of bytes that a process has pinned has changed. */
void ttmon_cpu_pinned(struct ttmon_cpu *c, uint32_t tgid, uint64_t bytes);

void ttmon_cpu_get_totals(const struct ttmon_cpu *c, struct ttmon_cpu_totals *ret);
/*
 * Calls fn for every entry, in no order. Entries of ended processes stay for about two seconds of
 * stream time.
 */
void ttmon_cpu_each(const struct ttmon_cpu *c, void (*fn)(void *ctx, const struct ttmon_cpu_proc *p), void *ctx);
/*
 * Sums of processes without an entry: those removed, and those that never had one. Together with
 * ttmon_cpu_each() this is everything.
 */
void ttmon_cpu_gone(const struct ttmon_cpu *c, struct ttmon_cpu_proc *ret);

/* Of these sums, those of processes that never had an entry for want of room (class OTHER). */
void ttmon_cpu_other(const struct ttmon_cpu *c, struct ttmon_cpu_proc *ret);
/* True if a process of this tgid runs, as far as is known. start_ns 0: any start. */
bool ttmon_cpu_runs(const struct ttmon_cpu *c, uint32_t tgid, uint64_t start_ns);

#endif
