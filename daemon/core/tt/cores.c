// SPDX-License-Identifier: GPL-2.0-only
/*
 * cores.c: see cores.h. Addresses are split into segments where a buffer begins or ends; each segment
 * has a counter for each core. Segments that have become equal are joined again, so that their number
 * depends only on the buffers present.
 */
#include "daemon/core/tt/cores.h"
#include "lib/base/search.h"
#include "lib/base/grow.h"

static size_t cells(const struct ttmon_tt_cores *c)
{
	return (size_t)c->w * c->h;
}

bool ttmon_tt_cores_sane(const struct ttmon_tt_core_range *r, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		if (r[i].x0 > r[i].x1 || r[i].y0 > r[i].y1 || r[i].x1 >= TTMON_TT_GRID_MAX ||
		    r[i].y1 >= TTMON_TT_GRID_MAX)
			return false;
	return nr > 0;
}

static int grow_grid(struct ttmon_tt_cores *c, uint32_t w, uint32_t h)
{
	_cleanup_free_ uint32_t **fresh = NULL;

	if (w <= c->w && h <= c->h)
		return 0;
	w = MAX(w, c->w);
	h = MAX(h, c->h);
	if ((uint64_t)(c->n + 2) * w * h > TTMON_TT_CELLS_MAX)
		return -ENOSPC;
	fresh = calloc(c->n + 1, sizeof(*fresh));
	if (!fresh)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++) {
		if (!c->v[i].n)
			continue;
		fresh[i] = calloc((size_t)w * h, sizeof(**fresh));
		if (!fresh[i]) {
			while (i-- > 0)
				free(fresh[i]);
			return -ENOMEM;
		}
		for (uint32_t y = 0; y < c->h; y++)
			memcpy(fresh[i] + (size_t)y * w, c->v[i].n + (size_t)y * c->w, c->w * sizeof(uint32_t));
	}
	for (uint32_t i = 0; i < c->n; i++) {
		free(c->v[i].n);
		c->v[i].n = fresh[i];
	}
	c->w = w;
	c->h = h;
	return 0;
}

/* The first segment that begins at addr or after it. */
static uint32_t find(const struct ttmon_tt_cores *c, uint64_t addr)
{
	uint32_t lo = TTMON_SEARCH((uint32_t)0, c->n, mid, c->v[mid].at < addr);
	return lo;
}

/* Makes a segment begin at addr. */
static int split(struct ttmon_tt_cores *c, uint64_t addr, uint64_t cells_max)
{
	uint32_t i = find(c, addr);
	struct ttmon_tt_segment s = { .at = addr };

	if (i < c->n && c->v[i].at == addr)
		return 0;
	if ((c->n + 1) * (uint64_t)cells(c) > cells_max)
		return -ENOSPC;
	if (TTMON_GROW(c->v, c->cap, c->n + 1, 8))
		return -ENOMEM;
	if (i && c->v[i - 1].n) {
		s.n = malloc(cells(c) * sizeof(*s.n));
		if (!s.n)
			return -ENOMEM;
		memcpy(s.n, c->v[i - 1].n, cells(c) * sizeof(*s.n));
		s.covered = c->v[i - 1].covered;
	}
	memmove(c->v + i + 1, c->v + i, (c->n - i) * sizeof(*c->v));
	c->v[i] = s;
	c->n++;
	return 0;
}

/* True if segment i equals the one before it. */
static bool is_same(const struct ttmon_tt_cores *c, uint32_t i)
{
	const struct ttmon_tt_segment *b = &c->v[i], *a = i ? b - 1 : NULL;

	if (!b->covered || !a || !a->covered)
		return !b->covered && !(a && a->covered);
	return a->covered == b->covered && !memcmp(a->n, b->n, cells(c) * sizeof(*a->n));
}

/* Joins equal neighbours among the segments from `from` to `to`. */
static void join(struct ttmon_tt_cores *c, uint64_t from, uint64_t to)
{
	uint32_t first = find(c, from), keep = first, i;

	for (i = first; i < c->n && c->v[i].at <= to; i++) {
		struct ttmon_tt_segment s = c->v[i];

		if (!s.covered) {
			free(s.n);
			s.n = NULL;
		}
		c->v[keep] = s;
		if (is_same(c, keep))
			free(s.n);
		else
			keep++;
	}
	memmove(c->v + keep, c->v + i, (c->n - i) * sizeof(*c->v));
	c->n -= i - keep;
}

static void count(struct ttmon_tt_cores *c, struct ttmon_tt_segment *s, uint64_t len,
		  const struct ttmon_tt_core_range *r, bool more)
{
	for (uint32_t y = r->y0; y <= r->y1; y++)
		for (uint32_t x = r->x0; x <= r->x1; x++) {
			uint32_t *n = &s->n[(size_t)y * c->w + x];

			if (more ? (*n)++ == 0 : --*n == 0) {
				s->covered += more ? 1 : -1U;
				c->bytes += more ? len : -len;
			}
		}
}

static void count_all(struct ttmon_tt_cores *c, const struct ttmon_tt_core_range *r, uint32_t nr, uint64_t from,
		      uint64_t to, bool more)
{
	for (uint32_t i = find(c, from); i < c->n && c->v[i].at < to; i++)
		for (uint32_t k = 0; k < nr; k++)
			count(c, &c->v[i], c->v[i + 1].at - c->v[i].at, &r[k], more);
}

int ttmon_tt_cores_add(struct ttmon_tt_cores *c, const struct ttmon_tt_core_range *r, uint32_t nr, uint64_t from,
		       uint64_t to)
{
	uint32_t w = 0, h = 0;
	int err;

	for (uint32_t i = 0; i < nr; i++) {
		w = MAX(w, r[i].x1 + 1U);
		h = MAX(h, r[i].y1 + 1U);
	}
	err = grow_grid(c, w, h);
	if (!err)
		err = split(c, from, TTMON_TT_CELLS_MAX);
	if (!err)
		err = split(c, to, TTMON_TT_CELLS_MAX);
	for (uint32_t i = find(c, from); !err && i < c->n && c->v[i].at < to; i++)
		if (!c->v[i].n) {
			c->v[i].n = calloc(cells(c), sizeof(*c->v[i].n));
			err = c->v[i].n ? 0 : -ENOMEM;
		}
	if (!err)
		count_all(c, r, nr, from, to, true);
	join(c, from, to);
	return err;
}

void ttmon_tt_cores_sub(struct ttmon_tt_cores *c, const struct ttmon_tt_core_range *r, uint32_t nr, uint64_t from,
			uint64_t to)
{
	/*
	 * Both boundaries may have been joined away because their neighbours were equal. Without memory to
	 * split again, the range stays covered.
	 */
	if (split(c, from, UINT64_MAX) < 0 || split(c, to, UINT64_MAX) < 0)
		return;
	count_all(c, r, nr, from, to, false);
	join(c, from, to);
}

void ttmon_tt_cores_fini(struct ttmon_tt_cores *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		free(c->v[i].n);
	free(c->v);
	*c = (struct ttmon_tt_cores){ 0 };
}
