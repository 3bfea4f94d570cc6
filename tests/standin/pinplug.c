// SPDX-License-Identifier: GPL-2.0-only
/*
 * pinplug.c: a library that is linked with libcudart, as a Python extension module is, and loaded so
 * that no other object sees the runtime.
 */
#include <string.h>

#include "cuda_api.h"

int plug_go(void);

/* 0: a buffer was allocated, copied and freed, and its bytes arrived on the device. */
int plug_go(void)
{
	char *host = NULL, *dev = NULL, back[16];

	if (cudaHostAlloc((void **)&host, 1 << 20, 0) || cudaMalloc((void **)&dev, 1 << 20))
		return 1;
	memset(host, 7, 1 << 20);
	if (cudaMemcpyAsync(dev, host, 1 << 20, cudaMemcpyHostToDevice, NULL) ||
	    cudaMemcpy(back, dev, 16, cudaMemcpyDeviceToHost))
		return 2;
	return back[15] == 7 && !cudaFreeHost(host) && cudaFreeHost(host) ? 0 : 3;
}
