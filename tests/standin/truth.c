// SPDX-License-Identifier: GPL-2.0-only
/*
 * truth.c: a program with host memory of every kind that executes commands one by one and keeps its
 * own accounts. The test of ttmond's results under partial knowledge (tests/e2e/t_truth.py) attaches
 * to it at any point and compares every view with these accounts.
 *
 *	truth COMMANDS REPLIES		two FIFOs; each line of COMMANDS is answered by one line of JSON
 *
 *	old			memory that is mapped first: neighbours that the kernel merges into one mapping
 *	heap			blocks in [heap]; large ones as well, as glibc's threshold for mmap is raised
 *	load PATH|-		the runtime is loaded and a buffer of the device is made; -: it was preloaded
 *	ask LIBTTMON DB		from now on libttmon is queried before each pin, with this database
 *	make, late		one buffer of each kind, some at one time and some later; each is made in a
 *				function of its own, make_NAME
 *	copy N			N copies of each buffer that is hot, in copy_NAME
 *	once N			N copies of each buffer that is hot only at the beginning
 *	free			releases some buffers: frees, unregisters, unmaps
 *	torch N, drop		N steps with PyTorch's caching allocator of pinned memory (powers of two, blocks
 *				are kept and used again; half of them are registered, as with
 *				pinned_use_cuda_host_register); and its empty_cache
 *	spin MS			ten small copies per millisecond for this time, as a load
 *	book			prints the accounts
 *	quit
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <ttmon/client.h>

#include "cuda_api.h"
#include "standin.h"

#define KIB 1024ul
#define MIB (1024 * KIB)

/*
 * Columns: name, kind, size, when it is made, which copies it has. All sizes differ, so that the size
 * identifies the buffer in a view. OLD ones are adjacent, in this order.
 */
#define BUFFERS(B)                                            \
	B(pin_hot, PIN, 2 * MIB, MAKE, H2D)                   \
	B(pin_cold, PIN, 2 * MIB + 8 * KIB, MAKE, NEVER)      \
	B(pin_was, PIN, 2 * MIB + 16 * KIB, MAKE, ONCE)       \
	B(pin_d2h, PIN, 2 * MIB + 24 * KIB, MAKE, D2H)        \
	B(page_hot, MAP, 2 * MIB + 32 * KIB, MAKE, H2D)       \
	B(page_cold, MAP, 2 * MIB + 40 * KIB, MAKE, NEVER)    \
	B(page_was, MAP, 2 * MIB + 48 * KIB, MAKE, ONCE)      \
	B(page_d2h, MAP, 2 * MIB + 56 * KIB, MAKE, D2H)       \
	B(reg_hot, REG, 2 * MIB + 64 * KIB, MAKE, H2D)        \
	B(reg_cold, REG, 2 * MIB + 72 * KIB, MAKE, NEVER)     \
	B(reg_was, REG, 2 * MIB + 80 * KIB, MAKE, ONCE)       \
	B(late_pin_hot, PIN, 3 * MIB, LATE, H2D)              \
	B(late_pin_cold, PIN, 3 * MIB + 8 * KIB, LATE, NEVER) \
	B(late_page_hot, MAP, 3 * MIB + 16 * KIB, LATE, H2D)  \
	B(late_page_d2h, MAP, 3 * MIB + 24 * KIB, LATE, D2H)  \
	B(late_reg_hot, REG, 3 * MIB + 32 * KIB, LATE, H2D)   \
	B(old_edge0, OLD, 12 * KIB, FIRST, NEVER)             \
	B(old_hot, OLD, 16 * MIB, FIRST, H2D)                 \
	B(old_edge1, OLD, 16 * KIB, FIRST, NEVER)             \
	B(old_d2h, OLD, 5 * MIB, FIRST, D2H)                  \
	B(old_edge2, OLD, 20 * KIB, FIRST, NEVER)             \
	B(old_reg, OLD_REG, 4 * MIB, FIRST, H2D)              \
	B(old_edge3, OLD, 24 * KIB, FIRST, NEVER)             \
	B(old_gone, OLD, 6 * MIB, FIRST, H2D)                 \
	B(old_edge4, OLD, 28 * KIB, FIRST, NEVER)             \
	B(old_cold, OLD, 7 * MIB, FIRST, NEVER)               \
	B(heap_small, HEAP, 68 * KIB, HEAPS, H2D)             \
	B(heap_big, HEAP, 1 * MIB, HEAPS, H2D)                \
	B(heap_d2h, HEAP, 1 * MIB + 8 * KIB, HEAPS, D2H)      \
	B(heap_cold, HEAP, 1 * MIB + 16 * KIB, HEAPS, NEVER)  \
	B(heap_reg, HEAP_REG, 1 * MIB + 24 * KIB, HEAPS, H2D)

enum what { PIN, MAP, REG, OLD, OLD_REG, HEAP, HEAP_REG };
enum when { FIRST, HEAPS, MAKE, LATE };
enum use { NEVER, H2D, D2H, ONCE };

enum id {
#define B(name, what, size, when, use) ID_##name,
	BUFFERS(B)
#undef B
		IDS
};

struct buffer {
	const char *name;
	enum what what;
	size_t size;
	enum when when;
	enum use use;
	char *p;
	char *(*make)(size_t size);
	void (*copy)(char *p, size_t size, enum use use);
	uint64_t made, pinned, unpinned, freed;
	int asked; /* the answer of libttmon; -1: it was not queried */
	int host;  /* 1: the runtime itself treats it as host memory; -1: it was not queried */
	char *log; /* of the copies: [first, last, direction, count, bytes] */
};

#define FUNCTIONS(F)          \
	F(cudaHostAlloc)      \
	F(cudaFreeHost)       \
	F(cudaHostRegister)   \
	F(cudaHostUnregister) \
	F(cudaMalloc) F(cudaMemcpy) F(cudaMemcpyAsync) F(cudaStreamSynchronize) F(cudaStreamCreate)
#define F(name) static __typeof__(&name) do_##name;
FUNCTIONS(F)
#undef F

static FILE *replies;
static struct ttmon_advisor *advisor;
static __typeof__(&ttmon_advise_here) advise_here;
static int answer; /* of libttmon to the last query */
static char *dev, *region;
static cudaStream_t stream;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "truth: %s\n", what);
	exit(4);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * ---- how memory is made and copied; forced inline, so that the functions named after the buffers
 * call the runtime directly ----
 */
static inline __attribute__((always_inline)) char *make(enum what what, size_t size)
{
	struct ttmon_answer told = { 0 };
	char *p = NULL;

	answer = -1;
	if (advise_here && (what == PIN || what == REG))
		answer = (int)advise_here(advisor, size, &told);
	if (what == PIN)
		must(!do_cudaHostAlloc((void **)&p, size, cudaHostAllocDefault), "cudaHostAlloc");
	else if (what == HEAP || what == HEAP_REG)
		p = memalign(4096, size);
	else
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(p && p != MAP_FAILED, "no memory");
	memset(p, 1, size);
	if (what == REG)
		must(!do_cudaHostRegister(p, size, cudaHostRegisterDefault), "cudaHostRegister");
	return p;
}

static inline __attribute__((always_inline)) void copy(char *p, size_t size, enum use use)
{
	if (use == D2H)
		must(!do_cudaMemcpy(p, dev, size, cudaMemcpyDeviceToHost), "cudaMemcpy");
	else
		must(!do_cudaMemcpy(dev, p, size, cudaMemcpyHostToDevice), "cudaMemcpy");
}

#define B(name, what, size_, when, use_)                                 \
	static KEPT char *make_##name(size_t size)                       \
	{                                                                \
		char *p = make(what, size);                              \
                                                                         \
		__asm__ volatile("" ::: "memory");                       \
		return p;                                                \
	}                                                                \
	static KEPT void copy_##name(char *p, size_t size, enum use use) \
	{                                                                \
		copy(p, size, use);                                      \
		__asm__ volatile("" ::: "memory");                       \
	}
BUFFERS(B)
#undef B

static struct buffer buffers[] = {
#define B(name_, what_, size_, when_, use_) \
	{ .name = #name_,                   \
	  .what = what_,                    \
	  .size = size_,                    \
	  .when = when_,                    \
	  .use = use_,                      \
	  .make = make_##name_,             \
	  .copy = copy_##name_ },
	BUFFERS(B)
#undef B
};

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(replies, fmt, args);
	va_end(args);
	putc('\n', replies);
	must(!fflush(replies), "nobody reads the replies");
}

/* ---- commands ---- */

/* One mapping each, adjacent and with the same rights: the kernel merges them. */
static void make_old(void)
{
	size_t size = 0, at = 0;
	char *base;

	for (int i = 0; i < IDS; i++)
		size += buffers[i].when == FIRST ? buffers[i].size : 0;
	region = mmap(NULL, size + 2 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(region != MAP_FAILED, "no address space");
	base = region + MIB;
	for (int i = 0; i < IDS; i++) {
		struct buffer *b = &buffers[i];

		if (b->when != FIRST)
			continue;
		b->p = mmap(base + at, b->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		must(b->p != MAP_FAILED, "mmap");
		memset(b->p, 1, b->size);
		b->made = now_ns();
		at += b->size;
	}
}

static void pin(struct buffer *b)
{
	must(!do_cudaHostRegister(b->p, b->size, cudaHostRegisterDefault), "cudaHostRegister");
	b->pinned = now_ns();
}

static void make_all(enum when when)
{
	for (int i = 0; i < IDS; i++) {
		struct buffer *b = &buffers[i];

		if (b->when != when)
			continue;
		b->p = b->make(b->size);
		b->made = now_ns();
		b->asked = answer;
		if (b->what == PIN || b->what == REG)
			b->pinned = b->made;
	}
	/* Old memory is registered when the runtime is loaded. */
	for (int i = 0; i < IDS && when == MAKE; i++)
		if (buffers[i].p && (buffers[i].what == OLD_REG || buffers[i].what == HEAP_REG))
			pin(&buffers[i]);
}

static void copy_all(int n, bool once)
{
	for (int i = 0; i < IDS; i++) {
		struct buffer *b = &buffers[i];
		uint64_t begin = now_ns();
		int times = b->size < 256 * KIB ? 8 * n : n;
		char *log;

		if (!b->p || b->freed || b->unpinned || b->use == NEVER || (b->use == ONCE) != once)
			continue;
		for (int k = 0; k < times; k++)
			b->copy(b->p, b->size, b->use);
		must(asprintf(&log, "%s%s[%lu,%lu,\"%s\",%d,%lu]", b->log ? b->log : "", b->log ? "," : "", begin,
			      now_ns(), b->use == D2H ? "d2h" : "h2d", times, (size_t)times * b->size) > 0,
		     "no memory");
		free(b->log);
		b->log = log;
	}
}

static void load(const char *path)
{
	void *lib = strcmp(path, "-") ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : RTLD_DEFAULT;

	must(lib || !strcmp(path, "-"), "dlopen");
#define F(name)                                               \
	do_##name = (__typeof__(do_##name))dlsym(lib, #name); \
	must(do_##name, #name);
	FUNCTIONS(F)
#undef F
	must(!do_cudaMalloc((void **)&dev, 32 * MIB), "cudaMalloc");
	must(!do_cudaStreamCreate(&stream), "cudaStreamCreate");
}

static void ask(const char *path, const char *db)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	__typeof__(&ttmon_advisor_open) open = lib ? (__typeof__(open))dlsym(lib, "ttmon_advisor_open") : NULL;
	char why[256];

	must(open, "no libttmon");
	advise_here = (__typeof__(advise_here))dlsym(lib, "ttmon_advise_here");
	must(!open(&db, 1, NULL, &advisor, why, sizeof(why)), why);
}

/* Each way in which memory is released; cold memory stays to the end. */
static void free_some(void)
{
	static const enum id gone[] = { ID_pin_hot,  ID_pin_was, ID_pin_d2h,  ID_reg_hot, ID_reg_was,
					ID_page_d2h, ID_old_reg, ID_heap_reg, ID_old_gone };

	for (size_t i = 0; i < sizeof(gone) / sizeof(*gone); i++) {
		struct buffer *b = &buffers[gone[i]];

		if (!b->p || b->freed)
			continue;
		b->unpinned = b->pinned ? now_ns() : 0;
		if (b->what == PIN)
			must(!do_cudaFreeHost(b->p), "cudaFreeHost");
		else if (b->pinned)
			must(!do_cudaHostUnregister(b->p), "cudaHostUnregister");
		if (b->what == MAP || b->what == REG || gone[i] == ID_old_gone) {
			must(!munmap(b->p, b->size), "munmap");
			b->freed = now_ns();
		} else if (b->what == PIN) {
			b->freed = now_ns();
		}
	}
}

/* ---- PyTorch's caching allocator of pinned memory ---- */
#define BLOCKS 64
static struct block {
	char *p;
	size_t size;
	bool busy, registered;
	uint64_t made, freed, copies, bytes;
} blocks[BLOCKS];
static int nr_blocks;

static KEPT struct block *pool_take(size_t size)
{
	size_t round = 4096;
	struct block *b;

	while (round < size)
		round *= 2;
	for (int i = 0; i < nr_blocks; i++)
		if (!blocks[i].busy && !blocks[i].freed && blocks[i].size == round) {
			blocks[i].busy = true;
			return &blocks[i];
		}
	must(nr_blocks < BLOCKS, "too many blocks");
	b = &blocks[nr_blocks];
	*b = (struct block){ .size = round, .busy = true, .registered = nr_blocks % 2 };
	nr_blocks++;
	if (b->registered) {
		b->p = mmap(NULL, round, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		must(b->p != MAP_FAILED, "mmap");
		memset(b->p, 1, round);
		must(!do_cudaHostRegister(b->p, round, cudaHostRegisterDefault), "cudaHostRegister");
	} else {
		must(!do_cudaHostAlloc((void **)&b->p, round, cudaHostAllocDefault), "cudaHostAlloc");
	}
	b->made = now_ns();
	return b;
}

/*
 * A batch is collated into a block, and copied without waiting; a busy block is not handed out again
 * before its stream has finished.
 */
static KEPT void torch_step(int step)
{
	static const size_t sizes[] = { 300 * KIB, 900 * KIB, 1900 * KIB, 900 * KIB, 40 * KIB };
	struct block *taken[5];

	for (int i = 0; i < 5; i++) {
		size_t size = sizes[(i + step) % 5];
		struct block *b = taken[i] = pool_take(size);

		memset(b->p, step, size);
		must(!do_cudaMemcpyAsync(dev, b->p, size, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
		b->copies++;
		b->bytes += size;
	}
	must(!do_cudaStreamSynchronize(stream), "cudaStreamSynchronize");
	for (int i = 0; i < 5; i++)
		taken[i]->busy = false;
}

static void torch_drop(void)
{
	for (int i = 0; i < nr_blocks; i++) {
		struct block *b = &blocks[i];

		if (b->freed)
			continue;
		if (b->registered)
			must(!do_cudaHostUnregister(b->p) && !munmap(b->p, b->size), "cudaHostUnregister");
		else
			must(!do_cudaFreeHost(b->p), "cudaFreeHost");
		b->freed = now_ns();
	}
}

static void spin(int ms)
{
	uint64_t end = now_ns() + (uint64_t)ms * 1000000;

	while (now_ns() < end) {
		for (int i = 0; i < 10; i++)
			must(!do_cudaMemcpy(dev, dev + 64, 64, cudaMemcpyDeviceToDevice), "cudaMemcpy");
		usleep(1000);
	}
}

static void book(void)
{
	static const char *const whats[] = { "pin", "map", "reg", "old", "old_reg", "heap", "heap_reg" };
	const char *comma = "";

	fprintf(replies, "{\"pid\":%d,\"dev\":\"%p\",\"now\":%lu,\"buffers\":[", getpid(), (void *)dev, now_ns());
	for (int i = 0; i < IDS; i++) {
		const struct buffer *b = &buffers[i];

		if (!b->p)
			continue;
		fprintf(replies,
			"%s{\"name\":\"%s\",\"what\":\"%s\",\"addr\":%lu,\"size\":%lu,\"made\":%lu,\"pinned\":%lu,"
			"\"unpinned\":%lu,"
			"\"freed\":%lu,\"asked\":%d,\"host\":%d,\"copies\":[%s]}",
			comma, b->name, whats[b->what], (unsigned long)b->p, b->size, b->made, b->pinned, b->unpinned,
			b->freed, b->asked, b->host, b->log ? b->log : "");
		comma = ",";
	}
	fprintf(replies, "],\"blocks\":[");
	for (int i = 0; i < nr_blocks; i++)
		fprintf(replies,
			"%s{\"addr\":%lu,\"size\":%lu,\"registered\":%s,\"made\":%lu,\"freed\":%lu,\"copies\":%lu,"
			"\"bytes\":%lu}",
			i ? "," : "", (unsigned long)blocks[i].p, blocks[i].size,
			blocks[i].registered ? "true" : "false", blocks[i].made, blocks[i].freed, blocks[i].copies,
			blocks[i].bytes);
	say("]}");
}

/* Queries the runtime directly: the memory that it has as allocated or registered host memory. */
static void ask_runtime(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	int (*flags_of)(unsigned int *flags, void *p) = lib ? dlsym(lib, "cudaHostGetFlags") : NULL;
	unsigned int flags;

	must(flags_of, "the runtime's cudaHostGetFlags");
	for (int i = 0; i < IDS; i++)
		if (buffers[i].p)
			buffers[i].host = !flags_of(&flags, buffers[i].p) &&
					  !flags_of(&flags, buffers[i].p + buffers[i].size - 1);
}

static bool obey(char *line)
{
	const char *word = strtok(line, " \n"), *arg = strtok(NULL, " \n");
	int n = arg ? atoi(arg) : 0;

	if (!word || !strcmp(word, "quit"))
		return false;
	if (!strcmp(word, "book")) {
		book();
		return true;
	}
	if (!strcmp(word, "old"))
		make_old();
	else if (!strcmp(word, "heap"))
		make_all(HEAPS);
	else if (!strcmp(word, "load"))
		load(arg);
	else if (!strcmp(word, "ask"))
		ask(arg, strtok(NULL, " \n"));
	else if (!strcmp(word, "runtime"))
		ask_runtime(arg);
	else if (!strcmp(word, "make"))
		make_all(MAKE);
	else if (!strcmp(word, "late"))
		make_all(LATE);
	else if (!strcmp(word, "copy") || !strcmp(word, "once"))
		copy_all(n, *word == 'o');
	else if (!strcmp(word, "free"))
		free_some();
	else if (!strcmp(word, "torch"))
		for (int i = 0; i < n; i++)
			torch_step(i);
	else if (!strcmp(word, "drop"))
		torch_drop();
	else if (!strcmp(word, "spin"))
		spin(n);
	else
		must(false, word);
	say("{\"pid\":%d}", getpid());
	return true;
}

int main(int argc, char **argv)
{
	char line[4096];
	FILE *commands;

	/* Large blocks in [heap], and none returned to the kernel. */
	mallopt(M_MMAP_THRESHOLD, 32 * MIB);
	mallopt(M_TRIM_THRESHOLD, 1024 * MIB);
	if (argc != 3)
		return 2;
	commands = fopen(argv[1], "re");
	replies = fopen(argv[2], "we");
	must(commands && replies, "FIFOs");
	say("{\"pid\":%d}", getpid());
	while (fgets(line, sizeof(line), commands) && obey(line))
		;
	return 0;
}
