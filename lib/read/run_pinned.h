/* SPDX-License-Identifier: GPL-2.0-only */
/* run_pinned.h: how many pages the allocations of a run had pinned. Pure. */
#ifndef TTMON_LIB_RUN_PINNED_H
#define TTMON_LIB_RUN_PINNED_H

#include "lib/read/run.h"

struct ttmon_run_pinned {
	uint64_t end_pages, peak_pages; /* pages of 4 KiB; where allocations overlap each counts */
	bool at_least;			/* both are lower bounds: not all that was pinned is known */
	bool end_unknown;		/* what may still be pinned at the end is not known */
};
/* -ENOMEM. */
int ttmon_run_count_pinned(const struct ttmon_run *run, struct ttmon_run_pinned *ret) _must_check;

#endif
