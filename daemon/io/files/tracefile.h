/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tracefile.h: a pipeline's run as a trace file (io/files/traceev.h says what is drawn), for
 * --trace-out, `ttmon trace RECORDING` and /v1/trace. Written like a database (lib/os/outfile.h):
 * whole or not at all, gzip where the name ends in .gz.
 */
#ifndef TTMON_TRACEFILE_H
#define TTMON_TRACEFILE_H

#include "daemon/core/stream/pipeline.h"

struct ttmon_trace_in {
	struct ttmon_pipeline *pipeline; /* not fed meanwhile */
	const char *version;		 /* of the program that writes; NULL: this one */
	const char *source;		 /* "recording", "live"; NULL: "capture" */
	uint64_t end_ns;		 /* of the capture so far; live things end here in the picture */
	bool cut;			 /* the capture goes on, or its recording was cut off */
	uint64_t max_events;		 /* 0: any number. Past it: left out, counted in the file */
};

/*
 * What goes through memory has at most this many events, some 200 bytes each, unless told otherwise.
 */
#define TTMON_TRACE_LIVE_EVENTS 400000

/* 0, or -errno with one line of text in why (size n). */
int ttmon_trace_write(const char *path, const struct ttmon_trace_in *in, char *why, size_t n) _must_check;
/* The same to an fd, which stays open. */
int ttmon_trace_fd(int fd, const struct ttmon_trace_in *in) _must_check;
/* The same into memory: *ret is the caller's to free, NUL-terminated behind len. */
int ttmon_trace_buffer(const struct ttmon_trace_in *in, char **ret, size_t *len) _must_check;

#endif
