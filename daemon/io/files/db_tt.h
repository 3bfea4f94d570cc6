/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * db_tt.h: everything of Tenstorrent that a run has seen, as tables, and the member "tenstorrent" of
 * the database made from them. Also used by the trace file.
 */
#ifndef TTMON_DB_TT_H
#define TTMON_DB_TT_H

#include "daemon/core/stream/pipeline.h"
#include "daemon/core/stream/timeline.h"
#include "daemon/core/tt/tt.h"
#include "lib/os/jsonw.h"

struct ttmon_tt_tables {
	struct ttmon_tt_view view; /* owned */
	/* Borrowed. */
	const struct ttmon_tt_dispatch_sum *sums;
	size_t nr_sums;
	const struct ttmon_tt_program *programs;
	size_t nr_programs;
	const struct ttmon_tt_clock *clocks;
	size_t nr_clocks;
	const struct ttmon_timeline *timeline; /* may be NULL */
	uint32_t unprobed;		       /* see ttmon_dispatch_unprobed() */
};

/* Valid until the pipeline is fed. -ENOMEM. */
int ttmon_tt_tables_init(struct ttmon_tt_tables *t, struct ttmon_pipeline *p) _must_check;
void ttmon_tt_tables_fini(struct ttmon_tt_tables *t);
/* True if nothing of Tenstorrent was seen, not even a chip. */
bool ttmon_tt_tables_empty(const struct ttmon_tt_tables *t);

/* Writes the member's key and value, and a line break; nothing if the tables are empty. */
void ttmon_db_tt(struct ttmon_jsonw *w, const struct ttmon_tt_tables *t);

#endif
