/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * groups.h: groups the memory of a run in the same way as ttmond (daemon/core/history/advice.c), and
 * gives each group its verdict, which the tools show. Groups, figures and rule are the same as in the
 * daemon, so that a database gives the same verdicts. Allocations that were folded are not included.
 */
#ifndef TTMON_LIB_GROUPS_H
#define TTMON_LIB_GROUPS_H

#include "lib/read/run.h"
#include "lib/verdict/verdict.h"

struct ttmon_pin_group {
	uint32_t proc, site;
	uint8_t method;
	const char *name; /* of a mapping, or of an allocator's memory without a known site; borrowed; may be NULL */
	uint32_t first;	  /* index of its first allocation */
	uint64_t size, bytes; /* size of the largest allocation, of all */
	struct ttmon_memory m;
	struct ttmon_said said;
};

struct ttmon_pin_groups {
	struct ttmon_cost cost;
	struct ttmon_pin_group *v;
	uint32_t n;
	uint32_t *of; /* group of each allocation of the run; TTMON_RUN_NONE: there is no advice for it */
};

/*
 * cost NULL: as measured from the run's own pins, else the defaults; the daemon does the same. Returns
 * 0 or -ENOMEM. Free *ret with ttmon_pin_groups_free().
 */
int ttmon_pin_groups_new(const struct ttmon_run *run, const struct ttmon_cost *cost,
			 struct ttmon_pin_groups **ret) _must_check;
void ttmon_pin_groups_free(struct ttmon_pin_groups *g);
/* Returns the verdict for an allocation's group; NULL: there is none. */
const struct ttmon_said *ttmon_pin_groups_said(const struct ttmon_pin_groups *g, size_t alloc);

/* Adds the times of the run's pins and unpins. */
void ttmon_groups_see(const struct ttmon_run *run, struct ttmon_cost_seen *seen);
/* Adds an allocation to a sum; peaks are not changed. */
void ttmon_groups_add(struct ttmon_memory *m, const struct ttmon_run *run, const struct ttmon_run_alloc *a);
/* Returns the pages that have to be pinned: for a large mapping only those that were touched. */
uint64_t ttmon_groups_pages(const struct ttmon_run_alloc *a);

TTMON_FREEP(ttmon_pin_groups_freep, struct ttmon_pin_groups, ttmon_pin_groups_free);

#endif
