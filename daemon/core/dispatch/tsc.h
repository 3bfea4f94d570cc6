/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tsc.h: the host's time stamp counter onto CLOCK_MONOTONIC, from readings (TSC facts): some builds of
 * tt-metal tell the host's side of a clock pair in its ticks. Pure. The same line through pairs as for
 * a device (clocksync.h), at other frequencies.
 */
#ifndef TTMON_TSC_H
#define TTMON_TSC_H

#include <ttmon/event.h>

#include "daemon/core/dispatch/clocksync.h"

struct ttmon_tsc {
	struct ttmon_clocksync sync;
};

void ttmon_tsc_init(struct ttmon_tsc *t);
/* False: refused. */
bool ttmon_tsc_add(struct ttmon_tsc *t, const struct ttmon_ev_tsc *ev);
/* False: there are no two readings yet. */
bool ttmon_tsc_map(const struct ttmon_tsc *t, uint64_t ticks, uint64_t *mono_ns, uint64_t *error_ns);

#endif
