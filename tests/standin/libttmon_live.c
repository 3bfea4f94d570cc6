// SPDX-License-Identifier: GPL-2.0-only
/*
 * libttmon_live.c: requests the daemon to trace it (-t SOCKET), then runs steps. Each step copies from
 * an unpinned buffer and ends with a checkpoint, at which live advice is followed: the buffer is
 * pinned in place. Prints one line of JSON.
 *
 *	libttmon_live [-w] SOCKET	-w: prints "ready PID" first, then waits for a line; uses a new
 *					buffer every EPOCH steps, since the kind of a buffer that is older than the daemon's
 *					probes is unknown
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <ttmon/client.h>

#include "cuda_api.h"

#define SIZE  (4u << 20)
#define STEPS 400
#define LATE  4000 /* with -w: the service may take seconds to start */
#define EPOCH 40

static void *buffer, *device;
static unsigned int pinned_at, pins, others, step;
static int in_checkpoint, outside;

static void move(void *ctx, const struct ttmon_live_advice *a)
{
	outside += !in_checkpoint || ctx != &device;
	if (a->kind != TTMON_LIVE_PIN || a->addr > (uint64_t)(uintptr_t)buffer ||
	    (uint64_t)(uintptr_t)buffer >= a->addr + a->size) {
		others++;
		return;
	}
	if (!pins++ && !cudaHostRegister(buffer, SIZE, cudaHostRegisterDefault))
		pinned_at = step;
}

static int new_buffer(void)
{
	if (buffer) {
		TTMON_FREE(buffer);
		munmap(buffer, SIZE);
	}
	buffer = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer == MAP_FAILED)
		return -1;
	memset(buffer, 1, SIZE);
	TTMON_ALLOC(buffer, SIZE, "hot");
	return 0;
}

static double ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	int wait = argc > 1 && !strcmp(argv[1], "-w"), traced, alone;
	struct ttmon_advisor_opts opts = { .size = sizeof(opts) };
	struct ttmon_advisor *adv = NULL;
	struct ttmon_advisor_stats st;
	char why[256], line[16];
	double t;

	if (argc != 2 + wait)
		return 2;
	opts.socket = argv[1 + wait];
	if (wait) {
		printf("ready %d\n", getpid());
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 2;
	}
	alone = ttmon_trace_self("/nonexistent/ttmond.sock");
	t = ms();
	traced = ttmon_trace_self(opts.socket);
	t = ms() - t;
	if (ttmon_advisor_open(NULL, 0, &opts, &adv, why, sizeof(why)) || ttmon_advisor_subscribe(adv))
		return 3;
	ttmon_advisor_on_checkpoint(adv, move, &device);
	if (new_buffer() || cudaMalloc(&device, SIZE))
		return 4;
	for (step = 1; step <= (wait ? LATE : STEPS) && !pins; step++) {
		if (wait && step % EPOCH == 0 && new_buffer())
			return 4;
		if (cudaMemcpy(device, buffer, SIZE, cudaMemcpyHostToDevice))
			return 4;
		usleep(5000);
		in_checkpoint = 1;
		ttmon_checkpoint(adv, "step");
		in_checkpoint = 0;
	}
	ttmon_advisor_get_stats(adv, &st);
	ttmon_advisor_close(adv);
	TTMON_FREE(buffer);
	printf("{\"pid\":%d,\"alone\":%d,\"traced\":%d,\"traced_ms\":%.1f,\"steps\":%u,\"pinned_at\":%u,\"others\":%u,"
	       "\"outside\":%d,\"lines\":%llu,"
	       "\"connects\":%llu}\n",
	       getpid(), alone, traced, t, step - 1, pinned_at, others, outside, (unsigned long long)st.live_lines,
	       (unsigned long long)st.connects);
	return 0;
}
