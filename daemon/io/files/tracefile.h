/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tracefile.h: a pipeline's run as a trace file (io/files/traceev.h says what is drawn), for
 * --trace-out, `ttmon trace RECORDING` and /v1/trace. Written like a database (lib/os/outfile.h):
 * complete or not at all, gzip if the name ends in .gz.
 */
#ifndef TTMON_TRACEFILE_H
#define TTMON_TRACEFILE_H

#include "daemon/core/stream/pipeline.h"

struct ttmon_trace_in {
	struct ttmon_pipeline *pipeline; /* must not be fed meanwhile */
	const char *version;		 /* of the program that wrote the source; NULL: this one */
	const char *source;		 /* "recording", "live"; NULL: "capture" */
	uint64_t end_ns;		 /* end of the capture so far; live allocations are drawn up to here */
	bool cut;			 /* the capture is still running, or its recording was cut off */
	uint64_t max_events;		 /* 0: no limit. Events past it are left out, and counted in the file */
};

/* Default limit for files made in memory, some 200 bytes an event. */
#define TTMON_TRACE_LIVE_EVENTS 400000

/* 0, or -errno with one line of text in why (size n). */
int ttmon_trace_write(const char *path, const struct ttmon_trace_in *in, char *why, size_t n) _must_check;
/* The same to an fd, which stays open. */
int ttmon_trace_fd(int fd, const struct ttmon_trace_in *in) _must_check;
/* The same into memory: the caller frees *ret, which is NUL-terminated after len bytes. */
int ttmon_trace_buffer(const struct ttmon_trace_in *in, char **ret, size_t *len) _must_check;

#endif
