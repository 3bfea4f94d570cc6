// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_tt_layout.c: Buffers of every generation are decoded and distinguished, and invalid ones are
 * recognised.
 */
#include "tests/unit/feed/tt_feed.h"

static void every_layout_is_read(void **state)
{
	(void)state;
	for (enum ttmon_tt_layout l = TTMON_TT_LAYOUT_E0; l < TTMON_TT_LAYOUTS; l++) {
		struct feed_buf b = feed_buf(0x5000, 3, 12345);
		__u64 w[TTMON_TT_BUFFER_WORDS];
		struct ttmon_tt_fields f;

		b.layout = l;
		b.type = 4;
		b.status = 2;
		b.hooked = 1;
		feed_words(&b, w);
		ttmon_tt_layout_read(l, w, &f);
		assert_int_equal(f.device, DEV(3));
		assert_int_equal(f.size, 12345);
		assert_int_equal(f.type, 4);
		assert_int_equal(f.address, b.addr);
		assert_int_equal(f.owns, 1);
		assert_int_equal(f.allocator, l == TTMON_TT_LAYOUT_E0 ? 0 : ALLOCATOR(3));
		assert_int_equal(!!(f.have & TTMON_TT_FIELD_STATUS), l != TTMON_TT_LAYOUT_E0);
		assert_int_equal(f.status, l == TTMON_TT_LAYOUT_E0 ? 0 : 2);
		assert_int_equal(f.hooked, l >= TTMON_TT_LAYOUT_E2);
		assert_true(ttmon_tt_layout_allocated(&f));
	}
}

static void nonsense_is_refused(void **state)
{
	struct ttmon_tt_fields good = { .size = 4096,
					.address = 64,
					.type = 1,
					.layout = 2,
					.owns = 1,
					.status = 1,
					.have = TTMON_TT_FIELD_STATUS | TTMON_TT_FIELD_OWNS };
	struct ttmon_tt_fields f = good;

	(void)state;
	assert_true(ttmon_tt_layout_allocated(&good));
	f.type = 5;
	assert_false(ttmon_tt_layout_sane(&f));
	f = good;
	f.layout = 6;
	assert_false(ttmon_tt_layout_sane(&f));
	f = good;
	f.size = TTMON_TT_SIZE_MAX;
	assert_true(ttmon_tt_layout_sane(&f));
	f.size++;
	assert_false(ttmon_tt_layout_sane(&f));
	f = good;
	f.owns = 2;
	assert_false(ttmon_tt_layout_sane(&f));
	f = good;
	f.status = 4;
	assert_false(ttmon_tt_layout_sane(&f));
	f = good;
	f.status = 0;
	assert_true(ttmon_tt_layout_sane(&f));
	assert_false(ttmon_tt_layout_allocated(&f));
	f = good;
	f.status = 3;
	assert_false(ttmon_tt_layout_allocated(&f));
	f = good;
	f.address = 1ULL << 48;
	assert_false(ttmon_tt_layout_allocated(&f));
	f = good;
	f.owns = 0;
	assert_false(ttmon_tt_layout_allocated(&f));
}

/* An owning Buffer of E0 cannot be taken for one of E1, nor the other way round. */
static void e0_and_e1_exclude_each_other(void **state)
{
	__u64 w[TTMON_TT_BUFFER_WORDS];

	(void)state;
	for (uint32_t type = 0; type <= 4; type++)
		for (unsigned int i = 0; i < 64; i++) {
			struct feed_buf b = feed_buf(0x5000, 1, 1 + 4096 * i);

			b.type = type;
			b.bottom_up = i & 1;
			b.addr = i * 32;
			b.status = i % 4;
			b.layout = TTMON_TT_LAYOUT_E0;
			feed_words(&b, w);
			assert_int_equal(ttmon_tt_layout_fits(w, true), 1U << TTMON_TT_LAYOUT_E0);
			b.layout = TTMON_TT_LAYOUT_E1;
			feed_words(&b, w);
			assert_int_equal(ttmon_tt_layout_fits(w, true), 1U << TTMON_TT_LAYOUT_E1);
		}
	memset(w, 0xff, sizeof(w));
	assert_int_equal(ttmon_tt_layout_fits(w, true), 0);
}

static void status_is_numbered_in_two_ways(void **state)
{
	(void)state;
	assert_int_equal(ttmon_tt_layout_status(TTMON_TT_NUMBERS_FOUR, 0), TTMON_TT_STATUS_REQUESTED);
	assert_int_equal(ttmon_tt_layout_status(TTMON_TT_NUMBERS_FOUR, 1), TTMON_TT_STATUS_FAILED);
	assert_int_equal(ttmon_tt_layout_status(TTMON_TT_NUMBERS_FOUR, 2), TTMON_TT_STATUS_ALLOCATED);
	assert_int_equal(ttmon_tt_layout_status(TTMON_TT_NUMBERS_FOUR, 3), TTMON_TT_STATUS_DEALLOCATED);
	assert_int_equal(ttmon_tt_layout_status(TTMON_TT_NUMBERS_THREE, 1), TTMON_TT_STATUS_ALLOCATED);
	assert_int_equal(ttmon_tt_layout_status(TTMON_TT_NUMBERS_THREE, 2), TTMON_TT_STATUS_DEALLOCATED);
	assert_int_equal(ttmon_tt_layout_status(TTMON_TT_NUMBERS_THREE, 3), TTMON_TT_STATUS_UNKNOWN);
	assert_int_equal(ttmon_tt_layout_status(TTMON_TT_NUMBERS_FOUR, 200), TTMON_TT_STATUS_UNKNOWN);
	assert_int_equal(ttmon_tt_layout_status(TTMON_TT_NUMBERS_UNKNOWN, 1), TTMON_TT_STATUS_UNKNOWN);
}

static void types_and_names(void **state)
{
	uint8_t type = 99;

	(void)state;
	assert_false(ttmon_tt_layout_type(2, &type));
	assert_false(ttmon_tt_layout_type(5, &type));
	assert_false(ttmon_tt_layout_type(UINT32_MAX, &type));
	assert_int_equal(type, 99);
	assert_true(ttmon_tt_layout_type(3, &type));
	assert_int_equal(type, TTMON_TT_TYPE_L1_SMALL);
	assert_true(ttmon_tt_layout_type(4, &type));
	assert_int_equal(type, TTMON_TT_TYPE_TRACE_BUF);
	assert_string_equal(ttmon_tt_layout_name(TTMON_TT_LAYOUT_E2, false), "E2");
	assert_string_equal(ttmon_tt_layout_name(TTMON_TT_LAYOUT_E2, true), "E2 checked");
	assert_string_equal(ttmon_tt_type_name(TTMON_TT_TYPE_CB), "cb");
	assert_null(ttmon_tt_type_name(TTMON_TT_TYPES));
	assert_string_equal(ttmon_tt_flag_name(1), "degraded");
	assert_null(ttmon_tt_flag_name(TTMON_TT_FLAGS));
	assert_non_null(ttmon_tt_flag_help(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layout_is_read),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(e0_and_e1_exclude_each_other),
		cmocka_unit_test(status_is_numbered_in_two_ways),
		cmocka_unit_test(types_and_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
