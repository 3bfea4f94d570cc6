// SPDX-License-Identifier: GPL-2.0-only
/* test_maps.c: /proc/PID/maps, well-formed, hostile, and our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <sys/stat.h>

#include "lib/os/maps.h"

struct seen {
	struct ttmon_mapping m[8];
	char name[8][8192];
	size_t n;
	int stop; /* returned by the callback */
};

static int see(void *ctx, const struct ttmon_mapping *m)
{
	struct seen *s = ctx;

	if (s->n < ARRAY_SIZE(s->m)) {
		s->m[s->n] = *m;
		snprintf(s->name[s->n], sizeof(s->name[0]), "%s", m->name);
	}
	s->n++;
	return s->stop;
}

/* From a heap copy of exactly n bytes, so that ASan sees a read past the end. */
static int parse(const char *text, size_t n, struct seen *s, uint64_t *bad)
{
	_cleanup_free_ char *copy = malloc(n ? n : 1);

	assert_non_null(copy);
	memcpy(copy, text, n);
	*s = (struct seen){ .stop = s->stop };
	*bad = 0;
	return ttmon_maps_parse(copy, n, see, s, bad);
}

static struct seen s;

static void test_fields(void **state)
{
	static const char text[] =
		"55dd8e3c3000-55dd8e3d3000 r-xp 0001a000 fe:0a 123456 /usr/lib/a b.so\n"
		"7f573f594000-7f573f597000 rw-s ffffffffffff0000 00:00 0 \n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"
		"1000-2000 ---p 00000000 103:00001 18446744073709 /tmp/gone (deleted)\n"
		"3000-4000 r--p 00000000 00:01 7 /a\\012b\\040c\\0";
	uint64_t bad;

	(void)state;
	assert_int_equal(parse(text, sizeof(text) - 1, &s, &bad), 0);
	assert_int_equal(bad, 0);
	assert_int_equal(s.n, 5);
	assert_int_equal(s.m[0].start, 0x55dd8e3c3000);
	assert_int_equal(s.m[0].end, 0x55dd8e3d3000);
	assert_int_equal(s.m[0].pgoff, 0x1a000);
	assert_int_equal(s.m[0].prot, PROT_READ | PROT_EXEC);
	assert_false(s.m[0].shared);
	assert_int_equal(s.m[0].dev_major, 0xfe);
	assert_int_equal(s.m[0].dev_minor, 0x0a);
	assert_int_equal(s.m[0].ino, 123456);
	assert_string_equal(s.name[0], "/usr/lib/a b.so");
	assert_int_equal(s.m[1].prot, PROT_READ | PROT_WRITE);
	assert_true(s.m[1].shared);
	assert_int_equal(s.m[1].pgoff, 0xffffffffffff0000);
	assert_string_equal(s.name[1], "");
	assert_int_equal(s.m[2].end, 0xffffffffff601000);
	assert_string_equal(s.name[2], "[vsyscall]");
	assert_false(s.m[2].deleted);
	assert_int_equal(s.m[3].dev_major, 0x103);
	assert_int_equal(s.m[3].ino, 18446744073709);
	assert_true(s.m[3].deleted);
	assert_string_equal(s.name[3], "/tmp/gone");
	assert_string_equal(s.name[4], "/a\nb\\040c\\0"); /* the kernel escapes newlines and nothing else */
}

/* Each of these is one bad line between two good ones. */
static void test_bad_lines(void **state)
{
	static const char *const lines[] = {
		"",
		" ",
		"-2000 r--p 0 00:00 0 x",
		"1000 2000 r--p 0 00:00 0 x",
		"1000-2000",
		"1000-2000 ",
		"1000-2000 r--",
		"1000-2000 r--p",
		"1000-2000 r--p ",
		"1000-2000 r--p 0",
		"1000-2000 r--p 0 00",
		"1000-2000 r--p 0 00:00",
		"1000-2000 r--p 0 00:00 ",
		"1000-2000 rq-p 0 00:00 0 x",
		"1000-2000 r--q 0 00:00 0 x",
		"1000-2000 r--pp 0 00:00 0 x",
		"1000-2000 r--p 0 00:00 0x",
		"1000-2000 r--p 0 00:00 00000000000000000001 x",
		"00000000000001000-2000 r--p 0 00:00 0 x",
		"1000-2000 r--p 0 100000000:00 0 x",
		"1000-2000 r--p 0 00:100000000 0 x",
		"2000-2000 r--p 0 00:00 0 x",
		"3000-2000 r--p 0 00:00 0 x",
		"1000-2000 r--p -1 00:00 0 x",
		"1000-20G0 r--p 0 00:00 0 x",
	};
	char text[256];
	uint64_t bad;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		int n = snprintf(text, sizeof(text), "1000-2000 r--p 0 00:00 0 a\n%s\n5000-6000 r--p 0 00:00 0\n",
				 lines[i]);

		assert_int_equal(parse(text, (size_t)n, &s, &bad), 0);
		if (bad != 1 || s.n != 2)
			fail_msg("'%s': %zu mappings, %llu bad", lines[i], s.n, (unsigned long long)bad);
		assert_string_equal(s.name[0], "a");
		assert_int_equal(s.m[1].start, 0x5000);
	}
}

static void test_long_name(void **state)
{
	static char text[10000];
	size_t head = (size_t)snprintf(text, sizeof(text), "1000-2000 r--p 0 00:00 0 /");
	uint64_t bad;

	(void)state;
	memset(text + head, 'x', sizeof(text) - head);
	assert_int_equal(parse(text, head + 4095, &s, &bad), 0);
	assert_int_equal(bad, 0);
	assert_int_equal(s.n, 1);
	assert_int_equal(strlen(s.name[0]), 4096);
	assert_int_equal(parse(text, sizeof(text), &s, &bad), 0);
	assert_int_equal(bad, 1);
	assert_int_equal(s.n, 0);
	text[head + 10] = '\0'; /* a name never has a NUL */
	assert_int_equal(parse(text, head + 20, &s, &bad), 0);
	assert_int_equal(bad, 1);
}

/*
 * Any prefix of good text gives whole lines and at most one bad one, and reads nothing past its end.
 */
static void test_truncated(void **state)
{
	static const char text[] =
		"1000-2000 r-xp 00001000 fe:0a 12 /a (deleted)\n3000-4000 rw-p 00000000 00:00 0 \\012\n";
	uint64_t bad;

	(void)state;
	for (size_t n = 0; n < sizeof(text); n++) {
		assert_int_equal(parse(text, n, &s, &bad), 0);
		assert_true(s.n <= 2 && bad <= 1);
		assert_true(n == 0 || s.n + bad >= 1);
	}
}

static void test_stop(void **state)
{
	static const char text[] = "1000-2000 r--p 0 00:00 0\n3000-4000 r--p 0 00:00 0\n";
	uint64_t bad;

	(void)state;
	s.stop = 7;
	assert_int_equal(parse(text, sizeof(text) - 1, &s, &bad), 7);
	assert_int_equal(s.n, 1);
	s.stop = 0;
}

struct find {
	uint64_t addr;
	bool found;
	struct ttmon_mapping m;
	char name[4096];
	size_t n;
};

static int find(void *ctx, const struct ttmon_mapping *m)
{
	struct find *f = ctx;

	f->n++;
	if (f->addr >= m->start && f->addr < m->end) {
		f->found = true;
		f->m = *m;
		snprintf(f->name, sizeof(f->name), "%s", m->name);
	}
	return 0;
}

/* Our own mappings, with more of them than one buffer holds. */
static void test_own(void **state)
{
	struct find f = { .addr = (uint64_t)(uintptr_t)test_own };
	const size_t nr = 3000, page = (size_t)sysconf(_SC_PAGESIZE);
	char exe[4096] = "";
	char *area;

	(void)state;
	area = mmap(NULL, nr * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(area != MAP_FAILED);
	for (size_t i = 0; i < nr; i += 2) /* every second page differs: one mapping each */
		assert_int_equal(mprotect(area + i * page, page, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(ttmon_maps_read("/proc", (uint32_t)getpid(), find, &f), 0);
	munmap(area, nr * page);
	assert_true(f.n >= nr);
	assert_true(f.found);
	assert_int_equal(f.m.prot, PROT_READ | PROT_EXEC);
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_string_equal(f.name, exe);
	assert_int_not_equal(f.m.ino, 0);
}

/*
 * A invented /proc: a line longer than any buffer, in the middle, at the end; a process that is gone.
 */
static void test_made_up_proc(void **state)
{
	char dir[] = "/tmp/ttmon_maps_XXXXXX", path[64];
	static char junk[200000];
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/42", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/42/maps", dir);
	memset(junk, 'x', sizeof(junk));

	f = fopen(path, "we");
	assert_non_null(f);
	fputs("1000-2000 r--p 0 00:00 0 first\n", f);
	fwrite(junk, 1, sizeof(junk), f);
	fputs("\n3000-4000 r--p 0 00:00 0 last", f);
	fclose(f);
	s = (struct seen){ 0 };
	assert_int_equal(ttmon_maps_read(dir, 42, see, &s), 0);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.name[1], "last");

	f = fopen(path, "we");
	assert_non_null(f);
	fputs("1000-2000 r--p 0 00:00 0 first\n", f);
	fwrite(junk, 1, sizeof(junk), f);
	fclose(f);
	s = (struct seen){ 0 };
	assert_int_equal(ttmon_maps_read(dir, 42, see, &s), 0);
	assert_int_equal(s.n, 1);
	s = (struct seen){ .stop = -EINTR };
	assert_int_equal(ttmon_maps_read(dir, 42, see, &s), -EINTR);
	assert_int_equal(ttmon_maps_read(dir, 43, see, &s), -ESRCH);

	unlink(path);
	snprintf(path, sizeof(path), "%s/42", dir);
	rmdir(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),	     cmocka_unit_test(test_bad_lines), cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_truncated),    cmocka_unit_test(test_stop),      cmocka_unit_test(test_own),
		cmocka_unit_test(test_made_up_proc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
