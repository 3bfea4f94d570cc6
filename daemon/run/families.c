// SPDX-License-Identifier: GPL-2.0-only
/*
 * families.c: families of probes at run time. The state of a family is its gate in the kernel
 * (io/bpf/bpf.h); this file changes it, in the right order, and reports the change: one line in the
 * log, a FAMILY fact in the stream.
 *
 * Off: the gate is closed first, so that all programs stop at the same time, then links are removed.
 * On: links first, then the gate. Without multi links the probes at objects stay, since removing them
 * makes the whole host wait: then only the gate is used.
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

#define TICK_MS	    100	 /* of the cold thread */
#define PERIOD_MS   1000 /* of the budget's samples */
#define CPU_PERCENT 5.0	 /* of one CPU: lower limit of the default budget */

enum why { WHY_NONE, WHY_ASKED, WHY_BUDGET };
static const char *const whys[] = { "", "asked for", "budget" };

/*
 * Hits of a process (id: its tgid) or a user (id: its uid): total at the last sample, and since the
 * one before.
 */
struct hits {
	uint32_t id, uid;
	uint64_t was[TTMON_PROC_HITS], gained[TTMON_PROC_HITS];
};

struct tally {
	struct hits *v; /* sorted by id */
	size_t n, cap;
};

struct ttmon_families {
	struct ttmon_daemon *c;
	struct ttmon_budget *budget; /* NULL: none */
	double max_percent;
	uint64_t daemon_ns; /* of the last sample: its summands are not read at one moment */
	struct tally procs, users;
	struct ttmon_reduction reduced[TTMON_BUDGET_MAX]; /* reductions of single processes and users */
	uint64_t reduced_ns[TTMON_BUDGET_MAX];		  /* since when */
	unsigned int nr_reduced;
	struct ttmon_quota_row paid[TTMON_QUOTA_ROWS]; /* users of reduced processes, and how often they were reduced */
	uint32_t nr_paid;
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
	free(f->procs.v);
	free(f->users.v);
	free(f);
}

/* The budget decides by the last ten seconds; tests shorten that by more frequent samples. */
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
	/* On a small host the daemon's own base cost is already one percent. */
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
			log_warn("the kernel does not tell what BPF programs cost (%s; it needs CAP_SYS_ADMIN): "
				 "--max-overhead knows the daemon's own time alone",
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

/* Sets the gate, and does what must happen at the same time. */
static void set_gate(struct ttmon_families *f, enum ttmon_family family, enum ttmon_family_state to)
{
	struct ttmon_bpf *b = ttmon_daemon_bpf(f->c);
	bool was_on = state_of(f, family) == TTMON_FAMILY_ON;

	if (family == TTMON_FAMILY_CPU && to == TTMON_FAMILY_ON)
		ttmon_bpf_cpus_forget(b);
	ttmon_bpf_set_gate(b, family, to);
	if (family == TTMON_FAMILY_CPU && was_on != (to == TTMON_FAMILY_ON))
		ttmon_hot_pause_cpus(ttmon_daemon_hot(f->c), was_on);
	/* Reads the mappings that changed while the family was off. */
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

/* Why a family is absent. */
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

	return x->id == y->id ? 0 : x->id < y->id ? -1 : 1;
}

static struct hits *hits_of(const struct tally *t, uint32_t id)
{
	const struct hits key = { .id = id };

	return t->n ? bsearch(&key, t->v, t->n, sizeof(key), cmp_hits) : NULL;
}

struct taking {
	const struct tally *was;
	struct tally now;
};

static void take(struct taking *t, uint32_t id, uint32_t uid, const uint64_t *hits)
{
	const struct hits *before = hits_of(t->was, id);
	struct hits h = { .id = id, .uid = uid };

	if (TTMON_GROW(t->now.v, t->now.cap, t->now.n + 1, 64))
		return;
	for (unsigned int i = 0; i < TTMON_PROC_HITS; i++) {
		uint64_t had = before && hits[i] >= before->was[i] ? before->was[i] : 0;

		h.was[i] = hits[i];
		h.gained[i] = hits[i] - had;
	}
	t->now.v[t->now.n++] = h;
}

static void take_process(void *ctx, uint32_t tgid, uint32_t uid, const uint64_t *hits)
{
	take(ctx, tgid, uid, hits);
}

static void take_user(void *ctx, uint32_t uid, const uint64_t *hits)
{
	take(ctx, uid, uid, hits);
}

/* Keeps the new tally for the next sample. */
static void taken(struct tally *tally, struct taking *t)
{
	free(tally->v);
	*tally = t->now;
	if (tally->n)
		qsort(tally->v, tally->n, sizeof(*tally->v), cmp_hits);
}

/* Which of the counts belongs to this family; TTMON_PROC_HITS: none. */
static unsigned int hits_index(unsigned int family)
{
	switch (family) {
	case TTMON_FAMILY_TRANSFER:
		return TTMON_PROC_HITS_TRANSFER;
	case TTMON_FAMILY_LAUNCH:
		return TTMON_PROC_HITS_LAUNCH;
	case TTMON_FAMILY_ALLOC:
		return TTMON_PROC_HITS_ALLOC;
	case TTMON_FAMILY_DISPATCH:
		return TTMON_PROC_HITS_DISPATCH;
	default:
		return TTMON_PROC_HITS;
	}
}

/* The process with most of a family's hits, for families that can be reduced in a single process. */
static void find_top(const struct ttmon_families *f, unsigned int family, struct ttmon_budget_sample *s)
{
	unsigned int k = hits_index(family);
	uint64_t all = 0, most = 0;

	for (size_t p = 0; k < TTMON_PROC_HITS && p < f->procs.n; p++) {
		uint64_t own = f->procs.v[p].gained[k];

		all += own;
		if (own > most) {
			most = own;
			s->top[family].tgid = f->procs.v[p].id;
			s->top[family].uid = f->procs.v[p].uid;
		}
	}
	s->top[family].share = all ? (double)most / (double)all : 0;
}

/* A user's hits that are still reported as events. */
static uint64_t told_hits(const struct ttmon_families *f, const struct hits *user, unsigned int family)
{
	unsigned int k = hits_index(family);
	uint64_t told = k < TTMON_PROC_HITS ? user->gained[k] : 0;

	for (unsigned int i = 0; i < f->nr_reduced && told; i++) {
		const struct ttmon_reduction *r = &f->reduced[i];
		const struct hits *p = r->tgid ? hits_of(&f->procs, r->tgid) : NULL;

		if (r->family != family || r->uid != user->id)
			continue;
		if (!r->tgid)
			told = 0;
		else if (p)
			told -= MIN(told, p->gained[k]);
	}
	return told;
}

static int by_hits(const void *pa, const void *pb)
{
	const struct hits *a = *(struct hits *const *)pa, *b = *(struct hits *const *)pb;
	uint64_t x = 0, y = 0;

	for (unsigned int i = 0; i < TTMON_PROC_HITS; i++) {
		x += a->gained[i];
		y += b->gained[i];
	}
	return x == y ? cmp_hits(a, b) : x < y ? 1 : -1;
}

static void take_users(struct ttmon_families *f)
{
	struct taking users = { .was = &f->users };

	if (ttmon_bpf_each_user_hits(ttmon_daemon_bpf(f->c), take_user, &users))
		log_debug("no memory for the hits of users");
	taken(&f->users, &users);
}

static uint64_t calls_of(const struct ttmon_families *f, unsigned int k)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < f->users.n; i++)
		calls += f->users.v[i].was[k];
	return calls;
}

/* The users that had hits, those with the most first, and their shares. */
static void sample_users(struct ttmon_families *f, struct ttmon_budget_sample *s)
{
	_cleanup_free_ struct hits **order = calloc(f->users.n + 1, sizeof(struct hits *));
	double all[TTMON_PROC_HITS] = { 0 };

	for (size_t i = 0; order && i < f->users.n; i++) {
		uint64_t any = 0;

		for (unsigned int k = 0; k < TTMON_PROC_HITS; k++) {
			any |= f->users.v[i].gained[k];
			all[k] += (double)f->users.v[i].gained[k];
		}
		if (any)
			order[s->nr_users++] = &f->users.v[i];
	}
	if (s->nr_users)
		qsort(order, s->nr_users, sizeof(struct hits *), by_hits);
	for (unsigned int family = 0; family < TTMON_FAMILY_MAX; family++) {
		unsigned int k = hits_index(family);

		for (unsigned int i = 0; k < TTMON_PROC_HITS && all[k] > 0 && i < s->nr_users; i++) {
			double share = (double)order[i]->gained[k] / all[k];
			double told = (double)told_hits(f, order[i], family) / all[k];

			s->counted[family] += share - told;
			if (i >= TTMON_BUDGET_USERS)
				continue;
			s->users[i].uid = order[i]->id;
			s->users[i].share[family] = share;
			s->users[i].told[family] = told;
		}
	}
}

/*
 * Counts hits by process, and hits of processes that are reduced alone. Called only where that may
 * matter soon, since it walks a table. Ended processes are dropped.
 */
static void sample_hits(struct ttmon_families *f, const struct ttmon_budget_view *v, struct ttmon_budget_sample *s)
{
	struct taking procs = { .was = &f->procs };

	ttmon_bpf_each_hits(ttmon_daemon_bpf(f->c), take_process, &procs);
	taken(&f->procs, &procs);
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		if (table[i].countable)
			find_top(f, i, s);
	sample_users(f, s);
	for (unsigned int i = 0; i < v->nr; i++) {
		const struct ttmon_reduction *r = &v->reductions[i];
		const struct hits *h = r->tgid ? hits_of(&f->procs, r->tgid) : hits_of(&f->users, r->uid);

		s->reduced[i].gone = r->tgid && !h;
		s->reduced[i].hits = h ? h->gained[hits_index(r->family)] : 0;
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
	/* The process that unwinds call stacks belongs to the daemon. */
	if (ttmon_unwind_get(f->c, &unwind))
		s->daemon_ns += unwind.cpu_ns;
	ttmon_hot_snapshot(ttmon_daemon_hot(f->c), &hot);
	/* Work for clients is not part of the cost of tracing: no events may be dropped because of it. */
	served_ns = ttmon_serve_spent_ns(f->c) + hot.calls_ns;
	s->daemon_ns = f->daemon_ns = MAX(f->daemon_ns, s->daemon_ns - MIN(s->daemon_ns, served_ns));
	s->records_ns = hot.records_ns;
	memcpy(s->records, hot.records, sizeof(s->records));
	/* The record of where a copy's time went goes with the copy's own, where that is only counted. */
	s->records[TTMON_FAMILY_TRANSFER] += s->records[TTMON_FAMILY_WAIT];
	s->records[TTMON_FAMILY_WAIT] = 0;
	take_users(f);
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		uint64_t counted;

		/*
		 * Calls measure a family equally whether it is on or counting, and so do runs if there is one for each
		 * hit (a counted call has no run at its return). Events do not: one event may stand for many launches
		 * or switches.
		 */
		if (f->run_times)
			ttmon_bpf_family_runs(ttmon_daemon_bpf(f->c), i, &s->hits[i], &s->bpf_ns[i]);
		else
			s->hits[i] = sum_kinds(f, i, &counted);
		if (hits_index(i) < TTMON_PROC_HITS)
			s->hits[i] = calls_of(f, hits_index(i));
		if (table[i].countable && i != TTMON_FAMILY_WAIT && f->of[i].why != WHY_ASKED &&
		    state_of(f, i) <= TTMON_FAMILY_COUNTING)
			s->countable |= 1u << i;
	}
	ttmon_budget_get(f->budget, &v);
	if (v.nr || 2 * v.percent > f->max_percent)
		sample_hits(f, &v, s);
}

/* ---- applying the budget's decisions ---- */

static bool is_of_all(const struct ttmon_reduction *r)
{
	return !r->tgid && r->uid == TTMON_BUDGET_NOBODY;
}

static bool has_reduction(const struct ttmon_reduction *list, unsigned int n, const struct ttmon_reduction *what)
{
	for (unsigned int i = 0; i < n; i++)
		if (list[i].family == what->family && list[i].tgid == what->tgid &&
		    (what->tgid || list[i].uid == what->uid))
			return true;
	return false;
}

/*
 * Applies the present reductions of one process or one user. For a process or user that is gone there
 * is nothing to do.
 */
static void apply(struct ttmon_families *f, const struct ttmon_reduction *what)
{
	uint32_t families = 0;
	int err;

	for (unsigned int i = 0; i < f->nr_reduced; i++)
		if (f->reduced[i].tgid == what->tgid && (what->tgid || f->reduced[i].uid == what->uid))
			families |= 1u << f->reduced[i].family;
	if (what->tgid)
		err = ttmon_bpf_reduce_pid(ttmon_daemon_bpf(f->c), what->tgid, families, TTMON_FAMILY_SAMPLE);
	else
		err = ttmon_bpf_reduce_user(ttmon_daemon_bpf(f->c), what->uid, families, TTMON_FAMILY_SAMPLE);
	if (err)
		log_debug("cannot reduce process %u, user %u alone: %s", what->tgid, what->uid, strerror(-err));
}

static void tell_process(const struct ttmon_families *f, uint32_t tgid, unsigned int family, bool reduced,
			 uint64_t ts_ns)
{
	struct ttmon_ev_family e = {
		.h = { .ts_ns = ts_ns, .kind = TTMON_EV_FAMILY, .cpu = TTMON_CPU_DAEMON, .tgid = tgid },
		.family = family,
		.state = reduced ? TTMON_FAMILY_COUNTING : TTMON_FAMILY_ON,
		.why = 1,
	};

	ttmon_daemon_fact(f->c, &e, sizeof(e));
}

struct telling {
	const struct ttmon_families *f;
	const struct ttmon_reduction *what;
	bool reduced;
	uint64_t ts_ns;
};

static void tell_one(void *ctx, uint32_t tgid, uint32_t uid, const uint64_t *hits)
{
	const struct telling *t = ctx;

	(void)hits;
	if (uid == t->what->uid)
		tell_process(t->f, tgid, t->what->family, t->reduced, t->ts_ns);
}

/* For a user each process is reported; later processes are reported when they are met. */
static void tell_of(const struct ttmon_families *f, const struct ttmon_reduction *r, bool reduced)
{
	struct telling t = { f, r, reduced, ttmon_mono_ns() };

	if (r->tgid)
		tell_process(f, r->tgid, r->family, reduced, t.ts_ns);
	else
		ttmon_bpf_each_hits(ttmon_daemon_bpf(f->c), tell_one, &t);
}

void ttmon_families_met(struct ttmon_daemon *c, uint32_t tgid, uint64_t start_ns)
{
	const struct ttmon_families *f = families_of(c);
	uint32_t uid;

	if (!f || !f->nr_reduced || !ttmon_bpf_uid_of(ttmon_daemon_bpf(c), tgid, &uid))
		return;
	for (unsigned int i = 0; i < f->nr_reduced; i++)
		if (!f->reduced[i].tgid && f->reduced[i].uid == uid)
			tell_process(f, tgid, f->reduced[i].family, true, MAX(f->reduced_ns[i], start_ns));
}

static void count_paid(struct ttmon_families *f, const struct ttmon_reduction *r)
{
	struct ttmon_quota_row row = { .uid = r->uid, .what = TTMON_QUOTA_BUDGET };
	uint32_t at = 0;

	while (at < f->nr_paid && f->paid[at].uid != r->uid)
		at++;
	if (at < f->nr_paid) {
		row = f->paid[at];
		memmove(f->paid + at, f->paid + at + 1, (--f->nr_paid - at) * sizeof(*f->paid));
	} else if (f->nr_paid == TTMON_QUOTA_ROWS) {
		f->nr_paid--;
	}
	row.paid++;
	row.tgid = r->tgid;
	ttmon_quota_add(f->paid, &f->nr_paid, &row);
}

uint32_t ttmon_families_quotas(const struct ttmon_daemon *c, struct ttmon_quota_row *rows)
{
	const struct ttmon_families *f = families_of(c);

	if (f)
		memcpy(rows, f->paid, f->nr_paid * sizeof(*rows));
	return f ? f->nr_paid : 0;
}

static void say_reduced(const struct ttmon_families *f, const struct ttmon_reduction *r, double percent)
{
	const char *but = r->family == TTMON_FAMILY_TRANSFER ? ", but for one copy in 64" : "";
	const char *name = ttmon_family_name(r->family);
	char comm[TTMON_COMM_LEN];

	if (r->tgid)
		log_warn("over budget (%.2g %% of %g %%): %s of process %u (%s), which makes most of it, is only "
			 "counted%s",
			 percent, f->max_percent, name, r->tgid, ttmon_proc_comm(r->tgid, comm), but);
	else
		log_warn("over budget (%.2g %% of %g %%): %s of user %u, who makes most of it, is only counted%s",
			 percent, f->max_percent, name, r->uid, but);
}

static void say_back(const struct ttmon_families *f, const struct ttmon_reduction *r, double percent)
{
	const char *name = ttmon_family_name(r->family);

	if (!r->tgid)
		log_info("under budget (%.2g %% of %g %%): %s of user %u is on again", percent, f->max_percent, name,
			 r->uid);
	else if (ttmon_bpf_has_pid(ttmon_daemon_bpf(f->c), r->tgid))
		log_info("under budget (%.2g %% of %g %%): %s of process %u is on again", percent, f->max_percent, name,
			 r->tgid);
}

/* Reductions of single processes and users. */
static void follow_single(struct ttmon_families *f, const struct ttmon_budget_view *v)
{
	struct ttmon_reduction was[TTMON_BUDGET_MAX];
	unsigned int n = f->nr_reduced;
	uint64_t since_ns[TTMON_BUDGET_MAX], now = ttmon_mono_ns();

	memcpy(was, f->reduced, sizeof(was));
	memcpy(since_ns, f->reduced_ns, sizeof(since_ns));
	f->nr_reduced = 0;
	for (unsigned int i = 0; i < v->nr; i++) {
		if (is_of_all(&v->reductions[i]))
			continue;
		f->reduced_ns[f->nr_reduced] = now;
		for (unsigned int k = 0; k < n; k++)
			if (has_reduction(&was[k], 1, &v->reductions[i]))
				f->reduced_ns[f->nr_reduced] = since_ns[k];
		f->reduced[f->nr_reduced++] = v->reductions[i];
	}
	for (unsigned int i = 0; i < f->nr_reduced; i++) {
		const struct ttmon_reduction *r = &f->reduced[i];

		if (has_reduction(was, n, r))
			continue;
		/* Reported first, so that events which the programs no longer send are known to be missing. */
		tell_of(f, r, true);
		apply(f, r);
		count_paid(f, r);
		say_reduced(f, r, v->percent);
	}
	for (unsigned int i = 0; i < n; i++) {
		if (has_reduction(f->reduced, f->nr_reduced, &was[i]))
			continue;
		apply(f, &was[i]);
		tell_of(f, &was[i], false);
		say_back(f, &was[i], v->percent);
	}
}

static void follow(struct ttmon_families *f)
{
	struct ttmon_budget_view v;
	char why[256];

	ttmon_budget_get(f->budget, &v);
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		const struct ttmon_reduction all = { .family = i, .uid = TTMON_BUDGET_NOBODY };
		bool reduce = has_reduction(v.reductions, v.nr, &all);

		/* Reducing and restoring neither attach nor detach, and cannot fail. */
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
	follow_single(f, &v);
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

/* SIGHUP: reductions by the budget end, states set on request stay. */
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
