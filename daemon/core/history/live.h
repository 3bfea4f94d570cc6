/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * live.h: advice while the program runs, allocation by allocation. A part of the history (hot thread,
 * pure): told of every transfer as it is applied, and of time passing. Lines are numbered from 1 and
 * kept in a ring: who reads says after which number to go on.
 *
 * What is said of an allocation:
 *	pin	pageable memory (custom, mmap) whose transfers, both ways, passed the threshold: by default that the rule (lib/verdict) says so
 *	unpin	pinned memory that was not transferred for cold_ns, and of which the rule says that it was not worth pinning
 *	cold	the same, but mapped, portable, write-combined, with a device pointer asked for, or of a process that makes copies in graphs,
 *		which are not seen: GPU use unknown
 *	keep	what was said last no longer holds
 * Hysteresis: a line is only said when it is another than the last of the allocation; `pin` is never
 * taken back by time alone; after an `unpin` or `cold` that a transfer proved wrong (`keep`), the next
 * one takes twice as long, up to 64 times.
 */
#ifndef TTMON_LIVE_H
#define TTMON_LIVE_H

#include "daemon/core/history/history.h"

#define TTMON_LIVE_LABEL 64

/* Checkpoints of a process that are reported in a second; more are unheard. */
#define TTMON_LIVE_CHECKPOINTS 1000u

enum ttmon_live_said {
	TTMON_SAID_NOTHING,
	TTMON_SAID_PIN,
	TTMON_SAID_UNPIN,
	TTMON_SAID_COLD,
	TTMON_SAID_KEEP,
	TTMON_SAID_CHECKPOINT
};
const char *ttmon_live_name(unsigned int said); /* "pin", "unpin", "cold", "keep", "checkpoint" */

struct ttmon_live_line {
	uint64_t seq, ts_ns;
	uint8_t said; /* enum ttmon_live_said */
	uint8_t method;
	uint32_t proc; /* index in the history */
	uint32_t tgid, uid;
	uint64_t start_ns; /* of the process */
	uint64_t alloc;	   /* its number (ttmon_alloc_seq); UINT64_MAX with CHECKPOINT */
	uint64_t addr, size;
	uint64_t site; /* key, 0: not known (yet) */
	uint32_t ordinal;
	uint32_t period;		  /* checkpoints of the process so far */
	uint64_t copies, bytes;		  /* to the device */
	uint64_t back_copies, back_bytes; /* from the device */
	uint8_t reason;			  /* enum ttmon_reason; TTMON_REASON_MAX: none is to be told */
	int64_t gain_ns;
	double confidence;
	char label[TTMON_LIVE_LABEL]; /* of the checkpoint that began the period */
};

struct ttmon_live_totals {
	uint64_t said[TTMON_SAID_CHECKPOINT + 1];
	uint64_t first_seq, next_seq; /* kept: first_seq <= seq < next_seq */
	uint64_t unheard;	      /* said nothing of: no memory, or too many to follow */
	uint32_t followed;	      /* allocations with a state */
};

/* The number that the next line will have. */
uint64_t ttmon_history_live_next(const struct ttmon_history *h);
void ttmon_history_live_totals(const struct ttmon_history *h, struct ttmon_live_totals *ret);
/* The line of this number, or the oldest kept after it. False: there is none yet. */
bool ttmon_history_live(const struct ttmon_history *h, uint64_t seq, struct ttmon_live_line *ret);

#endif
