// SPDX-License-Identifier: GPL-2.0-only
/*
 * usdt.c: a program that announces its own allocations to ttmond through the points of <ttmon/usdt.h>,
 * as does a child that it forks. Prints one line of JSON; "child" is the status from waitpid().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ttmon/usdt.h>

#include "cuda_api.h"

#define POOL (8u << 20)

static char *pool;

static __attribute__((noinline)) char *tensor_alloc(size_t offset, size_t size, const char *tag)
{
	char *p = pool + offset;

	TTMON_ALLOC(p, size, tag);
	return p;
}

static __attribute__((noinline)) void tensor_free(char *p)
{
	TTMON_FREE(p);
}

static __attribute__((noinline)) void step(void)
{
	TTMON_CHECKPOINT("step");
}

/* The same points as in the parent, which has executed them: the code is not newly mapped. */
static int run_child(void)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		tensor_free(tensor_alloc(3 << 20, 4096, "child"));
		step();
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

int main(void)
{
	void *dev = NULL;
	char *w, *x;
	int status;

	pool = malloc(POOL);
	if (!pool || cudaMalloc(&dev, POOL))
		return 4;
	memset(pool, 1, POOL);
	w = tensor_alloc(4096, 1 << 20, "weights");
	x = tensor_alloc(2 << 20, 1 << 20, NULL);
	for (int i = 0; i < 5; i++)
		if (cudaMemcpy(dev, w + 100, 1000, cudaMemcpyHostToDevice))
			return 4;
	if (cudaMemcpy(dev, x, 10, cudaMemcpyHostToDevice))
		return 4;
	tensor_free(x);
	step();
	status = run_child();
	printf("{\"pid\":%d,\"weights\":\"0x%lx\",\"x\":\"0x%lx\",\"child\":%d}\n", getpid(), (unsigned long)w,
	       (unsigned long)x, status);
	free(pool);
	return 0;
}
