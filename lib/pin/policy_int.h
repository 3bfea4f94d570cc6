/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * policy_int.h: the parts of lib/pin/policy share this: a run as lives with pages and transfers, and
 * what they add up to.
 */
#ifndef TTMON_LIB_POLICY_INT_H
#define TTMON_LIB_POLICY_INT_H

#include "lib/pin/policy.h"

/* An allocation that is simulated. Sizes are cut to what a process can address. */
struct ttmon_policy_life {
	uint64_t from_ns, to_ns; /* from < to */
	uint64_t ready_ns;	 /* asynchronous copies from it are done; 0: there were none */
	uint64_t size, pages;
	uint64_t bytes; /* to the device and from it */
	uint32_t alloc; /* index in the run */
	uint32_t proc;
	bool keep;   /* may be read in place: its pin is never taken away */
	bool at_end; /* it is not freed before the run ends */
	bool apart;  /* advice: the same, or the profile takes it for that */
	bool alone;  /* advice: it pays to pin it by itself */
	bool pinned;
};

struct ttmon_policy_sim {
	const struct ttmon_run *run;
	const struct ttmon_policy_cfg *cfg;
	struct ttmon_policy_life *v; /* by from_ns */
	uint32_t *ends;		     /* indexes by to_ns */
	uint32_t n;
	bool maps;	      /* mappings are lives too: hindsight knows what of ordinary memory paid */
	uint64_t other_bytes; /* to the device and from it, of host memory that is not simulated */
};

/* What is pinned now, its peak, and its sum over time. */
struct ttmon_policy_meter {
	uint64_t pages, reserved, requested;
	uint64_t since_ns;
	double page_ns;
	struct ttmon_policy_result *r;
};
void ttmon_policy_meter_add(struct ttmon_policy_meter *m, uint64_t now_ns, int64_t pages, int64_t reserved,
			    int64_t requested);

/* Ends come before beginnings of the same time. */
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

/* What a byte from pinned memory saves, and what a page costs to pin, in ns. */
static inline double ttmon_policy_saves(const struct ttmon_cost *cost)
{
	return 1e9 / (double)cost->pageable_bps - 1e9 / (double)cost->pinned_bps;
}
static inline double ttmon_policy_page_ns(const struct ttmon_cost *cost)
{
	return TTMON_POLICY_PAGE * 1e9 / (double)cost->pinning_bps;
}

/* policy_best.c: sets `pinned` of each life. -ENOMEM. */
int ttmon_policy_hindsight(struct ttmon_policy_sim *s) _must_check;
/* The bound `least_pages`, for the choice that `pinned` is and its peak at peak_ns. -ENOMEM. */
int ttmon_policy_least(const struct ttmon_policy_sim *s, uint64_t peak_ns, uint64_t *ret) _must_check;

/*
 * Those that are `pinned`: policy_pool.c, from PyTorch's cache; policy_region.c, as pieces of regions.
 * -ENOMEM.
 */
int ttmon_policy_torch(const struct ttmon_policy_sim *s, struct ttmon_policy_meter *m) _must_check;
int ttmon_policy_regions(struct ttmon_policy_sim *s, uint64_t known_pages, struct ttmon_policy_meter *m) _must_check;

#endif
