// SPDX-License-Identifier: GPL-2.0-only
/*
 * outfile.c: see outfile.h. The name of the temporary file ends in the process id, so two writers of
 * one path use different files. A file of that name can only be left from an earlier process with the
 * same id that was killed here.
 */
#include "lib/os/outfile.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

static void unlink_tmp(char (*tmp)[PATH_MAX + 32])
{
	if ((*tmp)[0]) {
		int saved = errno;

		unlink(*tmp);
		errno = saved;
	}
}

/* Opens a file without a name in the folder of path. */
static int open_nameless(const char *path)
{
	char dir[PATH_MAX + 32];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	/* The file gets its name through /proc later, so /proc has to be there. */
	return access("/proc/self/fd", X_OK) ? -1 : open(slash ? dir : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
}

static int give_name(int fd, const char *name)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

static int write_beside(const char *path, bool gzip, ttmon_outfile_fn fn, void *ctx)
{
	_cleanup_(unlink_tmp) char tmp[PATH_MAX + 32] = "";
	_cleanup_close_ int fd = -1;
	char name[PATH_MAX + 32];
	bool nameless;
	int err;

	if ((size_t)snprintf(name, sizeof(name), "%s.tmp.%d", path, (int)getpid()) >= sizeof(name))
		return -ENAMETOOLONG;
	if (unlink(name) && errno != ENOENT)
		return -errno;
	fd = open_nameless(path);
	nameless = fd >= 0;
	if (!nameless)
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (!nameless)
		memcpy(tmp, name, sizeof(tmp));
	err = fn(fd, gzip, ctx);
	if (err)
		return err;
	if (fsync(fd))
		return -errno;
	err = nameless ? give_name(fd, name) : 0;
	if (err)
		return err;
	memcpy(tmp, name, sizeof(tmp));
	/* With NFS and quotas, a full disk may be reported only by close(). */
	if (close(TAKE_FD(fd)))
		return -errno;
	if (rename(tmp, path))
		return -errno;
	tmp[0] = '\0';
	return 0;
}

static int write_in_place(const char *path, bool gzip, ttmon_outfile_fn fn, void *ctx)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? -errno : fn(fd, gzip, ctx);
}

const char *ttmon_outfile_name(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard output" : path;
}

int ttmon_outfile_write(const char *path, ttmon_outfile_fn fn, void *ctx)
{
	size_t len = strlen(path);
	bool gzip = len > 3 && strcmp(path + len - 3, ".gz") == 0;
	char real[PATH_MAX];
	struct stat st;

	if (strcmp(path, "-") == 0)
		return fn(STDOUT_FILENO, false, ctx);
	if (stat(path, &st))
		return errno == ENOENT ? write_beside(path, gzip, fn, ctx) : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return write_in_place(path, gzip, fn, ctx);
	return realpath(path, real) ? write_beside(real, gzip, fn, ctx) : -errno;
}
