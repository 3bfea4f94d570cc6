/* SPDX-License-Identifier: GPL-2.0-only */
/* db_waits.h: where the time of synchronous calls went, as members of the database. */
#ifndef TTMON_DB_WAITS_H
#define TTMON_DB_WAITS_H

#include "daemon/core/history/history.h"
#include "lib/os/jsonw.h"

/* Member "waits" of a process: sums by kind of call; null where its calls were not seen. */
void ttmon_db_waits_process(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_proc *p);
/* Member "waits" of the document: by call site, and the calls that took longest. -ENOMEM. */
int ttmon_db_waits(struct ttmon_jsonw *w, const struct ttmon_history *h) _must_check;

#endif
