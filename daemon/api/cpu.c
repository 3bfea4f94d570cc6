// SPDX-License-Identifier: GPL-2.0-only
/*
 * cpu.c: /v1/processes, and the members for CPU time and RMIDs of /v1/status. Runs in the cold thread.
 * Processes are copied in the hot thread, between two drains, into memory allocated here.
 */
#include <jansson.h>

#include "daemon/api/api.h"
#include "daemon/core/history/waits.h"
#include "lib/base/search.h"
#include "daemon/run/cpurun.h"
#include "daemon/api/viewer.h"

#define INT(x) ((json_int_t)(x))
/*
 * Spare room for processes that come between the count and the copy, and for the fixed entries; if it
 * is too small, the copy is tried again with more.
 */
#define SPARE	     64
#define TRIES	     4
#define HAS_READINGS (TTMON_RMID_HAS_OCCUPANCY | TTMON_RMID_HAS_TOTAL | TTMON_RMID_HAS_LOCAL)

static const char *const ctr_names[TTMON_CTR_MAX] = {
#define X(id, NAME, name) [id] = name,
	TTMON_CTR_TABLE(X)
#undef X
};

struct list {
	struct ttmon_cpu_proc *procs;
	size_t n, cap, wanted;
	struct ttmon_cpu_proc gone;
	/* Copied at the same moment, so that the processes add up to them. */
	struct ttmon_cpu_totals cpu;
	struct ttmon_rmid_totals rmid;
	/* Runs with a target: the processes whose transfers and pinned memory are known. */
	uint32_t *traced;
	size_t nr_traced, cap_traced;
	/* Gaps: of the host, and of single processes, by tgid. */
	struct ttmon_seen_view seen;
	struct ttmon_gap *gaps;
	size_t nr_gaps, cap_gaps, wanted_gaps;
	/* What the history has of processes: device work, and the time of synchronous calls; by identity. */
	struct worker {
		uint32_t tgid;
		uint64_t start_ns;
		struct ttmon_work work;
		uint64_t wait_ns, unobserved; /* unobserved: synchronous calls whose time is not in wait_ns */
	} * workers;
	size_t nr_workers, cap_workers, wanted_workers;
};

static void add(void *ctx, const struct ttmon_cpu_proc *p)
{
	struct list *l = ctx;

	l->wanted++;
	if (l->n < l->cap)
		l->procs[l->n++] = *p;
}

/* Copies the gaps of single processes; those of all are in `seen`. */
static void copy_gaps(struct list *l, const struct ttmon_know *k)
{
	const struct ttmon_gap *gaps;
	size_t n = ttmon_know_gaps(k, &gaps);

	l->nr_gaps = l->wanted_gaps = 0;
	for (size_t i = 0; i < n; i++) {
		if (!gaps[i].tgid || !(gaps[i].families & TTMON_FAMILIES_CUDA) || gaps[i].to_ns <= l->seen.start_ns)
			continue;
		l->wanted_gaps++;
		if (l->nr_gaps < l->cap_gaps)
			l->gaps[l->nr_gaps++] = gaps[i];
	}
}

static void copy_workers(struct list *l, const struct ttmon_history *h)
{
	l->nr_workers = l->wanted_workers = 0;
	for (size_t i = 0; i < ttmon_history_procs(h); i++) {
		const struct ttmon_proc *p = ttmon_history_proc(h, i);
		const struct ttmon_wait_sums *waits = p ? ttmon_history_waits(h, p) : NULL;
		struct worker w;

		if (!p || (!p->work.runs && !waits))
			continue;
		w = (struct worker){ .tgid = p->tgid, .start_ns = p->start_ns, .work = p->work };
		for (unsigned int kind = 0; waits && kind < TTMON_WAIT_MAX; kind++) {
			w.wait_ns += waits[kind].ns;
			w.unobserved += waits[kind].unobserved;
		}
		l->wanted_workers++;
		if (l->nr_workers < l->cap_workers)
			l->workers[l->nr_workers++] = w;
	}
}

static int copy(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	const struct ttmon_history *h = ttmon_pipeline_history(p);
	struct list *l = ctx;

	(void)now_ns;
	l->n = l->wanted = l->nr_traced = 0;
	ttmon_cpu_each(ttmon_pipeline_cpu(p), add, l);
	ttmon_cpu_gone(ttmon_pipeline_cpu(p), &l->gone);
	ttmon_cpu_get_totals(ttmon_pipeline_cpu(p), &l->cpu);
	ttmon_rmid_get_totals(ttmon_pipeline_rmid(p), &l->rmid);
	ttmon_pipeline_seen(p, &l->seen);
	copy_gaps(l, ttmon_pipeline_know(p));
	copy_workers(l, h);
	for (size_t i = 0; l->traced && i < ttmon_history_procs(h) && l->nr_traced < l->cap_traced; i++)
		if (ttmon_history_proc(h, i))
			l->traced[l->nr_traced++] = ttmon_history_proc(h, i)->tgid;
	return 0;
}

static const char *class_name(uint8_t cls)
{
	static const char *const names[TTMON_ROW_CLASS_MAX] = { "user", "kernel", "idle", "unassigned", "other" };

	return cls < TTMON_ROW_CLASS_MAX ? names[cls] : "?";
}

static json_t *known(bool is, uint64_t value)
{
	return is ? json_integer(INT(value)) : json_null();
}

static int by_tgid(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* True if its transfers are known. Where the whole host is traced, those of every process are. */
static bool is_traced(const struct list *l, uint32_t tgid)
{
	return !l->traced || bsearch(&tgid, l->traced, l->nr_traced, sizeof(tgid), by_tgid);
}

static int by_gap_tgid(const void *a, const void *b)
{
	const struct ttmon_gap *x = a, *y = b;

	return x->tgid < y->tgid ? -1 : x->tgid > y->tgid;
}

/* Which of a process's sums are known. */
struct known {
	bool cpu, copies, pinned, work, waits; /* fully known */
	bool held;			       /* its present memory is reported at all */
	uint64_t probed_ns;		       /* when the last of its probes became active; 0: from its start */
};

static struct known known_of(const struct ttmon_cpu_proc *p, const struct list *l)
{
	const uint32_t alloc = TTMON_FAMILY_BIT(ALLOC) | TTMON_FAMILY_BIT(TENSTORRENT);
	uint64_t since_ns = MAX(p->start_ns, l->seen.start_ns);
	struct known k = {
		.cpu = ttmon_api_are_whole(&l->seen, TTMON_FAMILY_BIT(CPU), since_ns),
		.copies = ttmon_api_are_whole(&l->seen, TTMON_FAMILY_BIT(TRANSFER), since_ns),
		.pinned = ttmon_api_are_whole(&l->seen, alloc, since_ns),
		.work = ttmon_api_are_whole(&l->seen, TTMON_FAMILY_BIT(TENSTORRENT) | TTMON_FAMILY_BIT(DISPATCH),
					    since_ns),
		.waits = ttmon_api_are_whole(&l->seen, TTMON_FAMILY_BIT(WAIT), since_ns),
		.held = ttmon_api_are_on(&l->seen, alloc),
	};
	size_t first = 0, last = l->nr_gaps;

	first = TTMON_SEARCH(first, last, mid, l->gaps[mid].tgid < p->tgid);
	for (; p->tgid && first < l->nr_gaps && l->gaps[first].tgid == p->tgid; first++) {
		const struct ttmon_gap *g = &l->gaps[first];

		if (g->to_ns <= since_ns)
			continue;
		k.copies &= !(g->families & TTMON_FAMILY_BIT(TRANSFER));
		k.pinned &= !(g->families & TTMON_FAMILY_BIT(ALLOC));
		k.waits &= !(g->families & TTMON_FAMILY_BIT(WAIT));
		if (!ttmon_gap_is_partial(g->why))
			k.probed_ns = MAX(k.probed_ns, g->to_ns);
	}
	return k;
}

/* A lower bound of 0 says nothing, so it is null. *least: set if the value is a lower bound. */
static json_t *summed(bool whole, uint64_t value, bool *least)
{
	*least |= !whole && value;
	return known(whole || value, value);
}

/* The same id with another start is another process. */
static int by_worker(const void *a, const void *b)
{
	const struct worker *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static const struct worker *find_worker(const struct ttmon_cpu_proc *p, const struct list *l)
{
	const struct worker key = { .tgid = p->tgid, .start_ns = p->start_ns };

	return p->tgid && l->nr_workers ? bsearch(&key, l->workers, l->nr_workers, sizeof(key), by_worker) : NULL;
}

/* Work of chips for it: null where tt-metal's profiler reported nothing. */
static json_t *work_of(const struct worker *w, bool whole, bool *least)
{
	if (!w || !w->work.runs)
		return json_null();
	whole &= !w->work.missed;
	*least |= !whole;
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:b}", "runs", INT(w->work.runs), "busy_ns", INT(w->work.busy_ns),
			 "bounded_error_ns", INT(w->work.error_ns), "unbounded_runs", INT(w->work.unbounded),
			 "missed_runs", INT(w->work.missed), "at_least", !whole);
}

/* Figures that this host does not measure, or that were not seen, are null. */
static json_t *process(const struct ttmon_cpu_proc *p, const struct list *l)
{
	bool ctr = l->cpu.has_ctr, total = l->rmid.has & TTMON_RMID_HAS_TOTAL;
	bool local = l->rmid.has & TTMON_RMID_HAS_LOCAL, traced = is_traced(l, p->tgid), least = false;
	const struct worker *w = find_worker(p, l);
	struct known k = known_of(p, l);
	json_t *o = json_pack("{s:I, s:I, s:o, s:s, s:I, s:o, s:b, s:o, s:o, s:o}", "pid", INT(p->tgid), "start_ns",
			      INT(p->start_ns), "comm", ttmon_api_comm(p->comm), "class", class_name(p->cls), "ppid",
			      INT(p->ppid), "cgroup_id", known(p->cgroup_id, p->cgroup_id), "ended", p->end_ns != 0,
			      "end_ns", known(p->end_ns, p->end_ns), "cpu_ns", summed(k.cpu, p->cpu_ns, &least),
			      "switches", summed(k.cpu, p->switches, &least));

	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++)
		json_object_set_new(o, ctr_names[i], ctr ? summed(k.cpu, p->ctr[i], &least) : json_null());
	json_object_set_new(o, "counters_complete", json_boolean(ctr && k.cpu && !(p->flags & TTMON_ROW_CTR_UNKNOWN)));
	json_object_set_new(o, "counters_scaled", json_boolean(p->flags & TTMON_ROW_CTR_SCALED));
	json_object_set_new(o, "rmid", known(p->rmid, p->rmid));
	json_object_set_new(o, "llc_bytes", known(p->flags & TTMON_ROW_LLC_VALID, p->llc_bytes));
	json_object_set_new(o, "mbm_total_bytes", known(total, p->mbm_total));
	json_object_set_new(o, "mbm_local_bytes", known(local, p->mbm_local));
	json_object_set_new(o, "rdt_ns", known(total || local, p->rdt_ns));
	json_object_set_new(
		o, "rdt_complete",
		json_boolean((l->rmid.has & HAS_READINGS) && p->rmid && !(p->flags & TTMON_ROW_RDT_UNKNOWN)));
	json_object_set_new(o, "copies", traced ? summed(k.copies, p->copies, &least) : json_null());
	json_object_set_new(o, "copy_bytes", traced ? summed(k.copies, p->copy_bytes, &least) : json_null());
	json_object_set_new(o, "pinned_bytes",
			    traced && k.held ? summed(k.pinned, p->pinned_bytes, &least) : json_null());
	json_object_set_new(o, "wait_ns",
			    traced && p->tgid ? summed(k.waits && !(w && w->unobserved), w ? w->wait_ns : 0, &least)
					      : json_null());
	json_object_set_new(o, "wait_missed", known(traced && p->tgid, w ? w->unobserved : 0));
	json_object_set_new(o, "work", work_of(w, k.work, &least));
	json_object_set_new(o, "traced", json_boolean(traced));
	json_object_set_new(o, "probed_ns", known(k.probed_ns && k.probed_ns != UINT64_MAX, k.probed_ns));
	json_object_set_new(o, "at_least", json_boolean(least));
	return o;
}

/* CPUs: online now, and with CPU time measured. */
static json_t *sums(const struct ttmon_cpu_totals *t, const struct ttmon_seen_view *seen)
{
	bool least = false, whole = ttmon_api_are_whole(seen, TTMON_FAMILY_BIT(CPU), seen->start_ns);
	json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o}", "user_ns", summed(whole, t->user_ns, &least), "kernel_ns",
			      summed(whole, t->kernel_ns, &least), "idle_ns", summed(whole, t->idle_ns, &least),
			      "missing_ns", summed(whole, t->missing_ns, &least), "cpus", known(t->cpus, t->cpus));

	if (least)
		json_object_set_new(o, "at_least", json_true());
	return o;
}

static void list_free(struct list *l)
{
	free(l->procs);
	free(l->traced);
	free(l->gaps);
	free(l->workers);
}

static bool lacks(const struct list *l)
{
	return l->wanted > l->n || l->wanted_gaps > l->nr_gaps || l->wanted_workers > l->nr_workers;
}

/*
 * All figures are of one moment: a client that subtracts two lists would otherwise count missing
 * processes twice.
 */
static int list_fill(const struct ttmon_daemon *c, struct list *l)
{
	struct ttmon_snapshot s;

	ttmon_daemon_snapshot(c, &s);
	l->wanted = (size_t)s.cpu.procs + 1;
	if (ttmon_daemon_mode(c) != TTMON_CAPTURE_SYSTEM) {
		l->cap_traced = s.procs + SPARE;
		l->traced = malloc(l->cap_traced * sizeof(*l->traced));
		if (!l->traced)
			return -ENOMEM;
	}
	for (unsigned int i = 0; i < TRIES && lacks(l); i++) {
		l->cap = l->wanted + l->wanted / 2 + SPARE;
		l->cap_gaps = l->wanted_gaps + l->wanted_gaps / 2 + SPARE;
		free(l->procs);
		free(l->gaps);
		l->procs = malloc(l->cap * sizeof(*l->procs));
		free(l->workers);
		l->cap_workers = l->wanted_workers + l->wanted_workers / 2 + SPARE;
		l->gaps = malloc(l->cap_gaps * sizeof(*l->gaps));
		l->workers = malloc(l->cap_workers * sizeof(*l->workers));
		if (!l->procs || !l->gaps || !l->workers)
			return -ENOMEM;
		(void)!ttmon_daemon_call(c, copy, l);
	}
	if (l->traced)
		qsort(l->traced, l->nr_traced, sizeof(*l->traced), by_tgid);
	qsort(l->gaps, l->nr_gaps, sizeof(*l->gaps), by_gap_tgid);
	qsort(l->workers, l->nr_workers, sizeof(*l->workers), by_worker);
	return lacks(l) ? -EAGAIN : 0;
}

/*
 * Rows that stand for no process are figures of the host. The user of an ended process can no longer
 * be found.
 */
static bool sees(const struct ttmon_viewer *v, const struct ttmon_cpu_proc *p)
{
	if (v->all || (p->cls != TTMON_ROW_USER && p->cls != TTMON_ROW_KERNEL))
		return true;
	return !p->end_ns && ttmon_viewer_sees_pid(v, p->tgid, p->start_ns);
}

void ttmon_api_processes(void *ctx, struct ttmon_http_reply *reply)
{
	_cleanup_(list_free) struct list l = { 0 };
	const struct ttmon_daemon *c = ctx;
	struct ttmon_snapshot s;
	struct ttmon_viewer who;
	json_int_t hidden = 0;
	json_t *rows;
	int err;

	/* A recording may have CPU time. */
	ttmon_daemon_snapshot(c, &s);
	if (!ttmon_daemon_part(c, &ttmon_part_cpu) && !s.cpu.slots) {
		ttmon_http_error(reply, 404, "CPU time is not measured (--cpu on)");
		return;
	}
	err = list_fill(c, &l);
	if (err) {
		ttmon_http_error(reply, 500,
				 err == -ENOMEM ? "out of memory" : "processes come faster than they are listed");
		return;
	}
	ttmon_viewer_init(&who, reply);
	rows = json_array();
	for (size_t i = 0; i < l.n; i++) {
		if (sees(&who, &l.procs[i]))
			json_array_append_new(rows, process(&l.procs[i], &l));
		else
			hidden++;
	}
	ttmon_api_send(reply, json_pack("{s:I, s:I, s:b, s:b, s:o, s:o, s:o, s:o, s:I}", "since_ns",
					INT(ttmon_daemon_start_ns(c)), "now_ns", INT(l.cpu.now_ns), "counters",
					l.cpu.has_ctr, "rdt", (l.rmid.has & HAS_READINGS) != 0, "sums",
					sums(&l.cpu, &l.seen), "families", ttmon_api_families_seen(&l.seen),
					"processes", rows, "gone", process(&l.gone, &l), "hidden", hidden));
}

json_t *ttmon_api_cpu_status(const struct ttmon_daemon *c, const struct ttmon_snapshot *s)
{
	const struct ttmon_cpu_totals *t = &s->cpu;
	const char *why = "";
	json_t *o, *late;

	if (!ttmon_daemon_part(c, &ttmon_part_cpu))
		return json_null();
	(void)!ttmon_bpf_has_counters(ttmon_daemon_bpf(c), &why);
	o = sums(t, &s->seen);
	json_object_update_new(
		o, json_pack("{s:I, s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			     "now_ns", INT(t->now_ns), "counters", t->has_ctr, "counters_reason", why, "slots",
			     INT(t->slots), "exact", INT(t->exact), "worst_ns", INT(t->worst_ns), "worst_slot",
			     INT(t->worst_slot), "told_ns", INT(t->told_ns), "late_ns", INT(t->late_ns), "mismatch_ns",
			     INT(t->mismatch_ns), "extended", INT(t->extended), "gaps", INT(t->gaps), "overlaps",
			     INT(t->overlaps), "processes", INT(t->procs), "processes_dropped", INT(t->procs_dropped),
			     "records", INT(t->records), "records_dropped", INT(t->records_dropped)));
	json_object_update_new(o, json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "switches",
					    INT(s->sched.switches), "ticks", INT(s->sched.ticks), "clock_backwards",
					    INT(s->sched.backwards), "counter_read_fails", INT(s->sched.read_fails),
					    "switches_unseen", INT(s->sched.unseen), "states_told", INT(s->sched.told),
					    "state_retries", INT(s->sched.retries), "cpus_peak", INT(t->cpus_peak),
					    "longest_close_ns", INT(s->oldest_lag_ns)));
	late = json_object();
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++) {
		json_object_set_new(o, ctr_names[i], known(t->has_ctr, t->ctr[i]));
		json_object_set_new(late, ctr_names[i], known(t->has_ctr, t->late_ctr[i]));
	}
	json_object_set_new(o, "late", late);
	return o;
}

/* Sum over all groups since the start; null: this machine does not report it. */
static json_t *telemetry(const struct ttmon_rmids_info *info, enum ttmon_resctrl_telemetry what)
{
	return info->telemetry_has >> what & 1 ? json_real((double)info->telemetry[what] / 1e6) : json_null();
}

json_t *ttmon_api_rmid_status(const struct ttmon_daemon *c, const struct ttmon_snapshot *s)
{
	const struct ttmon_rmid_totals *t = &s->rmid;
	struct ttmon_rmids_info info;
	json_t *odd, *o;

	if (!ttmon_cpurun_info(c, &info))
		return json_null();
	odd = json_object();
	for (unsigned int i = 0; i < TTMON_RMID_ODD_MAX; i++)
		json_object_set_new(odd, ttmon_rmid_odd_name(i), json_integer(INT(t->odd[i])));
	o = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b}", "backend",
		      ttmon_rmid_backend_name(info.backend), "source", info.source, "reason", info.reason, "max_rmid",
		      INT(info.max_rmid), "in_use", INT(t->in_use), "peak", INT(t->peak), "allocs", INT(t->allocs),
		      "frees", INT(t->frees), "readings", INT(t->readings), "failed_readings",
		      INT(info.failed_readings), "exhausted", INT(info.exhausted), "groups", INT(info.groups), "dumps",
		      INT(info.dumps), "attached", info.attached, "occupancy",
		      (t->has & TTMON_RMID_HAS_OCCUPANCY) != 0);
	json_object_set_new(o, "mbm_total_bytes", known(t->has & TTMON_RMID_HAS_TOTAL, t->bytes[0]));
	json_object_set_new(o, "mbm_local_bytes", known(t->has & TTMON_RMID_HAS_LOCAL, t->bytes[1]));
	json_object_set_new(o, "core_energy_joules", telemetry(&info, TTMON_RESCTRL_ENERGY));
	json_object_set_new(o, "activity_farads", telemetry(&info, TTMON_RESCTRL_ACTIVITY));
	/* Of the total bandwidth. */
	json_object_set_new(o, "unassigned_bytes", known(t->has & TTMON_RMID_HAS_TOTAL, t->unassigned[0]));
	json_object_set_new(o, "dropped_bytes", known(t->has & TTMON_RMID_HAS_TOTAL, t->dropped[0]));
	json_object_update_new(o, json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "merged", INT(t->merged), "stale",
					    INT(t->stale), "late", INT(t->late), "resets", INT(t->resets), "saturated",
					    INT(t->saturated), "odd", odd));
	return o;
}
