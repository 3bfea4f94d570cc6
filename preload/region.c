// SPDX-License-Identifier: GPL-2.0-only
/*
 * region.c: serves advised memory as pieces of a few pinned regions (lib/pin/arena.h): see pin.h. A
 * region is a registered mapping. Each piece is announced to a tracer as an allocation of its own. The
 * lock of the state is held where a comment says so, and never while CUDA registers memory or while
 * waiting.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "preload/pin.h"

#define S     ttmon_pin
#define ASKED 8 /* the most freed pieces checked for finished copies in one allocation */

struct waiting {
	/* freed pieces in the order of the frees, v[from] to v[n - 1], with copies in progress */
	struct ttmon_pin_block *v;
	uint32_t from, n, cap;
};

static struct ttmon_arena arena;
static struct waiting waiting;
static struct ttmon_ranges regions; /* from addr to the index in the list below */
static struct ttmon_pin_region *list;
static uint32_t nr_list, resets;
static bool ready, modest; /* modest: no more could be pinned than a request needed */
/* Held by the thread that adds or frees a region; taken before the lock of the state. */
static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;

static void lock(void)
{
	pthread_mutex_lock(&S.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&S.lock);
}

void ttmon_pin_regions_before_fork(void)
{
	pthread_mutex_lock(&growing);
}

bool ttmon_pin_regions_after_fork(void)
{
	pthread_mutex_unlock(&growing);
	return ready;
}

struct ttmon_pin_region *ttmon_pin_region_of(uint64_t addr)
{
	struct ttmon_ranges_pos pos;

	if (!ttmon_ranges_floor(&regions, addr, &pos) || addr - pos.start >= list[pos.val].bytes)
		return NULL;
	return &list[pos.val];
}

/* ---- the table of regions; with the lock held ---- */

static int add_region(const struct ttmon_pin_region *r)
{
	uint32_t i = 0;
	int err;

	while (i < nr_list && list[i].bytes)
		i++;
	if (i == nr_list) {
		struct ttmon_pin_region *more = realloc(list, (nr_list + 1) * sizeof(*list));

		if (!more)
			return -ENOMEM;
		list = more;
		list[nr_list++] = (struct ttmon_pin_region){ 0 };
	}
	err = ttmon_ranges_add(&regions, r->addr, r->addr + r->bytes, i);
	if (err)
		return err;
	err = ttmon_arena_add(&arena, r->addr / TTMON_ARENA_UNIT, r->bytes / TTMON_ARENA_UNIT);
	if (err) {
		ttmon_ranges_del(&regions, r->addr);
		return err;
	}
	list[i] = *r;
	ttmon_pin_pages_add(&S.pages, r->addr, r->bytes);
	return 0;
}

static void drop_region(uint64_t addr, struct ttmon_pin_region *ret)
{
	struct ttmon_pin_region *r = ttmon_pin_region_of(addr);

	*ret = *r;
	*r = (struct ttmon_pin_region){ 0 };
	ttmon_ranges_del(&regions, addr);
	ttmon_pin_pages_del(&S.pages, addr);
}

/* ---- CUDA, without the lock ---- */

/*
 * Pins memory for every context, because pieces go to any of them. It is shared with children, as
 * CUDA's own host memory is: fork() would copy private pinned memory. Returns CUDA's error.
 */
static int pin_region(struct ttmon_pin_region *r, uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err;
	QUIET(r->api);

	if (p == MAP_FAILED)
		return CUDA_MEMORY;
	err = r->api->reg(p, bytes, HOST_PORTABLE);
	if (err) {
		munmap(p, bytes);
		return err;
	}
	r->addr = (uintptr_t)p;
	r->bytes = bytes;
	return 0;
}

static void unpin_region(const struct ttmon_pin_region *r)
{
	QUIET(r->api);

	int err = r->api->unreg((void *)r->addr);

	/* After a reset it is not registered any more. Memory that CUDA does not release stays mapped. */
	if (err && err != CUDA_NOT_REGISTERED && !r->retired)
		atomic_fetch_add(&S.leaked, r->bytes);
	else
		munmap((void *)r->addr, r->bytes);
}

/* ---- freed pieces; with the lock held ---- */

/*
 * Frees a piece. done: none of its copies are in progress. A piece from before a reset is in no arena
 * any more, and its region is freed with the last one. Returns true if that region is in *ret, for
 * unpin_region().
 */
static bool put(struct ttmon_pin_block *b, bool done, struct ttmon_pin_region *ret)
{
	struct ttmon_pin_region *r = ttmon_pin_region_of(b->addr);

	ttmon_pin_drop_events(b);
	/* If it is not possible to wait for the copies, the piece and its region are never freed. */
	if (!done || !r)
		return false;
	r->given--;
	if (b->resets == resets) {
		ttmon_arena_put(&arena, b->piece);
		return false;
	}
	if (r->given)
		return false;
	drop_region(r->addr, ret);
	return true;
}

static bool is_done(struct ttmon_pin_block *b)
{
	return !b->unfenced && !atomic_load(&S.no_reuse) && ttmon_pin_fences_done(b);
}

static int wait_for(const struct ttmon_pin_block *b)
{
	if (waiting.from && waiting.n == waiting.cap) {
		memmove(waiting.v, waiting.v + waiting.from, (waiting.n - waiting.from) * sizeof(*waiting.v));
		waiting.n -= waiting.from;
		waiting.from = 0;
	}
	if (waiting.n == waiting.cap) {
		uint32_t cap = waiting.cap ? 2 * waiting.cap : 64;
		struct ttmon_pin_block *v = realloc(waiting.v, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		waiting.v = v;
		waiting.cap = cap;
	}
	waiting.v[waiting.n++] = *b;
	return 0;
}

/* Frees those of the oldest pieces whose copies are done. */
static void ask_oldest(void)
{
	uint32_t kept = waiting.from, at = waiting.from;
	struct ttmon_pin_region none;

	for (uint32_t looks = ASKED; at < waiting.n && looks; at++, looks--) {
		if (is_done(&waiting.v[at])) {
			/* After a reset nothing waits. */
			(void)put(&waiting.v[at], true, &none);
		} else {
			S.count.busy++;
			waiting.v[kept++] = waiting.v[at];
		}
	}
	/* Move the pieces that are still waiting next to those that were not checked. */
	while (kept > waiting.from)
		waiting.v[--at] = waiting.v[--kept];
	waiting.from = at;
	if (waiting.from == waiting.n)
		waiting.from = waiting.n = 0;
}

/*
 * Handles a freed piece that is in no table and may have copies in progress; without the lock. If it
 * is not possible to wait for them, it is never reused, and its call site gets no more pieces, so that
 * this stays rare.
 */
static void settle(struct ttmon_pin_block *b)
{
	bool done = ttmon_pin_settle(b), last;
	struct ttmon_pin_region r;

	lock();
	last = put(b, done, &r);
	unlock();
	if (last)
		unpin_region(&r);
	if (!done) {
		atomic_fetch_add(&S.leaked, b->room);
		ttmon_pin_close_site(b->site);
	}
}

void ttmon_pin_piece_freed(struct ttmon_pin_block *b)
{
	bool must_wait = false, last = false;
	struct ttmon_pin_region r;

	lock();
	/* Memory that is read in place has no event, so wait for the device. */
	b->unfenced |= b->in_place;
	if (is_done(b))
		last = put(b, true, &r);
	else
		must_wait = b->unfenced || b->resets != resets || atomic_load(&S.no_reuse) || wait_for(b);
	unlock();
	if (last)
		unpin_region(&r);
	if (must_wait)
		settle(b);
	/* No piece is allocated any more, so free what is unused. */
	if (atomic_load(&S.no_reuse))
		ttmon_pin_regions_trim();
}

/* ---- allocation ---- */

static void fill(struct ttmon_pin_block *b, uint32_t piece)
{
	b->how = TTMON_PIN_PIECE;
	b->piece = piece;
	b->resets = resets;
	b->addr = arena.v[piece].unit * TTMON_ARENA_UNIT;
	b->room = arena.v[piece].units * TTMON_ARENA_UNIT;
	ttmon_pin_region_of(b->addr)->given++;
}

/* The lock is held on entry and on return, but not meanwhile. */
static void wait_for_oldest(void)
{
	struct ttmon_pin_block b = waiting.v[waiting.from++];

	unlock();
	settle(&b);
	lock();
}

/* The same. Returns CUDA's error: not even the request's own need could be pinned. */
static int grow(const struct ttmon_pin_block *b, uint64_t need, uint64_t units)
{
	struct ttmon_pin_region r = { .api = b->api };
	int err;

	unlock();
	err = pin_region(&r, (modest ? need : units) * TTMON_ARENA_UNIT);
	if (err && units > need && !modest) {
		modest = true;
		err = pin_region(&r, need * TTMON_ARENA_UNIT);
	}
	lock();
	if (!err && add_region(&r)) {
		unlock();
		unpin_region(&r);
		lock();
		err = CUDA_MEMORY;
	}
	S.count.regions += !err;
	return err;
}

static void give_back(uint64_t unit)
{
	struct ttmon_pin_region r;

	drop_region(unit * TTMON_ARENA_UNIT, &r);
	S.count.regions_back++;
	unlock();
	unpin_region(&r);
	lock();
}

/*
 * With the lock held, and *grower if this thread may change the regions. Returns false if it needs
 * that right first, or cannot go on.
 */
static bool take_step(struct ttmon_pin_block *b, struct ttmon_arena_want *w, bool grower,
		      enum ttmon_pin_piece_result *ret)
{
	const uint64_t need = ROUND_UP(w->units, TTMON_ARENA_PAGE);
	uint64_t unit, units;
	uint32_t piece;

	w->waiting = waiting.from < waiting.n;
	/* Without the right to change regions, no step may be requested that would change them. */
	if (!grower) {
		piece = ttmon_arena_take(&arena, w->units);
		if (piece == TTMON_ARENA_NONE)
			return false;
		fill(b, piece);
		*ret = TTMON_PIN_PIECE_GIVEN;
		return true;
	}
	switch (ttmon_arena_serve(&arena, w, &piece, &unit, &units)) {
	case TTMON_ARENA_TAKEN:
		fill(b, piece);
		*ret = TTMON_PIN_PIECE_GIVEN;
		return true;
	case TTMON_ARENA_LEAVE:
		*ret = TTMON_PIN_PIECE_LEFT_OUT;
		return true;
	case TTMON_ARENA_WAIT:
		wait_for_oldest();
		return false;
	case TTMON_ARENA_GIVE_BACK:
		give_back(unit);
		return false;
	case TTMON_ARENA_ADD:
		if (!grow(b, need, units))
			return false;
		*ret = TTMON_PIN_PIECE_NONE;
		return true;
	}
	return false;
}

enum ttmon_pin_piece_result ttmon_pin_piece(struct ttmon_pin_block *b, const struct ttmon_pin_plan *plan)
{
	const struct ttmon_cost cost = TTMON_COST_DEFAULT;
	struct ttmon_arena_want w = {
		.units = ttmon_arena_units(b->size),
		.known = ttmon_pin_conf()->known_pages * TTMON_ARENA_PAGE,
		.call = (uint64_t)((double)cost.pin_call_ns / ttmon_cost_pinned(&cost, 1, 0)) * TTMON_ARENA_PAGE,
		.alone = plan->alone,
	};
	enum ttmon_pin_piece_result ret = TTMON_PIN_PIECE_NONE;

	lock();
	if (!ready)
		ttmon_arena_init(&arena);
	ready = true;
	ask_oldest();
	if (take_step(b, &w, false, &ret)) {
		S.count.pieces++;
		unlock();
		return ret;
	}
	unlock();
	pthread_mutex_lock(&growing);
	lock();
	while (!take_step(b, &w, true, &ret))
		;
	S.count.pieces += ret == TTMON_PIN_PIECE_GIVEN;
	unlock();
	pthread_mutex_unlock(&growing);
	return ret;
}

/* ---- shortage of memory, and resets ---- */

unsigned int ttmon_pin_regions_trim(void)
{
	unsigned int n = 0;
	uint64_t unit, units;

	if (S.child)
		return 0;
	pthread_mutex_lock(&growing);
	lock();
	while (waiting.from < waiting.n)
		wait_for_oldest();
	for (; ready && ttmon_arena_give_back(&arena, 1, &unit, &units); n++)
		give_back(unit);
	unlock();
	pthread_mutex_unlock(&growing);
	return n;
}

/*
 * The mapping stays, and stays registered as far as CUDA keeps it, until its last piece is freed:
 * copies may be in progress. No piece of it is allocated any more. sure: CUDA's pins are gone.
 */
void ttmon_pin_regions_reset(bool sure)
{
	struct ttmon_pin_region gone;

	if (S.child)
		return;
	ttmon_pin_regions_trim();
	pthread_mutex_lock(&growing);
	lock();
	for (uint32_t i = 0; i < nr_list; i++) {
		if (!list[i].bytes || list[i].retired)
			continue;
		list[i].retired = true;
		if (sure)
			ttmon_pin_pages_del(&S.pages, list[i].addr);
		/* Its last piece was freed meanwhile. */
		if (!list[i].given) {
			drop_region(list[i].addr, &gone);
			unlock();
			unpin_region(&gone);
			lock();
		}
	}
	ttmon_arena_fini(&arena);
	resets++;
	unlock();
	pthread_mutex_unlock(&growing);
}
