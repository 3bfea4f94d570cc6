// SPDX-License-Identifier: GPL-2.0-only
/*
 * history.c: the allocation history (history.h): creation and removal, hooks at the end of records,
 * and the passing of time.
 *
 * Runs in the hot thread, one record at a time. Pure: no clock, file, thread or log; the same records
 * and ticks give the same tables. What does not fit, or finds no memory, is counted and marks the
 * history incomplete; nothing is fatal.
 */
#include <ttmon/family.h>

#include "daemon/core/history/history_int.h"
#include "lib/base/grow.h"

#define DEFAULT_ALLOCATIONS 1000000
#define DEFAULT_EVENTS	    10000000

void ttmon_history_no_memory(struct ttmon_history *h)
{
	h->totals.no_memory++;
	h->totals.incomplete = true;
}

/*
 * Hooks for the end of records, in this order: the groups of advice.c need the site, which siteq.c may
 * only find in its hook.
 */
static const struct ttmon_rec_hooks hooks[] = {
	{ .ended = ttmon_live_ended },
	{ .ended = ttmon_siteq_ended, .folded = ttmon_siteq_folded },
	{ .ended = ttmon_gpu_use_ended },
	{ .folded = ttmon_advice_folded },
};

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
	h->cfg.cold_age_ns = or_default(cfg->cold_age_ns, TTMON_VERDICT_COLD_NS);
	h->page_size = 4096;
	h->now_ns = cfg->start_ns;
	h->hooks = hooks;
	h->nr_hooks = ARRAY_SIZE(hooks);
	h->free_id = UINT32_MAX;
	h->exited.elem = sizeof(struct ttmon_exited);
	h->condensed_free = UINT32_MAX;
	h->reusable.elem = sizeof(uint32_t);
	h->siteq.elem = sizeof(struct ttmon_site_op);
	ttmon_live_init(h);
	ttmon_waits_init(h);
	ttmon_symtab_init(&h->symtab);
	ttmon_advice_init(h, cfg);
	if (ttmon_sites_init(&h->sites) < 0 || ttmon_users_init(h) < 0) {
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
	ttmon_unwound_fini(h);
	ttmon_symtab_fini(&h->symtab);
	ttmon_fifo_fini(&h->siteq);
	ttmon_advice_fini(h);
	ttmon_live_fini(h);
	ttmon_checkpoints_fini(h);
	ttmon_waits_fini(h);
	ttmon_users_fini(h);
	free(h->condensed);
	ttmon_hmap_fini(&h->tt_condensed);
	free(h->blinds);
	free(h);
}

void ttmon_history_on_clock(struct ttmon_history *h, const struct ttmon_ev_clock *ev)
{
	uint64_t page = ev->page_size;

	if (h->has_clock)
		return;
	h->clock = *ev;
	h->clock.hostname[sizeof(h->clock.hostname) - 1] = '\0';
	h->clock.release[sizeof(h->clock.release) - 1] = '\0';
	h->has_clock = true;
	/* Pages counted before would have been counted with the old size. */
	if (page >= 4096 && page <= 1 << 20 && !(page & (page - 1)) && !h->totals.pins)
		h->page_size = page;
	else if (page != h->page_size)
		h->totals.malformed_facts++;
}

void ttmon_history_on_blind(struct ttmon_history *h, const struct ttmon_ev_blind *ev)
{
	struct ttmon_hproc *p = ttmon_procs_find(h, ev->h.tgid);

	/* The file was reported as unread, and has been read since. */
	if (ev->how == TTMON_BLIND_UNREAD && !ev->active_ns) {
		uint32_t i = h->nr_blinds;

		while (i && !(h->blinds[i - 1].tgid == ev->h.tgid && h->blinds[i - 1].object == ev->object &&
			      h->blinds[i - 1].mapped_ns == ev->mapped_ns))
			i--;
		if (i)
			memmove(&h->blinds[i - 1], &h->blinds[i], (--h->nr_blinds - (i - 1)) * sizeof(*h->blinds));
		return;
	}
	if (h->nr_blinds >= TTMON_BLINDS_MAX) {
		h->totals.incomplete = true;
		return;
	}
	if (TTMON_GROW(h->blinds, h->cap_blinds, h->nr_blinds + 1, 16)) {
		ttmon_history_no_memory(h);
		return;
	}
	h->blinds[h->nr_blinds++] = (struct ttmon_blind){
		.object = ev->object,
		.tgid = ev->h.tgid,
		.mapped_ns = ev->mapped_ns,
		.active_ns = ev->active_ns,
		.held = ev->how == TTMON_BLIND_HELD,
		.let_go = ev->how == TTMON_BLIND_LET_GO,
	};
	if (p && ev->how != TTMON_BLIND_HELD)
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

void ttmon_history_on_family(struct ttmon_history *h, const struct ttmon_ev_family *ev)
{
	bool on = ev->state == TTMON_FAMILY_ON;

	h->totals.reduced |= !on;
	if (ev->h.tgid) {
		struct ttmon_hproc *p = ttmon_procs_find(h, ev->h.tgid);

		if (p && ev->family == TTMON_FAMILY_LAUNCH)
			p->numbers.gap = true;
		return;
	}
	if (ev->family == TTMON_FAMILY_TRANSFER)
		ttmon_live_seen(h, on, ev->h.ts_ns);
	if (ev->family == TTMON_FAMILY_LAUNCH && !on)
		h->launches_on_ns = UINT64_MAX;
	else if (ev->family == TTMON_FAMILY_LAUNCH && h->launches_on_ns == UINT64_MAX)
		h->launches_on_ns = ev->h.ts_ns;
	/*
	 * Whether an address outside every known mapping may still be host memory. Lists of mappings come
	 * before the fact that turns the family on.
	 */
	if (ev->family == TTMON_FAMILY_MMAP)
		h->clock.options =
			on ? h->clock.options | TTMON_OPT_MMAP : h->clock.options & ~(uint32_t)TTMON_OPT_MMAP;
}

void ttmon_history_on_object(struct ttmon_history *h, const struct ttmon_ev_object *ev)
{
	count_fact(h, ttmon_symtab_object(&h->symtab, ev));
}

void ttmon_history_on_symbol(struct ttmon_history *h, const struct ttmon_ev_symbol *ev)
{
	count_fact(h, ttmon_symtab_symbol(&h->symtab, ev));
}

void ttmon_history_now(struct ttmon_history *h, uint64_t ts_ns, bool late)
{
	h->totals.late += late;
	h->now_ns = MAX(h->now_ns, ts_ns);
}

uint64_t ttmon_history_tick(struct ttmon_history *h, uint64_t now_ns)
{
	uint64_t due[5];

	h->now_ns = MAX(h->now_ns, now_ns);
	due[0] = ttmon_siteq_run(h, false);
	due[1] = ttmon_live_tick(h);
	due[2] = ttmon_rec_fold(h);
	due[3] = ttmon_waits_run(h, false);
	due[4] = ttmon_procs_tick(h);
	return MIN(MIN(MIN(due[0], due[1]), MIN(due[2], due[3])), due[4]);
}

void ttmon_history_finish(struct ttmon_history *h, uint64_t end_ns)
{
	h->now_ns = MAX(h->now_ns, end_ns);
	ttmon_siteq_run(h, true);
	(void)ttmon_waits_run(h, true);
}
