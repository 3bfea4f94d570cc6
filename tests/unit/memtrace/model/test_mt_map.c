// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_map.c: which allocation an address is in: by hand, against a plain model on random ones, out
 * of a run, and when memory is short.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memtrace/model/map.h"

#include "lib/read/run.h"
#include "lib/base/util.h"

#include "tests/unit/feed/torture.h"

#include "memtrace/model/map.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

#define NONE UINT32_MAX
#define LIVE UINT64_MAX

static void map_freep(struct ttmon_mt_map **map)
{
	ttmon_mt_map_free(*map);
}
#define _cleanup_map_ _cleanup_(map_freep)

static struct ttmon_mt_map *new_map(void)
{
	struct ttmon_mt_map *map = NULL;

	assert_int_equal(ttmon_mt_map_new(&map), 0);
	return map;
}

static void put(struct ttmon_mt_map *map, uint32_t pid, unsigned int mem, uint64_t addr, uint64_t size, uint64_t from,
		uint64_t to)
{
	assert_int_equal(ttmon_mt_map_add(map, &(struct ttmon_mt_alloc){ .addr = addr,
									 .size = size,
									 .alloc_ns = from,
									 .free_ns = to,
									 .pid = pid,
									 .mem = (uint8_t)mem }),
			 0);
}

static uint32_t at(const struct ttmon_mt_map *map, uint64_t addr, uint64_t ns, uint32_t pid, enum ttmon_mt_how *how)
{
	uint64_t lo, hi;

	return ttmon_mt_map_at(map, addr, &(struct ttmon_mt_when){ ns, TTMON_MT_NO_NTH, pid }, how, &lo, &hi);
}

static uint32_t find(const struct ttmon_mt_map *map, uint64_t addr, uint64_t ns, uint32_t pid)
{
	enum ttmon_mt_how how;
	uint32_t i = at(map, addr, ns, pid, &how);

	assert_int_equal(how, TTMON_MT_SURE);
	return i;
}

static uint32_t find_doubt(const struct ttmon_mt_map *map, uint64_t addr, uint64_t ns, uint32_t pid)
{
	enum ttmon_mt_how how;
	uint32_t i = at(map, addr, ns, pid, &how);

	assert_int_equal(how, TTMON_MT_AMBIGUOUS);
	return i;
}

static void ends_are_sharp(void **state)
{
	_cleanup_map_ struct ttmon_mt_map *map = new_map();

	(void)state;
	assert_int_equal(ttmon_mt_map_done(map), 0);
	assert_int_equal(find(map, 0x1000, 5, 0), NONE);
	put(map, 7, TTMON_MT_MEM_DEVICE, 0x1000, 0x100, 10, 20);
	put(map, 7, TTMON_MT_MEM_DEVICE, 0x1100, 0x100, 10, LIVE);
	put(map, 7, TTMON_MT_MEM_DEVICE, 0x3000, 0, 10, LIVE);
	put(map, 7, TTMON_MT_MEM_DEVICE, UINT64_MAX - 15, 100, 10, LIVE);
	assert_int_equal(ttmon_mt_map_done(map), 0);
	assert_int_equal(find(map, 0xfff, 15, 7), NONE);
	assert_int_equal(find(map, 0x1000, 15, 7), 0);
	assert_int_equal(find(map, 0x10ff, 15, 7), 0);
	assert_int_equal(find(map, 0x1100, 15, 7), 1);
	assert_int_equal(find(map, 0x1200, 15, 7), NONE);
	assert_int_equal(find(map, 0x3000, 15, 7), NONE);
	assert_int_equal(find(map, UINT64_MAX - 3, 15, 7), 3);
	/* From its making up to, and without, its end. */
	assert_int_equal(find(map, 0x1000, 9, 7), NONE);
	assert_int_equal(find(map, 0x1000, 10, 7), 0);
	assert_int_equal(find(map, 0x1000, 19, 7), 0);
	assert_int_equal(find(map, 0x1000, 20, 7), NONE);
	assert_int_equal(find(map, 0x1100, LIVE - 1, 7), 1);
	/* Of whom: 0 is any. */
	assert_int_equal(find(map, 0x1000, 15, 8), NONE);
	assert_int_equal(find(map, 0x1000, 15, 0), 0);
}

static void generations(void **state)
{
	_cleanup_map_ struct ttmon_mt_map *map = new_map();

	(void)state;
	/*
	 * One place, given out a thousand times for 9 of every 10 ns, the 700th for longer; and half of it
	 * beside it.
	 */
	for (uint64_t i = 0; i < 1000; i++)
		put(map, 7, TTMON_MT_MEM_DEVICE, 0x1000, i % 2 ? 0x800 : 0x1000, 100 + 10 * i,
		    i == 700 ? 7110 : 109 + 10 * i);
	assert_int_equal(ttmon_mt_map_done(map), 0);
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t t = 100 + 10 * i;

		assert_int_equal(find(map, 0x1010, t, 7), i);
		assert_int_equal(find(map, 0x1900, t + 8, 7), i % 2 ? NONE : i);
		assert_int_equal(find(map, 0x1010, t + 9, 7), i == 700 ? 700 : NONE);
	}
	/* Without a time: the one that lived longest, with a doubt. */
	assert_int_equal(find_doubt(map, 0x1010, 0, 7), 700);
	assert_int_equal(find_doubt(map, 0x1900, 0, 0), 700);
}

static void overlaps(void **state)
{
	_cleanup_map_ struct ttmon_mt_map *map = new_map();

	(void)state;
	put(map, 7, TTMON_MT_MEM_MAPPED, 0x10000, 0x10000, 5, LIVE);   /* 0: heap */
	put(map, 7, TTMON_MT_MEM_REGISTERED, 0x12000, 0x1000, 10, 20); /* 1: a part of it, registered */
	put(map, 7, TTMON_MT_MEM_PINNED, 0x40000, 0x10000, 5, LIVE);   /* 2: a pool */
	put(map, 7, TTMON_MT_MEM_PINNED, 0x41000, 0x1000, 30, 40);     /* 3: a piece of it */
	put(map, 7, TTMON_MT_MEM_MAPPED, 0x41000, 0x1000, 50, 60);     /* 4: younger, but a mapping */
	assert_int_equal(ttmon_mt_map_done(map), 0);
	assert_int_equal(find(map, 0x12000, 15, 7), 1);
	assert_int_equal(find(map, 0x11fff, 15, 7), 0);
	assert_int_equal(find(map, 0x13000, 15, 7), 0);
	assert_int_equal(find(map, 0x12800, 25, 7), 0);
	assert_int_equal(find(map, 0x12800, 0, 7), 1); /* what CUDA knows of comes first: no doubt */
	assert_int_equal(find(map, 0x41000, 35, 7), 3);
	assert_int_equal(find(map, 0x41000, 45, 7), 2);
	assert_int_equal(find(map, 0x41000, 55, 7), 2);
	assert_int_equal(find_doubt(map, 0x41000, 0, 7), 2);
}

static void processes(void **state)
{
	_cleanup_map_ struct ttmon_mt_map *map = new_map();

	(void)state;
	for (uint32_t pid = 1; pid <= 50; pid++)
		put(map, pid, TTMON_MT_MEM_DEVICE, 0x7f0000000000, 0x1000, pid, LIVE);
	put(map, 0, TTMON_MT_MEM_DEVICE, 0x5000, 0x1000, 1, LIVE); /* of a process that is not known */
	assert_int_equal(ttmon_mt_map_done(map), 0);
	for (uint32_t pid = 1; pid <= 50; pid++)
		assert_int_equal(find(map, 0x7f0000000010, 100, pid), pid - 1);
	assert_int_equal(find_doubt(map, 0x7f0000000010, 100, 0), 49);
	assert_int_equal(find_doubt(map, 0x7f0000000010, 0, 0), 0);
	assert_int_equal(find(map, 0x7f0000000010, 1, 0), 0);
	assert_int_equal(find(map, 0x5000, 5, 33), 50);
}

static void around(void **state)
{
	_cleanup_map_ struct ttmon_mt_map *map = new_map();
	const struct ttmon_mt_when when = { 5, TTMON_MT_NO_NTH, 7 };
	enum ttmon_mt_how how;
	uint64_t lo, hi;

	(void)state;
	put(map, 7, TTMON_MT_MEM_DEVICE, 0x1000, 0x1000, 1, LIVE);
	put(map, 7, TTMON_MT_MEM_DEVICE, 0x1800, 0x1000, 1, LIVE);
	assert_int_equal(ttmon_mt_map_done(map), 0);
	assert_int_equal(ttmon_mt_map_at(map, 0x1100, &when, &how, &lo, &hi), 0);
	assert_int_equal(lo, 0x1000);
	assert_int_equal(hi, 0x1800);
	assert_int_equal(ttmon_mt_map_at(map, 0x2100, &when, &how, &lo, &hi), 1);
	assert_int_equal(lo, 0x2000);
	assert_int_equal(hi, 0x2800);
	assert_int_equal(ttmon_mt_map_at(map, 0x2800, &when, &how, &lo, &hi), NONE);
	assert_int_equal(lo, 0x2800);
	assert_int_equal(hi, UINT64_MAX);
	assert_int_equal(ttmon_mt_map_at(map, 0x10, &when, &how, &lo, &hi), NONE);
	assert_int_equal(lo, 0);
	assert_int_equal(hi, 0x1000);
}

/* ---- by numbers of launches ---- */

static void put_nth(struct ttmon_mt_map *map, uint32_t pid, unsigned int mem, uint64_t ns, uint64_t made,
		    uint64_t freed)
{
	assert_int_equal(
		ttmon_mt_map_add(map, &(struct ttmon_mt_alloc){ .addr = 0x1000,
								.size = 0x1000,
								.alloc_ns = ns,
								.free_ns = freed == TTMON_MT_NO_NTH ? LIVE : ns + 5,
								.made_nth = made,
								.freed_nth = freed,
								.pid = pid,
								.mem = (uint8_t)mem }),
		0);
}

static uint32_t of_launch(const struct ttmon_mt_map *map, uint64_t ns, uint64_t n, uint32_t pid, enum ttmon_mt_how how)
{
	enum ttmon_mt_how is;
	uint64_t lo, hi;
	uint32_t i = ttmon_mt_map_at(map, 0x1800, &(struct ttmon_mt_when){ ns, n, pid }, &is, &lo, &hi);

	assert_int_equal(is, how);
	assert_int_equal(lo, 0x1000);
	assert_int_equal(hi, 0x2000);
	return i;
}

static void by_number_of_launch(void **state)
{
	_cleanup_map_ struct ttmon_mt_map *map = new_map();

	(void)state;
	put_nth(map, 7, TTMON_MT_MEM_DEVICE, 10, 0, 4);
	put_nth(map, 7, TTMON_MT_MEM_DEVICE, 20, 4, 4); /* no launch while it was there */
	put_nth(map, 7, TTMON_MT_MEM_MANAGED, 30, 6, 9);
	put_nth(map, 7, TTMON_MT_MEM_DEVICE, 40, 9, TTMON_MT_NO_NTH);
	assert_int_equal(ttmon_mt_map_done(map), 0);
	/* They are not known to be numbers of this process's launches. */
	assert_int_equal(of_launch(map, 0, 0, 7, TTMON_MT_AMBIGUOUS), 3);
	assert_int_equal(ttmon_mt_map_order(map, 7, 100), 0);
	assert_int_equal(ttmon_mt_map_done(map), 0);
	for (uint64_t n = 0; n < 4; n++)
		assert_int_equal(of_launch(map, 0, n, 7, TTMON_MT_BY_ORDER), 0);
	/* None was there: one of them all the same, with a doubt. */
	assert_int_equal(of_launch(map, 0, 4, 7, TTMON_MT_AMBIGUOUS), 3);
	assert_int_equal(of_launch(map, 0, 6, 7, TTMON_MT_BY_ORDER), 2);
	assert_int_equal(of_launch(map, 0, 8, 0, TTMON_MT_BY_ORDER), 2);
	assert_int_equal(of_launch(map, 0, 99, 7, TTMON_MT_BY_ORDER), 3);
	/* Behind the first graph launch. */
	assert_int_equal(of_launch(map, 0, 100, 7, TTMON_MT_AMBIGUOUS), 3);
	/* A time says more. */
	assert_int_equal(of_launch(map, 22, 0, 7, TTMON_MT_SURE), 1);
	/* Another process had it at that launch too. */
	put_nth(map, 8, TTMON_MT_MEM_DEVICE, 11, 0, TTMON_MT_NO_NTH);
	assert_int_equal(ttmon_mt_map_done(map), 0);
	assert_int_equal(of_launch(map, 0, 1, 7, TTMON_MT_BY_ORDER), 0);
	assert_int_equal(of_launch(map, 0, 1, 0, TTMON_MT_AMBIGUOUS), 4);
	/* One of them has no number, or the pid was used twice: then none has. */
	put_nth(map, 7, TTMON_MT_MEM_MAPPED, 1, TTMON_MT_NO_NTH, TTMON_MT_NO_NTH);
	assert_int_equal(ttmon_mt_map_done(map), 0);
	assert_int_equal(of_launch(map, 0, 1, 7, TTMON_MT_AMBIGUOUS), 3);
}

static void one_pid_twice(void **state)
{
	_cleanup_map_ struct ttmon_mt_map *map = new_map();

	(void)state;
	put_nth(map, 7, TTMON_MT_MEM_DEVICE, 10, 0, 4);
	put_nth(map, 7, TTMON_MT_MEM_DEVICE, 20, 4, TTMON_MT_NO_NTH);
	assert_int_equal(ttmon_mt_map_order(map, 7, 100), 0);
	assert_int_equal(ttmon_mt_map_done(map), 0);
	assert_int_equal(of_launch(map, 0, 1, 7, TTMON_MT_BY_ORDER), 0);
	assert_int_equal(ttmon_mt_map_order(map, 7, 5), 0);
	assert_int_equal(ttmon_mt_map_done(map), 0);
	assert_int_equal(of_launch(map, 0, 1, 7, TTMON_MT_AMBIGUOUS), 1);
}

/* ---- against a model ---- */

static uint64_t rng = 88172645463325252;

static uint64_t below(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

static bool is_mapping(const struct ttmon_mt_alloc *a)
{
	return a->mem == TTMON_MT_MEM_MAPPED;
}

static uint32_t model(const struct ttmon_mt_alloc *list, size_t n, uint64_t addr, uint64_t ns, uint32_t pid,
		      bool *ambiguous)
{
	uint32_t best = NONE;
	unsigned int same = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct ttmon_mt_alloc *a = &list[i], *b = &list[best == NONE ? 0 : best];

		if (addr < a->addr || addr - a->addr >= a->size || (pid && a->pid != pid) ||
		    (ns && (ns < a->alloc_ns || ns >= a->free_ns)))
			continue;
		if (best != NONE && is_mapping(a) && !is_mapping(b))
			continue;
		if (best == NONE || (is_mapping(b) && !is_mapping(a))) {
			best = i;
			same = 1;
			continue;
		}
		same += !ns || a->pid != b->pid;
		if (ns ? a->alloc_ns >= b->alloc_ns : a->free_ns - a->alloc_ns > b->free_ns - b->alloc_ns)
			best = i;
	}
	*ambiguous = same > 1;
	return best;
}

static void random_maps(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 60; round++) {
		_cleanup_map_ struct ttmon_mt_map *map = new_map();
		unsigned int n = 1 + (unsigned int)below(200), pids = 1 + (unsigned int)below(2);
		uint64_t space = 20 + below(500), time = 20 + below(400);
		const struct ttmon_mt_alloc *list;
		size_t nr;

		for (unsigned int i = 0; i < n; i++) {
			uint64_t from = 1 + below(time);

			put(map, 1 + (uint32_t)below(pids), below(4) ? TTMON_MT_MEM_DEVICE : TTMON_MT_MEM_MAPPED,
			    below(space), 1 + below(below(3) ? 20 : space), from, below(5) ? from + below(30) : LIVE);
		}
		assert_int_equal(ttmon_mt_map_done(map), 0);
		list = ttmon_mt_map_get(map, &nr);
		assert_int_equal(nr, n);
		for (unsigned int k = 0; k < 500; k++) {
			uint64_t addr = below(2 * space), ns = below(4) ? 1 + below(time + 40) : 0, lo, hi;
			uint32_t pid = (uint32_t)below(pids + 1), is, want;
			struct ttmon_mt_when when = { ns, TTMON_MT_NO_NTH, pid };
			bool doubt, want_doubt = false;
			enum ttmon_mt_how how;

			is = ttmon_mt_map_at(map, addr, &when, &how, &lo, &hi);
			doubt = how == TTMON_MT_AMBIGUOUS;
			want = model(list, nr, addr, ns, pid, &want_doubt);
			assert_true(lo <= addr && addr < hi);
			assert_int_equal(is == NONE, want == NONE);
			if (want == NONE)
				continue;
			if (ns && !want_doubt)
				assert_int_equal(is, want);
			else if (ns)
				assert_int_equal(list[is].alloc_ns, list[want].alloc_ns);
			else
				assert_int_equal(list[is].free_ns - list[is].alloc_ns,
						 list[want].free_ns - list[want].alloc_ns);
			if (!ns || !pid)
				assert_int_equal(doubt || (ns && pids == 2), want_doubt || (ns && pids == 2));
			want = model(list, nr, hi - 1, ns, pid, &want_doubt);
			if (ns && !want_doubt && !doubt)
				assert_int_equal(is, want);
		}
	}
}

/*
 * A hundred thousand generations at one address, and as many neighbours: found in no time, or this
 * test does not end.
 */
static void many(void **state)
{
	_cleanup_map_ struct ttmon_mt_map *map = new_map();
	const uint64_t n = 50000;

	(void)state;
	for (uint64_t i = 0; i < n; i++) {
		put(map, 7, TTMON_MT_MEM_DEVICE, 0x1000, 0x1000, 10 + 10 * i, 15 + 10 * i);
		put(map, 7, TTMON_MT_MEM_DEVICE, 0x10000 + 0x1000 * i, 0x1000, 1, LIVE);
	}
	put(map, 7, TTMON_MT_MEM_MAPPED, 0, UINT64_MAX, 1, LIVE); /* beneath all of them */
	assert_int_equal(ttmon_mt_map_done(map), 0);
	for (uint64_t i = 0; i < n; i++) {
		assert_int_equal(find(map, 0x1000, 12 + 10 * i, 7), 2 * i);
		assert_int_equal(find(map, 0x1000, 17 + 10 * i, 7), 2 * n);
		assert_int_equal(find(map, 0x10fff + 0x1000 * i, 12, 7), 2 * i + 1);
	}
}

/* ---- out of a run ---- */

static void of_a_run(void **state)
{
	static const uint8_t methods[] = { TTMON_METHOD_DEVICE,	    TTMON_METHOD_MANAGED, TTMON_METHOD_HOST_ALLOC,
					   TTMON_METHOD_REGISTERED, TTMON_METHOD_POOL,	  TTMON_METHOD_MMAP,
					   TTMON_METHOD_CUSTOM,	    TTMON_METHOD_TT_DRAM, TTMON_METHOD_TT_DMA,
					   TTMON_METHOD_NONE };
	static const uint8_t mems[] = { TTMON_MT_MEM_DEVICE,	 TTMON_MT_MEM_MANAGED, TTMON_MT_MEM_PINNED,
					TTMON_MT_MEM_REGISTERED, TTMON_MT_MEM_PINNED,  TTMON_MT_MEM_MAPPED,
					TTMON_MT_MEM_MAPPED };
	struct ttmon_run_alloc allocs[ARRAY_SIZE(methods) + 2];
	struct ttmon_run_proc procs[] = { { .pid = 100 }, { .pid = 200 } };
	struct ttmon_run_frame frame = { .object = TTMON_RUN_NONE, .fn = "load_batch", .delta = 0x41 };
	struct ttmon_run_site sites[] = { { 0 }, { .frame = 0, .nframes = 1 } };
	struct ttmon_run run = { .allocs = allocs,
				 .nr_allocs = ARRAY_SIZE(allocs),
				 .procs = procs,
				 .nr_procs = 2,
				 .frames = &frame,
				 .nr_frames = 1,
				 .sites = sites,
				 .nr_sites = 2 };
	_cleanup_map_ struct ttmon_mt_map *map = new_map(), *of_one = new_map();
	const struct ttmon_mt_alloc *list;
	size_t n;

	(void)state;
	for (uint32_t i = 0; i < ARRAY_SIZE(allocs); i++)
		allocs[i] = (struct ttmon_run_alloc){
			.id = "id",
			.addr = 0x1000 * (i + 1),
			.size = 0x800,
			.alloc_ns = 10,
			.free_ns = 20,
			.site = 1,
			.method = i < ARRAY_SIZE(methods) ? methods[i] : TTMON_METHOD_DEVICE,
		};
	allocs[0].name = "weights";
	allocs[0].flags = TTMON_RUN_LIVE;
	allocs[0].h2d_bytes = 100;
	allocs[0].d2h_bytes = 20;
	allocs[0].h2d_copies = 3;
	allocs[0].d2h_copies = 2;
	allocs[0].other_copies = 4;
	allocs[1].proc = 1;
	allocs[2].flags = TTMON_RUN_IN_PLACE;
	procs[0].numbered = 10;
	allocs[2].freed_nth = 4;
	allocs[3].freed_nth = TTMON_RUN_NONE;
	allocs[4].made_nth = TTMON_RUN_NONE;
	allocs[ARRAY_SIZE(methods)].size = 0;
	allocs[ARRAY_SIZE(methods) + 1].addr = 0;
	assert_int_equal(ttmon_mt_map_run(map, &run, 0), 0);
	assert_int_equal(ttmon_mt_map_done(map), 0);
	list = ttmon_mt_map_get(map, &n);
	assert_int_equal(n, ARRAY_SIZE(mems));
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(list[i].mem, mems[i]);
		assert_int_equal(list[i].user, i);
		assert_int_equal(list[i].in_place, i == 2);
		assert_int_equal(list[i].free_ns, i ? 20 : UINT64_MAX);
		assert_int_equal(list[i].pid, i == 1 ? 200 : 100);
		assert_string_equal(list[i].id, "id");
		assert_string_equal(list[i].name, i ? "" : "weights");
		assert_string_equal(list[i].site, "load_batch+0x41");
	}
	assert_int_equal(list[2].made_nth, 0);
	assert_int_equal(list[2].freed_nth, 4);
	assert_int_equal(list[3].freed_nth, TTMON_MT_NO_NTH);
	assert_int_equal(list[4].made_nth, TTMON_MT_NO_NTH);
	assert_int_equal(list[0].copies, 9);
	assert_int_equal(list[0].others, 4);
	assert_int_equal(list[0].bytes, 120);
	assert_int_equal(list[0].d2h_bytes, 20);
	assert_int_equal(find(map, 0x1100, 1000, 100), 0);
	assert_int_equal(find(map, 0x3100, 1000, 100), NONE);
	assert_int_equal(find(map, 0x3100, 15, 100), 2);
	assert_int_equal(ttmon_mt_map_run(of_one, &run, 200), 0);
	list = ttmon_mt_map_get(of_one, &n);
	assert_int_equal(n, 1);
	assert_int_equal(list[0].user, 1);
}

/* ---- memory is short ---- */

static int build(struct ttmon_mt_map **ret)
{
	struct ttmon_mt_map *map = NULL;
	int err = ttmon_mt_map_new(&map);

	for (uint32_t i = 0; i < 300 && !err; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%u", i);
		err = ttmon_mt_map_add(map, &(struct ttmon_mt_alloc){ .addr = 0x1000 * i + 0x1000,
								      .size = 0x1000,
								      .free_ns = LIVE,
								      .pid = 1 + i % 2,
								      .name = name });
	}
	err = err ?: ttmon_mt_map_done(map);
	*ret = map;
	return err;
}

static void short_of_memory(void **state)
{
	int err = -ENOMEM;
	long at;

	(void)state;
	for (at = 0; err == -ENOMEM; at++) {
		_cleanup_map_ struct ttmon_mt_map *map = NULL;

		fail_at = at;
		asked = 0;
		err = build(&map);
		fail_at = -1;
		if (err && map)
			assert_int_equal(find(map, 0x1000, 1, 0), NONE);
		if (!err)
			assert_int_equal(find(map, 0x1000, 1, 0), 0);
	}
	assert_int_equal(err, 0);
	assert_true(at > 10);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(ttmon_mt_mem_name(TTMON_MT_MEM_UNKNOWN), "unknown");
	assert_string_equal(ttmon_mt_mem_name(TTMON_MT_MEM_MAPPED), "mapped");
	assert_string_equal(ttmon_mt_mem_name(1000), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_are_sharp),
		cmocka_unit_test(generations),
		cmocka_unit_test(overlaps),
		cmocka_unit_test(processes),
		cmocka_unit_test(around),
		cmocka_unit_test(random_maps),
		cmocka_unit_test(many),
		cmocka_unit_test(of_a_run),
		cmocka_unit_test(short_of_memory),
		cmocka_unit_test(names),
		cmocka_unit_test(by_number_of_launch),
		cmocka_unit_test(one_pid_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
