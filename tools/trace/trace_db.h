/* SPDX-License-Identifier: GPL-2.0-only */
/* trace_db.h: a trace file out of a database. */
#ifndef TTMON_TRACE_DB_H
#define TTMON_TRACE_DB_H

#include "lib/read/db.h"

/*
 * The database's events to fd, which stays open. The allocations must not have been read yet. 0 or
 * -errno; where the reader failed, ttmon_db_why() says why.
 */
int ttmon_trace_db(struct ttmon_db *db, int fd, bool gzip) _must_check;

#endif
