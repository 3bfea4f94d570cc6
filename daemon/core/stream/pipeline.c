// SPDX-License-Identifier: GPL-2.0-only
/*
 * pipeline.c: decode -> slots -> history, devices, dispatches; and the accounting identity over all of
 * it.
 *
 * Hot thread only. The event table (<ttmon/event.h>) says when a record is handled, and which parts of
 * the core handle it. An event waits in the slots until its millisecond closes and is then handled in
 * order; a fact of the daemon (mappings, names) has no place in that order and is handled when it
 * comes. LOST facts are kept here: they are the kernel's side of the identity.
 *
 * Promises: every record that is fed ends in exactly one counter of struct ttmon_accounting, every
 * closed slot is either published or dropped. The same records and watermarks give the same result.
 *
 * Must not know where records come from, nor read a clock.
 */
#include "daemon/core/stream/pipeline.h"

#include <stdarg.h>

#include "daemon/core/stream/listq.h"

/* The newest LOST fact of a CPU and kind. */
struct kernel_stat {
	uint64_t ts_ns;
	uint64_t attempted, lost;
	bool known;
};

/* The part that every event reads; kept apart from the rest, which is large and rarely needed. */
struct cpu_lost {
	uint32_t lost; /* running count in the newest header */
	bool seen;
};

struct cpu_state {
	uint64_t reason[TTMON_LOSS_MAX], nested;
	struct kernel_stat stats[TTMON_EV_FACT];
};

struct ttmon_pipeline {
	uint32_t nr_cpus;
	ttmon_slot_fn publish;
	void *ctx;
	struct ttmon_know *know;
	struct ttmon_seen_sums seen;
	struct ttmon_slots *slots;
	struct ttmon_history *history;
	struct ttmon_tt *tt;
	struct ttmon_dispatch *dispatch;
	struct ttmon_timeline *timeline;
	struct ttmon_usage *usage;
	struct ttmon_cpu *cpu;
	struct ttmon_rmid *rmid;
	struct ttmon_listq lists;
	struct cpu_state *cpus;
	struct cpu_lost *lost; /* by CPU too */

	uint64_t decoded[TTMON_EV_MAX];
	uint64_t malformed[TTMON_DECODE_MAX], malformed_facts[TTMON_DECODE_MAX];
	uint64_t published, dropped, direct;

	uint64_t last_slot;	    /* number of the newest slot that closed */
	bool history_told, tt_told; /* it got an event since its last tick */
	bool tt_waits;		    /* it waits for time to pass */
	uint64_t history_due_ns;    /* when the history's next tick is due if it gets no event until then */
	struct ttmon_slot slot;	    /* sums of the slot being closed */
	uint64_t bounce[TTMON_RECORD_MAX / sizeof(uint64_t)];
};

TTMON_FREEP(pipeline_freep, struct ttmon_pipeline, ttmon_pipeline_free);

/*
 * The program chooses these numbers: a product past 64 bits is shown as the largest number, not as a
 * small one.
 */
static uint64_t rect_bytes(const struct ttmon_ev_copy_rect *ev)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(ev->width, ev->rows, &bytes) || __builtin_mul_overflow(bytes, ev->slices, &bytes))
		return UINT64_MAX;
	return bytes;
}

static void count_copy(struct ttmon_pipeline *p, uint32_t tgid, int32_t err, uint16_t bits, uint64_t bytes)
{
	if (err || (bits & TTMON_B_CAPTURED))
		return;
	p->slot.copies++;
	p->slot.copy_bytes = ttmon_add_sat(p->slot.copy_bytes, bytes);
	ttmon_cpu_copy(p->cpu, tgid, bytes);
}

/* ---- what the stream itself does with a kind: the sums of the slot ---- */

static void stream_on_alloc(struct ttmon_pipeline *p, const struct ttmon_ev_alloc *ev)
{
	p->slot.allocs += ev->err == 0;
	if (!ev->err && !ev->addr && ev->bits & TTMON_B_UNOBSERVED)
		ttmon_know_unaddressed(p->know, ev->h.tgid, ev->h.ts_ns);
}

static void stream_on_free(struct ttmon_pipeline *p, const struct ttmon_ev_free *ev)
{
	p->slot.frees += ev->err == 0;
}

static void stream_on_tt_pin(struct ttmon_pipeline *p, const struct ttmon_ev_tt_pin *ev)
{
	p->slot.allocs += ev->err == 0 && (ev->op == TTMON_TT_PIN || ev->op == TTMON_TT_DMA_BUF);
	p->slot.frees += ev->err == 0 && ev->op == TTMON_TT_UNPIN;
}

static void stream_on_copy(struct ttmon_pipeline *p, const struct ttmon_ev_copy *ev)
{
	count_copy(p, ev->h.tgid, ev->err, ev->bits, ev->bytes);
}

static void stream_on_copy_rect(struct ttmon_pipeline *p, const struct ttmon_ev_copy_rect *ev)
{
	count_copy(p, ev->h.tgid, ev->err, ev->bits, rect_bytes(ev));
}

static void stream_on_proc(struct ttmon_pipeline *p, const struct ttmon_ev_proc *ev)
{
	ttmon_know_on_proc(p->know, ev);
}

static void stream_on_exit(struct ttmon_pipeline *p, const struct ttmon_ev_exit *ev)
{
	ttmon_know_ended(p->know, ev->h.tgid, ev->h.ts_ns);
}

static void stream_on_gone(struct ttmon_pipeline *p, const struct ttmon_ev_gone *ev)
{
	ttmon_know_ended(p->know, ev->h.tgid, ev->h.ts_ns);
}

static void stream_on_blind(struct ttmon_pipeline *p, const struct ttmon_ev_blind *ev)
{
	uint64_t before = ttmon_know_changes(p->know);

	ttmon_know_on_blind(p->know, ev);
	if (ttmon_know_changes(p->know) != before && ev->active_ns && ev->how != TTMON_BLIND_STRIPPED &&
	    ev->how != TTMON_BLIND_REFUSED)
		ttmon_seen_late(&p->seen, ev->families ? ev->families : TTMON_FAMILIES_CUDA, ev->mapped_ns);
}

static void stream_on_clock(struct ttmon_pipeline *p, const struct ttmon_ev_clock *ev)
{
	ttmon_seen_on_clock(&p->seen, ev);
}

static void stream_on_family(struct ttmon_pipeline *p, const struct ttmon_ev_family *ev)
{
	ttmon_know_on_family(p->know, ev);
	ttmon_seen_on_family(&p->seen, ev);
}

/*
 * Start of the interval in which the loss happened: when these counters were read before; 0: unknown,
 * it can have been at any time.
 */
static uint64_t looked_at(const struct ttmon_ev_lost *ev, const struct kernel_stat *before)
{
	uint64_t ms = ev->h.tid;

	if (ms && ev->h.ts_ns > ms * NSEC_PER_MS)
		return ev->h.ts_ns - ms * NSEC_PER_MS;
	return before->known ? before->ts_ns : 0;
}

static void tt_lost(struct ttmon_pipeline *p)
{
	p->tt_told = true;
	ttmon_tt_lost(p->tt);
}

/*
 * Kernel counters only grow: of two facts about the same counters the later one includes the earlier.
 */
static void stream_on_lost(struct ttmon_pipeline *p, const struct ttmon_ev_lost *ev)
{
	struct cpu_state *cpu = &p->cpus[ev->stat_cpu];
	struct kernel_stat *st = &cpu->stats[ev->stat_kind];

	if (st->known && ttmon_before(ev->h.ts_ns, st->ts_ns))
		return;
	if (ttmon_event_family(ev->stat_kind) == TTMON_FAMILY_TENSTORRENT && ev->lost > st->lost)
		tt_lost(p);
	if (ev->lost > st->lost && ttmon_event_family(ev->stat_kind) != TTMON_FAMILY_NONE) {
		ttmon_know_lost(p->know, 1u << ttmon_event_family(ev->stat_kind), looked_at(ev, st), ev->h.ts_ns);
		ttmon_seen_lost(&p->seen, ttmon_event_family(ev->stat_kind), ev->lost - st->lost);
		ttmon_seen_late(&p->seen, 1u << ttmon_event_family(ev->stat_kind), looked_at(ev, st));
	}
	st->known = true;
	st->ts_ns = ev->h.ts_ns;
	st->attempted = ev->attempted;
	st->lost = ev->lost;
	if (ev->stat_kind == 0) {
		memcpy(cpu->reason, ev->reason, sizeof(cpu->reason));
		cpu->nested = ev->nested;
	}
}

/*
 * The only dispatch: a record goes straight to the parts that handle its kind, by the columns of the
 * event table. The order matters. The history comes first: memory that ends with its process is
 * recorded there as such. The time of the dispatches advances after tt has handled the event: a run
 * that waited long enough is reported with the devices that are known by then.
 */
static void handle(struct ttmon_pipeline *p, const struct ttmon_event *ev, size_t size)
{
	switch (ev->kind) {
#define X(id, NAME, name, type, way, family, check, to_stream, to_timeline, to_history, to_tt, to_dispatch, to_cpu, \
	  to_rmid, help)                                                                                            \
	case TTMON_EV_##NAME: {                                                                                     \
		const struct type *e = (const void *)ev;                                                            \
                                                                                                                    \
		TTMON_IF_##to_stream(stream_on_##name(p, e));                                                       \
		TTMON_IF_##to_timeline(ttmon_timeline_on_##name(p->timeline, e));                                   \
		TTMON_IF_##to_history(p->history_told = true; ttmon_history_on_##name(p->history, e));              \
		TTMON_IF_##to_tt(p->tt_told = true; ttmon_tt_on_##name(p->tt, e, size));                            \
		if (TTMON_WAY_##way == TTMON_WAY_EVENT)                                                             \
			ttmon_dispatch_now(p->dispatch, e->h.ts_ns);                                                \
		TTMON_IF_##to_dispatch(ttmon_dispatch_on_##name(p->dispatch, e));                                   \
		TTMON_IF_##to_cpu(ttmon_cpu_on_##name(p->cpu, e, size));                                            \
		TTMON_IF_##to_rmid(ttmon_rmid_on_##name(p->rmid, e));                                               \
		break;                                                                                              \
	}
		TTMON_EVENT_TABLE(X)
#undef X
	}
}

/*
 * The running count starts at 0 when the programs are loaded, so the first record of a CPU shows what
 * was lost before it. An event that is late or was stamped out of order carries an older count, which
 * adds nothing.
 */
static void count_lost(struct ttmon_pipeline *p, const struct ttmon_event *ev)
{
	struct cpu_lost *cpu = &p->lost[ev->cpu];
	uint32_t delta = ev->lost - cpu->lost;

	if (cpu->seen && (int32_t)delta <= 0)
		return;
	cpu->seen = true;
	cpu->lost = ev->lost;
	p->slot.kernel_lost = delta > UINT32_MAX - p->slot.kernel_lost ? UINT32_MAX : p->slot.kernel_lost + delta;
}

static void on_event(void *ctx, const struct ttmon_event *ev, size_t size, bool late)
{
	struct ttmon_pipeline *p = ctx;

	count_lost(p, ev);
	if (ttmon_event_way(ev->kind) == TTMON_WAY_EVENT) {
		ttmon_history_now(p->history, ev->ts_ns, late);
		ttmon_tt_now(p->tt, ev->ts_ns);
	}
	handle(p, ev, size);
}

static void on_ahead(void *ctx, const struct ttmon_event *ev)
{
	struct ttmon_pipeline *p = ctx;

	ttmon_history_ahead(p->history, ev);
}

static uint64_t on_tt_alloc(void *ctx, uint32_t tgid, uint64_t ts_ns, unsigned int method, uint64_t addr,
			    uint64_t bytes, uint16_t fn)
{
	struct ttmon_pipeline *p = ctx;
	struct ttmon_tt_alloc in = {
		.ts_ns = ts_ns,
		.addr = addr,
		.bytes = bytes,
		.fn = fn,
		.method = (uint8_t)method,
	};

	p->slot.allocs++;
	p->history_told = true;
	return ttmon_history_tt_alloc(p->history, tgid, &in);
}

static void on_tt_free(void *ctx, uint64_t seq, uint64_t ts_ns, uint16_t fn)
{
	struct ttmon_pipeline *p = ctx;

	/* Memory that ends with its device or process ends without a call. */
	p->slot.frees += fn != 0;
	p->history_told = true;
	ttmon_history_tt_free(p->history, seq, ts_ns);
}

static void on_tt_undo(void *ctx, uint64_t seq, uint64_t ts_ns)
{
	struct ttmon_pipeline *p = ctx;

	(void)ts_ns;
	p->history_told = true;
	ttmon_history_tt_undo(p->history, seq);
}

static void on_run(void *ctx, const struct ttmon_tt_run *run)
{
	struct ttmon_pipeline *p = ctx;
	struct ttmon_tt_run whole = *run;

	uint64_t error_ns = ttmon_tt_run_error(run);
	struct ttmon_work work = {
		.runs = 1,
		.busy_ns = run->end_ns - run->start_ns,
		.error_ns = error_ns == UINT64_MAX ? 0 : error_ns,
		.unbounded = error_ns == UINT64_MAX,
	};

	whole.uid = ttmon_history_uid(p->history, run->tgid, run->seen_ns);
	ttmon_timeline_run(p->timeline, &whole);
	ttmon_history_work(p->history, run->tgid, run->seen_ns, &work);
}

static void on_missed(void *ctx, uint32_t tgid, uint64_t at_ns, uint64_t n)
{
	struct ttmon_pipeline *p = ctx;

	ttmon_history_work(p->history, tgid, at_ns, &(struct ttmon_work){ .missed = n });
}

static void on_dispatched(void *ctx, const struct ttmon_tt_dispatched *d)
{
	struct ttmon_pipeline *p = ctx;

	ttmon_timeline_dispatched(p->timeline, d);
}

static void on_slot_row(void *ctx, const struct ttmon_tt_slot_row *row)
{
	struct ttmon_pipeline *p = ctx;

	ttmon_timeline_slot(p->timeline, row);
}

static void on_rdt(void *ctx, const struct ttmon_rdt_piece *piece)
{
	struct ttmon_pipeline *p = ctx;

	ttmon_cpu_rdt(p->cpu, piece);
}

static void on_pinned(void *ctx, uint32_t tgid, uint64_t bytes)
{
	struct ttmon_pipeline *p = ctx;

	ttmon_cpu_pinned(p->cpu, tgid, bytes);
}

static void on_leaving(void *ctx, const struct ttmon_proc *proc)
{
	struct ttmon_pipeline *p = ctx;

	ttmon_usage_leaving(p->usage, proc);
	ttmon_know_forget(p->know, proc->tgid, proc->exit_ns);
}

static void on_cpu_leaving(void *ctx, const struct ttmon_cpu_proc *proc)
{
	struct ttmon_pipeline *p = ctx;

	ttmon_usage_cpu_leaving(p->usage, proc);
}

/*
 * behind: RMID records of this slot may still come. Whatever the kernel lost at about this time can
 * have been of any family: the LOST facts, which say of which, come after the slot.
 */
static void say_known(struct ttmon_pipeline *p, uint64_t no, bool behind)
{
	uint32_t has = 0;

	if (p->slot.flags & TTMON_SLOT_HAS_CPU)
		has |= TTMON_FAMILY_BIT(CPU);
	if (p->decoded[TTMON_EV_RMID_INFO] && !behind)
		has |= TTMON_FAMILY_BIT(RMID);
	p->slot.known = ttmon_seen_close(&p->seen, p->know, no * TTMON_SLOT_NS, (no + 1) * TTMON_SLOT_NS, has);
	if (p->slot.kernel_lost)
		p->slot.known = 0;
	p->slot.flags |= TTMON_SLOT_HAS_KNOWN;
}

/* In most slots nothing happens to memory, and the history and tt need not be visited. */
static void tick(struct ttmon_pipeline *p, uint64_t now_ns)
{
	if (p->history_told || now_ns >= p->history_due_ns)
		p->history_due_ns = ttmon_history_tick(p->history, now_ns);
	else
		ttmon_history_now(p->history, now_ns, false);
	p->history_told = false;
	if (p->tt_told || p->tt_waits)
		p->tt_waits = ttmon_tt_tick(p->tt, now_ns);
	else
		ttmon_tt_now(p->tt, now_ns);
	p->tt_told = false;
}

static void on_close(void *ctx, const struct ttmon_slot_view *view)
{
	struct ttmon_pipeline *p = ctx;
	const struct ttmon_slot_row *rows;
	uint64_t dispatches, busy_ns;
	bool behind;
	size_t n;

	tick(p, (view->no + 1) * TTMON_SLOT_NS);
	ttmon_dispatch_slot(p->dispatch, view->no, &dispatches, &busy_ns);

	p->slot.no = p->last_slot = view->no;
	p->slot.events = view->events;
	p->slot.late = view->late;
	p->slot.dropped = view->lost;
	if (view->forced)
		p->slot.flags |= TTMON_SLOT_FORCED;
	p->slot.pinned_pages = ttmon_history_pinned_pages(p->history);
	p->slot.tt_dispatches = dispatches;
	p->slot.tt_busy_ns = busy_ns;
	/* The owners of RMIDs are not certain while a ring is not waited for. */
	behind = view->forced || ttmon_cpu_behind(p->cpu, (view->no + 1) * TTMON_SLOT_NS);
	if (behind)
		ttmon_rmid_skip(p->rmid, (view->no + 1) * TTMON_SLOT_NS);
	else
		ttmon_rmid_close(p->rmid, (view->no + 1) * TTMON_SLOT_NS, on_rdt, p);
	n = ttmon_cpu_close(p->cpu, view->no, view->forced, &p->slot, &rows);
	p->slot.nr_rows = (uint32_t)n;
	say_known(p, view->no, behind);
	for (size_t i = 0; !behind && i < n && rows[i].cls != TTMON_ROW_IDLE; i++)
		if (rows[i].rmid)
			ttmon_rmid_seen(p->rmid, rows[i].rmid, rows[i].tgid, view->no * TTMON_SLOT_NS);
	if (!p->publish || p->publish(p->ctx, &p->slot, rows, n))
		p->published++;
	else
		p->dropped++;
	p->slot = (struct ttmon_slot){ 0 };
}

int ttmon_pipeline_new(const struct ttmon_pipeline_cfg *cfg, ttmon_slot_fn publish, void *ctx,
		       struct ttmon_pipeline **ret)
{
	static const struct ttmon_slots_ops ops = { .event = on_event, .ahead = on_ahead, .close = on_close };
	static const struct ttmon_tt_ops tt_ops = { .alloc = on_tt_alloc, .free = on_tt_free, .undo = on_tt_undo };
	static const struct ttmon_dispatch_ops dispatch_ops = {
		.run = on_run, .missed = on_missed, .dispatched = on_dispatched, .slot = on_slot_row
	};
	struct ttmon_tt_cfg tt = { .max_buffers = cfg->history.max_allocations, .keep_all = cfg->history.keep_all };
	struct ttmon_dispatch_cfg dispatch = { .keep_all = cfg->history.keep_all };
	struct ttmon_history_cfg history = cfg->history;
	struct ttmon_cpu_cfg cpu = {
		.nr_cpus = cfg->nr_cpus,
		.leaving = on_cpu_leaving,
	};
	_cleanup_(pipeline_freep) struct ttmon_pipeline *p = NULL;
	int err;

	if (cfg->nr_cpus == 0 || cfg->nr_cpus > TTMON_CPU_DAEMON)
		return -EINVAL;

	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->nr_cpus = cfg->nr_cpus;
	p->publish = publish;
	p->ctx = ctx;
	p->cpus = calloc(cfg->nr_cpus, sizeof(*p->cpus));
	p->lost = calloc(cfg->nr_cpus, sizeof(*p->lost));
	if (!p->cpus || !p->lost)
		return -ENOMEM;
	err = ttmon_usage_new(&cfg->usage, &p->usage);
	if (err)
		return err;
	ttmon_seen_init(&p->seen);
	err = ttmon_know_new(&p->know);
	if (err)
		return err;
	history.know = p->know;
	history.pinned = on_pinned;
	history.leaving = on_leaving;
	history.ctx = cpu.ctx = p;
	err = ttmon_history_new(&history, &p->history);
	if (err)
		return err;
	err = ttmon_tt_new(&tt, &tt_ops, p, &p->tt);
	if (err)
		return err;
	dispatch.tt = p->tt;
	err = ttmon_dispatch_new(&dispatch, &dispatch_ops, p, &p->dispatch);
	if (err)
		return err;
	err = ttmon_cpu_new(&cpu, &p->cpu);
	if (err)
		return err;
	err = ttmon_rmid_new(&p->rmid);
	if (err)
		return err;
	err = ttmon_timeline_new(&cfg->timeline, &p->timeline);
	if (err)
		return err;
	err = ttmon_slots_new(&cfg->slots, &ops, p, &p->slots);
	if (err)
		return err;

	*ret = TAKE_PTR(p);
	return 0;
}

void ttmon_pipeline_free(struct ttmon_pipeline *p)
{
	if (!p)
		return;
	ttmon_slots_free(p->slots);
	ttmon_listq_fini(&p->lists);
	ttmon_dispatch_free(p->dispatch);
	ttmon_timeline_free(p->timeline);
	ttmon_usage_free(p->usage);
	ttmon_cpu_free(p->cpu);
	ttmon_rmid_free(p->rmid);
	ttmon_tt_free(p->tt);
	ttmon_history_free(p->history);
	ttmon_know_free(p->know);
	free(p->cpus);
	free(p->lost);
	free(p);
}

void ttmon_pipeline_feed(struct ttmon_pipeline *p, const void *rec, size_t size)
{
	const struct ttmon_event *ev = rec;
	enum ttmon_decode_err bad;

	/* In a recording a record follows a 4-byte header, so it may be misaligned. */
	if ((uintptr_t)rec % sizeof(uint64_t)) {
		memcpy(p->bounce, rec, MIN(size, sizeof(p->bounce)));
		ev = (const void *)p->bounce;
	}
	bad = ttmon_decode(ev, size, p->nr_cpus);
	if (bad) {
		/* The rings carry no facts, so a record of a fact's kind did not come from a ring. */
		if (size >= sizeof(*ev) && ev->kind >= TTMON_EV_FACT)
			p->malformed_facts[bad]++;
		else
			p->malformed[bad]++;
		return;
	}
	p->decoded[ev->kind]++;
	switch (ttmon_event_way(ev->kind)) {
	case TTMON_WAY_EVENT:
	case TTMON_WAY_SCHED:
		ttmon_slots_add(p->slots, ev, size);
		break;
	case TTMON_WAY_DIRECT:
		p->direct++;
		count_lost(p, ev);
		handle(p, ev, size);
		break;
	case TTMON_WAY_LISTED:
		if (!ttmon_listq_put(&p->lists, ev, size, ttmon_history_maps_known(p->history, ev->tgid)))
			handle(p, ev, size);
		break;
	case TTMON_WAY_FACT:
		handle(p, ev, size);
		break;
	}
}

static void apply_lists(struct ttmon_pipeline *p, const uint64_t *before_ns)
{
	const struct ttmon_event *ev;
	size_t size;

	while ((ev = ttmon_listq_next(&p->lists, before_ns, &size)))
		handle(p, ev, size);
}

void ttmon_pipeline_advance(struct ttmon_pipeline *p, uint64_t watermark_ns)
{
	uint64_t closed_ns = watermark_ns - watermark_ns % TTMON_SLOT_NS;

	ttmon_slots_advance(p->slots, watermark_ns);
	apply_lists(p, &closed_ns);
}

void ttmon_pipeline_finish(struct ttmon_pipeline *p, uint64_t end_ns)
{
	uint64_t dispatches, busy_ns;

	ttmon_slots_advance(p->slots, end_ns);
	ttmon_slots_finish(p->slots);
	apply_lists(p, NULL);
	/* What was missing in closed slots is reported by the one after them, and there would be none. */
	if (p->seen.owed)
		ttmon_slots_advance(p->slots, (p->last_slot + 2) * TTMON_SLOT_NS);
	ttmon_tt_finish(p->tt, end_ns);
	ttmon_history_finish(p->history, end_ns);
	ttmon_dispatch_finish(p->dispatch);
	/* No slot is left to be published; the call is made for the rows. */
	ttmon_dispatch_slot(p->dispatch, MAX(p->last_slot, end_ns / TTMON_SLOT_NS), &dispatches, &busy_ns);
}

const struct ttmon_know *ttmon_pipeline_know(const struct ttmon_pipeline *p)
{
	return p->know;
}

void ttmon_pipeline_seen(const struct ttmon_pipeline *p, struct ttmon_seen_view *ret)
{
	ttmon_seen_get(&p->seen, p->know, ret);
}

struct ttmon_history *ttmon_pipeline_history(struct ttmon_pipeline *p)
{
	return p->history;
}

struct ttmon_tt *ttmon_pipeline_tt(struct ttmon_pipeline *p)
{
	return p->tt;
}

struct ttmon_dispatch *ttmon_pipeline_dispatch(struct ttmon_pipeline *p)
{
	return p->dispatch;
}

struct ttmon_cpu *ttmon_pipeline_cpu(struct ttmon_pipeline *p)
{
	return p->cpu;
}

struct ttmon_rmid *ttmon_pipeline_rmid(struct ttmon_pipeline *p)
{
	return p->rmid;
}

struct ttmon_usage *ttmon_pipeline_usage(struct ttmon_pipeline *p)
{
	return p->usage;
}

struct ttmon_timeline *ttmon_pipeline_timeline(struct ttmon_pipeline *p)
{
	return p->timeline;
}

bool ttmon_pipeline_has_tt(const struct ttmon_pipeline *p)
{
	for (unsigned int kind = 0; kind < TTMON_EV_MAX; kind++) {
		enum ttmon_family family = ttmon_event_family(kind);

		if (p->decoded[kind] && (family == TTMON_FAMILY_TENSTORRENT || family == TTMON_FAMILY_DISPATCH))
			return true;
	}
	return false;
}

void ttmon_pipeline_accounting(const struct ttmon_pipeline *p, struct ttmon_accounting *ret)
{
	struct ttmon_accounting acct = { .published = p->published, .dropped = p->dropped, .direct = p->direct };
	struct ttmon_slots_stats st;

	memcpy(acct.decoded, p->decoded, sizeof(acct.decoded));
	memcpy(acct.malformed, p->malformed, sizeof(acct.malformed));
	memcpy(acct.malformed_facts, p->malformed_facts, sizeof(acct.malformed_facts));
	for (unsigned int kind = TTMON_EV_FACT; kind < TTMON_EV_MAX; kind++)
		acct.facts += p->decoded[kind];
	ttmon_slots_get_stats(p->slots, &st);
	acct.slotted = st.slotted;
	acct.late = st.late;
	acct.arena_full = st.arena_full;
	acct.closed = st.closed;
	acct.forced = st.forced;
	*ret = acct;
}

void ttmon_pipeline_kernel_counts(const struct ttmon_pipeline *p, struct ttmon_kernel_counts *ret)
{
	struct ttmon_kernel_counts counts = { 0 };

	for (uint32_t i = 0; i < p->nr_cpus; i++) {
		const struct cpu_state *cpu = &p->cpus[i];

		for (unsigned int kind = 0; kind < TTMON_EV_FACT; kind++) {
			counts.attempted[kind] += cpu->stats[kind].attempted;
			counts.lost[kind] += cpu->stats[kind].lost;
			counts.known |= cpu->stats[kind].known;
		}
		for (unsigned int r = 0; r < TTMON_LOSS_MAX; r++)
			counts.reason[r] += cpu->reason[r];
		counts.nested += cpu->nested;
	}
	*ret = counts;
}

static uint64_t sum(const uint64_t *terms, size_t n)
{
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += terms[i];
	return total;
}

static _printf_(3, 4) bool refute(char *why, size_t n, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, n, fmt, ap);
	va_end(ap);
	return false;
}

/*
 * The kind of a malformed record is unreliable. Hence: of no kind may more have come than was sent,
 * and in total the difference must be what was malformed. Without malformed records every kind is
 * exact.
 */
static bool check_kernel(const struct ttmon_accounting *acct, const struct ttmon_kernel_counts *kernel, char *why,
			 size_t n)
{
	uint64_t attempted = sum(kernel->attempted, TTMON_EV_FACT), lost = sum(kernel->lost, TTMON_EV_FACT);
	uint64_t decoded = sum(acct->decoded, TTMON_EV_FACT), malformed = sum(acct->malformed, TTMON_DECODE_MAX);
	uint64_t reasons = sum(kernel->reason, TTMON_LOSS_MAX);

	for (unsigned int kind = 0; kind < TTMON_EV_FACT; kind++) {
		const char *name = ttmon_event_name(kind);

		if (kernel->attempted[kind] < acct->decoded[kind] + kernel->lost[kind])
			return refute(why, n, "%s: attempted %llu, decoded %llu + lost %llu",
				      name ? name : "unknown kind", (unsigned long long)kernel->attempted[kind],
				      (unsigned long long)acct->decoded[kind], (unsigned long long)kernel->lost[kind]);
	}
	if (attempted != decoded + malformed + lost)
		return refute(why, n, "events: attempted %llu, decoded %llu + malformed %llu + lost %llu",
			      (unsigned long long)attempted, (unsigned long long)decoded, (unsigned long long)malformed,
			      (unsigned long long)lost);
	if (reasons != lost)
		return refute(why, n, "losses: %llu, by reason %llu", (unsigned long long)lost,
			      (unsigned long long)reasons);
	return true;
}

bool ttmon_pipeline_check(const struct ttmon_pipeline *p, char *why, size_t n)
{
	struct ttmon_accounting acct;
	struct ttmon_kernel_counts kernel;
	uint64_t decoded;

	ttmon_pipeline_accounting(p, &acct);
	ttmon_pipeline_kernel_counts(p, &kernel);
	decoded = sum(acct.decoded, TTMON_EV_FACT);

	if (decoded != acct.slotted + acct.late + acct.arena_full + acct.direct)
		return refute(why, n, "events: decoded %llu, slotted %llu + late %llu + arena full %llu + direct %llu",
			      (unsigned long long)decoded, (unsigned long long)acct.slotted,
			      (unsigned long long)acct.late, (unsigned long long)acct.arena_full,
			      (unsigned long long)acct.direct);
	if (acct.closed != acct.published + acct.dropped)
		return refute(why, n, "slots: closed %llu, published %llu + dropped %llu",
			      (unsigned long long)acct.closed, (unsigned long long)acct.published,
			      (unsigned long long)acct.dropped);
	return !kernel.known || check_kernel(&acct, &kernel, why, n);
}

uint32_t ttmon_pipeline_incomplete(const struct ttmon_pipeline *p, bool cut)
{
	struct ttmon_kernel_counts kernel;
	struct ttmon_history_totals t;
	struct ttmon_accounting acct;
	const struct ttmon_gap *gaps;
	size_t n = ttmon_know_gaps(p->know, &gaps);
	uint32_t why = cut ? 1u << TTMON_INCOMPLETE_CUT : 0;
	char ignored[256];

	ttmon_pipeline_kernel_counts(p, &kernel);
	ttmon_pipeline_accounting(p, &acct);
	ttmon_history_get_totals(p->history, &t);
	why |= sum(kernel.lost, TTMON_EV_FACT) ? 1u << TTMON_INCOMPLETE_LOST : 0;
	why |= sum(acct.malformed, TTMON_DECODE_MAX) ? 1u << TTMON_INCOMPLETE_MALFORMED : 0;
	why |= acct.arena_full ? 1u << TTMON_INCOMPLETE_ARENA_FULL : 0;
	why |= t.incomplete || t.evicted || t.limited ? 1u << TTMON_INCOMPLETE_LIMIT : 0;
	why |= t.reduced ? 1u << TTMON_INCOMPLETE_REDUCED : 0;
	why |= t.findings[TTMON_FINDING_TRUNCATED_BATCH] ? 1u << TTMON_INCOMPLETE_TRUNCATED : 0;
	why |= t.unknown_frees ? 1u << TTMON_INCOMPLETE_UNKNOWN_FREES : 0;
	/* While events are still under way the accounting cannot hold. */
	why |= !cut && !ttmon_pipeline_check(p, ignored, sizeof(ignored)) ? 1u << TTMON_INCOMPLETE_IDENTITY : 0;
	for (size_t i = 0; i < n; i++)
		why |= 1u << ttmon_gap_why_reason(gaps[i].why);
	return why;
}
