// SPDX-License-Identifier: GPL-2.0-only
/*
 * args.c: command lines from /proc, because the name alone does not distinguish ten processes called
 * python3.
 */
#include <fcntl.h>
#include <inttypes.h>

#include "tools/top/top.h"

void ttmon_top_args(const char *proc_root, uint64_t pid, char *buf, size_t n)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *path = NULL;
	size_t len = 0;
	ssize_t got;

	buf[0] = '\0';
	if (asprintf(&path, "%s/%" PRIu64 "/cmdline", proc_root, pid) < 0) {
		path = NULL;
		return;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (len + 1 < n && (got = read(fd, buf + len, n - 1 - len)) > 0)
		len += (size_t)got;
	while (len && !buf[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		if (!buf[i])
			buf[i] = ' ';
	buf[len] = '\0';
}
