/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * outfile.h: writes a document to a file, completely or not at all. The document goes to a file
 * without a name in the folder of PATH (mode 0600), which is fsync'ed, named PATH.tmp.PID and renamed
 * to PATH. So at any time PATH is either the previous or the complete new document, and a writer that
 * is killed leaves nothing. (If the file system does not support files without a name, the file is
 * called PATH.tmp.PID from the beginning.) If PATH is a symbolic link, the file that it points to is
 * replaced. If PATH is not a regular file (a pipe, /dev/stdout, "-"), it is written in place. No
 * thread, no log: it can be used in a forked child.
 */
#ifndef TTMON_OUTFILE_H
#define TTMON_OUTFILE_H

#include "lib/base/util.h"

/* Writes the document to fd, compressed if gzip is true. Returns 0 or -errno. */
typedef int (*ttmon_outfile_fn)(int fd, bool gzip, void *ctx);

/* Compresses if path ends in .gz. Returns 0 or -errno. */
int ttmon_outfile_write(const char *path, ttmon_outfile_fn fn, void *ctx) _must_check;
/* Returns path for a message: "standard output" for "-". */
const char *ttmon_outfile_name(const char *path);

#endif
