// SPDX-License-Identifier: GPL-2.0-only
/* scen_life.c: scenarios of the ends of processes, threads and calls. See scen.c. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scen.h"

#define SIZE 40960

/* The path of this program: with /proc/self/exe its name would become "exe". */
static const char *self(void)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	MUST(n < 0);
	path[n] = '\0';
	return path;
}

static void pins(int n)
{
	for (int i = 0; i < n; i++)
		pin(SIZE);
}

/*
 * fork() without exec while pins are alive; the child copies from the inherited memory, allocates its
 * own, and ends.
 */
int scen_fork(int n)
{
	char *host = pin(SIZE), *dev = on_dev(SIZE);
	pid_t child;
	int status;

	(void)n;
	child = fork();
	if (!child) {
		void *own = NULL;

		if (cudaHostAlloc(&own, 8192, 0) || cudaMemcpy(dev, own, 4096, cudaMemcpyHostToDevice) ||
		    cudaFreeHost(own))
			_exit(1);
		_exit(0);
	}
	MUST(child < 0);
	MUST(waitpid(child, &status, 0) != child || status);
	MUST(cudaMemcpy(dev, host, SIZE, cudaMemcpyHostToDevice));
	copied(H2D, PINNED, SIZE);
	unpin(host);
	dev_free(dev);
	report("\"child\":%d,\"addr\":\"0x%lx\"", child, (unsigned long)host);
	return 0;
}

/* Exec over n live pins; the new program is this one, in another scenario. */
int scen_exec(int n)
{
	pins(n);
	report("\"live\":%d", n);
	execl(self(), "scen", "copies", (char *)NULL);
	return 5;
}

int scen_kill(int n)
{
	pins(n);
	report("\"live\":%d", n);
	kill(getpid(), SIGKILL);
	return 5;
}

/* n live pins, then a normal exit. */
int scen_exit(int n)
{
	pins(n);
	report("\"live\":%d", n);
	return 0;
}

static void leave_thread(void *arg)
{
	(void)arg;
	pthread_exit(NULL);
}

static void *die_inside(void *arg)
{
	void *p = NULL;

	cudaMallocHost(&p, SIZE);
	return arg;
}

/*
 * n threads end inside cudaMallocHost; then the function works again, in new threads that replace
 * them.
 */
int scen_threadexit(int n)
{
	pthread_t thread;
	void *result = NULL, *p = NULL;

	standin_hook("cudaMallocHost", leave_thread, NULL);
	for (int i = 0; i < n; i++) {
		result = &thread;
		MUST(pthread_create(&thread, NULL, die_inside, &result));
		MUST(pthread_join(thread, &result));
		MUST(result != NULL);
	}
	standin_hook("cudaMallocHost", NULL, NULL);
	for (int i = 0; i < n; i++) {
		MUST(cudaMallocHost(&p, SIZE));
		book.allocs++;
		book.pins++;
		unpin(p);
	}
	report("\"left\":%d", n);
	return 0;
}

static jmp_buf back;

static void jump_out(void *arg)
{
	(void)arg;
	longjmp(back, 1);
}

/*
 * A copy from a deeper frame than the copy that was left by longjmp(): it is not inside that one.
 */
static __attribute__((noinline)) void copy_from_below(char *dev, const char *host)
{
	volatile char pad[8192];

	pad[0] = pad[sizeof(pad) - 1] = 1;
	MUST(cudaMemcpy(dev, host, SIZE, cudaMemcpyHostToDevice));
	pad[1] = pad[0];
}

/*
 * Leaves cudaMemcpy n times by longjmp(), each time followed by a complete copy, every other one from
 * a deeper frame.
 */
int scen_longjmp(int n)
{
	char *host = pin(SIZE), *dev = on_dev(SIZE);
	volatile int i;

	for (i = 0; i < n; i++) {
		standin_hook("cudaMemcpy", jump_out, NULL);
		if (!setjmp(back)) {
			cudaMemcpy(dev, host, 100, cudaMemcpyHostToDevice);
			return 5;
		}
		standin_hook("cudaMemcpy", NULL, NULL);
		if (i % 2)
			copy_from_below(dev, host);
		else
			MUST(cudaMemcpy(dev, host, SIZE, cudaMemcpyHostToDevice));
		copied(H2D, PINNED, SIZE);
	}
	unpin(host);
	dev_free(dev);
	report("\"jumps\":%d", n);
	return 0;
}

/* n programs in about a second, each making one pin. */
int scen_execs(int n)
{
	extern char **environ;
	char *argv[] = { (char *)"scen", (char *)"exit", (char *)"1", NULL };
	struct timespec pause = { 0, 1000000000 / (n ? n : 1) };
	posix_spawn_file_actions_t quiet;
	int status;

	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", 1, 0);
	for (int i = 0; i < n; i++) {
		pid_t pid;

		MUST(posix_spawn(&pid, self(), &quiet, NULL, argv, environ));
		while (waitpid(-1, &status, WNOHANG) > 0)
			MUST(status);
		nanosleep(&pause, NULL);
	}
	while (wait(&status) > 0)
		MUST(status);
	report("\"children\":%d", n);
	return 0;
}

/* A child by fork and exec makes n pins; this process makes one before and ends only after it. */
int scen_child(int n)
{
	char count[16];
	pid_t child;
	int status;

	pins(1);
	snprintf(count, sizeof(count), "%d", n);
	child = fork();
	if (!child) {
		execl(self(), "scen", "exit", count, (char *)NULL);
		_exit(5);
	}
	MUST(child < 0);
	MUST(waitpid(child, &status, 0) != child || status);
	report("\"child\":%d,\"live\":1", child);
	return 0;
}

/* n pins and a copy, then it waits for a line; half of the pins are freed at the end. */
int scen_live(int n)
{
	char *dev = on_dev(SIZE), *host = NULL;

	pins(n - 1);
	host = pin(SIZE);
	MUST(cudaMemcpy(dev, host, SIZE, cudaMemcpyHostToDevice));
	copied(H2D, PINNED, SIZE);
	report("\"live\":%d", n);
	meet("waiting");
	unpin(host);
	return 0;
}

/* cudaDeviceReset frees everything; then the addresses are reused. */
int scen_reset(int n)
{
	void *mem = paged(SIZE);

	pins(n);
	on_dev(SIZE);
	MUST(cudaHostRegister(mem, SIZE, 0));
	book.allocs++;
	book.pins++;
	MUST(cudaDeviceReset());
	pins(1);
	report("\"live\":1");
	return 0;
}
