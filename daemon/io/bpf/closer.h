/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * closer.h: a small process that closes links after the daemon has exited.
 *
 * The last close of a link waits for grace periods of the kernel: 50 to 80 ms for each tracepoint of a
 * system call, and 30 to 60 ms for the probes of a program in an object (measured on Linux 6.18). A
 * user of `ttmond -- CMD` need not wait for that: the daemon gives copies of its links to the closer,
 * closes its own, which then waits for nothing, and exits.
 *
 * Protocol: one SOCK_SEQPACKET pair, from the daemon to the closer alone. Each message is a byte (enum
 * ttmon_closer_how) and file descriptors. End of file: the daemon is gone; the closer closes what it
 * was given, and exits. Whichever of the two is killed, and when: the kernel closes what it held, and
 * no link outlives both.
 *
 * Cold thread. Start it before threads, and before anything is opened that no other process may hold,
 * since it is a fork.
 */
#ifndef TTMON_CLOSER_H
#define TTMON_CLOSER_H

#include "lib/base/util.h"

enum ttmon_closer_how {
	TTMON_CLOSE_TOGETHER, /* in threads: they share the grace periods */
	/*
	 * One after the other: for links on perf events. Each close holds the kernel's event_mutex while it
	 * waits. Threads would queue for it, and a process that opens a tracepoint would wait for all of them.
	 */
	TTMON_CLOSE_IN_TURN,
	TTMON_CLOSE_HOWS
};

/* *ret_sock is the daemon's end of the socket pair. */
int ttmon_closer_start(int *ret_sock) _must_check;
/*
 * Gives it copies of these descriptors. It holds them as long as the caller has the socket, so that no
 * close by the caller is the last one. -EPIPE, -ECONNRESET: it was killed. On failure it may still
 * have got some of them.
 */
int ttmon_closer_give(int sock, enum ttmon_closer_how how, const int *fds, size_t n) _must_check;

#endif
