// SPDX-License-Identifier: GPL-2.0-only
/* tracefs.c: see tracefs.h. */
#define _GNU_SOURCE
#include "lib/os/tracefs.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

/* Values of linux/mount.h, which conflicts with sys/mount.h of glibc before 2.36. */
#define CONFIG_CMD_CREATE 6

static int open_mounted(const char *path, int *ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs st;

	if (fd < 0)
		return -errno;
	/* The folder also exists, empty, if nothing is mounted on it. */
	if (fstatfs(fd, &st) || (unsigned long)st.f_type != TRACEFS_MAGIC)
		return -ENOENT;
	*ret = TAKE_FD(fd);
	return 0;
}

static int mount_privately(int *ret)
{
	_cleanup_close_ int fs = (int)syscall(SYS_fsopen, "tracefs", 1 /* FSOPEN_CLOEXEC */), fd = -1;

	if (fs < 0)
		return errno == ENODEV ? -ENOENT : -errno;
	if (syscall(SYS_fsconfig, fs, CONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	fd = (int)syscall(SYS_fsmount, fs, 1 /* FSMOUNT_CLOEXEC */, 0);
	if (fd < 0)
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}

int ttmon_tracefs_open(int *ret)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		err = open_mounted(places[i], ret);
		if (err != -ENOENT)
			return err;
	}
	return mount_privately(ret);
}

int ttmon_tracefs_event_id(int dir_fd, const char *event, uint64_t *ret)
{
	char path[256], buf[32] = "", *end;
	_cleanup_close_ int fd = -1;
	unsigned long long id;

	if ((size_t)snprintf(path, sizeof(path), "events/%s/id", event) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, buf, sizeof(buf) - 1) < 0)
		return -errno;
	id = strtoull(buf, &end, 10);
	if (end == buf)
		return -EINVAL;
	*ret = id;
	return 0;
}
