// SPDX-License-Identifier: GPL-2.0-only
/*
 * ttmem.c: memory of Tenstorrent in the history: buffers of devices, and host memory that tt-kmd holds
 * for a process. Part of the history (hot thread, pure).
 *
 * core/tt/tt.c follows buffers; here each gets its record. Device addresses repeat across chips, banks
 * and kinds of memory, so the index has such a record under its number; it is never looked up by
 * address.
 *
 * PIN_PAGES is a registration: the program's own memory, pinned. The same range may be pinned for
 * several devices, or through several open files of one; it is one record that lives until the last of
 * them releases it. A DMA buffer is the driver's memory, without an address and without a call that
 * frees it. Both belong to an open file and end with it at the latest. Where the end of a file is not
 * seen (--tt-ioctl), they end with the program; after an exec too, as tt-kmd's users open with
 * O_CLOEXEC. The device reads this memory in place, so it is never advised to be unpinned.
 */
#include "daemon/core/history/history_int.h"

#define FN_PIN	 370 /* numbers as in tt_fns.h */
#define FN_DMA	 371
#define FN_UNPIN 372

/*
 * Contents of p->tt_pins. An open device (owner) has a list of the records that it holds: their number
 * (COUNT), the i-th (NTH), and the place of a record in it (PLACE). A record has the number of open
 * devices that hold it (HELD). A condensed one has its address, by number (ADDR).
 */
enum { COUNT = 1, NTH, PLACE, HELD, ADDR };

static uint64_t pin_key(uint64_t what, uint64_t owner, uint64_t n)
{
	return ttmon_mix64(ttmon_mix64(owner << 3 | what) + n);
}

/* Where the open file is unknown, all files of a device count as one. */
static uint64_t owner_of(const struct ttmon_ev_tt_pin *ev)
{
	return ev->file ? ev->file : 1ULL << 32 | ev->ordinal;
}

static uint64_t number_at(const struct ttmon_hproc *p, uint64_t key)
{
	uint64_t n = ttmon_hmap_get(&p->tt_pins, key);

	return n == TTMON_HMAP_NONE ? 0 : n;
}

static void put(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t key, uint64_t val)
{
	if (ttmon_hmap_put(&p->tt_pins, key, val) < 0)
		ttmon_history_no_memory(h);
}

static void put_number(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t key, uint64_t n)
{
	if (n)
		put(h, p, key, n);
	else
		ttmon_hmap_del(&p->tt_pins, key);
}

static void hold(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t owner, uint64_t seq)
{
	uint64_t n = number_at(p, pin_key(COUNT, owner, 0));

	/* It is held already: an end was missed, since the driver refuses the same range twice (EEXIST). */
	if (ttmon_hmap_get(&p->tt_pins, pin_key(PLACE, owner, seq)) != TTMON_HMAP_NONE)
		return;
	if (p->tt_pins.n >= TTMON_TT_PINS_MAX) {
		h->totals.incomplete = true;
		return;
	}
	put(h, p, pin_key(NTH, owner, n), seq);
	put(h, p, pin_key(PLACE, owner, seq), n);
	put(h, p, pin_key(COUNT, owner, 0), n + 1);
	put(h, p, pin_key(HELD, 0, seq), number_at(p, pin_key(HELD, 0, seq)) + 1);
}

/* False: the owner did not hold it. The last of its list takes the place. */
static bool let_go(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t owner, uint64_t seq)
{
	uint64_t i = ttmon_hmap_del(&p->tt_pins, pin_key(PLACE, owner, seq)), n, last;

	if (i == TTMON_HMAP_NONE)
		return false;
	n = number_at(p, pin_key(COUNT, owner, 0));
	last = n ? ttmon_hmap_del(&p->tt_pins, pin_key(NTH, owner, n - 1)) : TTMON_HMAP_NONE;
	if (last != TTMON_HMAP_NONE && last != seq) {
		put(h, p, pin_key(NTH, owner, i), last);
		put(h, p, pin_key(PLACE, owner, last), i);
	}
	put_number(h, p, pin_key(COUNT, owner, 0), n ? n - 1 : 0);
	n = number_at(p, pin_key(HELD, 0, seq));
	put_number(h, p, pin_key(HELD, 0, seq), n ? n - 1 : 0);
	return true;
}

static void end_pin(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_alloc *a,
		    const struct ttmon_ev_tt_pin *ev)
{
	p->pub.frees++;
	h->totals.frees++;
	/* The duration of a file's close is not the duration of each release. */
	ttmon_count_pin_time(h, a->method, true,
			     ev->op == TTMON_TT_UNPIN && ev->h.ts_ns > ev->entry_ns ? ev->h.ts_ns - ev->entry_ns
										    : UINT64_MAX);
	ttmon_recs_end(h, a, ev->entry_ns, TTMON_END_FREE, ev->h.ts_ns > ev->entry_ns ? ev->h.ts_ns - ev->entry_ns : 0);
}

static struct ttmon_alloc *new_record(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_tt_pin *ev)
{
	bool dma = ev->op == TTMON_TT_DMA_BUF;
	struct ttmon_rec_init in = {
		.addr = dma ? 0 : ev->addr,
		.size = ev->size,
		.ts_ns = ev->h.ts_ns,
		.pin_ns = ev->h.ts_ns > ev->entry_ns ? ev->h.ts_ns - ev->entry_ns : 0,
		.api_flags = ev->flags,
		.fn = dma ? FN_DMA : FN_PIN,
		.device = (int16_t)ev->ordinal,
		.method = dma ? TTMON_METHOD_TT_DMA : TTMON_METHOD_REGISTERED,
		.bits = TTMON_AL_DEVICE_PTR,
	};
	struct ttmon_alloc *a = ttmon_rec_new(h, p, &in);

	ttmon_count_pin_time(h, in.method, false, in.pin_ns);
	if (!a)
		return NULL;
	p->pub.allocs++;
	h->totals.allocs++;
	ttmon_siteq_alloc(h, a, &(struct ttmon_taken){ .stack = TTMON_STACK_NONE });
	if (p->pub.exit_ns)
		ttmon_recs_end(h, a, p->pub.exit_ns, TTMON_END_EXIT, 0);
	return a;
}

void ttmon_ttpins_condensed(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a)
{
	if (a->fn == FN_PIN)
		put(h, p, pin_key(ADDR, 0, ttmon_alloc_seq(a)), a->addr);
}

/* The last owner has released memory that has no record. */
static void end_condensed(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t seq,
			  const struct ttmon_ev_tt_pin *ev)
{
	uint64_t addr = ttmon_hmap_del(&p->tt_pins, pin_key(ADDR, 0, seq));
	const struct ttmon_condensed *c =
		addr == TTMON_HMAP_NONE ? NULL : ttmon_condensed_get(h, p, TTMON_LAYER_REG, addr);

	/* It ended in another way, and another one is there now. */
	if (addr != TTMON_HMAP_NONE && (!c || c->seq != seq))
		return;
	if (addr != TTMON_HMAP_NONE ? ttmon_condensed_end(h, p, TTMON_LAYER_REG, addr, ev->entry_ns, TTMON_END_FREE)
				    : ttmon_condensed_end(h, p, TTMON_LAYER_TT, seq, ev->entry_ns, TTMON_END_FREE)) {
		p->pub.frees++;
		h->totals.frees++;
	}
}

/* Number of the condensed allocation of this range; UINT64_MAX: there is none. */
static uint64_t condensed_range(const struct ttmon_history *h, const struct ttmon_hproc *p,
				const struct ttmon_ev_tt_pin *ev)
{
	const struct ttmon_condensed *c = ttmon_condensed_get(h, p, TTMON_LAYER_REG, ev->addr);

	return c && c->size == ev->size ? c->seq : UINT64_MAX;
}

/* The record of this range, if it is pinned. */
static struct ttmon_alloc *same_range(const struct ttmon_history *h, const struct ttmon_hproc *p,
				      const struct ttmon_ev_tt_pin *ev)
{
	struct ttmon_alloc *a;
	uint32_t id;

	if (!ttmon_ranges_get(&p->layer[TTMON_LAYER_REG], ev->addr, &id))
		return NULL;
	a = ttmon_rec_at(h, id);
	return a->fn == FN_PIN && a->size == ev->size ? a : NULL;
}

/*
 * The driver allows two sizes at one address; they are not kept apart: the later one stands for both.
 */
static void pin(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_tt_pin *ev)
{
	struct ttmon_alloc *a = same_range(h, p, ev);
	uint64_t seq = condensed_range(h, p, ev);
	uint32_t id;

	if (seq != UINT64_MAX) {
		hold(h, p, owner_of(ev), seq);
		return;
	}
	h->totals.superseded += ttmon_condensed_end(h, p, TTMON_LAYER_REG, ev->addr, ev->h.ts_ns, TTMON_END_SUPERSEDED);
	if (!a && ttmon_ranges_get(&p->layer[TTMON_LAYER_REG], ev->addr, &id)) {
		ttmon_recs_end(h, ttmon_rec_at(h, id), ev->h.ts_ns, TTMON_END_SUPERSEDED, 0);
		h->totals.superseded++;
	}
	if (!a)
		a = new_record(h, p, ev);
	if (a && ttmon_rec_live(a))
		hold(h, p, owner_of(ev), ttmon_alloc_seq(a));
}

static void unpin(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_tt_pin *ev)
{
	struct ttmon_alloc *a = same_range(h, p, ev);
	uint64_t seq = condensed_range(h, p, ev);

	if (!a && seq != UINT64_MAX && let_go(h, p, owner_of(ev), seq)) {
		if (!number_at(p, pin_key(HELD, 0, seq)))
			end_condensed(h, p, seq, ev);
	} else if (!a || !let_go(h, p, owner_of(ev), ttmon_alloc_seq(a))) {
		p->pub.unknown_frees++;
		h->totals.unknown_frees++;
	} else if (!number_at(p, pin_key(HELD, 0, ttmon_alloc_seq(a)))) {
		end_pin(h, p, a, ev);
	}
}

static void dma_buf(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_tt_pin *ev)
{
	struct ttmon_alloc *a = new_record(h, p, ev);

	if (a && ttmon_rec_live(a))
		hold(h, p, owner_of(ev), ttmon_alloc_seq(a));
}

static void closed(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_tt_pin *ev)
{
	uint64_t owner = owner_of(ev), n = number_at(p, pin_key(COUNT, owner, 0)), seq;
	struct ttmon_alloc *a;

	while (n-- > 0) {
		seq = ttmon_hmap_get(&p->tt_pins, pin_key(NTH, owner, n));
		if (seq == TTMON_HMAP_NONE || !let_go(h, p, owner, seq))
			continue;
		a = ttmon_rec_by_seq(h, seq);
		if (a && ttmon_rec_live(a) && !number_at(p, pin_key(HELD, 0, seq)))
			end_pin(h, p, a, ev);
		else if (!a && !number_at(p, pin_key(HELD, 0, seq)))
			end_condensed(h, p, seq, ev);
	}
}

void ttmon_history_on_tt_pin(struct ttmon_history *h, const struct ttmon_ev_tt_pin *ev)
{
	static const uint16_t fns[TTMON_TT_PIN_OP_MAX] = { FN_PIN, FN_UNPIN, FN_DMA };
	struct ttmon_hproc *p;

	/* An unknown process has nothing to end. */
	if (ev->op == TTMON_TT_CLOSE) {
		p = ttmon_procs_find(h, ev->h.tgid);
		if (p && !p->pub.exit_ns)
			closed(h, p, ev);
		return;
	}
	p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	if (!p)
		return;
	if (ev->err)
		ttmon_procs_error(h, p, fns[ev->op], ev->err);
	else if (ev->op == TTMON_TT_PIN)
		pin(h, p, ev);
	else if (ev->op == TTMON_TT_UNPIN)
		unpin(h, p, ev);
	else
		dma_buf(h, p, ev);
}

uint64_t ttmon_history_tt_alloc(struct ttmon_history *h, uint32_t tgid, const struct ttmon_tt_alloc *in)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, tgid, in->ts_ns);
	struct ttmon_rec_init init = {
		.addr = in->addr,
		.size = in->bytes,
		.ts_ns = in->ts_ns,
		.fn = in->fn,
		.method = (uint8_t)in->method,
		.device = -1,
	};
	struct ttmon_alloc *a;

	if (!p)
		return UINT64_MAX;
	a = ttmon_rec_new(h, p, &init);
	if (!a)
		return UINT64_MAX;
	p->pub.allocs++;
	h->totals.allocs++;
	ttmon_siteq_alloc(h, a, &(struct ttmon_taken){ .stack = TTMON_STACK_NONE });
	if (p->pub.exit_ns)
		ttmon_recs_end(h, a, p->pub.exit_ns, TTMON_END_EXIT, 0);
	return ttmon_alloc_seq(a);
}

/* Its record, unless it was evicted or ended with its process. */
static struct ttmon_alloc *live(const struct ttmon_history *h, uint64_t seq)
{
	struct ttmon_alloc *a = ttmon_rec_by_seq(h, seq);

	return a && ttmon_rec_live(a) && ttmon_layer_of(a->method) == TTMON_LAYER_TT ? a : NULL;
}

/* The process of a buffer without a record. */
static struct ttmon_hproc *condensed_of(const struct ttmon_history *h, uint64_t seq)
{
	uint64_t proc = ttmon_hmap_get(&h->tt_condensed, seq);

	return proc == TTMON_HMAP_NONE ? NULL : h->procs[proc];
}

void ttmon_history_tt_free(struct ttmon_history *h, uint64_t seq, uint64_t ts_ns)
{
	struct ttmon_alloc *a = live(h, seq);
	struct ttmon_hproc *p = a ? NULL : condensed_of(h, seq);

	if (p && ttmon_condensed_end(h, p, TTMON_LAYER_TT, seq, ts_ns, TTMON_END_FREE)) {
		p->pub.frees++;
		h->totals.frees++;
	}
	if (!a)
		return;
	h->procs[a->proc]->pub.frees++;
	h->totals.frees++;
	ttmon_recs_end(h, a, ts_ns, TTMON_END_FREE, 0);
}

void ttmon_history_tt_undo(struct ttmon_history *h, uint64_t seq)
{
	struct ttmon_alloc *a = live(h, seq);
	struct ttmon_hproc *p = a ? h->procs[a->proc] : condensed_of(h, seq);

	if (!p)
		return;
	p->pub.allocs -= p->pub.allocs != 0;
	h->totals.allocs -= h->totals.allocs != 0;
	/* Without the record the function is unknown. */
	ttmon_count_failed(h, p, a ? a->fn : 0, 0);
	if (a)
		ttmon_recs_end(h, a, a->alloc_ns, TTMON_END_FREE, 0);
	else
		ttmon_condensed_end(h, p, TTMON_LAYER_TT, seq, h->now_ns, TTMON_END_FREE);
}
