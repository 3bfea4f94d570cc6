// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_mmap2.c: hostile records in a perf buffer. For any content the reader must reach the head, stay
 * within the buffer, and see the same records whether or not they wrap around the end of the buffer.
 *
 * Input: a byte (bits 0-2: size of the buffer, 256 bytes to 32 KiB; bit 3: losses are reported by
 * records; bit 4: the head is further away than the buffer is long), a byte for the start of the
 * records, then the records.
 */
#include <stdlib.h>

#include "daemon/io/objects/mmap2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

struct seen {
	uint64_t n, hash;
	struct ttmon_mmap2_stats stats;
};

static void mix(struct seen *s, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s->hash = (s->hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3ull;
}

static void see(void *ctx, const struct ttmon_mmap2_rec *rec)
{
	const uint64_t numbers[] = { rec->ts_ns, rec->addr, rec->len, rec->pgoff, rec->ino,  rec->ino_generation,
				     rec->pid,	 rec->tid,  rec->maj, rec->min,	  rec->prot, rec->flags };
	struct seen *s = ctx;

	s->n++;
	mix(s, numbers, sizeof(numbers));
	mix(s, rec->filename, strlen(rec->filename) + 1);
}

static void run(const uint8_t *records, uint64_t n, uint64_t size, uint64_t tail, uint64_t head, bool losses,
		struct seen *ret)
{
	_cleanup_free_ uint8_t *ring = calloc(1, size), *bounce = malloc(TTMON_MMAP2_BOUNCE);

	require(ring && bounce);
	for (uint64_t i = 0; i < n; i++)
		ring[(tail + i) & (size - 1)] = records[i];
	*ret = (struct seen){ .hash = 0xcbf29ce484222325ull };
	require(ttmon_mmap2_consume(ring, size, tail, head, bounce, losses, see, ret, &ret->stats) == head);
	require(ret->n == ret->stats.records);
	require(losses || !ret->stats.lost);
	require(ret->stats.records + ret->stats.malformed <= n / 16 + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t ring, tail, n;
	struct seen straight, wrapped;
	bool losses;

	if (size < 2)
		return 0;
	ring = 256ull << (data[0] & 7);
	losses = data[0] & 8;
	/* Just below 2^64 too: positions count for ever. */
	tail = 0 - ring + data[1] % (ring / 8) * 8;
	n = MIN((uint64_t)size - 2, ring);
	if (data[0] & 16) {
		run(data + 2, n, ring, tail, tail + ring + 8, losses, &wrapped);
		require(!wrapped.n && wrapped.stats.malformed == 1);
		return 0;
	}
	run(data + 2, n, ring, 0, n, losses, &straight);
	run(data + 2, n, ring, tail, tail + n, losses, &wrapped);
	require(!memcmp(&straight, &wrapped, sizeof(straight)));
	return 0;
}
