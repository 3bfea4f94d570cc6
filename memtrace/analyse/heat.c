// SPDX-License-Identifier: GPL-2.0-only
/*
 * heat.c: the heat map. A buffer has bins of a power of two of sectors, at multiples of their size, so
 * that two neighbours can be made one when the buffer turns out larger; columns double in records the
 * same way when the trace turns out longer. Rows of the result are cut out of the bins.
 */
#include "memtrace/analyse/an_int.h"

/*
 * Room for sectors low to high. low and high of the map become what there is room for, so that a
 * buffer that is walked through grows seldom.
 */
static void grow(const struct ttmon_mt_an *an, struct ttmon_mt_heat_map *h, uint64_t low, uint64_t high)
{
	uint32_t rows = an->opts.heat_rows, tmp[1024];
	unsigned int more = 0;
	uint64_t first;

	low = h->low <= h->high ? MIN(low, h->low) : low;
	high = h->low <= h->high ? MAX(high, h->high) : high;
	while ((high >> (h->shift + more)) - (low >> (h->shift + more)) >= rows)
		more++;
	first = low >> (h->shift + more);
	for (uint32_t col = 0; h->low <= h->high && col < an->opts.heat_cols; col++) {
		uint32_t *c = &h->count[(size_t)col * rows];

		memset(tmp, 0, rows * sizeof(*tmp));
		for (uint32_t i = 0; i < rows; i++)
			if (c[i])
				ttmon_mt_an_heat_bump(&tmp[((h->first + i) >> more) - first], c[i]);
		memcpy(c, tmp, rows * sizeof(*tmp));
	}
	h->shift += more;
	h->first = first;
	h->low = first << h->shift;
	h->high = ((first + rows) << h->shift) - 1;
}

int ttmon_mt_an_heat_new(struct ttmon_mt_an *an, struct ttmon_mt_buf *b, uint64_t addr, uint64_t size)
{
	struct ttmon_mt_heat_map *h = &b->heat;

	h->count = calloc((size_t)an->opts.heat_rows * an->opts.heat_cols, sizeof(*h->count));
	if (!h->count)
		return -ENOMEM;
	h->low = UINT64_MAX;
	grow(an, h, addr / TTMON_MT_SECTOR, (addr + size - 1) / TTMON_MT_SECTOR);
	an->nr_heats++;
	return 0;
}

void ttmon_mt_an_heat_any(struct ttmon_mt_an *an, struct ttmon_mt_heat_map *h, uint64_t sector, uint32_t n)
{
	uint64_t last = sector + n - 1;
	uint32_t *c = &h->count[an->col_at];

	if (sector < h->low || last > h->high)
		grow(an, h, sector, last);
	for (uint64_t at = sector; at <= last;) {
		uint64_t bin = at >> h->shift, end = MIN(((bin + 1) << h->shift) - 1, last);

		ttmon_mt_an_heat_bump(&c[bin - h->first], end - at + 1);
		at = end + 1;
	}
}

void ttmon_mt_an_heat_steps(struct ttmon_mt_an *an, struct ttmon_mt_heat_map *h, uint64_t first, uint64_t by,
			    unsigned int len, uint32_t n)
{
	uint64_t last = first + by * (len - 1) + n - 1, at = first;
	bool dense = first >= h->low && last <= h->high && by <= 1ULL << h->shift >> 2;

	for (unsigned int left = len, in = 1; left; left -= in, at += by * in) {
		uint64_t bin = at >> h->shift, end = (bin + 1) << h->shift;

		if (!dense || at + n > end) {
			in = 1;
			ttmon_mt_an_heat_add(an, h, at, n);
			continue;
		}
		/* Those that are wholly in this bin. */
		in = last < end ? left : (unsigned int)((end - n - at) / by) + 1;
		ttmon_mt_an_heat_bump(&h->count[an->col_at + bin - h->first], (uint64_t)in * n);
	}
}

void ttmon_mt_an_heat_next(struct ttmon_mt_an *an)
{
	uint32_t rows = an->opts.heat_rows, cols = an->opts.heat_cols;

	an->col_shift++;
	for (uint32_t b = 0; b < an->nr_bufs; b++) {
		struct ttmon_mt_heat_map *h = &an->bufs[b].heat;

		if (!h->count)
			continue;
		for (uint32_t col = 0; col < cols; col++) {
			uint32_t *from = &h->count[(size_t)col * rows], *to = &h->count[(size_t)(col / 2) * rows];

			for (uint32_t i = 0; i < rows && col % 2; i++)
				ttmon_mt_an_heat_bump(&to[i], from[i]);
			if (!(col % 2) && col)
				memcpy(to, from, rows * sizeof(*to));
		}
		memset(&h->count[(size_t)((cols + 1) / 2) * rows], 0, (size_t)(cols / 2) * rows * sizeof(*h->count));
	}
}

/* ---- results ---- */

/* n sectors of bytes lo to hi (exclusive) of a buffer go to the rows they are in, by share. */
static void spread(const struct ttmon_mt_buffer_row *b, uint32_t rows, uint64_t lo, uint64_t hi, uint32_t n,
		   uint32_t *out, uint32_t cols)
{
	unsigned __int128 from = lo - b->addr, to = hi - b->addr, size = b->size;
	uint32_t first = (uint32_t)(from * rows / size), last = (uint32_t)((to - 1) * rows / size), gone = 0;

	for (uint32_t r = first; r <= last; r++) {
		unsigned __int128 end = MAX(MIN(((unsigned __int128)r + 1) * size / rows, to), from);
		uint32_t up_to = r == last ? n : (uint32_t)(n * (end - from) / (to - from));

		ttmon_mt_an_heat_bump(&out[(size_t)r * cols], up_to - gone);
		gone = up_to;
	}
}

static void draw(const struct ttmon_mt_an *an, const struct ttmon_mt_heat_map *h, const struct ttmon_mt_buffer_row *b,
		 uint32_t *out, uint32_t cols)
{
	uint32_t rows = an->opts.heat_rows;
	uint64_t bin = (uint64_t)TTMON_MT_SECTOR << h->shift;

	for (uint32_t col = 0; col < cols; col++)
		for (uint32_t i = 0; i < rows; i++) {
			uint32_t n = h->count[(size_t)col * rows + i];
			uint64_t lo = (h->first + i) * bin, hi = MIN(lo + bin, b->addr + b->size);

			lo = MAX(lo, b->addr);
			if (n && lo < hi)
				spread(b, rows, lo, hi, n, out + col, cols);
		}
}

/* Of the n-th buffer of the row: of ranges that have met, there are several. */
static const struct ttmon_mt_heat_map *heat_of(const struct ttmon_mt_an *an, size_t row, uint32_t n)
{
	const struct ttmon_mt_made *m = &an->made[row];

	return &an->bufs[m->nr ? an->ranges[m->from + n].buffer : m->from].heat;
}

static int by_requests(const void *a, const void *b, void *rows)
{
	const struct ttmon_mt_buffer_row *x = (const struct ttmon_mt_buffer_row *)rows + *(const uint32_t *)a,
					 *y = (const struct ttmon_mt_buffer_row *)rows + *(const uint32_t *)b;
	uint64_t of_x = x->sums.requests + x->touches, of_y = y->sums.requests + y->touches;

	if (of_x != of_y)
		return of_x > of_y ? -1 : 1;
	return x < y ? -1 : x > y;
}

int ttmon_mt_an_heat(struct ttmon_mt_an *an, struct ttmon_mt_heat *ret)
{
	uint32_t rows = an->opts.heat_rows, cols = an->records ? (uint32_t)((an->records - 1) >> an->col_shift) + 1 : 0;
	_cleanup_free_ uint32_t *list = calloc(an->nr_buffers + 1, sizeof(*list)), *counts = NULL;
	uint32_t n = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < an->nr_buffers; i++) {
		bool any = false;

		for (uint32_t k = 0; k < MAX(an->made[i].nr, 1u); k++)
			any |= heat_of(an, i, k)->count != NULL;
		if (any && an->buffers[i].size && an->buffers[i].sums.requests + an->buffers[i].touches)
			list[n++] = i;
	}
	if (n)
		qsort_r(list, n, sizeof(*list), by_requests, an->buffers);
	counts = calloc((size_t)n * rows * cols + 1, sizeof(*counts));
	if (!counts)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < MAX(an->made[list[i]].nr, 1u); k++) {
			const struct ttmon_mt_heat_map *h = heat_of(an, list[i], k);

			if (h->count)
				draw(an, h, &an->buffers[list[i]], counts + (size_t)i * rows * cols, cols);
		}
	free(an->heat_count);
	free(an->heat_buffer);
	an->heat_count = TAKE_PTR(counts);
	an->heat_buffer = TAKE_PTR(list);
	*ret = (struct ttmon_mt_heat){
		.rows = rows,
		.cols = cols,
		.per_col = 1ULL << an->col_shift,
		.nr_buffers = n,
		.buffer = an->heat_buffer,
		.count = an->heat_count,
	};
	return 0;
}
