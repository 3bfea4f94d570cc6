// SPDX-License-Identifier: GPL-2.0-only
/*
 * cbs.c: circular buffers, by the programs that have them. Part of core/tt (hot thread, pure).
 *
 * A program lays its circular buffers out once for all its devices, from the same base address as
 * every other program. So a device's figure is the union, core by core, of what its live programs
 * cover (cores.h), as Device::get_total_cb_allocated of tt-metal computes it. A new layout replaces
 * the program's old one. A global circular buffer lies in an L1 buffer and is counted there.
 *
 * Circular buffers reported without a program count as one program of their device. When an unnamed
 * program ends, it is the device's only one, or all programs of the device are removed and the process
 * is flagged: the rest is then a lower bound.
 *
 * A closed device has no circular buffers, but its programs may outlive that and run on it again when
 * it is opened. They report no layout then, so each run in a process that closed a device is reported
 * once (class CB_OF).
 *
 * The history gets no allocation per circular buffer, which would count bytes twice. It gets layers:
 * growth of the union is an allocation, and shrinking frees layers from the newest on.
 */
#include "daemon/core/tt/tt_int.h"
#include "lib/base/grow.h"

#define PROGS_MAX    65536 /* of a process */
#define CBS_MAX	     (1U << 20)
#define CB_BYTES_MAX (1ULL << 32) /* of a core: L1 has 1.5 MB */

struct ttmon_tt_cbuf {
	uint64_t addr, size;
	uint32_t nr;
	struct ttmon_tt_core_range range[];
};

struct layer {
	uint64_t seq, bytes; /* bytes: of each device */
	bool told;
};

struct ttmon_tt_cbset {
	struct ttmon_tt_cores cores;
	struct layer *layers;
	uint32_t nr_layers, cap_layers;
	uint32_t n; /* circular buffers */
};

/* ---- layers ---- */

static void layer_tell(struct ttmon_tt *t, const struct ttmon_tt_proc *p, uint32_t dev, struct layer *l, uint64_t ts_ns,
		       uint64_t addr, uint16_t fn)
{
	const struct ttmon_tt_device *d = &p->devs[dev];
	uint64_t n = d->kind == TTMON_TT_DEV_MESH ? MAX(d->nr_links, 1U) : 1;

	if (l->told || (d->kind == TTMON_TT_DEV_MESH && d->known == TTMON_TT_MESH_UNKNOWN))
		return;
	l->told = true;
	if (t->ops.alloc)
		l->seq = t->ops.alloc(t->ctx, p->pub.tgid, ts_ns, TTMON_METHOD_TT_CB, addr, l->bytes * n, fn);
}

static void layer_push(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, uint64_t bytes, uint64_t ts_ns,
		       uint64_t addr, uint16_t fn)
{
	struct ttmon_tt_cbset *s = p->devs[dev].cbs;

	if (!bytes || TTMON_GROW(s->layers, s->cap_layers, s->nr_layers + 1, 8))
		return;
	s->layers[s->nr_layers] = (struct layer){ .bytes = bytes };
	layer_tell(t, p, dev, &s->layers[s->nr_layers++], ts_ns, addr, fn);
}

static void layer_pop(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, uint64_t bytes, uint64_t ts_ns,
		      uint16_t fn)
{
	struct ttmon_tt_cbset *s = p->devs[dev].cbs;

	while (bytes && s->nr_layers) {
		struct layer l = s->layers[--s->nr_layers];
		uint64_t rest = l.bytes - MIN(l.bytes, bytes);

		bytes -= l.bytes - rest;
		layer_tell(t, p, dev, &l, ts_ns, 0, fn);
		if (l.told && t->ops.free)
			t->ops.free(t->ctx, l.seq, ts_ns, fn);
		layer_push(t, p, dev, rest, ts_ns, 0, fn);
	}
}

void ttmon_tt_cbs_tell(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev)
{
	struct ttmon_tt_cbset *s = p->devs[dev].cbs;

	for (uint32_t i = 0; s && i < s->nr_layers; i++)
		layer_tell(t, p, dev, &s->layers[i], t->now_ns, 0, 0);
}

/* ---- on one device ---- */

static void set_free(struct ttmon_tt_device *d)
{
	if (!d->cbs)
		return;
	ttmon_tt_cores_fini(&d->cbs->cores);
	free(d->cbs->layers);
	free(d->cbs);
	d->cbs = NULL;
}

static void put(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, const struct ttmon_tt_cbuf *cb,
		uint64_t ts_ns, uint16_t fn)
{
	struct ttmon_tt_device *d = &p->devs[dev];
	uint64_t before;

	if (!d->cbs)
		d->cbs = calloc(1, sizeof(*d->cbs));
	before = d->cbs ? d->cbs->cores.bytes : 0;
	if (!d->cbs || ttmon_tt_cores_add(&d->cbs->cores, cb->range, cb->nr, cb->addr, cb->addr + cb->size) < 0) {
		p->pub.flags |= TTMON_TT_F_LIMIT | TTMON_TT_F_CB_UNKNOWN;
		return;
	}
	d->cbs->n++;
	ttmon_tt_dev_alloc(t, p, dev, TTMON_TT_TYPE_CB, d->cbs->cores.bytes - before);
	layer_push(t, p, dev, d->cbs->cores.bytes - before, ts_ns, cb->addr, fn);
}

static void take_off(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, const struct ttmon_tt_cbuf *cb,
		     uint64_t ts_ns, uint16_t fn)
{
	struct ttmon_tt_device *d = &p->devs[dev];
	uint64_t before;

	if (!d->cbs)
		return;
	before = d->cbs->cores.bytes;
	ttmon_tt_cores_sub(&d->cbs->cores, cb->range, cb->nr, cb->addr, cb->addr + cb->size);
	ttmon_tt_dev_free(t, p, dev, TTMON_TT_TYPE_CB, before - d->cbs->cores.bytes, TTMON_TT_END_FREE);
	layer_pop(t, p, dev, before - d->cbs->cores.bytes, ts_ns, fn);
	if (!--d->cbs->n)
		set_free(d);
}

/* ---- programs ---- */

static uint32_t prog_find(const struct ttmon_tt_proc *p, uint64_t key)
{
	uint64_t idx = ttmon_hmap_get(&p->by_prog, key);

	return idx == TTMON_HMAP_NONE ? TTMON_TT_NIL : (uint32_t)idx;
}

static uint32_t prog_get(struct ttmon_tt_proc *p, uint64_t key)
{
	uint32_t idx = prog_find(p, key);

	if (idx != TTMON_TT_NIL)
		return idx;
	if (p->nr_progs >= PROGS_MAX || TTMON_GROW(p->progs, p->cap_progs, p->nr_progs + 1, 8) ||
	    ttmon_hmap_put(&p->by_prog, key, p->nr_progs) < 0)
		return TTMON_TT_NIL;
	p->progs[p->nr_progs] = (struct ttmon_tt_prog){ .key = key };
	return p->nr_progs++;
}

static void prog_fini(struct ttmon_tt_prog *g)
{
	for (uint32_t i = 0; i < g->nr_cbs; i++)
		free(g->cbs[i]);
	free(g->cbs);
	free(g->devs.v);
	free(g->shut.v);
	free(g->meshes.v);
}

/* Removes the program; the last one takes its place. */
static void prog_drop(struct ttmon_tt_proc *p, uint32_t idx)
{
	p->nr_cbs -= p->progs[idx].nr_cbs;
	p->nr_runs -= p->progs[idx].meshes.n;
	p->nr_doubts -= p->progs[idx].doubt;
	ttmon_hmap_del(&p->by_prog, p->progs[idx].key);
	prog_fini(&p->progs[idx]);
	p->progs[idx] = p->progs[--p->nr_progs];
	/* The table just lost an entry, so there is room. */
	if (idx < p->nr_progs)
		(void)!ttmon_hmap_put(&p->by_prog, p->progs[idx].key, idx);
}

static bool has(const struct ttmon_tt_set *s, uint32_t dev)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->v[i] == dev)
			return true;
	return false;
}

static bool set_add(struct ttmon_tt_set *s, uint32_t dev)
{
	if (has(s, dev))
		return true;
	if (TTMON_GROW(s->v, s->cap, s->n + 1, 8))
		return false;
	s->v[s->n++] = dev;
	return true;
}

static bool set_del(struct ttmon_tt_set *s, uint32_t dev)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->v[i] == dev) {
			s->v[i] = s->v[--s->n];
			return true;
		}
	return false;
}

static void limit(struct ttmon_tt *t, struct ttmon_tt_proc *p)
{
	p->pub.flags |= TTMON_TT_F_LIMIT | TTMON_TT_F_CB_UNKNOWN;
	t->generation++;
}

static void cb_drop(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_prog *g, uint32_t at, uint64_t ts_ns,
		    uint16_t fn)
{
	for (uint32_t i = 0; i < g->devs.n; i++)
		take_off(t, p, g->devs.v[i], g->cbs[at], ts_ns, fn);
	free(g->cbs[at]);
	g->cbs[at] = g->cbs[--g->nr_cbs];
	p->nr_cbs--;
	t->generation++;
}

/* Why a program is no longer on a device. */
enum leave { LEAVE_END, LEAVE_SHUT };

/*
 * Returns whether the program was dropped because it has nothing on any other device, and cannot run
 * again on one.
 */
static bool leave(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t idx, uint32_t dev, enum leave how,
		  uint64_t ts_ns, uint16_t fn)
{
	struct ttmon_tt_prog *g = &p->progs[idx];
	bool was = has(&g->devs, dev);

	if (was) {
		for (uint32_t k = 0; k < g->nr_cbs; k++)
			take_off(t, p, dev, g->cbs[k], ts_ns, fn);
		(void)set_del(&g->devs, dev);
	}
	if (how == LEAVE_END)
		was |= set_del(&g->shut, dev);
	else if (was && g->key & TTMON_TT_CB_KEY)
		p->devs[dev].cbs_lost = true;
	else if (was && !set_add(&g->shut, dev))
		limit(t, p);
	if (!was || g->devs.n || g->shut.n)
		return false;
	prog_drop(p, idx);
	return true;
}

static void leave_all(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, enum leave how, uint64_t ts_ns,
		      uint16_t fn)
{
	for (uint32_t i = 0; i < p->nr_progs;)
		i += !leave(t, p, i, dev, how, ts_ns, fn);
	set_free(&p->devs[dev]);
}

void ttmon_tt_cbs_end_dev(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, uint64_t ts_ns, uint16_t fn)
{
	leave_all(t, p, dev, LEAVE_END, ts_ns, fn);
}

void ttmon_tt_cbs_shut_dev(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, uint64_t ts_ns, uint16_t fn)
{
	leave_all(t, p, dev, LEAVE_SHUT, ts_ns, fn);
}

void ttmon_tt_cbs_fini(struct ttmon_tt_proc *p)
{
	for (uint32_t i = 0; i < p->nr_progs; i++)
		prog_fini(&p->progs[i]);
	free(p->progs);
	p->progs = NULL;
	p->nr_progs = p->cap_progs = p->nr_cbs = p->nr_runs = p->nr_doubts = 0;
	ttmon_hmap_fini(&p->by_prog);
	for (uint32_t i = 0; i < p->nr_devs; i++)
		set_free(&p->devs[i]);
}

static bool enter(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_prog *g, uint32_t dev, uint64_t ts_ns,
		  uint16_t fn)
{
	if (has(&g->devs, dev))
		return true;
	if (!set_add(&g->devs, dev))
		return false;
	(void)set_del(&g->shut, dev);
	for (uint32_t i = 0; i < g->nr_cbs; i++)
		put(t, p, dev, g->cbs[i], ts_ns, fn);
	t->generation++;
	return true;
}

/* ---- programs that run again on devices that were closed ---- */

static void come_back(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_prog *g, uint32_t dev,
		      uint64_t ts_ns, uint16_t fn)
{
	if (has(&g->shut, dev) && !enter(t, p, g, dev, ts_ns, fn))
		limit(t, p);
}

static void come_back_to_mesh(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_prog *g, uint32_t mesh,
			      uint64_t ts_ns, uint16_t fn)
{
	const struct ttmon_tt_device *m = &p->devs[mesh];

	for (uint32_t i = 0; i < m->nr_links; i++)
		come_back(t, p, g, m->links[i], ts_ns, fn);
}

void ttmon_tt_cb_run(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev)
{
	uint32_t idx = prog_find(p, ev->arg[1]), dev;
	struct ttmon_tt_prog *g;

	if (idx == TTMON_TT_NIL || !p->progs[idx].shut.n)
		return;
	dev = ttmon_tt_dev_get(t, p, ev->arg[0], ev->dev_kind, ev->slot);
	/* do this after dev_get: whatever lay at that address before may have ended, and programs with it */
	idx = prog_find(p, ev->arg[1]);
	if (dev == TTMON_TT_NIL)
		limit(t, p);
	if (dev == TTMON_TT_NIL || idx == TTMON_TT_NIL)
		return;
	g = &p->progs[idx];
	if (p->devs[dev].kind != TTMON_TT_DEV_MESH) {
		come_back(t, p, g, dev, ev->h.ts_ns, ev->fn);
		return;
	}
	/* The mesh may turn out to have other devices than are known now. */
	p->nr_runs += !has(&g->meshes, dev);
	if (!set_add(&g->meshes, dev)) {
		p->nr_runs--;
		limit(t, p);
	}
	t->generation++;
	ttmon_tt_mesh_used(t, p, dev, ev->h.ts_ns);
	come_back_to_mesh(t, p, g, dev, ev->h.ts_ns, ev->fn);
}

void ttmon_tt_cbs_mesh_set(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t mesh)
{
	for (uint32_t i = 0; i < p->nr_progs && p->nr_runs; i++)
		if (has(&p->progs[i].meshes, mesh))
			come_back_to_mesh(t, p, &p->progs[i], mesh, t->now_ns, 0);
}

void ttmon_tt_cbs_mesh_gone(struct ttmon_tt_proc *p, uint32_t mesh)
{
	for (uint32_t i = 0; i < p->nr_progs && p->nr_runs; i++) {
		struct ttmon_tt_prog *g = &p->progs[i];

		if (!set_del(&g->meshes, mesh))
			continue;
		p->nr_runs--;
		if (p->devs[mesh].known != TTMON_TT_MESH_UNKNOWN || g->doubt)
			continue;
		g->doubt = true;
		p->nr_doubts++;
	}
}

bool ttmon_tt_cbs_pending(const struct ttmon_tt_proc *p)
{
	for (uint32_t i = 0; i < p->nr_progs && (p->nr_runs || p->nr_doubts); i++) {
		const struct ttmon_tt_prog *g = &p->progs[i];

		if (g->doubt && g->shut.n)
			return true;
		for (uint32_t k = 0; k < g->meshes.n; k++)
			if (p->devs[g->meshes.v[k]].known == TTMON_TT_MESH_UNKNOWN && g->shut.n)
				return true;
	}
	return false;
}

/* ---- events ---- */

/*
 * The program's circular buffer with these cores, this address and, if size is not 0, this size. NIL:
 * none.
 */
static uint32_t cb_find(const struct ttmon_tt_prog *g, const struct ttmon_ev_tt_cb *ev, uint64_t size)
{
	for (uint32_t i = 0; i < g->nr_cbs; i++) {
		const struct ttmon_tt_cbuf *cb = g->cbs[i];

		if (cb->addr == ev->call.arg[2] && (!size || cb->size == size) && cb->nr == ev->nr_ranges &&
		    !memcmp(cb->range, ev->range, cb->nr * sizeof(cb->range[0])))
			return i;
	}
	return TTMON_TT_NIL;
}

static bool cb_add(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_prog *g,
		   const struct ttmon_ev_tt_cb *ev)
{
	uint32_t nr = ev->nr_ranges;
	struct ttmon_tt_cbuf *cb;

	if (p->nr_cbs >= CBS_MAX || TTMON_GROW(g->cbs, g->cap_cbs, g->nr_cbs + 1, 8))
		return false;
	cb = malloc(sizeof(*cb) + nr * sizeof(cb->range[0]));
	if (!cb)
		return false;
	cb->addr = ev->call.arg[2];
	cb->size = ev->call.arg[3];
	cb->nr = nr;
	memcpy(cb->range, ev->range, nr * sizeof(cb->range[0]));
	g->cbs[g->nr_cbs++] = cb;
	p->nr_cbs++;
	for (uint32_t i = 0; i < g->devs.n; i++)
		put(t, p, g->devs.v[i], cb, ev->call.h.ts_ns, ev->call.fn);
	return true;
}

void ttmon_tt_cb(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_cb *ev, size_t size)
{
	const struct ttmon_ev_tt_call *call = &ev->call;
	uint64_t addr = call->arg[2], bytes = call->arg[3];
	bool has_cores = size > sizeof(*call) && ttmon_tt_cores_sane(ev->range, ev->nr_ranges);
	/* A program's address lies in user memory. */
	uint64_t program = has_cores && !(ev->program & TTMON_TT_CB_KEY) ? ev->program : 0;
	uint32_t idx, at, dev = TTMON_TT_NIL;
	struct ttmon_tt_prog *g;

	if ((uint8_t)call->arg[4] || bytes == 0)
		return;
	if (has_cores && bytes <= CB_BYTES_MAX && addr <= CB_BYTES_MAX)
		dev = ttmon_tt_dev_get(t, p, call->arg[0], call->dev_kind, call->slot);
	if (dev == TTMON_TT_NIL) {
		p->pub.refused++;
		p->pub.flags |= TTMON_TT_F_CB_UNKNOWN;
		t->generation++;
		return;
	}
	/* For a device that the process has had since before the trace, nothing else says which one it is. */
	if (call->dev_kind != TTMON_TT_DEV_UNKNOWN && ev->dev[0])
		ttmon_tt_dev_words(t, p, dev, ev->dev);
	if (p->devs[dev].kind == TTMON_TT_DEV_MESH)
		ttmon_tt_mesh_used(t, p, dev, call->h.ts_ns);
	idx = prog_get(p, program ? program : TTMON_TT_CB_KEY | dev);
	if (idx == TTMON_TT_NIL) {
		limit(t, p);
		return;
	}
	g = &p->progs[idx];
	if (program && g->since_ns != ev->since_ns) {
		while (g->nr_cbs)
			cb_drop(t, p, g, g->nr_cbs - 1, call->h.ts_ns, call->fn);
		g->since_ns = ev->since_ns;
	}
	at = cb_find(g, ev, program ? bytes : 0);
	if (at != TTMON_TT_NIL && g->cbs[at]->size != bytes) {
		cb_drop(t, p, g, at, call->h.ts_ns, call->fn);
		at = TTMON_TT_NIL;
	}
	if (!enter(t, p, g, dev, call->h.ts_ns, call->fn) || (at == TTMON_TT_NIL && !cb_add(t, p, g, ev)))
		limit(t, p);
}

/* A program ended, but it is unknown which. */
static void free_unnamed(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, const struct ttmon_ev_tt_call *ev)
{
	const struct ttmon_tt_slotinfo *s = &t->slots[ev->slot];
	uint32_t n = 0, buffers = 0, unnamed = prog_find(p, TTMON_TT_CB_KEY | dev);

	for (uint32_t i = 0; i < p->nr_progs; i++)
		if (has(&p->progs[i].devs, dev) || has(&p->progs[i].shut, dev)) {
			n++;
			buffers += p->progs[i].nr_cbs;
		}
	/* Where programs are never named, one entry may stand for several. */
	if (n > 1 || (unnamed != TTMON_TT_NIL && buffers > 1 && s->told && !(s->has & TTMON_TT_HAS_CB_OF)))
		p->pub.flags |= TTMON_TT_F_CB_UNKNOWN;
	ttmon_tt_cbs_end_dev(t, p, dev, ev->h.ts_ns, ev->fn);
}

void ttmon_tt_cb_free(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev)
{
	uint32_t dev = ttmon_tt_dev_find(p, ev->arg[0]), idx;

	if (dev == TTMON_TT_NIL)
		return;
	if (!ev->arg[1]) {
		free_unnamed(t, p, dev, ev);
		return;
	}
	idx = prog_find(p, ev->arg[1]);
	if (idx != TTMON_TT_NIL)
		(void)leave(t, p, idx, dev, LEAVE_END, ev->h.ts_ns, ev->fn);
}
