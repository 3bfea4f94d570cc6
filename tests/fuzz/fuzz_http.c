// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_http.c: what a client may send, on a Unix socket or on TCP, whole or in pieces, by one that
 * stays or one that goes away. The first byte says which; 0xff 0xff in the rest ends a piece. Whatever
 * it was: what comes back begins as HTTP does, every stream is ended once, and when the time is up
 * nothing of the connection is left.
 */
#include <fcntl.h>
#include <sys/socket.h>

#include "daemon/io/http/http_int.h"
#include "lib/os/log.h"

static uint64_t now_ns = 1;
static unsigned int streams;
static struct ttmon_http_later *waiting;

static uint64_t fake_clock(void)
{
	return now_ns;
}

static void echo(void *ctx, struct ttmon_http_reply *reply)
{
	const char *n = ttmon_http_arg(reply, "n");

	(void)ctx;
	if (reply->local != (reply->uid != (uid_t)-1) || !reply->accept || strchr(reply->rest, '/'))
		abort();
	fprintf(reply->body, "%s %s %u", reply->path, reply->rest, reply->method);
	for (int i = n ? atoi(n) % 10000 : 0; i > 0; i--)
		putc('x', reply->body);
	if (ttmon_http_arg(reply, "error"))
		ttmon_http_error(reply, 400, "no %s, %s", reply->path, n);
}

static ssize_t next(void *ctx, char *buf, size_t max)
{
	(void)ctx;
	memset(buf, 'y', max);
	return streams % 3 ? (ssize_t)max : -EIO;
}

static void done(void *ctx)
{
	(void)ctx;
	streams--;
}

static void stream(void *ctx, struct ttmon_http_reply *reply)
{
	streams++;
	ttmon_http_stream(reply, next, done, ctx);
}

static void later(void *ctx, struct ttmon_http_reply *reply)
{
	(void)ctx;
	if (waiting)
		ttmon_http_error(reply, 503, "one at a time");
	else
		waiting = ttmon_http_defer(reply);
}

static const struct ttmon_http_route routes[] = {
	{ "/metrics", "<&>", echo, 0, true },
	{ "/v1/echo", "", echo, TTMON_HTTP_GET | TTMON_HTTP_PUT | TTMON_HTTP_DELETE, false },
	{ "/v1/items/", "", echo, 0, true },
	{ "/v1/stream", "", stream, 0, true },
	{ "/v1/later", "", later, 0, true },
};

static struct ttmon_http *http;

static void start(void)
{
	static const char *const listen[] = { "127.0.0.1:0" };
	char dir[] = "/tmp/ttmon-fuzz-http.XXXXXX", path[64], lock[64];
	struct ttmon_http_cfg cfg = {
		.socket = path, .listen = listen, .nr_listen = 1, .routes = routes, .nr_routes = ARRAY_SIZE(routes)
	};

	ttmon_log_set_level(TTMON_LOG_ERROR);
	if (!mkdtemp(dir))
		abort();
	snprintf(path, sizeof(path), "%s/t.sock", dir);
	snprintf(lock, sizeof(lock), "%s/.t.sock.lock", dir);
	/* No client connects by the path: it can be removed at once, with the lock beside it. */
	if (ttmon_http_new(&cfg, &http) || unlink(path) || unlink(lock) || rmdir(dir))
		abort();
	http->now = fake_clock;
}

/* The listener's end of a connection; the client's comes back. */
static int dial(struct ttmon_http_listener *l)
{
	struct sockaddr addr = { .sa_family = AF_UNIX };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) ||
	    MHD_add_connection(l->daemon, pair[0], &addr, sizeof(addr)) != MHD_YES)
		abort();
	return pair[1];
}

static void listen_to(int fd, char *head, size_t *n)
{
	static char buf[1 << 16];
	ssize_t got;

	while ((got = recv(fd, buf, sizeof(buf), 0)) > 0) {
		size_t room = MIN((size_t)got, 8 - *n);

		memcpy(head + *n, buf, room);
		*n += room;
	}
}

static void turns(int fd, char *head, size_t *n)
{
	for (int i = 0; i < 4; i++) {
		ttmon_http_run(http);
		listen_to(fd, head, n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char head[8];
	size_t n = 0;
	uint8_t how;
	int fd;

	if (!http)
		start();
	if (!size)
		return 0;
	how = *data++;
	size--;
	fd = dial(&http->listeners[how & 1]);
	while (size) {
		const uint8_t *end = memmem(data, size, "\xff\xff", 2);
		size_t some = end ? (size_t)(end - data) : size;

		(void)!send(fd, data, some, MSG_NOSIGNAL);
		some += end ? 2 : 0;
		data += some;
		size -= some;
		turns(fd, head, &n);
	}
	if (how & 2)
		shutdown(fd, SHUT_WR);
	if (how & 4)
		close(TAKE_FD(fd));
	if (waiting && how & 8)
		ttmon_http_later_error(TAKE_PTR(waiting), 503, "no");
	else if (waiting)
		ttmon_http_later_file(TAKE_PTR(waiting), open("/dev/null", O_RDONLY | O_CLOEXEC), TTMON_HTTP_TEXT);
	turns(fd, head, &n);
	if (waiting)
		ttmon_http_later_error(TAKE_PTR(waiting), 503, "no");
	if (fd >= 0)
		close(TAKE_FD(fd));
	for (int i = 0; i < 2; i++) {
		now_ns += 100 * NSEC_PER_SEC;
		turns(fd, head, &n);
	}
	if (n && memcmp(head, "HTTP/1.", MIN(n, (size_t)7)))
		abort();
	if (http->stats.open || http->first || streams || waiting)
		abort();
	return 0;
}
