// SPDX-License-Identifier: GPL-2.0-only
/*
 * real.c: a program on the real CUDA runtime that knows what it does, and prints it as one line of
 * JSON: calls that fail, allocations of each kind, and copies by direction and kind of memory.
 * Bytes are checked on the way.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#define SIZE 65536
#define MUST(call)                                                                                \
	do {                                                                                      \
		cudaError_t must_ = (call);                                                       \
		if (must_) {                                                                      \
			fprintf(stderr, "real: %d: %s: error %d\n", __LINE__, #call, (int)must_); \
			return 4;                                                                 \
		}                                                                                 \
	} while (0)

int main(void)
{
	char *host, *host2, *mine, *page, *dev, *dev2, *managed;
	cudaStream_t stream;
	void *none = NULL;
	int failed = 0;

	mine = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	page = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mine == MAP_FAILED || page == MAP_FAILED)
		return 4;
	memset(page, 1, SIZE);
	memset(mine, 2, SIZE);
	MUST(cudaStreamCreate(&stream));
	MUST(cudaHostAlloc((void **)&host, SIZE, cudaHostAllocDefault));
	MUST(cudaMallocHost((void **)&host2, SIZE));
	MUST(cudaHostRegister(mine, SIZE, cudaHostRegisterDefault));
	MUST(cudaMalloc((void **)&dev, SIZE));
	MUST(cudaMalloc((void **)&dev2, SIZE));
	MUST(cudaMallocManaged((void **)&managed, SIZE, cudaMemAttachGlobal));
	memset(host, 3, SIZE);

	MUST(cudaMemcpy(dev, host, 1000, cudaMemcpyHostToDevice));
	MUST(cudaMemcpy(dev, page, 2000, cudaMemcpyHostToDevice));
	MUST(cudaMemcpyAsync(dev, mine, 4000, cudaMemcpyHostToDevice, stream));
	MUST(cudaMemcpyAsync(host2, dev, 8000, cudaMemcpyDeviceToHost, stream));
	MUST(cudaMemcpy2D(dev2, 512, host, 256, 200, 16, cudaMemcpyHostToDevice));
	MUST(cudaMemcpy(dev2, dev, 100, cudaMemcpyDeviceToDevice));
	MUST(cudaMemcpy(page, dev, 50, cudaMemcpyDefault));
	MUST(cudaMemcpy(dev, host, 25, cudaMemcpyDefault));
	MUST(cudaStreamSynchronize(stream));
	if (host2[0] != 2 || host2[3999] != 2)
		return 5;
	failed += cudaHostUnregister(page) == cudaErrorHostMemoryNotRegistered;
	failed += cudaHostAlloc(&none, (size_t)1 << 60, 0) != cudaSuccess;
	if (failed != 2)
		return 6;

	MUST(cudaHostUnregister(mine));
	MUST(cudaFreeHost(host));
	MUST(cudaFreeHost(host2));
	MUST(cudaFree(dev));
	MUST(cudaFree(dev2));
	MUST(cudaFree(managed));
	MUST(cudaFree(NULL));
	printf("{\"pid\":%d,\"addr\":\"0x%lx\",\"pins\":3,\"allocs\":6,\"frees\":6,\"failed\":2,"
	       "\"transfers\":{\"h2d\":{\"pinned\":[4,%d],"
	       "\"pageable\":[1,2000]},\"d2h\":{\"pinned\":[1,8000],\"pageable\":[1,50]},\"d2d\":{\"none\":[1,"
	       "100]}}}\n",
	       getpid(), (unsigned long)(uintptr_t)host, 1000 + 4000 + 200 * 16 + 25);
	return 0;
}
