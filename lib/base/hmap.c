// SPDX-License-Identifier: GPL-2.0-only
/*
 * hmap.c: see hmap.h. Used by the history in the hot thread. Deletion moves later entries of the run
 * back, so there are no tombstones, and a table that is used for months stays as fast as a new one.
 */
#include "lib/base/hmap.h"

#define HMAP_MIN 16

static int hmap_resize(struct ttmon_hmap *m, size_t cap)
{
	struct ttmon_hmap next = { .n = m->n, .cap = cap };

	next.v = malloc(cap * sizeof(*next.v));
	if (!next.v)
		return -ENOMEM;
	for (size_t i = 0; i < cap; i++)
		next.v[i] = (struct ttmon_hmap_entry){ .val = TTMON_HMAP_NONE };
	for (size_t i = 0; i < m->cap; i++)
		if (m->v[i].val != TTMON_HMAP_NONE)
			next.v[ttmon_hmap_slot(&next, m->v[i].key)] = m->v[i];
	free(m->v);
	*m = next;
	return 0;
}

int ttmon_hmap_put(struct ttmon_hmap *m, uint64_t key, uint64_t val)
{
	size_t i;

	if (m->cap == 0 || (m->n + 1) * 4 > m->cap * 3) {
		int err = hmap_resize(m, m->cap ? m->cap * 2 : HMAP_MIN);

		if (err)
			return err;
	}
	i = ttmon_hmap_slot(m, key);
	m->n += m->v[i].val == TTMON_HMAP_NONE;
	m->v[i] = (struct ttmon_hmap_entry){ key, val };
	return 0;
}

uint64_t ttmon_hmap_del(struct ttmon_hmap *m, uint64_t key)
{
	size_t mask = m->cap - 1, hole, i;
	uint64_t val;

	if (!m->n)
		return TTMON_HMAP_NONE;
	hole = ttmon_hmap_slot(m, key);
	val = m->v[hole].val;
	if (val == TTMON_HMAP_NONE)
		return val;
	for (i = (hole + 1) & mask; m->v[i].val != TTMON_HMAP_NONE; i = (i + 1) & mask) {
		size_t home = ttmon_mix64(m->v[i].key) & mask;

		/* An entry whose home is after the hole (cyclically) must stay. */
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		m->v[hole] = m->v[i];
		hole = i;
	}
	m->v[hole].val = TTMON_HMAP_NONE;
	if (--m->n == 0 && m->cap > 1024)
		ttmon_hmap_fini(m);
	return val;
}

void ttmon_hmap_fini(struct ttmon_hmap *m)
{
	free(m->v);
	*m = (struct ttmon_hmap){ 0 };
}
