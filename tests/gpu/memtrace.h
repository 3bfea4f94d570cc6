/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace.h: what memtrace.c needs of a GPU, by two ways: memtrace_rt.c is the runtime, with the
 * kernels in the program; memtrace_drv.c is the driver, opened by name, with the kernels in a file of
 * PTX: the way that also goes on the stand-in GPU. Whatever fails ends the program with a line and
 * status 2.
 */
#ifndef GPU_MEMTRACE_H
#define GPU_MEMTRACE_H

#include <stddef.h>
#include <stdint.h>

#include "memtrace_cases.h"

enum kernel {
#define C(name, ...) K_##name,
	GLOBAL_CASES(C) SHARED_CASES(C) OTHER_KERNELS(C)
#undef C
		NR_KERNELS
};
extern const char *const kernel_names[NR_KERNELS];

#define MAX_CONTEXTS 8

/* CUDA's numbers of device attributes, the same by both ways. */
enum { GPU_SMS = 16, GPU_CC_MAJOR = 75, GPU_CC_MINOR = 76, GPU_NATIVE_ATOMICS = 86, GPU_HOST_POINTERS = 91 };

void gpu_init(const char *image);
/* How many contexts there can be: devices for the runtime, MAX_CONTEXTS for the driver. */
unsigned int gpu_contexts(void);
/*
 * From here on this thread uses context nr; it is made at the first time. *load_ms: how long its
 * kernels took to load, 0: they were there.
 */
void gpu_use(unsigned int nr, double *load_ms);
int gpu_attribute(int attr);
void gpu_describe(char *name, size_t n, int *driver);

uint64_t gpu_alloc(size_t n);
void gpu_free(uint64_t p);
/* Pinned and mapped: *host is where the program has it. */
uint64_t gpu_alloc_host(size_t n, void **host);
void gpu_free_host(void *host);
/*
 * Registers memory of the program's own, as libttmon-memtrace.so does with its channel. Error code of
 * CUDA.
 */
int gpu_register(void *p, size_t n, uint64_t *dev);
void gpu_unregister(void *p);
void gpu_put(uint64_t dev, const void *host, size_t n);
void gpu_get(void *host, uint64_t dev, size_t n);

void *gpu_stream(void);
void gpu_stream_free(void *stream);
void gpu_sync(void *stream);
void gpu_launch(void *stream, enum kernel k, const unsigned int grid[2], const unsigned int block[2], void **params);
/* What is launched between the two becomes a graph. */
void gpu_capture(void *stream);
void *gpu_captured(void *stream);
void gpu_replay(void *graph, void *stream);
void gpu_graph_free(void *graph);
/* Milliseconds of the GPU's time between the two. */
void gpu_time_begin(void *stream);
double gpu_time_end(void *stream);
void gpu_end(void);

#endif
