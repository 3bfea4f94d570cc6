/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * slot.h: a closed slot: one millisecond of the host, with the use of each process. The daemon, the
 * segment /dev/shm/ttmon.v1 (shm.h) and readers of a --slots-out file use the same structures. C11 and
 * C++. Sizes are in bytes, times in ns of CLOCK_MONOTONIC.
 */
#ifndef TTMON_SLOT_H
#define TTMON_SLOT_H

#include <linux/types.h>

#include <ttmon/family.h>

/* Bits of ttmon_slot.flags. */
#define TTMON_SLOT_FORCED    (1 << 0) /* closed because the window moved on: events may have come too late */
#define TTMON_SLOT_HAS_CPU   (1 << 1) /* CPU time was measured in it */
#define TTMON_SLOT_HAS_CTR   (1 << 2) /* and counters */
#define TTMON_SLOT_HAS_RDT   (1 << 3) /* some row has readings of RDT */
#define TTMON_SLOT_MISSING   (1 << 4) /* missing_ns > 0 */
#define TTMON_SLOT_ROWS_CUT  (1 << 5) /* the last row, class OTHER, is the sum of those that did not fit */
#define TTMON_SLOT_HAS_KNOWN (1 << 6) /* `known` is valid; without it nothing is known about families */

struct ttmon_slot {
	__u64 no; /* covers [no, no + 1) ms */
	__u32 flags;
	__u32 cpus; /* CPUs online; 0: CPU time is not measured */
	/*
	 * user_ns + kernel_ns + idle_ns + missing_ns = cpus * 1 ms, exactly, unless a CPU went on- or offline
	 */
	__u64 user_ns;
	__u64 kernel_ns; /* time of kernel threads */
	__u64 idle_ns;
	__u64 missing_ns;  /* CPU time without a report: records were lost or not available in time */
	__u32 events;	   /* of the stream */
	__u32 late;	   /* of these, older than the slot */
	__u32 dropped;	   /* dropped for lack of room */
	__u32 kernel_lost; /* records that the kernel lost up to this slot, since the last one */
	__u32 allocs, frees;
	__u64 copies, copy_bytes;
	__u64 pinned_pages; /* host, at the slot's end */
	__u64 tt_dispatches;
	__u64 tt_busy_ns; /* of all Tenstorrent chips */
	__u32 nr_rows;
	/*
	 * 1 << enum ttmon_family (family.h): it was on for every process during the whole slot, and none of
	 * its events were lost
	 */
	__u32 known;
};

/*
 * The families that figures depend on. If one of them is not in `known`, the figure is a lower bound,
 * and 0 means not known. PINNED is an amount in use, not a count of events: then it is not known at
 * all.
 */
#define TTMON_SLOT_NEED_ALLOCS (TTMON_FAMILY_BIT(ALLOC) | TTMON_FAMILY_BIT(TENSTORRENT)) /* and frees */
#define TTMON_SLOT_NEED_COPIES TTMON_FAMILY_BIT(TRANSFER) /* and their bytes, of rows too */
#define TTMON_SLOT_NEED_PINNED (TTMON_FAMILY_BIT(ALLOC) | TTMON_FAMILY_BIT(TENSTORRENT)) /* of rows too */
#define TTMON_SLOT_NEED_TT     (TTMON_FAMILY_BIT(TENSTORRENT) | TTMON_FAMILY_BIT(DISPATCH))

static inline int ttmon_slot_knows(const struct ttmon_slot *slot, __u32 need)
{
	return !(slot->flags & TTMON_SLOT_HAS_KNOWN) || (slot->known & need) == need;
}

enum ttmon_row_class {
	TTMON_ROW_USER,
	TTMON_ROW_KERNEL,     /* a kernel thread */
	TTMON_ROW_IDLE,	      /* one row for all CPUs */
	TTMON_ROW_UNASSIGNED, /* readings of RMIDs that no process owned at the time */
	TTMON_ROW_OTHER,      /* sum of the rows that did not fit */
	TTMON_ROW_CLASS_MAX
};

/* Bits of ttmon_slot_row.flags. */
#define TTMON_ROW_CTR_UNKNOWN \
	(1 << 0) /* counters are incomplete: a reading failed, or the time was extended without one */
#define TTMON_ROW_CTR_SCALED  (1 << 1) /* multiplexed counters, scaled */
#define TTMON_ROW_CTR_LATE    (1 << 2) /* includes counts of earlier slots that came after those were closed */
#define TTMON_ROW_RDT_UNKNOWN (1 << 3) /* a reading failed: the values are lower bounds or old */
#define TTMON_ROW_LLC_VALID   (1 << 4) /* llc_bytes is a reading */
#define TTMON_ROW_ENDED	      (1 << 5) /* the process ended in or before this slot */

struct ttmon_slot_row {
	__u64 start_ns; /* identifies the process together with tgid */
	__u32 tgid;
	__u16 rmid;		    /* 0: none */
	__u8 cls;		    /* enum ttmon_row_class */
	__u8 flags;		    /* TTMON_ROW_* */
	char comm[16];		    /* name at the slot's end, NUL-terminated; "": not known */
	__u64 cpu_ns;		    /* on all CPUs: may exceed 1 ms */
	__u64 ctr[4];		    /* cycles, instructions, LLC misses, LLC references (enum ttmon_ctr in event.h) */
	__u64 llc_bytes;	    /* bytes of last-level cache in use: last reading, sum over L3 domains */
	__u64 mbm_total, mbm_local; /* bytes of memory traffic */
	/* the time in which these bytes moved: more than 1 ms if readings are less frequent than slots */
	__u64 rdt_ns;
	__u64 copies, copy_bytes; /* transfers of CUDA programs */
	__u64 pinned_bytes;	  /* at the slot's end */
	__u32 switches;		  /* number of times that one of its threads left a CPU */
	__u32 pad;
};

#endif
