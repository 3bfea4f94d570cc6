/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * usage_int.h: the declarations that the parts of core/usage share. usage.c handles the processes and
 * the sweep, groups.c the groups.
 */
#ifndef TTMON_CORE_USAGE_INT_H
#define TTMON_CORE_USAGE_INT_H

#include <stddef.h>

#include "lib/base/hmap.h"
#include "daemon/core/usage/usage.h"

/*
 * In struct ttmon_usage_sums the figures from the history come first, then those from the scheduler.
 */
#define MEM_SUMS (offsetof(struct ttmon_usage_sums, cpu_ns) / sizeof(uint64_t))
#define CPU_SUMS (TTMON_USAGE_SUMS - MEM_SUMS)

struct usage_name {
	char comm[TTMON_COMM_LEN + 1]; /* zeros after its end */
	uint64_t cgroup_id;
};

/*
 * The figures of a group are in the array that is shown, and move there when other groups are removed.
 * The address of this node does not change.
 */
struct usage_node {
	uint32_t at;			/* place in the array */
	uint32_t living;		/* number of entries of both tables that are counted in it */
	struct usage_node *prev, *next; /* list of the groups without a living process */
};

/* A process of the history, by its index. */
struct usage_mem {
	struct usage_node *node; /* NULL: the process has ended, or no sweep has seen it yet */
	uint64_t *seen;		 /* [MEM_SUMS + 1] its figures at the last sweep, then its peak; NULL: all 0 */
	uint32_t changes;	 /* value of ttmon_proc.changes at the time of seen */
	bool refused;		 /* it was counted as refused */
};

/* A process of core/cpu, by its entry. */
struct usage_cpu {
	struct usage_node *node;
	uint64_t seen[CPU_SUMS];
	bool refused;
};

struct ttmon_usage {
	struct ttmon_usage_cfg cfg;
	struct ttmon_usage_group *v; /* by id, the nameless group first */
	struct usage_node **nodes;   /* node of each group in v; NULL: the group was removed */
	uint32_t n, cap, groups;     /* places in use including holes; capacity; groups without the nameless one */
	struct ttmon_hmap by_name;   /* hash of the name: address of the node */
	struct usage_node nameless;
	bool nameless_used;
	struct usage_node *first, *last; /* groups without a living process, the oldest end first */
	struct usage_mem *mem;
	uint32_t nr_mem;
	struct usage_cpu *cpu;
	uint32_t nr_cpu;
	uint64_t other[CPU_SUMS]; /* figures of class OTHER at the last sweep */
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
 * Returns the group of this name, creating it if needed, or NULL if there is no room for it. It is
 * valid until the next call that may create a group, unless a process was moved into it.
 */
struct usage_node *ttmon_usage_get(struct ttmon_usage *u, const struct usage_name *name);
bool ttmon_usage_is(const struct ttmon_usage *u, const struct usage_node *node, const struct usage_name *name);
/* Moves a living process from the group *of to another one; either may be NULL. */
void ttmon_usage_move(struct ttmon_usage *u, struct usage_node **of, struct usage_node *to);
/* A group without a living process has counted something more: its linger time begins again. */
void ttmon_usage_refresh(struct ttmon_usage *u, struct usage_node *node);
/* Removes groups whose linger time has passed. */
void ttmon_usage_expire(struct ttmon_usage *u, uint64_t now_ns);
/* Closes all holes in the array. */
void ttmon_usage_compact(struct ttmon_usage *u);

#endif
