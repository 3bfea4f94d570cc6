/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernels.h: the kernels of tests/memtrace/kernels.cu with their inputs and expected results. The
 * caller launches them.
 */
#ifndef STANDIN_GPU_KERNELS_H
#define STANDIN_GPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_io {
	void *ctx;
	uint64_t (*alloc)(void *ctx, size_t n); /* 0: none left */
	void (*release)(void *ctx, uint64_t dev);
	void (*put)(void *ctx, uint64_t dev, const void *host, size_t n);
	void (*get)(void *ctx, void *host, uint64_t dev, size_t n);
	/* params: pointers to the n parameters. Returns 0 or an error. It does not wait. */
	int (*launch)(void *ctx, const char *kernel, const uint32_t *grid, const uint32_t *block, uint32_t dyn,
		      void **params, unsigned int n);
	uint64_t (*variable)(void *ctx, const char *name); /* 0: not there */
};

struct kernel_test {
	const char *name;
	/* Returns 0; -1: wrong results; else the error of launch(). sum: a checksum of the results. */
	int (*run)(const struct kernel_io *io, const char *name, uint64_t *sum);
};
extern const struct kernel_test kernel_tests[];
extern const size_t nr_kernel_tests;

#endif
