/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shm_int.h: the parts of the writer of tt_device_<key>_memory files. Only io/tt/shm*.c use this.
 *
 *   shm.c        the table of files, whose each is, publishing
 *   shm_image.c  what a file is to hold, and the order in which it is stored
 *   shm_file.c   opening, making and marking files
 */
#ifndef TTMON_TTSHM_INT_H
#define TTMON_TTSHM_INT_H

#include <sys/stat.h>

#include "daemon/io/tt/shm.h"

/* The header is the same up to total_cb: v1 names its fields for all versions. */
union ttmon_ttshm_image {
	uint64_t words[TTMON_TT_SHM_SIZE_V1 / 8];
	struct ttmon_tt_shm_v1 v1;
	struct ttmon_tt_shm_v2 v2;
};

/* ---- shm_image.c ---- */

struct ttmon_tt_shm_mark *ttmon_ttshm_image_mark(union ttmon_ttshm_image *img, const struct ttmon_tt_shm_layout *l);
/*
 * img: what it held last, or zeros. Processes keep their entries as far as they stay compact. Returns
 * how many have none.
 */
uint32_t ttmon_ttshm_image_set(union ttmon_ttshm_image *img, unsigned int version, const struct ttmon_ttshm_chip *chip,
			       const struct ttmon_tt_shm_mark *self, uint64_t now_ns);
/* No processes, no figures; who the chip is stays. img: of a version that is known. */
void ttmon_ttshm_image_clear(union ttmon_ttshm_image *img, const struct ttmon_tt_shm_mark *self, uint64_t now_ns);
/*
 * Take out what we put in, as a program that detaches does: a program is attached to the file, and the
 * rest is its.
 */
void ttmon_ttshm_image_withdraw(union ttmon_ttshm_image *img, const union ttmon_ttshm_image *mine);
/* Does it name a process that is in none of mine's entries? alive: only such as live. */
bool ttmon_ttshm_image_strangers(const union ttmon_ttshm_image *img, const union ttmon_ttshm_image *mine, bool alive);
/* Bring a file from what it holds (*cur, kept up) to what it is to hold, word by word. 0 or -errno. */
int ttmon_ttshm_image_store(int fd, union ttmon_ttshm_image *cur, const union ttmon_ttshm_image *img) _must_check;

/* ---- shm_word.c ---- */

/*
 * Store a word: through the mapping, in one store (SIGBUS where the file is shorter), or by pwrite()
 * where map is NULL. 0 or -errno.
 */
int ttmon_ttshm_word_store(int fd, uint64_t *map, size_t word, uint64_t value) _must_check;

/* ---- shm_file.c ---- */

/* A regular file with one name, O_RDONLY. -ELOOP, -EINVAL (not a file), -EMLINK, ... */
int ttmon_ttshm_file_open(int dir_fd, const char *name, int *ret, struct stat *st) _must_check;
/* The same file for writing, if it is still there. */
int ttmon_ttshm_file_writable(int dir_fd, const char *name, const struct stat *st, int *ret) _must_check;
/* Appears under its name with this content and owner or not at all. -EEXIST: somebody was faster. */
int ttmon_ttshm_file_create(int dir_fd, const char *name, const union ttmon_ttshm_image *img, mode_t mode, uid_t uid,
			    gid_t gid, const struct ttmon_tt_shm_mark *self, struct stat *st) _must_check;
/* What it holds; past its end zeros. */
int ttmon_ttshm_file_read(int fd, union ttmon_ttshm_image *ret) _must_check;
/* Has anybody the file open or mapped for writing? 1, 0, -errno: cannot be known. fd: O_RDONLY. */
int ttmon_ttshm_file_held(int fd);
/* The mark that only root can make. False: there is none, or we are not to see it. */
bool ttmon_ttshm_file_xattr(int fd, struct ttmon_tt_shm_mark *ret);
void ttmon_ttshm_file_set_xattr(int fd, const struct ttmon_tt_shm_mark *self);
/* Can such a mark be made here? */
bool ttmon_ttshm_file_xattrs_work(int dir_fd);

#endif
