// SPDX-License-Identifier: GPL-2.0-only
/*
 * closer.c: see closer.h. ttmon_closer_start() and ttmon_closer_give() run in the cold thread;
 * closer_run(), and what it calls, in a process of its own (lib/os/detached.h), which is forked before
 * the daemon has threads or much memory.
 */
#define _GNU_SOURCE
#include "daemon/io/bpf/closer.h"

#include <pthread.h>
#include <sys/socket.h>

#include "daemon/io/bpf/bpf_int.h"
#include "lib/os/detached.h"

#define SOCK_FD TTMON_DETACHED_FD
/* Number of threads that close at the same time. */
#define CLOSERS 16

/* Descriptors of one message; the kernel takes 253. */
#define GIVE_MAX 128
/* Descriptors for one way of closing. Further ones are closed by the end of the process. */
#define HELD_MAX 1024

struct lot {
	size_t n;
	int fds[HELD_MAX];
};

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(GIVE_MAX * sizeof(int))];
};

/*
 * Takes the descriptors of one message; fds has room for GIVE_MAX. Returns their number; -ENODATA: end
 * of file.
 */
static int take(int sock, int *fds, unsigned char *how)
{
	union control control;
	struct iovec iov = { how, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *c;
	ssize_t n;
	size_t len;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ENODATA;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	len = c->cmsg_len - CMSG_LEN(0);
	memcpy(fds, CMSG_DATA(c), len);
	return (int)(len / sizeof(int));
}

static void *close_one(void *arg)
{
	close((int)(intptr_t)arg);
	return NULL;
}

void ttmon_bpf_close_links(const int *fds, size_t n)
{
	for (size_t done = 0; done < n;) {
		pthread_t threads[CLOSERS];
		size_t started = 0;

		while (started < CLOSERS && done + started < n &&
		       !pthread_create(&threads[started], NULL, close_one, (void *)(intptr_t)fds[done + started]))
			started++;
		for (size_t i = 0; i < started; i++)
			pthread_join(threads[i], NULL);
		done += started;
		/* No thread could be made. */
		if (!started)
			close(fds[done++]);
	}
}

static void *close_in_turn(void *arg)
{
	const struct lot *l = arg;

	for (size_t i = 0; i < l->n; i++)
		close(l->fds[i]);
	return NULL;
}

static void closer_run(void)
{
	struct lot lots[TTMON_CLOSE_HOWS] = { 0 };
	int fds[GIVE_MAX], n;
	unsigned char how;
	pthread_t thread;
	bool started;

	while ((n = take(SOCK_FD, fds, &how)) >= 0) {
		struct lot *l = &lots[MIN(how, TTMON_CLOSE_IN_TURN)];
		size_t more = MIN((size_t)n, HELD_MAX - l->n);

		memcpy(&l->fds[l->n], fds, more * sizeof(*fds));
		l->n += more;
	}
	started = !pthread_create(&thread, NULL, close_in_turn, &lots[TTMON_CLOSE_IN_TURN]);
	ttmon_bpf_close_links(lots[TTMON_CLOSE_TOGETHER].fds, lots[TTMON_CLOSE_TOGETHER].n);
	if (started)
		pthread_join(thread, NULL);
	/* The kernel closes what is still open. */
}

int ttmon_closer_start(int *ret_sock)
{
	return ttmon_detached_start("ttmond-closer", 0, NULL, 0, closer_run, ret_sock);
}

static int give_some(int sock, enum ttmon_closer_how how, const int *fds, size_t n)
{
	union control control;
	unsigned char byte = (unsigned char)how;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };
	struct cmsghdr *c;

	memset(&control, 0, sizeof(control));
	msg.msg_controllen = CMSG_SPACE(n * sizeof(*fds));
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(*fds));
	memcpy(CMSG_DATA(c), fds, n * sizeof(*fds));
	return sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int ttmon_closer_give(int sock, enum ttmon_closer_how how, const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i += GIVE_MAX) {
		int err = give_some(sock, how, fds + i, MIN(n - i, (size_t)GIVE_MAX));

		if (err)
			return err;
	}
	return 0;
}
