// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_tracefile.c: trace files, parsed again: where everything is drawn, that it may be drawn there
 * (slices of a track nest, begins have ends, times are exact to the ns), that everything is drawn
 * once, and how missing data is reported.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>
#include <zlib.h>

#include "daemon/io/files/traceev.h"
#include "daemon/io/files/tracefile.h"

#define PID 4711
#define MS  1000000ull
#define T0  (1000 * MS)
#define END (T0 + 100 * MS)

#define FN_HOST_ALLOC 1
#define FN_FREE_HOST  3
#define FN_MALLOC     8
#define FN_MEMCPY     16

static char dir[] = "/tmp/ttmon-test-trace-XXXXXX";
static char path[64], path_gz[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/out.json", dir);
	snprintf(path_gz, sizeof(path_gz), "%s/out.json.gz", dir);
	return 0;
}

static size_t files_in_dir(bool remove)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		char name[512];

		if (e->d_name[0] == '.')
			continue;
		n++;
		snprintf(name, sizeof(name), "%s/%s", dir, e->d_name);
		if (remove)
			unlink(name);
	}
	closedir(d);
	return n;
}

static int teardown(void **state)
{
	(void)state;
	files_in_dir(true);
	return rmdir(dir);
}

/* ---- reading ---- */

static char *slurp(const char *from, size_t *ret_n)
{
	size_t cap = 4 << 20;
	char *text = malloc(cap);
	gzFile gz = gzopen(from, "r");
	int n;

	assert_non_null(text);
	assert_non_null(gz);
	n = gzread(gz, text, (unsigned int)cap - 1);
	gzclose(gz);
	assert_true(n > 0 && (size_t)n < cap - 1);
	text[n] = '\0';
	*ret_n = (size_t)n;
	return text;
}

static json_t *load(const char *from)
{
	json_error_t error;
	size_t n;
	char *text = slurp(from, &n);
	json_t *json = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);

	if (!json)
		fail_msg("line %d: %s", error.line, error.text);
	free(text);
	return json;
}

static const char *str(const json_t *obj, const char *key)
{
	const char *text = json_string_value(json_object_get(obj, key));

	return text ? text : "";
}

static json_int_t num(const json_t *obj, const char *key)
{
	return json_integer_value(json_object_get(obj, key));
}

/* ns; the file has microseconds with three decimals. */
static uint64_t ns(const json_t *ev, const char *key)
{
	const json_t *json = json_object_get(ev, key);

	assert_true(json_is_real(json));
	return (uint64_t)(json_real_value(json) * 1000 + 0.5);
}

static const json_t *arg(const json_t *ev, const char *key)
{
	return json_object_get(json_object_get(ev, "args"), key);
}

/* The nth event of this phase, category and name (NULL: any). */
static const json_t *find(const json_t *trace, const char *ph, const char *cat, const char *name, size_t nth)
{
	const json_t *events = json_object_get(trace, "traceEvents"), *ev;
	size_t i;

	json_array_foreach(events, i, ev) if (!strcmp(str(ev, "ph"), ph) && (!cat || !strcmp(str(ev, "cat"), cat)) &&
					      (!name || !strcmp(str(ev, "name"), name)) && !nth--) return ev;
	return NULL;
}

static size_t count(const json_t *trace, const char *ph, const char *cat)
{
	size_t n = 0;

	while (find(trace, ph, cat, NULL, n))
		n++;
	return n;
}

/* The name that a metadata event gives. */
static const char *track_name(const json_t *trace, const char *what, json_int_t pid, json_int_t tid)
{
	const json_t *ev;

	for (size_t i = 0; (ev = find(trace, "M", NULL, what, i)); i++)
		if (num(ev, "pid") == pid && num(ev, "tid") == tid)
			return json_string_value(arg(ev, "name"));
	return "";
}

/*
 * Every event has what its phase requires; each b has its e; X slices of a track nest, with 2 ns
 * between those that do not.
 */
static void check_form(const json_t *trace)
{
	const json_t *events = json_object_get(trace, "traceEvents"), *ev, *other;
	size_t i, k, begins = 0, ends = 0;

	assert_string_equal(str(trace, "displayTimeUnit"), "ns");
	json_array_foreach(events, i, ev)
	{
		const char *ph = str(ev, "ph");

		assert_true(json_is_integer(json_object_get(ev, "pid")));
		assert_true(json_is_string(json_object_get(ev, "name")));
		if (!strcmp(ph, "M"))
			continue;
		assert_true(ns(ev, "ts") >= T0 && ns(ev, "ts") <= END + 20000 * MS);
		if (!strcmp(ph, "b") || !strcmp(ph, "e")) {
			const char *id = str(json_object_get(ev, "id2"), "local");

			assert_true(strlen(id) > 2);
			begins += ph[0] == 'b';
			ends += ph[0] == 'e';
			if (ph[0] == 'b') {
				/* Its end follows it. */
				other = json_array_get(events, i + 1);
				assert_string_equal(str(other, "ph"), "e");
				assert_string_equal(str(json_object_get(other, "id2"), "local"), id);
				assert_string_equal(str(other, "name"), str(ev, "name"));
				assert_true(ns(other, "ts") >= ns(ev, "ts"));
			}
		}
		if (strcmp(ph, "X"))
			continue;
		for (k = 0; k < i; k++) {
			uint64_t a0 = ns(ev, "ts"), a1 = a0 + ns(ev, "dur"), b0, b1;

			other = json_array_get(events, k);
			if (strcmp(str(other, "ph"), "X") || num(other, "pid") != num(ev, "pid") ||
			    num(other, "tid") != num(ev, "tid"))
				continue;
			b0 = ns(other, "ts");
			b1 = b0 + ns(other, "dur");
			if (!(a0 >= b1 + 2 || b0 >= a1 + 2 || (a0 >= b0 && a1 <= b1) || (b0 >= a0 && b1 <= a1)))
				fail_msg("slices %zu and %zu overlap: %llu-%llu, %llu-%llu", k, i,
					 (unsigned long long)b0, (unsigned long long)b1, (unsigned long long)a0,
					 (unsigned long long)a1);
		}
	}
	assert_int_equal(begins, ends);
}

/* ---- by events ---- */

static const struct ttmon_traceev_proc procs[] = {
	{ .tgid = PID, .from_ns = T0, .comm = "tr\"a\x1b\xff", .cmdline = "train --all" },
	{ .tgid = PID, .from_ns = T0 + 50 * MS, .comm = "second" },
	{ .tgid = 99, .from_ns = T0, .comm = "silent" },
};

static void process(void *ctx, uint32_t idx, struct ttmon_traceev_proc *ret)
{
	(void)ctx;
	assert_true(idx < ARRAY_SIZE(procs));
	*ret = procs[idx];
}

static int out_fd = -1;

static struct ttmon_traceev *begin(uint64_t max_events)
{
	const struct ttmon_traceev_head head = { .version = "1.2-test",
						 .source = "test",
						 .hostname = "host",
						 .mono_ns = T0,
						 .real_ns = 1700000000000000000,
						 .start_ns = T0,
						 .end_ns = END,
						 .nr_procs = ARRAY_SIZE(procs),
						 .proc = process,
						 .max_events = max_events };
	struct ttmon_traceev *t = NULL;

	out_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(out_fd >= 0);
	assert_int_equal(ttmon_traceev_new(out_fd, false, &head, &t), 0);
	return t;
}

static json_t *end(struct ttmon_traceev *t, const struct ttmon_traceev_missing *missing)
{
	static const struct ttmon_traceev_missing nothing;
	json_t *trace;

	assert_int_equal(ttmon_traceev_finish(t, missing ? missing : &nothing, NULL, 0), 0);
	ttmon_traceev_free(t);
	close(out_fd);
	trace = load(path);
	check_form(trace);
	return trace;
}

static struct ttmon_tt_run a_run(uint32_t chip, uint32_t program, uint64_t from, uint64_t to)
{
	return (struct ttmon_tt_run){ .tgid = PID,
				      .logical = 0,
				      .chip = chip,
				      .program = program,
				      .start_ns = T0 + from,
				      .end_ns = T0 + to,
				      .seen_ns = T0 + to + 1000,
				      .error_ns = 120,
				      .start_cycles = 5,
				      .end_cycles = 6,
				      .ghz = 1.35,
				      .clock = TTMON_CLOCK_PAIRS };
}

static json_t *draw_runs(struct ttmon_tt_run *runs, size_t n)
{
	static const struct ttmon_ev_tt_chip chips[] = {
		{ .index = 1, .card = "n300", .flags = TTMON_TT_CHIP_REMOTE, .asic_id = 0xabc },
		{ .index = 2, .arch = TTMON_TT_BLACKHOLE, .flags = TTMON_TT_CHIP_GALAXY, .tray = 1, .chip = 5 },
	};
	static const struct ttmon_tt_program programs[] = {
		{ .tgid = PID, .program = 7, .first_ns = T0 + 50 * MS, .kernels = "k/late.cpp" },
		{ .tgid = PID,
		  .program = 7,
		  .first_ns = T0 + 1,
		  .kernels = "kernels/reader_unary.cpp, x/b.cpp, c.cpp" },
		{ .tgid = PID, .program = 8, .first_ns = T0, .kernels = NULL },
	};
	const struct ttmon_tt_run **list = calloc(n, sizeof(*list));
	struct ttmon_traceev *t = begin(0);
	json_t *trace;

	assert_non_null(list);
	for (size_t i = 0; i < n; i++)
		list[i] = &runs[i];
	ttmon_traceev_chip(t, &chips[0]);
	ttmon_traceev_chip(t, &chips[1]);
	ttmon_traceev_programs(t, programs, ARRAY_SIZE(programs));
	ttmon_traceev_runs(t, list, n);
	trace = end(t, NULL);
	free(list);
	return trace;
}

static void test_runs(void **state)
{
	struct ttmon_tt_run runs[] = {
		a_run(2, 8, 9000, 9500),
		a_run(1, 7, 5123, 6001),
		a_run(1, 7, 60 * MS, 60 * MS + 1),
	};
	json_t *trace = draw_runs(runs, ARRAY_SIZE(runs));
	const json_t *ev = find(trace, "X", "program", "reader_unary + 2", 0);

	(void)state;
	assert_int_equal(count(trace, "X", "program"), 3);
	assert_non_null(ev);
	assert_true(ns(ev, "ts") == T0 + 5123);
	assert_true(ns(ev, "dur") == 878);
	assert_int_equal(json_integer_value(arg(ev, "program")), 7);
	assert_int_equal(json_integer_value(arg(ev, "error_ns")), 120);
	assert_int_equal(json_integer_value(arg(ev, "mhz")), 1350);
	assert_string_equal(json_string_value(arg(ev, "clock")), "pairs");
	assert_string_equal(json_string_value(arg(ev, "kernels")), "kernels/reader_unary.cpp, x/b.cpp, c.cpp");
	assert_string_equal(track_name(trace, "thread_name", num(ev, "pid"), num(ev, "tid")), "chip 1: n300 R, abc");
	assert_string_equal(track_name(trace, "process_name", num(ev, "pid"), 0), "Tenstorrent");
	/* The id was used again. */
	assert_non_null(find(trace, "X", "program", "late", 0));
	ev = find(trace, "X", "program", "program 8", 0);
	assert_non_null(ev);
	assert_null(arg(ev, "kernels"));
	assert_string_equal(track_name(trace, "thread_name", num(ev, "pid"), num(ev, "tid")),
			    "chip 2: blackhole T1:N5");
	assert_int_equal(num(json_object_get(trace, "otherData"), "runs"), 3);
	assert_true(json_is_true(json_object_get(json_object_get(trace, "otherData"), "complete")));
	json_decref(trace);
}

/*
 * A run that overlaps others gets a track of its own; if no track is free it is drawn beside them;
 * nothing is left out.
 */
static void test_overlapping_runs(void **state)
{
	struct ttmon_tt_run runs[24];
	json_t *trace;
	const json_t *ev;

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		runs[i] = a_run(1, 100 + i, 1000 + i, 5000 + i);
	/*
	 * Directly behind the first one, and 1 ns after its end: on the same track they would overlap after
	 * rounding.
	 */
	runs[20] = a_run(1, 200, 5001, 5100);
	runs[21] = a_run(1, 201, 6000, 6000);
	runs[22] = a_run(0, 202, 1000, 2000);
	runs[23] = a_run(0, 203, 1000, 2000);
	runs[23].logical = 1;
	trace = draw_runs(runs, ARRAY_SIZE(runs));
	assert_int_equal(count(trace, "X", "program") + count(trace, "b", "program"), 24);
	/* 16 tracks; four of the first twenty runs, and the one directly behind. */
	assert_int_equal(count(trace, "b", "program"), 5);
	ev = find(trace, "X", "program", "program 101", 0);
	assert_string_equal(track_name(trace, "thread_name", num(ev, "pid"), num(ev, "tid")),
			    "chip 1: n300 R, abc (2)");
	ev = find(trace, "X", "program", "program 203", 0);
	assert_string_equal(track_name(trace, "thread_name", num(ev, "pid"), num(ev, "tid")), "device 1 of 4711");
	json_decref(trace);
}

/*
 * Runs without a clock, with impossible times, or with an end before the start are drawn at the time
 * of the report.
 */
static void test_runs_without_a_time(void **state)
{
	struct ttmon_tt_run runs[] = { a_run(1, 1, 10, 20), a_run(1, 2, 10, 20), a_run(1, 3, 10, 20),
				       a_run(1, 4, 10, 20), a_run(1, 5, 10, 20) };
	json_t *trace;

	(void)state;
	runs[0].clock = TTMON_CLOCK_NONE;
	runs[1].end_ns = runs[1].start_ns - 1;
	runs[2].end_ns = UINT64_MAX;
	runs[3].start_ns = 0;
	runs[3].end_ns = 5;
	runs[4].clock = TTMON_CLOCK_ENVELOPE;
	runs[4].error_ns = UINT64_MAX;
	/* start 0 is within ten seconds of a trace that begins at one second. */
	runs[3].start_ns = 0 - 20000 * MS;
	trace = draw_runs(runs, ARRAY_SIZE(runs));
	assert_int_equal(count(trace, "i", "program"), 4);
	assert_int_equal(count(trace, "X", "program"), 1);
	assert_null(arg(find(trace, "X", "program", NULL, 0), "error_ns"));
	assert_true(ns(find(trace, "i", "program", "program 1", 0), "ts") == T0 + 1020);
	assert_int_equal(num(json_object_get(trace, "otherData"), "runs_without_time"), 4);
	json_decref(trace);
}

static struct ttmon_timeline_call a_call(uint32_t tid, uint64_t from, uint64_t to)
{
	return (struct ttmon_timeline_call){ .tgid = PID,
					     .tid = tid,
					     .entry_ns = T0 + from,
					     .end_ns = T0 + to,
					     .bytes = 10,
					     .fn = FN_MEMCPY,
					     .kind = TTMON_EV_COPY,
					     .dir = TTMON_DIR_D2H };
}

static void test_calls(void **state)
{
	struct ttmon_timeline_call calls[] = {
		a_call(5, 150, 200), a_call(5, 100, 300), a_call(5, 250, 350), /* cuts into the one before */
		a_call(5, 400, 400), a_call(5, 400, 500), a_call(6, 120, 130), a_call(5, 60 * MS, 61 * MS),
	};
	const struct ttmon_timeline_call *list[ARRAY_SIZE(calls)];
	struct ttmon_traceev *t = begin(0);
	const json_t *ev;
	json_t *trace;

	(void)state;
	calls[5].tgid = 12345;
	calls[5].err = -3;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		list[i] = &calls[i];
	ttmon_traceev_calls(t, list, ARRAY_SIZE(list));
	trace = end(t, NULL);
	assert_int_equal(count(trace, "X", "call"), 5);
	assert_int_equal(count(trace, "b", "call"), 1);
	assert_int_equal(count(trace, "i", "call"), 1);
	ev = find(trace, "X", "call", "cudaMemcpy", 0);
	assert_non_null(ev);
	assert_string_equal(json_string_value(arg(ev, "direction")), "d2h");
	assert_int_equal(num(ev, "tid"), 5);
	/* The pid belonged to another process by then: that process is drawn separately, and is marked. */
	ev = find(trace, "X", "call", NULL, 3);
	assert_true(ns(ev, "ts") == T0 + 60 * MS);
	assert_int_not_equal(num(ev, "pid"), PID);
	assert_string_equal(track_name(trace, "process_name", num(ev, "pid"), 0), "second (pid 4711 again)");
	/* Names are made safe; a process without events has no name in the file. */
	assert_string_equal(track_name(trace, "process_name", PID, 0), "tr\"a\x1b\xef\xbf\xbd");
	assert_string_equal(track_name(trace, "process_name", 99, 0), "");
	/* This pid is unknown. */
	ev = find(trace, "X", "call", NULL, 4);
	assert_int_equal(num(ev, "pid"), 12345);
	assert_int_equal(json_integer_value(arg(ev, "error")), -3);
	assert_false(json_is_true(json_object_get(json_object_get(trace, "otherData"), "complete")));
	json_decref(trace);
}

static void test_dispatched(void **state)
{
	const struct ttmon_tt_dispatched d = { .tgid = PID,
					       .tid = 5,
					       .ts_ns = T0 + 77,
					       .device = 0xd0,
					       .what = 0x1234,
					       .count = 3,
					       .fn = 310,
					       .kind = TTMON_TT_WORKLOAD,
					       .blocking = 1 };
	struct ttmon_traceev *t = begin(0);
	const json_t *ev;
	json_t *trace;

	(void)state;
	ttmon_traceev_dispatched(t, &d);
	trace = end(t, NULL);
	ev = find(trace, "i", "dispatch", "workload", 0);
	assert_non_null(ev);
	assert_int_equal(num(ev, "pid"), PID);
	assert_int_equal(num(ev, "tid"), 5);
	assert_true(ns(ev, "ts") == T0 + 77);
	assert_string_equal(json_string_value(arg(ev, "fn")), "EnqueueMeshWorkload");
	assert_string_equal(json_string_value(arg(ev, "device")), "0xd0");
	assert_int_equal(json_integer_value(arg(ev, "count")), 3);
	assert_true(json_is_true(arg(ev, "blocking")));
	json_decref(trace);
}

static void a_alloc(struct ttmon_traceev *t, uint8_t method, uint64_t size, uint64_t from, uint64_t to)
{
	const struct ttmon_traceev_alloc a = { .method = method,
					       .device = -1,
					       .live = !to,
					       .addr = 0x1000,
					       .size = size,
					       .alloc_ns = T0 + from,
					       .free_ns = T0 + to,
					       .end = "free" };

	ttmon_traceev_put_alloc(t, &a);
}

static void test_counters(void **state)
{
	static const struct {
		uint64_t ns, bytes;
	} want[] = { { 10, 100 }, { 20, 150 }, { 30, 50 }, { 40, 57 }, { 50, 50 }, { 60, 0 } };
	struct ttmon_traceev *t = begin(0);
	json_t *trace;

	(void)state;
	a_alloc(t, TTMON_METHOD_HOST_ALLOC, 100, 10, 30);
	a_alloc(t, TTMON_METHOD_REGISTERED, 50, 20, 60);
	a_alloc(t, TTMON_METHOD_TT_DRAM, 4096, 25, 0);
	a_alloc(t, TTMON_METHOD_TT_DMA, 7, 40, 50);
	trace = end(t, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const json_t *ev = find(trace, "C", "memory", "pinned bytes", i);

		assert_non_null(ev);
		assert_true(ns(ev, "ts") == T0 + want[i].ns);
		assert_int_equal(json_integer_value(arg(ev, "bytes")), want[i].bytes);
	}
	assert_null(find(trace, "C", "memory", "pinned bytes", ARRAY_SIZE(want)));
	/* Live memory is reported again at the end. */
	assert_true(ns(find(trace, "C", "memory", "tt_dram bytes", 1), "ts") == END);
	assert_int_equal(json_integer_value(arg(find(trace, "C", "memory", "tt_dram bytes", 1), "bytes")), 4096);
	assert_int_equal(count(trace, "b", "alloc"), 4);
	assert_string_equal(json_string_value(arg(find(trace, "b", "alloc", "tt_dram", 0), "end")), "live");
	json_decref(trace);
}

/*
 * Late, older than the trace, without bytes: the trace stays valid, and the counter ends where it
 * began.
 */
static void test_odd_allocations(void **state)
{
	struct ttmon_traceev_alloc old = {
		.method = TTMON_METHOD_DEVICE, .device = 1, .size = 8, .alloc_ns = 5, .free_ns = T0 + 30, .end = "free"
	};
	struct ttmon_traceev *t = begin(0);
	json_t *trace;
	size_t n = 0;

	(void)state;
	a_alloc(t, TTMON_METHOD_DEVICE, 16, 50, 60);
	a_alloc(t, TTMON_METHOD_DEVICE, 32, 40, 45);
	ttmon_traceev_put_alloc(t, &old);
	a_alloc(t, TTMON_METHOD_DEVICE, 0, 70, 70);
	a_alloc(t, TTMON_METHOD_DEVICE, UINT64_MAX, 80, 90);
	a_alloc(t, TTMON_METHOD_MMAP, 4096, 80, 90);
	old.proc = ARRAY_SIZE(procs);
	ttmon_traceev_put_alloc(t, &old);
	trace = end(t, NULL);
	while (find(trace, "C", "memory", "device bytes", n))
		n++;
	assert_true(n > 0);
	assert_int_equal(json_integer_value(arg(find(trace, "C", "memory", "device bytes", n - 1), "bytes")), 0);
	for (size_t i = 1; i < n; i++)
		assert_true(ns(find(trace, "C", "memory", "device bytes", i), "ts") >=
			    ns(find(trace, "C", "memory", "device bytes", i - 1), "ts"));
	assert_string_equal(json_string_value(arg(find(trace, "b", "alloc", NULL, 2), "alloc_ns")), "5");
	assert_int_equal(count(trace, "b", "alloc"), 5);
	assert_int_equal(num(json_object_get(trace, "otherData"), "mappings_left_out"), 1);
	assert_int_equal(num(json_object_get(json_object_get(trace, "otherData"), "missing"), "unknown_process"), 1);
	json_decref(trace);
}

/* A transfer is reported for the memory on both sides and drawn once. */
static void test_transfers_once(void **state)
{
	static const struct {
		uint8_t method, kind, mem;
		uint16_t bits;
		const char *name; /* NULL: not drawn */
	} cases[] = {
		{ TTMON_METHOD_HOST_ALLOC, TTMON_AEV_H2D, TTMON_MEM_PINNED, 0, "h2d pinned" },
		{ TTMON_METHOD_DEVICE, TTMON_AEV_H2D, TTMON_MEM_UNKNOWN, 0, NULL },
		{ TTMON_METHOD_MMAP, TTMON_AEV_D2H, TTMON_MEM_PAGEABLE, TTMON_AB_STAGED, "d2h pageable" },
		{ TTMON_METHOD_DEVICE, TTMON_AEV_D2H, TTMON_MEM_UNKNOWN, 0, NULL },
		{ TTMON_METHOD_MMAP, TTMON_AEV_FROM_HOST, TTMON_MEM_PAGEABLE, 0, NULL },
		{ TTMON_METHOD_MMAP, TTMON_AEV_TO_HOST, TTMON_MEM_PAGEABLE, 0, "h2h pageable" },
		{ TTMON_METHOD_HOST_ALLOC, TTMON_AEV_TO_PINNED, TTMON_MEM_PINNED, 0, "h2h pinned" },
		{ TTMON_METHOD_DEVICE, TTMON_AEV_D2D_SRC, TTMON_MEM_UNKNOWN, 0, NULL },
		{ TTMON_METHOD_DEVICE, TTMON_AEV_D2D_SRC, TTMON_MEM_UNKNOWN, TTMON_B_DST_ARRAY, "d2d" },
		{ TTMON_METHOD_DEVICE, TTMON_AEV_D2D_DST, TTMON_MEM_UNKNOWN, 0, "d2d" },
		{ TTMON_METHOD_HOST_ALLOC, TTMON_AEV_DEVICE_PTR, TTMON_MEM_PINNED, 0, NULL },
		{ TTMON_METHOD_HOST_ALLOC, TTMON_AEV_PREFETCH, TTMON_MEM_PINNED, 0, NULL },
	};
	struct ttmon_traceev *t = begin(0);
	size_t drawn = 0;
	json_t *trace;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct ttmon_traceev_transfer x = { .method = cases[i].method,
							  .addr = 0x1000,
							  .ev = { .ts_ns = T0 + i,
								  .kind = cases[i].kind,
								  .mem = cases[i].mem,
								  .bits = cases[i].bits,
								  .bytes = 100 + i } };

		ttmon_traceev_put_transfer(t, &x);
	}
	trace = end(t, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const json_t *ev = find(trace, "i", "transfer", NULL, drawn);

		if (!cases[i].name)
			continue;
		assert_non_null(ev);
		assert_string_equal(str(ev, "name"), cases[i].name);
		assert_int_equal(json_integer_value(arg(ev, "bytes")), 100 + i);
		drawn++;
	}
	assert_int_equal(count(trace, "i", "transfer"), drawn);
	json_decref(trace);
}

static void test_missing(void **state)
{
	const struct ttmon_traceev_missing missing = {
		.lost = 5, .timeline_dropped = 2, .cut = true, .no_calls = true
	};
	struct ttmon_traceev *t = begin(0);
	const json_t *ev, *other;
	json_t *trace = end(t, &missing);

	(void)state;
	ev = find(trace, "i", "ttmon", "incomplete", 0);
	assert_non_null(ev);
	assert_true(ns(ev, "ts") == END);
	assert_int_equal(json_integer_value(arg(ev, "lost")), 5);
	other = json_object_get(trace, "otherData");
	assert_false(json_is_true(json_object_get(other, "complete")));
	assert_int_equal(num(json_object_get(other, "missing"), "lost"), 5);
	assert_int_equal(num(json_object_get(other, "missing"), "runs_and_dispatches"), 2);
	assert_int_equal(num(json_object_get(other, "missing"), "cut"), 1);
	assert_int_equal(json_object_size(json_object_get(other, "missing")), 3);
	assert_null(json_object_get(other, "calls"));
	assert_string_equal(str(other, "schema"), "ttmon-trace");
	assert_string_equal(str(other, "real_ns"), "1700000000000000000");
	json_decref(trace);
}

/* Events past the limit are left out completely, and counted. */
static void test_limit(void **state)
{
	for (uint64_t max = 1; max < 12; max++) {
		struct ttmon_traceev *t = begin(max);
		json_t *trace;

		for (uint64_t i = 0; i < 5; i++)
			a_alloc(t, TTMON_METHOD_DEVICE, 1, 10 * i, 10 * i + 5);
		trace = end(t, NULL);
		assert_int_equal(count(trace, "b", NULL), count(trace, "e", NULL));
		assert_true(count(trace, "b", NULL) + count(trace, "e", NULL) + count(trace, "C", NULL) <= max);
		assert_non_null(find(trace, "i", "ttmon", "incomplete", 0));
		assert_true(num(json_object_get(json_object_get(trace, "otherData"), "missing"), "too_many") > 0);
		json_decref(trace);
	}
	(void)state;
}

/* ---- from a pipeline ---- */

static struct ttmon_event head(unsigned int kind, uint64_t ts_ns)
{
	bool fact = kind >= TTMON_EV_FACT;

	return (struct ttmon_event){ .ts_ns = ts_ns,
				     .kind = (uint16_t)kind,
				     .tgid = PID,
				     .tid = fact ? 0 : PID,
				     .cpu = fact ? TTMON_CPU_DAEMON : 0 };
}

static struct ttmon_pipeline *make(void)
{
	const struct ttmon_pipeline_cfg cfg = { .nr_cpus = 4, .history = { .keep_all = true, .start_ns = T0 } };
	const struct ttmon_ev_clock clock = { .h = head(TTMON_EV_CLOCK, T0),
					      .mono_ns = T0,
					      .real_ns = 1700000000000000000,
					      .boot_ns = T0,
					      .nr_cpus = 4,
					      .page_size = 4096,
					      .capture = TTMON_CAPTURE_COMMAND,
					      .hostname = "test-host",
					      .release = "6.1" };
	const struct ttmon_ev_proc proc = {
		.h = head(TTMON_EV_PROC, T0 + 1), .start_ns = 12345, .reason = TTMON_PROC_EXEC, .comm = "train"
	};
	struct ttmon_ev_alloc alloc = { .h = head(TTMON_EV_ALLOC, T0 + 1 * MS),
					.entry_ns = T0 + 1 * MS - 500,
					.addr = 0x7f0000000000,
					.size = 65536,
					.fn = FN_HOST_ALLOC,
					.method = TTMON_METHOD_HOST_ALLOC,
					.device = 0 };
	struct ttmon_ev_copy copy = { .h = head(TTMON_EV_COPY, T0 + 5 * MS),
				      .entry_ns = T0 + 4 * MS,
				      .dst = 0x7e0000000000,
				      .src = 0x7f0000000000,
				      .bytes = 1000,
				      .fn = FN_MEMCPY,
				      .device = 0,
				      .dir = TTMON_DIR_H2D };
	struct ttmon_ev_free gone = { .h = head(TTMON_EV_FREE, T0 + 9 * MS),
				      .entry_ns = T0 + 9 * MS - 700,
				      .addr = 0x7f0000000000,
				      .fn = FN_FREE_HOST,
				      .method = TTMON_METHOD_HOST_ALLOC };
	struct ttmon_pipeline *p = NULL;

	assert_int_equal(ttmon_pipeline_new(&cfg, NULL, NULL, &p), 0);
	ttmon_pipeline_feed(p, &clock, sizeof(clock));
	ttmon_pipeline_feed(p, &proc, sizeof(proc));
	ttmon_pipeline_feed(p, &alloc, sizeof(alloc));
	alloc.h.ts_ns = T0 + 2 * MS;
	alloc.entry_ns = T0 + 2 * MS - 100;
	alloc.addr = 0x7e0000000000;
	alloc.fn = FN_MALLOC;
	alloc.method = TTMON_METHOD_DEVICE;
	ttmon_pipeline_feed(p, &alloc, sizeof(alloc));
	ttmon_pipeline_feed(p, &copy, sizeof(copy));
	ttmon_pipeline_feed(p, &gone, sizeof(gone));
	ttmon_pipeline_finish(p, END);
	return p;
}

static struct ttmon_trace_in input(struct ttmon_pipeline *p)
{
	return (struct ttmon_trace_in){ .pipeline = p, .version = "1.2-test", .source = "capture", .end_ns = END };
}

static void test_pipeline(void **state)
{
	struct ttmon_pipeline *p = make();
	struct ttmon_trace_in in = input(p);
	char why[256] = "";
	const json_t *ev;
	json_t *trace;

	(void)state;
	assert_int_equal(ttmon_trace_write(path, &in, why, sizeof(why)), 0);
	trace = load(path);
	check_form(trace);
	ev = find(trace, "b", "alloc", "host_alloc", 0);
	assert_non_null(ev);
	assert_true(ns(ev, "ts") == T0 + 1 * MS);
	assert_int_equal(json_integer_value(arg(ev, "size")), 65536);
	assert_string_equal(json_string_value(arg(ev, "fn")), "cudaHostAlloc");
	assert_string_equal(json_string_value(arg(ev, "end")), "free");
	assert_true(ns(find(trace, "e", "alloc", "host_alloc", 0), "ts") == T0 + 9 * MS - 700);
	assert_true(ns(find(trace, "e", "alloc", "device", 0), "ts") == END);
	assert_int_equal(count(trace, "i", "transfer"), 1);
	ev = find(trace, "i", "transfer", "h2d pinned", 0);
	assert_non_null(ev);
	assert_string_equal(track_name(trace, "thread_name", num(ev, "pid"), num(ev, "tid")), "transfers h2d");
	assert_int_equal(count(trace, "X", "call"), 4);
	ev = find(trace, "X", "call", "cudaMemcpy", 0);
	assert_non_null(ev);
	assert_true(ns(ev, "dur") == 1 * MS);
	assert_string_equal(str(json_object_get(trace, "otherData"), "hostname"), "test-host");
	assert_string_equal(str(json_object_get(trace, "otherData"), "mode"), "command");
	assert_true(json_is_true(json_object_get(json_object_get(trace, "otherData"), "complete")));
	json_decref(trace);
	ttmon_pipeline_free(p);
}

/* Written into memory, into a file, compressed, and written again: the bytes are the same. */
static void test_same_bytes(void **state)
{
	struct ttmon_pipeline *p = make();
	struct ttmon_trace_in in = input(p);
	char why[256] = "", *text = NULL, *file;
	struct stat st;
	size_t len, n;

	(void)state;
	assert_int_equal(ttmon_trace_buffer(&in, &text, &len), 0);
	assert_int_equal(strlen(text), len);
	assert_int_equal(ttmon_trace_write(path, &in, why, sizeof(why)), 0);
	assert_int_equal(ttmon_trace_write(path_gz, &in, why, sizeof(why)), 0);
	file = slurp(path, &n);
	assert_int_equal(n, len);
	assert_memory_equal(file, text, len);
	free(file);
	file = slurp(path_gz, &n);
	assert_int_equal(n, len);
	assert_memory_equal(file, text, len);
	free(file);
	assert_int_equal(stat(path_gz, &st), 0);
	assert_true((size_t)st.st_size < len / 2);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(files_in_dir(false), 2);
	free(text);
	ttmon_pipeline_free(p);
}

static void test_cannot_write(void **state)
{
	struct ttmon_pipeline *p = make();
	struct ttmon_trace_in in = input(p);
	char why[256] = "";

	(void)state;
	assert_int_equal(ttmon_trace_write("/dev/full", &in, why, sizeof(why)), -ENOSPC);
	assert_string_equal(why, "cannot write the trace to /dev/full: No space left on device");
	assert_int_equal(ttmon_trace_write(dir, &in, why, sizeof(why)), -EISDIR);
	assert_int_equal(ttmon_trace_write("/nonexistent/x", &in, why, sizeof(why)), -ENOENT);
	assert_int_equal(files_in_dir(false), 0);
	ttmon_pipeline_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overlapping_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_runs_without_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dispatched, setup, teardown),
		cmocka_unit_test_setup_teardown(test_counters, setup, teardown),
		cmocka_unit_test_setup_teardown(test_odd_allocations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_transfers_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pipeline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cannot_write, setup, teardown),
	};

	return cmocka_run_group_tests_name("tracefile", tests, NULL, NULL);
}
