// SPDX-License-Identifier: GPL-2.0-only
/*
 * group.c: merges the rows of one call site, process and method, so that a loop that allocates a
 * thousand times is one line. Pure.
 */
#include "daemon/core/history/history.h"
#include "tools/heat/heat.h"

/* parts that the time of the map is divided into if rows have bins of different widths */
#define PIECES TTMON_HEAT_WIDTH_MAX

static int by_site(const void *a, const void *b)
{
	const struct ttmon_heatmap_row *x = a, *y = b;
	int c = strcmp(x->site ? x->site : "", y->site ? y->site : "");

	if (c)
		return c;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->method != y->method)
		return x->method < y->method ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static bool is_same(const struct ttmon_heatmap_row *x, const struct ttmon_heatmap_row *y)
{
	return x->pid == y->pid && x->method == y->method && !strcmp(x->site ? x->site : "", y->site ? y->site : "");
}

static int add_bins(struct ttmon_heatmap *map, struct ttmon_heatmap_row *to, const struct ttmon_heatmap_bin *bins,
		    uint32_t n)
{
	struct ttmon_heatmap_bin *more;

	if (to->nr_bins + (uint64_t)n > to->max_bins) {
		/* Allocate twice what is needed, because a group grows row by row. */
		more = reallocarray(to->bins, (to->nr_bins + (size_t)n) * 2, sizeof(*more));
		if (!more)
			return -ENOMEM;
		to->bins = more;
		to->max_bins = (to->nr_bins + n) * 2;
	}
	if (n)
		memcpy(to->bins + to->nr_bins, bins, n * sizeof(*bins));
	to->nr_bins += n;
	map->nr_bins += n;
	return 0;
}

/* Redistributes the bins of a row to parts that are the same for all rows. */
static int divide(struct ttmon_heatmap *map, struct ttmon_heatmap_row *r)
{
	struct ttmon_heatmap_span span = { .from_ns = map->start_ns, .columns = PIECES };
	struct ttmon_heatmap_bin bins[PIECES];
	uint64_t bytes[PIECES], copies[PIECES];
	uint32_t n = 0;

	span.to_ns = map->start_ns + map->width_ns * PIECES;
	ttmon_heatmap_cells(r, &span, bytes);
	span.copies = true;
	ttmon_heatmap_cells(r, &span, copies);
	for (uint32_t i = 0; i < PIECES; i++)
		if (bytes[i] || copies[i])
			bins[n++] = (struct ttmon_heatmap_bin){ i, (uint32_t)MIN(copies[i], UINT32_MAX), bytes[i] };
	map->nr_bins -= r->nr_bins;
	r->nr_bins = 0;
	r->origin_ns = map->start_ns;
	r->width_ns = map->width_ns;
	return add_bins(map, r, bins, n);
}

/* ---- the most that was live at one time ---- */

struct step {
	uint64_t ts_ns;
	uint64_t bytes;
	bool ends;
};

/* What is freed and what is allocated at the same time were not there together. */
static int step_order(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	if (x->ts_ns != y->ts_ns)
		return x->ts_ns < y->ts_ns ? -1 : 1;
	return (int)y->ends - (int)x->ends;
}

/* steps: room for two of each row. */
static uint64_t peak_of(const struct ttmon_heatmap_row *rows, size_t n, struct step *steps)
{
	uint64_t now = 0, peak = 0;
	size_t nr = 0;

	for (size_t i = 0; i < n; i++) {
		steps[nr++] = (struct step){ .ts_ns = rows[i].alloc_ns, .bytes = rows[i].size };
		/* What is freed in the same nanosecond was live, too. */
		steps[nr++] = (struct step){ .ts_ns = MAX(rows[i].free_ns, ttmon_add_sat(rows[i].alloc_ns, 1)),
					     .bytes = rows[i].size,
					     .ends = true };
	}
	qsort(steps, nr, sizeof(*steps), step_order);
	for (size_t i = 0; i < nr; i++) {
		now = steps[i].ends ? now - MIN(now, steps[i].bytes) : ttmon_add_sat(now, steps[i].bytes);
		peak = MAX(peak, now);
	}
	return peak;
}

/* The rows are sorted by call site. */
static int set_peaks(struct ttmon_heatmap *map)
{
	_cleanup_free_ struct step *steps = calloc(map->nr + 1, 2 * sizeof(*steps));

	if (!steps)
		return -ENOMEM;
	for (size_t i = 0, n; i < map->nr; i += n) {
		struct ttmon_heatmap_row *r = &map->rows[i];
		uint64_t peak;

		for (n = 1; i + n < map->nr && is_same(r, &map->rows[i + n]); n++)
			;
		peak = peak_of(r, n, steps);
		for (size_t k = 0; k < n; k++)
			r[k].size = peak;
		/* Mappings that moved nothing are not in a map of a database unless they were requested. */
		r->size_least = map->live || map->last || (map->hidden && r->method == TTMON_METHOD_MMAP);
	}
	return 0;
}

static int absorb(struct ttmon_heatmap *map, struct ttmon_heatmap_row *to, struct ttmon_heatmap_row *r)
{
	int err = add_bins(map, to, r->bins, r->nr_bins);

	if (err)
		return err;
	to->bytes += r->bytes;
	to->copies += r->copies;
	to->alloc_ns = MIN(to->alloc_ns, r->alloc_ns);
	to->free_ns = MAX(to->free_ns, r->free_ns);
	to->live |= r->live;
	to->unseen |= r->unseen || to->pinned != r->pinned;
	to->pinned &= !to->unseen;
	to->at_least |= r->at_least;
	to->in_place |= r->in_place;
	to->more |= r->more;
	to->allocs += r->allocs;
	map->nr_bins -= r->nr_bins;
	free(r->id);
	free(r->site);
	free(r->shown);
	free(r->comm);
	free(r->bins);
	*r = (struct ttmon_heatmap_row){ 0 };
	return 0;
}

int ttmon_heatmap_group(struct ttmon_heatmap *map)
{
	size_t n = 0, i = 0, all = map->nr;
	int err = 0;

	if (!map->width_ns) {
		map->width_ns = (map->end_ns - map->start_ns) / PIECES + 1;
		for (; i < map->nr && !err; i++)
			err = divide(map, &map->rows[i]);
	}
	if (map->nr)
		qsort(map->rows, map->nr, sizeof(*map->rows), by_site);
	err = err ? err : set_peaks(map);
	for (i = 0; i < all && !err; i++) {
		if (n && is_same(&map->rows[n - 1], &map->rows[i])) {
			err = absorb(map, &map->rows[n - 1], &map->rows[i]);
			continue;
		}
		if (n != i) {
			map->rows[n] = map->rows[i];
			map->rows[i] = (struct ttmon_heatmap_row){ 0 };
		}
		n++;
	}
	map->sites = true;
	/* After an error the rows not yet merged are still owned by the map. */
	map->nr = err ? all : n;
	return err;
}
