// SPDX-License-Identifier: GPL-2.0-only
/*
 * dispatch.c: see dispatch.h. Hot thread. Processes, counts and views; runs.c handles profiler
 * records, slots.c splits work over slots.
 *
 * Counts are differences of sums that each record carries (sums.h), kept by (process, device, CPU).
 * Facts come when they are made, events when their slot closes, so TT_SUMS may include events that
 * come later: those add nothing to the counts and are still reported one by one.
 *
 * A process is (tgid, start time). Its entries stay when it has ended, so that sums read afterwards
 * can be compared with the earlier ones. The last DISP_ENDED ended processes are kept; DISP_ENDED_MORE
 * more may accumulate before they are removed together.
 *
 * Slots: ttmon_dispatch_slot() returns the dispatches of all kinds counted in the slot that closes,
 * and the device time reported in it (see slots.c for the split). What ttmon_dispatch_finish() reports
 * is in the sums of the slot that is requested after it, if any is.
 */
#include <ttmon/family.h>

#include "daemon/core/dispatch/dispatch_int.h"
#include "lib/base/grow.h"

static const char *const clock_names[TTMON_CLOCKS] = {
#define X(id, NAME, name) [id] = name,
	TTMON_CLOCK_TABLE(X)
#undef X
};

const char *ttmon_clock_name(unsigned int clock)
{
	return clock < TTMON_CLOCKS ? clock_names[clock] : NULL;
}

TTMON_FREEP(dispatch_freep, struct ttmon_dispatch, ttmon_dispatch_free);

int ttmon_dispatch_new(const struct ttmon_dispatch_cfg *cfg, const struct ttmon_dispatch_ops *ops, void *ctx,
		       struct ttmon_dispatch **ret)
{
	_cleanup_(dispatch_freep) struct ttmon_dispatch *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->cfg = *cfg;
	if (!d->cfg.max_programs)
		d->cfg.max_programs = DISP_PROGRAMS;
	d->ops = *ops;
	d->ctx = ctx;
	ttmon_tsc_init(&d->tsc);
	err = ttmon_disp_progs_new(d->cfg.max_programs, &d->progs);
	if (err)
		return err;
	*ret = TAKE_PTR(d);
	return 0;
}

void ttmon_dispatch_free(struct ttmon_dispatch *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nr_procs; i++)
		free(d->procs[i]);
	for (size_t i = 0; i < d->nr_clocks; i++)
		ttmon_disp_clock_fini(&d->clocks_x[i].c);
	free(d->procs);
	free(d->sums);
	free(d->sums_x);
	free(d->cpus);
	free(d->clocks);
	free(d->clocks_x);
	free(d->waiting);
	ttmon_disp_progs_free(d->progs);
	ttmon_hmap_fini(&d->by_tgid);
	ttmon_hmap_fini(&d->by_serial);
	ttmon_hmap_fini(&d->starts);
	ttmon_hmap_fini(&d->blind);
	ttmon_hmap_fini(&d->by_device);
	ttmon_hmap_fini(&d->by_cpu);
	ttmon_hmap_fini(&d->by_clock);
	free(d);
}

/* Makes room for one more element of size bytes. */
/* The caller knows that the key is in the map. */
static void move_to(struct ttmon_hmap *m, uint64_t key, uint64_t idx)
{
	m->v[ttmon_hmap_slot(m, key)].val = idx;
}

/* ---- processes ---- */

/* starts: twice the start time, plus one if the process was seen from its beginning. */
#define START_MASK (UINT64_MAX >> 2)

static void set_start(const struct ttmon_dispatch *d, struct disp_proc *proc)
{
	uint64_t val = ttmon_hmap_get(&d->starts, proc->tgid), blind = ttmon_hmap_get(&d->blind, proc->tgid);

	if (val == TTMON_HMAP_NONE)
		return;
	proc->start_ns = val >> 1;
	/* Dispatches made before its probes were active were not counted. */
	proc->exact = val & 1 && (blind == TTMON_HMAP_NONE || ttmon_before(blind, proc->start_ns));
}

struct disp_proc *ttmon_disp_proc_by_serial(const struct ttmon_dispatch *d, uint32_t serial)
{
	uint64_t at = ttmon_hmap_get(&d->by_serial, serial);

	return at == TTMON_HMAP_NONE ? NULL : d->procs[at];
}

struct disp_proc *ttmon_disp_proc_get(struct ttmon_dispatch *d, uint32_t tgid)
{
	uint64_t serial = ttmon_hmap_get(&d->by_tgid, tgid);
	struct disp_proc *proc;

	if (serial != TTMON_HMAP_NONE)
		return ttmon_disp_proc_by_serial(d, (uint32_t)serial);
	if (d->nr_procs == DISP_PROCS || TTMON_GROW(d->procs, d->cap_procs, d->nr_procs + 1, 16))
		return NULL;
	proc = calloc(1, sizeof(*proc));
	if (!proc)
		return NULL;
	proc->tgid = tgid;
	proc->serial = ++d->serial;
	if (ttmon_hmap_put(&d->by_serial, proc->serial, d->nr_procs)) {
		free(proc);
		return NULL;
	}
	if (ttmon_hmap_put(&d->by_tgid, tgid, proc->serial)) {
		ttmon_hmap_del(&d->by_serial, proc->serial);
		free(proc);
		return NULL;
	}
	set_start(d, proc);
	return d->procs[d->nr_procs++] = proc;
}

static bool is_gone(void *ctx, uint32_t serial)
{
	return !ttmon_disp_proc_by_serial(ctx, serial);
}

/* Removes the entries of processes that are gone and closes the gaps between the others. */
static void compact(struct ttmon_dispatch *d)
{
	size_t k = 0;

	for (size_t i = 0; i < d->nr_cpus; i++) {
		if (is_gone(d, d->cpus[i].proc)) {
			ttmon_hmap_del(&d->by_cpu, d->cpus[i].key);
			continue;
		}
		move_to(&d->by_cpu, d->cpus[i].key, k);
		d->cpus[k++] = d->cpus[i];
	}
	d->nr_cpus = k;
	k = 0;
	for (size_t i = 0; i < d->nr_sums; i++) {
		if (is_gone(d, d->sums_x[i].proc)) {
			ttmon_hmap_del(&d->by_device, d->sums_x[i].key);
			continue;
		}
		move_to(&d->by_device, d->sums_x[i].key, k);
		d->sums[k] = d->sums[i];
		d->sums_x[k++] = d->sums_x[i];
	}
	d->nr_sums = k;
	k = 0;
	for (size_t i = 0; i < d->nr_clocks; i++) {
		uint64_t key = ttmon_disp_key(d->clocks_x[i].proc, d->clocks[i].logical);

		if (is_gone(d, d->clocks_x[i].proc)) {
			ttmon_disp_clock_fini(&d->clocks_x[i].c);
			ttmon_hmap_del(&d->by_clock, key);
			continue;
		}
		move_to(&d->by_clock, key, k);
		d->clocks[k] = d->clocks[i];
		d->clocks_x[k++] = d->clocks_x[i];
	}
	d->nr_clocks = k;
	ttmon_disp_progs_drop(d->progs, is_gone, d);
}

/* Removes the oldest ended processes where there are too many. */
static void forget(struct ttmon_dispatch *d)
{
	size_t k = 0, too_many = d->nr_ended - DISP_ENDED;

	for (size_t i = 0; i < d->nr_procs; i++)
		if (d->procs[i]->ended && too_many) {
			too_many--;
			ttmon_disp_flush(d, d->procs[i]);
			d->procs[i]->forget = true;
		}
	for (size_t i = 0; i < d->nr_procs; i++) {
		struct disp_proc *proc = d->procs[i];

		if (!proc->forget) {
			move_to(&d->by_serial, proc->serial, k);
			d->procs[k++] = proc;
			continue;
		}
		if (ttmon_hmap_get(&d->by_tgid, proc->tgid) == proc->serial)
			ttmon_hmap_del(&d->by_tgid, proc->tgid);
		ttmon_hmap_del(&d->by_serial, proc->serial);
		free(proc);
	}
	d->nr_procs = k;
	d->nr_ended = DISP_ENDED;
	compact(d);
	d->generation++;
}

static void end_proc(struct ttmon_dispatch *d, struct disp_proc *proc, uint64_t ts_ns)
{
	if (proc->ended)
		return;
	proc->ended = true;
	proc->end_ns = ts_ns;
	d->nr_ended++;
	if (!d->cfg.keep_all && d->nr_ended >= DISP_ENDED + DISP_ENDED_MORE)
		forget(d);
}

static void end_of(struct ttmon_dispatch *d, const struct ttmon_event *ev)
{
	uint64_t serial = ttmon_hmap_get(&d->by_tgid, ev->tgid);

	ttmon_hmap_del(&d->starts, ev->tgid);
	ttmon_hmap_del(&d->blind, ev->tgid);
	if (serial != TTMON_HMAP_NONE)
		end_proc(d, ttmon_disp_proc_by_serial(d, (uint32_t)serial), ev->ts_ns);
}

void ttmon_dispatch_on_proc(struct ttmon_dispatch *d, const struct ttmon_ev_proc *ev)
{
	uint64_t start_ns = ev->start_ns & START_MASK;
	uint64_t serial = ttmon_hmap_get(&d->by_tgid, ev->h.tgid);
	bool whole = ev->reason == TTMON_PROC_FORK || ev->reason == TTMON_PROC_EXEC ||
		     (d->clock_ns && ttmon_before(d->clock_ns, start_ns));

	if (serial != TTMON_HMAP_NONE) {
		struct disp_proc *proc = ttmon_disp_proc_by_serial(d, (uint32_t)serial);

		if (proc->start_ns && proc->start_ns != start_ns) {
			ttmon_hmap_del(&d->by_tgid, ev->h.tgid);
			end_proc(d, proc, ev->h.ts_ns);
		} else if (!proc->start_ns) {
			proc->start_ns = start_ns;
		}
	}
	if (d->starts.n >= DISP_STARTS)
		ttmon_hmap_fini(&d->starts);
	/* If this fails, the start of the process stays unknown. */
	if (ttmon_hmap_put(&d->starts, ev->h.tgid, start_ns << 1 | whole))
		d->refused++;
}

void ttmon_dispatch_on_blind(struct ttmon_dispatch *d, const struct ttmon_ev_blind *ev)
{
	uint64_t serial = ttmon_hmap_get(&d->by_tgid, ev->h.tgid);

	if (ev->how == TTMON_BLIND_HELD || (ev->families && !(ev->families & TTMON_FAMILY_BIT(DISPATCH))))
		return;
	if (serial != TTMON_HMAP_NONE)
		ttmon_disp_proc_by_serial(d, (uint32_t)serial)->exact = false;
	if (d->blind.n >= DISP_BLINDS)
		ttmon_hmap_fini(&d->blind);
	if (ttmon_hmap_put(&d->blind, ev->h.tgid, MIN(ev->active_ns, START_MASK)))
		d->refused++;
}

/* ---- counts ---- */

/* -1: no room for another one. */
static int64_t sum_get(struct ttmon_dispatch *d, const struct disp_proc *proc, uint64_t device)
{
	uint64_t key = ttmon_mix64(device ^ ttmon_mix64(proc->serial)), idx;
	size_t cap = d->cap_sums;

	for (; (idx = ttmon_hmap_get(&d->by_device, key)) != TTMON_HMAP_NONE; key++)
		if (d->sums_x[idx].proc == proc->serial && d->sums[idx].device == device)
			return (int64_t)idx;
	if (d->nr_sums == DISP_SUMS || TTMON_GROW(d->sums, cap, d->nr_sums + 1, 16))
		return -1;
	cap = d->cap_sums;
	if (TTMON_GROW(d->sums_x, cap, d->nr_sums + 1, 16))
		return -1;
	d->cap_sums = cap;
	if (ttmon_hmap_put(&d->by_device, key, d->nr_sums))
		return -1;
	d->sums[d->nr_sums] = (struct ttmon_tt_dispatch_sum){ .tgid = proc->tgid, .device = device };
	d->sums_x[d->nr_sums] = (struct disp_sum_extra){
		.proc = proc->serial, .serial = ++d->serial, .logical = TTMON_TT_NO_LOGICAL, .key = key
	};
	return (int64_t)d->nr_sums++;
}

static struct ttmon_disp_cpu *cpu_get(struct ttmon_dispatch *d, const struct disp_sum_extra *sum, uint32_t cpu)
{
	uint64_t key = ttmon_disp_key(sum->serial, cpu), idx = ttmon_hmap_get(&d->by_cpu, key);

	if (idx == TTMON_HMAP_NONE) {
		if (d->nr_cpus == DISP_CPUS || TTMON_GROW(d->cpus, d->cap_cpus, d->nr_cpus + 1, 16) ||
		    ttmon_hmap_put(&d->by_cpu, key, d->nr_cpus))
			return NULL;
		idx = d->nr_cpus++;
		d->cpus[idx] = (struct disp_cpu){ .key = key, .proc = sum->proc };
	}
	return &d->cpus[idx].c;
}

static void resolve_chip(const struct ttmon_dispatch *d, size_t idx)
{
	struct ttmon_tt_dispatch_sum *sum = &d->sums[idx];
	uint32_t logical, chip = 0;

	if (sum->chip || !d->cfg.tt || !sum->device)
		return;
	if (ttmon_tt_devices(d->cfg.tt, sum->tgid, sum->device, &logical, &chip, 1)) {
		sum->chip = chip;
		d->sums_x[idx].logical = logical;
	}
}

/*
 * An event that stands for n dispatches: itself and those before it that were not reported one by one.
 * Runs can be matched with dispatches only while each dispatch is reported. (Sums that the daemon read
 * are not used here: they come before the events of the same dispatches.)
 */
static void follow_enqueues(struct disp_proc *proc, uint64_t device, unsigned int kind, uint64_t n)
{
	if (kind == TTMON_TT_TRACE) {
		proc->exact = false;
		return;
	}
	if (n > 1 || (proc->has_device && proc->device != device))
		proc->exact = false;
	proc->has_device = true;
	proc->device = device;
	proc->enqueues += n;
}

static void add_counts(struct ttmon_dispatch *d, const struct disp_proc *proc, size_t idx,
		       const uint64_t add[TTMON_TT_DISPATCH_MAX])
{
	struct ttmon_tt_dispatch_sum *sum = &d->sums[idx];
	struct disp_who who = {
		.proc = proc->serial, .tgid = proc->tgid, .logical = d->sums_x[idx].logical, .chip = sum->chip
	};
	uint64_t n = 0;

	for (unsigned int k = 0; k < TTMON_TT_DISPATCH_MAX; k++) {
		sum->count[k] += add[k];
		n += add[k];
	}
	ttmon_disp_book_dispatches(d, &who, n);
}

/*
 * Counts the sums of a process for a device on a CPU. ev: the dispatch that carried them, NULL if the
 * daemon read them.
 */
static void count(struct ttmon_dispatch *d, const struct ttmon_event *h, uint32_t cpu, uint64_t device,
		  uint8_t dev_kind, const __u64 *sums, const struct ttmon_ev_tt_dispatch *ev)
{
	struct disp_proc *proc = ttmon_disp_proc_get(d, h->tgid);
	int64_t idx = proc ? sum_get(d, proc, device) : -1;
	struct ttmon_disp_cpu *c = idx < 0 ? NULL : cpu_get(d, &d->sums_x[idx], cpu);
	uint64_t add[TTMON_TT_DISPATCH_MAX], told = 0;
	struct ttmon_tt_dispatch_sum *sum;

	if (!c) {
		d->refused++;
		return;
	}
	sum = &d->sums[idx];
	resolve_chip(d, (size_t)idx);
	if (ttmon_disp_cpu_add(c, h->ts_ns, sums, add)) {
		add_counts(d, proc, (size_t)idx, add);
		if (!sum->first_ns)
			sum->first_ns = sum->last_ns = h->ts_ns;
		d->generation++;
	}
	sum->start_ns = proc->start_ns;
	sum->dev_kind = dev_kind ? dev_kind : sum->dev_kind;
	if (ev)
		told = ttmon_disp_cpu_tell(c, ev->kind, sums[ev->kind]);
	if (!told)
		return;
	if (ttmon_before(h->ts_ns, sum->first_ns))
		sum->first_ns = h->ts_ns;
	if (ttmon_before(sum->last_ns, h->ts_ns))
		sum->last_ns = h->ts_ns;
	if (ev->kind == TTMON_TT_WORKLOAD || ev->kind == TTMON_TT_SLOW || ev->kind == TTMON_TT_TRACE) {
		follow_enqueues(proc, device, ev->kind, told);
		proc->enq[proc->nr_enq++ % DISP_ENQUEUED] =
			(struct disp_enqueued){ .ts_ns = h->ts_ns, .device = device, .nth = proc->enqueues };
	}
	if (d->ops.dispatched) {
		struct ttmon_tt_dispatched op = {
			.tgid = h->tgid,
			.tid = h->tid,
			.ts_ns = h->ts_ns,
			.device = device,
			.what = ev->what,
			.count = told,
			.fn = ev->fn,
			.kind = ev->kind,
			.blocking = ev->blocking,
		};

		d->ops.dispatched(d->ctx, &op);
	}
}

/* ---- events ---- */

void ttmon_dispatch_on_tt_kernel(struct ttmon_dispatch *d, const struct ttmon_ev_tt_kernel *ev)
{
	struct disp_proc *proc = ttmon_disp_proc_get(d, ev->h.tgid);

	if (!proc || ttmon_disp_progs_kernel(d->progs, proc->serial, ev))
		d->refused++;
	d->generation++;
}

void ttmon_dispatch_now(struct ttmon_dispatch *d, uint64_t now_ns)
{
	if (d->begun && !ttmon_before(d->now_ns, now_ns))
		return;
	d->now_ns = now_ns;
	d->begun = true;
	if (d->nr_waiting)
		ttmon_disp_expire(d, false);
}

void ttmon_dispatch_on_exit(struct ttmon_dispatch *d, const struct ttmon_ev_exit *ev)
{
	end_of(d, &ev->h);
}

void ttmon_dispatch_on_gone(struct ttmon_dispatch *d, const struct ttmon_ev_gone *ev)
{
	end_of(d, &ev->h);
}

void ttmon_dispatch_on_tt_dispatch(struct ttmon_dispatch *d, const struct ttmon_ev_tt_dispatch *ev)
{
	count(d, &ev->h, ev->h.cpu, ev->device, ev->dev_kind, ev->sums, ev);
}

void ttmon_dispatch_on_tt_sums(struct ttmon_dispatch *d, const struct ttmon_ev_tt_sums *ev)
{
	count(d, &ev->h, ev->of_cpu, ev->device, ev->dev_kind, ev->sums, NULL);
}

void ttmon_dispatch_on_tt_object(struct ttmon_dispatch *d, const struct ttmon_ev_tt_object *ev)
{
	d->unprobed |= ev->unprobed;
	if (ev->slot < TTMON_TT_SLOTS)
		d->slot_sync[ev->slot] = ev->has & TTMON_TT_HAS_SYNC ? 1 : 2;
}

void ttmon_dispatch_on_clock(struct ttmon_dispatch *d, const struct ttmon_ev_clock *ev)
{
	d->clock_ns = ev->mono_ns;
}

void ttmon_dispatch_finish(struct ttmon_dispatch *d)
{
	ttmon_disp_expire(d, true);
	ttmon_disp_close_open(d, 0, true);
}

void ttmon_dispatch_slot(struct ttmon_dispatch *d, uint64_t slot_no, uint64_t *dispatches, uint64_t *busy_ns)
{
	uint64_t end_ns = (slot_no + 1) * NSEC_PER_MS;

	ttmon_dispatch_now(d, end_ns);
	if (d->nr_open)
		ttmon_disp_close_open(d, end_ns, false);
	*dispatches = d->slot_dispatches;
	*busy_ns = d->slot_busy_ns;
	d->slot_dispatches = d->slot_busy_ns = 0;
	ttmon_disp_tell_rows(d, slot_no);
	d->next_slot = slot_no + 1;
}

/* ---- views ---- */

size_t ttmon_dispatch_sums(const struct ttmon_dispatch *d, const struct ttmon_tt_dispatch_sum **ret)
{
	for (size_t i = 0; i < d->nr_sums; i++)
		resolve_chip(d, i);
	*ret = d->sums;
	return d->nr_sums;
}

size_t ttmon_dispatch_programs(const struct ttmon_dispatch *d, const struct ttmon_tt_program **ret)
{
	return ttmon_disp_progs_view(d->progs, ret);
}

const char *ttmon_dispatch_kernels(const struct ttmon_dispatch *d, uint32_t kernels)
{
	return ttmon_disp_progs_kernels(d->progs, kernels);
}

size_t ttmon_dispatch_clocks(const struct ttmon_dispatch *d, const struct ttmon_tt_clock **ret)
{
	for (size_t i = 0; i < d->nr_clocks; i++)
		ttmon_disp_clock_view(&d->clocks_x[i].c, &d->clocks[i]);
	*ret = d->clocks;
	return d->nr_clocks;
}

uint32_t ttmon_dispatch_unprobed(const struct ttmon_dispatch *d)
{
	return d->unprobed;
}

uint64_t ttmon_dispatch_generation(const struct ttmon_dispatch *d)
{
	return d->generation;
}

uint64_t ttmon_dispatch_refused(const struct ttmon_dispatch *d)
{
	return d->refused;
}
