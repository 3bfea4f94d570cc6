/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * record.h: shared by the files of `ttmon memtrace record`. Each error is one line on stderr that
 * begins with "ttmon memtrace record:".
 */
#ifndef TTMON_TOOLS_MT_RECORD_H
#define TTMON_TOOLS_MT_RECORD_H

#include <sys/types.h>

#include "memtrace/analyse/an.h"
#include "memtrace/channel/chan.h"
#include "memtrace/stream/stream.h"
#include "lib/base/util.h"

#define TTMON_MT_RECORD_ENV 16

struct ttmon_mt_record {
	/* The options. */
	const char *path; /* output file; NULL: none */
	struct ttmon_mt_out_opts file;
	bool report;
	struct {
		const char *name, *value;
	} env[TTMON_MT_RECORD_ENV]; /* environment variables for the library */
	size_t nr_env;
	char kernels[4096];
	const char *launches, *instrs, *spaces; /* NULL: all, or the default of the library */
	unsigned int aggregate;
	bool has_mode, all_modules;
	uint64_t sample, ring; /* 0: the default of the library */
	char sample_text[24], ring_text[24];
	char **cmd;

	/* The state. */
	struct ttmon_mt_dictw dict;
	struct ttmon_mt_stats stats;
	struct ttmon_mt_an *an;
	struct ttmon_mt_out *out;
	int fd;
	bool created; /* the file did not exist before */
	/* errors that ended the writing, the analysis, the reading; already reported */
	int out_err, an_err, read_err;
	uint64_t flushed_ns;
	uint64_t opened; /* number of channels that were opened */
};

void _printf_(1, 2) ttmon_mt_record_say(const char *fmt, ...);

/* ---- run.c: runs the command, and reads until it and all its writers have ended ---- */

/*
 * Returns 0: *status is the exit status of the command, or 128 + the number of the signal that ended
 * it. Returns -errno: it was not started, which was reported.
 */
int ttmon_mt_record_run(struct ttmon_mt_record *r, int *status) _must_check;

/* ---- record.c ---- */

/* Called when the command runs: begins the file. */
void ttmon_mt_record_begin(struct ttmon_mt_record *r);
/* Passes records to the file and the analysis. */
int ttmon_mt_record_take(void *ctx, const struct ttmon_mt_rec *recs, size_t n, uint32_t pid);
/* Writes buffered records to the file; called about once a second. */
void ttmon_mt_record_flush(struct ttmon_mt_record *r);

#endif
