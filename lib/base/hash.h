/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hash.h: FNV-1a with 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv), and the hashes of call sites
 * that are made of it. Pure. Not for keys that a traced program may choose in a table without a seed.
 */
#ifndef TTMON_HASH_H
#define TTMON_HASH_H

#include "lib/base/util.h"

/* What a hash begins with. */
#define TTMON_FNV_BASIS 0xcbf29ce484222325ULL
#define TTMON_FNV_PRIME 0x100000001b3ULL

/* The hash with the n bytes at data after what is in it already. */
static inline uint64_t ttmon_fnv(uint64_t hash, const void *data, size_t n)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * TTMON_FNV_PRIME;
	return hash;
}

/* The same with a number, as its 8 bytes in little-endian order. */
static inline uint64_t ttmon_fnv_u64(uint64_t hash, uint64_t v)
{
	for (unsigned int i = 0; i < 8; i++)
		hash = (hash ^ (uint8_t)(v >> (8 * i))) * TTMON_FNV_PRIME;
	return hash;
}

/*
 * The hashes of lib/read/run.h, one step at a time, innermost frame first, TTMON_RUN_KEY_FRAMES of
 * them: begin with TTMON_FNV_BASIS. A frame without a build-id (build_id_len 0) makes the hash 0, not
 * known, and what is 0 stays so.
 */
uint64_t ttmon_site_hash_frame(uint64_t hash, const uint8_t *build_id, uint8_t build_id_len, uint64_t offset);
/* name: the function, or the object's base name. */
uint64_t ttmon_site_hash_name(uint64_t hash, const char *name);

#endif
