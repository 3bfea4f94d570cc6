// SPDX-License-Identifier: GPL-2.0-only
/*
 * pins.c: how much memory is pinned, per process and on the host, now and at the peak. Part of the
 * history (hot thread, pure).
 *
 * A page is counted once per process however many registrations cover it: a new registration adds
 * those of its pages that no other live pinned range touches, and its end subtracts the same way. The
 * host's figures are the sums over processes.
 */
#include "daemon/core/history/history_int.h"

/* Steps through the live pinned ranges of a layer in order of their start. */
struct walk {
	const struct ttmon_ranges *r;
	struct ttmon_ranges_pos pos;
	bool condensed; /* walks those without a record */
	bool at;
};

static uint64_t limit_of(const struct ttmon_history *h, const struct walk *w)
{
	return w->condensed ? ttmon_condensed_limit(h, &w->pos) : ttmon_rec_limit(ttmon_rec_at(h, w->pos.val));
}

/* Steps over what is not pinned, and what ends before lo. */
static void settle(const struct ttmon_history *h, struct walk *w, const struct ttmon_alloc *self, uint64_t lo,
		   uint64_t hi)
{
	while (w->at && w->pos.start < hi) {
		const struct ttmon_alloc *a;

		if (w->pos.end <= lo) {
			w->at = ttmon_ranges_next(w->r, &w->pos);
			continue;
		}
		a = w->condensed ? NULL : ttmon_rec_at(h, w->pos.val);
		if (a ? a != self && ttmon_method_pinned(a->method) : ttmon_condensed_pins(h, &w->pos))
			return;
		w->at = ttmon_ranges_next(w->r, &w->pos);
	}
}

/* Pages of a that no other live pinned range of the process touches. */
static uint64_t own_pages(const struct ttmon_history *h, const struct ttmon_hproc *p, const struct ttmon_alloc *a)
{
	uint64_t lo = ttmon_page_down(h, a->addr), hi = ttmon_page_up(h, ttmon_rec_limit(a)), covered = lo, own = 0;
	struct walk w[4] = { { .r = &p->layer[TTMON_LAYER_DEV] },
			     { .r = &p->layer[TTMON_LAYER_REG] },
			     { .r = ttmon_condensed_layer(p, TTMON_LAYER_DEV), .condensed = true },
			     { .r = ttmon_condensed_layer(p, TTMON_LAYER_REG), .condensed = true } };

	for (unsigned int i = 0; i < ARRAY_SIZE(w); i++) {
		w[i].at = w[i].r && ttmon_ranges_seek(w[i].r, lo, &w[i].pos);
		settle(h, &w[i], a, lo, hi);
	}
	for (;;) {
		struct walk *next = &w[0];
		uint64_t start, end;

		for (unsigned int i = 1; i < ARRAY_SIZE(w); i++)
			if (w[i].at && (!next->at || w[i].pos.start < next->pos.start))
				next = &w[i];
		if (!next->at || next->pos.start >= hi)
			break;
		start = ttmon_page_down(h, next->pos.start);
		end = ttmon_page_up(h, limit_of(h, next));
		if (start > covered)
			own += start - covered;
		covered = MAX(covered, MIN(end, hi));
		next->at = ttmon_ranges_next(next->r, &next->pos);
		settle(h, next, a, lo, hi);
	}
	if (hi > covered)
		own += hi - covered;
	return own / h->page_size;
}

static void tell(const struct ttmon_history *h, const struct ttmon_hproc *p)
{
	if (h->cfg.pinned)
		h->cfg.pinned(h->cfg.ctx, p->pub.tgid, p->pub.pinned_bytes);
}

void ttmon_pins_add(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a)
{
	struct ttmon_history_totals *t = &h->totals;
	uint64_t pages = own_pages(h, p, a);

	p->pub.pins++;
	p->pub.pinned_pages += pages;
	p->pub.pinned_bytes += a->size;
	if (p->pub.pinned_pages > p->pub.pinned_peak_pages) {
		p->pub.pinned_peak_pages = p->pub.pinned_pages;
		p->pub.peak_ns = a->alloc_ns;
	}
	tell(h, p);
	p->pub.pinned_peak_bytes = MAX(p->pub.pinned_peak_bytes, p->pub.pinned_bytes);
	t->pins++;
	t->pinned_pages += pages;
	t->pinned_bytes += a->size;
	if (t->pinned_pages > t->pinned_peak_pages) {
		t->pinned_peak_pages = t->pinned_pages;
		t->peak_ns = a->alloc_ns;
	}
	t->pinned_peak_bytes = MAX(t->pinned_peak_bytes, t->pinned_bytes);
}

void ttmon_pins_del(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a)
{
	uint64_t pages = MIN(own_pages(h, p, a), p->pub.pinned_pages);

	p->pub.pinned_pages -= pages;
	p->pub.pinned_bytes -= a->size;
	tell(h, p);
	h->totals.pinned_pages -= pages;
	h->totals.pinned_bytes -= a->size;
}
