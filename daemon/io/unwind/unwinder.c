// SPDX-License-Identifier: GPL-2.0-only
/* unwinder.c: see unwinder.h: messages, both ways. */
#include <sys/socket.h>

#include "daemon/io/unwind/unwinder.h"

int ttmon_unwinder_send(int sock, const void *msg, size_t size, int fd, bool wait)
{
	struct iovec iov = { (void *)msg, size };
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	if (fd >= 0) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	do
		sent = sendmsg(sock, &m, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static bool stack_is_good(const struct ttmon_unwinder_stack *s)
{
	return s->nframes <= TTMON_MAX_FRAMES && s->by < TTMON_STACK_BY_MAX && s->end < TTMON_STACK_END_MAX;
}

bool ttmon_unwinder_is_good(const void *msg, size_t size)
{
	static const size_t entry[TTMON_UNWINDER_KINDS] = {
		[TTMON_UNWINDER_HELLO] = sizeof(uint32_t),
		[TTMON_UNWINDER_WANT] = sizeof(uint32_t),
		[TTMON_UNWINDER_STACK] = sizeof(struct ttmon_unwinder_stack),
	};
	struct ttmon_unwinder_head head;
	struct ttmon_unwinder_stack s;

	if (size < sizeof(head))
		return false;
	memcpy(&head, msg, sizeof(head));
	if (head.kind < TTMON_UNWINDER_HELLO || head.kind >= TTMON_UNWINDER_KINDS ||
	    head.n != (head.kind != TTMON_UNWINDER_DONE) || size != sizeof(head) + head.n * entry[head.kind])
		return false;
	if (head.kind != TTMON_UNWINDER_STACK)
		return true;
	memcpy(&s, (const char *)msg + sizeof(head), sizeof(s));
	return stack_is_good(&s);
}
