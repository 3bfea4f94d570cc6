/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * seqtab.h: a sparse array from growing 64-bit numbers to 32-bit values: a radix tree of 32-way nodes.
 * Empty nodes are freed. A million adjacent numbers take 4.5 bytes each; a single old number that
 * stays takes one path of nodes.
 */
#ifndef TTMON_SEQTAB_H
#define TTMON_SEQTAB_H

#include "lib/base/util.h"

#define TTMON_SEQTAB_NONE UINT32_MAX /* means "no value"; cannot be stored */
#define TTMON_SEQTAB_END  UINT64_MAX

struct ttmon_seqtab {
	void *root;
	unsigned int height; /* levels; 0: empty */
};

int ttmon_seqtab_put(struct ttmon_seqtab *t, uint64_t seq, uint32_t val) _must_check;
uint32_t ttmon_seqtab_get(const struct ttmon_seqtab *t, uint64_t seq);
void ttmon_seqtab_del(struct ttmon_seqtab *t, uint64_t seq);
/* Returns the first number at or after seq that has a value, TTMON_SEQTAB_END if there is none. */
uint64_t ttmon_seqtab_next(const struct ttmon_seqtab *t, uint64_t seq);
void ttmon_seqtab_fini(struct ttmon_seqtab *t);

#endif
