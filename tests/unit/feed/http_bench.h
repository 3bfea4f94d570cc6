/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * http_bench.h: what the tests of the HTTP server share: a server with some routes in a folder of its
 * own, a clock that stands still, and clients made of plain sockets in the same thread.
 */
#ifndef TTMON_HTTP_BENCH_H
#define TTMON_HTTP_BENCH_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include "daemon/io/http/http_int.h"
#include "lib/os/clock.h"
#include "lib/os/log.h"

#define UNUSED __attribute__((unused))

static char dir[64];
static char path[128];
static uint64_t clock_ns;

static int set_up(void **state)
{
	(void)state;
	ttmon_log_set_level(TTMON_LOG_ERROR);
	strcpy(dir, "/tmp/ttmon-test-http.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/run/t.sock", dir);
	clock_ns = 1000 * NSEC_PER_SEC;
	return 0;
}

static int tear_down(void **state)
{
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd);
}

static uint64_t fake_clock(void)
{
	return clock_ns;
}

/* A server on the Unix socket, and on TCP too. Its clock moves only when the test moves it. */
UNUSED static struct ttmon_http *start_on(const struct ttmon_http_route *routes, size_t nr, void *ctx, const char *tcp)
{
	const struct ttmon_http_cfg cfg = {
		.socket = path, .listen = &tcp, .nr_listen = tcp != NULL, .routes = routes, .nr_routes = nr, .ctx = ctx
	};
	struct ttmon_http *h = NULL;

	assert_int_equal(ttmon_http_new(&cfg, &h), 0);
	h->now = fake_clock;
	h->sweep_ns = clock_ns;
	return h;
}

/* ---- clients ---- */

UNUSED static int dial_unix(const char *name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	memcpy(addr.sun_path, name, strlen(name) + 1);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

UNUSED static int dial(void)
{
	return dial_unix(path);
}

/* By a listener's name, "127.0.0.1:PORT". */
UNUSED static int dial_tcp(const char *name)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_port = htons((uint16_t)atoi(strrchr(name, ':') + 1));
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

/* One turn of the caller's loop, as the daemon has it. */
static void turn(struct ttmon_http *h, int max_ms)
{
	struct pollfd p = { .fd = ttmon_http_fd(h), .events = POLLIN };
	int ms = ttmon_http_timeout_ms(h);

	poll(&p, 1, ms < 0 || ms > max_ms ? max_ms : ms);
	ttmon_http_run(h);
}

UNUSED static void turns(struct ttmon_http *h, int n)
{
	while (n-- > 0)
		turn(h, 0);
}

/* Everything up to the end of the connection. -1: still open after many turns. */
UNUSED static ssize_t read_all(struct ttmon_http *h, int fd, char *buf, size_t n)
{
	size_t got = 0;

	for (int i = 0; i < 20000; i++) {
		ssize_t done;

		turn(h, 1);
		while ((done = recv(fd, buf + got, n - 1 - got, 0)) > 0)
			got += (size_t)done;
		if (done == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
			buf[got] = '\0';
			return (ssize_t)got;
		}
	}
	return -1;
}

UNUSED static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Send raw bytes over fd, which is closed then, and return the whole answer. */
UNUSED static const char *talk_on(struct ttmon_http *h, int fd, const char *request)
{
	static char buf[1 << 20];

	assert_true(fd >= 0);
	say(fd, request);
	assert_true(read_all(h, fd, buf, sizeof(buf)) >= 0);
	close(fd);
	return buf;
}

UNUSED static const char *talk(struct ttmon_http *h, const char *request)
{
	return talk_on(h, dial(), request);
}

UNUSED static const char *get(struct ttmon_http *h, const char *what)
{
	char request[512];

	snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", what);
	return talk(h, request);
}

UNUSED static void assert_status(const char *answer, int status)
{
	char want[32];

	snprintf(want, sizeof(want), "HTTP/1.1 %d ", status);
	assert_memory_equal(answer, want, strlen(want));
}

UNUSED static const char *body_of(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n");

	assert_non_null(body);
	return body + 4;
}

UNUSED static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no %s in %s", part, text);
}

/* Is this connection still open? */
UNUSED static bool is_open(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

UNUSED static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/*
 * Some tests make errors on purpose; their lines would only confuse: they go here and are looked at.
 */
static char said[4096];
static int quiet_saved;
static FILE *quiet_file;

UNUSED static void quiet(void)
{
	quiet_saved = dup(STDERR_FILENO);
	quiet_file = tmpfile();
	assert_true(quiet_saved >= 0 && quiet_file);
	dup2(fileno(quiet_file), STDERR_FILENO);
}

UNUSED static void loud(void)
{
	dup2(quiet_saved, STDERR_FILENO);
	close(quiet_saved);
	rewind(quiet_file);
	said[fread(said, 1, sizeof(said) - 1, quiet_file)] = '\0';
	fclose(quiet_file);
}

#endif
