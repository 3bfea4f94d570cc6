// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_vmpins.c: the kernel's figures of pinned memory from valid and invalid files, and their
 * comparison with the daemon's figures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "daemon/io/host/vmpins.h"

#define MIB (1ull << 20)

static char root[] = "/tmp/ttmon-vmpins-XXXXXX";

static int make_root(void **state)
{
	char path[64];

	(void)state;
	if (!mkdtemp(root))
		return -1;
	snprintf(path, sizeof(path), "%s/7", root);
	return mkdir(path, 0700);
}

static int remove_root(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/vmstat", root);
	unlink(path);
	snprintf(path, sizeof(path), "%s/7/status", root);
	unlink(path);
	snprintf(path, sizeof(path), "%s/7", root);
	rmdir(path);
	return rmdir(root);
}

static void write_file(const char *name, const char *text, size_t n)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static int read_host(const char *text, struct ttmon_vmpins_host *ret)
{
	write_file("vmstat", text, strlen(text));
	return ttmon_vmpins_read_host(root, ret);
}

static int read_proc(const char *text, struct ttmon_vmpins_proc *ret)
{
	write_file("7/status", text, strlen(text));
	return ttmon_vmpins_read_proc(root, 7, ret);
}

static void figures_of_the_host(void **state)
{
	struct ttmon_vmpins_host h = { 1, 2 };
	char *big;

	(void)state;
	assert_int_equal(ttmon_vmpins_read_host(root, &h), -ENOENT);
	assert_int_equal(read_host("nr_dirty 3\n", &h), -ENODATA);
	assert_int_equal(read_host("nr_foll_pin_acquired 5\n", &h), -ENODATA);
	assert_int_equal(read_host("nr_foll_pin_acquired\nnr_foll_pin_released 4\n", &h), -ENODATA);
	assert_int_equal(read_host("nr_foll_pin_acquired -5\nnr_foll_pin_released 4\n", &h), -ENODATA);
	assert_int_equal(read_host("nr_foll_pin_acquired 99999999999999999999\nnr_foll_pin_released 4\n", &h),
			 -ENODATA);
	assert_int_equal(read_host("xnr_foll_pin_acquired 5\nnr_foll_pin_released 4\n", &h), -ENODATA);
	assert_int_equal(read_host("nr_foll_pin_acquired_too 5\nnr_foll_pin_released 4\n", &h), -ENODATA);
	assert_int_equal(read_host("", &h), -ENODATA);
	/* Untouched so far. */
	assert_int_equal(h.acquired, 1);
	assert_int_equal(h.released, 2);
	assert_int_equal(
		read_host("nr_free_pages 10\nnr_foll_pin_acquired 18446744073709551615\nnr_foll_pin_released 4", &h),
		0);
	assert_true(h.acquired == UINT64_MAX);
	assert_int_equal(h.released, 4);
	/* A file that is too long is refused. */
	big = malloc(MIB);
	assert_non_null(big);
	memset(big, 'x', MIB);
	write_file("vmstat", big, MIB);
	assert_int_equal(ttmon_vmpins_read_host(root, &h), -EFBIG);
	free(big);
	/* The file of this host. */
	if (!ttmon_vmpins_read_host("/proc", &h))
		assert_true(h.acquired + TTMON_VMPINS_SLACK_PAGES >= h.released);
}

static void figures_of_a_process(void **state)
{
	struct ttmon_vmpins_proc p = { 1, 2 };

	(void)state;
	assert_int_equal(ttmon_vmpins_read_proc(root, 8, &p), -ESRCH);
	/* A kernel thread has none of it. */
	assert_int_equal(read_proc("Name:\tkthreadd\nVmPin: x\n", &p), -ESRCH);
	assert_int_equal(read_proc("VmPin:\t 18446744073709551615 kB\nRssShmem:\t 1 kB\n", &p), -ESRCH);
	/* The name of a process is not taken for a figure. */
	assert_int_equal(read_proc("Name:\tVmPin: 7 kB\nRssShmem:\t 1 kB\n", &p), -ESRCH);
	assert_int_equal(p.vm_pin, 1);
	assert_int_equal(read_proc("Name:\ta\nVmLck:\t 9 kB\nVmPin:\t    8192 kB\nRssShmem:\t      12 kB\n", &p), 0);
	assert_int_equal(p.vm_pin, 8 * MIB);
	assert_int_equal(p.rss_shmem, 12 * 1024);
	assert_int_equal(ttmon_vmpins_read_proc("/proc", (uint32_t)getpid(), &p), 0);
}

static void what_contradicts_what(void **state)
{
	static const struct {
		uint64_t allocated, registered, held, shmem; /* MiB; held UINT64_MAX: not counted */
		enum ttmon_vmpins_verdict verdict;
	} cases[] = {
		{ 0, 0, 100, 100, TTMON_VMPINS_NOTHING },
		{ 0, 0, UINT64_MAX, 0, TTMON_VMPINS_NOTHING },
		{ 16, 0, 0, 16, TTMON_VMPINS_AGREES },
		{ 16, 32, 32, 20, TTMON_VMPINS_AGREES },
		/* The counters of the host lag behind by up to 2 MiB. */
		{ 0, 32, 30, 0, TTMON_VMPINS_AGREES },
		{ 0, 32, 29, 0, TTMON_VMPINS_NO_FOLL_PIN },
		{ 16, 0, 0, 15, TTMON_VMPINS_NO_SHMEM },
		{ 16, 32, 0, 15, TTMON_VMPINS_NEITHER },
		{ 16, 32, UINT64_MAX, 16, TTMON_VMPINS_UNKNOWN },
		{ 16, 32, UINT64_MAX, 15, TTMON_VMPINS_NO_SHMEM },
		/* Allocated memory needs no count. */
		{ 16, 0, UINT64_MAX, 16, TTMON_VMPINS_AGREES },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ttmon_vmpins_told told = { cases[i].allocated * MIB, cases[i].registered * MIB };
		struct ttmon_vmpins_host host = { 7 + cases[i].held * 256, 7 };
		struct ttmon_vmpins_proc proc = { 0, cases[i].shmem * MIB };

		assert_int_equal(ttmon_vmpins_judge(&told, cases[i].held == UINT64_MAX ? NULL : &host, &proc, 4096),
				 cases[i].verdict);
	}
	/* More was released than acquired, since the shares of the CPUs are added one after the other. */
	assert_int_equal(ttmon_vmpins_judge(&(struct ttmon_vmpins_told){ 0, 32 * MIB },
					    &(struct ttmon_vmpins_host){ 5, 9 }, &(struct ttmon_vmpins_proc){ 0 },
					    4096),
			 TTMON_VMPINS_NO_FOLL_PIN);
	for (unsigned int v = 0; v < TTMON_VMPINS_VERDICTS; v++)
		assert_true(ttmon_vmpins_verdict_name(v) && ttmon_vmpins_verdict_text(v));
	assert_null(ttmon_vmpins_verdict_name(TTMON_VMPINS_VERDICTS));
	assert_null(ttmon_vmpins_verdict_text(TTMON_VMPINS_VERDICTS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_of_the_host),
		cmocka_unit_test(figures_of_a_process),
		cmocka_unit_test(what_contradicts_what),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
