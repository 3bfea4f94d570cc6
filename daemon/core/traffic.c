// SPDX-License-Identifier: GPL-2.0-only
/*
 * traffic.c: what was moved of an allocation: sums, heat, kept events. Part of the history (hot thread, pure).
 *
 * Only a record that was transferred has a block for it. A transfer of a made-up mapping is booked as one of unknown memory, but not
 * settled: the list of mappings may still show that the memory was pageable.
 */
#include "core/heat.h"
#include "core/history_int.h"

const struct ttmon_traffic ttmon_no_traffic;

/* NULL: it has none. */
static struct ttmon_htraffic *traffic_of(const struct ttmon_alloc *a)
{
	return a->traffic == &ttmon_no_traffic ? NULL : (struct ttmon_htraffic *)(uintptr_t)a->traffic;
}

void ttmon_traffic_drop(struct ttmon_history *h, struct ttmon_alloc *a)
{
	struct ttmon_htraffic *t = traffic_of(a);

	if (!t)
		return;
	h->totals.events_kept -= t->pub.nr_events;
	ttmon_evlog_fini(&t->log);
	free(t->pub.heat);
	free(t->pub.page_heat);
	free(t->pub.gpu);
	free(t);
}

/* The same, made if need be; NULL: no memory. */
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

static void keep_event(struct ttmon_history *h, struct ttmon_htraffic *t, const struct ttmon_aev *ev)
{
	if (!h->cfg.keep_all && t->pub.nr_events >= TTMON_ALLOC_EVENTS) {
		uint32_t n = ttmon_evlog_drop(&t->log, TTMON_ALLOC_EVENTS / 2);

		t->pub.nr_events -= n;
		t->pub.events_dropped += n;
		h->totals.events_kept -= n;
		h->totals.events_dropped += n;
	}
	if (h->totals.events_kept < h->cfg.max_events) {
		if (ttmon_evlog_add(&t->log, ev) == 0) {
			t->pub.nr_events++;
			h->totals.events_kept++;
			return;
		}
		ttmon_history_no_memory(h);
	}
	t->pub.events_dropped++;
	h->totals.events_dropped++;
	h->totals.incomplete = true;
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
	keep_event(h, t, ev);
}

/* Of a fact about several allocations each has its part, and at least one of what is not none. */
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
	/* A kernel that was running when the memory was made did not use it before. */
	uint64_t first_ns = MAX(ev->h.ts_ns, a->alloc_ns);
	/* It may have been launched long ago, and goes on. */
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

/* Heat begins with the first transfer. */
static void warm(struct ttmon_history *h, const struct ttmon_alloc *a, struct ttmon_traffic *tr,
		 const struct ttmon_touch *t)
{
	struct ttmon_page_heat *ph;

	if (!tr->heat) {
		tr->heat = malloc(sizeof(*tr->heat));
		if (!tr->heat) {
			ttmon_history_no_memory(h);
			return;
		}
		ttmon_heat_init(tr->heat, a->alloc_ns, t->ts_ns);
	}
	ttmon_heat_add(tr->heat, t->ts_ns, t->bytes);
	if (a->size < h->cfg.page_heat_bytes)
		return;
	ph = page_heat(h, tr, a->size);
	if (ph && t->rect)
		ttmon_page_heat_touch_rect(ph, t->offset, t->rect);
	else if (ph)
		ttmon_page_heat_touch(ph, t->offset, t->bytes);
}

void ttmon_rec_transfer(struct ttmon_history *h, struct ttmon_alloc *a, const struct ttmon_touch *t)
{
	struct ttmon_aev ev = { .ts_ns = t->ts_ns,
				.kind = (uint8_t)t->kind,
				.mem = (uint8_t)t->mem,
				.bits = t->bits,
				.bytes = t->bytes,
				.offset = t->offset };
	struct ttmon_htraffic *tr = traffic(h, a);
	struct ttmon_site *site = &h->sites.v[a->site];

	a->states |= TTMON_ST_TRANSFERRED | TTMON_ST_POPULATED;
	/* A site that is not known yet gets the sums when it is. */
	if (!(a->bits & TTMON_AL_SITE_QUEUED) && (t->rdir == TTMON_RDIR_H2D || t->rdir == TTMON_RDIR_D2H)) {
		struct ttmon_xfer *x = t->rdir == TTMON_RDIR_H2D ? site->h2d : site->d2h;

		x[ttmon_rec_mem(a)].copies++;
		x[ttmon_rec_mem(a)].bytes += t->bytes;
	}
	if (!tr) {
		h->totals.events_dropped++;
		return;
	}
	tr->pub.copies[t->rdir] += tr->pub.copies[t->rdir] != UINT32_MAX;
	tr->pub.bytes[t->rdir] += t->bytes;
	tr->pub.last_copy_ns = MAX(tr->pub.last_copy_ns, t->ts_ns);
	warm(h, a, &tr->pub, t);
	keep_event(h, tr, &ev);
	if (t->mem == TTMON_MEM_PAGEABLE && t->rdir == TTMON_RDIR_H2D && !tr->hot.said)
		ttmon_live_hot(h, a, &tr->hot, t->ts_ns);
	else if (a->cold)
		ttmon_live_warm(h, a, t->ts_ns);
}

/* Both event streams in order of time, offsets from dst's start on. */
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

static void merge_heat(struct ttmon_history *h, const struct ttmon_alloc *dst, struct ttmon_traffic *to,
		       const struct ttmon_alloc *src, struct ttmon_traffic *from, uint64_t shift)
{
	struct ttmon_page_heat *ph;

	if (!to->heat)
		to->heat = TAKE_PTR(from->heat);
	else if (from->heat)
		ttmon_heat_merge(to->heat, from->heat);
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
	}
	memset(from->unsettled, 0, sizeof(from->unsettled));
	to->pub.nr_events += from->pub.nr_events;
	to->pub.events_dropped += from->pub.events_dropped;
	from->pub.nr_events = 0;
	merge_heat(h, dst, &to->pub, src, &from->pub, shift);
	memset(from->pub.copies, 0, sizeof(from->pub.copies));
	memset(from->pub.bytes, 0, sizeof(from->pub.bytes));
	to->pub.last_copy_ns = MAX(to->pub.last_copy_ns, from->pub.last_copy_ns);
	merge_gpu(&to->pub, &from->pub);
	dst->alloc_ns = MIN(dst->alloc_ns, src->alloc_ns);
	dst->made_nth = MIN(dst->made_nth, src->made_nth);
	dst->states |= src->states & (TTMON_ST_TRANSFERRED | TTMON_ST_POPULATED);
	if (ttmon_rec_mem(dst) == TTMON_MEM_PAGEABLE && to->pub.copies[TTMON_RDIR_H2D])
		ttmon_live_hot(h, dst, &to->hot, to->pub.last_copy_ns);
}

void ttmon_rec_unsettle(struct ttmon_history *h, struct ttmon_alloc *a, unsigned int rdir, uint64_t bytes)
{
	struct ttmon_xfer *of_proc = &h->procs[a->proc]->pub.unsettled[rdir];
	struct ttmon_htraffic *t = traffic_of(a);
	struct ttmon_xfer *x;

	/* Without memory for it, it stays booked as it is. */
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
