// SPDX-License-Identifier: GPL-2.0-only
/*
 * names.c: see names.h. The process is a fork of the daemon with one descriptor, our socket, in the
 * box of the process that unwinds stacks (io/unwind/box.c): no capability and no system call that
 * opens anything. It sends a message for each symbol, in order; the daemon does not trust their
 * content.
 */
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "daemon/io/unwind/unwinder.h"
#include "daemon/run/names.h"
#include "lib/base/fmt.h"
#include "lib/demangle/demangle.h"
#include "lib/os/clock.h"

#define TIME_MS 2000 /* limit for all of them together */
#define SOCK	0    /* the only descriptor of the process */

static bool is_mangled(const char *symbol)
{
	return symbol[0] == '_' && (symbol[1] == 'Z' || symbol[1] == 'R');
}

_Noreturn static void demangle_all(int sock, const char *const *symbols, size_t n)
{
	struct rlimit time = { TIME_MS / 1000 + 1, TIME_MS / 1000 + 1 };

	prctl(PR_SET_NAME, "ttmond-names");
	/* In case the daemon is killed meanwhile. */
	if (setrlimit(RLIMIT_CPU, &time) || dup2(sock, SOCK) < 0)
		_exit(1);
	close_range(SOCK + 1, ~0u, 0);
	if (!ttmon_unwinder_box())
		_exit(1);
	for (size_t i = 0; i < n; i++) {
		char text[TTMON_DEMANGLE_NAME];
		struct iovec vec = { text, strlen(ttmon_demangle(text, sizeof(text), symbols[i])) };
		struct msghdr msg = { .msg_iov = &vec, .msg_iovlen = 1 };

		/* An empty message would mean the end. */
		if (!vec.iov_len || sendmsg(SOCK, &msg, MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

static void read_all(int sock, const char *const *symbols, size_t n, char **ret)
{
	uint64_t end_ns = ttmon_mono_ns() + TIME_MS * NSEC_PER_MS, now_ns;

	for (size_t i = 0; i < n; i++) {
		struct pollfd fd = { .fd = sock, .events = POLLIN };
		char raw[TTMON_DEMANGLE_NAME], text[TTMON_DEMANGLE_NAME];
		ssize_t len;

		do {
			now_ns = ttmon_mono_ns();
			if (now_ns >= end_ns)
				return;
		} while (poll(&fd, 1, (int)((end_ns - now_ns) / NSEC_PER_MS) + 1) < 0 && errno == EINTR);
		len = recv(sock, raw, sizeof(raw) - 1, MSG_DONTWAIT);
		if (len <= 0)
			return;
		raw[len] = '\0';
		/* A name that did not fit is no better than its symbol. */
		if (is_mangled(symbols[i]) && (size_t)len < sizeof(raw) - 1)
			ret[i] = strdup(ttmon_fmt_text(text, sizeof(text), raw));
	}
}

static void ask(const char *const *symbols, size_t n, char **ret)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return;
	pid = fork();
	if (!pid)
		demangle_all(pair[1], symbols, n);
	close(pair[1]);
	if (pid > 0) {
		read_all(pair[0], symbols, n, ret);
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(pair[0]);
}

void ttmon_names_show(const char *const *symbols, size_t n, char **ret)
{
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		ret[i] = NULL;
		any |= is_mangled(symbols[i]);
	}
	if (any)
		ask(symbols, n, ret);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(symbols[i]) + 1;

		if (!ret[i] && (ret[i] = malloc(len)))
			ttmon_fmt_text(ret[i], len, symbols[i]);
	}
}
