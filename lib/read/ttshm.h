/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * daemon/io/tt/shm.h: reader of tt_device_<key>_memory files, whoever writes them. Any process; read
 * only.
 *
 * A file is read with pread() into one normalized struct, never mapped: its owner may shrink it at any
 * time. It is opened without following links, must be a regular file, and nothing in it is believed
 * beyond its layout: a figure that cannot be is unknown.
 */
#ifndef TTMON_LIB_TTSHM_H
#define TTMON_LIB_TTSHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <ttmon/tt_shm.h>

enum ttmon_ttshm_status {
	TTMON_TTSHM_OK,
	TTMON_TTSHM_UNREADABLE, /* permission, vanished: err says */
	TTMON_TTSHM_NOT_A_FILE, /* a link, a directory, a pipe */
	TTMON_TTSHM_TRUNCATED,
	TTMON_TTSHM_VERSION,   /* unknown version */
	TTMON_TTSHM_NOT_READY, /* version 4, being made */
	TTMON_TTSHM_TORN,      /* changed while it was read, every time */
	TTMON_TTSHM_NONSENSE,  /* more processes than entries, a total past 2^50 */
};
const char *ttmon_ttshm_status_text(enum ttmon_ttshm_status status);

/* Types in the order of enum ttmon_tt_type: dram, l1, l1_small, trace, cb, kernel. */
#define TTMON_TTSHM_TYPES   6
#define TTMON_TTSHM_UNKNOWN UINT64_MAX /* a figure this version does not have, or that cannot be */

struct ttmon_ttshm_process {
	int32_t pid;
	char name[TTMON_TT_SHM_NAME]; /* NUL-terminated; bytes as they are: escape before printing */
	uint64_t bytes[TTMON_TTSHM_TYPES];
	uint64_t last_update_ns;
	bool alive; /* kill(pid, 0) finds it; EPERM means alive */
};

struct ttmon_ttshm {
	uint64_t key; /* of the name */
	char name[64];
	enum ttmon_ttshm_status status;
	int err; /* errno with UNREADABLE */
	uint32_t version, reference_count, num_active;
	uint64_t board_serial, asic_id, last_update_ns;
	int64_t device_id;
	uint64_t bytes[TTMON_TTSHM_TYPES]; /* totals */
	bool ours;			   /* written by ttmond (see io/tt/shm.h) */
	uint32_t flags;			   /* TTMON_TT_F_* of the processes on the chip; 0 where not ours */
	uint32_t mode;
	uid_t uid;
	struct ttmon_ttshm_process processes[TTMON_TT_SHM_PROCESSES];
	size_t nr_processes; /* entries in use, dead ones too */
};

/* The key in "tt_device_<key>_memory"; false: another name. */
bool ttmon_ttshm_parse_name(const char *name, uint64_t *key);
/*
 * All such files in dir ("/dev/shm"), by name, 1024 at most; bad ones with their status. Frees with
 * free(). 0 or -errno (the directory).
 */
int ttmon_ttshm_scan(const char *dir, struct ttmon_ttshm **ret, size_t *n);
/* One file, by name in an open directory. Always fills *ret. */
void ttmon_ttshm_read(int dir_fd, const char *name, struct ttmon_ttshm *ret);
/*
 * Take dead processes out of a file (`smi -c`): their bytes off the totals, clamped at 0, entries kept
 * compact where no program minds (ttshm_clean.c). Where no process and nobody who could write is left,
 * all figures go to 0. Returns how many were dead, or -errno: -ELOOP (a link, not a file), -EMLINK,
 * -EACCES, -EBUSY (somebody else is cleaning), -EAGAIN (being made, torn), -EPROTONOSUPPORT (version),
 * -ENODATA (too short), -EINVAL. Processes of other pid namespaces look dead.
 */
int ttmon_ttshm_cleanup(int dir_fd, const char *name);

#endif
