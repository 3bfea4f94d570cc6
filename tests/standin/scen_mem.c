// SPDX-License-Identifier: GPL-2.0-only
/*
 * scen_mem.c: scenarios with the program's own memory: mappings, heap, registrations. See scen.c.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scen.h"

#define MIB (1ul << 20)

static void up(char *dev, const char *src, size_t n, enum mem mem)
{
	MUST(cudaMemcpy(dev, src, n, cudaMemcpyHostToDevice));
	copied(H2D, mem, n);
}

static void registered(void *p, size_t n, unsigned int flags)
{
	MUST(cudaHostRegister(p, n, flags));
	book.allocs++;
	book.pins++;
}

static void *map(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p == MAP_FAILED);
	return p;
}

/* Registered memory is unmapped without cudaHostUnregister. */
int scen_unmap(int n)
{
	char *mem = map(MIB), *dev = on_dev(MIB);

	(void)n;
	registered(mem, MIB, 0);
	up(dev, mem, 5000, PINNED);
	MUST(munmap(mem, MIB));
	report("\"addr\":\"0x%lx\"", (unsigned long)mem);
	return 0;
}

/*
 * Each batch is a mapping of its own, at the address of the one before, as workers of a PyTorch loader
 * make them. Of four batches the first is unmapped, the third is mapped over the second, and the third
 * is moved away.
 */
int scen_batches(int n)
{
	char *dev = on_dev(8 * MIB), *mem, *first = NULL, *away = map(8 * MIB);
	volatile int how; /* else the compiler makes two loops, with two call sites */
	int elsewhere = 0;

	for (int i = 0; i < n; i++) {
		how = i % 4;
		mem = mmap(first, 8 * MIB, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | (how == 2 ? MAP_FIXED : 0), -1, 0);
		elsewhere += first && mem != first;
		first = mem;
		memset(mem, i, 8 * MIB);
		up(dev, mem, 8 * MIB, PAGEABLE);
		if (how == 2)
			MUST(mremap(mem, 8 * MIB, 8 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, away) != away);
		else if (how != 1)
			MUST(munmap(mem, 8 * MIB));
	}
	report("\"elsewhere\":%d", elsewhere);
	return 0;
}

/*
 * A mapping of 16 MiB: copies from it whole, after a hole was cut out of its middle from both parts,
 * after the upper part was moved and grown, and after another mapping was put into the hole. Then the
 * same bytes by brk.
 */
int scen_maps(int n)
{
	char *m = map(16 * MIB + 8192), *low, *high, *hole, *dev = on_dev(16 * MIB), *heap;

	(void)n;
	/* Pages without access around it, so that it stays a mapping of its own. */
	MUST(mprotect(m, 4096, PROT_NONE) || mprotect(m + 4096 + 16 * MIB, 4096, PROT_NONE));
	low = m + 4096;
	memset(low, 1, 16 * MIB);
	up(dev, low, 16 * MIB, PAGEABLE);
	MUST(munmap(low + 6 * MIB, 4 * MIB));
	up(dev, low + MIB, MIB, PAGEABLE);
	high = low + 10 * MIB;
	up(dev, high + 4096, 2 * MIB, PAGEABLE);
	high = mremap(high, 6 * MIB, 12 * MIB, MREMAP_MAYMOVE);
	MUST(high == MAP_FAILED);
	up(dev, high + 5 * MIB, 2 * MIB, PAGEABLE);
	hole = mmap(low + 7 * MIB, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		    -1, 0);
	MUST(hole == MAP_FAILED);
	up(dev, hole, 4096, PAGEABLE);
	heap = sbrk(4 * MIB);
	MUST(heap == (void *)-1);
	memset(heap, 2, 4 * MIB);
	up(dev, heap + 100, 3 * MIB, PAGEABLE);
	MUST(sbrk(-(intptr_t)(4 * MIB)) == (void *)-1);
	report("\"low\":\"0x%lx\",\"high\":\"0x%lx\",\"hole\":\"0x%lx\",\"heap\":\"0x%lx\"", (unsigned long)low,
	       (unsigned long)high, (unsigned long)hole, (unsigned long)heap);
	return 0;
}

/* Overlapping and read-only registrations: distinct pages are 256 + 64, in three registrations. */
int scen_overlap(int n)
{
	char *mem = map(4 * MIB), *dev = on_dev(MIB);

	(void)n;
	registered(mem, MIB, 0);
	registered(mem + MIB / 2, MIB / 2, 0);
	registered(mem + 2 * MIB, MIB / 4, cudaHostRegisterReadOnly);
	up(dev, mem + 2 * MIB, 1000, PINNED);
	MUST(cudaHostUnregister(mem));
	book.frees++;
	up(dev, mem + MIB / 2, 1000, PINNED);
	up(dev, mem, 1000, PAGEABLE);
	report("\"addr\":\"0x%lx\",\"peak_pages\":320", (unsigned long)mem);
	return 0;
}

/*
 * Memory that was there before the trace began: a mapping, a heap block, a pin and a device
 * allocation.
 */
int scen_old(int n)
{
	char *m = map(4 * MIB + 8192), *big = malloc(8 * MIB), *host = pin(MIB), *dev = on_dev(MIB);
	char ready[32];

	(void)n;
	MUST(!big);
	/* Pages without access on both sides, so that no other mapping is merged with it. */
	MUST(mprotect(m, 4096, PROT_NONE) || mprotect(m + 4096 + 4 * MIB, 4096, PROT_NONE));
	m += 4096;
	memset(m, 1, 4 * MIB);
	memset(big, 1, 8 * MIB);
	memset(&book, 0, sizeof(book));
	snprintf(ready, sizeof(ready), "ready %d", getpid());
	meet(ready);
	up(dev, m + 4096, 4096, PAGEABLE);
	up(dev, big + 100, MIB, PAGEABLE);
	MUST(cudaFreeHost(host));
	report("\"map\":\"0x%lx\",\"big\":\"0x%lx\",\"old_frees\":1", (unsigned long)m, (unsigned long)big);
	free(big);
	return 0;
}

/* malloc, small (heap) and large (a mapping of its own). */
int scen_heap(int n)
{
	char *small = malloc(1000), *large = malloc(64 * MIB), *dev = on_dev(MIB);

	(void)n;
	MUST(!small || !large);
	memset(small, 1, 1000);
	memset(large, 1, MIB);
	up(dev, small, 1000, PAGEABLE);
	for (size_t i = 0; i < 8; i++)
		up(dev, large + i * 4 * MIB, MIB, PAGEABLE);
	report("\"small\":\"0x%lx\",\"large\":\"0x%lx\"", (unsigned long)small, (unsigned long)large);
	free(large);
	free(small);
	return 0;
}

/*
 * Registered memory that parent and child write after a fork: the child's is a copy and not pinned.
 */
int scen_cow(int n)
{
	char *mem = map(MIB), *dev = on_dev(MIB);
	pid_t child;
	int status;

	(void)n;
	registered(mem, MIB, 0);
	child = fork();
	if (!child) {
		memset(mem, 7, MIB);
		_exit(cudaMemcpy(dev, mem, 4096, cudaMemcpyHostToDevice) ? 1 : 0);
	}
	MUST(child < 0);
	memset(mem, 8, MIB);
	MUST(waitpid(child, &status, 0) != child || status);
	up(dev, mem, 8192, PINNED);
	MUST(cudaHostUnregister(mem));
	book.frees++;
	report("\"child\":%d", child);
	return 0;
}
