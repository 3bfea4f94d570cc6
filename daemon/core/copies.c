// SPDX-License-Identifier: GPL-2.0-only
/*
 * copies.c: transfers. Which way each went, what memory its host side was, and each allocation's share of it. Part of the history
 * (hot thread, pure).
 *
 * A direction that the call gives is believed. Default (and every cuMemcpy) is found by looking both pointers up; a pointer in
 * nothing known is on the device when every host mapping is known, which takes a list and traced mmap. Without tracing a list
 * grows old at once, so there the known side decides: what is not on the device's side is on the host's, and the other way round.
 */
#include "core/heat.h"
#include "core/history_int.h"

enum side { SIDE_UNKNOWN, SIDE_HOST, SIDE_DEVICE };

struct end {
	uint64_t addr, span;	       /* bytes from the first to the last one, gaps and all */
	const struct ttmon_rect *rect; /* NULL: contiguous */
	bool array;
};

struct transfer {
	struct ttmon_hproc *p;
	uint64_t ts_ns, bytes;
	struct end dst, src;
	unsigned int rdir;
	uint16_t bits;
};

static enum side side_of(const struct ttmon_history *h, struct ttmon_hproc *p, const struct end *e)
{
	const struct ttmon_alloc *a;
	uint64_t limit;

	if (e->array)
		return SIDE_DEVICE;
	a = ttmon_views_at(h, p, e->addr, &limit);
	if (!a)
		return SIDE_UNKNOWN;
	return a->method == TTMON_METHOD_DEVICE ? SIDE_DEVICE : SIDE_HOST;
}

static unsigned int resolve_default(struct ttmon_history *h, const struct transfer *t)
{
	enum side src = side_of(h, t->p, &t->src);
	enum side dst = side_of(h, t->p, &t->dst);
	bool traced = h->has_clock && h->clock.options & TTMON_OPT_MMAP;

	if ((src == SIDE_UNKNOWN || dst == SIDE_UNKNOWN) && t->p->pub.maps_known) {
		if (traced) {
			src = src == SIDE_UNKNOWN ? SIDE_DEVICE : src;
			dst = dst == SIDE_UNKNOWN ? SIDE_DEVICE : dst;
		} else if (src != dst) {
			if (src == SIDE_UNKNOWN)
				src = dst == SIDE_DEVICE ? SIDE_HOST : SIDE_DEVICE;
			else
				dst = src == SIDE_DEVICE ? SIDE_HOST : SIDE_DEVICE;
		}
	}
	if (src == SIDE_UNKNOWN || dst == SIDE_UNKNOWN) {
		if (!t->p->pub.maps_known)
			ttmon_maplist_want(h, t->p, t->ts_ns);
		return TTMON_RDIR_UNKNOWN;
	}
	if (src == SIDE_HOST)
		return dst == SIDE_HOST ? TTMON_RDIR_H2H : TTMON_RDIR_H2D;
	return dst == SIDE_HOST ? TTMON_RDIR_D2H : TTMON_RDIR_D2D;
}

static bool host_side(unsigned int rdir, bool src)
{
	return rdir == TTMON_RDIR_H2H || rdir == (src ? TTMON_RDIR_H2D : TTMON_RDIR_D2H);
}

static enum ttmon_aev_kind kind_of(unsigned int rdir, bool src, const struct ttmon_alloc *a)
{
	switch (rdir) {
	case TTMON_RDIR_H2D:
		return TTMON_AEV_H2D;
	case TTMON_RDIR_D2H:
		return TTMON_AEV_D2H;
	case TTMON_RDIR_D2D:
		return src ? TTMON_AEV_D2D_SRC : TTMON_AEV_D2D_DST;
	case TTMON_RDIR_H2H:
		if (src)
			return TTMON_AEV_FROM_HOST;
		return ttmon_method_pinned(a->method) ? TTMON_AEV_TO_PINNED : TTMON_AEV_TO_HOST;
	default:
		return src ? TTMON_AEV_UNKNOWN_SRC : TTMON_AEV_UNKNOWN_DST;
	}
}

/* The made-up mapping for a piece of host memory that is in nothing known. */
static struct ttmon_alloc *make_up(struct ttmon_history *h, struct transfer *t, uint64_t at, uint64_t bytes, bool first)
{
	if (first) {
		t->p->pub.unmatched++;
		h->totals.unmatched++;
	}
	ttmon_maplist_want(h, t->p, t->ts_ns);
	return t->p->pub.exit_ns ? NULL : ttmon_maplist_provisional(h, t->p, at, ttmon_end_of(at, bytes), t->ts_ns);
}

/* One side of the transfer: each allocation that it touches gets its share. A region goes to the one that holds its beginning. */
static void book_side(struct ttmon_history *h, struct transfer *t, bool src)
{
	const struct end *e = src ? &t->src : &t->dst;
	uint64_t at = e->addr, end = ttmon_end_of(at, e->span);
	bool host = host_side(t->rdir, src), first = true;

	if (e->array)
		return;
	for (unsigned int n = 0; n < TTMON_PIECES_MAX && (first || at < end); n++) {
		uint64_t limit, len;
		struct ttmon_alloc *a = ttmon_views_at(h, t->p, at, &limit);

		len = MIN(limit, end) - at;
		if (!a && host && end > at)
			a = make_up(h, t, at, len, first);
		else if (a && host && first && a->bits & TTMON_AL_PROVISIONAL) {
			t->p->pub.unmatched++;
			h->totals.unmatched++;
		}
		if (a) {
			struct ttmon_touch touch = {
				.ts_ns = t->ts_ns,
				.bytes = e->rect ? t->bytes : len,
				.offset = at - a->addr,
				.rdir = t->rdir,
				.kind = kind_of(t->rdir, src, a),
				.mem = ttmon_rec_mem(a),
				.bits = t->bits,
				.rect = e->rect,
			};

			if (first && at + len < end)
				touch.bits |= TTMON_AB_STRADDLE;
			if (touch.mem == TTMON_MEM_PAGEABLE && (t->rdir == TTMON_RDIR_H2D || t->rdir == TTMON_RDIR_D2H))
				touch.bits |= TTMON_AB_STAGED;
			ttmon_rec_transfer(h, a, &touch);
			/* Only these are ever moved, see ttmon_copies_rebook(). */
			if (host && first && a->bits & TTMON_AL_PROVISIONAL &&
			    (t->rdir == TTMON_RDIR_H2D || t->rdir == TTMON_RDIR_D2H))
				ttmon_rec_unsettle(h, a, t->rdir, t->bytes);
		}
		if (e->rect && a)
			return;
		at += len;
		first = false;
	}
}

/* Memory of the host side by its first byte; unknown where neither or both ends are on the device. */
static unsigned int mem_of(const struct ttmon_history *h, const struct transfer *t)
{
	const struct ttmon_alloc *a;
	uint64_t limit;

	if (t->rdir == TTMON_RDIR_D2D || t->rdir == TTMON_RDIR_UNKNOWN)
		return TTMON_MEM_UNKNOWN;
	a = ttmon_views_at(h, t->p, t->rdir == TTMON_RDIR_H2D ? t->src.addr : t->dst.addr, &limit);
	return a ? ttmon_rec_mem(a) : TTMON_MEM_UNKNOWN;
}

static void book(struct ttmon_history *h, struct transfer *t)
{
	unsigned int mem = mem_of(h, t);
	struct ttmon_xfer *x = &t->p->pub.xfer[t->rdir][mem];

	x->copies++;
	x->bytes += t->bytes;
	x = &h->totals.xfer[t->rdir][mem];
	x->copies++;
	x->bytes += t->bytes;
	book_side(h, t, true);
	book_side(h, t, false);
}

/* Failed and captured calls move nothing. False: done with it. */
static bool counts(struct ttmon_history *h, struct ttmon_hproc *p, int32_t err, uint16_t fn, uint16_t bits, uint8_t dir)
{
	if (bits & TTMON_B_TRUNCATED)
		ttmon_count_finding(h, p, TTMON_FINDING_TRUNCATED_BATCH);
	if (err) {
		ttmon_procs_error(h, p, fn, err);
		return false;
	}
	if (dir >= TTMON_DIR_INVALID) {
		ttmon_count_failed(h, p, fn, 0);
		return false;
	}
	if (bits & TTMON_B_CAPTURED) {
		p->pub.captured++;
		h->totals.captured++;
		return false;
	}
	return true;
}

static inline struct end end_at(uint64_t addr, uint64_t span, const struct ttmon_rect *rect, bool array)
{
	return (struct end){ .addr = addr, .span = span, .rect = rect, .array = array };
}

void ttmon_copies_copy(struct ttmon_history *h, const struct ttmon_ev_copy *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	struct transfer t;

	if (!p || !counts(h, p, ev->err, ev->fn, ev->bits, ev->dir))
		return;
	/* Member by member: what an initializer leaves out would be cleared by a string instruction, the dearest of all here. */
	t.p = p;
	t.ts_ns = ev->h.ts_ns;
	t.bytes = ev->bytes;
	t.bits = ev->bits;
	t.dst = end_at(ev->dst, ev->bytes, NULL, ev->bits & TTMON_B_DST_ARRAY);
	t.src = end_at(ev->src, ev->bytes, NULL, ev->bits & TTMON_B_SRC_ARRAY);
	t.rdir = ev->dir == TTMON_DIR_DEFAULT ? resolve_default(h, &t) : ev->dir;
	book(h, &t);
}

static uint64_t span_of(const struct ttmon_rect *r)
{
	uint64_t span = r->width;

	if (!r->rows || !r->slices || !r->width)
		return 0;
	span = ttmon_end_of(span, ttmon_mul_sat(r->rows - 1, r->pitch));
	return ttmon_end_of(span, ttmon_mul_sat(r->slices - 1, r->slice));
}

void ttmon_copies_rect(struct ttmon_history *h, const struct ttmon_ev_copy_rect *ev)
{
	const struct ttmon_rect dst = { ev->width, ev->rows, ev->slices, ev->dpitch, ev->dslice };
	const struct ttmon_rect src = { ev->width, ev->rows, ev->slices, ev->spitch, ev->sslice };
	struct transfer t = {
		.p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns),
		.ts_ns = ev->h.ts_ns,
		.bytes = ttmon_mul_sat(ttmon_mul_sat(ev->width, ev->rows), ev->slices),
		.dst = end_at(ev->dst, span_of(&dst), &dst, ev->bits & TTMON_B_DST_ARRAY),
		.src = end_at(ev->src, span_of(&src), &src, ev->bits & TTMON_B_SRC_ARRAY),
		.bits = ev->bits,
	};

	if (!t.p || !counts(h, t.p, ev->err, ev->fn, ev->bits, ev->dir))
		return;
	t.rdir = ev->dir == TTMON_DIR_DEFAULT ? resolve_default(h, &t) : ev->dir;
	book(h, &t);
}

static void move_xfer(struct ttmon_xfer *row, const struct ttmon_xfer *x)
{
	struct ttmon_xfer *from = &row[TTMON_MEM_UNKNOWN], *to = &row[TTMON_MEM_PAGEABLE];
	uint64_t copies = MIN(x->copies, from->copies), bytes = MIN(x->bytes, from->bytes);

	from->copies -= copies;
	from->bytes -= bytes;
	to->copies += copies;
	to->bytes += bytes;
}

void ttmon_copies_rebook(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_alloc *a)
{
	static const enum ttmon_rdir dirs[] = { TTMON_RDIR_H2D, TTMON_RDIR_D2H };

	for (unsigned int i = 0; i < ARRAY_SIZE(dirs); i++) {
		struct ttmon_site *s = &h->sites.v[a->site];
		enum ttmon_rdir d = dirs[i];
		struct ttmon_xfer booked = ttmon_rec_settle(h, a, d);
		struct ttmon_xfer share = { a->traffic->copies[d], a->traffic->bytes[d] };

		move_xfer(p->pub.xfer[d], &booked);
		move_xfer(h->totals.xfer[d], &booked);
		p->pub.unmatched -= booked.copies;
		h->totals.unmatched -= booked.copies;
		/* Sites have what each piece of memory took part in. */
		if (!(a->bits & TTMON_AL_SITE_QUEUED))
			move_xfer(d == TTMON_RDIR_H2D ? s->h2d : s->d2h, &share);
	}
}
