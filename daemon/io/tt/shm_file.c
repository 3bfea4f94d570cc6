// SPDX-License-Identifier: GPL-2.0-only
/*
 * shm_file.c: opening, making and marking tt_device_<key>_memory files in a directory that every user
 * may write to. See shm_int.h.
 *
 * Nothing is created with O_CREAT under the name itself: a file without a name gets its owner, mode,
 * pages and content, then the name, and link(2) and renameat2(RENAME_NOREPLACE) fail if the name is
 * taken. An existing file is checked before it is opened (a pipe would block, a device may act) and
 * again afterwards. All pages are there from the start: a reader that maps the file of a full /dev/shm
 * never gets SIGBUS.
 *
 * Whether a process holds the file for writing is found through the kernel: a read lease is refused
 * while there is a writable open file behind the inode, and a mapping keeps its open file. tt-metal
 * maps the file as long as it is attached; one that was killed does not.
 */
#include "daemon/io/tt/shm_int.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#define OPEN_FLAGS (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static int check(const struct stat *st)
{
	if (S_ISLNK(st->st_mode))
		return -ELOOP;
	if (!S_ISREG(st->st_mode))
		return -EINVAL;
	return st->st_nlink == 1 ? 0 : -EMLINK;
}

/*
 * Users may mount a file system of their own over a file of theirs (fusermount), which answers when
 * it likes: -EXDEV.
 */
static int open_here(int dir_fd, const char *name, int flags)
{
	struct open_how how = { .flags = (uint64_t)flags, .resolve = RESOLVE_NO_XDEV };

	return (int)syscall(SYS_openat2, dir_fd, name, &how, sizeof(how));
}

int ttmon_ttshm_file_open(int dir_fd, const char *name, int *ret, struct stat *st)
{
	_cleanup_close_ int path = open_here(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd = -1;
	struct stat found;
	int err;

	if (path < 0 || fstat(path, &found))
		return -errno;
	err = check(&found);
	if (err)
		return err;
	fd = open_here(dir_fd, name, O_RDONLY | OPEN_FLAGS);
	if (fd < 0 || fstat(fd, &found))
		return -errno;
	err = check(&found);
	if (err)
		return err;
	*st = found;
	*ret = TAKE_FD(fd);
	return 0;
}

int ttmon_ttshm_file_writable(int dir_fd, const char *name, const struct stat *st, int *ret)
{
	_cleanup_close_ int fd = open_here(dir_fd, name, O_RDWR | OPEN_FLAGS);
	struct stat found;
	int err;

	if (fd < 0 || fstat(fd, &found))
		return -errno;
	err = check(&found);
	if (err)
		return err;
	if (found.st_dev != st->st_dev || found.st_ino != st->st_ino)
		return -ESTALE;
	*ret = TAKE_FD(fd);
	return 0;
}

static int fill(int fd, const union ttmon_ttshm_image *img, mode_t mode, uid_t uid, gid_t gid)
{
	size_t size = ttmon_tt_shm_layout(img->v1.version)->size;
	ssize_t r;

	if ((uid != geteuid() || gid != getegid()) && fchown(fd, uid, gid))
		return -errno;
	if (fchmod(fd, mode))
		return -errno;
	if (fallocate(fd, 0, 0, (off_t)size) && errno != EOPNOTSUPP)
		return -errno;
	r = pwrite(fd, img, size, 0);
	if (r != (ssize_t)size)
		return r < 0 ? -errno : -ENOSPC;
	return 0;
}

/*
 * For file systems without unnamed files (overlayfs before 6.3). Readers use only the beginning of a
 * name.
 */
static int create_named(int dir_fd, const char *name, const union ttmon_ttshm_image *img, mode_t mode, uid_t uid,
			gid_t gid, const struct ttmon_tt_shm_mark *self, struct stat *st)
{
	char temp[96];
	_cleanup_close_ int fd = -1;
	int err;

	snprintf(temp, sizeof(temp), ".ttmond-%u-%s", self->pid, name);
	unlinkat(dir_fd, temp, 0);
	fd = openat(dir_fd, temp, O_RDWR | O_CREAT | O_EXCL | OPEN_FLAGS, 0600);
	if (fd < 0)
		return -errno;
	err = fill(fd, img, mode, uid, gid);
	if (!err)
		ttmon_ttshm_file_set_xattr(fd, self);
	if (!err && fstat(fd, st))
		err = -errno;
	if (!err && renameat2(dir_fd, temp, dir_fd, name, RENAME_NOREPLACE))
		err = -errno;
	if (err)
		unlinkat(dir_fd, temp, 0);
	return err;
}

int ttmon_ttshm_file_create(int dir_fd, const char *name, const union ttmon_ttshm_image *img, mode_t mode, uid_t uid,
			    gid_t gid, const struct ttmon_tt_shm_mark *self, struct stat *st)
{
	_cleanup_close_ int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char link[64];
	int err;

	if (fd < 0)
		return errno == EOPNOTSUPP || errno == EISDIR
			       ? create_named(dir_fd, name, img, mode, uid, gid, self, st)
			       : -errno;
	err = fill(fd, img, mode, uid, gid);
	if (err)
		return err;
	ttmon_ttshm_file_set_xattr(fd, self);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (!linkat(AT_FDCWD, link, dir_fd, name, AT_SYMLINK_FOLLOW))
		return fstat(fd, st) ? -errno : 0;
	return errno == EEXIST ? -EEXIST : create_named(dir_fd, name, img, mode, uid, gid, self, st);
}

int ttmon_ttshm_file_read(int fd, union ttmon_ttshm_image *ret)
{
	union ttmon_ttshm_image img = { .words = { 0 } };

	if (pread(fd, &img, sizeof(img), 0) < 0)
		return -errno;
	*ret = img;
	return 0;
}

int ttmon_ttshm_file_held(int fd)
{
	/*
	 * A process that opens the file for writing meanwhile waits for us, and the kernel sends us a signal,
	 * which is ignored.
	 */
	if (fcntl(fd, F_SETSIG, SIGURG))
		return -errno;
	if (fcntl(fd, F_SETLEASE, F_RDLCK))
		return errno == EAGAIN ? 1 : -errno;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return 0;
}

bool ttmon_ttshm_file_xattr(int fd, struct ttmon_tt_shm_mark *ret)
{
	struct ttmon_tt_shm_mark mark;

	if (fgetxattr(fd, TTMON_TT_SHM_XATTR, &mark, sizeof(mark)) != (ssize_t)sizeof(mark) ||
	    mark.magic != TTMON_TT_SHM_MAGIC)
		return false;
	*ret = mark;
	return true;
}

void ttmon_ttshm_file_set_xattr(int fd, const struct ttmon_tt_shm_mark *self)
{
	/* Without attributes only the mark in the file is left. */
	if (fsetxattr(fd, TTMON_TT_SHM_XATTR, self, sizeof(*self), 0))
		return;
}

bool ttmon_ttshm_file_xattrs_work(int dir_fd)
{
	_cleanup_close_ int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 && !fsetxattr(fd, TTMON_TT_SHM_XATTR, "", 0, 0);
}
