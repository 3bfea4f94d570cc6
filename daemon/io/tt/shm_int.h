/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shm_int.h: the parts of the writer of tt_device_<key>_memory files. Only io/tt/shm*.c use this.
 *
 *   shm.c        the table of files, their ownership, publishing
 *   shm_image.c  the content of a file, and the order in which it is stored
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
 * img: the previous content, or zeros. Processes keep their entries as far as they stay compact.
 * Returns how many got no entry.
 */
uint32_t ttmon_ttshm_image_set(union ttmon_ttshm_image *img, unsigned int version, const struct ttmon_ttshm_chip *chip,
			       const struct ttmon_tt_shm_mark *self, uint64_t now_ns);
/* Removes processes and figures; the chip's identity stays. img: of a known version. */
void ttmon_ttshm_image_clear(union ttmon_ttshm_image *img, const struct ttmon_tt_shm_mark *self, uint64_t now_ns);
/*
 * Removes our values, as a program that detaches does: a program is attached to the file, and the rest
 * belongs to it.
 */
void ttmon_ttshm_image_withdraw(union ttmon_ttshm_image *img, const union ttmon_ttshm_image *mine);
/* True if it has a process that is in none of mine's entries. alive: only running ones count. */
bool ttmon_ttshm_image_strangers(const union ttmon_ttshm_image *img, const union ttmon_ttshm_image *mine, bool alive);
/*
 * Changes a file from its present content (*cur, kept up to date) to the new one, word by word. 0 or
 * -errno.
 */
int ttmon_ttshm_image_store(int fd, union ttmon_ttshm_image *cur, const union ttmon_ttshm_image *img) _must_check;

/* ---- shm_word.c ---- */

/*
 * Stores a word: through the mapping, in one store (SIGBUS if the file is shorter), or by pwrite() if
 * map is NULL. 0 or -errno.
 */
int ttmon_ttshm_word_store(int fd, uint64_t *map, size_t word, uint64_t value) _must_check;

/* ---- shm_file.c ---- */

/* A regular file with one name, O_RDONLY. -ELOOP, -EINVAL (not a file), -EMLINK, ... */
int ttmon_ttshm_file_open(int dir_fd, const char *name, int *ret, struct stat *st) _must_check;
/* The same file for writing, if it is still there. */
int ttmon_ttshm_file_writable(int dir_fd, const char *name, const struct stat *st, int *ret) _must_check;
/*
 * The file appears under its name with this content and owner, or not at all. -EEXIST: another process
 * was faster.
 */
int ttmon_ttshm_file_create(int dir_fd, const char *name, const union ttmon_ttshm_image *img, mode_t mode, uid_t uid,
			    gid_t gid, const struct ttmon_tt_shm_mark *self, struct stat *st) _must_check;
/* Reads the content; zeros past its end. */
int ttmon_ttshm_file_read(int fd, union ttmon_ttshm_image *ret) _must_check;
/* True if a process has the file open or mapped for writing. 1, 0, -errno: unknown. fd: O_RDONLY. */
int ttmon_ttshm_file_held(int fd);
/* The mark that only root can set. False: there is none, or we may not read it. */
bool ttmon_ttshm_file_xattr(int fd, struct ttmon_tt_shm_mark *ret);
void ttmon_ttshm_file_set_xattr(int fd, const struct ttmon_tt_shm_mark *self);
/* True if such a mark can be set here. */
bool ttmon_ttshm_file_xattrs_work(int dir_fd);

#endif
