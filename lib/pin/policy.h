/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/pin/policy.h: computes what a pinning policy would have cost in a run that was traced. Pure:
 * tables in, figures out.
 *
 * The simulation covers the host memory that the program requested from CUDA or an announced allocator
 * (host_alloc, registered, pool, custom), with the lifetimes and transfers that were seen. Mappings
 * (mmap) are pageable under every policy except HINDSIGHT: they count in the transfers, not in the
 * pages. A registration of a live custom allocation at its address is the same memory and is counted
 * once. Peaks are in whole 4 KiB pages, with each allocation rounded up by itself, over all processes
 * at one time; processes do not reuse each other's pages.
 *
 * HINDSIGHT. Pinning a set of allocations while they live gains what their transfers save. It costs
 * pinning as many pages as are live at one time, by one call for each process: with hindsight freed
 * pages are always reused. Mappings that were copied are included. Of all sets of the form "all
 * allocations that save at least x per page", the one with the highest gain is taken; then allocations
 * that fit below its peak without more pages are added, best first. An allocation that was never
 * copied is never included. Memory that a kernel may read in place is always included, as in ADVICE.
 *
 * HINDSIGHT is not always the optimum: the best choice of whole allocations is a knapsack problem, too
 * large to solve for a million of them. So every result also has `least_pages`: every choice that
 * moves as many bytes from pinned memory (and keeps the in-place ones) pins at least this many pages
 * at one time; policy_best.c computes it. peak_pages / least_pages bounds how far a policy can be from
 * the optimum at its own share of pinned transfers.
 */
#ifndef TTMON_LIB_POLICY_H
#define TTMON_LIB_POLICY_H

#include "lib/pin/profile.h"
#include "lib/read/run.h"

#define TTMON_POLICY_PAGE 4096u

#define TTMON_POLICY_TABLE(X)                                                                                          \
	X(NONE, "pin nothing", "all memory is pageable")                                                               \
	X(ALL, "pin everything", "each allocation is pinned while it lives")                                           \
	X(PYTORCH, "PyTorch cache", "power-of-two blocks, cached, never split, used again when their copies are done") \
	X(HINDSIGHT, "hindsight",                                                                                      \
	  "what pays is pinned, while it lives, by what it did in this very run; pages used again")                    \
	X(ADVICE, "this advice", "by what the profile said beforehand, in pieces of few pinned regions")
enum ttmon_policy {
#define X(NAME, name, help) TTMON_POLICY_##NAME,
	TTMON_POLICY_TABLE(X)
#undef X
		TTMON_POLICY_MAX
};
const char *ttmon_policy_name(unsigned int policy);
const char *ttmon_policy_help(unsigned int policy);

struct ttmon_policy_cfg {
	struct ttmon_cost cost;
	/*
	 * PyTorch's options, in bytes, 0: no limit. Requests above the first are not rounded up
	 * (pinned_max_round_threshold_mb); blocks above the second are freed at once instead of cached
	 * (pinned_max_cached_size_mb).
	 */
	uint64_t torch_round_max, torch_cached_max;
	const struct ttmon_profile *profile; /* for ADVICE */
	unsigned int min_match;		     /* weakest enum ttmon_match that is used; 0: TTMON_MATCH_NAMES */
};

struct ttmon_policy_result {
	/* number of calls that pin, and that unpin; memory that ends with its process needs no call */
	uint64_t pins, unpins;
	uint64_t pages_pinned;	      /* pages pinned by all calls together */
	uint64_t peak_pages, peak_ns; /* the most pages at one time; the time */
	uint64_t mean_pages;	      /* mean over the time of the capture */
	/* every choice with as many bytes from pinned memory has at least this peak; 0 for NONE */
	uint64_t least_pages;
	uint64_t requested_peak; /* the most bytes of requests pinned at one time */
	uint64_t reserved_peak;	 /* the most bytes at one time of the blocks that have or had these requests */
	/* all transfers between host and device; those from or to pinned memory */
	uint64_t moved_bytes, moved_pinned_bytes;
	int64_t transfer_ns, pinning_ns; /* times by the cost model; pinning: for pages and calls */
	/*
	 * calls_ns: part of pinning for calls; wait_ns: only ADVICE: waits for copies of pieces that are
	 * needed again
	 */
	int64_t calls_ns, wait_ns;
	uint64_t allocs, pinned_allocs; /* number of simulated allocations; of these, pinned */
	uint64_t in_place_kept;		/* pinned although cold, because a kernel may read them in place */
	uint64_t in_place_seen;		/* of these, those that a kernel was seen to read */
	uint64_t left_out; /* ADVICE: should be pinned but left pageable, because the free pieces were too small */
	uint64_t unknown;  /* ADVICE: allocations that the profile does not know: left as the program had them */
};

/*
 * Returns 0, -ENOMEM, or -EINVAL (ADVICE without a profile, or a rate of 0). *ret is not changed on
 * failure.
 */
int ttmon_policy_simulate(const struct ttmon_run *run, enum ttmon_policy policy, const struct ttmon_policy_cfg *cfg,
			  struct ttmon_policy_result *ret) _must_check;

/*
 * What the advice says of an allocation of the run, and whether it is pinned by it. order: its place
 * among those of its method in its process, from
 * 0. False for memory that is not simulated.
 */
bool ttmon_policy_advised(const struct ttmon_run *run, const struct ttmon_run_alloc *a, uint32_t order,
			  const struct ttmon_policy_cfg *cfg, struct ttmon_answer *ret);

#endif
