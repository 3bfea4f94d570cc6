/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * quota.h: what users share, and who had to do with less. A table that is full takes from the user who
 * has most of it; so one user's flood costs that user, and others keep what is theirs. Who paid is
 * told by row.
 */
#ifndef TTMON_QUOTA_H
#define TTMON_QUOTA_H

#include "lib/base/util.h"

/* X(id, NAME, name, what was not kept). Append-only: names of metrics. */
#define TTMON_QUOTA_TABLE(X)                                                       \
	X(0, RECORDS, "records", "allocations")                                    \
	X(1, EVENTS, "events", "events of allocations")                            \
	X(2, NAMES, "names", "call sites, names of functions, rows of errors")     \
	X(3, ADVICE, "advice", "lines of live advice, allocations watched for it") \
	X(4, PROCESSES, "processes", "lines of processes that ended")              \
	X(5, MAPPINGS, "mappings", "mappings of memory")                           \
	X(6, PROBES, "probes", "files that were not probed")                       \
	X(7, BUDGET, "budget", "families of its calls that were only counted")

enum ttmon_quota {
#define X(id, NAME, name, help) TTMON_QUOTA_##NAME = id,
	TTMON_QUOTA_TABLE(X)
#undef X
		TTMON_QUOTA_MAX
};

/* One user who paid. */
struct ttmon_quota_row {
	uint64_t paid; /* so often, since the start */
	uint32_t uid;  /* UINT32_MAX: of processes whose user is not known */
	uint32_t tgid; /* of the process that paid last */
	uint8_t what;  /* enum ttmon_quota */
};

#define TTMON_QUOTA_ROWS 16 /* told at once, those who paid most */

static inline const char *ttmon_quota_name(unsigned int what)
{
	static const char *const names[] = {
#define X(id, NAME, name, help) [id] = name,
		TTMON_QUOTA_TABLE(X)
#undef X
	};

	return what < ARRAY_SIZE(names) ? names[what] : NULL;
}

static inline const char *ttmon_quota_help(unsigned int what)
{
	static const char *const helps[] = {
#define X(id, NAME, name, help) [id] = help,
		TTMON_QUOTA_TABLE(X)
#undef X
	};

	return what < ARRAY_SIZE(helps) ? helps[what] : NULL;
}

/* Puts a row among those who paid most: v has *n of TTMON_QUOTA_ROWS, in descending order. */
static inline void ttmon_quota_add(struct ttmon_quota_row *v, uint32_t *n, const struct ttmon_quota_row *row)
{
	uint32_t at = *n;

	if (!row->paid)
		return;
	while (at && v[at - 1].paid < row->paid)
		at--;
	if (at == TTMON_QUOTA_ROWS)
		return;
	*n = MIN(*n + 1, (uint32_t)TTMON_QUOTA_ROWS);
	memmove(v + at + 1, v + at, (*n - 1 - at) * sizeof(*v));
	v[at] = *row;
}

#endif
