// SPDX-License-Identifier: GPL-2.0-only
/*
 * keeper.c: see keeper.h. ttmon_keeper_start() runs in the cold thread; keeper_run(), and what it
 * calls, in a process of its own (lib/os/detached.h).
 *
 * Promises: a request is answered at the latest 250 ms after it was received, whatever the daemon
 * does; after one such answer, later requests are answered at once until the daemon sends a message
 * again, so that a daemon stuck for seconds costs the command one delay and not one per mapping. Start
 * holding before mapping rings: memory that is mapped shared stays referenced.
 *
 * The kernel cannot remove a filter, and answers ENOSYS to every request once no process holds its
 * listener: the command could then not execute or map anything. So there are two of these processes.
 * The second one, the guard, waits until the first one is gone, takes its place, and starts a guard of
 * its own. The first one's state is in memory that both have mapped, and both have the same end of the
 * daemon's socket: neither the daemon nor the command sees the change. The kernel's out-of-memory
 * killer leaves both alone, and neither has a name that `killall ttmond` or `pkill ttmond` finds. Only
 * if both are killed by number within the microseconds of a fork, ENOSYS results.
 *
 * It must not allocate, log or lock: it is forked from a threaded program.
 */
#define _GNU_SOURCE
#include "daemon/io/hold/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib/os/clock.h"
#include "lib/os/detached.h"

/* Threads that may wait at once. Further ones are released at once, and counted. */
#define MAX_HELD 512

#define LISTENER_FD TTMON_DETACHED_FD
#define SOCK_FD	    (TTMON_DETACHED_FD + 1)

struct held {
	uint64_t id; /* written last */
	uint64_t deadline_ns;
	bool used;
};

/* Shared with the guard, which may take it over in any state. */
struct keeper {
	int listener;
	int sock;   /* -1: the daemon is gone */
	int guard;  /* socket to the guard, whose end of file means its end; -1: there is none */
	bool stuck; /* the daemon let a request time out and has sent nothing since */
	uint64_t missed, timeout_ns;
	size_t nr_held;
	struct held held[MAX_HELD];
	union {
		struct seccomp_notif notif;
		char room[512];
	} received; /* the last request, written by the kernel */
};

int ttmon_keeper_continue(int listener, uint64_t id)
{
	/* The kernel's structure may become larger than in our headers. */
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
	for (size_t i = 0; k->nr_held && i < MAX_HELD; i++) {
		if (!k->held[i].used || k->held[i].id != id)
			continue;
		k->held[i].used = false;
		k->nr_held--;
		return;
	}
}

static void remember(struct keeper *k, uint64_t id)
{
	for (size_t i = 0; i < MAX_HELD; i++) {
		if (k->held[i].used)
			continue;
		k->held[i].deadline_ns = ttmon_mono_ns() + k->timeout_ns;
		k->held[i].id = id;
		__atomic_store_n(&k->held[i].used, true, __ATOMIC_RELEASE);
		k->nr_held++;
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

/* Under emulation attaching takes many times as long: tests/vm sets the time. */
static uint64_t timeout_ns(void)
{
	const char *env = getenv("TTMOND_HOLD_MS");
	unsigned long ms = env ? strtoul(env, NULL, 10) : 0;

	return (ms && ms <= 60000 ? ms : TTMON_KEEPER_TIMEOUT_MS) * NSEC_PER_MS;
}

static void take_request(struct keeper *k)
{
	memset(&k->received, 0, sizeof(k->received));
	if (ioctl(k->listener, SECCOMP_IOCTL_NOTIF_RECV, &k->received.notif))
		return; /* the thread was killed before its request was read */

	if (k->sock < 0 || k->stuck || k->nr_held == MAX_HELD) {
		let_go(k, k->received.notif.id);
		return;
	}
	remember(k, k->received.notif.id);
	if (!tell(k, TTMON_KEEPER_REQUEST, &k->received.notif)) {
		forget(k, k->received.notif.id);
		let_go(k, k->received.notif.id);
	}
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
	for (size_t i = 0; i < MAX_HELD; i++)
		if (k->held[i].used)
			let_go(k, k->held[i].id);
	memset(k->held, 0, sizeof(k->held));
	k->nr_held = 0;
}

static void expire(struct keeper *k)
{
	uint64_t missed = k->missed, now = ttmon_mono_ns();

	for (size_t i = 0; k->nr_held && i < MAX_HELD; i++) {
		if (!k->held[i].used || ttmon_before(now, k->held[i].deadline_ns))
			continue;
		let_go(k, k->held[i].id);
		forget(k, k->held[i].id);
	}
	if (k->missed != missed) {
		k->stuck = true;
		tell(k, TTMON_KEEPER_NOTE, NULL);
	}
}

static int next_timeout_ms(const struct keeper *k)
{
	uint64_t first = UINT64_MAX, now;

	if (!k->nr_held)
		return -1;
	now = ttmon_mono_ns();
	for (size_t i = 0; i < MAX_HELD; i++)
		if (k->held[i].used)
			first = MIN(first, k->held[i].deadline_ns);
	return ttmon_before(first, now) ? 0 : (int)((first - now) / NSEC_PER_MS) + 1;
}

/* ---- keeper and guard ---- */

static bool nobody_is_left(const struct keeper *k)
{
	struct pollfd pfd = { .fd = k->listener };

	return poll(&pfd, 1, 0) == 1 && pfd.revents & POLLHUP;
}

/* In the guard: the first one was killed, at any point. */
static void take_over(struct keeper *k)
{
	size_t n = 0;
	bool told = false;

	for (size_t i = 0; i < MAX_HELD; i++) {
		n += k->held[i].used;
		told |= k->held[i].used && k->held[i].id == k->received.notif.id;
	}
	k->nr_held = n;
	/* Received, but not passed on yet. If it was answered already, the kernel refuses a second answer. */
	if (k->received.notif.id && !told)
		let_go(k, k->received.notif.id);
}

/*
 * Returns in the process that is to answer requests: at once, and in the guard after the death of its
 * predecessor.
 */
static void stand_by(struct keeper *k)
{
	int pair[2];
	char none;

	for (;;) {
		pid_t pid;

		k->guard = -1;
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
			return;
		pid = fork();
		if (pid) {
			close(pair[1]);
			if (pid > 0)
				k->guard = pair[0];
			else
				close(pair[0]);
			return;
		}
		close(pair[0]);
		while (read(pair[1], &none, 1) < 0 && errno == EINTR)
			;
		close(pair[1]);
		/* The keeper ended because its work was done. */
		if (nobody_is_left(k))
			_exit(0);
		take_over(k);
	}
}

static void without_guard(struct keeper *k)
{
	close(k->guard);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	stand_by(k);
}

/*
 * Protects this process from the out-of-memory killer. Without CAP_SYS_RESOURCE this fails, and
 * nothing changes.
 */
static void stay_alive(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, "-1000", 5);
	close(fd);
}

static void keeper_run(void)
{
	static struct keeper alone;
	struct keeper *k = mmap(NULL, sizeof(*k), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool shared = k != MAP_FAILED;

	if (!shared)
		k = &alone;
	k->listener = LISTENER_FD;
	k->sock = SOCK_FD;
	k->guard = -1;
	k->timeout_ns = timeout_ns();
	stay_alive();
	if (shared)
		stand_by(k);
	for (;;) {
		struct pollfd pfd[3] = { { .fd = k->listener, .events = POLLIN },
					 { .fd = k->sock, .events = POLLIN },
					 { .fd = k->guard, .events = POLLIN } };

		if (poll(pfd, ARRAY_SIZE(pfd), next_timeout_ms(k)) < 0)
			continue;
		if (pfd[1].revents)
			hear_daemon(k);
		expire(k);
		/*
		 * RECV does not block after POLLIN: no other process receives, and a request cancelled by a signal
		 * gives ENOENT.
		 */
		if (pfd[0].revents & POLLIN)
			take_request(k);
		else if (pfd[0].revents)
			break;
		if (pfd[2].revents)
			without_guard(k);
	}
	tell(k, TTMON_KEEPER_NOTE, NULL);
}

int ttmon_keeper_start(int listener, int *ret_sock)
{
	return ttmon_detached_start(TTMON_KEEPER_NAME, SOCK_NONBLOCK, &listener, 1, keeper_run, ret_sock);
}
