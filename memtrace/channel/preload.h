/* SPDX-License-Identifier: GPL-2.0-only */
/* memtrace/channel/preload.h: where libttmon-memtrace.so is, for who puts it into a command. */
#ifndef TTMON_MEMTRACE_PRELOAD_H
#define TTMON_MEMTRACE_PRELOAD_H

#include <stddef.h>

/*
 * TTMON_MEMTRACE_LIB, or beside our own program: the build tree, an installation, Debian's. A path
 * that LD_PRELOAD can name: absolute, without blank or colon. -ENOENT, -EINVAL, -ENAMETOOLONG: one
 * line in why.
 */
int ttmon_mt_library(char *ret, size_t n, char *why, size_t n_why);

#endif
