// SPDX-License-Identifier: GPL-2.0-only
/*
 * walk.c: the caller's stack by frame pointers, in the same way as the tracer (bpf/stack.bpf.h), from
 * inside the process.
 *
 * Code that is compiled without frame pointers uses the register for other values, so a frame pointer
 * may be anything and must be checked. The memory between the stack pointer and the top of the
 * thread's stack is mapped as long as the thread exists. The top is found without a system call: glibc
 * puts a thread's control block, to which the thread pointer points, at the top of its stack; for the
 * first thread it is __libc_stack_end. Once for each page, a system call checks that the memory
 * between is mapped: the kernel reads from the address before it finds that the rest of the call is
 * not valid. On a stack of another kind (of a coroutine or a signal handler) each frame is checked by
 * a system call.
 */
#include <signal.h>
#include <sys/syscall.h>

#include "lib/advisor/advisor_int.h"

#define FRAME_MAX (8UL << 20)  /* largest distance between two frame records in bytes, as in the tracer */
#define STACK_MAX (64UL << 20) /* on a stack with more than this in use, each frame is checked by a system call */
#define PAGE	  4096UL       /* the smallest page size */

extern void *__libc_stack_end; /* defined by the dynamic linker */

/* Part of this thread's stack that is known to be mapped. hi 0: none. */
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
	/*
	 * The first argument is not valid, so no mask is set, but the kernel reads the mask before it notices.
	 */
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

/*
 * A signal handler may change the bounds in between, so they are written in an order in which it
 * always sees a valid pair.
 */
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
	/* The walk is deeper than any before. */
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
		/* The first frame record is the caller's own. */
		if (n && (top ? fp + 2 * sizeof(*record) > top
			      : !ttmon_stack_there(fp) || !ttmon_stack_there(fp + sizeof(*record))))
			break;
		ret[n] = plain(record[1]);
		low = fp + 2 * sizeof(*record);
		fp = record[0];
	}
	return n;
}
