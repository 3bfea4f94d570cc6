// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_loss.c: whether every event arrives. One thread on each CPU makes traced copies; the daemon's
 * own hot thread empties the rings into the pipeline on the same CPUs, as it does in ttmond.
 *
 * Steady: RATE events per second together, in a burst each millisecond; none may be lost. Flood: as
 * many as the CPUs can make, into small rings, until some are lost: then made = attempted = decoded +
 * lost must hold exactly.
 *
 *	bench_loss [SECONDS [RATE]]
 */
#include <dirent.h>
#include <pthread.h>

#include "daemon/run/hot.h"
#include "kern.h"

#define THREADS_MAX 64
#define FLOOD_NS    (5 * NSEC_PER_SEC) /* longest time, if nothing is lost */
#define FLOOD_RING  (64 << 10)
#define BURST	    100 /* calls between two reads of the clock */

struct maker {
	pthread_t thread;
	const struct nothing *lib;
	int cpu;
	uint64_t rate;	       /* calls per second; 0: as many as possible */
	uint64_t calls, burst; /* calls made; most at once, after the thread had to wait for its CPU */
	const bool *stop;      /* atomic */
};

struct capture {
	struct nothing lib;
	struct ttmon_bpf *bpf;
	struct ttmon_pipeline *pipeline;
	struct ttmon_probes probes;
	struct ttmon_hot *hot;
};

struct result {
	uint64_t calls, took_ns, cpu_ns, burst;
	struct ttmon_snapshot last;
	struct ttmon_accounting acc;
	struct ttmon_kernel_counts kernel;
};

static void *make(void *arg)
{
	struct maker *m = arg;
	uint64_t start;

	pin(m->cpu);
	start = now_ns();
	while (!__atomic_load_n(m->stop, __ATOMIC_RELAXED)) {
		uint64_t due = BURST;

		if (m->rate)
			due = (now_ns() - start) * m->rate / NSEC_PER_SEC - m->calls;
		m->lib->async((unsigned int)due);
		m->calls += due;
		m->burst = MAX(m->burst, due);
		if (m->rate)
			sleep_ns(NSEC_PER_MS);
	}
	return NULL;
}

/* CPU time of the thread of this process with this name. */
static uint64_t thread_cpu_ns(const char *name)
{
	DIR *d = opendir("/proc/self/task");
	unsigned long long ns = 0;
	struct dirent *de;

	while (d && (de = readdir(d))) {
		char path[300], comm[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", de->d_name);
		f = fopen(path, "re");
		if (f) {
			if (fscanf(f, "%31s", comm) != 1)
				comm[0] = '\0';
			fclose(f);
		}
		if (strcmp(comm, name))
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", de->d_name);
		f = fopen(path, "re");
		if (f) {
			if (fscanf(f, "%llu", &ns) != 1)
				ns = 0;
			fclose(f);
		}
	}
	if (d)
		closedir(d);
	return ns;
}

static int capture_start(struct capture *c, uint64_t ring_bytes)
{
	const struct ttmon_bpf_cfg cfg = { .stack_frames = 16, .ring_bytes = ring_bytes };
	struct ttmon_pipeline_cfg pcfg = { 0 };
	struct ttmon_hot_cfg hot = { 0 };
	char why[256] = "";
	int err = nothing_copy(&c->lib);

	if (!err)
		err = ttmon_bpf_new(&cfg, &c->bpf, why, sizeof(why));
	if (!err)
		err = ttmon_bpf_add_pid(c->bpf, (uint32_t)getpid(), false);
	if (!err) {
		pcfg.nr_cpus = ttmon_bpf_cpus(c->bpf);
		err = ttmon_pipeline_new(&pcfg, NULL, NULL, &c->pipeline);
	}
	if (!err)
		err = attach_object(c->bpf, c->lib.fd, "libnothing.so", &c->probes);
	if (!err) {
		hot.bpf = c->bpf;
		hot.pipeline = c->pipeline;
		err = ttmon_hot_start(&hot, &c->hot);
	}
	if (err) {
		fprintf(stderr, "bench_loss: cannot start: %s %s\n", strerror(-err), why);
		return err;
	}
	ttmon_bpf_activate(c->bpf, true);
	/* What the copies come from. */
	c->lib.alloc(1, 2);
	return 0;
}

/*
 * Lets the threads run until the time is over or, in a flood, until something is lost. Requests of the
 * history are not answered.
 */
static void watch(struct capture *c, uint64_t until_ns, bool flood)
{
	while (now_ns() < until_ns) {
		struct ttmon_request *req;

		sleep_ns(50 * NSEC_PER_MS);
		ttmon_hot_requests(c->hot, &req);
		free(req);
		for (uint32_t cpu = 0; flood && cpu < ttmon_bpf_cpus(c->bpf); cpu++)
			if (ttmon_bpf_stat(c->bpf, cpu)->running_lost)
				return;
	}
}

/* Checks that every call is accounted for. */
static int check(const struct capture *c, const struct result *r)
{
	uint64_t attempted = r->kernel.attempted[TTMON_EV_COPY], lost = r->kernel.lost[TTMON_EV_COPY];
	uint64_t decoded = r->acc.decoded[TTMON_EV_COPY];
	char why[256];

	if (!ttmon_pipeline_check(c->pipeline, why, sizeof(why))) {
		fprintf(stderr, "bench_loss: the accounting is wrong: %s\n", why);
		return -EIO;
	}
	if (attempted == r->calls && decoded + lost == r->calls)
		return 0;
	fprintf(stderr, "bench_loss: %llu calls, %llu attempted, %llu decoded, %llu lost\n",
		(unsigned long long)r->calls, (unsigned long long)attempted, (unsigned long long)decoded,
		(unsigned long long)lost);
	return -EIO;
}

static int run(uint64_t rate, uint64_t for_ns, uint64_t ring_bytes, struct result *ret)
{
	long nr = MIN(sysconf(_SC_NPROCESSORS_ONLN), THREADS_MAX);
	struct maker makers[THREADS_MAX] = { 0 };
	struct capture c = { 0 };
	struct result r = { 0 };
	bool stop = false;
	uint64_t start, end, cpu;
	int err = capture_start(&c, ring_bytes);

	if (err)
		return err;
	start = now_ns();
	cpu = thread_cpu_ns("ttmond-hot");
	for (long i = 0; i < nr; i++) {
		makers[i] = (struct maker){ .lib = &c.lib, .cpu = (int)i, .rate = rate / (uint64_t)nr, .stop = &stop };
		if (pthread_create(&makers[i].thread, NULL, make, &makers[i])) {
			fprintf(stderr, "bench_loss: cannot make threads\n");
			exit(1);
		}
	}
	watch(&c, start + for_ns, !rate);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (long i = 0; i < nr; i++) {
		pthread_join(makers[i].thread, NULL);
		r.calls += makers[i].calls;
		r.burst = MAX(r.burst, makers[i].burst);
	}
	r.took_ns = now_ns() - start;
	/* The figures that the thread publishes are at most this old. */
	sleep_ns(150 * NSEC_PER_MS);
	r.cpu_ns = thread_cpu_ns("ttmond-hot") - cpu;
	ttmon_hot_snapshot(c.hot, &r.last);
	ttmon_bpf_activate(c.bpf, false);
	ttmon_hot_stop(c.hot, &end);
	ttmon_pipeline_finish(c.pipeline, end);
	ttmon_pipeline_accounting(c.pipeline, &r.acc);
	ttmon_pipeline_kernel_counts(c.pipeline, &r.kernel);
	err = check(&c, &r);
	ttmon_probes_detach(&c.probes);
	ttmon_bpf_free(c.bpf);
	ttmon_pipeline_free(c.pipeline);
	nothing_close(&c.lib);
	*ret = r;
	return err;
}

static void report(const char *name, const struct result *r, const char *verdict)
{
	uint64_t decoded = r->acc.decoded[TTMON_EV_COPY];

	printf("%s: %llu calls, %.0f/s: %llu decoded, %llu lost, %s; %llu late, arena full for %llu\n", name,
	       (unsigned long long)r->calls, (double)r->calls * 1e9 / (double)r->took_ns, (unsigned long long)decoded,
	       (unsigned long long)r->kernel.lost[TTMON_EV_COPY], verdict, (unsigned long long)r->acc.late,
	       (unsigned long long)r->acc.arena_full);
	printf("  reader: ratio %.3f of one CPU, %.0f ns an event; longest gap between drains %.1f ms, held back %llu "
	       "times; "
	       "at most %llu calls at once\n",
	       (double)r->cpu_ns / (double)r->took_ns, (double)r->cpu_ns / (double)decoded,
	       (double)r->last.longest_gap_ns / 1e6, (unsigned long long)r->last.stalls, (unsigned long long)r->burst);
}

int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
	uint64_t rate = argc > 2 ? strtoull(argv[2], NULL, 10) : 500000;
	struct result r;

	if (skipped("bench_loss"))
		return 0;
	if (!seconds || !rate) {
		fprintf(stderr, "usage: bench_loss [SECONDS [RATE]]\n");
		return 2;
	}
	if (run(rate, seconds * NSEC_PER_SEC, 4 << 20, &r))
		return 1;
	report("steady", &r, r.kernel.lost[TTMON_EV_COPY] ? "goal none, MISSED" : "goal none");
	if (run(0, FLOOD_NS, FLOOD_RING, &r))
		return 1;
	report("flood", &r, "all accounted for");
	return 0;
}
