/* SPDX-License-Identifier: GPL-2.0-only */
/* memtrace/channel/preload.h: finds libttmon-memtrace.so, to preload it into a command. */
#ifndef TTMON_MEMTRACE_PRELOAD_H
#define TTMON_MEMTRACE_PRELOAD_H

#include <stddef.h>

/*
 * Finds it at TTMON_MEMTRACE_LIB, or beside the running program: in the build tree, an installation,
 * Debian's paths. The result is valid for LD_PRELOAD: absolute, without space or colon. Returns 0;
 * -ENOENT, -EINVAL or -ENAMETOOLONG with one line in why.
 */
int ttmon_mt_library(char *ret, size_t n, char *why, size_t n_why);

#endif
