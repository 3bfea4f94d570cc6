/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rmid_int.h: what the parts of core/rmid share. Not for others.
 *
 *   rmid.c       making and freeing, units, totals, what is told of odd things
 *   own.c   lifecycle: which process had which RMID when
 *   read.c  readings: differences, and what of them falls into a closing slot
 *
 * Memory is bounded: RMID_KEYS pairs of (RMID, domain) and TTMON_RMID_LIMIT RMIDs, made as they are
 * seen, with arrays of fixed size in them, and RMID_FACTS facts that wait: 31 MB at most, 1.4 kB an
 * (RMID, domain) in use and 1.7 kB an RMID.
 */
#ifndef TTMON_RMID_INT_H
#define TTMON_RMID_INT_H

#include "daemon/core/rmid/rmid.h"

#define RMID_OWNERS   8 /* remembered of an RMID: older ones are forgotten first */
#define RMID_NOBODY   RMID_OWNERS
#define RMID_EVENTS   16 /* of an RMID's lifecycle that are kept: one that comes late finds its place among them */
#define RMID_IVALS    16 /* between readings, of a key and counter; further ones are joined to the last */
#define RMID_DOMAINS  64 /* of an RMID */
#define RMID_KEYS     16384
#define RMID_FACTS    8192
#define RMID_LIMBO_NS (2 * NSEC_PER_MS)
/*
 * Past the last slot that was closed: no source is that early, and its time would hold back all that
 * come after it.
 */
#define RMID_AHEAD_NS (60 * NSEC_PER_SEC)
/*
 * After the first word of the source: until then an RMID that nobody told of may be one that the dump
 * will tell of.
 */
#define RMID_SETTLE_NS NSEC_PER_SEC
/* A domain that was not read for so long is not waited for. */
#define RMID_QUIET_NS (2 * NSEC_PER_SEC)
/*
 * A difference above this is a counter that was reset: 16 TB/s is ten times any memory; two readings
 * may be close together.
 */
#define RMID_BYTES_PER_NS 16384
#define RMID_BYTES_SLACK  (64ULL << 20)

/* A process had the RMID in [since, until). */
struct rmid_own {
	uint64_t since_ns, until_ns; /* until: when not open */
	uint64_t start_ns;	     /* of the process, 0 unknown */
	uint64_t told_occ;	     /* occupancy last told */
	uint32_t tgid;		     /* 0: the source has no process for it (a group of several) */
	bool open;		     /* still */
	bool begin;		     /* since before anything is known: since_ns is when it was first told */
	bool fresh;		     /* it was allocated at since_ns: counters begin again */
	bool told;
	char comm[TTMON_COMM_LEN];
};

/* Bytes of [a, b). */
struct rmid_ival {
	uint64_t a_ns, b_ns, bytes;
};

/* One bandwidth counter of a key. */
struct rmid_counter {
	uint64_t base, base_ns; /* last good reading */
	uint32_t gen;		/* of the units that base is in; not that of now: no base */
	uint8_t head, n;
	bool partly;	 /* q[head] was given out up to from_ns */
	uint16_t merged; /* bit: q[i] is several in one: where in it the bytes were is not known */
	uint64_t from_ns;
	struct rmid_ival q[RMID_IVALS];
};

/* What a reading says besides differences. */
struct rmid_sample {
	uint64_t ns, occ;
	bool has_occ;
	bool good, bad; /* some value was there; some was not that should be */
};

/* An RMID in an L3 domain. */
struct rmid_key {
	struct rmid_key *next;
	uint64_t last_ns; /* of its last reading */
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

/* What a row of events in order of time says. */
struct rmid_book {
	struct rmid_own own[RMID_OWNERS]; /* in order of time, apart; only the last may be open */
	uint32_t nr;
	uint64_t freed_ns; /* last; it is free if it is known and no owner is open */
	bool known;	   /* its lifecycle was told of */
};

struct rmid_one {
	struct rmid_book now;			  /* what all events say */
	struct rmid_book old;			  /* what those say that are not in `events` any more, */
	uint64_t old_ns;			  /* the last of which was at that time */
	struct rmid_life events[RMID_EVENTS + 1]; /* the newest, in order of time; one more while one is put in */
	uint32_t nr_events;
	uint32_t intruder; /* last process seen under it that should not: told once in a row */
	uint32_t nr_keys;
	struct rmid_key *keys; /* by domain */
};

struct rmid_said {
	uint32_t rmid, tgid, other;
	uint64_t ns;
};

struct ttmon_rmid {
	struct rmid_one *ids[TTMON_RMID_LIMIT];
	uint64_t active[TTMON_RMID_LIMIT / 64]; /* bit: has readings that were not given out to the end */
	uint32_t nr_active, nr_keys;
	struct ttmon_ev_rmid *facts; /* ring: RMID_SET whose slot has not closed, in order of when_ns */
	size_t facts_first, facts_nr, facts_cap;
	uint64_t scale;
	uint32_t width, gen; /* gen: counts RMID_INFO; 0 is none */
	bool any, settling;  /* the source has said something; settle_ns is set */
	uint64_t settle_ns;
	bool has_closed;
	uint64_t closed_ns; /* end of the last closed slot */
	struct ttmon_rmid_totals t;
	uint32_t noted, pending; /* odd things told; to be told */
	struct rmid_said said[TTMON_RMID_ODD_MAX];
};

struct rmid_one *ttmon_rmid_one(struct ttmon_rmid *r, uint32_t rmid);
/* Counts it; the first one's numbers are kept for the note. */
void ttmon_rmid_note_odd(struct ttmon_rmid *r, enum ttmon_rmid_odd odd, uint32_t rmid, uint32_t tgid, uint32_t other,
			 uint64_t ns);
/* So far past the slots that no source means it. */
bool ttmon_rmid_not_yet(const struct ttmon_rmid *r, uint64_t ns);
/* Is it certain that the source has told of every RMID in use at that time? */
bool ttmon_rmid_settled(const struct ttmon_rmid *r, uint64_t ns);

/* Index of the owner at that time, RMID_NOBODY. */
unsigned int ttmon_rmid_own_at(const struct rmid_book *b, uint64_t ns);
/* The first allocation inside (a, b): false if none. */
bool ttmon_rmid_own_alloc(const struct rmid_book *b, uint64_t a_ns, uint64_t b_ns, uint64_t *ret);
/* All of [a, b) is one owner's, or nobody's. */
bool ttmon_rmid_own_alone(const struct rmid_book *b, uint64_t a_ns, uint64_t b_ns);
/* Facts of the time before end_ns. */
void ttmon_rmid_own_facts(struct ttmon_rmid *r, uint64_t end_ns);

void ttmon_rmid_read(struct ttmon_rmid *r, const struct ttmon_ev_rdt *e);

#endif
