// SPDX-License-Identifier: GPL-2.0-only
/*
 * mem.c: allocates device addresses, and knows where their bytes are in the host. Device addresses
 * come from a part of the address space that the host cannot read. Pinned and registered memory has
 * its host address on the device too (or a new one, if the test requests that).
 */
#include "gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define AREA (64ull << 30)

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t area;
static struct gpu_range *ranges;
static size_t nr, cap;
static atomic_uint_fast64_t generation = 1;

static void reserve(void)
{
	void *p = mmap(NULL, AREA + GPU_WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		fprintf(stderr, "gpusim: no address space for the device\n");
		abort();
	}
	area = ((uintptr_t)p + GPU_WINDOW - 1) / GPU_WINDOW * GPU_WINDOW;
}

uint64_t gpu_shared_base(void)
{
	pthread_once(&once, reserve);
	return area;
}

uint64_t gpu_local_base(void)
{
	return gpu_shared_base() + GPU_WINDOW;
}

uint64_t gpu_mem_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_acquire);
}

/* Returns the index of the first range that ends after dev; under the lock. */
static size_t at(uint64_t dev)
{
	size_t lo = 0, hi = nr;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (ranges[mid].dev + ranges[mid].size <= dev)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool insert(const struct gpu_range *r)
{
	size_t i = at(r->dev);

	if (i < nr && ranges[i].dev < r->dev + r->size)
		return false;
	if (nr == cap) {
		cap = cap ? 2 * cap : 64;
		ranges = realloc(ranges, cap * sizeof(*ranges));
		if (!ranges)
			abort();
	}
	memmove(ranges + i + 1, ranges + i, (nr - i) * sizeof(*ranges));
	ranges[i] = *r;
	nr++;
	atomic_fetch_add(&generation, 1);
	return true;
}

/*
 * Returns the address of a gap of this size in the area; 0: there is none. One free page is left
 * between two ranges, so that an access past an end is noticed.
 */
static uint64_t gap(uint64_t size)
{
	uint64_t from = area + 2ull * GPU_WINDOW;

	if (size > AREA)
		return 0;
	for (size_t i = at(from); i < nr && ranges[i].dev < area + AREA; i++) {
		if (ranges[i].dev >= from + size + 4096)
			return from;
		from = (ranges[i].dev + ranges[i].size + 4096 + 511) / 512 * 512;
	}
	return from + size + 4096 <= area + AREA ? from : 0;
}

uint64_t gpu_mem_map(void *host, uint64_t size, enum gpu_mem_kind kind, unsigned int flags, bool same, void *owner)
{
	struct gpu_range r = { .size = size, .host = host, .kind = kind, .flags = flags, .owner = owner };

	gpu_shared_base();
	pthread_rwlock_wrlock(&lock);
	r.dev = same ? (uintptr_t)host : gap(size);
	if (r.dev && !insert(&r))
		r.dev = 0;
	pthread_rwlock_unlock(&lock);
	return r.dev;
}

uint64_t gpu_mem_alloc(uint64_t size, void *owner)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t dev;

	if (p == MAP_FAILED)
		return 0;
	dev = gpu_mem_map(p, size, MEM_DEVICE, 0, false, owner);
	if (!dev)
		munmap(p, size);
	return dev;
}

bool gpu_mem_find(uint64_t dev, struct gpu_range *ret)
{
	bool found;
	size_t i;

	pthread_rwlock_rdlock(&lock);
	i = at(dev);
	found = i < nr && ranges[i].dev <= dev;
	if (found)
		*ret = ranges[i];
	pthread_rwlock_unlock(&lock);
	return found;
}

bool gpu_mem_find_host(const void *host, struct gpu_range *ret)
{
	bool found = false;

	pthread_rwlock_rdlock(&lock);
	for (size_t i = 0; i < nr && !found; i++)
		if (ranges[i].kind != MEM_DEVICE && (const char *)host >= ranges[i].host &&
		    (const char *)host < ranges[i].host + ranges[i].size) {
			*ret = ranges[i];
			found = true;
		}
	pthread_rwlock_unlock(&lock);
	return found;
}

static void drop(size_t i)
{
	if (ranges[i].kind == MEM_DEVICE)
		munmap(ranges[i].host, ranges[i].size);
	memmove(ranges + i, ranges + i + 1, (nr - i - 1) * sizeof(*ranges));
	nr--;
	atomic_fetch_add(&generation, 1);
}

bool gpu_mem_free(uint64_t dev, struct gpu_range *was)
{
	bool found;
	size_t i;

	pthread_rwlock_wrlock(&lock);
	i = at(dev);
	found = i < nr && ranges[i].dev == dev;
	if (found && was)
		*was = ranges[i];
	if (found)
		drop(i);
	pthread_rwlock_unlock(&lock);
	return found;
}

void gpu_mem_free_owner(void *owner)
{
	pthread_rwlock_wrlock(&lock);
	for (size_t i = nr; i-- > 0;)
		if (ranges[i].owner == owner && ranges[i].kind == MEM_DEVICE)
			drop(i);
	pthread_rwlock_unlock(&lock);
}

void *gpu_mem_host(uint64_t dev, uint64_t n)
{
	struct gpu_range r;

	if (!gpu_mem_find(dev, &r)) {
		uint64_t base = gpu_shared_base();

		return dev >= base && dev < base + AREA ? NULL : (void *)(uintptr_t)dev;
	}
	return n <= r.size && dev - r.dev <= r.size - n ? r.host + (dev - r.dev) : NULL;
}

uint64_t gpu_mem_used(void)
{
	uint64_t sum = 0;

	pthread_rwlock_rdlock(&lock);
	for (size_t i = 0; i < nr; i++)
		if (ranges[i].kind == MEM_DEVICE)
			sum += ranges[i].size;
	pthread_rwlock_unlock(&lock);
	return sum;
}
