/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dispatch_feed.h: events for the dispatch side, as the kernel and the daemon send them. Stands in for
 * core/tt/tt.h: two chips.
 */
#ifndef TTMON_TEST_DISPATCH_FEED_H
#define TTMON_TEST_DISPATCH_FEED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/dispatch/dispatch.h"
#include "tests/unit/feed/apply.h"

#define MS	   NSEC_PER_MS
#define US	   NSEC_PER_US
#define SEC	   NSEC_PER_SEC
#define FN_ENQUEUE 310
#define FN_RECORD  340
#define FN_BATCH   343
#define FN_PAIR	   350
#define MESH	   0x7000
#define NOT_KNOWN  0x9000

/* MESH: logical 0 and 1, chips 11 and 12; 0xd0, 0xd1: one of them; NOT_KNOWN and others: not known. */
size_t ttmon_tt_devices(const struct ttmon_tt *t, uint32_t tgid, uint64_t device, uint32_t *logical, uint32_t *chips,
			size_t max)
{
	uint32_t first = device == 0xd1 ? 1 : 0, n = device == MESH ? 2 : device == 0xd0 || device == 0xd1 ? 1 : 0;

	(void)t;
	(void)tgid;
	for (uint32_t i = 0; i < n && i < max; i++) {
		logical[i] = first + i;
		chips[i] = 11 + first + i;
	}
	return MIN(n, max);
}

uint32_t ttmon_tt_ran_on(struct ttmon_tt *t, uint32_t tgid, uint32_t logical, uint64_t ts_ns)
{
	(void)t;
	(void)tgid;
	(void)ts_ns;
	return logical < 2 ? 11 + logical : 0;
}

static inline uint64_t bits(double d)
{
	uint64_t w;

	memcpy(&w, &d, sizeof(w));
	return w;
}

static inline struct ttmon_event head(unsigned int kind, uint32_t tgid, uint64_t ts, uint16_t cpu)
{
	return (struct ttmon_event){ .ts_ns = ts, .kind = (uint16_t)kind, .cpu = cpu, .tgid = tgid, .tid = tgid + 1 };
}

static inline void feed_dispatch(struct ttmon_dispatch *d, uint32_t tgid, uint64_t ts, uint16_t cpu, uint64_t device,
				 unsigned int kind, const uint64_t sums[TTMON_TT_DISPATCH_MAX])
{
	struct ttmon_ev_tt_dispatch ev = {
		.h = head(TTMON_EV_TT_DISPATCH, tgid, ts, cpu),
		.device = device,
		.what = 0x1234,
		.fn = FN_ENQUEUE,
		.kind = (uint8_t)kind,
		.dev_kind = TTMON_TT_DEV_MESH,
		.blocking = 1,
	};

	for (int i = 0; i < TTMON_TT_DISPATCH_MAX; i++)
		ev.sums[i] = sums[i];
	ttmon_dispatch_apply(d, &ev.h, sizeof(ev));
}

/* The nth workload of a process on a CPU. */
static inline void feed_workload(struct ttmon_dispatch *d, uint32_t tgid, uint64_t ts, uint16_t cpu, uint64_t device,
				 uint64_t nth)
{
	const uint64_t sums[TTMON_TT_DISPATCH_MAX] = { nth };

	feed_dispatch(d, tgid, ts, cpu, device, TTMON_TT_WORKLOAD, sums);
}

static inline void feed_sums(struct ttmon_dispatch *d, uint32_t tgid, uint64_t ts, uint32_t cpu, uint64_t device,
			     uint64_t workloads)
{
	struct ttmon_ev_tt_sums ev = { .h = head(TTMON_EV_TT_SUMS, tgid, ts, TTMON_CPU_DAEMON),
				       .device = device,
				       .sums = { workloads },
				       .of_cpu = cpu };

	ttmon_dispatch_apply(d, &ev.h, sizeof(ev));
}

static inline void feed_raw(struct ttmon_dispatch *d, uint32_t tgid, uint64_t ts, const uint64_t w[8])
{
	struct ttmon_ev_tt_program ev = { .h = head(TTMON_EV_TT_PROGRAM, tgid, ts, 0), .count = 1, .fn = FN_RECORD };

	for (int i = 0; i < 8; i++)
		ev.w[i] = w[i];
	ttmon_dispatch_apply(d, &ev.h, sizeof(ev));
}

/* Chip at byte 4, one kernel at 32. */
static inline void feed_run(struct ttmon_dispatch *d, uint32_t tgid, uint64_t ts, uint32_t chip, uint32_t program,
			    uint64_t start, uint64_t end, double ghz)
{
	const uint64_t w[8] = { (uint64_t)chip << 32 | program, start, end, bits(ghz), 0x7f0000001000ULL, 1, 0, 0 };

	feed_raw(d, tgid, ts, w);
}

/* Chip at byte 4, clock_sync at 32. */
static inline void feed_run_sync(struct ttmon_dispatch *d, uint32_t tgid, uint64_t ts, uint32_t chip, uint32_t program,
				 uint64_t start, uint64_t end, double ghz, int64_t offset, uint64_t error)
{
	const uint64_t w[8] = { (uint64_t)chip << 32 | program, start, end, bits(ghz), (uint64_t)offset, error, 0, 0 };

	feed_raw(d, tgid, ts, w);
}

static inline void feed_pair(struct ttmon_dispatch *d, uint32_t tgid, uint64_t ts, uint32_t chip, uint64_t ticks,
			     uint64_t cycles)
{
	struct ttmon_ev_tt_call ev = { .h = head(TTMON_EV_TT_CALL, tgid, ts, 0),
				       .arg = { 0xabcd00000000ULL | chip, ticks, cycles },
				       .fn = FN_PAIR };

	ttmon_dispatch_apply(d, &ev.h, sizeof(ev));
}

static inline void feed_tsc(struct ttmon_dispatch *d, uint64_t ts, uint64_t tsc)
{
	struct ttmon_ev_tsc ev = { .h = head(TTMON_EV_TSC, 0, ts, TTMON_CPU_DAEMON), .from_ns = ts - 60, .tsc = tsc };

	ttmon_dispatch_apply(d, &ev.h, sizeof(ev));
}

static inline void feed_kernel(struct ttmon_dispatch *d, uint32_t tgid, uint64_t ts, uint32_t program, uint32_t nth,
			       const char *name)
{
	struct ttmon_ev_tt_kernel ev = { .h = head(TTMON_EV_TT_KERNEL, tgid, ts, 0), .program = program, .nth = nth };

	snprintf(ev.name, sizeof(ev.name), "%s", name);
	ttmon_dispatch_apply(d, &ev.h, sizeof(ev));
}

static inline void feed_proc(struct ttmon_dispatch *d, uint32_t tgid, uint64_t ts, uint64_t start, unsigned int reason)
{
	struct ttmon_ev_proc ev = { .h = head(TTMON_EV_PROC, tgid, ts, 0), .start_ns = start, .reason = reason };

	ttmon_dispatch_apply(d, &ev.h, sizeof(ev));
}

static inline void feed_exit(struct ttmon_dispatch *d, uint32_t tgid, uint64_t ts)
{
	struct ttmon_ev_exit ev = { .h = head(TTMON_EV_EXIT, tgid, ts, 0) };

	ttmon_dispatch_apply(d, &ev.h, sizeof(ev));
}

static inline void feed_object(struct ttmon_dispatch *d, uint32_t slot, uint32_t has)
{
	struct ttmon_ev_tt_object ev = { .h = head(TTMON_EV_TT_OBJECT, 0, 1, TTMON_CPU_DAEMON),
					 .slot = slot,
					 .has = has };

	ttmon_dispatch_apply(d, &ev.h, sizeof(ev));
}

#endif
