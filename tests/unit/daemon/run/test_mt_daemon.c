// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_daemon.c: the daemon's reader of channels: how many uses it reports, and which variables it
 * adds to the environment of CMD. The clock stands still unless a test advances it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/os/clock.h"

static uint64_t now_ns = 1000 * NSEC_PER_SEC;

static uint64_t fake_ns(void)
{
	return now_ns;
}
#define ttmon_mono_ns fake_ns
#include "daemon/run/memtrace.c"

#define PAGE  4096ull
#define BURST 20000u
#define A_MS  400u

/* The main program is part of the daemon, not of the archive; no test here needs it. */
const struct ttmon_opts *ttmon_daemon_opts(const struct ttmon_daemon *c)
{
	(void)c;
	return NULL;
}

void *ttmon_daemon_part(const struct ttmon_daemon *c, const struct ttmon_part *part)
{
	(void)c;
	(void)part;
	return NULL;
}

void ttmon_daemon_fact(void *ctx, const void *rec, size_t size)
{
	(void)ctx;
	(void)rec;
	(void)size;
}

static struct ttmon_mtrun *m;
static struct ttmon_opts opts;
static char lib[] = "/tmp/ttmon-test-lib-XXXXXX", *cmd[] = { "true", NULL };
static uint64_t told[4], last_ns; /* by process */

static void take(void *ctx, const void *rec, size_t size)
{
	const struct ttmon_ev_gpu_use *ev = rec;

	(void)ctx;
	assert_int_equal(size, sizeof(*ev));
	assert_int_equal(ev->h.kind, TTMON_EV_GPU_USE);
	assert_true(ev->h.tgid < 4);
	told[ev->h.tgid]++;
	last_ns = ev->h.ts_ns;
}

static int setup(void **state)
{
	int fd = mkstemp(lib);

	(void)state;
	memset(told, 0, sizeof(told));
	if (fd < 0 || close(fd) || setenv("TTMON_MEMTRACE_LIB", lib, 1) || setenv("LD_PRELOAD", "libc.so.6", 1))
		return -1;
	opts = (struct ttmon_opts){ .cmd = cmd, .memtrace = true };
	if (mtrun_new(&opts, &m))
		return -1;
	m->fact = take;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (m)
		mtrun_free(m);
	unlink(lib);
	strcpy(lib + strlen(lib) - 6, "XXXXXX");
	return unsetenv("LD_PRELOAD") || unsetenv("TTMON_MEMTRACE_SOCKET") || unsetenv("TTMON_MEMTRACE_LIB");
}

/* Every second page: each is a range of its own. */
static void use_pages(uint32_t pid, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct ttmon_mt_rec r = { .base = 2 * i * PAGE, .mask = 1, .space = TTMON_MT_GLOBAL, .width = 4 };

		assert_true(ttmon_mt_use_add(m->use, pid, &r, TTMON_MT_LOAD, 77));
	}
}

static void cmd_gets_the_library(void **state)
{
	const char *path = getenv("TTMON_MEMTRACE_SOCKET");
	char folder[108], wanted[128];
	struct stat st;

	(void)state;
	snprintf(wanted, sizeof(wanted), "%s:libc.so.6", lib);
	assert_string_equal(getenv("LD_PRELOAD"), wanted);
	assert_non_null(path);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	assert_int_equal(stat(folder, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_uid, geteuid());
	/* Nothing is left of it. */
	mtrun_free(m);
	m = NULL;
	assert_int_equal(stat(folder, &st), -1);
}

static void nothing_before_it_in_the_environment(void **state)
{
	(void)state;
	mtrun_free(m);
	m = NULL;
	unsetenv("LD_PRELOAD");
	assert_int_equal(mtrun_new(&opts, &m), 0);
	assert_string_equal(getenv("LD_PRELOAD"), lib);
}

static void no_library_no_start(void **state)
{
	(void)state;
	mtrun_free(m);
	m = NULL;
	setenv("TTMON_MEMTRACE_LIB", "/nonexistent/lib.so", 1);
	assert_int_equal(mtrun_new(&opts, &m), -ENOENT);
	assert_null(m);
}

/* 20,000 at once, of which one process gets half of what is left. */
static void a_burst_has_an_end(void **state)
{
	(void)state;
	use_pages(1, 30000);
	use_pages(2, 30000);
	use_pages(3, 1000);
	tell_all(m);
	assert_int_equal(told[1], BURST / 2);
	assert_int_equal(told[2], BURST / 4);
	assert_int_equal(told[3], 1000);
	assert_int_equal(m->left_out, 61000 - BURST / 2 - BURST / 4 - 1000);
	assert_int_equal(last_ns, 77);
}

/* And 400 more in each millisecond, up to the number that is allowed at once. */
static void it_grows_again(void **state)
{
	(void)state;
	use_pages(1, 30000);
	tell_all(m);
	use_pages(1, 30000);
	tell_all(m);
	assert_int_equal(told[1], BURST / 2 + BURST / 4);
	m->room = 0;
	told[1] = 0;
	use_pages(1, 1000);
	tell_all(m);
	assert_int_equal(told[1], 0);
	now_ns += 2 * NSEC_PER_MS + NSEC_PER_MS / 2;
	use_pages(1, 1000);
	tell_all(m);
	assert_int_equal(told[1], A_MS);
	/* With the half millisecond another millisecond is complete, and the remainder was still there. */
	now_ns += NSEC_PER_MS / 2;
	use_pages(1, 1000);
	tell_all(m);
	assert_int_equal(told[1], A_MS + A_MS);
	now_ns += 3600 * NSEC_PER_SEC;
	use_pages(1, 30000);
	tell_all(m);
	assert_int_equal(told[1], A_MS + A_MS + BURST / 2);
}

/*
 * A record has the time of its launch; a time in the future, a launch of a graph, or an unknown time
 * means now.
 */
static void uses_have_the_time_of_their_launch(void **state)
{
	const uint64_t times[] = { 500, now_ns + 1, 0 };
	struct ttmon_mt_rec r = { 0 };

	(void)state;
	m->sink.launch_ns = times;
	assert_true(m->sink.light);
	assert_int_equal(used_ns(m, &r, 0, now_ns), 500);
	assert_int_equal(used_ns(m, &r, 1, now_ns), now_ns);
	assert_int_equal(used_ns(m, &r, 2, now_ns), now_ns);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(cmd_gets_the_library), TEST(nothing_before_it_in_the_environment),
		TEST(no_library_no_start),  TEST(a_burst_has_an_end),
		TEST(it_grows_again),	    TEST(uses_have_the_time_of_their_launch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
