// SPDX-License-Identifier: GPL-2.0-only
/* test_history_host.c: ordinary mappings: from events, from lists, and from both. */
#include "tests/unit/feed/history_feed.h"

#define T   10
#define A   0x40000000ULL
#define B   0x50000000ULL
#define DEV 0x20000000ULL

static struct ttmon_history *h;

static int setup(void **state)
{
	(void)state;
	h = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	feed_proc(h, T, 1, 77, 1, TTMON_PROC_SEEN);
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

static const struct ttmon_alloc *at(uint64_t addr)
{
	return ttmon_history_find(h, T, addr);
}

static uint64_t mapped_bytes(void)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < ttmon_history_allocs(h); i++)
		if (rec(i) && rec(i)->method == TTMON_METHOD_MMAP && rec(i)->free_ns == 0 &&
		    !(rec(i)->states & TTMON_ST_EXTENT))
			n += rec(i)->size;
	return n;
}

static void maps_and_unmaps(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, 5000); /* lengths are rounded to pages */
	assert_int_equal(at(A)->size, 2 * PAGE);
	assert_int_equal(at(A)->method, TTMON_METHOD_MMAP);
	assert_int_equal(at(A)->api_flags, 0x22);
	assert_int_equal(proc()->live, 0); /* mappings are not counted as allocations of the API */
	assert_int_equal(proc()->allocs, 0);
	feed_munmap(h, T, 200, A, 5000);
	assert_null(at(A));
	assert_int_equal(rec(0)->end, TTMON_END_FREE);
	assert_int_equal(rec(0)->free_ns, 200);
}

static void unmapping_a_part_splits(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, 10 * PAGE);
	feed_copy(h, T, 110, TTMON_DIR_H2D, DEV, A, 100);
	feed_munmap(h, T, 200, A + 4 * PAGE, 2 * PAGE);
	/* The first piece keeps its identity and history, the other is a new allocation. */
	assert_ptr_equal(at(A), rec(0));
	assert_int_equal(rec(0)->size, 4 * PAGE);
	assert_int_equal(rec(0)->traffic->nr_events, 1);
	assert_null(at(A + 4 * PAGE));
	assert_ptr_equal(at(A + 6 * PAGE), rec(1));
	assert_int_equal(rec(1)->size, 4 * PAGE);
	assert_int_equal(rec(1)->alloc_ns, 200);
	assert_int_equal(rec(1)->traffic->copies[TTMON_RDIR_H2D], 0);
	/* The front is unmapped: the rest keeps its identity. */
	feed_munmap(h, T, 210, A, PAGE);
	assert_int_equal(rec(0)->addr, A + PAGE);
	assert_int_equal(rec(0)->size, 3 * PAGE);
	/* One call unmaps several. */
	feed_munmap(h, T, 220, A + 2 * PAGE, 6 * PAGE);
	assert_int_equal(rec(0)->size, PAGE);
	assert_int_equal(rec(1)->addr, A + 8 * PAGE);
	assert_int_equal(mapped_bytes(), 3 * PAGE);
}

static void mapping_over_a_mapping_replaces_it(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, 10 * PAGE);
	feed_mmap(h, T, 200, A + 2 * PAGE, 2 * PAGE);
	assert_int_equal(rec(0)->size, 2 * PAGE);
	assert_int_equal(at(A + 2 * PAGE)->alloc_ns, 200);
	assert_int_equal(at(A + 4 * PAGE)->size, 6 * PAGE);
	assert_int_equal(mapped_bytes(), 10 * PAGE);
}

static void neighbours_stay_apart(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, PAGE);
	feed_mmap(h, T, 110, A + PAGE, PAGE); /* the kernel makes one VMA of both */
	assert_ptr_not_equal(at(A), at(A + PAGE));
	feed_map(h, T, 200, A, A + 2 * PAGE, "");
	feed_maps_done(h, T, 200, 201, 1);
	assert_ptr_equal(at(A), rec(0));
	assert_ptr_equal(at(A + PAGE), rec(1));
	assert_int_equal(ttmon_history_allocs(h), 2);
	assert_int_equal(mapped_bytes(), 2 * PAGE);
}

static void text_is_no_allocation(void **state)
{
	struct ttmon_ev_mmap ev = {
		.h = feed_head(TTMON_EV_MMAP, T, 100), .addr = A, .len = PAGE, .prot = RX, .flags = 2, .fd = 3
	};
	struct ttmon_ev_map map = { .h = feed_fact(TTMON_EV_MAP, T, 200), .start = B, .end = B + PAGE, .prot = RX };

	(void)state;
	feed_mmap(h, T, 90, A, PAGE);
	APPLY(h, ev);
	assert_null(at(A)); /* but it replaced the mapping that was there */
	feed_map_full(h, map, "/usr/lib/libc.so.6");
	map.start += PAGE;
	map.end += PAGE;
	map.prot = 0;
	feed_map_full(h, map, "");
	map.start += PAGE;
	map.end += PAGE;
	map.prot = 1;
	feed_map_full(h, map, "[vvar]");
	feed_maps_done(h, T, 200, 201, 3);
	assert_null(at(B));
	assert_null(at(B + PAGE));
	assert_null(at(B + 2 * PAGE));
	assert_true(proc()->maps_known);
}

static void mremap_grows_and_shrinks_in_place(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, 4 * PAGE);
	feed_mremap(h, T, 190, 200, A, 4 * PAGE, A, 8 * PAGE);
	assert_ptr_equal(at(A + 7 * PAGE), rec(0));
	assert_int_equal(rec(0)->size, 8 * PAGE);
	feed_mremap(h, T, 290, 300, A, 8 * PAGE, A, 2 * PAGE);
	assert_int_equal(rec(0)->size, 2 * PAGE);
	assert_null(at(A + 2 * PAGE));
	assert_int_equal(ttmon_history_allocs(h), 1);
}

static void mremap_moves_keep_identity(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, 4 * PAGE);
	feed_copy(h, T, 110, TTMON_DIR_H2D, DEV, A, 100);
	feed_mmap(h, T, 120, B + 6 * PAGE, 4 * PAGE); /* in the way: MREMAP_FIXED */
	feed_mremap(h, T, 190, 200, A, 4 * PAGE, B, 8 * PAGE);
	assert_null(at(A));
	assert_ptr_equal(at(B), rec(0));
	assert_int_equal(rec(0)->size, 8 * PAGE);
	assert_int_equal(rec(0)->traffic->copies[TTMON_RDIR_H2D], 1);
	assert_int_equal(rec(1)->addr, B + 8 * PAGE);
	/* A part of it is moved. */
	feed_mremap(h, T, 290, 300, B + 2 * PAGE, 2 * PAGE, A, 2 * PAGE);
	assert_int_equal(rec(0)->size, 2 * PAGE);
	assert_int_equal(at(A)->size, 2 * PAGE);
	assert_null(at(B + 2 * PAGE));
	assert_int_equal(at(B + 4 * PAGE)->size, 4 * PAGE);
	assert_int_equal(mapped_bytes(), (2 + 2 + 4 + 2) * PAGE);
}

static void mremap_takes_only_what_was_there_at_entry(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, 4 * PAGE);
	/*
	 * The range was moved away at 190, another thread got the addresses at 195, the call returned at 200.
	 */
	feed_mmap(h, T, 195, A, 4 * PAGE);
	feed_mremap(h, T, 190, 200, A, 4 * PAGE, B, 4 * PAGE);
	assert_ptr_equal(at(A), rec(1));
	assert_int_equal(at(A)->alloc_ns, 195);
	assert_int_equal(at(B)->size, 4 * PAGE);
}

static void mremap_of_unknown_memory(void **state)
{
	struct ttmon_ev_mremap ev = { .h = feed_head(TTMON_EV_MREMAP, T, 300),
				      .entry_ns = 290,
				      .old_addr = A,
				      .old_len = PAGE,
				      .new_addr = B + (1 << 20),
				      .new_len = PAGE,
				      .flags = 5 };

	(void)state;
	feed_mremap(h, T, 190, 200, A, 4 * PAGE, B, 4 * PAGE);
	assert_int_equal(at(B)->size, 4 * PAGE);
	feed_mmap(h, T, 250, A, PAGE);
	APPLY(h, ev); /* MREMAP_DONTUNMAP: the old range stays */
	assert_non_null(at(A));
	assert_non_null(at(B + (1 << 20)));
	/* Overlapping ranges, which the kernel refuses, must do no harm. */
	feed_mremap(h, T, 390, 400, B, 4 * PAGE, B + PAGE, 4 * PAGE);
	assert_non_null(at(B + 4 * PAGE));
	assert_int_equal(mapped_bytes(), (5 + 2) * PAGE);
}

static void brk_moves_the_end_of_the_heap(void **state)
{
	(void)state;
	feed_brk(h, T, 100, A); /* requests a list */
	assert_null(at(A));
	feed_brk(h, T, 110, A + 10 * PAGE);
	assert_string_equal(at(A)->name, "[heap]");
	assert_int_equal(at(A)->size, 10 * PAGE);
	feed_brk(h, T, 120, A + 20 * PAGE);
	feed_brk(h, T, 130, A + 5 * PAGE + 1);
	assert_int_equal(at(A)->size, 6 * PAGE);
	assert_int_equal(ttmon_history_allocs(h), 1);
	feed_brk(h, T, 140, A);
	assert_null(at(A));
	feed_brk(h, T, 150, A + PAGE);
	assert_int_equal(at(A)->size, PAGE);
}

static void brk_knows_the_heap_of_a_list(void **state)
{
	(void)state;
	feed_map(h, T, 100, A, A + 4 * PAGE, "[heap]");
	feed_maps_done(h, T, 100, 101, 1);
	feed_brk(h, T, 200, A + 8 * PAGE);
	assert_ptr_equal(at(A + 7 * PAGE), rec(0));
	assert_true(rec(0)->bits & TTMON_AL_OLD);
}

static void unmapping_registered_memory_is_a_finding(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, 8 * PAGE);
	feed_alloc(h, T, 110, TTMON_METHOD_REGISTERED, A + PAGE, 2 * PAGE);
	feed_munmap(h, T, 200, A + 2 * PAGE, PAGE);
	assert_int_equal(rec(1)->end, TTMON_END_UNMAPPED);
	assert_int_equal(proc()->findings[TTMON_FINDING_UNMAP_REGISTERED], 1);
	assert_int_equal(proc()->pinned_pages, 0);
	/* The unregister call that still comes is not counted as unknown. */
	feed_free(h, T, 300, 310, TTMON_METHOD_REGISTERED, A + PAGE);
	assert_int_equal(rec(1)->end, TTMON_END_UNMAPPED);
	assert_int_equal(rec(1)->unpin_ns, 10);
	assert_int_equal(proc()->unknown_frees, 0);
}

static void first_list_is_older_than_the_trace(void **state)
{
	(void)state;
	feed_map(h, T, 100, A, A + 4 * PAGE, "");
	feed_map(h, T, 100, B, B + PAGE, "/dev/shm/x");
	feed_maps_done(h, T, 100, 101, 2);
	assert_true(proc()->maps_known);
	assert_true(at(A)->bits & TTMON_AL_OLD);
	assert_null(at(A)->name);
	assert_string_equal(at(B)->name, "/dev/shm/x");

	/*
	 * Second list: a mapping that is in both stays, a new one is not marked as old, a missing one has been
	 * freed.
	 */
	feed_map(h, T, 200, A, A + 4 * PAGE, "");
	feed_map(h, T, 200, B + PAGE, B + 2 * PAGE, "");
	feed_maps_done(h, T, 200, 201, 2);
	assert_ptr_equal(at(A), rec(0));
	assert_int_equal(rec(1)->end, TTMON_END_FREE);
	assert_int_equal(rec(1)->free_ns, 200);
	assert_false(at(B + PAGE)->bits & TTMON_AL_OLD);
	assert_int_equal(ttmon_history_allocs(h), 3);
}

static void list_of_a_younger_process_is_not_old(void **state)
{
	struct ttmon_history *y = feed_new((struct ttmon_history_cfg){ .keep_all = true, .start_ns = 50 });

	(void)state;
	feed_proc(y, T, 60, 60, 1, TTMON_PROC_FORK);
	feed_map(y, T, 100, A, A + PAGE, "");
	feed_maps_done(y, T, 100, 101, 1);
	assert_false(ttmon_history_find(y, T, A)->bits & TTMON_AL_OLD);
	ttmon_history_free(y);
}

static void list_trims_and_fills(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, 10 * PAGE);
	feed_map(h, T, 200, A + 2 * PAGE, A + 4 * PAGE, "");
	feed_map(h, T, 200, A + 6 * PAGE, A + 12 * PAGE, "");
	feed_maps_done(h, T, 200, 201, 2);
	assert_int_equal(rec(0)->addr, A + 2 * PAGE);
	assert_int_equal(rec(0)->size, 2 * PAGE);
	assert_int_equal(at(A + 6 * PAGE)->size, 4 * PAGE);
	assert_int_equal(at(A + 11 * PAGE)->size, 2 * PAGE);
	assert_int_equal(mapped_bytes(), 8 * PAGE);
}

static void other_file_at_the_same_place(void **state)
{
	(void)state;
	feed_map(h, T, 100, A, A + PAGE, "/tmp/a");
	feed_maps_done(h, T, 100, 101, 1);
	feed_map(h, T, 200, A, A + PAGE, "/tmp/b");
	feed_maps_done(h, T, 200, 201, 1);
	assert_int_equal(rec(0)->end, TTMON_END_FREE);
	assert_string_equal(at(A)->name, "/tmp/b");
}

static void list_names_what_events_could_not(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, PAGE);
	feed_map(h, T, 200, A, A + PAGE, "/tmp/a");
	feed_maps_done(h, T, 200, 201, 1);
	assert_ptr_equal(at(A), rec(0));
	assert_string_equal(rec(0)->name, "/tmp/a");
	assert_int_equal(ttmon_history_allocs(h), 1);
}

/*
 * The list is applied at once, but events wait for their slot: what they report about earlier times is
 * already in the list.
 */
static void events_before_the_list_are_in_it(void **state)
{
	(void)state;
	feed_map(h, T, 200, A, A + 4 * PAGE, "");
	feed_maps_done(h, T, 200, 201, 1);
	feed_munmap(h, T, 150, A, 4 * PAGE); /* of the mapping that was there before */
	assert_ptr_equal(at(A), rec(0));
	feed_mmap(h, T, 160, A, 4 * PAGE); /* this is the mapping in the list */
	assert_ptr_equal(at(A), rec(0));
	assert_int_equal(rec(0)->alloc_ns, 160);
	assert_false(rec(0)->bits & TTMON_AL_OLD);
	feed_mmap(h, T, 170, B, PAGE); /* mapped and unmapped before the list */
	feed_brk(h, T, 175, B);
	feed_mremap(h, T, 170, 180, A, 4 * PAGE, B, 4 * PAGE);
	assert_null(at(B));
	assert_int_equal(ttmon_history_allocs(h), 1);
	feed_munmap(h, T, 250, A, 4 * PAGE);
	assert_null(at(A));
}

static void events_after_the_list_win(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, 4 * PAGE);
	feed_mmap(h, T, 110, B, 4 * PAGE);
	feed_munmap(h, T, 210, A, 2 * PAGE);
	feed_mmap(h, T, 220, B, PAGE);
	feed_mmap(h, T, 230, B + (1 << 20), PAGE);
	/* The list was read at 200, and comes in after those events. */
	feed_map(h, T, 200, A, A + 4 * PAGE, "");
	feed_map(h, T, 200, B, B + 6 * PAGE, "");
	feed_maps_done(h, T, 200, 205, 2);
	assert_null(at(A));
	assert_int_equal(at(A + 2 * PAGE)->alloc_ns, 100);
	assert_int_equal(at(B)->alloc_ns, 220);
	assert_int_equal(at(B + PAGE)->alloc_ns, 110);
	assert_int_equal(at(B + 5 * PAGE)->alloc_ns, 200); /* only the list contained it */
	assert_non_null(at(B + (1 << 20)));
	assert_int_equal(mapped_bytes(), (2 + 1 + 3 + 2 + 1) * PAGE);
}

static void broken_lists_are_refused(void **state)
{
	uint32_t tgid;

	(void)state;
	feed_copy(h, T, 100, TTMON_DIR_H2D, DEV, A, 10);
	assert_int_equal(ttmon_history_want_maps(h, &tgid, 1), 1);
	feed_map(h, T, 200, A, A + PAGE, "");
	feed_maps_done(h, T, 200, 201, 2); /* one is missing */
	assert_false(proc()->maps_known);
	assert_int_equal(feed_totals(h).malformed_facts, 1);
	/* A list is requested again, but not at once. */
	assert_int_equal(ttmon_history_want_maps(h, &tgid, 1), 0);
	ttmon_history_tick(h, SEC);
	assert_int_equal(ttmon_history_want_maps(h, &tgid, 1), 1);
	feed_map(h, T, 300, B, B, ""); /* empty */
	feed_map(h, T, 300, A, A + 4 * PAGE, "");
	feed_maps_done(h, T, 300, 301, 2);
	assert_false(proc()->maps_known);
	/* Out of order and overlapping: the usable part is taken. */
	feed_map(h, T, 400, B, B + PAGE, "");
	feed_map(h, T, 400, A, A + 4 * PAGE, "");
	feed_map(h, T, 400, A + PAGE, A + 2 * PAGE, "");
	feed_maps_done(h, T, 400, 401, 3);
	assert_true(proc()->maps_known);
	assert_int_equal(mapped_bytes(), 5 * PAGE);
	assert_true(feed_totals(h).malformed_facts > 2);
}

static void empty_list_is_a_list(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, PAGE);
	feed_maps_done(h, T, 200, 201, 0);
	assert_true(proc()->maps_known);
	assert_null(at(A));
}

static void new_executable_mapping_is_part_of_no_list(void **state)
{
	(void)state;
	feed_map(h, T, 100, A, A + PAGE, "");
	feed_text(h, T, 100, B, B + PAGE, 0, 0);
	feed_maps_done(h, T, 100, 101, 1);
	assert_true(proc()->maps_known);
	assert_non_null(at(A));
	assert_int_equal(feed_totals(h).malformed_facts, 0);
}

static void made_up_memory_is_settled_by_a_list(void **state)
{
	struct ttmon_aev ev[3];
	const struct ttmon_alloc *a;

	(void)state;
	feed_copy(h, T, 100, TTMON_DIR_H2D, DEV, A + 5 * PAGE + 7, 100);
	feed_copy(h, T, 110, TTMON_DIR_H2D, DEV, A + 5 * PAGE + 9, 200);
	feed_copy(h, T, 120, TTMON_DIR_D2H, B, DEV, 300);
	assert_int_equal(proc()->unmatched, 3);
	feed_map(h, T, 200, A, A + 512 * PAGE, "");
	feed_maps_done(h, T, 200, 201, 1);
	/* The kernel may have merged the memory of many calls into it: the copied piece stays one. */
	a = rec(0);
	assert_int_equal(a->free_ns, 0);
	assert_true(a->states & TTMON_ST_EXTENT);
	assert_false(a->bits & TTMON_AL_PROVISIONAL);
	assert_int_equal(a->addr, A + 5 * PAGE + 7);
	assert_int_equal(a->size, 202);
	assert_int_equal(at(A)->addr, A);
	assert_int_equal(at(A)->traffic->copies[TTMON_RDIR_H2D], 0);
	assert_int_equal(a->traffic->copies[TTMON_RDIR_H2D], 2);
	assert_int_equal(a->traffic->bytes[TTMON_RDIR_H2D], 300);
	assert_int_equal(feed_events(a, ev, 3), 2);
	assert_int_equal(ev[0].offset, 0);
	assert_int_equal(ev[1].offset, 2);
	assert_int_equal(ev[1].ts_ns, 110);
	assert_int_equal(feed_heat(a).copies[0], 2);
	assert_int_equal(feed_totals(h).events_kept, 3);
	/* The other piece is in no mapping of the list. */
	assert_int_equal(rec(1)->end, TTMON_END_FREE);
	assert_null(at(B));
	/* From now on the memory is known. */
	feed_copy(h, T, 300, TTMON_DIR_H2D, DEV, A, 100);
	/* The earlier copies were from pageable memory too; those of the other piece stay unknown. */
	assert_int_equal(proc()->unmatched, 1);
	assert_int_equal(feed_totals(h).unmatched, 1);
	assert_int_equal(proc()->xfer[TTMON_RDIR_H2D][TTMON_MEM_PAGEABLE].copies, 3);
	assert_int_equal(proc()->xfer[TTMON_RDIR_H2D][TTMON_MEM_PAGEABLE].bytes, 400);
	assert_int_equal(proc()->xfer[TTMON_RDIR_H2D][TTMON_MEM_UNKNOWN].copies, 0);
	assert_int_equal(proc()->xfer[TTMON_RDIR_D2H][TTMON_MEM_UNKNOWN].copies, 1);
}

static void made_up_after_the_list_was_read_stays(void **state)
{
	uint32_t tgid;

	(void)state;
	feed_copy(h, T, 300, TTMON_DIR_H2D, DEV, B, 100);
	assert_int_equal(ttmon_history_want_maps(h, &tgid, 1), 1);
	feed_map(h, T, 200, A, A + PAGE, "");
	feed_maps_done(h, T, 200, 201, 1);
	assert_true(at(B)->bits & TTMON_AL_PROVISIONAL);
	ttmon_history_tick(h, SEC);
	assert_int_equal(ttmon_history_want_maps(h, &tgid, 1), 1); /* this list could not contain it */
}

static void mmap_event_replaces_a_made_up_one(void **state)
{
	(void)state;
	feed_copy(h, T, 100, TTMON_DIR_H2D, DEV, A + PAGE, 100);
	feed_mmap(h, T, 200, A, 4 * PAGE);
	assert_int_equal(rec(0)->end, TTMON_END_FREE);
	assert_int_equal(at(A + PAGE)->alloc_ns, 200);
}

static void exec_wipes_everything(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, PAGE);
	feed_alloc(h, T, 110, TTMON_METHOD_HOST_ALLOC, B, PAGE);
	feed_map(h, T, 120, A, A + PAGE, "");
	feed_maps_done(h, T, 120, 121, 1);
	feed_proc(h, T, 200, 77, 1, TTMON_PROC_EXEC);
	assert_int_equal(rec(0)->end, TTMON_END_EXEC);
	assert_int_equal(rec(1)->end, TTMON_END_EXEC);
	assert_int_equal(proc()->pinned_pages, 0);
	assert_int_equal(proc()->execs, 1);
	assert_false(proc()->maps_known);
	assert_int_equal(ttmon_history_procs(h), 1);
}

static void exec_spares_the_list_of_the_new_program(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, PAGE);
	feed_map(h, T, 210, B, B + PAGE, "");
	feed_maps_done(h, T, 210, 211, 1);
	feed_proc(h, T, 200, 77, 1, TTMON_PROC_EXEC); /* waited for its slot */
	assert_non_null(at(B));
	assert_true(proc()->maps_known);
	feed_mmap(h, T, 220, A, PAGE);
	assert_non_null(at(A));
}

static void forked_child_has_the_parents_mappings(void **state)
{
	const struct ttmon_alloc *a;

	(void)state;
	feed_map(h, T, 100, A, A + 4 * PAGE, "/tmp/a");
	feed_maps_done(h, T, 100, 101, 1);
	feed_alloc(h, T, 110, TTMON_METHOD_HOST_ALLOC, B, PAGE);
	feed_proc(h, T + 1, 200, 200, T, TTMON_PROC_FORK);
	a = ttmon_history_find(h, T + 1, A);
	assert_non_null(a);
	assert_int_equal(a->proc, 1);
	assert_int_equal(a->size, 4 * PAGE);
	assert_string_equal(a->name, "/tmp/a");
	assert_true(a->bits & TTMON_AL_OLD);
	assert_true(ttmon_history_proc(h, 1)->maps_known);
	/*
	 * But no memory of CUDA. A parent with registered memory is a hazard, one with memory that CUDA
	 * allocated is not.
	 */
	assert_null(ttmon_history_find(h, T + 1, B));
	assert_int_equal(ttmon_history_proc(h, 1)->pinned_pages, 0);
	assert_int_equal(proc()->findings[TTMON_FINDING_FORK_PINNED], 0);
	feed_alloc(h, T, 210, TTMON_METHOD_REGISTERED, A, PAGE);
	feed_proc(h, T + 2, 220, 220, T, TTMON_PROC_FORK);
	assert_int_equal(proc()->findings[TTMON_FINDING_FORK_PINNED], 1);
	/* From now on each process has its own mapping. */
	feed_munmap(h, T + 1, 300, A, 4 * PAGE);
	assert_non_null(at(A));
}

static void ordinals_tell_mappings_of_one_size_apart(void **state)
{
	(void)state;
	feed_mmap(h, T, 100, A, PAGE);
	feed_mmap(h, T, 110, B, PAGE);
	feed_mmap(h, T, 120, B + PAGE, 2 * PAGE);
	assert_int_equal(rec(0)->ordinal, 0);
	assert_int_equal(rec(1)->ordinal, 1);
	assert_int_equal(rec(2)->ordinal, 0);
	assert_int_equal(rec(0)->site, 0);
}

#define TEXT 0x70000000ULL

/*
 * The call site of a mapping is the one of the first copy from it; the sums of the unknown site move
 * to it.
 */
static void mappings_are_named_by_their_first_copy(void **state)
{
	static const uint64_t first[] = { TEXT + 0x10, TEXT + 0x20, 0 }, second[] = { TEXT + 0x30, 0 };
	const struct ttmon_site *site;

	(void)state;
	feed_object(h, 1, 0, 7, "/bin/app");
	feed_text(h, T, 2, TEXT, TEXT + PAGE, 0, 1);
	feed_mmap(h, T, 100, A, 4 * PAGE);
	feed_mmap(h, T, 101, B, 4 * PAGE);
	feed_alloc(h, T, 102, TTMON_METHOD_HOST_ALLOC, B + 0x100000, PAGE);
	feed_copy(h, T, 200, TTMON_DIR_H2D, DEV, A, 100);
	feed_copy_site(h, T, 201, A, first);
	feed_copy(h, T, 210, TTMON_DIR_H2D, DEV, A, 50);
	feed_copy_site(h, T, 211, A + 8, second);	 /* it has a call site already */
	feed_copy_site(h, T, 212, B + 0x100000, second); /* pinned memory has its own call site */
	feed_copy_site(h, T, 213, 0x1234, second);	 /* no memory is there */
	ttmon_history_finish(h, 1000);
	assert_int_equal(rec(0)->fn, FN_MEMCPY);
	assert_int_not_equal(rec(0)->site, 0);
	site = ttmon_history_site(h, rec(0)->site);
	assert_int_equal(site->nframes, 2);
	assert_int_equal(site->frames[0].offset, 0x10);
	assert_int_equal(site->allocs, 1);
	assert_int_equal(site->h2d[TTMON_MEM_PAGEABLE].copies, 2);
	assert_int_equal(site->h2d[TTMON_MEM_PAGEABLE].bytes, 150);
	assert_int_equal(ttmon_history_site(h, 0)->h2d[TTMON_MEM_PAGEABLE].copies, 0);
	assert_int_equal(rec(1)->site, 0);
	assert_int_equal(rec(2)->site, 0);
	assert_int_not_equal(rec(2)->fn, FN_MEMCPY);
	feed_exit(h, T, 2000);
	ttmon_history_finish(h, 3000);
	assert_int_equal(site->live, 0);
}

/* Before and after the call site is resolved. */
static void names_stay_when_a_list_comes(void **state)
{
	static const uint64_t frames[] = { TEXT + 0x10, 0 };
	const struct ttmon_alloc *a = NULL;

	(void)state;
	for (int late = 0; late < 2; late++) {
		uint64_t base = late ? B : A, t = late ? 1000000000 : 100;

		feed_object(h, 1, 0, 7, "/bin/app");
		feed_text(h, T, 2, TEXT, TEXT + PAGE, 0, 1);
		feed_copy(h, T, t, TTMON_DIR_H2D, DEV, base + PAGE, 100);
		feed_copy_site(h, T, t + 1, base + PAGE, frames);
		if (late)
			ttmon_history_tick(h, t + 500000000);
		feed_map(h, T, t + 10, A, A + 4 * PAGE, "");
		if (late)
			feed_map(h, T, t + 10, B, B + 4 * PAGE, "");
		feed_maps_done(h, T, t + 10, t + 11, late ? 2 : 1);
		ttmon_history_finish(h, t + 600000000);
		assert_int_equal(at(base)->size, 4 * PAGE);
		a = rec(late ? 2 : 0);
		assert_int_equal(a->addr, base + PAGE);
		assert_int_equal(a->free_ns, 0);
		assert_int_equal(a->fn, FN_MEMCPY);
		assert_int_not_equal(a->site, 0);
		assert_int_equal(a->traffic->copies[TTMON_RDIR_H2D], 1);
	}
	assert_int_equal(ttmon_history_site(h, a->site)->allocs, 2);
	assert_int_equal(ttmon_history_site(h, a->site)->live, 2);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(maps_and_unmaps),
		TEST(unmapping_a_part_splits),
		TEST(mapping_over_a_mapping_replaces_it),
		TEST(neighbours_stay_apart),
		TEST(text_is_no_allocation),
		TEST(mremap_grows_and_shrinks_in_place),
		TEST(mremap_moves_keep_identity),
		TEST(mremap_takes_only_what_was_there_at_entry),
		TEST(mremap_of_unknown_memory),
		TEST(brk_moves_the_end_of_the_heap),
		TEST(brk_knows_the_heap_of_a_list),
		TEST(unmapping_registered_memory_is_a_finding),
		TEST(first_list_is_older_than_the_trace),
		TEST(list_of_a_younger_process_is_not_old),
		TEST(list_trims_and_fills),
		TEST(other_file_at_the_same_place),
		TEST(list_names_what_events_could_not),
		TEST(events_before_the_list_are_in_it),
		TEST(events_after_the_list_win),
		TEST(broken_lists_are_refused),
		TEST(empty_list_is_a_list),
		TEST(new_executable_mapping_is_part_of_no_list),
		TEST(made_up_memory_is_settled_by_a_list),
		TEST(made_up_after_the_list_was_read_stays),
		TEST(mmap_event_replaces_a_made_up_one),
		TEST(exec_wipes_everything),
		TEST(exec_spares_the_list_of_the_new_program),
		TEST(forked_child_has_the_parents_mappings),
		TEST(ordinals_tell_mappings_of_one_size_apart),
		TEST(mappings_are_named_by_their_first_copy),
		TEST(names_stay_when_a_list_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
