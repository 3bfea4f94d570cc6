/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tracefs.h: the kernel's file system of tracepoints, even if it is not mounted. Any thread; opens
 * files.
 */
#ifndef TTMON_TRACEFS_H
#define TTMON_TRACEFS_H

#include "lib/base/util.h"

/*
 * Opens its root folder, for openat(2); the caller closes it. If it is mounted neither at
 * /sys/kernel/tracing nor at /sys/kernel/debug/tracing, it is mounted for this descriptor only: no
 * other process sees the mount, and it ends when the descriptor is closed. Returns 0; -ENOENT: the
 * kernel has no tracefs; -EPERM: it is not mounted, and mounting it needs CAP_SYS_ADMIN.
 */
int ttmon_tracefs_open(int *ret) _must_check;
/*
 * Gets the number of a tracepoint, such as "syscalls/sys_exit_mmap". -ENOENT: there is no such
 * tracepoint.
 */
int ttmon_tracefs_event_id(int dir_fd, const char *event, uint64_t *ret) _must_check;

#endif
