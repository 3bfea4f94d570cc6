/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sched.bpf.h: maps and configuration that the programs of the scheduler (sched.bpf.c) and the
 * programs about RMIDs (rmid.bpf.c) share.
 */
#ifndef TTMON_SCHED_BPF_H
#define TTMON_SCHED_BPF_H

#include "emit.bpf.h"

struct cpu_states_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set to the number of CPUs before load */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct ttmon_cpu_state);
};

extern struct cpu_states_map cpu_states SEC(".maps");
extern const volatile u32 cfg_counters;	 /* 1: cpu_counters holds the counters of each CPU */
extern const volatile u32 cfg_cpu_timer; /* 1: a timer closes slots of busy CPUs (bpf_timer in tp_btf) */
extern const volatile u32 cfg_rmid;	 /* enum ttmon_rmid_backend */
extern const volatile u32 cfg_max_rmid;

#endif
