/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bugreport.h: what the parts of `ttmon bugreport` share: the folder that becomes the archive, and
 * functions that run other programs.
 */
#ifndef TTMON_BUGREPORT_H
#define TTMON_BUGREPORT_H

#include <signal.h>
#include <sys/types.h>

#include "tools/bugreport/redact.h"
#include "lib/base/util.h"

struct ttmon_report {
	char *folder; /* absolute path; its contents become the archive */
	int dir;      /* a descriptor of folder */
	bool hide;
	struct ttmon_redact redact;
	FILE *errors; /* errors.txt */
	/* number of requested parts that could not be had: the service's answers, the recording */
	unsigned int missing;
};

/* Set by SIGINT, SIGTERM and SIGHUP. Every function that waits checks it and gives up. */
extern volatile sig_atomic_t ttmon_report_stopped;

/*
 * Opens a new file of the report for writing; the caller closes it. name: as in the archive. Returns
 * NULL on failure, which is written to errors.txt.
 */
FILE *ttmon_report_open(struct ttmon_report *b, const char *name);
/* Writes to errors.txt that a part is not in the report, and why. */
void ttmon_report_lacks(struct ttmon_report *b, const char *what, const char *why);

/*
 * Adds versions, kernel settings, kernel configuration, modules, the kernel log and the log of the
 * unit.
 */
void ttmon_report_host(struct ttmon_report *b);
/*
 * Adds recording.rec: a recording of the whole host, made by a second ttmond beside the service.
 * seconds: its length. scratch: a folder that is not part of the report.
 */
void ttmon_report_recording(struct ttmon_report *b, const char *scratch, unsigned int seconds);

/*
 * Starts argv[0], which is looked up in PATH unless it contains a '/'. stdin is /dev/null, stdout and
 * stderr go to fd. env: one more "NAME=value" for the environment, or NULL. The caller ends and reaps
 * the process with ttmon_child_end(). Returns 0 or -errno.
 */
int ttmon_child_start(char *const argv[], int fd, const char *env, pid_t *ret) _must_check;
/*
 * Waits up to ms milliseconds for the process to end. Returns whether it ended; *status is as in
 * waitpid(2). Returns false too when the report was interrupted.
 */
bool ttmon_child_wait(pid_t pid, unsigned int ms, int *status);
/*
 * Starts a program, waits for it, and kills it after ms milliseconds. Returns 0: it exited with 0;
 * -ETIMEDOUT; -ENOEXEC: it exited otherwise; or the error of starting it.
 */
int ttmon_child_run(char *const argv[], int fd, const char *env, unsigned int ms) _must_check;
/*
 * Writes the path of the ttmond that belongs to this program (in bin/ or ../sbin/), or "ttmond", which
 * is looked up in PATH.
 */
void ttmon_report_ttmond(char *buf, size_t size);

#endif
