/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * live.h: advice while the program runs, allocation by allocation. Part of the history (hot thread,
 * pure): it gets every transfer as it is applied, and the passing of time. Lines are numbered from 1
 * and kept in a ring; a reader passes the number after which to continue.
 *
 * What a line says of an allocation:
 *	pin	pageable memory (custom, mmap) whose transfers in both directions passed the
 *		threshold: by default, for which the rule (lib/verdict) says pin
 *	unpin	pinned memory without transfers for cold_ns, which by the rule was not worth pinning
 *	cold	the same, but the GPU's use of it is unknown: it is mapped, portable or
 *		write-combined, its device pointer was requested, or the process makes copies in
 *		graphs, which are not seen
 *	keep	the last line of the allocation no longer holds
 *
 * Hysteresis: a line is only written if it differs from the last one of the allocation. Time alone
 * never takes back `pin`. After an `unpin` or `cold` that a transfer proved wrong (`keep`), the next
 * one takes twice as long, up to 64 times.
 */
#ifndef TTMON_LIVE_H
#define TTMON_LIVE_H

#include "daemon/core/history/history.h"

#define TTMON_LIVE_LABEL 64

/* Checkpoints of a process that are reported in a second; further ones are only counted. */
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
	uint64_t alloc;	   /* number (ttmon_alloc_seq); UINT64_MAX for CHECKPOINT */
	uint64_t addr, size;
	uint64_t site; /* key of the call site, 0: unknown (yet) */
	uint32_t ordinal;
	uint32_t period;		  /* checkpoints of the process so far */
	uint64_t copies, bytes;		  /* to the device */
	uint64_t back_copies, back_bytes; /* from the device */
	uint8_t reason;			  /* enum ttmon_reason; TTMON_REASON_MAX: none to report */
	int64_t gain_ns;
	double confidence;
	char label[TTMON_LIVE_LABEL]; /* of the checkpoint that began the period */
};

struct ttmon_live_totals {
	uint64_t said[TTMON_SAID_CHECKPOINT + 1];
	uint64_t first_seq, next_seq; /* lines kept: first_seq <= seq < next_seq */
	uint64_t unheard;	      /* lines not written: no memory, or too many allocations to follow */
	uint32_t followed;	      /* allocations with a state */
};

/* The number that the next line will have. */
uint64_t ttmon_history_live_next(const struct ttmon_history *h);
void ttmon_history_live_totals(const struct ttmon_history *h, struct ttmon_live_totals *ret);
/* The line with this number, or the oldest one kept after it. False: there is none yet. */
bool ttmon_history_live(const struct ttmon_history *h, uint64_t seq, struct ttmon_live_line *ret);

#endif
