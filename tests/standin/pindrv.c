// SPDX-License-Identifier: GPL-2.0-only
/*
 * pindrv.c: a program that uses the driver's interface, for libttmon-pin.so: hot, cold and short-lived
 * buffers, and copies that wait. Prints a line of JSON; exit status 4: an error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cu_api.h"
#include "standin.h"

#define SIZE (512ul << 10)
#define PAYS 8

#define MUST(cond)                                                            \
	do {                                                                  \
		if (cond) {                                                   \
			fprintf(stderr, "pindrv: %d: %s\n", __LINE__, #cond); \
			exit(4);                                              \
		}                                                             \
	} while (0)

static KEPT char *cold_alloc(void)
{
	char *p = NULL;

	MUST(cuMemHostAlloc((void **)&p, SIZE, 0) || !p);
	return p;
}

static KEPT char *short_alloc(void)
{
	char *p = NULL;

	MUST(cuMemAllocHost_v2((void **)&p, SIZE) || !p);
	return p;
}

int main(void)
{
	char *cold, *s[2], *back = malloc(SIZE);
	CUdeviceptr dev = 0;
	unsigned int flags = 9;
	CUcontext ctx;

	MUST(!back || cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx) ||
	     cuMemAlloc_v2(&dev, 8 * SIZE));
	cold = cold_alloc();
	memset(cold, 3, SIZE);
	MUST(cuMemHostGetFlags(&flags, cold) || flags);
	/* Two at a time are worth pinning. */
	for (int i = 0; i < 2; i++)
		s[i] = short_alloc();
	for (int i = 0; i < 2 * PAYS; i++)
		MUST(cuMemcpyHtoDAsync_v2(dev, s[i / PAYS], SIZE, NULL));
	MUST(cuMemFreeHost(s[0]) || cuMemFreeHost(s[1]));
	standin_cu_hold(1);
	for (int i = 0; i < 8; i++) {
		s[0] = short_alloc();
		memset(s[0], i + 1, SIZE);
		for (int k = 0; k < PAYS; k++)
			MUST(i % 2 ? cuMemcpyHtoDAsync_v2(dev + (unsigned int)i * SIZE, s[0], SIZE, NULL)
				   : cuMemcpyAsync(dev + (unsigned int)i * SIZE, (CUdeviceptr)(unsigned long)s[0], SIZE,
						   NULL));
		MUST(cuMemFreeHost(s[0]));
	}
	standin_cu_hold(0);
	for (int i = 0; i < 8; i++) {
		MUST(cuMemcpyDtoH_v2(back, dev + (unsigned int)i * SIZE, SIZE));
		for (unsigned long k = 0; k < SIZE; k++)
			MUST(back[k] != i + 1);
	}
	MUST(cold[0] != 3 || cold[SIZE - 1] != 3 || cuMemFreeHost(cold) || !cuMemFreeHost(cold));
	free(back);
	printf("{\"pid\":%d}\n", getpid());
	return 0;
}
