/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mounts.h: whether the mount of an open file is still in some mount namespace. A container's files
 * are not deleted when it ends: their mount goes with its namespace, and only a process that has one
 * of them open keeps the file system.
 */
#ifndef TTMON_MOUNTS_H
#define TTMON_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Where it was found last: a process of that namespace. As long as that lives it is not searched for
 * again. Begins as zeros.
 */
struct ttmon_mount_at {
	uint32_t pid;
	uint64_t ns;
};

/*
 * False only where all namespaces that a process is in were looked at, and neither the mount nor the
 * file's device is in one of them.
 */
bool ttmon_mount_is_there(int fd, struct ttmon_mount_at *at);

#endif
