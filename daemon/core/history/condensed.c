// SPDX-License-Identifier: GPL-2.0-only
/*
 * condensed.c: live allocations whose records had to make room. Part of the history (hot thread,
 * pure).
 *
 * An allocation that loses its record has not ended: its bytes still belong to the process. So what
 * its end will need is kept: address, size, method, call site, in 41 bytes instead of 121. Sums of
 * bytes and pages stay right, and a copy from or to it counts for its kind of memory, at the unknown
 * site. Its name, heat and events are gone; live advice and its groups are notified (their transfers
 * are then lower bounds, so that nothing of them is called unused).
 *
 * When there is no room for that either, it leaves the sums of its process, which are lower bounds
 * from then on (ttmon_proc.forgotten).
 */
#include "daemon/core/history/history_int.h"

#define NO_ID UINT32_MAX
/* condensed allocations for each record that may be kept */
#define CONDENSED_FACTOR 2

struct ttmon_remains {
	struct ttmon_ranges layer[TTMON_LAYER_MAX]; /* indexes into h->condensed */
	uint64_t oldest_ns;			    /* no condensed allocation is older than this */
	struct ttmon_alloc stand_in[TTMON_METHOD_MAX];
	/*
	 * Allocations that ended without a free which may still come: the last ones, as for those with a
	 * record.
	 */
	struct {
		uint64_t addr;
		uint8_t method;
		bool superseded;
	} ghosts[TTMON_GHOSTS];
	uint32_t nr_ghosts;
};

static struct ttmon_remains *remains_of(struct ttmon_history *h, struct ttmon_hproc *p)
{
	struct ttmon_remains *r = p->remains;

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->layer[TTMON_LAYER_REG].overlap = true;
	r->oldest_ns = UINT64_MAX;
	for (unsigned int m = 0; m < TTMON_METHOD_MAX; m++)
		r->stand_in[m] = (struct ttmon_alloc){ .traffic = &ttmon_no_traffic,
						       .seq_low = UINT32_MAX,
						       .seq_high = UINT8_MAX,
						       .proc = p->pub.idx,
						       .device = -1,
						       .method = m & 0xf,
						       .freed_nth = UINT32_MAX };
	p->remains = r;
	(void)h;
	return r;
}

void ttmon_condensed_release(struct ttmon_history *h, struct ttmon_hproc *p)
{
	struct ttmon_remains *r = p->remains;

	if (!r)
		return;
	/* The history itself ends: sums are no longer needed. */
	for (unsigned int l = 0; l < TTMON_LAYER_MAX; l++) {
		h->nr_condensed -= r->layer[l].n;
		ttmon_ranges_fini(&r->layer[l]);
	}
	free(r);
	p->remains = NULL;
}

/* ---- their places ---- */

static uint32_t take_place(struct ttmon_history *h)
{
	uint32_t id = h->condensed_free;

	if (id != NO_ID) {
		h->condensed_free = (uint32_t)h->condensed[id].size;
		return id;
	}
	if (h->condensed_used == h->condensed_cap) {
		uint32_t cap = h->condensed_cap ? h->condensed_cap * 2 : 1024;
		struct ttmon_condensed *v = realloc(h->condensed, cap * sizeof(*v));

		if (!v)
			return NO_ID;
		h->condensed = v;
		h->condensed_cap = cap;
	}
	return h->condensed_used++;
}

static void give_place(struct ttmon_history *h, uint32_t id)
{
	h->condensed[id].size = h->condensed_free;
	h->condensed_free = id;
	if (h->nr_condensed)
		return;
	/* The memory is freed after a burst. */
	free(h->condensed);
	h->condensed = NULL;
	h->condensed_cap = h->condensed_used = 0;
	h->condensed_free = NO_ID;
}

/* ---- making room ---- */

/* The allocation leaves the sums without having ended. */
static void forget(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a)
{
	if (a->method == TTMON_METHOD_MMAP) {
		/*
		 * A mapping is in no sum of bytes. Copies from it are of an unknown kind from now on, and no more
		 * lists are read that would only evict each other.
		 */
		if (ttmon_rec_layer(a) == TTMON_LAYER_MAP) {
			p->maps_evicted = true;
			p->pub.maps_known = false;
		}
		return;
	}
	p->pub.forgotten++;
	h->totals.forgotten++;
	ttmon_count_left(h, p, a);
	if (ttmon_rec_pinned(a))
		ttmon_pins_del(h, p, a);
}

static bool keep(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a)
{
	enum ttmon_layer layer = ttmon_rec_layer(a);
	struct ttmon_remains *r;
	uint64_t key = ttmon_layer_key(a);
	uint32_t id;

	if (a->method == TTMON_METHOD_MMAP || h->nr_condensed >= CONDENSED_FACTOR * h->cfg.max_allocations)
		return false;
	r = remains_of(h, p);
	id = r ? take_place(h) : NO_ID;
	if (id == NO_ID)
		return false;
	h->condensed[id] = (struct ttmon_condensed){
		.size = a->size, .seq = ttmon_alloc_seq(a), .site = a->site, .device = a->device, .method = a->method
	};
	h->nr_condensed++;
	if (ttmon_ranges_add(&r->layer[layer], key, layer == TTMON_LAYER_TT ? key + 1 : ttmon_rec_limit(a), id) < 0) {
		h->nr_condensed--;
		give_place(h, id);
		return false;
	}
	/* Without memory for this, it ends with its process. */
	if (layer == TTMON_LAYER_TT && ttmon_hmap_put(&h->tt_condensed, key, p->pub.idx) < 0)
		ttmon_history_no_memory(h);
	r->oldest_ns = MIN(r->oldest_ns, a->alloc_ns);
	p->pub.condensed++;
	p->pub.condensed_ever++;
	h->totals.condensed_ever++;
	return true;
}

void ttmon_condensed_add(struct ttmon_history *h, struct ttmon_alloc *a)
{
	struct ttmon_hproc *p = h->procs[a->proc];

	p->pub.folded_to_ns = MAX(p->pub.folded_to_ns, h->now_ns);
	ttmon_rec_settle(h, a, TTMON_RDIR_H2D);
	ttmon_rec_settle(h, a, TTMON_RDIR_D2H);
	ttmon_siteq_unresolved(h, a);
	ttmon_live_ended(h, a);
	ttmon_rec_unindex(h, a);
	if (!keep(h, p, a))
		forget(h, p, a);
	else
		ttmon_ttpins_condensed(h, p, a);
}

/* ---- looking for them ---- */

/*
 * The condensed allocation of this layer that holds addr, or NULL; [*lo, *hi) is narrowed to the range
 * with the same answer.
 */
static struct ttmon_condensed *holding(const struct ttmon_history *h, const struct ttmon_remains *r, unsigned int layer,
				       uint64_t addr, uint64_t *start, uint64_t *hi)
{
	const struct ttmon_ranges *ranges = &r->layer[layer];
	struct ttmon_ranges_pos pos;
	bool at = ttmon_ranges_floor(ranges, addr, &pos);

	if (!at) {
		if (ttmon_ranges_seek(ranges, 0, &pos))
			*hi = MIN(*hi, pos.start);
		return NULL;
	}
	{
		struct ttmon_ranges_pos next = pos;

		if (ttmon_ranges_next(ranges, &next))
			*hi = MIN(*hi, next.start);
	}
	do {
		struct ttmon_condensed *c = &h->condensed[pos.val];
		uint64_t end = ttmon_end_of(pos.start, c->size ? c->size : 1);

		if (addr < end) {
			*start = pos.start;
			*hi = MIN(*hi, end);
			return c;
		}
	} while (ttmon_ranges_back(ranges, addr, &pos));
	return NULL;
}

struct ttmon_alloc *ttmon_condensed_at(const struct ttmon_history *h, const struct ttmon_hproc *p,
				       enum ttmon_layer layer, uint64_t addr, uint64_t *hi)
{
	struct ttmon_remains *r = p->remains;
	struct ttmon_condensed *c;
	uint64_t start;

	if (!r || !r->layer[layer].n)
		return NULL;
	c = holding(h, r, layer, addr, &start, hi);
	if (!c)
		return NULL;
	/*
	 * It gets the age of the oldest one: what may have happened to that one may have happened to this one.
	 */
	r->stand_in[c->method].alloc_ns = r->oldest_ns;
	return &r->stand_in[c->method];
}

bool ttmon_condensed_pinned_at(const struct ttmon_history *h, const struct ttmon_hproc *p, uint64_t addr)
{
	for (unsigned int l = TTMON_LAYER_DEV; l <= TTMON_LAYER_REG; l++) {
		uint64_t hi = UINT64_MAX;
		const struct ttmon_alloc *a = ttmon_condensed_at(h, p, l, addr, &hi);

		if (a && ttmon_method_pins(a->method))
			return true;
	}
	return false;
}

uint64_t ttmon_condensed_oldest_ns(const struct ttmon_hproc *p)
{
	return p->remains && p->pub.condensed ? p->remains->oldest_ns : UINT64_MAX;
}

uint64_t ttmon_condensed_limit(const struct ttmon_history *h, const struct ttmon_ranges_pos *pos)
{
	const struct ttmon_condensed *c = &h->condensed[pos->val];

	return ttmon_end_of(pos->start, c->size ? c->size : 1);
}

bool ttmon_condensed_pins(const struct ttmon_history *h, const struct ttmon_ranges_pos *pos)
{
	return ttmon_method_pins(h->condensed[pos->val].method);
}

const struct ttmon_ranges *ttmon_condensed_layer(const struct ttmon_hproc *p, enum ttmon_layer layer)
{
	return p->remains ? &p->remains->layer[layer] : NULL;
}

const struct ttmon_condensed *ttmon_condensed_get(const struct ttmon_history *h, const struct ttmon_hproc *p,
						  enum ttmon_layer layer, uint64_t key)
{
	uint32_t id;

	return p->remains && ttmon_ranges_get(&p->remains->layer[layer], key, &id) ? &h->condensed[id] : NULL;
}

bool ttmon_condensed_any(const struct ttmon_history *h, const struct ttmon_hproc *p, enum ttmon_layer layer,
			 uint64_t lo, uint64_t hi)
{
	struct ttmon_ranges_pos pos;
	bool at = p->remains && lo < hi && ttmon_ranges_seek(&p->remains->layer[layer], lo, &pos);

	for (; at && pos.start < hi; at = ttmon_ranges_next(&p->remains->layer[layer], &pos))
		if (ttmon_condensed_limit(h, &pos) > lo)
			return true;
	return false;
}

/* ---- their ends ---- */

bool ttmon_condensed_end(struct ttmon_history *h, struct ttmon_hproc *p, enum ttmon_layer layer, uint64_t key,
			 uint64_t ts_ns, enum ttmon_end end)
{
	const struct ttmon_condensed *found = ttmon_condensed_get(h, p, layer, key);
	struct ttmon_condensed c;
	struct ttmon_alloc a, *piece;
	struct ttmon_site *s;
	uint32_t id;

	if (!found)
		return false;
	c = *found;
	id = (uint32_t)(found - h->condensed);
	a = (struct ttmon_alloc){ .addr = layer == TTMON_LAYER_TT ? 0 : key,
				  .size = c.size,
				  .traffic = &ttmon_no_traffic,
				  .proc = p->pub.idx,
				  .method = c.method & 0xf };
	while (ttmon_method_pins(a.method) && layer != TTMON_LAYER_TT &&
	       (piece = ttmon_rec_overlapping(h, p, TTMON_LAYER_PIECE, key, ttmon_rec_limit(&a)))) {
		ttmon_recs_end(h, piece, ts_ns, end, 0);
		ttmon_calls_ghost(p, piece);
	}
	ttmon_ranges_del(&p->remains->layer[layer], key);
	if (layer == TTMON_LAYER_TT)
		ttmon_hmap_del(&h->tt_condensed, key);
	ttmon_rec_forget(p);
	h->nr_condensed--;
	p->pub.condensed--;
	give_place(h, id);
	if (!p->pub.condensed)
		p->remains->oldest_ns = UINT64_MAX;
	ttmon_count_ended(h, p, &a);
	if (ttmon_rec_pinned(&a))
		ttmon_pins_del(h, p, &a);
	s = &h->sites.v[c.site];
	s->live -= s->live != 0;
	s->live_bytes -= MIN(s->live_bytes, c.size);
	return true;
}

static void add_ghost(struct ttmon_remains *r, uint64_t addr, unsigned int method, bool superseded)
{
	if (r->nr_ghosts == TTMON_GHOSTS)
		memmove(r->ghosts, r->ghosts + 1, --r->nr_ghosts * sizeof(r->ghosts[0]));
	r->ghosts[r->nr_ghosts].addr = addr;
	r->ghosts[r->nr_ghosts].method = (uint8_t)method;
	r->ghosts[r->nr_ghosts++].superseded = superseded;
}

bool ttmon_condensed_free_ghost(struct ttmon_history *h, const struct ttmon_hproc *p, uint64_t addr,
				bool (*may_free)(unsigned int method, const struct ttmon_alloc *a), unsigned int method)
{
	struct ttmon_remains *r = p->remains;

	for (uint32_t i = r ? r->nr_ghosts : 0; i-- > 0;) {
		struct ttmon_alloc is = { .method = r->ghosts[i].method & 0xf };

		if (r->ghosts[i].addr != addr || !may_free(method, &is))
			continue;
		h->totals.superseded -= r->ghosts[i].superseded;
		r->nr_ghosts--;
		memmove(r->ghosts + i, r->ghosts + i + 1, (r->nr_ghosts - i) * sizeof(r->ghosts[0]));
		return true;
	}
	return false;
}

void ttmon_condensed_end_in(struct ttmon_history *h, struct ttmon_hproc *p, enum ttmon_layer layer, uint64_t lo,
			    uint64_t hi, uint64_t ts_ns, enum ttmon_end end)
{
	struct ttmon_ranges_pos pos;
	bool at = p->remains && lo < hi && ttmon_ranges_seek(&p->remains->layer[layer], lo, &pos);

	while (at && pos.start < hi) {
		uint64_t start = pos.start;

		if (ttmon_condensed_limit(h, &pos) <= lo) {
			at = ttmon_ranges_next(&p->remains->layer[layer], &pos);
			continue;
		}
		if (end == TTMON_END_SUPERSEDED)
			h->totals.superseded++;
		else if (end == TTMON_END_UNMAPPED)
			ttmon_count_finding(h, p, TTMON_FINDING_UNMAP_REGISTERED);
		add_ghost(p->remains, start, h->condensed[pos.val].method, end == TTMON_END_SUPERSEDED);
		ttmon_condensed_end(h, p, layer, start, ts_ns, end);
		/* The removal has moved the other entries. */
		at = ttmon_ranges_seek(&p->remains->layer[layer], lo, &pos);
	}
}

void ttmon_condensed_end_of_device(struct ttmon_history *h, struct ttmon_hproc *p, int32_t device, uint64_t ts_ns)
{
	for (unsigned int l = 0; p->remains && l <= TTMON_LAYER_REG; l++) {
		struct ttmon_ranges *r = &p->remains->layer[l];
		struct ttmon_ranges_pos pos;
		bool at = ttmon_ranges_seek(r, 0, &pos);

		while (at) {
			int16_t of = h->condensed[pos.val].device;
			uint64_t start = pos.start;

			at = ttmon_ranges_next(r, &pos);
			if (device != -1 && of != -1 && of != device)
				continue;
			ttmon_condensed_end(h, p, l, start, ts_ns, TTMON_END_RESET);
			/* Continue after it. */
			at = at && ttmon_ranges_floor(r, pos.start, &pos);
		}
	}
}

void ttmon_condensed_end_all(struct ttmon_history *h, struct ttmon_hproc *p, enum ttmon_layer layer, uint64_t ts_ns,
			     enum ttmon_end end)
{
	struct ttmon_ranges_pos pos;

	while (p->remains && ttmon_ranges_seek(&p->remains->layer[layer], 0, &pos))
		ttmon_condensed_end(h, p, layer, pos.start, ts_ns, end);
}
