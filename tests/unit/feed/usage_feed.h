/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * usage_feed.h: a history, a core/cpu and a usage that belong together, for the tests of core/usage.
 * Not a test itself.
 */
#ifndef TTMON_TEST_USAGE_FEED_H
#define TTMON_TEST_USAGE_FEED_H

#include "tests/unit/feed/cpu_feed.h"
#include "tests/unit/feed/history_feed.h"

#include "daemon/core/usage/usage.h"
#include "tests/unit/feed/apply.h"

#define TO_MEM 1 /* which parts a process is reported to */
#define TO_CPU 2

struct world {
	struct ttmon_history *h;
	struct ttmon_cpu *c;
	struct ttmon_usage *u;
	uint64_t ts, told_ns, closed_no;
};

static inline void world_leaving(void *ctx, const struct ttmon_proc *p)
{
	ttmon_usage_leaving(((struct world *)ctx)->u, p);
}

static inline void world_cpu_leaving(void *ctx, const struct ttmon_cpu_proc *p)
{
	ttmon_usage_cpu_leaving(((struct world *)ctx)->u, p);
}

static inline void world_init(struct world *w, uint32_t max_groups, uint64_t linger_ns, uint32_t max_procs)
{
	struct ttmon_history_cfg mem = { .fold_ns = SEC, .leaving = world_leaving, .ctx = w };
	struct ttmon_cpu_cfg cpu = { .nr_cpus = 1, .max_procs = max_procs, .leaving = world_cpu_leaving, .ctx = w };
	struct ttmon_usage_cfg usage = { .max_groups = max_groups, .linger_ns = linger_ns };

	*w = (struct world){ .ts = B, .told_ns = B, .closed_no = NO };
	assert_int_equal(ttmon_usage_new(&usage, &w->u), 0);
	assert_int_equal(ttmon_history_new(&mem, &w->h), 0);
	assert_int_equal(ttmon_cpu_new(&cpu, &w->c), 0);
	feed_clock(w->h, 4096, 0);
}

static inline void world_fini(struct world *w)
{
	ttmon_history_free(w->h);
	ttmon_cpu_free(w->c);
	ttmon_usage_free(w->u);
}

/* Time goes on; slots close. */
static inline void world_pass(struct world *w, uint64_t ns)
{
	const struct ttmon_slot_row *rows;
	struct ttmon_slot slot = { 0 };

	for (w->ts += ns; (w->closed_no + 1) * MS <= w->ts; w->closed_no++) {
		ttmon_history_tick(w->h, (w->closed_no + 1) * MS);
		ttmon_cpu_close(w->c, w->closed_no, true, &slot, &rows);
	}
}

static inline void world_proc(struct world *w, unsigned int to, uint32_t tgid, uint64_t start, const char *comm,
			      uint64_t cgroup, bool exec)
{
	struct ttmon_ev_proc proc = { .h = feed_head(TTMON_EV_PROC, tgid, w->ts),
				      .start_ns = start,
				      .cgroup_id = cgroup,
				      .reason = exec ? TTMON_PROC_EXEC : TTMON_PROC_FORK };
	struct ttmon_ev_task task = { .h = feed_head(TTMON_EV_TASK, tgid, w->ts),
				      .start_ns = start,
				      .cgroup_id = cgroup,
				      .reason = exec ? TTMON_TASK_EXEC : TTMON_TASK_FORK };

	memcpy(proc.comm, comm, MIN(strlen(comm), sizeof(proc.comm) - 1));
	memcpy(task.comm, comm, MIN(strlen(comm), sizeof(task.comm) - 1));
	if (to & TO_MEM)
		ttmon_history_apply(w->h, &proc.h, sizeof(proc), false);
	if (to & TO_CPU)
		ttmon_cpu_apply(w->c, &task.h, sizeof(task));
}

static inline void world_exit(struct world *w, unsigned int to, uint32_t tgid, uint64_t start)
{
	struct ttmon_ev_task task = { .h = feed_head(TTMON_EV_TASK, tgid, w->ts),
				      .start_ns = start,
				      .reason = TTMON_TASK_EXIT };

	if (to & TO_MEM)
		feed_exit(w->h, tgid, w->ts);
	if (to & TO_CPU)
		ttmon_cpu_apply(w->c, &task.h, sizeof(task));
}

/* The CPU has run this process since the last record of it; tgid 0: it was idle. */
static inline void world_ran(struct world *w, uint32_t tgid, uint64_t start, uint64_t cycles)
{
	struct feed_table f = { .t = { .begin_ns = w->told_ns,
				       .last_ns = w->told_ns,
				       .to_ns = w->ts,
				       .who = feed_who(tgid, start),
				       .ctr = { cycles, cycles / 2 },
				       .row_size = TTMON_CPU_ROW_FULL,
				       .switched = 1 } };

	if (w->ts == w->told_ns)
		return;
	feed_slot(w->c, 0, &f);
	w->told_ns = w->ts;
}

/* The figures of a group; NULL: there is none. */
static inline const struct ttmon_usage_group *world_group(struct world *w, const char *comm, uint64_t cgroup)
{
	const struct ttmon_usage_group *v;
	size_t n = ttmon_usage_groups(w->u, &v);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(v[i].comm, comm) && v[i].cgroup_id == cgroup)
			return &v[i];
	return NULL;
}

static inline void world_sweep(struct world *w)
{
	ttmon_usage_sweep(w->u, w->h, w->c, w->ts);
}

/* Sums over groups, and gone. */
static inline struct ttmon_usage_sums world_sums(struct world *w)
{
	struct ttmon_usage_sums sums = *ttmon_usage_gone(w->u);
	const struct ttmon_usage_group *v;
	size_t n = ttmon_usage_groups(w->u, &v);

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < TTMON_USAGE_SUMS; k++)
			((uint64_t *)&sums)[k] += ((const uint64_t *)&v[i].sums)[k];
	return sums;
}

static inline void world_add_cpu(void *ctx, const struct ttmon_cpu_proc *p)
{
	struct ttmon_usage_sums *s = ctx;

	if (p->cls == TTMON_ROW_IDLE || p->cls == TTMON_ROW_UNASSIGNED)
		return;
	s->cpu_ns += p->cpu_ns;
	s->switches += p->switches;
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++)
		s->ctr[i] += p->ctr[i];
	s->mbm_total += p->mbm_total;
	s->mbm_local += p->mbm_local;
}

/* What all processes there ever were did, as the tables themselves count it. */
static inline struct ttmon_usage_sums world_truth(struct world *w)
{
	struct ttmon_history_totals t = feed_totals(w->h);
	struct ttmon_usage_sums s = { .kernels = t.kernels,
				      .graphs = t.graphs,
				      .failed = t.failed,
				      .unknown_frees = t.unknown_frees,
				      .work = t.work,
				      .unmatched = ttmon_unmatched_settled(t.unmatched, t.unsettled) };
	struct ttmon_cpu_proc gone;

	for (unsigned int m = 0; m < TTMON_METHOD_MAX; m++) {
		s.allocs[m] = t.method[m].allocs;
		s.alloc_bytes[m] = t.method[m].bytes;
		s.ends[m] = t.method[m].ends;
	}
	for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++)
		for (unsigned int m = 0; m < TTMON_MEM_MAX; m++)
			s.xfer[d][m] = ttmon_xfer_settled(t.xfer, t.unsettled, t.proven, d, m);
	ttmon_cpu_each(w->c, world_add_cpu, &s);
	ttmon_cpu_gone(w->c, &gone);
	world_add_cpu(&s, &gone);
	return s;
}

static inline void world_check_sums(struct world *w)
{
	struct ttmon_usage_sums sums = world_sums(w), truth = world_truth(w);

	for (size_t i = 0; i < TTMON_USAGE_SUMS; i++)
		if (((uint64_t *)&sums)[i] != ((uint64_t *)&truth)[i])
			fail_msg("counter %zu: groups and gone have %llu of %llu", i,
				 (unsigned long long)((uint64_t *)&sums)[i],
				 (unsigned long long)((uint64_t *)&truth)[i]);
}

#endif
