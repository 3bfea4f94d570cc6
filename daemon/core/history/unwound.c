// SPDX-License-Identifier: GPL-2.0-only
/*
 * unwound.c: call stacks found in copies of the stack (UNWOUND), kept until their events are handled.
 * Part of the history (hot thread, pure).
 *
 * The fact may come before its event is delivered or after it; its event waits for it in siteq.c.
 * Facts of lost events are never used: the oldest fact makes room for a new one. An event whose fact
 * is gone, or that is older than such a fact, does not wait: all others in the queue would wait too,
 * and their facts would go meanwhile.
 */
#include "daemon/core/history/history_int.h"

static void drop(struct ttmon_unwounds *u, struct ttmon_unwound *w)
{
	if (!w->copy)
		return;
	ttmon_hmap_del(&u->by_copy, w->copy);
	free(w->frames);
	*w = (struct ttmon_unwound){ .copy = 0 };
}

static uint32_t ring_of(uint32_t tgid)
{
	return tgid % TTMON_UNWOUND_RINGS;
}

void ttmon_history_on_unwound(struct ttmon_history *h, const struct ttmon_ev_unwound *ev)
{
	struct ttmon_unwounds *u = &h->unwounds;
	uint32_t ring = ring_of(ev->h.tgid), at;
	struct ttmon_unwound *w;
	uint64_t *frames;

	if (!ev->stack) {
		u->over = true;
		return;
	}
	if (!u->v)
		u->v = calloc(TTMON_UNWOUND_RINGS * TTMON_UNWOUND_MAX, sizeof(*u->v));
	frames = malloc(ev->nframes * sizeof(*frames) + 1);
	if (!u->v || !frames || ttmon_hmap_get(&u->by_copy, ev->stack) != TTMON_HMAP_NONE) {
		if (u->v && frames)
			h->totals.malformed_facts++;
		else
			ttmon_history_no_memory(h);
		free(frames);
		return;
	}
	at = ring * TTMON_UNWOUND_MAX + u->rings[ring].next;
	w = &u->v[at];
	u->rings[ring].gone = MAX(u->rings[ring].gone, w->copy);
	drop(u, w);
	if (ttmon_hmap_put(&u->by_copy, ev->stack, at) < 0) {
		ttmon_history_no_memory(h);
		free(frames);
		return;
	}
	memcpy(frames, ev->frames, ev->nframes * sizeof(*frames));
	*w = (struct ttmon_unwound){ .copy = ev->stack,
				     .frames = frames,
				     .nframes = ev->nframes,
				     .by = ev->by,
				     .end = ev->end,
				     .object = ev->object };
	u->rings[ring].next = (u->rings[ring].next + 1) % TTMON_UNWOUND_MAX;
}

int ttmon_unwound_take(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_taken *t, bool final)
{
	struct ttmon_unwounds *u = &h->unwounds;
	struct ttmon_unwound *w;
	uint64_t at;

	if (!t->copy)
		return 0;
	at = ttmon_hmap_get(&u->by_copy, t->copy);
	if (at == TTMON_HMAP_NONE && !final && !u->over && t->copy > u->rings[ring_of(p->pub.tgid)].gone)
		return -EAGAIN;
	t->copy = 0;
	if (at == TTMON_HMAP_NONE)
		return 0;
	w = &u->v[at];
	if (w->by != TTMON_STACK_BY_FRAMES && w->nframes) {
		int err = ttmon_stacks_intern(&p->stacks, w->frames, w->nframes, &t->stack);

		if (err == -ENOMEM)
			ttmon_history_no_memory(h);
		if (err) {
			h->totals.incomplete = true;
			t->stack = TTMON_STACK_NONE;
		}
	}
	t->by = w->by;
	t->end = w->end;
	t->end_object = w->object;
	drop(u, w);
	return 0;
}

void ttmon_unwound_fini(struct ttmon_history *h)
{
	struct ttmon_unwounds *u = &h->unwounds;

	for (uint32_t i = 0; u->v && i < TTMON_UNWOUND_RINGS * TTMON_UNWOUND_MAX; i++)
		free(u->v[i].frames);
	free(u->v);
	ttmon_hmap_fini(&u->by_copy);
}
