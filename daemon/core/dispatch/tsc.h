/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tsc.h: maps the host's time stamp counter to CLOCK_MONOTONIC, from readings (TSC facts). Some builds
 * of tt-metal report the host's side of a clock pair in its ticks. Pure. Uses the same fit as for a
 * device (clocksync.h), with other frequency limits.
 */
#ifndef TTMON_TSC_H
#define TTMON_TSC_H

#include <ttmon/event.h>

#include "daemon/core/dispatch/clocksync.h"

struct ttmon_tsc {
	struct ttmon_clocksync sync;
};

void ttmon_tsc_init(struct ttmon_tsc *t);
/* False: the reading was refused. */
bool ttmon_tsc_add(struct ttmon_tsc *t, const struct ttmon_ev_tsc *ev);
/* False: fewer than two readings yet. */
bool ttmon_tsc_map(const struct ttmon_tsc *t, uint64_t ticks, uint64_t *mono_ns, uint64_t *error_ns);

#endif
