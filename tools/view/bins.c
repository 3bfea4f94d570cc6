// SPDX-License-Identifier: GPL-2.0-only
/*
 * bins.c: counts transfers in bins of time in a bounded amount of memory; empty bins take none. The
 * bins of the allocation that is being read are at the end of the single array. They stay unsorted
 * until the allocation is complete or there are too many bins.
 */
#include <fcntl.h>

#include "tools/view/view.h"

#define FIRST_SHIFT 10 /* a microsecond */
#define MAX_SHIFT   50 /* 13 days: by then all bins of an allocation are one */

void ttmon_view_bins_init(struct ttmon_view_bins *b, size_t max)
{
	*b = (struct ttmon_view_bins){ .max = max, .shift = FIRST_SHIFT };
}

void ttmon_view_bins_fini(struct ttmon_view_bins *b)
{
	free(b->bins);
	free(b->first);
	*b = (struct ttmon_view_bins){ 0 };
}

static size_t open_first(const struct ttmon_view_bins *b)
{
	return b->nr_allocs ? b->first[b->nr_allocs] : 0;
}

static int by_at(const void *x, const void *y)
{
	uint32_t a = ((const struct ttmon_view_bin *)x)->at, b = ((const struct ttmon_view_bin *)y)->at;

	return (a > b) - (a < b);
}

/*
 * Merges neighbouring bins with the same number in [from, to), and writes the result from *to_nr on.
 */
static void merge(struct ttmon_view_bin *bins, size_t from, size_t to, size_t *to_nr)
{
	size_t start = *to_nr;

	for (size_t i = from; i < to; i++) {
		struct ttmon_view_bin bin = bins[i], *last = *to_nr > start ? &bins[*to_nr - 1] : NULL;

		if (last && last->at == bin.at) {
			if (__builtin_add_overflow(last->copies, bin.copies, &last->copies))
				last->copies = UINT32_MAX;
			if (__builtin_add_overflow(last->bytes, bin.bytes, &last->bytes))
				last->bytes = UINT64_MAX;
		} else {
			bins[(*to_nr)++] = bin;
		}
	}
}

static void sort_open(struct ttmon_view_bins *b)
{
	size_t from = open_first(b), to = from;
	bool sorted = true;

	for (size_t i = from + 1; i < b->nr && sorted; i++)
		sorted = b->bins[i - 1].at <= b->bins[i].at;
	if (!sorted)
		qsort(b->bins + from, b->nr - from, sizeof(*b->bins), by_at);
	merge(b->bins, from, b->nr, &to);
	b->nr = to;
}

/* Doubles the width of all bins. */
static void coarsen(struct ttmon_view_bins *b)
{
	size_t to = 0;

	for (size_t i = 0; i < b->nr; i++)
		b->bins[i].at = (b->bins[i].at & TTMON_VIEW_OTHER) | (b->bins[i].at & ~TTMON_VIEW_OTHER) >> 1;
	for (size_t a = 0; a < b->nr_allocs; a++) {
		size_t from = b->first[a], end = b->first[a + 1];

		b->first[a] = to;
		merge(b->bins, from, end, &to);
	}
	if (b->nr_allocs) {
		size_t from = b->first[b->nr_allocs];

		b->first[b->nr_allocs] = to;
		merge(b->bins, from, b->nr, &to);
	} else {
		merge(b->bins, 0, b->nr, &to);
	}
	b->nr = to;
	b->shift++;
}

/* Makes room for one more bin. */
static bool grow(struct ttmon_view_bins *b)
{
	size_t cap = MIN(MAX(b->cap * 2, (size_t)1024), b->max);
	struct ttmon_view_bin *bins;

	if (b->nr == b->max) {
		sort_open(b);
		/* Coarsen until a quarter is free, otherwise it would be repeated for almost every bin. */
		while (b->nr > b->max / 4 * 3 && b->shift < MAX_SHIFT)
			coarsen(b);
		return b->nr < b->max;
	}
	if (b->nr < b->cap)
		return true;
	bins = realloc(b->bins, cap * sizeof(*bins));
	if (!bins) {
		b->err = -ENOMEM;
		return false;
	}
	b->bins = bins;
	b->cap = cap;
	return true;
}

void ttmon_view_bins_add(struct ttmon_view_bins *b, uint64_t ns, bool other, uint64_t bytes)
{
	struct ttmon_view_bin *last;
	uint32_t at;

	if (b->err)
		return;
	if (!grow(b)) {
		b->left_out++;
		return;
	}
	while (ns >> b->shift >= TTMON_VIEW_AT_MAX)
		coarsen(b);
	at = (uint32_t)(ns >> b->shift) | (other ? TTMON_VIEW_OTHER : 0);
	last = b->nr > open_first(b) ? &b->bins[b->nr - 1] : NULL;
	if (last && last->at == at && last->copies < UINT32_MAX && bytes <= UINT64_MAX - last->bytes) {
		last->copies++;
		last->bytes += bytes;
		return;
	}
	b->bins[b->nr++] = (struct ttmon_view_bin){ .at = at, .copies = 1, .bytes = bytes };
}

void ttmon_view_bins_end(struct ttmon_view_bins *b, bool keep)
{
	if (b->err)
		return;
	if (!keep) {
		b->nr = open_first(b);
		return;
	}
	if (b->nr_allocs + 2 > b->cap_allocs) {
		size_t cap = MAX(b->cap_allocs * 2, (size_t)1024);
		size_t *first = realloc(b->first, cap * sizeof(*first));

		if (!first) {
			b->err = -ENOMEM;
			return;
		}
		if (!b->cap_allocs)
			first[0] = 0;
		b->first = first;
		b->cap_allocs = cap;
	}
	sort_open(b);
	b->first[++b->nr_allocs] = b->nr;
}

size_t ttmon_view_bins_get(const struct ttmon_view_bins *b, size_t alloc, const struct ttmon_view_bin **ret)
{
	if (alloc >= b->nr_allocs)
		return 0;
	*ret = b->bins + b->first[alloc];
	return b->first[alloc + 1] - b->first[alloc];
}

/* ---- as bytes ---- */

static void put_varint(FILE *f, uint64_t n)
{
	for (; n >= 0x80; n >>= 7)
		putc_unlocked((int)(n & 0x7f) | 0x80, f);
	putc_unlocked((int)n, f);
}

/*
 * Writes the number of bins. Then, for each bin: the distance to the bin before << 2, plus 2 if a
 * number of copies follows (there is more than one), plus 1 if bytes follow (they differ from those of
 * the bin before). Numbers have seven bits in each byte, the lowest first; 0x80: more follows.
 */
static void put_stream(FILE *f, const struct ttmon_view_bin *bins, size_t n)
{
	uint64_t at = 0, bytes = 0;

	put_varint(f, n);
	for (size_t i = 0; i < n; i++) {
		uint64_t now = bins[i].at & ~TTMON_VIEW_OTHER;
		bool many = bins[i].copies != 1, other_bytes = bins[i].bytes != bytes;

		put_varint(f, (now - at) << 2 | (uint64_t)many << 1 | other_bytes);
		if (many)
			put_varint(f, bins[i].copies);
		if (other_bytes)
			put_varint(f, bins[i].bytes);
		at = now;
		bytes = bins[i].bytes;
	}
}

int ttmon_view_write_bins(const struct ttmon_view *v, int fd)
{
	_cleanup_close_ int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	_cleanup_fclose_ FILE *f = NULL;

	if (copy < 0)
		return -errno;
	f = fdopen(copy, "w");
	if (!f)
		return -errno;
	copy = -1; /* f's */
	for (size_t i = 0; i < v->nr_shown; i++) {
		static const struct ttmon_view_bin none[1];
		const struct ttmon_view_bin *bins = none;
		size_t n = ttmon_view_bins_get(v->bins, v->shown[i], &bins), h2d = 0;

		while (h2d < n && !(bins[h2d].at & TTMON_VIEW_OTHER))
			h2d++;
		put_stream(f, bins, h2d);
		put_stream(f, bins + h2d, n - h2d);
	}
	errno = 0;
	if (fflush(f) || ferror(f))
		return errno ? -errno : -EIO;
	return 0;
}
