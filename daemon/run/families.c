// SPDX-License-Identifier: GPL-2.0-only
/*
 * families.c: families of probes at run time. The state of a family is its gate in the kernel (io/bpf/bpf.h); here is who changes it, in which
 * order, and how it is told: one line in the log, a FAMILY fact in the stream.
 *
 * Off: the gate is closed first, so that all programs stop at the same time, then links are taken away. On: links first, then the gate. Without
 * multi links the probes at objects stay, for taking them away makes the whole host wait: the gate is all there is.
 */
#include "daemon/run/families.h"
#include "lib/base/grow.h"

#include <sys/resource.h>

#include "daemon/core/stream/decode.h"
#include "daemon/io/probes/discover.h"
#include "daemon/run/serve.h"
#include "daemon/run/unwind.h"
#include "lib/os/clock.h"
#include "lib/os/proc.h"

#define TICK_MS	     100 /* of the cold thread */
#define PERIOD_MS    1000 /* of the budget's samples */
#define CPU_PERCENT  5.0 /* of one CPU: the least that the default budget is */

enum why { WHY_NONE, WHY_ASKED, WHY_BUDGET };
static const char *const whys[] = { "", "asked for", "budget" };

/* Hits of a process: at the last sample, and since the one before. */
struct hits {
	uint32_t tgid;
	uint64_t was[TTMON_PROC_HITS], gained[TTMON_PROC_HITS];
};

struct ttmon_families {
	struct ttmon_daemon *c;
	struct ttmon_budget *budget; /* NULL: none */
	double max_percent;
	uint64_t daemon_ns; /* of the last sample: the figures that it is made of are not of one moment */
	struct hits *procs;
	size_t nr_procs;
	struct ttmon_reduction reduced[TTMON_BUDGET_MAX]; /* of single processes, by the budget */
	unsigned int nr_reduced;
	unsigned int period_ticks;
	bool run_times;
	bool over;
	struct {
		enum why why;
		uint64_t since_ns;
	} of[TTMON_FAMILY_MAX];
};

static const struct {
	const char *help;
	bool countable;
} table[TTMON_FAMILY_MAX] = {
#define X(id, NAME, name, countable, help) { help, countable },
	TTMON_FAMILY_TABLE(X)
#undef X
};

const char *ttmon_family_help(enum ttmon_family family)
{
	return table[family].help;
}

bool ttmon_family_countable(enum ttmon_family family)
{
	return table[family].countable;
}

const char *ttmon_family_state_name(enum ttmon_family_state state)
{
	static const char *const names[] = {
#define X(id, NAME, name) [id] = name,
		TTMON_FAMILY_STATE_TABLE(X)
#undef X
	};

	return names[state];
}

static void free_part(void *state)
{
	struct ttmon_families *f = state;

	ttmon_budget_free(f->budget);
	free(f->procs);
	free(f);
}

/* The budget decides by what it has seen for ten seconds: tests that wait for that have it look more often. */
static unsigned int period_ticks(void)
{
	const char *env = getenv("TTMOND_BUDGET_MS");
	unsigned long ms = env ? strtoul(env, NULL, 10) : 0;

	return (unsigned int)(ms >= TICK_MS && ms <= PERIOD_MS ? ms : PERIOD_MS) / TICK_MS;
}

static int start(struct ttmon_daemon *c, void **state)
{
	const struct ttmon_opts *o = ttmon_daemon_opts(c);
	unsigned int ticks = period_ticks();
	struct ttmon_budget_cfg cfg = {
		.period_ns = (uint64_t)ticks * TICK_MS * NSEC_PER_MS,
		.max_percent = o->max_overhead,
		.cpus = (uint32_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1),
	};
	struct ttmon_families *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return log_error_r(-ENOMEM, "out of memory");
	f->c = c;
	f->period_ticks = ticks;
	/* What one percent of a small host is, the daemon takes for being there. */
	if (!o->overhead_given)
		cfg.max_percent = MAX(cfg.max_percent, CPU_PERCENT / cfg.cpus);
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		f->of[i].since_ns = ttmon_daemon_start_ns(c);
	if ((o->service || o->overhead_given) && cfg.max_percent > 0) {
		f->max_percent = cfg.max_percent;
		err = ttmon_budget_new(&cfg, &f->budget);
		if (err) {
			free_part(f);
			return log_error_r(err, "out of memory");
		}
		err = ttmon_bpf_count_runs(ttmon_daemon_bpf(c));
		f->run_times = !err;
		if (err)
			log_warn(
				"the kernel does not tell what BPF programs cost (%s; it needs CAP_SYS_ADMIN): --max-overhead knows the daemon's own time alone",
				strerror(-err));
	}
	*state = f;
	return 0;
}

static enum ttmon_family_state state_of(const struct ttmon_families *f, enum ttmon_family family)
{
	return ttmon_bpf_gate(ttmon_daemon_bpf(f->c), family);
}

static void tell(const struct ttmon_families *f, enum ttmon_family family)
{
	struct ttmon_ev_family e = {
		.h = { .ts_ns = ttmon_mono_ns(), .kind = TTMON_EV_FAMILY, .cpu = TTMON_CPU_DAEMON },
		.family = family,
		.state = state_of(f, family),
		.why = f->of[family].why == WHY_BUDGET,
	};

	ttmon_daemon_fact(f->c, &e, sizeof(e));
}

static int put_back(struct ttmon_families *f, enum ttmon_family family, char *why, size_t n)
{
	int err = ttmon_bpf_attach_family(ttmon_daemon_bpf(f->c), family, why, n);

	if (!err)
		ttmon_discover_family(ttmon_daemon_discover(f->c), family, true);
	return err;
}

/* The gate, and what has to happen with it at the same time. */
static void set_gate(struct ttmon_families *f, enum ttmon_family family, enum ttmon_family_state to)
{
	struct ttmon_bpf *b = ttmon_daemon_bpf(f->c);
	bool was_on = state_of(f, family) == TTMON_FAMILY_ON;

	if (family == TTMON_FAMILY_CPU && to == TTMON_FAMILY_ON)
		ttmon_bpf_cpus_forget(b);
	ttmon_bpf_set_gate(b, family, to);
	if (family == TTMON_FAMILY_CPU && was_on != (to == TTMON_FAMILY_ON))
		ttmon_hot_pause_cpus(ttmon_daemon_hot(f->c), was_on);
	/* What was mapped and unmapped meanwhile is read. */
	if (family == TTMON_FAMILY_MMAP && to == TTMON_FAMILY_ON)
		ttmon_bpf_each_pid(b, ttmon_daemon_list, f->c);
}

static int change(struct ttmon_families *f, enum ttmon_family family, enum ttmon_family_state to, enum why why,
		  char *text, size_t n)
{
	enum ttmon_family_state from = state_of(f, family);
	int err;

	if (from == TTMON_FAMILY_OFF && to != from) {
		err = put_back(f, family, text, n);
		if (err)
			return err;
	}
	f->of[family].why = why;
	if (from == to)
		return 0;
	set_gate(f, family, to);
	if (to == TTMON_FAMILY_OFF) {
		ttmon_discover_family(ttmon_daemon_discover(f->c), family, false);
		ttmon_bpf_detach_family(ttmon_daemon_bpf(f->c), family);
	}
	f->of[family].since_ns = ttmon_mono_ns();
	tell(f, family);
	return 0;
}

/* Why a family that is not there is not. */
static const char *absence(enum ttmon_family family)
{
	switch (family) {
	case TTMON_FAMILY_MMAP:
		return "ttmond was started with --no-mmap";
	case TTMON_FAMILY_CPU:
		return "ttmond was started without --cpu";
	case TTMON_FAMILY_RMID:
		return "ttmond was started with --rmid off, or without --cpu";
	default:
		return "it is not there";
	}
}

static struct ttmon_families *families_of(const struct ttmon_daemon *c)
{
	return ttmon_daemon_part(c, &ttmon_part_families);
}

bool ttmon_families_exist(const struct ttmon_daemon *c)
{
	return families_of(c) != NULL;
}

int ttmon_families_set(struct ttmon_daemon *c, enum ttmon_family family, enum ttmon_family_state state, uid_t uid,
		       char *why, size_t n)
{
	struct ttmon_families *f = families_of(c);
	const char *name = ttmon_family_name(family);
	int err;

	if (state_of(f, family) == TTMON_FAMILY_ABSENT) {
		snprintf(why, n, "%s is not loaded: %s", name, absence(family));
		return -ENOENT;
	}
	if (state == TTMON_FAMILY_COUNTING && !table[family].countable) {
		snprintf(why, n, "%s cannot be counted only: on or off", name);
		return -EINVAL;
	}
	if (state != TTMON_FAMILY_ON && (family == TTMON_FAMILY_PROCESS || family == TTMON_FAMILY_RMID)) {
		snprintf(why, n, "%s cannot be switched off%s", name,
			 family == TTMON_FAMILY_RMID ? " while ttmond runs: --rmid off"
						     : ": everything else is told by process");
		return -EINVAL;
	}
	err = change(f, family, state, WHY_ASKED, why, n);
	if (err)
		log_error("family %s, as user %u asked for, stays off: %s", name, uid, why);
	else
		log_info("family %s: %s, as user %u asked for", name, ttmon_family_state_name(state), uid);
	return err;
}

/* ---- the budget ---- */

static uint64_t sum_kinds(const struct ttmon_families *f, enum ttmon_family family, uint64_t *counted)
{
	uint64_t hits = 0;

	*counted = 0;
	for (uint32_t cpu = 0; cpu < ttmon_bpf_cpus(ttmon_daemon_bpf(f->c)); cpu++) {
		const struct ttmon_cpu_stat *st = ttmon_bpf_stat(ttmon_daemon_bpf(f->c), cpu);

		for (unsigned int kind = 1; kind < TTMON_EV_FACT; kind++) {
			if (ttmon_event_family(kind) != family)
				continue;
			hits += st->attempted[kind] + st->counted[kind];
			*counted += st->counted[kind];
		}
	}
	return hits;
}

static int cmp_hits(const void *a, const void *b)
{
	const struct hits *x = a, *y = b;

	return x->tgid == y->tgid ? 0 : x->tgid < y->tgid ? -1 : 1;
}

struct taking {
	const struct hits *was; /* by tgid */
	struct hits *now;
	size_t nr_was, nr_now, cap_now;
};

static void take_hits(void *ctx, uint32_t tgid, const uint64_t *hits)
{
	struct taking *t = ctx;
	const struct hits *before;
	struct hits h = { .tgid = tgid };

	if (TTMON_GROW(t->now, t->cap_now, t->nr_now + 1, 64))
		return;
	before = t->nr_was ? bsearch(&h, t->was, t->nr_was, sizeof(h), cmp_hits) : NULL;
	for (unsigned int i = 0; i < TTMON_PROC_HITS; i++) {
		uint64_t had = before && hits[i] >= before->was[i] ? before->was[i] : 0;

		h.was[i] = hits[i];
		h.gained[i] = hits[i] - had;
	}
	t->now[t->nr_now++] = h;
}

/* Which of a process's counts are of this family; TTMON_PROC_HITS: none. */
static unsigned int hits_index(unsigned int family)
{
	return family == TTMON_FAMILY_TRANSFER ? TTMON_PROC_HITS_TRANSFER
	       : family == TTMON_FAMILY_LAUNCH ? TTMON_PROC_HITS_LAUNCH
					       : TTMON_PROC_HITS;
}

/*
 * Who makes the hits, and what those make that are reduced alone; asked only where that may matter soon, since it walks a table. Processes that
 * are not there any more are forgotten.
 */
static void sample_processes(struct ttmon_families *f, const struct ttmon_budget_view *v, struct ttmon_budget_sample *s)
{
	struct taking t = { .was = f->procs, .nr_was = f->nr_procs };

	ttmon_bpf_each_hits(ttmon_daemon_bpf(f->c), take_hits, &t);
	free(f->procs);
	f->procs = t.now;
	f->nr_procs = t.nr_now;
	if (f->nr_procs)
		qsort(f->procs, f->nr_procs, sizeof(*f->procs), cmp_hits);
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		unsigned int k = hits_index(i);
		uint64_t all = 0, most = 0;

		for (size_t p = 0; k < TTMON_PROC_HITS && p < f->nr_procs; p++) {
			uint64_t own = f->procs[p].gained[k];

			all += own;
			if (own > most) {
				most = own;
				s->top[i].tgid = f->procs[p].tgid;
			}
		}
		s->top[i].share = all ? (double)most / (double)all : 0;
	}
	for (unsigned int i = 0; i < v->nr; i++) {
		s->reduced[i].gone = true;
		for (size_t p = 0; v->reductions[i].tgid && p < f->nr_procs; p++) {
			if (f->procs[p].tgid != v->reductions[i].tgid)
				continue;
			s->reduced[i].gone = false;
			s->reduced[i].hits = f->procs[p].gained[hits_index(v->reductions[i].family)];
		}
	}
}

static void take_sample(struct ttmon_families *f, struct ttmon_budget_sample *s)
{
	struct ttmon_unwind_state unwind;
	struct ttmon_budget_view v;
	struct ttmon_snapshot hot;
	uint64_t served_ns;
	struct rusage ru;

	*s = (struct ttmon_budget_sample){ .now_ns = ttmon_mono_ns() };
	if (!getrusage(RUSAGE_SELF, &ru))
		s->daemon_ns = (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * NSEC_PER_SEC +
			       (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * NSEC_PER_US;
	/* The process that unwinds call stacks is a part of the daemon. */
	if (ttmon_unwind_get(f->c, &unwind))
		s->daemon_ns += unwind.cpu_ns;
	ttmon_hot_snapshot(ttmon_daemon_hot(f->c), &hot);
	/* What clients ask for is no part of what tracing costs: nobody's events are to go untold for it. */
	served_ns = ttmon_serve_spent_ns(f->c) + hot.calls_ns;
	s->daemon_ns = f->daemon_ns = MAX(f->daemon_ns, s->daemon_ns - MIN(s->daemon_ns, served_ns));
	s->records_ns = hot.records_ns;
	memcpy(s->records, hot.records, sizeof(s->records));
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		uint64_t counted;

		/* Runs are the same measure whether a family is on or counted, events are not: many launches, switches are one. */
		if (f->run_times)
			ttmon_bpf_family_runs(ttmon_daemon_bpf(f->c), i, &s->hits[i], &s->bpf_ns[i]);
		else
			s->hits[i] = sum_kinds(f, i, &counted);
		if (table[i].countable && f->of[i].why != WHY_ASKED && state_of(f, i) <= TTMON_FAMILY_COUNTING)
			s->countable |= 1u << i;
	}
	ttmon_budget_get(f->budget, &v);
	if (v.nr || 2 * v.percent > f->max_percent)
		sample_processes(f, &v, s);
}

/* ---- what the budget says is done ---- */

static const struct ttmon_reduction *find_reduction(const struct ttmon_reduction *list, unsigned int n, uint32_t family,
						    uint32_t tgid)
{
	for (unsigned int i = 0; i < n; i++)
		if (list[i].family == family && list[i].tgid == tgid)
			return &list[i];
	return NULL;
}

/* Of one process: what of it is reduced now. A process that is gone needs nothing. */
static void apply_to_process(struct ttmon_families *f, const struct ttmon_budget_view *v, uint32_t tgid)
{
	uint32_t families = 0;

	for (unsigned int i = 0; i < v->nr; i++)
		if (v->reductions[i].tgid == tgid)
			families |= 1u << v->reductions[i].family;
	if (ttmon_bpf_reduce_pid(ttmon_daemon_bpf(f->c), tgid, families, TTMON_FAMILY_SAMPLE))
		log_debug("cannot reduce process %u alone", tgid);
}

static void tell_process(const struct ttmon_families *f, const struct ttmon_reduction *r, bool reduced)
{
	struct ttmon_ev_family e = {
		.h = { .ts_ns = ttmon_mono_ns(), .kind = TTMON_EV_FAMILY, .cpu = TTMON_CPU_DAEMON, .tgid = r->tgid },
		.family = r->family,
		.state = reduced ? TTMON_FAMILY_COUNTING : TTMON_FAMILY_ON,
		.why = 1,
	};

	ttmon_daemon_fact(f->c, &e, sizeof(e));
}

static void follow_processes(struct ttmon_families *f, const struct ttmon_budget_view *v)
{
	struct ttmon_reduction was[TTMON_BUDGET_MAX];
	unsigned int n = f->nr_reduced;
	char comm[TTMON_COMM_LEN];

	memcpy(was, f->reduced, sizeof(was));
	f->nr_reduced = 0;
	for (unsigned int i = 0; i < v->nr; i++)
		if (v->reductions[i].tgid)
			f->reduced[f->nr_reduced++] = v->reductions[i];
	for (unsigned int i = 0; i < f->nr_reduced; i++) {
		const struct ttmon_reduction *r = &f->reduced[i];

		if (find_reduction(was, n, r->family, r->tgid))
			continue;
		/* Told first: what the programs do not tell any more is known to be missing. */
		tell_process(f, r, true);
		apply_to_process(f, v, r->tgid);
		ttmon_proc_comm(r->tgid, comm);
		log_warn(
			"over budget (%.2g %% of %g %%): %s of process %u (%s), which makes most of it, is only counted%s",
			v->percent, f->max_percent, ttmon_family_name(r->family), r->tgid, comm,
			r->family == TTMON_FAMILY_TRANSFER ? ", but for one copy in 64" : "");
	}
	for (unsigned int i = 0; i < n; i++) {
		if (find_reduction(f->reduced, f->nr_reduced, was[i].family, was[i].tgid))
			continue;
		apply_to_process(f, v, was[i].tgid);
		tell_process(f, &was[i], false);
		if (ttmon_bpf_has_pid(ttmon_daemon_bpf(f->c), was[i].tgid))
			log_info("under budget (%.2g %% of %g %%): %s of process %u is on again", v->percent,
				 f->max_percent, ttmon_family_name(was[i].family), was[i].tgid);
	}
}

static void follow(struct ttmon_families *f)
{
	struct ttmon_budget_view v;
	char why[256];

	ttmon_budget_get(f->budget, &v);
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		bool reduce = find_reduction(v.reductions, v.nr, i, 0);

		/* Reducing and coming back neither attaches nor detaches, and cannot fail. */
		if (reduce && f->of[i].why == WHY_NONE) {
			(void)!change(f, i, TTMON_FAMILY_COUNTING, WHY_BUDGET, why, sizeof(why));
			log_warn("over budget (%.2g %% of %g %%): %s is only counted", v.percent, f->max_percent,
				 ttmon_family_name(i));
		} else if (!reduce && f->of[i].why == WHY_BUDGET) {
			(void)!change(f, i, TTMON_FAMILY_ON, WHY_NONE, why, sizeof(why));
			log_info("under budget (%.2g %% of %g %%): %s is on again", v.percent, f->max_percent,
				 ttmon_family_name(i));
		}
	}
	follow_processes(f, &v);
	if (v.over && !f->over)
		log_warn("over budget (%.2g %% of %g %%), and nothing that could be only counted would help", v.percent,
			 f->max_percent);
	f->over = v.over;
}

static void tick(void *state)
{
	struct ttmon_families *f = state;
	struct ttmon_budget_sample s;

	if (!f->budget || ttmon_daemon_ticks(f->c) % f->period_ticks)
		return;
	take_sample(f, &s);
	if (ttmon_budget_add_sample(f->budget, &s))
		follow(f);
}

/* SIGHUP: what the budget reduced comes back, what was asked for stays. */
static void reload(void *state)
{
	struct ttmon_families *f = state;

	if (!f->budget)
		return;
	ttmon_budget_reset(f->budget);
	follow(f);
}

void ttmon_families_get(const struct ttmon_daemon *c, enum ttmon_family family, struct ttmon_family_view *ret)
{
	const struct ttmon_families *f = families_of(c);

	*ret = (struct ttmon_family_view){ .state = TTMON_FAMILY_ABSENT, .why = "" };
	if (!f)
		return;
	ret->state = state_of(f, family);
	ret->why = whys[f->of[family].why];
	ret->since_ns = f->of[family].since_ns;
	ret->hits = sum_kinds(f, family, &ret->counted);
	ttmon_bpf_family_runs(ttmon_daemon_bpf(f->c), family, &ret->run_cnt, &ret->run_ns);
}

bool ttmon_families_budget(const struct ttmon_daemon *c, struct ttmon_budget_view *ret)
{
	const struct ttmon_families *f = families_of(c);

	*ret = (struct ttmon_budget_view){ 0 };
	if (!f || !f->budget)
		return false;
	ttmon_budget_get(f->budget, ret);
	return true;
}

const struct ttmon_part ttmon_part_families = {
	.name = "families",
	.in = TTMON_IN_LIVE,
	.start = start,
	.tick = tick,
	.reload = reload,
	.free = free_part,
};
