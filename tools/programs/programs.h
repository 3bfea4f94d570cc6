/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * programs.h: `ttmon programs`: runs of programs on Tenstorrent chips, summed up.
 *
 *	cmd_programs.c  options; reading what the service has kept and what it reports
 *	sums.c   a table of sums with a row for each (program, process, device)
 *	text.c   as a table, as JSON
 *	screen.c on a terminal
 */
#ifndef TTMON_TOOLS_PROGRAMS_H
#define TTMON_TOOLS_PROGRAMS_H

#include <jansson.h>

#include <ttmon/client.h>

#include "lib/base/hmap.h"

#define TTMON_PROGRAMS_UNKNOWN UINT64_MAX

struct ttmon_programs_times {
	uint64_t *v;
	size_t n, cap;
};

/* A program is identified by its kernels; if they are not known, by this id. */
struct ttmon_programs_row {
	char *kernels; /* NULL: not known */
	uint32_t program;
	bool many_ids;
	uint32_t pid, device, chip;
	uint64_t runs, timed; /* timed: number of runs whose start and end are known */
	uint64_t busy_ns;
	uint64_t error_ns; /* how much busy_ns may be wrong; UNKNOWN */
	struct ttmon_programs_times lengths, gaps;
};

struct ttmon_programs {
	struct ttmon_programs_row *v;
	size_t n, cap;
	struct ttmon_hmap rows;	 /* hash of (program, process, device): index of the row */
	struct ttmon_hmap chips; /* (process, device) or chip: index into ends */
	uint64_t *ends;		 /* end of the last run on it */
	size_t nr_ends, cap_ends;
	uint64_t from_ns, to_ns; /* from the first start to the last end */
	uint64_t window_ns;	 /* the time that shares are relative to; the caller sets it */
	uint64_t missed, earlier;
	uint64_t left_out; /* number of runs left out for lack of memory */
};

void ttmon_programs_add(struct ttmon_programs *p, const struct ttmon_program_run *run);
/* Sorts the rows by busy time, the longest first, and the times of each row. */
void ttmon_programs_sort(struct ttmon_programs *p);
void ttmon_programs_fini(struct ttmon_programs *p);
/* Returns the percentile of sorted times; UNKNOWN if there are none. */
uint64_t ttmon_programs_rank(const struct ttmon_programs_times *t, unsigned int percent);

/* Prints a table of a sorted list, cut to columns (0: not cut), and lines about what is missing. */
void ttmon_programs_print(const struct ttmon_programs *p, size_t columns, bool utf8, FILE *out);
json_t *ttmon_programs_json(const struct ttmon_programs *p);

/* Takes the runs that arrived since the last call. False: the service does not answer. */
typedef bool (*ttmon_programs_take_fn)(void *ctx, struct ttmon_programs *ret);
int ttmon_programs_screen(const char *socket, unsigned int interval_ms, ttmon_programs_take_fn take, void *ctx);

#endif
