/* SPDX-License-Identifier: GPL-2.0-only */
/* ttshm_int.h: shared by ttshm.c (reader) and ttshm_clean.c (`smi -c`). */
#ifndef TTMON_LIB_TTSHM_INT_H
#define TTMON_LIB_TTSHM_INT_H

#include <sys/stat.h>

#include "lib/read/ttshm.h"

/* The header is the same in all versions up to total_cb, so the names of v1 are used for all. */
union ttmon_ttshm_words {
	uint64_t words[TTMON_TT_SHM_SIZE_V1 / 8];
	struct ttmon_tt_shm_v1 v1;
	struct ttmon_tt_shm_v2 v2;
};

/* Opens a regular file without following links. *st is filled as far as possible. */
enum ttmon_ttshm_status ttmon_ttshm_open(int dir_fd, const char *name, int flags, int *ret, struct stat *st, int *err);
/* Reads the whole file, as it was at one moment if possible; the rest is zeros. size: of the file. */
enum ttmon_ttshm_status ttmon_ttshm_read_words(int fd, off_t size, union ttmon_ttshm_words *ret, int *err);
bool ttmon_ttshm_alive(int32_t pid);

#endif
