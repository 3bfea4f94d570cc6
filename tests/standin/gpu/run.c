// SPDX-License-Identifier: GPL-2.0-only
/*
 * run.c: a program that uses a GPU through the driver's interface: it loads
 * tests/memtrace/kernels_80.ptx (or another image), runs its kernels with known inputs, checks the
 * results and prints a line "KERNEL CHECKSUM" for each. Options select how it loads, launches and
 * allocates, so that every way that a program can use is tested; the lines are always the same, with
 * or without a recorder.
 */
#include "cu.h"
#include "kernels.h"

#include <dlfcn.h>
#include <fnmatch.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* D(exported name, name for cuGetProcAddress()) */
#define DRIVER(D)                                                  \
	D(cuInit, cuInit)                                          \
	D(cuDeviceGet, cuDeviceGet)                                \
	D(cuDeviceGetCount, cuDeviceGetCount)                      \
	D(cuCtxCreate_v2, cuCtxCreate)                             \
	D(cuCtxDestroy_v2, cuCtxDestroy)                           \
	D(cuCtxSetCurrent, cuCtxSetCurrent)                        \
	D(cuCtxSynchronize, cuCtxSynchronize)                      \
	D(cuModuleLoadDataEx, cuModuleLoadDataEx)                  \
	D(cuModuleUnload, cuModuleUnload)                          \
	D(cuLinkCreate_v2, cuLinkCreate)                           \
	D(cuLinkAddData_v2, cuLinkAddData)                         \
	D(cuLinkAddFile_v2, cuLinkAddFile)                         \
	D(cuLinkComplete, cuLinkComplete)                          \
	D(cuLinkDestroy, cuLinkDestroy)                            \
	D(cuModuleGetFunction, cuModuleGetFunction)                \
	D(cuModuleGetGlobal_v2, cuModuleGetGlobal)                 \
	D(cuLibraryLoadData, cuLibraryLoadData)                    \
	D(cuLibraryUnload, cuLibraryUnload)                        \
	D(cuLibraryGetKernel, cuLibraryGetKernel)                  \
	D(cuLibraryGetGlobal, cuLibraryGetGlobal)                  \
	D(cuKernelGetFunction, cuKernelGetFunction)                \
	D(cuFuncGetParamInfo, cuFuncGetParamInfo)                  \
	D(cuMemAlloc_v2, cuMemAlloc)                               \
	D(cuMemFree_v2, cuMemFree)                                 \
	D(cuMemHostAlloc, cuMemHostAlloc)                          \
	D(cuMemFreeHost, cuMemFreeHost)                            \
	D(cuMemHostRegister_v2, cuMemHostRegister)                 \
	D(cuMemHostUnregister, cuMemHostUnregister)                \
	D(cuMemHostGetDevicePointer_v2, cuMemHostGetDevicePointer) \
	D(cuMemcpyHtoD_v2, cuMemcpyHtoD)                           \
	D(cuMemcpyDtoH_v2, cuMemcpyDtoH)                           \
	D(cuStreamCreate, cuStreamCreate)                          \
	D(cuStreamDestroy_v2, cuStreamDestroy)                     \
	D(cuStreamSynchronize, cuStreamSynchronize)                \
	D(cuStreamBeginCapture_v2, cuStreamBeginCapture)           \
	D(cuStreamEndCapture, cuStreamEndCapture)                  \
	D(cuGraphCreate, cuGraphCreate)                            \
	D(cuGraphDestroy, cuGraphDestroy)                          \
	D(cuGraphAddKernelNode_v2, cuGraphAddKernelNode)           \
	D(cuGraphInstantiateWithFlags, cuGraphInstantiate)         \
	D(cuGraphExecDestroy, cuGraphExecDestroy)                  \
	D(cuGraphLaunch, cuGraphLaunch)                            \
	D(cuLaunchKernel, cuLaunchKernel)                          \
	D(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel)    \
	D(cuLaunchKernelEx, cuLaunchKernelEx)                      \
	D(cuGetErrorName, cuGetErrorName)
static struct {
#define D(name, asked) __typeof__(name) *name;
	DRIVER(D)
#undef D
} cu = {
#define D(name, asked) .name = name,
	DRIVER(D)
#undef D
};

enum how { PLAIN, EXTRA, EX, COOPERATIVE, GRAPH, CAPTURE };

static struct {
	const char *kernel; /* only these */
	enum how how;
	bool library, zero_copy, registered, link, link_file, elsewhere;
	const char *path, *inputs[8]; /* inputs: linked with path */
	unsigned int nr_inputs;
	unsigned int repeat, threads, contexts;
	int kill_after; /* launches; -1: never */
	char *image;
} conf = { .repeat = 1, .threads = 1, .contexts = 1, .kill_after = -1 };

struct user {
	pthread_t thread;
	CUcontext ctx, other; /* other: if not NULL, this context is current while kernels are launched */
	CUmodule mod;
	CUlibrary lib;
	CUstream stream;
	struct user *first_of_ctx;
	uint64_t sums[64];
	bool failed;
};

static void check(int err, const char *what)
{
	const char *name = "?";

	if (!err)
		return;
	cu.cuGetErrorName(err, &name);
	fprintf(stderr, "run: %s: %s\n", what, name);
	exit(2);
}
#define CHECK(call) check(call, #call)

/* Registered memory of the program, and its device address. */
static struct mapped {
	struct mapped *next;
	void *host;
	CUdeviceptr dev;
} * mapped;
static pthread_mutex_t mapped_lock = PTHREAD_MUTEX_INITIALIZER;

static CUdeviceptr register_new(size_t n)
{
	struct mapped *m = calloc(1, sizeof(*m));

	if (!m || posix_memalign(&m->host, 4096, (n + 4095) / 4096 * 4096))
		abort();
	CHECK(cu.cuMemHostRegister_v2(m->host, n, 2));
	CHECK(cu.cuMemHostGetDevicePointer_v2(&m->dev, m->host, 0));
	pthread_mutex_lock(&mapped_lock);
	m->next = mapped;
	mapped = m;
	pthread_mutex_unlock(&mapped_lock);
	return m->dev;
}

static void unregister(CUdeviceptr dev)
{
	struct mapped *found = NULL;

	pthread_mutex_lock(&mapped_lock);
	for (struct mapped **at = &mapped; *at; at = &(*at)->next)
		if ((*at)->dev == dev) {
			found = *at;
			*at = found->next;
			break;
		}
	pthread_mutex_unlock(&mapped_lock);
	cu.cuMemHostUnregister(found->host);
	free(found->host);
	free(found);
}

static uint64_t mem_alloc(void *ctx, size_t n)
{
	CUdeviceptr dev = 0;
	void *p;

	(void)ctx;
	if (conf.registered)
		return register_new(n);
	if (!conf.zero_copy) {
		CHECK(cu.cuMemAlloc_v2(&dev, n));
		return dev;
	}
	CHECK(cu.cuMemHostAlloc(&p, n, 2));
	CHECK(cu.cuMemHostGetDevicePointer_v2(&dev, p, 0));
	return dev;
}

/* After a kernel that failed this fails too, and only the result of the kernel matters. */
static void mem_free(void *ctx, uint64_t dev)
{
	(void)ctx;
	if (conf.registered)
		unregister(dev);
	else if (conf.zero_copy)
		cu.cuMemFreeHost((void *)(uintptr_t)dev);
	else
		cu.cuMemFree_v2(dev);
}

/* With zero copy this is memory of the program, except for the module's variables. */
static void mem_put(void *ctx, uint64_t dev, const void *host, size_t n)
{
	(void)ctx;
	if (conf.zero_copy)
		memcpy((void *)(uintptr_t)dev, host, n);
	else
		CHECK(cu.cuMemcpyHtoD_v2(dev, host, n));
}

static void mem_get(void *ctx, void *host, uint64_t dev, size_t n)
{
	struct user *u = ctx;

	CHECK(cu.cuStreamSynchronize(u->stream));
	CHECK(cu.cuMemcpyDtoH_v2(host, dev, n));
}

static uint64_t variable(void *ctx, const char *name)
{
	struct user *u = ctx;
	CUdeviceptr p = 0;
	size_t n;

	return (conf.library ? cu.cuLibraryGetGlobal(&p, &n, u->lib, name)
			     : cu.cuModuleGetGlobal_v2(&p, &n, u->mod, name))
		       ? 0
		       : p;
}

static int by_graph(CUstream s, CUgraph g)
{
	CUgraphExec exec;
	int err = cu.cuGraphInstantiateWithFlags(&exec, g, 0);

	if (!err)
		err = cu.cuGraphLaunch(exec, s);
	if (!err)
		err = cu.cuStreamSynchronize(s);
	cu.cuGraphExecDestroy(exec);
	cu.cuGraphDestroy(g);
	return err;
}

static int launch_extra(CUfunction f, CUstream s, const uint32_t *g, const uint32_t *b, uint32_t dyn, void **params,
			unsigned int n)
{
	char buf[4096];
	size_t size = 0, off, len;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, buf, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			  CU_LAUNCH_PARAM_END };

	for (unsigned int i = 0; i < n; i++) {
		CHECK(cu.cuFuncGetParamInfo(f, i, &off, &len));
		memcpy(buf + off, params[i], len);
		size = off + len;
	}
	return cu.cuLaunchKernel(f, g[0], g[1], g[2], b[0], b[1], b[2], dyn, s, NULL, extra);
}

static int launch_node(const struct user *u, CUfunction f, CUstream s, const uint32_t *g, const uint32_t *b,
		       uint32_t dyn, void **params)
{
	CUDA_KERNEL_NODE_PARAMS p = { .func = u->other ? NULL : f,
				      .kern = u->other ? (CUkernel)f : NULL,
				      .ctx = u->other ? u->ctx : NULL,
				      .gridDimX = g[0],
				      .gridDimY = g[1],
				      .gridDimZ = g[2],
				      .blockDimX = b[0],
				      .blockDimY = b[1],
				      .blockDimZ = b[2],
				      .sharedMemBytes = dyn,
				      .kernelParams = params };
	CUgraphNode node;
	CUgraph graph;
	int err;

	CHECK(cu.cuGraphCreate(&graph, 0));
	err = cu.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &p);
	return err ? err : by_graph(s, graph);
}

static int launch_function(const struct user *u, CUfunction f, const uint32_t *g, const uint32_t *b, uint32_t dyn,
			   void **params, unsigned int n)
{
	CUstream s = u->stream;
	CUlaunchConfig config = { .gridDimX = g[0],
				  .gridDimY = g[1],
				  .gridDimZ = g[2],
				  .blockDimX = b[0],
				  .blockDimY = b[1],
				  .blockDimZ = b[2],
				  .sharedMemBytes = dyn,
				  .hStream = s };
	CUgraph graph;
	int err;

	switch (conf.how) {
	case EXTRA:
		return launch_extra(f, s, g, b, dyn, params, n);
	case EX:
		return cu.cuLaunchKernelEx(&config, f, params, NULL);
	case COOPERATIVE:
		return cu.cuLaunchCooperativeKernel(f, g[0], g[1], g[2], b[0], b[1], b[2], dyn, s, params);
	case GRAPH:
		return launch_node(u, f, s, g, b, dyn, params);
	case CAPTURE:
		CHECK(cu.cuStreamBeginCapture_v2(s, 0));
		err = cu.cuLaunchKernel(f, g[0], g[1], g[2], b[0], b[1], b[2], dyn, s, params, NULL);
		CHECK(cu.cuStreamEndCapture(s, &graph));
		return err ? err : by_graph(s, graph);
	default:
		return cu.cuLaunchKernel(f, g[0], g[1], g[2], b[0], b[1], b[2], dyn, s, params, NULL);
	}
}

static int launch(void *ctx, const char *name, const uint32_t *grid, const uint32_t *block, uint32_t dyn, void **params,
		  unsigned int n)
{
	static int launches;
	struct user *u = ctx;
	CUfunction f = NULL;
	CUkernel k;
	int err;

	err = conf.library ? cu.cuLibraryGetKernel(&k, u->lib, name) : cu.cuModuleGetFunction(&f, u->mod, name);
	if (err)
		return err;
	if (conf.library && conf.how != EXTRA)
		f = (CUfunction)k; /* allowed since CUDA 12 */
	else if (conf.library)
		CHECK(cu.cuKernelGetFunction(&f, k));
	if (u->other)
		CHECK(cu.cuCtxSetCurrent(u->other));
	err = launch_function(u, f, grid, block, dyn, params, n);
	if (u->other)
		CHECK(cu.cuCtxSetCurrent(u->ctx));
	if (__atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED) == conf.kill_after)
		raise(SIGKILL);
	return err ? err : (int)cu.cuStreamSynchronize(u->stream);
}

static void *use(void *arg)
{
	struct user *u = arg;
	const struct kernel_io io = { u, mem_alloc, mem_free, mem_put, mem_get, launch, variable };

	CHECK(cu.cuCtxSetCurrent(u->ctx));
	CHECK(cu.cuStreamCreate(&u->stream, 1));
	for (unsigned int n = 0; n < conf.repeat; n++)
		for (size_t i = 0; i < nr_kernel_tests; i++) {
			const struct kernel_test *t = &kernel_tests[i];
			const char *name = "wrong results";
			int err;

			if (conf.kernel && fnmatch(conf.kernel, t->name, 0))
				continue;
			/* Its results are in the module, so only one can run at a time. */
			if (!strcmp(t->name, "nothing_given") && (conf.threads > 1 || conf.repeat > 1))
				continue;
			err = t->run(&io, t->name, &u->sums[i]);
			if (err == 500) {
				u->sums[i] = 0; /* the image has no such kernel */
			} else if (err) {
				if (err > 0)
					cu.cuGetErrorName(err, &name);
				fprintf(stderr, "run: %s: %s\n", t->name, name);
				u->failed = true;
				if (err > 0)
					return NULL;
			}
		}
	CHECK(cu.cuStreamDestroy_v2(u->stream));
	return NULL;
}

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "re");
	char *buf = calloc(1, 1 << 22);

	if (!f || !buf || !fread(buf, 1, (1 << 22) - 1, f)) {
		fprintf(stderr, "run: %s cannot be read\n", path);
		exit(2);
	}
	fclose(f);
	return buf;
}

static void link_input(CUlinkState s, const char *path)
{
	char *text;

	if (conf.link_file) {
		CHECK(cu.cuLinkAddFile_v2(s, 1, path, 0, NULL, NULL));
		return;
	}
	text = slurp(path);
	CHECK(cu.cuLinkAddData_v2(s, 1, text, strlen(text) + 1, path, 0, NULL, NULL));
	free(text);
}

/*
 * Loads the linker's output: from the linker's memory, or from a copy after the linker is destroyed.
 * The linker's messages go to stderr.
 */
static void load_linked(struct user *u)
{
	static char info[2][4096];
	CUjit_option opts[] = { 3, 4, 5, 6 };
	/* A size is an unsigned int: the bits above it must be ignored. */
	void *size = (void *)(sizeof(info[0]) | 7ull << 40), *vals[] = { info[0], size, info[1], size };
	void *cubin = NULL, *copy;
	CUlinkState s;
	size_t n = 0;
	int err;

	memset(info, 0, sizeof(info));
	CHECK(cu.cuLinkCreate_v2(4, opts, vals, &s));
	link_input(s, conf.path);
	for (unsigned int i = 0; i < conf.nr_inputs; i++)
		link_input(s, conf.inputs[i]);
	err = cu.cuLinkComplete(s, &cubin, &n);
	fprintf(stderr, "%s%srun: %zu, %zu bytes\n", info[0], info[1], (size_t)(uint32_t)(uintptr_t)vals[1],
		(size_t)(uint32_t)(uintptr_t)vals[3]);
	check(err, "link");
	copy = malloc(n);
	if (!copy)
		abort();
	memcpy(copy, cubin, n);
	if (conf.link_file) {
		CHECK(cu.cuLinkDestroy(s));
		cubin = copy;
	}
	CHECK(conf.library ? cu.cuLibraryLoadData(&u->lib, cubin, NULL, NULL, 0, NULL, NULL, 0)
			   : cu.cuModuleLoadDataEx(&u->mod, cubin, 0, NULL, NULL));
	free(copy);
	if (!conf.link_file)
		CHECK(cu.cuLinkDestroy(s));
}

static void load(struct user *u)
{
	char log[512] = "";
	CUjit_option opts[] = { 5, 6 };
	void *vals[] = { log, (void *)sizeof(log) };
	int err;

	if (conf.link) {
		load_linked(u);
		return;
	}
	err = conf.library ? cu.cuLibraryLoadData(&u->lib, conf.image, opts, vals, 2, NULL, NULL, 0)
			   : cu.cuModuleLoadDataEx(&u->mod, conf.image, 2, opts, vals);
	if (err)
		fprintf(stderr, "run: the image: %s\n", log);
	check(err, "load");
}

/*
 * As the runtime library finds the driver: opened by name, one function by name, the others from that
 * function.
 */
static void by_dlopen(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	__typeof__(cuGetProcAddress_v2) *get = NULL;
	void *fn = NULL;

	if (lib)
		*(void **)&get = dlsym(lib, "cuGetProcAddress_v2");
	if (!get) {
		fprintf(stderr, "run: no driver\n");
		exit(2);
	}
#define D(name, asked)                                                                                                \
	fn = NULL;                                                                                                    \
	check(get(#asked, &fn, strcmp(#asked, "cuCtxCreate") ? 13000 : 10000, 0, NULL), "cuGetProcAddress: " #asked); \
	memcpy(&cu.name, &fn, sizeof(fn));
	DRIVER(D)
#undef D
}

static void options(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "kernel", 1, NULL, 'k' },    { "how", 1, NULL, 'w' },	       { "library", 0, NULL, 'l' },
		{ "zero-copy", 0, NULL, 'z' }, { "registered", 0, NULL, 'R' }, { "repeat", 1, NULL, 'r' },
		{ "threads", 1, NULL, 't' },   { "contexts", 1, NULL, 'c' },   { "kill", 1, NULL, 'K' },
		{ "dlopen", 0, NULL, 'd' },    { "link", 2, NULL, 'L' },       { "link-file", 0, NULL, 'F' },
		{ "elsewhere", 0, NULL, 'e' }, { NULL, 0, NULL, 0 },
	};
	static const char *const hows[] = { "plain", "extra", "ex", "cooperative", "graph", "capture" };
	int c;

	while ((c = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (c) {
		case 'k':
			conf.kernel = optarg;
			break;
		case 'w':
			for (unsigned int i = 0; i < 6; i++)
				if (!strcmp(hows[i], optarg))
					conf.how = i;
			break;
		case 'l':
			conf.library = true;
			break;
		case 'z':
			conf.zero_copy = true;
			break;
		case 'R':
			conf.registered = true;
			break;
		case 'r':
			conf.repeat = (unsigned int)atoi(optarg);
			break;
		case 't':
			conf.threads = (unsigned int)atoi(optarg);
			break;
		case 'c':
			conf.contexts = (unsigned int)atoi(optarg);
			break;
		case 'K':
			conf.kill_after = atoi(optarg);
			break;
		case 'd':
			by_dlopen();
			break;
		case 'L':
			conf.link = true;
			if (optarg && conf.nr_inputs < 8)
				conf.inputs[conf.nr_inputs++] = optarg;
			break;
		case 'F':
			conf.link = conf.link_file = true;
			break;
		case 'e':
			conf.elsewhere = true;
			break;
		default:
			optind = argc;
			break;
		}
	}
	if (optind + 1 != argc || !conf.threads || conf.threads > 16 || !conf.contexts ||
	    conf.contexts > conf.threads) {
		fprintf(stderr,
			"usage: run [--kernel GLOB] [--how plain|extra|ex|cooperative|graph|capture] [--library] "
			"[--zero-copy|--registered] [--repeat N] [--threads N]\n"
			"           [--contexts N, at most the threads] [--kill LAUNCHES] [--dlopen] "
			"[--link[=INPUT]]... [--link-file] [--elsewhere, with --library] IMAGE\n");
		exit(2);
	}
	conf.path = argv[optind];
	conf.image = slurp(conf.path);
}

int main(int argc, char **argv)
{
	struct user users[16] = { 0 };
	bool failed = false;
	int devices;

	options(argc, argv);
	CHECK(cu.cuInit(0));
	CHECK(cu.cuDeviceGetCount(&devices));
	for (unsigned int i = 0; i < conf.threads; i++) {
		struct user *u = &users[i];
		CUdevice dev;

		u->first_of_ctx = &users[i % conf.contexts];
		if (u == u->first_of_ctx) {
			CHECK(cu.cuDeviceGet(&dev, (int)i % devices));
			if (conf.elsewhere)
				CHECK(cu.cuCtxCreate_v2(&u->other, 0, devices - 1 - dev));
			CHECK(cu.cuCtxCreate_v2(&u->ctx, 0, dev));
			load(u);
		} else {
			u->ctx = u->first_of_ctx->ctx;
			u->other = u->first_of_ctx->other;
			u->mod = u->first_of_ctx->mod;
			u->lib = u->first_of_ctx->lib;
		}
	}
	for (unsigned int i = 1; i < conf.threads; i++)
		if (pthread_create(&users[i].thread, NULL, use, &users[i]))
			abort();
	use(&users[0]);
	for (unsigned int i = 1; i < conf.threads; i++)
		pthread_join(users[i].thread, NULL);
	for (unsigned int i = 0; i < conf.threads; i++)
		failed |= users[i].failed || memcmp(users[i].sums, users[0].sums, sizeof(users[0].sums)) != 0;
	for (size_t i = 0; i < nr_kernel_tests && !failed; i++)
		if (users[0].sums[i])
			printf("%s %016llx\n", kernel_tests[i].name, (unsigned long long)users[0].sums[i]);
	for (unsigned int i = 0; i < conf.contexts && !failed; i++) {
		CHECK(cu.cuCtxSetCurrent(users[i].ctx));
		CHECK(cu.cuCtxSynchronize());
		if (conf.library)
			CHECK(cu.cuLibraryUnload(users[i].lib));
		else
			CHECK(cu.cuModuleUnload(users[i].mod));
		CHECK(cu.cuCtxDestroy_v2(users[i].ctx));
	}
	free(conf.image);
	return failed;
}
