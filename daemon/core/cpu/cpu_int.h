/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu_int.h: shared by the files of core/cpu. cpu.c has the interface and closes slots, chain.c takes
 * the records of a CPU, procs.c keeps the processes, rows.c the rows of the slot that is being closed.
 * See cpu.c for the rules.
 */
#ifndef TTMON_CORE_CPU_INT_H
#define TTMON_CORE_CPU_INT_H

#include "daemon/core/cpu/cpu.h"
#include "lib/base/hmap.h"

#define CPU_SLOT_NS NSEC_PER_MS
#define NO_PROC	    UINT32_MAX
#define CPU_RECENT  16

/* Fixed entries of the table of processes. */
enum { PROC_IDLE, PROC_OTHER, PROC_UNASSIGNED, PROC_FIXED };

struct cpu_proc {
	struct ttmon_cpu_proc pub;
	uint64_t heard_ns; /* stream time of its last activity */
	uint64_t leave_ns; /* ended: when its entry is removed */
	uint64_t row_gen;  /* row is valid for the slot whose gen is this */
	uint64_t rmid_gen; /* rmid_freed is valid for the slot whose gen is this */
	uint64_t rmid_ns;  /* time of the record that gave its RMID; 0: none */
	uint32_t row;
	uint32_t older;	     /* entry with the same tgid that started before this one */
	uint32_t prev, next; /* list of ended entries; next: also of free entries */
	bool used, ended, rmid_freed;
};

struct cpu_procs {
	struct cpu_proc *v;
	uint32_t nr, cap, max; /* entries ever used; allocated; allowed, with the fixed ones */
	uint32_t live;	       /* entries in use, without the fixed ones */
	uint32_t free;
	uint32_t ended_first, ended_last; /* in the order in which they are removed */
	uint32_t hand;
	struct ttmon_hmap by_tgid; /* newest entry of each tgid */
	/* cache by tgid: a process that runs now likely runs in the next slot too */
	uint32_t recent[CPU_RECENT];
	/* entry, for sources that do not say which process an RMID is freed from */
	uint32_t rmid_owner[TTMON_RMID_LIMIT];
	uint64_t rmid_ns[TTMON_RMID_LIMIT]; /* time of the newest record of that RMID; 0: none */
	struct ttmon_cpu_proc gone;
};

struct cpu_row {
	struct ttmon_slot_row r;
	uint32_t proc;
};

struct cpu_row_key {
	uint64_t key; /* sort key, smallest first: rank, then most CPU time */
	uint32_t row;
};

/*
 * Rows of the slot that is being closed, and what transfers and readings add to it before it closes.
 */
struct cpu_rows {
	struct cpu_row *v;
	struct cpu_row_key *keys;
	struct ttmon_slot_row *out;
	uint32_t n, cap;
	uint64_t gen; /* number of the slot, counted from 1 */
};

/* The end of a record, split over slots as they close: the task that ran in [last_ns, to_ns). */
struct cpu_cross {
	struct ttmon_cpu_who who;
	uint64_t last_ns, to_ns;
	uint64_t given_ns; /* given[] is valid up to here */
	__u64 ctr[TTMON_CTR_MAX], given[TTMON_CTR_MAX];
	bool active, switched, has_ctr;
};

union cpu_open {
	struct ttmon_cpu_table t;
	uint8_t bytes[sizeof(struct ttmon_cpu_table) + TTMON_CPU_ROWS * TTMON_CPU_ROW_FULL];
};

struct cpu_chain {
	uint64_t begin_ns; /* begin of the chain: from here on the CPU's time is accounted */
	uint64_t known_ns; /* accounted up to here, holes apart: nothing before this is taken again */
	uint64_t next_ns;  /* where the next record begins if none is lost */
	uint64_t off_ns;   /* offline since this time */
	/*
	 * A hole left by a CPU_OPEN that was ahead of the CPU's ring. Of the hole, time up to hole_known_ns is
	 * accounted, and so are its rows (hole_applied).
	 */
	uint64_t hole_ns, hole_end_ns, hole_known_ns;
	bool hole_applied;
	bool begun, offline;
	bool in_hand;	 /* open says what the CPU is doing now */
	bool applied;	 /* the rows of the record that begins at next_ns were put into a slot as CPU_OPEN said */
	bool open_taken; /* and open is the CPU_OPEN that said them */
	struct cpu_cross cross;
	uint8_t *queue; /* records (struct ttmon_cpu_table and rows) of slots that have not closed */
	size_t head, tail, cap;
	union cpu_open open;
	union cpu_open told; /* the CPU_OPEN taken last; open may be a later one by the time the record comes */
};

/* The slot that is being closed. */
struct cpu_closing {
	uint64_t start_ns, end_ns;
	/* of the CPU at hand: ns put into the slot; ns accounted and missing together */
	uint64_t covered_ns, expected_ns;
	uint64_t ns[TTMON_CPU_CLASS_MAX];
};

struct ttmon_cpu {
	uint32_t nr_cpus;
	void (*leaving)(void *ctx, const struct ttmon_cpu_proc *p);
	void *ctx;
	bool started;
	uint64_t first_ns;  /* start of the first slot that closed: time before it is not accounted */
	uint64_t next_no;   /* number of the slot to be closed next */
	uint64_t now_ns;    /* end of the slot that closed last */
	uint64_t behind_ns; /* records of before this may still come; 0: none */
	struct cpu_chain *chains;
	struct cpu_closing at;
	struct cpu_procs procs;
	struct cpu_rows rows;
	struct ttmon_cpu_totals totals;
};

/*
 * What a process did. late_ns: the part of ns in slots that have closed; late_ctr: likewise of ctr.
 * NULL: no counters.
 */
struct cpu_piece {
	uint64_t ns, late_ns;
	const __u64 *ctr, *late_ctr;
	uint32_t switches;
	uint8_t flags; /* TTMON_ROW_* */
};

static inline uint64_t later_of(uint64_t a, uint64_t b)
{
	return ttmon_before(a, b) ? b : a;
}

static inline uint64_t earlier_of(uint64_t a, uint64_t b)
{
	return ttmon_before(a, b) ? a : b;
}

/* chain.c */
/*
 * Puts what the CPU did before the end of c->at into its rows, and sets c->at.covered_ns and
 * expected_ns.
 */
void ttmon_cpu_chain_close(struct ttmon_cpu *c, struct cpu_chain *ch, bool forced);

/*
 * procs.c: entries are referred to by number, since the table moves; PROC_OTHER where there is no
 * room.
 */
int ttmon_cpu_procs_init(struct cpu_procs *ps, uint32_t max) _must_check;
void ttmon_cpu_procs_fini(struct cpu_procs *ps);
uint32_t ttmon_cpu_procs_get(struct ttmon_cpu *c, uint32_t tgid, uint64_t start_ns, uint8_t cls);
/* Stream time has advanced to c->now_ns: removes the entries that are due. */
void ttmon_cpu_procs_tick(struct ttmon_cpu *c);
/*
 * The scheduler's record has the RMID: this is better than the RMID events, unless the RMID was freed
 * in this slot.
 */
void ttmon_cpu_procs_ran_under(struct ttmon_cpu *c, uint32_t idx, uint16_t rmid);
uint16_t ttmon_cpu_procs_rmid(const struct ttmon_cpu *c, const struct cpu_proc *p);
void ttmon_cpu_procs_sum(struct ttmon_cpu_proc *to, const struct ttmon_cpu_proc *from);

/* rows.c */
int ttmon_cpu_rows_init(struct cpu_rows *rs) _must_check;
void ttmon_cpu_rows_fini(struct cpu_rows *rs);
struct ttmon_slot_row *ttmon_cpu_rows_get(struct ttmon_cpu *c, uint32_t proc);
void ttmon_cpu_rows_put(struct ttmon_cpu *c, const struct ttmon_cpu_who *who, const struct cpu_piece *piece);
/*
 * Sorts the slot's rows and adds them to their processes; the next slot begins without rows. Returns
 * the number of rows.
 */
size_t ttmon_cpu_rows_close(struct ttmon_cpu *c, bool *rdt, const struct ttmon_slot_row **ret);

#endif
