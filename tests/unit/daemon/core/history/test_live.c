// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_live.c: live advice: which lines are written when, which are not written twice, and lines that
 * are read late.
 */
#include <ttmon/family.h>

#include "daemon/core/history/live.h"
#include "tests/unit/feed/history_feed.h"

#define T    10
#define A    0x40000000ULL
#define B    0x50000000ULL
#define DEV  0x20000000ULL
#define SIZE 100000ULL

static struct ttmon_history *h;
static uint64_t now;

/*
 * 1 ns a byte pageable, a quarter of that pinned, 4 ns a byte to pin: the sixth copy of all of it
 * pays.
 */
static struct ttmon_history *make(struct ttmon_live_cfg live, uint64_t max_allocations)
{
	struct ttmon_history *made = feed_new((struct ttmon_history_cfg){ .pageable_bps = 1000000000,
									  .pinned_bps = 4000000000,
									  .pinning_bps = 250000000,
									  .pin_call_ns = 1,
									  .unpin_call_ns = 1,
									  .max_allocations = max_allocations,
									  .live = live });

	feed_proc(made, T, 1, 77, 1, TTMON_PROC_SEEN);
	now = SEC;
	return made;
}

static int teardown(void **state)
{
	(void)state;
	ttmon_history_free(h);
	h = NULL;
	return 0;
}

static void until(uint64_t ns)
{
	for (; now < ns; now += 10 * MS)
		ttmon_history_tick(h, now);
	now = ns;
	ttmon_history_tick(h, now);
}

static void copy(uint64_t addr, uint64_t bytes)
{
	feed_copy(h, T, now, TTMON_DIR_H2D, DEV, addr, bytes);
}

static uint64_t lines(void)
{
	struct ttmon_live_totals t;

	ttmon_history_live_totals(h, &t);
	return t.next_seq - 1;
}

static struct ttmon_live_line line(uint64_t seq)
{
	struct ttmon_live_line l = { 0 };

	assert_true(ttmon_history_live(h, seq, &l));
	assert_int_equal(l.seq, seq);
	return l;
}

static struct ttmon_live_totals totals(void)
{
	struct ttmon_live_totals t;

	ttmon_history_live_totals(h, &t);
	return t;
}

/* ---- hot ---- */

static void pins_when_it_pays(void **state)
{
	struct ttmon_live_line l;

	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 0);
	feed_alloc(h, T, now, TTMON_METHOD_CUSTOM, A, SIZE);
	for (unsigned int i = 0; i < 4; i++, now += MS)
		copy(A, SIZE);
	/* Data that comes back from the device counts as much. */
	feed_copy(h, T, now, TTMON_DIR_D2H, A, DEV, SIZE);
	assert_int_equal(lines(), 0);
	copy(A, SIZE);
	assert_int_equal(lines(), 1);
	l = line(1);
	assert_int_equal(l.said, TTMON_SAID_PIN);
	assert_int_equal(l.ts_ns, now);
	assert_int_equal(l.gain_ns, 6 * 75000 - 25 * 16384 - 2);
	assert_int_equal(l.copies, 5);
	assert_int_equal(l.bytes, 5 * SIZE);
	assert_int_equal(l.back_copies, 1);
	assert_int_equal(l.back_bytes, SIZE);
	assert_int_equal(l.reason, TTMON_REASON_PAYS);
	assert_int_equal(l.addr, A);
	assert_int_equal(l.size, SIZE);
	assert_int_equal(l.method, TTMON_METHOD_CUSTOM);
	assert_int_equal(l.tgid, T);
	assert_int_equal(l.start_ns, 77);
	assert_int_equal(l.alloc, 0);
	assert_true(l.confidence > 0.74 && l.confidence < 0.76); /* 6 / (6 + 2) */
	for (unsigned int i = 0; i < 1000; i++, now += MS)
		copy(A, SIZE);
	/* Nor after a long time without events. */
	until(now + 100 * SEC);
	assert_int_equal(lines(), 1);
}

static void pins_at_thresholds(void **state)
{
	static const struct {
		struct ttmon_live_cfg cfg;
		unsigned int copies;
	} cases[] = {
		{ { .pin = TTMON_PIN_FIRST }, 1 },
		{ { .pin = TTMON_PIN_COPIES, .threshold = 3 }, 3 },
		{ { .pin = TTMON_PIN_COPIES }, 1 },
		{ { .pin = TTMON_PIN_BYTES, .threshold = 4 * SIZE - 1 }, 4 },
		{ { .pin = TTMON_PIN_BYTES, .threshold = 4 * SIZE + 1 }, 5 },
	};

	(void)state;
	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		h = make(cases[c].cfg, 0);
		feed_alloc(h, T, now, TTMON_METHOD_CUSTOM, A, SIZE);
		for (unsigned int i = 1; i <= 10; i++, now += MS) {
			copy(A, SIZE);
			assert_int_equal(lines(), i >= cases[c].copies);
		}
		ttmon_history_free(h);
	}
	h = NULL;
}

static void only_pageable_memory(void **state)
{
	(void)state;
	h = make((struct ttmon_live_cfg){ .pin = TTMON_PIN_FIRST }, 0);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, A, SIZE);
	feed_alloc(h, T, now, TTMON_METHOD_MANAGED, B, SIZE);
	feed_alloc(h, T, now, TTMON_METHOD_DEVICE, DEV, SIZE);
	copy(A, SIZE);
	copy(B, SIZE);
	assert_int_equal(lines(), 0);
}

static void made_up_mappings(void **state)
{
	(void)state;
	h = make((struct ttmon_live_cfg){ .pin = TTMON_PIN_FIRST }, 0);
	copy(A + PAGE, PAGE);
	/* The memory in which it lies is not known yet. */
	assert_int_equal(lines(), 0);
	feed_map(h, T, now + 2, A, A + 16 * PAGE, NULL);
	feed_maps_done(h, T, now + 1, now + 2, 1);
	assert_int_equal(lines(), 1);
	assert_int_equal(line(1).said, TTMON_SAID_PIN);
	assert_int_equal(line(1).addr, A + PAGE);
	assert_int_equal(line(1).size, PAGE);
	copy(A + PAGE, PAGE);
	assert_int_equal(lines(), 1);
}

/* It is registered as advised, and unregistered: the next time it takes twice as many copies. */
static void registered_and_back(void **state)
{
	unsigned int said = 0, copies = 0;

	(void)state;
	h = make((struct ttmon_live_cfg){ .pin = TTMON_PIN_COPIES, .threshold = 3 }, 0);
	feed_mmap(h, T, now, A, 16 * PAGE);
	for (unsigned int round = 0; round < 9; round++) {
		for (copies = 0; lines() == said; copies++, now += MS)
			copy(A, PAGE);
		assert_int_equal(copies, 3u << MIN(round, 6u));
		said++;
		now += MS;
		feed_alloc(h, T, now, TTMON_METHOD_REGISTERED, A, 16 * PAGE);
		copy(A, PAGE);
		now += MS;
		feed_free(h, T, now, now + 1, TTMON_METHOD_REGISTERED, A);
		now += MS;
	}
	assert_int_equal(totals().said[TTMON_SAID_PIN], 9);
	assert_int_equal(totals().said[TTMON_SAID_KEEP], 0);
}

static void pays_twice(void **state)
{
	static const unsigned int after[] = { 6, 11, 22, 43 };

	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 0);
	feed_mmap(h, T, now, A, 16 * PAGE);
	for (unsigned int round = 0; round < ARRAY_SIZE(after); round++) {
		unsigned int copies = 0;

		for (; lines() == round; copies++, now += MS)
			copy(A, 16 * PAGE);
		assert_int_equal(copies, after[round]);
		feed_alloc(h, T, now, TTMON_METHOD_REGISTERED, A, 16 * PAGE);
		feed_free(h, T, now + MS, now + MS, TTMON_METHOD_REGISTERED, A);
		now += 2 * MS;
	}
}

/* ---- cold ---- */

static void unpins_what_is_not_moved(void **state)
{
	struct ttmon_live_line l;

	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 0);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, A, SIZE);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, B, SIZE);
	until(5 * SEC);
	copy(B, PAGE);
	until(11 * SEC - MS);
	assert_int_equal(lines(), 0);
	until(11 * SEC);
	assert_int_equal(lines(), 1);
	l = line(1);
	assert_int_equal(l.said, TTMON_SAID_UNPIN);
	assert_int_equal(l.addr, A);
	assert_int_equal(l.ts_ns, 11 * SEC);
	assert_int_equal(l.gain_ns, 25 * 16384 + 2);
	assert_int_equal(l.reason, TTMON_REASON_NEVER_COPIED);
	assert_true(l.confidence > 0.9 && l.confidence < 0.91); /* 10 s / (10 s + 1 s) */
	until(15 * SEC - MS);
	assert_int_equal(lines(), 1);
	/* The time is exact to a 32nd. */
	until(15 * SEC + 320 * MS);
	assert_int_equal(lines(), 2);
	assert_int_equal(line(2).addr, B);
	assert_int_equal(line(2).copies, 1);
	until(1000 * SEC);
	assert_int_equal(lines(), 2);
	assert_int_equal(totals().followed, 2);
}

/*
 * Memory that has paid for its pin is not cold, however quiet it is. Data that the device writes back
 * counts too.
 */
static void what_has_paid_stays(void **state)
{
	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 0);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, A, SIZE);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, B, SIZE);
	for (unsigned int i = 0; i < 6; i++, now += MS) {
		copy(A, SIZE);
		feed_copy(h, T, now, TTMON_DIR_D2H, B, DEV, SIZE);
	}
	until(1000 * SEC);
	assert_int_equal(lines(), 0);
}

static void twice_as_long_each_time(void **state)
{
	uint64_t wait = 10 * SEC;

	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 0);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, A, SIZE);
	for (unsigned int round = 0; round < 9; round++) {
		until(now + wait - MS);
		assert_int_equal(lines(), 2 * round);
		until(now + wait / 32 + 320 * MS);
		assert_int_equal(lines(), 2 * round + 1);
		assert_int_equal(line(2 * round + 1).said, TTMON_SAID_UNPIN);
		copy(A, PAGE);
		assert_int_equal(line(2 * round + 2).said, TTMON_SAID_KEEP);
		assert_int_equal(line(2 * round + 2).ts_ns, now);
		wait = MIN(2 * wait, 640 * SEC);
	}
}

static void kernel_reads(uint64_t addr)
{
	struct ttmon_ev_gpu_use ev = {
		.h = feed_fact(TTMON_EV_GPU_USE, T, now), .addr = addr, .size = 32, .reads = 1, .sectors = 1
	};

	APPLY(h, ev);
}

/* Memory that kernels read in place is as warm as memory that is copied. */
static void kernels_keep_it_warm(void **state)
{
	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 0);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, A, SIZE);
	for (unsigned int i = 0; i < 20; i++) {
		until(now + 5 * SEC);
		kernel_reads(A + PAGE);
	}
	assert_int_equal(lines(), 0);
	until(now + 20 * SEC);
	assert_int_equal(lines(), 1);
	/* It is known by now that a kernel may use it again: the advice to unpin is withdrawn. */
	assert_int_equal(line(1).said, TTMON_SAID_COLD);
	kernel_reads(A);
	assert_int_equal(line(2).said, TTMON_SAID_KEEP);
}

/* A buffer that is used slightly more often than would make it cold. */
static void does_not_flap(void **state)
{
	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 0);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, A, SIZE);
	for (unsigned int i = 0; i < 300; i++) {
		until(now + 11 * SEC);
		copy(A, PAGE);
	}
	assert_int_equal(totals().said[TTMON_SAID_UNPIN], 1);
	assert_int_equal(totals().said[TTMON_SAID_KEEP], 1);
	/* Busy for a minute, idle for a minute. */
	for (unsigned int i = 0; i < 30; i++) {
		for (unsigned int k = 0; k < 60; k++) {
			until(now + SEC);
			copy(A, PAGE);
		}
		until(now + 60 * SEC);
	}
	assert_true(lines() <= 2 + 2 * 3);
}

static void flags(uint64_t addr, uint32_t api_flags)
{
	struct ttmon_ev_alloc ev = { .h = feed_head(TTMON_EV_ALLOC, T, now),
				     .entry_ns = now,
				     .addr = addr,
				     .size = SIZE,
				     .fn = FN_HOST,
				     .flags = api_flags,
				     .method = TTMON_METHOD_HOST_ALLOC };

	feed_alloc_full(h, ev, NULL);
}

static void ask_pointer(uint64_t addr)
{
	struct ttmon_ev_hint ev = {
		.h = feed_head(TTMON_EV_HINT, T, now), .addr = addr, .fn = FN_HOST, .hint = TTMON_HINT_DEVICE_PTR
	};

	APPLY(h, ev);
}

static void use_by_the_gpu_unknown(void **state)
{
	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 0);
	flags(A, 1);		/* portable */
	flags(A + SIZE, 2);	/* mapped */
	flags(A + 2 * SIZE, 4); /* write-combined */
	flags(A + 3 * SIZE, 0);
	ask_pointer(A + 3 * SIZE);
	flags(A + 4 * SIZE, 0);
	until(12 * SEC);
	assert_int_equal(lines(), 5);
	for (unsigned int i = 1; i <= 4; i++) {
		assert_int_equal(line(i).said, TTMON_SAID_COLD);
		assert_int_equal(line(i).gain_ns, 0);
	}
	assert_int_equal(line(5).said, TTMON_SAID_UNPIN);
	/* The device pointer is requested later: unpinning the memory is no longer safe. */
	ask_pointer(A + 4 * SIZE);
	ask_pointer(A + 4 * SIZE);
	assert_int_equal(lines(), 6);
	assert_int_equal(line(6).said, TTMON_SAID_COLD);
	assert_int_equal(line(6).addr, A + 4 * SIZE);
	copy(A + 4 * SIZE, PAGE);
	assert_int_equal(line(7).said, TTMON_SAID_KEEP);
	until(60 * SEC);
	assert_int_equal(line(8).said, TTMON_SAID_COLD);
}

static void copies_in_graphs(void **state)
{
	struct ttmon_ev_copy ev;

	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 0);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, A, SIZE);
	ev = feed_make_copy(T, now, TTMON_DIR_H2D, DEV, A, PAGE);
	ev.bits |= TTMON_B_CAPTURED;
	APPLY(h, ev);
	until(12 * SEC);
	assert_int_equal(line(1).said, TTMON_SAID_COLD);
}

static void what_is_freed(void **state)
{
	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 0);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, A, SIZE);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, B, SIZE);
	until(10 * SEC);
	feed_free(h, T, now, now + 1, TTMON_METHOD_HOST_ALLOC, B);
	until(12 * SEC);
	assert_int_equal(lines(), 1);
	assert_int_equal(totals().followed, 1);
	feed_free(h, T, now, now + 1, TTMON_METHOD_HOST_ALLOC, A);
	assert_int_equal(totals().followed, 0);
	/* Another allocation at its address starts from zero. */
	until(13 * SEC);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, A, SIZE);
	copy(A, PAGE);
	until(23 * SEC - MS);
	assert_int_equal(lines(), 1);
	until(24 * SEC);
	assert_int_equal(lines(), 2);
}

static void a_process_ends(void **state)
{
	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 0);
	for (unsigned int i = 0; i < 100; i++)
		feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, A + i * SIZE, SIZE);
	until(5 * SEC);
	for (unsigned int i = 0; i < 50; i++)
		copy(A + i * SIZE, PAGE);
	until(11 * SEC);
	assert_int_equal(lines(), 50);
	assert_int_equal(totals().followed, 100);
	feed_exit(h, T, now);
	until(1000 * SEC);
	assert_int_equal(lines(), 50);
	assert_int_equal(totals().followed, 0);
}

static void tt_pin(unsigned int op, uint64_t addr)
{
	struct ttmon_ev_tt_pin ev = { .h = feed_head(TTMON_EV_TT_PIN, T, now),
				      .entry_ns = now,
				      .addr = addr,
				      .size = 2 * PAGE,
				      .op = op,
				      .file = 1 };

	APPLY(h, ev);
}

static void drivers_memory(void **state)
{
	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 0);
	feed_alloc(h, T, now, TTMON_METHOD_DEVICE, B, SIZE);
	tt_pin(TTMON_TT_DMA_BUF, 0);
	until(100 * SEC);
	assert_int_equal(totals().followed, 0);
	/* Its transfers are made by the device and are not seen. */
	tt_pin(TTMON_TT_PIN, A);
	until(111 * SEC);
	assert_int_equal(lines(), 1);
	assert_int_equal(line(1).addr, A);
	assert_int_equal(line(1).said, TTMON_SAID_COLD);
}

static void family(uint32_t which, uint32_t to)
{
	struct ttmon_ev_family ev = { .h = feed_fact(TTMON_EV_FAMILY, 0, now), .family = which, .state = to };

	APPLY(h, ev);
}

/* While transfers are not seen, it is unknown what is cold. */
static void blind(void **state)
{
	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 0);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, A, SIZE);
	family(TTMON_FAMILY_LAUNCH, TTMON_FAMILY_OFF);
	family(TTMON_FAMILY_TRANSFER, TTMON_FAMILY_COUNTING);
	until(105 * SEC);
	assert_int_equal(lines(), 0);
	family(TTMON_FAMILY_TRANSFER, TTMON_FAMILY_ON);
	until(115 * SEC - MS);
	assert_int_equal(lines(), 0);
	until(116 * SEC);
	assert_int_equal(lines(), 1);
	assert_true(line(1).confidence < 0.7);
}

/* ---- bounds ---- */

static void lines_run_over(void **state)
{
	struct ttmon_live_line l;

	(void)state;
	h = make((struct ttmon_live_cfg){ .pin = TTMON_PIN_FIRST, .lines = 100 }, 0);
	assert_false(ttmon_history_live(h, 0, &l));
	assert_int_equal(totals().first_seq, 1);
	for (unsigned int i = 0; i < 300; i++) {
		feed_alloc(h, T, now, TTMON_METHOD_CUSTOM, A + i * SIZE, SIZE);
		copy(A + i * SIZE, SIZE);
	}
	/* 128: the next power of two. */
	assert_int_equal(totals().first_seq, 173);
	assert_int_equal(totals().next_seq, 301);
	assert_int_equal(totals().said[TTMON_SAID_PIN], 300);
	for (uint64_t seq = 0; seq <= 173; seq++) {
		assert_true(ttmon_history_live(h, seq, &l));
		assert_int_equal(l.seq, 173);
	}
	for (uint64_t seq = 173; seq <= 300; seq++)
		assert_int_equal(line(seq).addr, A + (seq - 1) * SIZE);
	assert_false(ttmon_history_live(h, 301, &l));
	assert_false(ttmon_history_live(h, UINT64_MAX, &l));
}

/*
 * A process that reports nothing but checkpoints leaves room for the lines of others; its periods are
 * counted all the same.
 */
static void a_loop_of_checkpoints(void **state)
{
	union feed_record rec = { 0 };
	struct ttmon_ev_checkpoint ev = { .h = feed_head(TTMON_EV_CHECKPOINT, T, 2 * SEC), .label = "x" };
	struct ttmon_live_totals t;
	struct ttmon_live_line l;

	(void)state;
	h = make((struct ttmon_live_cfg){ .pin = TTMON_PIN_FIRST }, 0);
	for (unsigned int i = 0; i < TTMON_LIVE_CHECKPOINTS + 5; i++) {
		memcpy(&rec, &ev, sizeof(ev));
		ttmon_history_apply(h, &rec.h, sizeof(ev), false);
	}
	ttmon_history_live_totals(h, &t);
	assert_int_equal(t.said[TTMON_SAID_CHECKPOINT], TTMON_LIVE_CHECKPOINTS);
	assert_int_equal(t.unheard, 5);
	/* A second later. */
	ev.h.ts_ns += SEC + 1;
	memcpy(&rec, &ev, sizeof(ev));
	ttmon_history_apply(h, &rec.h, sizeof(ev), false);
	l = line(TTMON_LIVE_CHECKPOINTS + 1);
	assert_int_equal(l.said, TTMON_SAID_CHECKPOINT);
	assert_int_equal(l.period, TTMON_LIVE_CHECKPOINTS + 6);
}

static void periods(void **state)
{
	static const char label[] =
		"a label of more than sixty-three characters, which is the most that is kept of one";
	union feed_record rec = { 0 };
	struct ttmon_ev_checkpoint ev = { .h = feed_head(TTMON_EV_CHECKPOINT, T, 2 * SEC) };
	struct ttmon_live_line l;

	(void)state;
	h = make((struct ttmon_live_cfg){ .pin = TTMON_PIN_FIRST }, 0);
	memcpy(ev.label, label, sizeof(ev.label) - 1);
	memcpy(&rec, &ev, sizeof(ev));
	feed_alloc(h, T, now, TTMON_METHOD_CUSTOM, A, SIZE);
	copy(A, SIZE);
	assert_int_equal(line(1).period, 0);
	assert_string_equal(line(1).label, "");
	ttmon_history_apply(h, &rec.h, sizeof(ev), false);
	l = line(2);
	assert_int_equal(l.said, TTMON_SAID_CHECKPOINT);
	assert_int_equal(l.period, 1);
	assert_int_equal(strlen(l.label), TTMON_LIVE_LABEL - 1);
	assert_memory_equal(l.label, label, TTMON_LIVE_LABEL - 1);
	assert_int_equal(l.alloc, UINT64_MAX);
	assert_int_equal(l.ts_ns, 2 * SEC);
	feed_alloc(h, T, now, TTMON_METHOD_CUSTOM, B, SIZE);
	copy(B, SIZE);
	assert_int_equal(line(3).period, 1);
	assert_memory_equal(line(3).label, label, TTMON_LIVE_LABEL - 1);
	/* Each process has its own. */
	feed_proc(h, T + 1, now, 78, 1, TTMON_PROC_SEEN);
	feed_alloc(h, T + 1, now, TTMON_METHOD_CUSTOM, B, SIZE);
	feed_copy(h, T + 1, now, TTMON_DIR_H2D, DEV, B, SIZE);
	assert_int_equal(line(4).period, 0);
	assert_int_equal(line(4).tgid, T + 1);
}

/* The work for many at once is spread over many ticks. */
static void a_tick_is_bounded(void **state)
{
	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 0);
	for (unsigned int i = 0; i < 2000; i++)
		feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, A + i * SIZE, SIZE);
	ttmon_history_tick(h, 10 * SEC);
	for (unsigned int i = 0; i < 2000; i += 2)
		feed_copy(h, T, 10 * SEC, TTMON_DIR_H2D, DEV, A + i * SIZE, PAGE);
	ttmon_history_tick(h, 12 * SEC);
	assert_int_equal(lines(), 128);
	assert_int_equal(totals().followed, 256);
	for (unsigned int i = 0; i < 7; i++)
		ttmon_history_tick(h, 12 * SEC);
	assert_int_equal(lines(), 1000);
	assert_int_equal(totals().followed, 2000);
	ttmon_history_tick(h, 21 * SEC);
	assert_int_equal(lines(), 1000 + 256);
	for (unsigned int i = 0; i < 4; i++)
		ttmon_history_tick(h, 21 * SEC);
	assert_int_equal(lines(), 2000);
	assert_int_equal(totals().unheard, 0);
}

/* As many allocations as there may be; those that were freed count for as long as they wait. */
static void too_many_to_follow(void **state)
{
	(void)state;
	h = make((struct ttmon_live_cfg){ 0 }, 4);
	for (unsigned int i = 0; i < 4; i++)
		feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, A + i * SIZE, SIZE);
	until(11 * SEC);
	for (unsigned int i = 0; i < 4; i++) {
		copy(A + i * SIZE, PAGE);
		feed_free(h, T, now + 1, now + 2, TTMON_METHOD_HOST_ALLOC, A + i * SIZE);
	}
	assert_int_equal(lines(), 8);
	assert_int_equal(totals().followed, 4);
	for (unsigned int i = 0; i < 4; i++)
		feed_alloc(h, T, now + 3, TTMON_METHOD_HOST_ALLOC, B + i * SIZE, SIZE);
	until(25 * SEC);
	assert_int_equal(lines(), 8);
	assert_int_equal(totals().followed, 4);
	assert_int_equal(totals().unheard, 4);
	until(40 * SEC);
	assert_int_equal(totals().followed, 0);
}

static void the_largest_numbers(void **state)
{
	(void)state;
	h = make((struct ttmon_live_cfg){ .cold_ns = UINT64_MAX, .lines = UINT32_MAX }, 0);
	feed_alloc(h, T, now, TTMON_METHOD_CUSTOM, PAGE, UINT64_MAX - PAGE);
	for (unsigned int i = 0; i < 20; i++)
		copy(PAGE, UINT64_MAX);
	assert_true(lines() <= 1);
	feed_alloc(h, T, UINT64_MAX - 5, TTMON_METHOD_HOST_ALLOC, A, SIZE);
	ttmon_history_tick(h, UINT64_MAX);
	ttmon_history_free(h);

	h = make((struct ttmon_live_cfg){ .cold_ns = 1, .pin = TTMON_PIN_BYTES, .threshold = UINT64_MAX }, 0);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, A, SIZE);
	for (unsigned int i = 0; i < 10; i++) {
		ttmon_history_tick(h, UINT64_MAX - 100 + 2 * i);
		feed_copy(h, T, UINT64_MAX - 100 + 2 * i, TTMON_DIR_H2D, DEV, A, UINT64_MAX);
		ttmon_history_tick(h, UINT64_MAX - 99 + 2 * i);
	}
	for (unsigned int i = 0; i < 20; i++)
		ttmon_history_tick(h, UINT64_MAX);
	assert_true(lines() >= 2);
	assert_int_equal(totals().unheard, 0);
}

static void off(void **state)
{
	(void)state;
	h = make((struct ttmon_live_cfg){ .off = true, .pin = TTMON_PIN_FIRST }, 0);
	feed_alloc(h, T, now, TTMON_METHOD_CUSTOM, A, SIZE);
	feed_alloc(h, T, now, TTMON_METHOD_HOST_ALLOC, B, SIZE);
	copy(A, SIZE);
	until(100 * SEC);
	assert_int_equal(lines(), 0);
	assert_int_equal(totals().followed, 0);
}

#define X(f) cmocka_unit_test_teardown(f, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		X(pins_when_it_pays),
		X(pins_at_thresholds),
		X(only_pageable_memory),
		X(made_up_mappings),
		X(registered_and_back),
		X(pays_twice),
		X(unpins_what_is_not_moved),
		X(what_has_paid_stays),
		X(twice_as_long_each_time),
		X(kernels_keep_it_warm),
		X(does_not_flap),
		X(use_by_the_gpu_unknown),
		X(copies_in_graphs),
		X(what_is_freed),
		X(a_process_ends),
		X(drivers_memory),
		X(blind),
		X(lines_run_over),
		X(a_loop_of_checkpoints),
		X(periods),
		X(a_tick_is_bounded),
		X(too_many_to_follow),
		X(the_largest_numbers),
		X(off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
