// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_seen.c: what is known of each slot, and for how long each family sent nothing. It is compared
 * with a model that looks at every moment: changes and losses at random times, reported before, during
 * and after the close of their slots.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/know/seen.h"

#define SLOTS 200
#define SLOT  10 /* number of moments */
#define ALL   ((1u << TTMON_FAMILY_MAX) - 1)

static uint64_t seed;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % n;
}

static void tell(struct ttmon_seen_sums *s, struct ttmon_know *k, unsigned int family, unsigned int state,
		 uint64_t ts_ns)
{
	struct ttmon_ev_family ev = { .h.ts_ns = ts_ns, .family = family, .state = state };

	ttmon_know_on_family(k, &ev);
	ttmon_seen_on_family(s, &ev);
}

/*
 * Two families change at any moment; each change is reported before its slot closes, as the daemon's
 * facts are.
 */
static void against_a_model(void **state)
{
	static const uint8_t families[] = { TTMON_FAMILY_TRANSFER, TTMON_FAMILY_ALLOC };

	(void)state;
	for (seed = 1; seed < 200; seed++) {
		bool on[2][SLOTS * SLOT], is_on[2] = { true, true };
		uint64_t off_ns[2] = { 0 }, missed[2] = { 0 }, end = seed;
		struct ttmon_seen_sums s;
		struct ttmon_seen_view v;
		struct ttmon_know *k;

		ttmon_seen_init(&s);
		assert_int_equal(ttmon_know_new(&k), 0);
		for (uint64_t slot = 0; slot < SLOTS; slot++) {
			for (uint64_t t = slot * SLOT; t < (slot + 1) * SLOT; t++) {
				for (unsigned int f = 0; f < 2; f++) {
					if (t && !random_below(60)) {
						is_on[f] = !is_on[f];
						tell(&s, k, families[f], is_on[f] ? TTMON_FAMILY_ON : TTMON_FAMILY_OFF,
						     t);
					}
					on[f][t] = is_on[f];
				}
			}
			uint32_t got = ttmon_seen_close(&s, k, slot * SLOT, (slot + 1) * SLOT, ALL);

			for (unsigned int f = 0; f < 2; f++) {
				unsigned int n = 0;

				for (uint64_t t = slot * SLOT; t < (slot + 1) * SLOT; t++)
					n += on[f][t];
				assert_int_equal(got >> families[f] & 1, n == SLOT);
				off_ns[f] += n ? 0 : SLOT;
				missed[f] += n && n < SLOT;
			}
			assert_true(got & TTMON_FAMILY_BIT(CPU));
		}
		ttmon_seen_get(&s, k, &v);
		assert_int_equal(v.now_ns, SLOTS * SLOT);
		for (unsigned int f = 0; f < 2; f++) {
			const struct ttmon_seen_family *seen = &v.of[families[f]];

			assert_int_equal(seen->off_ns, off_ns[f]);
			assert_int_equal(seen->missed, missed[f]);
			assert_int_equal(seen->since_ns == UINT64_MAX, !is_on[f]);
		}
		ttmon_know_free(k);
		seed = end;
	}
}

static void not_there_from_the_start(void **state)
{
	const struct ttmon_ev_clock clock = { .mono_ns = 5,
					      .options = TTMON_OPT_FAMILIES | TTMON_FAMILY_BIT(ALLOC)
										      << TTMON_OPT_FAMILY_SHIFT };
	struct ttmon_seen_sums s;
	struct ttmon_seen_view v;
	struct ttmon_know *k;

	(void)state;
	ttmon_seen_init(&s);
	assert_int_equal(ttmon_know_new(&k), 0);
	ttmon_seen_on_clock(&s, &clock);
	/* A second CLOCK event changes nothing. */
	ttmon_seen_on_clock(&s, &(struct ttmon_ev_clock){ .mono_ns = 9 });
	assert_int_equal(ttmon_seen_close(&s, k, 10, 20, 0), TTMON_FAMILY_BIT(ALLOC));
	tell(&s, k, TTMON_FAMILY_MMAP, TTMON_FAMILY_ON, 25);
	assert_int_equal(ttmon_seen_close(&s, k, 20, 30, 0), TTMON_FAMILY_BIT(ALLOC));
	assert_int_equal(ttmon_seen_close(&s, k, 30, 40, 0), TTMON_FAMILY_BIT(ALLOC) | TTMON_FAMILY_BIT(MMAP));
	tell(&s, k, TTMON_FAMILY_MMAP, TTMON_FAMILY_OFF, 40);
	assert_int_equal(ttmon_seen_close(&s, k, 40, 50, 0), TTMON_FAMILY_BIT(ALLOC));
	ttmon_seen_get(&s, k, &v);
	assert_int_equal(v.start_ns, 5);
	assert_int_equal(v.of[TTMON_FAMILY_ALLOC].since_ns, 5);
	assert_int_equal(v.of[TTMON_FAMILY_MMAP].off_ns, 20);
	assert_int_equal(v.of[TTMON_FAMILY_MMAP].missed, 1);
	assert_int_equal(v.of[TTMON_FAMILY_MMAP].why, TTMON_GAP_ASKED);
	assert_int_equal(v.of[TTMON_FAMILY_LAUNCH].off_ns, 40);
	assert_int_equal(v.of[TTMON_FAMILY_LAUNCH].why, TTMON_GAP_WHY_MAX);
	ttmon_know_free(k);
}

/* CPU time is measured from the first slot that has it; a later slot without it has it missing. */
static void cpu_time_begins(void **state)
{
	const uint32_t cpu = TTMON_FAMILY_BIT(CPU);
	struct ttmon_seen_sums s;
	struct ttmon_seen_view v;
	struct ttmon_know *k;

	(void)state;
	ttmon_seen_init(&s);
	assert_int_equal(ttmon_know_new(&k), 0);
	assert_false(ttmon_seen_close(&s, k, 0, 10, 0) & cpu);
	ttmon_seen_get(&s, k, &v);
	assert_int_equal(v.of[TTMON_FAMILY_CPU].off_ns + v.of[TTMON_FAMILY_CPU].missed, 0);
	assert_true(ttmon_seen_close(&s, k, 10, 20, cpu) & cpu);
	assert_false(ttmon_seen_close(&s, k, 20, 30, 0) & cpu);
	ttmon_seen_get(&s, k, &v);
	assert_int_equal(v.of[TTMON_FAMILY_CPU].off_ns, 10);
	ttmon_know_free(k);
}

/*
 * If the probes of a process became active late, it is missing in the sums of the slots until then,
 * and it is reported.
 */
static void late_processes(void **state)
{
	const struct ttmon_ev_blind late = { .h.tgid = 7, .object = 1, .mapped_ns = 0, .active_ns = 15 };
	struct ttmon_seen_sums s;
	struct ttmon_seen_view v;
	struct ttmon_know *k;

	(void)state;
	ttmon_seen_init(&s);
	assert_int_equal(ttmon_know_new(&k), 0);
	ttmon_know_on_blind(k, &late);
	assert_int_equal(ttmon_seen_close(&s, k, 10, 20, ALL), ALL & ~TTMON_FAMILIES_CUDA);
	assert_int_equal(ttmon_seen_close(&s, k, 20, 30, ALL), ALL);
	ttmon_seen_get(&s, k, &v);
	assert_true(v.of[TTMON_FAMILY_TRANSFER].partly && !v.of[TTMON_FAMILY_CPU].partly);
	assert_int_equal(v.of[TTMON_FAMILY_TRANSFER].off_ns, 0);
	assert_int_equal(v.of[TTMON_FAMILY_TRANSFER].missed, 1);
	assert_int_equal(v.of[TTMON_FAMILY_TRANSFER].since_ns, 0);
	ttmon_know_forget(k, 7, 100);
	ttmon_seen_get(&s, k, &v);
	assert_false(v.of[TTMON_FAMILY_TRANSFER].partly);
	ttmon_know_free(k);
}

/* Gaps that are reported after their slots have closed are in the next slot. */
static void told_late(void **state)
{
	struct ttmon_seen_sums s;
	struct ttmon_know *k;

	(void)state;
	ttmon_seen_init(&s);
	assert_int_equal(ttmon_know_new(&k), 0);
	assert_int_equal(ttmon_seen_close(&s, k, 10, 20, ALL), ALL);
	ttmon_seen_late(&s, TTMON_FAMILY_BIT(TRANSFER), 25);
	assert_int_equal(ttmon_seen_close(&s, k, 20, 30, ALL), ALL);
	ttmon_seen_late(&s, TTMON_FAMILY_BIT(TRANSFER), 25);
	assert_int_equal(ttmon_seen_close(&s, k, 30, 40, ALL), ALL & ~TTMON_FAMILY_BIT(TRANSFER));
	assert_int_equal(ttmon_seen_close(&s, k, 40, 50, ALL), ALL);
	ttmon_know_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(against_a_model), cmocka_unit_test(not_there_from_the_start),
		cmocka_unit_test(cpu_time_begins), cmocka_unit_test(late_processes),
		cmocka_unit_test(told_late),
	};

	return cmocka_run_group_tests_name("seen", tests, NULL, NULL);
}
