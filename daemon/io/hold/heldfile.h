/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * heldfile.h: opens the file that a held system call is about to map or to execute.
 *
 * Everything here is chosen by the command and may change between our check and the system call: the
 * caller checks afterwards that the thread still waits, and a file that was exchanged is found by
 * discovery (perf MMAP2) as any other. Only regular files are opened: opening a device may have
 * effects.
 *
 * Access to its memory, folders and files may block for ever: in the daemon this runs in a helper
 * (lib/os/helpers.h).
 */
#ifndef TTMON_HELDFILE_H
#define TTMON_HELDFILE_H

#include <linux/seccomp.h>

#include "lib/os/helpers.h"

/*
 * mmap: the mapped file. execve, execveat: the program; for a script the interpreter's ELF (followed
 * up to 4 levels). *ret: a new fd, O_RDONLY. -ENOEXEC: not a regular file. -EACCES: execve will refuse
 * it. Other errors as from open(2).
 */
int ttmon_heldfile_open(const struct seccomp_notif *notif, int *ret) _must_check;
/* True for an ELF file. */
bool ttmon_heldfile_is_program(int fd);
/*
 * A helper's function: in is the seccomp_notif; the answer is the file as an O_PATH descriptor, and a
 * byte, 1: it is an ELF file.
 */
int ttmon_heldfile_job(const void *ctx, const void *in, size_t n, int fd, struct ttmon_helper_out *out);

#endif
