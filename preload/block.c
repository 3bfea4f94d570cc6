// SPDX-License-Identifier: GPL-2.0-only
/* block.c: the table of allocated memory, and when memory can be reused: see pin.h. */
#include <stdatomic.h>
#include <sys/mman.h>

#include "preload/pin.h"
#include "lib/os/clock.h"

struct ttmon_pin_state ttmon_pin = { .lock = PTHREAD_MUTEX_INITIALIZER };
#define S ttmon_pin

static void lock(void)
{
	pthread_mutex_lock(&S.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&S.lock);
}

/*
 * A fork copies the locks in a consistent state. If CUDA was used, the child has no CUDA, and keeps
 * what it inherits.
 */
static void before_fork(void)
{
	ttmon_pin_regions_before_fork();
	lock();
}

static void in_parent(void)
{
	unlock();
	ttmon_pin_regions_after_fork();
}

static void in_child(void)
{
	bool had = S.count.allocs || S.count.failed_allocs;

	unlock();
	S.child = ttmon_pin_regions_after_fork() || had;
}

static __attribute__((constructor)) void at_load(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- the table; all functions with the lock held ---- */

struct ttmon_pin_block *ttmon_pin_find(uint64_t addr)
{
	struct ttmon_ranges_pos pos;
	struct ttmon_pin_block *b;

	if (!ttmon_ranges_floor(&S.ranges, addr, &pos))
		return NULL;
	b = &S.blocks[pos.val];
	return addr - b->addr < MAX(b->room, 1) && !b->cached ? b : NULL;
}

static struct ttmon_pin_block *find_base(const void *p)
{
	struct ttmon_pin_block *b = ttmon_pin_find((uintptr_t)p);

	return b && b->addr == (uintptr_t)p ? b : NULL;
}

static struct ttmon_pin_block *new_block(void)
{
	uint32_t i;

	if (S.free_list) {
		i = S.free_list;
		S.free_list = S.blocks[i].next_free;
		return &S.blocks[i];
	}
	/* Number 0 is not used, so that an empty list is 0. */
	if (S.n + 1 >= S.cap) {
		uint32_t cap = S.cap ? 2 * S.cap : 256;
		struct ttmon_pin_block *blocks = realloc(S.blocks, cap * sizeof(*blocks));

		if (!blocks)
			return NULL;
		S.blocks = blocks;
		S.cap = cap;
	}
	return &S.blocks[++S.n];
}

static uint32_t index_of(const struct ttmon_pin_block *b)
{
	return (uint32_t)(b - S.blocks);
}

static void release_index(struct ttmon_pin_block *b)
{
	b->used = false;
	b->next_free = S.free_list;
	S.free_list = index_of(b);
}

static int add_block(const struct ttmon_pin_block *like)
{
	struct ttmon_pin_block *b = new_block();

	if (!b)
		return -ENOMEM;
	*b = *like;
	b->used = true;
	if (ttmon_ranges_add(&S.ranges, b->addr, b->addr + MAX(b->room, 1), index_of(b))) {
		release_index(b);
		return -ENOMEM;
	}
	if (b->managed)
		atomic_fetch_add(&S.managed, 1);
	if (b->pinned)
		ttmon_pin_pages_add(&S.pages, b->addr, b->room);
	if (b->apart)
		S.apart += ttmon_pin_pages_of(b->room);
	return 0;
}

/* Removes the block from the table, into *ret. */
static void take_block(struct ttmon_pin_block *b, struct ttmon_pin_block *ret)
{
	ttmon_ranges_del(&S.ranges, b->addr);
	if (b->managed && !b->cached)
		atomic_fetch_sub(&S.managed, 1);
	if (b->apart)
		S.apart -= ttmon_pin_pages_of(b->room);
	*ret = *b;
	release_index(b);
}

/* ---- freeing memory ---- */

/*
 * Frees a block that is not in the table any more; the lock is not held. Returns CUDA's result. Its
 * pages are subtracted first, because another thread may get them before the call returns.
 */
static int destroy(struct ttmon_pin_block *b)
{
	bool gone = true;
	int err = 0;

	if (b->pinned) {
		lock();
		ttmon_pin_pages_del(&S.pages, b->addr);
		unlock();
	}
	if (b->how == TTMON_PIN_CUDA) {
		err = b->api->host_free((void *)b->addr);
		gone = !err;
	} else if (b->how == TTMON_PIN_PIECE) {
		TTMON_FREE((void *)b->addr);
		if (!S.child)
			ttmon_pin_piece_freed(b);
		return 0;
	} else {
		/* A child has no copies in progress, and no CUDA. */
		if (!S.child) {
			gone = ttmon_pin_settle(b);
			if (gone && b->pinned) {
				QUIET(b->api);
				gone = !b->api->unreg((void *)b->addr);
			}
		}
		if (b->announced)
			TTMON_FREE((void *)b->addr);
		if (gone)
			munmap((void *)b->addr, b->room);
		else
			atomic_fetch_add(&S.leaked, b->room);
	}
	if (!gone && b->pinned) {
		lock();
		ttmon_pin_pages_put_back(&S.pages, b->addr, b->room);
		unlock();
	}
	if (!S.child)
		ttmon_pin_drop_events(b);
	return err;
}

/* Returns the pinned pages that the cache's limit applies to. */
static uint64_t pinned_pages(void)
{
	return S.pages.now + S.coming - MIN(S.pages.now, S.apart);
}

/*
 * Frees cached blocks until so many more pages respect the limit. all: empty the cache. The lock is
 * not held. Returns the number of freed blocks.
 */
static unsigned int cut(uint64_t extra, bool all)
{
	struct ttmon_pin_block b;
	unsigned int n = 0;
	uint32_t i;

	for (;; n++) {
		lock();
		S.pool.limit = ttmon_pin_conf()->limit_pages;
		i = all ? ttmon_pin_pool_oldest(&S.pool) : ttmon_pin_pool_excess(&S.pool, pinned_pages(), extra);
		if (i != TTMON_PIN_NONE)
			take_block(&S.blocks[i], &b);
		unlock();
		if (i == TTMON_PIN_NONE)
			return n;
		(void)!destroy(&b);
	}
}

/* ---- allocation ---- */

static void counted(const struct ttmon_pin_plan *plan, uint64_t size)
{
	S.count.allocs++;
	S.count.requested += size;
	S.count.why[plan->why]++;
	S.count.why_bytes[plan->why] += size;
	S.count.verdict[plan->verdict]++;
	S.count.verdict_bytes[plan->verdict] += size;
	S.count.match[plan->match]++;
}

static bool is_pageable(const struct ttmon_pin_plan *plan)
{
	return plan->why == TTMON_PIN_PAGEABLE || plan->why == TTMON_PIN_NO_FIT;
}

static bool can_manage(const struct ttmon_pin_api *api)
{
	return api->events && api->reg && api->unreg && api->device_ptr;
}

/* Makes a mapping for the block. Returns false if memory runs out. */
static bool map(struct ttmon_pin_block *b)
{
	void *p;

	b->room = ttmon_pin_pages_of(b->size) * TTMON_PIN_PAGE;
	p = b->room < b->size ? MAP_FAILED
			      : mmap(NULL, b->room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return false;
	b->how = TTMON_PIN_MAPPING;
	b->addr = (uintptr_t)p;
	return true;
}

/* Returns a cached block to the program; with the lock held. */
static void adopt(uint32_t i, struct ttmon_pin_block *like)
{
	struct ttmon_pin_block *b = &S.blocks[i];

	b->cached = false;
	b->size = like->size;
	b->site = like->site;
	b->born_ns = ttmon_mono_ns();
	like->addr = b->addr;
	atomic_fetch_add(&S.managed, 1);
}

static bool take_ready(struct ttmon_pin_block *like)
{
	uint32_t i;

	lock();
	i = ttmon_pin_pool_take(&S.pool, like->size, ttmon_pin_ready, NULL);
	if (i != TTMON_PIN_NONE)
		adopt(i, like);
	unlock();
	return i != TTMON_PIN_NONE;
}

static bool any(void *ctx, uint32_t block)
{
	(void)ctx;
	(void)block;
	return true;
}

/*
 * If another block would have to be freed by CUDA, which waits for the device, before a new one can be
 * pinned, it is faster to wait for the copies of one that fits. Meanwhile the block is not in the
 * cache and is marked as freed in the table, so that no other thread takes it.
 */
static bool take_busy(struct ttmon_pin_block *like)
{
	struct ttmon_pin_block b;
	uint32_t i = TTMON_PIN_NONE;
	bool done;

	lock();
	if (ttmon_pin_pool_full(&S.pool, pinned_pages(), ttmon_pin_pages_of(like->size)))
		i = ttmon_pin_pool_take(&S.pool, like->size, any, NULL);
	if (i != TTMON_PIN_NONE)
		b = S.blocks[i];
	unlock();
	if (i == TTMON_PIN_NONE)
		return false;
	done = ttmon_pin_settle(&b);
	lock();
	memcpy(S.blocks[i].fence, b.fence, sizeof(b.fence));
	if (done)
		adopt(i, like);
	else
		take_block(&S.blocks[i], &b);
	unlock();
	if (!done)
		(void)!destroy(&b);
	return done;
}

/*
 * Makes pinned memory: by registering a mapping if it may be unpinned later, else by CUDA's own call.
 * Returns CUDA's error.
 */
static int pin_new(struct ttmon_pin_block *b, bool releasable)
{
	void *p = NULL;
	int err;

	if (releasable && map(b)) {
		QUIET(b->api);
		if (!b->api->reg((void *)b->addr, b->room, 0)) {
			b->pinned = true;
			return 0;
		}
		munmap((void *)b->addr, b->room);
	}
	b->how = TTMON_PIN_CUDA;
	b->room = b->size;
	err = b->api->host_alloc(&p, b->size, b->flags);
	b->addr = (uintptr_t)p;
	b->pinned = !err;
	return err;
}

/* Frees a mapping that was not returned to the program. */
static void discard(const struct ttmon_pin_block *b)
{
	QUIET(b->api);

	if (b->pinned && b->api->unreg((void *)b->addr))
		atomic_fetch_add(&S.leaked, b->room);
	else
		munmap((void *)b->addr, b->room);
}

static int pin_with_room(struct ttmon_pin_block *b, bool releasable)
{
	uint64_t pages = ttmon_pin_pages_of(b->size);
	int err;

	cut(pages, false);
	lock();
	S.coming += pages;
	unlock();
	err = pin_new(b, releasable);
	/*
	 * The cached memory may be what is missing. The error was caused by this library, so the program's
	 * next cudaGetLastError() must not return it.
	 */
	if (err == CUDA_MEMORY && cut(0, true) + ttmon_pin_regions_trim()) {
		atomic_fetch_add(&S.retried, 1);
		if (b->api->last_error)
			b->api->last_error();
		err = pin_new(b, releasable);
	}
	lock();
	S.coming -= pages;
	unlock();
	return err;
}

/*
 * Adds the block to the table, counts and announces it; err: CUDA's error, which is also the result.
 */
static int give(struct ttmon_pin_block *b, const struct ttmon_pin_plan *plan, int err, void **p)
{
	int lost;

	b->born_ns = ttmon_mono_ns();
	lock();
	lost = err ? 0 : add_block(b);
	if (err)
		S.count.failed_allocs++;
	else
		counted(plan, b->size);
	unlock();
	if (err)
		return err;
	/* A block that is not in the table could never be freed. */
	if (lost && b->how == TTMON_PIN_PIECE)
		ttmon_pin_piece_freed(b);
	if (lost && b->how == TTMON_PIN_MAPPING)
		discard(b);
	if (lost && b->how != TTMON_PIN_CUDA)
		return b->api->host_alloc(p, b->size, b->flags);
	if (b->announced)
		TTMON_ALLOC((void *)b->addr, b->size, NULL);
	*p = (void *)b->addr;
	return 0;
}

/*
 * Serves an advised allocation from memory that is pinned already, if possible. Returns whether it
 * did. It may change the plan.
 */
static bool reuse(struct ttmon_pin_block *b, struct ttmon_pin_plan *plan, void **p)
{
	const struct ttmon_pin_conf *conf = ttmon_pin_conf();

	if (plan->why != TTMON_PIN_PINNED)
		return false;
	/* Live advice unpins single blocks, so each block is pinned individually, and keeps its size. */
	if (conf->live) {
		if (!take_ready(b) && !take_busy(b))
			return false;
		lock();
		counted(plan, b->size);
		unlock();
		*p = (void *)b->addr;
		return true;
	}
	if (atomic_load(&S.no_reuse)) {
		ttmon_pin_regions_trim();
		return false;
	}
	switch (ttmon_pin_piece(b, plan)) {
	case TTMON_PIN_PIECE_GIVEN:
		b->announced = true;
		return !give(b, plan, 0, p);
	case TTMON_PIN_PIECE_LEFT_OUT:
		plan->why = TTMON_PIN_NO_FIT;
		break;
	case TTMON_PIN_PIECE_NONE:
		break;
	}
	return false;
}

int ttmon_pin_alloc(const struct ttmon_pin_api *api, void **p, size_t size, unsigned int flags)
{
	struct ttmon_pin_block b = { .api = api, .size = size, .flags = flags };
	struct ttmon_pin_plan plan;
	int err = 0;

	if (!p || !size || S.child)
		return api->host_alloc(p, size, flags);
	ttmon_pin_decide(size, flags, &plan);
	if ((plan.why == TTMON_PIN_PAGEABLE || plan.why == TTMON_PIN_PINNED) && !can_manage(api))
		plan.why = TTMON_PIN_DEFAULT;
	b.site = plan.site;
	b.apart = plan.why == TTMON_PIN_FLAGS || plan.why == TTMON_PIN_IN_PLACE || plan.why == TTMON_PIN_DEVICE_PTR;
	b.managed = plan.why == TTMON_PIN_PAGEABLE || plan.why == TTMON_PIN_PINNED;
	if (reuse(&b, &plan, p))
		return 0;
	if (is_pageable(&plan))
		err = ttmon_pin_usable(api);
	if (!err && is_pageable(&plan) && !map(&b))
		plan.why = TTMON_PIN_NO_MEMORY;
	if (!err && !is_pageable(&plan))
		err = pin_with_room(&b, plan.why == TTMON_PIN_PINNED && ttmon_pin_conf()->live);
	else
		b.announced = !err;
	return give(&b, &plan, err, p);
}

int ttmon_pin_free(const struct ttmon_pin_api *api, void *p)
{
	struct ttmon_pin_block *b, taken;
	struct ttmon_ranges_pos pos;
	bool kept = false;

	if (!p)
		return api->host_free(p);
	lock();
	b = find_base(p);
	if (!b) {
		bool twice = (ttmon_ranges_floor(&S.ranges, (uintptr_t)p, &pos) && pos.start == (uintptr_t)p) ||
			     (!S.child && ttmon_pin_region_of((uintptr_t)p));

		unlock();
		return twice ? CUDA_VALUE : api->host_free(p);
	}
	if (ttmon_pin_conf()->live && b->managed && b->pinned && !b->in_place && !b->unfenced && !S.no_reuse &&
	    !S.child && !b->announced)
		kept = ttmon_pin_pool_put(&S.pool, index_of(b), b->room);
	if (kept) {
		b->cached = true;
		atomic_fetch_sub(&S.managed, 1);
		unlock();
		cut(0, false);
		return 0;
	}
	take_block(b, &taken);
	unlock();
	return destroy(&taken);
}

int ttmon_pin_register(const struct ttmon_pin_api *api, void *p, size_t size, unsigned int flags)
{
	uint64_t addr = (uintptr_t)p;
	struct ttmon_pin_block *b;
	struct ttmon_ranges_pos pos;
	bool ours;
	int err;

	lock();
	b = ttmon_pin_find(addr);
	ours = (b && b->how != TTMON_PIN_CUDA) || ttmon_pin_region_of(addr);
	if (!ours && size && ttmon_ranges_floor(&S.ranges, addr + size - 1, &pos) && pos.start > addr)
		ours = S.blocks[pos.val].how != TTMON_PIN_CUDA && !S.blocks[pos.val].cached;
	unlock();
	/* For memory that the program believes to be pinned, answer as CUDA would. */
	if (ours)
		return CUDA_REGISTERED;
	err = api->reg(p, size, flags);
	if (!err) {
		lock();
		ttmon_pin_pages_add(&S.pages, addr, size);
		unlock();
	}
	return err;
}

int ttmon_pin_unregister(const struct ttmon_pin_api *api, void *p)
{
	uint64_t size = 0;
	bool ours;
	int err;

	lock();
	ours = find_base(p) || ttmon_pin_region_of((uintptr_t)p);
	if (!ours)
		size = ttmon_pin_pages_del(&S.pages, (uintptr_t)p);
	unlock();
	if (ours)
		return CUDA_NOT_REGISTERED;
	err = api->unreg(p);
	if (err && size) {
		lock();
		ttmon_pin_pages_put_back(&S.pages, (uintptr_t)p, size);
		unlock();
	}
	return err;
}

int ttmon_pin_flags(const struct ttmon_pin_api *api, unsigned int *flags, void *p)
{
	struct ttmon_pin_block *b;

	lock();
	b = flags ? ttmon_pin_find((uintptr_t)p) : NULL;
	if (b && b->how != TTMON_PIN_CUDA)
		*flags = b->flags;
	else
		b = NULL;
	unlock();
	return b ? 0 : api->flags(flags, p);
}

int ttmon_pin_device_ptr(const struct ttmon_pin_api *api, void **dev, void *p, unsigned int flags)
{
	const struct ttmon_pin_region *region;
	struct ttmon_pin_block *b;
	uint64_t base = (uintptr_t)p;
	int err = 0;

	lock();
	b = ttmon_pin_find(base);
	region = b && b->how == TTMON_PIN_PIECE ? ttmon_pin_region_of(b->addr) : NULL;
	if (region)
		base = region->addr;
	if (b) {
		b->in_place = true;
		ttmon_pin_close_site(b->site);
	}
	if (b && b->how == TTMON_PIN_MAPPING && !b->pinned) {
		S.count.wrong++;
		err = b->api->reg((void *)b->addr, b->room, HOST_MAPPED);
		if (!err) {
			b->pinned = true;
			ttmon_pin_pages_add(&S.pages, b->addr, b->room);
		}
	}
	unlock();
	if (!err)
		err = api->device_ptr(dev, p, flags);
	/* Handles a piece if CUDA only knows the beginning of registered memory. */
	if (err && dev && base != (uintptr_t)p && !api->device_ptr(dev, (void *)base, flags)) {
		*dev = (char *)*dev + ((uintptr_t)p - base);
		err = 0;
	}
	return err;
}

/* Returns the interface that this library registers memory with; NULL: none. */
static const struct ttmon_pin_api *registered_by(void)
{
	const struct ttmon_pin_api *api = NULL;

	lock();
	for (uint32_t i = 1; i <= S.n && !api && !S.child; i++)
		if (S.blocks[i].used && S.blocks[i].how == TTMON_PIN_MAPPING && S.blocks[i].pinned)
			api = S.blocks[i].api;
	unlock();
	return api;
}

/*
 * Memory that CUDA allocated is removed from the table: CUDA owns it from now on. A mapping becomes
 * pageable, unless it is read in place and may stay; events end with their device, and the copies that
 * they would have followed are not followed any more.
 */
void ttmon_pin_reset(bool sure)
{
	const struct ttmon_pin_api *api;
	struct ttmon_pin_block taken;
	bool idle;

	cut(0, true);
	ttmon_pin_regions_reset(sure);
	api = registered_by();
	idle = api && ttmon_pin_wait_device(api);
	lock();
	for (uint32_t i = 1; i <= S.n; i++) {
		struct ttmon_pin_block *b = &S.blocks[i];

		if (!b->used || S.child)
			continue;
		if (b->how != TTMON_PIN_CUDA) {
			if (b->how == TTMON_PIN_MAPPING && (sure || !b->in_place))
				ttmon_pin_release(b, idle && b->api == api && !S.copying);
			b->unfenced |= !ttmon_pin_ready(NULL, i);
			ttmon_pin_drop_events(b);
			continue;
		}
		ttmon_pin_pages_del(&S.pages, b->addr);
		ttmon_pin_drop_events(b);
		take_block(b, &taken);
	}
	unlock();
}
