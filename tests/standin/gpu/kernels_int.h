/* SPDX-License-Identifier: GPL-2.0-only */
/* kernels_int.h: functions for tests of kernels. */
#ifndef STANDIN_GPU_KERNELS_INT_H
#define STANDIN_GPU_KERNELS_INT_H

#include "kernels.h"

#define N	 1000 /* no multiple of a warp or a block */
#define MAX_BUFS 8

struct buf {
	void *host;
	uint64_t dev;
	size_t n;
};
struct run {
	const struct kernel_io *io;
	struct buf b[MAX_BUFS];
	unsigned int nr;
	bool bad;
	uint64_t sum;
};

/* Makes a buffer of n bytes, zeroed, on host and device. */
void *kernel_make(struct run *r, size_t n);
/* Copies all buffers to the device, runs the kernel, and copies all back. */
int kernel_launch3(struct run *r, const char *name, const uint32_t *grid, const uint32_t *block, uint32_t dyn,
		   void **params, unsigned int n);
int kernel_launch(struct run *r, const char *name, uint32_t gx, uint32_t bx, uint32_t dyn, void **params,
		  unsigned int n);
void kernel_add_up(struct run *r, const void *data, size_t n);
int kernel_done(struct run *r, int err, uint64_t *sum);

#define BEGIN()                                                    \
	struct run r = { .io = io, .sum = 0xcbf29ce484222325ull }; \
	int n = N, err
#define EACH(i, count) for (int i = 0; i < (int)(count); i++)
#define WANT(cond)     (r.bad |= !(cond))
#define P(...)	       (void *[]){ __VA_ARGS__ }, sizeof((void *[]){ __VA_ARGS__ }) / sizeof(void *)
#define END(out)                                                            \
	do {                                                                \
		if (!err)                                                   \
			kernel_add_up(&r, out, sizeof(*(out)) * (size_t)n); \
		return kernel_done(&r, err, sum);                           \
	} while (0)

int kernel_any_address(const struct kernel_io *io, const char *name, uint64_t *sum);
int kernel_all_widths(const struct kernel_io *io, const char *name, uint64_t *sum);
int kernel_any_local(const struct kernel_io *io, const char *name, uint64_t *sum);

#endif
