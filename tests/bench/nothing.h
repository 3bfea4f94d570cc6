/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nothing.h: the functions of the library of nothing.c, and the loops in it that call them so many
 * times.
 */
#ifndef TTMON_BENCH_NOTHING_H
#define TTMON_BENCH_NOTHING_H

#include <stddef.h>

int cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, void *stream);
int cudaMemcpy(void *dst, const void *src, size_t bytes, int kind);
int cudaHostAlloc(void **ptr, size_t bytes, unsigned int flags);
int cudaLaunchKernel(const void *fn);
int cudaMemcpyPeerAsync(void *dst, int ddev, const void *src, int sdev, size_t bytes, void *stream);
int cuMemcpyPeerAsync(void *dst, void *dctx, void *src, void *sctx, size_t bytes, void *stream);

void nothing_async(unsigned int calls);
void nothing_sync(unsigned int calls);
void nothing_launch(unsigned int calls);
void nothing_nested(unsigned int calls);		     /* cudaMemcpyPeerAsync, which calls cuMemcpyPeerAsync */
void nothing_alloc(unsigned int calls, unsigned int frames); /* at least 2 frames */

#endif
