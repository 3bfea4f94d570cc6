/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * budget.h: --max-overhead: which families are reduced to counting, and when they come back. Pure, a sample a second.
 *
 * Cost is the time of the BPF programs plus the daemon's own, as a share of the host's CPU time. The daemon's is shared among the families
 * by their events. Over budget for three samples in a row: the dearest family that can be counted goes (one at a time, then the cost is looked
 * at again). A family comes back when the cost has been under the budget less what it is thought to need again (its hits a second now times
 * what a hit did cost) for as long as its pause: 10 s at first, doubled each time it has to go again within a minute of coming back, at most
 * 10 minutes.
 */
#ifndef TTMON_BUDGET_H
#define TTMON_BUDGET_H

#include <ttmon/family.h>

#include "util/util.h"

struct ttmon_budget;

struct ttmon_budget_cfg {
	double max_percent; /* of all CPUs; 0: no budget, nothing is ever reduced */
	uint32_t cpus;
};

struct ttmon_budget_sample {
	uint64_t now_ns;
	uint64_t daemon_ns;		   /* CPU time of the daemon, cumulative */
	uint64_t bpf_ns[TTMON_FAMILY_MAX]; /* run time of each family's programs, cumulative */
	uint64_t hits[TTMON_FAMILY_MAX];   /* events and counted hits of each, cumulative */
	uint32_t countable; /* families (1 << family) that are on or counting by our doing, and may be reduced */
};

struct ttmon_budget_view {
	double percent, daemon_percent, bpf_percent; /* of the last sample's second; 0 before the second sample */
	double family_percent[TTMON_FAMILY_MAX];
	uint32_t counting;		    /* families (1 << family) that are to be counted only now */
	uint64_t reduced[TTMON_FAMILY_MAX]; /* how often, since the start */
	bool over;			    /* over budget and nothing is left to be reduced */
};

int ttmon_budget_new(const struct ttmon_budget_cfg *cfg, struct ttmon_budget **ret) _must_check;
void ttmon_budget_free(struct ttmon_budget *b);
/* Returns whether view->counting or ->over has changed. A sample that is not later than the last one only takes its place. */
bool ttmon_budget_sample(struct ttmon_budget *b, const struct ttmon_budget_sample *s);
/* All come back, and pauses are as at first; what was counted stays. */
void ttmon_budget_reset(struct ttmon_budget *b);
void ttmon_budget_get(const struct ttmon_budget *b, struct ttmon_budget_view *ret);

#endif
