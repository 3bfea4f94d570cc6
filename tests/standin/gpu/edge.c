// SPDX-License-Identifier: GPL-2.0-only
/*
 * edge.c: edge fork|unload|exit PTX: programs that use a GPU in unusual ways, each with the driver
 * opened by name. Prints how often the results of vadd were right.
 *
 *	fork	a child launches too, which has no GPU
 *	unload	modules are loaded and unloaded in one thread while another one launches
 *	exit	the program ends while kernels run
 */
#include "cu.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 1000

/* E(name as it is exported) */
#define DRIVER(E)              \
	E(cuInit)              \
	E(cuCtxCreate_v2)      \
	E(cuCtxSetCurrent)     \
	E(cuModuleLoadDataEx)  \
	E(cuModuleUnload)      \
	E(cuModuleGetFunction) \
	E(cuMemAlloc_v2) E(cuMemcpyHtoD_v2) E(cuMemcpyDtoH_v2) E(cuLaunchKernel) E(cuCtxSynchronize)
static struct {
#define E(name) __typeof__(name) *name;
	DRIVER(E)
#undef E
} cu;

static void *lib;
static char *image;
static CUcontext ctx;

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "edge: %s: %d\n", what, err);
	exit(2);
}
#define CHECK(call) check(call, #call)

static void open_driver(void)
{
	lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	check(!lib, "dlopen");
#define E(name)                                         \
	*(void **)(void *)&cu.name = dlsym(lib, #name); \
	check(!cu.name, #name);
	DRIVER(E)
#undef E
	CHECK(cu.cuInit(0));
	CHECK(cu.cuCtxCreate_v2(&ctx, 0, 0));
}

static CUfunction vadd(CUmodule *mod)
{
	CUfunction f;

	CHECK(cu.cuModuleLoadDataEx(mod, image, 0, NULL, NULL));
	CHECK(cu.cuModuleGetFunction(&f, *mod, "vadd"));
	return f;
}

static int launch(CUfunction f, CUdeviceptr *a)
{
	unsigned int n = N;
	void *params[] = { &a[0], &a[1], &a[2], &n };

	return cu.cuLaunchKernel(f, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL);
}

static void memory(CUdeviceptr *a)
{
	float in[N];

	for (int i = 0; i < N; i++)
		in[i] = (float)i;
	for (int i = 0; i < 3; i++)
		CHECK(cu.cuMemAlloc_v2(&a[i], sizeof(in)));
	CHECK(cu.cuMemcpyHtoD_v2(a[0], in, sizeof(in)));
	CHECK(cu.cuMemcpyHtoD_v2(a[1], in, sizeof(in)));
}

/* Makes one more launch and checks its results. */
static int right(CUfunction f)
{
	CUdeviceptr a[3];
	float out[N];

	memory(a);
	CHECK(launch(f, a));
	CHECK(cu.cuMemcpyDtoH_v2(out, a[2], sizeof(out)));
	for (int i = 0; i < N; i++)
		if (out[i] != 2.0f * (float)i)
			return 0;
	return 1;
}

static int with_fork(void)
{
	CUmodule mod;
	CUfunction f = vadd(&mod);
	int good = right(f);
	pid_t child = fork();

	if (!child) {
		CUdeviceptr a[3] = { 0 };

		/* The results of the driver do not matter here. */
		for (int i = 0; i < 100; i++)
			launch(f, a);
		exit(0);
	}
	waitpid(child, NULL, 0);
	return good + right(f);
}

static volatile int over;

static void *come_and_go(void *unused)
{
	CUmodule mod;

	CHECK(cu.cuCtxSetCurrent(ctx));
	while (!over) {
		vadd(&mod);
		CHECK(cu.cuModuleUnload(mod));
	}
	return unused;
}

static int with_unload(void)
{
	pthread_t thread;
	CUmodule mod;
	CUfunction f = vadd(&mod);
	int good = 0;

	check(pthread_create(&thread, NULL, come_and_go, NULL), "pthread_create");
	for (int i = 0; i < 50; i++)
		good += right(f);
	over = 1;
	pthread_join(thread, NULL);
	return good;
}

static int with_exit(void)
{
	CUmodule mod;
	CUfunction f = vadd(&mod);
	CUdeviceptr a[3];
	int good = right(f);

	memory(a);
	for (int i = 0; i < 20; i++)
		CHECK(launch(f, a));
	return good;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} ways[] = { { "fork", with_fork }, { "unload", with_unload }, { "exit", with_exit } };
	FILE *f = argc == 3 ? fopen(argv[2], "re") : NULL;

	image = calloc(1, 1 << 22);
	if (!f || !image || !fread(image, 1, (1 << 22) - 1, f))
		return 2;
	fclose(f);
	open_driver();
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(ways[i].name, argv[1])) {
			printf("%d\n", ways[i].run());
			return 0;
		}
	return 2;
}
