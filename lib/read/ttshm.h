/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lib/read/ttshm.h: the reader of tt_device_<key>_memory files of all writers. Any process; read only.
 *
 * A file is read with pread() into one struct that is the same for all versions. It is never mapped,
 * because its owner may shrink it at any time. It is opened without following links and must be a
 * regular file. Its contents are not trusted: an impossible figure is unknown.
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
	TTMON_TTSHM_UNREADABLE, /* no permission, or it has vanished: see err */
	TTMON_TTSHM_NOT_A_FILE, /* a link, a directory, a pipe */
	TTMON_TTSHM_TRUNCATED,
	TTMON_TTSHM_VERSION,   /* unknown version */
	TTMON_TTSHM_NOT_READY, /* version 4, being created */
	TTMON_TTSHM_TORN,      /* it changed during every attempt to read it */
	TTMON_TTSHM_NONSENSE,  /* more processes than entries, or a total above 2^50 */
};
const char *ttmon_ttshm_status_text(enum ttmon_ttshm_status status);

/* Memory types in the order of enum ttmon_tt_type: dram, l1, l1_small, trace, cb, kernel. */
#define TTMON_TTSHM_TYPES   6
#define TTMON_TTSHM_UNKNOWN UINT64_MAX /* a figure that this version does not have, or that is impossible */

struct ttmon_ttshm_process {
	int32_t pid;
	char name[TTMON_TT_SHM_NAME]; /* NUL-terminated, not cleaned: escape it before printing */
	uint64_t bytes[TTMON_TTSHM_TYPES];
	uint64_t last_update_ns;
	bool alive; /* kill(pid, 0) finds it; EPERM counts as alive */
};

struct ttmon_ttshm {
	uint64_t key; /* from the file name */
	char name[64];
	enum ttmon_ttshm_status status;
	int err; /* errno if UNREADABLE */
	uint32_t version, reference_count, num_active;
	uint64_t board_serial, asic_id, last_update_ns;
	int64_t device_id;
	uint64_t bytes[TTMON_TTSHM_TYPES]; /* totals */
	bool ours;			   /* written by ttmond (see daemon/io/tt/shm.h) */
	uint32_t flags;			   /* TTMON_TT_F_* of the processes on the chip; 0 if the file is not ours */
	uint32_t mode;
	uid_t uid;
	struct ttmon_ttshm_process processes[TTMON_TT_SHM_PROCESSES];
	size_t nr_processes; /* number of entries in use, including those of dead processes */
};

/* Parses the key in "tt_device_<key>_memory"; false: another name. */
bool ttmon_ttshm_parse_name(const char *name, uint64_t *key);
/*
 * Reads all such files in dir ("/dev/shm"), sorted by name, 1024 at most; bad ones have a status. Free
 * *ret with free(). Returns 0, or -errno for the directory.
 */
int ttmon_ttshm_scan(const char *dir, struct ttmon_ttshm **ret, size_t *n);
/* Reads one file, by name in an open directory. Always fills *ret. */
void ttmon_ttshm_read(int dir_fd, const char *name, struct ttmon_ttshm *ret);
/*
 * Removes dead processes from a file (`smi -c`): subtracts their bytes from the totals, which stop at
 * 0, and closes the gaps in the list of entries if no program depends on their places (ttshm_clean.c).
 * If no process is left that uses or could write the file, all figures become 0. Returns the number of
 * dead processes, or -errno: -ELOOP (a link, or not a regular file), -EMLINK, -EACCES, -EBUSY (another
 * process is cleaning it), -EAGAIN (being created, or torn), -EPROTONOSUPPORT (version), -ENODATA (too
 * short), -EINVAL. Processes of other pid namespaces look dead.
 */
int ttmon_ttshm_cleanup(int dir_fd, const char *name);

#endif
