// SPDX-License-Identifier: GPL-2.0-only
/*
 * counts.c: the history's counters that only grow: by method, failures, findings, durations of pin
 * calls. Part of the history (hot thread, pure). Their size is fixed, so that counting needs no memory
 * and cannot fail.
 */
#include "daemon/core/history/history_int.h"
#include "lib/base/search.h"

const uint64_t ttmon_pin_bounds_ns[TTMON_PIN_BUCKETS] = {
	1000,
	10000,
	50000,
	100000,
	250000,
	NSEC_PER_MS,
	2500000,
	10 * NSEC_PER_MS,
	25 * NSEC_PER_MS,
	100 * NSEC_PER_MS,
	250 * NSEC_PER_MS,
	NSEC_PER_SEC,
	10 * NSEC_PER_SEC,
	100 * NSEC_PER_SEC,
};

static uint64_t pages_of(const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	return (ttmon_page_up(h, ttmon_rec_limit(a)) - ttmon_page_down(h, a->addr)) / h->page_size;
}

void ttmon_count_made(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_rec_init *in)
{
	p->pub.by_method[in->method].allocs++;
	p->pub.by_method[in->method].bytes += in->size;
	h->totals.method[in->method].allocs++;
	h->totals.method[in->method].bytes += in->size;
}

void ttmon_count_live(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a)
{
	struct ttmon_method_totals *t = &h->totals.method[a->method];

	p->pub.live++;
	p->pub.by_method[a->method].live++;
	p->pub.by_method[a->method].live_bytes += a->size;
	h->totals.live++;
	t->live++;
	t->live_bytes += a->size;
	t->peak_bytes = MAX(t->peak_bytes, t->live_bytes);
	if (!ttmon_rec_pinned(a))
		return;
	t->pages += pages_of(h, a);
	t->live_pages += pages_of(h, a);
	t->peak_pages = MAX(t->peak_pages, t->live_pages);
}

void ttmon_count_ended(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a)
{
	p->pub.by_method[a->method].ends++;
	h->totals.method[a->method].ends++;
	ttmon_count_left(h, p, a);
}

void ttmon_count_left(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a)
{
	struct ttmon_method_totals *t = &h->totals.method[a->method];

	p->pub.changes++;
	p->pub.live--;
	p->pub.by_method[a->method].live--;
	p->pub.by_method[a->method].live_bytes -= a->size;
	h->totals.live--;
	t->live--;
	t->live_bytes -= a->size;
	if (ttmon_rec_pinned(a))
		t->live_pages -= pages_of(h, a);
}

void ttmon_count_finding(struct ttmon_history *h, struct ttmon_hproc *p, enum ttmon_finding finding)
{
	p->pub.findings[finding]++;
	h->totals.findings[finding]++;
}

void ttmon_count_failed(struct ttmon_history *h, struct ttmon_hproc *p, uint16_t fn, int32_t err)
{
	struct ttmon_failure *v = h->failures + 1;
	uint32_t lo = 0;

	p->pub.failed++;
	h->totals.failed++;
	lo = TTMON_SEARCH(lo, h->nr_failures, i, v[i].fn < fn || (v[i].fn == fn && v[i].err < err));
	if (lo < h->nr_failures && v[lo].fn == fn && v[lo].err == err) {
		v[lo].count++;
		return;
	}
	if (h->nr_failures == TTMON_FAILURES_MAX || fn == 0) {
		h->failures[0].count++;
		return;
	}
	memmove(v + lo + 1, v + lo, (h->nr_failures - lo) * sizeof(*v));
	v[lo] = (struct ttmon_failure){ fn, err, 1 };
	h->nr_failures++;
}

void ttmon_count_pin_time(struct ttmon_history *h, unsigned int method, bool unpin, uint64_t ns)
{
	struct ttmon_pin_times *t = &h->pin_times[method][unpin];
	unsigned int b = 0;

	if (!ttmon_method_pins(method))
		return;
	if (ns == UINT64_MAX) {
		t->unobserved++;
		return;
	}
	while (b < TTMON_PIN_BUCKETS && ns > ttmon_pin_bounds_ns[b])
		b++;
	t->count[b]++;
	t->sum_ns += ns;
}
