// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_mt_chan.c: a program that writes invalid data into its channel. The input is a sequence of
 * pieces: two bytes of a place, two of a length, and the bytes to write there, into the part of the
 * header that is not checked once, the dictionary or a ring; or a read. For any input the results are
 * within the dictionary, and the accounting holds.
 *
 *	u8 where (0 header, 1 dictionary, 2 rings, 3 read, 4 the last dictionary entry made known),
 *	u16 offset, u8 length, bytes
 */
#include <fcntl.h>

#include "memtrace/channel/chan.h"
#include "tests/memtrace/producer.h"
#include "lib/base/util.h"

#define RINGS 2
#define UNITS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct got {
	struct ttmon_mt_dictw dict;
	struct ttmon_mt_stats stats;
	uint64_t n;
};

static void require(bool ok)
{
	if (!ok)
		abort();
}

static int recs(void *ctx, const struct ttmon_mt_rec *r, size_t n, uint32_t pid)
{
	struct got *g = ctx;
	uint64_t sum = pid;

	for (size_t i = 0; i < n; i++) {
		require(r[i].site < g->dict.dict.nr_sites && r[i].launch < g->dict.dict.nr_launches && r[i].mask);
		require(r[i].width >= 1 && r[i].width <= 64 && r[i].space < TTMON_MT_SPACE_MAX && r[i].warp < 64);
		require(r[i].mask & (r[i].mask - 1) || !r[i].stride);
		require(r[i].seq == g->n++);
		for (unsigned int lane = 0; r[i].addr && lane < TTMON_MT_LANES; lane++)
			if (r[i].mask >> lane & 1)
				sum += r[i].addr[lane];
	}
	/* Read all of them. */
	__asm__ volatile("" : : "r"(sum));
	return 0;
}

static void note(void *ctx, uint32_t pid, const char *text)
{
	(void)ctx;
	(void)pid;
	for (; *text; text++)
		require((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void check_dict(const struct ttmon_mt_dict *d)
{
	for (size_t i = 0; i < d->nr_sites; i++)
		require(strlen(d->sites[i].kernel) + strlen(d->sites[i].opcode) + strlen(d->sites[i].file) +
				strlen(d->sites[i].module) <
			TTMON_MTC_MAX_ENTRY);
	for (size_t i = 0; i < d->nr_launches; i++)
		require(strlen(d->launches[i].kernel) <= TTMON_MT_MAX_TEXT);
	for (size_t i = 0; i < d->nr_aggs; i++)
		require(d->aggs[i].site < d->nr_sites && d->aggs[i].requests);
	for (size_t i = 0; i < d->nr_touches; i++)
		require(d->touches[i].size && d->touches[i].addr + d->touches[i].size >= d->touches[i].addr);
	for (size_t i = 0; i < d->nr_kernels; i++)
		require(strlen(d->kernels[i].name) + strlen(d->kernels[i].why) < TTMON_MTC_MAX_ENTRY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mtp p;
	static uint8_t *fresh;
	struct got g = { 0 };
	struct ttmon_mt_sink sink = { .dict = &g.dict, .stats = &g.stats, .recs = recs, .note = note, .ctx = &g };
	struct ttmon_mt_chan *c;
	char why[200];
	int err = 0;

	if (!fresh) {
		require(!mtp_new(&p, RINGS, UNITS, TTMON_MTC_MIN_DICT));
		require(mtp_site(&p, 0, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4, "k", "ld.global.f32") &&
			mtp_launch(&p, 0, "k"));
		fresh = malloc(p.head->bytes);
		require(fresh);
		memcpy(fresh, p.mem, p.head->bytes);
	}
	memcpy(p.mem, fresh, ((struct ttmon_mtc_head *)(void *)fresh)->bytes);
	require(!ttmon_mt_chan_open(dup(p.fd), &c, why, sizeof(why)));
	while (size >= 4) {
		uint8_t *base = p.mem + (data[0] == 0 ? 80 : data[0] == 1 ? p.head->dict_off : p.head->rings_off);
		size_t room = data[0] == 0   ? sizeof(*p.head) - 80
			      : data[0] == 1 ? TTMON_MTC_MIN_DICT
					     : RINGS * UNITS * TTMON_MTC_UNIT;
		size_t off = (data[1] | (size_t)data[2] << 8) % room, n = MIN(MIN(data[3], size - 4), room - off);

		if (data[0] >= 3) {
			if (data[0] == 4)
				p.head->dict_head += (data[1] | (uint64_t)data[2] << 8);
			err = ttmon_mt_chan_read(c, &sink, 1000, why, sizeof(why));
			n = 0;
		} else {
			memcpy(base + off, data + 4, n);
		}
		data += 4 + n;
		size -= 4 + n;
	}
	err = ttmon_mt_chan_read(c, &sink, 1000, why, sizeof(why)) ?: err;
	require(err == 0 || err == 1 || err == -EBADMSG);
	require(!ttmon_mt_chan_end(c, &sink));
	require(g.stats.records == g.n);
	check_dict(&g.dict.dict);
	ttmon_mt_chan_free(c);
	ttmon_mt_dict_fini(&g.dict);
	return 0;
}
