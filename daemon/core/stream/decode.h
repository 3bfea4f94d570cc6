/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * decode.h: checks that a record is what it claims to be. Pure; ring bytes and recordings are
 * untrusted input.
 */
#ifndef TTMON_DECODE_H
#define TTMON_DECODE_H

#include <ttmon/event.h>
#include <ttmon/family.h>

#include "lib/base/names.h"
#include "lib/base/util.h"

/* Why a record was refused. */
enum ttmon_decode_err {
	TTMON_DECODE_OK,
	TTMON_DECODE_SHORT,  /* shorter than its kind, or not a multiple of 8, or longer than TTMON_RECORD_MAX */
	TTMON_DECODE_KIND,   /* no such kind */
	TTMON_DECODE_CPU,    /* cpu not below nr_cpus (facts: not TTMON_CPU_DAEMON) */
	TTMON_DECODE_LENGTH, /* a length inside the record goes past its end */
	TTMON_DECODE_VALUE,  /* an enum out of range */
	TTMON_DECODE_MAX,
};

#define TTMON_RECORD_MAX 8192

/*
 * Checks one record. After OK, everything that later code indexes by (kind, fn, method, dir, nframes,
 * lengths) is in range.
 */
enum ttmon_decode_err ttmon_decode(const void *rec, size_t size, uint32_t nr_cpus) _must_check;

/* The event table's row of a kind; min_size 0: there is no such kind. */
struct ttmon_kind {
	uint16_t min_size; /* fixed part of its record in bytes */
	uint8_t way;	   /* enum ttmon_way */
	uint8_t family;	   /* enum ttmon_family */
};
extern const struct ttmon_kind ttmon_kinds[TTMON_EV_MAX];

/*
 * Where records of this kind come from, and when they are handled. kind: one that ttmon_decode() has
 * passed.
 */
static inline enum ttmon_way ttmon_event_way(unsigned int kind)
{
	return ttmon_kinds[kind].way;
}

/* True if the daemon puts this kind into the stream. kind: as above. */
static inline bool ttmon_event_is_fact(unsigned int kind)
{
	return ttmon_event_way(kind) >= TTMON_WAY_FACT;
}

/*
 * True for the kinds about CPUs, caches and memory bandwidth that BPF sends; the parts for memory do
 * not get them. Any kind.
 */
static inline bool ttmon_event_is_cpu(unsigned int kind)
{
	return kind < TTMON_EV_MAX &&
	       (ttmon_event_way(kind) == TTMON_WAY_SCHED || ttmon_event_way(kind) == TTMON_WAY_DIRECT);
}

/*
 * The family of probes that sends this kind, or that a fact belongs to. Any kind; NONE also where
 * there is no such kind.
 */
static inline enum ttmon_family ttmon_event_family(unsigned int kind)
{
	return kind < TTMON_EV_MAX && ttmon_kinds[kind].min_size ? ttmon_kinds[kind].family : TTMON_FAMILY_NONE;
}

/* Fixed part of a kind's record in bytes, 0: no such kind. */
size_t ttmon_event_min_size(unsigned int kind);

#endif
