// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_outfile.c: a document is there whole or not at all, and a writer that is killed leaves nothing.
 */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "lib/os/outfile.h"

static int write_text(int fd, bool gzip, void *ctx)
{
	(void)gzip;
	return write(fd, ctx, strlen(ctx)) == (ssize_t)strlen(ctx) ? 0 : -EIO;
}

static int write_and_die(int fd, bool gzip, void *ctx)
{
	if (write_text(fd, gzip, ctx))
		return -EIO;
	raise(SIGKILL);
	return 0;
}

static int write_and_fail(int fd, bool gzip, void *ctx)
{
	(void)!write_text(fd, gzip, ctx);
	return -ENOSPC;
}

static unsigned int files_in(const char *name)
{
	DIR *dir = opendir(name);
	unsigned int n = 0;

	assert_non_null(dir);
	for (const struct dirent *d; (d = readdir(dir));)
		n += d->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void assert_content(const char *path, const char *text)
{
	char buf[64] = "";
	FILE *f = fopen(path, "re");

	assert_non_null(f);
	assert_int_equal(fread(buf, 1, sizeof(buf) - 1, f), strlen(text));
	assert_string_equal(buf, text);
	fclose(f);
}

static void whole_or_not_at_all(void **state)
{
	char dir[] = "/tmp/ttmon-test-outfile.XXXXXX", path[64];
	int status;
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/doc", dir);
	assert_int_equal(ttmon_outfile_write(path, write_text, "first"), 0);
	assert_content(path, "first");
	assert_int_equal(ttmon_outfile_write(path, write_and_fail, "second"), -ENOSPC);
	assert_content(path, "first");
	assert_int_equal(files_in(dir), 1);
	pid = fork();
	if (!pid)
		_exit(ttmon_outfile_write(path, write_and_die, "third") != 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_content(path, "first");
	assert_int_equal(files_in(dir), 1);
	assert_int_equal(ttmon_outfile_write(path, write_text, "fourth"), 0);
	assert_content(path, "fourth");
	assert_int_equal(files_in(dir), 1);
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(whole_or_not_at_all) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
