// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_pipeline.c: records in, slots and sums out, and the accounting identity with each of its terms.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/stream/pipeline.h"

#define MS	TTMON_SLOT_NS
#define NR_CPUS 4
#define TGID	1000

struct published {
	struct ttmon_slot slots[4096];
	size_t nr;
	bool full; /* the queue */
};

static struct published out;

static bool publish(void *ctx, const struct ttmon_slot *slot, const struct ttmon_slot_row *rows, size_t n)
{
	struct published *o = ctx;

	(void)rows;
	assert_int_equal(slot->nr_rows, n);
	if (o->full)
		return false;
	assert_true(o->nr < ARRAY_SIZE(o->slots));
	o->slots[o->nr++] = *slot;
	return true;
}

static struct ttmon_pipeline *make_with(const struct ttmon_slots_cfg *slots)
{
	struct ttmon_pipeline_cfg cfg = { .nr_cpus = NR_CPUS };
	struct ttmon_pipeline *p = NULL;

	if (slots)
		cfg.slots = *slots;
	out = (struct published){ 0 };
	assert_int_equal(ttmon_pipeline_new(&cfg, publish, &out, &p), 0);
	return p;
}

static struct ttmon_pipeline *make(void)
{
	return make_with(NULL);
}

static struct ttmon_event header(unsigned int kind, uint64_t ts_ns, unsigned int cpu)
{
	return (struct ttmon_event){
		.ts_ns = ts_ns, .kind = (uint16_t)kind, .cpu = (uint16_t)cpu, .tgid = TGID, .tid = TGID
	};
}

static void feed_clock(struct ttmon_pipeline *p)
{
	struct ttmon_ev_clock ev = { .h = header(TTMON_EV_CLOCK, 1, TTMON_CPU_DAEMON),
				     .nr_cpus = NR_CPUS,
				     .page_size = 4096 };

	ttmon_pipeline_feed(p, &ev, sizeof(ev));
}

static void feed_alloc(struct ttmon_pipeline *p, uint64_t ts_ns, uint64_t addr, uint64_t size, int err)
{
	struct ttmon_ev_alloc ev = {
		.h = header(TTMON_EV_ALLOC, ts_ns, 0),
		.entry_ns = ts_ns - 10,
		.addr = err ? 0 : addr,
		.size = size,
		.err = err,
		.fn = 1,
		.method = TTMON_METHOD_HOST_ALLOC,
	};

	ttmon_pipeline_feed(p, &ev, sizeof(ev));
}

static void feed_free(struct ttmon_pipeline *p, uint64_t ts_ns, uint64_t addr, int err)
{
	struct ttmon_ev_free ev = {
		.h = header(TTMON_EV_FREE, ts_ns, 0),
		.entry_ns = ts_ns - 10,
		.addr = addr,
		.err = err,
		.fn = 3,
		.method = TTMON_METHOD_HOST_ALLOC,
	};

	ttmon_pipeline_feed(p, &ev, sizeof(ev));
}

static void feed_copy(struct ttmon_pipeline *p, uint64_t ts_ns, uint64_t bytes, int err, uint16_t bits)
{
	struct ttmon_ev_copy ev = {
		.h = header(TTMON_EV_COPY, ts_ns, 1),
		.entry_ns = ts_ns,
		.dst = 0x7f0000000000,
		.src = 0x10000,
		.bytes = bytes,
		.err = err,
		.fn = 16,
		.bits = bits,
		.dir = TTMON_DIR_H2D,
	};

	ttmon_pipeline_feed(p, &ev, sizeof(ev));
}

static void feed_rect(struct ttmon_pipeline *p, uint64_t ts_ns, uint64_t width, uint64_t rows, uint64_t slices)
{
	struct ttmon_ev_copy_rect ev = {
		.h = header(TTMON_EV_COPY_RECT, ts_ns, 1),
		.entry_ns = ts_ns,
		.dst = 0x7f0000000000,
		.src = 0x10000,
		.width = width,
		.rows = rows,
		.slices = slices,
		.dpitch = width,
		.spitch = width,
		.fn = 18,
		.dir = TTMON_DIR_H2D,
	};

	ttmon_pipeline_feed(p, &ev, sizeof(ev));
}

/* An event that only carries a time, a CPU and a running loss count. */
static void feed_munmap(struct ttmon_pipeline *p, uint64_t ts_ns, unsigned int cpu, uint32_t lost)
{
	struct ttmon_ev_munmap ev = { .h = header(TTMON_EV_MUNMAP, ts_ns, cpu), .addr = 4096, .len = 4096 };

	ev.h.lost = lost;
	ttmon_pipeline_feed(p, &ev, sizeof(ev));
}

static void feed_lost(struct ttmon_pipeline *p, uint64_t ts_ns, uint32_t cpu, unsigned int kind, uint64_t attempted,
		      uint64_t lost)
{
	struct ttmon_ev_lost ev = {
		.h = header(TTMON_EV_LOST, ts_ns, TTMON_CPU_DAEMON),
		.stat_cpu = cpu,
		.stat_kind = kind,
		.attempted = attempted,
		.lost = lost,
	};

	ttmon_pipeline_feed(p, &ev, sizeof(ev));
}

static void feed_reasons(struct ttmon_pipeline *p, uint64_t ts_ns, uint32_t cpu, uint64_t ring_full,
			 uint64_t read_failed)
{
	struct ttmon_ev_lost ev = {
		.h = header(TTMON_EV_LOST, ts_ns, TTMON_CPU_DAEMON),
		.stat_cpu = cpu,
		.reason = { [TTMON_LOSS_RING_FULL] = ring_full, [TTMON_LOSS_READ_FAILED] = read_failed },
		.nested = 5,
	};

	ttmon_pipeline_feed(p, &ev, sizeof(ev));
}

static void assert_identity(const struct ttmon_pipeline *p)
{
	char why[200] = "";

	if (!ttmon_pipeline_check(p, why, sizeof(why)))
		fail_msg("%s", why);
}

static void assert_refuted(const struct ttmon_pipeline *p, const char *word)
{
	char why[200] = "";

	assert_false(ttmon_pipeline_check(p, why, sizeof(why)));
	assert_non_null(strstr(why, word));
	assert_null(strchr(why, '\n'));
}

static void refuses_bad_cfg(void **state)
{
	struct ttmon_pipeline_cfg cfg = { .nr_cpus = 0 };
	struct ttmon_pipeline *p = NULL;

	(void)state;
	assert_int_equal(ttmon_pipeline_new(&cfg, NULL, NULL, &p), -EINVAL);
	cfg.nr_cpus = TTMON_CPU_DAEMON + 1;
	assert_int_equal(ttmon_pipeline_new(&cfg, NULL, NULL, &p), -EINVAL);
	cfg.nr_cpus = 1;
	cfg.slots.window = 1;
	assert_int_equal(ttmon_pipeline_new(&cfg, NULL, NULL, &p), -EINVAL);
	assert_null(p);
	ttmon_pipeline_free(NULL);
}

static void sums_each_slot(void **state)
{
	struct ttmon_pipeline *p = make();

	(void)state;
	feed_clock(p);
	ttmon_pipeline_advance(p, 10 * MS);
	feed_alloc(p, 10 * MS + 20, 0x10000, 8192, 0);
	feed_alloc(p, 10 * MS + 40, 0, 4096, 2); /* failed */
	feed_copy(p, 10 * MS + 50, 100, 0, 0);
	feed_copy(p, 10 * MS + 51, 100, 1, 0);		      /* failed */
	feed_copy(p, 10 * MS + 52, 100, 0, TTMON_B_CAPTURED); /* a graph node */
	feed_rect(p, 10 * MS + 60, 16, 4, 2);
	feed_free(p, 12 * MS + 70, 0x10000, 0);
	feed_free(p, 12 * MS + 80, 0x10000, 1);
	feed_copy(p, 5 * MS, 7, 0, 0); /* late */
	ttmon_pipeline_advance(p, 13 * MS);

	assert_int_equal(out.nr, 3);
	assert_int_equal(out.slots[0].no, 10);
	assert_int_equal(out.slots[0].events, 7);
	assert_int_equal(out.slots[0].late, 1);
	assert_int_equal(out.slots[0].allocs, 1);
	assert_int_equal(out.slots[0].frees, 0);
	assert_int_equal(out.slots[0].copies, 3);
	assert_int_equal(out.slots[0].copy_bytes, 100 + 128 + 7);
	assert_int_equal(out.slots[0].pinned_pages, 2);
	assert_int_equal(out.slots[1].events, 0);
	assert_int_equal(out.slots[1].copies, 0);
	assert_int_equal(out.slots[1].pinned_pages, 2);
	assert_int_equal(out.slots[2].frees, 1);
	assert_int_equal(out.slots[2].pinned_pages, 0);
	assert_identity(p);
	ttmon_pipeline_free(p);
}

static void sums_do_not_wrap(void **state)
{
	struct ttmon_pipeline *p = make();

	(void)state;
	feed_clock(p);
	feed_rect(p, 10, UINT64_MAX / 2, 3, 1);
	feed_copy(p, 20, 100, 0, 0);
	feed_rect(p, MS + 10, 1ULL << 32, 1ULL << 31, 2);
	ttmon_pipeline_finish(p, 3 * MS);
	assert_int_equal(out.slots[0].copy_bytes, UINT64_MAX);
	assert_int_equal(out.slots[0].copies, 2);
	assert_int_equal(out.slots[1].copy_bytes, UINT64_MAX);
	ttmon_pipeline_free(p);
}

static void facts_come_at_once_and_events_in_order(void **state)
{
	struct ttmon_pipeline *p = make();
	struct ttmon_history_totals totals;
	struct ttmon_accounting acct;

	(void)state;
	assert_null(ttmon_history_clock(ttmon_pipeline_history(p)));
	feed_clock(p);
	assert_non_null(ttmon_history_clock(ttmon_pipeline_history(p)));

	ttmon_pipeline_advance(p, MS);
	/* Reported in the wrong order, over two slots: allocated, freed, allocated again. */
	feed_alloc(p, 2 * MS + 50, 0x10000, 4096, 0);
	feed_free(p, 2 * MS + 30, 0x10000, 0);
	feed_alloc(p, MS + 10, 0x10000, 4096, 0);
	ttmon_history_get_totals(ttmon_pipeline_history(p), &totals);
	assert_int_equal(totals.allocs, 0);
	ttmon_pipeline_advance(p, 2 * MS);
	ttmon_history_get_totals(ttmon_pipeline_history(p), &totals);
	assert_int_equal(totals.allocs, 1);
	ttmon_pipeline_finish(p, 4 * MS);
	ttmon_history_get_totals(ttmon_pipeline_history(p), &totals);
	assert_int_equal(totals.allocs, 2);
	assert_int_equal(totals.frees, 1);
	assert_int_equal(totals.unknown_frees, 0);
	assert_int_equal(totals.pinned_pages, 1);

	ttmon_pipeline_accounting(p, &acct);
	assert_int_equal(acct.facts, 1);
	assert_int_equal(acct.decoded[TTMON_EV_CLOCK], 1);
	assert_int_equal(acct.decoded[TTMON_EV_ALLOC], 2);
	assert_int_equal(acct.slotted, 3);
	assert_int_equal(acct.closed, 3);
	ttmon_pipeline_free(p);
}

static void separates_malformed_events_and_facts(void **state)
{
	struct ttmon_pipeline *p = make();
	struct ttmon_ev_munmap ev = { .h = header(TTMON_EV_MUNMAP, 1, NR_CPUS) };
	struct ttmon_ev_clock clock = { .h = header(TTMON_EV_CLOCK, 1, TTMON_CPU_DAEMON) };
	struct ttmon_accounting acct;

	(void)state;
	ttmon_pipeline_feed(p, &ev, sizeof(ev));
	ttmon_pipeline_feed(p, &ev, 16);
	ttmon_pipeline_feed(p, &ev, 0);
	ttmon_pipeline_feed(p, &clock, sizeof(clock));
	clock.h.kind = TTMON_EV_MAX;
	ttmon_pipeline_feed(p, &clock, sizeof(clock));
	ttmon_pipeline_accounting(p, &acct);
	assert_int_equal(acct.malformed[TTMON_DECODE_CPU], 1);
	assert_int_equal(acct.malformed[TTMON_DECODE_SHORT], 2);
	assert_int_equal(acct.malformed[TTMON_DECODE_VALUE], 0);
	assert_int_equal(acct.malformed_facts[TTMON_DECODE_VALUE], 1);
	assert_int_equal(acct.malformed_facts[TTMON_DECODE_KIND], 1);
	assert_int_equal(acct.malformed_facts[TTMON_DECODE_CPU], 0);
	assert_identity(p);
	ttmon_pipeline_free(p);
}

static void takes_records_at_any_address(void **state)
{
	struct ttmon_pipeline *p = make();
	struct ttmon_ev_munmap ev = { .h = header(TTMON_EV_MUNMAP, 7 * MS, 2) };
	static uint8_t raw[TTMON_RECORD_MAX + 64];
	struct ttmon_accounting acct;

	(void)state;
	for (size_t at = 0; at < 8; at++) {
		memcpy(raw + at, &ev, sizeof(ev));
		ttmon_pipeline_feed(p, raw + at, sizeof(ev));
		ttmon_pipeline_feed(p, raw + at, TTMON_RECORD_MAX + 8);
	}
	ttmon_pipeline_finish(p, 8 * MS);
	ttmon_pipeline_accounting(p, &acct);
	assert_int_equal(acct.decoded[TTMON_EV_MUNMAP], 8);
	assert_int_equal(acct.malformed[TTMON_DECODE_SHORT], 8);
	assert_int_equal(out.slots[0].no, 7);
	assert_int_equal(out.slots[0].events, 8);
	ttmon_pipeline_free(p);
}

static void tells_kernel_losses_by_slot(void **state)
{
	struct ttmon_pipeline *p = make();

	(void)state;
	feed_munmap(p, 10 * MS + 1, 0, 3); /* 3 before the first record of CPU 0 */
	feed_munmap(p, 10 * MS + 2, 1, 0);
	feed_munmap(p, 11 * MS + 1, 0, 3);
	feed_munmap(p, 11 * MS + 2, 1, 10);
	feed_munmap(p, 11 * MS + 3, 1, 9); /* its time is out of order */
	feed_munmap(p, 11 * MS + 4, 1, 12);
	feed_munmap(p, 12 * MS, 0, 4);
	feed_munmap(p, 12 * MS, 1, 12);
	ttmon_pipeline_finish(p, 13 * MS);
	assert_int_equal(out.slots[0].kernel_lost, 3);
	assert_int_equal(out.slots[1].kernel_lost, 12);
	assert_int_equal(out.slots[2].kernel_lost, 1);
	ttmon_pipeline_free(p);

	p = make(); /* the running count wraps */
	feed_munmap(p, 0, 0, UINT32_MAX - 1);
	feed_munmap(p, MS, 0, UINT32_MAX);
	feed_munmap(p, 2 * MS, 0, 4);
	feed_munmap(p, 3 * MS, 0, UINT32_MAX);
	feed_munmap(p, 4 * MS, 0, 5);
	ttmon_pipeline_finish(p, 5 * MS);
	assert_int_equal(out.slots[0].kernel_lost, UINT32_MAX - 1);
	assert_int_equal(out.slots[1].kernel_lost, 1);
	assert_int_equal(out.slots[2].kernel_lost, 5);
	assert_int_equal(out.slots[3].kernel_lost, 0);
	assert_int_equal(out.slots[4].kernel_lost, 1);
	ttmon_pipeline_free(p);
}

static void adds_kernel_counts_over_cpus(void **state)
{
	struct ttmon_pipeline *p = make();
	struct ttmon_kernel_counts counts;

	(void)state;
	ttmon_pipeline_kernel_counts(p, &counts);
	assert_false(counts.known);
	feed_lost(p, 100, 0, TTMON_EV_COPY, 7, 1);
	feed_lost(p, 200, 0, TTMON_EV_COPY, 20, 2); /* newer */
	feed_lost(p, 150, 0, TTMON_EV_COPY, 9, 1);  /* older, but it came later */
	feed_lost(p, 100, 3, TTMON_EV_COPY, 5, 0);
	feed_lost(p, 100, 3, TTMON_EV_FREE, 4, 4);
	feed_reasons(p, 100, 0, 1, 0);
	feed_reasons(p, 200, 0, 2, 0);
	feed_reasons(p, 100, 3, 3, 1);
	ttmon_pipeline_kernel_counts(p, &counts);
	assert_true(counts.known);
	assert_int_equal(counts.attempted[TTMON_EV_COPY], 25);
	assert_int_equal(counts.lost[TTMON_EV_COPY], 2);
	assert_int_equal(counts.attempted[TTMON_EV_FREE], 4);
	assert_int_equal(counts.lost[TTMON_EV_FREE], 4);
	assert_int_equal(counts.reason[TTMON_LOSS_RING_FULL], 5);
	assert_int_equal(counts.reason[TTMON_LOSS_READ_FAILED], 1);
	assert_int_equal(counts.nested, 10);
	ttmon_pipeline_free(p);
}

static void checks_the_identity(void **state)
{
	struct ttmon_pipeline *p = make();
	struct ttmon_ev_munmap bad = { .h = header(TTMON_EV_MUNMAP, MS, NR_CPUS) };

	(void)state;
	assert_identity(p); /* nothing came */
	feed_munmap(p, MS, 0, 0);
	feed_munmap(p, MS + 1, 1, 2);
	feed_copy(p, MS + 2, 1, 0, 0);
	assert_identity(p); /* the kernel has reported nothing yet */

	feed_lost(p, 1, 0, TTMON_EV_MUNMAP, 1, 0);
	feed_lost(p, 1, 1, TTMON_EV_MUNMAP, 3, 2);
	assert_refuted(p, "copy: attempted 0");
	feed_lost(p, 1, 1, TTMON_EV_COPY, 1, 0);
	assert_refuted(p, "by reason 0");
	feed_reasons(p, 1, 1, 1, 1);
	assert_identity(p);

	feed_lost(p, 2, 0, TTMON_EV_MUNMAP, 2, 0); /* one event was sent that never came */
	assert_refuted(p, "events: attempted 6");
	ttmon_pipeline_feed(p, &bad, sizeof(bad)); /* it comes, damaged */
	assert_identity(p);
	ttmon_pipeline_feed(p, &bad, sizeof(bad));
	assert_refuted(p, "malformed 2");
	ttmon_pipeline_free(p);
}

static void accounts_for_late_full_and_dropped(void **state)
{
	static const struct ttmon_slots_cfg small = { .window = 4, .arena_bytes = 65536 };
	struct ttmon_pipeline *p = make_with(&small);
	struct ttmon_accounting acct;

	(void)state;
	ttmon_pipeline_advance(p, 10 * MS);
	for (uint64_t i = 0; i < 2000; i++)
		feed_munmap(p, 10 * MS + i, 0, 0);
	ttmon_pipeline_advance(p, 11 * MS);
	assert_int_equal(out.nr, 1);
	assert_true(out.slots[0].dropped > 0);
	assert_int_equal(out.slots[0].dropped + out.slots[0].events, 2000);
	out.full = true;
	feed_munmap(p, 10 * MS, 0, 0);
	feed_munmap(p, 15 * MS, 0, 0); /* closes the slot of the late event by force */
	ttmon_pipeline_finish(p, 17 * MS);
	ttmon_pipeline_accounting(p, &acct);
	assert_int_equal(acct.late, 1);
	assert_int_equal(acct.slotted + acct.arena_full, 2001);
	assert_int_equal(acct.arena_full, out.slots[0].dropped);
	assert_int_equal(acct.closed, 7);
	assert_int_equal(acct.published, 1);
	assert_int_equal(acct.dropped, 6);
	assert_int_equal(acct.forced, 1);
	assert_identity(p);
	ttmon_pipeline_free(p);
}

static void publishes_without_a_taker(void **state)
{
	struct ttmon_pipeline_cfg cfg = { .nr_cpus = 1 };
	struct ttmon_pipeline *p = NULL;
	struct ttmon_accounting acct;

	(void)state;
	assert_int_equal(ttmon_pipeline_new(&cfg, NULL, NULL, &p), 0);
	feed_munmap(p, 5 * MS, 0, 0);
	ttmon_pipeline_finish(p, 7 * MS);
	ttmon_pipeline_accounting(p, &acct);
	assert_int_equal(acct.closed, 2);
	assert_int_equal(acct.published, 2);
	ttmon_pipeline_free(p);
}

/* A list with one mapping, or none, as the whole list of the process. */
static void feed_list(struct ttmon_pipeline *p, uint64_t from_ns, uint64_t start, uint64_t end)
{
	struct ttmon_ev_map map = {
		.h = header(TTMON_EV_MAP, from_ns, TTMON_CPU_DAEMON), .start = start, .end = end, .prot = 3
	};
	struct ttmon_ev_maps_done done = { .h = header(TTMON_EV_MAPS_DONE, from_ns + 1, TTMON_CPU_DAEMON),
					   .from_ns = from_ns,
					   .count = 1 };

	map.h.tid = 0;
	ttmon_pipeline_feed(p, &map, sizeof(map));
	ttmon_pipeline_feed(p, &done, sizeof(done));
}

/*
 * The list was read after the copy, but comes while the copy is in an open slot: it must not remove
 * the copy's memory.
 */
static void later_lists_wait_for_the_slots(void **state)
{
	struct ttmon_pipeline *p = make();
	const struct ttmon_proc *proc;

	(void)state;
	feed_clock(p);
	ttmon_pipeline_advance(p, 1 * MS);
	feed_list(p, 1 * MS, 0x10000, 0x20000); /* the first list is applied at once */
	assert_true(ttmon_history_maps_known(ttmon_pipeline_history(p), TGID));
	feed_copy(p, 5 * MS, 100, 0, 0);
	feed_list(p, 6 * MS, 0x90000, 0xa0000);
	assert_non_null(ttmon_history_find(ttmon_pipeline_history(p), TGID, 0x10000));
	ttmon_pipeline_advance(p, 6 * MS);
	proc = ttmon_history_proc(ttmon_pipeline_history(p), 0);
	assert_int_equal(proc->xfer[TTMON_RDIR_H2D][TTMON_MEM_PAGEABLE].copies, 1);
	assert_int_equal(proc->unmatched, 0);
	assert_null(ttmon_history_find(ttmon_pipeline_history(p), TGID, 0x10000));
	assert_non_null(ttmon_history_find(ttmon_pipeline_history(p), TGID, 0x90000));
	/* A list that was read after the last slot is applied at the end. */
	feed_list(p, 1000 * MS, 0x30000, 0x40000);
	ttmon_pipeline_finish(p, 10 * MS);
	assert_non_null(ttmon_history_find(ttmon_pipeline_history(p), TGID, 0x30000));
	ttmon_pipeline_free(p);
}

/* A report about a kernel waits for memory that was allocated just before its launch. */
static void uses_wait_for_the_slots(void **state)
{
	struct ttmon_ev_alloc alloc = { .h = header(TTMON_EV_ALLOC, 5 * MS, 0),
					.entry_ns = 5 * MS - 10,
					.addr = 0x10000,
					.size = 0x1000,
					.fn = 1,
					.method = TTMON_METHOD_HOST_ALLOC };
	struct ttmon_ev_gpu_use use = { .h = header(TTMON_EV_GPU_USE, 5 * MS + 10, TTMON_CPU_DAEMON),
					.addr = 0x10000,
					.size = 64,
					.reads = 1,
					.sectors = 2 };
	struct ttmon_pipeline *p = make();
	struct ttmon_history_totals t;

	(void)state;
	feed_clock(p);
	ttmon_pipeline_advance(p, 1 * MS);
	ttmon_pipeline_feed(p, &alloc, sizeof(alloc));
	ttmon_pipeline_feed(p, &use, sizeof(use));
	ttmon_pipeline_advance(p, 5 * MS + 20);
	assert_null(ttmon_history_alloc(ttmon_pipeline_history(p), 0));
	ttmon_pipeline_advance(p, 6 * MS);
	assert_int_equal(ttmon_history_alloc(ttmon_pipeline_history(p), 0)->traffic->gpu->reads, 1);
	/* At the end nothing is waited for. */
	use.h.ts_ns = 1000 * MS;
	ttmon_pipeline_feed(p, &use, sizeof(use));
	ttmon_pipeline_finish(p, 10 * MS);
	assert_int_equal(ttmon_history_alloc(ttmon_pipeline_history(p), 0)->traffic->gpu->reads, 2);
	ttmon_history_get_totals(ttmon_pipeline_history(p), &t);
	assert_int_equal(t.gpu_use_gone, 0);
	ttmon_pipeline_free(p);
}

/* tgid: in this process only; 0: in all. */
static void feed_family_of(struct ttmon_pipeline *p, uint32_t tgid, uint64_t ts_ns, enum ttmon_family family,
			   enum ttmon_family_state state)
{
	struct ttmon_ev_family ev = {
		.h = header(TTMON_EV_FAMILY, ts_ns, TTMON_CPU_DAEMON), .family = family, .state = state, .why = 1
	};

	ev.h.tgid = tgid;
	ttmon_pipeline_feed(p, &ev, sizeof(ev));
}

static void feed_family(struct ttmon_pipeline *p, uint64_t ts_ns, enum ttmon_family family,
			enum ttmon_family_state state)
{
	feed_family_of(p, 0, ts_ns, family, state);
}

/*
 * Which families are known in each slot, and for how long one was not on: slots that contain a change
 * are not completely known.
 */
static void slots_say_what_is_known(void **state)
{
	const uint32_t transfer = TTMON_FAMILY_BIT(TRANSFER), mmap = TTMON_FAMILY_BIT(MMAP);
	struct ttmon_ev_clock clock = { .h = header(TTMON_EV_CLOCK, MS, TTMON_CPU_DAEMON),
					.mono_ns = MS,
					.nr_cpus = NR_CPUS,
					.page_size = 4096,
					.options = TTMON_OPT_FAMILIES };
	struct ttmon_pipeline *p = make();
	struct ttmon_seen_view v;

	(void)state;
	clock.options |= (transfer | TTMON_FAMILY_BIT(ALLOC)) << TTMON_OPT_FAMILY_SHIFT;
	ttmon_pipeline_feed(p, &clock, sizeof(clock));
	ttmon_pipeline_advance(p, 10 * MS);
	feed_copy(p, 10 * MS + 10, 64, 0, 0);
	feed_family(p, 10 * MS + MS / 2, TTMON_FAMILY_TRANSFER, TTMON_FAMILY_COUNTING);
	ttmon_pipeline_seen(p, &v);
	assert_int_equal(v.of[TTMON_FAMILY_TRANSFER].since_ns, UINT64_MAX);
	assert_int_equal(v.of[TTMON_FAMILY_TRANSFER].state, TTMON_FAMILY_COUNTING);
	assert_int_equal(v.of[TTMON_FAMILY_TRANSFER].why, TTMON_GAP_BUDGET);
	assert_int_equal(v.of[TTMON_FAMILY_ALLOC].since_ns, MS);
	assert_int_equal(v.of[TTMON_FAMILY_MMAP].state, TTMON_FAMILY_OFF);
	assert_int_equal(v.of[TTMON_FAMILY_MMAP].why, TTMON_GAP_WHY_MAX);
	feed_family(p, 13 * MS + 1, TTMON_FAMILY_TRANSFER, TTMON_FAMILY_ON);
	feed_family(p, 14 * MS, TTMON_FAMILY_MMAP, TTMON_FAMILY_ON);
	ttmon_pipeline_advance(p, 16 * MS);
	for (size_t i = 0; i < out.nr; i++) {
		uint64_t no = out.slots[i].no;

		assert_true(out.slots[i].flags & TTMON_SLOT_HAS_KNOWN);
		assert_true(out.slots[i].known & TTMON_FAMILY_BIT(ALLOC));
		assert_false(out.slots[i].known & TTMON_FAMILY_BIT(CPU));
		assert_int_equal(!(out.slots[i].known & transfer), no >= 10 && no <= 13);
		assert_int_equal(!(out.slots[i].known & mmap), no < 14);
		assert_int_equal(ttmon_slot_knows(&out.slots[i], TTMON_SLOT_NEED_COPIES), no < 10 || no > 13);
	}
	ttmon_pipeline_seen(p, &v);
	assert_int_equal(v.now_ns, 16 * MS);
	assert_int_equal(v.of[TTMON_FAMILY_TRANSFER].off_ns, 2 * MS);
	assert_int_equal(v.of[TTMON_FAMILY_TRANSFER].missed, 2);
	assert_int_equal(v.of[TTMON_FAMILY_TRANSFER].since_ns, 13 * MS + 1);
	assert_int_equal(v.of[TTMON_FAMILY_MMAP].since_ns, 14 * MS);
	/* Lost records are missing as well, whenever the loss is reported. */
	feed_lost(p, 17 * MS, 0, TTMON_EV_COPY, 10, 7);
	ttmon_pipeline_seen(p, &v);
	assert_int_equal(v.of[TTMON_FAMILY_TRANSFER].missed, 9);
	assert_int_equal(v.of[TTMON_FAMILY_TRANSFER].since_ns, 17 * MS);
	ttmon_pipeline_free(p);
}

/*
 * The family is reduced in one process: it is on for all others, its slots are not completely known,
 * and everything is known of the others.
 */
static void a_family_of_one_process(void **state)
{
	const uint32_t transfer = TTMON_FAMILY_BIT(TRANSFER);
	struct ttmon_pipeline *p = make();
	const struct ttmon_know *k = ttmon_pipeline_know(p);
	struct ttmon_seen_view v;

	(void)state;
	ttmon_pipeline_advance(p, 10 * MS);
	feed_copy(p, 10 * MS + 10, 64, 0, 0);
	feed_family_of(p, 200, 10 * MS + MS / 2, TTMON_FAMILY_TRANSFER, TTMON_FAMILY_COUNTING);
	ttmon_pipeline_seen(p, &v);
	assert_int_equal(v.of[TTMON_FAMILY_TRANSFER].state, TTMON_FAMILY_ON);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 200, 11 * MS, 12 * MS, NULL), TTMON_UNKNOWN);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 200, 9 * MS, 12 * MS, NULL), TTMON_AT_LEAST);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 201, 11 * MS, 12 * MS, NULL), TTMON_KNOWN);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 200, 11 * MS, 12 * MS, NULL), TTMON_KNOWN);
	feed_family_of(p, 200, 13 * MS + 1, TTMON_FAMILY_TRANSFER, TTMON_FAMILY_ON);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 200, 14 * MS, 15 * MS, NULL), TTMON_KNOWN);
	ttmon_pipeline_advance(p, 16 * MS);
	for (size_t i = 0; i < out.nr; i++)
		assert_int_equal(!(out.slots[i].known & transfer), out.slots[i].no >= 10 && out.slots[i].no <= 13);
	ttmon_pipeline_free(p);
}

/* The family of records that the kernel lost is not known at once. */
static void a_loss_makes_its_slot_unknown(void **state)
{
	struct ttmon_pipeline *p = make();

	(void)state;
	feed_munmap(p, MS, 0, 0);
	feed_munmap(p, 2 * MS, 0, 5);
	feed_munmap(p, 3 * MS, 0, 5);
	ttmon_pipeline_advance(p, 4 * MS);
	assert_true(out.slots[out.nr - 3].known & TTMON_FAMILY_BIT(TRANSFER));
	assert_int_equal(out.slots[out.nr - 2].known, 0);
	assert_true(out.slots[out.nr - 2].flags & TTMON_SLOT_HAS_KNOWN);
	assert_true(out.slots[out.nr - 1].known & TTMON_FAMILY_BIT(TRANSFER));
	ttmon_pipeline_free(p);
}

/* A gap that is reported when its slots have closed is in the next slot, also at the end of the trace. */
static void a_late_gap_is_in_the_next_slot(void **state)
{
	struct ttmon_ev_blind ev = { .h = header(TTMON_EV_BLIND, 22 * MS, TTMON_CPU_DAEMON),
				     .object = 1,
				     .mapped_ns = 20 * MS,
				     .active_ns = 22 * MS };
	struct ttmon_pipeline *p;
	size_t before;

	(void)state;
	for (int at_the_end = 0; at_the_end < 2; at_the_end++) {
		p = make();
		feed_clock(p);
		feed_alloc(p, 10 * MS, 0x10000, 4096, 0);
		ttmon_pipeline_advance(p, 40 * MS);
		before = out.nr;
		assert_true(out.slots[before - 1].known & TTMON_FAMILY_BIT(TRANSFER));
		ttmon_pipeline_feed(p, &ev, sizeof(ev));
		if (!at_the_end)
			ttmon_pipeline_advance(p, 42 * MS);
		ttmon_pipeline_finish(p, at_the_end ? 40 * MS : 42 * MS);
		assert_true(out.nr > before);
		assert_false(out.slots[before].known & TTMON_FAMILY_BIT(TRANSFER));
		ttmon_pipeline_free(p);
	}
}

/* Older recordings say whether mmap was on; CPU time is there if it was recorded. */
static void old_recordings_are_known(void **state)
{
	struct ttmon_pipeline *p = make();
	struct ttmon_seen_view v;

	(void)state;
	feed_clock(p);
	ttmon_pipeline_advance(p, MS);
	ttmon_pipeline_advance(p, 3 * MS);
	assert_int_equal(out.slots[out.nr - 1].known,
			 ((1u << TTMON_FAMILY_MAX) - 1) & ~TTMON_SEEN_MEASURED & ~TTMON_FAMILY_BIT(MMAP));
	ttmon_pipeline_seen(p, &v);
	assert_int_equal(v.of[TTMON_FAMILY_TRANSFER].state, TTMON_FAMILY_ON);
	assert_int_equal(v.of[TTMON_FAMILY_CPU].state, TTMON_FAMILY_OFF);
	assert_int_equal(v.of[TTMON_FAMILY_CPU].since_ns, UINT64_MAX);
	ttmon_pipeline_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_bad_cfg),
		cmocka_unit_test(sums_each_slot),
		cmocka_unit_test(sums_do_not_wrap),
		cmocka_unit_test(facts_come_at_once_and_events_in_order),
		cmocka_unit_test(separates_malformed_events_and_facts),
		cmocka_unit_test(takes_records_at_any_address),
		cmocka_unit_test(tells_kernel_losses_by_slot),
		cmocka_unit_test(adds_kernel_counts_over_cpus),
		cmocka_unit_test(checks_the_identity),
		cmocka_unit_test(accounts_for_late_full_and_dropped),
		cmocka_unit_test(publishes_without_a_taker),
		cmocka_unit_test(later_lists_wait_for_the_slots),
		cmocka_unit_test(uses_wait_for_the_slots),
		cmocka_unit_test(slots_say_what_is_known),
		cmocka_unit_test(a_family_of_one_process),
		cmocka_unit_test(a_loss_makes_its_slot_unknown),
		cmocka_unit_test(a_late_gap_is_in_the_next_slot),
		cmocka_unit_test(old_recordings_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
