// SPDX-License-Identifier: GPL-2.0-only
/*
 * mappings.c: ordinary mappings as mmap, munmap, mremap and brk change them, what the lists of
 * /proc/PID/maps say about them, and the provisional ones that stand in until a list comes. Part of
 * the history (hot thread, pure).
 *
 * One record per mmap call, also where the kernel merges neighbours into one VMA: the call is the
 * identity. Taking a piece out of a mapping leaves the record and its history with the first piece
 * that remains; a second piece becomes a record of its own. A move keeps the record. Changes by events
 * before the time of the last list are in that list already.
 *
 * A list is read at some time (from_ns) and comes in at once, while events wait for their slot:
 * changes by events at or before from_ns are in the list and are skipped when they come. Later changes
 * that were applied first are kept in a ring, and the list does not alter the addresses they touched.
 * Everywhere else the list wins: a mapping that it does not cover is gone, an unknown one is new
 * (older than the trace, if it is the first list), and a VMA that several records cover leaves them as
 * they are.
 */
#include "daemon/core/history/history_int.h"

/* Logged for a list that was read before this change but comes in after it. */
static void log_change(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t lo, uint64_t hi, uint64_t ts_ns)
{
	if (!p->changes)
		p->changes = calloc(TTMON_CHANGES, sizeof(*p->changes));
	if (!p->changes) {
		ttmon_history_no_memory(h);
		return;
	}
	p->last_change_ns = MAX(p->last_change_ns, ts_ns);
	p->changes[p->nr_changes++ % TTMON_CHANGES] = (struct ttmon_change){ lo, hi, ts_ns };
}

static struct ttmon_alloc *map_new(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t addr, uint64_t len,
				   uint64_t ts_ns, uint32_t flags, const char *name)
{
	struct ttmon_rec_init in = { .addr = addr,
				     .size = len,
				     .ts_ns = ts_ns,
				     .api_flags = flags,
				     .device = -1,
				     .method = TTMON_METHOD_MMAP,
				     .name = name };
	struct ttmon_alloc *a = addr && len ? ttmon_rec_new(h, p, &in) : NULL;

	if (!a)
		return NULL;
	if (flags & TTMON_MAP_SHARED)
		a->bits |= TTMON_AL_SHARED;
	if (flags & TTMON_MAP_POPULATE)
		a->states |= TTMON_ST_POPULATED;
	if (p->pub.exit_ns)
		ttmon_recs_end(h, a, p->pub.exit_ns, TTMON_END_EXIT, 0);
	return a;
}

/*
 * The part of a from `at` on becomes a record of its own, made now. The caller must look a up again:
 * making a record may evict.
 */
static void split(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_alloc *a, uint64_t at, uint64_t ts_ns)
{
	uint64_t end = ttmon_rec_limit(a);
	_cleanup_free_ char *name = a->name ? malloc(strlen(a->name) + 1) : NULL;
	uint32_t flags = a->api_flags;
	uint8_t bits = a->bits & (TTMON_AL_OLD | TTMON_AL_SHARED | TTMON_AL_READONLY);
	uint8_t states = a->states & (TTMON_ST_UNSEEN | TTMON_ST_MERGED);
	struct ttmon_alloc *right;

	if (name)
		memcpy(name, a->name, strlen(a->name) + 1);
	ttmon_rec_move(h, a, a->addr, at - a->addr, ts_ns);
	right = map_new(h, p, at, end - at, ts_ns, flags, name);
	if (right) {
		right->bits |= bits;
		right->states |= states;
	}
}

static void split_at(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t at, uint64_t ts_ns)
{
	struct ttmon_alloc *a = ttmon_rec_holding(h, p, TTMON_LAYER_MAP, at);

	if (a && a->addr < at)
		split(h, p, a, at, ts_ns);
}

void ttmon_hostmem_carve(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t lo, uint64_t hi, uint64_t ts_ns)
{
	struct ttmon_alloc *a;

	ttmon_extents_end(h, p, lo, hi, ts_ns);
	while ((a = ttmon_rec_overlapping(h, p, TTMON_LAYER_MAP, lo, hi))) {
		uint64_t end = ttmon_rec_limit(a);

		if (a->addr < lo && end > hi)
			split(h, p, a, hi, ts_ns);
		else if (a->addr < lo)
			ttmon_rec_move(h, a, a->addr, lo - a->addr, ts_ns);
		else if (end > hi)
			ttmon_rec_move(h, a, hi, end - hi, ts_ns);
		else {
			ttmon_extent_unmapped(p, a);
			ttmon_recs_end(h, a, ts_ns, TTMON_END_FREE, 0);
		}
	}
}

/*
 * Registered memory was unmapped without unregister. An unregister that comes later still belongs to
 * it.
 */
static void unmap_registered(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t lo, uint64_t hi, uint64_t ts_ns)
{
	uint64_t at = lo;
	struct ttmon_alloc *a;

	while ((a = ttmon_rec_overlapping(h, p, TTMON_LAYER_REG, at, hi))) {
		at = MAX(at, a->addr) + 1;
		if (a->alloc_ns > ts_ns)
			continue;
		ttmon_recs_end(h, a, ts_ns, TTMON_END_UNMAPPED, 0);
		ttmon_calls_ghost(p, a);
		ttmon_count_finding(h, p, TTMON_FINDING_UNMAP_REGISTERED);
		at = lo;
	}
	ttmon_condensed_end_in(h, p, TTMON_LAYER_REG, lo, hi, ts_ns, TTMON_END_UNMAPPED);
}

/* A mapping that the last list has already: only what a list cannot contain is added. */
static void told_by_list(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_mmap *ev, uint64_t len)
{
	struct ttmon_alloc *a = ttmon_rec_holding(h, p, TTMON_LAYER_MAP, ev->addr);

	if (!a || a->addr != ev->addr || a->size != len)
		return;
	a->alloc_ns = ev->h.ts_ns;
	a->states &= (uint8_t) ~(TTMON_ST_MERGED | TTMON_ST_UNSEEN);
	a->made_nth = ttmon_procs_nth(p, ev->h.ts_ns);
	a->bits &= (uint8_t)~TTMON_AL_OLD;
	a->api_flags = ev->flags;
}

void ttmon_history_on_mmap(struct ttmon_history *h, const struct ttmon_ev_mmap *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	uint64_t hi = ttmon_end_of(ev->addr, ttmon_page_up(h, ev->len));

	if (!p || hi <= ev->addr)
		return;
	if (p->maps_from_ns && ev->h.ts_ns < p->maps_from_ns) {
		told_by_list(h, p, ev, hi - ev->addr);
		return;
	}
	log_change(h, p, ev->addr, hi, ev->h.ts_ns);
	unmap_registered(h, p, ev->addr, hi, ev->h.ts_ns);
	ttmon_hostmem_carve(h, p, ev->addr, hi, ev->h.ts_ns);
	/* The code of a program or library is no allocation. */
	if (ev->fd >= 0 && ev->prot & TTMON_PROT_EXEC && !(ev->prot & TTMON_PROT_WRITE))
		return;
	map_new(h, p, ev->addr, hi - ev->addr, ev->h.ts_ns, ev->flags, NULL);
}

void ttmon_history_on_munmap(struct ttmon_history *h, const struct ttmon_ev_munmap *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	uint64_t hi = ttmon_end_of(ev->addr, ttmon_page_up(h, ev->len));

	if (!p || hi <= ev->addr)
		return;
	unmap_registered(h, p, ev->addr, hi, ev->h.ts_ns);
	if (p->maps_from_ns && ev->h.ts_ns < p->maps_from_ns)
		return;
	log_change(h, p, ev->addr, hi, ev->h.ts_ns);
	p->unmap = (struct ttmon_change){ ev->addr, hi, ev->h.ts_ns };
	ttmon_hostmem_carve(h, p, ev->addr, hi, ev->h.ts_ns);
}

/* Resized in place: the old range shrinks, or its last mapping grows. */
static void resize(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_mremap *ev, uint64_t old_end,
		   uint64_t new_end)
{
	struct ttmon_alloc *last;

	if (new_end <= old_end) {
		unmap_registered(h, p, new_end, old_end, ev->entry_ns);
		ttmon_hostmem_carve(h, p, new_end, old_end, ev->h.ts_ns);
		return;
	}
	ttmon_hostmem_carve(h, p, old_end, new_end, ev->h.ts_ns);
	last = ttmon_rec_holding(h, p, TTMON_LAYER_MAP, old_end - 1);
	if (last && ttmon_rec_limit(last) == old_end)
		ttmon_rec_move(h, last, last->addr, new_end - last->addr, ev->h.ts_ns);
	else
		map_new(h, p, old_end, new_end - old_end, ev->h.ts_ns, TTMON_MAP_PRIVATE, NULL);
}

/*
 * Moves the records of the old range to the new place, cut to the new length. Returns the address up
 * to which the new range is filled.
 */
static uint64_t move_pieces(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_mremap *ev,
			    uint64_t old_end, uint64_t new_end)
{
	uint64_t at = ev->old_addr, filled = ev->new_addr;
	struct ttmon_alloc *a;

	while ((a = ttmon_rec_overlapping(h, p, TTMON_LAYER_MAP, at, old_end))) {
		uint64_t to = ev->new_addr + (a->addr - ev->old_addr), end = MIN(to + a->size, new_end);

		at = ttmon_rec_limit(a);
		/* Another thread got this part of the old range before this call returned: it did not move. */
		if (a->alloc_ns >= ev->entry_ns)
			continue;
		if (to >= new_end) {
			ttmon_recs_end(h, a, ev->h.ts_ns, TTMON_END_FREE, 0);
			continue;
		}
		if (at == old_end)
			end = new_end;
		ttmon_rec_move(h, a, to, end - to, ev->h.ts_ns);
		filled = end;
	}
	return filled;
}

void ttmon_history_on_mremap(struct ttmon_history *h, const struct ttmon_ev_mremap *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	uint64_t old_end = ttmon_end_of(ev->old_addr, ttmon_page_up(h, ev->old_len));
	uint64_t new_end = ttmon_end_of(ev->new_addr, ttmon_page_up(h, ev->new_len)), filled;
	bool apart = new_end <= ev->old_addr || ev->new_addr >= old_end; /* the kernel allows no overlap */
	struct ttmon_alloc *at_new;

	if (!p || new_end <= ev->new_addr || (p->maps_from_ns && ev->h.ts_ns < p->maps_from_ns))
		return;
	log_change(h, p, ev->old_addr, old_end, ev->h.ts_ns);
	log_change(h, p, ev->new_addr, new_end, ev->h.ts_ns);
	if (ev->new_addr == ev->old_addr && ev->old_len) {
		resize(h, p, ev, old_end, new_end);
		return;
	}
	unmap_registered(h, p, ev->new_addr, new_end, ev->h.ts_ns);
	ttmon_hostmem_carve(h, p, ev->new_addr, new_end, ev->h.ts_ns);
	filled = ev->new_addr;
	if (old_end > ev->old_addr && apart && !(ev->flags & TTMON_MREMAP_DONTUNMAP)) {
		/* Cut at both ends, so that whole records move; the cut is made just before the entry of the call. */
		uint64_t cut_ns = ev->entry_ns ? ev->entry_ns - 1 : 0;

		unmap_registered(h, p, ev->old_addr, old_end, ev->entry_ns);
		split_at(h, p, ev->old_addr, cut_ns);
		split_at(h, p, old_end, ev->h.ts_ns);
		filled = move_pieces(h, p, ev, old_end, new_end);
	}
	at_new = ttmon_rec_overlapping(h, p, TTMON_LAYER_MAP, ev->new_addr, new_end);
	if (!at_new)
		map_new(h, p, ev->new_addr, new_end - ev->new_addr, ev->h.ts_ns, TTMON_MAP_PRIVATE, NULL);
	else if (filled > ev->new_addr && filled < new_end)
		map_new(h, p, filled, new_end - filled, ev->h.ts_ns, TTMON_MAP_PRIVATE, NULL);
}

static struct ttmon_alloc *heap_of(const struct ttmon_history *h, const struct ttmon_hproc *p)
{
	struct ttmon_ranges_pos pos;
	bool at = ttmon_ranges_seek(&p->layer[TTMON_LAYER_MAP], 0, &pos);

	for (; at; at = ttmon_ranges_next(&p->layer[TTMON_LAYER_MAP], &pos)) {
		struct ttmon_alloc *a = ttmon_rec_at(h, pos.val);

		if (a->name && !strcmp(a->name, "[heap]"))
			return a;
	}
	return NULL;
}

void ttmon_history_on_brk(struct ttmon_history *h, const struct ttmon_ev_brk *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	uint64_t end = ttmon_page_up(h, ev->brk), start;
	struct ttmon_alloc *heap;

	if (!p || (p->maps_from_ns && ev->h.ts_ns < p->maps_from_ns))
		return;
	heap = heap_of(h, p);
	if (!heap && !p->brk_first) {
		/* The first brk reads where the heap begins. */
		p->brk_first = end;
		return;
	}
	start = heap ? heap->addr : p->brk_first;
	log_change(h, p, start, MAX(end, heap ? ttmon_rec_limit(heap) : end), ev->h.ts_ns);
	if (!heap) {
		if (end > start && !ttmon_rec_overlapping(h, p, TTMON_LAYER_MAP, start, end))
			heap = map_new(h, p, start, end - start, ev->h.ts_ns, TTMON_MAP_PRIVATE | TTMON_MAP_ANONYMOUS,
				       "[heap]");
		if (heap)
			heap->states |= TTMON_ST_MERGED;
	} else if (end <= start) {
		p->brk_first = start;
		unmap_registered(h, p, start, ttmon_rec_limit(heap), ev->h.ts_ns);
		ttmon_extents_end(h, p, start, ttmon_rec_limit(heap), ev->h.ts_ns);
		ttmon_recs_end(h, heap, ev->h.ts_ns, TTMON_END_FREE, 0);
	} else if (end < ttmon_rec_limit(heap)) {
		unmap_registered(h, p, end, ttmon_rec_limit(heap), ev->h.ts_ns);
		ttmon_extents_end(h, p, end, ttmon_rec_limit(heap), ev->h.ts_ns);
		ttmon_rec_move(h, heap, start, end - start, ev->h.ts_ns);
	} else if (!ttmon_rec_overlapping(h, p, TTMON_LAYER_MAP, ttmon_rec_limit(heap), end)) {
		ttmon_rec_move(h, heap, start, end - start, ev->h.ts_ns);
	}
}

void ttmon_hostmem_inherit(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_hproc *parent,
			   uint64_t ts_ns)
{
	uint64_t at = 0;
	struct ttmon_alloc *from;

	while ((from = ttmon_rec_overlapping(h, parent, TTMON_LAYER_MAP, at, UINT64_MAX))) {
		_cleanup_free_ char *name = from->name ? malloc(strlen(from->name) + 1) : NULL;
		uint8_t bits = (uint8_t)((from->bits & (TTMON_AL_SHARED | TTMON_AL_READONLY)) | TTMON_AL_OLD);
		uint8_t states = from->states & TTMON_ST_MERGED;
		uint64_t addr = from->addr, size = from->size;
		uint32_t flags = from->api_flags;
		struct ttmon_alloc *a;

		if (name)
			memcpy(name, from->name, strlen(from->name) + 1);
		at = ttmon_rec_limit(from);
		if (ttmon_rec_overlapping(h, p, TTMON_LAYER_MAP, addr, at))
			continue;
		a = map_new(h, p, addr, size, ts_ns, flags & ~(uint32_t)TTMON_MAP_POPULATE, name);
		if (a) {
			a->bits |= bits;
			a->states |= states;
		}
	}
	p->pub.maps_known = !p->maps_evicted;
}

static void free_vmas(struct ttmon_hproc *p)
{
	for (uint32_t i = 0; i < p->nr_vmas; i++)
		free(p->vmas[i].name);
	p->nr_vmas = 0;
	p->vmas_bad = false;
}

void ttmon_maplist_forget(struct ttmon_hproc *p)
{
	free_vmas(p);
}

void ttmon_maplist_want(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t ts_ns)
{
	if (p->pub.exit_ns || p->maps_evicted)
		return;
	p->want_ns = MAX(p->want_ns, ts_ns);
	if (p->want != TTMON_WANT_NO)
		return;
	p->want = TTMON_WANT_YES;
	h->nr_wanted++;
}

static void collect(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_map *ev)
{
	struct ttmon_vma vma = { .start = ev->start, .end = ev->end, .prot = ev->prot, .shared = ev->shared != 0 };
	uint32_t len = (uint32_t)strnlen(ev->name, ev->len);

	if (p->nr_vmas == p->cap_vmas) {
		uint32_t cap = p->cap_vmas ? p->cap_vmas * 2 : 64;
		struct ttmon_vma *v = p->nr_vmas < TTMON_VMAS_MAX ? realloc(p->vmas, cap * sizeof(*v)) : NULL;

		if (!v) {
			ttmon_history_no_memory(h);
			p->vmas_bad = true;
			return;
		}
		p->vmas = v;
		p->cap_vmas = cap;
	}
	if (len) {
		vma.name = malloc(len + 1);
		if (!vma.name) {
			ttmon_history_no_memory(h);
			p->vmas_bad = true;
			return;
		}
		memcpy(vma.name, ev->name, len);
		vma.name[len] = '\0';
	}
	p->vmas[p->nr_vmas++] = vma;
}

void ttmon_history_on_map(struct ttmon_history *h, const struct ttmon_ev_map *ev)
{
	struct ttmon_hproc *p = ttmon_procs_fact(h, ev->h.tgid, ev->h.ts_ns);
	struct ttmon_xmap x = { .start = ev->start, .end = ev->end, .pgoff = ev->pgoff, .object = ev->object };

	if (!p)
		return;
	if (ev->start >= ev->end) {
		h->totals.malformed_facts++;
		p->vmas_bad |= ev->h.tid == 0;
		return;
	}
	if (ev->prot & TTMON_PROT_EXEC && ttmon_maps_add(&p->maps, &x, ev->h.ts_ns) < 0)
		ttmon_history_no_memory(h);
	/* A record of one new executable mapping is not part of a list. */
	if (ev->h.tid == 0 && !p->pub.exit_ns)
		collect(h, p, ev);
}

static int by_start(const void *a, const void *b)
{
	const struct ttmon_vma *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/*
 * True for what is no memory of the program's own: code, inaccessible ranges, and the kernel's pages.
 */
static bool no_allocation(const struct ttmon_vma *v)
{
	bool file = v->name && v->name[0] == '/';

	return !(v->prot & (TTMON_PROT_READ | TTMON_PROT_WRITE)) ||
	       (file && v->prot & TTMON_PROT_EXEC && !(v->prot & TTMON_PROT_WRITE)) ||
	       (v->name && !strncmp(v->name, "[v", 2));
}

/*
 * Sorts the last `count` collected lines, removes overlaps and what is no allocation. Returns how many
 * are left.
 */
static uint32_t tidy(struct ttmon_history *h, struct ttmon_hproc *p, uint32_t count)
{
	uint32_t skip = p->nr_vmas - count, n = 0;

	if (!p->nr_vmas)
		return 0;
	for (uint32_t i = 0; i < skip; i++)
		free(p->vmas[i].name);
	memmove(p->vmas, p->vmas + skip, count * sizeof(*p->vmas));
	qsort(p->vmas, count, sizeof(*p->vmas), by_start);
	for (uint32_t i = 0; i < count; i++) {
		bool overlaps = n && p->vmas[i].start < p->vmas[n - 1].end;

		h->totals.malformed_facts += overlaps;
		if (overlaps || no_allocation(&p->vmas[i]))
			free(p->vmas[i].name);
		else
			p->vmas[n++] = p->vmas[i];
	}
	p->nr_vmas = n;
	return n;
}

/* The next piece of [*at, hi) that no event after the list has changed; false: there is none. */
static bool untouched(const struct ttmon_hproc *p, uint64_t from_ns, uint64_t *at, uint64_t hi, uint64_t *end)
{
	uint32_t n = MIN(p->nr_changes, (uint32_t)TTMON_CHANGES);
	bool moved = true;

	*end = hi;
	if (p->last_change_ns <= from_ns)
		return *at < hi;
	while (moved) {
		moved = false;
		for (uint32_t i = 0; i < n; i++) {
			const struct ttmon_change *c = &p->changes[i];

			if (c->ts_ns > from_ns && c->lo <= *at && *at < c->hi) {
				*at = c->hi;
				moved = true;
			}
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct ttmon_change *c = &p->changes[i];

		if (c->ts_ns > from_ns && c->lo > *at)
			*end = MIN(*end, c->lo);
	}
	return *at < hi;
}

static void drop_between(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t lo, uint64_t hi, uint64_t from_ns)
{
	for (uint64_t end; lo < hi && untouched(p, from_ns, &lo, hi, &end); lo = end)
		ttmon_hostmem_carve(h, p, lo, end, from_ns);
}

static bool same_thing(const struct ttmon_alloc *a, const struct ttmon_vma *v)
{
	/* An mmap event carries no file name: a record without a name takes the list's. */
	return !a->name || (v->name && !strcmp(a->name, v->name));
}

static void name_it(struct ttmon_history *h, struct ttmon_alloc *a, const struct ttmon_vma *v)
{
	if (!a->name && v->name) {
		a->name = malloc(strlen(v->name) + 1);
		if (a->name)
			memcpy(a->name, v->name, strlen(v->name) + 1);
		else
			ttmon_history_no_memory(h);
	}
	if (v->shared)
		a->bits |= TTMON_AL_SHARED;
	if (!(v->prot & TTMON_PROT_WRITE))
		a->bits |= TTMON_AL_READONLY;
	else
		a->bits &= (uint8_t)~TTMON_AL_READONLY;
}

/* One piece of a VMA: the records in it stay, the gaps between them become records. */
static void fill(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_vma *v, uint64_t lo, uint64_t hi,
		 uint64_t from_ns)
{
	bool old = !p->pub.maps_known && !p->pub.execs &&
		   (!p->pub.start_ns || !h->cfg.start_ns || p->pub.start_ns < h->cfg.start_ns);
	/* It is younger than the list before, or else than the program. */
	uint64_t born_ns = p->maps_from_ns ? p->maps_from_ns
			   : p->nr_execs   ? p->execs[p->nr_execs - 1]
					   : p->pub.start_ns;

	while (lo < hi) {
		struct ttmon_alloc *a = ttmon_rec_overlapping(h, p, TTMON_LAYER_MAP, lo, hi);
		uint64_t gap_end = a ? MAX(a->addr, lo) : hi;
		struct ttmon_rec_init in = { .addr = lo,
					     .size = gap_end - lo,
					     .ts_ns = from_ns,
					     .device = -1,
					     .method = TTMON_METHOD_MMAP,
					     .name = v->name };

		if (a && !same_thing(a, v)) {
			ttmon_hostmem_carve(h, p, MAX(a->addr, lo), MIN(ttmon_rec_limit(a), hi), from_ns);
			continue;
		}
		if (gap_end == lo) {
			name_it(h, a, v);
			lo = ttmon_rec_limit(a);
			continue;
		}
		in.bits = old ? TTMON_AL_OLD : 0;
		a = lo ? ttmon_rec_new(h, p, &in) : NULL;
		if (a) {
			name_it(h, a, v);
			a->states |= TTMON_ST_MERGED;
			if (born_ns < ttmon_rec_unseen(h, p, from_ns).pins_to_ns)
				a->states |= TTMON_ST_UNSEEN;
		}
		lo = gap_end;
	}
}

static void reconcile(struct ttmon_history *h, struct ttmon_hproc *p, uint32_t n, uint64_t from_ns)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		drop_between(h, p, at, p->vmas[i].start, from_ns);
		at = p->vmas[i].end;
	}
	drop_between(h, p, at, UINT64_MAX, from_ns);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t lo = p->vmas[i].start, hi = p->vmas[i].end;

		for (uint64_t end; lo < hi && untouched(p, from_ns, &lo, hi, &end); lo = end)
			fill(h, p, &p->vmas[i], lo, end, from_ns);
	}
	ttmon_extents_settle(h, p, from_ns);
}

/* True if the ring may have dropped changes that are after the list. */
static bool ring_too_short(const struct ttmon_hproc *p, uint64_t from_ns)
{
	return p->nr_changes > TTMON_CHANGES && p->changes[p->nr_changes % TTMON_CHANGES].ts_ns > from_ns;
}

void ttmon_history_on_maps_done(struct ttmon_history *h, const struct ttmon_ev_maps_done *ev)
{
	struct ttmon_hproc *p = ttmon_procs_find(h, ev->h.tgid);
	bool again;

	if (!p || p->pub.exit_ns)
		return;
	if (p->want == TTMON_WANT_YES)
		h->nr_wanted--;
	p->want = TTMON_WANT_NO;
	p->want_after_ns = h->now_ns + TTMON_WANT_PAUSE_NS;
	again = p->want_ns > ev->from_ns;
	if (p->vmas_bad || ev->count > p->nr_vmas || ring_too_short(p, ev->from_ns)) {
		h->totals.malformed_facts += p->vmas_bad || ev->count > p->nr_vmas;
		again = p->want_ns != 0;
	} else if (ev->from_ns >= p->maps_from_ns) {
		reconcile(h, p, tidy(h, p, ev->count), ev->from_ns);
		p->pub.maps_known = !p->maps_evicted;
		p->maps_from_ns = MAX(ev->from_ns, 1ULL);
	}
	free_vmas(p);
	free(p->vmas);
	p->vmas = NULL;
	p->cap_vmas = 0;
	if (again)
		ttmon_maplist_want(h, p, p->want_ns);
}
