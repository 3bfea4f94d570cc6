// SPDX-License-Identifier: GPL-2.0-only
/*
 * devs.c: the devices and meshes of a process, their identities, and the members of each mesh. Part of
 * core/tt (hot thread, pure).
 *
 * A device is known by its address. Its logical id comes from Device::Device, else from what the
 * daemon read of a mesh, else from the word that holds it in the header of 2026 (the daemon uses the
 * same word). In a process where one of these was wrong once, neither is believed again. Every logical
 * id has a use, and so has each device without an id: Devices that are created again with the same id
 * share one.
 *
 * The members of a mesh come, at best, from events: tt-metal makes one owning Buffer on the MeshDevice
 * and then, in the same thread, a shadow of the same size and address on each local device. The list
 * is complete once the thread does something else. A thread that only pauses may have been preempted
 * between two shadows: so a mesh gains devices from the shadows seen within 20 ms, but loses devices
 * that were found in memory only after 400 ms. Second best is what the daemon found in the process's
 * memory (TT_MESH). Where neither comes within 400 ms of stream time and the daemon's search failed,
 * or did not happen within 5 s, all devices of the process are assumed to be members, and a later
 * answer corrects that. Until then its bytes are pending. The probes for shadows stay active until
 * each mesh in use was seen once, since what was found in memory may be wrong. A process whose figures
 * ever relied on an assumption is flagged to its end.
 */
#include "daemon/core/tt/tt_int.h"
#include "lib/base/grow.h"

#define ID_AT	  3 /* word of a Device with id_ in its lower half, in the header of 2026 */
#define ID_AT_OLD 1 /* the same in earlier headers: right after the vtable pointer, where newer ones have a pointer */

/*
 * The id as the words hold it. An id 0 at the old place looks like a null pointer; the word at the new
 * place is then 0 too.
 */
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
		if (TTMON_GROW(p->uses, p->cap_uses, p->nr_uses + 1, 8))
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

/* The use has a logical id now: finds its chip. */
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

int ttmon_tt_use_get(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t logical)
{
	uint32_t use;

	if (logical >= TTMON_TT_LOGICALS)
		return -1;
	if (use_of(p, logical) != TTMON_TT_NIL)
		return 0;
	use = use_new(p, logical);
	if (use == TTMON_TT_NIL)
		return -1;
	use_named(t, p, use);
	t->generation++;
	return 0;
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

/* Everything that device d holds counts for this logical id from now on. */
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
		/* The peak of its own use is a lower bound for the use that it joins. */
		for (unsigned int i = 0; i < TTMON_TT_TYPES; i++)
			p->uses[to].pub.peak[i] = MAX(p->uses[to].pub.peak[i], p->uses[from].pub.peak[i]);
		p->uses[from].dead = true;
	}
	each_part(t, p, d, to, true);
	d->use = to;
	/* After an exec the position is unknown, and the chip may be another one. */
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
		/* That logical id never existed. */
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
	/* Both ids were read from memory: the object may be another one by now, unless it holds something. */
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
		/* Another mesh at the same address has another impl pointer. */
		if (d->ident && d->ident != w[ID_AT] && !d->live)
			ttmon_tt_mesh_forget(p, dev);
		d->ident = w[ID_AT];
		return;
	}
	p->vt_device = w[0];
	if (d->id && id_word(w) == p->uses[d->use].pub.logical)
		return;
	/* Two devices with one id: so the word is not the id. */
	if (id_is_taken(p, dev, id_word(w)))
		ttmon_tt_dev_distrust(t, p);
	ttmon_tt_dev_id(t, p, dev, id_word(w), TTMON_TT_ID_WORD);
}

/* An entry whose device is gone, holds nothing, and is not referred to. */
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
		p->ends++;
		ttmon_tt_cbs_end_dev(t, p, i, t->now_ns, 0);
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
		if (TTMON_GROW(p->devs, p->cap_devs, p->nr_devs + 1, 8))
			goto full;
		idx = p->nr_devs;
	}
	/*
	 * A table that just lost an entry (recycle) has room for one; this keeps the entry from being half
	 * made.
	 */
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

/* Everything on the device ends; the device may be opened again. */
static void shut(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, uint64_t ts_ns, uint16_t fn)
{
	struct ttmon_tt_device *d = &p->devs[dev];

	ttmon_tt_buf_end_tentative(t, p, dev);
	ttmon_tt_buf_sweep_dev(t, p, dev, ts_ns, fn);
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
		ttmon_tt_buf_sweep_dev(t, p, mesh, ts_ns, fn);
		ttmon_tt_mesh_forget(p, mesh);
	}
	d->closed = true;
	d->event_ns = ts_ns;
	p->ends++;
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
			/* Programs that had circular buffers there may run again. */
			if (d->cbs_lost)
				p->pub.flags |= TTMON_TT_F_CB_UNKNOWN;
		}
		return idx;
	}
	/* Another object lies at that address now. */
	shut(t, p, idx, t->now_ns, 0);
	ttmon_tt_cbs_end_dev(t, p, idx, t->now_ns, 0);
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
	d->closed = d->cbs_lost = false;
	memset(d->bytes, 0, sizeof(d->bytes));
	memset(d->peak, 0, sizeof(d->peak));
	d->allocs = d->frees = d->ident = 0;
	p->gen_devs++;
	return idx;
}

void ttmon_tt_dev_new(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev)
{
	uint32_t idx = ttmon_tt_dev_find(p, ev->arg[0]);

	if (idx != TTMON_TT_NIL) {
		shut(t, p, idx, ev->h.ts_ns, ev->fn);
		/* Programs that had circular buffers on the old device are gone, since their destructors use it. */
		ttmon_tt_cbs_end_dev(t, p, idx, ev->h.ts_ns, ev->fn);
		p->devs[idx].cbs_lost = false;
	}
	idx = ttmon_tt_dev_get(t, p, ev->arg[0], TTMON_TT_DEV_DEVICE, ev->slot);
	if (idx == TTMON_TT_NIL)
		return;
	/* It is a new object: the old one's id does not apply. */
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

void ttmon_tt_mesh_anew(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev)
{
	uint32_t idx = ttmon_tt_dev_find(p, ev->arg[0]);

	if (idx != TTMON_TT_NIL && p->devs[idx].kind == TTMON_TT_DEV_MESH)
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

#define ASSUMED_AT_ONCE 64 /* meshes handled per tick, in turn */

static bool link_add(struct ttmon_tt_device *d, uint32_t idx)
{
	if (TTMON_GROW(d->links, d->cap_links, d->nr_links + 1, 8))
		return false;
	d->links[d->nr_links++] = idx;
	return true;
}

static void link_del(struct ttmon_tt_device *d, uint32_t idx)
{
	for (uint32_t i = 0; i < d->nr_links; i++)
		if (d->links[i] == idx) {
			d->nr_links--;
			memmove(d->links + i, d->links + i + 1, (d->nr_links - i) * sizeof(*d->links));
			return;
		}
}

void ttmon_tt_mesh_unlink(struct ttmon_tt_proc *p, uint32_t mesh, uint32_t dev)
{
	link_del(&p->devs[mesh], dev);
	link_del(&p->devs[dev], mesh);
	p->nr_links--;
}

void ttmon_tt_mesh_forget(struct ttmon_tt_proc *p, uint32_t mesh)
{
	struct ttmon_tt_device *m = &p->devs[mesh];

	p->ends++;
	ttmon_tt_cbs_mesh_gone(p, mesh);
	while (m->nr_links)
		ttmon_tt_mesh_unlink(p, mesh, m->links[m->nr_links - 1]);
	m->known = TTMON_TT_MESH_UNKNOWN;
	m->allocs = m->frees = 0;
	m->ident = 0;
	m->silent = 0;
	m->used = m->looked = false;
	m->gen = 0;
	memset(m->peak, 0, sizeof(m->peak));
}

static bool is_member(const struct ttmon_tt_device *m, uint32_t dev)
{
	for (uint32_t i = 0; i < m->nr_links; i++)
		if (m->links[i] == dev)
			return true;
	return false;
}

/* True if every member is among these. */
static bool covers(const struct ttmon_tt_device *m, const uint32_t *devs, uint32_t n)
{
	uint32_t common = 0;

	for (uint32_t i = 0; i < n; i++)
		common += is_member(m, devs[i]);
	return common == m->nr_links;
}

/* Two members of a mesh cannot be the same chip. */
static void check_ids(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_tt_device *m)
{
	for (uint32_t i = 0; i < m->nr_links; i++) {
		const struct ttmon_tt_device *a = &p->devs[m->links[i]];

		for (uint32_t k = 0; k < i; k++) {
			const struct ttmon_tt_device *b = &p->devs[m->links[k]];

			if (a->use != b->use || (a->id != TTMON_TT_ID_WORD && b->id != TTMON_TT_ID_WORD))
				continue;
			ttmon_tt_dev_distrust(t, p);
			return;
		}
	}
}

static bool link_both(struct ttmon_tt_proc *p, uint32_t mesh, uint32_t dev)
{
	if (!link_add(&p->devs[mesh], dev))
		return false;
	if (!link_add(&p->devs[dev], mesh)) {
		link_del(&p->devs[mesh], dev);
		return false;
	}
	p->nr_links++;
	return true;
}

/* Sets the mesh's members, without duplicates. False: out of memory, the members are now unknown. */
static bool mesh_set(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t mesh, const uint32_t *devs, uint32_t n,
		     enum ttmon_tt_known known, bool raise)
{
	struct ttmon_tt_device *m = &p->devs[mesh];
	bool ok = true, was_known;

	if (!n)
		return false;
	while (m->nr_links) {
		uint32_t dev = m->links[m->nr_links - 1];

		ttmon_tt_use_sub(t, &p->uses[p->devs[dev].use], m, false);
		ttmon_tt_mesh_unlink(p, mesh, dev);
	}
	ok = p->nr_links + n <= TTMON_TT_LINKS;
	for (uint32_t i = 0; i < n && ok; i++) {
		ok = link_both(p, mesh, devs[i]);
		if (ok)
			ttmon_tt_use_add(t, &p->uses[p->devs[devs[i]].use], m, raise);
	}
	if (!ok) {
		while (m->nr_links) {
			uint32_t dev = m->links[m->nr_links - 1];

			ttmon_tt_use_sub(t, &p->uses[p->devs[dev].use], m, false);
			ttmon_tt_mesh_unlink(p, mesh, dev);
		}
		m->known = TTMON_TT_MESH_UNKNOWN;
		p->pub.flags |= TTMON_TT_F_LIMIT;
		return false;
	}
	was_known = m->known != TTMON_TT_MESH_UNKNOWN;
	m->known = (uint8_t)known;
	m->gen = p->gen_devs;
	check_ids(t, p, m);
	/*
	 * Buffers that came since the members were known have been reported already; the list may be long, so
	 * it is not walked again.
	 */
	if (!was_known)
		ttmon_tt_buf_tell(t, p, mesh);
	ttmon_tt_cbs_mesh_set(t, p, mesh);
	for (uint32_t i = 0; i < n; i++)
		if (p->uses[p->devs[devs[i]].use].pub.logical == TTMON_TT_NO_LOGICAL) {
			ttmon_tt_want_mesh(t, p, mesh, false);
			break;
		}
	return true;
}

static bool is_same(const struct ttmon_tt_device *m, const uint32_t *devs, uint32_t n)
{
	return n == m->nr_links && covers(m, devs, n);
}

bool ttmon_tt_mesh_is_open(const struct ttmon_tt *t, const struct ttmon_tt_device *m)
{
	const struct ttmon_tt_slotinfo *s = &t->slots[m->slot];

	if (m->known != TTMON_TT_MESH_TOLD)
		return m->known < TTMON_TT_MESH_TOLD;
	/*
	 * What was found in memory may be wrong, but where the library has no function that shows shadows, it
	 * is all there is.
	 */
	return s->told && s->has & TTMON_TT_HAS_SHADOW && m->silent < TTMON_TT_SILENT;
}

void ttmon_tt_mesh_used(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t mesh, uint64_t ts_ns)
{
	struct ttmon_tt_device *m = &p->devs[mesh];
	bool first = !m->used;

	m->used = true;
	m->event_ns = ts_ns;
	if (!ttmon_tt_mesh_is_open(t, m) || (m->waits && !first))
		return;
	/* A mesh already in this entry may still be waited for: the answer is then this one's. */
	if (!m->waits) {
		if (TTMON_GROW(t->unknown, t->cap_unknown, t->nr_unknown + 1, 8))
			return;
		t->unknown[t->nr_unknown++] =
			(struct ttmon_tt_waiting){ .serial = p->serial, .proc = p->idx, .dev = mesh };
		m->waits = true;
	}
	m->since_ns = ts_ns;
	ttmon_tt_want_mesh(t, p, mesh, true);
}

void ttmon_tt_mesh_fact(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_mesh *ev, size_t size)
{
	uint32_t mesh = ttmon_tt_dev_find(p, ev->mesh), n = 0, devs[TTMON_TT_MESH_MAX];
	uint32_t count = (uint32_t)MIN((uint64_t)ev->count, (size - sizeof(*ev)) / sizeof(ev->dev[0]));

	if (mesh == TTMON_TT_NIL || p->devs[mesh].kind != TTMON_TT_DEV_MESH || count > TTMON_TT_MESH_MAX)
		return;
	/* The mesh is gone by now, and its memory may hold anything. */
	if (!p->devs[mesh].used)
		return;
	p->devs[mesh].looked = true;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t dev = ttmon_tt_dev_find(p, ev->dev[i].device), k;
		/*
		 * A later allocation on the mesh shows that the device is open again, even if its opening was not
		 * seen.
		 */
		bool closed = dev != TTMON_TT_NIL && p->devs[dev].closed &&
			      !ttmon_before(p->devs[dev].event_ns, p->devs[mesh].event_ns);

		if (ev->dev[i].device == ev->mesh)
			return;
		dev = ttmon_tt_dev_get(t, p, ev->dev[i].device, TTMON_TT_DEV_DEVICE, p->devs[mesh].slot);
		if (dev == TTMON_TT_NIL)
			return;
		p->devs[dev].closed = closed;
		if (!closed)
			ttmon_tt_dev_id(t, p, dev, ev->dev[i].logical, TTMON_TT_ID_FACT);
		for (k = 0; k < n && devs[k] != dev; k++)
			;
		if (k == n && !closed)
			devs[n++] = dev;
	}
	if (p->devs[mesh].known == TTMON_TT_MESH_SEEN &&
	    !(p->pub.flags & TTMON_TT_F_LOST && covers(&p->devs[mesh], devs, n)))
		return;
	if (p->devs[mesh].known != TTMON_TT_MESH_TOLD || !is_same(&p->devs[mesh], devs, n))
		mesh_set(t, p, mesh, devs, n, TTMON_TT_MESH_TOLD, true);
}

/* ---- shadows ---- */

static bool is_waited_for(struct ttmon_tt *t, struct ttmon_tt_thread *th)
{
	if (th->group->due)
		return true;
	if (TTMON_GROW(t->groups, t->cap_groups, t->nr_groups + 1, 8))
		return false;
	t->groups[t->nr_groups++] = (uint32_t)(th - t->threads);
	th->group->due = true;
	return true;
}

static void stop_waiting(struct ttmon_tt *t, struct ttmon_tt_thread *th)
{
	th->group->due = false;
	for (uint32_t i = 0; i < t->nr_groups; i++)
		if (t->groups[i] == th - t->threads) {
			t->groups[i] = t->groups[--t->nr_groups];
			return;
		}
}

void ttmon_tt_group_open(struct ttmon_tt *t, const struct ttmon_tt_proc *p, struct ttmon_tt_thread *th,
			 const struct ttmon_tt_buf *b)
{
	ttmon_tt_group_close(t, th);
	if (!th->group)
		th->group = calloc(1, sizeof(*th->group));
	if (!th->group || !is_waited_for(t, th))
		return;
	th->group->mesh = b->dev;
	th->group->key = b->key;
	th->group->size = b->size;
	th->group->addr = b->addr;
	th->group->type = b->type;
	th->group->from_ns = th->group->last_ns = b->ts_ns;
	th->group->ends = p->ends;
	th->group->n = 0;
	th->group->cut = false;
	th->group_open = true;
}

/*
 * True if the probes that show shadows were active all the time since the buffer. They are removed and
 * attached one by one.
 */
static bool is_watched(const struct ttmon_tt *t, const struct ttmon_tt_device *m, const struct ttmon_tt_group *g)
{
	const struct ttmon_tt_slotinfo *s = &t->slots[m->slot];

	return !s->told || ((s->has & TTMON_TT_HAS_SPARE || s->off_ns) && !ttmon_before(g->from_ns, s->on_ns) &&
			    (!s->off_ns || ttmon_before(t->now_ns, s->off_ns)));
}

/* How certain it is that no more shadows of a group will come. */
enum sure { SURE_NOT, SURE_ENOUGH, SURE };

/*
 * The devices that the group shows are in the mesh. If the group may be incomplete, others may be as
 * well.
 */
static void group_show(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_tt_group *g, enum sure sure)
{
	struct ttmon_tt_device *m = &p->devs[g->mesh];

	for (uint32_t i = 0; i < g->n; i++)
		if (p->devs[g->devs[i]].kind != TTMON_TT_DEV_DEVICE)
			return;
	if ((g->cut || !is_watched(t, m, g)) && (m->known < TTMON_TT_MESH_TOLD || !is_same(m, g->devs, g->n)))
		return;
	if (m->known >= TTMON_TT_MESH_TOLD) {
		bool more = covers(m, g->devs, g->n), seen = m->known == TTMON_TT_MESH_SEEN;

		if (more && g->n == m->nr_links) {
			m->known = TTMON_TT_MESH_SEEN;
			return;
		}
		/*
		 * A group without some members means another mesh at the same address, or lost shadows, or shadows
		 * still to come.
		 */
		if (!more &&
		    (p->pub.flags & TTMON_TT_F_LOST || sure < (seen ? SURE : SURE_ENOUGH) || (seen && m->live > 1)))
			return;
	}
	/* The figures and peaks published so far relied on a wrong list of members. */
	if (m->known == TTMON_TT_MESH_TOLD)
		p->pub.flags |= TTMON_TT_F_MESH_ASSUMED;
	mesh_set(t, p, g->mesh, g->devs, g->n, TTMON_TT_MESH_SEEN, true);
}

/* The process of a thread's group, if the mesh of the group still exists. */
static struct ttmon_tt_proc *group_proc(struct ttmon_tt *t, const struct ttmon_tt_thread *th)
{
	struct ttmon_tt_proc *p = ttmon_tt_proc_at(t, th->proc, th->serial);

	return p && p->ends == th->group->ends && th->group->mesh < p->nr_devs &&
			       p->devs[th->group->mesh].kind == TTMON_TT_DEV_MESH
		       ? p
		       : NULL;
}

/*
 * No other shadow came for a while: the thread may be done, or it was preempted between two of them.
 */
static void group_pause(struct ttmon_tt *t, struct ttmon_tt_thread *th, bool over)
{
	struct ttmon_tt_group *g = th->group;
	struct ttmon_tt_proc *p = group_proc(t, th);

	if (p && g->n)
		group_show(t, p, g, over ? SURE_ENOUGH : SURE_NOT);
	else if (over)
		ttmon_tt_group_close(t, th);
	if (over)
		stop_waiting(t, th);
}

void ttmon_tt_group_close(struct ttmon_tt *t, struct ttmon_tt_thread *th)
{
	struct ttmon_tt_group *g = th->group;
	struct ttmon_tt_proc *p;
	struct ttmon_tt_device *m;

	if (!th->group_open)
		return;
	th->group_open = false;
	stop_waiting(t, th);
	p = group_proc(t, th);
	if (!p)
		return;
	m = &p->devs[g->mesh];
	if (g->n)
		group_show(t, p, g, SURE);
	else
		m->silent += t->slots[m->slot].told && is_watched(t, m, g) && m->silent < TTMON_TT_SILENT;
}

bool ttmon_tt_group_add(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_thread *th,
			const struct ttmon_ev_tt_call *ev)
{
	struct ttmon_tt_group *g = th->group;
	uint32_t dev;
	uint8_t type;

	if (!th->group_open || !ttmon_tt_layout_type((uint32_t)ev->arg[3], &type))
		return false;
	if (ev->arg[1] != g->size || type != g->type || (g->addr && ev->arg[4] != g->addr) ||
	    ev->dev_kind == TTMON_TT_DEV_MESH || ev->arg[0] == p->devs[g->mesh].addr || g->n == TTMON_TT_MESH_MAX)
		return false;
	dev = ttmon_tt_dev_get(t, p, ev->arg[0], ev->dev_kind, ev->slot);
	if (dev == TTMON_TT_NIL || p->devs[dev].kind != TTMON_TT_DEV_DEVICE)
		return false;
	for (uint32_t i = 0; i < g->n; i++)
		if (g->devs[i] == dev)
			return false;
	g->devs[g->n++] = dev;
	g->last_ns = ev->h.ts_ns;
	(void)is_waited_for(t, th); /* out of memory: it is shown when the thread goes on */
	return true;
}

/* ---- time ---- */

static void assume(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t mesh, bool raise)
{
	uint32_t devs[TTMON_TT_MESH_MAX], n = 0;

	p->devs[mesh].gen = p->gen_devs;
	for (uint32_t i = 0; i < p->nr_devs && n < TTMON_TT_MESH_MAX; i++)
		if (p->devs[i].kind == TTMON_TT_DEV_DEVICE && !p->devs[i].closed)
			devs[n++] = i;
	if (n)
		p->pub.flags |= TTMON_TT_F_MESH_ASSUMED;
	mesh_set(t, p, mesh, devs, n, TTMON_TT_MESH_ASSUMED_ALL, raise);
}

void ttmon_tt_mesh_finish(struct ttmon_tt *t, struct ttmon_tt_proc *p)
{
	for (uint32_t i = 0; i < p->nr_devs; i++)
		if (p->devs[i].kind == TTMON_TT_DEV_MESH && p->devs[i].known < TTMON_TT_MESH_TOLD && p->devs[i].used)
			assume(t, p, i, true);
}

/* Assumes the members once, and again when the process has other devices than then. */
static void tick_mesh(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t mesh, unsigned int *budget)
{
	struct ttmon_tt_device *m = &p->devs[mesh];

	if (m->known >= TTMON_TT_MESH_TOLD || m->gen == p->gen_devs || !*budget ||
	    ttmon_before(t->now_ns, m->since_ns + (m->looked ? TTMON_TT_MESH_NS : TTMON_TT_LOOK_NS)))
		return;
	--*budget;
	assume(t, p, mesh, false);
}

static void tick_unknown(struct ttmon_tt *t)
{
	unsigned int budget = ASSUMED_AT_ONCE;

	for (uint32_t n = t->nr_unknown; n > 0 && t->nr_unknown; n--) {
		uint32_t i = t->next_unknown % t->nr_unknown;
		const struct ttmon_tt_waiting *w = &t->unknown[i];
		struct ttmon_tt_proc *p = ttmon_tt_proc_at(t, w->proc, w->serial);
		struct ttmon_tt_device *m = p && w->dev < p->nr_devs ? &p->devs[w->dev] : NULL;

		if (!m || m->kind != TTMON_TT_DEV_MESH || !m->waits || !ttmon_tt_mesh_is_open(t, m) || !m->used) {
			if (m)
				m->waits = false;
			t->unknown[i] = t->unknown[--t->nr_unknown];
			continue;
		}
		t->next_unknown = i + 1;
		tick_mesh(t, p, w->dev, &budget);
		if (!budget)
			break;
	}
}

void ttmon_tt_groups_pause(struct ttmon_tt *t, bool over)
{
	for (uint32_t i = t->nr_groups; i-- > 0;) {
		struct ttmon_tt_thread *th = &t->threads[t->groups[i]];
		uint64_t last_ns = th->group->last_ns;

		if (over || !ttmon_before(t->now_ns, last_ns + TTMON_TT_GROUP_NS))
			group_pause(t, th, over || !ttmon_before(t->now_ns, last_ns + TTMON_TT_MESH_NS));
	}
}

void ttmon_tt_mesh_tick(struct ttmon_tt *t)
{
	ttmon_tt_groups_pause(t, false);
	tick_unknown(t);
}
