// SPDX-License-Identifier: GPL-2.0-only
/*
 * transfers.c: the direction of each transfer, the kind of its host memory, and each allocation's
 * share of it: sums, heat, kept events. Part of the history (hot thread, pure).
 *
 * A direction that the call gives is believed. The direction of cudaMemcpyDefault (and every cuMemcpy)
 * is found by looking both pointers up. A pointer in no known memory is on the device when every host
 * mapping is known, which takes a list and traced mmap. Without traced mmap a list is soon outdated,
 * so there the known side decides: the unknown pointer is on the other side.
 *
 * Only a record with transfers has a block for its traffic. A transfer of a provisional mapping counts
 * as one of unknown memory, but is not settled: the list of mappings may still show that the memory
 * was pageable.
 */
#include "daemon/core/history/history_int.h"

/*
 * The user with the most events is searched again after so many payments; a record of that user is
 * searched among so many.
 */
#define EVENT_PAYMENTS 256u
#define EVENT_LOOKS    1024u

const struct ttmon_traffic ttmon_no_traffic;

/* NULL: it has no transfers. */
static struct ttmon_htraffic *traffic_of(const struct ttmon_alloc *a)
{
	return a->traffic == &ttmon_no_traffic ? NULL : (struct ttmon_htraffic *)(uintptr_t)a->traffic;
}

static void count_events(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t more, uint64_t less)
{
	h->totals.events_kept += more - less;
	h->users[p->user].events += more - less;
	p->events += more - less;
}

void ttmon_traffic_drop(struct ttmon_history *h, struct ttmon_alloc *a)
{
	struct ttmon_htraffic *t = traffic_of(a);

	if (!t)
		return;
	count_events(h, h->procs[a->proc], 0, t->pub.nr_events);
	ttmon_evlog_fini(&t->log);
	free(t->heat);
	free(t->pub.page_heat);
	free(t->pub.gpu);
	free(t->pub.sampled);
	free(t);
}

/* The same, made if there is none; NULL: no memory. */
static struct ttmon_htraffic *traffic(struct ttmon_history *h, struct ttmon_alloc *a)
{
	struct ttmon_htraffic *t = traffic_of(a);

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (t)
		a->traffic = &t->pub;
	else
		ttmon_history_no_memory(h);
	return t;
}

/*
 * Makes room for an event of p: a record of the user with the most events gives its events up. False:
 * that is p's own user, or no record was found in time.
 */
static bool make_event_room(struct ttmon_history *h, const struct ttmon_hproc *p)
{
	if (!h->events_payments) {
		h->events_payer = ttmon_users_most_events(h);
		h->events_payments = EVENT_PAYMENTS;
	}
	h->events_payments--;
	if (p->user == h->events_payer)
		return false;
	for (unsigned int n = 0; n < EVENT_LOOKS; n++) {
		struct ttmon_alloc *a = ttmon_rec_next(h, &h->events_hand);
		struct ttmon_htraffic *t = a ? traffic_of(a) : NULL;
		struct ttmon_hproc *of = t ? h->procs[a->proc] : NULL;
		uint32_t had;

		if (!t || of->user != h->events_payer || !t->pub.nr_events)
			continue;
		had = t->pub.nr_events;
		ttmon_evlog_fini(&t->log);
		t->pub.nr_events = 0;
		t->pub.events_dropped += had;
		count_events(h, of, 0, had);
		h->totals.events_dropped += had;
		ttmon_users_paid(h, of, TTMON_QUOTA_EVENTS, had);
		return true;
	}
	return false;
}

static void keep_event(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_htraffic *t,
		       const struct ttmon_aev *ev)
{
	uint32_t most = h->cfg.keep_all ? TTMON_ALLOC_EVENTS_ALL : TTMON_ALLOC_EVENTS;

	if (t->pub.nr_events >= most) {
		uint32_t n = ttmon_evlog_drop(&t->log, most / 2);

		t->pub.nr_events -= n;
		t->pub.events_dropped += n;
		count_events(h, p, 0, n);
		h->totals.events_trimmed += n;
	}
	if (h->totals.events_kept < h->cfg.max_events || make_event_room(h, p)) {
		if (ttmon_evlog_add(&t->log, ev) == 0) {
			t->pub.nr_events++;
			count_events(h, p, 1, 0);
			return;
		}
		ttmon_history_no_memory(h);
	} else {
		ttmon_users_paid(h, p, TTMON_QUOTA_EVENTS, 1);
	}
	t->pub.events_dropped++;
	h->totals.events_dropped++;
}

void ttmon_rec_event(struct ttmon_history *h, struct ttmon_alloc *a, const struct ttmon_aev *ev)
{
	struct ttmon_htraffic *t = traffic(h, a);

	if (a->cold && ev->kind == TTMON_AEV_DEVICE_PTR)
		ttmon_live_in_place(h, a, ev->ts_ns);
	if (!t) {
		h->totals.events_dropped++;
		return;
	}
	if (ev->kind == TTMON_AEV_UNREGISTER)
		ttmon_live_unregistered(a, &t->hot);
	keep_event(h, h->procs[a->proc], t, ev);
}

/* A fact about several allocations is split in proportion; a count that is not 0 stays at least 1. */
static uint64_t part(uint64_t n, uint64_t bytes, uint64_t of)
{
	uint64_t p = (uint64_t)((unsigned __int128)n * bytes / of);

	return p || !n ? p : 1;
}

void ttmon_rec_gpu_use(struct ttmon_history *h, struct ttmon_alloc *a, const struct ttmon_ev_gpu_use *ev,
		       uint64_t bytes)
{
	struct ttmon_htraffic *t = traffic(h, a);
	struct ttmon_gpu_use *use = t ? t->pub.gpu : NULL;
	/* A kernel that ran when the memory was made did not use it before. */
	uint64_t first_ns = MAX(ev->h.ts_ns, a->alloc_ns);
	/* It may have been launched long ago, and still run. */
	uint64_t last_ns = MAX(first_ns, h->now_ns);

	if (t && !use) {
		use = t->pub.gpu = calloc(1, sizeof(*use));
		if (!use)
			ttmon_history_no_memory(h);
		else
			use->first_ns = first_ns;
	}
	if (!use)
		return;
	use->reads += part(ev->reads, bytes, ev->size);
	use->writes += part(ev->writes, bytes, ev->size);
	use->sectors += part(ev->sectors, bytes, ev->size);
	use->first_ns = MIN(use->first_ns, first_ns);
	use->last_ns = MAX(use->last_ns, a->free_ns ? MIN(last_ns, a->free_ns) : last_ns);
	if (a->cold && !a->free_ns)
		ttmon_live_warm(h, a, last_ns);
}

void ttmon_traffic_resized(const struct ttmon_alloc *a)
{
	struct ttmon_htraffic *t = traffic_of(a);

	if (t && t->pub.page_heat)
		ttmon_page_heat_grow(t->pub.page_heat, a->size);
}

static struct ttmon_page_heat *page_heat(struct ttmon_history *h, struct ttmon_traffic *t, uint64_t size)
{
	if (t->page_heat)
		return t->page_heat;
	t->page_heat = malloc(sizeof(*t->page_heat));
	if (t->page_heat)
		ttmon_page_heat_init(t->page_heat, size, h->page_size);
	else
		ttmon_history_no_memory(h);
	return t->page_heat;
}

/* Adds the bucket of the latest transfers to the heat. */
static void settle_heat(struct ttmon_history *h, struct ttmon_htraffic *tr)
{
	bool fresh = !tr->heat;

	if (!tr->now.copies)
		return;
	if (fresh)
		tr->heat = malloc(sizeof(*tr->heat));
	if (tr->heat)
		ttmon_heat_add_now(tr->heat, &tr->now, fresh);
	else
		ttmon_history_no_memory(h);
	tr->now = (struct ttmon_heat_now){ 0 };
}

bool ttmon_history_heat(const struct ttmon_alloc *a, struct ttmon_heat *ret)
{
	const struct ttmon_htraffic *t = traffic_of(a);

	if (!t || (!t->heat && !t->now.copies))
		return false;
	if (t->heat)
		*ret = *t->heat;
	ttmon_heat_add_now(ret, &t->now, !t->heat);
	return true;
}

/* Heat begins with the first transfer. */
static void warm(struct ttmon_history *h, const struct ttmon_alloc *a, struct ttmon_htraffic *tr,
		 const struct ttmon_touch *t)
{
	struct ttmon_page_heat *ph;

	if (!ttmon_heat_now_add(&tr->now, t->ts_ns, t->bytes)) {
		settle_heat(h, tr);
		ttmon_heat_now_begin(&tr->now, tr->heat, a->alloc_ns, t->ts_ns, t->bytes);
	}
	if (a->size < h->cfg.page_heat_bytes)
		return;
	ph = page_heat(h, &tr->pub, a->size);
	if (ph && t->rect)
		ttmon_page_heat_touch_rect(ph, t->offset, t->rect);
	else if (ph)
		ttmon_page_heat_touch(ph, t->offset, t->bytes);
}

static void add_sample(struct ttmon_sampled *s, uint64_t weight, uint64_t bytes)
{
	double by = (double)weight * (double)(weight - 1);

	s->told++;
	s->copies += weight - 1;
	s->bytes = ttmon_end_of(s->bytes, ttmon_mul_sat(weight - 1, bytes));
	s->copies_var += by;
	s->bytes_var += by * (double)bytes * (double)bytes;
}

static void sample(struct ttmon_history *h, struct ttmon_traffic *tr, const struct ttmon_touch *t)
{
	if (!tr->sampled)
		tr->sampled = calloc(TTMON_RDIR_MAX, sizeof(*tr->sampled));
	if (tr->sampled)
		add_sample(&tr->sampled[t->rdir], t->weight, t->bytes);
	else
		ttmon_history_no_memory(h);
}

void ttmon_rec_transfer(struct ttmon_history *h, struct ttmon_alloc *a, const struct ttmon_touch *t)
{
	struct ttmon_aev ev = { .ts_ns = t->ts_ns,
				.kind = (uint8_t)t->kind,
				.mem = (uint8_t)t->mem,
				.bits = t->bits,
				.bytes = t->bytes,
				.offset = t->offset };
	struct ttmon_htraffic *tr = ttmon_rec_stands_in(a) ? NULL : traffic(h, a);
	struct ttmon_site *site = &h->sites.v[a->site];

	a->states |= TTMON_ST_TRANSFERRED | TTMON_ST_POPULATED;
	/* A site that is not resolved yet gets the sums later. */
	if (!(a->bits & TTMON_AL_SITE_QUEUED) && (t->rdir == TTMON_RDIR_H2D || t->rdir == TTMON_RDIR_D2H)) {
		struct ttmon_xfer *x = t->rdir == TTMON_RDIR_H2D ? site->h2d : site->d2h;

		x[ttmon_rec_mem(a)].copies++;
		x[ttmon_rec_mem(a)].bytes += t->bytes;
	}
	if (ttmon_rec_stands_in(a))
		return;
	if (!tr) {
		h->totals.events_dropped++;
		return;
	}
	tr->pub.copies[t->rdir] += tr->pub.copies[t->rdir] != UINT32_MAX;
	tr->pub.bytes[t->rdir] += t->bytes;
	tr->pub.last_copy_ns = MAX(tr->pub.last_copy_ns, t->ts_ns);
	if (t->weight > 1)
		sample(h, &tr->pub, t);
	warm(h, a, tr, t);
	keep_event(h, h->procs[a->proc], tr, &ev);
	if (t->mem == TTMON_MEM_PAGEABLE && (t->rdir == TTMON_RDIR_H2D || t->rdir == TTMON_RDIR_D2H) && !tr->hot.said)
		ttmon_live_became_hot(h, a, &tr->hot, t->ts_ns);
	else if (a->cold)
		ttmon_live_warm(h, a, t->ts_ns);
}

/* Merges both event streams in order of time, with offsets from dst's start. */
static int merge_logs(struct ttmon_evlog *to, const struct ttmon_evlog *a, const struct ttmon_evlog *b, uint64_t shift)
{
	struct ttmon_aev ea = { 0 }, eb = { 0 }, out;
	uint32_t pa = 0, pb = 0;
	bool ha = ttmon_evlog_next(a, &pa, &ea), hb = ttmon_evlog_next(b, &pb, &eb);

	while (ha || hb) {
		bool from_b = hb && (!ha || eb.ts_ns < ea.ts_ns);

		out = from_b ? eb : ea;
		if (from_b)
			out.offset += shift;
		if (ttmon_evlog_add(to, &out) < 0)
			return -ENOMEM;
		if (from_b)
			hb = ttmon_evlog_next(b, &pb, &eb);
		else
			ha = ttmon_evlog_next(a, &pa, &ea);
	}
	return 0;
}

static void merge_heat(struct ttmon_history *h, struct ttmon_htraffic *to, struct ttmon_htraffic *from)
{
	settle_heat(h, to);
	settle_heat(h, from);
	if (!to->heat)
		to->heat = TAKE_PTR(from->heat);
	else if (from->heat)
		ttmon_heat_merge(to->heat, from->heat);
}

static void merge_page_heat(struct ttmon_history *h, const struct ttmon_alloc *dst, struct ttmon_traffic *to,
			    const struct ttmon_alloc *src, struct ttmon_traffic *from, uint64_t shift)
{
	struct ttmon_page_heat *ph;

	if (!from->copies[TTMON_RDIR_H2D] && !from->copies[TTMON_RDIR_D2H])
		return;
	if (dst->size < h->cfg.page_heat_bytes)
		return;
	ph = page_heat(h, to, dst->size);
	if (!ph)
		return;
	if (!from->page_heat) {
		ttmon_page_heat_touch(ph, shift, src->size);
		return;
	}
	for (unsigned int i = 0; i < TTMON_PAGE_GROUPS; i++) {
		uint64_t at = shift + i * from->page_heat->group_bytes;
		uint64_t group = at / ph->group_bytes;

		if (from->page_heat->copies[i] && group < TTMON_PAGE_GROUPS)
			ph->copies[group] += from->page_heat->copies[i];
	}
}

static void merge_gpu(struct ttmon_traffic *to, struct ttmon_traffic *from)
{
	if (!to->gpu) {
		to->gpu = TAKE_PTR(from->gpu);
	} else if (from->gpu) {
		to->gpu->reads += from->gpu->reads;
		to->gpu->writes += from->gpu->writes;
		to->gpu->sectors += from->gpu->sectors;
		to->gpu->first_ns = MIN(to->gpu->first_ns, from->gpu->first_ns);
		to->gpu->last_ns = MAX(to->gpu->last_ns, from->gpu->last_ns);
		memset(from->gpu, 0, sizeof(*from->gpu));
	}
}

static void merge_sampled(struct ttmon_traffic *to, struct ttmon_traffic *from)
{
	if (!to->sampled) {
		to->sampled = TAKE_PTR(from->sampled);
		return;
	}
	for (unsigned int d = 0; from->sampled && d < TTMON_RDIR_MAX; d++) {
		to->sampled[d].told += from->sampled[d].told;
		to->sampled[d].copies += from->sampled[d].copies;
		to->sampled[d].bytes = ttmon_end_of(to->sampled[d].bytes, from->sampled[d].bytes);
		to->sampled[d].copies_var += from->sampled[d].copies_var;
		to->sampled[d].bytes_var += from->sampled[d].bytes_var;
	}
	free(from->sampled);
	from->sampled = NULL;
}

void ttmon_rec_merge(struct ttmon_history *h, struct ttmon_alloc *dst, struct ttmon_alloc *src)
{
	uint64_t shift = src->addr > dst->addr ? src->addr - dst->addr : 0;
	struct ttmon_evlog log = { 0 };
	struct ttmon_htraffic *to, *from = traffic_of(src);

	ttmon_siteq_inherit(h, dst, src);
	if (!from)
		return;
	to = traffic(h, dst);
	if (!to || merge_logs(&log, &to->log, &from->log, shift) < 0) {
		ttmon_evlog_fini(&log);
		ttmon_history_no_memory(h);
		return;
	}
	ttmon_evlog_fini(&to->log);
	ttmon_evlog_fini(&from->log);
	to->log = log;
	for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++) {
		to->pub.copies[d] += from->pub.copies[d];
		to->pub.bytes[d] += from->pub.bytes[d];
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(to->unsettled); i++) {
		to->unsettled[i].copies += from->unsettled[i].copies;
		to->unsettled[i].bytes += from->unsettled[i].bytes;
		to->unproven[i].copies += from->unproven[i].copies;
		to->unproven[i].bytes += from->unproven[i].bytes;
	}
	memset(from->unsettled, 0, sizeof(from->unsettled));
	memset(from->unproven, 0, sizeof(from->unproven));
	to->pub.nr_events += from->pub.nr_events;
	to->pub.events_dropped += from->pub.events_dropped;
	from->pub.nr_events = 0;
	merge_heat(h, to, from);
	merge_page_heat(h, dst, &to->pub, src, &from->pub, shift);
	memset(from->pub.copies, 0, sizeof(from->pub.copies));
	memset(from->pub.bytes, 0, sizeof(from->pub.bytes));
	to->pub.last_copy_ns = MAX(to->pub.last_copy_ns, from->pub.last_copy_ns);
	merge_gpu(&to->pub, &from->pub);
	merge_sampled(&to->pub, &from->pub);
	dst->alloc_ns = MIN(dst->alloc_ns, src->alloc_ns);
	dst->made_nth = MIN(dst->made_nth, src->made_nth);
	dst->states |= src->states & (TTMON_ST_TRANSFERRED | TTMON_ST_POPULATED);
	ttmon_rec_hot(h, dst);
}

void ttmon_rec_hot(struct ttmon_history *h, struct ttmon_alloc *a)
{
	struct ttmon_htraffic *t = traffic_of(a);

	if (t && ttmon_rec_mem(a) == TTMON_MEM_PAGEABLE &&
	    (t->pub.copies[TTMON_RDIR_H2D] || t->pub.copies[TTMON_RDIR_D2H]))
		ttmon_live_became_hot(h, a, &t->hot, t->pub.last_copy_ns);
}

/* Counted as of unknown memory; a free may show that it was pinned. */
static void unprove(struct ttmon_alloc *a, unsigned int rdir, uint64_t bytes)
{
	struct ttmon_htraffic *t = traffic_of(a);

	if (!t)
		return;
	t->unproven[rdir == TTMON_RDIR_D2H].copies++;
	t->unproven[rdir == TTMON_RDIR_D2H].bytes += bytes;
}

void ttmon_rec_unsettle(struct ttmon_history *h, struct ttmon_alloc *a, unsigned int rdir, uint64_t bytes)
{
	struct ttmon_xfer *of_proc = &h->procs[a->proc]->pub.unsettled[rdir];
	struct ttmon_htraffic *t = traffic_of(a);
	struct ttmon_xfer *x;

	/* Without memory for the block, the count is final. */
	if (!t)
		return;
	x = &t->unsettled[rdir == TTMON_RDIR_D2H];
	x->copies++;
	x->bytes += bytes;
	of_proc->copies++;
	of_proc->bytes += bytes;
	h->totals.unsettled[rdir].copies++;
	h->totals.unsettled[rdir].bytes += bytes;
}

struct ttmon_xfer ttmon_rec_settle(struct ttmon_history *h, struct ttmon_alloc *a, unsigned int rdir)
{
	struct ttmon_proc *p = &h->procs[a->proc]->pub;
	struct ttmon_htraffic *t = traffic_of(a);
	struct ttmon_xfer x = { 0 };

	if (!t || !t->unsettled[rdir == TTMON_RDIR_D2H].copies)
		return x;
	x = t->unsettled[rdir == TTMON_RDIR_D2H];
	t->unsettled[rdir == TTMON_RDIR_D2H] = (struct ttmon_xfer){ 0 };
	p->changes++;
	p->unsettled[rdir].copies -= x.copies;
	p->unsettled[rdir].bytes -= x.bytes;
	h->totals.unsettled[rdir].copies -= x.copies;
	h->totals.unsettled[rdir].bytes -= x.bytes;
	return x;
}

enum side { SIDE_UNKNOWN, SIDE_HOST, SIDE_DEVICE };

struct end {
	uint64_t addr, span;	       /* span: bytes from the first to the last one, with gaps */
	const struct ttmon_rect *rect; /* NULL: contiguous */
	bool array;
};

struct transfer {
	struct ttmon_hproc *p;
	uint64_t ts_ns, bytes;
	struct end dst, src;
	unsigned int rdir;
	uint16_t bits; /* without TTMON_B_SAMPLE, which is in the weight */
	uint64_t weight;
};

static uint64_t weight_of(uint16_t bits)
{
	return 1ULL << ((bits & TTMON_B_SAMPLE) >> TTMON_B_SAMPLE_SHIFT);
}

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

/*
 * The extent for a piece of host memory in no known mapping, or in a mapping that may hold many
 * allocations.
 */
static struct ttmon_alloc *piece_of(struct ttmon_history *h, struct transfer *t, struct ttmon_alloc *m, uint64_t at,
				    uint64_t end, bool first)
{
	struct ttmon_alloc *e;

	if (m && m->states & TTMON_ST_EXTENT)
		m = NULL;
	if (!m) {
		if (first) {
			t->p->pub.unmatched++;
			h->totals.unmatched++;
		}
		ttmon_maplist_want(h, t->p, t->ts_ns);
		if (t->p->pub.exit_ns)
			return NULL;
	}
	e = ttmon_extent_of(h, t->p, m, at, end, t->ts_ns);
	return e ? e : m;
}

/*
 * True for host memory whose copies are counted by extent: it may be one VMA that many calls made, or
 * in no known VMA.
 */
static bool by_extent(const struct ttmon_alloc *a)
{
	return !a || a->states & (TTMON_ST_MERGED | TTMON_ST_EXTENT);
}

/*
 * The end of the run of memory whose copies are counted by extent: [at, to) is such memory, the copy
 * ends at end. The heap grows between two lists.
 */
static uint64_t run_of(struct ttmon_history *h, struct transfer *t, uint64_t at, uint64_t to, uint64_t end)
{
	while (to < end && to > at) {
		uint64_t limit;
		const struct ttmon_alloc *next = ttmon_views_at(h, t->p, to, &limit);

		if (!by_extent(next))
			break;
		if (!next)
			ttmon_maplist_want(h, t->p, t->ts_ns);
		to = limit;
	}
	return MIN(to, end);
}

/*
 * One side of the transfer: each allocation that it touches gets its share. A rectangular copy counts
 * for the allocation that holds its beginning.
 */
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
		if (host && end > at && by_extent(a)) {
			len = run_of(h, t, at, at + len, end) - at;
			a = piece_of(h, t, a, at, at + len, first);
		}
		if (a) {
			ttmon_rec_look(h, t->p, a, t->ts_ns);
			struct ttmon_touch touch = {
				.ts_ns = t->ts_ns,
				.bytes = e->rect ? t->bytes : len,
				.offset = at - a->addr,
				.rdir = t->rdir,
				.kind = kind_of(t->rdir, src, a),
				.mem = ttmon_rec_mem(a),
				.bits = t->bits,
				.rect = e->rect,
				.weight = t->weight,
			};

			if (first && at + len < end)
				touch.bits |= TTMON_AB_STRADDLE;
			if (touch.mem == TTMON_MEM_PAGEABLE && (t->rdir == TTMON_RDIR_H2D || t->rdir == TTMON_RDIR_D2H))
				touch.bits |= TTMON_AB_STAGED;
			ttmon_rec_transfer(h, a, &touch);
			/* Only these are ever moved, see ttmon_copies_rebook(). */
			if (host && first && (t->rdir == TTMON_RDIR_H2D || t->rdir == TTMON_RDIR_D2H)) {
				if (a->bits & TTMON_AL_PROVISIONAL)
					ttmon_rec_unsettle(h, a, t->rdir, t->bytes);
				else if (a->states & TTMON_ST_UNSEEN)
					unprove(a, t->rdir, t->bytes);
			}
		}
		if (e->rect && a)
			return;
		at += len;
		first = false;
	}
}

/*
 * Kind of the host side's memory, by its first byte; unknown where neither or both ends are on the
 * device.
 */
static unsigned int mem_of(struct ttmon_history *h, const struct transfer *t)
{
	struct ttmon_alloc *a, *e;
	uint64_t limit, at = t->rdir == TTMON_RDIR_H2D ? t->src.addr : t->dst.addr;

	if (t->rdir == TTMON_RDIR_D2D || t->rdir == TTMON_RDIR_UNKNOWN)
		return TTMON_MEM_UNKNOWN;
	a = ttmon_views_at(h, t->p, at, &limit);
	if (a && a->states & TTMON_ST_MERGED) {
		e = ttmon_rec_holding(h, t->p, TTMON_LAYER_EXTENT, at);
		a = e ? e : a;
	}
	if (!a)
		return TTMON_MEM_UNKNOWN;
	ttmon_rec_look(h, t->p, a, t->ts_ns);
	return ttmon_rec_mem(a);
}

static void book(struct ttmon_history *h, struct transfer *t)
{
	struct ttmon_xfer *x;
	unsigned int mem;

	/* The sides first: they make the extents from which the kind follows. */
	book_side(h, t, true);
	book_side(h, t, false);
	mem = mem_of(h, t);
	x = &t->p->pub.xfer[t->rdir][mem];
	x->copies++;
	x->bytes += t->bytes;
	x = &h->totals.xfer[t->rdir][mem];
	x->copies++;
	x->bytes += t->bytes;
	if (t->weight > 1)
		add_sample(&t->p->pub.sampled[t->rdir], t->weight, t->bytes);
}

/* Failed and captured calls transfer nothing. False: nothing more to do. */
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

void ttmon_history_on_copy(struct ttmon_history *h, const struct ttmon_ev_copy *ev)
{
	struct ttmon_hproc *p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns);
	struct transfer t;

	if (!p || !counts(h, p, ev->err, ev->fn, ev->bits, ev->dir))
		return;
	/*
	 * Member by member: the compiler would clear omitted members with a string instruction, the slowest
	 * step here.
	 */
	t.p = p;
	t.ts_ns = ev->h.ts_ns;
	t.bytes = ev->bytes;
	t.bits = ev->bits & (uint16_t)~TTMON_B_SAMPLE;
	t.weight = weight_of(ev->bits);
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

void ttmon_history_on_copy_rect(struct ttmon_history *h, const struct ttmon_ev_copy_rect *ev)
{
	const struct ttmon_rect dst = { ev->width, ev->rows, ev->slices, ev->dpitch, ev->dslice };
	const struct ttmon_rect src = { ev->width, ev->rows, ev->slices, ev->spitch, ev->sslice };
	struct transfer t = {
		.p = ttmon_procs_get(h, ev->h.tgid, ev->h.ts_ns),
		.ts_ns = ev->h.ts_ns,
		.bytes = ttmon_mul_sat(ttmon_mul_sat(ev->width, ev->rows), ev->slices),
		.dst = end_at(ev->dst, span_of(&dst), &dst, ev->bits & TTMON_B_DST_ARRAY),
		.src = end_at(ev->src, span_of(&src), &src, ev->bits & TTMON_B_SRC_ARRAY),
		.bits = ev->bits & (uint16_t)~TTMON_B_SAMPLE,
		.weight = weight_of(ev->bits),
	};

	if (!t.p || !counts(h, t.p, ev->err, ev->fn, ev->bits, ev->dir))
		return;
	t.rdir = ev->dir == TTMON_DIR_DEFAULT ? resolve_default(h, &t) : ev->dir;
	book(h, &t);
}

static void move_xfer(struct ttmon_xfer *row, const struct ttmon_xfer *x, enum ttmon_mem mem)
{
	struct ttmon_xfer *from = &row[TTMON_MEM_UNKNOWN], *to = &row[mem];
	uint64_t copies = MIN(x->copies, from->copies), bytes = MIN(x->bytes, from->bytes);

	from->copies -= copies;
	from->bytes -= bytes;
	to->copies += copies;
	to->bytes += bytes;
}

static const enum ttmon_rdir dirs[] = { TTMON_RDIR_H2D, TTMON_RDIR_D2H };

void ttmon_copies_rebook(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_alloc *a, enum ttmon_mem mem)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(dirs); i++) {
		struct ttmon_site *s = &h->sites.v[a->site];
		enum ttmon_rdir d = dirs[i];
		struct ttmon_xfer booked = ttmon_rec_settle(h, a, d);
		struct ttmon_xfer share = { a->traffic->copies[d], a->traffic->bytes[d] };

		p->pub.unmatched -= booked.copies;
		h->totals.unmatched -= booked.copies;
		if (mem == TTMON_MEM_UNKNOWN) {
			struct ttmon_htraffic *t = traffic_of(a);

			if (t) {
				t->unproven[i].copies += booked.copies;
				t->unproven[i].bytes += booked.bytes;
			}
			continue;
		}
		move_xfer(p->pub.xfer[d], &booked, mem);
		move_xfer(h->totals.xfer[d], &booked, mem);
		/* Sites have the share of each piece of memory. */
		if (!(a->bits & TTMON_AL_SITE_QUEUED))
			move_xfer(d == TTMON_RDIR_H2D ? s->h2d : s->d2h, &share, mem);
	}
}

static void count_proven(struct ttmon_xfer *to, const struct ttmon_xfer *x)
{
	to->copies += x->copies;
	to->bytes += x->bytes;
}

void ttmon_copies_prove(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_alloc *a)
{
	struct ttmon_htraffic *t = traffic_of(a);

	for (unsigned int i = 0; t && i < ARRAY_SIZE(dirs); i++) {
		struct ttmon_xfer x = t->unproven[i];

		t->unproven[i] = (struct ttmon_xfer){ 0 };
		move_xfer(p->pub.xfer[dirs[i]], &x, TTMON_MEM_PINNED);
		move_xfer(h->totals.xfer[dirs[i]], &x, TTMON_MEM_PINNED);
		count_proven(&p->pub.proven[dirs[i]], &x);
		count_proven(&h->totals.proven[dirs[i]], &x);
	}
}
