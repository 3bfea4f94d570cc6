// SPDX-License-Identifier: GPL-2.0-only
/*
 * nodriver.c: calls only functions with CUDA's own names, so that it also runs with the real libcudart
 * (LD_LIBRARY_PATH). Without a driver every call of that library fails with 35, and this program
 * counts them: one line of JSON, "errors" by function and code.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cuda_api.h"

static const char *comma = "";

/*
 * Counts one function that was called n times with the same result; any other case shows as code -1.
 */
static void book(const char *fn, const int *errs, int n)
{
	int same = 1;

	for (int i = 1; i < n; i++)
		same &= errs[i] == errs[0];
	printf("%s\"%s\":{\"%d\":%d}", comma, fn, same ? errs[0] : -1, n);
	comma = ",";
}

#define TIMES 3
#define CALL(fn, ...)                                     \
	do {                                              \
		int errs_[TIMES];                         \
		for (int i_ = 0; i_ < TIMES; i_++)        \
			errs_[i_] = (int)fn(__VA_ARGS__); \
		book(#fn, errs_, TIMES);                  \
	} while (0)

int main(void)
{
	static char buf[8192] __attribute__((aligned(4096)));
	void *p = NULL;
	size_t pitch;

	printf("{\"pid\":%d,\"errors\":{", getpid());
	CALL(cudaHostAlloc, &p, 4096, 0);
	CALL(cudaMallocHost, &p, 4096);
	CALL(cudaHostRegister, buf, 4096, 0);
	CALL(cudaHostUnregister, buf);
	CALL(cudaMallocManaged, &p, 4096, 1);
	CALL(cudaMalloc, &p, 4096);
	CALL(cudaMallocPitch, &p, &pitch, 100, 10);
	CALL(cudaMemcpy, buf, buf + 4096, 4096, cudaMemcpyHostToHost);
	CALL(cudaMemcpy2D, buf, 64, buf + 4096, 64, 64, 16, cudaMemcpyHostToHost);
	CALL(cudaMemcpyAsync, buf, buf + 4096, 64, cudaMemcpyHostToHost, NULL);
	printf("}}\n");
	return 0;
}
