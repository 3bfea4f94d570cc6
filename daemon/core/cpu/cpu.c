// SPDX-License-Identifier: GPL-2.0-only
/*
 * cpu.c: the interface of core/cpu, and the closing of a slot. Hot thread, pure.
 *
 * Nothing is aggregated when a record comes. It waits in the queue of its CPU (chain.c) until a slot
 * closes that it reaches into; the rows of that one slot are made then (rows.c). So there is no window
 * of open slots here, and a record is late for a slot exactly if it came after that slot had closed.
 *
 * Time. Each CPU's time is reported once: by a record or, where that has not come, by CPU_OPEN; what
 * the record says of it again is compared, not added. Time before the first slot that closes is not
 * accounted. In each slot
 *
 *	user_ns + kernel_ns + idle_ns + missing_ns = cpus * 1 ms
 *		+ the parts of CPUs whose chains began or ended in it
 *
 * and since the start, for ns, exactly and at any time (T: struct ttmon_cpu_totals):
 *
 *	T.told_ns = T.user_ns + T.kernel_ns + T.idle_ns + T.late_ns
 *	          = sum of cpu_ns over ttmon_cpu_each() and ttmon_cpu_gone()
 *	          = what records (extension where none came) say of [first slot, last slot closed)
 *	sum over slots of rows' cpu_ns = T.told_ns - T.late_ns
 *
 * missing_ns is what the slots lacked when they closed: time that comes late stays in it (a CPU of
 * which no record had come at all lacks nothing). Counters and switches have no such part: what comes
 * late goes into the slot that closes next, flagged, so that
 *
 *	T.ctr = sum over slots of rows' ctr = sum over processes       of these late: T.late_ctr
 *
 * Idle, OTHER (no room for an entry) and UNASSIGNED (readings of RMIDs that no process has) are
 * entries of their own; ttmon_cpu_each() shows idle and UNASSIGNED, ttmon_cpu_gone() holds OTHER.
 *
 * Bounded: 4 MiB of waiting records a CPU, max_procs entries; what does not fit is counted. A slot
 * costs what its rows and crosses cost, whatever the length of the intervals. Steady state allocates
 * nothing.
 */
#include "daemon/core/cpu/cpu_int.h"

#define MAX_PROCS 65536u

TTMON_FREEP(cpu_freep, struct ttmon_cpu, ttmon_cpu_free);

int ttmon_cpu_new(const struct ttmon_cpu_cfg *cfg, struct ttmon_cpu **ret)
{
	uint32_t max = cfg->max_procs ? cfg->max_procs : MAX_PROCS;
	_cleanup_(cpu_freep) struct ttmon_cpu *c = NULL;
	int err;

	if (cfg->nr_cpus == 0 || max > 1u << 24)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->nr_cpus = cfg->nr_cpus;
	c->leaving = cfg->leaving;
	c->ctx = cfg->ctx;
	c->chains = calloc(cfg->nr_cpus, sizeof(*c->chains));
	if (!c->chains)
		return -ENOMEM;
	err = ttmon_cpu_procs_init(&c->procs, max);
	if (err)
		return err;
	err = ttmon_cpu_rows_init(&c->rows);
	if (err)
		return err;
	*ret = TAKE_PTR(c);
	return 0;
}

void ttmon_cpu_free(struct ttmon_cpu *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; c->chains && i < c->nr_cpus; i++)
		free(c->chains[i].queue);
	free(c->chains);
	ttmon_cpu_procs_fini(&c->procs);
	ttmon_cpu_rows_fini(&c->rows);
	free(c);
}

void ttmon_cpu_copy(struct ttmon_cpu *c, uint32_t tgid, uint64_t bytes)
{
	struct ttmon_slot_row *r = ttmon_cpu_rows_get(c, ttmon_cpu_procs_get(c, tgid, 0, TTMON_ROW_USER));

	r->copies++;
	r->copy_bytes = ttmon_add_sat(r->copy_bytes, bytes);
}

void ttmon_cpu_pinned(struct ttmon_cpu *c, uint32_t tgid, uint64_t bytes)
{
	uint32_t idx;

	/* Memory that is released is no reason to make an entry for a process. */
	if (!bytes && ttmon_hmap_get(&c->procs.by_tgid, tgid) == TTMON_HMAP_NONE)
		return;
	idx = ttmon_cpu_procs_get(c, tgid, 0, TTMON_ROW_USER);
	if (idx >= PROC_FIXED)
		c->procs.v[idx].pub.pinned_bytes = bytes;
}

void ttmon_cpu_rdt(struct ttmon_cpu *c, const struct ttmon_rdt_piece *piece)
{
	uint32_t idx =
		piece->tgid ? ttmon_cpu_procs_get(c, piece->tgid, piece->start_ns, TTMON_ROW_USER) : PROC_UNASSIGNED;
	struct ttmon_slot_row *r = ttmon_cpu_rows_get(c, idx);

	r->mbm_total = ttmon_add_sat(r->mbm_total, piece->total);
	r->mbm_local = ttmon_add_sat(r->mbm_local, piece->local);
	r->rdt_ns = ttmon_add_sat(r->rdt_ns, piece->ns);
	if (piece->has_occupancy) {
		/* A process whose RMID changed has cache lines under both. */
		r->llc_bytes = ttmon_add_sat(r->llc_bytes, piece->occupancy);
		r->flags |= TTMON_ROW_LLC_VALID;
	}
	if (piece->unknown)
		r->flags |= TTMON_ROW_RDT_UNKNOWN;
}

/*
 * Slots that were never closed (suspend): the time they lack is in no slot. Records of that time count
 * as late.
 */
static void skip_slots(struct ttmon_cpu *c, uint64_t start_ns)
{
	uint64_t from = c->next_no * CPU_SLOT_NS;

	for (uint32_t i = 0; i < c->nr_cpus; i++) {
		const struct cpu_chain *ch = &c->chains[i];
		uint64_t at = later_of(from, ch->begin_ns);

		if (ch->begun && !ch->offline && ttmon_before(at, start_ns))
			c->totals.missing_ns += start_ns - at;
	}
}

static void close_cpus(struct ttmon_cpu *c, bool forced, struct ttmon_slot *slot)
{
	uint32_t whole = 0, parts = 0, known = 0;
	uint64_t missing = 0, told, diff;

	for (uint32_t i = 0; i < c->nr_cpus; i++) {
		struct cpu_chain *ch = &c->chains[i];

		if (!ch->begun && ch->head == ch->tail && !ch->in_hand)
			continue;
		c->at.covered_ns = c->at.expected_ns = 0;
		ttmon_cpu_chain_close(c, ch, forced);
		/* Every covered ns was expected: a chain accounts nothing before its begin and nothing twice. */
		missing += c->at.expected_ns - MIN(c->at.covered_ns, c->at.expected_ns);
		whole += c->at.expected_ns == CPU_SLOT_NS;
		parts += c->at.expected_ns > 0 && c->at.expected_ns != CPU_SLOT_NS;
		known += ch->begun && !ch->offline;
	}
	told = c->at.ns[TTMON_CPU_USER] + c->at.ns[TTMON_CPU_KERNEL] + c->at.ns[TTMON_CPU_IDLE];
	c->totals.cpus = known;
	c->totals.cpus_peak = MAX(c->totals.cpus_peak, known);
	c->totals.user_ns += c->at.ns[TTMON_CPU_USER];
	c->totals.kernel_ns += c->at.ns[TTMON_CPU_KERNEL];
	c->totals.idle_ns += c->at.ns[TTMON_CPU_IDLE];
	c->totals.missing_ns += missing;

	slot->cpus = whole;
	slot->user_ns = c->at.ns[TTMON_CPU_USER];
	slot->kernel_ns = c->at.ns[TTMON_CPU_KERNEL];
	slot->idle_ns = c->at.ns[TTMON_CPU_IDLE];
	slot->missing_ns = missing;
	if (missing)
		slot->flags |= TTMON_SLOT_MISSING;
	if (!whole && !parts)
		return;
	slot->flags |= TTMON_SLOT_HAS_CPU;
	if (c->totals.has_ctr)
		slot->flags |= TTMON_SLOT_HAS_CTR;
	if (parts)
		return;
	diff = whole * CPU_SLOT_NS > told ? whole * CPU_SLOT_NS - told : told - whole * CPU_SLOT_NS;
	c->totals.slots++;
	c->totals.exact += diff == 0;
	if (diff > c->totals.worst_ns) {
		c->totals.worst_ns = diff;
		c->totals.worst_slot = c->next_no;
	}
}

size_t ttmon_cpu_close(struct ttmon_cpu *c, uint64_t no, bool forced, struct ttmon_slot *slot,
		       const struct ttmon_slot_row **rows)
{
	uint64_t start_ns = no * CPU_SLOT_NS;
	bool has_rdt;
	size_t n;

	*rows = c->rows.out;
	if (!c->started)
		c->first_ns = start_ns;
	else if (ttmon_before(no, c->next_no))
		return 0;
	else if (no != c->next_no)
		skip_slots(c, start_ns);
	c->started = true;
	c->next_no = no;
	c->at = (struct cpu_closing){ .start_ns = start_ns, .end_ns = start_ns + CPU_SLOT_NS };
	close_cpus(c, forced, slot);
	n = ttmon_cpu_rows_close(c, &has_rdt, rows);
	if (has_rdt)
		slot->flags |= TTMON_SLOT_HAS_RDT;
	slot->nr_rows = (uint32_t)n;
	c->now_ns = c->at.end_ns;
	c->next_no = no + 1;
	ttmon_cpu_procs_tick(c);
	return n;
}

bool ttmon_cpu_behind(const struct ttmon_cpu *c, uint64_t end_ns)
{
	return c->behind_ns && !ttmon_before(c->behind_ns, end_ns);
}

void ttmon_cpu_get_totals(const struct ttmon_cpu *c, struct ttmon_cpu_totals *ret)
{
	*ret = c->totals;
	ret->procs = c->procs.live;
	ret->now_ns = c->now_ns;
}

static bool did_anything(const struct ttmon_cpu_proc *p)
{
	return p->cpu_ns || p->switches || p->copies || p->mbm_total || p->mbm_local || p->rdt_ns || p->llc_bytes ||
	       p->ctr[TTMON_CTR_CYCLES] || p->ctr[TTMON_CTR_INSTRUCTIONS] || p->ctr[TTMON_CTR_LLC_MISSES] ||
	       p->ctr[TTMON_CTR_LLC_REFS];
}

void ttmon_cpu_each(const struct ttmon_cpu *c, void (*fn)(void *ctx, const struct ttmon_cpu_proc *p), void *ctx)
{
	for (uint32_t i = 0; i < c->procs.nr; i++) {
		const struct cpu_proc *p = &c->procs.v[i];
		struct ttmon_cpu_proc pub = p->pub;

		if (i == PROC_OTHER || (i < PROC_FIXED ? !did_anything(&pub) : !p->used))
			continue;
		pub.rmid = ttmon_cpu_procs_rmid(c, p);
		fn(ctx, &pub);
	}
}

void ttmon_cpu_gone(const struct ttmon_cpu *c, struct ttmon_cpu_proc *ret)
{
	*ret = c->procs.gone;
	ttmon_cpu_procs_sum(ret, &c->procs.v[PROC_OTHER].pub);
}

void ttmon_cpu_other(const struct ttmon_cpu *c, struct ttmon_cpu_proc *ret)
{
	*ret = c->procs.v[PROC_OTHER].pub;
}

bool ttmon_cpu_runs(const struct ttmon_cpu *c, uint32_t tgid, uint64_t start_ns)
{
	const struct cpu_procs *ps = &c->procs;
	uint64_t i = ttmon_hmap_get(&ps->by_tgid, tgid);
	const struct cpu_proc *p = i == TTMON_HMAP_NONE ? NULL : &ps->v[i];

	/* Only the newest process of a tgid can be alive. */
	return p && !p->ended && p->pub.comm[0] && (!start_ns || !p->pub.start_ns || p->pub.start_ns == start_ns);
}
