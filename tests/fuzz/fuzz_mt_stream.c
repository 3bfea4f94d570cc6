// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_mt_stream.c: any bytes as our file of memory accesses, each block with a checksum that holds.
 * What memtrace/model/mt.h promises of records and of the dictionary does, and what was read can be
 * written and read again, whole.
 */
#include <zlib.h>

#include "tests/unit/feed/mt_stream_feed.h"

#include "memtrace/stream/format.h"

static void require(bool what)
{
	if (!what)
		abort();
}

static void seal(uint8_t *p, size_t size)
{
	if (size < TTMON_MTS_HEAD)
		return;
	ttmon_mts_put32(p + 12, (uint32_t)crc32(crc32(0, p, 12), p + 16, TTMON_MTS_TOOL));
	for (size_t at = TTMON_MTS_HEAD; at + TTMON_MTS_BLOCK_HEAD <= size; at++) {
		uint32_t n = ttmon_mts_get32(p + at + 8);
		uLong crc = crc32(0, p + at, 20);

		if (ttmon_mts_get32(p + at) != TTMON_MTS_BLOCK || n > size - at - TTMON_MTS_BLOCK_HEAD)
			continue;
		ttmon_mts_put32(p + at + 20, (uint32_t)crc32(crc, p + at + TTMON_MTS_BLOCK_HEAD, n));
		at += TTMON_MTS_BLOCK_HEAD + n - 1;
	}
}

static void check(const struct read_back *r)
{
	const struct ttmon_mt_dict *d = &r->dict.dict;

	require(!r->err == !r->why[0]);
	for (size_t i = 0; i < r->nr; i++) {
		const struct ttmon_mt_rec *x = &r->recs[i];

		require(x->mask && x->width >= 1 && x->width <= 64 && x->space < TTMON_MT_SPACE_MAX);
		require(x->site < d->nr_sites && x->launch < d->nr_launches);
		require(!x->addr || x->addr[__builtin_ctz(x->mask)] == x->base);
	}
	for (size_t i = 0; i < d->nr_sites; i++)
		require(d->sites[i].kernel && d->sites[i].opcode && d->sites[i].file && d->sites[i].module &&
			d->sites[i].kind < TTMON_MT_KIND_MAX && d->sites[i].space < TTMON_MT_SPACE_MAX &&
			d->sites[i].width);
	for (size_t i = 0; i < d->nr_aggs; i++)
		require(d->aggs[i].site < d->nr_sites &&
			(d->aggs[i].launch < d->nr_launches || d->aggs[i].launch == TTMON_MT_NO_LAUNCH));
	for (size_t i = 0; i < d->nr_touches; i++)
		require(d->touches[i].launch < d->nr_launches || d->touches[i].launch == TTMON_MT_NO_LAUNCH);
}

static void again(const struct read_back *r, bool order)
{
	const struct ttmon_mt_out_opts opts = { .order = order, .level = 1 };
	struct ttmon_mt_out *out = NULL;
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct read_back back;
	uint8_t *p;
	size_t n;

	require(fd >= 0 && !ttmon_mt_out_new(fd, &opts, &out));
	require(!ttmon_mt_out_put(out, &r->dict.dict, r->recs, r->nr) &&
		!ttmon_mt_out_end(out, &r->dict.dict, &r->stats));
	n = (size_t)ttmon_mt_out_bytes(out);
	p = malloc(n);
	require(p && pread(fd, p, n, 0) == (ssize_t)n);
	read_stream(p, n, 1 << 20, true, &back);
	require(!back.err && back.nr == r->nr && back.stats.malformed == r->stats.malformed);
	for (size_t i = 0; order && i < r->nr; i++)
		require(back.recs[i].base == r->recs[i].base && back.recs[i].seq == r->recs[i].seq &&
			back.recs[i].mask == r->recs[i].mask && !back.recs[i].addr == !r->recs[i].addr);
	check(&back);
	read_back_fini(&back);
	free(p);
	close(fd);
	ttmon_mt_out_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct read_back r;
	uint8_t *p = malloc(size + 1);

	require(p != NULL);
	memcpy(p, data, size);
	seal(p, size);
	ttmon_mt_stream.detect(p, size);
	read_stream(p, size, size % 3 ? 1 << 20 : 100, true, &r);
	check(&r);
	if (!r.err && r.nr)
		again(&r, size & 1);
	read_back_fini(&r);
	free(p);
	return 0;
}
