/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * budget.h: the rule of --max-overhead: what is reduced to counting, and when it comes back. Pure; it
 * takes one sample per second.
 *
 * The cost is the CPU time of the daemon's threads plus the run time of the BPF programs, as a share
 * of the host's CPU time. The time that the daemon spends on the records of events is divided among
 * the families by their records. The rest (rounds, discovery, writers) is the base. It belongs to no
 * family, and nothing is reduced because of it. The time spent on requests of HTTP clients does not
 * count, so a client with many requests does not cause other data to be reduced.
 *
 * If the mean cost of ten seconds is over the budget, one thing is reduced, and the next ten seconds
 * are observed. The reduction that saves most is selected. But transfers are reduced only if no other
 * family would save a quarter of the excess, and nothing is reduced that would save less than a tenth
 * of it. If one process makes at least half of a family's hits, the family is reduced in that process
 * alone. Otherwise, if hits are counted by user, it is reduced in all processes of the user with most
 * hits that are still reported.
 *
 * If there are several users, only users whose cost is higher than the budget divided by their number,
 * and the user with the highest cost, may be reduced. Thus a user whose cost cannot be reduced, or a
 * cost that belongs to no user, does not cause the others to be reduced. A family is reduced as a
 * whole if this saves enough without the hits of users that may not be reduced: the case of many users
 * with a small cost each.
 *
 * A reduction that has not saved half of the expected cost after three seconds is undone, and not
 * tried again for a minute.
 *
 * A reduction is undone when the cost plus its expected cost (its present hits times the former cost
 * of a hit) has been under the budget for as long as its pause. The pause is 10 s. It is doubled, up
 * to 10 minutes, each time the family is reduced again within a minute after it came back. It is
 * always 10 s if the expected cost is less than a tenth of the budget, because then the load is over.
 */
#ifndef TTMON_BUDGET_H
#define TTMON_BUDGET_H

#include <ttmon/family.h>

#include "lib/base/util.h"

/* Largest number of reductions at one time. */
#define TTMON_BUDGET_MAX 16

struct ttmon_budget;

struct ttmon_budget_cfg {
	double max_percent; /* of all CPUs; 0: no budget, nothing is ever reduced */
	uint32_t cpus;
	uint64_t period_ns; /* period of the samples, which scales all times above; 0: one second */
};

#define TTMON_BUDGET_NOBODY UINT32_MAX
/* Largest number of users in a sample. */
#define TTMON_BUDGET_USERS 8

/*
 * A family that is only counted: in process tgid (not 0) of user uid; for user uid; or everywhere
 * (`NOBODY`).
 */
struct ttmon_reduction {
	uint32_t family, tgid, uid;
};

struct ttmon_budget_sample {
	uint64_t now_ns;
	uint64_t daemon_ns;		    /* CPU time of the daemon except for requests of clients, cumulative */
	uint64_t records_ns;		    /* the part of it that was spent on records; at most daemon_ns */
	uint64_t bpf_ns[TTMON_FAMILY_MAX];  /* run time of each family's programs, cumulative */
	uint64_t hits[TTMON_FAMILY_MAX];    /* calls, or else runs of its programs, counted ones too; cumulative */
	uint64_t records[TTMON_FAMILY_MAX]; /* records of each that the daemon has read, cumulative */
	uint32_t countable; /* families (1 << family) that are on, or that this rule counts, and that may be reduced */
	/*
	 * The process with most of the family's hits since the last sample (0: none), and its share of them.
	 */
	struct {
		uint32_t tgid, uid;
		double share;
	} top[TTMON_FAMILY_MAX];
	/*
	 * The number of users with hits since the last sample, and the users with most hits among them: their
	 * share of each family's hits, and the part of it that is still reported. counted: the share of all
	 * hits that is no longer reported because of reductions of single processes and users.
	 */
	uint32_t nr_users;
	struct {
		uint32_t uid;
		double share[TTMON_FAMILY_MAX], told[TTMON_FAMILY_MAX];
	} users[TTMON_BUDGET_USERS];
	double counted[TTMON_FAMILY_MAX];
	/*
	 * For each row of view.reductions, in their order: the hits of the process or user since the last
	 * sample, and whether the process has ended.
	 */
	struct {
		uint64_t hits;
		bool gone;
	} reduced[TTMON_BUDGET_MAX];
};

struct ttmon_budget_view {
	double max_percent;
	double percent, daemon_percent, bpf_percent; /* during the last sample's second; 0 before the second sample */
	double base_percent;			     /* the part of percent that no family causes */
	double family_percent[TTMON_FAMILY_MAX];     /* run time of the BPF programs of each family */
	struct ttmon_reduction reductions[TTMON_BUDGET_MAX];
	unsigned int nr;
	uint64_t reduced[TTMON_FAMILY_MAX]; /* number of reductions since the start */
	bool over;			    /* the cost is over budget, and no possible reduction would help */
};

int ttmon_budget_new(const struct ttmon_budget_cfg *cfg, struct ttmon_budget **ret) _must_check;
void ttmon_budget_free(struct ttmon_budget *b);
/*
 * Returns true if view->reductions or view->over has changed. A sample that is not later than the last
 * one only replaces it.
 */
bool ttmon_budget_add_sample(struct ttmon_budget *b, const struct ttmon_budget_sample *s);
/* Undoes all reductions and resets the pauses. Counts stay. */
void ttmon_budget_reset(struct ttmon_budget *b);
void ttmon_budget_get(const struct ttmon_budget *b, struct ttmon_budget_view *ret);

#endif
