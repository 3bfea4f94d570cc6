// SPDX-License-Identifier: GPL-2.0-only
/*
 * caller.c: calls a library again and again as soon as it is loaded, and keeps its own accounts: when
 * each call began. From these follows what a daemon misses that sees the library at that moment
 * (tests/e2e/t_gaps.py, tests/bench/gaps.py).
 *
 *	caller [-w] MS LIBRARY|- FUNCTION...
 *
 * It loads the library (-: it is there from the start), then calls the functions in turn for MS
 * milliseconds, a round each 20 us. Each is called with an address and arguments that make it fail,
 * except for launches; "tt" is an allocation and its free in a stand-in of tt-metal. -w: it prints
 * "ready PID" and waits for a line, before it loads the library, and once more before the end. The
 * last line is
 *
 *	{"pid": N, "asked": NS, "loaded": NS, "calls": {"FUNCTION": [NS, ...], ...}}
 *
 * asked and loaded are CLOCK_MONOTONIC before and after the library was loaded, or 0 if it was there.
 * Times are those directly before a call.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tt/tt_ops.h"

#define FUNCTIONS_MAX 4
#define CALLS_MAX     (1 << 18)
#define ROUND_NS      20000

typedef long (*function)(void *, long, long, long, long, long, long, long);

static struct called {
	const char *name;
	function call;
	size_t n;
	uint64_t at[CALLS_MAX];
} called[FUNCTIONS_MAX];
static const struct standin_tt_ops *ops;
static char buffer[4096];

#ifdef CALLER_STATIC
int cudaHostUnregister(void *p);
int cudaMemcpy(void *dst, const void *src, size_t n, int kind);
int cudaLaunchKernelExC(const void *config, const void *func, void **args);
static const struct {
	const char *name;
	void *fn;
} own[] = { { "cudaHostUnregister", cudaHostUnregister },
	    { "cudaMemcpy", cudaMemcpy },
	    { "cudaLaunchKernelExC", cudaLaunchKernelExC } };
#else
static const struct {
	const char *name;
	void *fn;
} own[1];
#endif

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "caller: %s: %s\n", what, dlerror());
	exit(4);
}

static long tt_pair(void *p, long a, long b, long c, long d, long e, long f, long g)
{
	(void)p, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g;
	ops->free(ops->alloc(0, STANDIN_DRAM, 4096));
	return 0;
}

static void find(void *lib, struct called *c)
{
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (own[i].name && !strcmp(own[i].name, c->name))
			c->call = (function)own[i].fn;
	if (!strcmp(c->name, "tt")) {
		const struct standin_tt_ops *(*get)(void) = (__typeof__(get))dlsym(lib, "standin_tt_ops");

		must(get, "standin_tt_ops");
		ops = get();
		must(ops->open(1, false) == 1, "no device");
		c->call = tt_pair;
	}
	if (!c->call)
		c->call = (function)dlsym(lib, c->name);
	must(c->call, c->name);
}

static void wait_for_line(const char *say)
{
	printf("%s %d\n", say, getpid());
	fflush(stdout);
	while (getchar() != '\n' && !feof(stdin))
		;
}

static void call_for(uint64_t ns, size_t nr)
{
	uint64_t start = now_ns(), t = start;

	for (uint64_t round = 1; t - start < ns && called[0].n < CALLS_MAX; round++) {
		for (size_t i = 0; i < nr; i++) {
			called[i].at[called[i].n++] = now_ns();
			called[i].call(buffer, 0, 0, 99, 0, 0, 0, 0);
		}
		do
			t = now_ns();
		while (t - start < round * ROUND_NS);
	}
}

static void print_book(uint64_t asked, uint64_t loaded, size_t nr)
{
	printf("{\"pid\": %d, \"asked\": %lu, \"loaded\": %lu, \"calls\": {", getpid(), asked, loaded);
	for (size_t i = 0; i < nr; i++) {
		printf("%s\"%s\": [", i ? ", " : "", called[i].name);
		for (size_t k = 0; k < called[i].n; k++)
			printf("%s%lu", k ? "," : "", called[i].at[k]);
		printf("]");
	}
	printf("}}\n");
}

int main(int argc, char **argv)
{
	bool waits = argc > 1 && !strcmp(argv[1], "-w");
	int arg = 1 + waits;
	size_t nr = argc > arg + 2 ? (size_t)(argc - arg - 2) : 0;
	uint64_t asked = 0, loaded = 0;
	void *lib = RTLD_DEFAULT;

	if (!nr || nr > FUNCTIONS_MAX) {
		fprintf(stderr, "usage: caller [-w] MS LIBRARY|- FUNCTION...\n");
		return 2;
	}
	if (waits)
		wait_for_line("ready");
	if (strcmp(argv[arg + 1], "-")) {
		asked = now_ns();
		lib = dlopen(argv[arg + 1], RTLD_NOW | RTLD_GLOBAL);
		must(lib, "dlopen");
		loaded = now_ns();
	}
	for (size_t i = 0; i < nr; i++) {
		called[i].name = argv[arg + 2 + (int)i];
		find(lib, &called[i]);
	}
	call_for(strtoul(argv[arg], NULL, 10) * 1000000, nr);
	if (waits)
		wait_for_line("done");
	print_book(asked, loaded, nr);
	return 0;
}
