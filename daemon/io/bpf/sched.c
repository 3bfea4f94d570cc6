// SPDX-License-Identifier: GPL-2.0-only
/*
 * sched.c: the user-space side of the scheduler's programs: counters for each CPU, timers, the mapped
 * state, and a first switch on each CPU. Cold thread.
 *
 * Counters are a group of four perf events a CPU, so that they run together. The map they are put into
 * keeps them; their descriptors are closed at once. A virtual machine's counters may be emulated, each
 * reading an exit to the hypervisor (68 us a switch on an AMD EPYC guest, 130 times the program
 * itself): so one reading is timed first, and where it is slow no counters are used.
 * TTMOND_COUNTERS=hardware uses them anyway, =off never; =software replaces them by software events,
 * for tests.
 *
 * A CPU without a context switch sends no record: a short-lived thread moves to each CPU not seen yet.
 * It may wait there for ever, behind a real-time task that never yields, so it is waited for no longer
 * than VISIT_NS.
 */
#include <bpf/bpf.h>
#include <linux/btf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "daemon/io/bpf/bpf_int.h"
#include "lib/os/clock.h"
#include "lib/os/log.h"

#define ONLINE	 "/sys/devices/system/cpu/online"
#define VISIT_NS (200 * NSEC_PER_MS)
#define WORDS	 64		    /* of 64 CPUs */
#define DEAR_NS	 (10 * NSEC_PER_US) /* for reading a group by system call: 1 us where reading does not trap */

struct counter {
	uint32_t type;
	uint64_t config;
	const char *name;
};

static const struct counter hardware[TTMON_CTR_MAX] = {
	[TTMON_CTR_CYCLES] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles" },
	[TTMON_CTR_INSTRUCTIONS] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions" },
	[TTMON_CTR_LLC_MISSES] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "cache misses" },
	[TTMON_CTR_LLC_REFS] = { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, "cache references" },
};
static const struct counter software[TTMON_CTR_MAX] = {
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock" },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, "task-clock" },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "page-faults" },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, "context-switches" },
};

struct bits {
	uint64_t w[WORDS];
};

struct ttmon_sched {
	uint32_t cpus;
	const struct counter *counters; /* NULL: none */
	char why[128];			/* why there are none */
	bool timer;
	int counters_fd; /* borrowed */
	struct ttmon_cpu_state *states;
	size_t states_bytes;
	struct bits online, opened; /* as found last; CPUs with counters */
	bool visiting;
	pthread_t visitor;
	struct bits visit;
};

static bool is_set(const struct bits *b, uint32_t cpu)
{
	return cpu < WORDS * 64 && b->w[cpu / 64] >> cpu % 64 & 1;
}

static void put_bit(struct bits *b, uint32_t cpu, bool on)
{
	uint64_t bit = 1ULL << cpu % 64;

	if (cpu >= WORDS * 64)
		return;
	b->w[cpu / 64] = on ? b->w[cpu / 64] | bit : b->w[cpu / 64] & ~bit;
}

/* "0-3,8". If it cannot be read, all CPUs are taken to be online. */
static void read_online(uint32_t cpus, struct bits *ret)
{
	_cleanup_fclose_ FILE *f = fopen(ONLINE, "re");
	struct bits b = { 0 };
	unsigned int from, to;
	bool any = false;

	while (f && fscanf(f, "%u", &from) == 1) {
		to = from;
		if (fscanf(f, "-%u", &to) == EOF)
			to = from;
		for (uint32_t cpu = from; cpu <= to && cpu < cpus; cpu++) {
			put_bit(&b, cpu, true);
			any = true;
		}
		if (fgetc(f) != ',')
			break;
	}
	if (!any)
		for (uint32_t cpu = 0; cpu < cpus; cpu++)
			put_bit(&b, cpu, true);
	*ret = b;
}

/* ---- counters ---- */

/* For a CPU, or for the calling thread (cpu -1). */
static int open_one(const struct counter *c, int cpu, int leader)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = c->type,
		.config = c->config,
		.read_format = PERF_FORMAT_GROUP,
		.disabled = leader < 0,
	};
	long fd = syscall(SYS_perf_event_open, &attr, cpu < 0 ? 0 : -1, cpu, leader, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/*
 * The group is enabled at the end, as a whole: an event that joins a running group may never start
 * (Linux 6.18, cpu-clock's group). *bad: the event that failed.
 */
static int open_fds(const struct counter *c, int cpu, int *fds, unsigned int *bad)
{
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++) {
		*bad = i;
		fds[i] = open_one(&c[i], cpu, i ? fds[0] : -1);
		if (fds[i] < 0)
			return fds[i];
	}
	return ioctl(fds[0], PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

static void close_fds(const int *fds)
{
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Puts the group of a CPU into the map, which keeps it open. */
static int open_group(const struct counter *c, uint32_t cpu, int map)
{
	int fds[TTMON_CTR_MAX] = { -1, -1, -1, -1 };
	unsigned int bad;
	int err = open_fds(c, (int)cpu, fds, &bad);

	for (unsigned int i = 0; i < TTMON_CTR_MAX && !err; i++) {
		uint32_t key = cpu * TTMON_CTR_MAX + i;

		if (bpf_map_update_elem(map, &key, &fds[i], BPF_ANY))
			err = -errno;
	}
	close_fds(fds);
	return err;
}

/* Opens a group for our own thread, to measure the cost of a reading: the least of several. */
static int try_group(const struct counter *c, uint64_t *ns, unsigned int *bad)
{
	int fds[TTMON_CTR_MAX] = { -1, -1, -1, -1 };
	int err = open_fds(c, -1, fds, bad);
	uint64_t v[1 + TTMON_CTR_MAX];

	*ns = UINT64_MAX;
	for (int i = 0; i < 16 && !err; i++) {
		uint64_t begin = ttmon_mono_ns();

		if (read(fds[0], v, sizeof(v)) != (ssize_t)sizeof(v))
			err = -EIO;
		*ns = MIN(*ns, ttmon_mono_ns() - begin);
	}
	close_fds(fds);
	return err;
}

static void close_group(struct ttmon_sched *s, uint32_t cpu)
{
	for (uint32_t key = cpu * TTMON_CTR_MAX; key < (cpu + 1) * TTMON_CTR_MAX; key++)
		bpf_map_delete_elem(s->counters_fd, &key);
	put_bit(&s->opened, cpu, false);
}

static void choose_counters(struct ttmon_sched *s)
{
	const char *env = getenv("TTMOND_COUNTERS") ?: "";
	const struct counter *c = !strcmp(env, "software") ? software : hardware;
	unsigned int bad = 0;
	uint64_t ns = 0;
	int err;

	if (!strcmp(env, "off")) {
		snprintf(s->why, sizeof(s->why), "switched off (TTMOND_COUNTERS=off)");
		return;
	}
	err = try_group(c, &ns, &bad);
	if (!err && (ns < DEAR_NS || env[0]))
		s->counters = c;
	else if (!err)
		snprintf(s->why, sizeof(s->why),
			 "reading hardware counters takes %llu us here (a virtual machine that emulates them)",
			 (unsigned long long)(ns / NSEC_PER_US));
	else if ((err == -ENOENT || err == -EOPNOTSUPP || err == -ENODEV) && !bad)
		snprintf(s->why, sizeof(s->why), "no hardware counters here (a virtual machine without a PMU)");
	else if (err == -EACCES || err == -EPERM)
		snprintf(s->why, sizeof(s->why), "hardware counters may not be opened (CAP_PERFMON is missing)");
	else
		snprintf(s->why, sizeof(s->why), "no hardware counter of %s: %s", c[bad].name, strerror(-err));
}

/*
 * Opens counters on online CPUs that have none. A failure is tried again: until then the rows of that
 * CPU say that counters are unknown.
 */
static void open_counters(struct ttmon_sched *s)
{
	if (!s->counters || s->counters_fd < 0)
		return;
	for (uint32_t cpu = 0; cpu < s->cpus; cpu++) {
		if (is_set(&s->opened, cpu) || !is_set(&s->online, cpu))
			continue;
		if (open_group(s->counters, cpu, s->counters_fd))
			close_group(s, cpu);
		else
			put_bit(&s->opened, cpu, true);
	}
}

/* ---- life ---- */

static bool has_tp_btf(void)
{
	return !getenv("TTMOND_NO_TP_BTF") && ttmon_bpf_kernel_has("btf_trace_sched_switch", BTF_KIND_TYPEDEF);
}

/* Where softirqs can be preempted, a timer may be updating a state when its CPU switches. */
static bool is_realtime(void)
{
	_cleanup_fclose_ FILE *f = fopen("/sys/kernel/realtime", "re");

	return f && fgetc(f) == '1';
}

int ttmon_sched_new(const struct ttmon_bpf_cfg *cfg, uint32_t cpus, struct ttmon_sched **ret,
		    struct ttmon_sched_setup *setup)
{
	struct ttmon_sched *s;
	bool tp_btf;

	if (cpus > WORDS * 64)
		return -E2BIG;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->cpus = cpus;
	s->counters_fd = -1;
	read_online(cpus, &s->online);
	choose_counters(s);
	tp_btf = has_tp_btf();
	s->timer = s->counters && tp_btf && !cfg->no_cpu_timer && !is_realtime();
	*setup = (struct ttmon_sched_setup){ .counters = s->counters, .timer = s->timer, .tp_btf = tp_btf };
	*ret = s;
	return 0;
}

/* Without timers the slots of long runs are extended, and their counts come late. */
static void start_timers(const struct ttmon_sched *s, int init_prog_fd)
{
	for (uint32_t cpu = 0; cpu < s->cpus; cpu++) {
		LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &cpu, .ctx_size_in = sizeof(cpu));
		int err = bpf_prog_test_run_opts(init_prog_fd, &opts);

		if (!err && !opts.retval)
			continue;
		log_warn("no timer for CPU %u (%s), continuing: counts of long runs come late", cpu,
			 err ? strerror(-err) : "refused");
		return;
	}
}

int ttmon_sched_loaded(struct ttmon_sched *s, int cpu_states_fd, int cpu_counters_fd, int init_prog_fd)
{
	size_t bytes = ROUND_UP(sizeof(*s->states) * s->cpus, (size_t)sysconf(_SC_PAGESIZE));
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, cpu_states_fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	s->states = p;
	s->states_bytes = bytes;
	s->counters_fd = cpu_counters_fd;
	open_counters(s);
	if (s->timer && init_prog_fd >= 0)
		start_timers(s, init_prog_fd);
	return 0;
}

static bool visitor_is_done(struct ttmon_sched *s, uint64_t wait_ns)
{
	struct timespec until;

	if (!s->visiting)
		return true;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)wait_ns;
	until.tv_sec += until.tv_nsec / (long)NSEC_PER_SEC;
	until.tv_nsec %= (long)NSEC_PER_SEC;
	s->visiting = pthread_timedjoin_np(s->visitor, NULL, &until);
	return !s->visiting;
}

void ttmon_sched_free(struct ttmon_sched *s)
{
	/* If the visitor is stuck, its memory is left to the end of the process. */
	if (!s || !visitor_is_done(s, 0))
		return;
	if (s->states)
		munmap(s->states, s->states_bytes);
	free(s);
}

bool ttmon_bpf_has_counters(const struct ttmon_bpf *b, const char **why)
{
	const struct ttmon_sched *s = ttmon_bpf_sched(b);

	*why = s ? s->why : "CPU time is not measured";
	return s && s->counters;
}

const void *ttmon_bpf_cpu_states(const struct ttmon_bpf *b, size_t *stride)
{
	const struct ttmon_sched *s = ttmon_bpf_sched(b);

	*stride = sizeof(struct ttmon_cpu_state);
	return s ? s->states : NULL;
}

/* ---- CPUs ---- */

static bool is_seen(const struct ttmon_sched *s, uint32_t cpu)
{
	return __atomic_load_n(&s->states[cpu].rec.t.begin_ns, __ATOMIC_RELAXED);
}

/* Moving there causes a switch; if the thread is there already, sleeping does. */
static void *visit(void *ctx)
{
	struct ttmon_sched *s = ctx;
	size_t size = CPU_ALLOC_SIZE(WORDS * 64);
	cpu_set_t *set = CPU_ALLOC(WORDS * 64);

	for (uint32_t cpu = 0; set && cpu < s->cpus; cpu++) {
		if (!is_set(&s->visit, cpu))
			continue;
		CPU_ZERO_S(size, set);
		CPU_SET_S(cpu, size, set);
		if (!sched_setaffinity(0, size, set) && !is_seen(s, cpu))
			nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	}
	CPU_FREE(set);
	return NULL;
}

static void visit_unseen(struct ttmon_sched *s)
{
	bool any = false;

	if (!visitor_is_done(s, 0))
		return;
	for (uint32_t cpu = 0; cpu < s->cpus; cpu++) {
		bool wanted = is_set(&s->online, cpu) && !is_seen(s, cpu);

		put_bit(&s->visit, cpu, wanted);
		any |= wanted;
	}
	if (!any || pthread_create(&s->visitor, NULL, visit, s))
		return;
	s->visiting = true;
	(void)visitor_is_done(s, VISIT_NS);
}

void ttmon_bpf_cpus_forget(struct ttmon_bpf *b)
{
	struct ttmon_sched *s = ttmon_bpf_sched(b);

	for (uint32_t cpu = 0; s && s->states && cpu < s->cpus; cpu++)
		__atomic_store_n(&s->states[cpu].rec.t.begin_ns, 0, __ATOMIC_RELAXED);
}

void ttmon_bpf_cpus_refresh(struct ttmon_bpf *b, uint64_t *bits, size_t nr_words)
{
	struct ttmon_sched *s = ttmon_bpf_sched(b);
	struct bits now;

	memset(bits, 0, nr_words * sizeof(*bits));
	if (!s || !s->states)
		return;
	read_online(s->cpus, &now);
	for (uint32_t cpu = 0; cpu < s->cpus; cpu++) {
		if (!is_set(&s->online, cpu) || is_set(&now, cpu))
			continue;
		/* Its counters have ended, and so has its time: when it comes back, it counts as never seen. */
		close_group(s, cpu);
		__atomic_store_n(&s->states[cpu].rec.t.begin_ns, 0, __ATOMIC_RELAXED);
	}
	s->online = now;
	open_counters(s);
	visit_unseen(s);
	memcpy(bits, now.w, MIN(nr_words, (size_t)WORDS) * sizeof(*bits));
}
