// SPDX-License-Identifier: GPL-2.0-only
/*
 * `wants.c`: requests of core/tt to the I/O thread: the members of a mesh, the chip of a logical id,
 * and whether a library's spare probes are needed. Part of core/tt (hot thread, pure).
 */
#include "daemon/core/tt/tt_int.h"

#define GOOD_MANY 16

static void want(struct ttmon_tt *t, const struct ttmon_tt_proc *p, uint32_t dev, uint32_t logical, bool anew)
{
	for (uint32_t i = 0; i < t->nr_wants; i++)
		if (t->wants[i].serial == p->serial && t->wants[i].dev == dev && t->wants[i].logical == logical) {
			if (anew) {
				t->wants[i].asks = 0;
				t->wants[i].next_ns = t->now_ns;
			}
			return;
		}
	if (t->nr_wants < TTMON_TT_WANTS)
		t->wants[t->nr_wants++] = (struct ttmon_tt_asked){
			.serial = p->serial, .proc = p->idx, .dev = dev, .logical = logical, .next_ns = t->now_ns
		};
}

void ttmon_tt_want_mesh(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, bool anew)
{
	want(t, p, dev, 0, anew);
}

void ttmon_tt_want_chip(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t logical)
{
	want(t, p, TTMON_TT_NIL, logical, false);
}

static bool is_answered(const struct ttmon_tt_proc *p, const struct ttmon_tt_asked *w)
{
	const struct ttmon_tt_device *m;

	if (w->dev == TTMON_TT_NIL) {
		for (uint32_t i = 0; i < p->nr_places; i++)
			if (p->places[i].logical == w->logical)
				return true;
		return false;
	}
	if (w->dev >= p->nr_devs)
		return true;
	m = &p->devs[w->dev];
	if (m->kind != TTMON_TT_DEV_MESH || !m->used)
		return true; /* the mesh no longer exists */
	if (m->known < TTMON_TT_MESH_TOLD)
		return false;
	for (uint32_t i = 0; i < m->nr_links; i++)
		if (p->uses[p->devs[m->links[i]].use].pub.logical == TTMON_TT_NO_LOGICAL)
			return false;
	return true;
}

size_t ttmon_tt_wants(struct ttmon_tt *t, struct ttmon_tt_want *wants, size_t max)
{
	size_t n = 0;

	for (uint32_t i = 0; i < t->nr_wants;) {
		struct ttmon_tt_asked *w = &t->wants[i];
		const struct ttmon_tt_proc *p = ttmon_tt_proc_at(t, w->proc, w->serial);

		if (!p || w->asks == TTMON_TT_ASKS || is_answered(p, w)) {
			t->wants[i] = t->wants[--t->nr_wants];
			continue;
		}
		i++;
		if (n == max || ttmon_before(t->now_ns, w->next_ns))
			continue;
		w->asks++;
		w->next_ns = t->now_ns + TTMON_TT_ASK_NS;
		wants[n++] = (struct ttmon_tt_want){
			.tgid = p->pub.tgid,
			.slot = w->dev != TTMON_TT_NIL ? p->devs[w->dev].slot
				: p->nr_cals	       ? p->cals[0].slot
						       : 0,
			.mesh = w->dev != TTMON_TT_NIL ? p->devs[w->dev].addr : 0,
			.logical = w->logical,
			.vt_device = p->vt_device,
			.vt_mesh = p->vt_mesh,
		};
	}
	return n;
}

void ttmon_tt_spare_tick(struct ttmon_tt *t)
{
	bool waits[TTMON_TT_SLOTS] = { false }, late[TTMON_TT_SLOTS] = { false };

	if (!t->nr_procs)
		return;
	for (uint32_t i = 0; i < t->nr_unknown; i++) {
		const struct ttmon_tt_proc *p = ttmon_tt_proc_at(t, t->unknown[i].proc, t->unknown[i].serial);
		const struct ttmon_tt_device *m =
			p && t->unknown[i].dev < p->nr_devs ? &p->devs[t->unknown[i].dev] : NULL;

		if (!m || m->kind != TTMON_TT_DEV_MESH || !ttmon_tt_mesh_is_open(t, m))
			continue;
		waits[m->slot] = true;
		late[m->slot] |= !ttmon_before(t->now_ns, m->since_ns + TTMON_TT_KEEP_NS);
	}
	for (uint32_t i = 0; i < TTMON_TT_SLOTS; i++) {
		struct ttmon_tt_slotinfo *s = &t->slots[i];

		/*
		 * Once removed, they stay so until a mesh was not seen for a while: the answer to a request may be on
		 * the way.
		 */
		s->drop = !s->degraded && (s->drop ? !late[i] : s->good >= GOOD_MANY && s->freed && !waits[i]);
	}
}

enum ttmon_tt_spare ttmon_tt_get_spare(const struct ttmon_tt *t, uint16_t slot)
{
	return slot < TTMON_TT_SLOTS && t->slots[slot].drop ? TTMON_TT_SPARE_DROP : TTMON_TT_SPARE_KEEP;
}
