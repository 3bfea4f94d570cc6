// SPDX-License-Identifier: GPL-2.0-only
/*
 * heldfile.c: see heldfile.h. Runs in the cold thread and in tests.
 *
 * Paths are resolved as the command would: in its root directory (openat2 with RESOLVE_IN_ROOT, so
 * that absolute symbolic links of a container stay in the container), relative ones after the text of
 * /proc/PID/cwd or of /proc/PID/fd/N. /proc/self is rewritten, because it would mean our process. A
 * path that cannot be resolved is only an error: the command goes on, unheld for this call.
 */
#define _GNU_SOURCE
#include "daemon/io/hold/heldfile.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define MAX_SCRIPTS 4
/* The kernel reads this much of a script's first line (BINPRM_BUF_SIZE). */
#define SCRIPT_BYTES 256

/*
 * Reopens an O_PATH fd for reading. Never blocks on a lease, never opens a device, pipe or directory.
 */
static int reopen(int path_fd, int *ret)
{
	char self[64];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

static int open_link(const char *link, int *ret)
{
	_cleanup_close_ int fd = open(link, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : reopen(fd, ret);
}

/*
 * Reads a string of the command's memory. Page by page, so that a string that ends just before a hole
 * is read completely.
 */
static int read_string(uint32_t pid, uint64_t addr, char *buf, size_t n)
{
	_cleanup_close_ int fd = -1;
	char path[64];
	size_t got = 0;

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (got < n) {
		size_t want = MIN(n - got, 4096 - (addr + got) % 4096);
		ssize_t r = pread(fd, buf + got, want, (off_t)(addr + got));

		if (r <= 0)
			return r < 0 ? -errno : -EFAULT;
		if (memchr(buf + got, 0, (size_t)r))
			return 0;
		got += (size_t)r;
	}
	return -ENAMETOOLONG;
}

static int read_link(const char *link, char *buf, size_t n)
{
	ssize_t len = readlink(link, buf, n - 1);

	if (len < 0)
		return -errno;
	if ((size_t)len == n - 1)
		return -ENAMETOOLONG;
	buf[len] = '\0';
	return 0;
}

/* base: the /proc link of the directory that a relative path starts from. */
static int open_in_root(uint32_t pid, const char *base, const char *path, int *ret)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	char link[64], root[PATH_MAX], dir[PATH_MAX], full[2 * PATH_MAX];
	_cleanup_close_ int root_fd = -1, fd = -1;
	const char *from = dir;
	size_t n;
	int err;

	snprintf(link, sizeof(link), "/proc/%u/root", pid);
	root_fd = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;

	if (path[0] == '/') {
		snprintf(full, sizeof(full), "%s", path);
	} else {
		err = read_link(base, dir, sizeof(dir));
		if (err == 0)
			err = read_link(link, root, sizeof(root));
		if (err)
			return err;
		/*
		 * After chroot both links show paths from our root: the part after the command's root is its own view.
		 */
		n = strlen(root);
		if (n > 1 && strncmp(dir, root, n) == 0 && (dir[n] == '/' || dir[n] == '\0'))
			from += n;
		snprintf(full, sizeof(full), "%s/%s", from, path);
	}
	fd = (int)syscall(SYS_openat2, root_fd, full, &how, sizeof(how));
	return fd < 0 ? -errno : reopen(fd, ret);
}

static int open_path(uint32_t pid, const char *base, const char *path, int *ret)
{
	static const struct {
		const char *prefix, *instead;
	} selves[] = { { "/proc/self/", "" }, { "/proc/thread-self/", "" }, { "/dev/fd/", "fd/" } };
	char link[PATH_MAX + 64];

	for (size_t i = 0; i < ARRAY_SIZE(selves); i++) {
		size_t n = strlen(selves[i].prefix);

		if (strncmp(path, selves[i].prefix, n) == 0) {
			snprintf(link, sizeof(link), "/proc/%u/%s%s", pid, selves[i].instead, path + n);
			return open_link(link, ret);
		}
	}
	return open_in_root(pid, base, path, ret);
}

/* The interpreter named in a script's first line. -ENOENT: not a script. */
static int script_interpreter(int fd, char *buf, size_t n)
{
	char line[SCRIPT_BYTES + 1];
	ssize_t len = pread(fd, line, SCRIPT_BYTES, 0);
	char *start;

	if (len < 3 || line[0] != '#' || line[1] != '!')
		return -ENOENT;
	line[len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	start = line + 2 + strspn(line + 2, " \t");
	start[strcspn(start, " \t")] = '\0';
	if (!*start)
		return -ENOEXEC;
	snprintf(buf, n, "%s", start);
	return 0;
}

/* execve refuses a file without any x bit, even for root. */
static int check_executable(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	return st.st_mode & 0111 ? 0 : -EACCES;
}

static int open_program(const struct seccomp_notif *notif, int *ret)
{
	bool at = notif->data.nr == __NR_execveat;
	int dirfd = at ? (int)notif->data.args[0] : AT_FDCWD;
	char cwd[64], base[64], path[PATH_MAX] = "";
	_cleanup_close_ int fd = -1;
	int err;

	snprintf(cwd, sizeof(cwd), "/proc/%u/cwd", notif->pid);
	if (dirfd == AT_FDCWD)
		snprintf(base, sizeof(base), "%s", cwd);
	else
		snprintf(base, sizeof(base), "/proc/%u/fd/%d", notif->pid, dirfd);

	err = read_string(notif->pid, notif->data.args[at ? 1 : 0], path, sizeof(path));
	if (err)
		return err;
	if (!path[0])
		err = at ? open_link(base, &fd) : -ENOENT;
	else
		err = open_path(notif->pid, base, path, &fd);

	if (err == 0)
		err = check_executable(fd);
	for (int i = 0; err == 0 && i < MAX_SCRIPTS && script_interpreter(fd, path, sizeof(path)) == 0; i++) {
		close(TAKE_FD(fd));
		err = open_path(notif->pid, cwd, path, &fd);
		if (err == 0)
			err = check_executable(fd);
	}
	if (err)
		return err;
	*ret = TAKE_FD(fd);
	return 0;
}

int ttmon_heldfile_open(const struct seccomp_notif *notif, int *ret)
{
	char link[64];

	/* 0: the thread is in a pid namespace that we cannot see. */
	if (!notif->pid)
		return -ESRCH;
	if (notif->data.nr != __NR_mmap)
		return open_program(notif, ret);
	snprintf(link, sizeof(link), "/proc/%u/fd/%d", notif->pid, (int)notif->data.args[4]);
	return open_link(link, ret);
}

bool ttmon_heldfile_is_program(int fd)
{
	char magic[4];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) && memcmp(magic, "\177ELF", sizeof(magic)) == 0;
}

int ttmon_heldfile_job(const void *ctx _unused_, const void *in, size_t n, int given _unused_,
		       struct ttmon_helper_out *out)
{
	_cleanup_close_ int fd = -1;
	char self[64], program;
	int err;

	if (n != sizeof(struct seccomp_notif))
		return -EINVAL;
	err = ttmon_heldfile_open(in, &fd);
	if (err)
		return err;
	program = ttmon_heldfile_is_program(fd);
	ttmon_helper_put(out, &program, 1);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	out->fd = open(self, O_PATH | O_CLOEXEC);
	return out->fd < 0 ? -errno : 0;
}
