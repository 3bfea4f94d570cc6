// SPDX-License-Identifier: GPL-2.0-only
#include "memtrace/channel/preload.h"

#include <limits.h>
#include <unistd.h>

#include "lib/base/util.h"

#define LIB "libttmon-memtrace.so"
#if defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "x86_64-linux-gnu"
#endif

/* Returns the path beside the program itself; "": it is not there. */
static void beside(const char *own, char *path, size_t n)
{
	static const char *const places[] = { "../libttmon", "../lib", ("../lib/" MULTIARCH), "../lib64" };
	const char *slash = strrchr(own, '/');

	for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
		snprintf(path, n, "%.*s/%s/" LIB, (int)(slash - own), own, places[i]);
		if (!access(path, R_OK))
			return;
	}
	*path = '\0';
}

int ttmon_mt_library(char *ret, size_t n, char *why, size_t n_why)
{
	const char *said = getenv("TTMON_MEMTRACE_LIB");
	char own[PATH_MAX] = "", path[PATH_MAX + 64], real[PATH_MAX];
	ssize_t len;

	if (said && *said) {
		if (!realpath(said, real)) {
			snprintf(why, n_why, "TTMON_MEMTRACE_LIB: %s: %s", said, strerror(errno));
			return -ENOENT;
		}
	} else {
		len = readlink("/proc/self/exe", own, sizeof(own) - 1);
		own[MAX(len, 0)] = '\0';
		beside(own, path, sizeof(path));
		if (!*path || !realpath(path, real)) {
			snprintf(why, n_why, "cannot find " LIB " beside %s: TTMON_MEMTRACE_LIB=PATH says where it is",
				 own);
			return -ENOENT;
		}
	}
	if (strpbrk(real, ": \t")) {
		snprintf(why, n_why, "%s: a path with a blank or a colon cannot be preloaded", real);
		return -EINVAL;
	}
	if (strlen(real) >= n) {
		snprintf(why, n_why, "%s: too long", real);
		return -ENAMETOOLONG;
	}
	memcpy(ret, real, strlen(real) + 1);
	return 0;
}
