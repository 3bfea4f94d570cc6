/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hmap.h: hash table from a 64-bit key to a 64-bit value, open addressing with linear probing. Grows,
 * and shrinks when it has become empty. The order inside is never shown to anybody: results must not
 * depend on it.
 */
#ifndef TTMON_HMAP_H
#define TTMON_HMAP_H

#include "lib/base/util.h"

#define TTMON_HMAP_NONE UINT64_MAX /* not a value */

struct ttmon_hmap_entry {
	uint64_t key, val;
};

struct ttmon_hmap {
	struct ttmon_hmap_entry *v;
	size_t n, cap; /* cap: a power of two */
};

/* Spreads the bits of x over all 64; also used to make one key out of several numbers. */
static inline uint64_t ttmon_mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* Where this key is, or would be; there is always a free place. */
static inline size_t ttmon_hmap_slot(const struct ttmon_hmap *m, uint64_t key)
{
	size_t i = ttmon_mix64(key) & (m->cap - 1);

	while (m->v[i].val != TTMON_HMAP_NONE && m->v[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return i;
}

/* Sets or replaces. -ENOMEM leaves the table as it was. */
int ttmon_hmap_put(struct ttmon_hmap *m, uint64_t key, uint64_t val) _must_check;
static inline uint64_t ttmon_hmap_get(const struct ttmon_hmap *m, uint64_t key)
{
	return m->n ? m->v[ttmon_hmap_slot(m, key)].val : TTMON_HMAP_NONE;
}
/* Returns the value that was there. */
uint64_t ttmon_hmap_del(struct ttmon_hmap *m, uint64_t key);
void ttmon_hmap_fini(struct ttmon_hmap *m);

#endif
