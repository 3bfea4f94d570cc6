/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mt_an_feed.h: small traces for the tests of memtrace/analyse/an.h: sites, launches and affine
 * records in a line each.
 */
#ifndef TTMON_MT_AN_FEED_H
#define TTMON_MT_AN_FEED_H

#include "memtrace/analyse/an.h"
#include "lib/base/util.h"

#define KIB 1024ull
#define MIB (1024ull * KIB)
#define ALL UINT32_MAX

struct feed {
	struct ttmon_mt_dictw d;
	struct ttmon_mt_map *map;
	struct ttmon_mt_an *an;
	uint64_t seq;
};

static inline void feed_fini(struct feed *f)
{
	ttmon_mt_an_free(f->an);
	ttmon_mt_map_free(f->map);
	ttmon_mt_dict_fini(&f->d);
}
#define _cleanup_feed_ _cleanup_(feed_fini)

static inline uint32_t site(struct feed *f, const char *kernel, const char *opcode, unsigned int space,
			    unsigned int kind, unsigned int width)
{
	struct ttmon_mt_site s = { .kernel = kernel,
				   .opcode = opcode,
				   .file = "/src/saxpy.cu",
				   .module = "a.out",
				   .line = 14 + (uint32_t)f->d.dict.nr_sites,
				   .space = (uint8_t)space,
				   .kind = (uint8_t)kind,
				   .width = (uint8_t)width };
	int64_t i = ttmon_mt_dict_site(&f->d, &s);

	assert_true(i >= 0);
	return (uint32_t)i;
}

static inline uint32_t launch_at(struct feed *f, const char *kernel, uint64_t ns, uint32_t pid)
{
	struct ttmon_mt_launch l = { .id = f->d.dict.nr_launches,
				     .kernel = kernel,
				     .time_ns = ns,
				     .pid = pid,
				     .shared_base = 0x7f0000000000,
				     .local_base = 0x7f0001000000 };
	int64_t i = ttmon_mt_dict_launch(&f->d, &l);

	assert_true(i >= 0);
	return (uint32_t)i;
}

static inline uint32_t launch(struct feed *f, const char *kernel)
{
	return launch_at(f, kernel, 0, 0);
}

static inline void alloc(struct feed *f, unsigned int mem, uint64_t addr, uint64_t size,
			 const struct ttmon_mt_alloc *more)
{
	struct ttmon_mt_alloc a = more ? *more : (struct ttmon_mt_alloc){ .free_ns = UINT64_MAX };

	a.addr = addr;
	a.size = size;
	a.mem = (uint8_t)mem;
	a.free_ns = a.free_ns ? a.free_ns : UINT64_MAX;
	if (!f->map)
		assert_int_equal(ttmon_mt_map_new(&f->map), 0);
	assert_int_equal(ttmon_mt_map_add(f->map, &a), 0);
}

/* After all alloc(). */
static inline void begin(struct feed *f, const struct ttmon_mt_an_opts *opts)
{
	struct ttmon_mt_an_opts o = opts ? *opts : (struct ttmon_mt_an_opts){ 0 };

	if (f->map)
		assert_int_equal(ttmon_mt_map_done(f->map), 0);
	o.map = f->map;
	assert_int_equal(ttmon_mt_an_new(&o, &f->an), 0);
}

static inline struct ttmon_mt_rec affine(const struct feed *f, uint32_t s, uint32_t l, uint32_t mask, uint64_t base,
					 int64_t stride)
{
	const struct ttmon_mt_site *of = &f->d.dict.sites[s];

	return (struct ttmon_mt_rec){ .base = base,
				      .stride = stride,
				      .seq = f->seq,
				      .mask = mask,
				      .site = s,
				      .launch = l,
				      .sm = TTMON_MT_NO_SM,
				      .space = of->space,
				      .width = of->width };
}

static inline void put(struct feed *f, uint32_t s, uint32_t l, uint32_t mask, uint64_t base, int64_t stride)
{
	struct ttmon_mt_rec rec = affine(f, s, l, mask, base, stride);

	f->seq++;
	assert_int_equal(ttmon_mt_an_feed(f->an, &f->d.dict, &rec, 1), 0);
}

/* n requests of whole warps, one behind the other. */
static inline void walk_over(struct feed *f, uint32_t s, uint32_t l, uint64_t base, unsigned int n)
{
	unsigned int width = f->d.dict.sites[s].width;

	for (unsigned int i = 0; i < n; i++)
		put(f, s, l, ALL, base + (uint64_t)i * width * TTMON_MT_LANES, width);
}

static inline void settle(struct feed *f)
{
	assert_int_equal(ttmon_mt_an_settle(f->an, &f->d.dict), 0);
}

static inline const struct ttmon_mt_site_row *site_row(const struct feed *f, uint32_t s, unsigned int space)
{
	size_t n;
	const struct ttmon_mt_site_row *rows = ttmon_mt_an_sites(f->an, &n);

	for (size_t i = 0; i < n; i++)
		if (rows[i].site == s && rows[i].space == space)
			return &rows[i];
	return NULL;
}

static inline const struct ttmon_mt_buffer_row *buffer_row(const struct feed *f, uint64_t addr)
{
	size_t n;
	const struct ttmon_mt_buffer_row *rows = ttmon_mt_an_buffers(f->an, &n);

	for (size_t i = 0; i < n; i++)
		if (rows[i].addr == addr)
			return &rows[i];
	return NULL;
}

#define BASE 0x7e0000000000ull

#endif
