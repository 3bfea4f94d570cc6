/* SPDX-License-Identifier: GPL-2.0-only */
/* proc.h: reads information about processes from /proc. Any thread; reads files. */
#ifndef TTMON_PROC_H
#define TTMON_PROC_H

#include <sys/types.h>

#include "lib/base/util.h"

/*
 * Reads as much of a file as fits, NUL-terminated. Returns the number of bytes, or -errno. Does not
 * block.
 */
ssize_t ttmon_proc_read_file(const char *path, char *buf, size_t size) _must_check;
/*
 * Reads the file of that name in /proc/PID; root: "/proc" (NULL), or a copy of it. -ESRCH: there is no
 * such process.
 */
ssize_t ttmon_proc_read(const char *root, uint32_t pid, const char *name, char *buf, size_t size) _must_check;
/*
 * Finds the line of text that begins with name and a space, as in /proc/PID/status and /proc/vmstat,
 * and parses its number.
 */
bool ttmon_proc_number(const char *text, const char *name, int base, uint64_t *ret) _must_check;
/* The same for /proc/PID/status: "Tgid:", 10; "CapEff:", 16. */
bool ttmon_proc_status(uint32_t pid, const char *name, int base, uint64_t *ret) _must_check;
/*
 * Gets the effective user and group of a process (root's if it is not dumpable, see proc(5)); ret_gid
 * may be NULL. Returns false if the process is gone.
 */
bool ttmon_proc_owner(uint32_t pid, uid_t *ret_uid, gid_t *ret_gid) _must_check;

/* Fields of proc_pid_stat(5). */
struct ttmon_proc_stat {
	char state;	    /* 'Z' and 'X': the process has ended */
	unsigned int flags; /* PF_* of include/linux/sched.h */
	uint64_t start;	    /* clock ticks since boot, never 0: pid and start identify a process */
};

/*
 * root: "/proc" (NULL), or a copy of it. -ESRCH: no such process; -EINVAL: the file has an unexpected
 * form.
 */
int ttmon_proc_read_stat(const char *root, uint32_t pid, struct ttmon_proc_stat *ret) _must_check;
/* Returns the start time, as above, of a process that has not been reaped; 0: there is none. */
uint64_t ttmon_proc_start(uint32_t pid);
/* The same, but 0 for a process that has ended and has not been reaped (a zombie). */
uint64_t ttmon_proc_alive(uint32_t pid);
/*
 * Gets the name of the process's first thread, "?" if it is gone. Returns buf, of at least 16 bytes.
 */
char *ttmon_proc_comm(uint32_t pid, char buf[16]);
/* Returns the process of a thread; the thread itself if the process is not known. */
uint32_t ttmon_proc_tgid(uint32_t tid);

#endif
