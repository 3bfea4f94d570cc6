/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * topn.h: chooses the N names that get a series (of a metric) of their own; the others share the
 * series `other`. No counter ever falls. Pure, cold thread.
 *
 * A name keeps its series while it exists; a new name takes the place of the smallest only if its rank
 * is twice as high. What a name did while it had no series is in `other` and stays there: its own
 * series begins with what came after (and with all of an item that is new in the same update). So
 * every series only grows, and
 *
 *         sum over series (vanished ones at their last value) = sum over names of what they did
 *
 * When a name vanishes, its series does too. What it did after the last update that saw it goes to
 * `other`, from the argument `gone`.
 */
#ifndef TTMON_TOPN_H
#define TTMON_TOPN_H

#include "lib/base/util.h"

struct ttmon_topn;

struct ttmon_topn_cfg {
	uint32_t n;	 /* names with a series; 0: all names go to `other` */
	uint32_t sums;	 /* number of counters of each name */
	uint32_t gauges; /* number of values that may fall; those of `other` are added up */
};

/*
 * An item of a name. Several items may have the same name (a program in several cgroups); a name
 * exists as long as an item has it. If an item changes its name, its growth from then on counts for
 * the new name.
 */
struct ttmon_topn_item {
	uint64_t id;		/* must not be reused */
	const char *name;	/* copied */
	uint64_t rank;		/* names are sorted by the sum of this: bytes, or CPU time */
	const uint64_t *sums;	/* totals since the item appeared; they must never fall */
	const uint64_t *gauges; /* current values */
};

struct ttmon_topn_row {
	const char *name; /* valid until the next call; NULL: the row `other` */
	const uint64_t *sums, *gauges;
};

int ttmon_topn_new(const struct ttmon_topn_cfg *cfg, struct ttmon_topn **ret) _must_check;
void ttmon_topn_free(struct ttmon_topn *t);
/*
 * Updates the table from all current items, in the order of their ids. gone: the final sums of all
 * items that ever existed and are not in items. Returns 0, or -ENOMEM: the table has not changed.
 */
int ttmon_topn_update(struct ttmon_topn *t, const struct ttmon_topn_item *items, size_t n,
		      const uint64_t *gone) _must_check;
/* Returns the rows sorted by name; `other` is always there and last. */
size_t ttmon_topn_rows(const struct ttmon_topn *t, const struct ttmon_topn_row **ret);

#endif
