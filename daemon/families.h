/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * families.h: the cold side of probe families and of the budget: who is on, who is counted only, who is off, and why. Once a second it asks
 * core/budget.h. Cold thread.
 */
#ifndef TTMON_FAMILIES_H
#define TTMON_FAMILIES_H

#include <ttmon/family.h>

#include "core/budget.h"

struct ttmon_run;
struct ttmon_families;

struct ttmon_family_view {
	enum ttmon_family_state state;
	const char *why;   /* "", "budget", "asked for" */
	uint64_t since_ns; /* of this state */
	uint64_t hits;	   /* events and counted hits */
	uint64_t counted;  /* hits that were only counted: calls, whatever events they would have made */
	uint64_t run_cnt, run_ns;
};

const char *ttmon_family_name(enum ttmon_family family);
const char *ttmon_family_help(enum ttmon_family family);
bool ttmon_family_countable(enum ttmon_family family);
const char *ttmon_family_state_name(enum ttmon_family_state state);

int ttmon_families_new(struct ttmon_run *c, struct ttmon_families **ret) _must_check;
void ttmon_families_free(struct ttmon_families *f);
void ttmon_families_tick(struct ttmon_families *f);
/*
 * As a person asks for; the budget leaves it alone from now on. -EINVAL: it cannot be in that state; -ENOENT: it was not loaded; others: it
 * could not be attached, and is off. why (size n) is one line.
 */
int ttmon_families_set(struct ttmon_families *f, enum ttmon_family family, enum ttmon_family_state state, char *why,
		       size_t n) _must_check;
/* SIGHUP: what the budget reduced comes back, what was asked for stays. */
void ttmon_families_reload(struct ttmon_families *f);
/* NULL is allowed: a replay has none; all are ABSENT then. */
void ttmon_families_get(const struct ttmon_families *f, enum ttmon_family family, struct ttmon_family_view *ret);
/* False: there is no budget, all is 0. */
bool ttmon_families_budget(const struct ttmon_families *f, struct ttmon_budget_view *ret);

#endif
