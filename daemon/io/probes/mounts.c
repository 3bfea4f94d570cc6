// SPDX-License-Identifier: GPL-2.0-only
/*
 * mounts.c: see mounts.h. A mount is known by its id (statx(2), first field of /proc/PID/mountinfo),
 * which is no other mount's as long as a file is open through it. Cold thread.
 */
#include "daemon/io/probes/mounts.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"

#define MAX_NAMESPACES 1024 /* with more of them no mount is said to be gone */

struct mount {
	uint64_t id;
	unsigned int major, minor;
};

static bool mount_of(int fd, struct mount *ret)
{
	struct statx sx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &sx) || !(sx.stx_mask & STATX_MNT_ID))
		return false;
	*ret = (struct mount){ sx.stx_mnt_id, sx.stx_dev_major, sx.stx_dev_minor };
	return true;
}

/* 0: the process is gone. */
static uint64_t namespace_of(const char *pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.20s/ns/mnt", pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* Does that process see the mount, or another one of the same file system? -1: it cannot be read. */
static int sees(const char *pid, const struct mount *m)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	char path[64];
	int found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/mountinfo", pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (!found && getline(&line, &size, f) > 0) {
		unsigned int major, minor;
		unsigned long long id;

		found = sscanf(line, "%llu %*u %u:%u ", &id, &major, &minor) == 3 &&
			(id == m->id || (major == m->major && minor == m->minor));
	}
	fclose(f);
	return found;
}

/* In the namespaces of all processes, ours first. */
static bool search(const struct mount *m, struct ttmon_mount_at *at)
{
	uint64_t seen[MAX_NAMESPACES];
	struct dirent *e;
	bool there;
	size_t n = 1, i;
	DIR *dir;

	seen[0] = namespace_of("self");
	if (sees("self", m)) {
		*at = (struct ttmon_mount_at){ (uint32_t)getpid(), seen[0] };
		return true;
	}
	dir = opendir("/proc");
	there = !dir;
	while (!there && (e = readdir(dir))) {
		uint64_t ns = isdigit((unsigned char)e->d_name[0]) ? namespace_of(e->d_name) : 0;
		int found;

		for (i = 0; i < n && seen[i] != ns;)
			i++;
		if (!ns || i < n)
			continue;
		found = sees(e->d_name, m);
		if (found > 0)
			*at = (struct ttmon_mount_at){ (uint32_t)strtoul(e->d_name, NULL, 10), ns };
		/* One that has ended meanwhile says nothing of its namespace; of one that lives it is not known. */
		there = found > 0 || (found < 0 && namespace_of(e->d_name) == ns) || n == MAX_NAMESPACES;
		if (!there && !found)
			seen[n++] = ns;
	}
	if (dir)
		closedir(dir);
	return there;
}

bool ttmon_mount_is_there(int fd, struct ttmon_mount_at *at)
{
	char pid[16];
	struct mount m;

	if (!mount_of(fd, &m))
		return true;
	snprintf(pid, sizeof(pid), "%u", at->pid);
	if (at->pid && namespace_of(pid) == at->ns)
		return true;
	return search(&m, at);
}
