// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_an.c: the analyses: figures worked out by hand, and random traces against sums and sets made
 * one record at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/feed/mt_an_feed.h"

static void sums_by_hand(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_site_row *row;
	const struct ttmon_mt_sums *s;
	double share;
	uint32_t ld, st, l;

	(void)state;
	ld = site(&f, "saxpy", "ld.global.f32", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	st = site(&f, "saxpy", "st.global.f32", TTMON_MT_GLOBAL, TTMON_MT_STORE, 4);
	l = launch(&f, "saxpy");
	begin(&f, NULL);
	put(&f, ld, l, ALL, BASE, 4);		 /* 4 sectors, 1 line */
	put(&f, ld, l, ALL, BASE + 16, 4);	 /* 5 and 2: misaligned */
	put(&f, ld, l, ALL, BASE + 4096, 16);	 /* 16 and 4 */
	put(&f, ld, l, ALL, BASE + 8192, 16);	 /* 16 and 4 */
	put(&f, ld, l, 0xffff, BASE + 12288, 4); /* 2 and 1 */
	put(&f, ld, l, ALL, BASE, 0);		 /* 1 and 1: a broadcast */
	put(&f, st, l, 1, BASE + 64, 0);	 /* 1 and 1 */
	row = site_row(&f, ld, TTMON_MT_GLOBAL);
	assert_non_null(row);
	s = &row->sums;
	assert_int_equal(row->kind, TTMON_MT_LOAD);
	assert_int_equal(row->width, 4);
	assert_int_equal(s->requests, 6);
	assert_int_equal(s->records, 6);
	assert_int_equal(s->lanes, 5 * 32 + 16);
	assert_int_equal(s->full, 5);
	assert_int_equal(s->bytes, 4 * (5 * 32 + 16));
	assert_int_equal(s->unique, 4 * (4 * 32 + 16) + 4);
	assert_int_equal(s->sectors, 4 + 5 + 16 + 16 + 2 + 1);
	assert_int_equal(s->lines, 1 + 2 + 4 + 4 + 1 + 1);
	assert_int_equal(s->ideal, 4 * 4 + 2 + 1);
	assert_int_equal(s->ideal_lanes, 5 * 4 + 2);
	assert_int_equal(s->misaligned, 1);
	assert_int_equal(s->reads, 6);
	assert_int_equal(s->writes, 0);
	assert_int_equal(s->classes[TTMON_MT_SEQUENTIAL], 3);
	assert_int_equal(s->classes[TTMON_MT_STRIDED], 2);
	assert_int_equal(s->classes[TTMON_MT_BROADCAST], 1);
	assert_int_equal(ttmon_mt_main_class(s, &share), TTMON_MT_SEQUENTIAL);
	assert_true(share == 0.5);
	assert_int_equal(s->stride, 16);
	assert_int_equal(s->sectors_hist[16], 2);
	assert_int_equal(s->sectors_hist[5], 1);
	assert_int_equal(s->lines_hist[4], 2);
	assert_int_equal(s->lines_hist[1], 3);
	assert_int_equal(s->min_addr, BASE);
	assert_int_equal(s->max_addr, BASE + 12288 + 63);
	assert_true(ttmon_mt_efficiency(s, false) == 580.0 / (32 * 44));
	assert_true(ttmon_mt_efficiency(s, true) == 704.0 / (32 * 44));
	s = &site_row(&f, st, TTMON_MT_GLOBAL)->sums;
	assert_int_equal(s->writes, 1);
	assert_int_equal(s->reads, 0);
	assert_int_equal(ttmon_mt_an_total(f.an, TTMON_MT_GLOBAL)->sectors, 45);
	assert_int_equal(ttmon_mt_an_total(f.an, TTMON_MT_GENERIC)->requests, 7);
	assert_int_equal(ttmon_mt_an_total(f.an, TTMON_MT_SHARED)->requests, 0);
	assert_true(ttmon_mt_efficiency(ttmon_mt_an_total(f.an, TTMON_MT_SHARED), false) == -1);
}

/* What one request costs is not what the one before did, though they differ in their place alone. */
static void same_elsewhere(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_sums *s;
	struct ttmon_mt_rec recs[9];
	uint32_t two, col, l;
	size_t n;

	(void)state;
	two = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 8);
	col = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 8);
	l = launch(&f, "k");
	begin(&f, NULL);
	/* Two lanes at one address, also over the end of a sector, and of a line. */
	recs[0] = affine(&f, two, l, 3, BASE + 28, 0);
	recs[1] = affine(&f, two, l, 3, BASE + 4096, 0);
	recs[2] = affine(&f, two, l, 3, BASE + 8192 + 124, 0);
	recs[3] = affine(&f, two, l, 3, BASE + 12288, 0);
	/* Columns: each lane in a sector of its own, whichever it begins in, but not over its end. */
	recs[4] = affine(&f, col, l, ALL, BASE + MIB, 1024);
	recs[5] = affine(&f, col, l, ALL, BASE + MIB + 40, 1024);
	recs[6] = affine(&f, col, l, ALL, BASE + MIB + 92, 1024);
	recs[7] = affine(&f, col, l, ALL, BASE + MIB + 48, 1024);
	recs[8] = affine(&f, col, l, ALL, BASE + MIB + 124, 1024);
	assert_int_equal(ttmon_mt_an_feed(f.an, &f.d.dict, recs, ARRAY_SIZE(recs)), 0);
	settle(&f);
	s = &site_row(&f, two, TTMON_MT_GLOBAL)->sums;
	assert_int_equal(s->sectors, 2 + 1 + 2 + 1);
	assert_int_equal(s->lines, 1 + 1 + 2 + 1);
	s = &site_row(&f, col, TTMON_MT_GLOBAL)->sums;
	assert_int_equal(s->sectors, 32 + 32 + 64 + 32 + 64);
	assert_int_equal(s->lines, 32 + 32 + 32 + 32 + 64);
	assert_int_equal(ttmon_mt_an_launches(f.an, &n)->sectors, 6 + 32 * 5);
}

static void spaces(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	struct ttmon_mt_kernel_row k;
	struct ttmon_mt_launch_row lr;
	uint64_t addr[TTMON_MT_LANES];
	struct ttmon_mt_rec rec;
	uint32_t g, sh, pf, l;
	size_t n;

	(void)state;
	g = site(&f, "k", "ld.f32", TTMON_MT_GENERIC, TTMON_MT_LOAD, 4);
	sh = site(&f, "k", "atom.shared.add", TTMON_MT_SHARED, TTMON_MT_ATOM, 4);
	pf = site(&f, "k", "prefetch", TTMON_MT_GLOBAL, TTMON_MT_PREFETCH, 4);
	l = launch(&f, "k");
	begin(&f, NULL);
	put(&f, g, l, ALL, BASE, 4);
	put(&f, g, l, ALL, 0x7f0000000000, 128); /* in the window of shared memory: 32 ways of one bank */
	put(&f, g, l, ALL, 0x7f0000000000 + (16 << 20) - 64,
	    4); /* half of it goes over the end of the window, into that of local memory */
	put(&f, g, l, ALL, 0x7f0001000000 + 64, 0); /* local: the same offset of all, 4 sectors */
	for (unsigned int i = 0; i < TTMON_MT_LANES; i++)
		addr[i] = 0x7f0000000000 + 4 * (i ^ 1);
	rec = affine(&f, g, l, ALL, addr[0], 0);
	rec.addr = addr;
	assert_int_equal(ttmon_mt_an_feed(f.an, &f.d.dict, &rec, 1), 0);
	put(&f, sh, l, 0xff, 256, 0); /* eight lanes on one word */
	put(&f, pf, l, ALL, BASE + MIB, 4);
	assert_int_equal(site_row(&f, g, TTMON_MT_GLOBAL)->sums.requests, 2);
	assert_int_equal(site_row(&f, g, TTMON_MT_SHARED)->sums.requests, 2);
	assert_int_equal(site_row(&f, g, TTMON_MT_SHARED)->sums.waves, 32 + 1);
	assert_int_equal(site_row(&f, g, TTMON_MT_SHARED)->sums.max_waves, 32);
	assert_int_equal(site_row(&f, g, TTMON_MT_SHARED)->sums.waves_hist[32], 1);
	assert_int_equal(site_row(&f, g, TTMON_MT_SHARED)->sums.min_addr, 0);
	assert_int_equal(site_row(&f, g, TTMON_MT_SHARED)->sums.max_addr, 31 * 128 + 3);
	assert_int_equal(site_row(&f, g, TTMON_MT_LOCAL)->sums.sectors, 4);
	assert_int_equal(site_row(&f, sh, TTMON_MT_SHARED)->sums.same, 8);
	assert_int_equal(site_row(&f, sh, TTMON_MT_SHARED)->sums.reads, 1);
	assert_int_equal(site_row(&f, sh, TTMON_MT_SHARED)->sums.writes, 1);
	/* A prefetch is in its own row, without sectors, and in the mix. */
	assert_int_equal(site_row(&f, pf, TTMON_MT_GLOBAL)->sums.requests, 1);
	assert_int_equal(site_row(&f, pf, TTMON_MT_GLOBAL)->sums.sectors, 0);
	assert_int_equal(ttmon_mt_an_total(f.an, TTMON_MT_GENERIC)->requests, 6);
	k = ttmon_mt_an_kernels(f.an, &n)[0];
	assert_int_equal(n, 1);
	assert_string_equal(k.kernel, "k");
	assert_int_equal(k.launches, 1);
	assert_int_equal(k.requests[TTMON_MT_GLOBAL][TTMON_MT_LOAD], 2);
	assert_int_equal(k.requests[TTMON_MT_SHARED][TTMON_MT_LOAD], 2);
	assert_int_equal(k.requests[TTMON_MT_SHARED][TTMON_MT_ATOM], 1);
	assert_int_equal(k.requests[TTMON_MT_LOCAL][TTMON_MT_LOAD], 1);
	assert_int_equal(k.requests[TTMON_MT_GLOBAL][TTMON_MT_PREFETCH], 1);
	assert_int_equal(k.widths[2], 7);
	assert_int_equal(k.sums.requests, 2);
	lr = ttmon_mt_an_launches(f.an, &n)[0];
	assert_int_equal(lr.global.requests, 2);
	assert_int_equal(lr.shared.requests, 3);
	assert_int_equal(lr.local.requests, 1);
	/* Only the global ones are in a buffer. */
	settle(&f);
	ttmon_mt_an_buffers(f.an, &n);
	assert_int_equal(n, 2);
}

static void strides_and_steps(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_sums *s;
	uint32_t ld, other, third, l;

	(void)state;
	other = site(&f, "k", "ld.1", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	third = site(&f, "k", "ld.2", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	ld = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	l = launch(&f, "k");
	begin(&f, NULL);
	/*
	 * Two warps in turn, each 1 KiB further every time: from one to the other it would be something else.
	 */
	for (unsigned int i = 0; i < 40; i++) {
		struct ttmon_mt_rec rec = affine(&f, ld, l, ALL, BASE + (i % 2) * MIB + i / 2 * KIB, i % 10 ? 12 : 20);

		rec.warp = (uint16_t)(i % 2);
		assert_int_equal(ttmon_mt_an_feed(f.an, &f.d.dict, &rec, 1), 0);
	}
	s = &site_row(&f, ld, TTMON_MT_GLOBAL)->sums;
	assert_int_equal(s->step, KIB);
	assert_int_equal(s->step_votes, 38);
	assert_int_equal(s->stride, 12);
	assert_true(s->stride_votes >= 36 - 4);
	/* Neighbours of another place: of the launch, block or warp. */
	for (unsigned int i = 0; i < 200; i++) {
		struct ttmon_mt_rec rec = affine(&f, ld, l, ALL, BASE + i * 64, 4);

		rec.cta[i % 3] = i + 1;
		assert_int_equal(ttmon_mt_an_feed(f.an, &f.d.dict, &rec, 1), 0);
	}
	assert_int_equal(site_row(&f, ld, TTMON_MT_GLOBAL)->sums.step, KIB);
	assert_int_equal(site_row(&f, ld, TTMON_MT_GLOBAL)->sums.step_votes, 38);
	/* Rows 1 and 2, blocks whose numbers differ in the same bits: none is taken for the other. */
	for (unsigned int i = 0; i < 32; i++) {
		struct ttmon_mt_rec rec = affine(&f, i % 2 ? other : third, l, ALL, BASE + i % 2 * MIB, 4);

		rec.cta[0] = (1024 + i / 2 * 4) ^ (i % 2 ? 3 : 0);
		assert_int_equal(ttmon_mt_an_feed(f.an, &f.d.dict, &rec, 1), 0);
	}
	assert_int_equal(site_row(&f, other, TTMON_MT_GLOBAL)->sums.step_votes, 0);
	assert_int_equal(site_row(&f, third, TTMON_MT_GLOBAL)->sums.step_votes, 0);
}

/* Of three and then five in a row the five have it, by two votes. */
static void votes_of_many(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	struct ttmon_mt_rec recs[8];
	const struct ttmon_mt_sums *s;
	uint32_t ld, l;

	(void)state;
	ld = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	l = launch(&f, "k");
	begin(&f, NULL);
	for (unsigned int i = 0; i < 8; i++)
		recs[i] = affine(&f, ld, l, ALL, BASE + 4096 * i, i < 3 ? 16 : 8);
	assert_int_equal(ttmon_mt_an_feed(f.an, &f.d.dict, recs, 8), 0);
	s = &site_row(&f, ld, TTMON_MT_GLOBAL)->sums;
	assert_int_equal(s->stride, 8);
	assert_int_equal(s->stride_votes, 2);
}

/* ---- launches ---- */

static void working_sets(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_launch_row *rows;
	uint32_t ld, l[5];
	size_t n;

	(void)state;
	ld = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	for (unsigned int i = 0; i < 5; i++)
		l[i] = launch(&f, i < 3 ? "k" : "");
	begin(&f, NULL);
	walk_over(&f, ld, l[0], BASE, 25);	     /* sectors 0 to 99 */
	walk_over(&f, ld, l[0], BASE, 25);	     /* the same once more */
	walk_over(&f, ld, l[1], BASE + 50 * 32, 25); /* 50 to 149 */
	walk_over(&f, ld, l[0], BASE + MIB, 5);	     /* a late 20 of the first, still open */
	settle(&f);
	rows = ttmon_mt_an_launches(f.an, &n);
	assert_int_equal(n, 2);
	assert_int_equal(rows[0].sectors, 120);
	assert_int_equal(rows[0].again, 0);
	assert_int_equal(rows[1].sectors, 100);
	assert_int_equal(rows[1].again, 50);
	walk_over(&f, ld, l[2], BASE + 140 * 32, 5); /* 140 to 159: half of it of the second */
	walk_over(&f, ld, l[3], BASE, 1);
	walk_over(&f, ld, l[4], BASE, 2);
	walk_over(&f, ld, l[0], BASE + 2 * MIB, 1); /* too late */
	settle(&f);
	rows = ttmon_mt_an_launches(f.an, &n);
	assert_int_equal(n, 5);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(rows[i].estimate, i == 0);
	assert_int_equal(rows[0].sectors, 120);
	assert_int_equal(rows[0].global.sectors, 100 + 100 + 20 + 4);
	assert_int_equal(rows[1].sectors, 100);
	assert_int_equal(rows[1].again, 50);
	assert_int_equal(rows[2].sectors, 20);
	assert_int_equal(rows[2].again, 10);
	assert_int_equal(rows[3].sectors, 4);
	assert_int_equal(rows[3].again, 0);
	assert_int_equal(rows[4].sectors, 8);
	assert_int_equal(rows[4].again, 4);
	/* Those without a name of their own count for the kernel of their sites. */
	assert_int_equal(ttmon_mt_an_kernels(f.an, &n)[0].launches, 3);
	assert_int_equal(n, 1);
	assert_int_equal(ttmon_mt_an_kernels(f.an, &n)[0].sums.requests, 25 + 25 + 25 + 5 + 5 + 1 + 2 + 1);
}

static void past_the_limits(void **state)
{
	const struct ttmon_mt_an_opts opts = {
		.max_sites = 2, .max_launches = 3, .max_buffers = 2, .reuse = TTMON_MT_REUSE_OFF
	};
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_site_row *sites;
	const struct ttmon_mt_launch_row *launches;
	const struct ttmon_mt_kernel_row *kernels;
	const struct ttmon_mt_buffer_row *buffers;
	uint64_t requests = 0;
	size_t n;

	(void)state;
	begin(&f, &opts);
	for (unsigned int i = 0; i < 10; i++) {
		char name[8];
		uint32_t s, l;

		snprintf(name, sizeof(name), "k%u", i);
		s = site(&f, name, i % 2 ? "st" : "ld", TTMON_MT_GLOBAL, i % 2 ? TTMON_MT_STORE : TTMON_MT_LOAD, 4);
		l = launch(&f, name);
		walk_over(&f, s, l, BASE + i * 16 * MIB, i + 1);
	}
	settle(&f);
	sites = ttmon_mt_an_sites(f.an, &n);
	assert_int_equal(n, 3);
	assert_int_equal(sites[2].site, UINT32_MAX);
	assert_int_equal(sites[2].sums.requests, 55 - 3);
	assert_int_equal(sites[2].sums.writes, 4 + 6 + 8 + 10);
	launches = ttmon_mt_an_launches(f.an, &n);
	assert_int_equal(n, 4);
	assert_int_equal(launches[3].launch, UINT32_MAX);
	assert_int_equal(launches[3].global.requests, 55 - 6);
	assert_true(launches[3].estimate);
	kernels = ttmon_mt_an_kernels(f.an, &n);
	assert_int_equal(n, 3);
	assert_string_equal(kernels[2].kernel, "(others)");
	assert_int_equal(kernels[2].launches, 8);
	for (size_t i = 0; i < n; i++)
		requests += kernels[i].sums.requests;
	assert_int_equal(requests, 55);
	buffers = ttmon_mt_an_buffers(f.an, &n);
	assert_int_equal(n, 3);
	assert_int_equal(buffers[2].size, 0);
	assert_int_equal(buffers[2].sums.requests, 55 - 3);
	assert_null(ttmon_mt_an_reuse(f.an));
}

/* ---- random traces, one record at a time ---- */

static uint64_t rng = 88172645463325252;

static uint64_t below(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

#define SITES	 12
#define LAUNCHES 6
#define ALLOCS	 20

struct plain {
	struct ttmon_mt_sums site[SITES], launch[LAUNCHES][3], space[TTMON_MT_SPACE_MAX], buffer[ALLOCS],
		pair[ALLOCS][SITES];
};

/* The first of n bins whose end is not below v, else the last. */
static unsigned int bin(unsigned int v, const unsigned int *ends, unsigned int n)
{
	unsigned int i = 0;

	while (i + 1 < n && v > ends[i])
		i++;
	return i;
}

/* Straight from the definitions: one shape, one addition to everything it belongs to. */
static void add_plain(struct ttmon_mt_sums *s, const struct ttmon_mt_rec *rec, unsigned int kind,
		      const struct ttmon_mt_shape *shape)
{
	static const unsigned int lanes[] = { 1, 3, 7, 15, 31, 32 }, pages[] = { 1, 2, 4, 8, 16, 32, 1000 };

	if (!s->requests)
		s->min_addr = UINT64_MAX;
	s->lanes_bins[bin(shape->lanes, lanes, ARRAY_SIZE(lanes))]++;
	if (rec->space == TTMON_MT_GLOBAL) {
		s->pages_4k_bins[bin(shape->pages_4k, pages, ARRAY_SIZE(pages))]++;
		s->pages_2m_bins[bin(shape->pages_2m, pages, ARRAY_SIZE(pages))]++;
	}
	s->requests++;
	s->records++;
	s->inferred += rec->flags & TTMON_MT_INFERRED ? 1 : 0;
	s->lanes += shape->lanes;
	s->full += rec->mask == ALL;
	s->bytes += shape->bytes;
	s->unique += shape->unique;
	s->sectors += shape->sectors;
	s->lines += shape->lines;
	s->ideal += shape->ideal;
	s->ideal_lanes += shape->ideal_lanes;
	s->misaligned += shape->misaligned;
	s->pages_4k += shape->pages_4k;
	s->pages_64k += shape->pages_64k;
	s->pages_2m += shape->pages_2m;
	s->waves += shape->waves;
	s->phases += shape->phases;
	s->ideal_waves += shape->ideal_waves;
	s->max_waves = MAX(s->max_waves, shape->waves);
	if (kind == TTMON_MT_ATOM) {
		s->same += shape->same;
		s->max_same = MAX(s->max_same, shape->same);
	}
	s->reads += kind != TTMON_MT_STORE;
	s->writes += kind != TTMON_MT_LOAD;
	s->classes[shape->class]++;
	if (rec->space == TTMON_MT_SHARED) {
		s->waves_hist[MIN(shape->waves, 33)]++;
	} else {
		s->lines_hist[MIN(shape->lines, 33)]++;
		s->sectors_hist[MIN(shape->sectors, 33)]++;
	}
	for (unsigned int i = 0; i < TTMON_MT_LANES; i++)
		if (rec->mask & 1u << i) {
			s->min_addr = MIN(s->min_addr, ttmon_mt_lane(rec, i));
			s->max_addr = MAX(s->max_addr, ttmon_mt_lane(rec, i) + rec->width - 1);
		}
}

/* All but the votes, which depend on the order in which halves are put together. */
static void same_sums(const struct ttmon_mt_sums *a, const struct ttmon_mt_sums *b)
{
	struct ttmon_mt_sums x = *a, y = *b;

	x.stride = y.stride = x.step = y.step = 0;
	x.stride_votes = y.stride_votes = x.step_votes = y.step_votes = 0;
	if (!x.requests)
		x.min_addr = y.min_addr = 0;
	assert_memory_equal(&x, &y, sizeof(x));
}

/* The instructions of a buffer, by what could be saved; of: by site of the dictionary. */
static void same_pairs(const struct feed *f, uint32_t buffer, const struct ttmon_mt_sums *of)
{
	size_t n, nr_sites, want = 0;
	const struct ttmon_mt_pair *p = ttmon_mt_an_buffer_sites(f->an, buffer, &n);
	const struct ttmon_mt_site_row *rows = ttmon_mt_an_sites(f->an, &nr_sites);
	uint64_t last = UINT64_MAX;

	for (unsigned int i = 0; i < SITES; i++)
		want += of[i].requests != 0;
	assert_int_equal(n, want);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_sums *s = &of[rows[p[i].site].site];

		assert_int_equal(p[i].requests, s->requests);
		assert_int_equal(p[i].sectors, s->sectors);
		assert_int_equal(p[i].ideal, s->ideal);
		assert_true(s->sectors - s->ideal <= last);
		last = s->sectors - s->ideal;
	}
}

static void random_trace(unsigned int round)
{
	static const uint8_t kinds[] = { TTMON_MT_LOAD, TTMON_MT_STORE, TTMON_MT_ATOM };
	static const uint8_t in[] = { TTMON_MT_GLOBAL, TTMON_MT_GLOBAL, TTMON_MT_SHARED, TTMON_MT_LOCAL };
	_cleanup_feed_ struct feed f = { 0 };
	static struct plain p;
	static struct ttmon_mt_rec recs[4000];
	static uint64_t addrs[4000][TTMON_MT_LANES];
	size_t nr = 0, n;
	const struct ttmon_mt_buffer_row *b;

	memset(&p, 0, sizeof(p));
	for (unsigned int i = 0; i < SITES; i++)
		site(&f, i % 5 ? "k" : "j", "op", in[i % 4], kinds[i / 4], 1u << below(5));
	for (unsigned int i = 0; i < LAUNCHES; i++)
		launch(&f, "k");
	for (unsigned int i = 0; i < ALLOCS; i++)
		alloc(&f, TTMON_MT_MEM_DEVICE, BASE + i * MIB, MIB / 2, NULL);
	begin(&f, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(recs); i++) {
		struct ttmon_mt_rec *r = &recs[nr];
		uint32_t s = (uint32_t)below(SITES), alloc_nr = (uint32_t)below(ALLOCS);
		unsigned int space = f.d.dict.sites[s].space;
		uint64_t base = (space == TTMON_MT_GLOBAL ? BASE + alloc_nr * MIB : 0) + 8192 + below(400000);
		struct ttmon_mt_shape shape;
		uint32_t mask = below(2) ? ALL : (uint32_t)below(UINT32_MAX) + 1;

		*r = affine(&f, s, (uint32_t)below(LAUNCHES), mask, base, (int64_t)below(300) - 100);
		r->flags = below(3) ? 0 : TTMON_MT_INFERRED;
		if (!(mask & (mask - 1)))
			r->stride = 0;
		if (round % 2 && below(3)) {
			for (unsigned int k = 0; k < TTMON_MT_LANES; k++)
				addrs[nr][k] = base + below(10000);
			r->addr = addrs[nr];
			r->base = addrs[nr][__builtin_ctz(mask)];
			r->stride = 0;
		}
		ttmon_mt_get_shape(r, f.d.dict.sites[s].kind, &shape);
		add_plain(&p.site[s], r, f.d.dict.sites[s].kind, &shape);
		add_plain(&p.launch[r->launch][space - 1], r, f.d.dict.sites[s].kind, &shape);
		add_plain(&p.space[space], r, f.d.dict.sites[s].kind, &shape);
		if (space == TTMON_MT_GLOBAL) {
			add_plain(&p.buffer[alloc_nr], r, f.d.dict.sites[s].kind, &shape);
			add_plain(&p.pair[alloc_nr][s], r, f.d.dict.sites[s].kind, &shape);
		}
		nr++;
	}
	for (size_t at = 0, some; at < nr; at += some) {
		some = 1 + below(1000);
		some = MIN(some, nr - at);
		assert_int_equal(ttmon_mt_an_feed(f.an, &f.d.dict, recs + at, some), 0);
	}
	settle(&f);
	for (uint32_t s = 0; s < SITES; s++)
		same_sums(&site_row(&f, s, in[s % 4])->sums, &p.site[s]);
	for (unsigned int i = 1; i < TTMON_MT_SPACE_MAX; i++)
		same_sums(ttmon_mt_an_total(f.an, i), &p.space[i]);
	for (uint32_t i = 0; i < LAUNCHES; i++) {
		const struct ttmon_mt_launch_row *row = ttmon_mt_an_launches(f.an, &n);

		for (size_t k = 0; k < n; k++)
			if (row[k].launch == i) {
				same_sums(&row[k].global, &p.launch[i][0]);
				same_sums(&row[k].shared, &p.launch[i][1]);
				same_sums(&row[k].local, &p.launch[i][2]);
			}
	}
	b = ttmon_mt_an_buffers(f.an, &n);
	assert_int_equal(n, ALLOCS);
	for (size_t i = 0; i < n; i++) {
		same_sums(&b[i].sums, &p.buffer[b[i].alloc]);
		same_pairs(&f, (uint32_t)i, p.pair[b[i].alloc]);
	}
}

static void random_traces(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 6; round++)
		random_trace(round);
}

/* ---- sets, heat and reuse of neighbours, which are counted together ---- */

#define ROOM 65536u /* sectors from BASE on */

struct touched {
	bool launch[2][ROOM], all[ROOM];
	uint64_t sectors[2]; /* of each half, again and again */
	struct ttmon_mt_sums sums;
	struct ttmon_mt_reuse_set *reuse;
};

static void touch_plain(struct touched *t, const struct ttmon_mt_rec *rec)
{
	struct ttmon_mt_shape shape;

	ttmon_mt_get_shape(rec, TTMON_MT_LOAD, &shape);
	add_plain(&t->sums, rec, TTMON_MT_LOAD, &shape);
	for (unsigned int i = 0; i < shape.nr_runs; i++) {
		for (uint32_t k = 0; k < shape.runs[i].n; k++) {
			uint64_t at = shape.runs[i].sector + k - BASE / TTMON_MT_SECTOR;

			assert_true(at < ROOM);
			t->launch[rec->launch][at] = t->all[at] = true;
			t->sectors[at >= ROOM / 2]++;
		}
		ttmon_mt_reuse_touch(t->reuse, shape.runs[i].sector, shape.runs[i].n);
	}
}

/*
 * Walks up and down by lines, halves of them and words; columns again and again, a word on, over both
 * buffers; lists.
 */
static void next_of(struct feed *f, unsigned int i, uint64_t *at, uint64_t *addr, struct ttmon_mt_rec *rec)
{
	static const int64_t by[] = { 128, 128, -128, 64, 4, 256, -512, 4 };
	static const int64_t stride[] = { 4, 4, 4, 4, 1024, -2048, 8192, 96 };
	unsigned int what = i / 40 % 8;

	*at = i % 40 ? *at + (uint64_t)by[below(4) ? what : below(8)] : BASE + 300000 + below(1400000);
	*rec = affine(f, what % 3, i / 20 % 2, below(9) ? ALL : 0xffff00u | (uint32_t)below(2), *at,
		      stride[below(20) ? what : below(8)]);
	if (!below(10)) {
		for (unsigned int k = 0; k < TTMON_MT_LANES; k++)
			addr[k] = *at + below(3000);
		rec->addr = addr;
		rec->base = addr[__builtin_ctz(rec->mask)];
	}
}

static void neighbours(void **state)
{
	static struct touched t;
	static struct ttmon_mt_rec recs[6000];
	static uint64_t addrs[6000][TTMON_MT_LANES];
	const struct ttmon_mt_an_opts opts = { .reuse_max = 700 };
	const struct ttmon_mt_launch_row *l;
	const struct ttmon_mt_buffer_row *b;
	_cleanup_feed_ struct feed f = { 0 };
	struct ttmon_mt_reuse_result reuse;
	uint64_t at = 0, nr[2] = { 0 }, both = 0, in[2] = { 0 };
	struct ttmon_mt_heat h;
	size_t n;

	(void)state;
	memset(&t, 0, sizeof(t));
	assert_int_equal(ttmon_mt_reuse_new(false, opts.reuse_max, &t.reuse), 0);
	for (unsigned int i = 0; i < 3; i++)
		site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4u << i);
	for (unsigned int i = 0; i < 2; i++) {
		launch(&f, "k");
		alloc(&f, TTMON_MT_MEM_DEVICE, BASE + i * MIB, MIB, NULL);
	}
	begin(&f, &opts);
	for (unsigned int i = 0; i < ARRAY_SIZE(recs); i++) {
		next_of(&f, i, &at, addrs[i], &recs[i]);
		touch_plain(&t, &recs[i]);
	}
	for (size_t done = 0, some; done < ARRAY_SIZE(recs); done += some) {
		some = MIN(1 + below(2000), ARRAY_SIZE(recs) - done);
		assert_int_equal(ttmon_mt_an_feed(f.an, &f.d.dict, recs + done, some), 0);
	}
	settle(&f);
	for (unsigned int i = 0; i < ROOM; i++) {
		nr[0] += t.launch[0][i];
		nr[1] += t.launch[1][i];
		both += t.launch[0][i] && t.launch[1][i];
		in[i >= ROOM / 2] += t.all[i];
	}
	l = ttmon_mt_an_launches(f.an, &n);
	assert_int_equal(n, 2);
	assert_int_equal(l[0].sectors, nr[0]);
	assert_int_equal(l[1].sectors, nr[1]);
	assert_int_equal(l[1].again, both);
	assert_false(l[0].estimate || l[1].estimate);
	assert_int_equal(t.sums.sectors, t.sectors[0] + t.sectors[1]);
	same_sums(ttmon_mt_an_total(f.an, TTMON_MT_GLOBAL), &t.sums);
	b = ttmon_mt_an_buffers(f.an, &n);
	assert_int_equal(n, 2);
	assert_int_equal(ttmon_mt_an_heat(f.an, &h), 0);
	assert_int_equal(h.nr_buffers, 2);
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t sum = 0, of = h.buffer[i];

		assert_int_equal(b[i].sectors, in[i]);
		for (size_t k = 0; k < (size_t)h.rows * h.cols; k++)
			sum += h.count[i * h.rows * h.cols + k];
		assert_int_equal(sum, t.sectors[b[of].addr != BASE]);
	}
	ttmon_mt_reuse_get(t.reuse, &reuse);
	assert_true(reuse.rate < 1);
	assert_memory_equal(&reuse, ttmon_mt_an_reuse(f.an), sizeof(reuse));
	ttmon_mt_reuse_free(t.reuse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_by_hand),	     cmocka_unit_test(same_elsewhere), cmocka_unit_test(spaces),
		cmocka_unit_test(strides_and_steps), cmocka_unit_test(votes_of_many),  cmocka_unit_test(working_sets),
		cmocka_unit_test(past_the_limits),   cmocka_unit_test(random_traces),  cmocka_unit_test(neighbours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
