// SPDX-License-Identifier: GPL-2.0-only
/*
 * pin.c SCENARIO: a program with pinned memory, for libttmon-pin.so. It does not know of that library;
 * each scenario checks that bytes, addresses and results are as without it. Prints one line of JSON;
 * exit status 4: a result differs from what CUDA documents.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_api.h"
#include "standin.h"

#define MIB  (1ul << 20)
#define LAST 256
#define PAYS 8 /* number of copies for which a buffer is worth pinning */

#define MUST(cond)                                                         \
	do {                                                               \
		if (cond) {                                                \
			fprintf(stderr, "pin: %d: %s\n", __LINE__, #cond); \
			exit(4);                                           \
		}                                                          \
	} while (0)

/* The function of this library, if it is preloaded, or of libttmon.so behind it. */
struct ttmon_advisor;
void ttmon_checkpoint(struct ttmon_advisor *adv, const char *label) __attribute__((weak));

static char *dev;
static cudaStream_t stream;

static char *host(size_t n, unsigned int flags)
{
	char *p = NULL;

	MUST(cudaHostAlloc((void **)&p, n, flags) || !p || (unsigned long)p % 512);
	return p;
}

static KEPT char *hot_alloc(size_t n)
{
	return host(n, cudaHostAllocDefault);
}

static KEPT char *cold_alloc(size_t n)
{
	return host(n, cudaHostAllocDefault);
}

static KEPT char *short_alloc(size_t n)
{
	char *p = NULL;

	MUST(cudaMallocHost((void **)&p, n) || !p);
	return p;
}

static KEPT char *flags_alloc(size_t n, unsigned int flags)
{
	return host(n, flags);
}

/* Copies bytes to the device and back: they must be the same. */
static void round_trip(char *p, size_t n, int seed)
{
	char *back = malloc(n);

	MUST(!back);
	memset(p, seed, n);
	p[n - 1] = (char)(seed + 1);
	MUST(cudaMemcpy(dev, p, n, cudaMemcpyHostToDevice) || cudaMemcpy(back, dev, n, cudaMemcpyDeviceToHost));
	MUST(memcmp(back, p, n));
	free(back);
}

static char *given[LAST];
static int nr_given;

/*
 * A training loop: two hot buffers, a large cold cache, short-lived buffers, and memory that a kernel
 * may read in place.
 */
static void train(void)
{
	char *hot[2] = { hot_alloc(2 * MIB), hot_alloc(2 * MIB + 12345) }, *cold[8], *odd[3];

	for (int i = 0; i < 8; i++) {
		cold[i] = cold_alloc(4 * MIB);
		memset(cold[i], i, 4 * MIB);
	}
	odd[0] = flags_alloc(MIB, cudaHostAllocMapped);
	odd[1] = flags_alloc(MIB, cudaHostAllocPortable);
	odd[2] = flags_alloc(MIB, cudaHostAllocWriteCombined);
	for (int step = 0; step < 40; step++) {
		char *s = short_alloc(MIB);

		round_trip(hot[step % 2], 2 * MIB, step);
		memset(s, step, MIB);
		MUST(cudaMemcpyAsync(dev + 4 * MIB, s, MIB, cudaMemcpyHostToDevice, stream));
		MUST(cudaMemcpyAsync(dev + 5 * MIB, s, MIB, cudaMemcpyHostToDevice, stream));
		MUST(cudaStreamSynchronize(stream) || cudaFreeHost(s));
	}
	for (int i = 0; i < 8; i++)
		MUST(cold[i][0] != i || cold[i][4 * MIB - 1] != i || cudaFreeHost(cold[i]));
	for (int i = 0; i < 3; i++)
		MUST(cudaFreeHost(odd[i]));
	MUST(cudaFreeHost(hot[0]) || cudaFreeHost(hot[1]));
	printf("{\"pid\":%d,\"hot\":2,\"cold\":8,\"short\":40,\"odd\":3}\n", getpid());
}

/*
 * CUDA is queried about a buffer that looks cold: in a first run (PIN_FIRST) not for its device
 * pointer, later for that too. The next buffers are from its call site.
 */
static void devptr(void)
{
	char *a = NULL, *b[3], *where = NULL;
	unsigned int flags = 99;

	for (int i = 0; i < 3; i++) {
		b[i] = cold_alloc(MIB);
		if (i)
			continue;
		a = b[0];
		memset(a, 5, MIB);
		MUST(cudaHostGetFlags(&flags, a) || flags);
		MUST(cudaHostRegister(a, 4096, 0) != cudaErrorHostMemoryAlreadyRegistered);
		MUST(cudaHostUnregister(a) != cudaErrorHostMemoryNotRegistered);
		MUST(!getenv("PIN_FIRST") && (cudaHostGetDevicePointer((void **)&where, a + 100, 0) || !where));
		MUST(a[0] != 5 || a[MIB - 1] != 5);
		MUST(cudaHostUnregister(a) != cudaErrorHostMemoryNotRegistered);
	}
	for (int i = 0; i < 3; i++)
		MUST(cudaFreeHost(b[i]));
	MUST(cudaFreeHost(a) == cudaSuccess);
	printf("{\"pid\":%d,\"addr\":\"0x%lx\"}\n", getpid(), (unsigned long)a);
}

/*
 * Memory that kernels read in place: one buffer is allocated as mapped; of the other the device
 * pointer is requested later. The wait, which may be a checkpoint, follows at once: the tracer can
 * only withdraw its advice for that buffer afterwards.
 */
static void in_place(const char *line, char *odd[2])
{
	char *where = NULL;

	if (!strncmp(line, "more", 4)) {
		odd[0] = cold_alloc(3 * MIB);
		odd[1] = flags_alloc(4 * MIB, cudaHostAllocMapped);
	}
	if (!strncmp(line, "ask", 3))
		MUST(cudaHostGetDevicePointer((void **)&where, odd[0], 0) || !where || cudaDeviceSynchronize());
}

/* Steps of the live scenario, by their names: copies, waits, checkpoints. */
static void live(void)
{
	char *a = hot_alloc(2 * MIB), *b = cold_alloc(MIB), *back = malloc(2 * MIB), *odd[2] = { NULL };
	char line[64];
	int bad = 0;

	memset(b, 9, MIB);
	MUST(!back);
	for (int i = 0; i < 2 * (int)MIB; i++)
		a[i] = (char)(i * 7);
	printf("ready %d 0x%lx\n", getpid(), (unsigned long)a);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "copy", 4))
			for (int i = 0; i < 20; i++)
				MUST(cudaMemcpyAsync(dev, a, 2 * MIB, cudaMemcpyHostToDevice, stream));
		MUST(cudaStreamSynchronize(stream));
		in_place(line, odd);
		if (!strncmp(line, "step", 4))
			MUST(cudaDeviceSynchronize());
		if (!strncmp(line, "mark", 4))
			ttmon_checkpoint(NULL, "batch");
		printf("done\n");
		fflush(stdout);
	}
	MUST(cudaMemcpy(back, dev, 2 * MIB, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 2 * (int)MIB; i++)
		bad += a[i] != (char)(i * 7) || back[i] != a[i];
	MUST(bad || b[0] != 9 || cudaFreeHost(a) || cudaFreeHost(b));
	MUST(odd[0] && (cudaFreeHost(odd[0]) || cudaFreeHost(odd[1])));
	free(back);
	printf("{\"pid\":%d}\n", getpid());
}

static int times_given(const char *p)
{
	int n = 0;

	for (int i = 0; i < nr_given; i++)
		n += given[i] == p;
	return n;
}

/* Copies from short-lived buffers: each is freed at once, and the next one filled. */
static void hurry(cudaStream_t where, int from, int to, size_t size)
{
	for (int i = from; i < to; i++) {
		char *s = short_alloc(size);

		memset(s, i + 1, size);
		for (int k = 0; k < PAYS; k++)
			MUST(cudaMemcpyAsync(dev + (size_t)i * size, s, size, cudaMemcpyHostToDevice, where));
		given[nr_given++] = s;
		MUST(cudaFreeHost(s));
	}
}

static void arrived(int n, size_t size)
{
	char *back = malloc(size);

	MUST(!back);
	for (int i = 0; i < n; i++) {
		MUST(cudaMemcpy(back, dev + (size_t)i * size, size, cudaMemcpyDeviceToHost));
		for (size_t k = 0; k < size; k++)
			MUST(back[k] != (char)(i + 1));
	}
	free(back);
}

/*
 * The device is held, so copies wait. Buffers with a copy in progress must not be reused; afterwards
 * they are.
 */
static void async(void)
{
	char *again, *first, *many[4];
	cudaStream_t other = NULL;
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;
	int reused = 0;

	/* So many are alive at once that a cache is allowed; then they are freed. */
	for (int i = 0; i < 4; i++)
		many[i] = short_alloc(MIB / 2);
	for (int i = 0; i < 4 * PAYS; i++)
		MUST(cudaMemcpyAsync(dev, many[i / PAYS], MIB / 2, cudaMemcpyHostToDevice, stream));
	MUST(cudaStreamSynchronize(stream));
	for (int i = 0; i < 4; i++)
		MUST(cudaFreeHost(many[i]));
	standin_hold(1);
	hurry(stream, 0, 8, MIB / 2);
	MUST(cudaStreamCreate(&other));
	hurry(other, 8, 12, MIB / 2);
	/* The stream is destroyed, its copies stay. */
	MUST(cudaStreamDestroy(other) || cudaPeekAtLastError());
	hurry(NULL, 12, 14, MIB / 2);
	standin_hold(0);
	arrived(14, MIB / 2);
	/* Now they are done. */
	for (int i = 0; i < 8; i++) {
		again = short_alloc(MIB / 2);
		reused += times_given(again);
		for (int k = 0; k < PAYS; k++)
			MUST(cudaMemcpy(dev, again, MIB / 2, cudaMemcpyHostToDevice));
		MUST(cudaFreeHost(again));
	}
	/* A captured copy reads its buffer at each launch, but this buffer has been freed. */
	first = short_alloc(MIB / 4);
	memset(first, 77, MIB / 4);
	MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	MUST(cudaMemcpyAsync(dev, first, MIB / 4, cudaMemcpyHostToDevice, stream));
	MUST(cudaStreamEndCapture(stream, &graph) || cudaGraphInstantiate(&exec, graph, 0) ||
	     cudaGraphLaunch(exec, stream) || cudaStreamSynchronize(stream));
	MUST(cudaFreeHost(first) || cudaPeekAtLastError());
	printf("{\"pid\":%d,\"reused\":%d}\n", getpid(), reused);
}

/*
 * Calls that fail as they would without the library: no memory once, then none at all, and a free that
 * fails.
 */
static void failing(void)
{
	char *p = NULL, *q[4];

	for (int i = 0; i < 4; i++)
		q[i] = short_alloc(MIB);
	for (int i = 0; i < 4 * PAYS; i++)
		MUST(cudaMemcpy(dev, q[i / PAYS], MIB, cudaMemcpyHostToDevice));
	for (int i = 0; i < 4; i++)
		MUST(cudaFreeHost(q[i]));
	standin_fail("cudaHostAlloc", cudaErrorMemoryAllocation, 1);
	MUST(cudaHostAlloc((void **)&p, 3 * MIB, 0) != (getenv("PIN_HELPS") ? cudaSuccess : cudaErrorMemoryAllocation));
	MUST(getenv("PIN_HELPS") && cudaGetLastError());
	if (getenv("PIN_HELPS"))
		MUST(cudaFreeHost(p));
	standin_fail("cudaHostAlloc", cudaErrorMemoryAllocation, -1);
	MUST(cudaHostAlloc((void **)&p, 5 * MIB, 0) != cudaErrorMemoryAllocation);
	MUST(cudaGetLastError() != cudaErrorMemoryAllocation);
	standin_fail("cudaHostAlloc", 0, 0);
	MUST(cudaHostAlloc(NULL, 5, 0) == cudaSuccess || cudaFreeHost(&p) == cudaSuccess || cudaFreeHost(NULL));
	p = host(7 * MIB, cudaHostAllocPortable);
	standin_fail("cudaFreeHost", cudaErrorIllegalAddress, 1);
	MUST(cudaFreeHost(p) != cudaErrorIllegalAddress || cudaFreeHost(p) || cudaFreeHost(p) == cudaSuccess);
	printf("{\"pid\":%d}\n", getpid());
}

static void *churn(void *arg)
{
	char *mine[8] = { NULL };
	unsigned int seed = (unsigned int)(unsigned long)arg;

	for (int i = 0; i < 2000; i++) {
		int k = rand_r(&seed) % 8;

		if (mine[k]) {
			MUST(mine[k][0] != (char)seed % 1 || cudaFreeHost(mine[k]));
			mine[k] = NULL;
			continue;
		}
		mine[k] = i % 3 ? short_alloc(64 << 10) : cold_alloc(100 << 10);
		mine[k][0] = 0;
		MUST(cudaMemcpyAsync(dev, mine[k], 1000, cudaMemcpyHostToDevice, stream));
	}
	for (int k = 0; k < 8; k++)
		MUST(mine[k] && cudaFreeHost(mine[k]));
	return NULL;
}

static void in_threads(void *(*fn)(void *))
{
	pthread_t t[4];

	for (unsigned long i = 0; i < 4; i++)
		MUST(pthread_create(&t[i], NULL, fn, (void *)(i + 1)));
	for (int i = 0; i < 4; i++)
		MUST(pthread_join(t[i], NULL));
}

static void threads(void)
{
	in_threads(churn);
	printf("{\"pid\":%d}\n", getpid());
}

/*
 * Buffers of any size, each filled with its own pattern while it is alive: no other thread may write
 * there.
 */
static void *fill(void *arg)
{
	unsigned int seed = (unsigned int)(unsigned long)arg;
	struct {
		char *p;
		size_t n;
		char with;
	} mine[12] = { 0 };

	for (int i = 0; i < 1500; i++) {
		int k = rand_r(&seed) % 12;

		if (mine[k].p) {
			for (size_t b = 0; b < mine[k].n; b++)
				MUST(mine[k].p[b] != mine[k].with);
			MUST(cudaFreeHost(mine[k].p));
			mine[k].p = NULL;
			continue;
		}
		mine[k].n = 1 + (size_t)rand_r(&seed) % (i % 4 ? 9000 : 90000);
		mine[k].with = (char)rand_r(&seed);
		mine[k].p = short_alloc(mine[k].n);
		/*
		 * A buffer that begins at a page without this library does so with it too, if it is large enough;
		 * programs read files into it past the page cache.
		 */
		MUST((unsigned long)mine[k].p % (mine[k].n < 4096 ? 512 : 4096));
		memset(mine[k].p, mine[k].with, mine[k].n);
		for (int c = 0; c < PAYS; c++)
			MUST(cudaMemcpyAsync(dev, mine[k].p, mine[k].n, cudaMemcpyHostToDevice, stream));
	}
	for (int k = 0; k < 12; k++)
		MUST(mine[k].p && cudaFreeHost(mine[k].p));
	return NULL;
}

/*
 * Pieces in threads; then pieces that outlive a reset of the device, which the program may still read
 * and free if this library handed them out.
 */
static void pieces(void)
{
	char *old[4], *p, *where = NULL, *base = NULL;

	in_threads(fill);
	p = hot_alloc(MIB);
	for (int c = 0; c < PAYS; c++)
		MUST(cudaMemcpyAsync(dev, p, MIB, cudaMemcpyHostToDevice, stream));
	MUST(cudaStreamSynchronize(stream));
	MUST(cudaHostGetDevicePointer((void **)&base, p, 0) || cudaHostGetDevicePointer((void **)&where, p + 4097, 0));
	MUST(where - base != 4097);
	MUST(cudaFreeHost(p));
	/* The memory is freed, though its pages may still be pinned. */
	MUST(cudaFreeHost(p) == cudaSuccess || cudaHostUnregister(p) == cudaSuccess);
	cudaGetLastError();
	for (int i = 0; i < 4; i++) {
		old[i] = short_alloc(20000);
		memset(old[i], i + 1, 20000);
	}
	MUST(cudaDeviceReset() || cudaMalloc((void **)&dev, 64 * MIB) || cudaStreamCreate(&stream));
	p = short_alloc(60000);
	memset(p, 99, 60000);
	for (int i = 0; i < 4 && getenv("PIN_OUTLIVES"); i++) {
		for (int b = 0; b < 20000; b++)
			MUST(old[i][b] != i + 1);
		MUST(cudaFreeHost(old[i]));
	}
	for (int b = 0; b < 60000; b++)
		MUST(p[b] != 99);
	MUST(cudaFreeHost(p));
	printf("{\"pid\":%d}\n", getpid());
}

/* A child that inherits both kinds of buffers, writes to them and ends; and a reset of the device. */
static void forks(void)
{
	char *a = hot_alloc(MIB), *b = cold_alloc(MIB);
	int status = 0;
	pid_t child;

	memset(a, 1, MIB);
	memset(b, 1, MIB);
	child = fork();
	if (!child) {
		memset(b, 2, MIB);
		MUST(cudaFreeHost(b));
		exit(0);
	}
	MUST(child < 0 || waitpid(child, &status, 0) != child || status);
	MUST(a[0] != 1 || b[0] != 1);
	MUST(cudaDeviceReset());
	a = hot_alloc(MIB);
	memset(a, 3, MIB);
	MUST(cudaFreeHost(a));
	printf("{\"pid\":%d}\n", getpid());
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} scenarios[] = { { "train", train },	  { "devptr", devptr },	  { "live", live },   { "async", async },
			  { "failing", failing }, { "threads", threads }, { "forks", forks }, { "pieces", pieces } };

	MUST(cudaMalloc((void **)&dev, 64 * MIB) || cudaStreamCreate(&stream));
	for (size_t i = 0; argc == 2 && i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (!strcmp(scenarios[i].name, argv[1])) {
			scenarios[i].run();
			return 0;
		}
	fprintf(stderr, "usage: pin train|devptr|live|async|failing|threads|forks|pieces\n");
	return 2;
}
