// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_attribution.c: why the time between two switches differs from the time that the scheduler
 * charges. It runs loads of tests/standin/load.c, four seconds each, and prints the sums of
 * `books.bpf.c` over all stays on a CPU: for the tasks of the load, all other tasks, and the idle
 * tasks:
 *
 *	wall - charged = (wall - clock) + (clock - task) + (task - charged)
 *
 *	wall - clock	 the run queue's clock stands still from a wake-up that preempts to the switch:
 *			 this time is charged to the task that comes in, and was spent by the task that leaves. Over all
 *			 tasks the sum is 0.
 *	clock - task	 stolen by the hypervisor (and interrupts, with CONFIG_IRQ_TIME_ACCOUNTING)
 *	task - charged	 0, except for idle tasks, which are charged nothing
 *
 *	bench_attribution [--secs N]
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <getopt.h>
#include <sys/wait.h>

#include "kern.h"
#include "tests/bench/books.h"
#include "tests/bench/books.skel.h"

#define CPUS_MAX 4096

static const char *const names[BOOKS_GROUPS] = { "load", "others", "idle" };
static struct books sums[CPUS_MAX];

static struct books sum_of(const struct books_bpf *skel, uint32_t group)
{
	int n = libbpf_num_possible_cpus();
	struct books t = { 0 };

	if (n > CPUS_MAX || bpf_map_lookup_elem(bpf_map__fd(skel->maps.books), &group, sums))
		return t;
	for (int i = 0; i < n; i++) {
		t.stays += sums[i].stays;
		t.unseen += sums[i].unseen;
		t.wall_ns += sums[i].wall_ns;
		t.clock_ns += sums[i].clock_ns;
		t.task_ns += sums[i].task_ns;
		t.charged_ns += sums[i].charged_ns;
	}
	return t;
}

static double ms(uint64_t a, uint64_t b)
{
	return (double)(int64_t)(a - b) / 1e6;
}

static void print(const char *load, const struct books_bpf *skel)
{
	struct books all = { 0 };

	for (uint32_t i = 0; i < BOOKS_GROUPS; i++) {
		struct books b = sum_of(skel, i);
		double share = b.charged_ns ? 100 * ms(b.wall_ns, b.charged_ns) / ms(b.charged_ns, 0) : 0;

		all.wall_ns += b.wall_ns;
		all.clock_ns += b.clock_ns;
		printf("%-8s %-7s %9llu stays, charged %9.1f ms, wall %+8.3f ms (%+.2f %%): waking %+8.3f, stolen "
		       "%+7.3f, rest "
		       "%+.3f; %.0f ns a stay, %llu unseen\n",
		       i ? "" : load, names[i], (unsigned long long)b.stays, ms(b.charged_ns, 0),
		       ms(b.wall_ns, b.charged_ns), share, ms(b.wall_ns, b.clock_ns), ms(b.clock_ns, b.task_ns),
		       ms(b.task_ns, b.charged_ns), 1e6 * ms(b.wall_ns, b.clock_ns) / (double)MAX(b.stays, 1ULL),
		       (unsigned long long)b.unseen);
	}
	printf("%-8s all     waking adds up to %+.3f ms of %.1f\n", "", ms(all.wall_ns, all.clock_ns),
	       ms(all.wall_ns, 0));
}

static int run(const char *path, const char *load, const char *secs, const char *count)
{
	struct books_bpf *skel = books_bpf__open();
	int err = -ENOMEM, status;
	pid_t pid;

	if (!skel)
		return err;
	memcpy((char *)skel->rodata->load_comm, "load", sizeof("load"));
	err = books_bpf__load(skel);
	if (!err)
		err = books_bpf__attach(skel);
	if (err) {
		fprintf(stderr, "cannot load or attach the program: %s\n", strerror(-err));
		goto out;
	}
	pid = fork();
	if (!pid) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, STDOUT_FILENO);
		execl(path, path, load, secs, count, NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "%s %s failed\n", path, load);
		err = -EIO;
		goto out;
	}
	books_bpf__detach(skel);
	print(load, skel);
out:
	books_bpf__destroy(skel);
	return err;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "secs", required_argument, NULL, 's' }, { 0 } };
	static const char *const loads[][2] = {
		{ "spin", "2" }, { "threads", "4" }, { "sleep", "4" }, { "switch", "0" }
	};
	char path[PATH_MAX + 32], self[PATH_MAX];
	const char *secs = "4";
	ssize_t n;
	int opt;

	if (skipped("bench_attribution"))
		return 0;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt != 's')
			return 2;
		secs = optarg;
	}
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return 1;
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	snprintf(path, sizeof(path), "%s/../standin/load", self);
	for (size_t i = 0; i < ARRAY_SIZE(loads); i++)
		if (run(path, loads[i][0], secs, loads[i][1]))
			return 1;
	return 0;
}
