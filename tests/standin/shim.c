// SPDX-License-Identifier: GPL-2.0-only
/*
 * shim.c: libttmon-shim.so, loaded before the CUDA runtime (LD_PRELOAD). Calls pass through it and
 * still count as calls of the program. With SHIM_KEEP it returns memory of its own and calls no other
 * library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

int cudaHostAlloc(void **ptr, size_t size, unsigned int flags);

int cudaHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	int (*next)(void **, size_t, unsigned int) =
		(int (*)(void **, size_t, unsigned int))dlsym(RTLD_NEXT, "cudaHostAlloc");
	volatile int r;

	if (getenv("SHIM_KEEP")) {
		*ptr = malloc(size);
		return *ptr ? 0 : 2;
	}
	r = next ? next(ptr, size, flags) : 999;

	return r;
}
