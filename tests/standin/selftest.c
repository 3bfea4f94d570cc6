// SPDX-License-Identifier: GPL-2.0-only
/*
 * selftest.c: checks that the stand-ins behave as described: addresses, bytes, errors, reuse, delays.
 * Prints what fails; exit status 0 if nothing does.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "cuda_api.h"
#include "standin.h"

static int failures;

#define CHECK(cond)                                                    \
	do {                                                           \
		if (!(cond)) {                                         \
			printf("selftest: %d: %s\n", __LINE__, #cond); \
			failures++;                                    \
		}                                                      \
	} while (0)

#define N 300000

static void memory(void)
{
	char *host = NULL, *again = NULL, *big = NULL, *dev = NULL, *dev2 = NULL, *managed = NULL;
	unsigned char vec;

	CHECK(!cudaHostAlloc((void **)&host, N, 0) && !cudaMalloc((void **)&dev, N) && !cudaMalloc((void **)&dev2, N));
	CHECK(!cudaMallocManaged((void **)&managed, N, 1) && !cudaMallocHost((void **)&big, 5 << 20));
	/*
	 * Device addresses cannot be read. mincore() accepts a reservation without pages; a fault would end
	 * this program.
	 */
	CHECK(!mincore((void *)((unsigned long)dev & ~4095ul), 4096, &vec));
	for (int i = 0; i < N; i++)
		host[i] = (char)(i * 7);
	CHECK(!cudaMemcpy(dev, host, N, cudaMemcpyHostToDevice));
	CHECK(!cudaMemcpyAsync(dev2 + 10, dev + 5, N - 10, cudaMemcpyDeviceToDevice, NULL));
	CHECK(!cudaMemcpy(big, dev2 + 10, N - 10, cudaMemcpyDefault));
	CHECK(!memcmp(big, host + 5, N - 10));
	CHECK(!cudaMemcpy2D(managed, 200, dev, 300, 100, 50, cudaMemcpyDeviceToHost));
	CHECK(!memcmp(managed + 49 * 200, host + 49 * 300, 100));
	CHECK(!cudaMemset(dev, 9, 5000) && !cudaMemcpy(managed, dev, 5000, cudaMemcpyDeviceToHost) &&
	      managed[4999] == 9);
	CHECK(!cudaFreeHost(host) && !cudaHostAlloc((void **)&again, N, 0) && again == host);
	CHECK(cudaFreeHost(dev) == cudaErrorInvalidValue && cudaFree(again) == cudaErrorInvalidValue);
	CHECK(!cudaFreeHost(again) && cudaFreeHost(again) == cudaErrorInvalidValue);
	CHECK(!cudaFree(dev) && !cudaFree(dev2) && !cudaFree(managed) && !cudaFreeHost(big) && !cudaFree(NULL));
	CHECK(cudaMemcpy(dev, dev, 1, (enum cudaMemcpyKind)5) == cudaErrorInvalidMemcpyDirection);
}

static void registrations(void)
{
	static char mine[8192] __attribute__((aligned(4096)));

	CHECK(cudaHostUnregister(mine) == cudaErrorHostMemoryNotRegistered);
	CHECK(!cudaHostRegister(mine, 8192, 0));
	CHECK(cudaHostRegister(mine, 8192, 0) == cudaErrorHostMemoryAlreadyRegistered);
	CHECK(!cudaHostUnregister(mine) && !cudaHostRegister(mine, 4096, 0) && !cudaDeviceReset());
	CHECK(cudaHostUnregister(mine) == cudaErrorHostMemoryNotRegistered);
}

static void results(void)
{
	struct timespec a, b;
	void *p = NULL;

	standin_fail("cudaMalloc", 2, 2);
	CHECK(cudaMalloc(&p, 10) == 2 && cudaMalloc(&p, 10) == 2 && !cudaMalloc(&p, 10) && !cudaFree(p));
	standin_fail_next(46);
	CHECK(cudaSetDevice(0) == 46 && !cudaSetDevice(0));
	standin_delay("cudaFree", 20000);
	clock_gettime(CLOCK_MONOTONIC, &a);
	CHECK(!cudaFree(NULL));
	clock_gettime(CLOCK_MONOTONIC, &b);
	CHECK((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec >= 20000000);
	standin_delay("cudaFree", 0);
}

/*
 * The program itself is deterministic: copies in a capturing stream move nothing until the graph is
 * launched.
 */
static void capture(void)
{
	char *dev = NULL, src[64], dst[64];
	cudaStream_t stream = NULL, joined = NULL;
	cudaEvent_t event = NULL;
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;

	memset(src, 1, sizeof(src));
	memset(dst, 0, sizeof(dst));
	CHECK(!cudaMalloc((void **)&dev, 64) && !cudaMemset(dev, 0, 64));
	CHECK(!cudaStreamCreate(&stream) && !cudaStreamCreate(&joined) && !cudaEventCreate(&event));
	CHECK(!cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CHECK(!cudaEventRecord(event, stream) && !cudaStreamWaitEvent(joined, event, 0));
	CHECK(!cudaMemcpyAsync(dev, src, 64, cudaMemcpyHostToDevice, joined) && !cudaStreamEndCapture(stream, &graph));
	CHECK(!cudaMemcpy(dst, dev, 64, cudaMemcpyDeviceToHost) && dst[0] == 0);
	CHECK(!cudaGraphInstantiate(&exec, graph, 0) && !cudaGraphLaunch(exec, stream));
	CHECK(!cudaMemcpyAsync(dst, dev, 64, cudaMemcpyDeviceToHost, joined) && dst[63] == 1);
	CHECK(!cudaGraphExecDestroy(exec) && !cudaGraphDestroy(graph) && !cudaFree(dev));
}

/* Held copies are made when a thread waits, and then their events are done. */
static void held(void)
{
	char *dev = NULL, src[64], dst[64];
	cudaEvent_t event = NULL;

	memset(src, 1, sizeof(src));
	CHECK(!cudaMalloc((void **)&dev, 64) && !cudaMemset(dev, 0, 64) && !cudaEventCreateWithFlags(&event, 2));
	standin_hold(1);
	CHECK(!cudaMemcpyAsync(dev, src, 64, cudaMemcpyHostToDevice, NULL) && !cudaEventRecord(event, NULL));
	CHECK(cudaEventQuery(event) == cudaErrorNotReady && cudaGetLastError() == cudaErrorNotReady &&
	      !cudaGetLastError());
	CHECK(!cudaMemcpy(dst, dev, 64, cudaMemcpyDeviceToHost) && dst[0] == 0);
	CHECK(!cudaDeviceSynchronize() && !cudaEventQuery(event));
	CHECK(!cudaMemcpy(dst, dev, 64, cudaMemcpyDeviceToHost) && dst[63] == 1);
	standin_hold(0);
	CHECK(!cudaEventDestroy(event) && !cudaFree(dev));
}

int main(void)
{
	memory();
	registrations();
	results();
	capture();
	/* Nested, the copies are made by the driver, which has its own queue. */
	if (!getenv("STANDIN_NESTED"))
		held();
	return failures != 0;
}
