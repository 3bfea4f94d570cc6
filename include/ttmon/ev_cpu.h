/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ev_cpu.h: records about the use of CPUs, caches and memory bandwidth. Part of event.h, which
 * includes it.
 *
 * Scheduler switches are not sent one by one. Each CPU keeps a table for the current slot (1 ms). The
 * first switch in a later slot sends it together with the measurement that crosses the boundary:
 *
 *	slot:          S                          S+1         S+2
 *	        |begin ........ last|.................................to|
 *	         rows: earlier tasks  `who` ran in all of this; its counters were read at last and at to
 *
 * So the records of a CPU are a chain: begin of each is `to` of the one before, and a lost record is a
 * gap of known length. The kernel does not split measurements at slot boundaries;
 * daemon/core/cpu/cpu.c does it, with 128-bit products. If a slot has to be closed that the records of
 * a CPU do not reach, the daemon reads the CPU's current table from the mapped state (struct
 * ttmon_cpu_state) and adds it to the stream as CPU_OPEN.
 */
#ifndef TTMON_EV_CPU_H
#define TTMON_EV_CPU_H

/* Counters of a CPU. Append-only; the names are used in metrics and JSON. */
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

/* Class of what ran. Rows are for processes, not for threads. */
enum ttmon_cpu_class {
	TTMON_CPU_USER,	  /* a process */
	TTMON_CPU_KERNEL, /* a kernel thread */
	TTMON_CPU_IDLE,	  /* the idle task: tgid 0, start_ns 0 */
	TTMON_CPU_CLASS_MAX
};

/* Bits of ttmon_cpu_who.flags. */
#define TTMON_WHO_CTR_UNKNOWN (1 << 0) /* a counter could not be read: its value is missing, not zero */
#define TTMON_WHO_SCALED      (1 << 1) /* a counter only ran part of the time (multiplexed), and was scaled up */
#define TTMON_WHO_FLAGS	      (TTMON_WHO_CTR_UNKNOWN | TTMON_WHO_SCALED)

struct ttmon_cpu_who {
	/* start of the process (its leader), CLOCK_MONOTONIC: identifies it together with tgid; 0 for idle */
	__u64 start_ns;
	__u32 tgid;
	__u16 rmid; /* RMID that it ran under, 0: none */
	__u8 cls;   /* enum ttmon_cpu_class */
	__u8 flags; /* TTMON_WHO_* */
};

/*
 * What a process used of this CPU in the slot: one row of the table. Without counters the row ends
 * before ctr.
 */
struct ttmon_cpu_row {
	struct ttmon_cpu_who who;
	__u32 ns;	/* at most 1 ms */
	__u32 switches; /* number of times it left the CPU */
	__u64 ctr[TTMON_CTR_MAX];
};
#define TTMON_CPU_ROW_SHORT 24 /* bytes of a row without counters */
#define TTMON_CPU_ROW_FULL  56
#define TTMON_CPU_ROWS	    32 /* rows of a table; a full table is sent early, with `to` equal to `last` */

struct ttmon_cpu_table {
	__u64 begin_ns; /* the rows cover [begin, last), inside one slot: the sum of their ns is last - begin */
	__u64 last_ns;
	__u64 to_ns;		  /* `who` ran in [last, to); CPU_OPEN: 0, it is still running */
	struct ttmon_cpu_who who; /* its flags are about ctr */
	__u64 ctr[TTMON_CTR_MAX]; /* counts in [last, to); CPU_OPEN: 0 */
	__u16 nr_rows;		  /* <= TTMON_CPU_ROWS */
	__u8 row_size;		  /* TTMON_CPU_ROW_SHORT (no counters on this host: ctr is 0 and not valid) or _FULL */
	__u8 switched;		  /* 1: `who` left the CPU at `to`; 0: it went on (a tick, or the table was full) */
	__u32 pad;
};

/*
 * Sent when it is complete. Its time is that of the switch, and does not determine its slot: see
 * above.
 */
struct ttmon_ev_cpu_slot {
	struct ttmon_event h; /* cpu is the CPU it is about; tgid, tid: the thread that left it */
	struct ttmon_cpu_table t;
	/* t.nr_rows rows of t.row_size bytes follow */
};

enum ttmon_cpu_open_state {
	TTMON_CPU_OPEN_KNOWN,	/* t is the CPU's current table: valid until the next watermark at least */
	TTMON_CPU_OPEN_UNKNOWN, /* it could not be read: nothing is known after the CPU's last record */
	/* the CPU is not online: it has no time to account for, until its next record */
	TTMON_CPU_OPEN_OFFLINE,
	TTMON_CPU_OPEN_BEHIND, /* its ring is not waited for: earlier records may still come from it */
	TTMON_CPU_OPEN_STATE_MAX
};
/* A fact: read from the mapped state, after T0 (docs/ARCHITECTURE.md, the watermark). */
struct ttmon_ev_cpu_open {
	struct ttmon_event h;
	__u32 of_cpu;
	__u32 state;		  /* enum ttmon_cpu_open_state */
	struct ttmon_cpu_table t; /* only KNOWN; `who`: the task on the CPU */
				  /* rows */
};

/*
 * State of one CPU, an element of the mapped array cpu_states. BPF writes it on that CPU with
 * interrupts off, or in the tick's softirq; the daemon reads it under the sequence count: seq is made
 * odd BEFORE the clock is read, and even after the last store.
 */
struct ttmon_cpu_state {
	__u64 seq;
	__u64 slot_end_ns; /* end of the slot of rec's table */
	/*
	 * as it will be sent: begin, last, `who` (now on the CPU) and rows are current. begin 0: CPU not seen
	 * yet
	 */
	struct ttmon_ev_cpu_slot rec;
	__u8 rows[TTMON_CPU_ROWS * TTMON_CPU_ROW_FULL];
	__u64 ctr[TTMON_CTR_MAX];	/* last readings of the counters */
	__u64 enabled_ns;		/* time enabled of the first counter at that reading */
	__u64 waited_ns[TTMON_CTR_MAX]; /* for each counter: time that it was enabled and did not run */
	__u64 ctr_known;		/* 1: ctr has readings */
	__u64 switches;			/* total since load */
	__u64 ticks;			/* measurements by the timer or the module's tick */
	__u64 backwards;		/* times that the clock went back, which count as no time */
	__u64 read_fails;		/* failed readings of counters */
	__u64 drops;  /* tables that could not be sent: earlier reports about this CPU are not valid any more */
	__u64 unseen; /* switches hidden from tracers: the task that left was not the one that had come in */
	__u64 pad[1];
};

/* A process as the scheduler knows it: names for rows, even if nothing else of it is traced. */
enum ttmon_task_reason { TTMON_TASK_SEEN, TTMON_TASK_FORK, TTMON_TASK_EXEC, TTMON_TASK_EXIT, TTMON_TASK_REASON_MAX };
struct ttmon_ev_task {
	struct ttmon_event h; /* tgid: the process */
	__u64 start_ns;
	__u64 cgroup_id; /* cgroup v2 id, 0: not known */
	__u32 ppid;
	__u16 reason; /* enum ttmon_task_reason */
	__u8 cls;     /* enum ttmon_cpu_class */
	__u8 pad;
	/* name of the leader at that time (FORK: still the parent's name); NUL-terminated */
	char comm[TTMON_COMM_LEN];
};

/* Sources of RMIDs. Append-only. */
#define TTMON_RMID_BACKEND_TABLE(X)                                                \
	X(0, OFF, "off")                                                           \
	X(1, MODULE, "module")	   /* a kernel module assigns and reports them */  \
	X(2, RESCTRL, "resctrl")   /* monitoring groups of the kernel's resctrl */ \
	X(3, EMULATED, "emulated") /* numbers assigned by ttmond: ids for processes, no RDT */
enum ttmon_rmid_backend {
#define X(id, NAME, name) TTMON_RMID_##NAME = id,
	TTMON_RMID_BACKEND_TABLE(X)
#undef X
		TTMON_RMID_BACKEND_MAX,
	TTMON_RMID_AUTO = 255 /* only on the command line */
};

/* Valid ids are 1..max inclusive; 0 is no RMID. The ids of all backends are below this. */
#define TTMON_RMID_LIMIT 4096

enum ttmon_rmid_op {
	TTMON_RMID_ALLOC,
	TTMON_RMID_FREE,
	TTMON_RMID_EXISTING, /* from a dump: it was allocated earlier; when_ns is the time of the dump */
	TTMON_RMID_NONE,     /* no RMID was free for this process: rmid is 0 */
	TTMON_RMID_OP_MAX
};

/* RMID (from BPF, at its position in time) and RMID_SET (a fact of the resctrl backend). */
struct ttmon_ev_rmid {
	struct ttmon_event h; /* tgid: the owner; FREE: 0 if the source does not report it */
	/* time from the source (the module takes it inside its lock); may be slightly before h.ts_ns */
	__u64 when_ns;
	__u64 start_ns; /* start of the process, 0: not known */
	__u32 rmid;	/* < TTMON_RMID_LIMIT */
	__u32 op;	/* enum ttmon_rmid_op */
	char comm[TTMON_COMM_LEN];
};

/* State of one RDT value. */
enum ttmon_rdt_state {
	TTMON_RDT_OK,
	TTMON_RDT_UNAVAILABLE, /* the hardware had no value this time */
	TTMON_RDT_ERROR,
	TTMON_RDT_UNASSIGNED,  /* AMD ABMC: no counter is assigned */
	TTMON_RDT_UNSUPPORTED, /* this host does not support it */
	TTMON_RDT_STATE_MAX
};
enum ttmon_rdt_value { TTMON_RDT_OCCUPANCY, TTMON_RDT_TOTAL, TTMON_RDT_LOCAL, TTMON_RDT_VALUES };

/*
 * RDT (from BPF) and RDT_READ (a fact): one reading of one RMID in one L3 domain. Its time does not
 * determine its slot: it is joined by interval.
 */
struct ttmon_ev_rdt {
	struct ttmon_event h;
	__u64 when_ns; /* time of the reading */
	__u32 rmid;
	__u16 domain;		      /* L3 domain, numbered as the source does */
	__u8 state[TTMON_RDT_VALUES]; /* enum ttmon_rdt_state */
	__u8 pad[7];
	/* raw counts: multiplied by rmid_info.scale they are bytes; totals wrap at rmid_info.width bits */
	__u64 value[TTMON_RDT_VALUES];
};

/* Sent once at the start, and again when it changes. */
struct ttmon_ev_rmid_info {
	struct ttmon_event h;
	__u32 backend; /* enum ttmon_rmid_backend */
	__u32 max_rmid;
	__u64 scale; /* bytes for each count, >= 1; 1 if values are bytes already */
	__u32 width; /* bits of the bandwidth counters, 24..64; 64: they do not wrap */
	__u32 flags; /* TTMON_RMID_HAS_* */
};
#define TTMON_RMID_HAS_OCCUPANCY (1 << 0)
#define TTMON_RMID_HAS_TOTAL	 (1 << 1)
#define TTMON_RMID_HAS_LOCAL	 (1 << 2)
#define TTMON_RMID_HAS_HW_IDS \
	(1 << 3) /* resctrl: ids are those of the hardware, as in task_struct.rmid; otherwise they only name groups */

#endif
