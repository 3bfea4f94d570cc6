// SPDX-License-Identifier: GPL-2.0-only
/*
 * ttalloc.c: Tenstorrent buffers as allocations of the history. Part of the history (hot thread, pure).
 *
 * core/tt.c knows what a buffer is and when it ends; here it gets its line. Device addresses repeat across chips, banks and kinds of
 * memory, so in the index such a record is known by its number; nobody looks it up by address.
 */
#include "core/history_int.h"

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
	ttmon_siteq_alloc(h, a, TTMON_STACK_NONE);
	if (p->pub.exit_ns)
		ttmon_rec_end(h, a, p->pub.exit_ns, TTMON_END_EXIT, 0);
	return ttmon_alloc_seq(a);
}

/* Its record, unless it has been evicted or has ended with its process. */
static struct ttmon_alloc *live(const struct ttmon_history *h, uint64_t seq)
{
	struct ttmon_alloc *a = ttmon_rec_by_seq(h, seq);

	return a && ttmon_rec_live(a) && ttmon_layer_of(a->method) == TTMON_LAYER_TT ? a : NULL;
}

void ttmon_history_tt_free(struct ttmon_history *h, uint64_t seq, uint64_t ts_ns)
{
	struct ttmon_alloc *a = live(h, seq);

	if (!a)
		return;
	h->procs[a->proc]->pub.frees++;
	h->totals.frees++;
	ttmon_rec_end(h, a, ts_ns, TTMON_END_FREE, 0);
}

void ttmon_history_tt_undo(struct ttmon_history *h, uint64_t seq)
{
	struct ttmon_alloc *a = live(h, seq);
	struct ttmon_hproc *p;

	if (!a)
		return;
	p = h->procs[a->proc];
	p->pub.allocs -= p->pub.allocs != 0;
	h->totals.allocs -= h->totals.allocs != 0;
	ttmon_count_failed(h, p, a->fn, 0);
	ttmon_rec_end(h, a, a->alloc_ns, TTMON_END_FREE, 0);
}
