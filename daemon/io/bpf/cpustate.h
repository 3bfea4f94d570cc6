/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpustate.h: what each CPU is in the middle of, read from the mapped array cpu_states under its
 * sequence counts. Hot thread, each drain.
 *
 * To be called between T0 and the reading of the ring positions: a record that was sent before the
 * state was read then lies before the position, and what the state says held at T0
 * (docs/ARCHITECTURE.md).
 */
#ifndef TTMON_CPUSTATE_H
#define TTMON_CPUSTATE_H

#include <ttmon/event.h>

#include "lib/base/util.h"

struct ttmon_cpustate;

/* states: nr_cpus elements of stride bytes, mapped read-only by the caller, who outlives this. */
int ttmon_cpustate_new(const void *states, size_t stride, uint32_t nr_cpus, struct ttmon_cpustate **ret) _must_check;
void ttmon_cpustate_free(struct ttmon_cpustate *s);
/*
 * Read all. A CPU that is in the middle of a slot that ends at or before upto_ns (T0 less the guard:
 * the watermark that this drain can reach), and whose state is not what was told last, is remembered
 * for ttmon_cpustate_tell(). Returns whether all could be read; false: one was being written
 * throughout (a virtual CPU taken off its core in the middle of a switch), then the watermark must not
 * go on this time.
 */
bool ttmon_cpustate_read(struct ttmon_cpustate *s, uint64_t upto_ns);
/*
 * After the drain: what is to be fed, as CPU_OPEN facts. gave_up: the watermark goes on without
 * something that could not be read, a state or the rest of a ring: what cannot be vouched for is
 * reported as UNKNOWN.
 */
void ttmon_cpustate_tell(struct ttmon_cpustate *s, uint64_t now_ns, bool gave_up,
			 void (*fn)(void *ctx, const void *rec, size_t size), void *ctx);
/*
 * The cold thread found these CPUs online (a bit each, nr_cpus of them, copied); those that went are
 * reported as OFFLINE. Any thread.
 */
void ttmon_cpustate_online(struct ttmon_cpustate *s, const uint64_t *bits);

struct ttmon_cpustate_sums {
	uint64_t switches, ticks, backwards, read_fails, unseen; /* over CPUs */
	uint64_t retries;					 /* of the sequence counts */
	uint64_t told;						 /* CPU_OPEN facts */
	uint32_t seen;						 /* CPUs that switched at least once */
};
void ttmon_cpustate_get_sums(const struct ttmon_cpustate *s, struct ttmon_cpustate_sums *ret);

#endif
