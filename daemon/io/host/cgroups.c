// SPDX-License-Identifier: GPL-2.0-only
/*
 * cgroups.c: see cgroups.h. Cold thread. The handle that finds a kernfs node is its id (FILEID_KERNFS,
 * since Linux 5.5); what /proc/self/fd then says of it begins with the mount point. In a mount of a
 * part of the tree (a container's) paths are of that part, and a cgroup outside of it has none.
 */
#include "daemon/io/host/cgroups.h"
#include "lib/base/search.h"
#include "lib/base/grow.h"

#include <fcntl.h>
#include <limits.h>

#define KERNFS_HANDLE 0xfe /* linux/exportfs.h FILEID_KERNFS */
#define MAX_KNOWN     8192
#define ASK_AGAIN     64 /* after so many requests for a path that was not found, look again */
#define GONE	      " (deleted)"

struct known {
	uint64_t id;
	char *path; /* NULL: not found */
	uint32_t asked;
	bool wanted; /* requested since the last sweep */
};

struct ttmon_cgroups {
	int fd;		      /* of the mount point, -1: there is no cgroup2 */
	char mount[PATH_MAX]; /* as /proc/self/fd says it */
	struct known *known;  /* by id */
	size_t nr, cap;
	char *unkept; /* a path without room in the table */
};

/* The path of a descriptor, in buf (PATH_MAX bytes); false: it has none, or a longer one. */
static bool path_of(int fd, char *buf)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, buf, PATH_MAX);
	if (n <= 0 || n == PATH_MAX)
		return false;
	buf[n] = '\0';
	return true;
}

/* "\040" is a blank: in place. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' &&
		    s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/*
 * How much of the tree a mount of cgroup2 shows, by its root as this cgroup namespace sees it: 3: more
 * than the namespace ("/.."), 2: all of it, 1: a part, 0: it is another file system. The mount point,
 * as it is written there, is in *at.
 */
static int shows(char *line, char **at)
{
	char *field[5], *type = strstr(line, " - ");

	if (!type || strncmp(type, " - cgroup2 ", 11) != 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(field); i++)
		if (!(field[i] = strsep(&line, " ")))
			return 0;
	*at = field[4];
	if (!strncmp(field[3], "/..", 3))
		return 3;
	return strcmp(field[3], "/") ? 1 : 2;
}

/* Opens the mount of cgroup2 that shows the most; -1: there is none. */
static int open_mount(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	_cleanup_close_ int fd = -1;
	size_t cap = 0;
	int best = 0;

	while (f && getline(&line, &cap, f) > 0) {
		char *at;
		int how = shows(line, &at);

		if (how <= best)
			continue;
		unescape(at);
		ttmon_closep(&fd);
		fd = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		best = fd < 0 ? 0 : how;
	}
	return TAKE_FD(fd);
}

int ttmon_cgroups_new(const char *root, struct ttmon_cgroups **ret)
{
	struct ttmon_cgroups *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->fd = root ? open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : open_mount();
	if (c->fd >= 0 && !path_of(c->fd, c->mount)) {
		close(c->fd);
		c->fd = -1;
	}
	*ret = c;
	return 0;
}

void ttmon_cgroups_free(struct ttmon_cgroups *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nr; i++)
		free(c->known[i].path);
	free(c->known);
	free(c->unkept);
	ttmon_closep(&c->fd);
	free(c);
}

/* NULL: it no longer exists, is not below the mount, or access is denied. */
static char *look(const struct ttmon_cgroups *c, uint64_t id)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + sizeof(id)];
	} handle = { .h = { .handle_bytes = sizeof(id), .handle_type = KERNFS_HANDLE } };
	size_t mount = strlen(c->mount), n;
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];

	memcpy(handle.room + sizeof(struct file_handle), &id, sizeof(id));
	fd = open_by_handle_at(c->fd, &handle.h, O_PATH | O_CLOEXEC);
	if (fd < 0 || !path_of(fd, path) || strncmp(path, c->mount, mount) != 0 || (path[mount] && path[mount] != '/'))
		return NULL;
	n = strlen(path);
	/* It was removed while we looked. */
	if (n >= strlen(GONE) && !strcmp(path + n - strlen(GONE), GONE))
		path[n - strlen(GONE)] = '\0';
	return strdup(path[mount] ? path + mount : "/");
}

/* The index of the id, or where it must be inserted. */
static size_t place(const struct ttmon_cgroups *c, uint64_t id)
{
	size_t lo = TTMON_SEARCH((size_t)0, c->nr, mid, c->known[mid].id < id);
	return lo;
}

static struct known *insert(struct ttmon_cgroups *c, size_t at, uint64_t id)
{
	if (c->nr == MAX_KNOWN || TTMON_GROW(c->known, c->cap, c->nr + 1, 64))
		return NULL;
	memmove(&c->known[at + 1], &c->known[at], (c->nr++ - at) * sizeof(*c->known));
	c->known[at] = (struct known){ .id = id };
	return &c->known[at];
}

const char *ttmon_cgroups_path(struct ttmon_cgroups *c, uint64_t id)
{
	struct known *k;
	size_t at;

	if (c->fd < 0)
		return "";
	at = place(c, id);
	k = at < c->nr && c->known[at].id == id ? &c->known[at] : insert(c, at, id);
	if (!k) {
		free(c->unkept);
		c->unkept = look(c, id);
		return c->unkept ? c->unkept : "";
	}
	k->wanted = true;
	if (!k->path && k->asked++ % ASK_AGAIN == 0)
		k->path = look(c, id);
	return k->path ? k->path : "";
}

void ttmon_cgroups_sweep(struct ttmon_cgroups *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->nr; i++) {
		struct known *k = &c->known[i];

		if (!k->wanted) {
			free(k->path);
			continue;
		}
		k->wanted = false;
		c->known[kept++] = *k;
	}
	c->nr = kept;
}
