/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compat.bpf.h: every difference between architectures, kernels and libbpf versions, each with its
 * source.
 */
#ifndef TTMON_COMPAT_BPF_H
#define TTMON_COMPAT_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/*
 * Makes a separate function, which the verifier checks at each call. Not every program uses each of
 * these functions.
 */
#define SUBPROG static __noinline __attribute__((unused))
/*
 * Makes a global function, which the verifier checks once for all possible arguments instead of at
 * each call. It is for functions that a program calls often. Its arguments are numbers, and pointers
 * to memory that it has to compare with NULL.
 */
#define GLOBAL_SUBPROG __noinline

/*
 * libbpf 1.1 (Debian 12) defines only PT_REGS_PARM1 to PT_REGS_PARM5; libbpf 1.2 added the others.
 */
#if defined(__TARGET_ARCH_x86)
#define IS_X86	       1
#define ARG_REGS       6 /* System V ABI; further arguments are on the stack above the return address */
#define ARG6(ctx)      ((ctx)->r9)
#define ARG7(ctx)      0
#define ARG8(ctx)      0
#define STACK_ARGS(sp) ((sp) + 8)
/*
 * If a function returns a class by value, the first argument register holds the address for it. On
 * arm64 x8 holds this address, which is not an argument register.
 */
#define SRET_REGS 1
/* When a return probe runs, the return address of the call has been popped. */
#define RETURN_SP(sp)	   ((sp) + 8)
#define CALLER(ctx, ra)	   bpf_probe_read_user((ra), 8, (void *)(ctx)->sp)
#define RETURN_ADDRESS(ra) (ra)
/* Arguments of the system call from which a task is returning. */
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
/* A function may have signed its return address: this removes the pointer authentication code. */
#define RETURN_ADDRESS(ra)   ((ra) & ((1ULL << 48) - 1))
/* The return value overwrites x0, so the kernel keeps the first argument separately. */
#define SYSCALL_ARG1(regs)   BPF_CORE_READ((regs), orig_x0)
#define SYSCALL_ARG2(regs)   BPF_CORE_READ((regs), regs[1])
#define SYSCALL_ARG3(regs)   BPF_CORE_READ((regs), regs[2])
#define SYSCALL_ARG4(regs)   BPF_CORE_READ((regs), regs[3])
#define SYSCALL_ARG5(regs)   BPF_CORE_READ((regs), regs[4])
#define THREAD_POINTER(task) BPF_CORE_READ((task), thread.uw.tp_value)
#define DESCRIPTOR(tp, size) ((tp) - (size))
#endif

/*
 * Other CPUs see the stores before it earlier than the stores after it. x86 keeps their order by
 * itself; on other architectures an atomic operation that returns a value is a full barrier. word: any
 * word of this program's memory.
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
