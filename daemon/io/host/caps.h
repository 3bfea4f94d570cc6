/* SPDX-License-Identifier: GPL-2.0-only */
/* caps.h: drops the capabilities that are not needed after the set-up. */
#ifndef TTMON_CAPS_H
#define TTMON_CAPS_H

#include "lib/base/util.h"

/*
 * Keeps those of caps (CAP_*, n of them) that this thread has in its permitted and effective sets,
 * drops all others from every set of it, and hence of the threads that it makes from now on, and sets
 * no_new_privs. Existing threads keep theirs (capabilities(7): only a thread itself changes its sets).
 * Without CAP_SETPCAP the bounding set stays: it matters only to an exec(), which no_new_privs makes
 * harmless. A capability that the kernel does not know is no error. -EINVAL: a number past 63; else
 * -errno of the kernel.
 */
int ttmon_caps_keep(const int *caps, size_t n) _must_check;
/*
 * True if perf_event_open() needs CAP_SYS_ADMIN here. CAP_PERFMON is enough for upstream kernels,
 * whatever kernel.perf_event_paranoid is; the kernels of Debian and Ubuntu have values above 2 (Debian
 * boots with 3), and then need the former. root: "" or, in tests, a folder with /proc.
 */
bool ttmon_caps_perf_wants_admin(const char *root);

#endif
