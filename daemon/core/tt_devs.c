// SPDX-License-Identifier: GPL-2.0-only
/*
 * tt_devs.c: the devices and meshes of a process, and which is which. Part of core/tt (hot thread, pure).
 *
 * A device is known by its address. Its logical id comes from Device::Device, else from what the daemon read of a mesh, else from the
 * word that the 2026 header keeps it in (so does the daemon): neither is believed again in a process where it was wrong once. A use is
 * made for every logical id, and one for each device without: Devices that were made again with the same id share theirs.
 */
#include "core/tt_int.h"

#define ID_AT	  3 /* word of a Device with id_ in its lower half, as the header of 2026 has it */
#define ID_AT_OLD 1 /* the same before: right behind the vtable pointer, where later a pointer lies */

/* Its id as its words say. An id 0 at the old place cannot be told from a null pointer, and is 0 at the new one too. */
static uint32_t id_word(const __u64 *w)
{
	return w[ID_AT_OLD] && w[ID_AT_OLD] < TTMON_TT_LOGICALS ? (uint32_t)w[ID_AT_OLD] : (uint32_t)w[ID_AT];
}

uint32_t ttmon_tt_dev_find(const struct ttmon_tt_proc *p, uint64_t addr)
{
	uint64_t idx = ttmon_hmap_get(&p->by_dev, addr);

	return idx == TTMON_HMAP_NONE ? TTMON_TT_NIL : (uint32_t)idx;
}

/* ---- uses ---- */

static uint32_t use_new(struct ttmon_tt_proc *p, uint32_t logical)
{
	uint32_t idx;

	for (idx = 0; idx < p->nr_uses && !p->uses[idx].dead; idx++)
		;
	if (idx == p->nr_uses) {
		if (ttmon_tt_grow((void **)&p->uses, p->nr_uses, &p->cap_uses, sizeof(*p->uses)) < 0)
			return TTMON_TT_NIL;
		p->nr_uses++;
	}
	p->uses[idx] = (struct ttmon_tt_usage){ .pub.logical = logical, .chip = TTMON_TT_NIL };
	return idx;
}

static uint32_t use_of(const struct ttmon_tt_proc *p, uint32_t logical)
{
	for (uint32_t i = 0; i < p->nr_uses; i++)
		if (!p->uses[i].dead && p->uses[i].pub.logical == logical)
			return i;
	return TTMON_TT_NIL;
}

/* It has a logical id now: which chip is that? */
static void use_named(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t use)
{
	struct ttmon_tt_usage *u = &p->uses[use];

	for (uint32_t i = 0; i < p->nr_places; i++)
		if (p->places[i].logical == u->pub.logical) {
			ttmon_tt_use_chip(t, u, p->places[i].chip, p->places[i].how);
			return;
		}
	ttmon_tt_want_chip(t, p, u->pub.logical);
}

static void each_part(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_tt_device *d, uint32_t use,
		      bool add)
{
	struct ttmon_tt_usage *u = &p->uses[use];

	if (add)
		ttmon_tt_use_add(t, u, d, true);
	else
		ttmon_tt_use_sub(t, u, d, false);
	for (uint32_t i = 0; i < d->nr_links; i++) {
		const struct ttmon_tt_device *m = &p->devs[d->links[i]];

		if (add)
			ttmon_tt_use_add(t, u, m, m->known != TTMON_TT_MESH_ASSUMED_ALL);
		else
			ttmon_tt_use_sub(t, u, m, false);
	}
}

/* All that device d holds counts for this logical id from now on. */
static void move(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_device *d, uint32_t logical)
{
	uint32_t from = d->use, to = logical == TTMON_TT_NO_LOGICAL ? TTMON_TT_NIL : use_of(p, logical);
	bool lone = p->uses[from].pub.logical == TTMON_TT_NO_LOGICAL;

	if (to == TTMON_TT_NIL && lone) {
		p->uses[from].pub.logical = logical;
		use_named(t, p, from);
		return;
	}
	if (to == TTMON_TT_NIL)
		to = use_new(p, logical);
	if (to == TTMON_TT_NIL)
		return;
	each_part(t, p, d, from, false);
	if (lone) {
		/* What it had alone it had there, whatever else was there. */
		for (unsigned int i = 0; i < TTMON_TT_TYPES; i++)
			p->uses[to].pub.peak[i] = MAX(p->uses[to].pub.peak[i], p->uses[from].pub.peak[i]);
		p->uses[from].dead = true;
	}
	each_part(t, p, d, to, true);
	d->use = to;
	/* After an exec the place is unknown, and the chip may be another one. */
	if (logical != TTMON_TT_NO_LOGICAL)
		use_named(t, p, to);
}

/* ---- devices ---- */

static bool has_device(const struct ttmon_tt_proc *p, uint32_t use)
{
	for (uint32_t i = 0; i < p->nr_devs; i++)
		if (p->devs[i].kind == TTMON_TT_DEV_DEVICE && p->devs[i].use == use)
			return true;
	return false;
}

void ttmon_tt_dev_distrust(struct ttmon_tt *t, struct ttmon_tt_proc *p)
{
	p->bad_ids = true;
	for (uint32_t i = 0; i < p->nr_devs; i++) {
		struct ttmon_tt_device *d = &p->devs[i];
		uint32_t use;

		if (d->kind != TTMON_TT_DEV_DEVICE || !d->id || d->id == TTMON_TT_ID_CALL)
			continue;
		use = d->use;
		move(t, p, d, TTMON_TT_NO_LOGICAL);
		d->id = TTMON_TT_ID_NONE;
		/* That logical id was never there. */
		if (!p->uses[use].pub.allocs)
			p->uses[use].dead = !has_device(p, use);
	}
}

void ttmon_tt_dev_id(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, uint32_t logical, enum ttmon_tt_id how)
{
	struct ttmon_tt_device *d = &p->devs[dev];
	bool same;

	if (d->kind != TTMON_TT_DEV_DEVICE || logical >= TTMON_TT_LOGICALS || (how != TTMON_TT_ID_CALL && p->bad_ids))
		return;
	same = p->uses[d->use].pub.logical == logical;
	if (!same && d->id && (how == TTMON_TT_ID_CALL) != (d->id == TTMON_TT_ID_CALL)) {
		ttmon_tt_dev_distrust(t, p);
		if (how != TTMON_TT_ID_CALL)
			return;
	}
	/* Two that were read: the object may be another one by now, unless it holds something. */
	if (!same && how <= d->id && how != TTMON_TT_ID_CALL && (d->live || d->nr_links))
		return;
	if (!same)
		move(t, p, d, logical);
	d->id = (uint8_t)MAX((unsigned int)how, same ? d->id : 0U);
}

static bool id_is_taken(const struct ttmon_tt_proc *p, uint32_t dev, uint32_t logical)
{
	for (uint32_t i = 0; i < p->nr_devs; i++) {
		const struct ttmon_tt_device *d = &p->devs[i];

		if (i != dev && d->kind == TTMON_TT_DEV_DEVICE && !d->closed && d->id == TTMON_TT_ID_WORD &&
		    p->uses[d->use].pub.logical == logical)
			return true;
	}
	return false;
}

void ttmon_tt_dev_words(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, const __u64 *w)
{
	struct ttmon_tt_device *d = &p->devs[dev];

	if (d->kind == TTMON_TT_DEV_MESH) {
		p->vt_mesh = w[0];
		/* Another mesh in the same place has another impl. */
		if (d->ident && d->ident != w[ID_AT] && !d->live)
			ttmon_tt_mesh_forget(p, dev);
		d->ident = w[ID_AT];
		return;
	}
	p->vt_device = w[0];
	if (d->id && id_word(w) == p->uses[d->use].pub.logical)
		return;
	/* Two devices of one id: then it is not the id that lies there. */
	if (id_is_taken(p, dev, id_word(w)))
		ttmon_tt_dev_distrust(t, p);
	ttmon_tt_dev_id(t, p, dev, id_word(w), TTMON_TT_ID_WORD);
}

/* A place whose device is gone and holds nothing, and that nobody refers to. */
static uint32_t recycle(struct ttmon_tt *t, struct ttmon_tt_proc *p)
{
	if (t->tentative.head != TTMON_TT_NIL || t->nr_groups)
		return TTMON_TT_NIL;
	for (uint32_t i = 0; i < p->nr_devs; i++) {
		struct ttmon_tt_device *d = &p->devs[i];

		if (d->live || d->waits || (d->kind == TTMON_TT_DEV_DEVICE && (!d->closed || d->nr_links)))
			continue;
		if (d->kind == TTMON_TT_DEV_MESH)
			ttmon_tt_mesh_forget(p, i);
		else if (p->uses[d->use].pub.logical == TTMON_TT_NO_LOGICAL)
			p->uses[d->use].dead = true;
		free(d->links);
		d->links = NULL;
		d->cap_links = 0;
		ttmon_hmap_del(&p->by_dev, d->addr);
		return i;
	}
	return TTMON_TT_NIL;
}

static uint32_t dev_make(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint64_t addr, uint8_t kind, uint16_t slot)
{
	uint32_t idx, use = TTMON_TT_NIL;

	if (kind == TTMON_TT_DEV_DEVICE) {
		use = use_new(p, TTMON_TT_NO_LOGICAL);
		if (use == TTMON_TT_NIL)
			goto full;
	}
	if (p->nr_devs >= TTMON_TT_DEVS) {
		idx = recycle(t, p);
		if (idx == TTMON_TT_NIL)
			goto full;
	} else {
		if (ttmon_tt_grow((void **)&p->devs, p->nr_devs, &p->cap_devs, sizeof(*p->devs)) < 0)
			goto full;
		idx = p->nr_devs;
	}
	/* A table that just lost an entry (recycle) has room for one: the place cannot be left half made. */
	if (ttmon_hmap_put(&p->by_dev, addr, idx) < 0)
		goto full;
	if (idx == p->nr_devs)
		p->nr_devs++;
	p->devs[idx] = (struct ttmon_tt_device){
		.addr = addr,
		.kind = kind,
		.slot = slot,
		.use = use,
		.bufs = { .head = TTMON_TT_NIL, .tail = TTMON_TT_NIL },
		.cbs = { .head = TTMON_TT_NIL, .tail = TTMON_TT_NIL },
	};
	p->gen_devs++;
	p->seen = true;
	t->generation++;
	return idx;
full:
	if (use != TTMON_TT_NIL)
		p->uses[use].dead = true;
	p->pub.flags |= TTMON_TT_F_LIMIT;
	t->generation++;
	return TTMON_TT_NIL;
}

/* Everything of it ends; it may come again. */
static void shut(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, uint64_t ts_ns, uint16_t fn)
{
	struct ttmon_tt_device *d = &p->devs[dev];

	ttmon_tt_buf_end_tentative(t, p, dev);
	p->swept += d->live;
	ttmon_tt_buf_end_dev(t, d, ts_ns, fn, TTMON_TT_END_FREE);
	if (d->kind == TTMON_TT_DEV_MESH) {
		ttmon_tt_mesh_forget(p, dev);
		return;
	}
	while (d->nr_links) {
		uint32_t mesh = d->links[0];
		struct ttmon_tt_device *m = &p->devs[mesh];

		ttmon_tt_use_sub(t, &p->uses[d->use], m, true);
		ttmon_tt_mesh_unlink(p, mesh, dev);
		if (m->nr_links)
			continue;
		p->swept += m->live;
		ttmon_tt_buf_end_dev(t, m, ts_ns, fn, TTMON_TT_END_FREE);
		ttmon_tt_mesh_forget(p, mesh);
	}
	d->closed = true;
	p->gen_devs++;
	t->generation++;
}

uint32_t ttmon_tt_dev_get(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint64_t addr, uint8_t kind, uint16_t slot)
{
	uint32_t idx = ttmon_tt_dev_find(p, addr);
	struct ttmon_tt_device *d;

	if (idx == TTMON_TT_NIL)
		return kind == TTMON_TT_DEV_UNKNOWN || !addr ? TTMON_TT_NIL : dev_make(t, p, addr, kind, slot);
	d = &p->devs[idx];
	if (kind == TTMON_TT_DEV_UNKNOWN || kind == d->kind) {
		if (d->closed) {
			d->closed = false;
			p->gen_devs++;
		}
		return idx;
	}
	/* Something else lies there now. */
	shut(t, p, idx, t->now_ns, 0);
	if (kind == TTMON_TT_DEV_DEVICE) {
		uint32_t use = use_new(p, TTMON_TT_NO_LOGICAL);

		if (use == TTMON_TT_NIL)
			return TTMON_TT_NIL;
		d->use = use;
	} else if (p->uses[d->use].pub.logical == TTMON_TT_NO_LOGICAL) {
		p->uses[d->use].dead = true;
	}
	d->kind = kind;
	d->id = TTMON_TT_ID_NONE;
	d->closed = false;
	memset(d->bytes, 0, sizeof(d->bytes));
	memset(d->peak, 0, sizeof(d->peak));
	d->allocs = d->frees = d->ident = 0;
	p->gen_devs++;
	return idx;
}

void ttmon_tt_dev_new(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev)
{
	uint32_t idx = ttmon_tt_dev_find(p, ev->arg[0]);

	if (idx != TTMON_TT_NIL)
		shut(t, p, idx, ev->h.ts_ns, ev->fn);
	idx = ttmon_tt_dev_get(t, p, ev->arg[0], TTMON_TT_DEV_DEVICE, ev->slot);
	if (idx == TTMON_TT_NIL)
		return;
	/* It is a new object: what the old one's id was says nothing. */
	if (p->uses[p->devs[idx].use].pub.logical != (uint32_t)ev->arg[1])
		p->devs[idx].id = TTMON_TT_ID_NONE;
	ttmon_tt_dev_id(t, p, idx, (uint32_t)ev->arg[1], TTMON_TT_ID_CALL);
}

void ttmon_tt_dev_end(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev)
{
	uint32_t idx = ttmon_tt_dev_find(p, ev->arg[0]);

	if (idx != TTMON_TT_NIL)
		shut(t, p, idx, ev->h.ts_ns, ev->fn);
}

void ttmon_tt_devs_fini(struct ttmon_tt_proc *p)
{
	for (uint32_t i = 0; i < p->nr_devs; i++)
		free(p->devs[i].links);
	free(p->devs);
	p->devs = NULL;
	p->nr_devs = p->cap_devs = p->nr_links = 0;
	ttmon_hmap_fini(&p->by_dev);
}
