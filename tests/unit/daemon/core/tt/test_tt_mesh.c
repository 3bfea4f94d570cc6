// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_tt_mesh.c: buffers of meshes: each byte counts once on each local device, however the devices
 * become known and whenever they change.
 */
#include "tests/unit/feed/tt_feed.h"

#define P 100

static struct ttmon_tt *started(void)
{
	struct ttmon_tt *t = feed_new();

	feed_clock(t, 1);
	feed_proc(t, P, 10, 5, TTMON_PROC_FORK);
	return t;
}

static void all_have(const struct ttmon_tt *t, unsigned int first, unsigned int last, uint64_t bytes)
{
	for (unsigned int i = first; i <= last; i++)
		assert_int_equal(feed_dram(t, P, i), bytes);
}

static void shadows_tell_the_devices(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), n = feed_mesh_buf(0x2000, 0, 10);
	uint32_t logical[64], chips[64];

	(void)state;
	for (unsigned int i = 0; i < 32; i++)
		feed_dev_new(t, P, 11, i, i);
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_MESH_PENDING);
	assert_int_equal(feed_process(t, P).pending_bytes, 100);
	all_have(t, 0, 31, 0);
	feed_shadows(t, P, 21, &m, 0, 31);
	/* The thread does something else: there were no further shadows. */
	feed_buffer(t, P, 30, FN_ALLOCATED, &n);
	assert_int_equal(feed_process(t, P).flags, 0);
	assert_int_equal(feed_process(t, P).pending_bytes, 0);
	all_have(t, 0, 31, 110);
	assert_int_equal(ttmon_tt_devices(t, P, MESH(0), logical, chips, 64), 32);
	assert_int_equal(logical[31], 31);
	assert_int_equal(ttmon_tt_devices(t, P, MESH(0), logical, chips, 5), 5);
	assert_int_equal(ttmon_tt_devices(t, P, DEV(3), logical, chips, 5), 1);
	assert_int_equal(ttmon_tt_devices(t, P, 0x1, logical, chips, 5), 0);
	assert_int_equal(ttmon_tt_devices(t, P + 1, DEV(3), logical, chips, 5), 0);
	feed_buffer(t, P, 31, FN_MARK, &m); /* the mesh is gone: only mark_as_deallocated comes */
	all_have(t, 0, 31, 10);
	assert_int_equal(feed_use(t, P, 7).peak[0], 110);
	assert_int_equal(feed_use(t, P, 7).allocs, 2);
	assert_int_equal(feed_use(t, P, 7).frees, 1);
	ttmon_tt_free(t);
	/* Nothing else comes for 20 ms. */
	t = started();
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	feed_shadows(t, P, 21, &m, 0, 1);
	ttmon_tt_tick(t, 20 * MS + 21);
	assert_int_equal(feed_dram(t, P, TTMON_TT_NO_LOGICAL), 100);
	ttmon_tt_free(t);
}

static void shadows_and_views_are_no_buffers(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), view = feed_buf(0x5000, 1, 100);

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		feed_dev_new(t, P, 11, i, i);
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	feed_shadows(t, P, 21, &m, 0, 1);
	/*
	 * These do not belong to this buffer: another size, another address, another thread, the same device
	 * again, the mesh itself.
	 */
	CALL(t, P, 22, FN_SHADOW, TTMON_TT_DEV_DEVICE, DEV(3), m.size + 1, 2048, m.type, m.addr);
	assert_int_equal(feed_dram(t, P, 0), 100);
	assert_int_equal(feed_dram(t, P, 1), 100);
	assert_int_equal(feed_dram(t, P, 3), 0);
	view.owns = 0;
	feed_buffer(t, P, 23, FN_DTOR, &view);
	assert_int_equal(feed_dram(t, P, 1), 100);
	feed_buffer(t, P, 24, FN_FREEING, &m);
	assert_int_equal(feed_dram(t, P, 1), 0);
	ttmon_tt_free(t);
	t = started();
	for (unsigned int i = 0; i < 4; i++)
		feed_dev_new(t, P, 11, i, i);
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	CALL(t, P, 21, FN_SHADOW, TTMON_TT_DEV_DEVICE, DEV(3), m.size, 2048, m.type, m.addr + 1);
	feed_buffer(t, P, 21, FN_FREEING, &m);
	feed_buffer(t, P, 21, FN_ALLOCATED, &m);
	feed_call(t, P, P + 1, 21, FN_SHADOW, TTMON_TT_DEV_DEVICE,
		  (const uint64_t[6]){ DEV(2), m.size, 2048, m.type, m.addr });
	CALL(t, P, 21, FN_SHADOW, TTMON_TT_DEV_MESH, MESH(0), m.size, 2048, m.type, m.addr);
	assert_int_equal(feed_process(t, P).pending_bytes, 100);
	ttmon_tt_free(t);
}

static void the_daemon_tells_the_devices(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100);
	struct ttmon_tt_want w[8];
	size_t n;

	(void)state;
	feed_mesh(t, P, 15, 0, 0, 4); /* of a mesh that was not seen: nothing */
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	n = ttmon_tt_wants(t, w, 8);
	assert_int_equal(n, 1);
	assert_int_equal(w[0].mesh, MESH(0));
	assert_int_equal(w[0].vt_mesh, VT_MESH);
	assert_int_equal(w[0].vt_device, 0);
	feed_mesh(t, P, 21, 0, 0, 0);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_MESH_PENDING);
	feed_mesh(t, P, 22, 0, 4, 4);
	assert_int_equal(feed_process(t, P).flags, 0);
	all_have(t, 4, 7, 100);
	n = ttmon_tt_wants(t, w, 8);
	assert_int_equal(n, 4); /* chips of 4..7; the answer about the mesh has come */
	for (size_t i = 0; i < n; i++)
		assert_int_equal(w[i].mesh, 0);
	/* Devices that are seen later take precedence. */
	m.at = 0x2000;
	feed_buffer(t, P, 30, FN_ALLOCATED, &m);
	feed_shadows(t, P, 31, &m, 4, 5);
	ttmon_tt_tick(t, 30 * MS);
	all_have(t, 4, 7, 200); /* the others may be still to come */
	ttmon_tt_tick(t, 401 * MS);
	all_have(t, 4, 5, 200);
	all_have(t, 6, 7, 0);
	/* Fewer than before, while other buffers are alive: some events were lost. */
	m.at = 0x3000;
	feed_buffer(t, P, 410 * MS, FN_ALLOCATED, &m);
	feed_shadows(t, P, 410 * MS, &m, 4, 4);
	ttmon_tt_tick(t, 900 * MS);
	all_have(t, 4, 5, 300);
	m.at = 0x4000;
	feed_buffer(t, P, 910 * MS, FN_ALLOCATED, &m);
	feed_shadows(t, P, 910 * MS, &m, 4, 6);
	ttmon_tt_tick(t, 940 * MS);
	all_have(t, 4, 6, 400);
	ttmon_tt_free(t);
}

static void seen_devices_correct_told_ones(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	feed_mesh(t, P, 21, 0, 0, 2);
	feed_shadows(t, P, 22, &m, 0, 3);
	feed_exit(t, P + 1, 23);
	ttmon_tt_tick(t, 30 * MS);
	feed_mesh(t, P, 30 * MS, 0, 0, 4); /* names the others */
	all_have(t, 0, 3, 100);
	feed_mesh(t, P, 31 * MS, 0, 0, 1); /* and does not override what was seen */
	all_have(t, 0, 3, 100);
	ttmon_tt_free(t);
}

static void all_devices_are_assumed_in_the_end(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), a = feed_buf(0x2000, 0, 1), b = feed_buf(0x3000, 1, 1);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	feed_mesh(t, P, 21, 0, 0, 0); /* the search found nothing */
	ttmon_tt_tick(t, 500 * MS);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_MESH_PENDING);
	feed_buffer(t, P, 501 * MS, FN_ALLOCATED, &a);
	ttmon_tt_tick(t, 502 * MS);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_MESH_ASSUMED);
	all_have(t, 0, 0, 101);
	feed_buffer(t, P, 503 * MS, FN_ALLOCATED, &b);
	ttmon_tt_tick(t, 504 * MS);
	all_have(t, 0, 1, 101);
	assert_int_equal(feed_use(t, P, 1).peak[0], 101);
	/*
	 * There was only one of them: the other device never had it. The flag stays that the buffer was once
	 * shown there.
	 */
	feed_mesh(t, P, 505 * MS, 0, 0, 1);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_MESH_ASSUMED);
	all_have(t, 0, 0, 101);
	all_have(t, 1, 1, 1);
	assert_int_equal(feed_use(t, P, 1).peak[0], 1);
	assert_int_equal(feed_use(t, P, 1).allocs, 1);
	ttmon_tt_free(t);
}

static void a_short_life_is_assumed_at_its_end(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100);

	(void)state;
	feed_dev_new(t, P, 11, 0, 0);
	feed_dev_new(t, P, 11, 1, 1);
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	feed_buffer(t, P, 21, FN_FREEING, &m);
	m.size = 30;
	feed_buffer(t, P, 22, FN_ALLOCATED, &m);
	feed_exit(t, P, 23);
	for (unsigned int i = 0; i < 2; i++) {
		struct ttmon_tt_use u = feed_use(t, P, i);

		assert_int_equal(u.bytes[0], 0);
		assert_int_equal(u.peak[0], 100);
		assert_int_equal(u.allocs, 2);
		assert_int_equal(u.frees, 2);
	}
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_MESH_ASSUMED);
	ttmon_tt_free(t);
	/* Here the capture ends first. */
	t = started();
	feed_dev_new(t, P, 11, 0, 0);
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	ttmon_tt_finish(t, 30);
	all_have(t, 0, 0, 30);
	ttmon_tt_free(t);
}

static void what_is_pending_is_in_the_peak(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), n = feed_mesh_buf(0x2000, 0, 5);

	(void)state;
	feed_chip(t, 1);
	feed_place(t, P, 12, 0, 1, 0);
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	feed_buffer(t, P, 21, FN_FREEING, &m);
	feed_buffer(t, P, 22, FN_ALLOCATED, &n);
	feed_mesh(t, P, 23, 0, 0, 1);
	assert_int_equal(feed_dram(t, P, 0), 5);
	assert_int_equal(feed_use(t, P, 0).peak[0], 100);
	assert_int_equal(feed_chip_view(t, 1).bytes[0], 5);
	assert_int_equal(feed_chip_view(t, 1).peak[0], 100);
	ttmon_tt_free(t);
}

static void a_closed_device_takes_its_share(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), own = feed_buf(0x2000, 1, 7);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	feed_mesh(t, P, 21, 0, 0, 3);
	feed_buffer(t, P, 22, FN_ALLOCATED, &own);
	CALL(t, P, 30, FN_DEV_END, TTMON_TT_DEV_DEVICE, DEV(1));
	all_have(t, 0, 0, 100);
	all_have(t, 1, 1, 0);
	assert_int_equal(feed_use(t, P, 1).buffers, 0);
	assert_int_equal(feed_use(t, P, 1).frees, 2);
	CALL(t, P, 31, FN_DEV_END, TTMON_TT_DEV_DEVICE, DEV(0));
	CALL(t, P, 32, FN_DEV_END, TTMON_TT_DEV_DEVICE, DEV(2));
	all_have(t, 0, 2, 0);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(feed_use(t, P, i).buffers, 0);
	/* Its buffer ended with the last one. */
	feed_buffer(t, P, 33, FN_MARK, &m);
	all_have(t, 0, 2, 0);
	/* Another mesh at the same address has its own devices. */
	feed_buffer(t, P, 40, FN_ALLOCATED, &m);
	assert_int_equal(feed_process(t, P).pending_bytes, 100);
	feed_mesh(t, P, 41, 0, 2, 9); /* the first one was closed, and is in use again */
	all_have(t, 2, 10, 100);
	feed_mesh(t, P, 41, 0, 10, 2);
	all_have(t, 0, 2, 0);
	all_have(t, 10, 11, 100);
	ttmon_tt_free(t);
}

static void another_mesh_in_the_same_place(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	feed_mesh(t, P, 21, 0, 0, 4);
	feed_buffer(t, P, 22, FN_FREEING, &m);
	m.impl = 0x5678;
	feed_buffer(t, P, 23, FN_ALLOCATED, &m);
	assert_int_equal(feed_process(t, P).pending_bytes, 100);
	feed_mesh(t, P, 24, 0, 2, 2);
	all_have(t, 0, 1, 0);
	all_have(t, 2, 3, 100);
	assert_int_equal(feed_use(t, P, 0).allocs, 1);
	assert_int_equal(feed_use(t, P, 2).allocs, 2);
	/* It is known only by its shadows, when it has no other buffers. */
	feed_buffer(t, P, 25, FN_FREEING, &m);
	feed_buffer(t, P, 26, FN_ALLOCATED, &m);
	feed_shadows(t, P, 27, &m, 1, 1);
	ttmon_tt_tick(t, 30 * MS);
	feed_mesh(t, P, 30 * MS, 0, 1, 1);
	all_have(t, 1, 1, 100);
	all_have(t, 2, 3, 0);
	ttmon_tt_free(t);
}

static void meshes_overlap(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf all = feed_mesh_buf(0x1000, 0, 100), half = feed_mesh_buf(0x2000, 1, 10),
			one = feed_buf(0x3000, 2, 1);

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &all);
	feed_mesh(t, P, 21, 0, 0, 4);
	feed_buffer(t, P, 22, FN_ALLOCATED, &half);
	feed_mesh(t, P, 23, 1, 2, 2);
	feed_buffer(t, P, 24, FN_ALLOCATED, &one);
	all_have(t, 0, 1, 100);
	all_have(t, 2, 2, 111);
	all_have(t, 3, 3, 110);
	feed_buffer(t, P, 25, FN_FREEING, &all);
	all_have(t, 0, 1, 0);
	all_have(t, 2, 2, 11);
	all_have(t, 3, 3, 10);
	feed_buffer(t, P, 26, FN_ALLOCATED, &all);
	assert_int_equal(feed_use(t, P, 2).peak[0], 111);
	feed_exit(t, P, 30);
	all_have(t, 0, 3, 0);
	ttmon_tt_free(t);
}

static void ids_that_are_the_same_are_none(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x9000, 0, 100);
	uint64_t nameless = 0;
	struct ttmon_tt_view v;

	(void)state;
	/* The word that should be the id is the same in all devices. */
	for (unsigned int i = 0; i < 4; i++) {
		struct feed_buf b = feed_buf(0x1000 * (i + 1), i, 1);

		b.id = 3;
		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &b);
	}
	assert_int_equal(feed_dram(t, P, 3), 0); /* since the second record */
	feed_buffer(t, P, 30, FN_ALLOCATED, &m);
	feed_shadows(t, P, 31, &m, 0, 3);
	ttmon_tt_tick(t, 30 * MS);
	assert_int_equal(ttmon_tt_snapshot(t, &v), 0);
	for (size_t i = 0; i < v.nr_uses; i++) {
		assert_int_equal(v.uses[i].logical, TTMON_TT_NO_LOGICAL);
		nameless += v.uses[i].bytes[0];
	}
	assert_int_equal(nameless, 404);
	ttmon_tt_view_fini(&v);
	ttmon_tt_free(t);
}

/* Headers before 2026: directly behind the vtable pointer. */
static void ids_at_their_old_place(void **state)
{
	struct ttmon_tt *t = started();

	(void)state;
	for (uint32_t i = 1; i < 4; i++) {
		struct feed_buf b = feed_buf(0x1000 * i, i, 10 * i);

		b.old_id = i;
		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &b);
	}
	for (uint32_t i = 1; i < 4; i++)
		assert_int_equal(feed_dram(t, P, i), 10 * i);
	ttmon_tt_free(t);
}

static void hostile_meshes(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), odd = feed_buf(0x2000, 0, 7);
	struct {
		struct ttmon_ev_tt_mesh ev;
		struct ttmon_tt_mesh_dev dev[4];
	} r = { .ev = { .h = feed_head(TTMON_EV_TT_MESH, P, P, 21), .mesh = MESH(0), .count = 4 } };

	(void)state;
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	/* The mesh itself is among its devices. */
	r.dev[0].device = MESH(0);
	ttmon_tt_apply(t, &r.ev.h, sizeof(r));
	assert_int_equal(feed_process(t, P).pending_bytes, 100);
	/* A count that is larger than the record, the same device twice, an invalid id. */
	r.ev.count = 60000;
	ttmon_tt_apply(t, &r.ev.h, sizeof(r.ev));
	assert_int_equal(feed_process(t, P).pending_bytes, 100);
	r.ev.count = 4;
	for (int i = 0; i < 4; i++)
		r.dev[i] = (struct ttmon_tt_mesh_dev){ .device = DEV(i / 2), .logical = 5000 };
	ttmon_tt_apply(t, &r.ev.h, sizeof(r));
	assert_int_equal(feed_process(t, P).pending_bytes, 0);
	assert_int_equal(feed_dram(t, P, TTMON_TT_NO_LOGICAL), 100);
	/* A mesh and a device exchange their places. */
	odd.dev = MESH(0);
	feed_buffer(t, P, 30, FN_ALLOCATED, &odd);
	assert_int_equal(feed_dram(t, P, 0), 7);
	m.at = 0x3000;
	feed_buffer(t, P, 31, FN_ALLOCATED, &m);
	assert_int_equal(feed_dram(t, P, 0), 0);
	assert_int_equal(feed_process(t, P).pending_bytes, 100);
	feed_exit(t, P, 40);
	ttmon_tt_free(t);
	/* Thousands of unknown meshes cost neither unlimited time nor unlimited memory. */
	t = started();
	for (unsigned int i = 0; i < 5000; i++) {
		m = feed_mesh_buf(0x1000 * (i + 1), i, 1);
		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &m);
	}
	for (unsigned int i = 0; i < 64; i++)
		feed_dev_new(t, P, 6000, 100000 + i, i);
	for (uint64_t i = 0; i < 200; i++)
		ttmon_tt_tick(t, (200 + i) * MS);
	assert_true(feed_process(t, P).flags & TTMON_TT_F_LIMIT);
	feed_exit(t, P, SEC);
	ttmon_tt_free(t);
}

static void degraded_meshes(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), e = m;

	(void)state;
	feed_object(t, 0, 1, TTMON_TT_HAS_FALLBACK | TTMON_TT_HAS_SHADOW | TTMON_TT_HAS_SPARE);
	for (unsigned int i = 0; i < 4; i++)
		feed_dev_new(t, P, 11, i, i);
	e.status = 0;
	e.addr = 0;
	feed_buffer(t, P, 20, FN_ENTER, &e);
	feed_buffer(t, P, 21, FN_INNER, &e);
	feed_shadows(t, P, 22, &m, 0, 3);
	feed_buffer(t, P, 23, FN_LEAVE, &m); /* this event does not belong to the buffer, but ends its shadows */
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(feed_dram(t, P, i), 0);
	m.at = e.at = 0x2000;
	feed_buffer(t, P, 30, FN_ENTER, &e);
	feed_buffer(t, P, 31, FN_INNER, &e);
	feed_shadows(t, P, 32, &m, 0, 3);
	ttmon_tt_tick(t, 30 * MS);
	all_have(t, 0, 3, 100);
	assert_int_equal(feed_use(t, P, 2).allocs, 2);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_DEGRADED);
	ttmon_tt_free(t);
}

/* E4 reports everything twice: notify_buffer_allocated, then track_allocate. */
static void what_is_told_twice_counts_once(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), h = feed_buf(0x2000, 0, 7);

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		feed_dev_new(t, P, 11, i, i);
	m.layout = h.layout = TTMON_TT_LAYOUT_E4;
	h.addr = 0;
	h.hooked = 1;
	for (uint64_t i = 0; i < 5; i++) {
		feed_buffer(t, P, 20 + i, FN_NOTIFIED, &m);
		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &m);
		if (i == 0)
			feed_shadows(t, P, 20, &m, 0, 3);
		feed_buffer(t, P, 20 + i, FN_NOTIFIED, &h);
		feed_buffer(t, P, 20 + i, FN_ALLOCATED, &h);
		all_have(t, 0, 3, 100);
		feed_buffer(t, P, 20 + i, FN_NOTIFIES, &m);
		feed_buffer(t, P, 20 + i, FN_FREEING, &m);
	}
	assert_int_equal(feed_use(t, P, 1).allocs, 5);
	assert_int_equal(feed_use(t, P, 1).frees, 5);
	assert_int_equal(feed_process(t, P).hooked, 5);
	assert_int_equal(feed_process(t, P).unknown_frees, 0);
	/*
	 * The first of the two is lost once: the next allocation of the same Buffer still counts as another
	 * one.
	 */
	feed_buffer(t, P, 30, FN_ALLOCATED, &m);
	feed_buffer(t, P, 31, FN_FREEING, &m);
	feed_buffer(t, P, 32, FN_NOTIFIED, &m);
	assert_int_equal(feed_dram(t, P, 1), 100);
	ttmon_tt_free(t);
}

/*
 * What was read from memory was wrong: what buffers show counts, and the process is marked as one that
 * relied on an assumption.
 */
static void buffers_beat_the_walk(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), n = feed_mesh_buf(0x2000, 0, 10);

	(void)state;
	for (unsigned int i = 0; i < 8; i++)
		feed_dev_new(t, P, 11, i, i);
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	feed_mesh(t, P, 21, 0, 0, 8);
	all_have(t, 0, 7, 100);
	assert_int_equal(feed_process(t, P).flags, 0);
	feed_buffer(t, P, 30 * MS, FN_ALLOCATED, &n);
	feed_shadows(t, P, 30 * MS, &n, 3, 3);
	ttmon_tt_tick(t, 430 * MS);
	all_have(t, 3, 3, 110);
	all_have(t, 0, 2, 0);
	all_have(t, 4, 7, 0);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_MESH_ASSUMED);
	feed_exit(t, P, 440 * MS);
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_MESH_ASSUMED);
	ttmon_tt_free(t);
}

/* A thread that is preempted between two shadows has not reported all of them. */
static void shadows_that_come_late(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), n = feed_mesh_buf(0x2000, 0, 10);

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		feed_dev_new(t, P, 11, i, i);
	/* The first buffer of a mesh: the devices so far are shown, and later ones are added. */
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	feed_shadows(t, P, 21, &m, 0, 1);
	ttmon_tt_tick(t, 30 * MS);
	all_have(t, 0, 1, 100);
	feed_shadows(t, P, 40 * MS, &m, 2, 2);
	ttmon_tt_tick(t, 500 * MS);
	all_have(t, 0, 2, 100);
	feed_shadows(t, P, 600 * MS, &m, 3, 3);
	ttmon_tt_tick(t, 700 * MS);
	all_have(t, 0, 3, 100);
	feed_buffer(t, P, 701 * MS, FN_FREEING, &m);
	/* The only buffer of a mesh whose devices are all known. */
	feed_buffer(t, P, 800 * MS, FN_ALLOCATED, &n);
	feed_shadows(t, P, 801 * MS, &n, 0, 2);
	ttmon_tt_tick(t, 840 * MS);
	all_have(t, 0, 3, 10);
	feed_shadows(t, P, 841 * MS, &n, 3, 3);
	ttmon_tt_tick(t, 1300 * MS);
	all_have(t, 0, 3, 10);
	assert_int_equal(feed_process(t, P).flags, 0);
	ttmon_tt_free(t);
}

static void spare_probes(struct ttmon_tt *t, uint64_t ts, bool on)
{
	struct ttmon_ev_tt_object ev = {
		.h = { .ts_ns = ts, .kind = TTMON_EV_TT_OBJECT },
		.object = 1,
		.has = TTMON_TT_HAS_PRIMARY | TTMON_TT_HAS_SHADOW | (on ? TTMON_TT_HAS_SPARE : 0),
	};

	FEED(t, ev);
}

/*
 * While the probes that show shadows are removed and restored, some shadows are missing: those that
 * are shown then are not all.
 */
static void shadows_while_probes_come_and_go(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), n = feed_mesh_buf(0x2000, 1, 10),
			o = feed_mesh_buf(0x3000, 2, 1);

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		feed_dev_new(t, P, 11, i, i);
	spare_probes(t, 12, true);
	/* The fact comes first, then the events before it. */
	spare_probes(t, 100, false);
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	feed_shadows(t, P, 21, &m, 0, 3);
	feed_buffer(t, P, 99, FN_ALLOCATED, &n);
	all_have(t, 0, 3, 100);
	feed_shadows(t, P, 100, &n, 0, 1);
	spare_probes(t, 200, true);
	feed_buffer(t, P, 110, FN_ALLOCATED, &o);
	feed_shadows(t, P, 199, &o, 2, 3);
	feed_shadows(t, P, 201, &o, 0, 0);
	m.at = 0x4000;
	feed_buffer(t, P, 210, FN_ALLOCATED, &m);
	all_have(t, 0, 3, 200);
	assert_int_equal(feed_process(t, P).pending_bytes, 11);
	n.at = 0x5000;
	feed_buffer(t, P, 220, FN_ALLOCATED, &n);
	feed_shadows(t, P, 221, &n, 1, 3);
	feed_buffer(t, P, 222, FN_FREEING, &m);
	feed_buffer(t, P, 223, FN_ALLOCATED, &m);
	all_have(t, 0, 0, 200);
	all_have(t, 1, 3, 220);
	ttmon_tt_free(t);
}

/*
 * Shadows that a thread reported before it slept prove nothing about another mesh that has this
 * address since.
 */
static void shadows_of_a_mesh_that_is_gone(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), n = feed_mesh_buf(0x2000, 0, 10), a = feed_buf(0x3000, 0, 1);

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		feed_dev_new(t, P, 11, i, i);
	feed_buffer_by(t, P, P + 1, 20, FN_ALLOCATED, &m);
	feed_call(t, P, P + 1, 21, FN_SHADOW, TTMON_TT_DEV_DEVICE,
		  (const uint64_t[6]){ DEV(0), m.size, 2048, m.type, m.addr });
	ttmon_tt_tick(t, 30 * MS);
	all_have(t, 0, 0, 100);
	CALL(t, P, 40 * MS, FN_MESH_DTOR, TTMON_TT_DEV_MESH, MESH(0));
	feed_buffer(t, P, 50 * MS, FN_ALLOCATED, &n);
	feed_buffer_by(t, P, P + 1, 51 * MS, FN_ALLOCATED, &a);
	assert_int_equal(feed_process(t, P).pending_bytes, 10);
	all_have(t, 0, 0, 1);
	ttmon_tt_free(t);
}

/*
 * The probes that show the devices of a mesh stay, or come back, until each mesh in use has been seen.
 */
static void spare_probes_wait_for_each_mesh(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), a = feed_buf(0x9000, 0, 1);
	uint64_t ts = MS;

	(void)state;
	feed_object(t, 0, 1, TTMON_TT_HAS_PRIMARY | TTMON_TT_HAS_SHADOW | TTMON_TT_HAS_SPARE);
	for (unsigned int i = 0; i < 20; i++) {
		feed_buffer(t, P, ts++, FN_ALLOCATED, &a);
		feed_buffer(t, P, ts++, FN_FREEING, &a);
	}
	ttmon_tt_tick(t, ts);
	assert_int_equal(ttmon_tt_get_spare(t, 0), TTMON_TT_SPARE_DROP);
	feed_object(t, 0, 1, TTMON_TT_HAS_PRIMARY | TTMON_TT_HAS_SHADOW);
	/* A mesh that is known only from the walk through memory. */
	feed_buffer(t, P, ts++, FN_ALLOCATED, &m);
	feed_mesh(t, P, ts++, 0, 0, 2);
	ttmon_tt_tick(t, ts + 60 * MS);
	assert_int_equal(ttmon_tt_get_spare(t, 0), TTMON_TT_SPARE_KEEP);
	feed_object(t, 0, 1, TTMON_TT_HAS_PRIMARY | TTMON_TT_HAS_SHADOW | TTMON_TT_HAS_SPARE);
	m.at += 0x1000;
	feed_buffer(t, P, ts + 61 * MS, FN_ALLOCATED, &m);
	feed_shadows(t, P, ts + 61 * MS, &m, 0, 1);
	ttmon_tt_tick(t, ts + 90 * MS);
	assert_int_equal(ttmon_tt_get_spare(t, 0), TTMON_TT_SPARE_DROP);
	/* A mesh whose buffers have no shadows is not waited for without limit. */
	m.dev = MESH(1);
	m.impl++;
	for (unsigned int i = 0; i < 7; i++) {
		assert_int_equal(ttmon_tt_get_spare(t, 0), i && i < 5 ? TTMON_TT_SPARE_KEEP : TTMON_TT_SPARE_DROP);
		m.at += 0x1000;
		feed_buffer(t, P, ts + (200 + 100 * i) * MS, FN_ALLOCATED, &m);
		feed_mesh(t, P, ts + (201 + 100 * i) * MS, 1, 0, 2);
		ttmon_tt_tick(t, ts + (290 + 100 * i) * MS);
	}
	ttmon_tt_free(t);
}

/* An exception between two shadows: the mesh has more devices than those that were seen. */
static void an_exception_between_shadows(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), n = feed_mesh_buf(0x2000, 0, 10);

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		feed_dev_new(t, P, 11, i, i);
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	feed_shadows(t, P, 21, &m, 0, 0);
	feed_buffer(t, P, 22, FN_FREEING, &m);
	ttmon_tt_tick(t, 30 * MS);
	feed_buffer(t, P, 31 * MS, FN_ALLOCATED, &n);
	assert_int_equal(feed_process(t, P).pending_bytes, 10);
	feed_mesh(t, P, 32 * MS, 0, 0, 4);
	all_have(t, 0, 3, 10);
	/* Nor does it remove known devices. */
	feed_buffer(t, P, 33 * MS, FN_ALLOCATED, &m);
	feed_shadows(t, P, 33 * MS, &m, 0, 1);
	feed_buffer(t, P, 33 * MS, FN_FREEING, &m);
	ttmon_tt_tick(t, 60 * MS);
	all_have(t, 0, 3, 10);
	assert_int_equal(feed_process(t, P).flags, 0);
	ttmon_tt_free(t);
}

/*
 * A mesh that is destroyed ends its buffers and what was known of it: another mesh may have the same
 * address and the same impl.
 */
static void a_mesh_that_is_destroyed(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), n = feed_mesh_buf(0x2000, 0, 10);

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		feed_dev_new(t, P, 11, i, i);
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	feed_mesh(t, P, 21, 0, 0, 2);
	all_have(t, 0, 1, 100);
	CALL(t, P, 30, FN_MESH_DTOR, TTMON_TT_DEV_MESH, MESH(0));
	all_have(t, 0, 1, 0);
	feed_buffer(t, P, 31, FN_MARK, &m);
	assert_int_equal(feed_process(t, P).unknown_frees, 0);
	feed_buffer(t, P, 40, FN_ALLOCATED, &n);
	assert_int_equal(feed_process(t, P).pending_bytes, 10);
	feed_mesh(t, P, 41, 0, 2, 2);
	all_have(t, 0, 1, 0);
	all_have(t, 2, 3, 10);
	ttmon_tt_free(t);
}

/*
 * A mesh that replaces another one, which was still waited for, is requested again, and assumed in its
 * turn.
 */
static void a_mesh_in_the_place_of_another(void **state)
{
	struct ttmon_tt *t = started();
	struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), n = feed_mesh_buf(0x2000, 0, 10);
	struct ttmon_tt_want w[8];

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		feed_dev_new(t, P, 11, i, i);
	feed_buffer(t, P, 20, FN_ALLOCATED, &m);
	for (uint64_t i = 1; i <= 10; i++) {
		(void)ttmon_tt_wants(t, w, 8);
		feed_mesh(t, P, i * 100 * MS, 0, 0, 0);
		ttmon_tt_tick(t, i * 100 * MS + 20);
	}
	assert_int_equal(feed_process(t, P).flags, TTMON_TT_F_MESH_ASSUMED);
	CALL(t, P, 2000 * MS, FN_MESH_DTOR, TTMON_TT_DEV_MESH, MESH(0));
	feed_buffer(t, P, 2000 * MS, FN_ALLOCATED, &n);
	assert_int_equal(feed_process(t, P).pending_bytes, 10);
	ttmon_tt_tick(t, 2001 * MS);
	assert_int_equal(ttmon_tt_wants(t, w, 1), 1);
	assert_int_equal(w[0].mesh, MESH(0));
	assert_int_equal(feed_process(t, P).pending_bytes, 10);
	/* Not before its memory was read, or the wait for that has ended. */
	ttmon_tt_tick(t, 6999 * MS);
	assert_int_equal(feed_process(t, P).pending_bytes, 10);
	ttmon_tt_tick(t, 7001 * MS);
	assert_int_equal(feed_process(t, P).pending_bytes, 0);
	all_have(t, 0, 1, 10);
	ttmon_tt_free(t);
}

/*
 * Devices that were closed are opened again without a constructor, and another mesh is made on them.
 */
static void reopened_devices(void **state)
{
	for (unsigned int opened = 0; opened < 2; opened++) {
		struct ttmon_tt *t = started();
		struct feed_buf m = feed_mesh_buf(0x1000, 0, 100), n = feed_mesh_buf(0x2000, 1, 10);

		(void)state;
		for (unsigned int i = 0; i < 2; i++)
			feed_dev_new(t, P, 11, i, i);
		feed_buffer(t, P, 20, FN_ALLOCATED, &m);
		feed_mesh(t, P, 21, 0, 0, 2);
		for (unsigned int i = 0; i < 2; i++)
			CALL(t, P, 30, FN_DEV_END, TTMON_TT_DEV_DEVICE, DEV(i));
		all_have(t, 0, 1, 0);
		for (unsigned int i = 0; i < 2 && opened; i++)
			CALL(t, P, 40, FN_DEV_OPEN, TTMON_TT_DEV_DEVICE, DEV(i));
		/* Their opening was not seen: allocations on them show it. */
		feed_buffer(t, P, 50, FN_ALLOCATED, &n);
		feed_mesh(t, P, 51, 1, 0, 2);
		all_have(t, 0, 1, 10);
		assert_int_equal(feed_process(t, P).flags, 0);
		/* A mesh that is no longer used does not open closed devices. */
		CALL(t, P, 60, FN_DEV_END, TTMON_TT_DEV_DEVICE, DEV(1));
		feed_mesh(t, P, 61, 1, 0, 2);
		all_have(t, 1, 1, 0);
		ttmon_tt_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reopened_devices),
		cmocka_unit_test(a_mesh_that_is_destroyed),
		cmocka_unit_test(an_exception_between_shadows),
		cmocka_unit_test(buffers_beat_the_walk),
		cmocka_unit_test(shadows_that_come_late),
		cmocka_unit_test(a_mesh_in_the_place_of_another),
		cmocka_unit_test(shadows_while_probes_come_and_go),
		cmocka_unit_test(shadows_of_a_mesh_that_is_gone),
		cmocka_unit_test(spare_probes_wait_for_each_mesh),
		cmocka_unit_test(shadows_tell_the_devices),
		cmocka_unit_test(shadows_and_views_are_no_buffers),
		cmocka_unit_test(the_daemon_tells_the_devices),
		cmocka_unit_test(seen_devices_correct_told_ones),
		cmocka_unit_test(all_devices_are_assumed_in_the_end),
		cmocka_unit_test(a_short_life_is_assumed_at_its_end),
		cmocka_unit_test(what_is_pending_is_in_the_peak),
		cmocka_unit_test(a_closed_device_takes_its_share),
		cmocka_unit_test(another_mesh_in_the_same_place),
		cmocka_unit_test(meshes_overlap),
		cmocka_unit_test(ids_at_their_old_place),
		cmocka_unit_test(ids_that_are_the_same_are_none),
		cmocka_unit_test(hostile_meshes),
		cmocka_unit_test(degraded_meshes),
		cmocka_unit_test(what_is_told_twice_counts_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
