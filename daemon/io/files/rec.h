/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rec.h (io): writing and reading the recording file, whose format is in <ttmon/rec.h>.
 *
 * The hot thread writes entries into a buffer; a thread of the writer compresses and writes full
 * buffers, so that the hot thread never waits. When 16 buffers of 4 MiB are full the record is dropped
 * and counted.
 */
#ifndef TTMON_IO_REC_H
#define TTMON_IO_REC_H

#include <ttmon/rec.h>

#include "daemon/core/stream/pipeline.h"

struct ttmon_rec_writer;

/* Creates path.tmp.PID beside path; close renames it. -errno; the caller logs one line. */
int ttmon_rec_writer_new(const char *path, uint32_t nr_cpus, struct ttmon_rec_writer **ret) _must_check;
void ttmon_rec_writer_record(struct ttmon_rec_writer *w, const void *rec, size_t size);
void ttmon_rec_writer_advance(struct ttmon_rec_writer *w, uint64_t watermark_ns);
/*
 * Flushes, writes the END block, fsyncs, renames. Always frees w. Returns the first error of the
 * writer (-ENOSPC...).
 */
int ttmon_rec_writer_close(struct ttmon_rec_writer *w, uint64_t end_ns) _must_check;
struct ttmon_rec_stats {
	uint64_t records, dropped, raw_bytes, file_bytes;
};
void ttmon_rec_writer_stats(const struct ttmon_rec_writer *w, struct ttmon_rec_stats *ret);

struct ttmon_rec_reader;

/*
 * Opens and checks the head. -EBADMSG: not a recording; -EPROTONOSUPPORT: another version or byte
 * order.
 */
int ttmon_rec_reader_open(const char *path, struct ttmon_rec_reader **ret) _must_check;
uint32_t ttmon_rec_reader_cpus(const struct ttmon_rec_reader *r);
/* Receives the entries of a recording in order; record: aligned to 8, valid during the call. */
struct ttmon_rec_sink {
	void (*record)(void *ctx, const void *rec, size_t size);
	void (*advance)(void *ctx, uint64_t watermark_ns);
	void *ctx;
};
/*
 * Passes on the next entries, up to and including the first watermark past until_ns (UINT64_MAX: all).
 * Returns 1: there is more, call again; 0: complete; -ENODATA: cut off (everything readable was passed
 * on); -EBADMSG: damaged in the middle (passed on up to there). *end_ns: time to finish with, after 1
 * the last watermark. dropped: records missing in it, known at the end.
 */
int ttmon_rec_read(struct ttmon_rec_reader *r, const struct ttmon_rec_sink *sink, uint64_t until_ns, uint64_t *end_ns,
		   uint64_t *dropped) _must_check;
/* The same into a pipeline. */
int ttmon_rec_replay(struct ttmon_rec_reader *r, struct ttmon_pipeline *p, uint64_t until_ns, uint64_t *end_ns,
		     uint64_t *dropped) _must_check;
void ttmon_rec_reader_free(struct ttmon_rec_reader *r);

#endif
