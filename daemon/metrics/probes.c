// SPDX-License-Identifier: GPL-2.0-only
/*
 * probes.c: objects and their probes, BPF programs, families of probes, what they cost. A replay has
 * none.
 */
#include "daemon/io/probes/discover.h"
#include "daemon/metrics/metrics_int.h"
#include "daemon/run/families.h"

/* The kind of a file, one word for each. */
enum object { OBJECT_RUNTIME, OBJECT_DRIVER, OBJECT_STATIC, OBJECT_STRIPPED, OBJECT_TT, OBJECT_OTHER, OBJECTS };
static const char *const object_names[OBJECTS] = { "runtime",	       "driver",   "static_runtime",
						   "stripped_runtime", "tt_metal", "allocator" };
#define STATES 16 /* room for all states */

struct counts {
	uint64_t objects[OBJECTS], failed[OBJECTS], missing[OBJECTS];
	uint64_t probes[TTMON_PROG_UPROBES + 1][STATES]; /* the last one: probes without a program */
	bool states[STATES];
	uint64_t unread;
};

static enum object object_of(uint32_t kind)
{
	if (kind & TTMON_OBJ_IS_DRV)
		return OBJECT_DRIVER;
	if (kind & TTMON_OBJ_STATIC_RT)
		return OBJECT_STATIC;
	if (kind & TTMON_OBJ_IS_RT)
		return OBJECT_RUNTIME;
	if (kind & TTMON_OBJ_IS_TT)
		return OBJECT_TT;
	return kind & TTMON_OBJ_STRIPPED_RT ? OBJECT_STRIPPED : OBJECT_OTHER;
}

static void add_object(void *ctx, const struct ttmon_object_state *o)
{
	enum object kind = object_of(o->kind);
	struct counts *n = ctx;

	n->unread += o->unread;
	if (o->unread)
		return;
	n->objects[kind]++;
	n->failed[kind] += o->err != 0;
	n->missing[kind] += o->missing;
	for (size_t i = 0; o->probes && i < o->probes->n; i++) {
		const struct ttmon_probe *p = &o->probes->probes[i];

		if (p->state >= STATES)
			continue;
		n->probes[MIN(p->prog, TTMON_PROG_UPROBES)][p->state]++;
		n->states[p->state] = true;
	}
}

static void objects(struct ttmon_metrics *m)
{
	struct counts n = { .states[TTMON_PROBE_ATTACHED] = true, .states[TTMON_PROBE_FAILED] = true };

	ttmon_discover_each(ttmon_daemon_discover(m->c), add_object, &n);
	for (unsigned int i = 0; i < OBJECTS; i++)
		TTMON_NUM(m, OBJECTS, n.objects[i], object_names[i]);
	for (unsigned int i = 0; i < OBJECTS; i++)
		TTMON_NUM(m, OBJECTS_FAILED, n.failed[i], object_names[i]);
	for (unsigned int i = 0; i <= TTMON_PROG_UPROBES; i++) {
		struct ttmon_prog_info info = { .name = "none" };

		if (i < TTMON_PROG_UPROBES)
			ttmon_bpf_prog_info(ttmon_daemon_bpf(m->c), i, &info);
		for (unsigned int k = 0; k < STATES; k++)
			if (n.states[k])
				TTMON_NUM(m, PROBES, n.probes[i][k], info.name, ttmon_probe_state_name(k));
	}
	for (unsigned int i = 0; i < OBJECTS; i++)
		TTMON_NUM(m, PROBES_MISSING, n.missing[i], object_names[i]);
	TTMON_NUM(m, FILES_UNREAD, n.unread);
}

static void helpers(struct ttmon_metrics *m)
{
	struct ttmon_helpers_counts n;

	if (!ttmon_daemon_helpers(m->c, &n))
		return;
	TTMON_NUM(m, HELPERS, n.processes - n.late, "prompt");
	TTMON_NUM(m, HELPERS, n.late, "late");
	TTMON_NUM(m, HELPERS_QUEUED, n.queued);
	TTMON_NUM(m, HELPERS_GIVEN_UP, n.given_up);
	TTMON_SECONDS(m, HELPERS_CPU, n.cpu_ns);
}

static void programs(struct ttmon_metrics *m)
{
	struct ttmon_prog_info info[TTMON_PROG_MAX];
	uint64_t runs = 0;

	for (int i = 0; i < TTMON_PROG_MAX; i++) {
		ttmon_bpf_prog_info(ttmon_daemon_bpf(m->c), i, &info[i]);
		runs += info[i].run_cnt;
	}
	for (int i = 0; i < TTMON_PROG_MAX; i++)
		if (info[i].wanted && i != TTMON_PROG_TASK_ITER) /* the daemon runs that program itself */
			TTMON_NUM(m, PROGRAM_ATTACHED, info[i].attached, info[i].name, info[i].kind);
	/* Without the kernel's statistics (kernel.bpf_stats_enabled, --max-overhead) runs are not counted. */
	for (int i = 0; runs && i < TTMON_PROG_MAX; i++)
		if (info[i].loaded)
			TTMON_NUM(m, PROGRAM_RUNS, info[i].run_cnt, info[i].name);
	for (int i = 0; runs && i < TTMON_PROG_MAX; i++)
		if (info[i].loaded)
			TTMON_SECONDS(m, PROGRAM_SECONDS, info[i].run_ns, info[i].name);
}

/* Percent to billionths. */
static uint64_t ratio(double percent)
{
	return percent > 0 ? (uint64_t)(percent * 1e7 + 0.5) : 0;
}

static void families(struct ttmon_metrics *m)
{
	struct ttmon_family_view v[TTMON_FAMILY_MAX];

	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		ttmon_families_get(m->c, i, &v[i]);
		for (unsigned int k = 0; k < TTMON_FAMILY_STATE_MAX; k++)
			TTMON_NUM(m, FAMILY_STATE, v[i].state == k, ttmon_family_name(i), ttmon_family_state_name(k));
	}
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		TTMON_NUM(m, FAMILY_HITS, v[i].hits, ttmon_family_name(i));
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		TTMON_NUM(m, FAMILY_COUNTED, v[i].counted, ttmon_family_name(i));
}

static void budget(struct ttmon_metrics *m)
{
	struct ttmon_budget_view v;
	uint64_t procs = 0, users = 0;

	if (!ttmon_families_budget(m->c, &v))
		return;
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		TTMON_NUM(m, FAMILY_REDUCED, v.reduced[i], ttmon_family_name(i));
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		TTMON_SECONDS(m, FAMILY_OVERHEAD, ratio(v.family_percent[i]), ttmon_family_name(i));
	TTMON_SECONDS(m, OVERHEAD, ratio(v.daemon_percent), "daemon");
	TTMON_SECONDS(m, OVERHEAD, ratio(v.bpf_percent), "bpf");
	TTMON_SECONDS(m, BUDGET, ratio(v.max_percent));
	for (unsigned int i = 0; i < v.nr; i++) {
		procs += v.reductions[i].tgid != 0;
		users += !v.reductions[i].tgid && v.reductions[i].uid != TTMON_BUDGET_NOBODY;
	}
	TTMON_NUM(m, BUDGET_PROCESSES, procs);
	TTMON_NUM(m, BUDGET_USERS, users);
	TTMON_NUM(m, OVER_BUDGET, v.over);
}

void ttmon_metrics_probes(struct ttmon_metrics *m)
{
	if (!ttmon_daemon_bpf(m->c))
		return;
	if (ttmon_daemon_discover(m->c))
		objects(m);
	helpers(m);
	programs(m);
	if (!ttmon_families_exist(m->c))
		return;
	families(m);
	budget(m);
}
