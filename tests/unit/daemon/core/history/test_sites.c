// SPDX-License-Identifier: GPL-2.0-only
/* test_sites.c: executable mappings over time, objects, symbols, call sites and their keys. */
#include "tests/unit/feed/history_feed.h"

#include "daemon/core/history/sites.h"

static void add(struct ttmon_maps *m, uint64_t start, uint64_t end, uint64_t pgoff, uint32_t object, uint64_t ts)
{
	struct ttmon_xmap x = { .start = start, .end = end, .pgoff = pgoff, .object = object };

	assert_int_equal(ttmon_maps_add(m, &x, ts), 0);
}

static uint32_t object_at(const struct ttmon_maps *m, uint64_t addr, uint64_t ts)
{
	const struct ttmon_xmap *x = ttmon_maps_find(m, addr, ts, NULL, 0);

	return x ? x->object : 0;
}

static void maps_know_what_was_there_then(void **state)
{
	struct ttmon_maps m = { 0 };
	uint64_t exec[] = { 250 };

	(void)state;
	add(&m, 0x1000, 0x3000, 0, 1, 100);
	assert_int_equal(object_at(&m, 0x1000, 100), 1);
	assert_int_equal(object_at(&m, 0x2fff, 500), 1);
	assert_int_equal(object_at(&m, 0x3000, 500), 0);
	/* It is reported later than it was used: facts come after events. */
	assert_int_equal(object_at(&m, 0x1000, 50), 1);

	/* Another library at the same place. */
	add(&m, 0x2000, 0x4000, 0, 2, 200);
	assert_int_equal(m.ended, 1);
	assert_int_equal(object_at(&m, 0x2000, 150), 1);
	assert_int_equal(object_at(&m, 0x2000, 200), 2);

	/* A mapping that was made after an exec does not explain an address before it. */
	ttmon_maps_end(&m, 250);
	add(&m, 0x8000, 0x9000, 0, 3, 300);
	assert_null(ttmon_maps_find(&m, 0x8000, 240, exec, 1));
	assert_int_equal(ttmon_maps_find(&m, 0x8000, 260, exec, 1)->object, 3);
	assert_int_equal(object_at(&m, 0x2000, 240), 2);
	assert_int_equal(object_at(&m, 0x2000, 250), 0);

	ttmon_maps_prune(&m, 260);
	assert_int_equal(m.n, 1);
	assert_int_equal(m.ended, 0);
	ttmon_maps_fini(&m);
}

static void a_mapping_listed_after_an_exec_is_the_new_programs(void **state)
{
	struct ttmon_maps m = { 0 };

	(void)state;
	add(&m, 0x1000, 0x2000, 0, 1, 100);
	add(&m, 0x3000, 0x4000, 0, 2, 240); /* by the exec, just before its event */
	add(&m, 0x3000, 0x4000, 0, 2, 300); /* by a list that was read after the exec */
	ttmon_maps_end(&m, 250);
	assert_int_equal(object_at(&m, 0x1000, 260), 0);
	assert_int_equal(object_at(&m, 0x3000, 260), 2);
	assert_int_equal(object_at(&m, 0x3000, 400), 2);
	/* The next program is a different one. */
	ttmon_maps_end(&m, 500);
	assert_int_equal(object_at(&m, 0x3000, 600), 0);
	ttmon_maps_fini(&m);
}

static void maps_told_twice_are_one(void **state)
{
	struct ttmon_maps m = { 0 };

	(void)state;
	add(&m, 0x1000, 0x2000, 0, 0, 100);
	add(&m, 0x1000, 0x2000, 0, 7, 200); /* its file became known later */
	add(&m, 0x1000, 0x2000, 0, 0, 300);
	assert_int_equal(m.n, 1);
	assert_int_equal(object_at(&m, 0x1800, 100), 7);
	ttmon_maps_fini(&m);
}

static void maps_are_bounded(void **state)
{
	struct ttmon_maps m = { 0 };
	struct ttmon_xmap x;
	int err = 0;

	(void)state;
	for (uint64_t i = 0; i < TTMON_MAPS_MAX + 1; i++) {
		x = (struct ttmon_xmap){ .start = i << 12, .end = (i + 1) << 12, .object = 1 };
		assert_int_equal(err, 0);
		err = ttmon_maps_add(&m, &x, 1);
	}
	assert_int_equal(err, -ENOSPC);
	ttmon_maps_fini(&m);
}

static const struct ttmon_alloc *last_alloc(const struct ttmon_history *h)
{
	return ttmon_history_alloc(h, ttmon_history_allocs(h) - 1);
}

/*
 * Program 1 at 0x400000, libcudart 2 at 0x700000, a library 3 at 0x800000; file offset = address -
 * start + 0x1000.
 */
static struct ttmon_history *program(uint32_t tgid, uint64_t slide, uint32_t first_object)
{
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ .keep_all = true });

	feed_object(h, first_object, 0, 0x11, "/usr/bin/prog");
	feed_object(h, first_object + 1, TTMON_OBJ_CUDA, 0x22, "/usr/lib/libcudart.so.13");
	feed_object(h, first_object + 2, 0, 0, "/opt/a/lib.so");
	feed_text(h, tgid, 5, 0x400000 + slide, 0x500000 + slide, 0x1000, first_object);
	feed_text(h, tgid, 5, 0x700000 + slide, 0x780000 + slide, 0x1000, first_object + 1);
	feed_text(h, tgid, 5, 0x800000 + slide, 0x880000 + slide, 0x1000, first_object + 2);
	return h;
}

/*
 * A database that is written before the sites have settled contains them all, except for sites with
 * frames in no known mapping.
 */
static void a_copy_is_settled(void **state)
{
	struct ttmon_history *h = program(10, 0, 1);
	const uint64_t known[] = { 0x400300, 0 }, half[] = { 0x99990000, 0x400300, 0 };

	(void)state;
	feed_alloc_at(h, 10, 100 * MS, TTMON_METHOD_HOST_ALLOC, 0x10000, PAGE, known);
	feed_alloc_at(h, 10, 101 * MS, TTMON_METHOD_HOST_ALLOC, 0x20000, PAGE, half);
	feed_free(h, 10, 102 * MS, 102 * MS, TTMON_METHOD_HOST_ALLOC, 0x10000);
	ttmon_history_now(h, 103 * MS, false);
	assert_int_equal(ttmon_history_alloc(h, 0)->site, 0);
	ttmon_history_settle(h);
	assert_int_equal(ttmon_history_alloc(h, 0)->site, 1);
	assert_int_equal(ttmon_history_site(h, 1)->allocs, 1);
	assert_int_equal(ttmon_history_site(h, 1)->live, 0);
	/* Its first frame may be in a library that was loaded just now. */
	assert_int_equal(ttmon_history_alloc(h, 1)->site, 0);
	assert_int_equal(ttmon_history_site(h, 0)->live, 1);
	/* After 50 ms it is as at the end of a trace: frames in no known mapping are left out. */
	feed_alloc_at(h, 10, 200 * MS, TTMON_METHOD_HOST_ALLOC, 0x30000, PAGE, half);
	ttmon_history_now(h, 260 * MS, false);
	ttmon_history_settle(h);
	assert_int_equal(ttmon_history_alloc(h, 2)->site, 1);
	/*
	 * A frame that was left out of this stack is left out of the next equal one too, until there are other
	 * mappings.
	 */
	feed_alloc_at(h, 10, 300 * MS, TTMON_METHOD_HOST_ALLOC, 0x40000, PAGE, half);
	ttmon_history_settle(h);
	assert_int_equal(ttmon_history_alloc(h, 3)->site, 1);
	feed_text(h, 10, 310 * MS, 0x900000, 0x980000, 0x1000, 1);
	feed_alloc_at(h, 10, 320 * MS, TTMON_METHOD_HOST_ALLOC, 0x50000, PAGE, half);
	ttmon_history_settle(h);
	assert_int_equal(ttmon_history_alloc(h, 4)->site, 0);
	ttmon_history_free(h);
}

static void cuda_and_unknown_frames_are_left_out(void **state)
{
	struct ttmon_history *h = program(10, 0, 1);
	const uint64_t frames[] = { 0x700100, 0x99990000, 0x700200, 0x400300, 0x700300, 0x800400, 0 };
	const struct ttmon_site *s;

	(void)state;
	feed_alloc_at(h, 10, 100, TTMON_METHOD_HOST_ALLOC, 0x10000, PAGE, frames);
	ttmon_history_finish(h, SEC);
	assert_int_equal(last_alloc(h)->site, 1);
	s = ttmon_history_site(h, 1);
	/*
	 * Leading CUDA frames are removed, also behind an unknown one; a CUDA frame that is called back from
	 * the program stays.
	 */
	assert_int_equal(s->nframes, 3);
	assert_int_equal(s->frames[0].object, 1);
	assert_int_equal(s->frames[0].offset, 0x1300);
	assert_int_equal(s->frames[1].object, 2);
	assert_int_equal(s->frames[1].offset, 0x1300);
	assert_int_equal(s->frames[2].object, 3);
	assert_int_equal(s->frames[2].offset, 0x1400);
	assert_int_equal(s->allocs, 1);
	assert_int_equal(s->method_mask, 1 << TTMON_METHOD_HOST_ALLOC);
	ttmon_history_free(h);
}

static void stack_of_unknown_frames_keeps_addresses(void **state)
{
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	const uint64_t frames[] = { 0x1234, 0x5678, 0 };
	const struct ttmon_site *s;

	(void)state;
	feed_alloc_at(h, 10, 100, TTMON_METHOD_HOST_ALLOC, 0x10000, PAGE, frames);
	ttmon_history_finish(h, SEC);
	s = ttmon_history_site(h, last_alloc(h)->site);
	assert_int_equal(s->nframes, 2);
	assert_int_equal(s->frames[0].object, 0);
	assert_int_equal(s->frames[0].offset, 0x1234);
	ttmon_history_free(h);
}

static uint64_t key_of_run(uint32_t tgid, uint64_t slide, uint32_t first_object)
{
	struct ttmon_history *h = program(tgid, slide, first_object);
	const uint64_t frames[] = { 0x700100 + slide, 0x400300 + slide, 0x800400 + slide, 0 };
	uint64_t key;

	feed_alloc_at(h, tgid, 100, TTMON_METHOD_HOST_ALLOC, 0x10000, PAGE, frames);
	ttmon_history_finish(h, SEC);
	key = ttmon_history_site(h, 1)->key;
	ttmon_history_free(h);
	return key;
}

static uint64_t fnv(uint64_t hash, const void *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3ULL;
	return hash;
}

static void key_is_the_documented_hash_under_aslr(void **state)
{
	const uint8_t build_id[20] = { [0 ... 19] = 0x11 }, off1[8] = { 0x00, 0x13 }, off2[8] = { 0x00, 0x14 };
	uint64_t key = fnv(0xcbf29ce484222325ULL, build_id, 20);

	(void)state;
	key = fnv(fnv(fnv(key, off1, 8), "lib.so", 6), off2, 8); /* no build-id: the base name of the path */
	assert_int_equal(key_of_run(10, 0, 1), key);
	assert_int_equal(key_of_run(99, 0x7f0000000000, 40), key);
}

static void return_address_at_the_end_of_text(void **state)
{
	struct ttmon_history *h = program(10, 0, 1);
	const uint64_t frames[] = { 0x500000,
				    0 }; /* one past the program's mapping: the call was its last instruction */

	(void)state;
	feed_alloc_at(h, 10, 100, TTMON_METHOD_HOST_ALLOC, 0x10000, PAGE, frames);
	ttmon_history_finish(h, SEC);
	assert_int_equal(ttmon_history_site(h, 1)->frames[0].object, 1);
	assert_int_equal(ttmon_history_site(h, 1)->frames[0].offset, 0x101000);
	ttmon_history_free(h);
}

/*
 * Ordinals and site numbers follow the order of events, not the time at which the sites were resolved.
 */
static void ordinals_do_not_depend_on_ticks(void **state)
{
	const uint64_t a[] = { 0x400100, 0 }, b[] = { 0x400200, 0 };

	(void)state;
	for (unsigned int ticks = 0; ticks < 3; ticks++) {
		struct ttmon_history *h = program(10, 0, 1);

		for (uint64_t i = 0; i < 12; i++) {
			feed_alloc_at(h, 10, (100 + i * 20) * MS, TTMON_METHOD_DEVICE, 0x100000 + i * PAGE,
				      i % 4 == 3 ? 8192 : 4096, i % 2 ? a : b);
			if (ticks == 1)
				ttmon_history_tick(h, (100 + i * 20 + 1) * MS);
			if (ticks == 2 && i == 7)
				ttmon_history_tick(h, 3 * SEC);
			if (i == 5)
				feed_free(h, 10, 205 * MS, 206 * MS, TTMON_METHOD_DEVICE, 0x100000);
		}
		ttmon_history_finish(h, 10 * SEC);
		for (uint64_t i = 0; i < 12; i++) {
			const struct ttmon_alloc *x = ttmon_history_alloc(h, i);
			/* b: 0 2 4 6 8 10 of 4096; a: 1 5 9 of 4096 and 3 7 11 of 8192 */
			uint32_t ordinal = (uint32_t)(i % 2 ? i / 4 : i / 2);

			assert_int_equal(x->site, i % 2 ? 2 : 1);
			assert_int_equal(x->ordinal, ordinal);
			assert_int_equal(x->bits & (TTMON_AL_SITE_QUEUED | TTMON_AL_FREE_QUEUED), 0);
		}
		assert_int_equal(ttmon_history_site(h, 1)->allocs, 6);
		assert_int_equal(ttmon_history_site(h, 1)->live, 5);
		assert_int_equal(ttmon_history_site(h, 1)->peak_bytes, 5 * 4096);
		assert_int_equal(ttmon_history_site(h, 2)->min_size, 4096);
		assert_int_equal(ttmon_history_site(h, 2)->max_size, 8192);
		ttmon_history_free(h);
	}
}

static void waits_for_facts_that_come_late(void **state)
{
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ .keep_all = true });
	const uint64_t frames[] = { 0x400100, 0 };

	(void)state;
	feed_alloc_at(h, 10, 100 * MS, TTMON_METHOD_HOST_ALLOC, 0x10000, PAGE, frames);
	ttmon_history_tick(h, 1000 * MS);
	assert_int_equal(ttmon_history_sites(h), 1);
	feed_text(h, 10, 90 * MS, 0x400000, 0x500000, 0, 1);
	ttmon_history_tick(h, 1001 * MS);
	assert_int_equal(ttmon_history_sites(h), 1);
	feed_object(h, 1, 0, 0x11, "/usr/bin/prog");
	ttmon_history_tick(h, 1002 * MS);
	assert_int_equal(ttmon_history_sites(h), 2);
	assert_int_equal(ttmon_history_site(h, 1)->frames[0].object, 1);
	ttmon_history_free(h);
}

static void resolves_after_the_process_is_gone(void **state)
{
	struct ttmon_history *h = program(10, 0, 1);
	const uint64_t frames[] = { 0x400100, 0 };

	(void)state;
	feed_alloc_at(h, 10, 100 * MS, TTMON_METHOD_HOST_ALLOC, 0x10000, PAGE, frames);
	feed_exit(h, 10, 101 * MS);
	ttmon_history_tick(h, 60 * SEC);
	assert_int_equal(last_alloc(h)->site, 1);
	assert_int_equal(ttmon_history_site(h, 1)->nframes, 1);
	assert_int_equal(ttmon_history_site(h, 1)->live, 0);
	ttmon_history_free(h);
}

static void library_replaced_between_two_allocations(void **state)
{
	struct ttmon_history *h = program(10, 0, 1);
	const uint64_t frames[] = { 0x800100, 0 };

	(void)state;
	feed_object(h, 4, 0, 0x44, "/opt/b/other.so");
	feed_alloc_at(h, 10, 100 * MS, TTMON_METHOD_HOST_ALLOC, 0x10000, PAGE, frames);
	feed_text(h, 10, 110 * MS, 0x800000, 0x880000, 0, 4);
	feed_alloc_at(h, 10, 120 * MS, TTMON_METHOD_HOST_ALLOC, 0x20000, PAGE, frames);
	ttmon_history_finish(h, SEC);
	assert_int_equal(ttmon_history_site(h, ttmon_history_alloc(h, 0)->site)->frames[0].object, 3);
	assert_int_equal(ttmon_history_site(h, ttmon_history_alloc(h, 1)->site)->frames[0].object, 4);
	ttmon_history_free(h);
}

static void asks_for_each_symbol_once(void **state)
{
	struct ttmon_history *h = program(10, 0, 1);
	const uint64_t frames[] = { 0x400100, 0x400200, 0 }, again[] = { 0x400200, 0 };
	struct ttmon_frame want[4];
	uint64_t delta;

	(void)state;
	feed_alloc_at(h, 10, 100, TTMON_METHOD_HOST_ALLOC, 0x10000, PAGE, frames);
	feed_alloc_at(h, 10, 200, TTMON_METHOD_HOST_ALLOC, 0x20000, PAGE, again);
	ttmon_history_finish(h, SEC);
	assert_int_equal(ttmon_history_want_symbols(h, want, 1), 1);
	assert_int_equal(want[0].object, 1);
	assert_int_equal(want[0].offset, 0x1100);
	assert_int_equal(ttmon_history_want_symbols(h, want, 4), 1);
	assert_int_equal(want[0].offset, 0x1200);
	assert_int_equal(ttmon_history_want_symbols(h, want, 4), 0);

	assert_null(ttmon_history_symbol(h, &want[0], &delta));
	feed_symbol(h, 1, 0x1200, 0x17, "main");
	assert_string_equal(ttmon_history_symbol(h, &want[0], &delta), "main");
	assert_int_equal(delta, 0x17);
	feed_symbol(h, 1, 0x1100, 0, ""); /* it was looked up, and has no name */
	want[0].offset = 0x1100;
	assert_null(ttmon_history_symbol(h, &want[0], &delta));
	ttmon_history_free(h);
}

static void refuses_facts_out_of_range(void **state)
{
	struct ttmon_history *h = feed_new((struct ttmon_history_cfg){ 0 });

	(void)state;
	feed_object(h, 0, 0, 1, "/x");
	feed_object(h, UINT32_MAX, 0, 1, "/x");
	feed_object(h, 1u << 19, 0, 1, "/x");
	feed_symbol(h, 1, UINT64_MAX, 0, "x");
	feed_symbol(h, 0, 1, 0, "x");
	assert_int_equal(feed_totals(h).malformed_facts, 5);
	assert_int_equal(ttmon_history_objects(h), 1);
	assert_int_equal(ttmon_history_object(h, 0)->id, 0);
	ttmon_history_free(h);
}

/* ---- stacks that were copied ---- */

#define COPY_STATE(state) ((uint16_t)((state) << TTMON_B_STACK_SHIFT))

/* frames: found by frame pointers; copy: the number of the copy, 0: no copy was made. */
static void feed_copied(struct ttmon_history *h, uint64_t ts, uint64_t addr, const uint64_t *frames, uint64_t copy,
			enum ttmon_stack_state state)
{
	uint64_t list[TTMON_MAX_FRAMES + 2] = { 0 };
	struct ttmon_ev_alloc ev = { .h = feed_head(TTMON_EV_ALLOC, 10, ts),
				     .entry_ns = ts,
				     .addr = addr,
				     .size = PAGE,
				     .fn = FN_HOST,
				     .method = TTMON_METHOD_HOST_ALLOC,
				     .bits = COPY_STATE(state) };
	union feed_record rec = { 0 };
	unsigned int n = 0;

	for (; frames[n]; n++)
		list[n] = frames[n];
	ev.nframes = (uint8_t)n;
	if (copy)
		list[n++] = copy;
	memcpy(&rec, &ev, sizeof(ev));
	memcpy((char *)&rec + sizeof(ev), list, n * 8u);
	ttmon_history_apply(h, &rec.h, sizeof(ev) + n * 8u, false);
}

static void feed_unwound(struct ttmon_history *h, uint64_t ts, uint64_t copy, enum ttmon_stack_by by,
			 enum ttmon_stack_end end, const uint64_t *frames)
{
	struct ttmon_ev_unwound ev = {
		.h = feed_head(TTMON_EV_UNWOUND, 10, ts), .stack = copy, .by = (uint8_t)by, .end = (uint8_t)end
	};
	union feed_record rec = { 0 };

	while (frames && frames[ev.nframes])
		ev.nframes++;
	ev.h.cpu = TTMON_CPU_DAEMON;
	memcpy(&rec, &ev, sizeof(ev));
	memcpy((char *)&rec + sizeof(ev), frames ? frames : &copy, ev.nframes * 8u);
	ttmon_history_apply(h, &rec.h, sizeof(ev) + ev.nframes * 8u, false);
}

static void assert_site(const struct ttmon_history *h, size_t alloc, uint32_t nframes, enum ttmon_stack_by by,
			enum ttmon_stack_end end)
{
	const struct ttmon_site *s = ttmon_history_site(h, ttmon_history_alloc(h, alloc)->site);

	assert_int_equal(s->nframes, nframes);
	assert_int_equal(s->by, by);
	assert_int_equal(s->end, end);
}

static const uint64_t by_fp[] = { 0x400300, 0 }, by_table[] = { 0x400300, 0x400500, 0x400700, 0 };

/*
 * The stack that was found in the copy is used, whether it is reported before the event or after it.
 */
static void copies_say_what_the_stack_was(void **state)
{
	struct ttmon_history *h = program(10, 0, 1);

	(void)state;
	feed_unwound(h, 90, 1, TTMON_STACK_BY_TABLES, TTMON_STACK_COMPLETE, by_table);
	feed_copied(h, 100, 0x10000, by_fp, 1, TTMON_STACK_COPY);
	feed_copied(h, 110, 0x20000, by_fp, 2, TTMON_STACK_COPY);
	ttmon_history_tick(h, 100 * MS);
	assert_int_equal(ttmon_history_alloc(h, 0)->site, 1);
	/* The site waits for the answer, for two seconds at most. */
	assert_int_equal(ttmon_history_alloc(h, 1)->site, 0);
	feed_unwound(h, 120 * MS, 2, TTMON_STACK_BY_FRAMES, TTMON_STACK_COMPLETE, NULL);
	ttmon_history_tick(h, 130 * MS);
	assert_int_equal(ttmon_history_alloc(h, 1)->site, 2);
	feed_copied(h, 200 * MS, 0x30000, by_table + 1, 3, TTMON_STACK_COPY);
	ttmon_history_tick(h, 2300 * MS);
	assert_site(h, 0, 3, TTMON_STACK_BY_TABLES, TTMON_STACK_COMPLETE);
	assert_site(h, 1, 1, TTMON_STACK_BY_FRAMES, TTMON_STACK_COMPLETE);
	assert_site(h, 2, 2, TTMON_STACK_BY_UNCHECKED, TTMON_STACK_UNKNOWN);
	ttmon_history_finish(h, 3 * SEC);
	ttmon_history_free(h);
}

/* There is no unwinder any more: nothing waits, and the frames are marked as unchecked. */
static void copies_that_nobody_answers(void **state)
{
	struct ttmon_history *h = program(10, 0, 1);

	(void)state;
	feed_copied(h, 100, 0x10000, by_fp, 1, TTMON_STACK_COPY);
	ttmon_history_tick(h, 100 * MS);
	assert_int_equal(ttmon_history_alloc(h, 0)->site, 0);
	feed_unwound(h, 110 * MS, 0, TTMON_STACK_BY_NOT_SAID, TTMON_STACK_UNKNOWN, NULL);
	ttmon_history_tick(h, 120 * MS);
	assert_site(h, 0, 1, TTMON_STACK_BY_UNCHECKED, TTMON_STACK_UNKNOWN);
	/* The same frames, once confirmed: the site has the quality of its best stack. */
	feed_copied(h, 130 * MS, 0x20000, by_fp, 0, TTMON_STACK_CONFIRMED);
	feed_copied(h, 140 * MS, 0x30000, by_fp, 0, TTMON_STACK_UNCHECKED);
	ttmon_history_tick(h, 300 * MS);
	assert_site(h, 0, 1, TTMON_STACK_BY_FRAMES, TTMON_STACK_COMPLETE);
	assert_int_equal(ttmon_history_alloc(h, 2)->site, ttmon_history_alloc(h, 0)->site);
	ttmon_history_finish(h, SEC);
	ttmon_history_free(h);
}

/* The number of answers without a request is bounded, and a second answer is refused. */
static void answers_are_bounded(void **state)
{
	struct ttmon_history *h = program(10, 0, 1);
	struct ttmon_history_totals t;

	(void)state;
	for (uint64_t i = 1; i <= 20000; i++)
		feed_unwound(h, i, i, TTMON_STACK_BY_TABLES, TTMON_STACK_COMPLETE, by_table);
	feed_unwound(h, 20001, 20000, TTMON_STACK_BY_TABLES, TTMON_STACK_COMPLETE, by_fp);
	ttmon_history_get_totals(h, &t);
	assert_int_equal(t.malformed_facts, 1);
	feed_copied(h, 100 * MS, 0x10000, by_fp, 1, TTMON_STACK_COPY);
	feed_copied(h, 100 * MS, 0x20000, by_fp, 20000, TTMON_STACK_COPY);
	/*
	 * No site waits for an allocation that is gone: the next one has its site as soon as it has settled.
	 */
	ttmon_history_tick(h, 200 * MS);
	assert_site(h, 0, 1, TTMON_STACK_BY_UNCHECKED, TTMON_STACK_UNKNOWN);
	assert_site(h, 1, 3, TTMON_STACK_BY_TABLES, TTMON_STACK_COMPLETE);
	ttmon_history_finish(h, 3 * SEC);
	ttmon_history_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_know_what_was_there_then),
		cmocka_unit_test(a_mapping_listed_after_an_exec_is_the_new_programs),
		cmocka_unit_test(maps_told_twice_are_one),
		cmocka_unit_test(maps_are_bounded),
		cmocka_unit_test(a_copy_is_settled),
		cmocka_unit_test(cuda_and_unknown_frames_are_left_out),
		cmocka_unit_test(stack_of_unknown_frames_keeps_addresses),
		cmocka_unit_test(key_is_the_documented_hash_under_aslr),
		cmocka_unit_test(return_address_at_the_end_of_text),
		cmocka_unit_test(ordinals_do_not_depend_on_ticks),
		cmocka_unit_test(waits_for_facts_that_come_late),
		cmocka_unit_test(resolves_after_the_process_is_gone),
		cmocka_unit_test(library_replaced_between_two_allocations),
		cmocka_unit_test(asks_for_each_symbol_once),
		cmocka_unit_test(refuses_facts_out_of_range),
		cmocka_unit_test(copies_say_what_the_stack_was),
		cmocka_unit_test(copies_that_nobody_answers),
		cmocka_unit_test(answers_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
