/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * jobs.h: requests of discover.c to helpers (lib/os/helpers.h): everything that opens, reads or stats
 * files and memory of other users.
 *
 * The functions of the table run in a helper. What they answer is in the daemon's own structures, byte
 * by byte: both sides are the same program. The daemon gets O_PATH descriptors only: closing an open
 * file of a file system in user space can block, closing such a descriptor cannot.
 */
#ifndef TTMON_JOBS_H
#define TTMON_JOBS_H

#include <time.h>

#include "daemon/core/history/history.h"
#include "daemon/io/objects/objects.h"
#include "lib/os/helpers.h"

enum ttmon_job {
	TTMON_JOB_LIST,	   /* names and mappings of a process */
	TTMON_JOB_FILE,	   /* a file: opens it, and finds what is needed to trace it */
	TTMON_JOB_CHECK,   /* known files: checks whether they have changed */
	TTMON_JOB_SYMBOLS, /* names for offsets in a file */
	TTMON_JOB_OPEN,	   /* a known file, for another process that may read it */
	TTMON_JOB_MAPPED,  /* which of these files a process has mapped */
	TTMON_JOB_AHEAD,   /* libraries under the usual paths */
	TTMON_JOB_PLACED,  /* where a file has breakpoints */
	TTMON_JOBS
};
extern const ttmon_helper_fn ttmon_jobs[TTMON_JOBS];

/* The context of these functions. */
struct ttmon_jobs_cfg {
	const struct ttmon_user_fn *user;
	size_t nr_user;
	char *const *ahead;
	size_t nr_ahead;
};

/* Error of TTMON_JOB_FILE: the process is gone, or has something else mapped. */
#define TTMON_JOB_EGONE (-ESRCH)

/* ---- TTMON_JOB_LIST ---- */

struct ttmon_list_ask {
	uint32_t tgid;
	uint32_t names; /* 1: its names too, as facts */
};
/* What a process had mapped at one moment. */
struct ttmon_listing {
	uint32_t tgid;
	uint64_t from_ns, done_ns;
	struct ttmon_mapping *maps; /* names owned */
	size_t n;
};
void ttmon_listing_free(struct ttmon_listing *l);
/* fact: for each of the names. */
int ttmon_listing_unpack(const char *buf, size_t n, void (*fact)(void *ctx, const void *rec, size_t size), void *ctx,
			 struct ttmon_listing **ret) _must_check;

/* ---- TTMON_JOB_FILE ---- */

/* A file as it was when it was looked at. */
struct ttmon_file_stat {
	uint64_t dev, ino, size, nlink;
	uint32_t uid, pad;
	struct timespec ctim, mtim;
};
bool ttmon_file_same(const struct ttmon_file_stat *a, const struct ttmon_file_stat *b);	       /* the same, as it was */
bool ttmon_file_overwritten(const struct ttmon_file_stat *a, const struct ttmon_file_stat *b); /* of one file */
/* Of an O_PATH descriptor, without asking a server: what it said last. */
int ttmon_file_look(int fd, struct ttmon_file_stat *ret) _must_check;

/*
 * Which file: the descriptor that comes with the call; else path in root; else that of a mapping of
 * tgid, if its inode number is ino. path: of the mapping, or what the file is called.
 */
struct ttmon_file_ask {
	uint32_t tgid;
	bool read; /* else it is only opened */
	uint64_t start, end, ino;
	struct ttmon_file_stat known; /* if it is still as it was then, it is not read; ino 0: it is not known */
	const char *root, *path;      /* root "": none */
};
size_t ttmon_file_pack(const struct ttmon_file_ask *ask, char *buf, size_t n); /* 0: it does not fit */
struct ttmon_file {
	struct ttmon_file_stat st;
	bool same;		   /* it is as it was known to be, and has not been read */
	int err;		   /* of reading: -errno, as ttmon_elf_read(), or TTMON_PROBE_EUSERFS */
	struct ttmon_elf_info elf; /* owned */
};
int ttmon_file_unpack(const char *buf, size_t n, struct ttmon_file *ret) _must_check;
/*
 * Part of a helper's function: fd is the file of a held call, open for reading (borrowed). The answer
 * is that of TTMON_JOB_FILE. same: it has not been read, because its file system may be slow, or
 * because this helper has read it before.
 */
int ttmon_job_held(const struct ttmon_jobs_cfg *cfg, int fd, struct ttmon_helper_out *out);

/* ---- TTMON_JOB_CHECK ---- */

/* One file of many: the names by which it can be found, here or as the process sees it. */
struct ttmon_check_ask {
	struct ttmon_file_stat st;
	uint32_t tgid;
	uint32_t same; /* it is called so in our own root too */
	const char *name;
};
size_t ttmon_check_pack(const struct ttmon_check_ask *ask, char *buf, size_t n); /* 0: it does not fit */
/* The answer is a byte for each, 1: it is not as it was, or was not found. */

/* ---- TTMON_JOB_SYMBOLS ---- */

/*
 * The file is the descriptor that comes with the call, or path, if that is still the file. Offsets
 * ascend.
 */
struct ttmon_symbols_ask {
	struct ttmon_file_stat st;
	const char *path;
	const uint64_t *offsets;
	size_t n;
};
size_t ttmon_symbols_pack(const struct ttmon_symbols_ask *ask, char *buf, size_t n); /* 0: it does not fit */
void ttmon_symbols_unpack(const char *buf, size_t n, void (*cb)(void *ctx, size_t i, const char *name, uint64_t delta),
			  void *ctx);

/*
 * ---- TTMON_JOB_OPEN ----
 * As TTMON_JOB_SYMBOLS, without offsets. The answer is the file, open for reading.
 */

/*
 * ---- TTMON_JOB_MAPPED ----
 * uint64_t tgid, then inode numbers. The answer is a byte for each; 1: mapped executable.
 */

/*
 * ---- TTMON_JOB_AHEAD ----
 * The path of a root. The answer is the files in it: struct ttmon_file_stat, then the path with its
 * NUL, for each.
 */

/* Has it the name of one of the libraries that are probed? */
bool ttmon_object_is_named(const char *path);

/*
 * ---- TTMON_JOB_PLACED ----
 * File offsets as uint64_t, in any order, of the file that comes with the call. The answer is a byte
 * for each; 1: no breakpoint is there.
 */

#endif
