/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ev_cpu.h: records about who used the CPUs, caches and memory bandwidth. Part of event.h, which
 * includes it.
 *
 * The scheduler's switches are not sent one by one. Each CPU keeps a table of the slot (1 ms) it is
 * in; the first switch in a later slot sends it together with the measurement that crosses the
 * boundary:
 *
 *	slot:          S                          S+1         S+2
 *	        |begin ........ last|.................................to|
 *	         rows: whoever left  `who` ran all of this; its counters were read at last and at to
 *
 * So the records of a CPU are a chain: begin of each is `to` of the one before, and a lost record is a
 * gap of known length. Nothing is split in the kernel; core/cpu/cpu.c does it, with 128-bit products.
 * What a CPU is in the middle of is read by the daemon from the mapped state (struct ttmon_cpu_state)
 * and goes into the stream as CPU_OPEN when a slot is to be closed that its records do not reach.
 */
#ifndef TTMON_EV_CPU_H
#define TTMON_EV_CPU_H

/* Counters of a CPU. Append-only; names are those of metrics and JSON. */
#define TTMON_CTR_TABLE(X)                 \
	X(0, CYCLES, "cycles")             \
	X(1, INSTRUCTIONS, "instructions") \
	X(2, LLC_MISSES, "llc_misses")     \
	X(3, LLC_REFS, "llc_references")
enum ttmon_ctr {
#define X(id, NAME, name) TTMON_CTR_##NAME = id,
	TTMON_CTR_TABLE(X)
#undef X
		TTMON_CTR_MAX
};

/* What ran. Processes are told apart, threads are not. */
enum ttmon_cpu_class {
	TTMON_CPU_USER,	  /* a process */
	TTMON_CPU_KERNEL, /* a kernel thread */
	TTMON_CPU_IDLE,	  /* the idle task: tgid 0, start_ns 0 */
	TTMON_CPU_CLASS_MAX
};

/* Bits of ttmon_cpu_who.flags. */
#define TTMON_WHO_CTR_UNKNOWN (1 << 0) /* a counter could not be read: what it would have told is missing, not zero */
#define TTMON_WHO_SCALED      (1 << 1) /* a counter ran part of the time only (multiplexed) and was scaled up */
#define TTMON_WHO_FLAGS	      (TTMON_WHO_CTR_UNKNOWN | TTMON_WHO_SCALED)

struct ttmon_cpu_who {
	__u64 start_ns; /* of the process (its leader), CLOCK_MONOTONIC: with tgid its identity; 0 for idle */
	__u32 tgid;
	__u16 rmid; /* that it ran under, 0: none */
	__u8 cls;   /* enum ttmon_cpu_class */
	__u8 flags; /* TTMON_WHO_* */
};

/*
 * What a process used of this CPU in the slot: one row of the table. Without counters a row ends
 * before ctr.
 */
struct ttmon_cpu_row {
	struct ttmon_cpu_who who;
	__u32 ns;	/* at most 1 ms */
	__u32 switches; /* times it left the CPU */
	__u64 ctr[TTMON_CTR_MAX];
};
#define TTMON_CPU_ROW_SHORT 24 /* bytes of a row without counters */
#define TTMON_CPU_ROW_FULL  56
#define TTMON_CPU_ROWS	    32 /* of a table; a full one is sent early: its `to` is its `last` */

struct ttmon_cpu_table {
	__u64 begin_ns; /* the rows cover [begin, last), inside one slot: the sum of their ns is last - begin */
	__u64 last_ns;
	__u64 to_ns;		  /* who ran [last, to); CPU_OPEN: 0, it still runs */
	struct ttmon_cpu_who who; /* flags are about ctr */
	__u64 ctr[TTMON_CTR_MAX]; /* of [last, to); CPU_OPEN: 0 */
	__u16 nr_rows;		  /* <= TTMON_CPU_ROWS */
	__u8 row_size; /* TTMON_CPU_ROW_SHORT (no counters on this host: ctr is 0 and means nothing) or _FULL */
	__u8 switched; /* 1: `who` left the CPU at to; 0: it went on (a tick, or the table was full) */
	__u32 pad;
};

/*
 * Sent when it is complete. Not placed in slots by its time, which is that of the switch: see above.
 */
struct ttmon_ev_cpu_slot {
	struct ttmon_event h; /* cpu is the CPU it is about; tgid, tid: who left it */
	struct ttmon_cpu_table t;
	/* t.nr_rows rows of t.row_size bytes follow */
};

enum ttmon_cpu_open_state {
	TTMON_CPU_OPEN_KNOWN,	/* t is what the CPU is in the middle of: true until the next watermark at least */
	TTMON_CPU_OPEN_UNKNOWN, /* it could not be read: nothing is known from the CPU's last record on */
	/* the CPU is not online: it has no time to be told from here on, until its next record */
	TTMON_CPU_OPEN_OFFLINE,
	TTMON_CPU_OPEN_BEHIND, /* its ring is not waited for: records of before this may yet come out of it */
	TTMON_CPU_OPEN_STATE_MAX
};
/* The fact: read from the mapped state, after T0 (docs/ARCHITECTURE.md, the watermark). */
struct ttmon_ev_cpu_open {
	struct ttmon_event h;
	__u32 of_cpu;
	__u32 state;		  /* enum ttmon_cpu_open_state */
	struct ttmon_cpu_table t; /* KNOWN only; who: the task on the CPU */
				  /* rows */
};

/*
 * State of one CPU, an element of the mapped array cpu_states. Written by BPF on that CPU with
 * interrupts off, or by the tick's softirq; read by the daemon under the sequence count: seq is made
 * odd BEFORE the clock is read, even after the last store.
 */
struct ttmon_cpu_state {
	__u64 seq;
	__u64 slot_end_ns; /* end of the slot that rec's table is of */
	struct ttmon_ev_cpu_slot
		rec; /* as it will be sent: begin, last, who (now on the CPU), rows are current. begin 0: CPU not seen yet */
	__u8 rows[TTMON_CPU_ROWS * TTMON_CPU_ROW_FULL];
	__u64 ctr[TTMON_CTR_MAX];	/* last readings */
	__u64 enabled_ns;		/* of the first counter, at that reading */
	__u64 waited_ns[TTMON_CTR_MAX]; /* of each, how long it was enabled and did not run */
	__u64 ctr_known;		/* 1: ctr holds readings */
	__u64 switches;			/* all, since load */
	__u64 ticks;			/* measurements by timer or by the module's tick */
	__u64 backwards;		/* the clock went back: taken as no time */
	__u64 read_fails;		/* counters */
	__u64 drops;  /* tables that could not be sent: what was told of this CPU before is no longer true */
	__u64 unseen; /* switches that the kernel kept from tracers: found by who leaves not being who came in */
	__u64 pad[1];
};

/*
 * A process as the scheduler knows it: names for rows, whether or not anything else of it is traced.
 */
enum ttmon_task_reason { TTMON_TASK_SEEN, TTMON_TASK_FORK, TTMON_TASK_EXEC, TTMON_TASK_EXIT, TTMON_TASK_REASON_MAX };
struct ttmon_ev_task {
	struct ttmon_event h; /* tgid: the process it is about */
	__u64 start_ns;
	__u64 cgroup_id; /* cgroup v2 id, 0 unknown */
	__u32 ppid;
	__u16 reason; /* enum ttmon_task_reason */
	__u8 cls;     /* enum ttmon_cpu_class */
	__u8 pad;
	char comm[TTMON_COMM_LEN]; /* of the leader at that time (FORK: still the parent's name); NUL-terminated */
};

/* Where RMIDs come from. Append-only. */
#define TTMON_RMID_BACKEND_TABLE(X)                                                \
	X(0, OFF, "off")                                                           \
	X(1, MODULE, "module")	   /* a kernel module assigns them and tells */    \
	X(2, RESCTRL, "resctrl")   /* monitoring groups of the kernel's resctrl */ \
	X(3, EMULATED, "emulated") /* numbers of our own: names for processes, no RDT */
enum ttmon_rmid_backend {
#define X(id, NAME, name) TTMON_RMID_##NAME = id,
	TTMON_RMID_BACKEND_TABLE(X)
#undef X
		TTMON_RMID_BACKEND_MAX,
	TTMON_RMID_AUTO = 255 /* on the command line alone */
};

/* Valid ids are 1..max inclusive; 0 is no RMID. Ids of any backend stay below this. */
#define TTMON_RMID_LIMIT 4096

enum ttmon_rmid_op {
	TTMON_RMID_ALLOC,
	TTMON_RMID_FREE,
	TTMON_RMID_EXISTING, /* a dump: it was allocated before; when_ns is the time of the dump */
	TTMON_RMID_NONE,     /* no RMID was free for this process: rmid is 0 */
	TTMON_RMID_OP_MAX
};

/* RMID (from BPF, at its place in time) and RMID_SET (fact of the resctrl backend). */
struct ttmon_ev_rmid {
	struct ttmon_event h; /* tgid: the owner; FREE: 0 where the source does not say */
	__u64 when_ns;	/* as the source says (the module stamps inside its lock); may be a little before h.ts_ns */
	__u64 start_ns; /* of the process, 0: the source does not know */
	__u32 rmid;	/* < TTMON_RMID_LIMIT */
	__u32 op;	/* enum ttmon_rmid_op */
	char comm[TTMON_COMM_LEN];
};

/* What became of one RDT value. */
enum ttmon_rdt_state {
	TTMON_RDT_OK,
	TTMON_RDT_UNAVAILABLE, /* the hardware had none this time */
	TTMON_RDT_ERROR,
	TTMON_RDT_UNASSIGNED,  /* AMD ABMC: no counter is assigned to it */
	TTMON_RDT_UNSUPPORTED, /* this host never has it */
	TTMON_RDT_STATE_MAX
};
enum ttmon_rdt_value { TTMON_RDT_OCCUPANCY, TTMON_RDT_TOTAL, TTMON_RDT_LOCAL, TTMON_RDT_VALUES };

/*
 * RDT (from BPF) and RDT_READ (fact): one reading of one RMID in one L3 domain. Not placed in slots by
 * its time: joined by interval.
 */
struct ttmon_ev_rdt {
	struct ttmon_event h;
	__u64 when_ns; /* time of the reading */
	__u32 rmid;
	__u16 domain;		      /* L3 domain as the source numbers it */
	__u8 state[TTMON_RDT_VALUES]; /* enum ttmon_rdt_state */
	__u8 pad[7];
	__u64 value
		[TTMON_RDT_VALUES]; /* raw counts: times rmid_info.scale are bytes; totals wrap at rmid_info.width bits */
};

/* Told once at start, and again when it changes. */
struct ttmon_ev_rmid_info {
	struct ttmon_event h;
	__u32 backend; /* enum ttmon_rmid_backend */
	__u32 max_rmid;
	__u64 scale; /* bytes a count, >= 1; 1 where values are bytes already */
	__u32 width; /* bits of the bandwidth counters, 24..64; 64: they do not wrap */
	__u32 flags; /* TTMON_RMID_HAS_* */
};
#define TTMON_RMID_HAS_OCCUPANCY (1 << 0)
#define TTMON_RMID_HAS_TOTAL	 (1 << 1)
#define TTMON_RMID_HAS_LOCAL	 (1 << 2)
#define TTMON_RMID_HAS_HW_IDS \
	(1 << 3) /* resctrl: ids are the hardware's, as in task_struct.rmid; else names of groups and nothing more */

#endif
