/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ring.h: our own reader of a BPF ring buffer. libbpf's (1.1) consumes until the ring is empty and
 * cannot stop at a position, which the watermark needs. Layout as in Linux
 * Documentation/bpf/ringbuf.rst: a consumer page, a producer page, the data mapped twice.
 *
 * Runs in the hot thread.
 */
#ifndef TTMON_RING_H
#define TTMON_RING_H

#include "lib/base/util.h"

struct ttmon_ring {
	uint64_t *consumer; /* written by us */
	uint64_t *producer; /* written by the kernel */
	uint8_t *data;
	uint64_t size; /* bytes of data, a power of two */
};

/* Maps the ring of a map fd. size: its max_entries. */
int ttmon_ring_map(struct ttmon_ring *r, int map_fd, uint64_t size) _must_check;
void ttmon_ring_unmap(struct ttmon_ring *r);

static inline uint64_t ttmon_ring_producer(const struct ttmon_ring *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
}

static inline uint64_t ttmon_ring_used(const struct ttmon_ring *r)
{
	return ttmon_ring_producer(r) - *r->consumer;
}

/*
 * Passes every record before position upto to cb and frees its space. Returns true when upto was
 * reached, false when it stopped at a record that is reserved but not yet submitted (its task was
 * preempted or stopped in between).
 */
bool ttmon_ring_drain(struct ttmon_ring *r, uint64_t upto, void (*cb)(void *ctx, const void *rec, size_t size),
		      void *ctx);

#endif
