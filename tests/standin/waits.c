// SPDX-License-Identifier: GPL-2.0-only
/*
 * waits.c: synchronizing calls with accounts of the program's own, for tests/e2e/t_waits.py.
 *
 *	waits MODE COUNT US [CPU [SEED [PRIORITY]]]
 *
 * Each of COUNT calls of cudaStreamSynchronize waits in the way of a real one (docs/real-gpu.md, "How
 * a thread waits"), for about US microseconds; SEED varies the time:
 *
 *	spin    on its CPU, in no system call: contexts that spin
 *	futex   asleep, until a thread named cuda-EvtHandlr of the same process wakes it: blocking contexts
 *	pipe    reads a pipe that a child process writes: waits for another process
 *	nap     sleeps until a timer runs out
 *	behind  reads a pipe that a child process writes while it is in a call of cudaMallocHost itself
 *	mix     one of these, by the seed
 *	yield   yields its CPU between the rounds of a spin: contexts that yield
 *	fault   touches new memory: one page per call
 *	die     the thread ends inside the call
 *	exec    the process executes another program inside the call
 *	stay    never returns
 *
 * With a PRIORITY it runs at this real-time priority (SCHED_FIFO), and sleeps between the calls, since
 * the kernel leaves real-time threads 95 % of a CPU. WAITS_CGROUP=FILE in the environment: it
 * moves itself into the cgroup with this file of processes before the calls.
 *
 * The accounts are read before and after each call, and again inside it, at its beginning and its end:
 * the thread's CPU time, and the time in /proc/thread-self/schedstat for which it waited for a CPU.
 * The values that ttmon reports are between the sums of the inner and of the outer readings. Prints
 * one line of JSON.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda_api.h"
#include "standin.h"

struct reading {
	uint64_t mono, cpu, runq;
};

struct book {
	uint64_t ns, cpu, runq;
};

static const char *mode;
static char **own_argv;
static int schedstat_fd;
static struct reading inside[2];
static uint64_t want_ns, seed;
static int priority;
static pid_t child_pid;
static _Atomic uint32_t turn, done;
static _Atomic uint64_t turn_ns;
static int to_child[2], from_child[2];

static void fail(const char *what)
{
	fprintf(stderr, "waits: %s: %s\n", what, strerror(errno));
	_exit(4);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t runq_ns(void)
{
	char text[96], *end;
	ssize_t n = pread(schedstat_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		fail("schedstat");
	text[n] = '\0';
	strtoull(text, &end, 10);
	return strtoull(end, NULL, 10);
}

/* first: at the begin of the measured time. The innermost value is measured innermost. */
static struct reading read_books(int first)
{
	struct reading r = { 0 };

	if (first)
		r.runq = runq_ns();
	r.mono = clock_ns(CLOCK_MONOTONIC);
	r.cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (!first)
		r.runq = runq_ns();
	return r;
}

static uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void spin(int yields)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + want_ns;

	while (clock_ns(CLOCK_MONOTONIC) < end)
		if (yields)
			sched_yield();
}

/* Sleeps for this long: in another process, or in the driver's thread that wakes the caller. */
static void nap(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static void *handler(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "cuda-EvtHandlr");
	for (uint32_t mine = 0;; mine++) {
		while (atomic_load(&turn) == mine)
			syscall(SYS_futex, &turn, FUTEX_WAIT, mine, NULL, NULL, 0);
		nap(atomic_load(&turn_ns));
		atomic_store(&done, mine + 1);
		syscall(SYS_futex, &done, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
	return NULL;
}

static void by_futex(void)
{
	uint32_t mine;

	atomic_store(&turn_ns, want_ns);
	mine = atomic_fetch_add(&turn, 1);
	syscall(SYS_futex, &turn, FUTEX_WAKE, 1, NULL, NULL, 0);
	while (atomic_load(&done) == mine)
		syscall(SYS_futex, &done, FUTEX_WAIT, mine, NULL, NULL, 0);
}

static void reply(uint64_t ns)
{
	nap(ns);
	if (write(from_child[1], "x", 1) != 1)
		_exit(0);
}

static void reply_hook(void *arg)
{
	reply(*(uint64_t *)arg);
}

/* inside: it answers in a call of its own. */
static void child(int inside_call)
{
	uint64_t ns;
	void *p;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (inside_call)
		standin_hook("cudaMallocHost", reply_hook, &ns);
	while (read(to_child[0], &ns, sizeof(ns)) == sizeof(ns)) {
		if (!inside_call)
			reply(ns);
		else if (cudaMallocHost(&p, 4096) || cudaFreeHost(p))
			break;
	}
	_exit(0);
}

static void by_pipe(void)
{
	char c;

	if (write(to_child[1], &want_ns, sizeof(want_ns)) != sizeof(want_ns) || read(from_child[0], &c, 1) != 1)
		fail("pipe");
}

static void by_fault(void)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("mmap");
	*(volatile char *)p = 1;
	munmap(p, 4096);
}

static void one(const char *how)
{
	if (!strcmp(how, "spin"))
		spin(0);
	else if (!strcmp(how, "yield"))
		spin(1);
	else if (!strcmp(how, "futex"))
		by_futex();
	else if (!strcmp(how, "pipe") || !strcmp(how, "behind"))
		by_pipe();
	else if (!strcmp(how, "nap"))
		nap(want_ns);
	else if (!strcmp(how, "fault"))
		by_fault();
	else
		fail(how);
}

static void hook(void *arg)
{
	static const char *const some[] = { "spin", "futex", "pipe" };

	(void)arg;
	if (!strcmp(mode, "die")) {
		spin(0);
		pthread_exit(NULL);
	}
	if (!strcmp(mode, "exec")) {
		char *argv[] = { own_argv[0], "spin", "3", "1000", NULL };

		spin(0);
		execv("/proc/self/exe", argv);
		fail("exec");
	}
	if (!strcmp(mode, "stay")) {
		printf("inside\n");
		fflush(stdout);
		for (;;)
			pause();
	}
	inside[0] = read_books(1);
	one(strcmp(mode, "mix") ? mode : some[draw() % 3]);
	inside[1] = read_books(0);
}

static void add(struct book *b, const struct reading *from, const struct reading *to)
{
	b->ns += to->mono - from->mono;
	b->cpu += to->cpu - from->cpu;
	b->runq += to->runq - from->runq;
}

static void enter_cgroup(const char *file)
{
	int fd = file ? open(file, O_WRONLY | O_CLOEXEC) : -1;

	if (file && (fd < 0 || write(fd, "0", 1) != 1))
		fail(file);
	close(fd);
}

static void *run(void *arg)
{
	long count = atol(own_argv[2]), us = atol(own_argv[3]);
	struct book inner = { 0 }, outer = { 0 };
	struct rusage u[2];

	(void)arg;
	schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	if (schedstat_fd < 0)
		fail("schedstat");
	standin_hook("cudaStreamSynchronize", hook, NULL);
	enter_cgroup(getenv("WAITS_CGROUP"));
	getrusage(RUSAGE_THREAD, &u[0]);
	for (long i = 0; i < count; i++) {
		struct reading from, to;

		want_ns = (uint64_t)us * 500 + draw() % (uint64_t)(us * 1000 + 1);
		from = read_books(1);
		if (cudaStreamSynchronize(NULL))
			fail("cudaStreamSynchronize");
		to = read_books(0);
		add(&inner, &inside[0], &inside[1]);
		add(&outer, &from, &to);
		if (priority)
			nap(want_ns);
	}
	getrusage(RUSAGE_THREAD, &u[1]);
	printf("{\"pid\":%d,\"child\":%d,\"tid\":%ld,\"calls\":%ld,\"inner\":{\"ns\":%lu,\"cpu\":%lu,\"runq\":%lu},"
	       "\"outer\":{\"ns\":%lu,\"cpu\":%lu,\"runq\":%lu},\"minor\":%ld,\"switches\":[%ld,%ld]}\n",
	       getpid(), child_pid, syscall(SYS_gettid), count, inner.ns, inner.cpu, inner.runq, outer.ns, outer.cpu,
	       outer.runq, u[1].ru_minflt - u[0].ru_minflt, u[1].ru_nvcsw - u[0].ru_nvcsw,
	       u[1].ru_nivcsw - u[0].ru_nivcsw);
	fflush(stdout);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;

	if (argc < 4)
		return 2;
	mode = argv[1];
	own_argv = argv;
	seed = argc > 5 ? strtoull(argv[5], NULL, 10) | 1 : 1;
	if (pipe2(to_child, O_CLOEXEC) || pipe2(from_child, O_CLOEXEC))
		fail("pipe");
	if (!strcmp(mode, "pipe") || !strcmp(mode, "behind") || !strcmp(mode, "mix")) {
		child_pid = fork();
		if (!child_pid)
			child(!strcmp(mode, "behind"));
	}
	if (!strcmp(mode, "futex") || !strcmp(mode, "mix")) {
		if (pthread_create(&t, NULL, handler, NULL))
			fail("thread");
	}
	if (argc > 4 && atoi(argv[4]) >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(atoi(argv[4]), &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			fail("affinity");
	}
	priority = argc > 6 ? atoi(argv[6]) : 0;
	if (priority && sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = priority }))
		fail("priority");
	if (strcmp(mode, "die")) {
		run(NULL);
		return 0;
	}
	if (pthread_create(&t, NULL, run, NULL))
		fail("thread");
	pthread_join(t, NULL);
	/* Its call ends here: the process makes another one. */
	mode = "spin";
	run(NULL);
	return 0;
}
