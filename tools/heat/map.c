// SPDX-License-Identifier: GPL-2.0-only
/* map.c: the rows of a heat map, their bins, and the values of cells. Pure. */
#include "tools/heat/heat.h"

const char *ttmon_heat_sort_name(unsigned int sort)
{
	static const char *const names[TTMON_HEAT_SORTS] = { "bytes", "copies", "size", "age", "site" };

	return sort < TTMON_HEAT_SORTS ? names[sort] : NULL;
}

static void row_fini(struct ttmon_heatmap_row *r)
{
	free(r->id);
	free(r->site);
	free(r->shown);
	free(r->comm);
	free(r->bins);
}

void ttmon_heatmap_fini(struct ttmon_heatmap *map)
{
	for (size_t i = 0; i < map->nr + map->open; i++)
		row_fini(&map->rows[i]);
	free(map->rows);
	free(map->order);
	free(map->title);
	free(map->checkpoints);
	free(map->gaps);
	*map = (struct ttmon_heatmap){ 0 };
}

/* ---- building the map ---- */

struct ttmon_heatmap_row *ttmon_heatmap_begin(struct ttmon_heatmap *map)
{
	struct ttmon_heatmap_row *more;
	size_t max = map->max ? map->max * 2 : 64;

	if (map->nr == map->max) {
		more = reallocarray(map->rows, max, sizeof(*more));
		if (!more)
			return NULL;
		map->rows = more;
		map->max = max;
	}
	map->rows[map->nr] = (struct ttmon_heatmap_row){
		.origin_ns = map->start_ns, .width_ns = map->width_ns, .free_ns = UINT64_MAX, .allocs = 1
	};
	map->open = true;
	return &map->rows[map->nr];
}

void ttmon_heatmap_keep(struct ttmon_heatmap *map)
{
	map->nr += map->open;
	map->open = false;
}

void ttmon_heatmap_drop(struct ttmon_heatmap *map)
{
	if (!map->open)
		return;
	map->nr_bins -= map->rows[map->nr].nr_bins;
	row_fini(&map->rows[map->nr]);
	map->open = false;
}

static uint32_t add_sat(uint32_t a, uint32_t b)
{
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

/* Merges neighbouring bins with the same position. */
static void unite(struct ttmon_heatmap *map, struct ttmon_heatmap_row *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->nr_bins; i++) {
		if (n && r->bins[n - 1].at == r->bins[i].at) {
			r->bins[n - 1].copies = add_sat(r->bins[n - 1].copies, r->bins[i].copies);
			r->bins[n - 1].bytes += r->bins[i].bytes;
		} else {
			r->bins[n++] = r->bins[i];
		}
	}
	map->nr_bins -= r->nr_bins - n;
	r->nr_bins = n;
}

static void widen(struct ttmon_heatmap *map)
{
	map->width_ns *= 2;
	for (size_t i = 0; i < map->nr + map->open; i++) {
		struct ttmon_heatmap_row *r = &map->rows[i];

		for (uint32_t b = 0; b < r->nr_bins; b++)
			r->bins[b].at /= 2;
		r->width_ns = map->width_ns;
		unite(map, r);
	}
}

static int put(struct ttmon_heatmap *map, struct ttmon_heatmap_row *r, uint64_t ts_ns, uint32_t copies, uint64_t bytes)
{
	uint64_t since = ttmon_before(ts_ns, r->origin_ns) ? 0 : MIN(ts_ns - r->origin_ns, TTMON_HEATMAP_MAX_NS);
	uint32_t at = (uint32_t)MIN(since / r->width_ns, (uint64_t)UINT32_MAX);
	struct ttmon_heatmap_bin *more, *last = r->nr_bins ? &r->bins[r->nr_bins - 1] : NULL;
	uint32_t max = r->max_bins ? r->max_bins * 2 : 4;

	if (last && last->at == at) {
		last->copies = add_sat(last->copies, copies);
		last->bytes += bytes;
		return 0;
	}
	if (r->nr_bins == r->max_bins) {
		more = reallocarray(r->bins, max, sizeof(*more));
		if (!more)
			return -ENOMEM;
		r->bins = more;
		r->max_bins = max;
	}
	r->bins[r->nr_bins++] = (struct ttmon_heatmap_bin){ at, copies, bytes };
	map->nr_bins++;
	while (map->width_ns && map->nr_bins > TTMON_HEATMAP_MAX_BINS + 4 * map->nr &&
	       map->width_ns < map->end_ns - map->start_ns)
		widen(map);
	return 0;
}

int ttmon_heatmap_put(struct ttmon_heatmap *map, uint64_t ts_ns, uint32_t copies, uint64_t bytes)
{
	return put(map, &map->rows[map->nr], ts_ns, copies, bytes);
}

/* Returns the smallest power of two of pages that gives at most TTMON_HEATMAP_GROUPS groups. */
static uint64_t choose_group(uint64_t size, uint64_t page_size)
{
	uint64_t group = page_size;

	while (group < UINT64_MAX / 4 && size / group + (size % group != 0) > TTMON_HEATMAP_GROUPS)
		group *= 2;
	return group;
}

int ttmon_heatmap_make_pages(struct ttmon_heatmap *map, uint64_t size, uint64_t group_bytes, uint64_t page_size,
			     uint64_t *ret_group)
{
	uint64_t least = choose_group(size, page_size), group = MAX(group_bytes, least);

	for (uint64_t at = 0; at < size; at += group) {
		struct ttmon_heatmap_row *r = ttmon_heatmap_begin(map);
		char text[TTMON_FMT_LEN], site[TTMON_FMT_LEN + 2];

		if (!r)
			return -ENOMEM;
		snprintf(site, sizeof(site), "+ %s", ttmon_fmt_bytes(text, sizeof(text), at));
		r->site = strdup(site);
		r->seq = at;
		r->size = MIN(group, size - at);
		ttmon_heatmap_keep(map);
		if (!r->site)
			return -ENOMEM;
		if (at > UINT64_MAX - group)
			break;
	}
	*ret_group = group;
	return 0;
}

int ttmon_heatmap_put_pages(struct ttmon_heatmap *map, uint64_t group_bytes, uint64_t ts_ns, uint64_t offset,
			    uint64_t bytes)
{
	uint64_t end = bytes > UINT64_MAX - offset ? UINT64_MAX : offset + bytes;

	for (uint64_t i = offset / group_bytes; i < map->nr && i * group_bytes < end; i++) {
		struct ttmon_heatmap_row *r = &map->rows[i];
		uint64_t from = MAX(offset, i * group_bytes), to = MIN(end, i * group_bytes + r->size);
		int err;

		if (to <= from)
			continue;
		err = put(map, r, ts_ns, 1, to - from);
		if (err)
			return err;
		r->bytes += to - from;
		r->copies++;
	}
	return 0;
}

int ttmon_heatmap_add_mark(struct ttmon_heatmap_mark **list, size_t *nr, uint64_t from_ns, uint64_t to_ns,
			   const char *text)
{
	struct ttmon_heatmap_mark *more;

	/* Whenever the number is a power of two, grow the array by half. */
	if (!(*nr & (*nr - 1))) {
		more = reallocarray(*list, *nr ? *nr * 2 : 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		*list = more;
	}
	(*list)[*nr] = (struct ttmon_heatmap_mark){ .from_ns = from_ns, .to_ns = to_ns };
	ttmon_fmt_text((*list)[*nr].text, sizeof((*list)[*nr].text), text);
	(*nr)++;
	return 0;
}

/* ---- order ---- */

static int by_time(const void *a, const void *b)
{
	const struct ttmon_heatmap_bin *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static void settle(struct ttmon_heatmap *map, struct ttmon_heatmap_row *r)
{
	uint32_t i = 1;

	while (i < r->nr_bins && r->bins[i - 1].at < r->bins[i].at)
		i++;
	if (i >= r->nr_bins)
		return;
	qsort(r->bins, r->nr_bins, sizeof(*r->bins), by_time);
	unite(map, r);
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

struct sort_by {
	const struct ttmon_heatmap *map;
	enum ttmon_heat_sort by;
	bool reverse;
};

static int compare(const struct ttmon_heatmap_row *a, const struct ttmon_heatmap_row *b, const struct sort_by *s)
{
	switch (s->by) {
	case TTMON_HEAT_BY_BYTES:
		return -compare_u64(a->bytes, b->bytes);
	case TTMON_HEAT_BY_COPIES:
		return -compare_u64(a->copies, b->copies);
	case TTMON_HEAT_BY_SIZE:
		return -compare_u64(a->size, b->size);
	case TTMON_HEAT_BY_AGE:
		return compare_u64(a->alloc_ns, b->alloc_ns);
	default:
		return s->map->pages ? compare_u64(a->seq, b->seq)
				     : strcmp(a->site ? a->site : "", b->site ? b->site : "");
	}
}

static int compare_order(const void *a, const void *b, void *ctx)
{
	const struct sort_by *s = ctx;
	const struct ttmon_heatmap_row *x = &s->map->rows[*(const uint32_t *)a];
	const struct ttmon_heatmap_row *y = &s->map->rows[*(const uint32_t *)b];
	int c = compare(x, y, s);

	if (!c)
		c = compare_u64(x->seq, y->seq);
	return s->reverse ? -c : c;
}

int ttmon_heatmap_sort(struct ttmon_heatmap *map, enum ttmon_heat_sort by, bool reverse)
{
	uint32_t *order = reallocarray(map->order, map->nr + 1, sizeof(*order));
	struct sort_by s = { map, by, reverse };

	if (!order)
		return -ENOMEM;
	map->order = order;
	for (size_t i = 0; i < map->nr; i++) {
		settle(map, &map->rows[i]);
		order[i] = (uint32_t)i;
	}
	qsort_r(order, map->nr, sizeof(*order), compare_order, &s);
	return 0;
}

/* ---- cells ---- */

uint64_t ttmon_heatmap_column_ns(const struct ttmon_heatmap_span *span, unsigned int column)
{
	uint64_t len = span->to_ns - span->from_ns;

	return span->from_ns + len / span->columns * column +
	       (len % span->columns * column + span->columns - 1) / span->columns;
}

unsigned int ttmon_heatmap_column(const struct ttmon_heatmap_span *span, uint64_t ts_ns)
{
	uint64_t len = span->to_ns - span->from_ns, at = ttmon_before(ts_ns, span->from_ns) ? 0 : ts_ns - span->from_ns;

	/* len is at most 2^55, columns at most 2^9. */
	return (unsigned int)MIN(MIN(at, len) * span->columns / len, (uint64_t)span->columns - 1);
}

/* Returns how much of v, which is spread evenly over width_ns, lies before at. */
static uint64_t share(uint64_t v, uint64_t at, uint64_t width_ns)
{
	return at >= width_ns ? v : (uint64_t)((unsigned __int128)v * at / width_ns);
}

/* ---- the end of a run ---- */

static void keep_last_of(struct ttmon_heatmap_row *r, uint64_t from_ns)
{
	uint32_t n = 0;

	if (r->bytes != UINT64_MAX || r->nr_bins)
		r->bytes = 0;
	r->copies = 0;
	for (uint32_t i = 0; i < r->nr_bins; i++) {
		uint64_t begin_ns = r->origin_ns + r->bins[i].at * r->width_ns;

		if (ttmon_before(begin_ns, from_ns)) {
			r->at_least |= ttmon_before(from_ns, begin_ns + r->width_ns);
			continue;
		}
		r->bytes += r->bins[i].bytes;
		r->copies += r->bins[i].copies;
		r->bins[n++] = r->bins[i];
	}
	r->nr_bins = n;
	r->at_least |= r->more;
}

void ttmon_heatmap_keep_last(struct ttmon_heatmap *map, uint64_t last_ns)
{
	size_t n = 0;

	if (last_ns >= map->end_ns - map->start_ns)
		return;
	map->last = true;
	map->start_ns = map->end_ns - last_ns;
	for (size_t i = 0; i < map->nr; i++) {
		struct ttmon_heatmap_row *r = &map->rows[i];

		map->nr_bins -= r->nr_bins;
		if (!map->pages && !r->live && !ttmon_before(map->start_ns, r->free_ns)) {
			row_fini(r);
			map->hidden++;
			continue;
		}
		keep_last_of(r, map->start_ns);
		map->nr_bins += r->nr_bins;
		map->rows[n++] = *r;
	}
	map->nr = n;
}

/* Shared out over the columns it lies in, the remainder to the last: nothing is lost to rounding. */
static void spread(const struct ttmon_heatmap_span *span, uint64_t from_ns, uint64_t width_ns, uint64_t v,
		   uint64_t *cells)
{
	uint64_t to_ns = from_ns + width_ns;
	uint64_t done = from_ns < span->from_ns ? share(v, span->from_ns - from_ns, width_ns) : 0;

	for (unsigned int c = ttmon_heatmap_column(span, MAX(from_ns, span->from_ns)); c < span->columns; c++) {
		uint64_t end_ns = ttmon_heatmap_column_ns(span, c + 1);
		uint64_t upto = share(v, end_ns - from_ns, width_ns);

		cells[c] += upto - done;
		done = upto;
		if (end_ns >= to_ns)
			break;
	}
}

void ttmon_heatmap_cells(const struct ttmon_heatmap_row *r, const struct ttmon_heatmap_span *span, uint64_t *cells)
{
	uint64_t begin_ns = 0, end_ns = 0; /* the column of the last bin */
	unsigned int c = 0;

	memset(cells, 0, span->columns * sizeof(*cells));
	for (uint32_t i = 0; i < r->nr_bins; i++) {
		uint64_t from_ns = r->origin_ns + r->bins[i].at * r->width_ns, to_ns = from_ns + r->width_ns;
		uint64_t v = span->copies ? r->bins[i].copies : r->bins[i].bytes;

		if (to_ns <= span->from_ns || from_ns >= span->to_ns || to_ns <= from_ns)
			continue;
		if (from_ns < begin_ns || to_ns > end_ns) {
			c = ttmon_heatmap_column(span, MAX(from_ns, span->from_ns));
			begin_ns = ttmon_heatmap_column_ns(span, c);
			end_ns = ttmon_heatmap_column_ns(span, c + 1);
		}
		if (from_ns >= begin_ns && to_ns <= end_ns)
			cells[c] += v;
		else
			spread(span, from_ns, r->width_ns, v, cells);
	}
}

void ttmon_heatmap_find_scale(const struct ttmon_heatmap *map, const struct ttmon_heatmap_span *span,
			      struct ttmon_heatmap_scale *ret)
{
	uint64_t cells[TTMON_HEAT_WIDTH_MAX], high = 0, low = UINT64_MAX;

	for (size_t i = 0; i < map->nr; i++) {
		if (!map->rows[i].nr_bins)
			continue;
		ttmon_heatmap_cells(&map->rows[i], span, cells);
		for (unsigned int c = 0; c < span->columns; c++) {
			high = MAX(high, cells[c]);
			low = cells[c] ? MIN(low, cells[c]) : low;
		}
	}
	*ret = (struct ttmon_heatmap_scale){ high, high && high / low > 256 ? 4 : 2 };
}

unsigned int ttmon_heatmap_level(const struct ttmon_heatmap_scale *scale, uint64_t value)
{
	unsigned int level = TTMON_HEAT_LEVELS;

	if (!value)
		return 0;
	for (uint64_t edge = scale->high / scale->step; level > 1 && value <= edge; edge /= scale->step)
		level--;
	return level;
}
