// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_find.c: findings: each kind where it is to be, with its figures, and not where it is not;
 * what is not claimed of a trace with gaps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memtrace/analyse/an_int.h"

#include "tests/unit/feed/torture.h"

#include "memtrace/analyse/group.c"
#include "memtrace/analyse/rows.c"
#include "memtrace/analyse/find.c"
#include "memtrace/analyse/find_buf.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

#include "tests/unit/feed/mt_an_feed.h"

#define BASE 0x7e0000000000ull

static const struct ttmon_mt_finding *found;
static size_t nr_found;

/*
 * The findings of that kind; the last of them in ret. Also: the worst is first, weights are shares,
 * texts are sentences that are not cut.
 */
static unsigned int findings(struct feed *f, unsigned int what, const struct ttmon_mt_finding **ret)
{
	/* Whose weight is a count of sectors or wavefronts; the others' only sorts. */
	const unsigned int counted = 1u << TTMON_MT_FIND_UNCOALESCED | 1u << TTMON_MT_FIND_MISALIGNED |
				     1u << TTMON_MT_FIND_AOS | 1u << TTMON_MT_FIND_GATHER | 1u << TTMON_MT_FIND_BANKS |
				     1u << TTMON_MT_FIND_LOCAL;
	unsigned int n = 0;

	*ret = NULL;
	assert_int_equal(ttmon_mt_an_findings(f->an, &f->d.dict, &found, &nr_found), 0);
	for (size_t i = 0; i < nr_found; i++) {
		assert_true(found[i].weight >= 0 && found[i].weight <= 1);
		assert_true(!i || found[i].weight <= found[i - 1].weight);
		assert_int_equal(found[i].estimated, !(counted >> found[i].what & 1));
		assert_true(strlen(found[i].text) < sizeof(found[i].text) - 1);
		if (found[i].what == what) {
			*ret = &found[i];
			n++;
		}
	}
	return n;
}

static void says(const struct ttmon_mt_finding *f, const char *text)
{
	if (!strstr(f->text, text))
		print_error("%s\n\tdoes not say: %s\n", f->text, text);
	assert_non_null(strstr(f->text, text));
}

static void none_but(const struct feed *f, unsigned int what, uint32_t s)
{
	for (size_t i = 0; i < nr_found; i++) {
		if (found[i].what >= TTMON_MT_FIND_ZERO_COPY)
			continue;
		if (f->an->sites[found[i].row].site == s && found[i].what != what)
			print_error("also: %s\n", found[i].text);
		assert_true(f->an->sites[found[i].row].site != s || found[i].what == what);
	}
}

/* ---- instructions ---- */

static void uncoalesced(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_finding *x;
	uint32_t bad, good, st, l;

	(void)state;
	bad = site(&f, "saxpy", "ld.global.f32", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	good = site(&f, "saxpy", "ld.global.f32", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	st = site(&f, "saxpy", "st.global.f32", TTMON_MT_GLOBAL, TTMON_MT_STORE, 4);
	l = launch(&f, "saxpy");
	begin(&f, NULL);
	for (unsigned int i = 0; i < 100; i++) {
		put(&f, bad, l, ALL, BASE + i * 4, 128);
		put(&f, good, l, ALL, BASE + MIB + i * 128, 4);
		put(&f, st, l, ALL, BASE + 2 * MIB + i * 4, 4096);
	}
	assert_int_equal(findings(&f, TTMON_MT_FIND_UNCOALESCED, &x), 2);
	/* 28 of 32 sectors of each could be saved, of 32 + 4 + 32. */
	assert_true(x->weight > 28.0 / 68 - 1e-9 && x->weight < 28.0 / 68 + 1e-9);
	assert_int_equal(found[0].row, 0);
	says(&found[0],
	     "ld.global.f32 at saxpy.cu:14 in saxpy: 32.0 sectors a request where 4.0 would do (stride 128 bytes): "
	     "87.5 % of what it moves is not used; let "
	     "neighbouring threads read neighbouring elements");
	says(&found[1], "(stride 4096 bytes)");
	says(&found[1], "threads write neighbouring");
	none_but(&f, TTMON_MT_FIND_UNCOALESCED, bad);
	none_but(&f, TTMON_MT_FIND_MAX, good);
	assert_string_equal(ttmon_mt_find_name(TTMON_MT_FIND_UNCOALESCED), "uncoalesced");
	assert_string_equal(ttmon_mt_find_name(TTMON_MT_FIND_SPARSE), "sparse");
	assert_string_equal(ttmon_mt_find_name(1000), "");
}

static void copies(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_site_group *groups, *four = NULL;
	const struct ttmon_mt_finding *x;
	uint32_t bad, well, other, apart, l;
	size_t n, alone = 0;

	(void)state;
	bad = site(&f, "unrolled", "ld.global.f32", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	for (unsigned int i = 1; i < 4; i++)
		site(&f, "unrolled", "ld.global.f32", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	well = site(&f, "unrolled", "ld.global.f32", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	other = site(&f, "twin", "ld.global.f32", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	apart = site(&f, "unrolled", "ld.global.f32", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	site(&f, "unrolled", "ld.global.f32", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	for (uint32_t i = 0; i < f.d.dict.nr_sites; i++)
		f.d.dict.sites[i].line = 77;
	f.d.dict.sites[apart].file = f.d.dict.sites[apart + 1].file =
		""; /* the line is of no file: not known to be one */
	l = launch(&f, "unrolled");
	begin(&f, NULL);
	for (unsigned int i = 0; i < 60; i++) {
		for (unsigned int k = 0; k < 4; k++)
			if (k == 2 || i < 40) /* the third has more to save */
				put(&f, bad + k, l, ALL, BASE + k * MIB + i * 4, 128);
		put(&f, well, l, ALL, BASE + 8 * MIB + i * 128, 4); /* of the same name at the same place, but well */
		put(&f, other, l, ALL, BASE + 9 * MIB + i * 4, 128);
		put(&f, apart, l, ALL, BASE + 10 * MIB + i * 4, 128);
		put(&f, apart + 1, l, ALL, BASE + 11 * MIB + i * 4, 128);
	}
	assert_int_equal(findings(&f, TTMON_MT_FIND_UNCOALESCED, &x), 4);
	assert_int_equal(f.an->sites[found[0].row].site, bad + 2);
	says(&found[0],
	     "ld.global.f32 at saxpy.cu:77 in unrolled (4 instructions): 32.0 sectors a request where 4.0 would do "
	     "(stride 128 bytes): 87.5 %");
	assert_true(found[0].weight > 180 * 28.0 / (360 * 32 + 60 * 4) - 1e-9 &&
		    found[0].weight < 180 * 28.0 / (360 * 32 + 60 * 4) + 1e-9);
	says(x, " in ");
	for (size_t i = 1; i < nr_found; i++)
		assert_null(strstr(found[i].text, "instructions)"));
	none_but(&f, TTMON_MT_FIND_MAX, well);

	assert_int_equal(ttmon_mt_an_groups(f.an, &f.d.dict, &groups, &n), 0);
	assert_int_equal(n, 5);
	for (size_t i = 0; i < n; i++) {
		if (groups[i].nr == 4)
			four = &groups[i];
		alone += groups[i].nr == 1 && groups[i].all == &f.an->sites[groups[i].row];
	}
	assert_int_equal(alone, 4);
	assert_non_null(four);
	assert_int_equal(four->all->sums.requests, 180);
	assert_int_equal(four->all->sums.sectors, 180 * 32);
	assert_int_equal(ttmon_mt_waste(four->all), 180 * 28);
	assert_int_equal(f.an->sites[four->row].sums.requests, 60);
}

static void nothing_to_say(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_finding *x;
	uint32_t ld, wide, bc, red, second, l;

	(void)state;
	ld = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	wide = site(&f, "k", "ld.v4", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 16);
	bc = site(&f, "k", "ld.bc", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	red = site(&f, "k", "red", TTMON_MT_GLOBAL, TTMON_MT_RED, 4);
	second = site(&f, "k", "ld.2", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	l = launch(&f, "k");
	begin(&f, NULL);
	assert_int_equal(findings(&f, TTMON_MT_FIND_MAX, &x), 0); /* of nothing */
	assert_int_equal(nr_found, 0);
	for (unsigned int i = 0; i < 100; i++) {
		put(&f, ld, l, ALL, BASE + i * 128, i % 10 ? 4 : 8); /* one in ten is not so good: 50 % */
		put(&f, wide, l, ALL, BASE + MIB + i * 512, 16);
		put(&f, second, l, ALL, BASE + 4 * MIB + i * 256, 8); /* half is used: not under 50 % */
		put(&f, bc, l, ALL, BASE + 2 * MIB + i * 4, 0);	      /* 4 bytes of a sector, but no better way */
		put(&f, red, l, 1, BASE + 3 * MIB, 0);		      /* one atomic a warp */
	}
	findings(&f, TTMON_MT_FIND_MAX, &x);
	for (size_t i = 0; i < nr_found; i++)
		print_error("%s\n", found[i].text);
	assert_int_equal(nr_found, 0);
}

static void structures(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_finding *x;
	uint32_t x12, x16, y16, alone, l;

	(void)state;
	x12 = site(&f, "k", "ld.x12", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	x16 = site(&f, "k", "ld.x16", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	y16 = site(&f, "k", "ld.y16", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	alone = site(&f, "other", "ld.16", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	l = launch(&f, "k");
	begin(&f, NULL);
	for (unsigned int i = 0; i < 50; i++) {
		put(&f, x12, l, ALL, BASE + i * 384, 12);
		put(&f, x16, l, ALL, BASE + MIB + i * 512, 16);
		put(&f, y16, l, ALL, BASE + MIB + 4 + i * 512, 16);
		put(&f, alone, l, ALL, BASE + 2 * MIB + i * 512, 16);
	}
	assert_int_equal(findings(&f, TTMON_MT_FIND_AOS, &x), 3);
	says(x, "it takes 4 bytes of every 12,");
	assert_int_equal(findings(&f, TTMON_MT_FIND_UNCOALESCED, &x), 1);
	assert_int_equal(x->row, 3);
	none_but(&f, TTMON_MT_FIND_AOS, x12);
	none_but(&f, TTMON_MT_FIND_AOS, x16);
}

static void other_sites(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_finding *x;
	uint32_t mis, byte, half, local_ld, few, pages_ld, atom, gather, l;

	(void)state;
	mis = site(&f, "k", "ld.mis", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	byte = site(&f, "k", "ld.u8", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 1);
	half = site(&f, "k", "ld.b16", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 2);
	local_ld = site(&f, "k", "ld.local", TTMON_MT_LOCAL, TTMON_MT_LOAD, 4);
	few = site(&f, "k", "ld.few", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	pages_ld = site(&f, "k", "ld.pages", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 16);
	atom = site(&f, "k", "atom.add", TTMON_MT_GLOBAL, TTMON_MT_ATOM, 4);
	gather = site(&f, "k", "ld.gather", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	l = launch(&f, "k");
	begin(&f, NULL);
	for (unsigned int i = 0; i < 100; i++) {
		uint64_t addr[TTMON_MT_LANES];
		struct ttmon_mt_rec rec;

		put(&f, mis, l, ALL, BASE + i * 128 + (i % 4 ? 16 : 0), 4);
		put(&f, byte, l, ALL, BASE + MIB + i * 32, 1);
		put(&f, half, l, ALL, BASE + 2 * MIB + i * 64, 2);
		put(&f, local_ld, l, ALL, i * 4, 0);
		put(&f, few, l, 0x0f0f0f0f >> (i % 2 * 16), BASE + 3 * MIB + i * 128, 4); /* 16 and 8 lanes */
		put(&f, pages_ld, l, ALL, BASE + 4096 * MIB + i * 16, 2 * MIB);
		put(&f, atom, l, ALL, BASE + 4 * MIB, 0);
		for (unsigned int k = 0; k < TTMON_MT_LANES; k++)
			addr[k] = BASE + 5 * MIB + (k * k * 37 + i * 1009) % 4099 * 64;
		rec = affine(&f, gather, l, ALL, addr[0], 0);
		rec.addr = addr;
		assert_int_equal(ttmon_mt_an_feed(f.an, &f.d.dict, &rec, 1), 0);
	}
	assert_int_equal(findings(&f, TTMON_MT_FIND_MISALIGNED, &x), 1);
	assert_int_equal(f.an->sites[x->row].site, mis);
	says(x, "4.8 sectors a request where 4.0 would do: 75 % of its rows");
	none_but(&f, TTMON_MT_FIND_MISALIGNED, mis);
	assert_int_equal(findings(&f, TTMON_MT_FIND_NARROW, &x), 2);
	none_but(&f, TTMON_MT_FIND_NARROW, byte);
	none_but(&f, TTMON_MT_FIND_NARROW, half);
	assert_int_equal(findings(&f, TTMON_MT_FIND_LOCAL, &x), 1);
	assert_int_equal(f.an->sites[x->row].site, local_ld);
	says(x, "100 requests of local memory");
	assert_int_equal(findings(&f, TTMON_MT_FIND_DIVERGED, &x), 1);
	assert_int_equal(f.an->sites[x->row].site, few);
	says(x, "12.0 of 32 lanes");
	assert_int_equal(findings(&f, TTMON_MT_FIND_PAGES, &x), 1);
	assert_int_equal(f.an->sites[x->row].site, pages_ld);
	says(x, "32.0 pages of 2 MiB a request");
	assert_int_equal(findings(&f, TTMON_MT_FIND_CONTENTION, &x), 1);
	assert_int_equal(f.an->sites[x->row].site, atom);
	says(x, "32.0 of 32.0 lanes meet on one word");
	assert_int_equal(findings(&f, TTMON_MT_FIND_GATHER, &x), 1);
	assert_int_equal(f.an->sites[x->row].site, gather);
	says(x, "32.0 sectors a request where 4.0 would do, at addresses without order: 87.5 %");
	none_but(&f, TTMON_MT_FIND_GATHER, gather);
}

static void bank_conflicts(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_finding *x;
	uint32_t column, good, pair, l;

	(void)state;
	column = site(&f, "k", "ld.shared.f32", TTMON_MT_SHARED, TTMON_MT_LOAD, 4);
	good = site(&f, "k", "st.shared.f32", TTMON_MT_SHARED, TTMON_MT_STORE, 4);
	pair = site(&f, "k", "ld.shared.f64", TTMON_MT_SHARED, TTMON_MT_LOAD, 8);
	l = launch(&f, "k");
	begin(&f, NULL);
	for (unsigned int i = 0; i < 10; i++) {
		put(&f, column, l, ALL, i * 4, 128);
		put(&f, good, l, ALL, i * 132, 4);
		put(&f, pair, l, ALL, i * 8, 0); /* two phases of one word each: no conflict */
	}
	assert_int_equal(findings(&f, TTMON_MT_FIND_BANKS, &x), 1);
	assert_int_equal(f.an->sites[x->row].site, column);
	says(x, "32.0 wavefronts a request where 1.0 would do (at worst 32, stride 128 bytes)");
	assert_int_equal(nr_found, 1);
	none_but(&f, TTMON_MT_FIND_MAX, good);
}

/* ---- buffers ---- */

/* Complete: each kernel is recorded, nothing is lost. */
static void covered(struct feed *f)
{
	struct ttmon_mt_stats stats = { .records = 1 };

	assert_true(ttmon_mt_dict_kernel(
			    &f->d, &(struct ttmon_mt_kernel){
					   .name = "k", .why = "", .launches = 1, .recorded = 1, .sites = 1 }) >= 0);
	ttmon_mt_an_stats(f->an, &stats);
}

static void buffers(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_finding *x;
	uint32_t ld, st, l[2];

	(void)state;
	/*
	 * 0: read three times over; 1: written, never copied; 2: untouched; 3: gone before; 4: written; 5:
	 * written and copied back; 6: sparse; 7: pinned and copied
	 */
	alloc(&f, TTMON_MT_MEM_PINNED, BASE, 64 * KIB,
	      &(struct ttmon_mt_alloc){ .name = "batch", .site = "load_batch+0x41", .copies = 1, .pid = 7 });
	alloc(&f, TTMON_MT_MEM_REGISTERED, BASE + MIB, 64 * KIB, &(struct ttmon_mt_alloc){ .id = "r1", .pid = 7 });
	alloc(&f, TTMON_MT_MEM_DEVICE, BASE + 2 * MIB, MIB, &(struct ttmon_mt_alloc){ .name = "spare", .pid = 7 });
	alloc(&f, TTMON_MT_MEM_DEVICE, BASE + 3 * MIB, MIB,
	      &(struct ttmon_mt_alloc){ .name = "gone", .alloc_ns = 10, .free_ns = 90, .pid = 7 });
	alloc(&f, TTMON_MT_MEM_DEVICE, BASE + 4 * MIB, 64 * KIB, &(struct ttmon_mt_alloc){ .name = "sink", .pid = 7 });
	alloc(&f, TTMON_MT_MEM_DEVICE, BASE + 5 * MIB, 64 * KIB,
	      &(struct ttmon_mt_alloc){ .name = "out", .copies = 1, .d2h_bytes = 5, .pid = 7 });
	alloc(&f, TTMON_MT_MEM_MANAGED, BASE + 6 * MIB, MIB, &(struct ttmon_mt_alloc){ .name = "table", .pid = 7 });
	alloc(&f, TTMON_MT_MEM_PINNED, BASE + 7 * MIB, MIB, &(struct ttmon_mt_alloc){ .name = "idle", .pid = 7 });
	ld = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 16);
	st = site(&f, "k", "st", TTMON_MT_GLOBAL, TTMON_MT_STORE, 16);
	l[0] = launch_at(&f, "k", 100, 7);
	l[1] = launch_at(&f, "k", 200, 7);
	begin(&f, NULL);
	for (unsigned int i = 0; i < 3; i++)
		walk_over(&f, ld, l[i % 2], BASE, 128);
	walk_over(&f, st, l[0], BASE + MIB, 2);
	walk_over(&f, st, l[1], BASE + 4 * MIB, 128);
	walk_over(&f, st, l[1], BASE + 5 * MIB, 128);
	walk_over(&f, ld, l[1], BASE + 6 * MIB + 32 * KIB, 16);
	/* The trace is not known to be complete. */
	assert_int_equal(findings(&f, TTMON_MT_FIND_UNTOUCHED, &x), 1);
	assert_int_equal(x->row, 2);
	says(x,
	     "buffer spare (device, 1.0 MiB): no recorded access, while 2 launches ran in this trace (the trace does "
	     "not say which kernels are not in it)");
	assert_int_equal(findings(&f, TTMON_MT_FIND_SPARSE, &x), 0);
	assert_int_equal(findings(&f, TTMON_MT_FIND_WRITE_ONLY, &x), 1);
	says(x, "no kernel reads it in this trace (");
	/* Now it is. */
	covered(&f);
	assert_int_equal(findings(&f, TTMON_MT_FIND_UNTOUCHED, &x), 1);
	says(x, "buffer spare (device, 1.0 MiB): no kernel touched it, while 2 launches ran;");
	assert_int_equal(findings(&f, TTMON_MT_FIND_ZERO_COPY, &x), 1);
	assert_int_equal(f.an->buffers[x->row].alloc, 0);
	says(x,
	     "buffer batch (pinned, 64.0 KiB, made at load_batch+0x41): the GPU reads it in place, 192.0 KiB over the "
	     "bus for 64.0 KiB that differ (3.0 times over)");
	assert_true(x == &found[0]);
	assert_int_equal(findings(&f, TTMON_MT_FIND_IN_PLACE, &x), 1);
	assert_int_equal(f.an->buffers[x->row].alloc, 1);
	says(x, "buffer r1 (registered, 64.0 KiB): never copied, but the GPU writes it in place (2 requests)");
	assert_int_equal(findings(&f, TTMON_MT_FIND_WRITE_ONLY, &x), 1);
	assert_int_equal(f.an->buffers[x->row].alloc, 4);
	says(x, "buffer sink (device, 64.0 KiB): kernels write it (128 requests), no kernel reads it, and");
	assert_int_equal(findings(&f, TTMON_MT_FIND_SPARSE, &x), 1);
	assert_int_equal(f.an->buffers[x->row].alloc, 6);
	says(x, "buffer table (managed, 1.0 MiB): kernels touch 8.0 KiB of it (0.8 %), from 32.0 KiB to 40.0 KiB");
	assert_int_equal(nr_found, 5);
}

/* Each reason why not all may be there. */
static void gaps(void **state)
{
	static const char *const say[] = {
		"one block in 64 was recorded", "of 1 launches only some blocks",
		"1,234 records were dropped",	"ends in the middle",
		"3 records could not be read",	"of 1 kernels not all",
		"of 1 kernels not all",		"sums, not addresses",
		"which kernels are not in it",
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(say); i++) {
		_cleanup_feed_ struct feed f = { 0 };
		struct ttmon_mt_stats stats = { .sample = i == 0 ? 64 : 0,
						.dropped = i == 2 ? 1234 : 0,
						.cut = i == 3,
						.malformed = i == 4 ? 3 : 0 };
		const struct ttmon_mt_finding *x;
		uint32_t s, l;

		alloc(&f, TTMON_MT_MEM_DEVICE, BASE, MIB, &(struct ttmon_mt_alloc){ .name = "spare", .alloc_ns = 1 });
		s = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
		l = launch(&f, "k");
		begin(&f, NULL);
		covered(&f);
		assert_int_equal(findings(&f, TTMON_MT_FIND_UNTOUCHED, &x), 1);
		says(x, "no kernel touched it;");
		if (i == 1)
			f.d.dict.launches[l].flags = TTMON_MT_LAUNCH_SAMPLED;
		if (i == 5)
			assert_true(ttmon_mt_dict_kernel(&f.d, &(struct ttmon_mt_kernel){ .name = "j",
											  .module = "",
											  .why = "no PTX" }) >= 0);
		if (i == 6)
			f.d.dict.kernels[0].left_out = 2;
		if (i == 7)
			assert_true(ttmon_mt_dict_agg(
					    &f.d, &(struct ttmon_mt_agg){
							  .site = s, .launch = l, .requests = 1, .min_addr = 1 }) >= 0);
		if (i == 8)
			f.d.dict.nr_kernels = 0;
		ttmon_mt_an_stats(f.an, &stats);
		assert_int_equal(findings(&f, TTMON_MT_FIND_UNTOUCHED, &x), 1);
		says(x, "no recorded access");
		says(x, say[i]);
	}
}

static void many_untouched(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_finding *x;

	(void)state;
	for (unsigned int i = 0; i < 150; i++)
		alloc(&f, TTMON_MT_MEM_DEVICE, BASE + i * MIB, KIB * (i + 1), NULL);
	begin(&f, NULL);
	assert_int_equal(findings(&f, TTMON_MT_FIND_UNTOUCHED, &x), 0); /* no kernel ran */
	launch(&f, "k");
	covered(&f);
	assert_int_equal(findings(&f, TTMON_MT_FIND_UNTOUCHED, &x), 101);
	assert_int_equal(found[0].row, 149);
	says(x, "50 smaller buffers of 1.2 MiB together");
	/* By what a producer kept of it: then only that one is not untouched. */
	assert_true(ttmon_mt_dict_touch(&f.d, &(struct ttmon_mt_touch){ BASE + 149 * MIB, 4096, 1, 0, 0, 0 }) >= 0);
	f.an->dirty = true;
	assert_int_equal(findings(&f, TTMON_MT_FIND_UNTOUCHED, &x), 101);
	assert_int_equal(found[0].row, 148);
}

/* The longest names there are make no sentence that is cut, and none that has control characters. */
static void long_names(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	static const unsigned int spaces[] = { TTMON_MT_GLOBAL, TTMON_MT_GLOBAL, TTMON_MT_SHARED, TTMON_MT_LOCAL };
	const struct ttmon_mt_finding *x;
	char name[3000];
	uint32_t s[4], l;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memcpy(name, "a\x1b[31m", 6);
	for (unsigned int i = 0; i < 4; i++) {
		s[i] = site(&f, name, name, spaces[i], i == 1 ? TTMON_MT_ATOM : TTMON_MT_LOAD, 4);
		f.d.dict.sites[s[i]].file = name;
		f.d.dict.sites[s[i]].line = UINT32_MAX;
	}
	alloc(&f, TTMON_MT_MEM_REGISTERED, BASE, MIB,
	      &(struct ttmon_mt_alloc){ .name = name, .site = name, .alloc_ns = 1 });
	alloc(&f, TTMON_MT_MEM_DEVICE, BASE + 8 * MIB, MIB,
	      &(struct ttmon_mt_alloc){ .name = name, .site = name, .alloc_ns = 1, .pid = 7 });
	alloc(&f, TTMON_MT_MEM_MANAGED, BASE + 16 * MIB, MIB,
	      &(struct ttmon_mt_alloc){ .name = name, .site = name, .alloc_ns = 1 });
	l = launch_at(&f, name, 100, 7);
	begin(&f, NULL);
	for (unsigned int i = 0; i < 40; i++) {
		put(&f, s[0], l, 0xff, BASE, 12);
		put(&f, s[1], l, ALL, BASE + 8 * MIB, 0);
		put(&f, s[2], l, ALL, 0, 128);
		put(&f, s[3], l, ALL, 0, 0);
	}
	assert_true(findings(&f, TTMON_MT_FIND_AOS, &x) == 1);
	assert_true(nr_found >= 7);
	for (size_t i = 0; i < nr_found; i++)
		for (const char *p = found[i].text; *p; p++)
			assert_true((unsigned char)*p >= ' ');
	says(x, "...");
}

static void short_of_memory(void **state)
{
	_cleanup_feed_ struct feed f = { 0 };
	const struct ttmon_mt_finding *x = NULL;
	size_t n = 77;
	uint32_t s, l;
	int err = -ENOMEM;
	long at;

	(void)state;
	alloc(&f, TTMON_MT_MEM_DEVICE, BASE + 8 * MIB, MIB, NULL);
	s = site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	site(&f, "k", "ld", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4);
	f.d.dict.sites[s + 1].line = f.d.dict.sites[s].line;
	l = launch(&f, "k");
	begin(&f, NULL);
	put(&f, s, l, ALL, BASE, 4096);
	put(&f, s + 1, l, ALL, BASE, 4096);
	settle(&f);
	for (at = 0; err == -ENOMEM; at++) {
		fail_at = at;
		asked = 0;
		err = ttmon_mt_an_findings(f.an, &f.d.dict, &x, &n);
		fail_at = -1;
		assert_true(!err || (!x && n == 77));
	}
	assert_int_equal(err, 0);
	assert_int_equal(n, 2);
	assert_true(at >= 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uncoalesced),	   cmocka_unit_test(copies),
		cmocka_unit_test(nothing_to_say),  cmocka_unit_test(structures),
		cmocka_unit_test(other_sites),	   cmocka_unit_test(bank_conflicts),
		cmocka_unit_test(buffers),	   cmocka_unit_test(gaps),
		cmocka_unit_test(many_untouched),  cmocka_unit_test(long_names),
		cmocka_unit_test(short_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
