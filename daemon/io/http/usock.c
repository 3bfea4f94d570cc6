// SPDX-License-Identifier: GPL-2.0-only
/*
 * usock.c: making and removing the socket file. Main thread, at start and end.
 *
 * Order: take a lock (two daemons that start at once would each take the other's socket for a stale
 * one), check what is at the path, bind under a umask that denies all access, set group and mode
 * through a descriptor of the file that was bound, listen. Until listen() a connect() is refused, so
 * no client ever connects under a mode that is not the final one.
 */
#include "daemon/io/http/usock.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "lib/os/log.h"

#define BACKLOG SOMAXCONN

#define NO_GROUP ((gid_t)-1)

static gid_t find_group(const char *name)
{
	struct group entry, *found = NULL;
	char buf[16384];

	if (!name)
		return NO_GROUP;
	return getgrnam_r(name, &entry, buf, sizeof(buf), &found) || !found ? NO_GROUP : found->gr_gid;
}

/*
 * The lock is a file of ours that no other user may open, since every user that may open a file can
 * lock it (a member of the group could lock the socket's directory). It is never removed: after a
 * removal two processes could lock the old file and a new one.
 */
static int take_lock(int dir_fd, const char *path, int *ret)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	_cleanup_close_ int fd = -1;
	char name[NAME_MAX + 1];
	struct stat st;

	if ((size_t)snprintf(name, sizeof(name), ".%s.lock", base) >= sizeof(name))
		return log_error_r(-ENAMETOOLONG, "cannot listen on %s: the name is too long", path);
	fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	/* In a directory that other users may write to, such as /tmp, it may be theirs. */
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077) {
		log_warn("%s: the lock %s beside it cannot be used, continuing without", path, name);
		return 0;
	}
	if (flock(fd, LOCK_EX | LOCK_NB))
		return log_error_r(-EADDRINUSE, "cannot listen on %s: another ttmond is just starting there", path);
	*ret = TAKE_FD(fd);
	return 0;
}

/* Opens the directory of path, or makes it. */
static int open_dir(const char *path, gid_t group, int *ret)
{
	_cleanup_free_ char *dir = strdup(path);
	_cleanup_close_ int fd = -1;
	bool made;
	char *slash;

	if (!dir)
		return log_error_r(-ENOMEM, "cannot listen on %s: out of memory", path);
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	made = slash && mkdir(dir, 0750) == 0;
	fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return log_error_r(-errno, "cannot listen on %s: %s: %m", path, dir);
	if (made && group != NO_GROUP && fchown(fd, (uid_t)-1, group))
		log_warn("cannot give %s to its group: %m, continuing", dir);
	*ret = TAKE_FD(fd);
	return 0;
}

static int new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* Checks that the path is free. A socket without a listener is removed. */
static int clear_path(const struct sockaddr_un *addr)
{
	_cleanup_close_ int fd = -1;
	const char *path = addr->sun_path;
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : log_error_r(-errno, "cannot listen on %s: %m", path);
	if (!S_ISSOCK(st.st_mode))
		return log_error_r(-EEXIST, "cannot listen on %s: it is there and no socket, not touching it", path);
	fd = new_socket();
	if (fd < 0)
		return log_error_r(fd, "cannot listen on %s: %s", path, strerror(-fd));
	/* EAGAIN means a full backlog, so there is a listener. */
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno == EAGAIN)
		return log_error_r(-EADDRINUSE, "cannot listen on %s: another ttmond serves it", path);
	if (errno == ENOENT)
		return 0;
	if (errno != ECONNREFUSED)
		return log_error_r(-errno, "cannot listen on %s: what is there cannot be asked: %m", path);
	if (unlink(path) && errno != ENOENT)
		return log_error_r(-errno, "cannot listen on %s: cannot remove the stale socket: %m", path);
	log_info("removed the stale socket %s", path);
	return 0;
}

/* Sets group and mode of the file that was bound, even if the path leads elsewhere by now. */
static int set_access(struct ttmon_usock *s, gid_t group, mode_t mode)
{
	_cleanup_close_ int fd = open(s->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char self[64];
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return -EEXIST;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	if (group != NO_GROUP && fchownat(fd, "", (uid_t)-1, group, AT_EMPTY_PATH))
		log_warn("cannot give %s to its group: %m, continuing", s->path);
	/* fchmod() refuses an O_PATH descriptor. */
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return chmod(self, mode) ? -errno : 0;
}

int ttmon_usock_open(const char *path, const char *group, mode_t mode, struct ttmon_usock *ret)
{
	_cleanup_(ttmon_usock_fini) struct ttmon_usock s = { .fd = -1 };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_cleanup_close_ int dir = -1, lock = -1;
	gid_t gid = find_group(group);
	mode_t mask;
	int err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return log_error_r(-ENAMETOOLONG, "cannot listen on %s: longer than %zu characters", path,
				   sizeof(addr.sun_path) - 1);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	err = open_dir(path, gid, &dir);
	if (!err)
		err = take_lock(dir, path, &lock);
	if (err)
		return err;
	err = clear_path(&addr);
	if (err)
		return err;
	s.fd = new_socket();
	if (s.fd < 0)
		return log_error_r(s.fd, "cannot listen on %s: %s", path, strerror(-s.fd));
	mask = umask(0777);
	err = bind(s.fd, (const struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	umask(mask);
	if (!err) {
		s.path = strdup(path);
		err = s.path ? set_access(&s, gid, mode) : -ENOMEM;
	}
	if (!err && listen(s.fd, BACKLOG))
		err = -errno;
	if (err)
		return log_error_r(err, "cannot listen on %s: %s", path, strerror(-err));
	s.no_group = group && gid == NO_GROUP;
	*ret = s;
	s = (struct ttmon_usock){ .fd = -1 };
	return 0;
}

void ttmon_usock_fini(struct ttmon_usock *s)
{
	struct stat st;

	if (s->path && lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->path);
	if (s->fd >= 0)
		close(s->fd);
	free(s->path);
	*s = (struct ttmon_usock){ .fd = -1 };
}
