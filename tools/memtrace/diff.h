/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * diff.h: shared by the parts of `ttmon memtrace diff`: diff.c (command, reading), match.c (matching,
 * comparing), diff_show.c (text, JSON).
 */
#ifndef TTMON_TOOLS_MT_DIFF_H
#define TTMON_TOOLS_MT_DIFF_H

#include "tools/memtrace/tool.h"

/* How the two sites of a pair were matched, the most certain first. */
enum ttmon_mt_how_matched {
	TTMON_MT_HOW_EXACT,
	TTMON_MT_HOW_LINE,
	TTMON_MT_HOW_SOURCE,
	TTMON_MT_HOW_OPCODE,
	TTMON_MT_HOW_KIND,
	TTMON_MT_HOWS
};

enum ttmon_mt_verdict {
	TTMON_MT_SAME,
	TTMON_MT_BETTER,
	TTMON_MT_WORSE,
	TTMON_MT_NEW,
	TTMON_MT_GONE,
	TTMON_MT_VERDICTS
};

struct ttmon_mt_diff_item {
	const struct ttmon_mt_site_row *row;
	const struct ttmon_mt_site *site;
	uint64_t launches; /* number of launches of its kernel; 0: not known */
	uint32_t sample;   /* one of this many blocks was recorded: multiply the figures by it */
	struct ttmon_mt_diff_item *other;
	enum ttmon_mt_how_matched how;
};

struct ttmon_mt_diff_side {
	const char *path;
	struct ttmon_mt_in *in;
	struct ttmon_mt_an *an;
	struct ttmon_mt_pick pick;
	struct ttmon_mt_diff_item *items; /* owned */
	size_t nr;
	uint32_t sample; /* one of this many blocks was recorded; 1: all */
	bool plain;	 /* the sums of the GPU have no distinct bytes: the efficiency is that of requested bytes */
	bool interrupted;
	int err;
};

struct ttmon_mt_diff_pair {
	const struct ttmon_mt_diff_item *a, *b; /* one of them may be NULL */
	enum ttmon_mt_verdict verdict;
	bool differs;
	/* sampled blocks, sums of the GPU, or of_request: the pair differs if the figures of a request do */
	bool by_rates;
	/*
	 * The cost of a request was compared, because the launches of one side are not known (a device
	 * function has none), or a different share of its blocks was recorded.
	 */
	bool of_request;
	/* difference relative to the cost of all launches of A (of B if the site is new); used to sort */
	double change;
};

/* Returns the cost of a site: sectors, or wavefronts for shared memory. */
static inline bool ttmon_mt_diff_shared(const struct ttmon_mt_diff_item *i)
{
	return i->row->space == TTMON_MT_SHARED;
}
static inline uint64_t ttmon_mt_diff_cost(const struct ttmon_mt_diff_item *i)
{
	return ttmon_mt_diff_shared(i) ? i->row->sums.waves : i->row->sums.sectors;
}
/* Returns the cost of one launch; if the number of launches is not known, of all of them. */
double ttmon_mt_diff_per_launch(const struct ttmon_mt_diff_item *i);
/* Returns the figure that the comparison uses: the cost of a launch, or of a request. */
double ttmon_mt_diff_compared(const struct ttmon_mt_diff_pair *p, const struct ttmon_mt_diff_item *i);

/*
 * Matches the sites, compares each pair, and sorts by change, the largest first. *ret: freed by the
 * caller. Returns 0 or -ENOMEM.
 */
int ttmon_mt_diff_match(struct ttmon_mt_diff_side *a, struct ttmon_mt_diff_side *b, struct ttmon_mt_diff_pair **ret,
			size_t *n) _must_check;

void ttmon_mt_diff_text(const struct ttmon_mt_diff_side *sides, const struct ttmon_mt_diff_pair *pairs, size_t n,
			const struct ttmon_mt_args *args, size_t width);
/* Prints JSON to stdout. Returns 0 or -errno of the write. */
int ttmon_mt_diff_json(const struct ttmon_mt_diff_side *sides, const struct ttmon_mt_diff_pair *pairs, size_t n,
		       const struct ttmon_mt_args *args, bool differs) _must_check;

#endif
