// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_usage.c: what a sweep of core/usage costs with 10,000 processes, all known to the history and
 * to core/cpu, in 200 groups, against a look at each of them. One line per figure.
 *
 *	idle      no process did anything since the last one
 *	some      one in a hundred did
 *	all       each has allocated, copied, and run
 *	churn     each has ended, and 10,000 others live
 */
#include <time.h>

#include "daemon/core/usage/usage.h"
#include "tests/unit/feed/apply.h"

#define PROCS  10000u
#define GROUPS 200u
#define ROUNDS 21

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

struct bench {
	struct ttmon_history *h;
	struct ttmon_cpu *c;
	struct ttmon_usage *u;
	uint64_t ts, slot;
};

static struct ttmon_event head(const struct bench *b, unsigned int kind, uint32_t tgid)
{
	return (struct ttmon_event){ .ts_ns = b->ts, .kind = (uint16_t)kind, .tgid = tgid, .tid = tgid };
}

static void leaving(void *ctx, const struct ttmon_proc *p)
{
	ttmon_usage_leaving(((struct bench *)ctx)->u, p);
}

static void cpu_leaving(void *ctx, const struct ttmon_cpu_proc *p)
{
	ttmon_usage_cpu_leaving(((struct bench *)ctx)->u, p);
}

static void begin(struct bench *b, uint32_t tgid)
{
	struct ttmon_ev_proc proc = { .h = head(b, TTMON_EV_PROC, tgid), .start_ns = tgid, .cgroup_id = 1 };
	struct ttmon_ev_task task = { .h = head(b, TTMON_EV_TASK, tgid), .start_ns = tgid, .cgroup_id = 1 };

	snprintf(proc.comm, sizeof(proc.comm), "prog%u", tgid % GROUPS);
	memcpy(task.comm, proc.comm, sizeof(task.comm));
	ttmon_history_apply(b->h, &proc.h, sizeof(proc), false);
	ttmon_cpu_apply(b->c, &task.h, sizeof(task));
}

static void end(struct bench *b, uint32_t tgid)
{
	struct ttmon_ev_exit mem = { .h = head(b, TTMON_EV_EXIT, tgid), .start_ns = tgid };
	struct ttmon_ev_task task = { .h = head(b, TTMON_EV_TASK, tgid), .start_ns = tgid, .reason = TTMON_TASK_EXIT };

	ttmon_history_apply(b->h, &mem.h, sizeof(mem), false);
	ttmon_cpu_apply(b->c, &task.h, sizeof(task));
}

static void work(struct bench *b, uint32_t tgid)
{
	struct ttmon_ev_alloc alloc = { .h = head(b, TTMON_EV_ALLOC, tgid),
					.entry_ns = b->ts,
					.addr = 0x7f0000000000,
					.size = 8192,
					.fn = 1,
					.method = TTMON_METHOD_HOST_ALLOC };
	struct ttmon_ev_copy copy = { .h = head(b, TTMON_EV_COPY, tgid),
				      .entry_ns = b->ts,
				      .dst = 0x200000000,
				      .src = 0x7f0000000000,
				      .bytes = 4096,
				      .fn = 16,
				      .dir = TTMON_DIR_H2D };

	ttmon_history_apply(b->h, &alloc.h, sizeof(alloc), false);
	ttmon_history_apply(b->h, &copy.h, sizeof(copy), false);
	ttmon_cpu_copy(b->c, tgid, 4096);
	ttmon_cpu_rdt(b->c, &(struct ttmon_rdt_piece){ .tgid = tgid, .rmid = 1, .ns = 1, .total = 64 });
}

static void close_slot(struct bench *b)
{
	const struct ttmon_slot_row *rows;
	struct ttmon_slot slot = { 0 };

	b->ts += NSEC_PER_MS;
	ttmon_history_tick(b->h, b->ts);
	ttmon_cpu_close(b->c, b->slot++, true, &slot, &rows);
}

static double sweep(struct bench *b)
{
	uint64_t t = now_ns();

	ttmon_usage_sweep(b->u, b->h, b->c, b->ts);
	return (double)(now_ns() - t) / 1000;
}

static void look_at(void *ctx, const struct ttmon_cpu_proc *p)
{
	*(uint64_t *)ctx += p->cpu_ns;
}

/* Reads one figure of each process in both tables. */
static double look(struct bench *b)
{
	static volatile uint64_t sink;
	uint64_t t = now_ns(), sum = 0;

	ttmon_cpu_each(b->c, look_at, &sum);
	for (size_t i = 0; i < ttmon_history_procs(b->h); i++)
		sum += ttmon_history_proc(b->h, i)->exit_ns;
	sink = sum;
	(void)sink;
	return (double)(now_ns() - t) / 1000;
}

static void run(struct bench *b, const char *name, unsigned int each, unsigned int rounds)
{
	static uint32_t first = 1;
	double v[ROUNDS], floor[ROUNDS];

	for (unsigned int r = 0; r < rounds; r++) {
		for (uint32_t i = 0; each && i < PROCS; i += each)
			work(b, first + i);
		if (!strcmp(name, "churn")) {
			for (uint32_t i = 0; i < PROCS; i++)
				end(b, first + i);
			/* Processes that ended are forgotten after two seconds. */
			for (unsigned int i = 0; i < 2100; i++)
				close_slot(b);
			first += PROCS;
			for (uint32_t i = 0; i < PROCS; i++)
				begin(b, first + i);
		}
		close_slot(b);
		v[r] = sweep(b);
		floor[r] = look(b);
	}
	qsort(v, rounds, sizeof(*v), by_value);
	qsort(floor, rounds, sizeof(*floor), by_value);
	printf("usage_sweep_%s: %.0f us, worst %.0f, floor %.0f us (a look at each), RATIO %.2f\n", name, v[rounds / 2],
	       v[rounds - 1], floor[rounds / 2], v[rounds / 2] / floor[rounds / 2]);
}

int main(void)
{
	struct bench b = { .ts = NSEC_PER_SEC, .slot = 1000 };
	struct ttmon_history_cfg mem = { .leaving = leaving, .ctx = &b };
	struct ttmon_cpu_cfg cpu = { .nr_cpus = 1, .leaving = cpu_leaving, .ctx = &b };
	struct ttmon_usage_cfg usage = { 0 };

	if (ttmon_usage_new(&usage, &b.u) < 0 || ttmon_history_new(&mem, &b.h) < 0 || ttmon_cpu_new(&cpu, &b.c) < 0)
		return 1;
	for (uint32_t i = 0; i < PROCS; i++)
		begin(&b, 1 + i);
	close_slot(&b);
	printf("usage_sweep_first: %.0f us\n", sweep(&b));
	run(&b, "idle", 0, ROUNDS);
	run(&b, "some", 100, ROUNDS);
	run(&b, "all", 1, ROUNDS);
	run(&b, "churn", 1, 3);
	ttmon_history_free(b.h);
	ttmon_cpu_free(b.c);
	ttmon_usage_free(b.u);
	return 0;
}
