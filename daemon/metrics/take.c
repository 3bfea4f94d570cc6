// SPDX-License-Identifier: GPL-2.0-only
/*
 * take.c: copies the pipeline's figures in the hot thread, all at one moment, into memory that the
 * cold thread allocated.
 */
#include "daemon/metrics/metrics_int.h"

/*
 * Room for groups that come between the count and the copy; if it is too small, the copy is tried
 * again with more.
 */
#define SPARE 64
#define TRIES 4

static void copy_history(struct ttmon_metrics_view *v, const struct ttmon_history *h)
{
	const struct ttmon_ev_clock *clock = ttmon_history_clock(h);
	const struct ttmon_failure *failures;

	ttmon_history_get_totals(h, &v->totals);
	ttmon_history_live_totals(h, &v->live);
	v->processes = 0;
	for (size_t i = 0; i < ttmon_history_procs(h); i++) {
		const struct ttmon_proc *p = ttmon_history_proc(h, i);

		v->processes += p && !p->exit_ns;
	}
	for (unsigned int i = 0; i < TTMON_METHOD_MAX; i++) {
		ttmon_history_pin_times(h, i, false, &v->pin[i]);
		ttmon_history_pin_times(h, i, true, &v->unpin[i]);
	}
	memcpy(v->waits, ttmon_history_waits_all(h), sizeof(v->waits));
	v->nr_failures = MIN(ttmon_history_failures(h, &failures), (size_t)TTMON_METRICS_FAILURES);
	if (v->nr_failures)
		memcpy(v->failures, failures, v->nr_failures * sizeof(*failures));
	if (clock) {
		memcpy(v->hostname, clock->hostname, sizeof(clock->hostname));
		memcpy(v->release, clock->release, sizeof(clock->release));
		v->real_offset_ns = (int64_t)(clock->real_ns - clock->mono_ns);
	}
}

static void copy_groups(struct ttmon_metrics_view *v, struct ttmon_usage *u)
{
	const struct ttmon_usage_group *groups;

	v->wanted_groups = ttmon_usage_groups(u, &groups);
	v->nr_groups = MIN(v->wanted_groups, v->cap_groups);
	if (v->nr_groups)
		memcpy(v->groups, groups, v->nr_groups * sizeof(*groups));
	v->gone = *ttmon_usage_gone(u);
	v->refused = ttmon_usage_refused(u);
}

static int copy(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	struct ttmon_metrics *m = ctx;
	struct ttmon_metrics_view *v = &m->v;

	ttmon_usage_sweep(ttmon_pipeline_usage(p), ttmon_pipeline_history(p), ttmon_pipeline_cpu(p), now_ns);
	copy_groups(v, ttmon_pipeline_usage(p));
	copy_history(v, ttmon_pipeline_history(p));
	ttmon_pipeline_accounting(p, &v->acc);
	v->unpublished = ttmon_daemon_unpublished(m->c);
	ttmon_cpu_get_totals(ttmon_pipeline_cpu(p), &v->cpu);
	ttmon_rmid_get_totals(ttmon_pipeline_rmid(p), &v->rmid);
	v->has_tt = ttmon_pipeline_has_tt(p);
	ttmon_pipeline_seen(p, &v->seen);
	return 0;
}

int ttmon_metrics_take(struct ttmon_metrics *m)
{
	struct ttmon_metrics_view *v = &m->v;

	for (unsigned int i = 0; i < TRIES; i++) {
		(void)!ttmon_daemon_call(m->c, copy, m);
		if (v->nr_groups == v->wanted_groups)
			return 0;
		v->cap_groups = v->wanted_groups + v->wanted_groups / 2 + SPARE;
		free(v->groups);
		v->groups = calloc(v->cap_groups, sizeof(*v->groups));
		if (!v->groups) {
			v->cap_groups = 0;
			return -ENOMEM;
		}
	}
	return -EAGAIN;
}

/* ---- cgroups ---- */

static int copy_cgroups(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	struct ttmon_usage *u = ttmon_pipeline_usage(p);
	const struct ttmon_usage_group *groups;
	struct ttmon_metrics *m = ctx;

	ttmon_usage_sweep(u, ttmon_pipeline_history(p), ttmon_pipeline_cpu(p), now_ns);
	m->wanted_cgroups = ttmon_usage_groups(u, &groups);
	m->nr_cgroups = MIN(m->wanted_cgroups, m->cap_cgroups);
	for (size_t i = 0; i < m->nr_cgroups; i++)
		m->cgroups[i] = groups[i].cgroup_id;
	return 0;
}

void ttmon_metrics_ask_cgroups(struct ttmon_metrics *m)
{
	if (!m->cgroup_paths)
		return;
	(void)!ttmon_daemon_call(m->c, copy_cgroups, m);
	if (m->wanted_cgroups > m->cap_cgroups) {
		/* The rest is copied at the next tick. */
		uint64_t *more = realloc(m->cgroups, (m->wanted_cgroups + SPARE) * sizeof(*more));

		if (more) {
			m->cgroups = more;
			m->cap_cgroups = m->wanted_cgroups + SPARE;
			(void)!ttmon_daemon_call(m->c, copy_cgroups, m);
		}
	}
	for (size_t i = 0; i < m->nr_cgroups; i++)
		if (m->cgroups[i])
			(void)ttmon_cgroups_path(m->cgroup_paths, m->cgroups[i]);
	ttmon_cgroups_sweep(m->cgroup_paths);
}
