// SPDX-License-Identifier: GPL-2.0-only
/*
 * memtrace_drv.c: the driver, opened by name; each context is a new one, on the devices by turns. No
 * header of CUDA is needed.
 */
#include "memtrace.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DRIVER(D)                                                                                        \
	D(cuInit, (unsigned int flags))                                                                  \
	D(cuDriverGetVersion, (int *version))                                                            \
	D(cuDeviceGet, (int *dev, int nr))                                                               \
	D(cuDeviceGetCount, (int *n))                                                                    \
	D(cuDeviceGetName, (char *name, int n, int dev))                                                 \
	D(cuDeviceGetAttribute, (int *v, int attr, int dev))                                             \
	D(cuCtxCreate_v2, (void **ctx, unsigned int flags, int dev))                                     \
	D(cuCtxDestroy_v2, (void *ctx))                                                                  \
	D(cuCtxSetCurrent, (void *ctx))                                                                  \
	D(cuModuleLoadDataEx, (void **mod, const void *image, unsigned int n, int *opts, void **vals))   \
	D(cuModuleUnload, (void *mod))                                                                   \
	D(cuModuleGetFunction, (void **f, void *mod, const char *name))                                  \
	D(cuMemAlloc_v2, (uint64_t * p, size_t n))                                                       \
	D(cuMemFree_v2, (uint64_t p))                                                                    \
	D(cuMemHostAlloc, (void **p, size_t n, unsigned int flags))                                      \
	D(cuMemFreeHost, (void *p))                                                                      \
	D(cuMemHostRegister_v2, (void *p, size_t n, unsigned int flags))                                 \
	D(cuMemHostUnregister, (void *p))                                                                \
	D(cuMemHostGetDevicePointer_v2, (uint64_t * dev, void *p, unsigned int flags))                   \
	D(cuMemcpyHtoD_v2, (uint64_t dst, const void *src, size_t n))                                    \
	D(cuMemcpyDtoH_v2, (void *dst, uint64_t src, size_t n))                                          \
	D(cuStreamCreate, (void **s, unsigned int flags))                                                \
	D(cuStreamDestroy_v2, (void *s))                                                                 \
	D(cuStreamSynchronize, (void *s))                                                                \
	D(cuStreamBeginCapture_v2, (void *s, int mode))                                                  \
	D(cuStreamEndCapture, (void *s, void **graph))                                                   \
	D(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags))             \
	D(cuGraphDestroy, (void *graph))                                                                 \
	D(cuGraphExecDestroy, (void *exec))                                                              \
	D(cuGraphLaunch, (void *exec, void *s))                                                          \
	D(cuLaunchKernel,                                                                                \
	  (void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, \
	   unsigned int bz, unsigned int shmem, void *s, void **params, void **extra))                   \
	D(cuEventCreate, (void **e, unsigned int flags))                                                 \
	D(cuEventRecord, (void *e, void *s))                                                             \
	D(cuEventSynchronize, (void *e))                                                                 \
	D(cuEventElapsedTime, (float *ms, void *from, void *to))                                         \
	D(cuGetErrorName, (int err, const char **name))

static struct {
#define D(name, params) int(*name) params;
	DRIVER(D)
#undef D
} cu;

static struct {
	void *ctx, *mod, *f[NR_KERNELS], *from, *to;
	int dev;
} contexts[MAX_CONTEXTS];
static unsigned int current;
static char *image;

static void check(int err, const char *what)
{
	const char *name = "?";

	if (!err)
		return;
	cu.cuGetErrorName(err, &name);
	fprintf(stderr, "memtrace: %s: %s\n", what, name);
	exit(2);
}
#define MUST(call) check(cu.call, #call)

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static char *slurp(const char *path)
{
	FILE *f = path ? fopen(path, "re") : NULL;
	char *text = calloc(1, 1 << 20);

	if (!f || !text || !fread(text, 1, (1 << 20) - 1, f)) {
		fprintf(stderr, "memtrace: %s cannot be read: --image FILE\n", path ? path : "the kernels");
		exit(2);
	}
	fclose(f);
	return text;
}

void gpu_init(const char *path)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib) {
		fprintf(stderr, "memtrace: %s\n", dlerror());
		exit(2);
	}
#define D(name, params)                                                     \
	*(void **)&cu.name = dlsym(lib, #name);                             \
	if (!cu.name) {                                                     \
		fprintf(stderr, "memtrace: the driver has no %s\n", #name); \
		exit(2);                                                    \
	}
	DRIVER(D)
#undef D
	image = slurp(path);
	MUST(cuInit(0));
}

unsigned int gpu_contexts(void)
{
	return MAX_CONTEXTS;
}

void gpu_use(unsigned int nr, double *load_ms)
{
	double from;
	int devices;

	if (load_ms)
		*load_ms = 0;
	current = nr;
	if (contexts[nr].ctx) {
		MUST(cuCtxSetCurrent(contexts[nr].ctx));
		return;
	}
	MUST(cuDeviceGetCount(&devices));
	MUST(cuDeviceGet(&contexts[nr].dev, (int)nr % devices));
	MUST(cuCtxCreate_v2(&contexts[nr].ctx, 0, contexts[nr].dev));
	from = now_ms();
	MUST(cuModuleLoadDataEx(&contexts[nr].mod, image, 0, NULL, NULL));
	for (int k = 0; k < NR_KERNELS; k++)
		MUST(cuModuleGetFunction(&contexts[nr].f[k], contexts[nr].mod, kernel_names[k]));
	if (load_ms)
		*load_ms = now_ms() - from;
	MUST(cuEventCreate(&contexts[nr].from, 0));
	MUST(cuEventCreate(&contexts[nr].to, 0));
}

int gpu_attribute(int attr)
{
	int v = 0;

	MUST(cuDeviceGetAttribute(&v, attr, contexts[current].dev));
	return v;
}

void gpu_describe(char *name, size_t n, int *driver)
{
	MUST(cuDeviceGetName(name, (int)n, contexts[current].dev));
	MUST(cuDriverGetVersion(driver));
}

uint64_t gpu_alloc(size_t n)
{
	uint64_t p;

	MUST(cuMemAlloc_v2(&p, n));
	return p;
}

void gpu_free(uint64_t p)
{
	MUST(cuMemFree_v2(p));
}

uint64_t gpu_alloc_host(size_t n, void **host)
{
	uint64_t dev;

	MUST(cuMemHostAlloc(host, n, 2));
	MUST(cuMemHostGetDevicePointer_v2(&dev, *host, 0));
	return dev;
}

void gpu_free_host(void *host)
{
	MUST(cuMemFreeHost(host));
}

int gpu_register(void *p, size_t n, uint64_t *dev)
{
	int err = cu.cuMemHostRegister_v2(p, n, 3);

	return err ? err : cu.cuMemHostGetDevicePointer_v2(dev, p, 0);
}

void gpu_unregister(void *p)
{
	MUST(cuMemHostUnregister(p));
}

void gpu_put(uint64_t dev, const void *host, size_t n)
{
	/*
	 * From pageable memory it may return before the GPU has all, and streams that do not wait for this one
	 * run on.
	 */
	MUST(cuMemcpyHtoD_v2(dev, host, n));
	MUST(cuStreamSynchronize(NULL));
}

void gpu_get(void *host, uint64_t dev, size_t n)
{
	MUST(cuMemcpyDtoH_v2(host, dev, n));
}

void *gpu_stream(void)
{
	void *s;

	MUST(cuStreamCreate(&s, 1));
	return s;
}

void gpu_stream_free(void *s)
{
	MUST(cuStreamDestroy_v2(s));
}

void gpu_sync(void *s)
{
	MUST(cuStreamSynchronize(s));
}

void gpu_launch(void *s, enum kernel k, const unsigned int grid[2], const unsigned int block[2], void **params)
{
	MUST(cuLaunchKernel(contexts[current].f[k], grid[0], grid[1], 1, block[0], block[1], 1, 0, s, params, NULL));
}

void gpu_capture(void *s)
{
	MUST(cuStreamBeginCapture_v2(s, 0));
}

void *gpu_captured(void *s)
{
	void *graph, *exec;

	MUST(cuStreamEndCapture(s, &graph));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	MUST(cuGraphDestroy(graph));
	return exec;
}

void gpu_replay(void *exec, void *s)
{
	MUST(cuGraphLaunch(exec, s));
}

void gpu_graph_free(void *exec)
{
	MUST(cuGraphExecDestroy(exec));
}

void gpu_time_begin(void *s)
{
	MUST(cuEventRecord(contexts[current].from, s));
}

double gpu_time_end(void *s)
{
	float ms;

	MUST(cuEventRecord(contexts[current].to, s));
	MUST(cuEventSynchronize(contexts[current].to));
	MUST(cuEventElapsedTime(&ms, contexts[current].from, contexts[current].to));
	return ms;
}

void gpu_end(void)
{
	for (unsigned int i = 0; i < MAX_CONTEXTS; i++) {
		if (!contexts[i].ctx)
			continue;
		MUST(cuCtxSetCurrent(contexts[i].ctx));
		MUST(cuModuleUnload(contexts[i].mod));
		MUST(cuCtxDestroy_v2(contexts[i].ctx));
	}
	free(image);
}
