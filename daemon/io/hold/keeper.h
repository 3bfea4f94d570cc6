/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * keeper.h: the small process that owns the receiving end of a seccomp listener, so that a held
 * command always goes on.
 *
 * Protocol over one SOCK_SEQPACKET pair. Keeper to daemon: struct ttmon_keeper_msg. Daemon to keeper:
 * one uint64_t, the id of a request that the daemon is done with (it has answered it itself, on its
 * own copy of the listener); any such message also says that the daemon is alive. End of file from the
 * daemon: it is gone or has given up, everything is answered CONTINUE from then on. End of file from
 * the keeper: no process is left under the filter (the listener shows POLLHUP), or both the keeper and
 * its guard (keeper.c), which replaces a killed keeper, were killed.
 *
 * Only io/hold/hold.c uses this.
 */
#ifndef TTMON_KEEPER_H
#define TTMON_KEEPER_H

#include <linux/seccomp.h>

#include "lib/base/util.h"

/* Name and command line of both: pkill(1) with our own name does not find them. */
#define TTMON_KEEPER_NAME "seccomp-keeper"

/* A request may wait for the daemon this long; then the keeper releases it. */
#define TTMON_KEEPER_TIMEOUT_MS 250

enum ttmon_keeper_kind {
	TTMON_KEEPER_REQUEST, /* notif waits for an answer */
	TTMON_KEEPER_NOTE,    /* only `missed` has changed */
};

struct ttmon_keeper_msg {
	uint64_t missed; /* requests that the keeper released without the daemon, since it started */
	uint64_t kind;	 /* enum ttmon_keeper_kind */
	struct seccomp_notif notif;
};

/*
 * Starts a keeper for this listener. *ret_sock is the daemon's end of the socket pair, non-blocking.
 */
int ttmon_keeper_start(int listener, int *ret_sock) _must_check;
/* Lets the thread of a request continue. -ENOENT: it is gone, or the request was answered already. */
int ttmon_keeper_continue(int listener, uint64_t id);

#endif
