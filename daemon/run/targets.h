/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * targets.h: which processes are traced: looked at before, added and removed while the run goes on.
 * Cold thread.
 */
#ifndef TTMON_TARGETS_H
#define TTMON_TARGETS_H

#include <sys/types.h>

#include "lib/base/util.h"

struct ttmon_daemon;

/*
 * -ESRCH or -EPERM, and one line in why (size n), for what would be traced for ever without a single
 * event.
 */
int ttmon_target_check(uint32_t pid, char *why, size_t n) _must_check;
bool ttmon_target_has_ended(uint32_t pid);
/*
 * Trace a process and, from now on, its children; those it has already too. uid: who asked, for the
 * log, here and below.
 */
int ttmon_target_add(struct ttmon_daemon *c, uint32_t pid, uid_t uid, char *why, size_t n) _must_check;
/*
 * No longer, nor its children: with all it is traced all the same. -ENOENT: it was no target. What it
 * holds stays in the history as it was, and goes when it ends.
 */
int ttmon_target_remove(struct ttmon_daemon *c, uint32_t pid, uid_t uid) _must_check;
/* Every process of the host, or those listed alone. */
int ttmon_target_all(struct ttmon_daemon *c, bool all, uid_t uid) _must_check;

#endif
