// SPDX-License-Identifier: GPL-2.0-only
/*
 * bufs.c: live buffers, and the sums and peaks that follow from them. Part of core/tt (hot thread,
 * pure).
 *
 * A buffer belongs to one device or mesh and is counted in its sums. A use (a logical device of a
 * process) shows the sums of its device plus those of each mesh that the device is a member of; it is
 * updated buffer by buffer, so that its peak is exact, and so are the chips. The sums of a mesh whose
 * members are unknown count for no use until they are known.
 */
#include "daemon/core/tt/tt_int.h"
#include "lib/base/grow.h"

static const uint8_t methods[TTMON_TT_TYPES] = {
	[TTMON_TT_TYPE_DRAM] = TTMON_METHOD_TT_DRAM,
	[TTMON_TT_TYPE_L1] = TTMON_METHOD_TT_L1,
	[TTMON_TT_TYPE_L1_SMALL] = TTMON_METHOD_TT_L1_SMALL,
	[TTMON_TT_TYPE_TRACE_BUF] = TTMON_METHOD_TT_TRACE,
	[TTMON_TT_TYPE_CB] = TTMON_METHOD_TT_CB,
	[TTMON_TT_TYPE_KERNEL] = TTMON_METHOD_TT_DRAM,
};

/*
 * Lists: by prev and next the buffers of a device, or the tentative ones; by aprev and anext those of
 * an allocator.
 */
static void list_add(struct ttmon_tt *t, struct ttmon_tt_list *l, uint32_t idx)
{
	struct ttmon_tt_buf *b = &t->bufs[idx];

	b->prev = l->tail;
	b->next = TTMON_TT_NIL;
	if (l->tail == TTMON_TT_NIL)
		l->head = idx;
	else
		t->bufs[l->tail].next = idx;
	l->tail = idx;
}

static void list_del(struct ttmon_tt *t, struct ttmon_tt_list *l, uint32_t idx)
{
	struct ttmon_tt_buf *b = &t->bufs[idx];

	if (b->prev == TTMON_TT_NIL)
		l->head = b->next;
	else
		t->bufs[b->prev].next = b->next;
	if (b->next == TTMON_TT_NIL)
		l->tail = b->prev;
	else
		t->bufs[b->next].prev = b->prev;
}

static void alc_add(struct ttmon_tt *t, struct ttmon_tt_list *l, uint32_t idx)
{
	struct ttmon_tt_buf *b = &t->bufs[idx];

	b->aprev = l->tail;
	b->anext = TTMON_TT_NIL;
	if (l->tail == TTMON_TT_NIL)
		l->head = idx;
	else
		t->bufs[l->tail].anext = idx;
	l->tail = idx;
}

static void alc_del(struct ttmon_tt *t, struct ttmon_tt_list *l, uint32_t idx)
{
	struct ttmon_tt_buf *b = &t->bufs[idx];

	if (b->aprev == TTMON_TT_NIL)
		l->head = b->anext;
	else
		t->bufs[b->aprev].anext = b->anext;
	if (b->anext == TTMON_TT_NIL)
		l->tail = b->aprev;
	else
		t->bufs[b->anext].aprev = b->aprev;
}

/* ---- sums ---- */

static void grow(uint64_t *bytes, uint64_t *peak, uint64_t by, bool raise)
{
	*bytes += by;
	if (raise)
		*peak = MAX(*peak, *bytes);
}

static void use_alloc(struct ttmon_tt *t, struct ttmon_tt_usage *u, unsigned int type, uint64_t size, bool raise)
{
	grow(&u->pub.bytes[type], &u->pub.peak[type], size, raise);
	u->pub.buffers++;
	u->pub.allocs++;
	if (u->chip != TTMON_TT_NIL)
		grow(&t->chips[u->chip].bytes[type], &t->chips[u->chip].peak[type], size, raise);
}

static void use_free(struct ttmon_tt *t, struct ttmon_tt_usage *u, unsigned int type, uint64_t size,
		     enum ttmon_tt_end how)
{
	u->pub.bytes[type] -= size;
	u->pub.buffers--;
	if (how == TTMON_TT_END_UNDO)
		u->pub.allocs--;
	else
		u->pub.frees++;
	if (u->chip != TTMON_TT_NIL)
		t->chips[u->chip].bytes[type] -= size;
}

void ttmon_tt_use_add(struct ttmon_tt *t, struct ttmon_tt_usage *u, const struct ttmon_tt_device *d, bool raise)
{
	for (unsigned int i = 0; i < TTMON_TT_TYPES; i++) {
		uint64_t *peak = &u->pub.peak[i];

		grow(&u->pub.bytes[i], peak, d->bytes[i], raise);
		if (raise)
			*peak = MAX(*peak, d->peak[i]);
		if (u->chip == TTMON_TT_NIL)
			continue;
		grow(&t->chips[u->chip].bytes[i], &t->chips[u->chip].peak[i], d->bytes[i], raise);
		/* The chip's peak is at least what this process alone had there. */
		if (raise)
			t->chips[u->chip].peak[i] = MAX(t->chips[u->chip].peak[i], *peak);
	}
	u->pub.buffers += d->live;
	u->pub.allocs += d->allocs;
	u->pub.frees += d->frees;
	t->generation++;
}

void ttmon_tt_use_sub(struct ttmon_tt *t, struct ttmon_tt_usage *u, const struct ttmon_tt_device *d, bool freed)
{
	for (unsigned int i = 0; i < TTMON_TT_TYPES; i++) {
		u->pub.bytes[i] -= d->bytes[i];
		if (u->chip != TTMON_TT_NIL)
			t->chips[u->chip].bytes[i] -= d->bytes[i];
	}
	u->pub.buffers -= d->live;
	if (freed) {
		u->pub.frees += d->live;
	} else {
		u->pub.allocs -= d->allocs;
		u->pub.frees -= d->frees;
	}
	t->generation++;
}

uint32_t ttmon_tt_chip_get(struct ttmon_tt *t, uint32_t index)
{
	uint64_t at = ttmon_hmap_get(&t->by_chip, index);

	if (at != TTMON_HMAP_NONE)
		return (uint32_t)at;
	if (t->nr_chips >= TTMON_TT_CHIPS || TTMON_GROW(t->chips, t->cap_chips, t->nr_chips + 1, 8) ||
	    ttmon_hmap_put(&t->by_chip, index, t->nr_chips) < 0)
		return TTMON_TT_NIL;
	t->chips[t->nr_chips] = (struct ttmon_tt_chip){ 0 };
	return t->nr_chips++;
}

void ttmon_tt_use_chip(struct ttmon_tt *t, struct ttmon_tt_usage *u, uint32_t index, uint32_t how)
{
	uint32_t to = index ? ttmon_tt_chip_get(t, index) : TTMON_TT_NIL;

	u->pub.how = how;
	if (u->pub.chip == index && u->chip == to)
		return;
	for (unsigned int i = 0; i < TTMON_TT_TYPES; i++) {
		if (u->chip != TTMON_TT_NIL)
			t->chips[u->chip].bytes[i] -= u->pub.bytes[i];
		if (to == TTMON_TT_NIL)
			continue;
		grow(&t->chips[to].bytes[i], &t->chips[to].peak[i], u->pub.bytes[i], true);
		t->chips[to].peak[i] = MAX(t->chips[to].peak[i], u->pub.peak[i]);
	}
	u->pub.chip = index;
	u->chip = to;
	t->generation++;
}

/* ---- buffers ---- */

uint32_t ttmon_tt_buf_find(const struct ttmon_tt_proc *p, uint64_t key)
{
	uint64_t idx = ttmon_hmap_get(&p->bufs, key);

	return idx == TTMON_HMAP_NONE ? TTMON_TT_NIL : (uint32_t)idx;
}

static uint32_t alc_get(struct ttmon_tt_proc *p, uint64_t addr)
{
	uint64_t idx = addr ? ttmon_hmap_get(&p->by_alc, addr) : 0;

	if (!addr)
		return TTMON_TT_NIL;
	if (idx != TTMON_HMAP_NONE)
		return (uint32_t)idx;
	/*
	 * A buffer without a known allocator is not ended by a call that frees all buffers of an allocator;
	 * nothing else is missed.
	 */
	if (p->nr_alcs >= TTMON_TT_DEVS || TTMON_GROW(p->alcs, p->cap_alcs, p->nr_alcs + 1, 8) ||
	    ttmon_hmap_put(&p->by_alc, addr, p->nr_alcs) < 0)
		return TTMON_TT_NIL;
	p->alcs[p->nr_alcs] =
		(struct ttmon_tt_alc){ .addr = addr, .bufs = { .head = TTMON_TT_NIL, .tail = TTMON_TT_NIL } };
	return p->nr_alcs++;
}

static uint32_t take(struct ttmon_tt *t)
{
	uint32_t idx = t->free_bufs;

	if (idx != TTMON_TT_NIL) {
		t->free_bufs = t->bufs[idx].next;
		return idx;
	}
	if (TTMON_GROW(t->bufs, t->cap_bufs, t->nr_bufs + 1, 8))
		return TTMON_TT_NIL;
	return t->nr_bufs++;
}

uint32_t ttmon_tt_buf_new(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_tt_buf *b, uint64_t allocator)
{
	uint32_t idx;

	if (b->size > TTMON_TT_TOTAL - p->total) {
		p->pub.refused++;
		return TTMON_TT_NIL;
	}
	idx = t->live_bufs < t->cfg.max_buffers ? take(t) : TTMON_TT_NIL;
	if (idx == TTMON_TT_NIL || ttmon_hmap_put(&p->bufs, b->key, idx) < 0) {
		if (idx != TTMON_TT_NIL) {
			t->bufs[idx].next = t->free_bufs;
			t->free_bufs = idx;
		}
		p->pub.flags |= TTMON_TT_F_LIMIT;
		t->generation++;
		return TTMON_TT_NIL;
	}
	if (p->swept.n)
		(void)ttmon_hmap_del(&p->swept, b->key);
	t->live_bufs++;
	t->bufs[idx] = *b;
	t->bufs[idx].proc = p->idx;
	t->bufs[idx].alc = alc_get(p, allocator);
	t->bufs[idx].bits |= TTMON_TT_B_TENTATIVE;
	p->total += b->size;
	list_add(t, &t->tentative, idx);
	return idx;
}

static void tell(struct ttmon_tt *t, const struct ttmon_tt_proc *p, struct ttmon_tt_buf *b)
{
	const struct ttmon_tt_device *d = &p->devs[b->dev];
	uint64_t n = d->kind == TTMON_TT_DEV_MESH ? MAX(d->nr_links, 1U) : 1;

	if (b->bits & TTMON_TT_B_TOLD)
		return;
	b->bits |= TTMON_TT_B_TOLD;
	if (t->ops.alloc)
		b->seq = t->ops.alloc(t->ctx, p->pub.tgid, b->ts_ns, methods[b->type], b->addr, b->size * n, b->fn);
}

void ttmon_tt_buf_tell(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev)
{
	for (uint32_t i = p->devs[dev].bufs.head; i != TTMON_TT_NIL; i = t->bufs[i].next)
		tell(t, p, &t->bufs[i]);
	ttmon_tt_cbs_tell(t, p, dev);
}

void ttmon_tt_dev_alloc(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, unsigned int type, uint64_t size)
{
	struct ttmon_tt_device *d = &p->devs[dev];

	grow(&d->bytes[type], &d->peak[type], size, true);
	d->live++;
	d->allocs++;
	if (d->kind != TTMON_TT_DEV_MESH)
		use_alloc(t, &p->uses[d->use], type, size, true);
	else
		for (uint32_t i = 0; i < d->nr_links; i++)
			use_alloc(t, &p->uses[p->devs[d->links[i]].use], type, size,
				  d->known != TTMON_TT_MESH_ASSUMED_ALL);
	t->generation++;
}

void ttmon_tt_dev_free(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, unsigned int type, uint64_t size,
		       enum ttmon_tt_end how)
{
	struct ttmon_tt_device *d = &p->devs[dev];

	d->bytes[type] -= size;
	d->live--;
	if (how == TTMON_TT_END_UNDO)
		d->allocs--;
	else
		d->frees++;
	if (d->kind != TTMON_TT_DEV_MESH)
		use_free(t, &p->uses[d->use], type, size, how);
	else
		for (uint32_t i = 0; i < d->nr_links; i++)
			use_free(t, &p->uses[p->devs[d->links[i]].use], type, size, how);
	t->generation++;
}

void ttmon_tt_buf_count(struct ttmon_tt *t, uint32_t idx)
{
	struct ttmon_tt_buf *b = &t->bufs[idx];
	struct ttmon_tt_proc *p = t->procs[b->proc];
	struct ttmon_tt_device *d = &p->devs[b->dev];

	list_del(t, &t->tentative, idx);
	b->bits &= (uint8_t)~TTMON_TT_B_TENTATIVE;
	list_add(t, &d->bufs, idx);
	if (b->alc != TTMON_TT_NIL)
		alc_add(t, &p->alcs[b->alc].bufs, idx);
	ttmon_tt_dev_alloc(t, p, b->dev, b->type, b->size);
	if (d->kind != TTMON_TT_DEV_MESH || d->known != TTMON_TT_MESH_UNKNOWN)
		tell(t, p, b);
}

static void uncount(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t idx, enum ttmon_tt_end how)
{
	struct ttmon_tt_buf *b = &t->bufs[idx];

	list_del(t, &p->devs[b->dev].bufs, idx);
	if (b->alc != TTMON_TT_NIL)
		alc_del(t, &p->alcs[b->alc].bufs, idx);
	ttmon_tt_dev_free(t, p, b->dev, b->type, b->size, how);
}

void ttmon_tt_buf_end(struct ttmon_tt *t, uint32_t idx, uint64_t ts_ns, uint16_t fn, enum ttmon_tt_end how)
{
	struct ttmon_tt_buf *b = &t->bufs[idx];
	struct ttmon_tt_proc *p = t->procs[b->proc];

	if (b->bits & TTMON_TT_B_TENTATIVE) {
		list_del(t, &t->tentative, idx);
	} else {
		if (how == TTMON_TT_END_FREE) {
			tell(t, p, b);
			if (t->ops.free)
				t->ops.free(t->ctx, b->seq, ts_ns, fn);
		} else if (b->bits & TTMON_TT_B_TOLD && t->ops.undo) {
			t->ops.undo(t->ctx, b->seq, ts_ns);
		}
		uncount(t, p, idx, how);
	}
	ttmon_hmap_del(&p->bufs, b->key);
	p->total -= b->size;
	t->live_bufs--;
	b->proc = TTMON_TT_NIL;
	b->next = t->free_bufs;
	t->free_bufs = idx;
}

void ttmon_tt_buf_end_list(struct ttmon_tt *t, const struct ttmon_tt_list *l, uint64_t ts_ns, uint16_t fn,
			   enum ttmon_tt_end how)
{
	while (l->head != TTMON_TT_NIL)
		ttmon_tt_buf_end(t, l->head, ts_ns, fn, how);
}

/* Ends the first buffer of a list (of a device or an allocator) until the list is empty. */
static void sweep(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_tt_list *l, uint64_t ts_ns,
		  uint16_t fn)
{
	while (l->head != TTMON_TT_NIL) {
		/*
		 * Without memory to remember it, its later free looks like one of a buffer from before the trace: the
		 * process is then partial.
		 */
		if (p->swept.n < TTMON_TT_SWEPT)
			(void)!ttmon_hmap_put(&p->swept, t->bufs[l->head].key, ts_ns);
		ttmon_tt_buf_end(t, l->head, ts_ns, fn, TTMON_TT_END_FREE);
	}
}

void ttmon_tt_buf_sweep_dev(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, uint64_t ts_ns, uint16_t fn)
{
	sweep(t, p, &p->devs[dev].bufs, ts_ns, fn);
	if (p->devs[dev].kind == TTMON_TT_DEV_DEVICE)
		ttmon_tt_cbs_shut_dev(t, p, dev, ts_ns, fn);
	else
		ttmon_tt_cbs_end_dev(t, p, dev, ts_ns, fn);
}

void ttmon_tt_buf_end_dev(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, uint64_t ts_ns, uint16_t fn,
			  enum ttmon_tt_end how)
{
	ttmon_tt_buf_end_list(t, &p->devs[dev].bufs, ts_ns, fn, how);
	ttmon_tt_cbs_end_dev(t, p, dev, ts_ns, fn);
}

void ttmon_tt_buf_end_tentative(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev)
{
	uint32_t next;

	for (uint32_t i = t->tentative.head; i != TTMON_TT_NIL; i = next) {
		next = t->bufs[i].next;
		if (t->bufs[i].proc == p->idx && (dev == TTMON_TT_NIL || t->bufs[i].dev == dev))
			ttmon_tt_buf_end(t, i, 0, 0, TTMON_TT_END_UNDO);
	}
}

void ttmon_tt_buf_end_all(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint64_t ts_ns, enum ttmon_tt_end how)
{
	ttmon_tt_buf_end_tentative(t, p, TTMON_TT_NIL);
	for (uint32_t i = 0; i < p->nr_devs; i++)
		ttmon_tt_buf_end_dev(t, p, i, ts_ns, 0, how);
}

/* The device and allocator that all of the process's buffers share; false if they differ. */
static bool only_device(const struct ttmon_tt_proc *p, uint32_t *dev)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->nr_devs; i++)
		if (p->devs[i].live) {
			*dev = i;
			n++;
		}
	return n == 1;
}

void ttmon_tt_buf_bulk(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint64_t allocator, uint64_t ts_ns, uint16_t fn)
{
	uint64_t alc = ttmon_hmap_get(&p->by_alc, allocator);
	uint32_t dev;

	/* E0's Buffers do not name their allocator: with a single device there is no doubt. */
	if (alc != TTMON_HMAP_NONE)
		sweep(t, p, &p->alcs[alc].bufs, ts_ns, fn);
	else if (!p->nr_alcs && only_device(p, &dev))
		sweep(t, p, &p->devs[dev].bufs, ts_ns, fn);
}
