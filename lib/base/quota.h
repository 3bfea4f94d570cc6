/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * quota.h: resources that users share, and the users that got less. When a table is full, entries are
 * taken from the user with the most. So a user that floods a table loses own entries, and other
 * users keep theirs. Each row reports one user that lost entries.
 */
#ifndef TTMON_QUOTA_H
#define TTMON_QUOTA_H

#include "lib/base/util.h"

/* X(id, NAME, name, what was not kept). Append-only, because the names are used in metrics. */
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

/* A user that lost entries. */
struct ttmon_quota_row {
	uint64_t paid; /* number of losses since the start */
	uint32_t uid;  /* UINT32_MAX: processes whose user is not known */
	uint32_t tgid; /* the process of the last loss */
	uint8_t what;  /* enum ttmon_quota */
};

#define TTMON_QUOTA_ROWS 16 /* the most rows that are reported: the users with the most losses */

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

/*
 * Inserts a row into the rows with the most losses: v has *n of TTMON_QUOTA_ROWS rows, in descending
 * order.
 */
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
