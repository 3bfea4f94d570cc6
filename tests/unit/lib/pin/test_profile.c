// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_profile.c: runs merged (lib/pin/profile): what is found again at which level, what the rule
 * says of it, and what is not claimed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/pin/groups.h"
#include "lib/pin/profile.h"

#define SEC 1000000000ULL
#define MB  1000000ULL

enum { UNKNOWN, MAIN, MAIN2, THREAD, DEEP, BARE, PLAIN, SITES };

/* A run made by hand: the tables that lib/read/run.h describes. */
struct bench {
	struct ttmon_run run;
	struct ttmon_run_alloc allocs[256];
	struct ttmon_run_site sites[SITES];
	struct ttmon_run_proc procs[3];
	struct ttmon_run_frame frames[2];
	struct ttmon_run_object object;
};

static struct bench a, b;
static uint64_t call_ns;

static void reset(struct bench *t)
{
	*t = (struct bench){
		.sites = {
			[MAIN] = { .key = 1, .exact = 11, .names = 21, .leaf = 31, .nframes = 2, .in_main = true },
			[MAIN2] = { .key = 2, .exact = 12, .names = 22, .leaf = 31, .in_main = true },
			[THREAD] = { .key = 3, .exact = 13, .names = 23, .leaf = 33 },
			[DEEP] = { .key = 4, .exact = 14, .names = 24, .cut = true, .in_main = true },
			[BARE] = { .key = 5, .exact = 15 },
			[PLAIN] = { .key = 6, .names = 26, .leaf = 36, .in_main = true },
		},
		.procs = { { .pid = 1, .comm = "app", .exe = "/opt/app" },
			   { .pid = 2, .comm = "app", .exe = "/usr/app" },
			   { .pid = 3, .comm = "other" } },
		.frames = { { .object = 0, .offset = 0x10, .fn = "load", .delta = 3 },
			    { .object = TTMON_RUN_NONE, .offset = 9 }, },
		.object = { .path = "/opt/app", .base = "app", .build_id = { 1, 2 }, .build_id_len = 20 },
	};
	t->run = (struct ttmon_run){ .end_ns = 100 * SEC,
				     .complete = true,
				     .reasons = "",
				     .sites = t->sites,
				     .nr_sites = SITES,
				     .procs = t->procs,
				     .nr_procs = 3,
				     .allocs = t->allocs,
				     .frames = t->frames,
				     .nr_frames = 2,
				     .objects = &t->object,
				     .nr_objects = 1 };
	t->object.base = t->object.path + 5;
}

static int setup(void **state)
{
	(void)state;
	call_ns = 0;
	reset(&a);
	reset(&b);
	return 0;
}

/* One more allocation, there from second to second, moved so often as a whole. */
static struct ttmon_run_alloc *put(struct bench *t, uint32_t site, uint64_t size, uint64_t from, uint64_t to,
				   uint32_t copies)
{
	struct ttmon_run_alloc *x = &t->allocs[t->run.nr_allocs++];

	*x = (struct ttmon_run_alloc){
		.id = "x", .addr = 0x10000, .size = size, .site = site, .method = TTMON_METHOD_HOST_ALLOC
	};
	x->alloc_ns = from * SEC;
	x->free_ns = to * SEC;
	x->h2d_copies = copies;
	x->h2d_bytes = copies * size;
	for (size_t i = 0; i + 1 < t->run.nr_allocs; i++)
		x->ordinal += t->allocs[i].site == site && t->allocs[i].size == size && t->allocs[i].proc == x->proc;
	return x;
}

static struct ttmon_profile *make(const struct bench *x, const struct bench *y)
{
	const struct ttmon_run *runs[2] = { &x->run, y ? &y->run : NULL };
	struct ttmon_cost cost = TTMON_COST_DEFAULT;
	struct ttmon_profile *p = NULL;

	cost.pin_call_ns = cost.unpin_call_ns = call_ns;

	assert_int_equal(ttmon_profile_new(runs, y ? 2 : 1, &cost, &p), 0);
	return p;
}

static struct ttmon_answer ask(const struct ttmon_profile *p, struct ttmon_profile_key key)
{
	struct ttmon_answer answer = { .ordinal = 77, .site = 88 };

	ttmon_profile_lookup(p, &key, &answer);
	assert_int_equal(answer.ordinal, 77);
	assert_int_equal(answer.site, 88);
	assert_true(answer.confidence >= 0 && answer.confidence <= 1);
	return answer;
}

static struct ttmon_answer ask_alloc(const struct ttmon_profile *p, const struct bench *t, size_t i)
{
	struct ttmon_profile_key key;

	ttmon_profile_key_of(&t->run, &t->allocs[i], TTMON_RUN_NONE, &key);
	return ask(p, key);
}

static void assert_answer(struct ttmon_answer x, unsigned int verdict, unsigned int match)
{
	if (x.verdict != verdict || x.match != match)
		fail_msg("verdict %u at level %u, not %u at %u", x.verdict, x.match, verdict, match);
}

#define PIN    TTMON_VERDICT_PIN
#define NO_PIN TTMON_VERDICT_NO_PIN

static void test_cost(void **state)
{
	(void)state;
	assert_int_equal(ttmon_cost_ns(6000000000, 6000000000), SEC);
	assert_int_equal(ttmon_cost_ns(1, 3), 333333333);
	assert_int_equal(ttmon_cost_ns(0, 1), 0);
	assert_int_equal(ttmon_cost_ns(UINT64_MAX, 1), INT64_MAX / 4);
}

/* What the device writes back counts like what it reads. */
static void test_both_ways(void **state)
{
	struct ttmon_run_alloc *x;
	struct ttmon_profile *p;

	(void)state;
	x = put(&a, MAIN, 4096000, 0, 10, 0);
	x->d2h_copies = 6;
	x->d2h_bytes = 6 * x->size;
	x = put(&a, MAIN2, 4096000, 0, 10, 3);
	x->d2h_copies = 2;
	x->d2h_bytes = 2 * x->size;
	p = make(&a, NULL);
	assert_answer(ask_alloc(p, &a, 0), PIN, TTMON_MATCH_EXACT);
	assert_int_equal(ask_alloc(p, &a, 0).h2d_bytes, 0);
	assert_answer(ask_alloc(p, &a, 1), NO_PIN, TTMON_MATCH_EXACT);
	ttmon_profile_free(p);
}

/*
 * Buffers of one call site, each of another size and moved once: worth it where the same pages can
 * serve them one after another.
 */
static void test_sizes_share_pages(void **state)
{
	struct ttmon_profile *p;

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		put(&a, MAIN, 4096 * (100 + i), i, i + 1, 1);
	put(&a, MAIN, 4096 * 10, 0, 20, 0);
	p = make(&a, NULL);
	/* One run does not show that a size is never moved: it is judged with the rest. */
	for (size_t i = 0; i < 21; i++)
		assert_int_equal(ask_alloc(p, &a, i).verdict, PIN);
	ttmon_profile_free(p);
	p = make(&a, &a);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(ask_alloc(p, &a, i).verdict, PIN);
	assert_int_equal(ask_alloc(p, &a, 20).verdict, NO_PIN);
	ttmon_profile_free(p);
	/* All at one time: each needs pages of its own. */
	for (uint32_t i = 0; i < 20; i++)
		put(&b, MAIN, 4096 * (100 + i), 0, 20, 1);
	p = make(&b, NULL);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(ask_alloc(p, &b, i).verdict, NO_PIN);
	ttmon_profile_free(p);
}

/*
 * Buffers of less than a page, two at a time, each of another size and moved once, as in an inference
 * server: the site pays, and its smallest size takes a page that is there anyway. 4 bytes moved save
 * half a nanosecond.
 */
static void test_small_sizes(void **state)
{
	struct ttmon_profile *p;
	struct ttmon_answer x;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		put(&a, MAIN, i ? 4000 - i : 4, i, i + 2, 1);
	p = make(&a, NULL);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(ask_alloc(p, &a, i).verdict, PIN);
	/* What the site pays is paid: about 396 KB moved and two pages. */
	x = ask(p, (struct ttmon_profile_key){ .names = 21, .size = 1 << 20 });
	assert_true(x.gain_ns > 43000 && x.gain_ns < 45000);
	ttmon_profile_free(p);
	/* A call that takes longer than all of that saves. */
	call_ns = 30000;
	p = make(&a, NULL);
	assert_int_equal(ask_alloc(p, &a, 99).verdict, NO_PIN);
	ttmon_profile_free(p);
	call_ns = 0;
	/* All at one time: none pays. */
	for (uint32_t i = 0; i < 100; i++)
		put(&b, MAIN, i ? 4000 - i : 4, 0, 100, 1);
	p = make(&b, NULL);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(ask_alloc(p, &b, i).verdict, NO_PIN);
	ttmon_profile_free(p);
}

/* 125 ns are saved a KB moved, 667 ns paid for a KB pinned: from 5.4 times on. */
static void test_rule(void **state)
{
	struct ttmon_profile *p;
	struct ttmon_answer x;

	(void)state;
	put(&a, MAIN, 4096000, 0, 10, 5);
	put(&a, MAIN2, 4096000, 0, 10, 6);
	p = make(&a, NULL);
	assert_answer(ask_alloc(p, &a, 0), NO_PIN, TTMON_MATCH_EXACT);
	x = ask_alloc(p, &a, 1);
	assert_answer(x, PIN, TTMON_MATCH_EXACT);
	assert_int_equal(x.gain_ns, 4096000 - 1024000 - 2730667);
	assert_int_equal(x.h2d_bytes, 6 * 4096000);
	assert_int_equal(x.runs, 1);
	assert_int_equal(x.in_place, 0);
	/* n / (n + 2) */
	assert_true(x.confidence > 0.74 && x.confidence < 0.76);
	/* By age: 10 s of (10 s and 1 s). */
	assert_true(ask_alloc(p, &a, 0).confidence > 0.9);
	ttmon_profile_free(p);
	ttmon_profile_free(NULL);
}

/*
 * A hundred buffers, one at a time, each moved once: none pays by itself, and pages that are used
 * again do.
 */
static void test_churn(void **state)
{
	struct ttmon_profile_found found;
	struct ttmon_profile_key key;
	struct ttmon_profile *p;

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		put(&a, MAIN, MB, i, i + 1, 1);
	p = make(&a, NULL);
	assert_answer(ask_alloc(p, &a, 3), PIN, TTMON_MATCH_SITE);
	assert_int_equal(ask_alloc(p, &a, 3).h2d_bytes, MB);
	ttmon_profile_key_of(&a.run, &a.allocs[3], 0, &key);
	ttmon_profile_find(p, &key, &found);
	assert_int_equal(found.candidates, 100);
	assert_int_equal(found.alloc, TTMON_RUN_NONE);
	assert_int_equal(found.members[99].alloc, 99);
	/* One more than there was. */
	key.ordinal = 100;
	assert_answer(ask(p, key), PIN, TTMON_MATCH_SITE);
	ttmon_profile_free(p);
	/* All there at one time: each has to pay for itself. */
	for (size_t i = 0; i < 100; i++)
		a.allocs[i].free_ns = 100 * SEC;
	p = make(&a, NULL);
	assert_answer(ask_alloc(p, &a, 3), NO_PIN, TTMON_MATCH_SITE);
	ttmon_profile_free(p);
}

/* Two lines of one function, after a rebuild: the place in the function says which is which. */
static void test_near(void **state)
{
	struct ttmon_profile_found found;
	struct ttmon_profile_key key;
	struct ttmon_profile *p;

	(void)state;
	a.sites[MAIN].names = a.sites[MAIN2].names = 21;
	a.sites[MAIN].near = 41;
	a.sites[MAIN2].near = 42;
	put(&a, MAIN, MB, 0, 10, 40);
	put(&a, MAIN2, MB, 0, 10, 0);
	p = make(&a, NULL);
	key = (struct ttmon_profile_key){ .exact = 99, .names = 21, .near = 41, .size = MB, .order = TTMON_RUN_NONE };
	assert_answer(ask(p, key), PIN, TTMON_MATCH_NAMES);
	ttmon_profile_find(p, &key, &found);
	assert_int_equal(found.alloc, 0);
	key.near = 42;
	assert_answer(ask(p, key), NO_PIN, TTMON_MATCH_NAMES);
	/* With another size too. */
	key.size = 3 * MB;
	assert_answer(ask(p, key), NO_PIN, TTMON_MATCH_NAMES);
	/* Which of them it is, is not known: both together. */
	key.near = 0;
	ttmon_profile_find(p, &key, &found);
	assert_int_equal(found.candidates, 2);
	ttmon_profile_free(p);
}

/* Four of one size from one place, the first and third are hot. */
static void four(struct bench *t, uint32_t site, unsigned int hot)
{
	for (unsigned int i = 0; i < 4; i++)
		put(t, site, MB, 0, 10, hot & 1 << i ? 20 : 0);
}

static void test_ordinals(void **state)
{
	struct ttmon_profile *p;

	(void)state;
	four(&a, MAIN, 5);
	four(&a, THREAD, 5);
	four(&a, DEEP, 5);
	p = make(&a, NULL);
	/* One run cannot say that the order is always this: they are judged together. */
	for (size_t i = 0; i < 4; i++)
		assert_answer(ask_alloc(p, &a, i), PIN, TTMON_MATCH_SITE);
	/* Perhaps several threads, or a stack that was cut: all together. */
	for (size_t i = 4; i < 12; i++)
		assert_answer(ask_alloc(p, &a, i), PIN, TTMON_MATCH_SITE);
	/* Half of them would get another verdict. */
	assert_true(ask_alloc(p, &a, 4).confidence < 0.5);
	ttmon_profile_free(p);

	four(&b, MAIN, 5);
	p = make(&a, &b);
	for (size_t i = 0; i < 4; i++)
		assert_answer(ask_alloc(p, &a, i), i % 2 ? NO_PIN : PIN, TTMON_MATCH_EXACT);
	assert_int_equal(ask_alloc(p, &a, 0).runs, 2);
	ttmon_profile_free(p);
}

static void test_ordinals_that_do_not_hold(void **state)
{
	struct ttmon_profile *p;

	(void)state;
	/* Other ones are hot in the other run. */
	four(&a, MAIN, 5);
	four(&b, MAIN, 6);
	p = make(&a, &b);
	assert_answer(ask_alloc(p, &a, 1), PIN, TTMON_MATCH_SITE);
	ttmon_profile_free(p);
	/* There is one more of them. */
	setup(NULL);
	four(&a, MAIN, 5);
	four(&b, MAIN, 5);
	put(&b, MAIN, MB, 0, 10, 0);
	p = make(&a, &b);
	assert_answer(ask_alloc(p, &a, 1), PIN, TTMON_MATCH_SITE);
	ttmon_profile_free(p);
	/* One is gone before the last one comes. */
	setup(NULL);
	four(&a, MAIN, 5);
	a.allocs[3].alloc_ns = a.allocs[0].free_ns = 5 * SEC;
	p = make(&a, NULL);
	assert_answer(ask_alloc(p, &a, 1), PIN, TTMON_MATCH_SITE);
	ttmon_profile_free(p);
	/* Numbers that are not 0 to 3: some are not in the file. */
	setup(NULL);
	four(&a, MAIN, 5);
	a.allocs[3].ordinal = 9;
	p = make(&a, NULL);
	assert_answer(ask_alloc(p, &a, 1), PIN, TTMON_MATCH_SITE);
	ttmon_profile_free(p);
}

/*
 * A site with several sizes: the history of a size is used, but does not claim that it is the same
 * buffer.
 */
static void test_two_sizes(void **state)
{
	struct ttmon_profile *p;

	(void)state;
	put(&a, MAIN, MB, 0, 10, 20);
	put(&a, MAIN, 2 * MB, 0, 10, 0);
	put(&a, MAIN2, MB, 0, 10, 20);
	p = make(&a, NULL);
	assert_answer(ask_alloc(p, &a, 0), PIN, TTMON_MATCH_NAMES);
	assert_answer(ask_alloc(p, &a, 1), PIN, TTMON_MATCH_NAMES);
	assert_answer(ask_alloc(p, &a, 2), PIN, TTMON_MATCH_EXACT);
	ttmon_profile_free(p);
	/* Two runs that agree: the size that is never moved. */
	p = make(&a, &a);
	assert_answer(ask_alloc(p, &a, 0), PIN, TTMON_MATCH_NAMES);
	assert_answer(ask_alloc(p, &a, 1), NO_PIN, TTMON_MATCH_NAMES);
	ttmon_profile_free(p);
	/* Another size in another run says the same. */
	put(&b, MAIN2, 3 * MB, 0, 10, 20);
	p = make(&a, &b);
	assert_answer(ask_alloc(p, &a, 2), PIN, TTMON_MATCH_NAMES);
	ttmon_profile_free(p);
}

static void test_names(void **state)
{
	struct ttmon_profile *p;
	struct ttmon_answer in_class, any;

	(void)state;
	put(&a, PLAIN, 3 * MB, 0, 10, 20);
	put(&a, MAIN, MB, 0, 10, 20);
	put(&a, MAIN2, MB, 0, 10, 20);
	p = make(&a, NULL);
	assert_answer(ask_alloc(p, &a, 0), PIN, TTMON_MATCH_NAMES);
	/* 3 and 4 MB lie below 2^22, 5 MB does not. */
	in_class = ask(p, (struct ttmon_profile_key){ .exact = 99, .names = 26, .size = 4 * MB });
	assert_answer(in_class, PIN, TTMON_MATCH_NAMES);
	any = ask(p, (struct ttmon_profile_key){ .exact = 99, .names = 26, .size = 5 * MB });
	assert_answer(any, PIN, TTMON_MATCH_NAMES);
	assert_true(any.confidence < in_class.confidence);
	/* Reached through other functions: the innermost one, if there is one way to it. */
	assert_answer(ask(p, (struct ttmon_profile_key){ .names = 27, .leaf = 36, .size = 4 * MB }), PIN,
		      TTMON_MATCH_NAMES);
	assert_answer(ask(p, (struct ttmon_profile_key){ .names = 27, .leaf = 36, .size = 5 * MB }), 0, 0);
	assert_answer(ask(p, (struct ttmon_profile_key){ .names = 27, .leaf = 31, .size = MB }), 0, 0);
	assert_answer(ask(p, (struct ttmon_profile_key){ .size = MB }), 0, 0);
	ttmon_profile_free(p);
}

static void test_order(void **state)
{
	struct ttmon_profile_key key = { .size = MB, .method = TTMON_METHOD_HOST_ALLOC, .order = 1 };
	struct ttmon_profile *p;

	(void)state;
	put(&a, MAIN, 4096, 0, 10, 0);
	put(&a, BARE, MB, 0, 10, 20);
	p = make(&a, NULL);
	assert_answer(ask(p, key), PIN, TTMON_MATCH_ORDER);
	key.order = 0;
	assert_answer(ask(p, key), 0, 0);
	key.order = TTMON_RUN_NONE;
	assert_answer(ask(p, key), 0, 0);
	/* Frames with names that are not known: another allocation. */
	key.order = 1;
	key.names = 99;
	assert_answer(ask(p, key), 0, 0);
	ttmon_profile_free(p);
}

/* Names that the allocator gave, and those of mappings, which are none of its. */
static void test_tags(void **state)
{
	struct ttmon_profile_key key = { .name = "weights", .size = MB };
	struct ttmon_profile *p;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct ttmon_run_alloc *x = put(&a, MAIN, MB, 0, 10, i ? 0 : 20);

		x->method = TTMON_METHOD_CUSTOM;
		x->name = i ? "cache" : "weights";
	}
	put(&a, MAIN2, MB, 0, 10, 20)->name = "mapped";
	p = make(&a, NULL);
	assert_answer(ask(p, key), PIN, TTMON_MATCH_EXACT);
	key.ordinal = 1;
	assert_answer(ask(p, key), PIN, TTMON_MATCH_SITE);
	key.name = "cache";
	key.ordinal = 0;
	assert_answer(ask(p, key), NO_PIN, TTMON_MATCH_EXACT);
	key.size = 4096;
	assert_answer(ask(p, key), 0, 0);
	key.name = "mapped";
	assert_answer(ask(p, key), 0, 0);
	/* A name that is new: the place is known. The ordinal is that of the name. */
	key = (struct ttmon_profile_key){ .name = "new", .exact = 11, .size = MB, .ordinal = 1 };
	assert_answer(ask(p, key), PIN, TTMON_MATCH_SITE);
	ttmon_profile_free(p);
}

static void test_in_place(void **state)
{
	struct ttmon_profile *p;

	(void)state;
	put(&a, MAIN, MB, 0, 10, 0)->flags = TTMON_RUN_IN_PLACE | TTMON_RUN_DEVICE_PTR;
	put(&a, MAIN2, MB, 0, 10, 0);
	p = make(&a, NULL);
	assert_answer(ask_alloc(p, &a, 0), NO_PIN, TTMON_MATCH_EXACT);
	assert_int_equal(ask_alloc(p, &a, 0).in_place, 1);
	assert_int_equal(ask_alloc(p, &a, 1).in_place, 0);
	ttmon_profile_free(p);
}

/* Gains are per run in which the program ran, whether it did this there or not. */
static void test_runs(void **state)
{
	struct ttmon_profile *p;
	int64_t gain;
	float confidence;

	(void)state;
	put(&a, MAIN, MB, 0, 10, 20);
	b.run.nr_procs = 1;
	p = make(&a, NULL);
	gain = ask_alloc(p, &a, 0).gain_ns;
	confidence = ask_alloc(p, &a, 0).confidence;
	ttmon_profile_free(p);
	p = make(&a, &b);
	assert_int_equal(ask_alloc(p, &a, 0).gain_ns, gain / 2);
	assert_int_equal(ask_alloc(p, &a, 0).runs, 1);
	ttmon_profile_free(p);
	b.procs[0].exe = "/opt/another";
	p = make(&a, &b);
	assert_int_equal(ask_alloc(p, &a, 0).gain_ns, gain);
	ttmon_profile_free(p);
	/* What lost something counts for less: here one run says that it pays, the other that it does not. */
	setup(NULL);
	put(&a, MAIN, 100 * 4096, 0, 10, 10);
	put(&b, MAIN, 100 * 4096, 0, 10, 1);
	p = make(&a, &b);
	assert_answer(ask_alloc(p, &a, 0), PIN, TTMON_MATCH_SITE);
	assert_true(ask_alloc(p, &a, 0).gain_ns > 0);
	ttmon_profile_free(p);
	a.run.complete = false;
	p = make(&a, &b);
	assert_answer(ask_alloc(p, &a, 0), NO_PIN, TTMON_MATCH_SITE);
	ttmon_profile_free(p);
	setup(NULL);
	put(&a, MAIN, MB, 0, 10, 20);
	a.run.complete = false;
	p = make(&a, NULL);
	assert_true(ask_alloc(p, &a, 0).confidence < 0.71 * confidence);
	ttmon_profile_free(p);
}

static void test_totals(void **state)
{
	const struct ttmon_cost cost = TTMON_COST_DEFAULT, none = { 0 };
	const struct ttmon_run *runs[] = { &a.run };
	struct ttmon_profile_totals t;
	struct ttmon_profile_site s;
	struct ttmon_profile *p;

	(void)state;
	assert_int_equal(ttmon_profile_new(runs, 0, &cost, &p), -EINVAL);
	assert_int_equal(ttmon_profile_new(runs, 1, &none, &p), -EINVAL);
	/* Nothing at all. */
	p = make(&a, NULL);
	ttmon_profile_get_totals(p, &t);
	assert_int_equal(t.runs, 1);
	assert_int_equal(t.entries + t.sites + t.peak_pin_pages, 0);
	assert_answer(ask(p, (struct ttmon_profile_key){ .exact = 11, .names = 1, .name = "x" }), 0, 0);
	ttmon_profile_free(p);
	/* Ten pages that end as twenty begin; what does not pay and what is mapped are no pages. */
	put(&a, MAIN, 10 * 4096, 0, 5, 20);
	put(&a, MAIN2, 20 * 4096, 5, 10, 20);
	put(&a, THREAD, 1000 * 4096, 0, 10, 0);
	put(&a, THREAD, 1000 * 4096, 0, 10, 2000)->method = TTMON_METHOD_MMAP;
	p = make(&a, NULL);
	ttmon_profile_get_totals(p, &t);
	assert_int_equal(t.peak_pin_pages, 20);
	assert_int_equal(t.sites, 3);
	assert_true(ttmon_profile_has_site(p, 11) && ttmon_profile_has_site(p, 13));
	assert_false(ttmon_profile_has_site(p, 14) || ttmon_profile_has_site(p, 0));
	assert_int_equal(ttmon_profile_sites(p), 3);
	ttmon_profile_get_site(p, 0, &s);
	assert_int_equal(s.exact, 11);
	assert_int_equal(s.nframes, 2);
	assert_string_equal(s.frames[0].fn, "load");
	assert_int_equal(s.frames[0].offset, 0x10);
	assert_string_equal(ttmon_profile_object(p, s.frames[0].object)->base, "app");
	assert_null(s.frames[1].fn);
	assert_null(ttmon_profile_object(p, s.frames[1].object));
	ttmon_profile_free(p);
	/* Another process at the same time pins its own: the most of one process counts, not the sum. */
	put(&a, MAIN, 10 * 4096, 5, 10, 20)->proc = 1;
	p = make(&a, NULL);
	ttmon_profile_get_totals(p, &t);
	assert_int_equal(t.peak_pin_pages, 20);
	ttmon_profile_free(p);
}

/*
 * The answer of an allocator for a site equals, to the ns, what every other view shows for its memory.
 */
static void test_same_as_the_groups(void **state)
{
	struct ttmon_pin_groups *groups = NULL;
	struct ttmon_cost cost = TTMON_COST_DEFAULT;
	struct ttmon_profile *p;

	(void)state;
	call_ns = cost.pin_call_ns;
	for (uint32_t i = 0; i < 40; i++) {
		put(&a, MAIN, MB + i * 5000, i, i + 3, 1 + i % 3);
		put(&a, MAIN2, 2 * MB, i, i + 1, 0)->d2h_bytes = 3 * MB;
		put(&a, THREAD, 100 + i, i, i + 2, i % 2);
	}
	assert_int_equal(ttmon_pin_groups_new(&a.run, &cost, &groups), 0);
	assert_int_equal(groups->n, 3);
	p = make(&a, NULL);
	for (size_t i = 0; i < a.run.nr_allocs; i++) {
		const struct ttmon_said *said = ttmon_pin_groups_said(groups, i);
		struct ttmon_answer x = ask_alloc(p, &a, i);

		assert_int_equal(x.verdict == PIN, ttmon_advice_pins(said->advice, true));
		assert_int_equal(x.gain_ns, said->worth_ns);
	}
	ttmon_profile_free(p);
	ttmon_pin_groups_free(groups);
}

/*
 * Memory whose call site is not known: nothing is said of it, and the order of calls is no reason to.
 * Its name is a reason.
 */
static void test_no_call_site(void **state)
{
	struct ttmon_cost cost = TTMON_COST_DEFAULT;
	struct ttmon_pin_groups *groups = NULL;
	struct ttmon_profile_key key;
	struct ttmon_profile *p;

	(void)state;
	put(&a, 0, MB, 0, 10, 100);
	put(&a, 0, MB, 0, 10, 0);
	for (unsigned int i = 0; i < 2; i++) {
		struct ttmon_run_alloc *x = put(&a, 0, MB, 0, 10, i ? 100 : 0);

		x->name = i ? "hot" : "cold";
		x->method = TTMON_METHOD_CUSTOM;
	}
	assert_int_equal(ttmon_pin_groups_new(&a.run, &cost, &groups), 0);
	assert_int_equal(groups->n, 3);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(ttmon_pin_groups_said(groups, i)->advice, TTMON_ADVICE_UNKNOWN);
		assert_int_equal(ttmon_pin_groups_said(groups, i)->reason, TTMON_REASON_SITE);
	}
	assert_int_equal(ttmon_pin_groups_said(groups, 2)->advice, TTMON_ADVICE_KEEP);
	assert_int_equal(ttmon_pin_groups_said(groups, 3)->advice, TTMON_ADVICE_PIN);
	p = make(&a, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		ttmon_profile_key_of(&a.run, &a.allocs[i], i, &key);
		assert_int_equal(ask(p, key).verdict, TTMON_VERDICT_UNKNOWN);
	}
	assert_int_equal(ask_alloc(p, &a, 2).verdict, NO_PIN);
	assert_int_equal(ask_alloc(p, &a, 3).verdict, PIN);
	ttmon_profile_free(p);
	ttmon_pin_groups_free(groups);
}

/* Figures as large as can be: sums stop at their ends. */
static void test_extremes(void **state)
{
	struct ttmon_profile *p;

	(void)state;
	for (unsigned int i = 0; i < 200; i++) {
		struct ttmon_run_alloc *x = put(&a, 1 + i % 5, UINT64_MAX, 0, 0, 0);

		x->h2d_bytes = i % 2 ? INT64_MAX : 0;
		x->h2d_copies = UINT32_MAX;
		x->alloc_ns = i % 3 ? INT64_MAX : 0;
		x->free_ns = INT64_MAX;
		x->ordinal = x->name_ordinal = i % 7 ? i : UINT32_MAX;
		x->name = i % 4 ? NULL : "";
		x->method = i % 4 ? TTMON_METHOD_POOL : TTMON_METHOD_CUSTOM;
	}
	p = make(&a, &a);
	for (size_t i = 0; i < 200; i++)
		assert_int_not_equal(ask_alloc(p, &a, i).verdict, TTMON_VERDICT_UNKNOWN);
	ttmon_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_cost, setup),
		cmocka_unit_test_setup(test_rule, setup),
		cmocka_unit_test_setup(test_churn, setup),
		cmocka_unit_test_setup(test_near, setup),
		cmocka_unit_test_setup(test_ordinals, setup),
		cmocka_unit_test_setup(test_ordinals_that_do_not_hold, setup),
		cmocka_unit_test_setup(test_two_sizes, setup),
		cmocka_unit_test_setup(test_names, setup),
		cmocka_unit_test_setup(test_order, setup),
		cmocka_unit_test_setup(test_tags, setup),
		cmocka_unit_test_setup(test_in_place, setup),
		cmocka_unit_test_setup(test_both_ways, setup),
		cmocka_unit_test_setup(test_sizes_share_pages, setup),
		cmocka_unit_test_setup(test_small_sizes, setup),
		cmocka_unit_test_setup(test_runs, setup),
		cmocka_unit_test_setup(test_totals, setup),
		cmocka_unit_test_setup(test_same_as_the_groups, setup),
		cmocka_unit_test_setup(test_no_call_site, setup),
		cmocka_unit_test_setup(test_extremes, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
