/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rmid.h: the owners of each RMID over time, and their shares of the RMID's RDT readings. Pure, hot
 * thread.
 *
 * Lifecycle (RMID, RMID_SET) is applied in order of time, as slots close; past owners are kept as long
 * as a reading may need them. A later record changes the past, never the present owner of an RMID
 * (own.c). Readings (RDT, RDT_READ) are taken when they come, usually after the end of their slot and
 * before it is closed. They are queued, and a slot that closes takes its part of each interval between
 * two readings of an RMID in a domain:
 *
 *	readings   a----------------------b     bytes of [a, b) = difference of the counters
 *						(width, scale)
 *	slots      |   S   |  S+1  |  S+2  |     S takes floor(bytes * (end(S) - a) / (b - a)) less
 *						what was taken so far;
 *	owners     P P P P - - Q Q Q Q Q Q       each part goes to the RMID's owners then, in
 *						proportion to time
 *
 * so that the parts add up to the whole exactly. What lies in slots that were closed before the
 * reading came goes into the oldest open one. An interval never goes across an allocation: the first
 * reading after one is the new baseline. Occupancy is a gauge: the last reading of each domain, summed
 * up over domains, from its time on, for the owner at that time.
 */
#ifndef TTMON_CORE_RMID_H
#define TTMON_CORE_RMID_H

#include <ttmon/event.h>

#include "daemon/core/cpu/cpu.h"
#include "lib/base/util.h"

struct ttmon_rmid;

/*
 * What a source of RMIDs must not do, and the module of unvariance/collector does. Each case is
 * counted, and the first of each is reported by ttmon_rmid_note().
 */
#define TTMON_RMID_ODD_TABLE(X)                                                                   \
	X(SAMPLE_ON_FREE, "sample_on_free", "a reading of an RMID that nobody had")               \
	X(DOUBLE_FREE, "double_free", "an RMID was freed that was free")                          \
	X(LOST_ALLOC, "lost_alloc", "an RMID was in use before anybody told its allocation")      \
	X(LOST_FREE, "lost_free", "an RMID was allocated to another process without being freed") \
	X(SHARED, "shared", "a process ran under an RMID that belongs to another, or freed it")   \
	X(REUSED_EARLY, "reused_early", "an RMID was given out again within 2 ms")                \
	X(EXHAUSTED, "exhausted", "no RMID was free for a process")                               \
	X(BAD_READING, "bad_reading", "the hardware had no value, or an error")                   \
	X(DROPPED, "dropped", "readings or events for which there was no room")
enum ttmon_rmid_odd {
#define X(NAME, name, help) TTMON_RMID_ODD_##NAME,
	TTMON_RMID_ODD_TABLE(X)
#undef X
		TTMON_RMID_ODD_MAX
};

struct ttmon_rmid_totals {
	enum ttmon_rmid_backend backend;
	uint32_t max_rmid, in_use, peak;
	uint64_t allocs, frees, readings;
	uint64_t late; /* lifecycle records older than the newest of their RMID: they changed the past only */
	/*
	 * Total and local. bytes = assigned + unassigned + dropped + what slots that are still open will get.
	 */
	uint64_t bytes[2];	/* differences of all readings */
	uint64_t assigned[2];	/* to processes */
	uint64_t unassigned[2]; /* while no process owned the RMID */
	uint64_t dropped[2];	/* after an allocation, up to the first reading that follows it; or for want of room */
	uint64_t merged;	/* differences merged with the one before, because slots were not closed in time */
	uint64_t stale;		/* readings not newer than the one before, ignored */
	/* differences larger than any memory can transfer, so that the counter was reset: not in bytes */
	uint64_t resets;
	uint64_t saturated; /* values that overflow when converted to bytes */
	uint64_t odd[TTMON_RMID_ODD_MAX];
	uint32_t has; /* TTMON_RMID_HAS_* */
};

struct ttmon_rmid_owner {
	uint32_t tgid;		     /* 0: no owner */
	uint64_t start_ns;	     /* of the process, 0 unknown */
	uint64_t since_ns, until_ns; /* since_ns: it may be earlier if it comes from a dump; until_ns 0: still owned */
	char comm[TTMON_COMM_LEN];
};

int ttmon_rmid_new(struct ttmon_rmid **ret) _must_check;
void ttmon_rmid_free(struct ttmon_rmid *r);

/*
 * ttmon_rmid_on_NAME(r, ev): a checked record. RMID in order of time, as its slot closes; RMID_SET
 * when it comes, kept until its time; RDT, RDT_READ and RMID_INFO when they come.
 */
#define X(id, NAME, name, type, way, family, check, stream, timeline, history, tt, dispatch, cpu, rmid, ...) \
	TTMON_IF_##rmid(void ttmon_rmid_on_##name(struct ttmon_rmid *r, const struct type *ev);)
TTMON_EVENT_TABLE(X)
#undef X
/*
 * A process was seen on a CPU with this RMID in the slot being closed, which begins at slot_ns (from
 * the rows of core/cpu/cpu.c). Checks for SHARED and LOST_ALLOC; repeated sightings of one process on
 * one RMID count once, until another process is seen.
 */
void ttmon_rmid_seen(struct ttmon_rmid *r, uint32_t rmid, uint32_t tgid, uint64_t slot_ns);
/* Closes the slot that ends at end_ns: fn gets its pieces. */
void ttmon_rmid_close(struct ttmon_rmid *r, uint64_t end_ns, void (*fn)(void *ctx, const struct ttmon_rdt_piece *piece),
		      void *ctx);
/*
 * The slot closes, but lifecycle records of before end_ns may still come: its readings wait for a
 * later slot.
 */
void ttmon_rmid_skip(struct ttmon_rmid *r, uint64_t end_ns);
/* The owner at that time, among those kept. */
void ttmon_rmid_get_owner(const struct ttmon_rmid *r, uint32_t rmid, uint64_t at_ns, struct ttmon_rmid_owner *ret);
void ttmon_rmid_get_totals(const struct ttmon_rmid *r, struct ttmon_rmid_totals *ret);
/* Writes the first occurrence of each odd event as a line of text, once; false: nothing new. */
bool ttmon_rmid_note(struct ttmon_rmid *r, char *buf, size_t n);
const char *ttmon_rmid_odd_name(unsigned int odd);
const char *ttmon_rmid_backend_name(unsigned int backend);

#endif
