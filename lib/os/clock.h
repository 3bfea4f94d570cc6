/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * clock.h: the one clock that everything is stamped with, CLOCK_MONOTONIC, in ns. Not for core/, which
 * is told the time.
 */
#ifndef TTMON_CLOCK_H
#define TTMON_CLOCK_H

#include <time.h>

#include "lib/base/util.h"

static inline uint64_t ttmon_clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline uint64_t ttmon_mono_ns(void)
{
	return ttmon_clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t ttmon_real_ns(void)
{
	return ttmon_clock_ns(CLOCK_REALTIME);
}

#endif
