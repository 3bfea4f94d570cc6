/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * resctrl_tree.h: a resctrl file system and a /proc made of plain files, for unit tests, and what the
 * kernel would do with them: mkdirat(2), unlinkat(2) and write(2) of the program are ours. A folder
 * made in mon_groups gets the files of a group and an RMID, or fails for want of one; removing it
 * takes its files along, as kernfs does; task lists keep what was written into them.
 */
#ifndef TTMON_TEST_RESCTRL_TREE_H
#define TTMON_TEST_RESCTRL_TREE_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char tree[64];

static struct {
	bool debug;	 /* mon_hw_id is there */
	bool no_places;	 /* no cpu_resctrl_groups */
	int mkdir_err;	 /* fails so */
	uint32_t nr_ids; /* RMIDs 1..nr_ids-1 */
	uint8_t used[4096];
	const char *id_text; /* mon_hw_id says this */
	unsigned int mkdirs, rmdirs, moves;
	uint32_t gone_tid, refused_tid; /* ESRCH; EINVAL */
	uint32_t born_of, born;		/* while born_of is moved, a thread of its process comes to be */
	unsigned int born_times;
} fake;

static void tree_die(const char *what)
{
	perror(what);
	abort();
}

static const char *tree_path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static const char *tree_path(const char *fmt, ...)
{
	static char path[4][PATH_MAX];
	static unsigned int turn;
	char *p = path[turn++ % 4];
	size_t n = (size_t)snprintf(p, PATH_MAX, "%s/", tree);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p + n, PATH_MAX - n, fmt, ap);
	va_end(ap);
	return p;
}

static inline bool tree_has(const char *path)
{
	return !access(path, F_OK);
}

static void tree_folder(const char *path)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s", path);
	for (char *s = dir + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		if (mkdir(dir, 0777) && errno != EEXIST)
			tree_die(dir);
	}
	if (mkdir(dir, 0777) && errno != EEXIST)
		tree_die(dir);
}

/* Text NULL: no such file. */
static void tree_text(const char *path, const char *text)
{
	char dir[PATH_MAX];
	FILE *f;

	if (!text) {
		if (unlink(path) && errno != ENOENT)
			tree_die(path);
		return;
	}
	snprintf(dir, sizeof(dir), "%s", path);
	*strrchr(dir, '/') = '\0';
	tree_folder(dir);
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		tree_die(path);
}

static int tree_remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static void tree_remove(const char *path)
{
	if (nftw(path, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS) && errno != ENOENT)
		tree_die(path);
}

/* What a group folder holds. */
static void tree_group(const char *folder, uint32_t id)
{
	static const char *const files[] = { "llc_occupancy", "mbm_total_bytes", "mbm_local_bytes" };
	char path[PATH_MAX], text[32];

	snprintf(path, sizeof(path), "%s/tasks", folder);
	tree_text(path, "");
	snprintf(text, sizeof(text), "%u\n", id);
	snprintf(path, sizeof(path), "%s/mon_hw_id", folder);
	tree_text(path, fake.debug ? (fake.id_text && id ? fake.id_text : text) : NULL);
	for (unsigned int domain = 0; domain < 2; domain++) {
		for (unsigned int i = 0; i < 3; i++) {
			snprintf(path, sizeof(path), "%s/mon_data/mon_L3_%02u/%s", folder, domain, files[i]);
			tree_text(path, "0\n");
		}
	}
}

/* A control group, "": the root. */
static void tree_ctrl(const char *name)
{
	tree_folder(tree_path("r%s%s/mon_groups", *name ? "/" : "", name));
	tree_group(tree_path("r%s%s", *name ? "/" : "", name), 0);
}

/*
 * A process and its threads, the last one 0, in a control group ("/": the default one) and a
 * monitoring group.
 */
static void tree_proc(uint32_t tgid, const char *ctrl, const char *mon, ...)
{
	char text[600];
	uint32_t tid;
	va_list ap;

	snprintf(text, sizeof(text), "res:%s\nmon:%s\n", ctrl, mon);
	va_start(ap, mon);
	while ((tid = va_arg(ap, uint32_t))) {
		tree_folder(tree_path("p/%u/task/%u", tgid, tid));
		if (!fake.no_places)
			tree_text(tree_path("p/%u/task/%u/cpu_resctrl_groups", tgid, tid), text);
	}
	va_end(ap);
	snprintf(text, sizeof(text), "prog %u\n", tgid);
	tree_text(tree_path("p/%u/comm", tgid), text);
}

static inline void tree_gone(uint32_t tgid)
{
	tree_remove(tree_path("p/%u", tgid));
}

/* Field 22 is start. The name is a nasty one. */
static inline void tree_stat(uint32_t pid, uint64_t start)
{
	char text[256];

	snprintf(text, sizeof(text), "%u (a) R 1 (b) S 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 %llu 23 24\n", pid,
		 (unsigned long long)start);
	tree_text(tree_path("p/%u/stat", pid), text);
}

static inline void tree_text_of(const char *path, char *buf, size_t n)
{
	FILE *f = fopen(path, "r");

	buf[f ? fread(buf, 1, n - 1, f) : 0] = '\0';
	if (f)
		fclose(f);
}

static bool fd_path(int fd, const char *end, char buf[static PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, buf, PATH_MAX - 1);
	if (n < 0)
		return false;
	buf[n] = '\0';
	return *tree && !strncmp(buf, tree, strlen(tree)) && (size_t)n > strlen(end) &&
	       !strcmp(buf + n - strlen(end), end);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
	char path[PATH_MAX], folder[PATH_MAX + 256], file[PATH_MAX + 512];
	uint32_t id = 1;

	if (!fd_path(dir, "/mon_groups", path))
		return (int)syscall(SYS_mkdirat, dir, name, mode);
	fake.mkdirs++;
	snprintf(folder, sizeof(folder), "%s/%s", path, name);
	if (tree_has(folder) || fake.mkdir_err) {
		errno = tree_has(folder) ? EEXIST : fake.mkdir_err;
		return -1;
	}
	while (id < fake.nr_ids && fake.used[id])
		id++;
	if (id == fake.nr_ids) {
		errno = ENOSPC;
		return -1;
	}
	if (syscall(SYS_mkdirat, dir, name, mode))
		return -1;
	fake.used[id] = 1;
	tree_group(folder, id);
	snprintf(file, sizeof(file), "%s/.id%u", folder, id);
	tree_text(file, "");
	return 0;
}

static inline void free_id(const char *folder)
{
	for (uint32_t id = 1; id < fake.nr_ids; id++) {
		char path[PATH_MAX + 512];

		snprintf(path, sizeof(path), "%s/.id%u", folder, id);
		if (tree_has(path))
			fake.used[id] = 0;
	}
}

int unlinkat(int dir, const char *name, int flags)
{
	char path[PATH_MAX], folder[PATH_MAX + 256];

	if (flags != AT_REMOVEDIR || !fd_path(dir, "/mon_groups", path))
		return (int)syscall(SYS_unlinkat, dir, name, flags);
	snprintf(folder, sizeof(folder), "%s/%s", path, name);
	if (!tree_has(folder)) {
		errno = ENOENT;
		return -1;
	}
	fake.rmdirs++;
	free_id(folder);
	tree_remove(folder);
	return 0;
}

ssize_t write(int fd, const void *buf, size_t n)
{
	char path[PATH_MAX], text[32];
	uint32_t tid;

	if (n >= sizeof(text) || !fd_path(fd, "/tasks", path))
		return syscall(SYS_write, fd, buf, n);
	memcpy(text, buf, n);
	text[n] = '\0';
	tid = (uint32_t)atoi(text);
	fake.moves++;
	if (tid == fake.born_of && fake.born_times) {
		/* Its maker is the thread that was born before it. */
		fake.born_times--;
		fake.born_of = fake.born++;
		tree_folder(tree_path("p/%u/task/%u", (uint32_t)100, fake.born_of));
		tree_text(tree_path("p/%u/task/%u/cpu_resctrl_groups", (uint32_t)100, fake.born_of), "res:/\nmon:\n");
	}
	if (tid && (tid == fake.gone_tid || tid == fake.refused_tid)) {
		errno = tid == fake.gone_tid ? ESRCH : EINVAL;
		return -1;
	}
	return syscall(SYS_write, fd, buf, n);
}

static inline int tree_setup(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.debug = true;
	fake.nr_ids = 32;
	/* Thousands of small files: in memory where that can be had. */
	snprintf(tree, sizeof(tree), "/dev/shm/ttmon-resctrl-XXXXXX");
	if (!mkdtemp(tree)) {
		snprintf(tree, sizeof(tree), "/tmp/ttmon-resctrl-XXXXXX");
		if (!mkdtemp(tree))
			tree_die(tree);
	}
	tree_folder(tree_path("p"));
	tree_ctrl("");
	tree_text(tree_path("r/info/L3_MON/num_rmids"), "32\n");
	tree_text(tree_path("r/info/L3_MON/mon_features"), "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes\n");
	return 0;
}

static inline int tree_teardown(void **state)
{
	(void)state;
	tree_remove(tree);
	tree[0] = '\0';
	return 0;
}

#endif
