// SPDX-License-Identifier: GPL-2.0-only
/*
 * groups.c: figures of processes, summed up by name, cgroup, unit, container or pod. Two tables choose
 * which groups have series: one ranks by memory and transfers, the other by CPU time.
 */
#include "daemon/core/usage/cgname.h"
#include "daemon/metrics/metrics_int.h"

/* Counters of a group: memory first, then the scheduler's. */
#define MEM_SUMS (offsetof(struct ttmon_usage_sums, cpu_ns) / sizeof(uint64_t))
#define CPU_SUMS (TTMON_USAGE_SUMS - MEM_SUMS)

typedef char group_name[TTMON_CGNAME_MAX];

struct ranking {
	struct ttmon_topn_item *items;
	group_name *names;
};

static const struct ttmon_usage_sums *mem_sums(const struct ttmon_topn_row *r)
{
	/* A row of this table ends before cpu_ns; the code reads no further. */
	return (const void *)r->sums;
}

static const struct ttmon_usage_now *mem_now(const struct ttmon_topn_row *r)
{
	return (const void *)r->gauges;
}

static uint64_t cpu_sum(const struct ttmon_topn_row *r, size_t offset)
{
	return r->sums[offset / sizeof(uint64_t) - MEM_SUMS];
}

int ttmon_metrics_groups_new(struct ttmon_metrics *m)
{
	struct ttmon_topn_cfg mem = { ttmon_daemon_opts(m->c)->series, MEM_SUMS, TTMON_USAGE_NOW };
	struct ttmon_topn_cfg cpu = { ttmon_daemon_opts(m->c)->series, CPU_SUMS, 1 };
	int err = ttmon_topn_new(&mem, &m->mem);

	return err ? err : ttmon_topn_new(&cpu, &m->cpu);
}

/* An id is valid only on its host and in its boot: a recording has the paths of its own ids. */
static const char *cgroup_path(const struct ttmon_metrics *m, uint64_t id)
{
	const struct ttmon_history *h;

	if (!id)
		return "";
	if (!ttmon_daemon_is_replay(m->c))
		return ttmon_cgroups_path(m->cgroup_paths, id);
	h = ttmon_pipeline_history(ttmon_daemon_pipeline(m->c));
	for (size_t i = 0; i < ttmon_history_procs(h); i++) {
		const struct ttmon_proc *p = ttmon_history_proc(h, i);

		if (p && p->cgroup_id == id && p->cgroup)
			return p->cgroup;
	}
	return "";
}

/* "other" sums up the groups without series of their own. */
static void name_of(const struct ttmon_metrics *m, const struct ttmon_usage_group *g, group_name ret)
{
	enum ttmon_group_by by = ttmon_daemon_opts(m->c)->group_by;
	group_name part;
	const char *path, *text = g->comm;

	if (by != TTMON_GROUP_COMM) {
		path = cgroup_path(m, g->cgroup_id);
		text = !*path ? "" : ttmon_cgname(by, path, part, sizeof(part)) && *part ? part : "none";
	}
	ttmon_prom_clean(ret, sizeof(group_name), *text ? text : "unknown");
	if (!strcmp(ret, "other"))
		snprintf(ret, sizeof(group_name), "other_");
}

static uint64_t moved(const struct ttmon_usage_group *g)
{
	uint64_t bytes = 0;

	for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++)
		for (unsigned int k = 0; k < TTMON_MEM_MAX; k++)
			bytes += g->sums.xfer[d][k].bytes;
	for (unsigned int i = 0; i < TTMON_METHOD_MAX; i++)
		bytes += g->now.live_bytes[i];
	return bytes;
}

static int rank_mem(struct ttmon_metrics *m, const struct ranking *r)
{
	const struct ttmon_metrics_view *v = &m->v;
	size_t n = 0;

	for (size_t i = 0; i < v->nr_groups; i++) {
		const struct ttmon_usage_group *g = &v->groups[i];

		if (g->mem)
			r->items[n++] =
				(struct ttmon_topn_item){ g->id, r->names[i], moved(g), (const uint64_t *)&g->sums,
							  (const uint64_t *)&g->now };
	}
	return ttmon_topn_update(m->mem, r->items, n, (const uint64_t *)&v->gone);
}

static int rank_cpu(struct ttmon_metrics *m, const struct ranking *r)
{
	const struct ttmon_metrics_view *v = &m->v;
	size_t n = 0;

	for (size_t i = 0; i < v->nr_groups; i++) {
		const struct ttmon_usage_group *g = &v->groups[i];

		if (g->cpu)
			r->items[n++] = (struct ttmon_topn_item){ g->id, r->names[i], g->sums.cpu_ns, &g->sums.cpu_ns,
								  &g->now.llc_bytes };
	}
	return ttmon_topn_update(m->cpu, r->items, n, &v->gone.cpu_ns);
}

int ttmon_metrics_rank(struct ttmon_metrics *m)
{
	size_t n = m->v.nr_groups;
	_cleanup_free_ struct ttmon_topn_item *items = calloc(n + 1, sizeof(*items));
	_cleanup_free_ group_name *names = malloc((n + 1) * sizeof(*names));
	struct ranking r = { items, names };
	int err;

	if (!items || !names)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		name_of(m, &m->v.groups[i], names[i]);
	err = rank_mem(m, &r);
	return err ? err : rank_cpu(m, &r);
}

/* ---- what is shown ---- */

struct table {
	const struct ttmon_topn_row *rows;
	size_t n;
};

static const char *label(const struct ttmon_topn_row *r)
{
	return r->name ? r->name : "other";
}

/* A method that was never used on this host gets no series for every group. */
static bool is_used(const struct ttmon_metrics *m, unsigned int method)
{
	return ttmon_metrics_vendor(method) && m->v.totals.method[method].allocs;
}

static uint64_t figure(enum ttmon_metric id, const struct ttmon_topn_row *r, unsigned int method)
{
	switch (id) {
	case TTMON_METRIC_GROUP_ALLOCATIONS:
		return mem_sums(r)->allocs[method];
	case TTMON_METRIC_GROUP_ALLOCATED_BYTES:
		return mem_sums(r)->alloc_bytes[method];
	default:
		return mem_now(r)->live_bytes[method];
	}
}

static void by_method(struct ttmon_metrics *m, const struct table *t, enum ttmon_metric id)
{
	for (size_t r = 0; r < t->n; r++)
		for (unsigned int i = 0; i < TTMON_METHOD_MAX; i++)
			if (is_used(m, i) && (id != TTMON_METRIC_GROUP_PINNED_BYTES || ttmon_method_pins(i)))
				ttmon_metrics_num(m, id, figure(id, &t->rows[r], i),
						  TTMON_VALUES(label(&t->rows[r]), ttmon_metrics_vendor(i),
							       ttmon_metrics_method(i)));
}

static void transfers(struct ttmon_metrics *m, const struct table *t, enum ttmon_metric id)
{
	for (size_t r = 0; r < t->n; r++) {
		for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++) {
			for (unsigned int k = 0; k < TTMON_MEM_MAX; k++) {
				const struct ttmon_xfer *x = &mem_sums(&t->rows[r])->xfer[d][k];

				if (m->v.totals.xfer[d][k].copies)
					ttmon_metrics_num(m, id,
							  id == TTMON_METRIC_GROUP_TRANSFERS ? x->copies : x->bytes,
							  TTMON_VALUES(label(&t->rows[r]), "nvidia", ttmon_rdir_name(d),
								       ttmon_metrics_mem(d, k)));
			}
		}
	}
}

/* Kinds of calls that a group never made have no series. */
static void sync_calls(struct ttmon_metrics *m, const struct ttmon_topn_row *row)
{
	const struct ttmon_usage_sums *s = mem_sums(row);

	for (unsigned int k = 0; k < TTMON_WAIT_MAX; k++) {
		uint64_t any = 0;

		for (unsigned int part = 0; part < TTMON_WAIT_PARTS; part++)
			any |= s->wait_ns[k][part];
		for (unsigned int part = 0; any && part < TTMON_WAIT_PARTS; part++)
			TTMON_SECONDS(m, GROUP_WAIT_SECONDS, s->wait_ns[k][part], label(row), ttmon_wait_name(k),
				      ttmon_wait_part_name(part));
	}
}

/* A group without any report on its chips has no series: its busy time is not known. */
static void work(struct ttmon_metrics *m, const struct table *t, enum ttmon_metric id)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct ttmon_work *w = &mem_sums(&t->rows[i])->work;

		if (!w->runs && (!w->missed || id != TTMON_METRIC_GROUP_TT_MISSED))
			continue;
		if (id == TTMON_METRIC_GROUP_TT_BUSY || id == TTMON_METRIC_GROUP_TT_BUSY_ERROR)
			ttmon_metrics_nano(m, id, id == TTMON_METRIC_GROUP_TT_BUSY ? w->busy_ns : w->error_ns,
					   TTMON_VALUES(label(&t->rows[i])));
		else
			ttmon_metrics_num(m, id, id == TTMON_METRIC_GROUP_TT_MISSED ? w->missed : w->unbounded,
					  TTMON_VALUES(label(&t->rows[i])));
	}
}

static void memory(struct ttmon_metrics *m)
{
	static const enum ttmon_metric work_ids[] = { TTMON_METRIC_GROUP_TT_BUSY, TTMON_METRIC_GROUP_TT_BUSY_ERROR,
						      TTMON_METRIC_GROUP_TT_UNBOUNDED, TTMON_METRIC_GROUP_TT_MISSED };
	struct table t;

	t.n = ttmon_topn_rows(m->mem, &t.rows);
	for (size_t i = 0; i < t.n; i++)
		TTMON_NUM(m, GROUP_PROCESSES, mem_now(&t.rows[i])->processes, label(&t.rows[i]));
	by_method(m, &t, TTMON_METRIC_GROUP_PINNED_BYTES);
	for (size_t i = 0; i < t.n; i++)
		TTMON_NUM(m, GROUP_PINNED_PAGES, mem_now(&t.rows[i])->pinned_pages, label(&t.rows[i]));
	for (size_t i = 0; i < t.n; i++)
		TTMON_NUM(m, GROUP_PINNED_PEAK_BYTES, mem_now(&t.rows[i])->pinned_peak_bytes, label(&t.rows[i]));
	by_method(m, &t, TTMON_METRIC_GROUP_LIVE_BYTES);
	by_method(m, &t, TTMON_METRIC_GROUP_ALLOCATIONS);
	by_method(m, &t, TTMON_METRIC_GROUP_ALLOCATED_BYTES);
	transfers(m, &t, TTMON_METRIC_GROUP_TRANSFERS);
	transfers(m, &t, TTMON_METRIC_GROUP_TRANSFER_BYTES);
	for (size_t i = 0; i < t.n; i++) {
		TTMON_NUM(m, GROUP_LAUNCHES, mem_sums(&t.rows[i])->kernels, label(&t.rows[i]), "nvidia", "kernel");
		TTMON_NUM(m, GROUP_LAUNCHES, mem_sums(&t.rows[i])->graphs, label(&t.rows[i]), "nvidia", "graph");
	}
	for (size_t i = 0; i < t.n; i++)
		sync_calls(m, &t.rows[i]);
	for (size_t i = 0; i < t.n; i++)
		TTMON_NUM(m, GROUP_FAILED_CALLS, mem_sums(&t.rows[i])->failed, label(&t.rows[i]));
	for (size_t i = 0; i < ARRAY_SIZE(work_ids); i++)
		work(m, &t, work_ids[i]);
}

static void cpu(struct ttmon_metrics *m)
{
	static const enum ttmon_metric counters[TTMON_CTR_MAX] = {
		[TTMON_CTR_CYCLES] = TTMON_METRIC_GROUP_CYCLES,
		[TTMON_CTR_INSTRUCTIONS] = TTMON_METRIC_GROUP_INSTRUCTIONS,
		[TTMON_CTR_LLC_MISSES] = TTMON_METRIC_GROUP_LLC_MISSES,
		[TTMON_CTR_LLC_REFS] = TTMON_METRIC_GROUP_LLC_REFS,
	};
	const size_t ctr = offsetof(struct ttmon_usage_sums, ctr);
	uint32_t has = m->v.rmid.has;
	struct table t;

	t.n = ttmon_topn_rows(m->cpu, &t.rows);
	for (size_t i = 0; i < t.n; i++)
		TTMON_SECONDS(m, GROUP_CPU_SECONDS, cpu_sum(&t.rows[i], offsetof(struct ttmon_usage_sums, cpu_ns)),
			      label(&t.rows[i]));
	for (size_t i = 0; i < t.n; i++)
		TTMON_NUM(m, GROUP_SWITCHES, cpu_sum(&t.rows[i], offsetof(struct ttmon_usage_sums, switches)),
			  label(&t.rows[i]));
	for (unsigned int k = 0; m->v.cpu.has_ctr && k < TTMON_CTR_MAX; k++)
		for (size_t i = 0; i < t.n; i++)
			ttmon_metrics_num(m, counters[k], cpu_sum(&t.rows[i], ctr + k * sizeof(uint64_t)),
					  TTMON_VALUES(label(&t.rows[i])));
	for (size_t i = 0; has & TTMON_RMID_HAS_OCCUPANCY && i < t.n; i++)
		TTMON_NUM(m, GROUP_LLC_BYTES, t.rows[i].gauges[0], label(&t.rows[i]));
	for (size_t i = 0; i < t.n; i++) {
		if (has & TTMON_RMID_HAS_TOTAL)
			TTMON_NUM(m, GROUP_MBM, cpu_sum(&t.rows[i], offsetof(struct ttmon_usage_sums, mbm_total)),
				  label(&t.rows[i]), "total");
		if (has & TTMON_RMID_HAS_LOCAL)
			TTMON_NUM(m, GROUP_MBM, cpu_sum(&t.rows[i], offsetof(struct ttmon_usage_sums, mbm_local)),
				  label(&t.rows[i]), "local");
	}
}

void ttmon_metrics_groups(struct ttmon_metrics *m)
{
	memory(m);
	if (m->v.cpu.slots)
		cpu(m);
	TTMON_NUM(m, GROUPS, m->v.nr_groups);
	TTMON_NUM(m, GROUPS_REFUSED, m->v.refused);
}
