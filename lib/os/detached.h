/* SPDX-License-Identifier: GPL-2.0-only */
/* detached.h: small processes of ours that may outlive us, with a socket between us and each. */
#ifndef TTMON_DETACHED_H
#define TTMON_DETACHED_H

#include "lib/base/util.h"

#define TTMON_DETACHED_KEEP 4
/* Where the child finds what it keeps: keep[0], keep[1] .., then its end of the socket pair. */
#define TTMON_DETACHED_FD 3

/*
 * Fork twice, so that it is nobody's child and no waitpid() of ours meets it, and call run() there,
 * which does not return. It has a session of its own, all signals blocked, / as its folder, this name
 * (15 characters; also as its command line), /dev/null as descriptors 0 to 2, and no other than the n
 * of keep (TTMON_DETACHED_KEEP at most) and its end of a SOCK_SEQPACKET pair, all close-on-exec.
 * Memory that is mapped shared at this time stays referenced. Where there are threads already, run()
 * must not allocate, log or lock.
 *
 * flags: of the socket pair, beside SOCK_CLOEXEC. *ret_sock: our end. -errno: it was not started;
 * where SIGCHLD is ignored, a child that did not start shows as end of file.
 */
int ttmon_detached_start(const char *name, int flags, const int *keep, size_t n, void (*run)(void),
			 int *ret_sock) _must_check;

#endif
