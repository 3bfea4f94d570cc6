/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * resctrl.h: monitoring groups of the kernel's resctrl file system
 * (Documentation/filesystems/resctrl.rst). Cold thread; may block for as long as the kernel takes (a
 * kworker's round trip a file), hence rarely called.
 *
 * Groups are mon_groups/ttmon-NAME under the root. Groups of other programs are never changed or
 * removed, and no task is moved out of one: a task that is in such a group stays there, which is
 * reported.
 */
#ifndef TTMON_RESCTRL_H
#define TTMON_RESCTRL_H

#include <ttmon/event.h>

#include "daemon/io/host/facts.h"
#include "lib/base/util.h"

struct ttmon_resctrl;

/*
 * What Intel's CPUs report for a package besides its caches (info/PERF_PKG_MON): energy of the cores
 * in J, activity in F.
 */
enum ttmon_resctrl_telemetry { TTMON_RESCTRL_ENERGY, TTMON_RESCTRL_ACTIVITY, TTMON_RESCTRL_TELEMETRY };

struct ttmon_resctrl_cfg {
	const char *root;      /* NULL: /sys/fs/resctrl */
	const char *proc_root; /* NULL: /proc */
	bool by_cgroup;
	unsigned int hz; /* 1..10, 0: 4 */
	ttmon_fact_fn fact;
	void *ctx;
};

/*
 * Checks that it is mounted there, with L3 monitoring. 0, or -ENODEV with a line that says what is
 * missing and what to do.
 */
int ttmon_resctrl_check(const char *root, char *why, size_t n) _must_check;
/*
 * Removes groups left by earlier daemons (ttmon-*, whose daemon is gone), reads limits, sends
 * RMID_INFO.
 */
int ttmon_resctrl_new(const struct ttmon_resctrl_cfg *cfg, struct ttmon_resctrl **ret) _must_check;
/* Removes its own groups. */
void ttmon_resctrl_free(struct ttmon_resctrl *r);
/*
 * A traced process: gets a group of its own (its present and later threads; its children until they
 * are reported themselves).
 */
void ttmon_resctrl_proc(struct ttmon_resctrl *r, uint32_t tgid, uint64_t start_ns);
void ttmon_resctrl_exit(struct ttmon_resctrl *r, uint32_t tgid);
/*
 * Makes readings that are due, retries groups that wait for an RMID (ENOSPC, EBUSY: limbo), finds new
 * threads.
 */
void ttmon_resctrl_tick(struct ttmon_resctrl *r, uint64_t now_ns);

struct ttmon_resctrl_info {
	uint32_t max_rmid, groups, waiting;
	uint64_t exhausted, readings, failed_readings, foreign; /* foreign: tasks left in another program's group */
	uint64_t skipped;  /* readings that were due but not made because the time of a tick was up */
	uint64_t lost;	   /* groups that had disappeared (unmounted, or removed by others), and are made again */
	uint64_t assigned; /* bandwidth counters assigned to a group of ours for which the kernel had none at first */
	uint32_t telemetry_has;			     /* 1 << TTMON_RESCTRL_ENERGY .. */
	uint64_t telemetry[TTMON_RESCTRL_TELEMETRY]; /* sums over our groups, in millionths */
	bool hw_ids;	    /* RMIDs are the hardware's; else ids of our own: mon_hw_id needs a mount with -o debug */
	const char *reason; /* borrowed until the next call; "" */
};
void ttmon_resctrl_get_info(const struct ttmon_resctrl *r, struct ttmon_resctrl_info *ret);

#endif
