/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hash.h: the 64-bit FNV-1a hash (Fowler, Noll, Vo; draft-eastlake-fnv), and the hashes of call sites
 * that are made with it. Pure. Do not use it without a seed for a table whose keys a traced program
 * can choose.
 */
#ifndef TTMON_HASH_H
#define TTMON_HASH_H

#include "lib/base/util.h"

/* Initial value of a hash. */
#define TTMON_FNV_BASIS 0xcbf29ce484222325ULL
#define TTMON_FNV_PRIME 0x100000001b3ULL

/* Returns the hash continued with the n bytes at data. */
static inline uint64_t ttmon_fnv(uint64_t hash, const void *data, size_t n)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ p[i]) * TTMON_FNV_PRIME;
	return hash;
}

/* The same with a number, as 8 bytes in little-endian order. */
static inline uint64_t ttmon_fnv_u64(uint64_t hash, uint64_t v)
{
	for (unsigned int i = 0; i < 8; i++)
		hash = (hash ^ (uint8_t)(v >> (8 * i))) * TTMON_FNV_PRIME;
	return hash;
}

/*
 * Computes the hashes of lib/read/run.h one frame at a time, innermost first, TTMON_RUN_KEY_FRAMES
 * frames. Begin with TTMON_FNV_BASIS. A frame without a build-id (build_id_len 0) makes the hash 0
 * (not known), and it stays 0.
 */
uint64_t ttmon_site_hash_frame(uint64_t hash, const uint8_t *build_id, uint8_t build_id_len, uint64_t offset);
/* name: the function, or the base name of the object. */
uint64_t ttmon_site_hash_name(uint64_t hash, const char *name);
/* The same with the distance from the function's beginning. */
uint64_t ttmon_site_hash_near(uint64_t hash, const char *name, uint64_t delta);
/*
 * Ends any of these hashes if lines of Python belong to the stack that are not known: such a site is
 * another one than a stack with the same native frames alone.
 */
uint64_t ttmon_site_hash_python(uint64_t hash);

#endif
