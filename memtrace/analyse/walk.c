// SPDX-License-Identifier: GPL-2.0-only
/*
 * walk.c: what a global access does to sets, heat and reuse. Runs of sectors that meet go to the sets
 * as one run; columns (the same sectors in steps, as the warps beside it have them) go to the sets
 * once, as sets take no note of a second time; and a sector goes to the set of its launch alone: those
 * of buffers get theirs from there when launches are done with (ttmon_mt_an_share()).
 */
#include "memtrace/analyse/an_int.h"
#include "memtrace/model/shape_parts.h"

#define MAX_WAIT (1u << 24) /* sectors that wait for their set */
#define GOLDEN	 0x9e3779b97f4a7c15

/*
 * What the launch's set has exactly comes to the buffer's from there: ttmon_mt_an_share(). What it has
 * not, and what two buffers share, goes there at once.
 */
static void add_to_buffer(struct ttmon_mt_buf *b, uint64_t sector, uint32_t n)
{
	if (b->set)
		ttmon_mt_sectors_add(b->set, sector, n);
}

void ttmon_mt_an_spill_cell(struct ttmon_mt_an *an, struct ttmon_mt_cell *c)
{
	uint32_t n = (uint32_t)(c->end - c->from);
	struct ttmon_mt_sectors *set;

	if (!n)
		return;
	set = ttmon_mt_an_is_open(an, c->key.launch);
	if (!set || !ttmon_mt_sectors_add(set, c->from, n))
		add_to_buffer(&an->bufs[c->key.buffer], c->from, n);
	c->from = c->end = 0;
}

void ttmon_mt_an_spill(struct ttmon_mt_an *an)
{
	for (unsigned int i = 0; i < TTMON_MT_AN_CELLS; i++)
		if (an->cells[i].key.site != TTMON_MT_NONE)
			ttmon_mt_an_spill_cell(an, &an->cells[i]);
}

static uint32_t place_nr(uint64_t sector)
{
	/* The highest bits: neighbours do not meet. */
	return (uint32_t)((sector >> 16) * GOLDEN / (UINT64_MAX / TTMON_MT_AN_PLACES + 1));
}

int ttmon_mt_an_part_at(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, uint32_t launch, uint64_t addr,
			const struct ttmon_mt_part **ret)
{
	uint64_t sector = addr / TTMON_MT_SECTOR;
	struct ttmon_mt_place *p = &an->places[place_nr(sector)];
	int err;

	if (p->launch != launch + 1 || !ttmon_mt_an_is_in(&p->part, sector, 1)) {
		p->launch = 0;
		err = ttmon_mt_an_part(an, &dict->launches[launch], addr, &p->part);
		if (err)
			return err;
		p->launch = launch + 1;
		ttmon_mt_an_seen(&an->bufs[p->part.buffer], launch);
	}
	*ret = &p->part;
	return 0;
}

/* One run in the cell's own buffer alone: it waits there for what may join it. */
void ttmon_mt_an_walk_run(struct ttmon_mt_an *an, struct ttmon_mt_cell *c, uint64_t sector, uint32_t n)
{
	struct ttmon_mt_buf *b = &an->bufs[c->key.buffer];

	if (an->reuse)
		ttmon_mt_reuse_touch(an->reuse, sector, n);
	if (b->heat.count)
		ttmon_mt_an_heat_add(an, &b->heat, sector, n);
	if (sector <= c->end && sector + n >= c->from && c->end - c->from < MAX_WAIT) {
		c->from = MIN(c->from, sector);
		c->end = MAX(c->end, sector + n);
	} else {
		ttmon_mt_an_spill_cell(an, c);
		c->from = sector;
		c->end = sector + n;
	}
}

/*
 * Runs of per sectors each, in equal steps, all in the cell's own buffer alone. What was there before
 * in this launch is in the sets.
 */
static void walk_steps(struct ttmon_mt_an *an, struct ttmon_mt_cell *c, struct ttmon_mt_sectors *set, uint64_t first,
		       uint64_t by, uint32_t per)
{
	struct ttmon_mt_column *col = &an->columns[first * GOLDEN / (UINT64_MAX / TTMON_MT_AN_COLUMNS + 1)];
	struct ttmon_mt_buf *b = &an->bufs[c->key.buffer];
	uint32_t followed;

	if (b->heat.count)
		ttmon_mt_an_heat_steps(an, &b->heat, first, by, c->len, per);
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
	if ((!set || !ttmon_mt_sectors_runs(set, c->shape.runs, c->len, false)) && b->set)
		ttmon_mt_sectors_runs(b->set, c->shape.runs, c->len, false);
	followed = an->reuse ? (uint32_t)ttmon_mt_reuse_runs(an->reuse, c->shape.runs, c->len) : 0;
	*col = (struct ttmon_mt_column){ .first = first,
					 .by = by,
					 .launch = c->key.launch + 1,
					 .followed = followed,
					 .buffer = c->key.buffer,
					 .per = (uint16_t)per,
					 .len = (uint16_t)c->len };
}

/* Runs that ascend, all in the cell's own buffer alone: a gather. */
static void walk_list(struct ttmon_mt_an *an, const struct ttmon_mt_cell *c, struct ttmon_mt_sectors *set)
{
	const struct ttmon_mt_run *runs = c->shape.runs;
	struct ttmon_mt_buf *b = &an->bufs[c->key.buffer];
	unsigned int nr = c->shape.nr_runs;

	if (an->reuse)
		ttmon_mt_reuse_runs(an->reuse, runs, nr);
	if ((!set || !ttmon_mt_sectors_runs(set, runs, nr, true)) && b->set)
		ttmon_mt_sectors_runs(b->set, runs, nr, true);
	for (unsigned int i = 0; i < nr && b->heat.count; i++)
		ttmon_mt_an_heat_add(an, &b->heat, runs[i].sector, runs[i].n);
}

/* A request that is being counted in several parts of memory. */
struct request {
	struct ttmon_mt_an *an;
	uint32_t own;  /* the buffer that its first lane is in */
	uint32_t last; /* the one that it was counted in last */
	bool held;     /* the launch's set has its sectors exactly */
	bool reads, writes;
};

/* n sectors of a buffer; alone: they are in no other. */
static inline __attribute__((always_inline)) void touch(struct request *q, uint32_t buffer, uint64_t sector, uint32_t n,
							bool alone)
{
	struct ttmon_mt_buf *b = &q->an->bufs[buffer];
	uint64_t low = sector * TTMON_MT_SECTOR, high = (sector + n) * TTMON_MT_SECTOR;

	if (b->heat.count)
		ttmon_mt_an_heat_add(q->an, &b->heat, sector, n);
	if (!q->held || !alone)
		add_to_buffer(b, sector, n);
	if (buffer == q->own)
		return;
	if (buffer != q->last) {
		b->touches++;
		b->reads += q->reads;
		b->writes += q->writes;
		q->last = buffer;
	}
	/* Branches that are seldom taken. */
	if (low < b->low)
		b->low = low;
	if (high > b->high)
		b->high = high;
}

/* A run that may be in several parts. -ENOMEM. */
static int touch_any(struct request *q, const struct ttmon_mt_dict *dict, uint32_t launch, uint64_t sector, uint32_t n)
{
	while (n) {
		const struct ttmon_mt_part *part;
		int err = ttmon_mt_an_part_at(q->an, dict, launch, sector * TTMON_MT_SECTOR, &part);
		uint32_t here;

		if (err)
			return err;
		here = part->last - sector < n ? (uint32_t)(part->last - sector) + 1 : n;
		touch(q, part->buffer, sector, here, ttmon_mt_an_is_inner(part, sector, here));
		sector += here;
		n -= here;
	}
	return 0;
}

/* The runs of the shape, wherever they are. */
static int walk_all(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec,
		    const struct ttmon_mt_cell *c, struct ttmon_mt_sectors *set)
{
	const struct ttmon_mt_run *runs = c->shape.runs;
	unsigned int nr = c->shape.nr_runs;
	struct request q = { .an = an,
			     .own = c->key.buffer,
			     .last = c->key.buffer,
			     .reads = ttmon_mt_reads(c->key.kind),
			     .writes = ttmon_mt_writes(c->key.kind) };
	int err = 0;

	if (an->reuse)
		ttmon_mt_reuse_runs(an->reuse, runs, nr);
	q.held = set && ttmon_mt_sectors_runs(set, runs, nr, true);
	for (unsigned int i = 0; i < nr && !err; i++) {
		const struct ttmon_mt_place *place = &an->places[place_nr(runs[i].sector)];

		if (place->launch == rec->launch + 1 && ttmon_mt_an_is_inner(&place->part, runs[i].sector, runs[i].n))
			touch(&q, place->part.buffer, runs[i].sector, runs[i].n, true);
		else if (ttmon_mt_an_is_in(&c->part, runs[i].sector, runs[i].n)) /* though it may begin before it */
			touch(&q, c->key.buffer, runs[i].sector, runs[i].n,
			      ttmon_mt_an_is_inner(&c->part, runs[i].sector, runs[i].n));
		else
			err = touch_any(&q, dict, rec->launch, runs[i].sector, runs[i].n);
	}
	return err;
}

int ttmon_mt_an_walk(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec,
		     struct ttmon_mt_cell *c)
{
	uint64_t first = (rec->base + c->down) / TTMON_MT_SECTOR, by = c->step / TTMON_MT_SECTOR;
	const struct ttmon_mt_open *o = &an->open[an->cur];
	struct ttmon_mt_sectors *set = o->set;
	unsigned int nr = c->shape.nr_runs;
	uint32_t per;
	int err = 0;

	if (o->row != c->key.launch)
		set = ttmon_mt_an_open(an, dict, c->key.launch, &err);
	if (err)
		return err;
	if (!c->like) {
		const struct ttmon_mt_run *runs = c->shape.runs;

		if (!nr || !ttmon_mt_an_is_inner(&c->part, runs[0].sector, 1) ||
		    !ttmon_mt_an_is_inner(&c->part, runs[nr - 1].sector, runs[nr - 1].n))
			return walk_all(an, dict, rec, c, set);
		walk_list(an, c, set);
		return 0;
	}
	per = nr == 1 ? c->shape.sectors : c->shape.sectors / nr;
	if (ttmon_mt_an_is_inner(&c->part, first, by * (nr - 1) + per)) {
		if (nr == 1)
			ttmon_mt_an_walk_run(an, c, first, per);
		else
			walk_steps(an, c, set, first, by, per);
		return 0;
	}
	for (unsigned int i = 0; i < nr; i++)
		c->shape.runs[i] = (struct ttmon_mt_run){ first + by * i, per };
	return walk_all(an, dict, rec, c, set);
}
