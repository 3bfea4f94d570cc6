/* SPDX-License-Identifier: GPL-2.0-only */
/* detached.h: starts small helper processes that may outlive the daemon, with a socket to each. */
#ifndef TTMON_DETACHED_H
#define TTMON_DETACHED_H

#include "lib/base/util.h"

#define TTMON_DETACHED_KEEP 4
/* First descriptor in the child: keep[0], keep[1] and so on, then its end of the socket pair. */
#define TTMON_DETACHED_FD 3

/*
 * Starts a helper process and calls run() in it, which must not return. It forks twice, so that the
 * process is not a child of the caller and does not disturb its waitpid(). The process has a session
 * of its own, all signals blocked, / as working directory, the given name (15 characters; also as its
 * command line), /dev/null as descriptors 0 to 2, and only the n descriptors of keep
 * (TTMON_DETACHED_KEEP at most) and its end of a SOCK_SEQPACKET pair, all close-on-exec. Memory that
 * is mapped shared at this time stays referenced. If the caller already has threads, run() must not
 * allocate, log or lock.
 *
 * flags: for the socket pair, besides SOCK_CLOEXEC. *ret_sock: the caller's end. Returns 0, or -errno:
 * the process was not started. If SIGCHLD is ignored, a failure to start is only seen as end of file
 * on the socket.
 */
int ttmon_detached_start(const char *name, int flags, const int *keep, size_t n, void (*run)(void),
			 int *ret_sock) _must_check;

#endif
