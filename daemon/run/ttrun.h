/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ttrun.h: the Tenstorrent part of a run: chips and identity, the published files, spare probes. Cold
 * thread.
 */
#ifndef TTMON_TTRUN_H
#define TTMON_TTRUN_H

#include "daemon/core/tt/tt.h"
#include "daemon/io/tt/shm.h"
#include "daemon/run/daemon.h"

extern const struct ttmon_part ttmon_part_tt;

struct ttmon_ttrun_view {
	const struct ttmon_tt_view *tt; /* as of the last tick that found a change */
	const struct ttmon_ttshm_report *shm;
	size_t nr_shm;
};
/* False: the run does not have this part; all fields are NULL. */
bool ttmon_ttrun_get(const struct ttmon_daemon *c, struct ttmon_ttrun_view *ret);

#endif
