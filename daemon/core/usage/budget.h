/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * budget.h: --max-overhead: what is reduced to counting, and when it comes back. Pure, a sample a
 * second.
 *
 * Cost is the CPU time of the daemon's threads plus the run time of the BPF programs, as a share of
 * the host's CPU time. What the daemon takes for the records of events is shared among the families by
 * their records; the rest (rounds, discovery, writers) is the base, which belongs to none, and for
 * which nothing is reduced. What HTTP clients ask for does not count: who asks much is no reason to
 * tell less of others.
 *
 * Over budget in the mean of ten seconds: one thing is reduced, then ten seconds are looked at again.
 * The dearest of what can be counted goes, but transfers only where no other family would bring a
 * quarter of what is too much, and nothing that would not bring a tenth of it. Where one process makes
 * at least half of a family's hits, the family is reduced in that process alone; else, where hits are
 * counted by user, in all processes of the user who makes most of those that are still told.
 *
 * Of several users only those pay who cost more than the budget divided by their number, and the one
 * who costs most: what one of them does, that cannot be reduced or is nobody's, is no reason to tell
 * less of the others. A family is reduced as a whole where that is worth it without those who need not
 * pay: many users who cost little each.
 *
 * A reduction that has not brought half of
 * what it promised after three seconds is undone, and not tried again for a minute.
 *
 * It comes back when the cost has been under the budget less what it is thought to need again (its
 * hits now times what a hit did cost) for as long as its pause: 10 s, doubled each time it has to go
 * again within a minute of coming back, at most 10 minutes; always 10 s where it needs less than a
 * tenth of the budget, because its load is over.
 */
#ifndef TTMON_BUDGET_H
#define TTMON_BUDGET_H

#include <ttmon/family.h>

#include "lib/base/util.h"

/* Reductions at one time. */
#define TTMON_BUDGET_MAX 16

struct ttmon_budget;

struct ttmon_budget_cfg {
	double max_percent; /* of all CPUs; 0: no budget, nothing is ever reduced */
	uint32_t cpus;
	uint64_t period_ns; /* of the samples, and of all times above; 0: a second */
};

#define TTMON_BUDGET_NOBODY UINT32_MAX
/* Users that are told of. */
#define TTMON_BUDGET_USERS 8

/* A family that is only counted: of process tgid (not 0) of user uid; of user uid; of all (NOBODY). */
struct ttmon_reduction {
	uint32_t family, tgid, uid;
};

struct ttmon_budget_sample {
	uint64_t now_ns;
	uint64_t daemon_ns;		    /* CPU time of the daemon without what it did for clients, cumulative */
	uint64_t records_ns;		    /* of it, what was spent on records; at most daemon_ns */
	uint64_t bpf_ns[TTMON_FAMILY_MAX];  /* run time of each family's programs, cumulative */
	uint64_t hits[TTMON_FAMILY_MAX];    /* calls, else runs of them, whether they only count or not, cumulative */
	uint64_t records[TTMON_FAMILY_MAX]; /* of each that the daemon has taken, cumulative */
	uint32_t countable; /* families (1 << family) that are on or counting by our doing, and may be reduced */
	/*
	 * Since the last sample: the process (0: none) with most of the family's hits, and which share of
	 * them.
	 */
	struct {
		uint32_t tgid, uid;
		double share;
	} top[TTMON_FAMILY_MAX];
	/*
	 * How many users had hits since the last sample, and those of them who had most: their share of each
	 * family's hits, and what of that is still told. counted: the share of all that is told no more, of
	 * single processes and users.
	 */
	uint32_t nr_users;
	struct {
		uint32_t uid;
		double share[TTMON_FAMILY_MAX], told[TTMON_FAMILY_MAX];
	} users[TTMON_BUDGET_USERS];
	double counted[TTMON_FAMILY_MAX];
	/*
	 * Of view.reductions, in their order: hits of the process or the user since the last sample; whether
	 * it is gone.
	 */
	struct {
		uint64_t hits;
		bool gone;
	} reduced[TTMON_BUDGET_MAX];
};

struct ttmon_budget_view {
	double max_percent;
	double percent, daemon_percent, bpf_percent; /* of the last sample's second; 0 before the second sample */
	double base_percent;			     /* of it: what no family causes */
	double family_percent[TTMON_FAMILY_MAX];     /* of the BPF programs of each */
	struct ttmon_reduction reductions[TTMON_BUDGET_MAX];
	unsigned int nr;
	uint64_t reduced[TTMON_FAMILY_MAX]; /* how often, since the start */
	bool over;			    /* over budget, and nothing that could be reduced would help */
};

int ttmon_budget_new(const struct ttmon_budget_cfg *cfg, struct ttmon_budget **ret) _must_check;
void ttmon_budget_free(struct ttmon_budget *b);
/* Returns whether view->reductions or ->over has changed. A sample that is not later than the last one only takes its place. */
bool ttmon_budget_add_sample(struct ttmon_budget *b, const struct ttmon_budget_sample *s);
/* All come back, and pauses are as at first; what was counted stays. */
void ttmon_budget_reset(struct ttmon_budget *b);
void ttmon_budget_get(const struct ttmon_budget *b, struct ttmon_budget_view *ret);

#endif
