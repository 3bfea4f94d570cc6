// SPDX-License-Identifier: GPL-2.0-only
/*
 * memtrace_rt.c: the runtime; the kernels are in the program, memtrace.cu. A context is a device's
 * primary one.
 */
#include "memtrace.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cuda_runtime_api.h>

/* What nvcc makes on the host's side; the runtime knows a kernel by the address. */
#define C(name, ...) void name(const void *in, void *out, unsigned int n);
GLOBAL_CASES(C)
SHARED_CASES(C)
OTHER_KERNELS(C)
#undef C
static const void *const kernels[NR_KERNELS] = {
#define C(name, ...) (const void *)name,
	GLOBAL_CASES(C) SHARED_CASES(C) OTHER_KERNELS(C)
#undef C
};

static struct {
	bool made;
	cudaEvent_t from, to;
} contexts[MAX_CONTEXTS];
static unsigned int current;

static void check(cudaError_t err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "memtrace: %s: %s\n", what, cudaGetErrorName(err));
	exit(2);
}
#define MUST(call) check(call, #call)

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void gpu_init(const char *image)
{
	(void)image;
}

unsigned int gpu_contexts(void)
{
	int n = 0;

	MUST(cudaGetDeviceCount(&n));
	return n < MAX_CONTEXTS ? (unsigned int)n : MAX_CONTEXTS;
}

/* A module is loaded when one of its kernels is first requested. */
void gpu_use(unsigned int nr, double *load_ms)
{
	struct cudaFuncAttributes attr;
	double from;

	if (load_ms)
		*load_ms = 0;
	current = nr;
	MUST(cudaSetDevice((int)nr));
	if (contexts[nr].made)
		return;
	MUST(cudaFree(NULL));
	from = now_ms();
	for (int k = 0; k < NR_KERNELS; k++)
		MUST(cudaFuncGetAttributes(&attr, kernels[k]));
	if (load_ms)
		*load_ms = now_ms() - from;
	MUST(cudaEventCreate(&contexts[nr].from));
	MUST(cudaEventCreate(&contexts[nr].to));
	contexts[nr].made = true;
}

int gpu_attribute(int attr)
{
	int v = 0;

	MUST(cudaDeviceGetAttribute(&v, (enum cudaDeviceAttr)attr, (int)current));
	return v;
}

void gpu_describe(char *name, size_t n, int *driver)
{
	struct cudaDeviceProp prop;

	MUST(cudaGetDeviceProperties(&prop, (int)current));
	snprintf(name, n, "%s", prop.name);
	MUST(cudaDriverGetVersion(driver));
}

uint64_t gpu_alloc(size_t n)
{
	void *p;

	MUST(cudaMalloc(&p, n));
	return (uint64_t)(uintptr_t)p;
}

void gpu_free(uint64_t p)
{
	MUST(cudaFree((void *)(uintptr_t)p));
}

static cudaError_t device_pointer(uint64_t *dev, void *host)
{
	void *p;
	cudaError_t err = cudaHostGetDevicePointer(&p, host, 0);

	if (!err)
		*dev = (uint64_t)(uintptr_t)p;
	return err;
}

uint64_t gpu_alloc_host(size_t n, void **host)
{
	uint64_t dev;

	MUST(cudaHostAlloc(host, n, cudaHostAllocMapped));
	MUST(device_pointer(&dev, *host));
	return dev;
}

void gpu_free_host(void *host)
{
	MUST(cudaFreeHost(host));
}

int gpu_register(void *p, size_t n, uint64_t *dev)
{
	cudaError_t err = cudaHostRegister(p, n, cudaHostRegisterPortable | cudaHostRegisterMapped);

	return (int)(err ? err : device_pointer(dev, p));
}

void gpu_unregister(void *p)
{
	MUST(cudaHostUnregister(p));
}

void gpu_put(uint64_t dev, const void *host, size_t n)
{
	/*
	 * From pageable memory it may return before the GPU has all, and streams that do not wait for this one
	 * run on.
	 */
	MUST(cudaMemcpy((void *)(uintptr_t)dev, host, n, cudaMemcpyHostToDevice));
	MUST(cudaStreamSynchronize(NULL));
}

void gpu_get(void *host, uint64_t dev, size_t n)
{
	MUST(cudaMemcpy(host, (const void *)(uintptr_t)dev, n, cudaMemcpyDeviceToHost));
}

void *gpu_stream(void)
{
	cudaStream_t s;

	MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	return s;
}

void gpu_stream_free(void *s)
{
	MUST(cudaStreamDestroy(s));
}

void gpu_sync(void *s)
{
	MUST(cudaStreamSynchronize(s));
}

void gpu_launch(void *s, enum kernel k, const unsigned int grid[2], const unsigned int block[2], void **params)
{
	MUST(cudaLaunchKernel(kernels[k], (dim3){ grid[0], grid[1], 1 }, (dim3){ block[0], block[1], 1 }, params, 0,
			      s));
}

void gpu_capture(void *s)
{
	MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
}

void *gpu_captured(void *s)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	MUST(cudaStreamEndCapture(s, &graph));
	MUST(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	MUST(cudaGraphDestroy(graph));
	return exec;
}

void gpu_replay(void *exec, void *s)
{
	MUST(cudaGraphLaunch(exec, s));
}

void gpu_graph_free(void *exec)
{
	MUST(cudaGraphExecDestroy(exec));
}

void gpu_time_begin(void *s)
{
	MUST(cudaEventRecord(contexts[current].from, s));
}

double gpu_time_end(void *s)
{
	float ms;

	MUST(cudaEventRecord(contexts[current].to, s));
	MUST(cudaEventSynchronize(contexts[current].to));
	MUST(cudaEventElapsedTime(&ms, contexts[current].from, contexts[current].to));
	return ms;
}

void gpu_end(void)
{
}
