/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * seen.h: which families of probes saw everything in a slot, and since when: the basis for sums and
 * rates of the whole host. Gaps of single processes do not change since when a family is on. Two
 * readings of the sums here say what is known of the time between them: all of it where neither off_ns
 * nor missed has grown, nothing where off_ns has grown by all of it. Hot thread, pure.
 */
#ifndef TTMON_SEEN_H
#define TTMON_SEEN_H

#include "daemon/core/know/know.h"

struct ttmon_seen_family {
	uint8_t state; /* enum ttmon_family_state of the newest fact: on, counting or off */
	/*
	 * enum ttmon_gap_why, BUDGET or ASKED; TTMON_GAP_WHY_MAX: the family was not on when the trace began
	 */
	uint8_t why;
	bool partly;	   /* some process that is kept has a gap of its own because its probes came late */
	uint64_t from_ns;  /* in this state since; 0: since the trace began */
	uint64_t since_ns; /* all its events have been seen since; UINT64_MAX: they are not all seen */
	/* Sums over the slots that have closed. */
	uint64_t off_ns; /* ns in which it reported nothing */
	uint64_t missed; /* slots of which it reported a part, and lost records: grows where something is missing */
};

struct ttmon_seen_view {
	uint64_t start_ns; /* start of the trace; 0: unknown */
	uint64_t now_ns;   /* end of the slot that closed last */
	struct ttmon_seen_family of[TTMON_FAMILY_MAX];
};

struct ttmon_seen_sums {
	struct ttmon_seen_view v;
	uint64_t on_ns[TTMON_FAMILY_MAX]; /* when it was first on; UINT64_MAX: never */
	uint32_t guessed; /* families that an old recording does not mention: they are on if they sent any event */
	uint32_t had;	  /* of TTMON_SEEN_MEASURED: measured in at least one slot */
	uint32_t owed;	  /* of these something was missing in slots that had closed when it was reported */
	/* The last answer of know.h. */
	uint64_t changes, quiet_ns;
	uint32_t open;
};

/* All families are on from the beginning until a fact says otherwise. */
void ttmon_seen_init(struct ttmon_seen_sums *s);
void ttmon_seen_on_clock(struct ttmon_seen_sums *s, const struct ttmon_ev_clock *ev);
void ttmon_seen_on_family(struct ttmon_seen_sums *s, const struct ttmon_ev_family *ev);
void ttmon_seen_lost(struct ttmon_seen_sums *s, enum ttmon_family family, uint64_t records);
/*
 * A gap of these families began at from_ns and is reported now: where the slots of that time have
 * closed, the next slot carries it for them.
 */
void ttmon_seen_late(struct ttmon_seen_sums *s, uint32_t families, uint64_t from_ns);
/*
 * The slot [from_ns, to_ns) closes; has: the bits of TTMON_SEEN_MEASURED that were measured in it.
 * Returns the families that saw everything in all of it, as bits.
 */
#define TTMON_SEEN_MEASURED (TTMON_FAMILY_BIT(CPU) | TTMON_FAMILY_BIT(RMID))
uint32_t ttmon_seen_close(struct ttmon_seen_sums *s, const struct ttmon_know *k, uint64_t from_ns, uint64_t to_ns,
			  uint32_t has);
void ttmon_seen_get(const struct ttmon_seen_sums *s, const struct ttmon_know *k, struct ttmon_seen_view *ret);

#endif
