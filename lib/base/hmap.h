/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hmap.h: a hash table from 64-bit keys to 64-bit values, with open addressing and linear probing. It
 * grows as needed; a large table is freed when it becomes empty. Results must not depend on the order
 * of the entries inside.
 */
#ifndef TTMON_HMAP_H
#define TTMON_HMAP_H

#include "lib/base/util.h"

#define TTMON_HMAP_NONE UINT64_MAX /* means "no value"; cannot be stored */

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

/* Returns the place of this key, or the free place where it would go; there always is one. */
static inline size_t ttmon_hmap_slot(const struct ttmon_hmap *m, uint64_t key)
{
	size_t i = ttmon_mix64(key) & (m->cap - 1);

	while (m->v[i].val != TTMON_HMAP_NONE && m->v[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return i;
}

/* Sets or replaces a value. -ENOMEM: the table has not changed. */
int ttmon_hmap_put(struct ttmon_hmap *m, uint64_t key, uint64_t val) _must_check;
static inline uint64_t ttmon_hmap_get(const struct ttmon_hmap *m, uint64_t key)
{
	return m->n ? m->v[ttmon_hmap_slot(m, key)].val : TTMON_HMAP_NONE;
}
/* Deletes a key. Returns its value, or TTMON_HMAP_NONE. */
uint64_t ttmon_hmap_del(struct ttmon_hmap *m, uint64_t key);
void ttmon_hmap_fini(struct ttmon_hmap *m);

#endif
