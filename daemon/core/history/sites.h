/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sites.h: call sites. Raw stacks are interned per process when they come; their objects and file
 * offsets are resolved later, when the facts about the process's mappings had time to arrive.
 */
#ifndef TTMON_SITES_H
#define TTMON_SITES_H

#include "lib/base/hmap.h"
#include "daemon/core/history/maps.h"
#include "daemon/core/history/symtab.h"

#define TTMON_SITES_MAX	 (1u << 18)
#define TTMON_STACKS_MAX (1u << 16) /* per process */
#define TTMON_STACK_NONE UINT32_MAX

struct ttmon_stack;

/* The raw stacks of one process. */
struct ttmon_stacks {
	struct ttmon_stack **v;
	uint32_t n, cap;
	struct ttmon_hmap by_hash;
};

/* Index of the stack. -ENOSPC, -ENOMEM. */
int ttmon_stacks_intern(struct ttmon_stacks *s, const uint64_t *frames, uint32_t n, uint32_t *ret) _must_check;
void ttmon_stacks_fini(struct ttmon_stacks *s);

/* All sites; index 0 is the unknown one. */
struct ttmon_sites {
	struct ttmon_site *v;
	uint32_t n, cap;
	struct ttmon_hmap by_key;
};

/* Where and when an allocation was made. */
struct ttmon_site_query {
	struct ttmon_stacks *stacks;
	uint32_t stack;
	const struct ttmon_maps *maps;
	uint64_t ts_ns;
	const uint64_t *execs; /* ascending: what came before an exec does not apply after it */
	uint32_t nr_execs;
	bool final;	/* resolve with what is known */
	bool as_before; /* leave out the same frames as last time for this stack while the mappings are unchanged */
	bool refuse;	/* no new site: this user has enough of them */
};

int ttmon_sites_init(struct ttmon_sites *s) _must_check;
/*
 * -EAGAIN: a frame is in no known mapping yet and the query is not final. -ENOSPC, -EDQUOT (refuse),
 * -ENOMEM: the site stays unknown.
 */
int ttmon_sites_resolve(struct ttmon_sites *s, struct ttmon_symtab *symtab, const struct ttmon_site_query *q,
			uint32_t *ret) _must_check;
void ttmon_sites_fini(struct ttmon_sites *s);

#endif
