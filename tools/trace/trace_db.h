/* SPDX-License-Identifier: GPL-2.0-only */
/* trace_db.h: makes a trace file from a database. */
#ifndef TTMON_TRACE_DB_H
#define TTMON_TRACE_DB_H

#include "lib/read/db.h"

/*
 * Writes the database's events to fd, which stays open. Call it before the allocations of db were
 * read. Returns 0 or -errno; if reading failed, ttmon_db_why() has the reason.
 */
int ttmon_trace_db(struct ttmon_db *db, int fd, bool gzip) _must_check;

#endif
