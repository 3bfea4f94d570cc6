// SPDX-License-Identifier: GPL-2.0-only
/* proc.c: see proc.h. */
#include "lib/os/proc.h"

#include <fcntl.h>
#include <limits.h>

int ttmon_proc_read_stat(const char *root, uint32_t pid, struct ttmon_proc_stat *ret)
{
	char path[PATH_MAX], buf[1024], *p;
	struct ttmon_proc_stat st = { 0 };
	unsigned long long start;
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%u/stat", root ? root : "/proc", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);
	if (n <= 0)
		return -ESRCH;
	buf[n] = '\0';
	/* The name in parentheses may hold anything; it ends at the last one. Fields 3, 9 and 22. */
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
	char path[64], line[128];
	_cleanup_fclose_ FILE *f = NULL;
	unsigned int tgid = tid;

	snprintf(path, sizeof(path), "/proc/%u/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Tgid: %u", &tgid) == 1)
			break;
	return tgid;
}

char *ttmon_proc_comm(uint32_t pid, char buf[16])
{
	_cleanup_close_ int fd = -1;
	char path[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, 15);
	if (n <= 0)
		buf[0] = '?';
	buf[MAX(n, 1)] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return buf;
}
