// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_usage.c: groups of processes. First single cases, then random lives of thousands of processes.
 * In every sweep it is checked that for each counter the groups and `gone` together have exactly the
 * sum of all processes, and that no counter of a group ever falls.
 */
#include "tests/unit/feed/usage_feed.h"

#include "lib/base/hmap.h"
#include "daemon/core/stream/pipeline.h"

#define T   1000
#define A   0x7f0000000000ULL
#define DEV 0x20000000ULL
#define CG  77
#define M   TTMON_METHOD_HOST_ALLOC

static struct world w;

static int setup(void **state)
{
	(void)state;
	world_init(&w, 4, SEC, 64);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	world_fini(&w);
	return 0;
}

static void sweep(void)
{
	world_sweep(&w);
	world_check_sums(&w);
}

static void a_group_is_a_name_in_a_cgroup(void **state)
{
	const struct ttmon_usage_group *v;

	(void)state;
	world_proc(&w, TO_MEM, T, 1, "a", CG, false);
	world_proc(&w, TO_MEM, T + 1, 2, "a", CG, false);
	world_proc(&w, TO_MEM, T + 2, 3, "a", CG + 1, false);
	for (uint32_t i = 0; i < 3; i++)
		feed_alloc(w.h, T + i, w.ts + 10, M, A, PAGE + i);
	feed_free(w.h, T + 1, w.ts + 20, w.ts + 21, M, A);
	sweep();
	assert_int_equal(ttmon_usage_groups(w.u, &v), 2);
	assert_true(v[0].id < v[1].id);
	assert_string_equal(v[0].comm, "a");
	assert_int_equal(v[0].sums.allocs[M], 2);
	assert_int_equal(v[0].sums.alloc_bytes[M], 2 * PAGE + 1);
	assert_int_equal(v[0].sums.ends[M], 1);
	assert_int_equal(v[0].now.live[M], 1);
	assert_int_equal(v[0].now.live_bytes[M], PAGE);
	assert_int_equal(v[0].now.pinned_pages, 1);
	assert_int_equal(v[0].now.pinned_peak_bytes, PAGE + 1);
	assert_int_equal(v[0].now.processes, 2);
	assert_int_equal(v[0].ended_ns, 0);
	assert_true(v[0].mem && !v[0].cpu);
	assert_int_equal(v[1].cgroup_id, CG + 1);
	assert_int_equal(v[1].sums.allocs[M], 1);
}

static void a_new_name_gains_from_then_on(void **state)
{
	(void)state;
	world_proc(&w, TO_MEM | TO_CPU, T, 1, "sh", CG, false);
	feed_alloc(w.h, T, w.ts + 10, M, A, 3 * PAGE);
	world_pass(&w, MS);
	world_ran(&w, T, 1, 100);
	world_pass(&w, MS);
	sweep();
	world_proc(&w, TO_MEM | TO_CPU, T, 1, "python", CG, true);
	feed_alloc(w.h, T, w.ts + 10, M, A, PAGE);
	world_ran(&w, T, 1, 200);
	world_pass(&w, MS);
	sweep();
	assert_int_equal(world_group(&w, "sh", CG)->sums.allocs[M], 1);
	assert_int_equal(world_group(&w, "sh", CG)->sums.ctr[TTMON_CTR_CYCLES], 100);
	assert_int_equal(world_group(&w, "sh", CG)->now.processes, 0);
	assert_int_equal(world_group(&w, "sh", CG)->ended_ns, w.ts);
	assert_int_equal(world_group(&w, "python", CG)->sums.allocs[M], 1);
	assert_int_equal(world_group(&w, "python", CG)->sums.ends[M], 1);
	assert_int_equal(world_group(&w, "python", CG)->sums.ctr[TTMON_CTR_CYCLES], 200);
	assert_int_equal(world_group(&w, "python", CG)->now.processes, 1);
	assert_int_equal(world_group(&w, "python", CG)->now.pinned_peak_bytes, PAGE);
}

static void runs_on_chips_are_of_who_had_them_run(void **state)
{
	const struct ttmon_work run = { .runs = 1, .busy_ns = 50, .error_ns = 2 },
				miss = { .missed = 3, .unbounded = 1 };

	(void)state;
	world_proc(&w, TO_MEM, T, 1, "a", CG, false);
	ttmon_history_work(w.h, T, w.ts + 10, &run);
	sweep();
	ttmon_history_work(w.h, T, w.ts + 20, &run);
	ttmon_history_work(w.h, T, w.ts + 20, &miss);
	world_exit(&w, TO_MEM, T, 1);
	/*
	 * A report that comes after the end of its process, and one for a process whose id another process has
	 * by now.
	 */
	ttmon_history_work(w.h, T, w.ts, &run);
	sweep();
	assert_int_equal(world_group(&w, "a", CG)->sums.work.runs, 3);
	world_proc(&w, TO_MEM, T, w.ts + 100, "b", CG, false);
	ttmon_history_work(w.h, T, w.ts + 50, &run);
	sweep();
	assert_int_equal(world_group(&w, "a", CG)->sums.work.runs, 3);
	assert_int_equal(world_group(&w, "a", CG)->sums.work.busy_ns, 150);
	assert_int_equal(world_group(&w, "a", CG)->sums.work.error_ns, 6);
	assert_int_equal(world_group(&w, "a", CG)->sums.work.missed, 3);
	assert_int_equal(world_group(&w, "a", CG)->sums.work.unbounded, 1);
	assert_int_equal(world_group(&w, "b", CG)->sums.work.runs, 0);
}

static void a_process_in_both_tables_is_one(void **state)
{
	(void)state;
	world_proc(&w, TO_MEM | TO_CPU, T, 1, "a", CG, false);
	world_proc(&w, TO_MEM, T + 1, 2, "a", CG, false);
	world_proc(&w, TO_CPU, T + 2, 3, "a", CG, false);
	/* The process that the scheduler knows under this id is a different one. */
	world_proc(&w, TO_MEM, T + 3, 4, "a", CG, false);
	world_proc(&w, TO_CPU, T + 3, 5, "a", CG, false);
	sweep();
	assert_int_equal(world_group(&w, "a", CG)->now.processes, 5);
	assert_true(world_group(&w, "a", CG)->mem && world_group(&w, "a", CG)->cpu);
	world_exit(&w, TO_CPU, T + 2, 3);
	world_exit(&w, TO_MEM, T + 1, 2);
	sweep();
	assert_int_equal(world_group(&w, "a", CG)->now.processes, 3);
}

static void what_ended_stays_for_a_while(void **state)
{
	const struct ttmon_usage_group *v;
	uint64_t end;

	(void)state;
	world_proc(&w, TO_MEM, T, 1, "a", CG, false);
	feed_alloc(w.h, T, w.ts + 10, M, A, PAGE);
	sweep();
	world_exit(&w, TO_MEM, T, 1);
	world_pass(&w, 10 * MS);
	sweep();
	end = w.ts;
	assert_int_equal(world_group(&w, "a", CG)->ended_ns, end);
	assert_int_equal(world_group(&w, "a", CG)->sums.ends[M], 1);
	assert_int_equal(world_group(&w, "a", CG)->now.live[M], 0);
	assert_int_equal(world_group(&w, "a", CG)->now.pinned_peak_bytes, PAGE);
	world_pass(&w, SEC - MS);
	sweep();
	assert_int_equal(world_group(&w, "a", CG)->ended_ns, end);
	world_pass(&w, MS);
	sweep();
	assert_int_equal(ttmon_usage_groups(w.u, &v), 0);
	assert_int_equal(ttmon_usage_gone(w.u)->allocs[M], 1);
	/* A later group of that name starts from 0. */
	world_proc(&w, TO_MEM, T + 1, 2, "a", CG, false);
	sweep();
	assert_int_equal(world_group(&w, "a", CG)->sums.allocs[M], 0);
	assert_int_equal(world_group(&w, "a", CG)->id, 2);
}

static void who_lived_between_two_sweeps_is_counted(void **state)
{
	(void)state;
	world_proc(&w, TO_CPU, T, 1, "short", CG, false);
	world_pass(&w, MS / 2);
	world_ran(&w, T, 1, 300);
	world_exit(&w, TO_CPU, T, 1);
	world_pass(&w, 3 * SEC);
	assert_int_equal(ttmon_usage_gone(w.u)->ctr[TTMON_CTR_CYCLES], 0);
	assert_int_equal(world_group(&w, "short", CG)->sums.ctr[TTMON_CTR_CYCLES], 300);
	sweep();
	assert_int_equal(world_group(&w, "short", CG)->ended_ns, w.ts);
	assert_int_equal(world_group(&w, "short", CG)->now.processes, 0);
	/* A process that ended and is still kept is not counted twice either. */
	world_proc(&w, TO_CPU, T, 2, "short", CG, false);
	world_ran(&w, T, 2, 50);
	world_exit(&w, TO_CPU, T, 2);
	world_pass(&w, MS);
	sweep();
	sweep();
	assert_int_equal(world_group(&w, "short", CG)->sums.ctr[TTMON_CTR_CYCLES], 350);
	world_pass(&w, 3 * SEC);
	world_check_sums(&w);
}

/* Otherwise no scraper would ever see it. */
static void a_late_gain_is_shown_as_long(void **state)
{
	(void)state;
	world_proc(&w, TO_MEM, T, 1, "a", CG, false);
	sweep();
	world_exit(&w, TO_MEM, T, 1);
	sweep();
	world_proc(&w, TO_CPU, T + 1, 2, "a", CG, false);
	world_pass(&w, MS);
	world_ran(&w, T + 1, 2, 300);
	world_exit(&w, TO_CPU, T + 1, 2);
	world_pass(&w, 3 * SEC);
	sweep();
	assert_int_equal(world_group(&w, "a", CG)->sums.ctr[TTMON_CTR_CYCLES], 300);
	assert_int_equal(world_group(&w, "a", CG)->ended_ns, w.ts);
	world_pass(&w, SEC);
	sweep();
	assert_null(world_group(&w, "a", CG));
}

static void a_full_table_gives_up_what_ended_first(void **state)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	const struct ttmon_usage_group *v;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		world_proc(&w, TO_MEM, T + i, 1, names[i], CG, false);
		feed_alloc(w.h, T + i, w.ts + 10, M, A, PAGE);
	}
	sweep();
	world_exit(&w, TO_MEM, T + 2, 1);
	sweep();
	world_exit(&w, TO_MEM, T, 1);
	sweep();
	world_proc(&w, TO_MEM, T + 4, 1, "e", CG, false);
	sweep();
	assert_null(world_group(&w, "c", CG));
	assert_non_null(world_group(&w, "a", CG));
	assert_int_equal(ttmon_usage_gone(w.u)->allocs[M], 1);
	world_proc(&w, TO_MEM, T + 5, 1, "f", CG, false);
	world_proc(&w, TO_MEM, T + 6, 1, "g", CG, false);
	feed_alloc(w.h, T + 6, w.ts + 10, M, A, PAGE);
	sweep();
	sweep();
	assert_int_equal(ttmon_usage_refused(w.u), 1);
	assert_int_equal(world_group(&w, "", 0)->sums.allocs[M], 1);
	assert_int_equal(world_group(&w, "", 0)->now.live[M], 1);
	assert_int_equal(ttmon_usage_groups(w.u, &v), 5);
	assert_int_equal(v[0].id, 0);
	/* As soon as there is room it gets a group of its own. */
	world_exit(&w, TO_MEM, T + 5, 1);
	sweep();
	sweep();
	feed_alloc(w.h, T + 6, w.ts + 10, M, A + PAGE, PAGE);
	sweep();
	assert_int_equal(world_group(&w, "g", CG)->sums.allocs[M], 1);
	assert_int_equal(world_group(&w, "g", CG)->now.live[M], 2);
	assert_int_equal(world_group(&w, "", 0)->now.live[M], 0);
	assert_int_equal(ttmon_usage_refused(w.u), 1);
}

static void kernel_threads_are_one_group(void **state)
{
	struct ttmon_cpu_who who = feed_who(T, 1);

	(void)state;
	who.cls = TTMON_CPU_KERNEL;
	feed_task(w.c, TTMON_TASK_SEEN, w.ts, who, "kworker/0:1");
	who.tgid++;
	feed_task(w.c, TTMON_TASK_SEEN, w.ts, who, "ksoftirqd/0");
	world_pass(&w, MS);
	/* Idle time belongs to no group, nor do readings of RMIDs without an owner. */
	world_ran(&w, 0, 0, 1000);
	ttmon_cpu_rdt(w.c, &(struct ttmon_rdt_piece){ .rmid = 3, .total = 5 });
	ttmon_cpu_rdt(w.c, &(struct ttmon_rdt_piece){
				   .tgid = T, .rmid = 4, .total = 7, .occupancy = 9, .has_occupancy = true });
	world_pass(&w, MS);
	sweep();
	assert_int_equal(world_group(&w, "[kernel]", 0)->now.processes, 2);
	assert_int_equal(world_group(&w, "[kernel]", 0)->sums.mbm_total, 7);
	assert_int_equal(world_group(&w, "[kernel]", 0)->now.llc_bytes, 9);
	assert_null(world_group(&w, "", 0));
	assert_int_equal(world_sums(&w).cpu_ns, 0);
}

/* core/cpu has no room for more than 64 processes. */
static void what_was_never_told_apart_has_no_name(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 64; i++)
		world_proc(&w, TO_CPU, T + i, 1, "a", CG, false);
	world_pass(&w, MS);
	world_ran(&w, T + 100, 1, 500);
	world_pass(&w, MS);
	sweep();
	assert_int_equal(world_group(&w, "", 0)->sums.ctr[TTMON_CTR_CYCLES], 500);
	assert_int_equal(world_group(&w, "", 0)->sums.cpu_ns, MS);
	assert_int_equal(world_group(&w, "", 0)->now.processes, 0);
}

/* First seen as a copy of unknown memory, then of pageable memory: no counter may fall for that. */
static void unsettled_copies_wait(void **state)
{
	const struct ttmon_usage_group *g;

	(void)state;
	world_proc(&w, TO_MEM, T, 1, "a", CG, false);
	feed_copy(w.h, T, w.ts, TTMON_DIR_H2D, DEV, A, 100);
	sweep();
	g = world_group(&w, "a", CG);
	assert_int_equal(g->sums.xfer[TTMON_RDIR_H2D][TTMON_MEM_UNKNOWN].copies, 0);
	assert_int_equal(g->sums.unmatched, 0);
	assert_int_equal(feed_totals(w.h).xfer[TTMON_RDIR_H2D][TTMON_MEM_UNKNOWN].copies, 1);
	assert_int_equal(feed_totals(w.h).unmatched, 1);
	feed_map(w.h, T, w.ts + 1, A, A + PAGE, NULL);
	feed_maps_done(w.h, T, w.ts + 1, w.ts + 2, 1);
	sweep();
	g = world_group(&w, "a", CG);
	assert_int_equal(g->sums.xfer[TTMON_RDIR_H2D][TTMON_MEM_UNKNOWN].copies, 0);
	assert_int_equal(g->sums.xfer[TTMON_RDIR_H2D][TTMON_MEM_PAGEABLE].copies, 1);
	assert_int_equal(g->sums.xfer[TTMON_RDIR_H2D][TTMON_MEM_PAGEABLE].bytes, 100);
	/* A copy whose kind cannot change later does not wait. */
	feed_copy(w.h, T, w.ts + 3, TTMON_DIR_H2H, A, A + 200 * PAGE, 9);
	assert_int_equal(feed_totals(w.h).unsettled[TTMON_RDIR_H2H].copies, 0);
	/* It is in no mapping of the list either: it stays unknown. */
	feed_copy(w.h, T, w.ts + 3, TTMON_DIR_D2H, A + 100 * PAGE, DEV, 7);
	feed_map(w.h, T, w.ts + 4, A, A + PAGE, NULL);
	feed_maps_done(w.h, T, w.ts + 4, w.ts + 5, 1);
	sweep();
	g = world_group(&w, "a", CG);
	assert_int_equal(g->sums.xfer[TTMON_RDIR_D2H][TTMON_MEM_UNKNOWN].copies, 1);
	assert_int_equal(g->sums.xfer[TTMON_RDIR_D2H][TTMON_MEM_UNKNOWN].bytes, 7);
	assert_int_equal(g->sums.unmatched, 2); /* this copy, and the one from host to host */
	assert_int_equal(feed_totals(w.h).unsettled[TTMON_RDIR_D2H].copies, 0);
}

/* Another name with the same hash is refused, not mixed up: the hash is not secret. */
static void names_are_compared(void **state)
{
	char a[TTMON_COMM_LEN] = { 0 }, b[TTMON_COMM_LEN] = { 0 };
	uint64_t first = 0x4141414141414141ULL, second = 0x42424242424242ULL, third, half;

	(void)state;
	/* key = mix(mix(mix(half0) + half1) + cgroup): half1 is chosen to cancel the change of half0. */
	half = ttmon_mix64(first) + second;
	for (third = first + 1; (half - ttmon_mix64(third)) >> 56; third++)
		;
	memcpy(a, &first, 8);
	memcpy(a + 8, &second, 8);
	memcpy(b, &third, 8);
	half -= ttmon_mix64(third);
	memcpy(b + 8, &half, 8);
	world_proc(&w, TO_MEM, T, 1, a, CG, false);
	world_proc(&w, TO_MEM, T + 1, 1, b, CG, false);
	feed_alloc(w.h, T, w.ts + 10, M, A, PAGE);
	feed_alloc(w.h, T + 1, w.ts + 10, M, A, PAGE);
	sweep();
	assert_int_equal(world_group(&w, a, CG)->sums.allocs[M], 1);
	assert_int_equal(world_group(&w, "", 0)->sums.allocs[M], 1);
	assert_int_equal(ttmon_usage_refused(w.u), 1);
}

/* ------------------------------------------------------------------ random lives */

#define PEOPLE 300

struct person {
	uint32_t tgid;
	uint64_t start, kernels;
	unsigned int to; /* 0: does not exist */
	unsigned int name, cgroup;
};

struct life {
	uint64_t rnd;
	unsigned int names, cgroups;
	uint32_t max_procs;
	struct person p[PEOPLE];
	struct ttmon_usage_group was[256];
	size_t nr_was;
	struct ttmon_history_totals totals;
	uint64_t born;
};

static const char *name_of(unsigned int i)
{
	static char name[16];

	snprintf(name, sizeof(name), "prog%u", i);
	return name;
}

static void do_something(struct life *l, struct person *p)
{
	uint64_t at = A + feed_below(&l->rnd, 8) * 16 * PAGE, far = A + (1000 + feed_below(&l->rnd, 20)) * PAGE;
	struct ttmon_ev_alloc bad = {
		.h = feed_head(TTMON_EV_ALLOC, p->tgid, w.ts), .err = 2, .fn = FN_HOST, .method = M
	};
	struct ttmon_tt_alloc tt = { .ts_ns = w.ts, .bytes = 64, .fn = 256, .method = TTMON_METHOD_TT_L1 };
	struct ttmon_ev_launches launches = { .h = feed_head(TTMON_EV_LAUNCHES, p->tgid, w.ts) };

	switch (feed_below(&l->rnd, 10)) {
	case 0:
		feed_alloc(w.h, p->tgid, w.ts, M, at, 1 + feed_below(&l->rnd, 3 * PAGE));
		break;
	case 1:
		feed_free(w.h, p->tgid, w.ts - 5, w.ts, M, at);
		break;
	case 2:
		bad.err = (int)feed_below(&l->rnd, 3) + 1;
		feed_alloc_full(w.h, bad, NULL);
		break;
	case 3:
		feed_copy(w.h, p->tgid, w.ts, TTMON_DIR_H2D, DEV, at, feed_below(&l->rnd, PAGE));
		break;
	case 4:
	case 5:
		feed_copy(w.h, p->tgid, w.ts, TTMON_DIR_H2D, DEV, far, 1 + feed_below(&l->rnd, 4 * PAGE));
		feed_copy(w.h, p->tgid, w.ts, TTMON_DIR_D2H, far, DEV, 1 + feed_below(&l->rnd, 4 * PAGE));
		break;
	case 6:
		feed_map(w.h, p->tgid, w.ts, A + 1000 * PAGE, A + 1010 * PAGE, NULL);
		feed_maps_done(w.h, p->tgid, w.ts, w.ts + 1, 1);
		break;
	case 7:
		feed_alloc(w.h, p->tgid, w.ts, TTMON_METHOD_REGISTERED, far, PAGE);
		break;
	case 8:
		launches.kernels = p->kernels += feed_below(&l->rnd, 5);
		launches.graphs = p->kernels / 3;
		ttmon_history_apply(w.h, &launches.h, sizeof(launches), false);
		break;
	default:
		if (feed_below(&l->rnd, 2))
			ttmon_history_tt_undo(w.h, ttmon_history_tt_alloc(w.h, p->tgid, &tt));
		else
			ttmon_history_tt_alloc(w.h, p->tgid, &tt);
		break;
	}
}

static void step(struct life *l)
{
	struct person *p = &l->p[feed_below(&l->rnd, PEOPLE)];
	uint64_t what = feed_below(&l->rnd, 100);

	world_pass(&w, feed_below(&l->rnd, MS));
	if (!p->to) {
		*p = (struct person){ .tgid = T + (uint32_t)(p - l->p),
				      .start = w.ts,
				      .to = 1 + (unsigned int)feed_below(&l->rnd, 3),
				      .name = (unsigned int)feed_below(&l->rnd, l->names),
				      .cgroup = (unsigned int)feed_below(&l->rnd, l->cgroups) };
		world_proc(&w, p->to, p->tgid, p->start, name_of(p->name), CG + p->cgroup, false);
		l->born++;
	} else if (what < 25) {
		world_exit(&w, p->to, p->tgid, p->start);
		p->to = 0;
	} else if (what < 35) {
		p->name = (unsigned int)feed_below(&l->rnd, l->names);
		world_proc(&w, p->to, p->tgid, p->start, name_of(p->name), CG + p->cgroup, true);
	} else if (p->to & TO_MEM && what < 75) {
		do_something(l, p);
	} else if (p->to & TO_CPU) {
		world_ran(&w, p->tgid, p->start, feed_below(&l->rnd, 10000));
	}
}

static void check_group(const struct ttmon_usage_group *g, const struct ttmon_usage_group *was)
{
	assert_string_equal(g->comm, was->comm);
	assert_int_equal(g->cgroup_id, was->cgroup_id);
	assert_true(g->now.pinned_peak_bytes >= was->now.pinned_peak_bytes);
	for (size_t i = 0; i < TTMON_USAGE_SUMS; i++)
		assert_true(((const uint64_t *)&g->sums)[i] >= ((const uint64_t *)&was->sums)[i]);
}

static void check_groups(struct life *l, uint32_t max_groups)
{
	const struct ttmon_usage_group *v;
	size_t n = ttmon_usage_groups(w.u, &v);
	uint64_t live = 0, pages = 0, processes = 0, people = 0;

	assert_true(n <= max_groups + 1);
	for (size_t i = 0, k = 0; i < n; i++) {
		assert_true(i == 0 || v[i].id > v[i - 1].id);
		for (size_t j = 0; j < i; j++)
			assert_false(!strcmp(v[i].comm, v[j].comm) && v[i].cgroup_id == v[j].cgroup_id);
		while (k < l->nr_was && l->was[k].id < v[i].id)
			k++;
		if (k < l->nr_was && l->was[k].id == v[i].id)
			check_group(&v[i], &l->was[k]);
		live += v[i].now.live[M];
		pages += v[i].now.pinned_pages;
		processes += v[i].now.processes;
		/* If there was room for all groups, a group lives as long as its processes. */
		assert_true(!v[i].ended_ns || !v[i].now.processes);
		if (!l->max_procs && !ttmon_usage_refused(w.u))
			assert_int_equal(!v[i].ended_ns, !!v[i].now.processes);
	}
	for (size_t i = 0; i < PEOPLE; i++)
		people += l->p[i].to != 0;
	assert_int_equal(live, feed_totals(w.h).method[M].live);
	assert_int_equal(pages, feed_totals(w.h).pinned_pages);
	/* Processes that core/cpu has no room for belong to no group. */
	assert_true(l->max_procs ? processes <= people : processes == people);
	assert_true(n <= ARRAY_SIZE(l->was));
	memcpy(l->was, v, n * sizeof(*v));
	l->nr_was = n;
}

/* The invariants that the head comment of struct ttmon_history_totals states for the whole host. */
static void check_totals(struct life *l)
{
	struct ttmon_history_totals t = feed_totals(w.h), *was = &l->totals;
	const struct ttmon_failure *f;
	size_t n = ttmon_history_failures(w.h, &f);
	uint64_t failed = 0;

	for (size_t i = 0; i < n; i++)
		failed += f[i].count;
	assert_int_equal(failed, t.failed);
	for (unsigned int m = 0; m < TTMON_METHOD_MAX; m++) {
		assert_true(t.method[m].allocs >= was->method[m].allocs && t.method[m].bytes >= was->method[m].bytes);
		assert_true(t.method[m].ends >= was->method[m].ends && t.method[m].pages >= was->method[m].pages);
		assert_int_equal(t.method[m].allocs - t.method[m].ends, t.method[m].live);
		assert_true(t.method[m].peak_bytes >= t.method[m].live_bytes);
	}
	for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++)
		for (unsigned int m = 0; m < TTMON_MEM_MAX; m++) {
			struct ttmon_xfer now = ttmon_xfer_settled(t.xfer, t.unsettled, t.proven, d, m);
			struct ttmon_xfer then = ttmon_xfer_settled(was->xfer, was->unsettled, was->proven, d, m);

			assert_true(now.copies >= then.copies && now.bytes >= then.bytes);
		}
	for (unsigned int i = 0; i < TTMON_FINDING_MAX; i++)
		assert_true(t.findings[i] >= was->findings[i]);
	assert_true(t.failed >= was->failed && t.unknown_frees >= was->unknown_frees && t.kernels >= was->kernels);
	assert_true(ttmon_unmatched_settled(t.unmatched, t.unsettled) >=
		    ttmon_unmatched_settled(was->unmatched, was->unsettled));
	assert_true(t.pins >= was->pins && t.frees >= was->frees);
	*was = t;
}

static void live(struct life *l, uint32_t max_groups, unsigned int steps)
{
	world_init(&w, max_groups, 50 * MS, l->max_procs);
	for (unsigned int i = 0; i < steps; i++) {
		step(l);
		if (feed_below(&l->rnd, 40))
			continue;
		sweep();
		check_groups(l, max_groups);
		check_totals(l);
	}
	for (size_t i = 0; i < PEOPLE; i++)
		if (l->p[i].to)
			world_exit(&w, l->p[i].to, l->p[i].tgid, l->p[i].start);
	world_pass(&w, 4 * SEC);
	sweep();
	world_pass(&w, 4 * SEC);
	sweep();
	/* All sums are in `gone`, to the last count, and nothing waits. */
	for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++)
		assert_true(!feed_totals(w.h).unsettled[d].copies && !feed_totals(w.h).unsettled[d].bytes);
	assert_true(ttmon_usage_groups(w.u, &(const struct ttmon_usage_group *){ NULL }) <= 1);
	assert_int_equal(ttmon_usage_gone(w.u)->allocs[M] + l->was[0].sums.allocs[M] * !l->was[0].id,
			 feed_totals(w.h).method[M].allocs);
	world_fini(&w);
}

/* Room for all groups, for few, for one. */
static void random_lives(void **state)
{
	static struct life l;
	static const struct {
		uint32_t max_groups, max_procs;
		unsigned int names, cgroups, steps;
	} cases[] = {
		{ 200, 0, 10, 3, 50000 }, { 12, 128, 40, 3, 20000 }, { 1, 0, 3, 1, 5000 }, { 100, 0, 4000, 1, 20000 }
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		l = (struct life){ .rnd = 0x5eed + i,
				   .names = cases[i].names,
				   .cgroups = cases[i].cgroups,
				   .max_procs = cases[i].max_procs };
		live(&l, cases[i].max_groups, cases[i].steps);
	}
	assert_true(l.born > 1000);
}

/*
 * The pipeline notifies its usage of processes that are removed: 9000 processes, of which the history
 * keeps 4096 entries and those of the last two seconds.
 */
static void the_pipeline_tells_who_leaves(void **state)
{
	struct ttmon_pipeline_cfg cfg = { .nr_cpus = 1, .history = { .fold_ns = SEC }, .usage = { .linger_ns = SEC } };
	struct ttmon_pipeline *p = NULL;
	struct ttmon_usage *u;
	uint64_t ts = SEC, allocs;
	const struct ttmon_usage_group *v;
	size_t n;

	(void)state;
	assert_int_equal(ttmon_pipeline_new(&cfg, NULL, NULL, &p), 0);
	u = ttmon_pipeline_usage(p);
	for (uint32_t i = 0; i < 9000; i++, ts += MS) {
		struct ttmon_ev_proc proc = { .h = feed_head(TTMON_EV_PROC, T + i, ts), .start_ns = ts, .comm = "x" };
		struct ttmon_ev_alloc alloc = { .h = feed_head(TTMON_EV_ALLOC, T + i, ts + 10),
						.entry_ns = ts,
						.addr = A,
						.size = PAGE,
						.fn = FN_HOST,
						.method = M };
		struct ttmon_ev_exit gone = { .h = feed_head(TTMON_EV_EXIT, T + i, ts + 20), .start_ns = ts };
		struct ttmon_ev_task task = { .h = feed_head(TTMON_EV_TASK, T + i, ts + 20),
					      .start_ns = ts,
					      .reason = TTMON_TASK_EXIT,
					      .comm = "x" };
		struct {
			struct ttmon_event h;
			struct ttmon_cpu_table t;
		} ran = { .h = feed_head(TTMON_EV_CPU_SLOT, 0, ts + 20),
			  .t = cross(i ? ts - MS + 20 : ts, ts + 20, feed_who(T + i, ts)).t };

		proc.reason = TTMON_PROC_FORK;
		ttmon_pipeline_feed(p, &proc, sizeof(proc));
		ttmon_pipeline_feed(p, &alloc, sizeof(alloc));
		ttmon_pipeline_feed(p, &gone, sizeof(gone));
		ttmon_pipeline_feed(p, &task, sizeof(task));
		ttmon_pipeline_feed(p, &ran, sizeof(ran));
		ttmon_pipeline_advance(p, ts);
	}
	ttmon_pipeline_advance(p, ts + 10 * MS);
	assert_true(ttmon_history_procs(ttmon_pipeline_history(p)) < 7000);
	ttmon_usage_sweep(u, ttmon_pipeline_history(p), ttmon_pipeline_cpu(p), ts);
	n = ttmon_usage_groups(u, &v);
	assert_int_equal(n, 1);
	allocs = v[0].sums.allocs[M];
	assert_int_equal(allocs, 9000);
	assert_int_equal(v[0].sums.cpu_ns, 8999 * MS + 20);
	ttmon_pipeline_free(p);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_group_is_a_name_in_a_cgroup),
		TEST(a_new_name_gains_from_then_on),
		TEST(runs_on_chips_are_of_who_had_them_run),
		TEST(a_process_in_both_tables_is_one),
		TEST(what_ended_stays_for_a_while),
		TEST(who_lived_between_two_sweeps_is_counted),
		TEST(a_late_gain_is_shown_as_long),
		TEST(a_full_table_gives_up_what_ended_first),
		TEST(kernel_threads_are_one_group),
		TEST(what_was_never_told_apart_has_no_name),
		TEST(unsettled_copies_wait),
		TEST(names_are_compared),
		cmocka_unit_test(random_lives),
		cmocka_unit_test(the_pipeline_tells_who_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
