// SPDX-License-Identifier: GPL-2.0-only
/*
 * keeper.c: see keeper.h. ttmon_keeper_start() runs in the cold thread; keeper_run(), and what it calls, in a process of its own
 * (lib/os/detached.h).
 *
 * Promises: a request is answered at the latest 250 ms after it was received, whatever the daemon does; once one request
 * had to be answered so, the next ones are answered at once until the daemon speaks again, so that a daemon stuck for
 * seconds costs the command one delay and not one per mapping. Start holding before mapping rings: memory that is mapped shared stays
 * referenced.
 *
 * It must not allocate, log or lock: it is forked from a threaded program.
 */
#define _GNU_SOURCE
#include "daemon/io/hold/keeper.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/os/clock.h"
#include "lib/os/detached.h"

/* Threads that may wait at once. What comes above is let go at once, and counted. */
#define MAX_HELD 512

#define LISTENER_FD TTMON_DETACHED_FD
#define SOCK_FD	    (TTMON_DETACHED_FD + 1)

struct held {
	uint64_t id;
	uint64_t deadline_ns;
};

struct keeper {
	int listener;
	int sock;   /* -1: the daemon is gone */
	bool stuck; /* the daemon let a request time out and has not spoken since */
	uint64_t missed, timeout_ns;
	size_t nr_held;
	struct held held[MAX_HELD]; /* by arrival, hence by deadline */
};

int ttmon_keeper_continue(int listener, uint64_t id)
{
	/* The kernel's structure may be larger than that of our headers one day. */
	union {
		struct seccomp_notif_resp resp;
		char room[256];
	} u;

	memset(&u, 0, sizeof(u));
	u.resp.id = id;
	u.resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &u.resp) ? -errno : 0;
}

static void forget(struct keeper *k, uint64_t id)
{
	for (size_t i = 0; i < k->nr_held; i++) {
		if (k->held[i].id != id)
			continue;
		k->nr_held--;
		memmove(&k->held[i], &k->held[i + 1], (k->nr_held - i) * sizeof(k->held[0]));
		return;
	}
}

static bool tell(struct keeper *k, enum ttmon_keeper_kind kind, const struct seccomp_notif *notif)
{
	struct ttmon_keeper_msg msg;

	memset(&msg, 0, sizeof(msg));
	msg.missed = k->missed;
	msg.kind = kind;
	if (notif)
		msg.notif = *notif;
	return send(k->sock, &msg, sizeof(msg), MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(msg);
}

static void let_go(struct keeper *k, uint64_t id)
{
	/* A request that the daemon has answered, or whose thread is gone, was not missed. */
	if (ttmon_keeper_continue(k->listener, id) == 0)
		k->missed++;
}

/* Under emulation attaching takes many times as long: tests/vm says how long to hold. */
static uint64_t timeout_ns(void)
{
	const char *env = getenv("TTMOND_HOLD_MS");
	unsigned long ms = env ? strtoul(env, NULL, 10) : 0;

	return (ms && ms <= 60000 ? ms : TTMON_KEEPER_TIMEOUT_MS) * NSEC_PER_MS;
}

static void take_request(struct keeper *k)
{
	union {
		struct seccomp_notif notif;
		char room[512];
	} u;

	memset(&u, 0, sizeof(u));
	if (ioctl(k->listener, SECCOMP_IOCTL_NOTIF_RECV, &u.notif))
		return; /* the thread was killed before we came */

	if (k->sock < 0 || k->stuck || k->nr_held == MAX_HELD || !tell(k, TTMON_KEEPER_REQUEST, &u.notif)) {
		let_go(k, u.notif.id);
		return;
	}
	k->held[k->nr_held++] = (struct held){ u.notif.id, ttmon_mono_ns() + k->timeout_ns };
}

static void hear_daemon(struct keeper *k)
{
	uint64_t id;
	ssize_t n;

	while ((n = recv(k->sock, &id, sizeof(id), MSG_DONTWAIT)) > 0) {
		if (n != sizeof(id))
			continue;
		forget(k, id);
		if (k->stuck) {
			k->stuck = false;
			tell(k, TTMON_KEEPER_NOTE, NULL);
		}
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;

	close(k->sock);
	k->sock = -1;
	for (size_t i = 0; i < k->nr_held; i++)
		let_go(k, k->held[i].id);
	k->nr_held = 0;
}

static void expire(struct keeper *k)
{
	uint64_t missed = k->missed, now = ttmon_mono_ns();

	while (k->nr_held && !ttmon_before(now, k->held[0].deadline_ns)) {
		uint64_t id = k->held[0].id;

		let_go(k, id);
		forget(k, id);
	}
	if (k->missed != missed) {
		k->stuck = true;
		tell(k, TTMON_KEEPER_NOTE, NULL);
	}
}

static int next_timeout_ms(const struct keeper *k)
{
	int64_t left;

	if (!k->nr_held)
		return -1;
	left = (int64_t)(k->held[0].deadline_ns - ttmon_mono_ns());
	return left <= 0 ? 0 : (int)(left / (int64_t)NSEC_PER_MS) + 1;
}

static void keeper_run(void)
{
	struct keeper k = { .listener = LISTENER_FD, .sock = SOCK_FD, .timeout_ns = timeout_ns() };

	for (;;) {
		struct pollfd pfd[2] = { { .fd = k.listener, .events = POLLIN }, { .fd = k.sock, .events = POLLIN } };

		if (poll(pfd, ARRAY_SIZE(pfd), next_timeout_ms(&k)) < 0)
			continue;
		if (pfd[1].revents)
			hear_daemon(&k);
		expire(&k);
		/* RECV does not block after POLLIN: nobody else receives, and a request taken back by a signal gives ENOENT. */
		if (pfd[0].revents & POLLIN)
			take_request(&k);
		else if (pfd[0].revents)
			break;
	}
	tell(&k, TTMON_KEEPER_NOTE, NULL);
}

int ttmon_keeper_start(int listener, int *ret_sock)
{
	return ttmon_detached_start("ttmond-keeper", SOCK_NONBLOCK, &listener, 1, keeper_run, ret_sock);
}
