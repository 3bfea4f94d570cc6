/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ttmon_rmid.h: what the parts of the module know of each other.
 *
 * main.c      parameters, what the machine has, /proc/ttmon_rmid, load and unload
 * table.c     which process holds which RMID; the scheduler's tracepoints
 * tick.c      what each CPU runs under (PQR_ASSOC), the tick, the readings of each L3 domain
 * selftest.c  the allocator against the script that the host and BPF run too
 */
#ifndef TTMON_RMID_H
#define TTMON_RMID_H

#include <linux/sched.h>
#include <linux/types.h>
#include <ttmon/rmid_alloc.h>

#define TTMON_RMID_VERSION "1.0"

/* Bits of ttmon_rmid_hw.events: bit N is event N+1 of IA32_QM_EVTSEL and of CPUID 0xF.1:EDX. */
#define TTMON_RMID_OCCUPANCY BIT(0)
#define TTMON_RMID_TOTAL     BIT(1)
#define TTMON_RMID_LOCAL     BIT(2)

/* Set while the module loads, read-only after. */
struct ttmon_rmid_hw {
	bool hardware; /* MSRs are used */
	u32 max_rmid;
	u32 scale; /* bytes a count */
	u32 width; /* bits of the bandwidth counters */
	u32 events;
	u32 fake;    /* parameter fake_rdt */
	u32 batch;   /* RMIDs read a tick and domain */
	u64 tick_ns; /* 0: none */
	bool idle_tick;
};
extern struct ttmon_rmid_hw ttmon_rmid_hw;

/* table.c */
struct ttmon_rmid_counts {
	u32 in_use;
	u64 failed, retried, double_frees;
};
int ttmon_rmid_table_start(void);
void ttmon_rmid_table_stop(void);  /* no more tracepoints of the scheduler */
void ttmon_rmid_table_clear(void); /* frees what is held; after the CPUs have released them */
void ttmon_rmid_table_dump(void);
void ttmon_rmid_table_counts(struct ttmon_rmid_counts *ret);
/*
 * The RMID this task runs under; one is given to its process if it has none and one is free.
 * Interrupts or preemption are off.
 */
u32 ttmon_rmid_of(struct task_struct *task);
/*
 * The first RMID in use above this one, around the end; 0: none is. Without the lock: it may just have
 * been freed.
 */
u32 ttmon_rmid_next_used(u32 after);

/* tick.c */
int ttmon_rmid_cpus_start(void);
void ttmon_rmid_cpus_stop(void);
unsigned int ttmon_rmid_domains(void);
/* This CPU switches to next. Under the run queue's lock. */
void ttmon_rmid_cpu_switch(struct task_struct *next);

/* selftest.c: steps that were right; *failed_at: the first that was not, counted from 1, 0: none. */
int ttmon_rmid_selftest(u32 *steps, u32 *failed_at);

#endif
