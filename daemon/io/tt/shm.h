/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shm.h: publishes the figures of chips as /dev/shm/tt_device_<key>_memory files
 * (include/ttmon/tt_shm.h). Cold thread.
 *
 * One writer per file: ours are marked (shm.c describes how), so that a restarted daemon takes them
 * over and sets every figure again instead of adding to it. A file that a program made is never
 * written to. No link is followed, no file is removed, nothing shrinks; a file appears with its full
 * size and its first content.
 *
 * Changes by other processes are handled at the next publish: a removed file is made again, what a
 * reader's clean-up removed is restored, and a file that a program attached to is left to that program
 * until it ends. So publish now and then even if no figure changes.
 */
#ifndef TTMON_TTSHM_H
#define TTMON_TTSHM_H

#include <sys/types.h>
#include <ttmon/event.h>
#include <ttmon/tt_shm.h>

#include "daemon/core/tt/tt.h"
#include "lib/base/util.h"

struct ttmon_ttshm_writer;

struct ttmon_ttshm_user {
	uint32_t tgid;
	uid_t uid; /* versions 2 to 4: the file is its first user's, 0600 */
	gid_t gid;
	char name[TTMON_COMM_LEN];
	uint64_t bytes[TTMON_TT_TYPES];
};

struct ttmon_ttshm_chip {
	uint32_t index; /* of the TT_CHIP fact */
	uint64_t key;	/* by version: key_v1 or unique id (0: unknown; the caller leaves the chip out) */
	uint64_t board_id;
	int32_t device_id; /* logical id of the first user, else -1: no chip_stats */
	bool remote;	   /* the far half of a board: is_remote of the file's first chip, which is the chip itself */
	uint32_t flags;	   /* for the mark: what is wrong with the figures, also of processes that are not users */
	bool unknown;	   /* nothing is known about its memory, so no file is made for it */
	const struct ttmon_ttshm_user *users; /* those of one tgid share an entry */
	size_t nr_users;
};

enum ttmon_ttshm_state {
	TTMON_TTSHM_PUBLISHED,
	TTMON_TTSHM_FOREIGN, /* a program publishes there by itself: only read */
	TTMON_TTSHM_REFUSED, /* a link, not a file, another owner, no space: err says */
	TTMON_TTSHM_IDLE,    /* versions 2 to 4: no file yet, it is made for its first user */
	TTMON_TTSHM_UNKNOWN, /* no file: nothing is known, and zeros would be taken for figures */
};

struct ttmon_ttshm_report {
	uint32_t index;
	uint64_t key;
	enum ttmon_ttshm_state state;
	/*
	 * REFUSED: -errno (-EBUSY: another daemon's). FOREIGN: -ESTALE when its program is gone and it could
	 * be removed, else 0
	 */
	int err;
	char path[128];
	uint32_t left_out; /* users beyond the 64 entries: in the totals, without an entry */
};

/* version 1..4. dir: "/dev/shm"; it need not be there yet. */
int ttmon_ttshm_writer_new(const char *dir, unsigned int version, struct ttmon_ttshm_writer **ret) _must_check;
/*
 * Sets every file to these figures; a chip that is no longer among them gets zeros. Totals are the
 * sums of the users. now: real time.
 */
void ttmon_ttshm_publish(struct ttmon_ttshm_writer *w, const struct ttmon_ttshm_chip *chips, size_t n, uint64_t now_ns);
/* Results for the chips of the last publish. */
const struct ttmon_ttshm_report *ttmon_ttshm_reports(const struct ttmon_ttshm_writer *w, size_t *n);
/* Sets our figures to zero and closes; files stay. */
void ttmon_ttshm_writer_free(struct ttmon_ttshm_writer *w);

#endif
