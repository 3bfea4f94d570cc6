// SPDX-License-Identifier: GPL-2.0-only
/*
 * fence.c: tracks which copies of a block are in progress: see pin.h. The lock is held, except for
 * blocks that are in no table.
 */
#include <stdatomic.h>

#include "preload/pin.h"

#define S ttmon_pin

static bool fence_done(struct ttmon_pin_block *b, struct ttmon_pin_fence *f)
{
	if (f->pending && !b->api->event_done(f->event))
		f->pending = false;
	return !f->pending;
}

bool ttmon_pin_fences_done(struct ttmon_pin_block *b)
{
	QUIET(b->api);

	return fence_done(b, &b->fence[0]) && fence_done(b, &b->fence[1]);
}

bool ttmon_pin_ready(void *ctx, uint32_t block)
{
	(void)ctx;
	return ttmon_pin_fences_done(&S.blocks[block]);
}

/*
 * The default streams of all threads have the same handle, so a number identifies them that no handle
 * and no later thread has.
 */
static uint64_t stream_key(void *stream)
{
	static _Atomic uint64_t threads;
	static __thread uint64_t mine;

	if (stream != STREAM_PER_THREAD)
		return (uintptr_t)stream;
	if (!mine)
		mine = (1ull << 63) + atomic_fetch_add(&threads, 1);
	return mine;
}

static bool is_capturing(const struct ttmon_pin_api *api, void *stream)
{
	int status = 0;

	return api->capturing(stream, &status) || status;
}

/*
 * Returns the fence for a stream: the stream's own, a free one, or that of a stream whose copies are
 * done. NULL: none.
 */
static struct ttmon_pin_fence *fence_for(struct ttmon_pin_block *b, uint64_t key, uint64_t gone)
{
	struct ttmon_pin_fence *f;

	for (f = b->fence; f < b->fence + ARRAY_SIZE(b->fence); f++)
		if (f->event && f->stream == key && f->gone == gone)
			return f;
	for (f = b->fence; f < b->fence + ARRAY_SIZE(b->fence); f++)
		if (!f->event || fence_done(b, f))
			return f;
	return NULL;
}

static void follow(struct ttmon_pin_block *b, void *stream)
{
	uint64_t key = stream_key(stream), gone = atomic_load(&S.streams_destroyed);
	struct ttmon_pin_fence *f;

	if (is_capturing(b->api, stream)) {
		b->unfenced = true;
		return;
	}
	f = fence_for(b, key, gone);
	if (!f || (!f->event && b->api->event_new(&f->event, EVENT_NO_TIMING))) {
		b->unfenced = true;
		return;
	}
	f->stream = key;
	f->gone = gone;
	f->pending = true;
	if (b->api->event_record(f->event, stream))
		b->unfenced = true;
}

bool ttmon_pin_copy_begin(void)
{
	/* Only live advice unpins memory that is in use. */
	if (!atomic_load_explicit(&S.managed, memory_order_relaxed) || !ttmon_pin_conf()->live)
		return false;
	pthread_mutex_lock(&S.lock);
	S.copying++;
	pthread_mutex_unlock(&S.lock);
	return true;
}

void ttmon_pin_copy_end(bool begun)
{
	if (!begun)
		return;
	pthread_mutex_lock(&S.lock);
	S.copying--;
	pthread_mutex_unlock(&S.lock);
}

void ttmon_pin_copied(const void *p, void *stream)
{
	struct ttmon_pin_block *b;

	if (!p || !atomic_load_explicit(&S.managed, memory_order_relaxed))
		return;
	pthread_mutex_lock(&S.lock);
	b = ttmon_pin_find((uintptr_t)p);
	if (b && b->managed && !b->unfenced) {
		QUIET(b->api);

		if (stream == TTMON_PIN_UNKNOWN_STREAM)
			b->unfenced = true;
		else
			follow(b, stream);
	}
	pthread_mutex_unlock(&S.lock);
}

bool ttmon_pin_wait_device(const struct ttmon_pin_api *api)
{
	int n = 1;
	QUIET(api);

	if (api->device_count && api->device_count(&n))
		return false;
	return n == 1 && api->device_sync && !api->device_sync();
}

bool ttmon_pin_settle(struct ttmon_pin_block *b)
{
	bool done = true, waited = false;
	QUIET(b->api);

	for (struct ttmon_pin_fence *f = b->fence; f < b->fence + ARRAY_SIZE(b->fence); f++) {
		if (fence_done(b, f))
			continue;
		waited = true;
		if (b->api->event_wait(f->event))
			done = false;
		f->pending = false;
	}
	/* For copies that could not be followed, wait for the whole device. */
	if (b->unfenced || !done || atomic_load(&S.no_reuse)) {
		waited = true;
		done = ttmon_pin_wait_device(b->api);
	}
	if (waited)
		atomic_fetch_add(&S.waits, 1);
	return done;
}

void ttmon_pin_stream_destroyed(void)
{
	atomic_fetch_add(&S.streams_destroyed, 1);
}

void ttmon_pin_unfollowed(void)
{
	if (atomic_load(&S.no_reuse))
		return;
	pthread_mutex_lock(&S.lock);
	atomic_store(&S.no_reuse, true);
	pthread_mutex_unlock(&S.lock);
}

void ttmon_pin_drop_events(struct ttmon_pin_block *b)
{
	QUIET(b->api);

	for (struct ttmon_pin_fence *f = b->fence; f < b->fence + ARRAY_SIZE(b->fence); f++) {
		if (f->event)
			b->api->event_free(f->event);
		*f = (struct ttmon_pin_fence){ 0 };
	}
}
