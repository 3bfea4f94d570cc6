/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * usock.h: a listening Unix socket at a path, made so that no client can connect before its mode and
 * group are set. A stale socket of a killed daemon is replaced; a live one, or a file of another type,
 * never is.
 */
#ifndef TTMON_USOCK_H
#define TTMON_USOCK_H

#include <sys/types.h>

#include "lib/base/util.h"

struct ttmon_usock {
	int fd; /* listening, non-blocking; may be taken with TAKE_FD */
	char *path;
	dev_t dev; /* of the socket file: only this one is unlinked at the end */
	ino_t ino;
	bool no_group; /* the requested group does not exist on this host */
};

/*
 * The directory of path is made with mode 0750 if it is missing (its parent must exist). group: owner
 * of the new directory and of the socket; NULL, or one that this host does not have: unchanged.
 * -EADDRINUSE: another process listens there; -EEXIST: a file that is no socket is there. Every
 * failure is logged here, in one line.
 */
int ttmon_usock_open(const char *path, const char *group, mode_t mode, struct ttmon_usock *ret) _must_check;
/* Unlinks the socket file if it is still the one we made; closes fd if it was not taken. */
void ttmon_usock_fini(struct ttmon_usock *s);

#endif
