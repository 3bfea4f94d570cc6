/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * topn.h: the N names that are worth a series of their own, and `other`, with counters that never go
 * back. Pure, cold thread.
 *
 * A name keeps its series while it lives; a newcomer takes the place of the smallest only when it
 * ranks twice as high. What a name did while it had no series is in `other` and stays there: its own
 * series begins with what came after (and with all of an item that comes in the same update). So every
 * series only grows, and
 *
 *	sum over series (those that have vanished at their last value) = sum over names of what they did
 *
 * A name that vanishes takes its series with it. What a name did unseen before it vanished goes into
 * `other` too, by way of `gone`.
 */
#ifndef TTMON_TOPN_H
#define TTMON_TOPN_H

#include "lib/base/util.h"

struct ttmon_topn;

struct ttmon_topn_cfg {
	uint32_t n;	 /* names with a series, 0: all go to other */
	uint32_t sums;	 /* counters of each */
	uint32_t gauges; /* values that may fall: for `other` they are added up */
};

/*
 * Several items may have one name (a program in several cgroups); a name lives while an item has it.
 * An item may change its name: what it gains from then on is the new one's.
 */
struct ttmon_topn_item {
	uint64_t id;		/* never used again */
	const char *name;	/* copied */
	uint64_t rank;		/* bytes, or CPU time: names rank by the sum of this */
	const uint64_t *sums;	/* since the item came; never smaller than last time */
	const uint64_t *gauges; /* now */
};

struct ttmon_topn_row {
	const char *name; /* valid until the next call; NULL: other */
	const uint64_t *sums, *gauges;
};

int ttmon_topn_new(const struct ttmon_topn_cfg *cfg, struct ttmon_topn **ret) _must_check;
void ttmon_topn_free(struct ttmon_topn *t);
/*
 * Take all items there are, in the order of their ids. gone: the sums, up to their ends, of all items
 * there ever were that are no longer among them. -ENOMEM: the table is as it was.
 */
int ttmon_topn_update(struct ttmon_topn *t, const struct ttmon_topn_item *items, size_t n,
		      const uint64_t *gone) _must_check;
/* By name, other last (always there). */
size_t ttmon_topn_rows(const struct ttmon_topn *t, const struct ttmon_topn_row **ret);

#endif
