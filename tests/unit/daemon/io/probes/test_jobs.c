// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_jobs.c: a known file is opened for a user that may read it, by its descriptor or by its path,
 * as long as it is the same file.
 *
 * The jobs of helpers are part of the daemon, not of the archive that unit tests are linked with:
 * their source is included.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/io/probes/jobs.c"

/* Another job, which is not tested here. */
int ttmon_job_ahead(const void *ctx _unused_, const void *in _unused_, size_t n _unused_, int fd _unused_,
		    struct ttmon_helper_out *out _unused_)
{
	return -ENOSYS;
}

static char dir[] = "/tmp/test_jobs.XXXXXX";
static char path[sizeof(dir) + 16];
static struct ttmon_file_stat known;

static void write_file(const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
	_cleanup_close_ int fd = -1;

	(void)state;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/file", dir);
	write_file("known");
	fd = open(path, O_PATH | O_CLOEXEC);
	return ttmon_file_look(fd, &known);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path) || rmdir(dir);
}

/* Opens the file as a helper does. Returns the descriptor, or the error of the function. */
static int opened(int fd)
{
	struct ttmon_symbols_ask ask = { .st = known, .path = path };
	char in[sizeof(ask) + PATH_MAX] __attribute__((aligned(8)));
	size_t n = ttmon_symbols_pack(&ask, in, sizeof(in));
	struct ttmon_helper_out out = { .fd = -1 };
	int err;

	assert_true(n);
	err = ttmon_jobs[TTMON_JOB_OPEN](NULL, in, n, fd, &out);
	assert_int_equal(out.n, 0);
	assert_true(err == 0 ? out.fd >= 0 : out.fd == err);
	return err ? err : out.fd;
}

static void assert_is_known(int fd_in)
{
	_cleanup_close_ int fd = fd_in;
	char text[8] = "";

	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), 5);
	assert_string_equal(text, "known");
}

static void by_its_descriptor(void **state)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);

	(void)state;
	assert_is_known(opened(fd));
	/* It has no name any more, and another file has that name. */
	assert_int_equal(unlink(path), 0);
	write_file("other");
	assert_is_known(opened(fd));
}

static void by_its_path(void **state)
{
	(void)state;
	assert_is_known(opened(-1));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(opened(-1), -ENOENT);
	/* The file that is there now would wait for a writer. */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(opened(-1), -ENOENT);
}

static void another_file(void **state)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC), other = -1;

	(void)state;
	assert_int_equal(unlink(path), 0);
	write_file("known");
	other = open(path, O_PATH | O_CLOEXEC);
	assert_int_equal(opened(-1), -ESTALE);
	assert_int_equal(opened(other), -ESTALE);
	assert_is_known(opened(fd));
}

static void one_that_was_overwritten(void **state)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);

	(void)state;
	write_file("longer than it was");
	assert_int_equal(opened(fd), -ESTALE);
	assert_int_equal(opened(-1), -ESTALE);
}

/* Returns the answer about the file of a held call, as the daemon gets it. */
static struct ttmon_file held(void)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct ttmon_helper_out out = { .fd = -1 };
	struct ttmon_jobs_cfg cfg = { 0 };
	struct ttmon_file_stat st;
	struct ttmon_file file;

	assert_true(fd >= 0);
	assert_int_equal(ttmon_job_held(&cfg, fd, &out), 0);
	assert_int_equal(ttmon_file_unpack(out.buf, out.n, &file), 0);
	/* The descriptor is that of the file, and cannot be read from. */
	assert_int_equal(ttmon_file_look(out.fd, &st), 0);
	assert_true(ttmon_file_same(&st, &file.st));
	assert_int_equal(fcntl(out.fd, F_GETFL) & O_PATH, O_PATH);
	ttmon_elf_info_fini(&file.elf);
	close(out.fd);
	free(out.buf);
	return file;
}

static void test_held_is_read_once(void **state)
{
	struct ttmon_file file;

	(void)state;
	file = held();
	assert_false(file.same);
	assert_int_equal(file.err, -ENOEXEC);
	/* By now the daemon knows the content of this file. */
	assert_true(held().same);
	/* It does not know the new content. */
	write_file("something else");
	assert_false(held().same);
	assert_true(held().same);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_held_is_read_once), TEST(by_its_descriptor),	      TEST(by_its_path),
		TEST(another_file),	      TEST(one_that_was_overwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
