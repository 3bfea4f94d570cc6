// SPDX-License-Identifier: GPL-2.0-only
/*
 * hold_run.c: the smallest daemon that holds: run a command under io/hold/hold.c, probe nothing, and
 * write down what it asked. For tests/e2e/test_hold.py.
 *
 *	hold_run REPORT CMD ARGS...
 *
 * Lines "exec INODE" and "map INODE" (0: not opened), at the end "missed N". Exit status: that of CMD,
 * as a shell gives it; CMD's children that outlive it are left to the keeper.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/io/hold/heldfile.h"
#include "daemon/io/hold/hold.h"

static void serve_one(struct ttmon_hold *h, FILE *report)
{
	_cleanup_close_ int fd = -1;
	struct ttmon_hold_req req;
	struct stat st = { .st_ino = 0 };

	if (ttmon_hold_next(h, &req))
		return;
	if (!ttmon_heldfile_open(&req.notif, &fd) && ttmon_hold_waits(h, &req))
		fstat(fd, &st);
	ttmon_hold_release(h, &req);
	fprintf(report, "%s %lu\n", req.exec ? "exec" : "map", (unsigned long)st.st_ino);
}

static bool is_program(void *ctx _unused_, const struct seccomp_notif *notif)
{
	_cleanup_close_ int fd = -1;

	return !ttmon_heldfile_open(notif, &fd) && ttmon_heldfile_is_program(fd);
}

int main(int argc, char **argv)
{
	_cleanup_fclose_ FILE *report = argc > 2 ? fopen(argv[1], "we") : NULL;
	struct pollfd pfd[2];
	struct ttmon_hold *h;
	int err, status;

	if (!report)
		return 99;
	err = ttmon_hold_new(argv + 2, &h);
	if (err == 0 && ttmon_hold_error(h))
		return 77;
	if (err == 0)
		err = ttmon_hold_go(h, is_program, NULL);
	if (err) {
		fprintf(stderr, "hold_run: %s: %s\n", argv[2], strerror(-err));
		return 99;
	}
	pfd[0] = (struct pollfd){ .fd = (int)syscall(SYS_pidfd_open, ttmon_hold_pid(h), 0), .events = POLLIN };
	do {
		pfd[1] = (struct pollfd){ .fd = ttmon_hold_fd(h), .events = POLLIN };
		poll(pfd, 2, -1);
		if (pfd[1].revents)
			serve_one(h, report);
	} while (!pfd[0].revents);
	fprintf(report, "missed %lu\n", (unsigned long)ttmon_hold_missed(h));
	waitpid(ttmon_hold_pid(h), &status, 0);
	ttmon_hold_free(h);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
