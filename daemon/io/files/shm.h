/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shm.h: the segment /dev/shm/ttmon.v1: the last closed slots with their rows, for local readers
 * (include/ttmon/shm.h is the readers' side). The cold thread creates it; the hot thread writes it
 * with stores only, without a system call.
 */
#ifndef TTMON_IO_SHM_H
#define TTMON_IO_SHM_H

#include <ttmon/slot.h>

#include "lib/base/util.h"

struct ttmon_shm;

struct ttmon_shm_cfg {
	const char *root;  /* NULL: /dev/shm */
	const char *group; /* "ttmon": the group that may read; without such a group only root may */
	uint32_t slots;	   /* number kept, 0: 128 */
	uint32_t rows;	   /* most rows of a slot, 0: 256; further ones are summed up in one row */
};

/*
 * Creates the segment with mode 0640. Symbolic links are not followed; an existing file is replaced
 * only if it is a regular file of ours with our magic, and never truncated under a reader; -EBUSY if
 * another daemon writes it. why: one clear line on failure.
 */
int ttmon_shm_new(const struct ttmon_shm_cfg *cfg, struct ttmon_shm **ret, char *why, size_t n) _must_check;
/* Marks the segment as ended and leaves it to readers that have it mapped; the name goes. */
void ttmon_shm_free(struct ttmon_shm *s);
/* Hot thread. */
void ttmon_shm_publish(struct ttmon_shm *s, const struct ttmon_slot *slot, const struct ttmon_slot_row *rows, size_t n);

#endif
