// SPDX-License-Identifier: GPL-2.0-only
/*
 * procs.c: processes and threads that begin, run and end as the tests of kmod/ want it. Prints their
 * numbers as one line of JSON, waits for a line on its input where it holds something, and ends.
 *
 *	forks N       N children one after the other, each waited for
 *	hold N        N children that wake up each 50 ms; each line of input names (by its
 *		 place) the next one to end
 *	zombie        a child that has ended and is not waited for
 *	threads N     N threads that end; then the leader ends, and a last one goes on
 *	exec NAME     its second thread becomes NAME, which is run as "hold 0"
 *	burn MS       runs for MS ms on CPU 1
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *name;

static void die(const char *what)
{
	fprintf(stderr, "procs: %s: %s\n", what, strerror(errno));
	exit(1);
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static void wait_line(void)
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

static void forks(int n)
{
	printf("{\"pid\": %d, \"children\": [", getpid());
	for (int i = 0; i < n; i++) {
		/* a process like any other, without copies of page tables: those take long under emulation */
		pid_t pid = vfork();

		if (!pid)
			_exit(0);
		if (pid < 0)
			die("vfork");
		printf("%s%d", i ? ", " : "", pid);
		if (waitpid(pid, NULL, 0) != pid)
			die("waitpid");
	}
	puts("]}");
}

static void hold(int n)
{
	pid_t pids[1024];
	char line[16];

	if (n < 0 || n > 1024)
		exit(2);
	printf("{\"pid\": %d, \"children\": [", getpid());
	fflush(stdout);
	for (int i = 0; i < n; i++) {
		pids[i] = child();
		while (!pids[i])
			sleep_ms(50);
		printf("%s%d", i ? ", " : "", pids[i]);
		fflush(stdout);
	}
	puts("]}");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int i = atoi(line);

		if (i < 0 || i >= n)
			exit(2);
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
		puts("ended");
		fflush(stdout);
	}
	for (int i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
}

static void zombie(void)
{
	pid_t pid = child();

	if (!pid)
		_exit(0);
	printf("{\"pid\": %d, \"children\": [%d]}\n", getpid(), pid);
	fflush(stdout);
	wait_line();
}

static void *nothing(void *arg)
{
	sleep_ms(5);
	return arg;
}

/* The leader has ended, the process has not: its input decides. */
static void *last(void *arg)
{
	(void)arg;
	sleep_ms(100);
	printf("{\"pid\": %d, \"children\": []}\n", getpid());
	fflush(stdout);
	wait_line();
	exit(0);
}

static void threads(int n)
{
	pthread_t ids[256], id;

	if (n < 0 || n > 256)
		exit(2);
	for (int i = 0; i < n; i++)
		if (pthread_create(&ids[i], NULL, nothing, NULL))
			die("pthread_create");
	for (int i = 0; i < n; i++)
		pthread_join(ids[i], NULL);
	pthread_create(&id, NULL, last, NULL);
	pthread_exit(NULL);
}

static void *become(void *arg)
{
	(void)arg;
	sleep_ms(20);
	execl(name, name, "hold", "0", NULL);
	die(name);
	return NULL;
}

static void exec_in_thread(void)
{
	pthread_t id;

	pthread_create(&id, NULL, become, NULL);
	for (;;)
		sleep_ms(1000);
}

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/*
 * ms: how many milliseconds it has seen: fewer than went by where the emulated processor was not run.
 */
static void burn(long ms)
{
	long long from, t, last = 0;
	cpu_set_t set;
	long seen = 0;

	CPU_ZERO(&set);
	CPU_SET(1, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("CPU 1");
	from = now_ns();
	do {
		t = now_ns();
		seen += t / 1000000 != last;
		last = t / 1000000;
	} while (t < from + ms * 1000000);
	printf("{\"pid\": %d, \"from\": %lld, \"to\": %lld, \"ms\": %ld}\n", getpid(), from, t, seen);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "forks") && argc == 3)
		forks(atoi(argv[2]));
	else if (!strcmp(what, "hold") && argc == 3)
		hold(atoi(argv[2]));
	else if (!strcmp(what, "zombie"))
		zombie();
	else if (!strcmp(what, "threads") && argc == 3)
		threads(atoi(argv[2]));
	else if (!strcmp(what, "exec") && argc == 3)
		name = argv[2], exec_in_thread();
	else if (!strcmp(what, "burn") && argc == 3)
		burn(atol(argv[2]));
	else
		return 2;
	return 0;
}
