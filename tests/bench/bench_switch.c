// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_switch.c: the cost of the scheduler's program for a context switch, against an empty program
 * at the same tracepoint.
 *
 * The load is a byte that travels around through pipes, between 2 or 8 processes on one CPU, at the
 * lowest real-time priority so that no other process of a busy machine interferes. Every program is
 * loaded once, and is attached only for its block. The ways take turns in an order that changes from
 * round to round. The cost of a program is its time less the time without a program in the same round;
 * a ratio is the median over the rounds of its cost to the cost of the empty one. The kernel's own
 * statistics (which cost 20 ns a run themselves) are taken in a last round.
 *
 * The records in the rings must be chains without gaps whose tables add up, at most one per CPU and
 * slot.
 *
 *	bench_switch [--rounds N] [--ms LENGTH_OF_A_BLOCK]
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "empty.h"
#include "daemon/io/bpf/bpf_int.h"

#define ROUNDS_MAX 101
#define CPUS_MAX   4096
#define GOAL	   2.0

enum way { NONE, EMPTY, OURS, RAW, SOFTWARE, HARDWARE, WAYS };
static const char *const names[WAYS] = {
	"no program", "empty program", "ours", "ours, raw_tp", "ours, software counters", "ours, hardware counters",
};

static const struct load {
	const char *name;
	unsigned int procs;
} loads[] = { { "2 processes", 2 }, { "8 processes", 8 } };
#define NR_LOADS ARRAY_SIZE(loads)

struct contestant {
	struct ttmon_bpf *bpf;
	struct bpf_program *prog;
	uint64_t to_ns[CPUS_MAX]; /* of the last record; 0: there is none in this block */
	uint64_t records, rows, bytes, slots, wrong;
	double stat_ns[NR_LOADS];
};

static struct contestant contestants[WAYS];
static double took[NR_LOADS][WAYS][ROUNDS_MAX]; /* ns a switch */
static int cpu;
static unsigned long block_ms = 60;

/* ---- the load: a ring of processes, of which this process is the first ---- */

struct ring {
	int pipes[8][2];
	pid_t pids[8];
	unsigned int n;
};

static void pass_on(int from, int to)
{
	char b;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(from, &b, 1) == 1 && write(to, &b, 1) == 1)
		;
	_exit(0);
}

static int ring_start(struct ring *r, unsigned int n)
{
	r->n = n;
	for (unsigned int i = 0; i < n; i++)
		if (pipe2(r->pipes[i], O_CLOEXEC))
			return -errno;
	for (unsigned int i = 1; i < n; i++) {
		r->pids[i] = fork();
		if (r->pids[i] < 0)
			return -errno;
		if (!r->pids[i])
			pass_on(r->pipes[i - 1][0], r->pipes[i][1]);
	}
	return 0;
}

static void ring_stop(struct ring *r)
{
	for (unsigned int i = 1; i < r->n; i++) {
		kill(r->pids[i], SIGKILL);
		waitpid(r->pids[i], NULL, 0);
	}
	for (unsigned int i = 0; i < r->n; i++) {
		close(r->pipes[i][0]);
		close(r->pipes[i][1]);
	}
}

/* ns a switch. */
static double ring_run(const struct ring *r, uint64_t length_ns)
{
	uint64_t begin = now_ns(), end = begin;
	unsigned long trips = 0;
	char b = 'x';

	while (end - begin < length_ns) {
		for (unsigned int i = 0; i < 64; i++, trips++)
			if (write(r->pipes[0][1], &b, 1) != 1 || read(r->pipes[r->n - 1][0], &b, 1) != 1)
				return NAN;
		end = now_ns();
	}
	return (double)(end - begin) / (double)(trips * r->n);
}

/* ---- the ways ---- */

static int load_ours(enum way way)
{
	const struct ttmon_bpf_cfg cfg = { .cpu = true, .stack_frames = 1, .ring_bytes = 4 << 20 };
	struct contestant *c = &contestants[way];
	const char *reason;
	char why[256];
	int err;

	setenv("TTMOND_COUNTERS", way == SOFTWARE ? "software" : way == HARDWARE ? "hardware" : "off", 1);
	if (way == RAW)
		setenv("TTMOND_NO_TP_BTF", "1", 1);
	err = ttmon_bpf_new(&cfg, &c->bpf, why, sizeof(why));
	unsetenv("TTMOND_NO_TP_BTF");
	if (err) {
		fprintf(stderr, "%s\n", why);
		return err;
	}
	if (way >= SOFTWARE && !ttmon_bpf_has_counters(c->bpf, &reason)) {
		printf("%s: %s\n", names[way], reason);
		ttmon_bpf_free(c->bpf);
		c->bpf = NULL;
		return way == HARDWARE ? 0 : -ENOTSUP;
	}
	c->prog = ttmon_bpf_program(c->bpf, way == RAW ? TTMON_PROG_CPU_SWITCH_RAW : TTMON_PROG_CPU_SWITCH);
	ttmon_bpf_activate(c->bpf, true);
	return 0;
}

static int load_all(void)
{
	struct empty_bpf *skel = empty_bpf__open();
	int err = 0;

	if (!skel)
		return -EINVAL;
	bpf_program__set_autoload(skel->progs.empty_switch, true);
	if (empty_bpf__load(skel))
		return -EINVAL;
	contestants[EMPTY].prog = skel->progs.empty_switch;
	for (enum way way = OURS; way < WAYS && !err; way++)
		err = load_ours(way);
	return err;
}

static bool takes_part(enum way way)
{
	return way == NONE || contestants[way].prog;
}

/* Compares each record with the one before and checks it. */
static void check(void *ctx, const void *rec, size_t size)
{
	struct contestant *c = ctx;
	const struct ttmon_ev_cpu_slot *e = rec;
	uint64_t ns = 0;

	if (e->h.kind != TTMON_EV_CPU_SLOT)
		return;
	c->records++;
	c->rows += e->t.nr_rows;
	c->bytes += size;
	for (uint16_t i = 0; i < e->t.nr_rows; i++) {
		const struct ttmon_cpu_row *r = (const void *)((const uint8_t *)(e + 1) + i * e->t.row_size);

		ns += r->ns;
	}
	if (e->h.cpu >= CPUS_MAX || size != sizeof(*e) + (size_t)e->t.nr_rows * e->t.row_size ||
	    ns != e->t.last_ns - e->t.begin_ns || e->t.to_ns < e->t.last_ns ||
	    (c->to_ns[e->h.cpu] && e->t.begin_ns != c->to_ns[e->h.cpu])) {
		c->wrong++;
		return;
	}
	c->slots += !c->to_ns[e->h.cpu] || e->t.begin_ns / NSEC_PER_MS != e->t.to_ns / NSEC_PER_MS;
	c->to_ns[e->h.cpu] = e->t.to_ns;
}

static void drain(struct contestant *c)
{
	if (!c->bpf)
		return;
	for (uint32_t i = 0; i < ttmon_bpf_rings(c->bpf); i++) {
		struct ttmon_ring *r = ttmon_bpf_ring(c->bpf, i);

		ttmon_ring_drain(r, ttmon_ring_producer(r), check, c);
	}
}

/* Returns the ns per switch, or NAN after it has printed the reason. */
static double block(const struct ring *r, enum way way)
{
	struct contestant *c = &contestants[way];
	struct bpf_link *link = NULL;
	double ns;

	if (c->prog) {
		link = bpf_program__attach(c->prog);
		if (!link) {
			fprintf(stderr, "cannot attach: %s\n", strerror(errno));
			return NAN;
		}
	}
	(void)ring_run(r, NSEC_PER_MS);
	ns = ring_run(r, block_ms * NSEC_PER_MS);
	bpf_link__destroy(link);
	drain(c);
	return ns;
}

static double run_ns(enum way way, uint64_t *count)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(contestants[way].prog), &info, &len))
		return 0;
	*count = info.run_cnt;
	return (double)info.run_time_ns;
}

static int take_stats(const struct ring *r, size_t load)
{
	_cleanup_close_ int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

	for (enum way way = EMPTY; way < WAYS && fd >= 0; way++) {
		uint64_t n0 = 0, n1 = 0;
		double t0, t1;

		if (!takes_part(way))
			continue;
		t0 = run_ns(way, &n0);
		if (isnan(block(r, way)))
			return -EIO;
		t1 = run_ns(way, &n1);
		contestants[way].stat_ns[load] = n1 > n0 ? (t1 - t0) / (double)(n1 - n0) : 0;
	}
	return 0;
}

/* ---- the report ---- */

static double added(size_t load, enum way way, size_t rounds)
{
	double v[ROUNDS_MAX];

	for (size_t i = 0; i < rounds; i++)
		v[i] = took[load][way][i] - took[load][NONE][i];
	return median(v, rounds);
}

static double ratio(size_t load, enum way way, size_t rounds)
{
	double v[ROUNDS_MAX];

	for (size_t i = 0; i < rounds; i++)
		v[i] = (took[load][way][i] - took[load][NONE][i]) / (took[load][EMPTY][i] - took[load][NONE][i]);
	return median(v, rounds);
}

static void report(size_t load, size_t rounds)
{
	double v[ROUNDS_MAX];

	memcpy(v, took[load][NONE], rounds * sizeof(*v));
	printf("%s: %.0f ns a switch\n", loads[load].name, median(v, rounds));
	for (enum way way = EMPTY; way < WAYS; way++) {
		if (!takes_part(way))
			continue;
		printf("  %-23s +%.0f ns, %.0f ns by bpf_stats", names[way], added(load, way, rounds),
		       contestants[way].stat_ns[load]);
		if (way > EMPTY) {
			double r = ratio(load, way, rounds);

			printf(", %.2f x the empty one", r);
			if (way == OURS)
				printf(" (goal %.2f%s)", GOAL, r > GOAL ? ", MISSED" : "");
		}
		printf("\n");
	}
}

static int report_records(void)
{
	int err = 0;

	for (enum way way = OURS; way < WAYS; way++) {
		const struct contestant *c = &contestants[way];

		if (!c->bpf)
			continue;
		printf("%s: %llu records, %.2f a CPU and slot it switched in, %.1f rows and %.0f bytes each\n",
		       names[way], (unsigned long long)c->records, (double)c->records / (double)MAX(c->slots, 1ULL),
		       (double)c->rows / (double)MAX(c->records, 1ULL),
		       (double)c->bytes / (double)MAX(c->records, 1ULL));
		if (!c->records || c->wrong) {
			fprintf(stderr, "bench_switch: %s: %llu records that do not add up\n", names[way],
				(unsigned long long)c->wrong);
			err = -EIO;
		}
	}
	return err;
}

static int measure(size_t load, size_t rounds)
{
	struct ring ring = { 0 };
	int err = ring_start(&ring, loads[load].procs);

	/* The first round is not counted. */
	for (size_t r = 0; r <= rounds && !err; r++) {
		for (unsigned int i = 0; i < WAYS; i++) {
			enum way way = (enum way)((i + r) % WAYS);
			double ns = takes_part(way) ? block(&ring, way) : 0;

			if (isnan(ns))
				err = -EIO;
			took[load][way][r ? r - 1 : 0] = ns;
		}
	}
	if (!err)
		err = take_stats(&ring, load);
	ring_stop(&ring);
	return err;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "ms", required_argument, NULL, 'm' },
		{ 0 },
	};
	size_t rounds = 9;
	int opt, err = 0;

	while ((opt = getopt_long(argc, argv, "r:m:", options, NULL)) != -1) {
		if (opt == 'r')
			rounds = strtoul(optarg, NULL, 10);
		else if (opt == 'm')
			block_ms = strtoul(optarg, NULL, 10);
		else
			return 2;
	}
	if (rounds < 1 || rounds > ROUNDS_MAX || block_ms < 1 || block_ms > 10000) {
		fprintf(stderr, "bench_switch: --rounds 1 to %d, --ms 1 to 10000\n", ROUNDS_MAX);
		return 2;
	}
	if (skipped("bench_switch"))
		return 0;
	if (load_all()) {
		fprintf(stderr, "bench_switch: cannot load\n");
		return 1;
	}
	cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
	pin(cpu);
	if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 }))
		printf("not at real-time priority (%s): who else runs takes part\n", strerror(errno));
	for (size_t load = 0; load < NR_LOADS && !err; load++) {
		err = measure(load, rounds);
		if (!err)
			report(load, rounds);
	}
	if (!err)
		err = report_records();
	for (enum way way = OURS; way < WAYS; way++)
		ttmon_bpf_free(contestants[way].bpf);
	return err ? 1 : 0;
}
