/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * know.h: what was not seen: when a family of probes was not on, for which processes, and why. Every
 * figure that depends on probes looks up here whether it is known, a lower bound, or unknown; no other
 * code decides that.
 *
 * A gap is an interval in which calls of one or more families can have been missed: a library's probes
 * came after its mapping, a family was only counted or off, records were lost, a program has CUDA's
 * runtime in a form that cannot be probed. What is in no gap was seen. Hot thread, pure. A full table
 * merges gaps of one kind, so errors go one way only: time outside every gap was seen.
 */
#ifndef TTMON_KNOW_H
#define TTMON_KNOW_H

#include <ttmon/event.h>
#include <ttmon/family.h>

#include "lib/base/names.h"
#include "lib/base/util.h"

enum ttmon_knowledge { TTMON_KNOWN, TTMON_AT_LEAST, TTMON_UNKNOWN };

/* What the family did in the gap. LOSING: it was on, but records of it were lost. Append-only. */
#define TTMON_GAP_STATE_TABLE(X)   \
	X(0, NOT_YET, "not yet")   \
	X(1, COUNTING, "counting") \
	X(2, OFF, "off")           \
	X(3, LOSING, "losing events")
enum ttmon_gap_state {
#define X(id, NAME, name) TTMON_GAP_##NAME = id,
	TTMON_GAP_STATE_TABLE(X)
#undef X
		TTMON_GAP_STATE_MAX
};

/* id, name, why a run with such a gap is not complete (lib/base/names.h), help. Append-only. */
#define TTMON_GAP_WHY_TABLE(X)                                                                                         \
	X(0, LATE, "attached late", ATTACHED_LATE, "it ran before the trace did")                                      \
	X(1, WINDOW, "coverage gap", COVERAGE_GAP, "a library was mapped before its probes were active")               \
	X(2, BUDGET, "budget", REDUCED, "the daemon was over its budget (--max-overhead)")                             \
	X(3, ASKED, "asked for", REDUCED, "somebody asked for that (ttmon family)")                                    \
	X(4, LOST, "lost", LOST, "records were lost")                                                                  \
	X(5, STRIPPED, "stripped runtime", UNPROBED,                                                                   \
	  "CUDA's runtime is in it without symbols, and no other one was seen to call the driver's probed functions")  \
	X(6, UNPROBED, "no probed library", UNPROBED, "it has a GPU's device file open and no library that is probed") \
	X(7, REFUSED, "function not probed", UNPROBED,                                                                 \
	  "the kernel refuses to probe a function of a library that it has")                                           \
	X(8, NO_ADDRESS, "address not seen", ADDRESS_NOT_SEEN,                                                         \
	  "it allocated without a return probe: on a coroutine's stack, or under --no-return-probes")                  \
	X(9, UNREAD, "file not read", UNPROBED, "it has a file mapped that could not be read, or not in time")         \
	X(10, DOUBT, "not told apart", NOT_TOLD_APART,                                                                 \
	  "a call of it counted as a part of another one, and perhaps was none")
enum ttmon_gap_why {
#define X(id, NAME, name, reason, help) TTMON_GAP_##NAME = id,
	TTMON_GAP_WHY_TABLE(X)
#undef X
		TTMON_GAP_WHY_MAX
};
const char *ttmon_gap_state_name(unsigned int state);
const char *ttmon_gap_why_name(unsigned int why);
/* True if such a gap hides some calls of its families, but never all. */
static inline bool ttmon_gap_is_partial(unsigned int why)
{
	return why == TTMON_GAP_STRIPPED || why == TTMON_GAP_REFUSED || why == TTMON_GAP_NO_ADDRESS ||
	       why == TTMON_GAP_DOUBT;
}
enum ttmon_incomplete ttmon_gap_why_reason(unsigned int why);
const char *ttmon_gap_why_help(unsigned int why);

/*
 * [from_ns, to_ns) of CLOCK_MONOTONIC. from_ns 0: it began before the trace. to_ns UINT64_MAX: it
 * still lasts.
 */
struct ttmon_gap {
	uint64_t from_ns, to_ns;
	uint32_t tgid;	   /* 0: all processes */
	uint32_t object;   /* number as in the OBJECT fact; 0: not about an object */
	uint32_t families; /* bits 1 << enum ttmon_family */
	uint8_t state, why;
};

struct ttmon_know;

int ttmon_know_new(struct ttmon_know **ret) _must_check; /* -ENOMEM */
void ttmon_know_free(struct ttmon_know *k);

/* ---- input ---- */

void ttmon_know_on_blind(struct ttmon_know *k, const struct ttmon_ev_blind *ev);
/*
 * A process that is announced as TTMON_PROC_DRIVER, and its children, miss nothing by a runtime
 * without symbols: what such a runtime does goes the way that the other one was seen to go. Until it
 * executes another program. TTMON_PROC_DOUBT and its like are a gap of that family.
 */
void ttmon_know_on_proc(struct ttmon_know *k, const struct ttmon_ev_proc *ev);
void ttmon_know_on_family(struct ttmon_know *k, const struct ttmon_ev_family *ev);
/* Records of these families were lost in [from_ns, to_ns). */
void ttmon_know_lost(struct ttmon_know *k, uint32_t families, uint64_t from_ns, uint64_t to_ns);

/*
 * The process got memory at an unknown address: whatever lies at any address later can be that memory.
 */
void ttmon_know_unaddressed(struct ttmon_know *k, uint32_t tgid, uint64_t ts_ns);
/* The process has ended, and so have its gaps. */
void ttmon_know_ended(struct ttmon_know *k, uint32_t tgid, uint64_t ts_ns);

/* ---- queries ---- */

/*
 * Were all events of the family that process tgid (0: any process) made in [from_ns, to_ns) seen? Sets
 * *why, if not NULL, to the gap that hides most.
 */
enum ttmon_knowledge ttmon_know_of(const struct ttmon_know *k, enum ttmon_family family, uint32_t tgid,
				   uint64_t from_ns, uint64_t to_ns, const struct ttmon_gap **why);
/*
 * True if the process (not 0) can have made an event of the family in [from_ns, to_ns) that was
 * neither seen nor sampled. A family that the budget reduced in one process alone was sampled where
 * records say so (TTMON_B_SAMPLE).
 */
bool ttmon_know_missing(const struct ttmon_know *k, enum ttmon_family family, uint32_t tgid, uint64_t from_ns,
			uint64_t to_ns);
/*
 * End of the last gap of the family that began at or before ts_ns: 0 if there is none, UINT64_MAX if
 * one still lasts. What was there before this time can have been part of a call that was not seen. A
 * stripped runtime is no gap here: its calls are seen in the driver.
 */
uint64_t ttmon_know_unseen_to(const struct ttmon_know *k, enum ttmon_family family, uint32_t tgid, uint64_t ts_ns);
/*
 * The same for gaps in which active probes were turned off, or records were lost: what was there
 * before this time may have ended since.
 */
uint64_t ttmon_know_doubt_to(const struct ttmon_know *k, enum ttmon_family family, uint32_t tgid, uint64_t ts_ns);
/*
 * When the last library of the process that was mapped before its probes were active got them; 0:
 * there is no such library.
 */
uint64_t ttmon_know_probed_ns(const struct ttmon_know *k, uint32_t tgid);
/*
 * Families that were on for every process in all of [from_ns, to_ns), as bits. A stripped runtime is
 * no gap here either.
 */
uint32_t ttmon_know_families(const struct ttmon_know *k, uint64_t from_ns, uint64_t to_ns);
/* A number that grows with each change: an answer stays valid while it is the same. */
uint64_t ttmon_know_changes(const struct ttmon_know *k);
/* All gaps, in the order of their reports; an ended gap of a family has its end set. */
size_t ttmon_know_gaps(const struct ttmon_know *k, const struct ttmon_gap **ret);
/*
 * The process has ended and nothing of it is kept: removes its gaps. A gap that began after before_ns
 * belongs to a later process of that tgid.
 */
void ttmon_know_forget(struct ttmon_know *k, uint32_t tgid, uint64_t before_ns);

#endif
