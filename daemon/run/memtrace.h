/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace.h: memory accesses of GPU kernels, from programs that have libttmon-memtrace.so in them: a
 * thread reads their channels (memtrace/channel/chan.h), writes the records to a file if one is
 * requested, and sends the accessed ranges to the pipeline every 5 ms (GPU_USE facts). So the history
 * knows that pinned memory without copies is in use all the same.
 */
#ifndef TTMON_MEMTRACE_H
#define TTMON_MEMTRACE_H

#include <jansson.h>
#include <stdio.h>

#include "daemon/run/daemon.h"

extern const struct ttmon_part ttmon_part_memtrace;

struct ttmon_mtrun_stats {
	uint64_t channels, seen; /* channels: open now; seen: since the start */
	uint64_t records, dropped, malformed;
	uint64_t refused; /* connections refused: too many of a user or in total, or invalid */
			  /*
		 * Uses of memory that were not reported: the limit is 20,000 at once and 400,000 a second, half of
		 * that for one process.
		 */
	uint64_t left_out;
	uint64_t written; /* bytes of the file */
	int file_err;	  /* -errno: writing the file was given up */
};

/* False: the run does not read memory accesses. */
bool ttmon_mtrun_get(const struct ttmon_daemon *c, struct ttmon_mtrun_stats *ret);
/*
 * For /v1/status: null if it is off. gone: uses that matched no memory in the history. New reference.
 */
json_t *ttmon_mtrun_status(const struct ttmon_daemon *c, uint64_t gone);

#endif
