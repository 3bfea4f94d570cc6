/* SPDX-License-Identifier: GPL-2.0-only */
/* sendfd.h: sends a message with a descriptor over a Unix socket (unix(7), SCM_RIGHTS). */
#ifndef TTMON_SENDFD_H
#define TTMON_SENDFD_H

#include <sys/socket.h>

#include "lib/base/util.h"

/* fd: borrowed; -1: none. flags: for sendmsg(2), besides MSG_NOSIGNAL. Returns 0 or -errno. */
static inline int ttmon_send_fd(int sock, const void *msg, size_t size, int fd, int flags)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	struct iovec iov = { (void *)msg, size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	if (fd >= 0) {
		struct cmsghdr *c;

		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	do
		sent = sendmsg(sock, &m, MSG_NOSIGNAL | flags);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

#endif
