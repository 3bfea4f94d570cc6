// SPDX-License-Identifier: GPL-2.0-only
/*
 * threads.c: `threads N ROUNDS`: N threads that exist at the same time. Each pins 64 KiB, copies it to
 * the device and frees it, ROUNDS times. Prints one line of JSON: the counts, and how long the threads
 * took together.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda_api.h"

#define SIZE (64u << 10)

static pthread_barrier_t all;
static int rounds;
static char *dev;

static void *work(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&all);
	for (int i = 0; i < rounds; i++) {
		char *p = NULL;

		if (cudaHostAlloc((void **)&p, SIZE, 0))
			exit(5);
		memset(p, i, SIZE);
		if (cudaMemcpy(dev, p, SIZE, cudaMemcpyHostToDevice) || cudaFreeHost(p))
			exit(5);
	}
	return NULL;
}

static unsigned long long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (unsigned long long)ts.tv_sec * 1000000 + (unsigned long long)ts.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[1]) : 0;
	pthread_t *t = calloc((size_t)n + 1, sizeof(*t));
	pthread_attr_t attr;
	unsigned long long began;

	rounds = argc > 2 ? atoi(argv[2]) : 0;
	if (n <= 0 || rounds <= 0 || !t || cudaMalloc((void **)&dev, SIZE))
		return 2;
	pthread_barrier_init(&all, NULL, (unsigned int)n + 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 << 10);
	began = now_us();
	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], &attr, work, NULL))
			return 3;
	pthread_barrier_wait(&all);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	printf("{\"pid\":%d,\"copies\":%d,\"us\":%llu}\n", getpid(), n * rounds, now_us() - began);
	return 0;
}
