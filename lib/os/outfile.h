/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * outfile.h: a document into a file, whole or not at all: a file without a name beside PATH (mode
 * 0600), fsync'ed, named PATH.tmp.PID and renamed, so that at any time PATH is either the previous
 * document or the whole new one, and a writer that is killed leaves nothing. (Where a file system has
 * no files without names it has that name from the beginning.) A symbolic link stays what it is: the
 * file it leads to is replaced. Only what is not a regular file (a pipe, /dev/stdout, "-") is written
 * in place. No thread, no log: also for a forked child.
 */
#ifndef TTMON_OUTFILE_H
#define TTMON_OUTFILE_H

#include "lib/base/util.h"

/* Writes the document to fd, gzip where gzip says so. 0 or -errno. */
typedef int (*ttmon_outfile_fn)(int fd, bool gzip, void *ctx);

/* gzip: path ends in .gz. 0 or -errno. */
int ttmon_outfile_write(const char *path, ttmon_outfile_fn fn, void *ctx) _must_check;
/* path for a message: "-" is standard output. */
const char *ttmon_outfile_name(const char *path);

#endif
