/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * profile_int.h: shared by profile.c (lookups) and profile_make.c (construction); included only by
 * them.
 */
#ifndef TTMON_LIB_PROFILE_INT_H
#define TTMON_LIB_PROFILE_INT_H

#include "lib/base/hmap.h"
#include "lib/pin/profile.h"

/* Ways to look up an entry. */
enum ttmon_profile_way {
	TTMON_WAY_NAME_EXACT,
	TTMON_WAY_NAME_SITE,
	TTMON_WAY_EXACT,
	TTMON_WAY_SITE,
	TTMON_WAY_SITE_ANY, /* any size */
	TTMON_WAY_NEAR,
	TTMON_WAY_NEAR_ANY, /* any size */
	TTMON_WAY_NAMES,
	TTMON_WAY_NAMES_ANY,
	TTMON_WAY_LEAF,
	TTMON_WAY_ORDER,
	TTMON_WAY_MAX,
	TTMON_WAY_HAS = TTMON_WAY_MAX, /* only the frames of a call site: the entry is the index of the site */
};

struct ttmon_profile_entry {
	int64_t gain_ns;
	uint64_t h2d_bytes; /* mean over the allocations */
	float confidence;
	uint32_t runs;
	uint32_t member, nr; /* index and number in p->members */
	uint8_t verdict, match, in_place, alone;
};

struct ttmon_profile_slot {
	uint64_t key;
	uint32_t entry; /* TTMON_RUN_NONE: empty */
};

struct ttmon_profile {
	uint64_t seed;
	struct ttmon_profile_slot *slots; /* open addressing, a power of two, at most half full */
	size_t mask;
	struct ttmon_profile_entry *entries;
	size_t nr_entries, cap_entries;
	struct ttmon_profile_member *members;
	size_t nr_members, cap_members;
	struct ttmon_profile_site *sites;
	size_t nr_sites;
	struct ttmon_run_frame *frames;
	struct ttmon_run_object *objects;
	size_t nr_objects;
	char *text; /* names of frames and objects */
	struct ttmon_profile_totals totals;
};

TTMON_FREEP(ttmon_profile_freep, struct ttmon_profile, ttmon_profile_free);

/* Returns the strictest match that a way can claim. */
static inline uint8_t ttmon_profile_way_match(unsigned int way)
{
	static const uint8_t matches[TTMON_WAY_MAX] = {
		[TTMON_WAY_NAME_EXACT] = TTMON_MATCH_EXACT, [TTMON_WAY_NAME_SITE] = TTMON_MATCH_SITE,
		[TTMON_WAY_EXACT] = TTMON_MATCH_EXACT,	    [TTMON_WAY_SITE] = TTMON_MATCH_SITE,
		[TTMON_WAY_SITE_ANY] = TTMON_MATCH_NAMES,   [TTMON_WAY_NAMES] = TTMON_MATCH_NAMES,
		[TTMON_WAY_NEAR] = TTMON_MATCH_NAMES,	    [TTMON_WAY_NEAR_ANY] = TTMON_MATCH_NAMES,
		[TTMON_WAY_NAMES_ANY] = TTMON_MATCH_NAMES,  [TTMON_WAY_LEAF] = TTMON_MATCH_NAMES,
		[TTMON_WAY_ORDER] = TTMON_MATCH_ORDER,
	};

	return matches[way];
}

/*
 * Computes the key of an allocation for this way; false: it has none. ordinal: as this way counts it.
 */
bool ttmon_profile_way_key(const struct ttmon_profile *p, enum ttmon_profile_way way,
			   const struct ttmon_profile_key *key, uint32_t ordinal, uint64_t *ret);
uint64_t ttmon_profile_has_key(const struct ttmon_profile *p, uint64_t exact);
/* Makes the hash table of all entries by their keys, and of the sites. Returns 0 or -ENOMEM. */
int ttmon_profile_make_slots(struct ttmon_profile *p, const uint64_t *keys) _must_check;
/* Returns the entry with this key, or NULL. */
const struct ttmon_profile_entry *ttmon_profile_get(const struct ttmon_profile *p, uint64_t key);
/* Returns whether an allocation belongs in a profile: mappings and device memory do not. */
bool ttmon_profile_wants(const struct ttmon_run_alloc *a);

#endif
