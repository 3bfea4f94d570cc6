// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_http.c: the socket file and the server on it, with clients made of plain sockets in the same thread.
 */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include "io/http.h"
#include "io/usock.h"
#include "util/log.h"

static char dir[64];
static char path[128];

static int set_up(void **state)
{
	(void)state;
	ttmon_log_set_level(TTMON_LOG_ERROR);
	strcpy(dir, "/tmp/ttmon-test-http.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/run/t.sock", dir);
	return 0;
}

static int tear_down(void **state)
{
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd);
}

/* ---- routes ---- */

#define BIG (8u << 20)

static void hello(void *ctx, struct ttmon_http_reply *reply)
{
	const char *name = ttmon_http_arg(reply, "name");

	fprintf(reply->body, "{\"hello\": \"%s\", \"ctx\": %d}", name ? name : "nobody", *(int *)ctx);
}

static void peer(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	fprintf(reply->body, "%d %d %d %d", reply->local, (int)reply->uid, (int)reply->gid, (int)reply->pid);
	reply->content_type = TTMON_HTTP_TEXT;
}

static void broken(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	fprintf(reply->body, "%1000d", 1);
	ttmon_http_error(reply, 503, "not \"%s\"", "ready");
}

static void big(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	for (unsigned int i = 0; i < BIG / 8; i++)
		fprintf(reply->body, "%07x\n", i);
}

static const struct ttmon_http_route routes[] = {
	{ "/v1/hello", "says hello", hello },
	{ "/v1/peer", "who asks", peer },
	{ "/v1/broken", "never works", broken },
	{ "/v1/big", "eight mebibytes", big },
};

static int ctx_value = 42;

static struct ttmon_http *start(void)
{
	const struct ttmon_http_cfg cfg = {
		.socket = path,
		.routes = routes,
		.nr_routes = ARRAY_SIZE(routes),
		.ctx = &ctx_value,
	};
	struct ttmon_http *h = NULL;

	assert_int_equal(ttmon_http_new(&cfg, &h), 0);
	return h;
}

/* ---- clients ---- */

static int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		int err = -errno;

		close(fd);
		return err;
	}
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

/* Everything up to the end of the connection. -1: still open after many turns. */
static ssize_t read_all(struct ttmon_http *h, int fd, char *buf, size_t n)
{
	size_t got = 0;

	for (int turns = 0; turns < 20000; turns++) {
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

/* Send raw bytes, return the whole answer. */
static const char *talk(struct ttmon_http *h, const char *request)
{
	static char buf[65536];
	int fd = dial();

	assert_true(fd >= 0);
	assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	assert_true(read_all(h, fd, buf, sizeof(buf)) >= 0);
	close(fd);
	return buf;
}

static const char *get(struct ttmon_http *h, const char *what)
{
	char request[512];

	snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", what);
	return talk(h, request);
}

static void assert_status(const char *answer, int status)
{
	char want[32];

	snprintf(want, sizeof(want), "HTTP/1.1 %d ", status);
	assert_memory_equal(answer, want, strlen(want));
}

static const char *body_of(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n");

	assert_non_null(body);
	return body + 4;
}

/* ---- tests of the server ---- */

static void test_routes(void **state)
{
	struct ttmon_http *h = start();
	const char *answer;

	(void)state;
	answer = get(h, "/v1/hello");
	assert_status(answer, 200);
	assert_non_null(strstr(answer, "Content-Type: application/json\r\n"));
	assert_string_equal(body_of(answer), "{\"hello\": \"nobody\", \"ctx\": 42}");
	assert_string_equal(body_of(get(h, "/v1/hello?x=1&name=a%62c")), "{\"hello\": \"abc\", \"ctx\": 42}");
	assert_string_equal(body_of(get(h, "/v1/hello?name")), "{\"hello\": \"\", \"ctx\": 42}");

	answer = get(h, "/v1/broken");
	assert_status(answer, 503);
	assert_string_equal(body_of(answer), "{\"error\": \"not \\\"ready\\\"\"}\n");

	answer = get(h, "/v1/nothing");
	assert_status(answer, 404);
	assert_string_equal(body_of(answer), "{\"error\": \"no such path, / lists them\"}\n");
	assert_status(get(h, "/v1/hello/"), 404);

	answer = get(h, "/");
	assert_status(answer, 200);
	assert_non_null(strstr(answer, "Content-Type: text/plain"));
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		assert_non_null(strstr(body_of(answer), routes[i].path));
		assert_non_null(strstr(body_of(answer), routes[i].help));
	}
	ttmon_http_free(h);
}

static void test_methods(void **state)
{
	struct ttmon_http *h = start();
	const char *answer;

	(void)state;
	answer = talk(h, "HEAD /v1/hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	assert_status(answer, 200);
	assert_non_null(strstr(answer, "Content-Length: 30\r\n"));
	assert_string_equal(body_of(answer), "");
	answer = talk(h, "POST /v1/hello HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nxxx");
	assert_status(answer, 405);
	assert_non_null(strstr(answer, "Allow: GET, HEAD\r\n"));
	assert_status(talk(h, "DELETE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), 405);
	/* A body nobody asked for ends the connection. */
	assert_string_equal(talk(h, "GET /v1/hello HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nxxx"), "");
	ttmon_http_free(h);
}

static void test_limits(void **state)
{
	struct ttmon_http *h = start();
	static char request[4 * TTMON_HTTP_MEMORY];
	int fds[TTMON_HTTP_CONNECTIONS + 4];
	static char buf[65536];

	(void)state;
	/* An address line, then headers, that do not fit. */
	memset(request, 'a', sizeof(request) - 1);
	memcpy(request, "GET /", 5);
	strcpy(request + sizeof(request) - 40, " HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_status(talk(h, request), 414);
	memset(request, 'a', sizeof(request) - 1);
	memcpy(request, "GET / HTTP/1.1\r\nX: ", 19);
	strcpy(request + sizeof(request) - 40, "\r\nHost: x\r\n\r\n");
	assert_status(talk(h, request), 431);

	/* More clients than are let in at once: the others wait, and get their turn. */
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = dial();
		assert_true(fds[i] >= 0);
		turn(h, 0);
	}
	strcpy(request, "GET /v1/hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	for (size_t i = ARRAY_SIZE(fds); i-- > TTMON_HTTP_CONNECTIONS;)
		assert_int_equal(send(fds[i], request, strlen(request), MSG_NOSIGNAL), strlen(request));
	for (int i = 0; i < 50; i++)
		turn(h, 0);
	for (size_t i = TTMON_HTTP_CONNECTIONS; i < ARRAY_SIZE(fds); i++)
		assert_int_equal(recv(fds[i], buf, sizeof(buf), 0), -1);
	for (size_t i = 0; i < TTMON_HTTP_CONNECTIONS; i++)
		close(fds[i]);
	for (size_t i = TTMON_HTTP_CONNECTIONS; i < ARRAY_SIZE(fds); i++) {
		assert_true(read_all(h, fds[i], buf, sizeof(buf)) > 0);
		assert_status(buf, 200);
		close(fds[i]);
	}
	ttmon_http_free(h);
}

static void test_peer(void **state)
{
	struct ttmon_http *h = start();
	char want[64];

	(void)state;
	snprintf(want, sizeof(want), "1 %d %d %d", (int)geteuid(), (int)getegid(), (int)getpid());
	assert_string_equal(body_of(get(h, "/v1/peer")), want);
	ttmon_http_free(h);
}

/* Two requests on one connection, and one that comes in pieces. */
static void test_keep_alive(void **state)
{
	static const char first[] = "GET /v1/hello?name=a HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/hel";
	static const char rest[] = "lo?name=b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	struct ttmon_http *h = start();
	static char buf[65536];
	int fd = dial();

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(send(fd, first, sizeof(first) - 1, MSG_NOSIGNAL), sizeof(first) - 1);
	for (int i = 0; i < 20; i++)
		turn(h, 0);
	assert_int_equal(send(fd, rest, sizeof(rest) - 1, MSG_NOSIGNAL), sizeof(rest) - 1);
	assert_true(read_all(h, fd, buf, sizeof(buf)) > 0);
	assert_non_null(strstr(buf, "\"hello\": \"a\""));
	assert_non_null(strstr(buf, "\"hello\": \"b\""));
	close(fd);
	ttmon_http_free(h);
}

/* A long reply whole; then one whose reader goes away: SIGPIPE would end this test. */
static void test_big_and_gone(void **state)
{
	static const char request[] = "GET /v1/big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	struct ttmon_http *h = start();
	char *buf = malloc(BIG + 4096);
	ssize_t n;
	int fd;

	(void)state;
	assert_non_null(buf);
	fd = dial();
	assert_int_equal(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL), sizeof(request) - 1);
	n = read_all(h, fd, buf, BIG + 4096);
	assert_true(n > (ssize_t)BIG);
	assert_int_equal(strlen(body_of(buf)), BIG);
	assert_string_equal(buf + n - 8, "00fffff\n");
	close(fd);

	fd = dial();
	assert_int_equal(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL), sizeof(request) - 1);
	for (int i = 0; i < 10; i++)
		turn(h, 0);
	assert_true(recv(fd, buf, 100, 0) > 0);
	close(fd);
	for (int i = 0; i < 10; i++)
		turn(h, 0);
	assert_status(get(h, "/v1/hello"), 200);
	free(buf);
	ttmon_http_free(h);
}

/* ---- tests of the socket file ---- */

static mode_t mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(name, &st), 0);
	return st.st_mode;
}

static void test_socket_file(void **state)
{
	struct ttmon_usock s = { .fd = -1 };
	char run[128];
	mode_t before = umask(022), after;

	(void)state;
	snprintf(run, sizeof(run), "%s/run", dir);
	assert_int_equal(ttmon_usock_open(path, "no-such-group-here", 0660, &s), 0);
	after = umask(before);
	assert_int_equal(after, 022);
	assert_int_equal(mode_of(run), S_IFDIR | 0750);
	assert_int_equal(mode_of(path), S_IFSOCK | 0660);
	assert_true(fcntl(s.fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(s.fd, F_GETFL) & O_NONBLOCK);
	ttmon_usock_fini(&s);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(s.fd, -1);
	/* The directory stays, and is no obstacle. */
	assert_int_equal(ttmon_usock_open(path, NULL, 0600, &s), 0);
	assert_int_equal(mode_of(path), S_IFSOCK | 0600);
	ttmon_usock_fini(&s);
}

/* These tests make errors on purpose; their lines would only confuse. */
static int open_quietly(struct ttmon_usock *s)
{
	int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC), err;

	assert_true(saved >= 0 && null >= 0);
	dup2(null, STDERR_FILENO);
	err = ttmon_usock_open(path, NULL, 0660, s);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(null);
	return err;
}

static void test_live_and_stale(void **state)
{
	struct ttmon_usock live = { .fd = -1 }, s = { .fd = -1 };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat before, after;
	int fd;

	(void)state;
	assert_int_equal(ttmon_usock_open(path, NULL, 0660, &live), 0);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(open_quietly(&s), -EADDRINUSE);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);

	/* The live one's end does not take a socket that is not its own. */
	assert_int_equal(unlink(path), 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ttmon_usock_fini(&live);
	assert_int_equal(access(path, F_OK), 0);

	/* Nobody listens on that one: stale. */
	close(fd);
	assert_int_equal(ttmon_usock_open(path, NULL, 0660, &s), 0);
	assert_true((fd = dial()) >= 0);
	close(fd);
	ttmon_usock_fini(&s);
	assert_int_equal(dial(), -ENOENT);
}

static void test_not_a_socket(void **state)
{
	struct ttmon_usock s = { .fd = -1 };
	char run[128];
	FILE *f;

	(void)state;
	snprintf(run, sizeof(run), "%s/run", dir);
	assert_int_equal(mkdir(run, 0700), 0);
	f = fopen(path, "we");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(open_quietly(&s), -EEXIST);
	assert_int_equal(mode_of(path) & S_IFMT, S_IFREG);
	assert_int_equal(unlink(path), 0);
	/* A symbolic link too, wherever it leads. */
	assert_int_equal(symlink("/nowhere/at/all", path), 0);
	assert_int_equal(open_quietly(&s), -EEXIST);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(open_quietly(&s), -EEXIST);

	snprintf(path, sizeof(path), "%s/none/run/t.sock", dir);
	assert_int_equal(open_quietly(&s), -ENOENT);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(open_quietly(&s), -ENAMETOOLONG);
	assert_int_equal(s.fd, -1);
	assert_null(s.path);
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Nothing is left behind: no descriptor, no file. */
static void test_nothing_left(void **state)
{
	int before = count_fds();
	struct ttmon_http *h = start();
	int fd = dial();

	(void)state;
	turn(h, 0);
	ttmon_http_free(h);
	close(fd);
	assert_int_equal(count_fds(), before);
	assert_int_equal(access(path, F_OK), -1);
	ttmon_http_free(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		T(test_routes),	      T(test_methods),	    T(test_limits),	 T(test_peer),
		T(test_keep_alive),   T(test_big_and_gone), T(test_socket_file), T(test_live_and_stale),
		T(test_not_a_socket), T(test_nothing_left),
	};

	return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
