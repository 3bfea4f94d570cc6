/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * seqtab.h: a sparse array from an ever growing 64-bit number to a 32-bit value: a radix tree of
 * 32-way nodes in which a node that has become empty is freed. A million neighbours cost 4.5 bytes
 * each; one that stays behind for months costs a path.
 */
#ifndef TTMON_SEQTAB_H
#define TTMON_SEQTAB_H

#include "lib/base/util.h"

#define TTMON_SEQTAB_NONE UINT32_MAX /* not a value */
#define TTMON_SEQTAB_END  UINT64_MAX

struct ttmon_seqtab {
	void *root;
	unsigned int height; /* levels; 0: empty */
};

int ttmon_seqtab_put(struct ttmon_seqtab *t, uint64_t seq, uint32_t val) _must_check;
uint32_t ttmon_seqtab_get(const struct ttmon_seqtab *t, uint64_t seq);
void ttmon_seqtab_del(struct ttmon_seqtab *t, uint64_t seq);
/* The first number at or after seq that has a value, TTMON_SEQTAB_END if there is none. */
uint64_t ttmon_seqtab_next(const struct ttmon_seqtab *t, uint64_t seq);
void ttmon_seqtab_fini(struct ttmon_seqtab *t);

#endif
