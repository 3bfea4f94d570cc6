// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_cpus.c: what each doubling of the CPUs costs the core of the daemon: memory, a slot in which
 * nothing happens, and an event. One line for 1, 2, 4 ... 128 CPUs.
 *
 * The clock is virtual, and every CPU brings the same stream: a process of its own with one
 * allocation and 8 copies a slot. Rings and programs in the kernel are not part of it. The floor is an
 * event on one CPU, so that the ratio is what the other CPUs add to it. CPU time of this process.
 */
#include <malloc.h>
#include <time.h>

#include "daemon/core/stream/pipeline.h"

#define CPUS_MAX 128u
#define SLOTS	 2000u
#define COPIES	 8u
#define ROUNDS	 3u
#define T0	 1000000000000ULL

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static double in_use_mib(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)(m.uordblks + m.hblkhd) / (1 << 20);
}

static struct ttmon_event head(unsigned int kind, uint64_t ts_ns, unsigned int cpu)
{
	return (struct ttmon_event){
		.ts_ns = ts_ns, .kind = (uint16_t)kind, .cpu = (uint16_t)cpu, .tgid = 1000 + cpu, .tid = 1000 + cpu
	};
}

static void feed_alloc(struct ttmon_pipeline *p, uint64_t ts_ns, unsigned int cpu)
{
	struct ttmon_ev_alloc ev = { .h = head(TTMON_EV_ALLOC, ts_ns, cpu),
				     .entry_ns = ts_ns,
				     .addr = (cpu + 1ULL) << 32,
				     .size = 65536,
				     .fn = 1,
				     .method = TTMON_METHOD_HOST_ALLOC };

	ttmon_pipeline_feed(p, &ev, sizeof(ev));
}

static void feed_copies(struct ttmon_pipeline *p, uint64_t slot_ns, unsigned int cpu)
{
	for (unsigned int i = 0; i < COPIES; i++) {
		struct ttmon_ev_copy ev = { .h = head(TTMON_EV_COPY, slot_ns + 1000 + i * 100000 + cpu, cpu),
					    .dst = 0x7f0000000000,
					    .src = ((cpu + 1ULL) << 32) + i * 4096,
					    .bytes = 4096,
					    .fn = 17,
					    .dir = TTMON_DIR_H2D };

		ttmon_pipeline_feed(p, &ev, sizeof(ev));
	}
}

struct cost {
	double mib, idle_ns, event_ns;
};

static struct cost run(unsigned int cpus)
{
	struct ttmon_pipeline_cfg cfg = { .nr_cpus = cpus };
	struct ttmon_pipeline *p = NULL;
	uint64_t at_ns = T0, t0, t1;
	struct cost c;

	c.mib = in_use_mib();
	if (ttmon_pipeline_new(&cfg, NULL, NULL, &p)) {
		fprintf(stderr, "bench_cpus: out of memory\n");
		exit(1);
	}
	ttmon_pipeline_advance(p, at_ns);
	for (unsigned int cpu = 0; cpu < cpus; cpu++)
		feed_alloc(p, at_ns + cpu, cpu);
	t0 = now_ns();
	for (unsigned int s = 0; s < SLOTS; s++)
		ttmon_pipeline_advance(p, at_ns += TTMON_SLOT_NS);
	t1 = now_ns();
	c.idle_ns = (double)(t1 - t0) / SLOTS;
	for (unsigned int s = 0; s < SLOTS; s++) {
		for (unsigned int cpu = 0; cpu < cpus; cpu++)
			feed_copies(p, at_ns, cpu);
		ttmon_pipeline_advance(p, at_ns += TTMON_SLOT_NS);
	}
	c.event_ns = (double)(now_ns() - t1) / ((double)SLOTS * cpus * COPIES);
	c.mib = in_use_mib() - c.mib;
	ttmon_pipeline_free(p);
	return c;
}

int main(void)
{
	struct cost best[8] = { 0 };

	for (unsigned int r = 0; r < ROUNDS; r++)
		for (unsigned int i = 0, cpus = 1; cpus <= CPUS_MAX; cpus *= 2, i++) {
			struct cost c = run(cpus);

			if (!r)
				best[i] = c;
			best[i].idle_ns = MIN(best[i].idle_ns, c.idle_ns);
			best[i].event_ns = MIN(best[i].event_ns, c.event_ns);
		}
	for (unsigned int i = 0, cpus = 1; cpus <= CPUS_MAX; cpus *= 2, i++)
		printf("cpus %u: %.1f MiB, slot without events %.0f ns, event %.0f ns, RATIO %.2f (one CPU: %.0f ns)\n",
		       cpus, best[i].mib, best[i].idle_ns, best[i].event_ns, best[i].event_ns / best[0].event_ns,
		       best[0].event_ns);
	return 0;
}
