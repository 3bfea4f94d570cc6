// SPDX-License-Identifier: GPL-2.0-only
/*
 * views.c: the read side of the history: names, tables, lookups. Nothing here changes the history,
 * except for the two kinds of requests that are each returned once (lists of mappings, names). Hot
 * thread; pointers are good until the next record.
 */
#include "daemon/core/history/history_int.h"

#include "lib/base/fmt.h"

static const char *const finding_names[] = {
#define X(id, NAME, name, help) [id] = name,
	TTMON_FINDING_TABLE(X)
#undef X
};

static const char *const finding_helps[] = {
#define X(id, NAME, name, help) [id] = help,
	TTMON_FINDING_TABLE(X)
#undef X
};

const char *ttmon_finding_name(unsigned int finding)
{
	return finding < TTMON_FINDING_MAX ? finding_names[finding] : NULL;
}

const char *ttmon_finding_help(unsigned int finding)
{
	return finding < TTMON_FINDING_MAX ? finding_helps[finding] : NULL;
}

size_t ttmon_history_want_maps(struct ttmon_history *h, uint32_t *tgids, size_t max)
{
	size_t n = 0;

	for (uint32_t i = 0; i < h->nr_procs && h->nr_wanted && n < max; i++) {
		struct ttmon_hproc *p = h->procs[i];

		if (p->want != TTMON_WANT_YES || h->now_ns < p->want_after_ns)
			continue;
		p->want = TTMON_WANT_TOLD;
		h->nr_wanted--;
		tgids[n++] = p->pub.tgid;
	}
	return n;
}

size_t ttmon_history_want_symbols(struct ttmon_history *h, struct ttmon_frame *frames, size_t max)
{
	const struct ttmon_frame *f;
	size_t n = 0;

	while (n < max && (f = ttmon_fifo_front(&h->symtab.wanted))) {
		frames[n++] = *f;
		ttmon_fifo_pop(&h->symtab.wanted);
	}
	return n;
}

size_t ttmon_history_procs(const struct ttmon_history *h)
{
	return h->nr_procs;
}

const struct ttmon_proc *ttmon_history_proc(const struct ttmon_history *h, size_t idx)
{
	return idx < h->nr_procs ? &h->procs[idx]->pub : NULL;
}

size_t ttmon_history_sites(const struct ttmon_history *h)
{
	return h->sites.n;
}

const struct ttmon_site *ttmon_history_site(const struct ttmon_history *h, size_t idx)
{
	return idx < h->sites.n ? &h->sites.v[idx] : NULL;
}

size_t ttmon_history_objects(const struct ttmon_history *h)
{
	return h->symtab.objects ? h->symtab.nr_objects : 1;
}

const struct ttmon_object *ttmon_history_object(const struct ttmon_history *h, size_t idx)
{
	static const struct ttmon_object none;

	if (idx >= ttmon_history_objects(h))
		return NULL;
	return h->symtab.objects ? &h->symtab.objects[idx] : &none;
}

const char *ttmon_history_symbol(const struct ttmon_history *h, const struct ttmon_frame *f, uint64_t *delta)
{
	return ttmon_symtab_get_symbol(&h->symtab, f, delta);
}

const char *ttmon_history_frame_name(const struct ttmon_history *h, const struct ttmon_frame *f, char *buf, size_t n)
{
	const struct ttmon_object *o = ttmon_symtab_get_object(&h->symtab, f->object);
	uint64_t delta;
	const char *name = ttmon_symtab_get_symbol(&h->symtab, f, &delta);

	if (!name || !o || !(o->flags & TTMON_OBJ_PYTHON))
		return name;
	return ttmon_python_line(buf, n, o->path, f->offset, name);
}

uint64_t ttmon_history_allocs(const struct ttmon_history *h)
{
	return h->next_seq;
}

const struct ttmon_alloc *ttmon_history_alloc(const struct ttmon_history *h, uint64_t seq)
{
	return ttmon_rec_by_seq(h, seq);
}

uint64_t ttmon_history_next(const struct ttmon_history *h, uint64_t seq)
{
	uint64_t next = ttmon_seqtab_next(&h->seqs, seq);

	return MIN(next, h->next_seq);
}

bool ttmon_history_event(const struct ttmon_alloc *a, uint32_t *pos, struct ttmon_aev *ev)
{
	/* An allocation with kept events has a block of its own, of which `traffic` is the first part. */
	return a->traffic->nr_events && ttmon_evlog_next(&((const struct ttmon_htraffic *)a->traffic)->log, pos, ev);
}

/* The range [lo, hi) around addr with the same answer. */
struct around {
	uint64_t lo, hi;
	bool several; /* registrations overlap here: the answer is for addr only */
};

/*
 * The allocation of this layer that holds addr, or NULL; the range is narrowed to where this layer
 * gives the same answer.
 */
static struct ttmon_alloc *look_in(const struct ttmon_history *h, const struct ttmon_ranges *r, uint64_t addr,
				   struct around *at)
{
	struct ttmon_ranges_pos pos, next;
	bool first = true, after;

	if (!ttmon_ranges_floor(r, addr, &pos)) {
		if (ttmon_ranges_seek(r, 0, &next))
			at->hi = MIN(at->hi, next.start);
		return NULL;
	}
	next = pos;
	after = ttmon_ranges_next(r, &next);
	do {
		struct ttmon_alloc *a = ttmon_rec_at(h, pos.val);
		uint64_t limit = pos.end == UINT64_MAX ? ttmon_rec_limit(a) : pos.end;

		if (addr < limit) {
			at->lo = MAX(at->lo, pos.start);
			at->hi = MIN(at->hi, limit);
			at->several = !first || (after && next.start < at->hi);
			return a;
		}
		at->lo = MAX(at->lo, limit);
		first = false;
	} while (ttmon_ranges_back(r, addr, &pos));
	/* An allocation of this layer may begin inside the one that a later layer finds. */
	if (after)
		at->hi = MIN(at->hi, next.start);
	return NULL;
}

/* Memory in no known mapping may be known by its copies. */
static struct ttmon_alloc *made_up(const struct ttmon_history *h, const struct ttmon_hproc *p, uint64_t addr)
{
	return p->layer[TTMON_LAYER_EXTENT].n ? ttmon_rec_holding(h, p, TTMON_LAYER_EXTENT, addr) : NULL;
}

static struct ttmon_alloc *look_up(const struct ttmon_history *h, struct ttmon_hproc *p, uint64_t addr, uint64_t *limit)
{
	struct around at = { .hi = UINT64_MAX };
	struct ttmon_alloc *a = NULL;
	unsigned int l;

	for (l = 0; l <= TTMON_LAYER_MAP && !a; l++) {
		if (p->layer[l].n)
			a = look_in(h, &p->layer[l], addr, &at);
		if (!a && p->remains)
			a = ttmon_condensed_at(h, p, l, addr, &at.hi);
	}
	/* More registrations before addr than those examined may reach into the range found. */
	if (l > TTMON_LAYER_REG + 1 && ttmon_rec_overlapping(h, p, TTMON_LAYER_REG, at.lo, addr))
		at.lo = addr;
	/* Where these tables do not have everything, the answer is for addr only. */
	if (!at.several && !p->remains)
		p->seen[p->next_seen++ % TTMON_SEEN] = (struct ttmon_seen){ at.lo, at.hi - at.lo, a };
	*limit = at.hi;
	return a ? a : made_up(h, p, addr);
}

struct ttmon_alloc *ttmon_views_at(const struct ttmon_history *h, struct ttmon_hproc *p, uint64_t addr, uint64_t *limit)
{
	for (unsigned int i = 0; i < TTMON_SEEN; i++) {
		const struct ttmon_seen *s = &p->seen[i];

		if (addr - s->lo < s->len) {
			*limit = s->lo + s->len;
			return s->a ? s->a : made_up(h, p, addr);
		}
	}
	return look_up(h, p, addr, limit);
}

/* Fewer allocations of a process are in the cache anyway. */
#define AHEAD_MIN 4096u

/* The host address of an event, 0: it has none, or it is not read ahead. */
static uint64_t host_address(const struct ttmon_event *ev)
{
	if (ev->kind == TTMON_EV_FREE)
		return ((const struct ttmon_ev_free *)ev)->addr;
	if (ev->kind != TTMON_EV_COPY)
		return 0;
	return ((const struct ttmon_ev_copy *)ev)->dir == TTMON_DIR_D2H ? ((const struct ttmon_ev_copy *)ev)->dst
									: ((const struct ttmon_ev_copy *)ev)->src;
}

static void read_lines(const void *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 64)
		__builtin_prefetch((const char *)at + i);
}

/*
 * The record is read first, a few events later its traffic, whose address is in it, and then the place
 * of the next kept event.
 */
void ttmon_history_ahead(struct ttmon_history *h, const struct ttmon_event *ev)
{
	uint64_t addr = host_address(ev);
	const struct ttmon_hproc *p = addr ? ttmon_procs_find(h, ev->tgid) : NULL;
	struct ttmon_alloc *a = NULL;
	struct ttmon_ranges_pos pos;

	for (unsigned int l = 0; p && l <= TTMON_LAYER_MAP && !a; l++)
		if (p->layer[l].n >= AHEAD_MIN && ttmon_ranges_floor(&p->layer[l], addr, &pos) && addr < pos.end)
			a = ttmon_rec_at(h, pos.val);
	if (a)
		read_lines(a, sizeof(*a));
	h->ahead[h->nr_ahead++ % TTMON_AHEAD] = a;
	a = h->ahead[(h->nr_ahead + 1) % TTMON_AHEAD];
	if (a && a->traffic)
		read_lines(a->traffic, offsetof(struct ttmon_htraffic, heat));
	a = h->ahead[h->nr_ahead % TTMON_AHEAD];
	if (a && a->traffic && a->traffic->nr_events) {
		const struct ttmon_evlog *log = &((const struct ttmon_htraffic *)a->traffic)->log;

		read_lines(log->buf + log->len, 1);
	}
}

const struct ttmon_alloc *ttmon_history_find(const struct ttmon_history *h, uint32_t tgid, uint64_t addr)
{
	struct ttmon_hproc *p = ttmon_procs_find(h, tgid);
	uint64_t limit;

	const struct ttmon_alloc *a = p && !p->pub.exit_ns ? ttmon_views_at(h, p, addr, &limit) : NULL;

	return a && !ttmon_rec_stands_in(a) ? a : NULL;
}

uint64_t ttmon_history_pinned_pages(const struct ttmon_history *h)
{
	return h->totals.pinned_pages;
}

void ttmon_history_get_totals(const struct ttmon_history *h, struct ttmon_history_totals *ret)
{
	*ret = h->totals;
}

size_t ttmon_history_errors(const struct ttmon_history *h, const struct ttmon_error_count **ret)
{
	*ret = h->errors;
	return h->nr_errors;
}

size_t ttmon_history_failures(const struct ttmon_history *h, const struct ttmon_failure **ret)
{
	bool none = h->failures[0].count == 0;

	*ret = h->failures + none;
	return h->nr_failures + !none;
}

void ttmon_history_pin_times(const struct ttmon_history *h, unsigned int method, bool unpin,
			     struct ttmon_pin_times *ret)
{
	*ret = method < TTMON_METHOD_MAX ? h->pin_times[method][unpin] : (struct ttmon_pin_times){ 0 };
}

size_t ttmon_history_blinds(const struct ttmon_history *h, const struct ttmon_blind **ret)
{
	*ret = h->blinds;
	return h->nr_blinds;
}

const struct ttmon_ev_clock *ttmon_history_clock(const struct ttmon_history *h)
{
	return h->has_clock ? &h->clock : NULL;
}
