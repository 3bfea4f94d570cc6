// SPDX-License-Identifier: GPL-2.0-only
/* proc.c: see proc.h. */
#include "lib/os/proc.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

ssize_t ttmon_proc_read_file(const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t len = 0;

	if (fd < 0)
		return -errno;
	while (len < size - 1) {
		ssize_t n = read(fd, buf + len, size - 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		len += (size_t)n;
	}
	buf[len] = '\0';
	return (ssize_t)len;
}

ssize_t ttmon_proc_read(const char *root, uint32_t pid, const char *name, char *buf, size_t size)
{
	char path[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%u/%s", root ? root : "/proc", pid, name);
	n = ttmon_proc_read_file(path, buf, size);
	return n == -ENOENT ? -ESRCH : n;
}

bool ttmon_proc_number(const char *text, const char *name, int base, uint64_t *ret)
{
	size_t len = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		char *end;
		unsigned long long v;

		line += *line == '\n';
		if (strncmp(line, name, len) != 0 || !strchr(" \t", line[len]))
			continue;
		line += len + strspn(line + len, " \t");
		errno = 0;
		v = strtoull(line, &end, base);
		if (errno || end == line || *line == '-' || *line == '+')
			return false;
		*ret = v;
		return true;
	}
	return false;
}

bool ttmon_proc_status(uint32_t pid, const char *name, int base, uint64_t *ret)
{
	char text[8192];

	return ttmon_proc_read(NULL, pid, "status", text, sizeof(text)) > 0 && ttmon_proc_number(text, name, base, ret);
}

int ttmon_proc_read_stat(const char *root, uint32_t pid, struct ttmon_proc_stat *ret)
{
	struct ttmon_proc_stat st = { 0 };
	unsigned long long start;
	char buf[1024], *p;

	if (ttmon_proc_read(root, pid, "stat", buf, sizeof(buf)) <= 0)
		return -ESRCH;
	/* The name in parentheses may contain parentheses, so it ends at the last one. Fields 3, 9 and 22. */
	p = strrchr(buf, ')');
	if (!p ||
	    sscanf(p + 1, " %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &st.state,
		   &st.flags, &start) != 3 ||
	    !start)
		return -EINVAL;
	st.start = start;
	*ret = st;
	return 0;
}

uint64_t ttmon_proc_start(uint32_t pid)
{
	struct ttmon_proc_stat st;

	return ttmon_proc_read_stat(NULL, pid, &st) ? 0 : st.start;
}

uint64_t ttmon_proc_alive(uint32_t pid)
{
	struct ttmon_proc_stat st;

	return ttmon_proc_read_stat(NULL, pid, &st) || st.state == 'Z' || st.state == 'X' ? 0 : st.start;
}

uint32_t ttmon_proc_tgid(uint32_t tid)
{
	uint64_t tgid;

	return ttmon_proc_status(tid, "Tgid:", 10, &tgid) ? (uint32_t)tgid : tid;
}

bool ttmon_proc_owner(uint32_t pid, uid_t *ret_uid, gid_t *ret_gid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	if (stat(path, &st))
		return false;
	*ret_uid = st.st_uid;
	if (ret_gid)
		*ret_gid = st.st_gid;
	return true;
}

char *ttmon_proc_comm(uint32_t pid, char buf[16])
{
	if (ttmon_proc_read(NULL, pid, "comm", buf, 16) <= 0)
		strcpy(buf, "?");
	buf[strcspn(buf, "\n")] = '\0';
	return buf;
}
