// SPDX-License-Identifier: GPL-2.0-only
/* look.c: what a file is, by its first bytes, unpacked where it is gzip. */
#include <zlib.h>

#include "tools/door/door.h"

#define HEAD (64u << 10)

static bool begins(const char *head, size_t n, const char *with)
{
	return n >= strlen(with) && !memcmp(head, with, strlen(with));
}

static enum ttmon_door_kind kind_of(const char *head, size_t n)
{
	static const char gzip_in_tar[] = "ustar";
	size_t at = 0;

	if (begins(head, n, "TTMONREC"))
		return TTMON_DOOR_RECORDING;
	if (begins(head, n, "ttmonsl1"))
		return TTMON_DOOR_SLOTS;
	if (begins(head, n, "TTMT"))
		return TTMON_DOOR_ACCESSES;
	if (n > 262 && !memcmp(head + 257, gzip_in_tar, 5))
		return TTMON_DOOR_REPORT;
	while (at < n && strchr(" \t\r\n", head[at]) && head[at])
		at++;
	if (begins(head + at, n - at, "<!doctype html") || begins(head + at, n - at, "<!DOCTYPE html"))
		return TTMON_DOOR_PAGE;
	if (memmem(head, n, "MEMTRACE:", 9) || begins(head, n, "-kernel name") ||
	    memmem(head, n, "\n#traces format", 15))
		return TTMON_DOOR_TEXT_TRACE;
	if (at == n || head[at] != '{')
		return TTMON_DOOR_UNKNOWN;
	if (memmem(head, n, "\"ttmon-db\"", 10))
		return TTMON_DOOR_DATABASE;
	if (memmem(head, n, "\"traceEvents\"", 13))
		return TTMON_DOOR_TIMELINE;
	return TTMON_DOOR_UNKNOWN;
}

int ttmon_door_look(const char *path, enum ttmon_door_kind *ret)
{
	_cleanup_free_ char *head = malloc(HEAD);
	gzFile gz;
	int n;

	if (!head)
		return -ENOMEM;
	errno = 0;
	gz = gzopen(path, "rbe");
	if (!gz)
		return errno ? -errno : -ENOMEM;
	errno = 0;
	n = gzread(gz, head, HEAD);
	/* A file that was cut off is still what it began as. */
	if (n < 0) {
		int err = errno ? -errno : 0;

		gzclose(gz);
		if (!err)
			*ret = TTMON_DOOR_UNKNOWN;
		return err;
	}
	gzclose(gz);
	*ret = kind_of(head, (size_t)n);
	return 0;
}
