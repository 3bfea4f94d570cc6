// SPDX-License-Identifier: GPL-2.0-only
/*
 * waits.c: how a thread waits in calls of the driver: `waits LIBCUDA FLAGS`. FLAGS is the scheduling
 * mode of the context (CU_CTX_SCHED_: 0 auto, 1 spin, 2 yield, 4 blocking). It prints "ready TID",
 * waits for a line, and prints a line of JSON for each call, of which there are REPEATS:
 *
 *	{"call": NAME, "ms": [...], "cpu_ms": [...], "queue_ms": [...], "switches": [...], "faults": [...],
 *	 "seen": {"S poll_schedule_timeout 7": N, ...}}
 *
 * ms is measured by CLOCK_MONOTONIC; cpu by CLOCK_THREAD_CPUTIME_ID; queue is from /proc/TID/schedstat
 * (whose time on the CPU is that of the last tick). seen is how often another thread found it in this
 * state, by state, /proc/TID/wchan and the number of the system call, once every SAMPLE_US.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define REPEATS	  5
#define SAMPLE_US 500
#define BIG	  (256UL << 20)
#define SPIN_NS	  20000000UL

/* Runs for so many nanoseconds of the GPU's clock. */
static const char ptx[] = ".version 6.3\n.target sm_70\n.address_size 64\n"
			  ".visible .entry spin(.param .u64 ns)\n{\n"
			  ".reg .u64 %t<5>;\n.reg .pred %p;\n"
			  "ld.param.u64 %t1, [ns];\nmov.u64 %t2, %globaltimer;\n"
			  "again:\nmov.u64 %t3, %globaltimer;\nsub.u64 %t4, %t3, %t2;\n"
			  "setp.lt.u64 %p, %t4, %t1;\n@%p bra again;\nret;\n}\n";

#define DRIVER(D)                                                                                        \
	D(cuInit, (unsigned int flags))                                                                  \
	D(cuDeviceGet, (int *dev, int nr))                                                               \
	D(cuCtxCreate_v2, (void **ctx, unsigned int flags, int dev))                                     \
	D(cuCtxSynchronize, (void))                                                                      \
	D(cuModuleLoadDataEx, (void **mod, const void *image, unsigned int n, int *opts, void **vals))   \
	D(cuModuleGetFunction, (void **f, void *mod, const char *name))                                  \
	D(cuMemAlloc_v2, (uint64_t * p, size_t n))                                                       \
	D(cuMemFree_v2, (uint64_t p))                                                                    \
	D(cuMemHostAlloc, (void **p, size_t n, unsigned int flags))                                      \
	D(cuMemFreeHost, (void *p))                                                                      \
	D(cuMemHostRegister_v2, (void *p, size_t n, unsigned int flags))                                 \
	D(cuMemHostUnregister, (void *p))                                                                \
	D(cuMemGetInfo_v2, (size_t * f, size_t * total))                                                 \
	D(cuMemcpyHtoD_v2, (uint64_t dst, const void *src, size_t n))                                    \
	D(cuMemcpyDtoH_v2, (void *dst, uint64_t src, size_t n))                                          \
	D(cuMemcpyDtoHAsync_v2, (void *dst, uint64_t src, size_t n, void *s))                            \
	D(cuStreamCreate, (void **s, unsigned int flags))                                                \
	D(cuStreamSynchronize, (void *s))                                                                \
	D(cuEventCreate, (void **e, unsigned int flags))                                                 \
	D(cuEventRecord, (void *e, void *s))                                                             \
	D(cuEventSynchronize, (void *e))                                                                 \
	D(cuLaunchKernel,                                                                                \
	  (void *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, \
	   unsigned int bz, unsigned int shmem, void *s, void **params, void **extra))

static struct {
#define D(name, params) int(*name) params;
	DRIVER(D)
#undef D
} cu;

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "waits: %s: error %d\n", what, err);
	exit(2);
}
#define MUST(call) must(cu.call, #call)

static void *stream, *kernel, *event, *blocking_event, *pinned, *ordinary, *fresh;
static uint64_t device;

static void spin(void)
{
	uint64_t ns = SPIN_NS;
	void *params[] = { &ns };

	MUST(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

/* ---- calls: what comes before each, and the call ---- */
static void record(void)
{
	spin();
	MUST(cuEventRecord(event, stream));
}
static void record_blocking(void)
{
	spin();
	MUST(cuEventRecord(blocking_event, stream));
}
static void nothing(void)
{
}
static void take(void)
{
	MUST(cuMemHostAlloc(&fresh, BIG, 0));
}
static void map(void)
{
	fresh = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fresh == MAP_FAILED)
		exit(2);
}
static void map_and_touch(void)
{
	map();
	memset(fresh, 1, BIG);
}
static void map_and_register(void)
{
	map_and_touch();
	MUST(cuMemHostRegister_v2(fresh, BIG, 0));
}
static void unmap(void)
{
	munmap(fresh, BIG);
}
static void unregister(void)
{
	MUST(cuMemHostUnregister(fresh));
	unmap();
}
static void give(void)
{
	MUST(cuMemFreeHost(fresh));
}
static void allocate(void)
{
	spin();
}
static int free_device(void)
{
	int err = cu.cuMemFree_v2(device);

	device = 0;
	return err;
}
static void again(void)
{
	MUST(cuMemAlloc_v2(&device, BIG));
}
static int stream_sync(void)
{
	return cu.cuStreamSynchronize(stream);
}
static int event_sync(void)
{
	return cu.cuEventSynchronize(event);
}
static int blocking_event_sync(void)
{
	return cu.cuEventSynchronize(blocking_event);
}
static int ctx_sync(void)
{
	return cu.cuCtxSynchronize();
}
static int put_ordinary(void)
{
	return cu.cuMemcpyHtoD_v2(device, ordinary, BIG);
}
static int put_pinned(void)
{
	return cu.cuMemcpyHtoD_v2(device, pinned, BIG);
}
static int get_ordinary(void)
{
	return cu.cuMemcpyDtoH_v2(ordinary, device, BIG);
}
static int get_pinned(void)
{
	return cu.cuMemcpyDtoH_v2(pinned, device, BIG);
}
/*
 * After a kernel in its stream: it is said to return at once from pinned memory, and to wait from
 * ordinary memory.
 */
static int get_async_pinned(void)
{
	return cu.cuMemcpyDtoHAsync_v2(pinned, device, 4096, stream);
}
static int get_async_ordinary(void)
{
	return cu.cuMemcpyDtoHAsync_v2(ordinary, device, 4096, stream);
}
static void finish(void)
{
	MUST(cuStreamSynchronize(stream));
}
static int host_alloc(void)
{
	return cu.cuMemHostAlloc(&fresh, BIG, 0);
}
static int host_free(void)
{
	return cu.cuMemFreeHost(fresh);
}
static int host_register(void)
{
	return cu.cuMemHostRegister_v2(fresh, BIG, 0);
}
static int host_unregister(void)
{
	return cu.cuMemHostUnregister(fresh);
}
static int mem_info(void)
{
	size_t a, b;

	return cu.cuMemGetInfo_v2(&a, &b);
}

static const struct call {
	const char *name;
	void (*before)(void);
	int (*call)(void);
	void (*after)(void);
} calls[] = {
	{ "cuStreamSynchronize, a kernel of 20 ms", spin, stream_sync, nothing },
	{ "cuEventSynchronize, a kernel of 20 ms", record, event_sync, nothing },
	{ "cuEventSynchronize of a blocking event, a kernel of 20 ms", record_blocking, blocking_event_sync, nothing },
	{ "cuCtxSynchronize, a kernel of 20 ms", spin, ctx_sync, nothing },
	{ "cuMemcpyHtoD 256 MiB ordinary", nothing, put_ordinary, nothing },
	{ "cuMemcpyHtoD 256 MiB pinned", nothing, put_pinned, nothing },
	{ "cuMemcpyDtoH 256 MiB ordinary", nothing, get_ordinary, nothing },
	{ "cuMemcpyDtoH 256 MiB pinned", nothing, get_pinned, nothing },
	{ "cuMemcpyDtoHAsync 4 KiB pinned behind a kernel of 20 ms", spin, get_async_pinned, finish },
	{ "cuMemcpyDtoHAsync 4 KiB ordinary behind a kernel of 20 ms", spin, get_async_ordinary, finish },
	{ "cuMemFree 256 MiB beside a kernel of 20 ms", allocate, free_device, again },
	{ "cuMemHostAlloc 256 MiB", nothing, host_alloc, give },
	{ "cuMemFreeHost 256 MiB", take, host_free, nothing },
	{ "cuMemHostRegister 256 MiB touched", map_and_touch, host_register, unregister },
	{ "cuMemHostRegister 256 MiB untouched", map, host_register, unregister },
	{ "cuMemHostUnregister 256 MiB", map_and_register, host_unregister, unmap },
	{ "cuMemGetInfo", nothing, mem_info, nothing },
};

/* ---- what the thread does meanwhile ---- */
#define MAX_SEEN 32
static struct {
	char what[96];
	unsigned int n;
} seen[MAX_SEEN];
static pid_t tid;
static int inside, over;

static void read_one(const char *name, char *to, size_t n)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	to[0] = 0;
	f = fopen(path, "re");
	if (!f)
		return;
	if (!fgets(to, (int)n, f))
		to[0] = 0;
	fclose(f);
}

static void *watch(void *arg)
{
	char stat[512], wchan[64], call[128], what[96], *state;

	(void)arg;
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		usleep(SAMPLE_US);
		if (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
			continue;
		read_one("stat", stat, sizeof(stat));
		read_one("wchan", wchan, sizeof(wchan));
		read_one("syscall", call, sizeof(call));
		state = strrchr(stat, ')');
		snprintf(what, sizeof(what), "%c %s %.*s", state ? state[2] : '?', wchan, (int)strcspn(call, " \n"),
			 call);
		if (!__atomic_load_n(&inside, __ATOMIC_ACQUIRE))
			continue;
		for (int i = 0; i < MAX_SEEN; i++) {
			if (seen[i].n && strcmp(seen[i].what, what))
				continue;
			strcpy(seen[i].what, what);
			seen[i].n++;
			break;
		}
	}
	return NULL;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct account {
	double ms, cpu, queue;
	long switches, faults;
};

static struct account account(void)
{
	struct account a = { 0 };
	unsigned long long queue = 0;
	struct timespec t;
	struct rusage u;
	char line[128];

	read_one("schedstat", line, sizeof(line));
	sscanf(line, "%*u %llu", &queue);
	getrusage(RUSAGE_THREAD, &u);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	a.cpu = (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
	a.queue = (double)queue / 1e6;
	a.switches = u.ru_nvcsw + u.ru_nivcsw;
	a.faults = u.ru_minflt + u.ru_majflt;
	a.ms = now_ms();
	return a;
}

static void print(const char *name, const struct account *took)
{
	const char *comma = "";

#define LIST(field, format)                                           \
	do {                                                          \
		printf(", \"%s\": [", #field);                        \
		for (int i = 0; i < REPEATS; i++)                     \
			printf(format, i ? ", " : "", took[i].field); \
		printf("]");                                          \
	} while (0)
	printf("{\"call\": \"%s\"", name);
	LIST(ms, "%s%.3f");
	LIST(cpu, "%s%.3f");
	LIST(queue, "%s%.3f");
	LIST(switches, "%s%ld");
	LIST(faults, "%s%ld");
#undef LIST
	printf(", \"seen\": {");
	for (int i = 0; i < MAX_SEEN && seen[i].n; i++) {
		printf("%s\"%s\": %u", comma, seen[i].what, seen[i].n);
		comma = ", ";
	}
	printf("}}\n");
	fflush(stdout);
	memset(seen, 0, sizeof(seen));
}

static void run(const struct call *c)
{
	struct account took[REPEATS], a, b;

	for (int i = 0; i < REPEATS; i++) {
		c->before();
		a = account();
		__atomic_store_n(&inside, 1, __ATOMIC_RELEASE);
		must(c->call(), c->name);
		__atomic_store_n(&inside, 0, __ATOMIC_RELEASE);
		b = account();
		took[i] = (struct account){ b.ms - a.ms, b.cpu - a.cpu, b.queue - a.queue, b.switches - a.switches,
					    b.faults - a.faults };
		c->after();
		usleep(1000);
	}
	print(c->name, took);
}

int main(int argc, char **argv)
{
	void *lib = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL, *ctx, *mod;
	pthread_t watcher;
	char line[16];
	int dev;

	if (!lib) {
		fprintf(stderr, "usage: waits LIBCUDA FLAGS%s%s\n", argc == 3 ? ": " : "", argc == 3 ? dlerror() : "");
		return 2;
	}
#define D(name, params)                                                  \
	*(void **)&cu.name = dlsym(lib, #name);                          \
	if (!cu.name) {                                                  \
		fprintf(stderr, "waits: the driver has no %s\n", #name); \
		return 2;                                                \
	}
	DRIVER(D)
#undef D
	prctl(PR_SET_NAME, "ttmon-waits");
	tid = (pid_t)syscall(SYS_gettid);
	MUST(cuInit(0));
	MUST(cuDeviceGet(&dev, 0));
	MUST(cuCtxCreate_v2(&ctx, (unsigned int)atoi(argv[2]), dev));
	MUST(cuModuleLoadDataEx(&mod, ptx, 0, NULL, NULL));
	MUST(cuModuleGetFunction(&kernel, mod, "spin"));
	MUST(cuStreamCreate(&stream, 1));
	MUST(cuEventCreate(&event, 2));
	MUST(cuEventCreate(&blocking_event, 3));
	MUST(cuMemHostAlloc(&pinned, BIG, 0));
	MUST(cuMemAlloc_v2(&device, BIG));
	ordinary = malloc(BIG);
	if (!ordinary)
		return 2;
	memset(ordinary, 1, BIG);
	memset(pinned, 1, BIG);
	printf("ready %d\n", tid);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 3;
	if (pthread_create(&watcher, NULL, watch, NULL))
		return 2;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		run(&calls[i]);
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	pthread_join(watcher, NULL);
	return 0;
}
