/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * switches.h: does an ELF file switch stacks in the middle of calls (coroutines, fibers, green
 * threads)? By the names of what it imports or defines, and by its own. Pure.
 *
 * The kernel keeps what a return probe has put away by thread, in the order of the stack pointer
 * (kernel/events/uprobes.c, cleanup_return_instances()). A call that returns in another thread than it
 * was made in, or after its frame was copied elsewhere, gets SIGILL. Calls on other stacks than their
 * threads' own are known to the BPF programs (bpf/call.bpf.h, on_own_stack()), copies of frames are
 * not; and before Linux 6.13 no call can be left out.
 */
#ifndef TTMON_SWITCHES_H
#define TTMON_SWITCHES_H

#include "lib/base/util.h"

/* Is it a library that is known to? base: "libboost_context.so.1.74.0". */
bool ttmon_switches_file(const char *base);
/*
 * Is a symbol with such a name in this piece of a string table? Whole names alone; what ends with the
 * piece is seen in the next one. OpenSSL has makecontext() and setcontext(), in Ubuntu 24.04
 * swapcontext() too, for jobs that hardly anybody uses: the first two say nothing, and libcrypto is
 * left out.
 */
bool ttmon_switches_strings(const char *p, size_t n);

#endif
