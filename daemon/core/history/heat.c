// SPDX-License-Identifier: GPL-2.0-only
/*
 * heat.c: see heat.h. Called by the history for each transfer. When time passes the last bucket, pairs
 * of buckets are added up and the width doubles, so that sums are kept exactly and 64 buckets cover
 * any life time.
 */
#include "daemon/core/history/heat.h"

static uint32_t add_sat(uint32_t a, uint32_t b)
{
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static void halve(struct ttmon_heat *h)
{
	for (unsigned int i = 0; i < TTMON_HEAT_BUCKETS; i++) {
		unsigned int a = 2 * i, b = 2 * i + 1;
		bool in = b < TTMON_HEAT_BUCKETS;

		h->copies[i] = in ? add_sat(h->copies[a], h->copies[b]) : 0;
		h->bytes[i] = in ? h->bytes[a] + h->bytes[b] : 0;
	}
	h->width_ns *= 2;
}

static uint64_t since(uint64_t origin_ns, uint64_t ts_ns)
{
	return ttmon_before(ts_ns, origin_ns) ? 0 : ts_ns - origin_ns;
}

/*
 * Times are compared by signed difference, so 2^63 ns is the longest span; a width of 2^57 ns covers
 * it.
 */
static bool too_narrow(uint64_t width_ns, uint64_t at)
{
	return at / TTMON_HEAT_BUCKETS >= width_ns;
}

/* The width that an empty heat needs for a time so long after its origin. */
static uint64_t width_for(uint64_t at)
{
	uint64_t width_ns = TTMON_HEAT_WIDTH_NS;

	while (too_narrow(width_ns, at))
		width_ns *= 2;
	return width_ns;
}

void ttmon_heat_init(struct ttmon_heat *h, uint64_t origin_ns, uint64_t ts_ns)
{
	*h = (struct ttmon_heat){ .origin_ns = origin_ns, .width_ns = width_for(since(origin_ns, ts_ns)) };
}

/*
 * The width is TTMON_HEAT_WIDTH_NS times a power of two: dividing by a constant and shifting is much
 * faster than dividing.
 */
static unsigned int shift_of(uint64_t width_ns)
{
	return (unsigned int)(__builtin_ctzll(width_ns) - __builtin_ctzll(TTMON_HEAT_WIDTH_NS));
}

static unsigned int bucket_of(const struct ttmon_heat *h, uint64_t at)
{
	return (unsigned int)(at / TTMON_HEAT_WIDTH_NS >> shift_of(h->width_ns));
}

static void heat_put(struct ttmon_heat *h, uint64_t ts_ns, uint32_t copies, uint64_t bytes)
{
	uint64_t at = since(h->origin_ns, ts_ns);
	unsigned int i;

	while (too_narrow(h->width_ns, at))
		halve(h);
	i = bucket_of(h, at);
	h->copies[i] = add_sat(h->copies[i], copies);
	h->bytes[i] += bytes;
}

bool ttmon_heat_now_add(struct ttmon_heat_now *now, uint64_t ts_ns, uint64_t bytes)
{
	if (!now->copies || ts_ns - now->from_ns >= TTMON_HEAT_WIDTH_NS << now->shift)
		return false;
	now->copies = add_sat(now->copies, 1);
	now->bytes += bytes;
	return true;
}

void ttmon_heat_now_begin(struct ttmon_heat_now *now, struct ttmon_heat *h, uint64_t origin_ns, uint64_t ts_ns,
			  uint64_t bytes)
{
	uint64_t origin = h ? h->origin_ns : origin_ns, at = since(origin, ts_ns);
	unsigned int shift;

	while (h && too_narrow(h->width_ns, at))
		halve(h);
	shift = shift_of(h ? h->width_ns : width_for(at));
	*now = (struct ttmon_heat_now){
		.origin_ns = origin,
		.from_ns = origin + (at / TTMON_HEAT_WIDTH_NS >> shift << shift) * TTMON_HEAT_WIDTH_NS,
		.bytes = bytes,
		.copies = 1,
		.shift = shift,
	};
}

void ttmon_heat_add_now(struct ttmon_heat *h, const struct ttmon_heat_now *now, bool fresh)
{
	if (fresh)
		ttmon_heat_init(h, now->origin_ns, now->from_ns);
	if (now->copies)
		heat_put(h, now->from_ns, now->copies, now->bytes);
}

void ttmon_heat_merge(struct ttmon_heat *h, const struct ttmon_heat *src)
{
	for (unsigned int i = 0; i < TTMON_HEAT_BUCKETS; i++)
		if (src->copies[i])
			heat_put(h, src->origin_ns + i * src->width_ns + src->width_ns / 2, src->copies[i],
				 src->bytes[i]);
}

void ttmon_page_heat_init(struct ttmon_page_heat *ph, uint64_t size, uint64_t page_size)
{
	uint64_t group = size / TTMON_PAGE_GROUPS + (size % TTMON_PAGE_GROUPS != 0);

	memset(ph, 0, sizeof(*ph));
	group = MAX(group, 1ULL);
	ph->group_bytes = group > UINT64_MAX - page_size ? group : ROUND_UP(group, page_size);
}

void ttmon_page_heat_grow(struct ttmon_page_heat *ph, uint64_t size)
{
	while (ph->group_bytes <= UINT64_MAX / 2 / TTMON_PAGE_GROUPS && size > ph->group_bytes * TTMON_PAGE_GROUPS) {
		for (unsigned int i = 0; i < TTMON_PAGE_GROUPS / 2; i++)
			ph->copies[i] = MAX(ph->copies[2 * i], ph->copies[2 * i + 1]);
		memset(ph->copies + TTMON_PAGE_GROUPS / 2, 0, sizeof(ph->copies) / 2);
		ph->group_bytes *= 2;
	}
}

static uint64_t mask_of(const struct ttmon_page_heat *ph, uint64_t offset, uint64_t bytes)
{
	uint64_t first = offset / ph->group_bytes, last;

	if (first >= TTMON_PAGE_GROUPS || !bytes)
		return 0;
	if (bytes - 1 > UINT64_MAX - offset)
		bytes = UINT64_MAX - offset;
	last = MIN((offset + bytes - 1) / ph->group_bytes, (uint64_t)TTMON_PAGE_GROUPS - 1);
	return (~0ULL >> (63 - (last - first))) << first;
}

static void count(struct ttmon_page_heat *ph, uint64_t mask)
{
	for (unsigned int i = 0; i < TTMON_PAGE_GROUPS; i++)
		if (mask >> i & 1)
			ph->copies[i] = add_sat(ph->copies[i], 1);
}

void ttmon_page_heat_touch(struct ttmon_page_heat *ph, uint64_t offset, uint64_t bytes)
{
	count(ph, mask_of(ph, offset, bytes));
}

/*
 * The groups touched by the rows of one slice. Rows no further apart than a group leave out no group
 * between the first and the last. Rows further apart each lie in another group, so that more rows than
 * there are groups lie past the end.
 */
static uint64_t mask_of_rows(const struct ttmon_page_heat *ph, uint64_t offset, const struct ttmon_rect *rect)
{
	uint64_t mask = 0;

	if (!rect->rows)
		return 0;
	if (rect->pitch <= ph->group_bytes)
		return mask_of(ph, offset, ttmon_add_sat(ttmon_mul_sat(rect->rows - 1, rect->pitch), rect->width));
	for (uint64_t row = 0; row < MIN(rect->rows, TTMON_PAGE_GROUPS + 1ULL); row++)
		mask |= mask_of(ph, ttmon_add_sat(offset, ttmon_mul_sat(row, rect->pitch)), rect->width);
	return mask;
}

void ttmon_page_heat_touch_rect(struct ttmon_page_heat *ph, uint64_t offset, const struct ttmon_rect *rect)
{
	uint64_t slices = rect->slice ? rect->slices : MIN(rect->slices, 1ULL), mask = 0, step = 1, s = 0;

	/*
	 * Of slices closer than a group only some are visited, so that each step advances by more than half a
	 * group.
	 */
	if (rect->slice && rect->slice < ph->group_bytes)
		step = ph->group_bytes / rect->slice;
	for (unsigned int n = 0; s < slices && n <= 2 * TTMON_PAGE_GROUPS; n++, s = ttmon_add_sat(s, step))
		mask |= mask_of_rows(ph, ttmon_add_sat(offset, ttmon_mul_sat(s, rect->slice)), rect);
	if (slices)
		mask |= mask_of_rows(ph, ttmon_add_sat(offset, ttmon_mul_sat(slices - 1, rect->slice)), rect);
	count(ph, mask);
}

uint64_t ttmon_page_heat_bytes(const struct ttmon_page_heat *ph)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < TTMON_PAGE_GROUPS; i++)
		n += ph->copies[i] != 0;
	return n * ph->group_bytes;
}
