// SPDX-License-Identifier: GPL-2.0-only
/*
 * pair.c: which instructions access which buffer: sums of each pair of them, in one hash table that
 * grows up to MAX_PAIRS. What comes past that, or past the memory there is, is counted for its buffer
 * alone. Results are the same pairs by rows of buffers, those of ranges that met put together.
 */
#include "memtrace/analyse/an_int.h"
#include "lib/base/search.h"

#define MIN_PAIRS 256u
#define MAX_PAIRS (1u << 16)
#define GOLDEN	  0x9e3779b97f4a7c15

static struct ttmon_mt_pair *place(struct ttmon_mt_pair *table, uint32_t cap, uint32_t buffer, uint32_t site)
{
	uint32_t i = (uint32_t)(((uint64_t)buffer << 32 | site) * GOLDEN >> 32) & (cap - 1);

	while (table[i].buffer && (table[i].buffer != buffer + 1 || table[i].site != site))
		i = (i + 1) & (cap - 1);
	return &table[i];
}

/* Room for one more, in a table that is at most half full; false: there is none. */
static bool room(struct ttmon_mt_an *an)
{
	uint32_t cap = an->cap_pairs ? an->cap_pairs * 2 : MIN_PAIRS;
	struct ttmon_mt_pair *table;

	if (an->nr_pairs < an->cap_pairs / 2)
		return true;
	table = an->nr_pairs < MAX_PAIRS ? calloc(cap, sizeof(*table)) : NULL;
	if (!table)
		return false;
	for (uint32_t i = 0; i < an->cap_pairs; i++)
		if (an->pairs[i].buffer)
			*place(table, cap, an->pairs[i].buffer - 1, an->pairs[i].site) = an->pairs[i];
	free(an->pairs);
	an->pairs = table;
	an->cap_pairs = cap;
	return true;
}

void ttmon_mt_an_pair(struct ttmon_mt_an *an, uint32_t buffer, uint32_t site, const struct ttmon_mt_sums *s)
{
	struct ttmon_mt_pair *p = an->cap_pairs ? place(an->pairs, an->cap_pairs, buffer, site) : NULL;

	if (!p || !p->buffer) {
		if (!room(an))
			return;
		p = place(an->pairs, an->cap_pairs, buffer, site);
		p->buffer = buffer + 1;
		p->site = site;
		an->nr_pairs++;
	}
	p->requests += s->requests;
	p->sectors += s->sectors;
	p->ideal += s->ideal;
	p->ideal_lanes += s->ideal_lanes;
}

/* ---- results ---- */

static uint64_t waste(const struct ttmon_mt_pair *p)
{
	return p->sectors - MIN(p->ideal, p->sectors);
}

static int by_site(const void *pa, const void *pb)
{
	const struct ttmon_mt_pair *a = pa, *b = pb;

	if (a->buffer != b->buffer)
		return a->buffer < b->buffer ? -1 : 1;
	return a->site < b->site ? -1 : a->site > b->site;
}

static int by_waste(const void *pa, const void *pb)
{
	const struct ttmon_mt_pair *a = pa, *b = pb;
	uint64_t x = waste(a), y = waste(b);

	if (a->buffer != b->buffer)
		return a->buffer < b->buffer ? -1 : 1;
	if (x != y)
		return x > y ? -1 : 1;
	if (a->sectors != b->sectors)
		return a->sectors > b->sectors ? -1 : 1;
	return a->site < b->site ? -1 : a->site > b->site;
}

/* The row of each buffer in the results. */
static void rows_of(const struct ttmon_mt_an *an, uint32_t *rows)
{
	for (uint32_t r = 0; r < an->nr_buffers; r++) {
		const struct ttmon_mt_made *m = &an->made[r];

		for (uint32_t i = 0; i < m->nr; i++)
			rows[an->ranges[m->from + i].buffer] = r;
		if (!m->nr)
			rows[m->from] = r;
	}
}

int ttmon_mt_an_make_pairs(struct ttmon_mt_an *an)
{
	_cleanup_free_ uint32_t *rows = calloc((size_t)an->nr_bufs + 1, sizeof(*rows));
	struct ttmon_mt_pair *list = calloc((size_t)an->nr_pairs + 1, sizeof(*list));
	uint32_t n = 0, kept = 0;

	if (!rows || !list) {
		free(list);
		return -ENOMEM;
	}
	rows_of(an, rows);
	for (uint32_t i = 0; i < an->cap_pairs; i++) {
		if (!an->pairs[i].buffer)
			continue;
		list[n] = an->pairs[i];
		list[n].buffer = rows[an->pairs[i].buffer - 1];
		n++;
	}
	qsort(list, n, sizeof(*list), by_site);
	for (uint32_t i = 0; i < n; i++) {
		if (!kept || by_site(&list[kept - 1], &list[i])) {
			list[kept++] = list[i];
			continue;
		}
		list[kept - 1].requests += list[i].requests;
		list[kept - 1].sectors += list[i].sectors;
		list[kept - 1].ideal += list[i].ideal;
		list[kept - 1].ideal_lanes += list[i].ideal_lanes;
	}
	qsort(list, kept, sizeof(*list), by_waste);
	free(an->pair_list);
	an->pair_list = list;
	an->nr_pair_list = kept;
	return 0;
}

const struct ttmon_mt_pair *ttmon_mt_an_buffer_sites(const struct ttmon_mt_an *an, uint32_t buffer, size_t *n)
{
	size_t lo = 0, hi = an->nr_pair_list, end;

	lo = TTMON_SEARCH(lo, hi, mid, an->pair_list[mid].buffer < buffer);
	for (end = lo; end < an->nr_pair_list && an->pair_list[end].buffer == buffer; end++)
		;
	*n = end - lo;
	return an->pair_list + lo;
}
