/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * family.h: families of probes, which can be removed or reduced to counting individually while the
 * daemon runs. BPF, daemon, tools.
 */
#ifndef TTMON_FAMILY_H
#define TTMON_FAMILY_H

/*
 * id, name, whether it can be only counted (a family without whose events the history would be wrong
 * cannot), help. Append-only.
 */
#define TTMON_FAMILY_TABLE(X)                                                                   \
	X(0, PROCESS, "process", 0, "processes: forks, programs, exits")                        \
	X(1, ALLOC, "alloc", 0, "CUDA allocations, frees, registrations; own allocators")       \
	X(2, TRANSFER, "transfer", 1, "CUDA copies, prefetches, advices")                       \
	X(3, LAUNCH, "launch", 1, "CUDA kernel and graph launches")                             \
	X(4, TENSTORRENT, "tenstorrent", 0, "Tenstorrent buffers, devices, pins of tt-kmd")     \
	X(5, DISPATCH, "dispatch", 1, "Tenstorrent dispatches and program events")              \
	X(6, MMAP, "mmap", 0, "mmap, munmap, mremap, brk: costs every system call of the host") \
	X(7, CPU, "cpu", 1, "context switches: who used the CPUs")                              \
	X(8, RMID, "rmid", 0, "RMID life and readings")                                         \
	X(9, WAIT, "wait", 1, "CUDA synchronizing calls; where the time of synchronous calls went")

enum ttmon_family {
#define X(id, NAME, name, countable, help) TTMON_FAMILY_##NAME = id,
	TTMON_FAMILY_TABLE(X)
#undef X
		TTMON_FAMILY_MAX,
	TTMON_FAMILY_NONE = TTMON_FAMILY_MAX /* in the event table: belongs to no family */
};

#define TTMON_FAMILY_BIT(family) (1u << TTMON_FAMILY_##family)
/* Those whose probes are at objects of CUDA. */
#define TTMON_FAMILIES_CUDA \
	(TTMON_FAMILY_BIT(ALLOC) | TTMON_FAMILY_BIT(TRANSFER) | TTMON_FAMILY_BIT(LAUNCH) | TTMON_FAMILY_BIT(WAIT))

/* ABSENT: not requested at the start (--no-mmap, --cpu off), or not available on this kernel. */
#define TTMON_FAMILY_STATE_TABLE(X)                                  \
	X(0, ON, "on")                                               \
	X(1, COUNTING, "counting") /* hits are counted, no events */ \
	X(2, OFF, "off")	   /* probes are detached */         \
	X(3, ABSENT, "absent")
enum ttmon_family_state {
#define X(id, NAME, name) TTMON_FAMILY_##NAME = id,
	TTMON_FAMILY_STATE_TABLE(X)
#undef X
		TTMON_FAMILY_STATE_MAX
};

#endif
