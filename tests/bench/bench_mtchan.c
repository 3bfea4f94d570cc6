// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_mtchan.c: how many records the reader of a channel handles on one core, one shape at a time,
 * against a memcpy of the same bytes in the same run. Rings are filled, then read until they are
 * empty; only the reading is timed. The best of some rounds counts, since other programs run on the
 * machine.
 *
 *	affine		one unit per record
 *	list 8		three units: eight lanes
 *	list 32		nine units: all lanes
 *
 * The goal is 20 M affine records per second.
 */
#include <time.h>

#include "memtrace/channel/chan.h"
#include "tests/memtrace/producer.h"
#include "lib/os/clock.h"

#define RINGS  8u
#define UNITS  (1u << 16)
#define ROUNDS 9

static int count(void *ctx, const struct ttmon_mt_rec *recs, size_t n, uint32_t pid)
{
	(void)pid;
	*(uint64_t *)ctx += n + (recs[n - 1].mask == 0);
	return 0;
}

static uint64_t fill(struct mtp *p, unsigned int lanes)
{
	struct ttmon_mtc_rec rec = { .base = 0x7f0000000000,
				     .mask = lanes ? UINT32_MAX >> (32 - lanes) : UINT32_MAX,
				     .stride = 4 };
	unsigned int units = lanes ? TTMON_MTC_LIST_UNITS(lanes) : 1;
	uint64_t list[TTMON_MT_LANES], n = 0;

	for (unsigned int i = 0; i < TTMON_MT_LANES; i++)
		list[i] = rec.base + i * 4096;
	for (uint32_t ring = 0; ring < RINGS; ring++) {
		for (unsigned int i = 0; i < UNITS / units; i++, n++) {
			rec.cta_x = i;
			rec.launch_warp = (i >> 12 & 3) << 6 | (i & 31);
			if (!mtp_put(p, ring, rec, 0, i & 7, lanes ? list : NULL))
				abort();
		}
	}
	return n;
}

static int run(const char *what, unsigned int lanes, uint64_t goal)
{
	uint64_t best = UINT64_MAX, copy = UINT64_MAX, n = 0, got = 0, t, bytes;
	struct ttmon_mt_dictw dict = { 0 };
	struct ttmon_mt_stats stats = { 0 };
	struct ttmon_mt_sink sink = { .dict = &dict, .stats = &stats, .recs = count, .ctx = &got };
	struct ttmon_mt_chan *c;
	char why[200], *to;
	struct mtp p;
	int err = 0;

	if (mtp_new(&p, RINGS, UNITS, TTMON_MTC_MIN_DICT) || ttmon_mt_chan_open(dup(p.fd), &c, why, sizeof(why)))
		return 1;
	bytes = (uint64_t)RINGS * UNITS * TTMON_MTC_UNIT;
	to = malloc(bytes);
	if (!to)
		return 1;
	memset(to, 1, bytes);
	for (uint32_t i = 0; i < 8; i++)
		mtp_site(&p, i, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4, "kernel", "ld.global.f32");
	for (uint32_t i = 0; i < 4; i++)
		mtp_launch(&p, i, "kernel");
	p.spin = 0;
	for (unsigned int i = 0; i < ROUNDS && !err; i++) {
		n = fill(&p, lanes);
		t = ttmon_mono_ns();
		memcpy(to, mtp_unit(&p, 0, 0), bytes);
		copy = MIN(copy, ttmon_mono_ns() - t);
		t = ttmon_mono_ns();
		do
			err = ttmon_mt_chan_read(c, &sink, 1u << 16, why, sizeof(why));
		while (err > 0);
		best = MIN(best, ttmon_mono_ns() - t);
	}
	if (err || got != n * ROUNDS || stats.dropped) {
		printf("%s: %llu records of %llu\n", what, (unsigned long long)got, (unsigned long long)n * ROUNDS);
		return 1;
	}
	printf("  %-8s %6.1f M records/s, %5.2f GB/s, memcpy of the same bytes %5.2f GB/s: %.2f of it\n", what,
	       (double)n * 1e3 / (double)best, (double)bytes / (double)best, (double)bytes / (double)copy,
	       (double)copy / (double)best);
	if (n * NSEC_PER_SEC / best < goal)
		printf("  MISSED: goal %llu M records/s\n", (unsigned long long)goal / 1000000);
	free(to);
	ttmon_mt_chan_free(c);
	ttmon_mt_dict_fini(&dict);
	mtp_free(&p);
	return 0;
}

int main(void)
{
	return run("affine", 0, 20000000) | run("list 8", 8, 0) | run("list 32", 32, 0);
}
