/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * groups.h: the memory of a run in the groups that ttmond judges (daemon/core/history/advice.c), each
 * with its verdict: what the tools show. The same groups, figures and rule, so that a database says
 * what the daemon said; what was folded is not in it.
 */
#ifndef TTMON_LIB_GROUPS_H
#define TTMON_LIB_GROUPS_H

#include "lib/read/run.h"
#include "lib/verdict/verdict.h"

struct ttmon_pin_group {
	uint32_t proc, site;
	uint8_t method;
	const char *name;     /* of a mapping, or of an allocator's memory whose site is not known; borrowed; NULL */
	uint32_t first;	      /* its first allocation */
	uint64_t size, bytes; /* of the largest, of all */
	struct ttmon_memory m;
	struct ttmon_said said;
};

struct ttmon_pin_groups {
	struct ttmon_cost cost;
	struct ttmon_pin_group *v;
	uint32_t n;
	uint32_t *of; /* of each allocation of the run: its group; TTMON_RUN_NONE: nothing is to be said of it */
};

/*
 * cost NULL: what the run's own pins took, else the defaults: that is what the daemon takes. -ENOMEM.
 * Free with ttmon_pin_groups_free().
 */
int ttmon_pin_groups_new(const struct ttmon_run *run, const struct ttmon_cost *cost,
			 struct ttmon_pin_groups **ret) _must_check;
void ttmon_pin_groups_free(struct ttmon_pin_groups *g);
/* The verdict on an allocation's group; NULL: there is none. */
const struct ttmon_said *ttmon_pin_groups_said(const struct ttmon_pin_groups *g, size_t alloc);

/* What the run's pins and unpins took. */
void ttmon_groups_see(const struct ttmon_run *run, struct ttmon_cost_seen *seen);
/* One more allocation in a sum: all but the peaks. */
void ttmon_groups_add(struct ttmon_memory *m, const struct ttmon_run *run, const struct ttmon_run_alloc *a);
/* Pages of it that have to be pinned: of a large mapping those that were touched. */
uint64_t ttmon_groups_pages(const struct ttmon_run_alloc *a);

TTMON_FREEP(ttmon_pin_groups_freep, struct ttmon_pin_groups, ttmon_pin_groups_free);

#endif
