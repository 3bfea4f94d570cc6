// SPDX-License-Identifier: GPL-2.0-only
/*
 * unwind.c: call stacks of C: recursion, alloca, callbacks of libc, tail calls, signal handlers, longjmp, 16 threads, constructors, a
 * library that is closed again. Built without frame pointers, with them, static, not position-independent, stripped: standin.mk.
 */
#include "unwind.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>

static volatile int sink;

__attribute__((noinline)) static int in_recursion(int n)
{
	volatile char room[24];

	room[n % 24] = (char)n;
	if (!n)
		return unwind_pin(4096) != NULL;
	return in_recursion(n - 1) + room[n % 24];
}

__attribute__((noinline)) static int with_alloca(int n)
{
	volatile char *room = __builtin_alloca((size_t)n);

	memset((char *)room, n, (size_t)n);
	return (unwind_pin(8192) != NULL) + room[n - 1];
}

/* Aligned more than the stack is: such functions find their way back by another register. */
__attribute__((noinline)) static int aligned(int n)
{
	volatile char room[256] __attribute__((aligned(64)));
	volatile char *more = __builtin_alloca((size_t)n);

	room[n % 256] = more[n / 2] = (char)n;
	return (unwind_pin(12288) != NULL) + room[n % 256] + more[n / 2];
}

static int by_value(const void *a, const void *b)
{
	sink += unwind_pin(16384) != NULL;
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static int sorted(void)
{
	int v[4] = { 4, 2, 3, 1 };

	qsort(v, 4, sizeof(v[0]), by_value);
	return v[0];
}

/* A jump, with -O2: this function is on no stack. */
__attribute__((noinline)) static void *tail(size_t size)
{
	sink++;
	return unwind_pin(size);
}

__attribute__((noinline)) static int tail_caller(void)
{
	return (tail(20480) != NULL) + sink;
}

static void on_signal(int sig)
{
	sink += unwind_pin(24576) != NULL;
	sink += sig;
}

__attribute__((noinline)) static int signalled(int n)
{
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	return n + sink;
}

static jmp_buf back;

__attribute__((noinline)) static void jumps(int n)
{
	sink += unwind_pin(28672) != NULL;
	if (n)
		longjmp(back, n);
}

__attribute__((noinline)) static int jumped(void)
{
	volatile int n = 3;

	if (setjmp(back))
		n--;
	jumps(n);
	return n;
}

static void *in_thread(void *arg)
{
	for (int i = 0; i < 8; i++) {
		sink += in_recursion(3 + (int)(long)arg % 4);
		sink += with_alloca(100 + i);
	}
	return arg;
}

__attribute__((noinline)) static void threads(void)
{
	pthread_t t[16];

	for (long i = 0; i < 16; i++)
		if (pthread_create(&t[i], NULL, in_thread, (void *)i))
			exit(4);
	for (int i = 0; i < 16; i++)
		pthread_join(t[i], NULL);
}

#ifndef UNWIND_STATIC
int cudaMalloc(void **p, size_t size);
int cudaMemcpy(void *to, const void *from, size_t size, int kind);

/* Ordinary memory is named by who copies from it. */
__attribute__((noinline)) static int copy_inner(void *device, const void *host, size_t size)
{
	volatile char room[48];

	room[size % 48] = 1;
	return cudaMemcpy(device, host, size, 1) + room[size % 48];
}

__attribute__((noinline)) static int copy_outer(size_t size)
{
	void *host = malloc(size), *device = NULL;

	if (!host || cudaMalloc(&device, size))
		exit(6);
	memset(host, 1, size);
	return copy_inner(device, host, size) + sink;
}

/* A library that is mapped, used and closed again: each time it may lie elsewhere. */
__attribute__((noinline)) static void library(void)
{
	for (int i = 0; i < 4; i++) {
		void *lib = dlopen("libunwind_part.so", RTLD_NOW);
		int (*calls)(void *(*)(size_t), size_t) =
			lib ? (int (*)(void *(*)(size_t), size_t))dlsym(lib, "part_calls") : NULL;

		if (!calls)
			exit(5);
		sink += calls(unwind_pin, 32768);
		/* Before its mapping is read, if nobody has waited for it. */
		dlclose(lib);
	}
}
#endif

#ifdef UNWIND_STATIC
/* UNWIND_SPIN=SECONDS: it allocates all the time. */
__attribute__((noinline)) static void spin(void)
{
	const char *s = getenv("UNWIND_SPIN");
	time_t until = time(NULL) + (s ? atoi(s) : 0);

	while (s && time(NULL) < until)
		for (int i = 0; i < 100; i++)
			free(unwind_pin(64));
}
#endif

int main(void)
{
	unwind_begin();
	for (int i = 0; i < 20; i++) {
		sink += in_recursion(i);
		sink += with_alloca(64 + 40 * i);
		sink += aligned(32 + i);
		sink += tail_caller();
	}
	sink += sorted();
	sink += signalled(1);
	sink += jumped();
	unwind_wait();
	threads();
#ifdef UNWIND_STATIC
	spin();
#else
	sink += copy_outer(4 << 20);
	library();
#endif
	unwind_end();
	return 0;
}
