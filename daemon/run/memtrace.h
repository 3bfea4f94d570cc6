/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace.h: memory accesses of GPU kernels, from programs that have libttmon-memtrace.so in them: a
 * thread that reads their channels (memtrace/channel/chan.h), writes the records to a file where one
 * is requested, and tells the pipeline every 5 ms what was accessed (GPU_USE facts): that is how the
 * history knows that pinned memory which nobody copies is used all the same.
 */
#ifndef TTMON_MEMTRACE_H
#define TTMON_MEMTRACE_H

#include <jansson.h>
#include <stdio.h>

#include "daemon/run/daemon.h"

extern const struct ttmon_part ttmon_part_memtrace;

struct ttmon_mtrun_stats {
	uint64_t channels, seen; /* open now, ever */
	uint64_t records, dropped, malformed;
	uint64_t refused; /* connections: too many of a user, or in all, or of no use */
	uint64_t
		left_out; /* uses of memory that were too many to be told: at most 20,000 at once, 400,000 a second, half of that for a process */
	uint64_t written; /* bytes of the file */
	int file_err;	  /* -errno: the file was given up */
};

/* False: the run does not read memory accesses. */
bool ttmon_mtrun_get(const struct ttmon_daemon *c, struct ttmon_mtrun_stats *ret);
/*
 * For /v1/status: null where it is off. gone: uses that the history could book to nothing. New
 * reference.
 */
json_t *ttmon_mtrun_status(const struct ttmon_daemon *c, uint64_t gone);

#endif
