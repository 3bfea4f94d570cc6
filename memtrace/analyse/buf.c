// SPDX-License-Identifier: GPL-2.0-only
/*
 * buf.c: what is touched, by buffer. Where an allocation is known, that is a buffer. Elsewhere memory
 * is taken in chunks of 2 MiB: a chunk beside one that was touched before joins its range, and ranges
 * that have met are put together when results are made, so that nothing has to be moved while records
 * come.
 */
#include "memtrace/analyse/an_int.h"
#include "lib/base/search.h"
#include "lib/base/grow.h"

#define CHUNK_SHIFT 21
#define SECTOR	    ((uint64_t)TTMON_MT_SECTOR)
#define CHUNK	    ((1ULL << CHUNK_SHIFT) / SECTOR) /* sectors */
#define PAGE	    4096u
#define LEAST_PAGES (CHUNK * SECTOR / PAGE) /* exact takes less memory than an estimate */
#define MAX_GUESSED 2048u /* buffers whose sectors may have to be estimated, which takes 16 KiB each */

/* size 0: not known yet. */
static int64_t new_buf(struct ttmon_mt_an *an, uint32_t alloc, uint64_t addr, uint64_t size)
{
	uint64_t need = size ? size / PAGE + 2 : UINT64_MAX, pages = MIN(need, MAX(an->pages / 16, LEAST_PAGES));
	struct ttmon_mt_buf *b;
	int err = 0;

	if (TTMON_GROW(an->bufs, an->cap_bufs, an->nr_bufs + 1, 16))
		return -ENOMEM;
	b = &an->bufs[an->nr_bufs];
	*b = (struct ttmon_mt_buf){
		.row = { .alloc = alloc,
			 .addr = addr,
			 .size = size,
			 .low = UINT64_MAX,
			 .first_launch = TTMON_MT_NONE,
			 .last_launch = TTMON_MT_NONE },
		.low = UINT64_MAX,
		.range = alloc == TTMON_MT_NONE,
	};
	ttmon_mt_an_empty(&b->row.sums);
	if (pages >= need || an->nr_guessed < MAX_GUESSED) {
		err = ttmon_mt_sectors_new((uint32_t)pages, &b->set);
		an->pages -= MIN(pages, an->pages);
		an->nr_guessed += pages < need;
	}
	if (!err && an->nr_heats < TTMON_MT_AN_HEATS)
		err = ttmon_mt_an_heat_new(an, b, addr, size ? size : 1ULL << CHUNK_SHIFT);
	if (err) {
		ttmon_mt_sectors_free(b->set);
		return err;
	}
	return an->nr_bufs++;
}

/* The buffer of what does not fit: without a place. */
static int64_t others(struct ttmon_mt_an *an)
{
	if (an->others == TTMON_MT_NONE) {
		if (TTMON_GROW(an->bufs, an->cap_bufs, an->nr_bufs + 1, 16))
			return -ENOMEM;
		an->bufs[an->nr_bufs] = (struct ttmon_mt_buf){
			.row = { .alloc = TTMON_MT_NONE,
				 .low = UINT64_MAX,
				 .first_launch = TTMON_MT_NONE,
				 .last_launch = TTMON_MT_NONE },
			.low = UINT64_MAX,
		};
		ttmon_mt_an_empty(&an->bufs[an->nr_bufs].row.sums);
		an->others = an->nr_bufs++;
	}
	return an->others;
}

static bool is_full(const struct ttmon_mt_an *an)
{
	return an->nr_bufs - (an->others != TTMON_MT_NONE) >= an->opts.max_buffers;
}

/* ---- memory that no allocation is known for ---- */

/* How many ranges begin at or before chunk. */
static uint32_t ranges_to(const struct ttmon_mt_an *an, uint64_t chunk)
{
	uint32_t lo = TTMON_SEARCH((uint32_t)0, an->nr_ranges, mid, an->ranges[mid].first <= chunk);
	return lo;
}

/*
 * The range that has chunk; to: how far it may reach at once where it has to be made or stretched. A
 * range that begins lower with every chunk keeps its
 * buffer: only results ask for its address.
 */
static int range_of(struct ttmon_mt_an *an, uint64_t chunk, uint64_t to, struct ttmon_mt_range *ret)
{
	uint32_t at = ranges_to(an, chunk);
	struct ttmon_mt_range *left = at ? &an->ranges[at - 1] : NULL,
			      *right = at < an->nr_ranges ? &an->ranges[at] : NULL;
	int64_t buf;

	if (left && chunk <= left->last) {
		*ret = *left;
		return 0;
	}
	to = right ? MIN(to, right->first - 1) : to;
	if (left && left->last + 1 == chunk) {
		left->last = to;
		if (an->others == TTMON_MT_NONE)
			left->sure_last = to;
		*ret = *left;
		return 0;
	}
	if (right && right->first == to + 1) {
		right->first = chunk;
		if (an->others == TTMON_MT_NONE)
			right->sure_first = chunk;
		*ret = *right;
		return 0;
	}
	if (is_full(an)) {
		buf = others(an);
		*ret = (struct ttmon_mt_range){ chunk, to, chunk, to, (uint32_t)buf };
		return buf < 0 ? (int)buf : 0;
	}
	if (TTMON_GROW(an->ranges, an->cap_ranges, an->nr_ranges + 1, 16))
		return -ENOMEM;
	buf = new_buf(an, TTMON_MT_NONE, chunk << CHUNK_SHIFT, 0);
	if (buf < 0)
		return (int)buf;
	memmove(&an->ranges[at + 1], &an->ranges[at], (an->nr_ranges - at) * sizeof(*an->ranges));
	an->ranges[at] = *ret = (struct ttmon_mt_range){ chunk, to, chunk, to, (uint32_t)buf };
	an->nr_ranges++;
	return 0;
}

/* ---- any ---- */

static int alloc_buf(struct ttmon_mt_an *an, uint32_t alloc, enum ttmon_mt_how how, uint32_t *ret)
{
	size_t n;
	const struct ttmon_mt_alloc *a = &ttmon_mt_map_get(an->opts.map, &n)[alloc];
	int64_t buf;

	if (!an->buf_at) {
		an->buf_at = calloc(n, sizeof(*an->buf_at));
		if (!an->buf_at)
			return -ENOMEM;
	}
	if (!an->buf_at[alloc]) {
		buf = is_full(an) ? others(an) : new_buf(an, alloc, a->addr, a->size);
		if (buf < 0)
			return (int)buf;
		an->buf_at[alloc] = (uint32_t)buf + 1;
	}
	*ret = an->buf_at[alloc] - 1;
	if (*ret != an->others) {
		an->bufs[*ret].row.ambiguous |= how == TTMON_MT_AMBIGUOUS;
		an->bufs[*ret].row.by_order |= how == TTMON_MT_BY_ORDER;
	}
	return 0;
}

/* first, last: bytes. */
static void set_part(struct ttmon_mt_part *p, uint64_t first, uint64_t last)
{
	p->first = first / SECTOR;
	p->last = last / SECTOR;
	p->inner_first = p->first + (first % SECTOR != 0);
	p->inner_last = p->last - (last % SECTOR != SECTOR - 1);
}

/* What of a range lies from byte first to last. */
static void set_range_part(struct ttmon_mt_part *p, const struct ttmon_mt_range *r, uint64_t first, uint64_t last)
{
	set_part(p, MAX(first, r->first << CHUNK_SHIFT), MIN(last, ((r->last + 1) << CHUNK_SHIFT) - 1));
	p->inner_first = MAX(p->inner_first, r->sure_first * CHUNK);
	p->inner_last = MIN(p->inner_last, r->sure_last * CHUNK + CHUNK - 1);
	p->buffer = r->buffer;
}

/* As ttmon_mt_an_part(); an unknown piece reaches up to to, if it is made. */
static int part_to(struct ttmon_mt_an *an, const struct ttmon_mt_when *when, uint64_t addr, uint64_t to,
		   struct ttmon_mt_part *ret)
{
	uint64_t lo = 0, hi = UINT64_MAX;
	uint32_t alloc = TTMON_MT_NONE;
	struct ttmon_mt_range r;
	enum ttmon_mt_how how = TTMON_MT_SURE;
	int err;

	if (an->opts.map)
		alloc = ttmon_mt_map_at(an->opts.map, addr, when, &how, &lo, &hi);
	if (alloc == UINT32_MAX) {
		err = range_of(an, addr >> CHUNK_SHIFT, MIN(to, hi - 1) >> CHUNK_SHIFT, &r);
		if (err)
			return err;
		set_range_part(ret, &r, lo, hi - 1);
		return 0;
	}
	err = alloc_buf(an, alloc, how, &ret->buffer);
	if (err)
		return err;
	set_part(ret, lo, hi - 1);
	return 0;
}

int ttmon_mt_an_part(struct ttmon_mt_an *an, const struct ttmon_mt_launch *l, uint64_t addr, struct ttmon_mt_part *ret)
{
	const struct ttmon_mt_when when = ttmon_mt_when_of(l, 0);

	return part_to(an, &when, addr, addr, ret);
}

void ttmon_mt_an_seen(struct ttmon_mt_buf *b, uint32_t launch)
{
	if (launch == TTMON_MT_NO_LAUNCH)
		return;
	b->row.first_launch = MIN(b->row.first_launch, launch);
	b->row.last_launch = b->row.last_launch == TTMON_MT_NONE ? launch : MAX(b->row.last_launch, launch);
}

/* ---- from the sets of launches to those of buffers ---- */

struct shared {
	const struct ttmon_mt_an *an;
	struct ttmon_mt_when when;
	struct ttmon_mt_part part; /* where it was last */
};

/* As ttmon_mt_an_part(), but nothing is made: NONE is where no buffer is. */
static void part_known(const struct ttmon_mt_an *an, const struct ttmon_mt_when *when, uint64_t addr,
		       struct ttmon_mt_part *ret)
{
	uint64_t lo = 0, hi = UINT64_MAX, chunk = addr >> CHUNK_SHIFT;
	uint32_t alloc = TTMON_MT_NONE, at;
	enum ttmon_mt_how how;

	if (an->opts.map)
		alloc = ttmon_mt_map_at(an->opts.map, addr, when, &how, &lo, &hi);
	if (alloc == TTMON_MT_NONE) {
		const struct ttmon_mt_range none = { chunk, chunk, chunk, chunk, TTMON_MT_NONE };

		at = ranges_to(an, chunk);
		set_range_part(ret, at && chunk <= an->ranges[at - 1].last ? &an->ranges[at - 1] : &none, lo, hi - 1);
		return;
	}
	set_part(ret, lo, hi - 1);
	ret->buffer = an->buf_at && an->buf_at[alloc] ? an->buf_at[alloc] - 1 : TTMON_MT_NONE;
}

/* Whose set a sector of a launch goes to, and those up to *last with it. */
static struct ttmon_mt_sectors *whose(void *ctx, uint64_t sector, uint64_t *last)
{
	struct shared *s = ctx;
	struct ttmon_mt_part *p = &s->part;

	if (sector < p->first || sector > p->last)
		part_known(s->an, &s->when, sector * SECTOR, p);
	*last = sector;
	if (sector < p->inner_first || sector > p->inner_last)
		return NULL;
	*last = p->inner_last;
	return p->buffer == TTMON_MT_NONE ? NULL : s->an->bufs[p->buffer].set;
}

void ttmon_mt_an_share(struct ttmon_mt_an *an, const struct ttmon_mt_launch *l, const struct ttmon_mt_sectors *set)
{
	struct shared s = { .an = an, .when = ttmon_mt_when_of(l, 0), .part = { .first = 1 } };

	ttmon_mt_sectors_share(set, whose, &s);
}

/* ---- ranges that a producer kept in the place of records ---- */

static int one_touch(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_touch *t)
{
	const struct ttmon_mt_launch *l = t->launch == TTMON_MT_NO_LAUNCH ? NULL : &dict->launches[t->launch];
	const struct ttmon_mt_when when = ttmon_mt_when_of(l, t->pid);
	uint64_t addr = t->addr, end = t->addr + MIN(t->size, UINT64_MAX - t->addr);
	uint64_t requests = t->reads + t->writes;

	while (addr < end) {
		struct ttmon_mt_part part;
		struct ttmon_mt_buf *b;
		uint64_t to;
		int err = part_to(an, &when, addr, end - 1, &part);

		if (err)
			return err;
		to = part.last >= (end - 1) / SECTOR ? end : (part.last + 1) * SECTOR;
		b = &an->bufs[part.buffer];
		b->row.low = MIN(b->row.low, b->range ? addr : MAX(addr, b->row.addr));
		b->row.high = MAX(b->row.high,
				  b->range || part.buffer == an->others ? to : MIN(to, b->row.addr + b->row.size));
		b->row.touches += requests ? requests : 1;
		b->row.unknown += !requests;
		b->row.sums.reads += t->reads;
		b->row.sums.writes += t->writes;
		ttmon_mt_an_seen(b, t->launch);
		addr = to;
	}
	return 0;
}

int ttmon_mt_an_touches(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict)
{
	for (; an->nr_touches < dict->nr_touches; an->nr_touches++) {
		const struct ttmon_mt_touch *t = &dict->touches[an->nr_touches];
		int err;

		if (t->launch != TTMON_MT_NO_LAUNCH && t->launch >= dict->nr_launches)
			return -EINVAL;
		err = one_touch(an, dict, t);
		if (err)
			return err;
	}
	return 0;
}

/* ---- results ---- */

static void finish(const struct ttmon_mt_buf *b, struct ttmon_mt_buffer_row *row)
{
	*row = b->row;
	row->touches += b->touches;
	row->sums.reads += b->reads;
	row->sums.writes += b->writes;
	row->low = MIN(row->low, b->low);
	row->high = MAX(row->high, b->high);
	row->estimate = false;
	if (b->set)
		row->sectors = ttmon_mt_sectors_count(b->set, &row->estimate);
	if (row->sums.requests && row->sums.min_addr <= row->sums.max_addr && row->sums.max_addr < UINT64_MAX) {
		row->low = MIN(row->low, row->sums.min_addr);
		row->high = MAX(row->high, row->sums.max_addr + 1);
	}
	if (row->low > row->high)
		row->low = row->high;
}

/* Different places: what is distinct in each is distinct in both. */
static void join(struct ttmon_mt_buffer_row *to, const struct ttmon_mt_buffer_row *row)
{
	ttmon_mt_sums_add(&to->sums, &row->sums);
	to->low = MIN(to->low, row->low);
	to->high = MAX(to->high, row->high);
	to->sectors += row->sectors;
	to->estimate |= row->estimate;
	to->first_launch = MIN(to->first_launch, row->first_launch);
	if (to->last_launch == TTMON_MT_NONE ||
	    (row->last_launch != TTMON_MT_NONE && row->last_launch > to->last_launch))
		to->last_launch = row->last_launch;
	to->touches += row->touches;
	to->unknown += row->unknown;
}

int ttmon_mt_an_make_buffers(struct ttmon_mt_an *an)
{
	struct ttmon_mt_buffer_row *rows = calloc((size_t)an->nr_bufs + 1, sizeof(*rows));
	struct ttmon_mt_made *made = calloc((size_t)an->nr_bufs + 1, sizeof(*made));
	size_t n = 0;

	if (!rows || !made) {
		free(rows);
		free(made);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < an->nr_bufs; i++)
		if (!an->bufs[i].range && i != an->others) {
			finish(&an->bufs[i], &rows[n]);
			made[n++] = (struct ttmon_mt_made){ i, 0 };
		}
	for (uint32_t i = 0; i < an->nr_ranges; i++) {
		const struct ttmon_mt_range *r = &an->ranges[i];
		struct ttmon_mt_buffer_row row;

		finish(&an->bufs[r->buffer], &row);
		if (i && r[-1].last + 1 == r->first) {
			join(&rows[n - 1], &row);
			made[n - 1].nr++;
		} else {
			row.addr = r->first << CHUNK_SHIFT;
			rows[n] = row;
			made[n++] = (struct ttmon_mt_made){ i, 1 };
		}
		rows[n - 1].size = ((r->last + 1) << CHUNK_SHIFT) - rows[n - 1].addr;
	}
	if (an->others != TTMON_MT_NONE) {
		finish(&an->bufs[an->others], &rows[n]);
		made[n++] = (struct ttmon_mt_made){ an->others, 0 };
	}
	free(an->buffers);
	free(an->made);
	an->buffers = rows;
	an->made = made;
	an->nr_buffers = n;
	return 0;
}

void ttmon_mt_an_buf_fini(struct ttmon_mt_an *an)
{
	for (uint32_t i = 0; i < an->nr_bufs; i++) {
		ttmon_mt_sectors_free(an->bufs[i].set);
		free(an->bufs[i].heat.count);
	}
	free(an->bufs);
	free(an->buf_at);
	free(an->ranges);
	free(an->buffers);
	free(an->made);
}
