/* SPDX-License-Identifier: GPL-2.0-only */
/* proc.h: what /proc says about a process. Any thread; reads files. */
#ifndef TTMON_PROC_H
#define TTMON_PROC_H

#include <sys/types.h>

#include "lib/base/util.h"

/* The file, or as much of it as fits, NUL-terminated. How many bytes, or -errno. Does not wait. */
ssize_t ttmon_proc_read_file(const char *path, char *buf, size_t size) _must_check;
/*
 * The file of that name in /proc/PID; root: "/proc" (NULL), or a copy of it. -ESRCH: there is no such
 * process.
 */
ssize_t ttmon_proc_read(const char *root, uint32_t pid, const char *name, char *buf, size_t size) _must_check;
/*
 * The number in the line of text that begins with name and a blank, as in /proc/PID/status and
 * /proc/vmstat.
 */
bool ttmon_proc_number(const char *text, const char *name, int base, uint64_t *ret) _must_check;
/* That of /proc/PID/status: "Tgid:", 10; "CapEff:", 16. */
bool ttmon_proc_status(uint32_t pid, const char *name, int base, uint64_t *ret) _must_check;
/*
 * Its effective user and group, root's where it may not be dumped (proc(5)); ret_gid may be NULL.
 * False: it is gone.
 */
bool ttmon_proc_owner(uint32_t pid, uid_t *ret_uid, gid_t *ret_gid) _must_check;

/* Of proc_pid_stat(5). */
struct ttmon_proc_stat {
	char state;	    /* 'Z' and 'X': it has ended */
	unsigned int flags; /* PF_* of include/linux/sched.h */
	uint64_t start;	    /* clock ticks since boot, never 0: with the pid, who a process is */
};

/*
 * root: "/proc" (NULL), or a copy of it. -ESRCH: no such process; -EINVAL: the file is not as it
 * should be.
 */
int ttmon_proc_read_stat(const char *root, uint32_t pid, struct ttmon_proc_stat *ret) _must_check;
/* Start time of a process that has not been reaped, as above; 0: there is none. */
uint64_t ttmon_proc_start(uint32_t pid);
/* The same of a process that still runs: of one that has ended and was not reaped (a zombie) 0. */
uint64_t ttmon_proc_alive(uint32_t pid);
/* The name of its first thread, "?" where it is gone. Returns buf, of at least 16 bytes. */
char *ttmon_proc_comm(uint32_t pid, char buf[16]);
/* The process that a thread belongs to; the thread itself if that cannot be known. */
uint32_t ttmon_proc_tgid(uint32_t tid);

#endif
