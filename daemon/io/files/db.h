/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * db.h: the allocation database, one JSON document (schema: docs/ttmon-db.schema.json).
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
	bool trace_only;	   /* true: it has no advice */
	bool cut;		   /* the recording was cut off, or the trace is still running */
};

/* 0, or -errno with the reason as one line of text in why (size n), for the caller to log. */
int ttmon_db_write(const char *path, struct ttmon_pipeline *p, const struct ttmon_db_meta *meta, char *why,
		   size_t n) _must_check;
/* The same to fd, which stays open. */
int ttmon_db_fd(int fd, bool gzip, struct ttmon_pipeline *p, const struct ttmon_db_meta *meta) _must_check;

#endif
