/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/pin/profile.h: merges runs into a profile, which says what an allocation is likely to do in the
 * next run and whether it should be pinned. A profile is immutable once made: lookups from any thread,
 * without locks. `ttmon advise` simulates with it and libttmon answers from it, so both follow one
 * rule.
 *
 * An allocation of another run is identified on levels (enum ttmon_match of <ttmon/client.h>), tried
 * from the strictest:
 *	EXACT	exact frames, size, ordinal within (process, site, size); or name, size and ordinal
 *	SITE	exact frames and size (or name and size): all ordinals together
 *	NAMES	exact frames with another size; function names of the frames and places in the functions
 *		(`near` of lib/read/run.h) with the size class (the power of two at or above the size),
 *		else with any size; function names and size class; else only the names; else only the
 *		innermost function and size class, if the runs know one way to it (in a rebuilt program
 *		other functions may be inlined further out)
 *	ORDER	API, size and position among the allocations of that API, if the frames have no names
 *
 * The two strictest levels claim that this is the same allocation, so they are only used where the
 * runs show that it can be:
 *	- Ordinals distinguish allocations under these conditions. All allocations of a site and size
 *	  were live at one time, the same number in every process that had any. There is only one, or
 *	  the stack goes back to main(), which is one thread (the database does not have the thread of
 *	  an allocation). The stack is not cut. Each ordinal was worth pinning in all runs and
 *	  processes or in none. Then the ordinal's own history gives the verdict. EXACT is claimed if
 *	  there is one allocation, or if several runs agree. With one run and several allocations the
 *	  claim is SITE, because their order may depend on the input. Without these conditions the
 *	  history of the site gives the verdict.
 *	- A site (or name) with several sizes takes the size as an argument: with another batch size,
 *	  the same number of bytes can be another buffer. The history of that size still gives the
 *	  verdict, but the claim is NAMES.
 *	- A frame in an object without a build-id is not exact.
 *
 * The rule: a group is worth pinning if its transfers, in both directions, would take less time from
 * pinned than from pageable memory by more than the cost of pinning. That cost is the smaller of two.
 * The first is pinning once the most pages of the group that were live at one time (a pool reuses
 * freed ones). The second is the sum over its allocations of their part in the cost of the call site,
 * whose pages are shared by all sizes: for a transferred allocation a share, by pages and lifetime, of
 * pinning the most pages of the site's transferred memory at one time; for an allocation that was
 * never transferred, the cost of its own pages. Allocations of at most a page that do not raise the
 * site's peak share their cost by the bytes that they move, if together they pay for it: so a site
 * that pays decides for its small sizes. Gains are averaged over the runs in which the program ran. A
 * run with losses has the weight 0.7.
 *
 * Confidence is the product of: the level (EXACT 1, SITE 0.9, NAMES 0.7, by the innermost function or
 * without the size class 0.5, ORDER 0.4); the evidence (n / (n + 2) for n transfers; age / (age + 1 s)
 * if they do not pay, over all ages together); completeness (0.7 for runs with losses and for memory
 * older than the trace, 0.5 for provisional mappings); and the share of allocations that would get the
 * same verdict individually.
 *
 * Mappings (mmap) are not included: no allocator returns them, and their call site is that of a
 * copy.
 */
#ifndef TTMON_LIB_PROFILE_H
#define TTMON_LIB_PROFILE_H

#include <ttmon/client.h>

#include "lib/base/hash.h"
#include "lib/read/run.h"
#include "lib/verdict/verdict.h"

struct ttmon_profile;

/*
 * The key of a lookup. Hashes as in lib/read/run.h; 0: not known. name: the allocator's own, or NULL.
 */
struct ttmon_profile_key {
	uint64_t exact, names, near, leaf;
	const char *name;
	uint64_t size;
	uint32_t ordinal; /* within process, site (or name) and size */
	uint32_t order;	  /* position among the allocations of this method in the process, TTMON_RUN_NONE: not known */
	uint8_t method;	  /* enum ttmon_method; 0: not known */
};

/*
 * Makes a profile from runs of one or several programs; the runs can be freed afterwards. Returns 0,
 * -ENOMEM, -EINVAL (no runs, a cost of 0), or -E2BIG (600 million allocations).
 */
int ttmon_profile_new(const struct ttmon_run *const *runs, size_t n, const struct ttmon_cost *cost,
		      struct ttmon_profile **ret) _must_check;
void ttmon_profile_free(struct ttmon_profile *p);
/*
 * Looks up an answer. For hot paths: no lock, no allocation. Sets all of *ret except ordinal and site.
 */
void ttmon_profile_lookup(const struct ttmon_profile *p, const struct ttmon_profile_key *key, struct ttmon_answer *ret);
/*
 * The level at which a key is found, and which allocations of which runs match; for `ttmon db match`
 * and the tests.
 */
struct ttmon_profile_member {
	uint32_t run, alloc; /* indexes of the run and the allocation */
};
struct ttmon_profile_found {
	uint8_t match;
	uint32_t run, alloc; /* TTMON_RUN_NONE if there are several (SITE with several ordinals, NAMES) */
	uint32_t candidates; /* number of matching allocations */
	const struct ttmon_profile_member *members; /* these, in ascending order; borrowed */
};
void ttmon_profile_find(const struct ttmon_profile *p, const struct ttmon_profile_key *key,
			struct ttmon_profile_found *ret);
/* Makes the key of an allocation of a run. order: counted by the caller, or TTMON_RUN_NONE. */
void ttmon_profile_key_of(const struct ttmon_run *run, const struct ttmon_run_alloc *a, uint32_t order,
			  struct ttmon_profile_key *ret);

struct ttmon_profile_totals {
	size_t runs, entries, sites;
	/*
	 * The most pages of one process that were worth pinning at one time, by the rule, over the runs.
	 * Memory that kernels may read in place is not counted.
	 */
	uint64_t peak_pin_pages;
};
/*
 * The same for the memory of these call sites, given by their keys (sites NULL: all), over runs that
 * the profile was made from. Returns 0, or -ENOMEM, which leaves *ret_pages unchanged.
 */
int ttmon_profile_peak(const struct ttmon_profile *p, const struct ttmon_run *const *runs, size_t n,
		       const uint64_t *sites, size_t nr_sites, uint64_t *ret_pages) _must_check;
void ttmon_profile_get_totals(const struct ttmon_profile *p, struct ttmon_profile_totals *ret);
/*
 * Returns whether any entry's frames or names have this hash; used to translate addresses ahead of
 * time.
 */
bool ttmon_profile_has_site(const struct ttmon_profile *p, uint64_t exact);
/*
 * The same, if only these frames were traced of a longer stack: they are the innermost part of what a
 * deeper walk finds.
 */
bool ttmon_profile_has_inner_part(const struct ttmon_profile *p, uint64_t exact);
/*
 * The frames of all sites, for the same purpose: object base name, build-id, offset, function.
 * Borrowed.
 */
size_t ttmon_profile_sites(const struct ttmon_profile *p);
struct ttmon_profile_site {
	uint64_t exact, names;
	const struct ttmon_run_frame *frames; /* object: index for ttmon_profile_object() */
	uint32_t nframes;		      /* up to the last one that identifies it; some are plumbing */
	bool by_depth;
};
void ttmon_profile_get_site(const struct ttmon_profile *p, size_t i, struct ttmon_profile_site *ret);
const struct ttmon_run_object *ttmon_profile_object(const struct ttmon_profile *p, uint32_t i);

/*
 * Returns the pages that a pool of pinned blocks may hold, live and cached, if peak_pages are worth
 * pinning at one time. It is a little more, because cached blocks seldom fit exactly, and what does
 * not fit is pinned again. For the same reason a block may serve a request of two thirds of its size.
 * (Workload churn of tests/bench/pinning.py: with no extra pages and an eighth, twice as many pages
 * are pinned in all; with an extra sixteenth half as many, but more at one time than this is meant to
 * save.)
 */
static inline uint64_t ttmon_pool_pages(uint64_t peak_pages)
{
	return peak_pages + peak_pages / 32;
}
#define TTMON_POOL_FIT(pages) ((pages) + (pages) / 2)

#endif
