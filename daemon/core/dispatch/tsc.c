// SPDX-License-Identifier: GPL-2.0-only
/*
 * tsc.c: see tsc.h. Hot thread. A reading of the TSC lies between two readings of the clock: its time
 * is their middle, its error half their distance. A reading that took longer than SLOW_NS was
 * interrupted; it is used until there is a better one.
 */
#include "daemon/core/dispatch/tsc.h"

#define SLOW_NS 20000

void ttmon_tsc_init(struct ttmon_tsc *t)
{
	ttmon_clocksync_init(&t->sync);
	/* From the 25 MHz timers of arm64 and virtual machines to the fastest of today. */
	t->sync.ghz_lo = 0.01;
	t->sync.ghz_hi = 10.0;
}

bool ttmon_tsc_add(struct ttmon_tsc *t, const struct ttmon_ev_tsc *ev)
{
	uint64_t took = ev->h.ts_ns - ev->from_ns;
	struct ttmon_sync_pair p = {
		.host_ns = ev->from_ns + took / 2,
		.cycles = ev->tsc,
		.error_ns = (uint32_t)(took / 2 + 1),
	};

	if (took > NSEC_PER_SEC || (took > SLOW_NS && t->sync.n >= 2))
		return false;
	return ttmon_clocksync_add(&t->sync, &p);
}

bool ttmon_tsc_map(const struct ttmon_tsc *t, uint64_t ticks, uint64_t *mono_ns, uint64_t *error_ns)
{
	return ttmon_clocksync_map(&t->sync, ticks, mono_ns, error_ns);
}
