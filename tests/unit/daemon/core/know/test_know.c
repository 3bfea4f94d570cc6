// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_know.c: what was not seen. Answers are compared with a model that has every gap, reported in
 * any order, and that looks at each moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/know/know.h"

static uint64_t seed;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % n;
}

static void blind(struct ttmon_know *k, uint32_t tgid, uint32_t object, uint64_t from_ns, uint64_t to_ns,
		  uint16_t families)
{
	const struct ttmon_ev_blind ev = {
		.h.tgid = tgid, .object = object, .families = families, .mapped_ns = from_ns, .active_ns = to_ns
	};

	ttmon_know_on_blind(k, &ev);
}

static void family(struct ttmon_know *k, enum ttmon_family f, enum ttmon_family_state state, uint64_t ts_ns)
{
	const struct ttmon_ev_family ev = { .h.ts_ns = ts_ns, .family = f, .state = state };

	ttmon_know_on_family(k, &ev);
}

static void late_attach(void **state)
{
	struct ttmon_know *k;
	const struct ttmon_gap *why;

	(void)state;
	assert_int_equal(ttmon_know_new(&k), 0);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 7, 0, 1000, &why), TTMON_KNOWN);
	assert_null(why);
	blind(k, 7, 1, 0, 500, 0);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 7, 100, 1000, &why), TTMON_AT_LEAST);
	assert_int_equal(why->why, TTMON_GAP_LATE);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 7, 100, 400, NULL), TTMON_UNKNOWN);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 7, 500, 1000, NULL), TTMON_KNOWN);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 8, 0, 1000, NULL), TTMON_KNOWN);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_CPU, 7, 0, 1000, NULL), TTMON_KNOWN);
	assert_int_equal(ttmon_know_unseen_to(k, TTMON_FAMILY_ALLOC, 7, 600), 500);
	assert_int_equal(ttmon_know_unseen_to(k, TTMON_FAMILY_ALLOC, 8, 600), 0);
	/* If one process lacks data, the sum of the host lacks it too. */
	assert_int_equal(ttmon_know_families(k, 0, 1000), ((1u << TTMON_FAMILY_MAX) - 1) & ~TTMON_FAMILIES_CUDA);
	assert_int_equal(ttmon_know_families(k, 500, 1000), (1u << TTMON_FAMILY_MAX) - 1);
	ttmon_know_free(k);
}

/*
 * Memory was allocated at an unknown address: there is a gap from then on, and only one however often
 * it happens.
 */
static void without_address(void **state)
{
	const struct ttmon_gap *gaps;
	struct ttmon_know *k;

	(void)state;
	assert_int_equal(ttmon_know_new(&k), 0);
	ttmon_know_unaddressed(k, 7, 100);
	ttmon_know_unaddressed(k, 7, 200);
	assert_int_equal(ttmon_know_gaps(k, &gaps), 1);
	assert_string_equal(ttmon_gap_why_name(gaps[0].why), "address not seen");
	assert_int_equal(ttmon_gap_why_reason(gaps[0].why), TTMON_INCOMPLETE_ADDRESS_NOT_SEEN);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 7, 0, 50, NULL), TTMON_KNOWN);
	assert_int_not_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 7, 0, 150, NULL), TTMON_KNOWN);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 7, 0, 150, NULL), TTMON_KNOWN);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 8, 0, 150, NULL), TTMON_KNOWN);
	/* Another process with this number. */
	ttmon_know_ended(k, 7, 300);
	ttmon_know_unaddressed(k, 7, 400);
	assert_int_equal(ttmon_know_gaps(k, &gaps), 2);
	ttmon_know_free(k);
}

static void what_ends_with_its_process(void **state)
{
	struct ttmon_ev_blind ev = {
		.h.tgid = 7, .how = TTMON_BLIND_UNPROBED, .families = TTMON_FAMILIES_CUDA, .active_ns = UINT64_MAX
	};
	struct ttmon_know *k;

	(void)state;
	assert_int_equal(ttmon_know_new(&k), 0);
	ttmon_know_on_blind(k, &ev);
	assert_int_equal(ttmon_know_unseen_to(k, TTMON_FAMILY_ALLOC, 7, 600), UINT64_MAX);
	assert_int_equal(ttmon_know_families(k, 900, 1000), ((1u << TTMON_FAMILY_MAX) - 1) & ~TTMON_FAMILIES_CUDA);
	ttmon_know_ended(k, 7, 800);
	assert_int_equal(ttmon_know_families(k, 900, 1000), (1u << TTMON_FAMILY_MAX) - 1);
	/*
	 * The calls are seen in the driver: sums of the process are lower bounds, the host's slots are
	 * complete.
	 */
	ev.how = TTMON_BLIND_STRIPPED;
	ev.h.tgid = 8;
	ev.mapped_ns = 900;
	ttmon_know_on_blind(k, &ev);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 8, 900, 1000, NULL), TTMON_AT_LEAST);
	assert_int_equal(ttmon_know_unseen_to(k, TTMON_FAMILY_ALLOC, 8, 1000), 0);
	/* The kernel refuses one function: the same, but this function may have pinned memory. */
	ev.how = TTMON_BLIND_REFUSED;
	ev.h.tgid = 9;
	ev.families = TTMON_FAMILY_BIT(ALLOC);
	ttmon_know_on_blind(k, &ev);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 9, 900, 1000, NULL), TTMON_AT_LEAST);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 9, 900, 1000, NULL), TTMON_KNOWN);
	assert_int_equal(ttmon_know_unseen_to(k, TTMON_FAMILY_ALLOC, 9, 1000), UINT64_MAX);
	assert_int_equal(ttmon_know_families(k, 900, 1000), (1u << TTMON_FAMILY_MAX) - 1);
	ttmon_know_free(k);
}

static void proc(struct ttmon_know *k, uint32_t tgid, uint32_t ppid, uint64_t start_ns, uint32_t reason)
{
	const struct ttmon_ev_proc ev = {
		.h = { .tgid = tgid, .ts_ns = 150 }, .ppid = ppid, .start_ns = start_ns, .reason = reason
	};

	ttmon_know_on_proc(k, &ev);
}

static void stripped(struct ttmon_know *k, uint32_t tgid)
{
	struct ttmon_ev_blind ev = {
		.h.tgid = tgid, .object = 1, .how = TTMON_BLIND_STRIPPED, .mapped_ns = 100, .active_ns = UINT64_MAX
	};

	ttmon_know_on_blind(k, &ev);
}

static enum ttmon_knowledge copies(struct ttmon_know *k, uint32_t tgid)
{
	return ttmon_know_of(k, TTMON_FAMILY_TRANSFER, tgid, 50, 200, NULL);
}

/*
 * A runtime without symbols hides nothing if another runtime was seen to call the driver's probed
 * functions.
 */
static void stripped_beside_one_that_was_seen(void **state)
{
	struct ttmon_know *k;
	const struct ttmon_gap *gaps;

	(void)state;
	assert_int_equal(ttmon_know_new(&k), 0);
	stripped(k, 7);
	stripped(k, 8);
	blind(k, 7, 2, 60, 70, 0);
	assert_int_equal(copies(k, 7), TTMON_AT_LEAST);
	proc(k, 7, 1, 10, TTMON_PROC_DRIVER);
	/* Other gaps stay. */
	assert_int_equal(ttmon_know_gaps(k, &gaps), 2);
	assert_int_equal(gaps[0].tgid, 8);
	assert_int_equal(copies(k, 7), TTMON_AT_LEAST);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 7, 80, 200, NULL), TTMON_KNOWN);
	assert_int_equal(copies(k, 8), TTMON_AT_LEAST);
	/* Reported later, seen again, forked. */
	stripped(k, 7);
	proc(k, 7, 1, 10, TTMON_PROC_SEEN);
	stripped(k, 7);
	proc(k, 9, 7, 20, TTMON_PROC_FORK);
	stripped(k, 9);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 7, 80, 200, NULL), TTMON_KNOWN);
	assert_int_equal(copies(k, 9), TTMON_KNOWN);
	/*
	 * Another program; another process with that number; the child of a process of which nothing is known.
	 */
	proc(k, 9, 7, 20, TTMON_PROC_EXEC);
	stripped(k, 9);
	assert_int_equal(copies(k, 9), TTMON_AT_LEAST);
	proc(k, 7, 1, 30, TTMON_PROC_SEEN);
	stripped(k, 7);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 7, 80, 200, NULL), TTMON_AT_LEAST);
	proc(k, 10, 8, 40, TTMON_PROC_FORK);
	stripped(k, 10);
	assert_int_equal(copies(k, 10), TTMON_AT_LEAST);
	ttmon_know_free(k);
}

/*
 * What is seen of a program proves nothing about the program that the process executed before, nor
 * about another process with its number.
 */
static void stripped_before_an_exec(void **state)
{
	struct ttmon_know *k;

	(void)state;
	assert_int_equal(ttmon_know_new(&k), 0);
	stripped(k, 7);
	proc(k, 7, 1, 10, TTMON_PROC_EXEC);
	proc(k, 7, 1, 10, TTMON_PROC_DRIVER);
	assert_int_equal(copies(k, 7), TTMON_AT_LEAST);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 7, 160, 200, NULL), TTMON_KNOWN);
	/* Both have the same library, and the second was not seen to call the driver. */
	proc(k, 8, 1, 10, TTMON_PROC_DRIVER);
	stripped(k, 8);
	assert_int_equal(copies(k, 8), TTMON_KNOWN);
	proc(k, 8, 1, 10, TTMON_PROC_EXEC);
	stripped(k, 8);
	assert_int_equal(copies(k, 8), TTMON_AT_LEAST);
	ttmon_know_free(k);
}

/*
 * A call that was perhaps not part of another one: a gap only for its family, and only as long as it
 * is reported.
 */
static void not_told_apart(void **state)
{
	const uint64_t lasts = 1ULL << TTMON_DOUBT_SHIFT;
	const struct ttmon_gap *gaps;
	struct ttmon_know *k;

	(void)state;
	assert_int_equal(ttmon_know_new(&k), 0);
	proc(k, 7, 1, 10, TTMON_PROC_DRIVER);
	proc(k, 7, 1, 10, TTMON_PROC_DOUBT);
	assert_int_equal(ttmon_know_gaps(k, &gaps), 1);
	assert_string_equal(ttmon_gap_why_name(gaps[0].why), "not told apart");
	assert_int_equal(ttmon_gap_why_reason(gaps[0].why), TTMON_INCOMPLETE_NOT_TOLD_APART);
	assert_int_equal(gaps[0].to_ns - gaps[0].from_ns, lasts);
	/* It hides some calls, never all. */
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 7, gaps[0].from_ns + 1, gaps[0].from_ns + 2, NULL),
			 TTMON_AT_LEAST);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 7, 0, UINT64_MAX, NULL), TTMON_KNOWN);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 8, 0, UINT64_MAX, NULL), TTMON_KNOWN);
	proc(k, 7, 1, 10, TTMON_PROC_DOUBT);
	assert_int_equal(ttmon_know_gaps(k, &gaps), 1);
	proc(k, 7, 1, 10, TTMON_PROC_DOUBT_ALLOC);
	proc(k, 7, 1, 10, TTMON_PROC_DOUBT_LAUNCH);
	assert_int_equal(ttmon_know_gaps(k, &gaps), 3);
	assert_int_equal(gaps[1].families, TTMON_FAMILY_BIT(ALLOC));
	assert_int_equal(gaps[2].families, TTMON_FAMILY_BIT(LAUNCH));
	/* It proves nothing about a runtime without symbols. */
	stripped(k, 7);
	assert_int_equal(ttmon_know_gaps(k, &gaps), 3);
	ttmon_know_free(k);
}

static void stripped_in_another_process_of_that_number(void **state)
{
	struct ttmon_know *k;
	const struct ttmon_gap *gaps;

	(void)state;
	assert_int_equal(ttmon_know_new(&k), 0);
	/* The first process had no such call, and keeps its gap. */
	stripped(k, 7);
	ttmon_know_ended(k, 7, 120);
	proc(k, 7, 1, 130, TTMON_PROC_FORK);
	proc(k, 7, 1, 130, TTMON_PROC_DRIVER);
	assert_int_equal(copies(k, 7), TTMON_AT_LEAST);
	/*
	 * The first process had one, and the library of the second is reported before the process: a service
	 * sees its mapping.
	 */
	proc(k, 8, 1, 10, TTMON_PROC_DRIVER);
	ttmon_know_ended(k, 8, 90);
	stripped(k, 8);
	proc(k, 8, 1, 95, TTMON_PROC_SEEN);
	assert_int_equal(copies(k, 8), TTMON_AT_LEAST);
	/* It is reported each time that a list of mappings contains it. */
	stripped(k, 8);
	assert_int_equal(ttmon_know_gaps(k, &gaps), 2);
	ttmon_know_free(k);
}

/*
 * The read of a file hangs: it is unknown what its process did. When the file has been read, it was no
 * gap. Other gaps of the process stay.
 */
static void a_file_that_is_read_late(void **state)
{
	struct ttmon_ev_blind ev = { .h.tgid = 7,
				     .object = 3,
				     .how = TTMON_BLIND_UNREAD,
				     .families = TTMON_FAMILIES_CUDA,
				     .mapped_ns = 500,
				     .active_ns = UINT64_MAX };
	const struct ttmon_gap *gaps;
	struct ttmon_know *k;

	(void)state;
	assert_int_equal(ttmon_know_new(&k), 0);
	blind(k, 8, 1, 100, 200, 0);
	ttmon_know_on_blind(k, &ev);
	ev.object = 4;
	ttmon_know_on_blind(k, &ev);
	blind(k, 7, 2, 100, 200, 0);
	assert_int_equal(ttmon_know_gaps(k, &gaps), 4);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 7, 600, 700, NULL), TTMON_UNKNOWN);
	assert_int_equal(ttmon_gap_why_reason(gaps[1].why), TTMON_INCOMPLETE_UNPROBED);
	ev.active_ns = 0;
	ttmon_know_on_blind(k, &ev);
	assert_int_equal(ttmon_know_gaps(k, &gaps), 3);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 7, 600, 700, NULL), TTMON_UNKNOWN);
	ev.object = 3;
	ttmon_know_on_blind(k, &ev);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 7, 600, 700, NULL), TTMON_KNOWN);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 7, 150, 160, NULL), TTMON_UNKNOWN);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 8, 150, 160, NULL), TTMON_UNKNOWN);
	assert_int_equal(ttmon_know_gaps(k, &gaps), 2);
	/* A gap that was reported counts once. */
	ttmon_know_on_blind(k, &ev);
	assert_int_equal(ttmon_know_gaps(k, &gaps), 2);
	ttmon_know_free(k);
}

static void a_family_goes_and_comes_back(void **state)
{
	struct ttmon_know *k;
	const struct ttmon_gap *gaps;

	(void)state;
	assert_int_equal(ttmon_know_new(&k), 0);
	family(k, TTMON_FAMILY_TRANSFER, TTMON_FAMILY_COUNTING, 100);
	assert_int_equal(ttmon_know_unseen_to(k, TTMON_FAMILY_TRANSFER, 7, 200), UINT64_MAX);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 7, 50, 200, NULL), TTMON_AT_LEAST);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 0, 100, 200, NULL), TTMON_UNKNOWN);
	family(k, TTMON_FAMILY_TRANSFER, TTMON_FAMILY_OFF, 300);
	family(k, TTMON_FAMILY_TRANSFER, TTMON_FAMILY_ON, 400);
	assert_int_equal(ttmon_know_gaps(k, &gaps), 2);
	assert_int_equal(gaps[0].to_ns, 300);
	assert_int_equal(gaps[1].to_ns, 400);
	assert_int_equal(gaps[1].state, TTMON_GAP_OFF);
	assert_int_equal(ttmon_know_families(k, 350, 351),
			 ((1u << TTMON_FAMILY_MAX) - 1) & ~TTMON_FAMILY_BIT(TRANSFER));
	assert_int_equal(ttmon_know_families(k, 400, 500), (1u << TTMON_FAMILY_MAX) - 1);
	ttmon_know_free(k);
}

static void of_one_by_the_budget(struct ttmon_know *k, uint32_t tgid, enum ttmon_family_state state, uint32_t why,
				 uint64_t ts_ns)
{
	const struct ttmon_ev_family ev = {
		.h = { .ts_ns = ts_ns, .tgid = tgid }, .family = TTMON_FAMILY_TRANSFER, .state = state, .why = why
	};

	ttmon_know_on_family(k, &ev);
}

/*
 * Calls left out by sampling are not missing; other unseen calls are, for the process and for all.
 */
static void sampled_is_not_missing(void **state)
{
	struct ttmon_know *k;

	(void)state;
	assert_int_equal(ttmon_know_new(&k), 0);
	of_one_by_the_budget(k, 7, TTMON_FAMILY_COUNTING, 1, 100);
	of_one_by_the_budget(k, 7, TTMON_FAMILY_ON, 1, 200);
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_TRANSFER, 7, 50, 150, NULL), TTMON_AT_LEAST);
	assert_false(ttmon_know_missing(k, TTMON_FAMILY_TRANSFER, 7, 50, 300));
	/* Counting was requested by the user, so nothing is sampled. */
	of_one_by_the_budget(k, 8, TTMON_FAMILY_COUNTING, 0, 100);
	assert_true(ttmon_know_missing(k, TTMON_FAMILY_TRANSFER, 8, 50, 300));
	ttmon_know_lost(k, TTMON_FAMILY_BIT(TRANSFER), 400, 410);
	assert_false(ttmon_know_missing(k, TTMON_FAMILY_TRANSFER, 7, 50, 400));
	assert_true(ttmon_know_missing(k, TTMON_FAMILY_TRANSFER, 7, 50, 405));
	of_one_by_the_budget(k, 0, TTMON_FAMILY_COUNTING, 1, 500);
	assert_true(ttmon_know_missing(k, TTMON_FAMILY_TRANSFER, 7, 450, 505));
	assert_false(ttmon_know_missing(k, TTMON_FAMILY_LAUNCH, 7, 50, 505));
	ttmon_know_free(k);
}

static void losses_that_follow_are_one(void **state)
{
	struct ttmon_know *k;
	const struct ttmon_gap *gaps;

	(void)state;
	assert_int_equal(ttmon_know_new(&k), 0);
	for (uint64_t ms = 0; ms < 1000; ms++)
		ttmon_know_lost(k, TTMON_FAMILIES_CUDA, ms * 1000000, (ms + 1) * 1000000);
	assert_int_equal(ttmon_know_gaps(k, &gaps), 1);
	/* Something was seen in this time all the same. */
	assert_int_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, 7, 10, 20, NULL), TTMON_AT_LEAST);
	ttmon_know_free(k);
}

/* If the table is full, more is called unseen than was unseen, never less. */
static void full(void **state)
{
	struct ttmon_know *k;
	const struct ttmon_gap *gaps;

	(void)state;
	assert_int_equal(ttmon_know_new(&k), 0);
	for (uint32_t i = 1; i <= 100000; i++)
		blind(k, i, 1, i, i + 10, 0);
	assert_true(ttmon_know_gaps(k, &gaps) <= 65536);
	for (uint32_t i = 1; i <= 100000; i += 997)
		assert_int_not_equal(ttmon_know_of(k, TTMON_FAMILY_ALLOC, i, i, i + 10, NULL), TTMON_KNOWN);
	ttmon_know_free(k);
}

#define MOMENTS 64

/* Brute force: for each process, family and moment, how many gaps cover it. */
static void as_the_model_says(void **state)
{
	static const enum ttmon_family asked[] = { TTMON_FAMILY_ALLOC, TTMON_FAMILY_TRANSFER,
						   TTMON_FAMILY_TENSTORRENT };

	(void)state;
	for (unsigned int round = 1; round <= 3000; round++) {
		bool dark[4][TTMON_FAMILY_MAX][MOMENTS] = { 0 };
		uint64_t last[4][TTMON_FAMILY_MAX][MOMENTS + 1] = { 0 };
		struct ttmon_know *k;

		seed = round;
		assert_int_equal(ttmon_know_new(&k), 0);
		for (unsigned int n = random_below(12); n > 0; n--) {
			uint32_t tgid = 1 + random_below(3), from = 1 + random_below(MOMENTS - 2);
			uint32_t to = from + 1 + random_below(MOMENTS - 1 - from), families = 1 + random_below(31);

			if (random_below(5) == 0) {
				ttmon_know_forget(k, tgid, MOMENTS);
				for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++) {
					memset(dark[tgid][f], 0, sizeof(dark[tgid][f]));
					memset(last[tgid][f], 0, sizeof(last[tgid][f]));
				}
				continue;
			}
			blind(k, tgid, n, from, to, (uint16_t)families);
			for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++) {
				for (uint32_t t = from; families >> f & 1 && t < to; t++)
					dark[tgid][f][t] = true;
				for (uint32_t t = from; families >> f & 1 && t <= MOMENTS; t++)
					last[tgid][f][t] = MAX(last[tgid][f][t], (uint64_t)to);
			}
		}
		for (uint32_t tgid = 1; tgid < 4; tgid++) {
			for (unsigned int i = 0; i < ARRAY_SIZE(asked); i++) {
				uint32_t from = random_below(MOMENTS - 1),
					 to = from + 1 + random_below(MOMENTS - from - 1);
				enum ttmon_knowledge got = ttmon_know_of(k, asked[i], tgid, from, to, NULL);
				unsigned int n = 0;

				for (uint32_t t = from; t < to; t++)
					n += dark[tgid][asked[i]][t];
				assert_int_equal(got == TTMON_KNOWN, n == 0);
				/*
				 * Two gaps that together cover all of the time are called a lower bound, which is true
				 * too.
				 */
				if (got == TTMON_UNKNOWN)
					assert_int_equal(n, to - from);
				assert_int_equal(ttmon_know_unseen_to(k, asked[i], tgid, to), last[tgid][asked[i]][to]);
			}
		}
		ttmon_know_free(k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_attach),
		cmocka_unit_test(without_address),
		cmocka_unit_test(not_told_apart),
		cmocka_unit_test(what_ends_with_its_process),
		cmocka_unit_test(stripped_beside_one_that_was_seen),
		cmocka_unit_test(stripped_before_an_exec),
		cmocka_unit_test(stripped_in_another_process_of_that_number),
		cmocka_unit_test(a_file_that_is_read_late),
		cmocka_unit_test(a_family_goes_and_comes_back),
		cmocka_unit_test(sampled_is_not_missing),
		cmocka_unit_test(losses_that_follow_are_one),
		cmocka_unit_test(full),
		cmocka_unit_test(as_the_model_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
