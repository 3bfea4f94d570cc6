/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bugreport.h: what the parts of `ttmon bugreport` share: the folder that becomes the archive, and how
 * other programs are run.
 */
#ifndef TTMON_BUGREPORT_H
#define TTMON_BUGREPORT_H

#include <signal.h>
#include <sys/types.h>

#include "tools/bugreport/redact.h"
#include "lib/base/util.h"

struct ttmon_report {
	char *folder; /* absolute; what is in it goes into the archive */
	int dir;      /* the same, open */
	bool hide;
	struct ttmon_redact redact;
	FILE *errors;	      /* errors.txt */
	unsigned int missing; /* of what was requested: the service's answers and the recording */
};

/* Set by SIGINT, SIGTERM and SIGHUP: everything that waits gives up. */
extern volatile sig_atomic_t ttmon_report_stopped;

/*
 * A new file of the report, written by the caller; NULL: said in errors.txt. Named as the archive has
 * it.
 */
FILE *ttmon_report_open(struct ttmon_report *b, const char *name);
/* Say in errors.txt what is not in the report, and why. */
void ttmon_report_lacks(struct ttmon_report *b, const char *what, const char *why);

/* Versions, settings of the kernel, its configuration, modules, its log, the log of the unit. */
void ttmon_report_host(struct ttmon_report *b);
/*
 * recording.rec: seconds of the whole host, by a ttmond beside the service. scratch: a folder that is
 * not part of the report.
 */
void ttmon_report_recording(struct ttmon_report *b, const char *scratch, unsigned int seconds);

/*
 * Start argv[0] (looked up in PATH unless it has a '/'), stdin from /dev/null, stdout and stderr into
 * fd; env: NULL, or one more "NAME=value". Ends and is waited for by ttmon_child_end(). -errno.
 */
int ttmon_child_start(char *const argv[], int fd, const char *env, pid_t *ret) _must_check;
/*
 * Has it ended within ms milliseconds? *status as in waitpid(2). False too where the report was
 * stopped.
 */
bool ttmon_child_wait(pid_t pid, unsigned int ms, int *status);
/*
 * Both, and killed when it takes longer: 0 it exited with 0; -ETIMEDOUT; -ENOEXEC it exited otherwise;
 * errors of starting it.
 */
int ttmon_child_run(char *const argv[], int fd, const char *env, unsigned int ms) _must_check;
/* The ttmond beside this program (bin/ or ../sbin/), or "ttmond" to be looked up in PATH. */
void ttmon_report_ttmond(char *buf, size_t size);

#endif
