// SPDX-License-Identifier: GPL-2.0-only
/*
 * again.c: copies that look as if they were made inside another call, but are not.
 *
 *	again HOW ROUNDS
 *
 * Each round makes an asynchronous copy. After that has returned, it makes one more copy below the
 * place in the stack where the return address of the first one was.
 *
 *   same      one instruction calls cudaMemcpyAsync, then a function that calls cudaMemcpy
 *   over      that function has an array over the words that cudaMemcpyAsync left on the stack
 *   driver    as over, but it copies by cuMemcpyHtoD
 *   deep      cudaMemcpyAsync is called further down; then a function with such an array is called
 *   launch    as deep, with a kernel launch instead of the asynchronous copy
 *   none      only the asynchronous copy
 *
 * Prints one line of JSON: copies of BYTES to the device, synchronous and asynchronous ones.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_api.h"

#define BYTES 8192
#define FAR   1024 /* bytes of stack that hide the earlier contents */

typedef int (*copy_fn)(void *dst, const void *src, size_t n, int kind, void *stream);

static int (*driver_copy)(uint64_t dst, const void *src, size_t n);
static volatile int none;

#define LEAVE_AS_IT_IS(array) __asm__ volatile("" : : "r"(array) : "memory")

static __attribute__((noinline)) int inside(void *dst, const void *src, size_t n, int kind, void *stream)
{
	(void)stream;
	return (int)cudaMemcpy(dst, src, n, kind) + none;
}

static __attribute__((noinline)) int inside_over(void *dst, const void *src, size_t n, int kind, void *stream)
{
	char left[FAR];

	(void)stream;
	LEAVE_AS_IT_IS(left);
	return (int)cudaMemcpy(dst, src, n, kind) + none;
}

static __attribute__((noinline)) int inside_driver(void *dst, const void *src, size_t n, int kind, void *stream)
{
	char left[FAR];

	(void)stream, (void)kind;
	LEAVE_AS_IT_IS(left);
	return driver_copy((uintptr_t)dst, src, n) + none;
}

static __attribute__((noinline)) int further_down(void *dst, const void *src, size_t n, int kind, void *stream)
{
	char room[FAR / 2];

	LEAVE_AS_IT_IS(room);
	return (int)cudaMemcpyAsync(dst, src, n, kind, stream) + none;
}

static __attribute__((noinline)) int launch(void *dst, const void *src, size_t n, int kind, void *stream)
{
	dim3 one = { 1, 1, 1 };
	char room[FAR / 2];

	(void)dst, (void)src, (void)n, (void)kind;
	LEAVE_AS_IT_IS(room);
	return (int)cudaLaunchKernel((const void *)launch, one, one, NULL, 0, stream) + none;
}

/* The one instruction. */
static __attribute__((noinline)) int call(copy_fn fn, void *dst, const void *src)
{
	return fn(dst, src, BYTES, cudaMemcpyHostToDevice, NULL) + none;
}

static const struct {
	const char *name;
	copy_fn first, then;
} hows[] = {
	{ "none", (copy_fn)cudaMemcpyAsync, NULL },
	{ "same", (copy_fn)cudaMemcpyAsync, inside },
	{ "over", (copy_fn)cudaMemcpyAsync, inside_over },
	{ "driver", (copy_fn)cudaMemcpyAsync, inside_driver },
	{ "deep", further_down, inside_over },
	{ "launch", launch, inside_over },
};

int main(int argc, char **argv)
{
	unsigned int how = 0, rounds = argc > 2 ? (unsigned int)atoi(argv[2]) : 0;
	int err = 0, async = 0, sync = 0;
	void *host = NULL, *device = NULL;

	while (how < 6 && argc > 2 && strcmp(hows[how].name, argv[1]))
		how++;
	if (argc < 3 || how == 6)
		return 2;
	*(void **)&driver_copy = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemcpyHtoD_v2");
	if ((hows[how].then == inside_driver && !driver_copy) || cudaHostAlloc(&host, BYTES, 0) ||
	    cudaMalloc(&device, BYTES))
		return 3;
	for (unsigned int i = 0; i < rounds && !err; i++) {
		err = call(hows[how].first, device, host);
		async += hows[how].first != launch;
		if (hows[how].then && !err) {
			err = call(hows[how].then, device, host);
			sync++;
		}
	}
	cudaDeviceSynchronize();
	printf("{\"pid\":%d,\"async\":%d,\"sync\":%d,\"copies\":%d,\"bytes\":%d}\n", getpid(), async, sync,
	       async + sync, (async + sync) * BYTES);
	return err;
}
