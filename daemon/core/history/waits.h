/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * waits.h: where the time of synchronous calls went: sums by process, by call site and of all, and the
 * calls that took longest. Part of the history (hot thread, pure). All times are ns.
 *
 * A call's time is divided into on its CPU, waiting in a run queue and blocked; the three add up to
 * it, always. Where they cannot be known, all of its time is unknown. So of any sums
 *
 *	ns = on_ns + runq_ns + blocked_ns + unknown_ns		(exactly)
 *
 * The time in run queues is divided once more, by what ran meanwhile (ttmon_wait_runq), and by
 * process; the blocked time by what ended it. What was not seen, or was too long ago to be kept, is
 * unknown.
 */
#ifndef TTMON_WAITS_H
#define TTMON_WAITS_H

#include <ttmon/event.h>

#include "lib/base/hmap.h"

struct ttmon_history;
struct ttmon_proc;

/* What a call does. Append-only: the names are those of the database and the metrics. */
#define TTMON_WAIT_TABLE(X)                                                       \
	X(0, SYNC, "sync", "waits for a stream, an event, a device or a context") \
	X(1, COPY, "copy", "synchronous copies")                                  \
	X(2, ALLOC, "alloc", "allocations of device and managed memory")          \
	X(3, FREE, "free", "frees of device, managed and pool memory")            \
	X(4, PIN, "pin", "allocations and registrations of pinned host memory")   \
	X(5, UNPIN, "unpin", "frees and unregistrations of pinned host memory")   \
	X(6, ASK, "ask", "questions to the driver: cudaMemGetInfo")               \
	X(7, RESET, "reset", "resets of devices, destructions of contexts")
enum ttmon_wait_kind {
#define X(id, NAME, name, help) TTMON_WAIT_##NAME = id,
	TTMON_WAIT_TABLE(X)
#undef X
		TTMON_WAIT_MAX
};
const char *ttmon_wait_name(unsigned int kind);
const char *ttmon_delay_name(unsigned int delay);
/* TTMON_WAIT_MAX: it has no ledger. */
unsigned int ttmon_wait_kind_of(uint16_t fn);

/* What ran, or did not run, while calls waited for a CPU. Append-only: names of the database. */
#define TTMON_WAIT_RUNQ_TABLE(X)                                                          \
	X(0, OTHER, "other_process", "another process ran")                               \
	X(1, OWN, "own_process", "another thread of the same process ran")                \
	X(2, KERNEL, "kernel_thread", "a thread of the kernel ran")                       \
	X(3, THROTTLED, "throttled", "its own cgroup had used up its share of CPU time")  \
	X(4, IDLE, "idle_cpu", "nothing ran: the CPU had to wake up first")               \
	X(5, UNNAMED, "unnamed_process", "more processes ran than one call has rows for") \
	X(6, UNKNOWN, "unknown", "not seen, or too long ago to be kept")
enum ttmon_wait_runq {
#define X(id, NAME, name, help) TTMON_WAIT_RUNQ_##NAME = id,
	TTMON_WAIT_RUNQ_TABLE(X)
#undef X
		TTMON_WAIT_RUNQ_MAX
};
const char *ttmon_wait_runq_name(unsigned int what);

/* What ended the blocked time of calls: evidence of what they waited for. Append-only, as above. */
#define TTMON_WAIT_WOKE_TABLE(X)                                                               \
	X(0, OTHER, "other_process", "another process woke it")                                \
	X(1, OWN, "own_process", "another thread of the same process woke it")                 \
	X(2, KERNEL, "kernel_thread", "a thread of the kernel woke it")                        \
	X(3, TIMER, "timer", "a timer that ran out woke it")                                   \
	X(4, INTERRUPT, "interrupt", "an interrupt that is no timer woke it: mostly a device") \
	X(5, UNNAMED, "unnamed_process", "more processes woke it than one call has rows for")  \
	X(6, UNKNOWN, "unknown", "not seen, or this kernel does not show interrupts")
enum ttmon_wait_woke {
#define X(id, NAME, name, help) TTMON_WAIT_WOKE_##NAME = id,
	TTMON_WAIT_WOKE_TABLE(X)
#undef X
		TTMON_WAIT_WOKE_MAX
};
const char *ttmon_wait_woke_name(unsigned int what);
const char *ttmon_wait_role_name(unsigned int role);

struct ttmon_wait_parts {
	uint64_t ns;
	uint64_t on_ns, runq_ns, blocked_ns; /* add up to ns; all 0 unless known */
	uint64_t runq[TTMON_WAIT_RUNQ_MAX];  /* add up to runq_ns */
	uint64_t woke[TTMON_WAIT_WOKE_MAX];  /* add up to blocked_ns */
	bool known;
	bool named; /* the rows of the record add up: they may be used */
};
/* The time of a call that was observed. */
struct ttmon_wait_parts ttmon_wait_divide(const struct ttmon_ev_wait *ev);

/*
 * Bucket b: calls that took at least 2^b ns, and less than twice that; the last one: all that took
 * longer.
 */
#define TTMON_WAIT_BUCKETS 40

struct ttmon_wait_sums {
	uint64_t calls;	     /* all below too */
	uint64_t unobserved; /* only their entry was seen: in no other figure */
	uint64_t unknown;    /* whose parts are not known */
	uint64_t hidden;     /* of these: a context switch was not seen */
	uint64_t unended;    /* the thread ended or became another program inside */
	uint64_t ns, on_ns, runq_ns, blocked_ns, unknown_ns;
	uint64_t runq[TTMON_WAIT_RUNQ_MAX]; /* adds up to runq_ns */
	uint64_t woke[TTMON_WAIT_WOKE_MAX]; /* adds up to blocked_ns */
	uint64_t minor, major, voluntary, involuntary;
	uint64_t delays; /* calls of which delay[] is known: 0: this kernel does not count them now */
	uint64_t delay[TTMON_DELAY_MAX];
	uint64_t bucket[TTMON_WAIT_BUCKETS];
};

/* The parts of the time of calls, as the metrics name them. */
#define TTMON_WAIT_PART_TABLE(X)             \
	X(0, ON, on_ns, "on_cpu")            \
	X(1, RUNQ, runq_ns, "run_queue")     \
	X(2, BLOCKED, blocked_ns, "blocked") \
	X(3, UNKNOWN, unknown_ns, "unknown")
enum ttmon_wait_part {
#define X(id, NAME, field, name) TTMON_WAIT_PART_##NAME = id,
	TTMON_WAIT_PART_TABLE(X)
#undef X
		TTMON_WAIT_PARTS
};
const char *ttmon_wait_part_name(unsigned int part);
uint64_t ttmon_wait_part_ns(const struct ttmon_wait_sums *s, unsigned int part);

/* Calls of one function from one place in a process. */
struct ttmon_wait_site {
	uint32_t proc; /* index; UINT32_MAX: the first row, of calls for which there was no row left */
	uint32_t site; /* index of the call site: the caller alone, not its callers; 0: not known */
	uint64_t caller;
	uint64_t ts_ns; /* of its first call */
	uint32_t stack; /* of the process, until the site is known */
	uint16_t fn;
	bool pending; /* the site is looked for */
	struct ttmon_wait_sums sums;
};

/* One of the calls that took longest. */
struct ttmon_wait_call {
	uint64_t entry_ns;
	struct ttmon_wait_parts parts;
	uint64_t caller;
	uint64_t delay[TTMON_DELAY_MAX];
	uint32_t proc, tid;
	uint32_t minor, major, voluntary, involuntary;
	int32_t err;
	uint16_t fn, bits; /* TTMON_W_* */
	uint32_t nr_who;
	struct ttmon_who_row who[TTMON_WHO_ROWS];
};

/* A process that made calls of another one wait, or of itself. */
struct ttmon_wait_culprit {
	uint32_t proc; /* whose calls: index; UINT32_MAX: the first row, of those for which there was none left */
	struct ttmon_who who;
	uint64_t fn, caller; /* the call that it was in itself, 0: none known */
	uint64_t calls, ns;  /* calls that waited for it, and for how long together */
};

#define TTMON_WAIT_SITES_MAX 8192u
#define TTMON_WAIT_CALLS_MAX 1000u
#define TTMON_WAIT_WHO_MAX   4096u

struct ttmon_waits {
	struct ttmon_wait_sums all[TTMON_WAIT_MAX];
	struct ttmon_wait_site *sites; /* owned */
	uint32_t nr_sites, cap_sites;
	struct ttmon_hmap by_call;     /* hash of process, function, caller: place in sites */
	uint64_t due_ns;	       /* when a pending site may be known; UINT64_MAX: none is pending */
	struct ttmon_wait_call *calls; /* [TTMON_WAIT_CALLS_MAX] a heap, the shortest first; owned */
	uint32_t nr_calls;
	struct ttmon_wait_culprit *who; /* owned */
	uint32_t nr_who, cap_who;
	struct ttmon_hmap by_who; /* hash of process and culprit: place in the array */
};

/* By kind, [TTMON_WAIT_MAX]; NULL: the process has made no such call. */
const struct ttmon_wait_sums *ttmon_history_waits(const struct ttmon_history *h, const struct ttmon_proc *p);
/* Of all processes there ever were. */
const struct ttmon_wait_sums *ttmon_history_waits_all(const struct ttmon_history *h);
/* In the order they were seen; the first row is of calls for which there was no row left. */
size_t ttmon_history_wait_sites(const struct ttmon_history *h, const struct ttmon_wait_site **ret);
/* The calls that took longest, in no order. */
size_t ttmon_history_wait_calls(const struct ttmon_history *h, const struct ttmon_wait_call **ret);
/* The call site of one of them, as of ttmon_wait_site. */
uint32_t ttmon_history_wait_site_of(const struct ttmon_history *h, const struct ttmon_wait_call *c);
/* The call site of the call that a process was in itself, as above; 0: not known. */
uint32_t ttmon_history_wait_site_in(const struct ttmon_history *h, const struct ttmon_who *who, uint64_t fn,
				    uint64_t caller);
/* In the order they were seen; the first row is of those for which there was no row left. */
size_t ttmon_history_wait_who(const struct ttmon_history *h, const struct ttmon_wait_culprit **ret);

#endif
