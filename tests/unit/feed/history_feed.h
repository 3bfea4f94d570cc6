/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * history_feed.h: records for the history's tests, each made and applied in one line. Not a test
 * itself.
 */
#ifndef TTMON_TEST_HISTORY_FEED_H
#define TTMON_TEST_HISTORY_FEED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/history/history.h"
#include "tests/unit/feed/apply.h"

#define MS	  NSEC_PER_MS
#define SEC	  NSEC_PER_SEC
#define PAGE	  4096ULL
#define FN_HOST	  1 /* cudaHostAlloc */
#define FN_FREE	  3 /* cudaFreeHost */
#define FN_REG	  4 /* cudaHostRegister */
#define FN_UNREG  5
#define FN_MALLOC 8  /* cudaMalloc */
#define FN_CUFREE 13 /* cudaFree */
#define FN_MEMCPY 16
#define RW	  3 /* PROT_READ | PROT_WRITE */
#define RX	  5

union feed_record {
	struct ttmon_event h;
	uint64_t words[TTMON_MAX_FRAMES + 64];
};

static inline struct ttmon_history *feed_new(struct ttmon_history_cfg cfg)
{
	struct ttmon_history *h = NULL;

	assert_int_equal(ttmon_history_new(&cfg, &h), 0);
	assert_non_null(h);
	return h;
}

static inline struct ttmon_event feed_head(uint16_t kind, uint32_t tgid, uint64_t ts)
{
	return (struct ttmon_event){ .ts_ns = ts, .kind = kind, .tgid = tgid, .tid = tgid };
}

#define APPLY(h, ev) ttmon_history_apply(h, &(ev).h, sizeof(ev), false)

static inline void feed_proc(struct ttmon_history *h, uint32_t tgid, uint64_t ts, uint64_t start, uint32_t ppid,
			     uint32_t reason)
{
	struct ttmon_ev_proc ev = { .h = feed_head(TTMON_EV_PROC, tgid, ts),
				    .start_ns = start,
				    .ppid = ppid,
				    .reason = reason,
				    .comm = "prog" };

	APPLY(h, ev);
}

static inline void feed_exit(struct ttmon_history *h, uint32_t tgid, uint64_t ts)
{
	struct ttmon_ev_exit ev = { .h = feed_head(TTMON_EV_EXIT, tgid, ts), .code = 256 };

	APPLY(h, ev);
}

static inline void feed_gone(struct ttmon_history *h, uint32_t tgid, uint64_t ts)
{
	struct ttmon_ev_gone ev = { .h = feed_head(TTMON_EV_GONE, tgid, ts) };

	ev.h.cpu = TTMON_CPU_DAEMON;
	APPLY(h, ev);
}

/* entry: 10 before ts. frames: a 0-terminated list, or NULL. */
static inline void feed_alloc_full(struct ttmon_history *h, struct ttmon_ev_alloc head, const uint64_t *frames)
{
	union feed_record rec = { 0 };
	struct ttmon_ev_alloc *ev = (struct ttmon_ev_alloc *)&rec;

	head.h.kind = TTMON_EV_ALLOC;
	memcpy(ev, &head, sizeof(head));
	for (; frames && frames[ev->nframes]; ev->nframes++)
		memcpy((char *)&rec + sizeof(head) + ev->nframes * 8, &frames[ev->nframes], 8);
	ttmon_history_apply(h, &ev->h, sizeof(head) + ev->nframes * 8u, false);
}

static inline void feed_alloc_at(struct ttmon_history *h, uint32_t tgid, uint64_t ts, unsigned int method,
				 uint64_t addr, uint64_t size, const uint64_t *frames)
{
	struct ttmon_ev_alloc ev = { .h = feed_head(TTMON_EV_ALLOC, tgid, ts),
				     .entry_ns = ts > 10 ? ts - 10 : 0,
				     .addr = addr,
				     .size = size,
				     .fn = FN_HOST,
				     .method = (uint8_t)method };

	feed_alloc_full(h, ev, frames);
}

static inline void feed_alloc(struct ttmon_history *h, uint32_t tgid, uint64_t ts, unsigned int method, uint64_t addr,
			      uint64_t size)
{
	feed_alloc_at(h, tgid, ts, method, addr, size, NULL);
}

static inline void feed_free(struct ttmon_history *h, uint32_t tgid, uint64_t entry, uint64_t ts, unsigned int method,
			     uint64_t addr)
{
	struct ttmon_ev_free ev = { .h = feed_head(TTMON_EV_FREE, tgid, ts),
				    .entry_ns = entry,
				    .addr = addr,
				    .fn = FN_FREE,
				    .method = (uint8_t)method };

	APPLY(h, ev);
}

static inline struct ttmon_ev_copy feed_make_copy(uint32_t tgid, uint64_t ts, unsigned int dir, uint64_t dst,
						  uint64_t src, uint64_t bytes)
{
	return (struct ttmon_ev_copy){ .h = feed_head(TTMON_EV_COPY, tgid, ts),
				       .entry_ns = ts,
				       .dst = dst,
				       .src = src,
				       .bytes = bytes,
				       .fn = FN_MEMCPY,
				       .dir = (uint8_t)dir };
}

static inline void feed_copy(struct ttmon_history *h, uint32_t tgid, uint64_t ts, unsigned int dir, uint64_t dst,
			     uint64_t src, uint64_t bytes)
{
	struct ttmon_ev_copy ev = feed_make_copy(tgid, ts, dir, dst, src, bytes);

	APPLY(h, ev);
}

/* frames: a 0-terminated list. */
static inline void feed_copy_site(struct ttmon_history *h, uint32_t tgid, uint64_t ts, uint64_t addr,
				  const uint64_t *frames)
{
	union feed_record rec = { 0 };
	struct ttmon_ev_copy_site ev = { .h = feed_head(TTMON_EV_COPY_SITE, tgid, ts), .addr = addr, .fn = FN_MEMCPY };

	while (frames[ev.nframes])
		ev.nframes++;
	memcpy(&rec, &ev, sizeof(ev));
	memcpy((char *)&rec + sizeof(ev), frames, ev.nframes * 8u);
	ttmon_history_apply(h, &rec.h, sizeof(ev) + ev.nframes * 8u, false);
}

static inline void feed_mmap(struct ttmon_history *h, uint32_t tgid, uint64_t ts, uint64_t addr, uint64_t len)
{
	struct ttmon_ev_mmap ev = {
		.h = feed_head(TTMON_EV_MMAP, tgid, ts), .addr = addr, .len = len, .prot = RW, .flags = 0x22, .fd = -1
	};

	APPLY(h, ev);
}

static inline void feed_munmap(struct ttmon_history *h, uint32_t tgid, uint64_t ts, uint64_t addr, uint64_t len)
{
	struct ttmon_ev_munmap ev = { .h = feed_head(TTMON_EV_MUNMAP, tgid, ts), .addr = addr, .len = len };

	APPLY(h, ev);
}

static inline void feed_mremap(struct ttmon_history *h, uint32_t tgid, uint64_t entry, uint64_t ts, uint64_t old,
			       uint64_t old_len, uint64_t addr, uint64_t len)
{
	struct ttmon_ev_mremap ev = { .h = feed_head(TTMON_EV_MREMAP, tgid, ts),
				      .entry_ns = entry,
				      .old_addr = old,
				      .old_len = old_len,
				      .new_addr = addr,
				      .new_len = len,
				      .flags = 1 };

	APPLY(h, ev);
}

static inline void feed_brk(struct ttmon_history *h, uint32_t tgid, uint64_t ts, uint64_t brk)
{
	struct ttmon_ev_brk ev = { .h = feed_head(TTMON_EV_BRK, tgid, ts), .brk = brk };

	APPLY(h, ev);
}

static inline struct ttmon_event feed_fact(uint16_t kind, uint32_t tgid, uint64_t ts)
{
	return (struct ttmon_event){ .ts_ns = ts, .kind = kind, .cpu = TTMON_CPU_DAEMON, .tgid = tgid };
}

/* tid 0: part of a list. */
static inline void feed_map_full(struct ttmon_history *h, struct ttmon_ev_map head, const char *name)
{
	union feed_record rec = { 0 };

	head.len = name ? (uint32_t)strlen(name) : 0;
	memcpy(&rec, &head, sizeof(head));
	if (name)
		memcpy((char *)&rec + sizeof(head), name, head.len);
	ttmon_history_apply(h, &rec.h, ROUND_UP(sizeof(head) + head.len, 8u), false);
}

static inline void feed_map(struct ttmon_history *h, uint32_t tgid, uint64_t ts, uint64_t start, uint64_t end,
			    const char *name)
{
	struct ttmon_ev_map ev = { .h = feed_fact(TTMON_EV_MAP, tgid, ts), .start = start, .end = end, .prot = RW };

	feed_map_full(h, ev, name);
}

/* An executable mapping as an MMAP2 record reports it. */
static inline void feed_text(struct ttmon_history *h, uint32_t tgid, uint64_t ts, uint64_t start, uint64_t end,
			     uint64_t pgoff, uint32_t object)
{
	struct ttmon_ev_map ev = { .h = feed_fact(TTMON_EV_MAP, tgid, ts),
				   .start = start,
				   .end = end,
				   .pgoff = pgoff,
				   .object = object,
				   .prot = RX };

	ev.h.tid = tgid;
	feed_map_full(h, ev, "/lib/x.so");
}

static inline void feed_maps_done(struct ttmon_history *h, uint32_t tgid, uint64_t from, uint64_t ts, uint32_t count)
{
	struct ttmon_ev_maps_done ev = { .h = feed_fact(TTMON_EV_MAPS_DONE, tgid, ts),
					 .from_ns = from,
					 .count = count };

	APPLY(h, ev);
}

static inline void feed_object(struct ttmon_history *h, uint32_t id, uint32_t flags, uint8_t build_id, const char *path)
{
	union feed_record rec = { 0 };
	struct ttmon_ev_object ev = { .h = feed_fact(TTMON_EV_OBJECT, 0, 1),
				      .id = id,
				      .flags = flags,
				      .build_id_len = build_id ? 20 : 0,
				      .len = (uint32_t)strlen(path) };

	memset(ev.build_id, build_id, sizeof(ev.build_id));
	memcpy(&rec, &ev, sizeof(ev));
	memcpy((char *)&rec + offsetof(struct ttmon_ev_object, path), path, ev.len);
	ttmon_history_apply(h, &rec.h, ROUND_UP(sizeof(ev) + ev.len, 8u), false);
}

static inline void feed_symbol(struct ttmon_history *h, uint32_t object, uint64_t offset, uint64_t delta,
			       const char *name)
{
	union feed_record rec = { 0 };
	struct ttmon_ev_symbol ev = { .h = feed_fact(TTMON_EV_SYMBOL, 0, 1),
				      .object = object,
				      .offset = offset,
				      .delta = delta,
				      .len = (uint32_t)strlen(name) };

	memcpy(&rec, &ev, sizeof(ev));
	memcpy((char *)&rec + offsetof(struct ttmon_ev_symbol, name), name, ev.len);
	ttmon_history_apply(h, &rec.h, ROUND_UP(sizeof(ev) + ev.len, 8u), false);
}

static inline void feed_clock(struct ttmon_history *h, uint32_t page_size, uint32_t options)
{
	struct ttmon_ev_clock ev = { .h = feed_fact(TTMON_EV_CLOCK, 0, 1),
				     .mono_ns = 1,
				     .nr_cpus = 4,
				     .page_size = page_size,
				     .options = options,
				     .hostname = "host" };

	APPLY(h, ev);
}

static inline struct ttmon_history_totals feed_totals(const struct ttmon_history *h)
{
	struct ttmon_history_totals t;

	ttmon_history_get_totals(h, &t);
	return t;
}

/* Its heat; all zero: it had no transfers. */
static inline struct ttmon_heat feed_heat(const struct ttmon_alloc *a)
{
	struct ttmon_heat heat = { 0 };

	(void)ttmon_history_heat(a, &heat);
	return heat;
}

/* Decoded events of an allocation; returns how many. */
static inline unsigned int feed_events(const struct ttmon_alloc *a, struct ttmon_aev *out, unsigned int max)
{
	struct ttmon_aev ev = { 0 };
	uint32_t pos = 0;
	unsigned int n = 0;

	while (ttmon_history_event(a, &pos, &ev)) {
		if (n < max)
			out[n] = ev;
		n++;
	}
	return n;
}

#endif
