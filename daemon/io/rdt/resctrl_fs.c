// SPDX-License-Identifier: GPL-2.0-only
/*
 * resctrl_fs.c: folders and files of resctrl. Cold thread.
 *
 *	ROOT/[CONTROL GROUP/]mon_groups/ttmon-DAEMON.START-TGID.START
 *
 * DAEMON and its START (field 22 of /proc/PID/stat, clock ticks since boot) distinguish the groups of
 * a daemon that is gone from those of a running one. A daemon in another pid namespace looks like one
 * that is gone. Removing a folder gives its tasks back to the control group and its RMID to the
 * kernel's limbo.
 *
 * Each path is resolved below the root by openat2(2) with no symbolic link in any place of it,
 * whatever the root is.
 */
#include "daemon/io/rdt/resctrl_int.h"
#include "lib/os/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#define RESCTRL_MAGIC 0x7655821 /* linux/magic.h RDTGROUP_SUPER_MAGIC */
#define MAX_GROUPS    4096	/* most groups that are examined */

int ttmon_resctrl_open(int dir, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int ttmon_resctrl_open_root(const struct ttmon_resctrl *r)
{
	_cleanup_close_ int fd = open(r->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0 || fstatfs(fd, &fs))
		return -errno;
	if (r->need_magic ? fs.f_type != RESCTRL_MAGIC : faccessat(fd, "info", F_OK, 0) != 0)
		return -ENOENT;
	return TAKE_FD(fd);
}

void ttmon_resctrl_path(const struct resctrl_group *g, const char *file, char *buf, size_t n)
{
	snprintf(buf, n, "%s%smon_groups/%s%s%s", g->ctrl, *g->ctrl ? "/" : "", g->name, *file ? "/" : "", file);
}

ssize_t ttmon_resctrl_text(int dir, const char *path, char *buf, size_t n)
{
	_cleanup_close_ int fd = ttmon_resctrl_open(dir, path, O_RDONLY);
	ssize_t len;

	if (fd < 0)
		return fd;
	len = read(fd, buf, n);
	if (len < 0)
		return -errno;
	if ((size_t)len == n)
		return -EFBIG;
	if (memchr(buf, '\0', (size_t)len))
		return -EINVAL;
	if (len && buf[len - 1] == '\n')
		len--;
	buf[len] = '\0';
	return len;
}

int ttmon_resctrl_prefix(struct ttmon_resctrl *r)
{
	struct ttmon_proc_stat st;
	int err = ttmon_proc_read_stat(NULL, (uint32_t)getpid(), &st);

	if (err)
		return err;
	snprintf(r->prefix, sizeof(r->prefix), "ttmon-%d.%" PRIu64 "-", (int)getpid(), st.start);
	return 0;
}

/* "ttmon-12.3456-78.9", completely: a group of a ttmond. */
static bool parse_name(const char *name, uint32_t *pid, uint64_t *start)
{
	char text[RESCTRL_NAME];
	uint64_t of_start;
	uint32_t of;

	if (sscanf(name, "ttmon-%10" SCNu32 ".%20" SCNu64 "-%10" SCNu32 ".%20" SCNu64, pid, start, &of, &of_start) != 4)
		return false;
	snprintf(text, sizeof(text), "ttmon-%" PRIu32 ".%" PRIu64 "-%" PRIu32 ".%" PRIu64, *pid, *start, of, of_start);
	return !strcmp(name, text);
}

size_t ttmon_resctrl_folders(int dir, const char *path, char ***ret)
{
	int fd = ttmon_resctrl_open(dir, path, O_RDONLY | O_DIRECTORY);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	char **names = NULL;
	struct dirent *e;
	size_t n = 0;

	*ret = NULL;
	if (!d) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	names = calloc(MAX_GROUPS, sizeof(*names));
	while (names && n < MAX_GROUPS && (e = readdir(d))) {
		struct stat st;

		if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISDIR(st.st_mode))
			continue;
		names[n] = strdup(e->d_name);
		if (!names[n])
			break;
		n++;
	}
	closedir(d);
	*ret = names;
	return n;
}

void ttmon_resctrl_free_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

void ttmon_resctrl_each_ctrl(const struct ttmon_resctrl *r, int root, ttmon_resctrl_ctrl_fn fn, void *ctx)
{
	char **names = NULL;
	size_t n = ttmon_resctrl_folders(root, ".", &names);

	fn(r, root, "", ctx);
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], "info") && strcmp(names[i], "mon_groups") && strcmp(names[i], "mon_data"))
			fn(r, root, names[i], ctx);
	ttmon_resctrl_free_names(names, n);
}

static void mon_groups_path(const char *ctrl, char *buf, size_t n)
{
	snprintf(buf, n, "%s%smon_groups", ctrl, *ctrl ? "/" : "");
}

static void clean_ctrl(const struct ttmon_resctrl *r, int root, const char *ctrl, void *ctx)
{
	char path[RESCTRL_PATH], **names = NULL;
	_cleanup_close_ int dir = -1;
	size_t n;

	(void)ctx;
	mon_groups_path(ctrl, path, sizeof(path));
	n = ttmon_resctrl_folders(root, path, &names);
	dir = ttmon_resctrl_open(root, path, O_RDONLY | O_DIRECTORY);
	for (size_t i = 0; dir >= 0 && i < n; i++) {
		struct ttmon_proc_stat st;
		uint64_t start;
		uint32_t pid;

		if (!parse_name(names[i], &pid, &start))
			continue;
		/* A group with our own name is from an earlier process with this pid and start. */
		if (strncmp(names[i], r->prefix, strlen(r->prefix)) && !ttmon_proc_read_stat(r->proc_root, pid, &st) &&
		    st.start == start)
			continue;
		(void)unlinkat(dir, names[i], AT_REMOVEDIR);
	}
	ttmon_resctrl_free_names(names, n);
}

void ttmon_resctrl_clean(struct ttmon_resctrl *r, int root)
{
	ttmon_resctrl_each_ctrl(r, root, clean_ctrl, NULL);
}

int ttmon_resctrl_make(struct ttmon_resctrl *r, int root, const struct resctrl_group *g)
{
	_cleanup_close_ int dir = -1;
	char path[RESCTRL_PATH];

	mon_groups_path(g->ctrl, path, sizeof(path));
	dir = ttmon_resctrl_open(root, path, O_RDONLY | O_DIRECTORY);
	if (dir < 0)
		return dir;
	if (!mkdirat(dir, g->name, 0755))
		return 0;
	if (errno != EEXIST)
		return -errno;
	/* It has our name, but we do not know it: it is made again. */
	ttmon_resctrl_remove(r, root, g);
	return mkdirat(dir, g->name, 0755) ? -errno : 0;
}

void ttmon_resctrl_remove(struct ttmon_resctrl *r, int root, const struct resctrl_group *g)
{
	_cleanup_close_ int dir = -1;
	char path[RESCTRL_PATH];

	mon_groups_path(g->ctrl, path, sizeof(path));
	dir = ttmon_resctrl_open(root, path, O_RDONLY | O_DIRECTORY);
	if (dir >= 0 && unlinkat(dir, g->name, AT_REMOVEDIR) && errno != ENOENT)
		snprintf(r->failed, sizeof(r->failed), "group %s could not be removed: %s", g->name, strerror(errno));
}
