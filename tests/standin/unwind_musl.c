// SPDX-License-Identifier: GPL-2.0-only
/*
 * unwind_musl.c: call stacks of a program with musl, which has no backtrace(): the sizes identify the
 * stacks (t_unwind.py).
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int sink;

/* The allocator that --alloc-fn names. */
__attribute__((noinline)) void *unwind_alloc(size_t size);
__attribute__((noinline)) void *unwind_alloc(size_t size)
{
	sink++;
	return malloc(size);
}

__attribute__((noinline)) static int recursive(int n, size_t size)
{
	volatile char room[24];

	room[n % 24] = (char)n;
	return (n ? recursive(n - 1, size) : unwind_alloc(size) != NULL) + room[n % 24];
}

static void on_signal(int sig)
{
	sink += (unwind_alloc(200) != NULL) + sig;
}

static void *in_thread(void *arg)
{
	sink += recursive(2, 300);
	return arg;
}

int main(void)
{
	pthread_t t;

	sink += recursive(5, 100);
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	if (pthread_create(&t, NULL, in_thread, NULL) || pthread_join(t, NULL))
		return 1;
	usleep(500000);
	return sink == 0;
}
