/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compat.bpf.h: every difference between architectures, kernels and libbpf versions, each with where
 * it comes from.
 */
#ifndef TTMON_COMPAT_BPF_H
#define TTMON_COMPAT_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/*
 * A function of its own to the verifier, which then looks at it once a call site less often; not every
 * program uses each.
 */
#define SUBPROG static __noinline __attribute__((unused))
/*
 * The same, and the verifier looks at it once for any arguments, no longer at each call: for what a
 * program calls often. It gets numbers, and pointers to memory that it has to compare with NULL.
 */
#define GLOBAL_SUBPROG __noinline

/* libbpf 1.1 (Debian 12) ends at PT_REGS_PARM5; the later ones came with libbpf 1.2. */
#if defined(__TARGET_ARCH_x86)
#define IS_X86	       1
#define ARG_REGS       6 /* System V ABI; the rest is on the stack above the return address */
#define ARG6(ctx)      ((ctx)->r9)
#define ARG7(ctx)      0
#define ARG8(ctx)      0
#define STACK_ARGS(sp) ((sp) + 8)
/*
 * Where a class is returned by value, the first register holds where it goes; on arm64 x8 does, which
 * is no argument.
 */
#define SRET_REGS 1
/* At a return probe the call's return address has been popped. */
#define RETURN_SP(sp)	   ((sp) + 8)
#define CALLER(ctx, ra)	   bpf_probe_read_user((ra), 8, (void *)(ctx)->sp)
#define RETURN_ADDRESS(ra) (ra)
/* Arguments of the system call a task is returning from. */
#define SYSCALL_ARG1(regs)   BPF_CORE_READ((regs), di)
#define SYSCALL_ARG2(regs)   BPF_CORE_READ((regs), si)
#define SYSCALL_ARG3(regs)   BPF_CORE_READ((regs), dx)
#define SYSCALL_ARG4(regs)   BPF_CORE_READ((regs), r10)
#define SYSCALL_ARG5(regs)   BPF_CORE_READ((regs), r8)
#define THREAD_POINTER(task) BPF_CORE_READ((task), thread.fsbase)
#define DESCRIPTOR(tp, size) (tp)
#elif defined(__TARGET_ARCH_arm64)
#define IS_X86		     0
#define ARG_REGS	     8 /* AAPCS64 */
#define ARG6(ctx)	     ((ctx)->regs[5])
#define ARG7(ctx)	     ((ctx)->regs[6])
#define ARG8(ctx)	     ((ctx)->regs[7])
#define STACK_ARGS(sp)	     (sp)
#define SRET_REGS	     0
#define RETURN_SP(sp)	     (sp)
#define CALLER(ctx, ra)	     ((*(ra) = (ctx)->regs[30]), 0L)
/* Without the pointer authentication code that a function may have signed it with. */
#define RETURN_ADDRESS(ra)   ((ra) & ((1ULL << 48) - 1))
/* The return value overwrites x0; the first argument is kept apart. */
#define SYSCALL_ARG1(regs)   BPF_CORE_READ((regs), orig_x0)
#define SYSCALL_ARG2(regs)   BPF_CORE_READ((regs), regs[1])
#define SYSCALL_ARG3(regs)   BPF_CORE_READ((regs), regs[2])
#define SYSCALL_ARG4(regs)   BPF_CORE_READ((regs), regs[3])
#define SYSCALL_ARG5(regs)   BPF_CORE_READ((regs), regs[4])
#define THREAD_POINTER(task) BPF_CORE_READ((task), thread.uw.tp_value)
#define DESCRIPTOR(tp, size) ((tp) - (size))
#endif

/*
 * Stores before it are seen before stores after it. x86 keeps their order by itself; elsewhere an
 * atomic operation that returns a value is a full barrier. word: any that is ours.
 */
#if defined(__TARGET_ARCH_x86)
#define order_stores(word) barrier()
#else
#define order_stores(word)                                         \
	({                                                         \
		u64 old_ = __sync_fetch_and_add((u64 *)(word), 0); \
		asm volatile("" : : "r"(old_) : "memory");         \
	})
#endif

#endif
