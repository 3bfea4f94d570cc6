/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * policy_int.h: shared by the parts of lib/pin/policy: a run as lives with pages and transfers, and
 * the sums over them.
 */
#ifndef TTMON_LIB_POLICY_INT_H
#define TTMON_LIB_POLICY_INT_H

#include "lib/pin/policy.h"

/* An allocation that is simulated. Its size is limited to the address space of a process. */
struct ttmon_policy_life {
	uint64_t from_ns, to_ns; /* from_ns is less than to_ns */
	uint64_t ready_ns;	 /* when asynchronous copies from it are done; 0: there were none */
	uint64_t size, pages;
	uint64_t bytes; /* both directions together */
	uint32_t alloc; /* index in the run's allocations */
	uint32_t proc;
	bool keep;   /* may be read in place, so it is never unpinned early */
	bool at_end; /* it is not freed before the run ends */
	bool apart;  /* for ADVICE: keep is set, or the profile says that it should be */
	bool alone;  /* for ADVICE: it pays to pin it individually */
	bool pinned;
};

struct ttmon_policy_sim {
	const struct ttmon_run *run;
	const struct ttmon_policy_cfg *cfg;
	struct ttmon_policy_life *v; /* sorted by from_ns */
	uint32_t *ends;		     /* indexes sorted by to_ns */
	uint32_t n;
	bool maps;	      /* include mappings: hindsight knows which pageable memory was worth pinning */
	uint64_t other_bytes; /* bytes of transfers of host memory that is not simulated */
};

/* Pages pinned now, their peak, and their sum over time. */
struct ttmon_policy_meter {
	uint64_t pages, reserved, requested;
	uint64_t since_ns;
	double page_ns;
	struct ttmon_policy_result *r;
};
void ttmon_policy_meter_add(struct ttmon_policy_meter *m, uint64_t now_ns, int64_t pages, int64_t reserved,
			    int64_t requested);

/* At equal times, ends come before beginnings. */
struct ttmon_policy_walk {
	uint32_t begun, ended;
};
static inline bool ttmon_policy_next(const struct ttmon_policy_sim *s, struct ttmon_policy_walk *w, uint32_t *i,
				     bool *begins)
{
	if (w->ended == s->n)
		return false;
	*begins = w->begun < s->n && s->v[w->begun].from_ns < s->v[s->ends[w->ended]].to_ns;
	*i = *begins ? w->begun++ : s->ends[w->ended++];
	return true;
}

/* ns that a byte from pinned memory saves, and ns that pinning a page costs. */
static inline double ttmon_policy_saves(const struct ttmon_cost *cost)
{
	return 1e9 / (double)cost->pageable_bps - 1e9 / (double)cost->pinned_bps;
}
static inline double ttmon_policy_page_ns(const struct ttmon_cost *cost)
{
	return TTMON_POLICY_PAGE * 1e9 / (double)cost->pinning_bps;
}

/* policy_best.c: sets `pinned` of each life. Returns 0 or -ENOMEM. */
int ttmon_policy_hindsight(struct ttmon_policy_sim *s) _must_check;
/*
 * Computes `least_pages` for the choice in `pinned`, whose peak is at peak_ns. Returns 0 or -ENOMEM.
 */
int ttmon_policy_least(const struct ttmon_policy_sim *s, uint64_t peak_ns, uint64_t *ret) _must_check;

/*
 * These serve the lives that are `pinned`: policy_pool.c from PyTorch's cache; policy_region.c from
 * regions. They return 0 or -ENOMEM.
 */
int ttmon_policy_torch(const struct ttmon_policy_sim *s, struct ttmon_policy_meter *m) _must_check;
int ttmon_policy_regions(struct ttmon_policy_sim *s, uint64_t known_pages, struct ttmon_policy_meter *m) _must_check;

#endif
