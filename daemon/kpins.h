/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kpins.h: the kernel's view of pinned memory (io/vmpins.h), sampled by the cold thread: each second while something is pinned, and when more is
 * pinned than ever before. Of at most 64 processes, those that pin most.
 */
#ifndef TTMON_KPINS_H
#define TTMON_KPINS_H

#include <jansson.h>

#include "io/vmpins.h"

struct ttmon_run;
struct ttmon_kpins;

struct ttmon_kpins_sample {
	bool counted; /* host is known */
	struct ttmon_vmpins_host host;
	uint32_t procs, unread;	       /* that pin: read, and gone or past 64 */
	struct ttmon_vmpins_proc proc; /* sums over those that were read */
	struct ttmon_vmpins_told told; /* of the same */
	enum ttmon_vmpins_verdict verdict;
};

/* -ENOMEM. */
int ttmon_kpins_new(struct ttmon_run *c, struct ttmon_kpins **ret) _must_check;
void ttmon_kpins_free(struct ttmon_kpins *k);
void ttmon_kpins_tick(struct ttmon_kpins *k);
/* The last sample; made anew where it is older than 200 ms. */
void ttmon_kpins_get(struct ttmon_kpins *k, struct ttmon_kpins_sample *ret);
/* For /v1/status: null in a replay (k is NULL). New reference. */
json_t *ttmon_kpins_status(struct ttmon_kpins *k);
/* A line after the summary; nothing where nothing was pinned. */
void ttmon_kpins_summary(FILE *f, const struct ttmon_kpins *k);

#endif
