/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shstk.h: programs with a shadow stack (x86, since Linux 6.6): the processor compares each return
 * address with a second copy. Return probes exchange return addresses. Since Linux 6.11 the kernel
 * exchanges them in the copy too ("x86/shstk: Make return uprobe work with shadow stack"). The kernels
 * between end such a program with SIGSEGV when a function with a return probe returns.
 */
#ifndef TTMON_SHSTK_H
#define TTMON_SHSTK_H

#include "lib/base/util.h"

/* True if this text of /proc/PID/status says that the process's first thread has a shadow stack. */
bool ttmon_shstk_is_on(const char *status);
/*
 * True if return probes end such programs under this kernel. has(): whether the kernel has a function
 * of this name.
 */
bool ttmon_shstk_breaks(bool (*has)(const char *function));

#endif
