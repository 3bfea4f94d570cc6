// SPDX-License-Identifier: GPL-2.0-only
/*
 * pin.c: pins, unpins, fails and allocates DMA buffers on /dev/tenstorrent/0 and 1, several threads at
 * once too, and prints its book as one line of JSON. With --closes it also lets an open file end that
 * holds something. It keeps the pages' own counts, so that the peak is known however ranges overlap.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE	4096UL
#define PAGES	64
#define THREADS 4
#define ROUNDS	100

enum { ALLOCATE_DMA_BUF = 0xfa03, PIN_PAGES = 0xfa07, UNPIN_PAGES = 0xfa0a };

struct pin_pages {
	uint32_t out_size, flags;
	uint64_t addr, size, phys;
};

struct unpin_pages {
	uint64_t addr, size, reserved;
};

struct dma_buf {
	uint32_t size;
	uint8_t index, flags, reserved[18];
	uint64_t phys, offset;
	uint32_t made, pad;
	uint64_t noc, more;
};

static char *mem;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_hold;
static unsigned int count[PAGES];
static unsigned long pages, peak, registered, dma, unpins, dma_bytes;
static struct {
	unsigned long pin_inval, pin_exist, pin_fault, unpin_inval, dma_inval;
} errors;

static void die(const char *what)
{
	fprintf(stderr, "pin: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* A failed ioctl has to fail like this. */
static void fails(int ret, int with, unsigned long *n)
{
	if (ret == 0 || errno != with)
		die("did not fail as it should");
	(*n)++;
}

static void add_pages(unsigned long n)
{
	pages += n;
	if (pages > peak)
		peak = pages;
}

/* fresh: no process has this range pinned now, so it is a new registration. */
static void pin(int fd, unsigned int first, unsigned int n, int fresh, struct pin_pages *arg)
{
	struct pin_pages own;

	if (!arg) {
		own = (struct pin_pages){ 8, 0, (uintptr_t)mem + first * PAGE, n * PAGE, 0 };
		arg = &own;
	}
	if (ioctl(fd, PIN_PAGES, arg))
		die("PIN_PAGES");
	pthread_mutex_lock(&lock);
	registered += (unsigned int)fresh;
	for (unsigned int i = first; i < first + n; i++)
		if (!count[i]++)
			add_pages(1);
	pthread_mutex_unlock(&lock);
}

/* The book is kept before the call, as the pages go at its entry. */
static void unpin(int fd, unsigned int first, unsigned int n)
{
	struct unpin_pages arg = { (uintptr_t)mem + first * PAGE, n * PAGE, 0 };

	pthread_mutex_lock(&lock);
	unpins++;
	for (unsigned int i = first; i < first + n; i++)
		pages -= !--count[i];
	pthread_mutex_unlock(&lock);
	if (ioctl(fd, UNPIN_PAGES, &arg))
		die("UNPIN_PAGES");
}

static void allocate(int fd, uint8_t index, uint32_t size)
{
	struct dma_buf arg = { .size = size, .index = index };

	if (ioctl(fd, ALLOCATE_DMA_BUF, &arg))
		die("ALLOCATE_DMA_BUF");
	dma++;
	dma_bytes += arg.made;
	add_pages(arg.made / PAGE);
}

static void fail_all(int fd)
{
	struct pin_pages odd = { 8, 0, (uintptr_t)mem + 1, PAGE, 0 }, twice = { 8, 0, (uintptr_t)mem, 4 * PAGE, 0 };
	struct unpin_pages none = { (uintptr_t)mem + 60 * PAGE, PAGE, 0 };
	struct dma_buf taken = { .size = PAGE, .index = 0 };

	fails(ioctl(fd, PIN_PAGES, &odd), EINVAL, &errors.pin_inval);
	fails(ioctl(fd, PIN_PAGES, &twice), EEXIST, &errors.pin_exist);
	fails(ioctl(fd, PIN_PAGES, 8), EFAULT, &errors.pin_fault);
	fails(ioctl(fd, UNPIN_PAGES, &none), EINVAL, &errors.unpin_inval);
	fails(ioctl(fd, ALLOCATE_DMA_BUF, &taken), EINVAL, &errors.dma_inval);
}

/* The same numbers on files of others mean nothing. */
static void elsewhere(void)
{
	struct pin_pages arg = { 8, 0, (uintptr_t)mem, PAGE, 0 };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), zero = open("/dev/zero", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < 10; i++)
		if (!ioctl(null, PIN_PAGES, &arg) || !ioctl(zero, UNPIN_PAGES, &arg) || !ioctl(-1, PIN_PAGES, &arg))
			die("another file took it");
	close(null);
	close(zero);
}

/* Arguments in a page of a file that this program has not touched yet. */
static void cold_arguments(int fd)
{
	struct pin_pages arg = { 8, 0, (uintptr_t)mem + 50 * PAGE, PAGE, 0 };
	int file = memfd_create("arg", MFD_CLOEXEC);
	void *p;

	if (file < 0 || ftruncate(file, PAGE) || pwrite(file, &arg, sizeof(arg), 0) != (ssize_t)sizeof(arg))
		die("memfd");
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (p == MAP_FAILED)
		die("mmap");
	pin(fd, 50, 1, 1, p);
	unpin(fd, 50, 1);
	munmap(p, PAGE);
	close(file);
}

struct thread {
	pthread_t id;
	int fd;
	unsigned int page;
};

/* All hold their page at once, so the peak is certain. */
static void *churn(void *arg)
{
	const struct thread *t = arg;

	pin(t->fd, t->page, 1, 1, NULL);
	pthread_barrier_wait(&all_hold);
	for (int i = 0; i < ROUNDS; i++) {
		unpin(t->fd, t->page, 1);
		pin(t->fd, t->page, 1, 1, NULL);
	}
	unpin(t->fd, t->page, 1);
	return NULL;
}

/* What a file holds goes with it: also where another descriptor of the device has the same range. */
static void close_one(int other)
{
	int fd = open("/dev/tenstorrent/0", O_RDWR | O_CLOEXEC);

	pin(fd, 20, 4, 1, NULL);
	pin(fd, 30, 2, 1, NULL);
	pin(other, 30, 2, 0, NULL);
	allocate(fd, 0, 3 * PAGE);
	close(fd);
	pages -= 3 + 4;
	for (int i = 20; i < 24; i++)
		count[i] = 0;
	count[30]--;
	count[31]--;
	pin(other, 20, 4, 1, NULL);
	unpin(other, 20, 4);
	unpin(other, 30, 2);
}

int main(int argc, char **argv)
{
	int a = open("/dev/tenstorrent/0", O_RDWR | O_CLOEXEC), b = open("/dev/tenstorrent/1", O_RDWR | O_CLOEXEC);
	struct thread threads[THREADS];

	mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (a < 0 || b < 0 || mem == MAP_FAILED)
		die("/dev/tenstorrent");
	elsewhere();
	pin(a, 0, 4, 1, NULL);
	pin(b, 0, 4, 0, NULL);
	pin(a, 2, 4, 1, NULL);
	allocate(a, 0, 5000);
	allocate(b, 0, 3 * PAGE);
	fail_all(a);
	unpin(b, 0, 4);
	cold_arguments(b);
	if (argc > 1 && !strcmp(argv[1], "--closes"))
		close_one(a);
	pthread_barrier_init(&all_hold, NULL, THREADS);
	for (unsigned int i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){ .fd = i & 1 ? a : b, .page = 40 + i };
		pthread_create(&threads[i].id, NULL, churn, &threads[i]);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i].id, NULL);
	unpin(a, 0, 4);
	printf("{\"pid\": %d, \"registered\": %lu, \"tt_dma\": %lu, \"dma_bytes\": %lu, \"peak\": %lu, "
	       "\"left_pages\": %lu, \"errors\": "
	       "{\"PIN_PAGES\": %lu, \"UNPIN_PAGES\": %lu, \"ALLOCATE_DMA_BUF\": %lu}}\n",
	       getpid(), registered, dma, dma_bytes, peak, pages,
	       errors.pin_inval + errors.pin_exist + errors.pin_fault, errors.unpin_inval, errors.dma_inval);
	return 0;
}
