/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpustate.h: the current state of each CPU, read from the mapped array cpu_states under its sequence
 * counts. Hot thread, once per drain.
 *
 * Call it between T0 and the reading of the ring positions: a record sent before the state was read
 * then lies before the position, and the state held at T0 (docs/ARCHITECTURE.md).
 */
#ifndef TTMON_CPUSTATE_H
#define TTMON_CPUSTATE_H

#include <ttmon/event.h>

#include "lib/base/util.h"

struct ttmon_cpustate;

/* states: nr_cpus elements of stride bytes, mapped read-only; must outlive this. */
int ttmon_cpustate_new(const void *states, size_t stride, uint32_t nr_cpus, struct ttmon_cpustate **ret) _must_check;
void ttmon_cpustate_free(struct ttmon_cpustate *s);
/*
 * Reads all states. A CPU whose present slot ends at or before upto_ns (T0 minus the guard: the
 * watermark that this drain can reach), and whose state has changed since its last report, is kept for
 * ttmon_cpustate_tell(). False: one was being written all the time (a virtual CPU was preempted in the
 * middle of a switch); then the watermark must not advance this time.
 */
bool ttmon_cpustate_read(struct ttmon_cpustate *s, uint64_t upto_ns);
/*
 * After the drain: passes the states to fn as CPU_OPEN facts. gave_up: the watermark advances without
 * something that could not be read (a state, or the rest of a ring): what is then uncertain is
 * reported as UNKNOWN.
 */
void ttmon_cpustate_tell(struct ttmon_cpustate *s, uint64_t now_ns, bool gave_up,
			 void (*fn)(void *ctx, const void *rec, size_t size), void *ctx);
/*
 * The cold thread found these CPUs online (one bit each, nr_cpus of them, copied); CPUs that went
 * offline are reported as OFFLINE. Any thread.
 */
void ttmon_cpustate_online(struct ttmon_cpustate *s, const uint64_t *bits);

struct ttmon_cpustate_sums {
	uint64_t switches, ticks, backwards, read_fails, unseen; /* summed over CPUs */
	uint64_t retries;					 /* of the sequence counts */
	uint64_t told;						 /* CPU_OPEN facts */
	uint32_t seen;						 /* CPUs that switched at least once */
};
void ttmon_cpustate_get_sums(const struct ttmon_cpustate *s, struct ttmon_cpustate_sums *ret);

#endif
