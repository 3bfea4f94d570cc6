// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_an_buf.c: the analysis by buffer: with and without a map, data without records, the heat
 * map; excluded records and absurd ones. Allocations that fail: the sources are compiled in here once
 * more, with malloc and related functions replaced.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memtrace/analyse/an_int.h"

#include "tests/unit/feed/torture.h"

#include "memtrace/analyse/an.c"
#include "memtrace/analyse/buf.c"
#include "memtrace/analyse/heat.c"
#include "memtrace/analyse/one.c"
#include "memtrace/analyse/pair.c"
#include "memtrace/analyse/rows.c"
#include "memtrace/analyse/sums.c"
#undef GOLDEN
#include "memtrace/analyse/walk.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

#include "tests/unit/feed/mt_an_feed.h"

/* ---- buffers ---- */

static void without_a_map(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_buffer_row *b;
	const struct ttmon_mt_pair *pair;
	uint32_t ld, st, l[2];
	size_t n;

	(void)state;
	ld = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	st = site(&f, "k", "st", TTMON_MT_GLOBAL, TTMON_MT_STORE, 4);
	l[0] = launch(&f, "k");
	l[1] = launch(&f, "k");
	begin(&f, NULL);
	/* Chunks 0 and 2, then the one between; and one apart. */
	put(&f, ld, l[1], ALL, BASE + 128, 4);
	put(&f, st, l[0], ALL, BASE + 5 * MIB, 4);
	settle(&f);
	ttmon_mt_an_buffers(f.an, &n);
	assert_int_equal(n, 2);
	put(&f, ld, l[1], ALL, BASE + 3 * MIB, 4);
	put(&f, ld, l[1], ALL, BASE + 20 * MIB, 4);
	/* Downwards, too: below what there is. */
	put(&f, ld, l[1], ALL, BASE - 128, 4);
	/*
	 * A request that goes into the next chunk: its sectors are there, itself is where its first lane is.
	 */
	put(&f, ld, l[1], ALL, BASE + 22 * MIB - 64, 4);
	settle(&f);
	ttmon_mt_an_buffers(f.an, &n);
	assert_int_equal(n, 2);
	b = buffer_row(&f, BASE - 2 * MIB);
	assert_non_null(b);
	/* Its instructions, though they came in three ranges that met. */
	pair = ttmon_mt_an_buffer_sites(f.an, (uint32_t)(b - ttmon_mt_an_buffers(f.an, &n)), &n);
	assert_int_equal(n, 2);
	assert_int_equal(pair[0].requests + pair[1].requests, 4);
	assert_int_equal(site_row(&f, st, TTMON_MT_GLOBAL)->sums.sectors, 4);
	assert_int_equal(pair[0].sectors, 12); /* the most to save is 0 at both: the one with more first */
	ttmon_mt_an_buffer_sites(f.an, 7, &n);
	assert_int_equal(n, 0);
	assert_int_equal(b->size, 8 * MIB);
	assert_int_equal(b->alloc, UINT32_MAX);
	assert_int_equal(b->low, BASE - 128);
	assert_int_equal(b->high, BASE + 5 * MIB + 128);
	assert_int_equal(b->sums.requests, 4);
	assert_int_equal(b->sums.reads, 3);
	assert_int_equal(b->sums.writes, 1);
	assert_int_equal(b->sectors, 16);
	assert_int_equal(b->first_launch, 0);
	assert_int_equal(b->last_launch, 1);
	b = buffer_row(&f, BASE + 20 * MIB);
	assert_non_null(b);
	assert_int_equal(b->size, 4 * MIB);
	assert_int_equal(b->sums.requests, 2);
	assert_int_equal(b->sectors, 8);
	assert_int_equal(b->first_launch, 1);
	assert_int_equal(b->high, BASE + 22 * MIB + 64);
	/* One that is walked through, up or down, is one from the beginning. */
	n = f.an->nr_bufs;
	for (unsigned int i = 0; i < 50; i++) {
		put(&f, ld, l[1], ALL, BASE + 1024 * MIB + i * 2 * MIB, 4);
		put(&f, ld, l[1], ALL, BASE + 1024 * MIB - i * 2 * MIB, 4);
	}
	assert_int_equal(f.an->nr_bufs, n + 1);
}

static void with_a_map(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_buffer_row *b;
	struct ttmon_mt_rec rec;
	uint64_t addr[TTMON_MT_LANES];
	uint32_t ld, l[3];
	size_t n;

	(void)state;
	alloc(&f, TTMON_MT_MEM_DEVICE, BASE, 4096, &(struct ttmon_mt_alloc){ .alloc_ns = 10, .free_ns = 50, .pid = 7 });
	alloc(&f, TTMON_MT_MEM_DEVICE, BASE, 8192, &(struct ttmon_mt_alloc){ .alloc_ns = 60, .pid = 7 });
	alloc(&f, TTMON_MT_MEM_PINNED, BASE + MIB, 8192, &(struct ttmon_mt_alloc){ .alloc_ns = 10, .pid = 7 });
	ld = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	l[0] = launch_at(&f, "k", 20, 7);
	l[1] = launch_at(&f, "k", 70, 7);
	l[2] = launch_at(&f, "k", 0, 7);
	begin(&f, NULL);
	put(&f, ld, l[0], ALL, BASE, 4);
	put(&f, ld, l[0], ALL, BASE + 128, 4);
	put(&f, ld, l[1], ALL, BASE, 4);	/* the same address, another buffer */
	put(&f, ld, l[0], ALL, BASE + 4096, 4); /* behind the first, in nothing that is known then */
	/* Half of the lanes in the second, half in the pinned one. */
	for (unsigned int i = 0; i < TTMON_MT_LANES; i++)
		addr[i] = (i % 2 ? BASE + MIB + 512 : BASE) + 64 * i;
	rec = affine(&f, ld, l[1], ALL, addr[0], 0);
	rec.addr = addr;
	assert_int_equal(ttmon_mt_an_feed(f.an, &f.d.dict, &rec, 1), 0);
	settle(&f);
	b = ttmon_mt_an_buffers(f.an, &n);
	assert_int_equal(n, 4);
	assert_int_equal(b[0].alloc, 0);
	assert_int_equal(b[0].size, 4096);
	assert_int_equal(b[0].sums.requests, 2);
	assert_int_equal(b[0].sectors, 8);
	assert_int_equal(b[0].low, BASE);
	assert_int_equal(b[0].high, BASE + 256);
	assert_int_equal(b[0].first_launch, 0);
	assert_int_equal(b[0].last_launch, 0);
	assert_false(b[0].ambiguous);
	assert_int_equal(b[1].alloc, 1);
	assert_int_equal(b[1].sums.requests, 2);
	assert_int_equal(b[1].sums.sectors, 4 + 32);
	assert_int_equal(b[1].sectors, 19); /* 0 to 3, and every fourth from 0 up to 60 */
	assert_int_equal(b[1].first_launch, 1);
	assert_int_equal(b[2].alloc, 2);
	assert_int_equal(b[2].sums.requests, 0);
	assert_int_equal(b[2].touches, 1);
	assert_int_equal(b[2].sums.reads, 1);
	assert_int_equal(b[2].sums.writes, 0);
	assert_int_equal(b[2].unknown, 0);
	assert_int_equal(b[2].sectors, 16);
	assert_int_equal(b[2].low, BASE + MIB + 512 + 64);
	assert_int_equal(b[2].high, BASE + MIB + 512 + 31 * 64 + 32);
	assert_int_equal(b[3].alloc, UINT32_MAX);
	assert_int_equal(b[3].addr, BASE);
	assert_int_equal(b[3].sums.requests, 1);
	/* Without a time: the one that lived longest, and a doubt. */
	put(&f, ld, l[2], ALL, BASE, 4);
	settle(&f);
	b = ttmon_mt_an_buffers(f.an, &n);
	assert_int_equal(b[1].sums.requests, 3);
	assert_true(b[1].ambiguous);
}

static struct ttmon_mt_kernel_row kernel_named(const struct feed *f, const char *name)
{
	size_t n;
	const struct ttmon_mt_kernel_row *k = ttmon_mt_an_kernels(f->an, &n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(k[i].kernel, name))
			return k[i];
	return (struct ttmon_mt_kernel_row){ .kernel = NULL };
}

/*
 * What the GPU counted is what records would have made; the stride only where most have it; launches
 * as the program counted them.
 */
/*
 * Sectors come to a buffer by way of its launches: those that are open, done with, and late; and that
 * two allocations have a part of.
 */
/*
 * A buffer that begins within a sector: of a request that another buffer's came before, too, that
 * sector is its own.
 */
static void begins_within_a_sector(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	struct ttmon_mt_rec recs[3];
	uint32_t ld[2], l;
	size_t n;

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		ld[i] = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	l = launch(&f, "k");
	alloc(&f, TTMON_MT_MEM_REGISTERED, BASE + 16, 4 * KIB, NULL);
	alloc(&f, TTMON_MT_MEM_REGISTERED, BASE + 8 * KIB, 4 * KIB, NULL);
	begin(&f, NULL);
	recs[0] = recs[2] = affine(&f, ld[0], l, ALL, BASE + 16, 4);
	recs[1] = affine(&f, ld[1], l, ALL, BASE + 8 * KIB, 4);
	assert_int_equal(ttmon_mt_an_feed(f.an, &f.d.dict, recs, 3), 0);
	settle(&f);
	ttmon_mt_an_buffers(f.an, &n);
	assert_int_equal(n, 2);
	assert_int_equal(buffer_row(&f, BASE + 16)->sectors, 5);
	assert_int_equal(buffer_row(&f, BASE + 16)->sums.requests, 2);
	assert_int_equal(buffer_row(&f, BASE + 8 * KIB)->sectors, 4);
}

static void sectors_of_buffers(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_buffer_row *b;
	uint32_t ld, l[5];

	(void)state;
	ld = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	for (unsigned int i = 0; i < ARRAY_SIZE(l); i++)
		l[i] = launch(&f, "k");
	alloc(&f, TTMON_MT_MEM_DEVICE, BASE, 1000, NULL);
	alloc(&f, TTMON_MT_MEM_DEVICE, BASE + 1000, MIB, NULL);
	begin(&f, NULL);
	/*
	 * Sector 31 has the end of one and the beginning of the other: it is of the one that the first lane is
	 * in.
	 */
	put(&f, ld, l[0], 1, BASE + 1000, 0);
	put(&f, ld, l[0], 1, BASE, 0);
	settle(&f);
	b = buffer_row(&f, BASE);
	assert_int_equal(b->sectors, 1);
	assert_int_equal(buffer_row(&f, BASE + 1000)->sectors, 1);
	put(&f, ld, l[0], 1, BASE + 996, 0);
	/* Each launch has its own four; the first ones are closed before results are requested. */
	for (unsigned int i = 0; i < ARRAY_SIZE(l); i++)
		put(&f, ld, l[i], ALL, BASE + 4096 * (i + 1), 4);
	put(&f, ld, l[0], ALL, BASE + 65536, 4);
	put(&f, ld, l[0], ALL, BASE + 65536, 4);
	settle(&f);
	assert_int_equal(buffer_row(&f, BASE)->sectors, 2);
	assert_int_equal(buffer_row(&f, BASE + 1000)->sectors, 1 + 4 * ARRAY_SIZE(l) + 4);
}

static void sums_have_shapes(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	struct ttmon_mt_agg agg = { .launch = TTMON_MT_NO_LAUNCH,
				    .shapes = 1,
				    .requests = 10,
				    .full = 4,
				    .lanes = 200,
				    .bytes = 800,
				    .sectors = 90,
				    .lines = 50,
				    .ideal_lanes = 30,
				    .ideal = 20,
				    .unique = 600,
				    .misaligned = 3,
				    .pages_4k = 12,
				    .pages_64k = 11,
				    .pages_2m = 10,
				    .same = 40,
				    .max_same = 7,
				    .stride = { 64, 8 },
				    .stride_requests = { 5, 2 },
				    .min_addr = BASE,
				    .max_addr = BASE + 4095 };
	const struct ttmon_mt_sums *s;
	uint32_t red, func;

	(void)state;
	red = site(&f, "k", "red", TTMON_MT_GLOBAL, TTMON_MT_RED, 4);
	func = site(&f, "device_function", "ld", TTMON_MT_SHARED, TTMON_MT_LOAD, 4);
	f.d.dict.sites[func].flags = TTMON_MT_SITE_FUNCTION;
	begin(&f, NULL);
	agg.site = red;
	agg.classes[TTMON_MT_STRIDED] = 8;
	agg.classes[TTMON_MT_GATHER] = 2;
	agg.lanes_hist[32] = 4;
	agg.lanes_hist[12] = 6;
	agg.cost_hist[9] = 10;
	agg.lines_hist[5] = 10;
	agg.pages_4k_bins[0] = 8;
	agg.pages_4k_bins[1] = 2;
	agg.pages_2m_bins[0] = 10;
	assert_true(ttmon_mt_dict_agg(&f.d, &agg) >= 0);
	agg = (struct ttmon_mt_agg){ .site = func,
				     .launch = TTMON_MT_NO_LAUNCH,
				     .shapes = 1,
				     .requests = 6,
				     .waves = 12,
				     .phases = 6,
				     .ideal_waves = 7,
				     .max_waves = 2,
				     .stride = { 8 },
				     .stride_requests = { 3 } };
	agg.cost_hist[2] = 6;
	agg.classes[TTMON_MT_STRIDED] = 6;
	assert_true(ttmon_mt_dict_agg(&f.d, &agg) >= 0);
	for (unsigned int i = 0; i < 3; i++) {
		static const char *const names[] = { "k", "only_calls", "not_recorded" };

		assert_true(ttmon_mt_dict_kernel(&f.d, &(struct ttmon_mt_kernel){ .name = names[i],
										  .module = "",
										  .why = "",
										  .launches = 9,
										  .recorded = i < 2 ? 5 + i : 0 }) >=
			    0);
	}
	settle(&f);
	settle(&f);
	s = &site_row(&f, red, TTMON_MT_GLOBAL)->sums;
	assert_true(s->requests == 10 && s->records == 0 && s->unique == 600 && s->ideal == 20 && s->ideal_lanes == 30);
	assert_true(s->misaligned == 3 && s->pages_4k == 12 && s->pages_64k == 11 && s->pages_2m == 10);
	assert_true(s->same == 40 && s->max_same == 7 && s->reads == 10 && s->writes == 10);
	assert_true(s->classes[TTMON_MT_STRIDED] == 8 && s->classes[TTMON_MT_GATHER] == 2);
	assert_true(s->sectors_hist[9] == 10 && s->lines_hist[5] == 10 && !s->waves_hist[9]);
	assert_true(s->lanes_bins[3] == 6 && s->lanes_bins[5] == 4 && s->pages_4k_bins[0] == 8 &&
		    s->pages_4k_bins[1] == 2 && s->pages_2m_bins[0] == 10);
	assert_true(s->stride == 64 && s->stride_votes == 2);
	s = &site_row(&f, func, TTMON_MT_SHARED)->sums;
	assert_true(s->waves == 12 && s->phases == 6 && s->ideal_waves == 7 && s->max_waves == 2 &&
		    s->waves_hist[2] == 6 && !s->sectors_hist[2]);
	assert_true(!s->stride && !s->stride_votes);
	assert_true(kernel_named(&f, "k").launches == 5 && !kernel_named(&f, "k").function);
	assert_true(kernel_named(&f, "only_calls").launches == 6);
	assert_true(kernel_named(&f, "device_function").function && !kernel_named(&f, "device_function").launches);
	assert_null(kernel_named(&f, "not_recorded").kernel);
}

static void touches_and_sums(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_buffer_row *b;
	const struct ttmon_mt_sums *s;
	struct ttmon_mt_agg agg;
	uint32_t ld, red, l;
	size_t n;

	(void)state;
	alloc(&f, TTMON_MT_MEM_PINNED, BASE, 8192, NULL);
	alloc(&f, TTMON_MT_MEM_DEVICE, BASE + 8192, 8192, NULL);
	ld = site(&f, "k", "ld", TTMON_MT_GENERIC, TTMON_MT_LOAD, 4);
	red = site(&f, "k", "red", TTMON_MT_GLOBAL, TTMON_MT_RED, 4);
	l = launch(&f, "k");
	begin(&f, NULL);
	agg = (struct ttmon_mt_agg){ .site = ld,
				     .launch = l,
				     .requests = 100,
				     .full = 90,
				     .lanes = 3000,
				     .bytes = 12000,
				     .sectors = 400,
				     .lines = 110,
				     .ideal_lanes = 380,
				     .min_addr = BASE + 64,
				     .max_addr = BASE + 4095 };
	assert_true(ttmon_mt_dict_agg(&f.d, &agg) >= 0);
	agg = (struct ttmon_mt_agg){ .site = red,
				     .launch = TTMON_MT_NO_LAUNCH,
				     .requests = 10,
				     .lanes = 320,
				     .bytes = 1280,
				     .sectors = 10,
				     .lines = 10,
				     .ideal_lanes = 40,
				     .min_addr = BASE + 4096,
				     .max_addr = BASE + 9000 }; /* in two buffers: in neither */
	assert_true(ttmon_mt_dict_agg(&f.d, &agg) >= 0);
	assert_true(ttmon_mt_dict_touch(&f.d, &(struct ttmon_mt_touch){ BASE + 4096, 8192, 5, 6, l, 0 }) >= 0);
	assert_true(ttmon_mt_dict_touch(&f.d, &(struct ttmon_mt_touch){ BASE + 12288, 4096 + 100, 0, 0,
									TTMON_MT_NO_LAUNCH, 0 }) >= 0);
	settle(&f);
	settle(&f); /* once is enough */
	s = &site_row(&f, ld, TTMON_MT_GLOBAL)->sums;
	assert_int_equal(s->requests, 100);
	assert_int_equal(s->records, 0);
	assert_int_equal(s->reads, 100);
	assert_int_equal(s->sectors, 400);
	assert_int_equal(s->unique, 12000);
	s = &site_row(&f, red, TTMON_MT_GLOBAL)->sums;
	assert_int_equal(s->unique, 320); /* no more than was moved */
	assert_int_equal(s->writes, 10);
	assert_int_equal(ttmon_mt_an_total(f.an, TTMON_MT_GENERIC)->requests, 110);
	assert_int_equal(ttmon_mt_an_launches(f.an, &n)[0].global.requests, 100);
	assert_int_equal(ttmon_mt_an_kernels(f.an, &n)[0].requests[TTMON_MT_GLOBAL][TTMON_MT_RED], 10);
	b = ttmon_mt_an_buffers(f.an, &n);
	assert_int_equal(n, 3); /* and 100 bytes of nothing */
	assert_int_equal(b[0].alloc, 0);
	assert_int_equal(b[0].sums.requests, 100);
	assert_int_equal(b[0].touches, 11);
	assert_int_equal(b[0].sums.reads, 105);
	assert_int_equal(b[0].sums.writes, 6);
	assert_int_equal(b[0].low, BASE + 64);
	assert_int_equal(b[0].high, BASE + 8192);
	assert_int_equal(b[0].last_launch, l);
	assert_int_equal(b[1].alloc, 1);
	assert_int_equal(b[1].touches, 11 + 1);
	assert_int_equal(b[1].unknown, 1);
	assert_int_equal(b[1].low, BASE + 8192);
	assert_int_equal(b[1].high, BASE + 16384);
	assert_int_equal(b[2].low, BASE + 16384);
	assert_int_equal(b[2].high, BASE + 16384 + 100);
	/* Records that come later are added to them. */
	put(&f, ld, l, ALL, BASE, 4);
	settle(&f);
	assert_int_equal(ttmon_mt_an_buffers(f.an, &n)[0].sums.requests, 101);
	assert_int_equal(site_row(&f, ld, TTMON_MT_GLOBAL)->sums.sectors, 404);
	/* What no reader hands out. */
	agg.site = 1000;
	assert_true(ttmon_mt_dict_agg(&f.d, &agg) >= 0);
	assert_int_equal(ttmon_mt_an_settle(f.an, &f.d.dict), -EINVAL);
}

static void touch_of_everything(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_buffer_row *b;
	size_t n;

	(void)state;
	begin(&f, NULL);
	assert_true(ttmon_mt_dict_touch(
			    &f.d, &(struct ttmon_mt_touch){ 4 * MIB, 2 * MIB, 1, 0, TTMON_MT_NO_LAUNCH, 0 }) >= 0);
	assert_true(ttmon_mt_dict_touch(&f.d, &(struct ttmon_mt_touch){ 5, UINT64_MAX, 1, 0, TTMON_MT_NO_LAUNCH, 0 }) >=
		    0);
	settle(&f);
	b = ttmon_mt_an_buffers(f.an, &n);
	assert_int_equal(n, 1);
	assert_int_equal(b[0].low, 5);
	assert_int_equal(b[0].high, UINT64_MAX);
	assert_int_equal(b[0].touches, 3); /* below, behind, and the first */
}

/* ---- the heat map ---- */

static uint64_t heat_sum(const struct ttmon_mt_heat *h, size_t buffer, uint32_t row, uint32_t col)
{
	uint64_t n = 0;

	for (uint32_t r = 0; r < h->rows; r++)
		for (uint32_t c = 0; c < h->cols; c++)
			if ((row == UINT32_MAX || r == row) && (col == UINT32_MAX || c == col))
				n += h->count[(buffer * h->rows + r) * h->cols + c];
	return n;
}

static void heat(void **state)
{
	const struct ttmon_mt_an_opts opts = { .heat_rows = 8, .heat_cols = 5 };
	_cleanup_feed_ struct feed f = { 0 };
	struct ttmon_mt_heat h;
	uint32_t ld, l;

	(void)state;
	alloc(&f, TTMON_MT_MEM_DEVICE, BASE, 8 * KIB, NULL);
	alloc(&f, TTMON_MT_MEM_DEVICE, BASE + 64 * KIB, 3000, NULL);
	ld = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	l = launch(&f, "k");
	begin(&f, &opts);
	settle(&f);
	assert_int_equal(ttmon_mt_an_heat(f.an, &h), 0);
	assert_int_equal(h.nr_buffers, 0);
	/* 64 requests through the large one: 8 in each row; then 16 in the last row of the small one. */
	walk_over(&f, ld, l, BASE, 64);
	settle(&f);
	assert_int_equal(ttmon_mt_an_heat(f.an, &h), 0);
	assert_int_equal(h.nr_buffers, 1);
	assert_int_equal(h.rows, 8);
	assert_int_equal(h.per_col, 16);
	assert_int_equal(h.cols, 4);
	for (uint32_t r = 0; r < 8; r++)
		for (uint32_t c = 0; c < 4; c++)
			assert_int_equal(heat_sum(&h, 0, r, c), r / 2 == c ? 32 : 0);
	for (unsigned int i = 0; i < 16; i++)
		put(&f, ld, l, ALL, BASE + 64 * KIB + 2816, 4);
	put(&f, ld, l, ALL, BASE, 4);
	settle(&f);
	assert_int_equal(ttmon_mt_an_heat(f.an, &h), 0);
	assert_int_equal(h.nr_buffers, 2);
	assert_int_equal(h.per_col, 32);
	assert_int_equal(h.cols, 3);
	assert_int_equal(f.an->buffers[h.buffer[0]].addr, BASE); /* most often touched first */
	assert_int_equal(heat_sum(&h, 0, ALL, ALL), 65 * 4);
	assert_int_equal(heat_sum(&h, 0, 0, ALL), 36);
	assert_int_equal(heat_sum(&h, 0, 0, 2), 4);
	assert_int_equal(heat_sum(&h, 0, ALL, 0), 128);
	assert_int_equal(heat_sum(&h, 1, ALL, ALL), 64);
	assert_int_equal(heat_sum(&h, 1, 6, 2) + heat_sum(&h, 1, 7, 2), 64); /* the bin reaches over both */
}

/*
 * A range whose size is not known grows both ways; no sector is lost, and halves stay where they are.
 */
static void heat_of_ranges(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	struct ttmon_mt_heat h;
	uint32_t ld, l;
	uint64_t below = 0;

	(void)state;
	ld = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	l = launch(&f, "k");
	begin(&f, NULL);
	for (unsigned int i = 0; i < 16; i++)
		for (unsigned int k = 0; k < 2 + i; k++) {
			put(&f, ld, l, ALL, BASE + i * 2 * MIB + k * 1024, 4);
			put(&f, ld, l, ALL, BASE - (i + 1) * 2 * MIB + k * 1024, 4);
		}
	settle(&f);
	assert_int_equal(ttmon_mt_an_heat(f.an, &h), 0);
	assert_int_equal(h.nr_buffers, 1);
	assert_int_equal(f.an->buffers[0].addr, BASE - 32 * MIB);
	assert_int_equal(f.an->buffers[0].size, 64 * MIB);
	assert_int_equal(heat_sum(&h, 0, ALL, ALL), 2 * 4 * (2 * 16 + 120));
	for (uint32_t r = 0; r < 32; r++)
		below += heat_sum(&h, 0, r, ALL);
	assert_int_equal(below, 4 * (2 * 16 + 120));
	/* Two that have met make one. */
	put(&f, ld, l, ALL, BASE + 96 * MIB, 4);
	for (unsigned int i = 0; i < 32; i++)
		put(&f, ld, l, ALL, BASE + (32 + 2 * i) * MIB, 4);
	settle(&f);
	assert_int_equal(ttmon_mt_an_heat(f.an, &h), 0);
	assert_int_equal(h.nr_buffers, 1);
	assert_int_equal(heat_sum(&h, 0, ALL, ALL), 2 * 4 * (2 * 16 + 120) + 33 * 4);
}

/* ---- instructions of a buffer ---- */

#define MANY 260u /* instructions, and buffers: pairs of them are more than are kept */

static void too_many_pairs(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_pair *p;
	uint64_t kept = 0;
	uint32_t l;
	size_t n;

	(void)state;
	for (unsigned int i = 0; i < MANY; i++) {
		site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
		alloc(&f, TTMON_MT_MEM_DEVICE, BASE + i * 64 * KIB, 64 * KIB, NULL);
	}
	l = launch(&f, "k");
	begin(&f, &(struct ttmon_mt_an_opts){ .reuse = TTMON_MT_REUSE_OFF });
	for (unsigned int b = 0; b < MANY; b++)
		for (uint32_t s = 0; s < MANY; s++)
			put(&f, s, l, ALL, BASE + b * 64 * KIB + s * 128, s ? 4 : 8);
	settle(&f);
	for (uint32_t b = 0; b < MANY; b++) {
		p = ttmon_mt_an_buffer_sites(f.an, b, &n);
		kept += n;
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(p[i].buffer, b);
			assert_int_equal(p[i].requests, 1);
			assert_int_equal(p[i].sectors, i ? 4 : 8); /* the worst first */
		}
		assert_int_equal(ttmon_mt_an_buffers(f.an, &n)[b].sums.requests, MANY);
	}
	assert_int_equal(kept, 65536);
}

/* ---- what does not belong there ---- */

static bool only_stores(void *ctx, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec)
{
	++*(unsigned int *)ctx;
	return dict->sites[rec->site].kind == TTMON_MT_STORE;
}

static void wanted(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	unsigned int asked_for = 0;
	const struct ttmon_mt_an_opts opts = { .want = only_stores, .ctx = &asked_for };
	uint32_t ld, st, l;
	size_t n;

	(void)state;
	ld = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	st = site(&f, "k", "st", TTMON_MT_GLOBAL, TTMON_MT_STORE, 4);
	l = launch(&f, "k");
	begin(&f, &opts);
	walk_over(&f, ld, l, BASE, 10);
	walk_over(&f, st, l, BASE, 5);
	assert_true(ttmon_mt_dict_agg(&f.d, &(struct ttmon_mt_agg){
						    .site = ld, .launch = l, .requests = 10, .min_addr = 1 }) >= 0);
	assert_true(ttmon_mt_dict_agg(&f.d, &(struct ttmon_mt_agg){
						    .site = st, .launch = l, .requests = 10, .min_addr = 1 }) >= 0);
	settle(&f);
	assert_int_equal(asked_for, 17);
	ttmon_mt_an_sites(f.an, &n);
	assert_int_equal(n, 1);
	assert_int_equal(site_row(&f, st, TTMON_MT_GLOBAL)->sums.requests, 15);
}

static void absurd(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	struct ttmon_mt_rec recs[3];
	uint32_t ld, l;

	(void)state;
	ld = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 64);
	l = launch(&f, "k");
	begin(&f, NULL);
	for (unsigned int i = 0; i < 4; i++) {
		recs[0] = recs[1] = recs[2] = affine(&f, ld, l, ALL, BASE, 4);
		recs[1].mask = i == 0 ? 0 : ALL;
		recs[1].site = i == 1 ? 7 : ld;
		recs[1].launch = i == 2 ? TTMON_MT_NO_LAUNCH : l;
		recs[1].space = i == 3 ? TTMON_MT_SPACE_MAX : TTMON_MT_GLOBAL;
		assert_int_equal(ttmon_mt_an_feed(f.an, &f.d.dict, recs, 3), -EINVAL);
		assert_int_equal(ttmon_mt_an_total(f.an, TTMON_MT_GENERIC)->requests, i + 1); /* the one before it */
	}
	/* Over the top of all addresses, and at both ends. */
	put(&f, ld, l, ALL, UINT64_MAX - 100, 64);
	put(&f, ld, l, ALL, 100, -64);
	put(&f, ld, l, ALL, 0, INT64_MIN);
	put(&f, ld, l, ALL, UINT64_MAX, INT64_MAX);
	put(&f, ld, l, 1, UINT64_MAX, 0);
	settle(&f);
	assert_int_equal(ttmon_mt_an_total(f.an, TTMON_MT_GENERIC)->requests, 9);
}

/* ---- memory is short ---- */

static int all_of_it(struct feed *f, struct ttmon_mt_heat *h)
{
	int err = ttmon_mt_an_new(&(struct ttmon_mt_an_opts){ .map = f->map, .reuse = TTMON_MT_REUSE_OFF }, &f->an);

	for (uint32_t i = 0; i < 100 && !err; i++) {
		struct ttmon_mt_rec rec = affine(f, i, i, ALL, BASE + i * 5 * MIB, 4);

		err = ttmon_mt_an_feed(f->an, &f->d.dict, &rec, 1);
	}
	err = err ?: ttmon_mt_an_settle(f->an, &f->d.dict);
	return err ?: ttmon_mt_an_heat(f->an, h);
}

static void short_of_memory(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	int err = -ENOMEM;
	long at;

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		char name[8];

		snprintf(name, sizeof(name), "k%u", i);
		site(&f, name, "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
		launch(&f, name);
		if (i % 2)
			alloc(&f, TTMON_MT_MEM_DEVICE, BASE + i * 5 * MIB, 4096, NULL);
	}
	assert_int_equal(ttmon_mt_map_done(f.map), 0);
	for (at = 0; err == -ENOMEM; at += at < 100 ? 1 : 7) {
		struct ttmon_mt_heat h;

		fail_at = at;
		fail_on = true;
		asked = 0;
		err = all_of_it(&f, &h);
		fail_at = -1;
		if (err && f.an) { /* it goes on when there is memory again */
			uint64_t had = ttmon_mt_an_total(f.an, TTMON_MT_GENERIC)->requests;

			walk_over(&f, 5, 5, BASE, 3);
			settle(&f);
			assert_int_equal(ttmon_mt_an_total(f.an, TTMON_MT_GENERIC)->requests, had + 3);
		}
		if (!err)
			assert_int_equal(h.nr_buffers, 100);
		ttmon_mt_an_free(f.an);
		f.an = NULL;
	}
	assert_int_equal(err, 0);
	assert_true(at > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_map),
		cmocka_unit_test(with_a_map),
		cmocka_unit_test(touches_and_sums),
		cmocka_unit_test(begins_within_a_sector),
		cmocka_unit_test(sectors_of_buffers),
		cmocka_unit_test(sums_have_shapes),
		cmocka_unit_test(touch_of_everything),
		cmocka_unit_test(heat),
		cmocka_unit_test(too_many_pairs),
		cmocka_unit_test(heat_of_ranges),
		cmocka_unit_test(wanted),
		cmocka_unit_test(absurd),
		cmocka_unit_test(short_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
