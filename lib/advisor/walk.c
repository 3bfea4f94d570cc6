// SPDX-License-Identifier: GPL-2.0-only
/*
 * walk.c: the caller's stack by frame pointers, as the tracer takes it (bpf/stack.bpf.h), from inside.
 *
 * Code without frame pointers uses the register for something else, so a frame pointer may be
 * anything. What lies between the stack pointer and the top of the thread's stack is there as long as
 * the thread is. The top is known without asking: glibc puts a thread's control block, to which the
 * thread pointer points, at the top of its stack, and __libc_stack_end is the first thread's. That
 * what lies between is one stack is seen once for each page: the kernel reads from an address that it
 * is given before it looks at what else is wrong with the call. A stack that is none of these (a
 * coroutine's, a signal handler's) is asked about at each frame.
 */
#include <signal.h>
#include <sys/syscall.h>

#include "lib/advisor/advisor_int.h"

#define FRAME_MAX (8UL << 20)  /* bytes from one frame record to the next, as in the tracer */
#define STACK_MAX (64UL << 20) /* a stack of which more is in use is asked about at each frame */
#define PAGE	  4096UL       /* the smallest there is */

extern void *__libc_stack_end; /* of the dynamic linker */

/* Of this thread's stack, this much is known to be there. hi 0: nothing. */
static __thread struct {
	volatile uintptr_t lo, hi;
} sure __attribute__((tls_model("initial-exec")));

static uintptr_t thread_pointer(void)
{
#if defined(__x86_64__)
	uintptr_t tp;

	__asm__("mov %%fs:0, %0" : "=r"(tp));
	return tp;
#else
	return (uintptr_t)__builtin_thread_pointer();
#endif
}

static uint64_t plain(uint64_t address)
{
#if defined(__aarch64__)
	return address & ((1ULL << 48) - 1);
#else
	return address;
#endif
}

bool ttmon_stack_there(uintptr_t addr)
{
	int saved = errno;
	/* No such way of setting a mask: nothing is set. The mask is read before that is noticed. */
	long r = syscall(SYS_rt_sigprocmask, ~0, (const void *)addr, NULL, 8);
	bool ok = r == 0 || errno == EINVAL;

	errno = saved;
	return ok;
}

static bool all_there(uintptr_t from, uintptr_t to)
{
	for (uintptr_t at = from & ~(PAGE - 1); at < to; at += PAGE)
		if (!ttmon_stack_there(at))
			return false;
	return true;
}

/* A signal handler may do the same in the middle of it: bounds that it sees hold together. */
static void set_sure(uintptr_t lo, uintptr_t hi)
{
	sure.hi = 0;
	sure.lo = lo;
	sure.hi = hi;
}

uintptr_t ttmon_stack_top(uintptr_t sp)
{
	uintptr_t lo = sure.lo, hi = sure.hi;

	if (sp >= lo && sp < hi)
		return hi;
	/* Deeper than before. */
	if (hi && sp < lo && hi - sp < STACK_MAX) {
		if (!all_there(sp, lo))
			return 0;
		set_sure(sp & ~(PAGE - 1), hi);
		return hi;
	}
	if (hi)
		return 0;
	if (getpid() != (pid_t)syscall(SYS_gettid))
		hi = thread_pointer();
	else
		hi = (uintptr_t)__libc_stack_end;
	if (hi <= sp || hi - sp >= STACK_MAX || !all_there(sp, hi))
		return 0;
	set_sure(sp & ~(PAGE - 1), hi);
	return hi;
}

__attribute__((no_sanitize_address)) unsigned int ttmon_walk(const void *frame, uint64_t *ret, unsigned int max)
{
	uintptr_t fp = (uintptr_t)frame, low = fp, top = ttmon_stack_top(fp);
	unsigned int n;

	for (n = 0; n < max; n++) {
		const uintptr_t *record = (const uintptr_t *)fp;

		if (fp - low >= FRAME_MAX || fp & 7)
			break;
		/* The first one is the caller's own. */
		if (n && (top ? fp + 2 * sizeof(*record) > top
			      : !ttmon_stack_there(fp) || !ttmon_stack_there(fp + sizeof(*record))))
			break;
		ret[n] = plain(record[1]);
		low = fp + 2 * sizeof(*record);
		fp = record[0];
	}
	return n;
}
