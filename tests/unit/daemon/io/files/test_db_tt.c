// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_db_tt.c: the member "tenstorrent" of the database, from tables made by hand and from a
 * pipeline, read back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>

#include "daemon/io/files/db.h"
#include "daemon/io/files/db_tt.h"
#include "lib/read/db.h"

#define PID 4711
#define MS  1000000ull
#define T0  (1000 * MS)

static char path[] = "/tmp/ttmon-test-db-tt-XXXXXX";

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

/* The document with only this member in it. */
static json_t *write_read(const struct ttmon_tt_tables *t)
{
	struct ttmon_jsonw w = { .fd = -1 };
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	json_error_t error;
	json_t *json;

	assert_true(fd >= 0);
	assert_int_equal(ttmon_jsonw_init(&w, fd, false), 0);
	ttmon_jsonw_open(&w, '{');
	ttmon_db_tt(&w, t);
	ttmon_jsonw_key(&w, "summary");
	ttmon_jsonw_null(&w);
	ttmon_jsonw_close(&w, '}');
	ttmon_jsonw_end(&w);
	assert_int_equal(ttmon_jsonw_finish(&w), 0);
	ttmon_jsonw_fini(&w);
	close(fd);
	json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!json)
		fail_msg("line %d: %s", error.line, error.text);
	return json;
}

static const json_t *row(const json_t *tt, const char *table, size_t i)
{
	return json_array_get(json_object_get(tt, table), i);
}

static const json_t *cell(const json_t *tt, const char *table, size_t i, const char *column)
{
	const json_t *t = json_object_get(tt, table), *columns = json_object_get(t, "columns");
	const json_t *cells = json_array_get(json_object_get(t, "rows"), i);

	assert_int_equal(json_array_size(cells), json_array_size(columns));
	for (size_t k = 0; k < json_array_size(columns); k++)
		if (!strcmp(json_string_value(json_array_get(columns, k)), column))
			return json_array_get(cells, k);
	fail_msg("no column %s", column);
	return NULL;
}

static struct ttmon_tt_chip chips[] = {
	{ .fact = { .index = 1,
		    .flags = TTMON_TT_CHIP_REMOTE | TTMON_TT_CHIP_LEARNED,
		    .board_id = 0x0100014511111111,
		    .asic_id = 0xfedcba9876543210,
		    .ordinal = UINT32_MAX,
		    .bdf = UINT32_MAX,
		    .arch = TTMON_TT_WORMHOLE,
		    .location = 1,
		    .card = "n\"00" },
	  .bytes = { [TTMON_TT_TYPE_DRAM] = 10, [TTMON_TT_TYPE_CB] = 3 },
	  .peak = { [TTMON_TT_TYPE_DRAM] = UINT64_MAX } },
};
static const struct ttmon_tt_process procs[] = {
	{ .tgid = PID,
	  .flags = TTMON_TT_F_PARTIAL | TTMON_TT_F_MESH_ASSUMED,
	  .start_ns = 5,
	  .comm = "a\x1b",
	  .layout = "E2" },
	{ .tgid = 99, .start_ns = 6, .end_ns = 7, .layout = NULL },
};
static const struct ttmon_tt_use uses[] = {
	{ .proc = 0,
	  .logical = 0,
	  .chip = 1,
	  .how = TTMON_TT_HOW_PROVIDER,
	  .bytes = { 10 },
	  .peak = { 20 },
	  .buffers = 2,
	  .allocs = 5,
	  .frees = 3 },
	{ .proc = 1, .logical = TTMON_TT_NO_LOGICAL },
};
static const struct ttmon_tt_dispatch_sum sums[] = {
	{ .tgid = PID,
	  .device = 0x7f00,
	  .dev_kind = TTMON_TT_DEV_MESH,
	  .chip = 1,
	  .count = { [TTMON_TT_WORKLOAD] = 7 } },
};
static const struct ttmon_tt_program programs[] = {
	{ .tgid = PID,
	  .logical = 0,
	  .chip = 1,
	  .program = 3,
	  .runs = 2,
	  .busy_ns = 30,
	  .min_ns = 10,
	  .max_ns = 20,
	  .kernels = "a.cpp, b" },
};
static const struct ttmon_tt_clock clocks[] = {
	{ .tgid = PID,
	  .logical = 0,
	  .chip = 1,
	  .clock = TTMON_CLOCK_PAIRS,
	  .ghz = 1.35,
	  .residual_ns = 0.6,
	  .layout = "sync32",
	  .span_to_ns = 9 },
	{ .tgid = PID,
	  .logical = TTMON_TT_NO_LOGICAL,
	  .ghz = 0.0 / 1.0,
	  .residual_ns = -1,
	  .refused = 7,
	  .refused_layout = 5 },
};

static void test_tables(void **state)
{
	const struct ttmon_timeline_cfg cfg = { .max_items = 2 };
	struct ttmon_tt_tables t = {
		.view = { .chips = chips, .nr_chips = 1, .procs = procs, .nr_procs = 2, .uses = uses, .nr_uses = 2 },
		.sums = sums,
		.nr_sums = 1,
		.programs = programs,
		.nr_programs = 1,
		.clocks = clocks,
		.nr_clocks = 2
	};
	struct ttmon_timeline *tl = NULL;
	const json_t *tt, *r;
	json_t *doc;

	(void)state;
	assert_int_equal(ttmon_timeline_new(&cfg, &tl), 0);
	for (uint32_t i = 0; i < 3; i++)
		ttmon_timeline_run(tl, &(struct ttmon_tt_run){ .tgid = PID,
							       .chip = 1,
							       .program = 3,
							       .start_ns = T0,
							       .end_ns = T0 + 10,
							       .seen_ns = T0 + 20,
							       .error_ns = i ? 7 : UINT64_MAX,
							       .end_cycles = UINT64_MAX,
							       .ghz = 1.35,
							       .clock = TTMON_CLOCK_ENVELOPE,
							       .enqueued_ns = i ? T0 - 1 : 0 });
	ttmon_timeline_dispatched(tl, &(struct ttmon_tt_dispatched){ .tgid = PID,
								     .tid = 8,
								     .ts_ns = T0,
								     .device = 0x7f00,
								     .what = 0xffffffffffffffff,
								     .count = 4,
								     .fn = 310,
								     .kind = TTMON_TT_TRACE,
								     .blocking = 1 });
	for (uint64_t i = 0; i < 3; i++)
		ttmon_timeline_slot(tl, &(struct ttmon_tt_slot_row){ .slot_no = 1000 + i,
								     .tgid = PID,
								     .logical = i ? 3 : TTMON_TT_NO_LOGICAL,
								     .chip = i ? 1 : 0,
								     .dispatches = i + 2,
								     .busy_ns = 500 });
	t.timeline = tl;
	doc = write_read(&t);
	tt = json_object_get(doc, "tenstorrent");
	assert_non_null(tt);

	r = row(tt, "chips", 0);
	assert_string_equal(ttmon_db_str(r, "card", ""), "n\"00");
	assert_string_equal(ttmon_db_str(r, "arch", ""), "wormhole");
	assert_string_equal(ttmon_db_str(r, "asic_id", ""), "0xfedcba9876543210");
	assert_int_equal(json_array_size(json_object_get(r, "flags")), 2);
	assert_string_equal(json_string_value(json_array_get(json_object_get(r, "flags"), 0)), "remote");
	assert_true(json_is_null(json_object_get(r, "ordinal")));
	assert_true(json_is_null(json_object_get(r, "bdf")));
	assert_int_equal(ttmon_db_get(json_object_get(r, "bytes"), "cb", 0), 3);
	/* Numbers saturate where a reader with signed 64 bits would wrap. */
	assert_true(ttmon_db_get(json_object_get(r, "peak"), "dram", 0) == INT64_MAX);

	r = row(tt, "processes", 0);
	assert_string_equal(ttmon_db_str(r, "comm", ""), "a\x1b");
	assert_string_equal(json_string_value(json_array_get(json_object_get(r, "flags"), 1)), "mesh assumed");
	assert_true(json_is_null(json_object_get(r, "end_ns")));
	assert_int_equal(json_array_size(json_object_get(r, "devices")), 1);
	r = json_array_get(json_object_get(r, "devices"), 0);
	assert_string_equal(ttmon_db_str(r, "how", ""), "provider");
	assert_int_equal(ttmon_db_get(r, "chip", 0), 1);
	assert_int_equal(ttmon_db_get(json_object_get(r, "peak"), "dram", 0), 20);
	r = row(tt, "processes", 1);
	assert_true(json_is_null(json_object_get(r, "layout")));
	assert_string_equal(ttmon_db_str(r, "end_ns", ""), "7");
	r = json_array_get(json_object_get(r, "devices"), 0);
	assert_true(json_is_null(json_object_get(r, "device")));
	assert_true(json_is_null(json_object_get(r, "chip")));

	r = row(tt, "dispatches", 0);
	assert_string_equal(ttmon_db_str(r, "device_kind", ""), "mesh");
	assert_int_equal(ttmon_db_get(json_object_get(r, "count"), "workload", 0), 7);
	r = row(tt, "programs", 0);
	assert_string_equal(ttmon_db_str(r, "kernels", ""), "a.cpp, b");
	assert_int_equal(ttmon_db_get(row(tt, "clocks", 0), "hz", 0), 1350000000);
	assert_int_equal(ttmon_db_get(row(tt, "clocks", 0), "residual_ns", 0), 1);
	assert_int_equal(ttmon_db_get(row(tt, "clocks", 1), "residual_ns", 9), 0);
	assert_true(json_is_null(json_object_get(row(tt, "clocks", 1), "device")));
	assert_string_equal(ttmon_db_str(row(tt, "clocks", 0), "record_layout", ""), "sync32");
	assert_true(json_is_false(json_object_get(row(tt, "clocks", 0), "layout_certain")));
	assert_true(json_is_null(json_object_get(row(tt, "clocks", 1), "record_layout")));
	assert_true(json_is_null(json_object_get(row(tt, "clocks", 1), "layout_certain")));
	assert_int_equal(ttmon_db_get(row(tt, "clocks", 1), "refused_layout", 0), 5);

	assert_int_equal(json_array_size(json_object_get(json_object_get(tt, "runs"), "rows")), 2);
	assert_int_equal(ttmon_db_get(tt, "dropped", 0), 1);
	assert_true(json_is_null(cell(tt, "runs", 0, "error_ns")));
	assert_true(json_is_null(cell(tt, "runs", 0, "enqueued_ns")));
	assert_int_equal(json_integer_value(cell(tt, "runs", 1, "error_ns")), 7);
	assert_string_equal(json_string_value(cell(tt, "runs", 1, "enqueued_ns")), "999999999");
	assert_string_equal(json_string_value(cell(tt, "runs", 1, "clock")), "envelope");
	assert_string_equal(json_string_value(cell(tt, "runs", 1, "end_cycles")), "18446744073709551615");
	assert_int_equal(json_integer_value(cell(tt, "runs", 1, "hz")), 1350000000);
	assert_string_equal(json_string_value(cell(tt, "dispatched", 0, "kind")), "trace");
	assert_string_equal(json_string_value(cell(tt, "dispatched", 0, "fn")), "EnqueueMeshWorkload");
	assert_string_equal(json_string_value(cell(tt, "dispatched", 0, "what")), "0xffffffffffffffff");
	assert_true(json_is_true(cell(tt, "dispatched", 0, "blocking")));
	assert_int_equal(json_integer_value(cell(tt, "dispatched", 0, "count")), 4);
	assert_int_equal(json_array_size(json_object_get(json_object_get(tt, "slots"), "rows")), 2);
	assert_int_equal(ttmon_db_get(json_object_get(tt, "slots"), "dropped", 0), 1);
	assert_true(json_is_null(cell(tt, "slots", 0, "device")));
	assert_int_equal(json_integer_value(cell(tt, "slots", 1, "slot")), 1001);
	assert_int_equal(json_integer_value(cell(tt, "slots", 1, "pid")), PID);
	assert_int_equal(json_integer_value(cell(tt, "slots", 1, "device")), 3);
	assert_int_equal(json_integer_value(cell(tt, "slots", 1, "chip")), 1);
	assert_int_equal(json_integer_value(cell(tt, "slots", 1, "dispatches")), 3);
	assert_int_equal(json_integer_value(cell(tt, "slots", 1, "busy_ns")), 500);
	json_decref(doc);
	ttmon_timeline_free(tl);
}

/* Names out of range are null; no other memory is read. */
static void test_out_of_range(void **state)
{
	const struct ttmon_tt_process p = { .flags = 0xffffffff };
	const struct ttmon_tt_use u = { .how = 999 };
	const struct ttmon_tt_dispatch_sum s = { .dev_kind = 200 };
	const struct ttmon_tt_clock c = { .clock = 200 };
	const struct ttmon_timeline_cfg cfg = { .max_items = 1 };
	struct ttmon_tt_tables t = { .view = { .procs = &p, .nr_procs = 1, .uses = &u, .nr_uses = 1 },
				     .sums = &s,
				     .nr_sums = 1,
				     .clocks = &c,
				     .nr_clocks = 1 };
	struct ttmon_timeline *tl = NULL;
	const json_t *tt;
	json_t *doc;

	(void)state;
	assert_int_equal(ttmon_timeline_new(&cfg, &tl), 0);
	ttmon_timeline_dispatched(tl, &(struct ttmon_tt_dispatched){ .kind = 77, .fn = 9 });
	t.timeline = tl;
	doc = write_read(&t);
	tt = json_object_get(doc, "tenstorrent");
	assert_int_equal(json_array_size(json_object_get(row(tt, "processes", 0), "flags")), TTMON_TT_FLAGS);
	assert_true(json_is_null(
		json_object_get(json_array_get(json_object_get(row(tt, "processes", 0), "devices"), 0), "how")));
	assert_true(json_is_null(json_object_get(row(tt, "dispatches", 0), "device_kind")));
	assert_true(json_is_null(json_object_get(row(tt, "clocks", 0), "clock")));
	assert_true(json_is_null(cell(tt, "dispatched", 0, "kind")));
	assert_true(json_is_null(cell(tt, "dispatched", 0, "fn")));
	json_decref(doc);
	ttmon_timeline_free(tl);
}

static void test_nothing_is_absent(void **state)
{
	const struct ttmon_tt_tables t = { 0 };
	json_t *doc = write_read(&t);

	(void)state;
	assert_null(json_object_get(doc, "tenstorrent"));
	assert_true(json_is_null(json_object_get(doc, "summary")));
	json_decref(doc);
}

/* A chip and dispatches through a pipeline into a database. */
static void test_pipeline(void **state)
{
	const struct ttmon_pipeline_cfg cfg = { .nr_cpus = 4, .history = { .keep_all = true, .start_ns = T0 } };
	const struct ttmon_db_meta meta = { .version = "1.2-test", .start_ns = T0, .end_ns = T0 + 500 * MS };
	const struct ttmon_ev_tt_chip chip = { .h = { .ts_ns = T0, .kind = TTMON_EV_TT_CHIP, .cpu = TTMON_CPU_DAEMON },
					       .index = 1,
					       .card = "n150",
					       .bdf = 256 };
	struct ttmon_ev_tt_dispatch d = {
		.h = { .ts_ns = T0 + 2 * MS, .kind = TTMON_EV_TT_DISPATCH, .tgid = PID, .tid = PID },
		.device = 0x7f00,
		.what = 0x8f00,
		.fn = 310,
		.kind = TTMON_TT_WORKLOAD,
		.dev_kind = TTMON_TT_DEV_MESH
	};
	struct ttmon_ev_tt_sums end = {
		.h = { .ts_ns = T0 + 500 * MS, .kind = TTMON_EV_TT_SUMS, .cpu = TTMON_CPU_DAEMON, .tgid = PID },
		.device = 0x7f00,
		.of_cpu = 2,
		.dev_kind = TTMON_TT_DEV_MESH
	};
	_cleanup_(ttmon_db_closep) struct ttmon_db *db = NULL;
	struct ttmon_pipeline *p = NULL;
	const json_t *tt;
	char why[256];

	(void)state;
	assert_int_equal(ttmon_pipeline_new(&cfg, NULL, NULL, &p), 0);
	ttmon_pipeline_feed(p, &chip, sizeof(chip));
	for (uint64_t i = 1; i <= 5; i++) {
		d.h.ts_ns += MS;
		d.sums[TTMON_TT_WORKLOAD] = i * 2;
		ttmon_pipeline_feed(p, &d, sizeof(d));
	}
	/* The daemon reads the sums once more at the end: after every event, and for no slot. */
	ttmon_pipeline_advance(p, meta.end_ns);
	end.sums[TTMON_TT_WORKLOAD] = 3;
	ttmon_pipeline_feed(p, &end, sizeof(end));
	ttmon_pipeline_finish(p, meta.end_ns);
	assert_int_equal(ttmon_db_write(path, p, &meta, why, sizeof(why)), 0);
	ttmon_pipeline_free(p);
	assert_int_equal(ttmon_db_open(path, &db, why, sizeof(why)), 0);
	assert_int_equal(ttmon_db_skip(db), 0);
	tt = ttmon_db_member(db, "tenstorrent");
	assert_non_null(tt);
	assert_string_equal(ttmon_db_str(row(tt, "chips", 0), "card", ""), "n150");
	assert_int_equal(ttmon_db_get(row(tt, "chips", 0), "bdf", 0), 256);
	assert_int_equal(ttmon_db_get(json_object_get(row(tt, "dispatches", 0), "count"), "workload", 0), 10 + 3);
	assert_int_equal(json_array_size(json_object_get(json_object_get(tt, "dispatched"), "rows")), 5);
	assert_string_equal(json_string_value(cell(tt, "dispatched", 0, "device")), "0x7f00");
	assert_int_equal(json_integer_value(cell(tt, "dispatched", 4, "count")), 2);
	assert_int_equal(json_array_size(json_object_get(json_object_get(tt, "slots"), "rows")), 6);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(json_integer_value(cell(tt, "slots", i, "slot")), T0 / MS + 3 + i);
		assert_int_equal(json_integer_value(cell(tt, "slots", i, "dispatches")), 2);
	}
	assert_int_equal(json_integer_value(cell(tt, "slots", 5, "slot")), meta.end_ns / MS);
	assert_int_equal(json_integer_value(cell(tt, "slots", 5, "dispatches")), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tables, setup, teardown),
		cmocka_unit_test_setup_teardown(test_out_of_range, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_is_absent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pipeline, setup, teardown),
	};

	return cmocka_run_group_tests_name("db_tt", tests, NULL, NULL);
}
