/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace.h: memory accesses of GPU kernels, from programs that have libttmon-memtrace.so in them: a thread that reads their channels (memtrace/chan.h), writes the
 * records to a file where one is asked for, and tells the pipeline every 5 ms what was accessed (GPU_USE facts): that is how the history knows that pinned
 * memory which nobody copies is used all the same.
 */
#ifndef TTMON_MEMTRACE_H
#define TTMON_MEMTRACE_H

#include <jansson.h>
#include <stdio.h>

#include "opts.h"

struct ttmon_mtrun;

struct ttmon_mtrun_stats {
	uint64_t channels, seen; /* open now, ever */
	uint64_t records, dropped, malformed;
	uint64_t refused; /* connections: too many of a user, or in all, or of no use */
	uint64_t
		left_out; /* uses of memory that were too many to be told: at most 20,000 at once, 400,000 a second, half of that for a process */
	uint64_t written; /* bytes of the file */
	int file_err;	  /* -errno: the file was given up */
};

/*
 * Binds the socket of the options, or a private one for CMD, into whose environment the library then is put (this process's own environment: before CMD is forked).
 * Errors are logged.
 */
int ttmon_mtrun_new(const struct ttmon_opts *opts, struct ttmon_mtrun **ret) _must_check;
/* Reads from now on. fact: any thread, as ttmon_hot_fact(). */
int ttmon_mtrun_start(struct ttmon_mtrun *m, void (*fact)(void *ctx, const void *rec, size_t size),
		      void *ctx) _must_check;
/* Reads what is there, tells it, ends the file. -errno: of the file, logged. */
int ttmon_mtrun_stop(struct ttmon_mtrun *m) _must_check;
void ttmon_mtrun_get(struct ttmon_mtrun *m, struct ttmon_mtrun_stats *ret);
/* For /v1/status: null where it is off (m is NULL). gone: uses that the history could book to nothing. New reference. */
json_t *ttmon_mtrun_status(struct ttmon_mtrun *m, uint64_t gone);
/* A line after the summary; nothing where no program came. */
void ttmon_mtrun_summary(FILE *f, struct ttmon_mtrun *m);
void ttmon_mtrun_free(struct ttmon_mtrun *m); /* NULL is fine */

#endif
