/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rmid_int.h: shared by the files of core/rmid; not included elsewhere.
 *
 *   rmid.c       creation and removal, units, totals, notes on odd events
 *   own.c   lifecycle: owners of each RMID over time
 *   read.c  readings: differences, and the share of a closing slot
 *
 * Memory is bounded: RMID_KEYS pairs of (RMID, domain) and TTMON_RMID_LIMIT RMIDs, made as they are
 * seen, with arrays of fixed size in them, and RMID_FACTS facts that wait: 31 MB at most, 1.4 kB an
 * (RMID, domain) in use and 1.7 kB an RMID.
 */
#ifndef TTMON_RMID_INT_H
#define TTMON_RMID_INT_H

#include "daemon/core/rmid/rmid.h"

#define RMID_OWNERS   8 /* kept of an RMID: the oldest are dropped first */
#define RMID_NOBODY   RMID_OWNERS
#define RMID_EVENTS   16 /* lifecycle events kept of an RMID, so that a late one can be inserted among them */
#define RMID_IVALS    16 /* intervals between readings, of a key and counter; further ones are merged into the last */
#define RMID_DOMAINS  64 /* of an RMID */
#define RMID_KEYS     16384
#define RMID_FACTS    8192
#define RMID_LIMBO_NS (2 * NSEC_PER_MS)
/*
 * Limit for times past the last closed slot: no source is that early, and such a time would hold back
 * all later ones.
 */
#define RMID_AHEAD_NS (60 * NSEC_PER_SEC)
/*
 * After the first record of the source: until then an RMID that was never reported may still be in the
 * dump.
 */
#define RMID_SETTLE_NS NSEC_PER_SEC
/* A domain that was not read for this long is not waited for. */
#define RMID_QUIET_NS (2 * NSEC_PER_SEC)
/*
 * A difference above this means that the counter was reset: 16 TB/s is ten times any memory. The slack
 * is for readings close together.
 */
#define RMID_BYTES_PER_NS 16384
#define RMID_BYTES_SLACK  (64ULL << 20)

/* A process had the RMID in [since, until). */
struct rmid_own {
	uint64_t since_ns, until_ns; /* until_ns: valid when not open */
	uint64_t start_ns;	     /* of the process, 0 unknown */
	uint64_t told_occ;	     /* occupancy last reported */
	uint32_t tgid;		     /* 0: the source knows no process for it (a group of several) */
	bool open;		     /* still owned */
	bool begin;		     /* owned since before the first record: since_ns is the time of the first report */
	bool fresh;		     /* allocated at since_ns: its counters begin again */
	bool told;
	char comm[TTMON_COMM_LEN];
};

/* Bytes counted in [a, b). */
struct rmid_ival {
	uint64_t a_ns, b_ns, bytes;
};

/* One bandwidth counter of a key. */
struct rmid_counter {
	uint64_t base, base_ns; /* last valid reading */
	uint32_t gen;		/* generation of the units of base; another one than the current: there is no base */
	uint8_t head, n;
	bool partly;	 /* q[head] was given out up to from_ns */
	uint16_t merged; /* bit i: q[i] is several intervals merged, so where in it the bytes were is unknown */
	uint64_t from_ns;
	struct rmid_ival q[RMID_IVALS];
};

/* The values of a reading besides differences. */
struct rmid_sample {
	uint64_t ns, occ;
	bool has_occ;
	bool good, bad; /* good: some value was there; bad: an expected value was missing */
};

/* An RMID in an L3 domain. */
struct rmid_key {
	struct rmid_key *next;
	uint64_t last_ns; /* time of its last reading */
	uint64_t occ, occ_ns;
	uint16_t domain;
	bool has_occ;
	uint8_t head, n;
	struct rmid_sample q[RMID_IVALS];
	struct rmid_counter ctr[2]; /* total, local */
};

/* One event of the lifecycle. */
struct rmid_life {
	uint64_t ns, start_ns;
	uint32_t tgid, op; /* enum ttmon_rmid_op */
	char comm[TTMON_COMM_LEN];
};

/* The state after applying events in order of time. */
struct rmid_book {
	struct rmid_own own[RMID_OWNERS]; /* in order of time, without overlap; only the last may be open */
	uint32_t nr;
	uint64_t freed_ns; /* last free; the RMID is free if known and no owner is open */
	bool known;	   /* some lifecycle event was reported */
};

struct rmid_one {
	struct rmid_book now; /* the state after all events */
	struct rmid_book old; /* the state after the events no longer in `events`, */
	uint64_t old_ns;      /* of which the last was at this time */
	/* the newest, in order of time; room for one more during an insertion */
	struct rmid_life events[RMID_EVENTS + 1];
	uint32_t nr_events;
	uint32_t intruder; /* last process seen under it without owning it: reported once in a row */
	uint32_t nr_keys;
	struct rmid_key *keys; /* by domain */
};

struct rmid_said {
	uint32_t rmid, tgid, other;
	uint64_t ns;
};

struct ttmon_rmid {
	struct rmid_one *ids[TTMON_RMID_LIMIT];
	uint64_t active[TTMON_RMID_LIMIT / 64]; /* bit: has readings that are not yet fully given out */
	uint32_t nr_active, nr_keys;
	struct ttmon_ev_rmid *facts; /* ring: RMID_SET facts whose slot has not closed, in order of when_ns */
	size_t facts_first, facts_nr, facts_cap;
	uint64_t scale;
	uint32_t width, gen; /* gen: number of RMID_INFO facts; 0: none */
	bool any, settling;  /* the source has sent something; settle_ns is set */
	uint64_t settle_ns;
	bool has_closed;
	uint64_t closed_ns; /* end of the last closed slot */
	struct ttmon_rmid_totals t;
	uint32_t noted, pending; /* bits: odd events reported; to be reported */
	struct rmid_said said[TTMON_RMID_ODD_MAX];
};

struct rmid_one *ttmon_rmid_one(struct ttmon_rmid *r, uint32_t rmid);
/* Counts the event; the numbers of the first one are kept for the note. */
void ttmon_rmid_note_odd(struct ttmon_rmid *r, enum ttmon_rmid_odd odd, uint32_t rmid, uint32_t tgid, uint32_t other,
			 uint64_t ns);
/* True if the time is so far past the slots that it cannot be valid. */
bool ttmon_rmid_not_yet(const struct ttmon_rmid *r, uint64_t ns);
/* True if the source has certainly reported every RMID that was in use at that time. */
bool ttmon_rmid_settled(const struct ttmon_rmid *r, uint64_t ns);

/* Index of the owner at that time, or RMID_NOBODY. */
unsigned int ttmon_rmid_own_at(const struct rmid_book *b, uint64_t ns);
/* The first allocation inside (a, b); false: none. */
bool ttmon_rmid_own_alloc(const struct rmid_book *b, uint64_t a_ns, uint64_t b_ns, uint64_t *ret);
/* True if [a, b) has one owner throughout, or none throughout. */
bool ttmon_rmid_own_alone(const struct rmid_book *b, uint64_t a_ns, uint64_t b_ns);
/* Applies the facts of before end_ns. */
void ttmon_rmid_own_facts(struct ttmon_rmid *r, uint64_t end_ns);

void ttmon_rmid_read(struct ttmon_rmid *r, const struct ttmon_ev_rdt *e);

#endif
