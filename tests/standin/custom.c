// SPDX-License-Identifier: GPL-2.0-only
/*
 * custom.c: allocates with libmyalloc and copies from what it got: for --alloc-fn
 * libmyalloc:my_alloc,size=2,out=ret --alloc-fn libmyalloc:my_alloc_out,size=2,out=1 --free-fn
 * libmyalloc:my_free,ptr=2. Prints one line of JSON.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cuda_api.h"
#include "myalloc.h"

#define SIZE (3u << 20)

int main(void)
{
	char *a = my_alloc(0, SIZE), *b = NULL, *c;
	void *dev = NULL;

	if (!a || my_alloc_out((void **)&b, SIZE / 2) || my_alloc(-1, 100) || cudaMalloc(&dev, SIZE))
		return 4;
	memset(a, 1, SIZE);
	memset(b, 1, SIZE / 2);
	if (cudaMemcpy(dev, a + 4096, 1000, cudaMemcpyHostToDevice) ||
	    cudaMemcpy(dev, b, 100, cudaMemcpyHostToDevice) || cudaMemcpy(dev, b + 100, 100, cudaMemcpyHostToDevice))
		return 4;
	printf("{\"pid\":%d,\"a\":\"0x%lx\",\"b\":\"0x%lx\",\"size\":%u,\"failed\":1}\n", getpid(), (unsigned long)a,
	       (unsigned long)b, SIZE);
	my_free(0, a);
	c = my_alloc(0, SIZE);
	return c ? 0 : 4;
}
