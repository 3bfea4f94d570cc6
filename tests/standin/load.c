// SPDX-License-Identifier: GPL-2.0-only
/*
 * load.c: known loads for the scheduler, and the kernel's own accounts of them.
 *
 *	load [--wait] MODE [SECONDS [N]]
 *
 * Runs child processes and prints, when all have ended, one line of JSON: for each its pid, the CPU
 * time that wait4(2) reports (the scheduler's sum_exec_runtime, in us) and its switches. --wait:
 * prints "ready PID" and waits for a line first.
 *
 *	spin	N children, each pinned to a CPU of its own, that never sleep
 *	nice	two children pinned to CPU 0, at nice 0 and nice 5
 *	sleep	N children that work 2 ms and sleep 2 ms
 *	switch	a pair of threads pinned to each CPU that wake each other through pipes (N pairs,
 *		0: one a CPU)
 *	paced	the same, in bursts each millisecond that make N switches a second in all
 *	forks	N children, eight at a time, each does a little work; SECONDS is ignored
 *	threads	one child with N threads that never sleep
 *	exec	one child that execs sleep(1)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds = 1;
static int count;
static int cpus;
static volatile uint64_t sink;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(3);
}

static void work_until(uint64_t end)
{
	while (now_ns() < end)
		for (int i = 0; i < 1000; i++)
			sink += (uint64_t)i;
}

static uint64_t end_time(void)
{
	return now_ns() + (uint64_t)(seconds * 1e9);
}

static void spin(int i)
{
	pin(i % cpus);
	work_until(end_time());
}

static void niced(int i)
{
	pin(0);
	if (i && setpriority(PRIO_PROCESS, 0, 5))
		exit(3);
	work_until(end_time());
}

static void sleeper(int i)
{
	uint64_t end = end_time();

	(void)i;
	while (now_ns() < end) {
		work_until(now_ns() + 2000000);
		usleep(2000);
	}
}

struct pair {
	int cpu, in, out;
	uint64_t end, next;
	unsigned int burst, left; /* round trips left in this millisecond; 0: no pause */
};

/* At the end of a burst: waits for the next millisecond. */
static void rest(struct pair *p)
{
	if (!p->burst || --p->left)
		return;
	p->left = p->burst;
	p->next += 1000000;
	if (p->next > now_ns())
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
				&(struct timespec){ (time_t)(p->next / 1000000000), (long)(p->next % 1000000000) },
				NULL);
}

static void *bounce(void *arg)
{
	struct pair *p = arg;
	char c = 0;

	pin(p->cpu);
	while (c != 'q' && read(p->in, &c, 1) == 1) {
		if (now_ns() > p->end)
			c = 'q'; /* the other one must be notified too */
		if (write(p->out, &c, 1) != 1)
			return arg;
		rest(p);
	}
	return NULL;
}

static void run_pair(int i, unsigned int burst)
{
	struct pair a = { .cpu = i % cpus }, b = { .cpu = i % cpus };
	int there[2], back[2];
	pthread_t thread;

	if (pipe(there) || pipe(back))
		exit(3);
	a.end = b.end = end_time();
	a.next = now_ns();
	a.burst = a.left = burst;
	a.in = back[0];
	a.out = there[1];
	b.in = there[0];
	b.out = back[1];
	if (write(there[1], "x", 1) != 1 || pthread_create(&thread, NULL, bounce, &b))
		exit(3);
	bounce(&a);
	pthread_join(thread, NULL);
}

static void switches(int i)
{
	run_pair(i, 0);
}

/* A round trip is two switches. */
static void paced(int i)
{
	int burst = count / 2000 / cpus;

	run_pair(i, burst > 1 ? (unsigned int)burst : 1);
}

static void brief(int i)
{
	char name[16];

	snprintf(name, sizeof(name), "brief%d", i % 10);
	prctl(PR_SET_NAME, name);
	work_until(now_ns() + 200000);
}

static void *spinner(void *arg)
{
	work_until(*(uint64_t *)arg);
	return NULL;
}

static void threads(int i)
{
	uint64_t end = end_time();
	pthread_t *t = calloc((size_t)count, sizeof(*t));

	(void)i;
	if (!t)
		exit(3);
	for (int k = 0; k < count; k++)
		if (pthread_create(&t[k], NULL, spinner, &end))
			exit(3);
	for (int k = 0; k < count; k++)
		pthread_join(t[k], NULL);
	free(t);
}

static void exec_sleep(int i)
{
	char arg[32];

	(void)i;
	work_until(now_ns() + 20000000);
	snprintf(arg, sizeof(arg), "%.3f", seconds);
	execlp("sleep", "sleep", arg, NULL);
	exit(3);
}

static const struct mode {
	const char *name;
	void (*child)(int i);
	int children; /* 0: N; -1: one a CPU */
	int at_once;  /* 0: all */
} modes[] = {
	{ "spin", spin, 0, 0 },	      { "nice", niced, 2, 0 },	 { "sleep", sleeper, 0, 0 },
	{ "switch", switches, 0, 0 }, { "forks", brief, 0, 8 },	 { "threads", threads, 1, 0 },
	{ "exec", exec_sleep, 1, 0 }, { "paced", paced, -1, 0 },
};

static int reap(int first)
{
	struct rusage ru;
	int status;
	pid_t pid = wait4(-1, &status, 0, &ru);

	if (pid < 0)
		return -1;
	printf("%s{\"pid\": %d, \"cpu_us\": %ld, \"switches\": %ld}", first ? "" : ", ", pid,
	       (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000 + ru.ru_utime.tv_usec + ru.ru_stime.tv_usec,
	       ru.ru_nvcsw + ru.ru_nivcsw);
	return status ? -1 : 0;
}

static int run(const struct mode *m)
{
	int n = m->children < 0 ? cpus : m->children ? m->children : count, alive = 0, started = 0, ended = 0, bad = 0;

	printf("{\"mode\": \"%s\", \"pid\": %d, \"children\": [", m->name, getpid());
	fflush(stdout);
	while (ended < n) {
		while (started < n && (!m->at_once || alive < m->at_once)) {
			pid_t pid = fork();

			if (pid < 0)
				return 3;
			if (!pid) {
				m->child(started);
				_exit(0);
			}
			started++;
			alive++;
		}
		bad |= reap(ended == 0);
		ended++;
		alive--;
	}
	printf("]}\n");
	return bad ? 3 : 0;
}

int main(int argc, char **argv)
{
	int at = 1;

	cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (at < argc && !strcmp(argv[at], "--wait")) {
		at++;
		printf("ready %d\n", getpid());
		fflush(stdout);
		if (getchar() == EOF)
			return 2;
	}
	if (at + 1 < argc)
		seconds = atof(argv[at + 1]);
	count = at + 2 < argc ? atoi(argv[at + 2]) : 0;
	if (count <= 0)
		count = cpus;
	for (size_t i = 0; at < argc && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[at], modes[i].name))
			return run(&modes[i]);
	fprintf(stderr, "usage: load [--wait] spin|nice|sleep|switch|paced|forks|threads|exec [SECONDS [N]]\n");
	return 2;
}
