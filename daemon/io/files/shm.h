/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shm.h: the segment /dev/shm/ttmon.v1: the last closed slots with their rows, for local readers
 * (include/ttmon/shm.h is their side). Made by the cold thread, written by the hot one: stores alone,
 * no call into the kernel.
 */
#ifndef TTMON_IO_SHM_H
#define TTMON_IO_SHM_H

#include <ttmon/slot.h>

#include "lib/base/util.h"

struct ttmon_shm;

struct ttmon_shm_cfg {
	const char *root;  /* NULL: /dev/shm */
	const char *group; /* "ttmon": may read; if there is no such group only root may */
	uint32_t slots;	   /* kept, 0: 128 */
	uint32_t rows;	   /* a slot at most, 0: 256; further ones are summed up in the last */
};

/*
 * 0640. No symbolic link is followed; a file that is there is taken over only if it is a regular file
 * of ours with our magic, never truncated under a reader; another daemon that writes it is -EBUSY.
 * why: one clear line on failure.
 */
int ttmon_shm_new(const struct ttmon_shm_cfg *cfg, struct ttmon_shm **ret, char *why, size_t n) _must_check;
/* Marks the segment as ended and leaves it to readers that have it mapped; the name goes. */
void ttmon_shm_free(struct ttmon_shm *s);
/* Hot thread. */
void ttmon_shm_publish(struct ttmon_shm *s, const struct ttmon_slot *slot, const struct ttmon_slot_row *rows, size_t n);

#endif
