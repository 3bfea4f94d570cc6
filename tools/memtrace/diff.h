/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * diff.h: between the parts of `ttmon memtrace diff`: diff.c (the command, reading), match.c
 * (matching, comparing), diff_show.c (text, JSON).
 */
#ifndef TTMON_TOOLS_MT_DIFF_H
#define TTMON_TOOLS_MT_DIFF_H

#include "tools/memtrace/tool.h"

/* How the two sites of a pair were found to be one, surest first. */
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
	uint64_t launches; /* of its kernel; 0: not known */
	uint32_t sample;   /* one block in so many was recorded: multiply its figures by this */
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
	uint32_t sample; /* one block in so many; 1: all */
	bool plain;	 /* sums of the GPU without distinct bytes: its efficiency is of requested ones */
	bool interrupted;
	int err;
};

struct ttmon_mt_diff_pair {
	const struct ttmon_mt_diff_item *a, *b; /* one may be NULL */
	enum ttmon_mt_verdict verdict;
	bool differs;
	bool by_rates; /* a sample, sums of the GPU, or of_request: it differs where the figures of a request do */
	/*
	 * the launches of one are not known (a device function has none), or not the same share of its blocks:
	 * the cost of a request was compared
	 */
	bool of_request;
	double change; /* of the cost of all launches of A (of B where it is new), to sort by */
};

/* Of a site: sectors, or wavefronts of shared memory. */
static inline bool ttmon_mt_diff_shared(const struct ttmon_mt_diff_item *i)
{
	return i->row->space == TTMON_MT_SHARED;
}
static inline uint64_t ttmon_mt_diff_cost(const struct ttmon_mt_diff_item *i)
{
	return ttmon_mt_diff_shared(i) ? i->row->sums.waves : i->row->sums.sectors;
}
/* Where launches are not known, of all of them together. */
double ttmon_mt_diff_per_launch(const struct ttmon_mt_diff_item *i);
/* What the verdict is of: the cost of a launch, or of a request. */
double ttmon_mt_diff_compared(const struct ttmon_mt_diff_pair *p, const struct ttmon_mt_diff_item *i);

/* Finds partners, judges them, and puts what changed most first. *ret: to be freed. -ENOMEM. */
int ttmon_mt_diff_match(struct ttmon_mt_diff_side *a, struct ttmon_mt_diff_side *b, struct ttmon_mt_diff_pair **ret,
			size_t *n) _must_check;

void ttmon_mt_diff_text(const struct ttmon_mt_diff_side *sides, const struct ttmon_mt_diff_pair *pairs, size_t n,
			const struct ttmon_mt_args *args, size_t width);
/* To stdout; -errno of writing. */
int ttmon_mt_diff_json(const struct ttmon_mt_diff_side *sides, const struct ttmon_mt_diff_pair *pairs, size_t n,
		       const struct ttmon_mt_args *args, bool differs) _must_check;

#endif
