/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * viewer.h: who asks, and which processes that person may see: root all, others on the Unix socket
 * those of their own user, nobody else any. Cold thread.
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
 * A process of the history: uid as told when it was announced, UINT32_MAX: not known (only root sees
 * it).
 */
bool ttmon_viewer_sees_uid(const struct ttmon_viewer *v, uint32_t uid);
/*
 * The process that has this id now: its effective user's. For what was not told since when it is
 * there.
 */
bool ttmon_viewer_owns_pid(const struct ttmon_viewer *v, uint32_t tgid);
/*
 * A process known by its id and start time (task->start_time, ns; 0: not known, then nobody but root
 * sees it). Looks into /proc.
 */
bool ttmon_viewer_sees_pid(const struct ttmon_viewer *v, uint32_t tgid, uint64_t start_ns);

#endif
