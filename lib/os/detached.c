// SPDX-License-Identifier: GPL-2.0-only
/* detached.c: see detached.h. */
#define _GNU_SOURCE
#include "lib/os/detached.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* Descriptors are first moved above the numbers that they get in the end. */
#define ABOVE 16

/*
 * Changes the command line too, because pkill -f matches it. Fields 48 and 49 of proc_pid_stat(5) have
 * its address. A name that is too long is cut. The rest of the old text becomes zeros, which the
 * kernel does not show.
 */
static void rename_command_line(const char *name)
{
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	unsigned long range[2] = { 0, 0 };
	char buf[1024], *p;
	ssize_t n;

	if (fd < 0)
		return;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	buf[MAX(n, 0)] = '\0';
	p = strrchr(buf, ')');
	for (int field = 2; p && field < 48; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, " %lu %lu", &range[0], &range[1]) != 2 || range[0] >= range[1])
		return;
	memset((void *)range[0], 0, range[1] - range[0]);
	memcpy((void *)range[0], name, MIN(strlen(name), range[1] - range[0] - 1));
}

_Noreturn static void become(const char *name, const int *keep, size_t n, int sock, void (*run)(void))
{
	int fds[TTMON_DETACHED_KEEP + 1], null;
	sigset_t all;

	/*
	 * Signals are blocked rather than ignored, because one call is enough for all; the effect is the same.
	 */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	if (chdir("/"))
		_exit(1);
	prctl(PR_SET_NAME, name);
	rename_command_line(name);
	for (size_t i = 0; i <= n; i++) {
		fds[i] = fcntl(i < n ? keep[i] : sock, F_DUPFD_CLOEXEC, ABOVE);
		if (fds[i] < 0)
			_exit(1);
	}
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		_exit(1);
	/*
	 * Close the inherited descriptors: a reader of the daemon's terminal or pipe has to see its end when
	 * the daemon has ended.
	 */
	for (int fd = 0; fd < TTMON_DETACHED_FD; fd++)
		dup2(null, fd);
	for (size_t i = 0; i <= n; i++)
		dup3(fds[i], TTMON_DETACHED_FD + (int)i, O_CLOEXEC);
	close_range(TTMON_DETACHED_FD + (unsigned int)n + 1, ~0U, 0);
	run();
	_exit(0);
}

int ttmon_detached_start(const char *name, int flags, const int *keep, size_t n, void (*run)(void), int *ret_sock)
{
	_cleanup_close_ int ours = -1, theirs = -1;
	int pair[2], status = 0;
	pid_t pid;

	if (n > TTMON_DETACHED_KEEP)
		return -EINVAL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0, pair))
		return -errno;
	ours = pair[0];
	theirs = pair[1];

	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			become(name, keep, n, theirs, run);
		_exit(pid < 0 ? errno : 0);
	}
	/* ECHILD: a SIGCHLD handler was faster, or SIGCHLD is ignored. */
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			break;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status))
		return -WEXITSTATUS(status);
	*ret_sock = TAKE_FD(ours);
	return 0;
}
