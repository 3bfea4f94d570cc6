// SPDX-License-Identifier: GPL-2.0-only
/*
 * model.c: memory of the stand-in libraries, see model.h. Any thread may call it; one lock protects
 * the tables, and none is held while bytes are copied. It knows nothing of CUDA's names and
 * structures.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model.h"

#define PAGE	    4096ull
#define CLASSES	    256 /* arena blocks of 1 .. 256 pages */
#define HOST_ARENA  (16ull << 30)
#define DEV_SPACE   (256ull << 30)
#define DEV_GRANULE 512ull /* alignment of device allocations, as CUDA's */
#define SYMBOLS	    (16ull << 20)
#define SLOT_BITS   22 /* hoard has two million blocks; a full table has no end */
#define SLOTS	    (1u << SLOT_BITS)

enum kind { FREE, GONE, HOST, REGISTERED, MANAGED, DEVICE, RESERVED };

struct block {
	uint64_t addr;
	uint64_t size;
	enum kind kind;
};

struct arena {
	char *base;
	uint64_t used, len;
	uint64_t granule;
	struct free_list {
		uint64_t *addrs;
		size_t n, cap;
	} free[CLASSES + 1];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct arena host, managed, device;
static char *shadow;	     /* bytes of the device */
static struct block *blocks; /* open addressing by (addr, registered or not) */
static bool broken;

static char *reserve(size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void init(void)
{
	int fd = memfd_create("standin-device", MFD_CLOEXEC);
	void *p = MAP_FAILED;

	host = (struct arena){ .base = reserve(HOST_ARENA, PROT_READ | PROT_WRITE),
			       .len = HOST_ARENA,
			       .granule = PAGE };
	managed = (struct arena){ .base = reserve(HOST_ARENA, PROT_READ | PROT_WRITE),
				  .len = HOST_ARENA,
				  .granule = PAGE };
	for (uint64_t hint = 16ull << 40; hint < (120ull << 40) && p == MAP_FAILED; hint += 1ull << 40)
		p = mmap((void *)hint, DEV_SPACE, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	device = (struct arena){
		.base = p == MAP_FAILED ? NULL : p, .used = SYMBOLS, .len = DEV_SPACE, .granule = DEV_GRANULE
	};
	p = MAP_FAILED;
	if (fd >= 0 && !ftruncate(fd, (off_t)DEV_SPACE))
		p = mmap(NULL, DEV_SPACE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	shadow = p == MAP_FAILED ? NULL : p;
	if (fd >= 0)
		close(fd);
	blocks = (void *)reserve(SLOTS * sizeof(*blocks), PROT_READ | PROT_WRITE);
	broken = !host.base || !managed.base || !device.base || !shadow || !blocks;
}

static void take_lock(void)
{
	pthread_once(&once, init);
	pthread_mutex_lock(&lock);
}

/* Finds a live block. Registrations have a key of their own, since they are over other memory. */
static struct block *block_find(uint64_t addr, bool registered)
{
	for (uint64_t i = (addr / DEV_GRANULE * 0x9e3779b97f4a7c15ull) >> (64 - SLOT_BITS);; i++) {
		struct block *b = &blocks[i % SLOTS];

		if (b->kind == FREE)
			return NULL;
		if (b->kind != GONE && b->addr == addr && (b->kind == REGISTERED) == registered)
			return b;
	}
}

static void block_add(uint64_t addr, uint64_t size, enum kind kind)
{
	uint64_t i = (addr / DEV_GRANULE * 0x9e3779b97f4a7c15ull) >> (64 - SLOT_BITS);

	while (blocks[i % SLOTS].kind != FREE && blocks[i % SLOTS].kind != GONE)
		i++;
	blocks[i % SLOTS] = (struct block){ addr, size, kind };
}

static size_t class_of(const struct arena *a, uint64_t size)
{
	return size ? (size_t)((size + a->granule - 1) / a->granule) : 1;
}

static uint64_t arena_take(struct arena *a, uint64_t size)
{
	size_t c = class_of(a, size);
	uint64_t addr;

	if (c <= CLASSES && a->free[c].n)
		return a->free[c].addrs[--a->free[c].n];
	if (a->used + c * a->granule > a->len)
		return 0;
	addr = (uint64_t)a->base + a->used;
	a->used += c * a->granule;
	return addr;
}

/* Blocks beyond the largest class are not reused: the address space is large. */
static void arena_give(struct arena *a, uint64_t addr, uint64_t size)
{
	size_t c = class_of(a, size);
	struct free_list *l = &a->free[c <= CLASSES ? c : 0];

	if (c > CLASSES)
		return;
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		uint64_t *addrs = realloc(l->addrs, cap * sizeof(*addrs));

		if (!addrs)
			return;
		l->addrs = addrs;
		l->cap = cap;
	}
	l->addrs[l->n++] = addr;
}

static int alloc_in(struct arena *a, void **p, uint64_t size, enum kind kind)
{
	uint64_t addr;

	if (!p)
		return E_VALUE;
	take_lock();
	addr = broken ? 0 : arena_take(a, size);
	if (addr)
		block_add(addr, size, kind);
	pthread_mutex_unlock(&lock);
	if (!addr)
		return E_MEMORY;
	*p = (void *)addr;
	return 0;
}

int model_host_alloc(void **p, size_t size)
{
	void *big;

	if (size <= CLASSES * PAGE)
		return alloc_in(&host, p, size, HOST);
	if (!p)
		return E_VALUE;
	big = size < (1ull << 46) ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)
				  : MAP_FAILED;
	if (big == MAP_FAILED)
		return E_MEMORY;
	take_lock();
	if (broken) {
		pthread_mutex_unlock(&lock);
		munmap(big, size);
		return E_MEMORY;
	}
	block_add((uint64_t)big, size, HOST);
	pthread_mutex_unlock(&lock);
	*p = big;
	return 0;
}

/* Removes a block from the table. */
static int block_take(void *p, bool registered, struct block *ret)
{
	struct block *b;
	int err = E_VALUE;

	take_lock();
	b = broken ? NULL : block_find((uint64_t)p, registered);
	if (b) {
		*ret = *b;
		b->kind = GONE;
		err = 0;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static void give_back(const struct block *b)
{
	if (b->kind == HOST && b->size > CLASSES * PAGE) {
		munmap((void *)b->addr, b->size);
		return;
	}
	if (b->kind == REGISTERED)
		return;
	take_lock();
	arena_give(b->kind == HOST ? &host : b->kind == MANAGED ? &managed : &device, b->addr, b->size);
	pthread_mutex_unlock(&lock);
}

static int free_kind(void *p, bool want_host)
{
	struct block b = { 0 };
	int err;

	if (!p)
		return 0;
	err = block_take(p, false, &b);
	if (err)
		return err;
	if ((b.kind == HOST) != want_host) {
		take_lock();
		block_add(b.addr, b.size, b.kind);
		pthread_mutex_unlock(&lock);
		return E_VALUE;
	}
	give_back(&b);
	return 0;
}

int model_host_free(void *p)
{
	return free_kind(p, true);
}

int model_dev_free(void *p)
{
	return free_kind(p, false);
}

int model_register(void *p, size_t size)
{
	struct block *b;
	int err = 0;

	if (!p || !size)
		return E_VALUE;
	take_lock();
	if (broken)
		err = E_MEMORY;
	else if (block_find((uint64_t)p, true) || ((b = block_find((uint64_t)p, false)) && b->kind == HOST))
		err = E_REGISTERED;
	else
		block_add((uint64_t)p, size, REGISTERED);
	pthread_mutex_unlock(&lock);
	return err;
}

int model_unregister(void *p)
{
	struct block b;

	return block_take(p, true, &b) ? E_NOT_REGISTERED : 0;
}

int model_managed_alloc(void **p, size_t size)
{
	return alloc_in(&managed, p, size, MANAGED);
}

int model_dev_alloc(void **p, size_t size)
{
	return alloc_in(&device, p, size, DEVICE);
}

int model_reserve(void **p, size_t size)
{
	return alloc_in(&device, p, size, RESERVED);
}

void model_reset(void)
{
	take_lock();
	for (size_t i = 0; !broken && i < SLOTS; i++) {
		struct block b = blocks[i];

		if (b.kind == FREE || b.kind == GONE)
			continue;
		blocks[i].kind = GONE;
		pthread_mutex_unlock(&lock);
		give_back(&b);
		take_lock();
	}
	pthread_mutex_unlock(&lock);
}

bool model_is_device(const void *p)
{
	pthread_once(&once, init);
	return device.base && (uint64_t)p - (uint64_t)device.base < DEV_SPACE;
}

static bool is_host_block(const struct block *b)
{
	return b && (b->kind == HOST || b->kind == REGISTERED);
}

/*
 * For any address in the block: cudaHostGetFlags() fails "if the input pointer does not reside in an
 * address range allocated by cudaHostAlloc()" (CUDA Runtime API).
 */
bool model_is_host(const void *p)
{
	uint64_t at = (uint64_t)p;
	bool found = false;

	if (model_is_device(p))
		return false;
	take_lock();
	if (!broken)
		found = is_host_block(block_find(at, true)) || is_host_block(block_find(at, false));
	for (size_t i = 0; i < SLOTS && !broken && !found; i++)
		found = is_host_block(&blocks[i]) && at - blocks[i].addr < blocks[i].size;
	pthread_mutex_unlock(&lock);
	return found;
}

static void *bytes_of(const void *p)
{
	return model_is_device(p) ? shadow + ((const char *)p - device.base) : (void *)p;
}

int model_copy_now(const struct model_copy *c)
{
	if (!c->width || !c->rows || !c->slices)
		return 0;
	if (!c->dst || !c->src || !shadow)
		return E_VALUE;
	for (size_t z = 0; z < c->slices; z++)
		for (size_t y = 0; y < c->rows; y++)
			memmove((char *)bytes_of(c->dst) + z * c->dslice + y * c->dpitch,
				(char *)bytes_of(c->src) + z * c->sslice + y * c->spitch, c->width);
	return 0;
}

int model_set(void *p, int value, size_t n)
{
	if (!p || !shadow)
		return E_VALUE;
	memset(bytes_of(p), value, n);
	return 0;
}

void *model_symbol(const void *symbol, size_t offset)
{
	pthread_once(&once, init);
	return device.base ? device.base + ((uint64_t)symbol % (SYMBOLS / 2) / 16 * 16) + offset : NULL;
}

/* ---- arrays ---- */
struct array {
	size_t pitch;
	void *mem;
};

int model_array_new(void **handle, size_t width, size_t height)
{
	struct array *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return E_MEMORY;
	a->pitch = width;
	err = model_dev_alloc(&a->mem, width * (height ? height : 1));
	if (err) {
		free(a);
		return err;
	}
	*handle = a;
	return 0;
}

int model_array_free(void *handle)
{
	struct array *a = handle;
	int err;

	if (!a)
		return 0;
	err = model_dev_free(a->mem);
	free(a);
	return err;
}

void *model_array(const void *handle, size_t w, size_t h, size_t *pitch)
{
	const struct array *a = handle;

	if (!a)
		return NULL;
	if (pitch)
		*pitch = a->pitch;
	return (char *)a->mem + h * a->pitch + w;
}
