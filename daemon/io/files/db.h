/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * db.h: the allocation database, one JSON document (docs/ttmon-db.schema.json says what is in it).
 *
 * Written as a stream, allocation by allocation, to PATH.tmp.PID beside PATH, fsync'ed and renamed:
 * the previous file stays until the new one is whole. PATH ending in .gz is compressed (gzip level 1).
 * Same history, same bytes.
 */
#ifndef TTMON_DB_H
#define TTMON_DB_H

#include "daemon/core/stream/pipeline.h"

#define TTMON_DB_SCHEMA	 "ttmon-db"
#define TTMON_DB_VERSION 1

struct ttmon_db_meta {
	const char *version;	   /* of ttmond */
	uint64_t start_ns, end_ns; /* capture window, CLOCK_MONOTONIC */
	bool trace_only;	   /* no advice in it */
	bool cut;		   /* replayed from a recording that was cut off, or written while the trace goes on */
};

/*
 * 0, or -errno with the reason already in one line of text in why (size n): the caller logs it once.
 */
int ttmon_db_write(const char *path, struct ttmon_pipeline *p, const struct ttmon_db_meta *meta, char *why,
		   size_t n) _must_check;
/* The same to an fd, which stays open. */
int ttmon_db_fd(int fd, bool gzip, struct ttmon_pipeline *p, const struct ttmon_db_meta *meta) _must_check;

#endif
