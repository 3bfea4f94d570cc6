/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tracefs.h: the kernel's file system of tracepoints, also where nobody has mounted it. Any thread;
 * opens files.
 */
#ifndef TTMON_TRACEFS_H
#define TTMON_TRACEFS_H

#include "lib/base/util.h"

/*
 * Its root folder, for openat(2); the caller closes it. Where it is mounted neither at
 * /sys/kernel/tracing nor at /sys/kernel/debug/tracing, it is mounted for this descriptor alone: no
 * other process sees that, and it is gone when the descriptor is closed. -ENOENT: this kernel has
 * none; -EPERM: it is not mounted, and to mount it takes CAP_SYS_ADMIN.
 */
int ttmon_tracefs_open(int *ret) _must_check;
/* The number of a tracepoint, "syscalls/sys_exit_mmap". -ENOENT: there is no such one. */
int ttmon_tracefs_event_id(int dir_fd, const char *event, uint64_t *ret) _must_check;

#endif
