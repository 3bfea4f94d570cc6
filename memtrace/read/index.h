/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/read/index.h: what the readers of foreign formats share: sites and launches found by what
 * names them, and the masks of records that have none.
 */
#ifndef TTMON_MEMTRACE_IN_INDEX_H
#define TTMON_MEMTRACE_IN_INDEX_H

#include "memtrace/model/mt.h"

#define TTMON_MT_MAX_OP 96 /* bytes of an opcode; longer ones are none */

/*
 * Sites by kernel, place and opcode, launches by context and id. Memory: some 16 bytes for each of
 * them.
 */
struct ttmon_mt_index;

int ttmon_mt_index_new(struct ttmon_mt_dictw *dict, struct ttmon_mt_stats *stats,
		       struct ttmon_mt_index **ret); /* -ENOMEM */
void ttmon_mt_index_free(struct ttmon_mt_index *ix);

/*
 * A launch that the source describes. One that records named before is filled in; one of the same name
 * that is described already is another one, from now on meant by it: the program began again. Its
 * index; -errno as ttmon_mt_dict_launch().
 */
int64_t ttmon_mt_index_add(struct ttmon_mt_index *ix, const struct ttmon_mt_launch *launch);
/*
 * Returns the index of the launch that a record names, a placeholder if it is not described; or
 * -errno.
 */
int64_t ttmon_mt_index_launch(struct ttmon_mt_index *ix, uint64_t ctx, uint64_t id);
bool ttmon_mt_index_has(const struct ttmon_mt_index *ix, uint64_t ctx, uint64_t id); /* described */
/* Every launch that is described so far gets its id less one. -ENOMEM. */
int ttmon_mt_index_shift(struct ttmon_mt_index *ix);

/*
 * The site of an opcode of len (1 to TTMON_MT_MAX_OP) bytes in the kernel of a launch. operand: as of
 * ttmon_mt_sass(). like: pc, line and, where the opcode is not known, width (0: by the opcode) of a
 * site that is not there yet. Its index; -ENOENT: it accesses no memory; -errno. Counts
 * stats->unknown_op.
 */
int64_t ttmon_mt_index_site(struct ttmon_mt_index *ix, uint32_t launch, const char *op, size_t len,
			    unsigned int operand, const struct ttmon_mt_site *like);
/*
 * Which memory operand of LDGSTS addresses are: 0 where they are offsets in shared memory, 1; 0 of any
 * other opcode.
 */
unsigned int ttmon_mt_operand(const char *op, size_t len, const uint64_t *addr, uint32_t mask);
/*
 * The lanes whose addresses count for a SASS opcode: of LDSM and STSM the first 8 for one matrix of 8
 * rows, 16 for two (".2") or for one of 16 rows, all for four (".4"); all of any other.
 */
uint32_t ttmon_mt_row_lanes(const char *op, size_t len);

/* Where global addresses were, of records that left no doubt. */
struct ttmon_mt_bounds {
	uint64_t low, high; /* both 0: not known */
};

/*
 * The lanes that were on, from 32 addresses alone: those that are not 0, but where a shared or local
 * offset of 0 goes on with its neighbours; without those that are no addresses of global memory, or
 * are far (4 GiB) from all that is known while half of the others are not. threads: of the block,
 * where it is known: a block of less than a warp has no more lanes. 0: there is no lane that could
 * have been on.
 */
uint32_t ttmon_mt_infer(const uint64_t *addr, unsigned int space, struct ttmon_mt_bounds *range, uint64_t threads);

#endif
