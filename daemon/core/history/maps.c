// SPDX-License-Identifier: GPL-2.0-only
/*
 * maps.c: see maps.h. A process has some hundreds of executable mappings and each distinct call stack
 * is looked up once, so a linear search of a plain array is enough.
 */
#include "daemon/core/history/maps.h"

static int reserve(struct ttmon_maps *m, uint32_t n)
{
	struct ttmon_xmap *v;
	uint32_t cap;

	if (n > TTMON_MAPS_MAX)
		return -ENOSPC;
	if (n <= m->cap)
		return 0;
	cap = MAX(n, m->cap ? m->cap * 2 : 16);
	v = realloc(m->v, cap * sizeof(*v));
	if (!v)
		return -ENOMEM;
	m->v = v;
	m->cap = cap;
	return 0;
}

static bool same(const struct ttmon_xmap *a, const struct ttmon_xmap *b)
{
	return a->start == b->start && a->end == b->end && a->pgoff == b->pgoff &&
	       (a->object == b->object || !a->object || !b->object);
}

int ttmon_maps_add(struct ttmon_maps *m, const struct ttmon_xmap *map, uint64_t ts_ns)
{
	struct ttmon_xmap next = *map;
	int err;

	next.from_ns = next.seen_ns = ts_ns;
	next.to_ns = TTMON_MAPS_OPEN;
	for (uint32_t i = 0; i < m->n; i++) {
		struct ttmon_xmap *x = &m->v[i];

		if (x->to_ns != TTMON_MAPS_OPEN || !same(x, &next))
			continue;
		/* Reported again, perhaps now with its file. */
		if (x->object != next.object && next.object) {
			x->object = next.object;
			m->gen++;
		}
		x->from_ns = MIN(x->from_ns, ts_ns);
		x->seen_ns = MAX(x->seen_ns, ts_ns);
		return 0;
	}
	err = reserve(m, m->n + 1);
	if (err)
		return err;
	for (uint32_t i = 0; i < m->n; i++) {
		struct ttmon_xmap *x = &m->v[i];

		if (x->end <= next.start || next.end <= x->start)
			continue;
		if (x->from_ns > ts_ns)
			next.to_ns = MIN(next.to_ns, x->from_ns);
		else if (x->to_ns == TTMON_MAPS_OPEN) {
			x->to_ns = ts_ns;
			m->ended++;
		}
	}
	m->ended += next.to_ns != TTMON_MAPS_OPEN;
	m->v[m->n++] = next;
	m->gen++;
	return 0;
}

void ttmon_maps_end(struct ttmon_maps *m, uint64_t ts_ns)
{
	for (uint32_t i = 0; i < m->n; i++) {
		struct ttmon_xmap *x = &m->v[i];

		/*
		 * The kernel maps a program before it reports the exec, and a list of what is mapped may come in
		 * before that is delivered.
		 */
		if (x->to_ns != TTMON_MAPS_OPEN || x->seen_ns >= ts_ns)
			continue;
		x->to_ns = ts_ns;
		m->ended++;
	}
	m->gen++;
}

static bool barred(uint64_t from, uint64_t to, const uint64_t *barriers, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (barriers[i] > from && barriers[i] <= to)
			return true;
	return false;
}

const struct ttmon_xmap *ttmon_maps_find(const struct ttmon_maps *m, uint64_t addr, uint64_t ts_ns,
					 const uint64_t *barriers, uint32_t nr_barriers)
{
	const struct ttmon_xmap *then = NULL, *later = NULL;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct ttmon_xmap *x = &m->v[i];

		if (addr < x->start || addr >= x->end)
			continue;
		if (x->from_ns <= ts_ns) {
			if (ts_ns < x->to_ns && (!then || x->from_ns > then->from_ns))
				then = x;
		} else if ((!later || x->from_ns < later->from_ns) &&
			   !barred(ts_ns, x->from_ns, barriers, nr_barriers)) {
			later = x;
		}
	}
	return then ? then : later;
}

int ttmon_maps_inherit(struct ttmon_maps *m, const struct ttmon_maps *parent, uint64_t ts_ns)
{
	for (uint32_t i = 0; i < parent->n; i++) {
		if (parent->v[i].from_ns <= ts_ns && ts_ns < parent->v[i].to_ns) {
			int err = ttmon_maps_add(m, &parent->v[i], ts_ns);

			if (err)
				return err;
		}
	}
	return 0;
}

void ttmon_maps_prune(struct ttmon_maps *m, uint64_t ts_ns)
{
	uint32_t n = 0;

	if (!m->ended)
		return;
	for (uint32_t i = 0; i < m->n; i++)
		if (m->v[i].to_ns >= ts_ns)
			m->v[n++] = m->v[i];
	if (n == m->n)
		return;
	m->ended -= m->n - n;
	m->n = n;
	m->gen++;
}

void ttmon_maps_fini(struct ttmon_maps *m)
{
	free(m->v);
	*m = (struct ttmon_maps){ .gen = m->gen + 1 };
}
