/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * usock.h: a listening Unix socket at a path, made so that nobody can connect before its mode and
 * group are right, that a stale one of a killed daemon is replaced and a live one, or anything that is
 * not a socket, never is.
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
	bool no_group; /* this host does not have the one that was requested */
};

/*
 * The directory of path is made with mode 0750 when it is missing (its parent must be there). group:
 * owner of the directory made and of the socket; NULL, or one that this host does not have: unchanged.
 * -EADDRINUSE: somebody listens there; -EEXIST: the path is taken by something that is not a socket.
 * Every failure is logged here, in one line.
 */
int ttmon_usock_open(const char *path, const char *group, mode_t mode, struct ttmon_usock *ret) _must_check;
/* Unlinks the socket file if it is still the one we made, closes fd if it was not taken. */
void ttmon_usock_fini(struct ttmon_usock *s);

#endif
