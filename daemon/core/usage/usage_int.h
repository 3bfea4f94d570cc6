/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * usage_int.h: what the parts of core/usage share: usage.c processes and the sweep, groups.c the
 * groups.
 */
#ifndef TTMON_CORE_USAGE_INT_H
#define TTMON_CORE_USAGE_INT_H

#include <stddef.h>

#include "lib/base/hmap.h"
#include "daemon/core/usage/usage.h"

/* What the history counts comes first in struct ttmon_usage_sums, what the scheduler does after it. */
#define MEM_SUMS (offsetof(struct ttmon_usage_sums, cpu_ns) / sizeof(uint64_t))
#define CPU_SUMS (TTMON_USAGE_SUMS - MEM_SUMS)

struct usage_name {
	char comm[TTMON_COMM_LEN + 1]; /* zeros after its end */
	uint64_t cgroup_id;
};

/*
 * A group's figures lie in the array that is shown and move there when others go; this stays where it
 * is.
 */
struct usage_node {
	uint32_t at;			/* place in the array */
	uint32_t living;		/* entries of both tables that are counted in it */
	struct usage_node *prev, *next; /* of those without a living process */
};

/* A process of the history, by its index. */
struct usage_mem {
	struct usage_node *node; /* NULL: it has ended, or has never been seen by a sweep */
	uint64_t *seen;		 /* [MEM_SUMS + 1] its figures at the last sweep, and its peak; NULL: all 0 */
	uint32_t changes;	 /* struct ttmon_proc: as of seen */
	bool refused;		 /* counted as such */
};

/* One of core/cpu, by its entry. */
struct usage_cpu {
	struct usage_node *node;
	uint64_t seen[CPU_SUMS];
	bool refused;
};

struct ttmon_usage {
	struct ttmon_usage_cfg cfg;
	struct ttmon_usage_group *v; /* by id, the nameless one first */
	struct usage_node **nodes;   /* of the same; NULL: that group has gone */
	uint32_t n, cap, groups;     /* places used, with holes; without holes and the nameless one */
	struct ttmon_hmap by_name;   /* hash of the name: address of the node */
	struct usage_node nameless;
	bool nameless_used;
	struct usage_node *first, *last; /* without a living process: the longest first */
	struct usage_mem *mem;
	uint32_t nr_mem;
	struct usage_cpu *cpu;
	uint32_t nr_cpu;
	uint64_t other[CPU_SUMS]; /* what was told of class OTHER */
	struct ttmon_usage_sums gone;
	uint64_t last_id, refused;
};

static inline struct ttmon_usage_group *ttmon_usage_at(struct ttmon_usage *u, const struct usage_node *node)
{
	return &u->v[node->at];
}

/* groups.c */
int ttmon_usage_groups_init(struct ttmon_usage *u) _must_check;
void ttmon_usage_groups_fini(struct ttmon_usage *u);
/*
 * The group of this name, made if need be; NULL: there is no room for it. Valid until the next call
 * that may make one, unless it is entered.
 */
struct usage_node *ttmon_usage_get(struct ttmon_usage *u, const struct usage_name *name);
bool ttmon_usage_is(const struct ttmon_usage *u, const struct usage_node *node, const struct usage_name *name);
/* A living process goes from the group *of into another; either may be NULL. */
void ttmon_usage_move(struct ttmon_usage *u, struct usage_node **of, struct usage_node *to);
/* A group without a living process has gained something: its time begins again. */
void ttmon_usage_refresh(struct ttmon_usage *u, struct usage_node *node);
/* Groups whose time is over go. */
void ttmon_usage_expire(struct ttmon_usage *u, uint64_t now_ns);
/* No holes from here on. */
void ttmon_usage_compact(struct ttmon_usage *u);

#endif
