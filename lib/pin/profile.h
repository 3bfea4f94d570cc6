/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/pin/profile.h: runs merged into what an allocation is likely to do the next time, and whether it
 * should be pinned. Immutable once made: lookups from any thread, without locks. `ttmon advise`
 * simulates by it and libttmon answers by it: there is one rule.
 *
 * Identity has levels (enum ttmon_match of <ttmon/client.h>), tried from the strictest:
 *	EXACT	exact frames, size, ordinal within (process, site, size); or name, size and ordinal
 *	SITE	exact frames and size (or name and size): all ordinals together
 *	NAMES	exact frames, of another size; function names of the frames and size class (the power of two at or above the size); else the innermost function alone and size class,
 *		where the runs know one way to it (a rebuilt program has other functions inlined further out); else the names alone
 *	ORDER	API, size and place in the order of allocations of that API: for allocations whose frames have no names
 *
 * The two strictest claim to be right, so they are only claimed where the runs show that they can be:
 *	- Ordinals mean something if all allocations of a site and size were there at one time, as many in every process that had any; if there is
 *	  one of them, or the stack goes back to main(), which is one thread (the database does not say which thread allocated); if the stack is
 *	  not cut; and if each ordinal was worth pinning in all runs and processes or in none. Then the ordinal's own history gives the verdict.
 *	  EXACT is claimed of it where there is one allocation, or where several runs agree: with one run and several allocations the claim is SITE,
 *	  as nothing shows that their order does not come from the input. Where ordinals mean nothing the site's history answers.
 *	- A site (or name) that asked for more than one size takes it as an argument: with another batch size the same bytes can be another
 *	  buffer. What is known of that size still gives the verdict; the claim is NAMES.
 *	- A frame in an object without a build-id is no exact frame.
 *
 * The rule: a group is worth pinning if its transfers, both ways, would take less time from pinned
 * instead of pageable memory by more than pinning costs. That is the smaller of: pinning once the most
 * pages of the group that lived at one time (a pool gives freed ones out again); and the sum of what
 * each allocation has to pay as one of its call site, whose pages go round between all sizes: of
 * pinning the most pages that the site's transferred memory had at one time a share by pages and life
 * time, but all of its own pages where it was never transferred. Of one page or less, those that such
 * pages of the site are not needed more for (the most at one time is reached without them) share what
 * they have to pay by what they move, if they pay for it together: a site that pays decides of its
 * small sizes. Gains are averaged over the runs in which the program ran. Runs with losses count 0.7.
 *
 * Confidence is that of the level (EXACT 1, SITE 0.9, NAMES 0.7, by the innermost function or without
 * the size class 0.5, ORDER 0.4), times the evidence (n / (n + 2) for n transfers; age / (age + 1 s)
 * where they do not pay, of all ages together), times completeness (0.7 for runs with losses and for
 * memory older than the trace, 0.5 for provisional mappings), times the share of allocations that
 * would get the same verdict each by itself.
 *
 * Mappings (mmap) are not in it: nobody asks an allocator for them, and their call site is that of a
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
 * What a lookup is by. Hashes as in lib/read/run.h; 0: not known. name: NULL or the allocator's own.
 */
struct ttmon_profile_key {
	uint64_t exact, names, leaf;
	const char *name;
	uint64_t size;
	uint32_t ordinal; /* within process, site (or name) and size */
	uint32_t order;	  /* among the allocations of this method in the process, TTMON_RUN_NONE: not known */
	uint8_t method;	  /* enum ttmon_method; 0: not known */
};

/*
 * Runs of the same or of other programs; they need not live on. -ENOMEM, -EINVAL (no runs, a cost of
 * 0), -E2BIG (600 million allocations).
 */
int ttmon_profile_new(const struct ttmon_run *const *runs, size_t n, const struct ttmon_cost *cost,
		      struct ttmon_profile **ret) _must_check;
void ttmon_profile_free(struct ttmon_profile *p);
/* Hot path: no lock, no allocation. Always fills *ret (but ordinal and site). */
void ttmon_profile_lookup(const struct ttmon_profile *p, const struct ttmon_profile_key *key, struct ttmon_answer *ret);
/*
 * Which level a key is found at, and which allocation of which run it is, as far as the level says;
 * for `ttmon db match` and the tests.
 */
struct ttmon_profile_member {
	uint32_t run, alloc; /* indexes */
};
struct ttmon_profile_found {
	uint8_t match;
	uint32_t run, alloc; /* TTMON_RUN_NONE where many are meant (SITE with several ordinals, NAMES) */
	uint32_t candidates; /* how many allocations are meant */
	const struct ttmon_profile_member *members; /* they, ascending: borrowed */
};
void ttmon_profile_find(const struct ttmon_profile *p, const struct ttmon_profile_key *key,
			struct ttmon_profile_found *ret);
/* The key of an allocation of a run. order: as counted by the caller, or TTMON_RUN_NONE. */
void ttmon_profile_key_of(const struct ttmon_run *run, const struct ttmon_run_alloc *a, uint32_t order,
			  struct ttmon_profile_key *ret);

struct ttmon_profile_totals {
	size_t runs, entries, sites;
	/*
	 * The most that was worth pinning at one time in one process, by the rule, over the runs: whole pages.
	 * Without what kernels may read in place.
	 */
	uint64_t peak_pin_pages;
};
/*
 * The same of the memory of these call sites alone, by their keys (sites NULL: of all), over runs that
 * the profile was made of. -ENOMEM; *ret_pages is untouched then.
 */
int ttmon_profile_peak(const struct ttmon_profile *p, const struct ttmon_run *const *runs, size_t n,
		       const uint64_t *sites, size_t nr_sites, uint64_t *ret_pages) _must_check;
void ttmon_profile_get_totals(const struct ttmon_profile *p, struct ttmon_profile_totals *ret);
/*
 * Is there any entry whose frames or names have this hash? For who translates addresses ahead of time.
 */
bool ttmon_profile_has_site(const struct ttmon_profile *p, uint64_t exact);
/* The frames of all sites, for the same: object base name, build-id, offset, function. Borrowed. */
size_t ttmon_profile_sites(const struct ttmon_profile *p);
struct ttmon_profile_site {
	uint64_t exact, names;
	const struct ttmon_run_frame *frames; /* object: index for ttmon_profile_object() */
	uint32_t nframes;		      /* at most TTMON_RUN_KEY_FRAMES */
};
void ttmon_profile_get_site(const struct ttmon_profile *p, size_t i, struct ttmon_profile_site *ret);
const struct ttmon_run_object *ttmon_profile_object(const struct ttmon_profile *p, uint32_t i);

/*
 * Pages that a pool of pinned blocks may hold, live and cached, where so many are worth pinning at one
 * time. A little more: cached blocks seldom fit exactly, and what does not is pinned again. For the
 * same reason a block is given out to whom two thirds of it would do. (Workload churn of
 * tests/bench/pinning.py: with nothing to spare and an eighth, twice as many pages are pinned in all;
 * with a sixteenth to spare half as many, but more at one time than this is to save.)
 */
static inline uint64_t ttmon_pool_pages(uint64_t peak_pages)
{
	return peak_pages + peak_pages / 32;
}
#define TTMON_POOL_FIT(pages) ((pages) + (pages) / 2)

#endif
