/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * period_view.h: the history by periods (core/history/periods.h): what one process moved in one of its
 * periods, from the events that are kept. Pure. It reads the whole history, so it is meant for a
 * forked child.
 */
#ifndef TTMON_PERIOD_VIEW_H
#define TTMON_PERIOD_VIEW_H

#include "daemon/core/history/history.h"
#include "daemon/core/history/periods.h"

struct ttmon_period_query {
	uint32_t proc;	   /* index */
	const char *label; /* NULL: the label that the process used most */
	int64_t period;	   /* negative: counted back from the last checkpoint, -1 is the last complete period */
};

/* Host memory of one call site and method (mappings without one: of one name, or one mapping). */
struct ttmon_period_spot {
	uint32_t site;
	uint8_t method, advice; /* of all periods; enum ttmon_advice */
	bool in_place;
	uint32_t allocs;    /* allocations of the group that existed in the period */
	uint64_t size;	    /* of the largest of them */
	uint64_t bytes;	    /* of all of them */
	uint64_t alloc_seq; /* the first of the group */
	const char *name;   /* of a mapping, borrowed; NULL */
	struct ttmon_period_row row;
	struct ttmon_period_gain gain;
};

struct ttmon_period_view {
	const char *label; /* borrowed */
	uint32_t of;	   /* complete periods: `period` is one of these, or the time after them */
	uint32_t period;
	uint64_t from_ns, to_ns;
	/*
		 * checkpoints of the process, of any label, that were dropped: periods count from the first one kept
		 */
	uint64_t dropped;
	bool whole;			 /* everything seen in the period is still kept */
	struct ttmon_period_spot *spots; /* in order of their first allocation */
	uint32_t n;
};

/*
 * -ENOENT: the process has no such label, or not that many periods (*ret untouched); -ENOMEM, -E2BIG.
 * Free with ttmon_period_view_fini().
 */
int ttmon_history_period(const struct ttmon_history *h, const struct ttmon_period_query *q, uint64_t now_ns,
			 struct ttmon_period_view *ret) _must_check;
void ttmon_period_view_fini(struct ttmon_period_view *v);

#endif
