// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_history_copies.c: transfers: direction, memory on the host side, shares of allocations that a
 * copy straddles, heat, kept events.
 */
#include "tests/unit/feed/history_feed.h"

#define T    10
#define PIN  0x10000000ULL /* 64 KiB host_alloc: seq 0 */
#define DEV  0x20000000ULL /* 64 KiB device: seq 1 */
#define MAN  0x30000000ULL /* 64 KiB managed: seq 2 */
#define MAP  0x40000000ULL /* 64 KiB ordinary mapping: seq 3 */
#define SIZE 65536ULL

static struct ttmon_history *h;

static int setup(void **state)
{
	(void)state;
	h = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	feed_proc(h, T, 1, 77, 1, TTMON_PROC_SEEN);
	feed_alloc(h, T, 10, TTMON_METHOD_HOST_ALLOC, PIN, SIZE);
	feed_alloc(h, T, 11, TTMON_METHOD_DEVICE, DEV, SIZE);
	feed_alloc(h, T, 12, TTMON_METHOD_MANAGED, MAN, SIZE);
	feed_mmap(h, T, 13, MAP, SIZE);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ttmon_history_free(h);
	return 0;
}

static const struct ttmon_proc *proc(void)
{
	return ttmon_history_proc(h, 0);
}

static const struct ttmon_alloc *rec(uint64_t seq)
{
	return ttmon_history_alloc(h, seq);
}

static struct ttmon_xfer xfer(unsigned int rdir, unsigned int mem)
{
	return proc()->xfer[rdir][mem];
}

static void pinned_to_device(void **state)
{
	struct ttmon_aev ev[2];

	(void)state;
	feed_copy(h, T, 100, TTMON_DIR_H2D, DEV + 8, PIN + 4096, 1000);
	assert_int_equal(xfer(TTMON_RDIR_H2D, TTMON_MEM_PINNED).copies, 1);
	assert_int_equal(xfer(TTMON_RDIR_H2D, TTMON_MEM_PINNED).bytes, 1000);
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(rec(i)->traffic->copies[TTMON_RDIR_H2D], 1);
		assert_int_equal(rec(i)->traffic->bytes[TTMON_RDIR_H2D], 1000);
		assert_int_equal(rec(i)->traffic->last_copy_ns, 100);
		assert_true(rec(i)->states & TTMON_ST_TRANSFERRED);
		assert_int_equal(feed_events(rec(i), ev, 2), 1);
		assert_int_equal(ev[0].kind, TTMON_AEV_H2D);
		assert_int_equal(ev[0].offset, i ? 8 : 4096);
		assert_int_equal(ev[0].bytes, 1000);
		assert_int_equal(ev[0].bits, 0);
		assert_int_equal(ev[0].mem, i ? TTMON_MEM_UNKNOWN : TTMON_MEM_PINNED);
		assert_int_equal(feed_heat(rec(i)).copies[0], 1);
		assert_int_equal(feed_heat(rec(i)).bytes[0], 1000);
		assert_null(rec(i)->traffic->page_heat);
	}
	assert_int_equal(feed_totals(h).events_kept, 2);
	assert_int_equal(feed_totals(h).xfer[TTMON_RDIR_H2D][TTMON_MEM_PINNED].copies, 1);
}

static void pageable_is_staged(void **state)
{
	struct ttmon_aev ev[2];

	(void)state;
	feed_copy(h, T, 100, TTMON_DIR_H2D, DEV, MAP + 5, 100);
	feed_copy(h, T, 110, TTMON_DIR_D2H, MAP + 5, DEV, 100);
	assert_int_equal(xfer(TTMON_RDIR_H2D, TTMON_MEM_PAGEABLE).copies, 1);
	assert_int_equal(xfer(TTMON_RDIR_D2H, TTMON_MEM_PAGEABLE).copies, 1);
	assert_int_equal(feed_events(rec(3), ev, 2), 2);
	assert_int_equal(ev[0].bits, TTMON_AB_STAGED);
	assert_int_equal(ev[1].bits, TTMON_AB_STAGED);
	assert_int_equal(ev[1].kind, TTMON_AEV_D2H);
	assert_int_equal(rec(3)->states, TTMON_ST_CREATED | TTMON_ST_POPULATED | TTMON_ST_TRANSFERRED);
}

static void registered_memory_is_pinned(void **state)
{
	(void)state;
	feed_alloc(h, T, 50, TTMON_METHOD_REGISTERED, MAP + 8192, 8192);
	feed_copy(h, T, 100, TTMON_DIR_H2D, DEV, MAP + 8192, 8192);
	assert_int_equal(xfer(TTMON_RDIR_H2D, TTMON_MEM_PINNED).copies, 1);
	assert_int_equal(rec(4)->traffic->copies[TTMON_RDIR_H2D], 1);
	assert_int_equal(rec(3)->traffic->copies[TTMON_RDIR_H2D], 0);
}

/* The memory of the last copy is cached, but only until something changes there. */
static void same_address_lies_in_something_else(void **state)
{
	(void)state;
	feed_copy(h, T, 100, TTMON_DIR_H2D, DEV, MAP + 12288, 100);
	feed_alloc(h, T, 110, TTMON_METHOD_REGISTERED, MAP + 8192, 8192);
	feed_copy(h, T, 120, TTMON_DIR_H2D, DEV, MAP + 12288, 100);
	feed_copy(h, T, 130, TTMON_DIR_H2D, DEV, MAP + 8192, 100);
	/*
	 * Of two registrations the copy belongs to the one that begins last; before that one, to the other.
	 */
	feed_alloc(h, T, 140, TTMON_METHOD_REGISTERED, MAP + 12288, 8192);
	feed_copy(h, T, 150, TTMON_DIR_H2D, DEV, MAP + 12288, 100);
	feed_copy(h, T, 160, TTMON_DIR_H2D, DEV, MAP + 8192, 100);
	feed_copy(h, T, 170, TTMON_DIR_H2D, DEV, MAP + 12288, 100);
	feed_free(h, T, 180, 181, TTMON_METHOD_REGISTERED, MAP + 12288);
	feed_copy(h, T, 190, TTMON_DIR_H2D, DEV, MAP + 12288, 100);
	feed_free(h, T, 200, 201, TTMON_METHOD_REGISTERED, MAP + 8192);
	feed_copy(h, T, 210, TTMON_DIR_H2D, DEV, MAP + 12288, 100);
	assert_int_equal(rec(3)->traffic->copies[TTMON_RDIR_H2D], 2);
	assert_int_equal(rec(4)->traffic->copies[TTMON_RDIR_H2D], 4);
	assert_int_equal(rec(5)->traffic->copies[TTMON_RDIR_H2D], 2);
}

static void straddling_copy_is_shared(void **state)
{
	struct ttmon_aev ev[2];

	(void)state;
	/* The mapping up to the registration in it, the registration, and the rest of the mapping. */
	feed_alloc(h, T, 50, TTMON_METHOD_REGISTERED, MAP + 8192, 4096);
	feed_copy(h, T, 100, TTMON_DIR_H2D, DEV, MAP + 4096, 16384);
	assert_int_equal(xfer(TTMON_RDIR_H2D, TTMON_MEM_PAGEABLE).copies, 1);
	assert_int_equal(xfer(TTMON_RDIR_H2D, TTMON_MEM_PAGEABLE).bytes, 16384);
	assert_int_equal(rec(4)->traffic->bytes[TTMON_RDIR_H2D], 4096);
	assert_int_equal(rec(3)->traffic->bytes[TTMON_RDIR_H2D], 4096 + 8192);
	assert_int_equal(rec(3)->traffic->copies[TTMON_RDIR_H2D], 2);
	assert_int_equal(feed_events(rec(4), ev, 2), 1);
	assert_int_equal(ev[0].bits & TTMON_AB_STRADDLE, 0);
	assert_int_equal(feed_events(rec(3), ev, 2), 3); /* the registration was reported for it */
	assert_int_equal(ev[1].bits, TTMON_AB_STRADDLE | TTMON_AB_STAGED);
	assert_int_equal(ev[1].bytes, 4096);
}

static void host_to_host_by_destination(void **state)
{
	struct ttmon_aev ev[3];

	(void)state;
	feed_copy(h, T, 100, TTMON_DIR_H2H, PIN, MAP, 100);
	feed_copy(h, T, 110, TTMON_DIR_H2H, MAP, PIN, 100);
	assert_int_equal(xfer(TTMON_RDIR_H2H, TTMON_MEM_PINNED).copies, 1);
	assert_int_equal(xfer(TTMON_RDIR_H2H, TTMON_MEM_PAGEABLE).copies, 1);
	assert_int_equal(feed_events(rec(0), ev, 3), 2);
	assert_int_equal(ev[0].kind, TTMON_AEV_TO_PINNED);
	assert_int_equal(ev[1].kind, TTMON_AEV_FROM_HOST);
	assert_int_equal(feed_events(rec(3), ev, 3), 2);
	assert_int_equal(ev[0].kind, TTMON_AEV_FROM_HOST);
	assert_int_equal(ev[1].kind, TTMON_AEV_TO_HOST);
	assert_int_equal(ev[0].bits, 0);
}

static void device_to_device(void **state)
{
	struct ttmon_aev ev[2];

	(void)state;
	feed_alloc(h, T, 50, TTMON_METHOD_DEVICE, DEV + (1 << 20), SIZE);
	feed_copy(h, T, 100, TTMON_DIR_D2D, DEV, DEV + (1 << 20), 100);
	assert_int_equal(xfer(TTMON_RDIR_D2D, TTMON_MEM_UNKNOWN).copies, 1);
	feed_events(rec(1), ev, 2);
	assert_int_equal(ev[0].kind, TTMON_AEV_D2D_DST);
	feed_events(rec(4), ev, 2);
	assert_int_equal(ev[0].kind, TTMON_AEV_D2D_SRC);
}

static void default_direction_is_looked_up(void **state)
{
	static const struct {
		uint64_t dst, src;
		uint16_t bits;
		unsigned int rdir, mem;
	} rows[] = {
		{ DEV, PIN, 0, TTMON_RDIR_H2D, TTMON_MEM_PINNED },
		{ PIN, DEV, 0, TTMON_RDIR_D2H, TTMON_MEM_PINNED },
		{ DEV, MAP, 0, TTMON_RDIR_H2D, TTMON_MEM_PAGEABLE },
		{ DEV, MAN, 0, TTMON_RDIR_H2D, TTMON_MEM_MANAGED },
		{ MAN, DEV, 0, TTMON_RDIR_D2H, TTMON_MEM_MANAGED },
		{ DEV, DEV + 4096, 0, TTMON_RDIR_D2D, TTMON_MEM_UNKNOWN },
		{ PIN, MAP, 0, TTMON_RDIR_H2H, TTMON_MEM_PINNED },
		{ 0, PIN, TTMON_B_DST_ARRAY, TTMON_RDIR_H2D, TTMON_MEM_PINNED },
		{ PIN, 0, TTMON_B_SRC_ARRAY, TTMON_RDIR_D2H, TTMON_MEM_PINNED },
		{ 0, 0, TTMON_B_SRC_ARRAY | TTMON_B_DST_ARRAY, TTMON_RDIR_D2D, TTMON_MEM_UNKNOWN },
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ttmon_ev_copy ev = feed_make_copy(T, 100 + i, TTMON_DIR_DEFAULT, rows[i].dst, rows[i].src, 64);
		uint64_t before = xfer(rows[i].rdir, rows[i].mem).copies;

		ev.bits = rows[i].bits;
		APPLY(h, ev);
		assert_int_equal(xfer(rows[i].rdir, rows[i].mem).copies, before + 1);
	}
	assert_int_equal(proc()->unmatched, 0);
}

#define NOWHERE 0x50000000ULL

static void default_of_unknown_pointer(void **state)
{
	uint32_t tgid = 0;
	struct ttmon_aev ev[1];

	(void)state;
	/* There is no list of mappings: nothing is assumed, and a list is requested. */
	feed_copy(h, T, 100, TTMON_DIR_DEFAULT, DEV, NOWHERE, 64);
	assert_int_equal(xfer(TTMON_RDIR_UNKNOWN, TTMON_MEM_UNKNOWN).copies, 1);
	assert_int_equal(ttmon_history_allocs(h), 4);
	feed_events(rec(1), ev, 1);
	assert_int_equal(ev[0].kind, TTMON_AEV_UNKNOWN_DST);
	assert_int_equal(ttmon_history_want_maps(h, &tgid, 1), 1);
	assert_int_equal(tgid, T);
	assert_int_equal(ttmon_history_want_maps(h, &tgid, 1), 0);

	/* There is a list, but it is old: the known side decides. */
	feed_map(h, T, 200, MAP, MAP + SIZE, "");
	feed_maps_done(h, T, 200, 201, 1);
	feed_copy(h, T, 300, TTMON_DIR_DEFAULT, PIN, NOWHERE, 64);
	assert_int_equal(xfer(TTMON_RDIR_D2H, TTMON_MEM_PINNED).copies, 1);
	feed_copy(h, T, 310, TTMON_DIR_DEFAULT, DEV, NOWHERE, 64);
	assert_int_equal(xfer(TTMON_RDIR_H2D, TTMON_MEM_UNKNOWN).copies, 1);
	assert_int_equal(proc()->unmatched, 1);
}

static void outside_known_and_traced_mappings_is_the_device(void **state)
{
	(void)state;
	feed_clock(h, 4096, TTMON_OPT_MMAP);
	feed_map(h, T, 200, MAP, MAP + SIZE, "");
	feed_maps_done(h, T, 200, 201, 1);
	feed_copy(h, T, 300, TTMON_DIR_DEFAULT, PIN, NOWHERE, 64);
	assert_int_equal(xfer(TTMON_RDIR_D2H, TTMON_MEM_PINNED).copies, 1);
	feed_copy(h, T, 310, TTMON_DIR_DEFAULT, DEV, NOWHERE, 64);
	assert_int_equal(xfer(TTMON_RDIR_D2D, TTMON_MEM_UNKNOWN).copies, 1);
	feed_copy(h, T, 320, TTMON_DIR_DEFAULT, NOWHERE, MAP, 64);
	assert_int_equal(xfer(TTMON_RDIR_H2D, TTMON_MEM_PAGEABLE).copies, 1);
	assert_int_equal(proc()->unmatched, 0);
}

static void what_moves_nothing_is_no_transfer(void **state)
{
	struct ttmon_ev_copy ev = feed_make_copy(T, 100, TTMON_DIR_H2D, DEV, PIN, 64);

	(void)state;
	ev.bits = TTMON_B_CAPTURED;
	APPLY(h, ev);
	assert_int_equal(proc()->captured, 1);
	ev.bits = 0;
	ev.err = 1;
	APPLY(h, ev);
	ev.err = 0;
	ev.dir = TTMON_DIR_INVALID;
	APPLY(h, ev);
	assert_int_equal(proc()->failed, 2);
	assert_int_equal(rec(0)->traffic->copies[TTMON_RDIR_H2D], 0);
	assert_int_equal(xfer(TTMON_RDIR_H2D, TTMON_MEM_PINNED).copies, 0);
	assert_int_equal(feed_totals(h).captured, 1);
	assert_int_equal(feed_totals(h).failed, 2);
}

static void bits_are_kept_and_truncation_is_a_finding(void **state)
{
	struct ttmon_ev_copy ev = feed_make_copy(T, 100, TTMON_DIR_H2D, DEV, PIN, 64);
	struct ttmon_aev aev[1];

	(void)state;
	ev.bits = TTMON_B_ASYNC | TTMON_B_UNOBSERVED | TTMON_B_BATCH | TTMON_B_TRUNCATED;
	APPLY(h, ev);
	assert_int_equal(rec(0)->traffic->copies[TTMON_RDIR_H2D], 1);
	feed_events(rec(0), aev, 1);
	assert_int_equal(aev[0].bits, ev.bits);
	assert_int_equal(proc()->findings[TTMON_FINDING_TRUNCATED_BATCH], 1);
}

static void made_up_memory_grows_where_copies_overlap(void **state)
{
	uint32_t tgid = 0;
	const struct ttmon_alloc *a;
	struct ttmon_aev ev[6];

	(void)state;
	feed_copy(h, T, 100, TTMON_DIR_H2D, DEV, NOWHERE + 100, 1000);
	assert_null(ttmon_history_find(h, T, NOWHERE));
	a = ttmon_history_find(h, T, NOWHERE + 100);
	assert_non_null(a);
	assert_true(a->bits & TTMON_AL_PROVISIONAL);
	assert_int_equal(a->method, TTMON_METHOD_MMAP);
	assert_int_equal(a->addr, NOWHERE + 100);
	assert_int_equal(a->size, 1000);
	assert_int_equal(proc()->unmatched, 1);
	assert_int_equal(ttmon_history_want_maps(h, &tgid, 1), 1);

	feed_copy(h, T, 110, TTMON_DIR_H2D, DEV, NOWHERE + 600, 1000); /* they overlap: the same one grows */
	assert_ptr_equal(ttmon_history_find(h, T, NOWHERE + 1599), a);
	assert_int_equal(a->size, 1500);
	feed_copy(h, T, 120, TTMON_DIR_H2D, DEV, NOWHERE + 3 * PAGE, 500); /* separate */
	feed_copy(h, T, 125, TTMON_DIR_H2D, DEV, NOWHERE + 1600, 100);	   /* adjacent ranges are separate too */
	assert_int_equal(ttmon_history_allocs(h), 7);
	feed_copy(h, T, 130, TTMON_DIR_H2D, DEV, NOWHERE + 1599, 3 * PAGE); /* of all three */
	assert_int_equal(a->size, 3 * PAGE + 1599 - 100);
	assert_int_equal(rec(5)->end, TTMON_END_MERGED);
	assert_int_equal(rec(6)->end, TTMON_END_MERGED);
	assert_ptr_equal(ttmon_history_find(h, T, NOWHERE + 3 * PAGE), a);
	/*
	 * All copies are there; those of the merged extents have the right offsets and are in order of time.
	 */
	assert_int_equal(feed_events(a, ev, 5), 5);
	assert_int_equal(ev[2].ts_ns, 120);
	assert_int_equal(ev[2].offset, 3 * PAGE - 100);
	assert_int_equal(ev[3].ts_ns, 125);
	assert_int_equal(ev[3].offset, 1500);
	assert_int_equal(ev[4].ts_ns, 130);
	assert_int_equal(a->traffic->bytes[TTMON_RDIR_H2D], 1000 + 1000 + 500 + 100 + 3 * PAGE);
	assert_int_equal(proc()->unmatched, 5);
	assert_int_equal(xfer(TTMON_RDIR_H2D, TTMON_MEM_UNKNOWN).copies, 5);
	/* If it begins earlier, its offsets count from there. */
	feed_copy(h, T, 140, TTMON_DIR_H2D, DEV, NOWHERE, 200);
	a = ttmon_history_find(h, T, NOWHERE);
	assert_int_equal(a->size, 3 * PAGE + 1599);
	assert_int_equal(feed_events(a, ev, 6), 6);
	assert_int_equal(ev[0].offset, 100);
	assert_int_equal(ev[5].offset, 0);
	assert_int_equal(ttmon_history_want_maps(h, &tgid, 1), 0);
}

static void made_up_mapping_leaves_neighbours_alone(void **state)
{
	const struct ttmon_alloc *a;

	(void)state;
	feed_copy(h, T, 100, TTMON_DIR_H2D, DEV, MAP + SIZE - 100, 200); /* past the end of a known mapping */
	a = ttmon_history_find(h, T, MAP + SIZE);
	assert_true(a->bits & TTMON_AL_PROVISIONAL);
	assert_int_equal(a->addr, MAP + SIZE);
	assert_int_equal(a->traffic->bytes[TTMON_RDIR_H2D], 100);
	assert_int_equal(rec(3)->traffic->bytes[TTMON_RDIR_H2D], 100);
	assert_int_equal(proc()->unmatched, 0); /* it began in known memory */
}

static void heat_over_time(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 128; i++)
		feed_copy(h, T, 10 + i * MS, TTMON_DIR_H2D, DEV, PIN, 10);
	assert_int_equal(feed_heat(rec(0)).origin_ns, 10);
	assert_int_equal(feed_heat(rec(0)).width_ns, 2 * MS);
	for (unsigned int i = 0; i < TTMON_HEAT_BUCKETS; i++) {
		assert_int_equal(feed_heat(rec(0)).copies[i], 2);
		assert_int_equal(feed_heat(rec(0)).bytes[i], 20);
	}
}

static void page_heat_of_large_allocations(void **state)
{
	const struct ttmon_alloc *a;

	(void)state;
	feed_alloc(h, T, 50, TTMON_METHOD_HOST_ALLOC, 0x60000000, 64 << 20);
	a = rec(4);
	feed_copy(h, T, 100, TTMON_DIR_H2D, DEV, 0x60000000 + (10 << 20), 3 << 20);
	assert_int_equal(a->traffic->page_heat->group_bytes, 1 << 20);
	for (unsigned int i = 0; i < TTMON_PAGE_GROUPS; i++)
		assert_int_equal(a->traffic->page_heat->copies[i], i >= 10 && i < 13);
}

static void rect_copy_touches_rows(void **state)
{
	struct ttmon_ev_copy_rect ev = {
		.h = feed_head(TTMON_EV_COPY_RECT, T, 100),
		.entry_ns = 90,
		.dst = DEV,
		.src = 0x60000000,
		.width = 1000,
		.rows = 4,
		.slices = 1,
		.dpitch = 1024,
		.spitch = 2 << 20,
		.fn = 18,
		.dir = TTMON_DIR_H2D,
	};
	struct ttmon_aev aev[1];
	const struct ttmon_alloc *a;

	(void)state;
	feed_alloc(h, T, 50, TTMON_METHOD_HOST_ALLOC, 0x60000000, 64 << 20);
	APPLY(h, ev);
	a = rec(4);
	assert_int_equal(a->traffic->copies[TTMON_RDIR_H2D], 1);
	assert_int_equal(a->traffic->bytes[TTMON_RDIR_H2D], 4000);
	assert_int_equal(xfer(TTMON_RDIR_H2D, TTMON_MEM_PINNED).bytes, 4000);
	for (unsigned int i = 0; i < TTMON_PAGE_GROUPS; i++)
		assert_int_equal(a->traffic->page_heat->copies[i], i < 8 && i % 2 == 0);
	assert_int_equal(rec(1)->traffic->bytes[TTMON_RDIR_H2D], 4000);

	/* Past the end of the allocation that contains its begin. */
	ev.h.ts_ns = 110;
	ev.rows = 100;
	APPLY(h, ev);
	assert_int_equal(feed_events(rec(4), aev, 1), 2);
	assert_int_equal(rec(4)->traffic->bytes[TTMON_RDIR_H2D], 4000 + 100000);
	/* Sizes that overflow 64 bits. */
	ev.h.ts_ns = 120;
	ev.width = ev.rows = ev.slices = ev.spitch = ev.dpitch = UINT64_MAX;
	APPLY(h, ev);
	assert_int_equal(rec(4)->traffic->copies[TTMON_RDIR_H2D], 3);
}

static void past_the_end_of_memory(void **state)
{
	(void)state;
	feed_copy(h, T, 100, TTMON_DIR_H2D, DEV, UINT64_MAX - 10, UINT64_MAX);
	feed_copy(h, T, 110, TTMON_DIR_H2D, DEV, 0, 100);
	feed_copy(h, T, 120, TTMON_DIR_D2H, PIN, DEV, 0);
	assert_int_equal(xfer(TTMON_RDIR_H2D, TTMON_MEM_UNKNOWN).copies, 2);
	assert_int_equal(xfer(TTMON_RDIR_D2H, TTMON_MEM_PINNED).copies, 1);
	assert_int_equal(rec(0)->traffic->copies[TTMON_RDIR_D2H], 1);
}

static void events_have_a_limit(void **state)
{
	struct ttmon_history *small = feed_new((struct ttmon_history_cfg){ .keep_all = true, .max_events = 3 });
	const struct ttmon_alloc *a;

	(void)state;
	feed_alloc(small, T, 10, TTMON_METHOD_HOST_ALLOC, PIN, SIZE);
	for (uint64_t i = 0; i < 5; i++)
		feed_copy(small, T, 100 + i, TTMON_DIR_H2D, DEV, PIN, 10);
	a = ttmon_history_alloc(small, 0);
	assert_int_equal(a->traffic->nr_events, 3);
	assert_int_equal(a->traffic->events_dropped, 2);
	assert_int_equal(a->traffic->copies[TTMON_RDIR_H2D], 5); /* the sums continue */
	assert_int_equal(feed_heat(a).copies[0], 5);
	assert_int_equal(feed_totals(small).events_dropped, 2);
	assert_true(feed_totals(small).limited);
	ttmon_history_free(small);
}

static void site_gets_the_transfers_of_its_allocations(void **state)
{
	const uint64_t frames[] = { 0x1234, 0 };
	const struct ttmon_site *s;

	(void)state;
	feed_alloc_at(h, T, 50, TTMON_METHOD_HOST_ALLOC, 0x60000000, PAGE, frames);
	feed_copy(h, T, 60, TTMON_DIR_H2D, DEV, 0x60000000, 10); /* before the site is known */
	ttmon_history_tick(h, 10 * SEC);
	feed_copy(h, T, 11 * SEC, TTMON_DIR_H2D, DEV, 0x60000000, 20);
	feed_copy(h, T, 12 * SEC, TTMON_DIR_D2H, 0x60000000, DEV, 40);
	ttmon_history_finish(h, 13 * SEC);
	s = ttmon_history_site(h, rec(4)->site);
	assert_int_equal(s->h2d[TTMON_MEM_PINNED].copies, 2);
	assert_int_equal(s->h2d[TTMON_MEM_PINNED].bytes, 30);
	assert_int_equal(s->d2h[TTMON_MEM_PINNED].bytes, 40);
	assert_int_equal(s->live_bytes, PAGE);
}

/* Copies of 100 bytes from pinned memory, each of which stands for 2^n copies. */
static void feed_sampled(uint64_t ts, unsigned int n)
{
	struct ttmon_ev_copy ev = feed_make_copy(T, ts, TTMON_DIR_H2D, DEV, PIN, 100);

	ev.bits |= (uint16_t)(n << TTMON_B_SAMPLE_SHIFT);
	APPLY(h, ev);
}

static void sampled_copies_stand_for_others(void **state)
{
	const struct ttmon_sampled *s, *of_proc;
	struct ttmon_aev ev[5];

	(void)state;
	feed_sampled(100, 0);
	assert_null(rec(0)->traffic->sampled);
	assert_int_equal(proc()->sampled[TTMON_RDIR_H2D].told, 0);
	for (uint64_t i = 0; i < 3; i++)
		feed_sampled(200 + i, 6);
	feed_sampled(300, 1);
	/* The reported copies are counted as usual. */
	assert_int_equal(xfer(TTMON_RDIR_H2D, TTMON_MEM_PINNED).copies, 5);
	assert_int_equal(xfer(TTMON_RDIR_H2D, TTMON_MEM_PINNED).bytes, 500);
	assert_int_equal(feed_events(rec(0), ev, 5), 5);
	assert_int_equal(ev[4].bits & TTMON_B_SAMPLE, 0);
	of_proc = &proc()->sampled[TTMON_RDIR_H2D];
	s = &rec(0)->traffic->sampled[TTMON_RDIR_H2D];
	assert_int_equal(s->told, 4);
	assert_int_equal(s->copies, 3 * 63 + 1);
	assert_int_equal(s->bytes, 100 * (3 * 63 + 1));
	assert_int_equal((uint64_t)s->copies_var, 3 * 64 * 63 + 2);
	assert_int_equal((uint64_t)s->bytes_var, 10000 * (3 * 64 * 63 + 2));
	assert_memory_equal(s, of_proc, sizeof(*s));
	assert_int_equal(rec(1)->traffic->sampled[TTMON_RDIR_H2D].copies, s->copies);
	assert_int_equal(proc()->sampled[TTMON_RDIR_D2H].told, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(pinned_to_device),
		TEST(pageable_is_staged),
		TEST(registered_memory_is_pinned),
		TEST(same_address_lies_in_something_else),
		TEST(straddling_copy_is_shared),
		TEST(host_to_host_by_destination),
		TEST(device_to_device),
		TEST(default_direction_is_looked_up),
		TEST(default_of_unknown_pointer),
		TEST(outside_known_and_traced_mappings_is_the_device),
		TEST(what_moves_nothing_is_no_transfer),
		TEST(bits_are_kept_and_truncation_is_a_finding),
		TEST(made_up_memory_grows_where_copies_overlap),
		TEST(made_up_mapping_leaves_neighbours_alone),
		TEST(heat_over_time),
		TEST(page_heat_of_large_allocations),
		TEST(rect_copy_touches_rows),
		TEST(past_the_end_of_memory),
		TEST(events_have_a_limit),
		TEST(site_gets_the_transfers_of_its_allocations),
		TEST(sampled_copies_stand_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
