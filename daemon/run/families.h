/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * families.h: the cold side of probe families and of the budget: which families are on, only counted
 * or off, and why. Once a second it applies core/usage/budget.h. Cold thread.
 */
#ifndef TTMON_FAMILIES_H
#define TTMON_FAMILIES_H

#include <ttmon/family.h>

#include "lib/base/names.h"
#include "lib/base/quota.h"

#include "daemon/core/usage/budget.h"
#include "daemon/run/daemon.h"

extern const struct ttmon_part ttmon_part_families;

struct ttmon_family_view {
	enum ttmon_family_state state;
	const char *why;   /* "", "budget", or `asked for` */
	uint64_t since_ns; /* begin of this state */
	uint64_t hits;	   /* events plus counted hits */
	uint64_t counted;  /* hits that were only counted: calls, however many events they would have made */
	uint64_t run_cnt, run_ns;
};

const char *ttmon_family_help(enum ttmon_family family);
bool ttmon_family_countable(enum ttmon_family family);
/*
 * For a process whose transfers are reduced, one transfer in 2^n is reported, chosen at random: with
 * 64 reported ones the standard error is an eighth.
 */
#define TTMON_FAMILY_SAMPLE 6
const char *ttmon_family_state_name(enum ttmon_family_state state);

/*
 * Sets a state on a user's request; the user goes into the log, and the budget no longer changes the
 * family. -EINVAL: the family cannot have that state; -ENOENT: it was not loaded; others: it could not
 * be attached, and is off. why (size n) gets one line.
 */
int ttmon_families_set(struct ttmon_daemon *c, enum ttmon_family family, enum ttmon_family_state state, uid_t uid,
		       char *why, size_t n) _must_check;
/* False in a replay, which has no families: all are ABSENT. */
bool ttmon_families_exist(const struct ttmon_daemon *c);
void ttmon_families_get(const struct ttmon_daemon *c, enum ttmon_family family, struct ttmon_family_view *ret);
/* A process is announced, before its events are handled: reductions of its user apply to it. */
void ttmon_families_met(struct ttmon_daemon *c, uint32_t tgid, uint64_t start_ns);
/*
 * Users whose calls the budget has only counted, by how often; rows has room for TTMON_QUOTA_ROWS.
 * Returns their number.
 */
uint32_t ttmon_families_quotas(const struct ttmon_daemon *c, struct ttmon_quota_row *rows);
/* False: there is no budget, and all fields are 0. */
bool ttmon_families_budget(const struct ttmon_daemon *c, struct ttmon_budget_view *ret);

#endif
