// SPDX-License-Identifier: GPL-2.0-only
/*
 * sdnotify.c: reads systemd's environment variables and sends messages to it. Cold thread only;
 * ttmon_sd_init() runs in main before anything else.
 */
#include "daemon/io/host/sdnotify.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "lib/os/log.h"

#define FIRST_FD     3	  /* SD_LISTEN_FDS_START */
#define MAX_FDS	     1024 /* more than that is no list of sockets */
#define SEND_SECONDS 1
#define MAX_WATCHDOG (UINT64_MAX / NSEC_PER_US)
#define PATH_OFFSET  offsetof(struct sockaddr_un, sun_path)

static struct sockaddr_un address;
static socklen_t address_len; /* 0: no messages are sent */
static uint64_t watchdog_us;
static int nr_fds;

/* A decimal number of the environment; the variable is unset. 0: missing or invalid. */
static uint64_t take_number(const char *name, uint64_t max)
{
	const char *text = getenv(name);
	unsigned long long v;
	char *end;

	if (!text)
		return 0;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || v > max) {
		log_debug("%s=%s is no number, ignored", name, text);
		v = 0;
	}
	unsetenv(name);
	return v;
}

/* A path, or "@name" for an abstract one. */
static void take_address(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t n = path ? strlen(path) : 0;

	address_len = 0;
	if (!path)
		return;
	if ((*path != '/' && *path != '@') || n < 2 || n >= sizeof(address.sun_path)) {
		log_debug("NOTIFY_SOCKET=%s is neither a path nor an abstract socket, ignored", path);
	} else {
		address = (struct sockaddr_un){ .sun_family = AF_UNIX };
		memcpy(address.sun_path, path, n);
		if (*path == '@')
			address.sun_path[0] = '\0';
		address_len = (socklen_t)(PATH_OFFSET + n);
	}
	unsetenv("NOTIFY_SOCKET");
}

void ttmon_sd_init(void)
{
	uint64_t self = (uint64_t)getpid(), pid, n;
	bool named;

	take_address();
	/* Without $WATCHDOG_PID it is meant for any process that reads it. */
	named = getenv("WATCHDOG_PID");
	pid = take_number("WATCHDOG_PID", INT32_MAX);
	watchdog_us = take_number("WATCHDOG_USEC", MAX_WATCHDOG);
	if (named && pid != self)
		watchdog_us = 0;
	/* For sockets the owner is always named. */
	pid = take_number("LISTEN_PID", INT32_MAX);
	n = take_number("LISTEN_FDS", MAX_FDS);
	unsetenv("LISTEN_FDNAMES");
	nr_fds = pid == self ? (int)n : 0;
	for (int fd = FIRST_FD; fd < FIRST_FD + nr_fds; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void ttmon_sd_notify(const char *fmt, ...)
{
	const struct timeval patience = { .tv_sec = SEND_SECONDS };
	_cleanup_close_ int fd = -1;
	int saved = errno, n;
	char text[1024];
	va_list ap;

	if (!address_len)
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n <= 0)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
	    sendto(fd, text, MIN((size_t)n, sizeof(text) - 1), MSG_NOSIGNAL, (const struct sockaddr *)&address,
		   address_len) < 0)
		log_debug("cannot tell systemd: %m");
	errno = saved;
}

uint64_t ttmon_sd_watchdog_ns(void)
{
	return watchdog_us * NSEC_PER_US / 2;
}

/* Why the daemon cannot serve on this descriptor, NULL: it can. */
static const char *unfit(int fd)
{
	int value = 0;
	socklen_t len = sizeof(value);

	if (fcntl(fd, F_GETFD) < 0)
		return "it is not open";
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len) || value != SOCK_STREAM)
		return "it is no stream socket";
	len = sizeof(value);
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &len) || !value)
		return "nobody listens on it (Accept=no is needed)";
	value = fcntl(fd, F_GETFL);
	return value < 0 || fcntl(fd, F_SETFL, value | O_NONBLOCK) ? "it cannot be made non-blocking" : NULL;
}

bool ttmon_sd_has_fds(void)
{
	return nr_fds > 0;
}

size_t ttmon_sd_listen_fds(int *fds, size_t max)
{
	size_t n = 0;

	for (int fd = FIRST_FD; fd < FIRST_FD + nr_fds; fd++) {
		const char *why = unfit(fd);

		if (!why && n == max)
			why = "there are too many";
		if (!why) {
			fds[n++] = fd;
			continue;
		}
		log_warn("descriptor %d from systemd is not used: %s", fd, why);
		close(fd);
	}
	nr_fds = 0;
	return n;
}
