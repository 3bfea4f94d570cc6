// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_slotjson.c: a slot and its rows as JSON: what is not known is null, a lower bound is there,
 * flags have names, text is escaped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <ttmon/event.h>

#include "lib/read/slots_json.h"

#define ALL_SLOT_FLAGS 0x7f

static json_t *parse(struct ttmon_jsonw *w)
{
	json_error_t err;
	json_t *doc = json_loadb(w->buf, w->len, 0, &err);

	assert_int_equal(w->err, 0);
	assert_non_null(doc);
	ttmon_jsonw_fini(w);
	return doc;
}

static json_t *row_in(const struct ttmon_slot *slot, const struct ttmon_slot_row *row)
{
	struct ttmon_jsonw w;

	assert_int_equal(ttmon_jsonw_init(&w, -1, false), 0);
	ttmon_slotjson_row(&w, slot, row);
	return parse(&w);
}

static json_t *row_of(uint32_t slot_flags, const struct ttmon_slot_row *row)
{
	return row_in(&(struct ttmon_slot){ .flags = slot_flags }, row);
}

static json_t *slot_of(const struct ttmon_slot *slot)
{
	struct ttmon_jsonw w;

	assert_int_equal(ttmon_jsonw_init(&w, -1, false), 0);
	ttmon_jsonw_open(&w, '{');
	ttmon_slotjson_figures(&w, slot);
	ttmon_slotjson_flags(&w, slot->flags);
	ttmon_jsonw_close(&w, '}');
	return parse(&w);
}

static json_int_t num(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	assert_true(json_is_integer(v));
	return json_integer_value(v);
}

static void is_null(const json_t *o, const char *key)
{
	assert_true(json_is_null(json_object_get(o, key)));
}

static const struct ttmon_slot_row full = {
	.start_ns = 9007199254740993, /* 2^53 + 1: no JSON number */
	.tgid = 7,
	.rmid = 3,
	.flags = TTMON_ROW_LLC_VALID,
	.comm = "a\"\n\xff",
	.cpu_ns = 1500000,
	.ctr = { 11, 12, 13, 14 },
	.llc_bytes = 4096,
	.mbm_total = 21,
	.mbm_local = 22,
	.rdt_ns = 1000000,
	.copies = 2,
	.copy_bytes = 64,
	.pinned_bytes = 8192,
	.switches = 5,
};

static void test_known(void **state)
{
	json_t *o = row_of(TTMON_SLOT_HAS_CPU | TTMON_SLOT_HAS_CTR, &full);

	(void)state;
	assert_int_equal(num(o, "pid"), 7);
	assert_string_equal(json_string_value(json_object_get(o, "start_ns")), "9007199254740993");
	assert_string_equal(json_string_value(json_object_get(o, "comm")), "a\"\n\xef\xbf\xbd");
	assert_string_equal(json_string_value(json_object_get(o, "class")), "user");
	assert_int_equal(num(o, "rmid"), 3);
	assert_int_equal(num(o, "cpu_ns"), 1500000);
	assert_int_equal(num(o, "switches"), 5);
	assert_int_equal(num(o, "cycles"), 11);
	assert_int_equal(num(o, "llc_references"), 14);
	assert_int_equal(num(o, "llc_bytes"), 4096);
	assert_int_equal(num(o, "mbm_total"), 21);
	assert_int_equal(num(o, "mbm_local"), 22);
	assert_int_equal(num(o, "rdt_ns"), 1000000);
	assert_int_equal(num(o, "copies"), 2);
	assert_int_equal(num(o, "copy_bytes"), 64);
	assert_int_equal(num(o, "pinned_bytes"), 8192);
	assert_int_equal(json_array_size(json_object_get(o, "flags")), 1);
	json_decref(o);
}

static void test_unknown(void **state)
{
	struct ttmon_slot_row row = full;
	json_t *o;

	(void)state;
	row.cls = TTMON_ROW_UNASSIGNED;
	row.rmid = 0;
	row.flags = 0;
	row.rdt_ns = 0;
	o = row_of(TTMON_SLOT_HAS_CTR, &row);
	is_null(o, "pid");
	is_null(o, "start_ns");
	is_null(o, "rmid");
	is_null(o, "cpu_ns");
	is_null(o, "switches");
	is_null(o, "cycles");
	is_null(o, "llc_bytes");
	is_null(o, "mbm_total");
	is_null(o, "mbm_local");
	is_null(o, "rdt_ns");
	assert_string_equal(json_string_value(json_object_get(o, "class")), "unassigned");
	json_decref(o);
	o = row_of(TTMON_SLOT_HAS_CPU, &full);
	is_null(o, "cycles");
	json_decref(o);
}

/* A reading is missing: what is there is at least so much, and nothing is not known. */
static void test_lower_bounds(void **state)
{
	struct ttmon_slot_row row = full;
	json_t *o;

	(void)state;
	row.flags = TTMON_ROW_CTR_UNKNOWN;
	row.ctr[TTMON_CTR_INSTRUCTIONS] = 0;
	o = row_of(TTMON_SLOT_HAS_CPU | TTMON_SLOT_HAS_CTR, &row);
	assert_int_equal(num(o, "cycles"), 11);
	is_null(o, "instructions");
	assert_string_equal(json_string_value(json_array_get(json_object_get(o, "flags"), 0)), "ctr_unknown");
	json_decref(o);
}

static void test_slot(void **state)
{
	struct ttmon_slot slot = {
		.no = 5,
		.flags = ALL_SLOT_FLAGS,
		.cpus = 2,
		.user_ns = 1,
		.kernel_ns = 2,
		.idle_ns = 3,
		.missing_ns = 4,
		.tt_busy_ns = 9,
	};
	json_t *o;

	(void)state;
	slot.known = (1u << TTMON_FAMILY_MAX) - 1;
	o = slot_of(&slot);
	assert_int_equal(num(o, "cpus"), 2);
	assert_int_equal(num(o, "missing_ns"), 4);
	assert_int_equal(num(o, "tt_busy_ns"), 9);
	assert_int_equal(json_array_size(json_object_get(o, "flags")), TTMON_SLOTS_SLOT_FLAG_NAMES);
	json_decref(o);
	slot.flags = 0;
	o = slot_of(&slot);
	is_null(o, "cpus");
	is_null(o, "user_ns");
	is_null(o, "missing_ns");
	/* Nothing is said of families: what is there is shown. */
	is_null(o, "known");
	assert_int_equal(num(o, "copies"), 0);
	assert_int_equal(json_array_size(json_object_get(o, "flags")), 0);
	json_decref(o);
}

/*
 * A family was not on: what it would have counted is a lower bound, or not known where nothing was
 * seen; what is held is not known.
 */
static void test_families(void **state)
{
	struct ttmon_slot slot = { .flags = TTMON_SLOT_HAS_KNOWN, .allocs = 2, .copies = 3, .pinned_pages = 8 };
	struct ttmon_slot_row row = full;
	json_t *o;

	(void)state;
	slot.known = TTMON_FAMILY_BIT(ALLOC) | TTMON_FAMILY_BIT(TENSTORRENT);
	o = slot_of(&slot);
	assert_int_equal(num(o, "allocs"), 2);
	assert_int_equal(num(o, "frees"), 0);
	assert_int_equal(num(o, "copies"), 3);
	is_null(o, "copy_bytes");
	is_null(o, "tt_dispatches");
	is_null(o, "tt_busy_ns");
	assert_int_equal(num(o, "pinned_pages"), 8);
	assert_true(json_is_true(json_object_get(o, "at_least")));
	assert_int_equal(json_array_size(json_object_get(o, "known")), 2);
	assert_string_equal(json_string_value(json_array_get(json_object_get(o, "known"), 1)), "tenstorrent");
	json_decref(o);
	row.copy_bytes = 0;
	o = row_in(&slot, &row);
	assert_int_equal(num(o, "copies"), 2);
	is_null(o, "copy_bytes");
	assert_int_equal(num(o, "pinned_bytes"), 8192);
	assert_true(json_is_true(json_object_get(o, "at_least")));
	json_decref(o);
	slot.known = TTMON_FAMILY_BIT(TRANSFER);
	o = row_in(&slot, &row);
	assert_int_equal(num(o, "copy_bytes"), 0);
	is_null(o, "pinned_bytes");
	assert_null(json_object_get(o, "at_least"));
	json_decref(o);
	o = slot_of(&slot);
	is_null(o, "pinned_pages");
	is_null(o, "frees");
	assert_int_equal(num(o, "allocs"), 2);
	assert_true(json_is_true(json_object_get(o, "at_least")));
	json_decref(o);
}

/* Every flag that a slot or a row can have is named, and none twice. */
static void test_names(void **state)
{
	const struct {
		uint32_t bit;
		const char *name;
	} rows[] = { { TTMON_ROW_CTR_UNKNOWN, "ctr_unknown" }, { TTMON_ROW_CTR_SCALED, "ctr_scaled" },
		     { TTMON_ROW_CTR_LATE, "ctr_late" },       { TTMON_ROW_RDT_UNKNOWN, "rdt_unknown" },
		     { TTMON_ROW_LLC_VALID, "llc_valid" },     { TTMON_ROW_ENDED, "ended" } },
	  slots[] = { { TTMON_SLOT_FORCED, "forced" },	    { TTMON_SLOT_HAS_CPU, "has_cpu" },
		      { TTMON_SLOT_HAS_CTR, "has_ctr" },    { TTMON_SLOT_HAS_RDT, "has_rdt" },
		      { TTMON_SLOT_MISSING, "missing" },    { TTMON_SLOT_ROWS_CUT, "rows_cut" },
		      { TTMON_SLOT_HAS_KNOWN, "has_known" } };

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(
			ttmon_slots_row_flag((uint8_t)rows[i].bit, (unsigned int)__builtin_ctz(rows[i].bit)),
			rows[i].name);
	for (unsigned int i = 0; i < ARRAY_SIZE(slots); i++)
		assert_string_equal(ttmon_slots_slot_flag(slots[i].bit, (unsigned int)__builtin_ctz(slots[i].bit)),
				    slots[i].name);
	assert_string_equal(ttmon_slots_class_name(TTMON_ROW_IDLE), "idle");
	assert_string_equal(ttmon_slots_class_name(TTMON_ROW_CLASS_MAX), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known), cmocka_unit_test(test_unknown), cmocka_unit_test(test_lower_bounds),
		cmocka_unit_test(test_slot),  cmocka_unit_test(test_names),   cmocka_unit_test(test_families),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
