// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_disp_record.c: how the layout of a profiler record is found from its content, and what is
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/dispatch/record.h"

#define HEAP 0x55d0c0de0000ULL
#define SEEN (5000 * NSEC_PER_SEC)
#define GHZ  1.35

static uint64_t bits(double d)
{
	uint64_t w;

	memcpy(&w, &d, sizeof(w));
	return w;
}

static struct ttmon_ev_tt_program record(uint32_t id, uint32_t gap, uint64_t start, uint64_t end)
{
	return (struct ttmon_ev_tt_program){
		.h = { .ts_ns = SEEN, .kind = TTMON_EV_TT_PROGRAM },
		.w = { (uint64_t)gap << 32 | id, start, end, bits(GHZ) },
		.count = 1,
	};
}

/* Chip at 32, vector of strings at 40, arbitrary bytes in both gaps. */
static struct ttmon_ev_tt_program chip32(uint32_t id, uint32_t chip, uint32_t kernels, uint32_t rubbish)
{
	struct ttmon_ev_tt_program ev = record(id, rubbish, 1000000, 2350000);

	ev.w[4] = (uint64_t)rubbish << 32 | chip;
	if (kernels) {
		ev.w[5] = HEAP;
		ev.w[6] = HEAP + 32ULL * kernels;
		ev.w[7] = HEAP + 64ULL * kernels;
	}
	return ev;
}

static struct ttmon_ev_tt_program kernels32(uint32_t id, uint32_t chip, uint32_t kernels, uint64_t rest)
{
	struct ttmon_ev_tt_program ev = record(id, chip, 1000000, 2350000);

	ev.w[4] = kernels ? HEAP : 0;
	ev.w[5] = kernels;
	ev.w[6] = 1;
	ev.w[7] = rest;
	return ev;
}

/* A clock by which the run ended 3 us before the callback. */
static struct ttmon_ev_tt_program sync32(uint32_t id, uint32_t chip, uint32_t kernels)
{
	uint64_t base = 1ULL << 45;
	struct ttmon_ev_tt_program ev = record(id, chip, base, base + 1350000);

	ev.w[4] = ev.w[2] - (uint64_t)((double)(SEEN - 3000) * GHZ);
	ev.w[5] = 800;
	ev.w[6] = kernels ? HEAP : 0x1234567;
	ev.w[7] = kernels;
	return ev;
}

static void settles_on(struct ttmon_ev_tt_program (*make)(uint32_t i), bool batch, enum ttmon_rec_layout layout)
{
	struct ttmon_rec_judge j = { 0 };
	struct ttmon_ev_tt_program ev;
	struct ttmon_rec r = { .chip = 77 };

	ev = make(0);
	assert_int_equal(ttmon_rec_parse(&j, ev.w, SEEN, &r), TTMON_REC_UNKNOWN);
	assert_int_equal(r.chip, 77);
	for (uint32_t i = 0; i < 4; i++) {
		ev = make(i);
		assert_int_equal(ttmon_rec_check(ev.w), TTMON_REC_OK);
		assert_false(j.settled);
		ttmon_rec_judge_add(&j, &ev, batch);
	}
	assert_true(j.settled);
	assert_int_equal(j.layout, layout);
}

static struct ttmon_ev_tt_program make_chip32(uint32_t i)
{
	return chip32(7 + i, i, 2, 0);
}

static struct ttmon_ev_tt_program make_chip32_rubbish(uint32_t i)
{
	return chip32(7 + i, i, 3, 0x7ffd1234 + i);
}

static struct ttmon_ev_tt_program make_kernels32(uint32_t i)
{
	return kernels32(7 + i, i, 1, 0xdeadbeefcafe0000ULL);
}

static struct ttmon_ev_tt_program make_kernels32_short(uint32_t i)
{
	struct ttmon_ev_tt_program ev = kernels32(7 + i, 0, 0, 0);

	ev.stride = 48;
	return ev;
}

/* 72 bytes: queue, stream, sequence, schema and type behind the kernels. */
static struct ttmon_ev_tt_program make_kernels32_72(uint32_t i)
{
	struct ttmon_ev_tt_program ev = kernels32(7 + i, 0, 0, i | 1ULL << 32);

	ev.w[6] = 0;
	ev.stride = 72;
	return ev;
}

/* The newest: 80 bytes, queue, stream, generation and sequence behind the kernels. */
static struct ttmon_ev_tt_program make_kernels32_long(uint32_t i)
{
	struct ttmon_ev_tt_program ev = kernels32(7 + i, i, 2, 3 | (uint64_t)i << 32);

	ev.w[6] = i;
	ev.stride = 80;
	return ev;
}

static struct ttmon_ev_tt_program make_vector32(uint32_t i)
{
	struct ttmon_ev_tt_program ev = kernels32(7 + i, i, 0, 0x1234567 * (i + 1));

	ev.w[4] = HEAP;
	ev.w[5] = HEAP + 32 + 32ULL * i;
	ev.w[6] = HEAP + 256;
	return ev;
}

static struct ttmon_ev_tt_program make_sync32(uint32_t i)
{
	return sync32(7 + i, i, 2);
}

static struct ttmon_ev_tt_program make_sync32_alone(uint32_t i)
{
	return sync32(7 + i, 0, 0);
}

static void each_layout_is_told(void **test)
{
	(void)test;
	settles_on(make_chip32, false, TTMON_REC_CHIP32);
	settles_on(make_chip32_rubbish, false, TTMON_REC_CHIP32);
	settles_on(make_kernels32, false, TTMON_REC_KERNELS32);
	settles_on(make_kernels32_short, true, TTMON_REC_KERNELS32);
	settles_on(make_kernels32_long, true, TTMON_REC_KERNELS32);
	settles_on(make_kernels32_72, true, TTMON_REC_KERNELS32);
	settles_on(make_vector32, false, TTMON_REC_KERNELS32);
	settles_on(make_sync32, true, TTMON_REC_SYNC32);
	settles_on(make_sync32_alone, false, TTMON_REC_SYNC32);
}

static void fields_are_taken_from_their_place(void **test)
{
	struct ttmon_rec_judge j = { .settled = true, .layout = TTMON_REC_CHIP32, .score = { -9, -9, 9 } };
	struct ttmon_ev_tt_program ev = chip32(0x10007, 3, 2, 0x55);
	struct ttmon_rec r;
	uint64_t host;

	(void)test;
	assert_int_equal(ttmon_rec_parse(&j, ev.w, SEEN, &r), TTMON_REC_OK);
	assert_int_equal(r.chip, 3);
	assert_int_equal(r.program, 0x10007);
	assert_int_equal(r.start, 1000000);
	assert_int_equal(r.end, 2350000);
	assert_true(r.ghz == GHZ);
	assert_false(r.has_sync);
	assert_false(ttmon_rec_host_ns(&r, r.end, &host));

	j = (struct ttmon_rec_judge){ .settled = true, .layout = TTMON_REC_KERNELS32, .score = { 9, -9, -9 } };
	ev = kernels32(9, 5, 1, 0);
	assert_int_equal(ttmon_rec_parse(&j, ev.w, SEEN, &r), TTMON_REC_OK);
	assert_int_equal(r.chip, 5);
	assert_false(r.has_sync);

	j = (struct ttmon_rec_judge){ .settled = true, .layout = TTMON_REC_SYNC32, .score = { -9, 9, -9 } };
	ev = sync32(9, 6, 1);
	assert_int_equal(ttmon_rec_parse(&j, ev.w, SEEN, &r), TTMON_REC_OK);
	assert_int_equal(r.chip, 6);
	assert_true(r.has_sync);
	assert_int_equal(r.error_ns, 800);
	assert_true(ttmon_rec_host_ns(&r, r.end, &host));
	assert_true(host - (SEEN - 3000) + 2 <= 4);
	assert_true(ttmon_rec_host_ns(&r, r.start, &host));
	assert_true(host - (SEEN - 1003000) + 2 <= 4);
}

/* A clock that does not map the run to shortly before the callback is invalid. */
static void clock_sync_must_make_sense(void **test)
{
	struct ttmon_rec_judge j = { .settled = true, .layout = TTMON_REC_SYNC32, .score = { -9, 9, -9 } };
	static const int64_t off_ns[] = { -100 * (int64_t)NSEC_PER_SEC, 20 * (int64_t)NSEC_PER_MS, 1LL << 60 };
	struct ttmon_rec r;

	(void)test;
	for (size_t i = 0; i < ARRAY_SIZE(off_ns); i++) {
		struct ttmon_ev_tt_program ev = sync32(9, 1, 1);

		ev.w[4] -= (uint64_t)(int64_t)((double)off_ns[i] * GHZ);
		assert_int_equal(ttmon_rec_parse(&j, ev.w, SEEN, &r), TTMON_REC_OK);
		assert_false(r.has_sync);
	}
	for (int i = 0; i < 2; i++) {
		struct ttmon_ev_tt_program ev = sync32(9, 1, 1);

		ev.w[5] = (uint64_t)-5;
		ev.w[4] = i ? 0 : ev.w[4];
		assert_int_equal(ttmon_rec_parse(&j, ev.w, SEEN, &r), TTMON_REC_OK);
		assert_false(r.has_sync);
	}
}

static void nonsense_is_no_record(void **test)
{
	static const double bad[] = { 0.19, 2.01, 0, -1, 1e300, 1350 };
	struct ttmon_ev_tt_program ev = record(1, 0, 100, 100);

	(void)test;
	assert_int_equal(ttmon_rec_check(ev.w), TTMON_REC_OK);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ev.w[3] = bits(bad[i]);
		assert_int_equal(ttmon_rec_check(ev.w), TTMON_REC_BAD);
	}
	ev.w[3] = 0x7ff8000000000000ULL; /* NaN */
	assert_int_equal(ttmon_rec_check(ev.w), TTMON_REC_BAD);
	ev.w[3] = 0x7ff0000000000000ULL; /* infinity */
	assert_int_equal(ttmon_rec_check(ev.w), TTMON_REC_BAD);
	ev = record(1, 0, 100, 99); /* it ran, but the time is unknown */
	assert_int_equal(ttmon_rec_check(ev.w), TTMON_REC_UNTIMED);
	ev = record(1, 0, 100, 0);
	assert_int_equal(ttmon_rec_check(ev.w), TTMON_REC_UNTIMED);
	ev = record(1, 0, 0, (uint64_t)(3600e9 * GHZ) + 10);
	assert_int_equal(ttmon_rec_check(ev.w), TTMON_REC_BAD);
	ev = record(1, 0, 0, (uint64_t)(3600e9 * GHZ) - 10);
	assert_int_equal(ttmon_rec_check(ev.w), TTMON_REC_OK);
	ev = record(0, 3, 100, 99);
	assert_int_equal(ttmon_rec_check(ev.w), TTMON_REC_SKIP);
}

/*
 * A process with one chip and no kernel names: all layouts give the same result, and it must not wait
 * for ever.
 */
static void what_cannot_be_told_is_settled_by_time(void **test)
{
	struct ttmon_rec_judge j = { 0 };
	struct ttmon_ev_tt_program ev = kernels32(4, 0, 0, 0);
	struct ttmon_rec r;

	(void)test;
	ev.w[6] = 0;
	ttmon_rec_judge_add(&j, &ev, false);
	ttmon_rec_judge_tick(&j, SEEN + NSEC_PER_SEC / 2);
	assert_false(j.settled);
	ttmon_rec_judge_tick(&j, SEEN + NSEC_PER_SEC);
	assert_true(j.settled);
	assert_int_equal(ttmon_rec_parse(&j, ev.w, SEEN, &r), TTMON_REC_OK);
	assert_int_equal(r.chip, 0);
	/* Later records show more. */
	for (uint32_t i = 1; i < 6; i++) {
		ev = chip32(4, i, 2, 0);
		ttmon_rec_judge_add(&j, &ev, false);
	}
	assert_int_equal(j.layout, TTMON_REC_CHIP32);
	assert_int_equal(ttmon_rec_parse(&j, ev.w, SEEN, &r), TTMON_REC_OK);
	assert_int_equal(r.chip, 5);
}

/*
 * Nothing distinguishes two layouts, and they give different results for a record: it is refused.
 */
static void what_is_not_certain_is_refused(void **test)
{
	struct ttmon_rec_judge j = { 0 };
	struct ttmon_ev_tt_program ev = record(4, 0, 1000000, 2350000);
	struct ttmon_rec r;

	(void)test;
	for (int i = 0; i < 20; i++)
		ttmon_rec_judge_add(&j, &ev, false);
	assert_true(j.settled);
	assert_false(ttmon_rec_is_certain(&j));
	assert_int_equal(ttmon_rec_parse(&j, ev.w, SEEN, &r), TTMON_REC_OK);
	ev.w[4] = 1; /* a chip, or the rest of an empty span */
	assert_int_equal(ttmon_rec_parse(&j, ev.w, SEEN, &r), TTMON_REC_DOUBTFUL);
	for (uint32_t i = 0; i < 4; i++) {
		ev = chip32(4, i, 2, 0);
		ttmon_rec_judge_add(&j, &ev, false);
	}
	assert_true(ttmon_rec_is_certain(&j));
	assert_string_equal(ttmon_rec_layout_name(&j), "chip32");
	assert_int_equal(ttmon_rec_parse(&j, ev.w, SEEN, &r), TTMON_REC_OK);
	assert_int_equal(r.chip, 3);
}

static void an_unknown_layout_is_never_settled(void **test)
{
	struct ttmon_rec_judge j = { 0 };

	(void)test;
	for (uint64_t i = 0; i < 100; i++) {
		struct ttmon_ev_tt_program ev = record(4, 0xffff0000, 100, 200);

		for (int k = 4; k < 8; k++)
			ev.w[k] = 0x9e3779b97f4a7c15ULL * (i * 8 + (uint64_t)k) | 1;
		ttmon_rec_judge_add(&j, &ev, false);
	}
	ttmon_rec_judge_tick(&j, SEEN + 100 * NSEC_PER_SEC);
	assert_false(j.settled);
}

/* The oldest layout never comes in batches, and no program has a million kernels. */
static void what_cannot_be_is_not_settled_on(void **test)
{
	(void)test;
	for (int k = 0; k < 3; k++) {
		struct ttmon_rec_judge j = { 0 };

		for (uint32_t i = 0; i < 20; i++) {
			struct ttmon_ev_tt_program ev = chip32(7, i, 2, 0);

			if (k == 1)
				ev.w[7] = HEAP + (1ULL << 30);
			ttmon_rec_judge_add(&j, &ev, k == 2);
		}
		assert_int_equal(j.settled, k == 0);
	}
}

static void chips_are_small(void **test)
{
	struct ttmon_rec_judge j = { .settled = true, .layout = TTMON_REC_CHIP32, .score = { -9, -9, 9 } };
	struct ttmon_ev_tt_program ev = chip32(1, TTMON_REC_CHIPS, 0, 0);
	struct ttmon_rec r;

	(void)test;
	assert_int_equal(ttmon_rec_parse(&j, ev.w, SEEN, &r), TTMON_REC_BAD);
	j.layout = TTMON_REC_KERNELS32;
	ev = kernels32(1, 0x80000000, 0, 0);
	assert_int_equal(ttmon_rec_parse(&j, ev.w, SEEN, &r), TTMON_REC_BAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_layout_is_told),
		cmocka_unit_test(fields_are_taken_from_their_place),
		cmocka_unit_test(clock_sync_must_make_sense),
		cmocka_unit_test(nonsense_is_no_record),
		cmocka_unit_test(what_cannot_be_told_is_settled_by_time),
		cmocka_unit_test(what_is_not_certain_is_refused),
		cmocka_unit_test(an_unknown_layout_is_never_settled),
		cmocka_unit_test(what_cannot_be_is_not_settled_on),
		cmocka_unit_test(chips_are_small),
	};

	return cmocka_run_group_tests_name("disp_record", tests, NULL, NULL);
}
