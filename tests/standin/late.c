// SPDX-License-Identifier: GPL-2.0-only
/*
 * late.c: a program without CUDA that loads runtimes while it runs, and calls each at once.
 *
 *	late [--wait] [--calls N] [--gap US] LIBRARY...
 *
 * Each library gets one cudaHostAlloc, N cudaMemcpyAsync of 64 bytes and one cudaFreeHost, right after
 * its dlopen. Prints one line of JSON. --wait: prints "ready PID" and waits for a line on stdin first.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_api.h"

static void *must(void *p)
{
	if (!p) {
		fprintf(stderr, "late: %s\n", dlerror());
		exit(4);
	}
	return p;
}

static int use(const char *path, int calls)
{
	void *lib = must(dlopen(path, RTLD_NOW | RTLD_LOCAL));
	__typeof__(cudaHostAlloc) *host_alloc = (__typeof__(host_alloc))must(dlsym(lib, "cudaHostAlloc"));
	__typeof__(cudaFreeHost) *free_host = (__typeof__(free_host))must(dlsym(lib, "cudaFreeHost"));
	int (*copy)(void *, const void *, size_t, int, void *) =
		(int (*)(void *, const void *, size_t, int, void *))must(dlsym(lib, "cudaMemcpyAsync"));
	char *p = NULL;
	int err = host_alloc((void **)&p, 8192, 0);

	for (int i = 0; i < calls && !err; i++)
		err = copy(p, p + 4096, 64, cudaMemcpyHostToHost, NULL);
	return err ? err : (int)free_host(p);
}

int main(int argc, char **argv)
{
	int calls = 10, gap = 0, libs = 0, i = 1;
	char line[16];
	bool wait = false;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--wait"))
			wait = true;
		else if (!strcmp(argv[i], "--calls") && i + 1 < argc)
			calls = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--gap") && i + 1 < argc)
			gap = atoi(argv[++i]);
		else
			return 2;
	}
	if (wait) {
		printf("ready %d\n", getpid());
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 3;
	}
	for (; i < argc; i++, libs++) {
		if (use(argv[i], calls))
			return 4;
		if (gap)
			usleep((useconds_t)gap);
	}
	printf("{\"pid\":%d,\"libs\":%d,\"copies\":%d,\"bytes\":%d,\"pins\":%d}\n", getpid(), libs, libs * calls,
	       libs * calls * 64, libs);
	return 0;
}
