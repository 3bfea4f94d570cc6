// SPDX-License-Identifier: GPL-2.0-only
/* tt.c: see tt.h and tt_int.h. Processes and threads, chips, the dispatch of records, and time. */
#include "daemon/core/tt/tt_int.h"
#include "lib/base/grow.h"
#include "lib/base/names.h"

/* ---- processes ---- */

struct ttmon_tt_proc *ttmon_tt_find(const struct ttmon_tt *t, uint32_t tgid)
{
	uint64_t idx = ttmon_hmap_get(&t->by_tgid, tgid);

	return idx == TTMON_HMAP_NONE ? NULL : t->procs[idx];
}

struct ttmon_tt_proc *ttmon_tt_proc_at(const struct ttmon_tt *t, uint32_t proc, uint64_t serial)
{
	struct ttmon_tt_proc *p = proc < t->nr_procs ? t->procs[proc] : NULL;

	return p && p->serial == serial && !p->pub.end_ns ? p : NULL;
}

/* Releases what only a running process needs. */
static void release(struct ttmon_tt *t, struct ttmon_tt_proc *p)
{
	ttmon_tt_cbs_fini(p);
	ttmon_tt_devs_fini(p);
	ttmon_hmap_fini(&p->bufs);
	ttmon_hmap_fini(&p->by_alc);
	ttmon_hmap_fini(&p->swept);
	free(p->alcs);
	p->alcs = NULL;
	p->nr_alcs = p->cap_alcs = 0;
	free(p->cals);
	p->cals = NULL;
	p->nr_cals = 0;
	t->nr_held -= p->held.n;
	ttmon_fifo_fini(&p->held);
}

static void drop(struct ttmon_tt *t, uint32_t idx)
{
	struct ttmon_tt_proc *p = t->procs[idx];

	if (ttmon_hmap_get(&t->by_tgid, p->pub.tgid) == idx)
		ttmon_hmap_del(&t->by_tgid, p->pub.tgid);
	release(t, p);
	free(p->uses);
	free(p->places);
	free(p);
	t->procs[idx] = NULL;
	/* Out of memory: the entry is never reused, which does no other harm. */
	if (ttmon_fifo_push(&t->free_procs, &idx) < 0 && idx == t->nr_procs - 1)
		t->nr_procs--;
}

static struct ttmon_tt_proc *proc_new(struct ttmon_tt *t, uint32_t tgid)
{
	const uint32_t *place = ttmon_fifo_front(&t->free_procs);
	struct ttmon_tt_proc *p;

	if (t->nr_running >= TTMON_TT_PROCS || (!place && TTMON_GROW(t->procs, t->cap_procs, t->nr_procs + 1, 8)))
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->idx = place ? *place : t->nr_procs;
	if (ttmon_hmap_put(&t->by_tgid, tgid, p->idx) < 0) {
		free(p);
		return NULL;
	}
	if (place)
		ttmon_fifo_pop(&t->free_procs);
	else
		t->nr_procs++;
	t->procs[p->idx] = p;
	t->nr_running++;
	p->serial = p->born = ++t->serial;
	p->held.elem = sizeof(union ttmon_tt_rec);
	p->pub.tgid = tgid;
	/* Until the process is announced, it is unknown since when it runs. */
	p->pub.flags = TTMON_TT_F_PARTIAL;
	return p;
}

/* The process of an event or, with grace_ns, of a fact. NULL: none, or it has ended. */
static struct ttmon_tt_proc *proc_get(struct ttmon_tt *t, uint32_t tgid, uint64_t ts_ns, uint64_t grace_ns)
{
	struct ttmon_tt_proc *p = ttmon_tt_find(t, tgid);

	if (!p)
		return proc_new(t, tgid);
	if (!p->pub.end_ns)
		return p;
	if (ts_ns <= p->pub.end_ns + grace_ns)
		return grace_ns ? p : NULL;
	/* A fact that comes long after the end would create a process that never ends. */
	return grace_ns ? NULL : proc_new(t, tgid);
}

/* Removes everything it holds, as exit and exec do. */
static void proc_clear(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint64_t ts_ns)
{
	ttmon_tt_settle(t, p);
	ttmon_tt_confirm_all(t, p);
	ttmon_tt_mesh_finish(t, p);
	/*
	 * There may be a million buffers: the map is no longer needed, and removing each from it would cost
	 * more than all the rest.
	 */
	ttmon_hmap_fini(&p->bufs);
	ttmon_tt_buf_end_all(t, p, ts_ns, TTMON_TT_END_FREE);
	p->pub.layout = ttmon_tt_layout_text(p);
	for (uint32_t i = 0; i < p->nr_devs; i++)
		if (p->devs[i].kind == TTMON_TT_DEV_MESH && p->devs[i].known == TTMON_TT_MESH_ASSUMED_ALL)
			p->pub.flags |= TTMON_TT_F_MESH_ASSUMED;
	release(t, p);
	t->generation++;
}

static void proc_end(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint64_t ts_ns)
{
	uint32_t idx = p->idx;

	if (p->pub.end_ns)
		return;
	proc_clear(t, p, ts_ns);
	p->pub.end_ns = MAX(ts_ns, 1ULL);
	t->nr_running--;
	if (!p->seen || ttmon_fifo_push(&t->ended, &idx) < 0) {
		drop(t, idx);
		return;
	}
	if (!t->cfg.keep_all && t->ended.n > TTMON_TT_ENDED) {
		idx = *(const uint32_t *)ttmon_fifo_front(&t->ended);
		ttmon_fifo_pop(&t->ended);
		drop(t, idx);
	}
}

/*
 * Another program in the same process: it holds nothing, and nothing found out about the old one
 * applies.
 */
static void proc_exec(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint64_t ts_ns)
{
	proc_clear(t, p, ts_ns);
	p->serial = ++t->serial;
	/* Facts come ahead of events: a fact after the exec is about the new program. */
	p->pub.flags = t->off || (p->blind_ns && !ttmon_before(p->blind_ns, ts_ns)) ? TTMON_TT_F_PARTIAL : 0;
	p->own_fact = p->own_fact && !ttmon_before(p->own_ns, ts_ns);
	for (uint32_t i = 0; i < p->nr_places;)
		if (ttmon_before(p->places[i].ts_ns, ts_ns))
			p->places[i] = p->places[--p->nr_places];
		else
			i++;
	p->pub.layout = NULL;
	p->own_call = p->bad_ids = false;
	p->vt_device = p->vt_mesh = 0;
	p->gen_devs = 0;
	for (uint32_t i = 0; i < p->nr_uses; i++)
		if (p->uses[i].pub.logical == TTMON_TT_NO_LOGICAL)
			p->uses[i].dead = true;
}

void ttmon_tt_on_proc(struct ttmon_tt *t, const struct ttmon_ev_proc *ev, size_t size _unused_)
{
	struct ttmon_tt_proc *p = ttmon_tt_find(t, ev->h.tgid);

	if (p && !p->pub.end_ns && p->pub.start_ns && p->pub.start_ns != ev->start_ns)
		proc_end(t, p, ev->h.ts_ns);
	p = ttmon_tt_find(t, ev->h.tgid);
	if (!p || p->pub.end_ns)
		p = proc_new(t, ev->h.tgid);
	if (!p)
		return;
	memcpy(p->pub.comm, ev->comm, TTMON_COMM_LEN);
	p->pub.comm[TTMON_COMM_LEN - 1] = '\0';
	p->pub.start_ns = ev->start_ns;
	if (ev->reason == TTMON_PROC_EXEC)
		proc_exec(t, p, ev->h.ts_ns);
	else if (!p->announced && !t->off && ev->start_ns >= t->off_ns &&
		 (!p->blind_ns || ttmon_before(p->blind_ns, ev->start_ns)) &&
		 (ev->reason == TTMON_PROC_FORK || (t->clock_ns && ev->start_ns >= t->clock_ns)))
		p->pub.flags &= ~(uint32_t)TTMON_TT_F_PARTIAL;
	p->announced = true;
	t->generation += p->seen;
}

static void end_of(struct ttmon_tt *t, uint32_t tgid, uint64_t start_ns, uint64_t ts_ns)
{
	struct ttmon_tt_proc *p = ttmon_tt_find(t, tgid);

	if (p && (!start_ns || !p->pub.start_ns || start_ns == p->pub.start_ns))
		proc_end(t, p, ts_ns);
}

/* ---- threads ---- */

struct ttmon_tt_thread *ttmon_tt_get_thread(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t tid)
{
	uint64_t at = ttmon_hmap_get(&t->by_tid, tid);
	struct ttmon_tt_thread *th;
	struct ttmon_tt_group *group;

	if (at == TTMON_HMAP_NONE) {
		if (t->nr_threads < TTMON_TT_THREADS) {
			if (TTMON_GROW(t->threads, t->cap_threads, t->nr_threads + 1, 8) ||
			    ttmon_hmap_put(&t->by_tid, tid, t->nr_threads) < 0)
				return NULL;
			at = t->nr_threads++;
			t->threads[at] = (struct ttmon_tt_thread){ 0 };
		} else {
			at = t->next_thread++ % TTMON_TT_THREADS;
			ttmon_tt_group_close(t, &t->threads[at]);
			ttmon_hmap_del(&t->by_tid, t->threads[at].tid);
			/* The table has one entry fewer than before, so there is room. */
			if (ttmon_hmap_put(&t->by_tid, tid, at) < 0)
				return NULL;
		}
	}
	th = &t->threads[at];
	if (th->serial == p->serial && th->tid == tid)
		return th;
	ttmon_tt_group_close(t, th);
	group = th->group;
	*th = (struct ttmon_tt_thread){ .serial = p->serial, .tid = tid, .proc = p->idx, .group = group };
	return th;
}

/* ---- records ---- */

static void on_create(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_thread *th,
		      const struct ttmon_ev_tt_call *ev, bool shadow)
{
	if (th && shadow && ttmon_tt_group_add(t, p, th, ev))
		return;
	if (th)
		ttmon_tt_group_close(t, th);
	if (ev->dev_kind != TTMON_TT_DEV_UNKNOWN)
		ttmon_tt_dev_get(t, p, ev->arg[0], ev->dev_kind, ev->slot);
	else if (t->slots[ev->slot].told && !(t->slots[ev->slot].has & TTMON_TT_HAS_VTABLE) && ev->arg[0])
		/*
		 * E0: devices have no vtable to recognise them by, but a buffer is created on one. The device may be
		 * older than the trace.
		 */
		ttmon_tt_dev_get(t, p, ev->arg[0], TTMON_TT_DEV_DEVICE, ev->slot);
	if (!th || shadow)
		return;
	th->create.device = ev->arg[0];
	th->create.size = ev->arg[1];
	th->create.type = (uint32_t)ev->arg[3];
	th->create.valid = ev->arg[1] != 0;
}

void ttmon_tt_call(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev, size_t size)
{
	const struct ttmon_tt_desc *d = ttmon_tt_fn(ev->fn);
	struct ttmon_tt_thread *th = ttmon_tt_get_thread(t, p, ev->h.tid);

	if (p->pub.flags & TTMON_TT_F_UNCALIBRATED)
		return;
	if (th)
		ttmon_tt_confirm(t, p, th, 0);
	if (th && d->cls != TTMON_TT_CLS_CREATE)
		ttmon_tt_group_close(t, th);
	switch (d->cls) {
	case TTMON_TT_CLS_CREATE:
		on_create(t, p, th, ev, d->aux == TTMON_TT_OP_SHADOW);
		break;
	case TTMON_TT_CLS_BULK:
		ttmon_tt_buf_bulk(t, p, ev->arg[0], ev->h.ts_ns, ev->fn);
		break;
	case TTMON_TT_CLS_CB:
		ttmon_tt_cb(t, p, (const void *)ev, size);
		break;
	case TTMON_TT_CLS_CB_FREE:
		ttmon_tt_cb_free(t, p, ev);
		break;
	case TTMON_TT_CLS_CB_OF:
		ttmon_tt_cb_run(t, p, ev);
		break;
	case TTMON_TT_CLS_DEVICE_NEW:
		ttmon_tt_dev_new(t, p, ev);
		break;
	case TTMON_TT_CLS_DEVICE_OPEN:
		(void)ttmon_tt_dev_get(t, p, ev->arg[0], TTMON_TT_DEV_DEVICE, ev->slot);
		break;
	case TTMON_TT_CLS_DEVICE_END:
		ttmon_tt_dev_end(t, p, ev);
		break;
	case TTMON_TT_CLS_MESH_ANEW:
		ttmon_tt_mesh_anew(t, p, ev);
		break;
	default:
		break;
	}
}

void ttmon_tt_on_tt_call(struct ttmon_tt *t, const struct ttmon_ev_tt_call *ev, size_t size)
{
	const struct ttmon_tt_desc *d = ttmon_tt_fn(ev->fn);
	struct ttmon_tt_proc *p;

	if (!d || d->cls == TTMON_TT_CLS_PAIR || ev->slot >= TTMON_TT_SLOTS || ev->dev_kind >= TTMON_TT_DEV_MAX)
		return;
	p = proc_get(t, ev->h.tgid, ev->h.ts_ns, 0);
	if (!p)
		return;
	p->seen = true;
	if (d->cls != TTMON_TT_CLS_PROVIDER) {
		if (!ttmon_tt_hold_call(t, p, ev, size))
			ttmon_tt_call(t, p, ev, size);
	} else if (!(uint8_t)ev->arg[3] && !p->own_call) {
		p->own_call = true;
		t->generation++;
	}
}

void ttmon_tt_on_tt_buffer(struct ttmon_tt *t, const struct ttmon_ev_tt_buffer *ev, size_t size _unused_)
{
	const struct ttmon_tt_desc *d = ttmon_tt_fn(ev->fn);
	struct ttmon_tt_proc *p;

	if (!d || d->cls != TTMON_TT_CLS_BUFFER || ev->slot >= TTMON_TT_SLOTS || ev->dev_kind >= TTMON_TT_DEV_MAX)
		return;
	p = proc_get(t, ev->h.tgid, ev->h.ts_ns, 0);
	if (!p)
		return;
	t->generation += !p->seen;
	p->seen = true;
	ttmon_tt_buffer(t, p, ev);
}

void ttmon_tt_on_tt_chip(struct ttmon_tt *t, const struct ttmon_ev_tt_chip *ev, size_t size _unused_)
{
	uint32_t at = ttmon_tt_chip_get(t, ev->index);

	if (at == TTMON_TT_NIL)
		return;
	t->chips[at].fact = *ev;
	t->generation++;
}

void ttmon_tt_on_tt_object(struct ttmon_tt *t, const struct ttmon_ev_tt_object *ev, size_t size _unused_)
{
	struct ttmon_tt_slotinfo *s;

	if (ev->slot >= TTMON_TT_SLOTS)
		return;
	s = &t->slots[ev->slot];
	if (s->told && s->object != ev->object)
		*s = (struct ttmon_tt_slotinfo){ 0 };
	if (ev->has & TTMON_TT_HAS_SPARE && (!(s->has & TTMON_TT_HAS_SPARE) || !s->told)) {
		s->on_ns = ev->h.ts_ns;
		s->off_ns = 0;
	} else if (s->has & TTMON_TT_HAS_SPARE && !(ev->has & TTMON_TT_HAS_SPARE)) {
		s->off_ns = ev->h.ts_ns;
	}
	s->told = true;
	s->object = ev->object;
	s->has = ev->has;
}

void ttmon_tt_on_tt_proc(struct ttmon_tt *t, const struct ttmon_ev_tt_proc *ev, size_t size _unused_)
{
	struct ttmon_tt_proc *p = proc_get(t, ev->h.tgid, ev->h.ts_ns, TTMON_TT_FACT_NS);
	struct ttmon_tt_place place = {
		.logical = ev->logical, .chip = ev->chip, .how = ev->how, .ts_ns = ev->h.ts_ns
	};
	uint32_t i;

	if (!p)
		return;
	p->own_fact = ev->flags & TTMON_TT_PROC_OWN_SHM;
	p->own_ns = ev->h.ts_ns;
	t->generation++;
	if (ev->logical >= TTMON_TT_LOGICALS)
		return;
	for (i = 0; i < p->nr_places && p->places[i].logical != ev->logical; i++)
		;
	if (i == p->nr_places) {
		if (TTMON_GROW(p->places, p->cap_places, p->nr_places + 1, 8))
			return;
		p->nr_places++;
	}
	p->places[i] = place;
	for (i = 0; i < p->nr_uses; i++)
		if (!p->uses[i].dead && p->uses[i].pub.logical == ev->logical)
			ttmon_tt_use_chip(t, &p->uses[i], ev->chip, ev->how);
}

/*
 * The process mapped a library with tt-metal before the probes there were active, and was not stopped:
 * its calls until then were not seen.
 */
void ttmon_tt_on_blind(struct ttmon_tt *t, const struct ttmon_ev_blind *ev, size_t size _unused_)
{
	struct ttmon_tt_proc *p;
	bool ours = false;

	for (uint32_t i = 0; i < TTMON_TT_SLOTS && !ours; i++)
		ours = t->slots[i].told && t->slots[i].object == ev->object;
	if (ev->how == TTMON_BLIND_HELD || !ours)
		return;
	p = proc_get(t, ev->h.tgid, ev->active_ns, TTMON_TT_FACT_NS);
	if (!p)
		return;
	p->blind_ns = MAX(ev->active_ns, 1ULL);
	p->pub.flags |= TTMON_TT_F_PARTIAL;
	/* It may hold memory already, whether it makes further calls or not. */
	p->seen = true;
	t->generation++;
}

/* While the family is off, calls of programs are not seen, and what they did then stays unknown. */
void ttmon_tt_on_family(struct ttmon_tt *t, const struct ttmon_ev_family *ev, size_t size _unused_)
{
	if (ev->family != TTMON_FAMILY_TENSTORRENT || ev->h.tgid)
		return;
	t->off = ev->state != TTMON_FAMILY_ON;
	t->off_ns = MAX(t->off_ns, ev->h.ts_ns);
	for (uint32_t i = 0; i < t->nr_procs; i++)
		if (t->procs[i] && !t->procs[i]->pub.end_ns)
			t->procs[i]->pub.flags |= TTMON_TT_F_PARTIAL;
	t->generation++;
}

uint32_t ttmon_tt_ran_on(struct ttmon_tt *t, uint32_t tgid, uint32_t logical, uint64_t ts_ns)
{
	struct ttmon_tt_proc *p = proc_get(t, tgid, ts_ns, 0);

	if (p && !(p->pub.flags & TTMON_TT_F_UNCALIBRATED) && ttmon_tt_use_get(t, p, logical) >= 0) {
		t->generation += !p->seen;
		p->seen = true;
	}
	for (uint32_t i = 0; p && i < p->nr_places; i++)
		if (p->places[i].logical == logical)
			return p->places[i].chip;
	return 0;
}

void ttmon_tt_on_tt_mesh(struct ttmon_tt *t, const struct ttmon_ev_tt_mesh *ev, size_t size)
{
	struct ttmon_tt_proc *p = ttmon_tt_find(t, ev->h.tgid);

	if (p && !p->pub.end_ns && !(p->pub.flags & TTMON_TT_F_UNCALIBRATED))
		ttmon_tt_mesh_fact(t, p, ev, size);
}

void ttmon_tt_on_clock(struct ttmon_tt *t, const struct ttmon_ev_clock *ev, size_t size _unused_)
{
	t->clock_ns = ev->mono_ns;
}

void ttmon_tt_on_exit(struct ttmon_tt *t, const struct ttmon_ev_exit *ev, size_t size _unused_)
{
	end_of(t, ev->h.tgid, ev->start_ns, ev->h.ts_ns);
}

void ttmon_tt_on_gone(struct ttmon_tt *t, const struct ttmon_ev_gone *ev, size_t size _unused_)
{
	end_of(t, ev->h.tgid, 0, ev->h.ts_ns);
}

void ttmon_tt_now(struct ttmon_tt *t, uint64_t ts_ns)
{
	if (ttmon_before(t->now_ns, ts_ns))
		t->now_ns = ts_ns;
}

bool ttmon_tt_tick(struct ttmon_tt *t, uint64_t now_ns)
{
	ttmon_tt_now(t, now_ns);
	ttmon_tt_fallback_tick(t);
	ttmon_tt_mesh_tick(t);
	ttmon_tt_spare_tick(t);
	return t->nr_holding || t->tentative.head != TTMON_TT_NIL || t->nr_groups || t->nr_unknown;
}

void ttmon_tt_finish(struct ttmon_tt *t, uint64_t end_ns)
{
	for (uint32_t i = 0; i < t->nr_procs; i++) {
		struct ttmon_tt_proc *p = t->procs[i];

		if (!p || p->pub.end_ns)
			continue;
		ttmon_tt_settle(t, p);
		ttmon_tt_confirm_all(t, p);
	}
	ttmon_tt_groups_pause(t, true);
	ttmon_tt_tick(t, end_ns);
	for (uint32_t i = 0; i < t->nr_procs; i++)
		if (t->procs[i] && !t->procs[i]->pub.end_ns)
			ttmon_tt_mesh_finish(t, t->procs[i]);
}

void ttmon_tt_lost(struct ttmon_tt *t)
{
	for (uint32_t i = 0; i < t->nr_procs; i++) {
		struct ttmon_tt_proc *p = t->procs[i];

		/* Also where nothing of the process was seen so far: that may be what was lost. */
		if (p && (!p->pub.end_ns || ttmon_before(t->now_ns, p->pub.end_ns + TTMON_TT_LOSS_NS)))
			p->pub.flags |= TTMON_TT_F_LOST;
	}
	t->generation++;
}

/* ---- life ---- */

int ttmon_tt_new(const struct ttmon_tt_cfg *cfg, const struct ttmon_tt_ops *ops, void *ctx, struct ttmon_tt **ret)
{
	struct ttmon_tt *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->cfg = *cfg;
	if (!t->cfg.max_buffers || t->cfg.max_buffers >= TTMON_TT_NIL)
		t->cfg.max_buffers = TTMON_TT_BUFFERS;
	if (ops)
		t->ops = *ops;
	t->ctx = ctx;
	t->free_bufs = t->tentative.head = t->tentative.tail = TTMON_TT_NIL;
	t->free_procs.elem = t->ended.elem = sizeof(uint32_t);
	*ret = t;
	return 0;
}

void ttmon_tt_free(struct ttmon_tt *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->nr_procs; i++) {
		if (!t->procs[i])
			continue;
		release(t, t->procs[i]);
		free(t->procs[i]->uses);
		free(t->procs[i]->places);
		free(t->procs[i]);
	}
	for (uint32_t i = 0; i < t->nr_threads; i++)
		free(t->threads[i].group);
	free(t->threads);
	free(t->procs);
	free(t->bufs);
	free(t->chips);
	free(t->groups);
	free(t->unknown);
	free(t->holding);
	ttmon_fifo_fini(&t->free_procs);
	ttmon_fifo_fini(&t->ended);
	ttmon_hmap_fini(&t->by_tgid);
	ttmon_hmap_fini(&t->by_tid);
	ttmon_hmap_fini(&t->by_chip);
	free(t);
}
