// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_run.c: a database as tables (lib/read/run): what is in them, and files whose rows are older,
 * damaged or meant to hurt.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <zlib.h>

#include "daemon/core/history/history.h"
#include "lib/pin/profile.h"
#include "lib/read/run.h"

static char path[] = "/tmp/ttmon-test-run-XXXXXX";

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	return fd < 0 || close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void put_file(const char *text, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	close(fd);
}

#define OBJECTS                                                                                                   \
	"\"objects\":[{\"id\":1,\"path\":\"/opt/app\",\"build_id\":\"0102030405060708090a0b0c0d0e0f1011121314\"," \
	"\"cuda\":false},"                                                                                        \
	"{\"id\":7,\"path\":\"/lib/libplain.so\",\"build_id\":\"\",\"cuda\":false}]"
#define PROCS                                                                                               \
	"\"processes\":[{\"index\":0,\"pid\":100,\"start_ns\":\"5\",\"comm\":\"app\",\"exe\":\"/opt/app\"," \
	"\"cmdline\":null,"                                                                                 \
	"\"first_ns\":\"2000\",\"last_ns\":\"9000\"},{\"index\":1,\"pid\":101,\"comm\":\"other\"}]"
#define SITES                                                                                            \
	"\"sites\":[{\"id\":0,\"key\":\"0x0000000000000000\",\"frames\":[]},"                            \
	"{\"id\":1,\"key\":\"0x00000000000000aa\",\"frames\":[[1,\"0x1234\",\"load+0x41\"],[1,\"0x99\"," \
	"\"main+0x8\"]]},"                                                                               \
	"{\"id\":2,\"key\":\"0x00000000000000bb\",\"frames\":[[7,\"0x10\",null]]}]"
#define HEAD                                                                                                     \
	"{\"schema\":\"ttmon-db\",\"version\":1,\"ttmond\":\"1.2\",\"host\":{\"hostname\":\"box\"},"             \
	"\"clock\":{\"mono_ns\":\"1000\",\"real_ns\":\"501000\"},"                                               \
	"\"capture\":{\"start_ns\":\"1500\",\"end_ns\":\"10000\"},"                                              \
	"\"completeness\":{\"complete\":false,\"reasons\":[\"lost\",\"cut\"],\"lost\":{\"ring_full\":3,"         \
	"\"unpaired\":1},"                                                                                       \
	"\"malformed\":2,\"folded\":5,\"evicted\":6,\"events_dropped\":7,"                                       \
	"\"blind\":[{\"object\":7,\"pid\":100,\"window_us\":1,\"held\":false},"                                  \
	"{\"object\":7,\"pid\":100,\"window_us\":4,\"held\":true},{\"object\":1,\"pid\":100,\"window_us\":null," \
	"\"held\":false}]}," OBJECTS "," PROCS "," SITES

static int load(const char *allocs, const char *tail, const struct ttmon_run_opts *opts, struct ttmon_run **ret,
		char *why, size_t n)
{
	char *text = NULL;
	int len = asprintf(&text, HEAD ",\"allocations\":[%s]%s}", allocs, tail), err;

	assert_true(len > 0);
	put_file(text, (size_t)len);
	free(text);
	why[0] = '\0';
	err = ttmon_run_load(path, opts, ret, why, n);
	assert_true(!err == !why[0]);
	assert_null(strchr(why, '\n'));
	if (err)
		assert_non_null(strstr(why, path));
	return err;
}

/* As ttmond writes it, before the allocations: when an event is read, the checkpoints are known. */
static void see_checkpoints(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a,
			    const struct ttmon_run_event *ev)
{
	(void)a;
	(void)ev;
	*(size_t *)ctx = run->nr_checkpoints;
}

/* Exactly one allocation, that loads. */
static struct ttmon_run *load_one(const char *alloc)
{
	struct ttmon_run *run = NULL;
	char why[512];

	if (load(alloc, "", NULL, &run, why, sizeof(why)))
		fail_msg("%s: %s", alloc, why);
	assert_int_equal(run->nr_allocs, 1);
	return run;
}

#define ALLOC                                                                                                     \
	"{\"id\":\"00000000000000aa:4096:3@0\",\"pid\":100,\"process\":0,\"site\":1,\"ordinal\":3,\"size\":4097," \
	"\"addr\":\"0x7f0000000fff\",\"method\":\"host_alloc\",\"fn\":\"cudaHostAlloc\",\"alloc_ns\":\"3000\","   \
	"\"free_ns\":\"8000\","                                                                                   \
	"\"pin_ns\":40,\"unpin_ns\":50,\"flags\":[\"old\",\"shared\"],\"api_flags\":4,"                           \
	"\"transfers\":{\"h2d\":[2,600],\"d2h\":[1,70],\"h2h\":[3,9],\"unknown\":[1,1]},\"events\":["             \
	"[-500,\"advise\",0,0,\"pinned\",0],[100,\"h2d\",300,0,\"pinned\",1],[900,\"h2d\",300,16,\"pinned\",0],"  \
	"[4000,\"d2h\",70,0,\"pinned\",1],[4500,\"h2h_src\",3,0,\"pageable\",0]]}"

static void test_checkpoints_first(void **state)
{
	static const char before[] = HEAD ",\"checkpoints\":[[\"7000\",1,5,\"step\"]],\"allocations\":[" ALLOC "]}";
	size_t seen = 0;
	const struct ttmon_run_opts opts = { .event = see_checkpoints, .ctx = &seen };
	struct ttmon_run *run = NULL;
	char why[512];

	(void)state;
	put_file(before, sizeof(before) - 1);
	if (ttmon_run_load(path, &opts, &run, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(seen, 1);
	assert_int_equal(run->nr_checkpoints, 1);
	assert_string_equal(run->checkpoints[0].label, "step");
	ttmon_run_free(run);
}

static void test_tables(void **state)
{
	static const uint8_t id[20] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 };
	struct ttmon_run *run = NULL;
	const struct ttmon_run_alloc *a;
	uint64_t exact;
	char text[256];

	(void)state;
	assert_int_equal(load(ALLOC, ",\"checkpoints\":[[\"7000\",1,5,\"step\"],[\"6000\",0,5,\"batch\"]]", NULL, &run,
			      text, sizeof(text)),
			 0);
	assert_string_equal(run->hostname, "box");
	assert_string_equal(run->ttmond, "1.2");
	assert_int_equal(run->start_ns, 1500);
	assert_int_equal(run->end_ns, 10000);
	assert_int_equal(run->real_ns, 501500);
	assert_false(run->complete);
	assert_string_equal(run->reasons, "lost, cut");
	assert_int_equal(run->lost, 6);
	assert_int_equal(run->folded, 5);
	assert_int_equal(run->evicted, 6);
	assert_int_equal(run->events_dropped, 7);
	/* The one that was held and the one before the capture are none. */
	assert_int_equal(run->nr_gaps, 1);
	assert_string_equal(run->gaps[0].what, "coverage gap of libplain.so");
	assert_int_equal(run->gaps[0].from_ns, 1500);
	assert_int_equal(run->gaps[0].to_ns, 2000);
	assert_int_equal(run->nr_checkpoints, 2);
	assert_string_equal(run->checkpoints[0].label, "batch");
	assert_int_equal(run->checkpoints[1].proc, 1);
	assert_int_equal(run->nr_procs, 2);
	assert_null(run->procs[0].cmdline);
	assert_string_equal(run->procs[0].exe, "/opt/app");
	assert_int_equal(run->nr_sites, 3);
	exact = ttmon_site_hash_frame(TTMON_FNV_BASIS, id, 20, 0x1234);
	exact = ttmon_site_hash_frame(exact, id, 20, 0x99);
	assert_true(run->sites[1].exact == exact);
	assert_true(run->sites[1].names == ttmon_site_hash_name(ttmon_site_hash_name(TTMON_FNV_BASIS, "load"), "main"));
	assert_true(run->sites[1].leaf == ttmon_site_hash_name(TTMON_FNV_BASIS, "load"));
	assert_true(run->sites[1].in_main);
	assert_false(run->sites[1].cut);
	/* No build-id, no name: nothing that would hold in another build. */
	assert_int_equal(run->sites[2].exact | run->sites[2].names | run->sites[2].leaf, 0);
	assert_string_equal(ttmon_run_site_text(run, 1, text, sizeof(text)), "load+0x41 < main");
	assert_string_equal(ttmon_run_site_text(run, 2, text, sizeof(text)), "libplain.so+0x10");
	assert_string_equal(ttmon_run_site_text(run, 0, text, sizeof(text)), "?");
	assert_string_equal(ttmon_run_site_text(run, 3, text, sizeof(text)), "?");
	assert_int_equal(run->nr_allocs, 1);
	a = run->allocs;
	assert_string_equal(a->id, "00000000000000aa:4096:3@0");
	assert_null(a->name);
	assert_int_equal(a->method, TTMON_METHOD_HOST_ALLOC);
	assert_int_equal(a->fn, 1);
	assert_int_equal(a->flags, TTMON_RUN_OLD | TTMON_RUN_IN_PLACE);
	assert_int_equal(a->alloc_ns, 3000);
	assert_int_equal(a->free_ns, 8000);
	assert_int_equal(a->pin_ns + a->unpin_ns, 90);
	assert_int_equal(a->ordinal, 3);
	assert_int_equal(a->h2d_copies, 2);
	assert_int_equal(a->h2d_bytes, 600);
	assert_int_equal(a->d2h_bytes, 70);
	assert_int_equal(a->other_copies, 4);
	assert_int_equal(a->async_copies, 2);
	assert_int_equal(a->first_h2d_ns, 3100);
	assert_int_equal(a->last_h2d_ns, 3900);
	assert_int_equal(a->last_copy_ns, 7500);
	/* 4,097 bytes from the last byte of a page on. */
	assert_int_equal(ttmon_run_pages(a), 2);
	assert_true(ttmon_run_is_pinned(a) && ttmon_run_is_host(a));
	ttmon_run_free(run);
	ttmon_run_free(NULL);
}

static void test_pages(void **state)
{
	static const struct {
		uint64_t addr, size, pages;
	} rows[] = {
		{ 0, 0, 0 },
		{ 4096, 0, 0 },
		{ 0, 1, 1 },
		{ 0, 4096, 1 },
		{ 4095, 2, 2 },
		{ 4095, 1, 1 },
		{ 1, 4096, 2 },
		{ 0x1fff, 4098, 3 },
		{ UINT64_MAX, UINT64_MAX, 1ULL << 38 },
		{ 0, 1ULL << 50, 1ULL << 38 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ttmon_run_alloc a = { .addr = rows[i].addr, .size = rows[i].size };

		assert_int_equal(ttmon_run_pages(&a), rows[i].pages);
	}
}

/*
 * Rows that are older than members, or nonsense, but in which nothing points anywhere: they have
 * defaults.
 */
static void test_defaults(void **state)
{
	struct ttmon_run *run;

	(void)state;
	run = load_one("{}");
	assert_string_equal(run->allocs[0].id, "?");
	assert_int_equal(run->allocs[0].method, TTMON_METHOD_NONE);
	assert_int_equal(run->allocs[0].alloc_ns, 1500);
	assert_int_equal(run->allocs[0].free_ns, 10000);
	assert_int_equal(run->allocs[0].flags, TTMON_RUN_LIVE);
	ttmon_run_free(run);

	run = load_one(
		"{\"site\":-1,\"process\":1.5,\"size\":-4,\"alloc_ns\":\"9\",\"free_ns\":\"8\",\"method\":7,\"fn\":[],"
		"\"flags\":{},"
		"\"ordinal\":\"x\",\"addr\":\"0xfffffffffffffffff\","
		"\"transfers\":[1],\"events\":{\"a\":1},\"heat\":3}");
	assert_int_equal(run->allocs[0].site | run->allocs[0].proc | run->allocs[0].size | run->allocs[0].addr, 0);
	/* Freed before it was made: never there. */
	assert_int_equal(run->allocs[0].free_ns, 9);
	ttmon_run_free(run);

	run = load_one(
		"{\"size\":\"18446744073709551615\",\"addr\":\"0xffffffffffffffff\",\"method\":\"mmap\","
		"\"alloc_ns\":\"18446744073709551615\",\"free_ns\":\"18446744073709551615\",\"ordinal\":99999999999,"
		"\"transfers\":{\"h2d\":[9223372036854775807,9223372036854775807]},"
		"\"events\":[[9223372036854775807,\"h2d\",0,0,null,0],[-9223372036854775808,\"h2d\",0,0,null,0],[],7,"
		"[1,\"nonsense\"]]}");
	assert_int_equal(run->allocs[0].alloc_ns, INT64_MAX);
	assert_int_equal(run->allocs[0].free_ns, INT64_MAX);
	assert_int_equal(run->allocs[0].h2d_copies, UINT32_MAX);
	assert_int_equal(run->allocs[0].ordinal, UINT32_MAX);
	assert_int_equal(run->allocs[0].first_h2d_ns, 1);
	assert_int_equal(run->allocs[0].last_h2d_ns, INT64_MAX);
	assert_int_equal(ttmon_run_pages(run->allocs), 1ULL << 38);
	ttmon_run_free(run);
}

static void test_known(void **state)
{
	static const struct {
		const char *row;
		uint8_t flags;
		bool is_unknown;
	} rows[] = {
		{ "{\"method\":\"mmap\",\"free_ns\":\"9000\"}", 0, false },
		{ "{\"method\":\"mmap\",\"free_ns\":\"9000\",\"kind\":\"unknown\",\"at_least\":true,"
		  "\"transfers\":null}",
		  TTMON_RUN_UNSEEN | TTMON_RUN_AT_LEAST, true },
		{ "{\"method\":\"mmap\",\"free_ns\":\"9000\",\"kind\":\"pinned\",\"at_least\":7}",
		  TTMON_RUN_UNSEEN | TTMON_RUN_PROVED, false },
		{ "{\"method\":\"device\",\"free_ns\":\"9000\",\"kind\":\"unknown\"}", TTMON_RUN_UNSEEN, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ttmon_run *run = load_one(rows[i].row);

		assert_int_equal(run->allocs[0].flags, rows[i].flags);
		assert_int_equal(ttmon_run_is_unknown(&run->allocs[0]), rows[i].is_unknown);
		assert_false(run->at_least);
		ttmon_run_free(run);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *alloc, *tail, *why;
		int err;
	} rows[] = {
		{ "{\"site\":3}", "", "allocation 0: its call site is out of range", -EBADMSG },
		{ "{},{\"site\":18446744073709551}", "", "allocation 1: its call site", -EBADMSG },
		{ "{\"process\":2}", "", "allocation 0: its process is out of range", -EBADMSG },
		{ "{\"id\":\"012345678901234567890123456789012345678901234567890123456789012345678901"
		  "2345678901234567890123456789"
		  "01234567890123456789012345678901234567890123456789\"}",
		  "", "its id is too long", -EBADMSG },
		{ "{}", ",\"checkpoints\":[[\"1\",2,0,\"x\"]]", "checkpoint 0", -EBADMSG },
		{ "{}", ",\"checkpoints\":[{}]", "checkpoint 0", -EBADMSG },
		{ "{", "", "damaged", -EBADMSG },
		{ "NaN", "", "not an object", -EBADMSG },
		{ "{\"size\":NaN}", "", "damaged", -EBADMSG },
		{ "{\"size\":1e999}", "", "damaged", -EBADMSG },
	};
	struct ttmon_run *run = NULL;
	char why[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int err = load(rows[i].alloc, rows[i].tail, NULL, &run, why, sizeof(why));

		if (err != rows[i].err || !strstr(why, rows[i].why))
			fail_msg("%s: %d, %s", rows[i].alloc, err, why);
		assert_null(run);
	}
}

static void test_foreign(void **state)
{
	static const struct {
		const char *text, *why;
		int err;
	} rows[] = {
		{ "{\"traceEvents\":[{\"ph\":\"X\"}]}", "not a ttmond database", -EBADMSG },
		{ "{\n  \"name\": \"left-pad\",\n  \"version\": \"1.3.0\"\n}", "not a ttmond database", -EBADMSG },
		{ "[1,2,3", "not a ttmond database", -EBADMSG },
		{ "", "empty", -EBADMSG },
		{ "{\"schema\":\"ttmon-db\",\"version\":2,\"allocations\":[]}", "version 2", -EPROTONOSUPPORT },
		{ "{\"schema\":\"ttmon-db\",\"version\":1,\"sites\":[{\"id\":1}],\"allocations\":[]}",
		  "its id is not its place", -EBADMSG },
		{ "{\"schema\":\"ttmon-db\",\"version\":1,\"allocations\":[{}]}", "its process is out of range",
		  -EBADMSG },
		{ "{\"schema\":\"ttmon-db\",\"version\":1,\"allocations\":[", "cut off", -EBADMSG },
	};
	static const char least[] = "{\"schema\":\"ttmon-db\",\"version\":1,\"allocations\":[]}";
	struct ttmon_run *run = NULL;
	char why[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		put_file(rows[i].text, strlen(rows[i].text));
		if (ttmon_run_load(path, NULL, &run, why, sizeof(why)) != rows[i].err || !strstr(why, rows[i].why))
			fail_msg("%s: %s", rows[i].text, why);
	}
	/* As little as can be: no tables at all. */
	put_file(least, strlen(least));
	assert_int_equal(ttmon_run_load(path, NULL, &run, why, sizeof(why)), 0);
	assert_int_equal(run->nr_allocs + run->nr_procs + run->nr_objects, 0);
	assert_int_equal(run->nr_sites, 1);
	ttmon_run_free(run);
	assert_int_equal(ttmon_run_load("/nowhere/db.json", NULL, &run, why, sizeof(why)), -ENOENT);
}

/* Compressed and cut anywhere: one error, nothing in between. */
static void test_cut_gz(void **state)
{
	unsigned char bytes[8192];
	struct ttmon_run *run = NULL;
	gzFile gz = gzopen(path, "wb1");
	size_t n = 0;
	char why[512];
	int fd;

	(void)state;
	assert_non_null(gz);
	gzputs(gz, HEAD ",\"allocations\":[" ALLOC "," ALLOC "]}");
	assert_int_equal(gzclose(gz), Z_OK);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = (size_t)read(fd, bytes, sizeof(bytes));
	close(fd);
	assert_true(n > 100 && n < sizeof(bytes));
	assert_int_equal(ttmon_run_load(path, NULL, &run, why, sizeof(why)), 0);
	assert_int_equal(run->nr_allocs, 2);
	ttmon_run_free(run);
	run = NULL;
	for (size_t cut = 0; cut < n; cut += 7) {
		put_file((const char *)bytes, cut);
		assert_int_equal(ttmon_run_load(path, NULL, &run, why, sizeof(why)), -EBADMSG);
		assert_null(run);
	}
}

/* Events that are not in the file: the buckets of the heat say when, else the life does. */
static void test_dropped(void **state)
{
	struct ttmon_run *run;

	(void)state;
	run = load_one(
		"{\"alloc_ns\":\"3000\",\"free_ns\":\"9000\",\"transfers\":{\"h2d\":[9,9]},\"events_dropped\":8,"
		"\"heat\":{\"origin_ns\":\"3000\",\"width_ns\":100,\"copies\":[0,4,0,0,4,1],\"bytes\":[0,4,0,0,4,1]},"
		"\"events\":[[450,\"h2d\",1,0,\"pinned\",0]]}");
	assert_int_equal(run->allocs[0].events_dropped, 8);
	assert_int_equal(run->allocs[0].first_h2d_ns, 3100);
	assert_int_equal(run->allocs[0].last_h2d_ns, 3500);
	ttmon_run_free(run);
	run = load_one("{\"alloc_ns\":\"3000\",\"free_ns\":\"9000\",\"transfers\":{\"h2d\":[9,9]}}");
	assert_int_equal(run->allocs[0].first_h2d_ns, 3000);
	assert_int_equal(run->allocs[0].last_h2d_ns, 9000);
	assert_int_equal(run->allocs[0].last_copy_ns, 9000);
	ttmon_run_free(run);
}

struct seen {
	unsigned int events, wants;
	uint64_t last_ns;
};

static bool want(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a)
{
	struct seen *s = ctx;

	assert_non_null(run->sites);
	assert_int_equal(a->h2d_bytes, 600);
	assert_int_equal(s->events, 5 * (s->wants + 1));
	return s->wants++ == 1;
}

static void event(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a,
		  const struct ttmon_run_event *ev)
{
	struct seen *s = ctx;

	(void)run;
	assert_string_equal(a->id, "00000000000000aa:4096:3@0");
	if (s->events % 5 == 0) {
		assert_int_equal(ev->kind, TTMON_AEV_ADVISE);
		assert_int_equal(ev->ts_ns, 2500);
	}
	if (s->events % 5 == 2) {
		assert_int_equal(ev->kind, TTMON_AEV_H2D);
		assert_int_equal(ev->offset, 16);
		assert_int_equal(ev->mem, TTMON_MEM_PINNED);
	}
	s->last_ns = ev->ts_ns;
	s->events++;
}

static void test_events_and_choice(void **state)
{
	struct seen seen = { 0 };
	struct ttmon_run_opts opts = { .want = want, .event = event, .ctx = &seen };
	struct ttmon_run *run = NULL;
	char why[512];

	(void)state;
	assert_int_equal(load(ALLOC "," ALLOC "," ALLOC, "", &opts, &run, why, sizeof(why)), 0);
	assert_int_equal(seen.wants, 3);
	assert_int_equal(seen.events, 15);
	assert_int_equal(seen.last_ns, 7500);
	assert_int_equal(run->nr_allocs, 1);
	ttmon_run_free(run);
}

/*
 * Frames deeper than those of the key: sites that only differ there count their allocations together,
 * as a lookup does.
 */
/*
 * What may be wrong is no identity, and what ends before its beginning is that of several places
 * perhaps.
 */
static void test_stacks_that_are_doubtful(void **state)
{
	static const struct {
		const char *stack;
		bool known, cut;
	} cases[] = {
		{ "", true, false },
		{ ",\"stack\":{\"by\":\"frame_pointers\",\"end\":\"complete\"}", true, false },
		{ ",\"stack\":{\"by\":\"tables\",\"end\":\"depth\"}", true, true },
		{ ",\"stack\":{\"by\":\"tables\",\"end\":\"no_table\",\"object\":7}", true, true },
		{ ",\"stack\":{\"by\":\"guessed\",\"end\":\"complete\"}", false, false },
		{ ",\"stack\":{\"by\":\"unchecked\",\"end\":\"unknown\"}", false, true },
		{ ",\"stack\":{\"by\":\"tables\",\"end\":\"of a later version\"}", true, true },
		{ ",\"stack\":7", true, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ttmon_run *run = NULL;
		char text[4096], err[256] = "";

		snprintf(text, sizeof(text),
			 "{\"schema\":\"ttmon-db\",\"version\":1," OBJECTS "," PROCS
			 ",\"sites\":[{\"id\":0,\"frames\":[]},{\"id\":1,\"frames\":[[1,\"0x1\",\"f+0x1\"]]%s}],"
			 "\"allocations\":[]}",
			 cases[i].stack);
		put_file(text, strlen(text));
		assert_int_equal(ttmon_run_load(path, NULL, &run, err, sizeof(err)), 0);
		assert_int_equal(run->sites[1].exact != 0, cases[i].known);
		assert_int_equal(run->sites[1].names != 0, cases[i].known);
		assert_true(run->sites[1].leaf != 0);
		assert_int_equal(run->sites[1].cut, cases[i].cut);
		ttmon_run_free(run);
	}
}

/* A program, a library, an interpreter, a file of the program's and one of Python's library. */
static const char *const own_objects[] = {
	"'id':1,'path':'/opt/app','build_id':'0102030401'",
	"'id':2,'path':'/opt/libtorch.so','build_id':'0102030402'",
	"'id':3,'path':'/usr/bin/python3.11','build_id':'0102030403'",
	"'id':4,'path':'/app/train.py','kind':'python','build_id':'0102030404'",
	"'id':5,'path':'/v/lib/python3.11/threading.py','kind':'python','build_id':'0102030405'",
};

struct own_site {
	const char *frames, *end;
};

/* A database with these objects and sites; ' stands for ". */
static struct ttmon_run *load_sites(const struct own_site *sites, size_t n)
{
	struct ttmon_run *run = NULL;
	char *text = NULL, why[512];
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	fprintf(f, "{'schema':'ttmon-db','version':1,'objects':[");
	for (size_t i = 0; i < ARRAY_SIZE(own_objects); i++)
		fprintf(f, "%s{%s}", i ? "," : "", own_objects[i]);
	fprintf(f, "],%s,'sites':[{'id':0,'frames':[]}", PROCS);
	for (size_t i = 0; i < n; i++)
		fprintf(f, ",{'id':%zu,'frames':[%s],'stack':{'by':'tables','end':'%s'}}", i + 1, sites[i].frames,
			sites[i].end);
	fprintf(f, "],'allocations':[]}");
	fclose(f);
	for (size_t i = 0; i < size; i++)
		text[i] = text[i] == '\'' ? '"' : text[i];
	put_file(text, size);
	free(text);
	if (ttmon_run_load(path, NULL, &run, why, sizeof(why)))
		fail_msg("%s", why);
	return run;
}

/* Sites by the frames that are the program's own; what is between them is no part of it. */
static void test_own_frames(void **state)
{
	static const struct own_site sites[] = {
		/* Two lines of one function. */
		{ "[2,'0x10','x+0x1'],[4,'0x2a','f+0x3'],[1,'0x20','main+0x9']", "complete" },
		{ "[2,'0x18','y+0x1'],[2,'0x10','x+0x1'],[4,'0x2b','f+0x4'],[5,'0x7','run+0x1'],[1,'0x20','main+0x9']",
		  "complete" },
		/* The first one, by another way through the library. */
		{ "[2,'0x44','z+0x1'],[4,'0x2a','f+0x3'],[2,'0x10','x+0x1'],[1,'0x20','main+0x9']", "complete" },
		/* A thread of the library's. */
		{ "[2,'0x44','z+0x1'],[5,'0x7','run+0x1']", "complete" },
		/* One function, called from C, and from lines of Python that are not known. */
		{ "[1,'0x33','h+0x3']", "complete" },
		{ "[1,'0x33','h+0x3'],[3,'0x10','_PyEval_EvalFrameDefault+0x10']", "complete" },
		{ "[1,'0x33','h+0x3'],[2,'0x33',null]", "depth" },
	};
	struct ttmon_run *run = load_sites(sites, ARRAY_SIZE(sites));
	const struct ttmon_run_site *s;

	(void)state;
	s = run->sites;
	assert_int_equal(s[1].own, 2);
	assert_true(s[1].exact && s[1].names && s[1].near);
	assert_true(s[1].exact != s[2].exact && s[1].near != s[2].near && s[1].names == s[2].names);
	assert_true(s[1].leaf == ttmon_site_hash_name(TTMON_FNV_BASIS, "f"));
	assert_true(s[1].exact == s[3].exact && s[1].near == s[3].near && s[1].names == s[3].names);
	assert_int_equal(s[4].own, 0);
	assert_int_equal(s[4].exact | s[4].names | s[4].near | s[4].leaf, 0);
	assert_true(s[5].exact && s[6].exact && s[5].exact != s[6].exact && s[5].names != s[6].names);
	assert_int_equal(s[6].leaf | s[6].near, 0);
	assert_true(!s[5].cut && s[6].cut);
	assert_true(s[7].exact == s[5].exact && s[7].by_depth && !s[5].by_depth);
	ttmon_run_free(run);
}

/* Two lambdas that are written alike have one code: neither is taken for the other. */
static void test_lines_alike(void **state)
{
	static const struct own_site sites[] = {
		{ "[4,'0x2a','<lambda>+0x0']", "complete" },
		{ "[4,'0x2b','<lambda>+0x0']", "complete" },
		{ "[4,'0x2c','<lambda>+0x1']", "complete" },
	};
	struct ttmon_run *run = load_sites(sites, ARRAY_SIZE(sites));

	(void)state;
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(run->sites[i].exact | run->sites[i].near, 0);
		assert_true(run->sites[i].names == run->sites[3].names);
	}
	assert_true(run->sites[3].exact && run->sites[3].near);
	ttmon_run_free(run);
}

/* Patterns of the user, and a file of them that is none. */
static void test_plumbing(void **state)
{
	static const char good[] = "function load\n", bad[] = "load\n";
	static char patterns[] = "/tmp/ttmon-test-run-patterns";
	struct ttmon_plumbing *p = NULL;
	struct ttmon_run *run = NULL;
	struct ttmon_run_opts opts = { 0 };
	char why[512];
	FILE *f;

	(void)state;
	assert_int_equal(ttmon_run_plumbing(NULL, &p, why, sizeof(why)), 0);
	assert_null(p);
	assert_int_equal(ttmon_run_plumbing("/nowhere", &p, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "/nowhere"));
	for (int i = 0; i < 2; i++) {
		f = fopen(patterns, "we");
		assert_non_null(f);
		fputs(i ? good : bad, f);
		fclose(f);
		assert_int_equal(ttmon_run_plumbing(patterns, &p, why, sizeof(why)), i ? 0 : -EINVAL);
	}
	unlink(patterns);
	opts.plumbing = p;
	assert_int_equal(load(ALLOC, "", &opts, &run, why, sizeof(why)), 0);
	assert_int_equal(run->sites[1].own, 1);
	assert_true(run->sites[1].leaf == ttmon_site_hash_name(TTMON_FNV_BASIS, "main"));
	ttmon_run_free(run);
	ttmon_plumbing_free(p);
}

/* ---- the same lines in other builds ---- */

#define LINES 8

struct build {
	struct ttmon_run run;
	struct ttmon_run_site sites[LINES + 1];
	struct ttmon_run_frame frames[LINES];
	struct ttmon_run_object object;
};

/* Lines of one function, 0 ends them. build: sites of the same build have the same exact. */
static void put_lines(struct build *b, uint64_t build, const unsigned int *lines)
{
	*b = (struct build){ .object = { .path = "a.py", .base = "a.py", .python = true } };
	b->run = (struct ttmon_run){ .sites = b->sites, .frames = b->frames, .objects = &b->object, .nr_objects = 1 };
	b->run.nr_sites = 1;
	for (uint32_t i = 0; lines[i]; i++) {
		b->frames[i] =
			(struct ttmon_run_frame){ .object = 0, .offset = lines[i], .fn = "f", .delta = lines[i] };
		b->sites[i + 1] = (struct ttmon_run_site){
			.frame = i, .nframes = 1, .own = 1, .exact = build + lines[i], .names = 7, .near = lines[i]
		};
		b->run.nr_sites++;
	}
	b->run.nr_frames = b->run.nr_sites - 1;
}

static void assert_near(const struct build *b, const unsigned int *near)
{
	for (uint32_t i = 0; i + 1 < b->run.nr_sites; i++)
		if (b->sites[i + 1].near != near[i])
			fail_msg("line %u: %u, not %u", (unsigned int)b->frames[i].offset,
				 (unsigned int)b->sites[i + 1].near, near[i]);
}

static void test_align(void **state)
{
	static const struct {
		unsigned int before[LINES], now[LINES], near[LINES];
		uint64_t build;
	} cases[] = {
		/* A line above both, one between, nothing that changes. */
		{ { 10, 11 }, { 12, 11 }, { 11, 10 }, 1000 },
		{ { 10, 11, 30 }, { 10, 12, 31 }, { 10, 11, 30 }, 1000 },
		{ { 5 }, { 50 }, { 5 }, 1000 },
		/* Not all of them are in this run: those are matched that move as one. */
		{ { 10, 20, 30 }, { 13, 33 }, { 10, 30 }, 1000 },
		{ { 10, 20, 30 }, { 21 }, { 20 }, 1000 },
		/* A new line has no partner. */
		{ { 10, 30 }, { 12, 15, 32 }, { 10, 0, 30 }, 1000 },
		/* The same build: other lines are other lines. */
		{ { 10, 11 }, { 11, 12 }, { 11, 12 }, 0 },
	};
	static struct build a, b, c;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		put_lines(&a, 0, cases[i].before);
		put_lines(&b, cases[i].build, cases[i].now);
		assert_int_equal(ttmon_runs_align((struct ttmon_run *const[]){ &a.run, &b.run }, 2), 0);
		assert_near(&a, cases[i].before);
		assert_near(&b, cases[i].near);
		/* Once more changes nothing. */
		assert_int_equal(ttmon_runs_align((struct ttmon_run *const[]){ &a.run, &b.run }, 2), 0);
		assert_near(&b, cases[i].near);
	}
	/* A third build is compared with the second, in which lines were where they are now. */
	put_lines(&a, 0, (unsigned int[]){ 10, 11, 0 });
	put_lines(&b, 1000, (unsigned int[]){ 40, 50, 0 });
	put_lines(&c, 2000, (unsigned int[]){ 51, 0 });
	assert_int_equal(ttmon_runs_align((struct ttmon_run *const[]){ &a.run, &b.run, &c.run }, 3), 0);
	assert_near(&b, (unsigned int[]){ 10, 11 });
	assert_near(&c, (unsigned int[]){ 11 });
}

static void test_cut_sites(void **state)
{
	char text[8192] =
		"{\"schema\":\"ttmon-db\",\"version\":1," OBJECTS "," PROCS ",\"sites\":[{\"id\":0,\"frames\":[]}";
	static const uint32_t ordinals[] = { 0, 1, 0, 2, 0 };
	struct ttmon_run *run = NULL;
	char why[512];

	(void)state;
	for (int s = 1; s <= 2; s++) {
		sprintf(text + strlen(text), ",{\"id\":%d,\"frames\":[[1,\"0x1\",\"f+0x1\"]", s);
		for (int i = 1; i <= TTMON_RUN_KEY_FRAMES; i++)
			sprintf(text + strlen(text), ",[1,\"0x%x\",\"%s+0x2\"]", i < TTMON_RUN_KEY_FRAMES ? 2 : 2 + s,
				i < TTMON_RUN_KEY_FRAMES ? "f"
				: s == 1		 ? "main"
							 : "g");
		strcat(text, "]}");
	}
	strcat(text, "],\"allocations\":[{\"site\":1,\"size\":8,\"ordinal\":0},{\"site\":2,\"size\":8,\"ordinal\":0},"
		     "{\"site\":2,\"size\":9,\"ordinal\":0},{\"site\":1,\"size\":8,\"ordinal\":1},"
		     "{\"site\":1,\"size\":8,\"ordinal\":0,\"process\":1}]}");
	put_file(text, strlen(text));
	if (ttmon_run_load(path, NULL, &run, why, sizeof(why)))
		fail_msg("%s", why);
	assert_true(run->sites[1].exact && run->sites[1].exact == run->sites[2].exact);
	assert_true(run->sites[1].cut && run->sites[2].cut);
	assert_true(run->sites[1].in_main && !run->sites[2].in_main);
	for (size_t i = 0; i < ARRAY_SIZE(ordinals); i++)
		assert_int_equal(run->allocs[i].ordinal, ordinals[i]);
	ttmon_run_free(run);
}

/*
 * Many processes and many blind windows: each is that of its process, of two with a pid the last one.
 */
static void test_gaps(void **state)
{
	enum { N = 100000 };
	FILE *f = fopen(path, "we");
	struct ttmon_run *run = NULL;
	char why[512];

	(void)state;
	assert_non_null(f);
	fprintf(f, "{\"schema\":\"ttmon-db\",\"version\":1,\"capture\":{\"start_ns\":10,\"end_ns\":9000000}," OBJECTS
		   ",\"processes\":[{\"first_ns\":77777}");
	/* Pids 1 to N / 2, all twice. */
	for (int i = 0; i < N; i++)
		fprintf(f, ",{\"pid\":%d,\"first_ns\":%d}", i % (N / 2) + 1, 5000 + i);
	fprintf(f,
		"],\"completeness\":{\"blind\":[{\"window_us\":1},{\"window_us\":1,\"pid\":%d},"
		"{\"window_us\":1,\"pid\":4294967297}",
		N);
	for (int i = 0; i < N; i++)
		fprintf(f, ",{\"object\":7,\"window_us\":1,\"pid\":%d}", N / 2 - i % (N / 2));
	fprintf(f, "]},\"allocations\":[]}");
	assert_int_equal(fclose(f), 0);
	if (ttmon_run_load(path, NULL, &run, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(run->nr_gaps, N + 3);
	/* No pid is a process without one; one that is not there leaves the window at the beginning. */
	assert_int_equal(run->gaps[0].to_ns, 77777);
	assert_int_equal(run->gaps[1].to_ns, 10);
	assert_int_equal(run->gaps[2].to_ns, 10);
	for (int i = 0; i < N; i++) {
		assert_int_equal(run->gaps[3 + i].to_ns, 5000 + N - 1 - i % (N / 2));
		assert_int_equal(run->gaps[3 + i].from_ns, 4000 + N - 1 - i % (N / 2));
	}
	ttmon_run_free(run);
}

/* 30 MB of very little: memory follows what is in it. */
static void test_large(void **state)
{
	gzFile gz = gzopen(path, "wb1");
	struct ttmon_run *run = NULL;
	static char blank[4096];
	char why[512];

	(void)state;
	memset(blank, ' ', sizeof(blank) - 1);
	assert_non_null(gz);
	gzputs(gz, HEAD ",\"allocations\":[" ALLOC);
	for (int i = 0; i < 3000; i++) {
		gzputs(gz, "," ALLOC);
		for (int k = 0; k < 2; k++)
			gzputs(gz, blank);
	}
	gzputs(gz, "]}");
	assert_int_equal(gzclose(gz), Z_OK);
	if (ttmon_run_load(path, NULL, &run, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(run->nr_allocs, 3001);
	ttmon_run_free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tables, setup, teardown),
		cmocka_unit_test_setup_teardown(test_checkpoints_first, setup, teardown),
		cmocka_unit_test(test_pages),
		cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_known, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_foreign, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_gz, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_events_and_choice, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_sites, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stacks_that_are_doubtful, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lines_alike, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plumbing, setup, teardown),
		cmocka_unit_test(test_align),
		cmocka_unit_test_setup_teardown(test_gaps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
