/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tt_feed.h: records for the tests of core/tt, each made and applied in one line, and questions about
 * its view. Not a test itself.
 */
#ifndef TTMON_TEST_TT_FEED_H
#define TTMON_TEST_TT_FEED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/tt/tt.h"
#include "daemon/core/tt/layout.h"
#include "tests/unit/feed/apply.h"

#define MS  NSEC_PER_MS
#define SEC NSEC_PER_SEC
#define MIB (1ULL << 20)

/* Rows of TTMON_TT_FN_TABLE. */
#define FN_ALLOCATED 256
#define FN_FREEING   257
#define FN_NOTIFIED  258 /* notify_buffer_allocated */
#define FN_NOTIFIES  259
#define FN_ENTER     260 /* Buffer::allocate_impl */
#define FN_LEAVE     261 /* deallocate_impl */
#define FN_DEALLOC   264 /* Buffer::deallocate */
#define FN_MARK	     266
#define FN_DTOR	     267
#define FN_INNER     269 /* AllocatorImpl::allocate_buffer */
#define FN_TAKE_BACK 271
#define FN_BULK	     273
#define FN_SHADOW    280
#define FN_CREATE    281
#define FN_PROVIDER  284
#define FN_CB	     290
#define FN_CB_FREE   291
#define FN_CB_RUN    292
#define FN_DEV_NEW   294
#define FN_DEV_END   298
#define FN_DEV_OPEN  299
#define FN_MESH_DTOR 303

#define VT_DEVICE    0x7f0000001010ULL
#define VT_MESH	     0x7f0000002010ULL
#define DEV(i)	     (0x10000ULL + 0x1000ULL * (uint64_t)(i)) /* the i-th Device of a process */
#define MESH(i)	     (0x900000ULL + 0x1000ULL * (uint64_t)(i))
#define ALLOCATOR(i) (0x500000ULL + 0x100ULL * (uint64_t)(i))

/* A Buffer as the program has it. */
struct feed_buf {
	uint64_t at;  /* address of the object */
	uint64_t dev; /* of its device */
	uint64_t size, addr, allocator;
	uint32_t type;	 /* tt-metal's */
	uint32_t id;	 /* what the device says its logical id is */
	uint32_t old_id; /* the same at the place of older headers; 0: not there */
	uint8_t owns, status, hooked;
	uint8_t bottom_up;
	enum ttmon_tt_dev kind;
	enum ttmon_tt_layout layout;
	bool no_vtable; /* E0's devices */
	uint16_t slot;
	uint64_t impl; /* mesh: what the word says that another one has otherwise */
};

/* A DRAM buffer of a device, E2, allocated. */
static inline struct feed_buf feed_buf(uint64_t at, unsigned int dev, uint64_t size)
{
	return (struct feed_buf){ .at = at,
				  .dev = DEV(dev),
				  .size = size,
				  .addr = 0x20000 + at,
				  .allocator = ALLOCATOR(dev),
				  .id = dev,
				  .owns = 1,
				  .status = 1,
				  .kind = TTMON_TT_DEV_DEVICE,
				  .layout = TTMON_TT_LAYOUT_E2 };
}

static inline struct feed_buf feed_mesh_buf(uint64_t at, unsigned int mesh, uint64_t size)
{
	struct feed_buf b = feed_buf(at, 0, size);

	b.dev = MESH(mesh);
	b.allocator = ALLOCATOR(100 + mesh);
	b.kind = TTMON_TT_DEV_MESH;
	b.impl = 0x1234;
	return b;
}

static inline struct ttmon_event feed_head(uint16_t kind, uint32_t tgid, uint32_t tid, uint64_t ts)
{
	return (struct ttmon_event){ .ts_ns = ts, .kind = kind, .tgid = tgid, .tid = tid };
}

#define FEED(t, ev) ttmon_tt_apply(t, &(ev).h, sizeof(ev))

static inline void put8(__u64 *w, unsigned int offset, uint8_t v)
{
	w[offset / 8] &= ~(0xffULL << (offset % 8 * 8));
	w[offset / 8] |= (uint64_t)v << (offset % 8 * 8);
}

static inline void put32(__u64 *w, unsigned int offset, uint32_t v)
{
	for (unsigned int i = 0; i < 4; i++)
		put8(w, offset + i, (uint8_t)(v >> 8 * i));
}

/* Written from tt-metal's buffer.hpp, not from the code under test. */
static inline void feed_words(const struct feed_buf *b, __u64 *w)
{
	memset(w, 0, TTMON_TT_BUFFER_WORDS * sizeof(*w));
	switch (b->layout) {
	case TTMON_TT_LAYOUT_E0:
		w[0] = b->dev;
		w[1] = b->size;
		w[2] = b->addr;
		put32(w, 24, b->type);
		break;
	case TTMON_TT_LAYOUT_E1:
	case TTMON_TT_LAYOUT_E4:
		w[0] = b->dev;
		w[1] = b->size;
		put32(w, 16, b->type);
		put8(w, 24, b->bottom_up);
		put8(w, 27, b->owns);
		w[6] = b->allocator;
		put8(w, 56, b->status);
		if (b->layout == TTMON_TT_LAYOUT_E4)
			put8(w, 57, b->hooked);
		w[8] = b->addr;
		break;
	default:
		w[0] = 0xabc0;
		w[1] = 0xabc8;
		w[2] = b->dev;
		w[3] = b->size;
		put32(w, 32, b->type);
		put8(w, 43, b->owns);
		w[8] = b->allocator;
		put8(w, 72, b->status);
		put8(w, 73, b->hooked);
		w[10] = b->addr;
		break;
	}
}

static inline void feed_buffer_by(struct ttmon_tt *t, uint32_t tgid, uint32_t tid, uint64_t ts, uint16_t fn,
				  const struct feed_buf *b)
{
	static const uint8_t bases[] = { [TTMON_TT_LAYOUT_E0] = TTMON_TT_BASE_0,
					 [TTMON_TT_LAYOUT_E1] = TTMON_TT_BASE_0,
					 [TTMON_TT_LAYOUT_E2] = TTMON_TT_BASE_16,
					 [TTMON_TT_LAYOUT_E4] = TTMON_TT_BASE_IMPL };
	struct ttmon_ev_tt_buffer ev = {
		.h = feed_head(TTMON_EV_TT_BUFFER, tgid, tid, ts), .buffer = b->at, .fn = fn, .slot = b->slot
	};

	feed_words(b, ev.w);
	if (!b->no_vtable) {
		ev.base = bases[b->layout];
		ev.device = b->dev;
		ev.dev_kind = (uint8_t)b->kind;
		ev.dev[0] = b->kind == TTMON_TT_DEV_MESH ? VT_MESH : VT_DEVICE;
		ev.dev[3] = b->kind == TTMON_TT_DEV_MESH ? b->impl : b->id | 0xdead00000000ULL;
		if (b->old_id) {
			ev.dev[1] = b->old_id;
			ev.dev[3] = 0;
		}
	}
	FEED(t, ev);
}

static inline void feed_buffer(struct ttmon_tt *t, uint32_t tgid, uint64_t ts, uint16_t fn, const struct feed_buf *b)
{
	feed_buffer_by(t, tgid, tgid, ts, fn, b);
}

static inline void feed_call(struct ttmon_tt *t, uint32_t tgid, uint32_t tid, uint64_t ts, uint16_t fn, uint8_t kind,
			     const uint64_t *arg)
{
	struct ttmon_ev_tt_call ev = { .h = feed_head(TTMON_EV_TT_CALL, tgid, tid, ts), .fn = fn, .dev_kind = kind };

	memcpy(ev.arg, arg, sizeof(ev.arg));
	FEED(t, ev);
}

#define CALL(t, tgid, ts, fn, kind, ...) feed_call(t, tgid, tgid, ts, fn, kind, (const uint64_t[6]){ __VA_ARGS__ })

/* A circular buffer of a program, on these cores. */
static inline void feed_cb_of(struct ttmon_tt *t, uint32_t tgid, uint64_t ts, uint64_t program, uint64_t since,
			      uint64_t dev, uint64_t addr, uint64_t size, const struct ttmon_tt_core_range *r,
			      uint32_t nr)
{
	struct ttmon_ev_tt_cb ev = { .call = { .h = feed_head(TTMON_EV_TT_CALL, tgid, tgid, ts),
					       .arg = { dev, 0, addr, size },
					       .fn = FN_CB,
					       .dev_kind = TTMON_TT_DEV_DEVICE },
				     .program = program,
				     .since_ns = since,
				     .nr_ranges = nr };

	memcpy(ev.range, r, nr * sizeof(*r));
	ttmon_tt_apply(t, &ev.call.h, offsetof(struct ttmon_ev_tt_cb, range) + nr * sizeof(*r) + nr % 2 * 4);
}

/* The same without a program, on that many cores of one row. */
static inline void feed_cb(struct ttmon_tt *t, uint32_t tgid, uint64_t ts, uint8_t kind, uint64_t dev, uint64_t cores,
			   uint64_t addr, uint64_t size, uint64_t global)
{
	struct ttmon_ev_tt_cb ev = { .call = { .h = feed_head(TTMON_EV_TT_CALL, tgid, tgid, ts),
					       .arg = { dev, cores, addr, size, global },
					       .fn = FN_CB,
					       .dev_kind = kind } };

	if (cores && cores <= 64)
		ev.range[ev.nr_ranges++] = (struct ttmon_tt_core_range){ .x1 = (uint8_t)(cores - 1) };
	ttmon_tt_apply(t, &ev.call.h, sizeof(ev));
}

static inline void feed_create(struct ttmon_tt *t, uint32_t tgid, uint64_t ts, const struct feed_buf *b)
{
	CALL(t, tgid, ts, FN_CREATE, b->no_vtable ? TTMON_TT_DEV_UNKNOWN : (uint8_t)b->kind, b->dev, b->size, 2048,
	     b->type);
}

/* The shadows of a mesh's buffer on its devices first to last. */
static inline void feed_shadows(struct ttmon_tt *t, uint32_t tgid, uint64_t ts, const struct feed_buf *b,
				unsigned int first, unsigned int last)
{
	for (unsigned int i = first; i <= last; i++)
		CALL(t, tgid, ts, FN_SHADOW, TTMON_TT_DEV_DEVICE, DEV(i), b->size, 2048, b->type, b->addr);
}

static inline void feed_dev_new(struct ttmon_tt *t, uint32_t tgid, uint64_t ts, unsigned int dev, uint32_t logical)
{
	CALL(t, tgid, ts, FN_DEV_NEW, TTMON_TT_DEV_UNKNOWN, DEV(dev), logical);
}

static inline void feed_proc(struct ttmon_tt *t, uint32_t tgid, uint64_t ts, uint64_t start, uint32_t reason)
{
	struct ttmon_ev_proc ev = {
		.h = feed_head(TTMON_EV_PROC, tgid, tgid, ts), .start_ns = start, .reason = reason, .comm = "prog"
	};

	FEED(t, ev);
}

static inline void feed_exit(struct ttmon_tt *t, uint32_t tgid, uint64_t ts)
{
	struct ttmon_ev_exit ev = { .h = feed_head(TTMON_EV_EXIT, tgid, tgid, ts) };

	FEED(t, ev);
}

static inline void feed_clock(struct ttmon_tt *t, uint64_t mono)
{
	struct ttmon_ev_clock ev = { .h = feed_head(TTMON_EV_CLOCK, 0, 0, mono), .mono_ns = mono };

	FEED(t, ev);
}

static inline void feed_object(struct ttmon_tt *t, uint32_t slot, uint32_t object, uint32_t has)
{
	struct ttmon_ev_tt_object ev = {
		.h = feed_head(TTMON_EV_TT_OBJECT, 0, 0, 1), .object = object, .has = has, .slot = slot
	};

	FEED(t, ev);
}

static inline void feed_blind(struct ttmon_tt *t, uint32_t tgid, uint32_t object, uint64_t active, uint32_t held)
{
	struct ttmon_ev_blind ev = {
		.h = feed_head(TTMON_EV_BLIND, tgid, 0, active), .object = object, .how = held, .active_ns = active
	};

	FEED(t, ev);
}

static inline void feed_chip(struct ttmon_tt *t, uint32_t index)
{
	struct ttmon_ev_tt_chip ev = { .h = feed_head(TTMON_EV_TT_CHIP, 0, 0, 1), .index = index };

	FEED(t, ev);
}

static inline void feed_place(struct ttmon_tt *t, uint32_t tgid, uint64_t ts, uint32_t logical, uint32_t chip,
			      uint32_t flags)
{
	struct ttmon_ev_tt_proc ev = { .h = feed_head(TTMON_EV_TT_PROC, tgid, tgid, ts),
				       .logical = logical,
				       .chip = chip,
				       .how = TTMON_TT_HOW_VISIBLE,
				       .flags = flags };

	FEED(t, ev);
}

static inline void feed_mesh(struct ttmon_tt *t, uint32_t tgid, uint64_t ts, unsigned int mesh, unsigned int first,
			     unsigned int count)
{
	struct {
		struct ttmon_ev_tt_mesh ev;
		struct ttmon_tt_mesh_dev dev[TTMON_TT_MESH_MAX];
	} r = { .ev = { .h = feed_head(TTMON_EV_TT_MESH, tgid, tgid, ts), .mesh = MESH(mesh), .count = count } };

	for (unsigned int i = 0; i < count; i++)
		r.dev[i] = (struct ttmon_tt_mesh_dev){ .device = DEV(first + i), .logical = first + i };
	ttmon_tt_apply(t, &r.ev.h, sizeof(r.ev) + count * sizeof(r.dev[0]));
}

/* ---- what the view says ---- */

static inline struct ttmon_tt *feed_new(void)
{
	struct ttmon_tt_cfg cfg = { 0 };
	struct ttmon_tt *t = NULL;

	assert_int_equal(ttmon_tt_new(&cfg, NULL, NULL, &t), 0);
	return t;
}

static inline struct ttmon_tt_process feed_process(const struct ttmon_tt *t, uint32_t tgid)
{
	struct ttmon_tt_process ret = { 0 };
	struct ttmon_tt_view v;

	assert_int_equal(ttmon_tt_snapshot(t, &v), 0);
	for (size_t i = 0; i < v.nr_procs; i++)
		if (v.procs[i].tgid == tgid)
			ret = v.procs[i];
	ttmon_tt_view_fini(&v);
	return ret;
}

/* The use of a logical id; all zero if there is none. */
static inline struct ttmon_tt_use feed_use(const struct ttmon_tt *t, uint32_t tgid, uint32_t logical)
{
	struct ttmon_tt_use ret = { .logical = 0xeeee };
	struct ttmon_tt_view v;

	assert_int_equal(ttmon_tt_snapshot(t, &v), 0);
	for (size_t i = 0; i < v.nr_uses; i++)
		if (v.procs[v.uses[i].proc].tgid == tgid && v.uses[i].logical == logical)
			ret = v.uses[i];
	ttmon_tt_view_fini(&v);
	return ret;
}

static inline uint64_t feed_bytes(const struct ttmon_tt *t, uint32_t tgid, uint32_t logical, unsigned int type)
{
	return feed_use(t, tgid, logical).bytes[type];
}

static inline uint64_t feed_dram(const struct ttmon_tt *t, uint32_t tgid, uint32_t logical)
{
	return feed_bytes(t, tgid, logical, TTMON_TT_TYPE_DRAM);
}

static inline struct ttmon_tt_chip feed_chip_view(const struct ttmon_tt *t, uint32_t index)
{
	struct ttmon_tt_chip ret = { 0 };
	struct ttmon_tt_view v;

	assert_int_equal(ttmon_tt_snapshot(t, &v), 0);
	for (size_t i = 0; i < v.nr_chips; i++)
		if (v.chips[i].fact.index == index)
			ret = v.chips[i];
	ttmon_tt_view_fini(&v);
	return ret;
}

#endif
