// SPDX-License-Identifier: GPL-2.0-only
/*
 * an_one.c: one record. What neighbours have in common is done once: requests that differ from the one before by whole lines cost the same and are counted in
 * the cell as so many times that one; runs of sectors that meet go to the sets as one run; and columns (the same sectors in steps, as the warps beside it have
 * them) go to the sets once, as sets take no note of a second time.
 */
#include "memtrace/an_int.h"
#include "memtrace/shape_int.h"

#define WINDOW	 (16u << 20)  /* bytes of shared or local memory in the generic space */
#define MAX_STEP (1ULL << 40) /* bytes a lane, of requests that are counted together */
#define MAX_WAIT (1u << 24)   /* sectors that wait for their set */
#define GOLDEN	 0x9e3779b97f4a7c15

/* Whether all lanes of rec lie in the window at base. */
static bool in_window(const struct ttmon_mt_rec *rec, uint64_t base)
{
	for (uint32_t m = rec->mask; base && m; m &= m - 1)
		if (ttmon_mt_lane(rec, (unsigned int)__builtin_ctz(m)) - base >= WINDOW)
			return false;
	return base != 0;
}

/* A generic access becomes one of the space that it turns out to be: *to, with addr for its addresses. */
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

/* First byte and last byte of any lane. */
static void extent(const struct ttmon_mt_rec *rec, struct ttmon_mt_sums *s)
{
	uint64_t low = rec->base, high = rec->base;

	if (rec->addr) {
		for (uint32_t m = rec->mask; m; m &= m - 1) {
			uint64_t a = rec->addr[__builtin_ctz(m)];

			low = MIN(low, a);
			high = MAX(high, a);
		}
	} else {
		uint64_t a = ttmon_mt_lane(rec, 31u - (unsigned int)__builtin_clz(rec->mask));

		low = MIN(low, a);
		high = MAX(high, a);
	}
	high = high > UINT64_MAX - rec->width + 1 ? UINT64_MAX : high + rec->width - 1;
	s->min_addr = MIN(s->min_addr, low);
	s->max_addr = MAX(s->max_addr, high);
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

static void spill(struct ttmon_mt_an *an, struct ttmon_mt_cell *c)
{
	uint32_t n = (uint32_t)(c->end - c->from);
	struct ttmon_mt_sectors *set;

	if (!n)
		return;
	set = ttmon_mt_an_is_open(an, c->key.launch);
	if (set)
		ttmon_mt_sectors_add(set, c->from, n);
	if (an->bufs[c->key.buffer].set)
		ttmon_mt_sectors_add(an->bufs[c->key.buffer].set, c->from, n);
	c->from = c->end = 0;
}

void ttmon_mt_an_spill(struct ttmon_mt_an *an)
{
	for (unsigned int i = 0; i < TTMON_MT_AN_CELLS; i++)
		if (an->cells[i].key.site != TTMON_MT_NONE)
			spill(an, &an->cells[i]);
}

void ttmon_mt_an_finish(struct ttmon_mt_an *an, struct ttmon_mt_cell *c)
{
	if (c->times)
		count(c);
	spill(an, c);
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

/* The cell of these rows; if there is none, one of the four that it may be goes to its rows. -ENOMEM. */
static int find_cell(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_key *key,
		     struct ttmon_mt_cell **ret)
{
	uint32_t *last = &an->site_more[key->site].cell, first;
	struct ttmon_mt_cell *c = &an->cells[*last];
	int64_t kernel;

	*ret = c;
	if (is_key(&c->key, key))
		return 0;
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

/* Is this the request that the cell had last, whole lines away? Then it is counted. */
static bool again(struct ttmon_mt_cell *c, const struct ttmon_mt_rec *rec)
{
	uint64_t low = rec->base + c->down, last = low + c->reach - 1;
	struct ttmon_mt_sums *s = &c->sums;

	if (!c->like || rec->addr || rec->stride != c->stride || rec->mask != c->mask || rec->flags != c->flags ||
	    (rec->base ^ c->base) % TTMON_MT_LINE || last < low)
		return false;
	if (c->key.space == TTMON_MT_GLOBAL && c->key.kind != TTMON_MT_PREFETCH) {
		if (low >> 12 == last >> 12) {
			s->pages_4k++;
			s->pages_64k++;
			s->pages_2m++;
		} else if (c->whole) {
			s->pages_4k += ttmon_mt_units(low, c->step, c->len, rec->width, 12);
			s->pages_64k += ttmon_mt_units(low, c->step, c->len, rec->width, 16);
			s->pages_2m += ttmon_mt_units(low, c->step, c->len, rec->width, 21);
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

	if (c->times)
		count(c);
	ttmon_mt_shape(rec, c->key.kind, &c->shape);
	c->times = 1;
	extent(rec, s);
	if (c->key.kind != TTMON_MT_PREFETCH) {
		s->pages_4k += c->shape.pages_4k;
		s->pages_64k += c->shape.pages_64k;
		s->pages_2m += c->shape.pages_2m;
	}
	learn(c, rec);
}

/* ---- what a global access does to sets, heat and reuse ---- */

static bool is_in(const struct ttmon_mt_part *p, uint64_t sector, uint64_t n)
{
	return sector >= p->first && sector + n - 1 <= p->last;
}

static uint32_t place_nr(uint64_t sector)
{
	return (uint32_t)((sector >> 16) * GOLDEN >> 32) & (TTMON_MT_AN_PLACES - 1);
}

/* Where addr is in a launch: mostly in a piece of memory that was asked for before. -ENOMEM. */
static int part_at(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, uint32_t launch, uint64_t addr,
		   struct ttmon_mt_part *ret)
{
	uint64_t sector = addr / TTMON_MT_SECTOR;
	struct ttmon_mt_place *p = &an->places[place_nr(sector)];
	int err;

	if (p->launch != launch + 1 || !is_in(&p->part, sector, 1)) {
		p->launch = 0;
		err = ttmon_mt_an_part(an, &dict->launches[launch], addr, &p->part);
		if (err)
			return err;
		p->launch = launch + 1;
		ttmon_mt_an_seen(&an->bufs[p->part.buffer], launch);
	}
	*ret = p->part;
	return 0;
}

/* The part of memory that a site was in last is mostly the one it is in now. -ENOMEM. */
static int find_part(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec,
		     uint32_t site, const struct ttmon_mt_part **ret)
{
	struct ttmon_mt_site_more *more = &an->site_more[site];
	uint64_t sector = rec->base / TTMON_MT_SECTOR;
	int err;

	if (more->launch != rec->launch || sector < more->part.first || sector > more->part.last) {
		more->launch = TTMON_MT_NONE;
		err = part_at(an, dict, rec->launch, rec->base, &more->part);
		if (err)
			return err;
		more->launch = rec->launch;
	}
	*ret = &more->part;
	return 0;
}

/* Sectors that are not in the part of buffer own that the first lane is in. *last: the buffer that this request was counted in last. */
static int elsewhere(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec,
		     uint64_t sector, uint32_t n, uint32_t own, uint32_t *last)
{
	unsigned int kind = dict->sites[rec->site].kind;

	while (n) {
		struct ttmon_mt_part part;
		struct ttmon_mt_buf *b;
		int err = part_at(an, dict, rec->launch, sector * TTMON_MT_SECTOR, &part);
		uint32_t here;

		if (err)
			return err;
		b = &an->bufs[part.buffer];
		here = part.last - sector < n ? (uint32_t)(part.last - sector) + 1 : n;
		ttmon_mt_an_touch(an, b, sector, here);
		if (part.buffer != own && part.buffer != *last) {
			b->row.touches++;
			b->row.sums.reads += ttmon_mt_reads(kind);
			b->row.sums.writes += ttmon_mt_writes(kind);
			*last = part.buffer;
		}
		b->row.low = MIN(b->row.low, sector * TTMON_MT_SECTOR);
		b->row.high = MAX(b->row.high, (sector + here) * TTMON_MT_SECTOR);
		sector += here;
		n -= here;
	}
	return 0;
}

/* The set of the buffer that a sector is in, where that is known without searching. */
static void fetch(const struct ttmon_mt_an *an, const struct ttmon_mt_rec *rec, uint64_t sector)
{
	const struct ttmon_mt_place *p = &an->places[place_nr(sector)];

	if (p->launch == rec->launch + 1 && is_in(&p->part, sector, 1) && an->bufs[p->part.buffer].set)
		ttmon_mt_sectors_fetch(an->bufs[p->part.buffer].set, sector);
}

/* One run in the cell's own buffer: it waits there for what may join it. */
static void walk_run(struct ttmon_mt_an *an, struct ttmon_mt_cell *c, uint64_t sector, uint32_t n)
{
	struct ttmon_mt_buf *b = &an->bufs[c->key.buffer];

	if (an->reuse)
		ttmon_mt_reuse_touch(an->reuse, sector, n);
	if (b->heat)
		ttmon_mt_an_heat_add(an, b->heat, sector, n);
	if (sector <= c->end && sector + n >= c->from && c->end - c->from < MAX_WAIT) {
		c->from = MIN(c->from, sector);
		c->end = MAX(c->end, sector + n);
	} else {
		spill(an, c);
		c->from = sector;
		c->end = sector + n;
	}
}

/* Runs of per sectors each, in equal steps, all in the cell's own buffer. What was there before in this launch is in the sets. */
static void walk_steps(struct ttmon_mt_an *an, struct ttmon_mt_cell *c, struct ttmon_mt_sectors *set, uint64_t first,
		       uint64_t by, uint32_t per)
{
	struct ttmon_mt_column *col = &an->columns[(first ^ first >> 16) * GOLDEN >> 32 & (TTMON_MT_AN_COLUMNS - 1)];
	struct ttmon_mt_buf *b = &an->bufs[c->key.buffer];
	uint32_t followed;

	if (b->heat)
		ttmon_mt_an_heat_steps(an, b->heat, first, by, c->len, per);
	if (col->launch == c->key.launch + 1 && col->first == first && col->by == by && col->len == c->len &&
	    col->per == per && col->buffer == c->key.buffer) {
		followed = an->reuse ? col->followed : 0;
		for (uint32_t m = followed; m; m &= m - 1)
			ttmon_mt_reuse_touch(an->reuse, first + by * (unsigned int)__builtin_ctz(m), per);
		if (an->reuse)
			ttmon_mt_reuse_pass(an->reuse, (c->len - ttmon_mt_popcount(followed)) * per);
		return;
	}
	for (unsigned int i = 0; i < c->len; i++)
		c->shape.runs[i] = (struct ttmon_mt_run){ first + by * i, per };
	if (set)
		ttmon_mt_sectors_runs(set, c->shape.runs, c->len);
	if (b->set)
		ttmon_mt_sectors_runs(b->set, c->shape.runs, c->len);
	followed = an->reuse ? (uint32_t)ttmon_mt_reuse_runs(an->reuse, c->shape.runs, c->len) : 0;
	*col = (struct ttmon_mt_column){ .first = first,
					 .by = by,
					 .launch = c->key.launch + 1,
					 .followed = followed,
					 .buffer = c->key.buffer,
					 .per = (uint16_t)per,
					 .len = (uint16_t)c->len };
}

/* The runs of the shape, wherever they are. */
static int walk_all(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec,
		    const struct ttmon_mt_cell *c, struct ttmon_mt_sectors *set, const struct ttmon_mt_part *p)
{
	const struct ttmon_mt_shape *shape = &c->shape;
	uint32_t last = p->buffer;
	int err = 0;

	if (an->reuse)
		ttmon_mt_reuse_runs(an->reuse, shape->runs, shape->nr_runs);
	if (set)
		ttmon_mt_sectors_runs(set, shape->runs, shape->nr_runs);
	for (unsigned int i = 0; i < shape->nr_runs && shape->nr_runs > 4; i++)
		fetch(an, rec, shape->runs[i].sector);
	for (unsigned int i = 0; i < shape->nr_runs && !err; i++) {
		uint64_t sector = shape->runs[i].sector;
		uint32_t n = shape->runs[i].n;

		if (is_in(p, sector, n))
			ttmon_mt_an_touch(an, &an->bufs[p->buffer], sector, n);
		else
			err = elsewhere(an, dict, rec, sector, n, p->buffer, &last);
	}
	return err;
}

static int walk(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec,
		struct ttmon_mt_cell *c, const struct ttmon_mt_part *part)
{
	uint64_t first = (rec->base + c->down) / TTMON_MT_SECTOR, by = c->step / TTMON_MT_SECTOR;
	unsigned int nr = c->shape.nr_runs;
	const struct ttmon_mt_part p = *part;
	uint32_t per;
	int err = 0;
	struct ttmon_mt_sectors *set = ttmon_mt_an_open(an, c->key.launch, &err);

	if (err)
		return err;
	if (!c->like)
		return walk_all(an, dict, rec, c, set, &p);
	per = c->shape.sectors / nr;
	if (is_in(&p, first, nr == 1 ? per : by * (nr - 1) + per)) {
		if (nr == 1)
			walk_run(an, c, first, per);
		else
			walk_steps(an, c, set, first, by, per);
		return 0;
	}
	for (unsigned int i = 0; i < nr; i++)
		c->shape.runs[i] = (struct ttmon_mt_run){ first + by * i, per };
	return walk_all(an, dict, rec, c, set, &p);
}

int ttmon_mt_an_one(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec)
{
	unsigned int kind = dict->sites[rec->site].kind;
	const struct ttmon_mt_part *part = NULL;
	uint64_t addr[TTMON_MT_LANES];
	struct ttmon_mt_key key = { .buffer = TTMON_MT_NONE, .kind = (uint8_t)kind, .width = rec->width };
	struct ttmon_mt_cell *cell;
	struct ttmon_mt_rec copy;
	int64_t site, launch;
	int err = 0;

	if (rec->space == TTMON_MT_GENERIC) {
		resolve(&dict->launches[rec->launch], rec, &copy, addr);
		rec = &copy;
	}
	site = ttmon_mt_an_site(an, dict, rec->site, rec->space, rec->width);
	launch = ttmon_mt_an_launch(an, dict, rec->launch);
	if (site < 0 || launch < 0)
		return -ENOMEM;
	if (rec->space == TTMON_MT_GLOBAL && kind != TTMON_MT_PREFETCH)
		err = find_part(an, dict, rec, (uint32_t)site, &part);
	if (err)
		return err;
	key.site = (uint32_t)site;
	key.launch = (uint32_t)launch;
	key.space = rec->space;
	if (part)
		key.buffer = part->buffer;
	err = find_cell(an, dict, &key, &cell);
	if (err)
		return err;
	if (an->records >> an->col_shift >= an->opts.heat_cols)
		ttmon_mt_an_heat_next(an);
	an->records++;
	if (!again(cell, rec))
		other(cell, rec);
	step(an, &cell->sums, rec, key.site);
	return part ? walk(an, dict, rec, cell, part) : 0;
}
