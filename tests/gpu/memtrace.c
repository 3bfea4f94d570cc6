// SPDX-License-Identifier: GPL-2.0-only
/*
 * memtrace.c: runs the kernels of memtrace.cu with known inputs, holds what comes out against what the
 * processor makes of the same, and prints "KERNEL CHECKSUM" for each: the same lines however it is
 * run, with a recorder or without. See usage() for what can be chosen. Status 1: wrong results.
 */
#define _GNU_SOURCE
#include "memtrace.h"

#include <dlfcn.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REPLAYS 3 /* of a graph */
#define BLOCK	256
#define SPARE	64 /* elements behind the input: for what is not aligned */

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint32_t f32; /* they are copied, not reckoned with */
typedef uint64_t f64;
typedef struct {
	uint64_t half[2];
} f32x4;

const char *const kernel_names[NR_KERNELS] = {
#define C(name, ...) #name,
	GLOBAL_CASES(C) SHARED_CASES(C) OTHER_KERNELS(C)
#undef C
};

enum how { PLAIN, GRAPH, STREAMS, CONTEXTS, NR_HOW };

static struct {
	const char *only, *image, *times, *cupti;
	enum how how;
	bool zero_copy, list, probe;
	unsigned int elements, repeat, hold; /* hold: ms that buffers are kept after their use */
} conf = { .elements = 1 << 16 };

/* How a kernel is launched for n elements of input. */
struct shape {
	unsigned int grid[2], block[2];
	u32 n;
	size_t in, out; /* bytes */
};
struct test {
	void (*shape)(struct shape *s, unsigned int elements);
	void (*want)(const void *in, void *out, const struct shape *s, unsigned int times);
};

static void line_of(struct shape *s, unsigned int threads, unsigned int block, unsigned int n, size_t in, size_t out)
{
	*s = (struct shape){ { threads / block, 1 }, { block, 1 }, n, in, out };
}

#define C(name, type, span, expr, lanes, sectors, lines, ideal)                                                \
	static void shape_##name(struct shape *s, unsigned int elements)                                       \
	{                                                                                                      \
		u32 threads = elements / (span) / BLOCK * BLOCK;                                               \
                                                                                                               \
		threads = threads >= 16 * PITCH ? threads / (16 * PITCH) * (16 * PITCH) : BLOCK;               \
		line_of(s, threads, BLOCK, threads *(span), ((size_t)threads * (span) + SPARE) * sizeof(type), \
			threads * sizeof(type));                                                               \
	}                                                                                                      \
	static void want_##name(const void *vin, void *vout, const struct shape *s, unsigned int times)        \
	{                                                                                                      \
		const type *in = vin;                                                                          \
		type *out = vout;                                                                              \
                                                                                                               \
		(void)times;                                                                                   \
		for (u32 i = 0; i < s->grid[0] * BLOCK; i++) {                                                 \
			u32 l = i % 32;                                                                        \
                                                                                                               \
			if ((lanes) >> l & 1)                                                                  \
				out[i] = in[expr];                                                             \
		}                                                                                              \
	}
GLOBAL_CASES(C)
#undef C

#define C(name, type, size, expr, stored, loaded)                                                       \
	static void shape_##name(struct shape *s, unsigned int elements)                                \
	{                                                                                               \
		u32 blocks = elements / (size);                                                         \
                                                                                                        \
		line_of(s, blocks * 32, 32, blocks * (size), (size_t)blocks * (size) * sizeof(type),    \
			(size_t)blocks * 32 * sizeof(type));                                            \
	}                                                                                               \
	static void want_##name(const void *vin, void *vout, const struct shape *s, unsigned int times) \
	{                                                                                               \
		const type *in = vin;                                                                   \
		type *out = vout;                                                                       \
                                                                                                        \
		(void)times;                                                                            \
		for (u32 b = 0; b < s->grid[0]; b++)                                                    \
			for (u32 l = 0; l < 32; l++)                                                    \
				out[b * 32 + l] = in[(size_t)b * (size) + (expr)];                      \
	}
SHARED_CASES(C)
#undef C

static void shape_vadd(struct shape *s, unsigned int elements)
{
	u32 n = elements / BLOCK * BLOCK;

	line_of(s, n, BLOCK, 2 * n, n * sizeof(u32) * 2, n * sizeof(u32));
}

static void want_vadd(const void *in, void *out, const struct shape *s, unsigned int times)
{
	(void)times;
	for (u32 i = 0; i < s->n / 2; i++)
		((u32 *)out)[i] = ((const u32 *)in)[i] + ((const u32 *)in)[s->n / 2 + i];
}

static void shape_square(struct shape *s, unsigned int elements)
{
	u32 n = 32;

	while ((n + 32) * (n + 32) <= elements)
		n += 32;
	*s = (struct shape){
		{ n / 32, n / 32 }, { 32, 8 }, n, (size_t)n * n * sizeof(u32), (size_t)n * n * sizeof(u32)
	};
}

static void want_transposed(const void *in, void *out, const struct shape *s, unsigned int times)
{
	(void)times;
	for (u32 y = 0; y < s->n; y++)
		for (u32 x = 0; x < s->n; x++)
			((u32 *)out)[x * s->n + y] = ((const u32 *)in)[y * s->n + x];
}

static void shape_words(struct shape *s, unsigned int elements)
{
	u32 n = elements / BLOCK * BLOCK;

	line_of(s, n, BLOCK, n, n * sizeof(u32), n * sizeof(u32));
}

static void want_divergent(const void *vin, void *vout, const struct shape *s, unsigned int times)
{
	(void)times;
	for (u32 i = 0; i < s->n; i++) {
		u32 sum = 0;

		for (u32 k = 0; k <= i % 4; k++)
			sum = sum * 3 + ((const u32 *)vin)[(i + k * 32) % s->n];
		((u32 *)vout)[i] = sum;
	}
}

static void shape_atomics(struct shape *s, unsigned int elements)
{
	shape_words(s, elements);
	s->out = 32 * sizeof(u32);
}

static void want_atomics(const void *in, void *out, const struct shape *s, unsigned int times)
{
	for (u32 i = 0; i < s->n; i++)
		((u32 *)out)[i % 32] += ((const u32 *)in)[i] * times;
}

#define shape_transpose_naive  shape_square
#define shape_transpose_banks  shape_square
#define shape_transpose_padded shape_square
#define want_transpose_naive   want_transposed
#define want_transpose_banks   want_transposed
#define want_transpose_padded  want_transposed
#define shape_divergent	       shape_words
#define shape_smid	       shape_words
#define want_smid	       NULL /* anything: see probe() */

static const struct test tests[NR_KERNELS] = {
#define C(name, ...) { shape_##name, want_##name },
	GLOBAL_CASES(C) SHARED_CASES(C) OTHER_KERNELS(C)
#undef C
};

/* ---- what is to be expected, for memtrace.py ---- */

/* KERNEL SPACE KIND FIGURE PER_REQUEST, all of this kind in the kernel together. */
static void list(void)
{
#define E(name, space, kind, figure, value) printf("%s %s %s %s %u\n", name, space, kind, figure, (unsigned int)(value))
#define C(name, type, span, expr, lanes, sectors, lines, ideal) \
	E(#name, "global", "load", "sectors", sectors);         \
	E(#name, "global", "load", "lines", lines);             \
	E(#name, "global", "load", "ideal_sectors", ideal);     \
	E(#name, "global", "load", "lanes", __builtin_popcount(lanes));
	GLOBAL_CASES(C)
#undef C
#define C(name, type, size, expr, stored, loaded)          \
	E(#name, "shared", "store", "wavefronts", stored); \
	E(#name, "shared", "load", "wavefronts", loaded);
	SHARED_CASES(C)
#undef C
	E("vadd", "global", "load", "sectors", 4);
	E("vadd", "global", "store", "sectors", 4);
	E("transpose_naive", "global", "load", "sectors", 4);
	E("transpose_naive", "global", "store", "sectors", 32);
	E("transpose_naive", "global", "store", "lines", 32);
	E("transpose_banks", "global", "store", "sectors", 4);
	E("transpose_banks", "shared", "store", "wavefronts", 1);
	E("transpose_banks", "shared", "load", "wavefronts", 32);
	E("transpose_padded", "shared", "store", "wavefronts", 1);
	E("transpose_padded", "shared", "load", "wavefronts", 1);
	E("atomics", "global", "atomic", "sectors", 4);
#undef E
}

/* ---- what only a GPU can tell ---- */

static void probe(void)
{
	unsigned int grid[2] = { 4096, 1 }, block[2] = { 32, 1 }, n = 0, max = 0,
		     sms = (unsigned int)gpu_attribute(GPU_SMS);
	uint64_t out = gpu_alloc(grid[0] * sizeof(u32)), dev = 0;
	void *params[] = { &out, &out, &n }, *stream = gpu_stream(), *p = MAP_FAILED;
	u32 *sm = calloc(grid[0], sizeof(*sm));
	int driver, err = -1, fd = memfd_create("memtrace", MFD_CLOEXEC);
	size_t size = 16 << 20;
	char name[256];

	gpu_describe(name, sizeof(name), &driver);
	gpu_launch(stream, K_smid, grid, block, params);
	gpu_sync(stream);
	gpu_get(sm, out, grid[0] * sizeof(u32));
	for (unsigned int i = 0; i < grid[0]; i++)
		max = sm[i] > max ? sm[i] : max;
	printf("device %s\ndriver %d.%d\narch %d%d\nsms %u\nmax_smid %u\nnative_atomics %d\nhost_pointers %d\n", name,
	       driver / 1000, driver % 1000 / 10, gpu_attribute(GPU_CC_MAJOR), gpu_attribute(GPU_CC_MINOR), sms, max,
	       gpu_attribute(GPU_NATIVE_ATOMICS), gpu_attribute(GPU_HOST_POINTERS));
	if (fd >= 0 && !ftruncate(fd, (off_t)size))
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		err = gpu_register(p, size, &dev);
	if (!err) {
		/* The GPU writes into it what the file then holds. */
		u32 first = UINT32_MAX;

		params[1] = &dev;
		gpu_launch(stream, K_smid, grid, block, params);
		gpu_sync(stream);
		err = pread(fd, &first, sizeof(first), 0) != sizeof(first) || first >= sms ? -2 : 0;
		printf("memfd_same_address %d\n", dev == (uint64_t)(uintptr_t)p);
		gpu_unregister(p);
	}
	printf("memfd %d\n", err);
	gpu_stream_free(stream);
	gpu_free(out);
	free(sm);
	if (p != MAP_FAILED)
		munmap(p, size);
	if (fd >= 0)
		close(fd);
}

/* ---- runs ---- */

/* One of several at a time: a stream, or a context with one. */
struct place {
	unsigned int ctx;
	void *stream, *graph;
	uint64_t in, out;
	void *host_in, *host_out; /* of zero copy */
};

static struct {
	int (*begin)(void);
	int (*end)(void);
} cupti;

static uint64_t buffer(size_t n, void **host)
{
	return conf.zero_copy ? gpu_alloc_host(n, host) : gpu_alloc(n);
}

static void release(uint64_t dev, void *host)
{
	if (host)
		gpu_free_host(host);
	else
		gpu_free(dev);
}

static void put(uint64_t dev, void *host, const void *from, size_t n)
{
	if (host)
		memcpy(host, from, n);
	else
		gpu_put(dev, from, n);
}

static void fill(u32 *p, size_t bytes)
{
	for (size_t i = 0; i < bytes / 4; i++)
		p[i] = (u32)i * 2654435761u ^ (u32)i >> 7;
}

static void launch(const struct place *p, enum kernel k, const struct shape *s)
{
	u32 n = s->n;
	uint64_t in = p->in, out = p->out;
	void *params[] = { &in, &out, &n };

	gpu_launch(p->stream, k, s->grid, s->block, params);
}

static void start(struct place *p, enum kernel k, const struct shape *s)
{
	if (conf.how != GRAPH) {
		launch(p, k, s);
		return;
	}
	gpu_capture(p->stream);
	launch(p, k, s);
	p->graph = gpu_captured(p->stream);
	for (unsigned int i = 0; i < REPLAYS; i++)
		gpu_replay(p->graph, p->stream);
}

static void time_it(const struct place *p, enum kernel k, const struct shape *s, FILE *times)
{
	double ms;

	for (unsigned int i = 0; i < 3 && i < conf.repeat; i++)
		launch(p, k, s);
	gpu_time_begin(p->stream);
	for (unsigned int i = 0; i < conf.repeat; i++)
		launch(p, k, s);
	ms = gpu_time_end(p->stream);
	fprintf(times, "kernel %s %.3f\n", kernel_names[k], ms * 1000 / conf.repeat);
}

static uint64_t add_up(const uint8_t *p, size_t n)
{
	uint64_t sum = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < n; i++)
		sum = (sum ^ p[i]) * 0x100000001b3ull;
	return sum;
}

static bool run(enum kernel k, struct place *places, unsigned int nr, FILE *times)
{
	bool ok = true;
	void *in, *want, *got, *zero;
	struct shape s;

	tests[k].shape(&s, conf.elements);
	in = malloc(s.in);
	want = calloc(1, s.out);
	got = malloc(s.out);
	zero = calloc(1, s.out);
	if (!in || !want || !got || !zero)
		abort();
	fill(in, s.in);
	tests[k].want(in, want, &s, conf.how == GRAPH ? REPLAYS : 1);
	for (struct place *p = places; p < places + nr; p++) {
		gpu_use(p->ctx, NULL);
		p->in = buffer(s.in, &p->host_in);
		p->out = buffer(s.out, &p->host_out);
		put(p->in, p->host_in, in, s.in);
		put(p->out, p->host_out, zero, s.out);
	}
	for (struct place *p = places; p < places + nr; p++) {
		gpu_use(p->ctx, NULL);
		start(p, k, &s);
	}
	for (struct place *p = places; p < places + nr; p++) {
		gpu_use(p->ctx, NULL);
		gpu_sync(p->stream);
		if (p->host_out)
			memcpy(got, p->host_out, s.out);
		else
			gpu_get(got, p->out, s.out);
		ok &= !memcmp(got, want, s.out);
		if (p->graph)
			gpu_graph_free(p->graph);
		p->graph = NULL;
	}
	if (ok)
		printf("%s %016llx\n", kernel_names[k], (unsigned long long)add_up(got, s.out));
	else
		fprintf(stderr, "memtrace: %s: wrong results\n", kernel_names[k]);
	gpu_use(places->ctx, NULL);
	if (times && conf.repeat)
		time_it(places, k, &s, times);
	usleep(conf.hold * 1000);
	for (struct place *p = places; p < places + nr; p++) {
		gpu_use(p->ctx, NULL);
		release(p->in, p->host_in);
		release(p->out, p->host_out);
	}
	free(in);
	free(want);
	free(got);
	free(zero);
	return ok;
}

static void load_cupti(void)
{
	void *lib = dlopen(conf.cupti, RTLD_NOW);

	if (lib) {
		*(void **)&cupti.begin = dlsym(lib, "memtrace_cupti_begin");
		*(void **)&cupti.end = dlsym(lib, "memtrace_cupti_end");
	}
	if (!cupti.begin || !cupti.end) {
		fprintf(stderr, "memtrace: %s\n", dlerror());
		exit(2);
	}
}

static void usage(void)
{
	fprintf(stderr, "usage: memtrace [--how plain|graph|streams|contexts] [--zero-copy] [--hold MS] [--only GLOB] "
			"[--elements N] [--image PTX]\n"
			"                [--times FILE [--repeat N]] [--cupti LIBRARY] | --list | --probe\n");
	exit(2);
}

static void options(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "how", 1, NULL, 'w' },      { "zero-copy", 0, NULL, 'z' }, { "only", 1, NULL, 'o' },
		{ "elements", 1, NULL, 'e' }, { "image", 1, NULL, 'i' },     { "times", 1, NULL, 't' },
		{ "repeat", 1, NULL, 'r' },   { "cupti", 1, NULL, 'c' },     { "list", 0, NULL, 'l' },
		{ "probe", 0, NULL, 'p' },    { "hold", 1, NULL, 'h' },	     { NULL, 0, NULL, 0 },
	};
	static const char *const hows[NR_HOW] = { "plain", "graph", "streams", "contexts" };
	int c;

	while ((c = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (c) {
		case 'w':
			for (conf.how = PLAIN; conf.how < NR_HOW && strcmp(hows[conf.how], optarg); conf.how++)
				;
			break;
		case 'z':
			conf.zero_copy = true;
			break;
		case 'o':
			conf.only = optarg;
			break;
		case 'e':
			conf.elements = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'i':
			conf.image = optarg;
			break;
		case 't':
			conf.times = optarg;
			break;
		case 'r':
			conf.repeat = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'h':
			conf.hold = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'c':
			conf.cupti = optarg;
			break;
		case 'l':
			conf.list = true;
			break;
		case 'p':
			conf.probe = true;
			break;
		default:
			usage();
		}
	}
	if (optind != argc || conf.how == NR_HOW || conf.elements < 4096 || conf.elements > 1u << 28)
		usage();
}

int main(int argc, char **argv)
{
	struct place places[4] = { 0 };
	unsigned int nr;
	double load_ms;
	FILE *times = NULL;
	bool ok = true;

	options(argc, argv);
	if (conf.list) {
		list();
		return 0;
	}
	if (conf.times && !(times = fopen(conf.times, "we"))) {
		perror(conf.times);
		return 2;
	}
	gpu_init(conf.image);
	gpu_use(0, &load_ms);
	if (times)
		fprintf(times, "load - %.3f\n", load_ms * 1000);
	if (conf.cupti)
		load_cupti();
	if (conf.probe) {
		probe();
		gpu_end();
		return 0;
	}
	nr = conf.how == STREAMS ? 4 : conf.how == CONTEXTS ? (gpu_contexts() < 2 ? 1 : 2) : 1;
	for (unsigned int i = 0; i < nr; i++) {
		places[i].ctx = conf.how == CONTEXTS ? i : 0;
		gpu_use(places[i].ctx, NULL);
		places[i].stream = gpu_stream();
	}
	if (cupti.begin && cupti.begin())
		return 3;
	for (unsigned int k = 0; k < NR_KERNELS; k++)
		if (tests[k].want && (!conf.only || !fnmatch(conf.only, kernel_names[k], 0)))
			ok &= run(k, places, nr, times);
	if (cupti.end && cupti.end())
		return 3;
	for (unsigned int i = 0; i < nr; i++) {
		gpu_use(places[i].ctx, NULL);
		gpu_stream_free(places[i].stream);
	}
	gpu_end();
	if (times)
		fclose(times);
	return !ok;
}
