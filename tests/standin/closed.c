// SPDX-License-Identifier: GPL-2.0-only
/*
 * closed.c: a library that holds a CUDA runtime without symbols, as NVIDIA's libcublas.so.13 does
 * (CUDA 13.0: it imports dlopen, and has the names of the driver's library and of cuGetProcAddress in
 * its .rodata). For LD_PRELOAD: when it is loaded it pins SIZE bytes and copies them to the device
 * COPIES times, by functions that cuGetProcAddress gives.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#define SIZE   12288
#define COPIES 3

static int (*get)(const char *name, void **fn, int version, uint64_t flags, int *found);

static void *function(const char *name)
{
	void *fn = NULL;
	int found = 0;

	return get(name, &fn, 12000, 0, &found) ? NULL : fn;
}

__attribute__((constructor)) static void use(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *host = NULL, *ctx = NULL;
	int (*init)(unsigned int), (*retain)(void **, int), (*current)(void *);
	int (*pin)(void **, size_t, unsigned int), (*unpin)(void *), (*alloc)(uint64_t *, size_t), (*release)(uint64_t),
		(*copy)(uint64_t, const void *, size_t);
	uint64_t dev = 0;

	if (!lib)
		abort();
	*(void **)&get = dlsym(lib, "cuGetProcAddress_v2");
	if (!get)
		abort();
	*(void **)&init = function("cuInit");
	*(void **)&retain = function("cuDevicePrimaryCtxRetain");
	*(void **)&current = function("cuCtxSetCurrent");
	*(void **)&pin = function("cuMemHostAlloc");
	*(void **)&unpin = function("cuMemFreeHost");
	*(void **)&alloc = function("cuMemAlloc");
	*(void **)&release = function("cuMemFree");
	*(void **)&copy = function("cuMemcpyHtoD");
	if (init(0) || retain(&ctx, 0) || current(ctx) || pin(&host, SIZE, 0) || alloc(&dev, SIZE))
		abort();
	for (int i = 0; i < COPIES; i++)
		if (copy(dev, host, SIZE))
			abort();
	if (release(dev) || unpin(host))
		abort();
}
