/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * caps.h: give away the capabilities that are not needed any more once everything is set up.
 */
#ifndef TTMON_CAPS_H
#define TTMON_CAPS_H

#include "lib/base/util.h"

/*
 * Keep those of caps (CAP_*, n of them) that this thread has in its permitted and effective sets, drop
 * all others from every set of it and hence of the threads that it makes from now on, and set
 * no_new_privs. Threads that exist already keep theirs (capabilities(7): only a thread itself changes
 * its sets). Where CAP_SETPCAP is missing the bounding set stays: it matters to an exec() alone, which
 * no_new_privs has made harmless. One that the kernel does not know is no error. -EINVAL: a number
 * past 63; else -errno of the kernel.
 */
int ttmon_caps_keep(const int *caps, size_t n) _must_check;
/*
 * Does perf_event_open() want CAP_SYS_ADMIN here? CAP_PERFMON is enough for upstream kernels, whatever
 * kernel.perf_event_paranoid says; Debian's and Ubuntu's know values above 2 (Debian boots with 3),
 * and then ask for the former. root: "" or, in tests, a folder with /proc.
 */
bool ttmon_caps_perf_wants_admin(const char *root);

#endif
