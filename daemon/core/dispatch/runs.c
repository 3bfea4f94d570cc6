// SPDX-License-Identifier: GPL-2.0-only
/*
 * runs.c: records of the real-time profiler become runs on the host's clock. Hot thread.
 *
 * A record waits until its layout is settled (record.h). It also waits for a clock during the first
 * DISP_WAIT_NS of its device's records, unless the library has no function that reports pairs. At most
 * DISP_WAITING records wait: the oldest leaves first, and a record that waited in vain is placed by
 * its envelope.
 *
 * The envelope: the run ended before the callback came. It began after it was enqueued; which dispatch
 * that was is known only where the nth run of a device is the nth dispatch of its process (struct
 * disp_proc.exact). Elsewhere error_ns is UINT64_MAX.
 */
#include "daemon/core/dispatch/dispatch_int.h"
#include "lib/base/grow.h"

#define DEVICES TTMON_TT_MESH_MAX

/* -1: no room for another one. */
static int64_t clock_get(struct ttmon_dispatch *d, const struct disp_proc *proc, uint32_t logical)
{
	uint64_t key = ttmon_disp_key(proc->serial, logical), idx = ttmon_hmap_get(&d->by_clock, key);
	size_t cap;

	if (idx != TTMON_HMAP_NONE)
		return (int64_t)idx;
	cap = d->cap_clocks;
	if (d->nr_clocks == DISP_CLOCKS || TTMON_GROW(d->clocks, cap, d->nr_clocks + 1, 16))
		return -1;
	cap = d->cap_clocks;
	if (TTMON_GROW(d->clocks_x, cap, d->nr_clocks + 1, 16))
		return -1;
	d->cap_clocks = cap;
	if (ttmon_hmap_put(&d->by_clock, key, d->nr_clocks))
		return -1;
	d->clocks[d->nr_clocks] = (struct ttmon_tt_clock){ .tgid = proc->tgid, .logical = logical };
	d->clocks_x[d->nr_clocks] = (struct disp_clock_extra){ .proc = proc->serial, .serial = ++d->serial };
	return (int64_t)d->nr_clocks++;
}

static void missed(struct ttmon_dispatch *d, const struct disp_proc *proc, uint64_t n)
{
	if (n && d->ops.missed)
		d->ops.missed(d->ctx, proc->tgid, d->now_ns, n);
}

static void refuse(struct ttmon_dispatch *d, const struct disp_proc *proc, enum ttmon_rec_err why)
{
	/* The device that the dropped records are of is unknown. */
	int64_t idx = clock_get(d, proc, TTMON_TT_NO_LOGICAL);

	if (idx < 0) {
		d->refused++;
		return;
	}
	d->clocks[idx].refused++;
	d->clocks[idx].refused_layout += why == TTMON_REC_UNKNOWN || why == TTMON_REC_DOUBTFUL;
}

static struct ttmon_rec_judge *judge_get(struct disp_proc *proc, uint16_t slot)
{
	for (uint32_t i = 0; i < proc->nr_judges; i++)
		if (proc->judges[i].slot == slot)
			return &proc->judges[i].j;
	if (proc->nr_judges == DISP_JUDGES)
		return NULL;
	proc->judges[proc->nr_judges].slot = slot;
	return &proc->judges[proc->nr_judges++].j;
}

/* ---- the envelope ---- */

static bool is_for(const struct ttmon_dispatch *d, const struct disp_proc *proc, uint64_t device, uint32_t logical)
{
	uint32_t ids[DEVICES], chips[DEVICES];
	size_t n;

	if (!device || !d->cfg.tt)
		return true;
	n = ttmon_tt_devices(d->cfg.tt, proc->tgid, device, ids, chips, DEVICES);
	for (size_t i = 0; i < n && i < DEVICES; i++)
		if (ids[i] == logical)
			return true;
	return n == 0;
}

/* Earliest time at which the nth dispatch of the process can have been enqueued. 0: unknown. */
static uint64_t enqueued_after(const struct disp_proc *proc, uint64_t nth)
{
	uint64_t at = 0;

	if (!proc->exact || nth > proc->enqueues)
		return 0;
	for (uint64_t i = proc->nr_enq; i > 0 && proc->nr_enq - i < DISP_ENQUEUED; i--) {
		const struct disp_enqueued *e = &proc->enq[(i - 1) % DISP_ENQUEUED];

		if (e->nth <= nth) {
			at = e->ts_ns;
			break;
		}
	}
	return at;
}

static void fill_envelope(const struct ttmon_dispatch *d, const struct disp_proc *proc, uint64_t nth,
			  struct ttmon_tt_run *run)
{
	uint64_t at;

	for (uint64_t i = proc->nr_enq; i > 0 && proc->nr_enq - i < DISP_ENQUEUED; i--) {
		const struct disp_enqueued *e = &proc->enq[(i - 1) % DISP_ENQUEUED];

		if (!ttmon_before(run->seen_ns, e->ts_ns) && is_for(d, proc, e->device, run->logical)) {
			run->enqueued_ns = e->ts_ns;
			break;
		}
	}
	if (run->clock != TTMON_CLOCK_ENVELOPE)
		return;
	at = enqueued_after(proc, nth);
	if (at && !ttmon_before(run->start_ns, at))
		run->error_ns = run->start_ns - at;
}

/* ---- from record to run ---- */

static void tell(struct ttmon_dispatch *d, const struct disp_proc *proc, size_t idx, uint64_t nth,
		 struct ttmon_tt_run *run)
{
	struct ttmon_tt_clock *clock = &d->clocks[idx];
	struct disp_who who = { .proc = proc->serial, .tgid = proc->tgid, .logical = run->logical };
	uint64_t error_ns;

	if (d->cfg.tt) {
		uint32_t chip = ttmon_tt_ran_on(d->cfg.tt, proc->tgid, run->logical, run->seen_ns);

		clock->chip = chip ? chip : clock->chip;
	}
	run->chip = clock->chip;
	fill_envelope(d, proc, nth, run);
	clock->clock = run->clock;
	clock->ghz = run->ghz;
	clock->busy_ns += run->end_ns - run->start_ns;
	error_ns = ttmon_tt_run_error(run);
	if (error_ns != UINT64_MAX && clock->error_ns < UINT64_MAX / 2)
		clock->error_ns += error_ns;
	else
		clock->unbounded++;
	who.chip = run->chip;
	ttmon_disp_book(d, &who, run->start_ns, run->end_ns);
	if (ttmon_disp_progs_run(d->progs, proc->serial, d->clocks_x[idx].serial, run))
		d->refused++;
	d->generation++;
	if (d->ops.run)
		d->ops.run(d->ctx, run);
}

static bool may_wait(const struct ttmon_dispatch *d, const struct disp_clock_extra *x, uint16_t slot)
{
	return (d->slot_sync[slot % TTMON_TT_SLOTS] != 2 || x->c.pairs) &&
	       ttmon_before(d->now_ns, x->first_ns + DISP_WAIT_NS) && (!x->c.pairs || ttmon_disp_clock_waits(&x->c));
}

/*
 * Reports the record as a run, or returns what it has to wait for. force: it has waited long enough.
 */
static enum disp_wait try_record(struct ttmon_dispatch *d, struct disp_waiting *w, bool force)
{
	const struct ttmon_ev_tt_program *ev = &w->ev;
	struct disp_proc *proc = ttmon_disp_proc_by_serial(d, w->proc);
	struct ttmon_rec_judge *j = proc ? judge_get(proc, ev->slot) : NULL;
	struct disp_clock_extra *x;
	struct ttmon_tt_run run;
	struct ttmon_rec rec;
	int64_t idx;
	enum ttmon_rec_err err = j ? ttmon_rec_parse(j, ev->w, ev->h.ts_ns, &rec) : TTMON_REC_BAD;

	if (err == TTMON_REC_UNKNOWN && !force)
		return DISP_FOR_LAYOUT;
	if (err && proc) {
		missed(d, proc, 1);
		refuse(d, proc, err);
		return DISP_DONE;
	}
	if (err || (idx = clock_get(d, proc, rec.chip)) < 0) {
		d->refused++;
		return DISP_DONE;
	}
	x = &d->clocks_x[idx];
	if (!w->accounted) {
		struct ttmon_tt_clock *clock = &d->clocks[idx];

		if (!clock->records++)
			x->first_ns = ev->h.ts_ns;
		clock->dropped += proc->dropped;
		clock->layout = ttmon_rec_layout_name(j);
		clock->certain = ttmon_rec_is_certain(j);
		missed(d, proc, proc->dropped);
		proc->dropped = 0;
		w->nth = clock->records;
	}
	if (ttmon_rec_check(ev->w) == TTMON_REC_UNTIMED) {
		d->clocks[idx].untimed++;
		missed(d, proc, 1);
		proc->exact = false; /* from now on a run can no longer be matched with its dispatch */
		d->generation++;
		return DISP_DONE;
	}
	run = (struct ttmon_tt_run){
		.tgid = proc->tgid, .logical = rec.chip, .program = rec.program, .seen_ns = ev->h.ts_ns
	};
	ttmon_disp_clock_place(&x->c, &rec, &run, !w->accounted);
	w->accounted = true;
	if (run.clock == TTMON_CLOCK_ENVELOPE && !force && may_wait(d, x, ev->slot))
		return DISP_FOR_CLOCK;
	tell(d, proc, (size_t)idx, w->nth, &run);
	return DISP_DONE;
}

/* ---- waiting ---- */

static struct disp_waiting *waiting_at(const struct ttmon_dispatch *d, uint32_t i)
{
	return &d->waiting[(d->wait_head + i) % DISP_WAITING];
}

static void pop_done(struct ttmon_dispatch *d)
{
	while (d->nr_waiting && waiting_at(d, 0)->what == DISP_DONE) {
		d->wait_head = (d->wait_head + 1) % DISP_WAITING;
		d->nr_waiting--;
	}
}

static void retry(struct ttmon_dispatch *d, struct disp_waiting *w, bool force)
{
	struct disp_proc *proc = ttmon_disp_proc_by_serial(d, w->proc);

	w->what = (uint8_t)try_record(d, w, force);
	if (w->what == DISP_DONE && proc)
		proc->waiting--;
}

/* Tries the records of this process again, since something came that they may have waited for. */
static void pump(struct ttmon_dispatch *d, const struct disp_proc *proc, bool force)
{
	for (uint32_t i = 0; proc->waiting && i < d->nr_waiting; i++) {
		struct disp_waiting *w = waiting_at(d, i);

		if (w->what != DISP_DONE && w->proc == proc->serial)
			retry(d, w, force);
	}
	pop_done(d);
}

static void put_waiting(struct ttmon_dispatch *d, struct disp_proc *proc, struct disp_waiting *w)
{
	if (!d->waiting) {
		d->waiting = malloc(DISP_WAITING * sizeof(*d->waiting));
		if (!d->waiting) {
			if (w->what == DISP_FOR_LAYOUT)
				d->refused++;
			else
				(void)try_record(d, w, true);
			return;
		}
	}
	if (d->nr_waiting == DISP_WAITING) {
		retry(d, waiting_at(d, 0), true);
		pop_done(d);
	}
	d->nr_waiting++;
	*waiting_at(d, d->nr_waiting - 1) = *w;
	proc->waiting++;
}

void ttmon_disp_expire(struct ttmon_dispatch *d, bool all)
{
	while (d->nr_waiting) {
		struct disp_waiting *w = waiting_at(d, 0);
		struct disp_proc *proc = ttmon_disp_proc_by_serial(d, w->proc);
		int64_t age = (int64_t)(d->now_ns - w->ev.h.ts_ns);
		bool over = all || age >= (int64_t)DISP_WAIT_NS;

		if (proc && w->what == DISP_FOR_LAYOUT) {
			struct ttmon_rec_judge *j = judge_get(proc, w->ev.slot);

			ttmon_rec_judge_tick(j, d->now_ns + (all ? DISP_WAIT_NS : 0));
			if (j->settled && !over) {
				pump(d, proc, false);
				/* The record now waits for something else, or is gone. */
				if (d->nr_waiting && waiting_at(d, 0)->what == DISP_FOR_LAYOUT)
					break;
				continue;
			}
		}
		if (!over)
			break;
		retry(d, w, true);
		pop_done(d);
	}
}

void ttmon_disp_flush(struct ttmon_dispatch *d, const struct disp_proc *proc)
{
	pump(d, proc, true);
}

/* ---- events ---- */

void ttmon_dispatch_on_tt_program(struct ttmon_dispatch *d, const struct ttmon_ev_tt_program *ev)
{
	const struct ttmon_tt_desc *desc = ttmon_tt_fn(ev->fn);
	enum ttmon_rec_err err = ttmon_rec_check(ev->w);
	struct disp_proc *proc = ttmon_disp_proc_get(d, ev->h.tgid);
	struct disp_waiting w = { .ev = *ev };
	struct ttmon_rec_judge *j;
	bool was_settled;

	if (!proc) {
		d->refused++;
		return;
	}
	if (ev->nth == 0 && ev->dropped < 1ULL << 48)
		proc->dropped += ev->dropped;
	if (err == TTMON_REC_SKIP)
		return;
	j = err && err != TTMON_REC_UNTIMED ? NULL : judge_get(proc, ev->slot);
	if (!j) {
		missed(d, proc, 1);
		refuse(d, proc, TTMON_REC_BAD);
		d->generation++;
		return;
	}
	was_settled = j->settled;
	if (!err)
		ttmon_rec_judge_add(j, ev, desc && desc->cls == TTMON_TT_CLS_PROGRAMS);
	w.proc = proc->serial;
	if (j->settled && !was_settled)
		pump(d, proc, false);
	w.what = (uint8_t)try_record(d, &w, false);
	if (w.what != DISP_DONE)
		put_waiting(d, proc, &w);
}

static void on_pair(struct ttmon_dispatch *d, const struct ttmon_ev_tt_call *ev)
{
	struct disp_proc *proc = ttmon_disp_proc_get(d, ev->h.tgid);
	uint32_t chip = (uint32_t)ev->arg[0]; /* the upper half of the register is undefined */
	int64_t idx;
	int err;

	if (proc && proc->ms != ev->h.ts_ns / NSEC_PER_MS) {
		proc->ms = ev->h.ts_ns / NSEC_PER_MS;
		proc->ms_pairs = 0;
	}
	if (proc && (chip >= TTMON_REC_CHIPS || ++proc->ms_pairs > DISP_PAIRS_MS)) {
		refuse(d, proc, TTMON_REC_BAD);
		return;
	}
	if (!proc || (idx = clock_get(d, proc, chip)) < 0) {
		d->refused++;
		return;
	}
	err = ttmon_disp_clock_pair(&d->clocks_x[idx].c, &d->tsc, ev->h.ts_ns, ev->arg[1], ev->arg[2]);
	if (err == -ENOMEM)
		d->refused++;
	else
		d->clocks[idx].refused += err < 0;
	d->generation++;
	if (err == 1 && proc->waiting)
		pump(d, proc, false);
}

void ttmon_dispatch_on_tt_call(struct ttmon_dispatch *d, const struct ttmon_ev_tt_call *ev)
{
	const struct ttmon_tt_desc *desc = ttmon_tt_fn(ev->fn);

	if (desc && desc->cls == TTMON_TT_CLS_PAIR)
		on_pair(d, ev);
}

void ttmon_dispatch_on_tsc(struct ttmon_dispatch *d, const struct ttmon_ev_tsc *ev)
{
	if (!ttmon_tsc_add(&d->tsc, ev) || !d->tsc.sync.valid)
		return;
	for (size_t i = 0; i < d->nr_clocks; i++) {
		struct disp_proc *proc;

		if (!ttmon_disp_clock_waits(&d->clocks_x[i].c) || !ttmon_disp_clock_tsc(&d->clocks_x[i].c, &d->tsc))
			continue;
		d->generation++;
		proc = ttmon_disp_proc_by_serial(d, d->clocks_x[i].proc);
		if (proc && proc->waiting)
			pump(d, proc, false);
	}
}
