// SPDX-License-Identifier: GPL-2.0-only
/*
 * families.c: families of probes at run time. The state of a family is its gate in the kernel (io/bpf.h); here is who changes it, in which
 * order, and how it is told: one line in the log, a FAMILY fact in the stream.
 *
 * Off: the gate is closed first, so that all programs stop at the same time, then links are taken away. On: links first, then the gate. Without
 * multi links the probes at objects stay, for taking them away makes the whole host wait: the gate is all there is.
 */
#include "capture.h"

#include <sys/resource.h>

#include "util/clock.h"

#define SAMPLE_TICKS 10

enum why { WHY_NONE, WHY_ASKED, WHY_BUDGET };
static const char *const whys[] = { "", "asked for", "budget" };

struct ttmon_families {
	struct ttmon_run *c;
	struct ttmon_budget *budget; /* NULL: none */
	bool run_times;
	bool over;
	struct {
		enum why why;
		uint64_t since_ns;
	} of[TTMON_FAMILY_MAX];
};

static const struct {
	const char *name, *help;
	bool countable;
} table[TTMON_FAMILY_MAX] = {
#define X(id, NAME, name, countable, help) { name, help, countable },
	TTMON_FAMILY_TABLE(X)
#undef X
};

/* Which family tells a kind of event. */
static const uint8_t family_of[TTMON_EV_FACT] = {
	[TTMON_EV_ALLOC] = TTMON_FAMILY_ALLOC,
	[TTMON_EV_FREE] = TTMON_FAMILY_ALLOC,
	[TTMON_EV_RESET] = TTMON_FAMILY_ALLOC,
	[TTMON_EV_TAG] = TTMON_FAMILY_ALLOC,
	[TTMON_EV_CHECKPOINT] = TTMON_FAMILY_ALLOC,
	[TTMON_EV_COPY] = TTMON_FAMILY_TRANSFER,
	[TTMON_EV_COPY_RECT] = TTMON_FAMILY_TRANSFER,
	[TTMON_EV_COPY_SITE] = TTMON_FAMILY_TRANSFER,
	[TTMON_EV_HINT] = TTMON_FAMILY_TRANSFER,
	[TTMON_EV_LAUNCHES] = TTMON_FAMILY_LAUNCH,
	[TTMON_EV_LAUNCHED] = TTMON_FAMILY_LAUNCH,
	[TTMON_EV_MMAP] = TTMON_FAMILY_MMAP,
	[TTMON_EV_MUNMAP] = TTMON_FAMILY_MMAP,
	[TTMON_EV_MREMAP] = TTMON_FAMILY_MMAP,
	[TTMON_EV_BRK] = TTMON_FAMILY_MMAP,
	[TTMON_EV_TT_BUFFER] = TTMON_FAMILY_TENSTORRENT,
	[TTMON_EV_TT_CALL] = TTMON_FAMILY_TENSTORRENT,
	[TTMON_EV_TT_PIN] = TTMON_FAMILY_TENSTORRENT,
	[TTMON_EV_TT_DISPATCH] = TTMON_FAMILY_DISPATCH,
	[TTMON_EV_TT_PROGRAM] = TTMON_FAMILY_DISPATCH,
	[TTMON_EV_TT_KERNEL] = TTMON_FAMILY_DISPATCH,
	[TTMON_EV_CPU_SLOT] = TTMON_FAMILY_CPU,
	[TTMON_EV_RMID] = TTMON_FAMILY_RMID,
	[TTMON_EV_RDT] = TTMON_FAMILY_RMID,
	/* PROC, EXIT and TASK: TTMON_FAMILY_PROCESS, 0 */
};

const char *ttmon_family_name(enum ttmon_family family)
{
	return table[family].name;
}

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

int ttmon_families_new(struct ttmon_run *c, struct ttmon_families **ret)
{
	struct ttmon_budget_cfg cfg = {
		.max_percent = c->opts->max_overhead,
		.cpus = (uint32_t)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1),
	};
	struct ttmon_families *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->c = c;
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		f->of[i].since_ns = c->start_ns;
	if ((c->opts->service || c->opts->overhead_given) && cfg.max_percent > 0) {
		err = ttmon_budget_new(&cfg, &f->budget);
		if (err) {
			free(f);
			return err;
		}
		err = ttmon_bpf_count_runs(c->bpf);
		f->run_times = !err;
		if (err)
			log_warn(
				"the kernel does not tell what BPF programs cost (%s; it needs CAP_SYS_ADMIN): --max-overhead knows the daemon's own time alone",
				strerror(-err));
	}
	*ret = f;
	return 0;
}

void ttmon_families_free(struct ttmon_families *f)
{
	if (!f)
		return;
	ttmon_budget_free(f->budget);
	free(f);
}

static enum ttmon_family_state state_of(const struct ttmon_families *f, enum ttmon_family family)
{
	return ttmon_bpf_gate(f->c->bpf, family);
}

static void tell(const struct ttmon_families *f, enum ttmon_family family)
{
	struct ttmon_ev_family e = {
		.h = { .ts_ns = ttmon_mono_ns(), .kind = TTMON_EV_FAMILY, .cpu = TTMON_CPU_DAEMON },
		.family = family,
		.state = state_of(f, family),
		.why = f->of[family].why == WHY_BUDGET,
	};

	ttmon_hot_fact(f->c->hot, &e, sizeof(e));
}

static int put_back(struct ttmon_families *f, enum ttmon_family family, char *why, size_t n)
{
	int err = ttmon_bpf_attach_family(f->c->bpf, family, why, n);

	if (!err)
		ttmon_discover_family(f->c->discover, family, true);
	return err;
}

/* The gate, and what has to happen with it at the same time. */
static void set_gate(struct ttmon_families *f, enum ttmon_family family, enum ttmon_family_state to)
{
	struct ttmon_run *c = f->c;
	bool was_on = state_of(f, family) == TTMON_FAMILY_ON;

	if (family == TTMON_FAMILY_CPU && to == TTMON_FAMILY_ON)
		ttmon_bpf_cpus_forget(c->bpf);
	ttmon_bpf_set_gate(c->bpf, family, to);
	if (family == TTMON_FAMILY_CPU && was_on != (to == TTMON_FAMILY_ON))
		ttmon_hot_pause_cpus(c->hot, was_on);
	/* What was mapped and unmapped meanwhile is read. */
	if (family == TTMON_FAMILY_MMAP && to == TTMON_FAMILY_ON)
		ttmon_bpf_each_pid(c->bpf, ttmon_loop_discover, c);
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
		ttmon_discover_family(f->c->discover, family, false);
		ttmon_bpf_detach_family(f->c->bpf, family);
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

int ttmon_families_set(struct ttmon_families *f, enum ttmon_family family, enum ttmon_family_state state, char *why,
		       size_t n)
{
	const char *name = table[family].name;
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
		log_error("family %s stays off: %s", name, why);
	else
		log_info("family %s: %s, as asked for", name, ttmon_family_state_name(state));
	return err;
}

/* ---- the budget ---- */

static uint64_t sum_kinds(const struct ttmon_families *f, enum ttmon_family family, uint64_t *counted)
{
	uint64_t hits = 0;

	*counted = 0;
	for (uint32_t cpu = 0; cpu < ttmon_bpf_cpus(f->c->bpf); cpu++) {
		const struct ttmon_cpu_stat *st = ttmon_bpf_stat(f->c->bpf, cpu);

		for (unsigned int kind = 1; kind < TTMON_EV_FACT; kind++) {
			if (family_of[kind] != family)
				continue;
			hits += st->attempted[kind] + st->counted[kind];
			*counted += st->counted[kind];
		}
	}
	return hits;
}

static void take_sample(const struct ttmon_families *f, struct ttmon_budget_sample *s)
{
	struct rusage ru;

	*s = (struct ttmon_budget_sample){ .now_ns = ttmon_mono_ns() };
	if (!getrusage(RUSAGE_SELF, &ru))
		s->daemon_ns = (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * NSEC_PER_SEC +
			       (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * NSEC_PER_US;
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		uint64_t counted;

		/* Runs are the same measure whether a family is on or counted, events are not: many launches, switches are one. */
		if (f->run_times)
			ttmon_bpf_family_runs(f->c->bpf, i, &s->hits[i], &s->bpf_ns[i]);
		else
			s->hits[i] = sum_kinds(f, i, &counted);
		if (table[i].countable && f->of[i].why != WHY_ASKED && state_of(f, i) <= TTMON_FAMILY_COUNTING)
			s->countable |= 1u << i;
	}
}

static void follow(struct ttmon_families *f)
{
	double max = f->c->opts->max_overhead;
	struct ttmon_budget_view v;
	char why[256];

	ttmon_budget_get(f->budget, &v);
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		bool reduce = v.counting >> i & 1;

		/* Reducing and coming back neither attaches nor detaches, and cannot fail. */
		if (reduce && f->of[i].why == WHY_NONE) {
			(void)!change(f, i, TTMON_FAMILY_COUNTING, WHY_BUDGET, why, sizeof(why));
			log_warn("over budget (%.2g %% of %g %%): %s is only counted", v.percent, max, table[i].name);
		} else if (!reduce && f->of[i].why == WHY_BUDGET) {
			(void)!change(f, i, TTMON_FAMILY_ON, WHY_NONE, why, sizeof(why));
			log_info("under budget (%.2g %% of %g %%): %s is on again", v.percent, max, table[i].name);
		}
	}
	if (v.over && !f->over)
		log_warn("over budget (%.2g %% of %g %%), and nothing is left that could be only counted", v.percent,
			 max);
	f->over = v.over;
}

void ttmon_families_tick(struct ttmon_families *f)
{
	struct ttmon_budget_sample s;

	if (!f || !f->budget || f->c->ticks % SAMPLE_TICKS)
		return;
	take_sample(f, &s);
	if (ttmon_budget_sample(f->budget, &s))
		follow(f);
}

void ttmon_families_reload(struct ttmon_families *f)
{
	if (!f || !f->budget)
		return;
	ttmon_budget_reset(f->budget);
	follow(f);
}

void ttmon_families_get(const struct ttmon_families *f, enum ttmon_family family, struct ttmon_family_view *ret)
{
	*ret = (struct ttmon_family_view){ .state = TTMON_FAMILY_ABSENT, .why = "" };
	if (!f)
		return;
	ret->state = state_of(f, family);
	ret->why = whys[f->of[family].why];
	ret->since_ns = f->of[family].since_ns;
	ret->hits = sum_kinds(f, family, &ret->counted);
	ttmon_bpf_family_runs(f->c->bpf, family, &ret->run_cnt, &ret->run_ns);
}

bool ttmon_families_budget(const struct ttmon_families *f, struct ttmon_budget_view *ret)
{
	*ret = (struct ttmon_budget_view){ 0 };
	if (!f || !f->budget)
		return false;
	ttmon_budget_get(f->budget, ret);
	return true;
}
