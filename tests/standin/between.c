// SPDX-License-Identifier: GPL-2.0-only
/*
 * between.c: a library between the runtime and the driver, like those that limit a program's device
 * memory. It is called libcuda.so.1, loads the driver ($BETWEEN_DRIVER), and gives the runtime its own
 * functions for the copies. It is built without frame pointers. KNOWN: its functions have the driver's
 * names, so that they are probed; else they have no names. JUMPS: they end in a jump to the driver's
 * function.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONCAT(a, b) a##b
#ifdef KNOWN
#define FN(name) name
#else
#define FN(name) CONCAT(my_, name)
#endif
#define OWN __attribute__((noinline))
#ifdef JUMPS
#define HAND_ON(call) return call
#else
/* Like libraries that write a log: an unused array, and some work after the call. */
#define HAND_ON(call)                                          \
	do {                                                   \
		char line[200];                                \
		int err;                                       \
		__asm__ volatile("" : : "r"(line) : "memory"); \
		err = call;                                    \
		__asm__ volatile("" : : "r"(line) : "memory"); \
		return err;                                    \
	} while (0)
#endif

OWN int FN(cuMemcpyHtoD_v2)(uint64_t dst, const void *src, size_t n);
OWN int FN(cuMemcpyHtoDAsync_v2)(uint64_t dst, const void *src, size_t n, void *stream);
OWN int FN(cuMemcpyDtoHAsync_v2)(void *dst, uint64_t src, size_t n, void *stream);
int cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags, int *status);

static struct {
	int (*h2d)(uint64_t, const void *, size_t);
	int (*h2d_async)(uint64_t, const void *, size_t, void *);
	int (*d2h_async)(void *, uint64_t, size_t, void *);
} next;

OWN int FN(cuMemcpyHtoD_v2)(uint64_t dst, const void *src, size_t n)
{
	HAND_ON(next.h2d(dst, src, n));
}

OWN int FN(cuMemcpyHtoDAsync_v2)(uint64_t dst, const void *src, size_t n, void *stream)
{
	HAND_ON(next.h2d_async(dst, src, n, stream));
}

OWN int FN(cuMemcpyDtoHAsync_v2)(void *dst, uint64_t src, size_t n, void *stream)
{
	HAND_ON(next.d2h_async(dst, src, n, stream));
}

static const struct {
	const char *name;
	void *mine, *next;
} mine[] = {
	{ "cuMemcpyHtoD_v2", (void *)FN(cuMemcpyHtoD_v2), &next.h2d },
	{ "cuMemcpyHtoDAsync_v2", (void *)FN(cuMemcpyHtoDAsync_v2), &next.h2d_async },
	{ "cuMemcpyDtoHAsync_v2", (void *)FN(cuMemcpyDtoHAsync_v2), &next.d2h_async },
};

static void *lib;

__attribute__((constructor)) static void begin(void)
{
	const char *driver = getenv("BETWEEN_DRIVER");

	lib = driver ? dlopen(driver, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!lib)
		abort();
	for (int i = 0; i < 3; i++)
		if (!(*(void **)mine[i].next = dlsym(lib, mine[i].name)))
			abort();
}

int cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags, int *status)
{
	static const char *const versions[] = { "_v4", "_v3", "_v2", "" };
	char name[96];

	(void)version, (void)flags, (void)status;
	*fn = NULL;
	for (int v = 0; v < 4 && !*fn; v++) {
		snprintf(name, sizeof(name), "%s%s", symbol, versions[v]);
		for (int i = 0; i < 3; i++)
			if (!strcmp(name, mine[i].name))
				*fn = mine[i].mine;
		if (!*fn)
			*fn = dlsym(lib, name);
	}
	return *fn ? 0 : 500;
}
