/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * targets.h: the traced processes: checked at the start, added and removed while the run goes on. Cold
 * thread.
 */
#ifndef TTMON_TARGETS_H
#define TTMON_TARGETS_H

#include <sys/types.h>

#include "lib/base/util.h"

struct ttmon_daemon;

/* -ESRCH or -EPERM, with one line in why (size n), for a process that would never cause an event. */
int ttmon_target_check(uint32_t pid, char *why, size_t n) _must_check;
bool ttmon_target_has_ended(uint32_t pid);
/*
 * Traces a process, its present children and all later ones. uid: user that requested it, for the log,
 * here and below.
 */
int ttmon_target_add(struct ttmon_daemon *c, uint32_t pid, uid_t uid, char *why, size_t n) _must_check;
/*
 * Ends tracing of a process and its children; if all processes are traced, they still are. -ENOENT: it
 * was no target. What it holds stays in the history until it ends.
 */
int ttmon_target_remove(struct ttmon_daemon *c, uint32_t pid, uid_t uid) _must_check;
/* Traces every process of the host, or only the listed ones. */
int ttmon_target_all(struct ttmon_daemon *c, bool all, uid_t uid) _must_check;

#endif
