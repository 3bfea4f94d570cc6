/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/pin/policy.h: what a way of pinning would have cost in a run that was traced. Pure: tables in,
 * figures out.
 *
 * What is simulated: the host memory that the program asked for from CUDA or an announced allocator
 * (host_alloc, registered, pool, custom), with the life times and transfers that were seen. Mappings
 * (mmap) are pageable under every policy but HINDSIGHT: they count in the transfers, not in the pages.
 * A registration of a custom allocation, at its address and while it lived, is the same memory: it is
 * counted once. Peaks are of whole 4 KiB pages, each allocation rounded up by itself, over all
 * processes at one time; nothing is used again between processes.
 *
 * HINDSIGHT. To pin a set of allocations while they live gains what their transfers save, and costs
 * the pinning of as many pages as live at one time, by one call for each process: with hindsight a
 * page that was given back is always found again. Mappings that were moved are among them. Of the sets
 * "all that save at least so much per page" the one is taken that gains most; what also fits below its
 * peak comes in for nothing, best first. Never in it: what was never copied. Always in it, as in
 * ADVICE: memory that a kernel may read in place.
 *
 * Is it the optimum? The best choice of whole allocations is a knapsack, which nobody solves for a
 * million of them. So every result says `least_pages`
 * too: at least as many pages are pinned at one time under any choice that gives as many bytes from
 * pinned memory (and keeps the in-place ones); how that is known is in policy_best.c. peak_pages /
 * least_pages bounds how far from the optimum a policy can be, at the share of pinned transfers that
 * it has itself.
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
	 * PyTorch, bytes, 0: no limit. Requests past either are not rounded up
	 * (pinned_max_round_threshold_mb), blocks past the second are given back at once instead of cached
	 * (pinned_max_cached_size_mb).
	 */
	uint64_t torch_round_max, torch_cached_max;
	const struct ttmon_profile *profile; /* for ADVICE */
	unsigned int min_match;		     /* weakest enum ttmon_match that counts; 0: TTMON_MATCH_NAMES */
};

struct ttmon_policy_result {
	uint64_t pins, unpins; /* calls that pin, and that take that back; what ends with its process is no call */
	uint64_t pages_pinned; /* in all of them together */
	uint64_t peak_pages, peak_ns; /* at one time; when */
	uint64_t mean_pages;	      /* over the capture */
	uint64_t least_pages;	      /* any choice with as many pinned bytes has this peak or a higher one; 0: NONE */
	uint64_t requested_peak;      /* bytes asked for, pinned, at one time */
	uint64_t reserved_peak;	      /* bytes of the blocks that hold or held them, at one time */
	uint64_t moved_bytes, moved_pinned_bytes; /* all transfers between host and device; those of pinned memory */
	int64_t transfer_ns, pinning_ns;	  /* by the cost model; pinning: pages and calls */
	int64_t calls_ns, wait_ns;	/* of pinning: the calls; ADVICE: for copies of pieces that were needed again */
	uint64_t allocs, pinned_allocs; /* simulated; of these, pinned */
	uint64_t in_place_kept;		/* pinned though cold: a kernel may read them in place */
	uint64_t in_place_seen;		/* of these, that a kernel was seen to */
	uint64_t
		left_out; /* ADVICE: advised to be pinned, and left pageable: what was free lay in pieces that were too small */
	uint64_t unknown; /* ADVICE: allocations that the profile knows nothing of: left as the program had them */
};

/* -ENOMEM, -EINVAL (ADVICE without a profile, a rate of 0). *ret is untouched on failure. */
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
