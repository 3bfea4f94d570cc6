// SPDX-License-Identifier: GPL-2.0-only
/*
 * calls.c: what allocation, free, hint and reset calls do to the records. Part of the history (hot
 * thread, pure).
 *
 * Allocations take effect at their return, frees at their entry. Another thread may get the address
 * before the call that freed it has returned, so the stream shows the new allocation first: it
 * supersedes the old one, which stays known for a while as superseded, and a free that was entered
 * before the new allocation goes to the old one.
 */
#include "daemon/core/history/history_int.h"

#define SLOW_PIN_NS 10000000ULL
#define UNDER_MAX   64 /* pieces of ordinary memory that are marked when a range over them is registered */

static uint64_t duration(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* Duration of a call in ns; UINT64_MAX: its return was not seen. */
static uint64_t took(uint16_t bits, uint64_t entry_ns, uint64_t ts_ns)
{
	return bits & TTMON_B_UNOBSERVED ? UINT64_MAX : duration(entry_ns, ts_ns);
}

void ttmon_calls_ghost(struct ttmon_hproc *p, const struct ttmon_alloc *a)
{
	if (!p->ghosts)
		p->ghosts = malloc(TTMON_GHOSTS * sizeof(*p->ghosts));
	/* Without memory for superseded allocations such a free is counted as one of an unknown address. */
	if (!p->ghosts)
		return;
	if (p->nr_ghosts == TTMON_GHOSTS)
		memmove(p->ghosts, p->ghosts + 1, --p->nr_ghosts * sizeof(*p->ghosts));
	p->ghosts[p->nr_ghosts++] = ttmon_alloc_seq(a);
}

static bool frees(unsigned int method, const struct ttmon_alloc *a)
{
	switch (method) {
	case TTMON_METHOD_DEVICE: /* cudaFree, cuMemFree */
		return a->method == TTMON_METHOD_DEVICE || a->method == TTMON_METHOD_MANAGED ||
		       a->method == TTMON_METHOD_POOL;
	case TTMON_METHOD_POOL: /* cuMemUnmap */
		return a->method == TTMON_METHOD_POOL || a->method == TTMON_METHOD_DEVICE;
	case TTMON_METHOD_CUSTOM:
		return a->method == TTMON_METHOD_CUSTOM || a->method == TTMON_METHOD_PIECE;
	default:
		return a->method == method;
	}
}

/*
 * Finds the newest superseded allocation at this address that was allocated before the free was
 * entered, and ends it with that free.
 */
static bool free_ghost(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_free *ev)
{
	for (uint32_t i = p->nr_ghosts; i-- > 0;) {
		struct ttmon_alloc *a = ttmon_rec_by_seq(h, p->ghosts[i]);

		if (a && (a->addr != ev->addr || a->alloc_ns > ev->entry_ns || !frees(ev->method, a)))
			continue;
		p->nr_ghosts--;
		memmove(p->ghosts + i, p->ghosts + i + 1, (p->nr_ghosts - i) * sizeof(*p->ghosts));
		if (!a)
			continue;
		a->unpin_ns = duration(ev->entry_ns, ev->h.ts_ns);
		ttmon_count_pin_time(h, a->method, true, took(ev->bits, ev->entry_ns, ev->h.ts_ns));
		if (a->end == TTMON_END_SUPERSEDED) {
			a->end = TTMON_END_FREE;
			a->free_ns = MAX(ev->entry_ns, 1ULL);
			a->freed_nth = MAX(ttmon_procs_nth(p, ev->entry_ns), a->made_nth);
			h->totals.superseded--;
		}
		return true;
	}
	return false;
}

void ttmon_calls_supersede(struct ttmon_history *h, struct ttmon_hproc *p, enum ttmon_layer layer, uint64_t lo,
			   uint64_t hi, uint64_t ts_ns)
{
	struct ttmon_alloc *old;

	while ((old = ttmon_rec_overlapping(h, p, layer, lo, hi))) {
		ttmon_recs_end(h, old, ts_ns, TTMON_END_SUPERSEDED, 0);
		ttmon_calls_ghost(p, old);
		h->totals.superseded++;
	}
	ttmon_condensed_end_in(h, p, layer, lo, hi, ts_ns, TTMON_END_SUPERSEDED);
}

/*
 * The pinned memory of which a custom allocation is a piece: the piece lies in it and is smaller (an
 * allocator that wraps one allocation reports the same memory twice). NULL: there is none, or it may
 * no longer be pinned.
 */
static struct ttmon_alloc *backing_of(const struct ttmon_history *h, const struct ttmon_hproc *p,
				      const struct ttmon_ev_alloc *ev)
{
	if (ev->method != TTMON_METHOD_CUSTOM || !ev->addr)
		return NULL;
	for (unsigned int l = TTMON_LAYER_DEV; l <= TTMON_LAYER_REG; l++) {
		struct ttmon_alloc *a = ttmon_rec_holding(h, p, l, ev->addr);

		if (a && ttmon_rec_pinned(a) && ev->size < a->size &&
		    ttmon_end_of(ev->addr, ev->size ? ev->size : 1) <= ttmon_rec_limit(a) &&
		    ttmon_history_mem(h, a) == TTMON_MEM_PINNED)
			return a;
	}
	return NULL;
}

/* Ends the allocations that must be gone when this address range is allocated by such a method. */
static void clear_way(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_alloc *ev,
		      unsigned int method)
{
	struct ttmon_alloc shape = { .addr = ev->addr, .method = method & 0xf, .device = ev->device };
	uint64_t lo = ttmon_layer_key(&shape), hi = ttmon_end_of(lo, ev->size ? ev->size : 1);
	enum ttmon_layer layer = ttmon_layer_of(method);

	/* New memory at the address of old pieces: the pieces, or the memory they were part of, are gone. */
	if (layer == TTMON_LAYER_DEV || layer == TTMON_LAYER_REG || layer == TTMON_LAYER_CUSTOM)
		ttmon_calls_supersede(h, p, TTMON_LAYER_PIECE, lo, hi, ev->h.ts_ns);

	if (layer == TTMON_LAYER_REG) {
		uint32_t id;

		/*
		 * CUDA refuses to register a range twice: the same start means that the end of the old registration
		 * was missed.
		 */
		if (ttmon_ranges_get(&p->layer[layer], lo, &id) || ttmon_condensed_get(h, p, layer, lo))
			ttmon_calls_supersede(h, p, layer, lo, lo + 1 > lo ? lo + 1 : lo, ev->h.ts_ns);
		if (ttmon_rec_overlapping(h, p, layer, lo, hi) || ttmon_condensed_any(h, p, layer, lo, hi))
			ttmon_count_finding(h, p, TTMON_FINDING_OVERLAP);
		return;
	}
	ttmon_calls_supersede(h, p, layer, lo, hi, ev->h.ts_ns);
	/* New host memory at a registered address: the old memory was freed, and its registration with it. */
	if (layer == TTMON_LAYER_DEV && method != TTMON_METHOD_DEVICE)
		ttmon_calls_supersede(h, p, TTMON_LAYER_REG, lo, hi, ev->h.ts_ns);
}

/* Adds an event about a registration to the ordinary memory that it covers. */
static void tell_under(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *reg, uint64_t ts_ns,
		       enum ttmon_aev_kind kind)
{
	static const enum ttmon_layer under[] = { TTMON_LAYER_CUSTOM, TTMON_LAYER_MAP, TTMON_LAYER_EXTENT };
	uint64_t end = ttmon_rec_limit(reg);

	for (unsigned int l = 0; l < ARRAY_SIZE(under); l++) {
		uint64_t at = reg->addr;
		struct ttmon_alloc *a;

		for (unsigned int n = 0; n < UNDER_MAX && (a = ttmon_rec_overlapping(h, p, under[l], at, end)); n++) {
			uint64_t from = MAX(a->addr, at), to = MIN(ttmon_rec_limit(a), end);
			struct ttmon_aev ev = { .ts_ns = ts_ns,
						.kind = (uint8_t)kind,
						.mem = TTMON_MEM_PINNED,
						.bytes = to - from,
						.offset = from - a->addr };

			a->states |= TTMON_ST_PINNED | TTMON_ST_POPULATED;
			ttmon_rec_event(h, a, &ev);
			at = to;
		}
	}
}

static uint32_t intern(struct ttmon_history *h, struct ttmon_hproc *p, const __u64 *frames, unsigned int n)
{
	uint32_t stack;
	int err;

	if (!n)
		return TTMON_STACK_NONE;
	err = ttmon_stacks_intern(&p->stacks, (const uint64_t *)frames, MIN(n, (unsigned int)TTMON_MAX_FRAMES), &stack);
	if (!err)
		return stack;
	if (err == -ENOMEM)
		ttmon_history_no_memory(h);
	h->totals.incomplete = true;
	return TTMON_STACK_NONE;
}

/*
 * The stack of an event: its frames, and how they were found according to state. cut: there are more
 * frames.
 */
static struct ttmon_taken taken(struct ttmon_history *h, struct ttmon_hproc *p, const __u64 *frames, unsigned int n,
				unsigned int state, bool cut)
{
	struct ttmon_taken t = { .stack = intern(h, p, frames, n) };

	if (state == TTMON_STACK_COPY)
		t.copy = frames[n];
	if (state == TTMON_STACK_UNCHECKED || state == TTMON_STACK_COPY)
		t.by = TTMON_STACK_BY_UNCHECKED;
	if (state == TTMON_STACK_CONFIRMED) {
		t.by = TTMON_STACK_BY_FRAMES;
		t.end = cut ? TTMON_STACK_DEPTH : TTMON_STACK_COMPLETE;
	}
	return t;
}

void ttmon_history_on_alloc(struct ttmon_history *h, const struct ttmon_ev_alloc *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	struct ttmon_rec_init in = {
		.addr = ev->addr,
		.size = ev->size,
		.ts_ns = ev->h.ts_ns,
		.pin_ns = duration(ev->entry_ns, ev->h.ts_ns),
		.api_flags = ev->flags,
		.fn = ev->fn,
		.device = ev->device,
		.method = ev->method,
	};
	struct ttmon_alloc *a, *backing;
	struct ttmon_taken t;
	uint64_t of = 0;

	if (!p)
		return;
	if (ev->err) {
		ttmon_procs_error(h, p, ev->fn, ev->err);
		return;
	}
	p->pub.allocs++;
	h->totals.allocs++;
	ttmon_count_pin_time(h, ev->method, false, took(ev->bits, ev->entry_ns, ev->h.ts_ns));
	if (ttmon_method_pinned(ev->method) && in.pin_ns > SLOW_PIN_NS)
		ttmon_count_finding(h, p, TTMON_FINDING_SLOW_PIN);
	if (ev->bits & TTMON_B_UNOBSERVED)
		in.bits |= TTMON_AL_UNOBSERVED;
	if (ev->method == TTMON_METHOD_REGISTERED && ev->flags & 8)
		in.bits |= TTMON_AL_READONLY;
	backing = backing_of(h, p, ev);
	if (backing) {
		in.method = TTMON_METHOD_PIECE;
		in.device = backing->device;
		backing->api_flags |= TTMON_API_BACKING;
		of = ttmon_alloc_seq(backing);
	}
	if (ev->addr)
		clear_way(h, p, ev, in.method);
	a = ttmon_rec_new(h, p, &in);
	if (!a)
		return;
	/* A piece of pinned memory that has no record cannot be recognised as a piece. */
	if (a->method == TTMON_METHOD_CUSTOM && ttmon_condensed_pinned_at(h, p, a->addr))
		a->states |= TTMON_ST_UNSEEN;
	t = taken(h, p, ev->frames, ev->nframes, (ev->bits & TTMON_B_STACK) >> TTMON_B_STACK_SHIFT,
		  ev->bits & TTMON_B_STACK_CUT);
	ttmon_siteq_alloc(h, a, &t);
	if (a->method == TTMON_METHOD_REGISTERED)
		tell_under(h, p, a, ev->h.ts_ns, TTMON_AEV_REGISTER);
	/* The backing record may have been evicted to make room for the piece. */
	if (backing)
		backing = ttmon_rec_by_seq(h, of);
	/*
	 * An allocation without an address cannot be followed; one after the end of its process has no life.
	 */
	if (!a->addr || (a->method == TTMON_METHOD_PIECE && (!backing || !ttmon_rec_live(backing))))
		ttmon_recs_end(h, a, ev->h.ts_ns, TTMON_END_FREE, 0);
	else if (p->pub.exit_ns)
		ttmon_recs_end(h, a, p->pub.exit_ns, TTMON_END_EXIT, 0);
}

/* The live record that a free refers to; *other: there is one, but this function does not free it. */
static struct ttmon_alloc *freed_by(const struct ttmon_history *h, const struct ttmon_hproc *p,
				    const struct ttmon_ev_free *ev, bool *other)
{
	struct ttmon_alloc shape = { .addr = ev->addr, .method = ev->method & 0xf, .device = ev->device };
	struct ttmon_alloc *found = NULL;

	for (unsigned int l = 0; l < TTMON_LAYER_MAX; l++) {
		struct ttmon_alloc *a;
		uint32_t id;

		if (l == TTMON_LAYER_MAP || l == TTMON_LAYER_EXTENT ||
		    !ttmon_ranges_get(&p->layer[l], ttmon_layer_key(&shape), &id))
			continue;
		a = ttmon_rec_at(h, id);
		if (a->alloc_ns > ev->entry_ns)
			continue;
		if (frees(ev->method, a))
			found = found && l == TTMON_LAYER_CUSTOM ? found : a;
		else if (l != TTMON_LAYER_CUSTOM && l != TTMON_LAYER_PIECE && ev->method != TTMON_METHOD_CUSTOM)
			*other = true;
	}
	return found;
}

/* The same for an allocation without a record. */
static bool free_condensed(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_free *ev, bool *other)
{
	struct ttmon_alloc shape = { .addr = ev->addr, .method = ev->method & 0xf, .device = ev->device };

	for (unsigned int l = 0; p->remains && l < TTMON_LAYER_TT; l++) {
		const struct ttmon_condensed *c = ttmon_condensed_get(h, p, l, shape.addr);
		struct ttmon_alloc is = { .method = c ? c->method & 0xf : 0 };

		if (c && frees(ev->method, &is))
			return ttmon_condensed_end(h, p, l, shape.addr, ev->entry_ns, TTMON_END_FREE);
		*other |= c && l != TTMON_LAYER_CUSTOM && l != TTMON_LAYER_PIECE && ev->method != TTMON_METHOD_CUSTOM;
	}
	return false;
}

void ttmon_history_on_free(struct ttmon_history *h, const struct ttmon_ev_free *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	struct ttmon_alloc *a;
	bool other = false;

	if (!p)
		return;
	if (ev->err) {
		ttmon_procs_error(h, p, ev->fn, ev->err);
		return;
	}
	p->pub.frees++;
	h->totals.frees++;
	a = freed_by(h, p, ev, &other);
	if (a) {
		if (ttmon_method_pins(a->method))
			ttmon_rec_still_pinned(h, p, a);
		if (a->method == TTMON_METHOD_REGISTERED)
			tell_under(h, p, a, ev->entry_ns, TTMON_AEV_UNREGISTER);
		ttmon_count_pin_time(h, a->method, true, took(ev->bits, ev->entry_ns, ev->h.ts_ns));
		ttmon_recs_end(h, a, ev->entry_ns, TTMON_END_FREE, duration(ev->entry_ns, ev->h.ts_ns));
	} else if (free_condensed(h, p, ev, &other)) {
		ttmon_count_pin_time(h, ev->method, true, took(ev->bits, ev->entry_ns, ev->h.ts_ns));
	} else if (other) {
		ttmon_count_finding(h, p, TTMON_FINDING_FREE_BY_OTHER);
	} else if (!free_ghost(h, p, ev) && !ttmon_condensed_free_ghost(h, p, ev->addr, frees, ev->method)) {
		p->pub.unknown_frees++;
		h->totals.unknown_frees++;
		ttmon_extents_prove(h, p, ev);
	}
}

/*
 * The call site of a copy from a piece of memory. Only ordinary mappings have no name yet; the copy
 * event came just before.
 */
void ttmon_history_on_copy_site(struct ttmon_history *h, const struct ttmon_ev_copy_site *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	uint64_t limit;
	struct ttmon_alloc *a = p ? ttmon_views_at(h, p, ev->addr, &limit) : NULL;

	if (a && a->states & TTMON_ST_MERGED)
		a = ttmon_rec_holding(h, p, TTMON_LAYER_EXTENT, ev->addr);
	if (a && a->method == TTMON_METHOD_MMAP && !a->fn) {
		struct ttmon_taken t = taken(h, p, ev->frames, ev->nframes, ev->stack & 3, ev->stack & TTMON_CS_CUT);

		ttmon_siteq_name(h, a, ev->fn, &t, ev->h.ts_ns);
	}
}

/* The name that the program gave to its latest allocation. */
void ttmon_history_on_tag(struct ttmon_history *h, const struct ttmon_ev_tag *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	struct ttmon_alloc *a = p ? ttmon_rec_holding(h, p, TTMON_LAYER_PIECE, ev->addr) : NULL;
	size_t n = strnlen(ev->tag, sizeof(ev->tag));
	char *name;

	if (p && !a)
		a = ttmon_rec_holding(h, p, TTMON_LAYER_CUSTOM, ev->addr);

	if (!a || a->addr != ev->addr)
		return;
	name = malloc(n + 1);
	if (!name) {
		ttmon_history_no_memory(h);
		return;
	}
	memcpy(name, ev->tag, n);
	name[n] = '\0';
	free(a->name);
	a->name = name;
}

/*
 * The device pointer of pinned memory reaches every piece that the program's own allocator gave out of
 * it, from the requested address on.
 */
static void hint_custom(struct ttmon_history *h, struct ttmon_hproc *p, enum ttmon_layer layer,
			const struct ttmon_alloc *of, uint64_t from)
{
	uint64_t at = MAX(of->addr, from), end = ttmon_rec_limit(of);
	struct ttmon_alloc *a;

	for (unsigned int n = 0; n < UNDER_MAX && (a = ttmon_rec_overlapping(h, p, layer, at, end)); n++) {
		a->bits |= TTMON_AL_DEVICE_PTR;
		at = ttmon_rec_limit(a);
	}
}

void ttmon_history_on_hint(struct ttmon_history *h, const struct ttmon_ev_hint *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	uint64_t end;

	if (!p)
		return;
	if (ev->err) {
		ttmon_procs_error(h, p, ev->fn, ev->err);
		return;
	}
	end = ttmon_end_of(ev->addr, ev->bytes ? ev->bytes : 1);
	for (unsigned int l = 0; l <= TTMON_LAYER_REG; l++) {
		uint64_t at = ev->addr;
		struct ttmon_alloc *a;

		for (unsigned int n = 0; n < UNDER_MAX && (a = ttmon_rec_overlapping(h, p, l, at, end)); n++) {
			uint64_t from = MAX(a->addr, at), to = MIN(ttmon_rec_limit(a), end);
			struct ttmon_aev aev = { .ts_ns = ev->h.ts_ns,
						 .mem = (uint8_t)ttmon_rec_mem(a),
						 .bits = ev->bits,
						 .bytes = ev->bytes ? to - from : 0,
						 .offset = from - a->addr };

			aev.kind = ev->hint == TTMON_HINT_PREFETCH ? TTMON_AEV_PREFETCH
				   : ev->hint == TTMON_HINT_ADVISE ? TTMON_AEV_ADVISE
								   : TTMON_AEV_DEVICE_PTR;
			if (ev->hint == TTMON_HINT_DEVICE_PTR)
				a->bits |= TTMON_AL_DEVICE_PTR;
			/* The device pointer of a piece reaches that piece only. */
			if (ev->hint == TTMON_HINT_DEVICE_PTR && ttmon_rec_backing(a) &&
			    !ttmon_rec_holding(h, p, TTMON_LAYER_PIECE, ev->addr))
				hint_custom(h, p, TTMON_LAYER_PIECE, a, ev->addr);
			if (ev->hint == TTMON_HINT_DEVICE_PTR && l == TTMON_LAYER_REG)
				hint_custom(h, p, TTMON_LAYER_CUSTOM, a, ev->addr);
			ttmon_rec_event(h, a, &aev);
			at = to;
		}
	}
}

/* Device -1: everything ends. Memory made on an unknown device ends with any device. */
void ttmon_history_on_reset(struct ttmon_history *h, const struct ttmon_ev_reset *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);

	if (!p)
		return;
	if (ev->err) {
		ttmon_procs_error(h, p, ev->fn, ev->err);
		return;
	}
	for (unsigned int l = 0; l <= TTMON_LAYER_REG; l++) {
		struct ttmon_ranges_pos pos;
		bool at = ttmon_ranges_seek(&p->layer[l], 0, &pos);

		while (at) {
			struct ttmon_alloc *a = ttmon_rec_at(h, pos.val);
			uint64_t next;

			if (ev->device != -1 && a->device != -1 && a->device != ev->device) {
				at = ttmon_ranges_next(&p->layer[l], &pos);
				continue;
			}
			/* Ending a record moves the others in the index: continue with the next one by address. */
			at = ttmon_ranges_next(&p->layer[l], &pos);
			next = pos.start;
			ttmon_recs_end(h, a, ev->h.ts_ns, TTMON_END_RESET, 0);
			if (at)
				at = ttmon_ranges_floor(&p->layer[l], next, &pos);
		}
	}
	ttmon_condensed_end_of_device(h, p, ev->device, ev->h.ts_ns);
}
