// SPDX-License-Identifier: GPL-2.0-only
/*
 * move.c: checkpoints. It collects the daemon's live advice since the last checkpoint; the last line
 * for each block counts. Blocks are changed in place: the address stays, because the program holds it.
 * The lock is taken for each block separately.
 */
#include <dlfcn.h>
#include <stdatomic.h>

#include "preload/pin.h"

#define S	   ttmon_pin
#define MAX_WISHES 4096 /* the number of lines that the library keeps */

static pthread_mutex_t moving = PTHREAD_MUTEX_INITIALIZER;
static uint64_t wishes[MAX_WISHES]; /* addresses, protected by that lock */

/* ttmon_checkpoint() of libttmon, renamed: the program's own calls go to the function below. */
void ttmon_pin_tell(struct ttmon_advisor *adv, const char *label);

bool ttmon_pin_release(struct ttmon_pin_block *b, bool idle)
{
	QUIET(b->api);

	if (!b->pinned)
		return true;
	if (!idle && (b->unfenced || atomic_load(&S.no_reuse) || S.copying))
		return false;
	if (!ttmon_pin_ready(NULL, (uint32_t)(b - S.blocks)) || b->api->unreg((void *)b->addr))
		return false;
	b->pinned = false;
	ttmon_pin_pages_del(&S.pages, b->addr);
	if (!b->announced)
		TTMON_ALLOC((void *)b->addr, b->size, NULL);
	b->announced = true;
	return true;
}

static void pin(struct ttmon_pin_block *b)
{
	QUIET(b->api);

	if (b->pinned)
		return;
	if (b->api->reg((void *)b->addr, b->room, 0)) {
		S.count.move_failed++;
		return;
	}
	b->pinned = true;
	ttmon_pin_pages_add(&S.pages, b->addr, b->room);
	S.count.moved_in++;
}

static void unpin(struct ttmon_pin_block *b)
{
	if (!b->pinned || b->in_place)
		return;
	if (ttmon_pin_release(b, false))
		S.count.moved_out++;
	else
		S.count.move_failed++;
}

/* Returns the block that a line is about, unless another block got its address later. */
static struct ttmon_pin_block *block_of(const struct ttmon_live_advice *a)
{
	struct ttmon_pin_block *b = ttmon_pin_find(a->addr);

	if (!b || b->addr != a->addr || b->how != TTMON_PIN_MAPPING || (int64_t)(a->ts_ns - b->born_ns) < 0)
		return NULL;
	return b;
}

static void gather(struct ttmon_advisor *adv, size_t *n)
{
	struct ttmon_live_advice a;

	while (*n < MAX_WISHES && ttmon_advisor_poll(adv, &a) == 1) {
		struct ttmon_pin_block *b;

		pthread_mutex_lock(&S.lock);
		S.count.advice++;
		b = block_of(&a);
		if (b) {
			b->wish = (uint8_t)(a.kind + 1);
			wishes[(*n)++] = a.addr;
		}
		pthread_mutex_unlock(&S.lock);
	}
}

static void grant(uint64_t addr)
{
	struct ttmon_pin_block *b;

	pthread_mutex_lock(&S.lock);
	b = ttmon_pin_find(addr);
	if (b && b->addr == addr && b->how == TTMON_PIN_MAPPING) {
		if (b->wish == TTMON_LIVE_PIN + 1)
			pin(b);
		else if (b->wish == TTMON_LIVE_UNPIN + 1)
			unpin(b);
		b->wish = 0;
	}
	pthread_mutex_unlock(&S.lock);
}

void ttmon_pin_checkpoint(const char *label)
{
	const struct ttmon_pin_conf *conf = ttmon_pin_conf();
	size_t n = 0;

	if (label)
		ttmon_pin_tell(NULL, label);
	/* If another thread is doing this, there is nothing to do. */
	if (S.child || pthread_mutex_trylock(&moving))
		return;
	pthread_mutex_lock(&S.lock);
	S.count.checkpoints++;
	pthread_mutex_unlock(&S.lock);
	if (conf->adv)
		(void)!ttmon_advisor_refresh(conf->adv);
	if (conf->live)
		gather(conf->adv, &n);
	for (size_t i = 0; i < n; i++)
		grant(wishes[i]);
	pthread_mutex_unlock(&moving);
}

/*
 * Takes the program's checkpoints if it is linked with libttmon.so, because this library is loaded
 * before it. The advisor belongs to libttmon.so and is only passed on.
 */
TTMON_PIN_EXPORT void ttmon_checkpoint(struct ttmon_advisor *adv, const char *label)
{
	static _Atomic(uintptr_t) next;
	uintptr_t fn = atomic_load_explicit(&next, memory_order_relaxed);

	if (!fn) {
		fn = (uintptr_t)dlsym(RTLD_NEXT, "ttmon_checkpoint");
		atomic_store_explicit(&next, fn ? fn : 1, memory_order_relaxed);
	}
	if (fn > 1)
		((void (*)(struct ttmon_advisor *, const char *))fn)(adv, label);
	ttmon_pin_checkpoint(fn > 1 ? NULL : label);
}
