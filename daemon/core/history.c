// SPDX-License-Identifier: GPL-2.0-only
/*
 * history.c: the allocation history (history.h): its life, which part takes which record, and the passing of time.
 *
 * Runs in the hot thread, one record at a time. Pure: no clock, file, thread or log; the same records and ticks give the same
 * tables. Whatever does not fit or finds no memory is counted and marks the history incomplete; nothing is ever fatal.
 */
#include <ttmon/family.h>

#include "core/history_int.h"

#define DEFAULT_ALLOCATIONS 1000000
#define DEFAULT_EVENTS	    10000000

void ttmon_history_no_memory(struct ttmon_history *h)
{
	h->totals.no_memory++;
	h->totals.incomplete = true;
}

static uint64_t or_default(uint64_t v, uint64_t value)
{
	return v ? v : value;
}

int ttmon_history_new(const struct ttmon_history_cfg *cfg, struct ttmon_history **ret)
{
	struct ttmon_history *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->cfg = *cfg;
	h->cfg.max_allocations = or_default(cfg->max_allocations, DEFAULT_ALLOCATIONS);
	h->cfg.max_events = or_default(cfg->max_events, DEFAULT_EVENTS);
	h->cfg.fold_ns = or_default(cfg->fold_ns, 60 * NSEC_PER_SEC);
	h->cfg.page_heat_bytes = or_default(cfg->page_heat_bytes, 1 << 20);
	h->cfg.pageable_bps = or_default(cfg->pageable_bps, 6000000000);
	h->cfg.pinned_bps = or_default(cfg->pinned_bps, 24000000000);
	h->cfg.pinning_bps = or_default(cfg->pinning_bps, 1500000000);
	h->cfg.cold_age_ns = or_default(cfg->cold_age_ns, 100 * NSEC_PER_MS);
	h->page_size = 4096;
	h->now_ns = cfg->start_ns;
	h->free_id = UINT32_MAX;
	h->freed.elem = sizeof(uint64_t);
	h->exited.elem = sizeof(struct ttmon_exited);
	h->dead.elem = sizeof(uint32_t);
	h->reusable.elem = sizeof(uint32_t);
	h->siteq.elem = sizeof(struct ttmon_site_op);
	ttmon_live_init(h);
	ttmon_symtab_init(&h->symtab);
	if (ttmon_sites_init(&h->sites) < 0) {
		ttmon_history_free(h);
		return -ENOMEM;
	}
	*ret = h;
	return 0;
}

void ttmon_history_free(struct ttmon_history *h)
{
	if (!h)
		return;
	ttmon_rec_fini(h);
	ttmon_procs_fini(h);
	ttmon_sites_fini(&h->sites);
	ttmon_symtab_fini(&h->symtab);
	ttmon_fifo_fini(&h->siteq);
	ttmon_advice_fini(h);
	ttmon_live_fini(h);
	ttmon_checkpoints_fini(h);
	free(h->blinds);
	free(h);
}

static void apply_clock(struct ttmon_history *h, const struct ttmon_ev_clock *ev)
{
	uint64_t page = ev->page_size;

	if (h->has_clock)
		return;
	h->clock = *ev;
	h->clock.hostname[sizeof(h->clock.hostname) - 1] = '\0';
	h->clock.release[sizeof(h->clock.release) - 1] = '\0';
	h->has_clock = true;
	/* Pages that are counted already were counted with the old size. */
	if (page >= 4096 && page <= 1 << 20 && !(page & (page - 1)) && !h->totals.pins)
		h->page_size = page;
	else if (page != h->page_size)
		h->totals.malformed_facts++;
}

static void apply_blind(struct ttmon_history *h, const struct ttmon_ev_blind *ev)
{
	struct ttmon_hproc *p = ttmon_procs_find(h, ev->h.tgid);

	if (h->nr_blinds >= TTMON_BLINDS_MAX) {
		h->totals.incomplete = true;
		return;
	}
	if (h->nr_blinds == h->cap_blinds) {
		uint32_t cap = h->cap_blinds ? h->cap_blinds * 2 : 16;
		struct ttmon_blind *v = realloc(h->blinds, cap * sizeof(*v));

		if (!v) {
			ttmon_history_no_memory(h);
			return;
		}
		h->blinds = v;
		h->cap_blinds = cap;
	}
	h->blinds[h->nr_blinds++] = (struct ttmon_blind){
		.object = ev->object,
		.tgid = ev->h.tgid,
		.mapped_ns = ev->mapped_ns,
		.active_ns = ev->active_ns,
		.held = ev->held != 0,
	};
	if (p && !ev->held)
		p->numbers.gap = true;
}

static void count_fact(struct ttmon_history *h, int err)
{
	if (err == -ENOMEM)
		ttmon_history_no_memory(h);
	else if (err == -ENOSPC)
		h->totals.incomplete = true;
	else if (err)
		h->totals.malformed_facts++;
}

static void apply_family(struct ttmon_history *h, const struct ttmon_ev_family *ev)
{
	bool on = ev->state == TTMON_FAMILY_ON;

	h->totals.reduced |= !on;
	if (ev->family == TTMON_FAMILY_TRANSFER)
		ttmon_live_seen(h, on, ev->h.ts_ns);
	if (ev->family == TTMON_FAMILY_LAUNCH && !on)
		h->launches_on_ns = UINT64_MAX;
	else if (ev->family == TTMON_FAMILY_LAUNCH && h->launches_on_ns == UINT64_MAX)
		h->launches_on_ns = ev->h.ts_ns;
	/* Whether an address in no mapping may be host memory after all. Lists of mappings come before the fact that it is on. */
	if (ev->family == TTMON_FAMILY_MMAP)
		h->clock.options =
			on ? h->clock.options | TTMON_OPT_MMAP : h->clock.options & ~(uint32_t)TTMON_OPT_MMAP;
}

static void apply_fact(struct ttmon_history *h, const struct ttmon_event *ev)
{
	switch (ev->kind) {
	case TTMON_EV_CLOCK:
		apply_clock(h, (const struct ttmon_ev_clock *)ev);
		break;
	case TTMON_EV_FAMILY:
		apply_family(h, (const struct ttmon_ev_family *)ev);
		break;
	case TTMON_EV_PROC_NAME:
		ttmon_procs_text(h, (const struct ttmon_ev_text *)ev);
		break;
	case TTMON_EV_OBJECT:
		count_fact(h, ttmon_symtab_object(&h->symtab, (const struct ttmon_ev_object *)ev));
		break;
	case TTMON_EV_SYMBOL:
		count_fact(h, ttmon_symtab_symbol(&h->symtab, (const struct ttmon_ev_symbol *)ev));
		break;
	case TTMON_EV_MAP:
		ttmon_maplist_map(h, (const struct ttmon_ev_map *)ev);
		break;
	case TTMON_EV_GONE:
		ttmon_procs_gone(h, (const struct ttmon_ev_gone *)ev);
		break;
	case TTMON_EV_LAUNCH_SUMS:
		ttmon_procs_launch_sums(h, (const struct ttmon_ev_launch_sums *)ev);
		break;
	case TTMON_EV_MAPS_DONE:
		ttmon_maplist_done(h, (const struct ttmon_ev_maps_done *)ev);
		break;
	case TTMON_EV_GPU_USE:
		ttmon_calls_gpu_use(h, (const struct ttmon_ev_gpu_use *)ev);
		break;
	case TTMON_EV_BLIND:
		apply_blind(h, (const struct ttmon_ev_blind *)ev);
		break;
	default: /* LOST: the pipeline's */
		break;
	}
}

void ttmon_history_apply(struct ttmon_history *h, const struct ttmon_event *ev, size_t size, bool late)
{
	(void)size;
	if (ev->kind >= TTMON_EV_FACT) {
		apply_fact(h, ev);
		return;
	}
	h->totals.late += late;
	h->now_ns = MAX(h->now_ns, ev->ts_ns);
	switch (ev->kind) {
	case TTMON_EV_PROC:
		ttmon_procs_proc(h, (const struct ttmon_ev_proc *)ev);
		break;
	case TTMON_EV_EXIT:
		ttmon_procs_exit(h, (const struct ttmon_ev_exit *)ev);
		break;
	case TTMON_EV_ALLOC:
		ttmon_calls_alloc(h, (const struct ttmon_ev_alloc *)ev);
		break;
	case TTMON_EV_FREE:
		ttmon_calls_free(h, (const struct ttmon_ev_free *)ev);
		break;
	case TTMON_EV_COPY:
		ttmon_copies_copy(h, (const struct ttmon_ev_copy *)ev);
		break;
	case TTMON_EV_COPY_RECT:
		ttmon_copies_rect(h, (const struct ttmon_ev_copy_rect *)ev);
		break;
	case TTMON_EV_HINT:
		ttmon_calls_hint(h, (const struct ttmon_ev_hint *)ev);
		break;
	case TTMON_EV_RESET:
		ttmon_calls_reset(h, (const struct ttmon_ev_reset *)ev);
		break;
	case TTMON_EV_LAUNCHES:
		ttmon_procs_launches(h, (const struct ttmon_ev_launches *)ev);
		break;
	case TTMON_EV_LAUNCHED:
		ttmon_procs_launched(h, (const struct ttmon_ev_launched *)ev);
		break;
	case TTMON_EV_COPY_SITE:
		ttmon_calls_copy_site(h, (const struct ttmon_ev_copy_site *)ev);
		break;
	case TTMON_EV_TAG:
		ttmon_calls_tag(h, (const struct ttmon_ev_tag *)ev);
		break;
	case TTMON_EV_CHECKPOINT:
		ttmon_checkpoints_apply(h, (const struct ttmon_ev_checkpoint *)ev);
		break;
	case TTMON_EV_MMAP:
		ttmon_hostmem_mmap(h, (const struct ttmon_ev_mmap *)ev);
		break;
	case TTMON_EV_MUNMAP:
		ttmon_hostmem_munmap(h, (const struct ttmon_ev_munmap *)ev);
		break;
	case TTMON_EV_MREMAP:
		ttmon_hostmem_mremap(h, (const struct ttmon_ev_mremap *)ev);
		break;
	case TTMON_EV_TT_PIN:
		ttmon_ttpins_apply(h, (const struct ttmon_ev_tt_pin *)ev);
		break;
	case TTMON_EV_BRK:
		ttmon_hostmem_brk(h, (const struct ttmon_ev_brk *)ev);
		break;
	default:
		break;
	}
}

void ttmon_history_tick(struct ttmon_history *h, uint64_t now_ns)
{
	h->now_ns = MAX(h->now_ns, now_ns);
	ttmon_siteq_run(h, false);
	ttmon_live_tick(h);
	ttmon_rec_fold(h);
	ttmon_procs_tick(h);
}

void ttmon_history_finish(struct ttmon_history *h, uint64_t end_ns)
{
	h->now_ns = MAX(h->now_ns, end_ns);
	ttmon_siteq_run(h, true);
}
