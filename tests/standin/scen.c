// SPDX-License-Identifier: GPL-2.0-only
/*
 * scen.c: one program with many small scenarios; each causes one thing and prints what it did as one
 * line of JSON.
 *
 *	scen [--wait] NAME [N]
 *
 * --wait: prints "ready PID" and waits for a line on stdin first. The exit status is 0 if the scenario
 * happened as intended. With SCEN_LINGER=MS in the environment it stays that long after its report, so
 * that a tracer can still read its mappings.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "scen.h"

struct book book;

static const struct {
	const char *name;
	int (*run)(int n);
	int n;
} scenarios[] = {
	{ "fork", scen_fork, 0 },	  { "exec", scen_exec, 3 },
	{ "kill", scen_kill, 3 },	  { "threadexit", scen_threadexit, 8 },
	{ "longjmp", scen_longjmp, 200 }, { "execs", scen_execs, 200 },
	{ "child", scen_child, 3 },	  { "live", scen_live, 4 },
	{ "reset", scen_reset, 3 },	  { "exit", scen_exit, 3 },
	{ "copies", scen_copies, 1 },	  { "defaults", scen_defaults, 1 },
	{ "batch", scen_batch, 300 },	  { "capture", scen_capture, 5 },
	{ "join", scen_join, 5 },	  { "graph", scen_graph, 5 },
	{ "errors", scen_errors, 1 },	  { "launches", scen_launches, 1000 },
	{ "hot", scen_hot, 2000 },	  { "unmap", scen_unmap, 1 },
	{ "batches", scen_batches, 16 },  { "maps", scen_maps, 1 },
	{ "overlap", scen_overlap, 1 },	  { "old", scen_old, 1 },
	{ "heap", scen_heap, 1 },	  { "cow", scen_cow, 1 },
	{ "order", scen_order, 12 },
};

void *pin(size_t size)
{
	void *p = NULL;

	MUST(cudaHostAlloc(&p, size, cudaHostAllocDefault));
	book.allocs++;
	book.pins++;
	return p;
}

void *on_dev(size_t size)
{
	void *p = NULL;

	MUST(cudaMalloc(&p, size));
	book.allocs++;
	return p;
}

void *paged(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p == MAP_FAILED);
	memset(p, 1, size);
	return p;
}

void unpin(void *p)
{
	MUST(cudaFreeHost(p));
	book.frees++;
}

void dev_free(void *p)
{
	MUST(cudaFree(p));
	book.frees++;
}

void copied(enum dir dir, enum mem mem, uint64_t bytes)
{
	book.copies[dir][mem]++;
	book.bytes[dir][mem] += bytes;
}

void report(const char *extra, ...)
{
	static const char *const dirs[] = { "h2h", "h2d", "d2h", "d2d" };
	static const char *const mems[] = { "pinned", "pageable", "managed", "none" };
	va_list ap;

	printf("{\"pid\":%d,", getpid());
	if (extra) {
		va_start(ap, extra);
		vprintf(extra, ap);
		va_end(ap);
		printf(",");
	}
	printf("\"transfers\":{");
	for (int d = 0; d < DIRS; d++) {
		printf("%s\"%s\":{", d ? "," : "", dirs[d]);
		for (int m = 0; m < MEMS; m++)
			printf("%s\"%s\":[%lu,%lu]", m ? "," : "", mems[m], book.copies[d][m], book.bytes[d][m]);
		printf("}");
	}
	printf("},\"allocs\":%lu,\"frees\":%lu,\"pins\":%lu,\"kernels\":%lu,\"graphs\":%lu,\"graph_copies\":%lu,"
	       "\"captured\":%lu,"
	       "\"failed\":%lu}\n",
	       book.allocs, book.frees, book.pins, book.kernels, book.graphs, book.graph_copies, book.captured,
	       book.failed);
	fflush(stdout);
	if (getenv("SCEN_LINGER"))
		usleep((useconds_t)atoi(getenv("SCEN_LINGER")) * 1000);
}

void meet(const char *line)
{
	char answer[16];

	printf("%s\n", line);
	fflush(stdout);
	if (!fgets(answer, sizeof(answer), stdin))
		exit(3);
}

int main(int argc, char **argv)
{
	bool wait = argc > 1 && !strcmp(argv[1], "--wait");
	char ready[32];

	argv += wait;
	argc -= wait;
	for (size_t i = 0; argc > 1 && i < sizeof(scenarios) / sizeof(*scenarios); i++) {
		if (strcmp(scenarios[i].name, argv[1]))
			continue;
		snprintf(ready, sizeof(ready), "ready %d", getpid());
		if (wait)
			meet(ready);
		return scenarios[i].run(argc > 2 ? atoi(argv[2]) : scenarios[i].n);
	}
	fprintf(stderr, "usage: scen [--wait] NAME [N]\n");
	return 2;
}
