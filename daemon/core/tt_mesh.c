// SPDX-License-Identifier: GPL-2.0-only
/*
 * tt_mesh.c: which devices a mesh has. Part of core/tt (hot thread, pure).
 *
 * Best is what was seen: tt-metal makes one owning Buffer on the MeshDevice and then, in the same thread, a shadow of the same size and
 * address on each local device. Next is what the daemon found in the process's memory (TT_MESH). Where neither comes within 100 ms of
 * stream time, all devices of the process are taken to be in it, and a later answer corrects that. Until then its bytes are pending.
 */
#include "core/tt_int.h"

#define ASSUMED_AT_ONCE 64 /* meshes in a tick, in turn */

static bool link_add(struct ttmon_tt_device *d, uint32_t idx)
{
	if (ttmon_tt_grow((void **)&d->links, d->nr_links, &d->cap_links, sizeof(*d->links)) < 0)
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

	while (m->nr_links)
		ttmon_tt_mesh_unlink(p, mesh, m->links[m->nr_links - 1]);
	m->known = TTMON_TT_MESH_UNKNOWN;
	m->allocs = m->frees = 0;
	m->ident = 0;
	memset(m->peak, 0, sizeof(m->peak));
}

static bool is_member(const struct ttmon_tt_device *m, uint32_t dev)
{
	for (uint32_t i = 0; i < m->nr_links; i++)
		if (m->links[i] == dev)
			return true;
	return false;
}

/* Is every member among these? */
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

/* These are its devices, without duplicates. False: no memory, nothing is known of it now. */
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
	/* Those that came since it was known have been told: the list may be long. */
	if (!was_known)
		ttmon_tt_buf_tell(t, p, mesh);
	for (uint32_t i = 0; i < n; i++)
		if (p->uses[p->devs[devs[i]].use].pub.logical == TTMON_TT_NO_LOGICAL) {
			ttmon_tt_want_mesh(t, p, mesh);
			break;
		}
	return true;
}

static bool is_same(const struct ttmon_tt_device *m, const uint32_t *devs, uint32_t n)
{
	return n == m->nr_links && covers(m, devs, n);
}

void ttmon_tt_mesh_used(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t mesh, uint64_t ts_ns)
{
	struct ttmon_tt_device *m = &p->devs[mesh];

	if (m->known >= TTMON_TT_MESH_TOLD || m->waits ||
	    ttmon_tt_grow((void **)&t->unknown, t->nr_unknown, &t->cap_unknown, sizeof(*t->unknown)) < 0)
		return;
	t->unknown[t->nr_unknown++] = (struct ttmon_tt_waiting){ .serial = p->serial, .proc = p->idx, .dev = mesh };
	m->waits = true;
	m->since_ns = ts_ns;
	ttmon_tt_want_mesh(t, p, mesh);
}

void ttmon_tt_mesh_fact(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_mesh *ev, size_t size)
{
	uint32_t mesh = ttmon_tt_dev_find(p, ev->mesh), n = 0, devs[TTMON_TT_MESH_MAX];
	uint32_t count = (uint32_t)MIN((uint64_t)ev->count, (size - sizeof(*ev)) / sizeof(ev->dev[0]));

	if (mesh == TTMON_TT_NIL || p->devs[mesh].kind != TTMON_TT_DEV_MESH || count > TTMON_TT_MESH_MAX)
		return;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t dev = ttmon_tt_dev_find(p, ev->dev[i].device), k;
		bool closed = dev != TTMON_TT_NIL && p->devs[dev].closed;

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

void ttmon_tt_group_open(struct ttmon_tt *t, struct ttmon_tt_thread *th, const struct ttmon_tt_buf *b)
{
	ttmon_tt_group_close(t, th);
	if (!th->group)
		th->group = malloc(sizeof(*th->group));
	if (!th->group || ttmon_tt_grow((void **)&t->groups, t->nr_groups, &t->cap_groups, sizeof(*t->groups)) < 0)
		return;
	th->group->mesh = b->dev;
	th->group->key = b->key;
	th->group->size = b->size;
	th->group->addr = b->addr;
	th->group->type = b->type;
	th->group->last_ns = b->ts_ns;
	th->group->n = 0;
	th->group_open = true;
	t->groups[t->nr_groups++] = (uint32_t)(th - t->threads);
}

void ttmon_tt_group_close(struct ttmon_tt *t, struct ttmon_tt_thread *th)
{
	struct ttmon_tt_group *g = th->group;
	struct ttmon_tt_proc *p = ttmon_tt_proc_at(t, th->proc, th->serial);
	struct ttmon_tt_device *m;

	if (!th->group_open)
		return;
	th->group_open = false;
	for (uint32_t i = 0; i < t->nr_groups; i++)
		if (t->groups[i] == th - t->threads) {
			t->groups[i] = t->groups[--t->nr_groups];
			break;
		}
	if (!p || !g->n || g->mesh >= p->nr_devs || p->devs[g->mesh].kind != TTMON_TT_DEV_MESH)
		return;
	/* Something else may lie there by now. */
	for (uint32_t i = 0; i < g->n; i++)
		if (p->devs[g->devs[i]].kind != TTMON_TT_DEV_DEVICE)
			return;
	m = &p->devs[g->mesh];
	if (m->known >= TTMON_TT_MESH_TOLD) {
		/* One that lacks some is another mesh in the same place, or some were lost. */
		bool more = covers(m, g->devs, g->n), lossy = p->pub.flags & TTMON_TT_F_LOST;

		if (more && g->n == m->nr_links) {
			m->known = TTMON_TT_MESH_SEEN;
			return;
		}
		if (!more && (lossy || (m->known == TTMON_TT_MESH_SEEN && m->live > 1)))
			return;
	}
	mesh_set(t, p, g->mesh, g->devs, g->n, TTMON_TT_MESH_SEEN, true);
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
	mesh_set(t, p, mesh, devs, n, TTMON_TT_MESH_ASSUMED_ALL, raise);
}

void ttmon_tt_mesh_finish(struct ttmon_tt *t, struct ttmon_tt_proc *p)
{
	for (uint32_t i = 0; i < p->nr_devs; i++)
		if (p->devs[i].kind == TTMON_TT_DEV_MESH && p->devs[i].known < TTMON_TT_MESH_TOLD && p->devs[i].allocs)
			assume(t, p, i, true);
}

/* Assumed once, and again when the process has other devices than then. */
static void tick_mesh(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t mesh, unsigned int *budget)
{
	struct ttmon_tt_device *m = &p->devs[mesh];

	if (ttmon_before(t->now_ns, m->since_ns + TTMON_TT_MESH_NS) || m->gen == p->gen_devs || !*budget)
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

		if (!m || m->kind != TTMON_TT_DEV_MESH || !m->waits || m->known >= TTMON_TT_MESH_TOLD || !m->allocs) {
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

void ttmon_tt_mesh_tick(struct ttmon_tt *t)
{
	for (uint32_t i = t->nr_groups; i-- > 0;) {
		struct ttmon_tt_thread *th = &t->threads[t->groups[i]];

		if (!ttmon_before(t->now_ns, th->group->last_ns + TTMON_TT_GROUP_NS))
			ttmon_tt_group_close(t, th);
	}
	tick_unknown(t);
}
