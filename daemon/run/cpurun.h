/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpurun.h: the cold side of CPU time: the source of RMIDs, CPUs that come and go. A run without --cpu
 * does not have it.
 */
#ifndef TTMON_CPURUN_H
#define TTMON_CPURUN_H

#include "daemon/io/rdt/rmids.h"
#include "daemon/run/daemon.h"

extern const struct ttmon_part ttmon_part_cpu;

/* False: CPU time is not measured. */
bool ttmon_cpurun_info(const struct ttmon_daemon *c, struct ttmon_rmids_info *ret);

#endif
