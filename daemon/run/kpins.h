/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kpins.h: the kernel's view of pinned memory (io/host/vmpins.h), sampled by the cold thread: each
 * second while something is pinned, and when more is pinned than ever before. It covers the 64
 * processes that pin most.
 */
#ifndef TTMON_KPINS_H
#define TTMON_KPINS_H

#include <jansson.h>

#include "daemon/io/host/vmpins.h"
#include "daemon/run/daemon.h"

extern const struct ttmon_part ttmon_part_kpins;

struct ttmon_kpins_sample {
	bool counted; /* host is known */
	struct ttmon_vmpins_host host;
	uint32_t procs, unread;	       /* processes that pin: read; gone or beyond 64 */
	struct ttmon_vmpins_proc proc; /* sums over those that were read */
	struct ttmon_vmpins_told told; /* of the same */
	enum ttmon_vmpins_verdict verdict;
};

/* The last sample, or a new one if it is older than 200 ms. False: the run has none (a replay). */
bool ttmon_kpins_get(const struct ttmon_daemon *c, struct ttmon_kpins_sample *ret);
/* For /v1/status: null in a replay. New reference. */
json_t *ttmon_kpins_status(const struct ttmon_daemon *c);

#endif
