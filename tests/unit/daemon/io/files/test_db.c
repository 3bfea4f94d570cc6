// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_db.c: the database there and back: events by hand into a real pipeline, written, read with
 * lib/read/db, compared; and what happens when the file cannot be written, or is not what it should
 * be.
 *
 * With the name of a file as its argument it writes the database of the first test there:
 * tests/e2e/check_schema.py holds that against the schema.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include "daemon/io/files/db.h"
#include "lib/read/db.h"

_Static_assert(TTMON_DB_READS_VERSION == TTMON_DB_VERSION, "the reader reads what the writer writes");

#define PID  4711
#define MS   1000000ull
#define T0   (1000 * MS)
#define PIN  0x7f0000000000ull /* a pinned buffer of 64 KiB */
#define COLD 0x7f0000100000ull /* one that is never used */
#define DEV  0x7e0000000000ull
#define TEXT 0x400000ull

/* fns.h */
#define FN_HOST_ALLOC 1
#define FN_FREE_HOST  3
#define FN_MALLOC     8
#define FN_MEMCPY     16

static const struct ttmon_db_meta meta = { .version = "1.2-test", .start_ns = T0, .end_ns = T0 + 500 * MS };
static char dir[] = "/tmp/ttmon-test-db-XXXXXX";
static char path[64], path_gz[64];

/* Facts are of no thread. */
static struct ttmon_event head(unsigned int kind, uint64_t ts_ns)
{
	bool fact = kind >= TTMON_EV_FACT;

	return (struct ttmon_event){ .ts_ns = ts_ns,
				     .kind = (uint16_t)kind,
				     .tgid = PID,
				     .tid = fact ? 0 : PID,
				     .cpu = fact ? TTMON_CPU_DAEMON : 0 };
}

/* A record with text at its end, padded to 8. */
static void feed_text(struct ttmon_pipeline *p, void *rec, size_t size, const char *text)
{
	uint64_t buf[64] = { 0 };

	memcpy(buf, rec, size);
	memcpy((char *)buf + size, text, strlen(text));
	ttmon_pipeline_feed(p, buf, ROUND_UP(size + strlen(text), 8));
}

static void feed_facts(struct ttmon_pipeline *p)
{
	struct ttmon_ev_clock clock = { .h = head(TTMON_EV_CLOCK, T0),
					.mono_ns = T0,
					.real_ns = 1700000000000000000,
					.boot_ns = T0 + 7,
					.nr_cpus = 4,
					.page_size = 4096,
					.capture = TTMON_CAPTURE_COMMAND,
					.options = TTMON_OPT_MMAP,
					.hostname = "test-host",
					.release = "6.1.0-test" };
	struct ttmon_ev_proc proc = { .h = head(TTMON_EV_PROC, T0 + 1),
				      .start_ns = 12345,
				      .ppid = 1,
				      .reason = TTMON_PROC_EXEC,
				      .comm = "tr\"ai\x1b\xffn" };
	struct ttmon_ev_text exe = { .h = head(TTMON_EV_PROC_NAME, T0 + 1), .what = TTMON_TEXT_EXE, .len = 10 };
	struct ttmon_ev_object object = { .h = head(TTMON_EV_OBJECT, T0 + 1),
					  .id = 1,
					  .build_id = { 0xab, 0xcd, 0x01 },
					  .build_id_len = 3,
					  .len = 10 };
	struct ttmon_ev_map map = {
		.h = head(TTMON_EV_MAP, T0 + 1), .start = TEXT, .end = TEXT + 0x10000, .object = 1, .prot = 5, .len = 10
	};
	struct ttmon_ev_maps_done done = { .h = head(TTMON_EV_MAPS_DONE, T0 + 2), .from_ns = T0 + 1, .count = 1 };
	struct ttmon_ev_symbol symbol = {
		.h = head(TTMON_EV_SYMBOL, T0 + 2), .object = 1, .offset = 0x123, .delta = 0x23, .len = 10
	};
	struct ttmon_ev_blind blind = {
		.h = head(TTMON_EV_BLIND, T0 + 2), .object = 1, .mapped_ns = T0 + 1, .active_ns = T0 + 250001
	};

	ttmon_pipeline_feed(p, &clock, sizeof(clock));
	ttmon_pipeline_feed(p, &proc, sizeof(proc));
	feed_text(p, &exe, sizeof(exe), "/usr/bin/t");
	feed_text(p, &object, sizeof(object), "/usr/bin/t");
	feed_text(p, &map, sizeof(map), "/usr/bin/t");
	ttmon_pipeline_feed(p, &done, sizeof(done));
	feed_text(p, &symbol, sizeof(symbol), "train_step");
	ttmon_pipeline_feed(p, &blind, sizeof(blind));
}

static void feed_alloc(struct ttmon_pipeline *p, uint64_t ts_ns, uint64_t addr, uint64_t size, unsigned int fn,
		       unsigned int method, int err)
{
	const uint64_t frames[2] = { TEXT + 0x123, TEXT + 0x456 };
	struct ttmon_ev_alloc ev = { .h = head(TTMON_EV_ALLOC, ts_ns),
				     .entry_ns = ts_ns - 1500,
				     .addr = err ? 0 : addr,
				     .size = size,
				     .err = err,
				     .fn = (uint16_t)fn,
				     .method = (uint8_t)method,
				     .nframes = 2,
				     .device = 0 };
	uint64_t rec[(sizeof(ev) + sizeof(frames)) / 8];

	memcpy(rec, &ev, sizeof(ev));
	memcpy(rec + sizeof(ev) / 8, frames, sizeof(frames));
	ttmon_pipeline_feed(p, rec, sizeof(rec));
}

static void feed_copy(struct ttmon_pipeline *p, uint64_t ts_ns, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct ttmon_ev_copy ev = { .h = head(TTMON_EV_COPY, ts_ns),
				    .entry_ns = ts_ns - 100,
				    .dst = dst,
				    .src = src,
				    .bytes = bytes,
				    .fn = FN_MEMCPY,
				    .device = 0,
				    .dir = TTMON_DIR_H2D };

	ttmon_pipeline_feed(p, &ev, sizeof(ev));
}

static void feed_free(struct ttmon_pipeline *p, uint64_t ts_ns, uint64_t addr)
{
	struct ttmon_ev_free ev = { .h = head(TTMON_EV_FREE, ts_ns),
				    .entry_ns = ts_ns - 700,
				    .addr = addr,
				    .fn = FN_FREE_HOST,
				    .device = 0,
				    .method = TTMON_METHOD_HOST_ALLOC };

	ttmon_pipeline_feed(p, &ev, sizeof(ev));
}

static struct ttmon_pipeline *make(void)
{
	struct ttmon_pipeline_cfg cfg = { .nr_cpus = 4, .history = { .keep_all = true, .start_ns = T0 } };
	struct ttmon_pipeline *p = NULL;

	assert_int_equal(ttmon_pipeline_new(&cfg, NULL, NULL, &p), 0);
	feed_facts(p);
	feed_alloc(p, T0 + 1 * MS, PIN, 65536, FN_HOST_ALLOC, TTMON_METHOD_HOST_ALLOC, 0);
	feed_alloc(p, T0 + 2 * MS, COLD, 4096, FN_HOST_ALLOC, TTMON_METHOD_HOST_ALLOC, 0);
	feed_alloc(p, T0 + 3 * MS, DEV, 1 << 20, FN_MALLOC, TTMON_METHOD_DEVICE, 0);
	feed_alloc(p, T0 + 4 * MS, 0, 8192, FN_HOST_ALLOC, TTMON_METHOD_HOST_ALLOC, 2);
	for (uint64_t i = 0; i < 10; i++)
		feed_copy(p, T0 + (10 + i) * MS, DEV, PIN + i * 4096, 1000 + i);
	feed_free(p, T0 + 30 * MS, PIN);
	ttmon_pipeline_finish(p, meta.end_ns);
	return p;
}

static void write_db(const char *to, const struct ttmon_db_meta *m)
{
	struct ttmon_pipeline *p = make();
	char why[256] = "";

	assert_int_equal(ttmon_db_write(to, p, m, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	ttmon_pipeline_free(p);
}

static struct ttmon_db *open_db(const char *from)
{
	struct ttmon_db *db = NULL;
	char why[256] = "";

	if (ttmon_db_open(from, &db, why, sizeof(why)))
		fail_msg("%s", why);
	return db;
}

/* The allocation at addr out of the ones not read yet. */
static json_t *find(struct ttmon_db *db, const char *addr)
{
	json_t *a;

	while (ttmon_db_next_alloc(db, &a) == 1) {
		if (strcmp(ttmon_db_str(a, "addr", ""), addr) == 0)
			return a;
		json_decref(a);
	}
	return NULL;
}

/* The whole file as it is on disk (raw), or uncompressed. */
static char *slurp(const char *from, bool raw, size_t *ret_n)
{
	size_t cap = 1 << 20;
	char *text = malloc(cap);
	ssize_t n;

	assert_non_null(text);
	if (raw) {
		int fd = open(from, O_RDONLY | O_CLOEXEC);

		assert_true(fd >= 0);
		n = read(fd, text, cap);
		close(fd);
	} else {
		gzFile gz = gzopen(from, "r");

		assert_non_null(gz);
		n = gzread(gz, text, (unsigned int)cap);
		gzclose(gz);
	}
	assert_true(n > 0 && (size_t)n < cap);
	*ret_n = (size_t)n;
	return text;
}

static size_t files_in_dir(void)
{
	DIR *d = opendir(dir);
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

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

static int teardown(void **state)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char name[512];

	(void)state;
	while (d && (e = readdir(d))) {
		snprintf(name, sizeof(name), "%s/%s", dir, e->d_name);
		unlink(name);
	}
	if (d)
		closedir(d);
	return rmdir(dir);
}

static void test_head(void **state)
{
	struct ttmon_db *db;

	(void)state;
	write_db(path, &meta);
	db = open_db(path);
	assert_string_equal(json_string_value(ttmon_db_member(db, "ttmond")), "1.2-test");
	assert_string_equal(ttmon_db_str(ttmon_db_member(db, "host"), "hostname", ""), "test-host");
	assert_string_equal(ttmon_db_str(ttmon_db_member(db, "host"), "release", ""), "6.1.0-test");
	assert_int_equal(ttmon_db_get(ttmon_db_member(db, "host"), "nr_cpus", 0), 4);
	assert_int_equal(ttmon_db_get(ttmon_db_member(db, "clock"), "real_ns", 0), 1700000000000000000);
	assert_string_equal(ttmon_db_str(ttmon_db_member(db, "capture"), "mode", ""), "command");
	assert_true(json_is_true(json_object_get(ttmon_db_member(db, "capture"), "mmap")));
	assert_true(json_is_true(json_object_get(ttmon_db_member(db, "capture"), "return_probes")));
	assert_int_equal(ttmon_db_get(ttmon_db_member(db, "capture"), "end_ns", 0), meta.end_ns);
	assert_null(ttmon_db_member(db, "summary"));
	ttmon_db_close(db);
}

static void test_process(void **state)
{
	const json_t *p, *e, *t;
	struct ttmon_db *db;

	(void)state;
	write_db(path, &meta);
	db = open_db(path);
	p = json_array_get(ttmon_db_member(db, "processes"), 0);
	assert_int_equal(json_array_size(ttmon_db_member(db, "processes")), 1);
	assert_int_equal(ttmon_db_get(p, "pid", 0), PID);
	assert_int_equal(ttmon_db_get(p, "start_ns", 0), 12345);
	assert_string_equal(ttmon_db_str(p, "comm", ""), "tr\"ai\x1b\xef\xbf\xbdn");
	assert_string_equal(ttmon_db_str(p, "exe", ""), "/usr/bin/t");
	assert_true(json_is_null(json_object_get(p, "cgroup")));
	assert_true(json_is_null(json_object_get(p, "exit")));
	assert_int_equal(ttmon_db_get(p, "pins", 0), 2);
	assert_int_equal(ttmon_db_get(p, "pinned_pages", 9), 1);
	assert_int_equal(ttmon_db_get(p, "pinned_peak_pages", 9), 17);
	assert_int_equal(ttmon_db_get(p, "pinned_peak_bytes", 9), 65536 + 4096);
	assert_int_equal(ttmon_db_get(p, "allocs", 9), 3);
	assert_int_equal(ttmon_db_get(p, "frees", 9), 1);
	t = json_object_get(json_object_get(json_object_get(p, "transfers"), "h2d"), "pinned");
	assert_int_equal(json_integer_value(json_array_get(t, 0)), 10);
	assert_int_equal(json_integer_value(json_array_get(t, 1)), 10045);
	e = json_array_get(json_object_get(p, "errors"), 0);
	assert_int_equal(json_array_size(json_object_get(p, "errors")), 1);
	assert_string_equal(ttmon_db_str(e, "fn", ""), "cudaHostAlloc");
	assert_int_equal(ttmon_db_get(e, "code", 0), 2);
	assert_string_equal(ttmon_db_str(e, "name", ""), "cudaErrorMemoryAllocation");
	assert_int_equal(ttmon_db_get(e, "count", 0), 1);
	ttmon_db_close(db);
}

static void test_site(void **state)
{
	const json_t *site, *frame, *object;
	uint64_t id;
	struct ttmon_db *db;
	json_t *a;

	(void)state;
	write_db(path, &meta);
	db = open_db(path);
	object = json_array_get(ttmon_db_member(db, "objects"), 0);
	assert_int_equal(ttmon_db_get(object, "id", 0), 1);
	assert_string_equal(ttmon_db_str(object, "path", ""), "/usr/bin/t");
	assert_string_equal(ttmon_db_str(object, "build_id", ""), "abcd01");
	a = find(db, "0x7f0000000000");
	assert_non_null(a);
	id = ttmon_db_get(a, "site", 0);
	json_decref(a);
	assert_int_not_equal(id, 0);
	site = json_array_get(ttmon_db_member(db, "sites"), id);
	assert_int_equal(ttmon_db_get(site, "id", 0), id);
	assert_int_equal(ttmon_db_get(site, "allocs", 0), 3);
	assert_int_equal(json_array_size(json_object_get(site, "methods")), 2);
	assert_int_equal(json_array_size(json_object_get(site, "frames")), 2);
	frame = json_array_get(json_object_get(site, "frames"), 0);
	assert_int_equal(json_integer_value(json_array_get(frame, 0)), 1);
	assert_string_equal(json_string_value(json_array_get(frame, 1)), "0x123");
	assert_string_equal(json_string_value(json_array_get(frame, 2)), "train_step+0x23");
	frame = json_array_get(json_object_get(site, "frames"), 1);
	assert_string_equal(json_string_value(json_array_get(frame, 1)), "0x456");
	assert_true(json_is_null(json_array_get(frame, 2)));
	ttmon_db_close(db);
}

static void test_allocation(void **state)
{
	const json_t *t, *e, *site;
	struct ttmon_db *db;
	char id[64];
	json_t *a;

	(void)state;
	write_db(path, &meta);
	db = open_db(path);
	a = find(db, "0x7f0000000000");
	assert_non_null(a);
	site = json_array_get(ttmon_db_member(db, "sites"), ttmon_db_get(a, "site", 0));
	snprintf(id, sizeof(id), "%s:65536:0@0", ttmon_db_str(site, "key", "??") + 2);
	assert_string_equal(ttmon_db_str(a, "id", ""), id);
	assert_int_equal(ttmon_db_get(a, "pid", 0), PID);
	assert_string_equal(ttmon_db_str(a, "method", ""), "host_alloc");
	assert_string_equal(ttmon_db_str(a, "fn", ""), "cudaHostAlloc");
	assert_int_equal(ttmon_db_get(a, "alloc_ns", 0), T0 + 1 * MS);
	assert_int_equal(ttmon_db_get(a, "free_ns", 0), T0 + 30 * MS - 700);
	assert_string_equal(ttmon_db_str(a, "end", ""), "free");
	assert_int_equal(ttmon_db_get(a, "pin_ns", 0), 1500);
	assert_int_equal(ttmon_db_get(a, "unpin_ns", 0), 700);
	t = json_object_get(json_object_get(a, "transfers"), "h2d");
	assert_int_equal(json_integer_value(json_array_get(t, 0)), 10);
	assert_int_equal(json_integer_value(json_array_get(t, 1)), 10045);
	assert_int_equal(json_array_size(json_object_get(a, "events")), 10);
	e = json_array_get(json_object_get(a, "events"), 9);
	assert_int_equal(json_integer_value(json_array_get(e, 0)), 18 * MS);
	assert_string_equal(json_string_value(json_array_get(e, 1)), "h2d");
	assert_int_equal(json_integer_value(json_array_get(e, 2)), 1009);
	assert_int_equal(json_integer_value(json_array_get(e, 3)), 9 * 4096);
	assert_string_equal(json_string_value(json_array_get(e, 4)), "pinned");
	t = json_object_get(json_object_get(a, "heat"), "copies");
	/* The last copy is 18 ms after the allocation: what follows its bucket is left out. */
	assert_int_equal(json_array_size(t), 19);
	assert_int_equal(json_integer_value(json_array_get(t, 18)), 1);
	assert_int_equal(json_integer_value(json_array_get(t, 0)), 0);
	json_decref(a);
	ttmon_db_close(db);
}

static void test_live_allocation(void **state)
{
	struct ttmon_db *db;
	json_t *a;

	(void)state;
	write_db(path, &meta);
	db = open_db(path);
	a = find(db, "0x7f0000100000");
	assert_non_null(a);
	assert_true(json_is_null(json_object_get(a, "free_ns")));
	assert_string_equal(ttmon_db_str(a, "end", ""), "live");
	assert_null(json_object_get(a, "heat"));
	assert_int_equal(json_array_size(json_object_get(a, "events")), 0);
	json_decref(a);
	ttmon_db_close(db);
}

static void test_summary_and_advice(void **state)
{
	struct ttmon_db_meta only = meta;
	struct ttmon_db *db;

	(void)state;
	only.trace_only = true;
	write_db(path, &meta);
	db = open_db(path);
	assert_int_equal(ttmon_db_skip(db), 0);
	assert_int_equal(ttmon_db_get(ttmon_db_member(db, "summary"), "pinned_peak_pages", 0), 17);
	assert_int_equal(ttmon_db_get(ttmon_db_member(db, "summary"), "pins", 0), 2);
	assert_true(json_is_array(ttmon_db_member(db, "advice")));
	ttmon_db_close(db);

	write_db(path, &only);
	db = open_db(path);
	assert_int_equal(ttmon_db_skip(db), 0);
	assert_null(ttmon_db_member(db, "advice"));
	assert_non_null(ttmon_db_member(db, "summary"));
	ttmon_db_close(db);
}

static void test_completeness(void **state)
{
	struct ttmon_db_meta cut = meta;
	struct ttmon_pipeline *p = make();
	struct ttmon_ev_lost lost = {
		.h = head(TTMON_EV_LOST, meta.end_ns), .stat_kind = TTMON_EV_COPY, .attempted = 12, .lost = 2
	};
	struct ttmon_ev_lost why_lost = { .h = head(TTMON_EV_LOST, meta.end_ns),
					  .reason = { [TTMON_LOSS_RING_FULL] = 2 } };
	const json_t *comp, *blind, *gap;
	struct ttmon_db *db;
	char why[256];

	(void)state;
	write_db(path, &meta);
	db = open_db(path);
	comp = ttmon_db_member(db, "completeness");
	assert_true(json_is_false(json_object_get(comp, "complete")));
	assert_int_equal(json_array_size(json_object_get(comp, "reasons")), 1);
	assert_string_equal(json_string_value(json_array_get(json_object_get(comp, "reasons"), 0)), "coverage_gap");
	gap = json_array_get(json_object_get(comp, "knowledge"), 0);
	assert_int_equal(json_array_size(json_object_get(comp, "knowledge")), 1);
	assert_string_equal(ttmon_db_str(gap, "why", ""), "coverage gap");
	assert_string_equal(ttmon_db_str(gap, "state", ""), "not yet");
	assert_int_equal(json_array_size(json_object_get(gap, "families")), 4); /* alloc, transfer, launch, wait */
	assert_int_equal(ttmon_db_get(gap, "object", 0), 1);
	assert_int_equal(ttmon_db_get(comp, "decoded", 0), 16);
	assert_int_equal(ttmon_db_get(comp, "malformed_facts", 9), 0);
	assert_true(json_is_null(json_object_get(comp, "attempted")));
	blind = json_array_get(json_object_get(comp, "blind"), 0);
	assert_int_equal(ttmon_db_get(blind, "window_us", 0), 250);
	assert_int_equal(ttmon_db_get(blind, "object", 0), 1);
	ttmon_db_close(db);

	cut.cut = true;
	ttmon_pipeline_feed(p, &lost, sizeof(lost));
	ttmon_pipeline_feed(p, &why_lost, sizeof(why_lost));
	assert_int_equal(ttmon_db_write(path, p, &cut, why, sizeof(why)), 0);
	ttmon_pipeline_free(p);
	db = open_db(path);
	comp = ttmon_db_member(db, "completeness");
	assert_false(json_is_true(json_object_get(comp, "complete")));
	assert_string_equal(json_string_value(json_array_get(json_object_get(comp, "reasons"), 0)), "lost");
	assert_string_equal(json_string_value(json_array_get(json_object_get(comp, "reasons"), 1)), "cut");
	assert_int_equal(ttmon_db_get(json_object_get(comp, "lost"), "ring_full", 0), 2);
	ttmon_db_close(db);
}

static void test_deterministic(void **state)
{
	char *a, *b, *c, *gz;
	size_t na, nb, nc, ngz;

	(void)state;
	write_db(path, &meta);
	a = slurp(path, true, &na);
	write_db(path, &meta);
	b = slurp(path, true, &nb);
	write_db(path_gz, &meta);
	c = slurp(path_gz, false, &nc);
	gz = slurp(path_gz, true, &ngz);
	assert_int_equal(na, nb);
	assert_memory_equal(a, b, na);
	assert_int_equal(na, nc);
	assert_memory_equal(a, c, na);
	/* Compressed, and without a time in its header. */
	assert_true(ngz < na);
	assert_memory_equal(gz, "\x1f\x8b\x08\0\0\0\0\0", 8);
	free(a);
	free(b);
	free(c);
	free(gz);
}

static void assert_refused(const char *to, int err, const char *text)
{
	struct ttmon_pipeline *p = make();
	char why[256] = "";

	assert_int_equal(ttmon_db_write(to, p, &meta, why, sizeof(why)), err);
	assert_non_null(strstr(why, text));
	assert_non_null(strstr(why, to));
	assert_null(strchr(why, '\n'));
	ttmon_pipeline_free(p);
}

static void test_unwritable(void **state)
{
	char name[128];

	(void)state;
	assert_refused(dir, -EISDIR, "Is a directory");
	snprintf(name, sizeof(name), "%s/no/such/dir.json", dir);
	assert_refused(name, -ENOENT, "No such file or directory");
	write_db(path, &meta);
	snprintf(name, sizeof(name), "%s/x.json", path);
	assert_refused(name, -ENOTDIR, "Not a directory");
	assert_refused("/dev/full", -ENOSPC, "No space left on device");
	assert_int_equal(files_in_dir(), 1);
}

/* A write that fails half-way leaves the previous file, and nothing beside it. */
static void test_previous_intact(void **state)
{
	struct ttmon_pipeline *p = make();
	struct rlimit old, small;
	char why[256], *a, *b;
	size_t na, nb;
	int r;

	(void)state;
	write_db(path, &meta);
	a = slurp(path, true, &na);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 1000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	r = ttmon_db_write(path, p, &meta, why, sizeof(why));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(files_in_dir(), 1);
	b = slurp(path, true, &nb);
	assert_int_equal(na, nb);
	assert_memory_equal(a, b, na);
	free(a);
	free(b);
	ttmon_pipeline_free(p);
}

/* Through a symbolic link the file it leads to is replaced; the link stays. */
static void test_symlink(void **state)
{
	char target[128];
	struct stat st;

	(void)state;
	snprintf(target, sizeof(target), "%s/target.json", dir);
	write_db(target, &meta);
	assert_int_equal(truncate(target, 0), 0);
	assert_int_equal(symlink("target.json", path), 0);
	write_db(path, &meta);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	ttmon_db_close(open_db(target));
	assert_int_equal(stat(target, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(files_in_dir(), 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_head),
		TEST(test_process),
		TEST(test_site),
		TEST(test_allocation),
		TEST(test_live_allocation),
		TEST(test_summary_and_advice),
		TEST(test_completeness),
		TEST(test_deterministic),
		TEST(test_unwritable),
		TEST(test_previous_intact),
		TEST(test_symlink),
	};

	if (argc > 1) {
		write_db(argv[1], &meta);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
