// SPDX-License-Identifier: GPL-2.0-only
/*
 * steps.c: a program with periods (TTMON_CHECKPOINT of <ttmon/usdt.h>). Prints one line of JSON.
 * Modes:
 *
 *	steps train N		N steps of a training loop, each ended by "step": a batch in each, an evaluation
 *				buffer in each 10th, the weights only in the first, a pinned buffer in none
 *	steps flood N		N checkpoints and nothing else
 *	steps hostile		invalid labels
 *	steps self SOCKET	requests the daemon to trace it, then trains at once
 *	steps wait N		"ready PID", a line of standard input, then trains
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <ttmon/usdt.h>

#include "cuda_api.h"

#define BATCH	(256u << 10)
#define WEIGHTS (1u << 20)
#define EVAL	(64u << 10)

static char *pool;

static void fail(const char *what)
{
	fprintf(stderr, "steps: %s\n", what);
	exit(4);
}

static __attribute__((noinline)) char *load_weights(void)
{
	TTMON_ALLOC(pool, WEIGHTS, "weights");
	return pool;
}

static __attribute__((noinline)) char *load_batch(void)
{
	TTMON_ALLOC(pool + WEIGHTS, BATCH, "batch");
	return pool + WEIGHTS;
}

static __attribute__((noinline)) char *load_eval(void)
{
	TTMON_ALLOC(pool + WEIGHTS + BATCH, EVAL, NULL);
	return pool + WEIGHTS + BATCH;
}

static __attribute__((noinline)) void *alloc_cold(void)
{
	void *p = NULL;

	if (cudaHostAlloc(&p, 1u << 16, 0))
		fail("cudaHostAlloc");
	return p;
}

static void send_to(void *dev, const char *p, size_t n)
{
	if (cudaMemcpy(dev, p, n, cudaMemcpyHostToDevice))
		fail("cudaMemcpy");
}

static int train(int steps)
{
	char *weights, *batch, *eval;
	void *dev = NULL, *cold;

	pool = malloc(WEIGHTS + BATCH + EVAL);
	if (!pool || cudaMalloc(&dev, WEIGHTS))
		fail("no memory");
	memset(pool, 1, WEIGHTS + BATCH + EVAL);
	cold = alloc_cold();
	weights = load_weights();
	batch = load_batch();
	eval = load_eval();
	send_to(dev, weights, WEIGHTS);
	for (int i = 0; i < steps; i++) {
		send_to(dev, batch, BATCH / 2);
		send_to(dev, batch + BATCH / 2, BATCH / 2);
		if (i % 10 == 9)
			send_to(dev, eval, EVAL);
		TTMON_CHECKPOINT("step");
		if (i % 10 == 9)
			TTMON_CHECKPOINT("epoch");
	}
	printf("{\"pid\":%d,\"steps\":%d,\"batch\":\"0x%lx\"}\n", getpid(), steps, (unsigned long)batch);
	cudaFreeHost(cold);
	free(pool);
	return 0;
}

static int flood(int n)
{
	char label[16];

	for (int i = 0; i < n; i++) {
		snprintf(label, sizeof(label), "n%d", i);
		TTMON_CHECKPOINT(label);
		/* Not faster than the rings of a small test host are emptied: losses are tested elsewhere. */
		if (i % 1000 == 999)
			usleep(2000);
	}
	printf("{\"pid\":%d,\"sent\":%d}\n", getpid(), n);
	return 0;
}

/* Like the header, but without its check of the label. */
static void checkpoint_raw(const char *label)
{
#ifdef TTMON_USDT_NOP_
	__asm__ __volatile__(TTMON_USDT_NOP_ TTMON_USDT_NOTE_("checkpoint", "8@%0") : : "r"(label) : "memory");
#else
	(void)label;
#endif
}

static int hostile(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *long_label = malloc(4097), *map;

	map = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!long_label || map == MAP_FAILED || munmap(map + page, (size_t)page))
		fail("no memory");
	TTMON_CHECKPOINT("\x1b[31m\x07\r\n\"\\\xff\xc3");
	memset(long_label, 'L', 4096);
	long_label[4096] = '\0';
	TTMON_CHECKPOINT(long_label);
	TTMON_CHECKPOINT(NULL);
	TTMON_CHECKPOINT("");
	checkpoint_raw((const char *)16);
	/* Labels at the end of the mapping, without a NUL: 63 bytes long, and 10. */
	memset(map, 'E', (size_t)page);
	TTMON_CHECKPOINT(map + page - 63);
	checkpoint_raw(map + page - 10);
	TTMON_CHECKPOINT("last");
	printf("{\"pid\":%d}\n", getpid());
	free(long_label);
	return 0;
}

static long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int self(const char *path)
{
	static const char request[] = "PUT /v1/targets?self HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char reply[4096] = "", *status;
	size_t n = 0;
	ssize_t r;
	long t0 = now_us();

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sun, sizeof(sun)) || write(fd, request, strlen(request)) < 0)
		fail("cannot ask the daemon");
	while (n < sizeof(reply) - 1 && (r = read(fd, reply + n, sizeof(reply) - 1 - n)) > 0)
		n += (size_t)r;
	close(fd);
	status = strchr(reply, ' ');
	fprintf(stderr, "steps: status %.3s after %ld us\n", status ? status + 1 : "?", now_us() - t0);
	return status && !strncmp(status, " 200", 4) ? train(5) : 5;
}

int main(int argc, char **argv)
{
	const char *mode = argc == 3 ? argv[1] : argc == 2 && !strcmp(argv[1], "hostile") ? argv[1] : "";

	if (!strcmp(mode, "train"))
		return train(atoi(argv[2]));
	if (!strcmp(mode, "flood"))
		return flood(atoi(argv[2]));
	if (!strcmp(mode, "hostile"))
		return hostile();
	if (!strcmp(mode, "self"))
		return self(argv[2]);
	if (!strcmp(mode, "wait")) {
		printf("ready %d\n", getpid());
		fflush(stdout);
		if (getchar() == EOF)
			return 0;
		return train(atoi(argv[2]));
	}
	fputs("usage: steps train N | flood N | hostile | self SOCKET | wait N\n", stderr);
	return 2;
}
