// SPDX-License-Identifier: GPL-2.0-only
/*
 * ident.c: the program of ident.h. ident [BATCH [SEED [PART...]]]: sizes that depend on the batch are
 * BATCH times as large; SEED determines the order of the threads. PART: sites, loops, churn, threads,
 * cache, modules; all if none is given.
 */
#define _GNU_SOURCE
#include "ident.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define M_SITES(X)                                                                                     \
	X(m, 0, 64, 0, 0)                                                                              \
	X(m, 1, 64, 1, 8)                                                                              \
	X(m, 2, 128, 0, 2)                                                                             \
	X(m, 3, 20, 1, 0)                                                                              \
	X(m, 4, 36, 0, 10)                                                                             \
	X(m, 5, 512, 1, 0)                                                                             \
	X(m, 6, 8, 0, 1)                                                                               \
	X(m, 7, 100, 1, 0)                                                                             \
	X(m, 8, 40, 0, 4) X(m, 9, 64, 0, 0) X(m, 10, 64, 1, 15) X(m, 11, 256, 0, 0) X(m, 12, 12, 1, 3) \
		X(m, 13, 24, 0, 0) X(m, 14, 48, 0, 9) X(m, 15, 96, 1, 0) X(m, 16, 4, 0, 0) X(m, 17, 68, 1, 33)
M_SITES(IDENT_SITE)

#define M_NAME(module, n, kib, scale, copies) module##_##n,
static void (*const sites[])(size_t) = { M_SITES(M_NAME) };

/*
 * Two buffers of one function, and one whose size depends on the batch: 64 and 128 KiB, then 128 and
 * 256.
 */
static IDENT_HIDDEN void loops(size_t batch)
{
	static const char *const layers[] = { "layer.0", "layer.1", "layer.2", "layer.3", "layer.4", "layer.5" };
	static const char *const pair[] = { "pair.small", "pair.large" };
	/* Hidden from the compiler: with an unrolled loop there would be two call sites. */
	volatile int two = 2;

	for (int i = 0; i < 6; i++)
		ident_copy(IDENT_PIN(layers[i], 80 << 10), 80 << 10, i < 2 ? 40 : 0);
	for (int i = 0; i < two; i++)
		ident_copy(IDENT_PIN(pair[i], (size_t)(64 << 10 << i) * batch), 64 << 10, i ? 30 : 0);
	ident_copy(IDENT_PIN("first", 52 << 10), 52 << 10, 3);
	ident_copy(IDENT_PIN("second", 52 << 10), 52 << 10, 0);
	IDENT_HERE(300);
}

static IDENT_HIDDEN void churn(size_t batch)
{
	for (int i = 0; i < 12; i++) {
		void *in = IDENT_PIN("churn.in", (32 << 10) * batch), *out = IDENT_PIN("churn.out", 16 << 10);

		ident_copy(in, 32 << 10, 1);
		if (cudaFreeHost(in) || cudaFreeHost(out))
			exit(4);
	}
	IDENT_HERE(301);
}

/* Threads that all do the same, in a different order in each run. */
struct worker {
	int nr;
	unsigned int seed;
	size_t batch;
	pthread_t thread;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	char label[32];

	usleep(((w->seed * 7919 + (unsigned int)w->nr * 104729) % 13) * 2000);
	snprintf(label, sizeof(label), "worker.%d.in", w->nr);
	ident_copy(IDENT_PIN(label, (size_t)(28 << 10) * w->batch), 28 << 10, w->nr == 1 ? 20 : 0);
	usleep(((w->seed * 31 + (unsigned int)w->nr * 7) % 5) * 2000);
	snprintf(label, sizeof(label), "worker.%d.out", w->nr);
	IDENT_PIN(label, 92 << 10);
	return NULL;
}

static IDENT_HIDDEN void threads(size_t batch, unsigned int seed)
{
	struct worker v[4];

	for (int i = 0; i < 4; i++) {
		v[i] = (struct worker){ .nr = i, .seed = seed, .batch = batch };
		if (pthread_create(&v[i].thread, NULL, work, &v[i]))
			exit(4);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(v[i].thread, NULL);
	IDENT_HERE(302);
}

/*
 * A caching allocator under an interpreter: all allocations of the program go through one path of
 * native frames, in powers of two, and only if no block of that size is free. A block keeps the label
 * that it was first made for.
 */
struct block {
	void *p;
	size_t size;
	int busy;
};

static struct block blocks[64];

static IDENT_HIDDEN struct block *cache_alloc(size_t size, const char *label)
{
	size_t rounded = 4096;
	struct block *b = blocks;

	while (rounded < size)
		rounded *= 2;
	for (; b->p; b++) {
		if (!b->busy && b->size == rounded) {
			b->busy = 1;
			return b;
		}
	}
	*b = (struct block){ IDENT_PIN(label, rounded), rounded, 1 };
	return b;
}

static IDENT_HIDDEN void interpret(size_t batch)
{
	/*
	 * A program as a table: label, KiB, whether the size depends on the batch, how many steps it lives,
	 * how often it is copied.
	 */
	static const struct op {
		const char *label;
		size_t kib;
		int scaled, life, copies;
	} ops[] = {
		{ "py.embed", 60, 0, 99, 2 }, { "py.x", 50, 1, 3, 9 },	    { "py.y", 50, 1, 1, 0 },
		{ "py.mask", 64, 0, 99, 1 },  { "py.cache", 33, 0, 99, 0 }, { "py.logits", 100, 1, 2, 7 },
		{ "py.tmp", 50, 1, 1, 0 },    { "py.ids", 4, 1, 2, 8 },	    { "py.state", 128, 0, 99, 3 },
		{ "py.grad", 120, 1, 4, 0 },  { "py.pos", 4, 0, 99, 1 },    { "py.loss", 3, 1, 1, 1 },
	};
	struct block *held[12] = { 0 };
	int left[12] = { 0 };

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 12; i++) {
			for (int k = 0; k < 12; k++)
				if (left[k] && left[k] < 90 && !--left[k])
					held[k]->busy = 0;
			if (left[i])
				continue;
			held[i] = cache_alloc(ops[i].kib * 1024 * (ops[i].scaled ? batch : 1), ops[i].label);
			left[i] = ops[i].life;
			ident_copy(held[i]->p, 1024, ops[i].copies);
		}
	}
	IDENT_HERE(303);
}

static IDENT_HIDDEN void modules(size_t batch)
{
	void *lib = dlopen("libident_b.so", RTLD_NOW);
	void (*run)(size_t) = lib ? (void (*)(size_t))dlsym(lib, "ident_b_run") : NULL;

	if (!run)
		exit(3);
	ident_a_run(batch);
	run(batch);
	IDENT_HERE(304);
}

#ifdef IDENT_REBUILT
static IDENT_HIDDEN void said_goodbye(int argc)
{
	void *p = IDENT_PIN("new.0", 44 << 10);

	ident_copy(p, 4096, argc);
	IDENT_HERE(305);
}
#endif

static int wanted(int argc, char **argv, const char *part)
{
	for (int i = 3; i < argc; i++)
		if (!strcmp(argv[i], part))
			return 1;
	return argc < 4;
}

int main(int argc, char **argv)
{
	size_t batch = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	unsigned int seed = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 1;

#ifdef IDENT_REBUILT
	if (argc > 90)
		puts("that is a lot of arguments for a program of this size, is it not?");
#endif
	if (wanted(argc, argv, "sites"))
		for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++)
			sites[i](batch);
	if (wanted(argc, argv, "loops"))
		loops(batch);
	if (wanted(argc, argv, "churn"))
		churn(batch);
	if (wanted(argc, argv, "modules"))
		modules(batch);
	if (wanted(argc, argv, "threads"))
		threads(batch, seed);
	if (wanted(argc, argv, "cache"))
		interpret(batch);
#ifdef IDENT_REBUILT
	said_goodbye(argc > 9);
#endif
	printf("{\"pid\":%d}\n", getpid());
	return 0;
}
