// SPDX-License-Identifier: GPL-2.0-only
/*
 * pin-advised.c: an allocator that pins what paid for it in an earlier run.
 *
 *	cc -O2 -fno-omit-frame-pointer pin-advised.c $(pkg-config --cflags --libs libttmon) -lcudart
 *	ttmond --dump-db run1.json.gz -- ./a.out		the first run: everything is pinned, and traced
 *	./a.out run1.json.gz					the second one
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ttmon/client.h>

/* Of cuda_runtime_api.h. */
int cudaHostAlloc(void **p, size_t size, unsigned int flags);
int cudaFreeHost(void *p);
int cudaMalloc(void **p, size_t size);
int cudaMemcpy(void *to, const void *from, size_t n, int kind);
#define TO_DEVICE 1

#define MB (1u << 20)

static struct ttmon_advisor *advisor; /* NULL: nothing is known */
static unsigned int buffers, pinned;
static size_t bytes, pinned_bytes;

struct buffer {
	void *p;
	size_t size;
	int is_pinned;
};

/* Not inlined: the functions above it are the call site. */
static __attribute__((noinline)) struct buffer host_alloc(size_t size)
{
	struct buffer b = { NULL, size, 1 };
	struct ttmon_answer a;

	/* Unknown: as without advice. A kernel may read some memory in place: that stays pinned. */
	if (ttmon_advise_here(advisor, size, &a) == TTMON_VERDICT_NO_PIN && !a.in_place)
		b.is_pinned = 0;
	if (b.is_pinned && cudaHostAlloc(&b.p, size, 0))
		b.is_pinned = 0;
	if (!b.is_pinned) {
		b.p = aligned_alloc(4096, size);
		/* So that the next database has it too, and can say that this was wrong. */
		TTMON_ALLOC(b.p, size, NULL);
	}
	buffers++;
	bytes += size;
	pinned += b.is_pinned;
	pinned_bytes += b.is_pinned ? size : 0;
	return b;
}

static void host_free(struct buffer *b)
{
	if (b->is_pinned) {
		cudaFreeHost(b->p);
	} else {
		TTMON_FREE(b->p);
		free(b->p);
	}
}

static __attribute__((noinline)) void make_batches(struct buffer *b)
{
	for (int i = 0; i < 2; i++)
		b[i] = host_alloc(3 * MB);
}

static __attribute__((noinline)) void make_cache(struct buffer *b)
{
	for (int i = 0; i < 4; i++)
		b[i] = host_alloc(3 * MB);
}

static __attribute__((noinline)) void make_tables(struct buffer *b)
{
	for (int i = 0; i < 2; i++)
		b[i] = host_alloc(2 * MB);
}

int main(int argc, char **argv)
{
	const char *const *databases = (const char *const *)argv + 1;
	struct buffer b[8];
	void *device = NULL;
	char why[256];

	if (argc > 1 && ttmon_advisor_open(databases, (size_t)argc - 1, NULL, &advisor, why, sizeof(why)))
		fprintf(stderr, "going on without advice: %s\n", why);
	make_batches(b);
	make_cache(b + 2);
	make_tables(b + 6);
	if (cudaMalloc(&device, 3 * MB))
		return 1;
	/* The batches go to the device in each step; the cache and the tables never do. */
	for (int step = 0; step < 100; step++) {
		for (int i = 0; i < 2; i++) {
			memset(b[i].p, step, b[i].size);
			if (cudaMemcpy(device, b[i].p, b[i].size, TO_DEVICE))
				return 1;
		}
		ttmon_checkpoint(advisor, "step");
	}
	printf("pinned %u of %u buffers, %zu of %zu MiB\n", pinned, buffers, pinned_bytes / MB, bytes / MB);
	for (int i = 0; i < 8; i++)
		host_free(&b[i]);
	ttmon_advisor_close(advisor);
	return 0;
}
