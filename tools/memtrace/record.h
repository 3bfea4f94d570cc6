/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * record.h: `ttmon memtrace record`: between its files. Errors are one line on stderr, which begins
 * with "ttmon memtrace record:".
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
	/* What was requested. */
	const char *path; /* of the file; NULL: none */
	struct ttmon_mt_out_opts file;
	bool report;
	struct {
		const char *name, *value;
	} env[TTMON_MT_RECORD_ENV]; /* for the library */
	size_t nr_env;
	char kernels[4096];
	const char *launches, *instrs, *spaces; /* NULL: all, the library's own */
	unsigned int aggregate;
	bool has_mode, all_modules;
	uint64_t sample, ring; /* 0: the library's own */
	char sample_text[24], ring_text[24];
	char **cmd;

	/* What there is of it. */
	struct ttmon_mt_dictw dict;
	struct ttmon_mt_stats stats;
	struct ttmon_mt_an *an;
	struct ttmon_mt_out *out;
	int fd;
	bool created;		       /* the file was not there before */
	int out_err, an_err, read_err; /* that ended the writing, the analysis, the reading; said */
	uint64_t flushed_ns;
	uint64_t opened; /* channels */
};

void _printf_(1, 2) ttmon_mt_record_say(const char *fmt, ...);

/* ---- run.c: the command, and reading until it and all who write have ended ---- */

/*
 * 0: *status is the command's, 128 + a signal's number where one ended it. -errno: it was not started,
 * said.
 */
int ttmon_mt_record_run(struct ttmon_mt_record *r, int *status) _must_check;

/* ---- record.c ---- */

/* The command runs: the file is begun. */
void ttmon_mt_record_begin(struct ttmon_mt_record *r);
/* Records, to file and analysis. */
int ttmon_mt_record_take(void *ctx, const struct ttmon_mt_rec *recs, size_t n, uint32_t pid);
/* What is buffered into the file, about once a second. */
void ttmon_mt_record_flush(struct ttmon_mt_record *r);

#endif
