// SPDX-License-Identifier: GPL-2.0-only
/*
 * maplist.c: what the lists of /proc/PID/maps say about ordinary mappings, and the made-up ones that stand in until a list comes.
 * Part of the history (hot thread, pure).
 *
 * A list is read at some time (from_ns) and comes in at once, while events wait for their slot: changes by events at or before
 * from_ns are in the list and are skipped when they come; those after it that came first are kept in a ring, and the addresses
 * they touched are left as they are. Everywhere else the list wins: what it does not cover is gone, what nobody knew is new
 * (older than the trace, if it is the first list), a VMA that several records cover leaves them as they are.
 */
#include "core/history_int.h"

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
	if (p->pub.exit_ns)
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

void ttmon_maplist_map(struct ttmon_history *h, const struct ttmon_ev_map *ev)
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
	/* A record of one new executable mapping is part of no list. */
	if (ev->h.tid == 0 && !p->pub.exit_ns)
		collect(h, p, ev);
}

static int by_start(const void *a, const void *b)
{
	const struct ttmon_vma *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* No memory of the program's own: text, what cannot be touched, and the kernel's pages. */
static bool no_allocation(const struct ttmon_vma *v)
{
	bool file = v->name && v->name[0] == '/';

	return !(v->prot & (TTMON_PROT_READ | TTMON_PROT_WRITE)) ||
	       (file && v->prot & TTMON_PROT_EXEC && !(v->prot & TTMON_PROT_WRITE)) ||
	       (v->name && !strncmp(v->name, "[v", 2));
}

/* The last `count` collected, sorted, without overlaps and without what is no allocation. Returns how many are left. */
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

/* The next piece of [*at, hi) that no event after the list has touched; false if there is none. */
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
	/* An mmap event does not say which file: a record without a name takes that of the list. */
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
		if (a)
			name_it(h, a, v);
		lo = gap_end;
	}
}

/* Takes the made-up mappings out of the index, so that the list sees none of them. */
static uint64_t *lift_provisional(struct ttmon_history *h, struct ttmon_hproc *p, size_t *ret_n)
{
	struct ttmon_ranges *r = &p->layer[TTMON_LAYER_MAP];
	struct ttmon_ranges_pos pos;
	uint64_t *seqs = NULL;
	size_t n = 0;

	for (bool at = ttmon_ranges_seek(r, 0, &pos); at; at = ttmon_ranges_next(r, &pos)) {
		const struct ttmon_alloc *a = ttmon_rec_at(h, pos.val);

		if (!(a->bits & TTMON_AL_PROVISIONAL))
			continue;
		if ((n & (n - 1)) == 0) {
			uint64_t *v = realloc(seqs, (n ? 2 * n : 1) * sizeof(*v));

			if (!v) {
				ttmon_history_no_memory(h);
				break;
			}
			seqs = v;
		}
		seqs[n++] = ttmon_alloc_seq(a);
	}
	for (size_t i = 0; i < n; i++)
		ttmon_rec_unindex(h, ttmon_rec_by_seq(h, seqs[i]));
	*ret_n = n;
	return seqs;
}

/* What was made up is part of a mapping, or of none: then it stays only if it is younger than the list. */
static void settle_provisional(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t seq, uint64_t from_ns)
{
	struct ttmon_alloc *a = ttmon_rec_by_seq(h, seq), *in;

	if (!a || !ttmon_rec_live(a))
		return;
	in = ttmon_rec_overlapping(h, p, TTMON_LAYER_MAP, a->addr, ttmon_rec_limit(a));
	if (in) {
		ttmon_copies_rebook(h, p, a);
		ttmon_rec_merge(h, in, a);
		ttmon_rec_end(h, a, MAX(from_ns, a->traffic->last_copy_ns), TTMON_END_MERGED, 0);
	} else if (a->alloc_ns > from_ns) {
		ttmon_rec_move(h, a, a->addr, a->size, from_ns);
	} else {
		ttmon_rec_end(h, a, from_ns, TTMON_END_FREE, 0);
	}
}

static void reconcile(struct ttmon_history *h, struct ttmon_hproc *p, uint32_t n, uint64_t from_ns)
{
	size_t nr_made_up = 0;
	_cleanup_free_ uint64_t *made_up = lift_provisional(h, p, &nr_made_up);
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
	for (size_t i = 0; i < nr_made_up; i++)
		settle_provisional(h, p, made_up[i], from_ns);
}

/* Changes that the ring has lost may be after the list. */
static bool ring_too_short(const struct ttmon_hproc *p, uint64_t from_ns)
{
	return p->nr_changes > TTMON_CHANGES && p->changes[p->nr_changes % TTMON_CHANGES].ts_ns > from_ns;
}

void ttmon_maplist_done(struct ttmon_history *h, const struct ttmon_ev_maps_done *ev)
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
		p->pub.maps_known = true;
		p->maps_from_ns = MAX(ev->from_ns, 1ULL);
	}
	free_vmas(p);
	free(p->vmas);
	p->vmas = NULL;
	p->cap_vmas = 0;
	if (again)
		ttmon_maplist_want(h, p, p->want_ns);
}

struct ttmon_alloc *ttmon_maplist_provisional(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t lo, uint64_t hi,
					      uint64_t ts_ns)
{
	struct ttmon_rec_init in = {
		.ts_ns = ts_ns, .device = -1, .method = TTMON_METHOD_MMAP, .bits = TTMON_AL_PROVISIONAL
	};
	uint64_t first = ttmon_page_down(h, lo), last = ttmon_page_up(h, hi);
	struct ttmon_alloc *left = NULL, *right = NULL;
	struct ttmon_ranges_pos pos;
	uint64_t right_seq = TTMON_SEQTAB_END;

	if (ttmon_ranges_floor(&p->layer[TTMON_LAYER_MAP], lo, &pos))
		left = ttmon_rec_at(h, pos.val);
	if (left && ttmon_rec_limit(left) < first)
		left = NULL;
	right = ttmon_rec_overlapping(h, p, TTMON_LAYER_MAP, hi, ttmon_end_of(last, 1));
	if (right && right->bits & TTMON_AL_PROVISIONAL) {
		/* What it went through goes over to the one that takes its place. */
		last = ttmon_rec_limit(right);
		right_seq = ttmon_alloc_seq(right);
		ttmon_rec_unindex(h, right);
	} else if (right) {
		last = MIN(last, right->addr);
	}
	if (left && left->bits & TTMON_AL_PROVISIONAL) {
		ttmon_rec_move(h, left, left->addr, last - left->addr, ts_ns);
	} else {
		in.addr = left ? MAX(first, ttmon_rec_limit(left)) : MAX(first, h->page_size);
		in.size = last - in.addr;
		left = in.addr < last ? ttmon_rec_new(h, p, &in) : NULL;
	}
	right = right_seq != TTMON_SEQTAB_END ? ttmon_rec_by_seq(h, right_seq) : NULL;
	if (right) {
		if (left)
			ttmon_rec_merge(h, left, right);
		ttmon_rec_end(h, right, ts_ns, TTMON_END_MERGED, 0);
	}
	return left;
}
