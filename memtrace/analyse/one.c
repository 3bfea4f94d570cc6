// SPDX-License-Identifier: GPL-2.0-only
/*
 * one.c: one record, in the cell it is summed up in. Requests that differ from the one before by whole
 * lines cost the same and are counted as so many times that one; of records in a row that do, as our
 * own stream has them, only what differs is looked at.
 */
#include "memtrace/analyse/an_int.h"
#include "memtrace/model/shape_parts.h"

#define WINDOW	 (16u << 20)  /* bytes of shared or local memory in the generic space */
#define MAX_STEP (1ULL << 40) /* bytes a lane, of requests that are counted together */
#define GOLDEN	 0x9e3779b97f4a7c15

/* Whether all lanes of rec lie in the window at base. */
static bool in_window(const struct ttmon_mt_rec *rec, uint64_t base)
{
	for (uint32_t m = rec->mask; base && m; m &= m - 1)
		if (ttmon_mt_lane(rec, (unsigned int)__builtin_ctz(m)) - base >= WINDOW)
			return false;
	return base != 0;
}

/*
 * A generic access becomes one of the space that it turns out to be: *to, with addr for its addresses.
 */
static void resolve(const struct ttmon_mt_launch *l, const struct ttmon_mt_rec *rec, struct ttmon_mt_rec *to,
		    uint64_t *addr)
{
	uint64_t base = 0;

	*to = *rec;
	to->space = TTMON_MT_GLOBAL;
	if (in_window(rec, l->shared_base)) {
		to->space = TTMON_MT_SHARED;
		base = l->shared_base;
	} else if (in_window(rec, l->local_base)) {
		to->space = TTMON_MT_LOCAL;
		base = l->local_base;
	}
	if (!base)
		return;
	to->base -= base;
	for (unsigned int i = 0; rec->addr && i < TTMON_MT_LANES; i++)
		addr[i] = rec->addr[i] - base;
	to->addr = rec->addr ? addr : NULL;
}

/* n votes for now. */
static void vote(int64_t *value, uint64_t *votes, int64_t now, uint64_t n)
{
	if (*value == now) {
		*votes += n;
	} else if (*votes >= n) {
		*votes -= n;
	} else {
		*value = now;
		*votes = n - *votes;
	}
}

/* From the last request of the same warp at the same site to this one. */
static void step(struct ttmon_mt_an *an, struct ttmon_mt_sums *s, const struct ttmon_mt_rec *rec, uint32_t site)
{
	/* Eight warps of a block lie side by side. */
	uint64_t block = ((uint64_t)rec->launch << 32 | site) * GOLDEN + rec->cta[0] * 0xd6e8feb86659fd93 +
			 ((uint64_t)rec->cta[2] << 32 | rec->cta[1]) * 0xa0761d6478bd642f +
			 (rec->warp >> 3) * 0xe7037ed1a0b428db;
	struct ttmon_mt_last *last = &an->steps[(block >> 32 << 3 | rec->warp % 8) & (TTMON_MT_AN_STEPS - 1)];
	uint64_t key = block ^ rec->warp % 8 << 1;

	key |= 1; /* of an entry that is free it is 0 */
	if (last->key == key)
		vote(&s->step, &s->step_votes, (int64_t)(rec->base - last->base), 1);
	last->key = key;
	last->base = rec->base;
}

/*
 * One more request of n pages. Of one, as most are, or none: what is left at the end, see
 * ttmon_mt_an_finish().
 */
static void put_bin(uint64_t *bins, unsigned int n)
{
	if (n > 1)
		bins[MIN(32u - (unsigned int)__builtin_clz(n - 1), TTMON_MT_PAGES_BINS - 1u)]++;
}

static void add_pages(struct ttmon_mt_sums *s, unsigned int n_4k, unsigned int n_64k, unsigned int n_2m)
{
	s->pages_4k += n_4k;
	s->pages_64k += n_64k;
	s->pages_2m += n_2m;
	put_bin(s->pages_4k_bins, n_4k);
	put_bin(s->pages_2m_bins, n_2m);
}

/* ---- cells ---- */

/* Those that the cell has counted so far, but for pages and extent, which it has. */
static void count(struct ttmon_mt_cell *c)
{
	const struct ttmon_mt_shape *shape = &c->shape;
	struct ttmon_mt_sums *s = &c->sums;
	unsigned int kind = c->key.kind;
	uint64_t n = c->times;

	c->times = 0;
	s->requests += n;
	s->records += n;
	s->inferred += c->flags & TTMON_MT_INFERRED ? n : 0;
	s->lanes += n * shape->lanes;
	s->full += c->mask == UINT32_MAX ? n : 0;
	s->lanes_bins[31 - __builtin_clz(shape->lanes)] += n;
	s->classes[shape->class] += n;
	s->reads += ttmon_mt_reads(kind) ? n : 0;
	s->writes += ttmon_mt_writes(kind) ? n : 0;
	if (shape->class == TTMON_MT_STRIDED || shape->class == TTMON_MT_SEGMENTED)
		vote(&s->stride, &s->stride_votes, shape->stride, n);
	if (kind == TTMON_MT_PREFETCH)
		return;
	s->bytes += n * shape->bytes;
	s->unique += n * shape->unique;
	if (c->key.space == TTMON_MT_SHARED) {
		s->waves += n * shape->waves;
		s->phases += n * shape->phases;
		s->ideal_waves += n * shape->ideal_waves;
		s->max_waves = MAX(s->max_waves, shape->waves);
		s->waves_hist[MIN(shape->waves, TTMON_MT_LANES + 1)] += n;
	} else {
		s->sectors += n * shape->sectors;
		s->lines += n * shape->lines;
		s->ideal += n * shape->ideal;
		s->ideal_lanes += n * shape->ideal_lanes;
		s->misaligned += n * shape->misaligned;
		s->sectors_hist[MIN(shape->sectors, TTMON_MT_LANES + 1)] += n;
		s->lines_hist[MIN(shape->lines, TTMON_MT_LANES + 1)] += n;
	}
	if (kind == TTMON_MT_ATOM || kind == TTMON_MT_RED) {
		s->same += n * shape->same;
		s->max_same = MAX(s->max_same, shape->same);
	}
}

/* Bin 0 has the requests that are in no other. */
static void rest_of(uint64_t all, uint64_t *bins)
{
	bins[0] = all;
	for (unsigned int i = 1; i < TTMON_MT_PAGES_BINS; i++)
		bins[0] -= bins[i];
}

void ttmon_mt_an_finish(struct ttmon_mt_an *an, struct ttmon_mt_cell *c)
{
	if (c->times)
		count(c);
	if (c->sums.records && c->key.space == TTMON_MT_GLOBAL && c->key.kind != TTMON_MT_PREFETCH) {
		rest_of(c->sums.records, c->sums.pages_4k_bins);
		rest_of(c->sums.records, c->sums.pages_2m_bins);
	}
	ttmon_mt_an_spill_cell(an, c);
}

static bool is_key(const struct ttmon_mt_key *a, const struct ttmon_mt_key *b)
{
	return a->site == b->site && a->launch == b->launch && a->buffer == b->buffer && a->space == b->space &&
	       a->kind == b->kind && a->width == b->width;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * GOLDEN;
	return h ^ h >> 32;
}

/*
 * The cell of these rows; if there is none, one of the four that it may be goes to its rows. -ENOMEM.
 */
static int find_cell(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_key *key,
		     struct ttmon_mt_cell **ret)
{
	uint32_t *last = &an->site_more[key->site].cell, first;
	struct ttmon_mt_cell *c;
	int64_t kernel;

	first = (uint32_t)mix(mix(key->site, key->launch), key->buffer) % TTMON_MT_AN_CELLS & ~3u;
	for (uint32_t i = first; i < first + 4; i++)
		if (is_key(&an->cells[i].key, key)) {
			*last = i;
			*ret = &an->cells[i];
			return 0;
		}
	kernel = ttmon_mt_an_kernel_of(an, dict, key->launch, key->site);
	if (kernel < 0)
		return (int)kernel;
	*last = first + an->evicted++ % 4;
	c = &an->cells[*last];
	if (c->key.site != TTMON_MT_NONE)
		ttmon_mt_an_flush(an, c);
	c->key = *key;
	c->kernel = (uint32_t)kernel;
	c->like = false;
	ttmon_mt_an_empty(&c->sums);
	*ret = c;
	return 0;
}

/*
 * Does a request of the same lanes cost the same there? Whole lines away it does; where lanes are
 * apart, wherever each of them stays in one sector.
 */
static inline bool costs_the_same(const struct ttmon_mt_cell *c, const struct ttmon_mt_rec *rec)
{
	return !((rec->base ^ c->base) % TTMON_MT_LINE) ||
	       (c->apart && rec->base % TTMON_MT_SECTOR + rec->width <= TTMON_MT_SECTOR);
}

/* Is this the request that the cell had last, elsewhere? Then it is counted. */
static bool again(struct ttmon_mt_cell *c, const struct ttmon_mt_rec *rec)
{
	uint64_t low = rec->base + c->down, last = low + c->reach - 1;
	struct ttmon_mt_sums *s = &c->sums;

	if (!c->like || rec->addr || rec->stride != c->stride || rec->mask != c->mask || rec->flags != c->flags ||
	    !costs_the_same(c, rec) || last < low)
		return false;
	if (c->key.space == TTMON_MT_GLOBAL && c->key.kind != TTMON_MT_PREFETCH) {
		if (low >> 12 == last >> 12) {
			s->pages_4k++;
			s->pages_64k++;
			s->pages_2m++;
		} else if (c->whole) {
			add_pages(s, ttmon_mt_units(low, c->step, c->len, rec->width, 12),
				  ttmon_mt_units(low, c->step, c->len, rec->width, 16),
				  ttmon_mt_units(low, c->step, c->len, rec->width, 21));
		} else {
			return false;
		}
	}
	s->min_addr = MIN(s->min_addr, low);
	s->max_addr = MAX(s->max_addr, last);
	c->base = rec->base;
	c->times++;
	return true;
}

/* What again() has to know of the request that the cell has the shape of. */
static void learn(struct ttmon_mt_cell *c, const struct ttmon_mt_rec *rec)
{
	unsigned int n = c->shape.lanes;
	uint64_t low;

	c->like = false;
	c->mask = rec->mask;
	c->flags = rec->flags;
	c->stride = rec->stride;
	c->base = rec->base;
	c->len = n == 1 ? 1 : 32u - (unsigned int)__builtin_clz(rec->mask) - (unsigned int)__builtin_ctz(rec->mask);
	c->step = n == 1 ? 0 : rec->stride < 0 ? -(uint64_t)rec->stride : (uint64_t)rec->stride;
	c->whole = n == c->len;
	c->apart = c->whole && n > 1 && c->key.space == TTMON_MT_GLOBAL && c->step && !(c->step % TTMON_MT_LINE) &&
		   c->shape.sectors == n;
	if (rec->addr || c->step > MAX_STEP)
		return;
	c->reach = c->step * (c->len - 1) + rec->width;
	c->down = rec->stride < 0 ? -(c->step * (c->len - 1)) : 0;
	low = rec->base + c->down;
	if (low + c->reach - 1 < low)
		return;
	c->like = c->shape.nr_runs <= 1 || (c->whole && !(c->step % TTMON_MT_SECTOR) && c->shape.nr_runs == c->len);
}

static void other(struct ttmon_mt_cell *c, const struct ttmon_mt_rec *rec)
{
	struct ttmon_mt_sums *s = &c->sums;
	uint64_t last;

	if (c->times)
		count(c);
	ttmon_mt_get_shape(rec, c->key.kind, &c->shape);
	c->times = 1;
	last = c->shape.high + rec->width - 1;
	s->min_addr = MIN(s->min_addr, c->shape.low);
	s->max_addr = MAX(s->max_addr, last < c->shape.high ? UINT64_MAX : last);
	if (c->key.kind != TTMON_MT_PREFETCH)
		add_pages(s, c->shape.pages_4k, c->shape.pages_64k, c->shape.pages_2m);
	learn(c, rec);
}

/* ---- one record ---- */

/*
 * The cell that the site was in last, if this record belongs there too; NULL: it has to be looked for.
 */
static struct ttmon_mt_cell *same_cell(struct ttmon_mt_an *an, const struct ttmon_mt_rec *rec, unsigned int kind)
{
	size_t at = (size_t)rec->site * TTMON_MT_SPACE_MAX + rec->space;
	uint32_t row = at < an->nr_site_at ? an->site_at[at] : 0;
	struct ttmon_mt_cell *c;

	if (!row)
		return NULL;
	c = &an->cells[an->site_more[row - 1].cell];
	if (c->key.site != row - 1 || c->launch != rec->launch || c->key.space != rec->space || c->key.kind != kind ||
	    c->key.width != rec->width)
		return NULL;
	return c->key.buffer == TTMON_MT_NONE || ttmon_mt_an_is_in(&c->part, rec->base / TTMON_MT_SECTOR, 1) ? c : NULL;
}

/* The cell of a record of any kind. -ENOMEM. */
static int cell_of(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec,
		   unsigned int kind, struct ttmon_mt_cell **ret)
{
	struct ttmon_mt_key key = { .buffer = TTMON_MT_NONE, .kind = (uint8_t)kind, .width = rec->width };
	int64_t site = ttmon_mt_an_site(an, dict, rec->site, rec->space, rec->width);
	int64_t launch = ttmon_mt_an_launch(an, dict, rec->launch);
	const struct ttmon_mt_part *part = NULL;
	int err = 0;

	if (site < 0 || launch < 0)
		return -ENOMEM;
	if (rec->space == TTMON_MT_GLOBAL && kind != TTMON_MT_PREFETCH)
		err = ttmon_mt_an_part_at(an, dict, rec->launch, rec->base, &part);
	if (err)
		return err;
	key.site = (uint32_t)site;
	key.launch = (uint32_t)launch;
	key.space = rec->space;
	if (part)
		key.buffer = part->buffer;
	err = find_cell(an, dict, &key, ret);
	if (err)
		return err;
	(*ret)->launch = rec->launch;
	if (part)
		(*ret)->part = *part;
	return 0;
}

/*
 * Records after the first, which the cell has counted, that are the same request elsewhere and in one
 * page each: at most n, and none past the column of the heat map. Those that lie side by side are
 * walked as one run. Returns how many.
 */
static size_t more(struct ttmon_mt_an *an, const struct ttmon_mt_rec *recs, size_t n, struct ttmon_mt_cell *c)
{
	uint64_t left = -an->records & ((1ULL << an->col_shift) - 1), low = c->sums.min_addr, high = c->sums.max_addr,
		 first = 0;
	const struct ttmon_mt_rec *like = recs;
	bool walked = c->key.buffer != TTMON_MT_NONE;
	uint32_t per = c->shape.sectors, run = 0;
	struct ttmon_mt_sums *s = &c->sums;
	size_t i;

	if (!c->like || like->space != c->key.space || (walked && c->shape.nr_runs != 1))
		return 0;
	n = (size_t)MIN(n, left + 1);
	for (i = 1; i < n; i++) {
		const struct ttmon_mt_rec *rec = &recs[i];
		uint64_t from = rec->base + c->down, last = from + c->reach - 1, sector = from / TTMON_MT_SECTOR;

		if (rec->site != like->site || rec->launch != like->launch || rec->mask != like->mask ||
		    rec->space != like->space || rec->width != like->width || rec->flags != like->flags || rec->addr ||
		    rec->stride != like->stride || !costs_the_same(c, rec) || from >> 12 != last >> 12 ||
		    (walked && !ttmon_mt_an_is_inner(&c->part, sector, per)))
			break;
		low = MIN(low, from);
		high = MAX(high, last);
		step(an, s, rec, c->key.site);
		if (!walked)
			continue;
		if (run && sector != first + run) {
			ttmon_mt_an_walk_run(an, c, first, run);
			run = 0;
		}
		first = run ? first : sector;
		run += per;
	}
	if (run)
		ttmon_mt_an_walk_run(an, c, first, run);
	i--;
	an->records += i;
	c->times += (uint32_t)i;
	s->min_addr = low;
	s->max_addr = high;
	if (walked) {
		s->pages_4k += i;
		s->pages_64k += i;
		s->pages_2m += i;
	}
	return i;
}

int64_t ttmon_mt_an_some(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *recs,
			 size_t n)
{
	unsigned int kind = dict->sites[recs->site].kind;
	const struct ttmon_mt_rec *rec = recs;
	uint64_t addr[TTMON_MT_LANES];
	struct ttmon_mt_cell *cell;
	struct ttmon_mt_rec copy;
	int err = 0;

	if (rec->space == TTMON_MT_GENERIC) {
		resolve(&dict->launches[rec->launch], rec, &copy, addr);
		rec = &copy;
		n = 1;
	}
	cell = same_cell(an, rec, kind);
	if (!cell)
		err = cell_of(an, dict, rec, kind, &cell);
	if (err)
		return err;
	if (an->records >> an->col_shift >= an->opts.heat_cols)
		ttmon_mt_an_heat_next(an);
	an->col_at = (an->records++ >> an->col_shift) * an->opts.heat_rows;
	if (!again(cell, rec))
		other(cell, rec);
	step(an, &cell->sums, rec, cell->key.site);
	if (cell->key.buffer != TTMON_MT_NONE)
		err = ttmon_mt_an_walk(an, dict, rec, cell);
	return err ?: 1 + (int64_t)more(an, recs, n, cell);
}
