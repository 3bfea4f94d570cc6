// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/io/bpf/ring.h"

#include <linux/bpf.h>
#include <sys/mman.h>

int ttmon_ring_map(struct ttmon_ring *r, int map_fd, uint64_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *consumer, *producer;

	consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (consumer == MAP_FAILED)
		return -errno;
	producer = mmap(NULL, page + 2 * size, PROT_READ, MAP_SHARED, map_fd, (off_t)page);
	if (producer == MAP_FAILED) {
		int err = -errno;

		munmap(consumer, page);
		return err;
	}
	r->consumer = consumer;
	r->producer = producer;
	r->data = (uint8_t *)producer + page;
	r->size = size;
	return 0;
}

void ttmon_ring_unmap(struct ttmon_ring *r)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!r->consumer)
		return;
	munmap(r->consumer, page);
	munmap(r->producer, page + 2 * r->size);
	memset(r, 0, sizeof(*r));
}

bool ttmon_ring_drain(struct ttmon_ring *r, uint64_t upto, void (*cb)(void *ctx, const void *rec, size_t size),
		      void *ctx)
{
	uint64_t pos = *r->consumer;
	bool reached = true;

	while (pos < upto) {
		const uint8_t *head = r->data + (pos & (r->size - 1));
		uint32_t len = __atomic_load_n((const uint32_t *)head, __ATOMIC_ACQUIRE);
		uint32_t size = len & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (len & BPF_RINGBUF_BUSY_BIT) {
			reached = false;
			break;
		}
		if (!(len & BPF_RINGBUF_DISCARD_BIT))
			cb(ctx, head + BPF_RINGBUF_HDR_SZ, size);
		pos += ROUND_UP((uint64_t)size + BPF_RINGBUF_HDR_SZ, 8);
		/* Frees space during a long drain, since the producer needs it. */
		if (((pos ^ *r->consumer) & ~0xffffULL) != 0)
			__atomic_store_n(r->consumer, pos, __ATOMIC_RELEASE);
	}
	__atomic_store_n(r->consumer, pos, __ATOMIC_RELEASE);
	return reached;
}
