// SPDX-License-Identifier: GPL-2.0-only
/*
 * calls.c: what calls of CUDA cost the program that makes them. No header and no library of CUDA is
 * needed to build it.
 *
 *	calls LIBCUDA LIBCUDART
 *
 * It sets up a device, prints "ready PID", and for each line of its input, a number of
 * milliseconds, makes each call again and again for so long. Then it prints one line of JSON:
 * {"NAME": [calls, nanoseconds]}, without what is not there. Work that a call leaves to the device
 * is waited for every so often, outside of the time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SIZE  4096
#define BLOCK 65536
#define BATCH 256 /* calls between two waits */

#define DRIVER(D)                                                                                        \
	D(cuInit, (unsigned int flags))                                                                  \
	D(cuDevicePrimaryCtxRetain, (void **ctx, int dev))                                               \
	D(cuCtxSetCurrent, (void *ctx))                                                                  \
	D(cuModuleLoadData, (void **mod, const void *image))                                             \
	D(cuModuleGetFunction, (void **f, void *mod, const char *name))                                  \
	D(cuLaunchKernel,                                                                                \
	  (void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, \
	   unsigned int bz, unsigned int shmem, void *s, void **params, void **extra))                   \
	D(cuMemcpyHtoDAsync_v2, (uint64_t dst, const void *src, size_t n, void *s))                      \
	D(cuMemHostAlloc, (void **p, size_t n, unsigned int flags))                                      \
	D(cuMemFreeHost, (void *p))                                                                      \
	D(cuStreamQuery, (void *s))
#define RUNTIME(D)                                                                    \
	D(cudaSetDevice, (int dev))                                                   \
	D(cudaHostAlloc, (void **p, size_t n, unsigned int flags))                    \
	D(cudaFreeHost, (void *p))                                                    \
	D(cudaHostRegister, (void *p, size_t n, unsigned int flags))                  \
	D(cudaHostUnregister, (void *p))                                              \
	D(cudaMalloc, (void **p, size_t n))                                           \
	D(cudaMemcpy, (void *dst, const void *src, size_t n, int kind))               \
	D(cudaMemcpyAsync, (void *dst, const void *src, size_t n, int kind, void *s)) \
	D(cudaDeviceSynchronize, (void))                                              \
	D(cudaGetDevice, (int *dev))

static struct {
#define D(name, params) int(*name) params;
	DRIVER(D) RUNTIME(D)
#undef D
} cu;

static void *host, *device, *kernel;
static char *pages;

/* An empty kernel, for GPUs since 2018. */
static const char ptx[] = ".version 6.3\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n";

/* ---- one call each; 0: it worked ---- */
static int copy_async(void)
{
	return cu.cudaMemcpyAsync(device, host, SIZE, 1, NULL);
}

static int copy_pinned(void)
{
	return cu.cudaMemcpy(device, host, SIZE, 1);
}

static int copy_pageable(void)
{
	return cu.cudaMemcpy(device, pages, SIZE, 1);
}

static int host_alloc(void)
{
	void *p = NULL;

	return cu.cudaHostAlloc(&p, BLOCK, 0) || cu.cudaFreeHost(p);
}

static int host_register(void)
{
	return cu.cudaHostRegister(pages, BLOCK, 0) || cu.cudaHostUnregister(pages);
}

static int driver_copy_async(void)
{
	return cu.cuMemcpyHtoDAsync_v2((uintptr_t)device, host, SIZE, NULL);
}

static int driver_host_alloc(void)
{
	void *p = NULL;

	return cu.cuMemHostAlloc(&p, BLOCK, 0) || cu.cuMemFreeHost(p);
}

static int launch(void)
{
	return cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

/* Not probed: what stays the same. */
static int get_device(void)
{
	int dev;

	return cu.cudaGetDevice(&dev);
}

static struct {
	const char *name;
	int (*call)(void);
	int there;
} ops[] = {
	{ "cudaMemcpyAsync h2d 4 KiB", copy_async, 0 },
	{ "cudaMemcpy h2d 4 KiB pinned", copy_pinned, 0 },
	{ "cudaMemcpy h2d 4 KiB pageable", copy_pageable, 0 },
	{ "cudaHostAlloc + cudaFreeHost 64 KiB", host_alloc, 0 },
	{ "cudaHostRegister + cudaHostUnregister 64 KiB", host_register, 0 },
	{ "cuMemcpyHtoDAsync_v2 4 KiB", driver_copy_async, 0 },
	{ "cuMemHostAlloc + cuMemFreeHost 64 KiB", driver_host_alloc, 0 },
	{ "cuLaunchKernel", launch, 0 },
	{ "cudaGetDevice, not probed", get_device, 0 },
};
#define NR_OPS (sizeof(ops) / sizeof(*ops))

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void set_up(const char *driver, const char *runtime)
{
	void *lib = dlopen(driver, RTLD_NOW | RTLD_GLOBAL), *rt = dlopen(runtime, RTLD_NOW), *ctx, *mod;
	int err;

	if (!lib || !rt) {
		fprintf(stderr, "calls: %s\n", dlerror());
		exit(2);
	}
#define D(name, params) *(void **)&cu.name = dlsym(lib, #name);
	DRIVER(D)
#undef D
#define D(name, params) *(void **)&cu.name = dlsym(rt, #name);
	RUNTIME(D)
#undef D
	pages = aligned_alloc(4096, BLOCK);
	if (!pages || !cu.cudaSetDevice || !cu.cudaHostAlloc || !cu.cudaMalloc)
		exit(2);
	memset(pages, 1, BLOCK);
	err = cu.cudaSetDevice(0);
	if (!err)
		err = cu.cudaHostAlloc(&host, BLOCK, 0);
	if (!err)
		err = cu.cudaMalloc(&device, BLOCK);
	if (err) {
		fprintf(stderr, "calls: the runtime: error %d\n", err);
		exit(3);
	}
	if (cu.cuInit && !cu.cuInit(0) && cu.cuDevicePrimaryCtxRetain && !cu.cuDevicePrimaryCtxRetain(&ctx, 0))
		cu.cuCtxSetCurrent(ctx);
	if (!cu.cuModuleLoadData || !cu.cuModuleGetFunction)
		kernel = &kernel; /* a stand-in that launches nothing */
	else if (cu.cuModuleLoadData(&mod, ptx) || cu.cuModuleGetFunction(&kernel, mod, "nothing"))
		kernel = NULL;
	for (size_t i = 0; i < NR_OPS; i++)
		ops[i].there = (ops[i].call != launch || (kernel && cu.cuLaunchKernel)) && !ops[i].call();
	cu.cudaDeviceSynchronize();
}

static void measure(size_t i, uint64_t limit)
{
	uint64_t took = 0, calls = 0, until = now() + limit;

	while (now() < until) {
		uint64_t from = now();

		for (int n = 0; n < BATCH; n++)
			ops[i].there &= !ops[i].call();
		took += now() - from;
		calls += BATCH;
		cu.cudaDeviceSynchronize();
	}
	printf("\"%s\": [%lu, %lu]", ops[i].name, (unsigned long)calls, (unsigned long)took);
}

int main(int argc, char **argv)
{
	char line[64];

	if (argc != 3)
		return 2;
	set_up(argv[1], argv[2]);
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && atoi(line) > 0) {
		const char *comma = "";

		printf("{");
		for (size_t i = 0; i < NR_OPS; i++)
			if (ops[i].there) {
				printf("%s", comma);
				measure(i, (uint64_t)atoi(line) * 1000000);
				comma = ", ";
			}
		printf("}\n");
		fflush(stdout);
	}
	return 0;
}
