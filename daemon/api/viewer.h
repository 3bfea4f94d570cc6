/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * viewer.h: the rights of a client: root sees all processes, other users on the Unix socket those of
 * their own user, other clients none. Cold thread.
 */
#ifndef TTMON_VIEWER_H
#define TTMON_VIEWER_H

#include "daemon/io/http/http.h"

struct ttmon_viewer {
	bool all;
	bool none;
	uid_t uid;
};

void ttmon_viewer_init(struct ttmon_viewer *v, const struct ttmon_http_reply *reply);
/*
 * A process of the history: uid as of its announcement, UINT32_MAX: unknown (then only root sees it).
 */
bool ttmon_viewer_sees_uid(const struct ttmon_viewer *v, uint32_t uid);
/*
 * True if the process that has this id now belongs to the viewer, by its effective user. For processes
 * whose start time is not known.
 */
bool ttmon_viewer_owns_pid(const struct ttmon_viewer *v, uint32_t tgid);
/*
 * A process identified by its id and start time (task->start_time in ns; 0: unknown, then only root
 * sees it). Reads /proc.
 */
bool ttmon_viewer_sees_pid(const struct ttmon_viewer *v, uint32_t tgid, uint64_t start_ns);

#endif
