// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpu_use.c: accesses of GPU kernels to memory, from recorded accesses (--memtrace). Part of the
 * history (hot thread, pure).
 *
 * The fact comes some milliseconds after the launch. The allocation that held the memory then may have
 * ended since, so each process remembers the allocations that ended last.
 */
#include "daemon/core/history/history_int.h"

#define USED_MAX  4096 /* pieces to which one fact is attributed, at most */
#define USED_PAGE 4096 /* memory between two allocations on one page belongs to uses of both */

void ttmon_gpu_use_ended(struct ttmon_history *h, struct ttmon_alloc *a)
{
	struct ttmon_hproc *p = h->procs[a->proc];

	if (ttmon_layer_of(a->method) > TTMON_LAYER_REG)
		return;
	if (!p->ended)
		p->ended = calloc(TTMON_ENDED, sizeof(*p->ended));
	if (!p->ended) {
		ttmon_history_no_memory(h);
		return;
	}
	p->ended[p->nr_ended++ % TTMON_ENDED] = (struct ttmon_ended){ ttmon_alloc_seq(a), a->free_ns };
}

/* A part of a range that a kernel used. */
struct used {
	struct ttmon_alloc *a; /* NULL: none */
	uint64_t from, to;
};

/*
 * The first part of [lo, hi) that any allocation held at that time that has ended since; of several,
 * the one that ended last.
 */
static struct used was_there(const struct ttmon_history *h, const struct ttmon_hproc *p, unsigned int layer,
			     uint64_t lo, uint64_t hi, uint64_t ts_ns)
{
	uint64_t n = MIN(p->nr_ended, (uint64_t)TTMON_ENDED);
	struct used first = { NULL, hi, hi };

	for (uint64_t i = p->nr_ended; i > p->nr_ended - n; i--) {
		const struct ttmon_ended *e = &p->ended[(i - 1) % TTMON_ENDED];
		struct ttmon_alloc *a = e->free_ns >= ts_ns ? ttmon_rec_by_seq(h, e->seq) : NULL;

		if (a && ttmon_layer_of(a->method) == layer && a->alloc_ns <= ts_ns && a->free_ns >= ts_ns &&
		    MAX(a->addr, lo) < first.from && ttmon_rec_limit(a) > lo)
			first = (struct used){ a, MAX(a->addr, lo), MIN(ttmon_rec_limit(a), hi) };
	}
	return first;
}

/*
 * The fact comes some milliseconds after the launch: what is there now may have been made since. Then
 * the use is of the allocation that held the address at that time; if there was none, the kernel was
 * still running when the memory was made. Returns the first part of [lo, hi) in this layer.
 */
static struct used first_used(const struct ttmon_history *h, const struct ttmon_hproc *p, unsigned int layer,
			      uint64_t lo, uint64_t hi, uint64_t ts_ns)
{
	struct ttmon_alloc *a = ttmon_rec_overlapping(h, p, layer, lo, hi);
	struct used is = { a, hi, hi }, was = { NULL, hi, hi };

	if (a) {
		is.from = MAX(a->addr, lo);
		is.to = MIN(ttmon_rec_limit(a), hi);
	}
	if (!a || a->alloc_ns > ts_ns)
		was = was_there(h, p, layer, lo, is.to, ts_ns);
	else if (is.from > lo)
		was = was_there(h, p, layer, lo, is.from, ts_ns);
	if (was.a && was.from <= is.from)
		return was;
	if (was.a)
		is.to = was.from;
	return is;
}

/*
 * Each part is attributed to the allocation that held it. A fact of which a page or more, or all,
 * belonged to no allocation is counted.
 */
void ttmon_history_on_gpu_use(struct ttmon_history *h, const struct ttmon_ev_gpu_use *ev)
{
	struct ttmon_hproc *p = ttmon_procs_find(h, ev->h.tgid);
	uint64_t at = ev->addr, end = ttmon_end_of(ev->addr, ev->size), unknown = 0;
	unsigned int n;

	/*
	 * The channel may be read long after the end of the process, or the process is not traced: neither has
	 * memory here, and no process is made.
	 */
	if (!p || (p->pub.exit_ns && ev->h.ts_ns > p->pub.exit_ns))
		return;
	/* The time may come from the program: it does not change the life of the process. */
	p->pub.changes++;
	for (n = 0; n < USED_MAX && at < end; n++) {
		struct used first = { NULL, end, end };

		for (unsigned int l = 0; l <= TTMON_LAYER_REG && first.from > at; l++) {
			struct used u = first_used(h, p, l, at, first.from, ev->h.ts_ns);

			first = u.a ? u : first;
		}
		unknown = MAX(unknown, first.from - at);
		if (first.a)
			ttmon_rec_gpu_use(h, first.a, ev, first.to - first.from);
		at = first.to;
	}
	h->totals.gpu_use_gone += unknown >= USED_PAGE || unknown == end - ev->addr;
	h->totals.incomplete |= at < end;
}
