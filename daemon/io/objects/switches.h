/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * switches.h: says whether an ELF file switches stacks in the middle of calls (coroutines, fibers,
 * green threads), by its own name and the names that it imports or defines. Pure.
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

/* True if the library is known to switch stacks. base: "libboost_context.so.1.74.0". */
bool ttmon_switches_file(const char *base);
/*
 * True if this piece of a string table has a symbol with such a name. Only whole names count; one that
 * ends with the piece is seen in the next piece. OpenSSL has makecontext() and setcontext(), in Ubuntu
 * 24.04 also swapcontext(), for jobs that hardly any program uses: the first two are ignored, and
 * libcrypto is left out.
 */
bool ttmon_switches_strings(const char *p, size_t n);

#endif
