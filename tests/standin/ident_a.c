// SPDX-License-Identifier: GPL-2.0-only
/*
 * ident_a.c: the library of the ident programs (ident.h): the labels, and call sites in functions that
 * the compiler may inline.
 */
#include "ident.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void ident_note(const char *label, const void *p, size_t size)
{
	const char *path = getenv("IDENT_TRUTH");
	static FILE *f;

	pthread_mutex_lock(&lock);
	if (!f && path)
		f = fopen(path, "we");
	if (f) {
		fprintf(f, "0x%lx %zu %s\n", (unsigned long)p, size, label);
		fflush(f);
	}
	pthread_mutex_unlock(&lock);
}

void ident_copy(const void *p, size_t size, int times)
{
	static void *dev;

	pthread_mutex_lock(&lock);
	if (!dev && cudaMalloc(&dev, 8 << 20))
		exit(4);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < times; i++)
		if (cudaMemcpy(dev, p, size, cudaMemcpyHostToDevice))
			exit(4);
}

#define A_SITES(X)                                                                                      \
	X(a, 0, 64, 0, 0)                                                                               \
	X(a, 1, 64, 1, 9)                                                                               \
	X(a, 2, 128, 0, 1)                                                                              \
	X(a, 3, 20, 1, 7)                                                                               \
	X(a, 4, 36, 0, 0)                                                                               \
	X(a, 5, 512, 1, 20)                                                                             \
	X(a, 6, 8, 0, 3)                                                                                \
	X(a, 7, 100, 1, 0)                                                                              \
	X(a, 8, 40, 0, 40) X(a, 9, 64, 0, 5) X(a, 10, 64, 1, 0) X(a, 11, 256, 0, 12) X(a, 12, 12, 1, 2) \
		X(a, 13, 24, 0, 0) X(a, 14, 48, 0, 8) X(a, 15, 96, 1, 30)
A_SITES(IDENT_SITE)

/* Intermediate functions, which one optimisation keeps as functions and another does not. */
static void step(size_t batch, void (*const *v)(size_t), int n)
{
	for (int i = 0; i < n; i++)
		v[i](batch);
	IDENT_HERE(100);
}

static void phase(size_t batch, void (*const *v)(size_t), int n)
{
	step(batch, v, n / 2);
	step(batch, v + n / 2, n - n / 2);
	IDENT_HERE(101);
}

#define A_NAME(module, n, kib, scale, copies) module##_##n,
static void (*const sites[])(size_t) = { A_SITES(A_NAME) };

void ident_a_run(size_t batch)
{
	phase(batch, sites, 10);
	step(batch, sites + 10, 6);
	IDENT_HERE(102);
}
