// SPDX-License-Identifier: GPL-2.0-only
/*
 * libttmon_sites.c: a program whose own allocator queries libttmon and then calls cudaHostAlloc, from
 * several call sites: through one function, from two places of one function, in a loop, below a
 * recursion, in a thread, and by name. Some buffers are copied, some are not: the program knows the
 * right answer for each. Prints one line of JSON.
 *
 *	libttmon_sites [-n] [DB...]	-n: a different order of calls, and different sizes in the loop
 *
 * It is built normally, without frame pointers, with the archive, and as another build of the program
 * (REBUILT: different offsets, another build-id).
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ttmon/client.h>

#include "cuda_api.h"

#define NI __attribute__((noinline))
#define MB (1u << 20)

static struct ttmon_advisor *adv;
static unsigned int match[TTMON_MATCH_MAX], wrong, asked;
static void *device;

struct buf {
	void *p;
	size_t size;
	bool hot;
	struct buf *next;
};
static struct buf *bufs;

static void note(const struct ttmon_answer *a, bool hot)
{
	asked++;
	match[a->match]++;
	wrong += a->verdict != (hot ? TTMON_VERDICT_PIN : TTMON_VERDICT_NO_PIN);
}

static void keep(void *p, size_t size, bool hot)
{
	struct buf *b = malloc(sizeof(*b));

	if (!b || !p)
		exit(4);
	*b = (struct buf){ .p = p, .size = size, .hot = hot, .next = bufs };
	bufs = b;
}

#ifdef REBUILT
static NI int unrelated(int x)
{
	return x * 7 + getpid();
}
#endif

/* The allocator. */
static NI void *host_alloc(size_t size, bool hot)
{
	struct ttmon_answer a;
	void *p = NULL;

	ttmon_advise_here(adv, size, &a);
	note(&a, hot);
#ifdef REBUILT
	if (unrelated((int)size) == 3)
		return NULL;
#endif
	if (cudaHostAlloc(&p, size, cudaHostAllocDefault))
		exit(4);
	keep(p, size, hot);
	return p;
}

static NI void weights(void)
{
	for (int i = 0; i < 4; i++)
		host_alloc(3 * MB, i < 2);
}

static NI void two_places(void)
{
	host_alloc(2 * MB, true);
	host_alloc(MB, false);
}

static NI void batch(void)
{
	for (unsigned int i = 0; i < 3; i++)
		host_alloc(MB / 2, true);
}

static NI int deep(int n)
{
	int r = n ? deep(n - 1) : (host_alloc(5 * MB, true), 0);

	return r + n;
}

static NI void *thread(void *arg)
{
	host_alloc(7 * MB, false);
	return arg;
}

static NI void named(void)
{
	static const struct {
		const char *tag;
		bool hot;
	} tags[] = { { "activations", true }, { "kv cache of a layer, with a long name", false } };

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		struct ttmon_answer a;
		void *p = malloc(4 * MB);

		ttmon_advise_name(adv, tags[i].tag, 4 * MB, &a);
		note(&a, tags[i].hot);
		keep(p, 4 * MB, tags[i].hot);
		TTMON_ALLOC(p, 4 * MB, tags[i].tag);
	}
}

int main(int argc, char **argv)
{
	bool other = argc > 1 && !strcmp(argv[1], "-n");
	const char *const *dbs = (const char *const *)argv + 1 + other;
	size_t n = (size_t)(argc - 1 - other);
	struct ttmon_advisor_stats st;
	char why[256] = "";
	pthread_t t;

	if (n && ttmon_advisor_open(dbs, n, NULL, &adv, why, sizeof(why))) {
		printf("{\"error\":\"%s\"}\n", why);
		return 1;
	}
	if (cudaMalloc(&device, 8 * MB))
		return 4;
	if (other)
		named();
	weights();
	two_places();
	batch();
	deep(20);
	if (pthread_create(&t, NULL, thread, NULL) || pthread_join(t, NULL))
		return 4;
	if (!other)
		named();
	for (int step = 0; step < 50; step++)
		for (struct buf *b = bufs; b; b = b->next)
			if (b->hot && cudaMemcpy(device, b->p, b->size, cudaMemcpyHostToDevice))
				return 4;
	ttmon_advisor_get_stats(adv, &st);
	printf("{\"pid\":%d,\"asked\":%u,\"lookups\":%llu,\"wrong\":%u,\"none\":%u,\"order\":%u,\"names\":%u,"
	       "\"site\":%u,\"exact\":%u,"
	       "\"peak_pin_bytes\":%llu}\n",
	       getpid(), asked, (unsigned long long)st.lookups, wrong, match[TTMON_MATCH_NONE],
	       match[TTMON_MATCH_ORDER], match[TTMON_MATCH_NAMES], match[TTMON_MATCH_SITE], match[TTMON_MATCH_EXACT],
	       (unsigned long long)st.peak_pin_bytes);
	ttmon_advisor_close(adv);
	return 0;
}
