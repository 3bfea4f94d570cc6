// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_history_torture.c: every allocation of memory that the history makes fails once, and then it
 * and all after it fail. Nothing may crash, leak, or be lost without being counted. The sources are
 * compiled into this test with malloc and friends replaced; the linker then takes none of them from
 * the archive.
 */
#include "tests/unit/feed/history_feed.h"

#include "tests/unit/feed/torture.h"

#include "daemon/core/history/advice.c"
#include "daemon/core/history/calls.c"
#include "daemon/core/history/condensed.c"
#include "daemon/core/history/counts.c"
#include "daemon/core/history/evlog.c"
#include "lib/base/fifo.c"
#include "daemon/core/history/heat.c"
#include "daemon/core/history/history.c"
#include "lib/base/hmap.c"
#include "daemon/core/history/mappings.c"
#include "daemon/core/history/maps.c"
#include "daemon/core/history/pins.c"
#include "daemon/core/history/procs.c"
#include "lib/base/ranges.c"
#include "daemon/core/history/recs.c"
#include "lib/base/seqtab.c"
#include "daemon/core/history/siteq.c"
#include "daemon/core/history/sites.c"
#include "daemon/core/history/symtab.c"
#include "daemon/core/history/transfers.c"
#include "daemon/core/history/ttmem.c"
#include "daemon/core/history/users.c"
#include "daemon/core/history/views.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

#define T   10
#define A   0x40000000ULL
#define DEV 0x20000000ULL

static void feed_tt(struct ttmon_history *h, uint64_t ts, uint64_t i)
{
	struct ttmon_tt_alloc in = { .ts_ns = ts, .addr = 64, .bytes = PAGE, .fn = 256, .method = TTMON_METHOD_TT_L1 };
	struct ttmon_ev_tt_pin pin = {
		.h = feed_head(TTMON_EV_TT_PIN, T, ts),
		.addr = A + (i % 3) * PAGE,
		.size = PAGE,
		.ordinal = i & 1,
		.op = i % TTMON_TT_PIN_OP_MAX,
		.file = i % 5 % 2,
	};
	uint64_t seq = ttmon_history_tt_alloc(h, T, &in);

	if (i % 2)
		ttmon_history_tt_free(h, seq, ts);
	else if (i % 5 == 0)
		ttmon_history_tt_undo(h, seq);
	APPLY(h, pin);
}

/* Feeds a few events of each kind. Returns false if the history could not be created. */
static bool run(struct ttmon_history_totals *totals)
{
	struct ttmon_history_cfg cfg = { .fold_ns = SEC, .max_allocations = 60, .page_heat_bytes = PAGE };
	struct ttmon_history *h = NULL;
	struct ttmon_spot *spots = NULL, some[4];
	struct ttmon_frame frames[4];
	uint32_t tgids[4];
	size_t n;

	if (ttmon_history_new(&cfg, &h) < 0)
		return false;
	feed_clock(h, 4096, 0);
	feed_object(h, 1, 0, 0x11, "/bin/prog");
	feed_text(h, T, 1, 0x400000, 0x500000, 0, 1);
	for (uint64_t i = 0; i < 20; i++) {
		const uint64_t stack[] = { 0x400100 + i % 5, 0 };
		uint64_t ts = (i + 1) * 100 * MS;

		feed_proc(h, T + (uint32_t)i % 3, ts, 1 + i / 12, T, i % 7 == 6 ? TTMON_PROC_EXEC : TTMON_PROC_FORK);
		feed_alloc_at(h, T, ts + 1, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE, stack);
		feed_alloc_at(h, T, ts + 2, TTMON_METHOD_CUSTOM, A + (100 + i) * PAGE, PAGE, stack);
		feed_mmap(h, T, ts + 3, A + (200 + 4 * i) * PAGE, 8 * PAGE);
		feed_alloc(h, T, ts + 4, TTMON_METHOD_REGISTERED, A + (200 + 4 * i) * PAGE, PAGE);
		for (uint64_t c = 0; c < 4; c++)
			feed_copy(h, T, ts + 5 + c, TTMON_DIR_H2D, DEV, A + (i + 98 * c) * PAGE, 3 * PAGE);
		feed_copy(h, T, ts + 20, TTMON_DIR_DEFAULT, DEV, A + (1000 + 3 * i) * PAGE, PAGE);
		feed_copy(h, T, ts + 21, TTMON_DIR_D2H, A + (1001 + 3 * i) * PAGE, DEV, PAGE);
		feed_munmap(h, T, ts + 22, A + (201 + 4 * i) * PAGE, PAGE);
		feed_mremap(h, T, ts + 23, ts + 24, A + (200 + 4 * i) * PAGE, PAGE, A + (5000 + 4 * i) * PAGE,
			    3 * PAGE);
		feed_alloc(h, T, ts + 25, TTMON_METHOD_HOST_ALLOC, A + i * PAGE, PAGE);
		feed_free(h, T, ts, ts + 26, TTMON_METHOD_HOST_ALLOC, A + i * PAGE);
		feed_free(h, T, ts + 27, ts + 28, TTMON_METHOD_HOST_ALLOC, A + i * PAGE);
		feed_tt(h, ts + 28, i);
		ttmon_history_want_maps(h, tgids, 4);
		feed_map(h, T, ts + 29, A, A + 600 * PAGE, "/tmp/file");
		feed_map(h, T, ts + 29, A + 900 * PAGE, A + 1200 * PAGE, "");
		feed_maps_done(h, T, ts + 29, ts + 30, 2);
		feed_symbol(h, 1, 0x100 + i, 1, "function");
		ttmon_history_tick(h, ts + 90 * MS);
		if (i % 8 == 7)
			feed_exit(h, T, ts + 95 * MS);
	}
	ttmon_history_tick(h, 30 * SEC);
	ttmon_history_finish(h, 31 * SEC);
	ttmon_history_want_symbols(h, frames, 4);
	ttmon_history_hotspots(h, some, 4);
	if (ttmon_history_advice(h, &spots, &n) == 0)
		free(spots);
	ttmon_history_get_totals(h, totals);
	/* Whatever was not kept, no figure wraps. */
	assert_true(totals->live < 1000);
	assert_true(totals->pinned_pages < 1000);
	for (size_t i = 0; i < ttmon_history_procs(h); i++)
		assert_true(ttmon_history_proc(h, i)->pinned_bytes < 1 << 30);
	for (size_t i = 0; i < ttmon_history_sites(h); i++)
		assert_true(ttmon_history_site(h, i)->live < 1000);
	ttmon_history_free(h);
	return true;
}

static void each_allocation_fails_in_turn(void **state)
{
	struct ttmon_history_totals totals;
	unsigned int uncounted = 0;
	long all;

	(void)state;
	asked = 0;
	assert_true(run(&totals));
	all = asked;
	assert_true(all > 200);
	assert_int_equal(totals.no_memory, 0);
	for (fail_at = 0; fail_at < all; fail_at++) {
		asked = 0;
		if (run(&totals)) {
			assert_true(totals.no_memory == 0 || totals.incomplete);
			uncounted += totals.no_memory == 0;
		}
	}
	/*
	 * The loss of superseded allocations, names of symbols and the scratch memory of views shows only
	 * where they are read.
	 */
	assert_true(uncounted < (unsigned int)all / 10);
	fail_at = -1;
}

static void memory_runs_out_for_good(void **state)
{
	struct ttmon_history_totals totals;
	long all;

	(void)state;
	fail_at = -1;
	asked = 0;
	assert_true(run(&totals));
	all = asked;
	fail_on = true;
	for (fail_at = 0; fail_at < all; fail_at += 3) {
		asked = 0;
		if (run(&totals) && fail_at < all / 2)
			assert_true(totals.incomplete);
	}
	fail_on = false;
	fail_at = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_fails_in_turn),
		cmocka_unit_test(memory_runs_out_for_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
