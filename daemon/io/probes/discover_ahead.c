// SPDX-License-Identifier: GPL-2.0-only
/*
 * discover_ahead.c: libraries that are probed before any process maps them (ttmon_discover_ahead()). A library that a service meets for the first time when
 * a program maps it misses the first 10 to 20 ms of that program and more where the host is busy; one that lies under the usual paths, of this host or of a container that
 * runs, misses nothing. Runs in the cold thread.
 *
 * Paths are resolved within the root they are looked for in (openat2, RESOLVE_IN_ROOT): a link in a container leads nowhere else. A mount
 * namespace that some user made by themselves (its processes are in another user namespace) is left alone: a file system of theirs could let
 * us wait. All is bounded; what is not found here is found when it is mapped.
 */
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/openat2.h>
#include <search.h>
#include <ctype.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "daemon/io/probes/discover_int.h"
#include "lib/os/log.h"

#define MAX_AHEAD   64	  /* libraries that nobody has mapped yet, in all */
#define MAX_ROOTS   64	  /* mount namespaces beside ours */
#define MAX_DIRS    512	  /* of one root */
#define MAX_ENTRIES 20000 /* of one folder */

/* Names by which programs are linked with CUDA's runtime and driver (docs.nvidia.com, the soname of each), and tt-metal's library. */
static const char *const names[] = { "libcudart*.so*", "libcuda.so*", "libtt_metal*.so*" };

/* Where distributions, NVIDIA's own packages, its container toolkit, WSL, conda and pip put them. */
static const char *const dirs[] = {
	"usr/lib/x86_64-linux-gnu",
	"usr/lib/aarch64-linux-gnu",
	"usr/lib64",
	"usr/lib",
	"usr/local/lib",
	"usr/local/cuda*/lib64",
	"usr/local/cuda*/lib",
	"usr/local/cuda*/targets/*/lib",
	"usr/local/cuda*/compat",
	"usr/local/nvidia/lib64",
	"usr/lib/wsl/lib",
	"opt/conda/lib",
	"opt/tenstorrent/lib",
	"usr/lib/python3*/dist-packages/nvidia/*/lib",
	"usr/local/lib/python3*/*-packages/nvidia/*/lib",
	"usr/local/lib/python3*/*-packages/torch/lib",
	"usr/local/lib/python3*/*-packages/ttnn/build/lib",
	"opt/*/lib/python3*/site-packages/nvidia/*/lib",
	"opt/*/lib/python3*/site-packages/torch/lib",
};

struct walk {
	struct ttmon_discover *d;
	int root;
	unsigned int dirs;
};

static int open_in(int root, const char *path, int flags)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* One file that has such a name: probed, unless it is known. */
static void take(struct walk *w, const char *path)
{
	_cleanup_close_ int fd = open_in(w->root, path, O_PATH);
	char self[64], shown[PATH_MAX + 1];
	struct object *o;
	struct stat st;
	int file;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || ttmon_object_known(w->d, &st))
		return;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	file = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file < 0)
		return;
	snprintf(shown, sizeof(shown), "/%s", path);
	o = ttmon_object_of_fd(w->d, file, shown, 0, false);
	if (!o || !o->probed)
		return;
	w->d->nr_ahead++;
	log_debug("%s: probed before a program has it mapped", shown);
}

bool ttmon_object_is_named(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!fnmatch(names[i], name, 0))
			return true;
	return false;
}

/* at: what is resolved already, "" or "usr/lib/"; rest: components, each a pattern, "" when all are. */
static void walk(struct walk *w, const char *at, const char *rest)
{
	size_t len = strcspn(rest, "/");
	char part[NAME_MAX + 1], path[PATH_MAX];
	struct dirent *e;
	DIR *dir;
	int fd;

	if (len >= sizeof(part) || w->dirs >= MAX_DIRS)
		return;
	memcpy(part, rest, len);
	part[len] = '\0';
	rest += len + (rest[len] == '/');
	if (len && !strpbrk(part, "*?[")) {
		if (snprintf(path, sizeof(path), "%s%s/", at, part) < (int)sizeof(path))
			walk(w, path, rest);
		return;
	}
	w->dirs++;
	fd = open_in(w->root, *at ? at : ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir && fd >= 0)
		close(fd);
	for (unsigned int i = 0; dir && i < MAX_ENTRIES && (e = readdir(dir)); i++) {
		bool more = len != 0;

		if (e->d_name[0] == '.' || w->d->nr_ahead >= MAX_AHEAD ||
		    (more ? fnmatch(part, e->d_name, 0) : !ttmon_object_is_named(e->d_name)))
			continue;
		if (snprintf(path, sizeof(path), "%s%s%s", at, e->d_name, more ? "/" : "") >= (int)sizeof(path))
			continue;
		if (more)
			walk(w, path, rest);
		else
			take(w, path);
	}
	if (dir)
		closedir(dir);
}

static void look_in(struct ttmon_discover *d, const char *root, bool own)
{
	struct walk w = { .d = d, .root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) };

	if (w.root < 0)
		return;
	for (size_t i = 0; own && i < d->cfg.nr_ahead; i++)
		walk(&w, "", d->cfg.ahead[i] + strspn(d->cfg.ahead[i], "/"));
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		walk(&w, "", dirs[i]);
	close(w.root);
}

static bool is_ours(const char *pid, const char *ns, ino_t *ret)
{
	char path[64];
	struct stat st, own;

	snprintf(path, sizeof(path), "/proc/%.20s/ns/%s", pid, ns);
	if (stat(path, &st))
		return true;
	*ret = st.st_ino;
	snprintf(path, sizeof(path), "/proc/self/ns/%s", ns);
	return !stat(path, &own) && own.st_ino == st.st_ino;
}

/* Containers: one process of each mount namespace leads to its files. */
static void look_in_containers(struct ttmon_discover *d)
{
	ino_t seen[MAX_ROOTS], mnt, user;
	DIR *dir = opendir("/proc");
	size_t n = 0, i;
	struct dirent *e;
	char root[64];

	while (dir && n < MAX_ROOTS && (e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]) || is_ours(e->d_name, "mnt", &mnt) ||
		    !is_ours(e->d_name, "user", &user))
			continue;
		for (i = 0; i < n && seen[i] != mnt;)
			i++;
		if (i < n)
			continue;
		seen[n++] = mnt;
		snprintf(root, sizeof(root), "/proc/%.20s/root", e->d_name);
		look_in(d, root, false);
	}
	if (dir)
		closedir(dir);
}

void ttmon_discover_ahead(struct ttmon_discover *d)
{
	if (!d->cfg.look_ahead || !d->cfg.all)
		return;
	look_in(d, "/", true);
	look_in_containers(d);
}
