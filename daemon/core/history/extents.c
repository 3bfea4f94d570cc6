// SPDX-License-Identifier: GPL-2.0-only
/*
 * extents.c: pieces of ordinary memory that are known only by copies from or to them. Part of the
 * history (hot thread, pure).
 *
 * Where the call that made a mapping was seen, that mapping is one allocation. Where it was not (the
 * heap, what a list of mappings shows, what no list has shown yet), the kernel may have merged the
 * memory of many calls into it, so each piece that was copied from or to is a record of its own: an
 * extent. Copies that overlap belong to one extent, which grows; neighbours stay apart. An unmapped
 * extent ends as a whole, and nothing of it passes to others.
 *
 * An extent in no known mapping is provisional (TTMON_AL_PROVISIONAL) until a list of mappings shows
 * what it lies in. Where the pin of an extent can have been missed, a free or unregister without a
 * known beginning proves that it was pinned.
 */
#include "daemon/core/history/history_int.h"

/* per process; beyond this a copy is counted for the whole mapping */
#define EXTENTS_MAX 65536u

/*
 * Memory from a GPU's driver may be mapped from one of its device files: write-combined memory from
 * nvidiactl, managed memory from nvidia-uvm (driver 580.159.04 on an H100, tests/gpu/memory.py). Other
 * pinned memory is mapped from /dev/zero, which any program may do.
 */
static unsigned int driver_gave(const char *name)
{
	static const char uvm[] = "/dev/nvidia-uvm", other[] = "/dev/nvidia";

	if (!strncmp(name, uvm, sizeof(uvm) - 1))
		return TTMON_EXTENT_MANAGED;
	return strncmp(name, other, sizeof(other) - 1) ? 0 : TTMON_EXTENT_DRIVER;
}

/* Takes over the name and properties of the mapping around the extent. */
static void take_over(struct ttmon_history *h, struct ttmon_alloc *e, const struct ttmon_alloc *m)
{
	e->bits |= m->bits & (TTMON_AL_OLD | TTMON_AL_SHARED | TTMON_AL_READONLY);
	e->states |= m->states & TTMON_ST_UNSEEN;
	if (!m->name)
		return;
	e->api_flags |= driver_gave(m->name);
	if (e->name)
		return;
	e->name = malloc(strlen(m->name) + 1);
	if (e->name)
		memcpy(e->name, m->name, strlen(m->name) + 1);
	else
		ttmon_history_no_memory(h);
}

static struct ttmon_alloc *extent_new(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_rec_init *in,
				      const struct ttmon_alloc *m)
{
	uint64_t seq = m ? ttmon_alloc_seq(m) : 0;
	struct ttmon_alloc *e = ttmon_rec_new(h, p, in);

	/* Making it may evict the mapping. */
	m = m && e ? ttmon_rec_by_seq(h, seq) : NULL;
	if (m)
		take_over(h, e, m);
	return e;
}

/*
 * Unites all extents that overlap [from, to): the first by address grows. If the range begins before
 * it, a new extent is made, since offsets count from the start.
 */
static struct ttmon_alloc *unite(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_rec_init *in,
				 const struct ttmon_alloc *m, uint64_t ts_ns)
{
	uint64_t from = in->addr, to = in->addr + in->size, seq;
	struct ttmon_alloc *e = ttmon_rec_overlapping(h, p, TTMON_LAYER_EXTENT, from, to), *other;

	if (e->addr <= from && ttmon_rec_limit(e) >= to)
		return e;
	if (e->addr > from) {
		in->size = e->addr - from;
		in->bits |= e->bits & (TTMON_AL_PROVISIONAL | TTMON_AL_OLD);
		e = extent_new(h, p, in, m);
		if (!e)
			return NULL;
	}
	seq = ttmon_alloc_seq(e);
	from = e->addr;
	to = MAX(to, ttmon_rec_limit(e));
	ttmon_rec_unindex(h, e);
	while ((other = ttmon_rec_overlapping(h, p, TTMON_LAYER_EXTENT, from, to))) {
		to = MAX(to, ttmon_rec_limit(other));
		ttmon_rec_unindex(h, other);
		ttmon_rec_merge(h, e, other);
		e->states |= other->states & TTMON_ST_UNSEEN;
		ttmon_recs_end(h, other, ts_ns, TTMON_END_MERGED, 0);
	}
	ttmon_rec_move(h, e, from, to - from, ts_ns);
	e = ttmon_rec_by_seq(h, seq);
	return e && ttmon_rec_live(e) ? e : NULL;
}

struct ttmon_alloc *ttmon_extent_of(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *m,
				    uint64_t lo, uint64_t hi, uint64_t ts_ns)
{
	struct ttmon_rec_init in = {
		.addr = lo,
		.size = hi - lo,
		.ts_ns = m ? m->alloc_ns : ts_ns,
		.device = -1,
		.method = TTMON_METHOD_MMAP,
		.bits = m ? 0 : TTMON_AL_PROVISIONAL,
		.extent = true,
	};

	if (ttmon_rec_overlapping(h, p, TTMON_LAYER_EXTENT, lo, hi))
		return unite(h, p, &in, m, ts_ns);
	if (!lo || p->layer[TTMON_LAYER_EXTENT].n >= EXTENTS_MAX)
		return NULL;
	return extent_new(h, p, &in, m);
}

void ttmon_extents_end(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t lo, uint64_t hi, uint64_t ts_ns)
{
	struct ttmon_alloc *e;

	while ((e = ttmon_rec_overlapping(h, p, TTMON_LAYER_EXTENT, lo, hi))) {
		lo = ttmon_rec_limit(e);
		/* A copy before that time was of another mapping. */
		if (e->alloc_ns > ts_ns)
			continue;
		ttmon_extent_unmapped(p, e);
		ttmon_recs_end(h, e, ts_ns, TTMON_END_FREE, 0);
	}
}

void ttmon_extent_unmapped(struct ttmon_hproc *p, const struct ttmon_alloc *a)
{
	if (a->states & TTMON_ST_UNSEEN && !(a->states & TTMON_ST_MERGED))
		p->unmapped[p->nr_unmapped++ % TTMON_UNMAPPED] = ttmon_alloc_seq(a);
}

/* The provisional extent lies in the mapping m: its copies are counted as copies of m's kind. */
static void settle(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_alloc *e, struct ttmon_alloc *m,
		   uint64_t from_ns)
{
	ttmon_rec_look(h, p, m, from_ns);
	ttmon_copies_rebook(h, p, e, ttmon_rec_mem(m));
	if (!(m->states & TTMON_ST_MERGED)) {
		ttmon_rec_merge(h, m, e);
		ttmon_recs_end(h, e, MAX(from_ns, e->traffic->last_copy_ns), TTMON_END_MERGED, 0);
		return;
	}
	e->bits &= (uint8_t)~TTMON_AL_PROVISIONAL;
	e->alloc_ns = MIN(e->alloc_ns, m->alloc_ns);
	take_over(h, e, m);
	if (ttmon_rec_mem(e) == TTMON_MEM_PAGEABLE)
		ttmon_rec_hot(h, e);
}

void ttmon_extents_settle(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t from_ns)
{
	uint64_t at = 0;
	struct ttmon_alloc *e;

	while ((e = ttmon_rec_overlapping(h, p, TTMON_LAYER_EXTENT, at, UINT64_MAX))) {
		struct ttmon_alloc *m;

		at = ttmon_rec_limit(e);
		if (!(e->bits & TTMON_AL_PROVISIONAL))
			continue;
		m = ttmon_rec_overlapping(h, p, TTMON_LAYER_MAP, e->addr, at);
		if (m)
			settle(h, p, e, m, from_ns);
		else if (e->alloc_ns <= from_ns)
			ttmon_recs_end(h, e, from_ns, TTMON_END_FREE, 0);
	}
}

/* True if the freed memory may be this allocation: its pin may have been missed. */
static bool may_be(const struct ttmon_alloc *a, const struct ttmon_ev_free *ev)
{
	return a && a->states & TTMON_ST_UNSEEN && !(a->states & TTMON_ST_MERGED) && a->addr <= ev->addr &&
	       ev->addr < ttmon_rec_limit(a);
}

/*
 * The extent where the freed memory begins: still there, or unmapped by the call itself. NULL: nothing
 * was copied from or to it.
 */
static struct ttmon_alloc *freed_piece(const struct ttmon_history *h, const struct ttmon_hproc *p,
				       const struct ttmon_ev_free *ev)
{
	struct ttmon_alloc *e = ttmon_rec_holding(h, p, TTMON_LAYER_EXTENT, ev->addr);
	uint32_t n = MIN(p->nr_unmapped, (uint32_t)TTMON_UNMAPPED);

	if (!may_be(e, ev))
		e = ttmon_rec_holding(h, p, TTMON_LAYER_MAP, ev->addr);
	if (!may_be(e, ev))
		e = NULL;
	for (uint32_t i = p->nr_unmapped; !e && i > p->nr_unmapped - n; i--) {
		struct ttmon_alloc *a = ttmon_rec_by_seq(h, p->unmapped[(i - 1) % TTMON_UNMAPPED]);

		if (may_be(a, ev) && a->proc == p->pub.idx && a->method == TTMON_METHOD_MMAP &&
		    a->free_ns >= ev->entry_ns && a->free_ns <= ev->h.ts_ns)
			e = a;
	}
	return e;
}

void ttmon_extents_prove(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_free *ev)
{
	uint64_t since = ttmon_rec_unseen(h, p, ev->entry_ns).pins_to_ns, seq;
	struct ttmon_alloc *e = freed_piece(h, p, ev), *a;
	struct ttmon_rec_init in = {
		.addr = ev->addr,
		/* The size was not seen: it is what the call unmapped, or at least what was copied, or a page. */
		.size = h->page_size,
		.ts_ns = MIN(since, ev->entry_ns),
		.device = ev->device,
		.method = ev->method,
		.bits = TTMON_AL_OLD,
	};

	if (!since || !ttmon_method_pinned(ev->method) || !ev->addr)
		return;
	if (e)
		in.size = MAX(in.size, ttmon_rec_limit(e) - ev->addr);
	if (p->unmap.lo == ev->addr && p->unmap.ts_ns >= ev->entry_ns && p->unmap.ts_ns <= ev->h.ts_ns)
		in.size = MAX(in.size, p->unmap.hi - p->unmap.lo);
	seq = e ? ttmon_alloc_seq(e) : 0;
	/* The allocation was not seen; whatever else was there had ended before. */
	if (ttmon_layer_of(ev->method) == TTMON_LAYER_DEV)
		ttmon_calls_supersede(h, p, TTMON_LAYER_DEV, in.addr, ttmon_end_of(in.addr, in.size), in.ts_ns);
	a = ttmon_rec_new(h, p, &in);
	/* Making it may evict the extent. */
	e = e ? ttmon_rec_by_seq(h, seq) : NULL;
	if (a && e) {
		ttmon_copies_prove(h, p, e);
		ttmon_known_move_site(h, e, TTMON_MEM_UNKNOWN, TTMON_MEM_PINNED);
		ttmon_rec_merge(h, a, e);
		a->alloc_ns = in.ts_ns;
		/* Its call site is that of the copy; the call that made it was not seen. */
		a->fn = 0;
		/* Where a mapping was only registered, it lives on by itself. */
		if (!ttmon_rec_live(e))
			e->end = TTMON_END_MERGED;
		else if (e->states & TTMON_ST_EXTENT)
			ttmon_recs_end(h, e, ev->entry_ns, TTMON_END_MERGED, 0);
	}
	if (a)
		ttmon_recs_end(h, a, ev->entry_ns, TTMON_END_FREE,
			       ev->h.ts_ns > ev->entry_ns ? ev->h.ts_ns - ev->entry_ns : 0);
}
