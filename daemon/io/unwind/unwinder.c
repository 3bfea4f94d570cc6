// SPDX-License-Identifier: GPL-2.0-only
/* unwinder.c: see unwinder.h: messages, both ways. */
#include "daemon/io/unwind/unwinder.h"

#include "lib/os/sendfd.h"

int ttmon_unwinder_send(int sock, const void *msg, size_t size, int fd, bool wait)
{
	return ttmon_send_fd(sock, msg, size, fd, wait ? 0 : MSG_DONTWAIT);
}

static bool stack_is_good(const struct ttmon_unwinder_stack *s)
{
	return s->nframes <= TTMON_MAX_FRAMES && s->by < TTMON_STACK_BY_MAX && s->end < TTMON_STACK_END_MAX;
}

static bool fn_is_good(const struct ttmon_unwinder_fn *f)
{
	return f->no < TTMON_UNWINDER_FNS && f->file[0] && f->name[0] && memchr(f->file, 0, sizeof(f->file)) &&
	       memchr(f->name, 0, sizeof(f->name));
}

bool ttmon_unwinder_is_good(const void *msg, size_t size)
{
	static const size_t entry[TTMON_UNWINDER_KINDS] = {
		[TTMON_UNWINDER_HELLO] = sizeof(uint32_t),
		[TTMON_UNWINDER_WANT] = sizeof(uint32_t),
		[TTMON_UNWINDER_STACK] = sizeof(struct ttmon_unwinder_stack),
		[TTMON_UNWINDER_FN] = sizeof(struct ttmon_unwinder_fn),
	};
	struct ttmon_unwinder_head head;
	struct ttmon_unwinder_stack s;

	if (size < sizeof(head))
		return false;
	memcpy(&head, msg, sizeof(head));
	if (head.kind < TTMON_UNWINDER_HELLO || head.kind >= TTMON_UNWINDER_KINDS ||
	    head.n != (head.kind != TTMON_UNWINDER_DONE) || size != sizeof(head) + head.n * entry[head.kind])
		return false;
	if (head.kind == TTMON_UNWINDER_FN)
		return fn_is_good((const void *)((const char *)msg + sizeof(head)));
	if (head.kind != TTMON_UNWINDER_STACK)
		return true;
	memcpy(&s, (const char *)msg + sizeof(head), sizeof(s));
	return stack_is_good(&s);
}
