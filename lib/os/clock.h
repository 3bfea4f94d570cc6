/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * clock.h: the clock of all time stamps, CLOCK_MONOTONIC, in ns. daemon/core must not read it: it gets
 * the time as an argument.
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
