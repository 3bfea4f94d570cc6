// SPDX-License-Identifier: GPL-2.0-only
/*
 * workload.c: the program that `make demo` traces: a small training loop with one mistake of each
 * kind.
 *
 * In each step a large batch is copied to the device from pageable memory (it should be pinned), and
 * the weights from pinned memory (correct). A third buffer is pinned at start and never used (it
 * should not be pinned). Two more threads allocate and free pinned memory all the time. ttmond's
 * summary shows the function names of this file.
 *
 * Uses whichever CUDA runtime it finds: the stand-in it was linked with, or a real one through
 * LD_LIBRARY_PATH. Runs for a few seconds.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/standin/cuda_api.h"

#define MIB	     (1ul << 20)
#define BATCH	     (16 * MIB)
#define WEIGHTS	     (4 * MIB)
#define STAGING	     (32 * MIB)
#define STEPS	     250
#define STEP_NS	     10000000
#define CHURN_BLOCKS 4

/* These functions must appear in call stacks: they are not inlined, and not called as a tail call. */
#define NAMED static __attribute__((noinline))

static atomic_bool stop;
static atomic_ulong churned;

static void check(cudaError_t err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "workload: %s: error %d\n", what, (int)err);
	exit(1);
}

NAMED char *load_batch_pageable(void)
{
	char *batch = malloc(BATCH);

	if (!batch)
		exit(1);
	memset(batch, 1, BATCH);
	return batch;
}

NAMED void *alloc_weights_pinned(void)
{
	void *weights = NULL;

	check(cudaHostAlloc(&weights, WEIGHTS, cudaHostAllocDefault), "cudaHostAlloc");
	memset(weights, 2, WEIGHTS);
	return weights;
}

NAMED void *alloc_staging_never_used(void)
{
	void *staging = NULL;

	check(cudaMallocHost(&staging, STAGING), "cudaMallocHost");
	return staging;
}

NAMED void *alloc_on_device(size_t size)
{
	void *p = NULL;

	check(cudaMalloc(&p, size), "cudaMalloc");
	return p;
}

NAMED void upload_batch(void *dev, const char *batch)
{
	check(cudaMemcpy(dev, batch, BATCH, cudaMemcpyHostToDevice), "cudaMemcpy");
}

NAMED void upload_weights(void *dev, const void *weights, cudaStream_t stream)
{
	check(cudaMemcpyAsync(dev, weights, WEIGHTS, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
	check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

static void pause_ns(long ns)
{
	struct timespec ts = { 0, ns };

	nanosleep(&ts, NULL);
}

NAMED void *churn_small_pins(void *dev)
{
	void *block[CHURN_BLOCKS];

	while (!atomic_load(&stop)) {
		for (int i = 0; i < CHURN_BLOCKS; i++) {
			check(cudaHostAlloc(&block[i], (size_t)(i + 1) * 64 * 1024, 0), "cudaHostAlloc");
			check(cudaMemcpy(dev, block[i], 4096, cudaMemcpyHostToDevice), "cudaMemcpy");
		}
		pause_ns(2000000);
		for (int i = 0; i < CHURN_BLOCKS; i++)
			check(cudaFreeHost(block[i]), "cudaFreeHost");
		atomic_fetch_add(&churned, CHURN_BLOCKS);
	}
	return NULL;
}

NAMED void train(char *batch, void *weights)
{
	void *dev_batch = alloc_on_device(BATCH), *dev_weights = alloc_on_device(WEIGHTS);
	cudaStream_t stream;

	check(cudaStreamCreate(&stream), "cudaStreamCreate");
	for (int step = 0; step < STEPS; step++) {
		batch[step] = (char)step;
		upload_batch(dev_batch, batch);
		upload_weights(dev_weights, weights, stream);
		pause_ns(STEP_NS);
	}
	check(cudaStreamDestroy(stream), "cudaStreamDestroy");
	check(cudaFree(dev_batch), "cudaFree");
	check(cudaFree(dev_weights), "cudaFree");
}

int main(void)
{
	char *batch = load_batch_pageable();
	void *weights = alloc_weights_pinned(), *staging = alloc_staging_never_used();
	void *dev = alloc_on_device(2 * 4096);
	pthread_t churn[2];

	for (int i = 0; i < 2; i++)
		if (pthread_create(&churn[i], NULL, churn_small_pins, (char *)dev + (size_t)i * 4096))
			return 1;
	train(batch, weights);
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(churn[i], NULL);
	check(cudaFreeHost(weights), "cudaFreeHost");
	check(cudaFreeHost(staging), "cudaFreeHost");
	check(cudaFree(dev), "cudaFree");
	free(batch);
	printf("workload: %d steps: %lu MiB pageable and %lu MiB pinned to the device in each\n", STEPS, BATCH / MIB,
	       WEIGHTS / MIB);
	printf("workload: %lu MiB pinned and never used; %lu small blocks pinned and freed by two threads\n",
	       STAGING / MIB, atomic_load(&churned));
	return 0;
}
