/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sdnotify.h: the two protocols between a service and systemd: sd_notify(3) (a datagram to
 * $NOTIFY_SOCKET) and sd_listen_fds(3) (sockets from fd 3 on). Without systemd every call does
 * nothing. libsystemd is not linked for these few lines, since it would bring three compression
 * libraries.
 */
#ifndef TTMON_SDNOTIFY_H
#define TTMON_SDNOTIFY_H

#include "lib/base/util.h"

/*
 * Read and unset the environment ($NOTIFY_SOCKET, $WATCHDOG_USEC, $WATCHDOG_PID, $LISTEN_FDS,
 * $LISTEN_PID, $LISTEN_FDNAMES), once, before any fork: what is started later must neither speak for
 * the service nor take its sockets, which become close-on-exec here.
 */
void ttmon_sd_init(void);
/*
 * "READY=1\nSTATUS=...". Errors are only logged at debug level. Waits for a busy systemd for 1 s at
 * most.
 */
void ttmon_sd_notify(const char *fmt, ...) _printf_(1, 2);
/* Interval for WATCHDOG=1 in ns (half of systemd's timeout), 0: none. */
uint64_t ttmon_sd_watchdog_ns(void);
/* True if there are sockets of systemd that were not taken yet. */
bool ttmon_sd_has_fds(void);
/*
 * Takes the listening stream sockets that systemd passed, close-on-exec and non-blocking; others are
 * closed with a warning. Returns their number, at most max; the caller owns them. A second call
 * returns none.
 */
size_t ttmon_sd_listen_fds(int *fds, size_t max);

#endif
