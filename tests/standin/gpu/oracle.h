/* SPDX-License-Identifier: GPL-2.0-only */
/* oracle.h: compares the accesses that the interpreter saw with those that were recorded. */
#ifndef STANDIN_GPU_ORACLE_H
#define STANDIN_GPU_ORACLE_H

#include <ttmon/mtchan.h>

#include "gpu.h"
#include "kernels.h"
#include "memtrace/ptx/ptx.h"

#include <pthread.h>

#define FIRST_SITE  17 /* sites are numbered across modules */
#define TOUCH_SLOTS 4096

/* One access of a warp to one space; compared byte by byte. */
struct seen {
	uint64_t addr[GPU_LANES];
	uint32_t site, launch, warp, mask, cta[3];
	uint8_t space, pad[3];
};
struct seen_list {
	struct seen *all;
	size_t nr, cap;
};

struct oracle {
	const char *what;
	uint32_t units, nr_rings, sms, wait_ns, sample;
	bool consumer, lossy, aggregate;
	/* state */
	struct ttmon_ptx_result rw;
	struct gpu_module *mod;
	uint32_t **site_of; /* [function][instruction] */
	uint8_t *rings;
	void *tails;
	size_t bytes;
	uint64_t ctl, aggs, touch, tail[8], lost, total, total_lost, lane_insns;
	uint32_t grid[3], launches;
	struct seen_list want, have;
	pthread_mutex_t lock;
	bool original, stop;
	unsigned int failures;
};

void oracle_push(struct seen_list *l, const struct seen *s);
void oracle_fail(struct oracle *o, const char *text, const char *kernel, uint32_t site, uint64_t have, uint64_t want);
/*
 * Checks the counters of the sites and the pages of the launches since the last call, which are in
 * o->want.
 */
void oracle_counters(struct oracle *o, const char *kernel);

#endif
