// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_unwind.c: unwinding call stacks of 8, 16, 27 and 32 frames from copies of this program's own
 * stack, without frame pointers: with warm caches, and with nothing cached. The goal is 150,000 warm
 * stacks of 27 frames per second on one core. For comparison it walks the same copies by frame
 * pointers.
 */
#include <pthread.h>
#include <time.h>

#include "tests/unit/feed/ownstack.h"

#define ROUNDS 50000
#define COLD   200

static struct own_maps maps;
static struct ttmon_uw *uw;
static struct ttmon_stack_copy copy;
static struct ttmon_uw_result got;
static volatile int sink;

static const struct ttmon_uw_files ops = { .locate = own_locate, .table = own_table, .ctx = &maps };

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Frames of 48 bytes or more; those of the interpreter and PyTorch have 160 on average. */
__attribute__((noinline, optimize("omit-frame-pointer"))) static int deep(int n, uint64_t top)
{
	volatile char room[40];
	int v;

	room[n % 40] = (char)n;
	if (n)
		v = deep(n - 1, top);
	else {
		own_stack(&copy, top);
		v = 1;
	}
	return v + room[n % 40];
}

static void measure(unsigned int frames)
{
	uint64_t t0, warm, cold = 0;
	double a_stack;

	ttmon_uw_unwind(uw, &copy, &ops, frames, &got);
	if (got.n != frames) {
		printf("FAIL bench_unwind: %u frames, %u wanted\n", got.n, frames);
		exit(1);
	}
	t0 = now_ns();
	for (int i = 0; i < ROUNDS; i++)
		ttmon_uw_unwind(uw, &copy, &ops, frames, &got);
	warm = now_ns() - t0;
	for (int i = 0; i < COLD; i++) {
		struct ttmon_uw *fresh;

		if (ttmon_uw_new(TTMON_UW_ROWS, &fresh))
			exit(1);
		t0 = now_ns();
		ttmon_uw_unwind(fresh, &copy, &ops, frames, &got);
		cold += now_ns() - t0;
		ttmon_uw_free(fresh);
	}
	a_stack = (double)warm / ROUNDS;
	printf("bench_unwind: %2u frames: %7.0f ns warm (%4.0f a frame, %7.0f stacks/s), %8.0f ns with no row cached\n",
	       frames, a_stack, a_stack / frames, 1e9 / a_stack, (double)cold / COLD);
}

int main(void)
{
	static const unsigned int frames[] = { 8, 16, 27, 32 };
	pthread_attr_t attr;
	void *base;
	size_t size;

	if (pthread_getattr_np(pthread_self(), &attr) || pthread_attr_getstack(&attr, &base, &size) ||
	    ttmon_uw_new(TTMON_UW_ROWS, &uw))
		return 1;
	own_maps_read(&maps);
	sink = deep(40, (uint64_t)base + size);
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		measure(frames[i]);
	printf("bench_unwind: %zu executable mappings of %u files\n", maps.n, maps.objects);
	ttmon_uw_free(uw);
	own_maps_free(&maps);
	return 0;
}
